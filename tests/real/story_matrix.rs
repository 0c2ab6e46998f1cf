//! Every client with every agent: the clients of `tests/clients`, and the real agents with a loopback model, the demo agent and a
//! scripted Codelia. The table in `docs/clients.md` is compared with the results.
//!
//! A cell passes (`yes`), or the client's protocol does not support it (declared in [`CLIENTS`]), or it fails, and the test of its
//! agent with it. `PLEXUS_WRITE_DOCS=1` writes the table; `STORY_CLIENT=curl,bridge` runs only these clients.
//!
//! The agents of this repository run every cell. Each of the real ones runs a third of them, so that every client runs every scenario
//! with one real agent, and meets each real agent in two scenarios; `PLEXUS_ROUNDS=full` runs all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::agents::{self, AgentSetup, FakeModel};
use common::cast::Player;
use common::gateway::{Gateway, PATIENCE, exe, said};
use common::moments::rounds;
use common::verdicts;
use serde_json::{Value, json};

// ------------------------------------------------------------------------------------ clients

/// A kind of client.
struct Kind {
    /// The player.
    player: &'static str,
    /// The title in the table.
    title: &'static str,
    /// Scenarios that the protocol does not support, and why.
    cannot: &'static [(Scenario, &'static str)],
}

/// The clients in the order of the document.
const CLIENTS: &[Kind] = &[
    Kind { player: "acp-ws", title: "ACP: the official TypeScript SDK over WebSocket", cannot: &[] },
    Kind { player: "acp-http", title: "ACP: the official TypeScript SDK over HTTP", cannot: &[] },
    Kind { player: "acp-rust", title: "ACP: the official Rust SDK over HTTP", cannot: &[] },
    Kind {
        player: "bridge",
        title: "an ACP editor (`plexus bridge acp`, the official TypeScript SDK over stdio)",
        cannot: &[],
    },
    Kind {
        player: "acpx",
        title: "acpx, through `plexus bridge acp`",
        cannot: &[
            (Scenario::AnsweredElsewhere, "without a terminal it answers each request at once"),
            (Scenario::LateJoin, "it shows only its own prompts"),
            (Scenario::Reconnect, "it shows only its own prompts"),
        ],
    },
    Kind { player: "codelia-tui", title: "the Codelia TUI, through `plexus bridge codelia`", cannot: &[] },
    Kind { player: "ag-ui", title: "AG-UI: `@ag-ui/client`", cannot: &[] },
    Kind {
        player: "mirror",
        title: "a Gemini UI-mirror page (`ws`), with the remote control",
        cannot: &[
            (Scenario::AnsweredThere, "it shows requests but cannot answer them"),
            (Scenario::Cancel, "it can only send prompts"),
        ],
    },
    Kind { player: "curl", title: "curl: HTTP and server-sent events", cannot: &[] },
    Kind { player: "eventsource", title: "`EventSource`", cannot: &[] },
    Kind { player: "native-ts", title: "the TypeScript client of this repository", cannot: &[] },
];

// ------------------------------------------------------------------------------------ agents

/// An agent, and the prompts for the scenarios.
struct Agent {
    /// The name in the table and the runtime.
    name: &'static str,
    /// A prompt for several pieces of text.
    stream: &'static str,
    /// A prompt for text, a pause (or a request if `asks`), and more text.
    long: fn(&Path) -> String,
    /// `true` if `long` waits for an answer in the middle.
    asks: bool,
    /// A prompt for a run that does not end soon.
    endless: &'static str,
    /// A prompt that asks to make this file.
    ask: fn(&Path) -> String,
    /// The third of the cells that it runs; `None` if it runs all.
    third: Option<usize>,
}

fn fake_ask(file: &Path) -> String {
    format!("FAKE:shell touch {}", file.display())
}

const REAL: Agent = Agent {
    name: "",
    stream: "FAKE:long 120 1",
    long: |_| "FAKE:long 200 12".into(),
    asks: false,
    endless: "FAKE:stall 3",
    ask: fake_ask,
    third: None,
};
const GEMINI: Agent = Agent { name: "gemini", third: Some(0), ..REAL };
const CODEX: Agent = Agent { name: "codex", third: Some(1), ..REAL };
const OPENCODE: Agent = Agent { name: "opencode", third: Some(2), ..REAL };
const DEMO: Agent = Agent {
    name: "demo",
    stream: "stream 120 1",
    long: |_| "stream 200 12".into(),
    asks: false,
    endless: "stream 20 ;; hang",
    // This agent makes no file: its text after the answer counts.
    ask: |_| "ask".into(),
    third: None,
};
const CODELIA: Agent = Agent {
    name: "codelia",
    stream: "say one ;; say two ;; say three",
    long: |file| format!("say one ;; run touch {} ;; say two", file.display()),
    asks: true,
    endless: "say one ;; hang",
    ask: |file| format!("run touch {}", file.display()),
    third: None,
};
/// In the order of the table.
const AGENTS: &[&str] = &["gemini", "codex", "opencode", "demo", "codelia"];

// ------------------------------------------------------------------------------------ scenarios

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    Stream,
    AnsweredThere,
    AnsweredElsewhere,
    Cancel,
    LateJoin,
    Reconnect,
}

/// In the order of the tables' rows.
const SCENARIOS: &[(Scenario, &str)] = &[
    (Scenario::Stream, "a prompt and its response, byte for byte"),
    (Scenario::AnsweredThere, "answers a permission request"),
    (Scenario::AnsweredElsewhere, "a permission request answered by another client"),
    (Scenario::Cancel, "cancels a run"),
    (Scenario::LateJoin, "joins in the middle of a message"),
    (Scenario::Reconnect, "resumes after a lost connection"),
];

/// A gateway with an agent; for an agent of one session, with one runtime for each scenario.
struct Stage {
    agent: Agent,
    runtimes: usize,
    gateway: Gateway,
    work: tempfile::TempDir,
    _home: tempfile::TempDir,
    _model: Option<FakeModel>,
}

impl Stage {
    /// A real agent with a loopback model.
    async fn real(agent: Agent, dialect: &str, setup: fn(&Path, &Path, u16) -> AgentSetup) -> Self {
        let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (install, model) =
            tokio::task::spawn_blocking(|| (agents::install_dir(), FakeModel::start())).await.unwrap();
        let setup = setup(&install, home.path(), model.port());
        let auth = setup.auth_method.map(|method| format!("auth_method = {}\n", json!(method))).unwrap_or_default();
        let config = runtime(agent.name, 0, dialect, &setup.command, work.path(), &setup.env, &auth);
        Self { agent, runtimes: 1, gateway: Gateway::start(&config).await, work, _home: home, _model: Some(model) }
    }

    /// An agent of this repository.
    async fn own(agent: Agent, runtimes: usize, dialect: &str, command: &[&str]) -> Self {
        let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        let log = work.path().join("log").display().to_string();
        let env = [("CODELIA_LOG".to_owned(), log)];
        let one = |n| runtime(agent.name, n, dialect, &command, work.path(), &env, "");
        let config: String = (0..runtimes).map(one).collect();
        Self { agent, runtimes, gateway: Gateway::start(&config).await, work, _home: home, _model: None }
    }

    async fn play(&self, kind: &Kind, scenario: Scenario) -> Result<(), String> {
        let n = SCENARIOS.iter().position(|(other, _)| *other == scenario).unwrap() % self.runtimes;
        let session = &self.gateway.session(&format!("{}-{n}", self.agent.name)).await;
        let played = self.scene(kind, scenario, session).await;
        // A client that shows what the runtime does shows the next scenario's session then.
        let (status, body) = self.gateway.delete(&format!("/v1/sessions/{session}")).await;
        assert!(status < 300, "{status} {body}");
        played
    }

    async fn scene(&self, kind: &Kind, scenario: Scenario, session: &str) -> Result<(), String> {
        let file = &self.work.path().join(format!("{}-{scenario:?}", kind.player));
        match scenario {
            Scenario::Stream => {
                let mut player = self.enter(kind, session).await;
                player.prompt(self.agent.stream).await;
                self.same_text(player, session).await
            }
            Scenario::AnsweredThere => {
                let mut player = self.enter(kind, session).await;
                player.prompt(&(self.agent.ask)(file)).await;
                player.until("asked").await;
                player.answer(true).await;
                let text = self.same_text(player, session).await;
                let request = self.resolved(session).await;
                ensure(request["event"]["ok"] == true, || format!("it was not allowed: {request}"))?;
                text
            }
            Scenario::AnsweredElsewhere => {
                let mut player = self.enter(kind, session).await;
                player.prompt(&(self.agent.ask)(file)).await;
                player.until("asked").await;
                self.allow(session).await;
                let told = player.until("resolved").await;
                ensure(told["allow"] != false, || format!("it was told something else: {told}"))?;
                self.same_text(player, session).await
            }
            Scenario::Cancel => {
                let mut player = self.enter(kind, session).await;
                player.prompt(self.agent.endless).await;
                self.has_begun(session).await;
                player.cancel().await;
                let text = self.same_text(player, session).await;
                let events = self.gateway.events(session).await;
                let end = events.iter().rfind(|event| event["kind"] == "run_ended").cloned().unwrap_or_default();
                ensure(end["event"]["status"] == "cancelled", || format!("it ended otherwise: {end}"))?;
                text
            }
            Scenario::LateJoin => {
                self.gateway.prompt(session, &(self.agent.long)(file)).await;
                self.has_begun(session).await;
                let player = self.enter(kind, session).await;
                self.go_on(session).await;
                self.same_text(player, session).await
            }
            Scenario::Reconnect => {
                let mut player = self.enter(kind, session).await;
                self.gateway.prompt(session, &(self.agent.long)(file)).await;
                self.has_begun(session).await;
                player.cut().await;
                player.resume().await;
                self.go_on(session).await;
                self.same_text(player, session).await
            }
        }
    }

    async fn enter(&self, kind: &Kind, session: &str) -> Player {
        Player::enter(kind.player, &self.gateway, session).await
    }

    /// Waits until the player sees the end of the run, and compares its text with the log.
    async fn same_text(&self, mut player: Player, session: &str) -> Result<(), String> {
        // There is one run in the session; it may have ended before a player was ready that came late or back.
        player.look_back();
        player.until("ended").await;
        let (has, log) = (player.text(), said(&self.gateway.events(session).await, None));
        player.quit().await;
        ensure(has == log, || format!("it has {} bytes, the log {}: {has:?} is not {log:?}", has.len(), log.len()))
    }

    /// Answers the open request, from another client than the player.
    async fn allow(&self, session: &str) {
        let request = self.gateway.open_request(session).await;
        let (status, body) = self.gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
        assert_eq!(status, 200, "{body}");
    }

    /// Answers the request in the middle of an agent's text, if it has one.
    async fn go_on(&self, session: &str) {
        if self.agent.asks {
            self.allow(session).await;
        }
    }

    /// Waits until the agent has sent text. (Some clients show only whole paragraphs.)
    async fn has_begun(&self, session: &str) {
        let deadline = Instant::now() + PATIENCE;
        while said(&self.gateway.events(session).await, None).is_empty() {
            assert!(Instant::now() < deadline, "the agent says nothing");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The event that ended the session's last request.
    async fn resolved(&self, session: &str) -> Value {
        let events = self.gateway.events(session).await;
        events.iter().rfind(|event| event["kind"] == "request_resolved").cloned().unwrap_or_default()
    }
}

fn runtime(
    name: &str,
    n: usize,
    dialect: &str,
    command: &[String],
    cwd: &Path,
    env: &[(String, String)],
    more: &str,
) -> String {
    let env: Vec<String> = env.iter().map(|(name, value)| format!("{name} = {}", json!(value))).collect();
    format!(
        "[[runtime]]\nid = \"{name}-{n}\"\ndialect = \"{dialect}\"\ncommand = {}\ncwd = {}\noutlive = false\nenv = {{ {} }}\n\
         ui_port = 0\nremote_port = 0\n{more}",
        json!(command),
        json!(cwd),
        env.join(", "),
    )
}

fn ensure(holds: bool, or: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(or()) }
}

// ------------------------------------------------------------------------------------ the play

/// The content of a cell.
type Verdict = String;

/// Runs every client on a stage; on a new stage each if the agent has one session only.
async fn play(set: impl AsyncFn() -> Stage) {
    let only = std::env::var("STORY_CLIENT").unwrap_or_default();
    let mut stage = Arc::new(set().await);
    let Agent { name: agent, third, .. } = stage.agent;
    let thirds = rounds("thirds of the cells of a real agent", 1, 3);
    let mut verdicts = BTreeMap::new();
    let wanted = |kind: &Kind| only.is_empty() || only.split(',').any(|one| one == kind.player);
    for (nth, kind) in CLIENTS.iter().enumerate().filter(|(_, kind)| wanted(kind)) {
        if stage.runtimes > 1 && !verdicts.is_empty() {
            stage = Arc::new(set().await);
        }
        for (at, &(scenario, row)) in SCENARIOS.iter().enumerate() {
            if third.is_some_and(|third| (nth + at + third) % 3 >= thirds) {
                continue;
            }
            let verdict = match kind.cannot.iter().find(|(other, _)| *other == scenario) {
                Some((_, why)) => format!("not in the protocol: {why}"),
                None => {
                    let (begin, stage) = (Instant::now(), Arc::clone(&stage));
                    // The others run even after a failure.
                    let played = tokio::spawn(async move { stage.play(kind, scenario).await }).await;
                    let verdict = match played {
                        Ok(Ok(())) => "yes".to_owned(),
                        Ok(Err(why)) => format!("FAILED: {why}"),
                        Err(why) => format!("FAILED: {why}"),
                    };
                    let took = begin.elapsed().as_secs_f32();
                    println!("{agent}: {}: {row}: {verdict} ({took:.1} s)", kind.player);
                    verdict
                }
            };
            verdicts.insert((kind.player, row), verdict);
        }
    }
    let failed: Vec<_> = verdicts.iter().filter(|(_, verdict)| verdict.starts_with("FAILED")).collect();
    assert!(failed.is_empty(), "{agent}: {failed:#?}");
    if only.is_empty() {
        hold_table(agent, &verdicts);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gemini() {
    play(async || Stage::real(GEMINI, "acp", agents::gemini).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex() {
    play(async || Stage::real(CODEX, "codex", agents::codex_app).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode() {
    play(async || Stage::real(OPENCODE, "acp", agents::opencode).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn demo() {
    play(async || Stage::own(DEMO, 1, "acp", &[exe(), "agent", "demo"]).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codelia() {
    let runtime = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/codelia_runtime.mjs");
    play(async || Stage::own(CODELIA, SCENARIOS.len(), "codelia", &["node", runtime]).await).await;
}

// ------------------------------------------------------------------------------------ the table

const BEGIN: &str = "<!-- matrix:begin -->\n";
const END: &str = "<!-- matrix:end -->\n";
/// The command that updates the table.
const FIX: &str = "PLEXUS_WRITE_DOCS=1 PLEXUS_ROUNDS=full cargo test --test real story_matrix";

/// The tests run in parallel, and each writes the verdicts of its agent.
static TABLE: Mutex<()> = Mutex::new(());

/// Verdicts by client's title, row and agent.
type Table = BTreeMap<(String, String, String), Verdict>;

fn doc() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/clients.md")
}

/// The text before the table, the table's text, the text after.
fn parts(text: &str) -> (&str, &str, &str) {
    let (before, rest) = text.split_once(BEGIN).expect("docs/clients.md has the table's begin");
    let (table, after) = rest.split_once(END).expect("docs/clients.md has the table's end");
    (before, table, after)
}

fn read(table: &str) -> Table {
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = table.lines().filter(|line| line.starts_with('|'));
    let head = lines.next().map(cells).unwrap_or_default();
    let mut table = Table::new();
    for row in lines.skip(1).map(cells) {
        for (scenario, cell) in head.iter().zip(&row).skip(1) {
            let verdicts = verdicts::read_cell(cell, AGENTS).into_iter();
            table.extend(verdicts.map(|(agent, verdict)| ((row[0].clone(), scenario.clone(), agent), verdict)));
        }
    }
    table
}

fn written(table: &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head = std::iter::once("client").chain(SCENARIOS.iter().map(|(_, row)| *row));
    let head: Vec<String> = head.map(str::to_owned).collect();
    let mut text = line(&head) + &line(&vec!["---".to_owned(); head.len()]);
    for kind in CLIENTS {
        let cells = SCENARIOS.iter().map(|(_, row)| {
            let key = |agent: &str| (kind.title.to_owned(), (*row).to_owned(), agent.to_owned());
            let verdicts = AGENTS.iter().map(|agent| (*agent, table.get(&key(agent)).map_or("?", String::as_str)));
            verdicts::cell(&verdicts.collect::<Vec<_>>())
        });
        text += &line(&std::iter::once(kind.title.to_owned()).chain(cells).collect::<Vec<_>>());
    }
    text
}

/// Writes an agent's verdicts if asked to, and fails if the document differs.
fn hold_table(agent: &str, verdicts: &BTreeMap<(&str, &str), Verdict>) {
    let _one = TABLE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let text = std::fs::read_to_string(doc()).unwrap();
    let (before, table, after) = parts(&text);
    let mut table = read(table);
    for ((player, row), verdict) in verdicts {
        let title = CLIENTS.iter().find(|kind| kind.player == *player).unwrap().title;
        let known = table.insert((title.to_owned(), (*row).to_owned(), agent.to_owned()), verdict.clone());
        if std::env::var_os("PLEXUS_WRITE_DOCS").is_none() {
            assert_eq!(known.as_ref(), Some(verdict), "docs/clients.md is stale at {title:?}, {row:?}, {agent}: {FIX}");
        }
    }
    if std::env::var_os("PLEXUS_WRITE_DOCS").is_some() {
        std::fs::write(doc(), format!("{before}{BEGIN}{}{END}{after}", written(&table))).unwrap();
    }
}

#[test]
fn matrix_table_has_every_client_and_every_agent() {
    let text = std::fs::read_to_string(doc()).unwrap();
    let (_, table, _) = parts(&text);
    let verdicts = read(table);
    assert!(written(&verdicts) == table, "docs/clients.md: the table is not as it is written: {FIX}");
    assert_eq!(verdicts.len(), CLIENTS.len() * SCENARIOS.len() * AGENTS.len(), "docs/clients.md: {FIX}");
    assert!(verdicts.values().all(|verdict| verdict != "?"), "docs/clients.md: an agent is not filled in: {FIX}");
}
