//! OpenCode in a terminal of its own (tmux), linked: what its person does there, and what people do from elsewhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;
use crate::story_claude_terminal::{appeared, resolved, until_said, until_state};

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::agents::{self, FakeModel};
use common::gateway::{Gateway, said};
use common::moments::rounds;
use common::terminal::Terminal;
use serde_json::{Value, json};

const PLUGIN: &str = include_str!("../../clients/opencode-plugin/plexus.js");
const DIALECT: &str = "opencode-terminal";

/// A home with OpenCode's settings and the plugin of `plexus link`.
struct Home {
    dir: tempfile::TempDir,
    program: String,
    env: Vec<(String, String)>,
}

impl Home {
    /// `gateway_home` is the state folder of the gateway that the plugin looks for.
    fn new(model: &FakeModel, gateway_home: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let setup = agents::opencode(&agents::install_dir(), dir.path(), model.port());
        let plugins = dir.path().join(".config/opencode/plugins");
        std::fs::create_dir_all(&plugins).unwrap();
        std::fs::write(plugins.join("plexus.js"), PLUGIN).unwrap();
        let mut env = setup.env;
        env.push(("PLEXUS_HOME".into(), gateway_home.display().to_string()));
        Self { dir, program: setup.command[0].clone(), env }
    }
}

/// OpenCode in a terminal.
struct OpenCode {
    terminal: Terminal,
    work: tempfile::TempDir,
    _home: Home,
}

impl OpenCode {
    /// Starts it by hand, with no word changed.
    async fn start(model: &FakeModel, gateway_home: &Path) -> Self {
        let (home, work) = (Home::new(model, gateway_home), tempfile::tempdir().unwrap());
        let folder = work.path().canonicalize().unwrap();
        let env: Vec<(&str, &str)> = home.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let terminal = Terminal::open(Some(&folder), (100, 40), &env, &[&home.program]);
        let opencode = Self { terminal, work, _home: home };
        opencode.wrote("Ask anything").await;
        opencode
    }

    async fn wrote(&self, words: &str) {
        self.terminal.wrote(words, 1).await;
    }

    /// Types a prompt and sends it.
    async fn prompt(&self, text: &str) {
        self.terminal.words(text);
        let end: String = text.chars().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect();
        self.wrote(&end).await;
        self.terminal.keys(&["Enter"]);
    }

    /// Waits until its own dialog is on the screen.
    async fn dialog(&self) {
        self.terminal.until("the dialog", Terminal::text, |text| text.contains("Permission required")).await;
    }

    /// Waits until its own dialog has closed.
    async fn dialog_closed(&self) {
        let closed = |text: &str| !text.contains("Permission required");
        self.terminal.until("the end of the dialog", Terminal::text, closed).await;
    }

    /// Confirms its dialog.
    async fn yes(&self) {
        self.dialog().await;
        self.terminal.keys(&["Enter"]);
        self.dialog_closed().await;
    }

    fn file(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }
}

#[tokio::test]
async fn opencode_terminal_is_watched_prompted_and_answered_from_both_sides() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let opencode = OpenCode::start(&model, &gateway.home).await;

    // Text: the session appears with it.
    opencode.prompt("FAKE:text it is seen elsewhere").await;
    let session = appeared(&gateway, DIALECT).await;
    until_said(&gateway, &session, "it is seen elsewhere").await;
    let info = until_state(&gateway, &session, "idle").await;
    assert_eq!(info["cwd"].as_str().unwrap(), opencode.work.path().canonicalize().unwrap().to_str().unwrap());

    // A question, answered at the terminal: everybody else is told.
    opencode.prompt("FAKE:shell touch one ;; text first done").await;
    let request = gateway.open_request(&session).await;
    assert!(request["display"].to_string().contains("touch one"), "{request}");
    opencode.yes().await;
    let over = resolved(&gateway, &request).await;
    assert_eq!(over["receipt"]["resolved_by"]["name"], "the terminal", "{over}");
    until_said(&gateway, &session, "first done").await;
    until_state(&gateway, &session, "idle").await;
    assert!(opencode.file("one").exists());

    // A question, answered elsewhere: the terminal's dialog closes.
    opencode.prompt("FAKE:shell touch two ;; text second done").await;
    let request = gateway.open_request(&session).await;
    opencode.dialog().await;
    let (status, receipt) = gateway.choose(&request, "once").await;
    assert_eq!(status, 200, "{receipt}");
    opencode.dialog_closed().await;
    until_said(&gateway, &session, "second done").await;
    assert!(opencode.file("two").exists());
    until_state(&gateway, &session, "idle").await;

    // Denied elsewhere, with the reason: the agent goes on.
    opencode.prompt("FAKE:shell touch three ;; text third done").await;
    let request = gateway.open_request(&session).await;
    let id = request["request_id"].as_str().unwrap();
    let answer = json!({ "option_id": "reject", "reason": "not from the phone" });
    assert_eq!(gateway.post(&format!("/v1/requests/{id}/answer"), answer).await.0, 200);
    until_said(&gateway, &session, "third done").await;
    assert!(!opencode.file("three").exists());
    until_state(&gateway, &session, "idle").await;

    // A prompt from elsewhere arrives.
    let run = gateway.prompt(&session, "FAKE:text a prompt from the page").await;
    let events = gateway.until_ended(&session, &run).await;
    let end = events.iter().rfind(|event| event["kind"] == "run_ended").unwrap();
    assert_eq!(end["event"]["status"], "completed", "{end}");
    assert!(said(&events, Some(&run)).contains("a prompt from the page"));
    opencode.terminal.wrote("a prompt from the page", 2).await;
    until_state(&gateway, &session, "idle").await;

    // It ends when the terminal does.
    drop(opencode.terminal);
    let info = until_state(&gateway, &session, "exited").await;
    assert!(info["linked"].is_null() && info["restartable"].is_null(), "{info}");
}

#[tokio::test]
async fn opencode_terminal_question_has_one_decision_when_both_answer_at_once() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let opencode = OpenCode::start(&model, &gateway.home).await;
    let mut session = String::new();
    for round in 0..rounds("questions that are answered at the terminal and elsewhere at once", 3, 100) {
        let file = opencode.file("count");
        let before = std::fs::read_to_string(&file).unwrap_or_default().len();
        opencode.prompt(&format!("FAKE:shell printf x >>{} ;; text round {round} done", file.display())).await;
        if round == 0 {
            session = appeared(&gateway, DIALECT).await;
        }
        let request = gateway.open_request(&session).await;
        opencode.dialog().await;
        let press = tokio::task::spawn_blocking({
            let mut keys = opencode.terminal.tmux();
            move || keys.args(["send-keys", "-t", "it", "Enter"]).status().unwrap()
        });
        let (answered, pressed) = tokio::join!(gateway.choose(&request, "once"), press);
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
    }
}

#[tokio::test]
async fn opencode_terminal_never_notices_what_happens_to_the_gateway() {
    let model = FakeModel::start();
    let mut gateway = Gateway::start("").await;
    let opencode = OpenCode::start(&model, &gateway.home).await;

    // Killed while a question is open.
    opencode.prompt("FAKE:shell touch one ;; text first done").await;
    let session = appeared(&gateway, DIALECT).await;
    let request = gateway.open_request(&session).await;
    gateway.kill();
    opencode.dialog().await;
    gateway.again().await;
    until_state(&gateway, &session, "waiting").await;
    let again = gateway.open_request(&session).await;
    assert_eq!(again["request_id"], request["request_id"], "it is the same question");
    let (status, receipt) = gateway.choose(&again, "once").await;
    assert_eq!(status, 200, "{receipt}");
    until_said(&gateway, &session, "first done").await;
    opencode.dialog_closed().await;
    until_state(&gateway, &session, "idle").await;

    // Killed while text streams; it goes on without a gateway.
    opencode.prompt("FAKE:long 300 20 ;; text x").await;
    until_state(&gateway, &session, "running").await;
    until_said(&gateway, &session, "chunk-0010").await;
    gateway.kill();
    opencode.wrote("chunk-0300").await;
    opencode.prompt("FAKE:text said to nobody").await;
    opencode.terminal.wrote("said to nobody", 2).await;
    gateway.again().await;
    let text = until_said(&gateway, &session, "said to nobody").await;
    until_state(&gateway, &session, "idle").await;
    for chunk in 1..=300 {
        assert_eq!(text.matches(&format!("chunk-{chunk:04} ")).count(), 1, "{chunk} in {text}");
    }
    assert_eq!(text.matches("said to nobody").count(), 1, "{text}");

    // No gateway at all: the terminal's own dialog is there.
    gateway.kill();
    opencode.prompt("FAKE:shell touch three ;; text third done").await;
    opencode.yes().await;
    opencode.wrote("third done").await;
    gateway.again().await;
    until_said(&gateway, &session, "third done").await;
}

#[tokio::test]
async fn opencode_plugin_is_silent_where_opencode_is_no_terminal() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let (home, work) = (Home::new(&model, &gateway.home), tempfile::tempdir().unwrap());
    let loaded = home.dir.path().join("loaded");
    let plugin = home.dir.path().join(".config/opencode/plugins/plexus.js");
    let marked = format!(
        "import {{ writeFileSync as mark }} from \"node:fs\";\n{PLUGIN}\nmark({}, \"\");\n",
        json!(loaded.display().to_string())
    );
    std::fs::write(plugin, marked).unwrap();
    let ran = Command::new(&home.program)
        .args(["run", "FAKE:text said to a script"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(home.env.iter().map(|(name, value)| (name, value)))
        .current_dir(work.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&ran.stdout).contains("said to a script"), "{ran:?}");
    assert!(loaded.exists(), "the plugin was loaded");
    let (_, body) = gateway.get("/v1/runtimes").await;
    assert_eq!(body["runtimes"], json!([]), "nobody was heard");
}
