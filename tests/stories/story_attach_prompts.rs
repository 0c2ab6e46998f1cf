//! `plexus attach` in a real terminal (tmux): what a prompt names, sessions of agents that do not run, and long outputs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::PathBuf;

use common::gateway::{Gateway, exe, said};
use common::repository::{git, repository};
use common::terminal::Terminal;
use serde_json::{Value, json};

async fn shows(terminal: &Terminal, words: &str) -> String {
    terminal.until(words, Terminal::text, |text| text.contains(words)).await
}

fn shot(terminal: &Terminal, name: &str) {
    let Some(dir) = std::env::var_os("PLEXUS_SHOTS").map(PathBuf::from) else { return };
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(format!("attach-{name}.ansi")), terminal.capture(&["-e"])).unwrap();
}

fn attach(gateway: &Gateway, size: (u16, u16), more: &[&str]) -> Terminal {
    let home = gateway.home.display().to_string();
    let command: Vec<&str> = [exe(), "attach"].into_iter().chain(more.iter().copied()).collect();
    Terminal::open(None, size, &[("PLEXUS_HOME", &home), ("COLORTERM", "truecolor")], &command)
}

/// The first image of an event's content, if there is one.
fn image(events: &[Value]) -> Option<&Value> {
    let mut all =
        events.iter().filter(|event| event["kind"] == "user_message_chunk").map(|event| &event["event"]["content"]);
    all.find(|content| content["type"] == "image")
}

#[tokio::test]
async fn attach_prompt_names_a_file_and_has_an_image() {
    let gateway = Gateway::demo().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/main.rs"), "fn main() {}\n").unwrap();
    let png = folder.path().join("one shot.png");
    std::fs::write(&png, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0").unwrap();
    let (_, made) = gateway.post("/v1/sessions", json!({ "runtime_id": "demo", "cwd": folder.path() })).await;
    let session = made["session_id"].as_str().unwrap();
    let terminal = attach(&gateway, (80, 24), &[session]);
    shows(&terminal, "write to the agent").await;
    terminal.words("echo @mai");
    shows(&terminal, "@main.rs  src").await;
    shot(&terminal, "files-80x24");
    terminal.keys(&["Tab"]);
    shows(&terminal, "echo @src/main.rs").await;
    terminal.keys(&["C-t"]);
    shows(&terminal, "path of an image").await;
    terminal.words(&folder.path().join("none.png").display().to_string());
    terminal.keys(&["Enter"]);
    shows(&terminal, "cannot be read").await;
    terminal.keys(&["C-t"]);
    shows(&terminal, "path of an image").await;
    terminal.words(&png.display().to_string());
    terminal.keys(&["Enter"]);
    shows(&terminal, "+ one shot.png · 640x480").await;
    shot(&terminal, "image-80x24");
    terminal.keys(&["Enter"]);
    shows(&terminal, "── done").await;
    shows(&terminal, "[image 640x480 png").await;
    let events = gateway.events(session).await;
    assert!(said(&events, None).contains("@src/main.rs"));
    let image = image(&events).unwrap();
    assert!(image["mimeType"] == "image/png" && image["data"].as_str().unwrap().starts_with("iVBOR"), "{image}");
}

#[tokio::test]
async fn attach_starts_another_program_in_a_worktree_of_a_tag() {
    let gateway = Gateway::start("").await;
    let folder = tempfile::tempdir().unwrap();
    let repo = repository(&folder.path().join("repo"));
    git(&repo, &["tag", "begun"]);
    std::fs::write(repo.join("notes.txt"), "later\n").unwrap();
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "-q", "-m", "later"]);
    let terminal = attach(&gateway, (80, 30), &[]);
    shows(&terminal, "another program").await;
    // After those that are installed.
    for _ in 0..terminal.text().lines().filter(|line| line.contains(" installed · ")).count() {
        terminal.keys(&["Down"]);
    }
    terminal.keys(&["Enter"]);
    shows(&terminal, "▌Command").await;
    terminal.words(&format!("{} agent demo", exe()));
    shot(&terminal, "program-80x30");
    terminal.keys(&["Enter"]);
    shows(&terminal, "▌Speaks").await;
    terminal.keys(&["Enter"]);
    shows(&terminal, "▌Folder").await;
    terminal.keys(&["C-a", "C-k"]);
    terminal.words(&repo.display().to_string());
    terminal.keys(&["Enter", "Enter"]);
    shows(&terminal, "▌What is to be done?").await;
    terminal.words("echo @note");
    shows(&terminal, "notes.txt").await;
    shot(&terminal, "new-files-80x30");
    terminal.keys(&["Enter"]);
    shows(&terminal, "echo @notes.txt").await;
    terminal.keys(&["Tab"]);
    shows(&terminal, "▌Branch").await;
    terminal.words("fix/it");
    shows(&terminal, "what is checked out").await;
    terminal.keys(&["Tab"]);
    shows(&terminal, "▌Base").await;
    terminal.words("begun");
    shot(&terminal, "base-80x30");
    terminal.keys(&["Enter"]);
    shows(&terminal, "── done").await;
    let (_, all) = gateway.get("/v1/sessions").await;
    let session = &all["sessions"][0];
    let worktree = PathBuf::from(session["cwd"].as_str().unwrap());
    assert!(worktree.ends_with("repo.worktrees/fix/it") && !worktree.join("notes.txt").exists(), "{session}");
    let events = gateway.events(session["session_id"].as_str().unwrap()).await;
    assert!(said(&events, None).contains("@notes.txt"));
    // Nobody else needs its worktree: it may go with the session.
    terminal.keys(&["Escape"]);
    shows(&terminal, "Esc write").await;
    terminal.keys(&["C-k"]);
    terminal.words("archive");
    shows(&terminal, "› archive").await;
    terminal.keys(&["Enter"]);
    shows(&terminal, "Remove its worktree as well? The branch fix/it is kept.").await;
    shot(&terminal, "archive-80x30");
    terminal.keys(&["y"]);
    shows(&terminal, "the worktree is removed").await;
    assert!(!worktree.exists());
}

#[tokio::test]
async fn attach_starts_an_agent_for_its_earlier_conversations() {
    let gateway = Gateway::start("").await;
    let terminal = attach(&gateway, (80, 30), &[]);
    shows(&terminal, "▌Agent").await;
    shows(&terminal, "installed ·").await;
    let text = shows(&terminal, "a scripted agent").await;
    let agents: Vec<&str> = text.lines().filter(|line| line.contains(" installed · ")).collect();
    for _ in 0..agents.iter().position(|line| line.contains("a scripted agent")).unwrap() {
        terminal.keys(&["Down"]);
    }
    terminal.keys(&["Tab", "Right"]);
    shows(&terminal, "demo is not running. Enter starts it").await;
    shot(&terminal, "asleep-80x30");
    terminal.keys(&["Tab", "Enter"]);
    shows(&terminal, "demo has no conversation").await;
    let (_, all) = gateway.get("/v1/runtimes").await;
    assert_eq!(all["runtimes"][0]["runtime_id"], "demo", "{all}");
}

#[tokio::test]
async fn attach_loads_what_is_left_out_of_a_long_output() {
    let gateway = Gateway::demo().await;
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..4000).map(|n| format!("line {n} of it\n")).collect();
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "long", "title": "make all", "kind": "execute", "status": "completed",
        "content": [{ "type": "content", "content": { "type": "text", "text": format!("{lines}the-very-end") } }] });
    let script = folder.path().join("script.ndjson");
    std::fs::write(&script, format!("{call}\n")).unwrap();
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, &format!("script {}", script.display())).await;
    gateway.until_ended(&session, &run).await;
    let terminal = attach(&gateway, (80, 24), &[&session]);
    let text = shows(&terminal, "left out · L: load all of it").await;
    assert!(!text.contains("the-very-end"), "{text}");
    shot(&terminal, "left-out-80x24");
    terminal.keys(&["Escape"]);
    shows(&terminal, "Esc write").await;
    terminal.keys(&["L"]);
    shows(&terminal, "the-very-end").await;
    let text = terminal.text();
    assert!(text.contains("line 3999 of it") && !text.contains("left out"), "{text}");
}
