//! The command line: [`commands`], and the modules that several commands share.

use std::process::ExitCode;

mod agent_start;
mod browser;
mod card;
mod certificates;
mod checks;
mod client;
mod commands;
mod complete;
mod conversations;
mod demo;
mod discover;
mod executor;
mod failure;
mod follow_session;
mod gateway_start;
mod home;
mod input;
mod linking;
mod log_file;
mod log_source;
mod output;
mod programs;
mod prompts;
mod random;
mod requests;
mod service;
mod typed_line;
mod view;

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    // Inherited descriptors must not reach child processes: agents, holders, terminals, a browser. Descriptors opened by this
    // process are close-on-exec anyway.
    close_fds::set_fds_cloexec(3, &[]);
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    commands::main(&args)
}
