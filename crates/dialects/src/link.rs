//! The messages of agents' own terminals to the gateway: those between a helper that an agent starts (a hook), the
//! gateway's link endpoint, and the dialect of that agent.
//!
//! A helper opens a connection, writes a [`HelperHello`] and then the agent's own JSON, each on one line. Most helpers
//! end at once; one that waits gets a [`HelperExit`] and ends with its content. The endpoint forwards every message to
//! the dialect as a [`LinkFrame`], and every [`LinkReply`] of the dialect to the helper. Transcripts are read, and
//! processes checked, by requests to the endpoint ([`transcript_path`], [`process_path`]), as are keys typed in a
//! shared terminal ([`terminal_path`]).
//!
//! A helper inside the agent's own process stays connected: a tunnel. After its [`HelperHello`] it writes any number of
//! [`TunnelLine`]s: events, and the replies to requests, which the dialect makes through the endpoint ([`tunnel_path`])
//! and the tunnel gets as [`TunnelRequest`]s.

use plexus_protocol::TerminalId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// An agent whose own terminals are sessions.
#[derive(Debug, PartialEq, Eq)]
pub struct TerminalDialect {
    /// The name that helpers send.
    pub name: &'static str,
    /// The dialect of its helpers, and the name of the runtime that has its sessions.
    pub dialect: &'static str,
}

/// Every such agent.
pub const TERMINAL_DIALECTS: &[TerminalDialect] = &[
    TerminalDialect { name: "claude", dialect: "claude-terminal" },
    TerminalDialect { name: "opencode", dialect: "opencode-terminal" },
    TerminalDialect { name: "copilot", dialect: "copilot-terminal" },
    TerminalDialect { name: "qwen", dialect: "qwen-terminal" },
    TerminalDialect { name: "gemini", dialect: "gemini-terminal" },
];

/// Returns whether the sessions of a dialect are in their own terminals.
pub fn in_terminal(dialect: &str) -> bool {
    TERMINAL_DIALECTS.iter().any(|agent| agent.dialect == dialect)
}

/// The version of the messages. A helper and a gateway of different versions ignore unknown members.
pub const LINK_VERSION: u32 = 1;

/// The purpose of a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelperRole {
    /// Reports an event; the helper has ended by then.
    Event,
    /// Waits for the answer to a question that the terminal shows as well.
    Question,
    /// Waits for a prompt that wakes the agent.
    Inbox,
    /// Stays connected to report events of its process, and to make requests there.
    Tunnel,
}

/// The first line of a helper.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HelperHello {
    /// The version of the messages: [`LINK_VERSION`].
    pub link: u32,
    /// The agent, by the name of its [`TerminalDialect`].
    pub agent: String,
    /// The purpose of the helper.
    pub role: HelperRole,
    /// A random name of the helper, which is the same after it has connected again.
    pub id: String,
    /// The process of the agent.
    pub pid: u32,
    /// The shared terminal in which the agent runs, as the helper reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
}

/// The action of a helper at its end, as the gateway determines it: the helper decides nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelperExit {
    /// Text for the stdout of the helper.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// Text for the stderr of the helper.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The exit code.
    #[serde(default)]
    pub code: u8,
}

/// A frame of the link endpoint.
#[derive(Debug, Serialize, Deserialize)]
pub struct LinkFrame<'a> {
    /// The connection of a helper; 0 for a frame about a process.
    pub connection: u64,
    /// The time when the process of the agent started.
    #[serde(default)]
    pub started: u64,
    /// The helper and its message, if the frame is one.
    #[serde(rename = "said", borrow, skip_serializing_if = "Option::is_none")]
    pub message: Option<HelperMessage<'a>>,
    /// A process that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<u32>,
}

/// A message of a helper.
#[derive(Debug, Serialize, Deserialize)]
pub struct HelperMessage<'a> {
    /// The helper.
    pub hello: HelperHello,
    /// The agent's own JSON.
    #[serde(borrow)]
    pub event: &'a RawValue,
}

/// A reply of a dialect to a helper.
#[derive(Debug, Serialize, Deserialize)]
pub struct LinkReply {
    /// The connection of the helper. A tunnel is closed.
    pub connection: u64,
    /// The action of the helper at its end.
    pub exit: HelperExit,
}

/// A line of a tunnel after its [`HelperHello`], with one of these members.
#[derive(Debug, Default, Deserialize)]
pub struct TunnelLine<'a> {
    /// An event, in the agent's own JSON.
    #[serde(borrow)]
    pub event: Option<&'a RawValue>,
    /// The reply to a request.
    #[serde(borrow)]
    pub reply: Option<TunnelReply<'a>>,
}

/// The reply to a [`TunnelRequest`].
#[derive(Debug, Deserialize)]
pub struct TunnelReply<'a> {
    /// The id of the request.
    pub id: u64,
    /// The HTTP status, if there is a reply.
    #[serde(default)]
    pub status: u16,
    /// The body, as JSON.
    #[serde(borrow)]
    pub body: Option<&'a RawValue>,
    /// The reason why there is no reply.
    pub error: Option<String>,
}

/// A request that a tunnel makes in its process, written as `{"request": …}`.
#[derive(Debug, Serialize)]
pub struct TunnelRequest<'a> {
    /// The id that is returned with the reply.
    pub id: u64,
    /// The HTTP method.
    pub method: &'a str,
    /// Path and query, escaped.
    pub path: &'a str,
    /// The JSON body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<&'a RawValue>,
}

/// Returns the path of the request for a part of a transcript: up to `length` bytes from `offset`. The reply has the
/// bytes (200), or reports that there is no such file (404), or that it is shorter now, with its length in digits
/// (416).
pub fn transcript_path(path: &str, offset: u64, length: u64) -> String {
    let query = serde_json::json!({ "path": path, "offset": offset, "length": length }).to_string();
    format!("/transcript?{}", data_encoding::HEXLOWER.encode(query.as_bytes()))
}

/// Returns the path of the request that checks whether the process that started at that time runs (200) or has ended
/// (404). Its end is reported from then on.
pub fn process_path(pid: u32, started: u64) -> String {
    format!("/process?{pid},{started}")
}

/// Returns the path of the request that the tunnel of this connection forwards as `path`. The reply is that of the agent.
pub fn tunnel_path(connection: u64, path: &str) -> String {
    format!("/tunnel/{connection}{path}")
}

/// Returns the path of the request to type keys in a shared terminal if its screen shows the question that they are
/// for. The body is a `TypeIf` of the terminal's own protocol, and so is the body of the reply (200).
pub fn terminal_path(terminal: &TerminalId) -> String {
    format!("/terminal?{terminal}")
}

/// A request to the link endpoint.
#[derive(Debug, PartialEq, Eq)]
pub enum LinkRequest {
    /// A request for [`transcript_path`].
    Transcript(TranscriptPart),
    /// A request for [`process_path`]: the pid, and the time at which the process started.
    Process(u32, u64),
    /// A request for [`tunnel_path`]: the connection, and the path of the agent's API.
    Tunnel(u64, String),
    /// A request for [`terminal_path`].
    Terminal(TerminalId),
}

/// A part of a transcript.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub struct TranscriptPart {
    /// The file.
    pub path: std::path::PathBuf,
    /// The position of the part.
    pub offset: u64,
    /// The maximum length, in bytes.
    pub length: u64,
}

impl LinkRequest {
    /// Parses the path of a request; `None` if it is not a request to a link endpoint.
    pub fn read(path: &str) -> Option<Self> {
        if let Some(rest) = path.strip_prefix("/tunnel/") {
            let end = rest.find('/')?;
            return Some(Self::Tunnel(rest[..end].parse().ok()?, rest[end..].to_owned()));
        }
        let (name, query) = path.split_once('?')?;
        match name {
            "/transcript" => {
                let json = data_encoding::HEXLOWER.decode(query.as_bytes()).ok()?;
                serde_json::from_slice(&json).ok().map(Self::Transcript)
            }
            "/terminal" => query.parse().ok().map(Self::Terminal),
            "/process" => {
                let (pid, started) = query.split_once(',')?;
                Some(Self::Process(pid.parse().ok()?, started.parse().ok()?))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn link_requests_round_trip_any_path() {
        for path in ["/a b/ü?&%/c.jsonl", "", "/\u{1}"] {
            let part = TranscriptPart { path: path.into(), offset: 7, length: u64::MAX };
            assert_eq!(LinkRequest::read(&transcript_path(path, 7, u64::MAX)), Some(LinkRequest::Transcript(part)));
        }
        assert_eq!(LinkRequest::read(&process_path(12, 5)), Some(LinkRequest::Process(12, 5)));
        for path in ["/session/s/message?directory=%2Fw&limit=5", "/tunnel/2/x", "/"] {
            assert_eq!(LinkRequest::read(&tunnel_path(7, path)), Some(LinkRequest::Tunnel(7, path.into())));
        }
        let terminal = TerminalId::trusted("t_z6vshuqr");
        assert_eq!(LinkRequest::read(&terminal_path(&terminal)), Some(LinkRequest::Terminal(terminal)));
        for bad in [
            "/tunnel/7",
            "/terminal?",
            "/terminal?../t_z6vshuqr",
            "/tunnel/x/session",
            "/tunnel//session",
            "",
            "/x",
            "/process?",
            "/process?1",
            "/process?-1,2",
            "/transcript?zz",
            "/transcript?7b7d",
        ] {
            assert_eq!(LinkRequest::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn link_lines_of_a_tunnel_are_events_or_replies() {
        let event: TunnelLine<'_> = serde_json::from_str(r#"{"event":{"type":"x"},"later":1}"#).unwrap();
        assert_eq!(event.event.unwrap().get(), r#"{"type":"x"}"#);
        let line: TunnelLine<'_> = serde_json::from_str(r#"{"reply":{"id":3,"status":200,"body":[1, 2]}}"#).unwrap();
        let reply = line.reply.unwrap();
        assert_eq!((reply.id, reply.status, reply.body.map(RawValue::get)), (3, 200, Some("[1, 2]")));
        let line: TunnelLine<'_> = serde_json::from_str(r#"{"reply":{"id":4,"error":"no"}}"#).unwrap();
        let reply = line.reply.unwrap();
        assert_eq!((reply.status, reply.error.as_deref()), (0, Some("no")));
    }

    #[test]
    fn link_messages_of_other_versions_are_read() {
        let hello = r#"{"link":9,"agent":"claude","role":"inbox","id":"x","pid":3,"more":[1]}"#;
        assert_eq!(serde_json::from_str::<HelperHello>(hello).unwrap().role, HelperRole::Inbox);
        assert_eq!(serde_json::from_str::<HelperExit>(r#"{"later":1}"#).unwrap(), HelperExit::default());
    }
}
