//! The state of one client in one session: the messages that were sent for the client's own messages, and nothing that is in the log.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use plexus_protocol::{Position, Request, RequestId, RunId};

/// Maximum number of prompts of one client in one session: those that wait for their end, and the last that ended. A further prompt is
/// refused while all of them wait.
const PROMPTS: usize = 64;
/// Maximum number of requests remembered as sent to one client. Beyond it the oldest closed one is dropped, or else the oldest of all,
/// whose end is then not sent to this client by `$/cancel_request`.
const PRESENTED_MAX: usize = 512;
/// Maximum number of queued messages, not in the log, for one client in one session; further ones are not sent.
const QUEUED_MAX: usize = 64;

/// The role of a client in a session (RFD #533).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    /// The client may do everything that its scopes allow.
    #[default]
    Controller,
    /// The client only watches.
    Observer,
}

/// The part of the history that a client gets (RFD #533).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HistoryPolicy {
    /// The whole history.
    #[default]
    Full,
    /// Only the open requests.
    PendingOnly,
    /// No history.
    None,
}

/// The way in which a client joined a session.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) role: Role,
    /// `true` if open requests are sent after the history.
    pub(super) sends_requests: bool,
    /// The position after which the stream begins.
    pub(super) after: Position,
    /// The position up to which events are history.
    pub(super) live_at: Position,
    /// The response due after the history, as id and result; stored for a stream that resumes from before it.
    pub(super) due_response: Option<(Box<RawValue>, Box<RawValue>)>,
    /// `true` if the client resumes, so that it may know requests that ended in the meantime.
    pub(super) resumed: bool,
    /// `true` if the ends of requests are sent in the form of RFD #533.
    pub(super) receives_ends: bool,
}

/// A prompt of this client.
pub(super) struct Waiting {
    /// The JSON-RPC id, as written by the client.
    pub(super) id: Box<RawValue>,
    pub(super) run_id: RunId,
    /// The position of the run's end; stored for a stream that resumes from before it.
    pub(super) ended: Option<Position>,
}

/// The form in which a request was sent to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presentation {
    /// A question, which the client may answer.
    Question,
    /// A tool call, since the client may not answer.
    ToolCall,
    /// An event, since the client may not answer and accepts events.
    Event,
    /// A tool call, since the client has left the request to the user's computer.
    Deferred,
}

/// A request that was sent to this client.
pub(super) struct PresentedRequest {
    pub(super) id: RequestId,
    pub(super) at: Position,
    /// The revision and digest of the request when it was sent.
    pub(super) version: (u64, String),
    /// The tool call that waits for the answer.
    pub(super) tool_call: String,
    pub(super) presentation: Presentation,
    /// The position of the request's end.
    pub(super) ended_at: Option<Position>,
    /// `true` if this client has answered, so that the request need not be withdrawn from it.
    pub(super) answered: bool,
}

/// The state of a client in a session; the only stored part of its stream while no connection reads it.
pub(super) struct ClientSessionState {
    /// The number of times that the client joined; a stream of an older generation begins again.
    pub(super) generation: u64,
    pub(super) entry: Entry,
    /// The position up to which everything was sent.
    pub(super) position: Position,
    /// `true` if the response and requests due at `live_at` were sent.
    pub(super) greeted: bool,
    /// Prompts that are being passed to the session, whose run is not known yet.
    pub(super) pending: Vec<Box<RawValue>>,
    pub(super) prompts: Vec<Waiting>,
    pub(super) presented: Vec<PresentedRequest>,
    /// Messages that are not in the log.
    pub(super) out: VecDeque<Vec<u8>>,
}

impl ClientSessionState {
    /// Makes the state. `before`: the client's state until now. Its prompts still wait; requests are sent once more, as all of the
    /// history is sent again.
    pub(super) fn new(generation: u64, entry: Entry, before: Option<Self>) -> Self {
        let (pending, prompts, out) = before.map(|old| (old.pending, old.prompts, old.out)).unwrap_or_default();
        Self { generation, position: entry.after, entry, greeted: false, pending, prompts, presented: Vec::new(), out }
    }

    pub(super) fn receives_ends(&self) -> bool {
        self.entry.receives_ends
    }

    /// Returns whether the run is of a prompt of this client.
    pub(super) fn runs_own(&self, run_id: &RunId) -> bool {
        self.prompts.iter().any(|prompt| prompt.run_id == *run_id)
    }

    /// Returns the runs of the prompts that wait, the oldest first.
    pub(super) fn runs(&self) -> Vec<RunId> {
        self.prompts.iter().filter(|prompt| prompt.ended.is_none()).map(|prompt| prompt.run_id.clone()).collect()
    }

    pub(super) fn role(&self) -> Role {
        self.entry.role
    }

    /// Returns the position up to which everything was sent.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Queues a message that is not in the log. Returns `false` if too many wait; then it is not sent.
    pub(super) fn queue(&mut self, json: Vec<u8>) -> bool {
        let accepts = self.out.len() < QUEUED_MAX;
        if accepts {
            self.out.push_back(json);
        }
        accepts
    }

    /// Begins to pass a prompt to the session: until [`record_run`](Self::record_run), no event of a run of this device is sent. Returns
    /// `false` if too many wait.
    pub(super) fn begin_prompt(&mut self, id: &RawValue) -> bool {
        let waiting = self.prompts.iter().filter(|prompt| prompt.ended.is_none()).count();
        let accepts = waiting + self.pending.len() < PROMPTS;
        if accepts {
            self.pending.push(id.to_owned());
        }
        accepts
    }

    /// Records the run of a prompt that was accepted, or that it was refused.
    pub(super) fn record_run(&mut self, id: &RawValue, run_id: Option<RunId>) {
        self.pending.retain(|other| other.get() != id.get());
        let Some(run_id) = run_id else { return };
        let id = id.to_owned();
        if self.prompts.len() >= PROMPTS
            && let Some(old) = self.prompts.iter().position(|prompt| prompt.ended.is_some())
        {
            self.prompts.remove(old);
        }
        self.prompts.push(Waiting { id, run_id, ended: None });
    }

    /// Returns whether a prompt with this JSON-RPC id is being passed on, or waits.
    pub(super) fn waits_for(&self, id: &str) -> bool {
        self.pending.iter().any(|pending| pending.get() == id) || self.waiting_run(id).is_some()
    }

    /// Returns the run of a prompt that waits, by its JSON-RPC id.
    pub(super) fn waiting_run(&self, id: &str) -> Option<RunId> {
        let prompt = self.prompts.iter().rev().find(|prompt| prompt.ended.is_none() && prompt.id.get() == id);
        prompt.map(|prompt| prompt.run_id.clone())
    }

    /// Returns the id of a prompt whose run ended before the current position, so that the response is due now.
    pub(super) fn ended_before(&mut self, run_id: &RunId, at: Position) -> Option<Box<RawValue>> {
        let behind = at <= self.position;
        let prompt = self.prompts.iter_mut().rfind(|prompt| prompt.run_id == *run_id && prompt.ended.is_none())?;
        if !behind {
            return None;
        }
        prompt.ended = Some(at);
        Some(prompt.id.clone())
    }

    /// Returns the JSON-RPC ids of the prompts that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &RawValue> {
        self.prompts.iter().filter(|prompt| prompt.ended.is_none()).map(|prompt| &*prompt.id)
    }

    /// Records whether the client has answered a request.
    pub(super) fn answered(&mut self, id: &RequestId, answered: bool) {
        if let Some(presented) = self.presented.iter_mut().find(|presented| presented.id == *id) {
            presented.answered = answered;
        }
    }

    /// Returns the digest of the revision that was sent to the client, if it was.
    pub(super) fn digest_of(&self, id: &RequestId, revision: u64) -> Option<String> {
        let question = |presented: &&PresentedRequest| presented.id == *id && presented.version.0 == revision;
        let presented = self
            .presented
            .iter()
            .find(|presented| question(presented) && presented.presentation == Presentation::Question);
        presented.map(|presented| presented.version.1.clone())
    }

    /// Leaves an open request to the user's computer. Returns `false` if it is not open for this client.
    pub(super) fn defer(&mut self, id: &RequestId) -> bool {
        let presented = self.presented.iter_mut().find(|presented| presented.id == *id && presented.ended_at.is_none());
        presented.map(|presented| presented.presentation = Presentation::Deferred).is_some()
    }

    /// Returns whether the client has left the request, in this or an earlier revision, to the user's computer.
    pub(super) fn is_deferred(&self, id: &RequestId) -> bool {
        self.presented.iter().any(|presented| presented.id == *id && presented.presentation == Presentation::Deferred)
    }

    /// Returns whether the request was sent to the client and is still open.
    pub(super) fn is_presented(&self, id: &RequestId) -> bool {
        self.presented.iter().any(|presented| presented.id == *id && presented.ended_at.is_none())
    }

    pub(super) fn ask(&mut self, request: &Request, at: Position, presentation: Presentation) {
        if self.presented.len() >= PRESENTED_MAX {
            let old = self.presented.iter().position(|presented| presented.ended_at.is_some()).unwrap_or_default();
            self.presented.remove(old);
        }
        let id = request.request_id.clone();
        let tool_call = request.tool_call_id.clone().unwrap_or_else(|| id.to_string());
        let version = (request.revision, request.digest.clone());
        self.presented.push(PresentedRequest {
            id,
            at,
            version,
            tool_call,
            presentation,
            ended_at: None,
            answered: false,
        });
    }
}
