//! Tests of the dialect with the output of Qwen Code 0.24.4, shortened.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::output::{ChatLine, chat_line, chat_path, output_line};
use super::question::{ALLOW, DENY};
use super::terminal::{PROMPT_LIMITS, SILENT_TICKS};
use crate::bench;
use plexus_dialects::link::{HelperHello, HelperRole, LINK_VERSION, LinkRequest};
use plexus_dialects::rig::{Rig, choose, json as parsed, spent};
use plexus_dialects::{ResumeTarget, RuntimeEvent};
use plexus_protocol::{Choice, Ticket};

const S: &str = "48d4f8c9-0378";
const CHAT: &str = "/q/projects/-w/chats/48d4f8c9-0378.jsonl";

/// A dialect with one terminal, its files, and its tunnel.
struct Bench {
    rig: Rig,
    output: String,
    chat: String,
    /// The lines that the tunnel has written, and the number of prompts among them.
    input: Vec<String>,
    submits: u64,
    /// `true` if the tunnel replies.
    replies: bool,
    lives: bool,
}

impl Bench {
    fn new() -> Self {
        let output =
            line(json!({ "type": "system", "subtype": "session_start", "data": { "session_id": S, "cwd": "/w" } }));
        let mut bench = Self {
            rig: bench::rig("qwen-terminal"),
            output,
            chat: String::new(),
            input: Vec::new(),
            submits: 0,
            replies: true,
            lives: true,
        };
        assert_eq!(bench.take_reports(), ["ready"]);
        bench
    }

    /// Makes a session that the gateway has opened.
    fn opened() -> Self {
        let mut bench = Self::new();
        bench.connect(1);
        assert_eq!(bench.take_reports(), ["found 48d4f8c9-0378 in /w"]);
        bench.open(ResumeTarget::new(S.into(), false));
        assert_eq!(bench.take_reports(), ["opened 48d4f8c9-0378"]);
        bench
    }

    /// Makes a session that works on a prompt that was typed.
    fn at_work() -> Self {
        let mut bench = Self::opened();
        bench.write(&[user("go")]);
        assert_eq!(bench.take_reports(), ["title go", "began by the terminal", "user: go"]);
        bench
    }

    fn open(&mut self, resume: ResumeTarget) {
        bench::open(&mut self.rig, resume);
        self.serve();
    }

    /// Makes another gateway process that opens the sessions of this one.
    fn next_gateway(&self, asks: &[&str], prompt: Option<(u64, &str)>) -> Self {
        let resume = bench::left_by(&self.rig, S, asks, prompt);
        let mut next = Self {
            output: self.output.clone(),
            chat: self.chat.clone(),
            input: self.input.clone(),
            submits: self.submits,
            lives: self.lives,
            ..Self::new()
        };
        next.output.clone_from(&self.output);
        next.open(resume);
        next
    }

    fn say(&mut self, connection: u64, event: Value) {
        let events = json!({ "hello": hello(), "event": event });
        self.rig.feed(json!({ "connection": connection, "started": 9, "said": events }).to_string());
        self.serve();
    }

    fn hello(&self) -> Value {
        json!({ "type": "hello", "output": "/o.jsonl", "projects": "/q/projects", "submits": self.submits,
            "since": "2026-11-25T21:00:00.000Z" })
    }

    fn connect(&mut self, connection: u64) {
        self.say(connection, self.hello());
    }

    fn disconnect(&mut self, connection: u64) {
        self.rig.feed(json!({ "connection": connection, "started": 9 }).to_string());
        self.serve();
    }

    /// Writes lines of Qwen Code.
    fn write(&mut self, lines: &[Value]) {
        lines.iter().for_each(|events| self.output.push_str(&line(events.clone())));
        self.say(1, json!({ "type": "grown" }));
    }

    fn cancelled(&mut self, call: &str) {
        let result = json!({ "type": "tool_result", "toolCallResult": { "callId": call, "status": "cancelled" } });
        self.chat.push_str(&line(result));
    }

    fn steer(&mut self, text: &str) {
        let message = json!({ "role": "user", "parts": [{ "text": text }] });
        self.chat.push_str(&line(json!({ "type": "user", "subtype": "mid_turn_user_message", "message": message,
            "timestamp": "2026-11-25T21:00:01.000Z" })));
    }

    /// Answers every request of the dialect, as the link endpoint does.
    fn serve(&mut self) {
        while let Some((fetch, request)) = bench::next_request(&mut self.rig) {
            match request {
                LinkRequest::Process(7, 9) if self.lives => self.rig.reply(&fetch, Some((200, ""))),
                LinkRequest::Transcript(part) => {
                    let file = match part.path.to_str().unwrap() {
                        "/o.jsonl" => self.output.clone(),
                        CHAT => self.chat.clone(),
                        _ => String::new(),
                    };
                    bench::reply_with_part(&mut self.rig, &fetch, &part, &file);
                }
                LinkRequest::Tunnel(1.., _) if self.replies => {
                    let body = parsed(fetch.body.as_deref().unwrap());
                    let known = body["once"].as_str().is_some_and(|id| self.input.iter().any(|line| line.contains(id)))
                        || body["submit"].as_u64().is_some_and(|before| before < self.submits);
                    if !known {
                        self.submits += u64::from(body["submit"].is_u64());
                        self.input.push(body["line"].to_string());
                    }
                    self.rig.reply(&fetch, Some((200, "")));
                }
                LinkRequest::Tunnel(..) => self.rig.reply(&fetch, None),
                LinkRequest::Process(..) | LinkRequest::Terminal(_) => self.rig.reply(&fetch, Some((404, ""))),
            }
        }
    }

    fn wake(&mut self, times: u32) {
        for _ in 0..times {
            self.rig.wake();
            self.serve();
        }
    }

    fn answer(&mut self, id: &str, option: &str, kind: Choice) {
        self.rig.answer(id, choose(option, kind));
        self.serve();
    }

    fn prompt(&mut self, ticket: u64, text: &str) {
        self.rig.prompt(ticket, S, text);
        self.serve();
    }

    fn take_reports(&mut self) -> Vec<String> {
        self.rig.take_events().iter().filter_map(describe).collect()
    }
}

fn hello() -> HelperHello {
    let (agent, role, id) = ("qwen".into(), HelperRole::Tunnel, "a".into());
    HelperHello { link: LINK_VERSION, agent, role, id, pid: 7, terminal: None }
}

fn describe(event: &RuntimeEvent) -> Option<String> {
    Some(match event {
        RuntimeEvent::Ready { .. } => "ready".into(),
        RuntimeEvent::Found { native, cwd, .. } => format!("found {native} in {}", cwd.as_deref().unwrap_or_default()),
        RuntimeEvent::Opened { native, .. } => format!("opened {native}"),
        RuntimeEvent::NotOpened { error, .. } => format!("not opened: {}", error.message),
        RuntimeEvent::Began { by, .. } => format!("began by {by}"),
        RuntimeEvent::Closed { native, reason } => format!("closed {native}: {reason}"),
        RuntimeEvent::Asked { ask, .. } => format!("asked {}: {}", ask.key.id(), ask.title),
        RuntimeEvent::TakenBack { key, elsewhere, .. } => {
            let option = elsewhere.as_ref().and_then(|e| e.option_id.clone()).unwrap_or_default();
            format!("{} {option} by {}", key.id(), elsewhere.as_ref().map_or("", |e| &e.by))
        }
        RuntimeEvent::AnswerLost { key, elsewhere, .. } => {
            format!("lost {} to {} of {}", key.id(), elsewhere.option_id.as_deref().unwrap_or_default(), elsewhere.by)
        }
        RuntimeEvent::Ended { ticket, end, .. } => {
            format!("ended {}: {:?} {}", ticket.0, end.status, end.message.as_deref().unwrap_or_default())
        }
        RuntimeEvent::Done { end, .. } => {
            format!("done: {:?} {}", end.status, end.message.as_deref().unwrap_or_default())
        }
        RuntimeEvent::Event { draft, .. } => {
            let body = parsed(&draft.body);
            match body["sessionUpdate"].as_str() {
                Some("agent_message_chunk") => body["content"]["text"].as_str()?.to_owned(),
                Some("agent_thought_chunk") => format!("thought: {}", body["content"]["text"].as_str()?),
                Some("user_message_chunk") => format!("user: {}", body["content"]["text"].as_str()?),
                Some("session_info_update") => format!("title {}", draft.title.as_deref()?),
                Some("tool_call") => format!("tool {}", body["title"].as_str()?),
                Some("tool_call_update") => format!("tool {}", body["status"].as_str()?),
                _ => format!("error: {}", body["message"].as_str()?),
            }
        }
        _ => return None,
    })
}

fn line(mut events: Value) -> String {
    if !events["type"].as_str().unwrap().starts_with("control_") && events["session_id"].is_null() {
        events["session_id"] = S.into();
    }
    format!("{events}\n")
}

fn stream(event: Value) -> Value {
    json!({ "type": "stream_event", "parent_tool_use_id": null, "event": event })
}

fn user(text: &str) -> Value {
    json!({ "type": "user", "message": { "role": "user", "content": [{ "type": "text", "text": text }] } })
}

fn block() -> Value {
    stream(json!({ "type": "content_block_start", "content_block": { "type": "text", "text": "" } }))
}

fn text(text: &str) -> Value {
    stream(json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": text } }))
}

fn stop() -> Value {
    stream(json!({ "type": "message_stop" }))
}

fn calls(calls: &[(&str, &str)]) -> Value {
    let part = |(id, command): &(&str, &str)| json!({ "type": "tool_use", "id": id, "name": "run_shell_command", "input": { "command": command } });
    let content: Vec<Value> = calls.iter().map(part).collect();
    json!({ "type": "assistant", "message": { "role": "assistant", "content": content } })
}

fn asks(id: &str, call: &str) -> Value {
    let request = json!({ "subtype": "can_use_tool", "tool_name": "run_shell_command", "tool_use_id": call,
        "input": { "command": "touch x" } });
    json!({ "type": "control_request", "request_id": id, "request": request })
}

fn decided(id: &str, allowed: bool) -> Value {
    let response = json!({ "subtype": "success", "request_id": id, "response": { "allowed": allowed } });
    json!({ "type": "control_response", "response": response })
}

fn refused(id: &str) -> Value {
    let response = json!({ "subtype": "error", "request_id": id, "error": "unknown request_id" });
    json!({ "type": "control_response", "response": response })
}

fn result(call: &str) -> Value {
    let result = json!({ "type": "tool_result", "tool_use_id": call, "is_error": false, "content": "Output: x" });
    json!({ "type": "user", "message": { "role": "user", "content": [result] } })
}

/// Makes a session in which a call waits for permission.
fn waiting() -> Bench {
    let mut bench = Bench::at_work();
    bench.write(&[calls(&[("c1", "touch x")]), stop(), asks("r1", "c1")]);
    assert_eq!(bench.take_reports(), ["tool touch x", "asked r1: touch x"]);
    bench
}

#[test]
fn qwen_terminal_text_is_shown_once_as_it_comes() {
    let mut bench = Bench::at_work();
    bench.write(&[block(), text("one ")]);
    assert_eq!(bench.take_reports(), ["one "]);
    // A line that is not whole waits for its rest.
    let rest = bench.output.split_off(bench.output.len());
    bench.output.push_str("{\"type\":\"stream_ev");
    bench.write(&[]);
    assert!(bench.take_reports().is_empty() && rest.is_empty());
    bench.output.truncate(bench.output.rfind('\n').unwrap() + 1);
    let whole = json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": "one two" }] } });
    let thought =
        stream(json!({ "type": "content_block_delta", "delta": { "type": "thinking_delta", "thinking": "so" } }));
    bench.write(&[text("two"), whole, block(), thought, stop()]);
    assert_eq!(bench.take_reports(), ["two", "thought: so", "done: Completed "]);
    // The next gateway goes on there.
    let mut next = bench.next_gateway(&[], None);
    next.connect(1);
    next.write(&[user("more")]);
    assert_eq!(next.take_reports(), ["opened 48d4f8c9-0378", "began by the terminal", "user: more"]);
}

#[test]
fn qwen_terminal_tells_the_tokens_of_each_call() {
    let mut bench = Bench::at_work();
    let reports = |parent: Value, output: u64| {
        let usage =
            json!({ "input_tokens": 9, "output_tokens": output, "cache_read_input_tokens": 4, "total_tokens": 12 });
        let message = json!({ "content": [], "usage": usage });
        json!({ "type": "assistant", "parent_tool_use_id": parent, "message": message })
    };
    bench.write(&[reports(Value::Null, 3), reports("a subagent".into(), 1), stop()]);
    assert_eq!(spent(&bench.rig.events).counts(), [Some(18), Some(6), Some(8), None, None]);
}

#[test]
fn qwen_terminal_says_whoever_decided_first() {
    // The terminal.
    let mut bench = waiting();
    bench.write(&[decided("r1", true), result("c1"), block(), text("done"), stop()]);
    assert_eq!(bench.take_reports(), ["r1 allow by the terminal", "tool completed", "done", "done: Completed "]);
    // People elsewhere.
    let mut bench = waiting();
    bench.answer("r1", ALLOW, Choice::AllowOnce);
    assert_eq!(bench.input, [r#"{"type":"confirmation_response","request_id":"r1","allowed":true}"#]);
    bench.write(&[decided("r1", true), result("c1")]);
    assert_eq!(bench.take_reports(), ["tool completed"]);
    assert!(bench.rig.dialect.asks().is_empty());
    // Both, and the terminal was first: with the same answer, and with another one.
    let mut bench = waiting();
    bench.answer("r1", ALLOW, Choice::AllowOnce);
    bench.write(&[decided("r1", true), refused("r1"), refused("r1")]);
    assert_eq!(bench.take_reports(), ["lost r1 to allow of the terminal"]);
    let mut bench = waiting();
    bench.answer("r1", DENY, Choice::RejectOnce);
    bench.write(&[decided("r1", true), refused("r1")]);
    assert_eq!(bench.take_reports(), ["lost r1 to allow of the terminal"]);
    // The terminal said no, which is in the chat file alone; the answer comes before that is read.
    let mut bench = waiting();
    bench.answer("r1", ALLOW, Choice::AllowOnce);
    bench.write(&[refused("r1")]);
    assert_eq!(bench.take_reports(), ["lost r1 to deny of the terminal", "tool failed", "done: Cancelled "]);
}

#[test]
fn qwen_terminal_reads_what_was_cancelled_from_the_chat() {
    let mut bench = waiting();
    bench.cancelled("c1");
    bench.wake(1);
    assert_eq!(bench.take_reports(), ["tool failed", "r1 deny by the terminal", "done: Cancelled "]);
    // A no from elsewhere.
    let mut bench = waiting();
    bench.answer("r1", DENY, Choice::RejectOnce);
    bench.cancelled("c1");
    bench.wake(1);
    assert_eq!(bench.take_reports(), ["tool failed", "done: Cancelled "]);
    // Of two calls one was cancelled: the turn goes on.
    let mut bench = Bench::at_work();
    bench.write(&[calls(&[("c1", "a"), ("c2", "b")]), stop()]);
    bench.cancelled("c1");
    bench.wake(1);
    bench.write(&[result("c1"), result("c2"), block(), text("on")]);
    assert_eq!(bench.take_reports(), ["tool a", "tool b", "tool failed", "tool completed", "on"]);
    // Without the chat file the next prompt says it.
    let mut bench = waiting();
    bench.write(&[user("next")]);
    assert_eq!(
        bench.take_reports(),
        ["r1 deny by the terminal", "done: Cancelled ", "began by the terminal", "user: next"]
    );
}

#[test]
fn qwen_terminal_shows_what_was_typed_into_a_turn() {
    let mut bench = Bench::at_work();
    bench.steer("and this");
    bench.wake(1);
    assert_eq!(bench.take_reports(), ["user: and this"]);
    bench.wake(3);
    assert!(bench.take_reports().is_empty());
    let old = r#"{"type":"user","subtype":"mid_turn_user_message","timestamp":"2026-11-24T00:00:00.000Z","message":{"parts":[{"text":"old"}]}}"#;
    bench.chat.push_str(old);
    bench.chat.push('\n');
    bench.wake(1);
    assert!(bench.take_reports().is_empty(), "it is of an earlier terminal");
}

#[test]
fn qwen_terminal_errors_of_the_service_end_the_turn() {
    let mut bench = Bench::at_work();
    bench.write(&[block(), text("[API Error: 400 no]"), stop()]);
    assert_eq!(bench.take_reports(), ["done: Error [API Error: 400 no]"]);
    bench.write(&[user("x"), block(), text("It said "), text("[API Error: 400 no]"), stop()]);
    assert_eq!(bench.take_reports()[2..], ["It said ", "[API Error: 400 no]", "done: Completed "]);
    // Esc before the first word is written nowhere.
    let mut bench = Bench::at_work();
    bench.wake(SILENT_TICKS - 1);
    assert!(bench.take_reports().is_empty());
    bench.wake(1);
    assert!(bench.take_reports()[0].starts_with("done: Cancelled Qwen Code was silent for a minute"));
    let mut bench = waiting();
    bench.wake(SILENT_TICKS * 2);
    assert!(bench.take_reports().is_empty(), "a question may be open for long");
}

#[test]
fn qwen_terminal_prompts_wait_for_an_idle_terminal() {
    let mut bench = Bench::at_work();
    bench.prompt(5, "from elsewhere");
    assert!(bench.input.is_empty() && bench.rig.dialect.prompts() == [Ticket(5)]);
    bench.write(&[block(), text("x"), stop()]);
    assert_eq!(bench.input, [r#"{"type":"submit","text":"from elsewhere"}"#]);
    bench.take_reports();
    bench.write(&[user("from elsewhere"), block(), text("y"), stop()]);
    assert_eq!(bench.take_reports(), ["y", "ended 5: Completed "]);
    // It was typed into a turn that began at the same time.
    bench.prompt(6, "second");
    bench.write(&[user("typed")]);
    bench.steer("second");
    bench.wake(1);
    bench.write(&[block(), text("z"), stop()]);
    assert_eq!(bench.take_reports(), ["began by the terminal", "user: typed", "z", "ended 6: Completed "]);
    // It is not taken; it is not wanted any more; it is a command.
    bench.prompt(7, "third");
    bench.wake(PROMPT_LIMITS.sent);
    assert_eq!(
        bench.take_reports(),
        ["ended 7: Error Qwen Code did not accept the prompt: it may still wait in its terminal"]
    );
    bench.disconnect(1);
    bench.prompt(8, "fourth");
    bench.rig.cancel(8, S);
    assert_eq!(bench.take_reports(), ["ended 8: Cancelled "]);
    bench.prompt(9, "fifth");
    bench.wake(PROMPT_LIMITS.waiting);
    assert!(bench.take_reports()[0].starts_with("ended 9: Error its terminal is not connected"));
    bench.prompt(10, " /quit");
    assert!(bench.take_reports()[0].contains("begins with \"/\""));
    assert_eq!(bench.input.len(), 3);
    bench.connect(1);
    bench.prompt(11, "sixth");
    assert_eq!(bench.input.len(), 4);
    bench.rig.cancel(11, S);
    assert!(bench.take_reports()[0].contains("press Esc"));
}

#[test]
fn qwen_terminal_goes_on_in_the_next_gateway() {
    // The question is still open there, and the answer reaches it once the tunnel is back.
    let bench = waiting();
    let mut next = bench.next_gateway(&["r1"], None);
    assert_eq!(next.take_reports(), ["opened 48d4f8c9-0378"]);
    next.answer("r1", ALLOW, Choice::AllowOnce);
    next.wake(2);
    assert!(next.input.is_empty());
    next.connect(1);
    assert_eq!(next.input.len(), 1);
    next.write(&[decided("r1", true), result("c1")]);
    assert_eq!(next.take_reports(), ["tool completed"]);
    // An answer that the last gateway had sent is written once.
    let mut bench = waiting();
    bench.answer("r1", ALLOW, Choice::AllowOnce);
    let mut next = bench.next_gateway(&["r1"], None);
    next.answer("r1", ALLOW, Choice::AllowOnce);
    next.connect(1);
    assert_eq!(next.input.len(), 1);
    // A prompt that was written, and one that was not.
    let mut bench = Bench::opened();
    bench.prompt(5, "from elsewhere");
    let mut next = bench.next_gateway(&[], Some((5, "from elsewhere")));
    next.connect(1);
    assert_eq!(next.input.len(), 1);
    next.write(&[user("from elsewhere"), block(), text("y"), stop()]);
    assert_eq!(next.take_reports()[1..], ["title from elsewhere", "y", "ended 5: Completed "]);
    let mut bench = Bench::opened();
    bench.replies = false;
    bench.prompt(5, "from elsewhere");
    assert!(bench.input.is_empty());
    let mut next = bench.next_gateway(&[], Some((5, "from elsewhere")));
    next.connect(1);
    assert_eq!(next.input.len(), 1);
    // The tunnel is back first: what it has read from the beginning is not told again.
    let mut bench = Bench::at_work();
    bench.write(&[block(), text("once")]);
    let mut next = Bench::new();
    (next.output, next.submits) = (bench.output.clone(), bench.submits);
    let (hello, event) = (hello(), next.hello());
    next.rig.feed(json!({ "connection": 1, "started": 9, "said": { "hello": hello, "event": event } }).to_string());
    next.open(bench::left_by(&bench.rig, S, &[], None));
    next.write(&[text("more")]);
    assert_eq!(next.take_reports(), ["opened 48d4f8c9-0378", "more"]);
    // What happened meanwhile, with its prompt taken.
    let mut bench = Bench::opened();
    bench.prompt(5, "from elsewhere");
    bench.output.push_str(&line(user("from elsewhere")));
    let mut next = bench.next_gateway(&[], Some((5, "from elsewhere")));
    assert_eq!(next.take_reports(), ["opened 48d4f8c9-0378", "title from elsewhere"]);
    next.connect(1);
    assert_eq!((next.input.len(), next.rig.dialect.prompts()), (1, vec![Ticket(5)]));
}

#[test]
fn qwen_terminal_ends_with_its_process() {
    let mut bench = waiting();
    bench.output.push_str(&line(decided("r1", false)));
    bench.say(1, json!({ "type": "ended" }));
    assert_eq!(
        bench.take_reports(),
        ["r1 deny by the terminal", "done: Cancelled ", "closed 48d4f8c9-0378: its terminal was closed"]
    );
    assert_eq!(bench.rig.sent()[0]["connection"], 1, "the tunnel may remove the files");
    // While no gateway was running; its files are gone, too.
    let mut bench = waiting();
    bench.lives = false;
    let mut next = bench.next_gateway(&["r1"], None);
    assert!(next.take_reports().contains(&"closed 48d4f8c9-0378: its terminal was closed".to_owned()));
    // It is not known here.
    let mut bench = Bench::new();
    bench.open(ResumeTarget::new(S.into(), true));
    assert!(bench.take_reports()[0].starts_with("not opened: the terminal of this session is not open"));
    // The process is watched, where its tunnel was killed.
    let mut bench = Bench::at_work();
    bench.disconnect(1);
    bench.rig.feed(json!({ "connection": 0, "ended": 7 }).to_string());
    bench.serve();
    assert_eq!(bench.take_reports(), ["done: Cancelled ", "closed 48d4f8c9-0378: its terminal was closed"]);
}

#[test]
fn qwen_terminal_another_conversation_is_another_session() {
    let mut bench = Bench::at_work();
    let mut next = user("afresh");
    next["session_id"] = "other".into();
    bench.write(&[next]);
    assert_eq!(
        bench.take_reports(),
        ["done: Cancelled ", "closed 48d4f8c9-0378: another conversation began in its terminal", "found other in /w"]
    );
    bench.open(ResumeTarget::new("other".into(), false));
    assert_eq!(bench.take_reports(), ["opened other", "title afresh", "began by the terminal", "user: afresh"]);
    assert!(bench.rig.checkpoint.as_ref().unwrap().contains("\"titled\":true"));
}

#[test]
fn qwen_terminal_questions_that_need_words_are_shown() {
    let mut bench = Bench::at_work();
    let mut asked = asks("r1", "c1");
    asked["request"]["tool_name"] = "ask_user_question".into();
    asked["request"]["input"] = json!({ "questions": [{ "question": "Which?", "header": "W", "options": [] }] });
    bench.write(&[calls(&[("c1", "x")]), asked, decided("r1", true)]);
    let events = bench.rig.take_events();
    let ask =
        events.iter().find_map(|event| if let RuntimeEvent::Asked { ask, .. } = event { Some(ask) } else { None });
    assert!(ask.unwrap().observe_only && ask.unwrap().options.is_empty());
    assert_eq!(events.last().and_then(describe).unwrap(), "r1  by the terminal");
}

#[test]
fn qwen_terminal_lines_that_are_hostile_do_no_harm() {
    let mut bench = Bench::at_work();
    bench.output.push_str("nonsense\n[]\n{\"type\":7}\n{\"type\":\"user\"}\n\n");
    let mut nested = text("by a subagent");
    nested["parent_tool_use_id"] = "c9".into();
    bench.write(&[nested, result("unknown"), decided("unknown", true), refused("unknown"), stop()]);
    assert_eq!(bench.take_reports(), ["done: Completed "]);
    for session in ["../../x", "", "a/b"] {
        let mut bench = Bench::opened();
        let mut next = user("x");
        next["session_id"] = session.into();
        bench.write(&[next]);
        bench.open(ResumeTarget::new(session.into(), false));
    }
    assert!(output_line(b"{}").is_none() && chat_line(b"{}").is_none());
    let prompt = line(user("<system-reminder>be brief</system-reminder>\n\nhello"));
    assert!(format!("{:?}", output_line(prompt.trim().as_bytes()).unwrap().events).contains("[Prompt(\"hello\")]"));
    let cancelled = br#"{"type":"tool_result","toolCallResult":{"callId":"c","status":"success"}}"#;
    assert_eq!(chat_line(cancelled), None::<ChatLine>);
    assert_eq!(chat_path("/q", "/tmp/a.b ü🦀", "s"), "/q/-tmp-a-b----/chats/s.jsonl");
}
