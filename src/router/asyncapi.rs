//! `asyncapi.json`: every message of the native WebSocket, in both directions, from the method table, the table of
//! notifications below, and the [`schemas`](super::schemas) of their rows.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::frames::{ASKS, Notification};
use super::guard::{WS_BEARER, WS_PATH, WS_PROTOCOL};
use super::rpc;
use super::rpc::examples::{AT, REQUEST, RUN, SESSION, envelope, request, runtime, session, you};
use super::schemas::{self, Shape};
use plexus_protocol::api::history::EventEnvelope;
use plexus_protocol::api::problem::RpcFailure;
use plexus_protocol::api::rpc::SessionParams;
use plexus_protocol::api::stream::{
    Lag, Live, NotTaken, PresenceChanged, RunContextParams, RunStatusParams, RuntimeRemoved, RuntimeUpdated,
    SessionDeleted, SessionUpdated, StreamHello, StreamSnapshots,
};
use plexus_protocol::{Answer, Request, Resolution};

/// A notification of the gateway.
struct Note {
    name: &'static str,
    about: &'static str,
    shape: Shape,
    params: Value,
}

fn note<N: Notification + ToSchema>(about: &'static str, params: Value) -> Note {
    Note { name: N::METHOD, about, shape: of::<N>(), params }
}

#[rustfmt::skip] // a notification, a few lines
fn notes() -> Vec<Note> {
    let position = json!({ "session_id": SESSION, "head": "k3f9:1050" });
    vec![
        note::<EventEnvelope>("An event", envelope()),
        note::<RunStatusParams>("Follows `run_started`, `run_status` and `run_ended`", json!({ "session_id": SESSION, "run_id": RUN, "status": "running" })),
        note::<RunContextParams>("Follows `usage_update`", json!({ "session_id": SESSION, "run_id": RUN, "context_left_percent": 80.0 })),
        note::<Resolution<'_>>("A request was closed; sent to all clients, also to those whose answer arrived too late",
            json!({ "session_id": SESSION, "request_id": REQUEST, "state": "answered", "option_id": "allow_once", "ok": true, "resolved_by": { "device_id": "d_local", "name": "this machine" }, "at": AT })),
        note::<PresenceChanged>("Who is looking at a session that you follow, including you",
            json!({ "session_id": SESSION, "lookers": [{ "device_id": "d_local", "name": "this machine" }] })),
        note::<SessionUpdated>("The state of a session changed", json!({ "session": session() })),
        note::<RuntimeUpdated>("The state of a runtime changed", json!({ "runtime": runtime() })),
        note::<SessionDeleted>("A session was deleted with all its data", json!({ "session_id": SESSION })),
        note::<RuntimeRemoved>("A runtime was stopped permanently", json!({ "runtime_id": "demo" })),
        note::<StreamHello>("The first message after every attach",
            json!({ "session_id": SESSION, "resume": "ok", "epoch": "k3f9", "oldest": "k3f9:0", "head": "k3f9:1050", "sessions": [session()], "runs": [], "requests": [request()], "you": you() })),
        note::<StreamSnapshots>("Sent instead of events that can no longer be replayed, unless `resume` is `ok`",
            json!({ "session_id": SESSION, "cursor": "k3f9:1050", "snapshots": [] })),
        note::<Live>("All events up to here were sent", position.clone()),
        note::<Lag>("You fell behind and have caught up; nothing was lost", json!({ "session_id": SESSION, "head": "k3f9:1050", "behind": 12000 })),
        note::<NotTaken>("Your response to a `ui.*.request` was not accepted",
            json!({ "request_id": REQUEST, "error": { "code": -32602, "message": "not offered", "data": { "code": "option_not_offered" } } })),
    ]
}

const fn of<T: ToSchema>() -> Shape {
    Shape::of::<T>()
}

/// Returns parameters with a session and any members that the runtime accepts.
fn passed() -> Value {
    json!({ "allOf": [of::<SessionParams>().reference()], "additionalProperties": true })
}

/// Returns the schema of a JSON-RPC message with these members besides `jsonrpc`.
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

/// Describes the requests of the UI protocol that the gateway sends, and their response.
fn questions(messages: &mut Map<String, Value>, operations: &mut Map<String, Value>) {
    let native = json!({ "$ref": "#/channels/native" });
    let on_channel = |name: &str| json!({ "$ref": format!("#/channels/native/messages/{name}") });
    let mut question = request();
    question["message"] = json!("touch demo.txt");
    question["danger_level"] = json!("normal");
    for name in ASKS {
        let about = "A question: answer by a JSON-RPC response with this id, or by `ui.request.answer`";
        let params = json!({ "allOf": [of::<Request>().reference(), {
            "required": ["message", "danger_level"],
            "properties": { "message": { "type": "string" }, "danger_level": { "enum": ["normal", "danger"] } },
        }] });
        let ask = json!({ "id": { "type": "string", "pattern": schemas::ID }, "method": { "const": name }, "params": params });
        let example = json!({ "id": REQUEST, "method": name, "params": question });
        messages.insert(name.into(), message(about, ask, &["id", "method", "params"], example));
        operations.insert(
            name.into(),
            json!({
                "action": "send", "channel": native, "summary": about, "messages": [on_channel(name)],
                "reply": { "channel": native, "messages": [on_channel("ui.answer")] },
            }),
        );
    }
    let answer = json!({ "id": { "type": "string", "pattern": schemas::ID }, "result": of::<Answer>().reference() });
    let example = json!({ "id": REQUEST, "result": { "ok": true } });
    messages.insert("ui.answer".into(), message("Answers a question", answer, &["id", "result"], example));
}

/// Makes `asyncapi.json` of a gateway of this version.
pub fn description(version: &str) -> Value {
    let (mut messages, mut operations) = (Map::new(), Map::new());
    let native = json!({ "$ref": "#/channels/native" });
    let on_channel = |name: &str| json!({ "$ref": format!("#/channels/native/messages/{name}") });
    let id = json!({ "type": ["string", "number"], "description": "Chosen by the sender; a notification has none and \
        gets no response" });
    for method in rpc::methods() {
        let (name, reply) = (method.name, format!("{}.result", method.name));
        let takes = if method.is_passed() { passed() } else { method.request.reference() };
        let taken = json!({ "id": id, "method": { "const": name }, "params": takes });
        let example = json!({ "id": 1, "method": name, "params": method.params });
        messages.insert(name.into(), message(method.about, taken, &["method"], example));
        let given = json!({ "id": id, "result": method.response.reference() });
        messages.insert(
            reply.clone(),
            message("The outcome", given, &["id", "result"], json!({ "id": 1, "result": method.result })),
        );
        operations.insert(
            name.into(),
            json!({
                "action": "receive", "channel": native, "summary": method.about, "messages": [on_channel(name)],
                "reply": { "channel": native, "messages": [on_channel(&reply), on_channel("error")] },
            }),
        );
    }
    let failed = json!({ "id": { "type": ["string", "number", "null"] }, "error": of::<RpcFailure>().reference() });
    let example = json!({ "id": 1, "error": { "code": -32004, "message": "there is no such session", "data": { "code": "session_not_found" } } });
    messages.insert("error".into(), message("Why it was not done", failed, &["id", "error"], example));
    let other =
        json!({ "id": id, "method": { "type": "string", "pattern": r"^[^.]+(\.[^.]+)+$" }, "params": passed() });
    let example = json!({ "id": 1, "method": "shell.history", "params": { "session_id": SESSION } });
    let about =
        "Any other method is passed to the session's runtime if its dialect supports it; otherwise the error is -32601";
    messages.insert("runtime.call".into(), message(about, other, &["method"], example));
    let result = json!({ "id": id, "result": {} });
    let example = json!({ "id": 1, "result": {} });
    messages.insert("runtime.call.result".into(), message("The runtime's message", result, &["id", "result"], example));
    operations.insert(
        "runtime.call".into(),
        json!({
            "action": "receive", "channel": native, "summary": about, "messages": [on_channel("runtime.call")],
            "reply": { "channel": native, "messages": [on_channel("runtime.call.result"), on_channel("error")] },
        }),
    );
    for note in notes() {
        let payload = json!({ "method": { "const": note.name }, "params": note.shape.reference() });
        let example = json!({ "method": note.name, "params": note.params });
        messages.insert(note.name.into(), message(note.about, payload, &["method", "params"], example));
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
            "description": "One JSON-RPC 2.0 message per text frame, for all sessions on one connection. Close \
             codes: 4001 revoked and 4003 no scope (do not reconnect with the same token and scopes); 4008 no \
             progress, 1001 going away, and all others: reconnect with your cursor.",
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
            "schemas": all_schemas(),
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer", "description": bearer } },
        },
    })
}

/// Returns the schemas of the messages in both directions.
fn all_schemas() -> Map<String, Value> {
    let methods = rpc::methods();
    let taken: Vec<Shape> = methods.iter().map(|method| method.request).chain([of::<Answer>()]).collect();
    let notes = notes();
    let given = methods.iter().map(|method| method.response).chain(notes.iter().map(|note| note.shape));
    let given: Vec<Shape> = given.chain([of::<Request>(), of::<RpcFailure>()]).collect();
    schemas::schemas(&taken, &given)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the texts in quotes that look like a method.
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
    fn methods_that_are_served_are_described() {
        let all = description("0");
        let mut found = 0;
        for source in [
            include_str!("rpc.rs"),
            include_str!("rpc/methods.rs"),
            include_str!("rpc/answers.rs"),
            include_str!("rpc/ui.rs"),
            include_str!("frames.rs"),
            include_str!("fanout.rs"),
        ] {
            for name in quoted(source) {
                assert!(all["operations"][name].is_object(), "{name} is not described");
                found += 1;
            }
        }
        assert!(found > 20, "{found}");
    }
}
