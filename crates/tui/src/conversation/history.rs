//! Pages of history, and the events before the first block.

use std::collections::VecDeque;

use super::blocks::Block;
use super::reads::ReadGroups;

/// An older page that is being shown.
#[derive(Debug)]
pub(super) struct OlderPage {
    pub(super) blocks: VecDeque<Block>,
    pub(super) reads: ReadGroups,
    /// The `before` of the page before it; none on the first.
    pub(super) previous: Option<String>,
}

/// The events before the first block.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The `before` of the events before the first block; none at the start of the session.
    pub(super) previous: Option<String>,
    /// The older page that is being shown.
    pub(super) older: Option<OlderPage>,
    /// `true` if an older page is being fetched.
    pub(super) fetching: bool,
    /// The number of older pages fetched.
    pub(super) fetched: u64,
    /// A place to scroll to that is not loaded: the page that ends with it is fetched.
    pub(super) jump: Option<u64>,
}
