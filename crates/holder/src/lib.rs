//! The holder: a small process between the gateway and one agent. It owns the agent's stdin, stdout and stderr, retains the agent's
//! output until a gateway has stored it, and outlives the gateway.
//!
//! [`program`] is the process itself, [`client`] the gateway's side of it, [`wire`] the messages between the two. Nothing here interprets
//! an agent's bytes.

pub mod client;
pub mod exit;
pub mod process_identity;
pub mod program;
pub mod wire;

pub use client::{HolderClient, HolderMessage, HolderNotFound, Processes, Program, WriteError};
