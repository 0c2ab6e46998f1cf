//! Claude Code in a terminal of its own (tmux), linked: what its person does there, and what people do from elsewhere.
#![cfg(target_os = "linux")] // the pinned Claude Code
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::agents::{self, FakeModel};
use common::browser::Browser;
use common::gateway::{Gateway, PATIENCE, exe, held_runtime, said};
use common::moments::rounds;
use common::terminal::Terminal;
use serde_json::{Value, json};

/// A key that Claude Code takes without asking; it remembers the last 20 characters of those it was told to use.
const KEY: &str = "sk-ant-fake-0123456789abcdef";

/// Claude Code in a terminal, linked.
pub(crate) struct Claude {
    pub(crate) terminal: Terminal,
    home: tempfile::TempDir,
    work: tempfile::TempDir,
}

/// Pictures of the request on a phone, and of the terminal, in the folder that `PLEXUS_SHOTS` names.
async fn pictures(gateway: &Gateway, claude: &Claude, request: &Value) {
    let Some(folder) = std::env::var_os("PLEXUS_SHOTS").map(PathBuf::from) else { return };
    let (_, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve"] })).await;
    let (code, id) = (made["code"].as_str().unwrap(), request["request_id"].as_str().unwrap());
    let mut browser = Browser::start().await;
    let more = json!({ "touch": true, "scheme": "dark" });
    browser.open("phone", &format!("{}/#code={code}", gateway.url), (390, 844), more).await;
    browser.live("phone").await;
    browser.act("phone", "goto", json!({ "url": format!("{}/#/r/{id}", gateway.url) })).await;
    browser.wait("phone", "plexus-card button:has-text(\"Yes\")").await;
    // A card that has just appeared takes no answer.
    tokio::time::sleep(Duration::from_secs(2)).await;
    browser.shoot("phone", &folder.join("phone.png")).await;
    browser.act("phone", "goto", json!({ "url": format!("{}/#/sessions", gateway.url) })).await;
    browser.wait("phone", "plexus-sessions [data-session]").await;
    browser.shoot("phone", &folder.join("phone-sessions.png")).await;
    let capture = claude.home.path().join("capture");
    std::fs::write(&capture, claude.terminal.capture(&["-e"])).unwrap();
    browser.act("", "draw", json!({ "pairs": [[capture, folder.join("terminal.png")]] })).await;
}

/// The program that claude-agent-acp starts: Claude Code itself.
fn program() -> PathBuf {
    let cpu = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    agents::install_dir().join(format!("node_modules/@anthropic-ai/claude-agent-sdk-linux-{cpu}/claude"))
}

/// Runs `plexus link`, which adds its hooks to the settings of a home folder; without its default mode Claude Code asks little.
fn link(home: &Path) {
    let bin = home.join("bin");
    std::fs::create_dir_all(home.join(".claude")).unwrap();
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(program(), bin.join("claude")).unwrap();
    let settings = json!({ "permissions": { "defaultMode": "default" } });
    std::fs::write(home.join(".claude/settings.json"), settings.to_string()).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let output = std::process::Command::new(exe())
        .args(["link", "claude", "--yes"])
        .env_remove("CLAUDE_CONFIG_DIR")
        .env("HOME", home)
        .env("PATH", path)
        .env("PLEXUS_HOME", home.join("records"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

impl Claude {
    /// Starts it by hand, with no word changed; `home` is the state folder of the gateway that its hooks look for.
    async fn start(model: &FakeModel, gateway_home: &Path) -> Self {
        Self::start_by(model, gateway_home, &[]).await
    }

    /// Starts it in the same way, by another program.
    pub(crate) async fn start_by(model: &FakeModel, gateway_home: &Path, by: &[&str]) -> Self {
        let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = work.path().canonicalize().unwrap();
        let known = json!({
            "hasCompletedOnboarding": true, "theme": "dark", "hasSeenAutoDefaultNudge": true,
            "customApiKeyResponses": { "approved": [&KEY[KEY.len() - 20..]], "rejected": [] },
            "projects": { folder.to_str().unwrap(): { "hasTrustDialogAccepted": true } },
        });
        std::fs::write(home.path().join(".claude.json"), known.to_string()).unwrap();
        link(home.path());
        let url = format!("http://127.0.0.1:{}", model.port());
        let (home_dir, gateway_home) = (home.path().display().to_string(), gateway_home.display().to_string());
        let env = [
            ("HOME", home_dir.as_str()),
            ("PLEXUS_HOME", &gateway_home),
            ("ANTHROPIC_BASE_URL", &url),
            ("ANTHROPIC_API_KEY", KEY),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ];
        let program = program().display().to_string();
        let terminal = Terminal::open(Some(&folder), (100, 40), &env, &[by, &[&program]].concat());
        let claude = Self { terminal, home, work };
        claude.wrote("for shortcuts").await;
        claude
    }

    async fn wrote(&self, words: &str) {
        self.terminal.wrote(words, 1).await;
    }

    /// Types a prompt and sends it: in one write it would count as pasted.
    pub(crate) async fn prompt(&self, text: &str) {
        self.terminal.words(text);
        let end: String = text.chars().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect();
        self.wrote(&end).await;
        self.terminal.keys(&["Enter"]);
    }

    /// Waits until its own dialog is on the screen.
    async fn dialog(&self) {
        self.terminal.until("the dialog", Terminal::text, |text| text.contains("Do you want to proceed?")).await;
    }

    /// Confirms its dialog. The first key may be lost: the dialog is drawn a moment before it accepts keys.
    async fn yes(&self) {
        self.dialog().await;
        let deadline = Instant::now() + PATIENCE;
        while self.terminal.text().contains("Do you want to proceed?") {
            assert!(Instant::now() < deadline, "the dialog takes no key");
            self.terminal.keys(&["1"]);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        // A key that was one too many stands in the terminal's own line.
        self.terminal.keys(&["C-u"]);
    }

    /// Waits until its own dialog has closed.
    async fn dialog_closed(&self) {
        let closed = |text: &str| !text.contains("Do you want to proceed?");
        self.terminal.until("the end of the dialog", Terminal::text, closed).await;
    }

    fn file(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }
}

pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The session that appeared by itself.
pub(crate) async fn appeared(gateway: &Gateway, dialect: &str) -> String {
    until("the terminal's session", async || {
        let (_, body) = gateway.get("/v1/sessions").await;
        let linked = |session: &&Value| session["linked"] == true && session["dialect"] == dialect;
        let session = body["sessions"].as_array()?.iter().find(linked)?;
        Some(session["session_id"].as_str().unwrap().to_owned())
    })
    .await
}

pub(crate) async fn until_state(gateway: &Gateway, session: &str, state: &str) -> Value {
    until(&format!("the state {state}"), async || {
        let (_, body) = gateway.get(&format!("/v1/sessions/{session}")).await;
        (body["state"] == state).then_some(body)
    })
    .await
}

/// Waits until the agent has written this text; returns its complete text.
pub(crate) async fn until_said(gateway: &Gateway, session: &str, words: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let events = gateway.events(session).await;
        let text = said(&events, None);
        if text.contains(words) {
            return text;
        }
        assert!(Instant::now() < deadline, "{words:?} did not come: {events:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Asserts that the reported tokens of the model's calls are those that the model counts.
pub(crate) async fn assert_tokens_told(gateway: &Gateway, session: &str) {
    let usage = until("the tokens", async || {
        let (_, body) = gateway.get("/v1/usage?by=session").await;
        let row = body["rows"].as_array()?.iter().find(|row| row["session_id"] == session)?;
        row["usage"]["output_tokens"].as_u64().map(|_| row["usage"].clone())
    })
    .await;
    let (input, output) = (usage["input_tokens"].as_u64().unwrap(), usage["output_tokens"].as_u64().unwrap());
    assert!(output >= 10 && output.is_multiple_of(10) && input == 10 * output, "{usage}");
}

pub(crate) async fn resolved(gateway: &Gateway, request: &Value) -> Value {
    let id = request["request_id"].as_str().unwrap();
    until("the end of the request", async || {
        let (_, body) = gateway.get(&format!("/v1/requests/{id}")).await;
        (body["state"] != "open").then_some(body)
    })
    .await
}

#[tokio::test]
async fn claude_terminal_is_watched_prompted_and_answered_from_both_sides() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let claude = Claude::start(&model, &gateway.home).await;
    let session = appeared(&gateway, "claude-terminal").await;
    let (_, info) = gateway.get(&format!("/v1/sessions/{session}")).await;
    assert_eq!(info["cwd"].as_str().unwrap(), claude.work.path().canonicalize().unwrap().to_str().unwrap());

    // Text.
    claude.prompt("FAKE:text it is seen elsewhere").await;
    until_said(&gateway, &session, "it is seen elsewhere").await;
    until_state(&gateway, &session, "idle").await;

    assert_tokens_told(&gateway, &session).await;

    // A question, answered at the terminal: everybody else is told.
    claude.prompt("FAKE:shell touch one ;; text first done").await;
    let request = gateway.open_request(&session).await;
    assert!(request["display"].to_string().contains("touch one"), "{request}");
    claude.yes().await;
    let over = resolved(&gateway, &request).await;
    assert_eq!(over["receipt"]["resolved_by"]["name"], "the terminal", "{over}");
    until_said(&gateway, &session, "first done").await;
    until_state(&gateway, &session, "idle").await;
    assert!(claude.file("one").exists());

    // A question, answered elsewhere: the terminal's dialog closes.
    claude.prompt("FAKE:shell touch two ;; text second done").await;
    let request = gateway.open_request(&session).await;
    claude.wrote("touch two").await;
    pictures(&gateway, &claude, &request).await;
    let (status, receipt) = gateway.choose(&request, "allow").await;
    assert_eq!(status, 200, "{receipt}");
    until_said(&gateway, &session, "second done").await;
    claude.dialog_closed().await;
    assert!(claude.file("two").exists());

    // Denied elsewhere, with the reason.
    until_state(&gateway, &session, "idle").await;
    claude.prompt("FAKE:shell touch three ;; text third done").await;
    let request = gateway.open_request(&session).await;
    let id = request["request_id"].as_str().unwrap();
    let answer = json!({ "option_id": "deny", "reason": "not from the phone" });
    assert_eq!(gateway.post(&format!("/v1/requests/{id}/answer"), answer).await.0, 200);
    until_said(&gateway, &session, "third done").await;
    assert!(!claude.file("three").exists());
    until_state(&gateway, &session, "idle").await;

    // A prompt from elsewhere arrives, twice: the hook that takes it is there again.
    for words in ["a prompt from the page", "and another one"] {
        let run = gateway.prompt(&session, &format!("FAKE:text {words}")).await;
        let events = gateway.until_ended(&session, &run).await;
        let end = events.iter().rfind(|event| event["kind"] == "run_ended").unwrap();
        assert_eq!(end["event"]["status"], "completed", "{end}");
        assert!(said(&events, Some(&run)).contains(words));
        claude.wrote(words).await;
        until_state(&gateway, &session, "idle").await;
    }

    // It ends when the terminal does.
    drop(claude.terminal);
    let info = until_state(&gateway, &session, "exited").await;
    assert!(info["linked"].is_null() && info["restartable"].is_null(), "{info}");
    drop(claude.home);
}

#[tokio::test]
async fn claude_terminal_question_has_one_decision_when_both_answer_at_once() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let claude = Claude::start(&model, &gateway.home).await;
    let session = appeared(&gateway, "claude-terminal").await;
    for round in 0..rounds("questions that are answered at the terminal and elsewhere at once", 3, 100) {
        let file = claude.file("count");
        let before = std::fs::read_to_string(&file).unwrap_or_default().len();
        claude.prompt(&format!("FAKE:shell printf x >>{} ;; text round {round} done", file.display())).await;
        let request = gateway.open_request(&session).await;
        claude.wrote(&format!("round {round} done")).await;
        claude.dialog().await;
        let press = tokio::task::spawn_blocking({
            let keys = claude.terminal.tmux();
            move || {
                let mut keys = keys;
                keys.args(["send-keys", "-t", "it", "1"]).status().unwrap()
            }
        });
        let (answered, pressed) = tokio::join!(gateway.choose(&request, "allow"), press);
        assert!(pressed.unwrap().success());
        assert!(answered.0 == 200 || answered.0 == 409, "{answered:?}");
        until_said(&gateway, &session, &format!("round {round} done")).await;
        until_state(&gateway, &session, "idle").await;
        let after = std::fs::read_to_string(&file).unwrap_or_default().len();
        assert_eq!(after - before, 1, "the command ran once");
        // One decision. Where the terminal was first and the answer was on its way, that is told.
        let events = gateway.events(&session).await;
        let of_it = |event: &&Value| {
            event["kind"] == "request_resolved" && event["event"]["request_id"] == request["request_id"]
        };
        let by: Vec<&Value> = events.iter().filter(of_it).map(|event| &event["event"]["resolved_by"]["name"]).collect();
        assert!(
            matches!(by.as_slice(), [_]) || matches!(by.as_slice(), [_, last] if *last == "the terminal"),
            "{by:?}"
        );
        // A key that came late stands in the terminal's own line.
        claude.terminal.keys(&["C-u"]);
    }
}

#[tokio::test]
async fn claude_terminal_never_notices_what_happens_to_the_gateway() {
    let model = FakeModel::start();
    let mut gateway = Gateway::start("").await;
    let claude = Claude::start(&model, &gateway.home).await;
    let session = appeared(&gateway, "claude-terminal").await;

    // Killed while a question is open.
    claude.prompt("FAKE:shell touch one ;; text first done").await;
    let request = gateway.open_request(&session).await;
    gateway.kill();
    claude.wrote("Do you want to proceed?").await;
    gateway.again().await;
    let again = gateway.open_request(&session).await;
    let events = gateway.events(&session).await;
    assert_eq!(again["request_id"], request["request_id"], "it is the same question: {events:#?}");
    let (status, receipt) = gateway.choose(&again, "allow").await;
    assert_eq!(status, 200, "{receipt}");
    until_said(&gateway, &session, "first done").await;
    until_state(&gateway, &session, "idle").await;

    // Killed while text streams; it goes on without a gateway.
    claude.prompt("FAKE:long 300 20 ;; text x").await;
    until_state(&gateway, &session, "running").await;
    gateway.kill();
    claude.wrote("chunk-0300").await;
    claude.prompt("FAKE:text said to nobody").await;
    claude.wrote("● said to nobody").await;
    gateway.again().await;
    let text = until_said(&gateway, &session, "said to nobody").await;
    until_state(&gateway, &session, "idle").await;
    for chunk in 1..=300 {
        assert_eq!(text.matches(&format!("chunk-{chunk:04} ")).count(), 1, "{chunk} in {text}");
    }
    assert_eq!(text.matches("said to nobody").count(), 1, "{text}");

    // No gateway at all: no error line, and the terminal's own dialog is there.
    gateway.kill();
    claude.prompt("FAKE:shell touch three ;; text third done").await;
    claude.yes().await;
    claude.wrote("● third done").await;
    let screen = claude.terminal.all();
    for trouble in ["hook error", "Hook error", "hook failed", "non-blocking", "not found"] {
        assert!(!screen.contains(trouble), "{trouble}:\n{screen}");
    }
    gateway.again().await;
    until_said(&gateway, &session, "third done").await;
}

#[tokio::test]
async fn claude_terminal_and_adapter_show_a_conversation_once() {
    let model = FakeModel::start();
    let install = tokio::task::spawn_blocking(agents::install_dir).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (agent_home, gateway_home) = (tempfile::tempdir().unwrap(), dir.path().join("home"));
    link(agent_home.path());
    // Its hooks find the gateway where it usually is.
    std::fs::create_dir_all(agent_home.path().join(".local/share")).unwrap();
    std::os::unix::fs::symlink(&gateway_home, agent_home.path().join(".local/share/plexus")).unwrap();
    let setup = agents::claude(&install, agent_home.path(), model.port());
    let command: Vec<&str> = setup.command.iter().map(String::as_str).collect();
    let env: serde_json::Map<_, _> = setup.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let env: Vec<String> = env.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let meta = setup.session_meta.unwrap().to_string().replace(':', " = ");
    let more = format!("session_meta = {meta}\n[runtime.env]\n{}", env.join("\n"));
    let gateway = Gateway::start_in(dir, &held_runtime("adapter", &command, &more)).await;
    assert_eq!(gateway.home, gateway_home);

    // The hooks of the agent that the gateway runs say nothing.
    let session = gateway.session("adapter").await;
    let run = gateway.prompt(&session, "FAKE:text once").await;
    assert!(said(&gateway.until_ended(&session, &run).await, Some(&run)).contains("once"));
    let (_, all) = gateway.get("/v1/sessions").await;
    assert_eq!(all["sessions"].as_array().unwrap().len(), 1, "{all}");

    // A conversation that is open in its terminal is not opened again by the adapter.
    let claude = Claude::start(&model, &gateway.home).await;
    let terminal = appeared(&gateway, "claude-terminal").await;
    let (_, info) = gateway.get(&format!("/v1/sessions/{terminal}")).await;
    let open = json!({ "runtime_id": "adapter", "native_id": info["native_id"] });
    let (status, opened) = gateway.post("/v1/sessions", open).await;
    assert!(status == 200 || status == 201, "{opened}");
    assert_eq!(opened["session_id"], json!(terminal));
    drop(claude);
}

/// Grok Build runs the hooks in Claude Code's settings, and waits for each of them.
#[tokio::test]
async fn linked_claude_does_not_change_grok() {
    let model = FakeModel::start();
    let install = tokio::task::spawn_blocking(agents::install_dir).await.unwrap();
    let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let gateway = Gateway::start("").await;
    link(home.path());
    // A hook of somebody else beside ours shows that Grok runs them.
    let (path, ran) = (home.path().join(".claude/settings.json"), home.path().join("ran"));
    let mut settings: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let hook = json!({ "hooks": [{ "type": "command", "command": format!("touch {}", ran.display()) }] });
    settings["hooks"]["Stop"].as_array_mut().expect("linked").push(hook);
    std::fs::write(&path, settings.to_string()).unwrap();
    let setup = agents::grok(&install, home.path(), model.port());
    // Its hooks find the gateway where it usually is.
    std::fs::create_dir_all(home.path().join(".local/share")).unwrap();
    std::os::unix::fs::symlink(&gateway.home, home.path().join(".local/share/plexus")).unwrap();

    // By hand.
    let mut by_hand = tokio::process::Command::new(agents::grok_program(&install));
    by_hand.args(["-p", "FAKE:text said by Grok"]).current_dir(work.path());
    by_hand.env_remove("PLEXUS_HOME").env_remove("XDG_DATA_HOME").envs(setup.env.clone());
    by_hand.stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, by_hand.output()).await.expect("Grok ends").unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("said by Grok"), "{output:?}");
    assert!(ran.exists(), "Grok ran no hook");

    // Through the gateway.
    let env: BTreeMap<String, String> = setup.env.into_iter().collect();
    let runtime = json!({
        "id": "grok", "dialect": "acp", "command": setup.command, "cwd": work.path(), "env": env,
        "auth_method": setup.auth_method,
    });
    let (status, body) = gateway.post("/v1/runtimes", runtime).await;
    assert_eq!(status, 201, "{body}");
    let session = gateway.session("grok").await;
    let run = gateway.prompt(&session, "FAKE:text once").await;
    assert_eq!(said(&gateway.until_ended(&session, &run).await, Some(&run)).trim(), "once");

    let (_, all) = gateway.get("/v1/sessions").await;
    assert_eq!(all["sessions"].as_array().unwrap().len(), 1, "Grok counts as a terminal of Claude Code: {all}");
}
