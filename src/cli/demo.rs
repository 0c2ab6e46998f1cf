//! `plexus agent demo`: a scripted ACP agent on stdio.
//!
//! Newline-delimited JSON-RPC 2.0 as ACP version 1 has it. The prompt's text is the script (see
//! [`TOUR`] and `docs/demo-agent.md`); nothing is ever run or written to disk.
//!
//! The main thread reads stdin and never waits for a prompt; each prompt has a thread; one thread
//! writes stdout. The program depends on nothing of Plexus, so that it is a fair test of it.
#![expect(
    clippy::disallowed_methods,
    reason = "the demo agent is a program of its own, and crashing is one of its tricks"
)]

mod stage;

use stage::Stage;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The longest line accepted on stdin, in bytes. A longer one is skipped and answered with -32600.
const MAX_INPUT_LINE: usize = 64 << 20;
/// A prompt waits while this many bytes wait for stdout: memory stays flat when nobody reads.
const PROMPT_AHEAD: usize = 256 << 10;
/// Answers of the main thread may run this far ahead of stdout; then stdin is no longer read.
const ANSWERS_AHEAD: usize = 8 << 20;
/// One write to stdout carries at most this much: what a Linux pipe holds.
const WRITE_SIZE: usize = 64 << 10;
/// The largest `line N` and `flood N BYTES`, in bytes; more is refused with a message.
const MAX_TEXT: usize = 256 << 20;
/// Time for queued output to leave after stdin ended or after `crash`.
const FLUSH_TIME: Duration = Duration::from_millis(250);
/// Time between chunks of `stream N` and between the steps of other commands.
const PACE: Duration = Duration::from_millis(5);
/// Bytes of text in a chunk of `flood N`.
const FLOOD_TEXT: usize = 24;
/// Bytes of text that count as a token.
const TOKEN: u64 = 4;
/// Exit code of `crash`.
const CRASH_CODE: i32 = 3;

/// One row a command: name, hint for its input, what it does.
const TOUR: &[(&str, &str, &str)] = &[
    ("stream", "N [MS]", "N chunks, MS milliseconds apart (5)"),
    ("echo", "TEXT", "TEXT in one chunk"),
    ("think", "", "thoughts, then an answer"),
    ("plan", "", "a plan whose entries get done"),
    ("diff", "", "an edit shown as a diff"),
    ("ask", "[COMMAND]", "permission for a shell command"),
    ("ask2", "", "two permissions at once"),
    ("form", "", "four questions in one form"),
    ("edit", "[COMMAND]", "permission for a command that may be changed first"),
    ("mode", "", "switches between the modes ask and auto"),
    ("usage", "", "tokens and cost so far"),
    ("sleep", "MS", "silence for MS milliseconds"),
    ("hang", "", "silence until cancelled"),
    ("flood", "N [BYTES]", "N chunks of BYTES (24) as fast as they go"),
    ("line", "N", "one message whose line has N bytes"),
    ("script", "FILE", "the updates in FILE, one a line"),
    ("junk", "", "lines no client expects, then a chunk"),
    ("stderr", "TEXT", "TEXT on stderr"),
    ("crash", "", "exit 3 in the middle of a line"),
];

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL: i32 = -32603;
/// ACP's "resource not found": here, an unknown session.
const NOT_FOUND: i32 = -32002;

/// Serves ACP on stdin and stdout until stdin ends.
///
/// # Errors
/// Reading stdin failed. A client that closed its end of stdout ends the process with code 0 at once.
pub(crate) fn run() -> io::Result<()> {
    let agent = Arc::new(Agent::new()?);
    let out = Arc::clone(&agent.out);
    std::thread::Builder::new().name("stdout".into()).spawn(move || out.write_loop())?;
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        let n = input.by_ref().take(MAX_INPUT_LINE as u64 + 1).read_until(b'\n', &mut line)?;
        if n == 0 {
            break;
        }
        if n > MAX_INPUT_LINE && line.last() != Some(&b'\n') {
            skip_line(&mut input)?;
            agent.fail(&Value::Null, INVALID_REQUEST, "the line is too long");
            line = Vec::new();
        } else if !line.trim_ascii().is_empty() {
            agent.take(&line);
        }
    }
    agent.out.finish(FLUSH_TIME);
    Ok(())
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let (n, end) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        input.consume(n);
        if end {
            return Ok(());
        }
    }
}

/// The guarded values stay valid after a panic in another thread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// ---- stdout ------------------------------------------------------------------------------------

/// The queue for stdout. It has whole lines only (but for `crash`), so the lines of two prompts never mix.
#[derive(Default)]
struct Out {
    state: Mutex<OutState>,
    changed: Condvar,
}

#[derive(Default)]
struct OutState {
    waiting: Vec<u8>,
    writing: bool,
    closed: bool,
}

impl Out {
    /// Queues `bytes`, first waiting while more than `ahead` bytes wait already.
    fn push(&self, bytes: &[u8], ahead: usize) {
        let full = |s: &mut OutState| s.waiting.len() > ahead && !s.closed;
        let mut state = self.changed.wait_while(lock(&self.state), full).unwrap_or_else(PoisonError::into_inner);
        if !state.closed {
            state.waiting.extend_from_slice(bytes);
            self.changed.notify_all();
        }
    }

    fn write_loop(&self) {
        // Not through `Stdout`: its line buffer would cut each piece in two.
        let mut stdout = match io::stdout().as_fd().try_clone_to_owned() {
            Ok(fd) => File::from(fd),
            Err(why) => {
                note(&format!("no stdout: {why}"));
                std::process::exit(1)
            }
        };
        let mut batch = Vec::new();
        loop {
            let mut state = lock(&self.state);
            state.writing = false;
            self.changed.notify_all();
            let empty = |s: &mut OutState| s.waiting.is_empty();
            state = self.changed.wait_while(state, empty).unwrap_or_else(PoisonError::into_inner);
            batch.clear();
            // A `line N` of many megabytes must not be kept for ever.
            batch.shrink_to(PROMPT_AHEAD * 2);
            std::mem::swap(&mut batch, &mut state.waiting);
            state.writing = true;
            self.changed.notify_all();
            drop(state);
            for piece in batch.chunks(WRITE_SIZE) {
                if let Err(why) = stdout.write_all(piece) {
                    let gone = why.kind() == io::ErrorKind::BrokenPipe;
                    if !gone {
                        note(&format!("cannot write: {why}"));
                    }
                    std::process::exit(i32::from(!gone));
                }
            }
        }
    }

    /// Closes the queue and waits up to `patience` until it is written.
    fn finish(&self, patience: Duration) {
        let mut state = lock(&self.state);
        state.closed = true;
        self.changed.notify_all();
        let busy = |s: &mut OutState| s.writing || !s.waiting.is_empty();
        // After `patience` the client does not read; the rest is lost.
        drop(self.changed.wait_timeout_while(state, patience, busy));
    }
}

fn note(text: &str) {
    // stderr may be closed.
    let _ = writeln!(io::stderr(), "plexus demo agent: {text}");
}

// ---- messages in -------------------------------------------------------------------------------

#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(default)]
    jsonrpc: Option<Value>,
    /// Absent (a notification) and null (a request, if an odd one) differ.
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    error: Option<Value>,
}

fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeParams {
    #[serde(rename = "protocolVersion")]
    _version: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewParams {
    cwd: String,
    #[serde(rename = "mcpServers")]
    _servers: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionParams {
    session_id: String,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    mode_id: Option<String>,
    #[serde(default)]
    prompt: Option<Vec<Value>>,
}

/// An error response: code and message.
type Failure = (i32, String);

fn params<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Result<T, Failure> {
    serde_json::from_str(raw.map_or("{}", RawValue::get)).map_err(|why| (INVALID_PARAMS, why.to_string()))
}

// ---- the agent ---------------------------------------------------------------------------------

struct Agent {
    out: Arc<Out>,
    /// Makes session ids differ between processes, as the client may keep them.
    seed: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<String, Session>,
    /// The agent's open requests by id, with the turn that waits for the answer.
    asked: HashMap<u64, Arc<Turn>>,
    next_request: u64,
    next_tool: u64,
    next_session: u64,
}

struct Session {
    cwd: String,
    auto: bool,
    turn: Option<Arc<Turn>>,
    used: u64,
}

/// One running prompt.
#[derive(Default)]
struct Turn {
    state: Mutex<TurnState>,
    changed: Condvar,
}

#[derive(Default)]
struct TurnState {
    cancelled: bool,
    /// Whether the end of the turn tells its tokens.
    tells: bool,
    answers: HashMap<u64, Decision>,
}

/// The outcome of a permission request.
enum Decision {
    Option(String),
    /// An option, and the edited command.
    Edited(String, String),
    /// A form's answer: the action and the values.
    Form(String, Value),
    Cancelled,
    Error(String),
}

/// The prompt ends here, with stop reason `cancelled`.
struct Cancelled;

impl Agent {
    fn new() -> io::Result<Self> {
        let seed = getrandom::u64().map_err(|why| io::Error::other(why.to_string()))?;
        let state = Mutex::default();
        Ok(Self { out: Arc::default(), seed: format!("{seed:016x}"), state })
    }

    fn send(&self, message: &Value, ahead: usize) {
        let mut line = message.to_string();
        line.push('\n');
        self.out.push(line.as_bytes(), ahead);
    }

    fn answer(&self, id: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}), ANSWERS_AHEAD);
    }

    fn fail(&self, id: &Value, code: i32, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}), ANSWERS_AHEAD);
    }

    /// Handles one line of stdin.
    fn take(self: &Arc<Self>, line: &[u8]) {
        // serde would read an array as a struct, but ACP has no batches.
        let parsed = match serde_json::from_slice::<&RawValue>(line) {
            Ok(raw) if raw.get().starts_with('{') => serde_json::from_str::<Incoming<'_>>(raw.get()),
            Ok(_) => return self.fail(&Value::Null, INVALID_REQUEST, "not a JSON-RPC message"),
            Err(why) => {
                return self.fail(&Value::Null, PARSE_ERROR, &format!("parse error: {why}"));
            }
        };
        let message = match parsed {
            Ok(message) => message,
            Err(why) => return self.fail(&Value::Null, INVALID_REQUEST, &why.to_string()),
        };
        let version = message.jsonrpc.as_ref().and_then(Value::as_str);
        match (message.method.as_deref(), message.id) {
            (_, id) if version != Some("2.0") => {
                self.fail(&id.unwrap_or_default(), INVALID_REQUEST, "jsonrpc must be \"2.0\"");
            }
            (Some("session/prompt"), Some(id)) => {
                if let Err((code, why)) = self.prompt(&id, message.params) {
                    self.fail(&id, code, &why);
                }
            }
            (Some(method), Some(id)) => match self.request(method, message.params) {
                Ok((result, after)) => {
                    self.answer(&id, &result);
                    after.iter().for_each(|update| self.send(update, ANSWERS_AHEAD));
                }
                Err((code, why)) => self.fail(&id, code, &why),
            },
            (Some("session/cancel"), None) => self.cancel(message.params),
            // Unknown notifications are ignored.
            (Some(_), None) => {}
            (None, Some(id)) if message.result.is_some() || message.error.is_some() => {
                self.answered(&id, message.result, message.error);
            }
            (None, id) => {
                self.fail(&id.unwrap_or_default(), INVALID_REQUEST, "not a request, notification or response")
            }
        }
    }

    /// Handles all requests but prompts: the result, and notifications to send after it.
    fn request(&self, method: &str, raw: Option<&RawValue>) -> Result<(Value, Vec<Value>), Failure> {
        let mut state = lock(&self.state);
        match method {
            "initialize" => {
                let InitializeParams { .. } = params(raw)?;
                let result = json!({
                    "protocolVersion": 1,
                    "agentCapabilities": {
                        "loadSession": true,
                        "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
                        "sessionCapabilities": {"list": {}},
                        "_meta": {"plexus": {"edits": true}},
                    },
                    "agentInfo": {"name": "plexus-demo", "title": "Plexus demo agent", "version": env!("CARGO_PKG_VERSION")},
                    "authMethods": [],
                });
                Ok((result, Vec::new()))
            }
            "authenticate" => Ok((json!({}), Vec::new())),
            "session/new" => {
                let NewParams { cwd, .. } = params(raw)?;
                state.next_session += 1;
                let id = format!("demo-{}-{}", self.seed, state.next_session);
                let session = Session { cwd, auto: false, turn: None, used: 0 };
                let mut result = json!({"modes": session.modes()});
                result["sessionId"] = json!(id);
                state.sessions.insert(id.clone(), session);
                Ok((result, vec![commands(&id)]))
            }
            "session/load" => {
                let SessionParams { session_id, cwd, .. } = params(raw)?;
                let cwd = cwd.ok_or((INVALID_PARAMS, "missing field `cwd`".to_owned()))?;
                let new = || Session { cwd, auto: false, turn: None, used: 0 };
                let session = state.sessions.entry(session_id.clone()).or_insert_with(new);
                Ok((json!({"modes": session.modes()}), vec![commands(&session_id)]))
            }
            "session/list" => {
                let row = |(id, s): (&String, &Session)| json!({"sessionId": id, "cwd": s.cwd});
                let sessions: Vec<Value> = state.sessions.iter().map(row).collect();
                Ok((json!({"sessions": sessions}), Vec::new()))
            }
            "session/set_mode" => {
                let SessionParams { session_id, mode_id, .. } = params(raw)?;
                let session = state.session(&session_id)?;
                session.auto = match mode_id.as_deref() {
                    Some("auto") => true,
                    Some("ask") => false,
                    _ => return Err((INVALID_PARAMS, "modeId must be ask or auto".to_owned())),
                };
                let update = mode_update(session.auto);
                Ok((json!({}), vec![notification(&session_id, &update)]))
            }
            _ => Err((METHOD_NOT_FOUND, format!("method not found: {method}"))),
        }
    }

    fn prompt(self: &Arc<Self>, id: &Value, raw: Option<&RawValue>) -> Result<(), Failure> {
        let SessionParams { session_id, prompt, .. } = params(raw)?;
        let blocks = prompt.ok_or((INVALID_PARAMS, "missing field `prompt`".to_owned()))?;
        let text: String = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
        let turn = Arc::new(Turn::default());
        let (cwd, before) = {
            let mut state = lock(&self.state);
            let session = state.session(&session_id)?;
            if session.turn.is_some() {
                return Err((INVALID_REQUEST, "a prompt is already running in this session".to_owned()));
            }
            session.turn = Some(Arc::clone(&turn));
            session.used += text.len() as u64;
            (session.cwd.clone(), session.used)
        };
        let stage = Stage { agent: Arc::clone(self), turn, session: session_id.clone(), cwd };
        let id = id.clone();
        let play = move || {
            let outcome = text.split(" ;; ").try_for_each(|step| stage.play(step));
            let reason = if outcome.is_ok() && stage.check().is_ok() { "end_turn" } else { "cancelled" };
            let mut response = json!({"stopReason": reason});
            if lock(&stage.turn.state).tells {
                response["usage"] = stage.tokens(text.len() as u64, before);
            }
            // The turn ends first: the client may prompt again as soon as it reads the response.
            stage.with_session(|session| session.turn = None);
            stage.agent.answer(&id, &response);
        };
        if let Err(why) = std::thread::Builder::new().name("prompt".into()).spawn(play) {
            lock(&self.state).session(&session_id)?.turn = None;
            return Err((INTERNAL, format!("no thread for the prompt: {why}")));
        }
        Ok(())
    }

    fn cancel(&self, raw: Option<&RawValue>) {
        let Ok(SessionParams { session_id, .. }) = params(raw) else {
            return note("session/cancel without a sessionId");
        };
        // Without a running prompt there is nothing to cancel; the next prompt is not affected.
        if let Some(turn) = lock(&self.state).sessions.get(&session_id).and_then(|s| s.turn.clone()) {
            lock(&turn.state).cancelled = true;
            turn.changed.notify_all();
        }
    }

    fn answered(&self, id: &Value, result: Option<Value>, error: Option<Value>) {
        let asked = id.as_u64().and_then(|n| Some((n, lock(&self.state).asked.remove(&n)?)));
        let Some((n, turn)) = asked else {
            // A second answer to a request ends here too.
            return note(&format!("response to unknown request {id}"));
        };
        let decision = match (result, error) {
            (_, Some(error)) => Decision::Error(error.to_string()),
            (result, None) => {
                let mut result = result.unwrap_or_default();
                let (action, content) = (result["action"].take(), result["content"].take());
                let edited = result["_meta"]["plexus"]["edited"].take();
                let outcome = result["outcome"].take();
                match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
                    _ if action.is_string() => Decision::Form(action.as_str().unwrap_or_default().to_owned(), content),
                    (Some("selected"), Some(option)) => match edited.as_str() {
                        Some(edited) => Decision::Edited(option.to_owned(), edited.to_owned()),
                        None => Decision::Option(option.to_owned()),
                    },
                    (Some("cancelled"), _) => Decision::Cancelled,
                    _ => Decision::Error(format!("not an outcome: {outcome}")),
                }
            }
        };
        lock(&turn.state).answers.insert(n, decision);
        turn.changed.notify_all();
    }
}

impl State {
    fn session(&mut self, id: &str) -> Result<&mut Session, Failure> {
        self.sessions.get_mut(id).ok_or_else(|| (NOT_FOUND, format!("unknown session: {id}")))
    }
}

impl Session {
    fn modes(&self) -> Value {
        json!({
            "currentModeId": mode_name(self.auto),
            "availableModes": [
                {"id": "ask", "name": "Ask", "description": "Asks before it acts"},
                {"id": "auto", "name": "Auto", "description": "Says it would act without asking; the ask commands still ask"},
            ],
        })
    }
}

fn mode_name(auto: bool) -> &'static str {
    if auto { "auto" } else { "ask" }
}

fn mode_update(auto: bool) -> Value {
    json!({"sessionUpdate": "current_mode_update", "currentModeId": mode_name(auto)})
}

fn commands(session: &str) -> Value {
    let row = |&(name, hint, what): &(&str, &str, &str)| match hint {
        "" => json!({"name": name, "description": what}),
        _ => json!({"name": name, "description": what, "input": {"hint": hint}}),
    };
    let list: Vec<Value> = TOUR.iter().map(row).collect();
    let update = json!({"sessionUpdate": "available_commands_update", "availableCommands": list});
    notification(session, &update)
}

fn notification(session: &str, update: &Value) -> Value {
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

/// `chunk-0001 `; all of `total` chunks have labels of one width.
fn label(n: u64, total: u64) -> String {
    let width = total.to_string().len().max(4);
    format!("chunk-{n:0width$} ")
}

// ---- the script --------------------------------------------------------------------------------
