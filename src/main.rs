//! The `plexus` program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

mod cli;

/// Returns freed memory to the system after a burst: see docs/performance.md.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static MEMORY: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    cli::main()
}
