//! The inbox: rows, groups, selection, and answers to several requests.

use super::*;

fn asks(count: usize) -> Vec<Value> {
    let one = |n: usize| {
        ask(
            &format!("q_{n:04}"),
            &format!("s_{n:04}"),
            &format!("make t{n:04}\nin /home/you/project"),
            json!({ "risk": "elevated", "risk_reasons": ["runs a program of the folder"], "subject": { "type": "command", "argv": [] },
                "digest": format!("d{n}"), "opened_at": at(NOON - i64::try_from(n).unwrap()) }),
        )
    };
    (0..count).map(one).collect()
}

fn inbox(width: u16, height: u16, requests: &[Value]) -> Stage {
    let mut stage = Stage::new(width, height, &sessions(), requests);
    stage.keys(&["1"]);
    stage
}

fn closed(id: &str, session: &str, when: i64) -> ClientEvent {
    let resolved = json!({ "request_id": id, "state": "answered", "ok": false, "at": at(when),
        "resolved_by": { "device_id": "d_2", "name": "phone" } });
    event_at(session, 9, "request_resolved", &resolved, when)
}

/// The answers that are on their way: which request, and what.
fn sent(stage: &mut Stage) -> Vec<(String, Value)> {
    let effects = std::mem::take(&mut stage.effects).into_iter();
    let all = effects.filter_map(|effect| match effect {
        Effect::Call { tag: CallTag::Answer(id), request, key: CallKey::New } => Some((id, body_of(&request))),
        _ => None,
    });
    all.collect()
}

fn receipt(stage: &mut Stage, id: &str, status: u16) {
    let body = json!({ "request_id": id, "state": "answered", "ok": true, "at": at(stage.now),
        "resolved_by": { "device_id": if status == 200 { "d_local" } else { "d_2" }, "name": "phone" } });
    stage.msg(done(CallTag::Answer(id.to_owned()), status, body));
}

#[test]
fn inbox_counts_requests_that_need_a_newer_version() {
    let newer = |id: &str| ask(id, "s_1", "make it", json!({ "type": "telepathy" }));
    let mut stage = inbox(80, 24, &[newer("q_new"), ask("q_1", "s_1", "make deploy", json!({}))]);
    let screen = stage.screen();
    assert!(screen.contains("1 waiting · 1 request needs a newer plexus"), "{screen}");
    stage.msg(Msg::Event(event_at("s_1", 8, "request_opened", &newer("q_newer"), NOON)));
    assert!(stage.screen().contains("2 requests need a newer plexus"), "{}", stage.screen());
    stage.msg(Msg::Event(closed("q_new", "s_1", NOON)));
    assert!(stage.screen().contains("1 request needs a newer plexus"), "{}", stage.screen());
    let empty = inbox(80, 24, &[newer("q_new")]).screen();
    assert!(empty.contains("1 request needs a newer plexus") && !empty.contains("Nothing waits"), "{empty}");
}

#[test]
fn triage_draws_two_lines_for_each_request_at_every_size() {
    for (width, height) in [(40, 12), (60, 20), (80, 24), (120, 40), (200, 50)] {
        for count in [1, 50, 1_000] {
            let mut stage = inbox(width, height, &asks(count));
            stage.advance(ARM_DELAY);
            for n in 0..count.min(60) {
                let screen = stage.screen();
                let name = format!("make t{n:04}");
                assert!(screen.contains(&name), "{width}x{height}, {count}, row {n}:\n{screen}");
                assert!(screen.contains("│ │ make") || screen.contains("│ make"), "the card:\n{screen}");
                assert!(screen.contains("Allow once") && screen.contains("Deny"), "the buttons:\n{screen}");
                assert!(screen.contains("Elevated  runs") && screen.contains("gemini"), "{screen}");
                stage.keys(&["j"]);
            }
            stage.keys(&["G"]);
            let last = format!("make t{:04}", count - 1);
            assert!(stage.screen().contains(&last), "{width}x{height}, {count}:\n{}", stage.screen());
        }
    }
}

#[test]
fn triage_starts_in_the_inbox_only_if_something_waits() {
    for (requests, page) in [(asks(1), TuiPage::Inbox), (Vec::new(), TuiPage::Sessions)] {
        let app = App::new(Theme::new(Depth::True, false), (80, 24), NOON, BTreeMap::new());
        let mut stage = Stage { app, now: NOON, place: 1, effects: Vec::new() };
        stage.app.start(None);
        stage.msg(Msg::Event(hello_of(&sessions(), &requests)));
        stage.msg(Msg::Event(ClientEvent::Live));
        assert_eq!(stage.app.shared.page, page);
        // A later request, or a connection that comes back, moves nobody.
        stage.keys(&["2"]);
        stage.msg(Msg::Event(hello_of(&sessions(), &asks(2))));
        stage.msg(Msg::Event(ClientEvent::Live));
        assert_eq!(stage.app.shared.page, TuiPage::Sessions);
    }
}

#[test]
fn triage_groups_the_same_command_and_the_same_session() {
    let more = |digest: &str| json!({ "risk": "low", "subject": { "type": "command" }, "digest": digest });
    let requests = [
        ask("q_1", "s_1", "cargo test\nin /a", more("1")),
        ask("q_2", "s_2", "cargo test\nin /b", more("2")),
        ask("q_3", "s_3", "ls", more("3")),
        ask("q_4", "s_3", "make", more("4")),
        ask("q_5", "s_3", "make check", more("5")),
        ask("q_6", "s_1", "rm x", more("6")),
    ];
    let mut stage = inbox(80, 40, &requests);
    let screen = stage.screen();
    assert!(screen.contains("▾ cargo test") && screen.contains("▾ Delete old builds"), "{screen}");
    assert!(screen.contains("cargo test · Fix the parser"), "the sessions tell them apart:\n{screen}");
    // The heading of the group: folded by Left, unfolded by Right.
    stage.keys(&["g"]);
    while !stage.screen().contains("A group: x selects") {
        stage.keys(&["j"]);
    }
    stage.keys(&["Left"]);
    let screen = stage.screen();
    assert!(screen.contains("▸ "), "{screen}");
    stage.keys(&["Right", "x"]);
    assert!(stage.screen().contains("selected"), "{}", stage.screen());
    assert!(
        stage.app.pages.inbox.triage.selected.len() >= 2,
        "all of the group: {:?}",
        stage.app.pages.inbox.triage.selected
    );
    stage.keys(&["x"]);
    assert!(stage.app.pages.inbox.triage.selected.is_empty());
    // A letter that answers does nothing on a heading.
    stage.advance(ARM_DELAY);
    stage.keys(&["a", "d"]);
    assert_eq!(sent(&mut stage), []);
}

#[test]
fn triage_allows_several_only_after_each_was_read() {
    let mut requests = asks(3);
    requests.push(ask("q_danger", "s_1", "rm -rf /", json!({ "risk": "danger", "digest": "dd" })));
    requests.push(ask(
        "q_form",
        "s_2",
        "which",
        json!({ "type": "prompt", "options": [], "risk": "low", "digest": "df" }),
    ));
    let mut stage = inbox(80, 40, &requests);
    // The first row is the dangerous one: it is read, but never allowed with others.
    stage.advance(ARM_DELAY);
    stage.keys(&["x", "j"]);
    // One is only passed by; one is read.
    stage.keys(&["x", "j"]);
    stage.advance(ARM_DELAY);
    stage.keys(&["x"]);
    stage.keys(&["a"]);
    let screen = stage.screen();
    assert!(screen.contains("Allow 1 request once?") && screen.contains("2 left out"), "{screen}");
    assert!(screen.contains("dangerous: allow it by itself") && screen.contains("not read to its end"), "{screen}");
    // Not by a key that was meant for something else.
    stage.keys(&["y"]);
    assert_eq!(sent(&mut stage), []);
    stage.advance(ARM_DELAY);
    stage.keys(&["n"]);
    assert_eq!(sent(&mut stage), [], "no means no");
    stage.keys(&["a"]);
    stage.advance(ARM_DELAY);
    stage.keys(&["y"]);
    assert_eq!(sent(&mut stage), [("q_0001".to_owned(), json!({ "option_id": "o1", "digest": "d1" }))]);
    receipt(&mut stage, "q_0001", 200);
    assert!(stage.screen().contains("allowed 1"), "{}", stage.screen());
    assert_eq!(stage.app.pages.inbox.triage.selected.len(), 2, "what was left out stays selected");
}

#[test]
fn triage_leaves_out_what_changed_since_the_question() {
    let mut stage = inbox(80, 40, &asks(2));
    stage.advance(ARM_DELAY);
    stage.keys(&["x", "j"]);
    stage.advance(ARM_DELAY);
    stage.keys(&["x", "a"]);
    assert!(stage.screen().contains("Allow 2 requests once?"), "{}", stage.screen());
    let changed = ask("q_0000", "s_0000", "make deploy", json!({ "revision": 1, "digest": "new", "risk": "low" }));
    stage.msg(Msg::Event(event_at("s_0000", 9, "request_updated", &changed, stage.now)));
    stage.advance(ARM_DELAY);
    stage.keys(&["y"]);
    let all = sent(&mut stage);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].0, "q_0001");
}

#[test]
fn triage_denies_many_a_few_at_a_time_and_sums_up() {
    let mut stage = inbox(80, 40, &asks(40));
    stage.keys(&["C-a"]);
    assert_eq!(stage.app.pages.inbox.triage.selected.len(), 40);
    stage.keys(&["r"]);
    stage.type_text("not today");
    stage.keys(&["Enter"]);
    assert!(stage.screen().contains("Deny 40 requests?"), "{}", stage.screen());
    stage.advance(ARM_DELAY);
    stage.keys(&["y"]);
    let (mut all, mut open) = (Vec::new(), sent(&mut stage));
    while !open.is_empty() {
        assert!(open.len() <= 6, "a few at a time: {}", open.len());
        for (id, body) in std::mem::take(&mut open) {
            assert_eq!((&body["option_id"], &body["reason"]), (&json!("o3"), &json!("not today")));
            receipt(&mut stage, &id, if id == "q_0007" { 409 } else { 200 });
            all.push(id);
            open.extend(sent(&mut stage));
        }
    }
    assert_eq!(all.len(), 40);
    let screen = stage.screen();
    assert!(screen.contains("denied 39 · 1 answered elsewhere first"), "{screen}");
}

#[test]
fn triage_keeps_rows_in_place_while_requests_come_and_go() {
    let mut stage = inbox(80, 24, &asks(30));
    for _ in 0..15 {
        stage.keys(&["j"]);
    }
    let row = |stage: &Stage, name: &str| stage.screen().lines().position(|line| line.contains(name));
    let before = row(&stage, "make t0015");
    assert!(before.is_some(), "{}", stage.screen());
    // Another one, more dangerous, comes below.
    let more = ask("q_new", "s_1", "rm -rf /", json!({ "risk": "danger", "digest": "x" }));
    stage.msg(Msg::Event(event_at("s_1", 9, "request_opened", &more, stage.now)));
    assert_eq!(row(&stage, "make t0015"), before, "{}", stage.screen());
    // One above is answered elsewhere: it stays for a moment, and goes without moving the selected row.
    stage.msg(Msg::Event(closed("q_0014", "s_0014", stage.now)));
    assert_eq!(row(&stage, "make t0015"), before);
    assert!(stage.screen().contains("Denied by phone"), "{}", stage.screen());
    stage.advance(LINGER_TIME);
    assert_eq!(row(&stage, "make t0015"), before, "{}", stage.screen());
    assert!(!stage.screen().contains("make t0014"), "{}", stage.screen());
    // The selected one itself: after it, the next is selected.
    stage.msg(Msg::Event(closed("q_0015", "s_0015", stage.now)));
    stage.advance(LINGER_TIME);
    stage.advance(ARM_DELAY);
    assert!(stage.screen().contains("│ │ make t0016"), "{}", stage.screen());
    // Whoever comes back finds the most dangerous first.
    stage.keys(&["2", "1", "g"]);
    assert_eq!(row(&stage, "rm -rf /"), Some(2), "{}", stage.screen());
}
