//! Text as lines: wrapping and Markdown. Pure; all text is [sanitized](super::sanitize).

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::highlight::color;
use super::sanitize;
use super::theme::Theme;

/// Maximum depth of nesting that is indented.
const DEEP: usize = 8;
/// Minimum width of a table column, in terminal columns; tables with narrower ones are drawn as lists.
const CELL_MIN: usize = 6;
/// Maximum number of cells of a table; a larger one is drawn as lists.
const CELLS_MAX: usize = 4000;

/// Wraps sanitized spans into lines of at most `width` columns; `first` precedes the first line, `next` the others.
pub(crate) fn wrap(
    spans: &[Span<'static>],
    first: &Span<'static>,
    next: &Span<'static>,
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut out: Vec<Span<'static>> = vec![first.clone()];
    let space = |prefix: &Span<'static>| width.saturating_sub(prefix.content.width()).max(1);
    let mut left = space(first);
    let mut empty = true;
    // A word is the text between spaces, in any number of styles.
    let mut word: Vec<(String, Style)> = Vec::new();
    let mut word_width = 0;
    let put = |out: &mut Vec<Span<'static>>, text: &str, style: Style| match out.last_mut() {
        Some(last) if is_appendable(last) && last.style == style => last.content.to_mut().push_str(text),
        _ => out.push(Span::styled(text.to_owned(), style)),
    };
    let flush = |word: &mut Vec<(String, Style)>,
                 word_width: &mut usize,
                 out: &mut Vec<Span<'static>>,
                 left: &mut usize,
                 empty: &mut bool,
                 lines: &mut Vec<Line<'static>>| {
        if *word_width == 0 {
            return;
        }
        if *word_width > *left && !*empty && *word_width <= space(next) {
            lines.push(Line::from(std::mem::replace(out, vec![next.clone()])));
            (*left, *empty) = (space(next), true);
        }
        for (piece, style) in word.drain(..) {
            for letter in piece.graphemes(true) {
                let wide = letter.width();
                if wide > *left && !*empty {
                    lines.push(Line::from(std::mem::replace(out, vec![next.clone()])));
                    *left = space(next);
                }
                put(out, letter, style);
                *left = left.saturating_sub(wide);
                *empty = false;
            }
        }
        *word_width = 0;
    };
    for span in spans {
        for piece in span.content.split_word_bounds() {
            if piece == "\n" {
                flush(&mut word, &mut word_width, &mut out, &mut left, &mut empty, &mut lines);
                lines.push(Line::from(std::mem::replace(&mut out, vec![next.clone()])));
                (left, empty) = (space(next), true);
            } else if piece.starts_with(' ') {
                flush(&mut word, &mut word_width, &mut out, &mut left, &mut empty, &mut lines);
                for _ in 0..piece.width() {
                    if left > 0 {
                        put(&mut out, " ", span.style);
                        left -= 1;
                    }
                }
            } else {
                word_width += piece.width();
                word.push((piece.to_owned(), span.style));
            }
        }
    }
    flush(&mut word, &mut word_width, &mut out, &mut left, &mut empty, &mut lines);
    lines.push(Line::from(out));
    lines
}

/// Returns whether more text may be appended to a span: the prefix keeps its own style.
fn is_appendable(last: &Span<'static>) -> bool {
    !last.content.is_empty()
}

/// Plain text as lines.
pub(crate) fn plain(text: &str, style: Style, margin: &Span<'static>, width: usize) -> Vec<Line<'static>> {
    let text = sanitize::text(text);
    let mut lines = Vec::new();
    for line in text.trim_end_matches('\n').split('\n') {
        lines.extend(wrap(&[Span::styled(line.to_owned(), style)], margin, margin, width));
    }
    lines
}

/// Markdown as lines. Link targets are shown; nothing is fetched, and HTML is text.
pub(crate) fn markdown(text: &str, theme: &Theme, margin: &Span<'static>, width: usize) -> Vec<Line<'static>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = MarkdownWriter {
        theme,
        width,
        lines: Vec::new(),
        spans: Vec::new(),
        style: vec![theme.text],
        nest: vec![margin.clone()],
        bullet: None,
        lists: Vec::new(),
        link: Vec::new(),
        code: None,
        table: None,
        alignments: Vec::new(),
        gap: false,
    };
    for event in Parser::new_ext(text, options) {
        writer.event(event);
    }
    writer.end_block();
    writer.lines
}

struct MarkdownWriter<'a> {
    theme: &'a Theme,
    width: usize,
    lines: Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    style: Vec<Style>,
    /// The prefixes of each line, outermost first.
    nest: Vec<Span<'static>>,
    /// The prefix of the next line only, in place of the innermost.
    bullet: Option<Span<'static>>,
    lists: Vec<Option<u64>>,
    link: Vec<String>,
    code: Option<(String, String)>,
    table: Option<Vec<Vec<Vec<Span<'static>>>>>,
    /// The alignment of the table's columns.
    alignments: Vec<Alignment>,
    /// `true` if an empty line is due before the next block.
    gap: bool,
}

impl MarkdownWriter<'_> {
    fn top(&self) -> Style {
        self.style.last().copied().unwrap_or_default()
    }

    fn prefix(&self) -> Span<'static> {
        let text: String = self.nest.iter().take(DEEP).map(|span| span.content.as_ref()).collect();
        let style =
            self.nest.iter().rev().find(|span| !span.content.trim().is_empty()).map_or(self.theme.dim, |s| s.style);
        Span::styled(text, style)
    }

    fn blank(&mut self) {
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            self.lines.push(Line::from(self.prefix()));
        }
    }

    fn end_block(&mut self) {
        if self.spans.is_empty() && self.bullet.is_none() {
            return;
        }
        self.blank();
        let spans = std::mem::take(&mut self.spans);
        let next = self.prefix();
        let first = match self.bullet.take() {
            Some(bullet) if self.nest.len() <= DEEP => {
                let outer: String = self.nest[..self.nest.len() - 1].iter().map(|span| span.content.as_ref()).collect();
                Span::styled(format!("{outer}{}", bullet.content), bullet.style)
            }
            _ => next.clone(),
        };
        self.lines.extend(wrap(&spans, &first, &next, self.width));
    }

    fn text(&mut self, text: &str, style: Style) {
        self.spans.push(Span::styled(sanitize::text(text), style));
    }

    fn push(&mut self, change: impl FnOnce(Style) -> Style) {
        let style = change(self.top());
        self.style.push(style);
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text, self.top()),
            },
            Event::Code(text) => self.text(&text, self.theme.code),
            Event::Html(text) | Event::InlineHtml(text) => self.text(text.trim_end_matches('\n'), self.theme.dim),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, self.theme.code),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]"), self.theme.dim),
            // A line break in an agent's text is kept.
            Event::SoftBreak | Event::HardBreak => self.spans.push(Span::raw("\n")),
            Event::Rule => {
                self.end_block();
                self.blank();
                let rule = "─".repeat(self.width.saturating_sub(self.prefix().content.width()).min(40));
                self.lines.push(Line::from(vec![self.prefix(), Span::styled(rule, self.theme.rule)]));
                self.gap = true;
            }
            Event::TaskListMarker(done) => {
                let (mark, style) = if done { ("✔ ", self.theme.ok) } else { ("☐ ", self.theme.dim) };
                match &mut self.bullet {
                    Some(bullet) => *bullet = Span::styled(mark, style),
                    None => self.spans.push(Span::styled(mark, style)),
                }
            }
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.end_block();
                let style = match level {
                    HeadingLevel::H1 => self.theme.accent.add_modifier(Modifier::UNDERLINED),
                    HeadingLevel::H2 => self.theme.accent,
                    _ => self.theme.text.add_modifier(Modifier::BOLD),
                };
                self.style.push(style);
            }
            Tag::BlockQuote(_) => {
                self.end_block();
                self.blank();
                self.nest.push(Span::styled("▎ ", self.theme.dim));
                let dim = self.theme.dim;
                self.push(|_| dim);
            }
            Tag::CodeBlock(kind) => {
                self.end_block();
                let name = match kind {
                    CodeBlockKind::Fenced(name) => {
                        sanitize::line(name.split([' ', ',']).next().unwrap_or_default(), 20)
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((name, String::new()));
            }
            Tag::List(first) => {
                self.end_block();
                if !self.lists.is_empty() {
                    self.gap = false;
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_block();
                let bullet = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let bullet = format!("{number}. ");
                        *number += 1;
                        bullet
                    }
                    _ => "• ".to_owned(),
                };
                self.nest.push(Span::styled(" ".repeat(bullet.width()), self.theme.dim));
                self.bullet = Some(Span::styled(bullet, self.theme.accent));
            }
            Tag::Paragraph => self.end_if_text(),
            Tag::Emphasis => self.push(|style| style.add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.push(|style| style.add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.push(|style| style.add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } => {
                self.link.push(dest_url.into_string());
                self.push(|style| style.add_modifier(Modifier::UNDERLINED));
            }
            Tag::Image { dest_url, .. } => {
                self.link.push(dest_url.into_string());
                self.text("[image: ", self.theme.dim);
            }
            Tag::Table(alignments) => {
                self.end_block();
                self.alignments = alignments;
                self.table = Some(Vec::new());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(rows) = &mut self.table {
                    rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end_if_text(&mut self) {
        if !self.spans.is_empty() {
            self.end_block();
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.end_block();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.end_block();
                self.style.pop();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.end_block();
                self.nest.pop();
                self.style.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                if let Some((name, code)) = self.code.take() {
                    self.code_block(&name, &code);
                }
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.end_block();
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_block();
                self.nest.pop();
                self.gap = false;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.style.pop();
            }
            TagEnd::Link => {
                self.style.pop();
                if let Some(to) = self.link.pop()
                    && self.spans.last().is_none_or(|span| span.content.as_ref() != sanitize::text(&to))
                {
                    // The real target is shown, whatever the link text is.
                    self.text(&format!(" ({})", sanitize::line(&to, 200)), self.theme.dim);
                }
            }
            TagEnd::Image => {
                let to = self.link.pop().unwrap_or_default();
                self.text(&format!("] ({})", sanitize::line(&to, 200)), self.theme.dim);
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(row) = self.table.as_mut().and_then(|rows| rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(rows) = self.table.take() {
                    self.rows(&rows);
                }
                self.gap = true;
            }
            _ => {}
        }
    }

    fn code_block(&mut self, name: &str, code: &str) {
        self.blank();
        let bar = |nest: &Span<'static>| Span::styled(format!("{}│ ", nest.content), self.theme.rule);
        let prefix = bar(&self.prefix());
        if !name.is_empty() {
            self.lines.push(Line::from(vec![prefix.clone(), Span::styled(name.to_owned(), self.theme.dim)]));
        }
        let code = sanitize::text(code);
        for line in code.trim_end_matches('\n').split('\n') {
            let spans = color(line, name, self.theme);
            self.lines.extend(wrap(&spans, &prefix, &prefix, self.width));
        }
        self.bullet = None;
    }

    fn rows(&mut self, rows: &[Vec<Vec<Span<'static>>>]) {
        self.blank();
        let prefix = self.prefix();
        let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
        let space = self.width.saturating_sub(prefix.content.width() + columns.saturating_sub(1) * 3);
        let wide = |cell: &[Span<'static>]| cell.iter().map(|span| span.content.width()).sum::<usize>();
        if columns == 0 || space / columns.max(1) < CELL_MIN || rows.len() * columns > CELLS_MAX {
            for row in rows {
                for (n, cell) in row.iter().enumerate() {
                    let mark =
                        Span::styled(format!("{}{}", prefix.content, if n == 0 { "• " } else { "  " }), self.theme.dim);
                    self.lines.extend(wrap(cell, &mark, &mark, self.width));
                }
            }
            return;
        }
        let mut widths: Vec<usize> = (0..columns)
            .map(|n| rows.iter().filter_map(|row| row.get(n)).map(|cell| wide(cell)).max().unwrap_or(1).max(1))
            .collect();
        // The widest column shrinks until all fit.
        while widths.iter().sum::<usize>() > space {
            let Some(max) = widths.iter_mut().max() else { break };
            *max = (*max - 1).max(1);
        }
        let none = Span::raw("");
        for (n, row) in rows.iter().enumerate() {
            let cells: Vec<Vec<Line<'static>>> = (0..columns)
                .map(|at| wrap(row.get(at).map(Vec::as_slice).unwrap_or_default(), &none, &none, widths[at]))
                .collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
                let mut spans = vec![prefix.clone()];
                for (at, cell) in cells.iter().enumerate() {
                    if at > 0 {
                        spans.push(Span::styled(" │ ", self.theme.rule));
                    }
                    let part = cell.get(line).map(|line| line.spans.clone()).unwrap_or_default();
                    let left = widths[at].saturating_sub(wide(&part));
                    let before = match self.alignments.get(at) {
                        Some(Alignment::Right) => left,
                        Some(Alignment::Center) => left / 2,
                        Some(Alignment::None | Alignment::Left) | None => 0,
                    };
                    spans.push(Span::raw(" ".repeat(before)));
                    for mut span in part {
                        if n == 0 {
                            span.style = span.style.add_modifier(Modifier::BOLD);
                        }
                        spans.push(span);
                    }
                    spans.push(Span::raw(" ".repeat(left - before)));
                }
                self.lines.push(Line::from(spans));
            }
            if n == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.lines.push(Line::from(vec![prefix.clone(), Span::styled(rule.join("─┼─"), self.theme.rule)]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::theme::Depth;
    use super::*;

    fn drawn(text: &str, width: usize) -> String {
        let lines = markdown(text, &Theme::new(Depth::True, false), &Span::raw("  "), width);
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn markdown_is_laid_out() {
        let text = "# Title\n\nSome *words* that are **long** enough to be `wrapped` once.\n\n1. one\n2. two\n   - inner\n\n> quoted\n\n\
                     ```rust\nfn main() { let x = \"1\"; } // c\n```\n\n| a | b |\n|---|---|\n| 1 | 22 |\n\n- [x] done\n- [ ] open\n\n[here](http://x.example)\n";
        insta::assert_snapshot!(drawn(text, 40));
    }

    #[test]
    fn markdown_tables_align_their_columns() {
        let text = "| name | count | middle |\n|:--|--:|:-:|\n| a | 1 | x |\n| long name | 12345 | longer |\n";
        let drawn = drawn(text, 60);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], "  name      │ count │ middle", "{drawn}");
        assert_eq!(lines[2], "  a         │     1 │   x", "{drawn}");
        assert_eq!(lines[3], "  long name │ 12345 │ longer", "{drawn}");
    }

    #[test]
    fn markdown_stays_within_its_width_and_loses_no_word() {
        let text = "漢字 words 👩\u{200d}👧 and averyveryveryverylongwordwithoutanyspace | x |\n\n- a\n  - b\n    - c with more words in it\n\n```\nlong long long long code\n```";
        for width in [1, 2, 5, 12, 30, 200] {
            for line in markdown(text, &Theme::new(Depth::True, false), &Span::raw(""), width) {
                assert!(line.width() <= width.max(10), "{width}: {line}");
            }
        }
        let all: String = drawn(text, 12).chars().filter(|c| c.is_alphanumeric()).collect();
        assert!(all.contains("averyveryveryverylongwordwithoutanyspace"), "{all}");
    }

    #[test]
    fn markdown_shows_hostile_input_as_text() {
        let output = drawn("see <script>x</script> ![i](javascript:1) \x1b[31m [a](http://b\u{202e})", 200);
        assert_eq!(output, "  see <script>x</script> [image: i] (javascript:1) \\u{1b}[31m a (http://b\\u{202e})");
        // Deep nesting is bounded.
        assert!(drawn(&">".repeat(2000), 40).len() < 1 << 16);
    }
}
