//! Questions of Gemini CLI in its terminal, as the hook `Notification` reports them, and the marks of their dialogs on a screen. Pure.
//!
//! The dialogs are those of Gemini CLI 0.61.0. A dialog that looks different is not recognized, and so not answered by keys.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::calls::OpenCall;
use super::tools::{SHELL, TOOLS};
use crate::terminals::drafts;
use plexus_dialects::jsonrpc::{self, object};
use plexus_dialects::{AgentRequest, RequestKey, RequestSubject, subject};
use plexus_protocol::{Choice, Decision, Offer, RequestType};

/// The option that allows the call.
pub(super) const ALLOW: &str = "allow";
/// The option that denies the call.
pub(super) const DENY: &str = "deny";

/// The keys of Gemini CLI's dialogs, which choose "Allow once", and "No, suggest changes (esc)".
const ALLOW_KEYS: &str = "1";
const DENY_KEYS: &str = "\u{1b}";

/// Maximum length of a command or change that is searched on a screen, in characters; a longer one can only be answered at the terminal.
const CONTENT_MAX: usize = 8_192;
/// Maximum size of a question in a checkpoint, in bytes. A longer one can only be answered at the terminal anyway.
const STORED_MAX: usize = 32 << 10;

/// The reason why a question can only be answered in its terminal, with the alternative.
const NO_TERMINAL: &str = "It can only be answered in its terminal. A Gemini that is started by `plexus term -- gemini` can be answered here.";
const TOO_LONG: &str = "It can only be answered in its terminal: it is too long to be wholly on its screen.";
const UNKNOWN: &str = "It can only be answered in its terminal: Plexus does not know this dialog.";
const DRAWS_BOXES: &str = "It can only be answered in its terminal: it draws boxes, and could look like a dialog.";

/// A section of a screen, as the holder of a shared terminal reads it: the text between two edges of boxes, without
/// white space and box drawing. All conditions that are set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct DialogSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    is: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    begins: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<String>,
}

/// Keys, and the text that the screen has to show for them: the body of a request for a shared terminal.
#[derive(Debug, Serialize)]
pub(super) struct TerminalKeys {
    shows: Vec<DialogSection>,
    keys: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<FollowingKeys>,
    answers: bool,
}

/// Keys that are typed after others.
#[derive(Debug, Serialize)]
struct FollowingKeys {
    shows: Vec<DialogSection>,
    keys: String,
}

/// The outcome of keys.
#[derive(Debug, Deserialize)]
pub(super) struct KeysOutcome {
    /// `true` if any were typed.
    pub(super) typed: bool,
    /// The reason why the holder did not type all of them.
    pub(super) refused: Option<String>,
}

impl TerminalKeys {
    /// Returns whether the keys answer a dialog.
    pub(super) fn answers(&self) -> bool {
        self.answers
    }

    /// Makes the keys of a prompt for the empty line of an idle Gemini CLI: it is pasted, and then sent.
    ///
    /// # Errors
    /// Returns the reason why it cannot be typed.
    pub(super) fn prompt(text: &str) -> Result<Self, String> {
        if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
            return Err("a terminal accepts no prompt with control characters: remove them".into());
        }
        if text.trim_start().starts_with(['/', '!']) {
            return Err("Gemini would take a prompt that begins with / or ! as a command: put a word before it".into());
        }
        // At the end of a path Enter would choose among completions.
        let space =
            if text.rsplit(char::is_whitespace).next().is_some_and(|word| word.contains('@')) { " " } else { "" };
        let holds = |text: String| vec![DialogSection { holds: Some(text), ..DialogSection::default() }];
        // The prompt is sent once it is in the line, and only then.
        let pasted = format!("{text}{space}");
        let large = pasted.split('\n').count() > PASTED_LINES || pasted.encode_utf16().count() > PASTED_CHARS;
        let compact = squeezed(text);
        let end = compact.char_indices().rev().nth(SEEN - 1).map_or(0, |(at, _)| at);
        let visible_text = if large { squeezed(PASTED) } else { compact[end..].to_owned() };
        if visible_text.chars().any(draws_boxes) {
            return Err(
                "a prompt that draws boxes is not recognized on the screen: put it into a file and name that".into()
            );
        }
        Ok(Self {
            shows: holds(squeezed(COMPOSER)),
            keys: format!("\u{1b}[200~{pasted}\u{1b}[201~"),
            then: Some(FollowingKeys { shows: holds(visible_text), keys: "\r".into() }),
            answers: false,
        })
    }
}

/// Limits of a pasted prompt above which Gemini CLI shows only its length.
const PASTED_LINES: usize = 5;
const PASTED_CHARS: usize = 500;
const PASTED: &str = "[Pasted Text:";
/// Number of characters at the end of a prompt that are searched in the line.
const SEEN: usize = 40;

/// The text in the line of a Gemini CLI that waits for a prompt.
const COMPOSER: &str = "> Type your message or @path/to/file";
/// The text at the end of a command's dialog, and of a change's.
const COMMAND_CHOICES: &str = "● 1. Allow once 2. Allow for this session 3. No, suggest changes (esc)";
const CHANGE_CHOICES: &str =
    "● 1. Allow once 2. Allow for this session 3. Modify with external editor 4. No, suggest changes (esc)";

/// Returns whether a character is left out of the text of a screen.
fn draws_boxes(c: char) -> bool {
    ('\u{2500}'..='\u{257f}').contains(&c)
}

/// Returns the text as it is searched on a screen: without white space.
pub(super) fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The description of a dialog in the hook's input.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    #[serde(rename = "type")]
    type_name: String,
    title: String,
    command: Option<String>,
    file_name: Option<String>,
    file_path: Option<String>,
    file_diff: Option<String>,
    original_content: Option<String>,
    new_content: Option<String>,
    tool_name: Option<String>,
    prompt: Option<String>,
}

/// A question.
pub(super) struct Question {
    details: Details,
    raw: Box<RawValue>,
}

impl Question {
    /// Makes a question from the `details` of the hook.
    pub(super) fn new(raw: &RawValue) -> Option<Self> {
        Some(Self { details: object(raw)?, raw: jsonrpc::owned(raw) })
    }

    /// Returns the question as it is stored in a checkpoint; `None` if it is too long.
    pub(super) fn stored(&self) -> Option<&RawValue> {
        (self.raw.get().len() <= STORED_MAX).then_some(&*self.raw)
    }

    /// Returns whether the question is about this tool call.
    pub(super) fn is_about(&self, call: &OpenCall) -> bool {
        let Details { type_name, command, file_name, file_path, tool_name, prompt, .. } = &self.details;
        let input = call.input.as_deref().map(|input| TOOLS.input(input)).unwrap_or_default();
        match type_name.as_str() {
            "exec" => call.tool == SHELL && input.get("command") == command.as_deref(),
            "edit" => input.get("file_path").is_some_and(|path| {
                let name = path.rsplit('/').next();
                file_path.as_ref().is_some_and(|whole| whole.ends_with(path)) || name == file_name.as_deref()
            }),
            "mcp" => tool_name.as_ref().is_some_and(|name| call.tool.ends_with(name.as_str())),
            "info" => input.get("prompt").is_some() && input.get("prompt") == prompt.as_deref(),
            _ => false,
        }
    }

    /// Returns the sections that have to be on the screen for an answer by keys: the header, the command or change, the
    /// choices, and nothing more.
    ///
    /// # Errors
    /// Returns the reason why only the terminal can answer it.
    fn dialog(&self) -> Result<Vec<DialogSection>, &'static str> {
        let begins = |text: &str| DialogSection { begins: Some(text.into()), ..DialogSection::default() };
        let is = |text: String| DialogSection { is: Some(text), ..DialogSection::default() };
        let (header, content, choices) = match self.details.type_name.as_str() {
            "exec" => {
                let content = squeezed(self.details.command.as_deref().ok_or(UNKNOWN)?);
                let ends = Some(squeezed(COMMAND_CHOICES));
                (begins("?Shell"), content, DialogSection { ends, ..begins("Allowexecutionof") })
            }
            "edit" => {
                let name = squeezed(self.details.file_name.as_deref().ok_or(UNKNOWN)?);
                let content = format_change(self.details.file_diff.as_deref().ok_or(UNKNOWN)?);
                let header = DialogSection { holds: Some(name), ..begins("?") };
                (header, content, is(squeezed(&format!("Apply this change?{CHANGE_CHOICES}"))))
            }
            _ => return Err(UNKNOWN),
        };
        if content.is_empty() {
            return Err(UNKNOWN);
        }
        if content.chars().count() > CONTENT_MAX {
            return Err(TOO_LONG);
        }
        if content.chars().any(draws_boxes) {
            return Err(DRAWS_BOXES);
        }
        Ok(vec![header, is(content), choices, is(String::new())])
    }

    /// Returns whether the dialogs of both look the same.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        matches!((self.dialog(), other.dialog()), (Ok(one), Ok(another)) if one[1] == another[1])
    }

    /// Returns the keys of an answer; `None` for a decision that does not answer a dialog.
    pub(super) fn keys(&self, decision: &Decision) -> Option<TerminalKeys> {
        let keys = match decision {
            Decision::Option { id, .. } if id == ALLOW => ALLOW_KEYS,
            Decision::Option { id, .. } if id == DENY => DENY_KEYS,
            _ => return None,
        };
        Some(TerminalKeys { shows: self.dialog().ok()?, keys: keys.into(), then: None, answers: true })
    }

    /// Makes the question to the user. `shared`: whether it is asked in a shared terminal.
    pub(super) fn request(&self, key: RequestKey, call: Option<&OpenCall>, shared: bool) -> AgentRequest {
        let reason = match self.dialog() {
            _ if !shared => Some(NO_TERMINAL),
            dialog => dialog.err(),
        };
        let offer =
            |id: &str, label: &str, kind| Offer { id: id.into(), label: label.into(), kind, for_session: false };
        AgentRequest {
            message: reason.map(str::to_owned),
            subject: self.subject(call),
            options: vec![
                offer(ALLOW, "Allow once", Choice::AllowOnce),
                offer(DENY, "No: Gemini stops, and waits for a prompt", Choice::RejectOnce),
            ],
            observe_only: reason.is_some(),
            tool_call_id: call.map(|call| call.id.clone()),
            ..AgentRequest::new(
                key,
                RequestType::Permission,
                self.title(),
                self.raw.clone(),
                Bytes::copy_from_slice(self.raw.get().as_bytes()),
            )
        }
    }

    fn title(&self) -> String {
        let Details { command, file_name, title, .. } = &self.details;
        let first = command.as_deref().and_then(|command| command.lines().find(|line| !line.trim().is_empty()));
        drafts::shortened(&match (first, file_name) {
            (Some(command), _) => command.to_owned(),
            (None, Some(name)) => format!("Edit {name}"),
            (None, None) if title.is_empty() => "Gemini asks".to_owned(),
            (None, None) => title.clone(),
        })
    }

    fn subject(&self, call: Option<&OpenCall>) -> RequestSubject {
        let Details { type_name, command, file_path, original_content, new_content, tool_name, .. } = &self.details;
        let input = call.and_then(|call| call.input.as_deref().map(|input| (call.tool.as_str(), input)));
        match (type_name.as_str(), command, file_path, new_content) {
            ("exec", Some(command), ..) => {
                // The call itself also names the folder in which it runs.
                let alone = jsonrpc::to_raw(&json!({ "command": command }));
                let (tool, input) = input.unwrap_or((SHELL, &alone));
                subject::tool(tool, input)
            }
            ("edit", _, Some(path), Some(after)) => {
                let before = original_content.clone().filter(|before| !before.is_empty());
                RequestSubject::Edits(vec![(path.clone(), before, after.clone())])
            }
            _ => {
                let (tool, input) = input.unwrap_or((tool_name.as_deref().unwrap_or(type_name), &self.raw));
                RequestSubject::Tool { name: tool.to_owned(), arguments: jsonrpc::pretty(input.get()) }
            }
        }
    }
}

/// Returns a change as the dialog shows it, without white space: each line of a diff as its number, its sign and its
/// text; of a new file all lines as number and text.
fn format_change(diff: &str) -> String {
    let numbers = |header: &str| -> Option<(u64, u64)> {
        let mut fields = header.strip_prefix("@@ -")?.split_whitespace();
        let first = |word: &str| word.split(',').next().and_then(|number| number.parse().ok());
        Some((first(fields.next()?)?, first(fields.next()?.strip_prefix('+')?)?))
    };
    let lines = || diff.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let body = || lines().skip_while(|line| !line.starts_with("@@ "));
    let is_new = body().all(|line| !line.starts_with(['-', ' ']));
    let (mut old, mut new, mut change) = (0, 0, String::new());
    for line in body() {
        if let Some((before, after)) = numbers(line) {
            // Of a new file the lines are counted from 1, whatever the diff says.
            (old, new) = (before, if is_new { 1 } else { after });
            continue;
        }
        let Some((sign, text)) = line.split_at_checked(1) else { continue };
        let (number, sign) = match sign {
            "+" => (&mut new, if is_new { "" } else { "+" }),
            "-" => (&mut old, "-"),
            " " => {
                old += 1;
                (&mut new, "")
            }
            _ => continue,
        };
        change.push_str(&format!("{number}{sign}{}", squeezed(text)));
        *number += 1;
    }
    change
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn question(details: &Value) -> Question {
        Question::new(&jsonrpc::to_raw(details)).unwrap()
    }

    fn exec(command: &str) -> Question {
        question(&json!({ "type": "exec", "title": "Confirm Shell Command", "command": command, "rootCommand": "x" }))
    }

    fn keys(question: &Question, id: &str) -> Value {
        let decision = Decision::Option { id: id.into(), kind: Choice::AllowOnce, reason: None };
        serde_json::to_value(question.keys(&decision).unwrap()).unwrap()
    }

    #[test]
    fn gemini_terminal_command_is_looked_for_as_a_whole() {
        let question = exec("touch a && \\\n\ttouch b");
        let allow = keys(&question, ALLOW);
        assert_eq!((&allow["keys"], &allow["answers"]), (&json!("1"), &json!(true)));
        let choices = "●1.Allowonce2.Allowforthissession3.No,suggestchanges(esc)";
        let expected = json!([
            { "begins": "?Shell" },
            { "is": "toucha&&\\touchb" },
            { "begins": "Allowexecutionof", "ends": choices },
            { "is": "" },
        ]);
        assert_eq!(allow["shows"], expected);
        assert_eq!(keys(&question, DENY)["keys"], "\u{1b}");
        assert!(question.looks_like(&exec("touch a && \\ touch b")) && !question.looks_like(&exec("touch c")));
        assert!(question.keys(&Decision::Withdrawn).is_none());
    }

    #[test]
    fn gemini_terminal_change_is_looked_for_as_it_is_drawn() {
        let head = "Index: a\n=====\n--- a\tCurrent\n+++ a\tProposed\n";
        let cases = [
            ("@@ -0,0 +1,2 @@\n+one two\n+-- three\n", "1onetwo2--three"),
            ("@@ -1,1 +1,1 @@\n-one two\n+one TWO\n\\ No newline at end of file\n", "1-onetwo1+oneTWO"),
            ("@@ -9,3 +9,4 @@\n a\n-b\n+B\n+C\n d\n@@ -40,1 +41,1 @@\n-x\n+y\n", "9a10-b10+B11+C12d40-x41+y"),
        ];
        for (diff, text) in cases {
            assert_eq!(format_change(&format!("{head}{diff}")), text, "{diff}");
        }
    }

    #[test]
    fn gemini_terminal_question_says_who_can_answer_it() {
        let mcp = question(&json!({ "type": "mcp", "title": "Confirm", "toolName": "pay" }));
        let cases = [
            (exec("touch a"), true, None),
            (exec("touch a"), false, Some(NO_TERMINAL)),
            (exec(&"x".repeat(CONTENT_MAX + 1)), true, Some(TOO_LONG)),
            (exec("echo ╭──╮"), true, Some(DRAWS_BOXES)),
            (exec(" "), true, Some(UNKNOWN)),
            (mcp, true, Some(UNKNOWN)),
        ];
        for (question, shared, reason) in cases {
            let request = question.request(RequestKey::unique("q"), None, shared);
            assert_eq!(
                (request.message.as_deref(), request.observe_only),
                (reason, reason.is_some()),
                "{}",
                request.title
            );
        }
    }

    #[test]
    fn gemini_terminal_prompts_are_text_and_no_commands() {
        let prompt = |text: &str| TerminalKeys::prompt(text).map(|keys| keys.keys);
        assert_eq!(prompt("a\nb").unwrap(), "\u{1b}[200~a\nb\u{1b}[201~");
        assert_eq!(prompt("look at @src/a.rs").unwrap(), "\u{1b}[200~look at @src/a.rs \u{1b}[201~");
        let seen = |text: &str| TerminalKeys::prompt(text).unwrap().then.unwrap().shows[0].holds.clone().unwrap();
        assert_eq!(seen("a b\nc"), "abc");
        assert_eq!(seen(&format!("x{}", "é".repeat(40))), "é".repeat(40));
        assert_eq!(seen(&"x\n".repeat(6)), "[PastedText:");
        for bad in ["/quit", "──", " !rm", "a\u{1b}[201~\rb", "\u{7f}", "\r"] {
            assert!(prompt(bad).is_err(), "{bad:?}");
        }
    }
}
