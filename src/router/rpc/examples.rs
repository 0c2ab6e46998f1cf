//! Examples of messages of the native WebSocket, for `asyncapi.json`.

use serde_json::{Value, json};

/// An example of a session's identifier.
pub(crate) const SESSION: &str = "s_3qpex3kh3bvb7h4t2nn4q5u6j2";
/// An example of a run's identifier.
pub(crate) const RUN: &str = "r_5u3dk2vzq7c6tq4m7bq2o6x4pa";
/// An example of a request's identifier.
pub(crate) const REQUEST: &str = "q_w2o6x4pa5u3dk2vzq7c6tq4m7b";
/// An example of a time.
pub(crate) const AT: &str = "2026-01-31T09:30:00.125Z";

/// Returns an example of a session.
pub(crate) fn session() -> Value {
    json!({
        "session_id": SESSION, "runtime_id": "demo", "dialect": "acp", "native_id": "demo-1", "title": null,
        "cwd": "/home/me/project", "state": "idle", "doing": null,
        "archived": false, "open_requests": 0, "created_at": AT, "updated_at": AT,
    })
}

/// Returns an example of a runtime.
pub(crate) fn runtime() -> Value {
    json!({
        "runtime_id": "demo", "dialect": "acp", "state": "ready", "connect": { "command": ["plexus", "agent", "demo"] },
        "cwd": "/home/me/project", "generation": 1, "updated_at": AT,
    })
}

/// Returns an example of a request.
pub(crate) fn request() -> Value {
    json!({
        "request_id": REQUEST, "session_id": SESSION, "run_id": RUN, "runtime_id": "demo", "generation": 1,
        "type": "permission", "state": "open", "title": "Run touch demo.txt", "display": "touch demo.txt", "warnings": [],
        "subject": { "type": "command", "argv": ["touch demo.txt"] }, "risk": "elevated",
        "risk_reasons": ["writes files"], "revision": 0, "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "options": [
            { "id": "allow_once", "label": "Allow", "kind": "allow_once" },
            { "id": "reject_once", "label": "Reject", "kind": "reject_once" },
        ],
        "allow_reason": false, "allow_remember": true, "opened_at": AT,
    })
}

/// Returns an example of a receipt.
pub(crate) fn receipt() -> Value {
    json!({
        "request_id": REQUEST, "state": "answered", "option_id": "allow_once", "ok": true,
        "resolved_by": { "device_id": "d_local", "name": "this machine" }, "at": AT, "cursor": "k3f9:1050", "won": true,
    })
}

/// Returns an example of an event.
pub(crate) fn envelope() -> Value {
    json!({
        "session_id": SESSION, "run_id": RUN, "seq": 7, "cursor": "k3f9:1042", "at": AT, "kind": "agent_message_chunk",
        "event": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "Hello" } },
        "meta": { "runtime_id": "demo", "dialect": "acp" },
    })
}

/// Returns an example of a connection's device.
pub(crate) fn you() -> Value {
    json!({ "device_id": "d_local", "name": "this machine", "scopes": ["watch", "prompt", "approve", "admin", "type"] })
}
