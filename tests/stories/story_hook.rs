//! Helpers of agents' terminals (`plexus hook`) without an agent: what they say, how they wait, and that no terminal pays for it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, exe, said};
use serde_json::{Value, json};

/// Runs the hooks that are named on its input, each in a folder, as Claude Code does: in shells below its own process.
const TERMINAL: &str = r#"
export CLAUDE_PID=$$
while read -r folder args; do
    (
        "$PLEXUS" hook $args <"$folder/in" >"$folder/out" 2>"$folder/err"
        echo $? >"$folder/code.new"
        mv "$folder/code.new" "$folder/code"
    ) &
done
"#;

/// A process that stands for Claude Code in a terminal; the session ends with it.
struct Terminal {
    process: Child,
    hooks: Mutex<ChildStdin>,
    folder: Arc<tempfile::TempDir>,
    started: AtomicUsize,
    transcript: PathBuf,
    session: String,
}

/// A hook that a terminal runs.
struct Hook {
    folder: PathBuf,
    _all: Arc<tempfile::TempDir>,
}

impl Hook {
    /// The outcome of the hook, once it has ended.
    fn output(&self) -> Output {
        let deadline = Instant::now() + PATIENCE;
        while !self.folder.join("code").exists() {
            assert!(Instant::now() < deadline, "the hook in {} does not end", self.folder.display());
            std::thread::sleep(Duration::from_millis(5));
        }
        let read = |name: &str| std::fs::read(self.folder.join(name)).unwrap();
        let code: i32 = String::from_utf8(read("code")).unwrap().trim().parse().unwrap();
        Output { status: ExitStatus::from_raw(code << 8), stdout: read("out"), stderr: read("err") }
    }
}

impl Terminal {
    fn open(home: &Path, folder: &Path, session: &str) -> Self {
        let mut process = Command::new("sh")
            .args(["-c", TERMINAL])
            .env("PLEXUS", exe())
            .env("PLEXUS_HOME", home)
            .env("CLAUDECODE", "1")
            .env("CLAUDE_CODE_ENTRYPOINT", "cli")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let hooks = Mutex::new(process.stdin.take().unwrap());
        let transcript = folder.join(format!("{session}.jsonl"));
        let (folder, started) = (Arc::new(tempfile::tempdir().unwrap()), AtomicUsize::new(0));
        Self { process, hooks, folder, started, transcript, session: session.into() }
    }

    fn write(&self, lines: &[Value]) {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.transcript).unwrap();
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
    }

    fn event(&self, name: &str, more: Value) -> Value {
        let mut event = json!({
            "session_id": self.session, "transcript_path": self.transcript, "cwd": "/tmp", "hook_event_name": name,
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    }

    /// Starts the command of a hook.
    fn start(&self, args: &[&str], event: &Value) -> Hook {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(number.to_string());
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("in"), event.to_string()).unwrap();
        writeln!(self.hooks.lock().unwrap(), "{} {}", folder.display(), args.join(" ")).unwrap();
        Hook { folder, _all: Arc::clone(&self.folder) }
    }

    /// Runs the command of a hook that does not wait.
    fn hook(&self, event: &Value) -> Output {
        self.start(&["claude"], event).output()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn silent(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn session_of(gateway: &Gateway, native: &str) -> Value {
    until("the session", async || {
        let (_, body) = gateway.get("/v1/sessions").await;
        body["sessions"].as_array()?.iter().find(|session| session["native_id"] == native).cloned()
    })
    .await
}

fn user(text: &str) -> Value {
    json!({ "type": "user", "message": { "content": text }, "origin": { "kind": "human" } })
}

fn says(text: &str) -> Value {
    json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": text }] } })
}

#[tokio::test]
async fn hook_hooks_are_silent_whatever_the_gateway_does() {
    let dir = tempfile::tempdir().unwrap();
    let terminal = Terminal::open(&dir.path().join("nowhere"), dir.path(), "s1");
    // None runs; arguments of another version; no JSON.
    silent(&terminal.hook(&terminal.event("Stop", json!({}))));
    for args in [&[][..], &["unknown"], &["claude", "--later", "x"], &["claude", "--home"]] {
        silent(&terminal.start(args, &terminal.event("Stop", json!({}))).output());
    }
    silent(&terminal.start(&["claude"], &json!("no event")).output());
    // One that hangs: more hooks than its socket queues.
    let gateway = Gateway::start("").await;
    let terminal = Terminal::open(&gateway.home, dir.path(), "s2");
    silent(&terminal.hook(&terminal.event("SessionStart", json!({}))));
    session_of(&gateway, "s2").await;
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &gateway.pid().to_string()]).status().unwrap().success());
    };
    signal("-STOP");
    let large = "x".repeat(1 << 20);
    let hooks: Vec<Hook> = (0..1200)
        .map(|n| {
            let more = if n == 0 { json!({ "tool_input": large }) } else { json!({}) };
            terminal.start(&["claude"], &terminal.event("PostToolUse", more))
        })
        .collect();
    for hook in hooks {
        silent(&hook.output());
    }
    signal("-CONT");
    // It hears the next ones.
    terminal.write(&[user("hi"), says("after the pause")]);
    silent(&terminal.hook(&terminal.event("Stop", json!({}))));
    let id = session_of(&gateway, "s2").await["session_id"].as_str().unwrap().to_owned();
    until("the text", async || said(&gateway.events(&id).await, None).contains("after the pause").then_some(())).await;
}

#[tokio::test]
async fn hook_of_claude_ends_at_once_for_every_other_program() {
    let gateway = Gateway::start("").await;
    let mut stranger = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let (own, other) = (std::process::id().to_string(), stranger.id().to_string());
    let claude = [("CLAUDECODE", "1"), ("CLAUDE_CODE_ENTRYPOINT", "cli"), ("CLAUDE_PID", own.as_str())];
    let without = |name: &str| claude.iter().copied().filter(|(known, _)| *known != name).collect::<Vec<_>>();
    let with = |name: &'static str, value| [without(name), vec![(name, value)]].concat();
    // The environment of other agents, which read the settings of Claude Code, also below its shell; and of programs that run it.
    let environments: [Vec<(&str, &str)>; 8] = [
        Vec::new(),
        without("CLAUDECODE"),
        without("CLAUDE_CODE_ENTRYPOINT"),
        without("CLAUDE_PID"),
        with("CLAUDECODE", "0"),
        with("CLAUDE_CODE_ENTRYPOINT", "sdk-ts"),
        with("CLAUDE_PID", "none"),
        with("CLAUDE_PID", &other),
    ];
    let start = |args: &[&str], environment: &[(&str, &str)]| {
        let mut hook = Command::new(exe());
        hook.arg("hook").args(args).env("PLEXUS_HOME", &gateway.home);
        for (name, _) in claude {
            hook.env_remove(name);
        }
        hook.envs(environment.iter().copied());
        hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for environment in &environments {
        for args in [&["claude"][..], &["claude", "--inbox"]] {
            let mut hook = start(args, environment);
            // Its input stays open, and nothing comes.
            let input = hook.stdin.take().unwrap();
            until("the end of the hook", async || hook.try_wait().unwrap()).await;
            silent(&hook.wait_with_output().unwrap());
            drop(input);
        }
    }
    // Claude Code itself is heard.
    let mut hook = start(&["claude"], &claude);
    let transcript = gateway.home.join("s1.jsonl");
    let event = json!({
        "session_id": "s1", "transcript_path": transcript, "cwd": "/tmp", "hook_event_name": "SessionStart",
    });
    hook.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    silent(&hook.wait_with_output().unwrap());
    session_of(&gateway, "s1").await;
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn hook_socket_is_private_and_survives_what_is_no_helper() {
    let gateway = Gateway::start("").await;
    let socket = gateway.home.join("link.sock");
    let mode = std::fs::symlink_metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for junk in [&b"\n\n"[..], b"{}\n{}\n", b"GET / HTTP/1.1\r\n\r\n", &[0xff; 4096], b"{\"link\":1"] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let _ = stream.write_all(junk);
    }
    let forged = json!({ "link": 1, "agent": "claude", "role": "event", "id": "x", "pid": 1 });
    for event in [json!({}), json!({ "session_id": "" }), json!([]), json!({ "session_id": 7 })] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(format!("{forged}\n{event}\n").as_bytes()).unwrap();
    }
    // A transcript that is none is not read.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("secret"), format!("{}\n", says("a secret"))).unwrap();
    let mut terminal = Terminal::open(&gateway.home, dir.path(), "s1");
    terminal.transcript = dir.path().join("secret");
    silent(&terminal.hook(&terminal.event("Stop", json!({}))));
    let id = session_of(&gateway, "s1").await["session_id"].as_str().unwrap().to_owned();
    let events = until("the refusal", async || {
        let events = gateway.events(&id).await;
        events.iter().any(|event| event["event"]["code"] == "gap").then_some(events)
    })
    .await;
    assert!(!said(&events, None).contains("secret"));
    let (_, sessions) = gateway.get("/v1/sessions").await;
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "{sessions}");
}

#[tokio::test]
async fn hook_question_of_ten_megabytes_is_shown_and_answered_over_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start("").await;
    let terminal = Terminal::open(&gateway.home, dir.path(), "s1");
    let paste = format!("echo {}", "x".repeat(10 << 20));
    let asked = json!({ "tool_name": "Bash", "tool_input": { "command": paste } });
    let waits = terminal.start(&["claude"], &terminal.event("PermissionRequest", asked));
    let id = session_of(&gateway, "s1").await["session_id"].as_str().unwrap().to_owned();
    let request = gateway.open_request(&id).await;
    gateway.kill();
    gateway.again().await;
    let again = gateway.open_request(&id).await;
    assert_eq!(again["request_id"], request["request_id"]);
    let (status, receipt) = gateway.choose(&again, "deny").await;
    assert_eq!(status, 200, "{receipt}");
    let output = waits.output();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["hookSpecificOutput"]["decision"]["behavior"], "deny", "{output:?}");
    assert!(output.status.success() && output.stderr.is_empty());
}

#[tokio::test]
async fn hook_session_is_not_named_to_a_device_that_may_not_see_it() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = Gateway::demo().await;
    let terminal = Terminal::open(&gateway.home, dir.path(), "s1");
    silent(&terminal.hook(&terminal.event("SessionStart", json!({}))));
    let id = session_of(&gateway, "s1").await["session_id"].clone();
    let open = json!({ "runtime_id": "demo", "native_id": "s1" });
    let (status, opened) = gateway.post("/v1/sessions", open.clone()).await;
    assert_eq!((status / 100, &opened["session_id"]), (2, &id), "it is open in its terminal: {opened}");
    let grant = json!({ "name": "tablet", "scopes": ["watch", "prompt"], "runtimes": ["demo"] });
    let (status, device) = gateway.post("/v1/devices", grant).await;
    assert_eq!(status, 201, "{device}");
    let token = device["token"].as_str().unwrap();
    let request = reqwest::Client::new().post(format!("{}/v1/sessions", gateway.url)).bearer_auth(token).json(&open);
    let response = request.send().await.unwrap();
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    assert!(status / 100 == 4 && text.contains("open in its own terminal"), "{status} {text}");
    assert!(!text.contains(id.as_str().unwrap()), "{text}");
}

#[tokio::test]
async fn hook_helpers_that_stop_within_a_message_hold_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = Gateway::start("").await;
    let hello = json!({ "link": 1, "agent": "claude", "role": "event", "id": "x", "pid": std::process::id() });
    // More of a message each than a fifth of the room that all messages have.
    let half = "x".repeat(20 << 20);
    let stopped: Vec<UnixStream> = (0..5)
        .map(|_| {
            let mut stream = UnixStream::connect(gateway.home.join("link.sock")).unwrap();
            stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
            // What does not fit any more is not taken.
            let _ = stream.write_all(format!("{hello}\n{half}").as_bytes());
            stream
        })
        .collect();
    // They are hung up on, and others are heard.
    until("a session that is heard", async || {
        let terminal = Terminal::open(&gateway.home, dir.path(), "s1");
        silent(&terminal.hook(&terminal.event("SessionStart", json!({}))));
        let (_, body) = gateway.get("/v1/sessions").await;
        body["sessions"].as_array()?.iter().any(|session| session["native_id"] == "s1").then_some(())
    })
    .await;
    drop(stopped);
}

#[tokio::test]
async fn hook_sixty_terminals_are_sessions_and_end_with_their_processes() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = Gateway::start("").await;
    let terminals: Vec<Terminal> =
        (0..60).map(|n| Terminal::open(&gateway.home, dir.path(), &format!("s{n}"))).collect();
    for terminal in &terminals {
        terminal.write(&[user("hi"), says(&format!("I am {}", terminal.session))]);
        silent(&terminal.hook(&terminal.event("Stop", json!({}))));
    }
    // Each has a hook that waits for a prompt.
    let inboxes: Vec<Hook> = terminals
        .iter()
        .map(|terminal| terminal.start(&["claude", "--inbox"], &terminal.event("Stop", json!({}))))
        .collect();
    for terminal in &terminals {
        let session = session_of(&gateway, &terminal.session).await;
        assert_eq!(session["linked"], true);
        let id = session["session_id"].as_str().unwrap();
        let words = format!("I am {}", terminal.session);
        until("its text", async || said(&gateway.events(id).await, None).contains(&words).then_some(())).await;
    }
    drop(terminals);
    until("the end of all", async || {
        let (_, body) = gateway.get("/v1/sessions").await;
        body["sessions"].as_array()?.iter().all(|session| session["state"] == "exited").then_some(())
    })
    .await;
    // What waits for a prompt ends with its terminal, too.
    for inbox in inboxes {
        silent(&inbox.output());
    }
}

/// Maximum number of prompts that a tunnel has received and the test has not read; with a further one it waits.
const PROMPTS_MAX: usize = 16;

/// A double of OpenCode's plugin: a tunnel with the session `s1`, and the prompts that it received.
struct Tunnel {
    process: Child,
    stream: UnixStream,
    prompts: std::sync::mpsc::Receiver<Value>,
    /// The replies about what is under way, by path.
    under_way: Arc<Mutex<HashMap<&'static str, Value>>>,
}

impl Tunnel {
    /// Connects; if not `reads`, it never looks at what it is asked.
    fn open(home: &Path, id: &str, reads: bool) -> Self {
        let process = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let stream = UnixStream::connect(home.join("link.sock")).unwrap();
        let (sent, prompts) = std::sync::mpsc::sync_channel(PROMPTS_MAX);
        let mut tunnel = Self { process, stream, prompts, under_way: Arc::default() };
        let pid = tunnel.process.id();
        tunnel.say(&json!({ "link": 1, "agent": "opencode", "role": "tunnel", "id": id, "pid": pid }));
        if reads {
            let (read, mut write) = (tunnel.stream.try_clone().unwrap(), tunnel.stream.try_clone().unwrap());
            let under_way = Arc::clone(&tunnel.under_way);
            std::thread::spawn(move || {
                for line in BufReader::new(read).lines().map_while(Result::ok) {
                    let line: Value = serde_json::from_str(&line).unwrap();
                    let request = &line["request"];
                    let path = request["path"].as_str().unwrap_or_default().split('?').next().unwrap_or_default();
                    let body = match path {
                        "/config/providers" => json!({ "providers": [], "default": {} }),
                        "/global/health" => json!({ "version": "1.18.33" }),
                        "/session/s1" => json!({ "id": "s1", "directory": "/tmp" }),
                        "/session/status" | "/permission" if under_way.lock().unwrap().contains_key(path) => {
                            under_way.lock().unwrap()[path].clone()
                        }
                        "/session/status" => json!({}),
                        "/session/s1/prompt_async" => {
                            let _ = sent.send(request["body"].clone());
                            json!(true)
                        }
                        _ => json!([]),
                    };
                    let reply = json!({ "reply": { "id": request["id"], "status": 200, "body": body } });
                    if writeln!(write, "{reply}").is_err() {
                        return;
                    }
                }
            });
        }
        tunnel.say(&json!({ "event": { "type": "plexus.hello", "directory": "/tmp" } }));
        tunnel
    }

    fn say(&mut self, line: &Value) {
        writeln!(self.stream, "{line}").unwrap();
    }

    fn works(&mut self, session: &str) {
        let properties = json!({ "sessionID": session, "status": { "type": "busy" } });
        self.under_way.lock().unwrap().insert("/session/status", json!({ session: { "type": "busy" } }));
        self.say(&json!({ "event": { "type": "session.status", "properties": properties } }));
    }

    fn rests(&mut self, session: &str) {
        self.under_way.lock().unwrap().clear();
        let properties = json!({ "sessionID": session, "status": { "type": "idle" } });
        self.say(&json!({ "event": { "type": "session.status", "properties": properties } }));
    }

    fn asks(&mut self, session: &str) {
        let properties = json!({ "sessionID": session, "id": "p1", "permission": "bash", "patterns": ["touch x"],
            "metadata": { "command": "touch x" }, "always": [] });
        self.under_way.lock().unwrap().insert("/permission", json!([properties]));
        self.say(&json!({ "event": { "type": "permission.asked", "properties": properties } }));
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn hook_tunnel_that_does_not_read_holds_nobody_up() {
    let gateway = Gateway::start("").await;
    let mut deaf: Vec<Tunnel> = (0..3).map(|n| Tunnel::open(&gateway.home, &format!("deaf{n}"), false)).collect();
    for (at, tunnel) in deaf.iter_mut().enumerate() {
        for _ in 0..500 {
            tunnel.works(&format!("s9{at}"));
        }
        tunnel.say(&json!({ "reply": { "id": 77, "status": 200, "body": ["to nothing"] } }));
        tunnel.say(&json!({ "event": "no event" }));
    }
    let mut plugin = Tunnel::open(&gateway.home, "a", true);
    plugin.works("s1");
    let session = session_of(&gateway, "s1").await;
    assert_eq!((&session["dialect"], &session["linked"]), (&json!("opencode-terminal"), &json!(true)));
    let id = session["session_id"].as_str().unwrap();
    plugin.rests("s1");
    gateway.prompt(id, "from elsewhere").await;
    let prompt = until("the prompt", async || plugin.prompts.try_recv().ok()).await;
    assert_eq!(prompt["parts"][0]["text"], "from elsewhere");
    // A line that is none ends its tunnel alone; the same plugin connects again, and its session goes on.
    writeln!(plugin.stream, "no JSON").unwrap();
    let mut again = Tunnel::open(&gateway.home, "a", true);
    again.works("s1");
    again.asks("s1");
    assert!(gateway.open_request(id).await["display"].to_string().contains("touch x"));
    // It ends with its process.
    drop(again);
    until("the end", async || (session_of(&gateway, "s1").await["state"] == "exited").then_some(())).await;
}

/// Lines of a tunnel whose text streams on behind the reply that says how it stands.
fn streaming_reply(request: &Value, pieces: usize) -> String {
    let partial = json!({ "messageId": "m", "text": "begins " });
    let state = json!({ "processing": true, "pending": [], "questions": [], "partial": partial });
    let body = json!({ "events": [], "cursor": "c", "older": false, "expired": false, "more": false, "state": state });
    let mut lines = vec![json!({ "reply": { "id": request["id"], "status": 200, "body": body } })];
    lines.extend((0..pieces).map(|piece| {
        let data = json!({ "messageId": "m", "deltaContent": format!("piece-{piece} ") });
        json!({ "event": { "type": "assistant.message_delta", "ephemeral": true, "data": data } })
    }));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[tokio::test]
async fn hook_tunnel_reply_keeps_its_place_among_its_events() {
    let gateway = Gateway::start("").await;
    let mut process = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let mut stream = UnixStream::connect(gateway.home.join("link.sock")).unwrap();
    let hello = json!({ "link": 1, "agent": "copilot", "role": "tunnel", "id": "t", "pid": process.id() });
    let opened = json!({ "event": { "type": "plexus.hello", "session": "s", "cwd": "/tmp" } });
    write!(stream, "{hello}\n{opened}\n").unwrap();
    let read = stream.try_clone().unwrap();
    let talks = std::thread::spawn(move || {
        for line in BufReader::new(read).lines().map_while(Result::ok) {
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["request"]["path"].as_str().is_some_and(|path| path.starts_with("/events")) {
                stream.write_all(streaming_reply(&line["request"], 100).as_bytes()).unwrap();
            }
        }
    });
    let session = until("the session", async || {
        let (_, body) = gateway.get("/v1/sessions").await;
        body["sessions"][0]["session_id"].as_str().map(str::to_owned)
    })
    .await;
    let text = until("the text", async || {
        let text = said(&gateway.events(&session).await, None);
        text.contains("piece-99 ").then_some(text)
    })
    .await;
    let whole: String = (0..100).map(|piece| format!("piece-{piece} ")).collect();
    assert_eq!(text, format!("begins {whole}"));
    process.kill().unwrap();
    process.wait().unwrap();
    drop(gateway);
    talks.join().unwrap();
}
