//! GitHub Copilot CLI in its own terminal, by the extension that `plexus link copilot` adds (`clients/copilot-extension/extension.mjs`).
//!
//! Copilot runs the extension beside each session. It joins the session and keeps a tunnel open ([`link`](super::link)): it passes on the
//! session's events, and makes the few requests that this dialect asks for. Most events are kept by Copilot, and are read again where a
//! gateway missed them; each has an id, by which it is reported once. Permissions and forms are asked beside the terminal's own dialog: the
//! first answer wins, and Copilot tells who gave it.
//!
//! The shapes are those of Copilot 1.0.102, as it was seen to write them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use self::events::ExtensionHello;
use self::session::{CopilotSession, Env, FetchFor, SessionCheckpoint};
use super::jsonrpc::{self, INVALID_PARAMS, METHOD_NOT_FOUND, object};
use super::link::{HelperExit, HelperHello, HelperMessage, HelperRole, LinkFrame, LinkReply};
use super::{
    CarriedState, Dialect, HttpReply, OpenedAs, Outbox, RequestKey, ResumeTarget, RuntimeCommand, RuntimeError,
    RuntimeEvent,
};
use plexus_protocol::{Capabilities, Capability, NativeId, RunStatus, RuntimeSpec, Ticket};

mod ask;
mod drafts;
mod events;
mod session;
mod sync;
#[cfg(test)]
mod tests;
mod text;

/// The unit of all waits. The dialect is woken so often while anything waits.
const TICK: Duration = Duration::from_millis(500);
/// Sessions at a time; of further ones nothing is shown.
const SESSIONS_MAX: usize = 256;

/// Why a session ends with its terminal.
const CLOSED: &str = "its terminal was closed";
/// Why a session ends whose terminal lives and says nothing.
const UNREACHED: &str = "its terminal no longer answers";
/// Why a session ends whose terminal has another one now.
const LEFT: &str = "another session began in its terminal";

pub(super) fn make(_: &RuntimeSpec) -> Box<dyn Dialect> {
    Box::new(CopilotTerminals::default())
}

#[derive(Default)]
struct CopilotTerminals {
    sessions: BTreeMap<NativeId, CopilotSession>,
    fetches: Fetches,
    /// The sessions that this step was about.
    touched: Vec<NativeId>,
}

/// The requests under way.
#[derive(Default)]
struct Fetches {
    last: u64,
    pending: HashMap<u64, (NativeId, FetchFor)>,
}

impl Dialect for CopilotTerminals {
    fn open(&mut self, out: &mut Outbox) {
        out.events.push(RuntimeEvent::Ready { agent: Some("Copilot (terminal)".into()) });
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        let Ok(LinkFrame { connection, started, said, ended }) = serde_json::from_slice::<LinkFrame<'_>>(&frame) else {
            return;
        };
        match said {
            Some(HelperMessage { hello, event }) => self.said(connection, started, &hello, event, out),
            None => {
                let of = |session: &CopilotSession| session.connection == Some(connection);
                if let Some((native, session)) = self.sessions.iter_mut().find(|(_, session)| of(session)) {
                    session.disconnected();
                    self.touched.push(native.clone());
                }
            }
        }
        if let Some(pid) = ended {
            self.ended(|session| session.process.0 == pid, CLOSED);
        }
        self.after(out);
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        match command {
            RuntimeCommand::Open { ticket, resume, .. } => self.open_session(ticket, resume, out),
            RuntimeCommand::Prompt { ticket, native, content } => self.prompt(ticket, &native, &content, out),
            RuntimeCommand::Cancel { ticket, native, .. } => {
                self.with(&native, out, |session, env| session.cancel(ticket, env));
            }
            RuntimeCommand::Answer { key, decision } => {
                let found = self.sessions.iter().find(|(_, session)| session.asks.contains_key(&key));
                if let Some(native) = found.map(|(native, _)| native.clone()) {
                    self.with(&native, out, |session, env| session.answer(&key, &decision, env));
                }
            }
            RuntimeCommand::Call { ticket, method, notify, .. } => {
                if !notify {
                    let why = format!("{method}: a terminal does not support method calls");
                    let reply = Err(RuntimeError::new(METHOD_NOT_FOUND, why));
                    out.events.push(RuntimeEvent::Replied { ticket, reply });
                }
            }
        }
        self.after(out);
    }

    fn wake(&mut self, out: &mut Outbox) {
        let natives: Vec<NativeId> = self.sessions.keys().cloned().collect();
        for native in natives {
            self.with(&native, out, |session, env| session.tick(env));
        }
        self.after(out);
    }

    fn reply(&mut self, id: u64, reply: Result<HttpReply, String>, out: &mut Outbox) {
        if let Some((native, what)) = self.fetches.pending.remove(&id) {
            self.with(&native, out, |session, env| session.replied(what, reply, env));
        }
        self.after(out);
    }

    fn reached_by(&self) -> &'static [&'static str] {
        &["link"]
    }

    fn capabilities(&self) -> Capabilities {
        [Capability::Cancel, Capability::Requests, Capability::Reasons].into_iter().collect()
    }

    fn asks(&self) -> Vec<RequestKey> {
        self.sessions.values().flat_map(CopilotSession::open_asks).collect()
    }

    fn prompts(&self) -> Vec<Ticket> {
        self.sessions.values().flat_map(CopilotSession::prompts).collect()
    }
}

impl CopilotTerminals {
    /// A step of a session, if it is known.
    fn with(&mut self, native: &NativeId, out: &mut Outbox, step: impl FnOnce(&mut CopilotSession, &mut Env<'_>)) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        step(session, &mut Env { native, fetches: &mut self.fetches, out });
        self.touched.push(native.clone());
    }

    /// These sessions are over.
    fn ended(&mut self, which: impl Fn(&CopilotSession) -> bool, why: &str) {
        for (native, session) in self.sessions.iter_mut().filter(|(_, session)| which(session)) {
            session.ending.get_or_insert_with(|| why.to_owned());
            self.touched.push(native.clone());
        }
    }

    fn said(&mut self, connection: u64, started: u64, hello: &HelperHello, raw: &RawValue, out: &mut Outbox) {
        let of = |session: &CopilotSession| session.connection == Some(connection);
        if let Some(native) = self.sessions.iter().find(|(_, session)| of(session)).map(|(native, _)| native.clone()) {
            return self.with(&native, out, |session, env| session.heard(raw, env));
        }
        let opening = object::<ExtensionHello>(raw).filter(|_| hello.role == HelperRole::Tunnel);
        let opening = opening.filter(|opening| !opening.session.is_empty() && started != 0);
        let room = |native: &NativeId| self.sessions.contains_key(native) || self.sessions.len() < SESSIONS_MAX;
        let opening = opening.map(|opening| (NativeId::from(opening.session.as_str()), opening.cwd));
        let Some((native, cwd)) = opening.filter(|(native, _)| room(native)) else {
            // Its beginning was told to an earlier connection of the driver: it says it again.
            return hang_up(connection, out);
        };
        let process = (hello.pid, started);
        // A terminal shows one session at a time: the extension of the one before has ended.
        self.ended(
            |session| session.process == process && session.connection.is_none() && session.native != native,
            LEFT,
        );
        self.after(out);
        let session = self.sessions.entry(native.clone()).or_insert_with(|| CopilotSession::new(&native, process));
        if let Some(old) = session.connection {
            hang_up(old, out);
            session.disconnected();
        }
        session.connected(connection, process);
        if session.opened {
            self.with(&native, out, CopilotSession::read);
        } else {
            let cwd = Some(cwd).filter(|cwd| cwd.starts_with('/'));
            out.events.push(RuntimeEvent::Found { native: native.clone(), cwd, title: None });
            self.touched.push(native);
        }
    }

    fn open_session(&mut self, ticket: Ticket, resume: Option<ResumeTarget>, out: &mut Outbox) {
        let refused =
            |message: &str| RuntimeEvent::NotOpened { ticket, error: RuntimeError::new(INVALID_PARAMS, message) };
        let Some(ResumeTarget { native, known, carried }) = resume else {
            let message = "a terminal is started by hand: run `copilot` in the folder, and its session appears";
            return out.events.push(refused(message));
        };
        let checkpoint = carried.as_ref().and_then(|carried| SessionCheckpoint::read(&carried.checkpoint));
        if !self.sessions.contains_key(&native) {
            let Some(process) = checkpoint.as_ref().map(|checkpoint| checkpoint.process) else {
                let message = "the terminal of this session is not open: run `copilot --resume` in it";
                return out.events.push(refused(message));
            };
            // An earlier gateway had it. If its process lives, its extension connects again.
            self.sessions.insert(native.clone(), CopilotSession::new(&native, process));
            self.with(&native, out, |session, env| session.look_for_process(env));
        }
        self.with(&native, out, |session, env| {
            session.open(checkpoint, known);
            if let Some(CarriedState { asks, prompt, content, .. }) = carried.as_deref() {
                let blocks = content.iter().filter_map(|block| RawValue::from_string(block.clone()).ok());
                let text = prompt_text(&blocks.collect::<Vec<_>>()).unwrap_or_default();
                session.carry(asks, prompt.map(|ticket| (ticket, text)));
            }
            let (native, how) = (env.native.clone(), OpenedAs::Resumed);
            env.out.events.push(RuntimeEvent::Opened { ticket, native, drafts: Vec::new(), how });
            session.read(env);
        });
    }

    fn prompt(&mut self, ticket: Ticket, native: &NativeId, content: &[Box<RawValue>], out: &mut Outbox) {
        let refused = match (self.sessions.contains_key(native), prompt_text(content)) {
            (false, _) => "its terminal is not open".to_owned(),
            (true, Err(why)) => why,
            (true, Ok(text)) => return self.with(native, out, |session, env| session.start(ticket, text, env)),
        };
        let end = super::RunEnd { status: RunStatus::Error, stop_reason: None, message: Some(refused), native: None };
        out.events.push(RuntimeEvent::Ended { native: native.clone(), ticket, end });
    }

    /// What follows from a step: checkpoints, ends, the next wake.
    fn after(&mut self, out: &mut Outbox) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for native in touched {
            let Some(session) = self.sessions.get_mut(&native) else { continue };
            let mut env = Env { native: &native, fetches: &mut self.fetches, out };
            let Some(why) = session.ending.take() else {
                session.checkpoint(&mut env);
                continue;
            };
            let (opened, connection) = (session.opened, session.connection);
            if opened {
                session.close(&mut env);
                session.checkpoint(&mut env);
                out.events.push(RuntimeEvent::Closed { native: native.clone(), why });
            }
            if let Some(connection) = connection {
                hang_up(connection, out);
            }
            self.sessions.remove(&native);
            self.fetches.pending.retain(|_, (of, _)| *of != native);
        }
        if self.sessions.values().any(CopilotSession::waits) {
            out.wake_after = Some(TICK);
        }
    }
}

fn hang_up(connection: u64, out: &mut Outbox) {
    out.frames.push(jsonrpc::line(&LinkReply { connection, exit: HelperExit::default() }));
}

/// The text of a prompt from ACP content blocks.
///
/// # Errors
/// A message why it cannot be sent.
fn prompt_text(content: &[Box<RawValue>]) -> Result<String, String> {
    super::prompt_text::prompt_text(content, "a terminal")
}
