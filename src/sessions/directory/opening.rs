//! Opens sessions in a runtime: new ones, those of an earlier start, and those that another client opened. `recovery` handles the
//! sessions that outlived an earlier gateway.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, Semaphore, mpsc};
use tracing::Instrument as _;

use super::{Directory, HANDOVER_TRIES, HANDOVER_WAIT, OpenSession};
use crate::client_calls::SessionOwner;
use crate::runtime_link::{Ack, FoundSession};
use crate::session::{Persister, Task, decision_env};
use crate::session_handle::{EndedSession, MAILBOX, SessionHandle};
use crate::state::{Plan, SessionEdit, SessionStateMachine};
use crate::system::{mint, now, ticket};
use crate::{RuntimeExit, RuntimeLink, RuntimeMessage, RuntimeOrder, SessionError, SessionSender};
use plexus_dialects::{EventDraft, McpServer, OpenedAs, ResumeTarget, RuntimeCommand, RuntimeEvent};
use plexus_metrics::metrics;
use plexus_metrics::spans;
use plexus_protocol::{NativeId, Origin, Resolver, RuntimeId, RuntimeState, SessionId, SessionInfo};

/// Maximum length of the path of a session's folder, in bytes: the limit of Linux for a path.
pub(super) const CWD_MAX: usize = 4096;
/// Maximum length of a session's native id, in bytes.
const NATIVE_MAX: usize = 1024;
/// Maximum time that a runtime may be silent while it opens a session; after it opening fails. Every message about the session (a sign-in
/// request, for example) restarts the time.
const OPEN_SILENCE: Duration = Duration::from_secs(150);
/// Like [`OPEN_SILENCE`], for a runtime that an earlier gateway left: it is ready already.
const FOUND_SILENCE: Duration = Duration::from_secs(15);
/// Maximum number of sessions that are reopened at a time in one runtime.
const REOPEN_AT_ONCE: usize = 8;
/// Time that one reopening blocks the next ones; after it, it continues until the runtime responds.
const REOPEN_WAIT: Duration = Duration::from_secs(10);
/// Maximum time to resolve the symbolic links in the path of a session's folder; after it the path is used as it is.
const RESOLVE_WAIT: Duration = Duration::from_secs(1);

/// The selection of ended sessions that are reopened with their runtime.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reopening {
    /// The sessions with pending work, and those that were left open in an endpoint.
    Left,
    /// The sessions with pending work; others when the runtime reports them.
    Pending,
}

/// The runtime's messages while it opened a session.
struct OpeningOutput {
    native: NativeId,
    drafts: Vec<EventDraft>,
    how: OpenedAs,
    /// Events that arrived before the session was open.
    early: Vec<RuntimeEvent>,
    /// Acknowledgements, dropped once the events are stored.
    acks: Vec<Ack>,
}

impl Directory {
    /// Lists a session without a task, and ends it if it has not ended.
    pub(super) async fn end_session(&self, mut state: SessionStateMachine, reason: &str) {
        let handle = SessionHandle::new(&state, None);
        if state.exited().is_none() {
            let left = state.carried().is_some();
            let exit = RuntimeExit { reason: Some(reason.into()), left, ..RuntimeExit::default() };
            let mut plan = Plan::default();
            state.runtime_exited(&exit, &mut decision_env!(self.shared.rules), &mut plan);
            let mut persister =
                self.persister(handle.clone(), state.retain_from).with_stored_prompts(state.stored_prompts());
            if let Err(error) = persister.keep(&plan, &state).await {
                // A full disk does not prevent reading; the next start tries again.
                tracing::error!(session_id = %state.origin.session_id, %error, "cannot write down that a session ended");
            }
        }
        for request in state.open_requests() {
            self.shared.registry.request_sessions.insert(request.request_id.clone(), request.session_id.clone());
        }
        let id = state.origin.session_id.clone();
        self.end_tools(&id);
        handle.mark_ended(EndedSession { state, died: false });
        self.shared.registry.sessions.insert(id, handle);
    }

    /// Edits a session that has no task.
    pub(super) async fn edit_ended(
        &self,
        id: &SessionId,
        edit: SessionEdit,
        by: &Resolver,
    ) -> Result<(), SessionError> {
        let handle = self.shared.registry.sessions.get(id).map(|handle| handle.clone());
        let handle = handle.ok_or_else(|| SessionError::NoSession(id.clone()))?;
        let opening = Arc::clone(&handle.opening).lock_owned().await;
        let ended_error = || SessionError::RuntimeUnavailable("the session has just ended".into());
        let EndedSession { mut state, died } = handle.ended_state().ok_or_else(ended_error)?;
        let persister = self.persister(handle.clone(), state.retain_from).with_stored_prompts(state.stored_prompts());
        let (mut persister, by) = (persister, by.clone());
        let rules = self.shared.rules;
        // Spawned, so that it continues if the client disconnects: the stored state and the one in memory must be the same.
        let work = tokio::spawn(async move {
            let _opening = opening;
            let mut plan = Plan::default();
            state.edit(edit, &by, &decision_env!(rules), &mut plan);
            persister.keep(&plan, &state).await.map_err(|error| SessionError::from_store(&error))?;
            handle.mark_ended(EndedSession { state, died });
            Ok(())
        });
        work.await.map_err(|_| SessionError::Stopping)?
    }

    pub(super) fn persister(&self, handle: SessionHandle, busy_since: Option<plexus_protocol::Position>) -> Persister {
        Persister::new(
            self.shared.registry.log.clone(),
            handle,
            Arc::clone(&self.shared.registry.request_sessions),
            busy_since,
        )
        .charged_to(Arc::clone(&self.shared.ledger))
        .counted_in(Arc::clone(&self.shared.ceilings.book))
    }

    /// Watches a runtime: reports its changes, reopens its sessions after a restart, and opens those that other clients opened in it.
    pub(super) fn watch_runtime(&self, id: RuntimeId, link: RuntimeLink, which: Reopening) {
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
        // Sessions with pending work, or left open in an endpoint, are reopened to catch up.
        let is_waiting = |state: &SessionStateMachine| {
            state.has_pending_work() || (which == Reopening::Left && state.continues_in_endpoint())
        };
        self.reopen_later(self.ended_sessions(|runtime| *runtime == id, is_waiting));
        tokio::spawn(async move {
            let (mut ready, mut state) = (info.borrow_and_update().generation, RuntimeState::Starting);
            loop {
                this.shared.runtime_changes.send_modify(|count| *count += 1);
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
            this.shared.runtime_changes.send_modify(|count| *count += 1);
        });
    }

    // === opening ===

    /// Like [`open_session`](Self::open_session), for the gateway's own configuration.
    ///
    /// # Errors
    /// The errors of [`open_session`](Self::open_session).
    pub async fn begin(&self, open: OpenSession) -> Result<Arc<SessionInfo>, SessionError> {
        self.begin_for(open, None).await
    }

    /// Like [`begin`](Self::begin), for a session that a device owns.
    pub(super) async fn begin_for(
        &self,
        open: OpenSession,
        owner: Option<SessionOwner>,
    ) -> Result<Arc<SessionInfo>, SessionError> {
        let link = self.shared.registry.runtimes.get(&open.runtime_id).map(|link| link.clone());
        let link = link.ok_or_else(|| SessionError::NoRuntime(open.runtime_id.clone()))?;
        let info = link.info();
        if info.state == RuntimeState::Exited {
            let reason = info.problem.clone().unwrap_or_else(|| "it has exited".into());
            return Err(SessionError::RuntimeUnavailable(reason));
        }
        if info.generation == 0 {
            // Its holder has not responded yet, and may never respond.
            return Err(SessionError::RuntimeUnavailable(info.problem.clone().unwrap_or_default()));
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
        // Of several callers with the same conversation, the first asks the runtime; the others share the result.
        let turn = match &open.native_id {
            Some(native) => Some(self.turn(&open.runtime_id, native).await),
            None => None,
        };
        if let Some(refusal) = turn.as_ref().and_then(|turn| Option::clone(turn)) {
            return Err(refusal);
        }
        if let Some(native) = &open.native_id
            && let Some(open_there) = self.in_open_terminal(native)
        {
            // The conversation continues in its own terminal: two programs would write to it, and it would be listed twice.
            return self.session(&open_there).ok_or(SessionError::NoSession(open_there));
        }
        if let Some(native) = &open.native_id
            && let Some(existing) = self.find_session(&open.runtime_id, native)
        {
            // The conversation is open already: if it were opened twice, the runtime would send every event twice.
            if self.session(&existing).is_some_and(|info| info.state == plexus_protocol::SessionState::Exited) {
                self.reopen(&existing).await?;
            }
            return self.session(&existing).ok_or(SessionError::NoSession(existing));
        }
        // Spawned, so that it continues if the client disconnects: a session that the runtime opened must be listed.
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
        let session_id = SessionId::trusted(mint("s_"));
        let mut servers = self.tools_for(&session_id, &open.runtime_id);
        servers.extend(open.mcp_servers.into_iter().map(McpServer::Given));
        let project = self.shared.registry.projects.for_opening(&cwd).await;
        let resolved = resolved(&cwd).await;
        let opened = open_in_runtime(&link, cwd.clone(), resume, servers).await;
        let (opened, mailbox) = opened.inspect_err(|_| self.end_tools(&session_id))?;
        let info = link.info();
        let origin =
            Arc::new(Origin { session_id, runtime_id: open.runtime_id, dialect: info.dialect.as_str().into() });
        let native = Some(opened.native.clone());
        let mut state = SessionStateMachine::new(Arc::clone(&origin), native, cwd, open.title, info.generation, now());
        state.set_process(info.instance.clone(), info.command_folder());
        state.set_resolved_cwd(resolved);
        state.set_owner(owner);
        state.set_project(project);
        let (commands, commands_rx) = mpsc::channel(MAILBOX);
        let handle = SessionHandle::new(&state, Some(commands));
        handle.latest_activity.store(self.shared.registry.log.head().0 + 1, std::sync::atomic::Ordering::Relaxed);
        // Listed before clients can see its first event.
        self.shared.registry.sessions.insert(origin.session_id.clone(), handle.clone());
        let persister = self.persister(handle.clone(), None);
        let task = Task::new(state, persister, link, mailbox, commands_rx, self.shared.rules);
        match self.store_opened(task, opened, |_| {}).await {
            // The session was deleted meanwhile: its task does not start.
            Ok(_) if !self.shared.registry.sessions.contains_key(&origin.session_id) => {
                return Err(SessionError::NoSession(origin.session_id.clone()));
            }
            Ok((task, plan)) => self.spawn_task(task, plan),
            Err((_, refusal)) => {
                self.shared.registry.sessions.remove(&origin.session_id);
                self.end_tools(&origin.session_id);
                return Err(refusal);
            }
        }
        Ok(Arc::new(handle.info()))
    }

    /// Stores the events of opening a session. `prepare` changes the state first. Returns the task, and the plan that it has to perform
    /// first.
    async fn store_opened(
        &self,
        mut task: Task,
        opened: OpeningOutput,
        prepare: impl FnOnce(&mut SessionStateMachine),
    ) -> Result<(Task, Plan), (Box<SessionStateMachine>, SessionError)> {
        let OpeningOutput { drafts, how, early, acks, .. } = opened;
        let mut plan = Plan { processed: acks.iter().filter_map(|ack| ack.offset).max(), ..Plan::default() };
        let before = task.state.clone();
        prepare(&mut task.state);
        task.state.update_ceilings(self.shared.ceilings.book.facts(now()));
        task.state.opened(drafts, how, &mut decision_env!(self.shared.rules), &mut plan);
        for event in early {
            task.state.on_runtime_event(event, &mut decision_env!(self.shared.rules), &mut plan);
        }
        task.state.resume(&mut decision_env!(self.shared.rules), &mut plan);
        if let Err(error) = task.persister.keep(&plan, &task.state).await {
            return Err((Box::new(before), SessionError::from_store(&error)));
        }
        drop(acks);
        Ok((task, plan))
    }

    /// Runs a session's task until it ends. `plan` is stored already.
    pub(super) fn spawn_task(&self, mut task: Task, plan: Plan) {
        task.changes = Arc::clone(&self.shared.changes.changes);
        let (this, own) = (self.clone(), task.persister.handle.clone());
        let span = spans::session(&own.origin);
        let projects = self.shared.registry.projects.clone();
        let work = async move {
            let ended = task.run(plan, projects).await;
            own.surfaces.unload().await;
            this.end_tools(&own.origin.session_id);
            this.shared.ceilings.book.release(&own.origin.session_id);
            // A session that is being deleted is not listed, but is listed again if deleting fails.
            own.mark_ended(ended);
            if let Some(mut handle) = this.shared.registry.sessions.get_mut(&own.origin.session_id) {
                handle.commands = None;
            }
        };
        tokio::spawn(work.instrument(span));
    }

    /// Waits until no other caller opens this conversation. The guard holds the error of the previous caller, if it failed.
    async fn turn(&self, runtime: &RuntimeId, native: &str) -> OwnedMutexGuard<Option<SessionError>> {
        let turn = {
            let mut turns = self.shared.opening.lock();
            // Unused entries are dropped.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry((runtime.clone(), native.to_owned())).or_default())
        };
        turn.lock_owned().await
    }

    /// Returns whether the conversation to open is open already.
    pub(super) fn is_open(&self, open: &OpenSession) -> bool {
        let is_known =
            |native| self.in_open_terminal(native).is_some() || self.find_session(&open.runtime_id, native).is_some();
        open.native_id.as_deref().is_some_and(is_known)
    }

    /// Returns the session of a runtime with this native id.
    fn find_session(&self, runtime: &RuntimeId, native: &str) -> Option<SessionId> {
        let is_it = |handle: &SessionHandle| {
            let view = handle.view.load();
            handle.origin.runtime_id == *runtime && view.info.native_id.as_ref().is_some_and(|id| id.as_str() == native)
        };
        let found = self.shared.registry.sessions.iter().find(|handle| is_it(handle));
        found.map(|handle| handle.origin.session_id.clone())
    }

    /// Returns the session with this native id whose own terminal is open. Native ids are unique in all runtimes of an agent.
    pub(super) fn in_open_terminal(&self, native: &str) -> Option<SessionId> {
        let is_it = |handle: &SessionHandle| {
            let view = handle.view.load();
            view.info.linked && view.info.native_id.as_ref().is_some_and(|id| id.as_str() == native)
        };
        let found = self.shared.registry.sessions.iter().find(|handle| is_it(handle));
        found.map(|handle| handle.origin.session_id.clone())
    }

    /// Opens a session that another client opened in the runtime.
    async fn opened_elsewhere(&self, id: &RuntimeId, found: FoundSession) {
        let FoundSession { native, cwd, title } = found;
        let native_id = Some(native.as_str().to_owned());
        let open =
            OpenSession { runtime_id: id.clone(), cwd, title, native_id, program: None, mcp_servers: Vec::new() };
        if let Err(error) = self.begin(open).await {
            tracing::warn!(runtime_id = %id, native_id = %native, %error, "a discovered session could not be opened");
        }
    }

    /// Reopens the sessions that ended with the given start of a runtime.
    fn reopen_all(&self, id: &RuntimeId, generation: u64) {
        let is_one = |handle: &SessionHandle| handle.origin.runtime_id == *id && handle.died_in() == Some(generation);
        let sessions: Vec<SessionId> = {
            let handles = self.shared.registry.sessions.iter();
            handles.filter(|handle| is_one(handle)).map(|handle| handle.origin.session_id.clone()).collect()
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

    /// Reopens sessions once their tasks have ended and their runtime is ready.
    pub(super) fn reopen_later(&self, sessions: Vec<SessionId>) {
        let this = self.clone();
        sessions.iter().for_each(|session| {
            this.shared.reopening.insert(session.clone());
        });
        tokio::spawn(async move {
            let slots = ReopenSlots::default();
            for session in sessions {
                let this = this.clone();
                slots.run(async move { this.reopen_when_ended(session).await }).await;
            }
        });
    }

    async fn reopen_when_ended(&self, session: SessionId) {
        for _ in 0..HANDOVER_TRIES {
            let ending = self
                .shared
                .registry
                .sessions
                .get(&session)
                .is_some_and(|handle| handle.commands.is_some() || handle.ended_state().is_none());
            if !ending {
                break;
            }
            tokio::time::sleep(HANDOVER_WAIT).await;
        }
        let outcome = self.reopen(&session).await;
        if let Err(error) = &outcome {
            tracing::warn!(session_id = %session, %error, "a session could not be reopened");
        }
        // If the runtime was stopped again meanwhile, its next restart reopens the session.
        if !matches!(outcome, Err(SessionError::RuntimeUnavailable(_))) {
            self.shared.reopening.remove(&session);
        }
    }

    /// Reopens a session whose runtime was started again: the same conversation if the runtime can resume it, else a new one in its
    /// place. An event reports which.
    pub(crate) async fn reopen(&self, id: &SessionId) -> Result<(), SessionError> {
        let handle = self.shared.registry.sessions.get(id).map(|handle| handle.clone());
        let handle = handle.ok_or_else(|| SessionError::NoSession(id.clone()))?;
        let opening = Arc::clone(&handle.opening).lock_owned().await;
        if self.shared.registry.sessions.get(id).is_some_and(|handle| handle.commands.is_some()) {
            return Ok(());
        }
        let ended_error = |reason: &str| SessionError::RuntimeUnavailable(reason.to_owned());
        let link = self.shared.registry.runtimes.get(&handle.origin.runtime_id).map(|link| link.clone());
        let link = link.ok_or_else(|| ended_error("it is not attached"))?;
        if link.info().state == RuntimeState::Exited {
            return Err(ended_error("it has exited"));
        }
        let EndedSession { state, died } =
            handle.take_ended().ok_or_else(|| ended_error("the session has just ended"))?;
        let this = self.clone();
        let work = tokio::spawn(async move {
            // Spawned, so that it continues and holds the lock if the client disconnects.
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
        let servers = self.tools_for(&handle.origin.session_id, &handle.origin.runtime_id);
        let (opened, mailbox) = match open_in_runtime(&link, state.cwd().to_owned(), resume, servers).await {
            Ok(opened) => opened,
            Err(refusal) => {
                self.end_tools(&handle.origin.session_id);
                if matches!(refusal, SessionError::RuntimeRefused { .. } | SessionError::OneSession(_)) {
                    self.abandon_session(handle, &mut state, &refusal.to_string()).await;
                }
                return Err((Box::new(state), refusal));
            }
        };
        let (info, native) = (link.info(), opened.native.clone());
        let project = self.shared.registry.projects.for_opening(state.cwd()).await;
        let (commands, commands_rx) = mpsc::channel(MAILBOX);
        let persister = self.persister(handle.clone(), state.retain_from).with_stored_prompts(state.stored_prompts());
        let task = Task::new(state, persister, link, mailbox, commands_rx, self.shared.rules);
        let stored = self.store_opened(task, opened, |state| {
            state.mark_live(native, info.generation);
            state.set_process(info.instance.clone(), info.command_folder());
            state.set_project(project);
        });
        let (task, plan) = stored.await?;
        // Before the task runs: a task that ends at once clears `commands` again.
        match self.shared.registry.sessions.get_mut(&handle.origin.session_id) {
            Some(mut handle) => handle.commands = Some(commands),
            // The session was deleted meanwhile and stays deleted.
            None => return Err((Box::new(task.state), SessionError::NoSession(handle.origin.session_id.clone()))),
        }
        self.spawn_task(task, plan);
        Ok(())
    }
}

/// Returns the path of a folder without symbolic links; `None` if it cannot be read within [`RESOLVE_WAIT`].
async fn resolved(cwd: &str) -> Option<String> {
    let found = tokio::time::timeout(RESOLVE_WAIT, tokio::fs::canonicalize(cwd)).await.ok()?.ok()?;
    found.into_os_string().into_string().ok()
}

/// A limit of [`REOPEN_AT_ONCE`] sessions that are reopened at a time. One that takes longer than [`REOPEN_WAIT`] continues without its
/// slot.
struct ReopenSlots(Arc<Semaphore>);

impl Default for ReopenSlots {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(REOPEN_AT_ONCE)))
    }
}

impl ReopenSlots {
    /// Waits for a slot, and spawns the work.
    async fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let Ok(slot) = Arc::clone(&self.0).acquire_owned().await else { return };
        let mut work = tokio::spawn(work);
        tokio::spawn(async move {
            let _ = tokio::time::timeout(REOPEN_WAIT, &mut work).await;
            drop(slot);
        });
    }
}

/// Has the runtime open a session, and waits for it. Returns what the runtime sent meanwhile, and the session's channel.
async fn open_in_runtime(
    link: &RuntimeLink,
    cwd: String,
    resume: Option<ResumeTarget>,
    mcp_servers: Vec<McpServer>,
) -> Result<(OpeningOutput, (SessionSender, mpsc::Receiver<RuntimeMessage>)), SessionError> {
    let (sender, mut from_runtime) = SessionSender::new();
    let command = RuntimeCommand::Open { ticket: ticket(), cwd, resume, mcp_servers };
    let order = RuntimeOrder { command, sender: sender.clone(), generation: link.info().generation, answered_at: None };
    let silence = if link.was_found() { FOUND_SILENCE } else { OPEN_SILENCE };
    let silent_error = || SessionError::RuntimeSilent(silence.as_secs());
    let permit = tokio::time::timeout(silence, link.reserve()).await.map_err(|_| silent_error())?;
    permit.ok_or_else(|| SessionError::RuntimeUnavailable("it does not accept commands".into()))?.send(order);
    let (mut early, mut acks) = (Vec::new(), Vec::new());
    loop {
        let ended_error = |exit: RuntimeExit| {
            let reason = exit.reason.unwrap_or_else(|| "it exited".into());
            let tail = exit.stderr_tail.trim_end();
            SessionError::RuntimeUnavailable(if tail.is_empty() {
                reason
            } else {
                format!("{reason}; it wrote: {tail}")
            })
        };
        let next = tokio::select! {
            biased;
            next = from_runtime.recv() => next,
            // The driver has ended and will not respond; what it sent before is still read.
            () = link.ended() => from_runtime.try_recv().ok(),
            // Until the runtime is ready its handshake has a timeout of its own.
            () = tokio::time::sleep(silence) => match link.info().state {
                RuntimeState::Ready => return Err(silent_error()),
                _ => continue,
            },
        };
        match next {
            Some(RuntimeMessage::Events(events, ack)) => {
                let mut opened = None;
                acks.extend(ack);
                for event in events {
                    match event {
                        RuntimeEvent::Opened { native, drafts, how, .. } => opened = Some((native, drafts, how)),
                        RuntimeEvent::NotOpened { error, .. } => return Err(SessionError::from_runtime(error)),
                        other => early.push(other),
                    }
                }
                if let Some((native, drafts, how)) = opened {
                    let opened = OpeningOutput { native, drafts, how, early, acks };
                    return Ok((opened, (sender, from_runtime)));
                }
            }
            Some(RuntimeMessage::Found { .. }) => {}
            Some(RuntimeMessage::Exited(exit)) => return Err(ended_error(exit)),
            None => return Err(ended_error(RuntimeExit::default())),
        }
    }
}
