//! Draws a conversation as lines.

use super::*;

/// Maximum number of tool calls in the pane beside the conversation.
const DETAIL_TOOLS: usize = 12;
/// Number of calls that the line of a group names: the latest ones.
const GROUP_TITLES: usize = 6;

impl Conversation {
    pub(super) fn visible(&self, at: usize, cx: &DrawContext<'_>) -> bool {
        let (top, offset) = self.top(cx);
        if at < top || (at == top && offset > 0) {
            return false;
        }
        let above: usize = (top..at).map(|n| self.lines_of(n, cx)).sum::<usize>().saturating_sub(offset);
        above + 1 < cx.height
    }

    /// Toggles the folding of the selected block, or of the last foldable one on the screen.
    pub(crate) fn toggle_fold(&mut self, cx: &DrawContext<'_>) {
        let list = self.list();
        let chosen = self
            .scroll_position
            .chosen
            .map(|id| self.at(id))
            .or_else(|| (0..list.len()).rev().take(200).find(|at| self.can_fold(*at) && self.visible(*at, cx)));
        let Some(at) = chosen else { return };
        let group = self.group_at(at);
        let (list, reads) = match &mut self.history.older {
            None => (&mut self.blocks, &mut self.reads),
            Some(older) => (&mut older.blocks, &mut older.reads),
        };
        let block = &mut list[at];
        match group {
            Some((_, false)) => reads.toggle(block.id),
            // The first call has the line that represents all: after its own details, all are folded again.
            Some((group, true)) if group.first == block.id && (block.toggled || !block.folds()) => {
                block.toggled = false;
                reads.toggle(block.id);
            }
            _ => block.toggled = !block.toggled,
        }
        *block.drawn.borrow_mut() = None;
        self.scroll_position.chosen = Some(block.id);
    }

    /// Changes the default folding.
    pub(crate) fn refold(&mut self, change: impl FnOnce(&mut FoldDefaults)) {
        change(&mut self.folds);
        self.reads.refold();
        self.history.older.iter_mut().for_each(|older| older.reads.refold());
        for block in self.blocks.iter_mut().chain(self.history.older.iter_mut().flat_map(|older| &mut older.blocks)) {
            block.toggled = false;
            *block.drawn.borrow_mut() = None;
        }
    }

    /// The lines on the screen, each with whether its block is selected.
    pub(crate) fn screen(&self, cx: &DrawContext<'_>) -> Vec<(Line<'static>, bool)> {
        let mut out = Vec::new();
        let (top, mut offset) = self.top(cx);
        let drawn = self.list().iter().filter(|block| block.drawn.borrow().is_some()).count();
        for (at, block) in self.list().iter().enumerate().skip(top) {
            let lines = self.lines(at, cx);
            for (n, line) in lines.iter().enumerate().skip(offset) {
                let gap = n == 0 && line.spans.is_empty();
                out.push((line.clone(), self.scroll_position.chosen == Some(block.id) && !gap));
                if out.len() >= cx.height {
                    // Blocks far from the screen are laid out again when the user scrolls there.
                    if drawn > CACHE_MAX {
                        for (n, block) in self.list().iter().enumerate() {
                            if n + 50 < top || n > at + 50 {
                                *block.drawn.borrow_mut() = None;
                            }
                        }
                    }
                    return out;
                }
            }
            offset = 0;
        }
        out
    }

    /// The notice above the first line.
    pub(crate) fn before(&self) -> Option<&'static str> {
        if self.history.fetching {
            Some("loading older messages …")
        } else if self.history.older.is_some() {
            Some("older")
        } else if self.bounds.trimmed && self.history.previous.is_none() {
            Some("the beginning is no longer stored")
        } else {
            None
        }
    }

    /// The scroll position as a fraction of 1.
    pub(crate) fn scroll_fraction(&self, cx: &DrawContext<'_>) -> f32 {
        let (top, _) = self.top(cx);
        // The size of the unloaded history is unknown: one page is assumed.
        let (before, above) = match &self.history.older {
            Some(older) => (PAGE, top * PAGE / older.blocks.len().max(1)),
            None if self.history.previous.is_some() => (PAGE, PAGE + top),
            None => (0, top),
        };
        #[expect(clippy::cast_precision_loss, reason = "a place on a scroll bar")]
        let fraction = above as f32 / (before + self.blocks.len()).max(1) as f32;
        fraction
    }

    pub(super) fn lines(&self, at: usize, cx: &DrawContext<'_>) -> Rc<Vec<Line<'static>>> {
        let list = self.list();
        let block = &list[at];
        let is_compact =
            |body: &BlockBody| matches!(body, BlockBody::Tool { .. } | BlockBody::Request(_) | BlockBody::Note { .. });
        let continued = matches!(block.body, BlockBody::Text { continued: true, .. });
        let above = at.checked_sub(1).filter(|above| !self.is_hidden(*above)).map(|above| &list[above].body);
        let close = |above: &BlockBody| continued || is_compact(&block.body) && is_compact(above);
        let gap = above.is_some_and(|above| !close(above));
        // The parent is named unless it, or another block that belongs to it, is right above.
        let named = block.above.as_ref().filter(|call| {
            let before = at.checked_sub(1).and_then(|n| list.get(n));
            !before.is_some_and(|before| {
                self.tools.get(&call.id) == Some(&before.id)
                    || before.above.as_ref().is_some_and(|other| other.id == call.id)
            })
        });
        let group = self.group_at(at);
        let made_for = DrawnFor { width: cx.width, gap, named: named.is_some(), group };
        if self.is_hidden(at) || matches!(group, Some((group, false)) if group.first != block.id) {
            return Rc::default();
        }
        // A relative time changes by itself, so such blocks are not cached.
        let cacheable =
            !matches!(block.body, BlockBody::Request(_)) && !matches!(block.body, BlockBody::Tool { until: 0, .. });
        if let Some((same, lines)) = &*block.drawn.borrow()
            && cacheable
            && *same == made_for
        {
            return Rc::clone(lines);
        }
        let mut lines = if gap { vec![Line::default()] } else { Vec::new() };
        match &block.above {
            None => self.draw(block, cx, &mut lines),
            Some(above) => {
                let margin = u16::try_from(2 * above.depth).unwrap_or(u16::MAX).min(cx.width / 3);
                let inner = DrawContext { width: cx.width - margin, ..*cx };
                if let Some(above) = named {
                    let text = sanitize::cut(&above.title, usize::from(inner.width).saturating_sub(8));
                    lines.push(Line::from(Span::styled(format!("  ↳ in {text}"), cx.theme.dim)));
                }
                self.draw(block, &inner, &mut lines);
                let margin = " ".repeat(usize::from(margin));
                for line in lines.iter_mut().skip(usize::from(gap)) {
                    line.spans.insert(0, Span::raw(margin.clone()));
                }
            }
        }
        let lines = Rc::new(lines);
        *block.drawn.borrow_mut() = Some((made_for, Rc::clone(&lines)));
        lines
    }

    fn draw(&self, block: &Block, cx: &DrawContext<'_>, out: &mut Vec<Line<'static>>) {
        let theme = cx.theme;
        let width = usize::from(cx.width);
        let margin = Span::raw("  ");
        match &block.body {
            BlockBody::Text { who: Role::User, text, .. } => {
                let lines =
                    plain(text, theme.text.add_modifier(Modifier::BOLD), &Span::styled("▌ ", theme.user), width);
                let all = lines.len();
                let max = if block.toggled { usize::MAX } else { USER_FOLDED };
                out.extend(lines.into_iter().take(max));
                if all > max {
                    out.push(more(all - max, "more", theme));
                }
            }
            BlockBody::Text { who: Role::Agent, text, .. } => out.extend(markdown(text, theme, &margin, width)),
            BlockBody::Text { who: Role::Thought, text, .. } => {
                let open = self.folds.thoughts != block.toggled;
                let style = theme.dim.add_modifier(Modifier::ITALIC);
                let lines = text.lines().count().max(1);
                let first = sanitize::line(text.trim_start(), width.saturating_sub(26));
                let head = if open { "thought".to_owned() } else { format!("thought: {first}") };
                let mut spans =
                    vec![Span::styled(if open { "  ▾ " } else { "  ▸ " }, theme.dim), Span::styled(head, style)];
                if !open && lines > 1 {
                    spans.push(Span::styled(format!("  ({lines} lines)"), theme.dim));
                }
                out.push(Line::from(spans));
                if open {
                    out.extend(plain(text, style, &Span::styled("  │ ", theme.rule), width));
                }
            }
            BlockBody::Tool { .. } => {
                let group = self.group_at(self.at(block.id)).filter(|(group, _)| group.first == block.id);
                if let Some((group, open)) = group {
                    out.push(self.group_head(&group, open, cx));
                }
                if group.is_none_or(|(_, open)| open) {
                    self.draw_tool(block, cx, out);
                }
            }
            BlockBody::Plan(entries) => draw_plan(entries, cx, out),
            BlockBody::Request(id) => {
                let Some((ask, outcome)) = self.asks.get(id) else { return };
                let title = sanitize::line(ask.display.split('\n').next().unwrap_or(&ask.title), width);
                let (mark, head, style) = match outcome {
                    None if self.live => ("?", "waiting for an answer".to_owned(), theme.warn),
                    None => ("?", "asked".to_owned(), theme.dim),
                    Some(outcome) => {
                        let (mark, style) = match outcome.allowed() {
                            Some(true) => ("✔", theme.ok),
                            Some(false) => ("✘", theme.warn),
                            None => ("–", theme.dim),
                        };
                        (mark, outcome.text(cx.now), style)
                    }
                };
                let space = width.saturating_sub(4 + sanitize::width(&head) + 3);
                out.push(Line::from(vec![
                    Span::styled(format!("  {mark} {head}"), style),
                    Span::styled(format!(" · {}", sanitize::cut(&title, space)), theme.dim),
                ]));
            }
            BlockBody::Ended { status, text, took } => {
                let (word, style) = match status {
                    RunStatus::Completed => ("done", theme.dim),
                    RunStatus::Cancelled => ("cancelled", theme.warn),
                    RunStatus::Error
                    | RunStatus::Queued
                    | RunStatus::Running
                    | RunStatus::AwaitingUi
                    | RunStatus::Unknown => ("failed", theme.bad),
                };
                let took = if *took >= 1000 { format!(" · {}", span(*took)) } else { String::new() };
                let text = if text.is_empty() { String::new() } else { format!(": {text}") };
                let head = sanitize::cut(&format!("{word}{took}{text} "), width.saturating_sub(8));
                let rest = "─".repeat(width.saturating_sub(5 + sanitize::width(&head)).min(200));
                out.push(Line::from(vec![
                    Span::styled("  ── ", theme.rule),
                    Span::styled(head, style),
                    Span::styled(rest, theme.rule),
                ]));
            }
            BlockBody::Surface(name) => self.draw_surface(block, name, cx, out),
            BlockBody::Note { bad, text, .. } => {
                let (mark, style) = if *bad { ("  ! ", theme.bad) } else { ("  · ", theme.dim) };
                let text_style: Style = if *bad { theme.bad } else { theme.dim };
                let spans = [Span::styled(text.clone(), text_style)];
                out.extend(super::super::markdown::wrap(&spans, &Span::styled(mark, style), &Span::raw("    "), width));
            }
        }
    }

    /// Draws the first lines of a surface, in a frame that names its agent.
    fn draw_surface(&self, block: &Block, name: &str, cx: &DrawContext<'_>, out: &mut Vec<Line<'static>>) {
        let (theme, width) = (cx.theme, usize::from(cx.width));
        let surface = self.surfaces.get(name);
        let title = surface.map_or_else(|| sanitize::line(name, FIELD), surface::title);
        let latest = self.drawn.blocks.get(name) == Some(&block.id);
        let Some(surface) = surface.filter(|_| latest) else {
            let why = if surface.is_some() { "shown again below" } else { "closed" };
            let text = sanitize::cut(&title, width.saturating_sub(28));
            return out.push(Line::from(Span::styled(format!("  · surface {text} ({why})"), theme.dim)));
        };
        let open = block.toggled;
        let max = if open { SURFACE_UNFOLDED } else { SURFACE_FOLDED };
        let (lines, more) = surface::inline(surface, theme, width.saturating_sub(4), max);
        let agent = sanitize::cut(self.agent(), 20);
        let pinned = if surface.pinned() { " · pinned" } else { "" };
        let space = width.saturating_sub(13 + sanitize::width(&agent) + pinned.len());
        out.push(Line::from(vec![
            Span::styled("  ┌ ", theme.rule),
            Span::styled(format!("{agent} draws "), theme.dim),
            Span::styled(sanitize::cut(&title, space), theme.accent),
            Span::styled(pinned, theme.dim),
        ]));
        for mut line in lines {
            line.spans.insert(0, Span::styled("  │ ", theme.rule));
            out.push(line);
        }
        let hint = match (surface.ask().is_some(), more) {
            (true, _) => "it asks you · s: open and answer".to_owned(),
            (false, 0) => "s: open".to_owned(),
            (false, more) => format!("s: open · {more} more lines"),
        };
        let style = if surface.ask().is_some() { theme.warn } else { theme.dim };
        let hint = sanitize::cut(&hint, width.saturating_sub(4));
        out.push(Line::from(vec![Span::styled("  └ ", theme.rule), Span::styled(hint, style)]));
    }

    /// The plan and the latest tool calls, for the pane beside the conversation: as many as fit.
    pub(crate) fn detail(&self, cx: &DrawContext<'_>) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let plan = self.blocks.iter().rev().find(|block| matches!(block.body, BlockBody::Plan(_)));
        if let Some(BlockBody::Plan(entries)) = plan.map(|block| &block.body) {
            lines.push(Line::default());
            draw_plan(entries, cx, &mut lines);
        }
        let space = cx.height.saturating_sub(lines.len() + 2).min(DETAIL_TOOLS);
        let calls = self.blocks.iter().rev().filter(|block| matches!(block.body, BlockBody::Tool { .. }));
        let mut heads: Vec<Line<'static>> = calls.take(space).filter_map(|block| self.tool_head(block, cx)).collect();
        if !heads.is_empty() {
            lines.push(Line::default());
            lines.push(Line::from(Span::styled("  Latest tool calls", cx.theme.dim)));
            heads.reverse();
            lines.extend(heads);
        }
        lines
    }

    /// The line for a group of calls that only read: the number of each kind, and the latest ones.
    fn group_head(&self, group: &ReadGroup, open: bool, cx: &DrawContext<'_>) -> Line<'static> {
        let (theme, width) = (cx.theme, usize::from(cx.width));
        let count = |kind: &str| self.group_calls(group).filter(|call| call.kind() == kind).count();
        let counts: Vec<String> = [("Read", count("read")), ("Search", count("search"))]
            .into_iter()
            .filter(|(_, total)| *total > 0)
            .map(|(kind, total)| format!("{kind} {total}"))
            .collect();
        let head = format!("{}  ", counts.join(", "));
        let latest = self.group_calls(group).rev().take(GROUP_TITLES).map(|call| sanitize::line(call.title(), FIELD));
        let latest = latest.filter(|title| !title.is_empty()).collect::<Vec<_>>().join(" · ");
        let latest = if open { String::new() } else { latest };
        let latest = sanitize::cut(&latest, width.saturating_sub(4 + sanitize::width(&head)));
        Line::from(vec![
            Span::styled(if open { "  ▾ " } else { "  ▸ " }, theme.dim),
            Span::styled(head, theme.text),
            Span::styled(latest, theme.dim),
        ])
    }

    /// Draws a tool call: its state, title, input and output.
    fn draw_tool(&self, block: &Block, cx: &DrawContext<'_>, out: &mut Vec<Line<'static>>) {
        let BlockBody::Tool { call, parts: whole, .. } = &block.body else { return };
        out.extend(self.tool_head(block, cx));
        let (theme, width) = (cx.theme, usize::from(cx.width));
        let open = self.folds.tools != block.toggled;
        if let Some(input) = call.input().filter(|_| open) {
            out.extend(plain(tail(&input.to_string()), theme.dim, &Span::styled("    in │ ", theme.rule), width));
        }
        for part in parts(call) {
            self.part(&part, open, cx, out);
        }
        if whole.left_out > 0 {
            let size = image::size_text(whole.left_out);
            let text = match whole.is_loading() {
                true => format!("    … loading {size} …"),
                false => format!("    … {size} left out · L: load all of it"),
            };
            let text = sanitize::cut(&text, width);
            out.push(Line::from(Span::styled(text, theme.dim.add_modifier(Modifier::ITALIC))));
        }
    }

    /// The line of a tool call: its state, kind, title and duration.
    fn tool_head(&self, block: &Block, cx: &DrawContext<'_>) -> Option<Line<'static>> {
        let BlockBody::Tool { call, from, until, .. } = &block.body else { return None };
        let line = |text: &str| sanitize::line(text, FIELD);
        let (title, kind, status) = (line(call.title()), line(call.kind()), call.status());
        let (theme, width) = (cx.theme, usize::from(cx.width));
        let (mark, style) = match status {
            "completed" => ("✔", theme.ok),
            "failed" => ("✘", theme.bad),
            "in_progress" => ("●", theme.busy),
            _ => ("○", theme.dim),
        };
        let took = match (*until, *from) {
            (0, from) if from > 0 && status == "in_progress" && self.status.running.is_some() => span(cx.now - from),
            _ if status == "not_reported" => "not reported".to_owned(),
            (until, from) if from > 0 && until - from >= 1000 => span(until - from),
            _ => String::new(),
        };
        let kind = if kind.is_empty() { "tool".to_owned() } else { kind };
        let space = width.saturating_sub(6 + sanitize::width(&kind) + sanitize::width(&took) + 2);
        let title = if title.is_empty() { "…".into() } else { sanitize::cut(&title, space) };
        let pad = " ".repeat(space.saturating_sub(sanitize::width(&title)));
        Some(Line::from(vec![
            Span::styled(format!("  {mark} "), style),
            Span::styled(format!("{kind}  "), theme.dim),
            Span::styled(title, if status == "failed" { theme.bad } else { theme.text.add_modifier(Modifier::BOLD) }),
            Span::styled(format!("{pad}{took}"), theme.dim),
        ]))
    }

    pub(super) fn part(&self, part: &ToolPart<'_>, open: bool, cx: &DrawContext<'_>, out: &mut Vec<Line<'static>>) {
        let theme = cx.theme;
        let width = usize::from(cx.width);
        match part {
            ToolPart::Output(text) => {
                let margin = Span::styled("    │ ", theme.rule);
                let raw = sanitize::output(tail(text), theme.dim);
                // Only the shown lines are laid out: an output may have a hundred thousand lines.
                let from = if open { 0 } else { raw.len().saturating_sub(OUTPUT_FOLDED) };
                let mut lines: Vec<Line<'static>> = raw[from..]
                    .iter()
                    .flat_map(|spans| super::super::markdown::wrap(spans, &margin, &margin, width))
                    .collect();
                if !open && lines.len() > OUTPUT_FOLDED {
                    lines.drain(..lines.len() - OUTPUT_FOLDED);
                }
                if from > 0 {
                    out.push(more(from, "lines before", theme));
                }
                out.extend(lines);
            }
            // A change that is too long for a page has no texts.
            ToolPart::Diff { path, old: "", new: "", .. } => {
                let path = sanitize::cut(path, width.saturating_sub(4));
                out.push(Line::from(Span::styled(format!("    {path}"), theme.accent)));
            }
            ToolPart::Diff { path, old, new, before } => {
                let (lines, added, removed) = diff(*before, old, new, theme, &Span::raw("    "), width);
                out.push(Line::from(vec![
                    Span::styled(format!("    {} ", sanitize::cut(path, width.saturating_sub(20))), theme.accent),
                    Span::styled(format!("+{added}"), theme.ok),
                    Span::styled(format!(" -{removed}"), theme.bad.remove_modifier(Modifier::BOLD)),
                ]));
                let all = lines.len();
                let max = if open { usize::MAX } else { DIFF_FOLDED };
                out.extend(lines.into_iter().take(max));
                if all > max {
                    out.push(more(all - max, "more lines", theme));
                }
            }
            ToolPart::Other(text) => {
                out.push(Line::from(Span::styled(format!("    {}", sanitize::line(text, width)), theme.dim)))
            }
        }
    }
}

fn more(count: usize, what: &str, theme: &Theme) -> Line<'static> {
    Line::from(Span::styled(format!("    … {count} {what} (Space)"), theme.dim.add_modifier(Modifier::ITALIC)))
}

/// The end of a long text.
pub(super) fn tail(text: &str) -> &str {
    let mut from = text.len().saturating_sub(OUTPUT_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// The parts of a tool call's display, in order; its raw output, if it displays nothing.
pub(super) fn parts(call: &ToolCall) -> Vec<ToolPart<'_>> {
    let part = |(content, before)| match content {
        ToolContent::Text("") | ToolContent::Other(_) => None,
        ToolContent::Text(text) | ToolContent::Terminal(Some(text)) => Some(ToolPart::Output(text)),
        ToolContent::Block(block) => Some(ToolPart::Other(image::label(block))),
        ToolContent::Diff { path, old, new } => {
            let path = sanitize::line(path, FIELD);
            Some(ToolPart::Diff { path, old: old.unwrap_or_default(), new, before })
        }
        ToolContent::Terminal(None) => Some(ToolPart::Other("[terminal]".into())),
    };
    let mut parts: Vec<ToolPart<'_>> = call.content().zip(call.lines_before()).filter_map(part).collect();
    let (beside, _) = call.terminal_output();
    if parts.is_empty() && !beside.is_empty() {
        parts.push(ToolPart::Output(beside));
    }
    if parts.is_empty()
        && let Some(text) = call.raw_output().and_then(output_of)
    {
        parts.push(ToolPart::Output(text));
    }
    parts
}

/// A tool's raw output, if it is text.
fn output_of(raw: &Value) -> Option<&str> {
    let named = || ["output", "stdout", "content", "result"].iter().find_map(|name| raw[*name].as_str());
    let text = raw.as_str().or_else(named)?;
    (!text.trim().is_empty()).then(|| tail(text))
}

/// Draws the agent's plan, a line an entry.
fn draw_plan(entries: &[PlanEntry], cx: &DrawContext<'_>, out: &mut Vec<Line<'static>>) {
    let (theme, width) = (cx.theme, usize::from(cx.width));
    let done = entries.iter().filter(|entry| entry.status == "completed").count();
    out.push(Line::from(vec![
        Span::styled("  ≡ Plan ", theme.accent),
        Span::styled(format!("{done}/{}", entries.len()), theme.dim),
    ]));
    for entry in entries {
        let (status, text) = (entry.status.as_str(), sanitize::line(&entry.content, FIELD));
        let (mark, style) = match status {
            "completed" => ("✔", theme.ok),
            "in_progress" => ("▸", theme.busy),
            _ => ("·", theme.dim),
        };
        let text_style = match status {
            "completed" => theme.dim,
            "in_progress" => theme.text.add_modifier(Modifier::BOLD),
            _ => theme.text,
        };
        let spans = [Span::styled(text, text_style)];
        out.extend(super::super::markdown::wrap(
            &spans,
            &Span::styled(format!("    {mark} "), style),
            &Span::raw("      "),
            width,
        ));
    }
}
