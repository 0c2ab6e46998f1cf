//! The inbox: the requests of all sessions.

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;

use super::shared::ListState;
use crate::triage::Triage;

/// Answers to several requests that are being sent.
#[derive(Debug, Default)]
pub(crate) struct SeveralAnswers {
    pub(crate) allow: bool,
    pub(crate) queue: VecDeque<(String, Value)>,
    pub(crate) flying: BTreeSet<String>,
    pub(crate) done: usize,
    /// Answered by somebody else first.
    pub(crate) late: usize,
    /// Not answered, with the last reason.
    pub(crate) failed: (usize, String),
}

/// The page of the inbox.
#[derive(Debug, Default)]
pub(crate) struct InboxPage {
    /// The rows, and what is selected in them.
    pub(crate) triage: Triage,
    pub(crate) list: ListState,
    /// Whether the list was on the screen.
    pub(crate) on_screen: bool,
    /// Answers to several requests that are on their way.
    pub(crate) several: Option<SeveralAnswers>,
}
