//! `plexus doctor`: what works, what does not, and the fix.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use plexus::config::LISTEN;
use plexus::runtimes::presets;
use serde::Serialize;

use super::args;
use super::client::Client;
use super::commands::{print, print_json};
use super::home::{Home, State};
use super::run::which;
use super::serve::this_program;
use super::term::{Paint, line};
use super::{FAILURE, Outcome};

/// How long a program may take to say its version.
const VERSION: Duration = Duration::from_secs(5);
/// Less room than this on the state's disk is a failure, in bytes.
const ROOM_LEAST: u64 = 64 << 20;
/// Less room than this is a warning, in bytes.
const ROOM_GOOD: u64 = 1 << 30;
/// The oldest Node.js that the agents on npm run on.
const NODE_LEAST: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

/// One line.
#[derive(Debug, Serialize)]
struct Check {
    check: String,
    verdict: Verdict,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn add(&mut self, check: &str, verdict: Verdict, found: impl Into<String>, fix: Option<String>) {
        self.0.push(Check { check: check.into(), verdict, found: found.into(), fix });
    }

    fn ok(&mut self, check: &str, found: impl Into<String>) {
        self.add(check, Verdict::Ok, found, None);
    }

    fn warn(&mut self, check: &str, found: impl Into<String>, fix: impl Into<String>) {
        self.add(check, Verdict::Warn, found, Some(fix.into()));
    }

    fn fail(&mut self, check: &str, found: impl Into<String>, fix: impl Into<String>) {
        self.add(check, Verdict::Fail, found, Some(fix.into()));
    }
}

pub(crate) async fn doctor(args: args::Listing) -> Outcome {
    let mut checks = Checks::default();
    let home = Home::find()?;
    modes(&mut checks, home.dir());
    gateway(&mut checks, &home).await?;
    room(&mut checks, home.dir());
    node(&mut checks).await;
    agents(&mut checks).await?;
    let failed = checks.0.iter().any(|check| check.verdict == Verdict::Fail);
    if args.json {
        print_json(&serde_json::json!({ "checks": checks.0 }))?;
    } else {
        let paint = Paint::stdout();
        let mut out = String::new();
        for Check { check, verdict, found, fix } in &checks.0 {
            let mark = match verdict {
                Verdict::Ok => paint.green("ok  "),
                Verdict::Warn => paint.yellow("warn"),
                Verdict::Fail => paint.red("fail"),
            };
            let fix = fix.as_ref().map(|fix| format!("; {fix}")).unwrap_or_default();
            out.push_str(&format!("{mark}  {check:<18}  {}\n", line(&format!("{found}{fix}"), 500)));
        }
        print(&out)?;
    }
    Ok(if failed { FAILURE } else { 0 })
}

fn modes(checks: &mut Checks, dir: &Path) {
    let meta = match std::fs::metadata(dir) {
        Ok(meta) => meta,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
            return checks.ok("state folder", format!("{} (made at the first start)", dir.display()));
        }
        Err(why) => {
            return checks.fail(
                "state folder",
                format!("{}: {why}", dir.display()),
                "set PLEXUS_HOME to a folder of yours",
            );
        }
    };
    let own = rustix::process::geteuid().as_raw();
    let fix = |mode: &str, path: &Path| format!("chmod {mode} '{}'", path.display());
    if !meta.is_dir() {
        checks.fail("state folder", format!("{} is no folder", dir.display()), "set PLEXUS_HOME to a folder");
    } else if meta.uid() != own {
        checks.fail(
            "state folder",
            format!("{} belongs to another user", dir.display()),
            "set PLEXUS_HOME to a folder of yours",
        );
    } else if meta.permissions().mode() & 0o077 != 0 {
        checks.fail("state folder", format!("{} is open to others", dir.display()), fix("700", dir));
    } else {
        checks.ok("state folder", dir.display().to_string());
    }
    for name in ["token", "gateway.json", "gateway.log"] {
        let path = dir.join(name);
        if let Ok(meta) = std::fs::metadata(&path)
            && meta.permissions().mode() & 0o077 != 0
        {
            checks.fail(name, "is open to others", fix("600", &path));
        }
    }
}

async fn gateway(checks: &mut Checks, home: &Home) -> anyhow::Result<()> {
    match home.gateway().await? {
        State::Up(running) => {
            let own = env!("CARGO_PKG_VERSION");
            let at = format!("{} (process {}, version {})", running.url, running.pid, running.version);
            if running.version == own {
                checks.ok("gateway", at);
            } else {
                checks.warn(
                    "gateway",
                    format!("{at}; this program is {own}"),
                    "stop it and start it again to have the same version",
                );
            }
            match Client::to(home.clone(), running) {
                Ok(client) => match client.runtimes().await {
                    Ok(runtimes) => checks.ok("signing in", format!("works; {} runtimes attached", runtimes.len())),
                    Err(why) => checks.fail("signing in", format!("{why:#}"), "is PLEXUS_HOME that of the gateway?"),
                },
                Err(why) => checks.fail("signing in", format!("{why:#}"), "is PLEXUS_HOME that of the gateway?"),
            }
        }
        State::Down(why) => {
            checks.warn("gateway", format!("not running: {why}"), "start it with `plexus serve`");
            match tokio::net::TcpListener::bind(LISTEN).await {
                Ok(_) => checks.ok("port", format!("{LISTEN} is free")),
                Err(why) => {
                    let fix = "stop what uses it, or start with `plexus serve --listen 127.0.0.1:0`";
                    checks.fail("port", format!("{LISTEN} cannot be listened on: {why}"), fix);
                }
            }
        }
    }
    Ok(())
}

fn room(checks: &mut Checks, dir: &Path) {
    let there = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(dir);
    match rustix::fs::statvfs(there) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let found = format!("{} MiB free", free >> 20);
            let fix = "make room: a full disk refuses prompts and answers";
            match free {
                0..ROOM_LEAST => checks.fail("disk", found, fix),
                ROOM_LEAST..ROOM_GOOD => checks.warn("disk", found, fix),
                _ => checks.ok("disk", found),
            }
        }
        Err(why) => checks.warn("disk", format!("cannot be looked at: {why}"), "check it by hand"),
    }
}

/// The first line that `PROGRAM --version` says.
async fn version(program: &Path) -> Result<String, String> {
    let mut command = tokio::process::Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(VERSION, command.output()).await {
        Ok(Ok(output)) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let first = text.lines().map(str::trim).find(|line| !line.is_empty());
            first.map(|first| line(first, 100)).ok_or_else(|| "does not say its version".into())
        }
        Ok(Err(why)) => Err(format!("cannot be started: {why}")),
        Err(_) => Err(format!("did not say its version in {} s", VERSION.as_secs())),
    }
}

async fn node(checks: &mut Checks) {
    let fix = format!("install Node.js {NODE_LEAST} or newer; most agents need it");
    let Some(path) = which("node") else { return checks.warn("node", "not found on PATH", fix) };
    match version(&path).await {
        Ok(version) => match major(&version) {
            Some(major) if major >= NODE_LEAST => checks.ok("node", version),
            _ => checks.warn("node", version, fix),
        },
        Err(why) => checks.warn("node", why, fix),
    }
}

/// `v20.20.2` -> 20.
fn major(version: &str) -> Option<u32> {
    version.trim_start_matches('v').split('.').next()?.parse().ok()
}

async fn agents(checks: &mut Checks) -> anyhow::Result<()> {
    let exe = this_program()?;
    for preset in presets::presets() {
        let name = format!("agent {}", preset.name);
        let Ok(spec) = presets::preset(preset.name, &exe, |var| std::env::var(var).ok()) else { continue };
        let plexus::model::Connect::Command(command) = &spec.connect else { continue };
        let program = command.first().map(String::as_str).unwrap_or_default();
        match which(program) {
            None => checks.warn(
                &name,
                format!("{program} is not on PATH"),
                format!("to have it: {}", preset.install.unwrap_or("it comes with plexus")),
            ),
            Some(path) if path == exe => checks.ok(&name, "built in"),
            Some(path) => match version(&path).await {
                Ok(version) => checks.ok(&name, format!("{} ({version})", path.display())),
                // Not every agent has the option; that it is there is what counts.
                Err(why) => checks.ok(&name, format!("{} ({why})", path.display())),
            },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_modes_fail_with_the_fix() {
        let dir = tempfile::tempdir().unwrap();
        let set = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        let found = |dir: &Path| {
            let mut checks = Checks::default();
            modes(&mut checks, dir);
            checks.0.into_iter().map(|check| (check.check, check.verdict, check.fix)).collect::<Vec<_>>()
        };
        set(dir.path(), 0o700);
        assert_eq!(found(dir.path()), [("state folder".into(), Verdict::Ok, None)]);
        let token = dir.path().join("token");
        std::fs::write(&token, "x").unwrap();
        set(&token, 0o644);
        set(dir.path(), 0o755);
        let fixes = [format!("chmod 700 '{}'", dir.path().display()), format!("chmod 600 '{}'", token.display())];
        assert_eq!(
            found(dir.path()),
            [
                ("state folder".into(), Verdict::Fail, Some(fixes[0].clone())),
                ("token".into(), Verdict::Fail, Some(fixes[1].clone()))
            ]
        );
        assert_eq!(found(&dir.path().join("not-there"))[0].1, Verdict::Ok);
    }

    #[tokio::test]
    async fn versions_are_read_and_silence_is_told() {
        use std::io::Write as _;
        let dir = tempfile::tempdir().unwrap();
        let program = |name: &str, body: &str| {
            let path = dir.path().join(name);
            let mut file = std::fs::File::create(&path).unwrap();
            writeln!(file, "#!/bin/sh\n{body}").unwrap();
            file.set_permissions(std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        assert_eq!(version(&program("a", "echo; echo v20.1.2")).await, Ok("v20.1.2".into()));
        assert_eq!(version(&program("b", "exit 1")).await, Err("does not say its version".into()));
        assert!(version(&dir.path().join("none")).await.unwrap_err().contains("cannot be started"));
        assert_eq!((major("v20.20.2"), major("22.1"), major("x")), (Some(20), Some(22), None));
    }
}
