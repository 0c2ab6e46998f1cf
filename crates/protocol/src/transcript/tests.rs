#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::{Position, Timestamp};

#[test]
fn placer_holds_a_bounded_number_of_messages() {
    let mut tracker = MessageTracker::default();
    for n in 0..10_000 {
        let id = format!("{}{n}", "x".repeat(n % 300));
        tracker.chunk(&MessageKey::new(Role::Agent, "r", Some(&id), None), Position(n as u64));
    }
    let old = MessageKey::new(Role::Agent, "r", Some("0"), None);
    assert_eq!(tracker.chunk(&old, Position(20_000)), ChunkTarget::New, "an old one is forgotten");
}

#[test]
fn tool_call_counts_what_it_holds() {
    let members = |value: Value| value.as_object().unwrap().clone();
    let mut call = ToolCall::default();
    for n in 0..100 {
        call.update(members(json!({ "title": "t", "rawOutput": "x".repeat(1000 + n) })));
    }
    assert!((1000..1300).contains(&call.bytes()), "{}", call.bytes());
    for _ in 0..100 {
        call.update(members(json!({ "_meta": { "terminal_output": { "data": "é".repeat(100_000) } } })));
    }
    assert!(call.bytes() < 4_700_000 && call.terminal_output().1, "{}", call.bytes());
    call.forget_details();
    assert!(call.bytes() < 20 && call.title() == "t", "{}", call.bytes());
}

/// Takes news of a tool call, and tells what it stands under and how deep.
fn nested(tracker: &mut MessageTracker, id: &str, parent: Option<&str>) -> Option<(String, usize)> {
    let parent = parent.map(str::to_owned);
    let update = json!({ "title": format!("call {id}") }).as_object().unwrap().clone();
    let body = EntryBody::Tool { id: id.to_owned(), parent, update };
    tracker.entry(&body, "r", Position(1));
    tracker.parent(&body).map(|parent| {
        assert_eq!(parent.title, format!("call {}", parent.id));
        (parent.id.to_owned(), parent.depth)
    })
}

#[test]
fn nesting_follows_the_first_parent_that_began_before() {
    let mut tracker = MessageTracker::default();
    assert_eq!(nested(&mut tracker, "task", None), None);
    assert_eq!(nested(&mut tracker, "read", Some("task")), Some(("task".into(), 1)));
    assert_eq!(nested(&mut tracker, "inner", Some("read")), Some(("read".into(), 2)));
    assert_eq!(nested(&mut tracker, "read", None), Some(("task".into(), 1)), "an update need not name it again");
    assert_eq!(nested(&mut tracker, "read", Some("other")), Some(("task".into(), 1)), "it does not move");
    let late = nested(&mut tracker, "late", None);
    assert_eq!(
        (late, nested(&mut tracker, "late", Some("task"))),
        (None, Some(("task".into(), 1))),
        "named in an update"
    );
}

#[test]
fn nesting_has_no_circle_and_takes_no_parent_that_is_not_there() {
    let mut tracker = MessageTracker::default();
    assert_eq!(nested(&mut tracker, "self", Some("self")), None);
    assert_eq!(nested(&mut tracker, "a", Some("b")), None, "not there yet");
    assert_eq!(nested(&mut tracker, "b", Some("a")), Some(("a".into(), 1)));
    assert_eq!(nested(&mut tracker, "a", Some("b")), None, "a circle");
    assert_eq!(nested(&mut tracker, "child", Some("never")), None);
    nested(&mut tracker, "never", None);
    assert_eq!(
        nested(&mut tracker, "child", Some("never")),
        None,
        "it does not move under a parent that comes after it"
    );
    let long = "x".repeat(10_000);
    nested(&mut tracker, &long, None);
    assert_eq!(nested(&mut tracker, "short", Some(&long)), None);
}

#[test]
fn nesting_is_bounded() {
    let mut tracker = MessageTracker::default();
    nested(&mut tracker, "0", None);
    for n in 1..10_000 {
        let (parent, depth) = nested(&mut tracker, &n.to_string(), Some(&(n - 1).to_string())).unwrap();
        assert!(parent == (n - 1).to_string() && depth <= 8, "{parent} {depth}");
    }
    assert_eq!(nested(&mut tracker, "x", Some("0")), None, "an old one is forgotten");
}

#[test]
fn nesting_under_a_forgotten_call_does_not_come_back_with_its_identifier() {
    let mut tracker = MessageTracker::default();
    nested(&mut tracker, "p", None);
    for n in 0..4094 {
        nested(&mut tracker, &n.to_string(), None);
    }
    assert_eq!(nested(&mut tracker, "a", Some("p")), Some(("p".into(), 1)));
    nested(&mut tracker, "one more", None);
    assert_eq!(nested(&mut tracker, "a", None), None, "the call above it is forgotten");
    assert_eq!(nested(&mut tracker, "p", Some("a")), Some(("a".into(), 1)), "another call of that identifier");
    assert_eq!(nested(&mut tracker, "a", None), None, "no circle");
}

#[test]
fn parent_is_read_from_meta_and_written_to_it() {
    let read = |meta: Value| parent_from_meta(&meta);
    assert_eq!(read(json!({ "claudeCode": { "parentToolUseId": "t", "toolName": "Read" } })).as_deref(), Some("t"));
    for none in
        [json!(null), json!([]), json!({ "claudeCode": 1 }), json!({ "claudeCode": { "parentToolUseId": null } })]
    {
        assert_eq!(read(none), None);
    }
    assert_eq!(read(json!({ "claudeCode": { "parentToolUseId": "t".repeat(1000) } })), None);
    for mut update in [json!({}), json!({ "_meta": 7 }), json!({ "_meta": { "x": 1, "claudeCode": "odd" } })] {
        let members = update.as_object_mut().unwrap();
        set_parent(members, "t");
        assert_eq!(parent_from_meta(&members["_meta"]).as_deref(), Some("t"));
    }
    let mut kept = json!({ "_meta": { "x": 1, "claudeCode": { "toolName": "Read" } } });
    set_parent(kept.as_object_mut().unwrap(), "t");
    assert_eq!(kept, json!({ "_meta": { "x": 1, "claudeCode": { "toolName": "Read", "parentToolUseId": "t" } } }));
}

#[test]
fn words_of_a_subagent_are_a_message_of_their_own() {
    let mut transcript = Transcript::default();
    let mut events = vec![(Kind::ToolCall, json!({ "toolCallId": "task", "title": "Explore" }))];
    for (text, parent) in [("a", None), ("b", Some("task")), ("c", Some("task")), ("d", None), ("e", Some("never"))] {
        let mut body = json!({ "content": { "type": "text", "text": text } });
        if let Some(parent) = parent {
            set_parent(body.as_object_mut().unwrap(), parent);
        }
        events.push((Kind::AgentMessageChunk, body));
    }
    for (at, (kind, body)) in events.into_iter().enumerate() {
        transcript.apply(Position(at as u64), "r", Timestamp::default(), EntryBody::read(kind, body));
    }
    let messages = transcript.items().iter().filter_map(|item| {
        let Part::Message(message) = &item.part else { return None };
        Some((message.text.as_str(), item.parent.as_deref()))
    });
    assert_eq!(messages.collect::<Vec<_>>(), [("a", None), ("bc", Some("task")), ("d", None), ("e", None)]);
}
