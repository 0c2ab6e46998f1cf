//! The known state of the tool calls in progress: announcements and updates, merged field by field, so that a
//! permission request is judged with its tool call. Bounded for each session; tool calls that have ended are removed.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, member, object};
use plexus_protocol::NativeId;

/// Maximum number of stored tool calls in progress of one session; above it the oldest are removed.
const CALLS_MAX: usize = 64;
/// Maximum size of the stored tool calls of one session, in bytes; above it the oldest are removed, but never the latest.
const CALLS_BYTES: usize = 4 << 20;
/// Maximum number of sessions with tool calls in progress; above it one is removed.
const SESSIONS_MAX: usize = 1024;
/// Maximum length of a part that is saved, in bytes: the state is saved often. Of a longer part only its presence is
/// saved: after a restart a permission request about it is reported as unreadable.
pub(super) const SAVED_MAX: usize = 16 << 10;

/// A part of a message, as the agent wrote it. It is empty if it was too long to be saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RawPart(Bytes);

impl RawPart {
    fn read(frame: &Bytes, raw: Option<&RawValue>) -> Option<Self> {
        // An empty member does not replace an earlier one.
        let raw = raw.filter(|raw| !matches!(raw.get(), "null" | "{}" | "[]" | "\"\""))?;
        // A small part must not retain the memory of a long frame.
        let shares = raw.get().len() * 2 > frame.len();
        Some(Self(if shares { jsonrpc::slice(frame, raw) } else { Bytes::from(jsonrpc::owned(raw).get().to_owned()) }))
    }

    /// Returns the part as JSON.
    pub(super) fn raw(&self) -> Option<&RawValue> {
        serde_json::from_slice(&self.0).ok()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl Serialize for RawPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.raw().filter(|_| self.len() <= SAVED_MAX) {
            Some(raw) => raw.serialize(serializer),
            None => serializer.serialize_none(),
        }
    }
}

impl<'de> Deserialize<'de> for RawPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        // A saved `null` is a part that was too long: a `null` of an agent is not stored.
        let text = if raw.get() == "null" { "" } else { raw.get() };
        Ok(Self(Bytes::copy_from_slice(text.as_bytes())))
    }
}

/// Reads a part that was present, even if it was too long to be saved.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawPart>, D::Error> {
    RawPart::deserialize(deserializer).map(Some)
}

/// The known state of one tool call: the latest of each member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ToolCallState {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<RawPart>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<RawPart>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<RawPart>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<RawPart>,
    /// The files that it touches, shown where nothing else can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) locations: Option<RawPart>,
    /// The MCP server of the tool, if the agent itself names it (`_meta.serverId`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<Box<str>>,
}

/// Maximum length of a stored server name, in bytes.
const SERVER_MAX: usize = 128;

/// Returns the MCP server that `_meta` names.
fn server_name(meta: Option<&RawValue>) -> Option<Box<str>> {
    member::<Box<str>>(meta?, "serverId").filter(|name| name.len() <= SERVER_MAX)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members<'a> {
    title: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    raw_input: Option<&'a RawValue>,
    locations: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

impl ToolCallState {
    /// Reads a `toolCall` or an update, which is part of `frame`.
    pub(super) fn read(frame: &Bytes, update: &RawValue) -> Option<Self> {
        let Members { title, kind, content, raw_input, locations, meta } = object(update)?;
        Some(Self {
            title: RawPart::read(frame, title),
            kind: RawPart::read(frame, kind),
            content: RawPart::read(frame, content),
            input: RawPart::read(frame, raw_input),
            locations: RawPart::read(frame, locations),
            server: server_name(meta),
        })
    }

    /// Returns this state with a later update applied.
    pub(super) fn with(&self, later: &Self) -> Self {
        let latest = |later: &Option<RawPart>, before: &Option<RawPart>| later.clone().or_else(|| before.clone());
        Self {
            title: latest(&later.title, &self.title),
            kind: latest(&later.kind, &self.kind),
            content: latest(&later.content, &self.content),
            input: latest(&later.input, &self.input),
            locations: latest(&later.locations, &self.locations),
            server: later.server.clone().or_else(|| self.server.clone()),
        }
    }

    fn parts(&self) -> [(&'static str, Option<&RawPart>); 5] {
        let Self { title, kind, content, input, locations, server: _ } = self;
        [
            ("title", title.as_ref()),
            ("kind", kind.as_ref()),
            ("content", content.as_ref()),
            ("rawInput", input.as_ref()),
            ("locations", locations.as_ref()),
        ]
    }

    /// Returns whether a part was too long to be saved.
    pub(super) fn lost(&self) -> bool {
        self.parts().iter().any(|(_, part)| part.is_some_and(|part| part.0.is_empty()))
    }

    fn len(&self) -> usize {
        self.parts().iter().filter_map(|(_, part)| part.map(RawPart::len)).sum()
    }

    /// Returns the whole state as one JSON object.
    pub(super) fn json(&self) -> String {
        let members =
            self.parts().into_iter().filter_map(|(name, part)| Some(format!("\"{name}\":{}", part?.raw()?.get())));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

/// The tool calls in progress, by session.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct KnownToolCalls(HashMap<NativeId, VecDeque<(String, ToolCallState)>>);

impl KnownToolCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Merges an update.
    pub(super) fn record(&mut self, native: &NativeId, id: &str, update: ToolCallState) {
        if !self.0.contains_key(native) && self.0.len() >= SESSIONS_MAX {
            // Any session will do: a request about a removed tool call is shown as one that cannot be read.
            if let Some(old) = self.0.keys().next().cloned() {
                self.0.remove(&old);
            }
        }
        let calls = self.0.entry(native.clone()).or_default();
        let call = match calls.iter().position(|(known, _)| known == id).and_then(|at| calls.remove(at)) {
            Some((_, before)) => before.with(&update),
            None => update,
        };
        calls.push_back((id.to_owned(), call));
        let mut bytes: usize = calls.iter().map(|(id, call)| id.len() + call.len()).sum();
        while calls.len() > CALLS_MAX || (bytes > CALLS_BYTES && calls.len() > 1) {
            let Some((id, call)) = calls.pop_front() else { break };
            bytes -= id.len() + call.len();
        }
    }

    /// Removes a tool call that has ended.
    pub(super) fn remove(&mut self, native: &NativeId, id: &str) {
        if let Some(calls) = self.0.get_mut(native) {
            calls.retain(|(known, _)| known != id);
            if calls.is_empty() {
                self.0.remove(native);
            }
        }
    }

    /// Removes the tool calls of a turn that has ended: an agent may use their ids again.
    pub(super) fn turn_over(&mut self, native: &NativeId) {
        self.0.remove(native);
    }

    /// Returns the known state of a tool call.
    pub(super) fn get(&self, native: &NativeId, id: &str) -> Option<&ToolCallState> {
        self.0.get(native)?.iter().find(|(known, _)| known == id).map(|(_, call)| call)
    }

    /// Iterates over the tool calls in progress of a session, the latest first.
    pub(super) fn latest(&self, native: &NativeId) -> impl Iterator<Item = (&str, &ToolCallState)> {
        self.0.get(native).into_iter().flat_map(|calls| calls.iter().rev()).map(|(id, call)| (id.as_str(), call))
    }

    /// Removes all tool calls.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(json: &str) -> ToolCallState {
        let frame = Bytes::copy_from_slice(json.as_bytes());
        ToolCallState::read(&frame, serde_json::from_slice(&frame).unwrap()).unwrap()
    }

    #[test]
    fn acp_tool_call_updates_are_merged_member_by_member() {
        let mut known = KnownToolCalls::default();
        let native = NativeId::from("s");
        known.record(&native, "t", call(r#"{"title":"a","kind":"execute","rawInput":{"command":"ls"}}"#));
        known.record(&native, "t", call(r#"{"title":"b","rawInput":{},"kind":null,"content":[]}"#));
        let all = r#"{"title":"b","kind":"execute","rawInput":{"command":"ls"}}"#;
        assert_eq!(known.get(&native, "t").unwrap().json(), all);
        // The state outlives the gateway process, except parts that are very long.
        let again: KnownToolCalls = serde_json::from_str(&serde_json::to_string(&known).unwrap()).unwrap();
        assert_eq!(again.get(&native, "t").unwrap().json(), all);
        known.record(&native, "t", call(&format!(r#"{{"rawInput":{{"command":"{}"}}}}"#, "x".repeat(SAVED_MAX))));
        let saved = serde_json::to_string(&known).unwrap();
        assert!(saved.len() < 200, "{}", saved.len());
        let again: KnownToolCalls = serde_json::from_str(&saved).unwrap();
        let lost = again.get(&native, "t").unwrap();
        assert!(lost.lost() && lost.input.as_ref().unwrap().raw().is_none());
        assert_eq!(lost.json(), r#"{"title":"b","kind":"execute"}"#);
        // After a second restart it is still known that the part was present, until it is sent again.
        let mut again: KnownToolCalls = serde_json::from_str(&serde_json::to_string(&again).unwrap()).unwrap();
        assert!(again.get(&native, "t").unwrap().lost());
        again.record(&native, "t", call(r#"{"rawInput":{"command":"ls"}}"#));
        assert_eq!(again.get(&native, "t").unwrap().json(), all);
        assert!(!again.get(&native, "t").unwrap().lost());
        known.remove(&native, "t");
        assert!(known.is_empty());
    }

    #[test]
    fn acp_tool_calls_kept_are_bounded_and_include_the_latest() {
        let mut known = KnownToolCalls::default();
        let native = NativeId::from("s");
        let long = |n: usize| call(&format!(r#"{{"rawInput":"{}"}}"#, "x".repeat(n)));
        for n in 0..CALLS_MAX + 5 {
            known.record(&native, &n.to_string(), long(10));
        }
        assert_eq!(known.latest(&native).count(), CALLS_MAX);
        assert!(known.get(&native, "4").is_none() && known.get(&native, "5").is_some());
        known.record(&native, "big", long(CALLS_BYTES * 2));
        assert_eq!(known.latest(&native).map(|(id, _)| id).collect::<Vec<_>>(), ["big"]);
        for n in 0..SESSIONS_MAX + 5 {
            known.record(&NativeId::from(n.to_string().as_str()), "t", long(1));
        }
        assert_eq!(known.0.len(), SESSIONS_MAX);
    }
}
