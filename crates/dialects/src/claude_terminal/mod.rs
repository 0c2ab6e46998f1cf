//! Claude Code in its own terminal, by the hooks that `plexus link claude` adds to its settings.
//!
//! Every hook runs `plexus hook claude`, which passes the hook's input to the gateway ([`link`](super::link)). Two hooks wait: the one of
//! a question (`PermissionRequest`), while the terminal shows its own dialog beside it, and the one that a prompt wakes
//! (`asyncRewake`). The first answer wins. Claude Code does not tell the hook that the terminal was first: its transcript does.
//!
//! The shapes of hooks and transcripts are those of Claude Code 2.1.316, as it was seen to write them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use self::terminal::{Env, Fetches, HookEvent, Terminal};
use super::jsonrpc::{INVALID_PARAMS, METHOD_NOT_FOUND, object};
use super::link::{HelperExit, HelperHello, HelperMessage, HelperRole, LinkFrame, process_path};
use super::{
    CarriedState, Dialect, EventDraft, HttpReply, OpenedAs, Outbox, RequestKey, ResumeTarget, RuntimeCommand,
    RuntimeError, RuntimeEvent,
};
use plexus_protocol::{Capabilities, Capability, NativeId, RunStatus, RuntimeSpec, Ticket};

mod drafts;
mod live;
mod permission;
mod terminal;
#[cfg(test)]
mod tests;
mod transcript;

/// How often the transcript of a session is looked at while it is at work.
const TICK: Duration = Duration::from_millis(250);

/// Longest prompt, in characters: of what a hook says, Claude Code cuts out what is beyond 100,000 (seen with 2.1.316).
const PROMPT_MAX: usize = 90_000;

/// Most sessions; of further ones nothing is shown.
const TERMINALS_MAX: usize = 4096;

pub(super) fn make(_: &RuntimeSpec) -> Box<dyn Dialect> {
    Box::new(ClaudeTerminals::default())
}

#[derive(Default)]
struct ClaudeTerminals {
    terminals: BTreeMap<NativeId, Terminal>,
    /// The helpers that wait, by connection.
    helpers: HashMap<u64, NativeId>,
    /// The requests that ask whether a process lives.
    processes: HashSet<u64>,
    fetches: Fetches,
    /// The sessions that this step was about.
    touched: Vec<NativeId>,
}

impl Dialect for ClaudeTerminals {
    fn open(&mut self, out: &mut Outbox) {
        out.events.push(RuntimeEvent::Ready { agent: Some("Claude Code (terminal)".into()) });
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        let Ok(LinkFrame { connection, started, said, ended }) = serde_json::from_slice::<LinkFrame<'_>>(&frame) else {
            return;
        };
        match said {
            Some(HelperMessage { hello, event }) => self.said(connection, started, &hello, event, out),
            None => {
                if let Some(native) = self.helpers.remove(&connection)
                    && let Some(terminal) = self.terminals.get_mut(&native)
                {
                    terminal.disconnected(connection);
                    self.touched.push(native);
                }
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
                    terminal.answer(&key, decision, &mut Env { native, fetches: &mut self.fetches, out });
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
        let Some(native) = self.fetches.pending.remove(&id) else { return };
        let about_process = self.processes.remove(&id);
        let Some(terminal) = self.terminals.get_mut(&native) else { return };
        let mut env = Env { native: &native, fetches: &mut self.fetches, out };
        if !about_process {
            terminal.read_reply(reply, &mut env);
        } else if matches!(reply, Ok(HttpReply { status: 404, .. })) {
            terminal.ending = Some(CLOSED.into());
            terminal.read(&mut env);
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
        [Capability::Requests, Capability::Reasons].into_iter().collect()
    }

    fn reached_by(&self) -> &'static [&'static str] {
        &["link"]
    }
}

/// Why a session ends with its terminal.
const CLOSED: &str = "its terminal was closed";

impl ClaudeTerminals {
    /// A helper says something.
    fn said(&mut self, connection: u64, started: u64, hello: &HelperHello, raw: &RawValue, out: &mut Outbox) {
        let release = |out: &mut Outbox| {
            if hello.role != HelperRole::Event {
                let reply = super::link::LinkReply { connection, exit: HelperExit::default() };
                out.frames.push(super::jsonrpc::line(&reply));
            }
        };
        if hello.role == HelperRole::Tunnel {
            // Claude Code has none.
            return release(out);
        }
        let Some(event) = object::<HookEvent<'_>>(raw).filter(|event| !event.session_id.is_empty()) else {
            let frame = Bytes::copy_from_slice(raw.get().as_bytes());
            let draft = EventDraft::raw(frame, "a hook of Claude Code that could not be read");
            out.events.push(RuntimeEvent::Event { native: None, draft });
            return release(out);
        };
        let native = NativeId::from(event.session_id.as_str());
        if started == 0 {
            // Its process has ended meanwhile: what it says late must not bring its session back.
            if let Some(terminal) = self.terminals.get_mut(&native) {
                terminal.ending.get_or_insert_with(|| CLOSED.into());
                terminal.read(&mut Env { native: &native, fetches: &mut self.fetches, out });
                self.touched.push(native);
            }
            return release(out);
        }
        if !self.terminals.contains_key(&native) && self.terminals.len() >= TERMINALS_MAX {
            return release(out);
        }
        self.touched.push(native.clone());
        let terminal = self.terminals.entry(native.clone()).or_default();
        terminal.located((hello.pid, started), &event);
        if !terminal.opened {
            let cwd = Some(terminal.cwd.clone()).filter(|cwd| cwd.starts_with('/'));
            out.events.push(RuntimeEvent::Found { native: native.clone(), cwd, title: None });
        }
        let mut env = Env { native: &native, fetches: &mut self.fetches, out };
        match hello.role {
            HelperRole::Event if event.hook_event_name == "SessionEnd" => {
                terminal.ending = Some(match event.reason.as_deref() {
                    Some("clear") => "it was cleared in its terminal: a new session began there".into(),
                    _ => CLOSED.into(),
                });
                terminal.read(&mut env);
            }
            HelperRole::Event => {
                terminal.ending = None;
                terminal.hook(&event, raw, &mut env);
            }
            HelperRole::Question => {
                self.helpers.insert(connection, native.clone());
                terminal.question(RequestKey::unique(hello.id.as_str()), connection, raw, &mut env);
            }
            HelperRole::Inbox => {
                self.helpers.insert(connection, native.clone());
                terminal.inbox(connection, &mut env);
            }
            HelperRole::Tunnel => {}
        }
    }

    fn open_session(&mut self, ticket: Ticket, resume: Option<ResumeTarget>, out: &mut Outbox) {
        let refused =
            |message: &str| RuntimeEvent::NotOpened { ticket, error: RuntimeError::new(INVALID_PARAMS, message) };
        let Some(ResumeTarget { native, known, carried }) = resume else {
            let message = "a terminal is started by hand: run `claude` in the folder, and its session appears";
            return out.events.push(refused(message));
        };
        let checkpoint = carried.as_ref().map(|carried| carried.checkpoint.as_str());
        let process = checkpoint.and_then(terminal::restored_process);
        if !self.terminals.contains_key(&native) {
            let Some((pid, started)) = process else {
                return out
                    .events
                    .push(refused("the terminal of this session is not open: run `claude --resume` in it"));
            };
            // An earlier gateway had it. If its process lives, its hooks come again.
            let terminal = self.terminals.entry(native.clone()).or_default();
            terminal.process = (pid, started);
            let id = Env { native: &native, fetches: &mut self.fetches, out }.fetch(process_path(pid, started));
            self.processes.insert(id);
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
                terminal.start(ticket, text, &mut env);
                self.touched.push(native.clone());
                Ok(())
            }
        };
        if let Err(why) = started {
            let end = super::RunEnd { status: RunStatus::Error, stop_reason: None, message: Some(why), native: None };
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
            self.helpers.retain(|_, of| *of != native);
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
    let text = super::prompt_text::prompt_text(content, "a terminal")?;
    if text.encode_utf16().count() > PROMPT_MAX {
        let fix = "put the text into a file and name it in the prompt";
        return Err(format!("Claude Code takes at most {PROMPT_MAX} characters from outside of its terminal: {fix}"));
    }
    Ok(text)
}
