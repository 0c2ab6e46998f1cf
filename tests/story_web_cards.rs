//! The cards of requests and the notifications in a real browser, against a real gateway with the demo runtime and a scripted one
//! that takes reasons, text and choices; the scripts are `tests/web/cards.mjs` and `tests/web/push.mjs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use common::browser::play;
use common::gateway::{Gateway, demo};
use serde_json::json;

/// Plays a script of `tests/web` against a gateway of its own.
async fn plays(script: &str) {
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
    play(script, &gateway, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_answered_by_mouse_finger_and_key_and_never_by_accident() {
    plays("cards.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_is_shown_replaced_and_opens_its_card() {
    plays("push.mjs").await;
}
