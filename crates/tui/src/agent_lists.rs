//! An agent's MCP servers, skills and stored conversations as text. Pure; all text is sanitized.

use plexus_protocol::NativeId;
use plexus_protocol::api::agent_tools::{AgentMcpServer, McpServers, McpState, Skill, SkillScope, Skills};
use plexus_protocol::api::sessions::ResumableConversation;

use super::sanitize;
use super::view_model::{line, optional_line};

/// Maximum length of a description or error before it is wrapped, in columns.
const LONG: usize = 600;
/// Maximum length of a conversation's identifier, in columns.
const NATIVE_ID_MAX: usize = 60;
/// Length of the date in a timestamp, in characters.
const DATE: usize = 10;
/// Indentation of continued lines.
const INDENT: &str = "    ";

/// The MCP servers of an agent as text, one paragraph a server.
pub(crate) fn servers(list: &McpServers) -> String {
    let paragraph = |server: &AgentMcpServer| {
        let mark = match server.state {
            McpState::Ready => "✔",
            McpState::Error => "✘",
            McpState::Disabled => "–",
            McpState::Connecting => "…",
        };
        let tools = server.tools.map(|n| format!(" · {n} tools")).unwrap_or_default();
        let error = optional_line(server.last_error.as_deref());
        let error = if error.is_empty() { String::new() } else { format!("\n{INDENT}{error}") };
        let (state, transport) = (server.state.as_str(), server.transport.as_str());
        format!("{mark} {}: {state} · {transport}{tools}{error}", line(&server.id))
    };
    join(list.servers.iter().map(paragraph), list.truncated, "this agent has no MCP servers")
}

/// The skills of an agent as text, one paragraph a skill, wrapped at `width` columns.
pub(crate) fn skills(list: &Skills, width: usize) -> String {
    let paragraph = |skill: &Skill| {
        let scope = match skill.scope {
            SkillScope::Repo => "this project",
            SkillScope::User => "yours",
        };
        let text = sanitize::line(&skill.description, LONG);
        format!("{} · {scope}\n{}", line(&skill.name), wrap_indented(&text, width))
    };
    let errors: Vec<String> =
        list.errors.iter().map(|error| format!("✘ {}: {}", line(&error.path), line(&error.message))).collect();
    let skills = join(list.skills.iter().map(paragraph), list.truncated, "this agent has no skills");
    if errors.is_empty() { skills } else { format!("{skills}\n\n{}", errors.join("\n")) }
}

fn join(paragraphs: impl Iterator<Item = String>, truncated: bool, none: &str) -> String {
    let mut all: Vec<String> = paragraphs.collect();
    if truncated {
        all.push("… and more".into());
    }
    if all.is_empty() { none.to_owned() } else { all.join("\n\n") }
}

/// Wraps text between words into indented lines.
pub(crate) fn wrap_indented(text: &str, width: usize) -> String {
    let space = width.saturating_sub(INDENT.len()).max(20);
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > space {
            lines.push(format!("{INDENT}{}", std::mem::take(&mut line)));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(format!("{INDENT}{line}"));
    }
    lines.join("\n")
}

/// A conversation stored by a runtime.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PastConversation {
    /// The title and the identifier.
    pub(crate) name: String,
    /// The time of the last use, or a note that the conversation is open; then the folder.
    pub(crate) details: String,
    /// The open session of the conversation, if any.
    pub(crate) session: Option<String>,
    /// The runtime's identifier.
    pub(crate) native_id: NativeId,
    /// The folder of the conversation.
    pub(crate) cwd: Option<String>,
}

impl PastConversation {
    pub(crate) fn new(stored: &ResumableConversation) -> Self {
        let title = Some(optional_line(stored.title.as_deref())).filter(|title| !title.is_empty());
        let when = match (&stored.session_id, stored.updated_at) {
            (Some(_), _) => "open here".to_owned(),
            (None, Some(at)) => at.to_string().get(..DATE).unwrap_or_default().to_owned(),
            (None, None) => String::new(),
        };
        let text = [when, optional_line(stored.cwd.as_deref())];
        let text: Vec<String> = text.into_iter().filter(|text| !text.is_empty()).collect();
        let native_id = sanitize::line(stored.native_id.as_str(), NATIVE_ID_MAX);
        Self {
            name: format!("{} · {native_id}", title.as_deref().unwrap_or("untitled")),
            details: text.join(" · "),
            session: stored.session_id.as_ref().map(ToString::to_string),
            native_id: stored.native_id.clone(),
            cwd: stored.cwd.clone(),
        }
    }
}
