//! What was said in a run, put into the full-text index once the run is over: nothing of it is on the path of an event.

use std::sync::Arc;

use super::snapshot::Fold;
use super::{Entry, Filter, Log, Rows};
use crate::model::{Origin, Position, RunId};
use crate::store::{ReadLimit, TextRow};

/// Bytes of one passage in the index; the rest of a longer message is indexed as further passages.
const PASSAGE: usize = 32 << 10;
/// Events read at a time.
const PAGE: ReadLimit = ReadLimit { events: 4096, bytes: 4 << 20 };
/// How far back the beginning of a run is looked for, in events of its session.
const BACK: u64 = 1 << 20;

/// Indexes a run that is over. A failure loses nothing but a finding: it is logged.
pub(super) async fn run(log: Log, origin: Arc<Origin>, run_id: RunId) {
    let filter = Filter::session(origin.session_id.clone());
    let head = log.head();
    let mut after = Position(head.0.saturating_sub(BACK));
    let mut fold = Fold::default();
    while after < head {
        let page = match log.read(&filter, after, PAGE).await {
            Ok(page) => page,
            Err(error) => return tracing::warn!(%error, %run_id, "a run was not indexed"),
        };
        page.events.iter().filter(|event| event.run_id == run_id).for_each(|event| fold.event(event));
        if page.next <= after {
            break;
        }
        after = page.next;
    }
    let texts: Vec<TextRow> = fold
        .into_messages()
        .into_iter()
        .filter(|message| message.role != "thought")
        .flat_map(|message| {
            passages(&message.text)
                .map(|text| TextRow {
                    session_id: origin.session_id.clone(),
                    position: Position(message.position),
                    role: message.role,
                    text: text.to_owned(),
                })
                .collect::<Vec<_>>()
        })
        .collect();
    if texts.is_empty() {
        return;
    }
    let rows = move |_| Rows { texts, ..Rows::default() };
    let entry = Entry { origin, events: Vec::new(), rows: Some(Box::new(rows)), kept: None, sync: false };
    if let Err(error) = log.commit(entry).await {
        tracing::warn!(%error, %run_id, "a run was not indexed");
    }
}

fn passages(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (passage, more) = rest.split_at(rest.floor_char_boundary(PASSAGE));
        rest = more;
        Some(passage)
    })
}
