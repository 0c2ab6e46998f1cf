//! The clients' side of the gateway: the listener, the guard, the route table, and a module for each frontend.

pub mod acp;
mod admin;
mod agent_tools;
pub mod agents;
mod agui;
mod asyncapi;
mod changes;
mod client_link;
mod context;
mod cookies;
mod described;
mod devices;
pub mod doctor;
pub mod error;
mod export;
pub mod fanout;
mod folders;
mod follow;
pub mod frames;
pub mod guard;
mod headers;
mod history;
mod http;
mod jsonrpc;
pub mod linking;
pub mod listen;
pub mod listeners;
mod listing;
mod mcp;
mod mirror;
pub mod new_session;
pub mod notify;
mod openapi;
mod own_frames;
mod peer;
pub mod presence;
pub mod public_address;
mod remote;
mod reply;
mod resumable;
pub mod routes;
mod rpc;
mod schemas;
mod sse;
mod stop;
mod streamed;
mod surfaces;
mod talk;
mod terminals;
mod ui;
mod usage;
mod web;
pub mod wire;
mod worktrees;
mod ws;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

pub use cookies::CSRF_HEADER;
pub use error::Problem;
pub use guard::{BodyRule, Call, Gate, GateLimits, Hosts, Policy, Route};
pub use listen::tls::{Tls, TlsError, TlsLimits, certificate_end, serve_tls};
pub use listen::{ListenLimits, MAX_CONNECTIONS, bind, serve};
pub use public_address::{Authority, Network, Proxies, PublicAddresses, PublicReach, parse_origin};

use plexus_auth::{Approve, Auth, Caller, Device, Permit, Target};
use plexus_ledger::{Account, Ledger};
use plexus_protocol::{Answer, Epoch, Receipt, RequestId, RuntimeId, RuntimeSpec, Timestamp};
use plexus_sessions::{Directory, SessionError, Worktrees};

/// `openapi.json` of a gateway of this version.
pub fn openapi(version: &str) -> serde_json::Value {
    openapi::description(version, routes::table())
}

/// `asyncapi.json` of a gateway of this version.
pub fn asyncapi(version: &str) -> serde_json::Value {
    asyncapi::description(version)
}

/// The settings that a client adds to a preset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardedWish {
    /// The runtime's name; the preset's if absent.
    pub id: Option<RuntimeId>,
    /// The folder to run in.
    pub cwd: Option<PathBuf>,
    /// Environment variables added to the preset's.
    pub env: BTreeMap<String, String>,
}

/// Makes the spec of a runtime from a preset's name and the client's settings; passed in, since the router may not import the
/// presets. The error is a text for people, with the fix.
pub type Presets = Arc<dyn Fn(&str, &ForwardedWish) -> Result<RuntimeSpec, String> + Send + Sync>;

/// The state that every handler gets. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// Sessions and runtimes.
    pub directory: Directory,
    /// The fanout of events to subscribers.
    pub fans: fanout::Fans,
    /// Devices.
    pub auth: Auth,
    /// Presets.
    pub presets: Presets,
    /// The agents that presets are for.
    pub agents: agents::FindAgents,
    /// The sessions that were opened with an idempotency key.
    pub opened: new_session::OpenedSessions,
    /// The git worktrees that were made for sessions.
    pub worktrees: Worktrees,
    /// The log's epoch.
    pub epoch: Epoch,
    /// The host names and origins of the gateway.
    pub hosts: Arc<Hosts>,
    /// The gateway's address on this machine.
    pub url: String,
    /// How other machines reach the gateway, and the private CA.
    pub public_addresses: Arc<PublicAddresses>,
    /// The listener for other machines, which can be added while the gateway runs.
    pub listeners: listeners::Listeners,
    /// When the gateway started.
    pub started_at: Timestamp,
    /// The gateway's version.
    pub version: &'static str,
    /// Becomes true when the gateway stops; long polls then answer at once.
    pub stop: watch::Receiver<bool>,
    /// The guard's limits.
    pub limits: GateLimits,
    /// The accounts of the memory that peers make the gateway hold.
    pub ledger: Ledger,
    /// The ACP clients of each session.
    pub acp_sessions: acp::AcpSessionRegistry,
    /// Notifications.
    pub notifier: notify::Notifier,
    /// Who looks at which session.
    pub presence: presence::Presence,
    /// The connections of ACP over HTTP, which outlive a client's single requests.
    pub connections: acp::Connections,
    /// The checks behind `GET /v1/doctor`.
    pub doctor: doctor::Doctor,
    /// What `plexus link` does, for the page.
    pub linking: linking::Linking,
    /// The folder with the sockets of shared terminals.
    pub terminals: PathBuf,
    /// The proof by which the owner's programs recognise this gateway.
    pub proof: plexus_auth::Proof,
}

impl AppState {
    /// The origin of links to the gateway.
    pub fn base(&self) -> String {
        self.public_addresses.url().unwrap_or_else(|| self.url.clone()).trim_end_matches('/').to_owned()
    }

    /// Answers a request, as [`Directory::answer`] does. A refusal because of the risk names the devices that may answer.
    ///
    /// # Errors
    /// As [`Directory::answer`].
    pub async fn answer(
        &self,
        permit: &Permit<Approve>,
        id: &RequestId,
        answer: Answer,
        key: Option<String>,
    ) -> Result<Receipt, SessionError> {
        match self.directory.answer(permit, id, answer, key).await {
            Err(refusal) => Err(self.with_approvers(permit.device(), id, refusal).await),
            receipt => receipt,
        }
    }

    /// Adds the names of the devices that may answer to a refusal, as far as this device may know them.
    async fn with_approvers(&self, device: &Device, id: &RequestId, mut refusal: SessionError) -> SessionError {
        if let SessionError::RiskTooHigh(too) = &mut refusal
            && let Ok(Some((session, runtime))) = self.directory.request_target(id).await
        {
            too.devices = self.auth.answering(device, Target::Session(&session, &runtime), too.risk);
        }
        refusal
    }

    /// An account for a connection or a request of the caller's device.
    pub fn account(&self, caller: &Caller) -> Account {
        self.ledger.connection(caller.device().device_id.as_str())
    }
}

/// The gateway's main service, for [`serve`].
pub fn app(state: AppState) -> axum::Router {
    let gate = Gate {
        auth: state.auth.clone(),
        hosts: Arc::clone(&state.hosts),
        public_addresses: Arc::clone(&state.public_addresses),
        same_user: None,
        limits: state.limits,
        ledger: state.ledger.clone(),
    };
    routes::build(&gate, routes::table(), &state)
}

/// A runtime's own port, which serves one or both protocols of a Gemini UI.
#[derive(Clone, Debug)]
pub struct Port {
    /// The runtime.
    pub runtime: RuntimeId,
    /// The bound address, on loopback.
    pub address: SocketAddr,
    /// Whether the port serves the UI mirror.
    pub ui: bool,
    /// Whether the port serves the remote control.
    pub remote: bool,
    /// Whether processes of this user may follow the mirror without a token.
    pub same_user: bool,
}

/// The state that the handlers of a runtime's own port get.
#[derive(Clone)]
pub struct PortState {
    /// The state of all handlers.
    app: AppState,
    /// The runtime of the port.
    runtime: RuntimeId,
}

/// The service of a runtime's own port, for [`serve`]. The port has its own host names and origins: requests with those of
/// another port, and pages served by another port, are refused.
pub fn port_app(state: AppState, port: &Port) -> axum::Router {
    let gate = Gate {
        auth: state.auth.clone(),
        hosts: Arc::new(Hosts::new(&[port.address], &[])),
        public_addresses: Arc::clone(&state.public_addresses),
        same_user: port.same_user.then(|| port.runtime.clone()),
        limits: state.limits,
        ledger: state.ledger.clone(),
    };
    let state = PortState { app: state, runtime: port.runtime.clone() };
    routes::build(&gate, routes::port_table(port.ui, port.remote), &state)
}
