//! Qwen Code in its own terminal, as `plexus wrap qwen` starts it.
//!
//! Qwen Code writes what happens in its terminal to a file while it goes on as always, and takes prompts and answers from another one
//! (its *dual output*). `plexus wrap` names both, in a folder of its own, and is a tunnel ([`link`](super::link)): it says when the first
//! file has grown, and appends lines to the second. What happened is read from the file itself, so a gateway that comes later, or again,
//! goes on where the last checkpoint ends.
//!
//! The shapes are those of Qwen Code 0.24.4 (protocol 2), as it was seen to write them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use self::terminal::{FetchFor, QwenCheckpoint, QwenTerminal, TerminalEnv, TerminalFetches, TerminalFiles};
use super::jsonrpc::{self, INVALID_PARAMS, METHOD_NOT_FOUND, object};
use super::link::{HelperExit, HelperHello, HelperMessage, HelperRole, LinkFrame, LinkReply, process_path};
use super::{
    CarriedState, Dialect, HttpReply, OpenedAs, Outbox, RequestKey, ResumeTarget, RunEnd, RuntimeCommand, RuntimeError,
    RuntimeEvent,
};
use plexus_protocol::{Capabilities, Capability, NativeId, RunStatus, RuntimeSpec, Ticket};

mod drafts;
mod output;
mod terminal;
#[cfg(test)]
mod tests;

/// How often the files of a session at work are looked at, beside what its tunnel says.
const TICK: Duration = Duration::from_millis(250);

/// Terminals at a time; a further one is hung up on, and tries again.
const TERMINALS_MAX: usize = 1024;

/// Why a session ends with its terminal.
const CLOSED: &str = "its terminal was closed";

pub(super) fn make(_: &RuntimeSpec) -> Box<dyn Dialect> {
    Box::new(QwenTerminals::default())
}

#[derive(Default)]
struct QwenTerminals {
    /// By the name of the tunnel.
    terminals: BTreeMap<String, QwenTerminal>,
    fetches: TerminalFetches,
    /// The terminals that this step was about.
    touched: Vec<String>,
}

/// What a tunnel says.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WrapSaid {
    /// First: its files, and how many prompts it has written.
    Hello {
        #[serde(flatten)]
        files: TerminalFiles,
        submits: u64,
    },
    /// The output has grown.
    Grown,
    /// Qwen Code has ended, and the output is whole.
    Ended,
}

impl Dialect for QwenTerminals {
    fn open(&mut self, out: &mut Outbox) {
        out.events.push(RuntimeEvent::Ready { agent: Some("Qwen Code (terminal)".into()) });
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        let Ok(LinkFrame { connection, started, said, ended }) = serde_json::from_slice::<LinkFrame<'_>>(&frame) else {
            return;
        };
        match said {
            Some(HelperMessage { hello, event }) => self.said(connection, started, &hello, event, out),
            None => {
                for (id, terminal) in self.terminals.iter_mut().filter(|(_, one)| one.connection == Some(connection)) {
                    terminal.disconnected();
                    self.touched.push(id.clone());
                }
            }
        }
        if let Some(pid) = ended {
            let of = |terminal: &QwenTerminal| terminal.process.0 == pid;
            let ids: Vec<String> =
                self.terminals.iter().filter(|(_, terminal)| of(terminal)).map(|(id, _)| id.clone()).collect();
            ids.iter().for_each(|id| self.ended(id, out));
        }
        self.after(out);
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        match command {
            RuntimeCommand::Open { ticket, resume, .. } => self.open_session(ticket, resume, out),
            RuntimeCommand::Prompt { ticket, native, content } => self.prompt(ticket, &native, &content, out),
            RuntimeCommand::Cancel { ticket, native, .. } => {
                let withdrawn = self.with(&native, out, |terminal, env| terminal.withdraw(ticket, env));
                if withdrawn != Some(true) {
                    let message = "a turn in a terminal is stopped there: press Esc in it";
                    let draft = drafts::error("cannot_cancel", message);
                    out.events.push(RuntimeEvent::Event { native: Some(native), draft });
                }
            }
            RuntimeCommand::Answer { key, decision } => {
                let found = self.terminals.iter_mut().find(|(_, terminal)| terminal.asks.contains_key(&key));
                if let Some((id, terminal)) = found {
                    terminal.answer(&key, &decision, &mut TerminalEnv { id, fetches: &mut self.fetches, out });
                    self.touched.push(id.clone());
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
        for (id, terminal) in self.terminals.iter_mut().filter(|(_, terminal)| terminal.active()) {
            terminal.tick(&mut TerminalEnv { id, fetches: &mut self.fetches, out });
            self.touched.push(id.clone());
        }
        self.after(out);
    }

    fn reply(&mut self, id: u64, reply: Result<HttpReply, String>, out: &mut Outbox) {
        let Some((id, of)) = self.fetches.pending.remove(&id) else { return };
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        let written = matches!(reply, Ok(HttpReply { status: 200, .. }));
        let mut env = TerminalEnv { id: &id, fetches: &mut self.fetches, out };
        match of {
            FetchFor::Output(from) => terminal.output_reply(from, reply, &mut env),
            FetchFor::Chat(from) => terminal.chat_reply(from, reply, &mut env),
            FetchFor::Answer(key) => terminal.answer_reply(&key, written),
            FetchFor::Prompt(ticket) => terminal.prompt_reply(ticket, written),
            FetchFor::Process if matches!(reply, Ok(HttpReply { status: 404, .. })) => self.ended(&id, out),
            FetchFor::Process => {}
        }
        self.touched.push(id);
        self.after(out);
    }

    fn asks(&self) -> Vec<RequestKey> {
        self.terminals.values().flat_map(|terminal| terminal.asks.keys().cloned()).collect()
    }

    fn prompts(&self) -> Vec<Ticket> {
        self.terminals.values().flat_map(QwenTerminal::prompts).collect()
    }

    /// A turn in a terminal cannot be stopped from outside, and a no has no words.
    fn capabilities(&self) -> Capabilities {
        [Capability::Requests].into_iter().collect()
    }

    fn reached_by(&self) -> &'static [&'static str] {
        &["link"]
    }
}

impl QwenTerminals {
    // === tunnels ===

    fn said(&mut self, connection: u64, started: u64, hello: &HelperHello, event: &RawValue, out: &mut Outbox) {
        let said = object::<WrapSaid>(event).filter(|_| hello.role == HelperRole::Tunnel);
        let known = self.terminals.get(&hello.id).map(|terminal| terminal.connection);
        let room = known.is_some() || self.terminals.len() < TERMINALS_MAX;
        match said {
            // A tunnel of a process that has ended says late what it had to say: the session must not come back.
            Some(WrapSaid::Hello { files, submits }) if room && started != 0 => {
                let terminal = self.terminals.entry(hello.id.clone()).or_default();
                if terminal.connection != Some(connection) {
                    terminal.hang_up(&mut TerminalEnv { id: &hello.id, fetches: &mut self.fetches, out });
                }
                terminal.connected(connection, (hello.pid, started), files, submits);
                self.read(&hello.id, out);
            }
            Some(WrapSaid::Grown) if known == Some(Some(connection)) => self.read(&hello.id, out),
            Some(WrapSaid::Ended) if known == Some(Some(connection)) => self.ended(&hello.id, out),
            // Its beginning was told to an earlier connection of the driver: it says it again.
            _ => {
                let reply = LinkReply { connection, exit: HelperExit::default() };
                out.frames.push(jsonrpc::line(&reply));
            }
        }
    }

    fn read(&mut self, id: &str, out: &mut Outbox) {
        if let Some(terminal) = self.terminals.get_mut(id) {
            terminal.read(false, &mut TerminalEnv { id, fetches: &mut self.fetches, out });
            self.touched.push(id.to_owned());
        }
    }

    /// The process of a terminal has ended: what it wrote is read to its end.
    fn ended(&mut self, id: &str, out: &mut Outbox) {
        if let Some(terminal) = self.terminals.get_mut(id) {
            terminal.ending.get_or_insert_with(|| CLOSED.into());
            terminal.read(true, &mut TerminalEnv { id, fetches: &mut self.fetches, out });
            self.touched.push(id.to_owned());
        }
    }

    // === sessions ===

    /// The terminal of a conversation.
    fn of(&self, native: &NativeId) -> Option<String> {
        let is_it = |terminal: &QwenTerminal| terminal.native.as_ref() == Some(native);
        let open = self.terminals.iter().find(|(_, terminal)| is_it(terminal) && terminal.opened);
        open.or_else(|| self.terminals.iter().find(|(_, terminal)| is_it(terminal))).map(|(id, _)| id.clone())
    }

    /// A step of the terminal of a conversation.
    fn with<T>(
        &mut self,
        native: &NativeId,
        out: &mut Outbox,
        step: impl FnOnce(&mut QwenTerminal, &mut TerminalEnv<'_>) -> T,
    ) -> Option<T> {
        let id = self.of(native)?;
        let terminal = self.terminals.get_mut(&id)?;
        let done = step(terminal, &mut TerminalEnv { id: &id, fetches: &mut self.fetches, out });
        self.touched.push(id);
        Some(done)
    }

    fn open_session(&mut self, ticket: Ticket, resume: Option<ResumeTarget>, out: &mut Outbox) {
        let refused =
            |message: &str| RuntimeEvent::NotOpened { ticket, error: RuntimeError::new(INVALID_PARAMS, message) };
        let Some(ResumeTarget { native, carried, .. }) = resume else {
            let message =
                "a terminal is started by hand: run `plexus wrap qwen` in the folder, and its session appears";
            return out.events.push(refused(message));
        };
        let checkpoint = carried.as_ref().and_then(|carried| serde_json::from_str(&carried.checkpoint).ok());
        let checkpoint: Option<QwenCheckpoint> = checkpoint.filter(|kept: &QwenCheckpoint| kept.process.0 != 0);
        let here = self.of(&native);
        // A terminal that goes on with an old conversation has only what is new of it in its output.
        let kept = checkpoint.filter(|kept| here.as_ref().is_none_or(|id| *id == kept.terminal));
        let Some(id) = here.or_else(|| kept.as_ref().map(|kept| kept.terminal.clone())) else {
            let message = "the terminal of this session is not open: run `plexus wrap qwen --resume` in its folder";
            return out.events.push(refused(message));
        };
        let terminal = self.terminals.entry(id.clone()).or_default();
        let mut env = TerminalEnv { id: &id, fetches: &mut self.fetches, out };
        if let Some(kept) = kept {
            // An earlier gateway had it. If its process lives, its tunnel comes again.
            let ((pid, started), submits) = (kept.process, kept.submits);
            env.fetch(FetchFor::Process, "GET", process_path(pid, started), None);
            terminal.restore(kept);
            if let Some(CarriedState { asks, prompt, content, .. }) = carried.as_deref() {
                let blocks = content.iter().filter_map(|block| RawValue::from_string(block.clone()).ok());
                let text = prompt_text(&blocks.collect::<Vec<_>>()).unwrap_or_default();
                terminal.carry(asks, prompt.map(|ticket| (ticket, text)), submits);
            }
        }
        let opened =
            RuntimeEvent::Opened { ticket, native: native.clone(), drafts: Vec::new(), how: OpenedAs::Resumed };
        env.out.events.push(opened);
        terminal.open(native, &mut env);
        self.touched.push(id);
    }

    fn prompt(&mut self, ticket: Ticket, native: &NativeId, content: &[Box<RawValue>], out: &mut Outbox) {
        let started = match prompt_text(content) {
            Err(why) => Err(why),
            Ok(text) => {
                let started = self.with(native, out, |terminal, env| terminal.start(ticket, text, env));
                started.ok_or_else(|| "its terminal is not open".to_owned())
            }
        };
        if let Err(why) = started {
            let end = RunEnd { status: RunStatus::Error, stop_reason: None, message: Some(why), native: None };
            out.events.push(RuntimeEvent::Ended { native: native.clone(), ticket, end });
        }
    }

    /// What follows from a step: checkpoints, ends, the next wake.
    fn after(&mut self, out: &mut Outbox) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for id in touched {
            let Some(terminal) = self.terminals.get_mut(&id) else { continue };
            let mut env = TerminalEnv { id: &id, fetches: &mut self.fetches, out };
            terminal.checkpoint(&mut env);
            let unseen = terminal.ending.is_some() && !terminal.opened;
            if !terminal.over && !unseen {
                continue;
            }
            // The tunnel waits for that: then it removes the files.
            terminal.hang_up(&mut env);
            if let (Some(native), Some(why)) =
                (terminal.native.clone().filter(|_| terminal.opened), terminal.ending.clone())
            {
                out.events.push(RuntimeEvent::Closed { native, why });
            }
            self.terminals.remove(&id);
        }
        if self.terminals.values().any(QwenTerminal::active) {
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
    // Some commands change what needs no permission.
    if text.trim_start().starts_with('/') {
        return Err(
            "Qwen Code would take it as a command, for it begins with \"/\": commands are typed at the terminal".into(),
        );
    }
    Ok(text)
}
