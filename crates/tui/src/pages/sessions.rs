//! The session list.

use std::collections::BTreeSet;

use ratatui_textarea::TextArea;

use super::shared::ListState;
use crate::input;
use crate::session_list::SessionRow;

/// The page of all sessions.
#[derive(Debug)]
pub(crate) struct SessionsPage {
    pub(crate) rows: Vec<SessionRow>,
    pub(crate) list: ListState,
    /// The filter, and whether it is being typed.
    pub(crate) filter: TextArea<'static>,
    pub(crate) filtering: bool,
    /// The folded projects.
    pub(crate) folded: BTreeSet<String>,
    /// Whether archived sessions are listed.
    pub(crate) archived: bool,
}

impl Default for SessionsPage {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            list: ListState::default(),
            filter: input::area(""),
            filtering: false,
            folded: BTreeSet::new(),
            archived: false,
        }
    }
}
