//! Plexus: one gateway between every coding agent that runs on your machines and every screen you own.
//!
//! [`Gateway`] connects the crates: the store, the log and the sessions on it, the runtimes on the agents' side, the router on the
//! clients' side. [`routes`] lists the features. See ARCHITECTURE.md for the map.
#![forbid(unsafe_code)]

pub mod config;
mod gateway;
#[cfg(test)]
mod routes_tests;
pub mod shared_daemon;
mod surface_tools;

pub use gateway::{
    GATEWAY_FILE, Gateway, HOLDERS, Running, RuntimePorts, STOP_DEADLINE, StartError, TLS_FILES, TLS_FOLDER, running,
};
pub use plexus_access as access;
pub use plexus_agents as agents;
pub use plexus_auth as auth;
pub use plexus_clock as clock;
pub use plexus_frontends as frontends;
pub use plexus_ledger as ledger;
pub use plexus_metrics as metrics;
pub use plexus_notify as notify;
pub use plexus_operation as operation;
pub use plexus_router as router;
pub use plexus_runtimes as runtimes;
pub use plexus_sessions as sessions;
pub use plexus_views as views;
pub use plexus_web as web;

use crate::access::listeners::Listeners;
use crate::agents::linking::LinkingState;
use crate::agents::new_session::NewSessionsState;
use crate::agents::start::AgentsState;
use crate::agents::worktrees::WorktreesState;
use crate::frontends::acp::AcpState;
use crate::frontends::agui::AgUiState;
use crate::notify::NotifyState;
use crate::operation::doctor::DoctorState;
use crate::operation::health::HealthState;
use crate::router::describe::Descriptions;
use crate::router::routes::feature;
use crate::router::{Core, Route};
use crate::views::terminals::TerminalsState;

/// The state of the features, each with a handle to the kernel. Cheap to clone.
#[derive(Clone)]
pub struct Features {
    /// The kernel alone, for features that need nothing else.
    pub core: Core,
    /// Agents that can be started.
    pub agents: AgentsState,
    /// Sessions that are opened over HTTP.
    pub new_sessions: NewSessionsState,
    /// Git worktrees of sessions.
    pub worktrees: WorktreesState,
    /// Shared terminals.
    pub terminals: TerminalsState,
    /// Listeners for other machines.
    pub listeners: Listeners,
    /// The checks of `plexus doctor`.
    pub doctor: DoctorState,
    /// Settings of agents with terminals of their own.
    pub linking: LinkingState,
    /// Health checks and metrics.
    pub health: HealthState,
    /// The published descriptions.
    pub descriptions: Descriptions,
    /// Notifications.
    pub notify: NotifyState,
    /// ACP clients.
    pub acp: AcpState,
    /// AG-UI clients.
    pub agui: AgUiState,
}

/// Returns the features: the routes of each, and the state that its handlers get. There is no other list of them.
pub fn routes() -> Vec<Route<Features>> {
    fn core(features: &Features) -> &Core {
        &features.core
    }
    let all = [
        feature(access::devices::routes(), core),
        feature(router::http::routes(), core),
        feature(operation::admin::routes(), core),
        feature(agents::agent_tools::routes(), core),
        feature(agents::resumable::routes(), core),
        feature(agents::folders::routes(), core),
        feature(router::surfaces::routes(), core),
        feature(views::changes::routes(), core),
        feature(views::usage::routes(), core),
        feature(views::export::routes(), core),
        feature(access::ca::routes(), core),
        feature(web::routes(), core),
        feature(frontends::mcp::routes(), core),
        feature(agents::start::routes(), |features| &features.agents),
        feature(agents::new_session::routes(), |features| &features.new_sessions),
        feature(agents::worktrees::routes(), |features| &features.worktrees),
        feature(views::terminals::routes(), |features| &features.terminals),
        feature(access::listeners::routes(), |features| &features.listeners),
        feature(operation::doctor::routes(), |features| &features.doctor),
        feature(agents::linking::routes(), |features| &features.linking),
        feature(operation::health::routes(), |features| &features.health),
        feature(router::describe::routes(), |features| &features.descriptions),
        feature(notify::routes(), |features| &features.notify),
        feature(frontends::acp::routes(), |features| &features.acp),
        feature(frontends::agui::routes(), |features| &features.agui),
    ];
    all.into_iter().flatten().collect()
}

/// Makes `openapi.json` of a gateway of this version.
pub fn openapi(version: &str) -> serde_json::Value {
    router::openapi(version, &routes())
}

/// Makes the gateway's main service, for [`router::serve`].
pub fn app(features: Features) -> axum::Router {
    let gate = features.core.gate();
    router::routes::build(&gate, routes(), features)
}
