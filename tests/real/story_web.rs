//! The page in a real browser, against a real gateway with the demo runtime; the script is `tests/web/pages.mjs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::os::unix::fs::PermissionsExt;

use common::browser::play;
use common::gateway::{Gateway, runtime};
use common::repository::{git, repository};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_pages_in_a_browser() {
    let gateway = Gateway::demo().await;
    let (status, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] })).await;
    assert!(status == 200 || status == 201, "{status} {made}");
    let dir = tempfile::tempdir().unwrap();
    let shots = std::env::var_os("PLEXUS_SHOTS").map_or_else(|| dir.path().join("shots"), Into::into);
    let more = [("PLEXUS_CODE", made["code"].as_str().unwrap()), ("PLEXUS_SHOTS", shots.to_str().unwrap())];
    play("pages.mjs", &gateway, &more).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_agents_are_linked_in_a_browser() {
    let machine = tempfile::tempdir().unwrap();
    let at = |name: &str| machine.path().join(name);
    for name in ["bin", "own/.claude"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    for (name, version) in [("claude", "2.1.330 (Claude Code)"), ("codex", "codex-cli 0.169.0"), ("opencode", "1.0.0")]
    {
        std::fs::write(at("bin").join(name), format!("#!/bin/sh\necho '{version}'\n")).unwrap();
        std::fs::set_permissions(at("bin").join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let settings = at("own/.claude/settings.json");
    std::fs::write(&settings, "{\n  \"model\": \"opus\"\n}\n").unwrap();
    let (path, own) = (format!("{}:/usr/bin:/bin", at("bin").display()), at("own").display().to_string());
    let env = [("PATH", path.as_str()), ("HOME", own.as_str())];
    let gateway = Gateway::start_with(tempfile::tempdir().unwrap(), "", &env).await;
    let (_, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] })).await;
    let shots = std::env::var_os("PLEXUS_SHOTS").map_or_else(|| at("shots"), Into::into);
    let more = [
        ("PLEXUS_CODE", made["code"].as_str().unwrap()),
        ("PLEXUS_SETTINGS", settings.to_str().unwrap()),
        ("PLEXUS_SHOTS", shots.to_str().unwrap()),
    ];
    play("links.mjs", &gateway, &more).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_sessions_by_project_and_files_in_a_browser() {
    let work = tempfile::tempdir().unwrap();
    let at = work.path().canonicalize().unwrap();
    let plexus = repository(&at.join("plexus"));
    git(&plexus, &["worktree", "add", "-q", "-b", "feature/login-form-with-a-long-name", "../login"]);
    let website = repository(&at.join("website"));
    std::fs::create_dir_all(at.join("notes")).unwrap();
    std::fs::create_dir_all(website.join("src/pages")).unwrap();
    std::fs::create_dir_all(website.join("out")).unwrap();
    for file in ["README.md", "src/main.ts", "src/pages/main menu.ts", "out/main.js", "evil\u{202e}\n.md"] {
        std::fs::write(website.join(file), "").unwrap();
    }
    std::fs::write(website.join(".gitignore"), "out/\n").unwrap();
    let gateway = Gateway::demo().await;
    let (_, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] })).await;
    let shots = std::env::var_os("PLEXUS_SHOTS").map_or_else(|| at.join("shots"), Into::into);
    let more = [
        ("PLEXUS_CODE", made["code"].as_str().unwrap()),
        ("PLEXUS_SHOTS", shots.to_str().unwrap()),
        ("PLEXUS_WORK", at.to_str().unwrap()),
    ];
    play("projects.mjs", &gateway, &more).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_past_conversations_in_a_browser() {
    let agents = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents");
    let keeper = |id: &str, args: &[&str], more: &str| {
        let program = format!("{agents}/past.mjs");
        let command: Vec<&str> = ["node", &program].iter().chain(args).copied().collect();
        runtime(id, &command, more)
    };
    let config = [
        runtime("demo-less", &["node", &format!("{agents}/same_id.mjs"), "/dev/null"], ""),
        keeper("none", &["0"], ""),
        keeper("one", &["1"], ""),
        keeper("fifty", &["50"], ""),
        keeper("many", &["300", "90"], ""),
        keeper("mute", &["3"], "env = { PAST_MUTE = \"1\" }\n"),
    ];
    let gateway = Gateway::start(&config.concat()).await;
    let (_, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] })).await;
    let dir = tempfile::tempdir().unwrap();
    let shots = std::env::var_os("PLEXUS_SHOTS").map_or_else(|| dir.path().join("shots"), Into::into);
    let more = [("PLEXUS_CODE", made["code"].as_str().unwrap()), ("PLEXUS_SHOTS", shots.to_str().unwrap())];
    play("past.mjs", &gateway, &more).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_servers_and_skills_in_a_browser() {
    let agents = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents");
    let work = tempfile::tempdir().unwrap();
    let codelia = format!(
        "[[runtime]]\nid = \"codelia\"\ndialect = \"codelia\"\ncommand = [\"node\", {}]\noutlive = false\n\
         env = {{ CODELIA_LOG = {}, CODELIA_TELLS = \"1\" }}\n",
        json!(format!("{agents}/codelia_runtime.mjs")),
        json!(work.path().join("log")),
    );
    let plain = runtime("plain", &["node", &format!("{agents}/past.mjs"), "1"], "");
    let gateway = Gateway::start(&(codelia + &plain)).await;
    for id in ["codelia", "plain"] {
        let (status, made) = gateway.post("/v1/sessions", json!({ "runtime_id": id, "title": id })).await;
        assert_eq!(status, 201, "{made}");
    }
    let (_, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] })).await;
    let shots = std::env::var_os("PLEXUS_SHOTS").map_or_else(|| work.path().join("shots"), Into::into);
    let more = [("PLEXUS_CODE", made["code"].as_str().unwrap()), ("PLEXUS_SHOTS", shots.to_str().unwrap())];
    play("abilities.mjs", &gateway, &more).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_page_stays_signed_in_and_reconnects_by_itself() {
    let gateway = Gateway::demo().await;
    let (status, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] })).await;
    assert!(status == 200 || status == 201, "{status} {made}");
    let dir = tempfile::tempdir().unwrap();
    let shots = std::env::var_os("PLEXUS_SHOTS").map_or_else(|| dir.path().join("shots"), Into::into);
    let more = [("PLEXUS_CODE", made["code"].as_str().unwrap()), ("PLEXUS_SHOTS", shots.to_str().unwrap())];
    play("away.mjs", &gateway, &more).await;
}
