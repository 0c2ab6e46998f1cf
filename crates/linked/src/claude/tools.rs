//! The tools of Claude Code, and the texts in its messages. Pure.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::terminals::drafts::{AgentTools, tools};
use plexus_dialects::jsonrpc::{object, string};

pub(super) const TOOLS: AgentTools = AgentTools {
    tools: &[
        tools(&["Bash"], "execute", Some("command")),
        tools(&["BashOutput", "KillShell"], "execute", None),
        tools(&["Read", "NotebookRead"], "read", None),
        tools(&["Grep", "Glob"], "search", Some("pattern")),
        tools(&["LS"], "search", None),
        tools(&["Edit", "MultiEdit", "Write", "NotebookEdit"], "edit", None),
        tools(&["WebFetch"], "fetch", Some("url")),
        tools(&["WebSearch"], "fetch", Some("query")),
        tools(&["Task", "Agent"], "think", Some("description")),
    ],
    titles: &["file_path", "notebook_path", "path"],
    trims_titles: false,
    file: "file_path",
    edit: ["Edit", "old_string", "new_string"],
    write: ["Write", "content"],
};

/// Returns the text in which the agent describes the purpose of a tool call.
pub(super) fn description(input: &RawValue) -> Option<String> {
    TOOLS.input(input).get("description").filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// Returns the texts of a tool's result; other blocks are named by their type.
pub(super) fn result_texts(content: &RawValue) -> Vec<String> {
    #[derive(Deserialize)]
    struct Block {
        #[serde(rename = "type")]
        kind: String,
        text: Option<String>,
    }
    if let Some(text) = string(content) {
        return Some(text.into_owned()).filter(|text| !text.is_empty()).into_iter().collect();
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    let blocks = blocks.into_iter().filter_map(object::<Block>);
    blocks.map(|block| block.text.unwrap_or_else(|| format!("[{}]", block.kind))).collect()
}

/// Returns a command of the terminal, or its output, without Claude Code's own tags; `None` if nothing is left.
pub(super) fn command_text(text: &str) -> Option<String> {
    let inner = |tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once(&format!("</{tag}>"))?.0.trim()).filter(|inner| !inner.is_empty())
    };
    let parts = ["command-name", "command-args", "bash-input", "bash-stdout", "bash-stderr", "local-command-stdout"];
    let parts: Vec<&str> = parts.iter().filter_map(|tag| inner(tag)).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}
