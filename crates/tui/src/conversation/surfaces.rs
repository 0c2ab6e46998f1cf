//! The surfaces in a conversation: the block of each, and the one that a key opens.

use plexus_surfaces::Change;

use super::*;

impl Conversation {
    /// Applies a change of a surface. A surface that is shown has a block: where it was shown last in its run.
    pub(super) fn surface(&mut self, name: String, body: Value, position: u64) {
        let change = Change::deserialize(body).ok();
        let is_opened = change.as_ref().is_none_or(|change| change.base.is_none() && !change.closed);
        if self.drawn.follows
            && let Some(change) = change
        {
            self.surfaces.apply(change);
        }
        if let Some(id) = self.drawn.blocks.get(&name).copied() {
            let first = self.blocks.front().map_or(0, |block| block.id);
            let at = id.checked_sub(first).and_then(|n| usize::try_from(n).ok());
            if let Some(block) = at.and_then(|at| self.blocks.get_mut(at)) {
                *block.drawn.borrow_mut() = None;
            }
            let run = self.blocks.iter().rev().take_while(|block| !matches!(block.body, BlockBody::Ended { .. }));
            if !is_opened || run.into_iter().any(|block| block.id == id) {
                return;
            }
        }
        if is_opened {
            let id = self.push(BlockBody::Surface(name.clone()), position);
            self.drawn.blocks.insert(name, id);
        }
    }

    /// Replaces the surfaces by a newer listing.
    pub(crate) fn replace_surfaces(&mut self, list: &[Box<RawValue>]) {
        self.surfaces.replace(list);
        self.redraw_surfaces();
    }

    fn redraw_surfaces(&mut self) {
        for block in self.blocks.iter_mut().filter(|block| matches!(block.body, BlockBody::Surface(_))) {
            *block.drawn.borrow_mut() = None;
        }
    }

    /// Names the agent in the frames of its surfaces.
    pub(crate) fn set_agent(&mut self, name: &str) {
        if self.drawn.agent != name {
            name.clone_into(&mut self.drawn.agent);
            self.redraw_surfaces();
        }
    }

    /// The agent's name in frames.
    pub(crate) fn agent(&self) -> &str {
        if self.drawn.agent.is_empty() { "the agent" } else { &self.drawn.agent }
    }

    /// The surface that a key opens: that of the selected block, else the first pinned one, else the one that changed last.
    pub(crate) fn surface_at_hand(&self) -> Option<String> {
        let list = self.list();
        let chosen = self.scroll_position.chosen.and_then(|id| list.get(self.at(id)));
        if let Some(Block { body: BlockBody::Surface(name), .. }) = chosen
            && self.surfaces.get(name).is_some()
        {
            return Some(name.clone());
        }
        let all = || self.surfaces.names().into_iter().filter_map(|name| self.surfaces.get(name));
        let one = all().find(|surface| surface.pinned()).or_else(|| all().max_by_key(|surface| surface.at()));
        one.map(|surface| surface.name().to_owned())
    }
}
