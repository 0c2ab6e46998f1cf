//! Recordings: what a runtime and the gateway said to each other, and what the gateway was asked meanwhile.
//!
//! A recording is NDJSON, one [`RecordingEntry`] a line: `{"dir":"out","line":".."}`. `out` is what the runtime said and
//! `in` what it was told; the other directions are those of [`Direction`]. The recorder of a gateway writes them, `plexus
//! replay` and the tests read them, and a [`Player`] has a dialect go through one.

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
    /// The number of the HTTP request or client tool call that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The content, as text.
    pub line: String,
}

/// The author or the kind of a line of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The runtime that it is of: a [`RecordingHead`]. The first line of what a gateway records.
    About,
    /// The connection was open: the dialect said hello.
    Open,
    /// An earlier gateway's state was taken over: the state.
    Restored,
    /// A command of the gateway: a [`RuntimeCommand`](crate::RuntimeCommand) as JSON.
    Command,
    /// A message to the runtime: a frame, or an HTTP request as `METHOD PATH BODY`.
    In,
    /// A message of the runtime: a frame, or an event of its stream.
    Out,
    /// The reply to an HTTP request as `STATUS BODY`; the status 0 and why where there was none. Without an `id` it is
    /// to the `in` before it.
    Reply,
    /// The outcome of a client tool call, as JSON.
    Done,
    /// The time that the dialect had asked for was over.
    Wake,
    /// The connection was lost: why.
    Lost,
    /// Words of the recorder.
    Note,
}

impl Direction {
    /// The name in a recording.
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
    /// The head of a recording of this runtime.
    pub fn new(version: &str, spec: &RuntimeSpec) -> Self {
        let spec =
            RuntimeSpec { env: std::collections::BTreeMap::new(), pass_env: Vec::new(), secret: None, ..spec.clone() };
        Self { plexus: version.to_owned(), spec }
    }
}

/// A line of a recording that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The fault of the line.
    pub why: String,
}

impl std::fmt::Display for RecordingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for RecordingError {}

impl RecordingEntry {
    /// A line.
    pub fn new(dir: Direction, line: impl Into<String>) -> Self {
        Self { dir, id: None, line: line.into() }
    }

    /// A line about the request or call with this number.
    pub fn about(dir: Direction, id: u64, line: impl Into<String>) -> Self {
        Self { dir, id: Some(id), line: line.into() }
    }

    /// As a line of a file, with its end.
    pub fn written(&self) -> String {
        // Plain text and numbers always can be written.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

/// Reads a recording. Empty lines count and say nothing.
///
/// # Errors
/// The first line that is none of a recording.
pub fn read(text: &str) -> Result<Vec<(usize, RecordingEntry)>, RecordingError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            let entry = serde_json::from_str(line)
                .map_err(|error| RecordingError { line: at + 1, why: format!("not a line of a recording: {error}") })?;
            Ok((at + 1, entry))
        })
        .collect()
}

/// The head of a recording that has one.
///
/// # Errors
/// The line that should be one and is not.
pub fn head(entries: &[(usize, RecordingEntry)]) -> Result<Option<RecordingHead>, RecordingError> {
    let Some((at, entry)) = entries.first().filter(|(_, entry)| entry.dir == Direction::About) else { return Ok(None) };
    let head = serde_json::from_str(&entry.line);
    head.map(Some).map_err(|error| RecordingError { line: *at, why: format!("not a runtime description: {error}") })
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
