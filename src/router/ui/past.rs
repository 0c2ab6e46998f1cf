//! A session's history in the UI protocol: the latest runs, translated from their start, so that every event has its own number.

use std::collections::{BTreeSet, VecDeque};

use super::translator::{Progress, UiFrame, UiTranslator};
use crate::Problem;
use crate::follow::FollowLog;
use crate::jsonrpc::RpcError;
use plexus_ledger::{Account, Charge};
use plexus_metrics::Subscriber;
use plexus_protocol::{Kind, Position, RunId, SessionId};
use plexus_sessions::{Filter, Log, LogPosition, PageLimit, initial_run_id};

/// Maximum size of a history, in bytes.
const HISTORY_BYTES: usize = 8 << 20;
/// Limit of one backwards read of events.
const BACK: PageLimit = PageLimit { items: 256, bytes: 256 << 10, merge: false, output: usize::MAX };

/// The latest events of a session.
pub(super) struct Past {
    pub(super) frames: Vec<u8>,
    pub(super) events: usize,
    pub(super) runs: usize,
    /// `true` if older events were left out.
    pub(super) truncated: bool,
    /// The state after the last event.
    pub(super) progress: Progress,
    /// The charge for the memory of `frames`.
    _charge: Charge,
}

/// Reads the latest `events` agent events of the latest `runs` runs of a session, up to `at`.
///
/// # Errors
/// The log cannot be read.
pub(super) async fn read(
    log: &Log,
    account: &Account,
    session: &SessionId,
    at: Position,
    (runs, events): (usize, usize),
) -> Result<Past, RpcError> {
    let (start, mut truncated) = start(log, account, session, at, (runs, events)).await?;
    let mut translator = UiTranslator::default();
    let mut latest: VecDeque<UiFrame> = VecDeque::new();
    let mut bytes = 0;
    let mut follow = FollowLog::new(log, Filter::session(session.clone()), start, Subscriber::Ui).until(at);
    let mut frames = Vec::new();
    // Events between the runs, such as those of a conversation begun elsewhere, are not a run.
    let mut zero: Option<RunId> = None;
    let mut charge = account.nothing();
    while follow.position() < at {
        // The old charge is released before waiting for a new one.
        drop(std::mem::replace(&mut charge, account.nothing()));
        let Some((page, page_room)) = follow.more_within(account).await else { break };
        for event in page.events.iter().filter(|event| event.position <= at) {
            zero.get_or_insert_with(|| initial_run_id(&event.origin));
            translator.event(event, true, &mut frames);
        }
        for frame in frames.drain(..).filter(|frame| frame.event_run.is_some()) {
            bytes += frame.bytes.len();
            latest.push_back(frame);
        }
        while latest.len() > events || (bytes > HISTORY_BYTES && latest.len() > 1) {
            bytes -= latest.pop_front().map_or(0, |frame| frame.bytes.len());
            truncated = true;
        }
        drop((page, page_room));
        charge = account.wait(bytes).await;
    }
    let run_ids: BTreeSet<&RunId> = latest.iter().filter_map(|frame| frame.event_run.as_ref()).collect();
    let (runs, events) = (run_ids.iter().filter(|run| Some(**run) != zero.as_ref()).count(), latest.len());
    let frames = latest.iter().flat_map(|frame| frame.bytes.iter().copied()).collect();
    Ok(Past { frames, events, runs, truncated, progress: translator.into_progress(), _charge: charge })
}

/// Returns the position before the start of the oldest of the latest runs, and whether there are older ones. No older run is added once
/// there are certainly enough events.
async fn start(
    log: &Log,
    account: &Account,
    session: &SessionId,
    at: Position,
    (runs, events): (usize, usize),
) -> Result<(Position, bool), RpcError> {
    let mut charge = account.wait(BACK.bytes).await;
    let (mut to, mut begun, mut certain) = (LogPosition::after(at), 0, 0);
    let mut start: Option<Position> = None;
    loop {
        let page = log.page_before(session, to, BACK, &mut charge).await.map_err(Problem::from)?;
        for item in page.items.iter().rev() {
            let event = item.first();
            let text = matches!(event.kind, Kind::UserMessageChunk | Kind::AgentMessageChunk | Kind::AgentThoughtChunk);
            if event.run_id == initial_run_id(&event.origin) && !text {
                continue;
            }
            if let Some(start) = start {
                return Ok((start, true));
            }
            certain += usize::from(text);
            if event.kind == Kind::RunStarted {
                begun += 1;
                if begun >= runs || certain >= events {
                    start = Some(Position(event.position.0.saturating_sub(1)));
                }
            }
        }
        if !page.more {
            return Ok((start.unwrap_or_default(), false));
        }
        to = page.from;
    }
}
