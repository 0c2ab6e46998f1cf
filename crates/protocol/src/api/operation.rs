//! Health of the gateway.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::KnownItems;

/// The result of the readiness check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ready {
    /// Always true: the log accepts writes.
    pub ready: bool,
}

/// The severity of a check's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The subject works.
    Ok,
    /// The subject works, but should be improved.
    Warn,
    /// The subject does not work.
    Fail,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// A check and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// The subject of the check.
    pub name: String,
    /// The severity of the result.
    pub state: Verdict,
    /// The result in words.
    pub detail: String,
    /// The fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// The checks and their results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Checks {
    #[doc = concat!("The checks, in the order of display.")]
    #[schema(value_type = Vec<Check>)]
    pub checks: KnownItems<Check>,
}
