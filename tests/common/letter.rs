//! Checks messages against the specification of the UI protocol, to the letter.

use serde_json::Value;

/// Fails unless a message is one of the UI protocol, without members that its specification does not have.
pub fn assert_letter(message: &Value) {
    let words: &[&str] = match message["method"].as_str() {
        None => return,
        Some("agent.event") => &["run_id", "seq", "event", "meta"],
        Some("run.status") => &["run_id", "status", "message"],
        Some("run.context") => &["run_id", "context_left_percent"],
        Some("ui.confirm.request") => &[
            "run_id",
            "title",
            "message",
            "confirm_label",
            "cancel_label",
            "danger_level",
            "allow_remember",
            "allow_reason",
        ],
        Some("ui.prompt.request") => &["run_id", "title", "message", "default_value", "multiline", "secret"],
        Some("ui.pick.request") => &["run_id", "title", "items", "multi"],
        Some(other) => panic!("{other} is no method of the protocol: {message}"),
    };
    for member in message["params"].as_object().unwrap().keys() {
        assert!(words.contains(&member.as_str()), "{member}: {message}");
    }
    if message["method"] == "agent.event" {
        assert_agent_event(&message["params"]["event"]);
    }
    if let Some(left) = message["params"].get("context_left_percent") {
        assert!(left.as_u64().is_some_and(|left| left <= 100), "{message}");
    }
    if let Some(status) = message["params"].get("status") {
        let all = ["running", "awaiting_ui", "completed", "error", "cancelled"];
        assert!(all.contains(&status.as_str().unwrap()), "{message}");
    }
}

/// Fails unless an event is a complete AgentEvent of the specification.
fn assert_agent_event(event: &Value) {
    let members: &[&str] = match event["type"].as_str() {
        Some("text" | "reasoning" | "final" | "hidden_user_message") => &["content"],
        Some("tool_call") => &["tool", "args", "tool_call_id"],
        Some("tool_result") => &["tool", "result", "tool_call_id"],
        other => panic!("{other:?} is no AgentEvent of the specification: {event}"),
    };
    for member in members {
        assert!(event.get(member).is_some(), "{member} is missing: {event}");
    }
    assert!(event.get("tool_call_id").is_none_or(Value::is_string), "{event}");
}
