//! The directory over a store: what a start finds, and what retention leaves.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use super::state::State;
use super::{
    After, Directory, Entry, Filter, Launcher, Link, Log, NewEvent, OpenSession, Refusal, Resume, Retention, Rows,
    Rules,
};
use crate::model::*;
use crate::store::{MemoryStore, SessionRow};

/// Nothing is started here.
struct Nobody;

impl Launcher for Nobody {
    fn launch(&self, _: RuntimeSpec) -> Result<Link, String> {
        Err("nothing is started here".into())
    }
}

/// Its driver takes an order, and is gone without a word.
struct Deaf;

impl Launcher for Deaf {
    fn launch(&self, spec: RuntimeSpec) -> Result<Link, String> {
        let info = RuntimeInfo::starting(&spec, "/".into(), 1, Timestamp::default());
        let (link, mut end) = Link::new(RuntimeInfo { state: RuntimeState::Ready, ..info });
        tokio::spawn(async move { end.orders.recv().await });
        Ok(link)
    }
}

const DAY: i64 = 86_400_000;

/// A log in which a session said `words`, one chunk a word, at `at`, and was never closed.
async fn log_with(words: &[&str], at: Timestamp) -> (Log, Arc<Origin>) {
    let log = Log::open(Arc::new(MemoryStore::new().unwrap())).unwrap();
    let origin = Arc::new(Origin {
        session_id: SessionId::trusted("s_old"),
        runtime_id: RuntimeId::trusted("demo"),
        dialect: "acp".into(),
    });
    let state = State::new(Arc::clone(&origin), Some("n".into()), "/".into(), None, 1, at);
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
    let rows = move |_| Rows { sessions: vec![row], ..Rows::default() };
    let entry = Entry { origin: Arc::clone(&origin), events, rows: Some(Box::new(rows)), kept: None, sync: false };
    log.commit(entry).await.unwrap();
    (log, origin)
}

#[tokio::test]
async fn a_start_closes_what_the_last_gateway_left_open() {
    let (log, origin) = log_with(&["hello ", "there"], Timestamp::from_millis(0)).await;
    let head = log.head();
    let directory = Directory::open(log, Arc::new(Nobody), Rules::default()).await.unwrap();
    let session = directory.session(&origin.session_id).unwrap();
    assert_eq!(session.state, SessionState::Exited);
    assert_eq!(directory.log().head(), head.next(), "an event says so");
    let snapshot = directory.snapshot(&origin.session_id).await.unwrap();
    assert_eq!(snapshot.messages[0].text, "hello there");
    assert_eq!(snapshot.cursor.position, head.next());
    assert!(!snapshot.trimmed);
    let again = Directory::open(directory.log().clone(), Arc::new(Nobody), Rules::default()).await.unwrap();
    assert_eq!(again.log().head(), head.next(), "once is enough");
}

#[tokio::test]
async fn who_is_too_far_behind_of_what_was_forgotten_is_told_so() {
    let store: Arc<dyn crate::store::Store> = Arc::new(MemoryStore::new().unwrap());
    let directory = Directory::open(Log::open(store).unwrap(), Arc::new(Nobody), Rules::default()).await.unwrap();
    let origin = |n: usize| {
        let session_id = SessionId::trusted(format!("s_{n}"));
        Arc::new(Origin { session_id, runtime_id: RuntimeId::trusted("demo"), dialect: "acp".into() })
    };
    let told = |many| directory.forgotten_since(many).map(|(gone, now)| (gone.len(), now));
    assert_eq!(told(0), Some((0, 0)));
    for n in 0..super::directory::FORGOTTEN + 2 {
        directory.is_forgotten(origin(n));
    }
    let all = super::directory::FORGOTTEN as u64 + 2;
    assert_eq!((told(all), told(all - 1)), (Some((0, all)), Some((1, all))));
    assert_eq!((told(2), told(1)), (Some((super::directory::FORGOTTEN, all)), None));
    assert_eq!(directory.forgotten_since(all - 1).unwrap().0[0].session_id, origin(257).session_id);
}

#[tokio::test]
async fn nobody_waits_for_a_driver_that_is_gone() {
    let log = Log::open(Arc::new(MemoryStore::new().unwrap())).unwrap();
    let directory = Directory::open(log, Arc::new(Deaf), Rules::default()).await.unwrap();
    let runtime_id = RuntimeId::trusted("deaf");
    directory.launch(RuntimeSpec::new(runtime_id.clone(), "none", Connect::Endpoint("there".into()), "/")).unwrap();
    let refused =
        directory.begin(OpenSession { runtime_id, cwd: None, title: None, native_id: None }).await.unwrap_err();
    assert!(matches!(refused, Refusal::RuntimeGone(_)), "{refused}");
}

#[tokio::test]
async fn retention_removes_what_is_old_and_says_so() {
    let (log, origin) = log_with(&["old"], Timestamp::from_millis(0)).await;
    let cursor = log.cursor(Position(1));
    let directory = Directory::open(log, Arc::new(Nobody), Rules::default()).await.unwrap();
    let week = Retention { max_age_ms: Some(7 * DAY as u64), max_bytes: None };
    assert_eq!(directory.retain(week, Timestamp::from_millis(DAY)).await.unwrap(), 0, "nothing is old yet");
    assert_eq!(directory.retain(week, Timestamp::from_millis(8 * DAY)).await.unwrap(), 1);
    let filter = Filter::session(origin.session_id.clone());
    assert_eq!(directory.log().attach(&filter, &After::Cursor(cursor)).resume, Resume::Gap);
    let snapshot = directory.snapshot(&origin.session_id).await.unwrap();
    assert!(snapshot.trimmed && snapshot.messages.is_empty());
    let mode = snapshot.latest["current_mode_update"].get();
    assert!(mode.contains("ask"), "what a newcomer still needs is kept: {mode}");
}

#[tokio::test]
async fn retention_by_size_removes_the_oldest_first() {
    let (log, origin) = log_with(&["x".repeat(5000).as_str()], Timestamp::from_millis(0)).await;
    let directory = Directory::open(log, Arc::new(Nobody), Rules::default()).await.unwrap();
    let roomy = Retention { max_age_ms: None, max_bytes: Some(1 << 20) };
    assert_eq!(directory.retain(roomy, Timestamp::from_millis(DAY)).await.unwrap(), 0);
    let tight = Retention { max_age_ms: None, max_bytes: Some(1000) };
    assert_eq!(directory.retain(tight, Timestamp::from_millis(DAY)).await.unwrap(), 1);
    let snapshot = directory.snapshot(&origin.session_id).await.unwrap();
    assert!(snapshot.trimmed && snapshot.messages.is_empty());
}
