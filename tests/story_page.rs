//! The page at `/` in a real browser, against a real gateway with the demo runtime; the script is `tests/page/page.test.mjs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{agents, gateway::Gateway};
use serde_json::json;

/// The whole script; each of its own waits is far shorter. Reached only when the browser itself hangs.
const PATIENCE: Duration = Duration::from_secs(300);

fn browser() -> String {
    if let Ok(named) = std::env::var("CHROMIUM") {
        return named;
    }
    let known = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let there = known.iter().find(|path| Path::new(path).is_file());
    (*there.unwrap_or_else(|| {
        panic!(
            "no browser: none of {} is there; install Chromium (Debian: apt-get install chromium) or name one in \
             $CHROMIUM",
            known.join(", ")
        )
    }))
    .to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_in_a_browser() {
    let browser = browser();
    let playwright = tokio::task::spawn_blocking(agents::install_dir).await.unwrap();
    let gateway = Gateway::demo().await;
    let (status, made) = gateway.post("/v1/codes", json!({})).await;
    assert!(status == 200 || status == 201, "{status} {made}");
    let dir = tempfile::tempdir().unwrap();
    let shots = std::env::var_os("PLEXUS_SHOTS").map_or_else(|| dir.path().join("shots"), Into::into);
    let mut script = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/page.test.mjs"))
        .env("PLEXUS_URL", &gateway.url)
        .env("PLEXUS_CODE", made["code"].as_str().unwrap())
        .env("PLEXUS_PLAYWRIGHT", playwright)
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
            panic!("tests/page/page.test.mjs hangs");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(status.success(), "tests/page/page.test.mjs: {status}; what it said is above");
    for name in ["signin", "list", "request", "resolved", "session"] {
        for size in ["390", "1440"] {
            for scheme in ["light", "dark"] {
                let shot = shots.join(format!("{name}-{size}-{scheme}.png"));
                let head = std::fs::read(&shot).unwrap_or_else(|error| panic!("{}: {error}", shot.display()));
                assert!(head.starts_with(b"\x89PNG"), "{} is no picture", shot.display());
            }
        }
    }
}
