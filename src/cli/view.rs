//! How events look in a terminal. Pure: an event in, text out; every word of an agent made harmless on the way.

use std::collections::HashMap;

use plexus_protocol::Request;
use serde_json::Value;

use super::card::{card, how};
use super::term::{Cleaner, Paint, line};
use plexus_client::Envelope;

/// Longest title, status or other field shown in one line, in characters.
const FIELD: usize = 200;
/// Tool calls whose titles are remembered; beyond it an update shows without its title.
const TOOLS: usize = 4096;

/// What the last line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    None,
    User,
    Agent,
    Thought,
}

/// A running picture of events.
pub(crate) struct View {
    paint: Paint,
    block: Block,
    /// Whether the last character shown ended a line.
    fresh: bool,
    cleaner: Cleaner,
    tools: HashMap<(String, String), (String, String)>,
    /// The diff lines shown last: agents repeat them with every update.
    diffs: Vec<String>,
    /// Names the session where it changes; for several at once.
    many: bool,
    session: String,
    /// Whether it was told that not everything is understood.
    odd: bool,
}

impl View {
    pub(crate) fn new(paint: Paint, many: bool) -> Self {
        let tools = HashMap::new();
        Self {
            paint,
            block: Block::None,
            fresh: true,
            cleaner: Cleaner::default(),
            tools,
            diffs: Vec::new(),
            many,
            session: String::new(),
            odd: false,
        }
    }

    /// Ends an unfinished line.
    pub(crate) fn settle(&mut self, out: &mut String) {
        self.cleaner.finish(out);
        if !self.fresh {
            out.push('\n');
        }
        self.fresh = true;
        self.block = Block::None;
    }

    fn words(&mut self, block: Block, text: &str, out: &mut String) {
        if self.block != block {
            self.settle(out);
            self.block = block;
            if block == Block::User {
                out.push_str(&self.paint.bold("> "));
            }
        }
        let mut shown = String::new();
        self.cleaner.push(text.as_bytes(), &mut shown);
        if shown.is_empty() {
            return;
        }
        self.fresh = shown.ends_with('\n');
        out.push_str(&match block {
            Block::Thought => self.paint.dim(&shown),
            Block::User => self.paint.bold(&shown),
            Block::Agent | Block::None => shown,
        });
    }

    /// A line of our own; what in it comes from others was made harmless before.
    pub(crate) fn note(&mut self, text: &str, out: &mut String) {
        self.settle(out);
        out.push_str(text);
        out.push('\n');
    }

    /// The session so far, in place of events that are no longer kept.
    pub(crate) fn snapshot(&mut self, snapshot: &Value, out: &mut String) {
        for session in snapshot["snapshots"].as_array().into_iter().flatten() {
            let id = line(session["session"]["session_id"].as_str().unwrap_or_default(), FIELD);
            self.note(&self.paint.dim(&format!("── {id}: the beginning is no longer kept; so far:")), out);
            for message in session["messages"].as_array().into_iter().flatten() {
                let block = match message["role"].as_str() {
                    Some("user") => Block::User,
                    Some("thought") => Block::Thought,
                    _ => Block::Agent,
                };
                self.settle(out);
                self.words(block, message["text"].as_str().unwrap_or_default(), out);
            }
            self.settle(out);
        }
    }

    /// Shows an event.
    pub(crate) fn event(&mut self, envelope: &Envelope, out: &mut String) {
        if self.many && self.session != envelope.session_id {
            self.session.clone_from(&envelope.session_id);
            let of = line(&format!("── {} · {}", envelope.session_id, envelope.runtime_id), FIELD);
            self.note(&self.paint.dim(&of), out);
        }
        let body = &envelope.event;
        let field = |name: &str| line(body[name].as_str().unwrap_or_default(), FIELD);
        match envelope.kind.as_str() {
            "user_message_chunk" => self.content(Block::User, &body["content"], out),
            "agent_message_chunk" => self.content(Block::Agent, &body["content"], out),
            "agent_thought_chunk" => self.content(Block::Thought, &body["content"], out),
            "tool_call" | "tool_call_update" => self.tool(envelope, out),
            "plan" => self.plan(body, out),
            "run_started" => {}
            "run_status" => match body["status"].as_str() {
                Some("queued") => self.note(&self.paint.dim("· queued behind the run before it"), out),
                Some("running") if body["cancelling"] == true => {
                    let by = line(body["by"]["name"].as_str().unwrap_or("somebody"), FIELD);
                    self.note(&self.paint.dim(&format!("· {by} cancels the run")), out);
                }
                _ => {}
            },
            "run_ended" => {
                let words = [field("stop_reason"), field("message")].into_iter().filter(|word| !word.is_empty());
                let words = words.filter(|word| word != "end_turn").collect::<Vec<_>>().join(", ");
                let words = if words.is_empty() { String::new() } else { format!(": {words}") };
                let text = match body["status"].as_str() {
                    Some("completed") => self.paint.dim(&format!("· done{words}")),
                    Some("cancelled") => self.paint.yellow(&format!("· cancelled{words}")),
                    _ => self.paint.red(&format!("· failed{words}")),
                };
                self.note(&text, out);
            }
            "request_opened" | "request_updated" => {
                self.settle(out);
                match serde_json::from_value::<Request>(body.clone()) {
                    Ok(request) => {
                        out.push_str(&card(&request, self.paint));
                        self.note(&self.paint.dim(&format!("  {}", how(&request))), out);
                    }
                    Err(_) => {
                        let (title, id) = (field("title"), field("request_id"));
                        self.note(&self.paint.yellow(&format!("? {title}")), out);
                        self.note(&self.paint.dim(&format!("  {id}: plexus answer {id} --allow | --deny")), out);
                    }
                }
            }
            "request_resolved" => {
                let text = outcome(body);
                self.note(&self.paint.dim(&format!("· {text}")), out);
            }
            "runtime_status" => {
                let words = [field("status"), field("message")].into_iter().filter(|word| !word.is_empty());
                let text = format!("· runtime {}", words.collect::<Vec<_>>().join(": "));
                let bad = matches!(body["status"].as_str(), Some("exited" | "stuck"));
                self.note(&if bad { self.paint.red(&text) } else { self.paint.dim(&text) }, out);
                for tail in body["stderr_tail"].as_str().unwrap_or_default().lines().filter(|_| bad) {
                    self.note(&self.paint.dim(&format!("  {}", line(tail, FIELD))), out);
                }
            }
            "error" => self.note(&self.paint.red(&format!("! {}", field("message"))), out),
            "client_joined" | "client_left" => {
                let did = if envelope.kind == "client_joined" { "joined" } else { "left" };
                self.note(&self.paint.dim(&format!("· {} {did}", field("name"))), out);
            }
            "current_mode_update" => self.note(&self.paint.dim(&format!("· mode {}", field("currentModeId"))), out),
            "session_info_update" if body["title"].is_string() => {
                self.note(&self.paint.dim(&format!("· title: {}", field("title"))), out);
            }
            // Of interest to a program, not to a reader: commands offered, options, tokens.
            "available_commands_update" | "config_option_update" | "usage_update" | "session_info_update" => {}
            // Whole, it is for whoever looks into the protocol; a reader is told once that there is some.
            "raw" if self.odd => {}
            "raw" => {
                self.odd = true;
                let text = "· the agent says more than is understood here: `plexus tail --json` has it";
                self.note(&self.paint.dim(text), out);
            }
            other => self.note(&self.paint.dim(&line(&format!("· {other}"), FIELD)), out),
        }
    }

    fn content(&mut self, block: Block, content: &Value, out: &mut String) {
        match (content["type"].as_str(), content["text"].as_str()) {
            (Some("text") | None, Some(text)) => self.words(block, text, out),
            (kind, _) => {
                let name = content["uri"].as_str().or(content["name"].as_str()).or(content["mimeType"].as_str());
                let text = format!("[{} {}]", kind.unwrap_or("content"), name.unwrap_or_default());
                self.words(block, &line(&text, FIELD), out);
            }
        }
    }

    fn tool(&mut self, envelope: &Envelope, out: &mut String) {
        let body = &envelope.event;
        let key = (envelope.session_id.clone(), body["toolCallId"].as_str().unwrap_or_default().to_owned());
        let known = self.tools.get(&key).cloned();
        let (old_title, old_status) = known.clone().unwrap_or_default();
        let title = body["title"].as_str().map_or(old_title, |title| line(title, FIELD));
        let status = status_of(body).map_or_else(|| old_status.clone(), |status| line(status, FIELD));
        if self.tools.len() < TOOLS || known.is_some() {
            self.tools.insert(key, (title.clone(), status.clone()));
        }
        if known.is_none() || status != old_status {
            let text = format!("{} {title}", mark(&status));
            let text = match status.as_str() {
                "completed" => self.paint.green(&text),
                "failed" => self.paint.red(&format!("{text} (failed)")),
                "" | "pending" => text,
                other => format!("{text} {}", self.paint.dim(&format!("({})", other.replace('_', " ")))),
            };
            self.note(&text, out);
        }
        let parts = body["content"].as_array().into_iter().flatten().filter(|part| part["type"] == "diff");
        let diffs: Vec<String> = parts
            .map(|part| {
                let lines = |name: &str| part[name].as_str().map_or(0, |text| text.lines().count());
                let path = line(part["path"].as_str().unwrap_or("?"), FIELD);
                format!("  {path}: {} lines, were {}", lines("newText"), lines("oldText"))
            })
            .collect();
        if !diffs.is_empty() && diffs != self.diffs {
            for diff in &diffs {
                self.note(&self.paint.dim(diff), out);
            }
            self.diffs = diffs;
        }
    }

    fn plan(&mut self, body: &Value, out: &mut String) {
        self.note(&self.paint.bold("plan"), out);
        for entry in body["entries"].as_array().into_iter().flatten() {
            let text = line(entry["content"].as_str().unwrap_or_default(), FIELD);
            let text = match entry["status"].as_str() {
                Some("completed") => self.paint.green(&format!("  ✔ {text}")),
                Some("in_progress") => self.paint.bold(&format!("  ▸ {text}")),
                _ => format!("  · {text}"),
            };
            self.note(&text, out);
        }
    }
}

/// The status of a tool call that an event tells. An agent that never told its end is not told to have failed.
fn status_of(body: &Value) -> Option<&str> {
    let status = body["status"].as_str()?;
    Some(if body["_meta"]["plexus"]["synthesized"] == true { "not_reported" } else { status })
}

fn mark(status: &str) -> &'static str {
    match status {
        "completed" => "✔",
        "failed" => "✘",
        "in_progress" => "▸",
        _ => "○",
    }
}

/// What became of a request, in words: "allowed by phone (allow_once)".
pub(crate) fn outcome(receipt: &Value) -> String {
    let field = |value: &Value| line(value.as_str().unwrap_or_default(), FIELD);
    let by = field(&receipt["resolved_by"]["name"]);
    let option = match receipt["option_id"].as_str() {
        Some(_) => format!(" ({})", field(&receipt["option_id"])),
        None => String::new(),
    };
    // Where words or choices were asked for, a yes is an answer.
    let given = ["value", "ids", "answers"].iter().any(|name| !receipt[name].is_null());
    match (receipt["state"].as_str(), receipt["ok"].as_bool()) {
        (Some("answered"), Some(true)) if given => match receipt["answers"].as_object() {
            Some(answers) => {
                let said = answers.iter().map(|(id, words)| {
                    let words = words.as_array().into_iter().flatten().filter_map(Value::as_str);
                    format!("{id}: {}", words.collect::<Vec<_>>().join(", "))
                });
                format!("answered by {by}: {}", line(&said.collect::<Vec<_>>().join("; "), FIELD))
            }
            None => format!("answered by {by}"),
        },
        (Some("answered"), Some(true)) => match receipt["edited_display"].as_str() {
            Some(edited) => format!("allowed by {by}{option}, changed to: {}", line(edited, FIELD)),
            None => format!("allowed by {by}{option}"),
        },
        (Some("answered"), Some(false)) => format!("denied by {by}{option}"),
        (Some("answered"), None) => format!("answered by {by}{option}"),
        (Some("expired"), _) => "expired: nobody answered in time".into(),
        (Some("withdrawn"), _) => format!("withdrawn by {by}"),
        (Some("orphaned"), _) => "nobody can answer it any more: the runtime that asked is gone".into(),
        (other, _) => line(other.unwrap_or("closed"), FIELD),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope(kind: &str, event: Value) -> Envelope {
        let wire = json!({
            "session_id": "s_1", "run_id": "r_1", "seq": 0, "cursor": "e:1", "at": "2026-01-02T03:04:05.678Z", "kind": kind, "event": event,
            "meta": { "runtime_id": "demo", "dialect": "acp" },
        });
        Envelope::read(serde_json::value::to_raw_value(&wire).unwrap()).unwrap()
    }

    fn shown(events: &[(&str, Value)]) -> String {
        let (mut view, mut out) = (View::new(Paint::none(), false), String::new());
        for (kind, event) in events {
            view.event(&envelope(kind, event.clone()), &mut out);
        }
        view.settle(&mut out);
        out
    }

    fn said(text: &str) -> Value {
        json!({ "content": { "type": "text", "text": text } })
    }

    #[test]
    fn a_run_reads_as_a_conversation() {
        let text = shown(&[
            ("run_started", json!({})),
            ("user_message_chunk", said("hi")),
            ("agent_thought_chunk", said("hm")),
            ("agent_message_chunk", said("hel")),
            ("agent_message_chunk", said("lo")),
            ("tool_call", json!({ "toolCallId": "c", "title": "touch a", "status": "pending" })),
            ("tool_call_update", json!({ "toolCallId": "c", "status": "completed" })),
            ("tool_call_update", json!({ "toolCallId": "c", "rawOutput": {} })),
            ("agent_message_chunk", said("bye\n")),
            ("run_ended", json!({ "status": "completed", "stop_reason": "end_turn" })),
        ]);
        assert_eq!(text, "> hi\nhm\nhello\n○ touch a\n✔ touch a\nbye\n· done\n");
    }

    #[test]
    fn no_word_of_an_agent_reaches_the_terminal_raw() {
        let evil = "\u{1b}]0;x\u{7}\u{202e}\r";
        let text = shown(&[
            ("agent_message_chunk", said(evil)),
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
    fn a_tool_call_without_an_end_is_not_told_to_have_failed() {
        let end = json!({ "toolCallId": "c", "status": "failed", "_meta": { "plexus": { "synthesized": true, "reason": "x" } } });
        let begin = json!({ "toolCallId": "c", "title": "ls", "status": "pending" });
        assert_eq!(shown(&[("tool_call", begin), ("tool_call_update", end)]), "○ ls\n○ ls (not reported)\n");
    }

    #[test]
    fn what_is_not_understood_is_told_once_and_in_words() {
        let text = shown(&[("raw", json!({ "a": 1 })), ("raw", json!({ "b": 2 })), ("odd", json!({ "c": 3 }))]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('{'), "{text}");
    }

    #[test]
    fn every_end_of_a_request_has_its_words() {
        let by = json!({ "name": "phone" });
        for (receipt, words) in [
            (
                json!({ "state": "answered", "ok": true, "option_id": "once", "resolved_by": by }),
                "allowed by phone (once)",
            ),
            (json!({ "state": "answered", "ok": false, "resolved_by": by }), "denied by phone"),
            (json!({ "state": "withdrawn", "resolved_by": by }), "withdrawn by phone"),
            (json!({ "state": "expired" }), "expired: nobody answered in time"),
        ] {
            assert_eq!(outcome(&receipt), words);
        }
    }
}
