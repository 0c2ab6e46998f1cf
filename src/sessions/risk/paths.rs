//! What a path means by its words alone. Pure: nothing is looked up, and links are not followed.

use super::shell::{RiskVerdict, ShellText};
use super::tables::{PLACES, SECRETS, SYSTEM};
use plexus_protocol::text::line;

/// Longest path or program that a reason names, in bytes.
const NAMED: usize = 60;

/// A word of the line for a reason: short, and harmless to show.
pub(super) fn named(word: &str) -> String {
    line(word, NAMED)
}

/// What it means to write to a path.
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
    if !stays(path, text) {
        return RiskVerdict::elevated(format!("writes outside the folder ({})", named(path)));
    }
    RiskVerdict::elevated("writes files in the folder")
}

/// Whether a word names nothing outside the folder.
pub(super) fn stays(word: &str, text: &ShellText<'_>) -> bool {
    // A shell makes other words of these: those of braces, and `..` of `.?`.
    let expands = |part: &str| part.starts_with('.') && part.contains(['*', '?', '[']);
    // A home stands at the beginning of a word or of a value; elsewhere `~` is itself: `HEAD~1`.
    let home = word.starts_with('~') || word.contains("=~") || word.contains(":~");
    if home || word.contains(['$', '`', '{']) || word.split('/').any(expands) {
        return false;
    }
    // The value of `--file=path`, and what may stick to a short option: `-f/path`.
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

/// Whether `path`, seen from `cwd`, lies in `folder`; by their words alone.
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
    let mut wanted = folder.split('/').filter(|part| !part.is_empty() && *part != ".");
    let mut parts = parts.into_iter();
    wanted.all(|part| parts.next() == Some(part))
}

fn rooted(path: &str) -> String {
    let path = path.replacen('~', "/home", usize::from(path.starts_with('~')));
    let path = path.replace("$HOME", "/home").replace("${HOME}", "/home");
    format!("/{}", path.trim_start_matches("./").trim_start_matches('/'))
}

/// Whether what is written there acts later, without a question.
pub(super) fn acts_later(path: &str) -> bool {
    let path = rooted(path);
    PLACES.iter().any(|place| path.contains(place)) || SYSTEM.iter().any(|place| path.starts_with(place))
}

/// Whether what stands there is not for others.
pub(super) fn secret(path: &str) -> bool {
    let path = rooted(path.trim_start_matches(['@', '<']));
    // What sticks to an option or a member: `-d@.env`, `file=@.env`.
    let last = path.rsplit(['=', '@']).next().map(rooted).unwrap_or_default();
    SECRETS.iter().any(|place| path.contains(place) || last.contains(place))
}

pub(super) fn device(path: &str) -> bool {
    path.starts_with("/dev/") && !matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")
}
