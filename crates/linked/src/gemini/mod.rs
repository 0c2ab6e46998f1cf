//! Gemini CLI in its own terminal, by the hooks that `plexus link gemini` adds to its settings.
//!
//! Every hook runs `plexus hook gemini`, which passes the hook's input to the gateway ([`link`](plexus_dialects::link)) and ends: Gemini
//! CLI waits for its hooks. So none can answer a question. Where the terminal is a shared one (`plexus term -- gemini`), its holder types
//! the keys of an answer or a prompt, if the screen still shows what they are for; else questions are shown, and answered at the terminal.
//!
//! The shapes of hooks and transcripts are those of Gemini CLI 0.61.0, as it was seen to write them.

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
