//! Agents: those that can be started or linked, their tools and stored conversations, and new sessions with their folders and worktrees.

pub mod agent_tools;
pub mod folders;
pub mod linking;
pub mod new_session;
pub mod resumable;
pub mod start;
pub mod worktrees;
