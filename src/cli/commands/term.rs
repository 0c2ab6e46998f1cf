//! `plexus term`: shared terminals from the command line. It needs no gateway.

use std::ffi::OsString;
use std::io::IsTerminal as _;

use clap::{Args, Subcommand};
use plexus_protocol::TerminalId;
use plexus_terminal::attach::{self, AttachEnd, AttachError, DetachKeys};
use plexus_terminal::folder::{self, NewTerminal, TERMINALS, TerminalError};
use plexus_terminal::host;
use plexus_terminal::model::TerminalSize;
use plexus_terminal::wire::{TerminalExit, TerminalInfo};
use serde_json::json;

use crate::cli::client::choose;
use crate::cli::failure::{CommandFailure, CommandResult, FAILURE, USAGE};
use crate::cli::home::Home;
use crate::cli::output::{Paint, age, line, notice, print, print_json, table};

/// The variable with the keys to detach.
const KEYS_VARIABLE: &str = "PLEXUS_DETACH_KEYS";

/// Maximum length of a command and of a title in the list, in characters.
const TEXT_MAX: usize = 40;

/// Run a program in a shared terminal, which outlives this window and can be shown in several; or list these terminals
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    override_usage = "plexus term [OPTIONS] -- CMD [ARGS]...\n       plexus term [--json]\n       plexus term attach|kill ..."
)]
pub(crate) struct TermArgs {
    #[command(subcommand)]
    pub(crate) action: Option<TermAction>,
    /// Start CMD without showing it here; prints the terminal's identifier
    #[arg(short, long, requires = "cmd")]
    pub(crate) detached: bool,
    /// The keys that detach this window from the program; `none` for no keys [default: $PLEXUS_DETACH_KEYS, or else ctrl-\,d]
    #[arg(long, value_name = "KEYS", requires = "cmd")]
    pub(crate) detach_keys: Option<DetachKeys>,
    /// List as JSON
    #[arg(long, conflicts_with = "cmd")]
    pub(crate) json: bool,
    /// The program to run, and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) cmd: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TermAction {
    /// Show a terminal in this window
    Attach {
        /// The terminal [default: the only one]
        terminal: Option<String>,
        /// Watch only: nothing can be typed, and the size does not change; q detaches
        #[arg(long)]
        watch: bool,
        /// The keys that detach this window from the program; `none` for no keys [default: $PLEXUS_DETACH_KEYS, or else ctrl-\,d]
        #[arg(long, value_name = "KEYS")]
        detach_keys: Option<DetachKeys>,
    },
    /// End the program of a terminal
    Kill {
        /// The terminal
        terminal: String,
    },
}

pub(crate) fn run(args: TermArgs) -> CommandResult {
    let home = Home::find()?;
    // The holder changes its folder, which changes the meaning of a relative path.
    let dir = std::path::absolute(home.dir())?.join(TERMINALS);
    match args.action {
        Some(TermAction::Attach { terminal, watch, detach_keys }) => {
            let keys = detach_key_setting(detach_keys)?;
            let id = choose_terminal(folder::list(&dir), terminal.as_deref())?;
            if std::env::var(host::VARIABLE).is_ok_and(|inside| inside == id.as_str()) {
                let message =
                    format!("this window shows the terminal {id} already, which would show itself: use another window");
                return Err(CommandFailure::plain(message));
            }
            require_terminal("plexus term attach")?;
            let end = attach::attach(&dir, &id, watch, keys).map_err(attach_failure)?;
            finish(&id, end)
        }
        Some(TermAction::Kill { terminal }) => {
            let id = choose_terminal(folder::list(&dir), Some(&terminal))?;
            let exit = attach::kill(&dir, &id).map_err(|error| attach_failure(error.into()))?;
            print(&format!("{id} {}\n", exit.map_or_else(|| "is gone".into(), exit_description)))?;
            Ok(0)
        }
        None if args.cmd.is_empty() => list(&folder::list(&dir), args.json),
        None => {
            home.create()?;
            let exe = std::env::current_exe()?;
            if args.detached {
                let new = NewTerminal { exe: &exe, command: &args.cmd, size: TerminalSize::DEFAULT, cursor: None };
                let id = folder::start(&dir, &new).map_err(|error| attach_failure(error.into()))?;
                print(&format!("{id}\n"))?;
                return Ok(0);
            }
            let keys = detach_key_setting(args.detach_keys)?;
            require_terminal("plexus term -- CMD")?;
            let (id, end) = attach::start(&dir, &exe, &args.cmd, keys).map_err(attach_failure)?;
            finish(&id, end)
        }
    }
}

/// The keys to detach: from the argument, from the variable, or the default.
fn detach_key_setting(argument: Option<DetachKeys>) -> anyhow::Result<DetachKeys> {
    if let Some(keys) = argument {
        return Ok(keys);
    }
    match std::env::var(KEYS_VARIABLE).ok().filter(|text| !text.is_empty()) {
        Some(text) => text
            .parse()
            .map_err(|error| CommandFailure::new(USAGE, format!("{KEYS_VARIABLE} has {text}: {error}")).into()),
        None => Ok(DetachKeys::default()),
    }
}

fn require_terminal(command: &str) -> anyhow::Result<()> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok(());
    }
    let fix =
        "run it in one; in scripts, `plexus term --detached -- CMD` starts a program that can be attached to later";
    Err(CommandFailure::new(USAGE, format!("{command} needs a terminal: {fix}")).into())
}

fn attach_failure(error: AttachError) -> anyhow::Error {
    let code = match &error {
        AttachError::Terminal(TerminalError::NotStarted { code, .. }) => *code,
        _ => FAILURE,
    };
    CommandFailure::new(code, error.to_string()).into()
}

/// The named terminal, by its identifier or a prefix of it; without a name, the only one.
fn choose_terminal(all: Vec<TerminalInfo>, name: Option<&str>) -> anyhow::Result<TerminalId> {
    let fix = "`plexus term` lists them";
    match name {
        Some(name) => choose(all, name, |terminal| terminal.terminal_id.as_str(), "terminal", fix)
            .map(|terminal| terminal.terminal_id),
        None => match all.as_slice() {
            [terminal] => Ok(terminal.terminal_id.clone()),
            [] => Err(CommandFailure::plain("there is no terminal: `plexus term -- CMD` starts one")),
            _ => Err(CommandFailure::plain(format!("there are {} terminals: name one; {fix}", all.len()))),
        },
    }
}

/// Reports the end of an attachment, and returns the program's exit code as shells do.
fn finish(id: &TerminalId, end: AttachEnd) -> CommandResult {
    match end {
        AttachEnd::Exited(exit) => Ok(exit_code(exit)),
        AttachEnd::Detached => {
            notice(&format!("detached: {id} keeps running; `plexus term attach {id}` attaches to it again"));
            Ok(0)
        }
        AttachEnd::Signal(signal) => Ok(u8::try_from(128 + signal).unwrap_or(FAILURE)),
        AttachEnd::Lost(reason) => Err(CommandFailure::plain(format!("the terminal {id} was lost: {reason}"))),
    }
}

fn exit_code(exit: TerminalExit) -> u8 {
    let number = exit.code.or_else(|| exit.signal.map(|signal| 128 + signal));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(FAILURE)
}

/// The end of a program as text.
fn exit_description(exit: TerminalExit) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("exited {code}"),
        (None, Some(signal)) => format!("ended by {}", plexus_holder::exit::signal_name(signal)),
        (None, None) => "ended".into(),
    }
}

fn list(all: &[TerminalInfo], as_json: bool) -> CommandResult {
    if as_json {
        print_json(&json!({ "terminals": all }))?;
        return Ok(0);
    }
    if all.is_empty() {
        print("no terminals: `plexus term -- CMD` starts one\n")?;
        return Ok(0);
    }
    let row = |terminal: &TerminalInfo| {
        vec![
            terminal.terminal_id.to_string(),
            terminal.exited.map_or_else(|| "running".into(), exit_description),
            age(terminal.started_at),
            format!("{}x{}", terminal.size.rows, terminal.size.cols),
            terminal.attached.to_string(),
            line(&terminal.command.join(" "), TEXT_MAX),
            line(&terminal.title, TEXT_MAX),
        ]
    };
    let heads = ["TERMINAL", "STATE", "AGE", "SIZE", "SCREENS", "COMMAND", "TITLE"];
    print(&table(Paint::stdout(), &heads, &all.iter().map(row).collect::<Vec<_>>()))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_shells() {
        let exit = |code, signal| exit_code(TerminalExit { code, signal });
        assert_eq!(exit(Some(0), None), 0);
        assert_eq!(exit(Some(7), None), 7);
        assert_eq!(exit(None, Some(9)), 137);
        assert_eq!(exit(None, None), FAILURE);
        assert_eq!(exit_description(TerminalExit { code: None, signal: Some(1) }), "ended by SIGHUP");
        assert_eq!(exit_description(TerminalExit { code: Some(3), signal: None }), "exited 3");
    }
}
