//! The text of events in a terminal. Pure. Text of agents is sanitized.

// A new event kind does not compile until it is handled here.
#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::HashMap;

use plexus_protocol::api::history::EventEnvelope;
use plexus_protocol::api::snapshot::SnapshotMessage;
use plexus_protocol::api::stream::StreamSnapshots;
use plexus_protocol::transcript::{
    Content, Decided, EntryBody, LatestKind, MessageTracker, NoteKind, Outcome, PlanEntry, Role, ToolCall, ToolContent,
    block_label, current_mode, new_title,
};
use plexus_protocol::{ErrorBody, Position, Request, RequestHead, Resolver, RunBody, RunStatus, RuntimeStatusBody};
use plexus_surfaces::{Change, Surface};
use serde_json::{Map, Value};

use super::card::{answer_command, card};
use super::output::{Cleaner, Paint, line};

/// Maximum length of a title, a status or another field in one line, in characters.
const FIELD_MAX: usize = 200;
/// Width of a surface's text, in columns.
const SURFACE_COLUMNS: usize = 76;
/// Maximum number of tool calls whose titles are stored; updates of further ones are shown without a title.
const TOOLS_MAX: usize = 4096;

/// The tool call that an entry belongs to.
struct ParentCall {
    id: String,
    title: String,
    depth: usize,
}

/// Formats a stream of events as text.
pub(crate) struct View {
    paint: Paint,
    /// The message of the last line: its role and first position.
    block: Option<(Role, Position)>,
    trackers: HashMap<String, MessageTracker>,
    /// The tool call that the current entry belongs to.
    parent_call: Option<ParentCall>,
    /// The tool call that was named last.
    last_named: Option<String>,
    /// `true` if the last printed character ended a line.
    at_line_start: bool,
    cleaner: Cleaner,
    tools: HashMap<(String, String), ToolCall>,
    /// The diff lines shown last, since agents repeat them with every update.
    diffs: Vec<String>,
    /// `true` if several sessions are shown, so that a change of session is named.
    names_sessions: bool,
    session: String,
    /// `true` if the note about raw protocol messages was printed.
    raw_noted: bool,
}

impl View {
    pub(crate) fn new(paint: Paint, names_sessions: bool) -> Self {
        Self {
            paint,
            block: None,
            trackers: HashMap::new(),
            parent_call: None,
            last_named: None,
            at_line_start: true,
            cleaner: Cleaner::default(),
            tools: HashMap::new(),
            diffs: Vec::new(),
            names_sessions,
            session: String::new(),
            raw_noted: false,
        }
    }

    /// Ends an unfinished line.
    pub(crate) fn end_line(&mut self, out: &mut String) {
        self.cleaner.finish(out);
        if !self.at_line_start {
            out.push('\n');
        }
        self.at_line_start = true;
        self.block = None;
    }

    fn message_text(&mut self, role: Role, first: Position, text: &str, out: &mut String) {
        if self.block != Some((role, first)) {
            self.end_line(out);
            self.name_parent(out);
            self.block = Some((role, first));
            if role == Role::User {
                out.push_str(&self.paint.bold("> "));
            }
        }
        let mut cleaned = String::new();
        self.cleaner.push(text.as_bytes(), &mut cleaned);
        if cleaned.is_empty() {
            return;
        }
        if let Some(ParentCall { depth, .. }) = &self.parent_call {
            let indent = "  ".repeat(*depth);
            let mut at_start = self.at_line_start;
            let mut lines = String::with_capacity(cleaned.len());
            for piece in cleaned.split_inclusive('\n') {
                lines.push_str(if at_start { &indent } else { "" });
                lines.push_str(piece);
                at_start = true;
            }
            cleaned = lines;
        }
        self.at_line_start = cleaned.ends_with('\n');
        out.push_str(&match role {
            Role::Thought => self.paint.dim(&cleaned),
            Role::User => self.paint.bold(&cleaned),
            Role::Agent => cleaned,
        });
    }

    /// Names the tool call that the current entry belongs to, unless it was named last.
    fn name_parent(&mut self, out: &mut String) {
        let id = self.parent_call.as_ref().map(|parent_call| parent_call.id.clone());
        if self.last_named == id {
            return;
        }
        self.last_named = id;
        if let Some(ParentCall { title, depth, .. }) = &self.parent_call {
            let text = format!("{}↳ in {title}", "  ".repeat(*depth));
            self.note(&self.paint.dim(&text), out);
        }
    }

    /// The indentation of the current entry.
    fn indent(&self) -> String {
        "  ".repeat(self.parent_call.as_ref().map_or(0, |parent_call| parent_call.depth))
    }

    /// Adds a line of the gateway; text of agents in it has been sanitized.
    pub(crate) fn note(&mut self, text: &str, out: &mut String) {
        self.end_line(out);
        out.push_str(text);
        out.push('\n');
    }

    /// Shows snapshots in place of events that are no longer stored.
    pub(crate) fn snapshot(&mut self, snapshots: &StreamSnapshots, out: &mut String) {
        for snapshot in &snapshots.snapshots {
            let id = line(snapshot.session.session_id.as_str(), FIELD_MAX);
            self.note(&self.paint.dim(&format!("── {id}: the beginning is no longer stored; the rest:")), out);
            for SnapshotMessage { role, position, text, .. } in &*snapshot.messages {
                self.end_line(out);
                self.message_text(*role, Position(*position), text, out);
            }
            self.end_line(out);
        }
    }

    pub(crate) fn event(&mut self, envelope: &EventEnvelope, out: &mut String) {
        let session = envelope.session_id.as_str();
        if self.names_sessions && self.session != session {
            session.clone_into(&mut self.session);
            let heading = line(&format!("── {session} · {}", envelope.meta.runtime_id), FIELD_MAX);
            self.note(&self.paint.dim(&heading), out);
        }
        let Some(entry) = envelope.entry() else {
            // A kind that only newer versions know is named, so that no event is hidden.
            return self.note(&self.paint.dim(&line(&format!("· {}", envelope.kind), FIELD_MAX)), out);
        };
        let tracker = self.trackers.entry(session.to_owned()).or_default();
        let target = tracker.entry(&entry, envelope.run_id.as_str(), envelope.position());
        self.parent_call = tracker.parent(&entry).map(|parent| {
            let title = if parent.title.is_empty() { parent.id } else { parent.title };
            ParentCall { id: parent.id.to_owned(), title: line(title, FIELD_MAX), depth: parent.depth }
        });
        match entry {
            EntryBody::Message { role, content, .. } => {
                let first = target.first(envelope.position());
                match content {
                    Content::Text(text) => self.message_text(role, first, &text, out),
                    Content::Block(block) => {
                        self.message_text(role, first, &line(&block_label(&block), FIELD_MAX), out)
                    }
                }
            }
            EntryBody::Tool { id, update, .. } => self.tool(session, id, update, out),
            EntryBody::Plan(entries) => self.plan(&entries, out),
            EntryBody::RunStarted(_) => {}
            EntryBody::RunStatus(_) => match envelope.body::<RunBody>() {
                Some(RunBody { status: RunStatus::Queued, .. }) => {
                    self.note(&self.paint.dim("· queued behind the previous run"), out);
                }
                Some(RunBody { status: RunStatus::Running, cancelling: true, by, .. }) => {
                    let by = by.map_or_else(|| "somebody".to_owned(), |by| line(&by.name, FIELD_MAX));
                    self.note(&self.paint.dim(&format!("· {by} cancels the run")), out);
                }
                Some(_) | None => {}
            },
            EntryBody::RunEnded(_) => self.run_ended(envelope.body(), out),
            EntryBody::RequestOpened(_) | EntryBody::RequestUpdated(_) => {
                self.end_line(out);
                match envelope.body::<Request>() {
                    Some(request) => {
                        out.push_str(&card(&request, self.paint));
                        self.note(&self.paint.dim(&format!("  {}", answer_command(&request))), out);
                    }
                    None => {
                        let RequestHead { request_id, title } = envelope.body().unwrap_or_default();
                        let (title, id) =
                            (line(&title, FIELD_MAX), request_id.map_or_else(String::new, |id| id.to_string()));
                        self.note(&self.paint.yellow(&format!("? {title}")), out);
                        self.note(&self.paint.dim(&format!("  {id}: plexus answer {id} --allow | --deny")), out);
                    }
                }
            }
            EntryBody::RequestResolved(body) => {
                let text = outcome_text(Outcome::read(&body));
                self.note(&self.paint.dim(&format!("· {text}")), out);
            }
            EntryBody::Latest(LatestKind::Mode, body) => {
                let mode = line(current_mode(&body).unwrap_or_default(), FIELD_MAX);
                self.note(&self.paint.dim(&format!("· mode {mode}")), out);
            }
            EntryBody::Latest(LatestKind::Info, body) => {
                if let Some(title) = new_title(&body) {
                    self.note(&self.paint.dim(&format!("· title: {}", line(title, FIELD_MAX))), out);
                }
            }
            // These events are for programs: offered commands, options, tokens.
            EntryBody::Latest(LatestKind::Commands | LatestKind::Options | LatestKind::Usage, _) => {}
            EntryBody::Surface { id, body } => self.surface(&id, envelope.body(), body, out),
            EntryBody::Note(kind, _) => self.log_line(kind, envelope, out),
        }
    }

    fn run_ended(&mut self, body: Option<RunBody>, out: &mut String) {
        let (status, stop_reason, message) = match body {
            Some(RunBody { status, stop_reason, message, .. }) => (status, stop_reason, message),
            None => (RunStatus::Unknown, None, None),
        };
        let parts = [stop_reason, message].into_iter().flatten().map(|part| line(&part, FIELD_MAX));
        let parts: Vec<String> = parts.filter(|part| !part.is_empty() && part != "end_turn").collect();
        let reason = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        let text = match status {
            RunStatus::Completed => self.paint.dim(&format!("· done{reason}")),
            RunStatus::Cancelled => self.paint.yellow(&format!("· cancelled{reason}")),
            RunStatus::Error | RunStatus::Queued | RunStatus::Running | RunStatus::AwaitingUi | RunStatus::Unknown => {
                self.paint.red(&format!("· failed{reason}"))
            }
        };
        self.note(&text, out);
    }

    /// Shows a surface as text when it is shown or closed; its changes, up to ten per second, are not shown here.
    fn surface(&mut self, name: &str, change: Option<Change>, body: Value, out: &mut String) {
        match change {
            Some(Change { closed: true, .. }) => {
                return self.note(&self.paint.dim(&format!("· surface {} is closed", line(name, FIELD_MAX))), out);
            }
            Some(Change { base: Some(_), .. }) => return,
            Some(Change { base: None, .. }) | None => {}
        }
        let Ok(surface) = Surface::from_wire(body) else {
            return self.note(&self.paint.dim(&format!("· surface {}", line(name, FIELD_MAX))), out);
        };
        let title = line(surface.title().unwrap_or(name), FIELD_MAX);
        self.note(&self.paint.dim(&format!("· surface {title}")), out);
        for text in surface.text(SURFACE_COLUMNS).lines() {
            self.note(&format!("  {} {text}", self.paint.dim("│")), out);
        }
    }

    /// Shows a note of the log on a line of its own.
    fn log_line(&mut self, kind: NoteKind, envelope: &EventEnvelope, out: &mut String) {
        let client = || envelope.body().map(|Resolver { name, .. }| line(&name, FIELD_MAX)).unwrap_or_default();
        match kind {
            NoteKind::Runtime => {
                if let Some(status) = envelope.body() {
                    self.runtime_status(&status, out);
                }
            }
            NoteKind::Error => {
                let message = envelope.body().map(|ErrorBody { message, .. }| line(&message, FIELD_MAX));
                self.note(&self.paint.red(&format!("! {}", message.unwrap_or_default())), out);
            }
            NoteKind::ClientJoined => self.note(&self.paint.dim(&format!("· {} joined", client())), out),
            NoteKind::ClientLeft => self.note(&self.paint.dim(&format!("· {} left", client())), out),
            // Raw messages are for protocol debugging; a single note reports that there are some.
            NoteKind::Raw if self.raw_noted => {}
            NoteKind::Raw => {
                self.raw_noted = true;
                let text = "· the agent sent something that this version cannot show: see `plexus tail --json`";
                self.note(&self.paint.dim(text), out);
            }
            NoteKind::ClientServed | NoteKind::Hook | NoteKind::Malformed(_) => {
                self.note(&self.paint.dim(&format!("· {}", kind.kind().as_str())), out);
            }
        }
    }

    fn runtime_status(&mut self, body: &RuntimeStatusBody, out: &mut String) {
        let RuntimeStatusBody { status, message, exit, .. } = body;
        let parts = [Some(status.as_ref()), message.as_deref()].into_iter().flatten();
        let parts: Vec<String> = parts.map(|part| line(part, FIELD_MAX)).filter(|part| !part.is_empty()).collect();
        let text = format!("· runtime {}", parts.join(": "));
        let bad = matches!(status.as_ref(), "exited" | "stuck" | "unasked");
        self.note(&if bad { self.paint.red(&text) } else { self.paint.dim(&text) }, out);
        let stderr = exit.as_ref().map_or("", |exit| &exit.stderr_tail);
        for tail in stderr.lines().filter(|_| bad) {
            self.note(&self.paint.dim(&format!("  {}", line(tail, FIELD_MAX))), out);
        }
    }

    fn tool(&mut self, session: &str, id: String, update: Map<String, Value>, out: &mut String) {
        let key = (session.to_owned(), id);
        let known = self.tools.get(&key).cloned();
        let old_status = known.as_ref().map(|call| call.status().to_owned());
        let mut call = known.unwrap_or_default();
        call.update(update);
        let (title, status) = (line(call.title(), FIELD_MAX), line(call.status(), FIELD_MAX));
        if old_status.as_deref() != Some(&status) {
            let text = format!("{} {title}", status_mark(&status));
            let text = match status.as_str() {
                "completed" => self.paint.green(&text),
                "failed" => self.paint.red(&format!("{text} (failed)")),
                "" | "pending" => text,
                other => format!("{text} {}", self.paint.dim(&format!("({})", other.replace('_', " ")))),
            };
            self.name_parent(out);
            self.note(&format!("{}{text}", self.indent()), out);
        }
        let diffs: Vec<String> = call
            .content()
            .filter_map(|content| match content {
                ToolContent::Diff { path, old, new } => {
                    let path = line(if path.is_empty() { "?" } else { path }, FIELD_MAX);
                    let (now, before) = (new.lines().count(), old.map_or(0, |old| old.lines().count()));
                    Some(format!("  {path}: {now} lines, were {before}"))
                }
                ToolContent::Text(_) | ToolContent::Block(_) | ToolContent::Terminal(_) | ToolContent::Other(_) => None,
            })
            .collect();
        if !diffs.is_empty() && diffs != self.diffs {
            for diff in &diffs {
                self.note(&format!("{}{}", self.indent(), self.paint.dim(diff)), out);
            }
            self.diffs = diffs;
        }
        if self.tools.len() < TOOLS_MAX || self.tools.contains_key(&key) {
            call.forget_details();
            self.tools.insert(key, call);
        }
    }

    fn plan(&mut self, entries: &[PlanEntry], out: &mut String) {
        self.note(&self.paint.bold("plan"), out);
        for entry in entries {
            let text = line(&entry.content, FIELD_MAX);
            let text = match entry.status.as_str() {
                "completed" => self.paint.green(&format!("  ✔ {text}")),
                "in_progress" => self.paint.bold(&format!("  ▸ {text}")),
                _ => format!("  · {text}"),
            };
            self.note(&text, out);
        }
    }
}

fn status_mark(status: &str) -> &'static str {
    match status {
        "completed" => "✔",
        "failed" => "✘",
        "in_progress" => "▸",
        _ => "○",
    }
}

/// The outcome of a request as text: "allowed by phone (allow_once)".
pub(crate) fn outcome_text(outcome: Outcome) -> String {
    let text_parts = line(&outcome.summary(), FIELD_MAX);
    if outcome.decided == Decided::Allowed && outcome.given {
        let answers = outcome.answers.iter().map(|(id, text_parts)| format!("{id}: {}", text_parts.join(", ")));
        let answers = answers.collect::<Vec<_>>().join("; ");
        return if answers.is_empty() { text_parts } else { format!("{text_parts}: {}", line(&answers, FIELD_MAX)) };
    }
    let option = outcome.option.map(|option| format!(" ({})", line(&option, FIELD_MAX))).unwrap_or_default();
    match outcome.edited.filter(|_| outcome.decided == Decided::Allowed) {
        Some(edited) => format!("{text_parts}{option}, changed to: {}", line(&edited, FIELD_MAX)),
        None => format!("{text_parts}{option}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An event; the members that the gateway always sends are added to its body.
    fn envelope(kind: &str, mut event: Value) -> EventEnvelope {
        let always = match kind {
            "run_started" | "run_status" | "run_ended" => json!({ "run_id": "r_1", "status": "running" }),
            "runtime_status" => json!({ "runtime_id": "demo" }),
            "error" => json!({ "code": "failed" }),
            "client_joined" | "client_left" => json!({ "device_id": "d_1" }),
            _ => json!({}),
        };
        if let (Some(body), Value::Object(always)) = (event.as_object_mut(), always) {
            for (name, value) in always {
                body.entry(name).or_insert(value);
            }
        }
        let wire = json!({
            "session_id": "s_1", "run_id": "r_1", "seq": 0, "cursor": "e:1", "at": "2026-01-02T03:04:05.678Z", "kind": kind, "event": event,
            "meta": { "runtime_id": "demo", "dialect": "acp" },
        });
        serde_json::from_str(&wire.to_string()).unwrap()
    }

    fn render(events: &[(&str, Value)]) -> String {
        let (mut view, mut out) = (View::new(Paint::none(), false), String::new());
        for (kind, event) in events {
            view.event(&envelope(kind, event.clone()), &mut out);
        }
        view.end_line(&mut out);
        out
    }

    fn chunk(text: &str) -> Value {
        json!({ "content": { "type": "text", "text": text } })
    }

    #[test]
    fn surface_is_printed_when_it_is_shown() {
        let whole = json!({ "surface": "b", "rev": 1, "title": "Build", "pinned": false, "messages": [
            { "version": "v0.9", "createSurface": { "surfaceId": "b", "catalogId": "plexus:catalog/1" } },
            { "version": "v0.9", "updateComponents": { "surfaceId": "b", "components": [
                { "id": "root", "component": "Text", "text": { "path": "/t" } }] } },
            { "version": "v0.9", "updateDataModel": { "surfaceId": "b", "path": "/", "value": { "t": "one\n\u{1b}[2Jtwo" } } }] });
        let change = json!({ "surface": "b", "rev": 2, "base": 1, "messages": [
            { "version": "v0.9", "updateDataModel": { "surfaceId": "b", "path": "/t", "value": "three" } }] });
        let closed = json!({ "surface": "b", "rev": 3, "base": 2, "closed": true, "messages": [] });
        let text = render(&[("surface_updated", whole), ("surface_updated", change), ("surface_updated", closed)]);
        assert_eq!(text, "· surface Build\n  │ one\n  │ \\u{1b}[2Jtwo\n· surface b is closed\n");
    }

    #[test]
    fn run_is_printed_as_a_conversation() {
        let text = render(&[
            ("run_started", json!({})),
            ("user_message_chunk", chunk("hi")),
            ("agent_thought_chunk", chunk("hm")),
            ("agent_message_chunk", chunk("hel")),
            ("agent_message_chunk", chunk("lo")),
            ("tool_call", json!({ "toolCallId": "c", "title": "touch a", "status": "pending" })),
            ("tool_call_update", json!({ "toolCallId": "c", "status": "completed" })),
            ("tool_call_update", json!({ "toolCallId": "c", "rawOutput": {} })),
            ("agent_message_chunk", chunk("bye\n")),
            ("run_ended", json!({ "status": "completed", "stop_reason": "end_turn" })),
        ]);
        assert_eq!(text, "> hi\nhm\nhello\n○ touch a\n✔ touch a\nbye\n· done\n");
    }

    #[test]
    fn view_shows_subagents_under_the_call_that_started_them() {
        let under = |parent: &str, mut body: Value| {
            body["_meta"] = json!({ "claudeCode": { "parentToolUseId": parent } });
            body
        };
        let call = |id: &str, title: &str| json!({ "toolCallId": id, "title": title, "status": "pending" });
        let text = render(&[
            ("tool_call", call("a", "Explore\u{1b}[31m")),
            ("tool_call", under("a", call("b", "ls"))),
            ("agent_message_chunk", under("a", chunk("I see\n"))),
            ("agent_message_chunk", under("a", chunk("two."))),
            ("tool_call", under("b", call("c", "deeper"))),
            ("agent_message_chunk", under("never", chunk("bye"))),
        ]);
        let title = line("Explore\u{1b}[31m", FIELD_MAX);
        let expected = format!("○ {title}\n  ↳ in {title}\n  ○ ls\n  I see\n  two.\n    ↳ in ls\n    ○ deeper\nbye\n");
        assert_eq!(text, expected);
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn agent_text_never_reaches_the_terminal_raw() {
        let evil = "\u{1b}]0;x\u{7}\u{202e}\r";
        let text = render(&[
            ("agent_message_chunk", chunk(evil)),
            ("agent_message_chunk", json!({ "content": { "type": evil, "uri": evil } })),
            (
                "tool_call",
                json!({ "toolCallId": evil, "title": evil, "status": evil, "content": [{ "type": "diff", "path": evil }] }),
            ),
            ("plan", json!({ "entries": [{ "content": evil }] })),
            ("run_ended", json!({ "status": evil, "stop_reason": evil, "message": evil })),
            ("request_opened", json!({ "title": evil, "request_id": evil })),
            ("request_resolved", json!({ "state": "answered", "option_id": evil, "resolved_by": { "name": evil } })),
            ("request_resolved", json!({ "state": evil })),
            ("runtime_status", json!({ "status": "exited", "message": evil, "stderr_tail": evil })),
            ("error", json!({ "message": evil })),
            ("client_joined", json!({ "name": evil })),
            ("current_mode_update", json!({ "currentModeId": evil })),
            ("session_info_update", json!({ "title": evil })),
            ("raw", json!({ "text": evil })),
            (evil, json!({})),
        ]);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']), "{text:?}");
    }

    #[test]
    fn tool_call_without_an_end_is_not_shown_as_failed() {
        let end = json!({ "toolCallId": "c", "status": "failed", "_meta": { "plexus": { "synthesized": true, "reason": "x" } } });
        let begin = json!({ "toolCallId": "c", "title": "ls", "status": "pending" });
        assert_eq!(render(&[("tool_call", begin), ("tool_call_update", end)]), "○ ls\n○ ls (not reported)\n");
    }

    #[test]
    fn unknown_events_are_reported_once_and_in_words() {
        let text = render(&[("raw", json!({ "a": 1 })), ("raw", json!({ "b": 2 })), ("odd", json!({ "c": 3 }))]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('{'), "{text}");
    }

    #[test]
    fn request_outcomes_each_have_a_text() {
        let by = json!({ "device_id": "d_1", "name": "phone" });
        for (members, text_parts) in [
            (json!({ "state": "answered", "ok": true, "option_id": "once" }), "allowed by phone (once)"),
            (json!({ "state": "answered", "ok": false }), "denied by phone"),
            (json!({ "state": "withdrawn" }), "withdrawn by phone"),
            (json!({ "state": "expired" }), "expired: nobody answered in time"),
            (json!({ "state": "hologram" }), "closed"),
        ] {
            let mut receipt = json!({ "request_id": "q_1", "resolved_by": by, "at": "2026-01-02T03:04:05.678Z" });
            receipt.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            assert_eq!(outcome_text(Outcome::read(&receipt)), text_parts);
        }
    }
}
