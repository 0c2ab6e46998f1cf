//! The lines of a diff and the rows of the list, as they are drawn. Only visible ones are laid out. Pure.

use std::time::Duration;

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use similar::{ChangeTag, TextDiff};

use super::{ChangedItem, ChangesScreen, DiffRow, DiffRowKind, LoadedDiff};
use crate::markdown::wrap;
use crate::sanitize;
use crate::theme::Theme;

/// Maximum number of characters of a line that are drawn.
const LINE_SHOWN: usize = 2_000;
/// Maximum time for the comparison of the words of two lines; after it, they are not marked.
const WORDS_TIMEOUT: Duration = Duration::from_millis(20);
/// Width from which a line has both its old and its new number, in columns.
const TWO_NUMBERS: usize = 70;
/// Maximum number of lines of a comment in the diff.
const COMMENT_LINES: usize = 12;

/// The end of a path that does not fit: the name distinguishes files.
pub(crate) fn path_end(path: &str, max: usize) -> String {
    // Text far beyond the limit is skipped.
    let skipped = path.chars().count().saturating_sub(max.saturating_mul(2) + 64);
    let text = sanitize::text(&path.chars().skip(skipped).collect::<String>()).replace('\n', " ");
    if skipped == 0 && sanitize::width(&text) <= max {
        return text;
    }
    let chars: Vec<char> = text.chars().collect();
    let (mut from, mut used) = (chars.len(), 1);
    while from > 0 {
        used += sanitize::width(&chars[from - 1].to_string());
        if used > max {
            break;
        }
        from -= 1;
    }
    // A combining mark without its letter cannot be the beginning.
    while chars.get(from).is_some_and(|c| sanitize::width(&c.to_string()) == 0) {
        from += 1;
    }
    if max == 0 { String::new() } else { format!("…{}", chars[from..].iter().collect::<String>()) }
}

/// The marks of a file: whether it was viewed, how many comments it has, and whether it changed outside of the session.
fn marks(screen: &ChangesScreen, file: &ChangedItem, theme: &Theme) -> Vec<Span<'static>> {
    let mut out = Vec::new();
    match screen.draft.count(&file.path) {
        0 => {}
        count => out.push(Span::styled(format!(" “{}", count.min(99)), theme.user)),
    }
    if file.others.is_some() {
        out.push(Span::styled(" !", theme.warn));
    }
    match screen.draft.viewed(&file.path, &file.digest) {
        Some(true) => out.push(Span::styled(" ✔", theme.ok)),
        Some(false) => out.push(Span::styled(" ↻", theme.warn)),
        None => {}
    }
    out
}

/// A row of the list of files.
pub(crate) fn list_row(screen: &ChangesScreen, file: &ChangedItem, theme: &Theme, width: usize) -> Vec<Span<'static>> {
    let status = match file.status.0 {
        'A' => theme.ok,
        'D' => theme.bad,
        _ => theme.warn,
    };
    let mut right = Vec::new();
    match file.lines {
        Some((added, removed)) => {
            right.push(Span::styled(format!(" +{added}"), theme.ok));
            right.push(Span::styled(format!(" -{removed}"), theme.bad.remove_modifier(Modifier::BOLD)));
        }
        None => right.push(Span::styled(" not compared", theme.dim)),
    }
    right.extend(marks(screen, file, theme));
    let wide: usize = right.iter().map(|span| sanitize::width(&span.content)).sum();
    let space = width.saturating_sub(wide + 4);
    let path = path_end(&file.path, space);
    let pad = space.saturating_sub(sanitize::width(&path));
    let viewed = screen.draft.viewed(&file.path, &file.digest) == Some(true);
    let mut out = vec![
        Span::styled(format!(" {} ", file.status.0), status),
        Span::styled(path, if viewed { theme.dim } else { theme.text }),
        Span::raw(" ".repeat(pad)),
    ];
    out.extend(right);
    out
}

/// The text about a file above its diff.
pub(crate) fn file_text(screen: &ChangesScreen, file: &ChangedItem) -> String {
    let mut text = vec![file.status.1.to_owned()];
    if let Some(from) = &file.from {
        text.push(format!("was {}", path_end(from, 60)));
    }
    match file.others {
        Some(true) => text.push("changed outside the session".into()),
        Some(false) => text.push("also changed outside the session".into()),
        None => {}
    }
    match screen.draft.viewed(&file.path, &file.digest) {
        Some(true) => text.push("viewed".into()),
        Some(false) => text.push("changed since you viewed it".into()),
        None => {}
    }
    text.join(" · ")
}

/// The inputs of drawing the lines of a diff.
pub(crate) struct DiffPen<'a> {
    pub(crate) screen: &'a ChangesScreen,
    pub(crate) diff: &'a LoadedDiff,
    pub(crate) theme: &'a Theme,
    pub(crate) width: usize,
}

impl DiffPen<'_> {
    /// The screen lines of a line of the diff, and whether each belongs to the line itself: comments follow it.
    pub(crate) fn lines(&self, at: usize) -> Vec<(Line<'static>, bool)> {
        let Some(row) = self.diff.rows.rows.get(at) else { return Vec::new() };
        let theme = self.theme;
        let none = Span::raw(" ");
        let styled = |notice: &str, style: Style| {
            let cut: String = notice.chars().take(LINE_SHOWN).collect();
            Span::styled(sanitize::text(&cut).replace('\n', " "), style)
        };
        let text = self.diff.rows.text(at);
        let mut out: Vec<(Line<'static>, bool)> = Vec::new();
        match row.kind {
            DiffRowKind::Part => {
                let notice = sanitize::line(text, self.width.saturating_sub(2));
                out.push((Line::from(vec![none, Span::styled(notice, theme.busy)]), true));
            }
            DiffRowKind::NoNewline => {
                let margin = Span::raw(" ".repeat(self.margin()));
                let spans = [styled(text.trim_start(), theme.dim)];
                out.extend(wrap(&spans, &margin, &margin, self.width).into_iter().map(|line| (line, true)));
            }
            DiffRowKind::Same | DiffRowKind::Added | DiffRowKind::Removed => {
                let (first, next) = self.gutter(row);
                let mut spans = self.text(at, row);
                let beyond = text.chars().count().saturating_sub(LINE_SHOWN);
                if beyond > 0 {
                    spans.push(Span::styled(format!(" … and {beyond} more characters"), theme.dim));
                }
                out.extend(wrap(&spans, &first, &next, self.width).into_iter().map(|line| (line, true)));
            }
        }
        out.extend(self.comments(row).into_iter().map(|line| (line, false)));
        out
    }

    pub(crate) fn height(&self, at: usize) -> usize {
        self.lines(at).len()
    }

    /// The number of columns before the text of a line.
    pub(crate) fn margin(&self) -> usize {
        let digits = self.digits();
        1 + digits + 1 + if self.width >= TWO_NUMBERS { digits + 1 } else { 0 } + 2
    }

    fn digits(&self) -> usize {
        let last = self.diff.rows.rows.iter().rev().find(|row| row.anchor().is_some());
        last.map_or(1, |row| row.old.max(row.new)).to_string().len().clamp(3, 9)
    }

    fn gutter(&self, row: &DiffRow) -> (Span<'static>, Span<'static>) {
        let digits = self.digits();
        let number = |n: usize| if n == 0 { " ".repeat(digits) } else { format!("{n:>digits$}") };
        let numbers = match self.width >= TWO_NUMBERS {
            true => format!(" {} {} ", number(row.old), number(row.new)),
            false => format!(" {} ", number(if row.new > 0 { row.new } else { row.old })),
        };
        let next = Span::styled(" ".repeat(numbers.len() + 2), self.theme.dim);
        let mark = match row.kind {
            DiffRowKind::Added => "+ ",
            DiffRowKind::Removed => "- ",
            _ => "  ",
        };
        (Span::styled(format!("{numbers}{mark}"), self.theme.dim), next)
    }

    /// The text of a line, with its changed words marked.
    fn text(&self, at: usize, row: &DiffRow) -> Vec<Span<'static>> {
        let theme = self.theme;
        let (tag, (line, word)) = match row.kind {
            DiffRowKind::Added => (ChangeTag::Insert, theme.added),
            DiffRowKind::Removed => (ChangeTag::Delete, theme.removed),
            _ => (ChangeTag::Equal, (theme.text, theme.text)),
        };
        let text: String = self.diff.rows.text(at).chars().take(LINE_SHOWN).collect();
        let whole = || vec![Span::styled(sanitize::text(&text).replace('\n', " "), line)];
        let Some(counterpart) = row.counterpart else { return whole() };
        let other: String = self.diff.rows.text(counterpart).chars().take(LINE_SHOWN).collect();
        let (old, new) = if tag == ChangeTag::Delete { (&text, &other) } else { (&other, &text) };
        let compared = TextDiff::configure().timeout(WORDS_TIMEOUT).diff_lines(old.as_str(), new.as_str());
        let changes = compared.ops().iter().flat_map(|op| compared.iter_inline_changes(op));
        let Some(change) = changes.into_iter().find(|change| change.tag() == tag) else { return whole() };
        let spans = change.iter_strings_lossy().map(|(changed, piece)| {
            Span::styled(sanitize::text(&piece).replace('\n', " "), if changed { word } else { line })
        });
        spans.collect()
    }

    /// The comments that end at a line.
    fn comments(&self, row: &DiffRow) -> Vec<Line<'static>> {
        let (Some(anchor), Some(file)) = (row.anchor(), self.screen.file()) else { return Vec::new() };
        let theme = self.theme;
        let margin = Span::styled(format!("{}┃ ", " ".repeat(self.margin().saturating_sub(2))), theme.accent);
        let mut out = Vec::new();
        for one in self.screen.draft.at(&file.path, anchor) {
            let stale = if one.digest == file.digest { "" } else { " · the file changed after this comment" };
            let head = format!("your comment on {}{stale}", one.location());
            let head = sanitize::cut(&head, self.width.saturating_sub(self.margin() + 1));
            out.push(Line::from(vec![margin.clone(), Span::styled(head, theme.dim)]));
            let text = sanitize::text(&one.text);
            let lines: Vec<Line<'static>> = text
                .split('\n')
                .take(COMMENT_LINES + 1)
                .flat_map(|line| wrap(&[Span::styled(line.to_owned(), theme.user)], &margin, &margin, self.width))
                .collect();
            let more = lines.len() > COMMENT_LINES;
            out.extend(lines.into_iter().take(COMMENT_LINES));
            if more {
                out.push(Line::from(vec![margin.clone(), Span::styled("…", theme.dim)]));
            }
        }
        out
    }

    /// The scroll position at which the line at `row` is on the screen, if it is to be revealed.
    pub(crate) fn settled(&self, height: usize) -> (usize, usize) {
        let rows = self.diff.rows.rows.len();
        let (mut top, mut above) = self.screen.position.scroll;
        if rows == 0 || height == 0 {
            return (0, 0);
        }
        top = top.min(rows - 1);
        above = above.min(self.height(top).saturating_sub(1));
        let Some(row) = self.screen.row.filter(|row| self.screen.position.reveal && *row < rows) else {
            return (top, above);
        };
        if row <= top {
            // The heading of the part is included, if it is just above.
            let before = row.checked_sub(1).filter(|at| self.diff.rows.rows[*at].kind == DiffRowKind::Part);
            return (before.unwrap_or(row), 0);
        }
        let mut used = 0_usize;
        let is_below = (top..=row).any(|at| {
            used += self.height(at);
            used.saturating_sub(above) > height
        });
        if !is_below {
            return (top, above);
        }
        // A line far away is scrolled to the middle; the next line, to the end.
        let is_near = row - top <= height;
        let space = if is_near { height } else { height / 2 };
        let (mut first, mut used) = (row, self.height(row));
        while first > 0 && used + self.height(first - 1) <= space {
            first -= 1;
            used += self.height(first);
        }
        (first, 0)
    }

    /// The scroll position after scrolling by `by` screen lines.
    pub(crate) fn scrolled(&self, by: i64, height: usize) -> (usize, usize) {
        let (mut top, mut above) = self.screen.position.scroll;
        let rows = self.diff.rows.rows.len();
        let mut left = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
        if by < 0 {
            while left > 0 && (top > 0 || above > 0) {
                if above == 0 {
                    top -= 1;
                    above = self.height(top);
                }
                let step = left.min(above);
                (above, left) = (above - step, left - step);
            }
            return (top, above);
        }
        // The last line stays at the end of the screen.
        let (mut last, mut used) = (rows, 0);
        while last > 0 && used < height {
            last -= 1;
            used += self.height(last);
        }
        let end = (last, used.saturating_sub(height));
        while left > 0 && (top, above) < end {
            let rest = self.height(top).saturating_sub(above);
            let step = left.min(rest);
            (above, left) = (above + step, left - step);
            if step == rest {
                (top, above) = (top + 1, 0);
            }
        }
        (top, above).min(end)
    }

    /// The line of the diff at a screen line.
    pub(crate) fn at(&self, line: usize) -> Option<usize> {
        let (mut at, above) = self.screen.position.scroll;
        let mut left = line + above;
        while at < self.diff.rows.rows.len() {
            let high = self.height(at);
            if left < high {
                return Some(at);
            }
            (left, at) = (left - high, at + 1);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_end_keeps_the_name_of_a_file() {
        for (path, max, styled) in [
            ("src/main.rs", 20, "src/main.rs"),
            ("src/deep/folder/main.rs", 12, "…der/main.rs"),
            ("漢字漢字/x", 6, "…字/x"),
            ("a\nb\u{1b}[31m\u{202e}c", 40, "a b\\u{1b}[31m\\u{202e}c"),
            ("ab", 0, ""),
        ] {
            assert_eq!(path_end(path, max), styled, "{path:?}");
        }
        assert_eq!(path_end(&"x/".repeat(100_000), 5), "…x/x/");
    }
}
