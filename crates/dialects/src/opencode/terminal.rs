//! OpenCode in its own terminal, by the plugin that `plexus link opencode` adds (`clients/opencode-plugin/plexus.js`).
//!
//! Plain `opencode` listens nowhere. The plugin runs in its process and keeps a tunnel open ([`link`]): it forwards the events of
//! OpenCode's bus, and makes the requests of its API there. So each tunnel is a server like any other, and has a state of its own here.
//! In addition, this module knows the terminal of each session, and the beginning and end of sessions:
//! - A session appears when it is created in a linked terminal, which its first prompt does, or first does something there; those that
//!   OpenCode only lists do not.
//! - A tunnel that is lost comes back under the same name, in this gateway or the next, and its sessions continue. They end with the
//!   process of the terminal, or when the tunnel stays away.
//! - A session that continues in another terminal moves there.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, INVALID_PARAMS, METHOD_NOT_FOUND, object};
use super::super::link::{self, HelperExit, HelperHello, HelperMessage, HelperRole, LinkFrame, LinkReply};
use super::super::{
    Dialect, EventDraft, HttpBase, HttpReply, HttpRequest, Outbox, RequestKey, ResumeTarget, RunEnd, RuntimeCommand,
    RuntimeError, RuntimeEvent,
};
use super::{OpenCode, ServerKind};
use plexus_protocol::{Capabilities, Capability, NativeId, RuntimeSpec, Ticket};

/// The unit of all waits, and the interval of wake-ups while anything waits.
const TICK: Duration = Duration::from_millis(500);
/// Ticks that a tunnel may be absent before its sessions end. A plugin reconnects twice a second.
pub(super) const ABSENT_MAX: u32 = 20;
/// Maximum number of tunnels at a time; further ones are closed, and try again.
const TUNNELS_MAX: usize = 256;

/// Maximum number of sessions of all terminals; further ones are not shown. A terminal's sessions end with it.
const SESSIONS_MAX: usize = 16 * 1024;

/// Maximum number of sessions that a tunnel names at its beginning; further ones are not shown until something happens in them.
const NAMED_MAX: usize = 256;

/// The reason why a session ends with its terminal.
const CLOSED: &str = "its terminal was closed";
/// The reason why a session ends if its terminal runs but does not answer.
const UNREACHED: &str = "its terminal no longer answers";
/// The reason why a session ends in one terminal when another one works on it.
const MOVED: &str = "it continues in another terminal";
/// The session of requests that do not concern a connected terminal.
const PROCESSES: &str = "processes";

pub(in super::super) fn make(_: &RuntimeSpec) -> Box<dyn Dialect> {
    Box::new(OpenCodeTerminals::default())
}

#[derive(Default)]
struct OpenCodeTerminals {
    /// The terminals, by the name of the plugin's tunnel.
    terminals: BTreeMap<String, LinkedTerminal>,
    /// The terminal of each session, and whether the gateway has the session open.
    sessions: BTreeMap<NativeId, (String, bool)>,
    opening: Vec<HeldOpen>,
    /// Sessions that moved, to be reported as found once they have ended.
    moved: Vec<RuntimeEvent>,
    next: u64,
    pending: HashMap<u64, FetchFor>,
}

/// A terminal, by its tunnel.
struct LinkedTerminal {
    /// The connection of the tunnel, while there is one.
    connection: Option<u64>,
    /// The process id, and the time at which the process started.
    process: (u32, u64),
    server: OpenCode,
    /// `true` if the server was read, so that sessions can be opened.
    ready: bool,
    /// Ticks since the tunnel was lost.
    absent: u32,
    /// Ticks until the server's next wake-up.
    wake: Option<u32>,
}

/// A session to open, until its terminal has opened it.
struct HeldOpen {
    ticket: Ticket,
    cwd: String,
    resume: ResumeTarget,
    /// The terminal that had the session, according to its checkpoint.
    terminal: Option<String>,
    /// `true` if the request was sent to the terminal.
    sent_to_terminal: bool,
    ticks: u32,
}

/// The purpose of a request.
enum FetchFor {
    /// A request of a terminal, with the server's own number of it.
    Terminal(String, u64),
    /// A request whether the process of the terminal of a session to open is alive.
    Process(Ticket),
}

/// The part of a session's checkpoint beside the server's.
#[derive(Serialize, Deserialize)]
struct TerminalCheckpoint<S> {
    terminal: String,
    process: (u32, u64),
    server: S,
}

/// The first message of a tunnel.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum TunnelOpening {
    /// The folder, and the sessions that had events so far.
    #[serde(rename = "plexus.hello")]
    Hello {
        directory: String,
        #[serde(default)]
        sessions: Vec<NativeId>,
    },
}

impl Dialect for OpenCodeTerminals {
    fn open(&mut self, out: &mut Outbox) {
        out.events.push(RuntimeEvent::Ready { agent: Some("OpenCode (terminal)".into()) });
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        let Ok(LinkFrame { connection, started, message, ended }) = serde_json::from_slice::<LinkFrame<'_>>(&frame)
        else {
            return;
        };
        match message {
            Some(HelperMessage { hello, event }) => self.on_message(connection, started, &hello, event, out),
            None => {
                let is_match = |terminal: &LinkedTerminal| terminal.connection == Some(connection);
                if let Some(id) =
                    self.terminals.iter().find(|(_, terminal)| is_match(terminal)).map(|(id, _)| id.clone())
                {
                    self.disconnected(&id, out);
                }
            }
        }
        if let Some(pid) = ended {
            let is_match = |terminal: &LinkedTerminal| terminal.process.0 == pid;
            let ids: Vec<String> =
                self.terminals.iter().filter(|(_, terminal)| is_match(terminal)).map(|(id, _)| id.clone()).collect();
            ids.iter().for_each(|id| self.closed(id, CLOSED, out));
        }
        self.after(out);
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        match command {
            RuntimeCommand::Open { ticket, cwd, resume, .. } => self.open_session(ticket, cwd, resume, out),
            RuntimeCommand::Prompt { ticket, native, content } => match self.terminal_of(&native) {
                Some(id) => {
                    let command = RuntimeCommand::Prompt { ticket, native, content };
                    self.step(&id, out, |server, out| server.command(command, out));
                }
                None => {
                    let end = RunEnd::failed("its terminal is not open");
                    out.events.push(RuntimeEvent::Ended { native, ticket, end });
                }
            },
            RuntimeCommand::Cancel { ref native, .. } => {
                if let Some(id) = self.terminal_of(native) {
                    self.step(&id, out, |server, out| server.command(command, out));
                }
            }
            RuntimeCommand::Answer { ref key, .. } => {
                let asks = |terminal: &LinkedTerminal| terminal.server.asks.contains_key(key);
                let found = self.terminals.iter().find(|(_, terminal)| asks(terminal)).map(|(id, _)| id.clone());
                if let Some(id) = found {
                    self.step(&id, out, |server, out| server.command(command, out));
                }
            }
            RuntimeCommand::Call { ticket, native: Some(native), method, params, notify }
                if matches!(method.as_str(), "model.list" | "model.set") && self.sessions.contains_key(&native) =>
            {
                let id = self.terminal_of(&native).unwrap_or_default();
                let command = RuntimeCommand::Call { ticket, native: Some(native), method, params, notify };
                self.step(&id, out, |server, out| server.command(command, out));
            }
            RuntimeCommand::Call { ticket, method, notify, .. } => {
                if !notify {
                    let reason = format!("{method}: a terminal supports only model.list and model.set, in a session");
                    let reply = Err(RuntimeError::new(METHOD_NOT_FOUND, reason));
                    out.events.push(RuntimeEvent::Replied { ticket, reply });
                }
            }
        }
        self.after(out);
    }

    fn wake(&mut self, out: &mut Outbox) {
        out.events.append(&mut self.moved);
        let ids: Vec<String> = self.terminals.keys().cloned().collect();
        for id in ids {
            let Some(terminal) = self.terminals.get_mut(&id) else { continue };
            if terminal.connection.is_none() {
                terminal.absent += 1;
                if terminal.absent > ABSENT_MAX {
                    self.closed(&id, UNREACHED, out);
                    continue;
                }
            }
            match &mut terminal.wake {
                Some(0) => {
                    terminal.wake = None;
                    self.step(&id, out, |server, out| server.wake(out));
                }
                Some(ticks) => *ticks -= 1,
                None => {}
            }
        }
        self.opening.iter_mut().for_each(|held| held.ticks += 1);
        let late: Vec<Ticket> = self
            .opening
            .iter()
            .filter(|held| held.ticks > ABSENT_MAX && !held.sent_to_terminal)
            .map(|held| held.ticket)
            .collect();
        late.into_iter().for_each(|ticket| self.not_open(ticket, out));
        self.after(out);
    }

    fn reply(&mut self, id: u64, reply: Result<HttpReply, String>, out: &mut Outbox) {
        match self.pending.remove(&id) {
            Some(FetchFor::Terminal(terminal, id)) => {
                self.step(&terminal, out, |server, out| server.reply(id, reply, out));
            }
            Some(FetchFor::Process(ticket)) => {
                let held = self.opening.iter().any(|held| held.ticket == ticket && !held.sent_to_terminal);
                if held && matches!(reply, Ok(HttpReply { status: 404, .. })) {
                    self.not_open(ticket, out);
                }
            }
            None => {}
        }
        self.after(out);
    }

    fn reached_by(&self) -> &'static [&'static str] {
        &["link"]
    }

    fn capabilities(&self) -> Capabilities {
        let all = [Capability::Cancel, Capability::Requests, Capability::Reasons, Capability::Models];
        all.into_iter().chain([Capability::Images, Capability::Audio]).collect()
    }

    fn asks(&self) -> Vec<RequestKey> {
        self.terminals.values().flat_map(|terminal| terminal.server.asks()).collect()
    }

    fn prompts(&self) -> Vec<Ticket> {
        self.terminals.values().flat_map(|terminal| terminal.server.prompts()).collect()
    }
}

impl OpenCodeTerminals {
    // === tunnels ===

    fn on_message(&mut self, connection: u64, started: u64, hello: &HelperHello, event: &RawValue, out: &mut Outbox) {
        let known = self.terminals.get(&hello.id);
        if known.is_some_and(|terminal| terminal.connection == Some(connection)) {
            let event = Bytes::copy_from_slice(event.get().as_bytes());
            return self.step(&hello.id, out, |server, out| server.feed(event, out));
        }
        let opening = object::<TunnelOpening>(event).filter(|_| hello.role == HelperRole::Tunnel);
        let allowed = known.is_some() || self.terminals.len() < TUNNELS_MAX;
        let Some(TunnelOpening::Hello { directory, mut sessions }) = opening.filter(|_| allowed) else {
            // The beginning was sent on an earlier connection of the driver: the plugin sends it again.
            return hang_up(connection, out);
        };
        let terminal = self.terminals.entry(hello.id.clone()).or_insert_with(|| LinkedTerminal {
            connection: None,
            process: (0, 0),
            server: OpenCode { folder: directory, server_kind: ServerKind::Terminal, ..OpenCode::default() },
            ready: false,
            absent: 0,
            wake: None,
        });
        if let Some(old) = terminal.connection {
            hang_up(old, out);
            self.disconnected(&hello.id, out);
        }
        if let Some(terminal) = self.terminals.get_mut(&hello.id) {
            (terminal.connection, terminal.absent) = (Some(connection), 0);
            terminal.process = (hello.pid, started);
            // A session that continues in another terminal belongs to that one.
            let elsewhere =
                |native: &NativeId| matches!(self.sessions.get(native), Some((id, true)) if *id != hello.id);
            sessions.retain(|native| !elsewhere(native));
            sessions.truncate(NAMED_MAX);
            terminal.server.find(sessions);
        }
        self.step(&hello.id, out, |server, out| server.open(out));
    }

    /// Handles the loss of a tunnel, which may come back.
    fn disconnected(&mut self, id: &str, out: &mut Outbox) {
        let Some(terminal) = self.terminals.get_mut(id) else { return };
        (terminal.connection, terminal.ready, terminal.wake) = (None, false, None);
        for held in self.opening.iter_mut().filter(|held| held.sent_to_terminal) {
            if self.sessions.get(&held.resume.native).is_some_and(|(owner, _)| owner == id) {
                (held.sent_to_terminal, held.ticks) = (false, 0);
            }
        }
        self.step(id, out, |server, out| server.lost("", out));
    }

    /// Ends the sessions of a terminal that was closed.
    fn closed(&mut self, id: &str, reason: &str, out: &mut Outbox) {
        if self.terminals.get(id).is_some_and(|terminal| terminal.connection.is_some()) {
            self.disconnected(id, out);
        }
        self.terminals.remove(id);
        let natives: Vec<NativeId> =
            self.sessions.iter().filter(|(_, (owner, _))| owner == id).map(|(native, _)| native.clone()).collect();
        for native in natives {
            if self.sessions.remove(&native).is_some_and(|(_, open)| open) {
                out.events.push(RuntimeEvent::Closed { native, reason: reason.into() });
            }
        }
        let held = self.opening.iter().filter(|held| held.terminal.as_deref() == Some(id));
        let held: Vec<Ticket> = held.map(|held| held.ticket).collect();
        held.into_iter().for_each(|ticket| self.not_open(ticket, out));
    }

    /// Runs a step of a terminal's server.
    fn step(&mut self, id: &str, out: &mut Outbox, step: impl FnOnce(&mut OpenCode, &mut Outbox)) {
        let Some(terminal) = self.terminals.get_mut(id) else { return };
        let mut own = Outbox::default();
        step(&mut terminal.server, &mut own);
        if let Some(after) = own.wake_after {
            // The current tick may be about to end.
            let ticks = u32::try_from(after.as_millis().div_ceil(TICK.as_millis())).unwrap_or(u32::MAX);
            terminal.wake = Some(terminal.wake.map_or(ticks, |wake| wake.min(ticks)));
        }
        // Without a connection the endpoint reports that there is none.
        let connection = terminal.connection.unwrap_or_default();
        for fetch in own.fetches {
            self.next += 1;
            self.pending.insert(self.next, FetchFor::Terminal(id.to_owned(), fetch.id));
            let path = link::tunnel_path(connection, &fetch.path);
            // The requests of each terminal are sent one after the other: none waits for another terminal.
            out.fetches.push(HttpRequest { id: self.next, path, session: Some(id.into()), ..fetch });
        }
        for event in own.events {
            self.pass(id, event, out);
        }
    }

    /// Forwards an event of a terminal's server.
    fn pass(&mut self, id: &str, event: RuntimeEvent, out: &mut Outbox) {
        let Some(terminal) = self.terminals.get_mut(id) else { return };
        match event {
            RuntimeEvent::Ready { .. } => terminal.ready = true,
            RuntimeEvent::Failed { message } => {
                let message = format!("an OpenCode terminal cannot be shown: {message}");
                let draft = EventDraft::error("terminal_failed", &message, None);
                out.events.push(RuntimeEvent::Event { native: None, draft });
            }
            RuntimeEvent::Checkpoint { native, state } => {
                let Ok(server) = RawValue::from_string(state) else { return };
                let state = TerminalCheckpoint { terminal: id.to_owned(), process: terminal.process, server };
                let state = serde_json::to_string(&state).unwrap_or_default();
                out.events.push(RuntimeEvent::Checkpoint { native, state });
            }
            RuntimeEvent::Found { ref native, .. }
                if self.sessions.len() >= SESSIONS_MAX && !self.sessions.contains_key(native) => {}
            RuntimeEvent::Found { ref native, .. } => {
                let native = native.clone();
                match self.sessions.insert(native.clone(), (id.to_owned(), false)) {
                    Some((other, true)) if other != id => {
                        if let Some(other) = self.terminals.get_mut(&other) {
                            other.server.forget(&native);
                        }
                        out.events.push(RuntimeEvent::Closed { native, reason: MOVED.into() });
                        self.moved.push(event);
                    }
                    // The gateway already knows it: it is about to be opened.
                    _ if self.opening.iter().any(|held| held.resume.native == native) => {}
                    _ => out.events.push(event),
                }
            }
            RuntimeEvent::Opened { ticket, ref native, .. } => {
                self.opening.retain(|held| held.ticket != ticket);
                self.sessions.insert(native.clone(), (id.to_owned(), true));
                out.events.push(event);
            }
            RuntimeEvent::NotOpened { ticket, .. } => {
                if self.opening.iter().any(|held| held.ticket == ticket && !held.sent_to_terminal) {
                    // The tunnel was lost: the session is opened when it is back.
                    return;
                }
                self.opening.retain(|held| held.ticket != ticket);
                out.events.push(event);
            }
            event => out.events.push(event),
        }
    }

    // === sessions ===

    fn terminal_of(&self, native: &NativeId) -> Option<String> {
        self.sessions.get(native).map(|(id, _)| id.clone())
    }

    fn open_session(&mut self, ticket: Ticket, cwd: String, resume: Option<ResumeTarget>, out: &mut Outbox) {
        let Some(mut resume) = resume else {
            let message = "a terminal is started by hand: run `opencode` in the folder; its session appears with its \
                first prompt";
            let error = RuntimeError::new(INVALID_PARAMS, message);
            return out.events.push(RuntimeEvent::NotOpened { ticket, error });
        };
        let checkpoint = resume
            .carried
            .as_ref()
            .and_then(|carried| serde_json::from_str::<TerminalCheckpoint<Box<RawValue>>>(&carried.checkpoint).ok());
        let process = checkpoint.as_ref().map(|checkpoint| checkpoint.process);
        let terminal = checkpoint.as_ref().map(|checkpoint| checkpoint.terminal.clone());
        match (&mut resume.carried, checkpoint) {
            (Some(carried), Some(checkpoint)) => carried.checkpoint = checkpoint.server.get().to_owned(),
            (carried, _) => *carried = None,
        }
        let is_here = self.sessions.contains_key(&resume.native)
            || terminal.as_ref().is_some_and(|terminal| self.terminals.contains_key(terminal));
        self.opening.push(HeldOpen { ticket, cwd, resume, terminal, sent_to_terminal: false, ticks: 0 });
        match process {
            _ if is_here => {}
            // An earlier gateway process had it. If the process of the terminal is alive, its tunnel comes again.
            Some((pid, started)) => {
                self.next += 1;
                self.pending.insert(self.next, FetchFor::Process(ticket));
                out.fetches.push(HttpRequest {
                    id: self.next,
                    base: HttpBase::Connect,
                    method: "GET",
                    path: link::process_path(pid, started),
                    body: None,
                    decides: false,
                    session: Some(PROCESSES.into()),
                });
            }
            None => self.not_open(ticket, out),
        }
    }

    /// Reports that the terminal of a session to open is absent.
    fn not_open(&mut self, ticket: Ticket, out: &mut Outbox) {
        self.opening.retain(|held| held.ticket != ticket);
        let message = "the terminal of this session is not open: run `opencode --continue` in its folder, and it goes \
            on here with its next prompt";
        let error = RuntimeError::new(INVALID_PARAMS, message);
        out.events.push(RuntimeEvent::NotOpened { ticket, error });
    }

    /// Executes the consequences of a step: opens the sessions that can be opened now, and requests the next wake-up.
    fn after(&mut self, out: &mut Outbox) {
        let ready = |id: &String| self.terminals.get(id).is_some_and(|terminal| terminal.ready);
        let mut now = Vec::new();
        for (at, held) in self.opening.iter().enumerate().filter(|(_, held)| !held.sent_to_terminal) {
            let id = self.terminal_of(&held.resume.native).or_else(|| held.terminal.clone());
            now.extend(id.filter(ready).map(|id| (at, id)));
        }
        let mut commands = Vec::with_capacity(now.len());
        for (at, id) in now {
            let Some(held) = self.opening.get_mut(at) else { continue };
            held.sent_to_terminal = true;
            let (ticket, cwd, resume) = (held.ticket, held.cwd.clone(), Some(held.resume.clone()));
            // The session gets no tools of the gateway: they would be for all sessions of its folder.
            let command = RuntimeCommand::Open { ticket, cwd, resume, mcp_servers: Vec::new() };
            commands.push((held.resume.native.clone(), id, command));
        }
        for (native, id, command) in commands {
            self.sessions.insert(native, (id.clone(), false));
            self.step(&id, out, |server, out| server.command(command, out));
        }
        let waits = |terminal: &LinkedTerminal| terminal.wake.is_some() || terminal.connection.is_none();
        let held = self.opening.iter().any(|held| !held.sent_to_terminal);
        if held || !self.moved.is_empty() || self.terminals.values().any(waits) {
            out.wake_after = Some(TICK);
        }
    }
}

fn hang_up(connection: u64, out: &mut Outbox) {
    out.frames.push(jsonrpc::line(&LinkReply { connection, exit: HelperExit::default() }));
}
