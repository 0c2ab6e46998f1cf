//! What passes between an editor and the gateway, and what is said again when the gateway comes back; one file, because
//! each kind of message that may be lost on the way is a rule about the others. Pure: lines in, lines out; no I/O, no clock,
//! no randomness of its own.
//!
//! The truth is the gateway's log. What stands here is only what one editor was told and has not been answered: enough to
//! go on with another connection as if it were the same.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// Questions of one gateway that an editor has not answered; past it the oldest is forgotten, and the editor's answer to it
/// is passed on as it comes.
const ASKED: usize = 1024;
/// Answers of the editor that are kept in case the gateway did not hear them; past it the oldest is forgotten, and asked
/// anew if it was lost.
const ANSWERED: usize = 256;
/// Requests of an editor that wait for an answer; one more is refused.
const PENDING: usize = 1024;
/// The JSON-RPC error of a request that may or may not have been done.
const LOST: i64 = -32603;
/// Requests that do no harm if they are done twice.
const HARMLESS: &[&str] = &[
    "authenticate",
    "session/attach",
    "session/list",
    "session/load",
    "session/resume",
    "session/set_config_option",
    "session/set_mode",
    "session/set_model",
];
/// Requests whose answer says that the editor is in a session.
const JOINING: &[&str] = &["session/attach", "session/load", "session/new", "session/resume"];

/// What is to be said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ProxyOutput {
    /// To the editor, a line each.
    pub(super) editor: VecDeque<String>,
    /// To the gateway, a message each.
    pub(super) gateway: VecDeque<String>,
    /// To whoever reads stderr, a sentence each.
    pub(super) aside: Vec<String>,
}

/// A JSON object whose members stay as they were written.
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

/// Tells `null` from absent.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// What is read of the parameters or the result of any message. What does not fit is as if it were not there.
#[derive(Default, Deserialize)]
struct MessageHead {
    #[serde(default, rename = "sessionId")]
    session: Option<Box<RawValue>>,
    #[serde(default, rename = "_meta")]
    meta: Option<Box<RawValue>>,
}

/// The gateway's own part of a `_meta`.
#[derive(Default, Deserialize)]
struct PlexusMeta {
    #[serde(default)]
    cursor: Option<String>,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    request_id: Option<String>,
}

/// What the gateway says beside ACP, to editors that want it: where in the log it stands.
#[derive(Default, Deserialize)]
struct Envelope {
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    cursor: Option<String>,
}

fn read<T: DeserializeOwned + Default>(of: Option<&RawValue>) -> T {
    of.and_then(|of| serde_json::from_str(of.get()).ok()).unwrap_or_default()
}

impl MessageHead {
    fn of(params: Option<&RawValue>) -> Self {
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

/// A request of the editor's that has no answer yet.
struct Pending {
    /// As the editor wrote it.
    id: String,
    method: String,
    session: Option<String>,
    params: Option<Box<RawValue>>,
    /// Of a prompt: the key that it is known by.
    key: Option<String>,
    /// Of a prompt: the editor wants it to stop.
    cancelled: bool,
    /// Of what brings the past: the last place of it that came.
    told: Option<String>,
    /// The editor's `session/new`, which joins a session that is there.
    joins: bool,
    /// Of what joins a session: how the editor was in it before.
    before: Option<JoinedSession>,
}

/// A session that the editor is in.
struct JoinedSession {
    /// By which method it comes back, and with which parameters.
    method: &'static str,
    params: Box<RawValue>,
    cursor: Option<String>,
}

impl JoinedSession {
    /// Everything up to here has come. What a cursor of another life of the log means, only the gateway knows.
    fn at(&mut self, cursor: String) {
        let place = |cursor: &str| {
            let (epoch, position) = cursor.split_once(':')?;
            Some((epoch.to_owned(), position.parse::<u64>().ok()?))
        };
        let before = self.cursor.as_deref().and_then(place);
        let earlier = |(epoch, position)| before.is_some_and(|(old, last)| old == epoch && position < last);
        if !place(&cursor).is_some_and(earlier) {
            self.cursor = Some(cursor);
        }
    }
}

/// A question that the editor has before it.
struct ShownRequest {
    /// As the editor knows it.
    id: String,
    /// As the gateway knows it, where that lives no longer than the connection; `None`: it stands in the log, and has one
    /// name for ever.
    short: Option<String>,
    session: Option<String>,
}

/// How far the bridge is in saying again what was said.
#[derive(Debug, PartialEq, Eq)]
enum ReplayStage {
    /// There is no connection.
    Apart,
    /// The gateway was told who the editor is.
    Hello,
    /// The editor is brought back into its sessions: these wait for their answers.
    Sessions(BTreeMap<String, String>),
    /// Everything passes.
    Through,
}

/// See the module.
pub(super) struct AcpProxy {
    /// No other program's requests and prompts are named so.
    name: String,
    /// The session that the editor's first `session/new` joins.
    join: Option<String>,
    /// The runtime of new sessions.
    runtime: Option<String>,
    stage: ReplayStage,
    /// Which connection this is.
    connection: u64,
    count: u64,
    /// What the editor said of itself, once that was answered.
    hello: Option<Box<RawValue>>,
    sessions: BTreeMap<String, JoinedSession>,
    /// In the order of asking.
    pending: Vec<Pending>,
    asked: VecDeque<ShownRequest>,
    /// The editor's answers to questions of the log.
    answered: VecDeque<(String, String)>,
    /// Questions that were taken back from the editor here.
    retracted: VecDeque<String>,
}

impl AcpProxy {
    /// Nothing was said yet. `name`: unlike that of any other bridge.
    pub(super) fn new(name: String, join: Option<String>, runtime: Option<String>) -> Self {
        Self {
            name,
            join,
            runtime,
            stage: ReplayStage::Apart,
            connection: 0,
            count: 0,
            hello: None,
            sessions: BTreeMap::new(),
            pending: Vec::new(),
            asked: VecDeque::new(),
            answered: VecDeque::new(),
            retracted: VecDeque::new(),
        }
    }

    /// Whether the editor's lines may be taken. While not, it waits.
    pub(super) fn through(&self) -> bool {
        self.stage == ReplayStage::Through
    }

    // === the connection ===

    /// There is a connection.
    pub(super) fn up(&mut self, out: &mut ProxyOutput) {
        self.connection += 1;
        match self.hello.clone() {
            None => self.go_on(out),
            Some(params) => {
                self.stage = ReplayStage::Hello;
                let id = self.own_id();
                out.gateway.push_back(request(&id, "initialize", Some(&params)));
            }
        }
    }

    /// The connection is lost. Whatever is in `out` for the gateway never reached it.
    pub(super) fn down(&mut self, out: &mut ProxyOutput) {
        out.gateway.clear();
        self.stage = ReplayStage::Apart;
        // What the gateway asked of this connection alone, nobody waits for any more.
        let (short, lasting) = self.asked.drain(..).partition(|asked: &ShownRequest| asked.short.is_some());
        self.asked = lasting;
        for asked in short {
            let asked: ShownRequest = asked;
            self.retract(asked.id, out);
        }
        let (kept, lost) = self.pending.drain(..).partition(|pending: &Pending| {
            let method = pending.method.as_str();
            pending.key.is_some() || pending.joins || method == "initialize" || HARMLESS.contains(&method)
        });
        self.pending = kept;
        for pending in lost {
            let pending: Pending = pending;
            let message = format!(
                "the connection to the gateway was lost during {}: it may or may not have been done; check, then try \
                 again",
                pending.method
            );
            out.editor.push_back(failure(&pending.id, LOST, &message, "gateway_gone"));
        }
    }

    /// Everything was said again: what waits for an answer is asked again, and from now on everything passes.
    fn go_on(&mut self, out: &mut ProxyOutput) {
        self.stage = ReplayStage::Through;
        for pending in &self.pending {
            let line = match &pending.told {
                // A part of the past came already.
                Some(cursor) if pending.method != "session/new" => {
                    let params = with_plexus(pending.params.as_deref(), &[("after", json!(cursor))]);
                    request(&pending.id, back_by(&pending.method), params.as_deref())
                }
                _ => request(&pending.id, &pending.method, pending.params.as_deref()),
            };
            out.gateway.push_back(line);
            if pending.cancelled {
                // By the prompt's own name: another run, begun meanwhile by somebody else, is not meant.
                let id: &RawValue = &raw(&pending.id);
                let params = json!({ "requestId": id });
                out.gateway.push_back(notification("$/cancel_request", &params));
            }
        }
    }

    /// Brings the editor back into its sessions.
    fn come_back(&mut self, out: &mut ProxyOutput) {
        let sessions: Vec<String> = self.sessions.keys().cloned().collect();
        let mut waiting = BTreeMap::new();
        for session in sessions {
            let id = self.own_id();
            self.resume(&id, &session, true, out);
            waiting.insert(id, session);
        }
        if waiting.is_empty() { self.go_on(out) } else { self.stage = ReplayStage::Sessions(waiting) }
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

    // === the editor ===

    /// A line of the editor's. To be given only while [`through`](Self::through).
    pub(super) fn editor(&mut self, line: &str, out: &mut ProxyOutput) {
        let message: Message<'_> = match serde_json::from_str(line) {
            Ok(_) if !line.trim_start().starts_with('{') => {
                let message = "send one JSON-RPC message per line: an object, not a batch";
                return out.editor.push_back(failure("null", -32600, message, "invalid_request"));
            }
            Ok(message) => message,
            Err(why) => {
                let message = format!("not a JSON-RPC message: {why}");
                return out.editor.push_back(failure("null", -32700, &message, "parse_error"));
            }
        };
        match (message.method.as_deref(), message.id) {
            (Some(method), Some(id)) => self.editor_asks(method, id.get(), message.params, out),
            (Some(method), None) => {
                if method == "$/cancel_request" {
                    let meant = members(message.params).remove("requestId");
                    let meant = meant.as_ref().map(|id| id.get());
                    let prompts = self.pending.iter_mut().filter(|pending| pending.key.is_some());
                    prompts.filter(|pending| Some(&*pending.id) == meant).for_each(|pending| pending.cancelled = true);
                } else if method == "session/cancel" {
                    let session = MessageHead::of(message.params).session();
                    let prompts = self.pending.iter_mut().filter(|pending| pending.key.is_some());
                    prompts.filter(|pending| pending.session == session).for_each(|pending| pending.cancelled = true);
                }
                out.gateway.push_back(one_line(line));
            }
            (None, Some(id)) => self.editor_answers(id.get(), line, &message, out),
            (None, None) => {
                let message = "not a JSON-RPC message: it has neither a method nor an id";
                out.editor.push_back(failure("null", -32600, message, "invalid_request"));
            }
        }
    }

    /// A line of the editor's that is no text.
    pub(super) fn no_text(line: &[u8], out: &mut ProxyOutput) {
        out.editor.push_back(failure(&id_in(line), -32700, "the message is not UTF-8 and was ignored", "parse_error"));
    }

    /// A line of the editor's that is longer than the gateway takes; what it begins with.
    pub(super) fn too_long(beginning: &[u8], most: usize, out: &mut ProxyOutput) {
        let message = format!("the message is longer than {most} bytes and was ignored");
        out.editor.push_back(failure(&id_in(beginning), -32600, &message, "too_long"));
    }

    fn editor_asks(&mut self, method: &str, id: &str, params: Option<&RawValue>, out: &mut ProxyOutput) {
        if self.pending.len() >= PENDING || self.pending.iter().any(|pending| pending.id == id) {
            let message = "too many requests are pending, or this id is in use: wait for a response first";
            return out.editor.push_back(failure(id, -32600, message, "busy"));
        }
        let of = MessageHead::of(params);
        let mut pending = Pending {
            id: id.to_owned(),
            method: method.to_owned(),
            session: of.session(),
            params: params.map(RawValue::to_owned),
            key: None,
            cancelled: false,
            told: None,
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
                let key = of.plexus().key.unwrap_or_else(|| format!("{}.{}", self.name, self.count));
                pending.params = with_plexus(params, &[("key", json!(key))]);
                pending.key = Some(key);
                // Whoever prompts hears of the session from then on, also without having opened it.
                if let Some(session) = &pending.session
                    && !self.pending.iter().any(|other| other.before.is_some() && other.session == pending.session)
                {
                    let joined =
                        || JoinedSession { method: back_by(method), params: object(&Members::new()), cursor: None };
                    self.sessions.entry(session.clone()).or_insert_with(joined);
                }
            }
            _ => {}
        }
        if JOINING.contains(&method)
            && let Some(session) = &pending.session
        {
            pending.before = self.sessions.remove(session);
        }
        out.gateway.push_back(request(id, method, pending.params.as_deref()));
        self.pending.push(pending);
    }

    fn editor_answers(&mut self, id: &str, line: &str, message: &Message<'_>, out: &mut ProxyOutput) {
        if let Some(place) = self.retracted.iter().position(|retracted| retracted == id) {
            // It was taken back: nobody waits.
            self.retracted.remove(place);
            return;
        }
        let place = self.asked.iter().position(|asked| asked.id == id);
        let asked = place.and_then(|place| self.asked.remove(place));
        match asked {
            Some(ShownRequest { short: Some(short), .. }) => {
                out.gateway.push_back(answer(&short, message.result, message.error));
            }
            asked => {
                if asked.is_some() {
                    push(&mut self.answered, (id.to_owned(), one_line(line)), ANSWERED);
                }
                out.gateway.push_back(one_line(line));
            }
        }
    }

    // === the gateway ===

    /// A message of the gateway's.
    pub(super) fn gateway(&mut self, line: &str, out: &mut ProxyOutput) {
        let Ok(message) = serde_json::from_str::<Message<'_>>(line) else {
            return out.aside.push("the gateway sent something that is not a JSON-RPC message; it was ignored".into());
        };
        match (message.method.as_deref(), message.id) {
            (Some(method), Some(id)) => self.gateway_asks(method, id.get(), message.params, line, out),
            (Some(method), None) => self.gateway_tells(method, message.params, line, out),
            (None, Some(id)) => self.gateway_answers(id.get(), &message, line, out),
            (None, None) => out.editor.push_back(one_line(line)),
        }
    }

    fn gateway_asks(&mut self, method: &str, id: &str, params: Option<&RawValue>, line: &str, out: &mut ProxyOutput) {
        let of = MessageHead::of(params);
        let (session, plexus) = (of.session(), of.plexus());
        self.at(session.as_deref(), plexus.cursor);
        let lasting =
            plexus.request_id.is_some_and(|named| serde_json::from_str::<String>(id).is_ok_and(|id| id == named));
        if !lasting {
            let own = json!(format!("{}.{}.{}", self.name, self.connection, id.trim_matches('"'))).to_string();
            out.editor.push_back(request(&own, method, params));
            let asked = ShownRequest { id: own, short: Some(id.to_owned()), session };
            return push(&mut self.asked, asked, ASKED);
        }
        if let Some((_, answer)) = self.answered.iter().rev().find(|(answered, _)| answered == id) {
            // The editor has said it; the gateway went away before it heard.
            out.gateway.push_back(answer.clone());
        } else if !self.asked.iter().any(|asked| asked.id == id) {
            self.retracted.retain(|retracted| retracted != id);
            push(&mut self.asked, ShownRequest { id: id.to_owned(), short: None, session }, ASKED);
            out.editor.push_back(one_line(line));
        }
    }

    fn gateway_tells(&mut self, method: &str, params: Option<&RawValue>, line: &str, out: &mut ProxyOutput) {
        match method {
            "session/update" => {
                let of = MessageHead::of(params);
                self.at(of.session().as_deref(), of.plexus().cursor);
                // The editor has drawn its user's words when they were typed.
                if !self.is_own_prompt(params) {
                    out.editor.push_back(one_line(line));
                }
            }
            "_plexus/event" => {
                let Envelope { session_id, cursor } = read(params);
                self.at(session_id.as_deref(), cursor);
                out.editor.push_back(one_line(line));
            }
            "$/cancel_request" => {
                let request = members(params).remove("requestId");
                // What the editor has not before it, it was never asked, or it has answered.
                if let Some(id) = request {
                    self.taken_back(id.get(), out);
                }
            }
            _ => out.editor.push_back(one_line(line)),
        }
    }

    /// Whether an update shows the words of a prompt that waits here.
    fn is_own_prompt(&self, params: Option<&RawValue>) -> bool {
        if !params.is_some_and(|params| params.get().contains("user_message_chunk")) {
            return false;
        }
        let update = members(params).remove("update");
        let mut all = members(update.as_deref());
        let kind: String = read(all.remove("sessionUpdate").as_deref());
        let key = MessageHead { session: None, meta: all.remove("_meta") }.plexus().key;
        let waits = |pending: &Pending| pending.key == key;
        kind == "user_message_chunk" && key.is_some() && self.pending.iter().any(waits)
    }

    /// A question found its end elsewhere.
    fn taken_back(&mut self, id: &str, out: &mut ProxyOutput) {
        let of = |asked: &ShownRequest| asked.short.as_deref().unwrap_or(&asked.id) == id;
        if let Some(asked) = self.asked.iter().position(of).and_then(|place| self.asked.remove(place)) {
            self.retract(asked.id, out);
        }
    }

    fn retract(&mut self, id: String, out: &mut ProxyOutput) {
        let params = json!({ "requestId": &*raw(&id) });
        out.editor.push_back(notification("$/cancel_request", &params));
        push(&mut self.retracted, id, ASKED);
    }

    /// Everything up to here has come.
    fn at(&mut self, session: Option<&str>, cursor: Option<String>) {
        let (Some(session), Some(cursor)) = (session, cursor) else { return };
        let brings = |pending: &&mut Pending| {
            pending.session.as_deref() == Some(session) && JOINING.contains(&pending.method.as_str())
        };
        match (self.pending.iter_mut().find(brings), self.sessions.get_mut(session)) {
            (Some(pending), _) => pending.told = Some(cursor),
            (None, Some(joined)) => joined.at(cursor),
            (None, None) => {}
        }
    }

    fn gateway_answers(&mut self, id: &str, message: &Message<'_>, line: &str, out: &mut ProxyOutput) {
        let Some(place) = self.pending.iter().position(|pending| pending.id == id) else {
            if !self.own_answer(id, message, out) {
                out.editor.push_back(one_line(line));
            }
            return;
        };
        let pending = self.pending.remove(place);
        match (message.result, pending) {
            (Some(result), pending) => self.done(pending, result),
            // The next one may join, then.
            (None, Pending { joins: true, session, .. }) => self.join = session,
            (None, Pending { before: Some(mut before), session: Some(session), told, .. }) => {
                before.cursor = told.or(before.cursor);
                self.sessions.insert(session, before);
            }
            (None, _) => {}
        }
        out.editor.push_back(one_line(line));
    }

    /// A request of the editor's was done.
    fn done(&mut self, pending: Pending, result: &RawValue) {
        let method = pending.method.as_str();
        if pending.key.is_some() {
            // Everything of its run has come, the words of the prompt too.
            let cursor = MessageHead::of(Some(result)).plexus().cursor;
            let joined = pending.session.and_then(|session| self.sessions.get_mut(&session));
            if let (Some(joined), Some(cursor)) = (joined, cursor) {
                joined.at(cursor);
            }
        } else if method == "initialize" {
            self.hello = pending.params;
        } else if JOINING.contains(&method) {
            let of = MessageHead::of(Some(result));
            let cursor = pending.told.or_else(|| of.plexus().cursor);
            if let Some(session) = of.session().or(pending.session) {
                // Where it was opened in is not asked again.
                let mut params = members(pending.params.as_deref());
                params.remove("_meta");
                let joined = JoinedSession { method: back_by(method), params: object(&params), cursor };
                self.sessions.insert(session, joined);
            }
        } else if ["session/close", "session/delete", "session/detach"].contains(&method)
            && let Some(session) = pending.session
        {
            self.sessions.remove(&session);
        }
    }

    /// The answer to a request of the bridge's own, if it is one.
    fn own_answer(&mut self, id: &str, message: &Message<'_>, out: &mut ProxyOutput) -> bool {
        match &mut self.stage {
            ReplayStage::Hello => {
                match message.error {
                    None => self.come_back(out),
                    Some(error) => {
                        let words = words(error);
                        out.aside.push(format!("the gateway does not take the editor back: {words}"));
                        // It will say so to the editor's own requests.
                        self.go_on(out);
                    }
                }
                true
            }
            ReplayStage::Sessions(waiting) => {
                let Some(session) = waiting.remove(id) else { return false };
                let last = waiting.is_empty();
                match message.error {
                    None => self.back_in(&session, message.result),
                    Some(error) => {
                        if self.stays_out(&session, error, out) {
                            return true;
                        }
                    }
                }
                if last {
                    self.go_on(out);
                }
                true
            }
            ReplayStage::Apart | ReplayStage::Through => false,
        }
    }

    /// The editor is in this session again.
    fn back_in(&mut self, session: &str, result: Option<&RawValue>) {
        if let Some(joined) = self.sessions.get_mut(session)
            && joined.cursor.is_none()
        {
            joined.cursor = MessageHead::of(result).plexus().cursor;
        }
    }

    /// A session could not be resumed. Whether it is tried another way.
    fn stays_out(&mut self, session: &str, error: &RawValue, out: &mut ProxyOutput) -> bool {
        let words = words(error);
        // Whatever was asked there is asked anew, if it is open still.
        let asked: Vec<String> = self
            .asked
            .iter()
            .filter(|asked| asked.session.as_deref() == Some(session))
            .map(|asked| asked.id.clone())
            .collect();
        for id in asked {
            self.taken_back(&id, out);
        }
        let joined = self.sessions.get_mut(session);
        if let Some(joined) = joined
            && joined.cursor.take().is_some()
        {
            out.aside.push(format!("what happened in {session} meanwhile cannot be shown: {words}"));
            let id = self.own_id();
            self.resume(&id, session, false, out);
            if let ReplayStage::Sessions(waiting) = &mut self.stage {
                waiting.insert(id, session.to_owned());
            }
            return true;
        }
        out.aside.push(format!("{session} is not there any more: {words}"));
        self.sessions.remove(session);
        false
    }
}

/// How an editor that joined a session so comes back into it.
fn back_by(method: &str) -> &'static str {
    // It says which part the client has: a watcher stays one.
    if method == "session/attach" { "session/attach" } else { "session/resume" }
}

// === JSON ===

fn push<T>(queue: &mut VecDeque<T>, one: T, most: usize) {
    queue.push_back(one);
    if queue.len() > most {
        queue.pop_front();
    }
}

/// Any value that can be written, as it is written; `null` if it cannot.
fn value(of: &Value) -> Box<RawValue> {
    to_raw_value(of).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A piece of JSON that was read before.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn members(of: Option<&RawValue>) -> Members {
    of.and_then(|of| serde_json::from_str(of.get()).ok()).unwrap_or_default()
}

fn object(of: &Members) -> Box<RawValue> {
    to_raw_value(of).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The parameters with these in `_meta.plexus`; everything else as it was written.
fn with_plexus(params: Option<&RawValue>, set: &[(&str, Value)]) -> Option<Box<RawValue>> {
    if set.is_empty() {
        return params.map(RawValue::to_owned);
    }
    let mut all = members(params);
    let mut meta = members(all.get("_meta").map(|meta| &**meta));
    let mut plexus = members(meta.get("plexus").map(|plexus| &**plexus));
    plexus.extend(set.iter().map(|(name, of)| ((*name).to_owned(), value(of))));
    meta.insert("plexus".into(), object(&plexus));
    all.insert("_meta".into(), object(&meta));
    Some(object(&all))
}

/// One line: JSON may have line breaks between its tokens, never inside them.
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
    let (name, of) = match (result, error) {
        (_, Some(error)) => ("error", error.get()),
        (Some(result), None) => ("result", result.get()),
        (None, None) => ("result", "null"),
    };
    one_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"{name}":{of}}}"#))
}

fn failure(id: &str, code: i64, message: &str, name: &str) -> String {
    let error = json!({ "code": code, "message": message, "data": { "code": name } });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// What a JSON-RPC error says.
fn words(error: &RawValue) -> String {
    let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
    error["message"].as_str().unwrap_or("it gave no reason").to_owned()
}

/// The request's id, where a message that is too long to be read begins with it, as those of the usual libraries do.
fn id_in(beginning: &[u8]) -> String {
    let text = String::from_utf8_lossy(beginning);
    let head = text.split("\"params\"").next().unwrap_or_default();
    let id = head.split_once("\"id\"").and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
    let id = id.and_then(|rest| serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok());
    match id {
        Some(id @ (Value::String(_) | Value::Number(_))) => id.to_string(),
        _ => "null".into(),
    }
}
