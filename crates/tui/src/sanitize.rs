//! Restricts the cells of the terminal: any text of an agent becomes printable cells.
//!
//! [`text`] and [`line`] sanitize text, [`output`] reads colours (and no other sequences) from a program's output, and [`seal`] checks
//! every cell once more before it is written.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use unicode_general_category::{GeneralCategory as Category, get_general_category};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::theme::Depth;
use plexus_protocol::text::hides;

/// Maximum number of combining marks on one letter; further ones are escaped, so that no line grows in height.
const MARKS_MAX: usize = 2;
/// Width of a tab stop, in columns.
const TAB: usize = 4;
/// Maximum length of the parameters of a colour sequence, in bytes; longer ones are ignored.
const SGR_MAX: usize = 64;

/// Sanitizes text; of the control characters only the line feed is kept. Invisible characters are shown as `\u{..}`, except emoji joiners:
/// they are dropped, so that each emoji is drawn alone and all terminals agree on the width.
pub(crate) fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut before: Option<char> = None;
    let mut marks = MARKS_MAX;
    let mut column = 0;
    let mut rest = raw.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ' '..='~' => {
                out.push(c);
                marks = 0;
                column += 1;
            }
            '\n' => {
                out.push(c);
                marks = MARKS_MAX;
                column = 0;
            }
            // The line end of another system.
            '\r' if rest.peek() == Some(&'\n') => {}
            '\t' => {
                for _ in 0..TAB - column % TAB {
                    out.push(' ');
                }
                column += TAB - column % TAB;
                marks = MARKS_MAX;
            }
            '\u{200d}' if before.is_some_and(is_emoji) && rest.peek().copied().is_some_and(is_emoji) => continue,
            '\u{fe0f}' | '\u{fe0e}' if before.is_some_and(is_emoji) => continue,
            // Two regional indicators make a flag on some terminals: letters are the same on all.
            '\u{1f1e6}'..='\u{1f1ff}' => {
                out.push(char::from_u32(u32::from(c) - 0x1f1e6 + u32::from('A')).unwrap_or('?'));
                marks = 0;
                column += 1;
            }
            // Terminals disagree on the width of a spacing mark.
            _ if changes_others(c) && marks < MARKS_MAX && !hides(c, None) && is_zero_width(c) => {
                out.push(c);
                marks += 1;
            }
            _ if changes_others(c) || hides(c, None) || has_unstable_width(c) || joins_the_next(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                marks = MARKS_MAX;
                column += 1;
            }
            _ => {
                out.push(c);
                marks = 0;
                column += 1;
            }
        }
        before = Some(c);
    }
    out
}

/// Returns whether a character is an emoji, which joiners can join.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}' | '0'..='9' | '#' | '*')
        && (!c.is_ascii() || c.is_ascii_digit() || c == '#' || c == '*')
}

/// Returns whether a character became wide in Unicode 16: terminals and width tables of different age disagree.
fn has_unstable_width(c: char) -> bool {
    matches!(c, '\u{2630}'..='\u{2637}' | '\u{268a}'..='\u{268f}' | '\u{4dc0}'..='\u{4dff}' | '\u{1d300}'..='\u{1d376}')
}

/// Returns whether a character forms one letter with any next one, even a quote or a bracket (`Prepend` of Unicode 16's
/// GraphemeBreakProperty.txt): both would share a cell.
fn joins_the_next(c: char) -> bool {
    matches!(c,
        '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{d4e}' | '\u{110bd}' | '\u{110cd}'
        | '\u{111c2}'..='\u{111c3}' | '\u{113d1}' | '\u{1193f}' | '\u{11941}' | '\u{11a84}'..='\u{11a89}' | '\u{11d46}' | '\u{11f02}')
}

/// Returns whether a character is drawn on top of the previous letter.
fn changes_others(c: char) -> bool {
    !c.is_ascii()
        && (matches!(get_general_category(c), Category::NonspacingMark | Category::EnclosingMark) || is_zero_width(c))
}

/// Returns whether a character takes no column.
fn is_zero_width(c: char) -> bool {
    unicode_width::UnicodeWidthChar::width(c) == Some(0)
}

/// The width of sanitized text, in columns.
pub(crate) fn width(raw: &str) -> usize {
    raw.width()
}

/// Sanitizes text for one line, cut to `max` columns.
pub(crate) fn line(raw: &str, max: usize) -> String {
    // Text far beyond the limit is skipped: a title may be as long as a runtime's longest line.
    let start: String = raw.chars().take(max.saturating_mul(4).saturating_add(64)).collect();
    cut(&text(&start).replace('\n', " "), max)
}

/// Cuts sanitized text to `max` columns.
pub(crate) fn cut(raw: &str, max: usize) -> String {
    if raw.width() <= max {
        return raw.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for piece in raw.graphemes(true) {
        used += piece.width();
        if used >= max {
            break;
        }
        out.push_str(piece);
    }
    if max > 0 {
        out.push('…');
    }
    out
}

/// Parses a program's output into lines of text and colour. Only SGR (`ESC [ .. m`) has an effect; erasing and moving (`ESC [ .. letter`)
/// is dropped, since it has no text; everything else is shown as text. A lone carriage return ends a line: output cannot hide earlier
/// output.
pub(crate) fn output(raw: &str, base: Style) -> Vec<Vec<Span<'static>>> {
    let mut lines = Vec::new();
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut style = base;
    let mut plain = String::new();
    let mut rest = raw;
    let end = |plain: &mut String, spans: &mut Vec<Span<'static>>, style: Style| {
        if !plain.is_empty() {
            spans.push(Span::styled(text(plain), style));
            plain.clear();
        }
    };
    while let Some(c) = rest.chars().next() {
        let body = match c {
            '\u{1b}' => rest[1..].strip_prefix('['),
            '\u{9b}' => Some(&rest[c.len_utf8()..]),
            _ => None,
        };
        if let Some(body) = body
            && let Some(at) = body.bytes().take(SGR_MAX).position(|b| (0x40..=0x7e).contains(&b))
            && body.as_bytes()[..at].iter().all(|b| (0x20..=0x3f).contains(b))
        {
            if body.as_bytes()[at] == b'm' {
                end(&mut plain, &mut spans, style);
                style = sgr(&body[..at], style, base);
            }
            rest = &body[at + 1..];
            continue;
        }
        let after = &rest[c.len_utf8()..];
        if c == '\n' || (c == '\r' && !after.starts_with('\n')) {
            end(&mut plain, &mut spans, style);
            lines.push(std::mem::take(&mut spans));
        } else if c != '\r' {
            plain.push(c);
        }
        rest = after;
    }
    end(&mut plain, &mut spans, style);
    if !spans.is_empty() {
        lines.push(spans);
    }
    lines
}

/// The style after a colour sequence with these parameters.
fn sgr(parameters: &str, mut style: Style, base: Style) -> Style {
    if parameters.bytes().any(|b| !b.is_ascii_digit() && b != b';' && b != b':') {
        return style;
    }
    let numbers: Vec<u16> = parameters.split([';', ':']).map(|n| n.parse().unwrap_or(0)).collect();
    let mut rest = numbers.iter().copied();
    let byte = |n: Option<u16>| n.and_then(|n| u8::try_from(n).ok()).unwrap_or_default();
    while let Some(n) = rest.next() {
        style = match n {
            0 => base,
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            3 => style.add_modifier(Modifier::ITALIC),
            4 => style.add_modifier(Modifier::UNDERLINED),
            7 => style.add_modifier(Modifier::REVERSED),
            9 => style.add_modifier(Modifier::CROSSED_OUT),
            22 => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
            23 => style.remove_modifier(Modifier::ITALIC),
            24 => style.remove_modifier(Modifier::UNDERLINED),
            27 => style.remove_modifier(Modifier::REVERSED),
            29 => style.remove_modifier(Modifier::CROSSED_OUT),
            30..=37 => style.fg(Color::Indexed(byte(Some(n - 30)))),
            40..=47 => style.bg(Color::Indexed(byte(Some(n - 40)))),
            90..=97 => style.fg(Color::Indexed(byte(Some(n - 82)))),
            100..=107 => style.bg(Color::Indexed(byte(Some(n - 92)))),
            39 => Style { fg: base.fg, ..style },
            49 => Style { bg: base.bg, ..style },
            38 | 48 => {
                let color = match rest.next() {
                    Some(5) => Color::Indexed(byte(rest.next())),
                    Some(2) => Color::Rgb(byte(rest.next()), byte(rest.next()), byte(rest.next())),
                    _ => return style,
                };
                if n == 38 { style.fg(color) } else { style.bg(color) }
            }
            // Agents may not use hidden (8) and blinking text.
            _ => style,
        };
    }
    style
}

/// Checks every cell before it is written: an unprintable one becomes `?`, colours become the terminal's.
pub(crate) fn seal(buffer: &mut Buffer, depth: Depth) {
    for cell in &mut buffer.content {
        if !printable(cell.symbol()) {
            cell.set_symbol("?");
        }
        cell.fg = depth.color(cell.fg);
        cell.bg = depth.color(cell.bg);
    }
}

/// Returns whether a cell's symbol is one visible letter with few marks.
pub(crate) fn printable(symbol: &str) -> bool {
    let mut chars = symbol.chars();
    match chars.next() {
        // The cell behind a wide letter is empty.
        None => true,
        Some(c @ ' '..='~') => chars.as_str().is_empty() || are_marks(c, chars.as_str()),
        Some(c) => !hides(c, None) && !changes_others(c) && are_marks(c, chars.as_str()),
    }
}

fn are_marks(_: char, marks: &str) -> bool {
    marks.chars().count() <= 2 * MARKS_MAX && marks.chars().all(|c| !c.is_ascii() && !hides(c, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sanitize_shows_hidden_characters_at_their_width() {
        for (raw, expected) in [
            ("a\tb", "a   b"),
            ("\x1b[31mred\x07", "\\u{1b}[31mred\\u{7}"),
            ("a\r\nb\rc", "a\nb\\u{d}c"),
            ("!\u{2d7f}", "!\\u{2d7f}"),
            ("x\u{202e}y\u{200b}z\u{feff}", "x\\u{202e}y\\u{200b}z\\u{feff}"),
            ("👩\u{200d}👩\u{200d}👧 a\u{200d}b", "👩👩👧 a\\u{200d}b"),
            ("❤\u{fe0f} a\u{fe0f}", "❤ a\\u{fe0f}"),
            ("🇩🇪", "DE"),
            ("e\u{301}", "e\u{301}"),
            ("\u{301}e", "\\u{301}e"),
            ("\u{113d1}\"", "\\u{113d1}\""),
            ("z\u{301}\u{302}\u{303}\u{304}", "z\u{301}\u{302}\\u{303}\\u{304}"),
            ("\u{9b}31m\u{90}\u{e000}\u{2028}", "\\u{9b}31m\\u{90}\\u{e000}\\u{2028}"),
        ] {
            assert_eq!(text(raw), expected);
        }
        assert_eq!(width(&text("👩\u{200d}👩\u{200d}👧")), 6);
        assert_eq!(line("abcdef", 4), "abc…");
        assert_eq!(line("漢字漢字", 5), "漢字…");
        assert_eq!(line("a\nb", 10), "a b");
    }

    #[test]
    fn sanitize_reduces_output_to_text_and_colour() {
        let plain_text = |raw: &str| {
            output(raw, Style::new())
                .iter()
                .map(|line| line.iter().map(|span| span.content.as_ref()).collect::<String>())
                .collect::<Vec<_>>()
        };
        assert_eq!(plain_text("\x1b[1;31merror\x1b[0m: x\n\x1b[2Kdone"), ["error: x", "done"]);
        assert_eq!(plain_text("10%\r20%\r\nend"), ["10%", "20%", "end"]);
        assert_eq!(plain_text("\x1b]0;t\x07x"), ["\\u{1b}]0;t\\u{7}x"]);
        assert_eq!(plain_text("\x1b[31"), ["\\u{1b}[31"]);
        let lines = output("\x1b[38;2;1;2;3;48;5;9mx\x1b[39my", Style::new());
        assert_eq!(lines[0][0].style, Style::new().fg(Color::Rgb(1, 2, 3)).bg(Color::Indexed(9)));
        assert_eq!(lines[0][1].style, Style::new().bg(Color::Indexed(9)));
    }

    proptest::proptest! {
        #[test]
        fn sanitize_makes_any_input_printable(raw in "\\PC*|(.|\\x1b|[\\x00-\\x1f]|\u{200d}|\u{fe0f}|\u{301}|[\u{80}-\u{9f}]){0,40}") {
            for raw in [text(&raw), output(&raw, Style::new()).concat().iter().map(|span| span.content.as_ref()).collect()] {
                for piece in raw.split('\n').flat_map(|line| line.graphemes(true)) {
                    for c in piece.chars() {
                        proptest::prop_assert!(!hides(c, None), "{raw:?} has U+{:04X}", u32::from(c));
                    }
                }
            }
        }
    }
}
