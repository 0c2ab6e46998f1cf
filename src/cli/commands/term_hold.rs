//! `plexus term-hold`: the holder of a shared terminal, which `plexus term` starts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use plexus_protocol::TerminalId;
use plexus_terminal::host::{self, HostOptions};
use plexus_terminal::model::TerminalSize;

/// Hold a shared terminal (started by `plexus term`)
#[derive(Debug, Args)]
pub(crate) struct TermHoldArgs {
    /// The terminal's identifier
    #[arg(long)]
    id: TerminalId,
    /// The socket on which attachments find it
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Lines and columns, like 24x80
    #[arg(long, value_parser = parse_pair)]
    size: (u16, u16),
    /// The line and column of the cursor in the terminal that will show it
    #[arg(long, value_parser = parse_pair)]
    cursor: Option<(u16, u16)>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    cmd: Vec<OsString>,
}

fn parse_pair(text: &str) -> Result<(u16, u16), String> {
    let parts = text.split_once('x').and_then(|(first, second)| Some((first.parse().ok()?, second.parse().ok()?)));
    parts.filter(|(first, second)| *first > 0 && *second > 0).ok_or_else(|| "not two numbers like 24x80".into())
}

pub(crate) fn run(args: TermHoldArgs) -> ExitCode {
    let size = TerminalSize { rows: args.size.0, cols: args.size.1 }.within_limits().unwrap_or(TerminalSize::DEFAULT);
    host::run(HostOptions { id: args.id, socket: args.socket, size, cursor: args.cursor, cmd: args.cmd })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_two_numbers() {
        assert_eq!(parse_pair("24x80"), Ok((24, 80)));
        for bad in ["", "24", "0x80", "24x", "x", "24x80x1", "-1x2", "99999x1"] {
            assert!(parse_pair(bad).is_err(), "{bad}");
        }
    }
}
