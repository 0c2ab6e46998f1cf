//! The state of the installed service, as its manager reports it.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::manager::{Manager, linger_query};
use crate::cli::output::line;
use crate::cli::programs::run_within;

/// Time for the manager to report a state; a slower one counts as unreachable.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a manager's error message, in characters.
pub(crate) const MESSAGE_MAX: usize = 300;

/// The state of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ServiceState {
    /// The file that the manager read; `None` if the service is not installed.
    pub(crate) file: Option<PathBuf>,
    /// `true` if the service starts with the user's manager.
    pub(crate) enabled: bool,
    pub(crate) active: bool,
    /// The manager's own word for the state: `active`, `failed`.
    pub(crate) state: String,
    /// The process of the gateway.
    pub(crate) pid: Option<u32>,
    /// The time since when the service is active, in the manager's own format.
    pub(crate) since: Option<String>,
}

impl ServiceState {
    /// Returns whether the gateway with this process id is the service.
    pub(crate) fn runs(&self, pid: u32) -> bool {
        self.pid == Some(pid)
    }
}

/// Asks the manager for the state of the service.
///
/// # Errors
/// The reason why the manager cannot be reached.
pub(crate) async fn service_state(manager: Manager) -> Result<ServiceState, String> {
    let output = run_within(&manager.query(), QUERY_TIMEOUT).await.map_err(|error| error.to_string())?;
    match manager {
        Manager::Systemd if output.success => Ok(parse_systemd(&output.stdout)),
        Manager::Systemd => Err(line(&output.stderr, MESSAGE_MAX)),
        // launchd fails for a service that is not loaded.
        Manager::Launchd if output.success => Ok(parse_launchd(&output.stdout)),
        Manager::Launchd => Ok(ServiceState { state: "not loaded".into(), ..ServiceState::default() }),
    }
}

/// Returns whether the user's services outlive the last session; `None` if that is unknown, or if the platform has no such setting.
pub(super) async fn lingers(manager: Manager) -> Option<bool> {
    if manager != Manager::Systemd {
        return None;
    }
    let output = run_within(&linger_query(), QUERY_TIMEOUT).await.ok()?;
    match output.stdout.trim() {
        "Linger=yes" => Some(true),
        "Linger=no" => Some(false),
        _ => None,
    }
}

fn parse_systemd(text: &str) -> ServiceState {
    let value = |name: &str| {
        let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        values.next().filter(|value| !value.is_empty() && *value != "0")
    };
    let state = value("ActiveState").unwrap_or("unknown").to_owned();
    ServiceState {
        file: value("FragmentPath").map(PathBuf::from),
        enabled: value("UnitFileState").is_some_and(|state| state.starts_with("enabled")),
        active: ["active", "reloading"].contains(&state.as_str()),
        pid: value("MainPID").and_then(|pid| pid.parse().ok()),
        since: value("ActiveEnterTimestamp").filter(|_| state == "active").map(str::to_owned),
        state,
    }
}

fn parse_launchd(text: &str) -> ServiceState {
    // Nested sections have values of the same names, farther in.
    let value = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix('\t')?.strip_prefix(name)?.strip_prefix(" = "))
            .map(str::to_owned)
    };
    let state = value("state").unwrap_or_else(|| "unknown".into());
    ServiceState {
        file: value("path").map(PathBuf::from),
        enabled: true,
        active: state == "running",
        pid: value("pid").and_then(|pid| pid.parse().ok()),
        since: None,
        state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_read_from_each_manager() {
        let text =
            "ActiveState=active\nMainPID=12\nUnitFileState=enabled\nActiveEnterTimestamp=Sun 12:00\nFragmentPath=/u\n";
        let mut expected = ServiceState {
            file: Some("/u".into()),
            enabled: true,
            active: true,
            state: "active".into(),
            pid: Some(12),
            since: Some("Sun 12:00".into()),
        };
        assert_eq!(parse_systemd(text), expected);
        let text =
            "io.plexus.gateway = {\n\tpath = /u\n\tstate = running\n\n\tsub = {\n\t\tpid = 3\n\t}\n\tpid = 12\n}\n";
        (expected.state, expected.since) = ("running".into(), None);
        assert_eq!(parse_launchd(text), expected);

        let text = "ActiveState=failed\nMainPID=0\nUnitFileState=\nActiveEnterTimestamp=Sun 12:00\nFragmentPath=\n";
        assert_eq!(parse_systemd(text), ServiceState { state: "failed".into(), ..ServiceState::default() });
    }
}
