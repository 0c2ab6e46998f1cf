//! The questions of Qwen Code, and its tools. Pure.

use bytes::Bytes;

use super::output::ToolUse;
use crate::terminals::drafts::{AgentTools, tools};
use plexus_dialects::{AgentRequest, RequestKey, RequestSubject, jsonrpc, subject};
use plexus_protocol::{Choice, Decision, Offer, RequestType};

/// The option that allows a tool call.
pub(super) const ALLOW: &str = "allow";
/// The option that denies the tool call, and so ends the turn.
pub(super) const DENY: &str = "deny";

/// The tool that asks the user for answers.
const QUESTION: &str = "ask_user_question";
/// The tool that asks whether to carry out a plan.
const PLAN: &str = "exit_plan_mode";

pub(super) const TOOLS: AgentTools = AgentTools {
    tools: &[
        tools(&["run_shell_command"], "execute", Some("command")),
        tools(&["read_file", "read_many_files"], "read", None),
        tools(&["glob", "grep_search", "list_directory"], "search", None),
        tools(&["edit", "write_file", "notebook_edit"], "edit", None),
        tools(&["web_fetch", "web_search"], "fetch", None),
        tools(&["agent", "task"], "think", Some("description")),
        tools(&["todo_write"], "think", None),
    ],
    titles: &["file_path", "pattern", "url", "query", "path"],
    trims_titles: true,
    file: "file_path",
    edit: ["edit", "old_string", "new_string"],
    write: ["write_file", "content"],
};

/// Makes the question to the user.
pub(super) fn request(key: RequestKey, tool: &ToolUse<'_>, line: Bytes) -> AgentRequest {
    let offer = |id: &str, label: &str, kind| Offer { id: id.into(), label: label.into(), kind, for_session: false };
    // `allow_reason` stays false: the terminal accepts a yes or a no from outside, but no text.
    let mut ask = AgentRequest {
        message: TOOLS.input(tool.input).get("description").filter(|text| !text.trim().is_empty()).map(str::to_owned),
        subject: subject::tool(&tool.name, tool.input),
        tool_call_id: Some(tool.id.clone()),
        ..AgentRequest::new(
            key,
            RequestType::Permission,
            TOOLS.title(&tool.name, tool.input),
            jsonrpc::owned(tool.input),
            line,
        )
    };
    if tool.name == QUESTION || matches!(ask.subject, RequestSubject::Questions { .. }) {
        // A yes from outside would answer it without a choice.
        "Qwen Code asks".clone_into(&mut ask.title);
        (ask.kind, ask.observe_only) = (RequestType::Prompt, true);
        ask.message = Some("It can only be answered at the terminal.".into());
        return ask;
    }
    let (yes, no) = if tool.name == PLAN {
        ("Yes, carry out the plan", "No, keep planning")
    } else {
        ("Yes, allow once", "No, and stop")
    };
    ask.options = vec![offer(ALLOW, yes, Choice::AllowOnce), offer(DENY, no, Choice::RejectOnce)];
    ask
}

/// Returns the verdict of a decision on a call; `None` if the terminal's own dialog decides.
pub(super) fn allows(decision: &Decision) -> Option<bool> {
    match decision {
        Decision::Option { id, .. } if id == ALLOW => Some(true),
        Decision::Option { id, .. } if id == DENY => Some(false),
        _ => None,
    }
}
