//! The part of a conversation that outlives the gateway process: which messages were reported, and what is pending.
//!
//! A session stores it in the same commit as the events that it covers, so the two never differ. When the messages are
//! read again, everything that a checkpoint covers is skipped, and the rest is reported once.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::{CarriedState, Outbox, RuntimeEvent};
use super::ask::CarriedAsks;
use super::events::{Progress, hash};
use super::{OpenCode, Prompt, Revert, Session, calls};
use plexus_protocol::NativeId;

/// Maximum length of a checkpoint, in bytes: a row of that length is written with every commit. Of a larger one only
/// the messages' ids are stored: missed text of unfinished messages becomes a gap.
const CHECKPOINT_MAX: usize = 64 * 1024;

/// A session as the gateway's session stores it.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Checkpoint {
    #[serde(rename = "telling")]
    progress: Progress,
    prompt: Option<Prompt>,
    began: bool,
    cancelled: bool,
    aborted: bool,
    error: Option<String>,
    model: Option<(String, String)>,
    /// `true` if the progress of unfinished messages was left out.
    partial: bool,
    reverted: Option<Revert>,
}

impl OpenCode {
    /// Adds a checkpoint of each session with events since `from`, and of `more`.
    pub(super) fn checkpoints(&mut self, from: usize, more: Option<NativeId>, out: &mut Outbox) {
        self.open_held(out);
        for native in out.sessions_since(from, more) {
            // Queued events are not reported yet: they come with a checkpoint of their own.
            let is_current =
                |session: &&Session| session.live() && session.queue.is_empty() && session.held_prompt.is_empty();
            if let Some(session) = self.sessions.get(&native).filter(is_current) {
                let state = checkpoint(session);
                out.events.push(RuntimeEvent::Checkpoint { native, state });
            }
        }
    }

    /// Continues a session from its checkpoint; returns `false` if it cannot be read. Messages received since the
    /// session was found are read again.
    pub(super) fn restored(&mut self, native: &NativeId, carried: &CarriedState) -> bool {
        let Ok(stored) = serde_json::from_str::<Checkpoint>(&carried.checkpoint) else { return false };
        let Some(session) = self.sessions.get_mut(native) else { return false };
        session.queue.clear();
        session.queued = 0;
        self.asks.retain(|_, question| question.native != *native);
        session.progress = stored.progress;
        session.progress.connection_lost();
        (session.partial, session.reverted) = (stored.partial, stored.reverted);
        session.carried = CarriedAsks::new(&carried.asks);
        session.prompt = carried.prompt.map(|ticket| {
            let stored = stored.prompt.filter(|prompt| prompt.ticket == ticket);
            // OpenCode's messages show whether it has the prompt.
            let prompt = stored.unwrap_or_else(|| {
                let blocks = carried.content.iter().filter_map(|block| RawValue::from_string(block.clone()).ok());
                let (_, text) = calls::parts(&blocks.collect::<Vec<_>>());
                Prompt { ticket, text: text.as_deref().map(hash), seen: false, taken: false, after: None }
            });
            Prompt { taken: false, ..prompt }
        });
        session.began = stored.began && session.prompt.is_none();
        (session.cancelled, session.aborted) = (stored.cancelled, stored.aborted);
        (session.error, session.model) = (stored.error, stored.model);
        true
    }
}

fn checkpoint(session: &Session) -> String {
    let whole = Checkpoint {
        progress: session.progress.brief(),
        prompt: session.prompt.clone(),
        began: session.began,
        cancelled: session.cancelled,
        aborted: session.aborted,
        error: session.error.clone(),
        model: session.model.clone(),
        partial: session.partial,
        reverted: session.reverted.clone(),
    };
    // Plain values can always be written.
    let text = serde_json::to_string(&whole).unwrap_or_default();
    if text.len() <= CHECKPOINT_MAX {
        return text;
    }
    let (progress, error) = (session.progress.names(), None);
    serde_json::to_string(&Checkpoint { progress, error, partial: true, ..whole }).unwrap_or_default()
}
