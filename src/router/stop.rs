//! The end of the gateway, as the router's tasks wait for it.

use tokio::sync::watch;

/// Waits until the gateway stops, or until nobody is left to say so. Cancellation safe.
pub(super) async fn stopping(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await.map(|_| ());
}
