//! What earlier gateways left in the folder of holders: found, or ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::driver::{Kept, Survivor};
use super::held::wire::Welcome;
use super::held::{Held, News, NotFound};
use super::{Runtimes, Settings, rejoin};
use crate::model::{RuntimeId, RuntimeSpec};
use crate::sessions::{Known, Left};

/// What an earlier gateway left in the folder of holders.
pub(super) enum Remains {
    Survivor(Box<(RuntimeSpec, Survivor)>),
    /// A holder that has not answered yet.
    Late(PathBuf),
    /// One that cannot be spoken with.
    Unusable,
}

impl Runtimes {
    /// Looks for what earlier gateways left, at all of it at once.
    pub(super) async fn look(&self) -> Vec<Left> {
        let looks = Held::all(&self.settings.holders).await.into_iter().enumerate().map(|(place, (name, path))| {
            let wait = self.settings.answer_soon;
            async move { (place, name, Held::find_within(&path, wait).await, path) }
        });
        let mut all = Vec::new();
        for (place, name, found, path) in futures_util::future::join_all(looks).await {
            let (known, remains) = match found {
                Ok((held, welcome)) => {
                    let kept = welcome.blobs.iter().rev().find_map(|(_, blob)| Some(Kept::read(blob)?.0));
                    match kept.filter(|kept| (self.make)(&kept.spec.dialect).is_some()) {
                        Some(kept) => self.survives(held, welcome, kept),
                        None if !held.is_live() => {
                            tracing::warn!(path = %path.display(), "what an ended runtime left cannot be read: it is removed");
                            held.bye();
                            continue;
                        }
                        None if welcome.blobs.iter().all(|(_, blob)| blob.is_empty()) => {
                            // Its gateway died before it had said anything to it, or was to be outlived by nothing and its
                            // holder has not noticed yet: without a state nobody can go on with it.
                            tracing::warn!(path = %path.display(), "a runtime that no gateway can go on with is ended");
                            self.end(held);
                            continue;
                        }
                        None => {
                            let why = format!("{} holds a state that this version cannot read", path.display());
                            (Known::Unusable(why), Remains::Unusable)
                        }
                    }
                }
                Err(NotFound::Nobody(_)) => continue,
                Err(NotFound::Silent(why)) => (Known::Late(why), Remains::Late(path)),
                Err(NotFound::Unusable(why)) => (Known::Unusable(why), Remains::Unusable),
            };
            let id = match &remains {
                Remains::Survivor(survivor) => survivor.0.id.clone(),
                // Only holders of ours write names there.
                Remains::Late(_) | Remains::Unusable => RuntimeId::trusted(name.as_str()),
            };
            self.left_ones().insert(place, remains);
            all.push(Left { id, place, known });
        }
        all
    }

    fn survives(&self, held: Held, welcome: Welcome, kept: Kept) -> (Known, Remains) {
        let known = Known::All {
            spec: Box::new(kept.spec.clone()),
            generation: kept.generation,
            instance: held.instance().to_owned(),
            nameless: held.is_nameless(),
            pid: welcome.pid,
            started_at: welcome.started_at.into(),
        };
        let survivor = Survivor { held, welcome, generation: kept.generation, sessions: Vec::new() };
        (known, Remains::Survivor(Box::new((kept.spec, survivor))))
    }

    /// Ends a runtime that nobody can go on with.
    pub(super) fn end(&self, held: Held) {
        let settings = Arc::clone(&self.settings);
        tokio::spawn(async move { end(held, &settings).await });
    }
}

/// Ends a runtime: by its holder, or, if that does not do it, by its number and start.
async fn end(mut held: Held, settings: &Settings) {
    held.stop(settings.stop_stdin, settings.stop_term);
    let over = async {
        loop {
            match held.next().await {
                News::Exited { .. } => break true,
                News::Gone(_) => break false,
                _ => {}
            }
        }
    };
    let most = settings.stop_stdin + settings.stop_term + settings.stop_kill;
    match tokio::time::timeout(most, over).await {
        Ok(true) => held.bye(),
        Ok(false) | Err(_) => rejoin::end(held.processes(), settings).await,
    }
}

/// Ends whatever the holder at `path` holds: by asking it, or else by force.
pub(super) async fn clear(path: &Path, settings: &Settings) {
    match Held::find_within(path, settings.answer_soon).await {
        Ok((held, _)) => {
            tracing::warn!(path = %path.display(), "an agent that nobody spoke with is ended");
            end(held, settings).await;
        }
        Err(NotFound::Nobody(_)) => {}
        Err(NotFound::Silent(_) | NotFound::Unusable(_)) => rejoin::end_silent(path, settings).await,
    }
}
