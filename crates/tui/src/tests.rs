//! Tests of the pure core, with one bench: messages in, screen and effects out; and the bytes that a terminal gets.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use plexus_client::calls::ApiRequest;
use plexus_client::{ClientEvent, Error, GatewayReply, ReceivedEvent};
use plexus_protocol::api::history::Page;
use plexus_protocol::api::snapshot::Snapshot;
use plexus_protocol::api::stream::StreamHello;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::app::App;
use super::card::{ARM_DELAY, LINGER_TIME};
use super::pages::TuiPage;
use super::pages::layout;
use super::pages::message::{CallKey, CallTag, Effect, Msg, SentPrompt};
use super::pages::shared::ConnectionView;
use super::reply::CallReply;
use super::sanitize;
use super::theme::{Depth, Theme};

/// Noon of some day.
const NOON: i64 = 1_767_268_800_000;

fn at(millis: i64) -> String {
    plexus_protocol::Timestamp::from_millis(millis).to_string()
}

/// A reply; a refusal gets the members that every problem has.
fn reply(status: u16, mut body: Value) -> CallReply {
    if status >= 400 && !body.is_null() {
        let mut problem =
            json!({ "type": "about:blank", "title": "refused", "status": status, "detail": "", "code": "refused" });
        problem.as_object_mut().unwrap().append(body.as_object_mut().unwrap());
        body = problem;
    }
    CallReply::new(Ok(GatewayReply { status, text: body.to_string(), retry_after: None }))
}

fn done(tag: CallTag, status: u16, body: Value) -> Msg {
    Msg::Done(tag, reply(status, body))
}

/// No reply, for this reason.
fn lost(tag: CallTag, why: &str) -> Msg {
    Msg::Done(tag, CallReply::new(Err(Error::Lost(why.to_owned()))))
}

/// The body of a request; null if there is none.
fn body_of(request: &ApiRequest) -> Value {
    request.body.as_ref().map(|body| serde_json::from_str(body).unwrap()).unwrap_or_default()
}

fn runtime(id: &str, state: &str, more: Value) -> Value {
    let mut runtime = json!({ "runtime_id": id, "dialect": "acp", "state": state, "connect": { "command": [id] }, "cwd": "/home/you",
        "generation": 1, "updated_at": at(NOON) });
    runtime.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    runtime
}

fn device(id: &str, name: &str, more: Value) -> Value {
    let mut device = json!({ "device_id": id, "name": name, "kind": "device", "scopes": ["watch"], "created_at": at(NOON),
        "online": false, "you": false, "local": false, "local_browser": false });
    device.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    device
}

fn worktree(path: &str, branch: &str, more: Value) -> Value {
    let mut worktree = json!({ "path": path, "root": "/w/repo", "branch": branch, "made_at": at(NOON), "missing": false, "sessions": [] });
    worktree.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    worktree
}

fn me(name: &str, more: Value) -> Value {
    let mut me = json!({ "device_id": "d_1", "name": name, "kind": "device", "scopes": ["watch"],
        "gateway": { "version": "9.9", "started_at": at(NOON), "epoch": "e", "name": "host" } });
    me.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    me
}

fn event_at(session: &str, place: u64, kind: &str, body: &Value, when: i64) -> ClientEvent {
    let mut event = page_event(
        &json!({ "session_id": session, "cursor": format!("e:{place}"), "at": at(when), "kind": kind, "event": body }),
    );
    let members = match kind {
        "run_started" | "run_status" | "run_ended" => json!({ "run_id": "r_1", "status": "running" }),
        "runtime_status" => json!({ "runtime_id": "demo" }),
        "error" => json!({ "code": "internal" }),
        _ => json!({}),
    };
    event["event"] = with(members, body);
    let text = event;
    ClientEvent::Event(Box::new(ReceivedEvent::read(RawValue::from_string(text.to_string()).unwrap()).unwrap()))
}

fn with(mut members: Value, more: &Value) -> Value {
    members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    members
}

/// An envelope with these members.
fn page_event(more: &Value) -> Value {
    let members =
        json!({ "session_id": "s_1", "run_id": "r_1", "seq": 0, "meta": { "runtime_id": "demo", "dialect": "acp" } });
    with(members, more)
}

fn page_of(events: &[Value], previous: Option<&str>) -> Page {
    let events: Vec<Value> = events.iter().map(page_event).collect();
    let page = json!({ "events": events, "previous": previous, "next": "e:99", "head": "e:99", "resume": "ok" });
    serde_json::from_value(page).unwrap()
}

fn snapshot_of(more: &Value) -> Value {
    let session = session("s_1", "one", "idle", 0);
    let members = json!({ "session": session, "cursor": "e:99", "messages": [], "tools": [], "latest": {}, "requests": [],
        "surfaces": [], "trimmed": false, "truncated": false });
    with(members, more)
}

fn opening_of(page: Page, snapshot: &Value) -> Option<Box<(Page, Snapshot)>> {
    Some(Box::new((page, serde_json::from_value(snapshot_of(snapshot)).unwrap())))
}

fn position(cursor: &str) -> u64 {
    cursor.split_once(':').and_then(|(_, position)| position.parse().ok()).unwrap()
}

fn hello_of(sessions: &[Value], requests: &[Value]) -> ClientEvent {
    ClientEvent::Hello(Box::new(stream_hello(sessions, requests)))
}

fn stream_hello(sessions: &[Value], requests: &[Value]) -> StreamHello {
    let hello = json!({ "resume": "ok", "epoch": "e", "oldest": "e:0", "head": "e:0", "sessions": sessions, "runs": [],
        "requests": requests, "you": { "device_id": "d_1", "name": "laptop", "scopes": ["watch", "prompt", "approve"] } });
    serde_json::from_value(hello).unwrap()
}

fn session_changed(session: Value) -> ClientEvent {
    ClientEvent::Session(serde_json::from_value(session).unwrap())
}

fn session(id: &str, title: &str, state: &str, ago: i64) -> Value {
    json!({ "session_id": id, "runtime_id": "demo", "dialect": "acp", "title": title, "cwd": "/home/you/project", "state": state,
        "run_id": if state == "idle" { Value::Null } else { json!("r_1") }, "open_requests": usize::from(state == "waiting"), "created_at": at(NOON),
        "updated_at": at(NOON - ago) })
}

fn ask(id: &str, session: &str, display: &str, more: Value) -> Value {
    let mut ask = json!({ "request_id": id, "session_id": session, "run_id": "r_1", "runtime_id": "gemini", "generation": 1,
        "type": "permission", "state": "open", "title": "Run it", "display": display, "warnings": [], "risk": "low", "digest": "d1",
        "subject": { "type": "command", "argv": [display] },
        "options": [{ "id": "o1", "label": "Allow once", "kind": "allow_once" }, { "id": "o2", "label": "Allow always", "kind": "allow_always" },
            { "id": "o3", "label": "Reject", "kind": "reject_once" }],
        "allow_reason": true, "allow_remember": false, "opened_at": at(NOON - 3_000) });
    ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ask
}

mod changes;
mod new_session;
mod panes;
mod prompts;
mod reading;
mod sheets;
mod surfaces;
mod triage;
mod typing;

struct Stage {
    app: App,
    now: i64,
    place: u64,
    effects: Vec<Effect>,
}

impl Stage {
    fn new(width: u16, height: u16, sessions: &[Value], requests: &[Value]) -> Self {
        Self::with_depth(width, height, Depth::True, sessions, requests)
    }

    fn with_depth(width: u16, height: u16, depth: Depth, sessions: &[Value], requests: &[Value]) -> Self {
        let app = App::new(Theme::new(depth, false), (width, height), NOON, BTreeMap::new());
        let mut stage = Self { app, now: NOON, place: 1, effects: Vec::new() };
        stage.app.start(None);
        // Not in the inbox, where it would start if something waits.
        stage.keys(&["2"]);
        stage.effects.clear();
        stage.msg(Msg::Event(hello_of(sessions, requests)));
        stage.msg(Msg::Event(ClientEvent::Live));
        stage
    }

    fn msg(&mut self, msg: Msg) {
        let effects = self.app.update(msg, self.now);
        self.effects.extend(effects);
    }

    fn advance(&mut self, millis: i64) {
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
                "S-Tab" => KeyCode::BackTab,
                "Up" => KeyCode::Up,
                "Down" => KeyCode::Down,
                "PageDown" => KeyCode::PageDown,
                "PageUp" => KeyCode::PageUp,
                "Left" => KeyCode::Left,
                "Right" => KeyCode::Right,
                other => KeyCode::Char(other.chars().next().unwrap()),
            };
            self.msg(Msg::Key(KeyEvent::new(code, modifiers)));
            self.rest();
        }
    }

    /// Has the last key act: no other one followed it.
    fn rest(&mut self) {
        let effects = self.app.settle();
        self.effects.extend(effects);
    }

    fn type_text(&mut self, type_text: &str) {
        for c in type_text.chars() {
            self.msg(Msg::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
        }
    }

    fn open(&mut self, id: &str) {
        let mut effects = Vec::new();
        self.app.open(id.to_owned(), &mut effects);
        self.effects.extend(effects);
        self.session_event(ClientEvent::Live);
    }

    /// Opens a session, and gives the focus to its request.
    fn open_card(&mut self, id: &str) {
        self.open(id);
        self.keys(&["Esc"]);
        self.advance(ARM_DELAY);
    }

    fn session_event(&mut self, event_at: ClientEvent) {
        let subscription = self.app.following();
        self.msg(Msg::SessionEvent(subscription, event_at));
    }

    /// An event of the open session, which also comes as an event of all sessions.
    fn event(&mut self, id: &str, kind: &str, body: &Value) {
        self.place += 1;
        let (one, other) =
            (event_at(id, self.place, kind, body, self.now), event_at(id, self.place, kind, body, self.now));
        self.msg(Msg::Event(one));
        self.session_event(other);
    }

    fn buffer(&self) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.app.shared.size.0, self.app.shared.size.1));
        self.app.draw(&mut buffer);
        sanitize::seal(&mut buffer, self.app.shared.theme.depth);
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
                    skip = sanitize::width(cell.symbol()).max(1);
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
            let area = Rect::new(0, 0, self.app.shared.size.0, self.app.shared.size.1);
            let options = ratatui::TerminalOptions { viewport: ratatui::Viewport::Fixed(area) };
            let mut terminal = Terminal::with_options(CrosstermBackend::new(&mut bytes), options).unwrap();
            terminal
                .draw(|frame| {
                    self.app.draw(frame.buffer_mut());
                    sanitize::seal(frame.buffer_mut(), self.app.shared.theme.depth);
                })
                .unwrap();
        }
        bytes
    }

    /// The answers that were sent.
    fn answers(&mut self) -> Vec<Value> {
        let sent = std::mem::take(&mut self.effects).into_iter();
        sent.filter_map(|effect| match effect {
            Effect::Call { tag: CallTag::Answer(_), request, .. } => Some(body_of(&request)),
            _ => None,
        })
        .collect()
    }
}

fn conversation(stage: &mut Stage) {
    let chunk = |type_text: &str| json!({ "content": { "type": "text", "text": type_text } });
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
fn tui_draws_every_page_at_80x24() {
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
    stage.advance(ARM_DELAY);
    insta::assert_snapshot!("inbox", stage.screen());
    stage.keys(&["3"]);
    stage.type_text("parser");
    stage.keys(&["Enter"]);
    assert!(stage.effects.iter().any(
        |effect| matches!(effect, Effect::Call { request, .. } if request.path == "/v1/search?q=parser&limit=100")
    ));
    let hits = json!({ "hits": [{ "session_id": "s_1", "cursor": "e:3", "role": "agent", "snippet": "the parser \u{202e}fails" }] });
    stage.msg(done(CallTag::Page(TuiPage::Search, "parser".into()), 200, hits));
    insta::assert_snapshot!("search", stage.screen());
    stage.keys(&["4"]);
    let list = json!({ "runtimes": [
        runtime("gemini", "ready", json!({ "connect": { "command": ["gemini", "--acp"] }, "agent": "gemini-cli 0.61", "pid": 4242, "updated_at": at(NOON - 60_000) })),
        runtime("codex", "exited", json!({ "dialect": "codex", "connect": { "endpoint": "ws://127.0.0.1:1/" }, "cwd": "/", "problem": "nothing is listening there" }))] });
    stage.msg(done(CallTag::Page(TuiPage::Runtimes, String::new()), 200, list));
    insta::assert_snapshot!("runtimes", stage.screen());
    stage.keys(&["5"]);
    let list = json!({ "devices": [
        device("d_local", "this machine", json!({ "scopes": ["watch", "prompt", "approve", "admin"], "kind": "local", "online": true, "you": true, "local": true, "last_seen_at": at(NOON) })),
        device("d_2", "phone", json!({ "scopes": ["watch", "approve"], "approve_up_to": "low", "last_seen_at": at(NOON - 7_200_000) }))] });
    stage.msg(done(CallTag::Page(TuiPage::Devices, String::new()), 200, list));
    insta::assert_snapshot!("devices", stage.screen());
    stage.keys(&["?"]);
    insta::assert_snapshot!("help", stage.screen());
    stage.keys(&["Esc", "C-k"]);
    stage.type_text("par");
    insta::assert_snapshot!("palette", stage.screen());
    stage.keys(&["Enter"]);
    assert_eq!(
        (stage.app.shared.page, stage.app.pages.session.conversation.as_ref().unwrap().session.as_str()),
        (TuiPage::Session, "s_1")
    );
}

#[test]
fn tui_draws_a_conversation_at_two_sizes() {
    for (name, width, height) in [("talk_80x24", 80, 24), ("talk_160x50", 160, 50)] {
        let mut stage = Stage::new(width, height, &sessions(), &[]);
        stage.open("s_1");
        conversation(&mut stage);
        insta::assert_snapshot!(name, stage.screen());
    }
}

#[test]
fn tui_ignores_a_key_that_was_meant_for_another_card() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    stage.event("s_1", "request_opened", &ask("q_1", "s_1", "make deploy", json!({})));
    assert!(stage.screen().contains("make deploy"));
    stage.advance(10 * ARM_DELAY);
    stage.keys(&["Esc"]);
    stage.now += ARM_DELAY - 1;
    stage.keys(&["a", "d"]);
    assert_eq!(stage.answers(), Vec::<Value>::new(), "the guard begins with the focus");
    stage.now += 1;
    stage.keys(&["a"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o1", "digest": "d1" })]);
    stage.keys(&["a", "d"]);
    assert_eq!(stage.answers(), Vec::<Value>::new(), "once");
    // In the composer, letters are text.
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    stage.type_text("say ");
    stage.event("s_1", "request_opened", &ask("q_1", "s_1", "make deploy", json!({})));
    stage.advance(10 * ARM_DELAY);
    stage.type_text("yes");
    assert_eq!((stage.answers(), stage.app.pages.session.composer.lines().join("")), (vec![], "say yes".to_owned()));
    // Pasted text is text.
    stage.msg(Msg::Paste("y\r\nn\r".into()));
    assert_eq!(
        (stage.answers(), stage.app.pages.session.composer.lines().join("|")),
        (vec![], "say yesy|n|".to_owned())
    );
}

#[test]
fn tui_rereads_a_changed_request_before_an_approval() {
    let first = ask(
        "q_1",
        "s_1",
        "make test",
        json!({ "revision": 0, "risk": "elevated", "risk_reasons": ["runs a program"] }),
    );
    let second = ask("q_1", "s_1", "make deploy", json!({ "revision": 1, "changed": true, "digest": "d2" }));
    let mut stage = Stage::new(80, 24, &sessions(), std::slice::from_ref(&first));
    stage.open_card("s_1");
    assert!(stage.screen().contains("Elevated  runs a program"), "{}", stage.screen());
    stage.advance(ARM_DELAY);
    stage.event("s_1", "request_updated", &second);
    assert!(stage.screen().contains("make deploy") && !stage.screen().contains("make test"), "{}", stage.screen());
    stage.advance(ARM_DELAY);
    assert!(stage.screen().contains("changed while it was open"), "{}", stage.screen());
    stage.keys(&["a", "A"]);
    assert_eq!(stage.answers(), Vec::<Value>::new(), "not read again");
    // A late earlier revision changes nothing.
    stage.event("s_1", "request_updated", &first);
    assert!(stage.screen().contains("make deploy"));
    stage.keys(&["c", "a"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o1", "digest": "d2" })]);
    // A denial needs no second reading.
    let mut stage = Stage::new(80, 24, &sessions(), &[first]);
    stage.open_card("s_1");
    stage.event("s_1", "request_updated", &second);
    stage.advance(ARM_DELAY);
    stage.keys(&["d"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o3", "digest": "d2" })]);
}

#[test]
fn tui_fetches_a_truncated_request_before_an_approval_not_a_denial() {
    let part = ask("q_1", "s_1", "begin", json!({ "display_truncated": true, "display_bytes": 90_000, "digest": "" }));
    let all = ask("q_1", "s_1", "begin and end", json!({ "digest": "whole" }));
    let fetched = |stage: &mut Stage| {
        let effects = std::mem::take(&mut stage.effects);
        effects
            .iter()
            .filter(
                |effect| matches!(effect, Effect::Call { tag: CallTag::FullRequest(_), request, .. } if request.path == "/v1/requests/q_1"),
            )
            .count()
    };
    let mut stage = Stage::new(80, 24, &sessions(), std::slice::from_ref(&part));
    stage.open_card("s_1");
    assert_eq!(fetched(&mut stage), 1, "asked for once");
    stage.keys(&["a"]);
    assert_eq!(stage.answers(), Vec::<Value>::new(), "only the beginning was there");
    stage.keys(&["d"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o3" })], "a no needs no digest");
    let mut stage = Stage::new(80, 24, &sessions(), std::slice::from_ref(&part));
    stage.open_card("s_1");
    stage.msg(done(CallTag::FullRequest("q_1".into()), 200, all));
    // A repeated beginning does not replace the whole request.
    stage.event("s_1", "request_updated", &part);
    assert!(stage.screen().contains("begin and end"), "{}", stage.screen());
    stage.advance(ARM_DELAY);
    stage.keys(&["a"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o1", "digest": "whole" })]);
}

#[test]
fn tui_orders_sessions_by_news_whatever_the_clock_says() {
    const HOUR: i64 = 3_600_000;
    // The gateway lists the newest first; the second one was active before the clock was set back.
    let list = [session("s_1", "one", "idle", 2 * HOUR), session("s_2", "two", "idle", HOUR)];
    let mut stage = Stage::new(100, 30, &list, &[]);
    let order = |stage: &Stage| {
        stage.app.pages.sessions.ordered(&stage.app.shared).iter().map(|one| one.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(order(&stage), ["s_1", "s_2"]);
    stage.msg(Msg::Event(session_changed(session("s_2", "two", "idle", 3 * HOUR))));
    assert_eq!(order(&stage), ["s_2", "s_1"], "what is said now is news");
    stage.msg(Msg::Event(session_changed(session("s_1", "renamed", "idle", 2 * HOUR))));
    assert_eq!(order(&stage), ["s_2", "s_1"], "what changes without news stays where it is");
}

#[test]
fn tui_composer_restarts_a_session_whose_agent_ended() {
    let mut stage = Stage::new(80, 24, &[session("s_1", "Fix the parser", "exited", 1_000)], &[]);
    stage.open("s_1");
    assert!(stage.screen().contains("start demo again and continue"), "{}", stage.screen());
    stage.effects.clear();
    stage.keys(&["Enter"]);
    let paths = stage.effects.iter().filter_map(|effect| match effect {
        Effect::Call { request, .. } if request.method == "POST" => Some(request.path.as_str()),
        _ => None,
    });
    assert_eq!(paths.collect::<Vec<_>>(), ["/v1/runtimes/demo/restart"]);
    // With a prompt it restarts, too, and the prompt is sent once, after the restart.
    let prompts = |stage: &mut Stage| {
        let effects = std::mem::take(&mut stage.effects).into_iter();
        effects
            .filter(|effect| matches!(effect, Effect::Call { tag: CallTag::Prompt(sent), .. } if sent.text == "go on"))
            .count()
    };
    stage.effects.clear();
    stage.type_text("go on");
    stage.keys(&["Enter"]);
    assert!(stage.effects.iter().any(|effect| matches!(effect, Effect::Call { tag: CallTag::Restart(_), .. })));
    assert_eq!((prompts(&mut stage), stage.app.pages.session.composer.lines().join("")), (0, "go on".to_owned()));
    stage.msg(done(CallTag::Restart("demo".into()), 200, json!({})));
    assert_eq!(prompts(&mut stage), 0);
    for _ in 0..2 {
        stage.msg(Msg::Event(session_changed(session("s_1", "Fix the parser", "idle", 0))));
    }
    assert_eq!((prompts(&mut stage), stage.app.pages.session.composer.lines().join("")), (1, String::new()));
    // If it cannot be restarted, the prompt stays in the composer and is not sent.
    let mut stage = Stage::new(80, 24, &[session("s_1", "Fix the parser", "exited", 1_000)], &[]);
    stage.open("s_1");
    stage.type_text("go on");
    stage.keys(&["Enter"]);
    stage.msg(done(CallTag::Restart("demo".into()), 409, json!({ "detail": "no such program" })));
    assert!(stage.screen().contains("no such program") && stage.screen().contains("go on"), "{}", stage.screen());
    stage.msg(Msg::Event(session_changed(session("s_1", "Fix the parser", "idle", 0))));
    assert_eq!(prompts(&mut stage), 0);
}

#[test]
fn tui_shows_read_errors() {
    let opaque = json!({ "subject": { "type": "unreadable" }, "risk": "danger" });
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "{\"blob\":1}", opaque)]);
    stage.open("s_1");
    let screen = stage.screen();
    assert!(screen.contains("cannot tell what this would do") && screen.contains("{\"blob\":1}"), "{screen}");
}

#[test]
fn tui_requires_reading_long_requests_before_an_approval() {
    let long: String = (1..=100).map(|n| format!("line {n}\n")).collect();
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", &long, json!({}))]);
    stage.open_card("s_1");
    stage.keys(&["a", "A"]);
    assert_eq!(stage.answers(), Vec::<Value>::new());
    assert!(stage.screen().contains("read to the end"), "{}", stage.screen());
    for _ in 0..30 {
        stage.keys(&["PageDown"]);
    }
    assert!(stage.screen().contains("line 100"), "{}", stage.screen());
    stage.keys(&["PageUp", "a"]);
    assert_eq!(stage.answers().len(), 1);
    // A denial needs no reading.
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", &long, json!({}))]);
    stage.open_card("s_1");
    stage.keys(&["d"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o3", "digest": "d1" })]);
}

#[test]
fn tui_dangerous_request_needs_the_word_and_sends_reason_and_changes() {
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "rm -rf /", json!({ "risk": "danger" }))]);
    stage.open_card("s_1");
    stage.keys(&["a"]);
    assert_eq!(stage.answers(), Vec::<Value>::new());
    stage.type_text("y");
    stage.keys(&["Enter"]);
    assert_eq!(stage.answers(), Vec::<Value>::new(), "y is not yes");
    stage.type_text("yes");
    assert!(stage.screen().contains("Type yes"), "{}", stage.screen());
    stage.keys(&["Enter"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o1", "digest": "d1" })]);

    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.open_card("s_1");
    stage.keys(&["r"]);
    stage.type_text("not on Friday");
    stage.keys(&["Enter"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o3", "reason": "not on Friday", "digest": "d1" })]);

    let editable = json!({ "editable": { "label": "the command", "value": "make deploy" } });
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", editable)]);
    stage.open_card("s_1");
    stage.keys(&["e"]);
    stage.type_text(" --dry");
    stage.keys(&["Enter"]);
    assert_eq!(stage.answers(), [json!({ "option_id": "o1", "edited": "make deploy --dry", "digest": "d1" })]);
}

#[test]
fn tui_answers_texts_secrets_and_choices() {
    let secret = json!({ "type": "prompt", "options": [], "secret": true, "allow_reason": false });
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "Password?", secret)]);
    stage.open_card("s_1");
    stage.type_text("hunter2");
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
        stage.open_card("s_1");
        assert!(stage.screen().contains("Second"));
        stage.keys(&keys);
        assert_eq!(stage.answers(), [json!({ "ids": ids, "digest": "d1" })]);
    }
}

/// A form: one of two, any of three or text, an optional number, text.
fn form(more: Value) -> Value {
    let option = |id: &str, label: &str, more: &str| json!({ "id": id, "label": label, "description": more });
    let questions = json!([
        { "id": "db", "header": "Database", "text": "Which database?", "multiple": false, "free_text": false,
            "options": [option("pg", "Postgres", "a server"), option("lite", "SQLite", "a file")] },
        { "id": "with", "text": "What with it?", "multiple": true, "free_text": true,
            "options": [option("orm", "An ORM", ""), option("mig", "Migrations", ""), option("seed", "Seed data", "")] },
        { "id": "port", "text": "Which port?", "multiple": false, "free_text": true, "optional": true, "options": [],
            "fits": { "number": "integer", "least": 1024.0, "most": 65535.0 } },
        { "id": "name", "text": "What is it called?", "multiple": false, "free_text": true, "options": [] },
    ]);
    let mut form = ask(
        "q_1",
        "s_1",
        "A JSON object with\n\"db\" (one of ..)",
        json!({ "type": "prompt", "options": [],
        "allow_reason": false, "message": "Before I begin:", "subject": { "type": "question", "questions": questions } }),
    );
    form.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    form
}

#[test]
fn tui_answers_several_questions_in_one_card() {
    for (width, height) in [(80, 24), (40, 20)] {
        let mut stage = Stage::new(width, height, &sessions(), &[form(json!({}))]);
        stage.open_card("s_1");
        let screen = stage.screen();
        assert!(screen.contains("Before I begin:") && screen.contains("Which database?"), "{screen}");
        assert!(screen.contains("1 ( ) Postgres") && !screen.contains("JSON"), "{screen}");
        insta::assert_snapshot!(format!("form_{width}x{height}"), screen);
        // Sent too early, it names what is missing and goes there.
        stage.keys(&["Tab", "C-s"]);
        assert_eq!(stage.answers(), Vec::<Value>::new());
        assert!(stage.screen().contains("question 1: choose an answer"), "{}", stage.screen());
        // Two by number; then a multiple choice; Space and free text; a number; text with the letter n.
        stage.keys(&["2", " ", "Down", "Down", " ", "Down"]);
        stage.type_text("docs no");
        assert!(stage.screen().contains("other: docs no"), "{}", stage.screen());
        stage.keys(&["Enter"]);
        stage.type_text("80");
        stage.keys(&["Enter"]);
        stage.type_text("nina");
        stage.keys(&["Enter", "Enter"]);
        assert_eq!(stage.answers(), Vec::<Value>::new());
        assert!(stage.screen().contains("question 3: 1024 to 65535"), "{}", stage.screen());
        stage.type_text("80");
        stage.keys(&["Tab", "Tab"]);
        assert!(stage.screen().contains("a sends"), "{}", stage.screen());
        stage.keys(&["Enter"]);
        let answers = json!({ "db": ["lite"], "with": ["orm", "seed", "docs no"], "port": ["8080"], "name": ["nina"] });
        assert_eq!(stage.answers(), [json!({ "answers": answers, "digest": "d1" })], "{}", stage.screen());
    }
}

#[test]
fn tui_declines_a_form_and_keeps_a_partial_one() {
    let mut stage = Stage::new(80, 24, &sessions(), &[form(json!({}))]);
    stage.open_card("s_1");
    stage.keys(&["1", "3", "Tab"]);
    stage.type_text("9999");
    assert!(stage.screen().contains("9999"), "{}", stage.screen());
    stage.keys(&["Esc", "C-k"]);
    stage.type_text("inbox");
    stage.keys(&["Enter"]);
    assert_eq!(stage.app.shared.page, TuiPage::Inbox);
    stage.keys(&["j"]);
    stage.advance(ARM_DELAY);
    let screen = stage.screen();
    assert!(screen.contains("9999"), "{screen}");
    // A letter that was meant for a text field ends nothing.
    stage.keys(&["S-Tab", "d", "Down", "d"]);
    assert_eq!(stage.answers(), Vec::<Value>::new());
    assert!(stage.screen().contains("press again to answer none"), "{}", stage.screen());
    stage.keys(&["d"]);
    assert_eq!(stage.answers(), [json!({ "answers": {}, "digest": "d1" })]);
    // A changed form starts anew, and has to be read again before it is sent; also where letters are text.
    let mut stage = Stage::new(80, 24, &sessions(), &[form(json!({}))]);
    stage.open_card("s_1");
    stage.keys(&["1", "Tab", "Tab"]);
    stage.event("s_1", "request_updated", &form(json!({ "revision": 1, "changed": true, "digest": "d2" })));
    stage.advance(ARM_DELAY);
    stage.keys(&["1", "1", "Tab", "Tab"]);
    stage.type_text("x");
    stage.keys(&["Enter", "Enter"]);
    assert_eq!(stage.answers(), Vec::<Value>::new());
    assert!(stage.screen().contains("read it again, then press Ctrl-R"), "{}", stage.screen());
    stage.keys(&["C-r", "Enter"]);
    let answers = json!({ "db": ["pg"], "with": ["orm"], "name": ["x"] });
    assert_eq!(stage.answers(), [json!({ "answers": answers, "digest": "d2" })], "{}", stage.screen());
}

#[test]
fn tui_scrolls_a_long_list_to_its_end() {
    let options: Vec<Value> =
        (0..200).map(|n| json!({ "id": format!("o{n}"), "label": format!("option {n}") })).collect();
    let one = json!([{ "id": "which", "text": "Which of them?\u{1b}[2J", "multiple": false, "free_text": true, "options": options }]);
    let more = json!({ "subject": { "type": "question", "questions": one } });
    for (width, height) in [(80, 24), (40, 12)] {
        let mut stage = Stage::new(width, height, &sessions(), &[form(more.clone())]);
        stage.open_card("s_1");
        while !stage.screen().contains("option 0") {
            stage.keys(&["Down"]);
        }
        for at in 0..150 {
            assert!(stage.screen().contains(&format!("option {at}")), "{at}: {}", stage.screen());
            stage.keys(&["Down"]);
        }
        stage.keys(&[" ", "C-s"]);
        assert_eq!(stage.answers(), Vec::<Value>::new(), "its end was not on the screen");
        stage.keys(&["Tab", "Enter"]);
        assert_eq!(
            stage.answers(),
            [json!({ "answers": { "which": ["o150"] }, "digest": "d1" })],
            "{}",
            stage.screen()
        );
    }
}

#[test]
fn tui_loads_older_sessions_where_they_are_searched() {
    let all: Vec<Value> =
        (0..2_000).map(|n| session(&format!("s_{n:04}"), &format!("Task {n}"), "idle", n * 1_000)).collect();
    let hello = || {
        let hello = StreamHello { sessions_omitted: Some(1_500), ..stream_hello(&all[..500], &[]) };
        Msg::Event(ClientEvent::Hello(Box::new(hello)))
    };
    let asked = |stage: &mut Stage| {
        let effects = std::mem::take(&mut stage.effects);
        let paths = effects.into_iter().filter_map(|effect| match effect {
            Effect::Call { tag: tag @ CallTag::Older(_), request, .. } => Some((tag, request.path)),
            _ => None,
        });
        paths.collect::<Vec<_>>()
    };
    // The gateway's page after a cursor.
    let page = |path: &str| {
        let from: usize = path.rsplit_once("cursor=").unwrap().1.parse().unwrap_or(0);
        let next = (from + 500 < all.len()).then(|| (from + 500).to_string());
        json!({ "sessions": all[from..from + 500], "next": next })
    };
    let mut stage = Stage::new(80, 24, &[], &[]);
    stage.msg(hello());
    stage.msg(Msg::Event(ClientEvent::Live));
    for _ in 0..400 {
        stage.keys(&["Down"]);
    }
    assert_eq!(asked(&mut stage), [], "nothing is read that is not looked at");
    let mut read = 0;
    for n in 400..1_999 {
        stage.keys(&["Down"]);
        for (tag, path) in asked(&mut stage) {
            read += 1;
            stage.msg(done(tag, 200, page(&path)));
        }
        assert!(stage.screen().contains(&format!("Task {}", n + 1)), "{n}: {}", stage.screen());
    }
    assert_eq!((read, stage.app.shared.sessions.all.len()), (4, 2_000), "the page that is known, and three more");
    // By a filter, on any page; a failed read is repeated with the next key.
    let mut stage = Stage::new(80, 24, &[], &[]);
    stage.msg(hello());
    stage.msg(Msg::Event(ClientEvent::Live));
    stage.keys(&["f"]);
    stage.type_text("task 1987");
    let (tag, _) = asked(&mut stage).pop().unwrap();
    stage.msg(lost(tag, "away"));
    assert_eq!(asked(&mut stage), [], "not again by itself");
    stage.keys(&["Enter", "Up"]);
    loop {
        let mut pages = asked(&mut stage);
        assert!(pages.len() < 2, "one at a time");
        let Some((tag, path)) = pages.pop() else { break };
        stage.msg(done(tag, 200, page(&path)));
    }
    let screen = stage.screen();
    assert!(
        screen.contains("filter task 1987") && screen.contains("Task 1987") && !screen.contains("Task 12"),
        "{screen}"
    );
    // A late page of an earlier `hello` is ignored; Esc clears the filter, and only then leaves.
    stage.msg(done(CallTag::Older(1), 200, json!({ "sessions": [session("s_x", "Late", "idle", 0)] })));
    stage.keys(&["Esc"]);
    assert!(stage.screen().contains("Task 12") && !stage.screen().contains("Late") && !stage.app.shared.quit);
}

#[test]
fn tui_reaches_fifty_requests_and_all_sessions_at_40x20_without_overlap() {
    let some: Vec<Value> =
        (0..50).map(|n| session(&format!("s_{n:02}"), &format!("Task {n:02}"), "waiting", n)).collect();
    let asks: Vec<Value> =
        (0..50).map(|n| ask(&format!("q_{n:02}"), &format!("s_{n:02}"), &format!("make t{n:02}"), json!({}))).collect();
    let mut stage = Stage::new(40, 20, &some, &asks);
    assert!(stage.screen().contains("Task 00") && stage.screen().contains("waiting"), "{}", stage.screen());
    stage.keys(&["1"]);
    for left in (1..=50).rev() {
        stage.advance(LINGER_TIME + ARM_DELAY);
        stage.keys(&["k"]);
        stage.advance(ARM_DELAY);
        let screen = stage.screen();
        let which = screen.split("│ │ make t").nth(1).expect(&screen)[..2].to_owned();
        assert!(screen.contains(&format!("make t{which}  ")) && screen.contains(&format!("Task {which}")), "{screen}");
        assert!(screen.contains("Allow once") && screen.contains(&format!(" {left} ")), "{left}: {screen}");
        stage.keys(&["d"]);
        assert_eq!(stage.answers().len(), 1, "{screen}");
        let over = json!({ "request_id": format!("q_{which}"), "state": "answered", "ok": false, "at": at(stage.now),
            "resolved_by": { "device_id": "d_local", "name": "me" } });
        stage.msg(Msg::Event(event_at(&format!("s_{which}"), 9, "request_resolved", &over, stage.now)));
    }
    stage.advance(LINGER_TIME + ARM_DELAY);
    assert!(stage.screen().contains("Nothing waits for you"), "{}", stage.screen());
}

#[test]
fn tui_opens_a_session_outside_the_newest_page() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_old");
    let paths: Vec<String> = std::mem::take(&mut stage.effects)
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Call { tag: CallTag::Session, request, .. } => Some(request.path),
            _ => None,
        })
        .collect();
    assert_eq!(paths, ["/v1/sessions/s_old"]);
    stage.msg(done(CallTag::Session, 200, session("s_old", "Long ago", "exited", 9_000_000)));
    let screen = stage.screen();
    assert!(screen.contains("Long ago") && screen.contains("start demo again"), "{screen}");
}

#[test]
fn tui_confirms_danger_twice_and_keeps_typed_text_after_a_denial() {
    let mut stage = Stage::new(80, 24, &sessions(), &[form(json!({ "risk": "danger" }))]);
    stage.open_card("s_1");
    stage.keys(&["1", "1", "Tab", "Tab"]);
    stage.type_text("x");
    stage.keys(&["Enter", "Enter"]);
    assert!(stage.screen().contains("Type yes"), "{}", stage.screen());
    stage.keys(&["Esc", "Enter"]);
    stage.type_text("yes");
    stage.keys(&["Enter"]);
    assert_eq!(stage.answers().len(), 1);
    // The same for a text and a pick.
    let text = json!({ "type": "prompt", "options": [], "risk": "danger" });
    let pick = json!({ "type": "pick", "options": [], "items": [{ "id": "a", "label": "First" }], "risk": "danger" });
    for (more, type_text, answer) in [(text, "hello", json!({ "value": "hello" })), (pick, "", json!({ "ids": ["a"] }))]
    {
        let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "Say", more)]);
        stage.open_card("s_1");
        stage.type_text(type_text);
        stage.keys(&["Enter", "Esc", "Enter"]);
        stage.type_text("yes");
        stage.keys(&["Enter"]);
        let sent = stage.answers();
        assert_eq!(sent.len(), 1, "{}", stage.screen());
        for (member, value) in answer.as_object().unwrap() {
            assert_eq!(sent[0][member], *value);
        }
    }
}

#[test]
fn tui_shows_an_answer_of_another_client_in_place() {
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.open_card("s_1");
    let row =
        |stage: &Stage| stage.screen().lines().position(|line| line.contains("make deploy") && line.starts_with("│"));
    let before = row(&stage);
    assert!(before.is_some());
    let receipt = json!({ "request_id": "q_1", "state": "answered", "option_id": "allow_once", "ok": true, "at": at(stage.now),
        "resolved_by": { "device_id": "d_2", "name": "phone" } });
    stage.event("s_1", "request_resolved", &receipt);
    stage.advance(2_000);
    assert!(stage.screen().contains("Allowed once by phone, 2 s ago"), "{}", stage.screen());
    assert_eq!(row(&stage), before, "what the finger was about to touch did not move");
    stage.keys(&["d", "a"]);
    assert_eq!(stage.answers(), Vec::<Value>::new());
    stage.advance(LINGER_TIME);
    assert_eq!(row(&stage), None);
    // In the inbox, too.
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.keys(&["1"]);
    stage.advance(ARM_DELAY);
    stage.event("s_1", "request_resolved", &receipt);
    assert!(stage.screen().contains("Allowed once by phone"), "{}", stage.screen());
    stage.advance(LINGER_TIME);
    assert!(stage.screen().contains("Nothing waits for you"), "{}", stage.screen());
}

#[test]
fn tui_closes_a_request_that_a_newer_gateway_closed() {
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.open_card("s_1");
    stage.event("s_1", "request_opened", &ask("q_1", "s_1", "make deploy", json!({})));
    assert!(stage.screen().contains("? waiting for an answer"), "{}", stage.screen());
    let receipt = json!({ "request_id": "q_1", "state": "delegated", "at": at(stage.now),
        "resolved_by": { "device_id": "d_2", "name": "phone" } });
    stage.event("s_1", "request_resolved", &receipt);
    stage.keys(&["d", "a"]);
    assert_eq!(stage.answers(), Vec::<Value>::new());
    stage.advance(LINGER_TIME);
    let screen = stage.screen();
    assert!(screen.contains("– Closed") && !screen.contains("waiting for an answer"), "{screen}");
}

#[test]
fn tui_late_answer_shows_the_winner() {
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.open_card("s_1");
    stage.keys(&["d"]);
    let receipt = json!({ "code": "already_resolved", "detail": "x", "request_id": "q_1", "state": "answered", "ok": true, "at": at(stage.now), "won": false,
        "resolved_by": { "device_id": "d_2", "name": "phone" } });
    stage.msg(done(CallTag::Answer("q_1".into()), 409, receipt));
    assert!(stage.screen().contains("too late: Allowed once by phone"), "{}", stage.screen());
    // A failed answer is shown, and can be sent again.
    let mut stage = Stage::new(80, 24, &sessions(), &[ask("q_1", "s_1", "make deploy", json!({}))]);
    stage.open_card("s_1");
    stage.keys(&["a"]);
    stage.answers();
    stage.msg(done(
        CallTag::Answer("q_1".into()),
        403,
        json!({ "code": "risk_too_high", "detail": "above what you may allow" }),
    ));
    assert!(stage.screen().contains("above what you may allow"), "{}", stage.screen());
    stage.keys(&["a"]);
    assert_eq!(stage.answers().len(), 1);
}

#[test]
fn tui_shows_a_lost_gateway_with_the_age_of_its_data() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.advance(1_000);
    stage.msg(Msg::Event(ClientEvent::Lost("closed".into())));
    stage.advance(61_000);
    assert!(matches!(stage.app.shared.link, ConnectionView::Lost(..)));
    let screen = stage.screen();
    assert!(screen.contains("○ offline") && screen.contains("This data is from"), "{screen}");
    assert_eq!(stage.app.shared.data_as_of, NOON + 1_000);
    stage.msg(Msg::Event(hello_of(&sessions(), &[])));
    stage.msg(Msg::Event(ClientEvent::Live));
    assert!(stage.screen().contains("● live"));
}

#[test]
fn tui_has_history_queue_and_slash_commands() {
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
    stage.type_text("draft");
    stage.keys(&["Up"]);
    assert_eq!(stage.app.pages.session.composer.lines(), ["earlier", "words"]);
    stage.keys(&["Down", "Down"]);
    assert_eq!(stage.app.pages.session.composer.lines(), ["draft"]);
    stage.keys(&["C-c"]);
    stage.type_text("/pl");
    assert!(stage.screen().contains("/plan makes a plan"), "{}", stage.screen());
    stage.keys(&["Tab"]);
    stage.type_text("now");
    stage.keys(&["C-j"]);
    stage.type_text("please");
    stage.effects.clear();
    stage.keys(&["Enter"]);
    assert!(stage.effects.iter().any(|effect| matches!(effect, Effect::Call { tag: CallTag::Prompt(sent), key: CallKey::New, .. } if sent.text == "/plan now\nplease")));
    // A refused prompt is restored to the composer.
    stage.msg(done(
        CallTag::Prompt(Box::new(SentPrompt { session: "s_1".into(), text: "/plan now".into(), images: Vec::new() })),
        429,
        json!({ "detail": "too many wait" }),
    ));
    assert_eq!(stage.app.pages.session.composer.lines(), ["/plan now"]);
    stage.keys(&["Esc", "Q"]);
    assert!(
        stage
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::Call { request, .. } if body_of(request)["run_id"] == "r_9"))
    );
}

#[test]
fn tui_long_session_costs_a_window_and_rereads_older_events() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    let subscription = stage.app.following();
    let body = |n: u64| match n % 4 {
        0 => {
            ("tool_call", json!({ "toolCallId": format!("t{n}"), "title": format!("tool {n}"), "status": "completed" }))
        }
        _ => ("agent_message_chunk", json!({ "content": { "type": "text", "text": format!("word-{n} ") } })),
    };
    for n in 0..200_000 {
        let (kind, body) = body(n);
        stage.app.update(Msg::SessionEvent(subscription, event_at("s_1", n + 1, kind, &body, NOON)), NOON);
    }
    let (blocks, bytes) = stage.app.pages.session.conversation.as_ref().unwrap().size();
    assert!(blocks <= 3000 && bytes < 32 << 20, "{blocks} blocks, {bytes} bytes");
    assert!(stage.screen().contains("word-199999"), "{}", stage.screen());
    // Scrolled to the first loaded line: the previous page is fetched, and shown from its end.
    stage.keys(&["Esc", "g"]);
    let expected = |stage: &Stage| {
        let effect = stage.effects.iter().rev().find_map(|effect| match effect {
            Effect::Page { before, .. } => Some(before.clone()),
            _ => None,
        });
        effect.expect("nothing was asked for")
    };
    let to = position(&expected(&stage));
    assert!(to > 190_000, "{to}");
    let page = |from: u64, to: u64| {
        let session_event = |n: u64| {
            let (kind, body) = body(n);
            json!({ "kind": kind, "event": body, "cursor": format!("e:{}", n + 1), "at": "2025-11-21T09:30:00.125Z" })
        };
        let events: Vec<_> = (from..to - 1).map(session_event).collect();
        page_of(&events, Some(&format!("e:{}", from + 1)))
    };
    stage.msg(Msg::Page(subscription, Ok(Box::new(page(to - 600, to)))));
    let screen = stage.screen();
    assert!(screen.contains(&format!("word-{}", (to - 2) / 4 * 4 - 1)) && screen.contains("older"), "{to}: {screen}");
    // And from its start the one before it.
    stage.keys(&["g"]);
    assert_eq!(position(&expected(&stage)), to - 599);
    stage.msg(Msg::Page(subscription, Ok(Box::new(page(to - 1200, to - 599)))));
    assert!(stage.screen().contains("older"));
    stage.keys(&["G"]);
    assert!(stage.screen().contains("word-199999"));
}

#[test]
fn tui_keeps_the_reading_position_while_events_come() {
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
    assert!(
        stage.screen().contains("tool 399")
            && stage.app.pages.session.conversation.as_ref().unwrap().scroll_position.follow
    );
}

/// Escape sequences that terminals obey.
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
    for type_text in [
        "\x1b[200~y\x1b[201~",
        "\x1b[6n\x1b[c\x1b[>q",
        "\x1b[2J\x1b[H\x1b[999;999H",
        "\x1b[31m\x1b[8mhidden",
        "\x1b\x1b[[31m",
        "\x1b[\x1b]0;x\x07m",
        "\x1b[38;2;1;2;3;4;5;6m",
        "\x1b[99999999999999m",
    ] {
        all.push(type_text.as_bytes().to_vec());
    }
    all
}

/// Fails unless the bytes are printable text and the few sequences that drawing needs.
fn assert_allowed_bytes(bytes: &[u8], subscription: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '\u{1b}' {
            let body = rest[1..].strip_prefix('[').unwrap_or_else(|| {
                panic!("{:?} wrote {:?}", String::from_utf8_lossy(subscription), &rest[..rest.len().min(9)])
            });
            let end = body.find(|c: char| c.is_ascii_alphabetic()).unwrap();
            let (parameters, end) = (&body[..end], &body[end..=end]);
            let fine = match end {
                "H" | "m" | "J" => parameters.bytes().all(|b| b.is_ascii_digit() || b == b';'),
                "l" | "h" => parameters == "?25",
                _ => false,
            };
            assert!(fine, "{:?} wrote CSI {parameters}{end}", String::from_utf8_lossy(subscription));
            // Blinking and hidden text are not allowed for anyone.
            assert!(!(end == "m" && parameters.split(';').collect::<Vec<_>>() == ["8"]), "hidden text");
            rest = &body[parameters.len() + 1..];
        } else {
            assert!(
                sanitize::printable(&c.to_string())
                    || !c.is_control()
                        && sanitize::width(&c.to_string()) == 0
                        && !plexus_protocol::text::hides(c, None),
                "{:?} wrote U+{:04X}",
                String::from_utf8_lossy(subscription),
                u32::from(c)
            );
            rest = &rest[c.len_utf8()..];
        }
    }
}

#[test]
fn tui_text_of_another_message_is_another_block() {
    let mut stage = Stage::new(80, 24, &[session("s_1", "A", "running", 0)], &[]);
    stage.open("s_1");
    let mut say = |id: Option<&str>, type_text: &str| {
        let mut chunk = json!({ "content": { "type": "text", "text": type_text } });
        if let Some(id) = id {
            chunk["messageId"] = json!(id);
        }
        stage.event("s_1", "user_message_chunk", &chunk);
    };
    say(Some("m1"), "make ");
    say(Some("m1"), "clean");
    say(Some("m2"), "make ");
    say(None, "test");
    let screen = stage.screen();
    assert!(screen.contains("make clean") && screen.contains("make test"), "{screen}");
    assert!(!screen.contains("make cleanmake"), "{screen}");
}

#[test]
fn tui_never_passes_an_agents_escape_sequence_to_the_terminal() {
    let corpus = corpus();
    assert!(corpus.len() >= 200, "{}", corpus.len());
    for bytes in &corpus {
        for cut in 0..=bytes.len() {
            let (one, two) = (String::from_utf8_lossy(&bytes[..cut]), String::from_utf8_lossy(&bytes[cut..]));
            let whole = format!("{one}{two}");
            let mut stage = Stage::new(80, 24, &[session("s_1", &whole, "running", 0)], &[]);
            stage.open("s_1");
            for (kind, type_text) in [
                ("user_message_chunk", &one),
                ("user_message_chunk", &two),
                ("agent_thought_chunk", &one),
                ("agent_thought_chunk", &two),
                ("agent_message_chunk", &one),
                ("agent_message_chunk", &two),
            ] {
                stage.event("s_1", kind, &json!({ "content": { "type": "text", "text": type_text } }));
            }
            let output = json!([{ "type": "content", "content": { "type": "text", "text": whole } }, { "type": "diff", "path": whole, "oldText": one, "newText": whole }]);
            stage.event("s_1", "tool_call", &json!({ "toolCallId": "t", "title": whole, "kind": whole, "status": "in_progress", "content": output, "rawInput": whole }));
            stage.event("s_1", "run_ended", &json!({ "status": "failed", "message": whole }));
            if cut == 0 {
                // The places that hold a whole text: all the other pages.
                stage.event("s_1", "request_opened", &ask("q_1", "s_1", &whole, json!({ "title": whole, "message": whole, "warnings": [whole], "options": [{ "id": "x", "label": whole, "kind": "allow_once" }] })));
                stage.event("s_1", "plan", &json!({ "entries": [{ "content": whole, "status": "pending" }] }));
                stage.event("s_1", "error", &json!({ "message": whole }));
                stage.event("s_1", "raw", &json!({ "x": whole }));
                stage.event("s_1", "current_mode_update", &json!({ "currentModeId": whole }));
                stage.event(
                    "s_1",
                    "available_commands_update",
                    &json!({ "availableCommands": [{ "name": format!("a{whole}"), "description": whole }] }),
                );
                stage.type_text("/a");
                assert_allowed_bytes(&stage.bytes(), bytes);
                stage.msg(done(CallTag::Page(TuiPage::Runtimes, String::new()), 200, json!({ "runtimes": [runtime("demo", "exited", json!({ "agent": whole, "problem": whole, "stderr_tail": whole, "connect": { "command": [whole] } }))] })));
                stage.msg(done(
                    CallTag::Page(TuiPage::Devices, String::new()),
                    200,
                    json!({ "devices": [device("d", &whole, json!({}))] }),
                ));
                stage.msg(done(
                    CallTag::Page(TuiPage::Search, whole.clone()),
                    200,
                    json!({ "hits": [{ "session_id": "s_1", "cursor": "e:1", "role": whole, "snippet": whole }] }),
                ));
                stage.keys(&["Esc"]);
                for page in ["1", "2", "3", "4", "5", "?"] {
                    stage.app.pages.search.typing = false;
                    stage.keys(&[page]);
                    stage.app.pages.search.typing = false;
                    assert_allowed_bytes(&stage.bytes(), bytes);
                }
                stage.keys(&["Esc", ":"]);
                assert_allowed_bytes(&stage.bytes(), bytes);
                stage.msg(done(
                    CallTag::Logs,
                    200,
                    json!({ "lines": [{ "at": at(NOON), "text": whole, "by": "runtime" }] }),
                ));
                assert_allowed_bytes(&stage.bytes(), bytes);
                stage.keys(&["Esc"]);
                stage.msg(done(CallTag::Notice(whole.clone()), 500, json!({ "detail": whole })));
                stage.msg(Msg::Event(ClientEvent::Lost(whole.clone())));
                assert_allowed_bytes(&stage.bytes(), bytes);
            }
            assert_allowed_bytes(&stage.bytes(), bytes);
        }
    }
}

#[test]
fn tui_uses_the_colours_of_the_terminal() {
    for (depth, bad) in [
        (Depth::Ansi, &["38;2;", "48;2;", "38;5;16", "48;5;2"][..]),
        (Depth::Indexed, &["38;2;", "48;2;"][..]),
        (Depth::None, &["38;", "48;", ";3", "[3"][..]),
    ] {
        let mut stage =
            Stage::with_depth(80, 24, depth, &sessions(), &[ask("q_1", "s_1", "x", json!({ "risk": "danger" }))]);
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
fn tui_draws_a_session_before_its_data() {
    let mut app = App::new(Theme::new(Depth::True, false), (80, 24), NOON, BTreeMap::new());
    let effects = app.start(Some("s_unknown".into()));
    assert!(effects.contains(&Effect::Follow(Some("s_unknown".into()))));
    let stage = Stage { app, now: NOON, place: 1, effects };
    assert!(stage.screen().contains("connecting …"), "{}", stage.screen());
}

#[test]
fn tui_draws_every_size_and_reports_a_small_one() {
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
            if width >= 20 && (width < layout::WIDTH_MIN || height < layout::HEIGHT_MIN) {
                assert!(screen.contains("plexus needs"), "{screen}");
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Any text of an agent and any keys: no panic, and only allowed sequences are written.
    #[test]
    fn tui_draws_any_events(type_text in proptest::collection::vec("\\PC{0,30}|[\\x00-\\x20\u{7f}-\u{9f}\u{200d}\u{301}|*#`>\\-\\[\\]!]{0,30}", 1..12), keys in "[a-zA-Z0-9 /?:{}\\[\\]]{0,30}", width in 1..120_u16, height in 1..50_u16) {
        let mut stage = Stage::new(width, height, &sessions(), &[ask("q_1", "s_1", &type_text[0], json!({}))]);
        stage.open("s_1");
        let kinds = ["agent_message_chunk", "user_message_chunk", "agent_thought_chunk", "tool_call", "plan", "raw", "error"];
        for (n, type_text) in type_text.iter().enumerate() {
            let body = json!({ "content": { "type": "text", "text": type_text }, "toolCallId": type_text, "title": type_text, "status": type_text, "message": type_text, "entries": [{ "content": type_text }] });
            stage.event("s_1", kinds[n % kinds.len()], &body);
        }
        assert_allowed_bytes(&stage.bytes(), type_text.concat().as_bytes());
        for key in keys.chars() {
            stage.now += 100;
            stage.type_text(&key.to_string());
        }
        assert_allowed_bytes(&stage.bytes(), type_text.concat().as_bytes());
    }
}

/// The calls to the gateway, with their bodies.
fn called(stage: &mut Stage) -> Vec<(String, Option<Value>)> {
    let effects = std::mem::take(&mut stage.effects).into_iter();
    let calls = effects.filter_map(|effect| match effect {
        Effect::Call { request, .. } => {
            let body = request.body.as_ref().map(|_| body_of(&request));
            Some((format!("{} {}", request.method, request.path), body))
        }
        _ => None,
    });
    calls.collect()
}

#[test]
fn tui_shows_servers_and_skills_or_their_absence() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    stage.effects.clear();
    stage.keys(&["C-k"]);
    stage.type_text("mcp");
    stage.keys(&["Enter"]);
    assert_eq!(called(&mut stage), [("GET /v1/sessions/s_1/mcp".into(), None)]);
    let servers = json!({ "servers": [
        { "id": "github", "transport": "http", "enabled": true, "state": "ready", "tools": 26 },
        { "id": "files\u{1b}[2J", "transport": "stdio", "enabled": true, "state": "error", "last_error": "spawn ENOENT" },
    ], "truncated": true });
    stage.msg(done(CallTag::Servers, 200, servers));
    let screen = stage.screen();
    for type_text in ["✔ github: ready · http · 26 tools", "✘ files", "    spawn ENOENT", "… and more"] {
        assert!(screen.contains(type_text), "{type_text}: {screen}");
    }
    assert_allowed_bytes(&stage.bytes(), b"");
    stage.keys(&["Esc", "C-k"]);
    stage.type_text("skills");
    stage.keys(&["Enter"]);
    assert_eq!(called(&mut stage), [("GET /v1/sessions/s_1/skills".into(), None)]);
    let skills = json!({ "skills": [
        { "id": "review", "name": "review", "scope": "repo", "path": "/r", "dir": "/", "mtime_ms": 0, "description": "Reads a change as a reviewer would, ".repeat(6) },
    ], "errors": [{ "path": "/x", "message": "no front matter" }], "truncated": false });
    stage.msg(done(CallTag::Skills, 200, skills));
    let screen = stage.screen();
    assert!(screen.contains("review · this project") && screen.contains("✘ /x: no front matter"), "{screen}");
    assert_eq!(screen.matches("reviewer").count(), 6, "a long description is broken, not cut: {screen}");
    stage.keys(&["Esc"]);
    for (tag, type_text) in [(CallTag::Servers, "MCP status unavailable"), (CallTag::Skills, "Skills list unavailable")]
    {
        stage.msg(done(tag, 409, json!({ "code": "listing_unsupported", "detail": "it does not tell" })));
        assert!(stage.screen().contains(type_text), "{}", stage.screen());
    }
}

#[test]
fn tui_manual_has_every_key_and_command() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/attach.md");
    let manual = std::fs::read_to_string(path).unwrap();
    let keys = super::help::KEYS.iter().flat_map(|(_, keys)| keys.iter());
    for (key, what) in keys.chain(super::help::COMMANDS) {
        let line = format!("- `{key}`: {what}\n");
        assert!(manual.contains(&line), "docs/attach.md lacks {line}");
    }
}

#[test]
fn tui_session_opens_with_its_newest_page_and_fetches_older_ones() {
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.open("s_1");
    let subscription = stage.app.following();
    let message_event = |first: u64, last: u64, text: &str| {
        json!({
            "kind": "agent_message_chunk", "event": { "content": { "type": "text", "text": text } }, "cursor": format!("e:{last}"),
            "cursor_first": format!("e:{first}"), "merged": last - first + 1, "at": "2025-11-21T09:30:00.125Z",
        })
    };
    let tool = json!({
        "kind": "tool_call", "event": { "toolCallId": "t", "title": "cargo test", "status": "completed" }, "cursor": "e:95", "cursor_first": "e:91",
        "merged": 5, "at": "2025-11-21T09:30:00.125Z", "at_last": "2025-11-21T09:30:07.125Z",
    });
    let page = page_of(&[message_event(80, 90, "words of many chunks"), tool], Some("e:80"));
    let snapshot = json!({ "latest": { "usage_update": { "used": 5, "size": 100 } } });
    stage.msg(Msg::Opened(subscription, opening_of(page, &snapshot)));
    assert!(stage.effects.contains(&Effect::Attach { session: "s_1".into(), after: Some("e:99".into()) }));
    stage.msg(Msg::SessionEvent(
        subscription,
        event_at("s_1", 96, "agent_message_chunk", &json!({ "content": { "type": "text", "text": "and more" } }), NOON),
    ));
    let screen = stage.screen();
    assert!(
        screen.contains("words of many chunks") && screen.contains("cargo test") && screen.contains("and more"),
        "{screen}"
    );
    assert_eq!(
        stage.app.pages.session.conversation.as_ref().unwrap().status.usage,
        Some((5, 100)),
        "the latest comes with the snapshot"
    );
    // Up: the previous page.
    stage.keys(&["Esc", "g"]);
    assert!(stage.effects.contains(&Effect::Page { session: "s_1".into(), before: "e:80".into() }));
    stage.msg(Msg::Page(subscription, Ok(Box::new(page_of(&[message_event(1, 79, "the beginning")], None)))));
    assert!(stage.screen().contains("the beginning"), "{}", stage.screen());
    // A place that is not loaded is fetched; where nothing can be read, all events are replayed.
    stage.keys(&["G"]);
    stage.effects.clear();
    assert!(stage.app.pages.session.conversation.as_mut().unwrap().seek(40));
    stage.msg(Msg::Tick);
    assert!(stage.effects.contains(&Effect::Page { session: "s_1".into(), before: "e:41".into() }));
    stage.msg(Msg::Opened(subscription, None));
    assert!(stage.effects.contains(&Effect::Attach { session: "s_1".into(), after: None }));
}

#[test]
fn tui_keeps_read_positions_per_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(super::VIEWED_FILE);
    std::fs::write(&file, "{}").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    super::save_viewed_at(dir.path(), &BTreeMap::from([("s_1".to_owned(), 1)]));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), r#"{"s_1":1}"#);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn tui_shows_subagents_under_the_call_that_started_them() {
    let mut stage = Stage::new(80, 24, &[session("s_1", "one", "running", 0)], &[]);
    stage.open("s_1");
    let under = |parent: &str, mut body: Value| {
        body["_meta"] = json!({ "claudeCode": { "parentToolUseId": parent } });
        body
    };
    let call =
        |id: &str, title: &str| json!({ "toolCallId": id, "title": title, "kind": "read", "status": "completed" });
    let text = |text: &str| json!({ "content": { "type": "text", "text": text } });
    stage.event("s_1", "tool_call", &call("a", "Explore the sources"));
    stage.event("s_1", "tool_call", &under("a", call("b", "first file")));
    stage.event("s_1", "agent_message_chunk", &under("a", text("what I saw")));
    stage.event("s_1", "agent_message_chunk", &text("all is back"));
    stage.event("s_1", "tool_call", &under("a", call("c", "second file")));
    stage.event("s_1", "tool_call", &under("never", call("d", "an orphan")));
    let screen = stage.screen();
    let margin = |notice: &str| {
        let line = screen.lines().find(|line| line.contains(notice)).unwrap_or_else(|| panic!("{notice}: {screen}"));
        line.chars().position(|c| c.is_alphanumeric()).unwrap()
    };
    assert_eq!(margin("first file"), margin("Explore the sources") + 2, "{screen}");
    assert_eq!(margin("an orphan"), margin("Explore the sources"), "{screen}");
    assert!(margin("what I saw") > margin("all is back"), "{screen}");
    assert_eq!(screen.matches("in Explore the sources").count(), 1, "only where the call is not right above: {screen}");
}

#[test]
fn tui_does_not_report_an_unfinished_tool_call() {
    let mut stage = Stage::new(80, 24, &[session("s_1", "Parser", "running", 0)], &[]);
    stage.open("s_1");
    stage.event("s_1", "run_started", &json!({ "run_id": "r_1" }));
    stage.event("s_1", "tool_call", &json!({ "toolCallId": "t", "title": "psql --version", "status": "in_progress" }));
    stage.event(
        "s_1",
        "tool_call_update",
        &json!({ "toolCallId": "t", "status": "failed", "_meta": { "plexus": { "synthesized": true, "reason": "x" } } }),
    );
    let screen = stage.screen();
    assert!(screen.contains("not reported") && !screen.contains('✘'), "{screen}");
}

#[test]
fn tui_idle_terminal_is_not_present_after_two_minutes() {
    let mut stage = Stage::new(80, 24, &[session("s_1", "one", "idle", 0)], &[]);
    let last = |stage: &Stage| {
        let session_event = stage.effects.iter().rev().find_map(|effect| match effect {
            Effect::Presence(_, focused) => Some(*focused),
            _ => None,
        });
        session_event.expect("presence is told")
    };
    stage.msg(Msg::Focus(true));
    stage.advance(119_000);
    assert!(last(&stage));
    stage.advance(1_000);
    assert!(!last(&stage), "in front of an empty chair");
    stage.keys(&["j"]);
    assert!(last(&stage));
    stage.msg(Msg::Focus(false));
    stage.advance(0);
    assert!(!last(&stage));
}
