//! Surfaces on the session's page: in the conversation, in full, beside requests, and after missed changes.

use super::*;

pub(super) fn shown(name: &str, rev: u64, more: &Value) -> Value {
    let mut body = json!({ "surface": name, "rev": rev, "title": "Nightly build", "pinned": false, "at": at(NOON), "messages": [
        { "version": "v0.9", "createSurface": { "surfaceId": name, "catalogId": "plexus:catalog/1" } },
        { "version": "v0.9", "updateComponents": { "surfaceId": name, "components": [
            { "id": "root", "component": "Column", "children": ["head", "progress", "table", "who", "go"] },
            { "id": "head", "component": "Text", "text": "Targets", "variant": "h2" },
            { "id": "progress", "component": "Progress", "label": "Build", "value": { "path": "/done" } },
            { "id": "table", "component": "Table", "rows": { "path": "/rows" }, "columns": [
                { "key": "name", "label": "Target" }, { "key": "secs", "label": "Time", "format": "duration" }] },
            { "id": "who", "component": "TextField", "label": "Tell", "value": { "path": "/who" } },
            { "id": "go", "component": "Button", "child": "go_text", "action": { "event": { "name": "tell" } } },
            { "id": "go_text", "component": "Text", "text": "Send" }] } },
        { "version": "v0.9", "updateDataModel": { "surfaceId": name, "path": "/", "value": { "done": 0.5, "who": "",
            "rows": [{ "name": "linux", "secs": 75 }, { "name": "mac\u{1b}[2Jos", "secs": 7300 }] } } }] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn changed(name: &str, rev: u64, done: f64) -> Value {
    json!({ "surface": name, "rev": rev, "base": rev - 1, "messages": [
        { "version": "v0.9", "updateDataModel": { "surfaceId": name, "path": "/done", "value": done } }] })
}

/// The presses that were sent.
fn presses(stage: &mut Stage) -> Vec<(String, Value)> {
    let sent = std::mem::take(&mut stage.effects).into_iter();
    sent.filter_map(|effect| match effect {
        Effect::Call { tag: CallTag::Action { .. }, request, .. } => {
            let body = body_of(&request);
            Some((request.path, body))
        }
        _ => None,
    })
    .collect()
}

#[test]
fn tui_surface_is_drawn_in_the_conversation_and_in_full() {
    for (width, height) in [(80, 24), (40, 20)] {
        let mut stage = Stage::new(width, height, &sessions(), &[]);
        stage.open("s_1");
        stage.event("s_1", "run_started", &json!({ "run_id": "r_1" }));
        stage.event("s_1", "surface_updated", &shown("build", 1, &json!({ "pinned": true })));
        stage.event("s_1", "surface_updated", &changed("build", 2, 0.75));
        insta::assert_snapshot!(format!("surface_inline_{width}"), stage.screen());
        stage.keys(&["Esc", "s", "Tab"]);
        stage.advance(ARM_DELAY);
        insta::assert_snapshot!(format!("surface_open_{width}"), stage.screen());
        assert!(!String::from_utf8_lossy(&stage.bytes()).contains("\u{1b}[2Jos"), "no sequence of an agent");
        stage.keys(&["Esc"]);
        assert!(stage.screen().contains("s: open"), "{}", stage.screen());
    }
}

#[test]
fn tui_surface_is_live_and_a_press_is_sent() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    stage.event("s_1", "surface_updated", &shown("build", 1, &json!({})));
    stage.keys(&["Esc", "s"]);
    stage.event("s_1", "surface_updated", &changed("build", 2, 1.0));
    assert!(stage.screen().contains("100%"), "{}", stage.screen());
    stage.keys(&["Tab", "Tab"]);
    stage.type_text("Ada");
    stage.event("s_1", "surface_updated", &changed("build", 3, 0.25));
    assert!(stage.screen().contains("[Ada") && stage.screen().contains("25%"), "{}", stage.screen());
    stage.keys(&["Tab"]);
    stage.advance(ARM_DELAY);
    stage.keys(&["Enter"]);
    let want = json!({ "rev": 3, "component": "go", "event": "tell", "inputs": { "/who": "Ada" } });
    assert_eq!(presses(&mut stage), [("/v1/sessions/s_1/surfaces/build/action".to_owned(), want)]);
    let tag = || CallTag::Action { session: "s_1".into(), surface: "build".into() };
    stage.msg(done(tag(), 409, json!({ "code": "stale_surface", "detail": "now 4" })));
    assert!(stage.screen().contains("it has changed") && stage.screen().contains("[Ada"), "{}", stage.screen());
    stage.keys(&["Enter"]);
    assert_eq!(presses(&mut stage).len(), 1, "after a refusal it can be pressed again");
    stage.msg(done(tag(), 200, json!({ "accepted": true, "rev": 4 })));
    assert!(!stage.screen().contains("[Ada"), "what was sent is the gateway's: {}", stage.screen());
    // Pasted text goes into the field, and presses nothing.
    stage.keys(&["S-Tab"]);
    stage.msg(Msg::Paste("Bob\r\nx".into()));
    assert!(stage.screen().contains("[Bob x"), "{}", stage.screen());
    assert_eq!(presses(&mut stage), []);
}

#[test]
fn tui_request_is_drawn_over_a_surface_and_gets_no_letter_of_a_field() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    stage.event("s_1", "surface_updated", &shown("build", 1, &json!({})));
    stage.keys(&["Esc", "s", "Tab", "Tab"]);
    stage.type_text("an");
    stage.event("s_1", "request_opened", &ask("q_1", "s_1", "make deploy", json!({})));
    stage.advance(10 * ARM_DELAY);
    assert!(stage.screen().contains("make deploy"), "{}", stage.screen());
    stage.type_text("ad");
    assert_eq!(stage.answers(), Vec::<Value>::new(), "letters of a field are text");
    assert!(stage.screen().contains("[anad"), "{}", stage.screen());
    stage.keys(&["Esc", "a"]);
    assert_eq!(stage.answers(), Vec::<Value>::new(), "the first press only chooses the request");
    stage.advance(ARM_DELAY);
    stage.keys(&["a"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o1", "digest": "d1" })]);
    assert!(stage.app.pages.session.surface_is_open(&stage.app.shared));
}

#[test]
fn tui_surface_answers_its_own_question_without_a_card() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    let asks = json!({ "ask": { "request_id": "q_1", "submit": ["tell"] } });
    stage.event("s_1", "surface_updated", &shown("build", 1, &asks));
    let question = json!({ "type": "prompt", "title": "Whom to tell?", "options": [] });
    stage.event("s_1", "request_opened", &ask("q_1", "s_1", "Whom to tell?", question));
    stage.keys(&["Esc"]);
    assert!(stage.app.shared.card.card.is_some(), "in the conversation it is a request: {}", stage.screen());
    stage.app.shared.card.card = None;
    let mut effects = Vec::new();
    stage.app.shared.writing = false;
    stage.msg(Msg::Tick);
    let palette = |stage: &mut Stage| {
        stage.keys(&["C-k"]);
        stage.type_text("surface");
        stage.keys(&["Enter"]);
    };
    palette(&mut stage);
    effects.append(&mut stage.effects);
    assert!(stage.app.shared.card.card.is_none() && stage.screen().contains("it asks you"), "{}", stage.screen());
    assert!(stage.screen().contains("[ Send ] answers"), "{}", stage.screen());
    // Another request is still drawn over it.
    stage.event("s_1", "request_opened", &ask("q_2", "s_1", "make deploy", json!({})));
    assert!(stage.screen().contains("make deploy"), "{}", stage.screen());
}

#[test]
fn tui_surfaces_are_read_again_after_a_missed_change() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    stage.event("s_1", "surface_updated", &shown("build", 1, &json!({})));
    stage.effects.clear();
    stage.event("s_1", "surface_updated", &changed("build", 3, 0.9));
    let read = |stage: &mut Stage| {
        let sent = std::mem::take(&mut stage.effects).into_iter();
        sent.filter(
            |effect| matches!(effect, Effect::Call { request, .. } if request.path == "/v1/sessions/s_1/surfaces"),
        )
        .count()
    };
    assert_eq!(read(&mut stage), 1);
    // What arrives meanwhile is applied to what is read.
    stage.event("s_1", "surface_updated", &changed("build", 4, 0.95));
    assert_eq!(read(&mut stage), 0, "once");
    let list = json!({ "surfaces": [shown("build", 3, &json!({}))] });
    stage.msg(done(CallTag::Surfaces("s_1".into()), 200, list));
    assert!(stage.screen().contains("95%"), "{}", stage.screen());
    assert_eq!(read(&mut stage), 0);
}

#[test]
fn tui_surfaces_come_with_the_snapshot_and_older_events_change_nothing() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    let mut effects = Vec::new();
    stage.app.open("s_1".into(), &mut effects);
    let event = |place: u64, body: Value| json!({ "kind": "surface_updated", "cursor": format!("e:{place}"), "run_id": "r_1", "at": at(NOON), "event": body });
    let events = [
        event(1, shown("build", 1, &json!({}))),
        event(2, changed("build", 2, 0.6)),
        event(3, shown("gone", 1, &json!({}))),
    ];
    let snapshot = json!({ "surfaces": [shown("build", 5, &json!({ "pinned": true })), shown("late", 1, &json!({}))] });
    let subscription = stage.app.following();
    stage.msg(Msg::Opened(subscription, opening_of(page_of(&events, None), &snapshot)));
    stage.session_event(ClientEvent::Live);
    let screen = stage.screen();
    assert!(screen.contains("50%") && !screen.contains("60%"), "the snapshot is newer: {screen}");
    assert!(screen.contains("surface gone (closed)") && screen.contains("▣ pinned Nightly build"), "{screen}");
    // Two surfaces: the pinned one is opened first, and keys go to the other.
    stage.keys(&["Esc", "s"]);
    assert!(stage.screen().contains("pinned  1 of 2"), "{}", stage.screen());
    stage.keys(&["]"]);
    assert!(stage.screen().contains("2 of 2"), "{}", stage.screen());
    // One that is closed leaves the page to the conversation.
    stage.place = 10;
    stage.event(
        "s_1",
        "surface_updated",
        &json!({ "surface": "late", "rev": 2, "base": 1, "closed": true, "messages": [] }),
    );
    assert!(!stage.app.pages.session.surface_is_open(&stage.app.shared));
}
