//! The screen of a session's changes: the areas of its parts, and their drawing.

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

use super::ChangesPage;
use crate::changes::{
    ChangesMode, ChangesPane, ChangesScreen, DiffPen, DiffRowKind, file_text, list_row, location_text, path_end,
};
use crate::input;
use crate::markdown::wrap;
use crate::pages::draw::{Draw, cell};
use crate::pages::layout::{HEIGHT_MIN, WIDTH_MIN, body, window};
use crate::pages::shared::{ConnectionView, Shared};
use crate::sanitize;
use crate::view_model::{ago, clock};

/// Width from which the files are beside the diff, in columns.
const TWO_PANES_MIN: u16 = 120;
/// Width and height from which the files are above the diff, in columns and lines; on a smaller screen, only one of both is shown.
const STACKED_MIN: (u16, u16) = (60, 20);
/// The minimum and maximum width of a list beside a diff, in columns.
const FILES_COLUMNS: (u16, u16) = (36, 60);
/// The minimum and maximum number of files above a diff.
const FILES_ROWS: (u16, u16) = (3, 8);
/// Maximum number of lines of notes; further ones are counted.
const NOTES_MAX: usize = 2;
/// Minimum height of a screen with notes, in lines.
const NOTES_HEIGHT: u16 = 16;
/// Maximum number of lines of a comment that is being written.
const COMMENT_ROWS: usize = 8;

/// The areas of the screen's parts; a part that is not on it has no lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChangesAreas {
    head: Rect,
    notes: Rect,
    pub(crate) files: Rect,
    /// The rule between files and diff.
    rule: Rect,
    file_head: Rect,
    pub(crate) lines: Rect,
    bar: Rect,
}

impl ChangesAreas {
    /// Returns whether files and diff are on the screen together.
    pub(crate) fn has_both(&self) -> bool {
        self.files.height > 0 && self.lines.height > 0
    }
}

/// The notes below the heading.
fn notes(screen: &ChangesScreen) -> Vec<String> {
    let mut out = Vec::new();
    let Some(list) = &screen.list else { return out };
    if !screen.problem.is_empty() {
        out.push(format!("Not read again: {} (R: try again)", screen.problem));
    }
    if list.left_off > 0 {
        out.push(format!("{} more files changed, too many to be listed.", list.left_off));
    }
    out.extend(list.notes.iter().cloned());
    if out.len() > NOTES_MAX {
        let more = out.len() + 1 - NOTES_MAX;
        out.truncate(NOTES_MAX - 1);
        out.push(format!("and {more} more notes: plexus changes {}", screen.session));
    }
    out
}

impl ChangesPage {
    /// The areas of the screen.
    pub(crate) fn areas(&self, shared: &Shared) -> ChangesAreas {
        let Some(screen) = self.screen.as_ref().filter(|_| shared.size.0 >= WIDTH_MIN && shared.size.1 >= HEIGHT_MIN)
        else {
            return ChangesAreas::default();
        };
        let all = body(shared);
        let at = |y: u16, height: u16| Rect::new(all.x, all.y + y, all.width, height);
        let bar = match &screen.mode {
            ChangesMode::Comment { area, .. } => {
                let rows = input::rows(area, usize::from(all.width.saturating_sub(5))).clamp(1, COMMENT_ROWS);
                1 + u16::try_from(rows).unwrap_or(1).min((all.height / 3).max(1))
            }
            _ => u16::from(!screen.draft.comments.is_empty()),
        };
        let note_lines = if all.height >= NOTES_HEIGHT && !screen.fit.is_empty() { notes(screen).len() } else { 0 };
        let note_lines = u16::try_from(note_lines).unwrap_or(0);
        let from = 1 + note_lines;
        let middle = all.height.saturating_sub(from + bar);
        let mut areas = ChangesAreas {
            head: at(0, 1),
            notes: at(1, note_lines),
            bar: at(from + middle, bar),
            ..ChangesAreas::default()
        };
        let diff = |x: u16, y: u16, width: u16, height: u16| {
            let head = Rect::new(x, y, width, 1);
            (head, Rect::new(x, y + 1, width.saturating_sub(1), height.saturating_sub(1)))
        };
        let y = all.y + from;
        if all.width >= TWO_PANES_MIN {
            let files = (all.width * 3 / 10).clamp(FILES_COLUMNS.0, FILES_COLUMNS.1);
            areas.files = Rect::new(all.x, y, files, middle);
            areas.rule = Rect::new(all.x + files, y, 1, middle);
            (areas.file_head, areas.lines) = diff(all.x + files + 1, y, all.width - files - 1, middle);
        } else if all.width >= STACKED_MIN.0 && middle >= STACKED_MIN.1 - 4 {
            let count = u16::try_from(screen.fit.len()).unwrap_or(u16::MAX);
            let files = (middle / 4).clamp(FILES_ROWS.0, FILES_ROWS.1).min(count.max(1));
            areas.files = Rect::new(all.x, y, all.width, files);
            areas.rule = Rect::new(all.x, y + files, all.width, 1);
            (areas.file_head, areas.lines) = diff(all.x, y + files + 1, all.width, middle - files - 1);
        } else if screen.pane == ChangesPane::Files {
            areas.files = at(from, middle);
        } else {
            (areas.file_head, areas.lines) = diff(all.x, y, all.width, middle);
        }
        areas
    }

    /// The first file on the screen: unchanged, unless the selected one would not be visible.
    pub(crate) fn top(&self, areas: &ChangesAreas) -> usize {
        let Some(screen) = &self.screen else { return 0 };
        let space = usize::from(areas.files.height).max(1);
        let end = screen.fit.len().saturating_sub(space);
        screen.top.min(screen.at).max((screen.at + 1).saturating_sub(space)).min(end)
    }

    /// The keys that matter on the screen of changes.
    pub(super) fn screen_hints(
        &self,
        shared: &Shared,
        screen: &ChangesScreen,
    ) -> &'static [(&'static str, &'static str)] {
        let two = self.areas(shared).has_both();
        match (&screen.mode, screen.pane) {
            (ChangesMode::Filter, _) => &[("Enter", "done"), ("↑↓", "file"), ("Esc", "all files")],
            (ChangesMode::Comment { .. }, _) => &[("Enter", "add"), ("Alt-Enter", "new line"), ("Esc", "back")],
            (ChangesMode::Review { at: None, .. }, _) => &[("Enter", "send"), ("↓", "comments"), ("Esc", "back")],
            (ChangesMode::Review { .. }, _) => {
                &[("Enter", "edit"), ("d", "remove"), ("Ctrl-S", "send"), ("Esc", "back")]
            }
            (ChangesMode::PatchList(_), _) => &[("Enter", "bring back"), ("↑↓", "move"), ("Esc", "back")],
            (ChangesMode::Runs(_), _) => &[("Enter", "show"), ("↑↓", "move"), ("Esc", "back")],
            (ChangesMode::Reading, ChangesPane::Files) if !two => &[
                ("↑↓", "move"),
                ("Enter", "diff"),
                ("u", "back"),
                ("?", "keys"),
                ("S", "send"),
                ("v", "viewed"),
                ("f", "find"),
            ],
            (ChangesMode::Reading, ChangesPane::Diff) if !two => &[
                ("n p", "part"),
                ("c", "comment"),
                ("Esc", "files"),
                ("?", "keys"),
                ("j k", "file"),
                ("S", "send"),
                ("v", "viewed"),
            ],
            (ChangesMode::Reading, _) => &[
                ("j k", "file"),
                ("n p", "part"),
                ("↑↓", "move"),
                ("c", "comment"),
                ("S", "send"),
                ("v", "viewed"),
                ("x", "undo"),
                ("u", "back"),
                ("?", "keys"),
                ("e", "editor"),
                ("f", "find"),
                ("r", "runs"),
            ],
        }
    }
}

fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

impl Draw<'_> {
    /// The changes of the open session.
    pub(crate) fn changes(&mut self, page: &ChangesPage, screen: &ChangesScreen) {
        let areas = page.areas(self.shared);
        let theme = &self.shared.theme;
        self.changes_head(screen, areas.head);
        for (y, text) in (areas.notes.y..areas.notes.y + areas.notes.height).zip(notes(screen)) {
            let text = sanitize::cut(&text, usize::from(areas.notes.width).saturating_sub(3));
            self.put(areas.notes.x + 1, y, Span::styled(text, theme.warn), areas.notes.width - 1);
        }
        if screen.fit.is_empty() {
            self.no_changes(screen, &areas);
        } else {
            for y in areas.rule.y..areas.rule.y + areas.rule.height {
                let line = if areas.rule.width == 1 { "│".to_owned() } else { "─".repeat(areas.rule.width.into()) };
                self.put(areas.rule.x, y, Span::styled(line, theme.rule), areas.rule.width);
            }
            self.changed_files(screen, &areas);
            self.changed_file(screen, &areas);
        }
        self.changes_bar(screen, areas.bar);
        match &screen.mode {
            ChangesMode::Review { .. } => self.review(screen),
            ChangesMode::PatchList(at) => self.undone(screen, *at),
            ChangesMode::Runs(at) => self.changed_runs(screen, *at),
            _ => {}
        }
    }

    fn changes_head(&mut self, screen: &ChangesScreen, area: Rect) {
        let shared = self.shared;
        let theme = &shared.theme;
        let width = usize::from(area.width);
        let mut right = Vec::new();
        let filter = screen.filter.lines().join(" ");
        if matches!(screen.mode, ChangesMode::Filter) || !filter.is_empty() {
            let max = (width / 3).max(12);
            right.push(Span::styled(" find ", theme.accent));
            right.push(Span::raw(path_end(&filter, max)));
            let cursor =
                if matches!(screen.mode, ChangesMode::Filter) { Modifier::REVERSED } else { Modifier::empty() };
            right.push(Span::styled(" ", Style::new().add_modifier(cursor)));
        } else if let Some(run) = &screen.run {
            let text = format!("only {}: {}", clock(run.at), run.prompt);
            right.push(Span::styled(sanitize::cut(&text, width / 2), theme.warn));
            right.push(Span::raw(" "));
        }
        let taken: usize = right.iter().map(|span| sanitize::width(&span.content)).sum();
        let mut left = vec![Span::styled(" Changes ", theme.text.add_modifier(Modifier::BOLD))];
        if let Some(list) = screen.list.as_ref().filter(|list| !list.files.is_empty()) {
            let (added, removed) = list.lines();
            let files = counted(list.files.len().saturating_add(list.left_off), "file");
            left.push(Span::raw(files));
            left.push(Span::styled(format!(" +{added}"), theme.ok));
            left.push(Span::styled(format!(" -{removed} "), theme.bad.remove_modifier(Modifier::BOLD)));
        }
        if let Some(session) = shared.sessions.all.get(&screen.session) {
            if session.open > 0 {
                left.push(Span::styled("? asks you: u ", theme.warn.add_modifier(Modifier::BOLD)));
            }
            left.push(Span::styled(format!("· {}", session.name()), theme.dim));
        }
        self.put(area.x, area.y, left, area.width.saturating_sub(u16::try_from(taken).unwrap_or(0)));
        self.right(area, right, area.width / 2 + 6);
    }

    /// Draws the reason why no file is shown.
    fn no_changes(&mut self, screen: &ChangesScreen, areas: &ChangesAreas) {
        let shared = self.shared;
        let theme = &shared.theme;
        let (head, text) = match &screen.list {
            None if screen.problem.is_empty() && shared.link == ConnectionView::Live => ("reading …".to_owned(), ""),
            None if screen.problem.is_empty() => ("connecting …".to_owned(), ""),
            None => (format!("The changes could not be read: {}", screen.problem), "R: try again"),
            Some(list) if !list.known => (
                "No changes are known.".to_owned(),
                "Files that this session changes appear here after its first prompt.",
            ),
            Some(list) if !list.files.is_empty() => {
                ("No changed file has this in its name.".to_owned(), "Esc: all files")
            }
            Some(_) if screen.run.is_some() => ("Nothing changed in this run.".to_owned(), "r: another run, or all"),
            Some(_) => ("Nothing has changed.".to_owned(), "Files that this session changes appear here."),
        };
        let all_notes =
            if screen.list.as_ref().is_some_and(|list| list.files.is_empty()) { notes(screen) } else { Vec::new() };
        let all = areas.head;
        let mut y = all.y + 2;
        let end = areas.bar.y;
        let paragraphs = [(head, theme.text), (text.to_owned(), theme.dim)].into_iter();
        for (notice, style) in paragraphs.chain(all_notes.into_iter().map(|notice| (notice, theme.warn))) {
            let margin = Span::raw("  ");
            let lines =
                wrap(&[Span::styled(notice, style)], &margin, &margin, usize::from(all.width).saturating_sub(2));
            for line in lines {
                if y < end {
                    self.put(all.x, y, line, all.width);
                }
                y += 1;
            }
        }
    }

    fn changed_files(&mut self, screen: &ChangesScreen, areas: &ChangesAreas) {
        let theme = &self.shared.theme;
        let area = areas.files;
        for (n, y) in (screen.top..screen.fit.len()).zip(area.y..area.y + area.height) {
            let Some(file) = screen.file_at(n) else { break };
            self.put(area.x, y, list_row(screen, file, theme, usize::from(area.width)), area.width);
            if n != screen.at {
                continue;
            }
            if screen.pane == ChangesPane::Files {
                self.fill(Rect::new(area.x, y, area.width, 1), theme.selected);
            } else {
                self.put(area.x, y, Span::styled("▸", theme.accent), 1);
            }
        }
    }

    /// Draws the selected file: its notes and its diff.
    fn changed_file(&mut self, screen: &ChangesScreen, areas: &ChangesAreas) {
        let theme = &self.shared.theme;
        let (head, area) = (areas.file_head, areas.lines);
        let Some(file) = screen.file().filter(|_| area.height > 0) else { return };
        let focus = screen.pane == ChangesPane::Diff && areas.has_both();
        let text = file_text(screen, file);
        let mut location = format!("{} of {}", screen.at + 1, screen.fit.len());
        if usize::from(head.width) >= 60 {
            location = format!("{text} · {location}");
        }
        let space = usize::from(head.width).saturating_sub(sanitize::width(&location) + 4);
        let spans = vec![
            if focus { Span::styled("▌", theme.accent) } else { Span::raw(" ") },
            Span::styled(path_end(&file.path, space.max(12)), theme.text.add_modifier(Modifier::BOLD)),
            Span::styled(format!("  {location}"), theme.dim),
        ];
        self.fill(head, theme.bar);
        self.put(head.x, head.y, spans, head.width);
        let diff = screen.diff();
        let notice = match diff {
            _ if !file.reason.is_empty() => Some((format!("Not compared: {}", file.reason), theme.warn)),
            None => Some(("reading …".to_owned(), theme.dim)),
            Some(diff) if !diff.problem.is_empty() => {
                Some((format!("The diff could not be read: {} (R: try again)", diff.problem), theme.warn))
            }
            Some(diff) if diff.rows.rows.is_empty() => {
                Some(("No line differs: the file was renamed, or its mode changed.".to_owned(), theme.dim))
            }
            Some(_) => None,
        };
        let mut y = area.y;
        let end = area.y + area.height;
        if let Some((text, style)) = notice {
            let margin = Span::raw("  ");
            for line in wrap(&[Span::styled(text, style)], &margin, &margin, usize::from(area.width)) {
                if y < end {
                    self.put(area.x, y, line, area.width);
                }
                y += 1;
            }
            return;
        }
        let Some(diff) = diff else { return };
        let pen = DiffPen { screen, diff, theme, width: usize::from(area.width) };
        let (top, mut above) = screen.position.scroll;
        for at in top..diff.rows.rows.len() {
            let chosen = screen.is_chosen(&diff.rows.rows[at]);
            for (line, own) in pen.lines(at).into_iter().skip(above) {
                if y >= end {
                    break;
                }
                self.put(area.x, y, line, area.width);
                if chosen && own {
                    // The words that changed remain marked.
                    let same = diff.rows.rows[at].kind == DiffRowKind::Same;
                    let width = if same { usize::from(area.width) } else { pen.margin() };
                    self.fill(
                        Rect { y, width: u16::try_from(width).unwrap_or(area.width), height: 1, ..area },
                        theme.selected,
                    );
                    self.put(area.x, y, Span::styled("▌", theme.accent), 1);
                }
                y += 1;
            }
            above = 0;
            if y >= end {
                break;
            }
        }
        let cut = diff.truncated || diff.rows.cut > 0;
        if cut && y < end {
            self.put(area.x + 1, y, Span::styled("The diff is too long to be shown whole.", theme.warn), area.width);
        }
        #[expect(clippy::cast_precision_loss, reason = "a place on a scroll bar")]
        let fraction = screen.position.scroll.0 as f32 / diff.rows.rows.len().max(1) as f32;
        self.scrollbar(area, fraction, y < end && screen.position.scroll.0 > 0);
    }

    /// Draws the comment that is being written, or the number of comments.
    fn changes_bar(&mut self, screen: &ChangesScreen, area: Rect) {
        let theme = &self.shared.theme;
        if area.height == 0 {
            return;
        }
        self.fill(area, theme.bar);
        let ChangesMode::Comment { area: text, about, edits } = &screen.mode else {
            let notice = format!(" {} · S: send as one prompt", counted(screen.draft.comments.len(), "comment"));
            return self.put(area.x, area.y, Span::styled(notice, theme.user), area.width);
        };
        let verb = if edits.is_some() { "Edit the comment on" } else { "Comment on" };
        let location = location_text(about.old, about.line, about.end);
        let space = usize::from(area.width).saturating_sub(sanitize::width(verb) + sanitize::width(&location) + 8);
        let head = vec![
            Span::styled(format!(" {verb} {location} "), theme.accent),
            Span::styled(format!("of {}", path_end(&about.path, space)), theme.dim),
        ];
        self.put(area.x, area.y, head, area.width);
        self.put(area.x, area.y + 1, Span::styled(" › ", theme.accent), 3);
        self.field(Rect::new(area.x + 3, area.y + 1, area.width.saturating_sub(4), area.height - 1), text, true);
    }

    /// Draws the comments, before they are sent.
    fn review(&mut self, screen: &ChangesScreen) {
        let ChangesMode::Review { first, at } = &screen.mode else { return };
        let theme = &self.shared.theme;
        let count = screen.draft.comments.len();
        let title =
            if screen.sending { "sending …".to_owned() } else { format!("Send {}", counted(count, "comment")) };
        let high = u16::try_from(count * 2 + 6).unwrap_or(u16::MAX);
        let inside = self.window(90, high, &title);
        let width = usize::from(inside.width);
        let first_label = if width < 38 { "First line (optional)" } else { "A first line for the agent (optional)" };
        self.put(inside.x, inside.y, Span::styled(first_label, theme.dim), inside.width);
        self.put(inside.x, inside.y + 1, Span::styled("› ", theme.accent), 2);
        self.field(Rect::new(inside.x + 2, inside.y + 1, inside.width.saturating_sub(2), 1), first, at.is_none());
        let (visible, from) = window(count, at.unwrap_or(0), usize::from(inside.height.saturating_sub(3)) / 2);
        let files = screen.list.as_ref().map(|list| list.files.as_slice()).unwrap_or_default();
        for (n, one) in screen.draft.comments.iter().enumerate().skip(from).take(visible) {
            let y = inside.y + 3 + 2 * u16::try_from(n - from).unwrap_or(0);
            let location = one.location();
            let stale = match files.iter().find(|file| file.path == one.path) {
                None => " · no longer changed",
                Some(file) if file.digest != one.digest => " · changed since",
                Some(_) => "",
            };
            let space = width.saturating_sub(sanitize::width(&location) + sanitize::width(stale) + 3);
            let head = vec![
                Span::styled(path_end(&one.path, space), theme.accent),
                Span::styled(format!(" {location}"), theme.dim),
                Span::styled(stale, theme.warn),
            ];
            self.put(inside.x, y, head, inside.width);
            let text = sanitize::line(&one.text, width.saturating_sub(3));
            self.put(inside.x + 2, y + 1, Span::styled(text, theme.user), inside.width.saturating_sub(2));
            if *at == Some(n) {
                self.fill(Rect::new(inside.x, y, inside.width, 2), theme.selected);
            }
        }
    }

    /// Draws the changes that were undone.
    fn undone(&mut self, screen: &ChangesScreen, at: usize) {
        let now = self.shared.now;
        let rows = |n: usize| {
            screen.undone.get(n).map(|one| (one.path.clone(), format!("by {}, {}", one.by, ago(now, one.at))))
        };
        self.choice("Undone: Enter brings it back", (screen.undone.len(), at), "Nothing was undone.", rows);
    }

    /// Draws the runs whose changes can be shown.
    fn changed_runs(&mut self, screen: &ChangesScreen, at: usize) {
        let runs = screen.list.as_ref().map(|list| list.runs.as_slice()).unwrap_or_default();
        let rows = |n: usize| match n.checked_sub(1) {
            None => Some(("The whole session".to_owned(), String::new())),
            Some(n) => runs.get(n).map(|run| {
                let prompt = if run.prompt.is_empty() { "a run" } else { &run.prompt };
                let files = counted(run.files, "file");
                (format!("{} {prompt}", clock(run.at)), files)
            }),
        };
        self.choice("Changes of", (runs.len() + 1, at), "", rows);
    }

    /// Draws a window with rows to choose from: text at the left, and at the right.
    fn choice(
        &mut self,
        title: &str,
        (count, at): (usize, usize),
        none: &str,
        row: impl Fn(usize) -> Option<(String, String)>,
    ) {
        let theme = &self.shared.theme;
        let high = u16::try_from(count.max(1) + 2).unwrap_or(u16::MAX).min(self.shared.size.1.saturating_sub(4));
        let inside = self.window(90, high, title);
        if count == 0 {
            self.put(inside.x, inside.y, Span::styled(none.to_owned(), theme.dim), inside.width);
        }
        let (visible, from) = window(count, at, usize::from(inside.height));
        for (n, y) in (from..from + visible).zip(inside.y..) {
            let Some((left, right)) = row(n) else { break };
            let space = usize::from(inside.width).saturating_sub(sanitize::width(&right) + 1);
            let spans =
                vec![cell(&left, space.saturating_sub(1), theme.text), Span::styled(format!(" {right}"), theme.dim)];
            self.put(inside.x, y, spans, inside.width);
            if n == at {
                self.fill(Rect::new(inside.x, y, inside.width, 1), theme.selected);
            }
        }
    }
}
