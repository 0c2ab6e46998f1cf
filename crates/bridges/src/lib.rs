//! `plexus bridge`: presents the running gateway as an agent on stdio. Editors and terminal UIs start it in place of the agent.

pub mod acp;
pub mod codelia;
