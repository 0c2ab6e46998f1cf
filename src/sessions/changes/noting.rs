//! Notes of what is not committed when a session begins and when its runs begin and end. Made on threads of their own, so that no
//! session waits for another, and off the session's task, so that no agent waits.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plexus_protocol::{Kind, RunId, SessionId, Timestamp};

use super::analysis::{Analysis, Contents, analyse};
use super::record::{BaseRecord, COPY, PendingRun, Record, RecordFolder, RunRecord, StatesRecord};
use super::view::{ChangesError, ChangesSource};
use super::{Changes, PROMPT};
use crate::sessions::session::now;

/// How long a prompt waits for the note of what is not committed; then it is sent, and the list says that the note may be late.
const PROMPT_WAIT: Duration = Duration::from_secs(2);
/// How long a prompt's note stands for the beginning of the next run, in milliseconds; an older one is of a prompt that was not taken.
const PENDING_MILLIS: i64 = 30_000;
/// Prompts of queued runs that are remembered for the list; beyond it all are forgotten, and those runs have none.
const QUEUED: usize = 1000;

/// The first characters of prompts that are queued.
pub(super) type QueuedPrompts = HashMap<RunId, String>;

/// The beginning of a prompt, in one line.
fn beginning(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(PROMPT).collect();
    words.join(" ").chars().take(PROMPT).collect()
}

impl Changes {
    /// Before a prompt is sent to a session that does nothing: notes how its folder is.
    pub(in crate::sessions) async fn before_prompt(self: &Arc<Self>, session: &SessionId, cwd: String, text: &str) {
        if self.home.get().is_none() {
            return;
        }
        let (prompt, sent) = (beginning(text), Arc::new(AtomicBool::new(false)));
        let (of, was_sent) = (session.clone(), Arc::clone(&sent));
        let at = cwd.clone();
        let note = self.work(session, &at, move |changes| {
            changes.note(&of, &cwd, |record, states| {
                let late = was_sent.load(Ordering::Acquire);
                record.begin(states, late);
                if !late {
                    record.pending = Some(PendingRun { at: now(), prompt, start: states.1.clone() });
                }
            })
        });
        if tokio::time::timeout(PROMPT_WAIT, note).await.is_err() {
            sent.store(true, Ordering::Release);
        }
    }

    /// A prompt was taken, and waits for its turn.
    pub(in crate::sessions) fn queued(&self, run: &RunId, text: &str) {
        let mut queued = self.queued.lock();
        if queued.len() >= QUEUED {
            queued.clear();
        }
        queued.insert(run.clone(), beginning(text));
    }

    /// A run began or ended.
    pub(in crate::sessions) fn run_news(self: &Arc<Self>, session: &SessionId, cwd: &str, run: &RunId, what: Kind) {
        if self.home.get().is_none() {
            return;
        }
        let (queued, run) = (self.queued.lock().remove(run), run.clone());
        self.later(session, cwd, move |record, states| {
            record.run_began(&run, queued, states);
            if what == Kind::RunEnded
                && let Some(known) = record.runs.iter_mut().find(|known| known.run_id == run)
            {
                known.end = Some(states.1.clone());
            }
        });
    }

    fn later(
        self: &Arc<Self>,
        session: &SessionId,
        cwd: &str,
        write: impl FnOnce(&mut Record, &Noted) + Send + 'static,
    ) {
        let (of, cwd) = (session.clone(), cwd.to_owned());
        let at = cwd.clone();
        let work = self.work(session, &at, move |changes| changes.note(&of, &cwd, write));
        tokio::spawn(async move {
            if let Err(error) = work.await {
                tracing::warn!(%error, "what a run changed could not be noted");
            }
        });
    }

    /// Looks at the folder and writes the record. Blocks; the session's turn is held.
    fn note(
        &self,
        session: &SessionId,
        cwd: &str,
        write: impl FnOnce(&mut Record, &Noted),
    ) -> Result<(), ChangesError> {
        let Some(folder) = self.folder(session) else { return Ok(()) };
        let mut record = folder.load();
        let analysis = analyse(Path::new(cwd), &record, self.home.get().map(PathBuf::as_path));
        self.stale(session);
        if analysis.source != ChangesSource::Git {
            return Ok(());
        }
        copy_all(&analysis, &mut record, &folder)?;
        let (states, whole) = StatesRecord::of(&analysis.now);
        record.bounded |= !whole || analysis.left_off > 0;
        write(&mut record, &(analysis.commit.map(super::objects::ObjectId::hex), states));
        record.trim();
        folder.store(&record).map_err(|error| ChangesError::Disk(error.to_string()))
    }
}

/// The commit and what is other than committed.
type Noted = (Option<String>, StatesRecord);

/// Keeps a copy of each file that is other than committed.
fn copy_all(analysis: &Analysis, record: &mut Record, folder: &RecordFolder) -> Result<(), ChangesError> {
    let contents = Contents::of(&analysis.root, Some(folder.clone()))?;
    for (path, state) in analysis.now.iter().take(super::record::STATES) {
        let Some(state) = state else { continue };
        if state.mode == super::repository::LINK || state.blob().is_some_and(|id| folder.has(id)) {
            continue;
        }
        if state.size > COPY {
            record.bounded = true;
        } else if let Ok(content) = contents.content(path, state) {
            folder.copy(record, &content);
        }
    }
    Ok(())
}

impl Record {
    /// Notes what the session began with, once.
    fn begin(&mut self, (commit, states): &Noted, late: bool) {
        let at = now();
        self.base.get_or_insert_with(|| BaseRecord { commit: commit.clone(), at, states: states.clone(), late });
    }

    fn run_began(&mut self, run_id: &RunId, queued: Option<String>, noted: &Noted) {
        if self.runs.iter().any(|known| known.run_id == *run_id) {
            return;
        }
        self.begin(noted, true);
        let (at, run_id): (Timestamp, RunId) = (now(), run_id.clone());
        let run = match self.pending.take() {
            // The prompt's own note: the agent may have begun to write since.
            Some(pending) if queued.is_none() && at.as_millis() - pending.at.as_millis() < PENDING_MILLIS => {
                RunRecord { run_id, at: pending.at, prompt: pending.prompt, start: pending.start, end: None }
            }
            _ => RunRecord { run_id, at, prompt: queued.unwrap_or_default(), start: noted.1.clone(), end: None },
        };
        self.runs.push(run);
    }
}
