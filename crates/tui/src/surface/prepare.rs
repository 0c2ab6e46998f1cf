//! The state of a surface after its layout: the focus, the scroll position, and the meaning of a press.

use plexus_surfaces::Surface;

use super::layout::{LayoutContext, layout};
use super::part::{Control, FocusTarget};
use super::state::SurfaceState;

impl SurfaceState {
    /// Returns whether a letter begins or continues a text.
    pub(super) fn has_text_focus(&self, surface: &Surface, cx: &LayoutContext<'_>) -> bool {
        let is_text = |target: &FocusTarget| {
            Some(&target.component) == self.focus.as_ref() && matches!(target.control, Control::Text { .. })
        };
        self.is_typing() || layout(self.visible(surface), self, cx).targets.iter().any(is_text)
    }

    /// Updates the state to the surface and the space for it.
    pub(super) fn prepare(&mut self, surface: &Surface, cx: &LayoutContext<'_>, now: i64) {
        // Many events change nothing here.
        let current = (surface.rev(), self.edits, cx.width, cx.height);
        if self.prepared == Some(current) && !self.own && !self.follow {
            return;
        }
        self.prepared = Some(current);
        self.refresh(surface);
        let laid_out = layout(self.visible(surface), self, cx);
        self.size = (laid_out.lines.len(), cx.height);
        self.orders
            .borrow_mut()
            .retain(|component, _| laid_out.targets.iter().any(|target| target.component == *component));
        // The empty key represents the first control.
        if self.focus.as_ref().is_some_and(|component| component.id.is_empty()) {
            self.focus = laid_out.targets.first().map(|target| target.component.clone());
        }
        let target = self
            .focus
            .as_ref()
            .and_then(|component| laid_out.targets.iter().find(|target| target.component == *component));
        if target.is_none() {
            (self.focus, self.editing) = (None, None);
        }
        if self.editing.as_ref().is_some_and(|editing| Some(&editing.component) != self.focus.as_ref()) {
            self.editing = None;
        }
        let meaning = target.map(|target| target.meaning.clone()).unwrap_or_default();
        if (&self.meaning.0, &self.meaning.1) != (&self.focus, &meaning) {
            // The user knows the change of an own key.
            let since = if self.own { self.meaning.2 } else { now };
            self.meaning = (self.focus.clone(), meaning, since);
        }
        self.own = false;
        if std::mem::take(&mut self.follow)
            && let Some(target) = target
        {
            let lines = &target.lines;
            self.scroll = self.scroll.min(lines.start).max(lines.end.saturating_sub(cx.height));
        }
        self.scroll = self.scroll.min(self.size.0.saturating_sub(cx.height));
    }
}
