//! Claude Code in its own terminal, by the hooks that `plexus link claude` adds to its settings.
//!
//! Every hook runs `plexus hook claude`, which passes the hook's input to the gateway ([`link`](plexus_dialects::link)). Two hooks wait:
//! the one of a question (`PermissionRequest`), while the terminal shows its own dialog beside it, and the one that a prompt wakes
//! (`asyncRewake`). The first answer wins. Claude Code does not tell the hook that the terminal was first: its transcript does.
//!
//! The shapes of hooks and transcripts are those of Claude Code 2.1.316, as it was seen to write them.

mod live;
mod open_question;
mod permission;
mod questions;
mod terminal;
#[cfg(test)]
mod tests;
mod tools;
mod transcript;

pub(super) use terminal::ClaudeTerminal;
