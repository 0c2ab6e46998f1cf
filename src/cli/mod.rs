//! The commands of the `plexus` program.

use std::io::Write;
use std::process::ExitCode;

use plexus_holder::program;

mod args;
mod attach;
mod bridge;
mod card;
mod changes;
mod client;
mod commands;
mod completions;
pub(crate) mod demo;
mod discover;
mod doctor;
mod export;
mod follow_session;
mod home;
mod hook;
mod link;
mod log_file;
mod mcp;
mod new;
mod pair;
mod phone;
mod repair;
mod replay;
mod resume;
mod run;
mod serve;
mod term;
mod terminal;
mod tls;
mod typed_line;
mod usage;
mod view;
mod worktrees;
mod wrap;

use args::{Agent, Cli, Command, Description};

/// Exit code of a general failure.
pub(crate) const FAILURE: u8 = 1;
/// Exit code of an invalid command line; clap's code too.
pub(crate) const USAGE: u8 = 2;
/// Exit code of an invalid configuration.
pub(crate) const BAD_CONFIG: u8 = 64;
/// Exit code if no gateway is running.
pub(crate) const NO_GATEWAY: u8 = 69;
/// Exit code if the caller is not permitted.
pub(crate) const NOT_PERMITTED: u8 = 77;

/// The failure of a command.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    /// The exit code.
    pub(crate) code: u8,
    /// The message: "what: why, fix".
    pub(crate) message: String,
}

impl CommandFailure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A failure with exit code 1, as an error.
    pub(crate) fn plain(message: impl Into<String>) -> anyhow::Error {
        Self::new(FAILURE, message).into()
    }
}

impl std::fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommandFailure {}

/// The result of a command: an exit code, or an error to print.
pub(crate) type CommandResult = anyhow::Result<u8>;

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    // Inherited descriptors must not reach child processes: agents, holders, terminals, a browser. Descriptors opened by this
    // process are close-on-exec anyway.
    close_fds::set_fds_cloexec(3, &[]);
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if let [_, command, args @ ..] = args.as_slice()
        && command == "hook"
    {
        return hook::hook(args);
    }
    // All words after the agent's name are the agent's.
    if let [_, command, words @ ..] = args.as_slice()
        && command == "wrap"
        && words.first().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"-"))
    {
        return wrap::wrap(words);
    }
    completions::answer_shell();
    let Cli { command, raw } = Cli::read(&args).unwrap_or_else(|why| why.exit());
    term::raw(raw);
    // These need no threads and no Tokio runtime.
    match command {
        Command::Schema { description } => {
            let version = env!("CARGO_PKG_VERSION");
            let document = match description {
                Description::Openapi => plexus::router::openapi(version),
                Description::Asyncapi => plexus::router::asyncapi(version),
                Description::Answers => plexus_protocol::answers::data(),
            };
            match writeln!(std::io::stdout(), "{document:#}") {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        Command::Agent(Agent::Demo) => match demo::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                let _ = writeln!(std::io::stderr(), "plexus agent demo: {why}");
                ExitCode::FAILURE
            }
        },
        Command::Hold { parent, socket: Some(socket), spool_max: Some(spool_max), cmd } => {
            program::event_loop::run(program::event_loop::HolderOrders { socket, spool_max, parent, cmd })
        }
        Command::Hold { parent, cmd, .. } => program::run(cmd, parent),
        Command::TermHold(args) => terminal::hold(args),
        Command::Completions(args) => ExitCode::from(exit_code(completions::completions(&args))),
        Command::Wrap(args) => args.run(),
        Command::Term(args) => ExitCode::from(exit_code(terminal::term(args))),
        command => ExitCode::from(exit_code(start(command))),
    }
}

/// One worker for every two cores, and at least two if there are two cores. The path of an event is short; waking a sleeping
/// worker for it costs more than it saves (measured in docs/performance.md), and the log's writer and the agents need cores
/// too. With a single worker, one busy client would delay all others.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2).max(cores.get().min(2)))
}

fn start(command: Command) -> CommandResult {
    // Its runtime has one thread: there is a process of it for each session.
    let command = match command {
        Command::Mcp(args) => return mcp::mcp(args),
        command => command,
    };
    if let Command::Serve(args) = &command {
        serve::before(args)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers()).enable_all().build()?;
    let outcome = runtime.block_on(async {
        match command {
            Command::Serve(args) => serve::serve(args).await,
            Command::Run(args) => run::run(args).await,
            Command::New(args) => new::new(args).await,
            Command::Worktrees(args) => worktrees::worktrees(args).await,
            Command::Ls(args) => commands::ls(args).await,
            Command::Resume(args) => resume::resume(args).await,
            Command::Tail(args) => commands::tail(args).await,
            Command::Attach(args) => attach::attach(args).await,
            Command::Prompt(args) => commands::prompt(args).await,
            Command::Cancel(args) => commands::cancel(args).await,
            Command::Rename(args) => commands::rename(args).await,
            Command::Archive(args) => commands::archive(args).await,
            Command::Share(args) => commands::share(args).await,
            Command::Requests(args) => commands::requests(args).await,
            Command::Answer(args) => commands::answer(args).await,
            Command::Export(args) => export::export(args).await,
            Command::Search(args) => commands::search(args).await,
            Command::Changes(args) => changes::changes(args).await,
            Command::Usage(args) => usage::usage(args).await,
            Command::Open(args) => commands::open(args).await,
            Command::Phone(args) => phone::phone(args).await,
            Command::Pair(args) => pair::pair(args).await,
            Command::Devices(args) => pair::devices(args).await,
            Command::Bridge(args) => bridge::bridge(args).await,
            Command::Restart(args) => commands::restart(args).await,
            Command::Stop(args) => commands::stop(args).await,
            Command::Tls(args) => tls::tls(args),
            Command::Link(args) => link::link(args).await,
            Command::Doctor(args) => doctor::doctor(args).await,
            Command::Repair => repair::repair(),
            Command::Replay(args) => replay::replay(&args),
            // Handled before the Tokio runtime was started.
            Command::Mcp(_)
            | Command::Agent(_)
            | Command::Schema { .. }
            | Command::Completions(_)
            | Command::Hold { .. }
            | Command::Term(_)
            | Command::TermHold(_)
            | Command::Wrap(_) => Ok(0),
        }
    });
    // A thread that waits for a line on stdin must not keep the program running.
    runtime.shutdown_background();
    outcome
}

/// Prints an error and returns the exit code. A reader that left (a closed pipe) is no error.
fn exit_code(outcome: CommandResult) -> u8 {
    let error = match outcome {
        Ok(code) => return code,
        Err(error) => error,
    };
    let broken = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|why| why.kind() == std::io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(broken) {
        return 0;
    }
    // Errors may contain text of the gateway and of agents.
    let words = term::clean(&format!("{error:#}"));
    let _ = writeln!(std::io::stderr(), "plexus: {words}");
    error.downcast_ref::<CommandFailure>().map_or(FAILURE, |failure| failure.code)
}
