//! Plain `codex`, started by hand in a real terminal, is in the inbox by itself: its terminal UI, the daemon that it starts, the real
//! gateway and a model on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::agents::{self, FakeModel};
use common::gateway::{Gateway, PATIENCE, assert_whole, said};
use common::moments::{rounds, until_so};
use common::terminal::Terminal;
use serde_json::{Value, json};

/// The runtime that the gateway attaches by itself.
const RUNTIME: &str = "codex-terminal";
/// The text of the terminal when it accepts a prompt.
const COMPOSER: &str = "Ask Codex to do anything";
/// The text of the terminal while it asks.
const DIALOG: &str = "Would you like to run the following command?";
/// Longer than the pause by which Codex tells a typed key from a pasted one.
const PASTED: Duration = Duration::from_millis(250);
/// An address where nothing listens: what would call another machine gets nowhere.
const NOWHERE: &str = "http://127.0.0.1:9";

/// A home folder with Codex set up, as a person has it.
struct Machine {
    program: String,
    env: Vec<(String, String)>,
    home: tempfile::TempDir,
    work: tempfile::TempDir,
    _model: FakeModel,
}

impl Machine {
    async fn new() -> Self {
        let start = || (agents::install_dir(), FakeModel::start());
        let (install, model) = tokio::task::spawn_blocking(start).await.unwrap();
        let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let setup = agents::codex_app(&install, home.path(), model.port());
        let file = home.path().join(".codex/config.toml");
        let config = std::fs::read_to_string(&file).unwrap();
        let folder = work.path().canonicalize().unwrap();
        let trusted = format!("\n[projects.{}]\ntrust_level = \"trusted\"\n", json!(folder));
        // What a terminal asks once, and a person has answered long ago.
        let answered =
            "\n[tui]\nscreen_reader_detection_done = true\n\n[notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"\n";
        std::fs::write(&file, format!("{config}{trusted}{answered}")).unwrap();
        let mut env = setup.env;
        let offline = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].map(|name| (name.to_owned(), NOWHERE.to_owned()));
        env.extend(offline);
        env.push(("NO_PROXY".into(), "127.0.0.1,localhost".into()));
        Self { program: setup.command[0].clone(), env, home, work, _model: model }
    }

    /// `codex ARGS`, outside of a terminal.
    fn codex(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).envs(self.env.iter().cloned()).current_dir(self.work.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// A person types `codex` in a terminal.
    async fn open(&self) -> Terminal {
        let env: Vec<_> = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let terminal = Terminal::open(Some(self.work.path()), (110, 40), &env, &[&self.program]);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = terminal.text();
            if screen.contains(COMPOSER) {
                return terminal;
            }
            if screen.contains("Use existing model") {
                terminal.keys(&["Escape"]);
            }
            assert!(Instant::now() < deadline, "codex shows no prompt:\n{screen}");
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
    }

    async fn gateway(&self) -> Gateway {
        let env: Vec<_> = self.env.iter().filter(|(name, _)| name == "HOME" || name == "CODEX_HOME").collect();
        let env: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Gateway::start_with(tempfile::tempdir().unwrap(), "", &env).await
    }

    fn daemon_folder(&self) -> PathBuf {
        self.home.path().join(".codex/app-server-daemon")
    }

    /// The process in one of the daemon's files.
    fn pid(&self, file: &str) -> Option<u64> {
        let json: Value = serde_json::from_slice(&std::fs::read(self.daemon_folder().join(file)).ok()?).ok()?;
        json["pid"].as_u64()
    }

    /// The work folder, as programs see it.
    fn folder(&self) -> PathBuf {
        self.work.path().canonicalize().unwrap()
    }
}

impl Drop for Machine {
    /// The daemon and its updater run on without a terminal: they end with the test.
    fn drop(&mut self) {
        let _ = self.codex(&["app-server", "daemon", "stop"]).status();
        for pid in ["daemon.pid", "daemon-updater.pid"].iter().filter_map(|file| self.pid(file)) {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
        }
        // Killed, the updater leaves its socket in a folder that all daemons of this user share.
        let link = self.daemon_folder().join("daemon-updater.sock");
        if let Ok(socket) = std::fs::read_link(link) {
            let _ = std::fs::remove_file(&socket);
            let _ = std::fs::remove_file(socket.with_extension("lock"));
        }
    }
}

/// Types a prompt and sends it.
async fn types(terminal: &Terminal, words: &str) {
    // A key that came too late for a dialog stands in the composer.
    terminal.keys(&["C-u"]);
    terminal.words(words);
    let typed = squeezed(words);
    terminal.until("the typed prompt", composed, |composed| composed == typed).await;
    // Keys that come at once are a paste to Codex, and an Enter among them a new line.
    tokio::time::sleep(PASTED).await;
    terminal.keys(&["Enter"]);
    terminal.until("the prompt on its way", composed, |composed| composed != typed).await;
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The text in the terminal's composer, without spaces: from its mark to an empty line.
fn composed(terminal: &Terminal) -> String {
    let screen = terminal.text();
    let Some((_, rest)) = screen.rsplit_once("\n› ") else { return String::new() };
    squeezed(rest.split("\n\n").next().unwrap_or_default())
}

async fn shows(terminal: &Terminal, words: &str) {
    terminal.until(words, Terminal::text, |screen| screen.contains(words)).await;
}

async fn dialog_closes(terminal: &Terminal) {
    terminal.until("the end of the dialog", Terminal::text, |screen| !screen.contains(DIALOG)).await;
}

async fn sessions(gateway: &Gateway) -> Vec<Value> {
    let (_, body) = gateway.get("/v1/sessions").await;
    let all = body["sessions"].as_array().unwrap().iter();
    all.filter(|session| session["runtime_id"] == RUNTIME).cloned().collect()
}

/// Waits until the session's events satisfy `found`; returns them.
async fn until(gateway: &Gateway, session: &str, found: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let events = gateway.events(session).await;
        if found(&events) {
            return events;
        }
        assert!(Instant::now() < deadline, "it did not happen: {events:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The run that a message of the terminal began.
fn run_of(events: &[Value], words: &str) -> Option<String> {
    let is_it = |event: &&Value| event["kind"] == "user_message_chunk" && event["event"]["content"]["text"] == words;
    events.iter().rfind(is_it).map(|event| event["run_id"].as_str().unwrap().to_owned())
}

/// A prompt of the terminal, up to the end of its run.
async fn until_over(gateway: &Gateway, session: &str, words: &str) -> (String, Vec<Value>) {
    let events = until(gateway, session, |events| run_of(events, words).is_some()).await;
    let run = run_of(&events, words).unwrap();
    let events = gateway.until_ended(session, &run).await;
    (run, events)
}

fn of_run<'a>(events: &'a [Value], run: &str, kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["run_id"] == run && event["kind"] == kind).collect()
}

fn completed(events: &[Value], run: &str) {
    let ended = of_run(events, run, "run_ended");
    assert_eq!(ended.len(), 1, "{ended:#?}");
    assert_eq!(ended[0]["event"]["status"], "completed", "{ended:#?}");
}

/// The end of the only request of a run.
fn resolved<'a>(events: &'a [Value], run: &str) -> &'a Value {
    let all = of_run(events, run, "request_resolved");
    assert_eq!(all.len(), 1, "one decision: {all:#?}");
    &all[0]["event"]
}

/// The model's text for `FAKE:long N`.
fn long(n: usize) -> String {
    (1..=n).map(|k| format!("chunk-{k:04} ")).collect()
}

/// Waits until the session is in this state.
async fn stands(gateway: &Gateway, session: &str, state: &str) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, info) = gateway.get(&format!("/v1/sessions/{session}")).await;
        if info["state"] == state {
            return info;
        }
        assert!(Instant::now() < deadline, "not {state}: {info}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// ---- the steps ------------------------------------------------------------------------------------------------------

/// Codex is started, and the session is there before anybody has written in it.
async fn appears(gateway: &Gateway, machine: &Machine) -> (Terminal, String) {
    let (_, runtimes) = gateway.get("/v1/runtimes").await;
    assert_eq!(runtimes["runtimes"], json!([]), "nothing is listed while no daemon runs");
    let terminal = machine.open().await;
    until_so("the session is listed", async || !sessions(gateway).await.is_empty()).await;
    let listed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let session = sessions(gateway).await.remove(0);
    // Codex names a thread by the time of its beginning (UUIDv7).
    let name = session["native_id"].as_str().unwrap().replace('-', "");
    let began = u128::from_str_radix(&name[..12], 16).unwrap();
    println!("listed {} ms after Codex began it", listed.saturating_sub(began));
    assert_eq!(session["cwd"], json!(machine.folder()), "{session}");
    assert_eq!(session["state"], "idle", "{session}");
    (terminal, session["session_id"].as_str().unwrap().to_owned())
}

async fn text_and_tools_are_seen(gateway: &Gateway, session: &str, terminal: &Terminal, work: &Path) {
    let words = "FAKE:text hello from the terminal";
    types(terminal, words).await;
    let (run, events) = until_over(gateway, session, words).await;
    assert_eq!(said(&events, Some(&run)), "hello from the terminal");
    completed(&events, &run);
    let info = stands(gateway, session, "idle").await;
    assert_eq!(info["title"], words, "named after the first prompt: {info}");

    // Answered at the terminal: the request closes, and says where.
    let file = work.join("terminal");
    let words = format!("FAKE:shell touch {}", file.display());
    types(terminal, &words).await;
    let request = gateway.open_request(session).await;
    assert!(request["display"].as_str().unwrap().contains("touch"), "{request}");
    shows(terminal, DIALOG).await;
    terminal.keys(&["y"]);
    let (run, events) = until_over(gateway, session, &words).await;
    completed(&events, &run);
    assert!(file.exists());
    let closed = resolved(&events, &run);
    assert_eq!((&closed["state"], &closed["resolved_by"]["device_id"]), (&json!("withdrawn"), &json!("elsewhere")));
    let tools = of_run(&events, &run, "tool_call_update");
    assert_eq!(tools.last().unwrap()["event"]["status"], "completed", "{tools:#?}");
    let (status, late) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    assert_eq!((status, &late["state"]), (410, &json!("withdrawn")), "a late answer: {late}");
}

async fn an_answer_of_plexus_closes_the_dialog(gateway: &Gateway, session: &str, terminal: &Terminal, work: &Path) {
    let log = work.join("phone");
    let words = format!("FAKE:shell echo ran >> {}", log.display());
    types(terminal, &words).await;
    let request = gateway.open_request(session).await;
    shows(terminal, DIALOG).await;
    let (status, receipt) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    assert_eq!((status, &receipt["won"]), (200, &json!(true)), "{receipt}");
    dialog_closes(terminal).await;
    let (run, events) = until_over(gateway, session, &words).await;
    completed(&events, &run);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "ran\n");
    assert_eq!(resolved(&events, &run)["state"], "answered");
}

/// Both answer at the same moment: one decision, and the command runs once.
async fn both_answer_at_once(gateway: &Gateway, session: &str, terminal: &Terminal, work: &Path) {
    let mut of_plexus = 0;
    let all = rounds("answers at both ends at once", 8, 100);
    for round in 0..all {
        let log = work.join(format!("both-{round}"));
        let words = format!("FAKE:shell echo ran >> {}", log.display());
        types(terminal, &words).await;
        let request = gateway.open_request(session).await;
        shows(terminal, DIALOG).await;
        let option = Gateway::option(&request, "allow_once");
        // The key goes first by more and more: somewhere between, they meet.
        let answer = async {
            tokio::time::sleep(Duration::from_millis(7 * (round % 8))).await;
            gateway.choose(&request, &option).await
        };
        let key = async { terminal.keys(&["y"]) };
        let ((status, receipt), ()) = tokio::join!(answer, key);
        assert!(status == 200 || status == 410, "{status} {receipt}");
        let (run, events) = until_over(gateway, session, &words).await;
        completed(&events, &run);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "ran\n", "round {round}: it runs once");
        of_plexus += u64::from(resolved(&events, &run)["state"] == "answered");
        dialog_closes(terminal).await;
    }
    println!("{of_plexus} of {all} decided by Plexus, the others at the terminal");
}

async fn a_prompt_of_plexus_arrives(gateway: &Gateway, session: &str, terminal: &Terminal) {
    let run = gateway.prompt(session, "FAKE:text hello from the phone").await;
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(said(&events, Some(&run)), "hello from the phone");
    assert!(of_run(&events, &run, "user_message_chunk").len() <= 1, "the prompt is not repeated");
    terminal.wrote("FAKE:text hello from the phone", 1).await;
    terminal.until("the answer", Terminal::all, |screen| screen.contains("• hello from the phone")).await;
}

/// Killed while a question is open, once answered by Plexus afterwards, once at the terminal meanwhile.
async fn killed_while_it_asks(gateway: &mut Gateway, session: &str, terminal: &Terminal, work: &Path) {
    for at_terminal in [false, true] {
        let log = work.join(format!("killed-{at_terminal}"));
        let words = format!("FAKE:shell echo ran >> {}", log.display());
        types(terminal, &words).await;
        let request = gateway.open_request(session).await;
        shows(terminal, DIALOG).await;
        gateway.kill();
        shows(terminal, DIALOG).await;
        if at_terminal {
            terminal.keys(&["y"]);
            dialog_closes(terminal).await;
            gateway.again().await;
        } else {
            gateway.again().await;
            stands(gateway, session, "waiting").await;
            assert_eq!(gateway.open_request(session).await["request_id"], request["request_id"], "the same one");
            let (status, receipt) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
            assert_eq!((status, &receipt["won"]), (200, &json!(true)), "{receipt}");
            dialog_closes(terminal).await;
        }
        let (run, events) = until_over(gateway, session, &words).await;
        completed(&events, &run);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "ran\n");
        let state = if at_terminal { "withdrawn" } else { "answered" };
        assert_eq!(resolved(&events, &run)["state"], state);
    }
}

/// Returns its run.
async fn killed_while_text_streams(gateway: &mut Gateway, session: &str, terminal: &Terminal) -> String {
    let words = "FAKE:long 100 20";
    types(terminal, words).await;
    let events = until(gateway, session, |events| {
        run_of(events, words).is_some_and(|run| said(events, Some(&run)).contains("chunk-0010"))
    })
    .await;
    let run = run_of(&events, words).unwrap();
    gateway.kill();
    terminal.wrote("chunk-0060", 1).await;
    gateway.again().await;
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(said(&events, Some(&run)), long(100), "nothing lost, nothing doubled");
    completed(&events, &run);
    terminal.wrote("chunk-0100", 1).await;
    run
}

/// The daemon is stopped, and started again: its sessions are past, and then there again.
async fn the_daemon_goes_and_comes_back(gateway: &Gateway, session: &str, terminal: &Terminal, machine: &Machine) {
    for killed in [false, true] {
        if killed {
            let pid = machine.pid("daemon.pid").expect("the daemon's process").to_string();
            assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
        } else {
            assert!(machine.codex(&["app-server", "daemon", "stop"]).status().unwrap().success());
        }
        stands(gateway, session, "exited").await;
        let listed = async || gateway.get("/v1/runtimes").await.1["runtimes"] != json!([]);
        until_so("it is not listed any more", async || !listed().await).await;
        assert!(said(&gateway.events(session).await, None).contains("hello from the terminal"), "it can be read");
        assert!(machine.codex(&["app-server", "daemon", "start"]).status().unwrap().success());
        stands(gateway, session, "idle").await;
        // The terminal connects again by itself.
        terminal.until("the terminal is back", Terminal::text, |screen| !screen.contains("Reconnecting")).await;
        let words = format!("FAKE:text back {killed}");
        types(terminal, &words).await;
        let (run, events) = until_over(gateway, session, &words).await;
        assert_eq!(said(&events, Some(&run)), format!("back {killed}"));
        completed(&events, &run);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex_in_a_terminal_is_watched_prompted_and_answered() {
    let machine = Machine::new().await;
    let mut gateway = machine.gateway().await;
    let (terminal, session) = appears(&gateway, &machine).await;
    let (session, work) = (session.as_str(), machine.folder());
    text_and_tools_are_seen(&gateway, session, &terminal, &work).await;
    an_answer_of_plexus_closes_the_dialog(&gateway, session, &terminal, &work).await;
    both_answer_at_once(&gateway, session, &terminal, &work).await;
    a_prompt_of_plexus_arrives(&gateway, session, &terminal).await;
    killed_while_it_asks(&mut gateway, session, &terminal, &work).await;
    let torn = killed_while_text_streams(&mut gateway, session, &terminal).await;
    the_daemon_goes_and_comes_back(&gateway, session, &terminal, &machine).await;

    let events = gateway.events(session).await;
    assert_whole(&events);
    let raw: Vec<&Value> = events.iter().filter(|event| event["kind"] == "raw").collect();
    assert!(raw.is_empty(), "all that Codex says is understood: {raw:#?}");
    // Of a message that streams while no gateway runs, the text comes with its end, and that is said.
    // On a busy machine another message may begin just then; its text, too, comes whole.
    let whole = |event: &Value| {
        event["event"]["message"].as_str().is_some_and(|words| words.contains("the complete message follows"))
    };
    let gaps = events.iter().filter(|event| event["event"]["code"] == "gap" && event["run_id"] != torn.as_str());
    let gaps: Vec<&Value> = gaps.filter(|event| !whole(event)).collect();
    assert!(gaps.is_empty(), "beside {torn}: {gaps:#?}");
    // The threads in which Codex names conversations are nobody's sessions.
    assert_eq!(sessions(&gateway).await.len(), 1);
    let log = gateway.stderr();
    assert!(!log.contains("could not be opened"), "{log}");
    assert!(gateway.stop().await.success());
}

/// A prompt of Plexus can be the first one of a terminal, and what `--no-daemon` runs is out of reach.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex_terminal_gets_its_first_prompt_from_plexus() {
    let machine = Machine::new().await;
    let terminal = machine.open().await;
    let mut gateway = machine.gateway().await;
    until_so("the session is listed", async || !sessions(&gateway).await.is_empty()).await;
    let session = sessions(&gateway).await.remove(0)["session_id"].as_str().unwrap().to_owned();
    // It goes on across a gateway, though nothing was said yet.
    until(&gateway, &session, |events| !events.is_empty()).await;
    gateway.kill();
    gateway.again().await;
    stands(&gateway, &session, "idle").await;
    a_prompt_of_plexus_arrives(&gateway, &session, &terminal).await;
    let words = "FAKE:text and from here";
    types(&terminal, words).await;
    let (run, events) = until_over(&gateway, &session, words).await;
    assert_eq!(said(&events, Some(&run)), "and from here");
    completed(&events, &run);
    assert_whole(&events);
    assert_eq!(sessions(&gateway).await.len(), 1);

    let env: Vec<_> = machine.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let alone = Terminal::open(Some(machine.work.path()), (110, 40), &env, &[&machine.program, "--no-daemon"]);
    shows(&alone, COMPOSER).await;
    types(&alone, "FAKE:text on my own").await;
    alone.until("the answer", Terminal::all, |screen| screen.contains("• on my own")).await;
    assert_eq!(sessions(&gateway).await.len(), 1, "it is not reached");
    assert!(gateway.stop().await.success());
}
