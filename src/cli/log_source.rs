//! The place of the gateway's log: the journal, or a file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::failure::{CommandFailure, CommandResult, FAILURE, NO_GATEWAY};
use super::home::user_home;
use super::programs::{CommandLine, print_output, run_within};
use super::service::Manager;

/// Time to print a log that is not followed.
const PRINT_TIMEOUT: Duration = Duration::from_secs(60);
/// Time for `lsof` to name the file that is a gateway's stderr.
const LSOF_TIMEOUT: Duration = Duration::from_secs(10);

/// The place of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogSource {
    Journal,
    File(PathBuf),
}

/// The facts that decide the place of the gateway's log.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogFacts {
    /// The process of the running gateway, and whether it is the service.
    pub(crate) gateway: Option<(u32, bool)>,
    /// The log of the service, if one is installed.
    pub(crate) service: Option<LogSource>,
    /// The file that is the stderr of the running gateway.
    pub(crate) stderr: Option<PathBuf>,
    /// The log of a gateway that a command started, if it exists.
    pub(crate) detached: Option<PathBuf>,
}

impl LogFacts {
    /// Returns the log of the running gateway, else of the last one.
    ///
    /// # Errors
    /// The exit code, and how to get a log.
    pub(crate) fn source(self) -> Result<LogSource, CommandFailure> {
        const ADVICE: &str = "`plexus service install` keeps a log, and so does `plexus serve --log-file FILE`";
        match (self.gateway, self.service) {
            (Some((_, true)) | None, Some(service)) => Ok(service),
            (Some((pid, _)), _) => self.stderr.map(LogSource::File).ok_or_else(|| {
                let message =
                    format!("the gateway (process {pid}) logs to where it was started, not to a file: {ADVICE}");
                CommandFailure::new(FAILURE, message)
            }),
            (None, None) => self.detached.map(LogSource::File).ok_or_else(|| {
                CommandFailure::new(NO_GATEWAY, format!("no gateway is running, and there is no log of one: {ADVICE}"))
            }),
        }
    }
}

impl LogSource {
    /// The log of the service.
    ///
    /// # Errors
    /// The home folder is unknown.
    pub(crate) fn for_service(manager: Manager) -> anyhow::Result<Self> {
        Ok(match manager {
            Manager::Systemd => Self::Journal,
            Manager::Launchd => Self::File(user_home()?.join("Library/Logs/plexus.log")),
        })
    }

    fn command(&self, lines: u32, follow: bool) -> CommandLine {
        let lines = lines.to_string();
        match self {
            Self::Journal => {
                let args = ["--user", "-u", "plexus", "--no-pager", "-n", &lines, "-f"];
                CommandLine::new("journalctl", &args[..args.len() - usize::from(!follow)])
            }
            // With `-F`, tail goes on with the new file after a rotation.
            Self::File(file) => {
                let args = ["-n", &lines, "-F", "--", &file.to_string_lossy()];
                let args: Vec<&str> = args.into_iter().filter(|arg| follow || *arg != "-F").collect();
                CommandLine::new("tail", &args)
            }
        }
    }

    /// Prints the last lines, and with `follow` those that are added.
    pub(crate) async fn print(&self, lines: u32, follow: bool) -> CommandResult {
        print_output(&self.command(lines, follow), (!follow).then_some(PRINT_TIMEOUT)).await
    }
}

/// The regular file that is the stderr of a process; a gateway with `--log-file` makes its log its stderr.
pub(crate) async fn stderr_file(pid: u32) -> Option<PathBuf> {
    let path = match std::fs::read_link(format!("/proc/{pid}/fd/2")) {
        Ok(path) => path,
        Err(_) => {
            let lsof = CommandLine::new("lsof", &["-a", "-p", &pid.to_string(), "-d", "2", "-Fn"]);
            let output = run_within(&lsof, LSOF_TIMEOUT).await.ok()?;
            PathBuf::from(output.stdout.lines().find_map(|line| line.strip_prefix('n'))?)
        }
    };
    Some(path).filter(|path| Path::is_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_is_that_of_the_running_gateway_else_of_the_last_one() {
        let file = |name: &str| Some(LogSource::File(name.into()));
        let (by_hand, service) = (Some((12, false)), Some((12, true)));
        let all = LogFacts {
            gateway: None,
            service: Some(LogSource::Journal),
            stderr: Some("stderr".into()),
            detached: Some("detached".into()),
        };
        let cases = [
            (LogFacts { gateway: service, ..all.clone() }, Some(LogSource::Journal)),
            (LogFacts { gateway: by_hand, ..all.clone() }, file("stderr")),
            (LogFacts { gateway: by_hand, stderr: None, ..all.clone() }, None),
            (all.clone(), Some(LogSource::Journal)),
            (LogFacts { service: None, ..all }, file("detached")),
            (LogFacts::default(), None),
        ];
        for (facts, expected) in cases {
            assert_eq!(facts.clone().source().ok(), expected, "{facts:?}");
        }
        assert_eq!(LogFacts::default().source().unwrap_err().code, NO_GATEWAY);
    }

    #[test]
    fn log_commands_print_and_follow() {
        let command = |source: &LogSource, follow| source.command(5, follow).to_string();
        assert_eq!(command(&LogSource::Journal, false), "journalctl --user -u plexus --no-pager -n 5");
        assert_eq!(command(&LogSource::Journal, true), "journalctl --user -u plexus --no-pager -n 5 -f");
        let file = LogSource::File("/a".into());
        assert_eq!([command(&file, false), command(&file, true)], ["tail -n 5 -- /a", "tail -n 5 -F -- /a"]);
    }
}
