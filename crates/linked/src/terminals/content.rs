//! The content of messages in the form of Anthropic's API, in which Claude Code and Qwen Code write. Pure.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use plexus_dialects::jsonrpc::object;

/// A block of a message.
#[derive(Default, Deserialize)]
pub(crate) struct ContentBlock<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'a, str>,
    pub(crate) text: Option<String>,
    pub(crate) thinking: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) input: Option<&'a RawValue>,
    pub(crate) tool_use_id: Option<String>,
    pub(crate) content: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) is_error: bool,
}

/// Reads a list of blocks; `None` if it is none.
pub(crate) fn blocks(content: &RawValue) -> Option<Vec<ContentBlock<'_>>> {
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    blocks.into_iter().map(object::<ContentBlock<'_>>).collect()
}
