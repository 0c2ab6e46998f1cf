//! The gateway against its own descriptions: `asyncapi.json` is valid AsyncAPI, and every message and response has exactly the
//! described members. The checks are in `tests/clients/described.mjs`. And its MCP servers against the conformance tests of MCP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::agents;
use common::gateway::{Gateway, exe};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_every_frontend_match_their_description() {
    let gateway = Gateway::demo().await;
    assert!(script(&gateway, "described.mjs", &[]).await.contains("as described"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mcp_servers_conform() {
    let gateway = Gateway::demo().await;
    assert!(script(&gateway, "mcp-conformance.mjs", &[]).await.contains("conforms"));
    let stdio = [("PLEXUS_EXE", exe()), ("PLEXUS_HOME", gateway.home.to_str().unwrap())];
    assert!(script(&gateway, "mcp-conformance.mjs", &stdio).await.contains("conforms"));
}

/// Runs a script of `tests/clients` against a session of the gateway; what it prints.
async fn script(gateway: &Gateway, name: &str, more: &[(&str, &str)]) -> String {
    let clients = tokio::task::spawn_blocking(agents::clients_dir).await.unwrap();
    let session = gateway.session("demo").await;
    let mut script = Command::new(agents::node(&clients));
    script
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name))
        .env("PLEXUS_URL", &gateway.url)
        .env("PLEXUS_TOKEN", &gateway.token)
        .env("PLEXUS_SESSION", session)
        .env("PLEXUS_CLIENTS", &clients)
        .envs(more.iter().copied())
        .stdin(Stdio::null());
    let ran = tokio::task::spawn_blocking(move || script.output().unwrap()).await.unwrap();
    let out = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{out}{}", String::from_utf8_lossy(&ran.stderr));
    println!("{out}");
    out
}
