//! The contract of every store: one test suite, run for each store. One file, so that no store misses a part of it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use tempfile::TempDir;

mod spending;

use super::*;
use plexus_protocol::{Event, Kind, Origin, RunId};
use spending::{store_sums_of_spending_are_bounded, store_sums_spending};

/// A limit that allows everything.
pub(super) const ALL: ReadLimit = ReadLimit { events: usize::MAX, bytes: usize::MAX };

macro_rules! contract {
    ($($name:ident => $make:expr;)*) => {
        $(mod $name {
            use super::*;

            contract!(@tests $make;
                store_returns_events_unchanged;
                store_read_keeps_limits_and_returns_at_least_one_event;
                store_reads_the_newest_events_before_a_position;
                sessions_do_not_mix;
                store_refuses_a_whole_batch_that_does_not_follow;
                store_lists_sessions_in_order;
                store_finds_requests_by_state_and_session;
                devices_come_and_go;
                store_keeps_push_targets_and_cursor;
                store_keeps_marks_with_their_events;
                search_accepts_any_text;
                store_searches_words_phrases_and_prefixes;
                store_retention_removes_whole_blocks_and_spares_some;
                store_prunes_closed_requests_by_age_and_number;
                store_reads_many_sessions_in_log_order;
                store_hides_deleted_sessions_before_it_removes_their_data;
                store_keeps_prompts_until_they_are_reported;
                store_keeps_surfaces_as_a_whole_and_changes;
                store_forget_leaves_only_the_head;
                store_sums_spending;
                store_sums_of_spending_are_bounded;
                large_batches_make_several_blocks;
                reads_are_concurrent_with_commits;
            );

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(24))]
                #[test]
                fn store_behaves_as_its_model(steps in proptest::collection::vec(step(), 1..24)) {
                    let (store, _dir) = $make;
                    follow_model(&*store, &steps);
                }
            }
        })*
    };
    (@tests $make:expr; $($test:ident;)*) => {
        $(#[test]
        fn $test() {
            let (store, _dir) = $make;
            super::$test(&*store);
        })*
    };
}

contract! {
    memory => (Box::new(MemoryStore::new().unwrap()) as Box<dyn Store>, None::<TempDir>);
    sqlite => sqlite_in_a_new_directory(Durability::Process);
    sqlite_power => sqlite_in_a_new_directory(Durability::Power);
}

fn sqlite_in_a_new_directory(durability: Durability) -> (Box<dyn Store>, Option<TempDir>) {
    let dir = tempfile::tempdir().unwrap();
    (Box::new(SqliteStore::open(dir.path(), durability).unwrap()), Some(dir))
}

/// Returns the id of session `n`.
pub(super) fn session(n: u64) -> SessionId {
    SessionId::trusted(format!("s_{n}"))
}

/// Returns a minimal row of session `n`.
pub(super) fn row(n: u64) -> SessionRow {
    SessionRow {
        session_id: session(n),
        runtime_id: RuntimeId::trusted("demo"),
        dialect: "acp".into(),
        state: b"{}".to_vec(),
        as_of: Position::START,
        spare_from: None,
    }
}

/// Returns an event of session `n` at `position`; its body names both.
pub(super) fn event(n: u64, position: u64) -> Arc<Event> {
    event_with(n, position, format!(r#"{{"session":{n},"position":{position}}}"#).into(), None)
}

/// Returns an event of session `n` with this body.
pub(super) fn event_with(n: u64, position: u64, body: Bytes, native: Option<Bytes>) -> Arc<Event> {
    Arc::new(Event {
        position: Position(position),
        origin: Arc::new(Origin {
            session_id: session(n),
            runtime_id: RuntimeId::trusted("demo"),
            dialect: "acp".into(),
        }),
        run_id: RunId::trusted(format!("r_{}", position / 10)),
        seq: position % 10,
        at: Timestamp::from_millis(1_700_000_000_000 + position.cast_signed()),
        kind: Kind::AgentMessageChunk,
        body,
        native,
    })
}

/// Commits events, with the rows of sessions 0 to 9.
pub(super) fn commit(store: &dyn Store, events: Vec<Arc<Event>>) {
    let known: Vec<SessionId> = store.sessions().unwrap().into_iter().map(|entry| entry.row.session_id).collect();
    let sessions = (0..10).map(row).filter(|row| !known.contains(&row.session_id)).collect();
    store.commit(&Batch { events, sessions, ..Batch::default() }).unwrap();
}

/// Returns the positions of a session's events after `after`.
pub(super) fn positions(store: &dyn Store, n: u64, after: u64) -> Vec<u64> {
    store.read(&session(n), Position(after), ALL).unwrap().iter().map(|event| event.position.0).collect()
}

fn store_returns_events_unchanged(store: &dyn Store) {
    let native = Bytes::from_static(br#"{"jsonrpc":"2.0","params":{"update":{"a":1}}}"#);
    let sent = [
        event_with(1, 1, Bytes::from_static(b"{}"), None),
        event_with(1, 2, Bytes::from_static(b"{\"own\":true}"), Some(native.clone())),
        event_with(1, 5, native.slice(36..43), Some(native.clone())),
        event_with(1, 6, native.clone(), Some(native.clone())),
        event_with(1, 9, Bytes::from_static("{\"\u{0}é\u{1f600}\":1}".as_bytes()), Some(Bytes::from_static(&[0, 255]))),
    ];
    assert_eq!((store.head(), store.epoch().as_str().len()), (Position::START, 8));
    for sync in [false, true] {
        let shift = u64::from(sync) * 10;
        let events = sent.iter().map(|e| Arc::new(Event { position: Position(e.position.0 + shift), ..(**e).clone() }));
        let events: Vec<_> = events.collect();
        let batch = Batch { events: events.clone(), sessions: vec![row(1)], sync, ..Batch::default() };
        store.commit(&batch).unwrap();
        assert_eq!(store.head(), Position(9 + shift));
        let back = store.read(&session(1), Position(shift), ALL).unwrap();
        assert!(back.iter().eq(events.iter().map(|event| &**event)), "{back:?}");
        for (back, event) in back.iter().zip(&events) {
            assert_eq!(back.body_in_native(), event.body_in_native());
            assert_eq!(back.weight(), event.weight());
        }
    }
    for after in 0..25 {
        let expected: Vec<u64> = [1, 2, 5, 6, 9, 11, 12, 15, 16, 19].into_iter().filter(|&p| p > after).collect();
        assert_eq!(positions(store, 1, after), expected, "after {after}");
    }
    assert_eq!(positions(store, 1, u64::MAX - 1), [0; 0]);
    assert_eq!(positions(store, 1, u64::MAX), [0; 0]);
}

fn store_read_keeps_limits_and_returns_at_least_one_event(store: &dyn Store) {
    commit(store, (1..=10).map(|p| event(0, p)).collect());
    commit(store, (11..=20).map(|p| event(0, p)).collect());
    let weight = store.read(&session(0), Position::START, ALL).unwrap()[0].weight();
    let read = |after, events, bytes| {
        let limit = ReadLimit { events, bytes };
        let events = store.read(&session(0), Position(after), limit).unwrap();
        events.iter().map(|event| event.position.0).collect::<Vec<_>>()
    };
    assert_eq!(read(0, 0, 0), [1]);
    assert_eq!(read(0, 3, usize::MAX), [1, 2, 3]);
    assert_eq!(read(8, 4, usize::MAX), [9, 10, 11, 12]);
    assert_eq!(read(0, usize::MAX, weight), [1]);
    assert_eq!(read(0, usize::MAX, 2 * weight), [1, 2]);
    assert_eq!(read(0, usize::MAX, 3 * weight - 1), [1, 2]);
    assert_eq!(read(19, 5, 1), [20]);
    assert_eq!(read(20, 5, 1), [0; 0]);
    let mut at = 0;
    while let [.., last] = read(at, 3, usize::MAX)[..] {
        assert!(last <= at + 3);
        at = last;
    }
    assert_eq!(at, 20);
    // An event that does not fit ends the page, even if a smaller one follows in the next block.
    commit(store, vec![event(1, 21), event_with(1, 22, vec![b' '; 9000].into(), None)]);
    commit(store, vec![event(1, 23)]);
    let page = store.read(&session(1), Position::START, ReadLimit { events: 9, bytes: 4000 }).unwrap();
    assert_eq!(page.iter().map(|event| event.position.0).collect::<Vec<_>>(), [21]);
}

fn store_reads_the_newest_events_before_a_position(store: &dyn Store) {
    commit(store, (1..=10).map(|p| event(p % 2, p)).collect());
    commit(store, (11..=20).map(|p| event(p % 2, p)).collect());
    let weight = store.read(&session(0), Position(9), ALL).unwrap()[0].weight();
    let read = |before, events, bytes| {
        let limit = ReadLimit { events, bytes };
        let events = store.read_before(&session(0), Position(before), limit).unwrap();
        events.iter().map(|event| event.position.0).collect::<Vec<_>>()
    };
    assert_eq!(read(u64::MAX, 3, usize::MAX), [16, 18, 20]);
    assert_eq!(read(21, usize::MAX, usize::MAX), [2, 4, 6, 8, 10, 12, 14, 16, 18, 20]);
    assert_eq!(read(15, 4, usize::MAX), [8, 10, 12, 14]);
    assert_eq!(read(14, usize::MAX, 2 * weight), [10, 12]);
    assert_eq!(read(20, 0, 0), [18]);
    assert_eq!(read(3, 9, usize::MAX), [2]);
    assert_eq!(read(2, 9, usize::MAX), [0; 0]);
    assert_eq!(read(0, 9, usize::MAX), [0; 0]);
    assert!(store.read_before(&session(7), Position(9), ALL).unwrap().is_empty());
}

fn sessions_do_not_mix(store: &dyn Store) {
    for chunk in 0..20 {
        commit(store, (1..=9).map(|k| event((chunk + k) % 5, chunk * 10 + k)).collect());
    }
    for n in 0..5 {
        let expected = (0..20).flat_map(|c| (1..=9).filter(move |k| (c + k) % 5 == n).map(move |k| c * 10 + k));
        assert_eq!(positions(store, n, 0), expected.collect::<Vec<_>>());
        for event in store.read(&session(n), Position::START, ALL).unwrap() {
            assert_eq!(event.origin.session_id, session(n));
            assert!(event.body.starts_with(format!(r#"{{"session":{n},"#).as_bytes()));
        }
    }
    assert_eq!(positions(store, 77, 0), [0; 0]);
}

fn store_refuses_a_whole_batch_that_does_not_follow(store: &dyn Store) {
    commit(store, vec![event(0, 5)]);
    let refused = |events: Vec<Arc<Event>>| {
        let device = DeviceChange::Put { device_id: "d".into(), body: b"d".to_vec() };
        let batch = Batch { events, devices: vec![device], sessions: vec![row(50)], ..Batch::default() };
        assert!(matches!(store.commit(&batch), Err(StoreError::Io(_) | StoreError::NoSession(_))));
        assert_eq!((store.head(), store.devices().unwrap().len()), (Position(5), 0));
        assert!(store.sessions().unwrap().iter().all(|entry| entry.row.session_id != session(50)));
    };
    refused(vec![event(0, 5)]);
    refused(vec![event(0, 4)]);
    refused(vec![event(0, 7), event(1, 7)]);
    refused(vec![event(0, 8), event(1, 7)]);
    refused(vec![event(0, 6), event(0, 1 << 40)]);
    refused(vec![event(0, 6), event(99, 7)]);
    commit(store, vec![event(0, 6), event(1, 7)]);
    assert_eq!(positions(store, 0, 0), [5, 6]);
}

fn store_lists_sessions_in_order(store: &dyn Store) {
    commit(store, vec![event(3, 1), event(1, 2)]);
    let mut changed = row(3);
    changed.state = vec![0, 159, 255];
    changed.as_of = Position(1);
    changed.spare_from = Some(Position(1));
    changed.runtime_id = RuntimeId::trusted("other");
    // Twice in one batch: the later row wins.
    store.commit(&Batch { sessions: vec![row(3), row(20), changed.clone()], ..Batch::default() }).unwrap();
    let entries = store.sessions().unwrap();
    let ids: Vec<_> = entries.iter().map(|entry| entry.row.session_id.clone()).collect();
    assert_eq!(ids, (0..10).chain([20]).map(session).collect::<Vec<_>>());
    assert_eq!(entries[3].row, changed);
    assert_eq!((entries[3].last, entries[1].last, entries[0].last), (Position(1), Position(2), Position::START));
    assert_eq!((entries[3].trimmed, &entries[3].base), (Position::START, &None));
    let again = Batch { events: vec![event(20, 3)], sessions: vec![row(20)], ..Batch::default() };
    store.commit(&again).unwrap();
    assert_eq!(positions(store, 20, 0), [3]);
}

fn request(n: u64, of: u64, state: RequestState) -> RequestRow {
    RequestRow {
        request_id: RequestId::trusted(format!("q_{n}")),
        session_id: session(of),
        state,
        body: format!("{{\"n\":{n}}}").into_bytes(),
        answer_key: None,
        closed_at: (state != RequestState::Open).then(|| Timestamp::from_millis(1000 + n.cast_signed())),
    }
}

/// Returns all requests of a listing.
fn listed(
    store: &dyn Store,
    state: Option<RequestState>,
    session: Option<&SessionId>,
    limit: usize,
) -> Vec<RequestRow> {
    let page = store.requests(RequestQuery { state, session, before: None, limit }).unwrap();
    page.rows.into_iter().map(|(_, row)| row).collect()
}

/// Returns the blocks of a session.
fn blocks(store: &dyn Store, of: u64, limit: usize) -> Vec<BlockInfo> {
    let all = store.oldest(Position::START, usize::MAX >> 1).unwrap();
    all.into_iter().filter(|block| block.session_id == session(of)).take(limit).collect()
}

/// Sweeps until nothing is left to remove.
pub(super) fn sweep(store: &dyn Store) {
    while store.sweep().unwrap() {}
}

fn store_finds_requests_by_state_and_session(store: &dyn Store) {
    use RequestState::{Answered, Expired, Open, Orphaned, Withdrawn};
    commit(store, vec![]);
    let rows: Vec<RequestRow> = (0..6).map(|n| request(n, n % 2, Open)).collect();
    store.commit(&Batch { requests: rows.clone(), ..Batch::default() }).unwrap();
    let answered = RequestRow { answer_key: Some("key é 1".into()), ..request(2, 0, Answered) };
    store.commit(&Batch { requests: vec![answered.clone()], sync: true, ..Batch::default() }).unwrap();

    assert_eq!(store.request(&answered.request_id).unwrap(), Some(answered.clone()));
    assert_eq!(store.request(&RequestId::trusted("q_none")).unwrap(), None);
    let found = |state, of: Option<u64>, limit| {
        let rows = listed(store, state, of.map(session).as_ref(), limit);
        rows.iter().map(|row| row.request_id.as_str()[2..].parse().unwrap()).collect::<Vec<u64>>()
    };
    assert_eq!(found(None, None, usize::MAX), [5, 4, 3, 2, 1, 0]);
    assert_eq!(found(None, None, 2), [5, 4]);
    assert_eq!(found(Some(Open), None, 9), [5, 4, 3, 1, 0]);
    assert_eq!(found(Some(Answered), None, 9), [2]);
    assert_eq!(found(None, Some(0), 9), [4, 2, 0]);
    assert_eq!(found(Some(Open), Some(0), 9), [4, 0]);
    assert_eq!(found(Some(Open), Some(8), 9), [0; 0]);
    for (n, state) in [(0, Expired), (1, Withdrawn), (3, Orphaned)] {
        let row = request(n, n % 2, state);
        store.commit(&Batch { requests: vec![row.clone()], ..Batch::default() }).unwrap();
        assert_eq!(listed(store, Some(state), None, 9), [row]);
    }
    assert_eq!(found(Some(Open), None, 9), [5, 4]);
    // Page by page gives the same rows.
    for limit in 1..8 {
        let (mut before, mut all) = (None, Vec::new());
        loop {
            let page = store.requests(RequestQuery { state: None, session: None, before, limit }).unwrap();
            assert!(page.rows.len() <= limit && (page.next.is_none() || !page.rows.is_empty()));
            all.extend(page.rows.into_iter().map(|(_, row)| row));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(all, listed(store, None, None, 99), "by {limit}");
    }
}

fn store_prunes_closed_requests_by_age_and_number(store: &dyn Store) {
    commit(store, vec![]);
    let state = |n: u64| if n.is_multiple_of(100) { RequestState::Open } else { RequestState::Answered };
    let requests = (0..600).map(|n| request(n, n % 2, state(n))).collect();
    store.commit(&Batch { requests, ..Batch::default() }).unwrap();
    let numbers = || {
        let rows = listed(store, None, None, usize::MAX >> 1);
        rows.iter().map(|row| row.request_id.as_str()[2..].parse().unwrap()).rev().collect::<Vec<u64>>()
    };
    let retire = |before: Option<i64>, max| {
        let before = before.map(Timestamp::from_millis);
        while store.retire(before, max).unwrap() {}
    };
    retire(None, usize::MAX >> 1);
    retire(Some(1000), 600);
    assert_eq!(numbers().len(), 600, "nothing is too old, nothing too much");
    retire(Some(1350), 600);
    let retained = |from: u64| (0..600).filter(|n| *n >= from || n.is_multiple_of(100)).collect::<Vec<_>>();
    assert_eq!(numbers(), retained(350), "what is open stays");
    retire(None, 50);
    assert_eq!(numbers(), retained(550));
}

fn store_reads_many_sessions_in_log_order(store: &dyn Store) {
    // Sessions alternate within a commit, and some commits have one session.
    let mut at = 0;
    for round in 0..40u64 {
        let number = |k: u64| if round.is_multiple_of(3) { round % 10 } else { (round + k) % 10 };
        let events = (1..=17).map(|k| event(number(k), at + k)).collect();
        commit(store, events);
        at += 17;
    }
    let all = |matches: &dyn Fn(u64) -> bool, mut after: u64, limit: ReadLimit| {
        let sees = |origin: &Origin| matches(origin.session_id.as_str()[2..].parse().unwrap());
        let mut positions = Vec::new();
        loop {
            let across = store.read_across(&sees, Position(after), limit).unwrap();
            assert!(across.events.len() <= limit.events.max(1) && across.damaged.is_empty());
            assert!(across.events.iter().all(|event| event.position <= across.next && event.position.0 > after));
            positions.extend(across.events.iter().map(|event| event.position.0));
            if across.next.0 <= after {
                return positions;
            }
            after = across.next.0;
        }
    };
    let small = |events| ReadLimit { events, bytes: 2000 };
    for limit in [small(1), small(5), small(16), ReadLimit { events: 100, bytes: usize::MAX }, ALL] {
        assert!(all(&|_| true, 0, limit).into_iter().eq(1..=680), "{limit:?}");
        let from = all(&|_| true, 333, limit);
        assert!(from.into_iter().eq(334..=680), "{limit:?}");
        let mut odd: Vec<u64> = [1, 3, 5, 7, 9].iter().flat_map(|n| positions(store, *n, 0)).collect();
        odd.sort_unstable();
        assert_eq!(all(&|n| n % 2 == 1, 0, limit), odd, "{limit:?}");
    }
    store.trim(&[Trim { session_id: session(3), through: Position(400), base: None }]).unwrap();
    store.mark_for_deletion(&session(4)).unwrap();
    let mut left: Vec<u64> = (0..10).flat_map(|n| positions(store, n, 0)).collect();
    left.sort_unstable();
    assert_eq!(all(&|_| true, 0, small(9)), left, "what is marked to go is not read");
    sweep(store);
    assert_eq!(all(&|_| true, 0, small(9)), left);
}

fn store_hides_deleted_sessions_before_it_removes_their_data(store: &dyn Store) {
    commit(store, vec![event(0, 1), event(1, 2)]);
    let batch = Batch {
        texts: vec![text(0, 1, "user", "zebra")],
        requests: vec![request(0, 0, RequestState::Open)],
        prompts: vec![prompt(0, "r_1", Some("[]"))],
        ..Batch::default()
    };
    store.commit(&batch).unwrap();
    assert!(store.holds(&session(0)) && !store.holds(&session(99)));
    assert!(!store.mark_for_deletion(&session(99)).unwrap());
    assert!(store.mark_for_deletion(&session(0)).unwrap());
    assert!(!store.holds(&session(0)) && store.session(&session(0)).unwrap().is_none());
    assert!(store.sessions().unwrap().iter().all(|entry| entry.row.session_id != session(0)));
    assert_eq!((positions(store, 0, 0), store.search("zebra", 9).unwrap()), (vec![], vec![]));
    assert_eq!(
        (listed(store, None, None, 9), store.request(&request(0, 0, RequestState::Open).request_id).unwrap()),
        (vec![], None)
    );
    assert!(store.prompts(&session(0)).unwrap().is_empty() && blocks(store, 0, 9).is_empty());
    // Late events, rows and texts of a deleted session are refused until its bytes are removed.
    if store.is_being_deleted(&session(0)) {
        let late = Batch { events: vec![event(0, 3)], sessions: vec![row(0)], ..Batch::default() };
        assert!(matches!(store.commit(&late), Err(StoreError::NoSession(id)) if id == session(0)));
    }
    let late = Batch { texts: vec![text(0, 1, "user", "late")], ..Batch::default() };
    assert!(matches!(store.commit(&late), Err(StoreError::NoSession(id)) if id == session(0)));
    assert!(!store.mark_for_deletion(&session(0)).unwrap());
    sweep(store);
    assert!(!store.is_being_deleted(&session(0)));
    assert_eq!((store.head(), positions(store, 1, 0)), (Position(2), vec![2]));
}

fn prompt(of: u64, run: &str, content: Option<&str>) -> PromptChange {
    let content = content.map(|content| content.as_bytes().to_vec());
    PromptChange { session_id: session(of), run_id: RunId::trusted(run), content }
}

fn store_keeps_prompts_until_they_are_reported(store: &dyn Store) {
    commit(store, vec![]);
    let put = |prompts| store.commit(&Batch { prompts, ..Batch::default() });
    put(vec![prompt(1, "r_1", Some("one")), prompt(1, "r_2", Some("two")), prompt(2, "r_1", Some("other"))]).unwrap();
    put(vec![prompt(1, "r_1", None), prompt(1, "r_none", None), prompt(1, "r_2", Some("more"))]).unwrap();
    let stored = |n| store.prompts(&session(n)).unwrap();
    assert_eq!(stored(1), [(RunId::trusted("r_2"), b"more".to_vec())]);
    assert_eq!(stored(2), [(RunId::trusted("r_1"), b"other".to_vec())]);
    assert_eq!(stored(3), []);
    assert!(matches!(put(vec![prompt(99, "r_1", Some("x"))]), Err(StoreError::NoSession(_))));
}

fn store_keeps_surfaces_as_a_whole_and_changes(store: &dyn Store) {
    commit(store, vec![]);
    let change = |of: u64, surface: &str, rev, write| SurfaceChange {
        session_id: session(of),
        surface: surface.into(),
        rev,
        write,
    };
    let whole = |body: &str| SurfaceWrite::Whole(body.into());
    let part = |body: &str| SurfaceWrite::Change(body.into());
    let put = |surfaces| store.commit(&Batch { surfaces, ..Batch::default() });
    let body_texts = |n| {
        store
            .surfaces(&session(n))
            .unwrap()
            .iter()
            .map(|body| String::from_utf8_lossy(body).into_owned())
            .collect::<Vec<_>>()
    };
    put(vec![change(1, "b", 1, whole("b1")), change(1, "a", 1, whole("a1")), change(2, "a", 7, whole("other"))])
        .unwrap();
    put((2..=11).map(|rev| change(1, "b", rev, part(&format!("b{rev}")))).collect()).unwrap();
    assert_eq!(body_texts(1), ["a1", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10", "b11"]);
    put(vec![change(1, "b", 12, whole("b12")), change(1, "b", 13, part("b13"))]).unwrap();
    assert_eq!(body_texts(1), ["a1", "b12", "b13"]);
    put(vec![change(1, "a", 2, SurfaceWrite::Closed), change(1, "none", 1, SurfaceWrite::Closed)]).unwrap();
    assert_eq!(
        (body_texts(1), body_texts(2), body_texts(3)),
        (vec!["b12".into(), "b13".into()], vec!["other".into()], vec![])
    );
    assert!(matches!(put(vec![change(99, "a", 1, whole("x"))]), Err(StoreError::NoSession(_))));
    let with_surfaces = || {
        let mut sessions = store.sessions_with_surfaces().unwrap();
        sessions.sort();
        sessions
    };
    assert_eq!(with_surfaces(), [session(1), session(2)]);
    assert!(store.mark_for_deletion(&session(1)).unwrap());
    assert_eq!(body_texts(1), Vec::<String>::new());
    assert_eq!(with_surfaces(), [session(2)]);
    put(vec![change(2, "a", 8, SurfaceWrite::Closed)]).unwrap();
    assert_eq!(with_surfaces(), []);
    sweep(store);
}

fn devices_come_and_go(store: &dyn Store) {
    let put = |id: &str, body: &str| DeviceChange::Put { device_id: id.into(), body: body.into() };
    let devices = vec![put("a", "1"), put("b", "2"), put("a", "3")];
    store.commit(&Batch { devices, ..Batch::default() }).unwrap();
    assert_eq!(store.devices().unwrap(), [b"3".to_vec(), b"2".to_vec()]);
    let deleted = ["a", "none"].map(|id| DeviceChange::Delete { device_id: id.into() });
    store.commit(&Batch { devices: deleted.into(), ..Batch::default() }).unwrap();
    assert_eq!(store.devices().unwrap(), [b"2".to_vec()]);
}

fn store_keeps_push_targets_and_cursor(store: &dyn Store) {
    let put = |name: &str, body: &str| PushChange { name: name.into(), body: Some(body.into()) };
    let pushes = vec![put("b", "1"), put("a", "2"), put("b", "3")];
    store.commit(&Batch { pushes, ..Batch::default() }).unwrap();
    assert_eq!(store.pushes().unwrap(), [("a".into(), b"2".to_vec()), ("b".into(), b"3".to_vec())]);
    let pushes = ["b", "none"].map(|name| PushChange { name: name.into(), body: None });
    store.commit(&Batch { pushes: pushes.into(), ..Batch::default() }).unwrap();
    assert_eq!(store.pushes().unwrap(), [("a".into(), b"2".to_vec())]);
}

fn store_keeps_marks_with_their_events(store: &dyn Store) {
    let mark = |generation, offset| RuntimeMark { generation, offset };
    let marks = |store: &dyn Store| store.sessions().unwrap().iter().map(|entry| entry.mark).collect::<Vec<_>>();
    store.commit(&Batch { sessions: vec![row(1), row(2)], ..Batch::default() }).unwrap();
    assert_eq!(marks(store), [None, None]);
    let batch = |marks| Batch { events: vec![event(2, store.head().0 + 1)], marks, ..Batch::default() };
    store.commit(&batch(vec![(session(2), mark(1, 7)), (session(2), mark(1, 9))])).unwrap();
    assert_eq!(marks(store), [None, Some(mark(1, 9))]);
    // A refused batch leaves the marks unchanged.
    assert!(store.commit(&batch(vec![(session(2), mark(1, 20)), (session(3), mark(1, 1))])).is_err());
    assert_eq!(marks(store), [None, Some(mark(1, 9))]);
    store.commit(&batch(vec![(session(2), mark(2, 3)), (session(1), mark(1, u64::MAX))])).unwrap();
    assert_eq!(marks(store), [Some(mark(1, u64::MAX)), Some(mark(2, 3))]);
    store.forget(&session(2)).unwrap();
    store.commit(&Batch { sessions: vec![row(2)], ..Batch::default() }).unwrap();
    assert_eq!(marks(store), [Some(mark(1, u64::MAX)), None]);
}

fn text(n: u64, position: u64, role: &'static str, text: &str) -> TextRow {
    TextRow { session_id: session(n), position: Position(position), role, text: text.into() }
}

fn search_accepts_any_text(store: &dyn Store) {
    commit(store, vec![event(0, 1)]);
    let texts = vec![text(0, 1, "user", "plain words AND \"quotes\" (x*) text:col -minus NEAR 100% c++")];
    store.commit(&Batch { texts, ..Batch::default() }).unwrap();
    for nothing in ["", " \n\t", "\"", "***", "-", "()", "\0", "\u{2}\u{3}", "^", "--- ...", "\u{1f600}"] {
        assert_eq!(store.search(nothing, 9).unwrap(), [], "{nothing:?}");
    }
    let found = [
        "AND",
        "\"quotes\"",
        "\"quotes",
        "quo",
        "text:col",
        "-minus",
        "NEAR",
        "plain*",
        "c++",
        "wor\0",
        "(x*) pl",
        "\u{fe0f}plain",
    ];
    for input in found {
        assert_eq!(store.search(input, 9).unwrap().len(), 1, "{input:?}");
    }
    for none in ["plain OR nothing", "NOT plain", "plain NEAR nothing", "te:col", "{text}:nothing"] {
        assert_eq!(store.search(none, 9).unwrap().len(), 0, "{none:?}");
    }
    let long = "plain ".repeat(10_000);
    assert_eq!(store.search(&long, 9).unwrap().len(), 1);
    assert!(store.search(&"\"'\\;".repeat(10_000), 9).unwrap().is_empty());
}

fn store_searches_words_phrases_and_prefixes(store: &dyn Store) {
    commit(store, vec![event(0, 1), event(1, 2)]);
    let texts = vec![
        text(0, 1, "agent", "The quick brown fox \u{2}jumps\u{3} over"),
        text(1, 2, "user", "brown bread"),
        text(1, 2, "tool", "quickly"),
    ];
    store.commit(&Batch { texts, ..Batch::default() }).unwrap();
    let hits = store.search("QUICK bro", 9).unwrap();
    assert_eq!(hits.len(), 1);
    assert_eq!((&hits[0].session_id, hits[0].position, hits[0].role.as_str()), (&session(0), Position(1), "agent"));
    assert!(hits[0].snippet.contains("\u{2}quick"), "{:?}", hits[0].snippet);
    assert!(hits[0].snippet.contains(" jumps "), "the text's own marks are gone: {:?}", hits[0].snippet);
    assert_eq!(store.search("brown", 9).unwrap().len(), 2);
    assert_eq!(store.search("brown", 1).unwrap().len(), 1);
    assert_eq!(store.search("quick", 9).unwrap().len(), 2);
    assert_eq!(store.search("quick fox", 9).unwrap().len(), 1);
    assert_eq!(store.search("brown-fox", 9).unwrap().len(), 1);
    assert_eq!(store.search("fox-brown", 9).unwrap().len(), 0);
    let unknown = Batch { texts: vec![text(99, 3, "user", "x")], ..Batch::default() };
    assert!(matches!(store.commit(&unknown), Err(StoreError::NoSession(id)) if id == session(99)));
}

fn store_retention_removes_whole_blocks_and_spares_some(store: &dyn Store) {
    for block in 0..5 {
        commit(store, (1..=4).map(|k| event(block % 2, block * 10 + k)).collect());
    }
    let before = store.usage().unwrap().event_bytes;
    let texts = vec![text(0, 2, "user", "early"), text(0, 44, "user", "late")];
    store.commit(&Batch { texts, ..Batch::default() }).unwrap();
    let oldest = store.oldest(Position::START, 99).unwrap();
    assert!(oldest.iter().map(|block| block.first.0).eq([1, 11, 21, 31, 41]), "in the order of the log");
    assert_eq!(store.oldest(Position(11), 2).unwrap(), oldest[2..4]);
    let single = blocks(store, 0, 2);
    assert_eq!(single.iter().map(|block| block.last.0).collect::<Vec<_>>(), [4, 24]);
    assert_eq!(single[0].at, event(0, 4).at);
    let bytes: usize = oldest.iter().map(|block| block.bytes).sum();
    assert_eq!(bytes as u64, before);

    let trim = |n, through, base: Option<&str>| {
        let base = base.map(|base| base.as_bytes().to_vec());
        let lost = store.trim(&[Trim { session_id: session(n), through: Position(through), base }]).unwrap();
        let left = blocks(store, n, 99);
        assert!(lost.iter().all(|(_, last)| left.iter().all(|block| block.first > *last)), "not listed any more");
        sweep(store);
        lost
    };
    assert_eq!(trim(0, 3, Some("x")), []);
    assert_eq!(store.sessions().unwrap()[0].base, None);
    assert_eq!(trim(0, 23, Some("first")), [(session(0), Position(4))]);
    assert_eq!(positions(store, 0, 0), [21, 22, 23, 24, 41, 42, 43, 44]);
    let entry = &store.sessions().unwrap()[0];
    assert_eq!((entry.trimmed, entry.last), (Position(4), Position(44)));
    assert_eq!(entry.base.as_deref(), Some(&b"first"[..]));
    assert!(store.usage().unwrap().event_bytes < before);
    assert_eq!((store.search("early", 9).unwrap().len(), store.search("late", 9).unwrap().len()), (0, 1));

    let spared = |from: Option<u64>| SessionRow { spare_from: from.map(Position), ..row(0) };
    store.commit(&Batch { sessions: vec![spared(Some(24))], ..Batch::default() }).unwrap();
    assert_eq!(trim(0, u64::MAX, None), []);
    store.commit(&Batch { sessions: vec![spared(Some(25))], ..Batch::default() }).unwrap();
    assert_eq!(trim(0, u64::MAX, None), [(session(0), Position(24))]);
    assert_eq!(store.sessions().unwrap()[0].base.as_deref(), Some(&b"first"[..]));
    store.commit(&Batch { sessions: vec![spared(None)], ..Batch::default() }).unwrap();
    assert_eq!(trim(0, u64::MAX, Some("last")), [(session(0), Position(44))]);
    let entry = &store.sessions().unwrap()[0];
    assert_eq!((entry.trimmed, entry.last, store.head()), (Position(44), Position(44), Position(44)));
    assert_eq!(positions(store, 0, 0), [0; 0]);
    assert_eq!(positions(store, 1, 0).len(), 8);
    assert_eq!(trim(99, 5, None), []);
    commit(store, vec![event(0, 45)]);
    assert_eq!(positions(store, 0, 0), [45]);
}

fn store_forget_leaves_only_the_head(store: &dyn Store) {
    commit(store, vec![event(0, 1), event(1, 2)]);
    let batch = Batch {
        events: vec![event(0, 3)],
        texts: vec![text(0, 3, "user", "zebra"), text(1, 3, "user", "zebra")],
        requests: vec![request(0, 0, RequestState::Open), request(1, 1, RequestState::Open)],
        ..Batch::default()
    };
    store.commit(&batch).unwrap();
    store.forget(&session(0)).unwrap();
    store.forget(&session(0)).unwrap();
    store.forget(&session(99)).unwrap();
    assert_eq!(positions(store, 0, 0), [0; 0]);
    assert_eq!(blocks(store, 0, 9), []);
    assert!(store.sessions().unwrap().iter().all(|entry| entry.row.session_id != session(0)));
    assert_eq!(store.search("zebra", 9).unwrap().iter().map(|hit| &hit.session_id).collect::<Vec<_>>(), [&session(1)]);
    assert_eq!(listed(store, None, None, 9), [request(1, 1, RequestState::Open)]);
    assert_eq!(store.head(), Position(3));
    assert_eq!(positions(store, 1, 0), [2]);
    let bytes: usize = blocks(store, 1, 9).iter().map(|block| block.bytes).sum();
    assert_eq!(store.usage().unwrap().event_bytes, bytes as u64);
    commit(store, vec![event(0, 4)]);
    assert_eq!(positions(store, 0, 0), [4]);
    assert_eq!(store.sessions().unwrap().last().unwrap().row.session_id, session(0));
}

fn large_batches_make_several_blocks(store: &dyn Store) {
    let body = Bytes::from(vec![b' '; 10_000]);
    let huge = Bytes::from(vec![b'x'; 3 << 20]);
    let mut events: Vec<_> = (1..=100).map(|p| event_with(0, p, body.clone(), None)).collect();
    events.push(event_with(0, 101, huge.clone(), Some(huge)));
    events.push(event(0, 102));
    commit(store, events.clone());
    assert!(blocks(store, 0, 99).len() >= 5);
    let back = store.read(&session(0), Position::START, ALL).unwrap();
    assert!(back.iter().eq(events.iter().map(|event| &**event)));
    assert_eq!(positions(store, 0, 99), [100, 101, 102]);
}

fn reads_are_concurrent_with_commits(store: &dyn Store) {
    commit(store, vec![]);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut seen = 0;
                loop {
                    let ended = done.load(std::sync::atomic::Ordering::Acquire);
                    let head = store.head().0;
                    let new = positions(store, 0, seen);
                    assert!(new.iter().copied().eq(seen + 1..=seen + new.len() as u64), "a hole after {seen}: {new:?}");
                    seen = new.last().copied().unwrap_or(seen);
                    assert!(seen >= head, "{seen} < {head}: committed and not to be seen");
                    assert!(seen <= store.head().0, "{seen} is seen before it is committed");
                    if ended {
                        return assert_eq!(seen, 600);
                    }
                }
            });
        }
        for batch in 0..200 {
            store
                .commit(&Batch { events: (1..=3).map(|k| event(0, batch * 3 + k)).collect(), ..Batch::default() })
                .unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Release);
    });
}

/// A step of the random test.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Commit events of these sessions, each after a gap of so many positions.
    Commit(Vec<(u64, u64, usize)>, bool),
    /// Read this session from a share of the head, with this limit.
    Read(u64, u8, usize),
    /// Trim this session up to a share of the head.
    Trim(u64, u8),
    /// One sweep step.
    Sweep,
    /// Forget this session.
    Forget(u64),
}

/// Returns a strategy for any step.
pub(super) fn step() -> impl Strategy<Value = Step> {
    let events = proptest::collection::vec((0..4u64, 1..4u64, 0..3000usize), 0..12);
    prop_oneof![
        6 => (events, any::<bool>()).prop_map(|(events, sync)| Step::Commit(events, sync)),
        4 => (0..4u64, any::<u8>(), 1..9usize).prop_map(|(n, share, limit)| Step::Read(n, share, limit)),
        1 => (0..4u64, any::<u8>()).prop_map(|(n, share)| Step::Trim(n, share)),
        1 => (0..4u64).prop_map(Step::Forget),
        1 => Just(Step::Sweep),
    ]
}

/// Applies the steps to a store and to a model of maps, and compares them.
pub(super) fn follow_model(store: &dyn Store, steps: &[Step]) {
    let mut model: BTreeMap<u64, BTreeMap<u64, Arc<Event>>> = BTreeMap::new();
    let mut head = 0;
    for step in steps {
        match step {
            Step::Commit(draft, sync) => {
                let mut events = Vec::new();
                for &(n, gap, length) in draft {
                    head += gap;
                    let event = event_with(n, head, vec![b'a'; length].into(), None);
                    model.entry(n).or_default().insert(head, Arc::clone(&event));
                    events.push(event);
                }
                let sessions = (0..4).map(row).collect();
                store.commit(&Batch { events, sessions, sync: *sync, ..Batch::default() }).unwrap();
            }
            Step::Read(n, share, limit) => {
                let after = head * u64::from(*share) / 255;
                let limit = ReadLimit { events: *limit, bytes: 6000 };
                let back = store.read(&session(*n), Position(after), limit).unwrap();
                let all = model.get(n).into_iter().flat_map(|events| events.range(after + 1..)).map(|(_, event)| event);
                assert!(back.len() <= limit.events);
                assert_eq!(back.is_empty(), all.clone().next().is_none());
                assert!(back.iter().eq(all.take(back.len()).map(|event| &**event)));
                let (before, retained) = (after + 1, model.get(n));
                let back = store.read_before(&session(*n), Position(before), limit).unwrap();
                let all = retained.into_iter().flat_map(|events| events.range(..before).rev()).map(|(_, event)| event);
                assert!(back.len() <= limit.events);
                assert_eq!(back.is_empty(), all.clone().next().is_none());
                assert!(back.iter().rev().eq(all.take(back.len()).map(|event| &**event)));
            }
            Step::Trim(n, share) => {
                let through = Position(head * u64::from(*share) / 255);
                let lost = store.trim(&[Trim { session_id: session(*n), through, base: None }]).unwrap();
                for (id, last) in lost {
                    assert_eq!(id, session(*n));
                    assert!(last <= through);
                    model.entry(*n).or_default().retain(|&position, _| position > last.0);
                }
            }
            Step::Sweep => drop(store.sweep().unwrap()),
            Step::Forget(n) => {
                store.forget(&session(*n)).unwrap();
                model.remove(n);
            }
        }
        assert_eq!(store.head(), Position(head));
    }
    for n in 0..4 {
        let expected: Vec<u64> = model.get(&n).into_iter().flat_map(|events| events.keys().copied()).collect();
        assert_eq!(positions(store, n, 0), expected);
    }
    let mut expected: Vec<u64> = model.values().flat_map(|events| events.keys().copied()).collect();
    expected.sort_unstable();
    let (mut after, mut all) = (Position::START, Vec::new());
    while after.0 < head {
        let across = store.read_across(&|_| true, after, ReadLimit { events: 5, bytes: 4000 }).unwrap();
        assert!(across.next > after);
        all.extend(across.events.iter().map(|event| event.position.0));
        after = across.next;
    }
    assert_eq!(all, expected);
}
