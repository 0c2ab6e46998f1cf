//! Frames: an event as finished bytes for a transport. Pure: no socket, no clock, no task.
//!
//! A server's WebSocket frames are unmasked and an SSE stream is HTTP chunks, so both can be made once and written to
//! every subscriber as they are.

// Who reads events decides for every kind: a new one has to be named here before it compiles.
#![deny(clippy::wildcard_enum_match_arm)]

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::wire::{self, Envelope};
use plexus_protocol::{
    Cursor, Epoch, Event, Kind, Position, RequestType, Resolution, Risk, RunId, RunStatus, SessionId, SessionInfo,
};

/// What of an event a subscriber gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Projection {
    /// The canonical body.
    #[default]
    Canonical,
    /// The same, and `native`: what the runtime itself said.
    Native,
}

/// How events are cut for a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// JSON-RPC notifications in WebSocket text frames.
    WebSocket,
    /// Server-sent events, one HTTP chunk each.
    Sse,
}

/// Finds how a session stands now; `None` if it is gone.
pub type SessionView = Arc<dyn Fn(&SessionId) -> Option<Arc<SessionInfo>> + Send + Sync>;

/// The place of the event since which a session does what it does now.
pub type DoingAt = Arc<dyn Fn(&SessionId) -> Option<Position> + Send + Sync>;

/// Makes frames of events.
#[derive(Clone)]
pub struct Encoder {
    /// The log's life, for cursors.
    pub epoch: Epoch,
    /// What of the events.
    pub projection: Projection,
    /// For which transport.
    pub framing: Framing,
    /// For `session.updated`.
    pub view: SessionView,
    /// Which of an agent's words and tool calls change what its session does now: those few bring a `session.updated`.
    pub doing_at: DoingAt,
}

impl Encoder {
    /// Appends everything that these events mean to a subscriber, and tells `each` where the frames of each end. A session
    /// that changed is shown as it is now, once, with the last event of these that changed it.
    pub fn events(&self, out: &mut Vec<u8>, events: &[Arc<Event>], mut each: impl FnMut(Position, usize)) {
        let mut scratch = Vec::new();
        let updates = self.session_updates(events);
        for (event, update) in events.iter().zip(updates) {
            self.event(out, &mut scratch, event);
            if update && let Some(session) = (self.view)(&event.origin.session_id) {
                ws_notify(out, &SessionUpdated { session: &session });
            }
            each(event.position, out.len());
        }
    }

    /// Which of these events bring a `session.updated`.
    fn session_updates(&self, events: &[Arc<Event>]) -> Vec<bool> {
        let mut updates = vec![false; events.len()];
        if self.framing == Framing::Sse {
            return updates;
        }
        let mut shown: Vec<&SessionId> = Vec::new();
        for (event, update) in events.iter().zip(&mut updates).rev() {
            let session = &event.origin.session_id;
            if self.changes_session(event) && !shown.contains(&session) {
                shown.push(session);
                *update = true;
            }
        }
        updates
    }

    /// Appends one event, and the messages of the UI protocol that say the same.
    fn event(&self, out: &mut Vec<u8>, scratch: &mut Vec<u8>, event: &Event) {
        scratch.clear();
        match self.framing {
            Framing::Sse => {
                self.envelope(scratch, event);
                let cursor = Cursor { epoch: self.epoch.clone(), position: event.position };
                sse_event(out, Some(&cursor), event.kind.as_str(), scratch);
            }
            Framing::WebSocket => {
                scratch.extend_from_slice(br#"{"jsonrpc":"2.0","method":"agent.event","params":"#);
                self.envelope(scratch, event);
                scratch.push(b'}');
                ws_text(out, scratch);
                self.companions(out, event);
            }
        }
    }

    fn envelope(&self, out: &mut Vec<u8>, event: &Event) {
        wire::envelope(out, &self.epoch, event);
        if self.projection == Projection::Native
            && let Some(native) = &event.native
            && out.pop() == Some(b'}')
        {
            out.extend_from_slice(br#","native":"#);
            native_json(out, native);
            out.push(b'}');
        }
    }

    /// The messages of the UI protocol that say the same as the event, for clients that know only those.
    fn companions(&self, out: &mut Vec<u8>, event: &Event) {
        match event.kind {
            Kind::RequestOpened | Kind::RequestUpdated => {
                if let Some(frame) = ask(&event.body) {
                    out.extend_from_slice(&frame);
                }
            }
            Kind::RequestResolved => ws_text(out, &splice(Resolution::METHOD, &event.body)),
            Kind::RunStarted | Kind::RunStatus | Kind::RunEnded => {
                let run = RunBody::of(event);
                let params = RunStatusParams {
                    session_id: event.origin.session_id.as_str(),
                    run_id: event.run_id.as_str(),
                    status: run.status.as_deref().unwrap_or(if event.kind == Kind::RunEnded {
                        "completed"
                    } else {
                        "running"
                    }),
                    message: run.message.as_deref(),
                };
                ws_notify(out, &params);
            }
            Kind::UsageUpdate => {
                if let Ok(Usage { context_left_percent: Some(percent) }) = serde_json::from_slice(&event.body) {
                    let params = RunContextParams {
                        session_id: event.origin.session_id.as_str(),
                        run_id: event.run_id.as_str(),
                        context_left_percent: percent,
                    };
                    ws_notify(out, &params);
                }
            }
            // These have no message of their own in the protocol beside the event.
            Kind::UserMessageChunk
            | Kind::AgentMessageChunk
            | Kind::AgentThoughtChunk
            | Kind::ToolCall
            | Kind::ToolCallUpdate
            | Kind::Plan
            | Kind::AvailableCommandsUpdate
            | Kind::CurrentModeUpdate
            | Kind::ConfigOptionUpdate
            | Kind::SessionInfoUpdate
            | Kind::SurfaceUpdated
            | Kind::Hook
            | Kind::RuntimeStatus
            | Kind::ClientJoined
            | Kind::ClientLeft
            | Kind::ClientServed
            | Kind::Error
            | Kind::Raw => {}
        }
    }

    /// Whether its session is another since this event, as far as [`SessionInfo`] tells.
    fn changes_session(&self, event: &Event) -> bool {
        match event.kind {
            Kind::RunStarted
            | Kind::RunStatus
            | Kind::RunEnded
            | Kind::RequestOpened
            | Kind::RequestUpdated
            | Kind::RequestResolved
            | Kind::SessionInfoUpdate
            | Kind::RuntimeStatus => true,
            Kind::AgentMessageChunk | Kind::AgentThoughtChunk | Kind::ToolCall | Kind::ToolCallUpdate => {
                (self.doing_at)(&event.origin.session_id) == Some(event.position)
            }
            Kind::UserMessageChunk
            | Kind::Plan
            | Kind::AvailableCommandsUpdate
            | Kind::CurrentModeUpdate
            | Kind::ConfigOptionUpdate
            | Kind::UsageUpdate
            | Kind::SurfaceUpdated
            | Kind::Hook
            | Kind::ClientJoined
            | Kind::ClientLeft
            | Kind::ClientServed
            | Kind::Error
            | Kind::Raw => false,
        }
    }
}

impl Notification for Envelope<'_> {
    const METHOD: &'static str = "agent.event";
}

impl Notification for Resolution<'_> {
    const METHOD: &'static str = "ui.request.resolved";
}

impl Notification for SessionUpdated<'_> {
    const METHOD: &'static str = "session.updated";
}

impl Notification for RunStatusParams<'_> {
    const METHOD: &'static str = "run.status";
}

impl Notification for RunContextParams<'_> {
    const METHOD: &'static str = "run.context";
}

/// The questions that clients are asked, by their methods; their ids are the `request_id`s.
pub(super) const ASKS: [&str; 3] = [CONFIRM, PROMPT, PICK];
const CONFIRM: &str = "ui.confirm.request";
const PROMPT: &str = "ui.prompt.request";
const PICK: &str = "ui.pick.request";

/// A session stands differently.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionNote)]
pub(super) struct SessionUpdated<'a> {
    session: &'a SessionInfo,
}

/// How a run stands, in the words of the UI protocol.
#[derive(Serialize, ToSchema)]
#[schema(as = RunStatusNote)]
pub(super) struct RunStatusParams<'a> {
    #[schema(value_type = SessionId)]
    session_id: &'a str,
    #[schema(value_type = RunId)]
    run_id: &'a str,
    #[schema(value_type = RunStatus)]
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// How much of the model's context is left.
#[derive(Serialize, ToSchema)]
#[schema(as = RunContext)]
pub(super) struct RunContextParams<'a> {
    #[schema(value_type = SessionId)]
    session_id: &'a str,
    #[schema(value_type = RunId)]
    run_id: &'a str,
    context_left_percent: f64,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(rename = "contextLeftPercent", alias = "context_left_percent")]
    context_left_percent: Option<f64>,
}

#[derive(Default, Deserialize)]
struct RunBody<'a> {
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
}

impl<'a> RunBody<'a> {
    fn of(event: &'a Event) -> Self {
        serde_json::from_slice(&event.body).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct PromptInfo<'a> {
    #[serde(borrow)]
    request_id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: RequestType,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    display: Cow<'a, str>,
    #[serde(default)]
    danger: bool,
    #[serde(default)]
    risk: Option<Risk>,
    #[serde(default)]
    revision: u64,
}

/// The UI protocol's request for a [`Request`](plexus_protocol::Request) as JSON, framed. Its id is the `request_id`, its params are the request,
/// with what that protocol wants besides: a `message` always, and `danger_level`. `None` if it is no request.
pub fn ask(request: &[u8]) -> Option<Vec<u8>> {
    let asked: PromptInfo<'_> = serde_json::from_slice(request).ok()?;
    let method = match asked.kind {
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => CONFIRM,
        RequestType::Prompt => PROMPT,
        RequestType::Pick => PICK,
    };
    let mut json = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    put(&mut json, &wire::name_of(&asked.request_id, asked.revision));
    json.extend_from_slice(br#","method":""#);
    json.extend_from_slice(method.as_bytes());
    json.extend_from_slice(br#"","params":"#);
    json.extend_from_slice(request.strip_suffix(b"}")?);
    if asked.message.is_none() {
        json.extend_from_slice(br#","message":"#);
        put(&mut json, &asked.display);
    }
    json.extend_from_slice(br#","danger_level":"#);
    put(&mut json, if asked.danger || asked.risk == Some(Risk::Danger) { "danger" } else { "normal" });
    json.extend_from_slice(b"}}");
    let mut frame = Vec::with_capacity(json.len() + 10);
    ws_text(&mut frame, &json);
    Some(frame)
}

/// A notification whose params are JSON already.
fn splice(method: &str, params: &[u8]) -> Vec<u8> {
    let mut json = Vec::with_capacity(params.len() + 64);
    json.extend_from_slice(br#"{"jsonrpc":"2.0","method":""#);
    json.extend_from_slice(method.as_bytes());
    json.extend_from_slice(br#"","params":"#);
    json.extend_from_slice(params);
    json.push(b'}');
    json
}

/// Appends a value as JSON.
fn put(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Our wire types hold nothing that cannot be JSON (no maps with other keys than text), and memory takes every write.
    if serde_json::to_writer(&mut *out, value).is_err() {
        tracing::error!("a value of the wire cannot be written as JSON");
    }
}

/// What the runtime said, as JSON if it is, else as text; always on one line.
fn native_json(out: &mut Vec<u8>, native: &[u8]) {
    if serde_json::from_slice::<&RawValue>(native).is_ok() {
        // Inside a string a line end would not be valid JSON: the ones here are white space between tokens.
        out.extend(native.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
    } else {
        put(out, &String::from_utf8_lossy(native));
    }
}

/// Appends a text frame, whole.
pub fn ws_text(out: &mut Vec<u8>, payload: &[u8]) {
    out.reserve(payload.len() + 10);
    out.push(0x81);
    match payload.len() {
        len @ 0..=125 => out.push(len as u8),
        len @ 126..=0xffff => {
            out.push(126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            out.push(127);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

/// The parameters of a notification of the native WebSocket.
pub trait Notification: Serialize {
    /// Its method.
    const METHOD: &'static str;
}

/// Appends a notification of the native WebSocket as a text frame.
pub fn ws_notify<N: Notification>(out: &mut Vec<u8>, params: &N) {
    ws_message(out, N::METHOD, params);
}

/// Appends a JSON-RPC notification as a text frame.
pub fn ws_message(out: &mut Vec<u8>, method: &str, params: &impl Serialize) {
    let mut json = Vec::with_capacity(256);
    put(&mut json, params);
    ws_text(out, &splice(method, &json));
}

/// Appends an empty ping.
pub fn ws_ping(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x89, 0]);
}

/// Appends one server-sent event as one chunk. `data` is one line.
pub fn sse_event(out: &mut Vec<u8>, id: Option<&Cursor>, event: &str, data: &[u8]) {
    use std::io::Write;
    let id = id.map(|cursor| format!("id: {cursor}\n")).unwrap_or_default();
    let len = id.len() + "event: \ndata: \n\n".len() + event.len() + data.len();
    out.reserve(len + 20);
    // Memory takes every write.
    let _ = write!(out, "{len:x}\r\n{id}event: {event}\ndata: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n\r\n");
}

/// Appends one server-sent event without a name as one chunk, for protocols whose events name themselves. `data` is one line.
pub fn sse_data(out: &mut Vec<u8>, id: Option<&Cursor>, data: &[u8]) {
    use std::io::Write;
    let id = id.map(|cursor| format!("id: {cursor}\n")).unwrap_or_default();
    let len = id.len() + "data: \n\n".len() + data.len();
    out.reserve(len + 20);
    // Memory takes every write.
    let _ = write!(out, "{len:x}\r\n{id}data: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n\r\n");
}

/// Appends a server-sent event of the gateway's own.
pub fn sse_notify(out: &mut Vec<u8>, id: Option<&Cursor>, event: &str, data: &impl Serialize) {
    let mut json = Vec::with_capacity(256);
    put(&mut json, data);
    sse_event(out, id, event, &json);
}

/// Appends lines of a server-sent stream that are no event (a comment, `retry:`) as one chunk.
pub fn sse_lines(out: &mut Vec<u8>, lines: &str) {
    use std::io::Write;
    let _ = write!(out, "{:x}\r\n{lines}\n\n\r\n", lines.len() + 2);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use plexus_protocol::{Origin, RuntimeId, SessionState, Timestamp};

    fn encoder(projection: Projection, framing: Framing) -> Encoder {
        let view: SessionView = Arc::new(|id| {
            Some(Arc::new(SessionInfo {
                session_id: id.clone(),
                runtime_id: RuntimeId::trusted("demo"),
                dialect: "acp".into(),
                native_id: None,
                title: None,
                cwd: "/".into(),
                state: SessionState::Waiting,
                run_id: None,
                doing: None,
                archived: false,
                open_requests: 1,
                requests: Vec::new(),
                queue: Vec::new(),
                created_at: Timestamp::default(),
                prompted_at: None,
                updated_at: Timestamp::default(),
                message_count: None,
                last_user_message: None,
                restartable: false,
            }))
        });
        Encoder {
            epoch: Epoch::new("k3f9").unwrap(),
            projection,
            framing,
            view,
            doing_at: Arc::new(|_| Some(Position(8))),
        }
    }

    fn event(kind: Kind, body: &Value, native: Option<&[u8]>) -> Event {
        Event {
            position: Position(7),
            origin: Arc::new(Origin {
                session_id: SessionId::trusted("s_1"),
                runtime_id: RuntimeId::trusted("demo"),
                dialect: "acp".into(),
            }),
            run_id: RunId::trusted("r_1"),
            seq: 0,
            at: Timestamp::default(),
            kind,
            body: body.to_string().into(),
            native: native.map(bytes::Bytes::copy_from_slice),
        }
    }

    /// The messages of an event, by the WebSocket rules of an independent reader: tungstenite's.
    fn messages(event: &Event) -> Vec<Value> {
        let mut out = Vec::new();
        encoder(Projection::Canonical, Framing::WebSocket).events(&mut out, &[Arc::new(event.clone())], |_, _| {});
        read(out)
    }

    fn read(bytes: Vec<u8>) -> Vec<Value> {
        use tungstenite::protocol::{Role, WebSocket};
        let mut socket = WebSocket::from_raw_socket(std::io::Cursor::new(bytes), Role::Client, None);
        let mut all = Vec::new();
        while let Ok(message) = socket.read() {
            all.push(serde_json::from_str(message.to_text().unwrap()).unwrap());
        }
        all
    }

    #[test]
    fn frames_of_every_length_are_what_others_read() {
        for len in [0, 1, 125, 126, 127, 65_535, 65_536, 100_000] {
            let (mut out, text) = (Vec::new(), json!("x".repeat(len)).to_string());
            ws_text(&mut out, text.as_bytes());
            ws_text(&mut out, b"2");
            assert_eq!(read(out), [json!("x".repeat(len)), json!(2)], "{len}");
        }
    }

    #[test]
    fn a_request_is_asked_in_the_words_of_the_ui_protocol() {
        for (kind, method) in [
            ("confirm", "ui.confirm.request"),
            ("permission", "ui.confirm.request"),
            ("elicitation", "ui.confirm.request"),
            ("prompt", "ui.prompt.request"),
            ("pick", "ui.pick.request"),
        ] {
            let body = json!({ "request_id": "q_\"1", "session_id": "s_1", "type": kind, "title": "t", "display": "d", "danger": true, "new": [1] });
            let all = messages(&event(Kind::RequestOpened, &body, None));
            let methods: Vec<_> = all.iter().map(|message| message["method"].as_str().unwrap()).collect();
            assert_eq!(methods, ["agent.event", method, "session.updated"]);
            assert_eq!(all[1]["id"], "q_\"1");
            let mut params = body.clone();
            params["message"] = "d".into();
            params["danger_level"] = "danger".into();
            assert_eq!(all[1]["params"], params, "everything of the request, and what the protocol wants besides");
            assert_eq!(all[2]["params"]["session"]["state"], "waiting");
        }
        assert_eq!(
            messages(&event(Kind::RequestOpened, &json!({ "type": "new" }), None)).len(),
            2,
            "no question we know"
        );
    }

    #[test]
    fn runs_usage_and_resolutions_are_said_twice() {
        let said = |kind, body| messages(&event(kind, &body, None)).swap_remove(1);
        let status = said(Kind::RunStatus, json!({ "run_id": "r_1", "status": "awaiting_ui", "message": "m" }));
        assert_eq!(status["method"], "run.status");
        assert_eq!(
            status["params"],
            json!({ "session_id": "s_1", "run_id": "r_1", "status": "awaiting_ui", "message": "m" })
        );
        assert_eq!(said(Kind::RunEnded, json!({ "status": "cancelled" }))["params"]["status"], "cancelled");
        let resolved = said(Kind::RequestResolved, json!({ "request_id": "q", "state": "answered" }));
        assert_eq!(
            (&resolved["method"], &resolved["params"]["request_id"]),
            (&json!("ui.request.resolved"), &json!("q"))
        );
        let context = said(Kind::UsageUpdate, json!({ "contextLeftPercent": 40 }));
        assert_eq!(
            (&context["method"], &context["params"]["context_left_percent"]),
            (&json!("run.context"), &json!(40.0))
        );
        assert_eq!(messages(&event(Kind::UsageUpdate, &json!({ "used": 1 }), None)).len(), 1);
        assert_eq!(messages(&event(Kind::AgentMessageChunk, &json!({}), None)).len(), 1);
        let turn = Event { position: Position(8), ..event(Kind::AgentMessageChunk, &json!({}), None) };
        assert_eq!(messages(&turn)[1]["method"], "session.updated", "it does something else from here on");
    }

    #[test]
    fn what_the_runtime_said_goes_along_on_one_line() {
        for (native, shown) in [
            (&b"{\"a\":\r\n [1.50]}"[..], r#"{"a":   [1.50]}"#),
            (b"not json", r#""not json""#),
            (b"two\nlines", r#""two\nlines""#),
            (b"\xff", "\"\u{fffd}\""),
        ] {
            for framing in [Framing::WebSocket, Framing::Sse] {
                let mut out = Vec::new();
                let event = event(Kind::Raw, &json!({ "x": 1 }), Some(native));
                encoder(Projection::Native, framing).event(&mut out, &mut Vec::new(), &event);
                let text = String::from_utf8_lossy(&out).into_owned();
                assert!(text.contains(&format!(r#","native":{shown}}}"#)), "{text}");
                out.clear();
                encoder(Projection::Canonical, framing).event(&mut out, &mut Vec::new(), &event);
                assert!(!String::from_utf8_lossy(&out).contains("native"));
            }
        }
    }

    #[test]
    fn an_event_is_one_chunk() {
        let mut out = Vec::new();
        sse_event(&mut out, Some(&"k3f9:7".parse().unwrap()), "raw", b"{}");
        assert_eq!(out, b"20\r\nid: k3f9:7\nevent: raw\ndata: {}\n\n\r\n");
        out.clear();
        sse_lines(&mut out, ": head k3f9:7");
        assert_eq!(out, b"f\r\n: head k3f9:7\n\n\r\n");
    }
}
