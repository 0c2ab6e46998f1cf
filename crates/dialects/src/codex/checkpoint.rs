//! The part of a conversation that outlives the gateway process: which events were reported, and what is pending.
//!
//! A session stores it in the same commit as the events that it covers, so the two never differ. When the server's
//! turns are read again, everything that a checkpoint covers is skipped, and the rest is reported once.

use serde::{Deserialize, Serialize};

use super::super::{CarriedState, Outbox, RequestKey, RuntimeEvent};
use super::ask::PendingRequest;
use super::items::Items;
use super::{Codex, OTHER, Thread, Turn, UNSURE};
use plexus_protocol::{NativeId, Ticket};

/// Maximum length of a checkpoint, in bytes: a row of that length is written with every commit. Of a larger one only
/// the turns are stored: missed events of the current turn become a gap, and its questions are asked again.
const CHECKPOINT_MAX: usize = 64 * 1024;

/// A thread as its session stores it.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Checkpoint {
    thread: Thread,
    asks: Vec<(RequestKey, PendingRequest)>,
    /// The number of questions with a key: no key is reused, even by another gateway process.
    #[serde(rename = "asked")]
    request_count: u64,
}

/// Returns whether the checkpoint is of a thread in which nobody had written.
pub(super) fn is_unwritten(carried: &CarriedState) -> bool {
    serde_json::from_str::<Checkpoint>(&carried.checkpoint).is_ok_and(|checkpoint| checkpoint.thread.unwritten)
}

impl Codex {
    /// Adds a checkpoint of each thread with events since `from`, and of `more`.
    pub(super) fn checkpoints(&self, from: usize, more: Option<NativeId>, out: &mut Outbox) {
        if self.alone {
            // A program of the gateway's own outlives it together with this state.
            return;
        }
        for native in out.sessions_since(from, more) {
            if let Some(thread) = self.state.threads.get(&native) {
                let state = self.checkpoint(&native, thread);
                out.events.push(RuntimeEvent::Checkpoint { native, state });
            }
        }
    }

    fn checkpoint(&self, native: &NativeId, thread: &Thread) -> String {
        let asks = self.state.asks.iter().filter(|(_, request)| request.native == *native && !request.secret());
        let asks = asks.map(|(key, request)| (key.clone(), request.clone())).collect();
        let brief = Thread {
            turn: thread.turn.clone(),
            reported_turns: thread.reported_turns.clone(),
            model: thread.model.clone(),
            provider: thread.provider.clone(),
            items: thread.items.brief(),
            partial: thread.partial,
            unwritten: thread.unwritten,
            untitled: thread.untitled,
            ..Thread::default()
        };
        let whole = Checkpoint { thread: brief, asks, request_count: self.state.request_count };
        // Plain values can always be written.
        let text = serde_json::to_string(&whole).unwrap_or_default();
        if text.len() <= CHECKPOINT_MAX {
            return text;
        }
        let mut thread = Thread { items: Items::default(), partial: true, ..whole.thread };
        if let Some((_, end)) = thread.turn.as_mut().and_then(|turn| turn.early.as_mut()) {
            end.native = None;
        }
        serde_json::to_string(&Checkpoint { thread, asks: Vec::new(), request_count: whole.request_count })
            .unwrap_or_default()
    }

    /// Returns the thread of a checkpoint, and the events to report at once; `None` if it cannot be read.
    pub(super) fn restored(
        &mut self,
        native: &NativeId,
        carried: &CarriedState,
    ) -> Option<(Thread, Vec<RuntimeEvent>)> {
        let Checkpoint { mut thread, asks, request_count } = serde_json::from_str(&carried.checkpoint).ok()?;
        let mut events = Vec::new();
        self.state.request_count = self.state.request_count.max(request_count);
        self.state.asks.retain(|_, request| request.native != *native);
        for key in &carried.asks {
            match asks.iter().find(|(known, _)| key == known) {
                Some((key, request)) => {
                    let mut request = request.clone();
                    request.stale = UNSURE;
                    self.state.asks.insert(key.clone(), request);
                }
                None => events.push(RuntimeEvent::TakenBack {
                    native: Some(native.clone()),
                    key: key.clone(),
                    elsewhere: None,
                }),
            }
        }
        thread.items.connection_lost();
        let carried_prompt = carried.prompt.map(|Ticket(ticket)| ticket);
        if let Some(turn) = &mut thread.turn
            && turn.ticket != carried_prompt
        {
            (turn.ticket, turn.starting, turn.early) = (None, false, None);
        }
        thread.turn = thread.turn.filter(|turn| turn.id.is_some() || turn.ticket.is_some());
        if let Some(ticket) = carried_prompt {
            // The server's turns show whether it has the prompt.
            let turn = thread.turn.get_or_insert_with(Turn::default);
            if turn.ticket.is_none() {
                (turn.ticket, turn.starting, turn.echoed) = (Some(ticket), true, false);
            }
        }
        if let Some(turn) = thread.turn.as_mut().filter(|turn| turn.ticket.is_none()) {
            turn.began = true;
            events.push(RuntimeEvent::Began { native: native.clone(), by: OTHER.into() });
        }
        Some((thread, events))
    }
}

/// Stores a frame of JSON, which is text, as a string.
pub(super) mod frame_text {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(frame: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
        frame.as_deref().and_then(|frame| std::str::from_utf8(frame).ok()).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(Bytes::from))
    }
}
