//! A tool call with all its updates merged.

use serde_json::{Map, Value};

/// Maximum size of the retained terminal output beside the call, in bytes; the oldest is dropped first.
const OUTPUT_MAX: usize = 4 << 20;

/// A tool call in ACP's form, with every update merged into it, member by member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCall {
    members: Map<String, Value>,
    not_reported: bool,
    output: String,
    output_cut: bool,
    bytes: usize,
}

/// One piece of the content of a tool call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ToolContent<'a> {
    /// Text.
    Text(&'a str),
    /// A content block that is not text.
    Block(&'a Value),
    /// A change of a file.
    Diff {
        /// The file.
        path: &'a str,
        /// The old content; `None` for a new file.
        old: Option<&'a str>,
        /// The new content.
        new: &'a str,
    },
    /// A terminal of the agent's, and its output if it is known.
    Terminal(Option<&'a str>),
    /// Content that ACP does not define.
    Other(&'a Value),
}

impl ToolCall {
    /// Merges an update: its members replace the known ones.
    pub fn update(&mut self, update: Map<String, Value>) {
        if update.contains_key("status") {
            self.not_reported = false;
        }
        if let Some(meta) = update.get("_meta") {
            // The gateway ended the call because its agent never did: that is not a failure.
            self.not_reported |= meta["plexus"]["synthesized"] == true;
            // Some agents send a terminal's output beside the call, piece by piece.
            if let Some(data) = meta["terminal_output"]["data"].as_str() {
                self.output.push_str(data);
                if self.output.len() > OUTPUT_MAX {
                    let cut = self.output.ceil_char_boundary(self.output.len() - OUTPUT_MAX);
                    self.output.drain(..cut);
                    self.output_cut = true;
                }
            }
        }
        for (name, value) in update {
            let around = name.len() + 4;
            self.bytes += around + json_size(&value);
            if let Some(old) = self.members.insert(name, value) {
                self.bytes = self.bytes.saturating_sub(around + json_size(&old));
            }
        }
    }

    /// Returns the members, as ACP names them.
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// Returns the members, to be sent on: terminal output beside the call is in `_meta` as one piece.
    pub fn into_members(mut self) -> Map<String, Value> {
        if !self.output.is_empty() {
            let meta = self.members.entry("_meta").or_insert(Value::Null);
            if !meta.is_object() {
                *meta = Value::Object(Map::new());
            }
            let terminal = &mut meta["terminal_output"];
            if !terminal.is_object() {
                *terminal = Value::Object(Map::new());
            }
            terminal["data"] = self.output.into();
        }
        self.members
    }

    fn text(&self, name: &str) -> &str {
        self.members.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the title that the agent gave.
    pub fn title(&self) -> &str {
        self.text("title")
    }

    /// Returns `read`, `edit`, `execute` …; empty if unknown.
    pub fn kind(&self) -> &str {
        self.text("kind")
    }

    /// Returns `pending`, `in_progress`, `completed`, `failed`, or `not_reported` if the agent never reported the end; empty if unknown.
    pub fn status(&self) -> &str {
        if self.not_reported { "not_reported" } else { self.text("status") }
    }

    /// Returns whether no further updates are expected.
    pub fn is_finished(&self) -> bool {
        matches!(self.status(), "completed" | "failed" | "not_reported")
    }

    /// Returns the reason why the gateway ended the call in its agent's place.
    pub fn reason(&self) -> Option<&str> {
        self.members.get("_meta")?["plexus"]["reason"].as_str().filter(|_| self.not_reported)
    }

    /// Returns the arguments.
    pub fn input(&self) -> Option<&Value> {
        self.members.get("rawInput").filter(|input| !input.is_null())
    }

    /// Returns the output of the tool in the agent's form.
    pub fn raw_output(&self) -> Option<&Value> {
        self.members.get("rawOutput").filter(|output| !output.is_null())
    }

    /// Returns the terminal output beside the call, and whether its beginning was dropped.
    pub fn terminal_output(&self) -> (&str, bool) {
        (&self.output, self.output_cut)
    }

    /// Returns the content of the call, in order.
    pub fn content(&self) -> impl Iterator<Item = ToolContent<'_>> {
        self.members.get("content").and_then(Value::as_array).into_iter().flatten().map(ToolContent::read)
    }

    /// Returns, for each part of [`content`](Self::content), the number of lines before it that a page left out.
    pub fn lines_before(&self) -> impl Iterator<Item = usize> {
        let parts = self.members.get("content").and_then(Value::as_array).into_iter().flatten();
        let lines = |part: &Value| part["_meta"]["plexus"]["lines_before"].as_u64();
        parts.map(move |part| lines(part).and_then(|lines| usize::try_from(lines).ok()).unwrap_or_default())
    }

    /// Returns the number of bytes that a page left out of an update of a tool call.
    pub fn left_out(update: &Map<String, Value>) -> u64 {
        update.get("_meta").and_then(|meta| meta["plexus"]["left_out"].as_u64()).unwrap_or_default()
    }

    /// Returns the approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes + self.output.len()
    }

    /// Drops everything except title, kind and status.
    pub fn forget_details(&mut self) {
        self.members.retain(|name, _| matches!(name.as_str(), "title" | "kind" | "status"));
        self.output = String::new();
        self.bytes = self.members.iter().map(|(name, value)| name.len() + json_size(value) + 4).sum();
    }
}

impl<'a> ToolContent<'a> {
    /// Reads one entry of a tool call's `content`.
    pub fn read(entry: &'a Value) -> Self {
        match entry["type"].as_str() {
            Some("content") => match entry["content"]["text"].as_str() {
                Some(text) => Self::Text(text),
                None => Self::Block(&entry["content"]),
            },
            Some("diff") => Self::Diff {
                path: entry["path"].as_str().unwrap_or_default(),
                old: entry["oldText"].as_str(),
                new: entry["newText"].as_str().unwrap_or_default(),
            },
            Some("terminal") => Self::Terminal(entry["output"].as_str()),
            _ => Self::Other(entry),
        }
    }
}

/// Returns the approximate size of a value as JSON, in bytes.
pub fn json_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(all) => all.iter().map(|one| json_size(one) + 1).sum::<usize>() + 2,
        Value::Object(members) => members.iter().map(|(name, one)| name.len() + json_size(one) + 4).sum::<usize>() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
    }
}
