//! A session folded to what a newcomer must see.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::{Cursor, Event, Kind, Request, RequestId, RunId, SessionInfo, Timestamp};

/// What a newcomer must see of a session: whole messages, the latest of everything else, and the cursor at which this is exact.
#[derive(Debug, Serialize)]
pub struct Snapshot {
    /// The session.
    pub session: SessionInfo,
    /// Everything up to here is in it; reading on after it misses nothing and repeats nothing.
    pub cursor: Cursor,
    /// The messages, in order; the one being said has its text so far.
    pub messages: Vec<Message>,
    /// The tool calls, in order, each with its latest state.
    pub tools: Vec<Tool>,
    /// The latest body of each kind of which only the latest matters (plan, mode, commands, usage …), by kind.
    pub latest: BTreeMap<&'static str, Box<RawValue>>,
    /// The requests that are open, in full.
    pub requests: Vec<Request>,
    /// The surfaces of the agent, latest.
    pub surfaces: Vec<Box<RawValue>>,
    /// Whether retention has removed what came before.
    pub trimmed: bool,
}

/// One message, whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// `user`, `agent` or `thought`.
    pub role: &'static str,
    /// The run it was said in.
    pub run_id: String,
    /// Its text.
    pub text: String,
    /// What in it is no text: ACP content blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<serde_json::Value>,
    /// Whether it is being said, or was cut off.
    pub partial: bool,
    /// When it began.
    pub at: Timestamp,
    /// The place of its first event in the log.
    pub position: u64,
}

/// One tool call, latest state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    /// The runtime's identifier.
    pub tool_call_id: String,
    /// The run it belongs to.
    pub run_id: String,
    /// The place of its first event in the log.
    pub position: u64,
    /// ACP's tool call, every update merged into it (`title`, `kind`, `status`, `content`, `rawInput`, `rawOutput`, `locations`).
    #[serde(flatten)]
    pub call: serde_json::Map<String, serde_json::Value>,
}

/// The kinds of which only the latest matters to a newcomer.
const LATEST: &[Kind] = &[
    Kind::Plan,
    Kind::AvailableCommandsUpdate,
    Kind::CurrentModeUpdate,
    Kind::ConfigOptionUpdate,
    Kind::SessionInfoUpdate,
    Kind::UsageUpdate,
    Kind::RuntimeStatus,
];

/// Folds a session's events, in order, into what a newcomer must see. Pure.
#[derive(Default)]
pub(super) struct Fold {
    messages: Vec<Message>,
    /// The messages' own identifiers, where the agent gives them.
    ids: Vec<Option<String>>,
    /// The message that the next chunk may go on with.
    current: Option<usize>,
    tools: Vec<Tool>,
    tool_index: BTreeMap<String, usize>,
    latest: BTreeMap<&'static str, Box<RawValue>>,
    requests: BTreeMap<RequestId, Request>,
    surfaces: BTreeMap<String, Box<RawValue>>,
    /// The run under way, as far as the events tell.
    running: Option<RunId>,
}

/// A chunk's body, as far as the fold reads it.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(rename = "messageId", borrow)]
    message_id: Option<std::borrow::Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<std::borrow::Cow<'a, str>>,
}

impl Fold {
    /// Starts from what retention left of the events that it removed.
    pub(super) fn from_base(base: &[u8]) -> Self {
        let kept: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(base).unwrap_or_default();
        let latest = kept.into_iter().filter_map(|(kind, body)| Some((Kind::from_name(&kind)?.as_str(), body)));
        Self { latest: latest.collect(), ..Self::default() }
    }

    /// What a later fold needs of the events so far when they are removed.
    pub(super) fn base(&self) -> Vec<u8> {
        serde_json::to_vec(&self.latest).unwrap_or_default()
    }

    /// The next event.
    pub(super) fn event(&mut self, event: &Event) {
        match event.kind {
            Kind::UserMessageChunk => self.chunk("user", event),
            Kind::AgentMessageChunk => self.chunk("agent", event),
            Kind::AgentThoughtChunk => self.chunk("thought", event),
            Kind::ToolCall | Kind::ToolCallUpdate => {
                // Words after a tool call are another message, where the agent does not number its messages itself.
                self.current = None;
                self.tool(event);
            }
            Kind::RunStarted => {
                self.current = None;
                self.running = Some(event.run_id.clone());
            }
            Kind::RunEnded => {
                self.current = None;
                if self.running.as_ref() == Some(&event.run_id) {
                    self.running = None;
                }
                #[derive(Deserialize)]
                struct Ended<'a> {
                    #[serde(borrow)]
                    status: std::borrow::Cow<'a, str>,
                }
                let whole = serde_json::from_slice::<Ended<'_>>(&event.body).is_ok_and(|end| end.status == "completed");
                let last = self.messages.iter_mut().rev().find(|message| message.role == "agent");
                if let (false, Some(last)) = (whole, last.filter(|last| last.run_id == event.run_id.as_str())) {
                    last.partial = true;
                }
            }
            Kind::RequestOpened => {
                if let Ok(request) = serde_json::from_slice::<Request>(&event.body) {
                    self.requests.insert(request.request_id.clone(), request);
                }
            }
            Kind::RequestResolved => {
                #[derive(Deserialize)]
                struct Resolved {
                    request_id: RequestId,
                }
                if let Ok(resolved) = serde_json::from_slice::<Resolved>(&event.body) {
                    self.requests.remove(&resolved.request_id);
                }
            }
            Kind::SurfaceUpdated => {
                #[derive(Deserialize)]
                struct Surface {
                    #[serde(alias = "surfaceId")]
                    surface_id: String,
                }
                if let (Ok(surface), Some(body)) = (serde_json::from_slice::<Surface>(&event.body), raw(event)) {
                    self.surfaces.insert(surface.surface_id, body);
                }
            }
            _ => {}
        }
        if LATEST.contains(&event.kind)
            && let Some(body) = raw(event)
        {
            self.latest.insert(event.kind.as_str(), body);
        }
    }

    fn chunk(&mut self, role: &'static str, event: &Event) {
        let Ok(chunk) = serde_json::from_slice::<Chunk<'_>>(&event.body) else { return };
        let id = chunk.message_id.map(|id| id.into_owned());
        let run_id = event.run_id.as_str();
        let goes_on = self.current.filter(|n| {
            let message = &self.messages[*n];
            message.role == role && message.run_id == run_id && (id.is_none() || self.ids[*n] == id)
        });
        // A numbered message goes on even if something else was said in between.
        let named = || {
            id.as_ref()?;
            let same = |n: &usize| self.ids[*n] == id && self.messages[*n].role == role;
            (0..self.messages.len()).rev().take(64).find(same)
        };
        let n = goes_on.or_else(named).unwrap_or_else(|| {
            self.messages.push(Message {
                role,
                run_id: run_id.to_owned(),
                text: String::new(),
                content: Vec::new(),
                partial: false,
                at: event.at,
                position: event.position.0,
            });
            self.ids.push(id);
            self.messages.len() - 1
        });
        self.current = Some(n);
        let Some(content) = chunk.content else { return };
        match serde_json::from_str::<Block<'_>>(content.get()) {
            Ok(Block { kind: Some(kind), text: Some(text) }) if kind == "text" => self.messages[n].text.push_str(&text),
            _ => self.messages[n].content.extend(serde_json::from_str::<serde_json::Value>(content.get())),
        }
    }

    fn tool(&mut self, event: &Event) {
        let Ok(mut update) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&event.body) else {
            return;
        };
        update.remove("sessionUpdate");
        let Some(serde_json::Value::String(id)) = update.remove("toolCallId") else { return };
        let n = *self.tool_index.entry(id.clone()).or_insert_with(|| {
            self.tools.push(Tool {
                tool_call_id: id,
                run_id: event.run_id.as_str().to_owned(),
                position: event.position.0,
                call: serde_json::Map::new(),
            });
            self.tools.len() - 1
        });
        self.tools[n].call.extend(update);
    }

    /// The snapshot, exact at `cursor`.
    pub(super) fn snapshot(mut self, session: SessionInfo, cursor: Cursor, trimmed: bool) -> Snapshot {
        if let (Some(running), Some(last)) = (&self.running, self.messages.last_mut()) {
            last.partial |= last.role != "user" && last.run_id == running.as_str();
        }
        Snapshot {
            session,
            cursor,
            messages: self.messages,
            tools: self.tools,
            latest: self.latest,
            requests: self.requests.into_values().collect(),
            surfaces: self.surfaces.into_values().collect(),
            trimmed,
        }
    }
}

fn raw(event: &Event) -> Option<Box<RawValue>> {
    serde_json::from_slice(&event.body).ok()
}
