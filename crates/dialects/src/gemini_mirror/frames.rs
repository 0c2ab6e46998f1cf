//! Splits a Gemini UI's stream into messages: JSON, each followed by a NUL byte, independent of WebSocket message borders. A WebSocket
//! message that is complete JSON needs no NUL.

use bytes::{Bytes, BytesMut};
use serde_json::value::RawValue;

/// Maximum length of a message that is forwarded in full, in bytes.
pub(super) const FRAME_MAX: usize = 16 * 1024 * 1024;

/// Number of bytes retained of a longer message; the rest is dropped and counted.
const FRAME_STORED_MAX: usize = 64 * 1024;

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A message without its NUL.
    Whole(Bytes),
    /// A message over the limit: its beginning, and the number of dropped bytes.
    Cut(Bytes, u64),
}

/// The unfinished message between two WebSocket messages, at most one message of the limit.
#[derive(Default)]
pub(super) struct FrameReader {
    rest: BytesMut,
    dropped: u64,
}

impl FrameReader {
    /// Adds one WebSocket message, and returns the messages that are now complete.
    pub(super) fn feed(&mut self, mut bytes: Bytes) -> Vec<Frame> {
        let mut frames = Vec::new();
        // With no unfinished message before it, it cannot be the end of one; it cannot be the beginning of one either,
        // since only white space and the NUL may follow a complete object.
        let alone = self.rest.trim_ascii().is_empty() && self.dropped == 0 && bytes.len() <= FRAME_MAX;
        if alone && object(&bytes) {
            self.rest.clear();
            return vec![Frame::Whole(bytes)];
        }
        while let Some(at) = memchr::memchr(0, &bytes) {
            let piece = bytes.split_to(at);
            bytes = bytes.slice(1..);
            if self.rest.is_empty() && piece.len() <= FRAME_MAX {
                frames.push(Frame::Whole(piece));
                continue;
            }
            self.keep(&piece);
            let (rest, dropped) = (std::mem::take(&mut self.rest).freeze(), std::mem::take(&mut self.dropped));
            frames.push(if dropped > 0 { Frame::Cut(rest, dropped) } else { Frame::Whole(rest) });
        }
        self.keep(&bytes);
        // A message of white space only is ignored.
        frames.retain(|frame| !matches!(frame, Frame::Whole(bytes) if bytes.trim_ascii().is_empty()));
        frames
    }

    /// Returns the rest without a NUL, after the end of the stream.
    pub(super) fn finish(&mut self) -> Option<Bytes> {
        self.dropped = 0;
        let rest = std::mem::take(&mut self.rest).freeze();
        (!rest.trim_ascii().is_empty()).then_some(rest)
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.dropped == 0 && self.rest.len() + piece.len() <= FRAME_MAX {
            return self.rest.extend_from_slice(piece);
        }
        let all = self.rest.len() as u64 + piece.len() as u64 + self.dropped;
        let retained = FRAME_STORED_MAX.saturating_sub(self.rest.len()).min(piece.len());
        self.rest.extend_from_slice(&piece[..retained]);
        // The bytes are copied, since a slice would retain the whole buffer.
        self.rest = BytesMut::from(&self.rest[..self.rest.len().min(FRAME_STORED_MAX)]);
        self.dropped = all - self.rest.len() as u64;
    }
}

/// Returns whether the bytes are one complete JSON object.
fn object(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii();
    text.first() == Some(&b'{') && text.last() == Some(&b'}') && serde_json::from_slice::<&RawValue>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]]) -> (Vec<String>, Option<Bytes>) {
        let mut frames = FrameReader::default();
        let mut frames_read = Vec::new();
        for piece in pieces {
            frames_read.extend(frames.feed(Bytes::copy_from_slice(piece)).into_iter().map(|frame| match frame {
                Frame::Whole(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Frame::Cut(head, dropped) => format!("{} and {dropped}", head.len()),
            }));
        }
        (frames_read, frames.finish())
    }

    #[test]
    fn mirror_frames_are_whole_however_they_are_split() {
        let stream = b"{\"a\":1}\0{\"b\":\"\xc3\xa9\"}\0\n\0{}\0{\"half\"";
        let expected = ["{\"a\":1}", "{\"b\":\"\u{e9}\"}", "{}"];
        for at in 0..=stream.len() {
            let (frames_read, rest) = all(&[&stream[..at], b"", &stream[at..]]);
            assert_eq!(frames_read, expected, "cut at {at}");
            assert_eq!(rest.as_deref(), Some(&b"{\"half\""[..]));
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(all(&bytes).0, expected);
    }

    #[test]
    fn mirror_frame_of_whole_json_needs_no_nul() {
        let frames = |pieces: &[&[u8]]| all(pieces);
        assert_eq!(frames(&[b"{\"a\":1}", b" {\"b\":2}\n"]), (vec!["{\"a\":1}".into(), " {\"b\":2}\n".into()], None));
        // With and without NUL, in any order; a lone NUL ends nothing.
        assert_eq!(frames(&[b"{}", b"\0", b"{\"c\":3}\0", b"{}"]).0, ["{}", "{\"c\":3}", "{}"]);
        assert_eq!(frames(&[b"\n", b"{}"]).0, ["{}"]);
        // Text inside a truncated message is not a message, even if it looks complete.
        assert_eq!(frames(&[b"{\"a\":", b"{\"b\":2}", b"}\0"]).0, ["{\"a\":{\"b\":2}}"]);
        // Nor is anything but a complete object.
        assert_eq!(frames(&[b"1", b"2\0"]).0, ["12"]);
        assert_eq!(frames(&[b"{\"a\":\"}", b"\"}\0"]).0, ["{\"a\":\"}\"}"]);
        assert_eq!(frames(&[b"{}{}"]).0, Vec::<String>::new());
    }

    #[test]
    fn mirror_frame_over_the_limit_is_cut_and_the_next_is_whole() {
        let mega = vec![b'x'; 1024 * 1024];
        let mut pieces: Vec<&[u8]> = vec![&mega; 20];
        pieces.push(b"yy\0ok\0");
        let dropped = 20 * 1024 * 1024 + 2 - 64 * 1024;
        assert_eq!(all(&pieces).0, [format!("65536 and {dropped}"), "ok".into()]);
        let whole: Vec<u8> = pieces.concat();
        assert_eq!(all(&[&whole]).0, [format!("65536 and {dropped}"), "ok".into()]);
        let mut exact = vec![b'x'; FRAME_MAX];
        exact.push(0);
        assert_eq!(all(&[&exact]).0[0].len(), FRAME_MAX);
    }
}
