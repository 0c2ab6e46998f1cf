//! Stories of the pure core, one file for one stage: messages in, what stands on the screen and what is to be done out; and what
//! bytes a terminal gets.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use plexus::client::{Envelope, Heard};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::app::{App, Effect, Link, Msg, Page, Tag};
use super::card::{ARM, LINGER};
use super::theme::{Depth, Theme};
use super::{clean, view};

/// Noon, some day.
const NOON: i64 = 1_767_268_800_000;

fn at(millis: i64) -> String {
    plexus::model::Timestamp::from_millis(millis).to_string()
}

fn heard(session: &str, place: u64, kind: &str, body: &Value, when: i64) -> Heard {
    let text = json!({ "session_id": session, "run_id": "r_1", "seq": 0, "cursor": format!("e:{place}"), "at": at(when),
        "kind": kind, "event": body, "meta": { "runtime_id": "demo", "dialect": "acp" } });
    Heard::Event(Box::new(Envelope::read(RawValue::from_string(text.to_string()).unwrap()).unwrap()))
}

fn session(id: &str, title: &str, state: &str, ago: i64) -> Value {
    json!({ "session_id": id, "runtime_id": "demo", "dialect": "acp", "title": title, "cwd": "/home/you/project", "state": state,
        "run_id": if state == "idle" { Value::Null } else { json!("r_1") }, "open_requests": usize::from(state == "waiting"), "created_at": at(NOON),
        "updated_at": at(NOON - ago) })
}

fn ask(id: &str, session: &str, display: &str, more: Value) -> Value {
    let mut ask = json!({ "request_id": id, "session_id": session, "run_id": "r_1", "runtime_id": "gemini", "generation": 1,
        "type": "permission", "state": "open", "title": "Run it", "display": display, "warnings": [], "digest": "d1",
        "options": [{ "id": "o1", "label": "Allow once", "kind": "allow_once" }, { "id": "o2", "label": "Allow always", "kind": "allow_always" },
            { "id": "o3", "label": "Reject", "kind": "reject_once" }],
        "allow_reason": true, "allow_remember": false, "opened_at": at(NOON - 3_000) });
    ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ask
}

struct Stage {
    app: App,
    now: i64,
    place: u64,
    effects: Vec<Effect>,
}

impl Stage {
    fn new(width: u16, height: u16, sessions: &[Value], requests: &[Value]) -> Self {
        Self::coloured(width, height, Depth::True, sessions, requests)
    }

    fn coloured(width: u16, height: u16, depth: Depth, sessions: &[Value], requests: &[Value]) -> Self {
        let app = App::new(Theme::new(depth, false), (width, height), NOON, BTreeMap::new());
        let mut stage = Self { app, now: NOON, place: 1, effects: Vec::new() };
        stage.app.start(None);
        stage.msg(Msg::Heard(Heard::Hello(json!({ "sessions": sessions, "requests": requests }))));
        stage.msg(Msg::Heard(Heard::Live));
        stage
    }

    fn msg(&mut self, msg: Msg) {
        let effects = self.app.update(msg, self.now);
        self.effects.extend(effects);
    }

    fn later(&mut self, millis: i64) {
        self.now += millis;
        self.msg(Msg::Tick);
    }

    fn keys(&mut self, keys: &[&str]) {
        for key in keys {
            let (name, modifiers) = match key.strip_prefix("C-") {
                Some(name) if key.len() == 3 => (name, KeyModifiers::CONTROL),
                _ => (*key, KeyModifiers::NONE),
            };
            let code = match name {
                "Enter" => KeyCode::Enter,
                "Esc" => KeyCode::Esc,
                "Tab" => KeyCode::Tab,
                "Up" => KeyCode::Up,
                "Down" => KeyCode::Down,
                "PageDown" => KeyCode::PageDown,
                "PageUp" => KeyCode::PageUp,
                other => KeyCode::Char(other.chars().next().unwrap()),
            };
            self.msg(Msg::Key(KeyEvent::new(code, modifiers)));
        }
    }

    fn words(&mut self, words: &str) {
        for c in words.chars() {
            self.msg(Msg::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
        }
    }

    fn open(&mut self, id: &str) {
        let mut effects = Vec::new();
        self.app.open(id.to_owned(), &mut effects);
        self.effects.extend(effects);
        self.told(Heard::Live);
    }

    fn told(&mut self, heard: Heard) {
        let of = self.app.following();
        self.msg(Msg::Talk(of, heard));
    }

    /// An event of the open session, which everybody hears.
    fn event(&mut self, id: &str, kind: &str, body: &Value) {
        self.place += 1;
        let (one, other) = (heard(id, self.place, kind, body, self.now), heard(id, self.place, kind, body, self.now));
        self.msg(Msg::Heard(one));
        self.told(other);
    }

    fn buffer(&self) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.app.size.0, self.app.size.1));
        view::draw(&self.app, &mut buffer);
        clean::seal(&mut buffer, self.app.theme.depth);
        buffer
    }

    fn screen(&self) -> String {
        let buffer = self.buffer();
        let rows = buffer.content.chunks(usize::from(buffer.area.width));
        let row = |cells: &[ratatui::buffer::Cell]| {
            let mut text = String::new();
            let mut skip = 0;
            for cell in cells {
                if skip == 0 {
                    text.push_str(cell.symbol());
                    skip = clean::width(cell.symbol()).max(1);
                }
                skip -= 1;
            }
            text.trim_end().to_owned()
        };
        rows.map(row).collect::<Vec<_>>().join("\n")
    }

    /// The bytes that a terminal gets for this screen.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        {
            let area = Rect::new(0, 0, self.app.size.0, self.app.size.1);
            let options = ratatui::TerminalOptions { viewport: ratatui::Viewport::Fixed(area) };
            let mut terminal = Terminal::with_options(CrosstermBackend::new(&mut bytes), options).unwrap();
            terminal
                .draw(|frame| {
                    view::draw(&self.app, frame.buffer_mut());
                    clean::seal(frame.buffer_mut(), self.app.theme.depth);
                })
                .unwrap();
        }
        bytes
    }

    /// The answers that were sent.
    fn answers(&mut self) -> Vec<Value> {
        let sent = std::mem::take(&mut self.effects).into_iter();
        sent.filter_map(|effect| match effect {
            Effect::Call { tag: Tag::Answer(_), body, .. } => body,
            _ => None,
        })
        .collect()
    }
}

fn conversation(stage: &mut Stage) {
    let chunk = |words: &str| json!({ "content": { "type": "text", "text": words } });
    stage.event("s_1", "run_started", &json!({ "run_id": "r_1" }));
    stage.event("s_1", "user_message_chunk", &chunk("Why does the parser fail on empty input?"));
    stage.event("s_1", "agent_thought_chunk", &chunk("The loop reads before it looks.\nSo the first byte is missing."));
    stage.event("s_1", "plan", &json!({ "entries": [{ "content": "Find the loop", "status": "completed" }, { "content": "Mend it", "status": "in_progress" }, { "content": "Test", "status": "pending" }] }));
    stage.event("s_1", "tool_call", &json!({ "toolCallId": "t1", "title": "src/parser.rs", "kind": "edit", "status": "completed",
        "content": [{ "type": "diff", "path": "src/parser.rs", "oldText": "fn next() {\n    let c = bytes[0];\n    go(c)\n}\n", "newText": "fn next() {\n    let c = bytes.first();\n    go(c)\n}\n" }] }));
    stage.event(
        "s_1",
        "tool_call",
        &json!({ "toolCallId": "t2", "title": "cargo test", "kind": "execute", "status": "in_progress" }),
    );
    stage.now += 2_000;
    stage.event("s_1", "tool_call_update", &json!({ "toolCallId": "t2", "status": "completed", "content": [{ "type": "content", "content": { "type": "text", "text": "running 2 tests\n\u{1b}[32mok\u{1b}[0m one\n\u{1b}[32mok\u{1b}[0m two\n" } }] }));
    stage.event("s_1", "agent_message_chunk", &chunk("It was `bytes[0]`. Now:\n\n- empty input **works**\n- the tests pass\n\n```rust\nlet c = bytes.first(); // may be none\n```\n"));
    stage.event("s_1", "usage_update", &json!({ "used": 66, "size": 100 }));
    stage.event("s_1", "run_ended", &json!({ "run_id": "r_1", "status": "completed", "stop_reason": "end_turn" }));
}

fn sessions() -> Vec<Value> {
    vec![
        session("s_1", "Fix the parser", "idle", 120_000),
        session("s_2", "Upgrade the database", "running", 2_000),
        session("s_3", "Delete old builds", "waiting", 4_000),
    ]
}

#[test]
fn every_page_at_80x24() {
    let danger = ask(
        "q_2",
        "s_3",
        "rm -rf build\nin /home/you/project",
        json!({ "risk": "danger", "warnings": ["the agent itself calls this dangerous"] }),
    );
    let asks = [ask("q_1", "s_2", "make migrate", json!({ "risk": "low", "opened_at": at(NOON - 1000) })), danger];
    let mut stage = Stage::new(80, 24, &sessions(), &asks);
    stage.event("s_2", "tool_call", &json!({ "toolCallId": "t", "title": "psql --version", "status": "in_progress" }));
    insta::assert_snapshot!("sessions", stage.screen());
    stage.keys(&["1"]);
    stage.later(ARM);
    insta::assert_snapshot!("inbox", stage.screen());
    stage.keys(&["3"]);
    stage.words("parser");
    stage.keys(&["Enter"]);
    assert!(
        stage
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Call { path, .. } if path == "/v1/search?limit=100&q=parser"))
    );
    let hits = json!({ "hits": [{ "session_id": "s_1", "cursor": "e:3", "role": "agent", "snippet": "the parser \u{202e}fails" }] });
    stage.msg(Msg::Done(Tag::Search("parser".into()), Ok((200, hits))));
    insta::assert_snapshot!("search", stage.screen());
    stage.keys(&["4"]);
    let list = json!({ "runtimes": [{ "runtime_id": "gemini", "dialect": "acp", "state": "ready", "connect": { "command": ["gemini", "--acp"] }, "cwd": "/home/you",
        "agent": "gemini-cli 0.61", "pid": 4242, "generation": 1, "updated_at": at(NOON - 60_000) },
        { "runtime_id": "codex", "dialect": "codex", "state": "exited", "connect": { "endpoint": "ws://127.0.0.1:1/" }, "cwd": "/", "problem": "nobody listens there", "updated_at": at(NOON) }] });
    stage.msg(Msg::Done(Tag::Runtimes, Ok((200, list))));
    insta::assert_snapshot!("runtimes", stage.screen());
    stage.keys(&["5"]);
    let list = json!({ "devices": [{ "device_id": "d_local", "name": "this machine", "scopes": ["watch", "prompt", "approve", "admin"], "kind": "local", "online": true, "you": true, "last_seen_at": at(NOON) },
        { "device_id": "d_2", "name": "phone", "scopes": ["watch", "approve"], "approve_up_to": "low", "kind": "device", "last_seen_at": at(NOON - 7_200_000) }] });
    stage.msg(Msg::Done(Tag::Devices, Ok((200, list))));
    insta::assert_snapshot!("devices", stage.screen());
    stage.keys(&["?"]);
    insta::assert_snapshot!("help", stage.screen());
    stage.keys(&["Esc", "C-k"]);
    stage.words("par");
    insta::assert_snapshot!("palette", stage.screen());
    stage.keys(&["Enter"]);
    assert_eq!((stage.app.page, stage.app.talk.as_ref().unwrap().session.as_str()), (Page::Session, "s_1"));
}

#[test]
fn a_conversation_at_two_sizes() {
    for (name, width, height) in [("talk_80x24", 80, 24), ("talk_160x50", 160, 50)] {
        let mut stage = Stage::new(width, height, &sessions(), &[]);
        stage.open("s_1");
        conversation(&mut stage);
        insta::assert_snapshot!(name, stage.screen());
    }
}

#[test]
fn a_key_that_was_meant_for_something_else_answers_nothing() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    stage.keys(&["Esc"]);
    stage.event("s_1", "request_opened", &ask("q_1", "s_1", "make deploy", json!({})));
    assert!(stage.screen().contains("make deploy"));
    stage.now += ARM - 1;
    stage.keys(&["y", "n"]);
    assert_eq!(stage.answers(), Vec::<Value>::new(), "not armed yet");
    stage.now += 1;
    stage.keys(&["y"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o1", "digest": "d1" })]);
    stage.keys(&["y", "n"]);
    assert_eq!(stage.answers(), Vec::<Value>::new(), "once");
    // While one writes, letters are letters.
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    stage.words("say ");
    stage.event("s_1", "request_opened", &ask("q_1", "s_1", "make deploy", json!({})));
    stage.later(10 * ARM);
    stage.words("yes");
    assert_eq!((stage.answers(), stage.app.composer.lines().join("")), (vec![], "say yes".to_owned()));
    // What is pasted is words.
    stage.msg(Msg::Paste("y\r\nn\r".into()));
    assert_eq!((stage.answers(), stage.app.composer.lines().join("|")), (vec![], "say yesy|n|".to_owned()));
}

#[test]
fn long_things_are_read_before_they_are_allowed() {
    let long: String = (1..=100).map(|n| format!("line {n}\n")).collect();
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", &long, json!({}))]);
    stage.open("s_1");
    stage.later(ARM);
    assert!(!stage.app.writing, "a session with a question opens for answering it");
    stage.keys(&["y", "A"]);
    assert_eq!(stage.answers(), Vec::<Value>::new());
    assert!(stage.screen().contains("read to the end"), "{}", stage.screen());
    for _ in 0..30 {
        stage.keys(&["PageDown"]);
    }
    assert!(stage.screen().contains("line 100"), "{}", stage.screen());
    stage.keys(&["PageUp", "y"]);
    assert_eq!(stage.answers().len(), 1);
    // A no needs no reading.
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", &long, json!({}))]);
    stage.open("s_1");
    stage.later(ARM);
    stage.keys(&["n"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o3", "digest": "d1" })]);
}

#[test]
fn danger_wants_the_word_and_a_reason_and_a_change_are_sent() {
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "rm -rf /", json!({ "risk": "danger" }))]);
    stage.open("s_1");
    stage.later(ARM);
    stage.keys(&["y"]);
    assert_eq!(stage.answers(), Vec::<Value>::new());
    stage.words("y");
    stage.keys(&["Enter"]);
    assert_eq!(stage.answers(), Vec::<Value>::new(), "y is not yes");
    stage.words("yes");
    assert!(stage.screen().contains("Type yes"), "{}", stage.screen());
    stage.keys(&["Enter"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o1", "digest": "d1" })]);

    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.open("s_1");
    stage.later(ARM);
    stage.keys(&["r"]);
    stage.words("not on Friday");
    stage.keys(&["Enter"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o3", "reason": "not on Friday", "digest": "d1" })]);

    let editable = json!({ "editable": { "label": "the command", "value": "make deploy" } });
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", editable)]);
    stage.open("s_1");
    stage.later(ARM);
    stage.keys(&["e"]);
    stage.words(" --dry");
    stage.keys(&["Enter"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o1", "edited": "make deploy --dry", "digest": "d1" })]);
}

#[test]
fn texts_secrets_and_picks() {
    let secret = json!({ "type": "prompt", "options": [], "secret": true, "allow_reason": false });
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "Password?", secret)]);
    stage.open("s_1");
    stage.later(ARM);
    stage.words("hunter2");
    assert!(!stage.screen().contains("hunter2") && stage.screen().contains("•••••••"), "{}", stage.screen());
    stage.keys(&["Enter"]);
    assert_eq!(stage.answers(), [json!({ "value": "hunter2", "digest": "d1" })]);

    let items =
        json!([{ "id": "a", "label": "First" }, { "id": "b", "label": "Second" }, { "id": "c", "label": "Third" }]);
    for (multi, keys, ids) in [
        (false, vec!["Down", "Enter"], json!(["b"])),
        (true, vec![" ", "Down", "Down", " ", "Enter"], json!(["a", "c"])),
    ] {
        let pick = json!({ "type": "pick", "options": [], "items": items, "multi": multi, "allow_reason": false });
        let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "Which?", pick)]);
        stage.open("s_1");
        stage.later(ARM);
        assert!(stage.screen().contains("Second"));
        stage.keys(&keys);
        assert_eq!(stage.answers(), [json!({ "ids": ids, "digest": "d1" })]);
    }
}

#[test]
fn who_answered_elsewhere_is_told_in_place_and_nothing_moves() {
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.open("s_1");
    stage.later(ARM);
    let row =
        |stage: &Stage| stage.screen().lines().position(|line| line.contains("make deploy") && line.starts_with("│"));
    let before = row(&stage);
    assert!(before.is_some());
    let receipt = json!({ "request_id": "q_1", "state": "answered", "option_id": "allow_once", "ok": true, "at": at(stage.now),
        "resolved_by": { "device_id": "d_2", "name": "phone" } });
    stage.event("s_1", "request_resolved", &receipt);
    stage.later(2_000);
    assert!(stage.screen().contains("Allowed by phone, 2 s ago"), "{}", stage.screen());
    assert_eq!(row(&stage), before, "what the finger was about to touch did not move");
    stage.keys(&["n", "y"]);
    assert_eq!(stage.answers(), Vec::<Value>::new());
    stage.later(LINGER);
    assert_eq!(row(&stage), None);
    // In the inbox, too.
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.keys(&["1"]);
    stage.later(ARM);
    stage.event("s_1", "request_resolved", &receipt);
    assert!(stage.screen().contains("Allowed by phone"), "{}", stage.screen());
    stage.later(LINGER);
    assert!(stage.screen().contains("Nothing waits for you"), "{}", stage.screen());
}

#[test]
fn one_who_is_too_late_is_told_who_won() {
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.open("s_1");
    stage.later(ARM);
    stage.keys(&["n"]);
    let receipt = json!({ "code": "already_resolved", "detail": "x", "state": "answered", "ok": true, "at": at(stage.now), "won": false,
        "resolved_by": { "device_id": "d_2", "name": "phone" } });
    stage.msg(Msg::Done(Tag::Answer("q_1".into()), Ok((409, receipt))));
    assert!(stage.screen().contains("too late: Allowed by phone"), "{}", stage.screen());
    // What was not done at all is said, and can be done again.
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.open("s_1");
    stage.later(ARM);
    stage.keys(&["y"]);
    stage.answers();
    stage.msg(Msg::Done(
        Tag::Answer("q_1".into()),
        Ok((403, json!({ "code": "risk_too_high", "detail": "above what you may allow" }))),
    ));
    assert!(stage.screen().contains("above what you may allow"), "{}", stage.screen());
    stage.keys(&["y"]);
    assert_eq!(stage.answers().len(), 1);
}

#[test]
fn a_lost_gateway_is_said_with_the_time_of_what_is_shown() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.later(1_000);
    stage.msg(Msg::Heard(Heard::Lost("closed".into())));
    stage.later(61_000);
    assert!(matches!(stage.app.link, Link::Lost(..)));
    let screen = stage.screen();
    assert!(screen.contains("○ offline") && screen.contains("what you see was true at"), "{screen}");
    assert_eq!(stage.app.true_at, NOON + 1_000);
    stage.msg(Msg::Heard(Heard::Hello(json!({ "sessions": sessions(), "requests": [] }))));
    stage.msg(Msg::Heard(Heard::Live));
    assert!(stage.screen().contains("● live"));
}

#[test]
fn history_queue_and_slash_commands() {
    let mut one = session("s_1", "x", "running", 0);
    one["queue"] = json!([{ "run_id": "r_9", "text": "and then this", "by": { "device_id": "d", "name": "phone" } }]);
    let mut stage = Stage::new(80, 24, &[one], &[]);
    stage.open("s_1");
    stage.event("s_1", "user_message_chunk", &json!({ "content": { "type": "text", "text": "earlier\nwords" } }));
    stage.event(
        "s_1",
        "available_commands_update",
        &json!({ "availableCommands": [{ "name": "plan", "description": "makes a plan" }] }),
    );
    assert!(stage.screen().contains("waits 1 and then this · phone"), "{}", stage.screen());
    stage.words("draft");
    stage.keys(&["Up"]);
    assert_eq!(stage.app.composer.lines(), ["earlier", "words"]);
    stage.keys(&["Down", "Down"]);
    assert_eq!(stage.app.composer.lines(), ["draft"]);
    stage.keys(&["C-c"]);
    stage.words("/pl");
    assert!(stage.screen().contains("/plan makes a plan"), "{}", stage.screen());
    stage.keys(&["Tab"]);
    stage.words("now");
    stage.keys(&["C-j"]);
    stage.words("please");
    stage.effects.clear();
    stage.keys(&["Enter"]);
    assert!(stage.effects.iter().any(|effect| matches!(effect, Effect::Call { tag: Tag::Prompt(words), key: true, .. } if words == "/plan now\nplease")));
    // What was not taken is given back.
    stage.msg(Msg::Done(Tag::Prompt("/plan now".into()), Ok((429, json!({ "detail": "too many wait" })))));
    assert_eq!(stage.app.composer.lines(), ["/plan now"]);
    stage.keys(&["Esc", "Q"]);
    assert!(
        stage
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Call { body: Some(body), .. } if body["run_id"] == "r_9"))
    );
}

#[test]
fn two_hundred_thousand_events_cost_a_window_and_what_came_before_is_read_again() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    let of = stage.app.following();
    let body = |n: u64| match n % 4 {
        0 => {
            ("tool_call", json!({ "toolCallId": format!("t{n}"), "title": format!("tool {n}"), "status": "completed" }))
        }
        _ => ("agent_message_chunk", json!({ "content": { "type": "text", "text": format!("word-{n} ") } })),
    };
    for n in 0..200_000 {
        let (kind, body) = body(n);
        stage.app.update(Msg::Talk(of, heard("s_1", n + 1, kind, &body, NOON)), NOON);
    }
    let (blocks, bytes, pages) = stage.app.talk.as_ref().unwrap().kept();
    assert!(blocks <= 3000 && bytes < 32 << 20, "{blocks} blocks, {bytes} bytes");
    assert!(pages > 100, "{pages}");
    assert!(stage.screen().contains("word-199999"), "{}", stage.screen());
    // To the beginning of what is here: what was before is fetched, and shown from its end.
    stage.keys(&["Esc", "g"]);
    let fetched = stage.effects.iter().rev().find_map(|effect| match effect {
        Effect::Page { page, after, until, .. } => Some((*page, after.clone(), until.clone())),
        _ => None,
    });
    let (page, after, until) = fetched.expect("nothing was asked for");
    assert_eq!(page, pages - 1);
    let (from, to) = (super::facts::position(&after), super::facts::position(&until));
    let events: Vec<_> = (from..to)
        .map(body)
        .zip(from..)
        .map(|((kind, body), n)| (kind.to_owned(), body, format!("e:{}", n + 1), NOON))
        .collect();
    stage.msg(Msg::Page(of, page, Ok(events)));
    let screen = stage.screen();
    assert!(screen.contains(&format!("word-{}", to - 1)) && screen.contains("older"), "{to}: {screen}");
    stage.keys(&["G"]);
    assert!(stage.screen().contains("word-199999"));
}

#[test]
fn what_is_read_stays_where_it_is_while_news_come() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    for n in 0..200 {
        stage.event(
            "s_1",
            "tool_call",
            &json!({ "toolCallId": format!("t{n}"), "title": format!("tool {n}"), "status": "completed" }),
        );
    }
    stage.keys(&["Esc", "PageUp", "PageUp"]);
    let rows = |stage: &Stage| {
        stage
            .screen()
            .lines()
            .skip(2)
            .take(15)
            .map(|line| line.chars().take(24).collect::<String>().trim_end().to_owned())
            .collect::<Vec<_>>()
    };
    let before = rows(&stage);
    for n in 200..400 {
        stage.event(
            "s_1",
            "tool_call",
            &json!({ "toolCallId": format!("t{n}"), "title": format!("tool {n}"), "status": "completed" }),
        );
    }
    assert_eq!(rows(&stage), before);
    assert!(stage.screen().contains("200 new · G: to now"), "{}", stage.screen());
    for _ in 0..40 {
        stage.keys(&["PageDown"]);
    }
    assert!(stage.screen().contains("tool 399") && stage.app.talk.as_ref().unwrap().look.follow);
}

/// Sequences that terminals obey.
fn corpus() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    for end in 0x40..=0x7e_u8 {
        all.push([b"\x1b[?25;1", &[end][..]].concat());
    }
    for end in 0x30..=0x7e_u8 {
        all.push(vec![0x1b, end]);
    }
    for number in ["0", "1", "2", "4", "7", "8", "9", "10", "11", "12", "50", "52", "104", "133", "777", "1337"] {
        for (open, close) in [("\x1b]", "\x07"), ("\x1b]", "\x1b\\"), ("\u{9d}", "\u{9c}")] {
            all.push(format!("{open}{number};c;ZXZpbA=={close}").into_bytes());
        }
    }
    for open in ["\x1bP", "\x1bX", "\x1b^", "\x1b_", "\u{90}", "\u{98}", "\u{9e}", "\u{9f}"] {
        all.push(format!("{open}1$r0m\x1b\\").into_bytes());
        all.push(format!("{open}never ended").into_bytes());
    }
    for c in (0..0x20).chain(0x7f..=0x9f_u32).filter(|c| *c != 0x0a) {
        all.push(char::from_u32(c).unwrap().to_string().into_bytes());
    }
    for c in "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{61c}\u{feff}\u{ad}\u{2028}\u{2029}\u{3164}\u{2800}\u{fe0f}\u{e0041}".chars() {
        all.push(format!("a{c}b").into_bytes());
    }
    for words in [
        "\x1b[200~y\x1b[201~",
        "\x1b[6n\x1b[c\x1b[>q",
        "\x1b[2J\x1b[H\x1b[999;999H",
        "\x1b[31m\x1b[8mhidden",
        "\x1b\x1b[[31m",
        "\x1b[\x1b]0;x\x07m",
        "\x1b[38;2;1;2;3;4;5;6m",
        "\x1b[99999999999999m",
    ] {
        all.push(words.as_bytes().to_vec());
    }
    all
}

/// Fails unless the bytes are printable text and the few sequences that drawing needs.
fn assert_ours(bytes: &[u8], of: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '\u{1b}' {
            let body = rest[1..]
                .strip_prefix('[')
                .unwrap_or_else(|| panic!("{:?} wrote {:?}", String::from_utf8_lossy(of), &rest[..rest.len().min(9)]));
            let end = body.find(|c: char| c.is_ascii_alphabetic()).unwrap();
            let (parameters, end) = (&body[..end], &body[end..=end]);
            let fine = match end {
                "H" | "m" | "J" => parameters.bytes().all(|b| b.is_ascii_digit() || b == b';'),
                "l" | "h" => parameters == "?25",
                _ => false,
            };
            assert!(fine, "{:?} wrote CSI {parameters}{end}", String::from_utf8_lossy(of));
            // Blinking and hiding are nobody's.
            assert!(!(end == "m" && parameters.split(';').collect::<Vec<_>>() == ["8"]), "hidden text");
            rest = &body[parameters.len() + 1..];
        } else {
            assert!(
                clean::printable(&c.to_string())
                    || !c.is_control() && clean::width(&c.to_string()) == 0 && !plexus::model::text::hides(c, None),
                "{:?} wrote U+{:04X}",
                String::from_utf8_lossy(of),
                u32::from(c)
            );
            rest = &rest[c.len_utf8()..];
        }
    }
}

#[test]
fn nothing_that_an_agent_sends_reaches_the_terminal_as_a_sequence_wherever_it_is_cut() {
    let corpus = corpus();
    assert!(corpus.len() >= 200, "{}", corpus.len());
    for bytes in &corpus {
        for cut in 0..=bytes.len() {
            let (one, two) = (String::from_utf8_lossy(&bytes[..cut]), String::from_utf8_lossy(&bytes[cut..]));
            let whole = format!("{one}{two}");
            let mut stage = Stage::new(80, 24, &[session("s_1", &whole, "running", 0)], &[]);
            stage.open("s_1");
            for (kind, words) in [
                ("user_message_chunk", &one),
                ("user_message_chunk", &two),
                ("agent_thought_chunk", &one),
                ("agent_thought_chunk", &two),
                ("agent_message_chunk", &one),
                ("agent_message_chunk", &two),
            ] {
                stage.event("s_1", kind, &json!({ "content": { "type": "text", "text": words } }));
            }
            let output = json!([{ "type": "content", "content": { "type": "text", "text": whole } }, { "type": "diff", "path": whole, "oldText": one, "newText": whole }]);
            stage.event("s_1", "tool_call", &json!({ "toolCallId": "t", "title": whole, "kind": whole, "status": "in_progress", "content": output, "rawInput": whole }));
            stage.event("s_1", "run_ended", &json!({ "status": "failed", "message": whole }));
            if cut == 0 {
                // The places that hold a whole text: all the other pages.
                stage.event("s_1", "request_opened", &ask("q_1", "s_1", &whole, json!({ "title": whole, "message": whole, "warnings": [whole], "runtime_id": whole, "options": [{ "id": "x", "label": whole, "kind": "allow_once" }] })));
                stage.event("s_1", "plan", &json!({ "entries": [{ "content": whole, "status": "pending" }] }));
                stage.event("s_1", "error", &json!({ "message": whole }));
                stage.event("s_1", "raw", &json!({ "x": whole }));
                stage.event("s_1", "current_mode_update", &json!({ "currentModeId": whole }));
                stage.event(
                    "s_1",
                    "available_commands_update",
                    &json!({ "availableCommands": [{ "name": format!("a{whole}"), "description": whole }] }),
                );
                stage.words("/a");
                assert_ours(&stage.bytes(), bytes);
                stage.msg(Msg::Done(Tag::Runtimes, Ok((200, json!({ "runtimes": [{ "runtime_id": whole, "agent": whole, "problem": whole, "stderr_tail": whole, "connect": { "command": [whole] } }] })))));
                stage.msg(Msg::Done(
                    Tag::Devices,
                    Ok((200, json!({ "devices": [{ "device_id": "d", "name": whole, "scopes": [whole] }] }))),
                ));
                stage.msg(Msg::Done(
                    Tag::Search(whole.clone()),
                    Ok((
                        200,
                        json!({ "hits": [{ "session_id": "s_1", "cursor": "e:1", "role": whole, "snippet": whole }] }),
                    )),
                ));
                stage.keys(&["Esc"]);
                for page in ["1", "2", "3", "4", "5", "?"] {
                    stage.app.query_typing = false;
                    stage.keys(&[page]);
                    stage.app.query_typing = false;
                    assert_ours(&stage.bytes(), bytes);
                }
                stage.keys(&["Esc", ":"]);
                assert_ours(&stage.bytes(), bytes);
                stage.msg(Msg::Done(Tag::Words("log"), Ok((200, json!({ "lines": [{ "text": whole }] })))));
                assert_ours(&stage.bytes(), bytes);
                stage.keys(&["Esc"]);
                stage.msg(Msg::Done(Tag::Say(whole.clone()), Ok((500, json!({ "detail": whole })))));
                stage.msg(Msg::Heard(Heard::Lost(whole.clone())));
                assert_ours(&stage.bytes(), bytes);
            }
            assert_ours(&stage.bytes(), bytes);
        }
    }
}

#[test]
fn colours_are_as_many_as_the_terminal_has() {
    for (depth, bad) in [
        (Depth::Ansi, &["38;2;", "48;2;", "38;5;16", "48;5;2"][..]),
        (Depth::Indexed, &["38;2;", "48;2;"][..]),
        (Depth::None, &["38;", "48;", ";3", "[3"][..]),
    ] {
        let mut stage =
            Stage::coloured(80, 24, depth, &sessions(), &[ask("q_1", "s_1", "x", json!({ "risk": "danger" }))]);
        stage.open("s_1");
        conversation(&mut stage);
        let text = String::from_utf8(stage.bytes()).unwrap();
        for sequence in text
            .split('\u{1b}')
            .filter_map(|piece| piece.split_once('m'))
            .map(|(sequence, _)| sequence)
            .filter(|s| s.starts_with('[') && !s.contains('H'))
        {
            // "default colour" and modifiers are no colours.
            let plain = ["[39", "[49", "[39;49", "[0", "[3", "[23", "[38;5;0"].contains(&sequence);
            assert!(plain || !bad.iter().any(|bad| sequence.contains(bad)), "{depth:?}: {sequence}");
        }
    }
}

#[test]
fn a_session_is_drawn_before_anything_is_known_of_it() {
    let mut app = App::new(Theme::new(Depth::True, false), (80, 24), NOON, BTreeMap::new());
    let effects = app.start(Some("s_unknown".into()));
    assert!(effects.contains(&Effect::Follow(Some("s_unknown".into()))));
    let stage = Stage { app, now: NOON, place: 1, effects };
    assert!(stage.screen().contains("connecting …"), "{}", stage.screen());
}

#[test]
fn every_size_is_drawn_and_too_small_ones_are_said() {
    let mut stage =
        Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "x", json!({})), ask("q_2", "s_1", "y", json!({}))]);
    stage.open("s_1");
    conversation(&mut stage);
    for over in ["", "?", ":"] {
        if !over.is_empty() {
            stage.keys(&["Esc", over]);
        }
        for (width, height) in
            [(1, 1), (10, 3), (39, 24), (40, 12), (41, 13), (60, 12), (80, 24), (81, 100), (300, 12), (200, 80)]
        {
            stage.msg(Msg::Resize(width, height));
            let screen = stage.screen();
            if width >= 20 && (width < view::WIDTH_MIN || height < view::HEIGHT_MIN) {
                assert!(screen.contains("plexus needs"), "{screen}");
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Whatever an agent says and whatever keys are hit: no panic, and nothing but ours is written.
    #[test]
    fn whatever_comes_is_drawn(words in proptest::collection::vec("\\PC{0,30}|[\\x00-\\x20\u{7f}-\u{9f}\u{200d}\u{301}|*#`>\\-\\[\\]!]{0,30}", 1..12), keys in "[a-zA-Z0-9 /?:{}\\[\\]]{0,30}", width in 1..120_u16, height in 1..50_u16) {
        let mut stage = Stage::new(width, height, &sessions(), &[ask("q_1", "s_1", &words[0], json!({}))]);
        stage.open("s_1");
        let kinds = ["agent_message_chunk", "user_message_chunk", "agent_thought_chunk", "tool_call", "plan", "raw", "error"];
        for (n, words) in words.iter().enumerate() {
            let body = json!({ "content": { "type": "text", "text": words }, "toolCallId": words, "title": words, "status": words, "message": words, "entries": [{ "content": words }] });
            stage.event("s_1", kinds[n % kinds.len()], &body);
        }
        assert_ours(&stage.bytes(), words.concat().as_bytes());
        for key in keys.chars() {
            stage.now += 100;
            stage.words(&key.to_string());
        }
        assert_ours(&stage.bytes(), words.concat().as_bytes());
    }
}

#[test]
fn the_manual_has_every_key_and_command() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/attach.md");
    let manual = std::fs::read_to_string(path).unwrap();
    let keys = super::help::KEYS.iter().flat_map(|(_, keys)| keys.iter());
    for (key, what) in keys.chain(super::help::COMMANDS) {
        let line = format!("| `{key}` | {what} |");
        assert!(manual.contains(&line), "docs/attach.md lacks {line}");
    }
}
