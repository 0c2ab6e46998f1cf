//! The `plexus` program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

mod cli;
mod tui;

fn main() -> ExitCode {
    cli::main()
}
