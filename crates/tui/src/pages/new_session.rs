//! The form of a new session.

use crate::attachments::Attachment;
use crate::new_session::NewSessionForm;

/// The form of a new session.
#[derive(Debug, Default)]
pub(crate) struct NewSessionPage {
    /// The form, while it is shown.
    pub(crate) form: Option<NewSessionForm>,
    /// The prompt of a form that was closed, and its images.
    pub(crate) prompt: String,
    pub(crate) images: Vec<Attachment>,
    /// The starts so far.
    pub(crate) attempts: u64,
}
