//! The terminal UI of a Gemini CLI, through its UI mirror. One file: run, questions and history depend on each other.
//!
//! The UI mirror (`--ui-port`) reports events, its remote control (`GEMINI_CLI_REMOTE_PORT`) takes prompts and returns the history. The
//! mirror has no handshake, no run ids and no input: a run lasts from a message to `idle`, and questions can be answered only at the UI.
//! The UI has one conversation, here named `ui`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use self::events::{Dialog, Message, Selection, ToolCall, ToolOutput, ToolUnderWay};
use self::frames::{Frame, FrameReader};
use self::history::{Role, TURNS_MAX, Turns, same};
use super::jsonrpc::{METHOD_NOT_FOUND, object, owned, shallow};
use super::prompt_text::prompt_text;
use super::{
    AnsweredElsewhere, Dialect, EventDraft, HttpBase, HttpReply, HttpRequest, OpenedAs, Outbox, RequestKey,
    ResumeTarget, RunEnd, RuntimeCommand, RuntimeError, RuntimeEvent, SessionLimit,
};
use plexus_protocol::{Capabilities, Capability, NativeId, RunStatus, RuntimeSpec, Ticket};

mod events;
mod frames;
mod history;
#[cfg(test)]
mod tests;

/// The id of the only conversation.
const NATIVE: &str = "ui";

/// The author of actions at the UI.
const UI_USER: &str = "a user of the Gemini UI";

/// Interval of retries and of checks for silence.
const TICK: Duration = Duration::from_secs(1);

/// Ticks that a UI may take to be ready (until then it answers 503) before the history, or a prompt, is abandoned.
const READY_TICKS: u32 = 60;

/// Ticks that a remote control may be unreachable before the history is abandoned.
const CONNECT_TICKS: u32 = 5;

/// Ticks of silence that end a run whose end may have been missed while the connection was lost, or a prompt that was accepted and never
/// shown.
const SILENT_TICKS: u32 = 60;

/// Ticks of silence that end a run that may never have begun: a slash command has no `idle`.
const COMMAND_TICKS: u32 = 5;

/// Maximum number of messages that are queued until the history is known.
const HELD_MAX: usize = 1024;

/// Maximum size of the queued messages, in bytes. Above either limit the history is abandoned.
const HELD_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of open questions; further ones are reported as raw.
const ASKS_MAX: usize = 64;

/// Maximum number of tool calls of a run that are stored for questions about them.
const CALLS_MAX: usize = 256;

pub(super) fn make(spec: &RuntimeSpec) -> Box<dyn Dialect> {
    Box::new(Mirror { remote: spec.remote.is_some(), ..Mirror::default() })
}

#[derive(Default)]
struct Mirror {
    /// `true` if there is a remote control.
    remote: bool,
    connected: bool,
    /// `true` if the session is open.
    opened: bool,
    frames: FrameReader,
    /// Messages queued until the session is open and the history is known.
    held: VecDeque<Bytes>,
    held_bytes: usize,
    held_dropped: u64,
    catching: Option<Catching>,
    /// The turns that were reported.
    turns: Turns,
    run: Option<Run>,
    doubt: Option<Doubt>,
    asks: BTreeMap<RequestKey, OpenQuestion>,
    /// The number of questions with a key, which is the occurrence of the next one.
    request_count: u64,
    calls: BTreeMap<String, ToolUnderWay>,
    /// The id of the last request.
    fetches: u64,
}

/// The state of reading the history.
struct Catching {
    missing: Missing,
    /// The pending request; if there is none, the next tick makes one.
    fetch: Option<u64>,
    tries: u32,
}

/// The part that may be missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// The whole history.
    Past,
    /// The part after an earlier gateway process, whose extent cannot be determined.
    Unknown,
    /// The part from the time when the connection was lost.
    Disconnected,
}

/// The current run.
enum Run {
    /// A run begun at the UI.
    AtUi,
    /// A run begun by a prompt of the gateway.
    Gateway { ticket: Ticket, text: String, post: Post, displayed: bool },
}

/// The state of a prompt.
enum Post {
    /// The pending request.
    Sent { id: u64, tries: u32 },
    /// The number of times that the UI was not ready; the prompt is sent now, or at the next tick.
    Again { tries: u32 },
    /// The UI accepted the prompt.
    Taken,
}

/// A run that may have ended without a report.
struct Doubt {
    /// Ticks of silence after which the run counts as ended.
    left: u32,
    limit: u32,
}

/// A question that the user sees.
struct OpenQuestion {
    options: Vec<String>,
    /// `true` if the connection was lost meanwhile, so that the question may have been answered.
    stale: bool,
}

impl Dialect for Mirror {
    fn open(&mut self, out: &mut Outbox) {
        self.connected = true;
        self.frames = FrameReader::default();
        out.events.push(RuntimeEvent::Ready { agent: Some("Gemini CLI (UI mirror)".into()) });
        out.events.push(RuntimeEvent::Found { native: NATIVE.into(), cwd: None, title: None });
        if self.opened {
            let missing = self.catching.as_ref().map_or(Missing::Disconnected, |catching| catching.missing);
            self.catch_up(missing, out);
        }
    }

    /// Returns the capabilities: questions are answered only at the UI.
    fn capabilities(&self) -> Capabilities {
        [Capability::Cancel].into_iter().collect()
    }

    fn lost(&mut self, _why: &str, out: &mut Outbox) {
        self.connected = false;
        if let Some(rest) = self.frames.finish() {
            self.raw(rest, "the connection was lost in the middle of a message", out);
        }
        self.doubt = None;
        self.asks.values_mut().for_each(|question| question.stale = true);
        if self.catching.is_some() || (self.remote && !self.opened) {
            // The history has their content.
            (self.held, self.held_bytes) = (VecDeque::new(), 0);
        }
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        for frame in self.frames.feed(frame) {
            match frame {
                Frame::Whole(frame) if self.opened && self.catching.is_none() => self.message(&frame, out),
                Frame::Whole(frame) => self.hold(frame, out),
                Frame::Cut(head, dropped) => {
                    let max = frames::FRAME_MAX;
                    self.raw(head, &format!("message over the limit of {max} bytes; {dropped} bytes dropped"), out);
                }
            }
        }
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        match command {
            RuntimeCommand::Open { ticket, resume, .. } => self.open_session(ticket, resume, out),
            RuntimeCommand::Prompt { ticket, content, .. } => self.prompt(ticket, &content, out),
            RuntimeCommand::Cancel { ticket, .. } => self.cancel(ticket, out),
            // Questions are answered only at the UI, which closes them itself.
            RuntimeCommand::Answer { .. } => {}
            RuntimeCommand::Call { ticket, method, notify, .. } => {
                if !notify {
                    let reason = format!("{method}: a Gemini UI does not support method calls");
                    out.events.push(RuntimeEvent::Replied {
                        ticket,
                        reply: Err(RuntimeError::new(METHOD_NOT_FOUND, reason)),
                    });
                }
            }
        }
    }

    fn wake(&mut self, out: &mut Outbox) {
        if self.connected && self.catching.as_ref().is_some_and(|catching| catching.fetch.is_none()) {
            self.ask_history(out);
        }
        if let Some(Run::Gateway { post: Post::Again { .. }, .. }) = &self.run {
            self.post(out);
        }
        let timed_out = self.doubt.as_mut().is_some_and(|doubt| {
            doubt.left = doubt.left.saturating_sub(1);
            doubt.left == 0
        });
        if timed_out {
            self.end_silent_run(out);
        }
        self.tick(out);
    }

    fn reply(&mut self, id: u64, reply: Result<HttpReply, String>, out: &mut Outbox) {
        if self.catching.as_ref().is_some_and(|catching| catching.fetch == Some(id)) {
            self.history(reply, out);
        } else if matches!(&self.run, Some(Run::Gateway { post: Post::Sent { id: sent, .. }, .. }) if *sent == id) {
            self.posted(reply, out);
        }
        // The reply is no longer needed.
        self.tick(out);
    }

    fn asks(&self) -> Vec<RequestKey> {
        self.asks.keys().cloned().collect()
    }

    fn prompts(&self) -> Vec<Ticket> {
        match &self.run {
            Some(Run::Gateway { ticket, .. }) => vec![*ticket],
            _ => Vec::new(),
        }
    }

    fn reached_by(&self) -> &'static [&'static str] {
        &["ws"]
    }

    fn sessions(&self) -> SessionLimit {
        SessionLimit::One
    }
}

fn native() -> NativeId {
    NATIVE.into()
}

fn event(draft: EventDraft, out: &mut Outbox) {
    out.events.push(RuntimeEvent::Event { native: Some(native()), draft });
}

fn emit_error(code: &str, message: &str, out: &mut Outbox) {
    event(EventDraft::error(code, message, None), out);
}

fn completed(message: Option<&str>, frame: Option<&Bytes>) -> RunEnd {
    let stop_reason = frame.map(|_| "idle".into());
    RunEnd { stop_reason, native: frame.cloned(), ..RunEnd::new(RunStatus::Completed, message.map(str::to_owned)) }
}

impl Mirror {
    // === the session ===

    fn open_session(&mut self, ticket: Ticket, resume: Option<ResumeTarget>, out: &mut Outbox) {
        if let Some(other) = resume.as_ref().map(|resume| resume.native.as_str()).filter(|name| *name != NATIVE) {
            let reason = format!("the Gemini UI has one conversation, named {NATIVE:?}; there is no {other:?}");
            return out.events.push(RuntimeEvent::NotOpened {
                ticket,
                error: RuntimeError::new(super::jsonrpc::INVALID_PARAMS, reason),
            });
        }
        self.take_back(out);
        out.events.push(RuntimeEvent::Opened { ticket, native: native(), drafts: Vec::new(), how: OpenedAs::Resumed });
        let known = resume.is_some_and(|resume| resume.known);
        (self.opened, self.turns, self.run, self.doubt) = (true, Turns::default(), None, None);
        self.calls.clear();
        self.catch_up(if known { Missing::Unknown } else { Missing::Past }, out);
    }

    /// Requests the history; later messages are queued until it comes.
    fn catch_up(&mut self, missing: Missing, out: &mut Outbox) {
        self.catching = Some(Catching { missing, fetch: None, tries: 0 });
        if self.remote {
            return self.ask_history(out);
        }
        let message = match missing {
            Missing::Past => "earlier messages of the UI are missing here",
            Missing::Unknown => "messages of the UI from the time when the gateway was not running are missing here",
            Missing::Disconnected => "messages of the UI from the time when the connection was lost are missing here",
        };
        emit_error("gap", &format!("{message}: set the runtime's `remote` to get them"), out);
        if self.run.is_some() {
            self.doubt(SILENT_TICKS);
        }
        self.release(out);
    }

    fn ask_history(&mut self, out: &mut Outbox) {
        let id = self.fetch("GET", &format!("/history?limit={TURNS_MAX}"), None, out);
        if let Some(catching) = &mut self.catching {
            catching.fetch = Some(id);
        }
    }

    fn fetch(&mut self, method: &'static str, path: &str, body: Option<Bytes>, out: &mut Outbox) -> u64 {
        self.fetches += 1;
        let (id, path) = (self.fetches, path.to_owned());
        out.fetches.push(HttpRequest { id, base: HttpBase::Remote, method, path, body, decides: false, session: None });
        self.fetches
    }

    fn history(&mut self, reply: Result<HttpReply, String>, out: &mut Outbox) {
        let Some(catching) = &mut self.catching else { return };
        let (reason, tries) = match reply {
            Ok(HttpReply { status: 200, body }) => match Turns::read(&body) {
                Some(history) => return self.caught_up(&history, out),
                None => return self.give_up("its history could not be parsed", out),
            },
            Ok(HttpReply { status: 503, .. }) => ("it is not ready (503)".to_owned(), READY_TICKS),
            Ok(HttpReply { status, .. }) => return self.give_up(&format!("it answered {status}"), out),
            Err(reason) => (reason, CONNECT_TICKS),
        };
        catching.fetch = None;
        catching.tries += 1;
        if catching.tries >= tries {
            self.give_up(&reason, out);
        }
    }

    /// Reports that the history is unavailable.
    fn give_up(&mut self, reason: &str, out: &mut Outbox) {
        emit_error("gap", &format!("some earlier messages of the UI are missing here: {reason}"), out);
        if self.run.is_some() {
            self.doubt(SILENT_TICKS);
        }
        self.release(out);
    }

    fn caught_up(&mut self, history: &Turns, out: &mut Outbox) {
        let Some(missing) = self.catching.as_ref().map(|catching| catching.missing) else { return };
        let mut live = Turns::default();
        for frame in &self.held {
            let Ok(message) = plexus_protocol::object::from_slice::<Message<'_>>(frame) else { continue };
            let role = match &*message.type_name {
                "user_message" => Role::User,
                "model_output" => Role::Model,
                _ => continue,
            };
            live.add(role, &message.data.and_then(events::text).unwrap_or_default());
        }
        let new = self.turns.missed(history, &live);
        match missing {
            Missing::Past if history.full() => {
                emit_error("gap", &format!("only the last {TURNS_MAX} earlier messages are shown"), out);
            }
            Missing::Past => {}
            Missing::Unknown => {
                emit_error(
                    "gap",
                    "messages of the UI from the time when the gateway was not running are missing here",
                    out,
                );
            }
            Missing::Disconnected if self.run.is_some() || !new.is_empty() => {
                let message = "the connection to the UI was lost for a while: messages from that time are taken from \
                    its history, which has no tool calls, requests or hooks";
                emit_error("gap", message, out);
            }
            Missing::Disconnected => {}
        }
        for turn in new {
            self.turns.add(turn.role, &turn.text);
            if missing == Missing::Unknown {
                continue;
            }
            if turn.role == Role::User {
                if self.is_own_prompt(&turn.text) {
                    continue;
                }
                if !matches!(&self.run, Some(Run::Gateway { displayed: false, .. })) {
                    self.end_run(&completed(Some("its end was missed: the connection was lost"), None), out);
                }
            }
            event(events::past(&turn), out);
        }
        if self.run.is_some() {
            self.doubt(SILENT_TICKS);
        }
        self.release(out);
    }

    fn hold(&mut self, frame: Bytes, out: &mut Outbox) {
        self.held_bytes += frame.len();
        self.held.push_back(frame);
        if self.held.len() <= HELD_MAX && self.held_bytes <= HELD_BYTES {
            return;
        }
        if self.catching.is_some() {
            return self.give_up("more arrived since then than can be buffered", out);
        }
        if let Some(old) = self.held.pop_front() {
            self.held_bytes -= old.len();
            self.held_dropped += 1;
        }
    }

    /// Handles the queued messages.
    fn release(&mut self, out: &mut Outbox) {
        self.catching = None;
        let dropped = std::mem::take(&mut self.held_dropped);
        if dropped > 0 {
            let message =
                format!("{dropped} messages came before the session was opened and were dropped, oldest first");
            emit_error("gap", &message, out);
        }
        self.held_bytes = 0;
        for frame in std::mem::take(&mut self.held) {
            self.message(&frame, out);
        }
        self.tick(out);
    }

    // === prompts ===

    fn prompt(&mut self, ticket: Ticket, content: &[Box<RawValue>], out: &mut Outbox) {
        let refused = if self.remote {
            None
        } else {
            Some(
                "the gateway can only watch this UI: to send prompts, start it with GEMINI_CLI_REMOTE_PORT=PORT and \
                 set the runtime's remote = \"http://127.0.0.1:PORT\""
                    .to_owned(),
            )
        };
        let text = match refused.map_or_else(|| prompt_text(content, "the Gemini UI"), Err) {
            Ok(text) => text,
            Err(reason) => {
                return out.events.push(RuntimeEvent::Ended { native: native(), ticket, end: RunEnd::failed(reason) });
            }
        };
        self.doubt = None;
        self.run = Some(Run::Gateway { ticket, text, post: Post::Again { tries: 0 }, displayed: false });
        self.post(out);
    }

    fn post(&mut self, out: &mut Outbox) {
        let Some(Run::Gateway { text, post: Post::Again { tries }, .. }) = &self.run else { return };
        let (tries, body) = (*tries, serde_json::json!({ "message": text }).to_string());
        let id = self.fetch("POST", "/message", Some(body.into()), out);
        if let Some(Run::Gateway { post, .. }) = &mut self.run {
            *post = Post::Sent { id, tries };
        }
    }

    fn posted(&mut self, reply: Result<HttpReply, String>, out: &mut Outbox) {
        let Some(Run::Gateway { post, displayed, .. }) = &mut self.run else { return };
        let Post::Sent { tries, .. } = *post else { return };
        let reason = match reply {
            Ok(HttpReply { status: 200..=299, .. }) => {
                *post = Post::Taken;
                if !*displayed {
                    self.doubt(SILENT_TICKS);
                }
                return;
            }
            Ok(HttpReply { status: 503, .. }) if tries + 1 < READY_TICKS => {
                *post = Post::Again { tries: tries + 1 };
                return;
            }
            Ok(HttpReply { status: 503, .. }) => {
                format!("the UI was not ready to accept a message (503) in {READY_TICKS} attempts")
            }
            Ok(HttpReply { status, .. }) => format!("the UI did not accept the message: it answered {status}"),
            Err(reason) => format!("whether the UI accepted the message is unknown: {reason}"),
        };
        // If the message is shown nevertheless, the run continues to its end.
        if !*displayed {
            self.end_run(&RunEnd::failed(reason), out);
        }
    }

    fn cancel(&mut self, ticket: Option<Ticket>, out: &mut Outbox) {
        match &self.run {
            Some(Run::Gateway { ticket: sent, post: Post::Again { .. }, .. }) if Some(*sent) == ticket => {
                let message = Some("the UI had not accepted it yet".to_owned());
                self.end_run(&RunEnd::new(RunStatus::Cancelled, message), out);
            }
            Some(_) => {
                let message = "the Gemini UI cannot be stopped from outside: press Esc in it; the run continues \
                    until the UI is idle";
                emit_error("cannot_cancel", message, out);
            }
            None => {}
        }
    }

    /// Returns whether this is the gateway's prompt, shown for the first time.
    fn is_own_prompt(&mut self, prompt: &str) -> bool {
        match &mut self.run {
            Some(Run::Gateway { text, displayed, .. }) if !*displayed && same(text, prompt) => {
                *displayed = true;
                true
            }
            _ => false,
        }
    }

    // === runs ===

    /// Records activity: without a run, one begins at the UI.
    fn begin_run(&mut self, out: &mut Outbox) {
        if self.run.is_none() {
            self.run = Some(Run::AtUi);
            out.events.push(RuntimeEvent::Began { native: native(), by: UI_USER.into() });
        }
    }

    /// Ends the run.
    fn end_run(&mut self, end: &RunEnd, out: &mut Outbox) {
        self.doubt = None;
        self.take_back(out);
        self.calls.clear();
        let end = end.clone();
        match self.run.take() {
            Some(Run::Gateway { ticket, .. }) => out.events.push(RuntimeEvent::Ended { native: native(), ticket, end }),
            Some(Run::AtUi) => out.events.push(RuntimeEvent::Done { native: native(), end }),
            None => {}
        }
    }

    /// Closes the questions of the run.
    fn take_back(&mut self, out: &mut Outbox) {
        for key in std::mem::take(&mut self.asks).into_keys() {
            out.events.push(RuntimeEvent::TakenBack { native: Some(native()), key, elsewhere: None });
        }
    }

    fn doubt(&mut self, limit: u32) {
        self.doubt = Some(Doubt { left: limit, limit });
    }

    /// Ends a run that was silent for long enough to count as ended.
    fn end_silent_run(&mut self, out: &mut Outbox) {
        let end = match &self.run {
            Some(Run::Gateway { displayed: false, .. }) => {
                RunEnd::failed("the UI accepted the message but did not show it")
            }
            _ => {
                completed(Some("considered ended: the UI sent nothing more, and did not report that it is idle"), None)
            }
        };
        self.end_run(&end, out);
    }

    /// Requests a wake-up while something waits for time.
    fn tick(&self, out: &mut Outbox) {
        let catching = self.connected && self.catching.as_ref().is_some_and(|catching| catching.fetch.is_none());
        let posting = matches!(&self.run, Some(Run::Gateway { post: Post::Again { .. }, .. }));
        if catching || posting || self.doubt.is_some() {
            out.wake_after = Some(TICK);
        }
    }

    // === what the mirror tells ===

    fn raw(&self, frame: Bytes, reason: &str, out: &mut Outbox) {
        event(EventDraft::raw(frame, reason), out);
    }

    /// Handles a message of the mirror.
    fn message(&mut self, frame: &Bytes, out: &mut Outbox) {
        if !shallow(frame) {
            return self.raw(frame.clone(), "a message that is nested too deeply", out);
        }
        let Ok(Message { type_name, data }) = plexus_protocol::object::from_slice::<Message<'_>>(frame) else {
            return self.raw(frame.clone(), "a message that could not be parsed", out);
        };
        if let Some(doubt) = &mut self.doubt {
            doubt.left = doubt.limit;
        }
        if self.apply(&type_name, data, frame, out).is_none() {
            self.raw(frame.clone(), "a mirror event that is unknown or malformed", out);
        }
        self.tick(out);
    }

    /// Applies a message; `None` if it cannot be read.
    fn apply(&mut self, kind: &str, data: Option<&RawValue>, frame: &Bytes, out: &mut Outbox) -> Option<()> {
        if kind != "hook" && kind != "permission_selection" {
            self.close_stale_questions(out);
        }
        match kind {
            "user_message" => {
                let text = events::text(data?)?;
                self.turns.add(Role::User, &text);
                if self.is_own_prompt(&text) {
                    self.doubt = None;
                } else {
                    self.begin_run(out);
                    event(events::chunk(Role::User, &text, Some(frame)), out);
                }
                if text.trim_start().starts_with('/') && self.doubt.is_none() {
                    self.doubt(COMMAND_TICKS);
                }
            }
            "model_output" => {
                let text = events::text(data?)?;
                self.model_active(out);
                self.turns.add(Role::Model, &text);
                event(events::chunk(Role::Model, &text, Some(frame)), out);
            }
            "tool_call" => {
                let call = object::<ToolCall<'_>>(data?)?;
                self.model_active(out);
                event(events::tool_call(&call, frame), out);
                if self.calls.len() < CALLS_MAX {
                    self.calls.insert(call.id, ToolUnderWay { name: call.name, args: call.args.map(owned) });
                }
            }
            "tool_output" => {
                let output = object::<ToolOutput<'_>>(data?)?;
                self.model_active(out);
                self.calls.remove(&output.id);
                event(events::tool_output(&output, frame), out);
            }
            "idle" => match &self.run {
                // Something else ended: the gateway's prompt is still to come, or was shown in another form.
                Some(Run::Gateway { displayed: false, post, .. }) => {
                    if matches!(post, Post::Taken) {
                        self.doubt(COMMAND_TICKS);
                    }
                }
                _ => self.end_run(&completed(None, Some(frame)), out),
            },
            "permission_dialog" => self.request_received(data?, frame, out)?,
            "permission_selection" => {
                let Selection { id, selection } = object(data?)?;
                let key = self.asks.keys().find(|key| key.id() == id.get())?.clone();
                let question = self.asks.remove(&key)?;
                let option_id = selection.filter(|selection| question.options.contains(selection));
                let elsewhere = Some(AnsweredElsewhere { by: UI_USER.into(), option_id });
                out.events.push(RuntimeEvent::TakenBack { native: Some(native()), key, elsewhere });
            }
            "hook" => {
                let data = data.filter(|data| data.get().starts_with('{'))?;
                event(events::hook(data, frame), out);
            }
            _ => return None,
        }
        Some(())
    }

    /// Records that the model is active, so that the run is not a slash command.
    fn model_active(&mut self, out: &mut Outbox) {
        self.begin_run(out);
        if self.doubt.as_ref().is_some_and(|doubt| doubt.limit == COMMAND_TICKS) {
            self.doubt = None;
        }
    }

    /// Closes questions that were open when the connection was lost: other activity shows that they have been answered.
    fn close_stale_questions(&mut self, out: &mut Outbox) {
        let stale: Vec<RequestKey> =
            self.asks.iter().filter(|(_, question)| question.stale).map(|(key, _)| key.clone()).collect();
        for key in stale {
            self.asks.remove(&key);
            let elsewhere = Some(AnsweredElsewhere { by: UI_USER.into(), option_id: None });
            out.events.push(RuntimeEvent::TakenBack { native: Some(native()), key, elsewhere });
        }
    }

    fn request_received(&mut self, data: &RawValue, frame: &Bytes, out: &mut Outbox) -> Option<()> {
        let dialog = object::<Dialog<'_>>(data)?;
        let id = dialog.id.get();
        if self.asks.keys().any(|key| key.id() == id) || self.asks.len() >= ASKS_MAX {
            return None;
        }
        self.model_active(out);
        self.request_count += 1;
        let key = RequestKey::nth(id, self.request_count);
        // With two running tool calls it is unknown which one it is about.
        let mut calls = self.calls.iter();
        let call = match (calls.next(), calls.next()) {
            (Some((id, called)), None) => Some((id.as_str(), called)),
            _ => None,
        };
        let ask = events::dialog(&dialog, key.clone(), call, data, frame);
        let options = ask.options.iter().map(|offer| offer.id.clone()).collect();
        self.asks.insert(key, OpenQuestion { options, stale: false });
        out.events.push(RuntimeEvent::Asked { native: Some(native()), ask: Box::new(ask) });
        Some(())
    }
}
