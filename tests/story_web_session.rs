//! A session's page in a real browser, against a real gateway with the demo runtime; the scripts are `tests/web/session*.test.mjs`,
//! `hostile.test.mjs` and `speed.test.mjs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{agents, browser, gateway::Gateway};

/// A whole script; each of its own waits is far shorter. Reached only when the browser itself hangs.
const PATIENCE: Duration = Duration::from_secs(600);

async fn plays(script: &str) {
    let browser = browser::program();
    let modules = tokio::task::spawn_blocking(agents::browser_dir).await.unwrap();
    let gateway = Gateway::demo().await;
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new("node");
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web").join(script))
        .env("PLEXUS_URL", &gateway.url)
        .env("PLEXUS_TOKEN", &gateway.token)
        .env("PLEXUS_DIR", dir.path())
        .env("PLEXUS_PLAYWRIGHT", modules)
        .env("CHROMIUM", browser)
        // The browser's profile is made and removed below it, also when the script is killed.
        .env("TMPDIR", dir.path())
        .stdin(Stdio::null());
    let mut child = command.spawn().expect("`node` starts; the page's tests need Node.js 20 or newer on PATH");
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() >= deadline {
            // The browser ends with the pipe that it is driven by.
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("tests/web/{script} hangs");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(status.success(), "tests/web/{script}: {status}; what it said is above");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_in_a_browser() {
    plays("session.test.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_text_in_a_browser() {
    plays("hostile.test.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_sessions_in_a_browser() {
    plays("speed.test.mjs").await;
}
