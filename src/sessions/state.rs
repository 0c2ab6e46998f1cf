//! What a session decides. Pure: values in, a [`Plan`] out; no I/O, no clock, no randomness of its own. One file, because
//! runs, requests and the queue decide about each other and share one state.

mod activity;
mod ends;
mod open_requests;
mod prompts;
mod rows;

use activity::RunActivity;
pub(super) use open_requests::{ClosedRequests, late};
use prompts::text_of_body;
use rows::{Large, MessageCounts};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::answer_key::AnswerKey;
use super::client_calls::SessionOwner;
use super::prompt_key::{PromptKey, StoredPromptKey};
use super::string_slices::StringSlices;
use super::{
    AcceptedPrompt, NewEvent, ProcessStart, RunOutcome, RuntimeExit, SessionError, SessionRules, display, requests,
    runtime_link,
};
use plexus_dialects::{
    AgentRequest, AnsweredElsewhere, CarriedState, EventDraft, OpenedAs, RequestKey, RunEnd, RuntimeCommand,
    RuntimeEvent, ToolCallRef,
};
use plexus_protocol::{
    Answer, Decision, ErrorBody, Kind, NativeId, Origin, Position, QueuedPrompt, Receipt, Request, RequestId,
    RequestState, Resolution, Resolver, Risk, RunBody, RunId, RunInfo, RunStatus, RuntimeStatusBody, SessionInfo,
    SessionState, Ticket, Timestamp,
};
use plexus_store::RuntimeMark;

/// Requests open at once in one session; one more is answered "withdrawn" at once, with an `error` event.
const OPEN_MAX: usize = 256;
/// Receipts that a session remembers in memory, for losers that come late; older ones are read from the store.
const RECEIPTS: usize = 256;
/// Bytes of a prompt's text shown in lists.
const TEXT_SHOWN: usize = 200;
/// Bytes of a title.
const TITLE_MAX: usize = 120;
/// Answered requests that a session remembers, in case the runtime says that the answer came too late.
const ANSWERED: usize = 64;
/// Ended runs of a session whose keys are remembered, the last ones. Those under way and queued are remembered all.
const KEYED: usize = 64;
/// Bytes of an ended run's words that are remembered with its key.
const KEYED_WORDS: usize = 500;
/// Tool calls of one run that are watched for a dangling end; later ones are not closed by the gateway.
const TOOLS_MAX: usize = 4096;
/// Tools that run at once whose titles are known, for what a session does now; further ones go unnamed.
const DOING_MAX: usize = 32;
/// Bytes of the reason for a cancel.
const REASON_MAX: usize = 1000;
/// Bytes of a title that a person gives; the door refuses longer ones before it comes to this.
const NAME_MAX: usize = 1000;

/// What the outside gives to a decision.
pub(super) struct DecisionEnv<'a> {
    /// The wall clock.
    pub(super) now: Timestamp,
    /// The monotonic clock, for deadlines.
    pub(super) mono: Instant,
    /// What the gateway's owner decided.
    pub(super) rules: SessionRules,
    /// Makes identifiers with a prefix.
    pub(super) mint: &'a mut dyn FnMut(&str) -> String,
    /// Makes tickets.
    pub(super) ticket: &'a mut dyn FnMut() -> Ticket,
}

/// What was decided: to be kept first, then done.
#[derive(Default)]
pub(super) struct Plan {
    /// To be logged, in order.
    pub(super) events: Vec<NewEvent>,
    /// To be told to the runtime once the events are kept.
    pub(super) orders: Vec<RuntimeCommand>,
    /// Requests that opened or ended.
    pub(super) requests: Vec<RequestChange>,
    /// Runs that ended, whose text is to be indexed.
    pub(super) ended: Vec<RunId>,
    /// Which of the plan's events is the last that changed what the session does now.
    pub(super) doing: Option<usize>,
    /// Whether it must be on disk before anything is done.
    pub(super) sync: bool,
    /// Whether the session's row and view changed.
    pub(super) dirty: bool,
    /// How far the runtime was heard, where that is to be kept.
    pub(super) heard: Option<u64>,
    /// When the first of it was heard.
    pub(super) heard_at: Option<Instant>,
}

/// A request that opened or ended.
pub(super) struct RequestChange {
    pub(super) request: Arc<Request>,
    /// The idempotency key of the answer that won, as [`AnswerKey::row`] has it.
    pub(super) key: Option<String>,
    /// Which of the plan's events says so: its position is the receipt's cursor.
    pub(super) event: usize,
}

/// What was asked in a prompt: ACP content blocks. Large, and so shared: it is written once, in a row of its own.
pub(super) type PromptContent = Arc<Vec<Box<RawValue>>>;

/// Reads what was asked where rows of the first gateways have it: in the session's row.
fn asked_in_row<'de, D: serde::Deserializer<'de>>(row: D) -> Result<Option<PromptContent>, D::Error> {
    Ok(Option::<Vec<Box<RawValue>>>::deserialize(row)?.map(Arc::new))
}

/// What of a session is written in its row.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SessionCore {
    native_id: Option<NativeId>,
    title: Option<String>,
    /// A person gave the title: the agent's own changes it no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    named: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    archived: bool,
    /// Who opened it, and alone serves the agent its files and terminals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<SessionOwner>,
    cwd: String,
    created_at: Timestamp,
    /// When a run last began.
    #[serde(default)]
    prompted_at: Option<Timestamp>,
    updated_at: Timestamp,
    /// What was said, counted; none in rows of gateways that did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messages: Option<MessageCounts>,
    generation: u64,
    /// Names the process of the runtime that it belongs to. None in rows of the release 0.1.0, and with endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    exited: Option<String>,
    /// The next number in run zero, which holds what happens between runs.
    zero_seq: u64,
    run: Option<ActiveRun>,
    queue: VecDeque<QueuedRun>,
    /// How the runtime names the questions that are open.
    #[serde(default)]
    asks: BTreeMap<RequestId, RequestKey>,
    /// What was decided in this start of the runtime, each for exactly one of its questions: it may not have been told yet
    /// when the gateway dies. Without what was typed into secret prompts, which is never written down.
    #[serde(default)]
    decided: VecDeque<(RequestKey, Decision)>,
    /// The runs that ended last, of those that were asked for under a key.
    #[serde(default)]
    keyed: VecDeque<KeyedRun>,
    /// Whether it was open in its endpoint when its gateway went: the next one opens it there again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    left: bool,
    /// How far it was told what its endpoint has: see [`RuntimeEvent::Checkpoint`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
}

impl RunOutcome {
    fn new(status: RunStatus, stop_reason: Option<&str>, message: Option<&str>) -> Self {
        let short = |words: &str| display::label(words, KEYED_WORDS);
        Self { status, stop_reason: stop_reason.map(short), message: message.map(short) }
    }
}

/// An ended run that was asked for under a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeyedRun {
    once: StoredPromptKey,
    run_id: RunId,
    ended: RunOutcome,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ActiveRun {
    run_id: RunId,
    seq: u64,
    started_at: Timestamp,
    /// None for work that the gateway did not ask for.
    #[serde(default)]
    ticket: Option<Ticket>,
    /// What was asked, until the run is over: the gateway may die before the runtime is told, and whether it was told is
    /// known by its dialect alone, which has the ticket or not.
    #[serde(default, skip_serializing, deserialize_with = "asked_in_row")]
    content: Option<PromptContent>,
    by: Resolver,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    once: Option<StoredPromptKey>,
    /// Somebody wants it to stop.
    cancelling: bool,
    /// Tool calls that are not over; true: its request was rejected.
    tools: Large<BTreeMap<String, bool>>,
    #[serde(default)]
    doing: RunActivity,
}

/// What a person changes of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionEdit {
    pub(super) title: Option<String>,
    pub(super) archived: Option<bool>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct QueuedRun {
    run_id: RunId,
    seq: u64,
    #[serde(default, skip_serializing, deserialize_with = "asked_in_row")]
    content: Option<PromptContent>,
    text: String,
    by: Resolver,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    once: Option<StoredPromptKey>,
}

#[derive(Clone)]
struct OpenRequest {
    request: Arc<Request>,
    key: RequestKey,
    deadline: Option<Instant>,
}

/// A session's state: owned by its task alone.
#[derive(Clone)]
pub(super) struct SessionStateMachine {
    pub(super) origin: Arc<Origin>,
    zero: RunId,
    core: SessionCore,
    open: BTreeMap<RequestId, OpenRequest>,
    /// What was answered last, by the runtime's name for the question.
    answered: VecDeque<(RequestKey, Arc<Request>)>,
    /// The prompts that the store had when its row was read.
    recalled: BTreeSet<RunId>,
    /// Whether it is being opened another time.
    again: bool,
    /// Whether it belongs to another process than its row says.
    moved: bool,
    /// The prompt of the run that an earlier gateway left.
    inherited: Option<Ticket>,
    /// Where the first event is that its unfinished run or open requests need, as an earlier gateway left them.
    pub(super) spared: Option<Position>,
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
            title: title.map(|title| display::label(&title, TITLE_MAX)),
            named: false,
            archived: false,
            owner: None,
            cwd,
            created_at: now,
            prompted_at: None,
            updated_at: now,
            messages: Some(MessageCounts::default()),
            generation,
            instance: None,
            exited: None,
            zero_seq: 0,
            run: None,
            queue: VecDeque::new(),
            asks: BTreeMap::new(),
            decided: VecDeque::new(),
            keyed: VecDeque::new(),
            left: false,
            checkpoint: None,
        };
        Self {
            zero: zero_of(&origin),
            origin,
            core,
            open: BTreeMap::new(),
            answered: VecDeque::new(),
            again: false,
            recalled: BTreeSet::new(),
            moved: false,
            inherited: None,
            spared: None,
        }
    }

    /// A session as its row and its open requests were found; `since` are the run and number of every event after the row.
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
            let left = request.expires_at.map(|at| at.as_millis().saturating_sub(now.as_millis()).max(0));
            let left = left.map(|ms| std::time::Duration::from_millis(ms.unsigned_abs()));
            (
                id,
                OpenRequest { request: Arc::new(request), key, deadline: left.and_then(|left| mono.checked_add(left)) },
            )
        });
        let open = open.collect();
        let mut state = Self {
            zero: zero_of(&origin),
            origin,
            core,
            open,
            answered: VecDeque::new(),
            again: false,
            recalled: BTreeSet::new(),
            moved: false,
            inherited: None,
            spared: None,
        };
        state.inherited = state.core.run.as_ref().and_then(|run| run.ticket);
        for (run_id, seq) in since {
            if *run_id == state.zero {
                state.core.zero_seq = seq + 1;
            } else if let Some(run) = state.core.run.as_mut().filter(|run| run.run_id == *run_id) {
                run.seq = seq + 1;
            }
        }
        Ok(state)
    }

    /// What was asked in the prompts that wait and in the one under way: to be kept beside the row, by the name of the run.
    pub(super) fn asked_of(&self) -> impl Iterator<Item = (&RunId, &PromptContent)> {
        let run = self.core.run.iter().map(|run| (&run.run_id, run.content.as_ref()));
        let queue = self.core.queue.iter().map(|queued| (&queued.run_id, queued.content.as_ref()));
        run.chain(queue).filter_map(|(run_id, asked)| Some((run_id, asked?)))
    }

    pub(super) fn row(&self) -> Vec<u8> {
        // Plain values of our own: they always can be written. An unreadable row would be told at the next start.
        serde_json::to_vec(&self.core).unwrap_or_default()
    }

    pub(super) fn exited(&self) -> Option<&str> {
        self.core.exited.as_deref()
    }

    pub(super) fn native_id(&self) -> Option<&NativeId> {
        self.core.native_id.as_ref()
    }

    /// Who opened it, if a device did.
    pub(super) fn owner(&self) -> Option<&SessionOwner> {
        self.core.owner.as_ref()
    }

    /// It was opened by this one.
    pub(super) fn opened_by(&mut self, owner: Option<SessionOwner>) {
        self.core.owner = owner;
    }

    pub(super) fn cwd(&self) -> &str {
        &self.core.cwd
    }

    /// It ended with its runtime, which is there again.
    pub(super) fn live_again(&mut self, native: NativeId, generation: u64) {
        self.core.exited = None;
        self.core.left = false;
        self.core.native_id = Some(native);
        self.core.generation = generation;
        if self.core.checkpoint.is_none() {
            // Another start counts its questions from the beginning: what was decided in an earlier one is nothing to it.
            self.core.decided.clear();
        }
        self.again = true;
    }

    /// What of it goes on in its endpoint while no gateway is there.
    pub(super) fn carried(&self) -> Option<CarriedState> {
        let (asks, prompt) = self.pending();
        let content = self.core.run.as_ref().and_then(|run| run.content.as_deref());
        let content = content.into_iter().flatten().map(|block| block.get().to_owned()).collect();
        self.core.checkpoint.clone().map(|checkpoint| CarriedState { checkpoint, prompt, content, asks })
    }

    pub(super) fn generation(&self) -> u64 {
        self.core.generation
    }

    /// It belongs to this process of its runtime.
    pub(super) fn belongs_to(&mut self, instance: Option<String>) {
        self.moved |= self.core.instance != instance;
        self.core.instance = instance;
    }

    /// Which process of its runtime it belongs to.
    pub(super) fn in_start(&self, mark: Option<RuntimeMark>) -> ProcessStart {
        ProcessStart { instance: self.core.instance.clone(), generation: self.core.generation, mark }
    }

    /// The mark that says that its process was heard up to here.
    pub(super) fn mark(&self, offset: u64) -> RuntimeMark {
        RuntimeMark { generation: runtime_link::number(self.core.instance.as_deref(), self.core.generation), offset }
    }

    /// Whether retention must spare what is there.
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
            state: match (&core.exited, &core.run) {
                (Some(_), _) => SessionState::Exited,
                _ if !self.open.is_empty() => SessionState::Waiting,
                (None, Some(_)) => SessionState::Running,
                (None, None) => SessionState::Idle,
            },
            run_id: core.run.as_ref().map(|run| run.run_id.clone()),
            doing: core.run.as_ref().map(|run| run.doing.words().to_owned()),
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
                })
                .collect(),
            created_at: core.created_at,
            prompted_at: core.prompted_at,
            updated_at: core.updated_at,
            message_count: core.messages.as_ref().map(|messages| messages.count),
            last_user_message: core.messages.as_ref().and_then(|messages| messages.last.clone()),
            // The directory knows.
            restartable: false,
        }
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

    /// Logs an event in the run under way, or in run zero.
    fn log(&mut self, draft: EventDraft, env: &DecisionEnv<'_>, plan: &mut Plan) {
        let (run_id, seq) = match &mut self.core.run {
            Some(run) => (run.run_id.clone(), &mut run.seq),
            None => (self.zero.clone(), &mut self.core.zero_seq),
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

    /// Logs an event in the run that a request came up in, which may be run zero while another is under way.
    fn log_in(&mut self, run_id: &RunId, draft: EventDraft, env: &DecisionEnv<'_>, plan: &mut Plan) {
        if *run_id == self.zero && self.core.run.is_some() {
            let run = self.core.run.take();
            self.log(draft, env, plan);
            self.core.run = run;
        } else {
            self.log(draft, env, plan);
        }
    }

    /// When something last happened in the conversation.
    pub(super) fn updated_at(&self) -> Timestamp {
        self.core.updated_at
    }

    fn touch(&mut self, env: &DecisionEnv<'_>, plan: &mut Plan) {
        self.core.updated_at = env.now;
        plan.dirty = true;
    }

    // === what the runtime says ===

    /// The session was opened: its first events.
    pub(super) fn opened(
        &mut self,
        drafts: Vec<EventDraft>,
        how: OpenedAs,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) {
        let again = std::mem::take(&mut self.again);
        let body = RuntimeStatusBody {
            status: "attached",
            runtime_id: self.origin.runtime_id.as_str(),
            generation: Some(self.core.generation),
            resumed: how == OpenedAs::Resumed,
            message: (again && how == OpenedAs::New).then_some(
                "the agent could not continue its conversation: a new one starts here, and the agent does \
                    not know the previous messages",
            ),
            exit: None,
        };
        let draft = EventDraft::new(Kind::RuntimeStatus, &body);
        self.log(draft, env, plan);
        if again && how == OpenedAs::New {
            let why = "the agent could not continue its conversation";
            self.withdraw_all(RunStatus::Error, why, env, plan);
            self.core.checkpoint = None;
        }
        for draft in drafts {
            self.happened(draft, env, plan);
        }
        plan.dirty = true;
        if !again {
            self.touch(env, plan);
        }
    }

    /// A session that went on in its endpoint is here again, and heard what it missed: what was decided here and may not
    /// have arrived is said again, and what waited begins.
    pub(super) fn goes_on(&mut self, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        for (key, decision) in &self.core.decided {
            plan.sync = true;
            plan.orders.push(RuntimeCommand::Answer { key: key.clone(), decision: decision.clone() });
        }
        match (&self.core.run, self.core.native_id.clone()) {
            (Some(ActiveRun { ticket, cancelling: true, .. }), Some(native)) => {
                // Said twice it does no harm, unsaid it would.
                plan.orders.push(RuntimeCommand::Cancel { ticket: *ticket, native, reason: None });
            }
            (Some(_), _) => {}
            (None, _) => self.start_next(env, plan),
        }
    }

    /// One thing that the runtime said.
    pub(super) fn on_runtime_event(&mut self, said: RuntimeEvent, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        if self.core.exited.is_some() {
            // The driver says nothing after the end; a session that was closed by people wants to hear nothing.
            return;
        }
        match said {
            RuntimeEvent::Event { draft, .. } => self.happened(draft, env, plan),
            RuntimeEvent::Asked { ask, .. } => self.asked(*ask, env, plan),
            RuntimeEvent::AskChanged { ask, .. } => self.ask_changed(&ask, env, plan),
            RuntimeEvent::TakenBack { key, elsewhere, .. } => {
                let taken = self.open.iter().find(|(_, open)| open.key.means(&key)).map(|(id, _)| id.clone());
                match (taken, elsewhere) {
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
            RuntimeEvent::AnswerLost { key, elsewhere, .. } => self.answer_lost(&key, elsewhere, env, plan),
            RuntimeEvent::Began { by, .. } => self.began(by, env, plan),
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
            // The task itself takes these; the driver sends them to nobody else.
            RuntimeEvent::Ready { .. }
            | RuntimeEvent::Failed { .. }
            | RuntimeEvent::Opened { .. }
            | RuntimeEvent::NotOpened { .. }
            | RuntimeEvent::Found { .. } => {}
            RuntimeEvent::Replied { .. } => {}
        }
    }

    /// The runtime outlived the gateway and was found again: what it was not told, it is told now, once.
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
        // One where nothing was under way has nothing to tell, and nobody has anything to see.
        if self.core.run.is_some() || !self.open.is_empty() || std::mem::take(&mut self.moved) {
            let body = RuntimeStatusBody {
                status: "reattached",
                runtime_id: self.origin.runtime_id.as_str(),
                generation: Some(self.core.generation),
                ..RuntimeStatusBody::default()
            };
            self.log(EventDraft::new(Kind::RuntimeStatus, &body), env, plan);
            // Being found again is no news of the conversation.
            plan.dirty = true;
        }
        self.name_again(asks);
        let lost: Vec<RequestId> =
            self.open.iter().filter(|(_, open)| !asks.contains(&open.key)).map(|(id, _)| id.clone()).collect();
        for id in lost {
            self.close(&id, RequestState::Orphaned, env, plan);
        }
        for (key, decision) in &self.core.decided {
            plan.sync = true;
            plan.orders.push(RuntimeCommand::Answer { key: key.clone(), decision: decision.clone() });
        }
        let Some(native) = self.core.native_id.clone() else { return };
        match &mut self.core.run {
            // Begun here, before this was heard: what the runtime was asked then says nothing of it.
            Some(ActiveRun { ticket, .. }) if *ticket != self.inherited => {}
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
                    // Said twice it does no harm, unsaid it would.
                    plan.orders.push(RuntimeCommand::Cancel { ticket: Some(*ticket), native, reason: None });
                }
            }
            Some(_) => {}
            None => self.start_next(env, plan),
        }
    }

    /// Brings what is kept of questions in step with those that the runtime waits for now. Names that were kept without an
    /// occurrence get it; of decisions under such a name only the last can be the one that was not heard. Decisions on
    /// questions that the runtime does not wait for were heard, and are kept no more.
    fn name_again(&mut self, asks: &[RequestKey]) {
        for open in self.open.values_mut().filter(|open| open.key.is_bare()) {
            if let Some(known) = asks.iter().find(|known| open.key.means(known)) {
                open.key.clone_from(known);
            }
        }
        self.core.asks = self.open.iter().map(|(id, open)| (id.clone(), open.key.clone())).collect();
        let mut unheard: VecDeque<(RequestKey, Decision)> = VecDeque::new();
        for (key, decision) in std::mem::take(&mut self.core.decided).into_iter().rev() {
            let Some(known) = asks.iter().find(|known| key.means(known)) else { continue };
            let settled = unheard.iter().any(|(key, _)| key == known) || self.open.values().any(|o| o.key == *known);
            if !settled {
                unheard.push_front((known.clone(), decision));
            }
        }
        self.core.decided = unheard;
    }

    /// The questions that it knows, open or answered, and the prompt it waits for.
    pub(super) fn pending(&self) -> (Vec<RequestKey>, Option<Ticket>) {
        let open = self.open.values().map(|open| &open.key);
        let asks = open.chain(self.core.decided.iter().map(|(key, _)| key)).cloned().collect();
        (asks, self.core.run.as_ref().and_then(|run| run.ticket))
    }

    fn happened(&mut self, draft: EventDraft, env: &DecisionEnv<'_>, plan: &mut Plan) {
        if let Some(run) = &mut self.core.run {
            let about = draft.tool.as_ref().map(|tool| tool.id.as_str());
            // The agent moved on and left the card of a rejected tool call open.
            let left: Vec<String> = run
                .tools
                .iter()
                .filter(|(id, rejected)| **rejected && Some(id.as_str()) != about)
                .map(|(id, _)| id.clone())
                .collect();
            for id in left {
                self.close_tool(&id, "rejected", env, plan);
            }
        }
        if let (Some(ToolCallRef { id, over }), Some(run)) = (&draft.tool, &mut self.core.run) {
            if *over {
                run.tools.change().remove(id);
            } else if run.tools.len() < TOOLS_MAX && !run.tools.contains_key(id) {
                run.tools.change().insert(id.clone(), false);
            }
            plan.dirty = true;
        }
        if let Some(title) = draft.title.as_ref().filter(|_| !self.core.named) {
            self.core.title = Some(display::label(title, TITLE_MAX));
            plan.dirty = true;
        }
        if self.core.run.as_mut().is_some_and(|run| run.doing.hear(&draft)) {
            plan.doing = Some(plan.events.len());
            plan.dirty = true;
        }
        if talks(draft.kind) {
            self.core.updated_at = env.now;
        }
        self.log(draft, env, plan);
    }

    fn close_tool(&mut self, id: &str, why: &str, env: &DecisionEnv<'_>, plan: &mut Plan) {
        if let Some(run) = &mut self.core.run {
            run.tools.change().remove(id);
            run.doing.tools.retain(|(known, _)| known != id);
            plan.doing = Some(plan.events.len());
        }
        let body = serde_json::json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed",
            "_meta": { "plexus": { "synthesized": true, "reason": why } },
        });
        self.log(EventDraft::new(Kind::ToolCallUpdate, &body), env, plan);
        self.touch(env, plan);
    }

    // === what clients ask ===

    /// The run that was asked for under this key, if it is remembered.
    pub(super) fn known(&self, once: &PromptKey) -> Result<Option<AcceptedPrompt>, SessionError> {
        let under_way = self.core.run.iter().map(|run| (run.once.as_ref(), &run.run_id, None));
        let running = usize::from(self.core.run.is_some());
        let queued = self.core.queue.iter().enumerate();
        let queued = queued.map(|(place, queued)| (queued.once.as_ref(), &queued.run_id, Some(place + running)));
        for (known, run_id, ahead) in under_way.chain(queued) {
            if once.is(known)? {
                return Ok(Some(AcceptedPrompt::new(run_id.clone(), ahead.unwrap_or(0))));
            }
        }
        for keyed in self.core.keyed.iter().rev() {
            if once.is(Some(&keyed.once))? {
                return Ok(Some(AcceptedPrompt {
                    ended: Some(keyed.ended.clone()),
                    ..AcceptedPrompt::new(keyed.run_id.clone(), 0)
                }));
            }
        }
        Ok(None)
    }

    fn remember(&mut self, once: Option<StoredPromptKey>, run_id: &RunId, ended: impl FnOnce() -> RunOutcome) {
        let Some(once) = once else { return };
        self.core.keyed.push_back(KeyedRun { once, run_id: run_id.clone(), ended: ended() });
        if self.core.keyed.len() > KEYED {
            self.core.keyed.pop_front();
        }
    }

    /// A person names the session, or puts it away. Works on a session that ended, too. What changes nothing is no event.
    pub(super) fn edit(&mut self, edit: SessionEdit, by: &Resolver, env: &DecisionEnv<'_>, plan: &mut Plan) {
        let title = edit.title.map(|title| display::label(&title, NAME_MAX));
        let renamed = title.as_ref().is_some_and(|title| self.core.title.as_ref() != Some(title));
        let moved = edit.archived.is_some_and(|archived| archived != self.core.archived);
        if let Some(title) = title {
            plan.dirty |= !self.core.named;
            self.core.named = true;
            self.core.title = Some(title);
        }
        self.core.archived = edit.archived.unwrap_or(self.core.archived);
        if renamed || moved {
            // In ACP's own words, so that its clients hear of the title too.
            let body = serde_json::json!({
                "sessionUpdate": "session_info_update", "title": self.core.title,
                "_meta": { "plexus": { "by": by, "archived": self.core.archived } },
            });
            self.log_in(&self.zero.clone(), EventDraft::new(Kind::SessionInfoUpdate, &body), env, plan);
            self.touch(env, plan);
        }
    }
}

/// Whether an event of the runtime's is a part of the conversation: not its settings, lists and counters, which it also
/// tells when it is merely attached again.
fn talks(kind: Kind) -> bool {
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

/// The standing run that holds what happens between runs.
pub fn zero_of(origin: &Origin) -> RunId {
    let session = origin.session_id.as_str();
    RunId::trusted(format!("r_0_{}", session.strip_prefix("s_").unwrap_or(session)))
}

/// Bodies are one line; a client's JSON may have line breaks between its tokens.
fn one_line(draft: EventDraft) -> EventDraft {
    if !draft.body.iter().any(|b| matches!(b, b'\r' | b'\n')) {
        return draft;
    }
    // Line breaks inside strings are escaped in JSON: the raw ones are all white space.
    let body: Bytes = draft.body.iter().map(|b| if matches!(b, b'\r' | b'\n') { b' ' } else { *b }).collect();
    EventDraft { body, ..draft }
}
