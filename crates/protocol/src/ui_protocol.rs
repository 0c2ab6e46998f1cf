//! The messages of the UI protocol, version 0, that both the gateway and its bridge write. Pure.
//!
//! Between two sides of this protocol a message retains the members that this version does not know.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::answers::{self, AnswerRole, Answerer};
use super::known_items::KnownItems;
use super::{Request, RunId, SessionId};

/// The members of an object, as sent.
pub type Members = BTreeMap<String, Box<RawValue>>;

/// The members of `run.start` that the gateway reads or does not pass on: it offers no tools of clients to runtimes.
pub const START_MEMBERS: [&str; 10] = [
    "input",
    "session_id",
    "ui_context",
    "meta",
    "text",
    "content",
    "idempotency_key",
    "extra_members",
    "tools",
    "tool_choice",
];

/// Returns the members of a client's `run.start`, the object `params`, that the gateway does not know; `None` if there are none.
pub fn unknown_start_members(params: &str) -> Option<Box<RawValue>> {
    let mut members: Members = serde_json::from_str(params).ok()?;
    members.retain(|name, _| !START_MEMBERS.contains(&name.as_str()));
    if members.is_empty() { None } else { to_raw_value(&members).ok() }
}

/// The parameters of a client's `session.history`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SessionHistory {
    /// The session.
    pub session_id: SessionId,
    /// Maximum number of runs to send, the latest ones.
    pub max_runs: Option<usize>,
    /// Maximum number of events to send, the latest ones.
    pub max_events: Option<usize>,
}

/// The parameters of a client's `run.cancel`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RunCancel {
    /// The run.
    pub run_id: RunId,
    /// The reason.
    pub reason: Option<String>,
}

/// The model in a client's `model.set`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ModelChoice {
    /// The provider, as the client divides the name.
    pub provider: Option<String>,
    /// The name; absent to reset the model.
    pub name: Option<String>,
}

/// The result of `model.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelList {
    /// The provider of the models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The models by name.
    pub models: KnownItems<String>,
}

/// Maximum number of runs that are numbered at a time; an older one would begin at 0 again.
const RUNS_MAX: usize = 64;

/// A notification of a runtime of this protocol.
#[derive(Debug, Deserialize)]
pub struct RuntimeNotification {
    /// The method.
    pub method: String,
    /// The parameters.
    pub params: Members,
}

impl RuntimeNotification {
    /// Reads a runtime's own message; `None` if it is not a notification with an object as `params`.
    pub fn read(native: &[u8]) -> Option<Self> {
        serde_json::from_slice(native).ok()
    }

    /// Returns the text of a parameter.
    pub fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.params.get(name)?.get()).ok()
    }

    /// Returns whether the notification has more than the status of a run.
    pub fn is_status_with_more(&self) -> bool {
        self.method == "run.status" && self.params.keys().any(|name| name != "run_id" && name != "status")
    }
}

/// Sets a member; the serialization of the value must not fail.
pub fn set(members: &mut Members, name: &str, value: &impl serde::Serialize) {
    if let Ok(value) = to_raw_value(value) {
        members.insert(name.to_owned(), value);
    }
}

/// Returns the name of a request in a protocol without digests: its id, and the revision if the request has changed.
pub fn request_name(request: &str, revision: u64) -> String {
    if revision == 0 { request.to_owned() } else { format!("{request}#{revision}") }
}

/// Parses a name of [`request_name`] into the request and the revision.
pub fn parse_request_name(name: &str) -> (&str, u64) {
    match name.split_once('#') {
        // An invalid revision matches no request.
        Some((request, revision)) => (request, revision.parse().unwrap_or(u64::MAX)),
        None => (name, 0),
    }
}

/// The numbers of the agent events of each run: the index of an event among those of its run, the same for every reader and at any time.
/// The prompt is not echoed to the client that sent it, so that messages of users precede the others: -1, -2 ..
#[derive(Clone, Debug, Default)]
pub struct EventNumbers {
    runs: VecDeque<(String, i64, i64)>,
}

impl EventNumbers {
    /// Returns the number of a run's next event.
    pub fn next(&mut self, run: &str, is_user: bool) -> i64 {
        let at = self.runs.iter().position(|(known, ..)| known == run).unwrap_or_else(|| {
            if self.runs.len() >= RUNS_MAX {
                self.runs.pop_front();
            }
            self.runs.push_back((run.to_owned(), 0, 0));
            self.runs.len() - 1
        });
        let (_, next, users) = &mut self.runs[at];
        if is_user {
            *users -= 1;
            return *users;
        }
        *next += 1;
        *next - 1
    }
}

/// Returns the parameters of a question of a runtime of this protocol, for a client of this protocol: unchanged, with the gateway's run.
/// If the gateway's display differs from the runtime's text, it precedes that text, because a client may display only the beginning; a
/// label follows the verb of its answer. `None` if the parameters were too long to be stored.
pub fn question(request: &Request) -> Option<Members> {
    let mut params: Members = serde_json::from_str(request.native.as_ref()?.get()).ok()?;
    set(&mut params, "run_id", &request.run_id);
    if has_control_characters(&text_member(&params, "title")) {
        set(&mut params, "title", &request.title);
    }
    // A runtime's label is written beside the gateway's verb, so that it cannot present one answer as the other.
    let actions = answers::actions(request, Answerer::UNLIMITED);
    for (name, role) in [("confirm_label", AnswerRole::AllowOnce), ("cancel_label", AnswerRole::Deny)] {
        if let Some(action) = actions.iter().find(|action| action.role == role && params.contains_key(name)) {
            set(&mut params, name, &action.text());
        }
    }
    if params.contains_key("message") || !request.options.is_empty() {
        let message = message(request, &text_member(&params, "title"));
        set(&mut params, "message", &message);
    }
    Some(params)
}

fn text_member(members: &Members, name: &str) -> String {
    members.get(name).and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
}

fn message(request: &Request, title: &str) -> String {
    let (sent, display) = (request.message.as_deref().unwrap_or_default(), request.display.as_str());
    let only_folder = |rest: &str| rest.strip_prefix("\nin ").is_some_and(|folder| !folder.contains('\n'));
    let includes_message = display.strip_prefix(sent.trim()).is_some_and(|rest| rest.is_empty() || only_folder(rest));
    let whole = display == title || display.strip_prefix(title).and_then(|rest| rest.strip_prefix('\n')) == Some(sent);
    if display.trim().is_empty() || whole || includes_message && !sent.trim().is_empty() {
        return sent.to_owned();
    }
    if sent.trim().is_empty() || has_control_characters(sent) {
        return display.to_owned();
    }
    format!("{display}\n\n{sent}")
}

/// Returns whether a text has control characters that a terminal may obey.
fn has_control_characters(text: &str) -> bool {
    text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ui_numbers_count_the_events_of_each_run() {
        let mut numbers = EventNumbers::default();
        let told: Vec<i64> = [("a", false), ("a", true), ("b", false), ("a", false), ("a", true), ("b", false)]
            .into_iter()
            .map(|(run, is_user)| numbers.next(run, is_user))
            .collect();
        assert_eq!(told, [0, -1, 0, 1, -2, 1]);
    }

    #[test]
    fn ui_question_is_as_sent_unless_it_hides_what_would_happen() {
        let ask = |message: &str, display: &str| {
            let native = json!({
                "run_id": "7", "title": "Run command?", "message": message, "danger_level": "normal", "x": [1.5],
            });
            let request: Request = serde_json::from_value(json!({
                "request_id": "q_1", "session_id": "s_1", "run_id": "r_1", "runtime_id": "a", "generation": 1,
                "type": "confirm", "state": "open", "title": "Run command?", "message": message, "display": display,
                "warnings": [], "options": [{ "id": "allow", "label": "OK", "kind": "allow_once" }], "native": native,
                "allow_reason": false, "allow_remember": false, "opened_at": "2026-01-01T00:00:00Z",
            }))
            .unwrap();
            serde_json::to_value(question(&request).unwrap()).unwrap()
        };
        for (message, display, wanted) in [
            ("Really?", "Run command?\nReally?", "Really?"),
            ("ls -l", "ls -l", "ls -l"),
            ("ls -l", "ls -l\nin /w", "ls -l"),
            ("", "Run command?", ""),
            ("harmless", "rm x", "rm x\n\nharmless"),
            ("make", "make && rm -rf /", "make && rm -rf /\n\nmake"),
            ("ls\u{1b}[2K", "ls\\u{1b}[2K", "ls\\u{1b}[2K"),
        ] {
            let params = ask(message, display);
            assert_eq!(params["message"], wanted, "{message}");
            assert_eq!(
                (&params["run_id"], &params["title"], &params["danger_level"], &params["x"]),
                (&json!("r_1"), &json!("Run command?"), &json!("normal"), &json!([1.5]))
            );
        }
    }
}
