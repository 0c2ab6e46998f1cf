//! Draws the pairing of a device, and the usage.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::markdown::wrap;
use crate::pages::draw::Draw;
use crate::pages::layout::NARROW;
use crate::pages::shared::Shared;
use crate::pairing::{LEVEL_ROW, LEVELS, PERMISSIONS, PairCode, PairStep, PairingSheet};
use crate::qr::qr_small;
use crate::theme::Depth;
use crate::usage::UsageSheet;

/// Maximum width of the window of a pairing without its picture, in columns.
const PAIRING_MAX: u16 = 74;
/// Width of the text beside the picture of a code, in columns.
const CODE_TEXT_WIDTH: u16 = 34;

/// The last line of the usage that can be the first one on the screen.
pub(crate) fn usage_end(shared: &Shared, sheet: &UsageSheet) -> usize {
    let (width, height) = (shared.size.0.saturating_sub(6), shared.size.1.saturating_sub(4));
    sheet.lines(&shared.theme, usize::from(width)).len().saturating_sub(usize::from(height))
}

impl Draw<'_> {
    pub(crate) fn usage(&mut self, sheet: &UsageSheet) {
        let shared = self.shared;
        let inside = self.window(shared.size.0, shared.size.1, "Usage · ↑↓ scroll · Esc");
        let lines = sheet.lines(&shared.theme, usize::from(inside.width));
        let from = sheet.scroll.min(usage_end(shared, sheet));
        for (n, line) in (0..inside.height).zip(lines.into_iter().skip(from)) {
            self.put(inside.x, inside.y + n, line, inside.width);
        }
    }

    pub(crate) fn pairing(&mut self, sheet: &PairingSheet) {
        match &sheet.step {
            PairStep::Choose { requested } => self.pairing_choice(sheet, *requested),
            PairStep::Code(code) => self.pairing_code(sheet, code),
            PairStep::Joined { name, number, confirmed, .. } => {
                let theme = self.shared.theme.clone();
                let mut lines = vec![
                    Line::from(vec![
                        Span::styled(format!("“{name}”"), theme.text.add_modifier(Modifier::BOLD)),
                        Span::raw(" wants to join, and shows a number."),
                    ]),
                    Line::from("Does it show this one?"),
                    Line::default(),
                    Line::from(Span::styled(
                        format!("  {number}  "),
                        theme.accent.add_modifier(Modifier::BOLD | Modifier::REVERSED),
                    )),
                    Line::default(),
                ];
                lines.push(match confirmed {
                    true => Line::from(Span::styled("Confirming …", theme.busy)),
                    false => Line::from(vec![
                        Span::styled(" y ", theme.warn.add_modifier(Modifier::REVERSED | Modifier::BOLD)),
                        Span::raw(" yes, the same   "),
                        Span::styled(" n ", theme.text.add_modifier(Modifier::REVERSED | Modifier::BOLD)),
                        Span::raw(" no: refuse"),
                    ]),
                });
                self.pairing_lines("Add a device", lines, &sheet.problem);
            }
            PairStep::Paired(name) => {
                let text = format!("✔ {name} is paired.");
                let style = self.shared.theme.ok;
                self.pairing_lines("Add a device · Esc", vec![Line::from(Span::styled(text, style))], &sheet.problem);
            }
            PairStep::Ended(why) => {
                let lines = vec![
                    Line::from(Span::styled(*why, self.shared.theme.warn)),
                    Line::default(),
                    Line::from("Enter begins again."),
                ];
                self.pairing_lines("Add a device · Esc", lines, &sheet.problem);
            }
        }
    }

    /// Draws a window with these lines, and the problem below them.
    fn pairing_lines(&mut self, title: &str, lines: Vec<Line<'static>>, problem: &str) {
        let shared = self.shared;
        let width = PAIRING_MAX.min(shared.size.0.saturating_sub(2));
        let none = Span::raw("");
        let space = usize::from(width.saturating_sub(4));
        let mut all: Vec<Line<'static>> =
            lines.into_iter().flat_map(|line| wrap(&line.spans, &none, &none, space)).collect();
        if !problem.is_empty() {
            all.push(Line::default());
            all.extend(wrap(&[Span::styled(problem.to_owned(), shared.theme.bad)], &none, &none, space));
        }
        let inside = self.window(width, u16::try_from(all.len()).unwrap_or(u16::MAX).saturating_add(2), title);
        for (n, line) in (0..inside.height).zip(all) {
            self.put(inside.x, inside.y + n, line, inside.width);
        }
    }

    fn pairing_choice(&mut self, sheet: &PairingSheet, requested: bool) {
        let theme = self.shared.theme.clone();
        let mark = |n: usize| if sheet.at == n { "› " } else { "  " };
        let name_style = |n: usize| if sheet.at == n { theme.text.add_modifier(Modifier::BOLD) } else { theme.text };
        let mut lines = vec![Line::from(Span::styled("What it may do", theme.dim))];
        let narrow = self.shared.size.0 < NARROW;
        for (n, ((_, name, what), on)) in PERMISSIONS.iter().zip(sheet.granted).enumerate() {
            let check_mark = if on { "[x] " } else { "[ ] " };
            let mut spans = vec![
                Span::styled(mark(n), theme.accent),
                Span::styled(check_mark, if on { theme.ok } else { theme.dim }),
                Span::styled(format!("{name:<19}"), name_style(n)),
            ];
            // A narrow screen explains only the selected one.
            if !narrow {
                spans.push(Span::styled(*what, theme.dim));
            }
            lines.push(Line::from(spans));
        }
        lines.push(Line::from(vec![
            Span::styled(mark(LEVEL_ROW), theme.accent),
            Span::styled("Approve up to ", name_style(LEVEL_ROW)),
            Span::styled(format!("‹ {} ›", LEVELS[sheet.level].1), theme.accent),
        ]));
        lines.push(Line::default());
        if narrow && let Some((_, name, what)) = PERMISSIONS.get(sheet.at) {
            lines.push(Line::from(Span::styled(format!("{name}: {what}"), theme.dim)));
        }
        lines.push(match requested {
            true => Line::from(Span::styled("Requesting a code …", theme.busy)),
            false => Line::from(vec![
                Span::styled("Enter", theme.accent),
                Span::raw(" show the code  "),
                Span::styled("Space", theme.accent),
                Span::raw(" change  "),
                Span::styled("←→", theme.accent),
                Span::raw(" level"),
            ]),
        });
        self.pairing_lines("Add a device · Esc", lines, &sheet.problem);
    }

    /// Draws the code: its picture, if there is space for it, and the instructions.
    fn pairing_code(&mut self, sheet: &PairingSheet, code: &PairCode) {
        let shared = self.shared;
        let theme = &shared.theme;
        let picture = qr_small(&code.url).unwrap_or_default();
        let size = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let (wide, high) = (size(picture.first().map_or(0, |line| line.chars().count())), size(picture.len()));
        let (width, height) = (shared.size.0.saturating_sub(2), shared.size.1.saturating_sub(2));
        let alone = width.min(PAIRING_MAX);
        let narrow = code_lines(shared, sheet, code, usize::from(alone.saturating_sub(4)), true);
        let is_side_by_side = high > 0 && width >= wide + CODE_TEXT_WIDTH + 6 && height >= high + 2;
        let below = high > 0 && !is_side_by_side && width >= wide + 4 && height >= high + 2 + size(narrow.len());
        let lines = match (is_side_by_side, below) {
            (true, _) => code_lines(shared, sheet, code, usize::from(CODE_TEXT_WIDTH), true),
            (_, true) => narrow,
            _ => code_lines(shared, sheet, code, usize::from(alone.saturating_sub(4)), false),
        };
        let (window_width, window_height) = match (is_side_by_side, below) {
            (true, _) => (wide + CODE_TEXT_WIDTH + 6, high.max(size(lines.len())) + 2),
            (_, true) => (alone, high + 2 + size(lines.len())),
            _ => (alone, size(lines.len()) + 2),
        };
        let inside = self.window(window_width, window_height, "Add a device · Esc");
        let mut at = (inside.x, inside.y, inside.width);
        if is_side_by_side || below {
            // Light blocks on dark, whatever colours the terminal has.
            let style = match theme.depth {
                Depth::None => Style::new(),
                Depth::Ansi | Depth::Indexed | Depth::True => Style::new().fg(Color::White).bg(Color::Black),
            };
            let x = if is_side_by_side { inside.x } else { inside.x + inside.width.saturating_sub(wide) / 2 };
            for (n, line) in (0..inside.height).zip(picture) {
                self.put(x, inside.y + n, Span::styled(line, style), wide);
            }
            at = match is_side_by_side {
                true => (inside.x + wide + 2, inside.y, inside.width.saturating_sub(wide + 2)),
                false => (inside.x, inside.y + high, inside.width),
            };
        }
        let end = inside.y + inside.height;
        for (y, line) in (at.1..end).zip(lines) {
            self.put(at.0, y, line, at.2);
        }
    }
}

/// The instructions for a code, the most needed first.
fn code_lines(
    shared: &Shared,
    sheet: &PairingSheet,
    code: &PairCode,
    space: usize,
    has_picture: bool,
) -> Vec<Line<'static>> {
    let theme = &shared.theme;
    let none = Span::raw("");
    let mut lines = Vec::new();
    let mut add = |text: String, style: Style| lines.extend(wrap(&[Span::styled(text, style)], &none, &none, space));
    let address = code.url.split('#').next().unwrap_or_default();
    add(format!("Code     {}", code.code), theme.accent.add_modifier(Modifier::BOLD));
    add(format!("Address  {address}"), theme.text);
    let left = ((code.expires - shared.now) / 1000).max(0);
    add(format!("Valid for {left} s, once. Waiting for the device …"), theme.busy);
    if !sheet.problem.is_empty() {
        add(sheet.problem.clone(), theme.bad);
    }
    if code.is_local() {
        let text = "Only this machine reaches this address. For a phone, run `plexus phone` in another terminal.";
        add(text.into(), theme.warn);
    }
    let text = match has_picture {
        true => "Scan it with the device’s camera, or open the address there and type the code.",
        false => "Open the address on the device and type the code. In a larger window there is a QR code.",
    };
    add(text.into(), theme.dim);
    lines
}
