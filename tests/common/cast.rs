//! The clients of the stories: each is a program that speaks its protocol to the gateway with the usual library for it, and the
//! same small language to the story.
//!
//! The language has one line of JSON for each message. On stdin, actions: `{"do":"prompt","text":".."}`,
//! `{"do":"answer","allow":true}` (the oldest open request), `{"do":"cancel"}`, `{"do":"drop"}` (cuts its connection),
//! `{"do":"resume"}` (reconnects with its cursor), `{"do":"quit"}`. On stdout, what it saw: `{"ready":true}` (attached, with the
//! whole history), `{"text":".."}` (text of the agent), `{"user":".."}` (a prompt), `{"asked":"title","id":".."}`,
//! `{"resolved":"id","by":"name or null","allow":true|false|null}`, `{"ended":"stop reason"}`, `{"dropped":true}`,
//! `{"error":".."}`.
//!
//! Its environment has `PLEXUS_URL`, `PLEXUS_TOKEN`, `PLEXUS_SESSION`, `PLEXUS_CLIENTS` (the directory with `node_modules`),
//! `PLEXUS_EXE` and `PLEXUS_HOME`.

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

/// Maximum number of lines of a player that its story has not read.
const LINES: usize = 1 << 16;

/// The client with the official Rust SDK of ACP, a separate workspace, built once.
fn acp_rust() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/acp-rust/Cargo.toml");
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("acp-rust");
        let mut cargo = super::cargo();
        cargo.args(["build", "--locked", "--quiet", "--manifest-path"]).arg(manifest).arg("--target-dir").arg(&target);
        assert!(cargo.status().unwrap().success(), "the client with the Rust SDK does not build");
        target.join("debug/acp-rust")
    })
}

/// A running client; killed when dropped.
pub struct Player {
    /// The kind of client.
    pub kind: String,
    child: Child,
    stdin: ChildStdin,
    /// The output with times, read at once however busy the story is.
    lines: mpsc::Receiver<(Instant, String)>,
    /// Everything it saw, with times.
    pub saw: Vec<(Instant, Value)>,
    /// The position up to which [`until`](Self::until) has searched.
    looked: usize,
}

impl Player {
    /// Starts `tests/clients/<kind>.mjs`, or the Rust client `acp-rust`, and waits until it is attached to the session.
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
            .envs([agents::compile_cache(&agents::clients_dir())])
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

    /// Answers the oldest open request.
    pub async fn answer(&mut self, allow: bool) {
        self.tell(json!({ "do": "answer", "allow": allow })).await;
    }

    /// Acknowledges another client's answer, which only `codelia-tui` needs.
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

    /// Reconnects after [`cut`](Self::cut).
    pub async fn resume(&mut self) {
        self.tell(json!({ "do": "resume" })).await;
        self.until("ready").await;
    }

    /// Waits for the next message with this member, after the last one waited for; returns it.
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

    /// Makes [`until`](Self::until) search all messages again, also those before `ready`.
    pub fn look_back(&mut self) {
        self.looked = 0;
    }

    /// The whole text of the agent, as this client has it.
    pub fn text(&self) -> String {
        self.saw.iter().filter_map(|(_, saw)| saw["text"].as_str()).collect()
    }

    /// Ends the client; killed if it does not end.
    pub async fn quit(mut self) {
        self.tell(json!({ "do": "quit" })).await;
        let _ = tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await;
    }

    fn tail(&self) -> String {
        let from = self.saw.len().saturating_sub(8);
        self.saw[from..].iter().map(|(_, saw)| saw.to_string()).collect::<Vec<_>>().join(" ")
    }
}
