//! The gateway: opens its state, binds its listeners, starts its runtimes and stops everything.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;

use crate::access::listeners::{CertificateFiles, ConfiguredAccess, ListenerError, Listeners};
use crate::agents::linking::{Linking, LinkingState};
use crate::agents::new_session::{NewSessionsState, OpenedSessions};
use crate::agents::start::{AgentsState, FindAgents, PresetChanges, Presets};
use crate::agents::worktrees::WorktreesState;
use crate::auth::{Admin, Auth, AuthError, Grant, Target};
use crate::config::{CeilingConfig, Config};
use crate::frontends::acp::{AcpState, ForwardedCalls};
use crate::frontends::agui::AgUiState;
use crate::frontends::gemini::{self, Port};
use crate::ledger::Ledger;
use crate::notify::{Notifier, NotifyState};
use crate::operation::awake::KeepAwake;
use crate::operation::doctor::{Doctor, DoctorState};
use crate::operation::health::HealthState;
use crate::router::describe::Descriptions;
use crate::router::{Core, Hosts, PublicAddresses, TlsError};
use crate::runtimes::Runtimes;
use crate::runtimes::link::{self, LinkHub, TypeInTerminal};
use crate::sessions::{
    CeilingBook, CeilingFileError, CommitEntry, CommitRows, Directory, Log, OpenSession, RetentionRules, SessionError,
    SessionRules,
};
use crate::shared_daemon::SharedDaemon;
use crate::views::terminals::TerminalsState;
use crate::{Features, app, auth, clock, config, metrics, openapi, router, runtimes, sessions, surface_tools};
use plexus_dialects::link::{TERMINAL_DIALECTS, TerminalDialect};
use plexus_protocol::api::runtimes::KnownAgent;
use plexus_protocol::api::usage::ConfiguredCeilings;
use plexus_protocol::{
    Connect, LINK_SCHEME, Origin, Position, RuntimeId, RuntimeSpec, RuntimeState, SessionId, Timestamp,
};
use plexus_store::{SqliteStore, StoreError};
use plexus_terminal::folder::TerminalError;

/// The file in the state folder with the address of the running gateway.
pub const GATEWAY_FILE: &str = "gateway.json";

/// The folder in the state folder with the sockets of the runtimes' holders.
pub const HOLDERS: &str = "holders";

/// The folder in the state folder with the private CA and the certificate of `plexus tls init`.
pub const TLS_FOLDER: &str = "tls";
/// The certificate in [`TLS_FOLDER`], and its key.
pub const TLS_FILES: [&str; 2] = ["server.crt", "server.key"];

/// Maximum time that the gateway takes to stop; by then runtimes are killed and connections closed.
pub const STOP_DEADLINE: Duration = Duration::from_secs(12);

/// Time for streams to notify their clients that the gateway stops.
const GOODBYE: Duration = Duration::from_secs(2);

/// Lifetime of the one-time code in the banner.
const CODE_LIFE: Duration = Duration::from_secs(120);

/// Time between two rounds of retention. Events that arrive between them are stored beyond the limits.
const RETAIN_EVERY: Duration = Duration::from_secs(60);
/// Time until the first round of retention: late enough not to slow the start, early enough for a gateway that is restarted
/// often.
const RETAIN_FIRST: Duration = Duration::from_secs(20);

/// Maximum number of concurrent connections to a runtime's own port; further ones wait until one ends.
const PORT_CONNECTIONS: usize = 1024;

/// The content of [`GATEWAY_FILE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The address of the plain listener.
    pub url: String,
    /// The process id.
    pub pid: u32,
    /// The time when the gateway started.
    pub started_at: Timestamp,
    /// The gateway's version.
    pub version: String,
    /// The address of the TLS listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<SocketAddr>,
    /// The origin by which other devices reach the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// The ports of runtimes that are served as a Gemini UI, by runtime.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<RuntimeId, RuntimePorts>,
    /// The secret that answers challenges ([`auth::Proof`]); empty for a gateway of a version without them.
    #[serde(default)]
    pub proof: String,
}

/// A runtime's own ports, on the loopback address of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimePorts {
    /// The port of the UI mirror.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui_port: Option<u16>,
    /// The port of the remote control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_port: Option<u16>,
}

/// The reason why the gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another gateway runs on this state folder.
    #[error("a gateway is already running at {url} (process {pid})")]
    AlreadyRunning {
        /// The address of the other gateway.
        url: String,
        /// The process id of the other gateway.
        pid: u32,
    },
    /// The state cannot be opened.
    #[error("{}: {error}", .home.display())]
    Store {
        /// The state folder.
        home: PathBuf,
        /// The store's error.
        error: StoreError,
    },
    /// The devices cannot be read.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The gateway cannot listen on the address.
    #[error(
        "cannot listen on {address}: {error}; choose another address with --listen, or stop the program that uses it"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The gateway cannot listen on the address for TLS.
    #[error(
        "cannot listen on {address} for TLS: {error}; set another listen in [tls], or stop the program that uses it"
    )]
    ListenTls {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// There is no certificate for the TLS listener.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The access of other machines cannot be set up.
    #[error(transparent)]
    Listeners(ListenerError),
    /// The stored ceilings cannot be read.
    #[error(transparent)]
    Ceilings(CeilingFileError),
    /// The gateway cannot listen on a runtime's own port.
    #[error(
        "cannot listen on {address} for the runtime {runtime}: {error}; set another {key}, or stop the program that \
         uses it"
    )]
    Port {
        /// The runtime.
        runtime: RuntimeId,
        /// The configuration key of the port.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The stored keys of notifications cannot be used. Contains the cause and the fix.
    #[error("{0}")]
    Push(String),
    /// A file in the state folder cannot be written.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// A gateway that is ready to serve: its state is open, its address bound, its runtimes are starting.
pub struct Gateway {
    features: Features,
    runtimes: Arc<Runtimes>,
    listener: TcpListener,
    ports: Vec<(Port, TcpListener)>,
    /// The socket of agents' own terminals, and the hub that serves it.
    links: (LinkHub, Option<UnixListener>),
    running: Running,
    home: PathBuf,
    retention: RetentionRules,
    /// The end of the log before this gateway wrote to it.
    before: Position,
    stop: watch::Sender<bool>,
    code: String,
    daemons: Vec<SharedDaemon>,
}

impl Gateway {
    /// Opens the state in `home`, binds the address and starts the configured runtimes. `exe` is the plexus program, which
    /// also runs the holders.
    ///
    /// # Errors
    /// [`StartError`]; then nothing is left behind.
    pub async fn start(config: Config, home: PathBuf, exe: PathBuf) -> Result<Self, StartError> {
        let store = SqliteStore::open(&home, config.durability).map_err(|error| match (&error, running(&home)) {
            (StoreError::Locked, Some(other)) => StartError::AlreadyRunning { url: other.url, pid: other.pid },
            _ => StartError::Store { home: home.clone(), error },
        })?;
        let failed = |error| StartError::Store { home: home.clone(), error };
        let log = Log::open(Arc::new(store)).map_err(failed)?;
        let auth = Auth::open(&home, &log.store().devices().map_err(failed)?, persist(&log))?;
        let failed_to_listen = |error| StartError::Listen { address: config.listen, error };
        let listener = router::bind(config.listen).map_err(failed_to_listen)?;
        let address = listener.local_addr().map_err(failed_to_listen)?;
        let ports = bind_ports(&config)?;
        let hosts = Arc::new(Hosts::new(&[address], &[]));
        let public_addresses = Arc::new(PublicAddresses::new(Some(home.join(TLS_FOLDER))));
        let listeners = open_listeners(&config, &home, &hosts, &public_addresses)?;

        let links = LinkHub::new(types_in(home.join(plexus_terminal::folder::TERMINALS)));
        let ledger = Ledger::new(config.limits.clone().with_capacity_for(config.line_max));
        let runtimes = Arc::new(Runtimes::new(runtimes::RuntimeSettings {
            line_max: config.line_max,
            ledger: ledger.clone(),
            private: Some(home.clone()),
            links: links.clone(),
            ..runtimes::RuntimeSettings::new(exe.clone(), home.join(HOLDERS))
        }));
        let rules = session_rules(&config);
        let before = log.head();
        let clock = clock::WallClock::open(&home, newest_event(&log).map_err(failed)?);
        let ceilings = ceilings(&config, &home, Arc::new(clock))?;
        let notifier =
            Notifier::open(&home, &log, config.push, Arc::clone(&public_addresses)).map_err(StartError::Push)?;
        let launcher = Arc::clone(&runtimes) as _;
        let directory = Directory::open_limited(log.clone(), launcher, rules, ceilings).await.map_err(failed)?;
        let folders = Arc::new(plexus_workspace::FolderStores::new(&absolute(&home)));
        directory.changes().keep_in(Arc::clone(&folders));
        equip(&directory, &auth, &absolute(&exe), &absolute(&home));
        let (stop, stopping) = watch::channel(false);
        let core = Core {
            fans: router::fanout::Fans::for_directory(&directory, router::fanout::STALL),
            directory,
            auth,
            ledger,
            presence: router::presence::Presence::default(),
            hosts,
            public_addresses,
            url: format!("http://{address}").into(),
            started_at: SystemTime::now().into(),
            version: env!("CARGO_PKG_VERSION"),
            stop: stopping,
            limits: router::GateLimits::default(),
            long_work: router::LongWork::default(),
        };
        let proof = auth::Proof::new().map_err(StartError::Auth)?;
        let mut features = features(&core, exe, &home, folders, listeners, notifier, proof);
        features.doctor.awake = KeepAwake::new(config.keep_awake);
        let code = admin_code(&core.auth, &home)?;
        let running = Running {
            url: core.url.to_string(),
            pid: std::process::id(),
            started_at: core.started_at,
            version: core.version.into(),
            tls: features.listeners.tls_address().await,
            public_url: core.public_addresses.url(),
            ports: port_numbers(&ports),
            proof: features.health.proof.secret().into(),
        };
        announce(&home, &running)?;
        core.directory.set_ledger(&core.ledger);
        let calls = ForwardedCalls::new(features.acp.sessions.clone(), core.auth.clone());
        core.directory.set_clients(Arc::new(calls));
        config.runtimes.into_iter().for_each(|runtime| attach(&core.directory, runtime));
        let links = (links, bind_links(&core.directory, &home));
        let retention = retention_rules(&config.retention);
        Ok(Self {
            features,
            runtimes,
            listener,
            ports,
            links,
            running,
            home,
            retention,
            before,
            stop,
            code,
            daemons: Vec::new(),
        })
    }

    /// Sets the checks behind `GET /v1/doctor`.
    #[must_use]
    pub fn with_doctor(mut self, doctor: Doctor) -> Self {
        self.features.doctor.doctor = doctor;
        self
    }

    /// Sets the implementation of `plexus link`, for the page.
    #[must_use]
    pub fn with_linking(mut self, linking: Linking) -> Self {
        self.features.linking.linking = linking;
        self
    }

    /// Attaches this server of an agent's own terminals whenever it runs.
    #[must_use]
    pub fn with_daemon(mut self, daemon: Option<SharedDaemon>) -> Self {
        self.daemons.extend(daemon);
        self
    }

    /// Returns the address of the plain listener.
    pub fn url(&self) -> String {
        self.running.url.clone()
    }

    /// Returns the origin by which other devices reach the gateway, if there is one.
    pub fn public_url(&self) -> Option<String> {
        self.running.public_url.clone()
    }

    /// Returns the names of the gateway's runtimes: those of the configuration, and those that outlived an earlier gateway.
    pub fn runtimes(&self) -> Vec<String> {
        self.features.core.directory.runtimes().iter().map(|runtime| runtime.runtime_id.to_string()).collect()
    }

    /// Returns a one-time code that signs a browser in: `URL/#code=CODE`, valid for two minutes.
    pub fn admin_code(&self) -> String {
        self.code.clone()
    }

    /// Serves until `shutdown` resolves, then stops within [`STOP_DEADLINE`]: no new connection is accepted, clients are notified,
    /// runtimes are stopped (or left to the next gateway if they outlive this one), and their last output is stored.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let features = self.features;
        let core = features.core.clone();
        let retaining = tokio::spawn(retain(core.directory.clone(), self.retention));
        let link_task = self.links.1.map(|socket| {
            let directory = core.directory.clone();
            tokio::spawn(self.links.0.serve(socket, Box::new(move |agent| launch_linked(&directory, agent))))
        });
        tokio::spawn(features.notify.notifier.run(core.clone(), self.before));
        tokio::spawn(features.doctor.awake.clone().run(core.clone()));
        let attach = |daemon: SharedDaemon| tokio::spawn(daemon.keep_attached(core.directory.clone()));
        let attaching: Vec<_> = self.daemons.into_iter().map(attach).collect();
        let serve = |listener, app, limits| tokio::spawn(router::serve(vec![listener], app, limits, core.stop.clone()));
        let limits = router::ListenLimits::with_ledger(&core.ledger);
        let (listeners, app) = (features.listeners.clone(), app(features));
        listeners.serve(app.clone(), &core.ledger).await;
        let mut serving = vec![serve(self.listener, app, limits.clone())];
        for (port, listener) in self.ports {
            let limits = router::ListenLimits { connections: PORT_CONNECTIONS, ..limits.clone() };
            serving.push(serve(listener, gemini::app(core.clone(), &port), limits));
        }
        shutdown.await;
        let _ = self.stop.send(true);
        listeners.stop().await;
        retaining.abort();
        attaching.iter().for_each(tokio::task::JoinHandle::abort);
        let stopped = async {
            if let Some(link_task) = link_task {
                link_task.abort();
            }
            // Runtimes stop before connections do: clients still receive their last output.
            self.runtimes.shutdown().await;
            listeners.shut_down().await;
            for serving in serving {
                let _ = serving.await;
            }
            // Streams end by themselves; those that take longer are aborted.
            let goodbye = async {
                while metrics::metrics().connections.get() > 0 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            let _ = tokio::time::timeout(GOODBYE, goodbye).await;
        };
        if tokio::time::timeout(STOP_DEADLINE, stopped).await.is_err() {
            tracing::warn!("not everything stopped in time; the rest is terminated");
        }
        let _ = std::fs::remove_file(self.home.join(GATEWAY_FILE));
    }
}

/// Writes [`GATEWAY_FILE`]. On a full disk, the blocks of the file that an earlier gateway left are used; without one the gateway starts
/// without the file, since its agents need it.
fn announce(home: &Path, running: &Running) -> Result<(), StartError> {
    let (path, text) = (home.join(GATEWAY_FILE), serde_json::to_vec_pretty(running).unwrap_or_default());
    let full = |error: &io::Error| matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let written = match auth::write_private(&path, &text) {
        Err(error) if full(&error) => overwrite(&path, &text),
        written => written,
    };
    match written {
        Err(error) if full(&error) => {
            // An incomplete file would be worse than none.
            let _ = std::fs::remove_file(&path);
            tracing::error!(path = %path.display(), "the disk is full: the commands of this machine do not find the gateway until it is restarted");
            Ok(())
        }
        written => written.map_err(|error| StartError::File { path, error }),
    }
}

/// Writes over the content of a file, in place.
fn overwrite(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = std::fs::File::options().write(true).open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::ErrorKind::StorageFull.into(),
        _ => error,
    })?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)?;
    file.sync_all()
}

/// Reads [`GATEWAY_FILE`] in `home`. The gateway it names may have ended.
pub fn running(home: &Path) -> Option<Running> {
    serde_json::from_slice(&std::fs::read(home.join(GATEWAY_FILE)).ok()?).ok()
}

/// Returns the function that commits device rows by the log's writer, like all rows.
fn persist(log: &Log) -> auth::PersistDevice {
    let log = log.clone();
    let origin = Arc::new(Origin {
        session_id: SessionId::trusted("gateway"),
        runtime_id: RuntimeId::trusted("gateway"),
        dialect: "gateway".into(),
    });
    Arc::new(move |change| {
        let (log, origin) = (log.clone(), Arc::clone(&origin));
        Box::pin(async move {
            let rows = move |_| CommitRows { devices: vec![change], ..CommitRows::default() };
            let entry = CommitEntry {
                origin,
                events: Vec::new(),
                rows: Some(Box::new(rows)),
                on_stored: None,
                received: None,
                sync: true,
            };
            log.commit(entry).await.map(drop).map_err(|error| error.to_string())
        })
    })
}

fn presets(exe: PathBuf) -> Presets {
    Arc::new(move |name: &str, settings: &PresetChanges| {
        let mut spec =
            runtimes::preset(name, &exe, |name| std::env::var(name).ok()).map_err(|unknown| unknown.to_string())?;
        if let Some(id) = &settings.id {
            spec.id = id.clone();
        }
        if let Some(cwd) = &settings.cwd {
            spec.cwd.clone_from(cwd);
        }
        spec.env.extend(settings.env.clone());
        Ok(spec)
    })
}

/// Returns the state of the features of a gateway.
fn features(
    core: &Core,
    exe: PathBuf,
    home: &Path,
    folders: Arc<plexus_workspace::FolderStores>,
    listeners: Listeners,
    notifier: Notifier,
    proof: auth::Proof,
) -> Features {
    let (core, presets) = (|| core.clone(), presets(exe.clone()));
    let worktrees = worktrees(home, folders, &core().directory);
    Features {
        core: core(),
        agents: AgentsState { core: core(), presets: Arc::clone(&presets), find: agents(exe) },
        new_sessions: NewSessionsState {
            core: core(),
            presets,
            opened: OpenedSessions::default(),
            worktrees: worktrees.clone(),
        },
        worktrees: WorktreesState { core: core(), worktrees },
        terminals: TerminalsState { core: core(), folder: home.join(plexus_terminal::folder::TERMINALS) },
        listeners,
        doctor: DoctorState { core: core(), doctor: Doctor::default(), awake: KeepAwake::new(false) },
        linking: LinkingState { core: core(), linking: Linking::default() },
        health: HealthState { core: core(), proof },
        descriptions: Descriptions::new(core().version, openapi),
        notify: NotifyState { core: core(), notifier },
        acp: AcpState::new(core()),
        agui: AgUiState::new(core()),
    }
}

/// Returns a path that does not depend on the current folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Opens the list of worktrees that were made for sessions; those that a crash left are removed meanwhile.
fn worktrees(home: &Path, folders: Arc<plexus_workspace::FolderStores>, directory: &Directory) -> sessions::Worktrees {
    let (worktrees, sessions) = (sessions::Worktrees::new(&absolute(home), folders), directory.sessions());
    let recovered = worktrees.clone();
    tokio::spawn(async move {
        recovered.recover(move |path| sessions.iter().any(|info| Path::new(&info.cwd).starts_with(path))).await;
    });
    worktrees
}

/// Sets the tools with which the agents of sessions draw.
fn equip(directory: &Directory, auth: &Auth, exe: &Path, home: &Path) {
    directory.set_agent_tools(Arc::new(surface_tools::SurfaceTools {
        auth: auth.clone(),
        exe: exe.to_owned(),
        home: home.to_owned(),
    }));
}

/// Returns the function that finds the agents of all presets on the gateway's `PATH`.
fn agents(exe: PathBuf) -> FindAgents {
    let env = |name: &str| std::env::var(name).ok();
    Arc::new(move || {
        let known = runtimes::presets().iter().filter_map(|preset| {
            let spec = runtimes::preset(preset.name, &exe, env).ok()?;
            let Connect::Command(command) = spec.connect else { return None };
            let path = runtimes::program_of(&command, env("PATH"));
            Some(KnownAgent {
                name: preset.name.to_owned(),
                about: preset.about.to_owned(),
                dialect: preset.dialect.to_owned(),
                installed: path.is_some(),
                path: path.map(|path| path.display().to_string()),
                install: preset.install.map(str::to_owned),
                key: preset.key_set(env).map(str::to_owned),
                runtime_id: None,
                command,
            })
        });
        known.collect()
    })
}

fn admin_code(auth: &Auth, home: &Path) -> Result<String, StartError> {
    let token = auth::read_token(home)?;
    let permit = auth.check(&token).and_then(|caller| caller.permit::<Admin>(Target::Gateway).ok());
    let permit = permit.ok_or(AuthError::BadCode)?;
    Ok(auth.mint_code(&permit, Grant::all(), CODE_LIFE)?.code)
}

fn session_rules(config: &Config) -> SessionRules {
    SessionRules {
        expire_ms: config.expire_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
        prompt_max: config.prompt_max,
        ..SessionRules::default()
    }
}

/// Opens the ceilings on the spending of agents.
fn ceilings(config: &Config, home: &Path, clock: Arc<clock::WallClock>) -> Result<CeilingBook, StartError> {
    let CeilingConfig { day, session } = config.ceilings.clone();
    CeilingBook::open(home, ConfiguredCeilings { day, session }, clock).map_err(StartError::Ceilings)
}

/// Returns the time of the last event, if its session still exists.
fn newest_event(log: &Log) -> Result<Option<plexus_protocol::Timestamp>, plexus_store::StoreError> {
    let Some(before) = log.head().0.checked_sub(1) else { return Ok(None) };
    let last = log.read_blocking(
        &sessions::Filter::all(),
        Position(before),
        plexus_store::ReadLimit { events: 1, bytes: usize::MAX },
    )?;
    Ok(last.events.last().map(|event| event.at))
}

fn retention_rules(retention: &config::RetentionConfig) -> RetentionRules {
    RetentionRules {
        max_age_ms: retention.max_age_days.map(|days| days.saturating_mul(86_400_000)),
        max_bytes: retention.max_bytes,
    }
}

/// Returns the function that types in the shared terminals of this folder, for the dialects of agents that run in them.
fn types_in(terminals: PathBuf) -> TypeInTerminal {
    Box::new(move |terminal, request| {
        let request = serde_json::from_slice(request).map_err(|error| error.to_string())?;
        let outcome =
            plexus_terminal::attachment::type_if(&terminals, terminal, request).map_err(|error| match error {
                TerminalError::NotFound(_) => {
                    "its shared terminal has ended, or was started by an older plexus".to_owned()
                }
                error => error.to_string(),
            })?;
        serde_json::to_vec(&outcome).map_err(|error| error.to_string())
    })
}

/// Makes the link socket, and attaches the terminals of agents that had sessions before. A gateway without the socket works, except for
/// terminals.
fn bind_links(directory: &Directory, home: &Path) -> Option<UnixListener> {
    let socket = link::bind(home).inspect_err(|error| {
        tracing::error!(%error, "cannot make the socket for agents' terminals: linked terminals are not visible");
    });
    let earlier = directory.sessions();
    for agent in TERMINAL_DIALECTS.iter().filter(|agent| earlier.iter().any(|session| session.dialect == agent.dialect))
    {
        launch_linked(directory, agent);
    }
    socket.ok()
}

/// Attaches the terminals of an agent, unless they are attached.
fn launch_linked(directory: &Directory, agent: &TerminalDialect) {
    let cwd = std::env::home_dir().filter(|home| home.is_absolute()).unwrap_or_else(|| "/".into());
    let at = Connect::Endpoint(format!("{LINK_SCHEME}{}", agent.name));
    let spec = RuntimeSpec::new(RuntimeId::trusted(agent.dialect), agent.dialect, at, cwd);
    match directory.launch(spec) {
        Ok(_) | Err(SessionError::RuntimeExists(_)) => {}
        Err(error) => tracing::error!(agent = agent.name, %error, "the terminals of an agent cannot be attached"),
    }
}

/// Starts a configured runtime, and its session if one is configured. An error is logged and does not affect other runtimes.
fn attach(directory: &Directory, runtime: config::RuntimeConfig) {
    let id = runtime.spec.id.clone();
    let endpoint = matches!(runtime.spec.connect, Connect::Endpoint(_));
    if let Connect::Command(command) = &runtime.spec.connect {
        tracing::info!(runtime_id = %id, program = command.first().map_or("", String::as_str), "starting a runtime");
    }
    let taken_over = match directory.launch(runtime.spec.clone()) {
        Ok(_) => false,
        Err(SessionError::RuntimeExists(_)) => true,
        Err(error) => return tracing::error!(runtime_id = %id, %error, "a runtime was not started"),
    };
    if taken_over || runtime.session {
        let directory = directory.clone();
        tokio::spawn(async move {
            if taken_over {
                // The runtime's holder outlived the last gateway. If the runtime itself has ended, it is started now.
                if still_runs(&directory, &id).await {
                    return tracing::info!(runtime_id = %id, "the runtime still runs, with the settings it was started with");
                }
                if let Err(error) = directory.launch(runtime.spec) {
                    return tracing::error!(runtime_id = %id, %error, "a runtime was not started");
                }
            }
            if !runtime.session {
                return;
            }
            // An endpoint stores its conversations: the last one is reopened, not a new one with each start of the gateway.
            if endpoint && let Some(outcome) = directory.open_last(&id).await {
                return match outcome {
                    Ok(session) => {
                        tracing::info!(runtime_id = %id, session_id = %session, "the previous session is open");
                    }
                    Err(error) => {
                        tracing::error!(runtime_id = %id, %error, "the previous session could not be opened")
                    }
                };
            }
            let open = OpenSession {
                runtime_id: id.clone(),
                cwd: None,
                title: runtime.title,
                native_id: None,
                program: None,
                mcp_servers: Vec::new(),
            };
            match directory.begin(open).await {
                Ok(session) => tracing::info!(runtime_id = %id, session_id = %session.session_id, "a session is open"),
                Err(error) => tracing::error!(runtime_id = %id, %error, "the runtime opened no session"),
            }
        });
    }
}

/// Waits until a runtime that was taken over is ready or has ended. Returns `false` if it ended and should be started again.
async fn still_runs(directory: &Directory, id: &RuntimeId) -> bool {
    let mut changed = directory.runtimes_changed();
    loop {
        match directory.runtime(id).map(|info| (info.state, info.stopped)) {
            Some((RuntimeState::Ready | RuntimeState::Restarting, _)) => return true,
            // A client stopped the runtime in the meantime: it stays stopped.
            Some((RuntimeState::Exited, true)) | None => return true,
            Some((RuntimeState::Exited, false)) => return false,
            Some((RuntimeState::Starting | RuntimeState::Unknown, _)) => {}
        }
        if changed.changed().await.is_err() {
            return true;
        }
    }
}

async fn retain(directory: Directory, retention: RetentionRules) {
    let mut round = tokio::time::interval_at(tokio::time::Instant::now() + RETAIN_FIRST, RETAIN_EVERY);
    round.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut doubted = directory.clock().doubt().is_some();
    loop {
        round.tick().await;
        directory.clock().check();
        let doubts = directory.clock().doubt().is_some();
        if doubted
            && !doubts
            && let Err(error) = directory.begin_day().await
        {
            tracing::warn!(%error, "what was spent today could not be read");
        }
        doubted = doubts;
        match directory.retain(retention, SystemTime::now().into()).await {
            Ok(0) => {}
            Ok(sessions) => tracing::info!(sessions, "old events were removed"),
            Err(error) => tracing::warn!(%error, "old events could not be removed"),
        }
    }
}

/// Returns the access of other machines in the configuration.
fn configured_access(config: &Config) -> ConfiguredAccess {
    let mut hosts = config.public_hosts.clone();
    hosts.extend(config.public_hosts.iter().map(|name| format!("https://{name}")));
    hosts.extend(config.public_url.clone());
    ConfiguredAccess {
        tls: config.tls.as_ref().map(|tls| tls.listen),
        public_url: config.public_url.clone(),
        hosts,
        proxies: config.trusted_proxies.clone(),
    }
}

/// Binds the TLS listener, of the configuration or added to an earlier gateway. Later additions are written to [`GATEWAY_FILE`].
fn open_listeners(
    config: &Config,
    home: &Path,
    hosts: &Arc<Hosts>,
    addresses: &Arc<PublicAddresses>,
) -> Result<Listeners, StartError> {
    let folder = home.join(TLS_FOLDER);
    let [cert, key] = TLS_FILES.map(|file| folder.join(file));
    let own = CertificateFiles { cert, key, ca: Some(folder) };
    let files = config.tls.as_ref().and_then(|tls| tls.files.clone());
    let configured = files.map_or_else(|| own.clone(), |(cert, key)| CertificateFiles { cert, key, ca: None });
    let file = home.join(GATEWAY_FILE);
    let announce = move |tls: Option<SocketAddr>, public_url: Option<String>| {
        // Before the gateway has written the file, there is that of another one, or none.
        let stored = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Running>(&bytes).ok());
        let Some(running) = stored.filter(|running| running.pid == std::process::id()) else { return };
        let running = Running { tls, public_url, ..running };
        if let Err(error) = auth::write_private(&file, &serde_json::to_vec_pretty(&running).unwrap_or_default()) {
            tracing::error!(%error, "the address for other machines could not be written down");
        }
    };
    let (hosts, addresses) = (Arc::clone(hosts), Arc::clone(addresses));
    Listeners::open(home, configured_access(config), &configured, own, hosts, addresses, Box::new(announce)).map_err(
        |error| match error {
            ListenerError::Bind { address, error } => StartError::ListenTls { address, error },
            ListenerError::Certificate(error) => StartError::Tls(error),
            other => StartError::Listeners(other),
        },
    )
}

/// Binds the runtimes' own ports, on the loopback address of the gateway.
fn bind_ports(config: &Config) -> Result<Vec<(Port, TcpListener)>, StartError> {
    let mut all = Vec::new();
    for runtime in &config.runtimes {
        let config::Ports { ui, remote, ui_without_token_for_this_user } = runtime.ports;
        let both = ui.is_some() && ui == remote;
        for (key, port, uses) in
            [("ui_port", ui, (true, both)), ("remote_port", remote.filter(|_| !both), (false, true))]
        {
            let Some(port) = port else { continue };
            let address = SocketAddr::new(config.listen.ip(), port);
            let id = runtime.spec.id.clone();
            let failed_to_listen = |error| StartError::Port { runtime: id.clone(), key, address, error };
            let listener = router::bind(address).map_err(failed_to_listen)?;
            let address = listener.local_addr().map_err(failed_to_listen)?;
            let same_user = uses.0 && ui_without_token_for_this_user;
            tracing::info!(runtime_id = %id, %address, ui = uses.0, remote = uses.1, "serving a runtime as a Gemini UI");
            all.push((Port { runtime: id, address, ui: uses.0, remote: uses.1, same_user }, listener));
        }
    }
    Ok(all)
}

/// Returns the ports in the form of [`GATEWAY_FILE`].
fn port_numbers(ports: &[(Port, TcpListener)]) -> BTreeMap<RuntimeId, RuntimePorts> {
    let mut named: BTreeMap<RuntimeId, RuntimePorts> = BTreeMap::new();
    for (port, _) in ports {
        let numbers = named.entry(port.runtime.clone()).or_default();
        let number = port.address.port();
        numbers.ui_port = numbers.ui_port.or(port.ui.then_some(number));
        numbers.remote_port = numbers.remote_port.or(port.remote.then_some(number));
    }
    named
}
