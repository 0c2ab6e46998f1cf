//! A session's page in a real browser, against a real gateway with the demo runtime; the scripts are `tests/web/session*.test.mjs`,
//! `hostile.test.mjs`, `speed.test.mjs`, `weight.test.mjs`, `dock.mjs` and `sentences.mjs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::path::Path;

use common::browser::play;
use common::gateway::{Gateway, demo, runtime};

async fn plays(script: &str) {
    play(script, &Gateway::demo().await, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_session_in_a_browser() {
    plays("session.test.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_hostile_text_in_a_browser() {
    plays("hostile.test.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_long_sessions_in_a_browser() {
    plays("speed.test.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_visits_of_a_session_are_small() {
    plays("weight.test.mjs").await;
}

/// Plays a script against the demo runtime and an agent that asks for several permissions at once.
async fn plays_requests(script: &str) {
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/asks.mjs");
    let asks = runtime("asks", &["node", agent.to_str().unwrap()], "");
    play(script, &Gateway::start(&format!("{}{asks}", demo())).await, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_requests_of_a_session_are_answered_one_by_one_never_by_accident() {
    plays_requests("dock.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_sentences_answer_nothing_wherever_they_are_typed() {
    plays_requests("sentences.mjs").await;
}
