//! Stores the decisions of a session's task and publishes them.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use dashmap::DashMap;
use prometheus::{Histogram, IntCounter};

use crate::ceilings::CeilingBook;
use crate::session_handle::{SessionHandle, summary};
use crate::state::{ClosedRequests, Plan, SessionStateMachine};
use crate::system::now;
use crate::{CommitEntry, CommitRows, Log, journal};
use plexus_dialects::RuntimeCommand;
use plexus_ledger::{Account, Ledger};
use plexus_metrics::metrics;
use plexus_protocol::{Kind, Position, Request, RequestId, RequestState, RunId, SessionId};
use plexus_store::{PromptChange, RequestRow, SessionRow, StoreError};

/// Events after which the session's row is written again, so that a restart reads at most this many to catch up.
const ROW_EVERY: usize = 4096;

/// Stores the decisions of a session. Also used for sessions without a task (at startup, if the runtime has ended).
pub(crate) struct Persister {
    pub(crate) log: Log,
    pub(crate) handle: SessionHandle,
    /// The ledger; set once the gateway serves.
    ledger: Arc<OnceLock<Ledger>>,
    /// The session of each open request: set before any client can see the request.
    pub(crate) request_sessions: Arc<DashMap<RequestId, SessionId>>,
    pub(super) receipts: ClosedRequests,
    since_row: usize,
    /// The first event that an unfinished run or an open request needs.
    pub(super) busy_since: Option<Position>,
    /// The ceilings on spending; they get the session's spending once it is stored.
    pub(super) ceilings: Arc<CeilingBook>,
    /// The prompts whose content is stored.
    prompts: BTreeSet<RunId>,
    counts: SessionCounts,
}

/// Metrics of a session, labelled with its runtime.
struct SessionCounts {
    events: IntCounter,
    first_chunk: Histogram,
    /// The time when the runtime last got a prompt to which it has not responded yet.
    prompted: Option<Instant>,
}

impl SessionCounts {
    fn new(runtime: &str) -> Self {
        let label = [metrics().runtime_label(runtime)];
        Self {
            events: metrics().runtime_events.with_label_values(&label),
            first_chunk: metrics().first_chunk.with_label_values(&label),
            prompted: None,
        }
    }

    fn record(&mut self, plan: &Plan) {
        self.events.inc_by(plan.events.len() as u64);
        if let Some(prompted) = self.prompted {
            let is_output = |kind| matches!(kind, Kind::AgentMessageChunk | Kind::AgentThoughtChunk | Kind::ToolCall);
            if plan.events.iter().any(|event| is_output(event.kind)) {
                let received = plan.received.unwrap_or_else(Instant::now);
                self.first_chunk.observe(received.saturating_duration_since(prompted).as_secs_f64());
                self.prompted = None;
            } else if !plan.ended.is_empty() {
                self.prompted = None;
            }
        }
        if plan.orders.iter().any(|order| matches!(order, RuntimeCommand::Prompt { .. })) {
            self.prompted = Some(Instant::now());
        }
    }
}

impl Persister {
    /// Makes a persister. `busy_since`: the first event that an unfinished run or an open request needs.
    pub(crate) fn new(
        log: Log,
        handle: SessionHandle,
        request_sessions: Arc<DashMap<RequestId, SessionId>>,
        busy_since: Option<Position>,
    ) -> Self {
        let (receipts, prompts) = (ClosedRequests::default(), BTreeSet::new());
        let counts = SessionCounts::new(handle.origin.runtime_id.as_str());
        let (ledger, ceilings) = (Arc::default(), Arc::default());
        Self { log, handle, ledger, request_sessions, receipts, since_row: 0, busy_since, ceilings, prompts, counts }
    }

    /// Sets the ledger that accounts for what the session holds in memory.
    pub(crate) fn charged_to(mut self, ledger: Arc<OnceLock<Ledger>>) -> Self {
        self.ledger = ledger;
        self
    }

    /// Sets the gateway's ceilings.
    pub(crate) fn counted_in(mut self, ceilings: Arc<CeilingBook>) -> Self {
        self.ceilings = ceilings;
        self
    }

    /// Returns the session's account; `None` before the gateway serves.
    pub(crate) fn account(&self) -> Option<Account> {
        let origin = &self.handle.origin;
        self.ledger.get().map(|ledger| ledger.session(origin.session_id.as_str(), origin.runtime_id.as_str()))
    }

    /// Records, for a session of an earlier gateway, that the store has the content of these prompts.
    pub(crate) fn with_stored_prompts(mut self, prompts: BTreeSet<RunId>) -> Self {
        self.prompts = prompts;
        self
    }

    /// Returns the prompts whose content has to be written or deleted: each is written once, and deleted when no longer needed.
    fn prompt_changes(&self, state: &SessionStateMachine) -> (Vec<PromptChange>, BTreeSet<RunId>) {
        let session_id = &state.origin.session_id;
        let mut changes = Vec::new();
        let mut now = BTreeSet::new();
        for (run_id, content) in state.prompt_contents() {
            now.insert(run_id.clone());
            if !self.prompts.contains(run_id) {
                let content = Some(serde_json::to_vec(&**content).unwrap_or_default());
                changes.push(PromptChange { session_id: session_id.clone(), run_id: run_id.clone(), content });
            }
        }
        let removed = self.prompts.iter().filter(|run_id| !now.contains(*run_id));
        let removed = removed.map(|run_id| (session_id.clone(), run_id.clone()));
        changes.extend(removed.map(|(session_id, run_id)| PromptChange { session_id, run_id, content: None }));
        (changes, now)
    }

    /// Stores the plan's events and rows, and publishes them. The plan is unchanged, so that a failed call can be repeated.
    pub(crate) async fn keep(&mut self, plan: &Plan, state: &SessionStateMachine) -> Result<Position, Arc<StoreError>> {
        let events = plan.events.len();
        self.since_row += events;
        let dirty = plan.dirty || self.since_row >= ROW_EVERY;
        if events == 0 && !dirty {
            return Ok(self.log.head());
        }
        let origin = Arc::clone(&state.origin);
        let unfinished = state.unfinished();
        let busy_since = self.busy_since;
        let row = dirty.then(|| state.row());
        let prompts_now = dirty.then(|| self.prompt_changes(state));
        let (prompts, prompts_now) = prompts_now.map_or((Vec::new(), None), |(changes, now)| (changes, Some(now)));
        let mark = plan.processed.map(|offset| state.mark(offset));
        let (surfaces, mut spent) = (plan.surfaces.clone(), plan.spent.clone());
        spent.iter_mut().for_each(|change| change.at = self.ceilings.clock().steady(change.at));
        let epoch = self.log.epoch().clone();
        let changes: Vec<(Request, Option<String>, usize)> =
            plan.requests.iter().map(|c| (Request::clone(&c.request), c.key.clone(), c.event)).collect();
        let rows = {
            let origin = Arc::clone(&origin);
            move |first: Position| {
                let requests = changes.into_iter().map(|(request, answer_key, event)| {
                    let cursor =
                        plexus_protocol::Cursor { epoch: epoch.clone(), position: Position(first.0 + event as u64) };
                    request_row(request, answer_key, cursor)
                });
                let sessions = row.map(|state| SessionRow {
                    session_id: origin.session_id.clone(),
                    runtime_id: origin.runtime_id.clone(),
                    dialect: origin.dialect.to_string(),
                    state,
                    as_of: Position((first.0 + events as u64).saturating_sub(1)),
                    spare_from: unfinished.then(|| busy_since.unwrap_or(first)),
                });
                CommitRows {
                    requests: requests.collect(),
                    sessions: sessions.into_iter().collect(),
                    prompts,
                    surfaces,
                    spent,
                    marks: mark.map(|mark| (origin.session_id.clone(), mark)).into_iter().collect(),
                    ..CommitRows::default()
                }
            }
        };
        let on_stored = self.after_commit(plan, state, dirty);
        let entry = CommitEntry {
            origin,
            events: plan.events.clone(),
            rows: Some(Box::new(rows)),
            on_stored: Some(Box::new(on_stored)),
            received: plan.received,
            sync: plan.sync,
        };
        let first = self.log.commit(entry).await?;
        self.counts.record(plan);
        self.ceilings.add(plan.spent.iter().map(|change| &change.spending), now());
        journal::record(plan);
        if dirty {
            self.since_row = 0;
        }
        if let Some(now) = prompts_now {
            self.prompts = now;
        }
        self.busy_since = unfinished.then(|| busy_since.unwrap_or(first));
        self.remember_receipts(plan, first);
        Ok(first)
    }

    /// Returns the function that makes a committed plan visible to readers of the session's handle.
    fn after_commit(
        &self,
        plan: &Plan,
        state: &SessionStateMachine,
        dirty: bool,
    ) -> impl FnOnce(Position) + Send + use<> {
        let (handle, request_sessions) = (self.handle.clone(), Arc::clone(&self.request_sessions));
        let session_id = state.origin.session_id.clone();
        let view = dirty.then(|| summary(state));
        let at = state.updated_at().as_millis();
        let (activity_event, events) = (plan.activity_event, plan.events.len() as u64);
        let changes: Vec<(RequestId, RequestState)> =
            plan.requests.iter().map(|c| (c.request.request_id.clone(), c.request.state)).collect();
        move |first: Position| {
            for (id, state) in changes {
                if state == RequestState::Open {
                    request_sessions.insert(id, session_id.clone());
                } else {
                    request_sessions.remove(&id);
                }
            }
            if let Some(view) = view {
                handle.view.store(Arc::new(view));
            }
            if let Some(event) = activity_event {
                handle.activity_position.store(first.0 + event as u64, Ordering::Relaxed);
            }
            if handle.updated.swap(at, Ordering::Relaxed) != at {
                handle.latest_activity.store(first.0 + 1, Ordering::Relaxed);
            }
            if let Some(last) = events.checked_sub(1) {
                handle.last.store(first.0 + last, Ordering::Relaxed);
            }
        }
    }

    /// Stores the receipts in memory, for answers that arrive later.
    fn remember_receipts(&mut self, plan: &Plan, first: Position) {
        for change in &plan.requests {
            let Some(mut receipt) = change.request.receipt.clone() else { continue };
            receipt.cursor = Some(self.log.cursor(Position(first.0 + change.event as u64)));
            let waited = receipt.at.as_millis() - change.request.opened_at.as_millis();
            metrics().request_wait.observe(waited.max(0) as f64 / 1000.0);
            metrics().requests.with_label_values(&[state_name(receipt.state)]).inc();
            self.receipts.push(receipt, change.key.clone());
        }
    }
}

/// Returns the row of a request; `cursor` is that of its receipt, if it has one.
fn request_row(mut request: Request, answer_key: Option<String>, cursor: plexus_protocol::Cursor) -> RequestRow {
    if let Some(receipt) = &mut request.receipt {
        receipt.cursor = Some(cursor);
    }
    RequestRow {
        request_id: request.request_id.clone(),
        session_id: request.session_id.clone(),
        state: request.state,
        body: serde_json::to_vec(&request).unwrap_or_default(),
        answer_key,
        closed_at: request.receipt.as_ref().map(|receipt| receipt.at),
    }
}

fn state_name(state: RequestState) -> &'static str {
    match state {
        RequestState::Open => "open",
        RequestState::Answered => "answered",
        RequestState::Expired => "expired",
        RequestState::Withdrawn => "withdrawn",
        RequestState::Orphaned => "orphaned",
    }
}
