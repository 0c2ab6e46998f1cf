//! The log over a real store: verdicts, cursors, and readers that join while it grows.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use super::{CommitEntry, CommitRows, Filter, Log, NewEvent, StartAfter};
use plexus_protocol::api::history::ResumeVerdict;
use plexus_protocol::*;
use plexus_store::{Durability, MemoryStore, ReadLimit, SessionRow, SqliteStore, Store, Trim};

const LIMIT: ReadLimit = ReadLimit { events: 100, bytes: 1 << 20 };

fn origin(n: usize) -> Arc<Origin> {
    Arc::new(Origin {
        session_id: SessionId::trusted(format!("s_{n}")),
        runtime_id: RuntimeId::trusted("demo"),
        dialect: "acp".into(),
    })
}

fn row(origin: &Origin) -> SessionRow {
    SessionRow {
        session_id: origin.session_id.clone(),
        runtime_id: origin.runtime_id.clone(),
        dialect: origin.dialect.to_string(),
        state: b"{}".to_vec(),
        as_of: Position::START,
        spare_from: None,
    }
}

/// An entry of `count` events of a session, numbered from `seq`, with the session's row.
fn entry(origin: &Arc<Origin>, seq: u64, count: u64, bytes: usize) -> CommitEntry {
    let events = (seq..seq + count).map(|seq| NewEvent {
        run_id: RunId::trusted("r_1"),
        seq,
        at: Timestamp::from_millis(1),
        kind: Kind::AgentMessageChunk,
        body: format!(r#"{{"n":{seq},"x":"{}"}}"#, "x".repeat(bytes)).into(),
        native: None,
    });
    let row = row(origin);
    CommitEntry {
        origin: Arc::clone(origin),
        events: events.collect(),
        rows: Some(Box::new(move |_| CommitRows { sessions: vec![row], ..CommitRows::default() })),
        on_stored: None,
        received: None,
        sync: false,
    }
}

fn log() -> Log {
    Log::open(Arc::new(MemoryStore::new().unwrap())).unwrap()
}

async fn all(log: &Log, filter: &Filter, mut after: Position) -> Vec<Arc<Event>> {
    let mut events = Vec::new();
    loop {
        let page = log.read(filter, after, LIMIT).await.unwrap();
        if page.next <= after {
            return events;
        }
        after = page.next;
        events.extend(page.events);
    }
}

#[tokio::test]
async fn log_attach_promises_only_what_it_can_deliver() {
    let log = log();
    let one = origin(1);
    log.commit(entry(&one, 0, 10, 10)).await.unwrap();
    let cursor = |position| StartAfter::Cursor(log.cursor(Position(position)));
    let other = StartAfter::Cursor(Cursor { epoch: Epoch::new("other").unwrap(), position: Position(5) });
    let all = Filter::all();
    for (after, resume, from) in [
        (StartAfter::Oldest, ResumeVerdict::Ok, 0),
        (StartAfter::Now, ResumeVerdict::Ok, 10),
        (cursor(0), ResumeVerdict::Ok, 0),
        (cursor(10), ResumeVerdict::Ok, 10),
        (cursor(11), ResumeVerdict::Ahead, 10),
        (other, ResumeVerdict::Reset, 10),
    ] {
        let attach = log.attach(&all, &after);
        assert_eq!((attach.resume, attach.after.0), (resume, from), "{after:?}");
    }
    let trim = Trim { session_id: one.session_id.clone(), through: Position(10), base: None };
    assert_eq!(log.trim(vec![trim]).await.unwrap(), 1);
    assert_eq!(log.attach(&all, &cursor(3)).resume, ResumeVerdict::Gap);
    assert_eq!(log.attach(&all, &cursor(10)).resume, ResumeVerdict::Ok);
    assert_eq!(log.attach(&all, &StartAfter::Oldest).resume, ResumeVerdict::Ok);
    let elsewhere = Filter::session(SessionId::trusted("s_2"));
    assert_eq!(log.attach(&elsewhere, &cursor(3)).resume, ResumeVerdict::Ok, "another session lost nothing");
}

#[tokio::test]
async fn log_forgets_a_session_in_ring_and_store_and_no_other() {
    let log = log();
    let (one, two) = (origin(1), origin(2));
    for round in 0..3 {
        log.commit(entry(&one, round * 10, 10, 10)).await.unwrap();
        log.commit(entry(&two, round * 10, 10, 10)).await.unwrap();
    }
    log.forget(&one.session_id).await.unwrap().await.unwrap();
    let page = log.read_hot(&Filter::all(), Position::START, LIMIT).unwrap();
    assert_eq!(page.next, Position(60), "its places stay, empty");
    let seqs: Vec<u64> = page.events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (0..30).collect::<Vec<_>>());
    assert!(page.events.iter().all(|event| event.origin.session_id == two.session_id));
    log.commit(entry(&two, 30, 10, 10)).await.unwrap();
    let page = log.read_hot(&Filter::all(), Position(55), LIMIT).unwrap();
    assert_eq!((page.events.len(), page.next), (15, Position(70)));
}

#[tokio::test]
async fn log_reader_gets_all_events_from_store_and_ring() {
    let log = log();
    let origins: Vec<_> = (0..5).map(origin).collect();
    // Twice what the ring holds, five sessions taking turns.
    for round in 0..70u64 {
        for origin in &origins {
            log.commit(entry(origin, round * 10, 10, 4096)).await.unwrap();
        }
    }
    assert!(log.read_hot(&Filter::all(), Position(1), LIMIT).is_none(), "the ring has let go of the oldest");
    let events = all(&log, &Filter::all(), Position::START).await;
    let positions: Vec<u64> = events.iter().map(|event| event.position.0).collect();
    assert_eq!(positions, (1..=3500).collect::<Vec<_>>());
    for origin in &origins {
        let events = all(&log, &Filter::session(origin.session_id.clone()), Position::START).await;
        let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (0..700).collect::<Vec<_>>());
    }
    let from_the_middle = all(&log, &Filter::all(), Position(1234)).await;
    assert_eq!(from_the_middle[0].position, Position(1235));
    assert_eq!(from_the_middle.len(), 3500 - 1234);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn log_readers_joining_while_it_grows_see_no_gap_or_repeat() {
    const EVENTS: u64 = 20_000;
    let log = log();
    let readers: Vec<_> = (0..50u64)
        .map(|n| {
            let log = log.clone();
            tokio::spawn(async move {
                let mut head = log.watch();
                // Each joins at its own place.
                while head.borrow_and_update().0 < n * EVENTS / 60 {
                    head.changed().await.unwrap();
                }
                let attach = log.attach(&Filter::all(), &StartAfter::Oldest);
                let (mut after, mut seen) = (attach.after, 0);
                while seen < EVENTS {
                    let page = log.read(&Filter::all(), after, LIMIT).await.unwrap();
                    for event in &page.events {
                        assert_eq!(event.seq, seen);
                        seen += 1;
                    }
                    if page.next == after {
                        head.wait_for(|head| *head > after).await.unwrap();
                    }
                    after = page.next;
                }
            })
        })
        .collect();
    let one = origin(1);
    let mut seq = 0;
    while seq < EVENTS {
        let count = (seq % 7 + 1).min(EVENTS - seq);
        log.commit(entry(&one, seq, count, 600)).await.unwrap();
        seq += count;
    }
    for reader in readers {
        reader.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn log_cursor_of_a_page_is_never_ahead_of_the_log() {
    const EVENTS: u64 = 4000;
    let log = log();
    let readers = (0..2).map(|_| {
        let log = log.clone();
        std::thread::spawn(move || {
            let mut after = Position::START;
            while after.0 < EVENTS {
                let Some(page) = log.read_hot(&Filter::all(), after, LIMIT) else { continue };
                let back = log.attach(&Filter::all(), &StartAfter::Cursor(log.cursor(page.next)));
                assert_eq!(
                    (back.resume, back.after),
                    (ResumeVerdict::Ok, page.next),
                    "a client that comes back at once"
                );
                after = page.next;
            }
        })
    });
    let readers: Vec<_> = readers.collect();
    for seq in 0..EVENTS {
        log.commit(entry(&origin(1), seq, 1, 10)).await.unwrap();
    }
    for reader in readers {
        reader.join().unwrap();
    }
}

#[tokio::test]
async fn log_entry_callback_runs_before_its_events_are_visible() {
    let log = log();
    let stored = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let one = origin(1);
    let mut head = log.watch();
    let (watched, seen) = (Arc::clone(&stored), log.clone());
    let reader = tokio::spawn(async move {
        while head.borrow_and_update().0 < 500 {
            let now = seen.head().0;
            assert!(watched.load(std::sync::atomic::Ordering::SeqCst) >= now);
            head.changed().await.unwrap();
        }
    });
    for n in 0..500 {
        let stored = Arc::clone(&stored);
        let kept = move |first: Position| stored.store(first.0, std::sync::atomic::Ordering::SeqCst);
        log.commit(CommitEntry { on_stored: Some(Box::new(kept)), ..entry(&one, n, 1, 1) }).await.unwrap();
    }
    reader.await.unwrap();
}

#[tokio::test]
async fn log_positions_and_cursors_continue_after_restart() {
    let dir = tempfile::tempdir().unwrap();
    let one = origin(1);
    let cursor = {
        let log = Log::open(Arc::new(SqliteStore::open(dir.path(), Durability::Process).unwrap())).unwrap();
        log.commit(entry(&one, 0, 7, 10)).await.unwrap();
        log.cursor(Position(4))
    };
    let store = loop {
        // The writer thread lets go of the store a moment after the last handle is dropped.
        match SqliteStore::open(dir.path(), Durability::Process) {
            Ok(store) => break store,
            Err(plexus_store::StoreError::Locked) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(store.head(), Position(7));
    let log = Log::open(Arc::new(store)).unwrap();
    let attach = log.attach(&Filter::all(), &StartAfter::Cursor(cursor));
    assert_eq!(attach.resume, ResumeVerdict::Ok);
    assert_eq!(log.commit(entry(&one, 7, 1, 10)).await.unwrap(), Position(8));
    assert_eq!(all(&log, &Filter::all(), attach.after).await.len(), 4);
}

#[tokio::test]
async fn log_late_entry_for_deleted_session_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    let stores: [Arc<dyn Store>; 2] =
        [Arc::new(MemoryStore::new().unwrap()), Arc::new(SqliteStore::open(dir.path(), Durability::Process).unwrap())];
    for store in stores {
        let log = Log::open(store).unwrap();
        let (gone, stays) = (origin(1), origin(2));
        log.commit(entry(&gone, 0, 10, 10)).await.unwrap();
        log.commit(entry(&stays, 0, 10, 10)).await.unwrap();
        log.forget(&gone.session_id).await.unwrap();
        // All of these wait for the writer together, and so are of one group, or of a few.
        let mut all = tokio::task::JoinSet::new();
        for n in 0..60u64 {
            let late = match n % 3 {
                0 => {
                    let text = plexus_store::TextRow {
                        session_id: gone.session_id.clone(),
                        position: Position(1),
                        role: "user",
                        text: "late".into(),
                    };
                    let rows = move |_| CommitRows { texts: vec![text], ..CommitRows::default() };
                    let origin = Arc::clone(&gone);
                    Some(CommitEntry {
                        origin,
                        events: Vec::new(),
                        rows: Some(Box::new(rows)),
                        on_stored: None,
                        received: None,
                        sync: false,
                    })
                }
                // With its row, as a session writes it.
                1 => Some(entry(&gone, n, 1, 10)),
                _ => None,
            };
            let (log, is_late) = (log.clone(), late.is_some());
            let entry = late.unwrap_or_else(|| entry(&stays, n, 1, 10));
            all.spawn(async move { (is_late, log.commit(entry).await) });
        }
        while let Some(done) = all.join_next().await {
            let (late, outcome) = done.unwrap();
            match outcome {
                Ok(_) => assert!(!late),
                Err(error) => assert!(late && matches!(*error, plexus_store::StoreError::NoSession(_)), "{error}"),
            }
        }
        let events = self::all(&log, &Filter::all(), Position::START).await;
        assert_eq!(events.len(), 30);
        assert!(events.iter().all(|event| event.origin.session_id == stays.session_id));
        assert!(log.store().sessions().unwrap().iter().all(|entry| entry.row.session_id == stays.session_id));
    }
}

#[tokio::test]
async fn log_refused_entry_does_not_fail_its_group() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::open(Arc::new(SqliteStore::open(dir.path(), Durability::Process).unwrap())).unwrap();
    let one = origin(1);
    log.commit(entry(&one, 0, 1, 10)).await.unwrap();
    let mut all = tokio::task::JoinSet::new();
    for n in 0..30u64 {
        let mut entry = entry(&one, n, 2, 10);
        if n % 5 == 0 {
            // A position that no store can keep.
            let bad = SessionRow { as_of: Position(u64::MAX), ..row(&one) };
            entry.rows = Some(Box::new(move |_| CommitRows { sessions: vec![bad], ..CommitRows::default() }));
        }
        let log = log.clone();
        all.spawn(async move { (n, log.commit(entry).await) });
    }
    while let Some(done) = all.join_next().await {
        let (n, outcome) = done.unwrap();
        assert_eq!(outcome.is_ok(), n % 5 != 0, "{n}: {outcome:?}");
    }
    // From the ring, over the places of what was refused, and from the store.
    for filter in [Filter::all(), Filter::session(one.session_id.clone())] {
        let events = self::all(&log, &filter, Position::START).await;
        assert_eq!(events.len(), 1 + 24 * 2);
        assert!(events.windows(2).all(|two| two[0].position < two[1].position));
    }
    let stored = log.store().read(&one.session_id, Position::START, ReadLimit { events: 999, bytes: 1 << 20 }).unwrap();
    assert_eq!(stored.len(), 1 + 24 * 2);
    assert!(log.commit(entry(&one, 99, 1, 10)).await.is_ok());
}

#[tokio::test]
async fn log_replay_of_many_sessions_costs_no_more_than_of_one() {
    /// Blocks read for a replay of everything, in pages of a follower.
    async fn cost(sessions: usize) -> (u64, u64) {
        const COMMITS: usize = 1200;
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(dir.path(), Durability::Process).unwrap());
        let log = Log::open(Arc::clone(&store) as Arc<dyn Store>).unwrap();
        let origins: Vec<_> = (0..sessions).map(origin).collect();
        for n in 0..COMMITS {
            let seq = (n / sessions * 10) as u64;
            log.commit(entry(&origins[n % sessions], seq, 10, 1500)).await.unwrap();
        }
        assert!(log.read_hot(&Filter::all(), Position::START, LIMIT).is_none(), "the ring has let go of the oldest");
        let before = store.usage().unwrap().blocks_read;
        let page = ReadLimit { events: 512, bytes: 32 << 10 };
        let (mut after, mut events) = (Position::START, 0);
        loop {
            let read = log.read(&Filter::all(), after, page).await.unwrap();
            if read.next <= after {
                break;
            }
            (after, events) = (read.next, events + read.events.len() as u64);
        }
        (store.usage().unwrap().blocks_read - before, events)
    }
    let (one, of_one) = cost(1).await;
    let (many, of_many) = cost(400).await;
    assert_eq!((of_one, of_many), (12_000, 12_000));
    assert!(many <= 2 * one, "{many} blocks were read of 400 sessions, {one} of one");
}

#[tokio::test]
async fn log_watch_wakes_only_for_matching_events() {
    use futures_util::FutureExt as _;
    let log = log();
    let (one, two) = (origin(1), origin(2));
    let sessions = Some(vec![one.session_id.clone()]);
    let grant = plexus_auth::Grant { sessions, ..plexus_auth::Grant::new(&[Scope::Watch]) };
    let granted = Filter { sessions: None, grant: Some(Arc::new(grant)) };
    let watching = [Filter::session(one.session_id.clone()), granted].map(|filter| log.watch_for(&filter));
    let wide = log.watch_for(&Filter::all());
    for n in 0..20 {
        log.commit(entry(&two, n, 1, 10)).await.unwrap();
        assert!(watching.iter().all(|watch| watch.changed().now_or_never().is_none()));
        assert!(wide.changed().now_or_never().is_some());
    }
    log.commit(entry(&one, 0, 3, 10)).await.unwrap();
    assert!(watching.iter().all(|watch| watch.changed().now_or_never().is_some()));
    assert!(watching.iter().all(|watch| watch.changed().now_or_never().is_none()), "once");
    let filter = Filter::session(one.session_id.clone());
    assert_eq!((log.level(&filter, Position(20)), log.level(&filter, Position(23))), (None, Some(Position(23))));
    log.commit(entry(&two, 20, 1, 10)).await.unwrap();
    assert_eq!(log.level(&filter, Position(23)), Some(Position(24)), "it has everything that there is for it");
}
