//! The risk of a request: the harm that a yes could do, with reasons. It is judged by the request's subject, not by the
//! agent's description.
//!
//! Shell lines are only parsed. A command that does more than read is elevated; one that destroys, escalates, or runs a
//! download is dangerous, wherever in the line it is. A line that cannot be parsed is dangerous. The risk limits who
//! may answer and how; it never answers.

use plexus_protocol::{RequestSubject, Risk};

use crate::classify::{DEPTH_MAX, SimpleCommand, classify};
use crate::folder::ActionFolder;
use crate::paths::{acts_later, device, inside, named};
use crate::prose;
use crate::shell::ShellText;
use crate::verdict::RiskVerdict;

/// Maximum length of a tool's argument that is checked for commands, in bytes.
const ARGUMENT_MAX: usize = 4 << 10;

/// Judges a request. `action` is the folder of its action and `folder` the session's folder; `danger`: the runtime
/// itself calls it dangerous; `deceptive`: it has deceptive characters; `cut`: it is not shown completely.
pub(super) fn judge(
    subject: &RequestSubject,
    (action, folder): (&ActionFolder, &str),
    danger: bool,
    deceptive: bool,
    cut: bool,
) -> RiskVerdict {
    let mut all = judge_subject(subject, action, folder);
    if let (RequestSubject::Command { .. }, Some(conflict)) = (subject, &action.conflict) {
        all.and(RiskVerdict::elevated(conflict.reason()));
    }
    if deceptive {
        all.and(RiskVerdict::danger("has deceptive characters"));
    }
    if danger {
        all.and(RiskVerdict::danger("the agent itself calls this dangerous"));
    }
    if cut {
        all.and(RiskVerdict::elevated("is too long to be shown completely"));
    }
    all
}

fn judge_subject(subject: &RequestSubject, action: &ActionFolder, folder: &str) -> RiskVerdict {
    match subject {
        RequestSubject::Command { argv, .. } => command(argv, &action.cwd, &action.root),
        RequestSubject::Edits(edits) => {
            let mut all = RiskVerdict::elevated("changes no file");
            for (n, (path, _, _)) in edits.iter().enumerate() {
                let one = edit(path, &action.cwd, folder);
                if n == 0 { all = one } else { all.and(one) }
            }
            all
        }
        RequestSubject::Diff { path, .. } => edit(path, &action.cwd, folder),
        RequestSubject::Fetch { url, more } => {
            let mut all = RiskVerdict::elevated(format!("fetches from the network ({})", named(url)));
            let local =
                ["file:", "data:", "javascript:"].iter().any(|scheme| url.to_ascii_lowercase().starts_with(scheme));
            if local {
                all.and(RiskVerdict::danger("reads something by an address that is no web address"));
            }
            if !more.is_empty() {
                all.and(commands_in(more));
            }
            all
        }
        RequestSubject::Tool { name, arguments } => {
            let mut all = RiskVerdict::elevated(format!("calls a tool of the agent ({})", named(name)));
            all.and(commands_in(arguments));
            all
        }
        RequestSubject::Plan(_) => RiskVerdict::elevated("lets the agent carry out its plan"),
        RequestSubject::Questions { .. } | RequestSubject::Text(_) => {
            RiskVerdict::elevated("tells the agent something")
        }
        RequestSubject::Confirm { title, message } => {
            let mut all = RiskVerdict::elevated("asks in prose, which Plexus cannot check");
            all.and(prose::mentioned(title, folder));
            all.and(prose::mentioned(message, folder));
            all
        }
        RequestSubject::Unreadable { reason, .. } => {
            RiskVerdict::danger(format!("Plexus cannot tell what this would do: {reason}"))
        }
    }
}

/// Returns the command of a question in prose, if its message or, without one, its title is a shell command.
pub fn command_of(subject: &RequestSubject) -> Option<RequestSubject> {
    let RequestSubject::Confirm { title, message } = subject else { return None };
    let text = if message.trim().is_empty() { title.trim() } else { message.trim() };
    prose::is_command(text).then(|| RequestSubject::Command { argv: vec![text.to_owned()], cwd: None })
}

fn edit(path: &str, cwd: &str, folder: &str) -> RiskVerdict {
    if acts_later(path) {
        return RiskVerdict::danger(format!("writes what acts later by itself ({})", named(path)));
    }
    if device(path) {
        return RiskVerdict::danger(format!("writes to a device ({})", named(path)));
    }
    match inside(path, cwd, folder) {
        true => RiskVerdict::elevated("changes files in the folder"),
        false => RiskVerdict::elevated(format!("changes files outside the folder ({})", named(path))),
    }
}

/// Finds dangerous commands anywhere in JSON: a tool may run the text of any member.
fn commands_in(json: &str) -> RiskVerdict {
    fn texts(value: &serde_json::Value, all: &mut RiskVerdict) {
        match value {
            serde_json::Value::String(text) if text.len() <= ARGUMENT_MAX => {
                let found = classify(&ShellText { line: text, cwd: "", folder: "" });
                let is_command = found.risk == Risk::Danger && text.split_whitespace().nth(1).is_some();
                if let (true, Some(why)) = (is_command, found.reasons.first()) {
                    all.and(RiskVerdict::danger(format!("has something that reads as a command: {why}")));
                }
            }
            serde_json::Value::Array(values) => {
                // A list may be a program with its arguments.
                let words: Option<Vec<String>> = values
                    .iter()
                    .map(|value| Some(value.as_str().filter(|word| word.len() <= ARGUMENT_MAX)?.into()))
                    .collect();
                let found = words.filter(|words| words.len() > 1).map(|words| command(&words, "", ""));
                if let Some(found) = found.filter(|found| found.risk == Risk::Danger)
                    && let Some(why) = found.reasons.first()
                {
                    all.and(RiskVerdict::danger(format!("has something that reads as a command: {why}")));
                }
                values.iter().for_each(|value| texts(value, all));
            }
            serde_json::Value::Object(fields) => fields.values().for_each(|value| texts(value, all)),
            _ => {}
        }
    }
    let mut all = RiskVerdict::low();
    if let Ok(value) = serde_json::from_str(json) {
        texts(&value, &mut all);
    }
    all
}

fn command(argv: &[String], cwd: &str, folder: &str) -> RiskVerdict {
    match argv {
        [line] => classify(&ShellText { line, cwd, folder }),
        words => {
            let text = ShellText { line: "", cwd, folder };
            let simple = SimpleCommand { words, text: &text, depth: DEPTH_MAX };
            if simple.words.is_empty() {
                RiskVerdict::danger("Plexus cannot tell what this would do: the request is empty")
            } else {
                simple.verdict()
            }
        }
    }
}
