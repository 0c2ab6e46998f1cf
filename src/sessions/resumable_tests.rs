//! What a runtime could resume, against drivers of a few lines.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Directory, Launcher, Log, OpenSession, ResumableAt, ResumablePage, RuntimeLink, RuntimeMessage, SessionError,
    SessionRules,
};
use plexus_dialects::{OpenedAs, RuntimeCommand, RuntimeEvent};
use plexus_protocol::*;
use plexus_store::MemoryStore;

/// A wait that only a failure uses up.
const LONG: Duration = Duration::from_secs(20);

/// Tells of so many conversations, so many in one answer; those that a runtime leaves out it answers never.
struct Past {
    dialect: &'static str,
    can: &'static [Capability],
    kept: usize,
    answer: usize,
    mute: bool,
    asked: Arc<AtomicUsize>,
    /// Told with each answer, and waited for before it.
    gate: Arc<tokio::sync::Semaphore>,
    ends: Arc<Mutex<Vec<tokio::sync::watch::Sender<Arc<RuntimeInfo>>>>>,
}

const ALL: &[Capability] = &[Capability::List, Capability::Load];

fn past(kept: usize, answer: usize) -> Past {
    let gate = Arc::new(tokio::sync::Semaphore::new(1000));
    Past { dialect: "acp", can: ALL, kept, answer, mute: false, asked: Arc::default(), gate, ends: Arc::default() }
}

impl Launcher for Past {
    fn launch(&self, spec: RuntimeSpec) -> Result<RuntimeLink, String> {
        let info = RuntimeInfo::starting(&spec, "/".into(), 1, Timestamp::default());
        let capabilities = Some(self.can.iter().copied().collect());
        let (link, mut end) = RuntimeLink::new(RuntimeInfo { state: RuntimeState::Ready, capabilities, ..info });
        let (kept, answer, mute) = (self.kept, self.answer, self.mute);
        let (asked, gate) = (Arc::clone(&self.asked), Arc::clone(&self.gate));
        self.ends.lock().push(end.info.clone());
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Some(order) = end.orders.recv().await {
                let said = match order.command {
                    RuntimeCommand::Open { ticket, resume, .. } => {
                        let native = resume.unwrap().native;
                        RuntimeEvent::Opened { ticket, native, drafts: Vec::new(), how: OpenedAs::Resumed }
                    }
                    RuntimeCommand::Call { ticket, native: None, params, notify: false, .. } => {
                        asked.fetch_add(1, Ordering::SeqCst);
                        if mute {
                            held.push(order.inlet);
                            continue;
                        }
                        gate.acquire().await.unwrap().forget();
                        let params: Value = serde_json::from_str(params.unwrap().get()).unwrap();
                        let from: usize = params["cursor"].as_str().map_or(0, |from| from.parse().unwrap());
                        let to = (from + answer).min(kept);
                        let all: Vec<Value> = (from..to)
                            .map(|n| json!({ "sessionId": format!("c{n}"), "title": format!("Talk {n}"), "cwd": "/w" }))
                            .collect();
                        let next = (to < kept).then(|| to.to_string());
                        let reply = json!({ "sessions": all, "nextCursor": next });
                        RuntimeEvent::Replied { ticket, reply: Ok(serde_json::value::to_raw_value(&reply).unwrap()) }
                    }
                    _ => continue,
                };
                order.inlet.put(RuntimeMessage::Said(vec![said], None)).await;
            }
        });
        Ok(link)
    }
}

fn id() -> RuntimeId {
    RuntimeId::trusted("past")
}

async fn directory(past: Past) -> Directory {
    let log = Log::open(Arc::new(MemoryStore::new().unwrap())).unwrap();
    let dialect = past.dialect;
    let directory = Directory::open(log, Arc::new(past), SessionRules::default()).await.unwrap();
    directory.launch(RuntimeSpec::new(id(), dialect, Connect::Endpoint("there".into()), "/")).unwrap();
    directory
}

async fn page(directory: &Directory, at: &str, limit: usize) -> Result<ResumablePage, SessionError> {
    let at = if at.is_empty() { ResumableAt::default() } else { at.parse().unwrap() };
    directory.resumable_within(LONG, &id(), &at, limit).await
}

/// All of them, page by page, and how many pages that were.
async fn whole(directory: &Directory, limit: usize) -> (Vec<String>, usize) {
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
async fn two_thousand_come_page_by_page_however_the_runtime_tells_them() {
    let wanted: Vec<String> = (0..2000).map(|n| format!("c{n}")).collect();
    for (answer, limit, pages) in [(5000, 1000, 2), (5000, 2000, 2), (300, 100, 20), (250, 100, 24), (2000, 300, 7)] {
        let directory = directory(past(2000, answer)).await;
        assert_eq!(whole(&directory, limit).await, (wanted.clone(), pages), "{answer} {limit}");
    }
    for few in [0, 1, 50] {
        assert_eq!(whole(&directory(past(few, 100)).await, 50).await, (wanted[..few].to_vec(), 1), "{few}");
    }
}

#[tokio::test]
async fn one_that_is_open_here_says_as_what() {
    let directory = directory(past(2, 9)).await;
    let open = OpenSession { runtime_id: id(), cwd: None, title: None, native_id: Some("c1".into()), program: None };
    let session = directory.begin(open).await.unwrap();
    let page = page(&directory, "", 9).await.unwrap();
    let of: Vec<_> = page.resumable.iter().map(|one| one.session_id.as_ref()).collect();
    assert_eq!(of, [None, Some(&session.session_id)]);
    assert_eq!((page.resumable[0].title.as_deref(), page.resumable[0].cwd.as_deref()), (Some("Talk 0"), Some("/w")));
}

#[tokio::test]
async fn many_who_ask_at_once_are_one_question_to_the_runtime() {
    let past = past(3, 9);
    past.gate.forget_permits(1000);
    let (asked, gate) = (Arc::clone(&past.asked), Arc::clone(&past.gate));
    let directory = directory(past).await;
    let callers: Vec<_> = (0..200)
        .map(|_| {
            let directory = directory.clone();
            tokio::spawn(async move { page(&directory, "", 9).await.unwrap().resumable.len() })
        })
        .collect();
    while asked.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    // Those who leave take no answer from the others.
    callers[0].abort();
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    for caller in callers.into_iter().skip(1) {
        assert_eq!(tokio::time::timeout(LONG, caller).await.unwrap().unwrap(), 3);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // Who comes later gets an answer of its own.
    gate.add_permits(1);
    page(&directory, "", 9).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_runtime_that_says_nothing_is_asked_once_and_whoever_waits_is_told() {
    let past = Past { mute: true, ..past(3, 9) };
    let (asked, ends) = (Arc::clone(&past.asked), Arc::clone(&past.ends));
    let directory = directory(past).await;
    let brief = Duration::from_millis(50);
    for at in ["", "", "7", "0.YQ"] {
        let at = if at.is_empty() { ResumableAt::default() } else { at.parse().unwrap() };
        let refused = directory.resumable_within(brief, &id(), &at, 9).await.unwrap_err();
        assert!(matches!(refused, SessionError::RuntimeSilent(_)), "{refused}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // One that ends without an answer lets those who wait go.
    let (id, at) = (id(), ResumableAt::default());
    let waits = directory.resumable_within(LONG, &id, &at, 9);
    let ends = async {
        tokio::task::yield_now().await;
        let ended = |info: &mut Arc<RuntimeInfo>| Arc::make_mut(info).state = RuntimeState::Exited;
        ends.lock()[0].send_modify(ended);
    };
    let (refused, ()) = tokio::join!(waits, ends);
    assert!(matches!(refused.as_ref().unwrap_err(), SessionError::RuntimeGone(_)), "{refused:?}");
}

#[tokio::test]
async fn a_runtime_that_lists_or_resumes_nothing_says_so() {
    for (dialect, can, word) in [
        ("acp", &[Capability::Load][..], "does not list them"),
        ("acp", &[Capability::List][..], "cannot reopen them"),
        ("gemini-mirror", ALL, "does not list them"),
    ] {
        let directory = directory(Past { dialect, can, ..past(3, 9) }).await;
        let refused = page(&directory, "", 9).await.unwrap_err();
        assert!(matches!(&refused, SessionError::ListingUnsupported { .. }), "{refused}");
        assert!(refused.to_string().contains(word), "{refused}");
    }
    let resumes = &[Capability::List, Capability::Resume];
    assert!(page(&directory(Past { can: resumes, ..past(3, 9) }).await, "", 9).await.is_ok());
}

#[test]
fn a_place_in_a_list_is_read_as_it_was_written_and_nothing_else_is_one() {
    for text in ["0", "300", "10000", "0.YQ", "7.YWJj"] {
        assert_eq!(text.parse::<ResumableAt>().unwrap().to_string(), text);
    }
    let long = format!("0.{}", "YWFh".repeat(1000));
    for text in ["", "x", "-1", "10001", "0.", "0.?", "0.YQ==", "99999999999999999999", ".YQ", &long] {
        assert!(text.parse::<ResumableAt>().is_err(), "{text}");
    }
}
