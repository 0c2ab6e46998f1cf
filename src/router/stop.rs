//! Waiting for the gateway's shutdown.

use tokio::sync::watch;

/// Waits until the gateway stops, or the sender is dropped. Cancellation safe.
pub async fn stopping(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await.map(|_| ());
}
