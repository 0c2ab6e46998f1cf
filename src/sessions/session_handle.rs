//! A session from outside its task: its mailbox, its public state and, while no task owns it, its state.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::SessionError;
use super::answer_key::AnswerKey;
use super::client_calls::SessionOwner;
use super::prompt_key::PromptKey;
use super::prompts::PromptContent;
use super::state::{SessionEdit, SessionStateMachine};
use super::surfaces::{AskWork, Press, SurfaceBoard, WaitingCall};
use plexus_ledger::{Charge, LedgerFull};
use plexus_protocol::api::sessions::AcceptedPrompt;
use plexus_protocol::{
    Answer, CallDigest, Origin, Project, Receipt, Request, RequestId, Resolver, Risk, RunId, RunInfo, SessionInfo,
    Timestamp,
};

/// Capacity of the mailbox of a session's task, in commands; when it is full, the clients wait.
pub(super) const MAILBOX: usize = 256;

/// A command of a client to a session.
pub(super) enum SessionCommand {
    Prompt {
        content: PromptContent,
        by: Resolver,
        key: Option<PromptKey>,
        /// The run whose prompt is sent again: it is cancelled first, and this prompt runs next.
        again: Option<RunId>,
        /// The ledger's charge for the content, or the error of a full ledger.
        charge: Option<Result<Charge, LedgerFull>>,
        reply: oneshot::Sender<Result<AcceptedPrompt, SessionError>>,
    },
    Cancel {
        run_id: Option<RunId>,
        by: Resolver,
        reason: Option<String>,
        reply: oneshot::Sender<Result<RunId, SessionError>>,
    },
    Answer {
        id: RequestId,
        answer: Box<Answer>,
        by: Resolver,
        /// The maximum risk of requests that the device may answer.
        up_to: Option<Risk>,
        key: Option<AnswerKey>,
        /// The time when the gateway received the answer.
        at: Instant,
        reply: oneshot::Sender<Result<Receipt, SessionError>>,
    },
    Call {
        method: String,
        params: Option<Box<RawValue>>,
        notify: bool,
        reply: oneshot::Sender<Result<Box<RawValue>, SessionError>>,
    },
    Edit {
        edit: SessionEdit,
        by: Resolver,
        reply: oneshot::Sender<Result<(), SessionError>>,
    },
    /// The project of the session's folder was read again.
    Project {
        project: Project,
        reply: oneshot::Sender<()>,
    },
    Draw(Box<WaitingCall>),
    Act(Box<Press>),
    Ask(Box<AskWork>),
    /// The session is to be closed: the run is cancelled, the task ends.
    Close {
        reply: oneshot::Sender<Result<(), SessionError>>,
    },
}

impl SessionCommand {
    pub(super) fn refuse(self, reason: SessionError) {
        match self {
            Self::Prompt { reply, .. } => drop(reply.send(Err(reason))),
            Self::Cancel { reply, .. } => drop(reply.send(Err(reason))),
            Self::Answer { reply, .. } => drop(reply.send(Err(reason))),
            Self::Call { reply, .. } => drop(reply.send(Err(reason))),
            Self::Edit { reply, .. } | Self::Close { reply } => drop(reply.send(Err(reason))),
            // The reader of the project sees that the session did not accept it.
            Self::Project { reply, .. } => drop(reply),
            Self::Draw(call) => drop(call.reply.send(Err(reason))),
            Self::Act(press) => drop(press.reply.send(Err(reason))),
            Self::Ask(work) => work.refuse(reason),
        }
    }
}

/// The public state of a session, readable without asking its task. Never older than the log.
pub(super) struct SessionSummary {
    pub(super) info: SessionInfo,
    pub(super) open: Vec<Arc<Request>>,
    pub(super) runs: Vec<RunInfo>,
    /// The device that opened the session.
    pub(super) owner: Option<SessionOwner>,
    /// `true` if the session asks about today's ceiling.
    pub(super) asks_day: bool,
    /// The content of the queued prompts.
    pub(super) waiting: Vec<(RunId, PromptContent)>,
    /// The unfinished calls of the gateway's own tools, where they are checked.
    pub(super) own_calls: Vec<CallDigest>,
}

/// A sort key for sessions by their latest activity: the log position first, then the time.
pub type ActivityRank = (u64, i64);

/// A session, from outside its task.
#[derive(Clone)]
pub(super) struct SessionHandle {
    pub(super) origin: Arc<Origin>,
    /// The mailbox of the session's task; `None` for a session that ended.
    pub(super) commands: Option<mpsc::Sender<SessionCommand>>,
    pub(super) view: Arc<ArcSwap<SessionSummary>>,
    /// The time of the last event, in milliseconds. Updated more often than the view.
    pub(super) updated: Arc<AtomicI64>,
    /// The position of the event that started the current activity.
    pub(super) activity_position: Arc<AtomicU64>,
    /// The position of the session's last event: finds changes since a position, regardless of changes of the clock.
    pub(super) last: Arc<AtomicU64>,
    /// The position of the session's latest activity since this gateway started, 0 if there was none: sorts sessions by activity.
    pub(super) latest_activity: Arc<AtomicU64>,
    /// The state, while no task owns it.
    parked: Arc<Mutex<Option<EndedSession>>>,
    /// Held while the session is being reopened: other callers wait for the outcome.
    pub(super) opening: Arc<tokio::sync::Mutex<()>>,
    pub(super) surfaces: Arc<SurfaceBoard>,
}

/// The state of an ended session: it continues from this state if its runtime is started again.
pub(super) struct EndedSession {
    pub(super) state: SessionStateMachine,
    /// `true` if the runtime exited while this gateway ran: the session is reopened with the runtime.
    pub(super) died: bool,
}

impl SessionHandle {
    pub(super) fn new(state: &SessionStateMachine, commands: Option<mpsc::Sender<SessionCommand>>) -> Self {
        let view = summary(state);
        let updated = Arc::new(AtomicI64::new(view.info.updated_at.as_millis()));
        let view = Arc::new(ArcSwap::from_pointee(view));
        Self {
            origin: Arc::clone(&state.origin),
            commands,
            view,
            updated,
            activity_position: Arc::default(),
            last: Arc::default(),
            latest_activity: Arc::default(),
            parked: Arc::default(),
            opening: Arc::default(),
            surfaces: Arc::default(),
        }
    }

    /// Stores the state of a task that ended.
    pub(super) fn mark_ended(&self, parked: EndedSession) {
        *self.parked() = Some(parked);
    }

    /// Returns the run that was requested under this key, if the session has no task and remembers the key.
    pub(super) fn prompt_of_key(&self, key: &PromptKey) -> Result<Option<AcceptedPrompt>, SessionError> {
        self.parked().as_ref().map_or(Ok(None), |parked| parked.state.prompt_of_key(Some(key)))
    }

    /// Returns a copy of the state, if there is no task. Callers that replace it must hold `opening`.
    pub(super) fn ended_state(&self) -> Option<EndedSession> {
        self.parked().as_ref().map(|parked| EndedSession { state: parked.state.clone(), died: parked.died })
    }

    /// Takes the state, for a task to own it.
    pub(super) fn take_ended(&self) -> Option<EndedSession> {
        self.parked().take()
    }

    /// Returns the generation of the runtime whose exit ended the session.
    pub(super) fn died_in(&self) -> Option<u64> {
        self.parked().as_ref().filter(|parked| parked.died).map(|parked| parked.state.generation())
    }

    fn parked(&self) -> MutexGuard<'_, Option<EndedSession>> {
        self.parked.lock()
    }

    /// Returns the rank: by log position; by time only for activity before this gateway started.
    pub(super) fn rank(&self) -> ActivityRank {
        (self.latest_activity.load(Ordering::Relaxed), self.updated.load(Ordering::Relaxed))
    }

    pub(super) fn info(&self) -> SessionInfo {
        let mut info = self.view.load().info.clone();
        info.updated_at = Timestamp::from_millis(self.updated.load(Ordering::Relaxed));
        info
    }
}

pub(super) fn summary(state: &SessionStateMachine) -> SessionSummary {
    SessionSummary {
        info: state.info(),
        open: state.open_requests(),
        runs: state.runs(),
        owner: state.owner().cloned(),
        asks_day: state.asks_about_day(),
        waiting: state.waiting(),
        own_calls: state.own_calls(),
    }
}
