//! The gateway on stdio. `plexus bridge` presents it as an agent: editors and terminal UIs start it in place of the agent. `plexus mcp`
//! presents it as tools: an agent starts it for a session, and draws surfaces with it.

pub mod acp;
pub mod codelia;
pub mod mcp;
