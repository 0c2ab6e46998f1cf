//! All sessions and runtimes: the interface of this module for the router and the binary.

mod ceilings;
mod changes;
mod deleted;
mod files;
mod first_settings;
mod opening;
mod projects;
mod recovery;
mod registry;
mod requests;
mod resumable;
mod retention;
mod runtimes;
mod snapshots;
mod surfaces;
mod unattached;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

pub use ceilings::DirectoryCeilings;
pub use changes::DirectoryChanges;
pub use deleted::DeletedSessions;
#[cfg(test)]
pub(super) use deleted::REMEMBERED;
pub use files::DirectoryFiles;
pub use first_settings::FirstSettings;
use parking_lot::Mutex;
use registry::Registry;
pub use requests::{DirectoryRequests, LISTED};
pub use resumable::{DirectoryResumable, ListPosition, RESUMABLE_MAX};
use serde_json::value::RawValue;
pub use snapshots::{DirectorySnapshots, Snapshots};
pub use surfaces::DirectorySurfaces;
use tokio::sync::{mpsc, oneshot, watch};

use super::ceilings::CeilingBook;
use super::client_calls::SessionOwner;
use super::files::FolderWalks;
use super::idempotency::is_valid_key;
use super::prompt_key::PromptKey;
use super::rules::SessionRules;
use super::session_handle::{ActivityRank, SessionCommand, SessionHandle};
use super::snapshot_cache::SnapshotCache;
use super::state::SessionEdit;
use super::system::{blocking, now};
use super::{Clients, Filter, Launcher, Log, RuntimeLink, SessionError, is_inside, policy, prompts};
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
/// Maximum length of a title that a user gives, in characters; a longer one is refused.
pub const TITLE_MAX: usize = 200;
/// Maximum number of attempts to reach a session whose task is ending or starting.
pub(super) const HANDOVER_TRIES: usize = 100;
/// Pause between these attempts.
pub(super) const HANDOVER_WAIT: std::time::Duration = std::time::Duration::from_millis(20);
/// All sessions and runtimes. Cheap to clone.
#[derive(Clone)]
pub struct Directory {
    shared: Arc<Shared>,
}

struct Shared {
    registry: Arc<Registry>,
    launcher: Arc<dyn Launcher>,
    rules: SessionRules,
    /// The ledger that accounts for the content of queued prompts.
    ledger: Arc<OnceLock<Ledger>>,
    tools: OnceLock<Arc<dyn AgentTools>>,
    /// Conversations that are being opened, so that the same one is opened only once.
    opening: Mutex<HashMap<(RuntimeId, String), OpenTurn>>,
    /// Held while a runtime is restarted: one restart at a time.
    restarting: tokio::sync::Mutex<()>,
    /// Sessions to reopen once their restarted runtime is ready.
    reopening: dashmap::DashSet<SessionId>,
    /// A counter of the changes of runtimes' states.
    runtime_changes: watch::Sender<u64>,
    deleted: DeletedSessions,
    requests: DirectoryRequests,
    surfaces: DirectorySurfaces,
    snapshots: DirectorySnapshots,
    ceilings: DirectoryCeilings,
    changes: DirectoryChanges,
    files: DirectoryFiles,
    resumable: DirectoryResumable,
}

/// The tools that the gateway gives to the agents of sessions.
pub trait AgentTools: Send + Sync {
    /// Returns the MCP servers for the agent of a session that is being opened.
    fn begin(&self, session: &SessionId) -> Vec<McpServer>;
    /// Removes the tools of a session whose agent has ended.
    fn end(&self, session: &SessionId);
    /// Restores the tools of the agents that outlived an earlier gateway: those of these sessions, and no others.
    fn restore(&self, sessions: &[SessionId]);
}

/// Held while a conversation is opened. Holds the error if that failed, for those who wait for the same conversation.
pub(super) type OpenTurn = Arc<tokio::sync::Mutex<Option<SessionError>>>;

/// Rules for how long events are stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetentionRules {
    /// Maximum age of an event, in milliseconds.
    pub max_age_ms: Option<u64>,
    /// Maximum size of all events, in bytes; the oldest are removed beyond it.
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
    /// A conversation that the runtime stores already.
    pub native_id: Option<String>,
    /// The program that opens the session: see [`SessionOwner::program`].
    pub program: Option<String>,
    /// MCP servers for the session's agent besides the gateway's own, in ACP's form. They are not stored: a session that is opened again
    /// continues without them. The caller has checked that the client may name programs.
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

    /// Like [`open`](Self::open), with ceilings of what agents may spend.
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
        let registry = Arc::new(Registry::new(log));
        let ledger: Arc<OnceLock<Ledger>> = Arc::default();
        let surfaces = DirectorySurfaces { registry: Arc::clone(&registry), ledger: Arc::clone(&ledger) };
        let shared = Shared {
            launcher,
            rules,
            ledger,
            tools: OnceLock::new(),
            opening: Mutex::default(),
            restarting: tokio::sync::Mutex::default(),
            reopening: dashmap::DashSet::new(),
            runtime_changes: watch::Sender::new(0),
            deleted: DeletedSessions::default(),
            requests: DirectoryRequests { registry: Arc::clone(&registry) },
            snapshots: DirectorySnapshots {
                registry: Arc::clone(&registry),
                surfaces: surfaces.clone(),
                cache: SnapshotCache::default(),
            },
            surfaces,
            ceilings: DirectoryCeilings { registry: Arc::clone(&registry), book: Arc::new(ceilings) },
            changes: DirectoryChanges { registry: Arc::clone(&registry), changes: Arc::default() },
            files: DirectoryFiles { registry: Arc::clone(&registry), walks: FolderWalks::default() },
            resumable: DirectoryResumable::new(Arc::clone(&registry)),
            registry,
        };
        let directory = Self { shared: Arc::new(shared) };
        directory.recover().await?;
        Ok(directory)
    }

    /// Returns the log.
    pub fn log(&self) -> &Log {
        &self.shared.registry.log
    }

    /// Returns the requests of agents.
    pub fn requests(&self) -> &DirectoryRequests {
        &self.shared.requests
    }

    /// Returns the surfaces of sessions.
    pub fn surfaces(&self) -> &DirectorySurfaces {
        &self.shared.surfaces
    }

    /// Returns the snapshots of sessions.
    pub fn snapshots(&self) -> &DirectorySnapshots {
        &self.shared.snapshots
    }

    /// Returns the ceilings of what agents may spend.
    pub fn ceilings(&self) -> &DirectoryCeilings {
        &self.shared.ceilings
    }

    /// Returns the changes in the folders of sessions.
    pub fn changes(&self) -> &DirectoryChanges {
        &self.shared.changes
    }

    /// Returns the files of folders.
    pub fn files(&self) -> &DirectoryFiles {
        &self.shared.files
    }

    /// Returns the conversations that runtimes store themselves.
    pub fn resumable(&self) -> &DirectoryResumable {
        &self.shared.resumable
    }

    /// Returns the recently deleted sessions.
    pub fn deleted(&self) -> &DeletedSessions {
        &self.shared.deleted
    }

    // === listing ===

    /// Returns all sessions, the most recently changed first.
    pub fn sessions(&self) -> Vec<Arc<SessionInfo>> {
        self.ranked().into_iter().map(|(_, session)| session).collect()
    }

    /// Returns all sessions with their rank, ordered by it and then by identifier.
    pub fn ranked(&self) -> Vec<(ActivityRank, Arc<SessionInfo>)> {
        let handles = self.shared.registry.sessions.iter();
        let mut all: Vec<_> =
            handles.map(|handle| (handle.rank(), Arc::new(self.shared.registry.session_info(&handle)))).collect();
        all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.session_id.cmp(&b.1.session_id)));
        all
    }

    /// Returns the position of a session's last event.
    pub fn last(&self, id: &SessionId) -> Option<Position> {
        let last = self.shared.registry.sessions.get(id)?.last.load(std::sync::atomic::Ordering::Relaxed);
        Some(Position(last))
    }

    /// Returns the `max` most recently changed sessions of those that `filter` accepts, and the number of further ones. Copies only the
    /// returned sessions.
    pub fn newest(&self, max: usize, filter: impl Fn(&Origin) -> bool) -> (Vec<Arc<SessionInfo>>, usize) {
        let handles = self.shared.registry.sessions.iter().filter(|handle| filter(&handle.origin));
        let mut all: Vec<(ActivityRank, SessionId)> =
            handles.map(|handle| (handle.rank(), handle.origin.session_id.clone())).collect();
        all.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let omitted = all.len().saturating_sub(max);
        (all.iter().take(max).filter_map(|(_, id)| self.session(id)).collect(), omitted)
    }

    /// Returns one session.
    pub fn session(&self, id: &SessionId) -> Option<Arc<SessionInfo>> {
        self.shared.registry.session(id)
    }

    /// Returns the position of the event that set a session's current activity.
    pub fn activity_position(&self, id: &SessionId) -> Option<Position> {
        let at = self.shared.registry.sessions.get(id)?.activity_position.load(std::sync::atomic::Ordering::Relaxed);
        Some(Position(at))
    }

    /// Returns the running and queued runs that the filter accepts. The result is never older than the log.
    pub fn runs(&self, filter: &Filter) -> Vec<RunInfo> {
        self.shared.registry.handles(filter).flat_map(|handle| handle.view.load().runs.clone()).collect()
    }

    /// Returns the content blocks of a session's queued prompts, the next one first.
    pub fn waiting(&self, id: &SessionId) -> Vec<(RunId, Arc<Vec<Box<RawValue>>>)> {
        self.shared.registry.sessions.get(id).map(|handle| handle.view.load().waiting.clone()).unwrap_or_default()
    }

    // === sessions ===

    /// Opens a session; waits until the runtime is ready and has opened it.
    ///
    /// # Errors
    /// [`SessionError::NoRuntime`], [`SessionError::RuntimeUnavailable`], [`SessionError::RuntimeRefused`], [`SessionError::Storage`],
    /// [`SessionError::Invalid`].
    pub async fn open_session(
        &self,
        permit: &Permit<Prompt>,
        open: OpenSession,
    ) -> Result<Arc<SessionInfo>, SessionError> {
        self.check_folder_allowed(permit, &open)?;
        self.check_folder_exists(&open).await?;
        // A device that may not see the terminal does not learn which session it is.
        if let Some(there) = open.native_id.as_deref().and_then(|native| self.in_open_terminal(native))
            && let Some(info) = self.session(&there)
            && !permit.device().grant.covers(Scope::Prompt, Target::Session(&there, &info.runtime_id))
        {
            let reason =
                "this conversation is open in its own terminal, which this device may not see; close it there first";
            return Err(SessionError::Invalid(reason.into()));
        }
        let owner = SessionOwner { device: permit.device().device_id.clone(), program: open.program.clone() };
        self.begin_for(open, Some(owner)).await
    }

    /// Checks that the device may open a session in the folder: administrators in any but the gateway's own, others inside the runtime's
    /// folder. Symbolic links are resolved.
    fn check_folder_allowed(&self, permit: &Permit<Prompt>, open: &OpenSession) -> Result<(), SessionError> {
        let Some(cwd) = &open.cwd else { return Ok(()) };
        let runtime = self.runtime(&open.runtime_id).ok_or_else(|| SessionError::NoRuntime(open.runtime_id.clone()))?;
        if self.shared.launcher.private_folder().is_some_and(|own| is_inside(cwd.as_ref(), &own) != Some(false)) {
            return Err(SessionError::Folder(format!("{cwd} is the gateway's state folder: agents cannot work there")));
        }
        let administrates = permit.device().grant.covers(Scope::Admin, Target::Runtime(&open.runtime_id));
        if administrates || is_inside(cwd.as_ref(), runtime.cwd.as_ref()) == Some(true) {
            return Ok(());
        }
        let own = &runtime.cwd;
        Err(SessionError::Folder(format!(
            "{cwd} is outside of the runtime's folder {own}: that needs an administrator"
        )))
    }

    /// Checks that the folder exists. Applies to programs only, which run on this machine: an endpoint may have a file system of its own.
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
            Err(reason) => Err(SessionError::Invalid(format!("cwd {cwd:?} cannot be used: {reason}"))),
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
        let is_valid = |title: &String| !title.trim().is_empty() && title.chars().count() <= TITLE_MAX;
        if title.as_ref().is_some_and(|title| !is_valid(title)) {
            return Err(SessionError::Invalid(format!(
                "a title must be 1 to {TITLE_MAX} characters, not only white space"
            )));
        }
        let (edit, by) =
            (SessionEdit { title: title.map(|title| title.trim().to_owned()), archived }, permit.device().resolver());
        for _ in 0..HANDOVER_TRIES {
            let outcome = match self.shared.registry.handle(id)?.commands {
                Some(commands) => {
                    let (edit, by) = (edit.clone(), by.clone());
                    send_command(&commands, |reply| SessionCommand::Edit { edit, by, reply }).await
                }
                None => self.edit_ended(id, edit.clone(), &by).await,
            };
            match outcome {
                // The session's task is ending or starting.
                Err(SessionError::RuntimeUnavailable(_)) => tokio::time::sleep(HANDOVER_WAIT).await,
                outcome => {
                    outcome?;
                    return self.session(id).ok_or_else(|| SessionError::NoSession(id.clone()));
                }
            }
        }
        Err(SessionError::RuntimeUnavailable("the session has just ended: try again".into()))
    }

    /// Starts a run, or queues it.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::RuntimeUnavailable`], [`SessionError::QueueFull`], [`SessionError::PromptTooLarge`],
    /// [`SessionError::Storage`].
    pub async fn prompt(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        content: Vec<Box<RawValue>>,
    ) -> Result<AcceptedPrompt, SessionError> {
        self.prompt_once(permit, id, content, None).await
    }

    /// Like [`prompt`](Self::prompt), with an idempotency key of the caller's device: the same prompt under the same key again starts
    /// nothing and returns the first run, also across restarts and if the runtime has ended. A session remembers the keys of running and
    /// queued prompts, and of the last 64 ended runs. `key`: 1 to [`KEY_MAX`](crate::KEY_MAX) visible ASCII characters.
    ///
    /// # Errors
    /// The errors of [`prompt`](Self::prompt); [`SessionError::BadKey`], [`SessionError::KeyReused`].
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
        let prompt_key = checked_key(key)?.map(|key| PromptKey::new(key, by.device_id.clone(), Arc::clone(&content)));
        let commands = match self.shared.registry.commands(id) {
            // The session's runtime may have been restarted since.
            Err(SessionError::RuntimeUnavailable(reason)) => {
                if let Some(key) = &prompt_key {
                    let handle = self.shared.registry.handle(id)?;
                    // While the session is being opened, its state is not in the handle.
                    let _opening = handle.opening.lock().await;
                    if let Some(accepted) = handle.prompt_of_key(key)? {
                        return Ok(accepted);
                    }
                }
                self.reopen(id).await.map_err(|refusal| match refusal {
                    SessionError::RuntimeUnavailable(_) if self.session(id).is_some_and(|info| info.restartable) => {
                        SessionError::RuntimeUnavailable(format!(
                            "{reason}; restart its runtime to continue the session"
                        ))
                    }
                    SessionError::RuntimeUnavailable(_) => SessionError::RuntimeUnavailable(reason),
                    other => other,
                })?;
                self.shared.registry.commands(id)?
            }
            commands => commands?,
        };
        let bytes = content.iter().map(|block| block.get().len()).sum();
        let runtime = self.shared.registry.handle(id)?.origin.runtime_id.clone();
        let charge = self.shared.ledger.get().map(|ledger| ledger.session(id.as_str(), runtime.as_str()).charge(bytes));
        let text = prompts::first_text(&content);
        if let Some(session) = self.session(id).filter(|session| session.run_id.is_none()) {
            self.shared.changes.changes.before_prompt(id, &session.cwd, &text).await;
        }
        let command = |reply| SessionCommand::Prompt { content, by, key: prompt_key, again, charge, reply };
        let accepted = send_command(&commands, command).await?;
        if accepted.queued {
            self.shared.changes.changes.queued(&accepted.run_id, &text);
        }
        Ok(accepted)
    }

    /// Sends the prompt of a run again: of the named run, else of the current run, else of the last one. A current run is cancelled
    /// first. The prompt precedes the queued ones. `key`: see [`prompt_once`](Self::prompt_once).
    ///
    /// # Errors
    /// The errors of [`prompt_once`](Self::prompt_once); [`SessionError::NoRun`], [`SessionError::PromptNotStored`].
    pub async fn restart(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        run_id: Option<RunId>,
        key: Option<String>,
    ) -> Result<AcceptedPrompt, SessionError> {
        let info = self.shared.registry.handle(id)?.info();
        if info.queue.iter().any(|queued| Some(&queued.run_id) == run_id.as_ref()) {
            return Err(SessionError::Invalid("that prompt is still queued: there is nothing to restart".into()));
        }
        let (log, session, requested) = (self.shared.registry.log.clone(), id.clone(), run_id.or(info.run_id));
        let found = blocking(move || prompts::find(&log, &session, requested.as_ref())).await?;
        let (run_id, content) = found.ok_or(SessionError::NoRun)?;
        let content = content.ok_or(SessionError::PromptNotStored(
            "it was started outside of the gateway, or its text is no longer stored; send it as a new prompt",
        ))?;
        self.prompt_with(permit, id, content, key, Some(run_id)).await
    }

    /// Cancels the current run, or the named one. Returns its identifier.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::NoRun`], [`SessionError::RuntimeUnavailable`], [`SessionError::Storage`].
    pub async fn cancel(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        run_id: Option<RunId>,
    ) -> Result<RunId, SessionError> {
        self.cancel_because(permit, id, run_id, None).await
    }

    /// Like [`cancel`](Self::cancel), with a reason, which some runtimes accept.
    ///
    /// # Errors
    /// The errors of [`cancel`](Self::cancel).
    pub async fn cancel_because(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        run_id: Option<RunId>,
        reason: Option<String>,
    ) -> Result<RunId, SessionError> {
        let by = permit.device().resolver();
        send_command(&self.shared.registry.commands(id)?, |reply| SessionCommand::Cancel { run_id, by, reason, reply })
            .await
    }

    /// Calls a method of the session's runtime. With `notify` the call has no reply, and `null` is returned. Methods that act without a
    /// permission request need more than the permit: see `sessions::policy`.
    ///
    /// # Errors
    /// [`SessionError::NoSession`], [`SessionError::Denied`], [`SessionError::RuntimeUnavailable`], [`SessionError::RuntimeRefused`].
    pub async fn call(
        &self,
        permit: &Permit<Prompt>,
        id: &SessionId,
        method: String,
        params: Option<Box<RawValue>>,
        notify: bool,
    ) -> Result<Box<RawValue>, SessionError> {
        policy::check(permit.device(), &self.shared.registry.handle(id)?.origin, &method, params.as_deref())?;
        send_command(&self.shared.registry.commands(id)?, |reply| SessionCommand::Call {
            method,
            params,
            notify,
            reply,
        })
        .await
    }

    /// Sets the tools of agents. Later calls have no effect.
    pub fn set_agent_tools(&self, tools: Arc<dyn AgentTools>) {
        if self.shared.tools.set(Arc::clone(&tools)).is_ok() {
            let live = self.shared.registry.sessions.iter().filter(|handle| handle.commands.is_some());
            let live: Vec<SessionId> = live.map(|handle| handle.origin.session_id.clone()).collect();
            tools.restore(&live);
        }
    }

    /// Returns the MCP servers for the agent of a session that is being opened; none if its runtime must not have any.
    pub(super) fn tools_for(&self, session: &SessionId, runtime: &RuntimeId) -> Vec<McpServer> {
        let has_tools = self.shared.registry.specs.get(runtime).is_none_or(|spec| spec.ui);
        let tools = self.shared.tools.get().filter(|_| has_tools);
        tools.map(|tools| tools.begin(session)).unwrap_or_default()
    }

    pub(super) fn end_tools(&self, session: &SessionId) {
        if let Some(tools) = self.shared.tools.get() {
            tools.end(session);
        }
    }

    /// Sets the ledger that accounts for queued prompts and for surfaces. Later calls have no effect.
    pub fn set_ledger(&self, ledger: &Ledger) {
        let _ = self.shared.ledger.set(ledger.clone());
    }

    /// Sets the router's part that delivers client calls of agents (files, terminals). Later calls have no effect.
    pub fn set_clients(&self, clients: Arc<dyn Clients>) {
        // Weak: the directory owns the runtimes, which own this closure.
        let shared = Arc::downgrade(&self.shared);
        let find = move |runtime: &RuntimeId, native: &NativeId| {
            let shared = shared.upgrade()?;
            let mut sessions = shared.registry.sessions.iter().filter(|handle| handle.origin.runtime_id == *runtime);
            sessions.find_map(|handle| {
                let view = handle.view.load();
                let owner = view.owner.clone().filter(|_| view.info.native_id.as_ref() == Some(native))?;
                Some((handle.key().clone(), owner))
            })
        };
        self.shared.launcher.clients().set(Box::new(find), clients);
    }

    // === reading ===

    /// Returns the passages that contain every word of `text`, best first.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub async fn search(&self, text: String, limit: usize) -> Result<Vec<SearchHit>, SessionError> {
        let log = self.shared.registry.log.clone();
        blocking(move || log.store().search(&text, limit)).await
    }

    /// Returns sums of the spending from one time up to another, in no particular order.
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
        let log = self.shared.registry.log.clone();
        let read = move || log.store().spending(SpendQuery { from, to, session: session.as_ref(), by, offset_millis });
        blocking(read).await
    }
}

/// Stops a runtime for good; returns once it has ended.
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
    let ended_error = || SessionError::RuntimeUnavailable("the session has just ended".into());
    commands.send(command(reply)).await.map_err(|_| ended_error())?;
    outcome.await.map_err(|_| ended_error())?
}

/// Checks an idempotency key.
fn checked_key(key: Option<String>) -> Result<Option<String>, SessionError> {
    if key.as_deref().is_none_or(is_valid_key) { Ok(key) } else { Err(SessionError::BadKey) }
}
