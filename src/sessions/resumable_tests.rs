//! Tests of the conversations that a runtime could resume, with small test drivers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Directory, Launcher, Log, OpenSession, ResumableAt, RuntimeLink, RuntimeMessage, SessionError, SessionRules,
};
use plexus_dialects::{OpenedAs, RuntimeCommand, RuntimeEvent};
use plexus_protocol::api::sessions::ResumablePage;
use plexus_protocol::*;
use plexus_store::MemoryStore;

/// A deadline that is reached only if the test fails.
const LONG: Duration = Duration::from_secs(20);

/// A launcher whose driver lists conversations.
struct ListingDriver {
    dialect: &'static str,
    can: &'static [Capability],
    /// The number of conversations.
    stored: usize,
    /// The most conversations in one answer.
    answer: usize,
    /// `true` if it never answers.
    silent: bool,
    /// Counts the queries.
    queries: Arc<AtomicUsize>,
    /// One permit for each answer.
    gate: Arc<tokio::sync::Semaphore>,
    ends: Arc<Mutex<Vec<tokio::sync::watch::Sender<Arc<RuntimeInfo>>>>>,
}

const ALL: &[Capability] = &[Capability::List, Capability::Load];

fn listing(stored: usize, answer: usize) -> ListingDriver {
    let gate = Arc::new(tokio::sync::Semaphore::new(1000));
    let (queries, ends) = (Arc::default(), Arc::default());
    ListingDriver { dialect: "acp", can: ALL, stored, answer, silent: false, queries, gate, ends }
}

impl Launcher for ListingDriver {
    fn launch(&self, spec: RuntimeSpec) -> Result<RuntimeLink, String> {
        let info = RuntimeInfo::starting(&spec, "/".into(), 1, Timestamp::default());
        let capabilities = Some(self.can.iter().copied().collect());
        let (link, mut end) = RuntimeLink::new(RuntimeInfo { state: RuntimeState::Ready, capabilities, ..info });
        let (stored, answer, silent) = (self.stored, self.answer, self.silent);
        let (queries, gate) = (Arc::clone(&self.queries), Arc::clone(&self.gate));
        self.ends.lock().push(end.info.clone());
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Some(order) = end.orders.recv().await {
                let event = match order.command {
                    RuntimeCommand::Open { ticket, resume, .. } => {
                        let native = resume.unwrap().native;
                        RuntimeEvent::Opened { ticket, native, drafts: Vec::new(), how: OpenedAs::Resumed }
                    }
                    RuntimeCommand::Call { ticket, native: None, params, notify: false, .. } => {
                        queries.fetch_add(1, Ordering::SeqCst);
                        if silent {
                            held.push(order.sender);
                            continue;
                        }
                        gate.acquire().await.unwrap().forget();
                        let params: Value = serde_json::from_str(params.unwrap().get()).unwrap();
                        let from: usize = params["cursor"].as_str().map_or(0, |from| from.parse().unwrap());
                        let to = (from + answer).min(stored);
                        let all: Vec<Value> = (from..to)
                            .map(|n| json!({ "sessionId": format!("c{n}"), "title": format!("Talk {n}"), "cwd": "/w" }))
                            .collect();
                        let next = (to < stored).then(|| to.to_string());
                        let reply = json!({ "sessions": all, "nextCursor": next });
                        RuntimeEvent::Replied { ticket, reply: Ok(serde_json::value::to_raw_value(&reply).unwrap()) }
                    }
                    _ => continue,
                };
                order.sender.put(RuntimeMessage::Events(vec![event], None)).await;
            }
        });
        Ok(link)
    }
}

fn id() -> RuntimeId {
    RuntimeId::trusted("past")
}

async fn directory(driver: ListingDriver) -> Directory {
    let log = Log::open(Arc::new(MemoryStore::new().unwrap())).unwrap();
    let dialect = driver.dialect;
    let directory = Directory::open(log, Arc::new(driver), SessionRules::default()).await.unwrap();
    directory.launch(RuntimeSpec::new(id(), dialect, Connect::Endpoint("there".into()), "/")).unwrap();
    directory
}

async fn page(directory: &Directory, at: &str, limit: usize) -> Result<ResumablePage, SessionError> {
    let at = if at.is_empty() { ResumableAt::default() } else { at.parse().unwrap() };
    directory.resumable().page_within(LONG, &id(), &at, limit).await
}

/// Reads all pages; returns the native ids and the number of pages.
async fn read_all(directory: &Directory, limit: usize) -> (Vec<String>, usize) {
    let (mut all, mut pages, mut at) = (Vec::new(), 0, String::new());
    loop {
        let page = page(directory, &at, limit).await.unwrap();
        assert!(page.resumable.len() <= limit);
        all.extend(page.resumable.iter().map(|one| one.native_id.as_str().to_owned()));
        pages += 1;
        match page.next {
            Some(next) => at = next,
            None => return (all, pages),
        }
    }
}

#[tokio::test]
async fn resumable_lists_two_thousand_page_by_page() {
    let wanted: Vec<String> = (0..2000).map(|n| format!("c{n}")).collect();
    for (answer, limit, pages) in [(5000, 1000, 2), (5000, 2000, 2), (300, 100, 20), (250, 100, 24), (2000, 300, 7)] {
        let directory = directory(listing(2000, answer)).await;
        assert_eq!(read_all(&directory, limit).await, (wanted.clone(), pages), "{answer} {limit}");
    }
    for few in [0, 1, 50] {
        assert_eq!(read_all(&directory(listing(few, 100)).await, 50).await, (wanted[..few].to_vec(), 1), "{few}");
    }
}

#[tokio::test]
async fn resumable_conversation_names_its_open_session() {
    let directory = directory(listing(2, 9)).await;
    let open = OpenSession {
        runtime_id: id(),
        cwd: None,
        title: None,
        native_id: Some("c1".into()),
        program: None,
        mcp_servers: Vec::new(),
    };
    let session = directory.begin(open).await.unwrap();
    let page = page(&directory, "", 9).await.unwrap();
    let of: Vec<_> = page.resumable.iter().map(|one| one.session_id.as_ref()).collect();
    assert_eq!(of, [None, Some(&session.session_id)]);
    assert_eq!((page.resumable[0].title.as_deref(), page.resumable[0].cwd.as_deref()), (Some("Talk 0"), Some("/w")));
}

#[tokio::test]
async fn resumable_callers_share_one_question_to_the_runtime() {
    let driver = listing(3, 9);
    driver.gate.forget_permits(1000);
    let (queries, gate) = (Arc::clone(&driver.queries), Arc::clone(&driver.gate));
    let directory = directory(driver).await;
    let callers: Vec<_> = (0..200)
        .map(|_| {
            let directory = directory.clone();
            tokio::spawn(async move { page(&directory, "", 9).await.unwrap().resumable.len() })
        })
        .collect();
    while queries.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // A caller that leaves does not cancel the query for the others.
    callers[0].abort();
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    for caller in callers.into_iter().skip(1) {
        assert_eq!(tokio::time::timeout(LONG, caller).await.unwrap().unwrap(), 3);
    }
    assert_eq!(queries.load(Ordering::SeqCst), 1);
    // A later caller sends a query of its own.
    gate.add_permits(1);
    page(&directory, "", 9).await.unwrap();
    assert_eq!(queries.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn resumable_silent_runtime_is_asked_once_and_callers_time_out() {
    let driver = ListingDriver { silent: true, ..listing(3, 9) };
    let (queries, ends) = (Arc::clone(&driver.queries), Arc::clone(&driver.ends));
    let directory = directory(driver).await;
    let brief = Duration::from_millis(50);
    for at in ["", "", "7", "0.YQ"] {
        let at = if at.is_empty() { ResumableAt::default() } else { at.parse().unwrap() };
        let refused = directory.resumable().page_within(brief, &id(), &at, 9).await.unwrap_err();
        assert!(matches!(refused, SessionError::RuntimeSilent(_)), "{refused}");
    }
    assert_eq!(queries.load(Ordering::SeqCst), 1);
    // If the runtime ends without an answer, waiting callers get an error.
    let (id, at) = (id(), ResumableAt::default());
    let waits = directory.resumable().page_within(LONG, &id, &at, 9);
    let ends = async {
        tokio::task::yield_now().await;
        let ended = |info: &mut Arc<RuntimeInfo>| Arc::make_mut(info).state = RuntimeState::Exited;
        ends.lock()[0].send_modify(ended);
    };
    let (refused, ()) = tokio::join!(waits, ends);
    assert!(matches!(refused.as_ref().unwrap_err(), SessionError::RuntimeUnavailable(_)), "{refused:?}");
}

#[tokio::test]
async fn resumable_reports_runtimes_that_cannot_list_or_resume() {
    for (dialect, can, word) in [
        ("acp", &[Capability::Load][..], "does not list them"),
        ("acp", &[Capability::List][..], "cannot reopen them"),
        ("gemini-mirror", ALL, "does not list them"),
    ] {
        let directory = directory(ListingDriver { dialect, can, ..listing(3, 9) }).await;
        let refused = page(&directory, "", 9).await.unwrap_err();
        assert!(matches!(&refused, SessionError::ListingUnsupported { .. }), "{refused}");
        assert!(refused.to_string().contains(word), "{refused}");
    }
    let resumes = &[Capability::List, Capability::Resume];
    assert!(page(&directory(ListingDriver { can: resumes, ..listing(3, 9) }).await, "", 9).await.is_ok());
}

#[test]
fn resumable_position_round_trips_and_rejects_other_texts() {
    for text in ["0", "300", "10000", "0.YQ", "7.YWJj"] {
        assert_eq!(text.parse::<ResumableAt>().unwrap().to_string(), text);
    }
    let long = format!("0.{}", "YWFh".repeat(1000));
    for text in ["", "x", "-1", "10001", "0.", "0.?", "0.YQ==", "99999999999999999999", ".YQ", &long] {
        assert!(text.parse::<ResumableAt>().is_err(), "{text}");
    }
}
