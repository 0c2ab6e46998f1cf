//! Tests of the directory over a store: recovery, retention, snapshots and deletion.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use super::state::SessionStateMachine;
use super::{
    CommitEntry, CommitRows, Directory, Filter, Launcher, Log, NewEvent, OpenSession, RetentionRules, RuntimeLink,
    SessionError, SessionRules, StartAfter,
};
use plexus_protocol::api::history::ResumeVerdict;
use plexus_protocol::*;
use plexus_store::{
    Batch, BlockInfo, EventsAcross, MemoryStore, ReadLimit, RequestPage, RequestQuery, RequestRow, SearchHit,
    SessionEntry, SessionRow, SpendQuery, SpendRow, Store, StoreError, Trim, Usage,
};

/// A launcher that starts nothing.
struct NoLauncher;

impl Launcher for NoLauncher {
    fn launch(&self, _: RuntimeSpec) -> Result<RuntimeLink, String> {
        Err("nothing is started here".into())
    }
}

/// A launcher whose driver takes one order and ends without an answer.
struct EndingDriver;

impl Launcher for EndingDriver {
    fn launch(&self, spec: RuntimeSpec) -> Result<RuntimeLink, String> {
        let info = RuntimeInfo::starting(&spec, "/".into(), 1, Timestamp::default());
        let (link, mut end) = RuntimeLink::new(RuntimeInfo { state: RuntimeState::Ready, ..info });
        tokio::spawn(async move { end.orders.recv().await });
        Ok(link)
    }
}

/// A launcher whose driver is the test.
#[derive(Default)]
struct TestDriver(parking_lot::Mutex<Option<super::DriverEnd>>);

impl Launcher for TestDriver {
    fn launch(&self, spec: RuntimeSpec) -> Result<RuntimeLink, String> {
        let info = RuntimeInfo::starting(&spec, "/".into(), 1, Timestamp::default());
        let (link, end) = RuntimeLink::new(RuntimeInfo { state: RuntimeState::Ready, ..info });
        *self.0.lock() = Some(end);
        Ok(link)
    }
}

const DAY: i64 = 86_400_000;

/// A log with a session that was never closed: one agent chunk for each of `words`, at the time `at`.
async fn log_with(words: &[&str], at: Timestamp) -> (Log, Arc<Origin>) {
    let log = Log::open(Arc::new(MemoryStore::new().unwrap())).unwrap();
    let origin = Arc::new(Origin {
        session_id: SessionId::trusted("s_old"),
        runtime_id: RuntimeId::trusted("demo"),
        dialect: "acp".into(),
    });
    let state = SessionStateMachine::new(Arc::clone(&origin), Some("n".into()), "/".into(), None, 1, at);
    let event = |seq: usize, kind, body: serde_json::Value| NewEvent {
        run_id: RunId::trusted("r_1"),
        seq: seq as u64,
        at,
        kind,
        body: body.to_string().into(),
        native: None,
    };
    let mode = serde_json::json!({ "sessionUpdate": "current_mode_update", "currentModeId": "ask" });
    let mut events = vec![event(0, Kind::CurrentModeUpdate, mode)];
    events.extend(words.iter().enumerate().map(|(n, word)| {
        let body = serde_json::json!({ "content": { "type": "text", "text": word } });
        event(n + 1, Kind::AgentMessageChunk, body)
    }));
    let row = SessionRow {
        session_id: origin.session_id.clone(),
        runtime_id: origin.runtime_id.clone(),
        dialect: origin.dialect.to_string(),
        state: state.row(),
        as_of: Position::START,
        spare_from: None,
    };
    let rows = move |_| CommitRows { sessions: vec![row], ..CommitRows::default() };
    let entry = CommitEntry {
        origin: Arc::clone(&origin),
        events,
        rows: Some(Box::new(rows)),
        on_stored: None,
        received: None,
        sync: false,
    };
    log.commit(entry).await.unwrap();
    (log, origin)
}

#[tokio::test]
async fn directory_start_closes_sessions_left_open() {
    let (log, origin) = log_with(&["hello ", "there"], Timestamp::from_millis(0)).await;
    let head = log.head();
    let directory = Directory::open(log, Arc::new(NoLauncher), SessionRules::default()).await.unwrap();
    let session = directory.session(&origin.session_id).unwrap();
    assert_eq!(session.state, SessionState::Exited);
    assert_eq!(directory.log().head(), head.next(), "an event says so");
    let snapshot = directory.snapshots().get(&origin.session_id).await.unwrap();
    assert_eq!(snapshot.messages[0].text, "hello there");
    assert_eq!(snapshot.cursor.position, head.next());
    assert!(!snapshot.trimmed);
    let again = Directory::open(directory.log().clone(), Arc::new(NoLauncher), SessionRules::default()).await.unwrap();
    assert_eq!(again.log().head(), head.next(), "once is enough");
}

#[tokio::test]
async fn directory_forgotten_since_tells_callers_too_far_behind() {
    let store: Arc<dyn plexus_store::Store> = Arc::new(MemoryStore::new().unwrap());
    let directory =
        Directory::open(Log::open(store).unwrap(), Arc::new(NoLauncher), SessionRules::default()).await.unwrap();
    let origin = |n: usize| {
        let session_id = SessionId::trusted(format!("s_{n}"));
        Arc::new(Origin { session_id, runtime_id: RuntimeId::trusted("demo"), dialect: "acp".into() })
    };
    let since = |count| directory.deleted().since(count).map(|(gone, now)| (gone.len(), now));
    assert_eq!(since(0), Some((0, 0)));
    for n in 0..super::directory::REMEMBERED + 2 {
        directory.deleted().add(origin(n));
    }
    let all = super::directory::REMEMBERED as u64 + 2;
    assert_eq!((since(all), since(all - 1)), (Some((0, all)), Some((1, all))));
    assert_eq!((since(2), since(1)), (Some((super::directory::REMEMBERED, all)), None));
    assert_eq!(directory.deleted().since(all - 1).unwrap().0[0].session_id, origin(257).session_id);
}

#[tokio::test]
async fn directory_open_fails_when_the_driver_is_gone() {
    let log = Log::open(Arc::new(MemoryStore::new().unwrap())).unwrap();
    let directory = Directory::open(log, Arc::new(EndingDriver), SessionRules::default()).await.unwrap();
    let runtime_id = RuntimeId::trusted("ending");
    directory.launch(RuntimeSpec::new(runtime_id.clone(), "none", Connect::Endpoint("there".into()), "/")).unwrap();
    let refused = directory
        .begin(OpenSession {
            runtime_id,
            cwd: None,
            title: None,
            native_id: None,
            program: None,
            mcp_servers: Vec::new(),
        })
        .await
        .unwrap_err();
    assert!(matches!(refused, SessionError::RuntimeUnavailable(_)), "{refused}");
}

#[tokio::test]
async fn retention_removes_old_events_and_reports_a_gap() {
    let (log, origin) = log_with(&["old"], Timestamp::from_millis(0)).await;
    let cursor = log.cursor(Position(1));
    let directory = Directory::open(log, Arc::new(NoLauncher), SessionRules::default()).await.unwrap();
    let week = RetentionRules { max_age_ms: Some(7 * DAY as u64), max_bytes: None };
    assert_eq!(directory.retain(week, Timestamp::from_millis(DAY)).await.unwrap(), 0, "nothing is old yet");
    assert_eq!(directory.retain(week, Timestamp::from_millis(8 * DAY)).await.unwrap(), 1);
    let filter = Filter::session(origin.session_id.clone());
    assert_eq!(directory.log().attach(&filter, &StartAfter::Cursor(cursor)).resume, ResumeVerdict::Gap);
    let snapshot = directory.snapshots().get(&origin.session_id).await.unwrap();
    assert!(snapshot.trimmed && snapshot.messages.is_empty());
    let mode = snapshot.latest["current_mode_update"].get();
    assert!(mode.contains("ask"), "what a newcomer still needs is kept: {mode}");
}

#[tokio::test]
async fn retention_by_size_removes_the_oldest_first() {
    let (log, origin) = log_with(&["x".repeat(5000).as_str()], Timestamp::from_millis(0)).await;
    let directory = Directory::open(log, Arc::new(NoLauncher), SessionRules::default()).await.unwrap();
    let roomy = RetentionRules { max_age_ms: None, max_bytes: Some(1 << 20) };
    assert_eq!(directory.retain(roomy, Timestamp::from_millis(DAY)).await.unwrap(), 0);
    let tight = RetentionRules { max_age_ms: None, max_bytes: Some(1000) };
    assert_eq!(directory.retain(tight, Timestamp::from_millis(DAY)).await.unwrap(), 1);
    let snapshot = directory.snapshots().get(&origin.session_id).await.unwrap();
    assert!(snapshot.trimmed && snapshot.messages.is_empty());
}

/// A store that counts what is written and read.
struct CountingStore {
    store: MemoryStore,
    rows: std::sync::atomic::AtomicUsize,
    prompts: std::sync::atomic::AtomicUsize,
    /// Session rows read.
    read: std::sync::atomic::AtomicUsize,
    /// Events read.
    events: std::sync::atomic::AtomicUsize,
}

impl CountingStore {
    fn over(store: MemoryStore) -> Arc<Self> {
        Arc::new(Self { store, rows: 0.into(), prompts: 0.into(), read: 0.into(), events: 0.into() })
    }
}

impl Store for CountingStore {
    fn epoch(&self) -> Epoch {
        self.store.epoch()
    }
    fn head(&self) -> Position {
        self.store.head()
    }
    fn commit_is_quick(&self) -> bool {
        self.store.commit_is_quick()
    }
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        use std::sync::atomic::Ordering::SeqCst;
        let prompts = batch.prompts.iter().filter_map(|prompt| prompt.content.as_ref());
        self.prompts.fetch_add(prompts.map(Vec::len).sum(), SeqCst);
        self.rows.fetch_add(batch.sessions.iter().map(|row| row.state.len()).sum(), SeqCst);
        self.store.commit(batch)
    }
    fn read(&self, session: &SessionId, after: Position, limit: ReadLimit) -> Result<Vec<Event>, StoreError> {
        let events = self.store.read(session, after, limit)?;
        self.events.fetch_add(events.len(), std::sync::atomic::Ordering::SeqCst);
        Ok(events)
    }
    fn read_before(&self, session: &SessionId, before: Position, limit: ReadLimit) -> Result<Vec<Event>, StoreError> {
        let events = self.store.read_before(session, before, limit)?;
        self.events.fetch_add(events.len(), std::sync::atomic::Ordering::SeqCst);
        Ok(events)
    }
    fn read_across(
        &self,
        wanted: &dyn Fn(&Origin) -> bool,
        after: Position,
        limit: ReadLimit,
    ) -> Result<EventsAcross, StoreError> {
        self.store.read_across(wanted, after, limit)
    }
    fn sessions(&self) -> Result<Vec<SessionEntry>, StoreError> {
        let all = self.store.sessions()?;
        self.read.fetch_add(all.len(), std::sync::atomic::Ordering::SeqCst);
        Ok(all)
    }
    fn session(&self, session: &SessionId) -> Result<Option<SessionEntry>, StoreError> {
        self.read.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.store.session(session)
    }
    fn holds(&self, session: &SessionId) -> bool {
        self.store.holds(session)
    }
    fn prompts(&self, session: &SessionId) -> Result<Vec<(RunId, Vec<u8>)>, StoreError> {
        self.store.prompts(session)
    }

    fn surfaces(&self, session: &SessionId) -> Result<Vec<Vec<u8>>, StoreError> {
        self.store.surfaces(session)
    }
    fn sessions_with_surfaces(&self) -> Result<Vec<SessionId>, StoreError> {
        self.store.sessions_with_surfaces()
    }
    fn mark_for_deletion(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.store.mark_for_deletion(session)
    }
    fn is_being_deleted(&self, session: &SessionId) -> bool {
        self.store.is_being_deleted(session)
    }
    fn sweep(&self) -> Result<bool, StoreError> {
        self.store.sweep()
    }
    fn request(&self, request: &RequestId) -> Result<Option<RequestRow>, StoreError> {
        self.store.request(request)
    }
    fn requests(&self, query: RequestQuery<'_>) -> Result<RequestPage, StoreError> {
        self.store.requests(query)
    }
    fn retire(&self, before: Option<Timestamp>, max: usize) -> Result<bool, StoreError> {
        self.store.retire(before, max)
    }
    fn search(&self, text: &str, limit: usize) -> Result<Vec<SearchHit>, StoreError> {
        self.store.search(text, limit)
    }
    fn devices(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        self.store.devices()
    }
    fn pushes(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.store.pushes()
    }
    fn spending(&self, query: SpendQuery<'_>) -> Result<Vec<SpendRow>, StoreError> {
        self.store.spending(query)
    }
    fn spending_since(&self) -> Timestamp {
        self.store.spending_since()
    }
    fn trim(&self, trims: &[Trim]) -> Result<Vec<(SessionId, Position)>, StoreError> {
        self.store.trim(trims)
    }
    fn oldest(&self, after: Position, limit: usize) -> Result<Vec<BlockInfo>, StoreError> {
        self.store.oldest(after, limit)
    }
    fn usage(&self) -> Result<Usage, StoreError> {
        self.store.usage()
    }
}

#[tokio::test]
async fn persister_writes_each_waiting_prompt_once() {
    use super::session::{Persister, decision_env};
    use super::session_handle::SessionHandle;
    use super::state::Plan;
    use plexus_dialects::{EventDraft, RuntimeEvent};
    use std::sync::atomic::Ordering::SeqCst;

    let store = CountingStore::over(MemoryStore::new().unwrap());
    let log = Log::open(Arc::clone(&store) as Arc<dyn Store>).unwrap();
    let origin = Arc::new(Origin {
        session_id: SessionId::trusted("s_1"),
        runtime_id: RuntimeId::trusted("demo"),
        dialect: "acp".into(),
    });
    let mut state =
        SessionStateMachine::new(Arc::clone(&origin), Some("n".into()), "/".into(), None, 1, Timestamp::default());
    let handle = SessionHandle::new(&state, None);
    let mut persister = Persister::new(log.clone(), handle, Arc::default(), None);
    const PICTURE: usize = 2 << 20;
    for _ in 0..6 {
        let content = format!(r#"{{"type":"image","data":"{}"}}"#, "x".repeat(PICTURE));
        let content = vec![serde_json::value::RawValue::from_string(content).unwrap()];
        let mut plan = Plan::default();
        state
            .prompt(
                Arc::new(content),
                Resolver::gateway(),
                None,
                &mut decision_env!(SessionRules::default()),
                &mut plan,
            )
            .unwrap();
        persister.keep(&plan, &state).await.unwrap();
    }
    for n in 0..100 {
        let mut plan = Plan::default();
        let body = serde_json::json!({ "toolCallId": format!("t{n}"), "title": "work" });
        let tool = Some(plexus_dialects::ToolCallRef::new(format!("t{n}"), false));
        let draft = EventDraft { tool, ..EventDraft::new(Kind::ToolCall, &body) };
        state.on_runtime_event(
            RuntimeEvent::Event { native: None, draft },
            &mut decision_env!(SessionRules::default()),
            &mut plan,
        );
        persister.keep(&plan, &state).await.unwrap();
    }
    let (rows, prompts) = (store.rows.load(SeqCst), store.prompts.load(SeqCst));
    assert!(prompts < 6 * (PICTURE + 100), "{prompts} bytes of prompts were written");
    assert!(rows < PICTURE, "{rows} bytes of rows were written");
    assert_eq!(log.store().prompts(&origin.session_id).unwrap().len(), 6, "words do not mean that it was told");
    let mut plan = Plan::default();
    state.runtime_exited(&super::RuntimeExit::default(), &mut decision_env!(SessionRules::default()), &mut plan);
    persister.keep(&plan, &state).await.unwrap();
    assert!(log.store().prompts(&origin.session_id).unwrap().is_empty());
}

/// Two sessions change one after the other, with the clock set back in between.
#[tokio::test]
async fn session_rank_follows_the_log_not_the_clock() {
    use super::session::{Persister, decision_env};
    use super::session_handle::SessionHandle;
    use super::state::{DecisionEnv, Plan};

    const HOUR: i64 = 3_600_000;
    let log = Log::open(Arc::new(MemoryStore::new().unwrap())).unwrap();
    let mut ranks = Vec::new();
    for (name, at) in [("s_1", 5 * HOUR), ("s_2", 4 * HOUR)] {
        let origin = Arc::new(Origin {
            session_id: SessionId::trusted(name),
            runtime_id: RuntimeId::trusted("demo"),
            dialect: "acp".into(),
        });
        let mut state = SessionStateMachine::new(origin, Some("n".into()), "/".into(), None, 1, Timestamp::default());
        let handle = SessionHandle::new(&state, None);
        let mut persister = Persister::new(log.clone(), handle.clone(), Arc::default(), None);
        let before = handle.rank();
        let mut plan = Plan::default();
        let now = Timestamp::from_millis(at);
        let by = Resolver::gateway();
        state
            .prompt(
                Arc::new(Vec::new()),
                by,
                None,
                &mut DecisionEnv { now, ..decision_env!(SessionRules::default()) },
                &mut plan,
            )
            .unwrap();
        persister.keep(&plan, &state).await.unwrap();
        assert!(handle.rank() > before);
        assert_eq!(handle.info().updated_at, Timestamp::from_millis(at), "what is shown is what the clock said");
        ranks.push(handle.rank());
    }
    assert!(ranks[1] > ranks[0], "{ranks:?}");
}

#[tokio::test]
async fn directory_snapshot_reads_only_its_own_session() {
    let store = CountingStore::over(MemoryStore::new().unwrap());
    let log = Log::open(Arc::clone(&store) as Arc<dyn Store>).unwrap();
    let id = |n: usize| SessionId::trusted(format!("s_{n}"));
    for n in 0..300 {
        let (session_id, runtime_id) = (id(n), RuntimeId::trusted("demo"));
        let origin = Arc::new(Origin { session_id, runtime_id, dialect: "acp".into() });
        let state = SessionStateMachine::new(Arc::clone(&origin), None, "/".into(), None, 1, Timestamp::default());
        let row = SessionRow {
            session_id: origin.session_id.clone(),
            runtime_id: origin.runtime_id.clone(),
            dialect: origin.dialect.to_string(),
            state: state.row(),
            as_of: Position::START,
            spare_from: None,
        };
        let rows = move |_| CommitRows { sessions: vec![row], ..CommitRows::default() };
        let entry = CommitEntry {
            origin,
            events: Vec::new(),
            rows: Some(Box::new(rows)),
            on_stored: None,
            received: None,
            sync: false,
        };
        log.commit(entry).await.unwrap();
    }
    let directory = Directory::open(log, Arc::new(NoLauncher), SessionRules::default()).await.unwrap();
    let before = store.read.load(std::sync::atomic::Ordering::SeqCst);
    directory.snapshots().get(&id(7)).await.unwrap();
    let filter = Filter::session(id(7));
    directory.log().attach(&filter, &StartAfter::Oldest);
    assert!(directory.requests().open(&filter).is_empty());
    assert!(store.read.load(std::sync::atomic::Ordering::SeqCst) - before <= 1);
}

#[tokio::test]
async fn session_deleted_while_reopening_stays_deleted() {
    use plexus_dialects::{OpenedAs, RuntimeCommand, RuntimeEvent};

    let (log, origin) = log_with(&["old"], Timestamp::from_millis(0)).await;
    let (id, launcher) = (origin.session_id.clone(), Arc::new(TestDriver::default()));
    let directory =
        Directory::open(log, Arc::clone(&launcher) as Arc<dyn Launcher>, SessionRules::default()).await.unwrap();
    let spec = RuntimeSpec::new(origin.runtime_id.clone(), "acp", Connect::Endpoint("there".into()), "/");
    directory.launch(spec).unwrap();
    let mut end = launcher.0.lock().take().unwrap();
    // Reopened, and deleted before the agent has answered.
    let opening = {
        let (directory, id) = (directory.clone(), id.clone());
        tokio::spawn(async move { directory.reopen(&id).await })
    };
    let order = end.orders.recv().await.unwrap();
    let RuntimeCommand::Open { ticket, .. } = order.command else { panic!("not an opening") };
    directory.delete(&id).await.unwrap();
    assert!(directory.session(&id).is_none());
    let opened = RuntimeEvent::Opened { ticket, native: "n".into(), drafts: Vec::new(), how: OpenedAs::Resumed };
    order.sender.put(super::RuntimeMessage::Events(vec![opened], None)).await;
    let refused = opening.await.unwrap().unwrap_err();
    assert!(matches!(refused, SessionError::NoSession(_)), "{refused}");
    assert!(directory.session(&id).is_none() && directory.sessions().is_empty());
    assert!(directory.log().store().sessions().unwrap().is_empty(), "nothing for the next gateway to find");
    assert!(end.orders.try_recv().is_err(), "the agent is asked for nothing more");
    assert!(matches!(directory.delete(&id).await, Err(SessionError::NoSession(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_is_bounded_and_shared_by_all_callers() {
    let words: Vec<String> = (0..2000).map(|n| format!("word number {n} ")).collect();
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    let (log, origin) = log_with(&texts, Timestamp::from_millis(0)).await;
    let directory = Directory::open(log, Arc::new(NoLauncher), SessionRules::default()).await.unwrap();
    let id = &origin.session_id;
    let ask = |_| {
        let (directory, id) = (directory.clone(), id.clone());
        tokio::spawn(async move { directory.snapshots().get(&id).await.unwrap() })
    };
    let mut all = Vec::new();
    for answer in (0..64).map(ask).collect::<Vec<_>>() {
        all.push(answer.await.unwrap());
    }
    let one = &all[0];
    assert!(all.iter().all(|other| Arc::ptr_eq(&one.messages, &other.messages)), "folded once for all");
    let text = &one.messages[0].text;
    assert!(text.len() <= super::WINDOW && text.len() > super::WINDOW / 2, "{}", text.len());
    assert!(one.truncated && !one.trimmed && one.messages[0].continued);
    assert!(one.latest["current_mode_update"].get().contains("ask"), "the latest is always there");
    // The page before the snapshot and the snapshot make up the whole text.
    let limit = super::PageLimit { items: 500, bytes: 1 << 20, merge: true, output: usize::MAX };
    let to = super::LogPosition::before(one.before.as_ref().unwrap().position);
    let mut charge = plexus_ledger::Ledger::default().connection("phone").nothing();
    let page = directory.log().page_before(id, to, limit, &mut charge).await.unwrap();
    let older: String = page
        .items
        .iter()
        .filter(|item| item.first().kind == Kind::AgentMessageChunk)
        .map(|item| {
            serde_json::from_slice::<serde_json::Value>(&item.body()).unwrap()["content"]["text"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert!(!page.more);
    assert_eq!(older + text, words.concat());
    let less = directory.snapshots().within(id, 600).await.unwrap();
    assert!(less.messages[0].text.len() <= 600 && text.ends_with(&less.messages[0].text));
    assert!(less.before.unwrap().position > one.before.as_ref().unwrap().position);
    let none = directory.snapshots().within(id, 0).await.unwrap();
    assert!(none.messages.is_empty() && none.before.unwrap().position == none.cursor.position.next());
}

#[tokio::test]
async fn snapshot_fold_kept_up_to_date_equals_a_rebuilt_one() {
    let words: Vec<String> = (0..300).map(|n| format!("word number {n} ")).collect();
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    let (log, origin) = log_with(&texts, Timestamp::from_millis(0)).await;
    let filter = Filter::session(origin.session_id.clone());
    let page =
        log.read(&filter, Position::START, plexus_store::ReadLimit { events: 9999, bytes: 1 << 30 }).await.unwrap();
    let folds = super::snapshot_cache::SnapshotCache::default();
    for event in &page.events {
        // One fold is kept up to date event by event, the other built from the end.
        let mut kept = folds.fold_up_to(&log, &origin.session_id, event.position).await.unwrap();
        if event.position.0 % 50 != 0 {
            continue;
        }
        let fresh = super::snapshot_cache::SnapshotCache::default();
        let mut made = fresh.fold_up_to(&log, &origin.session_id, event.position).await.unwrap();
        let shown = |fold: &mut super::snapshot_cache::CachedFold| {
            let info =
                SessionStateMachine::new(Arc::clone(&origin), None, "/".into(), None, 1, Timestamp::default()).info();
            let cursor = log.cursor(event.position);
            let snapshot = fold.fold().unwrap().snapshot(info, Vec::new(), cursor, false, super::WINDOW);
            let text: String = snapshot.messages.iter().map(|message| &*message.text).collect();
            (text, snapshot.truncated)
        };
        let (one, other) = (shown(&mut kept), shown(&mut made));
        // The windows may differ by one piece at the beginning; the common part is equal.
        let shorter = one.0.len().min(other.0.len());
        assert_eq!(one.0[one.0.len() - shorter..], other.0[other.0.len() - shorter..]);
        assert!(one.0.len().abs_diff(other.0.len()) <= 600, "{} {}", one.0.len(), other.0.len());
        assert_eq!(one.1, other.1);
    }
    let (count, bytes) = folds.usage();
    assert!(count == 1 && bytes < 64 << 10, "{count} {bytes}");
    folds.forget(&origin.session_id);
    assert_eq!(folds.usage(), (0, 0));
}

#[tokio::test]
async fn prompt_of_a_run_reads_only_events_since_it_began() {
    use super::prompts;

    let store = CountingStore::over(MemoryStore::new().unwrap());
    let log = Log::open(Arc::clone(&store) as Arc<dyn Store>).unwrap();
    let (session_id, runtime_id) = (SessionId::trusted("s_1"), RuntimeId::trusted("demo"));
    let origin = Arc::new(Origin { session_id: session_id.clone(), runtime_id, dialect: "acp".into() });
    let event = |run: &str, seq: u64, kind: Kind, body: serde_json::Value| NewEvent {
        run_id: RunId::trusted(run),
        seq,
        at: Timestamp::default(),
        kind,
        body: body.to_string().into(),
        native: None,
    };
    let content = |run: &str, words: &str| {
        let prompt = serde_json::json!({ "content": { "type": "text", "text": words }, "_meta": { "plexus": { "by": Resolver::gateway() } } });
        let echo = serde_json::json!({ "content": { "type": "text", "text": "an echo of the agent's" } });
        let chunk = |seq, body| event(run, seq, Kind::UserMessageChunk, body);
        vec![
            event(run, 1, Kind::RunStarted, serde_json::json!({})),
            chunk(2, prompt.clone()),
            chunk(3, prompt),
            chunk(4, echo),
        ]
    };
    let output = |run: &str, count: u64| {
        (5..5 + count).map(|seq| event(run, seq, Kind::AgentMessageChunk, serde_json::json!({}))).collect::<Vec<_>>()
    };
    // The second prompt was queued while the first ran.
    let queued = vec![event("r_2", 0, Kind::RunStatus, serde_json::json!({ "status": "queued" }))];
    let never = vec![
        event("r_3", 0, Kind::RunStatus, serde_json::json!({})),
        event("r_3", 1, Kind::RunEnded, serde_json::json!({})),
    ];
    let state = SessionStateMachine::new(Arc::clone(&origin), None, "/".into(), None, 1, Timestamp::default());
    let row = SessionRow {
        session_id: session_id.clone(),
        runtime_id: origin.runtime_id.clone(),
        dialect: origin.dialect.to_string(),
        state: state.row(),
        as_of: Position::START,
        spare_from: None,
    };
    let rows = move |_| CommitRows { sessions: vec![row], ..CommitRows::default() };
    let entry = CommitEntry {
        origin: Arc::clone(&origin),
        events: Vec::new(),
        rows: Some(Box::new(rows)),
        on_stored: None,
        received: None,
        sync: false,
    };
    log.commit(entry).await.unwrap();
    for events in [
        content("r_1", "the first"),
        queued,
        output("r_1", 50_000),
        content("r_2", "the second"),
        never,
        output("r_2", 500),
    ] {
        for events in events.chunks(5_000) {
            let (origin, events) = (Arc::clone(&origin), events.to_vec());
            log.commit(CommitEntry { origin, events, rows: None, on_stored: None, received: None, sync: false })
                .await
                .unwrap();
        }
    }
    let before = || store.events.swap(0, std::sync::atomic::Ordering::SeqCst);
    let words = |wanted: Option<&str>| {
        let wanted = wanted.map(RunId::trusted);
        let (run, content) = prompts::find(&log, &session_id, wanted.as_ref()).unwrap()?;
        Some((
            run.to_string(),
            content.map(|blocks| blocks.iter().map(|block| block.get().to_owned()).collect::<String>()),
        ))
    };
    let same = |found: Option<String>, words: &str| {
        let found = found.unwrap();
        assert_eq!((found.matches("\"text\":").count(), found.matches(words).count()), (2, 2), "{found}");
    };
    before();
    let (run, content) = words(None).unwrap();
    assert_eq!(run, "r_2");
    same(content, "the second");
    assert!(before() <= 2048, "the last run is short");
    same(words(Some("r_2")).unwrap().1, "the second");
    assert!(before() <= 2048);
    same(words(Some("r_1")).unwrap().1, "the first");
    assert_eq!(words(Some("r_3")), Some(("r_3".into(), None)), "it never began");
    assert_eq!(words(Some("r_4")), None);
}
