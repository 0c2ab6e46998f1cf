//! The settings that make an agent's own terminal appear in Plexus (`plexus link`).
//!
//! An agent is *linked* by entries in its settings, or by a file beside them, that start `plexus hook`. This module has
//! the places of these settings for each agent ([`LINKED_AGENTS`]), and inserts and removes the entries of Plexus.
//! Everything else stays unchanged, byte for byte: comments, order, indentation, line ends. [`Linker`] reads the files,
//! makes a plan ([`LinkPlan`], with the exact difference) and applies it; the module `files` alone reads and writes.

mod agents;
mod document;
mod error;
mod files;
mod hooks;
mod linking;
mod notices;
mod record;
mod shell;
mod shell_links;
mod switch;
mod target;
mod target_state;
mod version;

#[cfg(test)]
mod cases_tests;
#[cfg(test)]
mod linking_tests;
#[cfg(test)]
mod property_tests;

pub use agents::{LINKED_AGENTS, LinkedAgent, linked_agent};
pub use document::SettingsError;
pub use error::LinkError;
pub use hooks::HookLine;
pub use linking::{FileChange, LINK_VARIABLES, LinkPlan, LinkState, Linker};
pub use notices::link_notices;
pub use shell::Shell;
pub use shell_links::{shell_link, shell_links};
pub use version::{AgentVersion, GateError, UnknownVersion, VersionGate};
