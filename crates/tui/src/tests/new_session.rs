//! The form of a new session: keys and replies in, calls and screens out.

use super::*;
use crate::new_session::FormField;
use crate::pages::message::FormCall;

fn agents() -> Value {
    json!({ "agents": [
        { "name": "gemini", "about": "Gemini CLI, over ACP", "dialect": "acp", "installed": true, "key": "GEMINI_API_KEY" },
        { "name": "claude", "about": "Claude", "dialect": "acp", "installed": false, "install": "npm install -g cla\u{202e}ude" },
        { "name": "demo", "about": "the demo agent", "dialect": "acp", "installed": true, "runtime_id": "demo" },
    ] })
}

fn folders() -> Value {
    json!({ "under": "/home/you", "folders": [], "more": false, "recent": [
        { "name": "project", "path": "/home/you/project", "git": true, "used_at": at(NOON) },
        { "name": "other", "path": "/srv/other", "git": false, "used_at": at(NOON) } ] })
}

fn runtimes() -> Value {
    json!({ "runtimes": [
        runtime("demo", "ready", json!({ "agent": "demo 1.0", "capabilities": ["list", "load"] })),
        runtime("claude-terminal", "ready", json!({ "connect": { "endpoint": "link:claude" } })),
    ] })
}

fn form(width: u16, height: u16, runtimes: &Value) -> Stage {
    let mut stage = Stage::new(width, height, &sessions(), &[]);
    stage.msg(done(CallTag::Page(TuiPage::Runtimes, String::new()), 200, runtimes.clone()));
    stage.keys(&["N"]);
    stage.msg(done(CallTag::Form(FormCall::Agents), 200, agents()));
    stage.msg(done(CallTag::Form(FormCall::Recent), 200, folders()));
    stage.effects.clear();
    stage
}

/// The starts and prompts that were sent: path, body and key.
fn started(stage: &mut Stage) -> Vec<(String, Value, String)> {
    let effects = std::mem::take(&mut stage.effects).into_iter();
    let all = effects.filter_map(|effect| match effect {
        Effect::Start { request, key, .. } => {
            let body = body_of(&request);
            Some((request.path, body, key))
        }
        _ => None,
    });
    all.collect()
}

fn focus(stage: &Stage) -> FormField {
    stage.app.pages.new_session.form.as_ref().unwrap().focus
}

#[test]
fn new_session_of_a_running_agent_needs_only_its_prompt() {
    let mut stage = form(80, 24, &runtimes());
    stage.type_text("say hello");
    stage.keys(&["Enter"]);
    let request = json!({ "runtime_id": "demo", "cwd": "/home/you/project" });
    assert_eq!(started(&mut stage), [("/v1/sessions".to_owned(), request, "new-1".to_owned())]);
    assert!(stage.screen().contains("Opening the session …"), "{}", stage.screen());
    // Keys do nothing meanwhile.
    stage.type_text("more");
    stage.msg(done(CallTag::Form(FormCall::Start(1)), 201, session("s_9", "", "idle", 0)));
    let prompt = ("/v1/sessions/s_9/prompt".to_owned(), json!({ "text": "say hello" }), "new-1-prompt".to_owned());
    assert_eq!(started(&mut stage), [prompt]);
    stage.msg(done(CallTag::Form(FormCall::Prompt(1)), 202, json!({ "run_id": "r_1", "queued": false, "ahead": 0 })));
    assert!(stage.app.pages.new_session.form.is_none() && stage.app.shared.page == TuiPage::Session);
    assert!(stage.effects.contains(&Effect::Follow(Some("s_9".into()))), "{:?}", stage.effects);
    assert_eq!(stage.app.pages.session.composer.lines().join(""), "", "it was sent");
}

#[test]
fn new_session_starts_an_installed_agent_with_its_settings() {
    let mut stage = form(80, 24, &json!({ "runtimes": [] }));
    assert_eq!(focus(&stage), FormField::Agent, "nothing runs: the agent is chosen first");
    let reply = snapshot_of(
        &json!({ "latest": { "current_mode_update": { "currentModeId": "ask", "_meta": { "modes": { "availableModes": [
        { "id": "ask", "name": "Ask" }, { "id": "auto", "name": "Auto" } ] } } } } }),
    );
    // Its newest session tells its settings, also if it does not run now.
    stage.keys(&["Down"]);
    stage.msg(done(CallTag::Form(FormCall::Offers("s_1".into())), 200, reply.clone()));
    assert!(stage.screen().contains("Mode    as the agent has it"), "{}", stage.screen());
    stage.keys(&["Up"]);
    assert!(!stage.screen().contains("Mode"), "those of another agent: {}", stage.screen());
    let mut stage = form(80, 24, &runtimes());
    let newest = CallTag::Form(FormCall::Offers("s_1".into()));
    stage.msg(done(newest, 200, reply));
    assert!(stage.screen().contains("Mode    as the agent has it"), "{}", stage.screen());
    stage.type_text("go");
    stage.keys(&["S-Tab", "S-Tab"]);
    assert_eq!(focus(&stage), FormField::Mode);
    stage.type_text("aut");
    stage.keys(&["Enter", "Enter", "Enter"]);
    assert_eq!(started(&mut stage).len(), 1);
    stage.msg(done(CallTag::Form(FormCall::Start(1)), 201, session("s_9", "", "idle", 0)));
    let asked = stage.effects.iter().find_map(|effect| match effect {
        Effect::Set { tag: CallTag::Form(_), session, call } => Some({
            let (method, params) = call.request(session);
            (method, json!(params))
        }),
        _ => None,
    });
    assert_eq!(asked, Some(("session.set_mode", json!({ "modeId": "auto", "session_id": "s_9" }))));
    assert!(started(&mut stage).is_empty(), "the prompt waits for the mode");
    // In another mode than the chosen one, it is not sent.
    stage.msg(Msg::Set(CallTag::Form(FormCall::Setting(1)), Err("no such mode".into())));
    assert!(started(&mut stage).is_empty());
    assert_eq!(
        (stage.app.shared.page, stage.app.pages.session.composer.lines().join("")),
        (TuiPage::Session, "go".to_owned())
    );
    assert!(stage.screen().contains("the prompt was not sent: no such mode"), "{}", stage.screen());
}

#[test]
fn new_session_works_in_a_worktree_where_there_is_a_repository() {
    let mut stage = form(80, 24, &runtimes());
    assert!(stage.screen().contains("Branch  without a worktree"), "{}", stage.screen());
    stage.type_text("go");
    stage.keys(&["Tab"]);
    assert_eq!(focus(&stage), FormField::Branch);
    assert!(stage.screen().contains("the new branch of a git worktree"), "{}", stage.screen());
    stage.type_text("fix/parser");
    stage.keys(&["Enter"]);
    let request = json!({ "runtime_id": "demo", "cwd": "/home/you/project", "worktree": { "branch": "fix/parser" } });
    assert_eq!(started(&mut stage)[0].1, request);
    // A branch that is refused is said, and stays to be changed.
    let refused = json!({ "code": "worktree_exists", "detail": "there is a branch fix/parser already" });
    stage.msg(done(CallTag::Form(FormCall::Start(1)), 409, refused));
    let screen = stage.screen();
    assert!(
        screen.contains("there is a branch fix/parser already") && screen.contains("Branch  fix/parser"),
        "{screen}"
    );
    // Outside of a repository it is not offered, and not sent.
    stage.keys(&["S-Tab", "S-Tab", "S-Tab"]);
    assert_eq!(focus(&stage), FormField::Folder);
    stage.keys(&["Down", "Down", "Enter"]);
    assert!(!stage.screen().contains("Branch"), "{}", stage.screen());
    stage.keys(&["Enter", "Enter", "Enter"]);
    assert_eq!(started(&mut stage)[0].1, json!({ "runtime_id": "demo", "cwd": "/srv/other" }));
    // Nor to a client that may not see the machine's folders.
    let mut stage = form(80, 24, &runtimes());
    stage.msg(done(
        CallTag::Form(FormCall::Recent),
        200,
        json!({ "folders": [], "more": false, "recent": folders()["recent"] }),
    ));
    assert!(!stage.screen().contains("Branch"), "{}", stage.screen());
}

#[test]
fn new_session_sets_the_model_before_the_prompt() {
    let mut stage = form(80, 24, &runtimes());
    let options = snapshot_of(
        &json!({ "latest": { "config_option_update": { "configOptions": [{ "id": "model", "name": "Model", "category": "model",
        "currentValue": "small", "options": [{ "value": "small", "name": "Small" }, { "value": "large", "name": "Large" }] }] } } }),
    );
    stage.msg(done(CallTag::Form(FormCall::Offers("s_1".into())), 200, options));
    stage.type_text("go");
    stage.keys(&["S-Tab", "S-Tab"]);
    assert_eq!(focus(&stage), FormField::Model);
    stage.type_text("larg");
    assert!(stage.screen().contains("Model   Large"), "{}", stage.screen());
    stage.keys(&["Enter", "Enter", "Enter"]);
    assert_eq!(started(&mut stage).len(), 1);
    stage.msg(done(CallTag::Form(FormCall::Start(1)), 201, session("s_9", "", "idle", 0)));
    let asked = stage.effects.iter().find_map(|effect| match effect {
        Effect::Set { tag: CallTag::Form(_), session, call } => Some({
            let (method, params) = call.request(session);
            (method, json!(params))
        }),
        _ => None,
    });
    assert_eq!(asked, Some(("model.set", json!({ "name": "large", "session_id": "s_9" }))));
    assert!(started(&mut stage).is_empty(), "the prompt waits for the model");
    stage.msg(Msg::Set(CallTag::Form(FormCall::Setting(1)), Ok(())));
    assert_eq!(started(&mut stage)[0].1, json!({ "text": "go" }));
}

#[test]
fn new_session_that_fails_says_why_and_keeps_what_was_typed() {
    for (width, height) in [(40, 12), (80, 24), (200, 50)] {
        let mut stage = form(width, height, &json!({ "runtimes": [] }));
        stage.keys(&["Enter", "Enter"]);
        stage.type_text("A title");
        stage.keys(&["Enter"]);
        stage.type_text("do it");
        stage.keys(&["Enter"]);
        let request = json!({ "start": { "preset": "gemini" }, "cwd": "/home/you/project", "title": "A title" });
        let sent = ("/v1/sessions".to_owned(), request.clone(), "new-1".to_owned());
        assert_eq!(started(&mut stage), [sent]);
        let why = json!({ "code": "runtime_not_started", "detail": "gemini did not start: it ended", "stderr": "one\nno key\u{1b}[2J" });
        stage.msg(done(CallTag::Form(FormCall::Start(1)), 502, why));
        let screen = stage.screen();
        for text in ["That did not work", "no key\\u{1b}[2J", "do it"] {
            assert!(screen.contains(text), "no {text:?} at {width}x{height}:\n{screen}");
        }
        // The next is another attempt; without an answer, the same one is repeated.
        stage.keys(&["Enter"]);
        assert_eq!(started(&mut stage)[0].2, "new-2");
        stage.msg(done(CallTag::Form(FormCall::Start(1)), 201, session("s_8", "", "idle", 0)));
        assert!(stage.app.pages.new_session.form.is_some(), "the reply to another attempt");
        stage.msg(lost(CallTag::Form(FormCall::Start(2)), "lost"));
        stage.keys(&["Enter"]);
        assert_eq!(started(&mut stage), [("/v1/sessions".to_owned(), request, "new-2".to_owned())]);
        // Esc gives it up, and the second one closes the form, which keeps the prompt.
        stage.keys(&["Esc"]);
        assert!(stage.effects.contains(&Effect::CancelStart) && stage.screen().contains("Nothing was left behind"));
        stage.keys(&["Esc"]);
        assert!(stage.app.pages.new_session.form.is_none() && !stage.app.shared.quit);
        stage.keys(&["N"]);
        assert!(stage.screen().contains("do it"), "{}", stage.screen());
    }
}

#[test]
fn new_session_completes_the_folder_as_far_as_it_is_certain() {
    let mut stage = form(80, 24, &runtimes());
    stage.keys(&["S-Tab", "S-Tab"]);
    assert_eq!(focus(&stage), FormField::Folder);
    assert!(stage.screen().contains("/srv/other"), "those that were used: {}", stage.screen());
    stage.type_text("/pa");
    stage.advance(200);
    let asked = |stage: &mut Stage| {
        let effects = std::mem::take(&mut stage.effects);
        let mut all = effects.into_iter().filter_map(|effect| match effect {
            Effect::Call { tag: CallTag::Form(FormCall::Folders(n)), request, .. } => Some((n, request.path)),
            _ => None,
        });
        all.next_back()
    };
    let (n, path) = asked(&mut stage).unwrap();
    assert_eq!(path, "/v1/folders?under=%2Fhome%2Fyou%2Fproject%2F&prefix=pa");
    let found = |names: &[&str]| {
        let one = |name: &&str| json!({ "name": name, "path": format!("/home/you/project/{name}"), "git": false, "link": false });
        json!({ "folders": names.iter().map(one).collect::<Vec<_>>(), "more": false, "recent": [] })
    };
    stage.msg(done(CallTag::Form(FormCall::Folders(n - 1)), 200, found(&["stale"])));
    assert!(!stage.screen().contains("stale"));
    stage.msg(done(CallTag::Form(FormCall::Folders(n)), 200, found(&["packages", "packs"])));
    stage.keys(&["Tab"]);
    assert_eq!(stage.app.pages.new_session.form.as_ref().unwrap().folder_text(), "/home/you/project/pack");
    // A name that is typed and completed at once waits for the answer.
    stage.type_text("s");
    stage.keys(&["Tab"]);
    let (n, path) = asked(&mut stage).unwrap();
    assert!(path.ends_with("prefix=packs"), "{path}");
    stage.msg(done(CallTag::Form(FormCall::Folders(n)), 200, found(&["packs"])));
    assert_eq!(stage.app.pages.new_session.form.as_ref().unwrap().folder_text(), "/home/you/project/packs/");
    stage.keys(&["Enter", "Enter", "Enter"]);
    assert_eq!(started(&mut stage)[0].1["cwd"], "/home/you/project/packs");
}

#[test]
fn new_session_continues_an_earlier_conversation() {
    let mut stage = form(80, 24, &runtimes());
    stage.keys(&["S-Tab", "S-Tab", "S-Tab"]);
    assert_eq!(focus(&stage), FormField::Conversation);
    stage.keys(&["Right"]);
    assert!(stage.screen().contains("asking demo"), "{}", stage.screen());
    let kept = |n: usize| json!({ "native_id": format!("c{n}"), "title": format!("Talk {n}"), "cwd": "/w", "updated_at": "2026-01-02T03:04:05.000Z" });
    let mut all: Vec<Value> = (0..300).map(kept).collect();
    all[7]["session_id"] = "s_2".into();
    let past = || CallTag::Form(FormCall::Past("demo".into()));
    stage.msg(done(past(), 200, json!({ "resumable": all })));
    let screen = stage.screen();
    assert!(screen.contains("Talk 0 · c0") && screen.contains("2026-01-02 · /w"), "{screen}");
    stage.keys(&["Down"]);
    stage.type_text("talk 298");
    stage.keys(&["Enter"]);
    let open = json!({ "runtime_id": "demo", "native_id": "c298", "cwd": "/w" });
    assert_eq!(started(&mut stage)[0].1, open);
    stage.keys(&["Esc"]);
    // One that is open is switched to.
    for _ in 0..8 {
        stage.msg(Msg::Key(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE)));
    }
    stage.type_text("c7");
    stage.keys(&["Enter"]);
    assert!(stage.effects.contains(&Effect::Follow(Some("s_2".into()))), "{:?}", stage.effects);
    // By the palette, for the only agent; and what cannot be listed says why.
    stage.msg(Msg::Event(ClientEvent::RuntimeRemoved("claude-terminal".parse().unwrap())));
    stage.keys(&["C-k"]);
    stage.type_text("resume");
    stage.keys(&["Enter"]);
    stage.msg(done(past(), 409, json!({ "detail": "it lists none" })));
    assert!(stage.screen().contains("it lists none"), "{}", stage.screen());
}

#[test]
fn new_session_starts_another_program_by_its_command_line() {
    let mut stage = form(80, 24, &runtimes());
    stage.keys(&["S-Tab", "S-Tab", "S-Tab", "S-Tab", "j", "j"]);
    assert!(stage.screen().contains("another program"), "{}", stage.screen());
    stage.keys(&["Enter"]);
    assert_eq!(focus(&stage), FormField::Command);
    stage.keys(&["Enter", "Enter", "Enter", "Enter", "Enter"]);
    assert!(stage.screen().contains("type the command line"), "{}", stage.screen());
    stage.keys(&["S-Tab", "S-Tab", "S-Tab", "S-Tab"]);
    stage.type_text("my-agent --name \"a b\"");
    stage.keys(&["Enter", "Right"]);
    assert!(stage.screen().contains("Codelia UI protocol"), "{}", stage.screen());
    stage.keys(&["Enter", "Enter", "Enter"]);
    stage.type_text("go");
    stage.keys(&["Enter"]);
    let start = json!({ "dialect": "codelia", "command": ["my-agent", "--name", "a b"] });
    assert_eq!(started(&mut stage)[0].1, json!({ "start": start, "cwd": "/home/you/project" }));
    assert!(stage.screen().contains("Starting my-agent"), "{}", stage.screen());
    // A client that may not start agents is not offered it.
    let mut stage = Stage::new(80, 24, &sessions(), &[]);
    stage.msg(done(CallTag::Page(TuiPage::Runtimes, String::new()), 200, runtimes()));
    stage.keys(&["N"]);
    stage.msg(done(CallTag::Form(FormCall::Agents), 403, json!({})));
    assert!(!stage.screen().contains("another program"), "{}", stage.screen());
}

#[test]
fn new_session_lets_a_worktree_begin_at_another_commit() {
    let mut stage = form(80, 24, &runtimes());
    assert!(!stage.screen().contains("Base"), "only with a branch");
    stage.keys(&["Tab"]);
    assert_eq!(focus(&stage), FormField::Branch);
    stage.type_text("fix/parser");
    assert!(stage.screen().contains("what is checked out"), "{}", stage.screen());
    stage.keys(&["Tab"]);
    assert_eq!(focus(&stage), FormField::Base);
    stage.type_text("v1.0");
    stage.keys(&["Enter"]);
    assert_eq!(started(&mut stage)[0].1["worktree"], json!({ "branch": "fix/parser", "base": "v1.0" }));
}

#[test]
fn new_session_starts_an_agent_to_list_its_conversations() {
    let installed_index = |stage: &mut Stage| {
        stage.keys(&["Tab", "Right"]);
        assert!(stage.screen().contains("gemini is not running. Enter starts it"), "{}", stage.screen());
        stage.keys(&["Tab", "Enter"]);
        let started = std::mem::take(&mut stage.effects).into_iter().find_map(|effect| match effect {
            Effect::Call { tag: CallTag::Form(FormCall::Wake(n)), request, .. } => Some((n, request)),
            _ => None,
        });
        let (n, request) = started.unwrap();
        assert_eq!(
            (request.path.as_str(), body_of(&request)),
            ("/v1/runtimes", json!({ "preset": "gemini", "cwd": "/home/you/project" }))
        );
        n
    };
    let event = |state: &str, can: &[&str]| {
        let more = json!({ "problem": "it ended", "stderr_tail": "no key", "capabilities": can });
        Msg::Event(ClientEvent::Runtime(serde_json::from_value(runtime("gemini", state, more)).unwrap()))
    };
    let answer = |n| done(CallTag::Form(FormCall::Wake(n)), 201, runtime("gemini", "starting", json!({})));
    let removed = |stage: &Stage| {
        let gone = |effect: &Effect| matches!(effect, Effect::Call { request, .. } if (request.method, &*request.path) == ("DELETE", "/v1/runtimes/gemini"));
        stage.effects.iter().filter(|effect| gone(effect)).count()
    };
    let mut stage = form(80, 24, &json!({ "runtimes": [] }));
    let n = installed_index(&mut stage);
    stage.msg(answer(n));
    stage.msg(event("starting", &[]));
    assert!(stage.screen().contains("Starting gemini"), "{}", stage.screen());
    stage.msg(event("ready", &["list", "resume"]));
    let asked = |effect: &Effect| matches!(effect, Effect::Call { tag: CallTag::Form(FormCall::Past(id)), .. } if id == "gemini");
    assert!(stage.effects.iter().any(asked), "{:?}", stage.effects);
    assert_eq!((focus(&stage), removed(&stage)), (FormField::Earlier, 0));
    // One that ends, and one that is given up, are removed; one that lists none is kept.
    let mut stage = form(80, 24, &json!({ "runtimes": [] }));
    let n = installed_index(&mut stage);
    stage.msg(answer(n));
    stage.msg(event("exited", &[]));
    assert!(stage.screen().contains("gemini did not start: it ended") && stage.screen().contains("no key"));
    assert_eq!(removed(&stage), 1);
    let mut stage = form(80, 24, &json!({ "runtimes": [] }));
    let n = installed_index(&mut stage);
    stage.keys(&["Esc"]);
    assert_eq!(removed(&stage), 0, "it is not known yet");
    stage.msg(answer(n));
    assert_eq!(removed(&stage), 1);
    let mut stage = form(80, 24, &json!({ "runtimes": [] }));
    let n = installed_index(&mut stage);
    stage.msg(answer(n));
    stage.msg(event("ready", &[]));
    assert!(stage.screen().contains("does not list its earlier"), "{}", stage.screen());
    assert_eq!((focus(&stage), removed(&stage)), (FormField::Prompt, 0));
}

#[test]
fn new_session_is_drawn_at_every_size() {
    for (width, height) in [(40, 12), (80, 24), (200, 50)] {
        let mut stage = form(width, height, &runtimes());
        insta::assert_snapshot!(format!("new_{width}x{height}"), stage.screen());
        stage.keys(&["S-Tab", "S-Tab"]);
        insta::assert_snapshot!(format!("new_folder_{width}x{height}"), stage.screen());
        stage.keys(&["S-Tab", "S-Tab", "Down", "Down", "Down"]);
        let screen = stage.screen();
        assert!(screen.contains("claude") && screen.contains("not installed"), "{screen}");
        assert!(!screen.contains("claude-terminal"), "its sessions begin in terminals: {screen}");
        stage.keys(&["Enter"]);
        let copied = stage.effects.iter().any(|effect| matches!(effect, Effect::Copy(text) if text.starts_with("npm")));
        assert!(copied, "{:?}", stage.effects);
    }
}

#[test]
fn new_session_is_the_first_screen_without_agents_and_sessions() {
    let start = |sessions: &[Value], runtimes: &Value| {
        let app = App::new(Theme::new(Depth::True, false), (80, 24), NOON, BTreeMap::new());
        let mut stage = Stage { app, now: NOON, place: 1, effects: Vec::new() };
        stage.app.start(None);
        stage.msg(Msg::Event(hello_of(sessions, &[])));
        stage.msg(Msg::Event(ClientEvent::Live));
        stage.msg(done(CallTag::Page(TuiPage::Runtimes, String::new()), 200, runtimes.clone()));
        stage
    };
    let none = json!({ "runtimes": [] });
    let mut first = start(&[], &none);
    assert!(first.screen().contains("Start your first session"), "{}", first.screen());
    // Who may not start agents is told so; Esc shows the list, and it does not come again.
    let refused = json!({ "detail": "forbidden" });
    first.msg(done(CallTag::Form(FormCall::Agents), 403, refused));
    assert!(first.screen().contains("only an administrator"), "{}", first.screen());
    first.keys(&["Esc"]);
    first.msg(done(CallTag::Page(TuiPage::Runtimes, String::new()), 200, none.clone()));
    assert!(first.app.pages.new_session.form.is_none());
    for stage in [start(&sessions(), &none), start(&[], &runtimes())] {
        assert!(stage.app.pages.new_session.form.is_none());
    }
    // In the inbox, where no card takes the key.
    let mut stage = start(&sessions(), &runtimes());
    stage.keys(&["1", "N"]);
    assert!(stage.app.pages.new_session.form.is_some());
}
