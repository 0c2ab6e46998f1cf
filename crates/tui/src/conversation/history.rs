//! Pages of history, and the events before the first block.

use std::collections::VecDeque;

use serde_json::Value;

use super::blocks::Block;
use super::reads::ReadStretches;
use crate::view_model::{millis, position};

/// A page of history from the gateway.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PageOf {
    /// The events, merged.
    pub(crate) events: Vec<ConversationEvent>,
    /// The `before` of the previous page; none on the first.
    pub(crate) previous: Option<String>,
}

/// An event, or several merged ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConversationEvent {
    pub(crate) kind: String,
    pub(crate) body: Value,
    pub(crate) run: String,
    /// The cursor of the last merged event.
    pub(crate) cursor: String,
    /// The place of the first merged event.
    pub(crate) place: u64,
    /// The times of the first and of the last merged event.
    pub(crate) at: (i64, i64),
}

impl PageOf {
    /// Reads the gateway's reply.
    pub(crate) fn read(page: &Value) -> Self {
        let events = page["events"].as_array().into_iter().flatten().map(|event| {
            let cursor = event["cursor"].as_str().unwrap_or_default();
            let at = millis(&event["at"]).unwrap_or_default();
            ConversationEvent {
                kind: event["kind"].as_str().unwrap_or_default().to_owned(),
                body: event["event"].clone(),
                run: event["run_id"].as_str().unwrap_or_default().to_owned(),
                cursor: cursor.to_owned(),
                place: position(event["cursor_first"].as_str().unwrap_or(cursor)),
                at: (at, millis(&event["at_last"]).unwrap_or(at)),
            }
        });
        Self { events: events.collect(), previous: page["previous"].as_str().map(str::to_owned) }
    }
}

/// An older page that is being shown.
#[derive(Debug)]
pub(super) struct OlderPage {
    pub(super) blocks: VecDeque<Block>,
    pub(super) reads: ReadStretches,
    /// The `before` of the page before it; none on the first.
    pub(super) previous: Option<String>,
}

/// The events before the first block.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The `before` of the events before the first block; none at the start of the session.
    pub(super) previous: Option<String>,
    /// The older page that is being shown.
    pub(super) older: Option<OlderPage>,
    /// `true` if an older page is being fetched.
    pub(super) fetching: bool,
    /// The number of older pages fetched.
    pub(super) fetched: u64,
    /// A place to scroll to that is not loaded: the page that ends with it is fetched.
    pub(super) jump: Option<u64>,
}
