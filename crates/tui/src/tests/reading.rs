//! The parts that a conversation leaves out: calls that only looked, and what goes without saying.

use super::*;

fn call(id: &str, title: &str, kind: &str) -> Value {
    json!({ "toolCallId": id, "title": title, "kind": kind, "status": "completed",
        "content": [{ "type": "content", "content": { "type": "text", "text": format!("what {title} holds") } }] })
}

fn reads(stage: &mut Stage, from: usize, until: usize) {
    for n in from..until {
        stage.event("s_1", "tool_call", &call(&format!("t{n}"), &format!("file-{n}.rs"), "read"));
    }
}

fn opened(width: u16, height: u16) -> Stage {
    let mut stage = Stage::new(width, height, &[session("s_1", "one", "running", 0)], &[]);
    stage.open("s_1");
    stage.keys(&["Esc"]);
    stage
}

#[test]
fn tui_folds_calls_that_only_looked_into_one_line() {
    let mut stage = opened(80, 24);
    reads(&mut stage, 0, 2);
    assert!(stage.screen().contains("what file-1.rs holds") && !stage.screen().contains("Read 2"), "two stand alone");
    reads(&mut stage, 2, 7);
    stage.event("s_1", "tool_call", &call("g", "fn main", "search"));
    let screen = stage.screen();
    assert!(screen.contains("▸ Read 7, Search 1") && screen.contains("fn main · file-6.rs"), "{screen}");
    assert!(!screen.contains("holds"), "{screen}");
    // What runs, fails, changes something or was asked about stands on its own.
    for (n, kind, status) in [(20, "read", "in_progress"), (21, "read", "failed"), (22, "execute", "completed")] {
        let mut one = call(&format!("t{n}"), &format!("alone-{n}"), kind);
        one["status"] = status.into();
        stage.event("s_1", "tool_call", &one);
    }
    let screen = stage.screen();
    assert!(["alone-20", "alone-21", "alone-22"].iter().all(|title| screen.contains(title)), "{screen}");
    assert!(screen.contains("▸ Read 7, Search 1"), "{screen}");
    // One that ends joins those before it; one that somebody is asked about leaves.
    stage.event("s_1", "tool_call_update", &json!({ "toolCallId": "t20", "status": "completed" }));
    assert!(stage.screen().contains("▸ Read 8, Search 1"), "{}", stage.screen());
    stage.event("s_1", "request_opened", &ask("q_1", "s_1", "read it", json!({ "tool_call_id": "t20" })));
    assert!(stage.screen().contains("▸ Read 7, Search 1"), "{}", stage.screen());
}

#[test]
fn tui_unfolds_calls_that_only_looked_by_the_keys_of_calls() {
    let mut stage = opened(80, 40);
    reads(&mut stage, 0, 4);
    stage.keys(&[" "]);
    let screen = stage.screen();
    assert!(screen.contains("▾ Read 4") && screen.contains("what file-0.rs holds"), "{screen}");
    assert!(screen.contains("what file-3.rs holds"), "{screen}");
    reads(&mut stage, 4, 5);
    assert!(stage.screen().contains("▾ Read 5") && stage.screen().contains("file-4.rs"), "{}", stage.screen());
    // The first call has both: its own details, then all is folded again.
    stage.keys(&[" ", " "]);
    assert!(stage.screen().contains("▸ Read 5"), "{}", stage.screen());
    assert!(!stage.screen().contains("holds"), "{}", stage.screen());
    stage.keys(&["c"]);
    let copied = stage.effects.iter().rev().find_map(|effect| match effect {
        Effect::Copy(text) => Some(text.clone()),
        _ => None,
    });
    assert_eq!(copied.as_deref(), Some("file-0.rs\nfile-1.rs\nfile-2.rs\nfile-3.rs\nfile-4.rs"));
    stage.keys(&["o"]);
    assert!(stage.screen().contains("▾ Read 5"), "{}", stage.screen());
    stage.keys(&["o"]);
    assert!(stage.screen().contains("▸ Read 5"), "{}", stage.screen());
}

#[test]
fn tui_folds_calls_of_a_subagent_apart_from_those_of_its_parent() {
    let mut stage = opened(80, 24);
    stage.event(
        "s_1",
        "tool_call",
        &json!({ "toolCallId": "a", "title": "Explore", "kind": "think", "status": "in_progress" }),
    );
    for n in 0..6 {
        let mut one = call(&format!("t{n}"), &format!("file-{n}.rs"), "read");
        if n < 3 {
            one["_meta"] = json!({ "claudeCode": { "parentToolUseId": "a" } });
        }
        stage.event("s_1", "tool_call", &one);
    }
    let screen = stage.screen();
    assert_eq!(screen.matches("▸ Read 3").count(), 2, "{screen}");
}

#[test]
fn tui_scrolls_and_seeks_over_many_folded_calls() {
    let mut stage = opened(80, 12);
    stage.event("s_1", "agent_message_chunk", &json!({ "content": { "type": "text", "text": "the beginning" } }));
    reads(&mut stage, 0, 3_200);
    stage.event("s_1", "agent_message_chunk", &json!({ "content": { "type": "text", "text": "the end" } }));
    let screen = stage.screen();
    assert!(screen.contains("the end") && screen.contains("▸ Read "), "{screen}");
    stage.keys(&["Up", "g"]);
    assert!(stage.screen().contains("▸ Read "), "the beginning was dropped: {}", stage.screen());
    stage.keys(&["G"]);
    assert!(stage.screen().contains("the end"), "{}", stage.screen());
    // A hit of a search in one of them unfolds it.
    let hits = json!({ "hits": [{ "session_id": "s_1", "cursor": "e:3000", "role": "tool", "snippet": "x" }] });
    stage.keys(&["/"]);
    stage.type_text("x");
    stage.keys(&["Enter"]);
    stage.msg(done(CallTag::Page(TuiPage::Search, "x".into()), 200, hits));
    stage.keys(&["Down", "Enter"]);
    assert!(stage.screen().contains("file-29"), "{}", stage.screen());
}

#[test]
fn tui_does_not_begin_a_session_with_its_runtime() {
    let mut stage = opened(80, 24);
    let attached = json!({ "status": "attached", "message": "demo 1.0" });
    stage.event("s_1", "runtime_status", &attached);
    let screen = stage.screen();
    assert!(screen.contains("No messages yet") && !screen.contains("runtime attached"), "{screen}");
    stage.event("s_1", "user_message_chunk", &json!({ "content": { "type": "text", "text": "hello" } }));
    let first = |stage: &Stage| stage.screen().lines().nth(2).unwrap_or_default().to_owned();
    assert!(first(&stage).contains("hello"), "without an empty line above: {}", stage.screen());
    stage.event("s_1", "runtime_status", &json!({ "status": "exited", "message": "gone" }));
    stage.event("s_1", "runtime_status", &attached);
    assert!(stage.screen().contains("runtime attached"), "later, it is news: {}", stage.screen());
}
