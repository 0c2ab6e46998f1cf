//! The blocks of a conversation: messages, tool calls, plans, requests.

use super::*;

/// A part of a tool call's display.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ToolPart<'a> {
    Output(&'a str),
    /// A change, and the number of lines of the file before the texts.
    Diff {
        path: String,
        old: &'a str,
        new: &'a str,
        before: usize,
    },
    Other(String),
}

/// The content of a block.
#[derive(Clone, Debug)]
pub(super) enum BlockBody {
    Text {
        who: Role,
        text: String,
        continued: bool,
    },
    Tool {
        call: ToolCall,
        from: i64,
        until: i64,
        /// `true` if a request asked about the call.
        requested: bool,
        parts: CallParts,
    },
    Plan(Vec<PlanEntry>),
    Request(String),
    Ended {
        status: RunStatus,
        text: String,
        took: i64,
    },
    Note {
        bad: bool,
        text: String,
        /// `true` if the text only reports that the runtime was attached, which is not drawn at the beginning.
        attached: bool,
    },
    /// A surface that was shown here, by its name.
    Surface(String),
}

/// The tool call that a block belongs to.
#[derive(Clone, Debug)]
pub(super) struct ParentCall {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) depth: usize,
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(super) id: u64,
    /// The place of its first event.
    pub(super) position: u64,
    pub(super) body: BlockBody,
    pub(super) above: Option<ParentCall>,
    /// `true` if the user toggled its folding.
    pub(super) toggled: bool,
    pub(super) drawn: RefCell<Option<Drawn>>,
}

impl Block {
    pub(super) fn bytes(&self) -> usize {
        128 + self.above.as_ref().map_or(0, |above| above.id.len() + above.title.len())
            + match &self.body {
                BlockBody::Text { text, .. } | BlockBody::Note { text, .. } => text.len(),
                BlockBody::Tool { call, .. } => call.bytes(),
                BlockBody::Plan(entries) => entries.iter().map(|entry| entry.content.len()).sum(),
                BlockBody::Surface(name) => name.len(),
                BlockBody::Request(_) | BlockBody::Ended { .. } => 0,
            }
    }

    pub(super) fn folds(&self) -> bool {
        match &self.body {
            BlockBody::Text { who, text, .. } => *who == Role::Thought || *who == Role::User && text.len() > 500,
            BlockBody::Tool { call, .. } => call.input().is_some() || !parts(call).is_empty(),
            BlockBody::Surface(_) => true,
            BlockBody::Plan(_) | BlockBody::Request(_) | BlockBody::Ended { .. } | BlockBody::Note { .. } => false,
        }
    }
}

impl Conversation {
    pub(super) fn block_mut(&mut self, id: u64) -> Option<&mut Block> {
        let first = self.blocks.front()?.id;
        self.blocks.get_mut(usize::try_from(id.checked_sub(first)?).ok()?)
    }

    fn block(&self, id: u64) -> Option<&Block> {
        let first = self.blocks.front()?.id;
        self.blocks.get(usize::try_from(id.checked_sub(first)?).ok()?)
    }

    /// Marks a call as the subject of a request: it no longer belongs to a group.
    pub(super) fn mark_requested(&mut self, call: &str) {
        let Some(id) = self.tools.get(call).copied() else { return };
        if let Some(Block { body: BlockBody::Tool { requested, .. }, .. }) = self.block_mut(id) {
            *requested = true;
            self.regroup(id);
        }
    }

    /// Adds a changed call to the group of its neighbours, or removes it.
    pub(super) fn regroup(&mut self, id: u64) {
        let Some(Block { body: BlockBody::Tool { call, requested, .. }, above, .. }) = self.block(id) else { return };
        let is_read = only_reads(call, *requested);
        let before = self.reads.get(id);
        if is_read && before.is_none() {
            let parent = above.as_ref().map(|above| &above.id);
            let has_same_parent = |other: Option<u64>| {
                let other = other.and_then(|other| self.block(other));
                other.is_some_and(|other| other.above.as_ref().map(|above| &above.id) == parent)
            };
            let (left, right) = (has_same_parent(id.checked_sub(1)), has_same_parent(id.checked_add(1)));
            self.reads.join(id, left, right);
        } else if !is_read && before.is_some() {
            self.reads.leave(id);
        }
        // The line of the group names it.
        if let Some(first) = self.reads.get(id).map(|group| group.first)
            && let Some(block) = self.block_mut(first)
        {
            *block.drawn.borrow_mut() = None;
        }
    }

    /// The group that one line may represent at a block, and whether it is unfolded.
    pub(super) fn group_at(&self, at: usize) -> Option<(ReadGroup, bool)> {
        let reads = self.history.older.as_ref().map_or(&self.reads, |older| &older.reads);
        let group = reads.get(self.list().get(at)?.id).filter(ReadGroup::is_long)?;
        Some((group, self.folds.tools != group.toggled))
    }

    /// The group that the line of a block represents.
    pub(super) fn folded_at(&self, at: usize) -> Option<ReadGroup> {
        self.group_at(at).filter(|(_, open)| !open).map(|(group, _)| group)
    }

    /// Returns whether a block is not drawn because the line of another represents it.
    pub(super) fn is_absorbed(&self, at: usize) -> bool {
        self.folded_at(at).is_some_and(|group| self.list()[at].id != group.first)
    }

    /// Returns whether the first block is not drawn because it adds no information.
    pub(super) fn is_hidden(&self, at: usize) -> bool {
        at == 0 && matches!(self.list().front().map(|block| &block.body), Some(BlockBody::Note { attached: true, .. }))
    }

    /// Returns whether a block can be selected, and folded or unfolded.
    pub(super) fn can_fold(&self, at: usize) -> bool {
        match self.group_at(at) {
            Some((group, open)) if group.first == self.list()[at].id || !open => !self.is_absorbed(at),
            _ => self.list()[at].folds(),
        }
    }

    pub(super) fn group_calls(&self, group: &ReadGroup) -> impl DoubleEndedIterator<Item = &ToolCall> {
        let (from, until) = (self.at(group.first), self.at(group.last));
        self.list().range(from..=until.max(from)).filter_map(|block| match &block.body {
            BlockBody::Tool { call, .. } => Some(call),
            BlockBody::Text { .. }
            | BlockBody::Plan(_)
            | BlockBody::Request(_)
            | BlockBody::Ended { .. }
            | BlockBody::Note { .. }
            | BlockBody::Surface(_) => None,
        })
    }
}
