//! The blocks of a conversation: what was said, tools, plans, requests.

use super::*;

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    Agent,
    Thought,
}

/// A part of what a tool shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ToolPart {
    Output(String),
    Diff { path: String, old: String, new: String },
    Other(String),
}

/// What a block is.
#[derive(Clone, Debug)]
pub(super) enum BlockBody {
    Said { who: Speaker, words: String, continued: bool },
    Tool { title: String, kind: String, status: String, parts: Vec<ToolPart>, input: String, from: i64, until: i64 },
    Plan(Vec<(String, String)>),
    Asked(String),
    Ended { status: String, words: String, took: i64 },
    Note { bad: bool, words: String },
}

/// One thing in the conversation.
#[derive(Debug)]
pub(crate) struct Block {
    pub(super) id: u64,
    /// The place of its first event.
    pub(super) position: u64,
    pub(super) body: BlockBody,
    /// Whether somebody turned its folding round.
    pub(super) turned: bool,
    pub(super) drawn: RefCell<Option<Drawn>>,
}

impl Block {
    pub(super) fn bytes(&self) -> usize {
        128 + match &self.body {
            BlockBody::Said { words, .. } | BlockBody::Note { words, .. } => words.len(),
            BlockBody::Tool { parts, input, .. } => {
                let part = |part: &ToolPart| match part {
                    ToolPart::Output(words) | ToolPart::Other(words) => words.len(),
                    ToolPart::Diff { old, new, .. } => old.len() + new.len(),
                };
                input.len() + parts.iter().map(part).sum::<usize>()
            }
            BlockBody::Plan(entries) => entries.iter().map(|(_, words)| words.len()).sum(),
            _ => 0,
        }
    }

    pub(super) fn folds(&self) -> bool {
        match &self.body {
            BlockBody::Said { who, words, .. } => {
                *who == Speaker::Thought || *who == Speaker::User && words.len() > 500
            }
            BlockBody::Tool { parts, input, .. } => !parts.is_empty() || !input.is_empty(),
            _ => false,
        }
    }
}
