//! The meaning of a complete escape sequence. Pure.

/// Maximum number of parameters of a control sequence that are read; further ones have no meaning here.
pub(crate) const PARAMETERS_MAX: usize = 16;

/// An escape sequence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sequence<'a> {
    /// A control sequence: `ESC [`.
    Csi {
        /// The `?`, `>`, `=` or `<` before the parameters.
        private: Option<u8>,
        /// The parameters; of a parameter with parts, only the first part.
        parameters: Vec<u16>,
        /// The byte between the parameters and the final byte.
        intermediate: Option<u8>,
        /// The final byte.
        last: u8,
    },
    /// An escape sequence of ESC and one letter, with an optional byte in between.
    Escape {
        /// The byte in between.
        intermediate: Option<u8>,
        /// The final byte.
        last: u8,
    },
    /// A command with its text: `ESC ]`, without the terminator.
    Osc {
        /// The number; `None` if it has none.
        code: Option<u32>,
        /// The text after the semicolon.
        text: &'a [u8],
    },
    /// Another control string: DCS, APC, PM, SOS.
    String,
    /// A sequence that was interrupted.
    Broken,
}

impl<'a> Sequence<'a> {
    /// Parses a sequence as [`Segmenter`](crate::segment::Segmenter) cuts it.
    pub(crate) fn read(bytes: &'a [u8]) -> Self {
        match bytes {
            [0x1b, b'[', rest @ ..] => Self::read_csi(rest),
            [0x1b, b']', rest @ ..] => Self::read_osc(rest),
            [0x1b, b'P' | b'X' | b'^' | b'_', ..] => Self::String,
            [0x1b, rest @ ..] => {
                let mut printed = rest.iter().copied().filter(|byte| (0x20..0x7f).contains(byte));
                match (printed.next(), printed.next_back()) {
                    (Some(last), None) if last >= 0x30 => Self::Escape { intermediate: None, last },
                    (Some(intermediate), Some(last)) => Self::Escape { intermediate: Some(intermediate), last },
                    _ => Self::Broken,
                }
            }
            _ => Self::Broken,
        }
    }

    fn read_csi(bytes: &[u8]) -> Self {
        let (mut private, mut intermediate) = (None, None);
        let mut parameters: Vec<u16> = vec![0];
        // `true` while parts of a parameter follow, of which only the first counts.
        let mut parts = false;
        for byte in bytes.iter().copied() {
            match byte {
                b'0'..=b'9' if !parts => {
                    if let Some(last) = parameters.last_mut() {
                        *last = last.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
                    }
                }
                b';' => {
                    if parameters.len() < PARAMETERS_MAX {
                        parameters.push(0);
                        parts = false;
                    } else {
                        parts = true;
                    }
                }
                b':' => parts = true,
                b'<'..=b'?' => private = Some(byte),
                0x20..=0x2f => intermediate = Some(byte),
                0x40..=0x7e => return Self::Csi { private, parameters, intermediate, last: byte },
                _ => {}
            }
        }
        Self::Broken
    }

    fn read_osc(bytes: &'a [u8]) -> Self {
        let text = bytes.strip_suffix(b"\x1b\\").unwrap_or(bytes);
        let text = text.strip_suffix(&[7]).unwrap_or(text);
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let code = std::str::from_utf8(&text[..digits]).ok().and_then(|digits| digits.parse().ok());
        let text = text[digits..].strip_prefix(b";").unwrap_or(&text[digits..]);
        Self::Osc { code, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_read_by_their_parts() {
        let csi = |private, parameters: &[u16], intermediate, last| Sequence::Csi {
            private,
            parameters: parameters.to_vec(),
            intermediate,
            last,
        };
        let osc = |code, text| Sequence::Osc { code, text };
        #[rustfmt::skip] // a case a line
        let cases: &[(&[u8], Sequence<'_>)] = &[
            (b"\x1b[H", csi(None, &[0], None, b'H')),
            (b"\x1b[2;10r", csi(None, &[2, 10], None, b'r')),
            (b"\x1b[?25;2004h", csi(Some(b'?'), &[25, 2004], None, b'h')),
            (b"\x1b[>1u", csi(Some(b'>'), &[1], None, b'u')),
            (b"\x1b[4:3m", csi(None, &[4], None, b'm')),
            (b"\x1b[5 q", csi(None, &[5], Some(b' '), b'q')),
            (b"\x1b[?2026$p", csi(Some(b'?'), &[2026], Some(b'$'), b'p')),
            (b"\x1b[1\n2H", csi(None, &[12], None, b'H')),
            (b"\x1b[99999m", csi(None, &[65535], None, b'm')),
            (b"\x1b7", Sequence::Escape { intermediate: None, last: b'7' }),
            (b"\x1b(0", Sequence::Escape { intermediate: Some(b'('), last: b'0' }),
            (b"\x1b]2;hi\x07", osc(Some(2), b"hi")),
            (b"\x1b]8;;http://a\x1b\\", osc(Some(8), b";http://a")),
            (b"\x1b]nothing\x07", osc(None, b"nothing")),
            (b"\x1b]99999999999;x\x07", osc(None, b"x")),
            (b"\x1bPq\x1b\\", Sequence::String),
            (b"\x1b_x\x1b\\", Sequence::String),
            (b"\x1b[1\x18", Sequence::Broken),
            (b"\x1b", Sequence::Broken),
            (b"\x1b(", Sequence::Broken),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Sequence::read(bytes), *expected, "{:?}", String::from_utf8_lossy(bytes));
        }
        let many = format!("\x1b[{}m", "1;".repeat(100));
        assert!(matches!(Sequence::read(many.as_bytes()), Sequence::Csi { parameters, .. } if parameters.len() == 16));
    }
}
