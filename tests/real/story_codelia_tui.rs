//! Codelia's terminal UI on sessions of the gateway, in a real terminal (tmux): the messages of its player, and its screen.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))] // the only terminal UI that is pinned
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::agents::{self, FakeModel, clients_dir};
use common::cast::Player;
use common::gateway::{Gateway, PATIENCE, exe, held_runtime, said};
use common::terminal::Terminal;
use serde_json::{Value, json};

const KIND: &str = "codelia-tui";

/// The terminal UI in a terminal, directly on the bridge.
struct Screen {
    terminal: Terminal,
}

impl Screen {
    /// `args` are the bridge's, `tui` the terminal UI's own.
    fn open(gateway: &Gateway, args: &str, tui: &[&str], cwd: &Path) -> Self {
        let program = clients_dir().join("node_modules/@codelia/tui-linux-x64/bin/codelia-tui").display().to_string();
        let (args, home) = (format!("bridge codelia {args}"), gateway.home.display().to_string());
        let env = [("CODELIA_RUNTIME_CMD", exe()), ("CODELIA_RUNTIME_ARGS", &args), ("PLEXUS_HOME", &home)];
        Self { terminal: Terminal::open(Some(cwd), (100, 40), &env, &[&[program.as_str()], tui].concat()) }
    }

    fn keys(&self, keys: &[&str]) {
        self.terminal.keys(keys);
    }

    async fn until(&self, words: &str) -> String {
        self.terminal.wrote(words, 1).await
    }

    async fn until_times(&self, words: &str, times: usize) -> String {
        self.terminal.wrote(words, times).await
    }

    /// Closes the panel with this title, and waits: a key directly after Esc would be read as Alt.
    async fn close(&self, title: &str) {
        self.keys(&["Escape"]);
        self.terminal.until(&format!("the end of {title:?}"), Terminal::text, |text| !text.contains(title)).await;
    }

    async fn type_in(&self, text: &str) {
        self.terminal.words(text);
        self.until(text).await;
        self.keys(&["Enter"]);
    }

    fn work(&self) -> &Path {
        self.terminal.dir.path()
    }
}

/// The agent's whole text in the session.
async fn all_said(gateway: &Gateway, session: &str) -> String {
    said(&gateway.events(session).await, None)
}

#[tokio::test]
async fn codelia_tui_prompts_allows_denies_and_shows_every_byte() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut player = Player::enter(KIND, &gateway, &session).await;
    player.prompt("stream 40 1 ;; think ;; plan ;; ask ;; diff").await;
    let asked = player.until("asked").await;
    assert_eq!(asked["asked"], "touch demo.txt");
    player.answer(true).await;
    let resolved = player.until("resolved").await;
    assert_eq!((&resolved["resolved"], &resolved["allow"]), (&asked["id"], &json!(true)));
    assert_eq!(player.until("ended").await["ended"], "completed");
    player.prompt("ask2 ;; echo after").await;
    // Both are open; the second is shown once the first has its answer.
    player.until("asked").await;
    player.answer(false).await;
    player.until("asked").await;
    assert_eq!(player.until("resolved").await["allow"], false);
    player.answer(true).await;
    assert_eq!(player.until("resolved").await["allow"], true);
    player.until("ended").await;
    let text = player.text();
    assert!(
        text.contains("rejected (reject_once): touch demo-1.txt") && text.contains("allowed (allow_once)"),
        "{text}"
    );
    assert_eq!(text, all_said(&gateway, &session).await);
    player.quit().await;
}

#[tokio::test]
async fn codelia_tui_shows_other_clients_and_ignores_a_late_key() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut player = Player::enter(KIND, &gateway, &session).await;
    let run = gateway.prompt(&session, "echo before ;; ask ;; ask rm -rf build").await;
    assert_eq!(player.until("user").await["user"], "echo before ;; ask ;; ask rm -rf build");
    let first = player.until("asked").await;
    let request = gateway.open_request(&session).await;
    assert_eq!(request["request_id"], first["id"]);
    assert_eq!(gateway.choose(&request, "allow_once").await.0, 200);
    let resolved = player.until("resolved").await;
    assert_eq!((&resolved["resolved"], &resolved["allow"]), (&first["id"], &json!(true)));
    assert!(resolved["by"].is_string(), "who won is told: {resolved}");
    // The outcome replaces the request; the next request waits behind it.
    let deadline = Instant::now() + PATIENCE;
    let second = loop {
        let open = gateway.open_requests(&session, 1).await;
        if open[0]["request_id"] != first["id"] {
            break open[0].clone();
        }
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    player.answer(false).await;
    assert_eq!(player.until("asked").await["id"], second["request_id"], "asked once the word was read");
    assert_eq!(player.until("resolved").await["allow"], false);
    player.until("ended").await;
    let events = gateway.until_ended(&session, &run).await;
    assert!(said(&events, Some(&run)).contains("rejected (reject_once): rm -rf build"));
    assert_eq!(player.text(), all_said(&gateway, &session).await);
}

#[tokio::test]
async fn codelia_tui_cancels_a_run_with_an_open_request() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut player = Player::enter(KIND, &gateway, &session).await;
    player.prompt("hang").await;
    player.cancel().await;
    assert_eq!(player.until("ended").await["ended"], "cancelled");
    player.prompt("ask").await;
    player.until("asked").await;
    player.cancel().await;
    assert_eq!(player.until("resolved").await["allow"], Value::Null);
    assert_eq!(player.until("ended").await["ended"], "cancelled");
    player.prompt("echo still here").await;
    assert_eq!(player.until("ended").await["ended"], "completed");
    assert!(player.text().ends_with("still here"));
}

#[tokio::test]
async fn codelia_tui_resumes_by_cursor_without_gap_or_repeat() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    gateway.until_ended(&session, &gateway.prompt(&session, "echo the past").await).await;
    let mut player = Player::enter(KIND, &gateway, &session).await;
    assert_eq!(player.text(), "the past", "a late one sees what was said before");
    player.prompt("stream 300 5 ;; line 40000 ;; ask").await;
    player.cut().await;
    let request = gateway.open_request(&session).await;
    player.resume().await;
    let asked = player.saw.iter().filter(|(_, saw)| saw["id"] == request["request_id"]).count();
    assert_eq!(asked, 1, "while it was away, and asked when it is back");
    player.cut().await;
    assert_eq!(gateway.choose(&request, "allow_once").await.0, 200);
    let ended = |event: &Value| event["kind"] == "run_ended" && event["run_id"] == request["run_id"];
    let deadline = Instant::now() + PATIENCE;
    while !gateway.events(&session).await.iter().any(ended) {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    player.resume().await;
    let count = |member: &str| player.saw.iter().filter(|(_, saw)| saw.get(member).is_some()).count();
    assert_eq!((count("resolved"), count("ended")), (1, 2), "what ended while it was away is told, too");
    assert_eq!(player.text(), all_said(&gateway, &session).await);
}

#[tokio::test]
async fn codelia_tui_survives_a_killed_gateway() {
    let mut gateway = Gateway::start(&held_runtime("demo", &[exe(), "agent", "demo"], "")).await;
    let session = gateway.session("demo").await;
    let mut player = Player::enter(KIND, &gateway, &session).await;
    player.prompt("echo one ;; ask ;; echo two").await;
    let asked = player.until("asked").await;
    gateway.kill();
    gateway.again().await;
    player.until("ready").await;
    player.answer(true).await;
    assert_eq!(player.until("resolved").await["resolved"], asked["id"]);
    player.until("ended").await;
    player.prompt("echo three").await;
    player.until("ended").await;
    assert_eq!(player.text(), all_said(&gateway, &session).await);
    player.quit().await;
    common::gateway::end_runtimes(&gateway.home);
}

#[tokio::test]
async fn codelia_tui_first_prompt_opens_a_session_and_list_resumes() {
    let gateway = Gateway::demo().await;
    let other = gateway.session("demo").await;
    gateway.until_ended(&other, &gateway.prompt(&other, "echo a word from the past").await).await;
    let work = tempfile::tempdir().unwrap();
    let screen = Screen::open(&gateway, "", &["--resume"], &work.path().canonicalize().unwrap());
    screen.until("No saved sessions found in the current workspace").await;
    screen.keys(&["a"]);
    screen.until("demo: echo a word from the past").await;
    screen.keys(&["Enter"]);
    let text = screen.until("History restored").await;
    assert!(text.contains("> echo a word from the past") && text.contains("a word from the past"), "{text}");
    screen.type_in("echo and one more").await;
    screen.until("Run duration").await;
    assert!(all_said(&gateway, &other).await.ends_with("and one more"));
    // Another terminal without a session: its prompt opens one in its own folder.
    let fresh = Screen::open(&gateway, "", &[], &screen.work().canonicalize().unwrap());
    fresh.until("idle").await;
    fresh.type_in("echo something new").await;
    fresh.until("Run duration").await;
    let (_, listed) = gateway.get("/v1/sessions").await;
    let new = listed["sessions"].as_array().unwrap().iter().find(|session| session["session_id"] != *other).unwrap();
    assert_eq!(new["cwd"], json!(screen.work().canonicalize().unwrap()));
    assert_eq!(all_said(&gateway, new["session_id"].as_str().unwrap()).await, "something new");
    fresh.keys(&["C-c"]);
    let (code, agents) = gateway.get("/v1/runtimes").await;
    assert_eq!((code, &agents["runtimes"][0]["state"]), (200, &json!("ready")), "the agent stays");
}

#[tokio::test]
async fn codelia_tui_drives_a_real_agent_of_another_dialect() {
    let (install, model) = tokio::task::spawn_blocking(|| (agents::install_dir(), FakeModel::start())).await.unwrap();
    let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut setup = agents::codex_app(&install, home.path(), model.port());
    // A model known to Codex, for which it has the tool that edits files.
    setup.command.extend(["-c", "model=\"gpt-5.5\""].map(str::to_owned));
    let env: Vec<String> = setup.env.iter().map(|(name, value)| format!("{name} = {}", json!(value))).collect();
    let gateway = Gateway::start(&format!(
        "[[runtime]]\nid = \"codex\"\ndialect = \"codex\"\ncommand = {}\ncwd = {}\noutlive = false\nenv = {{ {} }}\n",
        json!(setup.command),
        json!(work.path()),
        env.join(", ")
    ))
    .await;
    let screen = Screen::open(&gateway, "--runtime codex", &[], &work.path().canonicalize().unwrap());
    screen.until("idle").await;
    screen.type_in("FAKE:write yes.txt hello there").await;
    // The edit is shown above the request.
    screen.until("Edit: yes.txt").await;
    screen.until("+ hello there").await;
    screen.until("> 1. Allow").await;
    screen.keys(&["y"]);
    screen.until("Run duration").await;
    assert!(work.path().join("yes.txt").exists());
    let file = work.path().join("no");
    screen.type_in(&format!("FAKE:shell touch {}", file.display())).await;
    screen.until("Bash: /bin/bash -c 'touch").await;
    screen.until("Command: /bin/bash -c 'touch").await;
    screen.until("Decline").await;
    screen.keys(&["n"]);
    // This agent ends its run after a denial.
    screen.until("● cancelled").await;
    assert!(!file.exists());
    screen.type_in("/model").await;
    screen.until("Select provider").await;
    screen.keys(&["Enter"]);
    screen.until("current: gpt-5.5").await;
    screen.close("current: gpt-5.5").await;
    screen.type_in("/model-session gpt-5.4").await;
    screen.until("Model set for this session").await;
}

struct Codelia {
    gateway: Gateway,
    session: String,
    work: tempfile::TempDir,
}

impl Codelia {
    async fn new() -> Self {
        let work = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/codelia_runtime.mjs");
        let config = format!(
            "[[runtime]]\nid = \"codelia\"\ndialect = \"codelia\"\ncommand = [\"node\", {}]\ncwd = {}\noutlive = false\n\
             env = {{ CODELIA_LOG = {} }}\n",
            json!(program),
            json!(work.path()),
            json!(work.path().join("log")),
        );
        let gateway = Gateway::start(&config).await;
        let session = gateway.session("codelia").await;
        Self { gateway, session, work }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }
}

#[tokio::test]
async fn codelia_tui_drives_a_codelia_runtime() {
    let stage = Codelia::new().await;
    let screen = Screen::open(&stage.gateway, &format!("--session {}", stage.session), &[], stage.work.path());
    screen.until("none/one").await;
    let (yes, no) = (stage.file("yes"), stage.file("no"));
    screen.type_in(&format!("pick ;; prompt ;; run touch {}", yes.display())).await;
    screen.until("Approval mode").await;
    screen.keys(&["Down", "Enter"]);
    screen.until("what?").await;
    screen.keys(&["-l", "blue"]);
    screen.until("blue").await;
    screen.keys(&["Enter"]);
    screen.until("value \"blue\"").await;
    // The screen shows the command itself, not the runtime's description.
    let text = screen.until("Tab to add reason").await;
    assert!(text.contains("Command: touch"), "{text}");
    screen.keys(&["y"]);
    screen.until("Run duration").await;
    assert!(yes.exists());
    screen.type_in(&format!("run touch {} ;; say on", no.display())).await;
    screen.until("/no").await;
    screen.until("2. ").await;
    screen.keys(&["Tab"]);
    screen.until("Reason input active").await;
    screen.keys(&["-l", "not today"]);
    screen.until("not today").await;
    screen.keys(&["Enter"]);
    screen.until("because not today").await;
    screen.until_times("Run duration", 2).await;
    assert!(!no.exists());
    screen.type_in("/model-session two").await;
    screen.until("Model set for this session: none/two").await;
    // The list of providers is the TUI's own; for each of them the agent's models are listed.
    screen.type_in("/model").await;
    screen.until("Select provider").await;
    screen.keys(&["Enter"]);
    screen.until("Models (none) current: one").await;
    screen.close("Models (none)").await;
    // Capabilities that the runtime does not announce in `initialize` are not used.
    screen.type_in("/skills").await;
    screen.until("Skills list unavailable").await;
}

#[tokio::test]
async fn codelia_player_receives_a_codelia_runtime_as_others_do() {
    let stage = Codelia::new().await;
    let mut player = Player::enter(KIND, &stage.gateway, &stage.session).await;
    player.prompt("say one ;; run true ;; say two").await;
    let asked = player.until("asked").await;
    player.answer(true).await;
    assert_eq!(player.until("resolved").await["resolved"], asked["id"]);
    assert_eq!(player.until("ended").await["ended"], "completed");
    player.prompt("pick ;; prompt").await;
    for _ in 0..2 {
        player.until("asked").await;
        player.answer(true).await;
        player.until("resolved").await;
    }
    player.until("ended").await;
    player.prompt("hang").await;
    player.cancel().await;
    assert_eq!(player.until("ended").await["ended"], "cancelled");
    assert_eq!(player.text(), all_said(&stage.gateway, &stage.session).await);
    let late = Player::enter(KIND, &stage.gateway, &stage.session).await;
    assert_eq!(late.text(), player.text());
}

/// The bytes of the event of a message.
fn event_of(message: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Message {
        params: Params,
    }
    #[derive(serde::Deserialize)]
    struct Params {
        event: Box<serde_json::value::RawValue>,
    }
    let message: Message = serde_json::from_str(message).unwrap_or_else(|error| panic!("{error}: {message}"));
    message.params.event.get().to_owned()
}

#[tokio::test]
async fn codelia_runtime_events_pass_byte_for_byte() {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    let stage = Codelia::new().await;
    let mut bridge = tokio::process::Command::new(exe())
        .args(["bridge", "codelia", "--session", &stage.session])
        .env("PLEXUS_HOME", &stage.gateway.home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = bridge.stdin.take().unwrap();
    let mut lines = BufReader::new(bridge.stdout.take().unwrap()).lines();
    let hello = json!({ "jsonrpc": "2.0", "id": "1", "method": "initialize", "params": { "protocol_version": "0", "ui_capabilities": {} } });
    let start = json!({ "jsonrpc": "2.0", "id": "2", "method": "run.start", "params": { "input": { "type": "text", "text": "say  a\u{e9}\\ ;; run true ;; say b" } } });
    stdin.write_all(format!("{hello}\n{start}\n").as_bytes()).await.unwrap();
    let request = stage.gateway.open_request(&stage.session).await;
    assert_eq!(stage.gateway.choose(&request, "allow").await.0, 200);
    let mut passed = Vec::new();
    loop {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        if line.contains("\"run.status\"") && line.contains("completed") {
            break;
        }
        let own = line.contains("\"type\":\"plexus.") || line.contains("\"tool\":\"plexus\"");
        if line.contains("\"agent.event\"") && !own {
            passed.push(event_of(&line));
        }
    }
    let mut ws = stage.gateway.ws().await;
    let attach = json!({ "session_id": stage.session, "projection": "native" });
    ws.send(&json!({ "jsonrpc": "2.0", "id": 9, "method": "session.attach", "params": attach })).await;
    let mut native = Vec::new();
    loop {
        let text = ws.text().await.unwrap();
        if let Some((_, own)) = text.split_once("\"native\":{\"jsonrpc\":\"2.0\",\"method\":\"agent.event\"") {
            native.push(event_of(&format!("{{{}", own.trim_start_matches(',').strip_suffix("}}").unwrap())));
        }
        if text.contains("\"kind\":\"run_ended\"") {
            break;
        }
    }
    assert_eq!(native.len(), 6, "{native:?}");
    assert_eq!(passed, native);
    // The bridge goes with its terminal UI; the runtime does not.
    drop(stdin);
    assert!(tokio::time::timeout(PATIENCE, bridge.wait()).await.unwrap().unwrap().success());
    assert_eq!(stage.gateway.get("/v1/runtimes").await.1["runtimes"][0]["state"], "ready");
}
