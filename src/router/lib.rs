//! The clients' side of the gateway: the listener, the guard, the route table, and a module for each frontend.

pub mod admin;
pub mod agent_tools;
pub mod agents;
mod asyncapi;
pub mod changes;
mod client_link;
mod context;
pub mod cookies;
pub mod core;
pub mod describe;
pub mod described;
pub mod doctor;
pub mod error;
pub mod export;
pub mod fanout;
pub mod folders;
pub mod follow;
pub mod frames;
pub mod guard;
mod headers;
pub mod health;
pub mod history;
pub mod http;
pub mod jsonrpc;
pub mod linking;
pub mod listen;
mod listing;
pub mod new_session;
mod openapi;
mod own_frames;
mod peer;
pub mod presence;
pub mod public_address;
pub mod reply;
pub mod resumable;
pub mod routes;
mod rpc;
pub mod schemas;
pub mod socket_protocol;
pub mod sse;
pub mod stop;
mod streamed;
pub mod surfaces;
pub mod terminals;
mod ui;
pub mod usage;
pub mod wire;
pub mod worktrees;
pub mod ws;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

pub use self::core::Core;
pub use cookies::CSRF_HEADER;
pub use describe::{asyncapi, openapi};
pub use error::Problem;
pub use guard::{BodyRule, Call, Gate, GateLimits, Hosts, LongWork, Policy, Route};
pub use listen::tls::{Tls, TlsError, TlsLimits, certificate_end, serve_tls};
pub use listen::{ListenLimits, MAX_CONNECTIONS, bind, serve};
pub use public_address::{Authority, Network, Proxies, PublicAddresses, PublicReach, parse_origin};

use plexus_protocol::{RuntimeId, RuntimeSpec};

/// The settings that a client adds to a preset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PresetChanges {
    /// The runtime's name; the preset's if absent.
    pub id: Option<RuntimeId>,
    /// The folder to run in.
    pub cwd: Option<PathBuf>,
    /// Environment variables added to the preset's.
    pub env: BTreeMap<String, String>,
}

/// Makes the spec of a runtime from a preset's name and the client's settings; passed in, since the router may not import the
/// presets. The error is a text for people, with the fix.
pub type Presets = Arc<dyn Fn(&str, &PresetChanges) -> Result<RuntimeSpec, String> + Send + Sync>;
