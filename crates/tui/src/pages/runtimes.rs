//! The runtimes of the gateway.

use super::shared::ListState;

/// The page of the runtimes.
#[derive(Debug, Default)]
pub(crate) struct RuntimesPage {
    pub(crate) list: ListState,
    /// Whether the runtimes were read.
    pub(crate) read: bool,
    /// Why the runtimes could not be read.
    pub(crate) problem: Option<String>,
}
