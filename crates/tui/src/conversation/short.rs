//! Tool calls that pages truncated, and loading the rest of them. Pure.

use plexus_protocol::transcript::EntryBody;

use super::*;

/// Maximum number of parts of one call whose places are stored; the rest of a call with more is only in an export.
const PARTS_MAX: usize = 200;
/// Maximum number of updates of a call that are stored while its rest is being loaded; beyond it, the call has to be loaded again.
const SINCE_MAX: usize = 2000;

/// The data of a tool call beside its content.
#[derive(Clone, Debug, Default)]
pub(super) struct CallParts {
    /// The identifier.
    pub(super) id: String,
    /// The number of bytes that pages left out.
    pub(super) left_out: u64,
    /// The places of its events: the first and the last of each part.
    parts: Vec<(u64, u64)>,
    /// `true` if there are more parts than stored places.
    many: bool,
    /// The updates that arrived while the rest is being loaded.
    since: Option<Vec<(u64, Map<String, Value>)>>,
}

/// A tool call whose rest is to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WholeCall {
    pub(crate) block: u64,
    pub(crate) id: String,
    /// The part of cursors that names the log.
    pub(crate) epoch: String,
    /// The places of its events: the first and the last of each part.
    pub(crate) parts: Vec<(u64, u64)>,
}

impl CallParts {
    /// Starts without any part of the call with this identifier.
    pub(super) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    /// Adds an update of the call, whose events are at these places.
    pub(super) fn add(&mut self, update: &Map<String, Value>, (first, last): (u64, u64), paged: bool) {
        self.left_out += ToolCall::left_out(update);
        if let Some(since) = &mut self.since {
            since.push((last, update.clone()));
        }
        // Live events are complete: their places are needed only together with those of a page.
        if !paged && self.left_out == 0 {
            return;
        }
        let full = self.parts.len() >= PARTS_MAX;
        match self.parts.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ if full => self.many = true,
            _ => self.parts.push((first, last)),
        }
    }

    /// Returns whether the rest is being loaded.
    pub(super) fn is_loading(&self) -> bool {
        self.since.is_some()
    }
}

impl Conversation {
    fn call_mut(&mut self, id: u64) -> Option<&mut Block> {
        let list = self.history.older.as_mut().map_or(&mut self.blocks, |older| &mut older.blocks);
        let at = list.binary_search_by_key(&id, |block| block.id).ok();
        let at = at.or_else(|| list.iter().position(|block| block.id == id))?;
        list.get_mut(at)
    }

    /// The call whose rest a key loads: the selected one, or the last one on the screen. The error is the reason why there is none.
    pub(crate) fn load_rest(&mut self, cx: &DrawContext<'_>) -> Result<WholeCall, &'static str> {
        let list = self.list();
        let is_short = |at: usize| matches!(&list[at].body, BlockBody::Tool { parts, .. } if parts.left_out > 0);
        let chosen = self.scroll_position.chosen.map(|id| self.at(id)).filter(|at| is_short(*at));
        let last_visible = || (0..list.len()).rev().find(|at| is_short(*at) && self.visible(*at, cx));
        let Some(at) = chosen.or_else(last_visible) else { return Err("nothing is left out here") };
        let id = list[at].id;
        let epoch = self.cursor.as_ref().ok_or("nothing was read yet")?.epoch.to_string();
        let Some(Block { body: BlockBody::Tool { parts, .. }, drawn, .. }) = self.call_mut(id) else {
            return Err("nothing is left out here");
        };
        if parts.many {
            return Err("it has too many parts to load it here: export the session (E)");
        }
        if parts.is_loading() {
            return Err("it is being loaded");
        }
        parts.since = Some(Vec::new());
        *drawn.borrow_mut() = None;
        Ok(WholeCall { block: id, id: parts.id.clone(), epoch, parts: parts.parts.clone() })
    }

    /// Applies the rest of a call: all its events, and the place of the last one; `None` if it could not be loaded.
    pub(crate) fn on_rest(&mut self, block: u64, loaded: Option<(Vec<EventEnvelope>, u64)>) {
        let Some(Block { body: BlockBody::Tool { call, parts, .. }, toggled, drawn, .. }) = self.call_mut(block) else {
            return;
        };
        let since = parts.since.take().unwrap_or_default();
        *drawn.borrow_mut() = None;
        let Some((events, last)) = loaded.filter(|_| since.len() <= SINCE_MAX) else { return };
        let before = call.bytes();
        *call = ToolCall::default();
        for event in events {
            if let Some(EntryBody::Tool { id, update, .. }) = event.entry()
                && id == parts.id
            {
                call.update(update);
            }
        }
        for (_, update) in since.into_iter().filter(|(position, _)| *position > last) {
            call.update(update);
        }
        (parts.left_out, *toggled) = (0, true);
        let after = call.bytes();
        if self.history.older.is_none() {
            self.bounds.bytes = (self.bounds.bytes + after).saturating_sub(before);
        }
        // The rest was requested to be read, so it is unfolded.
        if self.folds.tools
            && let Some(block) = self.call_mut(block)
        {
            block.toggled = false;
        }
    }
}
