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
    /// Whether this connection's events told of it.
    pub(super) live: bool,
    /// Whether people see it.
    pub(super) shown: bool,
    /// A decision that came before the content was read again.
    pub(super) decision: Option<Decision>,
    /// The answer for Copilot.
    pub(super) answer: Option<Value>,
    /// Whether the answer is on its way.
    pub(super) sent: bool,
    /// Whether the answer was the first.
    pub(super) first: Option<bool>,
    pub(super) end: Option<QuestionEnd>,
}

/// The end of a question, as Copilot reports it.
#[derive(Clone)]
pub(super) struct QuestionEnd {
    /// Who decided it, if it was a person at the terminal.
    pub(super) by: Option<AnsweredElsewhere>,
}
