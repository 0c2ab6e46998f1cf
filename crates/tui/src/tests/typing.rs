//! Typed sentences answer nothing and open nothing, wherever the focus is. Single keys still act.

use plexus_protocol::answers::AnswerRole;

use super::*;
use crate::pages::shared::Overlay;

/// Milliseconds between two letters of a person who types.
const PACE: i64 = 120;

/// Sentences that begin with every character which a keyboard types.
fn sentences() -> Vec<String> {
    let firsts = (' '..='~').filter(|c| *c != ' ');
    let rests = ["dd a test", "es, always", " a d A e 1 x"];
    firsts.flat_map(|first| rests.map(|rest| format!("{first}{rest}"))).collect()
}

/// A place that can have the focus: its name, and how to get there.
type Place = (&'static str, fn(&mut Stage));

const PLACES: &[Place] = &[
    ("the empty composer", |stage| stage.open("s_1")),
    ("the composer with text", |stage| {
        stage.open("s_1");
        stage.type_text("so ");
    }),
    ("a card that was focused", |stage| stage.open_card("s_1")),
    ("the conversation", |stage| {
        stage.open("s_2");
        stage.keys(&["Esc"]);
    }),
    ("the menu of a card", |stage| {
        stage.open_card("s_1");
        stage.keys(&["m"]);
    }),
    ("an answer that waits for its second press", |stage| {
        stage.open_card("s_1");
        stage.keys(&["A"]);
    }),
    ("the word for danger", |stage| {
        stage.open_card("s_3");
        stage.keys(&["a"]);
    }),
    ("the reason of a denial", |stage| {
        stage.open_card("s_1");
        stage.keys(&["r"]);
    }),
    ("the inbox", |stage| stage.keys(&["1"])),
    ("a card of the inbox", |stage| stage.keys(&["1", "k", "j"])),
    ("a selection of the inbox", |stage| stage.keys(&["1", "C-a"])),
    ("the question about several requests", |stage| stage.keys(&["1", "C-a", "d"])),
    ("the sessions", |_| {}),
    ("the results of a search", |stage| stage.keys(&["3", "Esc"])),
    ("the runtimes", |stage| stage.keys(&["4"])),
    ("the devices", |stage| stage.keys(&["5"])),
    ("a confirmation", |stage| {
        stage.open("s_2");
        stage.keys(&["Esc", "x"]);
        assert!(matches!(stage.app.shared.overlay, Some(Overlay::Confirm { .. })));
    }),
    ("the help", |stage| stage.keys(&["?"])),
    ("the usage", |stage| stage.keys(&["U"])),
    ("the changes", |stage| {
        stage.open("s_2");
        stage.keys(&["Esc", "g", "c"]);
        assert!(stage.app.pages.changes.screen.is_some());
    }),
    ("a surface", |stage| {
        stage.open("s_1");
        stage.event("s_1", "surface_updated", &surfaces::shown("build", 1, &json!({})));
        stage.keys(&["Esc", "Esc", "Esc", "s"]);
    }),
];

/// The state that a sentence must not change.
fn standing(stage: &Stage) -> (TuiPage, Option<std::mem::Discriminant<Overlay>>, bool, bool, Option<String>, bool) {
    let app = &stage.app;
    (
        app.shared.page,
        app.shared.overlay.as_ref().map(std::mem::discriminant),
        app.pages.new_session.form.is_some(),
        app.pages.changes.screen.is_some(),
        app.pages
            .session
            .conversation
            .as_ref()
            .filter(|_| app.shared.page == TuiPage::Session)
            .map(|one| one.session.clone()),
        app.shared.quit,
    )
}

fn writes(effects: &[Effect]) -> Vec<String> {
    let written = effects.iter().filter_map(|effect| match effect {
        Effect::Call { request, .. } if request.method == "GET" => None,
        Effect::Call { request, .. } | Effect::Start { request, .. } => Some(request.path.clone()),
        Effect::Set { session, call, .. } => Some(call.request(session).0.to_owned()),
        _ => None,
    });
    written.collect()
}

fn types(place: &Place, size: (u16, u16), sentence: &str) {
    let open = [
        ask("q_1", "s_1", "make deploy", json!({ "risk": "elevated" })),
        ask("q_3", "s_3", "rm -rf build", json!({ "risk": "danger", "digest": "d3" })),
    ];
    let mut stage = Stage::new(size.0, size.1, &sessions_of_three(), &open);
    place.1(&mut stage);
    stage.advance(10 * ARM_DELAY);
    stage.effects.clear();
    let before = standing(&stage);
    for (n, letter) in sentence.chars().enumerate() {
        let session = ["s_1", "s_2", "s_3"][n % 3];
        let place = 100 + u64::try_from(n).unwrap();
        let body = ask(
            &format!("q_new{}", n / 6),
            session,
            &format!("make t{n}"),
            json!({ "revision": n % 6, "digest": n.to_string() }),
        );
        let kind = match n % 6 {
            1 => Some(("request_opened", body)),
            3 => Some(("request_updated", body)),
            5 => {
                let over = json!({ "request_id": format!("q_new{}", n / 6), "state": "answered", "ok": true, "at": at(stage.now),
                    "resolved_by": { "device_id": "d_2", "name": "phone" } });
                Some(("request_resolved", over))
            }
            _ => None,
        };
        if let Some((kind, body)) = kind {
            stage.msg(Msg::Event(event_at(session, place, kind, &body, stage.now)));
        }
        stage.advance(PACE);
        stage.type_text(&letter.to_string());
    }
    if stage.app.shared.page != TuiPage::Session {
        stage.advance(PACE);
        stage.msg(Msg::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)));
    }
    stage.advance(ARM_DELAY);
    stage.advance(ARM_DELAY);
    assert_eq!(
        writes(&stage.effects),
        Vec::<String>::new(),
        "{} at {size:?}: {sentence:?}\n{}",
        place.0,
        stage.screen()
    );
    assert_eq!(standing(&stage), before, "{} at {size:?}: {sentence:?}\n{}", place.0, stage.screen());
}

fn sessions_of_three() -> Vec<Value> {
    vec![
        session("s_1", "Fix the parser", "waiting", 120_000),
        session("s_2", "Upgrade the database", "running", 2_000),
        session("s_3", "Delete old builds", "waiting", 4_000),
    ]
}

#[test]
fn typing_a_sentence_answers_nothing_and_goes_nowhere() {
    let all = sentences();
    assert!(all.len() >= 200);
    for (at, place) in PLACES.iter().enumerate() {
        // Each place gets every first letter, and all places together each sentence several times.
        for (n, sentence) in all.iter().enumerate().filter(|(n, _)| (n / 3 + n + at).is_multiple_of(3)) {
            // Outside of a session a slash goes to the search, which takes the text.
            let searches = sentence.starts_with('/') && !matches!(place.0, "the question about several requests");
            let sizes: &[(u16, u16)] =
                if n % 18 < 3 { &[(80, 24), (40, 12), (120, 40), (180, 50)] } else { &[(80, 24)] };
            for size in sizes.iter().filter(|_| !searches) {
                types(place, *size, sentence);
            }
        }
    }
}

#[test]
fn typing_in_a_session_goes_into_its_composer_from_the_first_letter() {
    for place in [PLACES[0], PLACES[2], PLACES[3]] {
        for sentence in ["add a test", "say hello", "/compact", "quit that, please", "12 is wrong", "always"] {
            let mut stage = Stage::new(80, 24, &sessions_of_three(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
            place.1(&mut stage);
            stage.advance(10 * ARM_DELAY);
            for letter in sentence.chars() {
                stage.advance(PACE);
                stage.type_text(&letter.to_string());
            }
            assert_eq!(stage.app.pages.session.composer.lines().concat(), sentence, "{}", place.0);
            assert!(stage.app.shared.writing);
        }
    }
}

#[test]
fn typing_guard_lets_a_single_key_act_after_a_moment_as_of_its_press() {
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.open_card("s_1");
    stage.type_text("a");
    assert_eq!(stage.answers(), Vec::<Value>::new(), "it may be the beginning of a text");
    stage.advance(2 * ARM_DELAY);
    assert_eq!(stage.answers(), [json!({ "option_id": "o1", "digest": "d1" })]);
    // A request that changes meanwhile does not take the key.
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.open_card("s_1");
    stage.type_text("a");
    stage.event("s_1", "request_updated", &ask("q_1", "s_1", "make clean", json!({ "revision": 1, "digest": "d2" })));
    stage.advance(2 * ARM_DELAY);
    assert_eq!(stage.answers(), Vec::<Value>::new());
    // A key that is held down is no press.
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.keys(&["1", "j"]);
    stage.advance(ARM_DELAY);
    for _ in 0..20 {
        stage.type_text("a");
        stage.advance(30);
    }
    stage.advance(2 * ARM_DELAY);
    assert_eq!(stage.answers(), Vec::<Value>::new());
}

#[test]
fn typing_before_a_dialog_opened_confirms_nothing_in_it() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_2");
    stage.type_text("ma");
    stage.advance(PACE);
    // It opens by itself: a session in a worktree was archived.
    let worktree = worktree("/home/you/project", "x", json!({}));
    let tag = CallTag::Worktrees("/home/you/project".into());
    stage.msg(done(tag, 200, json!({ "worktrees": [worktree] })));
    stage.type_text("y");
    stage.advance(2 * ARM_DELAY);
    assert!(matches!(stage.app.shared.overlay, Some(Overlay::Confirm { .. })), "{}", stage.screen());
    stage.keys(&["Esc"]);
    assert!(stage.app.shared.overlay.is_none());
}

#[test]
fn answers_of_a_lying_agent_have_the_verbs_of_the_gateway() {
    let labels: [[&str; 4]; 5] = [
        ["Reject", "Deny this, and stop asking", "Allow just this once", "Always allow"],
        ["", "", "", ""],
        ["Deny", "Deny", "Deny", "Deny"],
        ["\u{202e}yned", "\u{2066}Deny", "\u{200b}", "Allow\u{1b}[2J"],
        [&"Deny ".repeat(40), &"no ".repeat(70), &"yes".repeat(70), &"x".repeat(200)],
    ];
    for (n, labels) in labels.iter().enumerate() {
        let kinds = ["allow_once", "allow_always", "reject_once", "reject_always"];
        let options: Vec<Value> =
            kinds.iter().zip(labels).map(|(kind, label)| json!({ "id": kind, "label": label, "kind": kind })).collect();
        for (width, height) in [(40, 20), (80, 24), (120, 40), (180, 50)] {
            let lies = ask("q_1", "s_1", "make deploy", json!({ "options": options }));
            let mut stage = Stage::new(width, height, &sessions(), &[lies]);
            stage.open_card("s_1");
            let screen = stage.screen();
            for text in [" a  Allow once", " d  Deny", " A  Always allow…"] {
                assert!(screen.contains(text), "{text} of {n} at {width}:\n{screen}");
            }
            assert!(!screen.contains('\u{202e}') && !screen.contains('\u{2066}'), "{screen}");
            // In the menu as well, in the same order; permanent answers need a second press.
            stage.keys(&["m"]);
            let screen = stage.screen();
            for role in [AnswerRole::AllowOnce, AnswerRole::Deny, AnswerRole::AllowAlways, AnswerRole::DenyAlways] {
                assert!(screen.contains(role.rule().verb), "{role:?} of {n} at {width}:\n{screen}");
            }
            stage.keys(&["j", "j", "j", "Enter"]);
            assert_eq!(stage.answers(), Vec::<Value>::new());
            assert!(stage.screen().contains("A again"), "{}", stage.screen());
            stage.advance(ARM_DELAY);
            stage.keys(&["A"]);
            assert_eq!(stage.answers(), [json!({ "option_id": "reject_always", "digest": "d1" })]);
        }
    }
}

#[test]
fn answers_of_a_device_with_a_limit_still_deny() {
    let danger = ask("q_1", "s_1", "rm -rf /", json!({ "risk": "danger" }));
    let mut stage = Stage::new(80, 24, &sessions(), &[danger]);
    let me = me("phone", json!({ "scopes": ["watch", "approve"], "approve_up_to": "elevated" }));
    stage.msg(done(CallTag::OwnDevice, 200, me));
    stage.open_card("s_1");
    assert!(stage.screen().contains("Too risky for this device"), "{}", stage.screen());
    stage.keys(&["a", "A"]);
    assert_eq!(stage.answers(), Vec::<Value>::new());
    stage.keys(&["d"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o3", "digest": "d1" })]);
}

#[test]
fn typing_keys_of_the_manual_are_those_of_the_help() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/keys.md");
    let manual = std::fs::read_to_string(path).unwrap();
    let help: std::collections::BTreeSet<&str> =
        crate::help::KEYS.iter().flat_map(|(_, keys)| *keys).flat_map(|(key, _)| key.split_whitespace()).collect();
    let (mut column, mut rows) = (None, 0);
    for line in manual.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let Some(at) = cells.iter().position(|cell| *cell == "attach") {
            column = Some(at);
        } else if column.and_then(|at| cells.get(at)) == Some(&"yes") {
            rows += 1;
            for key in cells[1].split('`').skip(1).step_by(2) {
                assert!(help.contains(key), "the help lacks {key}: {line}");
            }
        }
    }
    assert!(rows > 25, "{rows}");
    let requests = crate::help::KEYS.iter().find(|(heading, _)| *heading == "Requests").unwrap().1;
    for row in plexus_protocol::answers::KEYS {
        assert!(requests.contains(&row), "{row:?}");
    }
}
