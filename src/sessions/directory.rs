//! All sessions and runtimes: the one door to the heart.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use dashmap::DashMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};

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
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

    // === runtimes ===

    /// Starts a runtime and returns at once; its progress shows in [`runtime`](Self::runtime).
    ///
    /// # Errors
    /// [`SessionError::RuntimeExists`], [`SessionError::Invalid`].
    pub async fn start_runtime(
        &self,
        _permit: &Permit<Admin>,
        spec: RuntimeSpec,
    ) -> Result<Arc<RuntimeInfo>, SessionError> {
        self.launch(spec)
    }

    /// As [`start_runtime`](Self::start_runtime), for the gateway's own configuration.
    ///
    /// # Errors
    /// As [`start_runtime`](Self::start_runtime).
    pub fn launch(&self, spec: RuntimeSpec) -> Result<Arc<RuntimeInfo>, SessionError> {
        let id = spec.id.clone();
        let link = match self.shared.runtimes.entry(id.clone()) {
            dashmap::Entry::Occupied(there)
                if there.get().info().state != RuntimeState::Exited || there.get().info().unattended() =>
            {
                return Err(SessionError::RuntimeExists(id));
            }
            there => {
                let link = self.shared.launcher.launch(spec.clone()).map_err(SessionError::Invalid)?;
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
    /// [`SessionError::NoRuntime`].
    pub async fn stop_runtime(&self, _permit: &Permit<Admin>, id: &RuntimeId) -> Result<(), SessionError> {
        let link = self.shared.runtimes.get(id).map(|link| link.clone());
        let link = link.ok_or_else(|| SessionError::NoRuntime(id.clone()))?;
        stopped(&link).await;
        self.shared.launcher.clear(id).await;
        if self.shared.runtimes.remove_if(id, |_, there| there.info().state == RuntimeState::Exited).is_some() {
            self.shared.specs.remove(id);
            let of = |session: &SessionId| {
                self.shared.sessions.get(session).is_none_or(|handle| handle.origin.runtime_id == *id)
            };
            self.shared.reopening.retain(|session| !of(session));
            self.abandon("the endpoint was left: how this ended is not known here", |of| of == id).await;
        }
        self.shared.changed.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Stops a runtime and starts it again with the same settings. Its sessions are opened again once it is ready; what
    /// they ran is over, what they asked is void.
    ///
    /// # Errors
    /// [`SessionError::NoRuntime`], [`SessionError::Invalid`], [`SessionError::Stopping`].
    pub async fn restart_runtime(
        &self,
        _permit: &Permit<Admin>,
        id: &RuntimeId,
    ) -> Result<Arc<RuntimeInfo>, SessionError> {
        let (this, id) = (self.clone(), id.clone());
        // Not cut short by a client that leaves: stopped and not started is nobody's wish.
        let work = tokio::spawn(async move {
            let _alone = this.shared.restarting.lock().await;
            let link = this.shared.runtimes.get(&id).map(|link| link.clone());
            let Some(link) = link else { return Err(SessionError::NoRuntime(id)) };
            let spec = this.shared.specs.get(&id).map(|spec| spec.clone()).or_else(|| link.spec().cloned());
            let Some(spec) = spec else {
                let why = "what it was started with is not known: stop it, and start it anew";
                return Err(SessionError::Invalid(why.into()));
            };
            let waits = |session: &SessionId| this.shared.reopening.contains(session);
            let of = |handle: &SessionHandle| {
                handle.origin.runtime_id == id && (handle.wants.is_some() || waits(&handle.origin.session_id))
            };
            let handles = this.shared.sessions.iter();
            let live: Vec<SessionId> =
                handles.filter(|handle| of(handle)).map(|handle| handle.origin.session_id.clone()).collect();
            stopped(&link).await;
            this.shared.launcher.clear(&id).await;
            let info = this.launch(spec)?;
            this.open_again(live);
            Ok(info)
        });
        work.await.map_err(|_| SessionError::Stopping)?
    }

    /// What a runtime wrote to stderr of late, the oldest line first.
    ///
    /// # Errors
    /// [`SessionError::NoRuntime`].
    pub fn journal(
        &self,
        _permit: &Permit<Admin>,
        id: &RuntimeId,
    ) -> Result<Vec<super::stderr_log::StderrLine>, SessionError> {
        let link = self.shared.runtimes.get(id).ok_or_else(|| SessionError::NoRuntime(id.clone()))?;
        Ok(link.journal().lines())
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
            return Err(SessionError::Folder(format!("{cwd} is the gateway's own folder: no agent works there")));
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
            Ok(_) => Err(SessionError::Invalid(format!("cwd is no folder: {cwd:?}"))),
            Err(why) => Err(SessionError::Invalid(format!("cwd {cwd:?} cannot be worked in: {why}"))),
        }
    }

    /// Ends a session and forgets it, bytes and all. From the first moment nobody can reach it; once it is marked in the
    /// store everybody is told, and no crash brings it back; then its bytes go in small steps, which this waits for.
    ///
    /// # Errors
    /// [`SessionError::NoSession`]; [`SessionError::Storage`]: the session has ended and is still there.
    pub async fn forget_session(&self, _permit: &Permit<Admin>, id: &SessionId) -> Result<(), SessionError> {
        self.forget(id).await
    }

    /// As [`forget_session`](Self::forget_session).
    pub(super) async fn forget(&self, id: &SessionId) -> Result<(), SessionError> {
        let (_, handle) = self.shared.sessions.remove(id).ok_or_else(|| SessionError::NoSession(id.clone()))?;
        let this = self.clone();
        // Not cut short by a client that leaves: half deleted is nobody's wish.
        let work = tokio::spawn(async move { this.forget_unlisted(handle).await });
        work.await.map_err(|_| SessionError::Stopping)?
    }

    async fn forget_unlisted(&self, mut handle: SessionHandle) -> Result<(), SessionError> {
        let id = handle.origin.session_id.clone();
        self.shared.reopening.remove(&id);
        if let Some(wants) = handle.wants.take() {
            // Its task may be ending by itself just now.
            let _ = ask(&wants, |reply| SessionCommand::Close { reply }).await;
        }
        match self.shared.log.forget(&id).await {
            Ok(swept) => {
                self.shared.asked.retain(|_, session| *session != id);
                self.shared.folds.forget(&id);
                self.is_forgotten(handle.origin);
                // A gateway that stops goes on with it after its next start.
                let _ = swept.await;
                Ok(())
            }
            Err(error) => {
                self.shared.sessions.insert(id, handle);
                Err(storage(&error))
            }
        }
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
            return Err(SessionError::Invalid(format!("a title is 1 to {TITLE_MAX} characters, not only white space")));
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
                        SessionError::RuntimeGone(format!(
                            "{why}; start it again (restart its runtime), and the session goes on"
                        ))
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
            return Err(SessionError::Invalid(
                "that prompt still waits for its turn: there is nothing to restart".into(),
            ));
        }
        let (log, session, wanted) = (self.shared.log.clone(), id.clone(), run_id.or(info.run_id));
        let found = blocking(move || prompts::prompt_of(&log, &session, wanted.as_ref())).await?;
        let (run_id, content) = found.ok_or(SessionError::NoRun)?;
        let content = content.ok_or(SessionError::NotKept(
            "it began past the gateway, or what was said then is no longer kept; send it as a new prompt",
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

    // === requests ===

    /// Answers a request. The first answer that fits wins; it is on disk before anybody hears of it. `key`: 1 to
    /// [`KEY_MAX`] visible ASCII characters; the same answer of the same device again under it gets its own receipt again.
    ///
    /// # Errors
    /// [`SessionError::BadKey`], [`SessionError::KeyReused`] (the key came with another answer that won),
    /// [`SessionError::AlreadyResolved`] with the winner's receipt, [`SessionError::Closed`], [`SessionError::NoRequest`],
    /// [`SessionError::RiskTooHigh`], [`SessionError::StaleDigest`], [`SessionError::BadAnswer`], [`SessionError::Storage`].
    pub async fn answer(
        &self,
        permit: &Permit<Approve>,
        id: &RequestId,
        answer: Answer,
        key: Option<String>,
    ) -> Result<Receipt, SessionError> {
        let (by, up_to) = (permit.device().resolver(), permit.device().grant.approve_up_to);
        let key = checked(key)?.map(|key| AnswerKey::new(key, by.device_id.clone(), &answer));
        let until = Instant::now() + REATTACHING;
        let outcome = loop {
            let session = self.shared.asked.get(id).map(|session| session.clone());
            let outcome = match session.map(|session| self.wants(&session)) {
                Some(Ok(wants)) => {
                    let (id, key) = (id.clone(), key.clone());
                    let answer = Box::new(answer.clone());
                    let at = Instant::now();
                    ask(&wants, |reply| SessionCommand::Answer { id, answer, by: by.clone(), up_to, key, at, reply })
                        .await
                }
                Some(Err(gone)) => Err(gone),
                None => Err(SessionError::NoRequest(id.clone())),
            };
            // Not open here: closed long ago, or a moment ago by a task that has ended since; or its session is being
            // opened again, as after a start of the gateway.
            match outcome {
                Err(gone @ (SessionError::NoRequest(_) | SessionError::RuntimeGone(_) | SessionError::Stopping)) => {
                    match self.late(id, key.clone(), gone).await {
                        Err(SessionError::RuntimeGone(_) | SessionError::Stopping)
                            if self.takes_answers(id, until).await => {}
                        late => break late,
                    }
                }
                outcome => break outcome,
            }
        };
        match outcome {
            Err(SessionError::AlreadyResolved(receipt)) if receipt.won => Ok(*receipt),
            Err(SessionError::AlreadyResolved(receipt)) => {
                metrics().double_answers.inc();
                Err(SessionError::AlreadyResolved(receipt))
            }
            outcome => outcome,
        }
    }

    /// Waits until the session of a request has a task that takes answers; false if it has none by `until`.
    async fn takes_answers(&self, id: &RequestId, until: Instant) -> bool {
        loop {
            let session = self.shared.asked.get(id).map(|session| session.clone());
            let wants = session.and_then(|session| self.wants(&session).ok());
            if wants.is_some_and(|wants| !wants.is_closed()) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            tokio::time::sleep(PARKED_IN).await;
        }
    }

    /// What becomes of an answer to a request that no task of a session has: `gone` where it is still open.
    async fn late(&self, id: &RequestId, key: Option<AnswerKey>, gone: SessionError) -> Result<Receipt, SessionError> {
        let (log, wanted) = (self.shared.log.clone(), id.clone());
        let row = blocking(move || log.store().request(&wanted)).await?;
        let row = row.ok_or_else(|| SessionError::NoRequest(id.clone()))?;
        let request: Request =
            serde_json::from_slice(&row.body).map_err(|error| SessionError::Storage(error.to_string()))?;
        match request.receipt {
            Some(receipt) => Err(state::late(receipt, row.answer_key.as_deref(), key.as_ref())),
            None => Err(if matches!(gone, SessionError::NoRequest(_)) { SessionError::Stopping } else { gone }),
        }
    }

    /// Requests that the filter lets through, in brief, newest first: of one state if named, of one session if named, and before the
    /// one numbered `before`; `limit` at most, and at most [`LISTED`]. Also returns where to go on, if there may be more.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn requests(
        &self,
        filter: &Filter,
        state: Option<RequestState>,
        session: Option<&SessionId>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<(Vec<Request>, Option<u64>), SessionError> {
        let (log, filter, session) = (self.shared.log.clone(), filter.clone(), session.cloned());
        let limit = limit.clamp(1, LISTED);
        blocking(move || {
            let (mut found, mut before, mut looks) = (Vec::new(), before, 0);
            loop {
                let query = RequestQuery { state, session: session.as_ref(), before, limit: LISTING_ROWS };
                let page = log.store().requests(query)?;
                for (no, row) in &page.rows {
                    if found.len() >= limit || looks >= LISTING_LOOKS {
                        return Ok((found, before));
                    }
                    (before, looks) = (Some(*no), looks + 1);
                    let Ok(request) = serde_json::from_slice::<Request>(&row.body) else { continue };
                    let origin = Origin {
                        session_id: request.session_id.clone(),
                        runtime_id: request.runtime_id.clone(),
                        dialect: "".into(),
                    };
                    if filter.takes(&origin) {
                        // A page holds what is shown of each, however long it is.
                        let brief = match request.brief() {
                            Cow::Owned(brief) => Some(brief),
                            Cow::Borrowed(_) => None,
                        };
                        found.push(brief.unwrap_or(request));
                    }
                }
                before = page.next;
                if before.is_none() || found.len() >= limit {
                    return Ok((found, before));
                }
            }
        })
        .await
    }

    /// One request.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn request(&self, id: &RequestId) -> Result<Option<Request>, SessionError> {
        let (log, id) = (self.shared.log.clone(), id.clone());
        let row = blocking(move || log.store().request(&id)).await?;
        Ok(row.and_then(|row| serde_json::from_slice(&row.body).ok()))
    }

    /// The session and runtime that a request belongs to, for the permit to answer it.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn request_target(&self, id: &RequestId) -> Result<Option<(SessionId, RuntimeId)>, SessionError> {
        let session = self.shared.asked.get(id).map(|session| session.clone());
        let handle = session.and_then(|session| self.shared.sessions.get(&session).map(|handle| handle.clone()));
        if let Some(handle) = handle {
            return Ok(Some((handle.origin.session_id.clone(), handle.origin.runtime_id.clone())));
        }
        Ok(self.request(id).await?.map(|request| (request.session_id, request.runtime_id)))
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

    /// One round of retention: removes what is too old or too much, never what an open request or an unfinished run
    /// still needs. Returns how many sessions lost events.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn retain(&self, retention: RetentionRules, now: Timestamp) -> Result<usize, SessionError> {
        let log = &self.shared.log;
        let oldest_kept = retention.max_age_ms.map(|ms| now.plus_millis(-i64::try_from(ms).unwrap_or(i64::MAX)));
        let for_choice = log.clone();
        let chosen = blocking(move || choose(&for_choice, oldest_kept, retention.max_bytes)).await?;
        let mut sessions = 0;
        // One at a time: what is folded of one session is let go before the next.
        for (session, through) in chosen {
            let for_trim = log.clone();
            if let Some(trim) = blocking(move || trim_of(&for_trim, session, through)).await? {
                sessions += log.trim(vec![trim]).await.map_err(|error| storage(&error))?;
            }
        }
        while log.retire(oldest_kept, CLOSED_MAX).await.map_err(|error| storage(&error))? {}
        Ok(sessions)
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

/// What to remove of a session, and what late readers still need of it.
fn trim_of(log: &Log, session_id: SessionId, through: Position) -> Result<Option<Trim>, StoreError> {
    let Some(entry) = log.store().session(&session_id)? else { return Ok(None) };
    let mut fold = entry.base.as_deref().map_or_else(SnapshotFold::default, SnapshotFold::from_base);
    let filter = Filter::session(session_id.clone());
    let mut after = entry.trimmed;
    while after < through {
        let page = log.read_blocking(&filter, after, PAGE)?;
        page.events.iter().filter(|event| event.position <= through).for_each(|event| fold.event(event));
        if page.next <= after {
            break;
        }
        after = page.next;
    }
    Ok(Some(Trim { session_id, through, base: Some(fold.base()) }))
}

/// A key, if it can be one.
fn checked(key: Option<String>) -> Result<Option<String>, SessionError> {
    let fits = |key: &String| !key.is_empty() && key.len() <= KEY_MAX && key.bytes().all(|b| b.is_ascii_graphic());
    if key.as_ref().is_none_or(fits) { Ok(key) } else { Err(SessionError::BadKey) }
}
