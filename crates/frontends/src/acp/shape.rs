//! ACP's messages: events of the log, JSON-RPC responses and notifications. Pure.

use std::borrow::Cow;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use plexus_protocol::api::problem::RpcFailureData;
use plexus_protocol::codes::ONE_SESSION;
use plexus_protocol::{Cursor, Epoch, Event, Resolver, RunStatus, SessionId, text_block};
use plexus_router::error::Problem;
use plexus_router::jsonrpc::response_json;
use plexus_router::wire;
use plexus_sessions::SessionError;
use plexus_surfaces::Surface;

/// The capabilities of a client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientSupport {
    /// `true` if the client accepts `_plexus/event`.
    pub(super) events: bool,
    /// `true` if the client displays forms.
    pub(super) forms: bool,
    /// `true` if the client opens pages.
    pub(super) pages: bool,
    /// `true` if the client supports RFD #533.
    pub(super) attach: bool,
    /// `true` if the client reads files for an agent.
    pub(super) reads: bool,
    /// `true` if the client writes files for an agent.
    pub(super) writes: bool,
    /// `true` if the client runs commands for an agent.
    pub(super) terminals: bool,
}

impl ClientSupport {
    /// Returns whether the client supports a method of an agent.
    pub(super) fn supports(self, method: &str) -> bool {
        match method {
            "fs/read_text_file" => self.reads,
            "fs/write_text_file" => self.writes,
            _ => self.terminals && method.starts_with("terminal/"),
        }
    }
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The code of JSON-RPC, ACP or the agent.
    pub code: i64,
    /// The text for users.
    pub message: String,
    /// Further data; null if none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl Failure {
    pub(super) fn new(code: i64, name: &str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: json!({ "code": name }) }
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(-32602, "invalid_params", message)
    }
}

impl From<Problem> for Failure {
    fn from(mut problem: Problem) -> Self {
        let code = match problem.code {
            // ACP's "resource not found".
            "session_not_found" | "runtime_not_found" | "request_not_found" | "run_not_found" => -32002,
            "queue_full" => -32001,
            "already_resolved" => -32010,
            "scope_missing" => -32011,
            "expired" | "withdrawn" | "orphaned" | "closed" => -32012,
            "stale_digest" => -32013,
            "runtime_gone" => -32014,
            "storage" => -32017,
            "stopping" => -32018,
            "runtime_silent" => -32020,
            "one_session" => ONE_SESSION,
            "internal" => -32603,
            _ => -32602,
        };
        let message = std::mem::take(&mut problem.detail);
        // Every member is text, a number or JSON already.
        Self { code, message, data: serde_json::to_value(RpcFailureData::from(problem)).unwrap_or_default() }
    }
}

impl From<SessionError> for Failure {
    fn from(refusal: SessionError) -> Self {
        // The agent's own error is better.
        if let SessionError::RuntimeRefused { code, message, data } = &refusal {
            let data = data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or(Value::Null);
            return Self { code: *code, message: message.clone(), data };
        }
        Problem::from(refusal).into()
    }
}

impl From<plexus_auth::Denied> for Failure {
    fn from(denied: plexus_auth::Denied) -> Self {
        Problem::from(denied).into()
    }
}

// === JSON-RPC ===

/// Returns a JSON-RPC response; `id` is the client's text.
pub(super) fn response(id: &str, outcome: Result<&RawValue, &Failure>) -> Vec<u8> {
    response_json(id, outcome)
}

/// Returns a notification.
pub(super) fn notification(method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a P,
    }
    // Plain values, which always serialize.
    serde_json::to_vec(&Notification { jsonrpc: "2.0", method, params }).unwrap_or_default()
}

/// Returns a request of the gateway.
pub(super) fn request(id: &str, method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct RequestMessage<'a, P> {
        jsonrpc: &'static str,
        id: &'a str,
        method: &'a str,
        params: &'a P,
    }
    serde_json::to_vec(&RequestMessage { jsonrpc: "2.0", id, method, params }).unwrap_or_default()
}

/// The members of a JSON object as raw text.
pub(super) struct Members<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut all = Vec::new();
                while let Some((name, value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    all.push((name.0, value));
                }
                Ok(Members(all))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// Text that is borrowed if it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Members<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Returns the object without the members `without` and with the members `instead`.
    pub(super) fn with(&self, instead: &[(&str, &RawValue)], without: &[&str]) -> Box<RawValue> {
        let mut json = String::from("{");
        let rest = self.0.iter().filter(|(name, _)| !without.contains(&&**name));
        let rest = rest.filter(|(name, _)| !instead.iter().any(|(other, _)| name == other));
        let all =
            instead.iter().map(|(name, value)| (*name, *value)).chain(rest.map(|(name, value)| (&**name, *value)));
        for (n, (name, value)) in all.enumerate() {
            if n > 0 {
                json.push(',');
            }
            json.push_str(&Value::from(name).to_string());
            json.push(':');
            json.push_str(value.get());
        }
        json.push('}');
        RawValue::from_string(json).unwrap_or_default()
    }
}

/// Returns a value as raw JSON.
pub(super) fn raw(value: &impl Serialize) -> Box<RawValue> {
    // Plain values, which always serialize.
    serde_json::value::to_raw_value(value).unwrap_or_default()
}

// === events ===

/// Returns an event of one of ACP's kinds as `session/update`; the update is the event's body, byte for byte.
pub(super) fn update(event: &Event, epoch: &Epoch) -> Vec<u8> {
    let mut meta = own_meta(event).unwrap_or_default();
    meta.insert("plexus".into(), position_meta(event, epoch));
    session_update(&event.origin.session_id, &event.body, &meta)
}

fn session_update(session: &SessionId, update: &[u8], meta: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::with_capacity(update.len() + 320);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#);
    out.extend_from_slice(json!(session).to_string().as_bytes());
    out.extend_from_slice(br#","update":"#);
    out.extend_from_slice(update);
    out.extend_from_slice(br#","_meta":"#);
    out.extend_from_slice(serde_json::to_string(meta).unwrap_or_else(|_| "{}".into()).as_bytes());
    out.extend_from_slice(b"}}");
    out
}

/// Returns an update made by the gateway.
pub(super) fn own_update(session: &SessionId, update: &Value) -> Vec<u8> {
    session_update(session, update.to_string().as_bytes(), &Map::new())
}

/// Width of a surface's text, in columns.
const SURFACE_COLUMNS: usize = 100;

/// Returns a new surface as a tool call with its text: ACP has no surfaces. `None` for a change, which contains only the changed parts.
pub(super) fn surface(event: &Event) -> Option<Vec<u8>> {
    let body: Value = serde_json::from_slice(&event.body).ok()?;
    if body.get("base").is_some() || body.get("closed").is_some() {
        return None;
    }
    let surface = Surface::from_wire(body).ok()?;
    let title = surface.title().unwrap_or(surface.name());
    Some(own_update(
        &event.origin.session_id,
        &json!({
            "sessionUpdate": "tool_call", "toolCallId": format!("plexus-surface-{}", surface.name()),
            "title": format!("Surface: {title}"), "kind": "other", "status": "completed",
            "content": [{ "type": "content", "content": text_block(&surface.text(SURFACE_COLUMNS)) }],
        }),
    ))
}

/// Returns the position of an event, for `_meta`.
fn position_meta(event: &Event, epoch: &Epoch) -> Value {
    let cursor = Cursor { epoch: epoch.clone(), position: event.position };
    json!({ "cursor": cursor, "run_id": event.run_id, "seq": event.seq, "at": event.at })
}

/// Returns the agent's own `_meta` of an update.
fn own_meta(event: &Event) -> Option<Map<String, Value>> {
    #[derive(Deserialize)]
    struct Frame<'a> {
        #[serde(borrow)]
        method: Option<Cow<'a, str>>,
        params: Option<Params>,
    }
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Option<Map<String, Value>>,
    }
    let (body, native) = (event.body_in_native()?, event.native.as_ref()?);
    // Most notifications have none and are not parsed again.
    let has = |part: &[u8]| part.windows(7).any(|seven| seven == br#""_meta""#);
    if !has(native.get(..body.start)?) && !has(native.get(body.end..)?) {
        return None;
    }
    let frame: Frame<'_> = serde_json::from_slice(native).ok()?;
    frame.params.filter(|_| frame.method.as_deref() == Some("session/update"))?.meta
}

/// Returns any event as the gateway's own notification.
pub(super) fn event(event: &Event, epoch: &Epoch) -> Vec<u8> {
    let mut out = br#"{"jsonrpc":"2.0","method":"_plexus/event","params":"#.to_vec();
    wire::envelope(&mut out, epoch, event);
    out.push(b'}');
    out
}

/// Returns the end of a run as the response to its prompt: ACP has five stop reasons, and any other end that is not a failure is
/// `end_turn`.
pub(super) fn prompt_ended(id: &str, event: &Event, epoch: &Epoch) -> Vec<u8> {
    match run_result(event, epoch) {
        Ok(result) => response(id, Ok(&result)),
        Err(failure) => response(id, Err(&failure)),
    }
}

/// Returns the result for [`prompt_ended`].
///
/// # Errors
/// The run failed; the agent's own error if there is one.
pub(super) fn run_result(event: &Event, epoch: &Epoch) -> Result<Box<RawValue>, Failure> {
    #[derive(Deserialize)]
    struct End {
        status: RunStatus,
        stop_reason: Option<String>,
        message: Option<String>,
        #[serde(default)]
        cancelling: bool,
    }
    let end = serde_json::from_slice(&event.body);
    let end = end.unwrap_or(End { status: RunStatus::Error, stop_reason: None, message: None, cancelling: false });
    let reason = match (end.status, end.stop_reason.as_deref()) {
        (RunStatus::Cancelled, _) => "cancelled",
        (RunStatus::Error, _) => {
            return Err(own_error(event).unwrap_or_else(|| {
                let message = end.message.unwrap_or_else(|| "the run failed".into());
                Failure::new(-32603, "run_failed", message)
            }));
        }
        (_, Some("max_tokens")) => "max_tokens",
        (_, Some("max_turn_requests")) => "max_turn_requests",
        (_, Some("refusal")) => "refusal",
        (_, Some("cancelled")) => "cancelled",
        // ACP requires `cancelled` after a cancel, regardless of the agent's report, which is in `_meta` and the log.
        _ if end.cancelling => "cancelled",
        _ => "end_turn",
    };
    let cursor = Cursor { epoch: epoch.clone(), position: event.position };
    let meta = json!({ "plexus": { "run_id": event.run_id, "cursor": cursor } });
    Ok(raw(&json!({ "stopReason": reason, "_meta": meta })))
}

/// Returns the agent's own error, if the run ended with one.
fn own_error(event: &Event) -> Option<Failure> {
    #[derive(Deserialize)]
    struct Frame {
        error: Failure,
    }
    let frame: Frame = serde_json::from_slice(event.native.as_ref()?).ok()?;
    Some(frame.error)
}

/// Returns the author of a prompt, if the event names one.
pub(super) fn prompted_by(event: &Event) -> Option<Resolver> {
    #[derive(Deserialize)]
    struct Body {
        by: Option<Resolver>,
    }
    serde_json::from_slice::<Body>(&event.body).ok()?.by
}

/// The settings of a session, read from its log.
#[derive(Default)]
pub(super) struct Settings {
    modes: Option<Map<String, Value>>,
    options: Option<Box<RawValue>>,
}

impl Settings {
    /// Applies an event.
    pub(super) fn take(&mut self, kind: &str, body: &[u8]) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Mode {
            current_mode_id: Value,
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }
        #[derive(Deserialize)]
        struct Meta {
            modes: Option<Map<String, Value>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Options {
            config_options: Box<RawValue>,
        }
        match kind {
            "current_mode_update" => {
                let Ok(mode) = serde_json::from_slice::<Mode>(body) else { return };
                if let Some(modes) = mode.meta.and_then(|meta| meta.modes) {
                    self.modes = Some(modes);
                }
                if let Some(modes) = &mut self.modes {
                    modes.insert("currentModeId".into(), mode.current_mode_id);
                }
            }
            "config_option_update" => {
                if let Ok(options) = serde_json::from_slice::<Options>(body) {
                    self.options = Some(options.config_options);
                }
            }
            _ => {}
        }
    }

    /// Returns the configuration options; `None` if the agent has none.
    pub(super) fn options(&self) -> Option<&RawValue> {
        self.options.as_deref()
    }

    /// Returns the settings as members of a response.
    pub(super) fn members(&self) -> Vec<(&'static str, Box<RawValue>)> {
        let modes = self.modes.iter().map(|modes| ("modes", raw(modes)));
        modes.chain(self.options.iter().map(|options| ("configOptions", options.clone()))).collect()
    }
}
