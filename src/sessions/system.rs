//! The time, identifiers and threads of the system that decisions and reads use.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::SessionError;
use plexus_protocol::{Ticket, Timestamp};
use plexus_store::StoreError;

/// Makes an identifier: the prefix and 26 characters from 130 random bits.
pub(super) fn mint(prefix: &str) -> String {
    let mut random = [0u8; 17];
    // Identifiers must not be guessable; the kernel's random numbers never fail once the machine is up.
    #[allow(clippy::expect_used)]
    getrandom::fill(&mut random).expect("the kernel's randomness");
    let mut id = data_encoding::BASE32_NOPAD.encode(&random).to_ascii_lowercase();
    id.truncate(26);
    id.insert_str(0, prefix);
    id
}

/// Makes a ticket, unique in this process and different from those of earlier ones.
pub(super) fn ticket() -> Ticket {
    // A runtime that outlived an earlier gateway remembers its tickets: the clock makes the first one differ from those.
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        AtomicU64::new(u64::try_from(since.as_micros()).unwrap_or_default())
    });
    Ticket(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the time of the wall clock.
pub(super) fn now() -> Timestamp {
    SystemTime::now().into()
}

/// Reads from the store on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, SessionError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(|error| SessionError::from_store(&error)),
        Err(error) => Err(SessionError::Storage(error.to_string())),
    }
}
