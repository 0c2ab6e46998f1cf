//! The end of a request, read from its receipt.

use serde::Deserialize as _;
use serde_json::Value;

use crate::{Receipt, RequestHead, RequestState};

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

impl Outcome {
    /// Reads the body of `request_resolved`. One that only a newer gateway has is [`Decided::Closed`].
    pub fn read(body: &Value) -> Self {
        match Receipt::deserialize(body) {
            Ok(receipt) => Self::from_receipt(&receipt),
            Err(_) => Self::unknown(RequestHead::deserialize(body).unwrap_or_default().request_id),
        }
    }

    /// Returns the outcome that a receipt records.
    pub fn from_receipt(receipt: &Receipt) -> Self {
        let Receipt { option_id, value, ids, answers, reason, edited, edited_display, .. } = receipt;
        let decided = match (receipt.state, receipt.ok) {
            (RequestState::Answered, Some(true)) => Decided::Allowed,
            (RequestState::Answered, Some(false)) => Decided::Denied,
            (RequestState::Answered, None) => Decided::Answered,
            (RequestState::Expired, _) => Decided::Expired,
            (RequestState::Withdrawn, _) => Decided::Withdrawn,
            (RequestState::Orphaned, _) => Decided::Orphaned,
            (RequestState::Open, _) => Decided::Closed,
        };
        Self {
            request_id: receipt.request_id.to_string(),
            decided,
            by: receipt.resolved_by.name.clone(),
            device: receipt.resolved_by.device_id.to_string(),
            option: option_id.clone(),
            items: ids.clone().unwrap_or_default(),
            given: value.is_some() || ids.is_some() || answers.is_some(),
            answers: answers.clone().unwrap_or_default().into_iter().collect(),
            reason: reason.clone(),
            edited: edited_display.clone().or_else(|| edited.clone()),
        }
    }

    /// Makes the outcome of a closed request whose end is not known.
    pub fn unknown(request_id: String) -> Self {
        Self {
            request_id,
            decided: Decided::Closed,
            by: String::new(),
            device: String::new(),
            option: None,
            items: Vec::new(),
            given: false,
            answers: Vec::new(),
            reason: None,
            edited: None,
        }
    }

    /// Returns a short description: `allowed by phone`.
    pub fn words(&self) -> String {
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
