//! The remains of earlier gateways in the folder of holders: found, or ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::process_transport::{HandoverState, SurvivingProcess};
use super::{RuntimeSettings, Runtimes, holder_reconnect};
use plexus_holder::wire::Welcome;
use plexus_holder::{HolderClient, HolderMessage, HolderNotFound};
use plexus_protocol::{RuntimeId, RuntimeSpec};
use plexus_sessions::{OrphanState, OrphanedRuntime};

/// The remains of an earlier gateway in the folder of holders.
pub(super) enum HolderRemains {
    Survivor(Box<(RuntimeSpec, SurvivingProcess)>),
    /// A holder that has not responded yet.
    Late(PathBuf),
    /// A holder that cannot be used.
    Unusable,
}

impl Runtimes {
    /// Finds the processes that earlier gateways left, all at once.
    pub(super) async fn scan(&self) -> Vec<OrphanedRuntime> {
        let searches =
            HolderClient::all(&self.settings.holders).await.into_iter().enumerate().map(|(index, (name, path))| {
                let wait = self.settings.answer_soon;
                async move { (index, name, HolderClient::find_within(&path, wait).await, path) }
            });
        let mut all = Vec::new();
        for (index, name, found, path) in futures_util::future::join_all(searches).await {
            let (state, remains) = match found {
                Ok((holder, welcome)) => {
                    let saved = welcome.blobs.iter().rev().find_map(|(_, blob)| Some(HandoverState::read(blob)?.0));
                    match saved.filter(|saved| (self.make)(&saved.spec.dialect).is_some()) {
                        Some(saved) => self.survives(holder, welcome, saved),
                        None if !holder.is_live() => {
                            tracing::warn!(path = %path.display(), "the remains of an ended runtime cannot be read \
                                and are removed");
                            holder.bye();
                            continue;
                        }
                        None if welcome.blobs.iter().all(|(_, blob)| blob.is_empty()) => {
                            // Its gateway died before it had sent it anything, or the runtime must not outlive the gateway and its holder
                            // has not detected the end yet: without a state no gateway can take it over.
                            tracing::warn!(path = %path.display(), "a runtime that no gateway can take over is \
                                stopped");
                            self.end(holder);
                            continue;
                        }
                        None => {
                            let reason = format!("{} contains a state that this version cannot read", path.display());
                            (OrphanState::Unusable(reason), HolderRemains::Unusable)
                        }
                    }
                }
                Err(HolderNotFound::Ended(_)) => continue,
                Err(HolderNotFound::NoResponse(reason)) => (OrphanState::Late(reason), HolderRemains::Late(path)),
                Err(HolderNotFound::Unusable(reason)) => (OrphanState::Unusable(reason), HolderRemains::Unusable),
            };
            let id = match &remains {
                HolderRemains::Survivor(survivor) => survivor.0.id.clone(),
                // Only holders of the gateway write names there.
                HolderRemains::Late(_) | HolderRemains::Unusable => RuntimeId::trusted(name.as_str()),
            };
            self.left_ones().insert(index, remains);
            all.push(OrphanedRuntime { id, index, state });
        }
        all
    }

    fn survives(&self, holder: HolderClient, welcome: Welcome, saved: HandoverState) -> (OrphanState, HolderRemains) {
        let state = OrphanState::All {
            spec: Box::new(saved.spec.clone()),
            generation: saved.generation,
            instance: holder.instance().to_owned(),
            nameless: holder.is_nameless(),
            pid: welcome.pid,
            started_at: welcome.started_at.into(),
        };
        let survivor = SurvivingProcess { holder, welcome, generation: saved.generation, sessions: Vec::new() };
        (state, HolderRemains::Survivor(Box::new((saved.spec, survivor))))
    }

    /// Ends a runtime that no gateway can take over.
    pub(super) fn end(&self, holder: HolderClient) {
        let settings = Arc::clone(&self.settings);
        tokio::spawn(async move { end(holder, &settings).await });
    }
}

/// Ends a runtime: by its holder, or, if that fails, by its process id and start time.
async fn end(mut holder: HolderClient, settings: &RuntimeSettings) {
    holder.stop(settings.stop_stdin, settings.stop_term);
    let exit = async {
        loop {
            match holder.next().await {
                HolderMessage::Exited { .. } => break true,
                HolderMessage::Lost(_) => break false,
                _ => {}
            }
        }
    };
    let max = settings.stop_stdin + settings.stop_term + settings.stop_kill;
    match tokio::time::timeout(max, exit).await {
        Ok(true) => holder.bye(),
        Ok(false) | Err(_) => holder_reconnect::end(holder.processes(), settings).await,
    }
}

/// Ends the runtime of the holder at `path`: by a request, or else by force.
pub(super) async fn clear(path: &Path, settings: &RuntimeSettings) {
    match HolderClient::find_within(path, settings.answer_soon).await {
        Ok((holder, _)) => {
            tracing::warn!(path = %path.display(), "an unattended agent is stopped");
            end(holder, settings).await;
        }
        Err(HolderNotFound::Ended(_)) => {}
        Err(HolderNotFound::NoResponse(_) | HolderNotFound::Unusable(_)) => {
            holder_reconnect::end_silent(path, settings).await
        }
    }
}
