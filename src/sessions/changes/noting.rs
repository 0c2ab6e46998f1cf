//! Moments of sessions: their folders are scanned before a prompt is sent, and when runs begin and end. All of this runs outside the
//! session's task, so that no agent waits, and no session waits for another.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plexus_protocol::{Kind, RunId, SessionId};
use plexus_workspace::{FolderScan, MomentKind, NewMoment, WorkspaceError};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Changes, ChangesError, FolderCall, MAINTAINED, SessionTurn};
use crate::system::now;

/// Maximum time that a prompt waits for the scan of its folder before it is sent. A scan that ends after the agent's first output is
/// marked as late.
const PROMPT_WAIT: Duration = Duration::from_millis(300);
/// Time after which the scan of a prompt no longer counts as the beginning of a run: the prompt was not accepted.
const START_KEPT: Duration = Duration::from_secs(30);
/// Maximum number of sessions whose scans of prompts are held; beyond it all are dropped, and their folders are scanned when runs begin.
const STARTS: usize = 256;
/// Maximum number of prompts of queued runs that are held for the list; beyond it all are dropped, and those runs have none.
const QUEUED: usize = 1000;
/// Maximum length of a prompt in the list of runs, in characters.
const PROMPT: usize = 120;

/// The beginnings of queued prompts.
pub(super) type QueuedPrompts = HashMap<RunId, String>;

/// The state of a folder when a prompt was sent.
pub(super) struct StartScan {
    scan: FolderScan,
    prompt: String,
    at: i64,
    /// `true` if the agent's work may have begun before the scan ended.
    late: bool,
    scanned_at: Instant,
}

/// Returns the beginning of a prompt, in one line.
fn beginning(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(PROMPT).collect();
    words.join(" ").chars().take(PROMPT).collect()
}

impl Changes {
    /// Scans the folder before a prompt is sent to an idle session. Waits [`PROMPT_WAIT`] at most.
    pub(crate) async fn before_prompt(self: &Arc<Self>, session: &SessionId, cwd: &str, text: &str) {
        if self.stores.get().is_none() {
            return;
        }
        let (prompt, at) = (beginning(text), now().as_millis());
        let scan = self.in_turn(session, cwd, move |call, session, turn| {
            let scan = call.scan()?;
            let late = turn.acted.load(Ordering::Acquire);
            let base = NewMoment { kind: MomentKind::Base, at, note: "", late };
            call.store()?.mark(session.as_str(), base, &scan)?;
            let mut starts = call.changes.starts.lock();
            if starts.len() >= STARTS {
                starts.clear();
            }
            starts.insert(session.clone(), StartScan { scan, prompt, at, late, scanned_at: Instant::now() });
            Ok(())
        });
        // The scan continues while the agent waits for its model.
        let _ = tokio::time::timeout(PROMPT_WAIT, scan).await;
    }

    /// Records the first output of an agent in a run.
    pub(crate) fn acted(&self, session: &SessionId) {
        if let Some(turn) = self.turns.get(session) {
            turn.acted.store(true, Ordering::Release);
        }
    }

    /// Stores the beginning of a queued prompt.
    pub(crate) fn queued(&self, run: &RunId, text: &str) {
        let mut queued = self.queued.lock();
        if queued.len() >= QUEUED {
            queued.clear();
        }
        queued.insert(run.clone(), beginning(text));
    }

    /// Records that a run began or ended.
    pub(crate) fn record_run(self: &Arc<Self>, session: &SessionId, cwd: &str, run: &RunId, kind: Kind) {
        if self.stores.get().is_none() {
            return;
        }
        let (queued, run) = (self.queued.lock().remove(run), run.clone());
        self.turns.entry(session.clone()).or_default().acted.store(false, Ordering::Release);
        let work = self.in_turn(session, cwd, move |call, session, turn| {
            let id = run.as_str().to_owned();
            if kind == Kind::RunEnded {
                let ended = NewMoment { kind: MomentKind::RunEnd(id), at: now().as_millis(), note: "", late: false };
                call.store()?.mark(session.as_str(), ended, &call.scan()?)?;
                if call.folder.maintained.lock().elapsed() > MAINTAINED {
                    call.changes.maintain(&call.cwd);
                }
                return Ok(());
            }
            let start = call.changes.starts.lock().remove(session);
            let start = start.filter(|start| queued.is_none() && start.scanned_at.elapsed() < START_KEPT);
            let (scan, prompt, at, late) = match start {
                Some(start) => (start.scan, start.prompt, start.at, start.late),
                None => {
                    let (at, scan) = (now().as_millis(), call.scan()?);
                    (scan, queued.unwrap_or_default(), at, turn.acted.load(Ordering::Acquire))
                }
            };
            let began = NewMoment { kind: MomentKind::RunStart(id), at, note: &prompt, late };
            call.store()?.mark(session.as_str(), began, &scan)
        });
        drop(work);
    }

    /// Runs work on a session's folder, one job at a time for each session. Logs errors.
    fn in_turn(
        self: &Arc<Self>,
        session: &SessionId,
        cwd: &str,
        work: impl FnOnce(&FolderCall, &SessionId, &SessionTurn) -> Result<(), WorkspaceError> + Send + 'static,
    ) -> JoinHandle<()> {
        let (changes, turn) = (Arc::clone(self), Arc::clone(&self.turns.entry(session.clone()).or_default()));
        let (session, cwd) = (session.clone(), cwd.to_owned());
        tokio::spawn(async move {
            let _noting = turn.noting.lock().await;
            // Records of a deleted session would never be removed.
            if !changes.turns.get(&session).is_some_and(|now| Arc::ptr_eq(now.value(), &turn)) {
                return;
            }
            let work_turn = Arc::clone(&turn);
            match changes.start(&cwd, move |call| Ok(work(call, &session, &work_turn)?)).await {
                // The list of changes reports it.
                Ok(()) | Err(ChangesError::Workspace(WorkspaceError::GitMissing(_) | WorkspaceError::Private)) => {}
                Err(error) => {
                    tracing::warn!(%error, folder = ?cwd, "the state of a session's folder could not be noted")
                }
            }
        })
    }
}
