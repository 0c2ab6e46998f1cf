//! The names in a prompt: files and images; and the parts that pages left out of tool calls.

use super::*;
use crate::attachments::read_image;

/// A session that is open, its composer with the keys.
fn writing() -> Stage {
    let mut stage = Stage::new(80, 24, &[session("s_1", "One", "idle", 0), session("s_2", "Two", "idle", 9)], &[]);
    stage.open("s_1");
    stage.effects.clear();
    stage
}

fn files_asked(stage: &mut Stage) -> Vec<(u64, String)> {
    let effects = std::mem::take(&mut stage.effects).into_iter();
    let all = effects.filter_map(|effect| match effect {
        Effect::Call { tag: CallTag::Files(n), request, .. } => Some((n, request.path)),
        _ => None,
    });
    all.collect()
}

fn prompts(stage: &mut Stage) -> Vec<Value> {
    let effects = std::mem::take(&mut stage.effects).into_iter();
    let all = effects.filter_map(|effect| match effect {
        Effect::Call { tag: CallTag::Prompt(_), request, .. } => Some(body_of(&request)),
        _ => None,
    });
    all.collect()
}

#[test]
fn prompt_completes_files_after_an_at_sign() {
    let mut stage = writing();
    stage.type_text("see @m");
    stage.advance(200);
    let asked = files_asked(&mut stage);
    let (n, path) = asked.last().unwrap().clone();
    assert_eq!(path, "/v1/sessions/s_1/files?limit=6&query=m");
    assert!(asked.len() <= 2, "not for every letter: {asked:?}");
    let found = json!({ "files": [{ "path": "src/main.rs" }, { "path": "docs/map \u{202e}.md" }], "truncated": true });
    stage.msg(done(CallTag::Files(n), 200, found));
    let screen = stage.screen();
    assert!(screen.contains("@main.rs  src") && screen.contains("there are more files"), "{screen}");
    assert!(!screen.contains('\u{202e}'));
    stage.keys(&["Down", "Up", "Enter"]);
    assert_eq!(stage.app.pages.session.composer.lines(), ["see @src/main.rs "]);
    assert!(prompts(&mut stage).is_empty() && !stage.screen().contains("there are more files"));
    stage.keys(&["Enter"]);
    assert_eq!(prompts(&mut stage), [json!({ "text": "see @src/main.rs " })]);
    // Esc closes what is offered, and then ends the writing; nothing fits is said.
    stage.type_text("@zz");
    stage.advance(200);
    let (n, _) = files_asked(&mut stage).pop().unwrap();
    stage.msg(done(CallTag::Files(n), 200, json!({ "files": [], "truncated": false })));
    assert!(stage.screen().contains("no file matches"), "{}", stage.screen());
    stage.keys(&["Esc"]);
    assert!(stage.app.shared.writing && !stage.screen().contains("no file matches"));
    stage.keys(&["Esc"]);
    assert!(!stage.app.shared.writing);
}

#[test]
fn prompt_sends_images_that_are_listed_and_removable() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["one.png", "two.png"] {
        let bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0";
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    let read = |name: &str| read_image(name, dir.path());
    let mut stage = writing();
    // Dropped on the terminal, and by its path.
    stage.msg(Msg::Paste("'/tmp/x/one.png'".into()));
    let expected = Effect::ReadImage {
        target: "s_1".into(),
        path: "/tmp/x/one.png".into(),
        pasted: Some("'/tmp/x/one.png'".into()),
    };
    assert!(stage.effects.contains(&expected) && stage.app.pages.session.composer.is_empty(), "{:?}", stage.effects);
    stage.msg(Msg::ImageRead("s_1".into(), Some("'/tmp/x/one.png'".into()), read("one.png")));
    stage.keys(&["C-t"]);
    stage.type_text("two.png");
    stage.keys(&["Enter"]);
    let expected = Effect::ReadImage { target: "s_1".into(), path: "two.png".into(), pasted: None };
    assert!(stage.effects.contains(&expected), "{:?}", stage.effects);
    stage.msg(Msg::ImageRead("s_1".into(), None, read("two.png")));
    let screen = stage.screen();
    assert!(screen.contains("+ one.png · 640x480 · 24 bytes") && screen.contains("+ two.png"), "{screen}");
    stage.msg(Msg::Key(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE)));
    assert!(!stage.screen().contains("+ two.png"));
    // One that cannot be read says why; what was pasted stays text.
    stage.msg(Msg::ImageRead("s_1".into(), Some("/tmp/none.png".into()), read("none.png")));
    assert!(stage.screen().contains("none.png cannot be read"), "{}", stage.screen());
    assert_eq!(stage.app.pages.session.composer.lines(), ["/tmp/none.png"]);
    stage.keys(&["Enter"]);
    let sent = prompts(&mut stage).pop().unwrap();
    assert_eq!(sent["content"][0], json!({ "type": "text", "text": "/tmp/none.png" }));
    assert_eq!(sent["content"][1]["mimeType"], "image/png");
    assert!(!stage.screen().contains("+ one.png"), "it is on its way");
    // What was not sent comes back, to the session that it was written in.
    let sent = SentPrompt { session: "s_1".into(), text: "look".into(), images: vec![read("one.png").unwrap()] };
    stage.open("s_2");
    stage.msg(done(CallTag::Prompt(Box::new(sent)), 429, json!({ "detail": "too many wait" })));
    assert!(stage.app.pages.session.composer.is_empty() && stage.screen().contains("too many wait"));
    stage.open("s_1");
    assert_eq!(stage.app.pages.session.composer.lines(), ["look"]);
    assert!(stage.screen().contains("+ one.png"), "{}", stage.screen());
}

/// An event of a page, at these places.
fn paged(first: u64, last: u64, event: Value) -> Value {
    json!({ "session_id": "s_1", "run_id": "r_1", "seq": first, "seq_last": last, "merged": last + 1 - first, "at": at(NOON),
        "cursor": format!("e:{last}"), "cursor_first": format!("e:{first}"), "kind": "tool_call", "event": event })
}

fn opened(stage: &mut Stage, events: &[Value]) {
    let subscription = stage.app.following();
    stage.msg(Msg::Opened(subscription, opening_of(page_of(events, None), &json!({}))));
    stage.session_event(ClientEvent::Live);
    stage.keys(&["Esc"]);
    stage.effects.clear();
}

#[test]
fn tool_call_says_what_is_left_out_and_loads_it_on_a_key() {
    let mut stage = writing();
    let text = |notice: &str| json!([{ "type": "content", "content": { "type": "text", "text": notice } }]);
    let call = |notice: &str, left: u64| {
        json!({ "toolCallId": "t1", "title": "make", "kind": "execute", "status": "completed", "content": text(notice),
            "_meta": { "plexus": { "left_out": left } } })
    };
    opened(&mut stage, &[paged(5, 9, call("the beginning", 3 << 20))]);
    assert!(stage.screen().contains("3.0 MiB left out · L: load all of it"), "{}", stage.screen());
    stage.keys(&["L"]);
    let expected = stage.effects.iter().find_map(|effect| match effect {
        Effect::Whole { session, call } if session == "s_1" => Some(call.clone()),
        _ => None,
    });
    let expected = expected.unwrap();
    assert_eq!((expected.id.as_str(), expected.epoch.as_str(), expected.parts.as_slice()), ("t1", "e", &[(5, 9)][..]));
    assert!(stage.screen().contains("loading 3.0 MiB"), "{}", stage.screen());
    // What comes meanwhile is not lost.
    stage.place = 9;
    stage.event("s_1", "tool_call_update", &json!({ "toolCallId": "t1", "title": "make all" }));
    let whole = page_of(&[paged(5, 9, call("the beginning\nthe end", 0))], None).events.into_vec();
    let subscription = stage.app.following();
    stage.msg(Msg::Whole(subscription, expected.block, Ok((whole, 9))));
    let screen = stage.screen();
    assert!(screen.contains("the end") && screen.contains("make all") && !screen.contains("left out"), "{screen}");
    stage.keys(&["L"]);
    assert!(stage.screen().contains("nothing is left out here"));
    // What cannot be loaded says so, and can be asked for again.
    let mut stage = writing();
    opened(&mut stage, &[paged(5, 9, call("the beginning", 2000))]);
    stage.keys(&["L"]);
    let subscription = stage.app.following();
    stage.msg(Msg::Whole(subscription, 1, Err("not loaded: the rest is no longer stored".into())));
    assert!(stage.screen().contains("no longer stored") && stage.screen().contains("1 KiB left out"));
}

#[test]
fn tool_call_shows_a_change_at_its_lines_and_none_that_was_left_out() {
    let mut stage = writing();
    let change = |old: &str, new: &str, before: u64| json!({ "type": "diff", "path": "src/long.rs", "oldText": old, "newText": new, "_meta": { "plexus": { "lines_before": before } } });
    let call = |id: &str, content: Value| {
        json!({ "toolCallId": id, "title": "edit", "kind": "edit", "status": "completed", "content": [content],
            "_meta": { "plexus": { "left_out": 5000 } } })
    };
    opened(
        &mut stage,
        &[
            paged(5, 5, call("t1", change("a\nb\n", "a\nc\n", 296))),
            paged(6, 6, call("t2", json!({ "type": "diff", "path": "src/other.rs", "oldText": "", "newText": "" }))),
        ],
    );
    let screen = stage.screen();
    assert!(screen.contains("298 - b") && screen.contains("298 + c"), "{screen}");
    assert!(screen.contains("src/other.rs") && !screen.contains("+0 -0"), "{screen}");
    let events = page_of(&[paged(6, 6, json!({ "toolCallId": "another" }))], None).events.into_vec();
    let subscription = stage.app.following();
    stage.msg(Msg::Whole(subscription, 77, Ok((events, 6))));
    assert!(stage.screen().contains("298 + c"), "the answer for a block that is gone: {}", stage.screen());
}
