//! The service managers: their names, files and command lines.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::programs::CommandLine;

/// The service manager of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Manager {
    Systemd,
    Launchd,
}

/// The name of the systemd unit.
const UNIT: &str = "plexus.service";
/// The label of the launchd agent.
const LABEL: &str = "io.plexus.gateway";

impl Manager {
    /// The manager of this platform.
    pub(crate) fn current() -> Option<Self> {
        match std::env::consts::OS {
            "linux" => Some(Self::Systemd),
            "macos" => Some(Self::Launchd),
            _ => None,
        }
    }

    /// The path of the service's file.
    pub(super) fn file(self, user_home: &Path, config_folder: &Path) -> PathBuf {
        match self {
            Self::Systemd => config_folder.join("systemd/user").join(UNIT),
            Self::Launchd => user_home.join("Library/LaunchAgents").join(format!("{LABEL}.plist")),
        }
    }

    /// Prints the state of the service.
    pub(super) fn query(self) -> CommandLine {
        match self {
            Self::Systemd => systemctl(&[
                "show",
                UNIT,
                "--property=ActiveState,MainPID,UnitFileState,ActiveEnterTimestamp,FragmentPath",
            ]),
            Self::Launchd => CommandLine::new("launchctl", &["print", &launchd_target()]),
        }
    }

    /// Makes the manager read the files again; launchd reads a file only when it loads the service.
    pub(super) fn reload(self) -> Option<CommandLine> {
        (self == Self::Systemd).then(|| systemctl(&["daemon-reload"]))
    }

    /// Enables the service and starts it, unless it runs.
    pub(super) fn enable(self, file: &Path) -> Vec<CommandLine> {
        match self {
            Self::Systemd => vec![systemctl(&["enable", "--now", UNIT])],
            Self::Launchd => {
                let launchctl = |args: &[&str]| CommandLine::new("launchctl", args);
                let domain = format!("gui/{}", user_id());
                vec![
                    launchctl(&["enable", &launchd_target()]),
                    launchctl(&["bootstrap", &domain, &file.to_string_lossy()]),
                ]
            }
        }
    }

    /// Stops and disables the service.
    pub(super) fn disable(self) -> CommandLine {
        match self {
            Self::Systemd => systemctl(&["disable", "--now", UNIT]),
            Self::Launchd => CommandLine::new("launchctl", &["bootout", &launchd_target()]),
        }
    }

    pub(super) fn enable_only(self) -> Option<CommandLine> {
        (self == Self::Systemd).then(|| systemctl(&["enable", UNIT]))
    }

    pub(crate) fn restart(self) -> CommandLine {
        match self {
            Self::Systemd => systemctl(&["restart", UNIT]),
            Self::Launchd => CommandLine::new("launchctl", &["kickstart", "-k", &launchd_target()]),
        }
    }
}

fn systemctl(args: &[&str]) -> CommandLine {
    CommandLine::new("systemctl", &[&["--user"], args].concat())
}

/// Prints whether the user's services outlive the last session.
pub(super) fn linger_query() -> CommandLine {
    CommandLine::new("loginctl", &["show-user", &user_id().to_string(), "--property=Linger"])
}

pub(super) fn set_linger(enable: bool) -> CommandLine {
    CommandLine::new("loginctl", &[if enable { "enable-linger" } else { "disable-linger" }])
}

fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}

fn launchd_target() -> String {
    format!("gui/{}/{LABEL}", user_id())
}
