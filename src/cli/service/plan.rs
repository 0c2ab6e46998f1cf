//! The decisions of `plexus service`: the steps that follow from what was found. Pure.

use std::fmt;
use std::path::PathBuf;

use super::manager::{Manager, set_linger};
use super::state::ServiceState;
use super::unit::changed_lines;
use crate::cli::programs::CommandLine;

/// Maximum number of lines that a refusal shows of each file.
const SHOWN_LINES: usize = 4;

/// The facts that decide the steps.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) manager: Manager,
    /// The path of the service's file, and the text that this installation has.
    pub(crate) file: PathBuf,
    pub(crate) text: String,
    /// The text of the file on disk.
    pub(crate) installed: Option<String>,
    /// The state of the service, or the reason why the manager cannot be reached.
    pub(crate) state: Result<ServiceState, String>,
    /// `true` if the user's services outlive the last session.
    pub(crate) linger: Option<bool>,
    /// `true` if an installation enabled lingering.
    pub(crate) linger_set: bool,
    /// The process of the running gateway.
    pub(crate) gateway: Option<u32>,
}

/// A step of an installation or removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Write(PathBuf),
    Remove(PathBuf),
    Run(CommandLine),
    /// Stops the service and waits for its end.
    Stop(CommandLine),
    /// Enables lingering, and remembers that. A failure does not fail the installation.
    EnableLinger(CommandLine),
    /// Disables lingering, and forgets that it was enabled.
    DisableLinger(CommandLine),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(path) => write!(f, "write {}", path.display()),
            Self::Remove(path) => write!(f, "remove {}", path.display()),
            Self::Run(command) | Self::Stop(command) => command.fmt(f),
            Self::EnableLinger(command) | Self::DisableLinger(command) => command.fmt(f),
        }
    }
}

/// The steps of an installation; none if the service is installed and runs.
///
/// # Errors
/// The reason for the refusal, and the fix.
pub(crate) fn install(facts: &Facts, force: bool) -> Result<Vec<Step>, String> {
    let Facts { manager, file, .. } = facts;
    let state = facts.state.as_ref().map_err(|reason| unreachable_manager(*manager, reason))?;
    if let Some(pid) = facts.gateway.filter(|pid| !state.runs(*pid)) {
        return Err(format!(
            "a gateway that is not the service is running (process {pid}): stop it with `kill {pid}`, then run \
             `plexus service install` again; its agents continue"
        ));
    }
    let is_new = facts.installed.as_ref() != Some(&facts.text);
    if let Some(installed) = facts.installed.as_ref().filter(|_| is_new && !force) {
        let lines = changed_lines(installed, &facts.text, SHOWN_LINES).join("\n  ");
        return Err(format!(
            "{} exists with other text; `plexus service install --force` replaces it:\n  {lines}",
            file.display()
        ));
    }
    let mut steps = Vec::new();
    let is_loaded = state.active || *manager == Manager::Launchd && state.file.is_some();
    if is_new {
        if *manager == Manager::Launchd && is_loaded {
            steps.push(Step::Stop(manager.disable()));
        }
        steps.push(Step::Write(file.clone()));
        steps.extend(manager.reload().map(Step::Run));
    }
    match manager {
        Manager::Systemd if is_new && state.active => {
            steps.extend(manager.enable_only().into_iter().chain([manager.restart()]).map(Step::Run));
        }
        Manager::Launchd if !is_new && is_loaded => {
            steps.extend((!state.active).then(|| Step::Run(manager.restart())));
        }
        _ if is_new || !state.active || !state.enabled => {
            steps.extend(manager.enable(file).into_iter().map(Step::Run));
        }
        _ => {}
    }
    steps.extend((facts.linger == Some(false)).then(|| Step::EnableLinger(set_linger(true))));
    Ok(steps)
}

/// The steps of a removal; none if nothing is installed.
///
/// # Errors
/// The reason for the refusal, and the fix.
pub(crate) fn uninstall(facts: &Facts) -> Result<Vec<Step>, String> {
    let is_known = facts.installed.is_some() || facts.linger_set;
    let state = match &facts.state {
        Ok(state) => state,
        Err(_) if !is_known => return Ok(Vec::new()),
        Err(reason) => return Err(unreachable_manager(facts.manager, reason)),
    };
    let mut steps = Vec::new();
    if state.active || state.enabled || state.file.is_some() {
        steps.push(Step::Stop(facts.manager.disable()));
    }
    if facts.installed.is_some() {
        steps.push(Step::Remove(facts.file.clone()));
        steps.extend(facts.manager.reload().map(Step::Run));
    }
    steps.extend(facts.linger_set.then(|| Step::DisableLinger(set_linger(false))));
    Ok(steps)
}

fn unreachable_manager(manager: Manager, reason: &str) -> String {
    let fix = match manager {
        Manager::Systemd => "log in directly as this user instead of by su or sudo",
        Manager::Launchd => "log in to the desktop as this user",
    };
    format!("no service manager of this user can be reached: {reason}; {fix}, or run `plexus serve` in another way")
}

/// Returns the advice that gives the running gateway this program.
pub(crate) fn restart_advice(service: Option<Manager>, pid: u32) -> String {
    match service {
        Some(manager) => format!("`{}` restarts it; its agents continue", manager.restart()),
        None => format!("stop it with `kill {pid}` and start it again with `plexus serve`; its agents continue"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(manager: Manager, installed: Option<&str>, state: ServiceState) -> Facts {
        Facts {
            manager,
            file: "/f".into(),
            text: "new\n".into(),
            installed: installed.map(str::to_owned),
            gateway: state.pid,
            state: Ok(state),
            linger: (manager == Manager::Systemd).then_some(true),
            linger_set: false,
        }
    }

    fn absent() -> ServiceState {
        ServiceState::default()
    }

    fn running() -> ServiceState {
        let pid = Some(7);
        ServiceState { file: Some("/f".into()), enabled: true, active: true, pid, ..ServiceState::default() }
    }

    fn stopped() -> ServiceState {
        ServiceState { active: false, pid: None, ..running() }
    }

    fn texts(steps: Result<Vec<Step>, String>) -> Vec<String> {
        let user = rustix::process::getuid().as_raw().to_string();
        steps.unwrap().iter().map(|step| step.to_string().replace(&user, "ID")).collect()
    }

    #[test]
    fn installation_runs_only_the_steps_that_are_missing() {
        use Manager::{Launchd, Systemd};
        let (bootstrap, bootout) = ("launchctl bootstrap gui/ID /f", "launchctl bootout gui/ID/io.plexus.gateway");
        let (allow, kick) =
            ("launchctl enable gui/ID/io.plexus.gateway", "launchctl kickstart -k gui/ID/io.plexus.gateway");
        let (reload, start) = ("systemctl --user daemon-reload", "systemctl --user enable --now plexus.service");
        let (enable, restart) = ("systemctl --user enable plexus.service", "systemctl --user restart plexus.service");
        let cases: [(Manager, Option<&str>, ServiceState, &[&str]); 9] = [
            (Systemd, None, absent(), &["write /f", reload, start]),
            (Systemd, Some("new\n"), running(), &[]),
            (Systemd, Some("new\n"), stopped(), &[start]),
            (Systemd, Some("old\n"), running(), &["write /f", reload, enable, restart]),
            (Systemd, Some("old\n"), stopped(), &["write /f", reload, start]),
            (Launchd, None, absent(), &["write /f", allow, bootstrap]),
            (Launchd, Some("new\n"), running(), &[]),
            (Launchd, Some("new\n"), stopped(), &[kick]),
            (Launchd, Some("old\n"), running(), &[bootout, "write /f", allow, bootstrap]),
        ];
        for (manager, installed, state, expected) in cases {
            let facts = facts(manager, installed, state);
            assert_eq!(texts(install(&facts, true)), expected, "{facts:?}");
        }
    }

    #[test]
    fn lingering_is_enabled_if_it_is_off_and_reverted_if_it_was_set() {
        for (linger, set) in [(Some(true), false), (Some(false), true), (None, false)] {
            let facts = Facts { linger, ..facts(Manager::Systemd, None, absent()) };
            let steps = texts(install(&facts, false));
            assert_eq!(steps.contains(&"loginctl enable-linger".to_owned()), set, "{linger:?}");
        }
        for linger_set in [true, false] {
            let facts = Facts { linger_set, ..facts(Manager::Systemd, Some("new\n"), running()) };
            let steps = texts(uninstall(&facts));
            assert_eq!(steps.contains(&"loginctl disable-linger".to_owned()), linger_set);
        }
    }

    #[test]
    fn removal_stops_the_service_and_removes_its_file() {
        let stop = "systemctl --user disable --now plexus.service";
        let reload = "systemctl --user daemon-reload";
        let bootout = "launchctl bootout gui/ID/io.plexus.gateway";
        let cases: [(Manager, Option<&str>, ServiceState, &[&str]); 4] = [
            (Manager::Systemd, Some("any"), running(), &[stop, "remove /f", reload]),
            (Manager::Systemd, None, absent(), &[]),
            // The unit of a package is disabled, and stays.
            (Manager::Systemd, None, running(), &[stop]),
            (Manager::Launchd, Some("any"), running(), &[bootout, "remove /f"]),
        ];
        for (manager, installed, state, expected) in cases {
            assert_eq!(texts(uninstall(&facts(manager, installed, state))), expected);
        }
    }

    #[test]
    fn refusals_name_the_reason_and_the_fix() {
        let usual = facts(Manager::Systemd, None, absent());
        let refusal = |facts: &Facts| install(facts, false).unwrap_err();
        let text = refusal(&Facts { state: Err("no bus".into()), ..usual.clone() });
        assert!(text.contains("no bus") && text.contains("su or sudo") && text.contains("`plexus serve`"), "{text}");
        let by_hand = Facts { gateway: Some(12), ..usual.clone() };
        assert!(refusal(&by_hand).contains("`kill 12`") && install(&by_hand, true).is_err());
        let text = refusal(&Facts { installed: Some("old\n".into()), ..usual.clone() });
        assert!(text.contains("--force") && text.contains("- old\n  + new"), "{text}");

        let unreachable = Facts { state: Err("no bus".into()), ..usual };
        assert_eq!(uninstall(&unreachable), Ok(Vec::new()));
        assert!(uninstall(&Facts { installed: Some("new\n".into()), ..unreachable }).is_err());
    }
}
