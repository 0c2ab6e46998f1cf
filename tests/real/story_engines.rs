//! The main story of the page in the three engines of today's browsers, by keyboard alone and by the accessibility tree alone; the script is
//! `tests/web/story.mjs`. What an engine lacks is said with the package that has it. And axe on every page and dialog.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::process::Command;

use common::browser::{play, program, run_script};
use common::gateway::{Gateway, end_runtimes, exe};
use common::repository::repository;
use plexus_terminal::folder;
use serde_json::json;

/// The story in this engine, in this manner: `pointer`, `keyboard` or `tree`.
async fn told(engine: &str, manner: &str) {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let chromium = if engine == "chromium" { program() } else { String::new() };
    let mut env = vec![("PLEXUS_BIN", exe()), ("PLEXUS_DIR", at), ("TMPDIR", at)];
    if engine == "chromium" {
        env.push(("CHROMIUM", &chromium));
    }
    let done = run_script("story.mjs", &[engine, manner], &env).await;
    // The story ends its agent; one that failed may not have.
    end_runtimes(&dir.path().join("home"));
    done.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_story_in_firefox() {
    told("firefox", "pointer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_story_in_webkit() {
    told("webkit", "pointer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_story_in_chromium_by_keyboard_alone() {
    told("chromium", "keyboard").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_story_in_chromium_by_accessibility_tree_alone() {
    told("chromium", "tree").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_axe_on_every_page_and_dialog() {
    let work = tempfile::tempdir().unwrap();
    let repository = repository(&work.path().canonicalize().unwrap().join("parser"));
    let gateway = Gateway::demo().await;
    let out = Command::new(exe())
        .args(["term", "--detached", "--", "bash", "--norc"])
        .env("PLEXUS_HOME", &gateway.home)
        .env("PS1", "$ ")
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    let terminal = String::from_utf8(out.stdout).unwrap().trim().to_owned();
    let (status, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] })).await;
    assert_eq!(status, 201, "{made}");
    let more = [
        ("PLEXUS_CODE", made["code"].as_str().unwrap()),
        ("PLEXUS_WORK", repository.to_str().unwrap()),
        ("PLEXUS_TERMINAL", &terminal),
    ];
    play("routes.mjs", &gateway, &more).await;
    let dir = gateway.home.join(folder::TERMINALS);
    for one in folder::list(&dir) {
        let _ = plexus_terminal::attach::kill(&dir, &one.terminal_id);
    }
}
