//! Runs `git` so that nothing of the repository is executed: no hook, filter, file system monitor, credential helper or pager, and
//! no transfer from a remote.
//!
//! Git reads the settings of the repository, and there is no switch that turns all programs in them off. So what is known by
//! name is overridden in the environment, which comes last, and filters and hooks that have names of their own are read from
//! the settings first, in the folder in which git then runs: settings may be included by the folder or the branch.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use plexus_protocol::text::hides;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::WorktreeError;
use crate::sessions::display::label;

/// Most bytes of git's output that are read; what comes after is dropped, and the output counts as cut.
const OUTPUT_MAX: usize = 4 << 20;
/// Most bytes of git's own words in an error.
const WORDS_MAX: usize = 600;
/// Most filters and hooks with names that are turned off; with more, the repository is refused.
const NAMES_MAX: usize = 500;
/// Time for a command that only looks; then it is stopped and the call fails.
pub(super) const LOOK: Duration = Duration::from_secs(20);
/// Time for a checkout; then it is stopped, and what was made is removed.
pub(super) const CHECKOUT: Duration = Duration::from_secs(110);

/// Settings that win over those of the repository.
const OVERRIDES: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.askPass", ""),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", ""),
    ("core.editor", "false"),
    ("credential.helper", ""),
    ("diff.external", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("log.showSignature", "false"),
    ("submodule.recurse", "false"),
    ("status.submoduleSummary", "false"),
    ("protocol.allow", "never"),
    ("worktree.guessRemote", "false"),
];

/// The environment, besides the path and the home folder. Settings of the system and of the user are left out, too: they may
/// name filters.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_LFS_SKIP_SMUDGE", "1"),
    // A partial clone fetches what is missing by programs that its settings name.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_FLUSH", "1"),
];

/// What a command of git printed.
pub(super) struct GitOutput {
    pub(super) success: bool,
    pub(super) stdout: Vec<u8>,
    /// Whether there was more than is read.
    pub(super) cut: bool,
    stderr: Vec<u8>,
}

impl GitOutput {
    /// The output as a line of text.
    pub(super) fn line(&self) -> String {
        String::from_utf8_lossy(self.stdout.trim_ascii()).into_owned()
    }

    /// The output as a path.
    pub(super) fn path(&self) -> PathBuf {
        OsString::from_vec(self.stdout.strip_suffix(b"\n").unwrap_or(&self.stdout).to_vec()).into()
    }

    /// Git's own words.
    pub(super) fn words(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let words = label(&lines.join("; "), WORDS_MAX);
        if words.is_empty() { "git failed without a word".into() } else { words }
    }

    /// The output, if git succeeded.
    pub(super) fn checked(self, doing: &'static str) -> Result<Self, WorktreeError> {
        if self.success { Ok(self) } else { Err(WorktreeError::Git { doing, words: self.words() }) }
    }
}

/// Git in a folder.
pub(super) struct SafeGit {
    program: PathBuf,
    folder: PathBuf,
    /// Settings that turn off what has a name of its own.
    named: Vec<(OsString, &'static str)>,
}

impl SafeGit {
    /// Git in a folder: reads first which filters its settings name.
    pub(super) async fn within(folder: &Path) -> Result<Self, WorktreeError> {
        let mut git = Self { program: program()?, folder: folder.to_owned(), named: Vec::new() };
        let doing = "reading the settings of the repository";
        let listed = git.run(LOOK, &["config", "--list", "--name-only", "--null", "--includes"]).await?;
        let settings = listed.checked(doing)?;
        let failed = |words: &str| WorktreeError::Git { doing, words: words.into() };
        if settings.cut {
            return Err(failed("it has too many settings"));
        }
        git.named = switched_off(&settings.stdout).ok_or_else(|| failed("it has too many filters"))?;
        Ok(git)
    }

    /// Runs a command of git, with a limit of its time.
    pub(super) async fn run<S: AsRef<OsStr>>(&self, limit: Duration, args: &[S]) -> Result<GitOutput, WorktreeError> {
        let mut command = Command::new(&self.program);
        command.arg("--no-pager").arg("-C").arg(&self.folder).args(args).env_clear().envs(ENVIRONMENT.iter().copied());
        for name in ["PATH", "HOME", "XDG_CONFIG_HOME"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let known = OVERRIDES.iter().map(|(key, value)| (OsString::from(key), *value));
        let settings: Vec<(OsString, &str)> = known.chain(self.named.iter().cloned()).collect();
        command.env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (nth, (key, value)) in settings.into_iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{nth}"), key).env(format!("GIT_CONFIG_VALUE_{nth}"), value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).process_group(0);
        let mut child = command.spawn().map_err(|why| WorktreeError::NoGit(why.to_string()))?;
        let group = child.id().and_then(|id| rustix::process::Pid::from_raw(id.try_into().ok()?));
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let work = async {
            let ((stdout, cut), (stderr, _), status) =
                tokio::join!(read_some(out, OUTPUT_MAX), read_some(err, OUTPUT_MAX), child.wait());
            let success = status.is_ok_and(|status| status.success());
            GitOutput { success, stdout, cut, stderr }
        };
        match tokio::time::timeout(limit, work).await {
            Ok(output) => Ok(output),
            Err(_) => {
                // What it started would run on.
                let _ = group.map(|group| rustix::process::kill_process_group(group, rustix::process::Signal::KILL));
                Err(WorktreeError::Slow(limit.as_secs()))
            }
        }
    }
}

/// The git program.
fn program() -> Result<PathBuf, WorktreeError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A relative part of the path would name a program of the folder in which git runs.
    let mut found = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join("git"));
    found.find(|git| git.is_file()).ok_or_else(|| WorktreeError::NoGit("it is not on the gateway's PATH".into()))
}

/// Reads up to `most` bytes, and the rest into nothing. Whether there was a rest.
async fn read_some<R: AsyncRead + Unpin>(from: Option<R>, most: usize) -> (Vec<u8>, bool) {
    let (mut kept, mut cut) = (Vec::new(), false);
    let Some(mut from) = from else { return (kept, cut) };
    let mut piece = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        let room = (most - kept.len()).min(read);
        kept.extend_from_slice(&piece[..room]);
        cut |= room < read;
    }
    (kept, cut)
}

/// The settings that turn off the filters and hooks that these settings (their names, each with a NUL) define. `None` if they
/// are too many.
fn switched_off(names: &[u8]) -> Option<Vec<(OsString, &'static str)>> {
    let mut found: BTreeSet<(bool, &[u8])> = BTreeSet::new();
    for name in names.split(|byte| *byte == 0) {
        // The section and the variable have no dots; what is between them may.
        let between = |section: &[u8]| {
            let rest = name.strip_prefix(section)?;
            Some(&rest[..rest.iter().rposition(|byte| *byte == b'.')?])
        };
        found.extend(between(b"filter.").map(|filter| (true, filter)));
        found.extend(between(b"hook.").map(|hook| (false, hook)));
        if found.len() > NAMES_MAX {
            return None;
        }
    }
    let key = |section: &str, name: &[u8], variable: &str| {
        OsString::from_vec([section.as_bytes(), b".", name, b".", variable.as_bytes()].concat())
    };
    let mut all = Vec::new();
    for (is_filter, name) in found {
        let off: &[(&str, &'static str)] = if is_filter {
            &[("process", ""), ("smudge", ""), ("clean", ""), ("required", "false")]
        } else {
            &[("enabled", "false")]
        };
        let section = if is_filter { "filter" } else { "hook" };
        all.extend(off.iter().map(|(variable, value)| (key(section, name, variable), *value)));
    }
    Some(all)
}

/// Whether a text can name a branch, as git-check-ref-format(1) has it; and it is no option, and nothing in it is hidden or reorders what
/// people see of it.
pub(super) fn is_branch_name(name: &str) -> bool {
    let bad = |c: char| hides(c, None) || " ~^:?*[\\".contains(c);
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    !name.is_empty()
        && name.len() <= super::BRANCH_MAX
        && !name.starts_with('-')
        && name != "@"
        && name != "HEAD"
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(bad)
        && name.split('/').all(part)
}

/// Whether a text can be where a branch begins: anything that is no option.
pub(super) fn is_base(text: &str) -> bool {
    !text.is_empty() && text.len() <= super::BRANCH_MAX && !text.starts_with('-') && !text.contains(char::is_control)
}

/// The path of a changed file in a line of `git status --porcelain=v2 --null --no-renames`.
pub(super) fn changed_file(line: &[u8]) -> Option<String> {
    let fields = match line.first()? {
        b'1' => 9,
        b'u' => 11,
        b'?' => 2,
        _ => return None,
    };
    let path = line.splitn(fields, |byte| *byte == b' ').nth(fields - 1)?;
    Some(OsStr::from_bytes(path).to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_names_are_those_that_git_takes() {
        for good in ["a", "feature/x", "fix-1.2", "ümlaut", "a@b", "a{b", "x.y/z"] {
            assert!(is_branch_name(good), "{good}");
        }
        let long = "x".repeat(super::super::BRANCH_MAX + 1);
        for bad in [
            "", "-b", "--force", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b", "/a", "a/", "a//b",
            ".a", "a/.b", "a.", "a.lock", "a.lock/b", "@", "HEAD", "a@{1}", "a\nb", "a\u{7f}", "..", "../../x", &long,
        ] {
            assert!(!is_branch_name(bad), "{bad:?}");
        }
        for hidden in [
            "\u{202e}",
            "\u{2066}",
            "\u{200b}",
            "\u{ad}",
            "\u{feff}",
            "\u{2028}",
            "\u{a0}x\u{3164}",
            "\u{9b}",
            "\u{e000}",
        ] {
            assert!(!is_branch_name(&format!("a{hidden}b")), "{hidden:?}");
        }
        assert!(is_base("origin/main") && is_base("v1.0^{commit}") && !is_base("--upload-pack=x") && !is_base("a\nb"));
    }

    #[test]
    fn filters_and_hooks_of_any_name_are_turned_off() {
        let names =
            b"core.bare\0filter.lfs.clean\0filter.lfs.smudge\0filter.a.b = c.process\0hook.x.command\0filter.short\0";
        let off = switched_off(names).unwrap();
        let keys: Vec<String> = off.iter().map(|(key, value)| format!("{}={value}", key.to_string_lossy())).collect();
        let filter = |name: &str| {
            ["process=", "smudge=", "clean=", "required=false"].map(|what| format!("filter.{name}.{what}"))
        };
        let expected: Vec<String> =
            ["hook.x.enabled=false".to_owned()].into_iter().chain(filter("a.b = c")).chain(filter("lfs")).collect();
        assert_eq!(keys, expected);
        let many: Vec<u8> = (0..=NAMES_MAX).flat_map(|n| format!("filter.f{n}.clean\0").into_bytes()).collect();
        assert!(switched_off(&many).is_none());
    }

    #[test]
    fn changed_files_are_read_from_any_line() {
        for (line, file) in [
            ("1 .M N... 100644 100644 100644 aa bb a file", Some("a file")),
            ("u UU N... 1 2 3 4 a b c both sides", Some("both sides")),
            ("? new\nline", Some("new\nline")),
            ("! ignored", None),
            ("# branch.oid x", None),
            ("1 .M", None),
            ("", None),
        ] {
            assert_eq!(changed_file(line.as_bytes()).as_deref(), file, "{line:?}");
        }
    }
}
