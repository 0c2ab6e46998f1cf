//! Opening and resuming conversations: `session/new`, `session/resume`, `session/load` and its replay.

use std::time::Duration;

use agent_client_protocol_schema::v1::SetSessionModeRequest;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, Fields, INTERNAL, METHOD_NOT_FOUND, object};
use super::super::{OpenedAs, Outbox, ResumeTarget, RunEnd, RuntimeError, RuntimeEvent};
use super::models::{SessionModels, mode_draft, mode_in};
use super::quirks;
use super::{AUTH_REQUIRED, Acp, McpServer, Pending, error_event};
use plexus_protocol::{Kind, NativeId, RunStatus, Ticket};

/// The unit of all waits here. Only one wake-up is requested at a time: however early the first one is (a gateway that
/// took over may send one at once), a wait is shortened by one tick at most.
const TICK: Duration = Duration::from_secs(1);
/// Time without a replayed message before the agent is prompted, in ticks.
const QUIET: u32 = 2;
/// Maximum time that a replay may delay a prompt, in ticks; messages replayed later count as part of the run.
const QUIET_MAX: u32 = 60;

/// A conversation to open.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PendingOpen {
    pub(super) ticket: Ticket,
    pub(super) cwd: String,
    pub(super) resume: Option<ResumeTarget>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) mcp_servers: Vec<McpServer>,
    /// The reason why a new conversation is opened in its place.
    pub(super) instead: Option<String>,
}

/// The method by which a conversation is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum OpenMethod {
    New,
    Resume,
    Load,
}

impl OpenMethod {
    fn method(self) -> &'static str {
        match self {
            Self::New => "session/new",
            Self::Resume => "session/resume",
            Self::Load => "session/load",
        }
    }
}

/// A conversation to load later.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DeferredLoad {
    #[serde(rename = "wish")]
    opening: PendingOpen,
    ticks: u32,
}

impl DeferredLoad {
    pub(super) fn into_opening(self) -> PendingOpen {
        self.opening
    }
}

/// A conversation whose past the agent replays, from `session/load` until the first prompt. By ACP the replay ends before the response;
/// some agents respond first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PastReplay {
    /// `true` if the log already has the past, so that the replay is left out.
    known: bool,
    /// `true` once a part was replayed.
    #[serde(default)]
    began: bool,
    /// The prompt that waits for the replay to end.
    held: Option<(Ticket, Vec<Box<RawValue>>)>,
    /// Ticks to wait without a replayed message, and in total; `None` before the response.
    quiet: Option<(u32, u32)>,
}

impl PastReplay {
    pub(super) fn held(&self) -> Option<Ticket> {
        self.held.as_ref().map(|(ticket, _)| *ticket)
    }
}

/// Returns whether a replay repeats this kind of update: messages and tool calls, but not the current settings.
fn repeats(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::UserMessageChunk
            | Kind::AgentMessageChunk
            | Kind::AgentThoughtChunk
            | Kind::ToolCall
            | Kind::ToolCallUpdate
            | Kind::Plan
    )
}

impl Acp {
    /// Opens a conversation by a method that the agent has.
    pub(super) fn open_session(&mut self, opening: PendingOpen, out: &mut Outbox) {
        let Some(ResumeTarget { native, known, .. }) = opening.resume.clone() else {
            return self.open_by(OpenMethod::New, opening, out);
        };
        if self.prompted(&native) {
            // An agent that loads a conversation with a run in progress loses the run.
            let error =
                RuntimeError::new(INTERNAL, format!("the conversation {native} is running: it cannot be reopened now"));
            return out.events.push(RuntimeEvent::NotOpened { ticket: opening.ticket, error });
        }
        match (self.capabilities.resume, self.capabilities.load) {
            (true, load) if known || !load => self.open_by(OpenMethod::Resume, opening, out),
            (_, true) => match quirks::load_later(self.agent.as_deref()) {
                Some(quirk) => self.load_later(opening, &native, quirk, out),
                None => self.open_by(OpenMethod::Load, opening, out),
            },
            (_, false) => {
                let fault = RuntimeError::new(METHOD_NOT_FOUND, "this agent cannot reopen a conversation");
                self.lost(opening, fault, out);
            }
        }
    }

    /// Loads a conversation later, because the agent would lose its messages now.
    fn load_later(
        &mut self,
        opening: PendingOpen,
        native: &NativeId,
        (ticks, message): (u32, &'static str),
        out: &mut Outbox,
    ) {
        let reason = format!("{message}: this one will be opened in {ticks} seconds");
        let draft = error_event("opening_waits", &reason, None);
        out.events.push(RuntimeEvent::Event { native: Some(native.clone()), draft });
        self.waiting.push(DeferredLoad { opening, ticks: ticks + 1 });
        out.wake_after = Some(TICK);
    }

    fn open_by(&mut self, by: OpenMethod, opening: PendingOpen, out: &mut Outbox) {
        let PendingOpen { cwd, resume, mcp_servers, .. } = opening.clone();
        self.send_open(Pending::Open { opening, by }, by, (&cwd, resume.as_ref(), &mcp_servers), out);
    }

    /// Sends the request that opens a conversation.
    pub(super) fn send_open(
        &mut self,
        pending: Pending,
        by: OpenMethod,
        (cwd, resume, servers): (&str, Option<&ResumeTarget>, &[McpServer]),
        out: &mut Outbox,
    ) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            session_id: Option<&'a NativeId>,
            cwd: &'a str,
            mcp_servers: Vec<serde_json::Value>,
            // Additional params, without which agents may refuse every method of opening.
            #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
            meta: Option<&'a RawValue>,
        }
        let meta = self.meta_allowing(servers);
        if let (OpenMethod::Load, Some(ResumeTarget { native, known, .. })) = (by, resume.cloned()) {
            self.past.insert(native, PastReplay { known, began: false, held: None, quiet: None });
        }
        let session_id = resume.map(|resume| &resume.native);
        let mcp_servers = servers.iter().map(McpServer::acp).collect();
        let params = Params { session_id, cwd, mcp_servers, meta: meta.as_deref() };
        self.request(pending, by.method(), &params, out);
    }

    /// Handles the response that opened a conversation. A new one first leaves the mode in which the agent never asks.
    pub(super) fn opened(
        &mut self,
        frame: &Bytes,
        opening: PendingOpen,
        by: OpenMethod,
        result: &RawValue,
        out: &mut Outbox,
    ) {
        if let (OpenMethod::New, Some(mode)) = (by, quirks::asking_mode(self.agent.as_deref(), mode_in(result)))
            && let Some(native) = self.named(Some(result))
        {
            let params = SetSessionModeRequest::new(native.to_string(), mode);
            let pending = Pending::Mode { opening, opened: result.to_owned(), mode: mode.to_owned() };
            return self.request(pending, "session/set_mode", &params, out);
        }
        self.report_opened(frame, opening, by, result, out);
    }

    /// Handles the response to the change of the mode of a new conversation. If the agent refuses it, the conversation
    /// is not opened, because the agent would never ask in it.
    pub(super) fn mode_set(
        &mut self,
        frame: &Bytes,
        opening: PendingOpen,
        opened: &RawValue,
        mode: String,
        reply: Result<&RawValue, RuntimeError>,
        out: &mut Outbox,
    ) {
        if let Err(fault) = reply {
            let message = format!(
                "the agent starts in a mode in which it does not ask, and does not leave it: {}",
                fault.full_message()
            );
            let error = RuntimeError { message, ..fault };
            return out.events.push(RuntimeEvent::NotOpened { ticket: opening.ticket, error });
        }
        let native = self.named(Some(opened));
        self.report_opened(frame, opening, OpenMethod::New, opened, out);
        out.events.push(RuntimeEvent::Event { native, draft: mode_draft(mode, frame) });
    }

    fn report_opened(
        &mut self,
        frame: &Bytes,
        opening: PendingOpen,
        by: OpenMethod,
        result: &RawValue,
        out: &mut Outbox,
    ) {
        let PendingOpen { ticket, cwd, resume, mcp_servers, instead } = opening;
        let known = resume.as_ref().is_some_and(|resume| resume.known);
        let Some(native) = resume.map(|resume| resume.native).or_else(|| self.named(Some(result))) else {
            let error = RuntimeError::new(INTERNAL, "the agent opened a session without an identifier");
            return out.events.push(RuntimeEvent::NotOpened { ticket, error });
        };
        let (models, mut drafts) = SessionModels::from_new_session(frame, result);
        self.capabilities.modes |= models.modes;
        self.capabilities.models |= !models.offered.is_empty();
        self.hold(native.clone(), cwd, mcp_servers, models);
        self.await_quiet(&native, out);
        if let Some(reason) = instead {
            let reason =
                format!("{reason}: a new one was opened instead, and the agent does not know the previous messages");
            drafts.push(error_event("not_resumed", &reason, None));
        }
        if by == OpenMethod::Resume && !known {
            let reason = "this agent does not replay earlier messages: the conversation continues from here";
            drafts.push(error_event("past_unknown", reason, None));
        }
        let how = if by == OpenMethod::New { OpenedAs::New } else { OpenedAs::Resumed };
        out.events.push(RuntimeEvent::Opened { ticket, native, drafts, how });
    }

    /// Starts the wait for the end of a replay after the response to a load: some agents go on replaying for a moment.
    pub(super) fn await_quiet(&mut self, native: &NativeId, out: &mut Outbox) {
        let late = quirks::replays_late(self.agent.as_deref());
        if let Some(past) = self.past.get_mut(native) {
            let first = late.filter(|_| !past.began).unwrap_or(QUIET);
            past.quiet = Some((first, QUIET_MAX));
            out.wake_after = Some(TICK);
        }
    }

    /// Handles the agent's refusal to open a conversation.
    pub(super) fn not_opened(
        &mut self,
        frame: &Bytes,
        opening: PendingOpen,
        by: OpenMethod,
        fault: RuntimeError,
        out: &mut Outbox,
    ) {
        if let (OpenMethod::Load, Some(resume)) = (by, &opening.resume) {
            self.past.remove(&resume.native);
        }
        if fault.code == AUTH_REQUIRED {
            return self.sign_in(frame, opening, fault, out);
        }
        self.lost(opening, fault, out);
    }

    /// Opens a new conversation in place of one that cannot be opened, if the log has its past.
    fn lost(&mut self, mut opening: PendingOpen, fault: RuntimeError, out: &mut Outbox) {
        match opening.resume.take() {
            Some(ResumeTarget { known: true, .. }) => {
                opening.instead =
                    Some(format!("the agent could not reopen the conversation ({})", fault.full_message()));
                self.open_by(OpenMethod::New, opening, out);
            }
            Some(ResumeTarget { native, known: false, .. }) => {
                let message = format!("the conversation {native} cannot be opened: {}", fault.full_message());
                out.events
                    .push(RuntimeEvent::NotOpened { ticket: opening.ticket, error: RuntimeError { message, ..fault } });
            }
            None => {
                out.events.push(RuntimeEvent::NotOpened { ticket: opening.ticket, error: fault.with_full_message() })
            }
        }
    }

    /// Returns whether an update is a replay; `None` if the log already has it.
    pub(super) fn is_past(&mut self, native: &NativeId, kind: Kind) -> Option<bool> {
        if self.past.is_empty() || !repeats(kind) {
            return Some(false);
        }
        let Some(past) = self.past.get_mut(native) else { return Some(false) };
        past.began = true;
        if let Some((quiet, _)) = &mut past.quiet {
            *quiet = QUIET;
        }
        if past.known { None } else { Some(true) }
    }

    /// Sends a prompt, once the replay has ended: replayed messages must not become part of the run.
    pub(super) fn prompt(&mut self, ticket: Ticket, native: NativeId, content: Vec<Box<RawValue>>, out: &mut Outbox) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a NativeId,
            prompt: &'a [Box<RawValue>],
        }
        if let Some(past) = self.past.get_mut(&native) {
            if past.quiet.is_none_or(|(quiet, max)| quiet.min(max) > 0) && past.held.is_none() {
                past.held = Some((ticket, content));
                out.wake_after = Some(TICK);
                return;
            }
            self.past.remove(&native);
        }
        self.expect_echo(ticket, &native, &content);
        let pending = Pending::Prompt { ticket, native: native.clone() };
        self.request(pending, "session/prompt", &Params { session_id: &native, prompt: &content }, out);
    }

    /// Cancels a prompt that was not sent yet. Returns `false` if there is none.
    pub(super) fn drop_prompt(&mut self, native: &NativeId, out: &mut Outbox) -> bool {
        let Some((ticket, _)) = self.past.get_mut(native).and_then(|past| past.held.take()) else { return false };
        let end = RunEnd { status: RunStatus::Cancelled, stop_reason: None, message: None, native: None };
        out.events.push(RuntimeEvent::Ended { native: native.clone(), ticket, end });
        true
    }

    /// Handles the end of a tick.
    pub(super) fn tick(&mut self, out: &mut Outbox) {
        for mut waiting in std::mem::take(&mut self.waiting) {
            waiting.ticks = waiting.ticks.saturating_sub(1);
            match waiting.ticks {
                0 => self.open_by(OpenMethod::Load, waiting.opening, out),
                _ => self.waiting.push(waiting),
            }
        }
        let mut due = Vec::new();
        for (native, past) in &mut self.past {
            let Some((quiet, max)) = &mut past.quiet else { continue };
            (*quiet, *max) = (quiet.saturating_sub(1), max.saturating_sub(1));
            if (*quiet).min(*max) == 0 && past.held.is_some() {
                due.push(native.clone());
            }
        }
        due.sort_unstable();
        for native in due {
            if let Some((ticket, content)) = self.past.remove(&native).and_then(|past| past.held) {
                self.prompt(ticket, native, content, out);
            }
        }
        let message = |past: &PastReplay| past.quiet.is_some_and(|(quiet, max)| quiet.min(max) > 0);
        if !self.waiting.is_empty() || self.past.values().any(message) {
            out.wake_after = Some(TICK);
        }
    }
}

/// Returns the body of an event of the past: the update, marked by `_meta.plexus.replay`.
pub(super) fn marked(update: &RawValue) -> Bytes {
    const MARK: &str = r#""plexus":{"replay":true}"#;
    let Some(Fields(fields)) = object(update) else { return Bytes::copy_from_slice(update.get().as_bytes()) };
    let mut body = String::with_capacity(update.get().len() + MARK.len() + 12);
    let mut meta = format!("{{{MARK}}}");
    for (key, value) in &fields {
        if key == "_meta" {
            if let Some(Fields(existing)) = object(value) {
                let members = existing.iter().filter(|(key, _)| key != "plexus");
                let members: Vec<String> =
                    members.map(|(key, value)| format!("{}:{}", quoted(key), value.get())).collect();
                meta = format!("{{{}}}", [&[MARK.to_owned()], &members[..]].concat().join(","));
            }
            continue;
        }
        body.push_str(if body.is_empty() { "{" } else { "," });
        body.push_str(&format!("{}:{}", quoted(key), value.get()));
    }
    body.push_str(&format!(r#","_meta":{meta}}}"#));
    // Valid members make a valid object.
    let body = RawValue::from_string(body).unwrap_or_else(|_| update.to_owned());
    String::from(Box::<str>::from(jsonrpc::owned(&body))).into()
}

pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
