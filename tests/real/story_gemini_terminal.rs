//! Gemini CLI in a terminal of its own (tmux), linked: what its person does there, and, where it runs in a shared terminal, what people do
//! from elsewhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;
use crate::story_claude_terminal::{appeared, assert_tokens_told, resolved, until_said, until_state};

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::agents::{self, FakeModel};
use common::gateway::{Gateway, PATIENCE, exe, held_runtime, said};
use common::moments::rounds;
use common::terminal::Terminal;
use serde_json::{Value, json};

const DIALECT: &str = "gemini-terminal";

/// A home with Gemini CLI's settings, linked by `plexus link`, and the variables that it needs.
struct Home {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl Home {
    /// `gateway_home` is the state folder of the gateway that the hooks look for.
    fn new(model: &FakeModel, gateway_home: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let setup = agents::gemini(&agents::install_dir(), dir.path(), model.port());
        let bin = dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let script = format!("#!/bin/sh\nexec {} {} \"$@\"\n", setup.command[0], setup.command[1]);
        std::fs::write(bin.join("gemini"), script).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(bin.join("gemini"), executable).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut env = setup.env;
        // Started by hand, it starts itself again as a child.
        env.retain(|(name, _)| name != "GEMINI_CLI_NO_RELAUNCH");
        env.push(("PATH".into(), path));
        let linked = Command::new(exe())
            .args(["link", "gemini", "--yes"])
            .env_remove("GEMINI_CLI_HOME")
            .envs(env.iter().map(|(name, value)| (name, value)))
            .env("PLEXUS_HOME", dir.path().join("records"))
            .output()
            .unwrap();
        assert!(linked.status.success(), "{linked:?}");
        env.push(("PLEXUS_HOME".into(), gateway_home.display().to_string()));
        Self { dir, env }
    }
}

/// Gemini CLI in a terminal.
pub(crate) struct Gemini {
    pub(crate) terminal: Terminal,
    work: tempfile::TempDir,
    home: Home,
    /// The folder of the shared terminals, if it is in one.
    shared: Option<PathBuf>,
}

impl Drop for Gemini {
    fn drop(&mut self) {
        self.close();
    }
}

impl Gemini {
    /// Starts it by hand; `shared`: by `plexus term -- gemini`.
    pub(crate) async fn start(model: &FakeModel, gateway_home: &Path, shared: bool) -> Self {
        let (home, work) = (Home::new(model, gateway_home), tempfile::tempdir().unwrap());
        let folder = work.path().canonicalize().unwrap();
        let env: Vec<(&str, &str)> = home.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut command = if shared { vec![exe(), "term", "--"] } else { Vec::new() };
        command.extend(["gemini", "-m", "gemini-2.5-flash"]);
        let terminal = Terminal::open(Some(&folder), (100, 40), &env, &command);
        let shared = shared.then(|| gateway_home.join("terminals"));
        let gemini = Self { terminal, work, home, shared };
        gemini.wrote("Tips for getting started").await;
        gemini.idle().await;
        gemini
    }

    /// Ends the program, as far as the window's end does not.
    fn close(&self) {
        for socket in self.shared.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten()) {
            let socket = socket.unwrap().path();
            let id = socket.file_stem().unwrap();
            let mut kill = Command::new(exe());
            kill.args(["term", "kill"]).arg(id).env("PLEXUS_HOME", self.shared.as_ref().unwrap().parent().unwrap());
            let _ = kill.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }

    async fn wrote(&self, words: &str) {
        self.terminal.wrote(words, 1).await;
    }

    /// Waits until its line is empty, and no dialog in its place.
    async fn idle(&self) {
        let empty = |text: &str| text.contains("Type your message") && !text.contains("esc to cancel");
        self.terminal.until("an empty line", Terminal::text, empty).await;
    }

    /// Types a prompt and sends it: in one write it would count as pasted.
    pub(crate) async fn prompt(&self, text: &str) {
        self.idle().await;
        self.terminal.words(text);
        let end: String = text.chars().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect();
        self.wrote(&end).await;
        // Gemini CLI takes an Enter that follows a letter at once for a new line: the screen comes to rest first.
        let deadline = Instant::now() + PATIENCE;
        let mut before = String::new();
        loop {
            let screen = self.terminal.text();
            if screen.contains("Type your message") || screen.contains("suggest changes (esc)") {
                return;
            }
            assert!(Instant::now() < deadline, "the prompt is not sent:\n{screen}");
            if screen == before {
                self.terminal.keys(&["Enter"]);
                let taken = Instant::now() + Duration::from_secs(5);
                while self.terminal.text() == before && Instant::now() < taken {
                    tokio::time::sleep(Duration::from_millis(40)).await;
                }
            }
            before = screen;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until its own dialog is on the screen.
    async fn dialog(&self) {
        let drawn = |text: &str| text.contains("suggest changes (esc)");
        self.terminal.until("the dialog", Terminal::text, drawn).await;
    }

    /// Waits until its own dialog has closed.
    async fn dialog_closed(&self) {
        let closed = |text: &str| !text.contains("suggest changes (esc)");
        self.terminal.until("the end of the dialog", Terminal::text, closed).await;
    }

    fn file(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }
}

fn resolved_by(over: &Value) -> (&Value, &Value) {
    (&over["receipt"]["resolved_by"]["name"], &over["receipt"]["option_id"])
}

#[tokio::test]
async fn gemini_terminal_is_watched_and_answered_where_it_is() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let gemini = Gemini::start(&model, &gateway.home, false).await;
    let session = appeared(&gateway, DIALECT).await;
    let (_, info) = gateway.get(&format!("/v1/sessions/{session}")).await;
    assert_eq!(info["cwd"].as_str().unwrap(), gemini.work.path().canonicalize().unwrap().to_str().unwrap());

    // Text.
    gemini.prompt("FAKE:text it is seen elsewhere").await;
    until_said(&gateway, &session, "it is seen elsewhere").await;
    until_state(&gateway, &session, "idle").await;

    assert_tokens_told(&gateway, &session).await;

    // A question is shown, and says where it can be answered. Answered there, everybody else is told.
    gemini.prompt("FAKE:shell touch one ;; text first done").await;
    let request = gateway.open_request(&session).await;
    assert!(request["display"].to_string().contains("touch one"), "{request}");
    assert_eq!(request["observe_only"], true, "{request}");
    let (status, refused) = gateway.choose(&request, "allow").await;
    assert_eq!(status, 409, "{refused}");
    gemini.dialog().await;
    gemini.terminal.keys(&["1"]);
    let over = resolved(&gateway, &request).await;
    assert_eq!(resolved_by(&over), (&json!("the terminal"), &json!("allow")), "{over}");
    until_said(&gateway, &session, "first done").await;
    until_state(&gateway, &session, "idle").await;
    assert!(gemini.file("one").exists());

    // Denied there: the turn is over. What Gemini CLI then writes once more is shown once.
    gemini.prompt("FAKE:shell touch two ;; text second done").await;
    let request = gateway.open_request(&session).await;
    gemini.dialog().await;
    gemini.terminal.keys(&["Escape"]);
    let over = resolved(&gateway, &request).await;
    assert_eq!(resolved_by(&over), (&json!("the terminal"), &json!("deny")), "{over}");
    until_state(&gateway, &session, "idle").await;
    gemini.prompt("FAKE:text after that").await;
    let text = until_said(&gateway, &session, "after that").await;
    until_state(&gateway, &session, "idle").await;
    assert_eq!(text.matches("it is seen elsewhere").count(), 1, "{text}");
    let events = gateway.events(&session).await;
    let prompts = events.iter().filter(|event| event["kind"] == "user_message_chunk").count();
    assert_eq!(prompts, 4, "{events:#?}");
    assert!(!gemini.file("two").exists());

    // A prompt from elsewhere is refused, with the reason.
    let run = gateway.prompt(&session, "FAKE:text from elsewhere").await;
    let events = gateway.until_ended(&session, &run).await;
    let end = events.iter().rfind(|event| event["kind"] == "run_ended").unwrap();
    assert!(end["event"].to_string().contains("plexus term -- gemini"), "{end}");

    // It ends when the terminal does.
    let Gemini { ref terminal, .. } = gemini;
    assert!(terminal.tmux().arg("kill-server").status().unwrap().success());
    let info = until_state(&gateway, &session, "exited").await;
    assert!(info["linked"].is_null() && info["restartable"].is_null(), "{info}");
}

#[tokio::test]
async fn gemini_in_a_shared_terminal_is_answered_and_prompted_from_elsewhere() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let gemini = Gemini::start(&model, &gateway.home, true).await;
    let session = appeared(&gateway, DIALECT).await;

    // A command, allowed elsewhere: the terminal's dialog closes.
    gemini.prompt("FAKE:shell touch one ;; text first done").await;
    let request = gateway.open_request(&session).await;
    assert!(request["observe_only"].is_null() || request["observe_only"] == false, "{request}");
    assert_eq!(gateway.choose(&request, "allow").await.0, 200);
    until_said(&gateway, &session, "first done").await;
    gemini.dialog_closed().await;
    assert!(gemini.file("one").exists());
    until_state(&gateway, &session, "idle").await;
    gemini.idle().await;

    // Denied elsewhere.
    gemini.prompt("FAKE:shell touch two ;; text second done").await;
    let request = gateway.open_request(&session).await;
    assert_eq!(gateway.choose(&request, "deny").await.0, 200);
    gemini.wrote("Request cancelled").await;
    until_state(&gateway, &session, "idle").await;
    assert!(!gemini.file("two").exists());
    gemini.idle().await;

    // A change to a file, and one of that.
    for (prompt, content) in [
        ("FAKE:write a.txt one two ;; text wrote it", "one two\n"),
        ("FAKE:edit a.txt two TWO ;; text changed it", "one TWO\n"),
    ] {
        gemini.prompt(prompt).await;
        let request = gateway.open_request(&session).await;
        assert_eq!(gateway.choose(&request, "allow").await.0, 200);
        until_said(&gateway, &session, prompt.rsplit("text ").next().unwrap()).await;
        until_state(&gateway, &session, "idle").await;
        assert_eq!(std::fs::read_to_string(gemini.file("a.txt")).unwrap(), content);
    }

    // Two questions at once: the one that is not on the screen is not answered, and stays open.
    gemini.prompt("FAKE:shell2 touch three | touch four ;; text both done").await;
    let requests = gateway.open_requests(&session, 2).await;
    // The first is drawn before the other one is there.
    let both = |text: &str| text.contains("1 of 2") && text.contains("suggest changes (esc)");
    let screen = gemini.terminal.until("the dialog of two", Terminal::text, both).await;
    let shows = |request: &Value, words: &str| request["display"].to_string().contains(words);
    let first = if screen.contains("? Shell  touch three") { "touch three" } else { "touch four" };
    let (shown, behind): (Vec<&Value>, Vec<&Value>) = requests.iter().partition(|request| shows(request, first));
    assert_eq!(gateway.choose(behind[0], "allow").await.0, 200);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let events = gateway.events(&session).await;
        if events.iter().any(|event| event["event"]["code"] == "answer_not_taken") {
            break;
        }
        assert!(Instant::now() < deadline, "no refusal: {events:#?}\n{}", gemini.terminal.text());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!gemini.file("three").exists() && !gemini.file("four").exists());
    assert_eq!(gateway.choose(shown[0], "allow").await.0, 200);
    gemini.wrote("2 of 2").await;
    let again = gateway.open_request(&session).await;
    assert!(!shows(&again, first), "{again}");
    assert_eq!(gateway.choose(&again, "allow").await.0, 200);
    until_said(&gateway, &session, "both done").await;
    assert!(gemini.file("three").exists() && gemini.file("four").exists());
    until_state(&gateway, &session, "idle").await;

    // Prompts from elsewhere arrive.
    for words in ["a prompt from the page", "and another one"] {
        let run = gateway.prompt(&session, &format!("FAKE:text {words}")).await;
        let events = gateway.until_ended(&session, &run).await;
        let end = events.iter().rfind(|event| event["kind"] == "run_ended").unwrap();
        assert_eq!(end["event"]["status"], "completed", "{end}");
        assert!(said(&events, Some(&run)).contains(words));
        gemini.terminal.wrote(words, 2).await;
    }

    // It ends when the program does.
    gemini.close();
    until_state(&gateway, &session, "exited").await;
}

#[tokio::test]
async fn gemini_terminal_question_has_one_decision_when_both_answer_at_once() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let gemini = Gemini::start(&model, &gateway.home, true).await;
    let session = appeared(&gateway, DIALECT).await;
    let (mut by_keys, mut at_terminal) = (0, 0);
    for round in 0..rounds("questions that are answered at the terminal and elsewhere at once", 3, 100) {
        let file = gemini.file("count");
        let before = std::fs::read_to_string(&file).unwrap_or_default().len();
        gemini.prompt(&format!("FAKE:shell printf x >>count ;; text round {round} done")).await;
        let request = gateway.open_request(&session).await;
        gemini.dialog().await;
        let press = tokio::task::spawn_blocking({
            let mut keys = gemini.terminal.tmux();
            move || keys.args(["send-keys", "-t", "it", "1"]).status().unwrap()
        });
        // Every other time the key is on its way first.
        let (answered, pressed) = if round % 2 == 0 {
            tokio::join!(gateway.choose(&request, "allow"), press)
        } else {
            let pressed = press.await;
            (gateway.choose(&request, "allow").await, pressed)
        };
        assert!(pressed.unwrap().success());
        assert!(answered.0 == 200 || answered.0 == 409, "{answered:?}");
        until_said(&gateway, &session, &format!("round {round} done")).await;
        until_state(&gateway, &session, "idle").await;
        let after = std::fs::read_to_string(&file).unwrap_or_default().len();
        assert_eq!(after - before, 1, "the command ran once");
        // One decision. Where the terminal was first and the answer was on its way, that is told.
        let decided = async || {
            let events = gateway.events(&session).await;
            let of_it = |event: &&Value| {
                event["kind"] == "request_resolved" && event["event"]["request_id"] == request["request_id"]
            };
            let by = events.iter().filter(of_it).map(|event| event["event"]["resolved_by"]["name"].clone());
            by.collect::<Vec<Value>>()
        };
        let mut by = decided().await;
        // That the keys were not typed is known once their holder has given up waiting.
        let until = Instant::now() + Duration::from_secs(5);
        while round % 2 == 1 && by.last().is_some_and(|by| by != "the terminal") && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(100)).await;
            by = decided().await;
        }
        assert!(
            matches!(by.as_slice(), [_]) || matches!(by.as_slice(), [_, last] if *last == "the terminal"),
            "{by:?}"
        );
        let last = by.last().unwrap() == "the terminal";
        (by_keys, at_terminal) = (by_keys + usize::from(!last), at_terminal + usize::from(last));
        // Where the terminal was first, no key of ours stands in its line. A key of the person's that came long after ours may.
        if !last {
            gemini.terminal.keys(&["C-u"]);
        }
        gemini.idle().await;
    }
    println!("{by_keys} answered elsewhere, {at_terminal} at the terminal");
}

#[tokio::test]
async fn gemini_terminal_never_notices_what_happens_to_the_gateway() {
    let model = FakeModel::start();
    let mut gateway = Gateway::start("").await;
    let gemini = Gemini::start(&model, &gateway.home, true).await;
    let session = appeared(&gateway, DIALECT).await;

    // Killed while a question is open.
    gemini.prompt("FAKE:shell touch one ;; text first done").await;
    let request = gateway.open_request(&session).await;
    gateway.kill();
    gemini.dialog().await;
    gateway.again().await;
    until_state(&gateway, &session, "waiting").await;
    let again = gateway.open_request(&session).await;
    assert_eq!(again["request_id"], request["request_id"], "it is the same question");
    let (status, receipt) = gateway.choose(&again, "allow").await;
    assert_eq!(status, 200, "{receipt}");
    until_said(&gateway, &session, "first done").await;
    assert!(gemini.file("one").exists());
    until_state(&gateway, &session, "idle").await;

    // Killed while text streams; it goes on without a gateway.
    gemini.prompt("FAKE:long 300 20 ;; text x").await;
    until_state(&gateway, &session, "running").await;
    gateway.kill();
    gemini.wrote("chunk-0300").await;
    gemini.prompt("FAKE:text said to nobody").await;
    gemini.terminal.wrote("said to nobody", 2).await;
    gateway.again().await;
    let text = until_said(&gateway, &session, "said to nobody").await;
    until_state(&gateway, &session, "idle").await;
    for chunk in 1..=300 {
        assert_eq!(text.matches(&format!("chunk-{chunk:04}")).count(), 1, "{chunk} in {text}");
    }
    assert_eq!(text.matches("said to nobody").count(), 1, "{text}");

    // No gateway at all: no error line, and the terminal's own dialog is there.
    gateway.kill();
    gemini.prompt("FAKE:shell touch three ;; text third done").await;
    gemini.dialog().await;
    gemini.terminal.keys(&["1"]);
    gemini.terminal.wrote("third done", 2).await;
    let screen = gemini.terminal.all();
    for trouble in ["Hook(s)", "hook failed", "not found"] {
        assert!(!screen.contains(trouble), "{trouble}:\n{screen}");
    }
    gateway.again().await;
    until_said(&gateway, &session, "third done").await;
}

#[tokio::test]
async fn gemini_terminal_and_adapter_show_a_conversation_once() {
    let model = FakeModel::start();
    let dir = tempfile::tempdir().unwrap();
    let gateway_home = dir.path().join("home");
    let home = Home::new(&model, &gateway_home);
    let script = home.dir.path().join("bin/gemini").display().to_string();
    // Its hooks find the gateway where it usually is.
    std::fs::create_dir_all(home.dir.path().join(".local/share")).unwrap();
    std::os::unix::fs::symlink(&gateway_home, home.dir.path().join(".local/share/plexus")).unwrap();
    let env = home.env.iter().filter(|(name, _)| name != "PLEXUS_HOME");
    let env: Vec<String> = env.map(|(name, value)| format!("{name} = {}", json!(value))).collect();
    let more = format!("auth_method = \"gemini-api-key\"\n[runtime.env]\n{}", env.join("\n"));
    let command = [script.as_str(), "--acp", "-m", "gemini-2.5-flash"];
    let gateway = Gateway::start_in(dir, &held_runtime("adapter", &command, &more)).await;
    assert_eq!(gateway.home, gateway_home);

    // The hooks of the agent that the gateway runs say nothing.
    let session = gateway.session("adapter").await;
    let run = gateway.prompt(&session, "FAKE:text once").await;
    assert!(said(&gateway.until_ended(&session, &run).await, Some(&run)).contains("once"));
    let (_, all) = gateway.get("/v1/sessions").await;
    assert_eq!(all["sessions"].as_array().unwrap().len(), 1, "{all}");

    // A conversation that is open in its terminal is not opened again by the adapter.
    let gemini = Gemini::start(&model, &gateway.home, false).await;
    let terminal = appeared(&gateway, DIALECT).await;
    let (_, info) = gateway.get(&format!("/v1/sessions/{terminal}")).await;
    let open = json!({ "runtime_id": "adapter", "native_id": info["native_id"] });
    let (status, opened) = gateway.post("/v1/sessions", open).await;
    assert!(status == 200 || status == 201, "{opened}");
    assert_eq!(opened["session_id"], json!(terminal));
    assert!(gemini.home.dir.path().join(".gemini/settings.json").exists());
}
