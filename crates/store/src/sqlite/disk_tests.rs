//! Lost and damaged files, and the space that is reserved for answers.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use tempfile::{TempDir, tempdir};

use super::*;
use crate::contract::{ALL, commit, event, event_with, row, session};

fn open(dir: &Path) -> SqliteStore {
    SqliteStore::open(dir, Durability::Process).unwrap()
}

/// A copy of some files of a store, as another program would find them.
fn copy_of(dir: &Path, files: &[&str]) -> TempDir {
    let copy = tempdir().unwrap();
    for file in files {
        fs::copy(dir.join(file), copy.path().join(file)).unwrap();
    }
    copy
}

#[test]
fn sqlite_lost_write_ahead_log_starts_a_new_epoch() {
    let dir = tempdir().unwrap();
    drop(open(dir.path()));
    let store = open(dir.path());
    for position in 1..=20 {
        commit(&store, vec![event(1, position)]);
    }
    let (epoch, all) = (store.epoch(), ["plexus.db", "plexus.db-wal", "plexus.head"]);
    let whole = copy_of(dir.path(), &all);
    let again = open(whole.path());
    assert_eq!((again.epoch(), again.head()), (epoch.clone(), Position(20)));

    let lost = copy_of(dir.path(), &["plexus.db", "plexus.head"]);
    let cut = copy_of(dir.path(), &all);
    let wal = fs::File::options().write(true).open(cut.path().join("plexus.db-wal")).unwrap();
    wal.set_len(wal.metadata().unwrap().len() / 2).unwrap();
    for damaged in [lost, cut] {
        let store = open(damaged.path());
        assert!(store.head() < Position(20));
        assert_ne!(store.epoch(), epoch, "a cursor of a client may mean another event now");
        let (after, head) = (store.epoch(), store.head());
        commit(&store, vec![event(1, head.0 + 1)]);
        drop(store);
        assert_eq!(open(damaged.path()).epoch(), after, "once");
    }
}

#[test]
fn sqlite_reserve_is_released_and_taken_again() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let file = dir.path().join("plexus.reserve");
    let whole = || file.metadata().unwrap().blocks() * 512 >= reserve::RESERVED;
    assert!(whole());
    let released = store.reserve.release_for(|| file.metadata().unwrap().len());
    assert_eq!((released, whole()), (0, true));
}

#[test]
fn sqlite_damaged_page_is_repaired_around() {
    const SESSIONS: u64 = 3;
    const EVENTS: u64 = 60;
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    for n in 0..EVENTS {
        for number in 1..=SESSIONS {
            let body = format!(r#"{{"n":{n},"x":"{}"}}"#, "x".repeat(3000));
            let position = n * SESSIONS + number;
            let batch = Batch {
                events: vec![event_with(number, position, body.into(), None)],
                sessions: if n == 0 { vec![row(number)] } else { Vec::new() },
                texts: vec![TextRow {
                    session_id: session(number),
                    position: Position(position),
                    role: "user",
                    text: format!("words of {position}"),
                }],
                ..Batch::default()
            };
            store.commit(&batch).unwrap();
        }
    }
    let (epoch, head) = (store.epoch(), store.head());
    let originals: Vec<Vec<Event>> =
        (1..=SESSIONS).map(|number| store.read(&session(number), Position::START, ALL).unwrap()).collect();
    drop(store);
    assert!(matches!(repair(dir.path()), Ok(None)), "nothing to repair");

    let page = 8192;
    let pages = dir.path().join(open::DATABASE).metadata().unwrap().len() / page;
    assert!(pages > 60, "{pages}");
    let (mut repaired, mut kept, mut min) = (0, 0, usize::MAX);
    for damaged in (2..=pages).step_by(2) {
        let copy = copy_of(dir.path(), &["plexus.db", "plexus.head"]);
        let file = fs::File::options().write(true).open(copy.path().join(open::DATABASE)).unwrap();
        file.write_all_at(&vec![0xa5; page as usize], (damaged - 1) * page).unwrap();
        drop(file);
        let Some(report) = repair(copy.path()).unwrap() else { continue };
        repaired += 1;
        assert!(report.copies.join("plexus.db").exists());
        assert!(matches!(repair(copy.path()), Ok(None)), "page {damaged}: {report:?}");
        let store = open(copy.path());
        assert_ne!(store.epoch(), epoch);
        assert!(store.head() >= head, "positions are not used again");
        let mut here = 0;
        for (number, original) in (1..=SESSIONS).zip(&originals) {
            let events = store.read(&session(number), Position::START, ALL).unwrap();
            assert!(events.iter().all(|event| original.contains(event)), "page {damaged}");
            here += events.len();
        }
        // One page holds the rows of few events; that of the sessions has all three.
        let sessions = report.tables.iter().find(|table| table.name == "sessions").unwrap();
        if sessions.damaged == 0 {
            min = min.min(here);
        }
        kept += here;
        let next = store.head().0 + 1;
        store.commit(&Batch { events: vec![event(1, next)], sessions: vec![row(1)], ..Batch::default() }).unwrap();
    }
    let all = (SESSIONS * EVENTS) as usize;
    assert!(repaired > 20 && min >= all - 40 && kept > repaired * (all - 20), "{repaired} {min} {kept}");
}

#[test]
fn sqlite_damaged_header_is_left_alone() {
    let dir = tempdir().unwrap();
    drop(open(dir.path()));
    let path = dir.path().join(open::DATABASE);
    fs::File::options().write(true).open(&path).unwrap().write_all_at(&[0; 100], 0).unwrap();
    let before = fs::read(&path).unwrap();
    assert!(repair(dir.path()).is_err());
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(SqliteStore::open(dir.path(), Durability::Process).is_err());
}
