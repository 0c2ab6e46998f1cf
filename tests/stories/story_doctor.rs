//! `plexus doctor` on prepared machines: what can be attached, whether it works, and the fixes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::gateway::{Gateway, alive, exe};
use serde_json::{Value, json};

/// A machine with only the test's programs and the shell's own on PATH.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(machine.at("bin")).unwrap();
        std::fs::create_dir(machine.at("home")).unwrap();
        std::fs::set_permissions(machine.at("home"), PermissionsExt::from_mode(0o700)).unwrap();
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Adds a program.
    fn program(&self, name: &str, body: &str) {
        let path = self.at("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn doctor(&self, home: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.at("bin").display());
        let mut command = Command::new(exe());
        command.arg("doctor").args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command.env_clear().env("PATH", path).env("HOME", self.at("home")).env("PLEXUS_HOME", home);
        command.envs(env.iter().copied()).output().unwrap()
    }

    fn report(&self, args: &[&str], env: &[(&str, &str)]) -> Value {
        let output = self.doctor(&self.at("home"), &[args, &["--json"]].concat(), env);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

fn check<'r>(report: &'r Value, name: &str) -> &'r Value {
    let all = report["checks"].as_array().unwrap();
    all.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no {name} in {all:#?}"))
}

fn named<'r>(report: &'r Value, list: &str, name: &str) -> &'r Value {
    let all = report[list].as_array().unwrap();
    let key = if list == "holders" { "runtime_id" } else { "name" };
    all.iter().find(|one| one[key] == name).unwrap_or_else(|| panic!("no {name} in {all:#?}"))
}

/// A program that does the handshake of a Codelia runtime, writes its process id to a file, and ignores requests to end.
fn stubborn(pids: &Path) -> String {
    let hello =
        json!({ "id": "1", "result": { "protocol_version": "0", "server": { "name": "mine", "version": "7" } } });
    format!("trap '' TERM\necho $$ >> {}\nread line\necho '{hello}'\nwhile :; do sleep 1; done", pids.display())
}

#[test]
fn doctor_shows_agent_versions_or_how_to_install() {
    let machine = Machine::new();
    machine.program("gemini", "echo; echo 0.61.0");
    machine.program("opencode", "exit 1");
    let report = machine.report(&[], &[]);
    let gemini = named(&report, "agents", "gemini");
    assert_eq!((&gemini["version"], gemini.get("start")), (&json!("0.61.0"), None), "nothing is started unasked");
    assert_eq!(gemini["path"], json!(machine.at("bin").join("gemini")));
    let found = &check(&report, "agent gemini");
    assert!(found["verdict"] == "ok" && found["found"].as_str().unwrap().contains("(0.61.0)"), "{found}");
    assert_eq!(named(&report, "agents", "opencode").get("version"), None);
    assert_eq!(check(&report, "agent opencode")["verdict"], "ok", "that it is there is what counts");
    // A file that cannot run is not installed well, whatever its name and mode.
    std::fs::write(machine.at("bin").join("qwen"), "\u{7f}ELF is not all it takes").unwrap();
    std::fs::set_permissions(machine.at("bin").join("qwen"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let report = machine.report(&[], &[]);
    let qwen = check(&report, "agent qwen");
    let (found, fix) = (qwen["found"].as_str().unwrap(), qwen["fix"].as_str().unwrap());
    assert!(qwen["verdict"] == "fail" && found.contains("cannot be started") && fix.contains("npm install"), "{qwen}");
    // Nor is a script without its interpreter, nor a file that may not be run.
    std::fs::write(machine.at("bin").join("qwen"), "#!/nowhere/node\n").unwrap();
    std::fs::write(machine.at("bin").join("codelia-runtime"), "#!/bin/sh\n").unwrap();
    let report = machine.report(&[], &[]);
    for (name, problem) in [("agent qwen", "its interpreter is missing"), ("agent codelia", "is not executable")] {
        let check = check(&report, name);
        assert!(check["verdict"] == "fail" && check["found"].as_str().unwrap().contains(problem), "{check}");
    }
    let codex = check(&report, "agent codex");
    assert!(codex["verdict"] == "warn" && codex["fix"].as_str().unwrap().contains("npm install"), "{codex}");
    assert!(named(&report, "agents", "codex").get("path").is_none());
}

#[test]
fn doctor_checks_the_configured_port() {
    let machine = Machine::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let config = machine.at("home").join("plexus.toml");
    std::fs::write(&config, format!("listen = \"{address}\"\n")).unwrap();
    let found = |args: &[&str]| check(&machine.report(args, &[]), "port").clone();
    let port = found(&["-c", config.to_str().unwrap()]);
    assert!(port["verdict"] == "fail" && port["found"].as_str().unwrap().contains(&address), "{port}");
    drop(taken);
    let port = found(&["-c", config.to_str().unwrap()]);
    assert_eq!((&port["verdict"], &port["found"]), (&json!("ok"), &json!(format!("{address} is free"))));
}

#[test]
fn doctor_starts_agents_on_request_and_leaves_none_behind() {
    let machine = Machine::new();
    machine.program("gemini", "echo 'no key' >&2; exit 41");
    machine.program("codelia-runtime", &stubborn(&machine.at("pids")));
    let report = machine.report(&["--start"], &[]);
    let started = |name: &str| named(&report, "agents", name)["start"].clone();
    assert_eq!(started("demo")["ok"], true);
    assert_eq!((&started("codelia")["ok"], &started("codelia")["said"]), (&json!(true), &json!("mine 7")));
    let gemini = started("gemini");
    assert_eq!(gemini["ok"], false);
    let said = gemini["said"].as_str().unwrap();
    assert!(said.contains("41") && said.contains("no key"), "why not, in its own words: {said}");
    let check = check(&report, "agent gemini");
    assert!(check["verdict"] == "fail" && check["fix"].as_str().unwrap().contains("gemini"), "{check}");
    let pids = std::fs::read_to_string(machine.at("pids")).unwrap();
    for pid in pids.lines() {
        assert!(!alive(pid.parse().unwrap()), "{pid} is left");
    }
    assert_eq!(pids.lines().count(), 1);
    let left: Vec<_> = std::fs::read_dir(machine.at("home")).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("doctor")), "no litter: {left:?}");
}

#[test]
fn doctor_checks_servers_of_configuration_and_environment() {
    let machine = Machine::new();
    let there = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let here = there.local_addr().unwrap().port();
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (one, other) = (free(), free());
    let (gone, nobody) = (one.local_addr().unwrap().port(), other.local_addr().unwrap().port());
    drop((one, other));
    let socket = machine.at("agent.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let config = format!(
        "[[runtime]]\nid = \"one\"\ndialect = \"acp\"\nconnect = \"ws://127.0.0.1:{here}/\"\n\
         [[runtime]]\nid = \"two\"\ndialect = \"acp\"\nconnect = \"http://127.0.0.1:{gone}\"\n\
         [[runtime]]\nid = \"three\"\ndialect = \"acp\"\nconnect = \"unix:{}\"\n",
        socket.display()
    );
    std::fs::write(machine.at("home/plexus.toml"), &config).unwrap();
    let env =
        [("OPENCODE_SERVER", &*format!("http://127.0.0.1:{here}")), ("GEMINI_CLI_REMOTE_PORT", &*nobody.to_string())];
    let report = machine.report(&[], &env);
    for (name, listens) in
        [("one", true), ("two", false), ("three", true), ("OPENCODE_SERVER", true), ("GEMINI_CLI_REMOTE_PORT", false)]
    {
        let server = named(&report, "servers", name);
        assert_eq!(server["listens"], listens, "{server}");
        let verdict = if listens { "ok" } else { "warn" };
        assert_eq!(check(&report, &format!("server {name}"))["verdict"], verdict, "{name}");
        assert_eq!(server["fix"].is_string(), !listens || name == "OPENCODE_SERVER", "{server}");
    }
    assert_eq!(report["servers"].as_array().unwrap().len(), 5, "and nothing is looked for");
    let two = check(&report, "server two");
    assert!(two["found"].as_str().unwrap().contains("nothing is listening there"), "{two}");
    // They were connected to, and got no message.
    there.set_nonblocking(true).unwrap();
    while let Ok((mut stream, _)) = there.accept() {
        let mut said = String::new();
        std::io::Read::read_to_string(&mut stream, &mut said).unwrap();
        assert_eq!(said, "");
    }
    // Another file, and an invalid one.
    std::fs::write(machine.at("other.toml"), "lisen = 1\n").unwrap();
    let report = machine.report(&["-c", "other.toml"], &[]);
    let wrong = check(&report, "configuration");
    assert_eq!(wrong["verdict"], "fail");
    assert!(wrong["found"].as_str().unwrap().contains("did you mean listen?"), "{wrong}");
}

#[test]
fn doctor_reports_holders_of_an_earlier_gateway_with_the_fix() {
    let machine = Machine::new();
    let holders = machine.at("home/holders");
    std::fs::create_dir(&holders).unwrap();
    let _holder = std::os::unix::net::UnixListener::bind(holders.join("codex.abcdefgh.sock")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(holders.join("gone.abcdefgh.sock")).unwrap());
    std::fs::write(holders.join("over.abcdefgh.end"), "").unwrap();
    let report = machine.report(&[], &[]);
    let codex = named(&report, "holders", "codex");
    assert_eq!((&codex["state"], &codex["pid"]), (&json!("running"), &json!(std::process::id())));
    assert!(codex["since"].as_str().unwrap().ends_with('Z'));
    let check_of = |name: &str| check(&report, &format!("held {name}")).clone();
    let codex = check_of("codex");
    assert_eq!(codex["verdict"], "warn");
    let fix = codex["fix"].as_str().unwrap();
    assert!(fix.contains("`plexus serve` takes it over") && fix.contains("`plexus stop codex`"), "{fix}");
    assert_eq!((&check_of("gone")["verdict"], &check_of("over")["verdict"]), (&json!("warn"), &json!("warn")));
    assert_eq!(named(&report, "holders", "gone")["state"], "stale");
    assert_eq!(named(&report, "holders", "over")["state"], "ended");
    assert!(holders.join("gone.abcdefgh.sock").exists(), "it looks, and changes nothing");
}

#[tokio::test]
async fn doctor_names_accounts_near_a_memory_limit() {
    let machine = Machine::new();
    let gateway =
        Gateway::start("[limits]\nsession = 1_048_576\n[[runtime]]\nid = \"demo\"\npreset = \"demo\"\n").await;
    let session = gateway.session("demo").await;
    let near = || {
        let output = machine.doctor(&gateway.home, &["--json"], &[]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let all = report["checks"].as_array().unwrap();
        all.iter().filter(|check| check["check"].as_str().unwrap().starts_with("memory ")).cloned().collect::<Vec<_>>()
    };
    assert_eq!(near(), Vec::<Value>::new());
    gateway.prompt(&session, "hang").await;
    gateway.prompt(&session, &"x".repeat(1_000_000)).await;
    let found = near();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["check"], format!("memory session {session}"), "{found:?}");
    assert!(found[0]["verdict"] == "warn" && found[0]["fix"].as_str().unwrap().contains("[limits]"), "{found:?}");
    // Over HTTP the same check.
    let (status, alone) = gateway.get("/v1/doctor?only=memory").await;
    assert_eq!((status, alone["checks"].as_array().unwrap().len()), (200, 1), "{alone}");
    assert_eq!(gateway.get("/v1/doctor?only=disk").await.0, 400);
}

#[tokio::test]
async fn doctor_explains_a_runtime_that_could_not_be_attached() {
    let machine = Machine::new();
    let gateway = Gateway::start(
        "[[runtime]]\nid = \"broken\"\ndialect = \"acp\"\ncommand = [\"sh\", \"-c\", \"echo 'sign in first' >&2; exit 3\"]\n\
         [[runtime]]\nid = \"demo\"\npreset = \"demo\"\n",
    )
    .await;
    gateway.session("demo").await;
    let report = loop {
        let output = machine.doctor(&gateway.home, &["--json"], &[]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        if check(&report, "runtime broken")["verdict"] == "fail" {
            assert_eq!(output.status.code(), Some(1));
            break report;
        }
    };
    let broken = check(&report, "runtime broken");
    let found = broken["found"].as_str().unwrap();
    assert!(found.contains("exited with code 3"), "{found}");
    assert!(broken["fix"].as_str().unwrap().contains("plexus stop broken"), "{broken}");
    assert_eq!(check(&report, "runtime demo")["verdict"], "ok");
    // Its stderr and its state, over HTTP.
    let logs = gateway.get("/v1/runtimes/broken/logs").await.1;
    let lines: Vec<_> =
        logs["lines"].as_array().unwrap().iter().map(|line| (line["by"].clone(), line["text"].clone())).collect();
    assert!(lines.contains(&(json!("runtime"), json!("sign in first"))), "{lines:?}");
    let (by, text) = lines.last().unwrap();
    assert!(by == "gateway" && text.as_str().unwrap().contains("exited with code 3"), "{lines:?}");
    // The same checks over HTTP.
    let over_http = gateway.get("/v1/doctor").await.1;
    let named = |name: &str| {
        let all = over_http["checks"].as_array().unwrap();
        all.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name} in {all:#?}")).clone()
    };
    let broken = named("runtime broken");
    assert!(broken["state"] == "fail" && broken["detail"].as_str().unwrap().contains("exited with code 3"), "{broken}");
    assert!(broken["fix"].as_str().unwrap().contains("plexus stop broken"), "{broken}");
    for name in ["gateway", "state folder", "runtime demo", "agent demo"] {
        assert_eq!(named(name)["state"], "ok", "{name}");
    }
    for name in ["disk", "configuration", "node", "agent gemini"] {
        named(name);
    }
    // As people read it.
    let output = machine.doctor(&gateway.home, &[], &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("fail  runtime broken")), "{text}");
}
