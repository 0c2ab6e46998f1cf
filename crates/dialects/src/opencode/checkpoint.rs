//! What of a conversation outlives the gateway: how far it was told, and what it waits for.
//!
//! A session keeps it in the commit that holds what it speaks of, so the two never differ. Where the messages are read
//! again, whatever a checkpoint has is left out and the rest is told, once.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::{CarriedState, Outbox, RuntimeEvent};
use super::events::{Telling, hash};
use super::{OpenCode, Prompt, Revert, Session, calls};
use plexus_protocol::NativeId;

/// The longest checkpoint, in bytes: a row of that length is written with every commit. Of a conversation that needs more
/// only the messages' names are kept: what was missed of those under way is told as a gap.
const CHECKPOINT_MAX: usize = 64 * 1024;

/// A session, as the gateway's session keeps it.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Checkpoint {
    telling: Telling,
    prompt: Option<Prompt>,
    began: bool,
    cancelled: bool,
    aborted: bool,
    error: Option<String>,
    model: Option<(String, String)>,
    /// How far the messages under way were told is left out.
    partial: bool,
    reverted: Option<Revert>,
}

impl OpenCode {
    /// Says how far each session was told of which something was said since `from`, and `more`.
    pub(super) fn checkpoints(&self, from: usize, more: Option<NativeId>, out: &mut Outbox) {
        let mut touched: Vec<NativeId> = more.into_iter().collect();
        for native in out.events.get(from..).unwrap_or_default().iter().filter_map(RuntimeEvent::native) {
            if !touched.contains(native) {
                touched.push(native.clone());
            }
        }
        for native in touched {
            // What waits to be said is not told yet: what is said after it has a checkpoint again.
            let told = |session: &&Session| session.live() && session.queue.is_empty() && session.words.is_empty();
            if let Some(session) = self.sessions.get(&native).filter(told) {
                let state = checkpoint(session);
                out.events.push(RuntimeEvent::Checkpoint { native, state });
            }
        }
    }

    /// A session that is opened goes on from where an earlier connection left it; false if that cannot be read. What was
    /// heard of it since it was found is read again.
    pub(super) fn restored(&mut self, native: &NativeId, carried: &CarriedState) -> bool {
        let Ok(kept) = serde_json::from_str::<Checkpoint>(&carried.checkpoint) else { return false };
        let Some(session) = self.sessions.get_mut(native) else { return false };
        session.queue.clear();
        session.queued = 0;
        self.asks.retain(|_, asked| asked.native != *native);
        session.telling = kept.telling;
        session.telling.connection_lost();
        (session.partial, session.reverted) = (kept.partial, kept.reverted);
        session.carried = carried.asks.iter().cloned().collect();
        session.prompt = carried.prompt.map(|ticket| {
            let kept = kept.prompt.filter(|prompt| prompt.ticket == ticket);
            // Whether OpenCode has it shows in its messages.
            let prompt = kept.unwrap_or_else(|| {
                let blocks = carried.content.iter().filter_map(|block| RawValue::from_string(block.clone()).ok());
                let (_, text) = calls::parts(&blocks.collect::<Vec<_>>());
                Prompt { ticket, text: text.as_deref().map(hash), seen: false, taken: false, after: None }
            });
            Prompt { taken: false, ..prompt }
        });
        session.began = kept.began && session.prompt.is_none();
        (session.cancelled, session.aborted) = (kept.cancelled, kept.aborted);
        (session.error, session.model) = (kept.error, kept.model);
        true
    }
}

fn checkpoint(session: &Session) -> String {
    let whole = Checkpoint {
        telling: session.telling.brief(),
        prompt: session.prompt.clone(),
        began: session.began,
        cancelled: session.cancelled,
        aborted: session.aborted,
        error: session.error.clone(),
        model: session.model.clone(),
        partial: session.partial,
        reverted: session.reverted.clone(),
    };
    // Plain values of our own: they always can be written.
    let text = serde_json::to_string(&whole).unwrap_or_default();
    if text.len() <= CHECKPOINT_MAX {
        return text;
    }
    let (telling, error) = (session.telling.names(), None);
    serde_json::to_string(&Checkpoint { telling, error, partial: true, ..whole }).unwrap_or_default()
}
