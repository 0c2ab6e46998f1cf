//! The log's events as ACP's messages, and questions as ACP asks them. Pure.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model::{Cursor, Epoch, Event, Request, RequestId};
use crate::router::wire;

/// What the client said that it can do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Can {
    /// Take `_plexus/event`.
    pub(super) events: bool,
    /// Fill in forms.
    pub(super) forms: bool,
    /// Open pages.
    pub(super) pages: bool,
    /// Be told as RFD #533 has it.
    pub(super) attach: bool,
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) data: Value,
}

/// A JSON-RPC response; `id` as the client wrote it.
pub(super) fn response(id: &str, outcome: Result<&RawValue, &Failure>) -> Vec<u8> {
    let mut json = Vec::with_capacity(128);
    json.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    json.extend_from_slice(id.as_bytes());
    match outcome {
        Ok(result) => {
            json.extend_from_slice(br#","result":"#);
            json.extend_from_slice(result.get().as_bytes());
        }
        Err(failure) => {
            json.extend_from_slice(br#","error":"#);
            json.extend_from_slice(serde_json::to_string(failure).unwrap_or_else(|_| "null".into()).as_bytes());
        }
    }
    json.push(b'}');
    json
}

/// A notification.
pub(super) fn notification(method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a P,
    }
    // Plain values of our own, which always can be written.
    serde_json::to_vec(&Notification { jsonrpc: "2.0", method, params }).unwrap_or_default()
}

/// A request of ours.
pub(super) fn request(id: &str, method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Asking<'a, P> {
        jsonrpc: &'static str,
        id: &'a str,
        method: &'a str,
        params: &'a P,
    }
    serde_json::to_vec(&Asking { jsonrpc: "2.0", id, method, params }).unwrap_or_default()
}

/// An event of ACP's own kinds as `session/update`; the update is the event's body, byte for byte.
pub(super) fn update(event: &Event, epoch: &Epoch) -> Vec<u8> {
    let mut out = Vec::with_capacity(event.body.len() + 256);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#);
    out.extend_from_slice(json!(event.origin.session_id).to_string().as_bytes());
    out.extend_from_slice(br#","update":"#);
    out.extend_from_slice(&event.body);
    out.extend_from_slice(br#","_meta":"#);
    out.extend_from_slice(meta(event, epoch).to_string().as_bytes());
    out.extend_from_slice(b"}}");
    out
}

/// The notification's own `_meta`, and ours in it.
fn meta(event: &Event, epoch: &Epoch) -> Value {
    let mut meta = own_meta(event).unwrap_or_default();
    meta.insert("plexus".into(), place(event, epoch));
    Value::Object(meta)
}

/// Where in the log an event is.
fn place(event: &Event, epoch: &Epoch) -> Value {
    let cursor = Cursor { epoch: epoch.clone(), position: event.position };
    json!({ "cursor": cursor, "run_id": event.run_id, "seq": event.seq, "at": event.at })
}

/// What the agent said beside the update.
fn own_meta(event: &Event) -> Option<serde_json::Map<String, Value>> {
    #[derive(Deserialize)]
    struct Frame<'a> {
        #[serde(borrow)]
        method: Option<Cow<'a, str>>,
        params: Option<Params>,
    }
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Option<serde_json::Map<String, Value>>,
    }
    event.body_in_native()?;
    let frame: Frame<'_> = serde_json::from_slice(event.native.as_ref()?).ok()?;
    frame.params.filter(|_| frame.method.as_deref() == Some("session/update"))?.meta
}

/// Any event as the gateway's own notification.
pub(super) fn event(event: &Event, epoch: &Epoch) -> Vec<u8> {
    let mut out = br#"{"jsonrpc":"2.0","method":"_plexus/event","params":"#.to_vec();
    wire::envelope(&mut out, epoch, event);
    out.push(b'}');
    out
}

/// A question as ACP asks it. `None`: the client cannot be asked this.
pub(super) fn question(request: &Request, cursor: &Cursor, can: Can) -> Option<Vec<u8>> {
    let _ = (request, cursor, can);
    None
}

/// Somebody else has answered.
pub(super) fn retracted(id: &RequestId) -> Vec<u8> {
    notification("$/cancel_request", &json!({ "requestId": id }))
}

/// The end of a request as RFD #533 tells it.
pub(super) fn permission_resolved(event: &Event, epoch: &Epoch) -> Option<Vec<u8>> {
    let _ = (event, epoch);
    None
}

/// The end of a run as the response to its prompt.
pub(super) fn prompt_ended(id: &str, event: &Event, epoch: &Epoch) -> Vec<u8> {
    let result = json!({ "stopReason": "end_turn", "_meta": { "plexus": place(event, epoch) } });
    match serde_json::value::to_raw_value(&result) {
        Ok(result) => response(id, Ok(&result)),
        Err(error) => response(id, Err(&Failure { code: -32603, message: error.to_string(), data: Value::Null })),
    }
}
