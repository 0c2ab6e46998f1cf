//! Recordings of the messages between a runtime and the gateway, with the gateway's commands and results in between.
//!
//! A recording is NDJSON, one [`RecordingEntry`] a line: `{"dir":"out","line":".."}`. `out` is a message of the runtime
//! and `in` one to it; the other directions are those of [`Direction`]. The recorder of a gateway writes recordings,
//! `plexus replay` and the tests read them, and a [`Player`] runs a dialect on one.

mod describe;
mod player;

use serde::{Deserialize, Serialize};

use plexus_protocol::RuntimeSpec;

pub use describe::describe;
pub use player::{Played, Player, frame_line, request_line};

/// One line of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingEntry {
    /// The author or the kind of the line.
    pub dir: Direction,
    /// The number of the HTTP request or client tool call of the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The content, as text.
    pub line: String,
}

/// The author or the kind of a line of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The runtime: a [`RecordingHead`]. It is the first line that a gateway records.
    About,
    /// The connection was opened, and the dialect started its handshake.
    Open,
    /// The state of an earlier gateway process, which was restored.
    Restored,
    /// A command of the gateway: a [`RuntimeCommand`](crate::RuntimeCommand) as JSON.
    Command,
    /// A message to the runtime: a frame, or an HTTP request as `METHOD PATH BODY`.
    In,
    /// A message of the runtime: a frame, or an event of its stream.
    Out,
    /// The reply to an HTTP request as `STATUS BODY`; without a reply the status is 0, followed by the reason. Without
    /// an `id` it belongs to the `in` before it.
    Reply,
    /// The outcome of a client tool call, as JSON.
    Done,
    /// The wake-up that the dialect had requested.
    Wake,
    /// The reason why the connection was lost.
    Lost,
    /// A remark of the recorder.
    Note,
}

impl Direction {
    /// Returns the name in a recording.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::About => "about",
            Self::Open => "open",
            Self::Restored => "restored",
            Self::Command => "command",
            Self::In => "in",
            Self::Out => "out",
            Self::Reply => "reply",
            Self::Done => "done",
            Self::Wake => "wake",
            Self::Lost => "lost",
            Self::Note => "note",
        }
    }
}

/// The content of the first line of a recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordingHead {
    /// The version of the gateway.
    pub plexus: String,
    /// The runtime, without its environment and its secret.
    pub spec: RuntimeSpec,
}

impl RecordingHead {
    /// Makes the head of a recording of this runtime.
    pub fn new(version: &str, spec: &RuntimeSpec) -> Self {
        let spec =
            RuntimeSpec { env: std::collections::BTreeMap::new(), pass_env: Vec::new(), secret: None, ..spec.clone() };
        Self { plexus: version.to_owned(), spec }
    }
}

/// The error for a line of a recording that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The reason why it cannot be used.
    pub reason: String,
}

impl std::fmt::Display for RecordingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for RecordingError {}

impl RecordingEntry {
    /// Makes a line.
    pub fn new(dir: Direction, line: impl Into<String>) -> Self {
        Self { dir, id: None, line: line.into() }
    }

    /// Makes a line about the request or call with this number.
    pub fn about(dir: Direction, id: u64, line: impl Into<String>) -> Self {
        Self { dir, id: Some(id), line: line.into() }
    }

    /// Returns the line of a file, with its line feed.
    pub fn written(&self) -> String {
        // Plain text and numbers always can be written.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

/// Reads a recording. Empty lines are counted and skipped.
///
/// # Errors
/// Returns the first line that is not one of a recording.
pub fn read(text: &str) -> Result<Vec<(usize, RecordingEntry)>, RecordingError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            let entry = serde_json::from_str(line).map_err(|error| RecordingError {
                line: at + 1,
                reason: format!("not a line of a recording: {error}"),
            })?;
            Ok((at + 1, entry))
        })
        .collect()
}

/// Returns the head of a recording that has one.
///
/// # Errors
/// Returns an error for a first line that should be a head and cannot be read as one.
pub fn head(entries: &[(usize, RecordingEntry)]) -> Result<Option<RecordingHead>, RecordingError> {
    let Some((at, entry)) = entries.first().filter(|(_, entry)| entry.dir == Direction::About) else { return Ok(None) };
    let head = serde_json::from_str(&entry.line);
    head.map(Some).map_err(|error| RecordingError { line: *at, reason: format!("not a runtime description: {error}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::{Connect, RuntimeId};

    #[test]
    fn recording_reads_back_and_a_mistake_names_its_line() {
        let entries = vec![
            RecordingEntry::new(Direction::Open, ""),
            RecordingEntry::about(Direction::Reply, 7, "200 {\"a\":\"\\n\"}"),
            RecordingEntry::new(Direction::Out, "no JSON \u{1} at all"),
        ];
        let text: String = entries.iter().map(RecordingEntry::written).collect();
        let back = read(&text).unwrap();
        assert_eq!(back.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(back.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>(), entries);

        let broken = read(&format!("{text}\n{{\"dir\":\"up\",\"line\":\"x\"}}\n")).unwrap_err();
        assert_eq!(broken.line, 5);
        assert!(broken.to_string().starts_with("line 5: not a line of a recording: unknown variant `up`"));
    }

    #[test]
    fn recording_head_has_neither_environment_nor_secret() {
        let connect = Connect::Command(vec!["agent".into()]);
        let mut spec = RuntimeSpec::new(RuntimeId::trusted("a"), "acp", connect, "/w");
        spec.env.insert("API_KEY".into(), "hunter2".into());
        spec.secret = Some("hunter3".into());
        let written = serde_json::to_string(&RecordingHead::new("1", &spec)).unwrap();
        assert!(!written.contains("hunter") && !written.contains("API_KEY"), "{written}");
        let entry = RecordingEntry::new(Direction::About, written);
        assert_eq!(head(&[(1, entry)]).unwrap().unwrap().spec.dialect, "acp");
        assert_eq!(head(&[(1, RecordingEntry::new(Direction::About, "{}"))]).unwrap_err().line, 1);
        assert!(head(&[(1, RecordingEntry::new(Direction::Open, ""))]).unwrap().is_none());
    }
}
