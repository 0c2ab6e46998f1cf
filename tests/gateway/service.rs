//! `plexus service`, `status`, `version` and `logs`, with stand-ins for systemd's programs that record their arguments and start the unit.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, alive, demo, end_runtimes, exe, held_runtime};
use serde_json::Value;

/// A manager of one unit: starts and stops what the unit says.
const SYSTEMCTL: &str = r#"
unit="$HOME/.config/systemd/user/plexus.service"
line() { sed -n "s/^$1=//p" "$unit" | sed "s|%h|$HOME|g; s|%%|%|g" | tr '\n' ' '; }
pid=$(cat "$FAKE/pid" 2>/dev/null)
running() { [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$pid/status"; }
stop() { running && kill "$pid"; while running; do sleep 0.05; done; rm -f "$FAKE/pid"; }
start() { eval "exec env -i HOME='$HOME' $(line Environment) $(line ExecStart)" >"$FAKE/log" 2>&1 & echo $! >"$FAKE/pid"; }
[ -e "$FAKE/no-manager" ] && { echo 'Failed to connect to bus: No medium found' >&2; exit 1; }
case "$2" in
show)
    running && echo ActiveState=active || { pid=0; echo ActiveState=inactive; }
    echo "MainPID=$pid"
    echo "UnitFileState=$(cat "$FAKE/enabled" 2>/dev/null)"
    echo 'ActiveEnterTimestamp=Sun 2026-11-29 12:00:00 UTC'
    [ -e "$unit" ] && echo "FragmentPath=$unit" || echo FragmentPath=
    ;;
enable) echo enabled >"$FAKE/enabled"; case "$3" in --now) running || start ;; esac ;;
restart) stop; start ;;
disable) rm -f "$FAKE/enabled"; stop ;;
esac
"#;

const LOGINCTL: &str = r#"
case "$1" in
show-user) echo "Linger=$(cat "$FAKE/linger")" ;;
enable-linger) [ ! -e "$FAKE/refuses" ] || { echo 'Access denied' >&2; exit 1; }; echo yes >"$FAKE/linger" ;;
disable-linger) echo no >"$FAKE/linger" ;;
esac
"#;

/// A user's machine: a home folder, a state folder, and the stand-ins first on PATH.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap() };
        for name in ["bin", "fake", "home", "home/state"] {
            std::fs::create_dir(machine.at(name)).unwrap();
        }
        machine.program("systemctl", SYSTEMCTL);
        machine.program("loginctl", LOGINCTL);
        machine.program("journalctl", "echo 'a line of the journal'");
        machine.set("linger", "no\n");
        let config = format!("listen = \"127.0.0.1:0\"\n{}", held_runtime("demo", &[exe(), "agent", "demo"], ""));
        std::fs::write(machine.state().join("plexus.toml"), config).unwrap();
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn state(&self) -> PathBuf {
        self.at("home/state")
    }

    fn unit(&self) -> PathBuf {
        self.at("home/.config/systemd/user/plexus.service")
    }

    /// Adds a program that records its arguments.
    fn program(&self, name: &str, body: &str) {
        let path = self.at("bin").join(name);
        let text = format!("#!/bin/sh\nPATH=/usr/bin:/bin\necho \"{name} $*\" >>\"$FAKE/calls\"\n{body}\n");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// Sets a file that the stand-ins read.
    fn set(&self, name: &str, text: &str) {
        std::fs::write(self.at("fake").join(name), text).unwrap();
    }

    fn linger(&self) -> String {
        std::fs::read_to_string(self.at("fake/linger")).unwrap().trim().to_owned()
    }

    fn path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.at("bin").display())
    }

    fn command(&self, home: &Path, path: &str, args: &[&str]) -> Output {
        let mut command = Command::new(exe());
        command.args(args).env_clear().env("PATH", path).env("HOME", self.at("home")).env("FAKE", self.at("fake"));
        command.env("PLEXUS_HOME", home).current_dir(self.dir.path()).stdin(Stdio::null());
        command.output().unwrap()
    }

    fn plexus(&self, args: &[&str]) -> Output {
        self.command(&self.state(), &self.path(), args)
    }

    /// Runs a command that must end with this exit code; returns its output and error output.
    fn exits(&self, code: i32, args: &[&str]) -> String {
        exits(&self.plexus(args), code)
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.plexus(args);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// Returns the calls of the stand-ins since the last time, without those that only read.
    fn calls(&self) -> Vec<String> {
        let path = self.at("fake/calls");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        let reads = ["systemctl --user show", "loginctl show-user"];
        text.lines().filter(|line| !reads.iter().any(|read| line.starts_with(read))).map(str::to_owned).collect()
    }

    fn pid(&self) -> Option<u32> {
        std::fs::read_to_string(self.at("fake/pid")).ok()?.trim().parse().ok()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
        }
        end_runtimes(&self.state());
    }
}

fn exits(output: &Output, code: i32) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn service_is_installed_used_replaced_and_removed_under_a_running_agent() {
    let machine = Machine::new();
    let unit = machine.unit();

    let text = machine.exits(0, &["service", "install", "--dry-run"]);
    contains(&text, &["[Service]", "systemctl --user daemon-reload", "systemctl --user enable --now plexus.service"]);
    contains(&text, &["loginctl enable-linger", &unit.display().to_string()]);
    assert!(!unit.exists() && machine.calls().is_empty(), "a dry run changes nothing");

    contains(&machine.exits(0, &["service", "install"]), &["http://127.0.0.1:", "plexus service logs"]);
    let enable = "systemctl --user enable --now plexus.service";
    assert_eq!(machine.calls(), ["systemctl --user daemon-reload", enable, "loginctl enable-linger"]);
    let written = std::fs::read_to_string(&unit).unwrap();
    contains(&written, &[&format!("ExecStart={} serve\n", exe()), "NoNewPrivileges=yes"]);
    contains(&written, &[&format!("Environment=PLEXUS_HOME={}\n", machine.state().display())]);

    let agent = agent_pid(&machine);
    let pid = machine.pid().unwrap();
    let status = machine.json(&["service", "status", "--json"]);
    assert_eq!((&status["pid"], &status["active"]), (&pid.into(), &true.into()), "{status}");
    contains(&machine.exits(0, &["service", "status"]), &["enabled", "2026-11-29 12:00:00", "linger"]);

    // The same again changes nothing.
    machine.calls();
    contains(&machine.exits(0, &["service", "install"]), &["already"]);
    assert_eq!((machine.calls(), machine.pid()), (vec![], Some(pid)));

    for args in [["service", "logs", "-n", "7", "-f"], ["logs", "-f", "-n", "7", "--raw"]] {
        contains(&machine.exits(0, &args), &["a line of the journal"]);
        assert_eq!(machine.calls(), ["journalctl --user -u plexus --no-pager -n 7 -f"]);
    }

    // A unit with other text is replaced only on request. The agent continues.
    std::fs::write(&unit, written.replace("RestartSec=2", "RestartSec=9")).unwrap();
    contains(&machine.exits(1, &["service", "install"]), &["--force", "RestartSec=9"]);
    assert!(machine.calls().is_empty());
    machine.exits(0, &["service", "install", "--force"]);
    let restart = "systemctl --user restart plexus.service";
    assert_eq!(machine.calls(), ["systemctl --user daemon-reload", "systemctl --user enable plexus.service", restart]);
    assert_ne!(machine.pid(), Some(pid));
    assert_eq!(agent_pid(&machine), agent);

    let text = machine.exits(0, &["service", "uninstall"]);
    contains(&text, &["demo", "plexus stop", "logout", &machine.state().display().to_string(), "KiB", "rm -r"]);
    let disable = "systemctl --user disable --now plexus.service";
    assert_eq!(machine.calls(), [disable, "systemctl --user daemon-reload", "loginctl disable-linger"]);
    assert!(!unit.exists() && machine.linger() == "no" && machine.pid().is_none());
    assert!(alive(agent), "the agent continues");
    contains(&machine.exits(0, &["service", "uninstall"]), &["not installed"]);
    assert!(machine.calls().is_empty());
}

/// Waits until the demo agent is ready; returns its process.
fn agent_pid(machine: &Machine) -> u32 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let runtime = &machine.json(&["ls", "--json"])["runtimes"][0];
        if runtime["state"] == "ready" {
            return runtime["pid"].as_u64().unwrap().try_into().unwrap();
        }
        assert!(Instant::now() < deadline, "the agent is not ready: {runtime}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn service_reverts_lingering_only_if_it_was_set_by_the_installation() {
    let machine = Machine::new();
    machine.set("linger", "yes\n");
    machine.exits(0, &["service", "install"]);
    Command::new("kill").args(["-KILL", &machine.pid().unwrap().to_string()]).status().unwrap();
    contains(&machine.exits(0, &["logs"]), &["a line of the journal"]);
    machine.exits(0, &["service", "uninstall"]);
    assert_eq!(machine.linger(), "yes");
    assert!(!machine.calls().iter().any(|call| call.starts_with("loginctl")), "lingering was on before");

    // Without the permission to linger, the service runs, and the message says what that means.
    machine.set("linger", "no\n");
    machine.set("refuses", "");
    contains(&machine.exits(0, &["service", "install"]), &["Access denied", "log out", "loginctl enable-linger"]);
    machine.calls();
    machine.exits(0, &["service", "uninstall"]);
    assert!(!machine.calls().iter().any(|call| call.starts_with("loginctl")));
}

#[tokio::test]
async fn service_refusals_name_the_reason_and_the_fix() {
    let machine = Machine::new();
    for args in [&["service"][..], &["service", "instal"], &["service", "logs", "-n", "x"], &["logs", "-n", "-1"]] {
        machine.exits(2, args);
    }
    machine.set("no-manager", "");
    contains(&machine.exits(1, &["service", "install"]), &["No medium found", "plexus serve"]);
    contains(&machine.exits(1, &["service", "install", "--dry-run"]), &["No medium found"]);
    let path = machine.at("home").display().to_string();
    let text = exits(&machine.command(&machine.state(), &path, &["service", "install"]), 1);
    contains(&text, &["systemctl is not on PATH", "plexus serve"]);

    // A gateway that was started by hand.
    std::fs::remove_file(machine.at("fake/no-manager")).unwrap();
    let gateway = Gateway::start(&demo()).await;
    let path = machine.at("bin").display().to_string();
    let text = exits(&machine.command(&gateway.home, &path, &["service", "install"]), 1);
    contains(&text, &[&format!("`kill {}`", gateway.pid()), "plexus service install"]);
    assert!(machine.calls().is_empty() && !machine.unit().exists());
    let text = exits(&machine.command(&gateway.home, &path, &["service", "status"]), 69);
    contains(&text, &["not installed", "plexus service install"]);
}

#[tokio::test]
async fn logs_are_the_file_that_is_stderr_of_a_gateway_started_by_hand() {
    let machine = Machine::new();
    let gateway = Gateway::start(&demo()).await;
    let run = |args: &[&str]| exits(&machine.command(&gateway.home, &machine.path(), args), 0);
    let text = run(&["logs", "-n", "1000"]);
    assert!(!text.is_empty() && gateway.stderr().starts_with(&text), "{text}");
    assert!(run(&["logs", "-n", "1"]).lines().count() == 1);
}

#[test]
fn logs_say_how_to_get_them_if_there_are_none() {
    let machine = Machine::new();
    contains(&machine.exits(69, &["logs"]), &["no gateway is running", "plexus service install", "--log-file"]);
    contains(&machine.exits(1, &["service", "logs"]), &["not installed", "plexus service install"]);
    // The log of a gateway that `plexus run` started.
    std::fs::write(machine.state().join("gateway.log"), "one\ntwo\x1b[2J\n").unwrap();
    let text = machine.exits(0, &["logs", "-n", "1"]);
    assert!(text.starts_with("two\\u{") && text.lines().count() == 1, "{text:?}");
}

#[test]
fn service_unit_is_valid_for_systemd() {
    let machine = Machine::new();
    let analyze = |unit: &str| {
        let path = machine.at("plexus.service");
        std::fs::write(&path, unit).unwrap();
        let mut command = Command::new("systemd-analyze");
        command.args(["verify", "--user", "--man=no"]).arg(&path).env("XDG_RUNTIME_DIR", machine.dir.path());
        let output = command.env("HOME", machine.dir.path()).output().ok()?;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let lines = text.lines().filter(|line| line.contains("plexus.service"));
        Some(lines.map(str::to_owned).collect::<Vec<_>>())
    };
    let text = machine.exits(0, &["service", "install", "--dry-run"]);
    let unit: String =
        text.lines().skip_while(|line| !line.starts_with("# systemd")).map(|l| format!("{l}\n")).collect();
    let (unit, _) = unit.split_once("\nwrite ").unwrap();
    // A planted mistake shows whether the program works here.
    if analyze(&unit.replace("NoNewPrivileges", "NoNewPrivilege")).is_none_or(|found| found.is_empty()) {
        return;
    }
    assert_eq!(analyze(unit), Some(vec![]), "{unit}");
}

#[test]
fn status_and_version_report_the_service() {
    let machine = Machine::new();
    contains(&machine.exits(69, &["status"]), &["not running", "plexus serve"]);
    machine.exits(0, &["service", "install"]);
    agent_pid(&machine);
    let status = machine.json(&["status", "--json"]);
    let pid = machine.pid().unwrap();
    assert_eq!((&status["gateway"]["pid"], &status["service"]["active"]), (&pid.into(), &true.into()), "{status}");
    let text = machine.exits(0, &["status"]);
    contains(&text, &["as a service", "http://127.0.0.1:", "demo", "ready", "0 requests"]);
    let version = machine.json(&["version", "--json"]);
    assert_eq!(version["version"], version["gateway"]["version"], "{version}");
    assert!(version["difference"].is_null(), "{version}");

    Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
    contains(&machine.exits(69, &["status"]), &["not running", "`systemctl --user restart plexus.service`"]);
    let status: Value = serde_json::from_slice(&machine.plexus(&["status", "--json"]).stdout).unwrap();
    assert_eq!(status["service"]["state"], "inactive", "{status}");
}

#[tokio::test]
async fn status_and_version_report_a_gateway_started_by_hand() {
    let machine = Machine::new();
    let gateway = Gateway::start(&demo()).await;
    let session = gateway.session("demo").await;
    gateway.prompt(&session, "ask").await;
    gateway.open_request(&session).await;
    let run = |args: &[&str]| exits(&machine.command(&gateway.home, &machine.path(), args), 0);
    contains(&run(&["status"]), &["by hand", "1 open", "1 run", "1 request open"]);
    let status: Value = serde_json::from_str(&run(&["status", "--json"])).unwrap();
    assert_eq!((&status["open_requests"], &status["running_runs"]), (&1.into(), &1.into()), "{status}");

    let file = gateway.home.join("gateway.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!run(&["version"]).contains("kill"));
    std::fs::write(&file, text.replace(env!("CARGO_PKG_VERSION"), "0.0.9")).unwrap();
    contains(&run(&["version"]), &["0.0.9", &format!("`kill {}`", gateway.pid()), "plexus serve"]);
}
