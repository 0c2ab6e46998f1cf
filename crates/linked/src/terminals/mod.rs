//! The core for agents in their own terminals.
//!
//! A user starts the agent; its *helpers* (hooks, an extension, `plexus wrap`) connect to the gateway's link endpoint and report the
//! events of the terminal (the messages are those of [`link`](plexus_dialects::link)). The core has the parts that are the same for every
//! agent:
//!
//! - [`LinkedTerminals`](dialect::LinkedTerminals) is the [`Dialect`](plexus_dialects::Dialect) of each: it opens sessions, restores those
//!   of an earlier gateway, passes commands and replies to their terminals, stores checkpoints, and ends a session when its process has
//!   ended.
//! - [`TerminalAgent`](dialect::TerminalAgent) is the part of one agent: it parses helpers' messages, reads the events, and accepts prompts
//!   and answers. One value is one terminal.
//! - [`SessionState`](session::SessionState) is what every terminal has: its process, the turn in progress, the waiting prompt.
//!   [`SessionOutput`](output::SessionOutput) is where a terminal writes events and requests.
//! - [`TranscriptReader`](transcript_reader::TranscriptReader) and [`FileTail`](tail::FileTail) read files that agents write; [`drafts`]
//!   makes events of tool calls by the table of an agent's tools.
//!
//! The modules of agents import the core, and the core imports none of them.

pub(crate) mod call_tokens;
pub(crate) mod content;
pub(crate) mod dialect;
pub(crate) mod drafts;
pub(crate) mod output;
pub(crate) mod session;
pub(crate) mod tail;
pub(crate) mod transcript_reader;
