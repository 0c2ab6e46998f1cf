//! The ceilings of what agents may spend.

use super::*;
use crate::ceilings::checked;
use plexus_protocol::api::usage::{CeilingSettings, CeilingsView};

impl Directory {
    /// The ceilings, and what counts towards the one of today.
    pub fn ceilings(&self, _permit: &Permit<Admin>, now: Timestamp) -> CeilingsView {
        self.shared.ceilings.view(now)
    }

    /// Sets the ceilings in place of those set before, and keeps them. Prompts that no ceiling holds any more start.
    ///
    /// # Errors
    /// [`SessionError::Invalid`], [`SessionError::Storage`]: nothing changed then.
    pub async fn set_ceilings(
        &self,
        permit: &Permit<Admin>,
        settings: CeilingSettings,
        now: Timestamp,
    ) -> Result<CeilingsView, SessionError> {
        let mut settings = checked(settings).map_err(SessionError::Invalid)?;
        // Those of sessions that are deleted are of no use.
        settings.sessions.retain(|id, _| self.shared.sessions.contains_key(id));
        let book = Arc::clone(&self.shared.ceilings);
        tokio::task::spawn_blocking(move || book.replace(settings)).await.map_err(|_| SessionError::Stopping)??;
        Ok(self.ceilings(permit, now))
    }
}
