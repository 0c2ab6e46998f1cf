//! GitHub Copilot CLI in its own terminal, by the extension that `plexus link copilot` adds (`clients/copilot-extension/extension.mjs`).
//!
//! Copilot runs the extension beside each session. It joins the session and keeps a tunnel open
//! ([`link`](plexus_dialects::link)): it forwards the session's events, and makes the few requests of this dialect.
//! Copilot stores most events, and they are read again if a gateway missed them; each has an id, by which it is
//! reported once. Permissions and forms are shown in addition to the terminal's own dialog: the first answer wins, and
//! Copilot reports who gave it.
//!
//! The shapes are those observed with Copilot 1.0.102.

mod ask;
mod events;
mod open_question;
mod questions;
mod reported;
mod sync;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod tools;

pub(super) use terminal::CopilotTerminal;
