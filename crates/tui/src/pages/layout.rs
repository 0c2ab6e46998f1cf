//! The areas of the panes: a list at the left, the conversation in the middle, and its details at the right. A narrow terminal shows one of
//! them at a time.

use std::ops::Range;

use ratatui::layout::Rect;

use super::TuiPage;
use super::context::MouseInput;
use super::shared::Shared;
use crate::card::Card;

/// Minimum width of a supported terminal, in columns.
pub(crate) const WIDTH_MIN: u16 = 40;
/// Minimum height of a supported terminal, in lines.
pub(crate) const HEIGHT_MIN: u16 = 12;
/// Width below which a list has two lines for each row, in columns.
pub(crate) const NARROW: u16 = 72;
/// Height below which a card takes the space of other parts, in lines.
pub(super) const LOW: u16 = 14;
/// Width below which the first line is shortened, in columns.
pub(crate) const NARROW_TABS: u16 = 60;
/// Width from which a list and a session are shown side by side, in columns.
const PANES_MIN: u16 = 120;
/// Width from which there is also a pane at the right of the session, in columns.
const DETAIL_MIN: u16 = 180;
/// The minimum and maximum width of a list beside a session, in columns.
const LIST_COLUMNS: (u16, u16) = (40, 60);
/// The minimum and maximum width of the pane at the right, in columns.
const DETAIL_COLUMNS: (u16, u16) = (50, 70);

/// The area of each pane; a pane that is not on the screen has no columns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Panes {
    pub(crate) list: Rect,
    pub(crate) middle: Rect,
    pub(crate) detail: Rect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    List,
    Middle,
    Detail,
}

/// The area between the first and the last line.
pub(crate) fn body(shared: &Shared) -> Rect {
    let (width, height) = shared.size;
    Rect::new(0, 1, width, height.saturating_sub(2))
}

/// Returns whether the terminal is large enough to draw on.
pub(crate) fn fits(shared: &Shared) -> bool {
    shared.size.0 >= WIDTH_MIN && shared.size.1 >= HEIGHT_MIN
}

/// The visible lines of a list: how many, and the first one.
pub(crate) fn window(count: usize, at: usize, rows: usize) -> (usize, usize) {
    let visible = count.min(rows);
    let first = at.saturating_sub(rows / 2).min(count.saturating_sub(visible));
    (visible, first)
}

/// Returns whether a list and a session are side by side.
pub(crate) fn has_panes(shared: &Shared) -> bool {
    shared.size.0 >= PANES_MIN
        && shared.size.1 >= HEIGHT_MIN
        && matches!(shared.page, TuiPage::Inbox | TuiPage::Sessions | TuiPage::Session)
}

/// Returns whether the list of this page is on the screen.
pub(crate) fn shows_list(shared: &Shared, page: TuiPage) -> bool {
    shared.page == page || shared.page == TuiPage::Session && shared.list_page() == page && has_panes(shared)
}

/// The panes of the screen.
pub(crate) fn panes(shared: &Shared) -> Panes {
    let all = body(shared);
    let none = Rect::default();
    if !has_panes(shared) {
        return match shared.page {
            TuiPage::Session => Panes { middle: all, ..Panes::default() },
            _ => Panes { list: all, ..Panes::default() },
        };
    }
    let share = all.width * 3 / 10;
    let list = Rect { width: share.clamp(LIST_COLUMNS.0, LIST_COLUMNS.1), ..all };
    let wide = if all.width >= DETAIL_MIN { share.clamp(DETAIL_COLUMNS.0, DETAIL_COLUMNS.1) } else { 0 };
    let detail = if wide > 0 { Rect { x: all.width - wide, width: wide, ..all } } else { none };
    // A rule stands between two panes.
    let from = list.width + 1;
    let to = if wide > 0 { detail.x - 1 } else { all.width };
    Panes { list, middle: Rect { x: from, width: to.saturating_sub(from), ..all }, detail }
}

/// The height of the list of runtimes or devices: the selected one is shown in full below it.
pub(super) fn list_height(all: Rect) -> u16 {
    all.height.saturating_sub(6)
}

/// The pane at a place of the screen.
pub(crate) fn pane_at(shared: &Shared, column: u16, row: u16) -> Option<Pane> {
    let panes = panes(shared);
    let all = [(panes.list, Pane::List), (panes.middle, Pane::Middle), (panes.detail, Pane::Detail)];
    all.into_iter().find_map(|(area, pane)| area.contains((column, row).into()).then_some(pane))
}

/// The space for a card in the pane at the right, if there is one.
pub(crate) fn detail_card_space(shared: &Shared) -> Option<Rect> {
    let detail = panes(shared).detail;
    let form = shared.card.card.as_ref().is_some_and(Card::is_form);
    let height = if form { detail.height } else { detail.height * 8 / 10 };
    (detail.width > 0).then(|| Rect { y: detail.y + detail.height - height, height, ..detail })
}

/// The area of the card within its space: at the bottom of the pane at the right, else at the top.
pub(crate) fn card_rect(shared: &Shared, space: Rect) -> Option<Rect> {
    let card = shared.card.card.as_ref()?;
    let (ask, _) = shared.requests.get(&card.id)?;
    let height = card.shape(ask, space.width, usize::from(space.height), &shared.theme).height;
    let height = u16::try_from(height).unwrap_or(space.height).min(space.height);
    let y = if panes(shared).detail.width > 0 { space.y + space.height - height } else { space.y };
    Some(Rect { y, height, ..space })
}

/// The areas of the rows on the screen, each with the index of its row.
pub(super) fn visible_rows(area: Rect, rows: Range<usize>, height: impl Fn(usize) -> u16) -> Vec<(usize, Rect)> {
    let (mut y, end) = (area.y + 1, area.y + area.height);
    let mut out = Vec::new();
    for at in rows {
        if y >= end {
            break;
        }
        let height = height(at).min(end - y);
        out.push((at, Rect { y, height, ..area }));
        y += height;
    }
    out
}

/// The row at a place of the screen.
pub(super) fn row_at(rows: &[(usize, Rect)], mouse: MouseInput) -> Option<usize> {
    rows.iter().find_map(|(at, area)| area.contains((mouse.column, mouse.row).into()).then_some(*at))
}

/// The row at a line of the screen, in a list with one-line rows around the selected one.
pub(super) fn line_row(area: Rect, count: usize, at: usize, line: u16) -> Option<usize> {
    let line = line.checked_sub(area.y + 1).filter(|line| line + 1 < area.height)?;
    let at = window(count, at, usize::from(area.height - 1)).1 + usize::from(line);
    (at < count).then_some(at)
}

/// The first of `count` rows such that the one at `at` is within `space` lines, and no line is empty before the end.
pub(super) fn first_row(before: usize, at: usize, count: usize, space: u16, height: impl Fn(usize) -> u16) -> usize {
    // The rows above a row, as far as they fit.
    let fits = |last: usize| {
        let (mut first, mut used) = (last, height(last));
        while first > 0 && used + height(first - 1) <= space {
            first -= 1;
            used += height(first);
        }
        first
    };
    if count == 0 {
        return 0;
    }
    let at = at.min(count - 1);
    before.min(at).max(fits(at)).min(fits(count - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_row_keeps_the_screen_still_and_the_selected_row_on_it() {
        let two = |_: usize| 2;
        // Ten rows of two lines, on six lines: three rows.
        for (before, at, top) in
            [(0, 0, 0), (0, 2, 0), (0, 3, 1), (5, 5, 5), (5, 4, 4), (5, 7, 5), (5, 8, 6), (9, 9, 7)]
        {
            assert_eq!(first_row(before, at, 10, 6, two), top, "{before} {at}");
        }
        assert_eq!(first_row(3, 9, 0, 6, two), 0, "no rows");
        assert_eq!(first_row(7, 1, 2, 6, two), 0, "all fit");
        assert_eq!(first_row(0, 4, 10, 1, two), 4, "a row that does not fit is at the top");
    }
}
