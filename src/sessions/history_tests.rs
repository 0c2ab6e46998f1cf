//! Tests of history pages against a plain replay: all sorts of events, any limits, forwards and backwards.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::history::PageLimit;
use super::page_merge::{LogPosition, PageItem};
use super::{CommitEntry, CommitRows, Filter, Log, NewEvent};
use plexus_ledger::{Charge, Ledger};
use plexus_protocol::transcript::{EntryBody, Part, Transcript, set_parent};
use plexus_protocol::*;
use plexus_store::{MemoryStore, ReadLimit, SessionRow};

fn origin() -> Arc<Origin> {
    Arc::new(Origin {
        session_id: SessionId::trusted("s_1"),
        runtime_id: RuntimeId::trusted("demo"),
        dialect: "acp".into(),
    })
}

/// A log with these events, each commit as long as `group`.
async fn log_of(events: &[(Kind, String, u8)], group: usize) -> Log {
    let log = Log::open(Arc::new(MemoryStore::new().unwrap())).unwrap();
    let origin = origin();
    for (n, some) in events.chunks(group.max(1)).enumerate() {
        let events = some.iter().enumerate().map(|(m, (kind, body, run))| NewEvent {
            run_id: RunId::trusted(format!("r_{run}")),
            seq: (n * group.max(1) + m) as u64,
            at: Timestamp::from_millis(1000 + (n * group.max(1) + m) as i64),
            kind: *kind,
            body: body.clone().into(),
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
        let entry = CommitEntry {
            origin: Arc::clone(&origin),
            events: events.collect(),
            rows: Some(Box::new(move |_| CommitRows { sessions: vec![row], ..CommitRows::default() })),
            on_stored: None,
            received: None,
            sync: false,
        };
        log.commit(entry).await.unwrap();
    }
    log
}

fn chunk(kind: Kind, text: &str, id: Option<&str>) -> (Kind, String) {
    let mut body = json!({ "sessionUpdate": kind.as_str(), "content": { "type": "text", "text": text } });
    if let Some(id) = id {
        body["messageId"] = id.into();
    }
    (kind, body.to_string())
}

/// A client's fold of events: messages, tool calls by identifier, and all other events in order.
#[derive(Debug, Default, PartialEq)]
struct Folded {
    messages: Vec<(String, String, Value, String)>,
    tools: Vec<(String, Map<String, Value>, String)>,
    others: Vec<(String, String)>,
    in_message: bool,
}

impl Folded {
    fn take(&mut self, run: &RunId, kind: Kind, body: &[u8]) {
        let mut body: Value = serde_json::from_slice(body).unwrap();
        match kind {
            Kind::UserMessageChunk | Kind::AgentMessageChunk | Kind::AgentThoughtChunk
                if body["content"]["text"].is_string() =>
            {
                let Value::String(text) = body["content"]["text"].take() else { unreachable!() };
                let one = (run.to_string(), kind.as_str().to_owned(), body);
                match self.messages.last_mut() {
                    Some((run, name, shell, words))
                        if self.in_message && (&*run, &*name, &*shell) == (&one.0, &one.1, &one.2) =>
                    {
                        words.push_str(&text);
                    }
                    _ => self.messages.push((one.0, one.1, one.2, text)),
                }
                self.in_message = true;
            }
            Kind::ToolCall | Kind::ToolCallUpdate if body["toolCallId"].is_string() => {
                self.in_message = false;
                let id = body["toolCallId"].as_str().unwrap().to_owned();
                let output = body["_meta"]["terminal_output"]["data"].as_str().unwrap_or_default().to_owned();
                let Value::Object(mut update) = body else { unreachable!() };
                // Output is compared as a whole, parents by the fold of every screen.
                update.remove("_meta");
                update.remove("sessionUpdate");
                match self.tools.iter_mut().find(|(other, ..)| *other == id) {
                    Some((_, call, whole)) => {
                        call.extend(update);
                        whole.push_str(&output);
                    }
                    None => self.tools.push((id, update, output)),
                }
            }
            Kind::UsageUpdate => self.others.push((kind.as_str().into(), body.to_string())),
            _ => {
                self.in_message = false;
                self.others.push((kind.as_str().into(), body.to_string()));
            }
        }
    }

    fn of(items: &[PageItem]) -> Self {
        let mut folded = Self::default();
        items.iter().for_each(|item| folded.take(&item.first().run_id, item.first().kind, &item.body()));
        folded
    }
}

/// Returns the entries under each tool call, as every screen has them: the run, the parent, and the words or the call with its output.
fn nested<'a>(events: impl Iterator<Item = (&'a Event, Bytes)>) -> Vec<(String, Option<String>, String)> {
    let mut transcript = Transcript::default();
    for (event, body) in events {
        let body = EntryBody::read(event.kind, serde_json::from_slice(&body).unwrap());
        transcript.apply(event.position, event.run_id.as_str(), event.at, body);
    }
    let items = transcript.into_items().into_iter().filter_map(|item| {
        let what = match item.part {
            Part::Message(message) => message.text,
            Part::Tool { id, call } => format!("{id} {}", call.terminal_output().0),
            _ => return None,
        };
        Some((item.run_id, item.parent, what))
    });
    items.collect()
}

async fn plain(log: &Log) -> Vec<Arc<Event>> {
    let limit = ReadLimit { events: usize::MAX, bytes: usize::MAX };
    log.read(&Filter::all(), Position::START, limit).await.unwrap().events
}

/// Room for any page.
fn charge() -> Charge {
    Ledger::default().connection("phone").nothing()
}

async fn forwards(log: &Log, limit: PageLimit) -> Vec<Vec<PageItem>> {
    let (mut pages, mut from) = (Vec::new(), LogPosition::before(Position(1)));
    let filter = Filter::session(SessionId::trusted("s_1"));
    loop {
        let page = log.page_after(&filter, from, limit, &mut charge()).await.unwrap();
        assert!(page.to > from || page.items.is_empty());
        from = page.to;
        let more = page.more;
        pages.push(page.items);
        if !more {
            return pages;
        }
    }
}

async fn backwards(log: &Log, limit: PageLimit) -> Vec<Vec<PageItem>> {
    let (mut pages, mut to) = (Vec::new(), LogPosition::after(log.head()));
    loop {
        let page = log.page_before(&SessionId::trusted("s_1"), to, limit, &mut charge()).await.unwrap();
        assert!(page.from < to || page.items.is_empty());
        to = page.from;
        let more = page.more;
        pages.push(page.items);
        if !more {
            pages.reverse();
            return pages;
        }
    }
}

/// A body that names its parent.
fn under(body: &str, parent: Option<&str>) -> String {
    let mut body: Map<String, Value> = serde_json::from_str(body).unwrap();
    if let Some(parent) = parent {
        set_parent(&mut body, parent);
    }
    Value::Object(body).to_string()
}

fn any_event() -> impl Strategy<Value = (Kind, String, u8)> {
    let text = prop_oneof![
        4 => "[a-z ]{0,6}".prop_map(String::from),
        2 => "\\PC{0,12}".prop_map(String::from),
        1 => "[\"\\\\\n\u{1}é😀x]{0,60}".prop_map(String::from),
        1 => "[a-zé😀\n]{40,200}".prop_map(String::from),
    ];
    let kind = prop_oneof![
        6 => Just(Kind::AgentMessageChunk), 1 => Just(Kind::AgentThoughtChunk), 1 => Just(Kind::UserMessageChunk)
    ];
    let id = prop_oneof![4 => Just(None), 1 => Just(Some("m1")), 1 => Just(Some("m2"))];
    let parent = || prop_oneof![4 => Just(None), 1 => Just(Some("t0")), 1 => Just(Some("t1")), 1 => Just(Some("t9"))];
    let message = (kind, text, id, parent()).prop_map(|(kind, text, id, parent)| {
        let (kind, body) = chunk(kind, &text, id);
        (kind, under(&body, parent))
    });
    let tool = (0..3u8, 0..4u8, "[a-z]{0,9}", any::<bool>(), parent()).prop_map(|(id, what, text, first, parent)| {
        let kind = if first { Kind::ToolCall } else { Kind::ToolCallUpdate };
        let mut body = json!({ "sessionUpdate": kind.as_str(), "toolCallId": format!("t{id}") });
        match what {
            0 => body["title"] = text.into(),
            1 => body["status"] = text.into(),
            2 => body["content"] = json!([{ "type": "content", "content": { "type": "text", "text": text } }]),
            _ => body["_meta"] = json!({ "terminal_output": { "data": text, "terminal_id": "x" } }),
        }
        (kind, under(&body.to_string(), parent))
    });
    let other = prop_oneof![
        Just((Kind::UsageUpdate, json!({ "used": 1 }).to_string())),
        Just((Kind::Plan, json!({ "entries": [] }).to_string())),
        Just((Kind::AgentMessageChunk, json!({ "content": { "type": "image", "data": "AA" } }).to_string())),
        Just((Kind::AgentMessageChunk, json!({ "content": 1 }).to_string())),
        Just((Kind::AgentMessageChunk, r#"{"content":{"type":"text","text":"\ud83d"}}"#.to_owned())),
        Just((Kind::RunEnded, json!({ "status": "completed" }).to_string())),
    ];
    let event = prop_oneof![8 => message, 3 => tool, 2 => other];
    (event, prop_oneof![9 => Just(0u8), 1 => Just(1u8)]).prop_map(|((kind, body), run)| (kind, body, run))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]
    #[test]
    fn history_merged_pages_equal_the_replay_in_both_directions(
        events in prop::collection::vec(any_event(), 0..60), group in 1..9usize, items in 1..7usize, bytes in 1..3000usize,
    ) {
        // Rust strings cannot hold a lone surrogate: such a chunk is compared as raw JSON.
        let events: Vec<_> = events
            .into_iter()
            .map(|(kind, body, run)| if body.contains("\\ud83d\"") { (Kind::Raw, json!({ "x": 1 }).to_string(), run) } else { (kind, body, run) })
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let log = log_of(&events, group).await;
            let plain = plain(&log).await;
            let mut whole = Folded::default();
            plain.iter().for_each(|event| whole.take(&event.run_id, event.kind, &event.body));
            for limit in [
                PageLimit { items, bytes, merge: true, output: usize::MAX },
                PageLimit { items: usize::MAX, bytes: usize::MAX, merge: true, output: usize::MAX },
            ] {
                for pages in [forwards(&log, limit).await, backwards(&log, limit).await] {
                    assert!(pages.iter().all(|page| page.len() <= limit.items), "{limit:?}");
                    let all: Vec<PageItem> = pages.concat();
                    assert_eq!(Folded::of(&all), whole, "{limit:?}");
                    let merged = nested(all.iter().map(|item| (item.first(), item.body())));
                    let events = nested(plain.iter().map(|event| (&**event, event.body.clone())));
                    assert_eq!(merged, events, "{limit:?}");
                    assert!(all.windows(2).all(|two| two[0].last().position <= two[1].last().position));
                    let cut: usize = all.iter().filter(|item| item.cut().is_some_and(|(before, _)| before > 0)).count();
                    let counted: usize = all.iter().map(|item| item.merged().unwrap_or(1)).sum();
                    assert_eq!(counted - cut, plain.len(), "every event is in one item");
                }
            }
            let limit = PageLimit { items, bytes, merge: false, output: usize::MAX };
            for pages in [forwards(&log, limit).await, backwards(&log, limit).await] {
                let all: Vec<PageItem> = pages.concat();
                assert!(all.iter().map(PageItem::first).eq(plain.iter().map(|event| &**event)));
                assert!(all.iter().all(|item| item.merged().is_none() && item.body() == item.first().body));
            }
        });
    }
}

#[tokio::test]
async fn history_merges_many_chunks_into_one_item() {
    let mut events: Vec<_> = (0..500)
        .map(|n| chunk(Kind::AgentMessageChunk, &format!("{n} "), None))
        .map(|(kind, body)| (kind, body, 1))
        .collect();
    // A usage update does not end the message, and stays in the order of the log.
    events.insert(250, (Kind::UsageUpdate, r#"{"used":7}"#.into(), 1));
    events.push((Kind::RunEnded, r#"{"status":"completed"}"#.into(), 1));
    let log = log_of(&events, 7).await;
    let limit = PageLimit { items: 10, bytes: 1 << 20, merge: true, output: usize::MAX };
    let page = log
        .page_before(&SessionId::trusted("s_1"), LogPosition::after(log.head()), limit, &mut charge())
        .await
        .unwrap();
    assert!(!page.more && page.from == LogPosition::before(Position(1)));
    let [usage, message, ended] = &page.items[..] else { panic!("{:?}", page.items.len()) };
    assert_eq!((usage.first().kind, ended.first().kind), (Kind::UsageUpdate, Kind::RunEnded));
    assert_eq!((message.first().seq, message.last().seq, message.merged()), (0, 500, Some(500)));
    let body: Value = serde_json::from_slice(&message.body()).unwrap();
    assert_eq!(body["content"]["text"], (0..500).map(|n| format!("{n} ")).collect::<String>());
}

#[tokio::test]
async fn history_shortens_tool_calls_where_it_is_asked_to() {
    let call = |n: usize, more: &str| {
        let text = format!("{more} {}", "x".repeat(200_000));
        let content = serde_json::json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        let body = serde_json::json!({ "toolCallId": format!("t{n}"), "title": "cat", "content": content });
        (Kind::ToolCall, body.to_string(), 1)
    };
    let events: Vec<_> = (0..8).flat_map(|n| [call(n, "first"), call(n, "second")]).collect();
    let log = log_of(&events, 3).await;
    let end = LogPosition::after(log.head());
    let page = async |output| {
        let limit = PageLimit { items: 100, bytes: 64 << 10, merge: true, output };
        log.page_before(&SessionId::trusted("s_1"), end, limit, &mut charge()).await.unwrap()
    };
    assert_eq!(page(usize::MAX).await.items.len(), 1, "one is larger than a page");
    let short = page(1024).await;
    assert_eq!((short.items.len(), short.more), (8, false), "what is left out takes no room");
    for item in &short.items {
        let body: Value = serde_json::from_slice(&item.body()).unwrap();
        assert!(item.body().len() < 2048 && item.merged() == Some(2), "{body}");
        assert!(body["content"][0]["content"]["text"].as_str().unwrap().starts_with("second xx"), "{body}");
        assert!(body["_meta"]["plexus"]["left_out"].as_u64().unwrap() > 190_000, "{body}");
    }
}

#[tokio::test]
async fn history_splits_a_chunk_longer_than_a_page() {
    let text = "aé😀\"\\\n\u{1}".repeat(60);
    let (kind, body) = chunk(Kind::AgentMessageChunk, &text, None);
    let log = log_of(&[(kind, body, 1)], 1).await;
    let limit = PageLimit { items: 1, bytes: 1, merge: true, output: usize::MAX };
    for pages in [forwards(&log, limit).await, backwards(&log, limit).await] {
        let pages: Vec<PageItem> = pages.concat();
        assert!(pages.len() > 10);
        let part = |item: &PageItem| serde_json::from_slice::<Value>(&item.body()).unwrap()["content"]["text"].take();
        assert_eq!(pages.iter().map(|item| part(item).as_str().unwrap().to_owned()).collect::<String>(), text);
        assert!(pages.iter().all(|item| item.body().len() < 200));
        assert_eq!(pages[0].cut(), Some((0, pages.len() as u32 - 1)));
    }
}
