//! What is known of one client in one session: what was sent for which of its messages, and nothing that the log tells.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use plexus_protocol::{Position, Request, RequestId, RunId};

/// Prompts of one client in one session that are remembered: those that wait for their end, and the last that found it.
/// A prompt more is refused while all of them wait.
const PROMPTS: usize = 64;
/// Questions that are remembered as asked of one client; past it the oldest that is closed is forgotten, and if none is,
/// the oldest of all: its end is then not told to this client by `$/cancel_request`.
const ASKED: usize = 512;
/// Messages that are in no log and wait for one client in one session; one more is not sent.
const OUT: usize = 64;

/// What a client may do in a session (RFD #533).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    /// Everything that its scopes allow.
    #[default]
    Controller,
    /// Only watch.
    Observer,
}

/// What a client is shown of what was before it came (RFD #533).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HistoryPolicy {
    /// Everything.
    #[default]
    Full,
    /// What is asked now.
    PendingOnly,
    /// Nothing.
    None,
}

/// How a client came into a session.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) role: Role,
    /// Whether what is open is asked once the past is told.
    pub(super) asks: bool,
    /// It begins after this.
    pub(super) after: Position,
    /// What comes up to here was before it came.
    pub(super) live_at: Position,
    /// The response to be given once the past is told; kept for a stream that comes back from before it.
    pub(super) owed: Option<Vec<u8>>,
    /// Whether it comes back, so that it may have been asked before what ended meanwhile.
    pub(super) resumed: bool,
    /// Whether the ends of requests are told as RFD #533 has it.
    pub(super) told_ends: bool,
}

/// A prompt of this client.
pub(super) struct Waiting {
    /// The JSON-RPC id, as it was written.
    pub(super) id: Box<RawValue>,
    pub(super) run_id: RunId,
    /// Where its run ended: kept for a stream that comes back from before it.
    pub(super) ended: Option<Position>,
}

/// A question that this client was asked.
pub(super) struct Asked {
    pub(super) id: RequestId,
    pub(super) at: Position,
    /// Which revision of it, and its digest: what the client was shown whole.
    pub(super) shown: (u64, String),
    /// The tool call that waits for it.
    pub(super) tool_call: String,
    /// Whether it was only shown: the client may not answer it.
    pub(super) card: bool,
    /// Where it was resolved.
    pub(super) over: Option<Position>,
    /// Whether this client has answered, so that nothing is to be taken back from it.
    pub(super) answered: bool,
}

/// What is known of a client in a session: all that a seat is while no stream drives it.
pub(super) struct ClientSessionState {
    /// Counts how often it was entered; whoever drives an older one begins again.
    pub(super) generation: u64,
    pub(super) entry: Entry,
    /// Up to here everything was given out.
    pub(super) position: Position,
    /// Whether what was owed at `live_at` was given out.
    pub(super) greeted: bool,
    /// Prompts that are being handed over, so that their run is not known yet.
    pub(super) taking: Vec<Box<RawValue>>,
    pub(super) prompts: Vec<Waiting>,
    pub(super) asked: Vec<Asked>,
    /// Messages that are in no log.
    pub(super) out: VecDeque<Vec<u8>>,
}

impl ClientSessionState {
    /// `before`: what the client had here already. Its prompts still wait; what it was asked is asked once more, as all
    /// of the past is told again.
    pub(super) fn new(generation: u64, entry: Entry, before: Option<Self>) -> Self {
        let (taking, prompts, out) = before.map(|old| (old.taking, old.prompts, old.out)).unwrap_or_default();
        Self { generation, position: entry.after, entry, greeted: false, taking, prompts, asked: Vec::new(), out }
    }

    pub(super) fn told_ends(&self) -> bool {
        self.entry.told_ends
    }

    /// Whether the run is of a prompt of this client.
    pub(super) fn runs_own(&self, run_id: &RunId) -> bool {
        self.prompts.iter().any(|prompt| prompt.run_id == *run_id)
    }

    /// The runs of the prompts that wait, the oldest first.
    pub(super) fn runs(&self) -> Vec<RunId> {
        self.prompts.iter().filter(|prompt| prompt.ended.is_none()).map(|prompt| prompt.run_id.clone()).collect()
    }

    pub(super) fn role(&self) -> Role {
        self.entry.role
    }

    /// Up to here everything was given out.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// A message that is in no log. False: too many wait, and it is not sent.
    pub(super) fn say(&mut self, json: Vec<u8>) -> bool {
        let fits = self.out.len() < OUT;
        if fits {
            self.out.push_back(json);
        }
        fits
    }

    /// A prompt is about to be handed over: until [`taken`](Self::taken), nothing of a run of this device's is shown.
    /// False: too many wait.
    pub(super) fn take(&mut self, id: &RawValue) -> bool {
        let waiting = self.prompts.iter().filter(|prompt| prompt.ended.is_none()).count();
        let fits = waiting + self.taking.len() < PROMPTS;
        if fits {
            self.taking.push(id.to_owned());
        }
        fits
    }

    /// The prompt was handed over, and this is its run; or it was refused.
    pub(super) fn taken(&mut self, id: &RawValue, run_id: Option<RunId>) {
        self.taking.retain(|other| other.get() != id.get());
        let Some(run_id) = run_id else { return };
        let id = id.to_owned();
        if self.prompts.len() >= PROMPTS
            && let Some(old) = self.prompts.iter().position(|prompt| prompt.ended.is_some())
        {
            self.prompts.remove(old);
        }
        self.prompts.push(Waiting { id, run_id, ended: None });
    }

    /// Whether a prompt with this JSON-RPC id is being handed over, or waits.
    pub(super) fn waits_for(&self, id: &str) -> bool {
        self.taking.iter().any(|taking| taking.get() == id) || self.run_of(id).is_some()
    }

    /// The run of a prompt that waits, by its JSON-RPC id.
    pub(super) fn run_of(&self, id: &str) -> Option<RunId> {
        let prompt = self.prompts.iter().rev().find(|prompt| prompt.ended.is_none() && prompt.id.get() == id);
        prompt.map(|prompt| prompt.run_id.clone())
    }

    /// Gives the response to a prompt whose run ended where the stream has been already.
    pub(super) fn ended_before(&mut self, run_id: &RunId, at: Position) -> Option<Box<RawValue>> {
        let behind = at <= self.position;
        let prompt = self.prompts.iter_mut().rfind(|prompt| prompt.run_id == *run_id && prompt.ended.is_none())?;
        if !behind {
            return None;
        }
        prompt.ended = Some(at);
        Some(prompt.id.clone())
    }

    /// The JSON-RPC ids of the prompts that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &RawValue> {
        self.prompts.iter().filter(|prompt| prompt.ended.is_none()).map(|prompt| &*prompt.id)
    }

    /// Whether the client has answered a question, so that its end is not taken back from it.
    pub(super) fn answered(&mut self, id: &RequestId, answered: bool) {
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.id == *id) {
            asked.answered = answered;
        }
    }

    /// The digest of the revision that the client was shown, if it was.
    pub(super) fn digest_of(&self, id: &RequestId, revision: u64) -> Option<String> {
        let asked = self.asked.iter().find(|asked| asked.id == *id && asked.shown.0 == revision && !asked.card);
        asked.map(|asked| asked.shown.1.clone())
    }

    /// Whether the client was asked this, and it is open still.
    pub(super) fn was_asked(&self, id: &RequestId) -> bool {
        self.asked.iter().any(|asked| asked.id == *id && asked.over.is_none())
    }

    pub(super) fn ask(&mut self, request: &Request, at: Position, card: bool) {
        if self.asked.len() >= ASKED {
            let old = self.asked.iter().position(|asked| asked.over.is_some()).unwrap_or_default();
            self.asked.remove(old);
        }
        let id = request.request_id.clone();
        let tool_call = request.tool_call_id.clone().unwrap_or_else(|| id.to_string());
        let shown = (request.revision, request.digest.clone());
        self.asked.push(Asked { id, at, shown, tool_call, card, over: None, answered: false });
    }
}
