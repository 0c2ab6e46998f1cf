//! The gateway against its own descriptions: `asyncapi.json` is valid AsyncAPI, and every message and response has exactly the
//! described members. The checks are in `tests/clients/described.mjs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::agents;
use common::gateway::Gateway;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_every_frontend_match_their_description() {
    let clients = tokio::task::spawn_blocking(agents::clients_dir).await.unwrap();
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut script = Command::new(agents::node(&clients));
    script
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/described.mjs"))
        .env("PLEXUS_URL", &gateway.url)
        .env("PLEXUS_TOKEN", &gateway.token)
        .env("PLEXUS_SESSION", session)
        .env("PLEXUS_CLIENTS", &clients)
        .stdin(Stdio::null());
    let ran = tokio::task::spawn_blocking(move || script.output().unwrap()).await.unwrap();
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{out}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(out.contains("as described"), "{out}");
    println!("{out}");
}
