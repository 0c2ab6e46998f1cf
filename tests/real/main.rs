//! Stories with third-party programs: real agents, client libraries and a browser, pinned in `tests/agents`, `tests/clients` and
//! `tests/web` and installed from npm. The agents use a model on loopback; no account is needed.
//!
//! One binary, because linking is slow; a story is found by its file: `cargo test --test real story_codex`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod agents_smoke;
mod story_acp;
mod story_acp_http;
mod story_agui;
mod story_bridge;
mod story_claude_terminal;
mod story_codelia_tui;
mod story_codex;
mod story_copilot_terminal;
mod story_curl;
mod story_described;
mod story_engines;
mod story_gemini_terminal;
mod story_hold;
mod story_matrix;
mod story_mirror_server;
mod story_native_codex;
mod story_native_table;
mod story_opencode;
mod story_opencode_terminal;
mod story_qwen_terminal;
mod story_screens;
mod story_suite;
mod story_surfaces;
mod story_tasks;
mod story_term_agents;
mod story_together;
mod story_ts_client;
mod story_usage;
mod story_web;
mod story_web_cards;
mod story_web_new;
mod story_web_session;
mod story_web_surfaces;
mod story_web_terminals;
mod story_web_usage;
