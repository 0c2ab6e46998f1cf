//! The usage of agents, in a real browser (`tests/web/usage.test.mjs`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::browser::play;
use common::gateway::Gateway;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_usage_in_a_browser() {
    let gateway = Gateway::demo().await;
    let (status, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] })).await;
    assert_eq!(status, 201, "{made}");
    play("usage.test.mjs", &gateway, &[("PLEXUS_CODE", made["code"].as_str().unwrap())]).await;
}
