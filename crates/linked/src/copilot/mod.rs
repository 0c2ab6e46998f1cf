//! GitHub Copilot CLI in its own terminal, by the extension that `plexus link copilot` adds (`clients/copilot-extension/extension.mjs`).
//!
//! Copilot runs the extension beside each session. It joins the session and keeps a tunnel open ([`link`](plexus_dialects::link)): it
//! passes on the session's events, and makes the few requests that this dialect asks for. Most events are kept by Copilot, and are read
//! again where a gateway missed them; each has an id, by which it is reported once. Permissions and forms are asked beside the terminal's
//! own dialog: the first answer wins, and Copilot tells who gave it.
//!
//! The shapes are those of Copilot 1.0.102, as it was seen to write them.

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
