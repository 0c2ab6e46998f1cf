//! The cards of requests and the notifications in a real browser, against a real gateway with the demo runtime and a scripted one
//! that takes reasons, text and choices; the scripts are `tests/web/cards.mjs` and `tests/web/push.mjs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::gateway::{Gateway, demo};
use common::{agents, browser};
use serde_json::json;

/// A whole script; each of its own waits is far shorter. Reached only when the browser itself hangs.
const PATIENCE: Duration = Duration::from_secs(420);

/// Plays a script of `tests/web` against a gateway of its own.
async fn play(script: &str) {
    let browser = browser::program();
    let modules = tokio::task::spawn_blocking(agents::browser_dir).await.unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let scripted = format!(
        "[[runtime]]\nid = \"codelia\"\ndialect = \"codelia\"\ncommand = [\"node\", {}]\ncwd = {}\noutlive = false\n\
         env = {{ CODELIA_LOG = {} }}\n",
        json!(root.join("tests/agents/codelia_runtime.mjs")),
        json!(dir.path()),
        json!(dir.path().join("log")),
    );
    let gateway = Gateway::start(&format!("{}{scripted}", demo())).await;
    let shots = std::env::var_os("PLEXUS_SHOTS").map_or_else(|| dir.path().join("shots"), Into::into);
    let mut played = Command::new("node")
        .arg(root.join("tests/web").join(script))
        .env("PLEXUS_URL", &gateway.url)
        .env("PLEXUS_TOKEN", &gateway.token)
        .env("PLEXUS_PLAYWRIGHT", modules)
        .env("PLEXUS_SHOTS", &shots)
        .env("CHROMIUM", browser)
        // The browser's profile is made and removed below it, also when the script is killed.
        .env("TMPDIR", dir.path())
        .stdin(Stdio::null())
        .spawn()
        .expect("`node` starts; the tests of the page need Node.js 20 or newer on PATH");
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = played.try_wait().unwrap() {
            break status;
        }
        if Instant::now() >= deadline {
            // The browser ends with the pipe that it is driven by.
            played.kill().unwrap();
            played.wait().unwrap();
            panic!("tests/web/{script} hangs");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(status.success(), "tests/web/{script}: {status}; what it said is above");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_answered_by_mouse_finger_and_key_and_never_by_accident() {
    play("cards.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_is_shown_replaced_and_opens_its_card() {
    play("push.mjs").await;
}
