//! The blocks of a conversation: messages, tool calls, plans, requests.

use super::*;

/// A part of a tool call's display.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ToolPart<'a> {
    Output(&'a str),
    Diff { path: String, old: &'a str, new: &'a str },
    Other(String),
}

/// The content of a block.
#[derive(Clone, Debug)]
pub(super) enum BlockBody {
    Text {
        who: Role,
        words: String,
        continued: bool,
    },
    Tool {
        call: ToolCall,
        from: i64,
        until: i64,
    },
    Plan(Vec<PlanEntry>),
    Asked(String),
    Ended {
        status: String,
        words: String,
        took: i64,
    },
    Note {
        bad: bool,
        words: String,
    },
    /// A surface that was shown here, by its name.
    Surface(String),
}

/// The tool call that a block belongs to.
#[derive(Clone, Debug)]
pub(super) struct Above {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) depth: usize,
}

/// A block.
#[derive(Debug)]
pub(crate) struct Block {
    pub(super) id: u64,
    /// The place of its first event.
    pub(super) position: u64,
    pub(super) body: BlockBody,
    pub(super) above: Option<Above>,
    /// Whether the user toggled its folding.
    pub(super) toggled: bool,
    pub(super) drawn: RefCell<Option<Drawn>>,
}

impl Block {
    pub(super) fn bytes(&self) -> usize {
        128 + self.above.as_ref().map_or(0, |above| above.id.len() + above.title.len())
            + match &self.body {
                BlockBody::Text { words, .. } | BlockBody::Note { words, .. } => words.len(),
                BlockBody::Tool { call, .. } => call.bytes(),
                BlockBody::Plan(entries) => entries.iter().map(|entry| entry.content.len()).sum(),
                BlockBody::Surface(name) => name.len(),
                BlockBody::Asked(_) | BlockBody::Ended { .. } => 0,
            }
    }

    pub(super) fn folds(&self) -> bool {
        match &self.body {
            BlockBody::Text { who, words, .. } => *who == Role::Thought || *who == Role::User && words.len() > 500,
            BlockBody::Tool { call, .. } => call.input().is_some() || !parts(call).is_empty(),
            BlockBody::Surface(_) => true,
            BlockBody::Plan(_) | BlockBody::Asked(_) | BlockBody::Ended { .. } | BlockBody::Note { .. } => false,
        }
    }
}
