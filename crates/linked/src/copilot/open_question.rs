//! An open question of a session. Pure.

use serde_json::Value;

use super::ask::CopilotQuestion;
use plexus_dialects::AnsweredElsewhere;
use plexus_protocol::Decision;

/// An open question.
#[derive(Default)]
pub(super) struct OpenQuestion {
    /// The content; unknown where an earlier gateway asked it and it was not read again.
    pub(super) question: Option<CopilotQuestion>,
    /// Set if an event of this connection reported it.
    pub(super) live: bool,
    /// Set once people see it.
    pub(super) visible: bool,
    /// A decision that came before the content was read again.
    pub(super) decision: Option<Decision>,
    /// The answer for Copilot.
    pub(super) answer: Option<Value>,
    /// Set while the answer is on its way.
    pub(super) sent: bool,
    /// Set once it is known: true if the answer was the first.
    pub(super) first: Option<bool>,
    pub(super) end: Option<QuestionEnd>,
}

/// The end of a question, as Copilot reports it.
#[derive(Clone)]
pub(super) struct QuestionEnd {
    /// The decision, if it was of a person at the terminal.
    pub(super) by: Option<AnsweredElsewhere>,
}
