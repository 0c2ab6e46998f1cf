//! The risk of paths, judged by their text. Pure: no file is read, and links are not followed.

use plexus_protocol::text::line;

use crate::shell::ShellText;
use crate::tables::{AUTORUN_PATHS, SECRET_PATHS, SYSTEM_PATHS};
use crate::verdict::RiskVerdict;

/// Maximum length of a path or program in a reason, in bytes.
const NAMED_MAX: usize = 60;

/// Returns a word for a reason: shortened, and safe to show.
pub(super) fn named(word: &str) -> String {
    line(word, NAMED_MAX)
}

/// Returns the risk of writing to a path.
pub(super) fn written(path: &str, text: &ShellText<'_>) -> RiskVerdict {
    if matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr") {
        return RiskVerdict::low();
    }
    if acts_later(path) {
        return RiskVerdict::danger(format!("writes what acts later by itself ({})", named(path)));
    }
    if device(path) {
        return RiskVerdict::danger(format!("writes to a device ({})", named(path)));
    }
    if !is_inside_folder(path, text) {
        return RiskVerdict::elevated(format!("writes outside the folder ({})", named(path)));
    }
    RiskVerdict::elevated("writes files in the folder")
}

/// Returns whether a word names no path outside the folder.
pub(super) fn is_inside_folder(word: &str, text: &ShellText<'_>) -> bool {
    // A shell expands braces, and `.?` to `..`.
    let expands = |part: &str| part.starts_with('.') && part.contains(['*', '?', '[']);
    // `~` means the home folder at the beginning of a word or of a value, but not in `HEAD~1`.
    let home = word.starts_with('~') || word.contains("=~") || word.contains(":~");
    if home || word.contains(['$', '`', '{']) || word.split('/').any(expands) {
        return false;
    }
    // The value of `--file=path`, or of a short option without a space: `-f/path`.
    let path = match word.strip_prefix('-') {
        None => word,
        Some(option) => match (option.split_once('='), option.find('/')) {
            (Some((_, value)), _) => value,
            (None, Some(at)) => &option[at..],
            (None, None) => return true,
        },
    };
    (!path.contains('/') && path != "..") || inside(path, text.cwd, text.folder)
}

/// Returns whether `path`, relative to `cwd`, is in `folder`, by their text.
pub(super) fn inside(path: &str, cwd: &str, folder: &str) -> bool {
    if !folder.starts_with('/') {
        return false;
    }
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{cwd}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return false;
                }
            }
            part => parts.push(part),
        }
    }
    let mut expected = folder.split('/').filter(|part| !part.is_empty() && *part != ".");
    let mut parts = parts.into_iter();
    expected.all(|part| parts.next() == Some(part))
}

fn rooted(path: &str) -> String {
    let path = path.replacen('~', "/home", usize::from(path.starts_with('~')));
    let path = path.replace("$HOME", "/home").replace("${HOME}", "/home");
    format!("/{}", path.trim_start_matches("./").trim_start_matches('/'))
}

/// Returns whether a file at this path takes effect later without a request: it runs by itself, or grants access.
pub(super) fn acts_later(path: &str) -> bool {
    let path = rooted(path);
    AUTORUN_PATHS.iter().any(|part| path.contains(part)) || SYSTEM_PATHS.iter().any(|start| path.starts_with(start))
}

/// Returns whether the file at this path is secret.
pub(super) fn secret(path: &str) -> bool {
    let path = rooted(path.trim_start_matches(['@', '<']));
    // A path after an option or a field name: `-d@.env`, `file=@.env`.
    let last = path.rsplit(['=', '@']).next().map(rooted).unwrap_or_default();
    SECRET_PATHS.iter().any(|part| path.contains(part) || last.contains(part))
}

pub(super) fn device(path: &str) -> bool {
    path.starts_with("/dev/") && !matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")
}
