//! Stories: the real `plexus` program in use and under failures, with the demo agent or a scripted one. None needs npm
//! (`tests/real` does).
//!
//! One binary, because linking is slow; a story is found by its file: `cargo test --test stories story_crash`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod story_answer_words;
mod story_answer_writes;
mod story_attach;
mod story_attach_changes;
mod story_attach_prompts;
mod story_attach_screens;
mod story_awake;
mod story_changes;
mod story_cli;
mod story_clients;
mod story_clock;
mod story_codelia;
mod story_crash;
mod story_disk;
mod story_doctor;
mod story_flood;
mod story_hook;
mod story_instances;
mod story_joiners;
mod story_large;
mod story_link;
mod story_log;
mod story_metrics;
mod story_mirror;
mod story_native_codex;
mod story_new;
mod story_opencode2;
mod story_pair;
mod story_phone;
mod story_projects;
mod story_protocol;
mod story_proxy;
mod story_push;
mod story_races;
mod story_record;
mod story_resume;
mod story_rust_client;
mod story_same_id;
mod story_schemathesis;
mod story_secrets;
mod story_surfaces;
mod story_term;
mod story_ui_protocol;
mod story_undo;
mod story_usage;
mod story_watchers;
mod story_wrap;
