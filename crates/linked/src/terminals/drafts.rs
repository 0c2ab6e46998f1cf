//! Event drafts for the messages and tool calls of agents. Pure.

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use plexus_dialects::jsonrpc::{Fields, object, string};
use plexus_dialects::{EventDraft, ToolCallRef};
use plexus_protocol::Kind;

/// Maximum length of the title of a tool call or a session, in characters.
const TITLE_MAX: usize = 200;

fn draft(kind: Kind, body: &Value, native: Option<&Bytes>) -> EventDraft {
    EventDraft { native: native.cloned(), ..EventDraft::new(kind, body) }
}

/// Makes an event for a piece of a message; pieces with the same `message` are one.
pub(crate) fn chunk(kind: Kind, text: &str, message: Option<&str>, native: Option<&Bytes>) -> EventDraft {
    let mut body = json!({ "sessionUpdate": kind.as_str(), "content": { "type": "text", "text": text } });
    if let Some(id) = message {
        body["messageId"] = id.into();
    }
    draft(kind, &body, native)
}

/// Makes an event for the end of a tool call, with its output as blocks of text.
pub(crate) fn tool_result(
    id: &str,
    failed: bool,
    texts: impl IntoIterator<Item = String>,
    native: Option<&Bytes>,
) -> EventDraft {
    let status = if failed { "failed" } else { "completed" };
    let mut body = json!({ "sessionUpdate": Kind::ToolCallUpdate.as_str(), "toolCallId": id, "status": status });
    let block = |text: String| json!({ "type": "content", "content": { "type": "text", "text": text } });
    let blocks: Vec<Value> = texts.into_iter().map(block).collect();
    if !blocks.is_empty() {
        body["content"] = blocks.into();
    }
    EventDraft { tool: Some(ToolCallRef::new(id, true)), ..draft(Kind::ToolCallUpdate, &body, native) }
}

/// Returns the first line that is not blank.
pub(crate) fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// Returns a title of bounded length.
pub(crate) fn shortened(text: &str) -> String {
    cut(text, TITLE_MAX)
}

/// Returns the beginning of a text, of at most this many characters.
pub(crate) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The built-in tools of an agent, and the members of their inputs.
pub(crate) struct AgentTools {
    pub(crate) tools: &'static [ToolGroup],
    /// The members that title the call of any other tool: the first existing one is used.
    pub(crate) titles: &'static [&'static str],
    /// `true` if white space around a title is removed.
    pub(crate) trims_titles: bool,
    /// The member that names the file of a change.
    pub(crate) file: &'static str,
    /// The tool that replaces text in a file, with the members of the old and the new text.
    pub(crate) edit: [&'static str; 3],
    /// The tool that writes a file, with the member of its text.
    pub(crate) write: [&'static str; 2],
}

/// Tools of the same kind.
pub(crate) struct ToolGroup {
    pub(crate) names: &'static [&'static str],
    /// ACP's kind of a tool.
    pub(crate) kind: &'static str,
    /// The member that titles a call; `None` for the members of other tools. A command is a title without the tool's name.
    pub(crate) title: Option<&'static str>,
}

/// Makes a group of tools.
pub(crate) const fn tools(
    names: &'static [&'static str],
    kind: &'static str,
    title: Option<&'static str>,
) -> ToolGroup {
    ToolGroup { names, kind, title }
}

/// The member that has a command.
const COMMAND: &str = "command";

/// The members of a tool's input that an [`AgentTools`] names and that are text.
#[derive(Default)]
pub(crate) struct ToolInput(Vec<(&'static str, String)>);

impl ToolInput {
    pub(crate) fn get(&self, member: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == member).map(|(_, text)| text.as_str())
    }
}

impl AgentTools {
    /// Makes an event for the start of a tool call.
    pub(crate) fn call(&self, id: &str, name: &str, input: &RawValue, native: &Bytes) -> EventDraft {
        let mut body = json!({
            "sessionUpdate": Kind::ToolCall.as_str(),
            "toolCallId": id,
            "title": self.title(name, input),
            "kind": self.group(name).map_or("other", |group| group.kind),
            "status": "in_progress",
            "rawInput": input,
        });
        if let Some(diff) = self.diff(name, &self.input(input)) {
            body["content"] = json!([diff]);
        }
        EventDraft { tool: Some(ToolCallRef::new(id, false)), ..draft(Kind::ToolCall, &body, Some(native)) }
    }

    /// Returns the title of a tool call, on one line.
    pub(crate) fn title(&self, name: &str, input: &RawValue) -> String {
        let input = self.input(input);
        let member = self.group(name).and_then(|group| group.title);
        let text = match member {
            Some(member) => input.get(member),
            None => self.titles.iter().find_map(|member| input.get(member)),
        };
        let line = text.map(first_line).filter(|line| !line.is_empty());
        let line = line.map(|line| if self.trims_titles { line.trim() } else { line });
        shortened(&match line {
            Some(command) if member == Some(COMMAND) => command.to_owned(),
            Some(line) => format!("{name} {line}"),
            None => name.to_owned(),
        })
    }

    /// Reads the members of an input; none if one of them has another type or is duplicate.
    pub(crate) fn input(&self, input: &RawValue) -> ToolInput {
        self.members(input).unwrap_or_default()
    }

    fn members(&self, input: &RawValue) -> Option<ToolInput> {
        let mut members: Vec<(&'static str, Option<String>)> = Vec::new();
        for (name, value) in object::<Fields<'_>>(input)?.0 {
            let Some(name) = self.member_names().find(|known| *known == name) else { continue };
            if members.iter().any(|(known, _)| *known == name) {
                return None;
            }
            let text = if value.get() == "null" { None } else { Some(string(value)?.into_owned()) };
            members.push((name, text));
        }
        Some(ToolInput(members.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()))
    }

    fn member_names(&self) -> impl Iterator<Item = &'static str> {
        let titles = self.tools.iter().filter_map(|group| group.title).chain(self.titles.iter().copied());
        let changes = [self.file, self.edit[1], self.edit[2], self.write[1]];
        titles.chain(changes)
    }

    fn group(&self, name: &str) -> Option<&ToolGroup> {
        self.tools.iter().find(|group| group.names.contains(&name))
    }

    /// Returns the change that a tool makes to a file.
    fn diff(&self, name: &str, input: &ToolInput) -> Option<Value> {
        let path = input.get(self.file)?;
        let [edit, before, after] = self.edit;
        let [write, text] = self.write;
        if name == edit {
            let (before, after) = (input.get(before)?, input.get(after)?);
            Some(json!({ "type": "diff", "path": path, "oldText": before, "newText": after }))
        } else if name == write {
            Some(json!({ "type": "diff", "path": path, "newText": input.get(text)? }))
        } else {
            None
        }
    }
}
