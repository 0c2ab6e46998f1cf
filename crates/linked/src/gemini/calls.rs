//! The tool calls that hooks report. Pure.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use plexus_protocol::CallDigest;

/// A tool call that a hook reported.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct OpenCall {
    /// The id that is shown; Gemini CLI reports its own only at the end.
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) digest: Option<CallDigest>,
    #[serde(skip)]
    pub(super) input: Option<Box<RawValue>>,
}

pub(super) fn digest(tool: &str, input: &RawValue) -> Option<CallDigest> {
    Some(CallDigest::new(tool, &serde_json::from_str(input.get()).ok()?))
}
