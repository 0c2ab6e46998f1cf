//! Agents in their own terminals, which are linked to the gateway.
//!
//! A user starts such an agent as always; its helpers report events to the gateway. This crate has two parts:
//!
//! - [`TABLE`] has the dialects of their sessions, one for each agent, on the core in `terminals`. They are pure. (The terminals of
//!   OpenCode are of [`plexus_dialects`]: each is a server like any other of OpenCode.)
//! - `settings` has the entries that `plexus link` writes into agents' settings, so that they start their helpers ([`LINKED_AGENTS`],
//!   [`Linker`]). Its module `files` alone reads and writes.

use plexus_dialects::MakeDialect;

#[cfg(test)]
mod bench;
mod claude;
mod copilot;
mod gemini;
mod qwen;
mod settings;
mod terminals;

pub use settings::{
    AgentVersion, FileChange, GateError, HookLine, LINK_VARIABLES, LINKED_AGENTS, LinkError, LinkPlan, LinkState,
    LinkedAgent, Linker, SettingsError, Shell, UnknownVersion, VersionGate, link_notices, linked_agent, shell_link,
    shell_links,
};
use terminals::dialect::LinkedTerminals;

/// The dialects of agents in their own terminals.
pub const TABLE: &[(&str, MakeDialect)] = &[
    ("claude-terminal", LinkedTerminals::<claude::ClaudeTerminal>::make),
    ("copilot-terminal", LinkedTerminals::<copilot::CopilotTerminal>::make),
    ("gemini-terminal", LinkedTerminals::<gemini::GeminiTerminal>::make),
    ("qwen-terminal", LinkedTerminals::<qwen::QwenTerminal>::make),
];

/// Returns the constructor of the dialect with this name.
pub fn find(name: &str) -> Option<MakeDialect> {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, make)| *make)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use plexus_dialects::link::TERMINAL_DIALECTS;
    use plexus_dialects::rig::spec;

    #[test]
    fn linked_agents_have_a_dialect_that_is_reached_by_link() {
        for agent in TERMINAL_DIALECTS {
            let make = super::find(agent.dialect).or_else(|| plexus_dialects::find(agent.dialect)).unwrap();
            assert_eq!(make(&spec(agent.dialect)).reached_by(), ["link"]);
        }
    }
}
