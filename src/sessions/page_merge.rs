//! Events brought together for who reads the past: the chunks of one message are one item with the whole text, and the
//! updates of one tool call that follow each other are one item too. Pure.
//!
//! What is merged is exact: folding the items gives what folding the events gives. Chunks are one message when they are of
//! one session, run and kind, and say the same beside their text (`_meta` apart, whose `plexus` and parent must be the same too).
//! Between them may stand only what nobody shows in its place ([`ASIDE`]); it keeps its own item. A text that is longer
//! than [`LONG`] is cut into parts, so that a page need not hold all of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use plexus_protocol::transcript::{EntryKind, name_parent, parent_of};
use plexus_protocol::{Event, Kind, Position};

/// A text that takes more bytes than this, as JSON, is cut into parts. Tests have small ones.
const LONG: usize = if cfg!(test) { 48 } else { 128 << 10 };
/// Bytes of such a part, about: the last of it is a whole character.
const PART: usize = if cfg!(test) { 16 } else { 64 << 10 };
/// What an envelope takes beside its body, in bytes, about.
const AROUND: usize = 320;
/// What may stand between the chunks of a message without ending it: the latest counts, and nobody shows it as a line.
const ASIDE: &[Kind] = &[Kind::UsageUpdate, Kind::AvailableCommandsUpdate];

/// A place between two things in the log: before the event at `position`, or before the given part of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace {
    /// The event's position.
    pub position: Position,
    /// The part of its text; 0 is its beginning.
    pub part: u32,
}

impl LogPlace {
    /// The place right before an event.
    pub const fn before(position: Position) -> Self {
        Self { position, part: 0 }
    }

    /// The place right after an event.
    pub const fn after(position: Position) -> Self {
        Self { position: position.next(), part: 0 }
    }
}

/// The least that is paged: an event, or a part of a long one.
#[derive(Clone, Debug)]
pub(super) struct PageUnit {
    event: Arc<Event>,
    what: UnitKind,
    part: u32,
    parts: u32,
}

#[derive(Clone, Debug)]
enum UnitKind {
    /// A message's chunk; where in the body its text stands, between the quotes.
    Text(Range<usize>),
    /// A tool call or an update of one: its identifier, and how much each member takes.
    Tool(Arc<Tool>),
    Other,
}

#[derive(Debug)]
struct Tool {
    id: String,
    sizes: BTreeMap<String, usize>,
    /// Output in `_meta.terminal_output.data`, which comes piece by piece: in bytes.
    output: usize,
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
    /// An event as it is.
    pub(super) fn whole(event: Arc<Event>) -> Self {
        Self { event, what: UnitKind::Other, part: 0, parts: 1 }
    }

    /// An event as what it can be merged by; several if it is long.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub(super) fn of(event: &Arc<Event>) -> Vec<Self> {
        let one = |what| vec![Self { event: Arc::clone(event), what, part: 0, parts: 1 }];
        match EntryKind::of(event.kind) {
            EntryKind::Message(_) => match text_of(&event.body) {
                Some(text) if text.len() > LONG => {
                    let cuts = cuts(&event.body, text);
                    let parts = u32::try_from(cuts.len()).unwrap_or(u32::MAX);
                    let unit =
                        |(part, text)| Self { event: Arc::clone(event), what: UnitKind::Text(text), part, parts };
                    (0..parts).zip(cuts).map(unit).collect()
                }
                Some(text) => one(UnitKind::Text(text)),
                None => one(UnitKind::Other),
            },
            EntryKind::Tool => {
                one(Tool::of(&event.body).map_or(UnitKind::Other, |tool| UnitKind::Tool(Arc::new(tool))))
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

    /// The event that it is, or is a part of.
    pub(super) fn event(&self) -> &Event {
        &self.event
    }

    /// Where it begins.
    pub(super) fn place(&self) -> LogPlace {
        LogPlace { position: self.event.position, part: self.part }
    }

    /// Where it ends.
    pub(super) fn end(&self) -> LogPlace {
        match self.part + 1 < self.parts {
            true => LogPlace { position: self.event.position, part: self.part + 1 },
            false => LogPlace::after(self.event.position),
        }
    }

    /// What it takes on a page by itself, in bytes, about.
    fn weight(&self) -> usize {
        AROUND
            + match &self.what {
                UnitKind::Text(text) if self.parts > 1 => text.len(),
                _ => self.event.body.len(),
            }
    }

    /// What it takes where it goes on with another, in bytes; of a tool call, what cannot be less.
    fn joined(&self) -> usize {
        match &self.what {
            UnitKind::Text(text) => text.len(),
            UnitKind::Tool(tool) => tool.output,
            UnitKind::Other => self.weight(),
        }
    }

    fn is_aside(&self) -> bool {
        ASIDE.contains(&self.event.kind)
    }

    /// Whether `later` goes on with what this says. Symmetric but for the order of parts.
    fn goes_on(&self, later: &Self) -> bool {
        let (a, b) = (&self.event, &later.event);
        if a.kind.is_tool() != b.kind.is_tool() || a.run_id != b.run_id || a.origin.session_id != b.origin.session_id {
            return false;
        }
        match (&self.what, &later.what) {
            (UnitKind::Text(one), UnitKind::Text(other)) => {
                a.kind == b.kind && same_message(&a.body, one, &b.body, other)
            }
            (UnitKind::Tool(one), UnitKind::Tool(other)) => one.id == other.id,
            _ => false,
        }
    }
}

impl Tool {
    fn of(body: &[u8]) -> Option<Self> {
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
        let output = meta.map_or(0, |meta| meta.terminal_output.data.get().len());
        let sizes = members.into_iter().map(|(name, value)| (name, value.get().len())).collect();
        Some(Self { id, sizes, output })
    }
}

/// How much the updates of one tool call take together.
#[derive(Debug, Default)]
struct Sizes {
    members: BTreeMap<String, usize>,
    output: usize,
}

impl Sizes {
    /// Takes one more; returns by how much it grew, in bytes.
    fn add(&mut self, tool: &Tool) -> usize {
        let mut grown = tool.output;
        self.output += tool.output;
        for (name, size) in &tool.sizes {
            match self.members.get_mut(name) {
                Some(known) => {
                    grown += size.saturating_sub(*known);
                    *known = (*known).max(*size);
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

/// Where in a chunk's body its text stands, between the quotes; `None` for what is no text, or none that may be joined.
pub(super) fn text_of(body: &[u8]) -> Option<Range<usize>> {
    let chunk: Chunk<'_> = serde_json::from_slice(body).ok()?;
    let block: Block<'_> =
        serde_json::from_str(chunk.content.get()).ok().filter(|block: &Block<'_>| block.kind == "text")?;
    let text = block.text.get();
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    // The second half of a character that was cut in two would become one with the first.
    let half = inside.get(..3).is_some_and(|start| matches!(start.as_bytes(), [b'\\', b'u', b'd' | b'D']));
    if half && inside.as_bytes().get(3).is_some_and(|c| matches!(c, b'c'..=b'f' | b'C'..=b'F')) {
        return None;
    }
    let start = (inside.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    Some(start..start + inside.len())
}

/// Cuts a JSON string's inside into parts between characters.
fn cuts(body: &[u8], text: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut from, mut at) = (text.start, text.start);
    while at < text.end {
        if at - from >= PART {
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

/// Whether two chunks say the same beside their text.
fn same_message(a: &[u8], one: &Range<usize>, b: &[u8], other: &Range<usize>) -> bool {
    if a[..one.start] == b[..other.start] && a[one.end..] == b[other.end..] {
        return true;
    }
    let shell = |body: &[u8]| {
        let mut members: Map<String, Value> = serde_json::from_slice(body).ok()?;
        members.get_mut("content")?.as_object_mut()?.remove("text");
        let meta = members.remove("_meta").unwrap_or_default();
        let parent = parent_of(&meta);
        Some((members, meta.get("plexus").cloned(), parent))
    };
    matches!((shell(a), shell(b)), (Some(a), Some(b)) if a == b)
}

/// One thing on a page: an event, or several that were merged.
#[derive(Clone, Debug)]
pub struct PageItem {
    units: Vec<PageUnit>,
}

impl PageItem {
    /// The first event in it.
    pub fn first(&self) -> &Event {
        &self.units[0].event
    }

    /// The last event in it.
    pub fn last(&self) -> &Event {
        &self.units[self.units.len() - 1].event
    }

    /// How many events are in it, where it is of a kind that can be merged.
    pub fn merged(&self) -> Option<usize> {
        if matches!(self.units[0].what, UnitKind::Other) {
            return None;
        }
        // The parts of one event are one.
        Some(self.units.iter().enumerate().filter(|(n, unit)| *n == 0 || unit.part == 0).count())
    }

    /// Where its text is a part of an event's only: the parts of the first event that are missing before it, and of the
    /// last after it.
    pub fn cut(&self) -> Option<(u32, u32)> {
        let (first, last) = (&self.units[0], &self.units[self.units.len() - 1]);
        let cut = (first.part, last.parts - last.part - 1);
        (cut != (0, 0)).then_some(cut)
    }

    /// The body: an ACP `update` with the whole text or the tool call's latest, or the event's own.
    pub fn body(&self) -> Bytes {
        let first = &self.units[0];
        match &first.what {
            UnitKind::Text(text) if self.units.len() > 1 || first.parts > 1 => {
                let inside = self.units.iter().filter_map(|unit| match &unit.what {
                    UnitKind::Text(text) => Some(&unit.event.body[text.clone()]),
                    _ => None,
                });
                let end = match first.parts {
                    1 => text.end,
                    _ => text_of(&first.event.body).map_or(text.end, |text| text.end),
                };
                let start = match first.part {
                    0 => text.start,
                    _ => text_of(&first.event.body).map_or(text.start, |text| text.start),
                };
                let mut body = Vec::with_capacity(inside.clone().map(<[u8]>::len).sum::<usize>() + AROUND);
                body.extend_from_slice(&first.event.body[..start]);
                inside.for_each(|text| body.extend_from_slice(text));
                body.extend_from_slice(&first.event.body[end..]);
                body.into()
            }
            UnitKind::Tool(_) if self.units.len() > 1 => self.tool().unwrap_or_else(|| first.event.body.clone()),
            _ => first.event.body.clone(),
        }
    }

    /// The updates of a tool call one over the other, as clients merge them: member by member, and the output in
    /// `_meta.terminal_output.data` one after the other. The parent that was named first stays.
    fn tool(&self) -> Option<Bytes> {
        let mut call: Map<String, Value> = Map::new();
        let mut output: Option<(Value, String)> = None;
        let mut parent: Option<String> = None;
        for (n, unit) in self.units.iter().enumerate() {
            let mut update: Map<String, Value> = serde_json::from_slice(&unit.event.body).ok()?;
            if n > 0 {
                update.remove("sessionUpdate");
            }
            parent = parent.or_else(|| update.get("_meta").and_then(parent_of));
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
            name_parent(&mut call, &parent);
        }
        serde_json::to_vec(&call).ok().map(Into::into)
    }
}

/// Makes items of events that come in their order.
#[derive(Debug, Default)]
pub(super) struct Merger {
    done: Vec<PageItem>,
    open: Option<PageItem>,
    sizes: Sizes,
    /// What stands after the open message's last chunk without ending it.
    aside: Vec<PageUnit>,
    bytes: usize,
}

impl Merger {
    /// Whether the next unit leaves no more than `items` items of `bytes` bytes, about. The first always fits.
    pub(super) fn fits(&self, unit: &PageUnit, items: usize, bytes: usize) -> bool {
        let count = self.done.len() + usize::from(self.open.is_some()) + self.aside.len();
        let more = if self.joins(unit) { unit.joined() } else { unit.weight() };
        count == 0 || self.bytes + more <= bytes && (count < items || self.joins(unit))
    }

    /// Whether the next unit goes on with the open item.
    fn joins(&self, unit: &PageUnit) -> bool {
        self.open.as_ref().is_some_and(|item| {
            let aside = self.aside.is_empty() || matches!(unit.what, UnitKind::Text(_));
            aside && item.units[0].goes_on(unit)
        })
    }

    /// The next unit.
    pub(super) fn push(&mut self, unit: PageUnit) {
        if self.joins(&unit) {
            self.done.extend(self.aside.drain(..).map(|unit| PageItem { units: vec![unit] }));
            self.bytes += match &unit.what {
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
        let message = self.open.as_ref().is_some_and(|item| matches!(item.units[0].what, UnitKind::Text(_)));
        if message && unit.is_aside() {
            self.aside.push(unit);
            return;
        }
        self.close();
        self.sizes = Sizes::default();
        if let UnitKind::Tool(tool) = &unit.what {
            self.sizes.add(tool);
        }
        self.open = Some(PageItem { units: vec![unit] });
    }

    fn close(&mut self) {
        self.done.extend(self.open.take());
        self.done.extend(self.aside.drain(..).map(|unit| PageItem { units: vec![unit] }));
    }

    /// What the items take written down, in bytes, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All items, in the order of their last events.
    pub(super) fn finish(mut self) -> Vec<PageItem> {
        self.close();
        self.done
    }
}

/// Counts items while events are walked from the newest to the oldest.
#[derive(Debug, Default)]
pub(super) struct BackwardsCounter {
    /// The first unit so far of the item that the next one may belong to.
    first: Option<PageUnit>,
    sizes: Sizes,
    count: usize,
    bytes: usize,
}

impl BackwardsCounter {
    /// Takes the unit before all that were taken, if it leaves no more than `items` items of `bytes` bytes. The first is
    /// always taken.
    pub(super) fn take(&mut self, unit: &PageUnit, items: usize, bytes: usize) -> bool {
        let joins = self.first.as_ref().is_some_and(|first| unit.goes_on(first));
        let more = match &unit.what {
            UnitKind::Text(text) if joins => text.len(),
            UnitKind::Tool(tool) if joins => self.sizes.add(tool),
            _ => unit.weight(),
        };
        if self.count > 0 && (self.bytes + more > bytes || (!joins && self.count >= items)) {
            return false;
        }
        self.bytes += more;
        let message = self.first.as_ref().is_some_and(|first| matches!(first.what, UnitKind::Text(_)));
        if joins {
            self.first = Some(unit.clone());
            return true;
        }
        self.count += 1;
        if !(message && unit.is_aside()) {
            self.sizes = Sizes::default();
            if let UnitKind::Tool(tool) = &unit.what {
                self.sizes.add(tool);
            }
            self.first = Some(unit.clone());
        }
        true
    }
}
