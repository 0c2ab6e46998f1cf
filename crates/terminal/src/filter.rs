//! What viewers get of a program's sequences, and the answers of a terminal that nobody sits at. Pure.
//!
//! A program may ask its terminal what it is and where its cursor stands; the answer comes as if it were typed. Exactly one terminal may
//! answer: the owner's, or, while the owner is none, the holder. So viewers are not shown the question.

use crate::sequence::Sequence;

/// Longest address of a link that viewers get, in bytes; a longer one is left out.
const LINK_MAX: usize = 2048;

/// A question of a program to its terminal that the holder answers while no terminal of a person is the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// Whether it works.
    Status,
    /// Where its cursor stands.
    Cursor,
    /// The same, in the form with `?`.
    CursorPrivate,
    /// What it is.
    Attributes,
    /// Its version.
    AttributesSecondary,
}

impl Query {
    /// The question that a sequence asks, if it is one of these.
    pub(crate) fn of(sequence: &Sequence<'_>) -> Option<Self> {
        let Sequence::Csi { private, parameters, intermediate: None, last } = sequence else { return None };
        match (private, parameters.as_slice(), last) {
            (None, [5], b'n') => Some(Self::Status),
            (None, [6], b'n') => Some(Self::Cursor),
            (Some(b'?'), [6], b'n') => Some(Self::CursorPrivate),
            (None, [0], b'c') => Some(Self::Attributes),
            (Some(b'>'), [0], b'c') => Some(Self::AttributesSecondary),
            _ => None,
        }
    }

    /// The answer; the cursor's row and column count from 1.
    pub(crate) fn answer(self, (row, column): (u16, u16)) -> String {
        match self {
            Self::Status => "\x1b[0n".into(),
            Self::Cursor => format!("\x1b[{row};{column}R"),
            Self::CursorPrivate => format!("\x1b[?{row};{column}R"),
            // A VT220 with colours, as many terminals say.
            Self::Attributes => "\x1b[?62;22c".into(),
            Self::AttributesSecondary => "\x1b[>1;10;0c".into(),
        }
    }
}

/// Whether viewers get a sequence: it draws, moves, or sets a mode. None that makes a terminal answer, print, notify, write to a
/// clipboard or change its window; of links only those to pages.
pub(crate) fn shown(sequence: &Sequence<'_>) -> bool {
    match sequence {
        Sequence::Csi { private, intermediate, last, .. } => match (private, intermediate, last) {
            // Requests for reports, and window operations.
            (_, _, b'c' | b'n' | b't' | b'x' | b'i') | (Some(b'?'), None, b'u') => false,
            // Of those with an intermediate: the cursor's style, and a soft reset.
            (_, Some(between), last) => matches!((between, last), (b' ', b'q') | (b'!', b'p')),
            (Some(b'>'), None, b'q') => false,
            _ => true,
        },
        Sequence::Escape { intermediate, last } => match intermediate {
            None => *last != b'Z',
            Some(between) => matches!(between, b'(' | b')' | b'*' | b'+' | b'#' | b'%'),
        },
        Sequence::Osc { code: Some(0..=2), .. } => true,
        Sequence::Osc { code: Some(8), text } => link_is_safe(text),
        Sequence::Osc { .. } | Sequence::String => false,
        Sequence::Broken => false,
    }
}

/// Whether a link (`PARAMETERS;ADDRESS`) leads to a page, or ends one.
fn link_is_safe(text: &[u8]) -> bool {
    let Some(at) = text.iter().position(|byte| *byte == b';') else { return false };
    let address = &text[at + 1..];
    let is_page = |scheme: &[u8]| address.len() > scheme.len() && address[..scheme.len()].eq_ignore_ascii_case(scheme);
    text.len() <= LINK_MAX && (address.is_empty() || is_page(b"https://") || is_page(b"http://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_get_what_draws_and_nothing_that_acts() {
        let is_shown = |text: &str| shown(&Sequence::read(text.as_bytes()));
        for drawn in [
            "\x1b[H",
            "\x1b[2J",
            "\x1b[1;31m",
            "\x1b[?1049h",
            "\x1b[?2004h",
            "\x1b[>4;1m",
            "\x1b[>1u",
            "\x1b[<u",
            "\x1b[5 q",
            "\x1b[!p",
            "\x1b7",
            "\x1bM",
            "\x1b(0",
            "\x1b#8",
            "\x1b]0;title\x07",
            "\x1b]2;t\x1b\\",
            "\x1b]8;;https://a.example\x07",
            "\x1b]8;id=1;http://a\x07",
            "\x1b]8;;\x07",
            "\x1b[3;4r",
            "\x1b[u",
        ] {
            assert!(is_shown(drawn), "{drawn:?}");
        }
        for acting in [
            "\x1b[c",
            "\x1b[>c",
            "\x1b[=c",
            "\x1b[5n",
            "\x1b[6n",
            "\x1b[?6n",
            "\x1b[?996n",
            "\x1b[18t",
            "\x1b[8;9;9t",
            "\x1b[x",
            "\x1b[?u",
            "\x1b[>q",
            "\x1b[?2026$p",
            "\x1b[1$p",
            "\x1b[5i",
            "\x1bZ",
            "\x1b[1;1;1;1;1;1*y",
            "\x1b]52;c;aGk=\x07",
            "\x1b]52;c;?\x07",
            "\x1b]10;?\x07",
            "\x1b]4;1;?\x07",
            "\x1b]9;note\x07",
            "\x1b]777;notify;a;b\x07",
            "\x1b]1337;File=:x\x07",
            "\x1b]8;;javascript:alert(1)\x07",
            "\x1b]8;;file:///etc\x07",
            "\x1bP$qm\x1b\\",
            "\x1bP+q544e\x1b\\",
            "\x1bPq\x1b\\",
            "\x1b_Ga=q\x1b\\",
            "\x1b^x\x1b\\",
            "\x1b[1\x18",
        ] {
            assert!(!is_shown(acting), "{acting:?}");
        }
    }

    #[test]
    fn questions_are_known_and_never_shown() {
        #[rustfmt::skip] // a case a line
        let cases = [
            ("\x1b[5n", Query::Status, "\x1b[0n"),
            ("\x1b[6n", Query::Cursor, "\x1b[3;4R"),
            ("\x1b[?6n", Query::CursorPrivate, "\x1b[?3;4R"),
            ("\x1b[c", Query::Attributes, "\x1b[?62;22c"),
            ("\x1b[0c", Query::Attributes, "\x1b[?62;22c"),
            ("\x1b[>c", Query::AttributesSecondary, "\x1b[>1;10;0c"),
        ];
        for (text, query, answer) in cases {
            let sequence = Sequence::read(text.as_bytes());
            assert_eq!(Query::of(&sequence), Some(query), "{text:?}");
            assert_eq!(query.answer((3, 4)), answer);
            assert!(!shown(&sequence), "{text:?}");
        }
        for text in ["\x1b[H", "\x1b[1c", "\x1b[7n", "\x1b]10;?\x07"] {
            assert_eq!(Query::of(&Sequence::read(text.as_bytes())), None, "{text:?}");
        }
    }
}
