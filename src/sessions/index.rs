//! What was said in a run, put into the full-text index once the run is over: nothing of it is on the path of an event.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use super::{Entry, Filter, Log, Rows};
use crate::model::{Event, Kind, Origin, Position, RunId};
use crate::store::{ReadLimit, StoreError, TextRow};

/// Bytes of one passage; a longer message is several.
const PASSAGE: usize = 16 << 10;
/// Bytes of a run that are indexed; of a run that said more, the rest is not found by a search. It is in the log.
const RUN_MAX: usize = 4 << 20;
/// Passages written at a time.
const AT_ONCE: usize = 32;
/// Events read at a time.
const PAGE: ReadLimit = ReadLimit { events: 4096, bytes: 1 << 20 };

/// Indexes a run that is over, whose first event is after `after`. A failure loses nothing but findings: it is logged.
pub(super) async fn run(log: Log, origin: Arc<Origin>, run_id: RunId, after: Position) {
    if let Err(error) = Passages::new(log, origin, run_id.clone()).all(after).await {
        tracing::warn!(%error, %run_id, "a run was not indexed");
    }
}

/// Words on their way into the index: one passage at a time in memory, and [`AT_ONCE`] that are ready.
struct Passages {
    log: Log,
    origin: Arc<Origin>,
    run_id: RunId,
    ready: Vec<TextRow>,
    role: &'static str,
    text: String,
    position: Position,
    total: usize,
}

impl Passages {
    fn new(log: Log, origin: Arc<Origin>, run_id: RunId) -> Self {
        let (ready, text) = (Vec::new(), String::new());
        Self { log, origin, run_id, ready, role: "agent", text, position: Position::START, total: 0 }
    }

    async fn all(mut self, mut after: Position) -> Result<(), Arc<StoreError>> {
        let filter = Filter::session(self.origin.session_id.clone());
        let head = self.log.head();
        while after < head && self.total < RUN_MAX {
            let page = self.log.read(&filter, after, PAGE).await?;
            for event in &page.events {
                self.event(event);
            }
            if self.ready.len() >= AT_ONCE {
                self.write().await?;
            }
            if page.next <= after {
                break;
            }
            after = page.next;
        }
        self.cut();
        self.write().await
    }

    fn event(&mut self, event: &Event) {
        if event.run_id != self.run_id {
            return;
        }
        let role = match event.kind {
            Kind::UserMessageChunk => "user",
            Kind::AgentMessageChunk => "agent",
            Kind::ToolCall => "tool",
            // Thoughts and everything else are not searched; they do not end a message either.
            _ => return,
        };
        let Some(text) = words(event) else { return };
        if role != self.role || role == "tool" {
            self.cut();
        }
        if self.text.is_empty() {
            (self.role, self.position) = (role, event.position);
        }
        self.total += text.len();
        self.text.push_str(&text);
        while self.text.len() >= PASSAGE {
            let rest = self.text.split_off(self.text.floor_char_boundary(PASSAGE));
            let passage = std::mem::replace(&mut self.text, rest);
            self.keep(passage);
        }
    }

    fn cut(&mut self) {
        let passage = std::mem::take(&mut self.text);
        if !passage.trim().is_empty() {
            self.keep(passage);
        }
    }

    fn keep(&mut self, text: String) {
        let session_id = self.origin.session_id.clone();
        self.ready.push(TextRow { session_id, position: self.position, role: self.role, text });
    }

    async fn write(&mut self) -> Result<(), Arc<StoreError>> {
        let texts = std::mem::take(&mut self.ready);
        if texts.is_empty() {
            return Ok(());
        }
        let rows = move |_| Rows { texts, ..Rows::default() };
        let origin = Arc::clone(&self.origin);
        let entry = Entry { origin, events: Vec::new(), rows: Some(Box::new(rows)), kept: None, sync: false };
        self.log.commit(entry).await.map(drop)
    }
}

/// The words of a message chunk, or the title of a tool call.
fn words(event: &Event) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow, default)]
        title: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        content: Option<Content<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Content<'a> {
        Block {
            #[serde(borrow)]
            text: Cow<'a, str>,
        },
        Other(serde::de::IgnoredAny),
    }
    let body: Body<'_> = serde_json::from_slice(&event.body).ok()?;
    match body.content {
        Some(Content::Block { text }) => Some(text),
        _ => body.title,
    }
}
