//! The front door: our own listener, one guard, one route table, one file a surface.

pub mod acp;
mod admin;
mod agent_tools;
mod agui;
mod asyncapi;
mod client_link;
mod context;
mod cookies;
mod described;
mod devices;
pub mod doctor;
pub mod error;
mod export;
pub mod fanout;
mod follow;
pub mod frames;
pub mod guard;
mod headers;
mod history;
mod http;
mod jsonrpc;
pub mod listen;
mod listing;
mod mirror;
pub mod notify;
mod openapi;
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
mod talk;
mod ui;
mod web;
pub mod wire;
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
pub use listen::{ListenLimits, MAX_CONNECTIONS, serve};
pub use public_address::{Authority, Network, Proxies, PublicAddresses};

use crate::auth::{Approve, Auth, Caller, Device, Permit, Target};
use crate::ledger::{Account, Ledger};
use crate::sessions::{Directory, SessionError};
use plexus_protocol::{Answer, Epoch, Receipt, RequestId, RuntimeId, RuntimeSpec, Timestamp};

/// `openapi.json` of a gateway of this version.
pub fn openapi(version: &str) -> serde_json::Value {
    openapi::description(version, routes::table())
}

/// `asyncapi.json` of a gateway of this version.
pub fn asyncapi(version: &str) -> serde_json::Value {
    asyncapi::description(version)
}

/// What a client says beside a preset's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardedWish {
    /// The runtime's name; the preset's own if absent.
    pub id: Option<RuntimeId>,
    /// The folder to run in.
    pub cwd: Option<PathBuf>,
    /// Variables on top of the preset's.
    pub env: BTreeMap<String, String>,
}

/// Turns a preset's name and what the client said beside it into a runtime to start. The error is in words, with the fix;
/// the door below cannot look presets up itself.
pub type Presets = Arc<dyn Fn(&str, &ForwardedWish) -> Result<RuntimeSpec, String> + Send + Sync>;

/// What every handler gets. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// Sessions and runtimes.
    pub directory: Directory,
    /// Who follows the log.
    pub fans: fanout::Fans,
    /// Devices.
    pub auth: Auth,
    /// Presets.
    pub presets: Presets,
    /// The log's life.
    pub epoch: Epoch,
    /// The names under which the gateway may be called.
    pub hosts: Arc<Hosts>,
    /// Where the gateway serves, on this machine.
    pub url: String,
    /// The origin by which other devices reach the gateway (`https://plexus.example`), if they can: links begin with it.
    pub public_url: Option<String>,
    /// Proxies, and the private CA.
    pub outside: Arc<PublicAddresses>,
    /// When the gateway started.
    pub started_at: Timestamp,
    /// The gateway's version.
    pub version: &'static str,
    /// Turns true when the gateway stops: whoever waits for something answers with what there is.
    pub stop: watch::Receiver<bool>,
    /// The guard's limits.
    pub limits: GateLimits,
    /// What peers make the gateway hold.
    pub ledger: Ledger,
    /// Who is in which session by ACP.
    pub rooms: acp::AcpSessionRegistry,
    /// Who is told of what.
    pub notifier: notify::Notifier,
    /// Who is looking.
    pub presence: presence::Presence,
    /// ACP over HTTP: what lives between a client's requests.
    pub connections: acp::Connections,
    /// Who finds out what ails the gateway.
    pub doctor: doctor::Doctor,
    /// What proves to the owner's programs that this is their gateway.
    pub proof: crate::auth::Proof,
}

impl AppState {
    /// What a link to the gateway begins with.
    pub fn base(&self) -> &str {
        self.public_url.as_deref().unwrap_or(&self.url).trim_end_matches('/')
    }

    /// Answers a request, as [`Directory::answer`] does. Whoever may not because of its risk is told where it can be answered.
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

    /// The refusal with the names of the devices that may, as far as this one may know them.
    async fn with_approvers(&self, device: &Device, id: &RequestId, mut refusal: SessionError) -> SessionError {
        if let SessionError::RiskTooHigh(too) = &mut refusal
            && let Ok(Some((session, runtime))) = self.directory.request_target(id).await
        {
            too.devices = self.auth.answering(device, Target::Session(&session, &runtime), too.risk);
        }
        refusal
    }

    /// An account for what a connection of this device's, or a request, makes the gateway hold.
    pub fn account(&self, caller: &Caller) -> Account {
        self.ledger.connection(caller.device().device_id.as_str())
    }
}

/// The whole front door as a service, for [`serve`].
pub fn app(state: AppState) -> axum::Router {
    let gate = Gate {
        auth: state.auth.clone(),
        hosts: Arc::clone(&state.hosts),
        outside: Arc::clone(&state.outside),
        neighbours: None,
        limits: state.limits,
        ledger: state.ledger.clone(),
    };
    routes::build(&gate, routes::table(), &state)
}

/// A port of one runtime's own, which serves the two protocols of a Gemini UI, or one of them.
#[derive(Clone, Debug)]
pub struct Port {
    /// Whose it is.
    pub runtime: RuntimeId,
    /// Where it is bound; loopback.
    pub address: SocketAddr,
    /// Whether it serves the UI mirror.
    pub ui: bool,
    /// Whether it serves the remote control.
    pub remote: bool,
    /// Whether processes of this user may follow the mirror without a token.
    pub neighbours: bool,
}

/// What the handlers of a runtime's own port get.
#[derive(Clone)]
pub struct PortState {
    /// What all handlers get.
    app: AppState,
    /// Whose port it is.
    runtime: RuntimeId,
}

/// The service of a runtime's own port, for [`serve`]. The port has its own names: who calls it by another port's is
/// refused, and so is a page that another port served.
pub fn port_app(state: AppState, port: &Port) -> axum::Router {
    let gate = Gate {
        auth: state.auth.clone(),
        hosts: Arc::new(Hosts::new(&[port.address], &[])),
        outside: Arc::clone(&state.outside),
        neighbours: port.neighbours.then(|| port.runtime.clone()),
        limits: state.limits,
        ledger: state.ledger.clone(),
    };
    let state = PortState { app: state, runtime: port.runtime.clone() };
    routes::build(&gate, routes::port_table(port.ui, port.remote), &state)
}
