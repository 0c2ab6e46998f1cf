//! The ceilings of what agents may spend.

use super::registry::Registry;
use super::*;
use crate::ceilings::checked;
use plexus_protocol::api::usage::{CeilingSettings, CeilingsView};

/// The ceilings, to be read and set by administrators.
pub struct DirectoryCeilings {
    pub(super) registry: Arc<Registry>,
    pub(super) book: Arc<CeilingBook>,
}

impl DirectoryCeilings {
    /// Returns the ceilings, and what counts towards the one of today.
    pub fn view(&self, _permit: &Permit<Admin>, now: Timestamp) -> CeilingsView {
        self.book.view(now)
    }

    /// Sets the ceilings in place of the earlier ones, and stores them. Prompts that no ceiling holds any more start.
    ///
    /// # Errors
    /// [`SessionError::Invalid`], [`SessionError::Storage`]: then nothing changed.
    pub async fn set(
        &self,
        permit: &Permit<Admin>,
        settings: CeilingSettings,
        now: Timestamp,
    ) -> Result<CeilingsView, SessionError> {
        let mut settings = checked(settings).map_err(SessionError::Invalid)?;
        // Ceilings of deleted sessions are not needed.
        settings.sessions.retain(|id, _| self.registry.sessions.contains_key(id));
        let book = Arc::clone(&self.book);
        tokio::task::spawn_blocking(move || book.replace(settings)).await.map_err(|_| SessionError::Stopping)??;
        Ok(self.view(permit, now))
    }
}
