//! The ceilings of what agents may spend.

use super::registry::Registry;
use super::*;
use crate::ceilings::checked;
use plexus_protocol::api::usage::{CeilingSettings, CeilingsView};

/// The ceilings, as administrators see and set them.
pub struct DirectoryCeilings {
    pub(super) registry: Arc<Registry>,
    pub(super) book: Arc<CeilingBook>,
}

impl DirectoryCeilings {
    /// The ceilings, and what counts towards the one of today.
    pub fn view(&self, _permit: &Permit<Admin>, now: Timestamp) -> CeilingsView {
        self.book.view(now)
    }

    /// Sets the ceilings in place of those set before, and keeps them. Prompts that no ceiling holds any more start.
    ///
    /// # Errors
    /// [`SessionError::Invalid`], [`SessionError::Storage`]: nothing changed then.
    pub async fn set(
        &self,
        permit: &Permit<Admin>,
        settings: CeilingSettings,
        now: Timestamp,
    ) -> Result<CeilingsView, SessionError> {
        let mut settings = checked(settings).map_err(SessionError::Invalid)?;
        // Those of sessions that are deleted are of no use.
        settings.sessions.retain(|id, _| self.registry.sessions.contains_key(id));
        let book = Arc::clone(&self.book);
        tokio::task::spawn_blocking(move || book.replace(settings)).await.map_err(|_| SessionError::Stopping)??;
        Ok(self.view(permit, now))
    }
}
