//! Tests of the dialect with the hooks and transcripts of Claude Code 2.1.316, shortened.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use crate::bench::{self, last_question};
use plexus_dialects::link::{HelperHello, HelperRole, LINK_VERSION, LinkRequest};
use plexus_dialects::rig::{Rig, choose, spent};
use plexus_dialects::{RequestKey, RequestSubject, ResumeTarget, RuntimeCommand, RuntimeEvent};
use plexus_protocol::{Answers, Choice, Decision};

const S: &str = "5bea60cf";

/// A dialect with one terminal, whose transcript is `file`.
struct Bench {
    rig: Rig,
    file: String,
    missing: bool,
}

impl Bench {
    fn new() -> Self {
        Self { rig: bench::rig("claude-terminal"), file: String::new(), missing: true }
    }

    /// Makes a session that the gateway has opened.
    fn opened() -> Self {
        let mut bench = Self::new();
        bench.hook(json!({ "hook_event_name": "SessionStart" }));
        assert!(matches!(&bench.rig.events[1], RuntimeEvent::Found { native, .. } if native.as_str() == S));
        bench.open(ResumeTarget::new(S.into(), false));
        bench
    }

    fn open(&mut self, resume: ResumeTarget) {
        bench::open(&mut self.rig, resume);
        self.serve();
    }

    /// Makes another gateway process, with the state of this one.
    fn next_gateway(self, asks: &[&str], prompt: Option<(u64, &str)>) -> Self {
        let resume = bench::left_by(&self.rig, S, asks, prompt);
        let mut next = Self { rig: bench::rig("claude-terminal"), ..self };
        next.open(resume);
        next
    }

    fn take_events(&mut self) -> Vec<String> {
        bench::summaries(&mut self.rig)
    }

    /// Answers every request of the dialect, as the link endpoint does.
    fn serve(&mut self) {
        while let Some((fetch, request)) = bench::next_request(&mut self.rig) {
            match request {
                LinkRequest::Process(7, 9) => self.rig.reply(&fetch, Some((200, ""))),
                LinkRequest::Transcript(part) if !self.missing => {
                    bench::reply_with_part(&mut self.rig, &fetch, &part, &self.file);
                }
                _ => self.rig.reply(&fetch, Some((404, ""))),
            }
        }
    }

    fn feed(&mut self, connection: u64, role: HelperRole, id: &str, mut event: Value) {
        event["session_id"] = S.into();
        event["transcript_path"] = "/t.jsonl".into();
        event["cwd"] = "/w".into();
        let (agent, id) = ("claude".into(), id.into());
        let hello = HelperHello { link: LINK_VERSION, agent, role, id, pid: 7, terminal: None };
        let frame = json!({ "connection": connection, "started": 9, "said": { "hello": hello, "event": event } });
        self.rig.feed(frame.to_string());
        self.serve();
    }

    fn hook(&mut self, event: Value) {
        self.feed(1, HelperRole::Event, "e", event);
    }

    fn ask(&mut self, connection: u64, id: &str, tool: &str, input: Value) {
        let mut event = json!({ "hook_event_name": "PermissionRequest", "tool_name": tool, "tool_input": input });
        event["permission_suggestions"] = json!([
            { "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "touch:*" }], "behavior": "allow",
              "destination": "session" },
            { "type": "setMode", "mode": "bypassPermissions", "destination": "session" },
        ]);
        self.feed(connection, HelperRole::Question, id, event);
    }

    fn inbox(&mut self, connection: u64) {
        self.feed(connection, HelperRole::Inbox, "i", json!({ "hook_event_name": "Stop" }));
    }

    fn wake(&mut self, times: usize) {
        for _ in 0..times {
            self.rig.wake();
            self.serve();
        }
    }

    fn write(&mut self, lines: &[Value]) {
        self.missing = false;
        for line in lines {
            self.file += &format!("{line}\n");
        }
    }

    fn answer(&mut self, id: &str, decision: Decision) {
        self.rig.tell(RuntimeCommand::Answer { key: RequestKey::unique(id), decision });
    }

    /// Returns the exits that helpers got since the last call: connection, and output.
    fn exits(&mut self) -> Vec<(u64, Value)> {
        let exit = |sent: Value| {
            let exit = &sent["exit"];
            let printed = match (exit["stdout"].as_str(), exit["stderr"].as_str()) {
                (Some(out), _) => serde_json::from_str(out).unwrap(),
                (None, Some(err)) => json!({ "stderr": err, "exit": exit["code"] }),
                (None, None) => Value::Null,
            };
            (sent["connection"].as_u64().unwrap(), printed)
        };
        std::mem::take(&mut self.rig.sent).into_iter().map(exit).collect()
    }
}

fn user(text: &str) -> Value {
    json!({ "type": "user", "message": { "role": "user", "content": text }, "origin": { "kind": "human" } })
}

fn says(text: &str) -> Value {
    json!({ "type": "assistant", "message": { "role": "assistant", "content": [{ "type": "text", "text": text }] } })
}

fn calls(id: &str, command: &str) -> Value {
    let call = json!({ "type": "tool_use", "id": id, "name": "Bash", "input": { "command": command } });
    json!({ "type": "assistant", "message": { "role": "assistant", "content": [call] } })
}

fn result(id: &str, failed: bool, decision: Value) -> Value {
    let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "hi", "is_error": failed });
    let mut line = json!({ "type": "user", "message": { "role": "user", "content": [result] } });
    line["permissionDecision"] = decision;
    line
}

fn turn_end() -> Value {
    json!({ "type": "system", "subtype": "turn_duration", "durationMs": 3 })
}

fn woken(text: &str) -> Value {
    let text =
        format!("<task-notification>\nStop hook blocking error from command \"Stop\": {text}\n</system-reminder>");
    json!({ "type": "user", "message": { "role": "user", "content": text },
        "origin": { "kind": "task-notification" } })
}

#[test]
fn claude_terminal_turn_is_read_from_the_transcript() {
    let mut bench = Bench::opened();
    assert_eq!(bench.take_events(), ["opened"]);
    bench.write(&[
        json!({ "type": "mode", "mode": "normal" }),
        user("do it"),
        json!({ "type": "attachment", "attachment": { "type": "environment", "prompt": "not shown" } }),
        says("I will."),
        calls("t1", "touch a"),
        result("t1", false, json!({ "decision": "accept", "source": "config" })),
        json!({ "type": "attachment", "attachment": { "type": "queued_command", "prompt": "and hurry" } }),
        says("Done."),
        turn_end(),
        json!({ "type": "custom-title", "customTitle": "A title" }),
    ]);
    bench.hook(json!({ "hook_event_name": "Stop" }));
    let expected = [
        "began by the terminal",
        r#"user_message_chunk "do it""#,
        r#"title "do it""#,
        r#"agent_message_chunk "I will.""#,
        r#"call "t1" "touch a" "execute""#,
        r#""completed" "t1""#,
        r#"user_message_chunk "and hurry""#,
        r#"agent_message_chunk "Done.""#,
        "done completed",
        r#"title "A title""#,
    ];
    assert_eq!(bench.take_events(), expected);
    // Nothing is read twice.
    bench.hook(json!({ "hook_event_name": "Notification" }));
    assert!(bench.take_events().is_empty());
}

#[test]
fn claude_terminal_tokens_of_a_call_count_once() {
    let usage = |output: u64| json!({ "input_tokens": 3, "output_tokens": output, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2 });
    let reports = |mut line: Value, id: &str, output: u64| {
        (line["message"]["id"], line["message"]["usage"]) = (id.into(), usage(output));
        line
    };
    let mut subagent = reports(says("not shown"), "m2", 4);
    subagent["isSidechain"] = true.into();
    let past = reports(says("of the past"), "m0", 100);
    let mut bench = Bench::new();
    bench.write(&[user("long ago"), past, turn_end()]);
    bench.hook(json!({ "hook_event_name": "SessionStart" }));
    bench.open(ResumeTarget::new(S.into(), false));
    bench.write(&[user("do it"), reports(says("I will."), "m1", 1), reports(calls("t1", "ls"), "m1", 9), subagent]);
    bench.hook(json!({ "hook_event_name": "PreToolUse" }));
    assert_eq!(spent(&bench.rig.events).counts(), [Some(20), Some(13), Some(10), Some(4), None]);
}

#[test]
fn claude_terminal_late_lines_begin_no_other_turn() {
    let mut bench = Bench::opened();
    bench.write(&[user("do it"), says("Done."), turn_end()]);
    bench.hook(json!({ "hook_event_name": "Stop" }));
    assert_eq!(bench.take_events().last().unwrap(), "done completed");
    let lines = json!({ "hook_event_name": "MessageDisplay", "message_id": "m", "index": 0, "delta": "Done." });
    bench.hook(lines);
    bench.wake(10);
    assert_eq!(bench.take_events(), [""; 0]);
}

#[test]
fn claude_terminal_turn_ends_without_the_transcript_saying_so() {
    let mut bench = Bench::opened();
    bench.write(&[
        user("stop me"),
        json!({ "type": "user", "message": { "content":
        [{ "type": "text", "text": "[Request interrupted by user]" }] } }),
        turn_end(),
    ]);
    bench.hook(json!({ "hook_event_name": "UserPromptSubmit" }));
    assert_eq!(bench.take_events()[4..], ["done cancelled"]);
    bench.write(&[user("again"), says("ok")]);
    bench.hook(json!({ "hook_event_name": "Stop" }));
    bench.wake(10);
    assert_eq!(bench.take_events().last().unwrap(), "done completed");
    bench.write(&[
        user("fail"),
        json!({ "type": "assistant", "isApiErrorMessage": true, "message": { "content":
        [{ "type": "text", "text": "overloaded" }] } }),
        turn_end(),
    ]);
    bench.hook(json!({ "hook_event_name": "StopFailure", "error": "overloaded" }));
    assert_eq!(bench.take_events().last().unwrap(), "done error");
}

#[test]
fn claude_terminal_denial_of_the_auto_mode_is_its_own_answer() {
    let mut bench = Bench::opened();
    bench.write(&[user("do it"), calls("t1", "touch a")]);
    bench.hook(json!({ "hook_event_name": "PermissionDenied", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": { "command": "touch a" }, "reason": "it was not asked for" }));
    let reviews: Vec<_> = std::mem::take(&mut bench.rig.events)
        .into_iter()
        .filter_map(
            |event| if let RuntimeEvent::Reviewed { ask, review, .. } = event { Some((ask, review)) } else { None },
        )
        .collect();
    let [(ask, review)] = reviews.as_slice() else { panic!("{reviews:?}") };
    assert!(matches!(&ask.subject, RequestSubject::Command { argv, .. } if argv == &["touch a"]));
    assert_eq!((ask.tool_call_id.as_deref(), ask.observe_only), (Some("t1"), true));
    assert_eq!((review.allowed, review.by.as_str()), (false, "Claude Code's auto mode"));
    assert_eq!(review.reason.as_deref(), Some("it was not asked for"));
}

#[test]
fn claude_terminal_question_is_answered_here() {
    let mut bench = Bench::opened();
    bench.write(&[user("do it"), calls("t1", "touch a")]);
    bench.hook(json!({ "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": { "command": "touch a" } }));
    bench.take_events();
    bench.ask(5, "q1", "Bash", json!({ "command": "touch a" }));
    let ask = last_question(&bench.rig);
    let options: Vec<_> = ask.options.iter().map(|offer| (offer.id.as_str(), offer.kind)).collect();
    let expected = [("allow", Choice::AllowOnce), ("suggestion:0", Choice::AllowAlways), ("deny", Choice::RejectOnce)];
    assert_eq!(options, expected, "a mode that asks nothing any more is not offered");
    assert_eq!(ask.options[1].label, "Yes, and don't ask again for this session for Bash(touch:*)");
    assert!(matches!(&ask.subject, RequestSubject::Command { argv, .. } if argv == &["touch a"]));
    assert_eq!(bench.take_events(), [r#"asked q1 about Some("t1")"#]);
    bench.answer("q1", choose("suggestion:0", Choice::AllowAlways));
    let exits = bench.exits();
    let decision = &exits[0].1["hookSpecificOutput"]["decision"];
    assert_eq!((exits[0].0, &decision["behavior"]), (5, &json!("allow")));
    assert_eq!(decision["updatedPermissions"][0]["rules"][0]["ruleContent"], "touch:*");
    bench.write(&[result("t1", false, json!({ "decision": "accept", "source": "hook" }))]);
    bench.wake(1);
    assert_eq!(bench.take_events(), [r#""completed" "t1""#], "the hook's answer was taken");
}

#[test]
fn claude_terminal_question_comes_before_its_transcript() {
    let mut bench = Bench::opened();
    bench.hook(json!({ "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": { "command": "touch a" } }));
    bench.ask(5, "q1", "Bash", json!({ "command": "touch a" }));
    assert_eq!(bench.take_events()[1..], ["began by the terminal", r#"asked q1 about Some("t1")"#]);
    bench.write(&[user("do it"), calls("t1", "touch a")]);
    bench.wake(1);
    assert_eq!(bench.take_events()[2..], [r#"call "t1" "touch a" "execute""#], "it is still open, in the same turn");
    bench.answer("q1", choose("allow", Choice::AllowOnce));
    assert_eq!(bench.exits()[0].0, 5);
    // Also where the gateway was killed in between.
    let mut bench = Bench::opened();
    bench.ask(5, "q1", "Bash", json!({ "command": "touch a" }));
    let mut bench = bench.next_gateway(&["q1"], None);
    bench.answer("q1", choose("allow", Choice::AllowOnce));
    bench.write(&[user("do it"), calls("t1", "touch a")]);
    bench.ask(6, "q1", "Bash", json!({ "command": "touch a" }));
    assert_eq!(bench.exits().last().unwrap().0, 6);
    assert!(!bench.take_events().iter().any(|event| event.starts_with("done") || event.starts_with("taken")));
    // The same with a prompt of ours.
    let mut bench = Bench::opened();
    bench.inbox(3);
    bench.rig.prompt(8, S, "build it");
    bench.ask(5, "q1", "Bash", json!({ "command": "touch a" }));
    bench.take_events();
    bench.write(&[woken("build it"), says("yes"), turn_end()]);
    bench.wake(1);
    assert_eq!(bench.take_events().last().unwrap(), "ended 8 completed");
}

#[test]
fn claude_terminal_question_is_answered_at_the_terminal() {
    let cases = [
        (false, json!({ "decision": "accept", "source": "user_temporary" }), "allow"),
        (true, json!({ "decision": "reject", "source": "user_reject" }), "deny"),
    ];
    for (failed, decision, option) in cases {
        // Nobody has answered here.
        let mut bench = Bench::opened();
        bench.write(&[user("do it"), calls("t1", "touch a")]);
        bench.ask(5, "q1", "Bash", json!({ "command": "touch a" }));
        bench.take_events();
        bench.write(&[result("t1", failed, decision.clone())]);
        bench.wake(1);
        let taken = format!(r#"taken back q1 Some(("the terminal", Some("{option}")))"#);
        assert_eq!(bench.take_events().last(), Some(&taken));
        assert_eq!(bench.exits(), [(5, Value::Null)], "its hook ends");
        // The answer here was later.
        let mut bench = Bench::opened();
        bench.write(&[user("do it"), calls("t1", "touch a")]);
        bench.ask(5, "q1", "Bash", json!({ "command": "touch a" }));
        bench.answer("q1", choose("allow", Choice::AllowOnce));
        bench.take_events();
        bench.write(&[result("t1", failed, decision)]);
        bench.wake(1);
        assert_eq!(bench.take_events().last(), Some(&format!(r#"lost q1 ("the terminal", Some("{option}"))"#)));
    }
}

#[test]
fn claude_terminal_questions_are_answered_with_their_input() {
    let mut bench = Bench::opened();
    let questions = json!([{ "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{ "label": "Red" }, { "label": "Blue" }] }]);
    bench.ask(5, "q1", "AskUserQuestion", json!({ "questions": questions }));
    let RequestSubject::Questions { questions: shown, .. } = &last_question(&bench.rig).subject else { unreachable!() };
    assert!(shown[0].id == "question_0" && shown[0].free_text, "{shown:?}");
    let answers: Answers = [("question_0".to_owned(), vec!["Blue".to_owned()])].into();
    bench.answer("q1", Decision::Answers(answers));
    let input = &bench.exits()[0].1["hookSpecificOutput"]["decision"]["updatedInput"];
    assert_eq!(*input, json!({ "questions": questions, "answers": { "Which colour?": "Blue" } }));
    // Declined.
    bench.ask(6, "q2", "AskUserQuestion", json!({ "questions": questions }));
    bench.answer("q2", Decision::Value(None));
    assert_eq!(bench.exits()[0].1["hookSpecificOutput"]["decision"]["behavior"], "deny");
    // One that cannot be read can only be answered at the terminal.
    bench.ask(7, "q3", "AskUserQuestion", json!({ "questions": 3 }));
    assert!(last_question(&bench.rig).observe_only);
}

#[test]
fn claude_terminal_plan_is_shown_and_answered_at_the_terminal() {
    let mut bench = Bench::opened();
    let call = json!({ "type": "tool_use", "id": "t1", "name": "ExitPlanMode", "input": { "plan": "1. touch x" } });
    bench.write(&[user("plan it"), json!({ "type": "assistant", "message": { "content": [call] } })]);
    // The hook is not told the plan.
    bench.ask(5, "q1", "ExitPlanMode", json!({}));
    let ask = last_question(&bench.rig);
    assert!(ask.observe_only && ask.options.is_empty() && ask.tool_call_id.as_deref() == Some("t1"), "{ask:?}");
    assert!(matches!(&ask.subject, RequestSubject::Plan(plan) if plan == "1. touch x"), "{ask:?}");
}

#[test]
fn claude_terminal_two_equal_calls_are_told_apart() {
    let mut bench = Bench::opened();
    bench.write(&[user("twice"), calls("t1", "touch a"), calls("t2", "touch a")]);
    bench.ask(5, "q1", "Bash", json!({ "command": "touch a" }));
    bench.ask(6, "q2", "Bash", json!({ "command": "touch a" }));
    let events = bench.take_events();
    let asked: Vec<&String> = events.iter().filter(|event| event.starts_with("asked")).collect();
    assert_eq!(asked, [r#"asked q1 about Some("t1")"#, r#"asked q2 about Some("t2")"#]);
}

#[test]
fn claude_terminal_question_whose_hook_is_gone_waits_for_the_terminal() {
    let mut bench = Bench::opened();
    bench.write(&[user("do it"), calls("t1", "touch a")]);
    bench.ask(5, "q1", "Bash", json!({ "command": "touch a" }));
    bench.take_events();
    bench.rig.feed(r#"{"connection":5}"#);
    bench.wake(25);
    assert_eq!(bench.take_events(), ["changed q1 true"]);
    // It comes again.
    bench.ask(9, "q1", "Bash", json!({ "command": "touch a" }));
    assert_eq!(bench.take_events(), ["changed q1 false"]);
    bench.answer("q1", choose("deny", Choice::RejectOnce));
    assert_eq!(bench.exits()[0].0, 9);
}

#[test]
fn claude_terminal_next_gateway_goes_on() {
    let mut bench = Bench::opened();
    bench.write(&[user("do it"), calls("t1", "touch a")]);
    bench.hook(json!({ "hook_event_name": "MessageDisplay", "message_id": "m", "index": 0, "delta": "one\n" }));
    bench.ask(5, "q1", "Bash", json!({ "command": "touch a" }));
    bench.take_events();
    // Killed; meanwhile the text came whole.
    bench.write(&[says("one\ntwo")]);
    let mut bench = bench.next_gateway(&["q1"], None);
    let expected = ["opened", r#"agent_message_chunk "two""#];
    assert_eq!(bench.take_events(), expected, "the question is open here already, and so is the turn");
    bench.ask(6, "q1", "Bash", json!({ "command": "touch a" }));
    assert!(bench.take_events().is_empty());
    // A decision of the earlier gateway is given to the hook when it comes.
    bench.answer("q1", choose("allow", Choice::AllowOnce));
    assert_eq!(bench.exits()[0].0, 6);
    let mut bench = bench.next_gateway(&["q1"], None);
    bench.answer("q1", choose("allow", Choice::AllowOnce));
    assert!(bench.exits().is_empty());
    bench.ask(8, "q1", "Bash", json!({ "command": "touch a" }));
    assert_eq!(bench.exits()[0].0, 8);
    bench.write(&[result("t1", false, json!({ "decision": "accept", "source": "hook" })), turn_end()]);
    bench.wake(1);
    assert_eq!(bench.take_events(), ["opened", r#""completed" "t1""#, "done completed"]);
}

#[test]
fn claude_terminal_prompt_wakes_the_agent_once() {
    let mut bench = Bench::opened();
    bench.inbox(3);
    bench.rig.prompt(8, S, "build it");
    assert_eq!(bench.exits(), [(3, json!({ "stderr": "build it", "exit": 2 }))]);
    bench.write(&[woken("build it"), says("yes"), turn_end()]);
    bench.hook(json!({ "hook_event_name": "Stop" }));
    assert_eq!(bench.take_events()[1..], [r#"agent_message_chunk "yes""#, "ended 8 completed"]);
    // A newer inbox replaces the older one.
    bench.inbox(4);
    bench.inbox(5);
    assert_eq!(bench.exits(), [(4, Value::Null)]);
    // One that Claude Code would cut is refused.
    bench.rig.prompt(7, S, &"x".repeat(90_001));
    let reason = "Claude Code accepts at most 90000 characters from outside of its terminal";
    let fix = "put the text into a file and name it in the prompt";
    assert_eq!(bench.take_events(), [format!("ended 7 error {reason}: {fix}")]);
    // Without one, the prompt waits, and then fails with what to do.
    bench.rig.feed(r#"{"connection":5}"#);
    bench.rig.prompt(9, S, "more");
    bench.wake(70);
    let reason = "the terminal accepts no prompts: type it there, or start a new one with a linked Claude Code";
    assert_eq!(bench.take_events(), [format!("ended 9 error {reason}")]);
}

#[test]
fn claude_terminal_prompt_of_an_earlier_gateway_is_delivered_once() {
    // It was not delivered.
    let bench = Bench::opened().next_gateway(&[], Some((8, "build it")));
    let mut bench = bench;
    bench.inbox(3);
    assert!(bench.exits().is_empty(), "it may have been");
    bench.wake(15);
    assert_eq!(bench.exits(), [(3, json!({ "stderr": "build it", "exit": 2 }))]);
    // It was.
    let mut bench = Bench::opened();
    bench.inbox(3);
    bench.rig.prompt(8, S, "build it");
    bench.write(&[woken("build it")]);
    let mut bench = bench.next_gateway(&[], Some((8, "build it")));
    bench.inbox(4);
    bench.wake(15);
    bench.write(&[says("yes"), turn_end()]);
    bench.wake(1);
    assert!(bench.exits().is_empty());
    assert_eq!(bench.take_events().last().unwrap(), "ended 8 completed");
}

#[test]
fn claude_terminal_session_ends_with_its_terminal() {
    let mut bench = Bench::opened();
    bench.write(&[user("do it")]);
    bench.hook(json!({ "hook_event_name": "UserPromptSubmit" }));
    bench.take_events();
    bench.write(&[says("the last words")]);
    bench.rig.feed(r#"{"connection":0,"ended":7}"#);
    bench.serve();
    let expected = [r#"agent_message_chunk "the last words""#, "done cancelled", "closed its terminal was closed"];
    assert_eq!(bench.take_events(), expected);
    // A late word of its process does not bring it back.
    let hello = json!({ "link": 1, "agent": "claude", "role": "inbox", "id": "i", "pid": 7 });
    let event = json!({ "session_id": S, "hook_event_name": "Stop" });
    let late = json!({ "connection": 8, "started": 0, "said": { "hello": hello, "event": event } });
    bench.rig.feed(late.to_string());
    assert_eq!((bench.take_events().len(), bench.exits()), (0, vec![(8, Value::Null)]));
    // Its process was gone before the next gateway came.
    let mut bench = Bench::opened();
    bench.write(&[user("do it")]);
    bench.hook(json!({ "hook_event_name": "UserPromptSubmit" }));
    bench.rig.checkpoint = bench.rig.checkpoint.map(|state| state.replace("[7,9]", "[8,9]"));
    bench.write(&[says("missed")]);
    let mut bench = bench.next_gateway(&[], None);
    let expected = ["opened", r#"agent_message_chunk "missed""#, "done cancelled", "closed its terminal was closed"];
    assert_eq!(bench.take_events(), expected);
}

#[test]
fn claude_terminal_past_of_a_resumed_session_has_no_turns() {
    let mut bench = Bench::new();
    bench.write(&[user("old"), says("past"), turn_end(), user("now")]);
    bench.hook(json!({ "hook_event_name": "UserPromptSubmit" }));
    bench.open(ResumeTarget::new(S.into(), false));
    let expected = [
        "opened",
        r#"user_message_chunk "old""#,
        r#"title "old""#,
        r#"agent_message_chunk "past""#,
        r#"user_message_chunk "now""#,
        "began by the terminal",
    ];
    assert_eq!(bench.take_events(), expected);
}

#[test]
fn claude_terminal_long_and_broken_lines_are_left_out_and_named() {
    let mut bench = Bench::opened();
    bench.write(&[user("do it")]);
    bench.file += "{broken\n";
    let long = "x".repeat(3 << 20);
    bench.write(&[says(&long), says("after")]);
    bench.hook(json!({ "hook_event_name": "Stop" }));
    let events = bench.take_events();
    assert!(events.iter().any(|event| event.starts_with("raw")), "a line that cannot be read is shown");
    assert_eq!(events.iter().filter(|event| event.contains(&long)).count(), 1, "3 MB are not too long");
    assert_eq!(events.last().unwrap(), r#"agent_message_chunk "after""#);
    bench.file.truncate(10);
    bench.hook(json!({ "hook_event_name": "Stop" }));
    assert_eq!(bench.take_events(), [r#"error "gap""#]);
}
