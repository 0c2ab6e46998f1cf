//! Tests that need a store on disk: survival, damage, locks, modes, full disks. One file, since several tests start themselves again as
//! a child process with the same few lines.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use proptest::prelude::*;
use tempfile::tempdir;

use super::epoch::boot_id;
use super::*;
use crate::PromptChange;
use crate::contract::{ALL, commit, event, event_with, follow_model, positions, row, session, step, sweep};

/// Set for a child process of a test: the directory to work in.
const CHILD: &str = "PLEXUS_STORE_TEST_CHILD";

fn open(dir: &Path) -> SqliteStore {
    SqliteStore::open(dir, Durability::Process).unwrap()
}

/// A connection that bypasses the store.
fn raw(dir: &Path) -> Connection {
    Connection::open(dir.join(open::DATABASE)).unwrap()
}

/// Every file of a directory with its content, except the lock and SQLite's shared memory, which hold no state.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()));
    named.filter(|(name, _)| name != open::LOCK && !name.ends_with("-shm")).collect()
}

/// Runs the named test again in a child process that works in `dir`.
fn child(test: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([&format!("sqlite::tests::{test}"), "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// In a child started by [`child`]: its directory.
fn child_dir() -> Option<std::path::PathBuf> {
    std::env::var_os(CHILD).map(Into::into)
}

/// Writes a line to stdout past the test runner, which may be in the middle of a line.
fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

#[test]
fn sqlite_keeps_everything_when_reopened() {
    let dir = tempdir().unwrap();
    let first = open(dir.path());
    let epoch = first.epoch();
    // Enough commits to pass a tally and to have some after it.
    for n in 0..600u64 {
        commit(&first, vec![event(n % 3, n * 2 + 1), event(n % 3, n * 2 + 2)]);
    }
    let tallied = raw(dir.path()).query_row("SELECT head FROM meta", [], |row| row.get::<_, i64>(0)).unwrap();
    assert!(tallied > 1200 - 2 * i64::from(TALLY_EVERY), "opening would have to count from {tallied} on");
    first.trim(&[Trim { session_id: session(1), through: Position(9), base: Some(b"b".to_vec()) }]).unwrap();
    commit(&first, vec![event(0, 1201)]);
    sweep(&first);
    let (usage, sessions) = (first.usage().unwrap(), first.sessions().unwrap());
    let all: Vec<_> = (0..3).map(|n| first.read(&session(n), Position::START, ALL).unwrap()).collect();
    drop(first);
    for _ in 0..2 {
        let again = open(dir.path());
        assert_eq!((again.epoch(), again.head()), (epoch.clone(), Position(1201)));
        assert_eq!(again.usage().unwrap().event_bytes, usage.event_bytes);
        let same = |a: &SessionEntry, b: &SessionEntry| {
            (&a.row, a.last, a.trimmed, &a.base) == (&b.row, b.last, b.trimmed, &b.base)
        };
        assert!(again.sessions().unwrap().iter().zip(&sessions).all(|(a, b)| same(a, b)));
        for (n, events) in all.iter().enumerate() {
            assert_eq!(&again.read(&session(n as u64), Position::START, ALL).unwrap(), events);
        }
    }
    let last = open(dir.path());
    last.forget(&session(0)).unwrap();
    drop(last);
    assert_eq!(open(dir.path()).head(), Position(1201), "the head does not fall with its session");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn sqlite_reopen_changes_nothing(before in proptest::collection::vec(step(), 1..12)) {
        let dir = tempdir().unwrap();
        let store = open(dir.path());
        follow_model(&store, &before);
        let look = |store: &SqliteStore| {
            let all: Vec<_> = (0..4).map(|n| store.read(&session(n), Position::START, ALL).unwrap()).collect();
            (store.head(), store.usage().unwrap().event_bytes, all)
        };
        let seen = look(&store);
        drop(store);
        prop_assert_eq!(look(&open(dir.path())), seen);
    }
}

#[test]
fn sqlite_refuses_a_second_opening_until_the_first_is_closed() {
    let dir = tempdir().unwrap();
    let first = open(dir.path());
    assert!(matches!(SqliteStore::open(dir.path(), Durability::Power), Err(StoreError::Locked)));
    drop(first);
    open(dir.path());
}

#[test]
fn sqlite_acknowledged_events_survive_a_kill() {
    if let Some(dir) = child_dir() {
        let store = open(&dir);
        print_line(&format!("epoch {}", store.epoch()));
        let mut at = store.head().0;
        loop {
            let size = at % 7 + 1;
            let events = (1..=size).map(|k| event((at + k) % 3, at + k)).collect();
            let sessions = (0..3).map(row).collect();
            store.commit(&Batch { events, sessions, sync: at.is_multiple_of(5), ..Batch::default() }).unwrap();
            at += size;
            print_line(&format!("kept {at}"));
        }
    }
    let dir = tempdir().unwrap();
    let mut epoch = None;
    let mut acknowledged = 0;
    for round in 0..20u64 {
        let mut child = child("sqlite_acknowledged_events_survive_a_kill", dir.path());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        // Killed after another number of commits each round.
        let mut left = 1 + round * 13 % 50;
        while left > 0 {
            let line = lines.next().expect("the child went on");
            if let Some(head) = line.strip_prefix("kept ") {
                acknowledged = head.parse().unwrap();
                left -= 1;
            }
        }
        if round == 0 {
            assert!(matches!(SqliteStore::open(dir.path(), Durability::Process), Err(StoreError::Locked)));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines {
            // The last line may be cut; a cut number is only smaller.
            if let Some(Ok(head)) = line.strip_prefix("kept ").map(str::parse) {
                acknowledged = acknowledged.max(head);
            }
        }
        let store = open(dir.path());
        assert_eq!(epoch.get_or_insert(store.epoch()), &store.epoch());
        let head = store.head().0;
        assert!(head >= acknowledged, "{acknowledged} was acknowledged, {head} is there");
        let mut all: Vec<u64> = (0..3).flat_map(|n| positions(&store, n, 0)).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(1..=head), "a hole");
    }
}

#[test]
fn sqlite_damaged_block_loses_only_itself() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    for block in 0..3 {
        commit(&store, (1..=3).map(|k| event(1, block * 10 + k)).collect());
    }
    let byte = |at: u32, of: i64| {
        raw(dir.path())
            .execute(
                "UPDATE events SET block = CAST(substr(block, 1, ?1) || x'ff' || substr(block, ?1 + 2) AS BLOB)
                 WHERE key & 0xffffffffff = ?2",
                params![at, of],
            )
            .unwrap()
    };
    assert_eq!(byte(40, 11), 1);
    let first = ReadLimit { events: 9, bytes: usize::MAX };
    let before = store.read(&session(1), Position::START, first).unwrap();
    assert_eq!(before.iter().map(|event| event.position.0).collect::<Vec<_>>(), [1, 2, 3]);
    for after in 3..13 {
        match store.read(&session(1), Position(after), ALL) {
            Err(StoreError::Damaged { session_id, position, resume_at }) => {
                assert_eq!((session_id, position, resume_at), (session(1), Position(11), Position(20)));
                assert_eq!(positions(&store, 1, resume_at.0), [21, 22, 23]);
            }
            other => panic!("after {after}: {other:?}"),
        }
    }
    // The last block: only later commits follow.
    byte(40, 21);
    match store.read(&session(1), Position(20), ALL) {
        Err(StoreError::Damaged { position, resume_at, .. }) => {
            assert_eq!((position, resume_at), (Position(21), Position(23)));
        }
        other => panic!("{other:?}"),
    }
    commit(&store, vec![event(1, 24)]);
    assert_eq!(positions(&store, 1, 23), [24]);
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.head(), Position(24));
    let trim = Trim { session_id: session(1), through: Position(23), base: None };
    assert_eq!(store.trim(&[trim]).unwrap(), [(session(1), Position(23))], "damage does not stop retention");
    assert_eq!(positions(&store, 1, 0), [24]);
}

/// Takes a store back to the schema and file format of an older version.
fn downgrade(dir: &Path, schema: u32) {
    let raw = raw(dir);
    let older = match schema {
        1 => "DROP TABLE marks; DROP TABLE pushes;",
        _ => "",
    };
    raw.execute_batch(&format!(
        "DROP INDEX events_by_position; DROP INDEX requests_by_session; DROP INDEX requests_by_closing;
         ALTER TABLE meta DROP COLUMN lookback; ALTER TABLE sessions DROP COLUMN doomed; DROP TABLE prompts; DROP TABLE surfaces;
         DROP TABLE spending; ALTER TABLE meta DROP COLUMN spending_since;
         ALTER TABLE requests DROP COLUMN closed_at; {older}
         PRAGMA user_version = {schema}; PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM;"
    ))
    .unwrap();
}

#[test]
fn sqlite_migrates_an_older_schema() {
    for schema in [1, 3] {
        let dir = tempdir().unwrap();
        let store = open(dir.path());
        // Overlapping blocks.
        commit(&store, vec![event(1, 1), event(2, 2), event(1, 3), event(2, 4), event(3, 5), event(1, 6)]);
        let closed = RequestRow {
            request_id: RequestId::trusted("q_1"),
            session_id: session(1),
            state: RequestState::Answered,
            body: b"{}".to_vec(),
            answer_key: None,
            closed_at: None,
        };
        store.commit(&Batch { requests: vec![closed], ..Batch::default() }).unwrap();
        drop(store);
        downgrade(dir.path(), schema);
        let store = open(dir.path());
        assert_eq!(positions(&store, 1, 0), [1, 3, 6]);
        for after in 0..6 {
            let across =
                store.read_across(&|_| true, Position(after), ReadLimit { events: 2, bytes: 1 << 20 }).unwrap();
            assert_eq!(across.events[0].position, Position(after + 1));
        }
        let mark = RuntimeMark { generation: 1, offset: 5 };
        store.commit(&Batch { marks: vec![(session(1), mark)], ..Batch::default() }).unwrap();
        assert!(store.pushes().unwrap().is_empty());
        // What was spent before is not known, which is said.
        assert!(store.spending_since() > Timestamp::from_millis(1_700_000_000_000));
        // Requests that were closed before count as closed now.
        assert!(!store.retire(Some(Timestamp::from_millis(1_700_000_000_000)), 9).unwrap());
        assert!(store.request(&RequestId::trusted("q_1")).unwrap().unwrap().closed_at.is_some());
        assert!(open::can_return_free_pages(&store.lock().connection).unwrap());
        assert!(!dir.path().join("plexus.db.rewritten").exists());
        let mode = dir.path().join(open::DATABASE).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        drop(store);
        let entries = open(dir.path()).sessions().unwrap();
        assert_eq!(entries.iter().find(|entry| entry.row.session_id == session(1)).unwrap().mark, Some(mark));
    }
}

/// Commits about `megabytes` of events to a session, with searchable text.
fn fill(store: &SqliteStore, n: u64, megabytes: usize) {
    for _ in 0..megabytes {
        let head = store.head().0;
        let events = (1..=16).map(|k| event_with(n, head + k, vec![b'x'; 1 << 16].into(), None)).collect();
        let texts = vec![TextRow {
            session_id: session(n),
            position: Position(head + 1),
            role: "user",
            text: "some words of it ".repeat(100),
        }];
        store.commit(&Batch { events, texts, ..Batch::default() }).unwrap();
    }
}

#[test]
fn sqlite_deletes_in_small_steps_and_frees_the_disk() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    commit(&store, vec![event(1, 1)]);
    fill(&store, 2, 40);
    fill(&store, 3, 40);
    let full = store.usage().unwrap().disk_bytes;
    assert!(full > 80 << 20);
    assert!(store.mark_for_deletion(&session(2)).unwrap());
    let trim = Trim { session_id: session(3), through: store.head(), base: None };
    assert_eq!(store.trim(&[trim]).unwrap().len(), 1);
    let (mut steps, mut before) = (0, store.usage().unwrap().event_bytes);
    while store.sweep().unwrap() {
        steps += 1;
        let now = store.usage().unwrap().event_bytes;
        assert!(before <= now + (2 << 20), "one step removed {} bytes", before - now);
        before = now;
        // A commit between two sweep steps.
        let head = store.head().0;
        store.commit(&Batch { events: vec![event(1, head + 1)], ..Batch::default() }).unwrap();
    }
    assert!(steps > 80, "{steps}");
    let left = store.usage().unwrap();
    assert!(left.disk_bytes < full / 4, "{} of {full} bytes are still there", left.disk_bytes);
    assert_eq!(positions(&store, 1, 0).len(), steps + 1);
    drop(store);
    let again = open(dir.path());
    assert_eq!(again.usage().unwrap().event_bytes, left.event_bytes);
    assert!(again.usage().unwrap().disk_bytes < full / 4);
}

#[test]
fn sqlite_finishes_an_interrupted_deletion_after_a_restart() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    commit(&store, vec![event(1, 1)]);
    fill(&store, 2, 6);
    fill(&store, 3, 6);
    store.mark_for_deletion(&session(2)).unwrap();
    store.trim(&[Trim { session_id: session(3), through: store.head(), base: None }]).unwrap();
    for done in [0, 2, 3] {
        for _ in 0..done {
            assert!(store.sweep().unwrap());
        }
        // The files as a crash would leave them now.
        let copy = tempdir().unwrap();
        for (name, content) in files(dir.path()) {
            std::fs::write(copy.path().join(name), content).unwrap();
        }
        let again = open(copy.path());
        assert_eq!((positions(&again, 2, 0), positions(&again, 3, 0)), (vec![], vec![]));
        assert_eq!(again.head(), store.head());
        assert!(again.is_being_deleted(&session(2)) && again.session(&session(2)).unwrap().is_none());
        assert!(again.search("words", 99).unwrap().is_empty());
        sweep(&again);
        assert!(!again.is_being_deleted(&session(2)));
        let rows = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table}");
            raw(copy.path()).query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
        };
        assert_eq!((rows("events"), rows("passages"), rows("sessions WHERE doomed")), (1, 0, 0));
        assert_eq!(again.usage().unwrap().event_bytes, again.oldest(Position::START, 9).unwrap()[0].bytes as u64);
    }
}

#[test]
fn sqlite_refuses_a_newer_store_and_leaves_it_untouched() {
    let dir = tempdir().unwrap();
    commit(&open(dir.path()), vec![event(1, 1)]);
    let newer = open::SCHEMA + 1;
    raw(dir.path()).execute_batch(&format!("PRAGMA user_version = {newer}")).unwrap();
    let before = files(dir.path());
    let refused = || SqliteStore::open(dir.path(), Durability::Process).err();
    assert!(matches!(refused(), Some(StoreError::Newer { found, known: open::SCHEMA }) if found == newer));
    assert_eq!(files(dir.path()), before);

    // The newer version number may be in the write-ahead log alone.
    let known = format!("PRAGMA user_version = {}; PRAGMA wal_checkpoint(TRUNCATE);", open::SCHEMA);
    raw(dir.path()).execute_batch(&known).unwrap();
    let writer = raw(dir.path());
    writer.execute_batch(&format!("PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = {newer};")).unwrap();
    let copy = tempdir().unwrap();
    for (name, content) in files(dir.path()) {
        std::fs::write(copy.path().join(name), content).unwrap();
    }
    let before = files(copy.path());
    assert!(!before["plexus.db-wal"].is_empty());
    let refused = SqliteStore::open(copy.path(), Durability::Process).err();
    assert!(matches!(refused, Some(StoreError::Newer { found, .. }) if found == newer), "{refused:?}");
    assert_eq!(files(copy.path()), before);
}

#[test]
fn sqlite_refuses_a_foreign_file_and_leaves_it_untouched() {
    let other = tempdir().unwrap();
    raw(other.path()).execute_batch("CREATE TABLE mine (a)").unwrap();
    let marked = tempdir().unwrap();
    raw(marked.path()).execute_batch("PRAGMA application_id = 7; CREATE TABLE mine (a)").unwrap();
    let junk = tempdir().unwrap();
    std::fs::write(junk.path().join(open::DATABASE), vec![b'x'; 5000]).unwrap();
    let short = tempdir().unwrap();
    std::fs::write(short.path().join(open::DATABASE), b"SQLite format 3\0").unwrap();
    for dir in [other, marked, junk, short] {
        let before = files(dir.path());
        let refused = SqliteStore::open(dir.path(), Durability::Process).err();
        assert!(matches!(&refused, Some(StoreError::Io(why)) if why.contains("not a plexus store")), "{refused:?}");
        assert_eq!(files(dir.path()), before);
    }
    // A crash before the tables were made leaves these files.
    let empty = tempdir().unwrap();
    std::fs::write(empty.path().join(open::DATABASE), b"").unwrap();
    open(empty.path());
    let bare = tempdir().unwrap();
    raw(bare.path()).execute_batch("PRAGMA journal_mode = WAL").unwrap();
    open(bare.path());
}

#[test]
fn sqlite_files_are_private() {
    if let Some(dir) = child_dir() {
        rustix::process::umask(rustix::fs::Mode::empty());
        let store = open(&dir.join("new"));
        commit(&store, vec![event(1, 1)]);
        for name in [open::DATABASE, open::LOCK, "plexus.db-wal", "plexus.db-shm", ""] {
            let mode = dir.join("new").join(name).metadata().unwrap().permissions().mode() & 0o777;
            print_line(&format!("mode {name} {mode:o}"));
        }
        return;
    }
    let dir = tempdir().unwrap();
    let output = child("sqlite_files_are_private", dir.path()).wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let modes: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("mode ")).collect();
    let wanted = ["plexus.db 600", "plexus.lock 600", "plexus.db-wal 600", "plexus.db-shm 600", " 700"];
    assert_eq!(modes, wanted, "{text}");
}

#[test]
fn sqlite_power_cut_may_start_a_new_epoch() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let epoch = store.epoch();
    drop(store);
    let mark = |to: &str| raw(dir.path()).execute("UPDATE meta SET unsynced_boot = ?1", [to]).unwrap();
    let marked = || {
        let read =
            raw(dir.path()).query_row("SELECT unsynced_boot FROM meta", [], |row| row.get::<_, Option<String>>(0));
        read.unwrap()
    };
    assert_eq!(marked(), None, "closed in order");
    let Some(boot) = boot_id() else { return assert_eq!(open(dir.path()).epoch(), epoch) };
    mark(&boot);
    let store = open(dir.path());
    assert_eq!(store.epoch(), epoch, "only the gateway died");
    assert_eq!(marked(), Some(boot));
    drop(store);
    mark("another boot");
    let second = open(dir.path()).epoch();
    assert_ne!(second, epoch, "the machine went down with commits unsynced");
    let store = SqliteStore::open(dir.path(), Durability::Power).unwrap();
    assert_eq!((store.epoch(), marked()), (second, None), "every commit is synced");
}

#[test]
fn sqlite_full_database_refuses_and_recovers() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    commit(&store, vec![event(1, 1)]);
    let limit = |pages: i64| {
        let writer = store.lock();
        writer
            .connection
            .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    limit(1);
    fill_refuse_recover(&store, || {
        limit(1 << 30);
    });
}

/// Commits until the store is full, checks it, calls `make_room`, and continues.
fn fill_refuse_recover(store: &SqliteStore, make_room: impl FnOnce()) {
    let big = |position| event_with(1, position, vec![b'x'; 100_000].into(), None);
    let mut head = store.head().0;
    let batch = loop {
        assert!(head < 1000, "never full");
        let batch = Batch { events: vec![event(1, head + 1), big(head + 2)], ..Batch::default() };
        match store.commit(&batch) {
            Ok(()) => head += 2,
            Err(StoreError::Full) => break batch,
            Err(other) => panic!("{other:?}"),
        }
    };
    for sync in [true, false] {
        let again = Batch { events: batch.events.clone(), sync, ..Batch::default() };
        assert!(matches!(store.commit(&again), Err(StoreError::Full)));
    }
    assert_eq!(store.head(), Position(head));
    assert_eq!(positions(store, 1, 0), (1..=head).collect::<Vec<_>>(), "reads go on");
    make_room();
    store.commit(&batch).unwrap();
    assert_eq!(positions(store, 1, 0), (1..=head + 2).collect::<Vec<_>>());
}

#[test]
fn sqlite_full_disk_refuses_and_recovers() {
    if let Some(dir) = child_dir() {
        let store = open(&dir);
        commit(&store, vec![event(1, 1)]);
        fill_refuse_recover(&store, || std::fs::remove_file(dir.join("ballast")).unwrap());
        drop(store);
        let again = open(&dir);
        let head = again.head().0;
        assert_eq!(positions(&again, 1, 0), (1..=head).collect::<Vec<_>>());
        return print_line("recovered");
    }
    let dir = tempdir().unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"]).arg(dir.path()).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return print_line("skipped: mounting a small tmpfs is not permitted here");
    }
    std::fs::write(dir.path().join("ballast"), vec![1; 2 << 20]).unwrap();
    let output = child("sqlite_full_disk_refuses_and_recovers", dir.path()).wait_with_output();
    let unmounted = Command::new("umount").arg(dir.path()).status();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(text.contains("recovered"), "{text}");
    assert!(unmounted.unwrap().success());
}

#[test]
fn sqlite_refuses_commits_after_a_failed_sync() {
    if let Some(dir) = child_dir() {
        let store = open(&dir);
        commit(&store, vec![event(1, 1)]);
        print_line("ready");
        let mut go = String::new();
        std::io::stdin().read_line(&mut go).unwrap();
        let batch = |position| Batch { events: vec![event(1, position)], sync: true, ..Batch::default() };
        let (failed, later) = (store.commit(&batch(2)), store.commit(&batch(2)));
        let plain = store.commit(&Batch { sync: false, ..batch(2) });
        print_line(&format!("failed {} {} {}", failed.is_err(), later.is_err(), plain.is_err()));
        return print_line(&format!("seen {:?} {}", positions(&store, 1, 0), store.head()));
    }
    let dir = tempdir().unwrap();
    let mut child = child("sqlite_refuses_commits_after_a_failed_sync", dir.path());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "ready"));
    let tracer = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"])
        .args(["-e", "inject=fsync,fdatasync:error=EIO:when=1", "-p", &child.id().to_string()])
        .stderr(Stdio::null())
        .spawn();
    let traced = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
    };
    let Ok(mut tracer) = tracer else {
        child.kill().unwrap();
        child.wait().unwrap();
        return print_line("skipped: no strace to make an fsync fail");
    };
    // All threads must be attached by the tracer; the main one is first, so wait until every one is.
    let all_traced = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).map(|tasks| tasks.count()).unwrap_or(0);
        let traced_tasks =
            std::fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().filter(|task| {
                let status = std::fs::read_to_string(task.as_ref().unwrap().path().join("status")).unwrap_or_default();
                status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
            });
        tasks > 0 && traced_tasks.count() == tasks
    };
    while !(traced() && all_traced()) && tracer.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    if tracer.try_wait().unwrap().is_some() {
        child.kill().unwrap();
        child.wait().unwrap();
        return print_line("skipped: strace may not attach here");
    }
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let rest: Vec<String> = lines.collect();
    child.wait().unwrap();
    tracer.wait().unwrap();
    assert!(rest.iter().any(|line| line == "failed true true true"), "{rest:?}");
    assert!(rest.iter().any(|line| line == "seen [1] 1"), "{rest:?}");
}

#[test]
fn sqlite_forgotten_bytes_are_gone_from_every_file() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let body = || Bytes::from(format!("{}secretmarker{}", "a".repeat(9000), "b".repeat(9000)));
    commit(&store, vec![event(1, 1)]);
    let holds = || {
        let found =
            files(dir.path()).into_iter().filter(|(_, bytes)| bytes.windows(12).any(|part| part == b"secretmarker"));
        found.map(|(name, _)| name).collect::<Vec<_>>()
    };
    for state in ["secretmarker", &"secretmarker".repeat(2000), "x"] {
        let head = store.head().0;
        let batch = Batch {
            events: vec![event_with(2, head + 1, body(), Some(body()))],
            sessions: vec![SessionRow { state: state.into(), ..row(2) }],
            requests: vec![RequestRow {
                request_id: RequestId::trusted("q_1"),
                session_id: session(2),
                state: RequestState::Answered,
                body: body().to_vec(),
                answer_key: Some("secretmarker".into()),
                closed_at: Some(Timestamp::from_millis(1)),
            }],
            prompts: vec![PromptChange {
                session_id: session(2),
                run_id: RunId::trusted("r_1"),
                content: Some(body().to_vec()),
            }],
            texts: vec![TextRow {
                session_id: session(2),
                position: Position(head + 1),
                role: "user",
                text: "a secretmarker in words".into(),
            }],
            ..Batch::default()
        };
        store.commit(&batch).unwrap();
    }
    assert!(!holds().is_empty());
    store.trim(&[Trim { session_id: session(2), through: Position(2), base: Some(body().to_vec()) }]).unwrap();
    commit(&store, vec![event(1, 5)]);
    store.forget(&session(2)).unwrap();
    assert_eq!(holds(), [""; 0]);
    assert_eq!(positions(&store, 1, 0), [1, 5]);
}

#[test]
fn sqlite_write_ahead_log_is_bounded() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    commit(&store, vec![event(1, 1)]);
    let body = Bytes::from(vec![b'x'; 1 << 20]);
    // A reader that never ends its transaction keeps the log from restarting until it closes.
    let reader = raw(dir.path());
    reader.execute_batch("BEGIN; SELECT count(*) FROM events;").unwrap();
    let bound = 2 * open::WAL_BYTES_MAX;
    store.lock().connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    let mut head = 1;
    while store.file_bytes("-wal") <= open::WAL_BYTES_MAX {
        head += 1;
        store.commit(&Batch { events: vec![event_with(1, head, body.clone(), None)], ..Batch::default() }).unwrap();
        assert!(head < 200);
    }
    reader.execute_batch("COMMIT").unwrap();
    for _ in 0..10 {
        head += 1;
        store.commit(&Batch { events: vec![event_with(1, head, body.clone(), None)], ..Batch::default() }).unwrap();
    }
    assert!(store.file_bytes("-wal") < open::WAL_BYTES_MAX / 2, "{}", store.file_bytes("-wal"));
    assert!(store.usage().unwrap().disk_bytes < bound + (head << 20));
}

#[test]
fn sqlite_empty_epoch_or_unknown_state_is_an_error() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    commit(&store, vec![event(1, 1)]);
    let request = RequestRow {
        request_id: RequestId::trusted("q_1"),
        session_id: session(1),
        state: RequestState::Open,
        body: vec![],
        answer_key: None,
        closed_at: None,
    };
    store.commit(&Batch { requests: vec![request], ..Batch::default() }).unwrap();
    raw(dir.path()).execute_batch("UPDATE requests SET state = 77; UPDATE events SET block = 'text'").unwrap();
    let all = RequestQuery { state: None, session: None, before: None, limit: 9 };
    assert!(matches!(store.requests(all), Err(StoreError::Io(_))));
    assert!(matches!(store.read(&session(1), Position::START, ALL), Err(StoreError::Damaged { .. })));
    drop(store);
    raw(dir.path()).execute_batch("UPDATE meta SET epoch = ''").unwrap();
    assert!(matches!(SqliteStore::open(dir.path(), Durability::Process), Err(StoreError::Io(_))));
}

#[test]
fn long_blocks_are_read_by_every_read_and_their_damage_is_reported() {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let long = |of: u8| Bytes::from(vec![of; (3 << 20) + 7]);
    let body = |at: u8| if at.is_multiple_of(2) { long(b'a' + at) } else { Bytes::from("short") };
    let events: Vec<Arc<Event>> = (1..=4u8).map(|at| event_with(0, at.into(), body(at), None)).collect();
    commit(&store, events.clone());
    let is_all = |read: Vec<Event>| read.iter().eq(events.iter().map(|event| &**event));
    assert!(is_all(store.read(&session(0), Position::START, ALL).unwrap()));
    assert!(is_all(store.read_before(&session(0), Position(5), ALL).unwrap()));
    assert!(is_all(store.read_across(&|_| true, Position::START, ALL).unwrap().events));
    assert_eq!(positions(&store, 0, 3), [4]);
    drop(store);
    // Another type of value in a long block.
    let damage = "UPDATE events SET block = hex(zeroblob(1 << 20)) WHERE key & 1099511627775 = 2";
    assert_eq!(raw(dir.path()).execute(damage, []).unwrap(), 1);
    let store = open(dir.path());
    assert!(matches!(
        store.read(&session(0), Position(1), ALL),
        Err(StoreError::Damaged { position: Position(2), .. })
    ));
}
