//! The changes of a session's runs and of the user between them, and changes that are undone, restored and reviewed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::Path;

use common::gateway::{Gateway, demo};
use common::moments::until_so;
use common::repository::{git, repository};
use serde_json::{Value, json};

/// A repository with three committed files, and one that is not committed.
fn shop(at: &Path) -> std::path::PathBuf {
    let repo = repository(&at.join("shop"));
    let lines: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    for name in ["agent.txt", "person.txt", "both.txt"] {
        std::fs::write(repo.join(name), &lines).unwrap();
    }
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "-q", "-m", "files"]);
    std::fs::write(repo.join("before.txt"), "not committed\n").unwrap();
    repo
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}

async fn list(gateway: &Gateway, session: &str, query: &str) -> Value {
    let (status, list) = gateway.get(&format!("/v1/sessions/{session}/changes{query}")).await;
    assert_eq!(status, 200, "{list}");
    list
}

fn found<'a>(list: &'a Value, path: &str) -> Option<&'a Value> {
    list["files"].as_array().unwrap().iter().find(|file| file["path"] == path)
}

/// A run in which files are edited.
async fn run(gateway: &Gateway, session: &str, prompt: &str, edits: impl FnOnce()) -> String {
    let run = gateway.prompt(session, prompt).await;
    let noted = async || list(gateway, session, "").await["runs"].to_string().contains(&run);
    until_so("the beginning of the run is noted", noted).await;
    edits();
    let (status, told) = gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({})).await;
    assert_eq!(status, 202, "{told}");
    gateway.until_ended(session, &run).await;
    run
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_know_their_runs_and_are_undone_and_brought_back() {
    let mut gateway = Gateway::demo().await;
    let dir = tempfile::tempdir().unwrap();
    let repo = shop(&dir.path().canonicalize().unwrap());
    let (status, made) = gateway.post("/v1/sessions", json!({ "runtime_id": "demo", "cwd": repo })).await;
    assert_eq!(status, 201, "{made}");
    let session = made["session_id"].as_str().unwrap().to_owned();
    let base = format!("/v1/sessions/{session}/changes");

    let first = run(&gateway, &session, "hang", || {
        edit(&repo.join("agent.txt"), "line 3\n", "line three\n");
        edit(&repo.join("agent.txt"), "line 30\n", "line thirty\n");
        edit(&repo.join("both.txt"), "line 1\n", "line one\n");
        std::fs::write(repo.join("new.txt"), "new\n").unwrap();
    })
    .await;
    let ended =
        async || list(&gateway, &session, &format!("?run={first}")).await["files"].as_array().unwrap().len() == 3;
    until_so("the end of the run is noted", ended).await;
    edit(&repo.join("person.txt"), "line 5\n", "line five\n");
    edit(&repo.join("both.txt"), "line 9\n", "line nine\n");
    let second = run(&gateway, &session, "hang", || edit(&repo.join("new.txt"), "new\n", "newer\n")).await;

    let all = list(&gateway, &session, "").await;
    assert!(found(&all, "before.txt").is_none(), "it was so before: {all}");
    for (path, by, runs) in [
        ("agent.txt", "session", json!([first])),
        ("new.txt", "session", json!([first, second])),
        ("person.txt", "others", json!([])),
        ("both.txt", "both", json!([first])),
    ] {
        let file = found(&all, path).unwrap_or_else(|| panic!("{path}: {all}"));
        assert_eq!((&file["by"], &file["runs"]), (&json!(by), &runs), "{all}");
    }
    assert_eq!(all["runs"][0]["prompt"], "hang", "{all}");
    let of_second = list(&gateway, &session, &format!("?run={second}")).await;
    assert_eq!(of_second["files"].as_array().unwrap().len(), 1, "{of_second}");
    assert_eq!((&of_second["files"][0]["path"], &of_second["files"][0]["added"]), (&json!("new.txt"), &json!(1)));

    // One hunk, then the rest; a file that changed meanwhile stays.
    let agent = found(&all, "agent.txt").unwrap();
    let (status, diff) = gateway.get(&format!("{base}/file?path=agent.txt")).await;
    assert_eq!((status, diff["hunks"].as_array().unwrap().len()), (200, 2), "{diff}");
    let wish = json!({ "path": "agent.txt", "digest": agent["digest"], "hunk": 1 });
    let (status, undone) = gateway.post(&format!("{base}/undo"), wish.clone()).await;
    assert_eq!(status, 200, "{undone}");
    let text = std::fs::read_to_string(repo.join("agent.txt")).unwrap();
    assert!(text.contains("line three\n") && text.contains("line 30\n"), "{text}");
    assert!(undone["patch"].as_str().unwrap().contains("+line thirty"), "{undone}");
    let (status, refused) = gateway.post(&format!("{base}/undo"), wish).await;
    assert_eq!((status, &refused["code"]), (409, &json!("changed_meanwhile")), "{refused}");
    let new = found(&all, "new.txt").unwrap();
    let wish = json!({ "path": "new.txt", "digest": new["digest"] });
    let (status, gone) = gateway.post(&format!("{base}/undo"), wish).await;
    assert_eq!((status, repo.join("new.txt").exists()), (200, false), "{gone}");
    assert_ne!(list(&gateway, &session, "").await["rev"], all["rev"]);

    // They are brought back after a restart of the gateway, too.
    gateway.stop().await;
    gateway.again().await;
    let (_, kept) = gateway.get(&format!("{base}/undone")).await;
    assert_eq!(kept["undone"].as_array().unwrap().len(), 2, "{kept}");
    for undone in [&gone, &undone] {
        let (status, back) = gateway.post(&format!("{base}/redo"), json!({ "patch_id": undone["patch_id"] })).await;
        assert_eq!(status, 200, "{back}");
    }
    assert_eq!(std::fs::read_to_string(repo.join("new.txt")).unwrap(), "newer\n");
    let text = std::fs::read_to_string(repo.join("agent.txt")).unwrap();
    assert!(text.contains("line three\n") && text.contains("line thirty\n"), "{text}");

    // A review is one prompt.
    let comment = json!({ "path": "agent.txt", "side": "new", "line": 3, "text": "Why three?" });
    let (status, accepted) = gateway.post(&format!("{base}/review"), json!({ "comments": [comment] })).await;
    assert_eq!(status, 202, "{accepted}");
    let prompted = async || {
        let events = gateway.events(&session).await;
        events.iter().any(|event| {
            let text = event["event"]["content"]["text"].as_str().unwrap_or_default();
            event["kind"] == "user_message_chunk" && text.contains("> line three\n\nWhy three?")
        })
    };
    until_so("the agent has the review", prompted).await;

    let (status, _) = gateway.delete(&format!("/v1/sessions/{session}")).await;
    assert_eq!(status, 204);
    let stores = std::fs::read_dir(gateway.home.join("workspaces")).unwrap().flatten();
    let kept = stores.filter(|store| store.path().join("sessions").join(&session).exists()).count();
    assert_eq!(kept, 0, "what was kept is gone with the session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_without_a_repository_are_listed_and_undone() {
    let gateway = Gateway::demo().await;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().canonicalize().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "CANARY\n").unwrap();
    std::fs::write(folder.join("mixed.txt"), "one\r\ntwo\nthree").unwrap();
    std::fs::write(folder.join("gone.bin"), b"\0bytes").unwrap();
    let (_, made) = gateway.post("/v1/sessions", json!({ "runtime_id": "demo", "cwd": folder })).await;
    let session = made["session_id"].as_str().unwrap().to_owned();
    let base = format!("/v1/sessions/{session}/changes");
    let before = list(&gateway, &session, "").await;
    assert_eq!((before["source"].as_str(), before["notes"][0]["code"].as_str()), (Some("none"), Some("no_base")));

    let first = run(&gateway, &session, "hang", || {
        edit(&folder.join("mixed.txt"), "two", "2");
        std::fs::remove_file(folder.join("gone.bin")).unwrap();
        // What the agent does with git hides nothing.
        repository(&folder);
        git(&folder, &["add", "."]);
        git(&folder, &["commit", "-q", "-m", "by the agent"]);
    })
    .await;
    let all = list(&gateway, &session, "").await;
    assert_eq!(all["source"], "git", "{all}");
    assert_eq!((all["runs"][0]["run_id"].as_str(), &all["runs"][0]["files"]), (Some(first.as_str()), &json!(2)));
    let mixed = found(&all, "mixed.txt").unwrap();
    assert_eq!((&mixed["added"], &mixed["removed"]), (&json!(1), &json!(1)), "{all}");
    assert_eq!(found(&all, "gone.bin").unwrap()["compared"], "binary", "{all}");
    for path in ["mixed.txt", "gone.bin"] {
        let body = json!({ "path": path, "digest": found(&all, path).unwrap()["digest"] });
        let (status, undone) = gateway.post(&format!("{base}/undo"), body).await;
        assert_eq!(status, 200, "{undone}");
    }
    // Byte for byte, also what is no text.
    assert_eq!(std::fs::read(folder.join("mixed.txt")).unwrap(), b"one\r\ntwo\nthree");
    assert_eq!(std::fs::read(folder.join("gone.bin")).unwrap(), b"\0bytes");

    std::fs::remove_file(folder.join("mixed.txt")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), folder.join("mixed.txt")).unwrap();
    let linked = async || {
        let all = list(&gateway, &session, "").await;
        found(&all, "mixed.txt").is_some_and(|file| file["compared"] == "link")
    };
    until_so("the link is seen", linked).await;
    let (_, diff) = gateway.get(&format!("{base}/file?path=mixed.txt")).await;
    assert!(!diff.to_string().contains("CANARY"), "{diff}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undo_names_the_runs_of_all_sessions_in_the_folder() {
    let gateway = Gateway::demo().await;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().canonicalize().unwrap();
    std::fs::create_dir(folder.join("below")).unwrap();
    std::fs::write(folder.join("a.txt"), "one\n").unwrap();
    let open = async |title: &str, cwd: &Path| {
        let body = json!({ "runtime_id": "demo", "cwd": cwd, "title": title });
        gateway.post("/v1/sessions", body).await.1["session_id"].as_str().unwrap().to_owned()
    };
    let session = open("mine", &folder).await;
    run(&gateway, &session, "hang", || edit(&folder.join("a.txt"), "one", "two")).await;
    let other = open("the other one", &folder.join("below")).await;
    let running = gateway.prompt(&other, "hang").await;
    let body = async || {
        let all = list(&gateway, &session, "").await;
        json!({ "path": "a.txt", "digest": found(&all, "a.txt").unwrap()["digest"] })
    };
    let undo = format!("/v1/sessions/{session}/changes/undo");
    let (status, refused) = gateway.post(&undo, body().await).await;
    assert_eq!((status, refused["code"].as_str()), (409, Some("run_under_way")), "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("the other one"), "{refused}");
    gateway.post(&format!("/v1/sessions/{other}/cancel"), json!({})).await;
    gateway.until_ended(&other, &running).await;
    assert_eq!(gateway.post(&undo, body().await).await.0, 200);
    assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "one\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_without_git_say_how_to_install_it() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("bin");
    std::fs::create_dir(&empty).unwrap();
    let path = [("PATH", empty.to_str().unwrap())];
    let gateway = Gateway::start_with(tempfile::tempdir().unwrap(), &demo(), &path).await;
    let (_, made) = gateway.post("/v1/sessions", json!({ "runtime_id": "demo", "cwd": dir.path() })).await;
    let session = made["session_id"].as_str().unwrap().to_owned();
    let run = gateway.prompt(&session, "say hello").await;
    gateway.until_ended(&session, &run).await;
    let all = list(&gateway, &session, "").await;
    assert_eq!(
        (all["source"].as_str(), all["notes"][0]["code"].as_str()),
        (Some("none"), Some("git_missing")),
        "{all}"
    );
    assert!(all["notes"][0]["text"].as_str().unwrap().contains("apt install git"), "{all}");
}
