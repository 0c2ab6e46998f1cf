//! Opening of sessions, the one way into a runtime for all of them: new, opened again in its next start, found where somebody else had opened
//! them. Those that live on from an earlier gateway are in `recovery`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, Semaphore, mpsc};
use tracing::Instrument as _;

use super::client_calls::SessionOwner;
use super::directory::{PARKED_IN, PARKING};
use super::runtime_link::{Ack, FoundSession};
use super::session::{EndedSession, MAILBOX, Persister, SessionHandle, Task, env, mint, now, refused, storage, ticket};
use super::state::{Plan, SessionEdit, SessionStateMachine};
use super::{
    Directory, OpenSession, RuntimeExit, RuntimeLink, RuntimeMessage, RuntimeOrder, SessionError, SessionSender,
};
use crate::metrics::metrics;
use crate::spans;
use plexus_dialects::{EventDraft, OpenedAs, ResumeTarget, RuntimeCommand, RuntimeEvent};
use plexus_protocol::{NativeId, Origin, Resolver, RuntimeId, RuntimeState, SessionId, SessionInfo};

/// Longest folder of a session, in bytes: what systems have room for in a path.
pub(super) const CWD_MAX: usize = 4096;
/// Longest name of a runtime's own for a session, in bytes.
const NATIVE_MAX: usize = 1024;
/// How long a runtime may say nothing at all of a session that it is to open; then whoever wants it is told. What it says
/// of it (a question to sign in, a wait of its own) begins the time anew.
const OPEN_SILENCE: Duration = Duration::from_secs(150);
/// The same for a runtime that an earlier gateway left, which should have nothing else to do.
const FOUND_SILENCE: Duration = Duration::from_secs(15);
/// Sessions that are opened again at a time, in one runtime.
const REOPEN_AT_ONCE: usize = 8;
/// How long one of them may keep the others waiting; it is opened all the same, whenever the runtime answers.
const REOPEN_WAIT: Duration = Duration::from_secs(10);

/// What a runtime said while it opened a session.
struct OpeningOutput {
    native: NativeId,
    drafts: Vec<EventDraft>,
    how: OpenedAs,
    early: Vec<RuntimeEvent>,
    /// Let go once all of it is kept.
    upto: Vec<Ack>,
}

impl Directory {
    /// Puts a session in the list that has no task: it ended, or ends now.
    pub(super) async fn end_session(&self, mut state: SessionStateMachine, why: &str) {
        let handle = SessionHandle::of(&state, None);
        if state.exited().is_none() {
            let left = state.carried().is_some();
            let exit = RuntimeExit { reason: Some(why.into()), left, ..RuntimeExit::default() };
            let mut plan = Plan::default();
            state.gone(&exit, &mut env!(self.shared.rules), &mut plan);
            let mut keeper = self.keeper(handle.clone(), state.spared).knows(state.recalled());
            if let Err(error) = keeper.keep(&plan, &state).await {
                // Reading goes on with a full disk; the next start tries again.
                tracing::error!(session_id = %state.origin.session_id, %error, "cannot write down that a session ended");
            }
        }
        for request in state.open_requests() {
            self.shared.asked.insert(request.request_id.clone(), request.session_id.clone());
        }
        let id = state.origin.session_id.clone();
        handle.mark_ended(EndedSession { state, died: false });
        self.shared.sessions.insert(id, handle);
    }

    /// Changes a session that has no task.
    pub(super) async fn edit_parked(
        &self,
        id: &SessionId,
        edit: SessionEdit,
        by: &Resolver,
    ) -> Result<(), SessionError> {
        let handle = self.shared.sessions.get(id).map(|handle| handle.clone());
        let handle = handle.ok_or_else(|| SessionError::NoSession(id.clone()))?;
        let opening = Arc::clone(&handle.opening).lock_owned().await;
        let gone = || SessionError::RuntimeGone("the session has just ended".into());
        let EndedSession { mut state, died } = handle.ended_state().ok_or_else(gone)?;
        let keeper = self.keeper(handle.clone(), state.spared).knows(state.recalled());
        let (mut keeper, by) = (keeper, by.clone());
        let rules = self.shared.rules;
        // Not cut short by a client that leaves: what is kept must be what is parked.
        let work = tokio::spawn(async move {
            let _opening = opening;
            let mut plan = Plan::default();
            state.edit(edit, &by, &env!(rules), &mut plan);
            keeper.keep(&plan, &state).await.map_err(|error| storage(&error))?;
            handle.mark_ended(EndedSession { state, died });
            Ok(())
        });
        work.await.map_err(|_| SessionError::Stopping)?
    }

    pub(super) fn keeper(&self, handle: SessionHandle, busy_since: Option<plexus_protocol::Position>) -> Persister {
        Persister::new(self.shared.log.clone(), handle, Arc::clone(&self.shared.asked), busy_since)
    }

    /// Watches a runtime: tells of its changes, opens its sessions again when it was started again, opens those that
    /// others opened in it.
    pub(super) fn attend(&self, id: RuntimeId, link: RuntimeLink) {
        let this = self.clone();
        let mut info = link.watch();
        if let Some(mut found) = link.take_found() {
            let (this, id) = (self.clone(), id.clone());
            tokio::spawn(async move {
                let slots = ReopenSlots::default();
                while let Some(found) = found.recv().await {
                    let (this, id) = (this.clone(), id.clone());
                    slots.run(async move { this.opened_elsewhere(&id, found).await }).await;
                }
            });
        }
        // What went on in an endpoint while no gateway was there is heard as soon as it can be, and what was open there is again.
        self.open_again(self.unattached(|of| *of == id, |state| state.pends() || state.left()));
        tokio::spawn(async move {
            let (mut ready, mut state) = (info.borrow_and_update().generation, RuntimeState::Starting);
            loop {
                this.shared.changed.send_modify(|count| *count += 1);
                if info.changed().await.is_err() {
                    break;
                }
                let now = info.borrow_and_update().clone();
                if now.state == RuntimeState::Exited && state != RuntimeState::Exited {
                    let label = metrics().runtime_label(id.as_str());
                    metrics().runtime_exits.with_label_values(&[label]).inc();
                }
                state = now.state;
                if now.state == RuntimeState::Ready && now.generation != ready {
                    this.reopen_all(&id, ready);
                    ready = now.generation;
                }
            }
            this.shared.changed.send_modify(|count| *count += 1);
        });
    }

    // === opening ===

    /// As [`open_session`](Self::open_session), for the gateway's own configuration.
    ///
    /// # Errors
    /// As [`open_session`](Self::open_session).
    pub async fn begin(&self, open: OpenSession) -> Result<Arc<SessionInfo>, SessionError> {
        self.begin_for(open, None).await
    }

    /// As [`begin`](Self::begin), for a device: the session is its own.
    pub(super) async fn begin_for(
        &self,
        open: OpenSession,
        owner: Option<SessionOwner>,
    ) -> Result<Arc<SessionInfo>, SessionError> {
        let link = self.shared.runtimes.get(&open.runtime_id).map(|link| link.clone());
        let link = link.ok_or_else(|| SessionError::NoRuntime(open.runtime_id.clone()))?;
        let info = link.info();
        if info.state == RuntimeState::Exited {
            let why = info.problem.clone().unwrap_or_else(|| "it has exited".into());
            return Err(SessionError::RuntimeGone(why));
        }
        if info.generation == 0 {
            // Its holder has not answered: nobody knows when it will.
            return Err(SessionError::RuntimeGone(info.problem.clone().unwrap_or_default()));
        }
        let cwd = open.cwd.clone().unwrap_or_else(|| info.cwd.clone());
        if cwd.len() > CWD_MAX {
            return Err(SessionError::Invalid(format!("cwd is {} bytes long; the maximum is {CWD_MAX}", cwd.len())));
        }
        if open.native_id.as_ref().is_some_and(|native| native.len() > NATIVE_MAX) {
            return Err(SessionError::Invalid(format!("native_id may have at most {NATIVE_MAX} bytes")));
        }
        if !cwd.starts_with('/') {
            return Err(SessionError::Invalid(format!("cwd must be an absolute path, not {cwd:?}")));
        }
        // Of those who want the same conversation at once, the first asks the runtime; the others get what came of it.
        let turn = match &open.native_id {
            Some(native) => Some(self.turn(&open.runtime_id, native).await),
            None => None,
        };
        if let Some(refusal) = turn.as_ref().and_then(|turn| Option::clone(turn)) {
            return Err(refusal);
        }
        if let Some(native) = &open.native_id
            && let Some(known) = self.known(&open.runtime_id, native)
        {
            // It is ours already: opened twice, a runtime would say everything twice.
            if self.session(&known).is_some_and(|info| info.state == plexus_protocol::SessionState::Exited) {
                self.reopen(&known).await?;
            }
            return self.session(&known).ok_or(SessionError::NoSession(known));
        }
        // The rest is not cut short by a client that leaves: a session that the runtime opened is one of ours.
        let this = self.clone();
        let work = tokio::spawn(async move {
            let outcome = this.begin_with(open, link, cwd, owner).await;
            if let (Some(mut turn), Err(refusal)) = (turn, &outcome) {
                *turn = Some(refusal.clone());
            }
            outcome
        });
        work.await.map_err(|_| SessionError::Stopping)?
    }

    async fn begin_with(
        &self,
        open: OpenSession,
        link: RuntimeLink,
        cwd: String,
        owner: Option<SessionOwner>,
    ) -> Result<Arc<SessionInfo>, SessionError> {
        let resume = open.native_id.map(|native| ResumeTarget::new(native.as_str().into(), false));
        let (opened, mailbox) = order(&link, cwd.clone(), resume).await?;
        let info = link.info();
        let origin = Arc::new(Origin {
            session_id: SessionId::trusted(mint("s_")),
            runtime_id: open.runtime_id,
            dialect: info.dialect.as_str().into(),
        });
        let native = Some(opened.native.clone());
        let mut state = SessionStateMachine::new(Arc::clone(&origin), native, cwd, open.title, info.generation, now());
        state.belongs_to(info.instance.clone());
        state.opened_by(owner);
        let (wants, wants_rx) = mpsc::channel(MAILBOX);
        let handle = SessionHandle::of(&state, Some(wants));
        handle.news.store(self.shared.log.head().0 + 1, std::sync::atomic::Ordering::Relaxed);
        // In the list before its first event can be seen.
        self.shared.sessions.insert(origin.session_id.clone(), handle.clone());
        let keeper = self.keeper(handle.clone(), None);
        let task = Task::new(state, keeper, link, mailbox, wants_rx, self.shared.rules);
        match self.keep_opened(task, opened, |_| {}).await {
            // Deleted at once: nobody can reach it, and it does nothing.
            Ok(_) if !self.shared.sessions.contains_key(&origin.session_id) => {
                return Err(SessionError::NoSession(origin.session_id.clone()));
            }
            Ok((task, plan)) => self.run(task, plan),
            Err((_, refusal)) => {
                self.shared.sessions.remove(&origin.session_id);
                return Err(refusal);
            }
        }
        Ok(Arc::new(handle.info()))
    }

    /// Keeps what opening a session brought: its task, and what that has to do first.
    async fn keep_opened(
        &self,
        mut task: Task,
        opened: OpeningOutput,
        first: impl FnOnce(&mut SessionStateMachine),
    ) -> Result<(Task, Plan), (Box<SessionStateMachine>, SessionError)> {
        let OpeningOutput { drafts, how, early, upto, .. } = opened;
        let mut plan = Plan { heard: upto.iter().filter_map(|upto| upto.offset).max(), ..Plan::default() };
        let before = task.state.clone();
        first(&mut task.state);
        task.state.opened(drafts, how, &mut env!(self.shared.rules), &mut plan);
        for said in early {
            task.state.on_runtime_event(said, &mut env!(self.shared.rules), &mut plan);
        }
        task.state.goes_on(&mut env!(self.shared.rules), &mut plan);
        if let Err(error) = task.keeper.keep(&plan, &task.state).await {
            return Err((Box::new(before), storage(&error)));
        }
        drop(upto);
        Ok((task, plan))
    }

    /// Runs a session's task to its end. `plan` is kept already.
    pub(super) fn run(&self, task: Task, plan: Plan) {
        let (shared, own) = (Arc::clone(&self.shared), task.keeper.handle.clone());
        let span = spans::session(&own.origin);
        let work = async move {
            let parked = task.run(plan).await;
            // One that is being deleted is in no list, but may come back into it if it cannot be.
            own.mark_ended(parked);
            if let Some(mut handle) = shared.sessions.get_mut(&own.origin.session_id) {
                handle.wants = None;
            }
        };
        tokio::spawn(work.instrument(span));
    }

    /// Waits until nobody else opens this conversation of this runtime. In it is what those who waited as long are told.
    async fn turn(&self, runtime: &RuntimeId, native: &str) -> OwnedMutexGuard<Option<SessionError>> {
        let turn = {
            let mut turns = self.shared.opening.lock();
            // Those that nobody holds or waits for are forgotten.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry((runtime.clone(), native.to_owned())).or_default())
        };
        turn.lock_owned().await
    }

    /// The session with this name in this runtime, if there is one.
    fn known(&self, runtime: &RuntimeId, native: &str) -> Option<SessionId> {
        let of = |handle: &SessionHandle| {
            let view = handle.view.load();
            handle.origin.runtime_id == *runtime && view.info.native_id.as_ref().is_some_and(|id| id.as_str() == native)
        };
        let found = self.shared.sessions.iter().find(|handle| of(handle));
        found.map(|handle| handle.origin.session_id.clone())
    }

    /// Opens a session that somebody else opened in the runtime.
    async fn opened_elsewhere(&self, id: &RuntimeId, found: FoundSession) {
        let FoundSession { native, cwd, title } = found;
        let native_id = Some(native.as_str().to_owned());
        let open = OpenSession { runtime_id: id.clone(), cwd, title, native_id, program: None };
        if let Err(error) = self.begin(open).await {
            tracing::warn!(runtime_id = %id, native_id = %native, %error, "a discovered session could not be opened");
        }
    }

    /// Opens the sessions again that lived in an earlier start of a runtime.
    fn reopen_all(&self, id: &RuntimeId, generation: u64) {
        let of = |handle: &SessionHandle| handle.origin.runtime_id == *id && handle.died_in() == Some(generation);
        let sessions: Vec<SessionId> = {
            let handles = self.shared.sessions.iter();
            handles.filter(|handle| of(handle)).map(|handle| handle.origin.session_id.clone()).collect()
        };
        let this = self.clone();
        tokio::spawn(async move {
            let slots = ReopenSlots::default();
            for session in sessions {
                let this = this.clone();
                let work = async move {
                    if let Err(error) = this.reopen(&session).await {
                        tracing::warn!(session_id = %session, %error, "a session could not be reopened");
                    }
                };
                slots.run(work).await;
            }
        });
    }

    /// Opens sessions again, as soon as their tasks have ended and their runtime is ready.
    pub(super) fn open_again(&self, sessions: Vec<SessionId>) {
        let this = self.clone();
        sessions.iter().for_each(|session| {
            this.shared.reopening.insert(session.clone());
        });
        tokio::spawn(async move {
            let slots = ReopenSlots::default();
            for session in sessions {
                let this = this.clone();
                slots.run(async move { this.open_one_again(session).await }).await;
            }
        });
    }

    async fn open_one_again(&self, session: SessionId) {
        for _ in 0..PARKING {
            let ending = self
                .shared
                .sessions
                .get(&session)
                .is_some_and(|handle| handle.wants.is_some() || handle.ended_state().is_none());
            if !ending {
                break;
            }
            tokio::time::sleep(PARKED_IN).await;
        }
        let outcome = self.reopen(&session).await;
        if let Err(error) = &outcome {
            tracing::warn!(session_id = %session, %error, "a session could not be reopened");
        }
        // One that was stopped under it again is opened by whoever did that.
        if !matches!(outcome, Err(SessionError::RuntimeGone(_))) {
            self.shared.reopening.remove(&session);
        }
    }

    /// Opens a session again whose runtime has been started again since: the same conversation where the runtime can,
    /// else a new one in its place, and an event says which.
    pub(super) async fn reopen(&self, id: &SessionId) -> Result<(), SessionError> {
        let handle = self.shared.sessions.get(id).map(|handle| handle.clone());
        let handle = handle.ok_or_else(|| SessionError::NoSession(id.clone()))?;
        let opening = Arc::clone(&handle.opening).lock_owned().await;
        if self.shared.sessions.get(id).is_some_and(|handle| handle.wants.is_some()) {
            return Ok(());
        }
        let gone = |why: &str| SessionError::RuntimeGone(why.to_owned());
        let link = self.shared.runtimes.get(&handle.origin.runtime_id).map(|link| link.clone());
        let link = link.ok_or_else(|| gone("it is not attached"))?;
        if link.info().state == RuntimeState::Exited {
            return Err(gone("it has exited"));
        }
        let EndedSession { state, died } = handle.take_ended().ok_or_else(|| gone("the session has just ended"))?;
        let this = self.clone();
        let work = tokio::spawn(async move {
            // Not cut short, and nobody else opens it meanwhile, by a client that leaves.
            let _opening = opening;
            let outcome = this.reopen_with(&handle, link, state).await;
            outcome.map_err(|(state, refusal)| {
                handle.mark_ended(EndedSession { state: *state, died });
                refusal
            })
        });
        work.await.map_err(|_| SessionError::Stopping)?
    }

    async fn reopen_with(
        &self,
        handle: &SessionHandle,
        link: RuntimeLink,
        mut state: SessionStateMachine,
    ) -> Result<(), (Box<SessionStateMachine>, SessionError)> {
        let carried = state.carried().map(Box::new);
        let resume = state.native_id().map(|native| ResumeTarget { native: native.clone(), known: true, carried });
        let (opened, mailbox) = match order(&link, state.cwd().to_owned(), resume).await {
            Ok(opened) => opened,
            Err(refusal) => {
                if matches!(refusal, SessionError::RuntimeRefused { .. }) {
                    self.void(handle, &mut state, &refusal.to_string()).await;
                }
                return Err((Box::new(state), refusal));
            }
        };
        let (info, native) = (link.info(), opened.native.clone());
        let (wants, wants_rx) = mpsc::channel(MAILBOX);
        let keeper = self.keeper(handle.clone(), state.spared).knows(state.recalled());
        let task = Task::new(state, keeper, link, mailbox, wants_rx, self.shared.rules);
        let kept = self.keep_opened(task, opened, |state| {
            state.live_again(native, info.generation);
            state.belongs_to(info.instance.clone());
        });
        let (task, plan) = kept.await?;
        // Before the task runs: one that ends at once takes this away again.
        match self.shared.sessions.get_mut(&handle.origin.session_id) {
            Some(mut handle) => handle.wants = Some(wants),
            // It was deleted meanwhile: it does not come back.
            None => return Err((Box::new(task.state), SessionError::NoSession(handle.origin.session_id.clone()))),
        }
        self.run(task, plan);
        Ok(())
    }
}

/// Room for [`REOPEN_AT_ONCE`] sessions to be opened at a time. One that takes longer than [`REOPEN_WAIT`] goes on by itself,
/// and makes room for the next.
struct ReopenSlots(Arc<Semaphore>);

impl Default for ReopenSlots {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(REOPEN_AT_ONCE)))
    }
}

impl ReopenSlots {
    /// Waits for room, and begins.
    async fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let Ok(slot) = Arc::clone(&self.0).acquire_owned().await else { return };
        let mut work = tokio::spawn(work);
        tokio::spawn(async move {
            let _ = tokio::time::timeout(REOPEN_WAIT, &mut work).await;
            drop(slot);
        });
    }
}

/// Orders a session and waits for it. What the runtime says of it meanwhile is returned with it.
async fn order(
    link: &RuntimeLink,
    cwd: String,
    resume: Option<ResumeTarget>,
) -> Result<(OpeningOutput, (SessionSender, mpsc::Receiver<RuntimeMessage>)), SessionError> {
    let (inlet, mut from_runtime) = SessionSender::new();
    let command = RuntimeCommand::Open { ticket: ticket(), cwd, resume };
    let order = RuntimeOrder { command, inlet: inlet.clone(), generation: link.info().generation, pressed: None };
    let silence = if link.was_found() { FOUND_SILENCE } else { OPEN_SILENCE };
    let silent = || SessionError::RuntimeSilent(silence.as_secs());
    let room = tokio::time::timeout(silence, link.room()).await.map_err(|_| silent())?;
    room.ok_or_else(|| SessionError::RuntimeGone("it does not accept commands".into()))?.send(order);
    let (mut early, mut marks) = (Vec::new(), Vec::new());
    loop {
        let gone = |exit: RuntimeExit| {
            let why = exit.reason.unwrap_or_else(|| "it exited".into());
            let tail = exit.stderr_tail.trim_end();
            SessionError::RuntimeGone(if tail.is_empty() { why } else { format!("{why}; it wrote: {tail}") })
        };
        let next = tokio::select! {
            biased;
            next = from_runtime.recv() => next,
            // A driver that is gone answers no order; what it said before is still heard.
            () = link.ended() => from_runtime.try_recv().ok(),
            // Before it is ready its handshake has a time of its own.
            () = tokio::time::sleep(silence) => match link.info().state {
                RuntimeState::Ready => return Err(silent()),
                _ => continue,
            },
        };
        match next {
            Some(RuntimeMessage::Said(said, upto)) => {
                let mut found = None;
                marks.extend(upto);
                for said in said {
                    match said {
                        RuntimeEvent::Opened { native, drafts, how, .. } => found = Some((native, drafts, how)),
                        RuntimeEvent::NotOpened { error, .. } => return Err(refused(error)),
                        other => early.push(other),
                    }
                }
                if let Some((native, drafts, how)) = found {
                    let opened = OpeningOutput { native, drafts, how, early, upto: marks };
                    return Ok((opened, (inlet, from_runtime)));
                }
            }
            Some(RuntimeMessage::Found { .. }) => {}
            Some(RuntimeMessage::Gone(exit)) => return Err(gone(exit)),
            None => return Err(gone(RuntimeExit::default())),
        }
    }
}
