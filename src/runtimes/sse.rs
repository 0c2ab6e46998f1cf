//! Reads an event stream (HTML, section 9.2.6 "Interpreting an event stream"), without trust in any length.

use bytes::Bytes;

use super::line_reader::LINE_KEPT;

/// An item of an event stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SseItem {
    /// The data of an event, its lines joined by newlines.
    Data(Bytes),
    /// The data of an event over the limit: its beginning, and the number of dropped bytes.
    Cut {
        /// The beginning.
        head: Bytes,
        /// Number of dropped bytes.
        dropped: u64,
    },
}

/// The state between two reads. Holds one line and one event, each of the limit at most. The fields `event`, `id` and `retry` are
/// ignored, because the data is sufficient for a dialect, and the gateway decides when to reconnect.
pub(super) struct SseReader {
    /// Maximum length of data that is passed on whole, in bytes.
    max: usize,
    line: Vec<u8>,
    /// Number of dropped bytes of the line.
    line_dropped: u64,
    data: Vec<u8>,
    /// Number of dropped bytes of the data.
    data_dropped: u64,
    has_data: bool,
    /// `true` if the last byte was a CR: an LF right after it belongs to it.
    after_cr: bool,
    /// `true` before the end of the first line, which may begin with a byte order mark.
    first: bool,
}

impl SseReader {
    pub(super) fn new(max: usize) -> Self {
        let (line, data) = (Vec::new(), Vec::new());
        Self { max, line, line_dropped: 0, data, data_dropped: 0, has_data: false, after_cr: false, first: true }
    }

    /// Returns the number of bytes held of an incomplete event.
    pub(super) fn held(&self) -> usize {
        self.line.len() + self.data.len()
    }

    /// Processes read bytes, and appends the events that they complete to `told`. An event that the stream's end cuts off is ignored, as
    /// the standard requires.
    pub(super) fn feed(&mut self, mut bytes: &[u8], told: &mut Vec<SseItem>) {
        if let Some((first, rest)) = bytes.split_first()
            && std::mem::take(&mut self.after_cr)
            && *first == b'\n'
        {
            bytes = rest;
        }
        while let Some(at) = memchr::memchr2(b'\r', b'\n', bytes) {
            self.keep(&bytes[..at]);
            let cr = bytes[at] == b'\r';
            bytes = &bytes[at + 1..];
            if cr {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            self.end_of_line(told);
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        // The field's name, its colon and its space are not data.
        let free = (self.max + "data: ".len()).saturating_sub(self.line.len());
        let taken = bytes.len().min(free);
        self.line.extend_from_slice(&bytes[..taken]);
        self.line_dropped += (bytes.len() - taken) as u64;
    }

    fn end_of_line(&mut self, told: &mut Vec<SseItem>) {
        let (line, dropped) = (std::mem::take(&mut self.line), std::mem::take(&mut self.line_dropped));
        let mut rest = line.as_slice();
        if std::mem::take(&mut self.first) {
            rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest);
        }
        if rest.is_empty() {
            self.dispatch(told);
        } else if let Some(value) = rest.strip_prefix(b"data")
            && let Some(value) = if value.is_empty() { Some(value) } else { value.strip_prefix(b":") }
        {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            if std::mem::replace(&mut self.has_data, true) {
                self.add(b"\n");
            }
            self.add(value);
            self.data_dropped += dropped;
        }
        // A comment (a heartbeat), or an ignored field. The line's memory is reused for the next one, unless it was huge.
        if line.capacity() <= LINE_KEPT {
            self.line = line;
            self.line.clear();
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(self.max - self.data.len().min(self.max));
        self.data.extend_from_slice(&bytes[..taken]);
        self.data_dropped += (bytes.len() - taken) as u64;
    }

    fn dispatch(&mut self, told: &mut Vec<SseItem>) {
        let (data, before) = (std::mem::take(&mut self.data), std::mem::take(&mut self.data_dropped));
        if !std::mem::take(&mut self.has_data) || (data.is_empty() && before == 0) {
            return;
        }
        let data = Bytes::from(data);
        if before == 0 {
            return told.push(SseItem::Data(data));
        }
        let head = data.slice(..data.len().min(LINE_KEPT));
        let dropped = before + (data.len() - head.len()) as u64;
        // Not a slice of the data, which would hold all of it.
        told.push(SseItem::Cut { head: Bytes::copy_from_slice(&head), dropped });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the items of a stream that comes in these pieces.
    fn told(max: usize, pieces: &[&[u8]]) -> Vec<String> {
        let (mut sse, mut told) = (SseReader::new(max), Vec::new());
        for piece in pieces {
            sse.feed(piece, &mut told);
        }
        let word = |told: &SseItem| match told {
            SseItem::Data(data) => String::from_utf8_lossy(data).into_owned(),
            SseItem::Cut { head, dropped } => format!("{}…{dropped}", String::from_utf8_lossy(head)),
        };
        told.iter().map(word).collect()
    }

    /// The same, whole, cut in two at every byte, and byte by byte.
    fn always(max: usize, stream: &[u8], expected: &[&str]) {
        assert_eq!(told(max, &[stream]), expected, "whole");
        for at in 0..=stream.len() {
            assert_eq!(told(max, &[&stream[..at], &stream[at..]]), expected, "cut at {at}");
            assert_eq!(told(max, &[&stream[..at], b"", &stream[at..]]), expected, "cut at {at}, and nothing between");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(told(max, &bytes), expected, "byte by byte");
    }

    #[test]
    fn sse_reads_the_examples_of_the_standard() {
        always(99, b"data: YHOO\ndata: +2\ndata: 10\n\n", &["YHOO\n+2\n10"]);
        let stream =
            b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\ndata: cut";
        always(99, stream, &["first event", "second event", " third event"]);
        // The first and the last of these are empty, "\n" is one newline.
        always(99, b"data\n\ndata\ndata\n\ndata:", &["\n"]);
        always(99, b"data:test\n\ndata: test\n\n", &["test", "test"]);
    }

    #[test]
    fn sse_counts_every_end_of_line_once() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = ["data: a", "data: b", "", ": hello", "retry: 10", "event: x", "data: c", "", ""].join(end);
            always(99, stream.as_bytes(), &["a\nb", "c"]);
        }
        always(99, b"data: a\r\ndata: b\n\rdata: c\r\r\n", &["a\nb", "c"]);
    }

    #[test]
    fn sse_ignores_other_fields() {
        always(99, b"\xef\xbb\xbfdata: a\n\nDATA: b\ndatabase: c\n data: d\ndata : e\n\ndata: f\n\n", &["a", "f"]);
    }

    #[test]
    fn sse_cuts_data_over_the_limit_and_goes_on() {
        always(
            4,
            b"data: 123456\n\ndata: 1234\n\ndata: 12\ndata: 34\n\ndata: ok\n\n",
            &["1234…2", "1234", "12\n3…1", "ok"],
        );
        always(4, b": a very long comment\nevent: a very long name\ndata: ok\n\n", &["ok"]);
    }
}
