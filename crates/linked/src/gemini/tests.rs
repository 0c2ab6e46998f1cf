//! Tests of the dialect with the hooks and transcripts of Gemini CLI 0.61.0, shortened.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use crate::bench::{self, last_question};
use plexus_dialects::link::{HelperHello, HelperRole, LINK_VERSION, LinkRequest};
use plexus_dialects::rig::{Rig, choose, spent};
use plexus_dialects::{HttpRequest, RequestKey, ResumeTarget, RuntimeCommand, RuntimeEvent};
use plexus_protocol::Choice;

const S: &str = "ed933b69";
const SHARED: &str = "t_z6vshuqr";

/// A dialect with one terminal, whose transcript is `file`.
struct Bench {
    rig: Rig,
    file: String,
    shared: Option<&'static str>,
    /// Requests for keys that wait for their outcome.
    keys: Vec<HttpRequest>,
}

impl Bench {
    /// Makes a session that the gateway has opened, in a shared terminal or not.
    fn opened(shared: Option<&'static str>) -> Self {
        let rig = bench::rig("gemini-terminal");
        let mut bench = Self { rig, file: String::new(), shared, keys: Vec::new() };
        bench.hook(json!({ "hook_event_name": "SessionStart", "source": "startup" }));
        assert!(matches!(&bench.rig.events[1], RuntimeEvent::Found { native, .. } if native.as_str() == S));
        bench.open(ResumeTarget::new(S.into(), false));
        bench.take_events();
        bench
    }

    fn open(&mut self, resume: ResumeTarget) {
        bench::open(&mut self.rig, resume);
        self.serve();
    }

    /// Makes another gateway process, with the state of this one.
    fn next_gateway(self, asks: &[&str], prompt: Option<(u64, &str)>) -> Self {
        let resume = bench::left_by(&self.rig, S, asks, prompt);
        let mut next = Self { rig: bench::rig("gemini-terminal"), keys: Vec::new(), ..self };
        next.open(resume);
        next
    }

    fn take_events(&mut self) -> Vec<String> {
        bench::summaries(&mut self.rig)
    }

    /// Answers every request for the transcript and the process, as the link endpoint does.
    fn serve(&mut self) {
        while let Some((fetch, request)) = bench::next_request(&mut self.rig) {
            match request {
                LinkRequest::Process(7, 9) => self.rig.reply(&fetch, Some((200, ""))),
                LinkRequest::Terminal(terminal) => {
                    assert_eq!((terminal.as_str(), fetch.method), (SHARED, "POST"));
                    self.keys.push(fetch);
                }
                LinkRequest::Transcript(part) if !self.file.is_empty() => {
                    bench::reply_with_part(&mut self.rig, &fetch, &part, &self.file);
                }
                _ => self.rig.reply(&fetch, Some((404, ""))),
            }
        }
    }

    fn helper(&mut self, id: &str, mut event: Value) {
        event["session_id"] = S.into();
        event["transcript_path"] = "/t.jsonl".into();
        event["cwd"] = "/w".into();
        let terminal = self.shared.map(str::to_owned);
        let (agent, role, id) = ("gemini".into(), HelperRole::Event, id.into());
        let hello = HelperHello { link: LINK_VERSION, agent, role, id, pid: 7, terminal };
        let frame = json!({ "connection": 1, "started": 9, "said": { "hello": hello, "event": event } });
        self.rig.feed(frame.to_string());
        self.serve();
    }

    fn hook(&mut self, event: Value) {
        self.helper("e", event);
    }

    fn before(&mut self, prompt: &str) {
        self.hook(json!({ "hook_event_name": "BeforeAgent", "prompt": prompt }));
    }

    fn after(&mut self) {
        self.hook(json!({ "hook_event_name": "AfterAgent" }));
        self.wake(2);
    }

    fn tool(&mut self, name: &str, command: &str) {
        self.hook(
            json!({ "hook_event_name": name, "tool_name": "run_shell_command", "tool_input": { "command": command } }),
        );
    }

    fn ask(&mut self, id: &str, command: &str) {
        let details = json!({ "type": "exec", "title": "Confirm Shell Command", "command": command });
        let event =
            json!({ "hook_event_name": "Notification", "notification_type": "ToolPermission", "details": details });
        self.helper(id, event);
    }

    fn wake(&mut self, times: usize) {
        for _ in 0..times {
            self.rig.wake();
            self.serve();
        }
    }

    fn write(&mut self, lines: &[Value]) {
        for line in lines {
            self.file += &format!("{line}\n{{\"$set\":{{\"lastUpdated\":\"x\"}}}}\n");
        }
    }

    fn answer(&mut self, id: &str, option: &str) {
        let decision = choose(option, if option == "allow" { Choice::AllowOnce } else { Choice::RejectOnce });
        self.rig.tell(RuntimeCommand::Answer { key: RequestKey::unique(id), decision });
        self.serve();
    }

    /// Returns the keys that were requested since the last call.
    fn typed(&mut self) -> Vec<String> {
        let keys = |fetch: &HttpRequest| {
            let body: Value = serde_json::from_slice(fetch.body.as_ref().unwrap()).unwrap();
            body["keys"].as_str().unwrap().to_owned()
        };
        self.keys.iter().map(keys).collect()
    }

    /// Reports the holder's outcome for the first waiting keys.
    fn outcome(&mut self, typed: bool, refused: Option<&str>) {
        let fetch = self.keys.remove(0);
        let outcome = json!({ "typed": typed, "refused": refused }).to_string();
        self.rig.reply(&fetch, Some((200, &outcome)));
        self.serve();
    }

    /// Makes a turn with an open question.
    fn asking(shared: Option<&'static str>) -> Self {
        let mut bench = Self::opened(shared);
        bench.before("do it");
        bench.write(&[user("u1", "do it"), says("m1", "")]);
        bench.tool("BeforeTool", "touch a");
        bench.ask("q1", "touch a");
        bench
    }
}

fn user(id: &str, text: &str) -> Value {
    json!({ "id": id, "type": "user", "content": [{ "text": text }] })
}

fn says(id: &str, text: &str) -> Value {
    let tokens = json!({ "input": 9, "output": 2, "cached": 4, "thoughts": 3, "tool": 1, "total": 15 });
    json!({ "id": id, "type": "gemini", "content": text, "thoughts": [], "tokens": tokens, "model": "m" })
}

fn called(id: &str, call: &str, command: &str, status: &str) -> Value {
    let response =
        json!({ "functionResponse": { "response": { "output": "<untrusted_context>\nhi\n</untrusted_context>" } } });
    let call = json!({ "id": call, "name": "run_shell_command", "args": { "command": command }, "status": status,
        "result": [response] });
    json!({ "id": id, "type": "gemini", "content": "", "model": "m", "toolCalls": [call] })
}

fn cancelled() -> Value {
    json!({ "id": "i", "type": "info", "content": "Request cancelled." })
}

/// Returns the history of Gemini CLI, written again.
fn rewritten() -> Vec<Value> {
    let context = json!({ "text": "<session_context>\nThis is the Gemini CLI." });
    vec![
        json!({ "id": "r1", "type": "user", "content": [context, { "text": "do it" }] }),
        json!({ "id": "r2", "type": "gemini", "content": [{ "text": "yes" }], "thoughts": [], "tokens": null }),
        json!({ "id": "r3", "type": "user", "content": [{ "functionResponse": { "id": "c" } }] }),
        json!({ "id": "r4", "type": "user", "content": [{ "text": "and that" }] }),
        json!({ "$set": { "messages": [{ "id": "r1" }, { "id": "r2" }, { "id": "r3" }, { "id": "r4" }] } }),
    ]
}

#[test]
fn gemini_terminal_tokens_of_a_message_count_once() {
    let mut bench = Bench::opened(None);
    bench.write(&[user("1", "do it"), says("2", "I will."), says("2", "I will."), says("3", "Done.")]);
    bench.hook(json!({ "hook_event_name": "AfterAgent" }));
    assert_eq!(spent(&bench.rig.events).counts(), [Some(20), Some(10), Some(8), None, Some(6)]);
}

#[test]
fn gemini_terminal_turn_is_read_from_the_transcript() {
    let mut bench = Bench::opened(None);
    bench.before("do it");
    let thought = json!([{ "subject": "Plan", "description": "think" }]);
    let mut first = says("m1", "I will.");
    first["thoughts"] = thought;
    bench.write(&[json!({ "sessionId": S, "kind": "main" }), user("u1", "do it"), first]);
    bench.tool("BeforeTool", "touch a");
    bench.tool("AfterTool", "touch a");
    bench.write(&[called("m1", "c1", "touch a", "success"), says("m2", "Done.")]);
    bench.after();
    let expected = [
        "began by the terminal",
        r#"user_message_chunk "do it""#,
        r#"title "do it""#,
        r#"agent_thought_chunk "**Plan**\nthink""#,
        r#"agent_message_chunk "I will.""#,
        r#"call "call-1" "touch a" "execute""#,
        r#""completed" "call-1""#,
        r#"agent_message_chunk "Done.""#,
        "done completed",
    ];
    assert_eq!(bench.take_events(), expected);
    bench.hook(json!({ "hook_event_name": "Notification", "notification_type": "other" }));
    bench.wake(4);
    assert!(bench.take_events().is_empty(), "nothing is read twice");
}

#[test]
fn gemini_terminal_messages_that_are_written_again_are_no_news() {
    let mut bench = Bench::opened(None);
    bench.before("do it");
    bench.write(&[user("u1", "do it"), says("m1", "yes")]);
    bench.after();
    bench.take_events();
    bench.before("and that");
    bench.write(&[user("u2", "and that"), cancelled()]);
    // A part of it is there when the transcript is read.
    let again = rewritten();
    bench.write(&again[..4]);
    bench.wake(1);
    bench.write(&again[4..]);
    bench.wake(4);
    let expected = ["began by the terminal", r#"user_message_chunk "and that""#, "done cancelled"];
    assert_eq!(bench.take_events(), expected);
    // Without hooks, too: they come when no gateway runs.
    bench.write(&[user("u3", "third"), says("m3", "ok"), cancelled()]);
    bench.write(&again);
    bench.write(&[user("u4", "fourth")]);
    let mut bench = bench.next_gateway(&[], None);
    bench.wake(4);
    let events = bench.take_events();
    let shown: Vec<&String> = events.iter().filter(|event| event.contains("chunk")).collect();
    let expected = [r#"user_message_chunk "third""#, r#"agent_message_chunk "ok""#, r#"user_message_chunk "fourth""#];
    assert_eq!(shown, expected);
    bench.wake(30);
    assert!(!bench.take_events().iter().any(|event| event.contains("chunk")));
}

#[test]
fn gemini_terminal_turn_fails_with_the_error_that_follows_it() {
    let mut bench = Bench::opened(None);
    bench.before("fail");
    bench.write(&[user("u1", "fail")]);
    bench.hook(json!({ "hook_event_name": "AfterAgent" }));
    bench.write(&[json!({ "id": "e", "type": "error", "content": "[API Error: no]" })]);
    bench.wake(2);
    assert_eq!(bench.take_events().last().unwrap(), "done error");
}

#[test]
fn gemini_terminal_question_is_shown_and_answered_at_the_terminal() {
    for (status, option) in [("success", "allow"), ("cancelled", "deny")] {
        let mut bench = Bench::asking(None);
        let ask = last_question(&bench.rig);
        assert!(ask.observe_only && ask.message.as_ref().unwrap().contains("plexus term -- gemini"), "{ask:?}");
        assert_eq!(bench.take_events().last().unwrap(), r#"asked q1 about Some("call-1")"#);
        bench.write(&[called("m1", "c1", "touch a", status)]);
        bench.wake(1);
        let reports = format!(r#"taken back q1 Some(("the terminal", Some("{option}")))"#);
        assert_eq!(bench.take_events().last().unwrap(), &reports);
    }
    // The hook after the tool is there first.
    let mut bench = Bench::asking(None);
    bench.take_events();
    bench.tool("AfterTool", "touch a");
    assert_eq!(bench.take_events(), [r#"taken back q1 Some(("the terminal", Some("allow")))"#]);
    // It ends with its turn.
    let mut bench = Bench::asking(None);
    bench.take_events();
    bench.write(&[cancelled()]);
    bench.wake(1);
    assert_eq!(bench.take_events(), ["taken back q1 None", "done cancelled"]);
}

#[test]
fn gemini_terminal_question_is_answered_by_keys() {
    let mut bench = Bench::asking(Some(SHARED));
    assert!(!last_question(&bench.rig).observe_only);
    bench.take_events();
    bench.answer("q1", "allow");
    assert_eq!(bench.typed(), ["1"]);
    bench.answer("q1", "allow");
    assert_eq!(bench.typed(), ["1"], "once");
    bench.outcome(true, None);
    bench.tool("AfterTool", "touch a");
    bench.write(&[called("m1", "c1", "touch a", "success")]);
    bench.wake(1);
    assert_eq!(bench.take_events(), [r#""completed" "call-1""#]);
    let mut bench = Bench::asking(Some(SHARED));
    bench.answer("q1", "deny");
    assert_eq!(bench.typed(), ["\u{1b}"]);
    bench.take_events();
    // What comes of it may be there before the word that they were typed.
    bench.write(&[called("m1", "c1", "touch a", "cancelled"), cancelled()]);
    bench.wake(1);
    bench.outcome(true, None);
    assert_eq!(bench.take_events(), [r#""failed" "call-1""#, "done cancelled"]);
    assert!(bench.rig.dialect.asks().is_empty());
}

#[test]
fn gemini_terminal_answer_that_is_not_typed_leaves_the_question_open() {
    let mut bench = Bench::asking(Some(SHARED));
    bench.take_events();
    bench.answer("q1", "allow");
    bench.outcome(false, Some("its screen does not show that"));
    assert_eq!(bench.take_events(), [r#"error "answer_not_taken""#, r#"asked q1~1 about Some("call-1")"#]);
    bench.answer("q1~1", "allow");
    bench.outcome(false, Some("somebody types"));
    assert_eq!(bench.take_events()[1], r#"asked q1~2 about Some("call-1")"#);
    bench.answer("q1~2", "allow");
    bench.outcome(true, None);
    bench.write(&[called("m1", "c1", "touch a", "success")]);
    bench.wake(1);
    assert_eq!(bench.take_events(), [r#""completed" "call-1""#]);
    // The terminal was first.
    let mut bench = Bench::asking(Some(SHARED));
    bench.answer("q1", "deny");
    bench.take_events();
    bench.write(&[called("m1", "c1", "touch a", "success")]);
    bench.wake(1);
    bench.outcome(false, Some("its screen does not show that"));
    assert_eq!(bench.take_events(), [r#""completed" "call-1""#, r#"lost q1 ("the terminal", Some("allow"))"#]);
    // Two that look the same on a screen.
    let mut bench = Bench::asking(Some(SHARED));
    bench.tool("BeforeTool", "touch  a");
    bench.ask("q2", "touch  a");
    bench.take_events();
    bench.answer("q1", "allow");
    assert!(bench.typed().is_empty());
    assert_eq!(bench.take_events()[0], r#"error "answer_not_taken""#);
}

#[test]
fn gemini_terminal_prompt_is_typed_once_it_is_idle() {
    let mut bench = Bench::opened(Some(SHARED));
    bench.rig.prompt(8, S, "build it");
    bench.serve();
    assert_eq!(bench.typed(), ["\u{1b}[200~build it\u{1b}[201~"]);
    bench.outcome(false, Some("somebody types"));
    bench.wake(2);
    assert_eq!(bench.typed().len(), 1, "it is tried again");
    bench.outcome(true, None);
    bench.before("build it");
    bench.write(&[user("u1", "build it"), says("m1", "built")]);
    bench.after();
    assert_eq!(bench.take_events(), [r#"title "build it""#, r#"agent_message_chunk "built""#, "ended 8 completed"]);
    // A person was first: it waits for the end of that turn.
    bench.before("mine");
    bench.rig.prompt(9, S, "yours");
    bench.wake(4);
    assert!(bench.typed().is_empty());
    bench.write(&[user("u2", "mine"), says("m2", "ok")]);
    bench.after();
    bench.wake(2);
    assert_eq!(bench.typed().len(), 1);
    bench.outcome(true, Some("somebody types at the terminal"));
    assert_eq!(bench.take_events().last().unwrap(), "ended 9 error somebody types at the terminal");
    // Never idle on the screen.
    bench.rig.prompt(10, S, "again");
    for _ in 0..100 {
        bench.serve();
        if !bench.keys.is_empty() {
            bench.outcome(false, Some("its screen does not show that"));
        }
        bench.wake(1);
    }
    assert!(bench.take_events().last().unwrap().starts_with("ended 10 error the prompt was not typed"));
    // Not in a shared terminal, and no prompt at all.
    for (shared, text) in [(None, "build it"), (Some(SHARED), "/quit")] {
        let mut bench = Bench::opened(shared);
        bench.rig.prompt(8, S, text);
        assert!(bench.take_events().last().unwrap().starts_with("ended 8 error"));
    }
}

#[test]
fn gemini_terminal_goes_on_in_the_next_gateway() {
    // A question, and what comes of it.
    let mut bench = Bench::asking(Some(SHARED)).next_gateway(&["q1"], None);
    bench.answer("q1", "allow");
    assert_eq!(bench.typed(), ["1"]);
    bench.outcome(true, None);
    let mut bench = bench.next_gateway(&["q1"], None);
    bench.answer("q1", "allow");
    assert!(bench.typed().is_empty(), "its keys were typed");
    bench.write(&[called("m1", "c1", "touch a", "success"), says("m2", "done")]);
    bench.after();
    assert_eq!(
        bench.take_events(),
        ["opened", r#""completed" "call-1""#, r#"agent_message_chunk "done""#, "done completed"]
    );
    // A turn of which all hooks came when nobody heard them.
    let mut bench = Bench::opened(None);
    bench.before("do it");
    bench.write(&[user("u1", "do it")]);
    bench.wake(1);
    let mut bench = bench.next_gateway(&[], None);
    bench.wake(30);
    assert_eq!(bench.take_events(), ["opened"], "it may be at work");
    bench.write(&[says("m1", "ok")]);
    bench.wake(40);
    assert_eq!(bench.take_events(), [r#"agent_message_chunk "ok""#, "done completed"]);
    // And one that also began then.
    bench.before("and that");
    bench.write(&[user("u2", "and that")]);
    bench.wake(1);
    let mut bench = bench.next_gateway(&[], None);
    bench.write(&[says("m2", "yes"), user("u3", "more"), says("m3", "no")]);
    bench.wake(40);
    let expected = [
        "opened",
        r#"agent_message_chunk "yes""#,
        "done completed",
        "began by the terminal",
        r#"user_message_chunk "more""#,
        r#"agent_message_chunk "no""#,
        "done completed",
    ];
    assert_eq!(bench.take_events(), expected);
    // A prompt that may have been typed, or not.
    let mut bench = Bench::opened(Some(SHARED));
    bench.rig.prompt(8, S, "build it");
    bench.serve();
    let mut bench = bench.next_gateway(&[], Some((8, "build it")));
    bench.wake(4);
    assert!(bench.typed().is_empty());
    bench.write(&[user("u1", "build it"), says("m1", "built")]);
    bench.wake(2);
    bench.after();
    let events = bench.take_events();
    assert_eq!(events.last().unwrap(), "ended 8 completed");
    assert!(!events.iter().any(|event| event.contains("user_message")));
}

#[test]
fn gemini_terminal_ends_with_its_session_and_its_process() {
    let mut bench = Bench::opened(None);
    bench.hook(json!({ "hook_event_name": "SessionEnd", "reason": "clear" }));
    assert!(bench.take_events()[0].starts_with("closed it was cleared"));
    bench.hook(json!({ "hook_event_name": "SessionEnd", "reason": "exit" }));
    assert!(bench.rig.events.is_empty(), "an end does not begin one");
    let mut bench = Bench::asking(None);
    bench.take_events();
    bench.rig.feed(json!({ "connection": 0, "ended": 7 }).to_string());
    bench.serve();
    assert_eq!(bench.take_events(), ["taken back q1 None", "done cancelled", "closed its terminal was closed"]);
}
