//! GitHub Copilot CLI in a terminal of its own (tmux), linked: what its person does there, and what people do from elsewhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;
use crate::story_claude_terminal::{appeared, assert_tokens_told, resolved, until, until_said, until_state};

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::agents::{self, FakeModel};
use common::gateway::{Gateway, PATIENCE, exe, held_runtime, said};
use common::moments::rounds;
use common::terminal::Terminal;
use serde_json::{Value, json};

const DIALECT: &str = "copilot-terminal";
/// The question of Copilot, once per folder, about any extension that takes part in its permissions.
const ELEVATED: &str = "wants elevated permissions";
/// The dialogs for a command and for a form.
const COMMAND: &str = "Do you want to run this command?";
const FORM: &str = "Copilot needs information.";

/// A home with Copilot's settings and the extension of `plexus link`.
struct Home {
    dir: tempfile::TempDir,
    program: String,
    env: Vec<(String, String)>,
}

impl Home {
    /// `gateway_home` is the state folder of the gateway that the extension looks for, `work` a folder that its person trusts.
    fn new(model: &FakeModel, gateway_home: &Path, work: &Path) -> Self {
        let (dir, install) = (tempfile::tempdir().unwrap(), agents::install_dir());
        let setup = agents::copilot(&install, dir.path(), model.port());
        let (program, mut env) = (setup.command[0].clone(), setup.env);
        env.push(("PLEXUS_HOME".into(), gateway_home.display().to_string()));
        // It unpacks itself, 235 MB, where it was not before.
        env.push(("COPILOT_PKG_CACHE_HOME".into(), install.join(".copilot-cache").display().to_string()));
        std::fs::create_dir_all(dir.path().join(".copilot")).unwrap();
        let trusted = json!({ "trustedFolders": [work], "appTipShown": true });
        std::fs::write(dir.path().join(".copilot/config.json"), trusted.to_string()).unwrap();
        let home = Self { dir, program, env };
        home.link();
        home
    }

    fn command(&self, program: &str) -> Command {
        let bin = self.dir.path().join("bin");
        let mut command = Command::new(program);
        command.env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())).stdin(Stdio::null());
        command
    }

    /// Runs `plexus link`, which adds its extension.
    fn link(&self) {
        let bin = self.dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(&self.program, bin.join("copilot")).unwrap();
        assert!(self.command(&self.program).arg("--version").output().unwrap().status.success());
        let records = self.dir.path().join("records");
        let output =
            self.command(exe()).args(["link", "copilot", "--yes"]).env("PLEXUS_HOME", records).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

/// Copilot in a terminal.
struct Copilot {
    terminal: Terminal,
    work: tempfile::TempDir,
    _home: Home,
}

impl Copilot {
    /// Starts it by hand, with no word changed. Copilot asks its person once in the folder about the extension.
    async fn start(model: &FakeModel, gateway_home: &Path) -> Self {
        let work = tempfile::tempdir().unwrap();
        let folder = work.path().canonicalize().unwrap();
        let home = Home::new(model, gateway_home, &folder);
        let terminal = Self::terminal(&home, &folder);
        let copilot = Self { terminal, work, _home: home };
        copilot.wrote(ELEVATED).await;
        copilot.press_until("2", ELEVATED).await;
        copilot.ready().await;
        copilot
    }

    fn terminal(home: &Home, folder: &Path) -> Terminal {
        let env: Vec<(&str, &str)> = home.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Terminal::open(Some(folder), (100, 40), &env, &[&home.program])
    }

    async fn ready(&self) {
        self.terminal.until("its composer", Terminal::text, |text| text.contains("? help")).await;
    }

    async fn wrote(&self, words: &str) {
        self.terminal.wrote(words, 1).await;
    }

    /// Types a prompt and sends it: Enter counts as pasted if it follows the text at once.
    async fn prompt(&self, text: &str) {
        self.ready().await;
        self.terminal.words(text);
        let end: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let end: String = end.chars().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect();
        self.terminal.until("the words in the composer", composer, |words| words.contains(&end)).await;
        self.press_while("Enter", |terminal| composer(terminal).contains(&end)).await;
    }

    /// The request that its dialog shows to others.
    async fn request(&self, gateway: &Gateway, session: &str) -> Value {
        let open = gateway.open_request(session);
        let Ok(request) = tokio::time::timeout(PATIENCE.saturating_sub(Duration::from_secs(5)), open).await else {
            panic!("no request: {}", self.terminal.all());
        };
        request
    }

    /// Waits until this is on the screen.
    async fn shows(&self, dialog: &str) {
        self.terminal.until(dialog, Terminal::text, |text| text.contains(dialog)).await;
    }

    /// Waits until a dialog has closed.
    async fn closed(&self, dialog: &str) {
        self.terminal.until("the end of the dialog", Terminal::text, |text| !text.contains(dialog)).await;
    }

    /// Presses a key until a dialog has closed: it is drawn a moment before it accepts keys.
    async fn press_until(&self, key: &str, dialog: &str) {
        self.shows(dialog).await;
        self.press_while(key, |terminal| terminal.text().contains(dialog)).await;
        // A key that was one too many stands in the terminal's own line.
        self.terminal.keys(&["C-u"]);
    }

    async fn press_while(&self, key: &str, so: impl Fn(&Terminal) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while so(&self.terminal) {
            assert!(Instant::now() < deadline, "{key} does nothing: {}", self.terminal.text());
            self.terminal.keys(&[key]);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }
}

/// The text in the composer, between the last two lines across the screen, without white space.
fn composer(terminal: &Terminal) -> String {
    let text = terminal.text();
    let mut parts = text.rsplit("────────────────────\n");
    parts.nth(1).unwrap_or_default().chars().filter(|c| !c.is_whitespace()).collect()
}

#[tokio::test]
async fn copilot_terminal_is_watched_prompted_and_answered_from_both_sides() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let copilot = Copilot::start(&model, &gateway.home).await;
    let session = appeared(&gateway, DIALECT).await;
    let (_, info) = gateway.get(&format!("/v1/sessions/{session}")).await;
    assert_eq!(info["cwd"].as_str().unwrap(), copilot.work.path().canonicalize().unwrap().to_str().unwrap());

    // Text.
    copilot.prompt("FAKE:text it is seen elsewhere").await;
    until_said(&gateway, &session, "it is seen elsewhere").await;
    let info = until_state(&gateway, &session, "idle").await;
    assert_eq!(info["title"], "FAKE:text it is seen elsewhere");

    assert_tokens_told(&gateway, &session).await;

    // A question, answered at the terminal: everybody else is told.
    copilot.prompt("FAKE:shell touch one ;; text first done").await;
    let request = copilot.request(&gateway, &session).await;
    assert!(request["display"].to_string().contains("touch one"), "{request}");
    copilot.press_until("1", COMMAND).await;
    let over = resolved(&gateway, &request).await;
    assert_eq!(over["receipt"]["resolved_by"]["name"], "the terminal", "{over}");
    until_said(&gateway, &session, "first done").await;
    until_state(&gateway, &session, "idle").await;
    assert!(copilot.file("one").exists());

    // A question, answered elsewhere: the terminal's dialog closes.
    copilot.prompt("FAKE:shell touch two ;; text second done").await;
    let request = copilot.request(&gateway, &session).await;
    copilot.shows(COMMAND).await;
    let (status, receipt) = gateway.choose(&request, "approve-once").await;
    assert_eq!(status, 200, "{receipt}");
    copilot.closed(COMMAND).await;
    until_said(&gateway, &session, "second done").await;
    assert!(copilot.file("two").exists());
    until_state(&gateway, &session, "idle").await;

    // Denied elsewhere, with the reason: the agent goes on.
    copilot.prompt("FAKE:shell touch three").await;
    let request = copilot.request(&gateway, &session).await;
    answer(&gateway, &request, json!({ "option_id": "reject", "reason": "not from the phone" })).await;
    until_said(&gateway, &session, "User feedback: not from the phone").await;
    assert!(!copilot.file("three").exists());
    until_state(&gateway, &session, "idle").await;

    // Allowed for the rest of the session: the next one is not asked.
    copilot.prompt("FAKE:shell touch five ;; shell touch six ;; text sixth done").await;
    let request = copilot.request(&gateway, &session).await;
    answer(&gateway, &request, json!({ "option_id": "approve-for-session" })).await;
    until_said(&gateway, &session, "sixth done").await;
    assert!(copilot.file("five").exists() && copilot.file("six").exists());
    until_state(&gateway, &session, "idle").await;

    // A change to a file.
    let input = json!({ "path": copilot.file("four.txt"), "file_text": "fourth words" });
    copilot.prompt(&format!("FAKE:tool create {input} ;; text fourth done")).await;
    let request = copilot.request(&gateway, &session).await;
    assert!(request["display"].to_string().contains("fourth words"), "{request}");
    answer(&gateway, &request, json!({ "option_id": "approve-once" })).await;
    until_said(&gateway, &session, "fourth done").await;
    assert_eq!(std::fs::read_to_string(copilot.file("four.txt")).unwrap().trim(), "fourth words");
    until_state(&gateway, &session, "idle").await;

    // A prompt from elsewhere arrives; it is stopped from elsewhere.
    let run = gateway.prompt(&session, "FAKE:text a prompt from the page").await;
    let events = gateway.until_ended(&session, &run).await;
    let end = events.iter().rfind(|event| event["kind"] == "run_ended").unwrap();
    assert_eq!(end["event"]["status"], "completed", "{end}");
    assert!(said(&events, Some(&run)).contains("a prompt from the page"));
    copilot.terminal.wrote("a prompt from the page", 2).await;
    let run = gateway.prompt(&session, "FAKE:stall 5").await;
    until_said(&gateway, &session, "part-5").await;
    let (status, body) = gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({})).await;
    assert!(status < 300, "{body}");
    let events = gateway.until_ended(&session, &run).await;
    let end = events.iter().rfind(|event| event["kind"] == "run_ended").unwrap();
    assert_eq!(end["event"]["status"], "cancelled", "{end}");
    copilot.ready().await;

    // It ends when the terminal does.
    drop(copilot.terminal);
    let info = until_state(&gateway, &session, "exited").await;
    assert!(info["linked"].is_null() && info["restartable"].is_null(), "{info}");
}

async fn answer(gateway: &Gateway, request: &Value, answer: Value) {
    let id = request["request_id"].as_str().unwrap();
    let (status, body) = gateway.post(&format!("/v1/requests/{id}/answer"), answer).await;
    assert_eq!(status, 200, "{body}");
}

#[tokio::test]
async fn copilot_terminal_forms_are_filled_in_on_either_side() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let copilot = Copilot::start(&model, &gateway.home).await;
    let session = appeared(&gateway, DIALECT).await;
    let ask = |message: &str| {
        let field = json!({ "type": "string", "enum": ["Red", "Blue"], "title": "Colour" });
        let schema = json!({ "type": "object", "properties": { "colour": field }, "required": ["colour"] });
        format!("FAKE:tool ask_user {}", json!({ "message": message, "requestedSchema": schema }))
    };

    copilot.prompt(&ask("Which one here?")).await;
    let request = copilot.request(&gateway, &session).await;
    copilot.press_until("Enter", FORM).await;
    let over = resolved(&gateway, &request).await;
    assert_eq!(over["receipt"]["resolved_by"]["name"], "the terminal", "{over}");
    until_said(&gateway, &session, "User responded: Red").await;
    until_state(&gateway, &session, "idle").await;

    copilot.prompt(&ask("Which one elsewhere?")).await;
    let request = copilot.request(&gateway, &session).await;
    copilot.shows(FORM).await;
    assert_eq!(request["message"], "Which one elsewhere?", "{request}");
    answer(&gateway, &request, json!({ "ids": ["Blue"] })).await;
    copilot.closed(FORM).await;
    until_said(&gateway, &session, "User responded: Blue").await;
    until_state(&gateway, &session, "idle").await;

    // Another session in the same terminal: the one before ends. Copilot does not ask about the extension again in this folder.
    copilot.ready().await;
    copilot.terminal.words("/clear");
    copilot.wrote("/clear").await;
    copilot.terminal.keys(&["Enter"]);
    until_state(&gateway, &session, "exited").await;
    let next = appeared(&gateway, DIALECT).await;
    assert_ne!(next, session);
    copilot.prompt("FAKE:text said in the next one").await;
    until_said(&gateway, &next, "said in the next one").await;
}

#[tokio::test]
async fn copilot_terminal_question_has_one_decision_when_both_answer_at_once() {
    let model = FakeModel::start();
    let gateway = Gateway::start("").await;
    let copilot = Copilot::start(&model, &gateway.home).await;
    let session = appeared(&gateway, DIALECT).await;
    for round in 0..rounds("questions that are answered at the terminal and elsewhere at once", 3, 100) {
        let file = copilot.file("count");
        let before = std::fs::read_to_string(&file).unwrap_or_default().len();
        copilot.prompt(&format!("FAKE:shell printf x >>{} ;; text round {round} done", file.display())).await;
        let request = copilot.request(&gateway, &session).await;
        copilot.shows(COMMAND).await;
        let press = tokio::task::spawn_blocking({
            let mut keys = copilot.terminal.tmux();
            move || keys.args(["send-keys", "-t", "it", "1"]).status().unwrap()
        });
        let (answered, pressed) = tokio::join!(gateway.choose(&request, "approve-once"), press);
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
        copilot.terminal.keys(&["C-u"]);
    }
}

#[tokio::test]
async fn copilot_terminal_never_notices_what_happens_to_the_gateway() {
    let model = FakeModel::start();
    let mut gateway = Gateway::start("").await;
    let copilot = Copilot::start(&model, &gateway.home).await;
    let session = appeared(&gateway, DIALECT).await;

    // Killed while a question is open.
    copilot.prompt("FAKE:shell touch one ;; text first done").await;
    let request = copilot.request(&gateway, &session).await;
    gateway.kill();
    copilot.shows(COMMAND).await;
    gateway.again().await;
    until_state(&gateway, &session, "waiting").await;
    let again = copilot.request(&gateway, &session).await;
    assert_eq!(again["request_id"], request["request_id"], "it is the same question");
    let (status, receipt) = gateway.choose(&again, "approve-once").await;
    assert_eq!(status, 200, "{receipt}");
    until_said(&gateway, &session, "first done").await;
    copilot.closed(COMMAND).await;
    until_state(&gateway, &session, "idle").await;

    // Killed while text streams; it goes on without a gateway.
    copilot.prompt("FAKE:long 300 20 ;; text x").await;
    until_state(&gateway, &session, "running").await;
    until_said(&gateway, &session, "chunk-0010").await;
    gateway.kill();
    copilot.wrote("chunk-0300").await;
    copilot.prompt("FAKE:text said to nobody").await;
    copilot.terminal.wrote("said to nobody", 2).await;
    gateway.again().await;
    let text = until_said(&gateway, &session, "said to nobody").await;
    until_state(&gateway, &session, "idle").await;
    assert_chunks(&text, 1..=300, 1);
    assert_eq!(text.matches("said to nobody").count(), 1, "{text}");

    // Killed while text streams, and back before it ends.
    copilot.prompt("FAKE:long 310 20 ;; text x").await;
    until_state(&gateway, &session, "running").await;
    until("some of the text", async || {
        let text = said(&gateway.events(&session).await, None);
        (text.matches("chunk-0020 ").count() == 2).then_some(())
    })
    .await;
    gateway.kill();
    gateway.again().await;
    let text = until_said(&gateway, &session, "chunk-0310 ").await;
    until_state(&gateway, &session, "idle").await;
    assert_chunks(&text, 1..=300, 2);
    assert_chunks(&text, 301..=310, 1);

    // No gateway at all: the terminal's own dialog is there.
    gateway.kill();
    copilot.prompt("FAKE:shell touch three ;; text third done").await;
    copilot.press_until("1", COMMAND).await;
    copilot.terminal.wrote("third done", 2).await;
    gateway.again().await;
    until_said(&gateway, &session, "third done").await;
    until_state(&gateway, &session, "idle").await;
    let (_, body) = gateway.get("/v1/requests?state=open").await;
    assert_eq!(body["requests"], json!([]), "nothing is asked any more");
}

/// Each of these chunks is there so often.
fn assert_chunks(text: &str, chunks: std::ops::RangeInclusive<usize>, times: usize) {
    for chunk in chunks {
        assert_eq!(text.matches(&format!("chunk-{chunk:04} ")).count(), times, "{chunk} in {text}");
    }
}

#[tokio::test]
async fn copilot_extension_is_silent_where_it_is_not_wanted() {
    let model = FakeModel::start();
    let (dir, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = work.path().canonicalize().unwrap();
    let home = Home::new(&model, &dir.path().join("home"), &folder);
    let agent = home.env.iter().filter(|(name, _)| name != "PLEXUS_HOME");
    let env: Vec<String> = agent.map(|(name, value)| format!("{name} = {}", json!(value))).collect();
    let more = format!("[runtime.env]\n{}", env.join("\n"));
    let gateway = Gateway::start_in(dir, &held_runtime("acp", &[&home.program, "--acp"], &more)).await;
    let extension = home.dir.path().join(".copilot/extensions/plexus/extension.mjs");
    let loaded = home.dir.path().join("loaded");
    let source = std::fs::read_to_string(&extension).unwrap();
    let mark = format!("import {{ writeFileSync as mark }} from \"node:fs\";\nmark({}, \"\");\n", json!(loaded));
    std::fs::write(&extension, format!("{mark}{source}")).unwrap();
    // A prompt as an argument, in a terminal; and one in a pipe.
    let script = home.dir.path().join("script");
    let program = &home.program;
    let lines = [
        format!("{program} --prompt='FAKE:text said to a script'"),
        format!("echo 'FAKE:text said to a pipe' | {program}"),
        "echo all of it; sleep 600\n".to_owned(),
    ];
    std::fs::write(&script, lines.join("\n")).unwrap();
    let env: Vec<(&str, &str)> = home.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let terminal = Terminal::open(Some(&folder), (100, 60), &env, &["sh", script.to_str().unwrap()]);
    for words in ["said to a script", "said to a pipe", "all of it"] {
        terminal.wrote(words, 1).await;
    }
    let text = terminal.all();
    // What it would say if the extension asked for something.
    assert!(!text.contains("Approval check"), "{text}");
    assert!(loaded.exists(), "the extension was loaded");
    // An agent that the gateway started.
    let acp = gateway.session("acp").await;
    let run = gateway.prompt(&acp, "FAKE:text said by an agent").await;
    assert!(said(&gateway.until_ended(&acp, &run).await, Some(&run)).contains("said by an agent"));
    // A terminal whose person says no: it goes on alone.
    let copilot = Copilot { terminal: Copilot::terminal(&home, &folder), work, _home: home };
    copilot.press_until("3", ELEVATED).await;
    copilot.prompt("FAKE:shell touch alone ;; text alone done").await;
    copilot.press_until("1", COMMAND).await;
    copilot.terminal.wrote("alone done", 2).await;
    assert!(copilot.file("alone").exists());
    assert!(!copilot.terminal.text().contains("waiting on extensions"), "{}", copilot.terminal.text());
    let (_, body) = gateway.get("/v1/runtimes").await;
    assert_eq!(body["runtimes"].as_array().unwrap().len(), 1, "nobody was heard: {body}");
}
