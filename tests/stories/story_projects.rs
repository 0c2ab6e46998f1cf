//! The projects of sessions, and the files of their folders, in real repositories.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::Path;
use std::process::Command;

use common::gateway::{Gateway, demo, exe};
use common::moments::until_so;
use common::repository::{git, repository};
use serde_json::{Value, json};

/// A session of the demo agent in a folder.
async fn session_in(gateway: &Gateway, folder: &Path) -> Value {
    let (status, made) = gateway.post("/v1/sessions", json!({ "runtime_id": "demo", "cwd": folder })).await;
    assert_eq!(status, 201, "{made}");
    made
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn project_of_a_session_is_kept_current_and_is_no_activity() {
    let gateway = Gateway::demo().await;
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().canonicalize().unwrap();
    let repo = repository(&at.join("plexus"));
    git(&repo, &["worktree", "add", "-q", "-b", "login", "../login"]);
    let made = session_in(&gateway, &repo).await;
    assert_eq!(made["project"], json!({ "name": "plexus", "root": repo, "branch": "main" }));
    let linked = session_in(&gateway, &at.join("login")).await;
    assert_eq!(linked["project"], json!({ "name": "plexus", "root": repo, "branch": "login", "worktree": "login" }));
    let id = made["session_id"].as_str().unwrap();
    let mut ws = gateway.ws().await;
    ws.call("session.attach", json!({ "session_id": "*", "from": "now" })).await.unwrap();

    // What changed while a run was under way is told at its end.
    git(&repo, &["checkout", "-q", "-b", "second"]);
    let run = gateway.prompt(id, "echo hello").await;
    gateway.until_ended(id, &run).await;
    loop {
        let updated = ws.until("session.updated").await;
        let session = &updated["session"];
        if session["session_id"] == id && session["project"]["branch"] == "second" {
            break;
        }
    }

    // Between runs, whoever lists sessions notices; the conversation has not changed.
    let (_, before) = gateway.get(&format!("/v1/sessions/{id}")).await;
    git(&repo, &["checkout", "-q", "-b", "third"]);
    let listed = async || {
        let (_, listed) = gateway.get("/v1/sessions").await;
        listed["sessions"].as_array().unwrap().iter().find(|session| session["session_id"] == id).unwrap().clone()
    };
    until_so("the list has the new branch", async || listed().await["project"]["branch"] == "third").await;
    let after = listed().await;
    assert_eq!(after["updated_at"], before["updated_at"]);
    let events = gateway.events(id).await;
    let told = events.iter().rev().find(|event| event["kind"] == "session_info_update").unwrap();
    assert_eq!(told["event"]["_meta"]["plexus"]["project"]["branch"], "third");

    // In a terminal, too.
    let listed = Command::new(exe()).arg("ls").env("PLEXUS_HOME", &gateway.home).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(text.contains("plexus@third") && text.contains("plexus/login@login"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn project_that_a_session_had_stays_when_its_folder_is_gone() {
    let mut gateway = Gateway::demo().await;
    let dir = tempfile::tempdir().unwrap();
    let repo = repository(&dir.path().canonicalize().unwrap().join("gone"));
    let made = session_in(&gateway, &repo).await;
    let id = made["session_id"].as_str().unwrap();
    let (status, _) = gateway.delete("/v1/runtimes/demo").await;
    assert!(status < 300, "{status}");
    std::fs::remove_dir_all(&repo).unwrap();
    let path = format!("/v1/sessions/{id}");
    until_so("the session has ended", async || gateway.get(&path).await.1["state"] == "exited").await;
    let (_, session) = gateway.get(&path).await;
    assert_eq!(session["project"], made["project"]);
    gateway.stop().await;
    gateway.again().await;
    let (_, session) = gateway.get(&format!("/v1/sessions/{id}")).await;
    assert_eq!(session["project"], made["project"], "and after a restart");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_a_session_are_found_by_whoever_may_prompt_it() {
    let gateway = Gateway::start(&demo()).await;
    let dir = tempfile::tempdir().unwrap();
    let repo = repository(&dir.path().canonicalize().unwrap().join("repo"));
    std::fs::create_dir_all(repo.join("src/deep")).unwrap();
    std::fs::create_dir_all(repo.join("target")).unwrap();
    for file in ["README.md", "src/main.rs", "src/deep/main_menu.rs", "target/main.o", ".main", "with blank.md"] {
        std::fs::write(repo.join(file), "").unwrap();
    }
    std::fs::write(repo.join(".gitignore"), "/target\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", repo.join("main_passwd")).unwrap();
    let made = session_in(&gateway, &repo).await;
    let path = format!("/v1/sessions/{}/files", made["session_id"].as_str().unwrap());
    for (query, found) in [
        ("", json!(["README.md", "with blank.md", "src/main.rs", "src/deep/main_menu.rs"])),
        ("?limit=1", json!(["README.md"])),
        ("?query=main", json!(["src/main.rs", "src/deep/main_menu.rs"])),
        ("?query=with%20blank", json!(["with blank.md"])),
        ("?query=nothing-like-it", json!([])),
    ] {
        let (status, files) = gateway.get(&format!("{path}{query}")).await;
        assert_eq!(status, 200, "{query}: {files}");
        let paths: Vec<&Value> = files["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
        assert_eq!((json!(paths), &files["truncated"]), (found, &json!(false)), "{query}");
    }
    let (status, refused) = gateway.get(&format!("{path}?query={}", "x".repeat(201))).await;
    assert_eq!((status, refused["code"].as_str()), (400, Some("bad_query")));
    let (_, phone) = gateway.post("/v1/devices", json!({ "name": "phone", "scopes": ["watch", "approve"] })).await;
    let token = phone["token"].as_str().unwrap();
    let reply = reqwest::Client::new().get(format!("{}{path}", gateway.url)).bearer_auth(token).send().await.unwrap();
    assert_eq!(reply.status().as_u16(), 403, "names of files are for whoever may prompt");
    let made = session_in(&gateway, &repo.join("src/deep")).await;
    std::fs::remove_dir_all(&repo).unwrap();
    let (status, gone) = gateway.get(&format!("/v1/sessions/{}/files", made["session_id"].as_str().unwrap())).await;
    assert_eq!((status, gone["code"].as_str()), (422, Some("invalid")), "{gone}");
    assert!(gone["detail"].as_str().unwrap().contains("cannot be read"), "{gone}");
}
