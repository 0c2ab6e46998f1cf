//! All sessions and runtimes: the one door to the heart.

mod requests;
mod retention;
mod runtimes;

use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use dashmap::DashMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use utoipa::ToSchema;

use super::answer_key::AnswerKey;
use super::client_calls::SessionOwner;
use super::prompt_key::PromptKey;
use super::resumable::Listings;
use super::session::{NewsRank, SessionCommand, SessionHandle, storage};
use super::snapshot::{SnapshotFold, WINDOW};
use super::snapshot_cache::SnapshotCache;
use super::state::{self, SessionEdit};
use super::{Clients, Filter, Launcher, Log, RuntimeLink, SessionError, Snapshot, leads_into, policy, prompts};
use crate::auth::{Admin, Approve, Permit, Prompt, Target};
use crate::ledger::Ledger;
use crate::metrics::metrics;
use plexus_protocol::{
    Answer, Connect, NativeId, Origin, Position, Receipt, Request, RequestId, RequestState, RunId, RunInfo, RunStatus,
    RuntimeId, RuntimeInfo, RuntimeSpec, RuntimeState, Scope, SessionId, SessionInfo, Timestamp,
};
use plexus_store::{ReadLimit, RequestQuery, SearchHit, StoreError, Trim};

/// Events that one read of a fold brings.
pub(super) const PAGE: ReadLimit = ReadLimit { events: 8192, bytes: 8 << 20 };
/// Sessions whose snapshots one answer has at most.
const SNAPSHOTS: usize = 64;
/// Bytes of messages and tools that one answer with several snapshots has at most, about.
const SNAPSHOTS_BYTES: usize = 1 << 20;
/// Requests that one page of a listing shows at most.
pub const LISTED: usize = 1000;
/// Requests that are looked at for one page of a listing, most of them for other eyes; then it ends, full or not.
const LISTING_LOOKS: usize = 16 * LISTED;
/// Rows that one read of a listing brings.
const LISTING_ROWS: usize = 32;
/// Longest key of a prompt or an answer, in bytes; a longer one is refused.
pub const KEY_MAX: usize = 128;
/// Longest title that a person gives, in characters; a longer one is refused.
pub const TITLE_MAX: usize = 200;
/// How often a change of a session is tried whose task ends or begins just then.
pub(super) const PARKING: usize = 100;
/// How long such a try is from the next one.
pub(super) const PARKED_IN: std::time::Duration = std::time::Duration::from_millis(20);
/// How long an answer waits for the session of its request, where that is being opened again.
const REATTACHING: std::time::Duration = std::time::Duration::from_secs(5);
/// Sessions forgotten that are remembered for those who have not heard of it; who is further behind lists them anew.
pub(super) const FORGOTTEN: usize = 256;
/// Blocks that retention looks at in one read.
const BLOCKS: usize = 1000;
/// Closed requests that are kept, with their receipts; retention removes the oldest beyond them.
const CLOSED_MAX: usize = 100_000;

/// All sessions and runtimes. Cheap to clone.
#[derive(Clone)]
pub struct Directory {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) log: Log,
    pub(super) launcher: Arc<dyn Launcher>,
    pub(super) rules: SessionRules,
    /// Whom the content of prompts that wait is charged to.
    ledger: OnceLock<Ledger>,
    pub(super) sessions: DashMap<SessionId, SessionHandle>,
    pub(super) asked: Arc<DashMap<RequestId, SessionId>>,
    pub(super) runtimes: DashMap<RuntimeId, RuntimeLink>,
    /// What each was started with, to start it again.
    pub(super) specs: DashMap<RuntimeId, RuntimeSpec>,
    /// Conversations that are being opened: who wants the same one meanwhile comes after.
    pub(super) opening: Mutex<HashMap<(RuntimeId, String), OpenTurn>>,
    /// Held while a runtime is stopped and started again: who wants the same meanwhile comes after.
    restarting: tokio::sync::Mutex<()>,
    /// Sessions to open again once their runtime, which was restarted, is ready.
    pub(super) reopening: dashmap::DashSet<SessionId>,
    pub(super) changed: watch::Sender<u64>,
    /// Sessions that were forgotten, the last [`FORGOTTEN`] of them; the counter says how many there were ever.
    forgotten: Mutex<VecDeque<Arc<Origin>>>,
    forgot: watch::Sender<u64>,
    /// The folds that snapshots are made of.
    pub(super) folds: SnapshotCache,
    /// Questions to runtimes for the conversations that they keep, one a runtime.
    pub(super) listings: Listings,
}

/// Held while a conversation is opened; in it why that failed, for those who wait for the same.
pub(super) type OpenTurn = Arc<tokio::sync::Mutex<Option<SessionError>>>;

/// What the gateway's owner decided.
#[derive(Clone, Copy, Debug)]
pub struct SessionRules {
    /// A request closes by itself after so many milliseconds.
    pub expire_ms: Option<u64>,
    /// Prompts that wait for their turn in one session at most; one more is refused.
    pub queue: usize,
    /// The longest prompt, in bytes of its content; a longer one is refused.
    pub prompt_max: usize,
}

impl Default for SessionRules {
    fn default() -> Self {
        Self { expire_ms: None, queue: 64, prompt_max: prompts::PROMPT_MAX }
    }
}

/// The snapshots of several sessions, all exact at one position.
#[derive(Debug)]
pub struct Snapshots {
    /// The position; read on after it.
    pub at: Position,
    /// The snapshots, of the sessions with the latest news.
    pub snapshots: Vec<Snapshot>,
    /// Sessions beyond the 64 with the latest news, whose snapshots are asked for one by one.
    pub omitted: usize,
}

/// How long events are kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetentionRules {
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
    /// The program that opens it, by its own name: see [`SessionOwner::program`].
    pub program: Option<String>,
}

/// A prompt that was taken.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Accepted)]
pub struct AcceptedPrompt {
    /// The run it is, or will be.
    pub run_id: RunId,
    /// Whether it waits for its turn.
    pub queued: bool,
    /// How many runs are before it.
    pub ahead: usize,
    /// How it ended, where the prompt came before under the same key and its run is over. Its last event is kept, and
    /// so within the log's head, once this is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<RunOutcome>,
}

impl AcceptedPrompt {
    pub(super) fn new(run_id: RunId, ahead: usize) -> Self {
        Self { run_id, queued: ahead > 0, ahead, ended: None }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Ended)]
pub struct RunOutcome {
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
    pub async fn open(log: Log, launcher: Arc<dyn Launcher>, rules: SessionRules) -> Result<Self, StoreError> {
        let directory = Self {
            shared: Arc::new(Shared {
                log,
                launcher,
                rules,
                ledger: OnceLock::new(),
                sessions: DashMap::new(),
                asked: Arc::default(),
                runtimes: DashMap::new(),
                specs: DashMap::new(),
                opening: Mutex::default(),
                restarting: tokio::sync::Mutex::default(),
                reopening: dashmap::DashSet::new(),
                changed: watch::Sender::new(0),
                forgotten: Mutex::default(),
                forgot: watch::Sender::new(0),
                folds: SnapshotCache::default(),
                listings: Listings::default(),
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
        self.ranked().into_iter().map(|(_, session)| session).collect()
    }

    /// The same, with what they are ordered by: then by their identifier.
    pub fn ranked(&self) -> Vec<(NewsRank, Arc<SessionInfo>)> {
        let handles = self.shared.sessions.iter();
        let mut all: Vec<_> = handles.map(|handle| (handle.rank(), Arc::new(self.shown(&handle)))).collect();
        all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.session_id.cmp(&b.1.session_id)));
        all
    }

    /// The place of the last event of a session that is known.
    pub fn last(&self, id: &SessionId) -> Option<Position> {
        let last = self.shared.sessions.get(id)?.last.load(std::sync::atomic::Ordering::Relaxed);
        Some(Position(last))
    }

    /// The `most` sessions with the latest news of those that `wanted` lets through, and how many more there are. Costs a
    /// look at each session, and a copy of those alone that come.
    pub fn newest(&self, most: usize, wanted: impl Fn(&Origin) -> bool) -> (Vec<Arc<SessionInfo>>, usize) {
        let wanted = self.shared.sessions.iter().filter(|handle| wanted(&handle.origin));
        let mut all: Vec<(NewsRank, SessionId)> =
            wanted.map(|handle| (handle.rank(), handle.origin.session_id.clone())).collect();
        all.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let omitted = all.len().saturating_sub(most);
        (all.iter().take(most).filter_map(|(_, id)| self.session(id)).collect(), omitted)
    }

    /// One session.
    pub fn session(&self, id: &SessionId) -> Option<Arc<SessionInfo>> {
        self.shared.sessions.get(id).map(|handle| Arc::new(self.shown(&handle)))
    }

    /// A session as clients see it.
    fn shown(&self, handle: &SessionHandle) -> SessionInfo {
        let mut info = handle.info();
        let exited = info.state == plexus_protocol::SessionState::Exited;
        info.restartable = exited && self.shared.specs.contains_key(&info.runtime_id);
        info
    }

    /// The place of the event since which a session does what it does now.
    pub fn doing_at(&self, id: &SessionId) -> Option<Position> {
        let at = self.shared.sessions.get(id)?.doing_at.load(std::sync::atomic::Ordering::Relaxed);
        Some(Position(at))
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

    /// What the prompts that wait in a session ask, as content blocks, the next one first.
    pub fn waiting(&self, id: &SessionId) -> Vec<(RunId, Arc<Vec<Box<RawValue>>>)> {
        self.shared.sessions.get(id).map(|handle| handle.view.load().waiting.clone()).unwrap_or_default()
    }

    fn seen(&self, filter: &Filter) -> impl Iterator<Item = SessionHandle> {
        let sessions = &self.shared.sessions;
        let handles: Vec<SessionHandle> = match &filter.sessions {
            Some(some) => some.iter().filter_map(|id| Some(sessions.get(id)?.clone())).collect(),
            None => sessions.iter().map(|handle| handle.clone()).collect(),
        };
        handles.into_iter().filter(|handle| filter.takes(&handle.origin))
    }

    // === sessions ===

    /// Opens a session; waits until the runtime is ready and has opened its own.
    ///
    /// # Errors
    /// [`SessionError::NoRuntime`], [`SessionError::RuntimeGone`], [`SessionError::RuntimeRefused`], [`SessionError::Storage`],
    /// [`SessionError::Invalid`].
    pub async fn open_session(
        &self,
        permit: &Permit<Prompt>,
        open: OpenSession,
    ) -> Result<Arc<SessionInfo>, SessionError> {
        self.may_work_in(permit, &open)?;
        self.is_a_folder(&open).await?;
        let owner = SessionOwner { device: permit.device().device_id.clone(), program: open.program.clone() };
        self.begin_for(open, Some(owner)).await
    }

    /// Whether the device may have an agent work in the folder that it names: any but the gateway's own for an
    /// administrator, those inside the runtime's own for others. Folders are compared without their links.
    fn may_work_in(&self, permit: &Permit<Prompt>, open: &OpenSession) -> Result<(), SessionError> {
        let Some(cwd) = &open.cwd else { return Ok(()) };
        let runtime = self.runtime(&open.runtime_id).ok_or_else(|| SessionError::NoRuntime(open.runtime_id.clone()))?;
        if self.shared.launcher.private_folder().is_some_and(|own| leads_into(cwd.as_ref(), &own) != Some(false)) {
            return Err(SessionError::Folder(format!("{cwd} is the gateway's state folder: agents cannot work there")));
        }
        let administrates = permit.device().grant.covers(Scope::Admin, Target::Runtime(&open.runtime_id));
        if administrates || leads_into(cwd.as_ref(), runtime.cwd.as_ref()) == Some(true) {
            return Ok(());
        }
        let own = &runtime.cwd;
        Err(SessionError::Folder(format!(
            "{cwd} is outside of the runtime's folder {own}: that needs an administrator"
        )))
    }

    /// Whether the folder that is named can be one. That it is there is known of programs alone, which run here: an endpoint
    /// may live in a container with folders of its own.
    async fn is_a_folder(&self, open: &OpenSession) -> Result<(), SessionError> {
        let Some(cwd) = &open.cwd else { return Ok(()) };
        if cwd.contains('\0') {
            return Err(SessionError::Invalid("cwd has a NUL character: no folder's name has one".into()));
        }
        let here = self.runtime(&open.runtime_id).is_some_and(|info| matches!(info.connect, Connect::Command(_)));
        // What is too long or no whole path is refused in its own words.
        if !here || cwd.len() > super::opening::CWD_MAX || !cwd.starts_with('/') {
            return Ok(());
        }
        let folder = std::path::PathBuf::from(cwd);
        // Folders may lie on slow disks.
        let found =
            tokio::task::spawn_blocking(move || std::fs::metadata(folder)).await.map_err(|_| SessionError::Stopping)?;
        match found {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(SessionError::Invalid(format!("cwd is not a folder: {cwd:?}"))),
            Err(why) => Err(SessionError::Invalid(format!("cwd {cwd:?} cannot be used: {why}"))),
        }
    }

    /// Names a session, puts it away, or takes it back; also one that has ended. Everybody hears of it.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Invalid`], [`SessionError::Storage`].
    pub async fn edit_session(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        title: Option<String>,
        archived: Option<bool>,
    ) -> Result<Arc<SessionInfo>, SessionError> {
        let fine = |title: &String| !title.trim().is_empty() && title.chars().count() <= TITLE_MAX;
        if title.as_ref().is_some_and(|title| !fine(title)) {
            return Err(SessionError::Invalid(format!(
                "a title must be 1 to {TITLE_MAX} characters, not only white space"
            )));
        }
        let (edit, by) =
            (SessionEdit { title: title.map(|title| title.trim().to_owned()), archived }, permit.device().resolver());
        for _ in 0..PARKING {
            let outcome = match self.handle(id)?.wants {
                Some(wants) => {
                    let (edit, by) = (edit.clone(), by.clone());
                    ask(&wants, |reply| SessionCommand::Edit { edit, by, reply }).await
                }
                None => self.edit_parked(id, edit.clone(), &by).await,
            };
            match outcome {
                // Its task ends, or begins, at this moment.
                Err(SessionError::RuntimeGone(_)) => tokio::time::sleep(PARKED_IN).await,
                outcome => {
                    outcome?;
                    return self.session(id).ok_or_else(|| SessionError::NoSession(id.clone()));
                }
            }
        }
        Err(SessionError::RuntimeGone("the session has just ended: try again".into()))
    }

    /// Starts a run, or queues it.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::RuntimeGone`], [`SessionError::QueueFull`], [`SessionError::PromptTooLarge`],
    /// [`SessionError::Storage`].
    pub async fn prompt(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        content: Vec<Box<RawValue>>,
    ) -> Result<AcceptedPrompt, SessionError> {
        self.prompt_once(permit, id, content, None).await
    }

    /// As [`prompt`](Self::prompt), under a key of the caller's device: the same prompt again under the same key starts
    /// nothing, and names the run that it started; also across restarts, and if the runtime is gone. A session remembers
    /// the keys of what runs and waits, and of the last 64 runs that ended. `key`: 1 to [`KEY_MAX`] visible ASCII characters.
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt); [`SessionError::BadKey`], [`SessionError::KeyReused`].
    pub async fn prompt_once(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        content: Vec<Box<RawValue>>,
        key: Option<String>,
    ) -> Result<AcceptedPrompt, SessionError> {
        self.prompt_with(permit, id, content, key, None).await
    }

    async fn prompt_with(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        content: Vec<Box<RawValue>>,
        key: Option<String>,
        again: Option<RunId>,
    ) -> Result<AcceptedPrompt, SessionError> {
        // One that was taken before is taken again, whatever the limits are now.
        if again.is_none() {
            prompts::check(&content, self.shared.rules.prompt_max)?;
        }
        let content = Arc::new(content);
        let by = permit.device().resolver();
        let once = checked(key)?.map(|key| PromptKey::new(key, by.device_id.clone(), Arc::clone(&content)));
        let wants = match self.wants(id) {
            // Its runtime may have been started again since.
            Err(SessionError::RuntimeGone(why)) => {
                if let Some(once) = &once {
                    let handle = self.handle(id)?;
                    // Whoever opens it now holds its state.
                    let _opening = handle.opening.lock().await;
                    if let Some(known) = handle.known(once)? {
                        return Ok(known);
                    }
                }
                self.reopen(id).await.map_err(|refusal| match refusal {
                    SessionError::RuntimeGone(_) if self.session(id).is_some_and(|info| info.restartable) => {
                        SessionError::RuntimeGone(format!("{why}; restart its runtime to continue the session"))
                    }
                    SessionError::RuntimeGone(_) => SessionError::RuntimeGone(why),
                    other => other,
                })?;
                self.wants(id)?
            }
            wants => wants?,
        };
        let bytes = content.iter().map(|block| block.get().len()).sum();
        let runtime = self.handle(id)?.origin.runtime_id.clone();
        let charge = self.shared.ledger.get().map(|ledger| ledger.session(id.as_str(), runtime.as_str()).charge(bytes));
        ask(&wants, |reply| SessionCommand::Prompt { content, by, once, again, charge, reply }).await
    }

    /// Sends the prompt of a run once more: of the one under way, which is cancelled first, of the one named, or of the
    /// last one. It comes before the prompts that wait. `key` as with [`prompt_once`](Self::prompt_once).
    ///
    /// # Errors
    /// As [`prompt_once`](Self::prompt_once); [`SessionError::NoRun`], [`SessionError::NotKept`].
    pub async fn restart(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        run_id: Option<RunId>,
        key: Option<String>,
    ) -> Result<AcceptedPrompt, SessionError> {
        let info = self.handle(id)?.info();
        if info.queue.iter().any(|queued| Some(&queued.run_id) == run_id.as_ref()) {
            return Err(SessionError::Invalid("that prompt is still queued: there is nothing to restart".into()));
        }
        let (log, session, wanted) = (self.shared.log.clone(), id.clone(), run_id.or(info.run_id));
        let found = blocking(move || prompts::prompt_of(&log, &session, wanted.as_ref())).await?;
        let (run_id, content) = found.ok_or(SessionError::NoRun)?;
        let content = content.ok_or(SessionError::NotKept(
            "it was started outside of the gateway, or its text is no longer stored; send it as a new prompt",
        ))?;
        self.prompt_with(permit, id, content, key, Some(run_id)).await
    }

    /// Stops the run under way, or the one named. Returns which.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::NoRun`], [`SessionError::RuntimeGone`], [`SessionError::Storage`].
    pub async fn cancel(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        run_id: Option<RunId>,
    ) -> Result<RunId, SessionError> {
        self.cancel_because(permit, id, run_id, None).await
    }

    /// As [`cancel`](Self::cancel), with a reason for people and for runtimes that take one.
    ///
    /// # Errors
    /// As [`cancel`](Self::cancel).
    pub async fn cancel_because(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        run_id: Option<RunId>,
        reason: Option<String>,
    ) -> Result<RunId, SessionError> {
        let by = permit.device().resolver();
        ask(&self.wants(id)?, |reply| SessionCommand::Cancel { run_id, by, reason, reply }).await
    }

    /// Calls a method of the session's runtime. With `notify` no reply is waited for, and `null` returned. Methods that
    /// act without a question need more than the permit: see `sessions::policy`.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Denied`], [`SessionError::RuntimeGone`], [`SessionError::RuntimeRefused`].
    pub async fn call(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        method: String,
        params: Option<Box<RawValue>>,
        notify: bool,
    ) -> Result<Box<RawValue>, SessionError> {
        policy::check(permit.device(), &self.handle(id)?.origin, &method, params.as_deref())?;
        ask(&self.wants(id)?, |reply| SessionCommand::Call { method, params, notify, reply }).await
    }

    /// Says who is charged for prompts that wait: their session, and its runtime. Once; until then nobody is.
    pub fn charge_to(&self, ledger: &Ledger) {
        let _ = self.shared.ledger.set(ledger.clone());
    }

    /// Says who asks clients for what agents ask of their client: files, terminals. Once.
    pub fn reach_clients(&self, clients: Arc<dyn Clients>) {
        // The runtimes live in it: it must not live in them.
        let shared = Arc::downgrade(&self.shared);
        let find = move |runtime: &RuntimeId, native: &NativeId| {
            let shared = shared.upgrade()?;
            let mut sessions = shared.sessions.iter().filter(|handle| handle.origin.runtime_id == *runtime);
            sessions.find_map(|handle| {
                let view = handle.view.load();
                let owner = view.owner.clone().filter(|_| view.info.native_id.as_ref() == Some(native))?;
                Some((handle.key().clone(), owner))
            })
        };
        self.shared.launcher.clients().set(Box::new(find), clients);
    }

    // === reading ===

    /// What a newcomer must see of a session, and the cursor at which that is exact: [`WINDOW`] bytes of messages and tools.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Storage`].
    pub async fn snapshot(&self, id: &SessionId) -> Result<Snapshot, SessionError> {
        self.snapshot_within(id, WINDOW).await
    }

    /// The same, with `most` bytes of messages and tools at most.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Storage`].
    pub async fn snapshot_within(&self, id: &SessionId, most: usize) -> Result<Snapshot, SessionError> {
        let handle = self.handle(id)?;
        let log = &self.shared.log;
        let fold = self.shared.folds.fold_up_to(log, id, log.head()).await;
        let mut fold = fold.map_err(|error| storage(&error))?;
        fold.fold().map(|fold| self.snapshot_of(fold, &handle, most)).ok_or_else(|| SessionError::NoSession(id.clone()))
    }

    /// The snapshots of several sessions, all exact at one position: of the 64 with the latest news.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn snapshots(&self, filter: &Filter) -> Result<Snapshots, SessionError> {
        let log = &self.shared.log;
        let mut handles: Vec<SessionHandle> = self.seen(filter).collect();
        handles.sort_by_cached_key(|handle| std::cmp::Reverse(handle.rank()));
        let omitted = handles.len().saturating_sub(SNAPSHOTS);
        handles.truncate(SNAPSHOTS);
        let most = WINDOW.min(SNAPSHOTS_BYTES / handles.len().max(1));
        // Held in one order, so that no two who ask for several wait for each other.
        handles.sort_by(|a, b| a.origin.session_id.cmp(&b.origin.session_id));
        for handle in &handles {
            // What takes long is done before any is held.
            self.shared.folds.fold_up_to(log, &handle.origin.session_id, log.head()).await.map_err(|e| storage(&e))?;
        }
        let mut at = log.head();
        let mut held = Vec::with_capacity(handles.len());
        for handle in &handles {
            let mut fold =
                self.shared.folds.fold_up_to(log, &handle.origin.session_id, at).await.map_err(|e| storage(&e))?;
            at = at.max(fold.fold().map_or(at, |fold| fold.at));
            held.push(fold);
        }
        let mut snapshots = Vec::with_capacity(handles.len());
        for (handle, fold) in handles.iter().zip(held) {
            let fold = self.shared.folds.held_upto(fold, log, &handle.origin.session_id, at).await;
            let mut fold = fold.map_err(|error| storage(&error))?;
            snapshots.extend(fold.fold().map(|fold| self.snapshot_of(fold, handle, most)));
        }
        let rank = |snapshot: &Snapshot| self.shared.sessions.get(&snapshot.session.session_id).map(|one| one.rank());
        snapshots.sort_by_cached_key(|snapshot| std::cmp::Reverse(rank(snapshot)));
        Ok(Snapshots { at, snapshots, omitted })
    }

    fn snapshot_of(&self, fold: &mut SnapshotFold, handle: &SessionHandle, most: usize) -> Snapshot {
        let log = &self.shared.log;
        let requests = handle.view.load().open.clone();
        let trimmed = log.trimmed(&handle.origin.session_id) > Position::START;
        fold.snapshot(self.shown(handle), requests, log.cursor(fold.at), trimmed, most)
    }

    /// Passages that hold every word of `text`, best first.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn search(&self, text: String, limit: usize) -> Result<Vec<SearchHit>, SessionError> {
        let log = self.shared.log.clone();
        blocking(move || log.store().search(&text, limit)).await
    }

    // === inside ===

    fn handle(&self, id: &SessionId) -> Result<SessionHandle, SessionError> {
        self.shared.sessions.get(id).map(|handle| handle.clone()).ok_or_else(|| SessionError::NoSession(id.clone()))
    }

    fn wants(&self, id: &SessionId) -> Result<mpsc::Sender<SessionCommand>, SessionError> {
        let handle = self.handle(id)?;
        handle.wants.clone().ok_or_else(|| {
            let link = self.shared.runtimes.get(&handle.origin.runtime_id).map(|link| link.info());
            let why = link.and_then(|info| info.problem.clone());
            SessionError::RuntimeGone(why.unwrap_or_else(|| "it has exited; open a new session".into()))
        })
    }
}

/// Stops a runtime for good; returns once it is gone.
async fn stopped(link: &RuntimeLink) {
    let mut info = link.watch();
    link.stop();
    while info.borrow_and_update().state != RuntimeState::Exited {
        if info.changed().await.is_err() {
            break;
        }
    }
}

async fn ask<T>(
    wants: &mpsc::Sender<SessionCommand>,
    want: impl FnOnce(oneshot::Sender<Result<T, SessionError>>) -> SessionCommand,
) -> Result<T, SessionError> {
    let (reply, outcome) = oneshot::channel();
    let gone = || SessionError::RuntimeGone("the session has just ended".into());
    wants.send(want(reply)).await.map_err(|_| gone())?;
    outcome.await.map_err(|_| gone())?
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, SessionError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(|error| storage(&error)),
        Err(error) => Err(SessionError::Storage(error.to_string())),
    }
}

/// Which sessions retention trims, and up to where: the oldest blocks go first, whosever they are. What an unfinished run
/// or an open request needs stays, and what comes after it in its session.
fn choose(
    log: &Log,
    oldest_kept: Option<Timestamp>,
    max_bytes: Option<u64>,
) -> Result<BTreeMap<SessionId, Position>, StoreError> {
    let store = log.store();
    let mut too_much = match max_bytes {
        Some(most) => store.usage()?.event_bytes.saturating_sub(most),
        None => 0,
    };
    let (mut chosen, mut spared) = (BTreeMap::new(), HashMap::new());
    let mut after = Position::START;
    loop {
        let blocks = store.oldest(after, BLOCKS)?;
        let Some(last) = blocks.last() else { return Ok(chosen) };
        after = last.first;
        for block in blocks {
            if too_much == 0 && oldest_kept.is_none_or(|oldest| block.at >= oldest) {
                return Ok(chosen);
            }
            let spare_from = match spared.get(&block.session_id) {
                Some(known) => *known,
                None => {
                    let entry = store.session(&block.session_id)?;
                    let spare_from = entry.map_or(Some(Position::START), |entry| entry.row.spare_from);
                    spared.insert(block.session_id.clone(), spare_from);
                    spare_from
                }
            };
            if spare_from.is_some_and(|from| block.last >= from) {
                continue;
            }
            too_much = too_much.saturating_sub(block.bytes as u64);
            chosen.insert(block.session_id, block.last);
        }
    }
}

/// A key, if it can be one.
fn checked(key: Option<String>) -> Result<Option<String>, SessionError> {
    let fits = |key: &String| !key.is_empty() && key.len() <= KEY_MAX && key.bytes().all(|b| b.is_ascii_graphic());
    if key.as_ref().is_none_or(fits) { Ok(key) } else { Err(SessionError::BadKey) }
}
