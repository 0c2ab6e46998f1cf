//! The usage of agents: sums, bars by day, and rows by agent, project or session. Pure.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use plexus_client::calls::{self, ApiRequest};
use plexus_protocol::api::usage::{CeilingsView, UsageBy, UsageRow, UsageSums};
use plexus_protocol::{CeilingKind, RuntimeId, Spending, short_amount, short_count};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::ceilings;
use super::markdown::wrap;
use super::reply::CallReply;
use super::sanitize;
use super::theme::Theme;
use super::view_model::{line, optional_line};

/// The periods that can be chosen, in days, and their names.
pub(crate) const SPANS: [(i64, &str); 3] = [(1, "Today"), (7, "7 days"), (30, "30 days")];
/// The groupings of rows, and the heading of each.
pub(crate) const ROWS_BY: [(UsageBy, &str); 3] =
    [(UsageBy::Runtime, "agent"), (UsageBy::Project, "project"), (UsageBy::Session, "session")];
/// Maximum number of days that are listed.
const DAYS_MAX: usize = 100;
/// Maximum number of rows.
const ROWS_MAX: usize = 200;
/// Step of the time zone's offset that the gateway accepts, in minutes.
const OFFSET_STEP: i64 = 15;
/// Width of a figure, in columns.
const FIGURE: usize = 8;
/// Width of a cost, in columns: on a wide and on a narrow screen.
const COST: (usize, usize) = (14, 10);
/// Maximum width of a bar, in columns.
const BAR_MAX: usize = 60;

/// A row: its subject and its usage.
#[derive(Clone, Debug, PartialEq)]
struct UsageItem {
    name: String,
    more: String,
    day: String,
    spent: Spending,
}

/// A reply of the gateway.
#[derive(Clone, Debug, Default, PartialEq)]
struct UsageAnswer {
    rows: Vec<UsageItem>,
    total: Spending,
    from: String,
    to: String,
    known_since: String,
    truncated: bool,
}

/// The part of the usage that a reply has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsagePart {
    Days,
    Rows,
    /// The ceilings, which only administrators may see.
    Ceilings,
}

#[derive(Clone, Debug)]
pub(crate) struct UsageSheet {
    /// The number of the query: replies to earlier ones are ignored.
    pub(crate) serial: u64,
    span: usize,
    by: usize,
    /// The index of the measure of the bars: tokens, or the cost in a currency of the sum.
    measure: usize,
    days: Option<UsageAnswer>,
    rows: Option<UsageAnswer>,
    pub(crate) ceilings: Option<CeilingsView>,
    pub(crate) problem: String,
    pub(crate) scroll: usize,
}

/// The outcome of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UsageOutcome {
    Nothing,
    Close,
    Read,
    Set(CeilingKind),
}

impl UsageSheet {
    pub(crate) fn new(serial: u64) -> Self {
        Self {
            serial,
            span: 1,
            by: 0,
            measure: 0,
            days: None,
            rows: None,
            ceilings: None,
            problem: String::new(),
            scroll: 0,
        }
    }

    /// Handles a key; `end` is the last line that can be the first one on the screen.
    pub(crate) fn key(&mut self, name: &str, end: usize) -> UsageOutcome {
        let read = match name {
            "Esc" | "q" => return UsageOutcome::Close,
            "d" if self.ceilings.is_some() => return UsageOutcome::Set(CeilingKind::Day),
            "s" if self.ceilings.is_some() => return UsageOutcome::Set(CeilingKind::Session),
            "Left" | "h" if self.span > 0 => {
                self.span -= 1;
                true
            }
            "Right" | "l" if self.span + 1 < SPANS.len() => {
                self.span += 1;
                true
            }
            "Tab" => {
                self.by = (self.by + 1) % ROWS_BY.len();
                true
            }
            "S-Tab" => {
                self.by = (self.by + ROWS_BY.len() - 1) % ROWS_BY.len();
                true
            }
            "r" => true,
            "m" => {
                self.measure += 1;
                false
            }
            _ => false,
        };
        self.scroll = match name {
            "Down" | "j" => self.scroll + 1,
            "Up" | "k" => self.scroll.saturating_sub(1),
            "PageDown" | " " => self.scroll + 10,
            "PageUp" => self.scroll.saturating_sub(10),
            "End" | "G" => end,
            "Home" | "g" => 0,
            _ if read => 0,
            _ => self.scroll,
        }
        .min(end);
        if read { UsageOutcome::Read } else { UsageOutcome::Nothing }
    }

    /// The call that reads a part, for a moment in a time zone.
    pub(crate) fn request(&self, part: UsagePart, now: i64, zone: &TimeZone) -> ApiRequest {
        let now = Timestamp::from_millisecond(now).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned_datetime(zone.clone());
        let today = now.date();
        let from = today.checked_sub((SPANS[self.span].0 - 1).days()).unwrap_or(today);
        let offset = i64::from(now.offset().seconds()) / 60 / OFFSET_STEP * OFFSET_STEP;
        let (by, limit) = match part {
            UsagePart::Days => (UsageBy::Day, DAYS_MAX),
            UsagePart::Rows => (ROWS_BY[self.by].0, ROWS_MAX),
            UsagePart::Ceilings => return calls::ceilings().request,
        };
        let (from, to) = (from.to_string(), today.to_string());
        calls::usage(by, Some(&from), Some(&to), offset, Some(limit)).request
    }

    /// Applies a reply.
    pub(crate) fn on_reply(&mut self, part: UsagePart, reply: &CallReply) {
        if part == UsagePart::Ceilings {
            // A client without the permission does not see them.
            self.ceilings = reply.read().ok();
            return;
        }
        let answer = match reply.read::<UsageSums>() {
            Ok(sums) => Some(UsageAnswer::new(&sums)),
            Err(why) => {
                self.problem = format!("The usage could not be read: {why}");
                None
            }
        };
        if answer.is_some() {
            self.problem.clear();
        }
        match part {
            UsagePart::Days => self.days = answer,
            UsagePart::Rows => self.rows = answer,
            UsagePart::Ceilings => {}
        }
    }

    /// The lines of the screen.
    pub(crate) fn lines(&self, theme: &Theme, width: usize) -> Vec<Line<'static>> {
        let mut out = vec![choices(SPANS.iter().map(|(_, name)| *name), self.span, "←→", theme), Line::default()];
        let dim = |text: &str, out: &mut Vec<Line<'static>>| {
            let (none, text) = (Span::raw(""), [Span::styled(text.to_owned(), theme.dim)]);
            out.extend(wrap(&text, &none, &none, width));
        };
        if !self.problem.is_empty() {
            let (none, text) = (Span::raw(""), [Span::styled(format!("{}. r tries again.", self.problem), theme.bad)]);
            out.extend(wrap(&text, &none, &none, width));
            return out;
        }
        let (Some(days), Some(rows)) = (&self.days, &self.rows) else {
            dim("Reading …", &mut out);
            return out;
        };
        if rows.rows.is_empty() {
            dim("No usage was reported for these days.", &mut out);
            dim("Plexus sums up what agents report: docs/runtimes.md lists what each agent reports.", &mut out);
            if let Some(ceilings) = &self.ceilings {
                out.push(Line::default());
                out.extend(ceilings::lines(ceilings, theme, width));
            }
        } else {
            out.extend(sums(&rows.total, theme, width));
            out.extend(self.ceilings.iter().flat_map(|ceilings| ceilings::lines(ceilings, theme, width)));
            out.push(Line::default());
            self.bars(days, theme, width, &mut out);
            out.push(Line::default());
            let names = ROWS_BY.iter().map(|(_, name)| *name);
            out.push(choices(names, self.by, "Tab", theme));
            table(rows, theme, width, &mut out);
            if rows.truncated {
                dim(&format!("Only the first {} rows are shown.", rows.rows.len()), &mut out);
            }
            out.push(Line::default());
            dim(
                "Figures are reported by agents. “Read” includes cached tokens, “written” includes reasoning.",
                &mut out,
            );
        }
        if rows.known_since.get(..10) > Some(rows.from.as_str()) {
            let since = rows.known_since.get(..10).unwrap_or_default();
            dim(&format!("Counted since {since}. Earlier usage is unknown."), &mut out);
        }
        out
    }

    /// Draws a bar for each day.
    fn bars(&self, days: &UsageAnswer, theme: &Theme, width: usize, out: &mut Vec<Line<'static>>) {
        let has_tokens = days.total.input_tokens.is_some() || days.total.output_tokens.is_some();
        let mut measures: Vec<Option<&str>> = if has_tokens { vec![None] } else { Vec::new() };
        measures.extend(days.total.costs.iter().map(|cost| Some(cost.currency.as_str())));
        let Some(measure) = measures.get(self.measure % measures.len().max(1)).copied() else { return };
        let name = measure.map_or("tokens".to_owned(), |currency| format!("cost ({})", sanitize::line(currency, 3)));
        let mut head = vec![Span::styled(format!("By day: {name}"), theme.text.add_modifier(Modifier::BOLD))];
        if measures.len() > 1 {
            head.extend([Span::styled("   m", theme.accent), Span::styled(" tokens or cost", theme.dim)]);
        }
        out.push(Line::from(head));
        let value = |spent: &Spending| match measure {
            None => as_float(spent.tokens()),
            Some(currency) => spent.cost_in(currency).unwrap_or(0.0),
        };
        let highest = days.rows.iter().map(|row| value(&row.spent)).fold(0.0, f64::max);
        let space = width.saturating_sub(6 + 1 + FIGURE + 1).min(BAR_MAX);
        for day in days_between(&days.from, &days.to) {
            let spent = days.rows.iter().find(|row| row.day == day).map(|row| &row.spent);
            let amount = spent.map_or(0.0, value);
            let text = match (spent, measure) {
                (None, _) => String::new(),
                (Some(spent), None) => short_count(spent.tokens()),
                (Some(_), Some(_)) => short_amount(amount),
            };
            out.push(Line::from(vec![
                Span::styled(format!("{} ", day.get(5..).unwrap_or_default()), theme.dim),
                Span::styled(bar(amount, highest, space), theme.busy),
                Span::styled(format!(" {text}"), theme.text),
            ]));
        }
    }
}

fn as_float(count: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "the length of a bar")]
    let value = count as f64;
    value
}

/// A bar in eighths of a column.
fn bar(amount: f64, highest: f64, space: usize) -> String {
    if amount <= 0.0 || highest <= 0.0 {
        return String::new();
    }
    let full = as_float(u64::try_from(space * 8).unwrap_or_default());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the room")]
    let eighths = ((amount / highest).clamp(0.0, 1.0) * full).round() as usize;
    let eighths = eighths.max(1);
    let part = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'].get(eighths % 8).filter(|_| !eighths.is_multiple_of(8));
    "█".repeat(eighths / 8).chars().chain(part.copied()).collect()
}

fn costs(spent: &Spending) -> String {
    let all =
        spent.costs.iter().map(|cost| format!("{} {}", short_amount(cost.amount), sanitize::line(&cost.currency, 3)));
    all.collect::<Vec<_>>().join(" + ")
}

/// The days between two dates, at most as many as the longest period.
fn days_between(from: &str, to: &str) -> Vec<String> {
    let (Ok(from), Ok(to)) = (from.parse::<jiff::civil::Date>(), to.parse::<jiff::civil::Date>()) else {
        return Vec::new();
    };
    let highest = SPANS.iter().map(|(days, _)| usize::try_from(*days).unwrap_or_default()).max().unwrap_or_default();
    from.series(1.day()).take_while(|day| *day <= to).take(highest).map(|day| day.to_string()).collect()
}

/// A line of names of which one is chosen, and the key that chooses.
fn choices<'a>(names: impl Iterator<Item = &'a str>, at: usize, key: &str, theme: &Theme) -> Line<'static> {
    let mut spans = Vec::new();
    for (n, name) in names.enumerate() {
        let style = if n == at { theme.text.add_modifier(Modifier::REVERSED) } else { theme.dim };
        spans.push(Span::styled(format!(" {name} "), style));
        spans.push(Span::raw(" "));
    }
    spans.push(Span::styled(key.to_owned(), theme.accent));
    Line::from(spans)
}

/// Lays out the sums on as many lines as needed.
fn sums(total: &Spending, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let counts = [
        ("Read", total.input_tokens),
        ("of it cached", total.cached_read_tokens),
        ("Written", total.output_tokens),
        ("of it reasoning", total.reasoning_tokens),
    ];
    let counts = counts.into_iter().filter_map(|(name, count)| Some((name, short_count(count?))));
    let cost = Some(("Cost", costs(total))).filter(|(_, text)| !text.is_empty());
    let (mut lines, mut line, mut used) = (Vec::new(), Vec::new(), 0);
    for (name, text) in counts.chain(cost) {
        let wide = sanitize::width(name) + 1 + sanitize::width(&text) + 3;
        if used > 0 && used + wide > width {
            lines.push(Line::from(std::mem::take(&mut line)));
            used = 0;
        }
        used += wide;
        line.push(Span::styled(format!("{name} "), theme.dim));
        line.push(Span::styled(format!("{text}   "), theme.text.add_modifier(Modifier::BOLD)));
    }
    lines.push(Line::from(line));
    lines
}

/// Lays out the rows with their headings; a narrow screen leaves out the cached tokens.
fn table(rows: &UsageAnswer, theme: &Theme, width: usize, out: &mut Vec<Line<'static>>) {
    let has_cost = !rows.total.costs.is_empty();
    let cached = width >= 60;
    let cost = if cached { COST.0 } else { COST.1 };
    let figures = FIGURE * if cached { 3 } else { 2 } + if has_cost { cost } else { 0 };
    let name = width.saturating_sub(figures).clamp(8, 50);
    let line = |notice: [&str; 4]| {
        let mut text = String::new();
        for (at, notice) in notice.into_iter().enumerate() {
            let wide = if at == 3 { cost } else { FIGURE };
            if at == 1 && !cached || at == 3 && !has_cost {
                continue;
            }
            text.push_str(&format!("{notice:>wide$}"));
        }
        text
    };
    let pad = |notice: &str| {
        let notice = sanitize::cut(notice, name);
        format!("{notice}{}", " ".repeat(name.saturating_sub(sanitize::width(&notice))))
    };
    let heads = line(["read", "cached", "written", "cost"]);
    out.push(Line::from(Span::styled(format!("{}{heads}", " ".repeat(name)), theme.dim)));
    for row in &rows.rows {
        let figure = |count: Option<u64>| count.map_or_else(|| "–".to_owned(), short_count);
        let cost = Some(costs(&row.spent)).filter(|cost| !cost.is_empty()).unwrap_or_else(|| "–".to_owned());
        let spent = &row.spent;
        let counts = [figure(spent.input_tokens), figure(spent.cached_read_tokens), figure(spent.output_tokens), cost];
        out.push(Line::from(vec![
            Span::styled(pad(&row.name), theme.text),
            Span::styled(line([&counts[0], &counts[1], &counts[2], &counts[3]]), theme.text),
        ]));
        if !row.more.is_empty() {
            out.push(Line::from(Span::styled(
                format!("  {}", sanitize::cut(&row.more, width.saturating_sub(2))),
                theme.dim,
            )));
        }
    }
}

impl UsageAnswer {
    fn new(sums: &UsageSums) -> Self {
        Self {
            rows: sums.rows.iter().take(ROWS_MAX).map(|row| UsageItem::new(sums.by, row)).collect(),
            total: sums.total.clone(),
            from: line(&sums.from),
            to: line(&sums.to),
            known_since: sums.known_since.to_string(),
            truncated: sums.truncated,
        }
    }
}

impl UsageItem {
    fn new(by: UsageBy, row: &UsageRow) -> Self {
        let (runtime, project) =
            (optional_line(row.runtime_id.as_ref().map(RuntimeId::as_str)), optional_line(row.project.as_deref()));
        let (name, more) = match by {
            UsageBy::Session => {
                let title = optional_line(row.title.as_deref());
                let more: Vec<String> = [runtime, project].into_iter().filter(|text| !text.is_empty()).collect();
                (if title.is_empty() { "untitled".to_owned() } else { title }, more.join(" · "))
            }
            UsageBy::Project => (project, String::new()),
            UsageBy::Day | UsageBy::Runtime | UsageBy::Run => (runtime, String::new()),
        };
        Self { name, more, day: optional_line(row.day.as_deref()), spent: row.usage.clone() }
    }
}
