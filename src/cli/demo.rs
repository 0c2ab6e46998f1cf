//! `plexus agent demo`: a scripted ACP agent on stdio.
//!
//! The agent speaks newline-delimited JSON-RPC 2.0, as in ACP version 1. The prompt's text is the script (see [`TOUR`](agent::TOUR) and
//! `docs/demo-agent.md`); nothing is ever run or written to disk.
//!
//! The main thread reads stdin and never waits for a prompt; each prompt has a thread; one thread writes stdout. The program uses no code
//! of Plexus, so that it is an independent test of it.
#![expect(
    clippy::disallowed_methods,
    reason = "the demo agent is a program of its own, and crashing is one of its tricks"
)]

mod agent;
mod stage;

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use agent::{
    ANSWERS_AHEAD, Agent, Decision, FLUSH_TIME, Failure, Session, Turn, commands, lock, mode_update, note, notification,
};
use stage::Stage;

/// Maximum length of a line on stdin, in bytes. A longer one is skipped and answered with -32600.
const MAX_INPUT_LINE: usize = 64 << 20;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL: i32 = -32603;

/// Serves ACP on stdin and stdout until stdin ends.
///
/// # Errors
/// Reading stdin failed. A client that closed its end of stdout ends the process with code 0 at once.
pub(crate) fn run() -> io::Result<()> {
    let server = Server { agent: Arc::new(Agent::new()?) };
    let out = Arc::clone(&server.agent.out);
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
            server.agent.fail(&Value::Null, INVALID_REQUEST, "the line is too long");
            line = Vec::new();
        } else if !line.trim_ascii().is_empty() {
            server.take(&line);
        }
    }
    server.agent.out.finish(FLUSH_TIME);
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

// ---- messages in -------------------------------------------------------------------------------

#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(default)]
    jsonrpc: Option<Value>,
    /// `None` for a notification; `Some(null)` for a request with the unusual identifier null.
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

fn params<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Result<T, Failure> {
    serde_json::from_str(raw.map_or("{}", RawValue::get)).map_err(|error| (INVALID_PARAMS, error.to_string()))
}

// ---- the agent ---------------------------------------------------------------------------------

/// The agent as its client sees it: incoming messages, outgoing responses.
struct Server {
    agent: Arc<Agent>,
}

impl Server {
    /// Handles one line of stdin.
    fn take(&self, line: &[u8]) {
        // serde would read an array as a struct, but ACP has no batches.
        let parsed = match serde_json::from_slice::<&RawValue>(line) {
            Ok(raw) if raw.get().starts_with('{') => serde_json::from_str::<Incoming<'_>>(raw.get()),
            Ok(_) => return self.agent.fail(&Value::Null, INVALID_REQUEST, "not a JSON-RPC message"),
            Err(error) => {
                return self.agent.fail(&Value::Null, PARSE_ERROR, &format!("parse error: {error}"));
            }
        };
        let message = match parsed {
            Ok(message) => message,
            Err(error) => return self.agent.fail(&Value::Null, INVALID_REQUEST, &error.to_string()),
        };
        let version = message.jsonrpc.as_ref().and_then(Value::as_str);
        match (message.method.as_deref(), message.id) {
            (_, id) if version != Some("2.0") => {
                self.agent.fail(&id.unwrap_or_default(), INVALID_REQUEST, "jsonrpc must be \"2.0\"");
            }
            (Some("session/prompt"), Some(id)) => {
                if let Err((code, error)) = self.prompt(&id, message.params) {
                    self.agent.fail(&id, code, &error);
                }
            }
            (Some(method), Some(id)) => match self.request(method, message.params) {
                Ok((result, after)) => {
                    self.agent.answer(&id, &result);
                    after.iter().for_each(|update| self.agent.send(update, ANSWERS_AHEAD));
                }
                Err((code, error)) => self.agent.fail(&id, code, &error),
            },
            (Some("session/cancel"), None) => self.cancel(message.params),
            // Unknown notifications are ignored.
            (Some(_), None) => {}
            (None, Some(id)) if message.result.is_some() || message.error.is_some() => {
                self.answered(&id, message.result, message.error);
            }
            (None, id) => {
                self.agent.fail(&id.unwrap_or_default(), INVALID_REQUEST, "not a request, notification or response")
            }
        }
    }

    /// Handles all requests but prompts: returns the result, and notifications to send after it.
    fn request(&self, method: &str, raw: Option<&RawValue>) -> Result<(Value, Vec<Value>), Failure> {
        let mut state = lock(&self.agent.state);
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
                let id = format!("demo-{}-{}", self.agent.seed, state.next_session);
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

    fn prompt(&self, id: &Value, raw: Option<&RawValue>) -> Result<(), Failure> {
        let SessionParams { session_id, prompt, .. } = params(raw)?;
        let blocks = prompt.ok_or((INVALID_PARAMS, "missing field `prompt`".to_owned()))?;
        let text: String = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
        let turn = Arc::new(Turn::default());
        let (cwd, before) = {
            let mut state = lock(&self.agent.state);
            let session = state.session(&session_id)?;
            if session.turn.is_some() {
                return Err((INVALID_REQUEST, "a prompt is already running in this session".to_owned()));
            }
            session.turn = Some(Arc::clone(&turn));
            session.used += text.len() as u64;
            (session.cwd.clone(), session.used)
        };
        let stage = Stage { agent: Arc::clone(&self.agent), turn, session: session_id.clone(), cwd };
        let id = id.clone();
        let play = move || {
            let outcome = text.split(" ;; ").try_for_each(|step| stage.play(step));
            let reason = if outcome.is_ok() && stage.check().is_ok() { "end_turn" } else { "cancelled" };
            let mut response = json!({"stopReason": reason});
            if lock(&stage.turn.state).reports_usage {
                response["usage"] = stage.tokens(text.len() as u64, before);
            }
            // The turn ends first: the client may prompt again as soon as it has read the response.
            stage.with_session(|session| session.turn = None);
            stage.agent.answer(&id, &response);
        };
        if let Err(error) = std::thread::Builder::new().name("prompt".into()).spawn(play) {
            lock(&self.agent.state).session(&session_id)?.turn = None;
            return Err((INTERNAL, format!("no thread for the prompt: {error}")));
        }
        Ok(())
    }

    fn cancel(&self, raw: Option<&RawValue>) {
        let Ok(SessionParams { session_id, .. }) = params(raw) else {
            return note("session/cancel without a sessionId");
        };
        // Without a running prompt there is nothing to cancel; the next prompt is not affected.
        if let Some(turn) = lock(&self.agent.state).sessions.get(&session_id).and_then(|s| s.turn.clone()) {
            lock(&turn.state).cancelled = true;
            turn.changed.notify_all();
        }
    }

    fn answered(&self, id: &Value, result: Option<Value>, error: Option<Value>) {
        let open_request = id.as_u64().and_then(|n| Some((n, lock(&self.agent.state).open_requests.remove(&n)?)));
        let Some((n, turn)) = open_request else {
            // A second answer to a request is also rejected here.
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
