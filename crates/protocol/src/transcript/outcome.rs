//! The end of a request, read from its receipt.

use serde::Deserialize as _;
use serde_json::Value;

use crate::{Receipt, RequestState};

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// Somebody let the agent go ahead.
    Allowed,
    /// Somebody refused.
    Denied,
    /// Somebody gave words or a choice.
    Answered,
    /// Nobody answered in time.
    Expired,
    /// The agent, or the end of its run, took it back.
    Withdrawn,
    /// The runtime that asked is gone.
    Orphaned,
    /// The request is over, and nothing else is known.
    Closed,
}

impl Decided {
    /// The word of the receipt's `state`.
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

/// A `request_resolved` event or a receipt, as far as people are told of it. Nothing in it is made safe to show.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The request.
    pub request_id: String,
    /// The end.
    pub decided: Decided,
    /// The name of the decider; empty where nobody decided.
    pub by: String,
    /// The device that decided.
    pub device: String,
    /// The option chosen.
    pub option: Option<String>,
    /// The items chosen, where several could be.
    pub items: Vec<String>,
    /// `true` if words or choices were the answer, rather than a yes.
    pub given: bool,
    /// The answers to each question: its identifier and the answers.
    pub answers: Vec<(String, Vec<String>)>,
    /// The reason, in the words of the decider.
    pub reason: Option<String>,
    /// The edited text that was allowed in place of the original.
    pub edited: Option<String>,
}

impl Outcome {
    /// Reads the body of `request_resolved`. One that only a newer gateway has is [`Decided::Closed`].
    pub fn read(body: &Value) -> Self {
        match Receipt::deserialize(body) {
            Ok(receipt) => Self::from_receipt(&receipt),
            Err(_) => Self::unknown(body["request_id"].as_str().unwrap_or_default().to_owned()),
        }
    }

    /// The outcome that a receipt records.
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

    /// Creates the outcome of a request that is over, and whose end is not known.
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

    /// In a few words: `allowed by phone`.
    pub fn words(&self) -> String {
        let by = if self.by.is_empty() { "somebody" } else { &self.by };
        match self.decided {
            // Where words or choices were asked for, a yes is an answer.
            Decided::Allowed if self.given => format!("answered by {by}"),
            Decided::Allowed => format!("allowed by {by}"),
            Decided::Denied => format!("denied by {by}"),
            Decided::Answered => format!("answered by {by}"),
            Decided::Expired => "expired: nobody answered in time".into(),
            Decided::Withdrawn if self.by.is_empty() => "withdrawn".into(),
            Decided::Withdrawn => format!("withdrawn by {by}"),
            Decided::Orphaned => "it can no longer be answered: the runtime that asked is gone".into(),
            Decided::Closed => "closed".into(),
        }
    }
}
