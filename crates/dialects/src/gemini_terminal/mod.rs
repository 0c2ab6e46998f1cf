//! Gemini CLI in its own terminal, by the hooks that `plexus link gemini` adds to its settings.
//!
//! Every hook runs `plexus hook gemini`, which passes the hook's input to the gateway ([`link`](super::link)) and ends: Gemini CLI waits for
//! its hooks. So none can answer a question. Where the terminal is a shared one (`plexus term -- gemini`), its holder types the keys of an
//! answer or a prompt, if the screen still shows what they are for; else questions are shown, and answered at the terminal.
//!
//! The shapes of hooks and transcripts are those of Gemini CLI 0.61.0, as it was seen to write them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use self::env::{Env, Fetch, Fetches};
use self::terminal::{HookEvent, Terminal};
use super::jsonrpc::{INVALID_PARAMS, METHOD_NOT_FOUND, object};
use super::link::{HelperExit, HelperHello, HelperMessage, HelperRole, LinkFrame, LinkReply, process_path};
use super::{
    CarriedState, Dialect, EventDraft, HttpReply, OpenedAs, Outbox, RequestKey, ResumeTarget, RunEnd, RuntimeCommand,
    RuntimeError, RuntimeEvent,
};
use plexus_protocol::{Capabilities, Capability, NativeId, RunStatus, RuntimeSpec, Ticket};

mod asked;
mod drafts;
mod env;
mod question;
mod tail;
mod terminal;
#[cfg(test)]
mod tests;
mod transcript;

/// How often the transcript of a session is looked at while it is at work.
const TICK: Duration = Duration::from_millis(250);

/// Most sessions; of further ones nothing is shown.
const TERMINALS_MAX: usize = 4096;

pub(super) fn make(_: &RuntimeSpec) -> Box<dyn Dialect> {
    Box::new(GeminiTerminals::default())
}

#[derive(Default)]
struct GeminiTerminals {
    terminals: BTreeMap<NativeId, Terminal>,
    fetches: Fetches,
    /// The sessions that this step was about.
    touched: Vec<NativeId>,
}

impl Dialect for GeminiTerminals {
    fn open(&mut self, out: &mut Outbox) {
        out.events.push(RuntimeEvent::Ready { agent: Some("Gemini CLI (terminal)".into()) });
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        let Ok(LinkFrame { connection, started, said, ended }) = serde_json::from_slice::<LinkFrame<'_>>(&frame) else {
            return;
        };
        if let Some(HelperMessage { hello, event }) = said {
            if hello.role == HelperRole::Event {
                self.said(started, &hello, event, out);
            } else {
                // No helper of Gemini CLI waits.
                let reply = LinkReply { connection, exit: HelperExit::default() };
                out.frames.push(super::jsonrpc::line(&reply));
            }
        }
        if let Some(pid) = ended {
            self.process_ended(pid, out);
        }
        self.after(out);
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        match command {
            RuntimeCommand::Open { ticket, resume, .. } => self.open_session(ticket, resume, out),
            RuntimeCommand::Prompt { ticket, native, content } => self.prompt(ticket, &native, &content, out),
            RuntimeCommand::Cancel { native, .. } => {
                let message = "a turn in a terminal is stopped there: press Esc in it";
                let draft = drafts::error("cannot_cancel", message);
                out.events.push(RuntimeEvent::Event { native: Some(native), draft });
            }
            RuntimeCommand::Answer { key, decision } => {
                let found = self.terminals.iter_mut().find(|(_, terminal)| terminal.asks.contains_key(&key));
                if let Some((native, terminal)) = found {
                    terminal.answer(&key, &decision, &mut Env { native, fetches: &mut self.fetches, out });
                    self.touched.push(native.clone());
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
        for (native, terminal) in self.terminals.iter_mut().filter(|(_, terminal)| terminal.active()) {
            terminal.tick(&mut Env { native, fetches: &mut self.fetches, out });
            self.touched.push(native.clone());
        }
        self.after(out);
    }

    fn reply(&mut self, id: u64, reply: Result<HttpReply, String>, out: &mut Outbox) {
        let Some((native, about)) = self.fetches.pending.remove(&id) else { return };
        let Some(terminal) = self.terminals.get_mut(&native) else { return };
        let mut env = Env { native: &native, fetches: &mut self.fetches, out };
        match about {
            Fetch::Transcript => terminal.read_reply(reply, &mut env),
            Fetch::Answer(key) => terminal.answered(&key, reply, &mut env),
            Fetch::Prompt(ticket) => terminal.prompt_typed(ticket, reply, &mut env),
            Fetch::Process => {
                if matches!(reply, Ok(HttpReply { status: 404, .. })) {
                    terminal.ending = Some(CLOSED.into());
                    terminal.read(&mut env);
                }
            }
        }
        self.touched.push(native);
        self.after(out);
    }

    fn asks(&self) -> Vec<RequestKey> {
        self.terminals.values().flat_map(|terminal| terminal.asks.keys().cloned()).collect()
    }

    fn prompts(&self) -> Vec<Ticket> {
        self.terminals.values().flat_map(Terminal::prompts).collect()
    }

    /// A turn in a terminal cannot be stopped from outside.
    fn capabilities(&self) -> Capabilities {
        [Capability::Requests].into_iter().collect()
    }

    fn reached_by(&self) -> &'static [&'static str] {
        &["link"]
    }
}

/// Why a session ends with its terminal.
const CLOSED: &str = "its terminal was closed";

impl GeminiTerminals {
    /// A helper says something.
    fn said(&mut self, started: u64, hello: &HelperHello, raw: &RawValue, out: &mut Outbox) {
        let Some(event) = object::<HookEvent<'_>>(raw).filter(|event| !event.session_id.is_empty()) else {
            let frame = Bytes::copy_from_slice(raw.get().as_bytes());
            let draft = EventDraft::raw(frame, "a hook of Gemini CLI that could not be read");
            return out.events.push(RuntimeEvent::Event { native: None, draft });
        };
        let native = NativeId::from(event.session_id.as_str());
        let ends = match (started, event.hook_event_name.as_str(), event.reason.as_deref()) {
            // Its process has ended meanwhile: what it says late must not bring its session back.
            (0, ..) => Some(CLOSED),
            (_, "SessionEnd", Some("clear")) => Some("it was cleared in its terminal: a new session began there"),
            (_, "SessionEnd", _) => Some(CLOSED),
            _ => None,
        };
        if let Some(why) = ends {
            // Gemini CLI says so several times.
            if let Some(terminal) = self.terminals.get_mut(&native) {
                terminal.ending.get_or_insert_with(|| why.into());
                terminal.read(&mut Env { native: &native, fetches: &mut self.fetches, out });
                self.touched.push(native);
            }
            return;
        }
        if !self.terminals.contains_key(&native) && self.terminals.len() >= TERMINALS_MAX {
            return;
        }
        self.touched.push(native.clone());
        let terminal = self.terminals.entry(native.clone()).or_default();
        terminal.located((hello.pid, started), hello.terminal.as_deref(), &event);
        terminal.ending = None;
        if !terminal.opened {
            let cwd = Some(terminal.cwd.clone()).filter(|cwd| cwd.starts_with('/'));
            out.events.push(RuntimeEvent::Found { native: native.clone(), cwd, title: None });
        }
        terminal.hook(&event, &hello.id, &mut Env { native: &native, fetches: &mut self.fetches, out });
    }

    fn open_session(&mut self, ticket: Ticket, resume: Option<ResumeTarget>, out: &mut Outbox) {
        let refused =
            |message: &str| RuntimeEvent::NotOpened { ticket, error: RuntimeError::new(INVALID_PARAMS, message) };
        let Some(ResumeTarget { native, known, carried }) = resume else {
            let message = "a terminal is started by hand: run `gemini` in the folder, and its session appears";
            return out.events.push(refused(message));
        };
        let checkpoint = carried.as_ref().map(|carried| carried.checkpoint.as_str());
        let process = checkpoint.and_then(terminal::restored_process);
        if !self.terminals.contains_key(&native) {
            let Some((pid, started)) = process else {
                return out
                    .events
                    .push(refused("the terminal of this session is not open: run `gemini --resume` in it"));
            };
            // An earlier gateway had it. If its process lives, its hooks come again.
            let terminal = self.terminals.entry(native.clone()).or_default();
            terminal.process = (pid, started);
            let mut env = Env { native: &native, fetches: &mut self.fetches, out };
            env.read(Fetch::Process, process_path(pid, started));
        }
        self.touched.push(native.clone());
        let Some(terminal) = self.terminals.get_mut(&native) else { return };
        terminal.open(checkpoint, known);
        if let Some(CarriedState { asks, prompt, content, .. }) = carried.as_deref() {
            let blocks = content.iter().filter_map(|block| RawValue::from_string(block.clone()).ok());
            let text = prompt_text(&blocks.collect::<Vec<_>>()).unwrap_or_default();
            terminal.carry(asks, prompt.map(|ticket| (ticket, text)));
        }
        out.events.push(RuntimeEvent::Opened {
            ticket,
            native: native.clone(),
            drafts: Vec::new(),
            how: OpenedAs::Resumed,
        });
        terminal.read(&mut Env { native: &native, fetches: &mut self.fetches, out });
    }

    fn prompt(&mut self, ticket: Ticket, native: &NativeId, content: &[Box<RawValue>], out: &mut Outbox) {
        let mut env = Env { native, fetches: &mut self.fetches, out };
        let started = match (self.terminals.get_mut(native), prompt_text(content)) {
            (None, _) => Err("its terminal is not open".to_owned()),
            (_, Err(why)) => Err(why),
            (Some(terminal), Ok(text)) => {
                self.touched.push(native.clone());
                terminal.start(ticket, text, &mut env)
            }
        };
        if let Err(why) = started {
            let end = RunEnd { status: RunStatus::Error, stop_reason: None, message: Some(why), native: None };
            out.events.push(RuntimeEvent::Ended { native: native.clone(), ticket, end });
        }
    }

    fn process_ended(&mut self, pid: u32, out: &mut Outbox) {
        for (native, terminal) in self.terminals.iter_mut().filter(|(_, terminal)| terminal.process.0 == pid) {
            terminal.ending.get_or_insert_with(|| CLOSED.into());
            terminal.read(&mut Env { native, fetches: &mut self.fetches, out });
            self.touched.push(native.clone());
        }
    }

    /// What follows from a step: checkpoints, ends, the next wake.
    fn after(&mut self, out: &mut Outbox) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for native in touched {
            let Some(terminal) = self.terminals.get_mut(&native) else { continue };
            terminal.checkpoint(&mut Env { native: &native, fetches: &mut self.fetches, out });
            if !terminal.is_over() {
                continue;
            }
            let (opened, why) = (terminal.opened, terminal.ending.take().unwrap_or_default());
            self.terminals.remove(&native);
            if opened {
                out.events.push(RuntimeEvent::Closed { native, why });
            }
        }
        if self.terminals.values().any(Terminal::active) {
            out.wake_after = Some(TICK);
        }
    }
}

/// The text of a prompt from ACP content blocks.
///
/// # Errors
/// A message why it cannot be sent.
fn prompt_text(content: &[Box<RawValue>]) -> Result<String, String> {
    super::prompt_text::prompt_text(content, "a terminal")
}
