//! An open question of a session. Pure.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::question::Question;
use plexus_dialects::AnsweredElsewhere;

/// An open question.
#[derive(Default)]
pub(super) struct OpenQuestion {
    /// The content; `None` if an earlier gateway process asked the question and it was too long to be stored.
    pub(super) question: Option<Question>,
    /// The tool call of the question.
    pub(super) call: Option<String>,
    /// The option that was chosen here, while its keys are typed and afterwards.
    pub(super) answer: Option<String>,
    /// `true` once the keys of the answer were typed.
    pub(super) answer_typed: bool,
    /// The decision at the terminal while the keys were being typed.
    pub(super) decided: Option<AnsweredElsewhere>,
    /// The number of answers that were not accepted.
    pub(super) tries: u32,
}

/// A question in a checkpoint.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredQuestion {
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    /// The option whose keys were typed.
    #[serde(rename = "given", skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(default)]
    tries: u32,
}

impl OpenQuestion {
    pub(super) fn stored(&self) -> StoredQuestion {
        StoredQuestion {
            details: self.question.as_ref().and_then(Question::stored).map(ToOwned::to_owned),
            call: self.call.clone(),
            answer: self.answer.clone().filter(|_| self.answer_typed),
            tries: self.tries,
        }
    }

    /// Returns the same question, to be asked again.
    pub(super) fn again(self) -> Self {
        Self { answer: None, answer_typed: false, decided: None, tries: self.tries + 1, ..self }
    }
}

impl From<StoredQuestion> for OpenQuestion {
    fn from(stored: StoredQuestion) -> Self {
        let question = stored.details.as_deref().and_then(Question::new);
        let answer_typed = stored.answer.is_some();
        let StoredQuestion { call, answer, tries, .. } = stored;
        Self { question, call, answer, answer_typed, decided: None, tries }
    }
}
