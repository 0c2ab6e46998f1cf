//! Requests and responses of the gateway, over HTTP and over the native WebSocket: each has one type here, which both sides use.
//!
//! Clients ignore unknown members, and accept that optional ones are absent. In a list they skip the elements that only a newer gateway
//! has, and can report their number ([`KnownItems`]); an unknown value of an enumeration is its `Unknown`, if it has one. The gateway
//! refuses unknown members of a request if the type does.
//!
//! The schemas of the published descriptions are derived from these types, with their `///` comments. A member that has no text in the
//! descriptions has its documentation as `#[doc = concat!(..)]`, which the schemas do not repeat.

pub mod agent_tools;
pub mod changes;
pub mod devices;
pub mod folders;
pub mod history;
pub mod linking;
pub mod listeners;
pub mod operation;
pub mod pairing;
pub mod problem;
pub mod rpc;
pub mod runtimes;
pub mod sessions;
pub mod snapshot;
pub mod stream;
pub mod surfaces;
pub mod usage;
pub mod worktrees;

pub use crate::known_items::KnownItems;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Reads an integer as JSON Schema defines it: `43.0` is one.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(from)? else { return Ok(None) };
    if let Some(whole) = number.as_u64() {
        return Ok(Some(whole));
    }
    let whole = |float: &f64| float.fract() == 0.0 && *float >= 0.0;
    let text = number.as_f64().filter(whole).map(|float| format!("{float:.0}"));
    match text.and_then(|text| text.parse().ok()) {
        Some(whole) => Ok(Some(whole)),
        None => Err(D::Error::custom(format_args!("{number} is not a whole number of 0 or more"))),
    }
}
