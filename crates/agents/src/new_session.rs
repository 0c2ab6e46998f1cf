//! `POST /v1/sessions`: a session of an existing runtime, or of an agent that is started for it.
//!
//! If the start fails, or the client disconnects before the session is open, nothing remains: no runtime, no name in use, and no git
//! worktree.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use plexus_protocol::api::devices::Target;
use plexus_protocol::api::problem::ProblemMembers;
use plexus_protocol::api::runtimes::StartRuntime;
use plexus_protocol::api::sessions::NewSession;
use plexus_protocol::{DeviceId, RuntimeId, RuntimeInfo, RuntimeSpec, RuntimeState, SessionId, SessionInfo};
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::start::{Presets, free_name, runs, start_effect, start_spec};
use crate::worktrees;
use plexus_auth::{Admin, Caller, Permit, Prompt};
use plexus_risk::Effect;
use plexus_router::described::Parameter;
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{
    RouteResult, created, gateway, has_any_right, idempotency_key, no_such, runtime_for, within_limit,
};
use plexus_router::routes::{JSON, POST, PROMPTS, route};
use plexus_router::{Core, Problem};
use plexus_sessions::{Directory, FirstSettings, OpenSession, SessionError, Worktrees};

/// Maximum time for an agent to be ready; the limit of its handshake is shorter, so this ends the wait only for one that is started again
/// and again.
const READY_WAIT: Duration = Duration::from_secs(150);
/// Time between two checks of a starting agent, in case a notification of its state is missed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of keys that are remembered; a new one replaces the oldest, and a repeated request with that one then opens another
/// session.
const KEYS_MAX: usize = 256;
/// Maximum number of starts if the caller that started the runtime removes it meanwhile.
const TRIES: usize = 2;

const SESSION_KEY: Parameter = Parameter::idempotency_key(
    "A repeated request with the same key opens one session: 1 to 128 visible ASCII characters",
);

/// Returns the routes of new sessions.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<NewSessionsState>> {
    vec![
        route(POST, "/v1/sessions", PROMPTS, JSON, "Open a session", open)
            .request::<NewSession>().response::<SessionInfo>(201).with(&[&SESSION_KEY]),
    ]
}

/// The state of new sessions.
#[derive(Clone)]
pub struct NewSessionsState {
    /// The kernel.
    pub core: Core,
    /// Presets.
    pub presets: Presets,
    /// The sessions that were opened with an idempotency key.
    pub opened: OpenedSessions,
    /// The git worktrees that were made for sessions.
    pub worktrees: Worktrees,
}

/// The sessions that were opened with an idempotency key. Cheap to clone.
#[derive(Clone, Default)]
pub struct OpenedSessions {
    opened: Arc<Mutex<VecDeque<OpenedOnce>>>,
}

struct OpenedOnce {
    device: DeviceId,
    key: String,
    /// Digest of the request's body.
    digest: [u8; 32],
    session: Arc<OnceCell<SessionId>>,
}

impl OpenedSessions {
    /// Returns the session of a key: empty until it is open, and again if that fails.
    fn session(&self, device: &DeviceId, key: String, body: &[u8]) -> Result<Arc<OnceCell<SessionId>>, SessionError> {
        let digest: [u8; 32] = Sha256::digest(body).into();
        let mut opened = self.opened.lock();
        if let Some(existing) = opened.iter().find(|existing| existing.device == *device && existing.key == key) {
            let session = Arc::clone(&existing.session);
            return if existing.digest == digest { Ok(session) } else { Err(SessionError::KeyReused) };
        }
        if opened.len() >= KEYS_MAX {
            opened.pop_front();
        }
        let session = Arc::default();
        opened.push_back(OpenedOnce { device: device.clone(), key, digest, session: Arc::clone(&session) });
        Ok(session)
    }
}

/// Opens a session.
async fn open(state: NewSessionsState, call: Call) -> RouteResult {
    let new: NewSession = call.json()?;
    let caller = call.caller()?;
    let session = match idempotency_key(&call)? {
        None => open_once(&state, &call, caller, new).await?,
        Some(key) => {
            let cell = state.opened.session(&caller.device().device_id, key, &call.body)?;
            let open = || async { Ok::<_, Problem>(open_once(&state, &call, caller, new).await?.session_id.clone()) };
            let id = cell.get_or_try_init(open).await?;
            state.core.directory.session(id).ok_or_else(|| no_such("session_not_found", "session"))?
        }
    };
    created(&format!("/v1/sessions/{}", session.session_id), &*session)
}

async fn open_once(
    state: &NewSessionsState,
    call: &Call,
    caller: &Caller,
    new: NewSession,
) -> Result<Arc<SessionInfo>, Problem> {
    let NewSession { runtime_id, start, mut cwd, title, mode, model, native_id, worktree } = new;
    let first = FirstSettings { mode, model };
    if let (Some(folder), None) = (start.as_ref().and_then(|start| start.cwd.as_ref()), &cwd) {
        cwd = folder.to_str().map(str::to_owned);
    }
    let made = match worktree {
        None => None,
        Some(_) if native_id.is_some() => {
            return Err(Problem::invalid("a resumed conversation stays in its folder: leave out `worktree`"));
        }
        Some(wanted) => {
            gateway::<Admin>(call)?;
            within_limit(call, Effect::ChangeWorktree)?;
            let folder = cwd.as_deref().filter(|cwd| cwd.starts_with('/'));
            let folder =
                folder.ok_or_else(|| Problem::invalid("a `worktree` needs `cwd`, a folder of a repository"))?;
            Some(state.worktrees.make(folder.as_ref(), &wanted).await.map_err(worktrees::problem)?)
        }
    };
    let (runtime_id, started) = match (runtime_id, start) {
        (Some(id), None) => (id, None),
        (None, Some(mut start)) => {
            // Its process stays in the repository: it may outlive the worktree.
            if let (Some(cwd), None) = (&cwd, &start.cwd) {
                start.cwd = Some(cwd.into());
            }
            ready_agent(state, call, caller, start).await?
        }
        _ => return Err(Problem::invalid("give either `runtime_id`, or the agent to `start`")),
    };
    if let Some(made) = &made {
        cwd = Some(made.cwd().to_str().map(str::to_owned).ok_or_else(|| Problem::invalid("the folder is not UTF-8"))?);
    }
    let open = OpenSession {
        runtime_id,
        cwd,
        title,
        native_id: native_id.map(|id| id.as_str().to_owned()),
        program: None,
        mcp_servers: Vec::new(),
    };
    let opened = match runtime_for::<Prompt>(&state.core, caller, &open.runtime_id) {
        Ok((_, permit)) => state.core.directory.open_session_set(&permit, open, &first).await.map_err(Problem::from),
        Err(problem) => Err(problem),
    };
    match (opened, started) {
        (Ok(session), started) => {
            started.into_iter().for_each(StartedRuntime::keep);
            if let Some(made) = made {
                made.keep().await;
            }
            Ok(session)
        }
        (Err(problem), Some(started)) => Err(started.remove(problem).await),
        (Err(problem), None) => Err(problem),
    }
}

/// A runtime that was started for a session which is not open yet: removed when dropped, unless it is kept.
struct StartedRuntime {
    directory: Directory,
    permit: Permit<Admin>,
    id: RuntimeId,
    retained: bool,
}

impl StartedRuntime {
    fn keep(mut self) {
        self.retained = true;
    }

    /// Removes the runtime; returns the problem, with the output of its program.
    async fn remove(mut self, mut problem: Problem) -> Problem {
        self.retained = true;
        if problem.more.stderr.is_none() {
            problem.more.stderr = self.directory.runtime(&self.id).and_then(|info| stderr_text(&info));
        }
        // Spawned, so that it continues if the client disconnects.
        let _ = tokio::spawn(removed(self.directory.clone(), self.permit.clone(), self.id.clone())).await;
        problem
    }
}

impl Drop for StartedRuntime {
    fn drop(&mut self) {
        if self.retained {
            return;
        }
        // The client disconnected.
        if let Ok(tokio) = tokio::runtime::Handle::try_current() {
            tokio.spawn(removed(self.directory.clone(), self.permit.clone(), self.id.clone()));
        }
    }
}

/// Removes a runtime, unless another caller has opened a session in it.
async fn removed(directory: Directory, permit: Permit<Admin>, id: RuntimeId) {
    if directory.sessions().iter().any(|session| session.runtime_id == id) {
        return;
    }
    if let Err(error) = directory.stop_runtime(&permit, &id).await {
        tracing::debug!(%error, runtime_id = %id, "a runtime without a session was removed already");
    }
}

/// Returns the end of the text that a runtime's program wrote to stderr.
fn stderr_text(info: &RuntimeInfo) -> Option<String> {
    let text = info.stderr_tail.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns a ready runtime of the agent: the one that runs already, else a new one.
async fn ready_agent(
    state: &NewSessionsState,
    call: &Call,
    caller: &Caller,
    start: StartRuntime,
) -> Result<(RuntimeId, Option<StartedRuntime>), Problem> {
    let (named, effect) = (start.id.is_some(), start_effect(&start));
    let spec = start_spec(&state.presets, start)?;
    let mut tries = TRIES;
    loop {
        tries -= 1;
        let (id, started) = match existing_runtime(state, caller, &spec, named) {
            Some(existing_runtime) => (existing_runtime.runtime_id.clone(), None),
            None => {
                within_limit(call, effect)?;
                begin(state, call, spec.clone(), named).await?
            }
        };
        match (ready(state, &id).await, started) {
            (Ok(()), started) => return Ok((id, started)),
            (Err(problem), Some(started)) => return Err(started.remove(problem).await),
            // The caller that started it gave up and removed it.
            (Err(_), None) if tries > 0 && state.core.directory.runtime(&id).is_none() => {}
            (Err(problem), None) => return Err(problem),
        }
    }
}

/// Returns the runtime that runs the agent already, preferably a ready one. One process of these dialects serves any number of sessions.
fn existing_runtime(
    state: &NewSessionsState,
    caller: &Caller,
    spec: &RuntimeSpec,
    named: bool,
) -> Option<Arc<RuntimeInfo>> {
    if !matches!(spec.dialect.as_str(), "acp" | "codex") {
        return None;
    }
    let fits = |info: &Arc<RuntimeInfo>| {
        info.state != RuntimeState::Exited
            && runs(info, &spec.dialect, &spec.connect)
            && (!named || info.runtime_id == spec.id)
            && has_any_right(caller, Target::Runtime(&info.runtime_id))
    };
    let all = state.core.directory.runtimes().into_iter().filter(fits);
    all.min_by_key(|info| (info.state != RuntimeState::Ready, info.runtime_id != spec.id))
}

/// Starts the agent: under the name of an ended runtime, if it is the same agent, else under a free one.
async fn begin(
    state: &NewSessionsState,
    call: &Call,
    mut spec: RuntimeSpec,
    named: bool,
) -> Result<(RuntimeId, Option<StartedRuntime>), Problem> {
    let permit = gateway::<Admin>(call)?;
    let ended = |info: &&Arc<RuntimeInfo>| {
        info.state == RuntimeState::Exited && !info.unattended() && runs(info, &spec.dialect, &spec.connect)
    };
    let before = state.core.directory.runtimes();
    let before = before.iter().filter(|info| !named || info.runtime_id == spec.id).find(ended);
    match before {
        Some(before) => spec.id = before.runtime_id.clone(),
        None if named => {}
        None => spec.id = free_name(&state.core, spec.id),
    }
    // A runtime that had ended before is not removed if it fails again: its sessions can still be read.
    let is_new = before.is_none();
    let id = state.core.directory.start_runtime(&permit, spec).await?.runtime_id.clone();
    let started = StartedRuntime { directory: state.core.directory.clone(), permit, id: id.clone(), retained: !is_new };
    Ok((id, is_new.then_some(started)))
}

/// Waits until the runtime is ready.
async fn ready(state: &NewSessionsState, id: &RuntimeId) -> Result<(), Problem> {
    let failed = |reason: &str, stderr| {
        let problem =
            Problem::new(StatusCode::BAD_GATEWAY, "runtime_not_started", format!("{id} did not start: {reason}"));
        problem.with(ProblemMembers { stderr, ..ProblemMembers::default() })
    };
    let mut changed = state.core.directory.runtimes_changed();
    let until = Instant::now() + READY_WAIT;
    loop {
        changed.mark_unchanged();
        let Some(info) = state.core.directory.runtime(id) else { return Err(failed("it was stopped meanwhile", None)) };
        match info.state {
            RuntimeState::Ready => return Ok(()),
            RuntimeState::Exited => {
                let reason = info.problem.as_deref().unwrap_or("it ended");
                return Err(failed(reason, stderr_text(&info)));
            }
            RuntimeState::Starting | RuntimeState::Restarting | RuntimeState::Unknown if Instant::now() >= until => {
                let seconds = READY_WAIT.as_secs();
                return Err(failed(&format!("it was not ready after {seconds} seconds"), stderr_text(&info)));
            }
            RuntimeState::Starting | RuntimeState::Restarting | RuntimeState::Unknown => {}
        }
        if *state.core.stop.borrow() {
            return Err(SessionError::Stopping.into());
        }
        let _ = tokio::time::timeout(POLL_INTERVAL, changed.changed()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_names_one_session_of_one_device_and_request() {
        let opened = OpenedSessions::default();
        let (one, other) = (DeviceId::trusted("d_1"), DeviceId::trusted("d_2"));
        let session = opened.session(&one, "k".into(), b"{}").unwrap();
        session.set(SessionId::trusted("s_1")).unwrap();
        assert_eq!(opened.session(&one, "k".into(), b"{}").unwrap().get(), session.get());
        assert!(opened.session(&other, "k".into(), b"{}").unwrap().get().is_none());
        assert!(matches!(opened.session(&one, "k".into(), b"{ }"), Err(SessionError::KeyReused)));
        for n in 0..KEYS_MAX {
            opened.session(&other, format!("k{n}"), b"{}").unwrap();
        }
        assert!(opened.session(&one, "k".into(), b"{}").unwrap().get().is_none(), "the oldest keys are forgotten");
        assert_eq!(opened.opened.lock().len(), KEYS_MAX);
    }
}
