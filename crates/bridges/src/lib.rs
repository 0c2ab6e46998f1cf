//! `plexus bridge`: an agent's stdio that is the running gateway. Editors and terminal UIs start it as if it were the agent.

pub mod acp;
pub mod codelia;
