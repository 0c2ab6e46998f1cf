//! The sequences of a program that viewers get, and the answers for a program without an owner's terminal. Pure.
//!
//! A program may ask its terminal for its type and its cursor's position; the answer comes like typed input. Exactly
//! one terminal may answer: the owner's, or, while the owner is not a terminal, the holder. So viewers do not get the
//! question.

use crate::sequence::{PARAMETERS_MAX, Sequence};

/// Maximum length of the address of a link that viewers get, in bytes; a longer one is left out.
const LINK_MAX: usize = 2048;

/// A question of a program to its terminal that the holder answers while no terminal of a user is the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// The question whether the terminal works.
    Status,
    /// The position of its cursor.
    Cursor,
    /// The position of its cursor, in the form with `?`.
    CursorPrivate,
    /// The kind of the terminal.
    Attributes,
    /// The version.
    AttributesSecondary,
}

impl Query {
    /// Returns the question of a sequence, if it is one of these.
    pub(crate) fn parse(sequence: &Sequence<'_>) -> Option<Self> {
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

    /// Returns the answer; the cursor's row and column count from 1.
    pub(crate) fn answer(self, (row, column): (u16, u16)) -> String {
        match self {
            Self::Status => "\x1b[0n".into(),
            Self::Cursor => format!("\x1b[{row};{column}R"),
            Self::CursorPrivate => format!("\x1b[?{row};{column}R"),
            // A VT220 with colors, as many terminals report.
            Self::Attributes => "\x1b[?62;22c".into(),
            Self::AttributesSecondary => "\x1b[>1;10;0c".into(),
        }
    }
}

/// Modes (`CSI n h`, `CSI n l`) that viewers get: insertion, and a line feed that returns. Other modes stay as the
/// viewer's terminal has them, since some lock the keyboard or echo it.
const MODES: [u16; 2] = [4, 20];

/// Private modes (`CSI ? n h`, `CSI ? n l`) that viewers get: the reports of keys and the mouse, the look of the
/// cursor, the screen, and the placement of text on it. Other modes stay as the viewer's terminal has them: some make a
/// terminal report something, change its window, or parse later output by other rules.
const PRIVATE_MODES: [u16; 34] = [
    1, 4, 5, 6, 7, 8, 9, 12, 25, 45, 47, 66, 67, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 1034, 1035,
    1036, 1039, 1045, 1047, 1048, 1049, 2004, 2026, 2027,
];

/// Returns whether viewers get a private mode.
pub(crate) fn is_mode_allowed(mode: u16) -> bool {
    PRIVATE_MODES.contains(&mode)
}

/// Returns whether viewers get a sequence: it is known to draw, move, or set a mode. None is that makes a terminal answer, print, notify,
/// write to a clipboard or change its window; of links only those to pages.
pub(crate) fn is_allowed(sequence: &Sequence<'_>) -> bool {
    match sequence {
        Sequence::Csi { private, parameters, intermediate, last } => {
            is_control_allowed(*private, parameters, *intermediate, *last)
        }
        Sequence::Escape { intermediate: None, last } => {
            matches!(last, b'6'..=b'9' | b'=' | b'>' | b'D' | b'E' | b'H' | b'M' | b'N' | b'O' | b'c' | b'n' | b'o' | b'|'..=b'~')
        }
        // UTF-8 is the only coding: in others, bytes of characters are control characters.
        Sequence::Escape { intermediate: Some(b'%'), last } => *last == b'G',
        Sequence::Escape { intermediate: Some(between), .. } => matches!(between, b'(' | b')' | b'*' | b'+' | b'#'),
        Sequence::Osc { code: Some(0..=2), .. } => true,
        Sequence::Osc { code: Some(8), text } => link_is_safe(text),
        Sequence::Osc { .. } | Sequence::String => false,
        Sequence::Broken => false,
    }
}

/// Returns whether viewers get a control sequence.
fn is_control_allowed(private: Option<u8>, parameters: &[u16], intermediate: Option<u8>, last: u8) -> bool {
    // Modes above the limit are not read and may be any.
    let are_all_set =
        |known: &[u16]| parameters.len() < PARAMETERS_MAX && parameters.iter().all(|mode| known.contains(mode));
    match (private, intermediate, last) {
        // The cursor, characters and lines, tabs, attributes, the scroll region, and the saved cursor and modes.
        (
            None,
            None,
            b'@'..=b'M' | b'P' | b'S' | b'X' | b'Z' | b'`' | b'a' | b'b' | b'd'..=b'g' | b'm' | b'r' | b's' | b'u',
        ) => true,
        // With more parameters, a terminal waits for the program to set the area of the mouse.
        (None, None, b'T') => parameters.len() == 1,
        (None, None, b'h' | b'l') => are_all_set(&MODES),
        (Some(b'?'), None, b'J' | b'K') => true,
        (Some(b'?'), None, b'h' | b'l' | b's' | b'r') => are_all_set(&PRIVATE_MODES),
        // The reports of keys.
        (Some(b'>'), None, b'm' | b'u') | (Some(b'<' | b'='), None, b'u') => true,
        // The style of the cursor, and a soft reset.
        (None, Some(b' '), b'q') | (None, Some(b'!'), b'p') => true,
        _ => false,
    }
}

/// Returns whether a link (`PARAMETERS;ADDRESS`) is one to a page, or ends one.
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
        let is_shown = |text: &str| is_allowed(&Sequence::read(text.as_bytes()));
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
            "\x1b[T",
            "\x1b[4h",
            "\x1b[?1;25;2004h",
            "\x1b[?2026l",
            "\x1b[?1049s",
            "\x1b[?2K",
            "\x1b[=5;1u",
            "\x1b[38:2::1:2:3m",
            "\x1b%G",
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
            // They set what keys send, and ask for it.
            "\x1b[?4m",
            // Graphics, and the mouse as a program tracks it.
            "\x1b[?2;1;0S",
            "\x1b[1;1;1;5;10T",
            // A locked keyboard, the window's size and title, reports of size, and another terminal.
            "\x1b[2h",
            "\x1b[?40h",
            "\x1b[?2048h",
            "\x1b[?2031;25h",
            "\x1b[?1001h",
            "\x1b[?2l",
            "\x1b[?996;1r",
            "\x1b[>2T",
            "\x1b[1;2;3v",
            "\x1b%@",
            "\x1b[?1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;2048h",
        ] {
            assert!(!is_shown(acting), "{acting:?}");
        }
    }

    #[test]
    fn control_sequences_that_are_not_listed_are_never_shown() {
        let drawing = "@ABCDEFGHIJKLMPSXZ`abdefgmrsuT";
        for private in ["", "?", ">", "=", "<"] {
            for between in ["", " ", "!", "\"", "#", "$", "%", "&", "'", "(", "*", "+", ",", "-", ".", "/"] {
                for last in '@'..='~' {
                    let text = format!("\x1b[{private}9999{between}{last}");
                    let is_listed = match (private, between, last) {
                        ("", "", last) => drawing.contains(last),
                        ("?", "", last) => "JK".contains(last),
                        (">", "", last) => "mu".contains(last),
                        ("=" | "<", "", last) => last == 'u',
                        ("", " ", last) => last == 'q',
                        ("", "!", last) => last == 'p',
                        _ => false,
                    };
                    assert_eq!(is_allowed(&Sequence::read(text.as_bytes())), is_listed, "{text:?}");
                }
            }
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
            assert_eq!(Query::parse(&sequence), Some(query), "{text:?}");
            assert_eq!(query.answer((3, 4)), answer);
            assert!(!is_allowed(&sequence), "{text:?}");
        }
        for text in ["\x1b[H", "\x1b[1c", "\x1b[7n", "\x1b]10;?\x07"] {
            assert_eq!(Query::parse(&Sequence::read(text.as_bytes())), None, "{text:?}");
        }
    }
}
