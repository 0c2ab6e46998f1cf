//! Qwen Code in a terminal of its own (tmux), started by `plexus wrap`: what its person does there, and what people do from elsewhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;
use crate::story_claude_terminal::{appeared, assert_tokens_told, resolved, until_said, until_state};

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::agents::{self, FakeModel};
use common::gateway::{Gateway, PATIENCE, exe, said};
use common::moments::{rounds, until_so};
use common::terminal::Terminal;
use serde_json::{Value, json};

const DIALECT: &str = "qwen-terminal";
/// Time that it may take to start: two processes of Node.js, which have been seen to take half a minute on a machine with much to do.
const START: Duration = Duration::from_secs(180);
/// The text in its dialog.
const DIALOG: &str = "Allow execution of:";

/// Qwen Code in a terminal.
struct Qwen {
    terminal: Terminal,
    work: tempfile::TempDir,
    _home: tempfile::TempDir,
}

impl Qwen {
    /// Starts it by hand, with one word before its name; `gateway_home` is the state folder of the gateway.
    async fn start(model: &FakeModel, gateway_home: &Path) -> Self {
        let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let install = agents::install_dir();
        let setup = agents::qwen(&install, home.path(), model.port());
        let settings = home.path().join(".qwen/settings.json");
        let mut kept: Value = serde_json::from_slice(&std::fs::read(&settings).unwrap()).unwrap();
        // It would ask the model for a next prompt, and stand in the way of those that are typed.
        kept["ui"] = json!({ "enableFollowupSuggestions": false });
        kept["general"]["enableAutoUpdate"] = false.into();
        std::fs::write(&settings, kept.to_string()).unwrap();
        // Its own launcher, and the Node.js that it needs.
        let path = format!("{}:{}", install.join("node_modules/.bin").display(), std::env::var("PATH").unwrap());
        let gateway_home = gateway_home.display().to_string();
        let own = setup.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let env: Vec<(&str, &str)> =
            own.chain([("PLEXUS_HOME", gateway_home.as_str()), ("PATH", path.as_str())]).collect();
        let folder = work.path().canonicalize().unwrap();
        let command = format!("{} wrap qwen --auth-type openai; echo ended with $?; exec cat", exe());
        let terminal = Terminal::open(Some(&folder), (100, 40), &env, &["sh", "-c", &command]);
        let qwen = Self { terminal, work, _home: home };
        qwen.ready().await;
        qwen
    }

    /// Waits until it takes what is typed.
    async fn ready(&self) {
        let deadline = Instant::now() + START;
        loop {
            let text = self.terminal.text();
            if text.contains("Type your message") && !text.contains("Initializing") {
                return;
            }
            assert!(Instant::now() < deadline, "the composer did not come:\n{text}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
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
        self.terminal.until("the dialog", Terminal::text, |text| text.contains(DIALOG)).await;
    }

    /// Waits until its own dialog has closed.
    async fn dialog_closed(&self) {
        self.terminal.until("the end of the dialog", Terminal::text, |text| !text.contains(DIALOG)).await;
    }

    /// Presses a key of its dialog until the dialog has closed: it is drawn a moment before it accepts keys.
    async fn press(&self, key: &str) {
        self.dialog().await;
        let deadline = Instant::now() + PATIENCE;
        while self.terminal.text().contains(DIALOG) {
            assert!(Instant::now() < deadline, "the dialog takes no key");
            self.terminal.keys(&[key]);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        // A key that was one too many stands in the composer.
        self.terminal.keys(&["C-u"]);
    }

    fn file(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }
}

/// The folders of `plexus wrap` in a state folder.
fn wrapped(gateway: &Gateway) -> usize {
    std::fs::read_dir(gateway.home.join("wrapped")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn qwen_terminal_is_watched_prompted_and_answered_from_both_sides() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let qwen = Qwen::start(&model, &gateway.home).await;

    // Text: the session is there before the first prompt, which becomes its title.
    let session = appeared(&gateway, DIALECT).await;
    qwen.prompt("FAKE:text it is seen elsewhere").await;
    until_said(&gateway, &session, "it is seen elsewhere").await;
    let info = until_state(&gateway, &session, "idle").await;
    assert_eq!(info["cwd"].as_str().unwrap(), qwen.work.path().canonicalize().unwrap().to_str().unwrap());
    assert_eq!(info["title"], "FAKE:text it is seen elsewhere");

    assert_tokens_told(&gateway, &session).await;

    // A question, answered at the terminal: everybody else is told.
    qwen.prompt("FAKE:shell touch one ;; text first done").await;
    let request = gateway.open_request(&session).await;
    assert!(request["display"].to_string().contains("touch one"), "{request}");
    qwen.press("Enter").await;
    let over = resolved(&gateway, &request).await;
    let by = &over["receipt"];
    assert_eq!((&by["resolved_by"]["name"], &by["option_id"]), (&json!("the terminal"), &json!("allow")), "{over}");
    until_said(&gateway, &session, "first done").await;
    until_state(&gateway, &session, "idle").await;
    assert!(qwen.file("one").exists());

    // A question, answered elsewhere: the terminal's dialog closes.
    qwen.prompt("FAKE:shell touch two ;; text second done").await;
    let request = gateway.open_request(&session).await;
    qwen.dialog().await;
    let (status, receipt) = gateway.choose(&request, "allow").await;
    assert_eq!(status, 200, "{receipt}");
    qwen.dialog_closed().await;
    until_said(&gateway, &session, "second done").await;
    assert!(qwen.file("two").exists());
    until_state(&gateway, &session, "idle").await;

    // Denied elsewhere: Qwen Code stops its turn, as with its own No.
    qwen.prompt("FAKE:shell touch three ;; text third done").await;
    let request = gateway.open_request(&session).await;
    qwen.dialog().await;
    assert_eq!(gateway.choose(&request, "deny").await.0, 200);
    qwen.dialog_closed().await;
    until_state(&gateway, &session, "idle").await;
    assert!(!qwen.file("three").exists());

    // Denied at the terminal, which its dual output does not say.
    qwen.prompt("FAKE:shell touch four ;; text fourth done").await;
    let request = gateway.open_request(&session).await;
    // (With Esc twice it would offer to go back to an earlier prompt.)
    qwen.press("4").await;
    let over = resolved(&gateway, &request).await;
    let by = &over["receipt"];
    assert_eq!((&by["resolved_by"]["name"], &by["option_id"]), (&json!("the terminal"), &json!("deny")), "{over}");
    until_state(&gateway, &session, "idle").await;

    // A prompt from elsewhere arrives.
    let run = gateway.prompt(&session, "FAKE:text a prompt from the page").await;
    let events = gateway.until_ended(&session, &run).await;
    let end = events.iter().rfind(|event| event["kind"] == "run_ended").unwrap();
    assert_eq!(end["event"]["status"], "completed", "{end}");
    assert!(said(&events, Some(&run)).contains("a prompt from the page"));
    qwen.terminal.wrote("a prompt from the page", 2).await;
    // A command of the terminal does not.
    let run = gateway.prompt(&session, "/approval-mode yolo").await;
    let events = gateway.until_ended(&session, &run).await;
    let end = events.iter().rfind(|event| event["kind"] == "run_ended").unwrap();
    assert_eq!(end["event"]["status"], "error", "{end}");

    // An error of the model's service is the end of its turn.
    qwen.prompt("FAKE:error 400").await;
    qwen.wrote("[API Error").await;
    until_state(&gateway, &session, "idle").await;
    let events = gateway.events(&session).await;
    let end = events.iter().rfind(|event| event["kind"] == "run_ended").unwrap();
    assert_eq!(end["event"]["status"], "error", "{end}");

    // It ends with its exit code, and the session with it; nothing is left.
    assert_eq!(wrapped(&gateway), 1);
    qwen.prompt("/quit").await;
    qwen.wrote("ended with 0").await;
    let info = until_state(&gateway, &session, "exited").await;
    assert!(info["linked"].is_null() && info["restartable"].is_null(), "{info}");
    assert_eq!(wrapped(&gateway), 0);
}

#[tokio::test]
async fn qwen_terminal_question_has_one_decision_when_both_answer_at_once() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let qwen = Qwen::start(&model, &gateway.home).await;
    let session = appeared(&gateway, DIALECT).await;
    let mut at_terminal = 0;
    for round in 0..rounds("questions that are answered at the terminal and elsewhere at once", 3_u64, 100) {
        let file = qwen.file("count");
        let before = std::fs::read_to_string(&file).unwrap_or_default().len();
        qwen.prompt(&format!("FAKE:shell printf x >>{} ;; text round {round} done", file.display())).await;
        let request = gateway.open_request(&session).await;
        qwen.dialog().await;
        let press = tokio::task::spawn_blocking({
            let mut keys = qwen.terminal.tmux();
            // Qwen Code looks for answers twice a second: each is first now and then.
            let later = Duration::from_millis((round % 8) * 90);
            move || {
                std::thread::sleep(later);
                keys.args(["send-keys", "-t", "it", "Enter"]).status().unwrap()
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
        at_terminal += usize::from(by.iter().any(|name| *name == "the terminal"));
    }
    println!("the terminal was first {at_terminal} times");
}

#[tokio::test]
async fn qwen_terminal_never_notices_what_happens_to_the_gateway() {
    let model = FakeModel::start();
    let mut gateway = Gateway::start("").await;
    let qwen = Qwen::start(&model, &gateway.home).await;
    let session = appeared(&gateway, DIALECT).await;

    // Killed while a question is open.
    qwen.prompt("FAKE:shell touch one ;; text first done").await;
    let request = gateway.open_request(&session).await;
    gateway.kill();
    qwen.dialog().await;
    gateway.again().await;
    until_state(&gateway, &session, "waiting").await;
    let again = gateway.open_request(&session).await;
    assert_eq!(again["request_id"], request["request_id"], "it is the same question");
    let (status, receipt) = gateway.choose(&again, "allow").await;
    assert_eq!(status, 200, "{receipt}");
    until_said(&gateway, &session, "first done").await;
    qwen.dialog_closed().await;
    until_state(&gateway, &session, "idle").await;

    // Killed while text streams; it goes on without a gateway.
    qwen.prompt("FAKE:long 300 20 ;; text x").await;
    until_state(&gateway, &session, "running").await;
    until_said(&gateway, &session, "chunk-0010").await;
    gateway.kill();
    qwen.wrote("chunk-0300").await;
    qwen.prompt("FAKE:text said to nobody").await;
    qwen.terminal.wrote("said to nobody", 2).await;
    gateway.again().await;
    let text = until_said(&gateway, &session, "said to nobody").await;
    until_state(&gateway, &session, "idle").await;
    for chunk in 1..=300 {
        assert_eq!(text.matches(&format!("chunk-{chunk:04} ")).count(), 1, "{chunk} in {text}");
    }
    assert_eq!(text.matches("said to nobody").count(), 1, "{text}");

    // No gateway at all: the terminal's own dialog is there.
    gateway.kill();
    qwen.prompt("FAKE:shell touch three ;; text third done").await;
    qwen.press("Enter").await;
    qwen.wrote("third done").await;
    gateway.again().await;
    until_said(&gateway, &session, "third done").await;

    // Its window is closed: the session ends, and nothing is left.
    drop(qwen.terminal);
    until_state(&gateway, &session, "exited").await;
    until_so("the folder is removed", async || wrapped(&gateway) == 0).await;
}
