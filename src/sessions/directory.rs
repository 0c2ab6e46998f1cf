//! All sessions and runtimes: the one door to the heart.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};

use super::session::{Handle, Want, storage};
use super::snapshot::Fold;
use super::state::{self, Edit, Once};
use super::{Clients, Filter, Launcher, Link, Log, Refusal, Snapshot, policy};
use crate::auth::{Admin, Approve, Permit, Prompt};
use crate::metrics::metrics;
use crate::model::{
    Answer, Kind, NativeId, Origin, Position, Receipt, Request, RequestId, RequestState, Resolver, RunId, RunInfo,
    RunStatus, RuntimeId, RuntimeInfo, RuntimeSpec, RuntimeState, SessionId, SessionInfo, Timestamp,
};
use crate::store::{Hit, ReadLimit, StoreError, Trim};

/// Events that one read of a fold brings.
pub(super) const PAGE: ReadLimit = ReadLimit { events: 8192, bytes: 8 << 20 };
/// Requests that one listing shows.
const LISTED: usize = 1000;
/// Longest key of a prompt or an answer, in bytes; a longer one is refused.
pub const KEY_MAX: usize = 128;
/// Longest title that a person gives, in characters; a longer one is refused.
pub const TITLE_MAX: usize = 200;
/// How often a change of a session is tried whose task ends or begins just then.
pub(super) const PARKING: usize = 100;
/// How long such a try is from the next one.
pub(super) const PARKED_IN: std::time::Duration = std::time::Duration::from_millis(20);
/// Sessions forgotten that are remembered for those who have not heard of it; who is further behind lists them anew.
pub(super) const FORGOTTEN: usize = 256;
/// Blocks of one session that one round of retention looks at.
const BLOCKS: usize = 10_000;

/// All sessions and runtimes. Cheap to clone.
#[derive(Clone)]
pub struct Directory {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) log: Log,
    pub(super) launcher: Arc<dyn Launcher>,
    pub(super) rules: Rules,
    pub(super) sessions: DashMap<SessionId, Handle>,
    pub(super) asked: Arc<DashMap<RequestId, SessionId>>,
    pub(super) runtimes: DashMap<RuntimeId, Link>,
    /// What each was started with, to start it again.
    pub(super) specs: DashMap<RuntimeId, RuntimeSpec>,
    /// Held while a runtime is stopped and started again: who wants the same meanwhile comes after.
    restarting: tokio::sync::Mutex<()>,
    /// Sessions to open again once their runtime, which was restarted, is ready.
    pub(super) reopening: dashmap::DashSet<SessionId>,
    pub(super) changed: watch::Sender<u64>,
    /// Sessions that were forgotten, the last [`FORGOTTEN`] of them; the counter says how many there were ever.
    forgotten: Mutex<VecDeque<Arc<Origin>>>,
    forgot: watch::Sender<u64>,
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
    /// How it ended, where the prompt came before under the same key and its run is over. Its last event is kept, and
    /// so within the log's head, once this is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

impl Accepted {
    pub(super) fn new(run_id: RunId, ahead: usize) -> Self {
        Self { run_id, queued: ahead > 0, ahead, ended: None }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// `completed`, `error` or `cancelled`.
    pub status: RunStatus,
    /// The agent's own word for it, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Why, where it failed or never began; shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
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
                specs: DashMap::new(),
                restarting: tokio::sync::Mutex::default(),
                reopening: dashmap::DashSet::new(),
                changed: watch::Sender::new(0),
                forgotten: Mutex::default(),
                forgot: watch::Sender::new(0),
            }),
        };
        directory.recover().await?;
        Ok(directory)
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

    /// The place of the event since which a session does what it does now.
    pub fn doing_at(&self, id: &SessionId) -> Option<Position> {
        let at = self.shared.sessions.get(id)?.doing_at.load(std::sync::atomic::Ordering::Relaxed);
        Some(Position(at))
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

    /// Told (how many there were ever) whenever a session is forgotten.
    pub fn forgotten(&self) -> watch::Receiver<u64> {
        self.shared.forgot.subscribe()
    }

    /// The sessions that were forgotten since there were so many, and how many there are now; `None` if that was too long
    /// ago to tell, and who asks has to list them anew.
    pub fn forgotten_since(&self, many: u64) -> Option<(Vec<Arc<Origin>>, u64)> {
        let list = self.shared.forgotten.lock().unwrap_or_else(PoisonError::into_inner);
        let now = *self.shared.forgot.borrow();
        let fresh = usize::try_from(now.saturating_sub(many)).ok().filter(|fresh| *fresh <= list.len())?;
        Some((list.iter().skip(list.len() - fresh).cloned().collect(), now))
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
                let link = self.shared.launcher.launch(spec.clone()).map_err(Refusal::Invalid)?;
                if let dashmap::Entry::Occupied(before) = &there {
                    link.journal().after(before.get().journal());
                }
                there.insert(link.clone());
                self.shared.specs.insert(id.clone(), spec);
                link
            }
        };
        self.attend(id, link.clone());
        Ok(link.info())
    }

    /// Stops a runtime for good and forgets its name: stdin closed, TERM, KILL, reaped. Returns once it is gone.
    ///
    /// # Errors
    /// [`Refusal::NoRuntime`].
    pub async fn stop_runtime(&self, _permit: &Permit<Admin>, id: &RuntimeId) -> Result<(), Refusal> {
        let link = self.shared.runtimes.get(id).map(|link| link.clone());
        let link = link.ok_or_else(|| Refusal::NoRuntime(id.clone()))?;
        stopped(&link).await;
        if self.shared.runtimes.remove_if(id, |_, there| there.info().state == RuntimeState::Exited).is_some() {
            self.shared.specs.remove(id);
            let of = |session: &SessionId| {
                self.shared.sessions.get(session).is_none_or(|handle| handle.origin.runtime_id == *id)
            };
            self.shared.reopening.retain(|session| !of(session));
        }
        self.shared.changed.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Stops a runtime and starts it again with the same settings. Its sessions are opened again once it is ready; what
    /// they ran is over, what they asked is void.
    ///
    /// # Errors
    /// [`Refusal::NoRuntime`], [`Refusal::Invalid`], [`Refusal::Stopping`].
    pub async fn restart_runtime(&self, _permit: &Permit<Admin>, id: &RuntimeId) -> Result<Arc<RuntimeInfo>, Refusal> {
        let (this, id) = (self.clone(), id.clone());
        // Not cut short by a client that leaves: stopped and not started is nobody's wish.
        let work = tokio::spawn(async move {
            let _alone = this.shared.restarting.lock().await;
            let link = this.shared.runtimes.get(&id).map(|link| link.clone());
            let spec = this.shared.specs.get(&id).map(|spec| spec.clone());
            let (Some(link), Some(spec)) = (link, spec) else { return Err(Refusal::NoRuntime(id)) };
            let waits = |session: &SessionId| this.shared.reopening.contains(session);
            let of = |handle: &Handle| {
                handle.origin.runtime_id == id && (handle.wants.is_some() || waits(&handle.origin.session_id))
            };
            let handles = this.shared.sessions.iter();
            let live: Vec<SessionId> =
                handles.filter(|handle| of(handle)).map(|handle| handle.origin.session_id.clone()).collect();
            stopped(&link).await;
            let info = this.launch(spec)?;
            this.open_again(live);
            Ok(info)
        });
        work.await.map_err(|_| Refusal::Stopping)?
    }

    /// What a runtime wrote to stderr of late, the oldest line first.
    ///
    /// # Errors
    /// [`Refusal::NoRuntime`].
    pub fn journal(&self, _permit: &Permit<Admin>, id: &RuntimeId) -> Result<Vec<super::journal::Line>, Refusal> {
        let link = self.shared.runtimes.get(id).ok_or_else(|| Refusal::NoRuntime(id.clone()))?;
        Ok(link.journal().lines())
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
        self.is_forgotten(handle.origin);
        Ok(())
    }

    /// Tells of it.
    pub(super) fn is_forgotten(&self, session: Arc<Origin>) {
        let mut list = self.shared.forgotten.lock().unwrap_or_else(PoisonError::into_inner);
        list.push_back(session);
        if list.len() > FORGOTTEN {
            list.pop_front();
        }
        self.shared.forgot.send_modify(|count| *count += 1);
    }

    /// Names a session, puts it away, or takes it back; also one that has ended. Everybody hears of it.
    ///
    /// # Errors
    /// [`Refusal::NoSession`], [`Refusal::Invalid`], [`Refusal::Storage`].
    pub async fn edit_session(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        title: Option<String>,
        archived: Option<bool>,
    ) -> Result<Arc<SessionInfo>, Refusal> {
        let fine = |title: &String| !title.trim().is_empty() && title.chars().count() <= TITLE_MAX;
        if title.as_ref().is_some_and(|title| !fine(title)) {
            return Err(Refusal::Invalid(format!("a title is 1 to {TITLE_MAX} characters, not only white space")));
        }
        let (edit, by) =
            (Edit { title: title.map(|title| title.trim().to_owned()), archived }, permit.device().resolver());
        for _ in 0..PARKING {
            let outcome = match self.handle(id)?.wants {
                Some(wants) => {
                    let (edit, by) = (edit.clone(), by.clone());
                    ask(&wants, |reply| Want::Edit { edit, by, reply }).await
                }
                None => self.edit_parked(id, edit.clone(), &by).await,
            };
            match outcome {
                // Its task ends, or begins, at this moment.
                Err(Refusal::RuntimeGone(_)) => tokio::time::sleep(PARKED_IN).await,
                outcome => {
                    outcome?;
                    return self.session(id).ok_or_else(|| Refusal::NoSession(id.clone()));
                }
            }
        }
        Err(Refusal::RuntimeGone("the session has just ended: try again".into()))
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
        self.prompt_once(permit, id, content, None).await
    }

    /// As [`prompt`](Self::prompt), under a key of the caller's device: the same prompt again under the same key starts
    /// nothing, and names the run that it started; also across restarts, and if the runtime is gone. A session remembers
    /// the keys of what runs and waits, and of the last 64 runs that ended. `key`: 1 to [`KEY_MAX`] visible ASCII characters.
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt); [`Refusal::BadKey`], [`Refusal::KeyReused`].
    pub async fn prompt_once(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        content: Vec<Box<RawValue>>,
        key: Option<String>,
    ) -> Result<Accepted, Refusal> {
        self.prompt_with(permit, id, content, key, None).await
    }

    async fn prompt_with(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        content: Vec<Box<RawValue>>,
        key: Option<String>,
        again: Option<RunId>,
    ) -> Result<Accepted, Refusal> {
        let by = permit.device().resolver();
        let once = match key {
            Some(key) if key.is_empty() || key.len() > KEY_MAX || !key.bytes().all(|b| b.is_ascii_graphic()) => {
                return Err(Refusal::BadKey);
            }
            key => key.map(|key| Once::new(key, by.device_id.clone(), &content)),
        };
        let wants = match self.wants(id) {
            // Its runtime may have been started again since.
            Err(Refusal::RuntimeGone(why)) => {
                if let Some(once) = &once {
                    let handle = self.handle(id)?;
                    // Whoever opens it now holds its state.
                    let _opening = handle.opening.lock().await;
                    if let Some(known) = handle.known(once)? {
                        return Ok(known);
                    }
                }
                self.reopen(id).await.map_err(|refusal| match refusal {
                    Refusal::RuntimeGone(_) => Refusal::RuntimeGone(why),
                    other => other,
                })?;
                self.wants(id)?
            }
            wants => wants?,
        };
        ask(&wants, |reply| Want::Prompt { content, by, once, again, reply }).await
    }

    /// Sends the prompt of a run once more: of the one under way, which is cancelled first, of the one named, or of the
    /// last one. It comes before the prompts that wait. `key` as with [`prompt_once`](Self::prompt_once).
    ///
    /// # Errors
    /// As [`prompt_once`](Self::prompt_once); [`Refusal::NoRun`], [`Refusal::NotKept`].
    pub async fn restart(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        run_id: Option<RunId>,
        key: Option<String>,
    ) -> Result<Accepted, Refusal> {
        let info = self.handle(id)?.info();
        if info.queue.iter().any(|queued| Some(&queued.run_id) == run_id.as_ref()) {
            return Err(Refusal::Invalid("that prompt still waits for its turn: there is nothing to restart".into()));
        }
        let (log, wanted, filter) = (self.shared.log.clone(), run_id.or(info.run_id), Filter::session(id.clone()));
        let found = blocking(move || prompt_of(&log, &filter, wanted.as_ref())).await?;
        let (run_id, content) = found.ok_or(Refusal::NoRun)?;
        let content = content.ok_or(Refusal::NotKept(
            "it began past the gateway, or what was said then is no longer kept; send it as a new prompt",
        ))?;
        self.prompt_with(permit, id, content, key, Some(run_id)).await
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

    /// Calls a method of the session's runtime. With `notify` no reply is waited for, and `null` returned. Methods that
    /// act without a question need more than the permit: see `sessions::policy`.
    ///
    /// # Errors
    /// [`Refusal::NoSession`], [`Refusal::Denied`], [`Refusal::RuntimeGone`], [`Refusal::RuntimeRefused`].
    pub async fn call(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        method: String,
        params: Option<Box<RawValue>>,
        notify: bool,
    ) -> Result<Box<RawValue>, Refusal> {
        policy::check(permit.device(), &self.handle(id)?.origin, &method, params.as_deref())?;
        ask(&self.wants(id)?, |reply| Want::Call { method, params, notify, reply }).await
    }

    /// Says who asks clients for what agents ask of their client: files, terminals. Once.
    pub fn reach_clients(&self, clients: Arc<dyn Clients>) {
        // The runtimes live in it: it must not live in them.
        let shared = Arc::downgrade(&self.shared);
        let find = move |runtime: &RuntimeId, native: &NativeId| {
            let shared = shared.upgrade()?;
            let of = |handle: &Handle| {
                let info = handle.info();
                info.runtime_id == *runtime && info.native_id.as_ref() == Some(native)
            };
            shared.sessions.iter().find(|entry| of(entry.value())).map(|entry| entry.key().clone())
        };
        self.shared.launcher.clients().set(Box::new(find), clients);
    }

    // === requests ===

    /// Answers a request. The first answer that fits wins; it is on disk before anybody hears of it.
    ///
    /// # Errors
    /// [`Refusal::AlreadyResolved`] with the winner's receipt, [`Refusal::Closed`], [`Refusal::NoRequest`],
    /// [`Refusal::RiskTooHigh`], [`Refusal::StaleDigest`], [`Refusal::BadAnswer`], [`Refusal::Storage`].
    pub async fn answer(
        &self,
        permit: &Permit<Approve>,
        id: &RequestId,
        answer: Answer,
        key: Option<String>,
    ) -> Result<Receipt, Refusal> {
        let (by, up_to) = (permit.device().resolver(), permit.device().grant.approve_up_to);
        let session = self.shared.asked.get(id).map(|session| session.clone());
        let wants = session.and_then(|session| self.wants(&session).ok());
        let outcome = match wants {
            Some(wants) => {
                let (id, key) = (id.clone(), key.clone());
                let answer = Box::new(answer);
                ask(&wants, |reply| Want::Answer { id, answer, by, up_to, key, reply }).await
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

/// Stops a runtime for good; returns once it is gone.
async fn stopped(link: &Link) {
    let mut info = link.watch();
    link.stop();
    while info.borrow_and_update().state != RuntimeState::Exited {
        if info.changed().await.is_err() {
            break;
        }
    }
}

/// What a run was asked: ACP content blocks.
type Asked = Vec<Box<RawValue>>;

/// The run named, or the last one, and what it was asked where the gateway asked it.
fn prompt_of(log: &Log, filter: &Filter, wanted: Option<&RunId>) -> Result<Option<(RunId, Option<Asked>)>, StoreError> {
    #[derive(Deserialize)]
    struct Said<'a> {
        #[serde(borrow)]
        content: &'a RawValue,
        // Only the gateway says who asked.
        #[serde(rename = "_meta")]
        _meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "plexus")]
        _plexus: By,
    }
    #[derive(Deserialize)]
    struct By {
        #[serde(rename = "by")]
        _by: Resolver,
    }
    let (head, mut after) = (log.head(), log.attach(filter, &super::After::Oldest).after);
    let mut found: Option<(RunId, Vec<Box<RawValue>>)> = None;
    let mut trimmed = false;
    while after < head {
        let page = log.read_blocking(filter, after, PAGE)?;
        for event in &page.events {
            let of = wanted.is_none_or(|wanted| *wanted == event.run_id);
            match event.kind {
                Kind::RunStarted if of => found = Some((event.run_id.clone(), Vec::new())),
                Kind::UserMessageChunk if of => {
                    let Some((run_id, content)) = &mut found else { continue };
                    if let Ok(said) = serde_json::from_slice::<Said<'_>>(&event.body)
                        && *run_id == event.run_id
                    {
                        content.push(said.content.to_owned());
                    }
                }
                _ => trimmed |= found.is_none() && wanted == Some(&event.run_id),
            }
        }
        if page.next <= after {
            break;
        }
        after = page.next;
    }
    if trimmed && let Some(wanted) = wanted {
        return Ok(Some((wanted.clone(), None)));
    }
    Ok(found.map(|(run_id, content)| (run_id, Some(content).filter(|content| !content.is_empty()))))
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
