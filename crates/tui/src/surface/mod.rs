//! The surfaces that agents draw in the open session, and the user's actions on them. Pure.
//!
//! The text of a surface is its agent's: it is [sanitized](super::sanitize) when it becomes a line, and the frame around it is drawn by the
//! pages. A surface can answer only its own questions.

mod chart;
mod controls;
mod keys;
mod layout;
mod lists;
mod part;
mod prepare;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use plexus_surfaces::{Change, Fold, Surface, SurfaceSet};
use serde_json::value::RawValue;

pub(crate) use keys::SurfaceStep;
pub(crate) use layout::{Layout, LayoutContext, layout};
pub(crate) use state::SurfaceState;

use super::sanitize;
use super::theme::Theme;

/// Maximum number of changes that are queued while the surfaces are read again; beyond it, they are read once more.
const WAITING_MAX: usize = 1000;
/// Maximum length of a title, in columns.
const TITLE_MAX: usize = 120;

/// The surfaces of the open session.
#[derive(Debug, Default)]
pub(crate) struct SessionSurfaces {
    set: SurfaceSet,
    states: BTreeMap<String, SurfaceState>,
    /// The surface that fills the page.
    open: Option<String>,
    /// Changes that arrived while the surfaces are being read again.
    waiting: Option<Vec<Change>>,
    /// `true` if a change was missed.
    stale: bool,
}

impl SessionSurfaces {
    /// Replaces all surfaces by those of a snapshot or a listing.
    pub(crate) fn replace(&mut self, list: &[Box<RawValue>]) {
        let mut set = SurfaceSet::default();
        for wire in list {
            // A surface that this version cannot read does not hide the others.
            if let Ok(wire) = serde_json::from_str(wire.get())
                && let Ok(one) = SurfaceSet::from_wire(vec![wire])
            {
                for surface in one.iter() {
                    set.apply(&surface.to_change());
                }
            }
        }
        self.set = set;
        for change in self.waiting.take().unwrap_or_default() {
            self.stale |= self.set.apply(&change) == Fold::Gap;
        }
        self.forget_closed();
    }

    /// Applies the body of a `surface_updated`.
    pub(crate) fn apply(&mut self, change: Change) {
        let gap = self.set.apply(&change) == Fold::Gap;
        match &mut self.waiting {
            // The check whether it applies follows after the read.
            Some(waiting) if waiting.len() < WAITING_MAX => waiting.push(change),
            Some(_) => self.stale = true,
            None => self.stale |= gap,
        }
        self.forget_closed();
    }

    /// Returns whether the surfaces have to be read again now, and marks them as being read.
    pub(crate) fn read_again(&mut self) -> bool {
        if !self.stale || self.waiting.is_some() {
            return false;
        }
        self.stale = false;
        self.waiting = Some(Vec::new());
        true
    }

    /// Returns whether the surfaces are being read again.
    pub(crate) fn is_reading(&self) -> bool {
        self.waiting.is_some()
    }

    /// Records that the surfaces could not be read again: they may be out of date until the next change.
    pub(crate) fn end_reading(&mut self) {
        self.waiting = None;
    }

    fn forget_closed(&mut self) {
        let set = &self.set;
        self.states.retain(|name, _| set.get(name).is_some());
        if self.open.as_ref().is_some_and(|name| set.get(name).is_none()) {
            self.open = None;
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Surface> {
        self.set.get(name)
    }

    /// The names, pinned surfaces first.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut all: Vec<&Surface> = self.set.iter().collect();
        all.sort_by_key(|surface| !surface.pinned());
        all.into_iter().map(Surface::name).collect()
    }

    /// The titles of the pinned surfaces.
    pub(crate) fn pinned(&self) -> Vec<String> {
        self.set.iter().filter(|surface| surface.pinned()).map(title).collect()
    }

    /// The surface that fills the page.
    pub(crate) fn open(&self) -> Option<&Surface> {
        self.open.as_ref().and_then(|name| self.set.get(name))
    }

    /// The index of the open surface, counted from 1, and the number of surfaces.
    pub(crate) fn open_position(&self) -> (usize, usize) {
        let names = self.names();
        let at = names.iter().position(|name| Some(*name) == self.open.as_deref());
        (at.map_or(0, |at| at + 1), names.len())
    }

    pub(crate) fn open_state(&self) -> Option<&SurfaceState> {
        self.open.as_ref().and_then(|name| self.states.get(name))
    }

    pub(crate) fn state_mut(&mut self, name: &str) -> Option<&mut SurfaceState> {
        self.states.get_mut(name)
    }

    /// Opens a surface; returns `false` if none has this name.
    pub(crate) fn show(&mut self, name: &str, now: i64) -> bool {
        let Some(surface) = self.set.get(name) else { return false };
        let asks = surface.ask().is_some();
        self.states.entry(name.to_owned()).or_default().enter(now, asks);
        self.open = Some(name.to_owned());
        true
    }

    /// Goes to the next or previous surface.
    pub(crate) fn step(&mut self, next: bool, now: i64) {
        let names: Vec<String> = self.names().into_iter().map(str::to_owned).collect();
        let at = names.iter().position(|name| Some(name) == self.open.as_ref()).unwrap_or(0);
        let step = if next { 1 } else { names.len().saturating_sub(1) };
        if let Some(name) = names.get((at + step) % names.len().max(1)) {
            self.show(name, now);
        }
    }

    /// Goes back to the conversation.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    /// The request of the open surface.
    pub(crate) fn open_ask(&self) -> Option<&str> {
        self.open()?.ask().map(|ask| ask.request_id.as_str())
    }

    /// Returns whether text is being typed into the open surface.
    pub(crate) fn is_typing(&self) -> bool {
        self.open_state().is_some_and(SurfaceState::is_typing)
    }

    /// Returns whether a letter begins or continues a text in the open surface.
    pub(crate) fn has_text_focus(&self, cx: &LayoutContext<'_>) -> bool {
        self.open().zip(self.open_state()).is_some_and(|(surface, state)| state.has_text_focus(surface, cx))
    }

    /// Lays the open surface out for this space, and updates its state accordingly.
    pub(crate) fn prepare(&mut self, cx: &LayoutContext<'_>, now: i64) {
        if let Some(name) = &self.open
            && let (Some(surface), Some(state)) = (self.set.get(name), self.states.get_mut(name))
        {
            state.prepare(surface, cx, now);
        }
    }

    /// All lines of the open surface, and the index of the first one on the screen.
    pub(crate) fn draw_open(&self, cx: &LayoutContext<'_>) -> Option<(Layout, usize)> {
        let (surface, state) = (self.open()?, self.open_state()?);
        Some((layout(state.visible(surface), state, cx), state.scroll))
    }

    /// Passes a key to the open surface.
    pub(crate) fn key(&mut self, key: &super::input::Key, cx: &LayoutContext<'_>, now: i64) -> SurfaceStep {
        match &self.open {
            Some(name) => match (self.set.get(name), self.states.get_mut(name)) {
                (Some(surface), Some(state)) => state.key(key, surface, cx, now),
                _ => SurfaceStep::Nothing,
            },
            None => SurfaceStep::Nothing,
        }
    }

    /// Scrolls the open surface.
    pub(crate) fn scroll(&mut self, by: i64) {
        if let Some(state) = self.open.as_ref().and_then(|name| self.states.get_mut(name)) {
            state.scroll_by(by);
        }
    }

    /// Inserts pasted text into the field of the open surface that has the focus; returns `false` if none has.
    pub(crate) fn paste(&mut self, text: &str, cx: &LayoutContext<'_>) -> bool {
        match &self.open {
            Some(name) => match (self.set.get(name), self.states.get_mut(name)) {
                (Some(surface), Some(state)) => state.paste(text, surface, cx),
                _ => false,
            },
            None => false,
        }
    }
}

/// A surface's title, sanitized.
pub(crate) fn title(surface: &Surface) -> String {
    let title = sanitize::line(surface.title().unwrap_or_default(), TITLE_MAX);
    if title.trim().is_empty() { sanitize::line(surface.name(), TITLE_MAX) } else { title }
}

/// A surface in the conversation: its first lines, without a focus, and the number of further ones.
pub(crate) fn inline(
    surface: &Surface,
    theme: &Theme,
    width: usize,
    max: usize,
) -> (Vec<ratatui::text::Line<'static>>, usize) {
    let state = SurfaceState::default();
    let mut lines = layout(surface, &state, &LayoutContext { theme, width, height: max, inline: true }).lines;
    let more = lines.len().saturating_sub(max);
    lines.truncate(max);
    (lines, more)
}
