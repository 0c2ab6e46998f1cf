//! An agent's MCP servers, skills and stored conversations as text. Pure; all text is sanitized.

use serde_json::{Value, json};

use super::sanitize;
use super::view_model::field;

/// Longest description or error, in columns, before it is wrapped.
const LONG: usize = 600;
/// Indentation of continued lines.
const INDENT: &str = "    ";

/// `mcp.list` as text, one paragraph a server.
pub(crate) fn servers(value: &Value) -> String {
    let one = |server: &Value| {
        let state = field(&server["state"]);
        let mark = match state.as_str() {
            "ready" => "✔",
            "error" => "✘",
            "disabled" => "–",
            _ => "…",
        };
        let tools = server["tools"].as_u64().map(|n| format!(" · {n} tools")).unwrap_or_default();
        let error = field(&server["last_error"]);
        let error = if error.is_empty() { String::new() } else { format!("\n{INDENT}{error}") };
        format!("{mark} {}: {state} · {}{tools}{error}", field(&server["id"]), field(&server["transport"]))
    };
    all(&value["servers"], one, value, "this agent has no MCP servers")
}

/// `skills.list` as text, one paragraph a skill, wrapped at `width` columns.
pub(crate) fn skills(value: &Value, width: usize) -> String {
    let one = |skill: &Value| {
        let scope = if skill["scope"] == "repo" { "this project" } else { "yours" };
        let text = sanitize::line(skill["description"].as_str().unwrap_or_default(), LONG);
        format!("{} · {scope}\n{}", field(&skill["name"]), wrap_indented(&text, width))
    };
    let errors = value["errors"].as_array().into_iter().flatten();
    let errors: Vec<String> =
        errors.map(|error| format!("✘ {}: {}", field(&error["path"]), field(&error["message"]))).collect();
    let skills = all(&value["skills"], one, value, "this agent has no skills");
    if errors.is_empty() { skills } else { format!("{skills}\n\n{}", errors.join("\n")) }
}

fn all(list: &Value, one: impl Fn(&Value) -> String, value: &Value, none: &str) -> String {
    let mut all: Vec<String> = list.as_array().into_iter().flatten().map(one).collect();
    if value["truncated"] == true {
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
    /// Its title, and its identifier.
    pub(crate) name: String,
    /// The time when it was last used, or that it is open; and its folder.
    pub(crate) what: String,
    /// The open session of the conversation, if any.
    pub(crate) session: Option<String>,
    /// The parameters to open it.
    pub(crate) open: Value,
}

/// The resumable conversations of a runtime, in its own order.
pub(crate) fn past_conversations(runtime: &str, value: &Value) -> Vec<PastConversation> {
    let one = |stored: &Value| {
        let native = stored["native_id"].as_str()?;
        let title = Some(field(&stored["title"])).filter(|title| !title.is_empty());
        let open = stored["session_id"].as_str().map(str::to_owned);
        let when = stored["updated_at"].as_str().and_then(|at| at.get(..10)).unwrap_or_default();
        let text = [if open.is_some() { "open here" } else { when }, &field(&stored["cwd"])].map(str::to_owned);
        let text: Vec<String> = text.into_iter().filter(|word| !word.is_empty()).collect();
        let mut params = json!({ "runtime_id": runtime, "native_id": native });
        if stored["cwd"].is_string() {
            params["cwd"] = stored["cwd"].clone();
        }
        Some(PastConversation {
            name: format!("{} · {}", title.as_deref().unwrap_or("untitled"), sanitize::line(native, 60)),
            what: text.join(" · "),
            session: open,
            open: params,
        })
    };
    value["resumable"].as_array().into_iter().flatten().filter_map(one).collect()
}
