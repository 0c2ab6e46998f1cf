//! Claude Code in its own terminal, by the hooks that `plexus link claude` adds to its settings.
//!
//! Every hook runs `plexus hook claude`, which sends the hook's input to the gateway ([`link`](plexus_dialects::link)).
//! Two hooks wait: the one of a question (`PermissionRequest`), while the terminal also shows its own dialog, and the
//! one that a prompt wakes (`asyncRewake`). The first answer wins. Claude Code does not notify the hook that the
//! terminal was first: its transcript has it.
//!
//! The shapes of hooks and transcripts are those observed with Claude Code 2.1.316.

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
