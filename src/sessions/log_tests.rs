//! The log over a real store: verdicts, cursors, and readers that join while it grows.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use super::log::{After, Entry, Filter, Log, NewEvent, Resume, Rows};
use crate::model::*;
use crate::store::{Durability, MemoryStore, ReadLimit, SessionRow, SqliteStore, Store, Trim};

const LIMIT: ReadLimit = ReadLimit { events: 100, bytes: 1 << 20 };

fn origin(n: usize) -> Arc<Origin> {
    Arc::new(Origin {
        session_id: SessionId::trusted(format!("s_{n}")),
        runtime_id: RuntimeId::trusted("demo"),
        dialect: "acp".into(),
    })
}

/// An entry of `count` events of a session, numbered from `seq`, with the session's row.
fn entry(origin: &Arc<Origin>, seq: u64, count: u64, bytes: usize) -> Entry {
    let events = (seq..seq + count).map(|seq| NewEvent {
        run_id: RunId::trusted("r_1"),
        seq,
        at: Timestamp::from_millis(1),
        kind: Kind::AgentMessageChunk,
        body: format!(r#"{{"n":{seq},"x":"{}"}}"#, "x".repeat(bytes)).into(),
        native: None,
    });
    let row = SessionRow {
        session_id: origin.session_id.clone(),
        runtime_id: origin.runtime_id.clone(),
        dialect: origin.dialect.to_string(),
        state: b"{}".to_vec(),
        as_of: Position::START,
        spare_from: None,
    };
    Entry {
        origin: Arc::clone(origin),
        events: events.collect(),
        rows: Some(Box::new(move |_| Rows { sessions: vec![row], ..Rows::default() })),
        kept: None,
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
async fn an_attach_promises_only_what_holds() {
    let log = log();
    let one = origin(1);
    log.commit(entry(&one, 0, 10, 10)).await.unwrap();
    let cursor = |position| After::Cursor(log.cursor(Position(position)));
    let other = After::Cursor(Cursor { epoch: Epoch::new("other").unwrap(), position: Position(5) });
    let all = Filter::all();
    for (after, resume, from) in [
        (After::Oldest, Resume::Ok, 0),
        (After::Now, Resume::Ok, 10),
        (cursor(0), Resume::Ok, 0),
        (cursor(10), Resume::Ok, 10),
        (cursor(11), Resume::Ahead, 10),
        (other, Resume::Reset, 10),
    ] {
        let attach = log.attach(&all, &after);
        assert_eq!((attach.resume, attach.after.0), (resume, from), "{after:?}");
    }
    let trim = Trim { session_id: one.session_id.clone(), through: Position(10), base: None };
    assert_eq!(log.trim(&[trim]).unwrap(), 1);
    assert_eq!(log.attach(&all, &cursor(3)).resume, Resume::Gap);
    assert_eq!(log.attach(&all, &cursor(10)).resume, Resume::Ok);
    assert_eq!(log.attach(&all, &After::Oldest).resume, Resume::Ok);
    let elsewhere = Filter::session(SessionId::trusted("s_2"));
    assert_eq!(log.attach(&elsewhere, &cursor(3)).resume, Resume::Ok, "another session lost nothing");
}

#[tokio::test]
async fn what_is_forgotten_is_gone_from_the_ring_too_and_nothing_else_is() {
    let log = log();
    let (one, two) = (origin(1), origin(2));
    for round in 0..3 {
        log.commit(entry(&one, round * 10, 10, 10)).await.unwrap();
        log.commit(entry(&two, round * 10, 10, 10)).await.unwrap();
    }
    log.forget(&one.session_id).unwrap();
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
async fn a_reader_gets_all_of_it_from_the_store_and_from_the_ring() {
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
async fn readers_that_join_while_it_grows_see_no_gap_and_no_repeat() {
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
                let attach = log.attach(&Filter::all(), &After::Oldest);
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

#[tokio::test]
async fn what_a_reader_may_ask_beside_an_event_is_known_before_the_event_is_seen() {
    let log = log();
    let known = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let one = origin(1);
    let mut head = log.watch();
    let (watched, seen) = (Arc::clone(&known), log.clone());
    let reader = tokio::spawn(async move {
        while head.borrow_and_update().0 < 500 {
            let now = seen.head().0;
            assert!(watched.load(std::sync::atomic::Ordering::SeqCst) >= now);
            head.changed().await.unwrap();
        }
    });
    for n in 0..500 {
        let known = Arc::clone(&known);
        let kept = move |first: Position| known.store(first.0, std::sync::atomic::Ordering::SeqCst);
        log.commit(Entry { kept: Some(Box::new(kept)), ..entry(&one, n, 1, 1) }).await.unwrap();
    }
    reader.await.unwrap();
}

#[tokio::test]
async fn positions_go_on_after_a_restart_and_cursors_hold() {
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
            Err(crate::store::StoreError::Locked) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(store.head(), Position(7));
    let log = Log::open(Arc::new(store)).unwrap();
    let attach = log.attach(&Filter::all(), &After::Cursor(cursor));
    assert_eq!(attach.resume, Resume::Ok);
    assert_eq!(log.commit(entry(&one, 7, 1, 10)).await.unwrap(), Position(8));
    assert_eq!(all(&log, &Filter::all(), attach.after).await.len(), 4);
}
