//! The task that owns a session, all of it in one file because no other code may write its state: decide (pure), commit (to the log),
//! perform (orders, replies).

mod drawing;
mod persister;

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use drawing::DrawingQueue;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

use super::changes::Changes;
use super::day_ceiling::synchronize;
use super::projects::Projects;
use super::rules::SessionRules;
use super::runtime_link::OrderPermit;
use super::session_handle::{EndedSession, SessionCommand};
use super::state::{DecisionEnv, Plan, SessionStateMachine};
use super::surfaces::{AskReply, WaitingCall};
use super::system::{now, ticket};
use super::{
    OrderRejected, RuntimeExit, RuntimeLink, RuntimeMessage, RuntimeOrder, SessionError, SessionSender, index,
};
use plexus_dialects::{RuntimeCommand, RuntimeEvent};
use plexus_ledger::Charge;
use plexus_metrics::spans;
use plexus_protocol::{Kind, Position, Project, Receipt, RequestId, Resolver, RunId, Ticket};
use plexus_store::StoreError;

/// Approximate maximum number of events in one commit of a session: further output of the runtime waits for the next one.
const COMMIT_EVENTS: usize = 2048;
/// Maximum number of orders of one session that wait for its runtime's driver; beyond it the runtime is stopped, because it accepts no
/// orders.
const BACKLOG: usize = 4096;
/// Delay before the task tries again to store a runtime's output after the store failed.
const RETRY: Duration = Duration::from_millis(250);
/// Maximum size of output, in bytes, that may use the space that is reserved for answers: an answer that waits behind it needs it stored
/// first.
const BEFORE_ANSWER: usize = 64 << 10;

/// The clock, the rules and the identifiers for a decision made now. A macro, because it borrows what it makes.
macro_rules! decision_env {
    ($rules:expr) => {
        $crate::state::DecisionEnv {
            now: $crate::system::now(),
            mono: std::time::Instant::now(),
            rules: $rules,
            mint: &mut |prefix| $crate::system::mint(prefix),
            ticket: &mut || $crate::system::ticket(),
        }
    };
}
pub(super) use decision_env;
pub(super) use persister::Persister;

/// The state and resources that the task owns.
pub(super) struct Task {
    pub(super) state: SessionStateMachine,
    pub(super) persister: Persister,
    pub(super) link: RuntimeLink,
    pub(super) sender: SessionSender,
    pub(super) from_runtime: mpsc::Receiver<RuntimeMessage>,
    pub(super) commands: mpsc::Receiver<SessionCommand>,
    pub(super) rules: SessionRules,
    calls: HashMap<Ticket, oneshot::Sender<Result<Box<RawValue>, SessionError>>>,
    /// Orders that wait for the driver's queue, oldest first, and the pending wait.
    backlog: VecDeque<RuntimeOrder>,
    reservation: Option<Pin<Box<dyn Future<Output = Option<OrderPermit>> + Send>>>,
    /// The charges for the content of queued prompts, and of the prompt that the runtime has not responded to yet.
    charges: Vec<(RunId, Charge)>,
    died: bool,
    /// The time when the answer that is being decided on was received.
    answered_at: Option<Instant>,
    /// An answer that arrived while earlier output could not be stored; it is handled next.
    answer: Option<SessionCommand>,
    drawing: DrawingQueue,
    /// Agents that wait for the end of a question by a surface.
    waiting_replies: Vec<(RequestId, AskReply)>,
    /// `true` if a run began or ended, so that the session's project has to be read again.
    project_stale: bool,
    /// Records the state of the folder when runs begin and end.
    pub(super) changes: Arc<Changes>,
    /// `true` if the agent sent anything in the current run.
    acted: bool,
}

/// Returns whether an event is output of an agent, which may change files in its folder from then on.
const fn is_output(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::AgentMessageChunk | Kind::AgentThoughtChunk | Kind::ToolCall | Kind::ToolCallUpdate | Kind::RequestOpened
    )
}

/// A read of the session's project that is in progress.
type ProjectRead = Pin<Box<dyn Future<Output = Option<Vec<Project>>> + Send>>;

/// Waits for a read; never returns if there is none.
async fn pending_read(read: &mut Option<ProjectRead>) -> Option<Vec<Project>> {
    match read {
        Some(read) => read.await,
        None => std::future::pending().await,
    }
}

/// Returns the next command of a client. Cancellation safe.
async fn next_command(
    answer: &mut Option<SessionCommand>,
    commands: &mut mpsc::Receiver<SessionCommand>,
) -> Option<SessionCommand> {
    match answer.take() {
        Some(answer) => Some(answer),
        None => commands.recv().await,
    }
}

/// The continuation of the task.
#[derive(PartialEq, Eq)]
enum TaskStep {
    GoOn,
    End,
}

impl Task {
    pub(super) fn new(
        state: SessionStateMachine,
        persister: Persister,
        link: RuntimeLink,
        (sender, from_runtime): (SessionSender, mpsc::Receiver<RuntimeMessage>),
        commands: mpsc::Receiver<SessionCommand>,
        rules: SessionRules,
    ) -> Self {
        Self {
            state,
            persister,
            link,
            sender,
            from_runtime,
            commands,
            rules,
            calls: HashMap::new(),
            backlog: VecDeque::new(),
            reservation: None,
            charges: Vec::new(),
            died: false,
            answered_at: None,
            answer: None,
            drawing: DrawingQueue::default(),
            waiting_replies: Vec::new(),
            project_stale: false,
            changes: Arc::default(),
            acted: false,
        }
    }

    /// Runs until the runtime has ended or the session is closed; returns the state. First performs `planned`, which was stored when the
    /// session was opened.
    pub(super) async fn run(mut self, planned: Plan, projects: Projects) -> EndedSession {
        self.perform(planned, None).await;
        // The project was read when the session was opened.
        self.project_stale = false;
        let mut reading: Option<ProjectRead> = None;
        let mut ceilings = self.persister.ceilings.watch();
        self.follow_ceilings().await;
        loop {
            if std::mem::take(&mut self.project_stale) {
                let (projects, cwd) = (projects.clone(), self.state.cwd().to_owned());
                reading = Some(Box::pin(async move { projects.read(vec![cwd]).await }));
            }
            let deadline = self.state.deadline();
            let timer = async {
                match &deadline {
                    Some((at, _)) => tokio::time::sleep_until((*at).into()).await,
                    None => std::future::pending().await,
                }
            };
            let waits = self.reservation.is_some();
            let permit = async {
                match &mut self.reservation {
                    Some(reservation) => reservation.await,
                    None => std::future::pending().await,
                }
            };
            let day = self.state.time_to_day_check(now());
            let day = async {
                match day {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => std::future::pending().await,
                }
            };
            let draws = drawing::until(self.drawing.due());
            let next = tokio::select! {
                // Commands of clients first: a flood of agent output must not delay them.
                biased;
                command = next_command(&mut self.answer, &mut self.commands) => match command {
                    Some(command) => self.on_command(command).await,
                    None => TaskStep::End,
                },
                () = timer => {
                    if let Some((_, id)) = deadline {
                        self.decide(|state, env, plan| state.expire(&id, env, plan)).await;
                    }
                    TaskStep::GoOn
                }
                () = draws => {
                    self.drawing_due().await;
                    TaskStep::GoOn
                }
                // The work is determined below.
                Ok(()) = ceilings.changed() => TaskStep::GoOn,
                () = day => TaskStep::GoOn,
                read = pending_read(&mut reading) => {
                    reading = None;
                    if let Some(project) = read.and_then(|mut read| read.pop()) {
                        self.decide(|state, env, plan| state.project_read(project, env, plan)).await;
                    }
                    TaskStep::GoOn
                }
                permit = permit, if waits => {
                    self.order_next(permit);
                    TaskStep::GoOn
                }
                message = self.from_runtime.recv() => match message {
                    Some(first) => {
                        let mut batch = vec![first];
                        let mut events = 0;
                        while events < COMMIT_EVENTS {
                            let Ok(more) = self.from_runtime.try_recv() else { break };
                            if let RuntimeMessage::Events(said, _) = &more {
                                events += said.len();
                            }
                            batch.push(more);
                        }
                        self.on_runtime_batch(batch).await
                    }
                    // The link's own sender keeps the channel open.
                    None => TaskStep::End,
                },
            };
            self.follow_asks().await;
            if next == TaskStep::GoOn {
                self.follow_ceilings().await;
            }
            if next == TaskStep::End {
                self.state.forget_secrets();
                return EndedSession { state: self.state, died: self.died };
            }
        }
    }

    async fn on_runtime_batch(&mut self, batch: Vec<RuntimeMessage>) -> TaskStep {
        let (mut next, mut replies, mut died) = (TaskStep::GoOn, Vec::new(), false);
        // Acknowledgements, which are sent by dropping them once everything is stored.
        let mut marks = Vec::new();
        self.state.set_allowed_always(self.link.behavior().allowed_always());
        self.decide(|state, env, plan| {
            for message in batch {
                match message {
                    RuntimeMessage::Events(events, ack) => {
                        if let Some(ack) = ack {
                            plan.processed = plan.processed.max(ack.offset);
                            plan.received = plan.received.into_iter().chain([ack.received]).min();
                            marks.push(ack);
                        }
                        for event in events {
                            match event {
                                RuntimeEvent::Replied { ticket, reply } => replies.push((ticket, reply)),
                                event => state.on_runtime_event(event, env, plan),
                            }
                        }
                    }
                    RuntimeMessage::Found { asks, prompts } => state.found(&asks, &prompts, env, plan),
                    RuntimeMessage::Exited(exit) => {
                        state.runtime_exited(&exit, env, plan);
                        died = !exit.stopped;
                        next = TaskStep::End;
                    }
                }
            }
        })
        .await;
        drop(marks);
        self.died = died;
        for (ticket, reply) in replies {
            if let Some(waiting) = self.calls.remove(&ticket) {
                let _ = waiting.send(reply.map_err(SessionError::from_runtime));
            }
        }
        if next == TaskStep::End {
            self.finish();
        }
        next
    }

    /// Makes a decision that must not be lost, stores it (waits for the store without a limit), and performs it.
    async fn decide(&mut self, decide: impl FnOnce(&mut SessionStateMachine, &mut DecisionEnv<'_>, &mut Plan)) {
        let mut plan = Plan::default();
        self.update_ceilings();
        decide(&mut self.state, &mut decision_env!(self.rules), &mut plan);
        let since = self.persister.busy_since;
        let (synced, mut answer) = (plan.sync, None::<SessionCommand>);
        while let Err(error) = self.persister.keep(&plan, &self.state).await {
            if let Some(answer) = answer.take() {
                answer.refuse(SessionError::from_store(&error));
            }
            if matches!(*error, StoreError::NoSession(_)) {
                // The session was deleted: it needs no further work.
                return;
            }
            plan.sync = synced;
            let short = plan.events.iter().map(|event| event.body.len()).sum::<usize>() <= BEFORE_ANSWER;
            // The agent's output is not read meanwhile, so the agent waits; clients get an error. Nothing is lost.
            let retry = tokio::time::sleep(RETRY);
            tokio::pin!(retry);
            loop {
                tokio::select! {
                    () = &mut retry => break,
                    Some(command) = self.commands.recv() => match command {
                        SessionCommand::Answer { .. } if short && self.answer.is_none() => {
                            (plan.sync, answer) = (true, Some(command));
                            break;
                        }
                        command => command.refuse(SessionError::from_store(&error)),
                    },
                }
            }
        }
        if answer.is_some() {
            self.answer = answer;
        }
        self.perform(plan, since).await;
    }

    /// Decides on a client's command; if the decision cannot be stored, the state is restored.
    async fn try_decide<T>(
        &mut self,
        decide: impl FnOnce(&mut SessionStateMachine, &mut DecisionEnv<'_>, &mut Plan) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        self.update_ceilings();
        let before = self.state.clone();
        let mut plan = Plan::default();
        let outcome = match decide(&mut self.state, &mut decision_env!(self.rules), &mut plan) {
            Ok(outcome) => outcome,
            Err(refusal) => {
                self.state = before;
                return Err(refusal);
            }
        };
        let since = self.persister.busy_since;
        if let Err(error) = self.persister.keep(&plan, &self.state).await {
            self.state = before;
            return Err(SessionError::from_store(&error));
        }
        self.perform(plan, since).await;
        Ok(outcome)
    }

    /// Applies the current ceilings.
    fn update_ceilings(&mut self) {
        self.state.update_ceilings(self.persister.ceilings.facts(now()));
    }

    /// Carries out what the ceilings require after a change in this session, in another one, or in the settings.
    async fn follow_ceilings(&mut self) {
        let book = Arc::clone(&self.persister.ceilings);
        let asks_day = synchronize(&book, &mut self.state, now());
        if self.state.ceilings_are_due(asks_day) {
            self.decide(|state, env, plan| state.follow_ceilings(asks_day, env, plan)).await;
            synchronize(&book, &mut self.state, now());
        }
    }

    /// Releases the charges of prompts whose content is no longer held.
    fn discharge(&mut self) {
        let state = &self.state;
        self.charges.retain(|(run_id, _)| state.prompt_contents().any(|(held, _)| held == run_id));
    }

    /// Performs a stored plan. `since` is the first event of the run that may have ended.
    async fn perform(&mut self, plan: Plan, since: Option<Position>) {
        self.discharge();
        self.link.behavior().record(self.state.acted_unasked(), self.state.allowed_always());
        for event in &plan.events {
            if matches!(event.kind, Kind::RunStarted | Kind::RunEnded) {
                (self.project_stale, self.acted) = (true, false);
                self.changes.record_run(&self.state.origin.session_id, self.state.cwd(), &event.run_id, event.kind);
            } else if !self.acted && is_output(event.kind) {
                self.acted = true;
                self.changes.acted(&self.state.origin.session_id);
            }
        }
        for command in plan.orders {
            self.order(command).await;
        }
        for run_id in plan.ended {
            let after = Position(since.map_or(0, |first| first.0.saturating_sub(1)));
            let span = spans::run(&run_id);
            let index = index::run(self.persister.log.clone(), Arc::clone(&self.state.origin), run_id, after);
            tokio::spawn(index.instrument(span));
        }
    }

    async fn order(&mut self, command: RuntimeCommand) {
        let answered_at = self.answered_at.filter(|_| matches!(command, RuntimeCommand::Answer { .. }));
        let order =
            RuntimeOrder { command, sender: self.sender.clone(), generation: self.state.generation(), answered_at };
        let order = match self.backlog.is_empty() {
            true => match self.link.order(order) {
                Err((OrderRejected::Full, order)) => *order,
                // If the runtime has ended, its driver reports it.
                Ok(()) | Err((OrderRejected::Closed, _)) => return,
            },
            false => order,
        };
        if self.backlog.len() >= BACKLOG {
            let mut plan = Plan::default();
            self.state.stuck(&decision_env!(self.rules), &mut plan);
            // The stop below is essential: if the event cannot be stored, the exit that follows reports the problem.
            let _ = self.persister.keep(&plan, &self.state).await;
            return self.link.stop();
        }
        self.backlog.push_back(order);
        self.reservation.get_or_insert_with(|| Box::pin(self.link.reserve()));
    }

    /// Sends the oldest waiting order with the permit; `None` if the driver has ended.
    fn order_next(&mut self, permit: Option<OrderPermit>) {
        self.reservation = None;
        let Some(permit) = permit else { return self.backlog.clear() };
        if let Some(order) = self.backlog.pop_front() {
            permit.send(order);
        }
        // Then further ones while the queue has capacity.
        while let Some(order) = self.backlog.pop_front() {
            match self.link.order(order) {
                Ok(()) => {}
                Err((OrderRejected::Full, order)) => {
                    self.backlog.push_front(*order);
                    self.reservation = Some(Box::pin(self.link.reserve()));
                    return;
                }
                Err((OrderRejected::Closed, _)) => return self.backlog.clear(),
            }
        }
    }

    async fn on_command(&mut self, command: SessionCommand) -> TaskStep {
        match command {
            SessionCommand::Prompt { content, by, key, again, charge, reply } => {
                let (charge, over) = match charge.transpose() {
                    Ok(charge) => (charge, None),
                    Err(over) => (None, Some(over)),
                };
                let outcome = self
                    .try_decide(|state, env, plan| {
                        if let Some(over) = over {
                            // A prompt that was accepted before needs no place in the queue.
                            let accepted = state.prompt_of_key(key.as_ref())?;
                            return accepted.ok_or(SessionError::OverLimit(over));
                        }
                        match again {
                            Some(run) => state.again(&run, content, by, key, env, plan),
                            None => state.prompt(content, by, key, env, plan),
                        }
                    })
                    .await;
                if let (Ok(accepted), Some(charge)) = (&outcome, charge) {
                    self.charges.push((accepted.run_id.clone(), charge));
                    self.discharge();
                }
                let _ = reply.send(outcome);
            }
            SessionCommand::Cancel { run_id, by, reason, reply } => {
                let reason = (&by, reason.as_deref());
                let outcome =
                    self.try_decide(|state, env, plan| state.cancel(run_id.as_ref(), reason, env, plan)).await;
                let _ = reply.send(outcome);
            }
            SessionCommand::Answer { id, answer, by, up_to, key, at, reply } => {
                // A late answer changes nothing: no copy of the state, no commit.
                if !self.state.is_open(&id) {
                    let _ = reply.send(Err(self.persister.receipts.late(&id, key.as_ref())));
                    return TaskStep::GoOn;
                }
                self.answered_at = Some(at);
                let outcome = Box::pin(self.decide_answer(&id, &answer, (by, up_to), key.as_ref())).await;
                self.answered_at = None;
                let _ = reply.send(outcome.map(|receipt| {
                    let cursor = self.persister.receipts.get(&id).and_then(|receipt| receipt.cursor.clone());
                    Receipt { won: true, cursor, ..receipt }
                }));
            }
            SessionCommand::Call { method, params, notify, reply } => {
                if let Some(reason) = self.state.exited() {
                    let _ = reply.send(Err(SessionError::RuntimeUnavailable(reason.to_owned())));
                    return TaskStep::GoOn;
                }
                let ticket = ticket();
                let native = self.state.native_id().cloned();
                if notify {
                    let null = RawValue::from_string("null".into());
                    let _ = reply.send(null.map_err(|error| SessionError::Invalid(error.to_string())));
                } else {
                    self.calls.retain(|_, waiting| !waiting.is_closed());
                    self.calls.insert(ticket, reply);
                }
                self.order(RuntimeCommand::Call { ticket, native, method, params, notify }).await;
            }
            SessionCommand::Edit { edit, by, reply } => {
                let edited = self.try_decide(|state, env, plan| {
                    state.edit(edit, &by, env, plan);
                    Ok(())
                });
                let _ = reply.send(edited.await);
            }
            SessionCommand::Project { project, reply } => {
                self.decide(|state, env, plan| state.project_read(project, env, plan)).await;
                let _ = reply.send(());
            }
            SessionCommand::Draw(call) => self.draw(*call).await,
            SessionCommand::Act(press) => self.act(*press).await,
            SessionCommand::Ask(work) => self.ask(*work).await,
            SessionCommand::Close { reply } => {
                let exit = RuntimeExit {
                    reason: Some("the session was closed".into()),
                    stopped: true,
                    ..RuntimeExit::default()
                };
                let (by, mut plan) = (Resolver::gateway(), Plan::default());
                // An active run is stopped first.
                let _ = self.state.cancel(None, (&by, None), &mut decision_env!(self.rules), &mut plan);
                self.state.runtime_exited(&exit, &mut decision_env!(self.rules), &mut plan);
                if let Err(error) = self.persister.keep(&plan, &self.state).await {
                    // The session ends anyway: its agent must not continue unseen.
                    tracing::warn!(%error, "the end of a session is not stored");
                }
                // The session's events are about to be deleted, so they are not indexed.
                plan.ended.clear();
                self.perform(plan, None).await;
                self.finish();
                let _ = reply.send(Ok(()));
                return TaskStep::End;
            }
        }
        TaskStep::GoOn
    }

    fn finish(&mut self) {
        // Pending orders are delivered if the driver still exists.
        let (backlog, link) = (std::mem::take(&mut self.backlog), self.link.clone());
        self.reservation = None;
        if !backlog.is_empty() {
            tokio::spawn(async move {
                for order in backlog {
                    let Some(permit) = link.reserve().await else { return };
                    permit.send(order);
                }
            });
        }
        self.commands.close();
        let reason = self.state.exited().unwrap_or("the session ended").to_owned();
        while let Ok(command) = self.commands.try_recv() {
            command.refuse(SessionError::RuntimeUnavailable(reason.clone()));
        }
        for call in self.drawing.take() {
            let _ = call.reply.send(Err(SessionError::RuntimeUnavailable(reason.clone())));
        }
        for (_, waiting) in self.calls.drain() {
            let _ = waiting.send(Err(SessionError::RuntimeUnavailable(reason.clone())));
        }
    }
}
