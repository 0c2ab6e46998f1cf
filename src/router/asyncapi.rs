//! `asyncapi.json`: every message of the native WebSocket, in both directions, from one table and the
//! [`schemas`](super::schemas). A test holds the table to the methods that are served.

use std::sync::OnceLock;

use axum::response::Response;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::guard::{WS_BEARER, WS_PATH, WS_PROTOCOL};
use super::{Problem, reply as api, schemas};

/// A method that clients call: what it takes and gives, by the names of shapes, and an example of each.
struct Method {
    name: &'static str,
    about: &'static str,
    takes: &'static str,
    gives: &'static str,
    params: Value,
    result: Value,
}

/// A notification of the gateway.
struct Note {
    name: &'static str,
    about: &'static str,
    shape: &'static str,
    params: Value,
}

const SESSION: &str = "s_3qpex3kh3bvb7h4t2nn4q5u6j2";
const RUN: &str = "r_5u3dk2vzq7c6tq4m7bq2o6x4pa";
const REQUEST: &str = "q_w2o6x4pa5u3dk2vzq7c6tq4m7b";
const AT: &str = "2026-01-31T09:30:00.125Z";

fn session() -> Value {
    json!({
        "session_id": SESSION, "runtime_id": "demo", "dialect": "acp", "native_id": "demo-1", "title": null,
        "cwd": "/home/me/project", "state": "idle", "doing": null,
        "archived": false, "open_requests": 0, "created_at": AT, "updated_at": AT,
    })
}

fn runtime() -> Value {
    json!({
        "runtime_id": "demo", "dialect": "acp", "state": "ready", "connect": { "command": ["plexus", "agent", "demo"] },
        "cwd": "/home/me/project", "generation": 1, "updated_at": AT,
    })
}

fn request() -> Value {
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

fn receipt() -> Value {
    json!({
        "request_id": REQUEST, "state": "answered", "option_id": "allow_once", "ok": true,
        "resolved_by": { "device_id": "d_local", "name": "this machine" }, "at": AT, "cursor": "k3f9:1050", "won": true,
    })
}

fn envelope() -> Value {
    json!({
        "session_id": SESSION, "run_id": RUN, "seq": 7, "cursor": "k3f9:1042", "at": AT, "kind": "agent_message_chunk",
        "event": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "Hello" } },
        "meta": { "runtime_id": "demo", "dialect": "acp" },
    })
}

fn you() -> Value {
    json!({ "device_id": "d_local", "name": "this machine", "scopes": ["watch", "prompt", "approve", "admin"] })
}

#[rustfmt::skip] // a method, a few lines
fn methods() -> Vec<Method> {
    let method = |name, takes, gives, about, params, result| Method { name, about, takes, gives, params, result };
    let of = || json!({ "session_id": SESSION });
    vec![
        method("initialize", "Initialize", "Initialized", "Says hello; comes first",
            json!({ "protocol_version": "0", "client": { "name": "example", "version": "1" }, "ui_capabilities": { "supports_confirm": true } }),
            json!({ "protocol_version": "0", "server": { "name": "plexus", "version": "0.1.0" }, "server_capabilities": { "supports_run_cancel": true }, "you": you() })),
        method("runtime.list", "Nothing", "Runtimes", "Runtimes", json!({}), json!({ "runtimes": [runtime()] })),
        method("session.list", "Listing", "Sessions", "Sessions", json!({ "limit": 10 }), json!({ "sessions": [session()] })),
        method("session.new", "SessionNew", "Session", "Opens a session", json!({ "runtime_id": "demo", "cwd": "/home/me/project" }), session()),
        method("session.rename", "SessionRename", "Session", "Gives a session a title, which the agent's own changes no more",
            json!({ "session_id": SESSION, "title": "The parser" }), session()),
        method("session.archive", "SessionArchive", "Session", "Puts a session away, or with `archived` false takes it back",
            json!({ "session_id": SESSION, "archived": true }), session()),
        method("session.attach", "AttachParams", "Attached", "Follows a session, or all with `*`: `gateway.hello`, a snapshot if need be, what came after the cursor, `gateway.live`, and what comes",
            json!({ "session_id": SESSION, "after": "k3f9:1042" }),
            json!({ "attached": true, "session_id": SESSION, "resume": "ok", "cursor": "k3f9:1042", "head": "k3f9:1050" })),
        method("session.detach", "AttachParams", "Detached", "Ends it", of(), json!({ "detached": true })),
        method("session.history", "HistoryParams", "History", "Events, a page at a time",
            json!({ "session_id": SESSION, "limit": 100 }),
            json!({ "events": [envelope()], "events_sent": 1, "next": "k3f9:1042", "head": "k3f9:1050", "resume": "ok" })),
        method("run.start", "StartRun", "Accepted", "Prompts; queued while another run is under way",
            json!({ "session_id": SESSION, "text": "hello" }), json!({ "run_id": RUN, "queued": false, "ahead": 0 })),
        method("run.cancel", "CancelParams", "Cancelled", "Stops a run; its open requests are withdrawn first",
            json!({ "session_id": SESSION }), json!({ "ok": true, "run_id": RUN, "status": "running" })),
        method("run.restart", "RestartParams", "Accepted", "Sends the prompt of a run once more: of the one under way, which is cancelled first, of the one named, or of the last",
            json!({ "session_id": SESSION }), json!({ "run_id": RUN, "queued": true, "ahead": 1 })),
        method("ui.request.answer", "AnswerParams", "Receipt", "Answers a request; the first answer wins, a later one is error -32010 with the winner's receipt in `data`",
            json!({ "request_id": REQUEST, "option_id": "allow_once", "idempotency_key": "k1" }), receipt()),
        method("presence.update", "Focus", "Looking", "Says what your screen shows and whether somebody looks at it; gone with the connection. Only a focused screen keeps notifications off",
            json!({ "session_id": SESSION, "focused": true }), json!({ "focused": true })),
        method("model.list", "Passed", "Anything", "Asks the session's runtime", of(), json!({ "models": [] })),
        method("model.set", "Passed", "Anything", "Asks the session's runtime", json!({ "session_id": SESSION, "name": "small" }), json!({})),
        method("mcp.list", "Passed", "Anything", "Asks the session's runtime", of(), json!({ "servers": [] })),
        method("skills.list", "Passed", "Anything", "Asks the session's runtime", of(), json!({ "skills": [] })),
        method("ui.context.update", "Passed", "Anything", "Tells the session's runtime", of(), json!({})),
    ]
}

#[rustfmt::skip] // a notification, a few lines
fn notes() -> Vec<Note> {
    let note = |name, shape, about, params| Note { name, about, shape, params };
    let place = json!({ "session_id": SESSION, "head": "k3f9:1050" });
    vec![
        note("agent.event", "Envelope", "An event", envelope()),
        note("run.status", "RunStatusNote", "Follows `run_started`, `run_status` and `run_ended`", json!({ "session_id": SESSION, "run_id": RUN, "status": "running" })),
        note("run.context", "RunContext", "Follows `usage_update`", json!({ "session_id": SESSION, "run_id": RUN, "context_left_percent": 80.0 })),
        note("ui.request.resolved", "Resolution", "A request ended: everybody hears how, losers included",
            json!({ "session_id": SESSION, "request_id": REQUEST, "state": "answered", "option_id": "allow_once", "ok": true, "resolved_by": { "device_id": "d_local", "name": "this machine" }, "at": AT })),
        note("presence.changed", "PresenceNote", "Who looks at a session that you follow, you included",
            json!({ "session_id": SESSION, "lookers": [{ "device_id": "d_local", "name": "this machine" }] })),
        note("session.updated", "SessionNote", "A session stands differently", json!({ "session": session() })),
        note("runtime.updated", "RuntimeNote", "A runtime stands differently", json!({ "runtime": runtime() })),
        note("session.deleted", "SessionGone", "A session was forgotten, bytes and all", json!({ "session_id": SESSION })),
        note("runtime.removed", "RuntimeGone", "A runtime was stopped for good", json!({ "runtime_id": "demo" })),
        note("gateway.hello", "Hello", "The first thing that every attach hears",
            json!({ "session_id": SESSION, "resume": "ok", "epoch": "k3f9", "oldest": "k3f9:0", "head": "k3f9:1050", "sessions": [session()], "runs": [], "requests": [request()], "you": you() })),
        note("gateway.snapshot", "Snapshots", "In place of what can no longer be replayed, unless `resume` is `ok`",
            json!({ "session_id": SESSION, "cursor": "k3f9:1050", "snapshots": [] })),
        note("gateway.live", "Live", "Everything up to here was told", place.clone()),
        note("gateway.lag", "Lag", "You fell behind and have caught up; nothing was lost", json!({ "session_id": SESSION, "head": "k3f9:1050", "behind": 12000 })),
        note("gateway.error", "NotTaken", "Your response to a `ui.*.request` was not taken",
            json!({ "request_id": REQUEST, "error": { "code": -32602, "message": "not offered", "data": { "code": "option_not_offered" } } })),
    ]
}

/// The questions, by their methods; their ids are the `request_id`s.
const ASKS: [&str; 3] = ["ui.confirm.request", "ui.prompt.request", "ui.pick.request"];

fn shape(name: &str) -> Value {
    match name {
        "Nothing" => json!({ "type": "object" }),
        // Beside the session, whatever the runtime takes.
        "Passed" => json!({ "allOf": [shape("OfSession")], "additionalProperties": true }),
        _ => json!({ "$ref": format!("#/components/schemas/{name}") }),
    }
}

/// A JSON-RPC message with these members beside `jsonrpc`.
fn message(about: &str, members: Value, required: &[&str], example: Value) -> Value {
    let mut properties = Map::from_iter([("jsonrpc".to_owned(), json!({ "const": "2.0" }))]);
    let mut payload = Map::from_iter([("jsonrpc".to_owned(), json!("2.0"))]);
    for (all, more) in [(&mut properties, members), (&mut payload, example)] {
        if let Value::Object(more) = more {
            all.extend(more);
        }
    }
    let required: Vec<&str> = ["jsonrpc"].iter().chain(required).copied().collect();
    json!({
        "summary": about,
        "contentType": "application/json",
        "payload": { "type": "object", "required": required, "properties": properties },
        "examples": [{ "payload": payload }],
    })
}

/// Describes the questions that the gateway asks in the words of the UI protocol, and their answer.
fn questions(messages: &mut Map<String, Value>, operations: &mut Map<String, Value>) {
    let native = json!({ "$ref": "#/channels/native" });
    let on_channel = |name: &str| json!({ "$ref": format!("#/channels/native/messages/{name}") });
    let mut asked = request();
    asked["message"] = json!("touch demo.txt");
    asked["danger_level"] = json!("normal");
    for name in ASKS {
        let about = "A question: answer by a JSON-RPC response with this id, or by `ui.request.answer`";
        let params = json!({ "allOf": [shape("Request"), {
            "required": ["message", "danger_level"],
            "properties": { "message": { "type": "string" }, "danger_level": { "enum": ["normal", "danger"] } },
        }] });
        let ask = json!({ "id": { "type": "string", "pattern": schemas::ID }, "method": { "const": name }, "params": params });
        let example = json!({ "id": REQUEST, "method": name, "params": asked });
        messages.insert(name.into(), message(about, ask, &["id", "method", "params"], example));
        operations.insert(
            name.into(),
            json!({
                "action": "send", "channel": native, "summary": about, "messages": [on_channel(name)],
                "reply": { "channel": native, "messages": [on_channel("ui.answer")] },
            }),
        );
    }
    let answer = json!({ "id": { "type": "string", "pattern": schemas::ID }, "result": shape("Answer") });
    let example = json!({ "id": REQUEST, "result": { "ok": true } });
    messages.insert("ui.answer".into(), message("Answers a question", answer, &["id", "result"], example));
}

fn description(version: &str) -> Value {
    let (mut messages, mut operations) = (Map::new(), Map::new());
    let native = json!({ "$ref": "#/channels/native" });
    let on_channel = |name: &str| json!({ "$ref": format!("#/channels/native/messages/{name}") });
    let id =
        json!({ "type": ["string", "number"], "description": "Yours; a notification has none and is not answered" });
    for method in methods() {
        let (name, reply) = (method.name, format!("{}.result", method.name));
        let taken = json!({ "id": id, "method": { "const": name }, "params": shape(method.takes) });
        let example = json!({ "id": 1, "method": name, "params": method.params });
        messages.insert(name.into(), message(method.about, taken, &["method"], example));
        let given = json!({ "id": id, "result": shape(method.gives) });
        messages.insert(
            reply.clone(),
            message("What came of it", given, &["id", "result"], json!({ "id": 1, "result": method.result })),
        );
        operations.insert(
            name.into(),
            json!({
                "action": "receive", "channel": native, "summary": method.about, "messages": [on_channel(name)],
                "reply": { "channel": native, "messages": [on_channel(&reply), on_channel("error")] },
            }),
        );
    }
    let failed = json!({ "id": { "type": ["string", "number", "null"] }, "error": shape("Failure") });
    let example = json!({ "id": 1, "error": { "code": -32004, "message": "there is no such session", "data": { "code": "session_not_found" } } });
    messages.insert("error".into(), message("Why it was not done", failed, &["id", "error"], example));
    let other =
        json!({ "id": id, "method": { "type": "string", "pattern": r"^[^.]+(\.[^.]+)+$" }, "params": shape("Passed") });
    let example = json!({ "id": 1, "method": "shell.history", "params": { "session_id": SESSION } });
    let about = "Any other method goes to the session's runtime, if its dialect can carry it; else it is error -32601";
    messages.insert("runtime.call".into(), message(about, other, &["method"], example));
    let result = json!({ "id": id, "result": {} });
    let example = json!({ "id": 1, "result": {} });
    messages.insert("runtime.call.result".into(), message("What the runtime said", result, &["id", "result"], example));
    operations.insert(
        "runtime.call".into(),
        json!({
            "action": "receive", "channel": native, "summary": about, "messages": [on_channel("runtime.call")],
            "reply": { "channel": native, "messages": [on_channel("runtime.call.result"), on_channel("error")] },
        }),
    );
    for note in notes() {
        let said = json!({ "method": { "const": note.name }, "params": shape(note.shape) });
        let example = json!({ "method": note.name, "params": note.params });
        messages.insert(note.name.into(), message(note.about, said, &["method", "params"], example));
        operations.insert(
            note.name.into(),
            json!({ "action": "send", "channel": native, "summary": note.about, "messages": [on_channel(note.name)] }),
        );
    }
    questions(&mut messages, &mut operations);
    let in_channel: Map<String, Value> = messages
        .keys()
        .map(|name| (name.clone(), json!({ "$ref": format!("#/components/messages/{name}") })))
        .collect();
    let bearer = format!(
        "The token of an enrolled device: in `Authorization: Bearer`, or, from a browser, as a subprotocol: \
         `Sec-WebSocket-Protocol: {WS_PROTOCOL}, {WS_BEARER}TOKEN`"
    );
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Plexus, native WebSocket",
            "version": version,
            "description": "One JSON-RPC 2.0 message a text frame, over all sessions at once. Close codes: 4001 revoked and 4003 \
                            no scope (do not come back as you are); 4008 no progress, 1001 going away, and all others: come \
                            back with your cursor.",
            "license": { "name": "Apache-2.0" },
        },
        "defaultContentType": "application/json",
        "servers": {
            "local": {
                "host": "127.0.0.1:7420", "protocol": "ws", "security": [{ "$ref": "#/components/securitySchemes/bearer" }],
            },
        },
        "channels": { "native": { "address": WS_PATH, "messages": in_channel, "bindings": { "ws": { "method": "GET" } } } },
        "operations": operations,
        "components": {
            "messages": messages,
            "schemas": schemas::schemas(),
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer", "description": bearer } },
        },
    })
}

/// Serves the description.
pub(super) async fn serve(version: &'static str) -> Result<Response, Problem> {
    // One gateway has one version; the first to ask makes the text.
    static TEXT: OnceLock<Value> = OnceLock::new();
    api::json(StatusCode::OK, TEXT.get_or_init(|| description(version)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands in quotes and looks like a method.
    fn quoted(source: &str) -> Vec<&str> {
        let code = source.split("#[cfg(test)]").next().unwrap();
        let looks = |text: &&str| {
            let parts: Vec<&str> = text.split('.').collect();
            (2..=3).contains(&parts.len())
                && ["runtime", "session", "run", "ui", "agent", "gateway", "presence", "model", "mcp", "skills"]
                    .contains(&parts[0])
                && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase()))
        };
        code.split('"').skip(1).step_by(2).filter(looks).collect()
    }

    #[test]
    fn every_method_that_is_served_is_described() {
        let all = description("0");
        let mut found = 0;
        for source in
            [include_str!("rpc.rs"), include_str!("rpc/ui.rs"), include_str!("frames.rs"), include_str!("fanout.rs")]
        {
            for name in quoted(source) {
                assert!(all["operations"][name].is_object(), "{name} is not described");
                found += 1;
            }
        }
        assert!(found > 20, "{found}");
    }

    #[test]
    fn no_reference_leads_nowhere() {
        fn walk(value: &Value, all: &Value) {
            if let Some(to) = value.get("$ref").and_then(Value::as_str) {
                assert!(all.pointer(to.trim_start_matches('#')).is_some(), "{to}");
            }
            match value {
                Value::Object(fields) => fields.values().for_each(|value| walk(value, all)),
                Value::Array(values) => values.iter().for_each(|value| walk(value, all)),
                _ => {}
            }
        }
        let all = description("0");
        walk(&all, &all);
    }
}
