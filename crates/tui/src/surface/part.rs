//! Parts of a surface's layout: lines, and the controls in them.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::sanitize;

/// The key of a component on the screen: its id, and the list item in a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ComponentKey {
    pub(crate) id: String,
    pub(crate) instance: String,
}

/// A control, which determines the effect of keys.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    /// A button that sends an event, or shows an address.
    Button {
        event: Option<String>,
        url: Option<String>,
        /// `true` if one of its checks fails.
        blocked: bool,
    },
    Text {
        pointer: String,
        value: String,
        many_lines: bool,
        secret: bool,
    },
    Check {
        pointer: String,
        on: bool,
    },
    Choice {
        pointer: String,
        values: Vec<String>,
        chosen: Vec<String>,
        multiple: bool,
        at: usize,
    },
    Slider {
        pointer: String,
        min: f64,
        max: f64,
        value: f64,
    },
    Tabs {
        count: usize,
        at: usize,
    },
    /// A modal that opens and closes the part below it.
    Modal,
    Table {
        rows: usize,
        at: usize,
        /// The keys of the columns.
        columns: Vec<String>,
        column: usize,
        sort: Option<(String, bool)>,
        /// The index of the row under the cursor, and the event of selecting it.
        item: Option<usize>,
        event: Option<String>,
    },
    Tree {
        rows: usize,
        at: usize,
        /// The path under the cursor, and whether it is a folder.
        item: Option<(String, bool)>,
        event: Option<String>,
    },
}

/// A control that can have the focus.
#[derive(Clone, Debug)]
pub(crate) struct FocusTarget {
    pub(super) component: ComponentKey,
    /// The lines of the control; of one that scrolls, those around its cursor.
    pub(super) lines: Range<usize>,
    pub(super) control: Control,
    /// The meaning of a press here: after it changes, the next press has to wait.
    pub(super) meaning: String,
}

/// Lines and the focus targets in them.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) lines: Vec<Line<'static>>,
    pub(super) targets: Vec<FocusTarget>,
}

impl Part {
    pub(super) fn new(lines: Vec<Line<'static>>) -> Self {
        Self { lines, targets: Vec::new() }
    }

    pub(super) fn line(spans: Vec<Span<'static>>) -> Self {
        Self::new(vec![Line::from(spans)])
    }

    /// The width of the longest line, in columns.
    pub(super) fn width(&self) -> usize {
        self.lines.iter().map(line_width).max().unwrap_or(0)
    }

    /// Appends a part at the bottom.
    pub(super) fn append(&mut self, other: Self) {
        let by = self.lines.len();
        self.lines.extend(other.lines);
        self.targets.extend(other.targets.into_iter().map(|target| target.moved(by)));
    }

    /// Adds a margin before each line: `first` before the first, `next` before the others.
    pub(super) fn indented(mut self, first: &Span<'static>, next: &Span<'static>) -> Self {
        for (n, line) in self.lines.iter_mut().enumerate() {
            line.spans.insert(0, if n == 0 { first.clone() } else { next.clone() });
        }
        self
    }

    /// Joins parts side by side, each in its columns.
    pub(super) fn side_by_side(parts: Vec<(Self, usize)>, gap: usize) -> Self {
        let height = parts.iter().map(|(part, _)| part.lines.len()).max().unwrap_or(0);
        let mut out = Self::new(vec![Line::default(); height]);
        let last = parts.len().saturating_sub(1);
        for (n, (part, columns)) in parts.into_iter().enumerate() {
            let mut lines = part.lines.into_iter();
            for row in &mut out.lines {
                let line = lines.next().unwrap_or_default();
                let space = if n < last { (columns + gap).saturating_sub(line_width(&line)) } else { 0 };
                row.spans.extend(line.spans);
                if space > 0 {
                    row.spans.push(Span::raw(" ".repeat(space)));
                }
            }
            out.targets.extend(part.targets);
        }
        out
    }

    /// The text of all lines, on one line.
    pub(super) fn text(&self) -> String {
        let lines =
            self.lines.iter().map(|line| line.spans.iter().map(|span| span.content.as_ref()).collect::<String>());
        lines.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl FocusTarget {
    fn moved(self, by: usize) -> Self {
        Self { lines: self.lines.start + by..self.lines.end + by, ..self }
    }
}

/// The width of a line, in columns.
pub(super) fn line_width(line: &Line<'_>) -> usize {
    line.spans.iter().map(|span| sanitize::width(&span.content)).sum()
}

/// Draws a widget as lines.
pub(super) fn drawn(width: usize, height: usize, draw: impl FnOnce(Rect, &mut Buffer)) -> Vec<Line<'static>> {
    let side = |n: usize| u16::try_from(n).unwrap_or(u16::MAX).clamp(1, 500);
    let area = Rect::new(0, 0, side(width), side(height));
    let mut buffer = Buffer::empty(area);
    draw(area, &mut buffer);
    let row = |cells: &[ratatui::buffer::Cell]| {
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut skip = 0;
        for cell in cells {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            skip = sanitize::width(cell.symbol()).saturating_sub(1);
            // A field that is being edited contains the agent's text unchanged.
            let symbol = if sanitize::printable(cell.symbol()) { cell.symbol() } else { "?" };
            let style = Style::new().fg(cell.fg).bg(cell.bg).add_modifier(cell.modifier);
            match spans.last_mut() {
                Some(last) if last.style == style => last.content.to_mut().push_str(symbol),
                _ => spans.push(Span::styled(symbol.to_owned(), style)),
            }
        }
        Line::from(spans)
    };
    buffer.content.chunks(usize::from(area.width)).map(row).collect()
}
