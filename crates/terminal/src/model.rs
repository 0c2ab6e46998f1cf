//! The screen of a program, for attachments that join later. Pure.
//!
//! The model gets only text and complete sequences ([`segment`](crate::segment)), so that a snapshot of it, followed by
//! later output, has the same effect as all output from the beginning.

use std::fmt::Write as _;
use std::num::NonZeroU16;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::filter::{self, Query};
use crate::modes::Modes;
use crate::segment::{Piece, Segmenter, incomplete};
use crate::sequence::Sequence;

/// Maximum number of stored lines that scrolled off the main screen; above it the oldest are removed.
pub const HISTORY_LINES: usize = 500;

/// Maximum number of lines of a terminal; a larger window is used in part.
pub const LINES_MAX: u16 = 300;
/// Maximum number of columns of a terminal; a larger window is used in part.
pub const COLUMNS_MAX: u16 = 600;

/// Maximum length of a snapshot with history, in bytes; above it the history is left out.
const SNAPSHOT_MAX: usize = 8 << 20;

/// The control character that makes a terminal identify itself.
const ENQ: u8 = 0x05;

/// The bytes of U+0080 to U+009F in UTF-8: control characters that some terminals read as ESC and a letter.
const C1_LEAD: u8 = 0xc2;
const C1_SECOND: RangeInclusive<u8> = 0x80..=0x9f;

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TerminalSize {
    /// The number of lines.
    pub rows: u16,
    /// The number of columns.
    pub cols: u16,
}

impl TerminalSize {
    /// The size of a terminal without attachments.
    pub const DEFAULT: Self = Self { rows: 24, cols: 80 };

    /// Returns the nearest size that a terminal may have; `None` for one without lines or columns, which is no information.
    pub fn within_limits(self) -> Option<Self> {
        let is_some = self.rows > 0 && self.cols > 0;
        is_some.then_some(Self { rows: self.rows.clamp(2, LINES_MAX), cols: self.cols.clamp(2, COLUMNS_MAX) })
    }
}

/// The result of feeding output to a model.
#[derive(Debug, Default)]
pub struct Fed {
    /// The output for viewers.
    pub viewers: Vec<u8>,
    /// Questions of the program to its terminal.
    pub queries: Vec<Query>,
    /// `true` if the screen could not be followed and is empty again: viewers need a snapshot.
    pub lost: bool,
}

/// The screen of a program.
pub struct Model {
    parser: vt100::Parser,
    segments: Segmenter,
    modes: Modes,
    history: usize,
}

impl Model {
    /// Makes an empty screen that stores this number of lines that scroll off.
    pub fn new(size: TerminalSize, history: usize) -> Self {
        Self { parser: parser(size, history), segments: Segmenter::default(), modes: Modes::default(), history }
    }

    /// Returns the screen.
    pub fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// Returns the modes that are set.
    pub fn modes(&self) -> &Modes {
        &self.modes
    }

    /// Returns the size.
    pub fn size(&self) -> TerminalSize {
        let (rows, cols) = self.screen().size();
        TerminalSize { rows: rows.get(), cols: cols.get() }
    }

    /// Changes the size, as terminals do: lines at the bottom are removed first, then the cursor's line stays.
    pub fn set_size(&mut self, size: TerminalSize) {
        let (rows, cols) = nonzero(size);
        if catch_unwind(AssertUnwindSafe(|| self.parser.set_size(rows, cols))).is_err() {
            self.parser = parser(size, self.history);
        }
    }

    /// Adds the next output.
    pub fn feed(&mut self, bytes: &[u8]) -> Fed {
        let mut fed = Fed::default();
        let Self { parser, segments, modes, history } = self;
        segments.push(bytes, |piece| {
            let drawn = catch_unwind(AssertUnwindSafe(|| match piece {
                Piece::Text(text) => feed_text(parser, modes, text, &mut fed),
                Piece::Sequence(sequence) => feed_sequence(parser, modes, sequence, &mut fed),
            }));
            if drawn.is_err() {
                let (rows, cols) = parser.screen().size();
                *parser = self::parser(TerminalSize { rows: rows.get(), cols: cols.get() }, *history);
                fed.lost = true;
            }
        });
        fed
    }

    /// Returns the output that the owner's terminal must get after a snapshot and before the next output.
    pub fn tail(&self) -> Vec<u8> {
        self.segments.tail()
    }

    /// Returns the answer to a question of the program, for a program without an owner's terminal.
    pub fn answer(&self, query: Query) -> String {
        let (row, column) = self.screen().cursor_position();
        query.answer((row.saturating_add(1), column.saturating_add(1).min(self.size().cols)))
    }

    /// Returns the output that draws this screen on an empty terminal of the same size without modes, with the lines that scrolled off it.
    pub fn snapshot(&self) -> Vec<u8> {
        let drawn = catch_unwind(AssertUnwindSafe(|| {
            let screen = self.drawing();
            let mut out = self.history_lines();
            out.push_str(&screen);
            if out.len() > SNAPSHOT_MAX { screen } else { out }
        }));
        drawn.unwrap_or_default().into_bytes()
    }

    /// Returns the lines that scrolled off, and output that scrolls them off again.
    fn history_lines(&self) -> String {
        let mut out = String::new();
        let mut probe = self.probe(b"");
        if self.screen().alternate_screen() {
            probe.process(b"\x1b[?47l");
        }
        let (rows, cols) = probe.screen().size();
        let (rows, cols) = (rows.get(), cols.get());
        probe.screen_mut().set_scrollback(usize::MAX);
        let mut left = probe.screen().scrollback();
        if left == 0 {
            return out;
        }
        let mut wraps = false;
        while left > 0 {
            probe.screen_mut().set_scrollback(left);
            let count = left.min(usize::from(rows));
            let screen = probe.screen();
            for (row, line) in (0..rows).zip(screen.rows_formatted(0, cols)).take(count) {
                out.push_str("\x1b[0m");
                out.push_str(&line);
                // A line that continues in the next one is not ended, so that terminals can wrap it again.
                wraps = screen.row_wrapped(row);
                if !wraps {
                    out.push_str("\r\n");
                }
            }
            left -= count;
        }
        out.push_str("\x1b[0m");
        (0..rows - 1 + u16::from(wraps)).for_each(|_| out.push_str("\r\n"));
        out
    }

    /// Returns the output that draws the screen itself.
    fn drawing(&self) -> String {
        let mut out = String::new();
        self.modes.write_shared(&mut out);
        if self.screen().alternate_screen() {
            let main = self.probe(b"\x1b[?47l");
            self.draw_grid(&main, &mut out);
            self.modes.write_keyboard(false, &mut out);
            // The sequence saves the main screen's cursor, at the position that it had when the program sent it.
            out.push_str("\x1b[?1049h");
            self.draw_grid(&self.probe(b""), &mut out);
            self.modes.write_keyboard(true, &mut out);
        } else {
            self.draw_grid(&self.probe(b""), &mut out);
            self.modes.write_keyboard(false, &mut out);
        }
        self.modes.write_charsets(&mut out);
        out
    }

    /// Returns a copy of the screen after these bytes, which shows state that the screen itself does not expose.
    fn probe(&self, bytes: &[u8]) -> vt100::Parser {
        probe(self.screen(), bytes)
    }

    /// Draws the content of `shown`, with its saved cursor, scroll region and origin.
    fn draw_grid(&self, shown: &vt100::Parser, out: &mut String) {
        let screen = shown.screen();
        // While it is drawn there is no region and no origin.
        out.push_str("\x1b[?6l\x1b[r");
        // The saved cursor is first: it gets beyond the last column by a character, which is then erased.
        let saved = probe(screen, b"\x1b8");
        let ((row, column), columns) = (saved.screen().cursor_position(), screen.size().1.get());
        if has_origin(saved.screen()) {
            out.push_str("\x1b[?6h");
        }
        let _ = write!(out, "\x1b[{};{}H", row + 1, column.min(columns - 1) + 1);
        out.push_str(&saved.screen().attributes_formatted());
        out.push_str(if column < columns { "\x1b7\x1b[?6l" } else { "x\x1b7\x1b[?6l" });
        out.push_str(&screen.contents_formatted());
        let (rows, _) = screen.size();
        let (top, bottom) = region(screen);
        if (top, bottom) != (0, rows.get() - 1) {
            let _ = write!(out, "\x1b[{};{}r", top + 1, bottom + 1);
        }
        if has_origin(screen) {
            let (row, column) = screen.cursor_position();
            let _ = write!(out, "\x1b[?6h\x1b[{};{}H", row.saturating_sub(top) + 1, column + 1);
        } else {
            out.push_str("\x1b[0m");
            out.push_str(&screen.cursor_state_formatted());
        }
        out.push_str(&screen.attributes_formatted());
    }
}

fn nonzero(size: TerminalSize) -> (NonZeroU16, NonZeroU16) {
    let nonzero = |count: u16| NonZeroU16::new(count).unwrap_or(NonZeroU16::MIN);
    (nonzero(size.rows), nonzero(size.cols))
}

fn parser(size: TerminalSize, history: usize) -> vt100::Parser {
    let (rows, cols) = nonzero(size);
    vt100::Parser::new(rows, cols, history)
}

/// Returns a copy of a screen after these bytes.
fn probe(screen: &vt100::Screen, bytes: &[u8]) -> vt100::Parser {
    let (rows, cols) = screen.size();
    let mut probe = vt100::Parser::new(rows, cols, 0);
    *probe.screen_mut() = screen.clone();
    probe.process(bytes);
    probe
}

/// Returns the first and the last line of the scroll region.
fn region(screen: &vt100::Screen) -> (u16, u16) {
    let mut probe = probe(screen, b"\x1b[?6h");
    let top = probe.screen().cursor_position().0;
    probe.process(b"\x1b[999B");
    (top, probe.screen().cursor_position().0)
}

/// Returns whether lines are counted from the first line of the region.
fn has_origin(screen: &vt100::Screen) -> bool {
    probe(screen, b"\x1b[2;3r\x1b[H").screen().cursor_position().0 == 1
}

fn feed_text(parser: &mut vt100::Parser, modes: &mut Modes, text: &[u8], fed: &mut Fed) {
    // A character that a sequence interrupted: without the sequence, later bytes would complete the character.
    let broken_off = incomplete(text);
    let completed;
    let text = if broken_off > 0 {
        completed = [&text[..text.len() - broken_off], "\u{fffd}".as_bytes()].concat();
        &completed
    } else {
        text
    };
    write_for_viewers(text, &mut fed.viewers);
    let shifts = text.iter().any(|byte| matches!(byte, 0x0e | 0x0f));
    if !shifts && !modes.draws_lines() {
        return process_lines(parser, text);
    }
    if !modes.has_line_set() {
        text.iter().filter(|byte| matches!(byte, 0x0e | 0x0f)).for_each(|byte| modes.shift(*byte == 0x0e));
        return process_lines(parser, text);
    }
    // The screen has no character sets: line drawing characters are replaced by those of Unicode.
    let mut translated = Vec::with_capacity(text.len());
    for byte in text.iter().copied() {
        match byte {
            0x0e | 0x0f => modes.shift(byte == 0x0e),
            0x60..=0x7e if modes.draws_lines() => {
                let line = LINES.chars().nth(usize::from(byte - 0x60)).unwrap_or(' ');
                translated.extend_from_slice(line.encode_utf8(&mut [0; 4]).as_bytes());
            }
            byte => translated.push(byte),
        }
    }
    process_lines(parser, &translated);
}

/// Appends the part of a text that viewers get: without ENQ, which terminals answer, and without U+0080 to U+009F, by
/// which some terminals begin a sequence. They are replaced by NUL, which terminals ignore: without it, the surrounding
/// bytes could become one character.
fn write_for_viewers(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            ENQ => out.push(0),
            C1_LEAD if bytes.next_if(|second| C1_SECOND.contains(second)).is_some() => out.extend_from_slice(&[0, 0]),
            byte => out.push(byte),
        }
    }
}

/// Draws text, line by line.
fn process_lines(parser: &mut vt100::Parser, text: &[u8]) {
    for line in text.split_inclusive(|byte| matches!(byte, b'\n' | 0x0b | 0x0c)) {
        parser.process(line);
        if line.ends_with(b"\n") || line.ends_with(b"\x0b") || line.ends_with(b"\x0c") {
            move_cursor_back(parser);
        }
    }
}

/// The character set for line drawing, from 0x60 to 0x7e.
const LINES: &str = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·";

fn feed_sequence(parser: &mut vt100::Parser, modes: &mut Modes, bytes: &[u8], fed: &mut Fed) {
    let sequence = Sequence::read(bytes);
    modes.track(&sequence);
    fed.queries.extend(Query::parse(&sequence));
    if filter::is_allowed(&sequence) {
        fed.viewers.extend_from_slice(bytes);
    }
    match &sequence {
        Sequence::Csi { private: Some(b'?'), parameters, intermediate: None, last: last @ (b'h' | b'l') }
            if parameters.iter().any(|mode| matches!(mode, 47 | 1047 | 1048 | 1049)) =>
        {
            for mode in parameters {
                switch(parser, *mode, *last == b'h');
            }
        }
        // The parser stores what it cannot use; a string may be long.
        Sequence::Osc { .. } | Sequence::String => {}
        _ => parser.process(bytes),
    }
    move_cursor_back(parser);
}

/// Moves the cursor back from beyond the last column, where only a character can have put it, if that character no
/// longer exists. In terminals, operations that erase or move cells, and a line feed, do this.
fn move_cursor_back(parser: &mut vt100::Parser) {
    let screen = parser.screen();
    let ((row, column), columns) = (screen.cursor_position(), screen.size().1.get());
    let has_character =
        screen.cell(row, columns - 1).is_some_and(|cell| cell.has_contents() || cell.is_wide_continuation());
    if column >= columns && !has_character {
        parser.process(format!("\x1b[{columns}G").as_bytes());
    }
}

/// Sets or resets a private mode. All forms of the alternate screen are treated as the one that saves the cursor and
/// begins with an empty screen: current terminals discard its content when it is left, and programs that use an older
/// form save the cursor themselves.
fn switch(parser: &mut vt100::Parser, mode: u16, on: bool) {
    let changes = parser.screen().alternate_screen() != on;
    let sequence = match (mode, on) {
        (47 | 1047 | 1049, true) if changes => "\x1b[?1049h".into(),
        (47 | 1047 | 1049, false) if changes => "\x1b[?1049l".into(),
        (47 | 1047, _) => return,
        (1048 | 1049, true) => "\x1b7".into(),
        (1048 | 1049, false) => "\x1b8".into(),
        (mode, on) => format!("\x1b[?{mode}{}", if on { 'h' } else { 'l' }),
    };
    parser.process(sequence.as_bytes());
}

#[cfg(test)]
mod tests;
