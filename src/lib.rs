//! Plexus: one gateway between every coding agent that runs on your machines and every screen you own.
//!
//! [`Gateway`] wires the floors together: the store below, the log and the sessions on it, the back door to the agents,
//! the front door to the screens. See ARCHITECTURE.md for the map.
#![forbid(unsafe_code)]

pub mod auth;
pub mod config;
pub mod ledger;
pub mod metrics;
pub mod router;
pub mod runtimes;
pub mod sessions;
mod spans;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::auth::{Admin, Auth, AuthError, Grant, Target};
use crate::config::Config;
use crate::ledger::Ledger;
use crate::router::notify::Notifier;
use crate::router::{AppState, Authority, ForwardedWish, Hosts, Presets, Proxies, PublicAddresses, Tls, TlsError};
use crate::runtimes::Runtimes;
use crate::sessions::{
    CommitEntry, CommitRows, Directory, Log, OpenSession, RetentionRules, SessionError, SessionRules,
};
use plexus_protocol::{Connect, Origin, Position, RuntimeId, RuntimeState, SessionId, Timestamp};
use plexus_store::{SqliteStore, StoreError};

/// The file in the state's folder that says where the running gateway is.
pub const GATEWAY_FILE: &str = "gateway.json";

/// The folder in the state's folder where the holders of runtimes are found.
pub const HOLDERS: &str = "holders";

/// The folder in the state's folder where `plexus tls init` keeps the private CA and the certificate.
pub const TLS_FOLDER: &str = "tls";
/// The certificate in [`TLS_FOLDER`], and its key.
pub const TLS_FILES: [&str; 2] = ["server.crt", "server.key"];

/// How long the gateway takes to stop at most: runtimes are killed, connections cut by then.
pub const STOP_DEADLINE: Duration = Duration::from_secs(12);

/// How long streams have to tell their clients that the gateway stops.
const GOODBYE: Duration = Duration::from_secs(2);

/// How long the one-time code of the banner holds.
const CODE_LIFE: Duration = Duration::from_secs(120);

/// How often retention looks: what comes in meanwhile is kept beyond its limits.
const RETAIN_EVERY: Duration = Duration::from_secs(60);
/// When it looks first: starting is no time for tidying up, and a gateway that is restarted often has to look at all.
const RETAIN_FIRST: Duration = Duration::from_secs(20);

/// Connections at once to a port of a runtime's own; past it new ones wait until one ends.
const PORT_CONNECTIONS: usize = 1024;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// What [`GATEWAY_FILE`] says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// Where it serves.
    pub url: String,
    /// Its process.
    pub pid: u32,
    /// Since when.
    pub started_at: Timestamp,
    /// Its version.
    pub version: String,
    /// Where it serves by TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<SocketAddr>,
    /// The origin by which other devices reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// The ports of runtimes that are served as a Gemini UI is, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<RuntimeId, RuntimePorts>,
    /// What it answers challenges with ([`auth::Proof`]); empty for a gateway of before there were any.
    #[serde(default)]
    pub proof: String,
}

/// The ports of a runtime's own, on the loopback address that the gateway serves on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimePorts {
    /// The UI mirror's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui_port: Option<u16>,
    /// The remote control's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_port: Option<u16>,
}

/// Why the gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another one runs here.
    #[error("a gateway is already running at {url} (process {pid})")]
    AlreadyRunning {
        /// The address of the other gateway.
        url: String,
        /// Which process.
        pid: u32,
    },
    /// The state cannot be opened.
    #[error("{}: {error}", .home.display())]
    Store {
        /// The state's folder.
        home: PathBuf,
        /// What the store said.
        error: StoreError,
    },
    /// The devices cannot be read.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address}: {error}; choose another address with --listen, or stop the program that uses it"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// The address for TLS cannot be listened on.
    #[error(
        "cannot listen on {address} for TLS: {error}; set another listen in [tls], or stop the program that uses it"
    )]
    ListenTls {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// There is no certificate to serve with.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// A port of a runtime's own cannot be listened on.
    #[error(
        "cannot listen on {address} for the runtime {runtime}: {error}; set another {key}, or stop the program that \
         uses it"
    )]
    Port {
        /// The runtime.
        runtime: RuntimeId,
        /// Which of its ports.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// What is kept of notifications cannot be used; what, why, and the fix.
    #[error("{0}")]
    Push(String),
    /// A file in the state's folder cannot be written.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// A gateway that is ready to serve: its state is open, its address bound, its runtimes starting.
pub struct Gateway {
    state: AppState,
    runtimes: Arc<Runtimes>,
    listener: TcpListener,
    secure: Option<(TcpListener, Tls)>,
    ports: Vec<(router::Port, TcpListener)>,
    running: Running,
    home: PathBuf,
    retention: RetentionRules,
    /// Where the log stood before this gateway touched it.
    before: Position,
    stop: watch::Sender<bool>,
    code: String,
}

impl Gateway {
    /// Opens the state in `home`, binds the address, starts the configured runtimes. `exe` is the plexus program itself,
    /// which holds the agents.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left behind.
    pub async fn start(config: Config, home: PathBuf, exe: PathBuf) -> Result<Self, StartError> {
        let store = SqliteStore::open(&home, config.durability).map_err(|error| match (&error, running(&home)) {
            (StoreError::Locked, Some(other)) => StartError::AlreadyRunning { url: other.url, pid: other.pid },
            _ => StartError::Store { home: home.clone(), error },
        })?;
        let failed = |error| StartError::Store { home: home.clone(), error };
        let log = Log::open(Arc::new(store)).map_err(failed)?;
        let auth = Auth::open(&home, &log.store().devices().map_err(failed)?, persist(&log))?;
        let cannot = |error| StartError::Listen { address: config.listen, error };
        let listener = listen(config.listen).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let ports = ports(&config)?;
        let Reached { secure, hosts, public_url } = reached(&config, &home)?;
        let tls = secure.as_ref().and_then(|(listener, _)| listener.local_addr().ok());

        let ledger = Ledger::new(config.limits.clone().with_room_for(config.line_max));
        let runtimes = Arc::new(Runtimes::new(runtimes::RuntimeSettings {
            line_max: config.line_max,
            ledger: ledger.clone(),
            private: Some(home.clone()),
            ..runtimes::RuntimeSettings::new(exe.clone(), home.join(HOLDERS))
        }));
        let rules = SessionRules {
            expire_ms: config.expire_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
            prompt_max: config.prompt_max,
            ..SessionRules::default()
        };
        let before = log.head();
        let push = config::Push { public_url: public_url.clone(), ..config.push };
        let notifier = Notifier::open(&home, &log, push).map_err(StartError::Push)?;
        let directory = Directory::open(log.clone(), Arc::clone(&runtimes) as _, rules).await.map_err(failed)?;
        let (stop, stopping) = watch::channel(false);
        let state = AppState {
            epoch: log.epoch().clone(),
            hosts: Arc::new(Hosts::new(&[address], &hosts)),
            url: format!("http://{address}"),
            public_url: public_url.clone(),
            outside: Arc::new(PublicAddresses {
                proxies: Proxies::new(config.trusted_proxies),
                ca: Some(home.join(TLS_FOLDER)),
            }),
            presets: presets(exe),
            started_at: SystemTime::now().into(),
            version: env!("CARGO_PKG_VERSION"),
            stop: stopping,
            limits: router::GateLimits::default(),
            ledger,
            rooms: router::acp::AcpSessionRegistry::default(),
            connections: router::acp::Connections::default(),
            notifier,
            presence: router::presence::Presence::default(),
            doctor: router::doctor::Doctor::default(),
            proof: auth::Proof::new().map_err(StartError::Auth)?,
            fans: router::fanout::Fans::over(&directory, router::fanout::STALL),
            directory,
            auth,
        };
        let code = admin_code(&state.auth, &home)?;
        let running = Running {
            url: state.url.clone(),
            pid: std::process::id(),
            started_at: state.started_at,
            version: state.version.into(),
            tls,
            public_url,
            ports: named(&ports),
            proof: state.proof.secret().into(),
        };
        write_private(&home.join(GATEWAY_FILE), &serde_json::to_vec_pretty(&running).unwrap_or_default())?;
        state.directory.charge_to(&state.ledger);
        state.directory.reach_clients(Arc::new(router::acp::Errands::new(state.rooms.clone(), state.auth.clone())));
        for runtime in config.runtimes {
            attach(&state.directory, runtime);
        }
        let retention = RetentionRules {
            max_age_ms: config.retention.max_age_days.map(|days| days.saturating_mul(86_400_000)),
            max_bytes: config.retention.max_bytes,
        };
        Ok(Self { state, runtimes, listener, secure, ports, running, home, retention, before, stop, code })
    }

    /// With somebody who finds out what ails it, for whoever asks over HTTP.
    #[must_use]
    pub fn with_doctor(mut self, doctor: router::doctor::Doctor) -> Self {
        self.state.doctor = doctor;
        self
    }

    /// Where it serves.
    pub fn url(&self) -> String {
        self.running.url.clone()
    }

    /// The origin by which other devices reach it, if they can.
    pub fn public_url(&self) -> Option<String> {
        self.running.public_url.clone()
    }

    /// A one-time code that signs a browser in: `URL/#code=CODE`, good for two minutes.
    pub fn admin_code(&self) -> String {
        self.code.clone()
    }

    /// Serves until `shutdown` resolves, then stops: nothing new is accepted, clients are told, runtimes are stopped, or
    /// left to the next gateway if they outlive this one, and what they last said is kept. Takes [`STOP_DEADLINE`] at most after that.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let retaining = tokio::spawn(retain(self.state.directory.clone(), self.retention));
        tokio::spawn(self.state.notifier.run(self.state.clone(), self.before));
        let serve =
            |listener, app, limits| tokio::spawn(router::serve(vec![listener], app, limits, self.state.stop.clone()));
        let limits = router::ListenLimits::over(&self.state.ledger);
        let mut serving = vec![serve(self.listener, router::app(self.state.clone()), limits.clone())];
        if let Some((listener, tls)) = self.secure {
            let (app, outside) = (router::app(self.state.clone()), Arc::clone(&self.state.outside));
            let trusted = move |address| outside.proxies.trusts(address);
            let limits = router::TlsLimits::over(&limits);
            serving.push(tokio::spawn(router::serve_tls(listener, tls, app, limits, trusted, self.state.stop.clone())));
        }
        for (port, listener) in self.ports {
            let limits = router::ListenLimits { connections: PORT_CONNECTIONS, ..limits.clone() };
            serving.push(serve(listener, router::port_app(self.state.clone(), &port), limits));
        }
        shutdown.await;
        let _ = self.stop.send(true);
        retaining.abort();
        let stopped = async {
            // The runtimes first: what they last say is still shown to whoever watches.
            self.runtimes.shutdown().await;
            for serving in serving {
                let _ = serving.await;
            }
            // Streams say goodbye by themselves; whoever takes longer is cut.
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

/// What [`GATEWAY_FILE`] in `home` says, whether or not that gateway still lives.
pub fn running(home: &Path) -> Option<Running> {
    serde_json::from_slice(&std::fs::read(home.join(GATEWAY_FILE)).ok()?).ok()
}

/// Devices are kept by the log's writer, like everything else.
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
                kept: None,
                heard: None,
                sync: true,
            };
            log.commit(entry).await.map(drop).map_err(|error| error.to_string())
        })
    })
}

fn presets(exe: PathBuf) -> Presets {
    Arc::new(move |name: &str, wish: &ForwardedWish| {
        let mut spec =
            runtimes::preset(name, &exe, |name| std::env::var(name).ok()).map_err(|unknown| unknown.to_string())?;
        if let Some(id) = &wish.id {
            spec.id = id.clone();
        }
        if let Some(cwd) = &wish.cwd {
            spec.cwd.clone_from(cwd);
        }
        spec.env.extend(wish.env.clone());
        Ok(spec)
    })
}

fn admin_code(auth: &Auth, home: &Path) -> Result<String, StartError> {
    let token = auth::read_token(home)?;
    let permit = auth.check(&token).and_then(|caller| caller.permit::<Admin>(Target::Gateway).ok());
    let permit = permit.ok_or(AuthError::BadCode)?;
    Ok(auth.mint_code(&permit, Grant::all(), CODE_LIFE)?.code)
}

/// Starts a configured runtime, and its session if it wants one. What goes wrong is shown, and does not stop the others.
fn attach(directory: &Directory, runtime: config::RuntimeConfig) {
    let id = runtime.spec.id.clone();
    let endpoint = matches!(runtime.spec.connect, Connect::Endpoint(_));
    if let Connect::Command(command) = &runtime.spec.connect {
        tracing::info!(runtime_id = %id, program = command.first().map_or("", String::as_str), "starting a runtime");
    }
    let there = match directory.launch(runtime.spec.clone()) {
        Ok(_) => false,
        Err(SessionError::RuntimeExists(_)) => true,
        Err(error) => return tracing::error!(runtime_id = %id, %error, "a runtime was not started"),
    };
    if there || runtime.session {
        let directory = directory.clone();
        tokio::spawn(async move {
            if there {
                // It outlived the last gateway. If it did so only to tell of its end, it is started now.
                if lives(&directory, &id).await {
                    return tracing::info!(runtime_id = %id, "the runtime still runs, with the settings it was started with");
                }
                if let Err(error) = directory.launch(runtime.spec) {
                    return tracing::error!(runtime_id = %id, %error, "a runtime was not started");
                }
            }
            if !runtime.session {
                return;
            }
            // An endpoint has its conversations still: another one with each start of the gateway is nobody's wish.
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
            let open =
                OpenSession { runtime_id: id.clone(), cwd: None, title: runtime.title, native_id: None, program: None };
            match directory.begin(open).await {
                Ok(session) => tracing::info!(runtime_id = %id, session_id = %session.session_id, "a session is open"),
                Err(error) => tracing::error!(runtime_id = %id, %error, "the runtime opened no session"),
            }
        });
    }
}

/// Waits until a runtime that was found again is ready or gone; says which.
async fn lives(directory: &Directory, id: &RuntimeId) -> bool {
    let mut changed = directory.runtimes_changed();
    loop {
        match directory.runtime(id).map(|info| (info.state, info.stopped)) {
            Some((RuntimeState::Ready | RuntimeState::Restarting, _)) => return true,
            // Somebody stopped it meanwhile: it is not wanted.
            Some((RuntimeState::Exited, true)) | None => return true,
            Some((RuntimeState::Exited, false)) => return false,
            Some((RuntimeState::Starting, _)) => {}
        }
        if changed.changed().await.is_err() {
            return true;
        }
    }
}

async fn retain(directory: Directory, retention: RetentionRules) {
    let mut round = tokio::time::interval_at(tokio::time::Instant::now() + RETAIN_FIRST, RETAIN_EVERY);
    round.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        round.tick().await;
        match directory.retain(retention, SystemTime::now().into()).await {
            Ok(0) => {}
            Ok(sessions) => tracing::info!(sessions, "old events were removed"),
            Err(error) => tracing::warn!(%error, "old events could not be removed"),
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { tokio::net::TcpSocket::new_v4() } else { tokio::net::TcpSocket::new_v6() }?;
    // A gateway that was killed leaves its port waiting; the next one need not.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// How other machines reach the gateway.
struct Reached {
    /// The listener for TLS, with its certificate.
    secure: Option<(TcpListener, Tls)>,
    /// Names and origins beside the loopback ones.
    hosts: Vec<String>,
    /// The origin that links begin with.
    public_url: Option<String>,
}

/// Binds the listener for TLS, and says which names are ours: those in the configuration, and those of our certificate.
fn reached(config: &Config, home: &Path) -> Result<Reached, StartError> {
    let mut hosts = config.public_hosts.clone();
    hosts.extend(config.public_hosts.iter().map(|name| format!("https://{name}")));
    hosts.extend(config.public_url.clone());
    let Some(wanted) = &config.tls else {
        return Ok(Reached { secure: None, hosts, public_url: config.public_url.clone() });
    };
    let folder = home.join(TLS_FOLDER);
    let own = wanted.files.is_none().then(|| TLS_FILES.map(|file| folder.join(file)).into());
    let (cert, key) = wanted.files.clone().or(own).unwrap_or_default();
    let tls = Tls::open(&cert, &key)?;
    let authority = wanted.files.is_none().then(|| Authority::read(&folder)).flatten();
    let names = authority.map_or_else(|| tls.names(), |authority| authority.names);
    let cannot = |error| StartError::ListenTls { address: wanted.listen, error };
    let listener = listen(wanted.listen).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let origins = Authority::origins(&names, address.port());
    if origins.is_empty() && config.public_url.is_none() {
        tracing::warn!(cert = %cert.display(), "the certificate's names could not be read: set public_url, otherwise \
            nobody can connect");
    }
    tracing::info!(%address, names = names.join(", "), "serving over TLS");
    let public_url = config.public_url.clone().or_else(|| origins.first().cloned());
    hosts.extend(origins);
    Ok(Reached { secure: Some((listener, tls)), hosts, public_url })
}

/// Binds the ports of the runtimes' own: beside the gateway's, which is loopback.
fn ports(config: &Config) -> Result<Vec<(router::Port, TcpListener)>, StartError> {
    let mut all = Vec::new();
    for runtime in &config.runtimes {
        let config::Ports { ui, remote, ui_without_token_for_this_user } = runtime.ports;
        let both = ui.is_some() && ui == remote;
        for (key, port, of) in [("ui_port", ui, (true, both)), ("remote_port", remote.filter(|_| !both), (false, true))]
        {
            let Some(port) = port else { continue };
            let address = SocketAddr::new(config.listen.ip(), port);
            let id = runtime.spec.id.clone();
            let cannot = |error| StartError::Port { runtime: id.clone(), key, address, error };
            let listener = listen(address).map_err(cannot)?;
            let address = listener.local_addr().map_err(cannot)?;
            let neighbours = of.0 && ui_without_token_for_this_user;
            tracing::info!(runtime_id = %id, %address, ui = of.0, remote = of.1, "serving a runtime as a Gemini UI");
            all.push((router::Port { runtime: id, address, ui: of.0, remote: of.1, neighbours }, listener));
        }
    }
    Ok(all)
}

/// The ports as [`GATEWAY_FILE`] has them.
fn named(ports: &[(router::Port, TcpListener)]) -> BTreeMap<RuntimeId, RuntimePorts> {
    let mut named: BTreeMap<RuntimeId, RuntimePorts> = BTreeMap::new();
    for (port, _) in ports {
        let of = named.entry(port.runtime.clone()).or_default();
        let number = port.address.port();
        of.ui_port = of.ui_port.or(port.ui.then_some(number));
        of.remote_port = of.remote_port.or(port.remote.then_some(number));
    }
    named
}

/// Writes a file that only its owner can read, all of it or none.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), StartError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let beside = path.with_extension("new");
    let write = || {
        let _ = std::fs::remove_file(&beside);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().map_err(|error: io::Error| StartError::File { path: path.into(), error })
}
