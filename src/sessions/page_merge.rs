//! Merges events for pages of the past: the chunks of one message become one item with the whole text, and consecutive
//! updates of one tool call become one item. Pure.
//!
//! The merge is exact: folding the items gives the same result as folding the events. Chunks belong to one message if they are of one
//! session, run and kind, and are equal apart from their text (`_meta` may differ, except its `plexus` and the parent). Only kinds of
//! [`INTERLEAVED`] may stand between them; such an event stays an item of its own. A text longer than [`LONG_TEXT`] is cut into parts, so
//! that a page need not hold all of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use plexus_protocol::transcript::{EntryKind, parent_from_meta, set_parent};
use plexus_protocol::{Event, Kind, Position};

/// Maximum length of a text that is not cut into parts, in bytes of JSON.
const LONG_TEXT: usize = if cfg!(test) { 48 } else { 128 << 10 };
/// Approximate size of a part, in bytes; characters are not cut.
const PART_BYTES: usize = if cfg!(test) { 16 } else { 64 << 10 };
/// Approximate size of an envelope without its body, in bytes.
const ENVELOPE_OVERHEAD: usize = 320;
/// Kinds that may stand between the chunks of a message without ending it: clients display only their latest state.
const INTERLEAVED: &[Kind] = &[Kind::UsageUpdate, Kind::AvailableCommandsUpdate];

/// A position in the log: before the event at `position`, or before one part of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// The position of the event.
    pub position: Position,
    /// The part of the event's text; 0 is the beginning.
    pub part: u32,
}

impl LogPosition {
    /// Returns the position right before an event.
    pub const fn before(position: Position) -> Self {
        Self { position, part: 0 }
    }

    /// Returns the position right after an event.
    pub const fn after(position: Position) -> Self {
        Self { position: position.next(), part: 0 }
    }
}

/// The unit of paging: an event, or a part of a long one.
#[derive(Clone, Debug)]
pub(super) struct PageUnit {
    event: Arc<Event>,
    kind: UnitKind,
    part: u32,
    parts: u32,
}

#[derive(Clone, Debug)]
enum UnitKind {
    /// A chunk of a message, with the range of its text in the body, without the quotes.
    Text(Range<usize>),
    /// A tool call or an update of one.
    Tool(Arc<Tool>),
    Other,
}

#[derive(Debug)]
struct Tool {
    id: String,
    /// Size of each member, in bytes.
    sizes: BTreeMap<String, usize>,
    /// Size of the output in `_meta.terminal_output.data`, which merging appends, in bytes.
    output: usize,
    /// Approximate maximum size of a member on a page, in bytes.
    most: usize,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: &'a RawValue,
}

impl PageUnit {
    /// Makes the unit of an event that is not merged.
    pub(super) fn whole(event: Arc<Event>) -> Self {
        Self { event, kind: UnitKind::Other, part: 0, parts: 1 }
    }

    /// Returns the units of an event that may be merged; several if its text is long. Members of a tool call longer than `most` are
    /// shortened.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub(super) fn from_event(event: &Arc<Event>, most: usize) -> Vec<Self> {
        let one = |kind| vec![Self { event: Arc::clone(event), kind, part: 0, parts: 1 }];
        match EntryKind::from_kind(event.kind) {
            EntryKind::Message(_) => match text_range(&event.body) {
                Some(text) if text.len() > LONG_TEXT => {
                    let cuts = cuts(&event.body, text);
                    let parts = u32::try_from(cuts.len()).unwrap_or(u32::MAX);
                    let unit =
                        |(part, text)| Self { event: Arc::clone(event), kind: UnitKind::Text(text), part, parts };
                    (0..parts).zip(cuts).map(unit).collect()
                }
                Some(text) => one(UnitKind::Text(text)),
                None => one(UnitKind::Other),
            },
            EntryKind::Tool => {
                one(Tool::read(&event.body, most).map_or(UnitKind::Other, |tool| UnitKind::Tool(Arc::new(tool))))
            }
            EntryKind::Plan
            | EntryKind::Latest(_)
            | EntryKind::RunStarted
            | EntryKind::RunStatus
            | EntryKind::RunEnded
            | EntryKind::RequestOpened
            | EntryKind::RequestUpdated
            | EntryKind::RequestResolved
            | EntryKind::Surface
            | EntryKind::Note(_) => one(UnitKind::Other),
        }
    }

    /// Returns the event of the unit.
    pub(super) fn event(&self) -> &Event {
        &self.event
    }

    /// Returns the position of the unit's start.
    pub(super) fn start(&self) -> LogPosition {
        LogPosition { position: self.event.position, part: self.part }
    }

    /// Returns the position of the unit's end.
    pub(super) fn end(&self) -> LogPosition {
        match self.part + 1 < self.parts {
            true => LogPosition { position: self.event.position, part: self.part + 1 },
            false => LogPosition::after(self.event.position),
        }
    }

    /// Returns the approximate size of the unit on a page as an item of its own, in bytes.
    fn weight(&self) -> usize {
        ENVELOPE_OVERHEAD
            + match &self.kind {
                UnitKind::Text(text) if self.parts > 1 => text.len(),
                UnitKind::Tool(tool) => self.event.body.len().min(tool.bytes()),
                _ => self.event.body.len(),
            }
    }

    /// Returns the number of bytes that merging the unit adds to an item; a lower bound for tool calls.
    fn merged_weight(&self) -> usize {
        match &self.kind {
            UnitKind::Text(text) => text.len(),
            UnitKind::Tool(tool) => tool.output,
            UnitKind::Other => self.weight(),
        }
    }

    fn is_interleaved(&self) -> bool {
        INTERLEAVED.contains(&self.event.kind)
    }

    /// Returns whether `later` continues the same message or tool call. Symmetric except for the order of parts.
    fn continues_with(&self, later: &Self) -> bool {
        let (a, b) = (&self.event, &later.event);
        if a.kind.is_tool() != b.kind.is_tool() || a.run_id != b.run_id || a.origin.session_id != b.origin.session_id {
            return false;
        }
        match (&self.kind, &later.kind) {
            (UnitKind::Text(one), UnitKind::Text(other)) => {
                a.kind == b.kind && same_message(&a.body, one, &b.body, other)
            }
            (UnitKind::Tool(one), UnitKind::Tool(other)) => one.id == other.id,
            _ => false,
        }
    }
}

impl Tool {
    fn bytes(&self) -> usize {
        self.sizes.iter().map(|(name, size)| name.len() + size + 4).sum()
    }

    fn read(body: &[u8], most: usize) -> Option<Self> {
        let members: BTreeMap<String, &RawValue> = serde_json::from_slice(body).ok()?;
        let id: String = serde_json::from_str(members.get("toolCallId")?.get()).ok()?;
        #[derive(Deserialize)]
        struct Meta<'a> {
            #[serde(borrow)]
            terminal_output: Terminal<'a>,
        }
        #[derive(Deserialize)]
        struct Terminal<'a> {
            #[serde(borrow)]
            data: &'a RawValue,
        }
        let meta = members.get("_meta").and_then(|meta| serde_json::from_str::<Meta<'_>>(meta.get()).ok());
        let output = meta.map_or(0, |meta| meta.terminal_output.data.get().len().min(most));
        let sizes = members.into_iter().map(|(name, value)| (name, value.get().len().min(most))).collect();
        Some(Self { id, sizes, output, most })
    }
}

/// The size of the merged updates of one tool call.
#[derive(Debug, Default)]
struct Sizes {
    members: BTreeMap<String, usize>,
    output: usize,
}

impl Sizes {
    /// Adds an update; returns by how many bytes the size grew.
    fn add(&mut self, tool: &Tool) -> usize {
        let mut grown = tool.output;
        self.output += tool.output;
        for (name, size) in &tool.sizes {
            match self.members.get_mut(name) {
                Some(counted) => {
                    grown += size.saturating_sub(*counted);
                    *counted = (*counted).max(*size);
                }
                None => {
                    grown += size + name.len() + 4;
                    self.members.insert(name.clone(), *size);
                }
            }
        }
        grown
    }
}

/// Returns the range of the text in a chunk's body, without the quotes; `None` if the body has no text, or if its text must not be
/// joined.
pub(super) fn text_range(body: &[u8]) -> Option<Range<usize>> {
    let chunk: Chunk<'_> = serde_json::from_slice(body).ok()?;
    let block: Block<'_> =
        serde_json::from_str(chunk.content.get()).ok().filter(|block: &Block<'_>| block.kind == "text")?;
    let text = block.text.get();
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    // A low surrogate at the beginning would be joined with a high one at the end of the previous chunk.
    let surrogate = inside.get(..3).is_some_and(|start| matches!(start.as_bytes(), [b'\\', b'u', b'd' | b'D']));
    if surrogate && inside.as_bytes().get(3).is_some_and(|c| matches!(c, b'c'..=b'f' | b'C'..=b'F')) {
        return None;
    }
    let start = (inside.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    Some(start..start + inside.len())
}

/// Cuts the inside of a JSON string into parts, between characters.
fn cuts(body: &[u8], text: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut from, mut at) = (text.start, text.start);
    while at < text.end {
        if at - from >= PART_BYTES {
            parts.push(from..at);
            from = at;
        }
        at += match (body[at], body.get(at + 1)) {
            (b'\\', Some(b'u')) => {
                let high =
                    matches!(body.get(at + 2..at + 4), Some([b'd' | b'D', b'8'..=b'9' | b'a'..=b'b' | b'A'..=b'B']));
                let low = matches!(body.get(at + 6..at + 8), Some(b"\\u"));
                if high && low { 12 } else { 6 }
            }
            (b'\\', _) => 2,
            (lead, _) if lead >= 0xf0 => 4,
            (lead, _) if lead >= 0xe0 => 3,
            (lead, _) if lead >= 0xc0 => 2,
            _ => 1,
        };
    }
    parts.push(from..text.end);
    parts
}

/// Returns whether two chunks are equal apart from their text.
fn same_message(a: &[u8], one: &Range<usize>, b: &[u8], other: &Range<usize>) -> bool {
    if a[..one.start] == b[..other.start] && a[one.end..] == b[other.end..] {
        return true;
    }
    let rest = |body: &[u8]| {
        let mut members: Map<String, Value> = serde_json::from_slice(body).ok()?;
        members.get_mut("content")?.as_object_mut()?.remove("text");
        let meta = members.remove("_meta").unwrap_or_default();
        let parent = parent_from_meta(&meta);
        Some((members, meta.get("plexus").cloned(), parent))
    };
    matches!((rest(a), rest(b)), (Some(a), Some(b)) if a == b)
}

/// One item of a page: an event, or several that were merged.
#[derive(Clone, Debug)]
pub struct PageItem {
    units: Vec<PageUnit>,
}

impl PageItem {
    /// Returns the first event of the item.
    pub fn first(&self) -> &Event {
        &self.units[0].event
    }

    /// Returns the last event of the item.
    pub fn last(&self) -> &Event {
        &self.units[self.units.len() - 1].event
    }

    /// Returns the number of the item's events, if they are of a kind that can be merged.
    pub fn merged(&self) -> Option<usize> {
        if matches!(self.units[0].kind, UnitKind::Other) {
            return None;
        }
        // The parts of one event count once.
        Some(self.units.iter().enumerate().filter(|(n, unit)| *n == 0 || unit.part == 0).count())
    }

    /// Returns the number of parts of the first event before the item's text, and of the last event after it, if the text begins or ends
    /// within an event.
    pub fn cut(&self) -> Option<(u32, u32)> {
        let (first, last) = (&self.units[0], &self.units[self.units.len() - 1]);
        let cut = (first.part, last.parts - last.part - 1);
        (cut != (0, 0)).then_some(cut)
    }

    /// Returns the body: an ACP `update` with the merged text or tool call, or the event's own body.
    pub fn body(&self) -> Bytes {
        let first = &self.units[0];
        match &first.kind {
            UnitKind::Text(text) if self.units.len() > 1 || first.parts > 1 => {
                let inside = self.units.iter().filter_map(|unit| match &unit.kind {
                    UnitKind::Text(text) => Some(&unit.event.body[text.clone()]),
                    _ => None,
                });
                let end = match first.parts {
                    1 => text.end,
                    _ => text_range(&first.event.body).map_or(text.end, |text| text.end),
                };
                let start = match first.part {
                    0 => text.start,
                    _ => text_range(&first.event.body).map_or(text.start, |text| text.start),
                };
                let mut body = Vec::with_capacity(inside.clone().map(<[u8]>::len).sum::<usize>() + ENVELOPE_OVERHEAD);
                body.extend_from_slice(&first.event.body[..start]);
                inside.for_each(|text| body.extend_from_slice(text));
                body.extend_from_slice(&first.event.body[end..]);
                body.into()
            }
            UnitKind::Tool(tool) if self.units.len() > 1 || first.event.body.len() > tool.most => {
                self.tool(tool.most).unwrap_or_else(|| first.event.body.clone())
            }
            _ => first.event.body.clone(),
        }
    }

    /// Returns the merged updates of a tool call, as clients merge them: member by member, with the output in
    /// `_meta.terminal_output.data` appended. The first parent stays. Members longer than `most` are shortened.
    fn tool(&self, most: usize) -> Option<Bytes> {
        let mut call: Map<String, Value> = Map::new();
        let mut output: Option<(Value, String)> = None;
        let mut parent: Option<String> = None;
        for (n, unit) in self.units.iter().enumerate() {
            let mut update: Map<String, Value> = serde_json::from_slice(&unit.event.body).ok()?;
            if n > 0 {
                update.remove("sessionUpdate");
            }
            parent = parent.or_else(|| update.get("_meta").and_then(parent_from_meta));
            let terminal = update.get_mut("_meta").and_then(|meta| meta.get_mut("terminal_output"));
            if let Some(data) = terminal.as_ref().and_then(|terminal| terminal["data"].as_str()) {
                let mut whole = output.take().map_or_else(String::new, |(_, whole)| whole);
                whole.push_str(data);
                output = terminal.map(|terminal| (terminal.take(), whole));
            }
            call.extend(update);
        }
        if let Some((mut terminal, whole)) = output {
            terminal["data"] = whole.into();
            let meta = call.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
            meta.as_object_mut()?.insert("terminal_output".into(), terminal);
        }
        if let Some(parent) = parent {
            set_parent(&mut call, &parent);
        }
        super::left_out::shorten(&mut call, most);
        serde_json::to_vec(&call).ok().map(Into::into)
    }
}

/// Merges units that arrive in the order of the log.
#[derive(Debug, Default)]
pub(super) struct Merger {
    done: Vec<PageItem>,
    open: Option<PageItem>,
    sizes: Sizes,
    /// Events after the open message's last chunk that do not end the message.
    interleaved: Vec<PageUnit>,
    bytes: usize,
}

impl Merger {
    /// Returns whether the next unit fits on a page of `items` items and `bytes` bytes. The first unit always fits.
    pub(super) fn fits(&self, unit: &PageUnit, items: usize, bytes: usize) -> bool {
        let count = self.done.len() + usize::from(self.open.is_some()) + self.interleaved.len();
        let more = if self.joins(unit) { unit.merged_weight() } else { unit.weight() };
        count == 0 || self.bytes + more <= bytes && (count < items || self.joins(unit))
    }

    /// Returns whether the next unit continues the open item.
    fn joins(&self, unit: &PageUnit) -> bool {
        self.open.as_ref().is_some_and(|item| {
            let may_join = self.interleaved.is_empty() || matches!(unit.kind, UnitKind::Text(_));
            may_join && item.units[0].continues_with(unit)
        })
    }

    /// Adds the next unit.
    pub(super) fn push(&mut self, unit: PageUnit) {
        if self.joins(&unit) {
            self.done.extend(self.interleaved.drain(..).map(|unit| PageItem { units: vec![unit] }));
            self.bytes += match &unit.kind {
                UnitKind::Text(text) => text.len(),
                UnitKind::Tool(tool) => self.sizes.add(tool),
                UnitKind::Other => unit.weight(),
            };
            if let Some(open) = &mut self.open {
                open.units.push(unit);
            }
            return;
        }
        self.bytes += unit.weight();
        let message = self.open.as_ref().is_some_and(|item| matches!(item.units[0].kind, UnitKind::Text(_)));
        if message && unit.is_interleaved() {
            self.interleaved.push(unit);
            return;
        }
        self.close();
        self.sizes = Sizes::default();
        if let UnitKind::Tool(tool) = &unit.kind {
            self.sizes.add(tool);
        }
        self.open = Some(PageItem { units: vec![unit] });
    }

    fn close(&mut self) {
        self.done.extend(self.open.take());
        self.done.extend(self.interleaved.drain(..).map(|unit| PageItem { units: vec![unit] }));
    }

    /// Returns the approximate size of the items in their serialized form, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns all items, in the order of their last events.
    pub(super) fn finish(mut self) -> Vec<PageItem> {
        self.close();
        self.done
    }
}

/// Counts items while events are walked from the newest to the oldest.
#[derive(Debug, Default)]
pub(super) struct BackwardsCounter {
    /// The first unit of the item to which the next unit may belong.
    first: Option<PageUnit>,
    sizes: Sizes,
    count: usize,
    bytes: usize,
}

impl BackwardsCounter {
    /// Takes the unit before those taken so far, if it fits on a page of `items` items and `bytes` bytes. The first unit is always taken.
    pub(super) fn take(&mut self, unit: &PageUnit, items: usize, bytes: usize) -> bool {
        let joins = self.first.as_ref().is_some_and(|first| unit.continues_with(first));
        let more = match &unit.kind {
            UnitKind::Text(text) if joins => text.len(),
            UnitKind::Tool(tool) if joins => self.sizes.add(tool),
            _ => unit.weight(),
        };
        if self.count > 0 && (self.bytes + more > bytes || (!joins && self.count >= items)) {
            return false;
        }
        self.bytes += more;
        let message = self.first.as_ref().is_some_and(|first| matches!(first.kind, UnitKind::Text(_)));
        if joins {
            self.first = Some(unit.clone());
            return true;
        }
        self.count += 1;
        if !(message && unit.is_interleaved()) {
            self.sizes = Sizes::default();
            if let UnitKind::Tool(tool) = &unit.kind {
                self.sizes.add(tool);
            }
            self.first = Some(unit.clone());
        }
        true
    }
}
