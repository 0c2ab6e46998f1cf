//! Programs on PATH: their paths, and their output within a deadline.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::AsyncReadExt as _;

use super::failure::{CommandFailure, CommandResult, FAILURE};
use super::output::SanitizedWriter;

/// The program's path, found in the same way as by a shell.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_program(path));
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| is_program(path))
}

/// Returns whether the path is an executable file.
pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The path of this program, which is also the demo agent and the holder.
pub(crate) fn this_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find the path of the plexus program")
}

/// A path of this program that stays valid after an upgrade: a package's own folder is often named after its version, and PATH has a link
/// to it.
pub(crate) fn stable_path(exe: PathBuf) -> PathBuf {
    let (Ok(real), Some(name)) = (exe.canonicalize(), exe.file_name()) else { return exe };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::split_paths(&path).map(|dir| dir.join(name));
    let mut links = paths.filter(|path| path.is_absolute() && path.canonicalize().is_ok_and(|path| path == real));
    links.next().unwrap_or(exe)
}

/// A program to run, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    program: &'static str,
    args: Vec<String>,
}

impl CommandLine {
    pub(crate) fn new(program: &'static str, args: &[&str]) -> Self {
        Self { program, args: args.iter().map(ToString::to_string).collect() }
    }

    fn process(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(self.program);
        command.args(&self.args).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    fn slow(&self, limit: Duration) -> anyhow::Error {
        CommandFailure::plain(format!("{} did not end within {} s", self.program, limit.as_secs_f32()))
    }

    fn not_started(&self, error: &std::io::Error) -> anyhow::Error {
        CommandFailure::plain(match error.kind() {
            std::io::ErrorKind::NotFound => format!("{} is not on PATH", self.program),
            _ => format!("{} cannot be started: {error}", self.program),
        })
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program)?;
        self.args.iter().try_for_each(|arg| match arg.contains(|c: char| c.is_whitespace() || "'\"$\\".contains(c)) {
            true => write!(f, " '{}'", arg.replace('\'', "'\\''")),
            false => write!(f, " {arg}"),
        })
    }
}

/// The output of a program that ended in time.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program to its end; one that takes longer than `limit` is killed.
pub(crate) async fn run_within(command: &CommandLine, limit: Duration) -> anyhow::Result<ProgramOutput> {
    let mut child = command.process();
    let output = tokio::time::timeout(limit, child.output()).await.map_err(|_| command.slow(limit))?;
    let output = output.map_err(|error| command.not_started(&error))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    Ok(ProgramOutput { success: output.status.success(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
}

/// Runs a program and prints its output, sanitized, until it ends; one that takes longer than `limit` is killed.
pub(crate) async fn print_output(command: &CommandLine, limit: Option<Duration>) -> CommandResult {
    let print = async {
        let mut child =
            command.process().stdout(Stdio::piped()).spawn().map_err(|error| command.not_started(&error))?;
        let mut stdout = child.stdout.take().context("the output of the program")?;
        let (mut sanitized, mut bytes, mut out) = (SanitizedWriter::text(), Vec::new(), Vec::new());
        while stdout.read_buf(&mut bytes).await? > 0 {
            sanitized.push(&std::mem::take(&mut bytes), &mut out);
            print_bytes(&std::mem::take(&mut out))?;
        }
        sanitized.finish(&mut out);
        print_bytes(&out)?;
        Ok(if child.wait().await?.success() { 0 } else { FAILURE })
    };
    match limit {
        None => print.await,
        Some(limit) => tokio::time::timeout(limit, print).await.unwrap_or_else(|_| Err(command.slow(limit))),
    }
}

fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_named_by_its_link_on_path() {
        let exe = std::env::current_exe().unwrap();
        // This test is on no PATH.
        assert_eq!(stable_path(exe.clone()), exe);
        assert_eq!(stable_path(PathBuf::from("/not/there/plexus")), Path::new("/not/there/plexus"));
    }

    #[tokio::test]
    async fn programs_end_within_their_deadline() {
        let run = async |program, args: &[&str], limit| {
            run_within(&CommandLine::new(program, args), Duration::from_millis(limit)).await
        };
        let output = run("sh", &["-c", "echo out; echo err >&2; exit 3"], 60_000).await.unwrap();
        assert_eq!((output.success, output.stdout.as_str(), output.stderr.as_str()), (false, "out", "err"));
        assert_eq!(run("sleep", &["60"], 50).await.unwrap_err().to_string(), "sleep did not end within 0.05 s");
        let error = run("no-such-program", &[], 60_000).await.unwrap_err();
        assert_eq!(error.to_string(), "no-such-program is not on PATH");
        let follow = print_output(&CommandLine::new("sleep", &["60"]), Some(Duration::from_millis(50))).await;
        assert!(follow.unwrap_err().to_string().contains("did not end"));
    }

    #[test]
    fn command_lines_are_printed_as_a_shell_takes_them() {
        assert_eq!(CommandLine::new("cp", &["a b", "it's", "c"]).to_string(), r"cp 'a b' 'it'\''s' c");
    }
}
