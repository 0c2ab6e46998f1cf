//! Tests of the gateway's parts: the router and its frontends over real sockets, dialects against recordings, runtimes
//! and their holders with real processes. None needs npm.
//!
//! One binary, because linking is slow; a test is found by its file: `cargo test --test gateway front_ws`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod container;
mod decoders;
mod demo_agent;
mod front_acp;
mod front_acp_ws;
mod front_changed;
mod front_compressed;
mod front_descriptors;
mod front_guard;
mod front_http;
mod front_limits;
mod front_long;
mod front_objects;
mod front_pair;
mod front_sse;
mod front_surfaces;
mod front_tls;
mod front_ws;
mod golden;
mod hold;
mod hold_tied;
mod recordings;
mod runtimes;
mod service;
