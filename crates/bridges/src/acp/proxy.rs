//! The messages between an editor and the gateway, and which of them are sent again after a reconnect. One file, because the rule for each
//! kind of message that may be lost depends on the others. Pure: lines in, lines out; no I/O, no clock, no randomness.
//!
//! The log is the source of truth. The state here is limited to the unanswered messages of one editor: enough to continue on another
//! connection.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// Maximum number of unanswered questions of one gateway; beyond it the oldest is dropped, and the editor's answer to it is forwarded
/// unchanged.
const OPEN_REQUESTS_MAX: usize = 1024;
/// Maximum number of the editor's answers that are stored in case the gateway did not receive them; beyond it the oldest is dropped, and
/// its question is asked again if the answer was lost.
const ANSWERED_MAX: usize = 256;
/// Maximum number of unanswered requests of an editor; one more is refused.
const PENDING_MAX: usize = 1024;
/// The JSON-RPC error of a request that may or may not have been executed.
const INTERNAL_ERROR: i64 = -32603;
/// Methods whose requests are idempotent.
const IDEMPOTENT: &[&str] = &[
    "authenticate",
    "session/attach",
    "session/list",
    "session/load",
    "session/resume",
    "session/set_config_option",
    "session/set_mode",
    "session/set_model",
];
/// Methods whose result adds the editor to a session.
const JOIN_METHODS: &[&str] = &["session/attach", "session/load", "session/new", "session/resume"];

/// The output of the proxy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ProxyOutput {
    /// Lines for the editor.
    pub(super) editor: VecDeque<String>,
    /// Messages for the gateway.
    pub(super) gateway: VecDeque<String>,
    /// Messages for stderr.
    pub(super) log: Vec<String>,
}

/// The members of a JSON object, unparsed.
type Members = BTreeMap<String, Box<RawValue>>;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Deserializes a value that distinguishes `null` from an absent one.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The common part of all parameters and results. A member of another type counts as absent.
#[derive(Default, Deserialize)]
struct MessageHead {
    #[serde(default, rename = "sessionId")]
    session: Option<Box<RawValue>>,
    #[serde(default, rename = "_meta")]
    meta: Option<Box<RawValue>>,
}

/// The gateway's part of a `_meta`.
#[derive(Default, Deserialize)]
struct PlexusMeta {
    #[serde(default)]
    cursor: Option<String>,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    request_id: Option<String>,
    /// The ids of the open questions of a session.
    #[serde(default)]
    requests: Option<Vec<String>>,
}

/// The gateway's notification beside ACP, for editors that request it: a position in the log.
#[derive(Default, Deserialize)]
struct Envelope {
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    cursor: Option<String>,
}

fn read<T: DeserializeOwned + Default>(json: Option<&RawValue>) -> T {
    json.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default()
}

impl MessageHead {
    fn read(params: Option<&RawValue>) -> Self {
        read(params)
    }

    fn session(&self) -> Option<String> {
        read(self.session.as_deref())
    }

    fn plexus(&self) -> PlexusMeta {
        #[derive(Default, Deserialize)]
        struct Meta {
            #[serde(default)]
            plexus: Option<Box<RawValue>>,
        }
        read(read::<Meta>(self.meta.as_deref()).plexus.as_deref())
    }
}

/// An unanswered request of the editor.
struct Pending {
    /// The id as the editor wrote it.
    id: String,
    method: String,
    session: Option<String>,
    params: Option<Box<RawValue>>,
    /// The idempotency key, if the request is a prompt.
    key: Option<String>,
    /// `true` if the editor cancelled the prompt.
    cancelled: bool,
    /// The last cursor received, if the request replays history.
    replayed_to: Option<String>,
    /// `true` if this is the editor's `session/new` that joins an existing session.
    joins: bool,
    /// The previous state of the session, if the request joins one.
    before: Option<JoinedSession>,
}

/// A session that the editor has joined.
struct JoinedSession {
    /// The method to rejoin the session, and its parameters.
    method: &'static str,
    params: Box<RawValue>,
    cursor: Option<String>,
}

impl JoinedSession {
    /// Records a cursor, unless it is older. Cursors of different epochs are not comparable here.
    fn record_cursor(&mut self, cursor: String) {
        let index = |cursor: &str| {
            let (epoch, position) = cursor.split_once(':')?;
            Some((epoch.to_owned(), position.parse::<u64>().ok()?))
        };
        let before = self.cursor.as_deref().and_then(index);
        let earlier = |(epoch, position)| before.is_some_and(|(old, last)| old == epoch && position < last);
        if !index(&cursor).is_some_and(earlier) {
            self.cursor = Some(cursor);
        }
    }
}

/// A question that the editor shows.
struct OpenRequest {
    /// The id that the editor received.
    id: String,
    /// The gateway's id, if it is valid for one connection only; `None` if the question is in the log and has a permanent id.
    connection_id: Option<String>,
    session: Option<String>,
}

/// The progress of a reconnect.
#[derive(Debug, PartialEq, Eq)]
enum ReplayStage {
    /// There is no connection.
    Disconnected,
    /// `initialize` was sent.
    Hello,
    /// The editor's sessions are being rejoined; the map has the pending requests with their sessions.
    Sessions(BTreeMap<String, String>),
    /// All messages are forwarded.
    Ready,
}

/// The state of the proxy; see the module documentation.
pub(super) struct AcpProxy {
    /// A unique prefix of this bridge's ids and keys.
    name: String,
    /// The session that the editor's first `session/new` joins.
    join: Option<String>,
    /// The runtime of new sessions.
    runtime: Option<String>,
    stage: ReplayStage,
    /// The number of the connection.
    connection: u64,
    count: u64,
    /// The editor's `initialize` parameters, once answered.
    initialize_params: Option<Box<RawValue>>,
    sessions: BTreeMap<String, JoinedSession>,
    /// The unanswered requests, in the order in which they were sent.
    pending: Vec<Pending>,
    open_requests: VecDeque<OpenRequest>,
    /// The editor's answers to questions in the log.
    answered: VecDeque<(String, String)>,
    /// Questions that were cancelled in the editor.
    retracted: VecDeque<String>,
}

impl AcpProxy {
    /// Makes a proxy without a connection. `name` must be unique among bridges.
    pub(super) fn new(name: String, join: Option<String>, runtime: Option<String>) -> Self {
        Self {
            name,
            join,
            runtime,
            stage: ReplayStage::Disconnected,
            connection: 0,
            count: 0,
            initialize_params: None,
            sessions: BTreeMap::new(),
            pending: Vec::new(),
            open_requests: VecDeque::new(),
            answered: VecDeque::new(),
            retracted: VecDeque::new(),
        }
    }

    /// Returns whether the editor's lines may be forwarded. Otherwise they have to wait.
    pub(super) fn is_ready(&self) -> bool {
        self.stage == ReplayStage::Ready
    }

    // === connection ===

    /// Begins a new connection, with the editor's earlier `initialize` if there was one.
    pub(super) fn connected(&mut self, out: &mut ProxyOutput) {
        self.connection += 1;
        match self.initialize_params.clone() {
            None => self.resend_pending(out),
            Some(params) => {
                self.stage = ReplayStage::Hello;
                let id = self.own_id();
                out.gateway.push_back(request(&id, "initialize", Some(&params)));
            }
        }
    }

    /// Resets the state of the lost connection. The gateway has not received the queued messages.
    pub(super) fn disconnected(&mut self, out: &mut ProxyOutput) {
        out.gateway.clear();
        self.stage = ReplayStage::Disconnected;
        // No answer to a question of this connection alone can reach the gateway any more.
        let (connection_id, in_log) =
            self.open_requests.drain(..).partition(|open_request: &OpenRequest| open_request.connection_id.is_some());
        self.open_requests = in_log;
        for open_request in connection_id {
            let open_request: OpenRequest = open_request;
            self.retract(open_request.id, out);
        }
        let (resendable, lost) = self.pending.drain(..).partition(|pending: &Pending| {
            let method = pending.method.as_str();
            pending.key.is_some() || pending.joins || method == "initialize" || IDEMPOTENT.contains(&method)
        });
        self.pending = resendable;
        for pending in lost {
            let pending: Pending = pending;
            let message = format!(
                "the connection to the gateway was lost during {}: it may or may not have been done; check, then try \
                 again",
                pending.method
            );
            out.editor.push_back(failure(&pending.id, INTERNAL_ERROR, &message, "gateway_gone"));
        }
    }

    /// Sends unanswered requests again after the sessions were rejoined; from then on, all messages are forwarded.
    fn resend_pending(&mut self, out: &mut ProxyOutput) {
        self.stage = ReplayStage::Ready;
        for pending in &self.pending {
            let line = match &pending.replayed_to {
                // A part of the history has been received already.
                Some(cursor) if pending.method != "session/new" => {
                    let params = with_plexus(pending.params.as_deref(), &[("after", json!(cursor))]);
                    request(&pending.id, rejoin_method(&pending.method), params.as_deref())
                }
                _ => request(&pending.id, &pending.method, pending.params.as_deref()),
            };
            out.gateway.push_back(line);
            if pending.cancelled {
                // The cancellation names the prompt's own id, so that another client's newer run is not cancelled.
                let id: &RawValue = &raw(&pending.id);
                let params = json!({ "requestId": id });
                out.gateway.push_back(notification("$/cancel_request", &params));
            }
        }
    }

    /// Rejoins the editor's sessions.
    fn rejoin_sessions(&mut self, out: &mut ProxyOutput) {
        let sessions: Vec<String> = self.sessions.keys().cloned().collect();
        let mut waiting = BTreeMap::new();
        for session in sessions {
            let id = self.own_id();
            self.resume(&id, &session, true, out);
            waiting.insert(id, session);
        }
        if waiting.is_empty() { self.resend_pending(out) } else { self.stage = ReplayStage::Sessions(waiting) }
    }

    fn resume(&self, id: &str, session: &str, after: bool, out: &mut ProxyOutput) {
        let Some(joined) = self.sessions.get(session) else { return };
        let mut params = members(Some(&joined.params));
        params.insert("sessionId".into(), value(&json!(session)));
        params.entry("cwd".into()).or_insert_with(|| value(&json!("/")));
        params.entry("mcpServers".into()).or_insert_with(|| value(&json!([])));
        let params = object(&params);
        let after = joined.cursor.as_ref().filter(|_| after).map(|cursor| ("after", json!(cursor)));
        let params = with_plexus(Some(&params), after.as_slice());
        out.gateway.push_back(request(id, joined.method, params.as_deref()));
    }

    fn own_id(&mut self) -> String {
        self.count += 1;
        json!(format!("{}.{}", self.name, self.count)).to_string()
    }

    // === editor ===

    /// Handles a line of the editor. Call it only while [`is_ready`](Self::is_ready).
    pub(super) fn editor(&mut self, line: &str, out: &mut ProxyOutput) {
        let message: Message<'_> = match serde_json::from_str(line) {
            Ok(_) if !line.trim_start().starts_with('{') => {
                let message = "send one JSON-RPC message per line: an object, not a batch";
                return out.editor.push_back(failure("null", -32600, message, "invalid_request"));
            }
            Ok(message) => message,
            Err(reason) => {
                let message = format!("not a JSON-RPC message: {reason}");
                return out.editor.push_back(failure("null", -32700, &message, "parse_error"));
            }
        };
        match (message.method.as_deref(), message.id) {
            (Some(method), Some(id)) => self.editor_request(method, id.get(), message.params, out),
            (Some(method), None) => {
                if method == "$/cancel_request" {
                    let cancelled_id = members(message.params).remove("requestId");
                    let cancelled_id = cancelled_id.as_ref().map(|id| id.get());
                    let prompts = self.pending.iter_mut().filter(|pending| pending.key.is_some());
                    prompts
                        .filter(|pending| Some(&*pending.id) == cancelled_id)
                        .for_each(|pending| pending.cancelled = true);
                } else if method == "session/cancel" {
                    let session = MessageHead::read(message.params).session();
                    let prompts = self.pending.iter_mut().filter(|pending| pending.key.is_some());
                    prompts.filter(|pending| pending.session == session).for_each(|pending| pending.cancelled = true);
                }
                out.gateway.push_back(one_line(line));
            }
            (None, Some(id)) => self.editor_response(id.get(), line, &message, out),
            (None, None) => {
                let message = "not a JSON-RPC message: it has neither a method nor an id";
                out.editor.push_back(failure("null", -32600, message, "invalid_request"));
            }
        }
    }

    /// Handles a line of the editor that is not UTF-8.
    pub(super) fn invalid_utf8(line: &[u8], out: &mut ProxyOutput) {
        out.editor.push_back(failure(
            &id_of_prefix(line),
            -32700,
            "the message is not UTF-8 and was ignored",
            "parse_error",
        ));
    }

    /// Handles a line of the editor that is too long, by its beginning.
    pub(super) fn too_long(prefix: &[u8], limit: usize, out: &mut ProxyOutput) {
        let message = format!("the message is longer than {limit} bytes and was ignored");
        out.editor.push_back(failure(&id_of_prefix(prefix), -32600, &message, "too_long"));
    }

    fn editor_request(&mut self, method: &str, id: &str, params: Option<&RawValue>, out: &mut ProxyOutput) {
        if self.pending.len() >= PENDING_MAX || self.pending.iter().any(|pending| pending.id == id) {
            let message = "too many requests are pending, or this id is in use: wait for a response first";
            return out.editor.push_back(failure(id, -32600, message, "busy"));
        }
        let head = MessageHead::read(params);
        let mut pending = Pending {
            id: id.to_owned(),
            method: method.to_owned(),
            session: head.session(),
            params: params.map(RawValue::to_owned),
            key: None,
            cancelled: false,
            replayed_to: None,
            joins: false,
            before: None,
        };
        match method {
            "session/new" => {
                let mut set = Vec::new();
                if let Some(session) = self.join.take() {
                    pending.joins = true;
                    pending.session = Some(session.clone());
                    set.push(("session_id", json!(session)));
                } else if let Some(runtime) = &self.runtime {
                    set.push(("runtime_id", json!(runtime)));
                }
                pending.params = with_plexus(params, &set);
            }
            "session/prompt" => {
                self.count += 1;
                let key = head.plexus().key.unwrap_or_else(|| format!("{}.{}", self.name, self.count));
                pending.params = with_plexus(params, &[("key", json!(key))]);
                pending.key = Some(key);
                // A client that prompts receives the session's events from then on, even if it did not open the session.
                if let Some(session) = &pending.session
                    && !self.pending.iter().any(|other| other.before.is_some() && other.session == pending.session)
                {
                    let joined = || JoinedSession {
                        method: rejoin_method(method),
                        params: object(&Members::new()),
                        cursor: None,
                    };
                    self.sessions.entry(session.clone()).or_insert_with(joined);
                }
            }
            _ => {}
        }
        if JOIN_METHODS.contains(&method)
            && let Some(session) = &pending.session
        {
            pending.before = self.sessions.remove(session);
        }
        out.gateway.push_back(request(id, method, pending.params.as_deref()));
        self.pending.push(pending);
    }

    fn editor_response(&mut self, id: &str, line: &str, message: &Message<'_>, out: &mut ProxyOutput) {
        if let Some(index) = self.retracted.iter().position(|retracted| retracted == id) {
            // The question was cancelled: the answer is dropped.
            self.retracted.remove(index);
            return;
        }
        let index = self.open_requests.iter().position(|open_request| open_request.id == id);
        let open_request = index.and_then(|index| self.open_requests.remove(index));
        match open_request {
            Some(OpenRequest { connection_id: Some(connection_id), .. }) => {
                out.gateway.push_back(answer(&connection_id, message.result, message.error));
            }
            open_request => {
                if open_request.is_some() {
                    push(&mut self.answered, (id.to_owned(), one_line(line)), ANSWERED_MAX);
                }
                out.gateway.push_back(one_line(line));
            }
        }
    }

    // === gateway ===

    /// Handles a message of the gateway.
    pub(super) fn gateway(&mut self, line: &str, out: &mut ProxyOutput) {
        let Ok(message) = serde_json::from_str::<Message<'_>>(line) else {
            return out.log.push("the gateway sent something that is not a JSON-RPC message; it was ignored".into());
        };
        match (message.method.as_deref(), message.id) {
            (Some(method), Some(id)) => self.gateway_request(method, id.get(), message.params, line, out),
            (Some(method), None) => self.gateway_notification(method, message.params, line, out),
            (None, Some(id)) => self.gateway_response(id.get(), &message, line, out),
            (None, None) => out.editor.push_back(one_line(line)),
        }
    }

    fn gateway_request(
        &mut self,
        method: &str,
        id: &str,
        params: Option<&RawValue>,
        line: &str,
        out: &mut ProxyOutput,
    ) {
        let head = MessageHead::read(params);
        let (session, plexus) = (head.session(), head.plexus());
        self.record_cursor(session.as_deref(), plexus.cursor);
        // A question in the log has the name of its request, and of its revision if it has changed.
        let name = serde_json::from_str::<String>(id).ok();
        let name = name.as_deref().map(|name| name.split_once('#').map_or(name, |(request, _)| request));
        if plexus.request_id.is_none() || plexus.request_id.as_deref() != name {
            let own_id = json!(format!("{}.{}.{}", self.name, self.connection, id.trim_matches('"'))).to_string();
            out.editor.push_back(request(&own_id, method, params));
            let open_request = OpenRequest { id: own_id, connection_id: Some(id.to_owned()), session };
            return push(&mut self.open_requests, open_request, OPEN_REQUESTS_MAX);
        }
        if let Some((_, answer)) = self.answered.iter().rev().find(|(answered, _)| answered == id) {
            // The editor has already answered; the connection was lost before the gateway received the answer.
            out.gateway.push_back(answer.clone());
        } else if !self.open_requests.iter().any(|open_request| open_request.id == id) {
            self.retracted.retain(|retracted| retracted != id);
            push(
                &mut self.open_requests,
                OpenRequest { id: id.to_owned(), connection_id: None, session },
                OPEN_REQUESTS_MAX,
            );
            out.editor.push_back(one_line(line));
        }
    }

    fn gateway_notification(&mut self, method: &str, params: Option<&RawValue>, line: &str, out: &mut ProxyOutput) {
        match method {
            "session/update" => {
                let head = MessageHead::read(params);
                self.record_cursor(head.session().as_deref(), head.plexus().cursor);
                // The editor drew its own prompt when the user typed it.
                if !self.is_own_prompt(params) {
                    out.editor.push_back(one_line(line));
                }
            }
            "_plexus/event" => {
                let Envelope { session_id, cursor } = read(params);
                self.record_cursor(session_id.as_deref(), cursor);
                out.editor.push_back(one_line(line));
            }
            "$/cancel_request" => {
                let request = members(params).remove("requestId");
                // The editor never received this question, or has answered it.
                if let Some(id) = request {
                    self.question_closed(id.get(), out);
                }
            }
            _ => out.editor.push_back(one_line(line)),
        }
    }

    /// Returns whether an update echoes a pending prompt.
    fn is_own_prompt(&self, params: Option<&RawValue>) -> bool {
        if !params.is_some_and(|params| params.get().contains("user_message_chunk")) {
            return false;
        }
        let update = members(params).remove("update");
        let mut all = members(update.as_deref());
        let kind: String = read(all.remove("sessionUpdate").as_deref());
        let key = MessageHead { session: None, meta: all.remove("_meta") }.plexus().key;
        let matches = |pending: &Pending| pending.key == key;
        kind == "user_message_chunk" && key.is_some() && self.pending.iter().any(matches)
    }

    /// Handles a question that another client closed.
    fn question_closed(&mut self, id: &str, out: &mut ProxyOutput) {
        let has_id =
            |open_request: &OpenRequest| open_request.connection_id.as_deref().unwrap_or(&open_request.id) == id;
        if let Some(open_request) =
            self.open_requests.iter().position(has_id).and_then(|index| self.open_requests.remove(index))
        {
            self.retract(open_request.id, out);
        }
    }

    fn retract(&mut self, id: String, out: &mut ProxyOutput) {
        let params = json!({ "requestId": &*raw(&id) });
        out.editor.push_back(notification("$/cancel_request", &params));
        push(&mut self.retracted, id, OPEN_REQUESTS_MAX);
    }

    /// Records the cursor of a received event.
    fn record_cursor(&mut self, session: Option<&str>, cursor: Option<String>) {
        let (Some(session), Some(cursor)) = (session, cursor) else { return };
        let brings = |pending: &&mut Pending| {
            pending.session.as_deref() == Some(session) && JOIN_METHODS.contains(&pending.method.as_str())
        };
        match (self.pending.iter_mut().find(brings), self.sessions.get_mut(session)) {
            (Some(pending), _) => pending.replayed_to = Some(cursor),
            (None, Some(joined)) => joined.record_cursor(cursor),
            (None, None) => {}
        }
    }

    fn gateway_response(&mut self, id: &str, message: &Message<'_>, line: &str, out: &mut ProxyOutput) {
        let Some(index) = self.pending.iter().position(|pending| pending.id == id) else {
            if !self.own_response(id, message, out) {
                out.editor.push_back(one_line(line));
            }
            return;
        };
        let pending = self.pending.remove(index);
        match (message.result, pending) {
            (Some(result), pending) => self.request_done(pending, result, out),
            // The next `session/new` may then join.
            (None, Pending { joins: true, session, .. }) => self.join = session,
            (None, Pending { before: Some(mut before), session: Some(session), replayed_to, .. }) => {
                before.cursor = replayed_to.or(before.cursor);
                self.sessions.insert(session, before);
            }
            (None, _) => {}
        }
        out.editor.push_back(one_line(line));
    }

    /// Handles the success of a request of the editor.
    fn request_done(&mut self, pending: Pending, result: &RawValue, out: &mut ProxyOutput) {
        let method = pending.method.as_str();
        if pending.key.is_some() {
            // All events of the run have been received, including the echo of the prompt.
            let cursor = MessageHead::read(Some(result)).plexus().cursor;
            let joined = pending.session.and_then(|session| self.sessions.get_mut(&session));
            if let (Some(joined), Some(cursor)) = (joined, cursor) {
                joined.record_cursor(cursor);
            }
        } else if method == "initialize" {
            self.initialize_params = pending.params;
        } else if JOIN_METHODS.contains(&method) {
            let head = MessageHead::read(Some(result));
            let plexus = head.plexus();
            let cursor = pending.replayed_to.or(plexus.cursor);
            if let Some(session) = head.session().or(pending.session) {
                self.close_others(&session, plexus.requests, out);
                // The session's folder and servers are not sent again.
                let mut params = members(pending.params.as_deref());
                params.remove("_meta");
                let joined = JoinedSession { method: rejoin_method(method), params: object(&params), cursor };
                self.sessions.insert(session, joined);
            }
        } else if ["session/close", "session/delete", "session/detach"].contains(&method)
            && let Some(session) = pending.session
        {
            self.sessions.remove(&session);
        }
    }

    /// Handles the response to a request of the bridge itself; returns `false` if it is a response to another request.
    fn own_response(&mut self, id: &str, message: &Message<'_>, out: &mut ProxyOutput) -> bool {
        match &mut self.stage {
            ReplayStage::Hello => {
                match message.error {
                    None => self.rejoin_sessions(out),
                    Some(error) => {
                        let error_message = error_message(error);
                        out.log.push(format!("the gateway refuses to reconnect the editor: {error_message}"));
                        // The gateway will also refuse the editor's own requests.
                        self.resend_pending(out);
                    }
                }
                true
            }
            ReplayStage::Sessions(waiting) => {
                let Some(session) = waiting.remove(id) else { return false };
                let last = waiting.is_empty();
                match message.error {
                    None => self.rejoined(&session, message.result, out),
                    Some(error) => {
                        if self.rejoin_failed(&session, error, out) {
                            return true;
                        }
                    }
                }
                if last {
                    self.resend_pending(out);
                }
                true
            }
            ReplayStage::Disconnected | ReplayStage::Ready => false,
        }
    }

    /// Updates a session that the editor has rejoined.
    fn rejoined(&mut self, session: &str, result: Option<&RawValue>, out: &mut ProxyOutput) {
        let PlexusMeta { cursor, requests, .. } = MessageHead::read(result).plexus();
        if let Some(joined) = self.sessions.get_mut(session)
            && joined.cursor.is_none()
        {
            joined.cursor = cursor;
        }
        self.close_others(session, requests, out);
    }

    /// Cancels the questions of a session that are not in `open`. The gateway's state counts, not its messages: those about the end of a
    /// question may have been lost with a connection.
    fn close_others(&mut self, session: &str, open: Option<Vec<String>>, out: &mut ProxyOutput) {
        let Some(open) = open else { return };
        let open: Vec<String> = open.into_iter().map(|id| json!(id).to_string()).collect();
        let is_closed = |open_request: &&OpenRequest| {
            open_request.connection_id.is_none()
                && open_request.session.as_deref() == Some(session)
                && !open.contains(&open_request.id)
        };
        let closed: Vec<String> =
            self.open_requests.iter().filter(is_closed).map(|open_request| open_request.id.clone()).collect();
        for id in closed {
            self.question_closed(&id, out);
        }
    }

    /// Handles a session that could not be rejoined. Returns whether another method is tried.
    fn rejoin_failed(&mut self, session: &str, error: &RawValue, out: &mut ProxyOutput) -> bool {
        let error_message = error_message(error);
        // Questions of the session are asked again if they are still open.
        let ids: Vec<String> = self
            .open_requests
            .iter()
            .filter(|open_request| open_request.session.as_deref() == Some(session))
            .map(|open_request| open_request.id.clone())
            .collect();
        for id in ids {
            self.question_closed(&id, out);
        }
        let joined = self.sessions.get_mut(session);
        if let Some(joined) = joined
            && joined.cursor.take().is_some()
        {
            out.log.push(format!("what happened in {session} meanwhile cannot be shown: {error_message}"));
            let id = self.own_id();
            self.resume(&id, session, false, out);
            if let ReplayStage::Sessions(waiting) = &mut self.stage {
                waiting.insert(id, session.to_owned());
            }
            return true;
        }
        out.log.push(format!("{session} no longer exists: {error_message}"));
        self.sessions.remove(session);
        false
    }
}

/// The method to rejoin a session that was joined by `method`.
fn rejoin_method(method: &str) -> &'static str {
    // `session/attach` includes the client's role: a watcher remains one.
    if method == "session/attach" { "session/attach" } else { "session/resume" }
}

// === JSON ===

fn push<T>(queue: &mut VecDeque<T>, one: T, limit: usize) {
    queue.push_back(one);
    if queue.len() > limit {
        queue.pop_front();
    }
}

/// Serializes a value; `null` if that fails.
fn value(json: &Value) -> Box<RawValue> {
    to_raw_value(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Makes JSON from text that was validated.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn members(json: Option<&RawValue>) -> Members {
    json.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default()
}

fn object(json: &Members) -> Box<RawValue> {
    to_raw_value(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The parameters with these members added to `_meta.plexus`; all others are unchanged.
fn with_plexus(params: Option<&RawValue>, set: &[(&str, Value)]) -> Option<Box<RawValue>> {
    if set.is_empty() {
        return params.map(RawValue::to_owned);
    }
    let mut all = members(params);
    let mut meta = members(all.get("_meta").map(|meta| &**meta));
    let mut plexus = members(meta.get("plexus").map(|plexus| &**plexus));
    plexus.extend(set.iter().map(|(name, json)| ((*name).to_owned(), value(json))));
    meta.insert("plexus".into(), object(&plexus));
    all.insert("_meta".into(), object(&meta));
    Some(object(&all))
}

/// Removes line breaks, which occur in JSON only between tokens.
fn one_line(line: &str) -> String {
    if line.bytes().any(|b| matches!(b, b'\r' | b'\n')) { line.replace(['\r', '\n'], " ") } else { line.to_owned() }
}

fn request(id: &str, method: &str, params: Option<&RawValue>) -> String {
    let params = params.map(|params| format!(r#","params":{}"#, params.get())).unwrap_or_default();
    one_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{}{params}}}"#, json!(method)))
}

fn notification(method: &str, params: &impl serde::Serialize) -> String {
    let params = to_raw_value(params).map(|params| params.get().to_owned()).unwrap_or_default();
    one_line(&format!(r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#, json!(method)))
}

fn answer(id: &str, result: Option<&RawValue>, error: Option<&RawValue>) -> String {
    let (name, json) = match (result, error) {
        (_, Some(error)) => ("error", error.get()),
        (Some(result), None) => ("result", result.get()),
        (None, None) => ("result", "null"),
    };
    one_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"{name}":{json}}}"#))
}

fn failure(id: &str, code: i64, message: &str, name: &str) -> String {
    let error = json!({ "code": code, "message": message, "data": { "code": name } });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// The message of a JSON-RPC error.
fn error_message(error: &RawValue) -> String {
    #[derive(Default, Deserialize)]
    struct ErrorText {
        message: Option<String>,
    }
    let ErrorText { message } = serde_json::from_str(error.get()).unwrap_or_default();
    message.unwrap_or_else(|| "it gave no reason".to_owned())
}

/// The id of a request that is too long to be parsed, if it precedes `params`.
fn id_of_prefix(prefix: &[u8]) -> String {
    let text = String::from_utf8_lossy(prefix);
    let head = text.split("\"params\"").next().unwrap_or_default();
    let id = head.split_once("\"id\"").and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
    let id = id.and_then(|rest| serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok());
    match id {
        Some(id @ (Value::String(_) | Value::Number(_))) => id.to_string(),
        _ => "null".into(),
    }
}
