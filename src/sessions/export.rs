//! The export of a session: Markdown, or one HTML file without external parts. Pure. It is written event by event; only parts that may
//! still change are held in memory, so that a session may be of any length.

// Every kind is listed here, so that a new one does not compile until its export is decided.
#![deny(clippy::wildcard_enum_match_arm)]

mod markdown;

use std::collections::VecDeque;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use self::markdown::{fence, plain, quoted};
use plexus_protocol::text::{clean, line};
use plexus_protocol::transcript::{
    EntryBody, MessageTracker, NoteKind, Outcome, Role, ToolCall, ToolContent, block_label,
};
use plexus_protocol::{Event, Position, SessionInfo, Timestamp};
use plexus_surfaces::{Change, Followed, Surface, SurfaceFollower};

/// Maximum length of a title, in characters.
const TITLE_MAX: usize = 200;
/// Maximum length of a note, in characters; the events have the whole text.
const NOTE_MAX: usize = 2000;
/// Maximum length of a part of a message held in memory, in bytes; a longer message continues under a heading of its own.
const MESSAGE_MAX: usize = 1 << 20;
/// Maximum number of bytes held while a tool call is unfinished; beyond it the call is written as it is.
const BUFFERED_MAX: usize = 4 << 20;

/// Maximum size of surfaces held in memory, in bytes; only the title of a larger one is written.
const SURFACES_MAX: usize = 8 << 20;
/// Width of a surface's text, in columns.
const SURFACE_COLUMNS: usize = 100;

/// The format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Markdown. Messages stay Markdown, quoted: they can neither leave the quote nor contain HTML or images.
    Markdown,
    /// HTML without scripts and external requests; all content is plain text.
    Html,
}

#[derive(Debug, PartialEq)]
enum PartKind {
    /// The role, the position at which the message begins, and the text.
    Message(Role, Position, String),
    Tool {
        id: String,
        call: ToolCall,
        finished: bool,
    },
    /// A surface, as it was at the end of a run in which it changed.
    Surface {
        name: String,
        title: String,
        /// The text form of the surface; `None` before it is finished, or if its state is not known.
        text: Option<String>,
        finished: bool,
    },
    /// The heading and the text.
    Note(&'static str, String),
}

/// The preceding tool call, under which a part is listed.
#[derive(Debug, PartialEq)]
struct ParentTitle {
    title: String,
    depth: usize,
}

#[derive(Debug, PartialEq)]
struct Part {
    at: Timestamp,
    parent: Option<ParentTitle>,
    kind: PartKind,
}

impl Part {
    /// Returns whether later events no longer change the part.
    fn finished(&self) -> bool {
        !matches!(self.kind, PartKind::Tool { finished: false, .. } | PartKind::Surface { finished: false, .. })
    }

    fn weight(&self) -> usize {
        size_of::<Self>()
            + self.parent.as_ref().map_or(0, |parent| parent.title.len())
            + match &self.kind {
                PartKind::Message(_, _, text) | PartKind::Note(_, text) => text.len(),
                PartKind::Tool { id, call, .. } => id.len() + call.bytes(),
                PartKind::Surface { name, title, text, .. } => {
                    name.len() + title.len() + text.as_ref().map_or(0, String::len)
                }
            }
    }
}

const fn heading(role: Role) -> &'static str {
    match role {
        Role::User => "User",
        Role::Agent => "Agent",
        Role::Thought => "Thought",
    }
}

/// Returns the title and status of a tool call.
fn tool_heading(call: &ToolCall) -> (String, String) {
    let title = if call.title().is_empty() { "tool" } else { call.title() };
    let status = if call.status() == "not_reported" { "not reported" } else { call.status() };
    (line(title, TITLE_MAX), line(status, TITLE_MAX))
}

/// Returns the output of a tool call as text.
fn tool_output(call: &ToolCall) -> String {
    let mut output = String::new();
    for content in call.content() {
        match content {
            ToolContent::Text(text) | ToolContent::Terminal(Some(text)) => {
                let _ = writeln!(output, "{text}");
            }
            ToolContent::Diff { path, old, new } => {
                let _ = writeln!(output, "{path}");
                for (sign, text) in [('-', old.unwrap_or_default()), ('+', new)] {
                    for text in text.lines() {
                        let _ = writeln!(output, "{sign}{text}");
                    }
                }
            }
            ToolContent::Block(block) => {
                let _ = writeln!(output, "{}", block_label(block));
            }
            ToolContent::Terminal(None) | ToolContent::Other(_) => {}
        }
    }
    if output.is_empty() {
        call.terminal_output().0.clone_into(&mut output);
    }
    output
}

/// Writes the export of a session, event by event.
#[derive(Debug)]
pub struct Export {
    format: Format,
    tracker: MessageTracker,
    parts: VecDeque<Part>,
    /// Size of the parts, in bytes.
    buffered: usize,
    surfaces: SurfaceFollower,
}

impl Export {
    /// Begins the file: appends its head to `out`.
    pub fn begin(format: Format, session: &SessionInfo, out: &mut String) -> Self {
        let title = session.title.as_deref().unwrap_or(session.session_id.as_str());
        let title = line(title, TITLE_MAX);
        let facts = [
            ("Session", session.session_id.to_string()),
            ("Runtime", format!("{} ({})", session.runtime_id, line(&session.dialect, TITLE_MAX))),
            ("Folder", line(&session.cwd, TITLE_MAX)),
            ("Begun", session.created_at.to_string()),
        ];
        match format {
            Format::Markdown => {
                let _ = write!(out, "# {}\n\n", plain(&title));
                for (name, value) in facts {
                    let _ = writeln!(out, "- {name}: {}", plain(&value));
                }
            }
            Format::Html => {
                out.push_str(HTML_HEAD);
                let title = escape(&title);
                let _ = write!(out, "<title>{title}</title>\n<header><h1>{title}</h1>\n<dl>\n");
                for (name, value) in facts {
                    let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
                }
                out.push_str("</dl></header>\n<main>\n");
            }
        }
        let surfaces = SurfaceFollower::new(SURFACES_MAX);
        Self { format, tracker: MessageTracker::default(), parts: VecDeque::new(), buffered: 0, surfaces }
    }

    /// Returns the approximate number of bytes of the unwritten parts and of the surfaces that are followed.
    pub fn memory(&self) -> usize {
        self.buffered + self.surfaces.memory()
    }

    /// Applies the next event; appends the parts that are finished by then to `out`.
    pub fn event(&mut self, event: &Event, out: &mut String) {
        let at = event.at;
        let body = EntryBody::read(event.kind, serde_json::from_slice(&event.body).unwrap_or_default());
        let text = |body: &Value, name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let target = self.tracker.entry(&body, event.run_id.as_str(), event.position);
        let parent = self.tracker.parent(&body).map(|call| {
            let title = if call.title.is_empty() { call.id } else { call.title };
            ParentTitle { title: line(title, TITLE_MAX), depth: call.depth }
        });
        match body {
            EntryBody::Message { role, content, .. } => {
                self.message(role, target.first(event.position), at, parent, content.into_text());
            }
            EntryBody::Tool { id, update, .. } => self.tool(at, parent, id, update),
            EntryBody::Plan(entries) => {
                let entries = entries.iter().map(|entry| {
                    let done = if entry.status == "completed" { "x" } else { " " };
                    format!("[{done}] {}", line(&entry.content, TITLE_MAX))
                });
                self.note("Plan", at, entries.collect::<Vec<_>>().join("\n"));
            }
            EntryBody::RequestOpened(body) => self.note("Asked", at, text(&body, "display")),
            EntryBody::RequestUpdated(body) => self.note("Asked, changed", at, text(&body, "display")),
            EntryBody::RequestResolved(body) => self.note("Answer", at, outcome(&body)),
            EntryBody::RunEnded(body) => {
                // The run's tool calls no longer change; a surface that changes later is another part.
                for at in 0..self.parts.len() {
                    self.finish_part(at);
                }
                if body["status"] != "completed" {
                    self.note("Run", at, format!("{}: {}", text(&body, "status"), text(&body, "message")));
                }
            }
            EntryBody::Surface { id, body } => self.surface(at, id, body),
            EntryBody::Note(NoteKind::Runtime, body) => {
                if body["status"] == "exited" {
                    self.note("Runtime", at, format!("exited: {}", text(&body, "message")));
                }
            }
            EntryBody::Note(NoteKind::Error, body) => self.note("Error", at, text(&body, "message")),
            // Viewers and client calls are no part of the conversation.
            EntryBody::Note(
                NoteKind::ClientJoined | NoteKind::ClientLeft | NoteKind::ClientServed | NoteKind::Hook,
                _,
            ) => {}
            EntryBody::Note(NoteKind::Raw | NoteKind::Malformed(_), body) => {
                self.note("Not understood", at, body.to_string())
            }
            EntryBody::Latest(..) | EntryBody::RunStarted(_) | EntryBody::RunStatus(_) => {}
        }
        self.flush(false, out);
    }

    /// Ends the file.
    pub fn finish(mut self, out: &mut String) {
        self.flush(true, out);
        if self.format == Format::Html {
            out.push_str("</main>\n</html>\n");
        }
    }

    fn push(&mut self, part: Part) {
        self.buffered += part.weight();
        self.parts.push_back(part);
    }

    fn note(&mut self, heading: &'static str, at: Timestamp, text: String) {
        self.push(Part { at, parent: None, kind: PartKind::Note(heading, text) });
    }

    fn message(&mut self, role: Role, first: Position, at: Timestamp, parent: Option<ParentTitle>, text: String) {
        match self.parts.back_mut().map(|part| &mut part.kind) {
            // A message that continues after another part gets a heading of its own: its beginning may be written already.
            Some(PartKind::Message(_, last, so_far)) if *last == first && so_far.len() < MESSAGE_MAX => {
                self.buffered += text.len();
                so_far.push_str(&text);
            }
            _ => self.push(Part { at, parent, kind: PartKind::Message(role, first, text) }),
        }
    }

    fn tool(&mut self, at: Timestamp, parent: Option<ParentTitle>, id: String, update: Map<String, Value>) {
        let is = |part: &Part| matches!(&part.kind, PartKind::Tool { id: current, .. } if *current == id);
        let index = self.parts.iter().rposition(is).unwrap_or_else(|| {
            let kind = PartKind::Tool { id: id.clone(), call: ToolCall::default(), finished: false };
            self.push(Part { at, parent: None, kind });
            self.parts.len() - 1
        });
        if let Some(part) = self.parts.get_mut(index) {
            let before = part.weight();
            part.parent = parent;
            if let PartKind::Tool { call, finished, .. } = &mut part.kind {
                call.update(update);
                *finished = call.is_finished();
            }
            self.buffered = (self.buffered + part.weight()).saturating_sub(before);
        }
    }

    /// Applies a change of a surface. It is exported once in a run, in its state at the end.
    fn surface(&mut self, at: Timestamp, name: String, body: Value) {
        let title = body["title"].as_str().map(|title| line(title, TITLE_MAX));
        let followed = serde_json::from_value::<Change>(body).ok().map(|change| self.surfaces.apply(&change));
        let is = |part: &Part| matches!(&part.kind, PartKind::Surface { name: current, finished: false, .. } if *current == name);
        let index = self.parts.iter().rposition(is);
        if let Some(Followed::Closed(last)) = followed {
            if let Some(index) = index {
                self.finish_surface(index, last.as_deref());
            }
            return;
        }
        if matches!(followed, Some(Followed::Known)) {
            return;
        }
        let current = self.surfaces.get(&name).and_then(Surface::title).map(|title| line(title, TITLE_MAX));
        let title = current.or(title);
        match index.and_then(|index| self.parts.get_mut(index)) {
            Some(Part { kind: PartKind::Surface { title: shown, .. }, .. }) => {
                if let Some(title) = title {
                    self.buffered = (self.buffered + title.len()).saturating_sub(shown.len());
                    *shown = title;
                }
            }
            _ => {
                let title = title.unwrap_or_else(|| name.clone());
                let kind = PartKind::Surface { name, title, text: None, finished: false };
                self.push(Part { at, parent: None, kind });
            }
        }
    }

    /// Marks a part as finished.
    fn finish_part(&mut self, at: usize) {
        match self.parts.get_mut(at).map(|part| &mut part.kind) {
            Some(PartKind::Tool { finished, .. }) => *finished = true,
            Some(PartKind::Surface { name, finished: false, .. }) => {
                let text = self.surfaces.get(name).map(|surface| surface.text(SURFACE_COLUMNS));
                self.set_text(at, text);
            }
            Some(PartKind::Surface { .. } | PartKind::Message(..) | PartKind::Note(..)) | None => {}
        }
    }

    fn finish_surface(&mut self, at: usize, last: Option<&Surface>) {
        self.set_text(at, last.map(|last| last.text(SURFACE_COLUMNS)));
    }

    fn set_text(&mut self, at: usize, plain: Option<String>) {
        if let Some(PartKind::Surface { text, finished, .. }) = self.parts.get_mut(at).map(|part| &mut part.kind) {
            self.buffered += plain.as_ref().map_or(0, String::len);
            (*text, *finished) = (plain, true);
        }
    }

    /// Writes the parts before the first unfinished one; with `all`, every part.
    fn flush(&mut self, all: bool, out: &mut String) {
        while let Some(first) = self.parts.front() {
            // A message may continue until another part follows it.
            let whole = first.finished() && (self.parts.len() > 1 || !matches!(first.kind, PartKind::Message(..)));
            if !(all || whole || self.buffered > BUFFERED_MAX) {
                break;
            }
            self.finish_part(0);
            let Some(first) = self.parts.front() else { break };
            self.buffered = self.buffered.saturating_sub(first.weight());
            let Some(part) = self.parts.pop_front() else { break };
            match self.format {
                Format::Markdown => markdown(part, out),
                Format::Html => html(part, out),
            }
        }
    }
}

/// Returns a short description of the outcome of a request.
fn outcome(receipt: &Value) -> String {
    let outcome = Outcome::read(receipt);
    let mut summary = line(&outcome.summary(), TITLE_MAX);
    if let Some(option) = &outcome.option {
        let _ = write!(summary, " ({})", line(option, TITLE_MAX));
    }
    for (text, label) in [(&outcome.reason, "because"), (&outcome.edited, "changed to")] {
        if let Some(text) = text {
            let _ = write!(summary, "\n{label}: {text}");
        }
    }
    summary
}

/// Sanitizes a text and reserves space for the result in `out`. The text is freed in between, because it may be long.
fn cleaned(text: String, out: &mut String) -> String {
    let cleaned = clean(&text);
    drop(text);
    out.reserve(cleaned.len());
    cleaned
}

// === Markdown ===

fn markdown(part: Part, out: &mut String) {
    out.push('\n');
    let above = part.parent.as_ref().map_or_else(String::new, |parent| format!(", in {}", plain(&parent.title)));
    match part.kind {
        PartKind::Message(role, _, text) => {
            let _ = writeln!(out, "**{}**{above}\n", heading(role));
            quoted(&cleaned(text, out), out);
        }
        PartKind::Tool { call, .. } => {
            let (title, status) = tool_heading(&call);
            let _ = writeln!(out, "**Tool** {} ({}){above}", plain(&title), plain(&status));
            let output = tool_output(&call);
            if !output.trim().is_empty() {
                let _ = write!(out, "\n{}", fence(&clean(&output)));
            }
        }
        PartKind::Surface { title, text, .. } => {
            let _ = writeln!(out, "**Surface** {}", plain(&title));
            if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
                let _ = write!(out, "\n{}", fence(&text));
            }
        }
        PartKind::Note(heading, text) => {
            let _ = writeln!(out, "*{heading}: {}*", plain(&line(&text, NOTE_MAX)));
        }
    }
}

// === HTML ===

/// Escapes text for HTML content and quoted attributes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape_cleaned(&clean(text), &mut out);
    out
}

fn escape_cleaned(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

/// The beginning of an HTML file. Its Content-Security-Policy allows neither scripts nor requests.
const HTML_HEAD: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<style>
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); --dim: color-mix(in srgb, currentColor 62%, transparent); }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 52rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
header { border-bottom: 1px solid var(--line); margin-bottom: 1.5rem; } h1 { font-size: 1.5rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0 0 1rem; font-size: .875rem; } dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
section, details { margin: 1rem 0; margin-inline-start: calc(var(--depth, 0) * 1.5rem); padding: .6rem 1rem; border: 1px solid var(--line); border-radius: .6rem; unicode-bidi: isolate; }
section.user { border-inline-start: 4px solid #2f74d0; } section.asked { border-inline-start: 4px solid #b7791f; } section.error { border-inline-start: 4px solid #c53030; }
h2, summary { font-size: .8rem; font-weight: 600; color: var(--dim); margin: 0; } summary { cursor: pointer; } time { float: inline-end; font-weight: 400; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: .35rem 0 0; } .tool pre, .asked pre, .surface pre { font: .875em/1.45 ui-monospace, monospace; }
.surface pre { white-space: pre; overflow-x: auto; }
.thought { color: var(--dim); } .note { border: 0; padding: 0 1rem; color: var(--dim); font-size: .9rem; }
@media print { body { max-width: none; padding: 0; } section, details { break-inside: avoid; } }
</style>
"#;

fn html(part: Part, out: &mut String) {
    let at = part.at.to_string();
    let time = format!("<time datetime=\"{at}\">{}</time>", at.get(..16).unwrap_or(&at).replace('T', " "));
    let (above, depth) = part.parent.as_ref().map_or_else(Default::default, |parent| {
        (format!(", in {}", escape(&parent.title)), format!(" style=\"--depth:{}\"", parent.depth))
    });
    let _ = match part.kind {
        // Collapsed, as on screen.
        PartKind::Message(Role::Thought, _, text) => {
            let _ = write!(
                out,
                "<details class=\"thought\"{depth}><summary>Thought{above}{time}</summary><pre dir=\"auto\">"
            );
            escape_cleaned(&cleaned(text, out), out);
            writeln!(out, "</pre></details>")
        }
        PartKind::Message(role, _, text) => {
            let (class, heading) = (role.as_str(), heading(role));
            let _ = write!(out, "<section class=\"{class}\"{depth}><h2>{heading}{above}{time}</h2><pre dir=\"auto\">");
            escape_cleaned(cleaned(text, out).trim_end(), out);
            writeln!(out, "</pre></section>")
        }
        PartKind::Tool { call, .. } => {
            let (title, status) = tool_heading(&call);
            let (title, status) = (escape(&title), escape(&status));
            let head = format!("<section class=\"tool\"{depth}><h2>Tool: {title} ({status}){above}{time}</h2>");
            match tool_output(&call).trim_end() {
                "" => writeln!(out, "{head}</section>"),
                output => writeln!(out, "{head}<pre>{}</pre></section>", escape(output)),
            }
        }
        PartKind::Surface { title, text, .. } => {
            let head = format!("<section class=\"surface\"><h2>Surface: {}{time}</h2>", escape(&title));
            match text.as_deref().map(str::trim_end).unwrap_or_default() {
                "" => writeln!(out, "{head}</section>"),
                text => writeln!(out, "{head}<pre>{}</pre></section>", escape(text)),
            }
        }
        PartKind::Note(heading, text) => {
            let class = match heading {
                "Asked" => "asked",
                "Error" | "Not understood" => "error",
                _ => "note",
            };
            writeln!(out, "<section class=\"{class}\"><h2>{heading}{time}</h2><pre>{}</pre></section>", escape(&text))
        }
    };
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plexus_protocol::{Kind, Origin, RunId, RuntimeId, SessionId};
    use serde_json::json;

    use super::*;

    fn session(title: &str) -> SessionInfo {
        serde_json::from_value(json!({
            "session_id": "s_1", "runtime_id": "demo", "dialect": "acp", "native_id": null, "title": title, "cwd": "/w",
            "state": "idle", "open_requests": 0, "created_at": "2025-11-21T09:30:00.125Z", "updated_at": "2025-11-21T09:30:00.125Z",
        }))
        .unwrap()
    }

    fn event(position: u64, kind: Kind, body: String) -> Event {
        Event {
            position: Position(position),
            origin: Arc::new(Origin {
                session_id: SessionId::trusted("s_1"),
                runtime_id: RuntimeId::trusted("demo"),
                dialect: "acp".into(),
            }),
            run_id: RunId::trusted("r_1"),
            seq: position,
            at: Timestamp::default(),
            kind,
            body: body.into(),
            native: None,
        }
    }

    fn export(format: Format, title: &str, events: &[(Kind, Value)]) -> String {
        let mut out = String::new();
        let mut export = Export::begin(format, &session(title), &mut out);
        for (n, (kind, body)) in events.iter().enumerate() {
            export.event(&event(n as u64 + 1, *kind, body.to_string()), &mut out);
        }
        export.finish(&mut out);
        out
    }

    fn chunk(text: &str) -> Value {
        json!({ "content": { "type": "text", "text": text } })
    }

    fn tool(id: &str, status: &str, text: &str) -> Value {
        json!({ "toolCallId": id, "title": "ls", "status": status, "content": [{ "type": "content", "content": { "type": "text", "text": text } }] })
    }

    #[test]
    fn export_shows_subagents_under_the_call_that_started_them() {
        let under = |parent: &str, mut body: Value| {
            body["_meta"] = json!({ "claudeCode": { "parentToolUseId": parent } });
            body
        };
        let events = [
            (Kind::ToolCall, json!({ "toolCallId": "a", "title": "<b>Explore</b>", "status": "completed" })),
            (Kind::ToolCall, under("a", tool("b", "completed", "out"))),
            (Kind::AgentMessageChunk, under("a", chunk("I see"))),
            (Kind::AgentMessageChunk, under("never", chunk("bye"))),
        ];
        let markdown = export(Format::Markdown, "t", &events);
        assert!(markdown.contains("**Tool** ls (completed), in \\<b\\>Explore\\</b\\>\n"), "{markdown}");
        assert!(markdown.contains("**Agent**, in ") && markdown.contains("**Agent**\n\n> bye"), "{markdown}");
        let html = export(Format::Html, "t", &events);
        assert_eq!(html.matches("style=\"--depth:1\"").count(), 2, "{html}");
        assert!(html.contains("(completed), in &lt;b&gt;Explore&lt;/b&gt;<time"), "{html}");
    }

    #[test]
    fn export_joins_chunks_and_keeps_tool_order() {
        let text = export(
            Format::Markdown,
            "T",
            &[
                (Kind::UserMessageChunk, chunk("hi")),
                (Kind::AgentMessageChunk, chunk("he")),
                (Kind::AgentMessageChunk, chunk("llo")),
                (Kind::ToolCall, tool("c", "pending", "")),
                (Kind::AgentMessageChunk, chunk("after")),
                (Kind::ToolCallUpdate, tool("c", "completed", "a.txt")),
                (
                    Kind::RequestResolved,
                    json!({ "state": "answered", "ok": true, "resolved_by": { "name": "phone" }, "edited": "ls -l" }),
                ),
            ],
        );
        let want = "# T\n\n- Session: s\\_1\n- Runtime: demo (acp)\n- Folder: /w\n- Begun: 2025-11-21T09:30:00.125Z\n\n\
                    **User**\n\n> hi\n\n**Agent**\n\n> hello\n\n**Tool** ls (completed)\n\n```\na.txt\n```\n\n**Agent**\n\n> after\n\n\
                    *Answer: allowed by phone changed to: ls -l*\n";
        assert_eq!(text, want);
    }

    #[test]
    fn export_escapes_all_agent_markup() {
        let evil =
            "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u{1b}[2J\u{202e}x\u{200b}\n# heading\n```\n";
        let resolved = json!({ "state": "answered", "resolved_by": { "name": evil }, "reason": evil, "edited": evil, "option_id": evil });
        let mut call = tool("c", evil, evil);
        call["title"] = json!(evil);
        let events = [
            (Kind::UserMessageChunk, chunk(evil)),
            (Kind::AgentThoughtChunk, chunk(evil)),
            (Kind::ToolCall, call),
            (Kind::RequestOpened, json!({ "display": evil })),
            (Kind::RequestResolved, resolved),
            (Kind::Plan, json!({ "entries": [{ "content": evil }] })),
            (Kind::RunEnded, json!({ "status": evil, "message": evil })),
            (Kind::Raw, json!({ "text": evil })),
            (Kind::Error, json!({ "message": evil })),
            (Kind::SurfaceUpdated, {
                let mut surface = shown("s", 1, evil);
                surface["title"] = json!(evil);
                surface
            }),
        ];
        let text = export(Format::Html, evil, &events);
        let body = text.strip_prefix(HTML_HEAD).unwrap();
        for raw in ["<script", "<img", "\u{1b}", "\u{202e}", "\u{200b}"] {
            assert!(!body.contains(raw), "{raw:?}: {body}");
        }
        assert!(body.contains("\\u{202e}") && body.contains("\\u{200b}"), "what deceives is seen: {body}");
        // Every tag is one of ours, and every attribute.
        for tag in body.split('<').skip(1) {
            let tag = tag.split('>').next().unwrap();
            let name = tag.trim_start_matches('/').split(' ').next().unwrap();
            let ours = "title header h1 dl dt dd main section details summary h2 time pre html";
            assert!(ours.split(' ').any(|current| current == name), "<{tag}>");
            assert!(!tag.contains("on") || name == "section", "<{tag}>");
        }
        let text = export(Format::Markdown, evil, &events);
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
        assert!(text.starts_with("# \\<script\\>"), "{text}");
        for line in text.lines().filter(|line| line.contains("<script")) {
            let fenced = line.starts_with("<script");
            assert!(fenced || !line.replace("\\<", "").contains('<'), "outside of fences it is no HTML: {line}");
        }
        assert!(text.contains("\n````\n"), "a fence is longer than what it holds: {text}");
    }

    /// Pieces of Markdown that make links, images, HTML and code, and what may hide or free them.
    const MARKDOWN: [&str; 26] = [
        "[x](",
        "[x]",
        "](",
        "]: ",
        "(",
        ")",
        "javascript:alert(1)",
        "JAVASCRIPT:x",
        "data:text/html,x",
        "https://e.example",
        "!",
        "<",
        ">",
        "<img src=x>",
        "\\",
        "\\\\",
        "`",
        "```",
        "~~~",
        "\n",
        "\n ",
        "\n    ",
        "\n- ",
        "\n> ",
        " ",
        "\t",
    ];

    proptest::proptest! {
        #[test]
        fn export_markdown_has_no_link_that_runs_code(
            pieces in proptest::collection::vec(proptest::sample::select(MARKDOWN.to_vec()), 0..24)
        ) {
            let text = pieces.concat();
            let mut call = tool("c", "completed", &text);
            call["title"] = json!(text);
            let mut edited = tool("d", "completed", "");
            edited["content"] = json!([{ "type": "diff", "path": text, "oldText": text, "newText": text }]);
            let events = [
                (Kind::AgentMessageChunk, chunk(&text)),
                (Kind::ToolCall, call),
                (Kind::ToolCall, edited),
                (Kind::RequestOpened, json!({ "display": text })),
                (Kind::Plan, json!({ "entries": [{ "content": text }] })),
            ];
            let markdown = export(Format::Markdown, &text, &events);
            for event in pulldown_cmark::Parser::new_ext(&markdown, pulldown_cmark::Options::all()) {
                let acts = matches!(
                    event,
                    pulldown_cmark::Event::Start(pulldown_cmark::Tag::Image { .. } | pulldown_cmark::Tag::HtmlBlock)
                        | pulldown_cmark::Event::Html(_)
                        | pulldown_cmark::Event::InlineHtml(_)
                );
                assert!(!acts, "{event:?}: {text:?} -> {markdown}");
                let pulldown_cmark::Event::Start(pulldown_cmark::Tag::Link { dest_url: target, .. }) = event else { continue };
                let scheme = target.split_once(':').map_or("", |(scheme, _)| scheme);
                assert!(matches!(scheme, "" | "https" | "http" | "mailto"), "{target}: {text:?} -> {markdown}");
            }
            let html = export(Format::Html, &text, &events);
            let body = html.strip_prefix(HTML_HEAD).unwrap();
            assert!(!body.contains("<a") && !body.contains("<img") && !body.contains("href"), "{text:?} -> {body}");
        }
    }

    #[test]
    fn export_shows_unfinished_tool_call_as_not_reported() {
        let mut end = tool("c", "failed", "");
        end["_meta"] = json!({ "plexus": { "synthesized": true, "reason": "x" } });
        let events = [(Kind::ToolCall, tool("c", "pending", "")), (Kind::ToolCallUpdate, end)];
        let text = export(Format::Markdown, "T", &events);
        assert!(text.contains("(not reported)") && !text.contains("failed"), "{text}");
    }

    fn shown(name: &str, rev: u64, text: &str) -> Value {
        json!({ "surface": name, "rev": rev, "title": "Build <1>", "pinned": false, "messages": [
            { "version": "v0.9", "createSurface": { "surfaceId": name, "catalogId": "plexus:catalog/1" } },
            { "version": "v0.9", "updateComponents": { "surfaceId": name, "components": [
                { "id": "root", "component": "Text", "text": { "path": "/t" } }] } },
            { "version": "v0.9", "updateDataModel": { "surfaceId": name, "path": "/", "value": { "t": text } } }] })
    }

    fn changed(name: &str, rev: u64, text: &str) -> Value {
        json!({ "surface": name, "rev": rev, "base": rev - 1, "messages": [
            { "version": "v0.9", "updateDataModel": { "surfaceId": name, "path": "/t", "value": text } }] })
    }

    #[test]
    fn export_has_a_surface_once_a_run_in_its_last_state() {
        let over = (Kind::RunEnded, json!({ "status": "completed" }));
        let closed = json!({ "surface": "b", "rev": 5, "base": 4, "closed": true, "messages": [] });
        let events = [
            (Kind::SurfaceUpdated, shown("b", 1, "first")),
            (Kind::AgentMessageChunk, chunk("between")),
            (Kind::SurfaceUpdated, changed("b", 2, "```\nsecond <b>")),
            over.clone(),
            (Kind::SurfaceUpdated, changed("b", 3, "third")),
            (Kind::SurfaceUpdated, changed("b", 4, "fourth")),
            (Kind::SurfaceUpdated, closed),
            // Its beginning is not in the log: the title is all that is known.
            (Kind::SurfaceUpdated, changed("later", 9, "lost")),
            over,
        ];
        let text = export(Format::Markdown, "T", &events);
        let want = "\n**Surface** Build \\<1\\>\n\n````\n```\nsecond <b>\n````\n\n**Agent**\n\n> between\n\n\
                    **Surface** Build \\<1\\>\n\n```\nfourth\n```\n\n**Surface** later\n";
        assert!(text.ends_with(want), "{text}");
        let html = export(Format::Html, "T", &events);
        assert!(
            html.contains("<h2>Surface: Build &lt;1&gt;<time") && html.contains("<pre>```\nsecond &lt;b&gt;</pre>"),
            "{html}"
        );
        assert_eq!(html.matches("class=\"surface\"").count(), 3, "{html}");
    }

    #[test]
    fn export_writes_on_while_a_surface_changes() {
        let mut out = String::new();
        let mut export = Export::begin(Format::Markdown, &session("T"), &mut out);
        let large = "x".repeat(60_000);
        export.event(&event(1, Kind::SurfaceUpdated, shown("b", 1, &large).to_string()), &mut out);
        for n in 2..200 {
            export.event(&event(n, Kind::SurfaceUpdated, changed("b", n, &large).to_string()), &mut out);
            export.event(&event(n, Kind::AgentMessageChunk, chunk(&large).to_string()), &mut out);
            assert!(export.buffered <= BUFFERED_MAX + MESSAGE_MAX + 200_000, "{}", export.buffered);
        }
        assert!(out.contains("**Surface** Build"), "it is written once too much waits behind it");
        export.finish(&mut out);
    }

    #[test]
    fn export_holds_bounded_memory() {
        let mut out = String::new();
        let mut export = Export::begin(Format::Html, &session("T"), &mut out);
        let buffered = |export: &Export| {
            assert_eq!(export.buffered, export.parts.iter().map(Part::weight).sum::<usize>());
            export.buffered
        };
        // A tool that never ends, and an agent that never stops.
        export.event(&event(1, Kind::ToolCall, tool("hangs", "pending", "x").to_string()), &mut out);
        let (text, call) = (chunk(&"y".repeat(100_000)).to_string(), tool("t", "completed", "z").to_string());
        for n in 0..200 {
            let (kind, body) = if n % 50 == 49 { (Kind::ToolCall, &call) } else { (Kind::AgentMessageChunk, &text) };
            export.event(&event(n + 2, kind, body.clone()), &mut out);
            assert!(buffered(&export) <= BUFFERED_MAX + MESSAGE_MAX + 100_000, "{}", buffered(&export));
            out.clear();
        }
        export.event(&event(300, Kind::RunEnded, r#"{"status":"completed"}"#.into()), &mut out);
        export.event(&event(301, Kind::UserMessageChunk, chunk("next").to_string()), &mut out);
        assert!(buffered(&export) < 300, "a run's end finishes its tool calls");
    }
}
