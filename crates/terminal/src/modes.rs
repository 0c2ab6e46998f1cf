//! The modes that a program has set on its terminal, which are set on a terminal that joins, and reset on one that leaves. Pure.

use std::fmt::Write as _;

use crate::filter::is_mode_allowed;
use crate::segment::{Piece, Segmenter};
use crate::sequence::Sequence;

/// Maximum number of stored modes of a program; further ones are ignored.
const MODES_MAX: usize = 64;

/// Maximum depth of the stored stack of keyboard modes, as in terminals.
const KEYBOARD_MAX: usize = 16;

/// Maximum length of a title, in characters; the rest is left out.
pub const TITLE_MAX: usize = 200;

/// Modes of the screen itself (132 columns, origin, the cursor, the alternate screen, synchronized drawing), which a
/// snapshot sets in another way.
const SCREEN: [u16; 8] = [3, 6, 25, 47, 1047, 1048, 1049, 2026];

/// Modes of which only one is set at a time: the events that the mouse reports, and their form.
const EXCLUSIVE: [&[u16]; 2] = [&[9, 1000, 1001, 1002, 1003], &[1005, 1006, 1015, 1016]];

/// Modes that a terminal has set from the beginning: wrapping, and repeated keys.
const INITIALLY_SET: [u16; 2] = [7, 8];

/// The modes that a program has set.
#[derive(Clone, Debug, Default)]
pub struct Modes {
    /// Private modes and whether they are set, in the order in which they were changed last.
    private: Vec<(u16, bool)>,
    keypad: bool,
    /// The character sets that G0 and G1 designate; 0 is the terminal's own.
    charsets: [u8; 2],
    /// `true` if G1 is in use.
    shifted: bool,
    /// The stacks of keyboard modes, of the main and of the alternate screen.
    keyboard: [Vec<u16>; 2],
    modify_keys: Option<u16>,
    cursor_style: Option<u16>,
    alternate: bool,
    cursor_hidden: bool,
    /// `true` if a scroll region was set, colors were changed, a link is open, drawing is held back, or attributes were set.
    region: bool,
    colours: bool,
    link: bool,
    synchronized: bool,
    attributes: bool,
    title: String,
}

impl Modes {
    /// Returns the title, which is safe to print.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns whether the alternate screen is shown.
    pub fn is_alternate(&self) -> bool {
        self.alternate
    }

    /// Returns whether the characters in use are those for line drawing.
    pub(crate) fn draws_lines(&self) -> bool {
        self.charsets[usize::from(self.shifted)] == b'0'
    }

    /// Returns whether a character set in use, or one that can be shifted to, is the one for line drawing.
    pub(crate) fn has_line_set(&self) -> bool {
        self.charsets.contains(&b'0')
    }

    /// Handles SO or SI.
    pub(crate) fn shift(&mut self, shifted: bool) {
        self.shifted = shifted;
    }

    /// Handles a sequence.
    pub(crate) fn track(&mut self, sequence: &Sequence<'_>) {
        match sequence {
            Sequence::Csi { private, parameters, intermediate, last } => {
                self.track_csi(*private, parameters, *intermediate, *last);
            }
            Sequence::Escape { intermediate: None, last: b'=' } => self.keypad = true,
            Sequence::Escape { intermediate: None, last: b'>' } => self.keypad = false,
            Sequence::Escape { intermediate: None, last: b'c' } => {
                *self = Self { title: std::mem::take(&mut self.title), ..Self::default() };
            }
            Sequence::Escape { intermediate: Some(b'('), last } => self.charsets[0] = *last,
            Sequence::Escape { intermediate: Some(b')'), last } => self.charsets[1] = *last,
            Sequence::Osc { code: Some(0 | 2), text } => {
                self.title = plexus_protocol::text::line(&String::from_utf8_lossy(text), TITLE_MAX);
            }
            Sequence::Osc { code: Some(8), text } => self.link = !text.ends_with(b";"),
            Sequence::Osc { code: Some(104 | 110..=119), .. } => self.colours = false,
            Sequence::Osc { code: Some(4 | 10..=19), text } => self.colours |= !text.ends_with(b"?"),
            _ => {}
        }
    }

    fn track_csi(&mut self, private: Option<u8>, parameters: &[u16], intermediate: Option<u8>, last: u8) {
        let first = parameters.first().copied().unwrap_or_default();
        let stack = &mut self.keyboard[usize::from(self.alternate)];
        match (private, intermediate, last) {
            (Some(b'?'), None, b'h' | b'l') => parameters.iter().for_each(|mode| self.set(*mode, last == b'h')),
            (None, Some(b' '), b'q') => self.cursor_style = Some(first).filter(|style| *style != 0),
            (None, None, b'r') => self.region = parameters.iter().any(|edge| *edge != 0),
            (None, None, b'm') => self.attributes = parameters != [0],
            (Some(b'>'), None, b'm') if first == 4 => {
                self.modify_keys = parameters.get(1).copied().filter(|level| *level != 0);
            }
            (Some(b'>'), None, b'u') if stack.len() < KEYBOARD_MAX => stack.push(first),
            (Some(b'<'), None, b'u') => stack.truncate(stack.len().saturating_sub(usize::from(first.max(1)))),
            (Some(b'='), None, b'u') => {
                let value = parameters.get(1).copied().unwrap_or(1);
                if stack.is_empty() {
                    stack.push(0);
                }
                if let Some(flags) = stack.last_mut() {
                    *flags = match value {
                        2 => *flags | first,
                        3 => *flags & !first,
                        _ => first,
                    };
                }
            }
            _ => {}
        }
    }

    fn set(&mut self, mode: u16, on: bool) {
        match mode {
            47 | 1047 | 1049 => self.alternate = on,
            25 => self.cursor_hidden = !on,
            2026 => self.synchronized = on,
            _ => {}
        }
        if SCREEN.contains(&mode) {
            return;
        }
        if let Some(group) = EXCLUSIVE.iter().find(|group| group.contains(&mode)) {
            let current = self.private.iter().find(|(known, _)| group.contains(known)).map(|(known, _)| *known);
            if !on && current != Some(mode) {
                return;
            }
            self.private.retain(|(known, _)| !group.contains(known));
            if !on {
                return;
            }
        }
        self.private.retain(|(known, _)| *known != mode);
        if self.private.len() < MODES_MAX {
            self.private.push((mode, on));
        }
    }

    /// Writes the sequences that set the modes on a terminal without modes, except those that viewers do not get; of
    /// the alternate screen only its own modes.
    pub(crate) fn write_shared(&self, out: &mut String) {
        for (mode, on) in self.private.iter().filter(|(mode, _)| is_mode_allowed(*mode)) {
            let _ = write!(out, "\x1b[?{mode}{}", if *on { 'h' } else { 'l' });
        }
        if self.keypad {
            out.push_str("\x1b=");
        }
        if let Some(level) = self.modify_keys {
            let _ = write!(out, "\x1b[>4;{level}m");
        }
        if let Some(style) = self.cursor_style {
            let _ = write!(out, "\x1b[{style} q");
        }
        if !self.title.is_empty() {
            let _ = write!(out, "\x1b]2;{}\x07", self.title);
        }
    }

    /// Writes the character sets. They are last, since they would apply to later characters.
    pub(crate) fn write_charsets(&self, out: &mut String) {
        for (set, designated) in [('(', self.charsets[0]), (')', self.charsets[1])] {
            if designated != 0 {
                let _ = write!(out, "\x1b{set}{}", char::from(designated));
            }
        }
        if self.shifted {
            out.push('\x0e');
        }
    }

    /// Writes the keyboard modes of the main or the alternate screen, whichever is in use.
    pub(crate) fn write_keyboard(&self, alternate: bool, out: &mut String) {
        for flags in &self.keyboard[usize::from(alternate)] {
            let _ = write!(out, "\x1b[>{flags}u");
        }
    }

    /// Returns the output that resets every mode, so that a terminal is as it was before the program. It is empty if no mode is set.
    pub fn undo(&self) -> String {
        let mut out = String::new();
        if self.synchronized {
            out.push_str("\x1b[?2026l");
        }
        if self.shifted || self.charsets.iter().any(|set| !matches!(set, 0 | b'B')) {
            out.push_str("\x0f\x1b(B\x1b)B");
        }
        let pop = |stack: &Vec<u16>, out: &mut String| {
            if !stack.is_empty() {
                let _ = write!(out, "\x1b[<{}u", stack.len());
            }
        };
        if self.alternate {
            pop(&self.keyboard[1], &mut out);
            out.push_str("\x1b[?1049l");
        }
        pop(&self.keyboard[0], &mut out);
        for (mode, on) in &self.private {
            let at_first = INITIALLY_SET.contains(mode);
            if *on != at_first {
                let _ = write!(out, "\x1b[?{mode}{}", if at_first { 'h' } else { 'l' });
            }
        }
        #[rustfmt::skip] // a mode a line
        let rest = [
            (self.keypad, "\x1b>"),
            (self.modify_keys.is_some(), "\x1b[>4m"),
            (self.cursor_style.is_some(), "\x1b[0 q"),
            (self.region, "\x1b7\x1b[r\x1b8"),
            (self.link, "\x1b]8;;\x07"),
            (self.colours, "\x1b]104\x07\x1b]110\x07\x1b]111\x07\x1b]112\x07"),
            (self.attributes, "\x1b[0m"),
            (self.cursor_hidden, "\x1b[?25h"),
        ];
        rest.iter().filter(|(is_set, _)| *is_set).for_each(|(_, undo)| out.push_str(undo));
        out
    }
}

/// Follows the modes in a stream of output.
#[derive(Clone, Debug, Default)]
pub struct ModeTracker {
    segments: Segmenter,
    /// The modes so far.
    pub modes: Modes,
}

impl ModeTracker {
    /// Adds the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let modes = &mut self.modes;
        self.segments.push(bytes, |piece| match piece {
            Piece::Text(text) => {
                if let Some(shift) = text.iter().rev().find(|byte| matches!(byte, 0x0e | 0x0f)) {
                    modes.shift(*shift == 0x0e);
                }
            }
            Piece::Sequence(sequence) => modes.track(&Sequence::read(sequence)),
        });
    }

    /// Returns whether a sequence is incomplete: output written to the terminal now would be taken for its rest.
    pub fn in_sequence(&self) -> bool {
        !self.segments.tail().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(bytes: &str) -> Modes {
        let mut tracker = ModeTracker::default();
        tracker.push(bytes.as_bytes());
        tracker.modes
    }

    fn shared(bytes: &str) -> String {
        let mut out = String::new();
        let modes = modes(bytes);
        modes.write_shared(&mut out);
        modes.write_charsets(&mut out);
        modes.write_keyboard(modes.alternate, &mut out);
        out
    }

    #[test]
    fn modes_are_remembered_for_whoever_joins() {
        #[rustfmt::skip] // a case a line
        let cases = [
            ("text \x1b[1mbold\x1b[0m", ""),
            ("\x1b[?2004h\x1b[?1h", "\x1b[?2004h\x1b[?1h"),
            ("\x1b[?2004h\x1b[?2004l", "\x1b[?2004l"),
            ("\x1b[?1000h\x1b[?1002h\x1b[?1006h", "\x1b[?1002h\x1b[?1006h"),
            ("\x1b[?1002h\x1b[?1000l", "\x1b[?1002h"),
            ("\x1b[?1002h\x1b[?1002l", ""),
            ("\x1b[?25l\x1b[?1049h\x1b[?6h\x1b[?2026h", ""),
            ("\x1b[?1004;2004h", "\x1b[?1004h\x1b[?2004h"),
            ("\x1b[?2048h\x1b[?1001h\x1b[?1h", "\x1b[?1h"),
            ("\x1b=", "\x1b="),
            ("\x1b=\x1b>", ""),
            ("\x1b[>4;2m", "\x1b[>4;2m"),
            ("\x1b[>4;2m\x1b[>4m", ""),
            ("\x1b[5 q", "\x1b[5 q"),
            ("\x1b[5 q\x1b[0 q", ""),
            ("\x1b(0", "\x1b(0"),
            ("\x1b)0\x0e", "\x1b)0\x0e"),
            ("\x1b[>1u\x1b[>3u", "\x1b[>1u\x1b[>3u"),
            ("\x1b[>1u\x1b[>3u\x1b[<u", "\x1b[>1u"),
            ("\x1b[>1u\x1b[=4;2u", "\x1b[>5u"),
            ("\x1b[=5u", "\x1b[>5u"),
            ("\x1b[>1u\x1b[?1049h\x1b[>7u", "\x1b[>7u"),
            ("\x1b[?2004h\x1bc", ""),
            ("\x1b]0;a title\x07", "\x1b]2;a title\x07"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(shared(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn modes_are_undone_on_a_terminal_that_leaves() {
        #[rustfmt::skip] // a case a line
        let cases = [
            ("just text\r\n\x1b[1mbold\x1b[m", ""),
            ("\x1b[1mbold", "\x1b[0m"),
            ("\x1b[?2004h", "\x1b[?2004l"),
            ("\x1b[?7l", "\x1b[?7h"),
            ("\x1b[?1049h\x1b[?25l\x1b[?1000h", "\x1b[?1049l\x1b[?1000l\x1b[?25h"),
            ("\x1b[>1u\x1b[?1049h\x1b[>7u\x1b[>7u", "\x1b[<2u\x1b[?1049l\x1b[<1u"),
            ("\x1b[2;5r", "\x1b7\x1b[r\x1b8"),
            ("\x1b[2;5r\x1b[r", ""),
            ("\x1b]8;;http://a\x07link", "\x1b]8;;\x07"),
            ("\x1b]8;;http://a\x07link\x1b]8;;\x07", ""),
            ("\x1b]11;#fff\x07", "\x1b]104\x07\x1b]110\x07\x1b]111\x07\x1b]112\x07"),
            ("\x1b]11;?\x07", ""),
            ("\x1b(0", "\x0f\x1b(B\x1b)B"),
            ("\x1b[?2026h", "\x1b[?2026l"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(modes(bytes).undo(), expected, "{bytes:?}");
            assert_eq!(modes(&format!("{bytes}{}", modes(bytes).undo())).undo(), "", "{bytes:?}: undone once");
        }
    }

    #[test]
    fn titles_are_short_and_safe_and_modes_are_bounded() {
        let hostile = "\x1b]2;a\u{202e}b\tc\x07";
        assert!(!modes(hostile).title().contains('\u{202e}'), "{:?}", modes(hostile).title());
        let long = format!("\x1b]2;{}\x07", "x".repeat(5000));
        assert!(modes(&long).title().chars().count() <= TITLE_MAX + 1);
        let many: String = (100..300).map(|mode| format!("\x1b[?{mode}h")).collect();
        assert_eq!(modes(&many).private.len(), MODES_MAX);
        let deep = "\x1b[>1u".repeat(100);
        assert_eq!(modes(&deep).keyboard[0].len(), KEYBOARD_MAX);
    }
}
