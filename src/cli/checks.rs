//! The checks of `plexus doctor` and of `GET /v1/doctor`.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plexus::config::{Config, NativeConfig};
use plexus::operation::doctor::Doctor;
use plexus_protocol::api::linking::{AgentLink, LinkStatus};
use plexus_protocol::api::operation::{self, Verdict};
use plexus_protocol::{Connect, RuntimeInfo, RuntimeState};
use serde::Serialize;

use super::certificates::ServedCertificate;
use super::discover;
use super::discover::{Agent, Holder, HolderState, Server, version};
use super::home::Home;
use super::linking::all_linked;
use super::output::{age, line};
use super::programs::which;

/// Free space on the state's disk below which the check fails, in bytes.
const FREE_SPACE_MIN: u64 = 64 << 20;
/// Free space below which the check warns, in bytes.
const FREE_SPACE_LOW: u64 = 1 << 30;
/// Maximum length of the text of a check, in characters.
pub(super) const DETAIL: usize = 500;
/// The check of Codex's own terminals.
const CODEX_CHECK: &str = "terminals codex";
/// The oldest Node.js on which the npm agents run.
const NODE_MIN: u32 = 20;

/// One check and its result.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    pub(super) check: String,
    pub(super) verdict: Verdict,
    pub(super) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

#[derive(Default)]
pub(super) struct Checks(pub(super) Vec<Check>);

impl Checks {
    pub(super) fn add(&mut self, check: &str, verdict: Verdict, found: impl Into<String>, fix: Option<String>) {
        self.0.push(Check { check: check.into(), verdict, found: found.into(), fix });
    }

    pub(super) fn ok(&mut self, check: &str, found: impl Into<String>) {
        self.add(check, Verdict::Ok, found, None);
    }

    pub(super) fn warn(&mut self, check: &str, found: impl Into<String>, fix: impl Into<String>) {
        self.add(check, Verdict::Warn, found, Some(fix.into()));
    }

    pub(super) fn fail(&mut self, check: &str, found: impl Into<String>, fix: impl Into<String>) {
        self.add(check, Verdict::Fail, found, Some(fix.into()));
    }
}

/// The checks behind `GET /v1/doctor`. They do not include whether the gateway responds, since only another program can check that.
pub(super) fn for_gateway(home: Home, exe: PathBuf, file: Option<PathBuf>) -> Doctor {
    Doctor::new(move |runtimes| {
        let (home, exe, file) = (home.clone(), exe.clone(), file.clone());
        Box::pin(async move {
            let mut checks = Checks::default();
            check_modes(&mut checks, home.dir());
            runtimes.iter().for_each(|runtime| check_runtime(&mut checks, runtime));
            surroundings(&mut checks, &home, &exe, file, Some(&runtimes), false).await;
            let check = |Check { check, verdict, found, fix }| operation::Check {
                name: check,
                state: verdict,
                detail: line(&found, DETAIL),
                fix: fix.map(|fix| line(&fix, DETAIL)),
            };
            checks.0.into_iter().map(check).collect()
        })
    })
}

/// Checks the surroundings of a gateway: disk space, configuration, servers, holders, agents. `runtimes` are those of the gateway, if one
/// runs.
pub(super) async fn surroundings(
    checks: &mut Checks,
    home: &Home,
    exe: &Path,
    file: Option<PathBuf>,
    runtimes: Option<&[Arc<RuntimeInfo>]>,
    start: bool,
) -> Surroundings {
    check_disk(checks, home.dir());
    let config = discover::config(file, home.dir(), exe);
    check_configuration(checks, &config);
    if let Ok(Some((_, config))) = &config {
        check_certificate(checks, config, home);
    }
    let config = config.ok().flatten();
    let native = config.as_ref().map_or_else(NativeConfig::default, |(_, config)| config.native);
    let terminals = discover::codex_terminals(native, runtimes, |name| std::env::var_os(name)).await;
    checks.add(CODEX_CHECK, terminals.verdict(), terminals.description(), terminals.fix());
    let with = start.then_some((exe, home.dir()));
    let servers = discover::servers(config, |name| std::env::var(name).ok(), with).await;
    servers.iter().for_each(|server| checks.server(server));
    let holders = discover::holders(&home.dir().join(plexus::HOLDERS)).await;
    holders.iter().for_each(|holder| checks.holder(holder, runtimes.is_some()));
    duplicate_holders(checks, &holders);
    check_node(checks).await;
    let agents = discover::agents(exe, home.dir(), start).await;
    agents.iter().for_each(|agent| checks.agent(agent, exe));
    let links = match all_linked(home, &agents, runtimes.unwrap_or_default()).await {
        Ok(links) => links,
        Err(reason) => {
            checks.warn("links", reason, "correct that: `plexus link` fails for the same reason");
            Vec::new()
        }
    };
    links.iter().for_each(|linked| checks.link(linked));
    Surroundings { agents, servers, holders, links }
}

/// The surroundings of a gateway.
pub(super) struct Surroundings {
    pub(super) agents: Vec<Agent>,
    pub(super) servers: Vec<Server>,
    pub(super) holders: Vec<Holder>,
    pub(super) links: Vec<AgentLink>,
}

/// Reports several agents under one name: all but one run unattended.
fn duplicate_holders(checks: &mut Checks, holders: &[Holder]) {
    let running: Vec<&Holder> = holders.iter().filter(|holder| holder.state == HolderState::Running).collect();
    let mut names: Vec<&str> = running.iter().map(|holder| holder.runtime_id.as_str()).collect();
    names.dedup();
    for name in names {
        let same_name: Vec<&&Holder> = running.iter().filter(|holder| holder.runtime_id == name).collect();
        if same_name.len() > 1 {
            let pids: Vec<String> = same_name.iter().filter_map(|holder| Some(holder.pid?.to_string())).collect();
            let found =
                format!("{} agents are running under this name, in the holders {}", same_name.len(), pids.join(", "));
            let fix = format!("`plexus stop {name}` stops all of them; `plexus run` starts a new one");
            checks.fail(&format!("agents of {name}"), found, fix);
        }
    }
}

impl Checks {
    fn agent(&mut self, agent: &Agent, exe: &Path) {
        let name = format!("agent {}", agent.name);
        let Some(path) = &agent.path else {
            if let Some(problem) = &agent.problem {
                return self.fail(&name, problem, "`chmod +x` makes it executable, if it is the agent's program");
            }
            let install = agent.install.unwrap_or("it is included in plexus");
            return self.warn(&name, format!("{} is not on PATH", agent.program), format!("to install it: {install}"));
        };
        let found = if path == exe { "built in".to_owned() } else { path.display().to_string() };
        if let Some(problem) = &agent.problem {
            let again = agent.install.map(|install| format!("; to install it again: {install}")).unwrap_or_default();
            let fix = format!("run `{} --version` by hand to see why{again}", agent.program);
            return self.fail(&name, format!("{found}; {problem}"), fix);
        }
        let found = match &agent.version {
            Some(version) => format!("{found} ({version})"),
            // Some agents print no version; it is enough that they are installed.
            None => found,
        };
        match &agent.start {
            None => self.ok(&name, found),
            Some(start) if start.ok => {
                self.ok(&name, format!("{found}; starts in {:.1} s: {}", start.ms as f64 / 1000.0, start.message));
            }
            Some(start) => {
                let fix = format!("run `{}` by hand to see why, and sign in there if it asks", agent.program);
                self.fail(&name, format!("{found}; does not start: {}", start.message), fix);
            }
        }
    }

    fn server(&mut self, server: &Server) {
        let name = format!("server {}", server.name);
        let Server { dialect, at, from, .. } = server;
        let found = format!("{at} ({dialect}, from {from})");
        match (&server.problem, &server.start, server.fix.clone()) {
            (Some(problem), _, fix) => self.add(&name, Verdict::Warn, format!("{found}: {problem}"), fix),
            (None, Some(start), fix) if !start.ok => {
                self.add(
                    &name,
                    Verdict::Fail,
                    format!("{found} is listening, but cannot be attached: {}", start.message),
                    fix,
                );
            }
            (None, Some(start), _) => self.ok(&name, format!("{found} answers: {}", start.message)),
            (None, None, fix) => self.add(&name, Verdict::Ok, format!("{found} listens"), fix),
        }
    }

    fn holder(&mut self, holder: &Holder, up: bool) {
        let name = format!("held {}", holder.runtime_id);
        let id = &holder.runtime_id;
        match (holder.state, up) {
            (HolderState::Running, true) => self.ok(&name, holder.description()),
            (HolderState::Running, false) => {
                let fix = format!("`plexus serve` takes it over, `plexus stop {id}` stops it");
                self.warn(&name, format!("{}; left by an earlier gateway", holder.description()), fix);
            }
            (HolderState::Ended, _) => self.warn(&name, holder.description(), "`plexus serve` reads and removes them"),
            (HolderState::Stale, _) => self.warn(&name, holder.description(), "`plexus serve` removes it"),
        }
    }
}

impl Checks {
    /// Reports the link of an agent's own terminal: the program, its version, and the entries in its settings.
    fn link(&mut self, linked: &AgentLink) {
        let name = format!("link {}", linked.agent);
        let program = match (&linked.path, &linked.version) {
            (None, _) => format!("{} is not on PATH", linked.program),
            (Some(path), None) => path.display().to_string(),
            (Some(path), Some(version)) => format!("{} ({version})", path.display()),
        };
        let detail = linked.detail.as_deref().unwrap_or_default();
        let last_message = linked.heard_at.map(|at| format!(", last message {} ago", age(at))).unwrap_or_default();
        let relink = format!("`plexus link {}` corrects it", linked.agent);
        match (linked.state, &linked.gate) {
            (LinkStatus::NotNeeded, _) => self.ok(&name, format!("{program}; {detail}{last_message}")),
            (LinkStatus::NotLinked, Some(reason)) => {
                self.ok(&name, format!("{program}; not linked, and cannot be: {reason}"))
            }
            (LinkStatus::NotLinked, None) if linked.path.is_none() => self.ok(&name, format!("{program}; not linked")),
            (LinkStatus::NotLinked, None) => {
                let fix = format!("`plexus link {}` shows the sessions of its own terminal", linked.agent);
                self.add(&name, Verdict::Ok, format!("{program}; not linked"), Some(fix));
            }
            (LinkStatus::Linked, None) => self.ok(&name, format!("{program}; linked{last_message}")),
            (LinkStatus::Linked, Some(reason)) => {
                let fix = format!("or `plexus link {} --remove`", linked.agent);
                self.warn(&name, format!("{program}; linked, but {reason}"), fix);
            }
            (LinkStatus::OutOfDate, _) => {
                self.warn(&name, format!("{program}; linked, but out of date: {detail}"), relink)
            }
            (LinkStatus::Damaged, _) => self.warn(&name, format!("{program}; the link is damaged: {detail}"), relink),
            (LinkStatus::Unknown, _) => self.add(&name, Verdict::Warn, format!("{program}; {detail}"), None),
        }
        for notice in &linked.notices {
            self.warn(&format!("{name} settings"), notice, "remove it from the file, unless it is intended");
        }
    }
}

fn check_configuration(checks: &mut Checks, config: &Result<Option<(PathBuf, Config)>, String>) {
    match config {
        Ok(Some((file, config))) => {
            checks.ok("configuration", format!("{} ({} runtimes)", file.display(), config.runtimes.len()));
        }
        Ok(None) => checks.ok("configuration", "none: the defaults apply"),
        Err(reason) => checks.fail("configuration", reason, "correct it: `plexus serve` refuses it"),
    }
}

/// Checks whether the TLS certificate expires soon.
fn check_certificate(checks: &mut Checks, config: &Config, home: &Home) {
    let served = ServedCertificate::from_config(config.tls.as_ref(), home);
    match served.expiry_warning(jiff::Timestamp::now()) {
        Some((what, fix)) => checks.warn("certificate", what, fix),
        None => checks.ok("certificate", "does not expire soon"),
    }
}

pub(super) fn check_modes(checks: &mut Checks, dir: &Path) {
    let meta = match std::fs::metadata(dir) {
        Ok(meta) => meta,
        Err(reason) if reason.kind() == std::io::ErrorKind::NotFound => {
            return checks.ok("state folder", format!("{} (will be created at the first start)", dir.display()));
        }
        Err(reason) => {
            return checks.fail(
                "state folder",
                format!("{}: {reason}", dir.display()),
                "set PLEXUS_HOME to a folder that belongs to you",
            );
        }
    };
    let user = rustix::process::geteuid().as_raw();
    let fix = |mode: &str, path: &Path| format!("chmod {mode} '{}'", path.display());
    if !meta.is_dir() {
        checks.fail("state folder", format!("{} is not a folder", dir.display()), "set PLEXUS_HOME to a folder");
    } else if meta.uid() != user {
        checks.fail(
            "state folder",
            format!("{} belongs to another user", dir.display()),
            "set PLEXUS_HOME to a folder that belongs to you",
        );
    } else if meta.permissions().mode() & 0o077 != 0 {
        checks.fail("state folder", format!("{} is accessible to other users", dir.display()), fix("700", dir));
    } else {
        checks.ok("state folder", dir.display().to_string());
    }
    for name in ["token", "gateway.json", "gateway.log"] {
        let path = dir.join(name);
        if let Ok(meta) = std::fs::metadata(&path)
            && meta.permissions().mode() & 0o077 != 0
        {
            checks.fail(name, "is accessible to other users", fix("600", &path));
        }
    }
}

/// Maximum length of an agent's text in a line of the report, in bytes.
const AGENT_TEXT_MAX: usize = 200;

/// Checks the state of a runtime of the gateway.
pub(super) fn check_runtime(checks: &mut Checks, runtime: &RuntimeInfo) {
    let name = format!("runtime {}", runtime.runtime_id);
    let reason = runtime.problem.clone().unwrap_or_else(|| "the reason is unknown".into());
    match (runtime.state, &runtime.connect) {
        (RuntimeState::Ready, _) => {
            let agent = runtime.agent.clone().unwrap_or_else(|| runtime.dialect.clone());
            let names: Vec<&str> =
                runtime.capabilities.iter().flat_map(|names| names.iter()).map(|one| one.as_str()).collect();
            let names = if names.is_empty() { String::new() } else { format!("; it can: {}", names.join(", ")) };
            checks.ok(&name, format!("ready: {agent}{names}"));
            if let Some(reviewer) = &runtime.reviewer {
                checks.warn(
                    &name,
                    format!("{} answers its questions in place of people", line(reviewer, AGENT_TEXT_MAX)),
                    "for Codex: set approvals_reviewer = \"user\" in its config.toml, or start it with the preset codex-app",
                );
            }
            if let Some(done) = &runtime.acted_unasked {
                checks.warn(
                    &name,
                    format!("it acts without asking; the first time: {}", line(done, AGENT_TEXT_MAX)),
                    "its own settings decide that: have it ask there, or run it in a container",
                );
            }
        }
        (RuntimeState::Starting | RuntimeState::Restarting, Connect::Endpoint(at)) => {
            checks.warn(
                &name,
                format!("{at} is not attached yet: {reason}"),
                "start it there; the gateway retries automatically",
            );
        }
        (RuntimeState::Starting, _) => checks.ok(&name, "starts"),
        (RuntimeState::Unknown, _) => {
            checks.warn(&name, "its state is unknown", "upgrade this program: the gateway is newer")
        }
        (RuntimeState::Restarting, _) => checks.warn(&name, reason, "it is restarted automatically"),
        (RuntimeState::Exited, _) => {
            let fix = format!("`plexus stop {}` forgets it, then it can be started again", runtime.runtime_id);
            checks.fail(&name, reason, fix);
        }
    }
}

fn check_disk(checks: &mut Checks, dir: &Path) {
    let existing = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(dir);
    match rustix::fs::statvfs(existing) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let found = format!("{} MiB free", free >> 20);
            let fix = "free some space: if the disk is full, prompts and answers are refused";
            match free {
                0..FREE_SPACE_MIN => checks.fail("disk", found, fix),
                FREE_SPACE_MIN..FREE_SPACE_LOW => checks.warn("disk", found, fix),
                _ => checks.ok("disk", found),
            }
        }
        Err(reason) => checks.warn("disk", format!("cannot be checked: {reason}"), "check it manually"),
    }
}

async fn check_node(checks: &mut Checks) {
    let fix = format!("install Node.js {NODE_MIN} or newer; most agents need it");
    let Some(path) = which("node") else { return checks.warn("node", "not found on PATH", fix) };
    match version(&path, &["--version"]).await {
        Ok(version) => match major(&version) {
            Some(major) if major >= NODE_MIN => checks.ok("node", version),
            _ => checks.warn("node", version, fix),
        },
        Err(reason) => checks.warn("node", reason, fix),
    }
}

/// Parses the major version: `v20.20.2` becomes 20.
fn major(version: &str) -> Option<u32> {
    version.trim_start_matches('v').split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_modes_open_to_others_fail_with_the_fix() {
        let dir = tempfile::tempdir().unwrap();
        let set = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        let found = |dir: &Path| {
            let mut checks = Checks::default();
            check_modes(&mut checks, dir);
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

    #[test]
    fn agents_under_one_name_fail_with_the_fix() {
        let holder = |name: &str, pid, state| Holder {
            runtime_id: name.into(),
            pid: Some(pid),
            since: std::time::SystemTime::now().into(),
            state,
            path: PathBuf::new(),
        };
        let findings = |holders: &[Holder]| {
            let mut checks = Checks::default();
            duplicate_holders(&mut checks, holders);
            checks.0.into_iter().map(|check| (check.check, check.verdict, check.found)).collect::<Vec<_>>()
        };
        let (a, ended) = (holder("a", 1, HolderState::Running), holder("b", 2, HolderState::Ended));
        assert_eq!(findings(&[a, ended, holder("b", 3, HolderState::Running)]), []);
        let twins = findings(&[
            holder("a", 1, HolderState::Running),
            holder("a", 2, HolderState::Running),
            holder("b", 3, HolderState::Running),
        ]);
        let found = "2 agents are running under this name, in the holders 1, 2";
        assert_eq!(twins, [("agents of a".into(), Verdict::Fail, found.into())]);
    }

    #[tokio::test]
    async fn versions_are_read_and_silence_is_reported() {
        use std::io::Write as _;
        let dir = tempfile::tempdir().unwrap();
        let program = |name: &str, body: &str| {
            let path = dir.path().join(name);
            let mut file = std::fs::File::create(&path).unwrap();
            writeln!(file, "#!/bin/sh\n{body}").unwrap();
            file.set_permissions(std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        assert_eq!(version(&program("a", "echo; echo v20.1.2"), &[]).await, Ok("v20.1.2".into()));
        assert_eq!(
            version(&program("b", "exit 1"), &[]).await,
            Err("does not report its version: it ended with exit code 1".into())
        );
        assert_eq!(version(&program("c", "true"), &[]).await, Err("does not report its version".into()));
        assert!(version(&dir.path().join("none"), &[]).await.unwrap_err().contains("cannot be started"));
        assert_eq!((major("v20.20.2"), major("22.1"), major("x")), (Some(20), Some(22), None));
    }
}
