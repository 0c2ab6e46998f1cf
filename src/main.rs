//! The `plexus` program.

#![forbid(unsafe_code)]
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod cli;

#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Built-in agents
    #[command(subcommand)]
    Agent(Agent),
    /// Keep a runtime and its whole family inside the gateway's lifetime
    #[command(hide = true)]
    Hold {
        /// The process that must stay our parent; if it is not, nothing is started
        #[arg(long, value_name = "PID")]
        parent: Option<u32>,
        /// The program and its arguments
        #[arg(last = true, required = true, value_name = "CMD")]
        cmd: Vec<OsString>,
    },
}

#[derive(Subcommand)]
enum Agent {
    /// A scripted ACP agent on stdio, for trying things out and for tests
    Demo,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Agent(Agent::Demo) => match cli::demo::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                let _ = writeln!(io::stderr(), "plexus agent demo: {why}");
                ExitCode::FAILURE
            }
        },
        Command::Hold { parent, cmd } => cli::hold::run(cmd, parent),
    }
}
