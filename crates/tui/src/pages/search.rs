//! The search in all sessions.

use ratatui_textarea::TextArea;

use super::shared::ListState;
use crate::input;
use crate::view_model::SearchItem;

/// The page of the search.
#[derive(Debug)]
pub(crate) struct SearchPage {
    pub(crate) query: TextArea<'static>,
    pub(crate) typing: bool,
    pub(crate) hits: Vec<SearchItem>,
    /// The text that was searched for.
    pub(crate) searched: Option<String>,
    pub(crate) list: ListState,
    /// Why the last search failed.
    pub(crate) problem: Option<String>,
}

impl Default for SearchPage {
    fn default() -> Self {
        Self {
            query: input::area(""),
            typing: true,
            hits: Vec::new(),
            searched: None,
            list: ListState::default(),
            problem: None,
        }
    }
}
