//! The gateway against requests that schemathesis makes from `openapi.json`: valid ones must be accepted, others refused, and every
//! response must be as described. `tests/schemathesis/schemathesis.toml` lists the exceptions with reasons.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::gateway::Gateway;
use serde_json::json;

/// Random requests for each operation, besides those for its limits.
const EXAMPLES: &str = "15";
/// The seed of the requests.
const SEED: &str = "20";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis")
}

fn install() -> PathBuf {
    let out = Command::new("sh")
        .arg(folder().join("install.sh"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("sh starts");
    assert!(out.status.success(), "tests/schemathesis/install.sh failed; see above");
    PathBuf::from(String::from_utf8(out.stdout).unwrap().lines().last().unwrap())
}

/// Runs these phases on a separate gateway, since wrong tokens and codes are limited to thirty a minute.
async fn run(venv: &Path, arguments: &[&str]) {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    // Test data: an ended run, one with an open request, and a queued one.
    let over = gateway.prompt(&session, "diff ;; echo hello").await;
    gateway.until_ended(&session, &over).await;
    gateway.prompt(&session, "ask ;; hang").await;
    gateway.open_request(&session).await;
    gateway.prompt(&session, "echo later").await;
    // A runtime that may be stopped: the other requests need the demo runtime.
    let spare = json!({ "preset": "demo", "id": "spare", "outlive": false, "cwd": gateway.home });
    let (status, runtime) = gateway.post("/v1/runtimes", spare).await;
    assert_eq!(status, 201, "{runtime}");
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(venv.join("bin/schemathesis"));
    command
        .arg("--config-file")
        .arg(folder().join("schemathesis.toml"))
        .args(["run", &format!("{}/openapi.json", gateway.url)])
        // The local administrator is the one device that cannot be revoked.
        .args(["-H", &format!("Authorization: Bearer {}", gateway.token)])
        .args(["--seed", SEED, "--max-examples", EXAMPLES, "--no-color", "--generation-database", "none"])
        .args(arguments)
        .current_dir(dir.path())
        .stdin(Stdio::null());
    let ran = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{out}{}", String::from_utf8_lossy(&ran.stderr));
    let summary = out.lines().filter(|line| line.contains("Tested:") || line.contains("generated"));
    println!("{}: {}", arguments.join(" "), summary.map(str::trim).collect::<Vec<_>>().join("; "));
    // The gateway still serves and has had no internal error.
    assert_eq!(gateway.get("/readyz").await.0, 200);
    assert!(!gateway.stderr().contains("panicked"), "{}", gateway.stderr());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_operations_keep_to_their_description() {
    let venv = tokio::task::spawn_blocking(install).await.unwrap();
    // Each group's wrong tokens are fewer than a gateway takes in a minute. One filter that includes and one that excludes:
    // two of a kind add up.
    let reads = ["--include-method", "GET"];
    let changes = ["--include-method-regex", "^(?!GET$)"];
    let of_sessions = ["--exclude-path-regex", "^(?!/v1/sessions/)"];
    let others = ["--exclude-path-regex", "^/v1/(sessions/|pair$)"];
    for phase in ["coverage", "fuzzing"] {
        for methods in [&reads, &changes] {
            for paths in [&of_sessions, &others] {
                run(&venv, &[&["--phases", phase], &methods[..], &paths[..]].concat()).await;
            }
        }
    }
    run(&venv, &["--phases", "coverage,fuzzing", "--include-path", "/v1/pair"]).await;
}
