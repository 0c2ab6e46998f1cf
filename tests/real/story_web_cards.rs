//! The cards of requests and the notifications in a real browser, against a real gateway with the demo runtime and a scripted one
//! that takes reasons, text and choices; the scripts are `tests/web/cards.mjs`, `bars.mjs`,
//! `inbox.mjs`, `push.mjs` and `asked.mjs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

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
async fn web_card_is_answered_by_mouse_touch_and_key_never_by_accident() {
    plays("cards.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_card_is_a_bar_with_the_words_of_the_gateway() {
    plays("bars.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_inbox_has_rows_groups_and_answers_to_several() {
    plays("inbox.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_push_is_shown_replaced_and_opens_its_card() {
    plays("push.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_card_of_every_kind_is_read_whole_before_a_yes() {
    let gateway = Gateway::demo().await;
    let (status, made) =
        gateway.post("/v1/codes", serde_json::json!({ "scopes": ["watch", "prompt", "approve", "admin"] })).await;
    assert!(status == 200 || status == 201, "{status} {made}");
    let dir = tempfile::tempdir().unwrap();
    let shots = std::env::var_os("PLEXUS_SHOTS").map_or_else(|| dir.path().join("shots"), Into::into);
    let more = [("PLEXUS_CODE", made["code"].as_str().unwrap()), ("PLEXUS_SHOTS", shots.to_str().unwrap())];
    play("asked.mjs", &gateway, &more).await;
}
