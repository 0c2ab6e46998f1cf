//! The open session: its conversation and its composer.

use std::collections::HashMap;

use ratatui_textarea::TextArea;

use crate::attachments::Attachment;
use crate::conversation::Conversation;
use crate::input;
use crate::mention::FileOffers;

/// The page of the open session.
#[derive(Debug)]
pub(crate) struct SessionPage {
    pub(crate) conversation: Option<Conversation>,
    /// The number of the subscription to the open session.
    pub(crate) following: u64,
    /// The session that is shown beside the list next, and since when it is selected.
    pub(crate) preview_due: Option<(String, i64)>,
    /// Whether the conversation was opened only as a preview.
    pub(crate) previewed: bool,
    pub(crate) composer: TextArea<'static>,
    /// The files that are offered for the composer.
    pub(crate) files: FileOffers,
    /// The images of the prompts that are written, by their sessions.
    pub(crate) images: HashMap<String, Vec<Attachment>>,
    /// The earlier prompt that the composer shows.
    pub(crate) history: Option<usize>,
    /// The composed text before earlier prompts were shown.
    pub(crate) draft: String,
    /// The session whose composed prompt is sent once its runtime has restarted.
    pub(crate) pending_restart: Option<String>,
    /// The composed texts of other sessions.
    pub(crate) drafts: HashMap<String, String>,
}

impl Default for SessionPage {
    fn default() -> Self {
        Self {
            conversation: None,
            following: 0,
            preview_due: None,
            previewed: false,
            composer: input::area(""),
            files: FileOffers::default(),
            images: HashMap::new(),
            history: None,
            draft: String::new(),
            pending_restart: None,
            drafts: HashMap::new(),
        }
    }
}
