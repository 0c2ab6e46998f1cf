//! The tools of Copilot. Pure.

use bytes::Bytes;

use super::events::ToolEnd;
use crate::terminals::drafts::{self, AgentTools, tools};
use plexus_dialects::EventDraft;

pub(super) const TOOLS: AgentTools = AgentTools {
    tools: &[
        tools(&["bash", "powershell"], "execute", Some("command")),
        tools(&["read_bash", "write_bash", "stop_bash"], "execute", None),
        tools(&["view"], "read", None),
        tools(&["grep", "glob"], "search", Some("pattern")),
        tools(&["edit", "create", "apply_patch"], "edit", None),
        tools(&["web_fetch"], "fetch", Some("url")),
        tools(&["web_search"], "fetch", Some("query")),
        tools(&["task"], "think", Some("description")),
    ],
    titles: &["path"],
    trims_titles: false,
    file: "path",
    edit: ["edit", "old_str", "new_str"],
    write: ["create", "file_text"],
};

pub(super) fn tool_end(end: ToolEnd, native: &Bytes) -> EventDraft {
    let text = end.result.and_then(|result| result.content);
    let text = text.or_else(|| end.error.and_then(|error| error.message));
    let text = text.filter(|text| !text.trim().is_empty());
    drafts::tool_result(&end.tool_call_id, !end.success, text, Some(native))
}
