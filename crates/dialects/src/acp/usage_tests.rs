//! Tests of agents' reports of their spending.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::usage::{chunk_report, turn_report, update_report};
use plexus_protocol::{Money, SpendReport, Spending};

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

fn step(counts: [Option<u64>; 5]) -> Option<SpendReport> {
    SpendReport::step(Spending::new(counts, Vec::new()))
}

#[test]
fn acp_usage_of_a_turn_is_read_from_each_agents_form() {
    // Of the recordings: Gemini CLI, OpenCode; of the sources of claude-agent-acp and codex-acp: the cache's part stands apart.
    let table = [
        (
            "gemini-cli",
            json!({ "stopReason": "end_turn", "_meta": { "quota": { "token_count": { "input_tokens": 200, "output_tokens": 20 } } } }),
            step([Some(200), Some(20), None, None, None]),
        ),
        (
            "OpenCode",
            json!({ "usage": { "inputTokens": 100, "outputTokens": 10, "totalTokens": 110 }, "_meta": {} }),
            step([Some(100), Some(10), None, None, None]),
        ),
        (
            "@agentclientprotocol/claude-agent-acp",
            json!({ "usage": { "inputTokens": 5, "outputTokens": 40, "cachedReadTokens": 900, "cachedWriteTokens": 55,
                "totalTokens": 1000 }, "_meta": { "quota": { "token_count": { "input_tokens": 1 } } } }),
            step([Some(960), Some(40), Some(900), Some(55), None]),
        ),
        (
            "codex-acp",
            json!({ "usage": { "inputTokens": 60, "cachedReadTokens": 40, "cachedWriteTokens": 0, "outputTokens": 30,
                "thoughtTokens": 20, "totalTokens": 130 } }),
            step([Some(100), Some(30), Some(40), Some(0), Some(20)]),
        ),
        (
            "another, which includes all",
            json!({ "usage": { "inputTokens": 100, "cachedReadTokens": 40, "outputTokens": 30, "thoughtTokens": 20,
                "totalTokens": 130 } }),
            step([Some(100), Some(30), Some(40), None, Some(20)]),
        ),
        (
            "another, whose reasoning stands apart",
            json!({ "usage": { "inputTokens": 100, "outputTokens": 10, "thoughtTokens": 20, "totalTokens": 130 } }),
            step([Some(100), Some(30), None, None, Some(20)]),
        ),
        (
            "another, where both do",
            json!({ "usage": { "inputTokens": 60, "cachedReadTokens": 40, "outputTokens": 10, "thoughtTokens": 20,
                "totalTokens": 130 } }),
            step([Some(100), Some(30), Some(40), None, Some(20)]),
        ),
        (
            "grok",
            json!({ "stopReason": "end_turn", "_meta": { "inputTokens": 50, "usage": { "inputTokens": 100, "outputTokens": 10,
                "totalTokens": 110, "cachedReadTokens": 40, "cacheCreationTokens": 0, "reasoningTokens": 4, "modelCalls": 2 } } }),
            step([Some(100), Some(10), Some(40), Some(0), Some(4)]),
        ),
        ("kimi", json!({ "stopReason": "end_turn" }), None),
        ("nonsense", json!({ "usage": { "inputTokens": -1, "outputTokens": 1e300, "totalTokens": "x" } }), None),
        ("nonsense", json!({ "usage": "lots", "_meta": [1] }), None),
        ("nonsense", json!({ "_meta": { "quota": { "token_count": { "input_tokens": {} } } } }), None),
    ];
    for (agent, result, reports) in table {
        assert_eq!(turn_report(Some(agent), &raw(&result)), reports, "{agent}: {result}");
    }
}

#[test]
fn acp_usage_of_vibe_is_the_sum_of_its_session() {
    let result = json!({ "usage": { "totalTokens": 220, "inputTokens": 200, "outputTokens": 20 } });
    let sum = Spending::new([Some(200), Some(20), None, None, None], Vec::new());
    assert_eq!(turn_report(Some("@mistralai/mistral-vibe"), &raw(&result)), SpendReport::total(sum));
}

#[test]
fn acp_usage_update_tells_the_cost_so_far() {
    let usd = |amount| SpendReport::total(Spending::money(Money::from_report(amount, "USD")));
    for (update, reports) in [
        (json!({ "used": 1, "size": 2, "cost": { "amount": 0.25, "currency": "USD" } }), usd(0.25)),
        (json!({ "used": 1, "size": 2, "cost": { "amount": 0, "currency": "USD" } }), usd(0.0)),
        (json!({ "used": 1, "size": 2 }), None),
        (json!({ "cost": null }), None),
        (json!({ "cost": { "amount": -1, "currency": "USD" } }), None),
        (json!({ "cost": { "amount": 1e300, "currency": "USD" } }), None),
        (json!({ "cost": { "amount": 1, "currency": "gold" } }), None),
        (json!({ "cost": { "amount": "1", "currency": "USD" } }), None),
        (json!({ "cost": [1, "USD"] }), None),
    ] {
        assert_eq!(update_report(&raw(&update)), reports, "{update}");
    }
}

#[test]
fn acp_usage_of_a_model_call_is_read_from_a_chunk() {
    let chunk = json!({ "content": { "type": "text", "text": "" }, "_meta": { "usage": { "inputTokens": 100,
        "outputTokens": 10, "totalTokens": 110, "thoughtTokens": 4, "cachedReadTokens": 30 }, "durationMs": 12 } });
    assert_eq!(chunk_report(&raw(&chunk)), step([Some(100), Some(10), Some(30), None, Some(4)]));
    assert_eq!(chunk_report(&raw(&json!({ "content": { "type": "text", "text": "words" } }))), None);
}
