//! Reads the exact subject of a question from a tool's input, by the same rules for every runtime.

use serde_json::value::RawValue;

use super::jsonrpc::{Fields, object, pretty, string};
use super::{FolderClaim, RequestSubject};
use plexus_protocol::{Question, QuestionOption};

/// Members that hold a command: a shell line, or a program and its arguments. All names here are in the form of [`plain`].
const COMMANDS: [&str; 14] = [
    "command",
    "cmd",
    "argv",
    "script",
    "commandline",
    "shellcommand",
    "bashcommand",
    "shellscript",
    "bash",
    "shell",
    "commandtoexecute",
    "terminalcommand",
    "program",
    "executable",
];
/// Members that hold several commands: a list of shell lines.
const LISTS: [&str; 3] = ["commands", "cmds", "commandlines"];
/// Members that hold the arguments of a command beside them.
const ARGUMENTS: [&str; 2] = ["args", "arguments"];
/// Members that hold the folder.
const FOLDERS: [&str; 5] = ["cwd", "workdir", "workingdirectory", "directory", "workingdir"];
/// Members that change the effect of a command without being part of it: then the command alone does not show the whole effect.
const HIDDEN: [&str; 4] = ["env", "environment", "stdin", "input"];
/// Members that may hold the whole input.
const WRAPPERS: [&str; 8] =
    ["input", "arguments", "args", "params", "parameters", "toolinput", "rawinput", "toolarguments"];
/// Members that name a file.
const PATHS: [&str; 9] =
    ["path", "filepath", "file", "filename", "targetfile", "abspath", "absolutepath", "relativepath", "notebookpath"];
/// Members that hold the text before a change, and the one after it.
const BEFORE: [&str; 6] = ["oldstring", "oldtext", "oldstr", "old", "search", "oldcontent"];
const AFTER: [&str; 7] = ["newstring", "newtext", "newstr", "new", "replace", "newcontent", "newsource"];
/// Members that hold the whole text of a file.
const WHOLE: [&str; 5] = ["content", "contents", "text", "filetext", "body"];
/// Members that hold an address.
const ADDRESSES: [&str; 4] = ["url", "uri", "address", "href"];
/// Maximum number of levels that an input may be wrapped.
const NESTING_MAX: usize = 3;
/// Maximum depth of an input that is searched for a command; anything deeper could be one.
const SEARCH_DEPTH: usize = 16;

/// Returns a member's name without case and separators: `commandLine`, `command_line`, `Command-Line`.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The members of an input under their plain names.
struct Input<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Input<'a> {
    /// Reads the members; `None` if the value is not an object, or has duplicate members.
    fn read(raw: &'a RawValue) -> Option<Self> {
        let fields: Fields<'a> = object(raw)?;
        if fields.ambiguous() {
            return None;
        }
        let given = fields.0.into_iter().filter(|(_, value)| !matches!(value.get(), "null"));
        Some(Self(given.map(|(name, value)| (plain(&name), value)).collect()))
    }

    fn all(&self, names: &[&str]) -> Vec<&'a RawValue> {
        self.0.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| *value).collect()
    }

    /// Returns the only member with one of these names; an error if there are several.
    fn one(&self, names: &[&str]) -> Result<Option<&'a RawValue>, ()> {
        match self.all(names).as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            _ => Err(()),
        }
    }

    fn text(&self, names: &[&str]) -> Option<String> {
        Some(string(self.one(names).ok()??)?.into_owned())
    }
}

/// Returns the action that a tool's input describes; `None` if it cannot be read for certain. An ambiguous input (two
/// commands, duplicate members, odd types) describes nothing.
pub(super) fn input(raw: &RawValue) -> Option<RequestSubject> {
    read(raw, NESTING_MAX)
}

fn read(raw: &RawValue, deep: usize) -> Option<RequestSubject> {
    if let Some(found) = command(raw).or_else(|| edits(raw)).or_else(|| question(raw)) {
        return Some(found);
    }
    let fields = Input::read(raw)?;
    if has_command(&fields) {
        return None;
    }
    if let Some(plan) = fields.text(&["plan"]) {
        let more = if fields.0.len() > 1 { format!("{}\n", pretty(raw.get())) } else { String::new() };
        return Some(RequestSubject::Plan(format!("{more}{plan}")));
    }
    if let Some(url) = fields.text(&ADDRESSES) {
        let more = if fields.0.len() > 1 { pretty(raw.get()) } else { String::new() };
        return Some(RequestSubject::Fetch { url, more });
    }
    let wrapped = fields.one(&WRAPPERS).ok()??;
    if deep == 0 {
        return None;
    }
    match string(wrapped) {
        Some(text) => read(&RawValue::from_string(text.trim().to_owned()).ok()?, deep - 1),
        None => read(wrapped, deep - 1),
    }
}

/// Returns whether a member has the name of a command.
fn has_command(fields: &Input<'_>) -> bool {
    !fields.all(&COMMANDS).is_empty() || !fields.all(&LISTS).is_empty()
}

/// Returns whether a tool's input has a command, or could have one, readable or not.
pub(super) fn may_run(raw: &RawValue) -> bool {
    Input::read(raw).is_none_or(|fields| {
        has_command(&fields) || fields.0.iter().any(|(_, value)| may_hold_command(value, SEARCH_DEPTH))
    })
}

/// Returns whether text somewhere in a value has the name of a command.
fn may_hold_command(raw: &RawValue, deep: usize) -> bool {
    let nested = raw.get().starts_with(['{', '[']);
    if deep == 0 || !nested {
        return nested;
    }
    if let Ok(values) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        return values.iter().any(|value| may_hold_command(value, deep - 1));
    }
    Input::read(raw).is_none_or(|fields| {
        let named = fields.all(&COMMANDS).into_iter().chain(fields.all(&LISTS));
        let names_command = named.into_iter().any(|value| value.get().starts_with(['"', '[', '{']));
        names_command || fields.0.iter().any(|(_, value)| may_hold_command(value, deep - 1))
    })
}

/// Returns the subject of a tool call whose input is only its arguments.
pub fn tool(name: &str, raw: &RawValue) -> RequestSubject {
    let arguments = pretty(raw.get());
    match input(raw) {
        Some(subject) => subject,
        None if may_run(raw) => {
            let reason = "its input has a command that cannot be read for certain";
            RequestSubject::Unreadable { reason, raw: format!("{name} {arguments}") }
        }
        None => RequestSubject::Tool { name: name.to_owned(), arguments },
    }
}

/// Returns the command in a tool's input, if it has exactly one and nothing else that changes its effect.
pub(super) fn command(raw: &RawValue) -> Option<RequestSubject> {
    let fields = Input::read(raw)?;
    if HIDDEN.iter().any(|name| fields.all(&[name]).iter().any(|raw| !empty(raw))) {
        return None;
    }
    // A known shell that runs the command is not a second command.
    let shells =
        |raw: &RawValue| matches!(string(raw).as_deref(), Some("bash" | "sh" | "zsh" | "/bin/bash" | "/bin/sh"));
    let mut commands: Vec<&RawValue> = fields.all(&COMMANDS);
    if commands.len() > 1
        && let [shell] = fields.all(&["shell"]).as_slice()
        && (shells(shell) || matches!(shell.get(), "true" | "false"))
    {
        commands.retain(|raw| !std::ptr::eq(*raw, *shell));
    }
    let cwd = match fields.one(&FOLDERS).ok()? {
        Some(raw) => Some(FolderClaim::Field(string(raw)?.into_owned())),
        None => None,
    };
    if let ([], [lines]) = (commands.as_slice(), fields.all(&LISTS).as_slice()) {
        let lines = strings(lines).filter(|lines| !lines.iter().any(|line| line.trim().is_empty()))?;
        let alone = fields.all(&PATHS).is_empty() && fields.all(&ARGUMENTS).is_empty();
        let first_command = alone && !lines.is_empty();
        return first_command.then_some(RequestSubject::Command { argv: vec![lines.join("\n")], cwd });
    }
    // A list beside the command may only repeat it, as Copilot's does.
    let again = |list: &RawValue| {
        let first_command = commands.first().and_then(|first| string(first));
        matches!((strings(list).as_deref(), first_command), (Some([one]), Some(first_command)) if *one == first_command)
    };
    if !fields.all(&LISTS).into_iter().all(again) {
        return None;
    }
    let [first] = commands.as_slice() else { return None };
    let mut argv = strings(first).or_else(|| Some(vec![string(first)?.into_owned()]))?;
    for more in fields.all(&ARGUMENTS) {
        argv.extend(strings(more)?);
    }
    // A tool of an editor has a file beside its command.
    if !fields.all(&PATHS).is_empty() {
        return None;
    }
    argv.first().is_some_and(|first| !first.trim().is_empty()).then_some(RequestSubject::Command { argv, cwd })
}

/// Returns the folder that an input without a command names.
pub(super) fn folder(raw: &RawValue) -> Option<String> {
    let fields = Input::read(raw).filter(|fields| !has_command(fields))?;
    fields.text(&FOLDERS)
}

/// Returns the changes to one file that an input describes.
fn edits(raw: &RawValue) -> Option<RequestSubject> {
    let fields = Input::read(raw)?;
    // A tool of an editor has commands of its own.
    if has_command(&fields) && !matches!(fields.text(&COMMANDS).as_deref(), Some("create" | "str_replace" | "write")) {
        return None;
    }
    let path = fields.text(&PATHS)?;
    if let Some(many) = fields.one(&["edits", "changes", "replacements"]).ok()? {
        let many: Vec<&RawValue> = serde_json::from_str(many.get()).ok()?;
        let change = |raw: &&RawValue| {
            let fields = Input::read(raw)?;
            Some((path.clone(), Some(fields.text(&BEFORE)?), fields.text(&AFTER)?))
        };
        let changes: Option<Vec<_>> = many.iter().map(change).collect();
        return Some(RequestSubject::Edits(changes.filter(|changes| !changes.is_empty())?));
    }
    match (fields.text(&BEFORE), fields.text(&AFTER), fields.text(&WHOLE)) {
        (Some(old), Some(new), None) => Some(RequestSubject::Edits(vec![(path, Some(old), new)])),
        (None, None, Some(whole)) => Some(RequestSubject::Edits(vec![(path, None, whole)])),
        (None, None, None) => {
            let diff = fields.text(&["diff", "patch", "unifieddiff"])?;
            Some(RequestSubject::Diff { path, diff })
        }
        _ => None,
    }
}

/// Reads questions in the form of tools: `{"questions": [{"question", "options": [{"label", "description"}]}]}`.
fn question(raw: &RawValue) -> Option<RequestSubject> {
    let fields = Input::read(raw)?;
    let all: Vec<&RawValue> = serde_json::from_str(fields.one(&["questions"]).ok()??.get()).ok()?;
    let option = |raw: &&RawValue| match string(raw) {
        Some(label) => Some(QuestionOption { id: label.clone().into(), label: label.into(), description: None }),
        None => {
            let fields = Input::read(raw)?;
            let label = fields.text(&["label", "title", "name", "value"])?;
            let id = fields.text(&["id", "value"]).unwrap_or_else(|| label.clone());
            Some(QuestionOption { id, label, description: fields.text(&["description", "detail"]) })
        }
    };
    let one = |(n, raw): (usize, &&RawValue)| {
        let fields = Input::read(raw)?;
        let options: Vec<&RawValue> = match fields.one(&["options", "choices"]).ok()? {
            Some(options) => serde_json::from_str(options.get()).ok()?,
            None => Vec::new(),
        };
        let options: Vec<QuestionOption> = options.iter().map(option).collect::<Option<_>>()?;
        let is_true = |names: &[&str]| fields.all(names).iter().any(|raw| raw.get() == "true");
        Some(Question {
            id: fields.text(&["id"]).unwrap_or_else(|| format!("question_{n}")),
            header: fields.text(&["header"]),
            text: fields.text(&["question", "text", "prompt"])?,
            multiple: is_true(&["multiselect", "multiple", "multi"]),
            free_text: options.is_empty(),
            options,
            ..Question::default()
        })
    };
    let questions: Vec<Question> = all.iter().enumerate().map(one).collect::<Option<_>>()?;
    (!questions.is_empty()).then(|| RequestSubject::Questions { text: questions_text(&questions), questions })
}

/// Returns questions as text.
fn questions_text(questions: &[Question]) -> String {
    let mut out = Vec::new();
    for question in questions {
        out.push(match &question.header {
            Some(header) => format!("{header}: {}", question.text),
            None => question.text.clone(),
        });
        out.extend(question.options.iter().map(|option| match &option.description {
            Some(description) => format!("  - {}: {description}", option.label),
            None => format!("  - {}", option.label),
        }));
    }
    out.join("\n")
}

/// Returns the command in a text whose form separates it from prose: a JSON object, one fenced block of shell, a line
/// that begins with `$`, or, after an announcement, a final part in backquotes.
pub(super) fn in_text(text: &str, executes: bool) -> Option<RequestSubject> {
    let text = text.trim();
    if text.starts_with('{') {
        return input(&RawValue::from_string(text.to_owned()).ok()?);
    }
    let line = |line: &str| {
        Some(RequestSubject::Command { argv: vec![line.to_owned()], cwd: None }).filter(|_| !line.trim().is_empty())
    };
    if text.contains("```") {
        let parts: Vec<&str> = text.split("```").collect();
        let [_, block, _] = parts.as_slice() else { return None };
        let (language, code) = block.split_once('\n').unwrap_or(("", block));
        let shell = ["bash", "sh", "shell", "zsh", "console", "shellscript"].contains(&language.trim());
        return if shell || (language.trim().is_empty() && executes) { line(unprompted(code.trim())?) } else { None };
    }
    if let Some(code) = text.strip_prefix("$ ") {
        return if code.contains('\n') { None } else { line(code) };
    }
    let (before, rest) = text.split_once('`')?;
    let code = rest.strip_suffix('`').or_else(|| rest.strip_suffix("`?")).or_else(|| rest.strip_suffix("`."))?;
    let verbs = ["run", "execute", "command", "shell", "exec", "running", "executing", "terminal"];
    let names_command =
        before.split(|c: char| !c.is_alphanumeric()).any(|word| verbs.contains(&word.to_ascii_lowercase().as_str()));
    if names_command || (executes && before.trim().is_empty()) { line(code) } else { None }
}

/// Returns a console's text without its prompts; `None` if some lines have a prompt and others may be output.
fn unprompted(code: &str) -> Option<&str> {
    match code.strip_prefix("$ ") {
        Some(code) if !code.contains('\n') => Some(code),
        Some(_) => None,
        None => Some(code),
    }
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

    fn of(json: &str) -> Option<(Vec<String>, Option<FolderClaim>)> {
        match input(serde_json::from_str(json).unwrap()) {
            Some(RequestSubject::Command { argv, cwd }) => Some((argv, cwd)),
            _ => None,
        }
    }

    #[test]
    fn subject_is_a_plain_command() {
        for (json, argv, cwd) in [
            (r#"{"command":"touch x"}"#, vec!["touch x"], None),
            (r#"{"cmd":["sh","-c","ls"],"cwd":"/w","timeout":3}"#, vec!["sh", "-c", "ls"], Some("/w")),
            (r#"{"command":"git","args":["push","-f"],"env":{}}"#, vec!["git", "push", "-f"], None),
            (r#"{"argv":["a\u202eb"]}"#, vec!["a\u{202e}b"], None),
        ] {
            assert_eq!(
                of(json),
                Some((argv.into_iter().map(Into::into).collect(), cwd.map(|cwd: &str| FolderClaim::Field(cwd.into())))),
                "{json}"
            );
        }
    }

    #[test]
    fn subject_of_several_commands_shows_the_whole_input() {
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
