//! The access of other machines to the gateway: the TLS listener of the configuration, or one that was added while the gateway runs
//! (`plexus phone`), or a proxy on this machine. Additions are stored in the state folder and restored after a restart.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use plexus_auth::{Admin, write_private};
use plexus_ledger::Ledger;
use plexus_protocol::api::listeners::{NewProxy, NewTlsListener, PublicAccess, TlsListenerView};
use plexus_risk::Effect;
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{RouteResult, gateway, json, no_content, no_such};
use plexus_router::routes::{ADMIN, DELETE, GET, JSON, NOTHING, PUT, route};
use plexus_router::{
    Authority, Hosts, ListenLimits, Network, Problem, Proxies, PublicAddresses, PublicReach, Tls, TlsError, TlsLimits,
    bind, parse_origin, serve_tls,
};

/// The file in the state folder with the additions.
const LISTENERS_FILE: &str = "listeners.json";

/// Returns the routes of listeners.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Listeners>> {
    vec![
        route(GET, "/v1/listeners", ADMIN, NOTHING, "How other machines reach the gateway", list)
            .response::<PublicAccess>(200),
        route(PUT, "/v1/listeners/tls", ADMIN, JSON, "Add a TLS listener now, with the certificate of `plexus tls init`; it is remembered", add_tls)
            .request::<NewTlsListener>().response::<PublicAccess>(200).effect(Effect::OpenNetwork),
        route(DELETE, "/v1/listeners/tls", ADMIN, NOTHING, "Remove the TLS listener that was added", remove_tls)
            .empty(204),
        route(PUT, "/v1/listeners/proxy", ADMIN, JSON, "Accept what a proxy on this machine forwards under an origin; it is remembered", add_proxy)
            .request::<NewProxy>().response::<PublicAccess>(200).effect(Effect::OpenNetwork),
        route(DELETE, "/v1/listeners/proxy", ADMIN, NOTHING, "Remove the proxy that was added", remove_proxy)
            .empty(204),
    ]
}

/// The access in the configuration, which cannot be changed while the gateway runs.
#[derive(Clone, Debug, Default)]
pub struct ConfiguredAccess {
    /// The address of the TLS listener.
    pub tls: Option<SocketAddr>,
    /// The origin of links.
    pub public_url: Option<String>,
    /// Host names and origins besides those of loopback.
    pub hosts: Vec<String>,
    /// Trusted proxies.
    pub proxies: Vec<Network>,
}

/// The files of the certificate of the TLS listener.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The certificate with its chain.
    pub cert: PathBuf,
    /// The key.
    pub key: PathBuf,
    /// The folder of the private CA, if it made the certificate: its names are then those of the CA.
    pub ca: Option<PathBuf>,
}

/// Reports to the owner's programs where the gateway is reachable: the address of the TLS listener, and the origin of links.
pub type AnnounceAccess = Box<dyn Fn(Option<SocketAddr>, Option<String>) + Send + Sync>;

/// The reason why a listener was not added or removed.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// The listener cannot be bound to the address.
    #[error("cannot listen on {address}: {error}; choose another address, or stop the program that uses it")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// There is no certificate for the listener.
    #[error(transparent)]
    Certificate(#[from] TlsError),
    /// The configuration defines the listener or proxy.
    #[error("the configuration has {setting}, which only an edit of the file and a restart can change")]
    Configured {
        /// The existing listener.
        setting: &'static str,
    },
    /// The addition cannot be stored.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl From<ListenerError> for Problem {
    fn from(error: ListenerError) -> Self {
        let (status, code) = match &error {
            ListenerError::Bind { .. } => (StatusCode::CONFLICT, "cannot_listen"),
            ListenerError::Certificate(_) => (StatusCode::CONFLICT, "no_certificate"),
            ListenerError::Configured { .. } => (StatusCode::CONFLICT, "configured"),
            ListenerError::File { .. } => (StatusCode::INSUFFICIENT_STORAGE, "storage"),
        };
        Self::new(status, code, error.to_string())
    }
}

/// The access that was added while a gateway ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct AddedAccess {
    /// The address of the TLS listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tls: Option<SocketAddr>,
    /// The origin at which a proxy on this machine serves the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proxy: Option<String>,
}

/// The TLS listener.
struct TlsListener {
    address: SocketAddr,
    names: Vec<String>,
    /// The socket and certificate, until the listener is served.
    bound: Option<(TcpListener, Tls)>,
    /// The signal to stop serving, and the task.
    serving: Option<(watch::Sender<bool>, JoinHandle<()>)>,
}

/// Returns the names that the certificate covers.
fn names(files: &CertificateFiles, tls: &Tls) -> Vec<String> {
    let authority = files.ca.as_deref().and_then(Authority::read);
    authority.map_or_else(|| tls.names(), |authority| authority.names)
}

impl TlsListener {
    fn bind(address: SocketAddr, files: &CertificateFiles) -> Result<Self, ListenerError> {
        let tls = Tls::open(&files.cert, &files.key)?;
        let names = names(files, &tls);
        let failed = |error| ListenerError::Bind { address, error };
        let listener = bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        tracing::info!(%address, names = names.join(", "), "serving over TLS");
        Ok(Self { address, names, bound: Some((listener, tls)), serving: None })
    }

    fn origins(&self) -> Vec<String> {
        Authority::origins(&self.names, self.address.port())
    }

    /// Begins to serve. Serving ends with the gateway, or when the listener is removed.
    fn serve(&mut self, service: &TlsService, addresses: &Arc<PublicAddresses>) {
        let Some((listener, tls)) = self.bound.take() else { return };
        let (end, ended) = watch::channel(false);
        let addresses = Arc::clone(addresses);
        let TlsService { app, limits } = service.clone();
        let serving =
            tokio::spawn(serve_tls(listener, tls, app, limits, move |address| addresses.trusts(address), ended));
        self.serving = Some((end, serving));
    }

    /// Ends the listener: connections get a signal, and are closed if they do not end in time.
    async fn end(self) {
        if let Some((end, serving)) = self.serving {
            let _ = end.send(true);
            let _ = serving.await;
        }
    }
}

/// The listener for other machines. Cheap to clone.
#[derive(Clone)]
pub struct Listeners {
    shared: Arc<ListenersShared>,
}

struct ListenersShared {
    /// The state folder.
    home: PathBuf,
    /// The certificate of an added listener.
    files: CertificateFiles,
    configured: ConfiguredAccess,
    hosts: Arc<Hosts>,
    addresses: Arc<PublicAddresses>,
    announce: AnnounceAccess,
    /// Held while anything changes.
    changing: Mutex<ListenersState>,
}

#[derive(Default)]
struct ListenersState {
    added: AddedAccess,
    tls: Option<TlsListener>,
    /// The service, while the gateway serves.
    service: Option<TlsService>,
}

/// The service of TLS listeners.
#[derive(Clone)]
struct TlsService {
    app: axum::Router,
    limits: TlsLimits,
}

impl Listeners {
    /// Binds the TLS listener of the configuration, whose certificate is in `configured_files`, or the one that was added to an earlier
    /// gateway, whose certificate is in `files`. The latter may be impossible now, which is logged.
    ///
    /// # Errors
    /// If the configured one is impossible.
    pub fn open(
        home: &Path,
        configured: ConfiguredAccess,
        configured_files: &CertificateFiles,
        files: CertificateFiles,
        hosts: Arc<Hosts>,
        addresses: Arc<PublicAddresses>,
        announce: AnnounceAccess,
    ) -> Result<Self, ListenerError> {
        let added = read_added(&home.join(LISTENERS_FILE));
        let tls = match (configured.tls, added.tls) {
            (Some(address), _) => Some(TlsListener::bind(address, configured_files)?),
            (None, Some(address)) => TlsListener::bind(address, &files)
                .inspect_err(|error| {
                    tracing::error!(%error, "the listener for phones could not be opened; `plexus phone` tries again");
                })
                .ok(),
            (None, None) => None,
        };
        if let Some(tls) = &tls
            && tls.names.is_empty()
            && configured.public_url.is_none()
        {
            tracing::warn!(cert = %configured_files.cert.display(), "the certificate's names could not be read: set public_url, \
                otherwise nobody can connect");
        }
        let changing = Mutex::new(ListenersState { added, tls, service: None });
        let home = home.to_owned();
        let listeners = Self {
            shared: Arc::new(ListenersShared { home, files, configured, hosts, addresses, announce, changing }),
        };
        // Nothing else uses the lock yet.
        if let Ok(state) = listeners.shared.changing.try_lock() {
            listeners.apply(&state);
        }
        Ok(listeners)
    }

    /// Begins to serve: the current listener, and those that are added later.
    pub async fn serve(&self, app: axum::Router, ledger: &Ledger) {
        let service = TlsService { app, limits: TlsLimits::with_http(&ListenLimits::with_ledger(ledger)) };
        let mut state = self.shared.changing.lock().await;
        if let Some(tls) = &mut state.tls {
            tls.serve(&service, &self.shared.addresses);
        }
        state.service = Some(service);
    }

    /// Stops accepting, and signals connections to end.
    pub async fn stop(&self) {
        if let Some((end, _)) = self.shared.changing.lock().await.tls.as_ref().and_then(|tls| tls.serving.as_ref()) {
            let _ = end.send(true);
        }
    }

    /// Ends the listeners; returns once they have ended.
    pub async fn shut_down(&self) {
        let tls = {
            let mut state = self.shared.changing.lock().await;
            // The service holds the state of this feature.
            state.service = None;
            state.tls.take()
        };
        if let Some(tls) = tls {
            tls.end().await;
        }
    }

    /// Returns the address of the TLS listener.
    pub async fn tls_address(&self) -> Option<SocketAddr> {
        self.shared.changing.lock().await.tls.as_ref().map(|tls| tls.address)
    }

    /// Updates the names, proxies and links from the current listeners.
    fn apply(&self, state: &ListenersState) {
        let ListenersShared { configured, hosts, addresses, announce, .. } = &*self.shared;
        let origins = state.tls.as_ref().map(TlsListener::origins).unwrap_or_default();
        let url = configured.public_url.clone().or_else(|| state.added.proxy.clone());
        let url = url.or_else(|| origins.first().cloned());
        let mut proxies = configured.proxies.clone();
        if state.added.proxy.is_some() {
            let local = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
            proxies.extend(local.map(Network::only));
        }
        let names = configured.hosts.iter().cloned().chain(state.added.proxy.clone()).chain(origins);
        hosts.set_public(&names.collect::<Vec<_>>());
        addresses.set(PublicReach { proxies: Proxies::new(proxies), url: url.clone() });
        announce(state.tls.as_ref().map(|tls| tls.address), url);
    }

    /// Stores the additions.
    fn remember(&self, added: &AddedAccess) -> Result<(), ListenerError> {
        let path = self.shared.home.join(LISTENERS_FILE);
        write_private(&path, &serde_json::to_vec_pretty(added).unwrap_or_default())
            .map_err(|error| ListenerError::File { path: path.clone(), error })
    }

    /// Adds a TLS listener at this address, or moves the added one. It is served when this returns.
    async fn add_tls(&self, address: SocketAddr) -> Result<(), ListenerError> {
        if self.shared.configured.tls.is_some() {
            return Err(ListenerError::Configured { setting: "a [tls] section" });
        }
        let mut state = self.shared.changing.lock().await;
        if let Some(tls) = state.tls.as_mut().filter(|tls| tls.address == address) {
            // The listener reads its certificate again when it changes; its names are those of the current certificate.
            tls.names = names(&self.shared.files, &Tls::open(&self.shared.files.cert, &self.shared.files.key)?);
            self.apply(&state);
            return Ok(());
        }
        let mut tls = TlsListener::bind(address, &self.shared.files)?;
        let added = AddedAccess { tls: Some(tls.address), ..state.added.clone() };
        self.remember(&added)?;
        if let Some(service) = &state.service {
            tls.serve(service, &self.shared.addresses);
        }
        let old = state.tls.replace(tls);
        state.added = added;
        self.apply(&state);
        if let Some(old) = old {
            tokio::spawn(old.end());
        }
        Ok(())
    }

    /// Removes the added TLS listener, if there is one. Its connections end by themselves, or are closed soon: the response may be sent
    /// through one of them.
    async fn remove_tls(&self) -> Result<bool, ListenerError> {
        let mut state = self.shared.changing.lock().await;
        if state.added.tls.is_none() {
            return Ok(false);
        }
        let added = AddedAccess { tls: None, ..state.added.clone() };
        self.remember(&added)?;
        state.added = added;
        let tls = if self.shared.configured.tls.is_none() { state.tls.take() } else { None };
        self.apply(&state);
        if let Some(tls) = tls {
            tokio::spawn(tls.end());
        }
        Ok(true)
    }

    /// Accepts requests that a proxy on this machine forwards under `url`, or stops accepting them. Returns whether anything changed.
    async fn set_proxy(&self, url: Option<String>) -> Result<bool, ListenerError> {
        if url.is_some() && self.shared.configured.public_url.is_some() {
            return Err(ListenerError::Configured { setting: "a `public_url`" });
        }
        let mut state = self.shared.changing.lock().await;
        if state.added.proxy == url {
            return Ok(false);
        }
        let added = AddedAccess { proxy: url, ..state.added.clone() };
        self.remember(&added)?;
        state.added = added;
        self.apply(&state);
        Ok(true)
    }

    async fn view(&self) -> PublicAccess {
        let state = self.shared.changing.lock().await;
        let tls = state.tls.as_ref().map(|tls| TlsListenerView {
            address: tls.address.to_string(),
            names: tls.names.clone(),
            origins: tls.origins(),
            configured: self.shared.configured.tls.is_some(),
        });
        PublicAccess { tls, proxy: state.added.proxy.clone(), public_url: self.shared.addresses.url() }
    }
}

/// Reads the file of additions. A file that cannot be read or parsed counts as absent, which is logged.
fn read_added(path: &Path) -> AddedAccess {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return AddedAccess::default(),
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "what was added for other machines could not be read");
            return AddedAccess::default();
        }
    };
    serde_json::from_slice(&bytes).unwrap_or_else(|error| {
        tracing::error!(path = %path.display(), %error, "what was added for other machines is damaged and ignored");
        AddedAccess::default()
    })
}

async fn list(state: Listeners, call: Call) -> RouteResult {
    gateway::<Admin>(&call)?;
    json(StatusCode::OK, &state.view().await)
}

async fn add_tls(state: Listeners, call: Call) -> RouteResult {
    gateway::<Admin>(&call)?;
    let NewTlsListener { listen } = call.json()?;
    state.add_tls(listen).await?;
    json(StatusCode::OK, &state.view().await)
}

async fn remove_tls(state: Listeners, call: Call) -> RouteResult {
    gateway::<Admin>(&call)?;
    if state.remove_tls().await? { no_content() } else { Err(no_such("listener_not_found", "added TLS listener")) }
}

async fn add_proxy(state: Listeners, call: Call) -> RouteResult {
    gateway::<Admin>(&call)?;
    let NewProxy { public_url } = call.json()?;
    let url = parse_origin(&public_url).map_err(|reason| Problem::invalid(format!("`public_url`: {reason}")))?;
    state.set_proxy(Some(url)).await?;
    json(StatusCode::OK, &state.view().await)
}

async fn remove_proxy(state: Listeners, call: Call) -> RouteResult {
    gateway::<Admin>(&call)?;
    if state.set_proxy(None).await? { no_content() } else { Err(no_such("listener_not_found", "added proxy")) }
}
