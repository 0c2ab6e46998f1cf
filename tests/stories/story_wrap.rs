//! `plexus wrap` with a program in the agent's place: its words, its keys, its exit code, and its files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::gateway::{Gateway, exe, said};
use common::moments::until_so;
use common::terminal::Terminal;
use serde_json::json;

/// An agent that writes down its arguments, and follows commands of its terminal. (It is a shell script: keys reach it as they reach any
/// program.)
const AGENT: &str = r#"#!/bin/sh
for word in "$@"; do printf '<%s>\n' "$word"; done > "$WORDS"
echo "$PPID" > "$WORDS.parent"
trap 'echo interrupted' INT
echo ready
while :; do
    read -r command rest || continue
    case "$command" in
        exit) exit "$rest" ;;
        say) printf '%s\n' "$rest" >> "$2" ;;
        asked) cat "$4"; echo asked ;;
    esac
done
"#;

/// A folder with the program, and a state folder.
struct Machine {
    dir: tempfile::TempDir,
    home: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("state");
        let machine = Self { dir, home };
        machine.write("bin/qwen", AGENT);
        std::fs::set_permissions(machine.at("bin/qwen"), std::fs::Permissions::from_mode(0o755)).unwrap();
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn env(&self) -> Vec<(&'static str, String)> {
        vec![
            ("PATH", format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap())),
            ("PLEXUS_HOME", self.home.display().to_string()),
            ("WORDS", self.at("words").display().to_string()),
            ("HOME", self.dir.path().display().to_string()),
        ]
    }

    /// Runs it without a terminal.
    fn plexus(&self, words: &[&str], input: &str) -> Output {
        let file = self.at("input");
        std::fs::write(&file, input).unwrap();
        let mut command = Command::new(exe());
        command.args(words).envs(self.env()).stdin(Stdio::from(std::fs::File::open(file).unwrap())).output().unwrap()
    }

    /// Runs it in a terminal, and prints there how it ended.
    async fn terminal(&self, words: &str) -> Terminal {
        let env = self.env();
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // A shell with jobs has each command in a process group of its own, as one that is typed has.
        let command = format!("set -m; {} wrap {words}; echo ended with $?; exec cat", exe());
        Terminal::open(None, (100, 30), &env, &["sh", "-c", &command])
    }

    fn words(&self) -> Vec<String> {
        std::fs::read_to_string(self.at("words")).unwrap().lines().map(str::to_owned).collect()
    }

    /// The folders of agents that are wrapped.
    fn wrapped(&self) -> Vec<PathBuf> {
        let folders = std::fs::read_dir(self.home.join("wrapped"));
        folders.map_or_else(|_| Vec::new(), |folders| folders.map(|entry| entry.unwrap().path()).collect())
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn wrap_passes_on_words_keys_signals_and_the_exit_code() {
    let machine = Machine::new();
    let terminal = machine.terminal("qwen -i 'two words' -- --help").await;
    terminal.wrote("ready", 1).await;
    let folder = machine.wrapped().pop().unwrap();
    let (output, input) = (folder.join("output.jsonl"), folder.join("input.jsonl"));
    let expected = ["--json-file", output.to_str().unwrap(), "--input-file", input.to_str().unwrap()];
    let expected = expected.iter().chain(&["-i", "two words", "--", "--help"]).map(|word| format!("<{word}>"));
    assert_eq!(machine.words(), expected.collect::<Vec<_>>());
    assert_eq!((mode(&folder), mode(&output), mode(&input)), (0o700, 0o600, 0o600));
    // The terminal's keys are the agent's.
    terminal.keys(&["C-c"]);
    terminal.wrote("interrupted", 1).await;
    // Another one takes nothing away from it; what a killed one left is removed.
    machine.write("state/wrapped/dead/lock", "");
    machine.write("state/wrapped/dead/output.jsonl", "x");
    let second = machine.terminal("qwen").await;
    second.wrote("ready", 1).await;
    assert_eq!(machine.wrapped().len(), 2);
    assert!(output.exists() && !machine.at("state/wrapped/dead").exists());
    second.words("exit 0");
    second.keys(&["Enter"]);
    second.wrote("ended with 0", 1).await;
    terminal.words("exit 7");
    terminal.keys(&["Enter"]);
    terminal.wrote("ended with 7", 1).await;
    assert!(machine.wrapped().is_empty());
    // A signal to it is for the agent.
    let terminal = machine.terminal("qwen").await;
    terminal.wrote("ready", 1).await;
    let parent = std::fs::read_to_string(machine.at("words.parent")).unwrap();
    assert!(Command::new("kill").args(["-TERM", parent.trim()]).status().unwrap().success());
    terminal.wrote("ended with 143", 1).await;
    assert!(machine.wrapped().is_empty());
}

#[test]
fn wrap_does_nothing_where_the_agent_shows_no_terminal() {
    let machine = Machine::new();
    for words in [&["-p", "hello"][..], &["--help"], &[], &["mcp", "list"]] {
        let output = machine.plexus(&[&["wrap", "qwen"], words].concat(), "exit 7\n");
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ready\n");
        assert!(output.stderr.is_empty(), "{output:?}");
        assert_eq!(machine.words(), words.iter().map(|word| format!("<{word}>")).collect::<Vec<_>>());
    }
    assert!(!machine.home.exists());
    let output = machine.plexus(&["wrap", "netscape"], "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2) && said.contains("\"netscape\" cannot be wrapped: use one of qwen"),
        "{said}"
    );
    let output = machine.plexus(&["wrap", "--help"], "");
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("its own arguments"),
        "{output:?}"
    );
    assert_eq!(machine.plexus(&["wrap"], "").status.code(), Some(2));
    std::fs::remove_file(machine.at("bin/qwen")).unwrap();
    let path = machine.at("bin").display().to_string();
    let output = Command::new(exe()).args(["wrap", "qwen"]).env("PATH", path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("qwen is not on PATH"), "{said}");
}

#[tokio::test]
async fn wrap_starts_an_old_version_as_it_is() {
    let machine = Machine::new();
    machine.write("package.json", &json!({ "name": "@qwen-code/qwen-code", "version": "0.23.9" }).to_string());
    let terminal = machine.terminal("qwen").await;
    terminal.wrote("qwen 0.23.9 is older than 0.24.4: its session is not in Plexus", 1).await;
    terminal.wrote("ready", 1).await;
    assert!(machine.words().is_empty() && machine.wrapped().is_empty());
}

#[tokio::test]
async fn wrap_tells_a_gateway_that_is_there_and_never_waits_for_one() {
    let machine = Machine::new();
    let mut gateway = Gateway::start("").await;
    let machine = Machine { home: gateway.home.clone(), ..machine };
    let terminal = machine.terminal("qwen").await;
    terminal.wrote("ready", 1).await;
    let command = |words: &str| {
        terminal.words(words);
        terminal.keys(&["Enter"]);
    };
    let start = json!({ "type": "system", "session_id": "q-1", "data": { "cwd": "/tmp" } });
    command(&format!("say {start}"));
    let session = session_of(&gateway, "q-1").await;
    let prompt = |text: &str| json!({ "type": "user", "session_id": "q-1", "message": { "content": text } });
    let step = |event: serde_json::Value| json!({ "type": "stream_event", "session_id": "q-1", "event": event });
    let delta = json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": "it works" } });
    command(&format!("say {}", prompt("hello")));
    command(&format!("say {}", step(delta)));
    until_so("the text", async || said(&gateway.events(&session).await, None).contains("it works")).await;
    command(&format!("say {}", step(json!({ "type": "message_stop" }))));
    // A prompt from elsewhere is a line of its input.
    gateway.prompt(&session, "go on").await;
    let input = machine.wrapped()[0].join("input.jsonl");
    let written = || std::fs::read_to_string(&input).unwrap_or_default();
    until_so("the prompt", async || written() == "{\"type\":\"submit\",\"text\":\"go on\"}\n").await;
    // A gateway that hangs is not waited for: neither by the agent, nor by its end.
    assert!(Command::new("kill").args(["-STOP", &gateway.pid().to_string()]).status().unwrap().success());
    command(&format!("say {}", prompt("go on")));
    command("exit 3");
    terminal.wrote("ended with 3", 1).await;
    assert!(machine.wrapped().is_empty());
    assert!(Command::new("kill").args(["-CONT", &gateway.pid().to_string()]).status().unwrap().success());
    until_so("the end", async || gateway.get(&format!("/v1/sessions/{session}")).await.1["state"] == "exited").await;
    gateway.stop().await;
}

/// The session of a conversation.
async fn session_of(gateway: &Gateway, native: &str) -> String {
    let mut found = String::new();
    until_so("the session", async || {
        let (_, body) = gateway.get("/v1/sessions").await;
        let all = body["sessions"].as_array().unwrap();
        let session = all.iter().find(|session| session["native_id"] == native);
        found = session.map(|session| session["session_id"].as_str().unwrap().to_owned()).unwrap_or_default();
        !found.is_empty()
    })
    .await;
    found
}
