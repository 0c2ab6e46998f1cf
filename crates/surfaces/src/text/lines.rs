//! Lines of an agent's text: without control sequences of a terminal, cut and wrapped to a width.

use std::borrow::Cow;

use plexus_protocol::text::Cleaner;
use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::super::functions;
use super::super::json::json_text;

/// Returns text without control characters other than line feed and tab, of at most `max` bytes.
pub(super) fn clean(text: &str, max: usize) -> String {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let mut out = String::with_capacity(end);
    let mut cleaner = Cleaner::default();
    cleaner.push(&text.as_bytes()[..end], &mut out);
    if end < text.len() {
        out.push('…');
    }
    out
}

/// Returns such text on one line.
pub(super) fn one_line(text: &str, max: usize) -> String {
    clean(text, max).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Maximum number of bytes of JSON that represent a list or an object in a line.
const JSON: usize = 2_000;

/// Returns a value as text; only the beginning of a list or an object.
pub(super) fn brief(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(_) | Value::Object(_) => Cow::Owned(json_text(value, JSON)),
        plain => Cow::Owned(functions::text(plain)),
    }
}

/// Returns the width of text, in columns.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Cuts text to at most `columns`, with an ellipsis for the rest.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let mut out = String::new();
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// Wraps a paragraph at its spaces.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        if width(paragraph) <= columns {
            lines.push(paragraph.to_owned());
            continue;
        }
        let mut line = String::new();
        let mut used = 0;
        for word in paragraph.split(' ') {
            let wide = width(word);
            if used > 0 && used + 1 + wide > columns {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            for c in word.chars() {
                let one = c.width().unwrap_or(0);
                if used + one > columns && used > 0 {
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                }
                line.push(c);
                used += one;
            }
        }
        lines.push(line);
    }
    lines
}

/// Returns the text of a terminal after this output: without colors and cursor movements, and with the final state of
/// an overwritten line.
pub(super) fn without_ansi(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut line = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' | '\u{9b}' => skip_sequence(c, &mut chars),
            '\n' => {
                out.push_str(&line);
                out.push('\n');
                line.clear();
            }
            '\r' if chars.peek().is_some_and(|next| *next != '\n' && *next != '\r') => line.clear(),
            '\r' => {}
            '\u{8}' => drop(line.pop()),
            '\t' => line.push('\t'),
            c if c.is_control() => {}
            c => line.push(c),
        }
    }
    out.push_str(&line);
    out
}

fn skip_sequence(first: char, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let kind = if first == '\u{9b}' { Some('[') } else { chars.next() };
    match kind {
        Some('[') => while chars.next_if(|c| !('@'..='~').contains(c) && !c.is_control()).is_some() {},
        // Strings such as titles end with BEL or ESC \.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while chars.next_if(|c| !matches!(c, '\u{7}' | '\u{1b}' | '\n')).is_some() {}
            if chars.next_if_eq(&'\u{1b}').is_none() {
                chars.next_if_eq(&'\u{7}');
                return;
            }
        }
        Some('(' | ')' | '#' | '%') => {}
        _ => return,
    }
    // The final byte of the sequence.
    chars.next_if(|c| *c != '\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_terminals_lose_their_sequences() {
        for (text, plain) in [
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("10%\r20%\r100%\ndone", "100%\ndone"),
            ("a\r\nb", "a\nb"),
            ("abd\u{8}c", "abc"),
            ("\u{1b}[2J\u{1b}(Bx\u{7}\u{0}", "x"),
            ("\u{1b}[", ""),
            ("\u{1b}", ""),
        ] {
            assert_eq!(without_ansi(text), plain, "{text:?}");
        }
    }

    #[test]
    fn lines_are_cut_and_wrapped_by_columns() {
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(wrap("one two three\nx", 7), ["one two", "three", "x"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(clean("a\u{202e}b\u{1b}[0m\u{0}", 100), "a\\u{202e}b\\u{1b}[0m\\u{0}");
        assert_eq!(clean("äöü", 3), "ä…");
    }
}
