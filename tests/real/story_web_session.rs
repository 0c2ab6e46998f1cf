//! A session's page in a real browser, against a real gateway with the demo runtime; the scripts are `tests/web/session*.test.mjs`,
//! `hostile.test.mjs`, `speed.test.mjs` and `weight.test.mjs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use common::browser::play;
use common::gateway::Gateway;

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
