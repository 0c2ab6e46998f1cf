//! The demo agent's state and its stdout.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// Number of bytes queued for stdout at which a prompt waits: memory stays constant while the client does not read.
pub(super) const PROMPT_AHEAD: usize = 256 << 10;
/// Number of bytes queued for stdout at which answers of the main thread wait; stdin is then no longer read.
pub(super) const ANSWERS_AHEAD: usize = 8 << 20;
/// Maximum number of bytes per write to stdout: the capacity of a Linux pipe.
pub(super) const WRITE_SIZE: usize = 64 << 10;
/// Time for queued output to be written after stdin ended or after `crash`.
pub(super) const FLUSH_TIME: Duration = Duration::from_millis(250);
/// The commands, one per row: name, hint for its input, description.
pub(super) const TOUR: &[(&str, &str, &str)] = &[
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
    ("flood", "N [BYTES]", "N chunks of BYTES (24) as fast as possible"),
    ("line", "N", "one message whose line has N bytes"),
    ("script", "FILE", "the updates in FILE, one a line"),
    ("junk", "", "lines no client expects, then a chunk"),
    ("stderr", "TEXT", "TEXT on stderr"),
    ("crash", "", "exit 3 in the middle of a line"),
];
/// The code of ACP's "resource not found": here, an unknown session.
const NOT_FOUND: i32 = -32002;

/// Locks a mutex; its value stays valid after a panic in another thread.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The queue for stdout. It contains whole lines only (except for `crash`), so the lines of two prompts never mix.
#[derive(Default)]
pub(super) struct Out {
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
    /// Queues `bytes`, after waiting while more than `ahead` bytes are queued.
    pub(super) fn push(&self, bytes: &[u8], ahead: usize) {
        let full = |s: &mut OutState| s.waiting.len() > ahead && !s.closed;
        let mut state = self.changed.wait_while(lock(&self.state), full).unwrap_or_else(PoisonError::into_inner);
        if !state.closed {
            state.waiting.extend_from_slice(bytes);
            self.changed.notify_all();
        }
    }

    pub(super) fn write_loop(&self) {
        // `Stdout` is not used: its line buffer would cut each piece in two.
        let mut stdout = match io::stdout().as_fd().try_clone_to_owned() {
            Ok(fd) => File::from(fd),
            Err(error) => {
                note(&format!("no stdout: {error}"));
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
            // The buffer of a `line N` of many megabytes must not be retained.
            batch.shrink_to(PROMPT_AHEAD * 2);
            std::mem::swap(&mut batch, &mut state.waiting);
            state.writing = true;
            self.changed.notify_all();
            drop(state);
            for piece in batch.chunks(WRITE_SIZE) {
                if let Err(error) = stdout.write_all(piece) {
                    let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
                    if !is_closed {
                        note(&format!("cannot write: {error}"));
                    }
                    std::process::exit(i32::from(!is_closed));
                }
            }
        }
    }

    /// Closes the queue and waits up to `limit` until it is written.
    pub(super) fn finish(&self, limit: Duration) {
        let mut state = lock(&self.state);
        state.closed = true;
        self.changed.notify_all();
        let busy = |s: &mut OutState| s.writing || !s.waiting.is_empty();
        // After `limit` the client is not reading; the rest is lost.
        drop(self.changed.wait_timeout_while(state, limit, busy));
    }
}

pub(super) fn note(text: &str) {
    // stderr may be closed.
    let _ = writeln!(io::stderr(), "plexus demo agent: {text}");
}

/// An error response: code and message.
pub(super) type Failure = (i32, String);

pub(super) struct Agent {
    pub(super) out: Arc<Out>,
    /// A random part that makes session ids differ between processes, as the client may store them.
    pub(super) seed: String,
    pub(super) state: Mutex<State>,
}

impl Agent {
    pub(super) fn new() -> io::Result<Self> {
        let seed = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let state = Mutex::default();
        Ok(Self { out: Arc::default(), seed: format!("{seed:016x}"), state })
    }

    pub(super) fn send(&self, message: &Value, ahead: usize) {
        let mut line = message.to_string();
        line.push('\n');
        self.out.push(line.as_bytes(), ahead);
    }

    pub(super) fn answer(&self, id: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}), ANSWERS_AHEAD);
    }

    pub(super) fn fail(&self, id: &Value, code: i32, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}), ANSWERS_AHEAD);
    }
}

#[derive(Default)]
pub(super) struct State {
    pub(super) sessions: HashMap<String, Session>,
    /// The agent's open requests by id, with the turn that waits for the answer.
    pub(super) open_requests: HashMap<u64, Arc<Turn>>,
    pub(super) next_request: u64,
    pub(super) next_tool: u64,
    pub(super) next_session: u64,
}

pub(super) struct Session {
    pub(super) cwd: String,
    pub(super) auto: bool,
    pub(super) turn: Option<Arc<Turn>>,
    pub(super) used: u64,
}

/// One running prompt.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) state: Mutex<TurnState>,
    pub(super) changed: Condvar,
}

#[derive(Default)]
pub(super) struct TurnState {
    pub(super) cancelled: bool,
    /// `true` if the response to the prompt reports its tokens.
    pub(super) reports_usage: bool,
    pub(super) answers: HashMap<u64, Decision>,
}

/// The outcome of a permission request.
pub(super) enum Decision {
    Option(String),
    /// An option, and the edited command.
    Edited(String, String),
    /// A form's answer: the action and the values.
    Form(String, Value),
    Cancelled,
    Error(String),
}

/// The end of a prompt with the stop reason `cancelled`.
pub(super) struct Cancelled;

impl State {
    pub(super) fn session(&mut self, id: &str) -> Result<&mut Session, Failure> {
        self.sessions.get_mut(id).ok_or_else(|| (NOT_FOUND, format!("unknown session: {id}")))
    }
}

impl Session {
    pub(super) fn modes(&self) -> Value {
        json!({
            "currentModeId": mode_name(self.auto),
            "availableModes": [
                {"id": "ask", "name": "Ask", "description": "Asks before it acts"},
                {"id": "auto", "name": "Auto", "description": "Claims to act without asking; the ask commands still ask"},
            ],
        })
    }
}

pub(super) fn mode_name(auto: bool) -> &'static str {
    if auto { "auto" } else { "ask" }
}

pub(super) fn mode_update(auto: bool) -> Value {
    json!({"sessionUpdate": "current_mode_update", "currentModeId": mode_name(auto)})
}

pub(super) fn commands(session: &str) -> Value {
    let row = |&(name, hint, what): &(&str, &str, &str)| match hint {
        "" => json!({"name": name, "description": what}),
        _ => json!({"name": name, "description": what, "input": {"hint": hint}}),
    };
    let list: Vec<Value> = TOUR.iter().map(row).collect();
    let update = json!({"sessionUpdate": "available_commands_update", "availableCommands": list});
    notification(session, &update)
}

pub(super) fn notification(session: &str, update: &Value) -> Value {
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
}

pub(super) fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

/// Formats a label such as `chunk-0001 `; all labels of `total` chunks have the same width.
pub(super) fn label(n: u64, total: u64) -> String {
    let width = total.to_string().len().max(4);
    format!("chunk-{n:0width$} ")
}
