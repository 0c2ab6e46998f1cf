//! Events and their kinds.

use std::sync::Arc;

use bytes::Bytes;

use super::{Position, RunId, RuntimeId, SessionId, Timestamp};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal $text:literal,)*) => {
        /// The kind of an event. The first eleven are ACP's `session/update` vocabulary (v1), whose bodies pass unchanged; the rest are
        /// the gateway's own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// Returns whether this is a tool call or an update of one.
            pub const fn is_tool(self) -> bool {
                matches!(self, Self::ToolCall | Self::ToolCallUpdate)
            }

            /// All kinds.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];

            /// Returns the name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Kind::$name => $text,)* }
            }

            /// Returns the store's number for this kind; never reused for another kind.
            pub const fn code(self) -> u8 {
                match self { $(Kind::$name => $code,)* }
            }

            /// Returns the kind with this number in the store.
            pub const fn from_code(code: u8) -> Option<Kind> {
                match code { $($code => Some(Kind::$name),)* _ => None }
            }

            /// Returns the kind with this name on the wire.
            pub fn from_name(name: &str) -> Option<Kind> {
                match name { $($text => Some(Kind::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// A piece of a user's message.
    UserMessageChunk = 1 "user_message_chunk",
    /// A piece of the agent's message.
    AgentMessageChunk = 2 "agent_message_chunk",
    /// A piece of the agent's reasoning.
    AgentThoughtChunk = 3 "agent_thought_chunk",
    /// A tool was called.
    ToolCall = 4 "tool_call",
    /// A tool call changed.
    ToolCallUpdate = 5 "tool_call_update",
    /// The agent's plan, whole.
    Plan = 6 "plan",
    /// The slash commands the agent offers, whole.
    AvailableCommandsUpdate = 7 "available_commands_update",
    /// The mode of the agent changed.
    CurrentModeUpdate = 8 "current_mode_update",
    /// A configuration option changed.
    ConfigOptionUpdate = 9 "config_option_update",
    /// The session's title or other metadata changed.
    SessionInfoUpdate = 10 "session_info_update",
    /// The tokens and cost so far changed.
    UsageUpdate = 11 "usage_update",
    /// A run began.
    RunStarted = 32 "run_started",
    /// A run is queued, running, or waiting for users.
    RunStatus = 33 "run_status",
    /// A run ended; no later event belongs to it.
    RunEnded = 34 "run_ended",
    /// A runtime asked users something.
    RequestOpened = 35 "request_opened",
    /// A request was resolved.
    RequestResolved = 36 "request_resolved",
    /// A user-interface surface of an agent changed.
    SurfaceUpdated = 37 "surface_updated",
    /// A hook of the agent ran.
    Hook = 38 "hook",
    /// The runtime started, exited, restarts, or is stuck.
    RuntimeStatus = 39 "runtime_status",
    /// A client joined the session.
    ClientJoined = 40 "client_joined",
    /// A client left the session.
    ClientLeft = 41 "client_left",
    /// An error; the body names the code, the cause and the consequence.
    Error = 42 "error",
    /// A message that no dialect understood: stored and published, never dropped.
    Raw = 43 "raw",
    /// The content of an open request changed: the body is the whole request, with its next revision.
    RequestUpdated = 44 "request_updated",
    /// The agent asked its client for a file or a terminal: the body names the client and the outcome.
    ClientServed = 45 "client_served",
}

impl Kind {
    /// Returns whether this is one of ACP's kinds, so that the body is an ACP `update` object.
    pub const fn is_acp(self) -> bool {
        self.code() < 32
    }
}

/// The source of an event: the same for all events of a session, so shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The conversation.
    pub session_id: SessionId,
    /// The session's runtime.
    pub runtime_id: RuntimeId,
    /// The dialect of that runtime.
    pub dialect: Arc<str>,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The position in the log.
    pub position: Position,
    /// The session, its runtime and its dialect.
    pub origin: Arc<Origin>,
    /// The run of the event; events between runs belong to the session's run zero.
    pub run_id: RunId,
    /// The number within the run: from 0, without a gap.
    pub seq: u64,
    /// The time when the gateway received the event.
    pub at: Timestamp,
    /// The kind of the event.
    pub kind: Kind,
    /// The canonical body: one valid JSON object on one line (no raw CR or LF), nested at most 128 deep.
    pub body: Bytes,
    /// The runtime's own bytes, if the event arrived in one message. Often `body` is a slice of it and shares its memory.
    pub native: Option<Bytes>,
}

impl Event {
    /// Returns the memory that the event holds, in bytes; used for the bounds of the ring and of pages.
    pub fn weight(&self) -> usize {
        let own = size_of::<Self>();
        match &self.native {
            Some(native) if body_range(&self.body, native).is_some() => own + native.len(),
            Some(native) => own + native.len() + self.body.len(),
            None => own + self.body.len(),
        }
    }

    /// Returns the range of the body in `native`, if it is a slice of it.
    pub fn body_in_native(&self) -> Option<std::ops::Range<usize>> {
        body_range(&self.body, self.native.as_ref()?)
    }
}

fn body_range(body: &Bytes, native: &Bytes) -> Option<std::ops::Range<usize>> {
    let start = (body.as_ptr() as usize).checked_sub(native.as_ptr() as usize)?;
    let end = start.checked_add(body.len())?;
    (end <= native.len()).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_and_codes_are_unique() {
        for &kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.as_str()), Some(kind));
            assert_eq!(Kind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(Kind::from_name("nonsense"), None);
        assert_eq!(Kind::from_code(0), None);
    }
}
