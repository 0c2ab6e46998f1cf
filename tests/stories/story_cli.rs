//! The command line of the real program, one file: every command against a real gateway and the demo agent, by exit code and
//! output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Maximum waiting time; only a failing test reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum number of unread lines; at this many the program waits.
const LINES: usize = 4096;

const PLEXUS: &str = env!("CARGO_BIN_EXE_plexus");

fn plexus(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(PLEXUS);
    command.args(args).env("PLEXUS_HOME", home).env_remove("NO_COLOR").env_remove("PLEXUS_LOG").stdin(Stdio::null());
    // A daemon of Codex that runs on this machine is none of the test's.
    command.env("CODEX_HOME", home.join("codex"));
    command
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it exited by itself")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs a command to its end.
fn done(home: &Path, args: &[&str]) -> Output {
    plexus(home, args).output().unwrap()
}

/// Runs a command that must succeed; returns what it printed.
fn fine(home: &Path, args: &[&str]) -> String {
    let output = done(home, args);
    assert_eq!(code(&output), 0, "{args:?}: {}{}", out(&output), err(&output));
    out(&output)
}

fn json(home: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&fine(home, args)).unwrap()
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "it did not happen: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A child whose stdout is read a line at a time; killed when dropped.
struct Talking {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Talking {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (tx, lines) = mpsc::sync_channel(LINES);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if tx.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line that contains `words`.
    fn line(&self, words: &str) -> String {
        let end = Instant::now() + PATIENCE;
        let mut before = Vec::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(words) => return line,
                Ok(line) => before.push(line),
                Err(_) => panic!("no line with {words:?}; there were {before:#?}"),
            }
        }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn end(&mut self) -> i32 {
        until("the program ends", || self.child.try_wait().unwrap()).code().expect("it exited by itself")
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A gateway on a free port with the demo agent and a session.
struct Gateway {
    dir: tempfile::TempDir,
    serve: Talking,
}

impl Gateway {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("demo.toml");
        let text = include_str!("../../config/demo.toml");
        std::fs::write(&config, format!("listen = \"127.0.0.1:0\"\n{text}")).unwrap();
        let home = dir.path().join("home");
        let mut command = plexus(&home, &["serve", "-c", config.to_str().unwrap()]);
        command.stderr(Stdio::null()).current_dir(dir.path());
        let serve = Talking::start(command);
        assert!(serve.line("http://127.0.0.1:").contains("/#code="));
        let gateway = Self { dir, serve };
        until("the configured session opens", || gateway.session());
        gateway
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn session(&self) -> Option<String> {
        let listed = json(&self.home(), &["ls", "--json"]);
        let session = &listed["sessions"][0];
        (session["state"] == "idle").then(|| session["session_id"].as_str().unwrap().to_owned())
    }
}

fn running(home: &Path) {
    until("a run is active", || fine(home, &["ls"]).contains("  running  ").then_some(()));
}

fn open_request(home: &Path) -> Value {
    until("a request opens", || json(home, &["requests", "--json"])["requests"].get(0).cloned())
}

#[test]
fn open_gives_the_browser_a_private_page_and_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let (bin, told) = (dir.path().join("bin"), dir.path().join("told"));
    std::fs::create_dir(&bin).unwrap();
    // The arguments of the browser, and the page that they name.
    let script = format!(
        "#!/bin/sh\n{{ echo \"$0 $*\"; env; }} > '{0}.part'\ncp \"${{1#file://}}\" '{0}.page'\nmv '{0}.part' '{0}'\n",
        told.display()
    );
    for name in ["xdg-open", "open"] {
        std::fs::write(bin.join(name), &script).unwrap();
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let home = dir.path().join("home");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = plexus(&home, &["serve", "--listen", "127.0.0.1:0", "--open"]);
    command.env("PATH", path).env("DISPLAY", ":0").stderr(Stdio::null()).current_dir(dir.path());
    let serve = Talking::start(command);
    let link = serve.line("/#code=");
    let (_, code) = link.split_once("#code=").unwrap();
    let code = code.trim();
    let seen = until("the browser is started", || std::fs::read_to_string(&told).ok());
    assert!(!seen.contains(code), "{seen}");
    let token = std::fs::read_to_string(home.join("token")).unwrap();
    assert!(!seen.contains(token.trim()), "{seen}");
    let page = std::fs::read_to_string(format!("{}.page", told.display())).unwrap();
    assert!(page.contains(&format!("/#code={code}")), "{page}");
}

#[cfg(target_os = "linux")]
#[test]
fn serve_leaks_no_open_descriptor_to_its_programs() {
    let dir = tempfile::tempdir().unwrap();
    let (secret, told) = (dir.path().join("open-before"), dir.path().join("told"));
    std::fs::write(&secret, "secret").unwrap();
    let (home, config) = (dir.path().join("home"), dir.path().join("plexus.toml"));
    // The agent lists its own descriptors and its holder's.
    let look = format!("ls -l /proc/self/fd/ /proc/$PPID/fd/ > '{0}.part'; mv '{0}.part' '{0}'", told.display());
    let command = format!("{look}; exec '{PLEXUS}' agent demo");
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[[runtime]]\nid = \"demo\"\ndialect = \"acp\"\ncommand = [\"sh\", \"-c\", {command:?}]\n\
         cwd = {:?}\nsession = true\n",
        dir.path().display().to_string()
    );
    std::fs::write(&config, text).unwrap();
    let line = format!("exec 9<'{}'; exec '{PLEXUS}' serve -c '{}'", secret.display(), config.display());
    let mut command = Command::new("sh");
    command.args(["-c", &line]).env("PLEXUS_HOME", &home).env_remove("PLEXUS_LOG");
    command.stdin(Stdio::null()).stderr(Stdio::null()).current_dir(dir.path());
    let mut serve = Talking::start(command);
    serve.line("/#code=");
    let seen = until("the agent has looked", || std::fs::read_to_string(&told).ok());
    assert!(seen.lines().filter(|line| line.contains("->")).count() >= 6, "{seen}");
    assert!(!seen.contains("open-before"), "{seen}");
    fine(&home, &["stop", "demo"]);
    serve.signal(rustix::process::Signal::TERM);
    assert_eq!(serve.end(), 0);
}

#[test]
fn hidden_characters_are_printed_raw_only_where_asked_for() {
    let gateway = Gateway::start();
    let home = gateway.home();
    let evil = "a\u{9b}31mb\u{202e}c\u{200b}d\u{2066}e\u{1b}[2Jf\u{e0041}g";
    fine(&home, &["prompt", "last", &format!("echo {evil}"), "--wait"]);
    done(&home, &["rename", "last", &format!("t{evil}")]);
    let _ = plexus(&home, &["prompt", "last", &format!("ask {evil}")]).output().unwrap();
    open_request(&home);
    for args in [
        &["tail", "last", "--json", "--no-follow"][..],
        &["tail", "last", "--no-follow"],
        &["ls", "--json"],
        &["ls"],
        &["requests", "--json"],
        &["requests"],
        &["export", "last"],
        &["export", "last", "--format", "md"],
        &["export", "last", "--format", "html"],
    ] {
        let text = fine(&home, args);
        for c in evil.chars().filter(|c| !c.is_ascii_graphic()) {
            assert!(!text.contains(c), "{args:?}: {c:?} in {text}");
        }
    }
    // The JSON has the same value, and `--raw` into a pipe gives the bytes.
    for args in [&["tail", "last", "--json", "--no-follow"][..], &["export", "last"]] {
        let values =
            |text: &str| -> Vec<Value> { text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
        let plain = fine(&home, args);
        let raw = fine(&home, &[args, &["--raw"]].concat());
        assert!(raw.contains('\u{202e}') && raw.contains('\u{9b}'), "{args:?}: {raw}");
        assert_eq!(values(&plain), values(&raw), "{args:?}");
    }
}

/// Runs an agent that is a script of this name, from a folder of its own on PATH.
fn run_script(gateway: &Gateway, name: &str, preset: &str, script: &str) -> Output {
    let bin = gateway.dir.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join(name), script).unwrap();
    std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    plexus(&gateway.home(), &["run", preset]).env("PATH", path).current_dir(gateway.dir.path()).output().unwrap()
}

fn runtimes(gateway: &Gateway) -> Vec<String> {
    let listed = json(&gateway.home(), &["ls", "--json"]);
    let all = listed["runtimes"].as_array().unwrap().iter();
    all.map(|one| one["runtime_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn agent_that_does_not_start_leaves_nothing_and_takes_no_name() {
    let gateway = Gateway::start();
    for _ in 0..2 {
        let output = run_script(&gateway, "opencode", "opencode", "#!/bin/sh\necho 'no key' >&2\nexit 3\n");
        assert_eq!(code(&output), 1, "{}", out(&output));
        assert!(out(&output).contains("starting opencode …"), "{}", out(&output));
        assert!(err(&output).contains("no key"), "{}", err(&output));
        assert_eq!(runtimes(&gateway), ["demo"]);
    }
}

#[test]
fn run_says_what_is_wrong_with_a_program_and_how_to_sign_in() {
    let gateway = Gateway::start();
    let dir = gateway.dir.path();
    std::fs::write(dir.join("notes"), "no program").unwrap();
    let run = |args: &[&str]| {
        let output = plexus(&gateway.home(), &[&["run"], args].concat()).current_dir(dir).output().unwrap();
        assert_ne!(code(&output), 0, "{args:?}");
        err(&output)
    };
    let program = |program: &str| run(&["--dialect", "acp", "--", program]);
    assert!(program("./notes").contains("./notes is not executable"), "{}", program("./notes"));
    assert!(program("./nothing").contains("./nothing does not exist"), "{}", program("./nothing"));
    assert!(program("no-such-agent").contains("no-such-agent is not installed; check the name and PATH"));
    assert!(run(&["gemni"]).ends_with("did you mean gemini?\n"), "{}", run(&["gemni"]));

    // An agent that needs a key and does not name its variables.
    let script = r#"#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    if call.get("method") == "initialize":
        methods = [{"id": "key", "name": "API key"}]
        print(json.dumps({"id": call["id"], "result": {"protocolVersion": 1, "authMethods": methods}}), flush=True)
    elif "id" in call and "method" in call:
        print(json.dumps({"id": call["id"], "error": {"code": -32000, "message": "No key."}}), flush=True)
"#;
    let output = run_script(&gateway, "gemini", "gemini", script);
    let said = err(&output);
    assert!(said.contains("the agent requires a sign-in: No key. Choose with `--auth-method`"), "{said}");
    assert!(said.contains("It gets GEMINI_*, GOOGLE_* of the environment that it is started from"), "{said}");
}

#[test]
fn agent_that_requires_a_sign_in_leaves_nothing_and_says_how() {
    let gateway = Gateway::start();
    let dir = gateway.dir.path();
    for (methods, hint) in [
        ("[]", "(`plexus run .. --pass-env NAME`, or `pass_env` in the configuration)"),
        (
            r#"[{"id": "key", "name": "Key", "description": "Requires setting the `OPENAI_API_KEY` environment variable"}]"#,
            "It reads OPENAI_API_KEY; set one and pass it on with `--pass-env OPENAI_API_KEY` (`pass_env`).",
        ),
    ] {
        let script = format!(
            r#"#!/usr/bin/env python3
import json, sys
methods = json.loads({methods:?})
for line in sys.stdin:
    call = json.loads(line)
    if call.get("method") == "initialize":
        result = {{"protocolVersion": 1, "authMethods": methods, "agentCapabilities": {{"sessionCapabilities": {{"list": {{}}}}}}}}
        print(json.dumps({{"id": call["id"], "result": result}}), flush=True)
    elif "id" in call and "method" in call:
        print(json.dumps({{"id": call["id"], "error": {{"code": -32000, "message": "No key."}}}}), flush=True)
"#
        );
        std::fs::write(dir.join("keyless"), script).unwrap();
        std::fs::set_permissions(dir.join("keyless"), std::fs::Permissions::from_mode(0o755)).unwrap();
        for _ in 0..2 {
            let run = ["run", "--dialect", "acp", "--", "./keyless"];
            let output = plexus(&gateway.home(), &run).current_dir(dir).output().unwrap();
            assert_eq!(code(&output), 1, "{}", out(&output));
            let said = err(&output);
            assert!(said.contains("the agent requires a sign-in: No key.") && said.contains(hint), "{said}");
            assert_eq!(runtimes(&gateway), ["demo"], "it neither runs on nor takes a name");
        }
    }
    // Also one that is started to go on with an earlier conversation.
    let bin = dir.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::rename(dir.join("keyless"), bin.join("gemini")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let new = ["new", "gemini", "--continue"];
    let output = plexus(&gateway.home(), &new).env("PATH", path).current_dir(dir).output().unwrap();
    assert_ne!(code(&output), 0, "{}", out(&output));
    assert_eq!(runtimes(&gateway), ["demo"], "{}", err(&output));
}

#[test]
fn run_starts_codex_once_however_often_it_is_called() {
    let gateway = Gateway::start();
    let script = r#"#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    if "id" in call and "method" in call:
        results = {
            "initialize": {"userAgent": "plexus/0.169.0 (x)"},
            "thread/start": {"thread": {"id": "s%s" % call["id"], "cwd": "/"}, "model": "m"},
            "model/list": {"data": []},
        }
        print(json.dumps({"id": call["id"], "result": results.get(call["method"], {})}), flush=True)
"#;
    for words in ["ready in", "is already running"] {
        let output = run_script(&gateway, "codex", "codex-app", script);
        assert!(out(&output).contains(words), "{}{}", out(&output), err(&output));
        assert_eq!(runtimes(&gateway).iter().filter(|id| id.starts_with("codex-app")).count(), 1);
    }
    fine(&gateway.home(), &["stop", "codex-app"]);
}

#[test]
fn errors_have_an_exit_code_and_a_fix() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["tail"],
        &["prompt", "last", "x"],
        &["cancel", "last"],
        &["rename", "last", "x"],
        &["archive", "last"],
        &["share", "last"],
        &["requests"],
        &["answer", "q_1", "--allow"],
        &["export", "last"],
        &["search", "x"],
        &["open"],
        &["restart", "x"],
        &["stop", "x"],
    ] {
        let output = done(&home, args);
        assert_eq!(code(&output), 69, "{args:?}: {}", err(&output));
        assert!(err(&output).contains("start one with `plexus serve`"), "{}", err(&output));
        assert_eq!(out(&output), "");
    }
    assert!(!home.exists(), "looking for a gateway makes nothing");
    for args in
        [&["frobnicate"][..], &["run"], &["answer", "q"], &["run", "nonesuch"], &["run", "--dialect", "x", "--", "sh"]]
    {
        assert_eq!(code(&done(&home, args)), 2, "{args:?}");
    }
    let config = dir.path().join("bad.toml");
    std::fs::write(&config, "lisen = \"127.0.0.1:1\"\n").unwrap();
    let output = done(&home, &["serve", "-c", config.to_str().unwrap()]);
    assert_eq!(code(&output), 64);
    let told = format!("plexus: {}:1:1: lisen: unknown key; did you mean listen?\n", config.display());
    assert_eq!(err(&output), told);
    for listen in ["0.0.0.0:0", "nonsense"] {
        assert_eq!(code(&done(&home, &["serve", "--listen", listen])), 64, "{listen}");
    }
    assert_eq!(code(&done(&home, &["serve", "-c", "/no/such/file"])), 64);
    let output = plexus(&home, &["run", "gemini"]).env("PATH", dir.path()).output().unwrap();
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("npm install -g @google/gemini-cli"), "{}", err(&output));
    let doctor = json(&home, &["doctor", "--json"]);
    let checks = doctor["checks"].as_array().unwrap();
    assert!(
        checks
            .iter()
            .any(|check| check["check"] == "gateway" && check["verdict"] == "warn" && check["fix"].is_string())
    );
    assert!(checks.iter().any(|check| check["check"] == "agent demo" && check["verdict"] == "ok"));
}

/// The completions that the shell gets for the last word.
fn offered(home: &Path, words: &[&str]) -> String {
    let mut command = plexus(home, &["--", "plexus"]);
    let index = words.len().to_string();
    command.args(words).env("PLEXUS_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", index);
    command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "false").env("_CLAP_IFS", "\n");
    out(&command.output().unwrap())
}

#[test]
fn completions_know_commands_presets_and_sessions() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = fine(dir.path(), &["completions", shell]);
        assert!(script.contains("PLEXUS_COMPLETE") && script.contains("plexus"), "{script}");
    }
    let is_there = |shell: &str| Command::new(shell).arg("--version").output().is_ok();
    if is_there("bash") {
        let check = Command::new("bash").args(["-n", "/dev/stdin"]).stdin(Stdio::piped()).spawn();
        let mut check = check.unwrap();
        check.stdin.take().unwrap().write_all(fine(dir.path(), &["completions", "bash"]).as_bytes()).unwrap();
        assert!(check.wait().unwrap().success());
    }
    // Without a gateway: commands and presets.
    assert!(offered(dir.path(), &["at"]).contains("attach"), "{}", offered(dir.path(), &["at"]));
    let presets = offered(dir.path(), &["run", "ge"]);
    assert!(presets.contains("gemini") && !presets.contains("codex"), "{presets}");
    assert_eq!(offered(dir.path(), &["attach", "s_"]).trim(), "");
    // With one: its sessions, runtimes and requests.
    let gateway = Gateway::start();
    let home = gateway.home();
    let session = json(&home, &["ls", "--json"])["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    assert!(offered(&home, &["attach", ""]).contains(&session));
    assert!(offered(&home, &["attach", ""]).contains("last"));
    assert!(offered(&home, &["stop", ""]).contains("demo"));
}

#[test]
fn man_pages_are_written_for_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man1");
    let said = fine(dir.path(), &["completions", "man", pages.to_str().unwrap()]);
    assert!(said.contains("man1"), "{said}");
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
    assert!(page("plexus.1").contains("One gateway between"));
    assert!(page("plexus-run.1").contains("PRESET") && page("plexus-attach.1").contains("terminal UI"));
    assert!(!pages.join("plexus-hold.1").exists(), "what is hidden has no page");
}

#[test]
fn mistyped_names_are_answered_with_the_nearest() {
    let gateway = Gateway::start();
    let home = gateway.home();
    for (words, near) in [
        (&["atach"][..], "attach"),
        (&["run", "gemni"], "did you mean gemini?"),
        (&["run", "--dialect", "apc", "--", "sh"], "did you mean acp?"),
        (&["stop", "dmeo"], "did you mean demo?"),
        (&["restart", "demoo"], "did you mean demo?"),
        (&["export", "Dmeo"], "(Demo)?"),
        (&["link", "cluade"], "claude"),
    ] {
        let output = done(&home, words);
        assert_ne!(code(&output), 0, "{words:?}");
        assert!(err(&output).contains(near), "{words:?}: {}", err(&output));
    }
}

#[test]
fn commands_of_a_whole_day() {
    let gateway = Gateway::start();
    let home = gateway.home();
    let session = gateway.session().unwrap();
    let mode = |name: &str| std::fs::metadata(home.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("token"), mode("gateway.json")), (0o700, 0o600, 0o600));

    // A second gateway in the same folder names the first.
    let second = done(&home, &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(code(&second), 1);
    assert!(err(&second).contains("already running at http://127.0.0.1:"), "{}", err(&second));

    // Another command follows all the time.
    let tail = Talking::start(plexus(&home, &["tail", "--json"]));

    let said = fine(&home, &["prompt", "last", "echo one needle in here", "--wait"]);
    assert!(said.contains("> echo one needle in here\none needle in here\n· done\n"), "{said}");
    let short = &session[..8];
    assert!(fine(&home, &["prompt", short, "echo two"]).starts_with("r_"));
    let event: Value = serde_json::from_str(&tail.line("two\"")).unwrap();
    assert_eq!(event["session_id"], session.as_str());
    let mut piped =
        plexus(&home, &["prompt", "last", "-", "--wait"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    piped.stdin.take().unwrap().write_all(b"echo from a pipe\n").unwrap();
    assert!(out(&piped.wait_with_output().unwrap()).contains("from a pipe\n· done"));

    // A request: seen, answered, and answered too late.
    fine(&home, &["prompt", "last", "ask touch x"]);
    let request = open_request(&home);
    let id = request["request_id"].as_str().unwrap();
    let listed = fine(&home, &["requests"]);
    assert!(listed.contains(id) && listed.contains("│ touch x") && listed.contains("--option"), "{listed}");
    assert!(fine(&home, &["ls"]).contains("waiting"));
    let wrong = done(&home, &["answer", id, "--option", "nonesuch"]);
    assert_eq!(code(&wrong), 1);
    assert!(err(&wrong).contains("no answer has this name"), "{}", err(&wrong));
    assert!(err(&wrong).contains("allow_once = Allow once"), "{}", err(&wrong));
    assert!(
        fine(&home, &["answer", &id[..10], "--option", "allow once"])
            .starts_with("your answer counts: allowed by plexus answer (local)")
    );
    let late = done(&home, &["answer", id, "--deny"]);
    assert_eq!(code(&late), 1);
    assert!(out(&late).starts_with("too late: allowed by"), "{}", out(&late));
    tail.line("\"run_ended\"");

    // An edit with the answer, where the agent allows one.
    let refused = |id: &str| done(&home, &["answer", id, "--allow", "--edit", "touch z"]);
    fine(&home, &["prompt", "last", "ask touch y"]);
    let plain = open_request(&home);
    let output = refused(plain["request_id"].as_str().unwrap());
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("cannot be edited"), "{}", err(&output));
    fine(&home, &["answer", plain["request_id"].as_str().unwrap(), "--deny"]);
    fine(&home, &["prompt", "last", "edit touch y"]);
    let request = until("the other request opens", || {
        json(&home, &["requests", "--json"])["requests"].get(0).filter(|open| **open != plain).cloned()
    });
    assert_eq!(request["editable"], serde_json::json!({ "label": "Command", "value": "touch y" }));
    assert!(fine(&home, &["requests"]).contains("--allow --edit TEXT  another command"));
    let output = refused(request["request_id"].as_str().unwrap());
    assert!(out(&output).contains("changed to: touch z"), "{}{}", out(&output), err(&output));
    tail.line("allowed after a change: touch z");
    tail.line("\"run_ended\"");

    // Renamed and archived; `last` and prefixes still find it.
    assert_eq!(fine(&home, &["rename", "last", "The parser"]), format!("{session} is now The parser\n"));
    assert!(fine(&home, &["ls"]).contains("The parser"));
    assert_eq!(fine(&home, &["archive", "last"]), format!("{session} is archived\n"));
    assert!(!fine(&home, &["ls"]).contains("The parser"));
    assert!(fine(&home, &["ls", "--archived"]).contains("The parser"));
    fine(&home, &["archive", "last", "--undo"]);
    assert!(fine(&home, &["ls", "--archived"]).contains("no archived sessions"));
    assert_eq!(code(&done(&home, &["rename", "last", " "])), 1);

    // A link for others, listed as a device and revoked.
    let shared = done(&home, &["share", "last", "--hours", "2"]);
    assert!(
        out(&shared).lines().count() == 1 && out(&shared).contains("/#share=plx_"),
        "the link alone: {}",
        out(&shared)
    );
    let device = err(&shared).split('`').nth(1).unwrap().rsplit(' ').next().unwrap().to_owned();
    assert!(fine(&home, &["devices"]).contains("link to The parser"));
    fine(&home, &["devices", "revoke", &device]);
    assert!(!fine(&home, &["devices"]).contains("link to"));
    let made = json(&home, &["share", "last", "--json"]);
    assert!(made["url"].is_string() && made["expires_at"].is_string(), "{made}");
    assert_eq!(code(&done(&home, &["share", "last", "--hours", "0"])), 1);

    // Cancelling.
    let hang = Talking::start(plexus(&home, &["prompt", "last", "hang", "--wait"]));
    running(&home);
    fine(&home, &["cancel", "last"]);
    hang.line("cancelled");
    let mut hang = hang;
    assert_eq!(hang.end(), 1);
    assert_eq!(code(&done(&home, &["cancel", "last"])), 1, "nothing to cancel");

    // History.
    let events = fine(&home, &["export", "last"]);
    for line in events.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    let tailed = fine(&home, &["tail", &session, "--json", "--no-follow"]);
    assert_eq!(tailed, events, "the same events, byte for byte, over HTTP and over the WebSocket");
    let cursor: Value = serde_json::from_str(events.lines().nth(3).unwrap()).unwrap();
    let rest = fine(&home, &["tail", &session, "--json", "--no-follow", "--after", cursor["cursor"].as_str().unwrap()]);
    assert_eq!(rest, events.lines().skip(4).map(|line| format!("{line}\n")).collect::<String>());
    assert_eq!(code(&done(&home, &["tail", "--after", "nonsense"])), 1);
    let markdown = fine(&home, &["export", &session, "--format", "md"]);
    assert!(markdown.contains("**Agent**\n\n> one needle in here"), "{markdown}");
    let html = fine(&home, &["export", &session, "--format", "html"]);
    assert!(html.starts_with("<!doctype html>") && html.contains("one needle in here"));
    until("the words are indexed", || {
        let found = json(&home, &["search", "needle", "--json"]);
        found["hits"].as_array().unwrap().iter().any(|hit| hit["session_id"] == session.as_str()).then_some(())
    });
    assert!(fine(&home, &["search", "needle"]).contains("one needle in here"));
    assert_eq!(fine(&home, &["search", "nowheretobefound"]), "nothing found\n");

    // A reader that leaves early is no error.
    let mut cut = plexus(&home, &["tail", "--json", "--no-follow"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(cut.stdout.take());
    assert_eq!(code(&cut.wait_with_output().unwrap()), 0);

    assert!(fine(&home, &["open"]).contains("/#code="));
    let doctor = json(&home, &["doctor", "--json"]);
    let checks = doctor["checks"].as_array().unwrap();
    let verdict = |name: &str| checks.iter().find(|check| check["check"] == name).map(|check| check["verdict"].clone());
    assert_eq!((verdict("gateway"), verdict("signing in")), (Some("ok".into()), Some("ok".into())));

    // The agent is restarted, and its session goes on.
    assert_eq!(fine(&home, &["restart", "demo"]), "restarted demo\n");
    until("the session is open again", || fine(&home, &["ls"]).contains("idle").then_some(()));
    let again = plexus(&home, &["prompt", "last", "echo back", "--wait"]).output().unwrap();
    assert!(code(&again) == 0 && out(&again).contains("back"), "{}{}", out(&again), err(&again));

    assert_eq!(code(&done(&home, &["stop", "nonesuch"])), 1);
    assert_eq!(fine(&home, &["stop", "demo"]), "stopped demo\n");
    until("the session is over", || fine(&home, &["ls"]).contains("exited").then_some(()));
    let gone = done(&home, &["prompt", "last", "echo x"]);
    assert_eq!(code(&gone), 1);
    assert!(err(&gone).contains("plexus run"), "{}", err(&gone));

    // Stopping in order; afterwards nothing is found.
    let mut gateway = gateway;
    gateway.serve.signal(rustix::process::Signal::TERM);
    assert_eq!(gateway.serve.end(), 0);
    assert_eq!(code(&done(&home, &["ls"])), 69);
}

/// A relay between a client and the gateway that counts the gateway's bytes.
fn relay(home: &Path) -> (std::sync::Arc<std::sync::atomic::AtomicUsize>, String) {
    let file = std::fs::read_to_string(home.join("gateway.json")).unwrap();
    let url = serde_json::from_str::<Value>(&file).unwrap()["url"].as_str().unwrap().to_owned();
    let to = url.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let here = format!("http://{}", listener.local_addr().unwrap());
    let moved = std::sync::Arc::<std::sync::atomic::AtomicUsize>::default();
    let count = std::sync::Arc::clone(&moved);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = std::net::TcpStream::connect(&to) else { return };
            let (mut from, mut into) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            // The gateway answers only to its own host name.
            let (mine, its) = (client.local_addr().unwrap().to_string(), to.clone());
            std::thread::spawn(move || {
                let mut bytes = vec![0; 64 << 10];
                while let Ok(many @ 1..) = from.read(&mut bytes) {
                    let name = bytes[..many].windows(mine.len()).position(|part| part == mine.as_bytes());
                    let sent = match name {
                        Some(at) => [&bytes[..at], its.as_bytes(), &bytes[at + mine.len()..many]].concat(),
                        None => bytes[..many].to_vec(),
                    };
                    if into.write_all(&sent).is_err() {
                        break;
                    }
                }
                let _ = into.shutdown(std::net::Shutdown::Write);
            });
            let (count, mut server, mut client) = (std::sync::Arc::clone(&count), server, client);
            std::thread::spawn(move || {
                let mut bytes = vec![0; 64 << 10];
                while let Ok(many @ 1..) = server.read(&mut bytes) {
                    count.fetch_add(many, std::sync::atomic::Ordering::SeqCst);
                    if client.write_all(&bytes[..many]).is_err() {
                        break;
                    }
                }
                let _ = client.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    std::fs::write(home.join("gateway.json"), file.replace(&url, &here)).unwrap();
    (moved, file)
}

#[test]
fn tail_of_a_long_session_gets_whole_messages_in_few_bytes() {
    let gateway = Gateway::start();
    let home = gateway.home();
    gateway.session().unwrap();
    fine(&home, &["prompt", "last", "flood 20000 ;; ask", "--json"]);
    open_request(&home);
    let (moved, file) = relay(&home);
    let bytes = || moved.swap(0, std::sync::atomic::Ordering::SeqCst);
    let read = fine(&home, &["tail", "last", "--no-follow"]);
    let merged = bytes();
    let plain = fine(&home, &["tail", "last", "--no-follow", "--json"]);
    let events = bytes();
    std::fs::write(home.join("gateway.json"), file).unwrap();
    let said: String = plain
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|event| event["kind"] == "agent_message_chunk")
        .map(|event| event["event"]["content"]["text"].as_str().unwrap().to_owned())
        .collect();
    assert!(said.len() >= 20_000 * 12 && read.contains(said.trim_end()), "{} of {}", read.len(), said.len());
    assert!(read.contains("│ touch demo.txt"), "what came after it is there, too");
    println!("{} bytes of text: {merged} bytes merged, {events} by events", said.len());
    assert!(merged < said.len() * 2 && merged * 5 < events, "{merged} bytes for {}, {events} by events", said.len());
    // From a cursor within it, and of all sessions, the same.
    let half = serde_json::from_str::<Value>(plain.lines().nth(10_000).unwrap()).unwrap();
    let rest = fine(&home, &["tail", "last", "--no-follow", "--after", half["cursor"].as_str().unwrap()]);
    assert!(read.ends_with(&rest) && rest.len() > 100_000, "{} of {}", rest.len(), read.len());
    assert!(fine(&home, &["tail", "--no-follow"]).contains(said.trim_end()));
    let other = done(&home, &["tail", "last", "--no-follow", "--after", "zzzz:5"]);
    assert!(
        err(&other).contains("does not belong to this log") && out(&other).contains("chunk-20000"),
        "{}",
        err(&other)
    );
}

/// The open request other than this one.
fn another(home: &Path, before: &Value) -> Value {
    until("another request opens", || {
        json(home, &["requests", "--json"])["requests"].get(0).filter(|open| **open != *before).cloned()
    })
}

#[test]
fn form_is_shown_with_options_and_answered_by_question() {
    let gateway = Gateway::start();
    let home = gateway.home();
    gateway.session().unwrap();
    let tail = Talking::start(plexus(&home, &["tail", "last"]));
    fine(&home, &["prompt", "last", "form"]);
    let form = open_request(&home);
    let id = form["request_id"].as_str().unwrap();
    let shown = fine(&home, &["requests"]);
    for words in [
        "  │ Before the project is set up:\n",
        "  question 1 of 4 · Database (one of these)\n  │ Which database?\n    1  PostgreSQL  a server of its own\n",
        "  question 2 of 4 · Extras (any of these, at most 2 of them, optional)\n",
        "(a whole number, 1024 to 65535, optional)\n",
        "  --option database=sqlite  SQLite\n",
        "  --option title=WORDS\n",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("JSON"), "{shown}");
    tail.line("Which database?");
    tail.line(&format!("plexus answer {id} --option QUESTION=ANSWER .. | --deny"));

    let answer = |said: &[&str]| {
        let said = said.iter().flat_map(|said| ["--option", *said]);
        let args: Vec<&str> = ["answer", id].into_iter().chain(said).collect();
        done(&home, &args)
    };
    for (said, why) in [
        (&["sqlite"][..], "name the question: --option ID=ANSWER, with an ID of database, extras, port, title"),
        (&["database=sqlite"], "the answer to title is missing: use --option ID=ANSWER"),
        (&["database=oracle", "title=x"], "\"oracle\" is not an answer to \"Database\""),
        (&["database=sqlite", "database=postgres", "title=x"], "\"Database\" accepts one answer"),
        (
            &["database=sqlite", "extras=seed", "extras=backup", "extras=migrations", "title=x"],
            "a number of answers of at most 2",
        ),
        (&["database=sqlite", "port=80", "title=x"], "must be a whole number from 1024 to 65535"),
        (&["database=sqlite", "port=many", "title=x"], "must be a whole number from 1024 to 65535"),
        (&["database=sqlite", "title="], "\"Title\" has no answer"),
    ] {
        let refused = answer(said);
        assert_eq!(code(&refused), 1, "{said:?}: {}", out(&refused));
        assert!(err(&refused).contains(why), "{said:?}: {}", err(&refused));
    }
    for (args, why) in [
        (
            &["answer", id, "--allow"][..],
            "this request has several questions: answer with --option ID=ANSWER for each of",
        ),
        (&["answer", id, "--text", "sqlite"], "name the question"),
        (&["answer", id, "--deny", "--digest", "00000000"], "read it again"),
    ] {
        let refused = done(&home, args);
        assert_eq!(code(&refused), 1, "{args:?}: {}", out(&refused));
        assert!(err(&refused).contains(why), "{args:?}: {}", err(&refused));
    }
    // By id or label, several of one question, text with an equals sign; optional ones are left out.
    let answered = answer(&["database=SQLite", "extras=seed", "extras=backup", "title=a=b"]);
    assert_eq!((code(&answered), err(&answered)), (0, String::new()), "{}", out(&answered));
    assert!(out(&answered).starts_with("your answer counts: answered by"), "{}", out(&answered));
    let said = tail.line("The form:");
    let content: Value = serde_json::from_str(said.split_once("The form: ").unwrap().1).unwrap();
    assert_eq!(content, serde_json::json!({ "database": "sqlite", "extras": ["seed", "backup"], "title": "a=b" }));
    tail.line("done");

    // A denial is an answer too.
    fine(&home, &["prompt", "last", "form"]);
    let second = another(&home, &form);
    fine(&home, &["answer", second["request_id"].as_str().unwrap(), "--deny"]);
    tail.line("No answer to the form: cancel");
}

#[test]
fn long_request_is_read_whole_and_every_card_shows_its_reasons() {
    let gateway = Gateway::start();
    let home = gateway.home();
    gateway.session().unwrap();
    let tail = Talking::start(plexus(&home, &["tail", "last"]));
    // Longer than the part of a request in lists and greetings.
    let words: Vec<String> = (0..4_000).map(|n| format!("file-{n}")).collect();
    let command = format!("rm -rf {}", words.join(" "));
    fine(&home, &["prompt", "last", &format!("ask {command}")]);
    let request = open_request(&home);
    assert!(request["display"].as_str().unwrap().contains("file-3999\nin "), "whole in the list of `requests`");
    let listed = fine(&home, &["requests"]);
    let reasons = request["risk_reasons"].as_array().unwrap();
    assert!(!reasons.is_empty(), "{request}");
    let reason = reasons[0].as_str().unwrap();
    assert!(listed.contains("file-3999") && listed.contains(reason), "{listed}");
    tail.line(reason);
    let id = request["request_id"].as_str().unwrap();
    assert!(fine(&home, &["answer", &id[..12], "--allow"]).starts_with("your answer counts: allowed by"));
    tail.line("done");
}

/// Listens on a gateway's port, answers its health check, and records what it receives.
fn impostor(address: &str, answer: &'static str) -> mpsc::Receiver<String> {
    let listener = until("the port is free", || std::net::TcpListener::bind(address).ok());
    let (told, heard) = mpsc::sync_channel(LINES);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut said = [0; 4096];
            let Ok(read) = stream.read(&mut said) else { continue };
            if told.send(String::from_utf8_lossy(&said[..read]).into_owned()).is_err() {
                return;
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
            let _ = stream.write_all(format!("{head}{answer}").as_bytes());
        }
    });
    heard
}

#[test]
fn impostor_on_the_gateways_port_gets_no_token() {
    for answer in ["ok\n", "ok 0000000000000000000000000000000000000000000000000000000000000000\n", ""] {
        let mut gateway = Gateway::start();
        let home = gateway.home();
        fine(&home, &["ls"]);
        gateway.serve.child.kill().unwrap();
        gateway.serve.child.wait().unwrap();
        // A killed gateway leaves the file; its process id and its port may soon belong to others.
        let file = home.join("gateway.json");
        let mut running: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        running["pid"] = std::process::id().into();
        std::fs::write(&file, running.to_string()).unwrap();
        let address = running["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/').to_owned();
        let heard = impostor(&address, answer);
        let token = std::fs::read_to_string(home.join("token")).unwrap();
        for args in [
            &["ls"][..],
            &["tail"],
            &["prompt", "last", "x"],
            &["requests"],
            &["open"],
            &["pair"],
            &["devices"],
            &["bridge", "acp"],
            &["bridge", "codelia"],
            &["attach"],
            &["doctor"],
        ] {
            // A bridge keeps looking for the gateway: its output until it is ended counts.
            let mut command = plexus(&home, args);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            // Without a terminal, attach leaves before it looks for anything.
            let asked = (args[0] != "attach").then(|| heard.recv_timeout(PATIENCE).expect("it looked for the gateway"));
            if args[0] == "bridge" {
                let _ = child.kill();
            }
            let status = child.wait().unwrap();
            // The doctor may report anything.
            assert!(!status.success() || args[0] == "doctor", "{args:?}");
            for said in asked.into_iter().chain(heard.try_iter()) {
                assert!(said.starts_with("GET /healthz?challenge="), "{args:?}: {said}");
                assert!(!said.contains(token.trim()) && !said.to_lowercase().contains("authorization"), "{said}");
            }
        }
    }
}

#[test]
fn missing_scope_is_reported() {
    let gateway = Gateway::start();
    let home = gateway.home();
    // Another device's home: the same gateway, a token that may only watch.
    let other = gateway.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(home.join("gateway.json"), other.join("gateway.json")).unwrap();
    let no_token = done(&other, &["ls"]);
    assert_eq!(code(&no_token), 77, "{}", err(&no_token));
    std::fs::write(other.join("token"), "plx_wrong").unwrap();
    for args in [&["ls"][..], &["tail"], &["prompt", "last", "x"]] {
        let output = done(&other, args);
        assert_eq!(code(&output), 77, "{args:?}: {}", err(&output));
        assert!(err(&output).contains("PLEXUS_HOME"), "{}", err(&output));
    }
    let file: Value = serde_json::from_slice(&std::fs::read(home.join("gateway.json")).unwrap()).unwrap();
    let token = std::fs::read_to_string(home.join("token")).unwrap();
    let body = r#"{"name":"watcher","scopes":["watch"]}"#;
    let answer = post(file["url"].as_str().unwrap(), "/v1/devices", token.trim(), body);
    std::fs::write(other.join("token"), answer["token"].as_str().unwrap()).unwrap();
    fine(&other, &["ls"]);
    // A file of a version without a proof.
    let mut old = file.clone();
    old.as_object_mut().unwrap().remove("proof");
    std::fs::write(other.join("gateway.json"), old.to_string()).unwrap();
    let output = done(&other, &["ls"]);
    assert_eq!(code(&output), 69);
    assert!(err(&output).contains("cannot prove its identity"), "{}", err(&output));
    std::fs::write(other.join("gateway.json"), file.to_string()).unwrap();
    fine(&other, &["tail", "--no-follow"]);
    for args in
        [&["prompt", "last", "echo x"][..], &["cancel", "last"], &["share", "last"], &["stop", "demo"], &["open"]]
    {
        let output = done(&other, args);
        assert_eq!(code(&output), 77, "{args:?}: {}", err(&output));
        assert!(err(&output).contains("lacks the scope"), "{}", err(&output));
    }
}

/// A POST by hand, so that the test has no client of its own to trust.
fn post(url: &str, path: &str, token: &str, body: &str) -> Value {
    let authority = url.strip_prefix("http://").unwrap();
    let mut socket = std::net::TcpStream::connect(authority).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        socket,
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 20"), "{head}");
    serde_json::from_str(body).unwrap()
}

#[test]
fn run_starts_what_is_missing_and_follows() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    std::fs::create_dir(&home).unwrap();
    // A free port, so that tests do not share the default one.
    std::fs::write(home.join("plexus.toml"), "listen = \"127.0.0.1:0\"\n").unwrap();
    let guard = Detached(home.clone());

    let output = plexus(&home, &["run", "demo", "--prompt", "echo hello"]).current_dir(dir.path()).output().unwrap();
    let said = out(&output);
    assert_eq!(code(&output), 0, "{said}{}", err(&output));
    for words in
        ["no gateway was running: started one", "starting demo … ready in", "session s_", "> echo hello\nhello\n· done"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!std::fs::read_to_string(home.join("gateway.log")).unwrap().contains("code="), "a log holds no code");

    // Again: the same gateway, the same agent, another session; prompts from a pipe, one a line.
    let mut piped = plexus(&home, &["run", "demo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .current_dir(dir.path())
        .spawn()
        .unwrap();
    piped.stdin.take().unwrap().write_all(b"echo a\n\necho b\n").unwrap();
    let output = piped.wait_with_output().unwrap();
    let said = out(&output);
    assert_eq!(code(&output), 0, "{said}");
    assert!(
        said.contains("demo is already running") && said.contains("> echo a") && said.contains("b\n· done"),
        "{said}"
    );

    // The settings of a running agent cannot be changed.
    let output = plexus(&home, &["run", "demo", "--env", "A=b"]).current_dir(dir.path()).output().unwrap();
    assert_eq!(code(&output), 2, "{}", out(&output));
    assert!(
        err(&output).contains("--env: demo is already running") && err(&output).contains("--id OTHER"),
        "{}",
        err(&output)
    );
    assert_eq!(json(&home, &["ls", "--json"])["sessions"].as_array().unwrap().len(), 2);

    // Another client answers: the follower sees it.
    let asked = Talking::start(plexus(&home, &["run", "demo", "--prompt", "ask touch x"]));
    asked.line("? demo asks");
    let id = open_request(&home)["request_id"].as_str().unwrap().to_owned();
    fine(&home, &["answer", &id, "--deny"]);
    asked.line("denied by");
    asked.line("· done");
    let mut asked = asked;
    assert_eq!(asked.end(), 0);

    // Ctrl-C cancels the run.
    let mut hanging = Talking::start(plexus(&home, &["run", "demo", "--prompt", "hang"]));
    running(&home);
    hanging.signal(rustix::process::Signal::INT);
    hanging.line("cancelled");
    assert_eq!(hanging.end(), 1);

    // Any program that speaks a dialect; a name of its own; a failure is one.
    let args = ["run", "--dialect", "acp", "--id", "mine", "--prompt", "crash", "--", PLEXUS, "agent", "demo"];
    let output = done(&home, &args);
    assert_eq!(code(&output), 1, "{}", out(&output));
    assert!(
        out(&output).contains("starting mine … ready") && out(&output).contains("exited with code 3"),
        "{}",
        out(&output)
    );
    let output = done(&home, &["run", "--dialect", "acp", "--", "sh", "-c", "echo broken >&2; exit 7"]);
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("did not start") && err(&output).contains("broken"), "{}", err(&output));
    drop(guard);
    until("nobody is left", || (code(&done(&home, &["ls"])) == 69).then_some(()));
}

#[test]
fn run_passes_variables_and_shows_why_a_prompt_failed() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("plexus.toml"), "listen = \"127.0.0.1:0\"\n").unwrap();
    // The agent signs in by the given method, and reports errors only on stderr.
    let agent = dir.path().join("agent.sh");
    let script = r#"#!/bin/sh
read hello; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"authMethods":[{"id":"by-key","name":"Key"}]}}'
read auth; case $auth in *authenticate*by-key*) ;; *) exit 9 ;; esac
echo '{"jsonrpc":"2.0","id":1,"result":null}'
read new; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
read prompt; echo "got $GIVEN and $FAMILY_ONE, ${KEPT_BACK-nothing else}; of the key ${#STRANGE_KEY} characters: $STRANGE_KEY" >&2
echo '{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Internal error"}}'
read rest
"#;
    std::fs::write(&agent, script).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let agent = agent.to_str().unwrap();
    let guard = Detached(home.clone());
    let shell = |args: &[&str]| {
        let mut command = plexus(&home, args);
        command.env("FAMILY_ONE", "two").env("KEPT_BACK", "no").env("STRANGE_KEY", "sk-abc123def456ghi");
        command.current_dir(dir.path()).output().unwrap()
    };
    let args = ["run", "--dialect", "acp", "--id", "stranger", "--auth-method", "by-key", "--env", "GIVEN=one"];
    let args = [&args[..], &["--env", "STRANGE_KEY", "--pass-env", "FAMILY_*", "--prompt", "hi", "--", agent]].concat();
    let output = shell(&args);
    let said = format!("{}{}", out(&output), err(&output));
    assert_eq!(code(&output), 1, "{said}");
    let words = "Internal error; it wrote: got one and two, nothing else; of the key 18 characters: sk-";
    assert!(said.contains(words), "{said}");
    assert!(!said.contains("abc123def456"), "{said}");
    // The values are in no listing and in no process list.
    let token = std::fs::read_to_string(home.join("token")).unwrap();
    let file: Value = serde_json::from_slice(&std::fs::read(home.join("gateway.json")).unwrap()).unwrap();
    let url = format!("{}/v1/runtimes", file["url"].as_str().unwrap().trim_end_matches('/'));
    let bearer = format!("Authorization: Bearer {}", token.trim());
    let listed = out(&Command::new("curl").args(["-s", "-H", &bearer, &url]).output().unwrap());
    assert!(
        listed.contains("stranger") && !listed.contains("STRANGE_KEY") && !listed.contains("abc123def456"),
        "{listed}"
    );
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains("abc123def456"), "{:?}", entry.path());
    }
    for (wrong, words) in [
        (["--env", "NOT_SET_ANYWHERE"], "not set in this shell"),
        (["--env", "=x"], "the variable has no name"),
        (["--pass-env", "A=B"], "not the name of a variable"),
    ] {
        let output = shell(&[&["run", "demo"][..], &wrong[..]].concat());
        assert!(code(&output) == 2 && err(&output).contains(words), "{wrong:?}: {}", err(&output));
    }
    drop(guard);
    until("nobody is left", || (code(&done(&home, &["ls"])) == 69).then_some(()));
}

/// Ends the gateway that `run` started.
struct Detached(PathBuf);

impl Drop for Detached {
    fn drop(&mut self) {
        let Ok(text) = std::fs::read(self.0.join("gateway.json")) else { return };
        let pid =
            serde_json::from_slice::<Value>(&text).ok().and_then(|file| i32::try_from(file["pid"].as_i64()?).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }
}

#[test]
fn tail_resumes_with_its_cursor() {
    let mut gateway = Gateway::start();
    let home = gateway.home();
    let config = gateway.dir.path().join("demo.toml");
    fine(&home, &["prompt", "last", "echo old-words", "--wait"]);
    let tail = Talking::start(plexus(&home, &["tail", "--json"]));
    tail.line("\"run_ended\"");
    gateway.serve.child.kill().unwrap();
    gateway.serve.child.wait().unwrap();
    let mut command = plexus(&home, &["serve", "-c", config.to_str().unwrap()]);
    command.stderr(Stdio::null());
    gateway.serve = Talking::start(command);
    gateway.serve.line("http://127.0.0.1:");
    until("the configured session opens again", || gateway.session());
    fine(&home, &["prompt", "last", "echo afterwards", "--wait"]);
    // Only new output: nothing again, then the new events.
    let end = Instant::now() + PATIENCE;
    loop {
        let line = tail.lines.recv_timeout(end.saturating_duration_since(Instant::now())).unwrap();
        assert!(!line.contains("old-words"), "heard twice: {line}");
        if line.contains("afterwards") {
            break;
        }
    }
}
