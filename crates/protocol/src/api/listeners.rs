//! Addresses at which other machines reach the gateway.

use core::net::SocketAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The addresses at which other machines reach the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PublicAccess {
    /// The TLS listener, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsListenerView>,
    /// The origin at which a proxy on this machine serves the gateway, if one was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// The origin of links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
}

/// The TLS listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TlsListenerView {
    /// The address of the listener.
    pub address: String,
    /// The names of the listener's certificate.
    pub names: Vec<String>,
    /// The origins of the listener, of which the network may allow only some.
    pub origins: Vec<String>,
    /// `true` if the configuration defines the listener, so that it cannot be removed.
    pub configured: bool,
}

/// A TLS listener to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTlsListener {
    /// The address to listen on: `0.0.0.0:7443`, or one address of this machine. Port 0 selects a free one.
    #[schema(value_type = String, example = "0.0.0.0:7443", pattern = r"^[1-9]?[0-9](\.[1-9]?[0-9]){3}:[1-9][0-9]{0,3}$")]
    pub listen: SocketAddr,
}

/// A proxy on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProxy {
    /// The origin at which the proxy serves the gateway, without a path: `https://machine.tailnet.ts.net`.
    #[schema(max_length = 300, pattern = r"^https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,4})?$")]
    pub public_url: String,
}
