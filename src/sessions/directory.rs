//! All sessions and runtimes: the interface of this module for the router and the binary.

mod ceilings;
mod changes;
mod files;
mod first_settings;
mod opening;
mod projects;
mod recovery;
mod requests;
mod resumable;
mod retention;
mod runtimes;
mod surfaces;
mod unattached;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use dashmap::DashMap;
pub use first_settings::FirstSettings;
use parking_lot::Mutex;
use resumable::Listings;
pub use resumable::{ListPosition, RESUMABLE_MAX};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};

use super::answer_key::AnswerKey;
use super::ceilings::CeilingBook;
use super::changes::Changes;
use super::client_calls::SessionOwner;
use super::files::FolderWalks;
use super::idempotency::is_valid_key;
use super::projects::Projects;
use super::prompt_key::PromptKey;
use super::rules::SessionRules;
use super::session_handle::{NewsRank, SessionCommand, SessionHandle};
use super::snapshot::{SnapshotFold, WINDOW};
use super::snapshot_cache::SnapshotCache;
use super::state::{self, SessionEdit};
use super::system::{blocking, now};
use super::{Clients, Filter, Launcher, Log, RuntimeLink, SessionError, Snapshot, leads_into, policy, prompts};
use plexus_auth::{Admin, Approve, Permit, Prompt, Target};
use plexus_dialects::McpServer;
use plexus_ledger::Ledger;
use plexus_metrics::metrics;
use plexus_protocol::api::sessions::AcceptedPrompt;
use plexus_protocol::{
    Answer, Connect, NativeId, Origin, Position, Receipt, Request, RequestId, RequestState, RunId, RunInfo, RuntimeId,
    RuntimeInfo, RuntimeSpec, RuntimeState, Scope, SessionId, SessionInfo, Timestamp,
};
use plexus_store::{ReadLimit, RequestQuery, SearchHit, SpendGroup, SpendQuery, SpendRow, StoreError, Trim};

/// Limit of one read of events.
pub(super) const PAGE: ReadLimit = ReadLimit { events: 8192, bytes: 8 << 20 };
/// Most sessions in one answer with snapshots.
const SNAPSHOTS: usize = 64;
/// Most bytes of messages and tools in one answer with several snapshots, about.
const SNAPSHOTS_BYTES: usize = 1 << 20;
/// Bytes of surfaces in the snapshots of several sessions; of a session that has more than its part, they are left out.
const SNAPSHOTS_SURFACES_BYTES: usize = 4 << 20;
/// Most requests on one page of a listing.
pub const LISTED: usize = 1000;
/// Most requests read for one page of a listing, with those that the filter drops; then the page ends, full or not.
const LISTING_READS: usize = 16 * LISTED;
/// Rows in one read of a listing.
const LISTING_ROWS: usize = 32;
/// Longest title that a person gives, in characters; a longer one is refused.
pub const TITLE_MAX: usize = 200;
/// Attempts to reach a session whose task is just ending or starting.
pub(super) const HANDOVER_TRIES: usize = 100;
/// Pause between those attempts.
pub(super) const HANDOVER_WAIT: std::time::Duration = std::time::Duration::from_millis(20);
/// How long an answer waits for the session of its request while it is being reopened.
const REATTACHING: std::time::Duration = std::time::Duration::from_secs(5);
/// Deleted sessions that are remembered for clients that follow the list; a client further behind lists all sessions again.
pub(super) const FORGOTTEN: usize = 256;
/// Blocks in one read of retention.
const BLOCKS: usize = 1000;
/// Most closed requests in the store; retention removes the oldest beyond it.
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
    /// Accounts for the content of queued prompts.
    pub(super) ledger: Arc<OnceLock<Ledger>>,
    tools: OnceLock<Arc<dyn AgentTools>>,
    pub(super) sessions: DashMap<SessionId, SessionHandle>,
    /// The sessions of the open requests.
    pub(super) request_sessions: Arc<DashMap<RequestId, SessionId>>,
    pub(super) runtimes: DashMap<RuntimeId, RuntimeLink>,
    /// What each runtime was started with, for restarts.
    pub(super) specs: DashMap<RuntimeId, RuntimeSpec>,
    /// Conversations that are being opened, so that the same one is opened once.
    pub(super) opening: Mutex<HashMap<(RuntimeId, String), OpenTurn>>,
    /// Held while a runtime is restarted: one restart at a time.
    restarting: tokio::sync::Mutex<()>,
    /// Sessions to reopen once their restarted runtime is ready.
    pub(super) reopening: dashmap::DashSet<SessionId>,
    pub(super) changed: watch::Sender<u64>,
    /// The last [`FORGOTTEN`] deleted sessions.
    forgotten: Mutex<VecDeque<Arc<Origin>>>,
    /// The number of sessions deleted since the start.
    forgotten_count: watch::Sender<u64>,
    /// What agents may spend, and what today has spent.
    pub(super) ceilings: Arc<CeilingBook>,
    pub(super) folds: SnapshotCache,
    pub(super) projects: Projects,
    pub(super) folder_walks: FolderWalks,
    pub(super) changes: Arc<Changes>,
    /// Pending queries for the conversations that runtimes store, one per runtime.
    listings: Listings,
}

/// The tools that the gateway gives to the agents of sessions.
pub trait AgentTools: Send + Sync {
    /// The MCP servers for the agent of a session that is being opened.
    fn begin(&self, session: &SessionId) -> Vec<McpServer>;
    /// The session's agent is gone.
    fn end(&self, session: &SessionId);
    /// Only the agents of these sessions outlived an earlier gateway; they go on with the tools that they have.
    fn found(&self, sessions: &[SessionId]);
}

/// Held while a conversation is opened. Holds the error if that failed, for those who wait for the same conversation.
pub(super) type OpenTurn = Arc<tokio::sync::Mutex<Option<SessionError>>>;

/// The snapshots of several sessions, all exact at one position.
#[derive(Debug)]
pub struct Snapshots {
    /// The position of all snapshots; read on after it.
    pub at: Position,
    /// The snapshots of the sessions that changed last.
    pub snapshots: Vec<Snapshot>,
    /// The number of further sessions; their snapshots can be read one by one.
    pub omitted: usize,
}

/// How long events are kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetentionRules {
    /// Greatest age of an event, in milliseconds.
    pub max_age_ms: Option<u64>,
    /// Most bytes of all events; the oldest are removed beyond it.
    pub max_bytes: Option<u64>,
}

/// A session to open.
#[derive(Clone, Debug)]
pub struct OpenSession {
    /// The runtime to open it in.
    pub runtime_id: RuntimeId,
    /// The session's folder, absolute; the runtime's own if absent.
    pub cwd: Option<String>,
    /// The title; taken from the first prompt if absent.
    pub title: Option<String>,
    /// A conversation that the runtime has already.
    pub native_id: Option<String>,
    /// The program that opens the session: see [`SessionOwner::program`].
    pub program: Option<String>,
    /// MCP servers for the session's agent besides the gateway's own, in ACP's form. Not stored: a session that is opened again
    /// goes on without them. The caller has checked that the client may name programs.
    pub mcp_servers: Vec<Box<RawValue>>,
}

impl Directory {
    /// Opens the directory over a log. Sessions that a killed gateway left open are closed first: their requests become
    /// `orphaned` and their runs end, with events.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open(log: Log, launcher: Arc<dyn Launcher>, rules: SessionRules) -> Result<Self, StoreError> {
        Self::open_limited(log, launcher, rules, CeilingBook::default()).await
    }

    /// As [`open`](Self::open), with ceilings of what agents may spend.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open_limited(
        log: Log,
        launcher: Arc<dyn Launcher>,
        rules: SessionRules,
        ceilings: CeilingBook,
    ) -> Result<Self, StoreError> {
        ceilings.begin(log.store().as_ref(), now())?;
        let directory = Self {
            shared: Arc::new(Shared {
                log,
                launcher,
                rules,
                ledger: Arc::default(),
                tools: OnceLock::new(),
                sessions: DashMap::new(),
                request_sessions: Arc::default(),
                runtimes: DashMap::new(),
                specs: DashMap::new(),
                opening: Mutex::default(),
                restarting: tokio::sync::Mutex::default(),
                reopening: dashmap::DashSet::new(),
                changed: watch::Sender::new(0),
                forgotten: Mutex::default(),
                forgotten_count: watch::Sender::new(0),
                ceilings: Arc::new(ceilings),
                folds: SnapshotCache::default(),
                projects: Projects::default(),
                folder_walks: FolderWalks::default(),
                changes: Arc::default(),
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

    // === listing ===

    /// All sessions, the one that changed last first.
    pub fn sessions(&self) -> Vec<Arc<SessionInfo>> {
        self.ranked().into_iter().map(|(_, session)| session).collect()
    }

    /// All sessions with their rank, ordered by it and then by identifier.
    pub fn ranked(&self) -> Vec<(NewsRank, Arc<SessionInfo>)> {
        let handles = self.shared.sessions.iter();
        let mut all: Vec<_> = handles.map(|handle| (handle.rank(), Arc::new(self.info_of(&handle)))).collect();
        all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.session_id.cmp(&b.1.session_id)));
        all
    }

    /// The position of a session's last event.
    pub fn last(&self, id: &SessionId) -> Option<Position> {
        let last = self.shared.sessions.get(id)?.last.load(std::sync::atomic::Ordering::Relaxed);
        Some(Position(last))
    }

    /// The `most` sessions that changed last, of those that `wanted` accepts, and the number of further ones. Copies only the
    /// sessions that it returns.
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
        self.shared.sessions.get(id).map(|handle| Arc::new(self.info_of(&handle)))
    }

    /// A session as clients see it.
    fn info_of(&self, handle: &SessionHandle) -> SessionInfo {
        let mut info = handle.info();
        let exited = info.state == plexus_protocol::SessionState::Exited;
        // A terminal that was closed is opened again by hand.
        let starts = !plexus_dialects::link::in_terminal(&info.dialect);
        if info.project.is_none() {
            // It ended in an earlier gateway, which did not look.
            info.project = self.shared.projects.known(&info.cwd);
        }
        info.restartable = exited && starts && self.shared.specs.contains_key(&info.runtime_id);
        info
    }

    /// The position of the event that set a session's current activity.
    pub fn doing_at(&self, id: &SessionId) -> Option<Position> {
        let at = self.shared.sessions.get(id)?.doing_at.load(std::sync::atomic::Ordering::Relaxed);
        Some(Position(at))
    }

    /// The open requests that the filter accepts, oldest first. Never older than the log.
    pub fn open_requests(&self, filter: &Filter) -> Vec<Arc<Request>> {
        let mut open: Vec<_> = self.handles(filter).flat_map(|handle| handle.view.load().open.clone()).collect();
        open.sort_by_key(|request| request.opened_at);
        open
    }

    /// The running and queued runs that the filter accepts. Never older than the log.
    pub fn runs(&self, filter: &Filter) -> Vec<RunInfo> {
        self.handles(filter).flat_map(|handle| handle.view.load().runs.clone()).collect()
    }

    /// The content blocks of a session's queued prompts, the next one first.
    pub fn waiting(&self, id: &SessionId) -> Vec<(RunId, Arc<Vec<Box<RawValue>>>)> {
        self.shared.sessions.get(id).map(|handle| handle.view.load().waiting.clone()).unwrap_or_default()
    }

    fn handles(&self, filter: &Filter) -> impl Iterator<Item = SessionHandle> {
        let sessions = &self.shared.sessions;
        let handles: Vec<SessionHandle> = match &filter.sessions {
            Some(ids) => ids.iter().filter_map(|id| Some(sessions.get(id)?.clone())).collect(),
            None => sessions.iter().map(|handle| handle.clone()).collect(),
        };
        handles.into_iter().filter(|handle| filter.takes(&handle.origin))
    }

    // === sessions ===

    /// Opens a session; waits until the runtime is ready and has opened it.
    ///
    /// # Errors
    /// [`SessionError::NoRuntime`], [`SessionError::RuntimeGone`], [`SessionError::RuntimeRefused`], [`SessionError::Storage`],
    /// [`SessionError::Invalid`].
    pub async fn open_session(
        &self,
        permit: &Permit<Prompt>,
        open: OpenSession,
    ) -> Result<Arc<SessionInfo>, SessionError> {
        self.check_folder_allowed(permit, &open)?;
        self.check_folder_exists(&open).await?;
        // A device that may not see the terminal is not told which session it is.
        if let Some(there) = open.native_id.as_deref().and_then(|native| self.in_open_terminal(native))
            && let Some(info) = self.session(&there)
            && !permit.device().grant.covers(Scope::Prompt, Target::Session(&there, &info.runtime_id))
        {
            let why =
                "this conversation is open in its own terminal, which this device may not see; close it there first";
            return Err(SessionError::Invalid(why.into()));
        }
        let owner = SessionOwner { device: permit.device().device_id.clone(), program: open.program.clone() };
        self.begin_for(open, Some(owner)).await
    }

    /// Checks that the device may open a session in the folder: administrators in any but the gateway's own, others inside the
    /// runtime's folder. Links are resolved.
    fn check_folder_allowed(&self, permit: &Permit<Prompt>, open: &OpenSession) -> Result<(), SessionError> {
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

    /// Checks that the folder exists. Only for programs, which run on this machine: an endpoint may have a file system of its
    /// own.
    async fn check_folder_exists(&self, open: &OpenSession) -> Result<(), SessionError> {
        let Some(cwd) = &open.cwd else { return Ok(()) };
        if cwd.contains('\0') {
            return Err(SessionError::Invalid("cwd has a NUL character: no folder's name has one".into()));
        }
        let local = self.runtime(&open.runtime_id).is_some_and(|info| matches!(info.connect, Connect::Command(_)));
        // Long and relative paths are refused later, with errors of their own.
        if !local || cwd.len() > opening::CWD_MAX || !cwd.starts_with('/') {
            return Ok(());
        }
        let folder = std::path::PathBuf::from(cwd);
        // A folder may be on a slow disk.
        let found =
            tokio::task::spawn_blocking(move || std::fs::metadata(folder)).await.map_err(|_| SessionError::Stopping)?;
        match found {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(SessionError::Invalid(format!("cwd is not a folder: {cwd:?}"))),
            Err(why) => Err(SessionError::Invalid(format!("cwd {cwd:?} cannot be used: {why}"))),
        }
    }

    /// Renames, archives or unarchives a session, also one that has ended.
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
        for _ in 0..HANDOVER_TRIES {
            let outcome = match self.handle(id)?.commands {
                Some(commands) => {
                    let (edit, by) = (edit.clone(), by.clone());
                    send_command(&commands, |reply| SessionCommand::Edit { edit, by, reply }).await
                }
                None => self.edit_ended(id, edit.clone(), &by).await,
            };
            match outcome {
                // The session's task is just ending or starting.
                Err(SessionError::RuntimeGone(_)) => tokio::time::sleep(HANDOVER_WAIT).await,
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

    /// As [`prompt`](Self::prompt), with an idempotency key of the caller's device: the same prompt again under the same key
    /// starts nothing and returns the first run, also across restarts and if the runtime is gone. A session remembers the keys
    /// of running and queued prompts, and of the last 64 ended runs. `key`: 1 to [`KEY_MAX`] visible ASCII characters.
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
        // A prompt that is sent again passed the check before; the limits may have changed.
        if again.is_none() {
            prompts::check(&content, self.shared.rules.prompt_max)?;
        }
        let content = Arc::new(content);
        let by = permit.device().resolver();
        let once = checked_key(key)?.map(|key| PromptKey::new(key, by.device_id.clone(), Arc::clone(&content)));
        let commands = match self.commands(id) {
            // The session's runtime may have been restarted since.
            Err(SessionError::RuntimeGone(why)) => {
                if let Some(once) = &once {
                    let handle = self.handle(id)?;
                    // While the session is being opened, its state is not in the handle.
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
                self.commands(id)?
            }
            commands => commands?,
        };
        let bytes = content.iter().map(|block| block.get().len()).sum();
        let runtime = self.handle(id)?.origin.runtime_id.clone();
        let charge = self.shared.ledger.get().map(|ledger| ledger.session(id.as_str(), runtime.as_str()).charge(bytes));
        let text = prompts::first_text(&content);
        if let Some(session) = self.session(id).filter(|session| session.run_id.is_none()) {
            self.shared.changes.before_prompt(id, &session.cwd, &text).await;
        }
        let command = |reply| SessionCommand::Prompt { content, by, once, again, charge, reply };
        let accepted = send_command(&commands, command).await?;
        if accepted.queued {
            self.shared.changes.queued(&accepted.run_id, &text);
        }
        Ok(accepted)
    }

    /// Sends the prompt of a run again: of the run named, else of the current run, else of the last one. A current run is
    /// cancelled first. The prompt comes before the queued ones. `key` as with [`prompt_once`](Self::prompt_once).
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

    /// Cancels the current run, or the one named. Returns its identifier.
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

    /// As [`cancel`](Self::cancel), with a reason, which some runtimes accept.
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
        send_command(&self.commands(id)?, |reply| SessionCommand::Cancel { run_id, by, reason, reply }).await
    }

    /// Calls a method of the session's runtime. With `notify` the call has no reply, and `null` is returned. Methods that act
    /// without a permission request need more than the permit: see `sessions::policy`.
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
        send_command(&self.commands(id)?, |reply| SessionCommand::Call { method, params, notify, reply }).await
    }

    /// Sets the tools of agents. Later calls have no effect.
    pub fn give_tools(&self, tools: Arc<dyn AgentTools>) {
        if self.shared.tools.set(Arc::clone(&tools)).is_ok() {
            let live = self.shared.sessions.iter().filter(|handle| handle.commands.is_some());
            let live: Vec<SessionId> = live.map(|handle| handle.origin.session_id.clone()).collect();
            tools.found(&live);
        }
    }

    /// The MCP servers for the agent of a session that is being opened; none if its runtime is to have none.
    pub(super) fn tools_for(&self, session: &SessionId, runtime: &RuntimeId) -> Vec<McpServer> {
        let wanted = self.shared.specs.get(runtime).is_none_or(|spec| spec.ui);
        let tools = self.shared.tools.get().filter(|_| wanted);
        tools.map(|tools| tools.begin(session)).unwrap_or_default()
    }

    pub(super) fn end_tools(&self, session: &SessionId) {
        if let Some(tools) = self.shared.tools.get() {
            tools.end(session);
        }
    }

    /// Sets the ledger that accounts for queued prompts and for surfaces. Later calls have no effect.
    pub fn charge_to(&self, ledger: &Ledger) {
        let _ = self.shared.ledger.set(ledger.clone());
    }

    /// Sets the router's part that delivers client calls of agents (files, terminals). Later calls have no effect.
    pub fn reach_clients(&self, clients: Arc<dyn Clients>) {
        // Weak: the directory owns the runtimes, which own this closure.
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

    /// The snapshot of a session, with at most [`WINDOW`] bytes of messages and tools.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Storage`].
    pub async fn snapshot(&self, id: &SessionId) -> Result<Snapshot, SessionError> {
        self.snapshot_within(id, WINDOW).await
    }

    /// The snapshot of a session, with at most `most` bytes of messages and tools.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Storage`].
    pub async fn snapshot_within(&self, id: &SessionId, most: usize) -> Result<Snapshot, SessionError> {
        let handle = self.handle(id)?;
        let log = &self.shared.log;
        let fold = self.shared.folds.fold_up_to(log, id, log.head()).await;
        let mut fold = fold.map_err(|error| SessionError::of_store(&error))?;
        let snapshot = fold.fold().map(|fold| self.snapshot_of(fold, &handle, most));
        drop(fold);
        let snapshot = snapshot.ok_or_else(|| SessionError::NoSession(id.clone()))?;
        Ok(Snapshot { surfaces: self.surfaces(id).await?, ..snapshot })
    }

    /// The snapshots of the 64 sessions that changed last, all exact at one position.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn snapshots(&self, filter: &Filter) -> Result<Snapshots, SessionError> {
        let log = &self.shared.log;
        let mut handles: Vec<SessionHandle> = self.handles(filter).collect();
        handles.sort_by_cached_key(|handle| std::cmp::Reverse(handle.rank()));
        let omitted = handles.len().saturating_sub(SNAPSHOTS);
        handles.truncate(SNAPSHOTS);
        let most = WINDOW.min(SNAPSHOTS_BYTES / handles.len().max(1));
        // Locked in one order, so that concurrent callers do not deadlock.
        handles.sort_by(|a, b| a.origin.session_id.cmp(&b.origin.session_id));
        for handle in &handles {
            // Slow work is done before any fold is locked.
            self.shared
                .folds
                .fold_up_to(log, &handle.origin.session_id, log.head())
                .await
                .map_err(|e| SessionError::of_store(&e))?;
        }
        let mut at = log.head();
        let mut locked = Vec::with_capacity(handles.len());
        for handle in &handles {
            let mut fold = self
                .shared
                .folds
                .fold_up_to(log, &handle.origin.session_id, at)
                .await
                .map_err(|e| SessionError::of_store(&e))?;
            at = at.max(fold.fold().map_or(at, |fold| fold.at));
            locked.push(fold);
        }
        let mut snapshots = Vec::with_capacity(handles.len());
        for (handle, fold) in handles.iter().zip(locked) {
            let fold = self.shared.folds.advance(fold, log, &handle.origin.session_id, at).await;
            let mut fold = fold.map_err(|error| SessionError::of_store(&error))?;
            snapshots.extend(fold.fold().map(|fold| self.snapshot_of(fold, handle, most)));
        }
        let rank =
            |snapshot: &Snapshot| self.shared.sessions.get(&snapshot.session.session_id).map(|handle| handle.rank());
        snapshots.sort_by_cached_key(|snapshot| std::cmp::Reverse(rank(snapshot)));
        let most = SNAPSHOTS_SURFACES_BYTES / snapshots.len().max(1);
        for snapshot in &mut snapshots {
            match self.surfaces(&snapshot.session.session_id).await {
                Ok(surfaces) => {
                    let bytes: usize = surfaces.iter().map(|surface| surface.get().len()).sum();
                    snapshot.surfaces_omitted = bytes > most;
                    snapshot.surfaces = if snapshot.surfaces_omitted { Vec::new() } else { surfaces };
                }
                // Deleted meanwhile.
                Err(SessionError::NoSession(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Snapshots { at, snapshots, omitted })
    }

    fn snapshot_of(&self, fold: &mut SnapshotFold, handle: &SessionHandle, most: usize) -> Snapshot {
        let log = &self.shared.log;
        let requests = handle.view.load().open.clone();
        let trimmed = log.trimmed(&handle.origin.session_id) > Position::START;
        fold.snapshot(self.info_of(handle), requests, log.cursor(fold.at), trimmed, most)
    }

    /// Passages that hold every word of `text`, best first.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn search(&self, text: String, limit: usize) -> Result<Vec<SearchHit>, SessionError> {
        let log = self.shared.log.clone();
        blocking(move || log.store().search(&text, limit)).await
    }

    /// Sums of what was spent from one time up to another, in no order.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn spending(
        &self,
        from: Timestamp,
        to: Timestamp,
        session: Option<SessionId>,
        by: SpendGroup,
        offset_millis: i64,
    ) -> Result<Vec<SpendRow>, SessionError> {
        let log = self.shared.log.clone();
        let read = move || log.store().spending(SpendQuery { from, to, session: session.as_ref(), by, offset_millis });
        blocking(read).await
    }

    // === helpers ===

    fn handle(&self, id: &SessionId) -> Result<SessionHandle, SessionError> {
        self.shared.sessions.get(id).map(|handle| handle.clone()).ok_or_else(|| SessionError::NoSession(id.clone()))
    }

    /// The command queue of a session's task.
    fn commands(&self, id: &SessionId) -> Result<mpsc::Sender<SessionCommand>, SessionError> {
        let handle = self.handle(id)?;
        handle.commands.clone().ok_or_else(|| {
            let link = self.shared.runtimes.get(&handle.origin.runtime_id).map(|link| link.info());
            let why = link.and_then(|info| info.problem.clone());
            SessionError::RuntimeGone(why.unwrap_or_else(|| "it has exited; open a new session".into()))
        })
    }
}

/// Stops a runtime for good; returns once it is gone.
async fn stop_and_wait(link: &RuntimeLink) {
    let mut info = link.watch();
    link.stop();
    while info.borrow_and_update().state != RuntimeState::Exited {
        if info.changed().await.is_err() {
            break;
        }
    }
}

/// Sends a command to a session's task, and waits for the reply.
async fn send_command<T>(
    commands: &mpsc::Sender<SessionCommand>,
    command: impl FnOnce(oneshot::Sender<Result<T, SessionError>>) -> SessionCommand,
) -> Result<T, SessionError> {
    let (reply, outcome) = oneshot::channel();
    let gone = || SessionError::RuntimeGone("the session has just ended".into());
    commands.send(command(reply)).await.map_err(|_| gone())?;
    outcome.await.map_err(|_| gone())?
}

/// One round of retention removes at most this part of the stored bytes, so that a mistake is noticed before all is gone.
const ROUND_SHARE: u64 = 10;

/// The sessions that retention trims, and up to which position: the oldest blocks of all sessions go first. Events that an
/// unfinished run or an open request needs stay, and all later events of that session.
fn choose(
    log: &Log,
    oldest_kept: Option<Timestamp>,
    max_bytes: Option<u64>,
) -> Result<BTreeMap<SessionId, Position>, StoreError> {
    let store = log.store();
    let stored = store.usage()?.event_bytes;
    let mut excess = max_bytes.map_or(0, |most| stored.saturating_sub(most));
    let mut allowance = stored / ROUND_SHARE;
    let (mut chosen, mut retained) = (BTreeMap::new(), HashMap::new());
    let mut after = Position::START;
    loop {
        let blocks = store.oldest(after, BLOCKS)?;
        let Some(last) = blocks.last() else { return Ok(chosen) };
        after = last.first;
        for block in blocks {
            if excess == 0 && oldest_kept.is_none_or(|oldest| block.at >= oldest) {
                return Ok(chosen);
            }
            let retain_from = match retained.get(&block.session_id) {
                Some(known) => *known,
                None => {
                    let entry = store.session(&block.session_id)?;
                    let retain_from = entry.map_or(Some(Position::START), |entry| entry.row.spare_from);
                    retained.insert(block.session_id.clone(), retain_from);
                    retain_from
                }
            };
            if retain_from.is_some_and(|from| block.last >= from) {
                continue;
            }
            let bytes = block.bytes as u64;
            if bytes > allowance && !chosen.is_empty() {
                return Ok(chosen);
            }
            (excess, allowance) = (excess.saturating_sub(bytes), allowance.saturating_sub(bytes));
            chosen.insert(block.session_id, block.last);
        }
    }
}

/// Checks an idempotency key.
fn checked_key(key: Option<String>) -> Result<Option<String>, SessionError> {
    if key.as_deref().is_none_or(is_valid_key) { Ok(key) } else { Err(SessionError::BadKey) }
}
