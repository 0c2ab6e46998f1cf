//! The questions of a session that are open. Pure.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::AnsweredElsewhere;
use super::env::at_terminal;
use super::question::{ALLOW, DENY, Question};

/// A question.
#[derive(Default)]
pub(super) struct Asked {
    /// What it asks; unknown where an earlier gateway asked it and it was too long to be kept.
    pub(super) question: Option<Question>,
    /// The tool call that it is about.
    pub(super) call: Option<String>,
    /// The option that was chosen here, while its keys are typed or once they were.
    pub(super) answer: Option<String>,
    /// Whether they were typed.
    pub(super) given: bool,
    /// Who decided it while they were being typed.
    pub(super) decided: Option<AnsweredElsewhere>,
    /// How often an answer was not taken.
    pub(super) tries: u32,
}

/// What is kept of a question for the next gateway.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptAsk {
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    /// The option whose keys were typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    given: Option<String>,
    #[serde(default)]
    tries: u32,
}

impl Asked {
    pub(super) fn kept(&self) -> KeptAsk {
        KeptAsk {
            details: self.question.as_ref().and_then(Question::kept).map(ToOwned::to_owned),
            call: self.call.clone(),
            given: self.answer.clone().filter(|_| self.given),
            tries: self.tries,
        }
    }

    /// The same question, asked once more.
    pub(super) fn again(self) -> Self {
        Self { answer: None, given: false, decided: None, tries: self.tries + 1, ..self }
    }

    /// Who decided it, where it was not decided here.
    pub(super) fn elsewhere(&self, allowed: Option<bool>) -> AnsweredElsewhere {
        at_terminal(allowed.map(|allowed| if allowed { ALLOW } else { DENY }))
    }
}

impl From<KeptAsk> for Asked {
    fn from(kept: KeptAsk) -> Self {
        let question = kept.details.as_deref().and_then(Question::new);
        let given = kept.given.is_some();
        Self { question, call: kept.call, answer: kept.given, given, decided: None, tries: kept.tries }
    }
}
