//! All sessions and runtimes: the one door to the heart.

use std::sync::Arc;

use dashmap::DashMap;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};

use super::session::{Handle, Keeper, MAILBOX, Task, Want, env, mint, now, refused, storage, ticket};
use super::snapshot::Fold;
use super::state::{self, Plan, State};
use super::{Exit, Filter, FromRuntime, Inlet, Launcher, Link, Log, Order, Refusal, Snapshot};
use crate::auth::{Admin, Approve, Permit, Prompt};
use crate::dialects::{Command, Said};
use crate::metrics::metrics;
use crate::model::{
    Answer, NativeId, Origin, Position, Receipt, Request, RequestId, RequestState, RunId, RunInfo, RuntimeId,
    RuntimeInfo, RuntimeSpec, RuntimeState, SessionId, SessionInfo, Timestamp,
};
use crate::store::{Hit, ReadLimit, StoreError, Trim};

/// Events that one read of a fold brings.
const PAGE: ReadLimit = ReadLimit { events: 8192, bytes: 8 << 20 };
/// Requests that one listing shows.
const LISTED: usize = 1000;
/// Blocks of one session that one round of retention looks at.
const BLOCKS: usize = 10_000;

/// All sessions and runtimes. Cheap to clone.
#[derive(Clone)]
pub struct Directory {
    shared: Arc<Shared>,
}

struct Shared {
    log: Log,
    launcher: Arc<dyn Launcher>,
    rules: Rules,
    sessions: DashMap<SessionId, Handle>,
    asked: Arc<DashMap<RequestId, SessionId>>,
    runtimes: DashMap<RuntimeId, Link>,
    changed: watch::Sender<u64>,
}

/// What the gateway's owner decided.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A request closes by itself after so many milliseconds.
    pub expire_ms: Option<u64>,
    /// Prompts that wait for their turn in one session at most; one more is refused.
    pub queue: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self { expire_ms: None, queue: 64 }
    }
}

/// How long events are kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Retention {
    /// Events older than this go, in milliseconds.
    pub max_age_ms: Option<u64>,
    /// The oldest events go while all of them weigh more than this, in bytes.
    pub max_bytes: Option<u64>,
}

/// A session to open.
#[derive(Clone, Debug)]
pub struct OpenSession {
    /// The runtime.
    pub runtime_id: RuntimeId,
    /// The folder it works in, absolute; the runtime's own if absent.
    pub cwd: Option<String>,
    /// Its title; taken from the first prompt if absent.
    pub title: Option<String>,
    /// A conversation that the runtime has already.
    pub native_id: Option<String>,
}

/// A prompt that was taken.
#[derive(Clone, Debug, Serialize)]
pub struct Accepted {
    /// The run it is, or will be.
    pub run_id: RunId,
    /// Whether it waits for its turn.
    pub queued: bool,
    /// How many runs are before it.
    pub ahead: usize,
}

impl Directory {
    /// Opens the directory over a log. Sessions whose gateway died under them are closed properly first: their requests
    /// become `orphaned`, their runs end, and events say so.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open(log: Log, launcher: Arc<dyn Launcher>, rules: Rules) -> Result<Self, StoreError> {
        let directory = Self {
            shared: Arc::new(Shared {
                log,
                launcher,
                rules,
                sessions: DashMap::new(),
                asked: Arc::default(),
                runtimes: DashMap::new(),
                changed: watch::Sender::new(0),
            }),
        };
        directory.recover().await?;
        Ok(directory)
    }

    async fn recover(&self) -> Result<(), StoreError> {
        let log = &self.shared.log;
        for entry in log.store().sessions()? {
            let row = entry.row;
            let origin = Arc::new(Origin {
                session_id: row.session_id.clone(),
                runtime_id: row.runtime_id,
                dialect: row.dialect.into(),
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
            let open = open.iter().filter_map(|row| serde_json::from_slice(&row.body).ok()).collect();
            let since = since.iter().map(|(run_id, seq)| (run_id, *seq));
            let mut state = match State::restore(Arc::clone(&origin), &row.state, open, since) {
                Ok(state) => state,
                Err(error) => {
                    tracing::error!(session_id = %origin.session_id, %error, "a session's row cannot be read; its events can");
                    continue;
                }
            };
            let handle = Handle::of(&state, None);
            if state.exited().is_none() {
                let exit = Exit {
                    reason: Some("the gateway stopped, and the agent with it".into()),
                    stopped: false,
                    ..Exit::default()
                };
                let mut plan = Plan::default();
                state.gone(&exit, &mut env!(self.shared.rules), &mut plan);
                let mut keeper = Keeper::new(log.clone(), handle.clone(), Arc::clone(&self.shared.asked));
                if let Err(error) = keeper.keep(&plan, &state).await {
                    // Reading goes on with a full disk; the next start tries again.
                    tracing::error!(session_id = %origin.session_id, %error, "cannot write down that a session ended");
                }
            }
            self.shared.sessions.insert(origin.session_id.clone(), handle);
        }
        Ok(())
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    // === seeing ===

    /// Every session, the one with the latest news first.
    pub fn sessions(&self) -> Vec<Arc<SessionInfo>> {
        let mut all: Vec<_> = self.shared.sessions.iter().map(|handle| Arc::new(handle.info())).collect();
        all.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then_with(|| a.session_id.cmp(&b.session_id)));
        all
    }

    /// One session.
    pub fn session(&self, id: &SessionId) -> Option<Arc<SessionInfo>> {
        self.shared.sessions.get(id).map(|handle| Arc::new(handle.info()))
    }

    /// Every runtime, by name.
    pub fn runtimes(&self) -> Vec<Arc<RuntimeInfo>> {
        let mut all: Vec<_> = self.shared.runtimes.iter().map(|link| link.info()).collect();
        all.sort_by(|a, b| a.runtime_id.cmp(&b.runtime_id));
        all
    }

    /// One runtime.
    pub fn runtime(&self, id: &RuntimeId) -> Option<Arc<RuntimeInfo>> {
        self.shared.runtimes.get(id).map(|link| link.info())
    }

    /// Told (a counter) whenever any runtime stands differently.
    pub fn runtimes_changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Requests that are open now, oldest first, those the filter lets through. Never older than the log.
    pub fn open_requests(&self, filter: &Filter) -> Vec<Arc<Request>> {
        let mut open: Vec<_> = self.seen(filter).flat_map(|handle| handle.view.load().open.clone()).collect();
        open.sort_by_key(|request| request.opened_at);
        open
    }

    /// Runs under way or queued, those the filter lets through. Never older than the log.
    pub fn runs(&self, filter: &Filter) -> Vec<RunInfo> {
        self.seen(filter).flat_map(|handle| handle.view.load().runs.clone()).collect()
    }

    fn seen(&self, filter: &Filter) -> impl Iterator<Item = Handle> {
        let handles: Vec<Handle> = self
            .shared
            .sessions
            .iter()
            .filter(|handle| filter.takes(&handle.origin))
            .map(|handle| handle.clone())
            .collect();
        handles.into_iter()
    }

    // === runtimes ===

    /// Starts a runtime and returns at once; its progress shows in [`runtime`](Self::runtime).
    ///
    /// # Errors
    /// [`Refusal::RuntimeExists`], [`Refusal::Invalid`].
    pub async fn start_runtime(&self, _permit: &Permit<Admin>, spec: RuntimeSpec) -> Result<Arc<RuntimeInfo>, Refusal> {
        self.launch(spec)
    }

    /// As [`start_runtime`](Self::start_runtime), for the gateway's own configuration.
    ///
    /// # Errors
    /// As [`start_runtime`](Self::start_runtime).
    pub fn launch(&self, spec: RuntimeSpec) -> Result<Arc<RuntimeInfo>, Refusal> {
        let id = spec.id.clone();
        let link = match self.shared.runtimes.entry(id.clone()) {
            dashmap::Entry::Occupied(there) if there.get().info().state != RuntimeState::Exited => {
                return Err(Refusal::RuntimeExists(id));
            }
            there => {
                let link = self.shared.launcher.launch(spec).map_err(Refusal::Invalid)?;
                there.insert(link.clone());
                link
            }
        };
        let (mut info, shared) = (link.watch(), Arc::clone(&self.shared));
        tokio::spawn(async move {
            loop {
                shared.changed.send_modify(|count| *count += 1);
                if info.changed().await.is_err() {
                    break;
                }
                if info.borrow_and_update().state == RuntimeState::Exited {
                    metrics().runtime_exits.inc();
                }
            }
            shared.changed.send_modify(|count| *count += 1);
        });
        Ok(link.info())
    }

    /// Stops a runtime for good and forgets its name: stdin closed, TERM, KILL, reaped. Returns once it is gone.
    ///
    /// # Errors
    /// [`Refusal::NoRuntime`].
    pub async fn stop_runtime(&self, _permit: &Permit<Admin>, id: &RuntimeId) -> Result<(), Refusal> {
        let link = self.shared.runtimes.get(id).map(|link| link.clone());
        let link = link.ok_or_else(|| Refusal::NoRuntime(id.clone()))?;
        let mut info = link.watch();
        link.stop();
        while info.borrow_and_update().state != RuntimeState::Exited {
            if info.changed().await.is_err() {
                break;
            }
        }
        self.shared.runtimes.remove_if(id, |_, there| there.info().state == RuntimeState::Exited);
        self.shared.changed.send_modify(|count| *count += 1);
        Ok(())
    }

    // === sessions ===

    /// Opens a session; waits until the runtime is ready and has opened its own.
    ///
    /// # Errors
    /// [`Refusal::NoRuntime`], [`Refusal::RuntimeGone`], [`Refusal::RuntimeRefused`], [`Refusal::Storage`],
    /// [`Refusal::Invalid`].
    pub async fn open_session(&self, _permit: &Permit<Prompt>, open: OpenSession) -> Result<Arc<SessionInfo>, Refusal> {
        self.begin(open).await
    }

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
        if open.native_id.is_some() {
            let why = "this gateway opens new sessions only: leave native_id out";
            return Err(Refusal::Invalid(why.into()));
        }
        let cwd = open.cwd.unwrap_or_else(|| info.cwd.clone());
        if !cwd.starts_with('/') {
            return Err(Refusal::Invalid(format!("cwd must be an absolute path, not {cwd:?}")));
        }
        // The rest is not cut short by a client that leaves: a session that the runtime opened is one of ours.
        let this = self.clone();
        let work = tokio::spawn(async move { this.begin_with(open.runtime_id, link, cwd, open.title).await });
        work.await.map_err(|_| Refusal::Stopping)?
    }

    async fn begin_with(
        &self,
        runtime_id: RuntimeId,
        link: Link,
        cwd: String,
        title: Option<String>,
    ) -> Result<Arc<SessionInfo>, Refusal> {
        let (inlet, mut from_runtime) = Inlet::new();
        let command = Command::Open { ticket: ticket(), cwd: cwd.clone(), resume: None };
        let order = Order { command, inlet: inlet.clone(), generation: link.info().generation };
        link.order(order).map_err(|_| Refusal::RuntimeGone("it takes no orders".into()))?;
        let (native, drafts, early) = opened(&mut from_runtime).await?;
        let info = link.info();
        let origin = Arc::new(Origin {
            session_id: SessionId::trusted(mint("s_")),
            runtime_id,
            dialect: info.dialect.as_str().into(),
        });
        let mut state = State::new(Arc::clone(&origin), Some(native), cwd, title, info.generation, now());
        let (wants, wants_rx) = mpsc::channel(MAILBOX);
        let handle = Handle::of(&state, Some(wants));
        let mut keeper = Keeper::new(self.shared.log.clone(), handle.clone(), Arc::clone(&self.shared.asked));
        let mut plan = Plan::default();
        state.opened(drafts, &env!(self.shared.rules), &mut plan);
        // In the list before its first event can be seen.
        self.shared.sessions.insert(origin.session_id.clone(), handle.clone());
        if let Err(error) = keeper.keep(&plan, &state).await {
            self.shared.sessions.remove(&origin.session_id);
            return Err(storage(&error));
        }
        let task = Task::new(state, keeper, link, (inlet, from_runtime), wants_rx, self.shared.rules);
        let (shared, id) = (Arc::clone(&self.shared), origin.session_id.clone());
        tokio::spawn(async move {
            task.run(early).await;
            if let Some(mut handle) = shared.sessions.get_mut(&id) {
                handle.wants = None;
            }
        });
        Ok(Arc::new(handle.info()))
    }

    /// Ends a session and forgets it, bytes and all.
    ///
    /// # Errors
    /// [`Refusal::NoSession`], [`Refusal::Storage`].
    pub async fn forget_session(&self, _permit: &Permit<Admin>, id: &SessionId) -> Result<(), Refusal> {
        let handle = self.handle(id)?;
        if let Some(wants) = handle.wants {
            match ask(&wants, |reply| Want::Close { reply }).await {
                Ok(()) | Err(Refusal::RuntimeGone(_) | Refusal::Stopping) => {}
                Err(other) => return Err(other),
            }
        }
        let (log, forgotten) = (self.shared.log.clone(), id.clone());
        blocking(move || log.forget(&forgotten)).await?;
        self.shared.sessions.remove(id);
        Ok(())
    }

    /// Starts a run, or queues it.
    ///
    /// # Errors
    /// [`Refusal::NoSession`], [`Refusal::RuntimeGone`], [`Refusal::QueueFull`], [`Refusal::Storage`].
    pub async fn prompt(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        content: Vec<Box<RawValue>>,
    ) -> Result<Accepted, Refusal> {
        let by = permit.device().resolver();
        ask(&self.wants(id)?, |reply| Want::Prompt { content, by, reply }).await
    }

    /// Stops the run under way, or the one named. Returns which.
    ///
    /// # Errors
    /// [`Refusal::NoSession`], [`Refusal::NoRun`], [`Refusal::RuntimeGone`], [`Refusal::Storage`].
    pub async fn cancel(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        run_id: Option<RunId>,
    ) -> Result<RunId, Refusal> {
        let by = permit.device().resolver();
        ask(&self.wants(id)?, |reply| Want::Cancel { run_id, by, reply }).await
    }

    /// Calls a method of the session's runtime. With `notify` no reply is waited for, and `null` returned.
    ///
    /// # Errors
    /// [`Refusal::NoSession`], [`Refusal::RuntimeGone`], [`Refusal::RuntimeRefused`].
    pub async fn call(
        &self,
        _permit: &Permit<Prompt>,
        id: &SessionId,
        method: String,
        params: Option<Box<RawValue>>,
        notify: bool,
    ) -> Result<Box<RawValue>, Refusal> {
        ask(&self.wants(id)?, |reply| Want::Call { method, params, notify, reply }).await
    }

    // === requests ===

    /// Answers a request. The first answer that fits wins; it is on disk before anybody hears of it.
    ///
    /// # Errors
    /// [`Refusal::AlreadyResolved`] with the winner's receipt, [`Refusal::Closed`], [`Refusal::NoRequest`],
    /// [`Refusal::StaleDigest`], [`Refusal::BadAnswer`], [`Refusal::Storage`].
    pub async fn answer(
        &self,
        permit: &Permit<Approve>,
        id: &RequestId,
        answer: Answer,
        key: Option<String>,
    ) -> Result<Receipt, Refusal> {
        let by = permit.device().resolver();
        let session = self.shared.asked.get(id).map(|session| session.clone());
        let wants = session.and_then(|session| self.wants(&session).ok());
        let outcome = match wants {
            Some(wants) => {
                let (id, key) = (id.clone(), key.clone());
                let answer = Box::new(answer);
                ask(&wants, |reply| Want::Answer { id, answer, by, key, reply }).await
            }
            None => Err(Refusal::NoRequest(id.clone())),
        };
        // Not open here: closed long ago, or a moment ago by a task that has ended since.
        let outcome = match outcome {
            Err(Refusal::NoRequest(_) | Refusal::RuntimeGone(_) | Refusal::Stopping) => self.late(id, key).await,
            outcome => outcome,
        };
        match outcome {
            Err(Refusal::AlreadyResolved(receipt)) if receipt.won => Ok(*receipt),
            Err(Refusal::AlreadyResolved(receipt)) => {
                metrics().double_answers.inc();
                Err(Refusal::AlreadyResolved(receipt))
            }
            outcome => outcome,
        }
    }

    async fn late(&self, id: &RequestId, key: Option<String>) -> Result<Receipt, Refusal> {
        let (log, wanted) = (self.shared.log.clone(), id.clone());
        let row = blocking(move || log.store().request(&wanted)).await?;
        let row = row.ok_or_else(|| Refusal::NoRequest(id.clone()))?;
        let request: Request =
            serde_json::from_slice(&row.body).map_err(|error| Refusal::Storage(error.to_string()))?;
        match request.receipt {
            Some(receipt) => Err(state::late(receipt, row.answer_key.as_deref(), key.as_deref())),
            None => Err(Refusal::Stopping),
        }
    }

    /// Requests, newest first: of one state if named, of one session if named.
    ///
    /// # Errors
    /// [`Refusal::Storage`].
    pub async fn requests(
        &self,
        state: Option<RequestState>,
        session: Option<&SessionId>,
    ) -> Result<Vec<Request>, Refusal> {
        let (log, session) = (self.shared.log.clone(), session.cloned());
        let rows = blocking(move || log.store().requests(state, session.as_ref(), LISTED)).await?;
        Ok(rows.iter().filter_map(|row| serde_json::from_slice(&row.body).ok()).collect())
    }

    /// One request.
    ///
    /// # Errors
    /// [`Refusal::Storage`].
    pub async fn request(&self, id: &RequestId) -> Result<Option<Request>, Refusal> {
        let (log, id) = (self.shared.log.clone(), id.clone());
        let row = blocking(move || log.store().request(&id)).await?;
        Ok(row.and_then(|row| serde_json::from_slice(&row.body).ok()))
    }

    /// The session and runtime that a request belongs to, for the permit to answer it.
    ///
    /// # Errors
    /// [`Refusal::Storage`].
    pub async fn request_target(&self, id: &RequestId) -> Result<Option<(SessionId, RuntimeId)>, Refusal> {
        let session = self.shared.asked.get(id).map(|session| session.clone());
        let handle = session.and_then(|session| self.shared.sessions.get(&session).map(|handle| handle.clone()));
        if let Some(handle) = handle {
            return Ok(Some((handle.origin.session_id.clone(), handle.origin.runtime_id.clone())));
        }
        Ok(self.request(id).await?.map(|request| (request.session_id, request.runtime_id)))
    }

    // === reading ===

    /// What a newcomer must see of a session, and the cursor at which that is exact.
    ///
    /// # Errors
    /// [`Refusal::NoSession`], [`Refusal::Storage`].
    pub async fn snapshot(&self, id: &SessionId) -> Result<Snapshot, Refusal> {
        self.handle(id)?;
        let (_, mut snapshots) = self.snapshots(&Filter::session(id.clone())).await?;
        snapshots.pop().ok_or_else(|| Refusal::NoSession(id.clone()))
    }

    /// The snapshots of several sessions, all exact at one position.
    ///
    /// # Errors
    /// [`Refusal::Storage`].
    pub async fn snapshots(&self, filter: &Filter) -> Result<(Position, Vec<Snapshot>), Refusal> {
        let head = self.shared.log.head();
        let handles: Vec<Handle> = self.seen(filter).collect();
        let log = self.shared.log.clone();
        let snapshots = blocking(move || {
            let bases: Vec<_> = log.store().sessions()?;
            handles.iter().map(|handle| fold_session(&log, handle, head, &bases)).collect()
        })
        .await?;
        Ok((head, snapshots))
    }

    /// Passages that hold every word of `text`, best first.
    ///
    /// # Errors
    /// [`Refusal::Storage`].
    pub async fn search(&self, text: String, limit: usize) -> Result<Vec<Hit>, Refusal> {
        let log = self.shared.log.clone();
        blocking(move || log.store().search(&text, limit)).await
    }

    /// One round of retention: removes what is too old or too much, never what an open request or an unfinished run
    /// still needs. Returns how many sessions lost events.
    ///
    /// # Errors
    /// [`Refusal::Storage`].
    pub async fn retain(&self, retention: Retention, now: Timestamp) -> Result<usize, Refusal> {
        let log = self.shared.log.clone();
        blocking(move || retain(&log, retention, now)).await
    }

    // === inside ===

    fn handle(&self, id: &SessionId) -> Result<Handle, Refusal> {
        self.shared.sessions.get(id).map(|handle| handle.clone()).ok_or_else(|| Refusal::NoSession(id.clone()))
    }

    fn wants(&self, id: &SessionId) -> Result<mpsc::Sender<Want>, Refusal> {
        let handle = self.handle(id)?;
        handle.wants.clone().ok_or_else(|| {
            let link = self.shared.runtimes.get(&handle.origin.runtime_id).map(|link| link.info());
            let why = link.and_then(|info| info.problem.clone());
            Refusal::RuntimeGone(why.unwrap_or_else(|| "it has exited; open a new session".into()))
        })
    }
}

/// Waits for the session that a runtime opens. What it says of it meanwhile is returned with it.
async fn opened(
    from_runtime: &mut mpsc::Receiver<FromRuntime>,
) -> Result<(NativeId, Vec<crate::dialects::Draft>, Vec<Said>), Refusal> {
    let mut early = Vec::new();
    loop {
        let gone = |exit: Exit| {
            let why = exit.reason.unwrap_or_else(|| "it exited".into());
            let tail = exit.stderr_tail.trim_end();
            Refusal::RuntimeGone(if tail.is_empty() { why } else { format!("{why}; it wrote: {tail}") })
        };
        match from_runtime.recv().await {
            Some(FromRuntime::Said(said)) => {
                let mut found = None;
                for said in said {
                    match said {
                        Said::Opened { native, drafts, .. } => found = Some((native, drafts)),
                        Said::NotOpened { error, .. } => return Err(refused(error)),
                        other => early.push(other),
                    }
                }
                if let Some((native, drafts)) = found {
                    return Ok((native, drafts, early));
                }
            }
            Some(FromRuntime::Gone(exit)) => return Err(gone(exit)),
            None => return Err(gone(Exit::default())),
        }
    }
}

async fn ask<T>(
    wants: &mpsc::Sender<Want>,
    want: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> Want,
) -> Result<T, Refusal> {
    let (reply, outcome) = oneshot::channel();
    let gone = || Refusal::RuntimeGone("the session has just ended".into());
    wants.send(want(reply)).await.map_err(|_| gone())?;
    outcome.await.map_err(|_| gone())?
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(|error| storage(&error)),
        Err(error) => Err(Refusal::Storage(error.to_string())),
    }
}

fn fold_session(
    log: &Log,
    handle: &Handle,
    head: Position,
    entries: &[crate::store::SessionEntry],
) -> Result<Snapshot, StoreError> {
    let entry = entries.iter().find(|entry| entry.row.session_id == handle.origin.session_id);
    let gone = entry.map_or(Position::START, |entry| entry.trimmed);
    let base = entry.and_then(|entry| entry.base.as_deref());
    let mut fold = base.map_or_else(Fold::default, Fold::from_base);
    let filter = Filter::session(handle.origin.session_id.clone());
    let mut after = gone;
    while after < head {
        let page = log.read_blocking(&filter, after, PAGE)?;
        page.events.iter().filter(|event| event.position <= head).for_each(|event| fold.event(event));
        if page.next <= after {
            break;
        }
        after = page.next;
    }
    Ok(fold.snapshot(handle.info(), log.cursor(head), gone > Position::START))
}

fn retain(log: &Log, retention: Retention, now: Timestamp) -> Result<usize, StoreError> {
    let oldest_kept = retention.max_age_ms.map(|ms| now.plus_millis(-i64::try_from(ms).unwrap_or(i64::MAX)));
    let mut too_much = match retention.max_bytes {
        Some(most) => log.store().usage()?.event_bytes.saturating_sub(most),
        None => 0,
    };
    let entries = log.store().sessions()?;
    let mut blocks = Vec::new();
    for (n, entry) in entries.iter().enumerate() {
        for (last, at, bytes) in log.store().blocks(&entry.row.session_id, BLOCKS)? {
            // What is spared does not go, and so nothing after it does either.
            if entry.row.spare_from.is_some_and(|from| last >= from) {
                break;
            }
            blocks.push((at, n, last, bytes));
        }
    }
    blocks.sort_by_key(|(at, _, last, _)| (*at, *last));
    let mut through: std::collections::BTreeMap<usize, Position> = std::collections::BTreeMap::new();
    for (at, n, last, bytes) in blocks {
        if oldest_kept.is_some_and(|oldest| at < oldest) || too_much > 0 {
            too_much = too_much.saturating_sub(bytes as u64);
            through.insert(n, last);
        }
    }
    let mut trims = Vec::new();
    for (n, through) in through {
        let entry = &entries[n];
        let mut fold = entry.base.as_deref().map_or_else(Fold::default, Fold::from_base);
        let filter = Filter::session(entry.row.session_id.clone());
        let mut after = entry.trimmed;
        while after < through {
            let page = log.read_blocking(&filter, after, PAGE)?;
            page.events.iter().filter(|event| event.position <= through).for_each(|event| fold.event(event));
            if page.next <= after {
                break;
            }
            after = page.next;
        }
        trims.push(Trim { session_id: entry.row.session_id.clone(), through, base: Some(fold.base()) });
    }
    if trims.is_empty() { Ok(0) } else { log.trim(&trims) }
}
