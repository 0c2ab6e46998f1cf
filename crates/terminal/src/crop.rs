//! A screen in a window of another size: the part around the cursor. Only characters, colors and the cursor's position
//! are drawn, so that output of the program cannot act on the terminal of a viewer.

use std::fmt::Write as _;

use vt100::{Cell, Color, Screen};

use crate::model::TerminalSize;

/// The part of a screen that is drawn in a window.
#[derive(Debug)]
pub(crate) struct Crop {
    window: TerminalSize,
    /// The lines as they were drawn; empty before the first.
    drawn: Vec<String>,
    /// The first line and column of the shown part.
    first: (u16, u16),
    /// `true` if keyboard modes are set, because the user types in this window.
    types: bool,
    keys: (bool, bool, bool),
}

impl Crop {
    /// Makes an empty window; `types` is `true` if typed input is sent to the program.
    pub(crate) fn new(window: TerminalSize, types: bool) -> Self {
        Self { window, drawn: Vec::new(), first: (0, 0), types, keys: (false, false, false) }
    }

    /// Returns output that draws the changes.
    pub(crate) fn draw(&mut self, screen: &Screen) -> String {
        let mut out = String::new();
        let (rows, cols) = screen.size();
        let (row, column) = screen.cursor_position();
        let cursor = (row, column.min(cols.get() - 1));
        self.first = (
            part(self.first.0, cursor.0, self.window.rows, rows.get()),
            part(self.first.1, cursor.1, self.window.cols, cols.get()),
        );
        if self.drawn.is_empty() {
            out.push_str("\x1b[0m\x1b[H\x1b[2J");
            self.drawn = vec![String::new(); usize::from(self.window.rows)];
        }
        for (at, drawn) in self.drawn.iter_mut().enumerate() {
            let row = self.first.0.saturating_add(u16::try_from(at).unwrap_or(u16::MAX));
            let line = line(screen, row, self.first.1, self.window.cols);
            if line != *drawn {
                let _ = write!(out, "\x1b[{};1H\x1b[0m\x1b[2K{line}", at + 1);
                *drawn = line;
            }
        }
        out.push_str("\x1b[0m");
        self.set_keys(screen, &mut out);
        let _ = write!(out, "\x1b[{};{}H", cursor.0 - self.first.0 + 1, cursor.1 - self.first.1 + 1);
        out.push_str(if screen.hide_cursor() { "\x1b[?25l" } else { "\x1b[?25h" });
        out
    }

    /// Sets how keys and pastes are sent, as the program requires.
    fn set_keys(&mut self, screen: &Screen, out: &mut String) {
        let keys = (screen.application_cursor(), screen.application_keypad(), screen.bracketed_paste());
        if !self.types || keys == self.keys {
            return;
        }
        self.keys = keys;
        out.push_str(if keys.0 { "\x1b[?1h" } else { "\x1b[?1l" });
        out.push_str(if keys.1 { "\x1b=" } else { "\x1b>" });
        out.push_str(if keys.2 { "\x1b[?2004h" } else { "\x1b[?2004l" });
    }
}

/// Returns the start of the part around the cursor; it moves no further than necessary.
fn part(first: u16, cursor: u16, window: u16, whole: u16) -> u16 {
    let last = whole.saturating_sub(window);
    let min = cursor.saturating_sub(window.saturating_sub(1));
    first.clamp(min.min(last), cursor.min(last))
}

/// Draws a part of a line, without the blanks at its end.
fn line(screen: &Screen, row: u16, first: u16, width: u16) -> String {
    let mut out = String::new();
    let mut attributes = String::new();
    // The end of the last visible cell.
    let mut end = 0;
    for column in first..first.saturating_add(width) {
        let Some(cell) = screen.cell(row, column) else { break };
        if cell.is_wide_continuation() && column > first {
            continue;
        }
        let now = sgr(cell);
        if now != attributes {
            out.push_str("\x1b[0");
            out.push_str(&now);
            out.push('m');
            attributes = now;
        }
        // A wide character that is cut in two is not visible.
        let is_cut = cell.is_wide_continuation() || cell.is_wide() && column + 1 >= first.saturating_add(width);
        if is_cut || !cell.has_contents() {
            out.push(' ');
        } else {
            out.push_str(cell.contents());
        }
        if cell.has_contents() && cell.contents() != " " || !attributes.is_empty() {
            end = out.len();
        }
    }
    out.truncate(end);
    out
}

/// Returns the attributes of a cell, each after a semicolon; empty if it has none.
fn sgr(cell: &Cell) -> String {
    let mut out = String::new();
    for (is_set, code) in
        [(cell.bold(), 1), (cell.dim(), 2), (cell.italic(), 3), (cell.underline(), 4), (cell.inverse(), 7)]
    {
        if is_set {
            let _ = write!(out, ";{code}");
        }
    }
    for (color, base) in [(cell.fgcolor(), 38_u16), (cell.bgcolor(), 48)] {
        match color {
            Color::Default => {}
            // The first sixteen colors in the form of programs: many terminals draw them brighter if they are bold.
            Color::Idx(index @ 0..8) => drop(write!(out, ";{}", base - 8 + u16::from(index))),
            Color::Idx(index @ 8..16) => drop(write!(out, ";{}", base + 52 + u16::from(index) - 8)),
            Color::Idx(index) => drop(write!(out, ";{base};5;{index}")),
            Color::Rgb(red, green, blue) => drop(write!(out, ";{base};2;{red};{green};{blue}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    fn size(rows: u16, cols: u16) -> TerminalSize {
        TerminalSize { rows, cols }
    }

    /// Returns the content of a window of this size after each of these pieces of output.
    fn shown(program: TerminalSize, window: TerminalSize, pieces: &[&str]) -> Model {
        let (mut model, mut looks) = (Model::new(program, 0), Model::new(window, 0));
        let mut crop = Crop::new(window, true);
        for piece in pieces {
            model.feed(piece.as_bytes());
            looks.feed(crop.draw(model.screen()).as_bytes());
        }
        looks
    }

    #[test]
    fn window_of_the_same_size_shows_the_same() {
        let pieces =
            ["\x1b[1;31mred\x1b[0m plain\r\n", "漢字 wide\r\n", "\x1b[2;3Hx\x1b[?25l", "\x1b[44m  \x1b[0m\x1b[?2004h"];
        let looks = shown(size(6, 20), size(6, 20), &pieces);
        let mut whole = Model::new(size(6, 20), 0);
        whole.feed(pieces.concat().as_bytes());
        assert_eq!(looks.screen().contents(), whole.screen().contents());
        assert_eq!(looks.screen().cursor_position(), whole.screen().cursor_position());
        assert!(looks.screen().hide_cursor() && looks.screen().bracketed_paste());
        for (row, column) in [(0, 0), (0, 5), (1, 0), (1, 4)] {
            let of =
                |model: &Model| model.screen().cell(row, column).map(|cell| (cell.contents().to_owned(), sgr(cell)));
            assert_eq!(of(&looks), of(&whole), "{row} {column}");
        }
    }

    #[test]
    fn smaller_window_shows_the_part_around_the_cursor() {
        let text: String = (0..10).map(|line| format!("{line:02} abcdefghij\r\n")).collect();
        let looks = shown(size(12, 20), size(4, 6), &[&text]);
        assert_eq!(looks.screen().contents(), "07 abc\n08 abc\n09 abc");
        let looks = shown(size(12, 20), size(4, 6), &[&text, "\x1b[1;13H"]);
        assert_eq!(looks.screen().contents(), "efghij\nefghij\nefghij\nefghij");
        assert_eq!(looks.screen().cursor_position(), (0, 5));
        let looks = shown(size(3, 10), size(5, 20), &["small\r\n\r\nend"]);
        assert_eq!(looks.screen().contents(), "small\n\nend");
        let looks = shown(size(3, 10), size(3, 3), &["a漢字\x1b[1;1H"]);
        assert_eq!(looks.screen().contents(), "a漢");
        let looks = shown(size(3, 10), size(3, 2), &["a漢字\x1b[1;1H"]);
        assert_eq!(looks.screen().contents().trim_end(), "a", "a wide character is not cut in two");
    }

    #[test]
    fn colours_are_written_as_programs_write_them() {
        for sgr in ["31", "37", "90", "97", "41", "47", "100", "107", "38;5;16", "48;5;255", "38;2;1;2;3"] {
            let mut model = Model::new(size(1, 4), 0);
            model.feed(format!("\x1b[{sgr}mx").as_bytes());
            let out = Crop::new(size(1, 4), false).draw(model.screen());
            assert!(out.contains(&format!(";{sgr}m")), "{sgr}: {out:?}");
        }
    }

    #[test]
    fn drawing_alone_is_written() {
        let (mut model, window) = (Model::new(size(4, 20), 0), size(4, 20));
        model.feed(b"a\x1b]0;t\x07\x1b]52;c;eA==\x07\x1b[6n\x1b[?1000h\x1b]8;;http://x\x07l");
        let out = Crop::new(window, false).draw(model.screen());
        assert!(!out.contains("\x1b]") && !out.contains("6n") && !out.contains("?1000"), "{out:?}");
    }
}
