//! Reconnects to a holder whose connection was lost, for as long as there is a holder. Only if its socket no longer listens has the
//! holder ended; the runtime, which has lost its pipes then, is ended before its exit is reported.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::RuntimeSettings;
use plexus_holder::wire::Welcome;
use plexus_holder::{HolderClient, HolderNotFound, Processes};

/// Pause before the first attempt; it doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Maximum pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The result of reconnecting.
pub(super) enum Rejoined {
    /// The same holder, with the same runtime.
    Found(Box<(HolderClient, Welcome)>),
    /// There is no holder; its runtime has ended. Contains the reason.
    Ended(String),
}

/// A connection that is being made again. Dropping it ends the attempts.
pub(super) struct Rejoin {
    task: JoinHandle<Rejoined>,
}

impl Rejoin {
    /// Reconnects to the holder of the `lost` connection.
    pub(super) fn start(lost: &HolderClient, settings: &Arc<RuntimeSettings>) -> Self {
        let (path, instance, processes) = (lost.path().to_owned(), lost.instance().to_owned(), lost.processes());
        let settings = Arc::clone(settings);
        let work = async move {
            let mut pause = PAUSE_MIN;
            let reason = loop {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
                match HolderClient::find(&path).await {
                    Ok(found) if found.0.instance() == instance => return Rejoined::Found(Box::new(found)),
                    Ok(_) => break "another holder is in its place".to_owned(),
                    Err(HolderNotFound::Ended(reason)) => break format!("its holder is gone: {reason}"),
                    Err(HolderNotFound::Unusable(reason)) => break reason,
                    Err(HolderNotFound::NoResponse(_)) => {}
                }
            };
            end(processes, &settings).await;
            Rejoined::Ended(reason)
        };
        let task = tokio::spawn(work.in_current_span());
        Self { task }
    }
}

/// Like [`end`], without waiting for it.
pub(super) fn force(processes: Option<Processes>, settings: &Arc<RuntimeSettings>) {
    let settings = Arc::clone(settings);
    tokio::spawn(async move { end(processes, &settings).await }.in_current_span());
}

impl Drop for Rejoin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Ends a runtime that has no holder any more, and its holder if it is alive all the same.
pub(super) async fn end(processes: Option<Processes>, settings: &RuntimeSettings) {
    let Some(Processes { runtime, holder }) = processes else { return };
    if !runtime.end(settings.linger, settings.stop_kill).await {
        tracing::error!(pid = runtime.pid(), "a runtime whose holder has ended was killed but is still running");
    }
    if let Some(holder) = holder {
        holder.end(settings.linger, settings.stop_kill).await;
    }
}

/// Ends a holder that does not respond, and its runtime with it.
pub(super) async fn end_silent(path: &Path, settings: &RuntimeSettings) {
    if let Some(holder) = HolderClient::listener(path).await {
        // On request, a holder that still works ends its runtime first, and needs as long for it.
        if !holder.end(settings.stop_term, settings.stop_kill).await {
            tracing::error!(pid = holder.pid(), "a holder that does not respond was killed but is still running");
        }
    }
}

/// Waits until the connection is made, or cannot be. Cancellation safe; never returns if none is lost.
pub(super) async fn done(rejoin: &mut Option<Rejoin>) -> Rejoined {
    match rejoin {
        Some(rejoin) => match (&mut rejoin.task).await {
            Ok(rejoined) => rejoined,
            Err(error) => Rejoined::Ended(format!("its holder cannot be found: {error}")),
        },
        None => std::future::pending().await,
    }
}
