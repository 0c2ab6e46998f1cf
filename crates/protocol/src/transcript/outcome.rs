//! The end of a request, read from its receipt.

use serde::Deserialize;
use serde_json::Value;

use crate::known_items::known_value;
use crate::{Answers, Receipt, RequestState};

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// A user let the agent proceed.
    Allowed,
    /// A user refused.
    Denied,
    /// A user gave a text or a choice.
    Answered,
    /// No answer arrived in time.
    Expired,
    /// The agent, or the end of its run, withdrew the request.
    Withdrawn,
    /// The runtime that asked has ended.
    Orphaned,
    /// The request is closed, and nothing else is known.
    Closed,
}

impl Decided {
    /// Returns the receipt's `state` as text.
    pub const fn state(self) -> &'static str {
        match self {
            Self::Allowed | Self::Denied | Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Orphaned => "orphaned",
            Self::Closed => "closed",
        }
    }
}

/// A `request_resolved` event or a receipt, as far as users see it. None of its texts is safe to display.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The request.
    pub request_id: String,
    /// The end.
    pub decided: Decided,
    /// The name of the decider; empty if nobody decided.
    pub by: String,
    /// The device that decided.
    pub device: String,
    /// The option chosen.
    pub option: Option<String>,
    /// The items chosen, if several were possible.
    pub items: Vec<String>,
    /// `true` if the answer was text or choices, rather than a yes.
    pub given: bool,
    /// The answers to each question: its identifier and the answers.
    pub answers: Vec<(String, Vec<String>)>,
    /// The reason, as the decider wrote it.
    pub reason: Option<String>,
    /// The edited text that was allowed in place of the original.
    pub edited: Option<String>,
}

/// The members of a receipt that make its outcome. An absent one, as in the log of an earlier version, has its default.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Recorded {
    request_id: String,
    #[serde(deserialize_with = "known_value")]
    state: Option<RequestState>,
    ok: Option<bool>,
    option_id: Option<String>,
    value: Option<String>,
    ids: Option<Vec<String>>,
    answers: Option<Answers>,
    reason: Option<String>,
    edited: Option<String>,
    edited_display: Option<String>,
    resolved_by: Decider,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Decider {
    device_id: String,
    name: String,
}

impl Outcome {
    /// Reads the body of `request_resolved`. One that only a newer gateway has is [`Decided::Closed`].
    pub fn read(body: &Value) -> Self {
        Recorded::deserialize(body).unwrap_or_default().into()
    }

    /// Returns the outcome that a receipt records.
    pub fn from_receipt(receipt: &Receipt) -> Self {
        let receipt = receipt.clone();
        let resolved_by =
            Decider { device_id: receipt.resolved_by.device_id.to_string(), name: receipt.resolved_by.name };
        Recorded {
            request_id: receipt.request_id.to_string(),
            state: Some(receipt.state),
            ok: receipt.ok,
            option_id: receipt.option_id,
            value: receipt.value,
            ids: receipt.ids,
            answers: receipt.answers,
            reason: receipt.reason,
            edited: receipt.edited,
            edited_display: receipt.edited_display,
            resolved_by,
        }
        .into()
    }

    /// Makes the outcome of a closed request whose end is not known.
    pub fn unknown(request_id: String) -> Self {
        Recorded { request_id, ..Recorded::default() }.into()
    }

    /// Returns a short description: `allowed by phone`.
    pub fn summary(&self) -> String {
        let by = if self.by.is_empty() { "somebody" } else { &self.by };
        match self.decided {
            // If the request was for text or choices, a yes is an answer.
            Decided::Allowed if self.given => format!("answered by {by}"),
            Decided::Allowed => format!("allowed by {by}"),
            Decided::Denied => format!("denied by {by}"),
            Decided::Answered => format!("answered by {by}"),
            Decided::Expired => "expired: nobody answered in time".into(),
            Decided::Withdrawn if self.by.is_empty() => "withdrawn".into(),
            Decided::Withdrawn => format!("withdrawn by {by}"),
            Decided::Orphaned => "it can no longer be answered: the runtime that asked has ended".into(),
            Decided::Closed => "closed".into(),
        }
    }
}

impl From<Recorded> for Outcome {
    fn from(recorded: Recorded) -> Self {
        let Recorded { value, ids, answers, .. } = recorded;
        Self {
            request_id: recorded.request_id,
            decided: match (recorded.state, recorded.ok) {
                (Some(RequestState::Answered), Some(true)) => Decided::Allowed,
                (Some(RequestState::Answered), Some(false)) => Decided::Denied,
                (Some(RequestState::Answered), None) => Decided::Answered,
                (Some(RequestState::Expired), _) => Decided::Expired,
                (Some(RequestState::Withdrawn), _) => Decided::Withdrawn,
                (Some(RequestState::Orphaned), _) => Decided::Orphaned,
                (Some(RequestState::Open) | None, _) => Decided::Closed,
            },
            by: recorded.resolved_by.name,
            device: recorded.resolved_by.device_id,
            option: recorded.option_id,
            given: value.is_some() || ids.is_some() || answers.is_some(),
            items: ids.unwrap_or_default(),
            answers: answers.unwrap_or_default().into_iter().collect(),
            reason: recorded.reason,
            edited: recorded.edited_display.or(recorded.edited),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outcome_is_read_from_bodies_of_other_versions() {
        let by = json!({ "device_id": "d_1", "name": "phone" });
        for (body, decided, text) in [
            (
                json!({ "request_id": "q_1", "state": "answered", "ok": true, "resolved_by": by }),
                Decided::Allowed,
                "allowed by phone",
            ),
            (
                json!({ "request_id": "q_1", "state": "answered", "option_id": "a" }),
                Decided::Answered,
                "answered by somebody",
            ),
            (json!({ "request_id": "q_1", "state": "of-tomorrow", "resolved_by": by }), Decided::Closed, "closed"),
            (json!({ "request_id": "q_1" }), Decided::Closed, "closed"),
        ] {
            let outcome = Outcome::read(&body);
            assert_eq!(
                (outcome.request_id.as_str(), outcome.decided, outcome.summary().as_str()),
                ("q_1", decided, text)
            );
        }
    }
}
