//! An open question of a session. Pure.

use serde_json::Value;

use super::ask::CopilotQuestion;
use plexus_dialects::AnsweredElsewhere;
use plexus_protocol::Decision;

/// An open question.
#[derive(Default)]
pub(super) struct OpenQuestion {
    /// The content; `None` if an earlier gateway process asked the question and it was not read again.
    pub(super) question: Option<CopilotQuestion>,
    /// `true` if an event of this connection reported it.
    pub(super) live: bool,
    /// `true` once the question is shown.
    pub(super) visible: bool,
    /// A decision that was made before the content was read again.
    pub(super) decision: Option<Decision>,
    /// The answer for Copilot.
    pub(super) answer: Option<Value>,
    /// `true` while the answer is on its way.
    pub(super) sent: bool,
    /// `true` if the answer was the first; `None` until that is known.
    pub(super) first: Option<bool>,
    pub(super) end: Option<QuestionEnd>,
}

/// The end of a question, as Copilot reports it.
#[derive(Clone)]
pub(super) struct QuestionEnd {
    /// The decision, if the user made it at the terminal.
    pub(super) by: Option<AnsweredElsewhere>,
}
