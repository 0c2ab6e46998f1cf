//! Reads the growing transcript of a session. Pure.

use bytes::Bytes;

use crate::terminals::tail::{FileTail, LINE_MAX};
use plexus_dialects::HttpReply;
use plexus_dialects::link::transcript_path;

/// Maximum number of bytes of an old transcript that are shown, from its end.
const HISTORY_MAX: u64 = 8 << 20;

/// The position in a transcript.
#[derive(Default)]
pub(crate) struct TranscriptReader {
    pub(crate) path: String,
    pub(crate) tail: FileTail,
    past: Past,
    /// `true` while a read is in progress.
    reading: bool,
    /// `true` if another read follows.
    read_again: bool,
}

/// The state of reading the part from before the gateway saw the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Past {
    /// There is no such part, or it was read.
    #[default]
    Read,
    /// The length of the transcript is requested. Its end is read if it is shown.
    Measuring {
        visible: bool,
    },
    Reading,
}

/// The outcome of a read.
#[derive(Debug, Default)]
pub(crate) struct TranscriptPart {
    /// Complete lines, each with its position in the file.
    pub(crate) lines: Vec<(u64, Bytes)>,
    /// The message for the user if something is missing.
    pub(crate) gap: Option<String>,
    /// `true` if there may be more to read at once.
    pub(crate) more: bool,
}

impl TranscriptReader {
    /// Sets the path; a different file is read from its beginning.
    pub(crate) fn set_path(&mut self, path: &str) {
        if self.path != path && !self.path.is_empty() {
            self.tail = FileTail::default();
        }
        path.clone_into(&mut self.path);
    }

    /// Begins with a session that no gateway has reported. Its past is shown or left out.
    pub(crate) fn begin(&mut self, show_past: bool) {
        (self.tail, self.past) = (FileTail::default(), Past::Measuring { visible: show_past });
    }

    /// Continues at the position of an earlier gateway process.
    pub(crate) fn restore(&mut self, offset: u64, skipping: bool) {
        self.tail = FileTail { offset, skipping, ..FileTail::default() };
    }

    /// Returns whether the part from before the gateway saw the session is being read, whose turns have ended.
    pub(crate) fn is_past(&self) -> bool {
        self.past != Past::Read
    }

    /// Ends the reading of the past, since everything is read for now. Returns whether the past was being read.
    pub(crate) fn finish_past(&mut self) -> bool {
        std::mem::replace(&mut self.past, Past::Read) != Past::Read
    }

    /// Returns the path of the request for the next part; `None` while one is in progress, which another follows.
    pub(crate) fn next_request(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.reading, true) {
            self.read_again = true;
            return None;
        }
        let offset = if matches!(self.past, Past::Measuring { .. }) { u64::MAX } else { self.tail.offset };
        Some(transcript_path(&self.path, offset, self.tail.part))
    }

    /// Handles the reply to a request.
    pub(crate) fn reply(&mut self, reply: Result<HttpReply, String>) -> TranscriptPart {
        self.reading = false;
        let read_again = std::mem::take(&mut self.read_again);
        let mut part = match (reply, self.past) {
            (Ok(HttpReply { status: 416, body }), Past::Measuring { visible }) => self.measured(length(&body), visible),
            (Ok(HttpReply { status: 200, body }), _) => {
                let part = self.tail.take(&body, LINE_MAX);
                let gap = || format!("a line of the transcript is longer than {LINE_MAX} bytes and is left out");
                TranscriptPart { lines: part.lines, gap: part.left_out.then(gap), more: part.more }
            }
            (Ok(HttpReply { status: 416, body }), _) => {
                self.tail = FileTail { offset: length(&body), ..FileTail::default() };
                let gap = "the transcript was replaced by a shorter one: some messages may be missing";
                TranscriptPart { gap: Some(gap.into()), ..TranscriptPart::default() }
            }
            // The transcript is written with the first message, and may be deleted without one.
            (Ok(HttpReply { status: 404, .. }), _) => {
                self.past = Past::Read;
                TranscriptPart::default()
            }
            (Ok(HttpReply { status, .. }), _) => self.unreadable(&format!("it was answered with {status}")),
            (Err(reason), _) => self.unreadable(&reason),
        };
        part.more |= read_again;
        part
    }

    fn measured(&mut self, length: u64, visible: bool) -> TranscriptPart {
        self.past = Past::Reading;
        self.tail.offset = if visible { length.saturating_sub(HISTORY_MAX) } else { length };
        self.tail.skipping = visible && self.tail.offset > 0;
        let gap = match visible {
            true if self.tail.offset > 0 => Some("older messages of this session are not shown"),
            false if length > 0 => Some("messages from the time when no gateway was running may be missing"),
            _ => None,
        };
        TranscriptPart { gap: gap.map(str::to_owned), more: true, ..TranscriptPart::default() }
    }

    fn unreadable(&mut self, reason: &str) -> TranscriptPart {
        let gap = self.finish_past().then(|| format!("the transcript cannot be read: {reason}"));
        TranscriptPart { gap, ..TranscriptPart::default() }
    }
}

/// Returns the length of a file, from the body of a reply with status 416.
pub(crate) fn length(body: &[u8]) -> u64 {
    std::str::from_utf8(body).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
