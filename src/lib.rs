//! Plexus: one gateway between every coding agent that runs on your machines and every screen you own.
#![forbid(unsafe_code)]

pub mod auth;
pub mod dialects;
pub mod metrics;
pub mod model;
pub mod router;
pub mod runtimes;
pub mod sessions;
pub mod store;
