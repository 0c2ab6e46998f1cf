//! Escapes for deceptive characters: those that hide, reorder or imitate other text.

use std::fmt::Write as _;

use unicode_general_category::{GeneralCategory as Category, get_general_category};

/// Counts of the deceptive characters in a text.
#[derive(Default)]
pub(super) struct DeceptiveCharacters {
    controls: usize,
    /// Control characters that are neither tabs nor carriage returns.
    hostile: usize,
    invisible: usize,
    bidirectional: usize,
    spaces: usize,
    other: usize,
    trailing: usize,
}

impl DeceptiveCharacters {
    pub(super) fn escape(&mut self, text: &str, out: &mut String) {
        out.reserve(text.len());
        for (n, line) in text.split('\n').enumerate() {
            if n > 0 {
                out.push('\n');
            }
            let trimmed = line.trim_end_matches(' ');
            for (at, c) in trimmed.char_indices() {
                // Text that looks like an escape is escaped itself.
                let imitates = c == '\\' && trimmed[at + 1..].starts_with("u{");
                if imitates || self.deceives(c) {
                    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                } else {
                    out.push(c);
                }
            }
            // Trailing spaces are part of the command, and invisible.
            for _ in trimmed.len()..line.len() {
                self.trailing += 1;
                out.push_str("\\u{20}");
            }
        }
    }

    /// Writes a text on one line.
    pub(super) fn inline(&mut self, text: &str, out: &mut String) {
        for (n, line) in text.split('\n').enumerate() {
            if n > 0 {
                self.controls += 1;
                out.push_str("\\u{a}");
            }
            self.escape(line, out);
        }
    }

    /// Writes a text as an indented block.
    pub(super) fn indented(&mut self, text: &str, out: &mut String) {
        for line in text.split('\n') {
            out.push_str("\n  ");
            self.escape(line, out);
        }
    }

    pub(super) fn deceives(&mut self, c: char) -> bool {
        if matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}') {
            self.bidirectional += 1;
            return true;
        }
        if c.is_control() && !matches!(c, '\t' | '\r') {
            self.hostile += 1;
        }
        let counter = match get_general_category(c) {
            Category::Control => &mut self.controls,
            Category::Format => &mut self.invisible,
            Category::LineSeparator | Category::ParagraphSeparator => &mut self.spaces,
            Category::SpaceSeparator if c != ' ' => &mut self.spaces,
            Category::PrivateUse | Category::Unassigned | Category::Surrogate => &mut self.other,
            // Letters and marks that are invisible: Hangul fillers, variation selectors, combining grapheme joiner, braille blank.
            _ if matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{34f}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{17b4}' | '\u{17b5}') => {
                &mut self.invisible
            }
            _ => return false,
        };
        *counter += 1;
        true
    }

    /// Returns whether the text has characters that no ordinary command has. Tabs and carriage returns are ordinary.
    pub(super) fn any_hidden(&self) -> bool {
        self.bidirectional + self.invisible + self.spaces + self.other + self.hostile > 0
    }

    pub(super) fn warn(&self, warnings: &mut Vec<String>) {
        let mut warn = |count: usize, what: &str| {
            if count > 0 {
                warnings.push(format!("has {count} {what}; shown as \\u{{..}}"));
            }
        };
        warn(self.bidirectional, "bidirectional control character(s), which reorder what you see");
        warn(self.invisible, "invisible character(s)");
        warn(self.controls, "control character(s)");
        warn(self.spaces, "unusual space or line separator(s)");
        warn(self.other, "private-use or unassigned character(s)");
        warn(self.trailing, "space(s) at the end of a line");
    }
}

/// Returns an agent's text as one line that is safe to show: escaped as in [`render`](crate::render), cut to `max`
/// bytes with an ellipsis.
pub fn label(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut deceptive = DeceptiveCharacters::default();
    for c in text.chars() {
        if out.len() >= max {
            out.push('…');
            break;
        }
        if c == '\n' {
            out.push(' ');
        } else if deceptive.deceives(c) {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}
