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
    /// All is well.
    Ok,
    /// It works, but should be improved.
    Warn,
    /// It does not work.
    Fail,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// A check and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// The severity of a check's result.
    pub state: Verdict,
    /// What was found.
    pub detail: String,
    /// The fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// The checks and their results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Checks {
    #[doc = concat!("The checks in the order in which they are shown.")]
    #[schema(value_type = Vec<Check>)]
    pub checks: KnownItems<Check>,
}
