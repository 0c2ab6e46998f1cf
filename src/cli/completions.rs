//! `plexus completions`: what a shell completes, and the man pages. Both are made of the definition of the command line; the shell asks
//! this program for the values, so that sessions, runtimes and requests are those of now.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, CommandFactory as _, Subcommand};
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};
use plexus::runtimes::presets;

use super::args::Cli;
use super::client::Client;
use super::commands::print;
use super::term::line;
use super::{CommandFailure, CommandResult};

/// The variable by which a shell asks for completions.
const VARIABLE: &str = "PLEXUS_COMPLETE";
/// How long a shell waits for the gateway's answer; after that it completes nothing.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// Most values offered: a longer list is no help.
const OFFERED: usize = 200;
/// Longest description of a value, in characters.
const DESCRIBED: usize = 60;

/// What is printed or written.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    #[command(subcommand)]
    what: Output,
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

/// Runs `plexus completions`.
pub(crate) fn completions(args: &Completions) -> CommandResult {
    let shell = match &args.what {
        Output::Bash => "bash",
        Output::Zsh => "zsh",
        Output::Fish => "fish",
        Output::Man { dir } => return man(dir),
    };
    // Typed as a path, it may not be found by its name.
    let own = std::env::args_os().next().unwrap_or_default();
    let program = match std::env::current_exe() {
        Ok(path) if Path::new(&own).components().count() > 1 => path.display().to_string(),
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

fn man(dir: &Path) -> CommandResult {
    let failed = |why: std::io::Error| {
        CommandFailure::plain(format!("writing the man pages to {}: {why}; use a folder of yours", dir.display()))
    };
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(failed)?;
    print(&format!("wrote the man pages to {}; `man plexus` shows the first\n", dir.display()))?;
    Ok(0)
}

/// Answers a shell that asks for completions, and ends the program then.
pub(crate) fn answer_shell() {
    if std::env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
    }
}

/// A value with its description.
fn candidate(value: impl Into<OsString>, about: &str) -> CompletionCandidate {
    let about = line(about, DESCRIBED);
    CompletionCandidate::new(value).help((!about.is_empty()).then(|| about.into()))
}

/// What the running gateway knows; nothing if there is none, or if it does not answer soon.
fn asked<T: Default>(ask: impl AsyncFnOnce(Client) -> anyhow::Result<T>) -> T {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return T::default() };
    let answer = runtime.block_on(async {
        let found = async { ask(Client::find().await?).await };
        tokio::time::timeout(PATIENCE, found).await.ok()?.ok()
    });
    answer.unwrap_or_default()
}

/// The known agents.
pub(crate) fn preset_names() -> Vec<CompletionCandidate> {
    presets::presets().iter().map(|preset| candidate(preset.name, preset.dialect)).collect()
}

/// The dialects.
pub(crate) fn dialect_names() -> Vec<CompletionCandidate> {
    plexus_dialects::TABLE.iter().map(|(name, _)| candidate(*name, "")).collect()
}

/// The newest sessions, and `last`.
pub(crate) fn session_ids() -> Vec<CompletionCandidate> {
    let sessions = asked(async |client| client.newest_sessions(OFFERED).await);
    let about = |session: &plexus_protocol::SessionInfo| session.title.clone().unwrap_or_default();
    let ids = sessions.iter().map(|session| candidate(session.session_id.as_str(), &about(session)));
    let last = (!sessions.is_empty()).then(|| candidate("last", "the most recent session"));
    last.into_iter().chain(ids).collect()
}

/// The attached runtimes.
pub(crate) fn runtime_ids() -> Vec<CompletionCandidate> {
    let runtimes = asked(async |client| client.runtimes().await);
    runtimes.iter().map(|runtime| candidate(runtime.runtime_id.as_str(), &runtime.dialect)).collect()
}

/// The open requests.
pub(crate) fn request_ids() -> Vec<CompletionCandidate> {
    let requests = asked(async |client| client.requests(false).await);
    let about = |request: &plexus_protocol::Request| request.display.lines().next().unwrap_or_default().to_owned();
    requests.iter().take(OFFERED).map(|request| candidate(request.request_id.as_str(), &about(request))).collect()
}
