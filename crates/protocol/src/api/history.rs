//! Pages of events, and where reading resumes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The verdict on a cursor: whether reading can resume there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Resume)]
pub enum ResumeVerdict {
    /// Everything after the cursor follows.
    Ok,
    /// Retention has removed some of what came after the cursor: a snapshot comes first.
    Gap,
    /// The cursor is of another epoch of the log: a snapshot comes first.
    Reset,
    /// The cursor is past the log's end: a snapshot comes first.
    Ahead,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

impl ResumeVerdict {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Gap => "gap",
            Self::Reset => "reset",
            Self::Ahead => "ahead",
            Self::Unknown => "unknown",
        }
    }
}
