//! Clients of every kind as the stories use them: each is a program of its own that speaks its protocol to the gateway with
//! the library that people use for it, and one and the same small language to the story.
//!
//! A line of JSON each. On stdin, what to do: `{"do":"prompt","text":".."}`, `{"do":"answer","allow":true}` (the oldest
//! question it knows of), `{"do":"cancel"}`, `{"do":"drop"}` (cuts its connection without a goodbye), `{"do":"resume"}`
//! (comes back with what it kept), `{"do":"quit"}`. On stdout, what it saw: `{"ready":true}` (attached, all of the past is
//! there), `{"text":".."}` (the agent said), `{"user":".."}` (somebody prompted), `{"asked":"title","id":".."}`,
//! `{"resolved":"id","by":"name or null","allow":true|false|null}`, `{"ended":"stop reason"}`, `{"dropped":true}`,
//! `{"error":".."}`.
//!
//! It is told where by its environment: `PLEXUS_URL`, `PLEXUS_TOKEN`, `PLEXUS_SESSION`, `PLEXUS_CLIENTS` (the directory with
//! `node_modules`), `PLEXUS_EXE` and `PLEXUS_HOME`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use super::agents;
use super::gateway::{Gateway, PATIENCE, exe};

/// Lines that a player may be ahead of its story.
const LINES: usize = 1 << 16;

/// The client with the official Rust SDK of ACP, built once: a workspace of its own, beside ours.
fn acp_rust() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/acp-rust/Cargo.toml");
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("acp-rust");
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "--quiet", "--manifest-path"]).arg(manifest).arg("--target-dir").arg(&target);
        assert!(cargo.status().unwrap().success(), "the client with the Rust SDK does not build");
        target.join("debug/acp-rust")
    })
}

/// A client that plays its part; killed when dropped.
pub struct Player {
    /// Which kind.
    pub kind: String,
    child: Child,
    stdin: ChildStdin,
    /// What it says, with when: read at once, however busy the story is.
    lines: mpsc::Receiver<(Instant, String)>,
    /// Everything it saw, with when.
    pub saw: Vec<(Instant, Value)>,
    /// Up to where [`until`](Self::until) has looked.
    looked: usize,
}

impl Player {
    /// Starts `tests/clients/<kind>.mjs` on a session, or the one that is written in Rust, `acp-rust`; it is attached once
    /// this returns.
    pub async fn enter(kind: &str, gateway: &Gateway, session: &str) -> Self {
        if kind == "acp-rust" {
            let program = tokio::task::spawn_blocking(acp_rust).await.unwrap();
            return Self::begin(kind, Command::new(program), gateway, session).await;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(format!("{kind}.mjs"));
        let mut command = Command::new(agents::node(&agents::clients_dir()));
        command.arg(script);
        Self::begin(kind, command, gateway, session).await
    }

    /// Starts any program that speaks the language of players.
    pub async fn begin(kind: &str, mut command: Command, gateway: &Gateway, session: &str) -> Self {
        let mut child = command
            .env("PLEXUS_URL", &gateway.url)
            .env("PLEXUS_TOKEN", &gateway.token)
            .env("PLEXUS_SESSION", session)
            .env("PLEXUS_CLIENTS", agents::clients_dir())
            .env("PLEXUS_EXE", exe())
            .env("PLEXUS_HOME", &gateway.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let (tx, lines) = mpsc::channel(LINES);
        tokio::spawn(async move {
            while let Ok(Some(line)) = stdout.next_line().await {
                if tx.send((Instant::now(), line)).await.is_err() {
                    return;
                }
            }
        });
        let mut player = Self { kind: kind.to_owned(), child, stdin, lines, saw: Vec::new(), looked: 0 };
        player.until("ready").await;
        player
    }

    async fn tell(&mut self, what: Value) {
        self.stdin.write_all(format!("{what}\n").as_bytes()).await.unwrap();
        self.stdin.flush().await.unwrap();
    }

    /// Prompts.
    pub async fn prompt(&mut self, text: &str) {
        self.tell(json!({ "do": "prompt", "text": text })).await;
    }

    /// Answers the oldest question that it knows of.
    pub async fn answer(&mut self, allow: bool) {
        self.tell(json!({ "do": "answer", "allow": allow })).await;
    }

    /// Takes note that somebody else answered, where a client stops until its user did (`codelia-tui` alone).
    pub async fn note(&mut self) {
        self.tell(json!({ "do": "note" })).await;
    }

    /// Cancels the run.
    pub async fn cancel(&mut self) {
        self.tell(json!({ "do": "cancel" })).await;
    }

    /// Cuts its connection.
    pub async fn cut(&mut self) {
        self.tell(json!({ "do": "drop" })).await;
        self.until("dropped").await;
    }

    /// Comes back after [`cut`](Self::cut).
    pub async fn resume(&mut self) {
        self.tell(json!({ "do": "resume" })).await;
        self.until("ready").await;
    }

    /// Waits until it has seen something with this member, later than what was waited for before; returns it.
    pub async fn until(&mut self, member: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            while let Some((_, saw)) = self.saw.get(self.looked) {
                self.looked += 1;
                if saw.get(member).is_some() {
                    return saw.clone();
                }
                assert!(member == "error" || saw.get("error").is_none(), "{}: {saw}", self.kind);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let line = tokio::time::timeout(left, self.lines.recv()).await;
            let line = line.unwrap_or_else(|_| panic!("{}: no `{member}` came; it saw {}", self.kind, self.tail()));
            let (at, line) =
                line.unwrap_or_else(|| panic!("{}: ended before `{member}`; it saw {}", self.kind, self.tail()));
            let saw = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{}: {error}: {line}", self.kind));
            self.saw.push((at, saw));
        }
    }

    /// Makes [`until`](Self::until) look at all that was seen again: what came before it was ready counts, too.
    pub fn look_back(&mut self) {
        self.looked = 0;
    }

    /// All that the agent said, as this client has it.
    pub fn text(&self) -> String {
        self.saw.iter().filter_map(|(_, saw)| saw["text"].as_str()).collect()
    }

    /// Takes its leave; killed if it does not go.
    pub async fn quit(mut self) {
        self.tell(json!({ "do": "quit" })).await;
        let _ = tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await;
    }

    fn tail(&self) -> String {
        let from = self.saw.len().saturating_sub(8);
        self.saw[from..].iter().map(|(_, saw)| saw.to_string()).collect::<Vec<_>>().join(" ")
    }
}
