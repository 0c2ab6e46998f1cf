#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::Position;

#[test]
fn placer_holds_a_bounded_number_of_messages() {
    let mut placer = MessagePlacer::default();
    for n in 0..10_000 {
        let id = format!("{}{n}", "x".repeat(n % 300));
        placer.chunk(&MessageKey::new(Role::Agent, "r", Some(&id)), Position(n as u64));
    }
    let old = MessageKey::new(Role::Agent, "r", Some("0"));
    assert_eq!(placer.chunk(&old, Position(20_000)), Placed::New, "an old one is forgotten");
}

#[test]
fn tool_call_counts_what_it_holds() {
    let members = |value: Value| value.as_object().unwrap().clone();
    let mut call = ToolCall::default();
    for n in 0..100 {
        call.update(members(json!({ "title": "t", "rawOutput": "x".repeat(1000 + n) })));
    }
    assert!((1000..1300).contains(&call.bytes()), "{}", call.bytes());
    for _ in 0..100 {
        call.update(members(json!({ "_meta": { "terminal_output": { "data": "é".repeat(100_000) } } })));
    }
    assert!(call.bytes() < 4_700_000 && call.terminal_output().1, "{}", call.bytes());
    call.forget_details();
    assert!(call.bytes() < 20 && call.title() == "t", "{}", call.bytes());
}
