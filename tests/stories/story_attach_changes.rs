//! The changes of a session in `plexus attach`, in a real terminal (tmux): comments that outlast the program, undo, and the user's editor.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use common::gateway::{Gateway, exe};
use common::repository::{git, repository};
use common::terminal::Terminal;
use serde_json::json;

/// Sixty lines, of which some are others.
fn lines(changed: &[(usize, &str)]) -> String {
    let line = |n: usize| changed.iter().find(|(at, _)| *at == n).map_or("the same", |(_, words)| *words);
    (1..=60).map(|n| format!("{n} {}\n", line(n))).collect()
}

/// A session in a repository in which two files changed after its first prompt.
async fn session_with_changes(gateway: &Gateway, folder: &Path) -> (String, PathBuf) {
    let repo = repository(&folder.join("repo"));
    std::fs::write(repo.join("main.txt"), lines(&[])).unwrap();
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "-q", "-m", "files"]);
    let (status, made) = gateway.post("/v1/sessions", json!({ "runtime_id": "demo", "cwd": repo })).await;
    assert_eq!(status, 201, "{made}");
    let session = made["session_id"].as_str().unwrap().to_owned();
    gateway.until_ended(&session, &gateway.prompt(&session, "echo begun").await).await;
    // The list comes after the folder was looked at for the run: what is written below belongs to no run.
    assert_eq!(gateway.get(&format!("/v1/sessions/{session}/changes")).await.0, 200);
    std::fs::write(repo.join("main.txt"), lines(&[(10, "first change"), (50, "second change")])).unwrap();
    std::fs::write(repo.join("new \u{1b}[31mred.txt"), "new\n").unwrap();
    (session, repo)
}

async fn shows(terminal: &Terminal, words: &str) -> String {
    terminal.until(words, Terminal::text, |text| text.contains(words)).await
}

async fn hides(terminal: &Terminal, words: &str) {
    terminal.until(&format!("the end of {words:?}"), Terminal::text, |text| !text.contains(words)).await;
}

fn shot(terminal: &Terminal, name: &str) {
    let Some(dir) = std::env::var_os("PLEXUS_SHOTS").map(PathBuf::from) else { return };
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(format!("attach-{name}.ansi")), terminal.capture(&["-e"])).unwrap();
}

/// `plexus attach` with the changes of the session on its screen.
async fn attached(gateway: &Gateway, session: &str, size: (u16, u16), env: &[(&str, &str)]) -> Terminal {
    let home = gateway.home.display().to_string();
    let mut all = vec![("PLEXUS_HOME", home.as_str()), ("COLORTERM", "truecolor")];
    all.extend_from_slice(env);
    let terminal = Terminal::open(None, size, &all, &[exe(), "attach", session]);
    shows(&terminal, "write to the agent").await;
    terminal.keys(&["Escape"]);
    shows(&terminal, "Esc write").await;
    terminal.keys(&["g", "c"]);
    shows(&terminal, "Changes 2 files").await;
    terminal
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attach_changes_keep_comments_until_they_are_sent() {
    let gateway = Gateway::demo().await;
    let folder = tempfile::tempdir().unwrap();
    let (session, repo) = session_with_changes(&gateway, folder.path()).await;
    let terminal = attached(&gateway, &session, (120, 30), &[]).await;
    let text = shows(&terminal, "\\u{1b}[31mred.txt").await;
    assert!(text.contains("main.txt"), "{text}");
    shot(&terminal, "changes-120x30");
    terminal.keys(&["n"]);
    shows(&terminal, "▌     10 + 10 first change").await;
    terminal.keys(&["c"]);
    shows(&terminal, "Comment on line 10").await;
    terminal.words("Why this?");
    terminal.keys(&["Enter"]);
    shows(&terminal, "your comment on line 10").await;
    shot(&terminal, "changes-comment-120x30");
    // It outlasts the program.
    terminal.keys(&["C-c"]);
    shows(&terminal, "press Ctrl-C again").await;
    terminal.keys(&["C-c"]);
    drop(terminal);
    let terminal = attached(&gateway, &session, (40, 24), &[]).await;
    shows(&terminal, "1 comment · S: send").await;
    shot(&terminal, "changes-40x24");
    terminal.keys(&["n", "n"]);
    shows(&terminal, "50 + 50 second change").await;
    shot(&terminal, "changes-diff-40x24");
    terminal.keys(&["c"]);
    shows(&terminal, "Comment on line 50").await;
    terminal.words("And this?");
    terminal.keys(&["Enter"]);
    shows(&terminal, "2 comments").await;
    // A part is undone, and the comment on another part stays.
    terminal.keys(&["X"]);
    shows(&terminal, "Really?").await;
    terminal.keys(&["y"]);
    shows(&terminal, "undone: main.txt").await;
    assert_eq!(std::fs::read_to_string(repo.join("main.txt")).unwrap(), lines(&[(10, "first change")]));
    hides(&terminal, "second change").await;
    terminal.keys(&["U"]);
    shows(&terminal, "Undone: Enter brings it back").await;
    terminal.keys(&["Enter"]);
    shows(&terminal, "Really?").await;
    terminal.keys(&["y"]);
    shows(&terminal, "has its changes again").await;
    let all = lines(&[(10, "first change"), (50, "second change")]);
    assert_eq!(std::fs::read_to_string(repo.join("main.txt")).unwrap(), all);
    terminal.keys(&["S"]);
    shows(&terminal, "Send 2 comments").await;
    shot(&terminal, "changes-review-40x24");
    terminal.words("Look at these:");
    terminal.keys(&["Enter"]);
    shows(&terminal, "sent: 2 comments as one prompt").await;
    let events = gateway.events(&session).await;
    let prompt = events.iter().rfind(|event| event["kind"] == "user_message_chunk").unwrap();
    let told = prompt["event"]["content"]["text"].as_str().unwrap();
    for words in ["Look at these:", "Line 10:\n> 10 first change\n\nWhy this?", "> 50 second change\n\nAnd this?"] {
        assert!(told.contains(words), "{words:?} is not in {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attach_changes_open_the_editor_and_come_back() {
    let gateway = Gateway::demo().await;
    let folder = tempfile::tempdir().unwrap();
    let (session, _) = session_with_changes(&gateway, folder.path()).await;
    // An editor that shows its arguments, and adds to the file what is typed.
    let editor = folder.path().join("vim");
    std::fs::write(&editor, "#!/bin/sh\necho \"editing $1 $2 of $#\"\nread -r words\necho \"$words\" >> \"$2\"\n")
        .unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let editor = editor.display().to_string();
    let terminal = attached(&gateway, &session, (80, 40), &[("EDITOR", &editor), ("VISUAL", "")]).await;
    terminal.keys(&["n"]);
    shows(&terminal, "▌     10 + 10 first change").await;
    shot(&terminal, "changes-80x40");
    terminal.keys(&["e"]);
    let text = shows(&terminal, "editing +10 ").await;
    assert!(text.contains("of 2") && terminal.format("#{alternate_on}") == "0", "{text}");
    terminal.words("typed in the editor");
    terminal.keys(&["Enter"]);
    let text = shows(&terminal, "Changes 2 files").await;
    assert!(text.contains("● live") && terminal.format("#{alternate_on}") == "1", "{text}");
    // The list was read again, and the keys are the screen's.
    shows(&terminal, "61 + typed in the editor").await;
    terminal.keys(&["j", "x"]);
    shows(&terminal, "Undo the changes of new").await;
    terminal.keys(&["y"]);
    shows(&terminal, "undone: new").await;
    shows(&terminal, "Changes 1 file").await;
}
