//! "New session" in a real browser, with the real Gemini CLI and the scripted model; the script is `tests/web/new.mjs`.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::common::agents::{self, FakeModel};
use crate::common::browser::play;
use crate::common::gateway::Gateway;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_new_session_from_an_empty_gateway() {
    let (own, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (install, model) = tokio::task::spawn_blocking(|| (agents::install_dir(), FakeModel::start())).await.unwrap();
    for name in ["project", "<b>evil"] {
        std::fs::create_dir_all(work.path().join(name)).unwrap();
    }
    let commit = "-c user.name=t -c user.email=t@example.org commit --quiet --allow-empty -m first";
    for words in ["init --quiet -b main", commit] {
        let mut git = std::process::Command::new("git");
        let done = git.arg("-C").arg(work.path().join("project")).args(words.split(' ')).output().unwrap();
        assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
    }
    for (name, text) in [("dies", "echo 'not signed in: run dies login' >&2; exit 3"), ("hangs", "exec sleep 600")] {
        let path = work.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let setup = agents::gemini(&install, own.path(), model.port());
    let bin = install.join("node_modules/.bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut env: Vec<(&str, &str)> = setup.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    env.push(("PATH", &path));
    // Without a fixed model the CLI asks a model which model to use.
    env.push(("GEMINI_MODEL", "gemini-2.5-flash"));
    let gateway = Gateway::start_with(tempfile::tempdir().unwrap(), "", &env).await;
    let (_, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] })).await;
    let shots = std::env::var_os("PLEXUS_SHOTS").map_or_else(|| own.path().join("shots"), Into::into);
    let more = [
        ("PLEXUS_CODE", made["code"].as_str().unwrap()),
        ("PLEXUS_WORK", work.path().to_str().unwrap()),
        ("PLEXUS_SHOTS", shots.to_str().unwrap()),
    ];
    play("new.mjs", &gateway, &more).await;
    // It outlives the gateway otherwise.
    let (status, gone) = gateway.delete("/v1/runtimes/gemini").await;
    assert_eq!(status, 204, "{gone}");
}
