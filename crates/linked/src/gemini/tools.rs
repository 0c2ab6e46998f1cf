//! The tools of Gemini CLI. Pure.

use crate::terminals::drafts::{AgentTools, tools};

/// The tool that runs commands.
pub(super) const SHELL: &str = "run_shell_command";

pub(super) const TOOLS: AgentTools = AgentTools {
    tools: &[
        tools(&[SHELL], "execute", Some("command")),
        tools(&["read_file", "read_many_files"], "read", None),
        tools(&["grep_search", "search_file_content", "glob"], "search", Some("pattern")),
        tools(&["list_directory"], "search", None),
        tools(&["write_file", "replace"], "edit", None),
        tools(&["web_fetch"], "fetch", Some("prompt")),
        tools(&["google_web_search"], "fetch", Some("query")),
    ],
    titles: &["file_path", "dir_path", "description"],
    trims_titles: false,
    file: "file_path",
    edit: ["replace", "old_string", "new_string"],
    write: ["write_file", "content"],
};
