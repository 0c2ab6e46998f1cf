//! Attaches the server that an agent's own terminals share, for as long as there is one: the daemon that plain `codex` starts or joins.
//!
//! The server starts and ends when users start, stop and upgrade the agent. While it runs, it is a runtime like one of the configuration;
//! otherwise the runtime is not listed, and its sessions are past ones. One system call a second checks that: there is no connection
//! without a socket, nor a second one to a socket without a listener.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tracing::Instrument as _;

use crate::runtimes::daemon_socket::{self, DaemonSocket, SocketIdentity, UnsafeSocket};
use crate::sessions::{Directory, SessionError};
use plexus_metrics::spans;
use plexus_protocol::{CODEX_TERMINAL, Connect, RuntimeId, RuntimeInfo, RuntimeSpec, RuntimeState};

/// Time between two checks of the path: a server is attached within two seconds of its start.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A server that is attached while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedDaemon {
    /// The runtime's identifier.
    pub id: RuntimeId,
    /// The server's dialect.
    pub dialect: &'static str,
    /// The well-known path of its socket.
    pub socket: PathBuf,
    /// The folder of sessions that name none.
    pub cwd: PathBuf,
}

/// The state of the server.
enum DaemonState {
    Attached(DaemonSocket),
    /// The server is not attached.
    Away {
        /// The socket without a listener. There is no further connection to it: a server that starts makes another one.
        not_listening: Option<SocketIdentity>,
        /// The logged reason for not connecting to the socket.
        refused: Option<String>,
    },
    /// A user stopped the runtime, which is not attached again.
    Stopped,
}

const AWAY: DaemonState = DaemonState::Away { not_listening: None, refused: None };

impl SharedDaemon {
    /// Returns the daemon of Codex in this environment; `None` without a home folder.
    pub fn codex(cwd: PathBuf, env: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let socket = daemon_socket::codex_socket(env)?;
        Some(Self { id: RuntimeId::trusted(CODEX_TERMINAL), dialect: "codex", socket, cwd })
    }

    /// Returns the runtime's spec. It is a user's own program: its sessions get no tools that they would not have without the gateway.
    ///
    /// # Errors
    /// A text for users: the socket's path cannot be written as an address.
    pub fn spec(&self, socket: &DaemonSocket) -> Result<RuntimeSpec, String> {
        let path = socket.path.to_str().ok_or_else(|| format!("{} is not UTF-8", socket.path.display()))?;
        let connect = Connect::Endpoint(format!("unix:{path}"));
        Ok(RuntimeSpec { ui: false, ..RuntimeSpec::new(self.id.clone(), self.dialect, connect, &self.cwd) })
    }

    /// Attaches the server whenever it runs, until the gateway stops or a user stops the runtime.
    pub(crate) async fn keep_attached(self, directory: Directory) {
        let span = spans::runtime(&self.id);
        let work = async {
            let mut ticks = tokio::time::interval(CHECK_EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut state = AWAY;
            while !matches!(state, DaemonState::Stopped) {
                ticks.tick().await;
                state = self.check(&directory, state).await;
            }
        };
        work.instrument(span).await;
    }

    /// Makes one check of the server.
    async fn check(&self, directory: &Directory, state: DaemonState) -> DaemonState {
        let now = self.identity().await;
        let (not_listening, refused) = match state {
            DaemonState::Attached(socket) => {
                let Some(info) = directory.runtime(&self.id) else {
                    tracing::info!("the runtime was stopped: it is attached again when the gateway is started again");
                    return DaemonState::Stopped;
                };
                let same = now == Some(socket.identity);
                let not_listening = same && is_not_listening(&info, &socket).await;
                let elsewhere = connected(directory, &socket.path, &self.id);
                if same && !not_listening && elsewhere.is_none() {
                    return DaemonState::Attached(socket);
                }
                directory.release_runtime(&self.id).await;
                match elsewhere {
                    Some(other) => {
                        tracing::info!(%other, "another runtime is attached to the socket: this one is not needed")
                    }
                    None => tracing::info!("the server is gone: its sessions go on when they are open in it again"),
                }
                (not_listening.then_some(socket.identity), None)
            }
            DaemonState::Away { not_listening, refused } => (not_listening, refused),
            DaemonState::Stopped => return DaemonState::Stopped,
        };
        match now {
            None => AWAY,
            Some(now) if not_listening == Some(now) => DaemonState::Away { not_listening, refused },
            Some(_) => self.attach(directory, refused).await,
        }
    }

    /// Attaches the server at the path, if that is safe. A reason against it is logged once.
    async fn attach(&self, directory: &Directory, logged: Option<String>) -> DaemonState {
        let refuse = |reason: String| {
            if logged.as_ref() != Some(&reason) {
                tracing::warn!(socket = %self.socket.display(), "not attached: {reason}");
            }
            DaemonState::Away { not_listening: None, refused: Some(reason) }
        };
        let socket = match self.find().await {
            Ok(Some(socket)) => socket,
            Ok(None) => return AWAY,
            Err(reason) => return refuse(reason.to_string()),
        };
        if connected(directory, &socket.path, &self.id).is_some() {
            return AWAY;
        }
        if !daemon_socket::listens(&socket.path).await {
            return DaemonState::Away { not_listening: Some(socket.identity), refused: None };
        }
        let launched = self.spec(&socket).and_then(|spec| match directory.launch_shared(spec) {
            Err(SessionError::RuntimeExists(id)) => {
                Err(format!("another runtime has the name {id}: give that one another id in the configuration"))
            }
            launched => launched.map_err(|error| error.to_string()),
        });
        match launched {
            Ok(_) => {
                tracing::info!(socket = %socket.path.display(), "a server that terminals share was found");
                DaemonState::Attached(socket)
            }
            Err(reason) => refuse(reason),
        }
    }

    // A home folder can be on a disk that hangs: neither check is made on a worker.

    async fn identity(&self) -> Option<SocketIdentity> {
        let path = self.socket.clone();
        tokio::task::spawn_blocking(move || SocketIdentity::at(&path)).await.ok().flatten()
    }

    async fn find(&self) -> Result<Option<DaemonSocket>, UnsafeSocket> {
        let path = self.socket.clone();
        tokio::task::spawn_blocking(move || daemon_socket::find(&path)).await.unwrap_or(Ok(None))
    }
}

/// Returns whether the socket of the runtime has no listener any more. A ready runtime is not checked.
async fn is_not_listening(info: &RuntimeInfo, socket: &DaemonSocket) -> bool {
    let waits = matches!(info.state, RuntimeState::Starting | RuntimeState::Restarting);
    waits && !daemon_socket::listens(&socket.path).await
}

/// Returns the runtime other than `but` that connects to this socket.
fn connected(directory: &Directory, socket: &Path, but: &RuntimeId) -> Option<RuntimeId> {
    let runtimes = directory.runtimes();
    let other = runtimes.iter().find(|info| info.runtime_id != *but && connects_to(info, socket));
    other.map(|info| info.runtime_id.clone())
}

/// Returns whether a runtime that has not ended connects to this socket (a path without symbolic links).
pub fn connects_to(info: &RuntimeInfo, socket: &Path) -> bool {
    let Connect::Endpoint(at) = &info.connect else { return false };
    let Some(path) = at.strip_prefix("unix:") else { return false };
    let path = Path::new(path.strip_prefix("//").unwrap_or(path));
    info.state != RuntimeState::Exited && path.canonicalize().is_ok_and(|real| real == socket)
}
