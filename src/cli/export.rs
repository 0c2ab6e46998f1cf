//! `plexus export`: a session as a file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::args::{self, Format};
use super::client::Client;
use super::stream::Envelope;
use super::term::{clean, line};
use super::view::outcome;
use super::{Failure, Outcome};

/// Events asked for at once.
const PAGE: usize = 2000;
/// Longest title, in characters.
const TITLE: usize = 200;

#[derive(Deserialize)]
struct Page {
    events: Vec<Box<RawValue>>,
    next: String,
    head: String,
}

pub(crate) async fn export(args: args::Export) -> Outcome {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?;
    let mut after = String::new();
    let mut story = Story::default();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    // What happens during the export is not part of it: it ends where the log ended when it began.
    let mut until: Option<u64> = None;
    let position = |cursor: &str| cursor.rsplit(':').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(u64::MAX);
    loop {
        let path = format!("/v1/sessions/{}/events?limit={PAGE}&after={after}", session.session_id);
        let page: Page = client.get(&path, "reading the session").await?;
        let until = *until.get_or_insert_with(|| position(&page.head));
        for raw in page.events {
            if args.format == Format::Ndjson {
                writeln!(out, "{}", raw.get())?;
            } else if let Some(envelope) = Envelope::read(raw) {
                story.event(&envelope);
            }
        }
        if page.next == after || position(&page.next) >= until {
            break;
        }
        after = page.next;
    }
    let title = session.title.clone().unwrap_or_else(|| session.session_id.to_string());
    let head = Head {
        title,
        facts: vec![
            ("Session", session.session_id.to_string()),
            ("Runtime", format!("{} ({})", session.runtime_id, line(&session.dialect, TITLE))),
            ("Folder", line(&session.cwd, TITLE)),
            ("Begun", session.created_at.to_string()),
        ],
    };
    match args.format {
        Format::Ndjson => {}
        Format::Md => out.write_all(markdown(&head, &story).as_bytes())?,
        Format::Html => out.write_all(html(&head, &story).as_bytes())?,
    }
    out.flush().map_err(|why| match why.kind() {
        std::io::ErrorKind::BrokenPipe => anyhow::Error::from(why),
        _ => Failure::plain(format!("writing the export: {why}; is there room?")),
    })?;
    Ok(0)
}

struct Head {
    title: String,
    facts: Vec<(&'static str, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    User,
    Agent,
    Thought,
}

#[derive(Debug, PartialEq)]
enum Part {
    Said(Who, String),
    Tool { title: String, status: String, output: String },
    Note(String),
}

/// A session's events folded to what is read.
#[derive(Default)]
struct Story {
    parts: Vec<Part>,
    tools: BTreeMap<String, usize>,
}

impl Story {
    fn event(&mut self, envelope: &Envelope) {
        let body = &envelope.event;
        let text = |name: &str| body[name].as_str().unwrap_or_default();
        match envelope.kind.as_str() {
            "user_message_chunk" => self.said(Who::User, &body["content"]),
            "agent_message_chunk" => self.said(Who::Agent, &body["content"]),
            "agent_thought_chunk" => self.said(Who::Thought, &body["content"]),
            "tool_call" | "tool_call_update" => self.tool(body),
            "plan" => {
                let entries = body["entries"].as_array().into_iter().flatten();
                let entries = entries.map(|entry| {
                    let done = if entry["status"] == "completed" { "x" } else { " " };
                    format!("[{done}] {}", line(entry["content"].as_str().unwrap_or_default(), TITLE))
                });
                self.note(format!("Plan: {}", entries.collect::<Vec<_>>().join(", ")));
            }
            "request_opened" => self.note(format!("Asked: {}", text("display"))),
            "request_resolved" => self.note(format!("Request {}", outcome(body))),
            "run_ended" if body["status"] != "completed" => {
                self.note(format!("Run {}: {}", text("status"), text("message")));
            }
            "runtime_status" if body["status"] == "exited" => self.note(format!("Runtime exited: {}", text("message"))),
            "error" => self.note(format!("Error: {}", text("message"))),
            "raw" => self.note(format!("Not understood: {body}")),
            _ => {}
        }
    }

    fn note(&mut self, text: String) {
        self.parts.push(Part::Note(text));
    }

    fn said(&mut self, who: Who, content: &Value) {
        let text = match content["text"].as_str() {
            Some(text) => text.to_owned(),
            None => {
                let name = content["uri"].as_str().or(content["name"].as_str()).unwrap_or_default();
                format!("[{} {name}]", content["type"].as_str().unwrap_or("content"))
            }
        };
        match self.parts.last_mut() {
            Some(Part::Said(last, so_far)) if *last == who => so_far.push_str(&text),
            _ => self.parts.push(Part::Said(who, text)),
        }
    }

    fn tool(&mut self, body: &Value) {
        let id = body["toolCallId"].as_str().unwrap_or_default().to_owned();
        let at = *self.tools.entry(id).or_insert_with(|| {
            self.parts.push(Part::Tool { title: "tool".into(), status: String::new(), output: String::new() });
            self.parts.len() - 1
        });
        let Some(Part::Tool { title, status, output }) = self.parts.get_mut(at) else { return };
        if let Some(new) = body["title"].as_str() {
            new.clone_into(title);
        }
        if let Some(new) = body["status"].as_str() {
            new.clone_into(status);
        }
        if let Some(parts) = body["content"].as_array() {
            output.clear();
            for part in parts {
                if let Some(text) = part["content"]["text"].as_str() {
                    let _ = writeln!(output, "{text}");
                } else if part["type"] == "diff" {
                    let _ = writeln!(output, "{}", part["path"].as_str().unwrap_or_default());
                    for (sign, name) in [('-', "oldText"), ('+', "newText")] {
                        for text in part[name].as_str().unwrap_or_default().lines() {
                            let _ = writeln!(output, "{sign}{text}");
                        }
                    }
                }
            }
        }
    }
}

/// Words that may hold anything, as a Markdown block that they cannot leave.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}

fn markdown(head: &Head, story: &Story) -> String {
    let mut out = format!("# {}\n\n", plain(&line(&head.title, TITLE)));
    for (name, value) in &head.facts {
        let _ = writeln!(out, "- {name}: {}", plain(value));
    }
    for part in &story.parts {
        out.push('\n');
        match part {
            // An agent writes Markdown; quoted, so that a heading of its own is not taken for one of ours.
            Part::Said(who, text) => {
                let _ = writeln!(out, "**{}**\n", name(*who));
                for text in clean(text).trim_end().split('\n') {
                    out.push_str(if text.is_empty() { ">" } else { "> " });
                    out.push_str(text);
                    out.push('\n');
                }
            }
            Part::Tool { title, status, output } => {
                let _ = writeln!(out, "**Tool** {} ({})", plain(&line(title, TITLE)), plain(&line(status, TITLE)));
                if !output.is_empty() {
                    let _ = write!(out, "\n{}", fence(&clean(output)));
                }
            }
            Part::Note(text) => {
                let _ = writeln!(out, "*{}*", plain(&line(text, 2000)));
            }
        }
    }
    out
}

/// Text in which nothing is Markdown or HTML.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '&' | '~') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn name(who: Who) -> &'static str {
    match who {
        Who::User => "User",
        Who::Agent => "Agent",
        Who::Thought => "Thought",
    }
}

/// Text as HTML text, for element content and quoted attributes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// No script, no request to anywhere: the file can be passed on.
const HTML_HEAD: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: .3rem 0; }
section { border-left: 3px solid #8888; padding: .1rem 1rem; margin: 1rem 0; }
.user { border-color: #27c; } .thought { opacity: .7; } .tool pre { font-family: monospace; font-size: .9em; }
.note { opacity: .8; font-style: italic; } h2 { font-size: .85rem; margin: .3rem 0; }
</style>
"#;

fn html(head: &Head, story: &Story) -> String {
    let mut out = String::from(HTML_HEAD);
    let title = escape(&line(&head.title, TITLE));
    let _ = writeln!(out, "<title>{title}</title>\n<h1>{title}</h1>\n<ul>");
    for (name, value) in &head.facts {
        let _ = writeln!(out, "<li>{name}: {}</li>", escape(value));
    }
    out.push_str("</ul>\n");
    for part in &story.parts {
        let _ = match part {
            Part::Said(who, text) => {
                let (class, name) = (name(*who).to_lowercase(), name(*who));
                writeln!(out, "<section class=\"{class}\"><h2>{name}</h2><pre>{}</pre></section>", escape(text))
            }
            Part::Tool { title, status, output } => {
                let (title, status) = (escape(&line(title, TITLE)), escape(&line(status, TITLE)));
                writeln!(
                    out,
                    "<section class=\"tool\"><h2>{title} ({status})</h2><pre>{}</pre></section>",
                    escape(output)
                )
            }
            Part::Note(text) => writeln!(out, "<section class=\"note\"><pre>{}</pre></section>", escape(text)),
        };
    }
    out.push_str("</html>\n");
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn story(events: &[(&str, Value)]) -> Story {
        let mut story = Story::default();
        for (kind, event) in events {
            let wire = json!({ "session_id": "s", "run_id": "r", "cursor": "e:1", "kind": kind, "event": event });
            story.event(&Envelope::read(serde_json::value::to_raw_value(&wire).unwrap()).unwrap());
        }
        story
    }

    fn said(text: &str) -> Value {
        json!({ "content": { "type": "text", "text": text } })
    }

    fn head(title: &str) -> Head {
        Head { title: title.into(), facts: vec![("Session", "s".into())] }
    }

    #[test]
    fn chunks_join_and_tools_keep_their_place() {
        let story = story(&[
            ("user_message_chunk", said("hi")),
            ("agent_message_chunk", said("he")),
            ("agent_message_chunk", said("llo")),
            ("tool_call", json!({ "toolCallId": "c", "title": "ls", "status": "pending" })),
            ("agent_message_chunk", said("after")),
            (
                "tool_call_update",
                json!({
                    "toolCallId": "c", "status": "completed", "content": [{ "type": "content", "content": { "type": "text", "text": "a.txt" } }]
                }),
            ),
        ]);
        assert_eq!(
            story.parts,
            [
                Part::Said(Who::User, "hi".into()),
                Part::Said(Who::Agent, "hello".into()),
                Part::Tool { title: "ls".into(), status: "completed".into(), output: "a.txt\n".into() },
                Part::Said(Who::Agent, "after".into()),
            ]
        );
        let text = markdown(&head("T"), &story);
        assert!(
            text.contains("**User**\n\n> hi\n\n**Agent**\n\n> hello\n\n**Tool** ls (completed)\n\n```\na.txt\n```\n"),
            "{text}"
        );
    }

    #[test]
    fn nothing_an_agent_says_is_markup() {
        let evil = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u{1b}[2J\n# heading\n```\n";
        let tool = json!({
            "toolCallId": "c", "title": evil, "status": evil, "content": [{ "content": { "text": evil } }],
        });
        let story =
            story(&[("agent_message_chunk", said(evil)), ("tool_call", tool), ("error", json!({ "message": evil }))]);
        let text = html(&head(evil), &story);
        let body = text.strip_prefix(HTML_HEAD).unwrap();
        assert!(!body.contains("<script") && !body.contains("<img") && !body.contains('\u{1b}'), "{body}");
        let text = markdown(&head(evil), &story);
        assert!(text.contains("````\n"), "the fence is longer than what it holds: {text}");
        assert!(!text.contains('\u{1b}') && !text.contains("\n# heading\n**"), "{text}");
        assert!(text.starts_with("# \\<script\\>"), "{text}");
    }
}
