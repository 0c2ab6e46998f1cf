//! The changes of a session.

use std::collections::HashMap;

use serde_json::Value;

use crate::changes::{ChangesScreen, ReviewDraft};
use crate::conversation::ScrollPosition;

/// Reviews that were not sent yet, and what was pressed before the screen is opened.
#[derive(Default)]
pub(crate) struct Reviews {
    /// By session.
    pub(crate) drafts: HashMap<String, ReviewDraft>,
    /// The review that was sent last, and how many there were: one that is sent again has the same key.
    pub(crate) sent: Option<(String, Value)>,
    pub(crate) count: u64,
    /// When `g` was pressed, and where the conversation was.
    pub(crate) chord: Option<(i64, ScrollPosition)>,
}

/// The changes of the open session.
#[derive(Default)]
pub(crate) struct ChangesPage {
    /// The screen, while it is shown.
    pub(crate) screen: Option<Box<ChangesScreen>>,
    pub(crate) reviews: Reviews,
}
