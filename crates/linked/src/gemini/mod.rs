//! Gemini CLI in its own terminal, by the hooks that `plexus link gemini` adds to its settings.
//!
//! Every hook runs `plexus hook gemini`, which sends the hook's input to the gateway ([`link`](plexus_dialects::link))
//! and ends, because Gemini CLI waits for its hooks. So no hook can answer a question. If the terminal is a shared one
//! (`plexus term -- gemini`), its holder types the keys of an answer or a prompt, provided that the screen still shows
//! the dialog or the line for them; otherwise questions are shown, and answered at the terminal.
//!
//! The shapes of hooks and transcripts are those observed with Gemini CLI 0.61.0.

mod calls;
mod open_question;
mod question;
mod questions;
mod terminal;
#[cfg(test)]
mod tests;
mod tools;
mod transcript;

pub(super) use terminal::GeminiTerminal;
