//! An agent's program: its path, its environment, and the end of its stderr.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::presets;
use plexus_holder::Program;
use plexus_protocol::RuntimeSpec;
use plexus_protocol::api::runtimes::LogSource;
use plexus_protocol::text::printable;
use plexus_risk::masked;
use plexus_sessions::StderrLog;

/// Number of retained bytes of a runtime's stderr; older text is dropped.
const STDERR_KEPT: usize = 64 * 1024;

/// Maximum length of a stderr line in the log, in bytes before escaping; a longer one is cut into several.
const STDERR_LINE: usize = 1000;

/// Maximum number of displayed bytes of stderr, before escaping.
const STDERR_SHOWN: usize = 4 * 1024;

/// Variables that every runtime gets from the gateway's own environment: those with which a program finds its files, its language, its
/// terminal and the network. A name ending in `*` stands for all with that prefix.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "TMPDIR",
    "TZ",
    "XDG_*",
    // Agents push with git, like their user.
    "SSH_AUTH_SOCK",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Prefix of the gateway's own variables (its token, its home): no runtime ever gets one.
pub(super) const OWN: &str = "PLEXUS_";

/// Returns whether `name` is `pattern`, or begins with the part before its `*`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// Returns the whole environment of a runtime, from the gateway's own and its spec.
pub(super) fn environment(own: &BTreeMap<OsString, OsString>, spec: &RuntimeSpec) -> BTreeMap<OsString, OsString> {
    let passed = |name: &str| {
        ALLOWED.iter().any(|pattern| matches(pattern, name)) || spec.pass_env.iter().any(|p| matches(p, name))
    };
    let mut env: BTreeMap<OsString, OsString> = own
        .iter()
        .filter(|(name, _)| name.to_str().is_some_and(passed))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    env.extend(spec.env.iter().map(|(name, value)| (name.into(), value.into())));
    env.retain(|name, _| !name.as_encoded_bytes().starts_with(OWN.as_bytes()));
    env
}

/// Returns the program that `argv` starts in the environment and the folder of `spec`.
///
/// # Errors
/// A text for users: no command, no such folder, no such program.
pub(super) async fn program(
    spec: &RuntimeSpec,
    argv: &[String],
    own: &BTreeMap<OsString, OsString>,
) -> Result<Program, String> {
    let Some((name, args)) = argv.split_first() else { return Err("its command is empty".into()) };
    let env = environment(own, spec);
    let (name, cwd, path) = (name.clone(), spec.cwd.clone(), env.get(OsStr::new("PATH")).cloned());
    // Folders may be on slow disks.
    let found = tokio::task::spawn_blocking(move || {
        if !cwd.is_dir() {
            return Err(format!("the folder {} does not exist", cwd.display()));
        }
        find(&name, path.as_deref(), &cwd)
    });
    let path = found.await.map_err(|error| error.to_string())??;
    Ok(Program { path, args: args.to_vec(), env })
}

/// Returns the path of `program`, as a shell in `cwd` would find it.
///
/// # Errors
/// A text for users, with the command that installs the program if that is known.
pub(super) fn find(program: &str, path: Option<&OsStr>, cwd: &Path) -> Result<PathBuf, String> {
    if program.contains('/') {
        let at = cwd.join(program);
        return match runnable(&at) {
            true => Ok(at),
            false if at.exists() => Err(format!("{} is not executable", at.display())),
            false => Err(format!("{} does not exist", at.display())),
        };
    }
    let dirs = path.map(std::env::split_paths).into_iter().flatten();
    let found = dirs.map(|dir| cwd.join(dir).join(program)).find(|at| runnable(at));
    found.ok_or_else(|| match presets::install_command(program) {
        Some(install) => format!("`{program}` is not on PATH: {install}"),
        None => format!("`{program}` is not on PATH"),
    })
}

fn runnable(at: &Path) -> bool {
    at.is_file() && rustix::fs::access(at, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The end of a runtime's stderr; its lines are added to the runtime's log.
pub(super) struct Stderr {
    text: VecDeque<u8>,
    /// The line without an end so far.
    line: Vec<u8>,
    stderr_log: StderrLog,
    /// The length of the text at the last [`mark`](Self::mark).
    seen: usize,
}

impl Stderr {
    pub(super) fn new(stderr_log: StderrLog) -> Self {
        Self { text: VecDeque::new(), line: Vec::new(), stderr_log, seen: 0 }
    }

    /// Appends output.
    pub(super) fn push(&mut self, more: &[u8]) {
        self.text.extend(more);
        let old = self.text.len().saturating_sub(STDERR_KEPT);
        self.text.drain(..old);
        self.seen = self.seen.saturating_sub(old);
        for piece in more.split_inclusive(|byte| *byte == b'\n') {
            for part in piece.chunks(STDERR_LINE) {
                self.line.extend_from_slice(part);
                if self.line.ends_with(b"\n") || self.line.len() >= STDERR_LINE {
                    self.end_of_line();
                }
            }
        }
    }

    /// Ends the last line.
    pub(super) fn finish(&mut self) {
        self.end_of_line();
    }

    fn end_of_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        if !line.is_empty() {
            self.stderr_log.add(
                SystemTime::now().into(),
                LogSource::Runtime,
                masked(printable(line).trim_end_matches("\\r")).as_str(),
            );
        }
    }

    /// Returns the last few lines, safe to display.
    pub(super) fn tail(&self) -> String {
        self.from(self.text.len().saturating_sub(STDERR_SHOWN))
    }

    /// Marks the current end, when the runtime gets a prompt: later output may be about the prompt.
    pub(super) fn mark(&mut self) {
        self.seen = self.text.len();
    }

    /// Returns the last few lines since the last [`mark`](Self::mark), safe to display.
    pub(super) fn since(&self) -> String {
        self.from(self.seen.max(self.text.len().saturating_sub(STDERR_SHOWN)))
    }

    fn from(&self, skipped: usize) -> String {
        let tail: Vec<u8> = self.text.iter().skip(skipped).copied().collect();
        // The text must not begin in the middle of a character.
        let partial = tail.iter().take(3).take_while(|byte| skipped > 0 && **byte & 0xc0 == 0x80).count();
        masked(&printable(&tail[partial..]))
    }
}

/// Returns the program of a command, as the gateway would find it in `path`; `None` if it is not installed.
pub fn program_of(command: &[String], path: Option<String>) -> Option<PathBuf> {
    let path = path.map(std::ffi::OsString::from);
    find(command.first()?, path.as_deref(), Path::new("/")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_has_named_variables_only_and_none_of_the_gateways_own() {
        let own =
            ["PATH", "LC_ALL", "XDG_DATA_HOME", "LD_PRELOAD", "NODE_OPTIONS", "SECRET", "PLEXUS_TOKEN", "GEMINI_X"];
        let own = own.iter().map(|name| (name.into(), "own".into())).collect();
        let command = plexus_protocol::Connect::Command(vec!["true".into()]);
        let mut spec = RuntimeSpec::new(plexus_protocol::RuntimeId::trusted("t"), "acp", command, "/");
        spec.pass_env = ["GEMINI_*", "PLEXUS_TOKEN", "P*"].map(String::from).to_vec();
        spec.env = [("SET", "1"), ("PATH", "/x"), ("PLEXUS_HOME", "/h")].map(|(k, v)| (k.into(), v.into())).into();
        let env = environment(&own, &spec);
        let names: Vec<&str> = env.keys().filter_map(|name| name.to_str()).collect();
        assert_eq!(names, ["GEMINI_X", "LC_ALL", "PATH", "SET", "XDG_DATA_HOME"]);
        assert_eq!(env.get(OsStr::new("PATH")), Some(&"/x".into()));
    }

    #[test]
    fn program_is_found_as_by_a_shell_and_a_missing_one_comes_with_the_fix() {
        let path = OsStr::new("/nonexistent:/usr/bin:/bin");
        assert!(find("sh", Some(path), Path::new("/")).unwrap().ends_with("sh"));
        assert!(find("bin/sh", None, Path::new("/")).is_ok());
        let missing = find("gemini", Some(OsStr::new("/nonexistent")), Path::new("/")).unwrap_err();
        assert_eq!(missing, "`gemini` is not on PATH: npm install -g @google/gemini-cli");
        assert_eq!(find("./etc/passwd", None, Path::new("/")).unwrap_err(), "/./etc/passwd is not executable");
        assert_eq!(find("/no/such", None, Path::new("/")).unwrap_err(), "/no/such does not exist");
    }

    #[test]
    fn stderr_shows_and_logs_no_secret() {
        let stderr_log = StderrLog::default();
        let mut stderr = Stderr::new(stderr_log.clone());
        stderr.push(b"calling with OPENAI_API_KEY=sk-abc123def456ghi\n");
        let kept = format!("{} {} {:?}", stderr.tail(), stderr.since(), stderr_log.lines());
        assert!(kept.contains("calling with") && !kept.contains("abc123def456"), "{kept}");
    }

    #[test]
    fn stderr_is_logged_line_by_line() {
        let stderr_log = StderrLog::default();
        let mut stderr = Stderr::new(stderr_log.clone());
        let long = "x".repeat(STDERR_LINE + 7);
        for piece in ["one\r\nt", "wo\x1b[2J\n\n", &long, "\nthe end"] {
            stderr.push(piece.as_bytes());
        }
        stderr.finish();
        let lines: Vec<_> = stderr_log.lines().into_iter().map(|line| line.text).collect();
        assert_eq!(lines, ["one", "two\\u{1b}[2J", &long[7..], "xxxxxxx", "the end"]);
    }
}
