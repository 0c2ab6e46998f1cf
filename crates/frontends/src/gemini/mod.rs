//! The protocols of Gemini CLI, each runtime on a port of its own: the UI `mirror` and the `remote` control.

mod mirror;
mod remote;

use std::net::SocketAddr;

use plexus_protocol::RuntimeId;
use plexus_router::Core;
use plexus_router::guard::{Policy, Route};
use plexus_router::routes::{GET, NOTHING, POST, PROMPT_BODY, PROMPTS, WATCH, build, route};

/// A runtime's own port, which serves one or both protocols of a Gemini UI.
#[derive(Clone, Debug)]
pub struct Port {
    /// The runtime.
    pub runtime: RuntimeId,
    /// The bound address, on loopback.
    pub address: SocketAddr,
    /// `true` if the port serves the UI mirror.
    pub ui: bool,
    /// `true` if the port serves the remote control.
    pub remote: bool,
    /// `true` if processes of this user may follow the mirror without a token.
    pub same_user: bool,
}

/// The state of a runtime's own port.
#[derive(Clone)]
pub struct PortState {
    core: Core,
    runtime: RuntimeId,
}

/// Returns the routes of a runtime's own port: of the mirror, the remote control, or both.
#[rustfmt::skip] // a route a line
pub fn routes(ui: bool, remote: bool) -> Vec<Route<PortState>> {
    let mut all = Vec::new();
    if ui {
        all.push(route(GET, "/", Policy::WatchOrSameUser, NOTHING, "The Gemini UI mirror", mirror::serve));
    }
    if remote {
        all.push(route(POST, "/message", PROMPTS, PROMPT_BODY, "Start a run in the runtime's current session, or queue it", remote::message));
        all.push(route(GET, "/history", WATCH, NOTHING, "The messages of the runtime's current session", remote::history));
    }
    all
}

/// Returns the service of a runtime's own port, for [`serve`](plexus_router::serve). The port has its own guard.
pub fn app(core: Core, port: &Port) -> axum::Router {
    let gate = core.gate_at(port.address, port.same_user.then(|| port.runtime.clone()));
    build(&gate, routes(port.ui, port.remote), PortState { core, runtime: port.runtime.clone() })
}
