//! Translates messages and their parts. One file: how much of each was reported decides what is reported next, so that
//! nothing is repeated or lost.
//!
//! OpenCode sends text as deltas and, when a part is complete, in full; a re-read returns it in full again. The length
//! and a checksum of the reported text are stored, and only the text after it is reported. A part whose beginning is
//! unknown (the gateway connected in its middle) is reported when it is complete; until then an event reports the gap.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::fault;
use super::super::fnv::fnv;
use super::super::jsonrpc::{member, object, owned};
use super::super::updates::{ToolUpdate, chunk, content_chunk, text_block};
use super::super::{EventDraft, ToolCallRef};
use plexus_protocol::{CallDigest, Kind, Money, OWN_SERVER_PREFIX, SpendReport, Spending, reported_tokens};

/// Maximum number of stored parts of one session; above it those of complete messages are removed, and their updates ignored.
const PARTS_MAX: usize = 4096;
/// Maximum number of stored messages of one session; above it the oldest are removed, and a re-read may repeat them.
const MESSAGES_MAX: usize = 4096;

/// Number of messages whose ids are in a checkpoint; everything before the first of them was reported.
const NAMED: usize = 256;
/// Number of the last of those messages whose parts are in a checkpoint, in addition to unfinished messages.
const DETAILED: usize = 8;

/// The reported part of one session's messages.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Progress {
    /// Hashes of the ids of messages reported before this connection, oldest first.
    before: VecDeque<u64>,
    messages: BTreeMap<String, Message>,
    parts: HashMap<String, Part>,
    /// The id of the assistant's last message.
    last: Option<String>,
    /// The spending that the steps reported since the last call of [`take_spent`](Self::take_spent).
    #[serde(skip)]
    spent: Spending,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Message {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    user: bool,
    /// `true` if a user's message is the gateway's own prompt; `None` until its text comes.
    #[serde(rename = "ours", skip_serializing_if = "Option::is_none")]
    is_own_prompt: Option<bool>,
    /// `true` if the message is complete.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    complete: bool,
    /// `true` if the parts of the message were removed: their updates are ignored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    forgotten: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<String>,
    /// The id of the model (`provider/model`).
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Part {
    message: String,
    /// The number of reported bytes of the text; `sum` is their checksum.
    #[serde(rename = "said")]
    reported_len: usize,
    sum: u64,
    /// `true` if deltas cannot be reported, since the text before them is unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    held: bool,
    /// `true` if the gap was reported.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    gap: bool,
    /// `true` if the part is complete.
    #[serde(rename = "over", skip_serializing_if = "std::ops::Not::not")]
    complete: bool,
    /// `true` for reasoning.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    /// The last reported state of a tool call: its name, and a checksum of the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<(String, Option<u64>)>,
}

/// The data of `message.updated`, or of a message that was read.
#[derive(Deserialize)]
pub(super) struct Info<'a> {
    pub(super) id: String,
    pub(super) role: String,
    time: Option<Time>,
    finish: Option<String>,
    #[serde(rename = "providerID")]
    provider: Option<String>,
    #[serde(rename = "modelID")]
    model: Option<String>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Time {
    end: Option<f64>,
    completed: Option<f64>,
}

/// A part of a message.
#[derive(Deserialize)]
pub(super) struct PartIn<'a> {
    pub(super) id: String,
    #[serde(rename = "messageID")]
    pub(super) message: String,
    #[serde(rename = "type")]
    pub(super) type_name: String,
    text: Option<Cow<'a, str>>,
    synthetic: Option<bool>,
    ignored: Option<bool>,
    time: Option<Time>,
    #[serde(rename = "callID")]
    call: Option<String>,
    tool: Option<String>,
    #[serde(borrow)]
    state: Option<&'a RawValue>,
    url: Option<String>,
    filename: Option<String>,
    mime: Option<String>,
    tokens: Option<Tokens>,
    cost: Option<f64>,
}

impl PartIn<'_> {
    /// Returns the text of a user's part.
    pub(super) fn user_text(&self) -> Option<&str> {
        let is_user_text = self.type_name == "text" && self.synthetic != Some(true) && self.ignored != Some(true);
        self.text.as_deref().filter(|_| is_user_text)
    }
}

#[derive(Deserialize)]
pub(super) struct Tokens {
    /// Reported by the first generation only.
    total: Option<f64>,
    input: Option<f64>,
    output: Option<f64>,
    reasoning: Option<f64>,
    cache: Option<Cache>,
}

#[derive(Deserialize)]
struct Cache {
    read: Option<f64>,
    write: Option<f64>,
}

impl Tokens {
    /// Returns the counts: input, output, reasoning, read from the cache, written to it.
    fn counts(&self) -> [Option<f64>; 5] {
        let cache = self.cache.as_ref();
        let (read, write) = (cache.and_then(|cache| cache.read), cache.and_then(|cache| cache.write));
        [self.input, self.output, self.reasoning, read, write]
    }
}

#[derive(Deserialize)]
struct State<'a> {
    status: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    output: Option<String>,
    error: Option<String>,
    title: Option<String>,
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    output: Option<Cow<'a, str>>,
    #[serde(borrow)]
    filediff: Option<&'a RawValue>,
    diff: Option<String>,
}

#[derive(Deserialize)]
struct FileDiff {
    file: String,
    before: Option<String>,
    after: Option<String>,
}

/// Returns the FNV-1a checksum, continued from `sum`.
pub(super) fn checksum(sum: u64, text: &str) -> u64 {
    fnv(sum, text)
}

/// Returns the hash of a text.
pub(super) fn hash(text: &str) -> u64 {
    checksum(0, text)
}

impl Progress {
    /// Returns the part of the state that is stored with the session.
    pub(super) fn brief(&self) -> Self {
        let last = self.messages.keys().rev().take(DETAILED).next_back();
        // A message during which OpenCode was killed stays unfinished forever. If it were older than the stored ids, it
        // would count as the first reported message, and those after it as new.
        let named = self.messages.keys().rev().take(NAMED).next_back();
        let selected = |(id, message): &(&String, &Message)| last.is_some_and(|last| *id >= last) || !message.complete;
        let recent = |(id, _): &(&String, &Message)| named.is_some_and(|named| *id >= named);
        // A user's message has no end of its own.
        let is_recent_or_agent =
            |(id, message): &(&String, &Message)| last.is_some_and(|last| *id >= last) || !message.user;
        let messages: BTreeMap<String, Message> = self
            .messages
            .iter()
            .filter(recent)
            .filter(selected)
            .filter(is_recent_or_agent)
            .map(|(id, m)| (id.clone(), m.clone()))
            .collect();
        let parts = self.parts.iter().filter(|(_, part)| messages.contains_key(&part.message));
        let parts = parts.map(|(id, part)| (id.clone(), part.clone())).collect();
        Self { messages, parts, ..self.names() }
    }

    /// Returns only the ids of reported messages.
    pub(super) fn names(&self) -> Self {
        Self { before: self.named(None), last: self.last.clone(), ..Self::default() }
    }

    /// Returns the ids of the last reported messages, oldest first; of those received on this connection up to `newest`.
    fn named(&self, newest: Option<&str>) -> VecDeque<u64> {
        let mut names = self.before.clone();
        let selected = self.messages.keys().rev().filter(|id| newest.is_none_or(|newest| id.as_str() <= newest));
        let fresh: Vec<u64> = selected.take(NAMED).map(|id| hash(id)).collect();
        names.retain(|name| !fresh.contains(name));
        names.extend(fresh.into_iter().rev());
        names.drain(..names.len().saturating_sub(NAMED));
        names
    }

    /// Returns the last message received.
    pub(super) fn newest(&self) -> Option<&str> {
        self.messages.last_key_value().map(|(id, _)| id.as_str())
    }

    /// Returns whether nothing was reported before this connection.
    pub(super) fn is_new(&self) -> bool {
        self.before.is_empty()
    }

    /// Returns whether a message was completely reported before this connection.
    pub(super) fn was_reported_before(&self, message: &str) -> bool {
        !self.messages.contains_key(message) && self.before.contains(&hash(message))
    }

    /// Returns the number of the last reported messages, up to `newest`, that are missing in `current`.
    pub(super) fn missing_count<'a>(&self, current: impl Iterator<Item = &'a str>, newest: Option<&str>) -> usize {
        let current: HashSet<u64> = current.map(hash).collect();
        self.named(newest).iter().rev().take_while(|name| !current.contains(name)).count()
    }

    /// Returns the number of messages that were reported from this one on.
    pub(super) fn since(&self, message: &str) -> usize {
        let (names, first) = (self.named(None), hash(message));
        names.iter().position(|name| *name == first).map_or(0, |at| names.len() - at)
    }

    /// Removes the last `count` reported messages, up to `newest`: the conversation was reverted over them.
    pub(super) fn forget(&mut self, count: usize, newest: Option<&str>) {
        let names = self.named(newest).into_iter().rev().take(count).collect();
        self.forget_these(&names);
    }

    /// Removes a message; returns `false` if it was unknown.
    pub(super) fn remove(&mut self, message: &str) -> bool {
        let known = self.contains(message);
        self.forget_these(&HashSet::from([hash(message)]));
        known
    }

    fn forget_these(&mut self, names: &HashSet<u64>) {
        self.before.retain(|name| !names.contains(name));
        self.messages.retain(|id, _| !names.contains(&hash(id)));
        self.parts.retain(|_, part| !names.contains(&hash(&part.message)));
        if self.last.as_ref().is_some_and(|last| names.contains(&hash(last))) {
            self.last = self.messages.iter().rfind(|(_, message)| !message.user).map(|(id, _)| id.clone());
        }
    }

    /// Returns whether a message is before the known ones: OpenCode still changes stored tool output there.
    fn is_past(&self, message: &str) -> bool {
        !self.messages.contains_key(message) && self.newest().is_some_and(|newest| newest > message)
    }

    /// Records a lost connection: the next deltas of unfinished parts may not follow.
    pub(super) fn connection_lost(&mut self) {
        for part in self.parts.values_mut().filter(|part| !part.complete) {
            (part.held, part.gap) = (true, false);
        }
    }

    /// Records a message.
    pub(super) fn message(&mut self, info: &Info<'_>) {
        let complete = info.time.as_ref().is_some_and(|time| time.completed.is_some());
        let user = info.role == "user";
        let message = self.messages.entry(info.id.clone()).or_default();
        message.user = user;
        message.complete |= complete;
        if info.finish.is_some() {
            message.finish.clone_from(&info.finish);
        }
        if let (Some(provider), Some(model)) = (&info.provider, &info.model) {
            message.model = Some(format!("{provider}/{model}"));
        }
        // Ids rise in order of creation.
        if !user && self.last.as_ref().is_none_or(|last| *last < info.id) {
            self.last = Some(info.id.clone());
        }
        while self.messages.len() > MESSAGES_MAX {
            if let Some((id, _)) = self.messages.pop_first() {
                self.parts.retain(|_, part| part.message != id);
            }
        }
    }

    /// Returns whether a message is known.
    pub(super) fn contains(&self, message: &str) -> bool {
        self.messages.contains_key(message) || self.before.contains(&hash(message))
    }

    /// Returns whether a message is a user's.
    pub(super) fn is_user(&self, message: &str) -> bool {
        self.messages.get(message).is_some_and(|message| message.user)
    }

    /// Returns whether a message is complete.
    pub(super) fn is_complete(&self, message: &str) -> bool {
        self.messages.get(message).is_some_and(|message| message.complete)
    }

    /// Returns whether the assistant's last message is not complete.
    pub(super) fn has_unfinished_part(&self) -> bool {
        self.last.as_ref().is_some_and(|last| !self.is_complete(last))
    }

    /// Returns the assistant's last message.
    pub(super) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// Returns whether the last message is a user's.
    pub(super) fn awaits_reply(&self) -> bool {
        self.messages.last_key_value().is_some_and(|(_, message)| message.user)
    }

    /// Returns the reason why the assistant's last message ended.
    pub(super) fn finish(&self) -> Option<&str> {
        self.messages.get(self.last.as_ref()?)?.finish.as_deref()
    }

    /// Returns the model of the assistant's last message.
    pub(super) fn model(&self) -> Option<&str> {
        self.messages.get(self.last.as_ref()?)?.model.as_deref()
    }

    /// Returns whether all of a part was received so far.
    pub(super) fn follows(&self, part: &str) -> bool {
        self.parts.get(part).is_some_and(|part| !part.held)
    }

    /// Skips a part that an earlier connection reported.
    pub(super) fn skip(&mut self, part: &PartIn<'_>) {
        let complete = Self::complete(part);
        let text = part.text.as_deref().unwrap_or_default();
        let mut known = Part { message: part.message.clone(), complete, ..Part::default() };
        (known.reported_len, known.sum) = (text.len(), checksum(0, text));
        // The rest comes as deltas, after an unknown part.
        known.held = !complete;
        if let (Some(state), true) = (part.state.and_then(object::<State<'_>>), complete) {
            known.state = Some((state.status.unwrap_or_default(), None));
        }
        self.remember(part.id.clone(), known);
    }

    /// Returns whether a part is complete. The end of the part itself decides: OpenCode may report a message as
    /// complete before its parts, because it sends messages in their latest state.
    pub(super) fn complete(part: &PartIn<'_>) -> bool {
        match part.type_name.as_str() {
            "text" | "reasoning" => part.time.as_ref().is_some_and(|time| time.end.is_some()),
            "tool" => {
                let status = part.state.and_then(object::<State<'_>>).and_then(|state| state.status);
                matches!(status.as_deref(), Some("completed" | "error"))
            }
            _ => true,
        }
    }

    fn remember(&mut self, id: String, part: Part) -> &mut Part {
        if self.parts.len() >= PARTS_MAX {
            let messages = &mut self.messages;
            self.parts.retain(|_, part| match messages.get_mut(&part.message) {
                Some(message) if message.complete || message.user => {
                    message.forgotten = true;
                    false
                }
                Some(_) => true,
                None => false,
            });
            if self.parts.len() >= PARTS_MAX {
                self.parts.clear();
            }
        }
        self.parts.entry(id).or_insert(part)
    }

    /// Returns the event for a part of a user's message, if it is to be reported. `is_own_prompt` returns whether a text is the pending prompt.
    pub(super) fn user_part(
        &mut self,
        native: &Bytes,
        part: &PartIn<'_>,
        is_own_prompt: impl FnOnce(Option<&str>) -> bool,
    ) -> Option<EventDraft> {
        if part.synthetic == Some(true) || part.ignored == Some(true) || self.parts.contains_key(&part.id) {
            return None;
        }
        if !matches!(part.type_name.as_str(), "text" | "file") {
            return None;
        }
        self.remember(part.id.clone(), Part { message: part.message.clone(), complete: true, ..Part::default() });
        let message = self.messages.entry(part.message.clone()).or_default();
        let text = part.text.as_deref().filter(|_| part.type_name == "text");
        if *message.is_own_prompt.get_or_insert_with(|| is_own_prompt(text)) {
            return None;
        }
        if let Some(text) = text {
            return Some(chunk(Kind::UserMessageChunk, Some(&part.message), text, Some(native)));
        }
        let name = part.filename.as_deref().or(part.url.as_deref()).unwrap_or("file");
        // A data URL would be shown as unreadable text.
        let uri = part.url.as_deref().filter(|url| !url.starts_with("data:")).unwrap_or(name);
        let content = serde_json::json!({ "type": "resource_link", "uri": uri, "name": name, "mimeType": part.mime });
        Some(content_chunk(Kind::UserMessageChunk, Some(&part.message), content, Some(native)))
    }

    /// Handles a delta of text.
    pub(super) fn delta(&mut self, native: &Bytes, message: &str, id: &str, delta: &str, drafts: &mut Vec<EventDraft>) {
        if self.messages.get(message).is_some_and(|message| message.user || message.forgotten) {
            return;
        }
        let part = match self.parts.contains_key(id) {
            true => self.parts.entry(id.to_owned()).or_default(),
            // The beginning was sent before the gateway was connected.
            false => self.remember(id.to_owned(), Part { message: message.to_owned(), held: true, ..Part::default() }),
        };
        if part.complete {
            return;
        }
        if part.held {
            if !std::mem::replace(&mut part.gap, true) {
                drafts.push(gap("a part of a message was missed: the complete text follows when it ends", native));
            }
            return;
        }
        part.reported_len += delta.len();
        part.sum = checksum(part.sum, delta);
        let kind = if part.thought { Kind::AgentThoughtChunk } else { Kind::AgentMessageChunk };
        drafts.push(chunk(kind, Some(message), delta, Some(native)));
    }

    /// Handles a part in its present state. `context` is the model's context size.
    pub(super) fn part(
        &mut self,
        native: &Bytes,
        part: &PartIn<'_>,
        context: Option<u64>,
        drafts: &mut Vec<EventDraft>,
    ) {
        if self.is_past(&part.message) || self.messages.get(&part.message).is_some_and(|message| message.forgotten) {
            return;
        }
        match part.type_name.as_str() {
            "text" if part.ignored == Some(true) => {}
            "text" => self.text(native, Kind::AgentMessageChunk, part, drafts),
            "reasoning" => self.text(native, Kind::AgentThoughtChunk, part, drafts),
            "tool" => self.tool(native, part, drafts),
            "step-finish" => {
                if self.first(part) {
                    drafts.extend(part.tokens.as_ref().map(|tokens| usage(native, tokens, part.cost, context)));
                    self.spent.add(&spending(part.tokens.as_ref(), part.cost));
                }
            }
            // OpenCode's own bookkeeping, without content for the user.
            "step-start" | "snapshot" => {}
            "patch" | "compaction" | "subtask" | "agent" | "file" | "retry" => {
                if self.first(part) {
                    drafts.push(EventDraft::raw(
                        native.clone(),
                        &format!("a part that only OpenCode shows: {}", part.type_name),
                    ));
                }
            }
            _ => {
                if self.first(part) {
                    drafts.push(EventDraft::raw(native.clone(), "an unknown part of a message"));
                }
            }
        }
    }

    /// Takes the spending of the steps that were reported since the last call.
    pub(super) fn take_spent(&mut self) -> Option<SpendReport> {
        SpendReport::step(std::mem::take(&mut self.spent))
    }

    /// Returns whether a part is new.
    fn first(&mut self, part: &PartIn<'_>) -> bool {
        let first = !self.parts.contains_key(&part.id);
        if first {
            self.remember(part.id.clone(), Part { message: part.message.clone(), complete: true, ..Part::default() });
        }
        first
    }

    fn text(&mut self, native: &Bytes, kind: Kind, part: &PartIn<'_>, drafts: &mut Vec<EventDraft>) {
        let complete = Self::complete(part);
        let text = part.text.as_deref().unwrap_or_default();
        let known = match self.parts.contains_key(&part.id) {
            true => self.parts.entry(part.id.clone()).or_default(),
            false => self.remember(part.id.clone(), Part { message: part.message.clone(), ..Part::default() }),
        };
        if known.complete {
            return;
        }
        known.thought = kind == Kind::AgentThoughtChunk;
        let follows =
            text.get(..known.reported_len).is_some_and(|reported_text| checksum(0, reported_text) == known.sum);
        // At the end of a text OpenCode may trim white space, but changes nothing else: then everything was reported.
        let cut = text.len() < known.reported_len;
        if follows {
            known.held = false;
            let rest = &text[known.reported_len..];
            if !rest.is_empty() {
                (known.reported_len, known.sum) = (text.len(), checksum(known.sum, rest));
                drafts.push(chunk(kind, Some(&part.message), rest, Some(native)));
            }
        } else if complete && !cut {
            (known.reported_len, known.sum) = (text.len(), checksum(0, text));
            drafts
                .push(gap("OpenCode changed an earlier message: the message follows completely, as it is now", native));
            drafts.push(chunk(kind, Some(&part.message), text, Some(native)));
        }
        known.complete = complete;
    }

    /// Marks a part whose beginning may have been missed: its deltas are not reported.
    pub(super) fn hold(&mut self, id: &str) {
        if let Some(part) = self.parts.get_mut(id).filter(|part| !part.complete) {
            part.held = true;
        }
    }

    fn tool(&mut self, native: &Bytes, part: &PartIn<'_>, drafts: &mut Vec<EventDraft>) {
        let (Some(id), Some(raw)) = (part.call.as_deref(), part.state) else {
            return drafts.push(EventDraft::raw(native.clone(), "a tool call without an identifier"));
        };
        let Some(state) = object::<State<'_>>(raw) else {
            return drafts.push(EventDraft::raw(native.clone(), "a tool call whose state could not be parsed"));
        };
        let status = match state.status.as_deref() {
            Some("running") => "in_progress",
            Some("completed") => "completed",
            Some("error") => "failed",
            _ => "pending",
        };
        let complete = matches!(status, "completed" | "failed");
        let metadata = state.metadata.and_then(object::<Metadata<'_>>);
        // The output so far.
        let output = match &metadata {
            Some(Metadata { output: Some(output), .. }) if !complete && !output.is_empty() => Some(output.to_string()),
            _ => None,
        };
        let now = Some((status.to_owned(), output.as_deref().map(hash)));
        let first = !self.parts.contains_key(&part.id);
        let known = match first {
            false => self.parts.entry(part.id.clone()).or_default(),
            true => self.remember(part.id.clone(), Part { message: part.message.clone(), ..Part::default() }),
        };
        if known.complete || known.state == now {
            return;
        }
        (known.state, known.complete) = (now, complete);
        let name = part.tool.as_deref().unwrap_or("tool");
        let mut content = Vec::new();
        if let Some(diff) = metadata.as_ref().and_then(|metadata| object::<FileDiff>(metadata.filediff?)) {
            if let Some(after) = diff.after {
                content.push(serde_json::json!({
                    "type": "diff", "path": diff.file, "oldText": diff.before, "newText": after,
                }));
            }
        } else if let Some(diff) = metadata.as_ref().and_then(|metadata| metadata.diff.as_deref()) {
            content.push(text_block(diff));
        }
        let input = state.input.filter(|input| input.get() != "{}");
        if let (true, Some((path, text))) =
            (complete && content.is_empty(), input.and_then(|input| written(name, input)))
        {
            content.push(serde_json::json!({ "type": "diff", "path": path, "oldText": null, "newText": text }));
        }
        if let Some(text) = state.output.as_ref().or(state.error.as_ref()).or(output.as_ref()) {
            content.push(text_block(text));
        }
        let update = ToolUpdate {
            title: state.title.filter(|title| !title.is_empty()).or_else(|| first.then(|| name.to_owned())),
            kind: first.then(|| tool_kind(name)),
            status: Some(status),
            content: Some(content).filter(|content| !content.is_empty()),
            locations: input.and_then(path_in).map(|path| vec![serde_json::json!({ "path": path })]),
            raw_input: input.map(owned),
            raw_output: complete.then(|| owned(raw)),
            ..ToolUpdate::new(id)
        };
        let own = own_call(name, state.input.filter(|_| status == "in_progress"));
        let tool = Some(ToolCallRef { own, ..ToolCallRef::new(id, complete) });
        drafts.push(EventDraft { tool, ..update.draft(first, complete, Some(native)) });
    }
}

/// Returns the digest of a call of one of the gateway's own tools; `None` for another tool.
fn own_call(name: &str, input: Option<&RawValue>) -> Option<CallDigest> {
    let input = input.filter(|_| name.starts_with(OWN_SERVER_PREFIX))?;
    Some(CallDigest::new(name, &serde_json::from_str(input.get()).ok()?))
}

/// Makes an event that reports a gap.
pub(super) fn gap(what: &str, native: &Bytes) -> EventDraft {
    EventDraft::error("gap", what, Some(native))
}

/// Returns ACP's kind of an OpenCode tool.
pub(super) fn tool_kind(tool: &str) -> &'static str {
    match tool {
        "bash" | "shell" => "execute",
        "edit" | "write" | "patch" | "multiedit" | "apply_patch" => "edit",
        "read" => "read",
        "grep" | "glob" | "list" | "ls" | "codesearch" => "search",
        "webfetch" | "websearch" => "fetch",
        _ => "other",
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "filePath")]
    path: String,
    content: Option<String>,
}

fn path_in(input: &RawValue) -> Option<String> {
    object::<File>(input).map(|file| file.path)
}

/// Returns the path and the text of a newly written file.
fn written(tool: &str, input: &RawValue) -> Option<(String, String)> {
    let file = object::<File>(input).filter(|_| tool == "write")?;
    Some((file.path, file.content?))
}

/// Returns the spending of a step. OpenCode counts the cache's part and the reasoning separately from the rest; it
/// always reports dollars.
pub(super) fn spending(tokens: Option<&Tokens>, cost: Option<f64>) -> Spending {
    let counts = tokens.map(Tokens::counts).unwrap_or_default();
    let [input, output, reasoning, read, write] = counts.map(|count| count.and_then(reported_tokens));
    let with = |own: Option<u64>, beside: [Option<u64>; 2]| own.map(|own| own + beside.iter().flatten().sum::<u64>());
    let counts = [with(input, [read, write]), with(output, [reasoning, None]), read, write, reasoning];
    Spending::new(counts, cost.and_then(in_dollars).into_iter().collect())
}

/// Returns a cost; 0 also stands for a model whose price OpenCode does not know.
fn in_dollars(cost: f64) -> Option<Money> {
    Money::from_report(cost, "USD").filter(|cost| cost.amount > 0.0)
}

/// Makes an event for the use of tokens in ACP's form.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // tokens: whole, not negative, far below 2^53
pub(super) fn usage(native: &Bytes, tokens: &Tokens, cost: Option<f64>, context: Option<u64>) -> EventDraft {
    let used = tokens.total.unwrap_or_else(|| tokens.counts().iter().flatten().sum()).max(0.0) as u64;
    let mut body = serde_json::json!({ "sessionUpdate": "usage_update", "used": used, "size": context.unwrap_or(0) });
    if let Some(cost) = cost.filter(|cost| *cost > 0.0) {
        body["cost"] = serde_json::json!({ "amount": cost, "currency": "USD" });
    }
    EventDraft { native: Some(native.clone()), ..EventDraft::new(Kind::UsageUpdate, &body) }
}

/// Returns `todo.updated` as a plan.
pub(super) fn plan(native: &Bytes, todos: &RawValue) -> Option<EventDraft> {
    #[derive(Deserialize)]
    struct Todo {
        content: String,
        status: Option<String>,
        priority: Option<String>,
    }
    let todos: Vec<Todo> = plexus_protocol::object::from_str(todos.get()).ok()?;
    let entries: Vec<_> = todos
        .iter()
        .map(|todo| {
            // ACP has no status for a dropped entry; it counts as completed.
            let status = match todo.status.as_deref() {
                Some("completed" | "cancelled") => "completed",
                Some("in_progress") => "in_progress",
                _ => "pending",
            };
            let priority = match todo.priority.as_deref() {
                Some("high") => "high",
                Some("low") => "low",
                _ => "medium",
            };
            serde_json::json!({ "content": todo.content, "status": status, "priority": priority })
        })
        .collect();
    let body = serde_json::json!({ "sessionUpdate": "plan", "entries": entries });
    Some(EventDraft { native: Some(native.clone()), ..EventDraft::new(Kind::Plan, &body) })
}

/// Returns ACP's stop reason for the end of a message.
pub(super) fn stop_reason(finish: Option<&str>) -> &str {
    match finish {
        // A rejected call ends a turn with the calls' own reason.
        None | Some("stop" | "tool-calls") => "end_turn",
        Some("length") => "max_tokens",
        Some("content-filter") => "refusal",
        Some(other) => other,
    }
}

/// Returns the name and message of an OpenCode error.
pub(super) fn error_text(error: &RawValue) -> (String, String) {
    #[derive(Deserialize)]
    struct Error<'a> {
        name: Option<String>,
        #[serde(rename = "_tag")]
        tag: Option<String>,
        message: Option<String>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    let Some(error) = object::<Error<'_>>(error) else { return (String::new(), error.get().to_owned()) };
    let name = error.name.or(error.tag).unwrap_or_default();
    let inner = error.data.and_then(|data| member(data, "message"));
    let message = inner.or(error.message).filter(|message| !message.is_empty()).unwrap_or_else(|| name.clone());
    let message = fault::with_details(&message, error.data);
    (name, message)
}
