//! The bench: `cargo bench --bench gateway -- [ROW..] [--quick] [--write] [--before=PROGRAM]`.
//!
//! Each row is compared with a floor that is measured in the same run, alternating with it. A row that misses its target is only
//! reported; wrong counts fail the program. `--quick` is a smoke test with small
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
mod changes;
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
mod hook;
#[cfg(target_os = "linux")]
mod long_texts;
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
mod surfaces;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod terminal;

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
