//! The user's state of one surface: the focus, the typed text, the unfolded parts. Pure.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use plexus_surfaces::{Surface, row_order};
use ratatui_textarea::TextArea;
use serde_json::Value;

use super::part::Place;

/// Time that a control that appeared, or came to mean something else, does not react to a press, in milliseconds.
pub(crate) const PRESS_DELAY: i64 = plexus_protocol::answers::GUARD_MS as i64;

/// The state of a text field while it is edited.
#[derive(Clone, Debug)]
pub(super) struct Editing {
    pub(super) place: Place,
    pub(super) area: TextArea<'static>,
}

/// The surface with what was typed in its data, so that what depends on it is shown.
#[derive(Debug)]
struct Typed {
    rev: u64,
    edits: u64,
    surface: Surface,
}

/// The order of a table's rows, for a revision of the surface.
#[derive(Debug)]
pub(super) struct Order {
    rev: u64,
    edits: u64,
    sort: Option<(String, bool)>,
    rows: Rc<Vec<usize>>,
}

/// The state of a surface that the user changed. It stays while the surface changes.
#[derive(Debug, Default)]
pub(crate) struct SurfaceState {
    /// The values that were typed or chosen and not sent yet, by the pointer of the input.
    pub(super) inputs: BTreeMap<String, Value>,
    /// Counts the changes of `inputs`.
    pub(super) edits: u64,
    typed: Option<Typed>,
    pub(super) focus: Option<Place>,
    pub(super) editing: Option<Editing>,
    pub(crate) scroll: usize,
    /// `true` if the screen goes where the focus is.
    pub(super) follow: bool,
    /// The shown tab, the option, row or entry under the cursor.
    pub(super) cursors: BTreeMap<Place, usize>,
    /// The column of a table that keys act on.
    pub(super) columns: BTreeMap<Place, usize>,
    /// The order that the user gave a table: the column's key, and whether the greatest is first. None is the agent's own order.
    pub(super) sorts: BTreeMap<Place, Option<(String, bool)>>,
    /// The folded folders of a tree.
    pub(super) folded: BTreeMap<Place, BTreeSet<String>>,
    /// The modals that are open.
    pub(super) opened: BTreeSet<Place>,
    pub(super) orders: RefCell<BTreeMap<Place, Order>>,
    /// The control that was pressed; no other is until the gateway has replied.
    pub(super) sent: Option<Place>,
    /// The reason why the last press was refused.
    pub(crate) problem: String,
    /// The meaning of a press on the focus, and since when.
    pub(super) meaning: (Option<Place>, String, i64),
    /// `true` if a key of the user was applied since the last layout.
    pub(super) own: bool,
    /// The revision, edits, columns and rows of the last layout.
    pub(super) prepared: Option<(u64, u64, usize, usize)>,
    /// Lines, and rows on the screen, of the last layout.
    pub(super) size: (usize, usize),
}

impl SurfaceState {
    /// The user opens the surface; of one that asks, the first control gets the focus.
    pub(super) fn enter(&mut self, now: i64, asks: bool) {
        self.meaning = (None, String::new(), now);
        self.editing = None;
        self.own = false;
        if self.focus.is_none() && asks {
            self.focus = Some(Place::default());
        }
        self.follow = true;
    }

    pub(super) fn is_typing(&self) -> bool {
        self.editing.is_some()
    }

    /// The surface as the user sees it.
    pub(super) fn visible<'a>(&'a self, surface: &'a Surface) -> &'a Surface {
        match &self.typed {
            Some(typed) if !self.inputs.is_empty() && (typed.rev, typed.edits) == (surface.rev(), self.edits) => {
                &typed.surface
            }
            _ => surface,
        }
    }

    /// Puts what was typed into a copy of the surface, if one of both has changed.
    pub(super) fn refresh(&mut self, surface: &Surface) {
        let now = (surface.rev(), self.edits);
        if self.inputs.is_empty() {
            self.typed = None;
        } else if self.typed.as_ref().is_none_or(|typed| (typed.rev, typed.edits) != now) {
            let typed = surface.with_inputs(&self.inputs);
            self.typed = Some(Typed { rev: now.0, edits: now.1, surface: typed });
        }
    }

    /// Returns whether a press on the focus is meant for what stands there now.
    pub(super) fn is_armed(&self, now: i64) -> bool {
        // A clock that was set back must not block forever.
        !(0..PRESS_DELAY).contains(&(now - self.meaning.2))
    }

    pub(super) fn scroll_by(&mut self, by: i64) {
        let rows = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
        let end = self.size.0.saturating_sub(self.size.1);
        self.scroll = if by < 0 { self.scroll.saturating_sub(rows) } else { self.scroll.saturating_add(rows).min(end) };
    }

    /// The rows of a page on the screen.
    pub(super) fn page(&self) -> usize {
        self.size.1.saturating_sub(2).max(1)
    }

    pub(super) fn set_input(&mut self, pointer: &str, value: Value) {
        self.inputs.insert(pointer.to_owned(), value);
        self.edits += 1;
        self.problem.clear();
    }

    /// The gateway replied to a press: with nothing, or why it refused.
    pub(crate) fn replied(&mut self, refused: Option<String>) {
        self.sent = None;
        match refused {
            None => {
                self.inputs.clear();
                self.edits += 1;
                self.editing = None;
                self.problem.clear();
            }
            Some(why) => self.problem = why,
        }
    }

    /// The order of a table's rows. It is sorted once for each revision.
    pub(super) fn order(
        &self,
        place: &Place,
        rev: u64,
        rows: &[Value],
        sort: Option<&(String, bool)>,
    ) -> Rc<Vec<usize>> {
        let mut orders = self.orders.borrow_mut();
        if let Some(order) = orders.get(place)
            && (order.rev, order.edits, order.sort.as_ref()) == (rev, self.edits, sort)
        {
            return Rc::clone(&order.rows);
        }
        let sorted = Rc::new(row_order(rows, sort.map(|(key, descending)| (key.as_str(), *descending))));
        let order = Order { rev, edits: self.edits, sort: sort.cloned(), rows: Rc::clone(&sorted) };
        orders.insert(place.clone(), order);
        sorted
    }
}
