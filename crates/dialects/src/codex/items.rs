//! Translates turns into events: notifications, items, and the reported part of each item. One file: an item's state,
//! and every message that changes it.
//!
//! An item's text comes in pieces, and in full at its end: the end adds the text that the pieces lacked. If pieces were
//! missed, a gap is reported; later pieces are held back until the full text comes, so that the text stays in order.

mod notifications;

use notifications::hook;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::fnv::{FNV, fnv};
use super::super::jsonrpc::{self, member, object, string};
use super::super::updates::{self, ToolUpdate, text_block};
use super::super::{EventDraft, Outbox, RuntimeEvent};
use super::{Codex, Params, ThreadHead, TurnHead, error_message, text};
use plexus_protocol::{Kind, NativeId, SpendReport, Spending, lenient_tokens};

/// Maximum number of stored items of one thread; above it all are removed, and a running one is reported again at its end.
const ITEMS_MAX: usize = 4096;
/// Maximum number of distinguished parts of one thought; further ones count as one.
const PARTS_MAX: u64 = 1024;
/// Maximum size of the text held back behind a gap, in bytes; above it the text is reported at once, and the gap stays.
const HELD_MAX: usize = 4 * 1024 * 1024;
/// Notifications about the server itself: stored under their names.
const SERVER_NOTIFICATIONS: [&str; 42] = [
    "app/list/updated",
    "account/login/completed",
    "account/updated",
    "autoApprovalReview/strictReviewRequired",
    "externalAgentConfig/import/completed",
    "externalAgentConfig/import/progress",
    "fs/changed",
    "hook/completed",
    "hook/started",
    "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started",
    "item/commandExecution/terminalInteraction",
    "mcpServer/oauthLogin/completed",
    "mcpServer/startupStatus/updated",
    "mcpServer/event/stream/notification",
    "model/rerouted",
    "model/safetyBuffering/updated",
    "model/verification",
    "modelProvider/authRecoveryCompleted",
    "modelProvider/authRecoveryStarted",
    "project/changed",
    "skills/changed",
    "thread/archived",
    "thread/attachment/updated",
    "thread/closed",
    "thread/compacted",
    "thread/deleted",
    "thread/environment/connected",
    "thread/environment/disconnected",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/prediction/updated",
    "thread/project/updated",
    "thread/queue/changed",
    "thread/reverted",
    "thread/section/changed",
    "thread/settings/updated",
    "thread/unarchived",
    "turn/moderationMetadata",
    "windows/worldWritableWarning",
    "windowsSandbox/setupCompleted",
    "account/gatewayOAuth/changed",
];

/// The items of a thread.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Items(BTreeMap<String, Item>);

/// The reported part of an item.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Item {
    /// `true` if the item was reported completely.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    done: bool,
    /// `true` for a tool call, which may end after its turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tool: bool,
    /// `true` if a part of the item may have been missed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    torn: bool,
    /// The texts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    texts: BTreeMap<String, ReportedText>,
    /// The file changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    edits: Option<Vec<FileEdit>>,
}

/// A change to a file: path, text before, text after.
pub(super) type FileEdit = (String, Option<String>, String);

/// The reported part of a text.
#[derive(Serialize, Deserialize)]
struct ReportedText {
    kind: TextRole,
    bytes: usize,
    /// FNV-1a of the reported bytes.
    hash: u64,
    /// The text that is held back.
    held: Option<String>,
    /// `true` if a gap stays: the end adds nothing.
    loose: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum TextRole {
    Message,
    Thought,
}

impl Item {
    /// Returns whether another text of the item was reported, and no part of this one.
    fn another(&self, name: &str) -> bool {
        let reported = |name: &str| self.texts.get(name).is_some_and(|reported| reported.bytes > 0);
        !reported(name) && self.texts.keys().any(|other| other != name && reported(other))
    }
}

/// Returns the hash of a name.
pub(super) fn hash(name: &str) -> u64 {
    fnv(FNV, name)
}

impl ReportedText {
    fn new(kind: TextRole) -> Self {
        Self { kind, bytes: 0, hash: FNV, held: None, loose: false }
    }

    fn show(&mut self, item: &str, text: &str) -> Option<EventDraft> {
        self.bytes += text.len();
        self.hash = fnv(self.hash, text);
        (!text.is_empty()).then(|| chunk(self.kind, item, text))
    }

    /// Returns the unreported rest of the full text; `None` if the pieces differ from it.
    fn rest<'a>(&self, full_text: &'a str) -> Option<&'a str> {
        let (start, rest) = full_text.split_at_checked(self.bytes)?;
        (fnv(FNV, start) == self.hash).then_some(rest)
    }
}

fn chunk(role: TextRole, item: &str, text: &str) -> EventDraft {
    let kind = match role {
        TextRole::Message => Kind::AgentMessageChunk,
        TextRole::Thought => Kind::AgentThoughtChunk,
    };
    updates::chunk(kind, Some(item), text, None)
}

/// The common members of the server's items.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerItem<'a> {
    r#type: String,
    id: String,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    client_id: Option<&'a RawValue>,
    command: Option<&'a RawValue>,
    cwd: Option<&'a RawValue>,
    status: Option<&'a RawValue>,
    aggregated_output: Option<&'a RawValue>,
    exit_code: Option<&'a RawValue>,
    changes: Option<&'a RawValue>,
    server: Option<&'a RawValue>,
    namespace: Option<&'a RawValue>,
    tool: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    query: Option<&'a RawValue>,
    path: Option<&'a RawValue>,
}

fn list(raw: Option<&RawValue>) -> Vec<&RawValue> {
    raw.and_then(|raw| plexus_protocol::object::from_str(raw.get()).ok()).unwrap_or_default()
}

/// Reads the file changes of an item; `None` if they cannot be read exactly.
fn edits(changes: &RawValue) -> Option<Vec<FileEdit>> {
    #[derive(Deserialize)]
    struct Change {
        path: String,
        kind: ChangeKind,
        diff: String,
    }
    #[derive(Deserialize)]
    struct ChangeKind {
        r#type: String,
        move_path: Option<String>,
    }
    let changes: Vec<Change> = plexus_protocol::object::from_str(changes.get()).ok()?;
    let mut edits = Vec::new();
    for Change { path, kind, diff } in changes {
        match kind.r#type.as_str() {
            "add" => edits.push((path, None, diff)),
            "delete" => edits.push((path, Some(diff), String::new())),
            "update" if kind.move_path.is_none() => edits.extend(hunks(&path, &diff)?),
            _ => return None,
        }
    }
    Some(edits)
}

/// Returns the hunks of a unified diff, each as the text before and after.
fn hunks(path: &str, diff: &str) -> Option<Vec<FileEdit>> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@") {
            hunks.push(Default::default());
            continue;
        }
        // The lines before the first hunk are file names.
        let Some((before, after)) = hunks.last_mut() else { continue };
        let (mark, rest) = line.split_at_checked(1)?;
        match mark {
            "-" => before.push_str(rest),
            "+" => after.push_str(rest),
            " " => {
                before.push_str(rest);
                after.push_str(rest);
            }
            "\n" => {
                before.push('\n');
                after.push('\n');
            }
            // "\ No newline at end of file"
            "\\" => {}
            _ => return None,
        }
    }
    (!hunks.is_empty()).then(|| hunks.into_iter().map(|(old, new)| (path.to_owned(), Some(old), new)).collect())
}

/// Returns the changes as the content of a tool call, and the changed files.
fn changes(raw: &RawValue) -> (Vec<Value>, Vec<Value>) {
    #[derive(Deserialize)]
    struct Change {
        path: String,
        diff: Option<String>,
    }
    let files: Vec<Change> = plexus_protocol::object::from_str(raw.get()).unwrap_or_default();
    let locations = files.iter().map(|file| serde_json::json!({ "path": file.path })).collect();
    let content = match edits(raw) {
        Some(edits) => edits
            .iter()
            .map(|(path, old, new)| serde_json::json!({ "type": "diff", "path": path, "oldText": old, "newText": new }))
            .collect(),
        None => {
            let text =
                |file: &Change| text_block(&format!("{}\n{}", file.path, file.diff.as_deref().unwrap_or_default()));
            files.iter().map(text).collect()
        }
    };
    (content, locations)
}

impl ServerItem<'_> {
    /// Returns the item as a tool call; `None` if it is not one.
    fn tool(&self, full_text: &RawValue) -> Option<ToolUpdate> {
        let name = |raw| text(raw).unwrap_or_default();
        let mut tool = ToolUpdate::new(&self.id);
        let title = match self.r#type.as_str() {
            "commandExecution" => {
                tool.kind = Some("execute");
                let input = serde_json::json!({ "command": text(self.command), "cwd": text(self.cwd) });
                tool.raw_input = Some(jsonrpc::to_raw(&input));
                let output = text(self.aggregated_output).filter(|output| !output.is_empty());
                tool.content = output.map(|output| vec![text_block(&output)]);
                tool.raw_output = self.exit_code.filter(|code| code.get() != "null").map(|code| {
                    jsonrpc::to_raw(&serde_json::json!({ "exitCode": serde_json::from_str::<Value>(code.get()).ok() }))
                });
                name(self.command)
            }
            "fileChange" => {
                tool.kind = Some("edit");
                let (content, locations) = self.changes.map(changes).unwrap_or_default();
                let paths: Vec<_> = locations.iter().filter_map(|location| location["path"].as_str()).collect();
                let title = format!("Edit {}", paths.join(", "));
                (tool.content, tool.locations) = (Some(content), Some(locations));
                title
            }
            "mcpToolCall" | "dynamicToolCall" => {
                tool.raw_input = self.arguments.map(jsonrpc::owned);
                let output = [self.result, self.error].into_iter().flatten().find(|raw| raw.get() != "null");
                tool.raw_output = output.map(jsonrpc::owned);
                tool.content = self.result.and_then(texts_in).filter(|texts| !texts.is_empty());
                let home = text(self.server).or_else(|| text(self.namespace));
                home.into_iter().chain([name(self.tool)]).collect::<Vec<_>>().join(".")
            }
            "webSearch" => {
                tool.kind = Some("fetch");
                tool.raw_input = Some(jsonrpc::owned(full_text));
                format!("Search the web: {}", name(self.query))
            }
            "imageView" => {
                tool.kind = Some("read");
                tool.locations = Some(vec![serde_json::json!({ "path": name(self.path) })]);
                format!("Look at {}", name(self.path))
            }
            "imageGeneration" | "collabAgentToolCall" | "sleep" => {
                tool.raw_input = Some(jsonrpc::owned(full_text));
                match self.r#type.as_str() {
                    "imageGeneration" => "Make an image".to_owned(),
                    "sleep" => "Wait".to_owned(),
                    _ => format!("Helper agent: {}", name(self.tool)),
                }
            }
            _ => return None,
        };
        tool.title = Some(if title.is_empty() { self.r#type.clone() } else { title });
        Some(tool)
    }

    /// Returns the status of a tool call.
    fn status(&self, ended: bool) -> &'static str {
        match text(self.status).as_deref() {
            Some("failed" | "declined") => "failed",
            Some("inProgress") if !ended => "in_progress",
            _ if ended => "completed",
            _ => "in_progress",
        }
    }
}

/// Returns the texts in the result of an MCP tool.
fn texts_in(result: &RawValue) -> Option<Vec<Value>> {
    let content: Vec<&RawValue> = member(result, "content")?;
    Some(content.into_iter().filter_map(|part| Some(text_block(&member::<String>(part, "text")?))).collect())
}

impl Items {
    fn item(&mut self, id: &str) -> &mut Item {
        if self.0.len() >= ITEMS_MAX && !self.0.contains_key(id) {
            self.0.clear();
        }
        self.0.entry(id.to_owned()).or_default()
    }

    /// Returns whether the item is known.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// Returns the state that is needed to report the rest; held-back text is dropped, and counts as not reported.
    pub(super) fn brief(&self) -> Self {
        let reported = |reported: &ReportedText| ReportedText { held: None, ..*reported };
        let brief = |item: &Item| match item.done {
            true => Item { done: true, ..Item::default() },
            false => Item {
                tool: item.tool,
                texts: item.texts.iter().map(|(name, text)| (name.clone(), reported(text))).collect(),
                ..Item::default()
            },
        };
        Self(self.0.iter().map(|(id, item)| (id.clone(), brief(item))).collect())
    }

    /// Returns whether the item was reported, but not to its end.
    pub(super) fn is_in_progress(&self, id: &str) -> bool {
        self.0.get(id).is_some_and(|item| !item.done)
    }

    /// Returns the file changes of an item, if known.
    pub(super) fn edits(&self, id: &str) -> Option<&Vec<FileEdit>> {
        self.0.get(id)?.edits.as_ref()
    }

    /// Records a lost connection: running items may miss pieces.
    pub(super) fn connection_lost(&mut self) {
        for item in self.0.values_mut().filter(|item| !item.done) {
            item.torn = true;
        }
    }

    /// Starts another turn: only tool calls that outlived their turn are retained.
    pub(super) fn next_turn(&mut self) {
        self.0.retain(|_, item| item.tool && !item.done);
    }

    /// Ends the turn: held-back text whose full text will not come is reported.
    pub(super) fn turn_over(&mut self) -> Vec<EventDraft> {
        let mut drafts = Vec::new();
        for (id, item) in &mut self.0 {
            for reported in item.texts.values_mut() {
                if let Some(held) = reported.held.take() {
                    drafts.extend(reported.show(id, &held));
                }
            }
            item.done |= !item.tool;
        }
        drafts
    }

    /// Handles a piece of an item's text.
    fn delta(&mut self, id: &str, name: &str, role: TextRole, delta: &str) -> Vec<EventDraft> {
        let mut drafts = Vec::new();
        let missed = !self.contains(id);
        let item = self.item(id);
        if item.done {
            return drafts;
        }
        if missed || item.torn {
            item.torn = false;
            let message = "the gateway was not connected when Codex sent the beginning of this message; the complete \
                message follows when it ends";
            drafts.push(EventDraft::error("gap", message, None));
            // A gap concerns every text of the item, not only this one.
            for reported in item.texts.values_mut() {
                reported.held.get_or_insert_default();
            }
            item.texts.entry(name.to_owned()).or_insert_with(|| ReportedText::new(role)).held.get_or_insert_default();
        }
        let another = item.another(name);
        let behind = !item.texts.contains_key(name) && item.texts.values().any(|reported| reported.held.is_some());
        let reported = item.texts.entry(name.to_owned()).or_insert_with(|| ReportedText::new(role));
        if behind {
            reported.held = Some(String::new());
        }
        let Some(held) = &mut reported.held else {
            if another {
                drafts.push(chunk(role, id, PARAGRAPH));
            }
            drafts.extend(reported.show(id, delta));
            return drafts;
        };
        held.push_str(delta);
        if held.len() > HELD_MAX {
            let held = reported.held.take().unwrap_or_default();
            reported.loose = true;
            drafts.extend(reported.show(id, &held));
        }
        drafts
    }

    /// Handles the full text, and reports the rest of it.
    fn full_text(&mut self, id: &str, name: &str, role: TextRole, full_text: &str) -> Vec<EventDraft> {
        let item = self.item(id);
        let mut drafts = Vec::new();
        let another = item.another(name);
        let reported = item.texts.entry(name.to_owned()).or_insert_with(|| ReportedText::new(role));
        let held = reported.held.take();
        if reported.loose {
            return drafts;
        }
        let rest = reported.rest(full_text).map(str::to_owned).or(held).unwrap_or_default();
        if another && !rest.is_empty() {
            drafts.push(chunk(role, id, PARAGRAPH));
        }
        drafts.extend(reported.show(id, &rest));
        drafts
    }

    /// Handles an item that began or (`over`) ended. `own_mark` is the mark of the gateway's own prompt in the turn, and
    /// `echoed` whether it was echoed already, so that it is not repeated.
    ///
    /// # Errors
    /// Returns a message with the reason why it cannot be read.
    pub(super) fn read(
        &mut self,
        raw: &RawValue,
        ended: bool,
        own_mark: Option<&str>,
        echoed: &mut bool,
        frame: &Bytes,
    ) -> Result<Vec<EventDraft>, &'static str> {
        let Some(server_item) = object::<ServerItem<'_>>(raw) else { return Err("an item without an identifier") };
        let first = !self.contains(&server_item.id);
        let item = self.item(&server_item.id);
        if item.done {
            return Ok(Vec::new());
        }
        item.done = ended;
        let id = server_item.id.as_str();
        let mut drafts = match server_item.r#type.as_str() {
            "userMessage" if !ended => Vec::new(),
            "userMessage" => {
                let client = text(server_item.client_id);
                let own =
                    own_mark.is_some_and(|own_mark| client.as_deref().map_or(!*echoed, |client| client == own_mark));
                *echoed |= own;
                if own { Vec::new() } else { user_message(id, &list(server_item.content)) }
            }
            "agentMessage" | "plan" if ended => {
                self.full_text(id, "", TextRole::Message, &text(server_item.text).unwrap_or_default())
            }
            "reasoning" if ended => {
                let mut drafts = Vec::new();
                for (prefix, parts) in [("s", list(server_item.summary)), ("t", list(server_item.content))] {
                    for (n, part) in parts.into_iter().enumerate() {
                        let part = string(part).unwrap_or_default();
                        drafts.extend(self.full_text(id, &part_name(prefix, n as u64), TextRole::Thought, &part));
                    }
                }
                drafts
            }
            "agentMessage" | "plan" | "reasoning" => Vec::new(),
            "hookPrompt" | "functionCallOutput" | "subAgentActivity" | "enteredReviewMode" | "exitedReviewMode"
            | "contextCompaction" => {
                if ended {
                    vec![hook(&format!("item/{}", server_item.r#type), Some(raw))]
                } else {
                    Vec::new()
                }
            }
            _ => {
                let Some(mut tool) = server_item.tool(raw) else {
                    return Err("an item of an unknown type");
                };
                item.tool = true;
                if let Some(edits) = server_item.changes.and_then(edits) {
                    item.edits = Some(edits);
                }
                if first || ended {
                    tool.status = Some(server_item.status(ended));
                    vec![tool.draft(first, ended, None)]
                } else {
                    Vec::new()
                }
            }
        };
        for draft in &mut drafts {
            draft.native = Some(frame.clone());
        }
        Ok(drafts)
    }

    /// Makes an update of a tool call, preceded by the call itself if it is new.
    fn tool_update(&mut self, tool: ToolUpdate) -> Vec<EventDraft> {
        let id = tool.tool_call_id.as_str();
        let first = !self.contains(id);
        let item = self.item(id);
        if item.done {
            return Vec::new();
        }
        item.tool = true;
        let call = || {
            let (title, status) = (Some("tool".into()), Some("in_progress"));
            ToolUpdate { title, status, ..ToolUpdate::new(id) }.draft(true, false, None)
        };
        first.then(call).into_iter().chain([tool.draft(false, false, None)]).collect()
    }

    /// Makes the event for a tool call that is first mentioned by a question.
    pub(super) fn mention(&mut self, id: &str, title: &str, kind: &'static str, frame: &Bytes) -> Option<EventDraft> {
        if self.contains(id) {
            return None;
        }
        self.item(id).tool = true;
        let (title, kind) = (Some(title.to_owned()), Some(kind));
        let tool = ToolUpdate { title, kind, status: Some("pending"), ..ToolUpdate::new(id) };
        Some(tool.draft(true, false, Some(frame)))
    }
}

/// Separates two parts of one thought.
const PARAGRAPH: &str = "\n\n";

/// Returns the name of a part of a thought; the names sort in the order of the parts.
fn part_name(prefix: &str, index: u64) -> String {
    format!("{prefix}{:06}", index.min(PARTS_MAX))
}

/// Translates a user's message, one chunk for each part.
fn user_message(id: &str, content: &[&RawValue]) -> Vec<EventDraft> {
    #[derive(Deserialize)]
    struct Input<'a> {
        r#type: String,
        #[serde(borrow)]
        text: Option<&'a RawValue>,
        url: Option<&'a RawValue>,
        path: Option<&'a RawValue>,
        name: Option<&'a RawValue>,
    }
    let mut drafts = Vec::new();
    for input in content {
        let Some(input) = object::<Input<'_>>(input) else { continue };
        let part_text = text(input.text).unwrap_or_else(|| {
            let location = text(input.path).or_else(|| text(input.name));
            // A data URL is not readable text.
            let url = text(input.url).filter(|url| !url.starts_with("data:"));
            let location = location.or(url).map(|location| format!(": {location}")).unwrap_or_default();
            format!("[{}{location}]", input.r#type)
        });
        drafts.push(updates::chunk(Kind::UserMessageChunk, Some(id), &part_text, None));
    }
    drafts
}

/// Returns ACP content blocks as Codex's `input`.
///
/// # Errors
/// Returns a message with the reason why a block cannot be sent.
pub(super) fn input(content: &[Box<RawValue>]) -> Result<Vec<Value>, String> {
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Block {
        Text {
            text: String,
        },
        Image {
            data: String,
            #[serde(rename = "mimeType")]
            mime_type: String,
        },
        Audio {
            data: String,
            #[serde(rename = "mimeType")]
            mime_type: String,
        },
        ResourceLink {
            uri: String,
        },
        Resource {
            resource: Resource,
        },
        #[serde(other)]
        Other,
    }
    #[derive(Deserialize)]
    struct Resource {
        uri: String,
        text: Option<String>,
    }
    let text_input = |text: String| serde_json::json!({ "type": "text", "text": text, "text_elements": [] });
    let data = |content_type: &str, mime: &str, data: &str| serde_json::json!({ "type": content_type, "url": format!("data:{mime};base64,{data}") });
    let block = |block: &RawValue| match object::<Block>(block) {
        Some(Block::Text { text }) => Ok(text_input(text)),
        Some(Block::ResourceLink { uri }) => Ok(text_input(uri)),
        Some(Block::Resource { resource: Resource { uri, text: Some(text) } }) => {
            Ok(text_input(format!("{uri}\n{text}")))
        }
        Some(Block::Image { data: image, mime_type }) => Ok(data("image", &mime_type, &image)),
        Some(Block::Audio { data: audio, mime_type }) => Ok(data("audio", &mime_type, &audio)),
        Some(Block::Resource { .. } | Block::Other) => {
            Err("Codex accepts text, links, images and audio; the prompt contains something else".to_owned())
        }
        None => Err("the prompt contains a content block that is not ACP's".to_owned()),
    };
    content.iter().map(|raw| block(raw)).collect()
}
