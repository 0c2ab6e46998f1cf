//! The screen of a new session. Its fields stay where they are: the list of the focused one is drawn over what is below it.

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget as _};

use crate::input;
use crate::markdown::wrap;
use crate::new_session::{AgentChoiceKind, FormField, FormHit, NewSessionForm, PROTOCOLS};
use crate::pages::draw::{Draw, cell};
use crate::pages::layout::{body, window};
use crate::pages::shared::Shared;
use crate::sanitize;
use crate::view_model::span;

/// Maximum width of the form, in columns.
const FORM_MAX: u16 = 110;
/// Width of the names of fields, in columns.
const LABEL: u16 = 9;
/// Height from which all agents are listed, and fields are separated, in lines.
const TALL_ROWS: u16 = 20;
/// Maximum number of lines of the agents, and of the list of a field.
const LIST_LINES: u16 = 8;
/// Maximum number of lines of the prompt.
const PROMPT_LINES: u16 = 8;

/// Maximum number of lines of the images of the prompt.
const IMAGE_LINES: u16 = 3;

/// The areas of the form's parts.
struct FormAreas {
    fields: Vec<(FormField, Rect)>,
    /// The list of the focused field, its area, and the first row on the screen.
    list: Option<(FormField, Rect, usize)>,
    /// The problem or the progress.
    foot: Rect,
}

/// The lines of the problem or of the progress.
fn foot_lines(shared: &Shared, form: &NewSessionForm, width: u16) -> Vec<Line<'static>> {
    let theme = &shared.theme;
    let (none, space) = (Span::raw(""), usize::from(width));
    if let Some(start) = &form.start {
        let text = format!("{} … {}", start.text, span(shared.now - start.since));
        return wrap(&[Span::styled(text, theme.busy)], &none, &none, space);
    }
    let Some(problem) = &form.problem else { return Vec::new() };
    let mut lines = wrap(&[Span::styled(sanitize::line(&problem.text, 600), theme.bad)], &none, &none, space);
    if !problem.output.is_empty() {
        let output = sanitize::text(&problem.output);
        let last: Vec<&str> = output.lines().rev().take(4).collect();
        lines.push(Line::from(Span::styled("Its output (Ctrl-O shows all):", theme.dim)));
        lines.extend(last.into_iter().rev().map(|line| Line::from(Span::raw(sanitize::cut(line, space)))));
    }
    lines
}

/// The number of rows in the list of a field, and the selected one.
fn list_of(shared: &Shared, form: &NewSessionForm, field: FormField) -> (usize, usize) {
    match field {
        FormField::Agent => {
            let all = form.agents(&shared.runtimes);
            (all.len(), form.agent_at(&all))
        }
        FormField::Folder => (form.offered().len(), form.folder.at.unwrap_or_default()),
        FormField::Mode | FormField::Model => {
            let setting = if field == FormField::Mode { &form.mode } else { &form.model };
            let visible = setting.visible();
            let at = visible.iter().position(|one| *one == setting.at).unwrap_or_default();
            (visible.len(), at)
        }
        FormField::Earlier => (form.conversations.visible().len(), form.conversations.at),
        FormField::Prompt if form.files.lines() > 0 => (form.files.lines(), form.files.at),
        FormField::Prompt => (form.slash().len(), usize::MAX),
        FormField::Conversation
        | FormField::Command
        | FormField::Protocol
        | FormField::Branch
        | FormField::Base
        | FormField::Title => (0, 0),
    }
}

fn areas(shared: &Shared, form: &NewSessionForm) -> FormAreas {
    let body = body(shared);
    let width = body.width.min(FORM_MAX).saturating_sub(2);
    let x = (body.width - width) / 2;
    let is_tall = body.height >= TALL_ROWS;
    let (top, end) = (body.y + if is_tall { 2 } else { 0 }, body.y + body.height);
    let foot = u16::try_from(foot_lines(shared, form, width).len()).unwrap_or(u16::MAX).min(body.height / 2);
    let foot = Rect::new(x, end - foot, width, foot);
    let all = form.fields(&shared.runtimes);
    let agents = u16::try_from(list_of(shared, form, FormField::Agent).0).unwrap_or(LIST_LINES);
    let mut y = 0;
    let mut fields = Vec::new();
    let space = foot.y - top;
    for field in all {
        let high = match field {
            FormField::Agent if is_tall => agents.clamp(1, LIST_LINES),
            FormField::Prompt => {
                let lines = input::rows(&form.prompt, usize::from(width.saturating_sub(3)));
                let max = if is_tall { PROMPT_LINES } else { 3 };
                let images = image_lines(form);
                1 + images + u16::try_from(lines).unwrap_or(max).clamp(if is_tall { 3 } else { 1 }, max)
            }
            FormField::Earlier => space.saturating_sub(y).max(4),
            _ => 1,
        };
        let gap = u16::from(
            is_tall
                && matches!(
                    field,
                    FormField::Conversation
                        | FormField::Command
                        | FormField::Folder
                        | FormField::Prompt
                        | FormField::Branch
                )
                && y > 0,
        );
        fields.push((field, y + gap, high));
        y += gap + high;
    }
    // The focused field stays on the screen.
    let focus = fields.iter().find(|(field, ..)| *field == form.focus).map_or(0, |(_, y, high)| y + high);
    let skip = focus.saturating_sub(space);
    let visible = fields.into_iter().filter(|(_, y, _)| *y >= skip && y - skip < space);
    let fields: Vec<(FormField, Rect)> = visible
        .map(|(field, y, high)| (field, Rect::new(x, top + y - skip, width, high.min(space - (y - skip)))))
        .collect();
    let list = fields.iter().find(|(field, _)| *field == form.focus).and_then(|(field, area)| {
        let (count, at) = list_of(shared, form, *field);
        if form.start.is_some() || count == 0 || matches!(field, FormField::Agent if is_tall) {
            return None;
        }
        let below = match field {
            FormField::Earlier => Rect { y: area.y + 1, height: area.height - 1, ..*area },
            _ => {
                let high = u16::try_from(count).unwrap_or(LIST_LINES).min(LIST_LINES);
                let (below_field, above) = (foot.y.saturating_sub(area.y + area.height), area.y - top);
                let (x, width) = (area.x + LABEL, area.width.saturating_sub(LABEL));
                match below_field >= high.min(3) {
                    true => Rect::new(x, area.y + area.height, width, high.min(below_field)),
                    false => Rect::new(x, area.y - high.min(above), width, high.min(above)),
                }
            }
        };
        let at = if at == usize::MAX { 0 } else { at };
        Some((*field, below, window(count, at, usize::from(below.height)).1))
    });
    FormAreas { fields, list, foot }
}

/// The number of lines of the images of the prompt.
fn image_lines(form: &NewSessionForm) -> u16 {
    u16::try_from(form.images.len()).unwrap_or(IMAGE_LINES).min(IMAGE_LINES)
}

/// The part of the form at a place of the screen.
pub(crate) fn form_hit(shared: &Shared, form: &NewSessionForm, column: u16, row: u16) -> Option<FormHit> {
    let areas = areas(shared, form);
    if let Some((field, area, first)) = areas.list
        && area.contains((column, row).into())
    {
        return Some(FormHit::Row(field, first + usize::from(row - area.y)));
    }
    let (field, area) = areas.fields.into_iter().find(|(_, area)| area.contains((column, row).into()))?;
    if field == FormField::Agent && area.height > 1 {
        let (count, at) = list_of(shared, form, field);
        let first = window(count, at, usize::from(area.height)).1;
        return Some(FormHit::Row(field, first + usize::from(row - area.y)));
    }
    Some(FormHit::Field(field))
}

/// The keys of the form, for the last line.
pub(crate) fn form_hints(shared: &Shared, form: &NewSessionForm) -> Vec<(&'static str, &'static str)> {
    if form.start.is_some() {
        return vec![("Esc", "cancel")];
    }
    let mut hints = match form.focus {
        FormField::Prompt if form.files.lines() > 0 => vec![("↑↓", "file"), ("Tab", "take")],
        FormField::Prompt => {
            vec![("Enter", "start"), ("Alt-Enter", "new line"), ("@", "file"), ("Ctrl-T", "image"), ("S-Tab", "back")]
        }
        FormField::Branch | FormField::Base => vec![("Enter", "start"), ("S-Tab", "back")],
        FormField::Folder => vec![("Enter", "next"), ("Tab", "complete"), ("↑↓", "folders")],
        FormField::Earlier => {
            let is_not_running =
                form.choice(&shared.runtimes).is_some_and(|one| one.kind == AgentChoiceKind::Installed);
            vec![("Enter", if is_not_running { "start the agent" } else { "continue" }), ("↑↓", "move")]
        }
        FormField::Conversation | FormField::Protocol => vec![("←→", "change"), ("Enter", "next")],
        FormField::Agent => {
            let all = form.agents(&shared.runtimes);
            let missing = all.get(form.agent_at(&all)).is_some_and(|one| one.kind == AgentChoiceKind::Missing);
            vec![("↑↓", "agent"), ("Enter", if missing { "copy the command" } else { "next" })]
        }
        FormField::Mode | FormField::Model | FormField::Title | FormField::Command => {
            vec![("↑↓", "move"), ("Enter", "next")]
        }
    };
    if form.problem.as_ref().is_some_and(|problem| !problem.output.is_empty()) {
        hints.insert(1, ("Ctrl-O", "show its output"));
    }
    hints.push(("Esc", "close"));
    hints
}

impl Draw<'_> {
    pub(crate) fn form(&mut self, form: &NewSessionForm) {
        let shared = self.shared;
        let theme = &shared.theme;
        let areas = areas(shared, form);
        let body = body(shared);
        if body.height >= TALL_ROWS {
            let first = shared.sessions.all.is_empty();
            let title = if first { "Start your first session" } else { "New session" };
            let style = theme.text.add_modifier(Modifier::BOLD);
            self.put(areas.foot.x, body.y, Span::styled(title, style), areas.foot.width);
        }
        for (field, area) in &areas.fields {
            self.form_field(form, *field, *area);
        }
        for (y, line) in
            (areas.foot.y..areas.foot.y + areas.foot.height).zip(foot_lines(shared, form, areas.foot.width))
        {
            self.put(areas.foot.x, y, line, areas.foot.width);
        }
        if let Some((field, area, first)) = areas.list {
            self.form_list(form, field, area, first);
        }
    }

    fn form_field(&mut self, form: &NewSessionForm, field: FormField, area: Rect) {
        let shared = self.shared;
        let theme = &shared.theme;
        let on = form.focus == field && form.start.is_none();
        let is_not_running = || form.choice(&shared.runtimes).is_some_and(|one| one.kind == AgentChoiceKind::Installed);
        let name = match field {
            FormField::Earlier if is_not_running() => "",
            FormField::Agent => "Agent",
            FormField::Conversation => "Session",
            FormField::Folder => "Folder",
            FormField::Command => "Command",
            FormField::Protocol => "Speaks",
            FormField::Branch => "Branch",
            FormField::Base => "Base",
            FormField::Mode => "Mode",
            FormField::Model => "Model",
            FormField::Title => "Title",
            FormField::Prompt => "What is to be done?",
            FormField::Earlier => "Find",
        };
        let style = if on { theme.accent } else { theme.dim };
        let mark = if on { "▌" } else { " " };
        self.put(area.x, area.y, Span::styled(format!("{mark}{name}"), style), area.width);
        let at = Rect { x: area.x + LABEL, width: area.width.saturating_sub(LABEL), height: 1, ..area };
        match field {
            FormField::Agent => self.form_agents(form, Rect { height: area.height, ..at }),
            FormField::Conversation => {
                let (new, old) = ("new", "continue an earlier one");
                let chosen = theme.text.add_modifier(Modifier::BOLD);
                let styles = if form.earlier { (theme.dim, chosen) } else { (chosen, theme.dim) };
                let (a, b) = if form.earlier { ("○", "●") } else { ("●", "○") };
                let spans =
                    vec![Span::styled(format!("{a} {new}  "), styles.0), Span::styled(format!("{b} {old}"), styles.1)];
                self.put(at.x, at.y, spans, at.width);
            }
            FormField::Folder => {
                let text = form.folder_text();
                if text.is_empty() && !on {
                    return self.put(at.x, at.y, Span::styled("the agent's own", theme.dim), at.width);
                }
                self.field(at, &form.folder.text, on);
                let left = usize::from(at.width).saturating_sub(sanitize::width(&text) + 2);
                if on && left > 8 && !form.folder.notice.is_empty() {
                    let text = sanitize::cut(&form.folder.notice, left);
                    self.right(at, vec![Span::styled(text, theme.dim)], at.width);
                }
            }
            FormField::Mode | FormField::Model => {
                let setting = if field == FormField::Mode { &form.mode } else { &form.model };
                let text = setting.name().unwrap_or("as the agent has it").to_owned();
                let style = if setting.at.is_some() { theme.text } else { theme.dim };
                let wide = u16::try_from(sanitize::width(&text)).unwrap_or(at.width).min(at.width);
                self.put(at.x, at.y, Span::styled(text, style), at.width);
                let rest = Rect { x: at.x + wide + 2, width: at.width.saturating_sub(wide + 2), ..at };
                if on && rest.width > 4 {
                    self.field(rest, &setting.filter, true);
                }
            }
            FormField::Branch => {
                if form.worktree.branch.is_empty() && !on {
                    return self.put(at.x, at.y, Span::styled("without a worktree", theme.dim), at.width);
                }
                self.field(at, &form.worktree.branch, on);
                let text = "the new branch of a git worktree";
                if on && form.worktree.branch.is_empty() && at.width > 3 {
                    self.put(at.x + 2, at.y, Span::styled(text, theme.dim), at.width - 2);
                }
            }
            FormField::Base | FormField::Command | FormField::Protocol => self.form_rare(form, field, at, on),
            FormField::Title => {
                if form.title.is_empty() && !on {
                    return self.put(at.x, at.y, Span::styled("the agent chooses one", theme.dim), at.width);
                }
                self.field(at, &form.title, on);
            }
            FormField::Prompt => self.form_prompt(form, area, on),
            FormField::Earlier => self.form_earlier(form, area, on),
        }
    }

    /// Draws the prompt, and its images below it.
    fn form_prompt(&mut self, form: &NewSessionForm, area: Rect, on: bool) {
        let theme = &self.shared.theme;
        let images = image_lines(form).min(area.height.saturating_sub(2));
        let high = area.height.saturating_sub(1 + images);
        let field = Rect { x: area.x + 1, y: area.y + 1, width: area.width - 1, height: high };
        for (n, image) in (0..images).zip(&form.images) {
            let more = form.images.len() - usize::from(images);
            let more = if n + 1 == images && more > 0 { format!(" and {more} more") } else { String::new() };
            let text = sanitize::cut(&format!("+ {}{more}", image.text()), usize::from(field.width));
            self.put(field.x + 1, field.y + high + n, Span::styled(text, theme.accent), field.width - 1);
        }
        if field.height > 0 {
            self.field(field, &form.prompt, on);
        }
        if form.prompt.is_empty() && field.height > 0 {
            let text = "Optional: you can also say it later";
            self.put(field.x + 1, field.y, Span::styled(text, theme.dim), field.width.saturating_sub(1));
        }
    }

    /// Draws a field that only some sessions have: another program, or the starting point of a worktree.
    fn form_rare(&mut self, form: &NewSessionForm, field: FormField, at: Rect, on: bool) {
        let theme = &self.shared.theme;
        match field {
            FormField::Base => {
                if !form.worktree.base.is_empty() || on {
                    self.field(at, &form.worktree.base, on);
                }
                let text = "what is checked out; or a branch or commit";
                if form.worktree.base.is_empty() && at.width > 3 {
                    let right = if on { 2 } else { 0 };
                    self.put(at.x + right, at.y, Span::styled(text, theme.dim), at.width - right);
                }
            }
            FormField::Command => {
                self.field(at, &form.program.command, on);
                if form.program.command.is_empty() && at.width > 3 {
                    self.put(at.x + 2, at.y, Span::styled("my-agent --acp", theme.dim), at.width - 2);
                }
            }
            FormField::Protocol => {
                let mut spans = Vec::new();
                for (n, (_, name)) in PROTOCOLS.iter().enumerate() {
                    let chosen = n == form.program.protocol;
                    let style = if chosen { theme.text.add_modifier(Modifier::BOLD) } else { theme.dim };
                    // On a narrow screen, only the chosen one is shown.
                    if chosen || at.width > 60 {
                        spans.push(Span::styled(format!("{} {name}  ", if chosen { "●" } else { "○" }), style));
                    }
                }
                self.put(at.x, at.y, spans, at.width);
            }
            _ => {}
        }
    }

    /// Draws the earlier conversations of the agent; for one that is not running, how to list them.
    fn form_earlier(&mut self, form: &NewSessionForm, area: Rect, on: bool) {
        let shared = self.shared;
        let theme = &shared.theme;
        if form.choice(&shared.runtimes).is_some_and(|one| one.kind == AgentChoiceKind::Installed) {
            let name = form.choice(&shared.runtimes).map(|one| sanitize::line(&one.name, 40)).unwrap_or_default();
            let text = format!("{name} is not running. Enter starts it, and lists its conversations.");
            let (none, spans) = (Span::raw(""), [Span::styled(text, theme.dim)]);
            let lines = wrap(&spans, &none, &none, usize::from(area.width.saturating_sub(1)));
            for (y, line) in (area.y + 1..area.y + area.height).zip(lines) {
                self.put(area.x + 1, y, line, area.width - 1);
            }
            return;
        }
        let at = Rect { x: area.x + LABEL, width: area.width.saturating_sub(LABEL), height: 1, ..area };
        self.field(at, &form.conversations.filter, on);
        let visible = form.conversations.visible().len();
        if visible == 0 {
            let text = if form.conversations.text.is_empty() { "nothing matches" } else { &form.conversations.text };
            self.put(area.x + 1, area.y + 2, Span::styled(text.to_owned(), theme.dim), area.width - 1);
        } else if !on {
            self.form_list(form, FormField::Earlier, Rect { y: area.y + 1, height: area.height - 1, ..area }, 0);
        }
    }
    /// Draws the agents: all of them, or only the chosen one if it has a single line.
    fn form_agents(&mut self, form: &NewSessionForm, area: Rect) {
        let shared = self.shared;
        let theme = &shared.theme;
        let all = form.agents(&shared.runtimes);
        let at = form.agent_at(&all);
        if all.is_empty() {
            let text = match form.is_loading_agents() {
                true => "looking for installed agents …",
                false => "none is running, and only an administrator's device can start one",
            };
            return self.put(area.x, area.y, Span::styled(text, theme.dim), area.width);
        }
        let (visible, first) = window(all.len(), at, usize::from(area.height));
        for (y, n) in (area.y..).zip(first..first + visible) {
            self.form_row(form, FormField::Agent, Rect { y, height: 1, ..area }, n, n == at && area.height > 1);
        }
    }

    fn form_list(&mut self, form: &NewSessionForm, field: FormField, area: Rect, first: usize) {
        let (count, at) = list_of(self.shared, form, field);
        Clear.render(area, self.buf);
        self.fill(area, self.shared.theme.bar);
        for (y, n) in (area.y..area.y + area.height).zip(first..count) {
            let chosen = n == at && (field != FormField::Folder || form.folder.at.is_some());
            self.form_row(form, field, Rect { y, height: 1, ..area }, n, chosen);
        }
    }

    /// Draws a row of the list of a field.
    fn form_row(&mut self, form: &NewSessionForm, field: FormField, area: Rect, n: usize, chosen: bool) {
        let shared = self.shared;
        let theme = &shared.theme;
        let width = usize::from(area.width);
        let name = if width < 50 { 12 } else { 22 };
        let two = |mark: &str, mark_style: Style, text: &str, more: &str| {
            vec![
                Span::styled(format!("{mark} "), mark_style),
                cell(text, name, theme.text),
                Span::styled(sanitize::cut(more, width.saturating_sub(name + 3)), theme.dim),
            ]
        };
        let spans = match field {
            FormField::Agent => form.agents(&shared.runtimes).get(n).map(|one| {
                let (mark, style) = match one.kind {
                    AgentChoiceKind::Runtime(true) => ("●", theme.ok),
                    AgentChoiceKind::Runtime(false) => ("●", theme.warn),
                    AgentChoiceKind::Installed => ("○", theme.text),
                    AgentChoiceKind::Missing => ("·", theme.dim),
                    AgentChoiceKind::Program => ("+", theme.text),
                };
                two(mark, style, &sanitize::line(&one.name, 60), &one.about)
            }),
            FormField::Folder => form.offered().get(n).map(|one| {
                let mark = if one.git { "±" } else { " " };
                two(mark, theme.dim, &sanitize::line(&one.name, 120), &sanitize::line(&one.path, 400))
            }),
            FormField::Mode | FormField::Model => {
                let setting = if field == FormField::Mode { &form.mode } else { &form.model };
                setting.visible().get(n).map(|at| {
                    let pick = at.and_then(|at| setting.choices.get(at));
                    vec![Span::raw(sanitize::cut(pick.map_or("as the agent has it", |pick| &pick.name), width))]
                })
            }
            FormField::Earlier => form.conversations.visible().get(n).map(|one| {
                let name = width * 6 / 10;
                let more = sanitize::cut(&one.details, width.saturating_sub(name + 2));
                vec![Span::raw(" "), cell(&one.name, name, theme.text), Span::styled(more, theme.dim)]
            }),
            FormField::Prompt if form.files.lines() > 0 => Some(match form.files.paths().get(n) {
                Some(path) => self.file_row("@", path, width),
                None => vec![Span::styled(sanitize::cut(&form.files.text, width), theme.dim)],
            }),
            FormField::Prompt => form.slash().get(n).map(|(name, what)| two("/", theme.accent, name, what)),
            _ => None,
        };
        self.put(area.x, area.y, spans.unwrap_or_default(), area.width);
        if chosen {
            self.fill(area, theme.selected);
        }
    }
}
