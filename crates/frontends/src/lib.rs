//! Frontends: protocols of other projects that the gateway offers to clients. Each module exports its routes and depends on the kernel
//! (`plexus-router`), never on another frontend.
//!
//! The UI protocol is not here: it shares `/v1/ws` and its session calls with the native protocol, so it is a part of `plexus-router`.
#![forbid(unsafe_code)]

pub mod acp;
pub mod agui;
pub mod gemini;
pub mod mcp;
