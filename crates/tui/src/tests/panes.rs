//! Panes, projects, the mouse, and who has the keys.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::*;
use crate::pages::Page as _;

fn mouse(stage: &mut Stage, kind: MouseEventKind, (column, row): (u16, u16)) {
    stage.msg(Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
}

/// The place where a text begins on the screen.
fn place(stage: &Stage, text: &str) -> (u16, u16) {
    let screen = stage.screen();
    let found = screen.lines().enumerate().find_map(|(row, line)| {
        let at = line.find(text)?;
        Some((line[..at].chars().count(), row))
    });
    let (column, row) = found.unwrap_or_else(|| panic!("no {text:?}:\n{screen}"));
    (u16::try_from(column).unwrap(), u16::try_from(row).unwrap())
}

fn projects() -> Vec<Value> {
    let mut all = sessions();
    for (session, (name, branch)) in all.iter_mut().zip([("parser", "main"), ("shop", "fix-db"), ("parser", "")]) {
        let mut project = json!({ "name": name, "root": format!("/home/you/{name}") });
        if !branch.is_empty() {
            project["branch"] = branch.into();
        }
        session["project"] = project;
    }
    all
}

/// The sessions that the shell was told to read.
fn followed(stage: &mut Stage) -> Vec<String> {
    let effects = std::mem::take(&mut stage.effects).into_iter();
    let all = effects.filter_map(|effect| match effect {
        Effect::Follow(Some(id)) => Some(id),
        _ => None,
    });
    all.collect()
}

#[test]
fn panes_show_the_selected_session_once_the_selection_rests() {
    let mut stage = Stage::new(120, 40, &sessions(), &[]);
    followed(&mut stage);
    stage.keys(&["j", "j"]);
    assert_eq!(followed(&mut stage), Vec::<String>::new(), "moving reads nothing");
    stage.advance(400);
    assert_eq!(followed(&mut stage), ["s_1"]);
    stage.session_event(ClientEvent::Live);
    conversation(&mut stage);
    let screen = stage.screen();
    assert!(screen.contains("▌3 sessions") && screen.contains("cargo test"), "{screen}");
    assert!(!screen.contains("write to the agent"), "a preview has no composer:\n{screen}");
    // Nobody looks at a preview: it is not reported, and nothing is marked as read.
    stage.keys(&["Tab"]);
    assert_eq!(followed(&mut stage), Vec::<String>::new(), "it is open already");
    let screen = stage.screen();
    assert!(screen.contains("write to the agent") && screen.contains("▌○ Fix the parser"), "{screen}");
    stage.keys(&["Tab"]);
    assert_eq!(stage.app.shared.page, TuiPage::Sessions, "and back");
    stage.keys(&["Right", "Esc", "Left"]);
    assert_eq!(stage.app.shared.page, TuiPage::Sessions);
    // From 180 columns, plan and tools are at the right.
    stage.msg(Msg::Resize(200, 50));
    let screen = stage.screen();
    assert!(screen.contains("Latest tool calls") && screen.matches("Mend it").count() == 2, "{screen}");
    insta::assert_snapshot!("panes_200x50", screen);
}

#[test]
fn panes_put_the_card_beside_the_conversation() {
    let asks =
        [ask("q_1", "s_3", "make deploy", json!({ "risk": "elevated", "risk_reasons": ["changes other machines"] }))];
    for (width, height) in [(120, 40), (200, 50)] {
        let mut stage = Stage::new(width, height, &sessions(), &asks);
        stage.keys(&["1"]);
        stage.advance(400);
        stage.session_event(ClientEvent::Live);
        stage.advance(ARM_DELAY);
        insta::assert_snapshot!(format!("panes_inbox_{width}x{height}"), stage.screen());
        // The card keeps its state when the session is opened.
        stage.keys(&["j"]);
        stage.advance(ARM_DELAY);
        stage.keys(&["r"]);
        stage.type_text("why");
        assert!(stage.screen().contains("› why"), "{}", stage.screen());
        stage.keys(&["Esc", "Enter"]);
        assert_eq!(stage.app.shared.page, TuiPage::Session);
        stage.advance(ARM_DELAY);
        stage.keys(&["a"]);
        assert_eq!(stage.answers().len(), 1, "{}", stage.screen());
    }
}

#[test]
fn panes_list_sessions_by_project_and_fold_them() {
    for (width, branch) in [(40, "demo · fix-db"), (80, "[fix-db]")] {
        let mut stage = Stage::new(width, 24, &projects(), &[]);
        let screen = stage.screen();
        let at = |name: &str| screen.lines().position(|line| line.contains(name)).unwrap_or_else(|| panic!("{screen}"));
        assert!(at("▾ parser") < at("Delete old builds") && at("Fix the parser") < at("▾ shop"), "{screen}");
        assert!(screen.contains("?1 2") && screen.contains(branch), "{screen}");
        // Left goes to the heading, and folds it.
        stage.keys(&["Left", "Left"]);
        let screen = stage.screen();
        assert!(screen.contains("▸ parser") && !screen.contains("Fix the parser"), "{screen}");
        stage.keys(&["Right", "j", "Right"]);
        assert_eq!(stage.app.pages.session.conversation.as_ref().unwrap().session, "s_3", "Right opens a row");
    }
    // A filter finds what is folded.
    let mut stage = Stage::new(80, 24, &projects(), &[]);
    stage.keys(&["Left", "Left", "f"]);
    stage.type_text("parser fix");
    assert!(stage.screen().contains("Fix the parser"), "{}", stage.screen());
}

#[test]
fn panes_mouse_selects_rows_panes_and_buttons() {
    let asks = [ask("q_1", "s_3", "make deploy", json!({})), ask("q_2", "s_2", "make clean", json!({}))];
    let click = MouseEventKind::Down(MouseButton::Left);
    for (width, height) in [(80, 24), (200, 50)] {
        let mut stage = Stage::new(width, height, &sessions(), &asks);
        stage.keys(&["1"]);
        let at = place(&stage, "make deploy");
        mouse(&mut stage, click, at);
        let button = place(&stage, "Allow once");
        mouse(&mut stage, click, button);
        assert_eq!(stage.answers(), Vec::<Value>::new(), "not before it was visible for a moment");
        stage.advance(ARM_DELAY);
        mouse(&mut stage, click, (button.0, button.1 - 1));
        assert_eq!(stage.answers(), Vec::<Value>::new(), "not beside it");
        mouse(&mut stage, click, button);
        assert_eq!(stage.answers(), [json!({ "option_id": "o1", "digest": "d1" })], "{}", stage.screen());
        // The wheel moves the list under it.
        let at = place(&stage, "make clean");
        let before = stage.app.pages.inbox.selected();
        mouse(&mut stage, if before == 0 { MouseEventKind::ScrollDown } else { MouseEventKind::ScrollUp }, at);
        assert_ne!(stage.app.pages.inbox.selected(), before);
    }
    // With panes, a click into the session goes there.
    let mut stage = Stage::new(120, 40, &sessions(), &[]);
    mouse(&mut stage, click, (90, 20));
    assert_eq!(stage.app.shared.page, TuiPage::Session);
    let at = place(&stage, "Upgrade the database");
    mouse(&mut stage, click, at);
    assert_eq!(
        (stage.app.shared.page, stage.app.pages.sessions.selected_session(&stage.app.shared).as_deref()),
        (TuiPage::Sessions, Some("s_2"))
    );
}

#[test]
fn panes_mouse_moves_and_chooses_in_every_list() {
    let click = MouseEventKind::Down(MouseButton::Left);
    // The list of sessions: the wheel moves, and a second click opens.
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    let at = place(&stage, "Upgrade the database");
    let before = stage.app.pages.sessions.selected();
    let wheel = |down: bool| if down { MouseEventKind::ScrollDown } else { MouseEventKind::ScrollUp };
    mouse(&mut stage, wheel(before == 0), at);
    assert_ne!(stage.app.pages.sessions.selected(), before);
    mouse(&mut stage, click, at);
    assert_eq!(stage.app.pages.sessions.selected_session(&stage.app.shared).as_deref(), Some("s_2"));
    mouse(&mut stage, click, at);
    assert_eq!(stage.app.shared.page, TuiPage::Session);
    // Devices, more than the screen has lines for: the clicked line is the one that is drawn there.
    let mut stage = Stage::new(80, 16, &[], &[]);
    stage.keys(&["5"]);
    let one = |n: usize| device(&format!("d_{n}"), &format!("phone-{n:02}"), json!({}));
    stage.msg(done(
        CallTag::Page(TuiPage::Devices, String::new()),
        200,
        json!({ "devices": (0..40).map(one).collect::<Vec<_>>() }),
    ));
    stage.keys(&["G"]);
    let at = place(&stage, "phone-33");
    mouse(&mut stage, click, at);
    assert_eq!(stage.app.pages.devices.list.chosen.as_deref(), Some("d_33"), "{}", stage.screen());
    // Results of a search.
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.keys(&["3"]);
    let hits: Vec<Value> = (1..4).map(|n| json!({ "session_id": format!("s_{n}"), "cursor": format!("e:{n}"), "role": "agent", "snippet": format!("found-{n}") })).collect();
    stage.msg(done(CallTag::Page(TuiPage::Search, "x".into()), 200, json!({ "hits": hits })));
    let at = place(&stage, "found-2");
    mouse(&mut stage, click, at);
    assert_eq!((stage.app.shared.page, stage.app.pages.search.selected()), (TuiPage::Search, 1), "{}", stage.screen());
    mouse(&mut stage, click, at);
    let opened = stage.app.pages.session.conversation.as_ref().map(|conversation| conversation.session.as_str());
    assert_eq!((stage.app.shared.page, opened), (TuiPage::Session, Some("s_2")));
}

#[test]
fn panes_request_never_takes_the_keys_from_the_composer() {
    let question = ask("q_1", "s_1", "make deploy", json!({}));
    for (width, height) in [(40, 12), (80, 24), (120, 40), (180, 50)] {
        // It is open before the session.
        let mut stage = Stage::new(width, height, &sessions(), std::slice::from_ref(&question));
        stage.open("s_1");
        stage.advance(ARM_DELAY);
        stage.keys(&["a"]);
        assert_eq!((stage.answers().len(), stage.app.pages.session.composer.lines().concat()), (0, "a".to_owned()));
        // The session is opened before anything is known of it.
        let app = App::new(Theme::new(Depth::True, false), (width, height), NOON, BTreeMap::new());
        let mut stage = Stage { app, now: NOON, place: 1, effects: Vec::new() };
        stage.app.start(Some("s_1".into()));
        stage.msg(Msg::Event(hello_of(&sessions(), std::slice::from_ref(&question))));
        stage.msg(Msg::Event(ClientEvent::Live));
        stage.advance(ARM_DELAY);
        stage.keys(&["a"]);
        assert_eq!((stage.answers().len(), stage.app.pages.session.composer.lines().concat()), (0, "a".to_owned()));
        // It comes while the composer is empty: a line says how to answer it.
        let mut stage = Stage::new(width, height, &sessions(), &[]);
        stage.open("s_1");
        stage.event("s_1", "request_opened", &question);
        stage.advance(ARM_DELAY);
        assert!(stage.app.shared.writing);
        assert!(stage.screen().contains("gemini asks: Esc, then a"), "{}", stage.screen());
        stage.keys(&["Esc", "a"]);
        assert_eq!((stage.answers().len(), stage.app.shared.writing), (0, false), "not within the first moment");
        stage.advance(ARM_DELAY);
        stage.keys(&["d"]);
        assert_eq!(stage.answers().len(), 1);
        // After the answer the composer has the keys again, but for a second press.
        let resolved = json!({ "request_id": "q_1", "state": "answered", "ok": false, "at": at(stage.now),
            "resolved_by": { "device_id": "d_local", "name": "me" } });
        stage.event("s_1", "request_resolved", &resolved);
        stage.keys(&["d"]);
        assert_eq!(
            (stage.app.shared.writing, stage.app.pages.session.composer.lines().concat()),
            (false, String::new()),
            "a second press"
        );
        stage.advance(ARM_DELAY);
        stage.type_text("next");
        assert_eq!(stage.app.pages.session.composer.lines().concat(), "next");
        // With something typed, too; `Esc` goes to the card and back.
        stage.event("s_1", "request_opened", &ask("q_2", "s_1", "make clean", json!({})));
        stage.advance(LINGER_TIME);
        stage.advance(ARM_DELAY);
        stage.keys(&["Esc", "Esc"]);
        stage.type_text("!");
        assert_eq!(stage.app.pages.session.composer.lines().concat(), "next!");
        stage.keys(&["Esc"]);
        stage.advance(ARM_DELAY);
        stage.keys(&["a"]);
        assert_eq!(stage.answers().len(), 1);
    }
}

#[test]
fn panes_next_request_is_ready_within_half_a_second_of_an_answer() {
    let asks: Vec<Value> = (0..20)
        .map(|n| ask(&format!("q_{n:02}"), "s_1", &format!("make t{n:02}"), json!({ "opened_at": at(NOON + n) })))
        .collect();
    for width in [80, 120, 180] {
        let mut stage = Stage::new(width, 40, &sessions(), &asks);
        stage.open_card("s_1");
        for n in 0..20 {
            stage.keys(&["a"]);
            assert_eq!(stage.answers().len(), 1, "{n}: {}", stage.screen());
            let resolved = json!({ "request_id": format!("q_{n:02}"), "state": "answered", "ok": true, "option_id": "o1", "at": at(stage.now),
                "resolved_by": { "device_id": "d_local", "name": "me" } });
            stage.event("s_1", "request_resolved", &resolved);
            stage.advance(ARM_DELAY);
        }
    }
}
