//! `plexus completions`: the completions of a shell, and the man pages. Both are generated from the definition of the command line; the
//! shell requests the values from this program, so that sessions, runtimes and requests are current.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use clap_complete::env::{CompleteEnv, Shells};

use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::output::print;

/// The variable with which a shell requests completions.
const VARIABLE: &str = "PLEXUS_COMPLETE";

/// Print the completion script of your shell, for commands, sessions and agents; or write the man pages
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    #[command(subcommand)]
    output: Output,
}

#[derive(Debug, Subcommand)]
enum Output {
    /// For bash: add `source <(plexus completions bash)` to ~/.bashrc
    Bash,
    /// For zsh: add `source <(plexus completions zsh)` to ~/.zshrc, after compinit
    Zsh,
    /// For fish: add `plexus completions fish | source` to ~/.config/fish/config.fish
    Fish,
    /// Write a man page for every command into a folder, such as ~/.local/share/man/man1
    Man {
        /// The folder; created if it does not exist
        dir: PathBuf,
    },
}

pub(crate) fn run(args: &CompletionsArgs, command: clap::Command) -> CommandResult {
    let shell = match &args.output {
        Output::Bash => "bash",
        Output::Zsh => "zsh",
        Output::Fish => "fish",
        Output::Man { dir } => return man(dir, command),
    };
    // A program that was started by its path may not be on PATH.
    let invoked_as = std::env::args_os().next().unwrap_or_default();
    let program = match std::env::current_exe() {
        Ok(path) if Path::new(&invoked_as).components().count() > 1 => path.display().to_string(),
        _ => "plexus".to_owned(),
    };
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let Some(completer) = shells.completer(shell) else {
        return Err(CommandFailure::plain(format!("there are no completions for {shell}")));
    };
    completer.write_registration(VARIABLE, "plexus", "plexus", &program, &mut script)?;
    std::io::stdout().write_all(&script)?;
    Ok(0)
}

fn man(dir: &Path, command: clap::Command) -> CommandResult {
    let failed = |error: std::io::Error| {
        CommandFailure::plain(format!("writing the man pages to {}: {error}; use a folder of yours", dir.display()))
    };
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(command, dir).map_err(failed)?;
    print(&format!("wrote the man pages to {}; `man plexus` shows the first\n", dir.display()))?;
    Ok(0)
}

/// Prints the completions that a shell requests, and then ends the program.
pub(crate) fn answer_shell(command: fn() -> clap::Command) {
    if std::env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(command).var(VARIABLE).complete();
    }
}
