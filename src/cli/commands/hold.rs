//! `plexus hold`: the holder of a runtime's process group, which the gateway starts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use plexus_holder::program;
use plexus_holder::program::event_loop::{self, HolderOptions};

/// Hold a runtime's process group (started by the gateway)
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// The required parent process; with another parent, nothing is started
    #[arg(long, value_name = "PID")]
    parent: Option<u32>,
    /// The socket on which gateways find it: it then owns the program's stdio, and outlives them unless --parent is given
    #[arg(long, value_name = "PATH", requires = "spool_max")]
    socket: Option<PathBuf>,
    /// Maximum size of the output that is stored for gateways, in bytes
    #[arg(long, value_name = "BYTES", requires = "socket")]
    spool_max: Option<usize>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    cmd: Vec<OsString>,
}

pub(crate) fn run(args: HoldArgs) -> ExitCode {
    let HoldArgs { parent, socket, spool_max, cmd } = args;
    match (socket, spool_max) {
        (Some(socket), Some(spool_max)) => event_loop::run(HolderOptions { socket, spool_max, parent, cmd }),
        _ => program::run(cmd, parent),
    }
}
