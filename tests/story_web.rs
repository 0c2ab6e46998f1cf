//! The page in a real browser, against a real gateway with the demo runtime; the script is `tests/web/pages.mjs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{agents, browser, gateway::Gateway};
use serde_json::json;

/// The whole script; each of its own waits is far shorter. Reached only when the browser itself hangs.
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_in_a_browser() {
    let browser = browser::program();
    let modules = tokio::task::spawn_blocking(agents::browser_dir).await.unwrap();
    let gateway = Gateway::demo().await;
    let (status, made) = gateway.post("/v1/codes", json!({})).await;
    assert!(status == 200 || status == 201, "{status} {made}");
    let dir = tempfile::tempdir().unwrap();
    let shots = std::env::var_os("PLEXUS_SHOTS").map_or_else(|| dir.path().join("shots"), Into::into);
    let mut script = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web/pages.mjs"))
        .env("PLEXUS_URL", &gateway.url)
        .env("PLEXUS_CODE", made["code"].as_str().unwrap())
        .env("PLEXUS_TOKEN", &gateway.token)
        .env("PLEXUS_PLAYWRIGHT", modules)
        .env("PLEXUS_SHOTS", &shots)
        .env("CHROMIUM", browser)
        // The browser's profile is made and removed below it, also when the script is killed.
        .env("TMPDIR", dir.path())
        .stdin(Stdio::null())
        .spawn()
        .expect("`node` starts; the page's test needs Node.js 20 or newer on PATH");
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = script.try_wait().unwrap() {
            break status;
        }
        if Instant::now() >= deadline {
            // The browser ends with the pipe that it is driven by.
            script.kill().unwrap();
            script.wait().unwrap();
            panic!("tests/web/pages.mjs hangs");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(status.success(), "tests/web/pages.mjs: {status}; what it said is above");
    for name in [
        "signin",
        "inbox",
        "inbox-empty",
        "sessions",
        "session",
        "devices",
        "runtimes",
        "search",
        "new-session",
        "palette",
        "help",
    ] {
        for size in ["390", "1440"] {
            for scheme in ["light", "dark"] {
                let shot = shots.join(format!("{name}-{size}-{scheme}.png"));
                let head = std::fs::read(&shot).unwrap_or_else(|error| panic!("{}: {error}", shot.display()));
                assert!(head.starts_with(b"\x89PNG"), "{} is no picture", shot.display());
            }
        }
    }
}
