//! How sessions come to life: opened in a runtime, opened again in its next start, taken over from an earlier gateway,
//! found where somebody else had opened them.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::directory::{PAGE, PARKED_IN, PARKING};
use super::link::{Adopted, Found, Left, Upto};
use super::session::{Handle, Keeper, MAILBOX, Parked, Task, env, mint, now, refused, storage, ticket};
use super::state::{Edit, Plan, State};
use super::{Directory, Exit, Filter, FromRuntime, Inlet, Link, OpenSession, Order, Refusal};
use crate::dialects::{Command, Draft, Opening, Resume, Said};
use crate::metrics::metrics;
use crate::model::{
    NativeId, Origin, Request, RequestState, Resolver, RuntimeId, RuntimeState, SessionId, SessionInfo,
};
use crate::store::{Mark, SessionEntry, StoreError};

/// A session of an earlier gateway whose runtime outlived it.
struct Survivor {
    state: State,
    mark: Option<Mark>,
    busy_since: Option<crate::model::Position>,
}

/// What a runtime said while it opened a session.
struct Opened {
    native: NativeId,
    drafts: Vec<Draft>,
    how: Opening,
    early: Vec<Said>,
    /// Let go once all of it is kept.
    upto: Vec<Upto>,
}

impl Directory {
    /// Finds the sessions of earlier gateways. Those in a runtime that outlived its gateway go on; the others are closed
    /// properly, if their gateway did not live to do that, until their runtime is there again.
    pub(super) async fn recover(&self) -> Result<(), StoreError> {
        let log = &self.shared.log;
        let left = self.shared.launcher.left().await;
        let mut left: HashMap<RuntimeId, Left> = left.into_iter().map(|left| (left.spec.id.clone(), left)).collect();
        let mut survivors: HashMap<RuntimeId, Vec<Survivor>> = HashMap::new();
        for entry in log.store().sessions()? {
            let Some(state) = self.restored(&entry)? else { continue };
            let lives = |left: &Left| left.generation == state.generation() && state.native_id().is_some();
            if state.exited().is_none() && left.get(&state.origin.runtime_id).is_some_and(lives) {
                let survivor = Survivor { state, mark: entry.mark, busy_since: entry.row.spare_from };
                survivors.entry(survivor.state.origin.runtime_id.clone()).or_default().push(survivor);
            } else {
                self.park(state, "the gateway stopped, and the agent with it").await;
            }
        }
        for (id, left) in left.drain() {
            let survivors = survivors.remove(&id).unwrap_or_default();
            self.take_over(left, survivors).await;
        }
        Ok(())
    }

    /// A session as its row, its requests and its events say.
    fn restored(&self, entry: &SessionEntry) -> Result<Option<State>, StoreError> {
        let log = &self.shared.log;
        let row = &entry.row;
        let origin = Arc::new(Origin {
            session_id: row.session_id.clone(),
            runtime_id: row.runtime_id.clone(),
            dialect: row.dialect.as_str().into(),
        });
        let mut since = Vec::new();
        let filter = Filter::session(origin.session_id.clone());
        let mut after = row.as_of;
        while after < entry.last {
            let page = log.read_blocking(&filter, after, PAGE)?;
            since.extend(page.events.iter().map(|event| (event.run_id.clone(), event.seq)));
            if page.next <= after {
                break;
            }
            after = page.next;
        }
        let open = log.store().requests(Some(RequestState::Open), Some(&origin.session_id), usize::MAX >> 1)?;
        let open: Vec<Request> = open.iter().filter_map(|row| serde_json::from_slice(&row.body).ok()).collect();
        let since = since.iter().map(|(run_id, seq)| (run_id, *seq));
        let clocks = (now(), std::time::Instant::now());
        match State::restore(Arc::clone(&origin), &row.state, open, since, clocks) {
            Ok(state) => Ok(Some(state)),
            Err(error) => {
                tracing::error!(session_id = %origin.session_id, %error, "a session's row cannot be read; its events can");
                Ok(None)
            }
        }
    }

    /// Puts a session in the list that has no task: it ended, or ends now.
    async fn park(&self, mut state: State, why: &str) {
        let handle = Handle::of(&state, None);
        if state.exited().is_none() {
            let exit = Exit { reason: Some(why.into()), stopped: false, ..Exit::default() };
            let mut plan = Plan::default();
            state.gone(&exit, &mut env!(self.shared.rules), &mut plan);
            let mut keeper = self.keeper(handle.clone(), None);
            if let Err(error) = keeper.keep(&plan, &state).await {
                // Reading goes on with a full disk; the next start tries again.
                tracing::error!(session_id = %state.origin.session_id, %error, "cannot write down that a session ended");
            }
        }
        let id = state.origin.session_id.clone();
        handle.park(Parked { state, died: false });
        self.shared.sessions.insert(id, handle);
    }

    /// Changes a session that has no task.
    pub(super) async fn edit_parked(&self, id: &SessionId, edit: Edit, by: &Resolver) -> Result<(), Refusal> {
        let handle = self.shared.sessions.get(id).map(|handle| handle.clone());
        let handle = handle.ok_or_else(|| Refusal::NoSession(id.clone()))?;
        let opening = Arc::clone(&handle.opening).lock_owned().await;
        let gone = || Refusal::RuntimeGone("the session has just ended".into());
        let Parked { mut state, died } = handle.parked_now().ok_or_else(gone)?;
        let (mut keeper, by) = (self.keeper(handle.clone(), None), by.clone());
        let rules = self.shared.rules;
        // Not cut short by a client that leaves: what is kept must be what is parked.
        let work = tokio::spawn(async move {
            let _opening = opening;
            let mut plan = Plan::default();
            state.edit(edit, &by, &env!(rules), &mut plan);
            keeper.keep(&plan, &state).await.map_err(|error| storage(&error))?;
            handle.park(Parked { state, died });
            Ok(())
        });
        work.await.map_err(|_| Refusal::Stopping)?
    }

    fn keeper(&self, handle: Handle, busy_since: Option<crate::model::Position>) -> Keeper {
        Keeper::new(self.shared.log.clone(), handle, Arc::clone(&self.shared.asked), busy_since)
    }

    /// Goes on with a runtime that outlived an earlier gateway, and with its sessions.
    async fn take_over(&self, left: Left, survivors: Vec<Survivor>) {
        let id = left.spec.id.clone();
        let (mut adopted, mut mailboxes) = (Vec::new(), Vec::new());
        for Survivor { state, mark, .. } in &survivors {
            let (inlet, from_runtime) = Inlet::new();
            let Some(native) = state.native_id().cloned() else { continue };
            let (asks, prompt) = state.pending();
            let heard = mark.filter(|mark| mark.generation == left.generation).map_or(0, |mark| mark.offset);
            adopted.push(Adopted { native, inlet: inlet.clone(), heard, asks, prompt });
            mailboxes.push((inlet, from_runtime));
        }
        let link = match self.shared.launcher.adopt(&id, adopted) {
            Ok(link) => link,
            Err(why) => {
                tracing::error!(runtime_id = %id, %why, "a runtime could not be taken over");
                for survivor in survivors {
                    self.park(survivor.state, &why).await;
                }
                return;
            }
        };
        tracing::info!(runtime_id = %id, sessions = survivors.len(), "found a runtime again");
        self.shared.runtimes.insert(id.clone(), link.clone());
        self.shared.specs.insert(id.clone(), left.spec);
        self.attend(id, link.clone());
        for (survivor, mailbox) in survivors.into_iter().zip(mailboxes) {
            let (wants, wants_rx) = mpsc::channel(MAILBOX);
            let handle = Handle::of(&survivor.state, Some(wants));
            for request in survivor.state.open_requests() {
                self.shared.asked.insert(request.request_id.clone(), request.session_id.clone());
            }
            let keeper = self.keeper(handle.clone(), survivor.busy_since);
            self.shared.sessions.insert(survivor.state.origin.session_id.clone(), handle);
            let task = Task::new(survivor.state, keeper, link.clone(), mailbox, wants_rx, self.shared.rules);
            self.run(task, Plan::default());
        }
    }

    /// Watches a runtime: tells of its changes, opens its sessions again when it was started again, opens those that
    /// others opened in it.
    pub(super) fn attend(&self, id: RuntimeId, link: Link) {
        let this = self.clone();
        let mut info = link.watch();
        let mut found = link.take_found();
        tokio::spawn(async move {
            let (mut ready, mut state) = (info.borrow_and_update().generation, RuntimeState::Starting);
            loop {
                this.shared.changed.send_modify(|count| *count += 1);
                let changed = async {
                    match &mut found {
                        Some(rx) => tokio::select! {
                            changed = info.changed() => changed.map(|()| None),
                            found = rx.recv() => Ok(found),
                        },
                        None => info.changed().await.map(|()| None),
                    }
                };
                match changed.await {
                    Ok(Some(found)) => this.opened_elsewhere(&id, found).await,
                    Ok(None) => {}
                    Err(_) => break,
                }
                let now = info.borrow_and_update().clone();
                if now.state == RuntimeState::Exited && state != RuntimeState::Exited {
                    metrics().runtime_exits.inc();
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
    pub async fn begin(&self, open: OpenSession) -> Result<Arc<SessionInfo>, Refusal> {
        let link = self.shared.runtimes.get(&open.runtime_id).map(|link| link.clone());
        let link = link.ok_or_else(|| Refusal::NoRuntime(open.runtime_id.clone()))?;
        let info = link.info();
        if info.state == RuntimeState::Exited {
            let why = info.problem.clone().unwrap_or_else(|| "it has exited".into());
            return Err(Refusal::RuntimeGone(why));
        }
        let cwd = open.cwd.clone().unwrap_or_else(|| info.cwd.clone());
        if !cwd.starts_with('/') {
            return Err(Refusal::Invalid(format!("cwd must be an absolute path, not {cwd:?}")));
        }
        if let Some(native) = &open.native_id
            && let Some(known) = self.known(&open.runtime_id, native)
        {
            // It is ours already: opened twice, a runtime would say everything twice.
            if self.session(&known).is_some_and(|info| info.state == crate::model::SessionState::Exited) {
                self.reopen(&known).await?;
            }
            return self.session(&known).ok_or(Refusal::NoSession(known));
        }
        // The rest is not cut short by a client that leaves: a session that the runtime opened is one of ours.
        let this = self.clone();
        let work = tokio::spawn(async move { this.begin_with(open, link, cwd).await });
        work.await.map_err(|_| Refusal::Stopping)?
    }

    async fn begin_with(&self, open: OpenSession, link: Link, cwd: String) -> Result<Arc<SessionInfo>, Refusal> {
        let resume = open.native_id.map(|native| Resume { native: native.as_str().into(), known: false });
        let (opened, mailbox) = order(&link, cwd.clone(), resume).await?;
        let info = link.info();
        let origin = Arc::new(Origin {
            session_id: SessionId::trusted(mint("s_")),
            runtime_id: open.runtime_id,
            dialect: info.dialect.as_str().into(),
        });
        let native = Some(opened.native.clone());
        let state = State::new(Arc::clone(&origin), native, cwd, open.title, info.generation, now());
        let (wants, wants_rx) = mpsc::channel(MAILBOX);
        let handle = Handle::of(&state, Some(wants));
        // In the list before its first event can be seen.
        self.shared.sessions.insert(origin.session_id.clone(), handle.clone());
        let keeper = self.keeper(handle.clone(), None);
        let task = Task::new(state, keeper, link, mailbox, wants_rx, self.shared.rules);
        match self.keep_opened(task, opened, |_| {}).await {
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
        opened: Opened,
        first: impl FnOnce(&mut State),
    ) -> Result<(Task, Plan), (Box<State>, Refusal)> {
        let Opened { drafts, how, early, upto, .. } = opened;
        let mut plan = Plan { heard: upto.iter().map(|upto| upto.offset).max(), ..Plan::default() };
        let before = task.state.clone();
        first(&mut task.state);
        task.state.opened(drafts, how, &env!(self.shared.rules), &mut plan);
        for said in early {
            task.state.said(said, &mut env!(self.shared.rules), &mut plan);
        }
        if let Err(error) = task.keeper.keep(&plan, &task.state).await {
            return Err((Box::new(before), storage(&error)));
        }
        drop(upto);
        Ok((task, plan))
    }

    /// Runs a session's task to its end. `plan` is kept already.
    fn run(&self, task: Task, plan: Plan) {
        let (shared, id) = (Arc::clone(&self.shared), task.state.origin.session_id.clone());
        tokio::spawn(async move {
            let parked = task.run(plan).await;
            if let Some(mut handle) = shared.sessions.get_mut(&id) {
                handle.wants = None;
                handle.park(parked);
            }
        });
    }

    /// The session with this name in this runtime, if there is one.
    fn known(&self, runtime: &RuntimeId, native: &str) -> Option<SessionId> {
        let of = |handle: &Handle| {
            let view = handle.view.load();
            handle.origin.runtime_id == *runtime && view.info.native_id.as_ref().is_some_and(|id| id.as_str() == native)
        };
        let found = self.shared.sessions.iter().find(|handle| of(handle));
        found.map(|handle| handle.origin.session_id.clone())
    }

    /// Opens a session that somebody else opened in the runtime.
    async fn opened_elsewhere(&self, id: &RuntimeId, found: Found) {
        let Found { native, cwd, title } = found;
        let native_id = Some(native.as_str().to_owned());
        let open = OpenSession { runtime_id: id.clone(), cwd, title, native_id };
        if let Err(error) = self.begin(open).await {
            tracing::warn!(runtime_id = %id, native_id = %native, %error, "a session that was found could not be opened");
        }
    }

    /// Opens the sessions again that lived in an earlier start of a runtime.
    fn reopen_all(&self, id: &RuntimeId, generation: u64) {
        let of = |handle: &Handle| handle.origin.runtime_id == *id && handle.died_in() == Some(generation);
        let sessions: Vec<SessionId> = {
            let handles = self.shared.sessions.iter();
            handles.filter(|handle| of(handle)).map(|handle| handle.origin.session_id.clone()).collect()
        };
        let this = self.clone();
        tokio::spawn(async move {
            for session in sessions {
                if let Err(error) = this.reopen(&session).await {
                    tracing::warn!(session_id = %session, %error, "a session could not be opened again");
                }
            }
        });
    }

    /// Opens sessions again, one after the other, as soon as their tasks have ended and their runtime is ready.
    pub(super) fn open_again(&self, sessions: Vec<SessionId>) {
        let this = self.clone();
        sessions.iter().for_each(|session| {
            this.shared.reopening.insert(session.clone());
        });
        tokio::spawn(async move {
            for session in sessions {
                for _ in 0..PARKING {
                    let ending = this
                        .shared
                        .sessions
                        .get(&session)
                        .is_some_and(|handle| handle.wants.is_some() || handle.parked_now().is_none());
                    if !ending {
                        break;
                    }
                    tokio::time::sleep(PARKED_IN).await;
                }
                let outcome = this.reopen(&session).await;
                if let Err(error) = &outcome {
                    tracing::warn!(session_id = %session, %error, "a session could not be opened again");
                }
                // One that was stopped under it again is opened by whoever did that.
                if !matches!(outcome, Err(Refusal::RuntimeGone(_))) {
                    this.shared.reopening.remove(&session);
                }
            }
        });
    }

    /// Opens a session again whose runtime has been started again since: the same conversation where the runtime can,
    /// else a new one in its place, and an event says which.
    pub(super) async fn reopen(&self, id: &SessionId) -> Result<(), Refusal> {
        let handle = self.shared.sessions.get(id).map(|handle| handle.clone());
        let handle = handle.ok_or_else(|| Refusal::NoSession(id.clone()))?;
        let opening = Arc::clone(&handle.opening).lock_owned().await;
        if self.shared.sessions.get(id).is_some_and(|handle| handle.wants.is_some()) {
            return Ok(());
        }
        let gone = |why: &str| Refusal::RuntimeGone(why.to_owned());
        let link = self.shared.runtimes.get(&handle.origin.runtime_id).map(|link| link.clone());
        let link = link.ok_or_else(|| gone("it is not attached"))?;
        if link.info().state == RuntimeState::Exited {
            return Err(gone("it has exited"));
        }
        let Parked { state, died } = handle.unpark().ok_or_else(|| gone("the session has just ended"))?;
        let this = self.clone();
        let work = tokio::spawn(async move {
            // Not cut short, and nobody else opens it meanwhile, by a client that leaves.
            let _opening = opening;
            let outcome = this.reopen_with(&handle, link, state).await;
            outcome.map_err(|(state, refusal)| {
                handle.park(Parked { state: *state, died });
                refusal
            })
        });
        work.await.map_err(|_| Refusal::Stopping)?
    }

    async fn reopen_with(&self, handle: &Handle, link: Link, state: State) -> Result<(), (Box<State>, Refusal)> {
        let resume = state.native_id().map(|native| Resume { native: native.clone(), known: true });
        let (opened, mailbox) = match order(&link, state.cwd().to_owned(), resume).await {
            Ok(opened) => opened,
            Err(refusal) => return Err((Box::new(state), refusal)),
        };
        let (generation, native) = (link.info().generation, opened.native.clone());
        let (wants, wants_rx) = mpsc::channel(MAILBOX);
        let keeper = self.keeper(handle.clone(), None);
        let task = Task::new(state, keeper, link, mailbox, wants_rx, self.shared.rules);
        let (task, plan) = self.keep_opened(task, opened, |state| state.live_again(native, generation)).await?;
        // Before the task runs: one that ends at once takes this away again.
        if let Some(mut handle) = self.shared.sessions.get_mut(&handle.origin.session_id) {
            handle.wants = Some(wants);
        }
        self.run(task, plan);
        Ok(())
    }
}

/// Orders a session and waits for it. What the runtime says of it meanwhile is returned with it.
async fn order(
    link: &Link,
    cwd: String,
    resume: Option<Resume>,
) -> Result<(Opened, (Inlet, mpsc::Receiver<FromRuntime>)), Refusal> {
    let (inlet, mut from_runtime) = Inlet::new();
    let command = Command::Open { ticket: ticket(), cwd, resume };
    let order = Order { command, inlet: inlet.clone(), generation: link.info().generation };
    link.order(order).map_err(|_| Refusal::RuntimeGone("it takes no orders".into()))?;
    let (mut early, mut marks) = (Vec::new(), Vec::new());
    loop {
        let gone = |exit: Exit| {
            let why = exit.reason.unwrap_or_else(|| "it exited".into());
            let tail = exit.stderr_tail.trim_end();
            Refusal::RuntimeGone(if tail.is_empty() { why } else { format!("{why}; it wrote: {tail}") })
        };
        let next = tokio::select! {
            biased;
            next = from_runtime.recv() => next,
            // A driver that is gone answers no order; what it said before is still heard.
            () = link.ended() => from_runtime.try_recv().ok(),
        };
        match next {
            Some(FromRuntime::Said(said, upto)) => {
                let mut found = None;
                marks.extend(upto);
                for said in said {
                    match said {
                        Said::Opened { native, drafts, how, .. } => found = Some((native, drafts, how)),
                        Said::NotOpened { error, .. } => return Err(refused(error)),
                        other => early.push(other),
                    }
                }
                if let Some((native, drafts, how)) = found {
                    let opened = Opened { native, drafts, how, early, upto: marks };
                    return Ok((opened, (inlet, from_runtime)));
                }
            }
            Some(FromRuntime::Found { .. }) => {}
            Some(FromRuntime::Gone(exit)) => return Err(gone(exit)),
            None => return Err(gone(Exit::default())),
        }
    }
}
