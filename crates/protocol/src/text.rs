//! Sanitizes text of agents for display in a terminal, a file or a page.
//!
//! An agent's text may contain escape sequences that move the cursor or set the clipboard or the title, and characters that reverse or
//! hide text. Everything except printable text, line feed and tab is replaced by a visible escape.

use std::fmt::Write as _;

use unicode_general_category::{GeneralCategory as Category, get_general_category};

/// Maximum length of an incomplete UTF-8 sequence, in bytes.
const CARRY_MAX: usize = 3;

/// Sanitizes a stream of text, regardless of how it is split into pieces.
#[derive(Debug, Default)]
pub struct Cleaner {
    carry: Vec<u8>,
    before: Option<char>,
    json: bool,
}

impl Cleaner {
    /// Makes a cleaner for complete JSON: hidden characters are escaped as JSON escapes, so that the value stays the same.
    pub fn json() -> Self {
        Self { json: true, ..Self::default() }
    }

    /// Accepts the next bytes and appends their printable form. An incomplete character waits for its remaining bytes.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let mut rest = if self.carry.is_empty() {
            bytes
        } else {
            self.carry.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.carry);
            &joined[..]
        };
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => return self.text(text, out),
                Err(why) => {
                    let (good, bad) = rest.split_at(why.valid_up_to());
                    self.text(std::str::from_utf8(good).unwrap_or_default(), out);
                    match why.error_len() {
                        Some(len) => {
                            self.bytes(&bad[..len], out);
                            rest = &bad[len..];
                        }
                        None => {
                            debug_assert!(bad.len() <= CARRY_MAX);
                            self.carry = bad.to_vec();
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Ends the stream: an incomplete character is written as escaped bytes.
    pub fn finish(&mut self, out: &mut String) {
        let rest = std::mem::take(&mut self.carry);
        self.bytes(&rest, out);
        self.before = None;
    }

    fn bytes(&mut self, bytes: &[u8], out: &mut String) {
        for byte in bytes {
            // Invalid bytes become U+FFFD, since JSON has no escape for bytes.
            let _ = if self.json { write!(out, "\\ufffd") } else { write!(out, "\\x{{{byte:02x}}}") };
        }
        self.before = None;
    }

    fn text(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            if c == '\n' || c == '\t' || !hides(c, self.before) {
                out.push(c);
            } else if self.json && c == '\r' {
                // Between values; inside of strings a raw tab or line feed is not valid.
                out.push(' ');
            } else if self.json {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            } else {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            self.before = Some(c);
        }
    }
}

/// Returns whether a character has no glyph of its own, or changes how others are drawn.
pub fn hides(c: char, before: Option<char>) -> bool {
    if (' '..='~').contains(&c) {
        return false;
    }
    match get_general_category(c) {
        Category::Control
        | Category::Format
        | Category::LineSeparator
        | Category::ParagraphSeparator
        | Category::PrivateUse
        | Category::Unassigned
        | Category::Surrogate => true,
        Category::SpaceSeparator => c != '\u{a0}' && c != '\u{3000}',
        // The emoji variation selector, common in plain text: allowed once after a symbol.
        _ if c == '\u{fe0f}' => !before.is_some_and(|c| !c.is_ascii_control() && is_symbol(c)),
        _ => matches!(
            c,
            '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
                | '\u{fe00}'..='\u{fe0e}' | '\u{e0100}'..='\u{e01ef}'
        ),
    }
}

fn is_symbol(c: char) -> bool {
    c.is_ascii_digit()
        || matches!(get_general_category(c), Category::OtherSymbol | Category::MathSymbol | Category::OtherPunctuation)
}

/// Sanitizes a whole text; line feeds and tabs stay.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    Cleaner::default().push(text.as_bytes(), &mut out);
    out
}

/// Sanitizes a text for one line, cut to `max` characters.
pub fn line(text: &str, max: usize) -> String {
    let text = clean(text).replace(['\n', '\t'], " ");
    match text.char_indices().nth(max) {
        Some((cut, _)) => format!("{}…", text[..cut].trim_end()),
        None => text,
    }
}

/// Sanitizes text of a runtime for a terminal or a page: invalid UTF-8 is replaced; control characters (except newline and tab) and
/// characters that change how others are displayed are escaped.
pub fn printable(text: &[u8]) -> String {
    use unicode_general_category::{GeneralCategory, get_general_category};
    let text = String::from_utf8_lossy(text);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let plain = matches!(c, '\n' | '\t')
            || !matches!(get_general_category(c), GeneralCategory::Control | GeneralCategory::Format);
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            _ if plain => out.push(c),
            _ => out.extend(c.escape_default()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Escape sequences known from attacks on terminals, and characters that hide.
    const CORPUS: &[&[u8]] = &[
        b"plain text, tab\tand\nline",
        b"\x1b[31mred\x1b[0m",
        b"\x1b]0;title\x07",
        b"\x1b]52;c;cm0gLXJmIC8=\x07",
        b"\x1b]8;;http://evil.example/\x1b\\link\x1b]8;;\x1b\\",
        b"\x1bP1$r0m\x1b\\",
        b"\x1b_app\x1b\\ \x1b^pm\x1b\\ \x1bXsos\x1b\\",
        b"\x1b[2J\x1b[H\x1b[6n\x1b[5i\x1bc",
        b"\x1b[200~paste\x1b[201~",
        b"over\rwrite \x08\x08\x7f bell\x07 null\x00 vt\x0b ff\x0c so\x0e si\x0f",
        "c1 \u{9b}31m \u{85} \u{90} \u{9d}0;t\u{9c}".as_bytes(),
        "bidi \u{202e}gnp.exe \u{2066}x\u{2069} \u{200f}\u{61c}".as_bytes(),
        "zero\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}width \u{ad}".as_bytes(),
        "lines \u{2028}\u{2029} tags \u{e0041}\u{e007f} fill \u{115f}\u{3164}\u{2800} vs \u{fe00}\u{e0101}".as_bytes(),
        "fine: é ü 漢字 🦀 ❤\u{fe0f} naïve — “quotes” ½".as_bytes(),
        "twice ❤\u{fe0f}\u{fe0f} after a letter a\u{fe0f}".as_bytes(),
        b"bad utf-8 \xff\xfe \xc3( \xe2\x82 \xf0\x9f\xa6 \xc0\xaf \xed\xa0\x80 end",
        b"unfinished \xf0\x9f\xa6",
        "private \u{e000}\u{f0000} unassigned \u{378} space \u{2003}\u{1680}".as_bytes(),
    ];

    fn cleaned(pieces: &[&[u8]]) -> String {
        let (mut cleaner, mut out) = (Cleaner::default(), String::new());
        for piece in pieces {
            cleaner.push(piece, &mut out);
        }
        cleaner.finish(&mut out);
        out
    }

    #[test]
    fn text_sanitizer_lets_only_printable_text_through() {
        for text in CORPUS {
            let whole = cleaned(&[text]);
            for c in whole.chars().filter(|c| !matches!(c, '\n' | '\t' | '\u{fe0f}')) {
                let category = get_general_category(c);
                assert!(
                    !matches!(
                        category,
                        Category::Control | Category::Format | Category::PrivateUse | Category::Unassigned
                    ),
                    "U+{:04X} of {whole:?}",
                    u32::from(c)
                );
            }
            for at in 0..=text.len() {
                assert_eq!(cleaned(&[&text[..at], &text[at..]]), whole, "cut at {at}");
            }
            let bytes: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(cleaned(&bytes), whole, "byte by byte");
        }
    }

    #[test]
    fn text_display_shows_hidden_characters_only() {
        for (text, shown) in [
            ("a\tb\n", "a\tb\n"),
            ("\x1b[31mred", "\\u{1b}[31mred"),
            ("a\rb", "a\\u{d}b"),
            ("x\u{202e}y", "x\\u{202e}y"),
            ("x\u{200b}y", "x\\u{200b}y"),
            ("é 漢 🦀 ❤\u{fe0f}", "é 漢 🦀 ❤\u{fe0f}"),
            ("a\u{fe0f}", "a\\u{fe0f}"),
        ] {
            assert_eq!(clean(text), shown);
        }
        assert_eq!(cleaned(&[b"\xff\xe2\x82"]), "\\x{ff}\\x{e2}\\x{82}");
    }

    #[test]
    fn text_display_of_json_keeps_its_value() {
        for text in CORPUS {
            let value = serde_json::json!({ "said": String::from_utf8_lossy(text), "n": [1, 2] });
            let json = format!("{}\r\n", serde_json::to_string_pretty(&value).unwrap());
            for at in 0..=json.len() {
                let (mut cleaner, mut out) = (Cleaner::json(), String::new());
                cleaner.push(&json.as_bytes()[..at], &mut out);
                cleaner.push(&json.as_bytes()[at..], &mut out);
                cleaner.finish(&mut out);
                assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap(), value, "{out}");
                let mut before = None;
                for c in out.chars() {
                    assert!(c == '\n' || c == '\t' || !hides(c, before), "{c:?} in {out}");
                    before = Some(c);
                }
            }
        }
    }

    #[test]
    fn text_line_is_one_short_line() {
        assert_eq!(line("a\nb\tc", 80), "a b c");
        assert_eq!(line("abcdef", 3), "abc…");
    }

    #[test]
    fn text_printable_cannot_control_the_terminal() {
        assert_eq!(printable(b"a\tb\r\nc\x1b[2J\r\x00\xff"), "a\tb\nc\\u{1b}[2J\\r\\u{0}\u{fffd}");
        assert_eq!(printable("x\u{202e}y é".as_bytes()), "x\\u{202e}y é");
    }
}
