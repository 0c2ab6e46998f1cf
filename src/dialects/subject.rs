//! What a question is exactly about, read from a tool's input.

use serde_json::value::RawValue;

use super::Subject;
use super::jsonrpc::{Fields, object, string};

/// Members that hold a command: a line for a shell, or a program and its arguments.
const COMMANDS: [&str; 6] = ["command", "cmd", "argv", "script", "command_line", "commandLine"];
/// Members that hold the arguments of a command given beside them.
const ARGUMENTS: [&str; 2] = ["args", "arguments"];
/// Members that hold the folder.
const FOLDERS: [&str; 5] = ["cwd", "workdir", "working_directory", "workingDirectory", "directory"];
/// Members that change what a command does without standing in it: with one of them, the whole input is shown.
const HIDDEN: [&str; 5] = ["env", "environment", "stdin", "input", "shell"];

/// The command in a tool's raw input, if it says exactly one and nothing else that changes what will run. An input that
/// is ambiguous (two commands, twin members, odd types) has none: it is then shown whole.
pub(super) fn command(input: &RawValue) -> Option<Subject> {
    let fields: Fields<'_> = object(input)?;
    if fields.ambiguous() || HIDDEN.iter().any(|name| fields.get(name).is_some_and(|raw| !empty(raw))) {
        return None;
    }
    let mut commands = COMMANDS.iter().filter_map(|name| fields.get(name));
    let (first, None) = (commands.next()?, commands.next()) else { return None };
    let mut argv = strings(first).or_else(|| Some(vec![string(first)?.into_owned()]))?;
    for name in ARGUMENTS {
        if let Some(more) = fields.get(name) {
            argv.extend(strings(more)?);
        }
    }
    let mut folders = FOLDERS.iter().filter_map(|name| fields.get(name));
    let cwd = match (folders.next(), folders.next()) {
        (None, _) => None,
        (Some(raw), None) => Some(string(raw)?.into_owned()),
        (Some(_), Some(_)) => return None,
    };
    (!argv.is_empty()).then_some(Subject::Command { argv, cwd })
}

fn strings(raw: &RawValue) -> Option<Vec<String>> {
    serde_json::from_str(raw.get()).ok()
}

fn empty(raw: &RawValue) -> bool {
    matches!(raw.get(), "{}" | "[]" | "\"\"" | "false")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Option<(Vec<String>, Option<String>)> {
        match command(serde_json::from_str(json).unwrap()) {
            Some(Subject::Command { argv, cwd }) => Some((argv, cwd)),
            _ => None,
        }
    }

    #[test]
    fn a_plain_command_is_shown_as_one() {
        for (json, argv, cwd) in [
            (r#"{"command":"touch x"}"#, vec!["touch x"], None),
            (r#"{"cmd":["sh","-c","ls"],"cwd":"/w","timeout":3}"#, vec!["sh", "-c", "ls"], Some("/w")),
            (r#"{"command":"git","args":["push","-f"],"env":{}}"#, vec!["git", "push", "-f"], None),
            (r#"{"argv":["a\u202eb"]}"#, vec!["a\u{202e}b"], None),
        ] {
            assert_eq!(of(json), Some((argv.into_iter().map(Into::into).collect(), cwd.map(Into::into))), "{json}");
        }
    }

    #[test]
    fn an_input_that_says_more_than_one_command_is_shown_whole() {
        for json in [
            r#"{"command":"ls","cmd":"rm -rf /"}"#,
            r#"{"command":"ls","command":"rm -rf /"}"#,
            r#"{"command":"ls","env":{"LD_PRELOAD":"/tmp/x.so"}}"#,
            r#"{"command":"ls","args":{"0":"x"}}"#,
            r#"{"command":["ls",7]}"#,
            r#"{"command":7}"#,
            r#"{"command":[]}"#,
            r#"{"command":"ls","cwd":7}"#,
            r#"{"path":"/x"}"#,
            r#"["ls"]"#,
        ] {
            assert_eq!(of(json), None, "{json}");
        }
    }
}
