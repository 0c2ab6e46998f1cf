//! What the stories share.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, clippy::panic)]

pub mod acp_http;
pub mod agents;
pub mod browser;
pub mod cast;
pub mod front;
pub mod gateway;
pub mod letter;
pub mod moments;
pub mod push_service;
pub mod secure;
pub mod terminal;
