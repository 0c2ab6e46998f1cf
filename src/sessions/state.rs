//! The state machine of a session: runs, requests and the prompt queue. Pure: values in, a [`Plan`] out; no I/O, no clock, no randomness
//! of its own.

mod activity;
mod behavior;
mod ceilings;
mod edits;
mod ends;
mod folders;
mod open_requests;
mod prompts;
mod rows;
mod spending;
mod surface_asks;

use activity::RunActivity;
use behavior::{AgentBehavior, WatchedCall};
use ceilings::CeilingMemory;
pub(super) use edits::SessionEdit;
pub(super) use open_requests::{ClosedRequests, late};
use prompts::text_of_body;
use rows::{Large, MessageCounts};
use spending::SpendMeter;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;
pub(super) use surface_asks::AskAnswer;
use surface_asks::SurfaceAsk;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::answer_key::AnswerKey;
use super::ceilings::CeilingFacts;
use super::client_calls::SessionOwner;
use super::prompt_key::{PromptKey, StoredPromptKey};
use super::prompts::PromptContent;
use super::rules::SessionRules;
use super::string_slices::StringSlices;
use super::{NewEvent, ProcessStart, RuntimeExit, SessionError, requests, runtime_link};
use plexus_dialects::link::in_terminal;
use plexus_dialects::{
    AgentRequest, AgentReview, AnsweredElsewhere, CarriedState, EventDraft, OpenedAs, RequestKey, RunEnd,
    RuntimeCommand, RuntimeEvent, ToolCallRef,
};
use plexus_protocol::api::sessions::{AcceptedPrompt, RunOutcome};
use plexus_protocol::{
    Answer, CallDigest, CeilingKind, Choice, Decision, ErrorBody, Kind, NativeId, Origin, Position, Project,
    QueuedPrompt, Receipt, Request, RequestId, RequestState, Resolution, Resolver, Risk, RunBody, RunId, RunInfo,
    RunStatus, RuntimeStatusBody, SessionInfo, SessionState, Spending, Ticket, Timestamp,
};
use plexus_risk::label;
use plexus_store::{RuntimeMark, SpendChange, SurfaceChange};

/// Maximum number of open requests of a session, of which a connection of its agent opens 256; a further one is withdrawn, with an
/// `error` event.
const OPEN_MAX: usize = 272;
/// Maximum number of receipts of closed requests that a session holds in memory, for late answers; older ones are read from the store.
const RECEIPTS: usize = 256;
/// Maximum length of a prompt's excerpt in lists, in bytes.
const TEXT_SHOWN: usize = 200;
/// Maximum length of a title taken from a prompt or an agent, in bytes.
const TITLE_MAX: usize = 120;
/// Maximum number of answered requests that a session remembers, in case the runtime reports that an answer came too late.
const ANSWERED: usize = 64;
/// Maximum number of ended runs whose idempotency keys a session remembers. The keys of running and queued prompts are all remembered.
const KEYED: usize = 64;
/// Maximum length of the stop reason or message stored with the key of an ended run, in bytes.
const KEYED_TEXT_MAX: usize = 500;
/// Maximum number of tool calls of one run that the gateway closes if the agent does not; later ones stay as the agent left them.
const TOOLS_MAX: usize = 4096;
/// Maximum number of running calls of the gateway's own tools that are tracked for a run; beyond it the oldest are dropped, and refused
/// if they draw later.
const OWN_CALLS_MAX: usize = 64;
/// Maximum number of running tools whose titles are stored, for the session's current activity.
const ACTIVITY_MAX: usize = 32;
/// Maximum length of the reason of a cancel, in bytes.
const REASON_MAX: usize = 1000;
/// Maximum length of a title that a user gives, in bytes. `Directory::edit_session` refuses long ones earlier, by characters.
const NAME_MAX: usize = 1000;

/// The inputs of a decision beside the state: clocks, rules and sources of identifiers.
pub(super) struct DecisionEnv<'a> {
    /// The wall clock.
    pub(super) now: Timestamp,
    /// The monotonic clock, for deadlines.
    pub(super) mono: Instant,
    pub(super) rules: SessionRules,
    /// Makes identifiers with a prefix.
    pub(super) mint: &'a mut dyn FnMut(&str) -> String,
    pub(super) ticket: &'a mut dyn FnMut() -> Ticket,
}

/// The result of a decision. Its events are stored before the rest is carried out.
#[derive(Default)]
pub(super) struct Plan {
    /// Events to store, in order.
    pub(super) events: Vec<NewEvent>,
    /// Commands for the runtime, sent once the events are stored.
    pub(super) orders: Vec<RuntimeCommand>,
    /// Requests that opened or ended.
    pub(super) requests: Vec<RequestChange>,
    /// Runs that ended; their text is indexed.
    pub(super) ended: Vec<RunId>,
    /// Index in `events` of the last one that changed the session's current activity.
    pub(super) activity_event: Option<usize>,
    /// Rows of surfaces.
    pub(super) surfaces: Vec<SurfaceChange>,
    /// Changes of the spending, stored with the events.
    pub(super) spent: Vec<SpendChange>,
    /// `true` if the events must be on disk (synced) before anything else is done.
    pub(super) sync: bool,
    /// `true` if the session's row and summary changed.
    pub(super) dirty: bool,
    /// Offset up to which the runtime's output was processed; stored with the events.
    pub(super) processed: Option<u64>,
    /// The time when the driver parsed the first event of this plan, for the latency metrics.
    pub(super) received: Option<Instant>,
}

/// A request that opened or ended.
pub(super) struct RequestChange {
    pub(super) request: Arc<Request>,
    /// The idempotency key of the answer that won, in the form of [`AnswerKey::row`].
    pub(super) key: Option<String>,
    /// Index in [`Plan::events`] of the event that reports the change; its position is the receipt's cursor.
    pub(super) event: usize,
}

/// Reads the content of a prompt from the session's row, which had it in schema 3 and older.
fn content_in_row<'de, D: serde::Deserializer<'de>>(row: D) -> Result<Option<PromptContent>, D::Error> {
    Ok(Option::<Vec<Box<RawValue>>>::deserialize(row)?.map(Arc::new))
}

/// The part of a session's state that is stored in its row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct SessionCore {
    native_id: Option<NativeId>,
    title: Option<String>,
    /// `true` if a user set the title; the agent no longer changes it then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    named: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    archived: bool,
    /// The device that opened the session; only it serves the agent files and terminals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<SessionOwner>,
    cwd: String,
    /// The path of the same folder without symbolic links, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resolved_cwd: Option<String>,
    /// The folder of the agent's process, if its commands run there and not in `cwd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process_cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<Project>,
    created_at: Timestamp,
    /// The time when the last run began.
    #[serde(default)]
    prompted_at: Option<Timestamp>,
    updated_at: Timestamp,
    /// Counts of messages; absent in rows of gateways that did not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messages: Option<MessageCounts>,
    #[serde(default, skip_serializing_if = "SpendMeter::is_new")]
    meter: SpendMeter,
    #[serde(default, skip_serializing_if = "CeilingMemory::is_new")]
    ceilings: CeilingMemory,
    #[serde(rename = "conduct", default, skip_serializing_if = "AgentBehavior::is_new")]
    behavior: AgentBehavior,
    generation: u64,
    /// The name of the runtime process that the session runs in. Absent in rows of release 0.1.0, and for endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    exited: Option<String>,
    /// The next event number in run zero, which holds the events between runs.
    zero_seq: u64,
    run: Option<ActiveRun>,
    queue: VecDeque<QueuedRun>,
    /// The runtime's keys of the open requests.
    #[serde(default)]
    asks: BTreeMap<RequestId, RequestKey>,
    /// Decisions made in this start of the runtime, one per request: if the gateway dies before the runtime gets one, it is
    /// sent again. Answers to secret prompts are left out: they are never stored.
    #[serde(default)]
    decided: VecDeque<(RequestKey, Decision)>,
    /// The last questions by surfaces.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    surface_asks: BTreeMap<RequestId, SurfaceAsk>,
    /// The last ended runs whose prompts had an idempotency key.
    #[serde(default)]
    keyed: VecDeque<KeyedRun>,
    /// `true` if the session was open in its endpoint when the gateway stopped; the next gateway opens it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    left: bool,
    /// The stored position in the endpoint's copy of the session: see [`RuntimeEvent::Checkpoint`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
}

/// Returns the outcome of a run, with shortened texts.
fn run_outcome(status: RunStatus, stop_reason: Option<&str>, message: Option<&str>) -> RunOutcome {
    let short = |text: &str| label(text, KEYED_TEXT_MAX);
    RunOutcome { status, stop_reason: stop_reason.map(short), message: message.map(short) }
}

/// Returns the reply to a prompt with this number of runs before it.
fn accepted_prompt(run_id: RunId, ahead: usize) -> AcceptedPrompt {
    AcceptedPrompt { run_id, queued: ahead > 0, ahead, ended: None }
}

/// An ended run whose prompt had an idempotency key.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeyedRun {
    #[serde(rename = "once")]
    key: StoredPromptKey,
    run_id: RunId,
    #[serde(deserialize_with = "rows::outcome")]
    ended: RunOutcome,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ActiveRun {
    run_id: RunId,
    seq: u64,
    started_at: Timestamp,
    /// The ticket; absent for work that the gateway did not start.
    #[serde(default)]
    ticket: Option<Ticket>,
    /// The prompt, stored until the run ends: the gateway may die before the runtime gets it. Only the runtime's dialect can determine
    /// whether it did: it has the ticket or not.
    #[serde(default, skip_serializing, deserialize_with = "content_in_row")]
    content: Option<PromptContent>,
    by: Resolver,
    #[serde(rename = "once", default, skip_serializing_if = "Option::is_none")]
    key: Option<StoredPromptKey>,
    /// `true` if a cancel was sent to the runtime.
    cancelling: bool,
    /// Unfinished tool calls; the value is `true` if the call's request was rejected.
    tools: Large<BTreeMap<String, bool>>,
    #[serde(rename = "doing", default)]
    activity: RunActivity,
    /// The spending so far.
    #[serde(default, skip_serializing_if = "Spending::is_unknown")]
    spent: Spending,
    /// Unfinished calls of the gateway's own tools, where they are checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    own_calls: Vec<(String, CallDigest)>,
}

impl ActiveRun {
    /// Records that a call of the gateway's own tools runs, or that the call with this id is no such call.
    fn note_own_call(&mut self, id: &str, own: Option<CallDigest>) {
        self.own_calls.retain(|(other, _)| other != id);
        if let Some(own) = own {
            self.own_calls.push((id.to_owned(), own));
            let extra = self.own_calls.len().saturating_sub(OWN_CALLS_MAX);
            self.own_calls.drain(..extra);
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct QueuedRun {
    run_id: RunId,
    seq: u64,
    #[serde(default, skip_serializing, deserialize_with = "content_in_row")]
    content: Option<PromptContent>,
    text: String,
    by: Resolver,
    #[serde(rename = "once", default, skip_serializing_if = "Option::is_none")]
    key: Option<StoredPromptKey>,
    /// The ceiling for which the run waits, as published to clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ceiling: Option<CeilingKind>,
}

#[derive(Clone)]
struct OpenRequest {
    request: Arc<Request>,
    key: RequestKey,
    deadline: Option<Instant>,
}

/// A session's state. Only the session's task changes it.
#[derive(Clone)]
pub(super) struct SessionStateMachine {
    pub(super) origin: Arc<Origin>,
    zero_run: RunId,
    core: SessionCore,
    open: BTreeMap<RequestId, OpenRequest>,
    /// The last answered requests.
    answered: VecDeque<(RequestKey, Arc<Request>)>,
    /// Runs whose prompts were in the store when the session was restored.
    stored_prompts: BTreeSet<RunId>,
    /// `true` if the session is being opened again.
    reopening: bool,
    /// `true` if a user permanently allowed the agent something.
    allowed_always: bool,
    /// Tool calls in progress, while it is not known whether the agent asks.
    watched: BTreeMap<String, WatchedCall>,
    /// `true` if the session's process differs from the one in its row.
    process_changed: bool,
    /// The ceilings before this decision.
    ceilings: Arc<CeilingFacts>,
    /// The spending since then that is not yet in the ceilings.
    uncounted: Spending,
    /// The ticket of the run that an earlier gateway left unfinished.
    inherited_ticket: Option<Ticket>,
    /// Position of the first event that the unfinished run or open requests of an earlier gateway need.
    pub(super) retain_from: Option<Position>,
}

impl SessionStateMachine {
    pub(super) fn new(
        origin: Arc<Origin>,
        native_id: Option<NativeId>,
        cwd: String,
        title: Option<String>,
        generation: u64,
        now: Timestamp,
    ) -> Self {
        let core = SessionCore {
            native_id,
            title: title.map(|title| label(&title, TITLE_MAX)),
            cwd,
            created_at: now,
            updated_at: now,
            messages: Some(MessageCounts::default()),
            generation,
            ..SessionCore::default()
        };
        Self::with_core(origin, core, BTreeMap::new())
    }

    /// A session with the stored part of its state, and its open requests.
    fn with_core(origin: Arc<Origin>, core: SessionCore, open: BTreeMap<RequestId, OpenRequest>) -> Self {
        Self {
            zero_run: initial_run_id(&origin),
            origin,
            open,
            answered: VecDeque::new(),
            reopening: false,
            allowed_always: false,
            watched: BTreeMap::new(),
            stored_prompts: BTreeSet::new(),
            process_changed: false,
            ceilings: Arc::default(),
            uncounted: Spending::default(),
            inherited_ticket: core.run.as_ref().and_then(|run| run.ticket),
            retain_from: None,
            core,
        }
    }

    /// Restores a session from its row and its open requests. `since`: the run and number of every event after the row. `now`: the time
    /// without steps of the wall clock.
    pub(super) fn restore<'e>(
        origin: Arc<Origin>,
        row: &[u8],
        open: Vec<Request>,
        since: impl Iterator<Item = (&'e RunId, u64)>,
        (now, mono): (Timestamp, Instant),
    ) -> Result<Self, serde_json::Error> {
        let core: SessionCore = serde_json::from_slice(row)?;
        let open = open.into_iter().map(|request| {
            let id = request.request_id.clone();
            let key = core.asks.get(&id).cloned().unwrap_or_else(|| RequestKey::unique(""));
            let deadline = request.time_left(now).and_then(|left| mono.checked_add(left));
            (id, OpenRequest { request: Arc::new(request), key, deadline })
        });
        let open = open.collect();
        let mut state = Self::with_core(origin, core, open);
        for (run_id, seq) in since {
            if *run_id == state.zero_run {
                state.core.zero_seq = seq + 1;
            } else if let Some(run) = state.core.run.as_mut().filter(|run| run.run_id == *run_id) {
                run.seq = seq + 1;
            }
        }
        Ok(state)
    }

    /// Returns the content of the running prompt and of the queued ones, by run; stored in rows of their own.
    pub(super) fn prompt_contents(&self) -> impl Iterator<Item = (&RunId, &PromptContent)> {
        let run = self.core.run.iter().map(|run| (&run.run_id, run.content.as_ref()));
        let queue = self.core.queue.iter().map(|queued| (&queued.run_id, queued.content.as_ref()));
        run.chain(queue).filter_map(|(run_id, content)| Some((run_id, content?)))
    }

    pub(super) fn row(&self) -> Vec<u8> {
        // Plain values, which always serialize. An unreadable row is reported at the next start.
        serde_json::to_vec(&self.core).unwrap_or_default()
    }

    pub(super) fn exited(&self) -> Option<&str> {
        self.core.exited.as_deref()
    }

    pub(super) fn native_id(&self) -> Option<&NativeId> {
        self.core.native_id.as_ref()
    }

    /// Returns the device that opened the session, if one did.
    pub(super) fn owner(&self) -> Option<&SessionOwner> {
        self.core.owner.as_ref()
    }

    pub(super) fn set_owner(&mut self, owner: Option<SessionOwner>) {
        self.core.owner = owner;
    }

    pub(super) fn cwd(&self) -> &str {
        &self.core.cwd
    }

    /// Marks an ended session as live, because its runtime runs again.
    pub(super) fn mark_live(&mut self, native: NativeId, generation: u64) {
        self.core.exited = None;
        self.core.left = false;
        self.core.native_id = Some(native);
        self.core.generation = generation;
        if self.core.checkpoint.is_none() {
            // Another start of the runtime numbers its requests from the beginning: earlier decisions do not apply to them.
            self.core.decided.clear();
        }
        self.core.meter.continue_from_sum();
        self.reopening = true;
    }

    /// Returns the state of a session that continues in its endpoint while no gateway runs.
    pub(super) fn carried(&self) -> Option<CarriedState> {
        let (asks, prompt) = self.pending();
        let content = self.core.run.as_ref().and_then(|run| run.content.as_deref());
        let content = content.into_iter().flatten().map(|block| block.get().to_owned()).collect();
        self.core.checkpoint.clone().map(|checkpoint| CarriedState { checkpoint, prompt, content, asks })
    }

    pub(super) fn generation(&self) -> u64 {
        self.core.generation
    }

    /// Returns the runtime process that the session runs in, with the stored mark of its output.
    pub(super) fn process_start(&self, mark: Option<RuntimeMark>) -> ProcessStart {
        ProcessStart { instance: self.core.instance.clone(), generation: self.core.generation, mark }
    }

    /// Returns the mark to store once the process's output is processed up to `offset`.
    pub(super) fn mark(&self, offset: u64) -> RuntimeMark {
        RuntimeMark { generation: runtime_link::number(self.core.instance.as_deref(), self.core.generation), offset }
    }

    /// Returns whether a run or an open request still needs the session's events; retention does not remove them then.
    pub(super) fn unfinished(&self) -> bool {
        self.core.run.is_some() || !self.open.is_empty()
    }

    pub(super) fn info(&self) -> SessionInfo {
        let core = &self.core;
        SessionInfo {
            session_id: self.origin.session_id.clone(),
            runtime_id: self.origin.runtime_id.clone(),
            dialect: self.origin.dialect.to_string(),
            native_id: core.native_id.clone(),
            title: core.title.clone(),
            cwd: core.cwd.clone(),
            project: core.project.clone(),
            state: match (&core.exited, &core.run) {
                (Some(_), _) => SessionState::Exited,
                _ if !self.open.is_empty() => SessionState::Waiting,
                (None, Some(_)) => SessionState::Running,
                (None, None) => SessionState::Idle,
            },
            run_id: core.run.as_ref().map(|run| run.run_id.clone()),
            doing: core.run.as_ref().map(|run| run.activity.description().to_owned()),
            archived: core.archived,
            open_requests: self.open.len(),
            requests: self.open.keys().cloned().collect(),
            queue: core
                .queue
                .iter()
                .map(|queued| QueuedPrompt {
                    run_id: queued.run_id.clone(),
                    text: queued.text.clone(),
                    by: queued.by.clone(),
                    ceiling: queued.ceiling,
                })
                .collect(),
            created_at: core.created_at,
            prompted_at: core.prompted_at,
            updated_at: core.updated_at,
            message_count: core.messages.as_ref().map(|messages| messages.count),
            last_user_message: core.messages.as_ref().and_then(|messages| messages.last.clone()),
            // The directory sets it.
            linked: core.exited.is_none() && in_terminal(&self.origin.dialect),
            restartable: false,
        }
    }

    /// Returns the unfinished calls of the gateway's own tools, where they are checked.
    pub(super) fn own_calls(&self) -> Vec<CallDigest> {
        self.core.run.iter().flat_map(|run| run.own_calls.iter().map(|(_, call)| *call)).collect()
    }

    pub(super) fn runs(&self) -> Vec<RunInfo> {
        let run = |run_id: &RunId, status, started_at| RunInfo {
            run_id: run_id.clone(),
            session_id: self.origin.session_id.clone(),
            status,
            started_at,
        };
        let active = self.core.run.iter().map(|active| {
            let waits = self.open.values().any(|open| open.request.run_id == active.run_id);
            let status = if waits { RunStatus::AwaitingUi } else { RunStatus::Running };
            run(&active.run_id, status, active.started_at)
        });
        let queued = self.core.queue.iter().map(|queued| run(&queued.run_id, RunStatus::Queued, self.core.updated_at));
        active.chain(queued).collect()
    }

    // === logging ===

    /// Adds an event to the current run, or to run zero.
    fn log(&mut self, draft: EventDraft, env: &DecisionEnv<'_>, plan: &mut Plan) {
        let (run_id, seq) = match &mut self.core.run {
            Some(run) => (run.run_id.clone(), &mut run.seq),
            None => (self.zero_run.clone(), &mut self.core.zero_seq),
        };
        if let Some(messages) = &mut self.core.messages {
            plan.dirty |= messages.record(&run_id, draft.kind, &draft.body);
        }
        plan.events.push(NewEvent {
            run_id,
            seq: *seq,
            at: env.now,
            kind: draft.kind,
            body: draft.body,
            native: draft.native,
        });
        *seq += 1;
    }

    /// Adds an event to the run that a request belongs to, which may be run zero while another run is in progress.
    fn log_in(&mut self, run_id: &RunId, draft: EventDraft, env: &DecisionEnv<'_>, plan: &mut Plan) {
        if *run_id == self.zero_run && self.core.run.is_some() {
            let run = self.core.run.take();
            self.log(draft, env, plan);
            self.core.run = run;
        } else {
            self.log(draft, env, plan);
        }
    }

    /// Records a change of surfaces: an event with each of these bodies, and the rows.
    pub(super) fn log_drawing(
        &mut self,
        bodies: Vec<Bytes>,
        rows: Vec<SurfaceChange>,
        env: &DecisionEnv<'_>,
        plan: &mut Plan,
    ) {
        for body in bodies {
            let draft = EventDraft { kind: Kind::SurfaceUpdated, body, native: None, tool: None, title: None };
            self.log(draft, env, plan);
        }
        self.core.updated_at = env.now;
        plan.surfaces = rows;
    }

    /// Returns the time when the conversation last changed.
    pub(super) fn updated_at(&self) -> Timestamp {
        self.core.updated_at
    }

    fn touch(&mut self, env: &DecisionEnv<'_>, plan: &mut Plan) {
        self.core.updated_at = env.now;
        plan.dirty = true;
    }

    // === runtime events ===

    /// Records that the runtime opened the session; `drafts` are its first events.
    pub(super) fn opened(
        &mut self,
        drafts: Vec<EventDraft>,
        how: OpenedAs,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) {
        let again = std::mem::take(&mut self.reopening);
        if how == OpenedAs::New {
            self.core.meter.begin();
        }
        let body = RuntimeStatusBody {
            generation: Some(self.core.generation),
            resumed: how == OpenedAs::Resumed,
            message: (again && how == OpenedAs::New).then(|| {
                "the agent could not continue its conversation: a new one starts here, and the agent does \
                    not know the previous messages"
                    .to_owned()
            }),
            ..RuntimeStatusBody::new(&self.origin.runtime_id, "attached")
        };
        let draft = EventDraft::new(Kind::RuntimeStatus, &body);
        self.log(draft, env, plan);
        if again && how == OpenedAs::New {
            let reason = "the agent could not continue its conversation";
            self.withdraw_all(RunStatus::Error, reason, env, plan);
            self.core.checkpoint = None;
        }
        for draft in drafts {
            self.record_event(draft, env, plan);
        }
        plan.dirty = true;
        if !again {
            self.touch(env, plan);
        }
    }

    /// Continues a session that was opened again and updated: decisions that may not have reached the runtime are sent again, and the
    /// next queued prompt starts.
    pub(super) fn resume(&mut self, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        for (key, decision) in &self.core.decided {
            plan.sync = true;
            plan.orders.push(RuntimeCommand::Answer { key: key.clone(), decision: decision.clone() });
        }
        match (&self.core.run, self.core.native_id.clone()) {
            (Some(ActiveRun { ticket, cancelling: true, .. }), Some(native)) => {
                // A repeated cancel is harmless, a missing one is not.
                plan.orders.push(RuntimeCommand::Cancel { ticket: *ticket, native, reason: None });
            }
            (Some(_), _) => {}
            (None, _) => self.start_next(env, plan),
        }
    }

    /// Applies one event of the runtime.
    pub(super) fn on_runtime_event(&mut self, event: RuntimeEvent, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        if self.core.exited.is_some() {
            // Events of a session that a user closed are dropped. After a runtime's exit the driver sends none.
            return;
        }
        match event {
            RuntimeEvent::Event { draft, .. } => {
                self.note_mode(&draft);
                self.record_event(draft, env, plan);
            }
            RuntimeEvent::Asked { ask, .. } => self.open_request(*ask, env, plan),
            RuntimeEvent::AskChanged { ask, .. } => self.revise_request(&ask, env, plan),
            RuntimeEvent::Reviewed { ask, review, .. } => self.record_review(*ask, review, env, plan),
            RuntimeEvent::TakenBack { key, elsewhere, .. } => {
                let withdrawn = self.open.iter().find(|(_, open)| open.key.means(&key)).map(|(id, _)| id.clone());
                match (withdrawn, elsewhere) {
                    (Some(id), Some(elsewhere)) => self.answered_elsewhere(&id, elsewhere, env, plan),
                    (Some(id), None) => {
                        self.resolve(&id, &Decision::Withdrawn, Resolver::gateway(), None, false, env, plan);
                    }
                    (None, _) => {}
                }
            }
            RuntimeEvent::Checkpoint { state, .. } => {
                self.core.checkpoint = Some(state);
                plan.dirty = true;
            }
            RuntimeEvent::Spent { report, .. } => self.spent(&report, env, plan),
            RuntimeEvent::AnswerLost { key, elsewhere, .. } => self.answer_lost(&key, elsewhere, env, plan),
            RuntimeEvent::Began { by, .. } => self.begin_foreign_run(by, env, plan),
            RuntimeEvent::Done { end, .. } => {
                if self.core.run.as_ref().is_some_and(|run| run.ticket.is_none()) {
                    self.end_run(&end, env, plan);
                    self.start_next(env, plan);
                }
            }
            RuntimeEvent::Ended { ticket, end, .. } => {
                if self.core.run.as_ref().is_some_and(|run| run.ticket == Some(ticket)) {
                    self.end_run(&end, env, plan);
                    self.start_next(env, plan);
                }
            }
            // Handled by the session's task, by the code that opens the session, or by the driver.
            RuntimeEvent::Ready { .. }
            | RuntimeEvent::Closed { .. }
            | RuntimeEvent::Failed { .. }
            | RuntimeEvent::Opened { .. }
            | RuntimeEvent::NotOpened { .. }
            | RuntimeEvent::Found { .. } => {}
            RuntimeEvent::Replied { .. } => {}
        }
    }

    /// Continues with a runtime that outlived the gateway. `asks` and `prompts` are the requests and prompts that it still handles:
    /// commands that it did not get are sent now, once.
    pub(super) fn found(
        &mut self,
        asks: &[RequestKey],
        prompts: &[Ticket],
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) {
        if self.core.exited.is_some() {
            return;
        }
        // An idle session in the same process has nothing to report.
        if self.core.run.is_some() || !self.open.is_empty() || std::mem::take(&mut self.process_changed) {
            let generation = Some(self.core.generation);
            let body =
                RuntimeStatusBody { generation, ..RuntimeStatusBody::new(&self.origin.runtime_id, "reattached") };
            self.log(EventDraft::new(Kind::RuntimeStatus, &body), env, plan);
            // `updated_at` stays: the conversation did not change.
            plan.dirty = true;
        }
        self.sync_request_keys(asks);
        let is_lost = |id: &RequestId, open: &OpenRequest| !asks.contains(&open.key) && !self.is_own_request(id);
        let lost: Vec<RequestId> =
            self.open.iter().filter(|(id, open)| is_lost(id, open)).map(|(id, _)| id.clone()).collect();
        for id in lost {
            self.close(&id, RequestState::Orphaned, env, plan);
        }
        for (key, decision) in &self.core.decided {
            plan.sync = true;
            plan.orders.push(RuntimeCommand::Answer { key: key.clone(), decision: decision.clone() });
        }
        let Some(native) = self.core.native_id.clone() else { return };
        match &mut self.core.run {
            // This gateway started the run before the runtime's report arrived: the report does not cover it.
            Some(ActiveRun { ticket, .. }) if *ticket != self.inherited_ticket => {}
            Some(ActiveRun { ticket: Some(ticket), cancelling, content, .. }) => {
                if !prompts.contains(ticket) {
                    let Some(content) = content.clone() else {
                        let message = Some("the agent never received it, and its text is no longer stored".to_owned());
                        let end = RunEnd { status: RunStatus::Error, stop_reason: None, message, native: None };
                        self.end_run(&end, env, plan);
                        return self.start_next(env, plan);
                    };
                    let content = Vec::clone(&content);
                    plan.orders.push(RuntimeCommand::Prompt { ticket: *ticket, native: native.clone(), content });
                }
                if *cancelling {
                    // A repeated cancel is harmless, a missing one is not.
                    plan.orders.push(RuntimeCommand::Cancel { ticket: Some(*ticket), native, reason: None });
                }
            }
            Some(_) => {}
            None => self.start_next(env, plan),
        }
    }

    fn record_event(&mut self, draft: EventDraft, env: &DecisionEnv<'_>, plan: &mut Plan) {
        if let Some(run) = &mut self.core.run {
            let current = draft.tool.as_ref().map(|tool| tool.id.as_str());
            // The agent continued without closing a rejected tool call.
            let rejected: Vec<String> = run
                .tools
                .iter()
                .filter(|(id, rejected)| **rejected && Some(id.as_str()) != current)
                .map(|(id, _)| id.clone())
                .collect();
            for id in rejected {
                self.close_tool(&id, "rejected", env, plan);
            }
        }
        if let (Some(ToolCallRef { id, ended, own }), Some(run)) = (&draft.tool, &mut self.core.run) {
            run.note_own_call(id, *own);
            if *ended {
                run.tools.change().remove(id);
            } else if run.tools.len() < TOOLS_MAX && !run.tools.contains_key(id) {
                run.tools.change().insert(id.clone(), false);
            }
            plan.dirty = true;
        }
        if let Some(title) = draft.title.as_ref().filter(|_| !self.core.named) {
            self.core.title = Some(label(title, TITLE_MAX));
            plan.dirty = true;
        }
        if self.core.run.as_mut().is_some_and(|run| run.activity.update(&draft)) {
            plan.activity_event = Some(plan.events.len());
            plan.dirty = true;
        }
        if is_conversation(draft.kind) {
            self.core.updated_at = env.now;
        }
        let acted = self.watch_tool_call(&draft);
        self.log(draft, env, plan);
        self.report_unasked(acted, env, plan);
    }

    fn close_tool(&mut self, id: &str, reason: &str, env: &DecisionEnv<'_>, plan: &mut Plan) {
        if let Some(run) = &mut self.core.run {
            run.tools.change().remove(id);
            run.note_own_call(id, None);
            run.activity.tools.retain(|(other, _)| other != id);
            plan.activity_event = Some(plan.events.len());
        }
        let body = serde_json::json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed",
            "_meta": { "plexus": { "synthesized": true, "reason": reason } },
        });
        self.log(EventDraft::new(Kind::ToolCallUpdate, &body), env, plan);
        self.touch(env, plan);
    }

    // === client commands ===

    /// Returns the run of the prompt with this idempotency key, if it is remembered.
    pub(super) fn prompt_of_key(&self, key: Option<&PromptKey>) -> Result<Option<AcceptedPrompt>, SessionError> {
        let Some(key) = key else { return Ok(None) };
        let under_way = self.core.run.iter().map(|run| (run.key.as_ref(), &run.run_id, None));
        let running = usize::from(self.core.run.is_some());
        let queued = self.core.queue.iter().enumerate();
        let queued = queued.map(|(index, queued)| (queued.key.as_ref(), &queued.run_id, Some(index + running)));
        for (stored, run_id, ahead) in under_way.chain(queued) {
            if key.matches(stored)? {
                let accepted = accepted_prompt(run_id.clone(), ahead.unwrap_or(0));
                return Ok(Some(AcceptedPrompt { queued: ahead.is_some(), ..accepted }));
            }
        }
        for keyed in self.core.keyed.iter().rev() {
            if key.matches(Some(&keyed.key))? {
                return Ok(Some(AcceptedPrompt {
                    ended: Some(keyed.ended.clone()),
                    ..accepted_prompt(keyed.run_id.clone(), 0)
                }));
            }
        }
        Ok(None)
    }

    fn remember_key(&mut self, key: Option<StoredPromptKey>, run_id: &RunId, ended: impl FnOnce() -> RunOutcome) {
        let Some(key) = key else { return };
        self.core.keyed.push_back(KeyedRun { key, run_id: run_id.clone(), ended: ended() });
        if self.core.keyed.len() > KEYED {
            self.core.keyed.pop_front();
        }
    }
}

/// Returns whether an event belongs to the conversation. Settings, lists and counters do not: the runtime repeats them when it is
/// attached again.
fn is_conversation(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::AvailableCommandsUpdate
            | Kind::CurrentModeUpdate
            | Kind::ConfigOptionUpdate
            | Kind::SessionInfoUpdate
            | Kind::UsageUpdate
            | Kind::RuntimeStatus
    )
}

/// Returns the identifier of run zero, which holds the events between runs.
pub fn initial_run_id(origin: &Origin) -> RunId {
    let session = origin.session_id.as_str();
    RunId::trusted(format!("r_0_{}", session.strip_prefix("s_").unwrap_or(session)))
}

/// Replaces line breaks between the JSON tokens of a client, because an event's body is one line.
fn one_line(draft: EventDraft) -> EventDraft {
    if !draft.body.iter().any(|b| matches!(b, b'\r' | b'\n')) {
        return draft;
    }
    // JSON escapes line breaks inside strings: raw ones are white space.
    let body: Bytes = draft.body.iter().map(|b| if matches!(b, b'\r' | b'\n') { b' ' } else { *b }).collect();
    EventDraft { body, ..draft }
}
