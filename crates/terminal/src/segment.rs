//! Cuts a program's output into text and complete escape sequences, at points where a terminal's parser is idle. The
//! states are those of the parser of `vt100`. Pure.

/// Maximum length of a control sequence, in bytes; a longer one is left out.
const SEQUENCE_MAX: usize = 4 * 1024;

/// Maximum length of a control string (a title, a link, an image), in bytes; a longer one is left out of the stored
/// state and of the output for viewers. The owner's terminal gets it unchanged.
pub const STRING_MAX: usize = 256 * 1024;

const ESC: u8 = 0x1b;

/// A piece of output after which a terminal's parser is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Characters and single control characters, no ESC.
    Text(&'a [u8]),
    /// One escape sequence, including its ESC and its end. One that was interrupted by another has no end.
    Sequence(&'a [u8]),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    EscapeIntermediate,
    Csi,
    /// A control string, of the kind that this letter begins.
    String(u8),
    /// An ESC in such a string: its end, or the beginning of the next sequence.
    StringEscape(u8),
}

/// Cuts a stream of output, independent of the borders of its parts.
#[derive(Clone, Debug, Default)]
pub struct Segmenter {
    state: State,
    /// The part of a piece that is not complete yet.
    held: Vec<u8>,
    /// `true` if the piece is too long, and only its end is searched.
    skipping: bool,
}

impl Segmenter {
    /// Adds the next bytes; `each` is called with every complete piece.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(Piece<'_>)) {
        let mut at = 0;
        while at < bytes.len() {
            if self.state != State::Ground {
                self.step(bytes[at], &mut each);
                at += 1;
            } else if self.held.is_empty() {
                let end = memchr::memchr(ESC, &bytes[at..]).map_or(bytes.len(), |esc| at + esc);
                let text = &bytes[at..end];
                // Only at the end of the bytes may a character wait for its remaining bytes.
                let whole = if end == bytes.len() { text.len() - incomplete(text) } else { text.len() };
                if whole > 0 {
                    each(Piece::Text(&text[..whole]));
                }
                self.held.extend_from_slice(&text[whole..]);
                at = end;
                if at < bytes.len() {
                    self.begin();
                    at += 1;
                }
            } else {
                at += self.character(bytes[at], &mut each);
            }
        }
    }

    /// Returns the bytes that a terminal must get, after a snapshot of everything before them, so that it parses later output correctly.
    pub fn tail(&self) -> Vec<u8> {
        match self.state {
            // The rest of a string whose beginning is not stored becomes a string that terminals ignore.
            State::String(_) if self.skipping => b"\x1b_".to_vec(),
            State::StringEscape(_) if self.skipping => vec![ESC],
            _ => self.held.clone(),
        }
    }

    /// Handles a byte after an incomplete character; returns the number of bytes that were consumed (0 or 1).
    fn character(&mut self, byte: u8, each: &mut impl FnMut(Piece<'_>)) -> usize {
        self.held.push(byte);
        match std::str::from_utf8(&self.held) {
            Ok(_) => {
                each(Piece::Text(&self.held));
                self.held.clear();
                1
            }
            Err(why) if why.error_len().is_none() => 1,
            Err(_) => {
                // The byte interrupts the character, and is parsed again.
                self.held.pop();
                each(Piece::Text(&self.held));
                self.held.clear();
                0
            }
        }
    }

    /// Begins a sequence after ESC.
    fn begin(&mut self) {
        self.held.clear();
        self.held.push(ESC);
        self.skipping = false;
        self.state = State::Escape;
    }

    fn hold(&mut self, byte: u8, max: usize) {
        if self.skipping {
            return;
        }
        if self.held.len() >= max {
            self.held.clear();
            self.skipping = true;
            return;
        }
        self.held.push(byte);
    }

    /// Ends a complete sequence.
    fn end(&mut self, each: &mut impl FnMut(Piece<'_>)) {
        if !self.skipping {
            each(Piece::Sequence(&self.held));
        }
        self.held.clear();
        self.skipping = false;
        self.state = State::Ground;
    }

    /// Handles a byte within a sequence.
    fn step(&mut self, byte: u8, each: &mut impl FnMut(Piece<'_>)) {
        match (self.state, byte) {
            (State::StringEscape(_), b'\\') => {
                self.hold(byte, STRING_MAX + 2);
                self.end(each);
            }
            // The string ended at ESC, with which another sequence began.
            (State::StringEscape(_), _) => {
                if !self.skipping {
                    let string = &self.held[..self.held.len() - 1];
                    each(Piece::Sequence(string));
                }
                self.begin();
                self.step(byte, each);
            }
            (State::String(kind), ESC) => {
                self.hold(ESC, STRING_MAX + 1);
                self.state = State::StringEscape(kind);
            }
            (_, ESC) => {
                // The sequence was interrupted: the part executed so far counts.
                if !self.skipping {
                    each(Piece::Sequence(&self.held));
                }
                self.begin();
            }
            // CAN and SUB end every sequence.
            (_, 0x18 | 0x1a) | (State::String(b']'), 0x07) | (State::String(b'P'), 0x9c) => {
                self.hold(byte, STRING_MAX + 1);
                self.end(each);
            }
            (State::String(_), _) => self.hold(byte, STRING_MAX),
            _ => self.step_control(byte, each),
        }
    }

    /// Handles a byte within a sequence that is not a string.
    fn step_control(&mut self, byte: u8, each: &mut impl FnMut(Piece<'_>)) {
        self.hold(byte, SEQUENCE_MAX);
        match (self.state, byte) {
            (State::Escape, b'[') => self.state = State::Csi,
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => self.state = State::String(byte),
            (State::Escape, 0x20..=0x2f) => self.state = State::EscapeIntermediate,
            (State::Escape | State::EscapeIntermediate, 0x30..=0x7e) | (State::Csi, 0x40..=0x7e) => self.end(each),
            // Parameters, control characters that are executed at once, and bytes without a meaning.
            _ => {}
        }
    }
}

/// Returns the number of bytes at the end of a text that are an incomplete character.
pub(crate) fn incomplete(text: &[u8]) -> usize {
    let tail = &text[text.len().saturating_sub(3)..];
    (1..=tail.len())
        .find(|count| {
            let end = &tail[tail.len() - count..];
            matches!(std::str::from_utf8(end), Err(why) if why.valid_up_to() == 0 && why.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(chunks: &[&[u8]]) -> (Vec<(bool, Vec<u8>)>, Vec<u8>) {
        let mut segmenter = Segmenter::default();
        let mut all = Vec::new();
        for chunk in chunks {
            segmenter.push(chunk, |piece| {
                all.push(match piece {
                    Piece::Text(text) => (false, text.to_vec()),
                    Piece::Sequence(sequence) => (true, sequence.to_vec()),
                });
            });
        }
        (all, segmenter.tail())
    }

    #[test]
    fn output_is_cut_into_text_and_whole_sequences() {
        type Pieces<'a> = &'a [(bool, &'a [u8])];
        #[rustfmt::skip] // a case a line
        let cases: &[(&[u8], Pieces<'_>, &[u8])] = &[
            (b"plain\r\n", &[(false, b"plain\r\n")], b""),
            (b"a\x1b[1;31mb", &[(false, b"a"), (true, b"\x1b[1;31m"), (false, b"b")], b""),
            (b"a\x1b[1;3", &[(false, b"a")], b"\x1b[1;3"),
            (b"\x1b(0x", &[(true, b"\x1b(0"), (false, b"x")], b""),
            (b"\x1b]0;t\x07x", &[(true, b"\x1b]0;t\x07"), (false, b"x")], b""),
            (b"\x1b]0;t\x1b\\x", &[(true, b"\x1b]0;t\x1b\\"), (false, b"x")], b""),
            (b"\x1b]0;t\x1b", &[], b"\x1b]0;t\x1b"),
            (b"\x1b]0;t\x1b[m", &[(true, b"\x1b]0;t"), (true, b"\x1b[m")], b""),
            (b"\x1bPq#0\x07\x1b\\", &[(true, b"\x1bPq#0\x07\x1b\\")], b""),
            (b"\x1b_x\x07y\x1b\\", &[(true, b"\x1b_x\x07y\x1b\\")], b""),
            (b"\x1b[1\x182", &[(true, b"\x1b[1\x18"), (false, b"2")], b""),
            (b"\x1b[1\x1b[2m", &[(true, b"\x1b[1"), (true, b"\x1b[2m")], b""),
            (b"\x1b[1\n2H", &[(true, b"\x1b[1\n2H")], b""),
            ("aé".as_bytes(), &[(false, "aé".as_bytes())], b""),
            (b"a\xc3", &[(false, b"a")], b"\xc3"),
            (b"\xf0\x9f\x98", &[], b"\xf0\x9f\x98"),
            (b"\xc3\x1b[m", &[(false, b"\xc3"), (true, b"\x1b[m")], b""),
            (b"\xff\xfe", &[(false, b"\xff\xfe")], b""),
        ];
        for (bytes, expected, tail) in cases {
            let (all, held) = pieces(&[bytes]);
            let expected: Vec<_> = expected.iter().map(|(sequence, bytes)| (*sequence, bytes.to_vec())).collect();
            assert_eq!((all, &held[..]), (expected, *tail), "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn string_that_is_too_long_is_left_out_whole() {
        let long = [b"a\x1b]52;c;".as_slice(), &vec![b'x'; STRING_MAX + 10], b"\x07b"].concat();
        let (all, tail) = pieces(&[&long]);
        assert_eq!((all, tail.len()), (vec![(false, b"a".to_vec()), (false, b"b".to_vec())], 0));
        let (_, tail) = pieces(&[&long[..long.len() - 3]]);
        assert_eq!(tail, b"\x1b_", "the rest is a string that is ignored");
    }

    proptest! {
        #[test]
        fn output_is_the_same_however_it_is_split(
            bytes in proptest::collection::vec(prop_oneof![
                Just(0x1bu8), Just(b'['), Just(b']'), Just(b'\\'), Just(7), Just(0x18), Just(b'm'), Just(b';'), Just(0xc3), Just(0xa9), any::<u8>()
            ], 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let join = |(all, tail): (Vec<(bool, Vec<u8>)>, Vec<u8>)| {
                let mut joined: Vec<(bool, Vec<u8>)> = Vec::new();
                for (sequence, piece) in all {
                    match joined.last_mut() {
                        Some((false, last)) if !sequence => last.extend(piece),
                        _ => joined.push((sequence, piece)),
                    }
                }
                (joined, tail)
            };
            let whole = join(pieces(&[&bytes]));
            let text: Vec<u8> = whole.0.iter().flat_map(|(_, piece)| piece.clone()).chain(whole.1.clone()).collect();
            prop_assert_eq!(text, bytes.clone(), "nothing is lost");
            prop_assert_eq!(whole, join(pieces(&chunks)));
        }
    }
}
