//! Qwen Code in its own terminal, as `plexus wrap qwen` starts it.
//!
//! Qwen Code writes the events of its terminal to a file, and reads prompts and answers from another one (its *dual
//! output*). `plexus wrap` names both, in a folder of its own, and is a tunnel ([`link`](plexus_dialects::link)): it
//! reports when the first file has grown, and appends lines to the second. The events are read from the file itself, so
//! a gateway that starts later, or again, continues where the last checkpoint ends.
//!
//! The shapes are those observed with Qwen Code 0.24.4 (protocol 2).

mod output;
mod question;
mod terminal;
#[cfg(test)]
mod tests;

pub(super) use terminal::QwenTerminal;
