//! Frames: an event as bytes for a transport. Pure: no socket, no clock, no task.
//!
//! A server's WebSocket frames are unmasked and an SSE stream consists of HTTP chunks, so both are made once and written to
//! every plain connection unchanged. Where hyper writes the response, it makes the chunks itself.

// Every event kind needs a decision here before it compiles.
#![deny(clippy::wildcard_enum_match_arm)]

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::wire;
use plexus_protocol::api::history::EventEnvelope;
pub use plexus_protocol::api::rpc::Projection;
use plexus_protocol::api::stream::{RunContextParams, RunStatusParams, SessionUpdated};
use plexus_protocol::{Cursor, Epoch, Event, Kind, Position, RequestType, Resolution, Risk, SessionId, SessionInfo};

/// The framing of events for a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// JSON-RPC notifications in WebSocket text frames.
    WebSocket,
    /// Server-sent events, each in one HTTP chunk, for writing to the socket itself.
    Sse,
    /// Server-sent events without chunks, for the body of a response that hyper writes.
    SseBody,
}

/// Looks up a session's current state; `None` if the session no longer exists.
pub type SessionView = Arc<dyn Fn(&SessionId) -> Option<Arc<SessionInfo>> + Send + Sync>;

/// Looks up the position of the event that began a session's current activity.
pub type ActivityStart = Arc<dyn Fn(&SessionId) -> Option<Position> + Send + Sync>;

/// Makes frames from events.
#[derive(Clone)]
pub struct Encoder {
    /// The log's epoch, for cursors.
    pub epoch: Epoch,
    /// The parts of the events that are sent.
    pub projection: Projection,
    /// The transport.
    pub framing: Framing,
    /// The lookup of the session for `session.updated`.
    pub view: SessionView,
    /// The lookup of the event that began the session's current activity; it is followed by a `session.updated`.
    pub activity_start: ActivityStart,
}

impl Encoder {
    /// Appends all frames of these events for a subscriber, and calls `each` with the end of the frames of each event. A changed session
    /// is sent once, in its current state, with the last of these events that changed it.
    pub fn events(&self, out: &mut Vec<u8>, events: &[Arc<Event>], mut each: impl FnMut(Position, usize)) {
        let mut scratch = Vec::new();
        let updates = self.session_updates(events);
        for (event, update) in events.iter().zip(updates) {
            self.event(out, &mut scratch, event);
            if update && let Some(session) = (self.view)(&event.origin.session_id) {
                ws_notify(out, &SessionUpdated { session });
            }
            each(event.position, out.len());
        }
    }

    /// Returns which of these events are followed by a `session.updated`.
    fn session_updates(&self, events: &[Arc<Event>]) -> Vec<bool> {
        let mut updates = vec![false; events.len()];
        if self.framing != Framing::WebSocket {
            return updates;
        }
        let mut updated: Vec<&SessionId> = Vec::new();
        for (event, update) in events.iter().zip(&mut updates).rev() {
            let session = &event.origin.session_id;
            if self.changes_session(event) && !updated.contains(&session) {
                updated.push(session);
                *update = true;
            }
        }
        updates
    }

    /// Appends one event, and the equivalent messages of the UI protocol.
    fn event(&self, out: &mut Vec<u8>, scratch: &mut Vec<u8>, event: &Event) {
        scratch.clear();
        match self.framing {
            Framing::Sse | Framing::SseBody => {
                self.envelope(scratch, event);
                let cursor = Cursor { epoch: self.epoch.clone(), position: event.position };
                self.framing.sse(out, |out| sse_event(out, Some(&cursor), event.kind.as_str(), scratch));
            }
            Framing::WebSocket => {
                scratch.extend_from_slice(br#"{"jsonrpc":"2.0","method":"agent.event","params":"#);
                self.envelope(scratch, event);
                scratch.push(b'}');
                ws_text(out, scratch);
                self.ui_messages(out, event);
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

    /// Appends the UI protocol's own messages for the event, for clients that know only those.
    fn ui_messages(&self, out: &mut Vec<u8>, event: &Event) {
        match event.kind {
            Kind::RequestOpened | Kind::RequestUpdated => {
                if let Some(frame) = ask(&event.body) {
                    out.extend_from_slice(&frame);
                }
            }
            Kind::RequestResolved => ws_text(out, &splice(Resolution::METHOD, &event.body)),
            Kind::RunStarted | Kind::RunStatus | Kind::RunEnded => {
                let run = RunBody::parse(event);
                let status = if event.kind == Kind::RunEnded { "completed" } else { "running" };
                let params = RunStatusParams {
                    session_id: event.origin.session_id.clone(),
                    run_id: event.run_id.clone(),
                    status: run.status.map_or_else(|| status.to_owned(), Cow::into_owned),
                    message: run.message.map(Cow::into_owned),
                };
                ws_notify(out, &params);
            }
            Kind::UsageUpdate => {
                if let Ok(Usage { context_left_percent: Some(percent) }) = serde_json::from_slice(&event.body) {
                    let params = RunContextParams {
                        session_id: event.origin.session_id.clone(),
                        run_id: event.run_id.clone(),
                        context_left_percent: percent,
                    };
                    ws_notify(out, &params);
                }
            }
            // The UI protocol has no message of its own for these.
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

    /// Returns whether the event changes its session's [`SessionInfo`].
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
                (self.activity_start)(&event.origin.session_id) == Some(event.position)
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

impl Notification for EventEnvelope {
    const METHOD: &'static str = "agent.event";
}

impl Notification for Resolution<'_> {
    const METHOD: &'static str = "ui.request.resolved";
}

impl Notification for SessionUpdated {
    const METHOD: &'static str = "session.updated";
}

impl Notification for RunStatusParams {
    const METHOD: &'static str = "run.status";
}

impl Notification for RunContextParams {
    const METHOD: &'static str = "run.context";
}

/// The methods of requests to clients; their ids are the `request_id`s.
pub(super) const ASKS: [&str; 3] = [CONFIRM, PROMPT, PICK];
const CONFIRM: &str = "ui.confirm.request";
const PROMPT: &str = "ui.prompt.request";
const PICK: &str = "ui.pick.request";

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
    fn parse(event: &'a Event) -> Self {
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
    #[serde(borrow, default)]
    danger_level: Option<Cow<'a, str>>,
    #[serde(default)]
    risk: Option<Risk>,
    #[serde(default)]
    revision: u64,
}

/// Returns the UI protocol's request for a [`Request`](plexus_protocol::Request) as JSON, framed. Its id is the `request_id`, its params
/// are the request with a `message` and `danger_level`, which that protocol requires. `None` if the bytes are not a request.
pub fn ask(request: &[u8]) -> Option<Vec<u8>> {
    let info: PromptInfo<'_> = serde_json::from_slice(request).ok()?;
    let method = match info.kind {
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => CONFIRM,
        RequestType::Prompt => PROMPT,
        RequestType::Pick => PICK,
    };
    let mut json = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    put(&mut json, &wire::request_name(&info.request_id, info.revision));
    json.extend_from_slice(br#","method":""#);
    json.extend_from_slice(method.as_bytes());
    json.extend_from_slice(br#"","params":"#);
    json.extend_from_slice(request.strip_suffix(b"}")?);
    if info.message.is_none() {
        json.extend_from_slice(br#","message":"#);
        put(&mut json, &info.display);
    }
    // A runtime's own level is a member of the request already.
    if info.danger_level.is_none() {
        json.extend_from_slice(br#","danger_level":"#);
        put(&mut json, if info.danger || info.risk == Some(Risk::Danger) { "danger" } else { "normal" });
    }
    json.extend_from_slice(b"}}");
    let mut frame = Vec::with_capacity(json.len() + 10);
    ws_text(&mut frame, &json);
    Some(frame)
}

/// Returns a notification with params that are JSON text already.
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
    // The wire types always serialize (no maps with keys other than text), and writing to memory does not fail.
    if serde_json::to_writer(&mut *out, value).is_err() {
        tracing::error!("a value of the wire cannot be written as JSON");
    }
}

/// Appends the runtime's own message, as JSON if it is JSON, else as text; always on one line.
fn native_json(out: &mut Vec<u8>, native: &[u8]) {
    if serde_json::from_slice::<&RawValue>(native).is_ok() {
        // A raw line end is not valid inside a JSON string, so it is white space between tokens.
        out.extend(native.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
    } else {
        put(out, &String::from_utf8_lossy(native));
    }
}

/// Appends a complete text frame.
pub fn ws_text(out: &mut Vec<u8>, payload: &[u8]) {
    ws_frame(out, 0x81, payload);
}

/// Appends a binary frame.
pub fn ws_binary(out: &mut Vec<u8>, payload: &[u8]) {
    ws_frame(out, 0x82, payload);
}

/// Appends an unmasked frame; `head` is its first byte.
fn ws_frame(out: &mut Vec<u8>, head: u8, payload: &[u8]) {
    out.reserve(payload.len() + 10);
    out.push(head);
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
    /// The method.
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

/// Appends one server-sent event. `data` is one line.
pub fn sse_event(out: &mut Vec<u8>, id: Option<&Cursor>, event: &str, data: &[u8]) {
    use std::io::Write;
    out.reserve(data.len() + 96);
    // Writing to memory does not fail.
    if let Some(cursor) = id {
        let _ = writeln!(out, "id: {cursor}");
    }
    let _ = write!(out, "event: {event}\ndata: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

/// Appends one server-sent event without a name, for protocols whose events name themselves. A line end in `data` must be
/// white space between tokens: it becomes a space.
pub fn sse_data(out: &mut Vec<u8>, id: Option<&dyn std::fmt::Display>, data: &[u8]) {
    use std::io::Write;
    out.reserve(data.len() + 96);
    if let Some(id) = id {
        let _ = writeln!(out, "id: {id}");
    }
    out.extend_from_slice(b"data: ");
    out.extend(data.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
    out.extend_from_slice(b"\n\n");
}

/// Appends a named server-sent event.
pub fn sse_notify(out: &mut Vec<u8>, id: Option<&Cursor>, event: &str, data: &impl Serialize) {
    let mut json = Vec::with_capacity(256);
    put(&mut json, data);
    sse_event(out, id, event, &json);
}

/// Appends lines of a server-sent stream that are not an event (a comment, `retry:`).
pub fn sse_lines(out: &mut Vec<u8>, lines: &str) {
    out.extend_from_slice(lines.as_bytes());
    out.extend_from_slice(b"\n\n");
}

impl Framing {
    /// Appends the part of a server-sent stream that `write` produces, in this framing.
    pub fn sse(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        write(out);
        if self == Self::Sse && out.len() > start {
            let head = format!("{:x}\r\n", out.len() - start);
            out.splice(start..start, head.into_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Appends a notification of the gateway's own: on a server-sent stream an event of this name.
    pub fn notify<N: Notification>(self, out: &mut Vec<u8>, id: Option<&Cursor>, event: &str, params: &N) {
        match self {
            Self::WebSocket => ws_notify(out, params),
            Self::Sse | Self::SseBody => self.sse(out, |out| sse_notify(out, id, event, params)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use plexus_protocol::{Origin, RunId, RuntimeId, SessionState, Timestamp};

    fn encoder(projection: Projection, framing: Framing) -> Encoder {
        let view: SessionView = Arc::new(|id| {
            Some(Arc::new(SessionInfo {
                session_id: id.clone(),
                runtime_id: RuntimeId::trusted("demo"),
                dialect: "acp".into(),
                native_id: None,
                title: None,
                cwd: "/".into(),
                project: None,
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
                linked: false,
                restartable: false,
            }))
        });
        Encoder {
            epoch: Epoch::new("k3f9").unwrap(),
            projection,
            framing,
            view,
            activity_start: Arc::new(|_| Some(Position(8))),
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
    fn frames_of_every_length_are_read_by_other_libraries() {
        for len in [0, 1, 125, 126, 127, 65_535, 65_536, 100_000] {
            let (mut out, text) = (Vec::new(), json!("x".repeat(len)).to_string());
            ws_text(&mut out, text.as_bytes());
            ws_text(&mut out, b"2");
            assert_eq!(read(out), [json!("x".repeat(len)), json!(2)], "{len}");
        }
    }

    #[test]
    fn ui_protocol_request_has_its_own_words() {
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
    fn ui_protocol_reports_runs_usage_and_resolutions_twice() {
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
    fn native_payload_is_carried_on_one_line() {
        for (native, shown) in [
            (&b"{\"a\":\r\n [1.50]}"[..], r#"{"a":   [1.50]}"#),
            (b"not json", r#""not json""#),
            (b"two\nlines", r#""two\nlines""#),
            (b"\xff", "\"\u{fffd}\""),
        ] {
            for framing in [Framing::WebSocket, Framing::Sse] {
                let mut out = Vec::new();
                let event = event(Kind::Raw, &json!({ "x": 1 }), Some(native));
                encoder(Projection::Native, framing).events(&mut out, &[Arc::new(event.clone())], |_, _| {});
                let text = String::from_utf8_lossy(&out).into_owned();
                assert!(text.contains(&format!(r#","native":{shown}}}"#)), "{text}");
                out.clear();
                encoder(Projection::Canonical, framing).events(&mut out, &[Arc::new(event.clone())], |_, _| {});
                assert!(!String::from_utf8_lossy(&out).contains("native"));
            }
        }
    }

    #[test]
    fn event_is_one_chunk() {
        let mut out = Vec::new();
        Framing::Sse.sse(&mut out, |out| sse_event(out, Some(&"k3f9:7".parse().unwrap()), "raw", b"{}"));
        assert_eq!(out, b"20\r\nid: k3f9:7\nevent: raw\ndata: {}\n\n\r\n");
        out.clear();
        Framing::Sse.sse(&mut out, |out| sse_lines(out, ": head k3f9:7"));
        assert_eq!(out, b"f\r\n: head k3f9:7\n\n\r\n");
        out.clear();
        Framing::Sse.sse(&mut out, |_| {});
        assert_eq!(out, b"", "an empty chunk would end the response");
        for kind in [Kind::Raw, Kind::RunStarted] {
            let (mut chunked, mut bare) = (Vec::new(), Vec::new());
            let event = event(kind, &json!({ "x": 1 }), None);
            encoder(Projection::Canonical, Framing::Sse).events(&mut chunked, &[Arc::new(event.clone())], |_, _| {});
            encoder(Projection::Canonical, Framing::SseBody).events(&mut bare, &[Arc::new(event.clone())], |_, _| {});
            let head = format!("{:x}\r\n", bare.len());
            assert_eq!(chunked, [head.as_bytes(), &bare, b"\r\n"].concat());
        }
    }

    #[test]
    fn data_without_a_name_is_one_line() {
        let mut out = Vec::new();
        sse_data(&mut out, Some(&"e:1+2"), b"{\n\"a\":\r\n1}");
        assert_eq!(String::from_utf8(out).unwrap(), "id: e:1+2\ndata: { \"a\":  1}\n\n");
    }
}
