//! Adds a run's text to the full-text index once the run has ended. Not on the path of an event.

// Every kind of event is handled explicitly, so that a new one does not compile before it is.
#![deny(clippy::wildcard_enum_match_arm)]

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::string_slices::StringSlices;
use super::{CommitEntry, CommitRows, Filter, Log};
use plexus_protocol::transcript::{ChunkTarget, EntryKind, MessageKey, MessageTracker, Role, parent_from_meta};
use plexus_protocol::{Event, Kind, Origin, Position, RunId};
use plexus_store::{ReadLimit, StoreError, TextRow};

/// Size of one passage, in bytes; a longer message is split into several.
const PASSAGE: usize = 16 << 10;
/// Maximum number of bytes of a run that are indexed. The rest of a longer run is in the log, but a search does not find it.
const RUN_MAX: usize = 4 << 20;
/// Number of passages written at a time.
const AT_ONCE: usize = 32;
/// Limit of one read of events.
const PAGE: ReadLimit = ReadLimit { events: 4096, bytes: 1 << 20 };

/// Indexes a finished run, whose first event is after `after`. A failure is logged; it affects only search.
pub(super) async fn run(log: Log, origin: Arc<Origin>, run_id: RunId, after: Position) {
    match IndexWriter::new(log, origin, run_id.clone()).all(after).await {
        Ok(()) => {}
        // The session was deleted meanwhile.
        Err(error) if matches!(*error, StoreError::NoSession(_)) => {}
        Err(error) => tracing::warn!(%error, "a run was not indexed"),
    }
}

/// Text that is being indexed: one unfinished passage, and up to [`AT_ONCE`] finished ones.
struct IndexWriter {
    log: Log,
    origin: Arc<Origin>,
    run_id: RunId,
    tracker: MessageTracker,
    ready: Vec<TextRow>,
    role: &'static str,
    text: String,
    position: Position,
    total: usize,
}

impl IndexWriter {
    fn new(log: Log, origin: Arc<Origin>, run_id: RunId) -> Self {
        let (tracker, ready, text) = (MessageTracker::default(), Vec::new(), String::new());
        Self { log, origin, run_id, tracker, ready, role: "agent", text, position: Position::START, total: 0 }
    }

    async fn all(mut self, mut after: Position) -> Result<(), Arc<StoreError>> {
        let filter = Filter::session(self.origin.session_id.clone());
        let head = self.log.head();
        while after < head && self.total < RUN_MAX {
            let page = self.log.read(&filter, after, PAGE).await?;
            for event in &page.events {
                self.event(event).await?;
            }
            if page.next <= after {
                break;
            }
            after = page.next;
        }
        self.cut();
        self.write().await
    }

    async fn event(&mut self, event: &Event) -> Result<(), Arc<StoreError>> {
        if event.run_id != self.run_id {
            return Ok(());
        }
        let (role, body) = match EntryKind::from_kind(event.kind) {
            EntryKind::Message(role) => {
                let Some(body) = IndexedBody::read(event) else { return Ok(()) };
                let id = body.message_id.and_then(|id| serde_json::from_str::<Cow<'_, str>>(id.get()).ok());
                let parent =
                    body.meta.and_then(|meta| parent_from_meta(&mut serde_json::Deserializer::from_str(meta.get())));
                let key = MessageKey::new(role, event.run_id.as_str(), id.as_deref(), parent.as_deref());
                if !matches!(self.tracker.chunk(&key, event.position), ChunkTarget::Current(_)) {
                    self.cut();
                }
                match role {
                    Role::User | Role::Agent => (role.as_str(), body),
                    // Thoughts are not searched.
                    Role::Thought => return Ok(()),
                }
            }
            EntryKind::Tool => {
                self.tracker.interrupt();
                self.cut();
                match IndexedBody::read(event) {
                    Some(body) if event.kind == Kind::ToolCall => ("tool", body),
                    _ => return Ok(()),
                }
            }
            EntryKind::Plan => {
                self.tracker.plan(event.run_id.as_str());
                return Ok(());
            }
            EntryKind::RunStarted
            | EntryKind::RunEnded
            | EntryKind::Latest(_)
            | EntryKind::RunStatus
            | EntryKind::RequestOpened
            | EntryKind::RequestUpdated
            | EntryKind::RequestResolved
            | EntryKind::Surface
            | EntryKind::Note(_) => return Ok(()),
        };
        let Some(slices) = body.text() else { return Ok(()) };
        for slice in slices {
            let left = RUN_MAX.saturating_sub(self.total);
            if left == 0 {
                break;
            }
            let piece = slice.get(..slice.floor_char_boundary(left)).unwrap_or_default();
            self.total = if piece.len() < slice.len() { RUN_MAX } else { self.total + piece.len() };
            self.add(role, event.position, piece);
            if self.ready.len() >= AT_ONCE {
                self.write().await?;
            }
        }
        Ok(())
    }

    /// Appends text to the passage, and starts another passage for the part that does not fit.
    fn add(&mut self, role: &'static str, position: Position, mut text: &str) {
        while !text.is_empty() {
            if self.text.is_empty() {
                (self.role, self.position) = (role, position);
            }
            let free = PASSAGE.saturating_sub(self.text.len());
            let (now, later) = text.split_at(text.floor_char_boundary(free));
            self.text.push_str(now);
            text = later;
            if !text.is_empty() || self.text.len() >= PASSAGE {
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        let mut text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            text.shrink_to_fit();
            let session_id = self.origin.session_id.clone();
            self.ready.push(TextRow { session_id, position: self.position, role: self.role, text });
        }
    }

    async fn write(&mut self) -> Result<(), Arc<StoreError>> {
        let texts = std::mem::take(&mut self.ready);
        if texts.is_empty() {
            return Ok(());
        }
        let rows = move |_| CommitRows { texts, ..CommitRows::default() };
        let origin = Arc::clone(&self.origin);
        let entry = CommitEntry {
            origin,
            events: Vec::new(),
            rows: Some(Box::new(rows)),
            on_stored: None,
            received: None,
            sync: false,
        };
        self.log.commit(entry).await.map(drop)
    }
}

/// The searched parts of a body, borrowed.
#[derive(Deserialize)]
struct IndexedBody<'a> {
    #[serde(rename = "messageId", borrow, default)]
    message_id: Option<&'a RawValue>,
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    title: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

impl<'a> IndexedBody<'a> {
    fn read(event: &'a Event) -> Option<Self> {
        serde_json::from_slice(&event.body).ok()
    }

    /// Returns the text of a message chunk, or the title of a tool call.
    fn text(&self) -> Option<StringSlices<'a>> {
        #[derive(Deserialize)]
        struct Block<'a> {
            #[serde(borrow, default)]
            text: Option<&'a RawValue>,
        }
        let block = self.content.filter(|content| content.get().starts_with('{'));
        let text = block.and_then(|block| serde_json::from_str::<Block<'_>>(block.get()).ok()?.text);
        let slices = text.and_then(|text| StringSlices::new(text, PASSAGE));
        slices.or_else(|| StringSlices::new(self.title?, PASSAGE))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use plexus_protocol::{RuntimeId, SessionId, Timestamp};
    use plexus_store::MemoryStore;

    fn passages() -> IndexWriter {
        let log = Log::open(Arc::new(MemoryStore::new().unwrap())).unwrap();
        let origin = Origin {
            session_id: SessionId::trusted("s_1"),
            runtime_id: RuntimeId::trusted("demo"),
            dialect: "acp".into(),
        };
        IndexWriter::new(log, Arc::new(origin), RunId::trusted("r_1"))
    }

    fn said(passages: &IndexWriter, position: u64, text: &str) -> Event {
        Event {
            position: Position(position),
            origin: Arc::clone(&passages.origin),
            run_id: passages.run_id.clone(),
            seq: position,
            at: Timestamp::default(),
            kind: Kind::AgentMessageChunk,
            body: serde_json::json!({ "content": { "type": "text", "text": text } }).to_string().into(),
            native: None,
        }
    }

    #[tokio::test]
    async fn index_text_takes_memory_in_proportion_to_its_words() {
        for word in ["word ", "é\"\n\u{1}", "no-space-at-all"] {
            let mut passages = passages();
            // Less than one write, so that all of it waits here.
            let text = word.repeat((AT_ONCE - 2) * PASSAGE / word.len());
            let event = said(&passages, 1, &text);
            passages.event(&event).await.unwrap();
            let held: usize =
                passages.ready.iter().map(|row| row.text.capacity()).sum::<usize>() + passages.text.capacity();
            assert!(held <= 2 * text.len(), "{held} bytes for {} of {word:?}", text.len());
            assert!(passages.ready.iter().all(|row| row.text.len() <= PASSAGE));
            passages.cut();
            let all: String = passages.ready.iter().map(|row| row.text.as_str()).collect();
            assert!(all == text, "nothing is lost and nothing is repeated");
        }
    }

    #[tokio::test]
    async fn index_endless_text_is_bounded_by_one_write() {
        let mut passages = passages();
        let event = said(&passages, 1, &"word \n".repeat(RUN_MAX / 2));
        // The session has no row, so the passages are refused; refused passages are not kept in memory.
        let _ = passages.event(&event).await;
        assert!(passages.ready.len() <= AT_ONCE, "{}", passages.ready.len());
        assert!(passages.total <= RUN_MAX);
    }

    #[test]
    fn index_finds_only_the_text_of_messages_and_titles() {
        let passages = passages();
        let mut event = said(&passages, 1, "");
        let mut of = |body: &str| {
            event.body = body.to_owned().into();
            IndexedBody::read(&event)?.text().map(|slices| slices.collect::<String>())
        };
        assert_eq!(of(r#"{"content":{"type":"text","text":"a\nb"}}"#).as_deref(), Some("a\nb"));
        assert_eq!(of(r#"{"title":"ls","content":[{"type":"content"}]}"#).as_deref(), Some("ls"));
        assert_eq!(of(r#"{"title":null,"content":{"type":"image"}}"#), None);
        assert_eq!(of("[]"), None);
    }
}
