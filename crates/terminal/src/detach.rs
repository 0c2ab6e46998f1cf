//! The keys that detach a terminal from its program, found in the typed input. Pure.
//!
//! The keys count only if they are typed: a read of a terminal has exactly one key press, and a paste comes in longer pieces.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Time that the first key waits for the second; then it is sent to the program.
pub(crate) const SECOND_KEY_WAIT: Duration = Duration::from_millis(1000);

/// Maximum number of keys of a sequence.
const KEYS_MAX: usize = 4;

/// Keys that detach: like `ctrl-\,d`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetachKeys {
    /// The forms of each key in which terminals send it.
    keys: Vec<Vec<Vec<u8>>>,
    name: String,
}

/// Text that names no keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not the keys to detach: use one to {} keys with commas between, the first with ctrl-, like ctrl-\\,d; or none",
    KEYS_MAX
)]
pub struct BadKeys;

impl Default for DetachKeys {
    fn default() -> Self {
        Self { keys: vec![control(b'\\'), plain(b'd')], name: r"ctrl-\,d".into() }
    }
}

impl fmt::Display for DetachKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl FromStr for DetachKeys {
    type Err = BadKeys;

    fn from_str(text: &str) -> Result<Self, BadKeys> {
        let text = text.trim().to_ascii_lowercase();
        if text == "none" {
            return Ok(Self { keys: Vec::new(), name: text });
        }
        let keys: Vec<_> = text.split(',').map(key).collect::<Option<_>>().ok_or(BadKeys)?;
        // The first key must not be one that the program needs: it could not be typed any more.
        let is_control = text.starts_with("ctrl-");
        if keys.len() > KEYS_MAX || !is_control {
            return Err(BadKeys);
        }
        Ok(Self { keys, name: text })
    }
}

fn key(name: &str) -> Option<Vec<Vec<u8>>> {
    match (name.strip_prefix("ctrl-").map(str::as_bytes), name.as_bytes()) {
        (Some([key @ (b'a'..=b'z' | b'@' | b'\\' | b']' | b'^' | b'_')]), _) => Some(control(*key)),
        (None, [key @ (b'a'..=b'z' | b'0'..=b'9')]) => Some(plain(*key)),
        _ => None,
    }
}

/// Returns the forms of a key, including those for programs that requested the longer forms.
fn plain(key: u8) -> Vec<Vec<u8>> {
    vec![vec![key], format!("\x1b[{key}u").into_bytes(), format!("\x1b[{key};1u").into_bytes()]
}

/// Returns the forms of a key with Control.
fn control(key: u8) -> Vec<Vec<u8>> {
    vec![
        vec![key.to_ascii_uppercase() & 0x1f],
        format!("\x1b[{key};5u").into_bytes(),
        format!("\x1b[27;5;{key}~").into_bytes(),
    ]
}

/// The handling of typed input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// The input is for the program.
    Pass(Vec<u8>),
    /// The input may be the beginning of the keys: it waits up to [`SECOND_KEY_WAIT`].
    Wait,
    /// The keys are complete.
    Detach,
}

/// Searches typed input for the keys.
#[derive(Debug)]
pub(crate) struct DetachFinder {
    keys: DetachKeys,
    /// The number of keys that were found.
    found: usize,
    /// The input that was typed for the found keys.
    held: Vec<u8>,
}

impl DetachFinder {
    pub(crate) fn new(keys: DetachKeys) -> Self {
        Self { keys, found: 0, held: Vec::new() }
    }

    /// Returns whether a key waits for the next one.
    pub(crate) fn waits(&self) -> bool {
        self.found > 0
    }

    /// Handles the input of one read.
    pub(crate) fn push(&mut self, typed: &[u8]) -> Typed {
        let before = self.found;
        let mut rest = typed;
        while let Some(forms) = self.keys.keys.get(self.found)
            && !rest.is_empty()
        {
            // The longest form is tried first, since the shortest may be the beginning of another one.
            let Some(form) = forms.iter().rev().find(|form| rest.starts_with(form)) else { break };
            rest = &rest[form.len()..];
            self.found += 1;
        }
        if rest.is_empty() && self.found > before {
            if self.found == self.keys.keys.len() {
                self.give_up();
                return Typed::Detach;
            }
            self.held.extend_from_slice(typed);
            return Typed::Wait;
        }
        let mut pass = self.give_up();
        // The input that was typed instead may be the beginning of the keys.
        if before > 0 && pass.len() + typed.len() > 0 {
            match self.push(typed) {
                Typed::Pass(typed) => pass.extend(typed),
                Typed::Wait => {}
                Typed::Detach => return Typed::Detach,
            }
            return Typed::Pass(pass);
        }
        pass.extend_from_slice(typed);
        Typed::Pass(pass)
    }

    /// Returns the waiting input for the program, because no further key came.
    pub(crate) fn give_up(&mut self) -> Vec<u8> {
        self.found = 0;
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &str, reads: &[&str]) -> (String, bool) {
        let mut finder = DetachFinder::new(keys.parse().unwrap());
        let mut passed = Vec::new();
        for read in reads {
            match finder.push(read.as_bytes()) {
                Typed::Pass(bytes) => passed.extend(bytes),
                Typed::Wait => assert!(finder.waits()),
                Typed::Detach => return (String::from_utf8(passed).unwrap(), true),
            }
        }
        passed.extend(finder.give_up());
        (String::from_utf8(passed).unwrap(), false)
    }

    #[test]
    fn keys_detach_only_where_they_are_typed() {
        #[rustfmt::skip] // a case a line
        let cases: &[(&str, &[&str], &str, bool)] = &[
            (r"ctrl-\,d", &["a", "\x1c", "d"], "a", true),
            (r"ctrl-\,d", &["\x1cd"], "", true),
            (r"ctrl-\,d", &["\x1c"], "\x1c", false),
            (r"ctrl-\,d", &["\x1c", "\x0e"], "\x1c\x0e", false),
            (r"ctrl-\,d", &["\x1c", "\x1c", "d"], "\x1c", true),
            (r"ctrl-\,d", &["\x1c", "x", "d"], "\x1cxd", false),
            (r"ctrl-\,d", &["pasted \x1cd text"], "pasted \x1cd text", false),
            (r"ctrl-\,d", &["\x1cd and more"], "\x1cd and more", false),
            (r"ctrl-\,d", &["pasted \x1c", "d"], "pasted \x1cd", false),
            (r"ctrl-\,d", &["\x1b[92;5u", "d"], "", true),
            (r"ctrl-\,d", &["\x1b[92;5u", "\x1b[100u"], "", true),
            (r"ctrl-\,d", &["\x1b[27;5;92~", "d"], "", true),
            (r"ctrl-\,d", &["\x1b[92;6u"], "\x1b[92;6u", false),
            ("ctrl-p,ctrl-q", &["\x10", "\x11"], "", true),
            ("ctrl-]", &["\x1d"], "", true),
            ("none", &["\x1c", "d"], "\x1cd", false),
        ];
        for (keys, reads, passed, detached) in cases {
            assert_eq!(typed(keys, reads), ((*passed).to_owned(), *detached), "{keys}: {reads:?}");
        }
    }

    #[test]
    fn names_of_keys_are_read_or_refused() {
        assert_eq!(r"Ctrl-\,D".parse(), Ok(DetachKeys::default()));
        for good in ["ctrl-a", "ctrl-p,ctrl-q", "ctrl-b,d", "none"] {
            assert_eq!(good.parse::<DetachKeys>().unwrap().to_string(), good);
        }
        for bad in ["", "d", "ctrl-", "ctrl-ab", "ctrl-a,", "alt-x", "ctrl-1", "ctrl-a,b,c,d,e", "ctrl-é"] {
            assert_eq!(bad.parse::<DetachKeys>(), Err(BadKeys), "{bad}");
        }
    }
}
