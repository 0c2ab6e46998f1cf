//! The user's state of one surface: the focus, the typed text, the unfolded parts. Pure.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use plexus_surfaces::{Surface, row_order};
use ratatui_textarea::TextArea;
use serde_json::Value;

use super::part::ComponentKey;

/// Time that a control does not react to a press after it appeared or changed its meaning, in milliseconds.
pub(crate) const PRESS_DELAY: i64 = plexus_protocol::answers::GUARD_MS as i64;

/// The state of a text field while it is edited.
#[derive(Clone, Debug)]
pub(super) struct Editing {
    pub(super) component: ComponentKey,
    pub(super) area: TextArea<'static>,
}

/// The surface with the typed values in its data, so that parts that depend on them are shown.
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

/// The state of a surface that the user changed. It is kept while the surface changes.
#[derive(Debug, Default)]
pub(crate) struct SurfaceState {
    /// The values that were typed or chosen and not sent yet, by the pointer of the input.
    pub(super) inputs: BTreeMap<String, Value>,
    /// The number of changes of `inputs`.
    pub(super) edits: u64,
    typed: Option<Typed>,
    pub(super) focus: Option<ComponentKey>,
    pub(super) editing: Option<Editing>,
    pub(crate) scroll: usize,
    /// `true` if the screen scrolls to the focus.
    pub(super) follow: bool,
    /// The index of the tab, or of the option, row or entry under the cursor.
    pub(super) cursors: BTreeMap<ComponentKey, usize>,
    /// The column of a table that keys act on.
    pub(super) columns: BTreeMap<ComponentKey, usize>,
    /// The order that the user chose for a table: the column's key, and whether it is descending. `None` is the agent's own order.
    pub(super) sorts: BTreeMap<ComponentKey, Option<(String, bool)>>,
    /// The folded folders of a tree.
    pub(super) folded: BTreeMap<ComponentKey, BTreeSet<String>>,
    /// The modals that are open.
    pub(super) opened: BTreeSet<ComponentKey>,
    pub(super) orders: RefCell<BTreeMap<ComponentKey, Order>>,
    /// The control that was pressed; no other can be until the gateway has replied.
    pub(super) sent: Option<ComponentKey>,
    /// The reason why the last press was refused.
    pub(crate) problem: String,
    /// The meaning of a press on the focus, and the time since when it is unchanged.
    pub(super) meaning: (Option<ComponentKey>, String, i64),
    /// `true` if a key of the user was handled since the last layout.
    pub(super) own: bool,
    /// The revision, edits, columns and rows of the last layout.
    pub(super) prepared: Option<(u64, u64, usize, usize)>,
    /// The numbers of lines and of rows on the screen in the last layout.
    pub(super) size: (usize, usize),
}

impl SurfaceState {
    /// Opens the surface; if it has a question, the first control gets the focus.
    pub(super) fn enter(&mut self, now: i64, asks: bool) {
        self.meaning = (None, String::new(), now);
        self.editing = None;
        self.own = false;
        if self.focus.is_none() && asks {
            self.focus = Some(ComponentKey::default());
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

    /// Updates the copy of the surface with the typed values, if one of both has changed.
    pub(super) fn refresh(&mut self, surface: &Surface) {
        let now = (surface.rev(), self.edits);
        if self.inputs.is_empty() {
            self.typed = None;
        } else if self.typed.as_ref().is_none_or(|typed| (typed.rev, typed.edits) != now) {
            let typed = surface.with_inputs(&self.inputs);
            self.typed = Some(Typed { rev: now.0, edits: now.1, surface: typed });
        }
    }

    /// Returns whether a press on the focus is meant for the current control.
    pub(super) fn is_armed(&self, now: i64) -> bool {
        // A clock that was set back must not block forever.
        !(0..PRESS_DELAY).contains(&(now - self.meaning.2))
    }

    pub(super) fn scroll_by(&mut self, by: i64) {
        let rows = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
        let end = self.size.0.saturating_sub(self.size.1);
        self.scroll = if by < 0 { self.scroll.saturating_sub(rows) } else { self.scroll.saturating_add(rows).min(end) };
    }

    /// The number of rows of a page on the screen.
    pub(super) fn page(&self) -> usize {
        self.size.1.saturating_sub(2).max(1)
    }

    pub(super) fn set_input(&mut self, pointer: &str, value: Value) {
        self.inputs.insert(pointer.to_owned(), value);
        self.edits += 1;
        self.problem.clear();
    }

    /// Applies the reply to a press, with the reason of a refusal.
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
        component: &ComponentKey,
        rev: u64,
        rows: &[Value],
        sort: Option<&(String, bool)>,
    ) -> Rc<Vec<usize>> {
        let mut orders = self.orders.borrow_mut();
        if let Some(order) = orders.get(component)
            && (order.rev, order.edits, order.sort.as_ref()) == (rev, self.edits, sort)
        {
            return Rc::clone(&order.rows);
        }
        let sorted = Rc::new(row_order(rows, sort.map(|(key, descending)| (key.as_str(), *descending))));
        let order = Order { rev, edits: self.edits, sort: sort.cloned(), rows: Rc::clone(&sorted) };
        orders.insert(component.clone(), order);
        sorted
    }
}
