//! The log's writer: the holder of its lock changes the store.
//!
//! A small commit is made at once, on the thread that decided it, if no other work is in progress ([`CommitQueue::commit_now`]). All
//! other work goes to the writer's thread: it commits in groups what has arrived meanwhile, and between two groups it removes one small
//! part of the deleted data, so that no caller waits for a deletion.

use parking_lot::Mutex;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use super::log_shared::LogShared;
use super::{CommitEntry, CommitRows};
use plexus_metrics::metrics;
use plexus_protocol::{Event, Origin, Position, SessionId, Timestamp};
use plexus_store::{Batch, StoreError, Trim};

/// Approximate maximum number of events in one group commit; beyond it the next group begins.
const GROUP_EVENTS: usize = 4096;
/// Approximate maximum size of one group commit, in bytes.
const GROUP_BYTES: usize = 4 << 20;
/// Maximum size of the events in a commit that is made at once, in bytes: a larger one would block a thread that serves clients.
const AT_ONCE_BYTES: usize = 32 << 10;
/// Capacity of the writer thread's queue, in commits; when it is full, sessions wait, then drivers, then agents.
const WAITING: usize = 1024;
/// Maximum number of deleted sessions that are remembered, so that late entries do not create their rows again.
const DELETED_KEPT: usize = 1 << 16;

type CommitDone<T> = oneshot::Sender<Result<T, Arc<StoreError>>>;

/// A job for the writer's thread.
pub(super) enum WriterJob {
    Commit { entry: CommitEntry, done: CommitDone<Position> },
    Forget { session: SessionId, removed: oneshot::Sender<()>, done: CommitDone<()> },
    Trim { trims: Vec<Trim>, done: CommitDone<usize> },
    Retire { before: Option<Timestamp>, max: usize, done: CommitDone<bool> },
}

/// The notifications to send once an entry is stored.
struct CommitNotice {
    first: Position,
    on_stored: Option<Box<dyn FnOnce(Position) + Send>>,
    received: Option<Instant>,
    done: CommitDone<Position>,
}

/// Changes the store on behalf of the log. Cheap to clone; the writer's thread ends when the last clone is dropped.
#[derive(Clone)]
pub(super) struct CommitQueue {
    writer: Arc<Mutex<LogWriter>>,
    jobs: mpsc::Sender<WriterJob>,
}

impl CommitQueue {
    /// Starts the writer's thread.
    pub(super) fn start(shared: Arc<LogShared>) -> std::io::Result<Self> {
        let (jobs, received) = mpsc::channel(WAITING);
        let writer = Arc::new(Mutex::new(LogWriter::new(shared)));
        let thread_writer = Arc::clone(&writer);
        std::thread::Builder::new().name("log-writer".into()).spawn(move || run(&thread_writer, received))?;
        Ok(Self { writer, jobs })
    }

    /// Commits an entry. If the future is dropped, the entry may or may not be stored.
    ///
    /// # Errors
    /// The errors of [`Log::commit`](super::Log::commit).
    pub(super) async fn commit(&self, entry: CommitEntry) -> Result<Position, Arc<StoreError>> {
        match self.commit_now(entry) {
            Ok(outcome) => outcome,
            Err(entry) => self.order(|done| WriterJob::Commit { entry, done }).await?,
        }
    }

    /// Commits an entry on this thread if that takes only about ten microseconds: no job is waiting, the writer's lock is free, the entry
    /// is small and needs no sync, and the store has no checkpoint due. Returns the entry otherwise.
    fn commit_now(&self, entry: CommitEntry) -> Result<Result<Position, Arc<StoreError>>, CommitEntry> {
        let small = !entry.sync && !entry.events.is_empty() && entry.weight() <= AT_ONCE_BYTES;
        if !small || self.jobs.capacity() < self.jobs.max_capacity() {
            return Err(entry);
        }
        let Some(mut writer) = self.writer.try_lock() else { return Err(entry) };
        if !writer.shared.store.commit_is_quick() {
            return Err(entry);
        }
        let (done, mut outcome) = oneshot::channel();
        writer.commit(vec![(entry, done)]);
        Ok(outcome.try_recv().unwrap_or_else(|_| Err(writer_ended())))
    }

    /// Sends the writer's thread a job and waits for its result.
    pub(super) async fn order<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<T>) -> WriterJob,
    ) -> Result<T, Arc<StoreError>> {
        let (done, outcome) = oneshot::channel();
        self.jobs.send(job(done)).await.map_err(|_| writer_ended())?;
        outcome.await.map_err(|_| writer_ended())
    }
}

fn writer_ended() -> Arc<StoreError> {
    Arc::new(StoreError::Io("the log's writer has ended".into()))
}

/// Runs the writer's thread until the last [`CommitQueue`] is dropped. Bytes that are still to be removed then are removed after the next
/// start.
fn run(writer: &Mutex<LogWriter>, mut jobs: mpsc::Receiver<WriterJob>) {
    let (mut next, mut sweeping) = (None, true);
    loop {
        let job = match next.take() {
            Some(job) => Some(job),
            None if sweeping => match jobs.try_recv() {
                Ok(job) => Some(job),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return,
            },
            None => match jobs.blocking_recv() {
                Some(job) => Some(job),
                None => return,
            },
        };
        let mut writer = writer.lock();
        next = job.and_then(|job| writer.perform(job, &mut jobs));
        if writer.sweeping {
            writer.sweep();
        }
        sweeping = writer.sweeping;
    }
}

/// The writer, behind a lock: one caller at a time.
pub(super) struct LogWriter {
    shared: Arc<LogShared>,
    /// `true` if there may be bytes to remove.
    sweeping: bool,
    /// Callers that wait until the bytes of a session are removed.
    waiting: Vec<(SessionId, oneshot::Sender<()>)>,
    deleted: HashSet<SessionId>,
    /// The deleted sessions in the order of their deletion.
    deleted_order: VecDeque<SessionId>,
}

impl LogWriter {
    fn new(shared: Arc<LogShared>) -> Self {
        // An earlier gateway may have left bytes to remove.
        let (deleted, deleted_order) = (HashSet::new(), VecDeque::new());
        Self { shared, sweeping: true, waiting: Vec::new(), deleted, deleted_order }
    }

    fn perform(&mut self, job: WriterJob, jobs: &mut mpsc::Receiver<WriterJob>) -> Option<WriterJob> {
        match job {
            WriterJob::Commit { entry, done } => {
                let mut group = vec![(entry, done)];
                let next = gather(&mut group, jobs);
                self.commit(group);
                return next;
            }
            WriterJob::Forget { session, removed, done } => self.forget(session, removed, done),
            WriterJob::Trim { trims, done } => {
                let trimmed = self.shared.store.trim(&trims).map_err(Arc::new);
                // Set even if nothing was trimmed: a step that failed before is tried again.
                self.sweeping = true;
                let _ = done.send(trimmed.map(|lost| {
                    self.shared.trimmed(&lost);
                    lost.len()
                }));
            }
            WriterJob::Retire { before, max, done } => {
                self.sweeping = true;
                let _ = done.send(self.shared.store.retire(before, max).map_err(Arc::new));
            }
        }
        None
    }

    fn forget(&mut self, session: SessionId, removed: oneshot::Sender<()>, done: CommitDone<()>) {
        match self.shared.store.mark_for_deletion(&session) {
            Ok(_) => {
                self.shared.forget_session(&session);
                if self.deleted.insert(session.clone()) {
                    self.deleted_order.push_back(session.clone());
                }
                if self.deleted_order.len() > DELETED_KEPT
                    && let Some(old) = self.deleted_order.pop_front()
                {
                    self.deleted.remove(&old);
                }
                self.sweeping = true;
                self.waiting.push((session, removed));
                let _ = done.send(Ok(()));
            }
            Err(error) => drop(done.send(Err(Arc::new(error)))),
        }
    }

    /// Removes a small part of the deleted data.
    fn sweep(&mut self) {
        match self.shared.store.sweep() {
            Ok(more) => self.sweeping = more,
            Err(error) => {
                // The next deletion, retention or start continues it.
                tracing::warn!(%error, "what was deleted could not be removed from the disk yet");
                self.sweeping = false;
            }
        }
        let sweeping = self.sweeping;
        let waiting = std::mem::take(&mut self.waiting);
        let (waiting, ended): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|(session, _)| sweeping && self.shared.store.is_being_deleted(session));
        self.waiting = waiting;
        for (_, removed) in ended {
            let _ = removed.send(());
        }
    }

    /// Returns the session that an entry needs and that does not exist. The rows of the sessions in `new` are in the same group.
    fn missing(&self, origin: &Origin, events: bool, rows: &CommitRows, new: &HashSet<SessionId>) -> Option<SessionId> {
        let store = &self.shared.store;
        let deleted = |session: &SessionId| self.deleted.contains(session) || store.is_being_deleted(session);
        let exists = |session: &SessionId| {
            store.holds(session) || new.contains(session) || rows.sessions.iter().any(|row| row.session_id == *session)
        };
        if let Some(row) = rows.sessions.iter().find(|row| deleted(&row.session_id)) {
            return Some(row.session_id.clone());
        }
        let event_sessions = events.then_some(&origin.session_id).into_iter();
        let row_sessions = rows.texts.iter().map(|text| &text.session_id);
        let row_sessions = row_sessions.chain(rows.marks.iter().map(|(session, _)| session));
        let row_sessions = row_sessions.chain(rows.prompts.iter().map(|prompt| &prompt.session_id));
        let row_sessions = row_sessions.chain(rows.surfaces.iter().map(|change| &change.session_id));
        let row_sessions = row_sessions.chain(rows.spent.iter().map(|change| &change.session_id));
        event_sessions.chain(row_sessions).find(|session| !exists(session)).cloned()
    }

    /// Stores a group in one transaction, publishes it, and notifies the callers. Entries of sessions that do not exist are refused
    /// individually.
    fn commit(&mut self, group: Vec<(CommitEntry, CommitDone<Position>)>) {
        let mut head = *self.shared.head.borrow();
        let mut batch = Batch::default();
        let (mut pieces, mut shares) = (Vec::with_capacity(group.len()), Vec::with_capacity(group.len()));
        let mut new = HashSet::new();
        for (entry, done) in group {
            let first = head.next();
            let rows = entry.rows.map(|rows| rows(first)).unwrap_or_default();
            if let Some(session) = self.missing(&entry.origin, !entry.events.is_empty(), &rows, &new) {
                let _ = done.send(Err(Arc::new(StoreError::NoSession(session))));
                continue;
            }
            new.extend(rows.sessions.iter().map(|row| row.session_id.clone()));
            let events = entry.events.into_iter().map(|event| {
                head = head.next();
                Arc::new(Event {
                    position: head,
                    origin: Arc::clone(&entry.origin),
                    run_id: event.run_id,
                    seq: event.seq,
                    at: event.at,
                    kind: event.kind,
                    body: event.body,
                    native: event.native,
                })
            });
            let CommitRows { sessions, requests, texts, devices, pushes, marks, prompts, surfaces, spent } = rows;
            let events = events.collect();
            shares.push(batch.append(Batch {
                events,
                sessions,
                requests,
                texts,
                devices,
                pushes,
                marks,
                prompts,
                surfaces,
                spent,
                sync: entry.sync,
                reserved: false,
            }));
            pieces.push(CommitNotice { first, on_stored: entry.on_stored, received: entry.received, done });
        }
        if pieces.is_empty() {
            return;
        }
        match self.keep(&batch) {
            Ok(()) => self.notify(&batch.events, pieces),
            // A full disk affects all entries, but space is reserved for answers.
            Err(StoreError::Full) => {
                let apart = batch.apart(&shares).into_iter().zip(pieces);
                let (answers, others): (Vec<_>, Vec<_>) = apart.partition(|(batch, _)| batch.sync);
                self.refuse(others, StoreError::Full);
                let reserved = |(batch, piece)| (Batch { reserved: true, ..batch }, piece);
                self.commit_apart(answers.into_iter().map(reserved).collect());
            }
            // Any other error may be caused by one of the entries.
            Err(error) if pieces.len() == 1 => {
                self.refuse(vec![(batch, pieces.remove(0))], error);
            }
            Err(error) => {
                metrics().store_failures.inc();
                tracing::warn!(%error, events = batch.events.len(), "a group was refused: each of it is tried by itself");
                self.commit_apart(batch.apart(&shares).into_iter().zip(pieces).collect());
            }
        }
    }

    /// Reports that entries were not stored.
    fn refuse(&self, entries: Vec<(Batch, CommitNotice)>, error: StoreError) {
        if entries.is_empty() {
            return;
        }
        metrics().store_failures.inc();
        let events: usize = entries.iter().map(|(batch, _)| batch.events.len()).sum();
        tracing::warn!(%error, events, "nothing of a group was stored");
        let error = Arc::new(error);
        for (_, piece) in entries {
            let _ = piece.done.send(Err(Arc::clone(&error)));
        }
    }

    /// Stores the entries of a refused group one by one, at the positions that they were given.
    fn commit_apart(&mut self, entries: Vec<(Batch, CommitNotice)>) {
        let (mut events, mut stored) = (Vec::new(), Vec::new());
        for (batch, piece) in entries {
            match self.keep(&batch) {
                Ok(()) => {
                    events.extend(batch.events);
                    stored.push(piece);
                }
                Err(error) => self.refuse(vec![(batch, piece)], error),
            }
        }
        self.notify(&events, stored);
    }

    fn keep(&self, batch: &Batch) -> Result<(), StoreError> {
        let began = Instant::now();
        let outcome = self.shared.store.commit(batch);
        metrics().store_commit.observe(began.elapsed().as_secs_f64());
        outcome
    }

    fn notify(&self, events: &[Arc<Event>], pieces: Vec<CommitNotice>) {
        metrics().events.inc_by(events.len() as u64);
        metrics().event_bytes.inc_by(events.iter().map(|event| event.body.len() as u64 + 64).sum());
        metrics().store_group.observe(events.len() as f64);
        let received = pieces.iter().filter_map(|piece| piece.received).min();
        let mut waiting = Vec::with_capacity(pieces.len());
        for CommitNotice { first, on_stored, done, .. } in pieces {
            if let Some(on_stored) = on_stored {
                on_stored(first);
            }
            waiting.push((done, first));
        }
        self.shared.show(events, received);
        for (done, first) in waiting {
            let _ = done.send(Ok(first));
        }
    }
}

/// Adds the entries that arrived meanwhile to the group; returns the first job that cannot be part of a group.
fn gather(
    group: &mut Vec<(CommitEntry, CommitDone<Position>)>,
    jobs: &mut mpsc::Receiver<WriterJob>,
) -> Option<WriterJob> {
    let (mut events, mut bytes) = (0, 0);
    if let Some((entry, _)) = group.first() {
        (events, bytes) = (entry.events.len(), entry.weight());
    }
    while events < GROUP_EVENTS && bytes < GROUP_BYTES {
        match jobs.try_recv() {
            Ok(WriterJob::Commit { entry, done }) => {
                events += entry.events.len();
                bytes += entry.weight();
                group.push((entry, done));
            }
            Ok(other) => return Some(other),
            Err(_) => break,
        }
    }
    None
}
