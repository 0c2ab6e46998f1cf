//! Qwen Code in its own terminal, as `plexus wrap qwen` starts it.
//!
//! Qwen Code writes what happens in its terminal to a file while it goes on as always, and takes prompts and answers from another one
//! (its *dual output*). `plexus wrap` names both, in a folder of its own, and is a tunnel ([`link`](plexus_dialects::link)): it says when
//! the first file has grown, and appends lines to the second. What happened is read from the file itself, so a gateway that comes later, or
//! again, goes on where the last checkpoint ends.
//!
//! The shapes are those of Qwen Code 0.24.4 (protocol 2), as it was seen to write them.

mod output;
mod question;
mod terminal;
#[cfg(test)]
mod tests;

pub(super) use terminal::QwenTerminal;
