//! The bench: `cargo bench --bench gateway -- [ROW..] [--quick] [--write] [--before=PROGRAM]`.
//!
//! Each row stands beside a floor measured in the same run, in turns with it. A row that misses its target says so and
//! nothing more; a row whose counts are wrong fails the program. `--quick` is a smoke run of everything with small
//! numbers, whose times mean nothing. `--write` puts the table into `docs/performance.md`. `--before` measures another
//! `plexus` too, each row of it just before ours, and shows it in a column of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::print_stderr)]

#[cfg(target_os = "linux")]
mod abuse;
#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod approval;
#[cfg(target_os = "linux")]
mod clients;
#[cfg(target_os = "linux")]
mod fan;
#[cfg(target_os = "linux")]
mod floor;
#[cfg(target_os = "linux")]
mod gateway;
#[cfg(target_os = "linux")]
mod growth;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod rows;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod store;
#[cfg(target_os = "linux")]
mod table;

#[cfg(target_os = "linux")]
use rows::{Size, main as run};

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    run()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the bench reads CPU time and memory from /proc and waits with epoll: it runs on Linux only");
}
