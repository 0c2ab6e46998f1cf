//! The command line. One file: what `plexus --help` says, in its order.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue};
use clap::{ArgGroup, Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCandidates;

use plexus::config::nearest;

use super::completions::{dialect_names, preset_names, request_ids, runtime_ids, session_ids};

/// What `--help` ends with.
const AFTER: &str = "SESSION is an identifier, a unique prefix of one, or `last`.\n\
Exit codes: 0 ok, 1 failure, 2 usage, 64 bad configuration, 69 no gateway running, 77 not permitted.\n\
State is in $PLEXUS_HOME (default: the platform's data folder, plexus/).";

/// One gateway between the coding agents on your machine and the screens you watch them from.
#[derive(Debug, Parser)]
#[command(name = "plexus", version, about, after_help = AFTER, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// For pipes and files: write JSON and exports byte for byte, without escaping hidden characters
    #[arg(long, global = true)]
    pub(crate) raw: bool,
}

impl Cli {
    /// Reads a command line. A command that does not exist is compared with the others by its letters: clap's own measure takes
    /// `nwe` for `answer`.
    pub(crate) fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        Self::try_parse_from(words).map_err(|mut why| {
            let got = why.get(ContextKind::InvalidSubcommand).map(ToString::to_string).unwrap_or_default();
            let root = Self::command();
            let before = words.iter().take_while(|word| **word != *got);
            let command = before.fold(&root, |command, word| command.find_subcommand(word).unwrap_or(command));
            let known = command.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name);
            if let Some(near) = nearest(&got, known) {
                why.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near.to_owned()]));
            }
            why
        })
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway in the foreground
    Serve(Serve),
    /// Start an agent, open a session and follow it here; starts a gateway if none is running
    Run(Run),
    /// Open a session with a prompt and leave it to work; starts the agent, and a gateway, if need be
    New(New),
    /// List the git worktrees that were made for sessions, or remove one
    Worktrees(super::worktrees::WorktreeArgs),
    /// List sessions and runtimes
    Ls(Ls),
    /// Resume a conversation that a runtime has stored, and follow it here; `plexus ls --resumable RUNTIME` lists them
    Resume(Resume),
    /// Follow the events of one session or of all
    Tail(Tail),
    /// Open the full-screen terminal UI: watch, prompt, answer
    Attach(Attach),
    /// Send a prompt
    Prompt(Prompt),
    /// Cancel the running prompt of a session
    Cancel(Cancel),
    /// Rename a session
    Rename(Rename),
    /// Archive a session, or restore it
    Archive(Archive),
    /// Create a read-only link to one session
    Share(Share),
    /// List pending requests
    Requests(Requests),
    /// Answer a request; the first answer wins
    Answer(Answer),
    /// Export a session to stdout
    Export(Export),
    /// Search all sessions
    Search(Search),
    /// Show what changed in a session's folder since its first prompt, as a table or as a patch
    Changes(super::changes::Changes),
    /// Show what agents spent: tokens and money, as far as they tell
    Usage(super::usage::Usage),
    /// Open the web page, signed in with a one-time code
    Open(Open),
    /// Let a phone in, in one go: an address that it reaches, the certificate that it has to trust, and its pairing
    Phone(Phone),
    /// Pair a phone or another browser: shows a code, then asks you to compare a number
    Pair(Pair),
    /// List, rename and revoke paired devices
    Devices(Devices),
    /// Act as an agent on stdio, for editors and terminal UIs
    Bridge(super::bridge::Bridge),
    /// Serve a session's drawing tools to its agent on stdio, by the Model Context Protocol (started by agents)
    Mcp(super::mcp::Mcp),
    /// Run a program in a shared terminal, which outlives this window and can be shown in several; or list these terminals
    Term(super::terminal::Term),
    /// Hold a shared terminal (started by `plexus term`)
    #[command(hide = true)]
    TermHold(super::terminal::TermHold),
    /// Start an agent in this terminal as always, with its session in Plexus
    Wrap(super::wrap::Wrap),
    /// Restart a runtime; its sessions continue
    Restart(Restart),
    /// Stop a runtime
    Stop(Stop),
    /// Create TLS certificates, so that other machines can reach the gateway
    #[command(subcommand)]
    Tls(Tls),
    /// Show the sessions of agents' own terminals in Plexus, by entries in their settings; --remove undoes it
    Link(Link),
    /// Check the installation and suggest fixes
    Doctor(Doctor),
    /// Repair a damaged database while no gateway runs: what can be read is kept, and so are the damaged files
    Repair,
    /// Show what a dialect makes of each line of a recording; `PLEXUS_RECORD=DIR plexus serve` records them
    Replay(Replay),
    /// Print what your shell needs to complete commands, sessions and agents; or write the man pages
    Completions(super::completions::Completions),
    /// Built-in agents
    #[command(subcommand)]
    Agent(Agent),
    /// Print a description of the API, as a running gateway serves it
    #[command(hide = true)]
    Schema {
        /// Which
        description: Description,
    },
    /// Hold a runtime's process group (started by the gateway)
    #[command(hide = true)]
    Hold {
        /// The process that must stay our parent; if it is not, nothing is started
        #[arg(long, value_name = "PID")]
        parent: Option<u32>,
        /// Where gateways find it: it then owns the program's stdio, and outlives them unless --parent is given
        #[arg(long, value_name = "PATH", requires = "spool_max")]
        socket: Option<PathBuf>,
        /// How much output is kept for gateways
        #[arg(long, value_name = "BYTES", requires = "socket")]
        spool_max: Option<usize>,
        /// The program and its arguments
        #[arg(last = true, required = true, value_name = "CMD")]
        cmd: Vec<OsString>,
    },
}

/// A description of the API.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Description {
    /// HTTP
    Openapi,
    /// The native WebSocket
    Asyncapi,
    /// The answers of requests: verbs, order, keys
    Answers,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tls {
    /// Create a certificate and a private CA that can sign only for this machine's names
    Init(TlsInit),
    /// Create a new certificate with the existing CA
    Renew,
}

#[derive(Debug, Args)]
pub(crate) struct TlsInit {
    /// A host name or address that phones use; repeatable [default: this machine's]
    #[arg(long, value_name = "NAME|IP")]
    pub(crate) name: Vec<String>,
    /// Create a new CA even if there is one
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// A scripted ACP agent on stdio, to try Plexus out and for tests
    Demo,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The configuration file [default: plexus.toml in the state folder, if it exists]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address to listen on; overrides the configuration [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Log to this file instead of stderr; rotated at 8 MiB, keeping three files
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// Leave the terminal's session, so that closing it does not stop the gateway
    #[arg(long, hide = true)]
    pub(crate) detach: bool,
}

/// What `run` may be told to start, from the one table of them.
fn known_agents() -> String {
    let names: Vec<&str> = plexus::runtimes::presets::presets().iter().map(|preset| preset.name).collect();
    format!("A known agent: {}", names.join(", "))
}

#[derive(Debug, Default, Args)]
#[command(override_usage = "plexus run PRESET [OPTIONS]\n       plexus run --dialect D [OPTIONS] -- CMD [ARGS]...")]
pub(crate) struct Run {
    #[arg(help = known_agents(), add = ArgValueCandidates::new(preset_names), required_unless_present = "cmd", conflicts_with_all = ["cmd", "dialect"])]
    pub(crate) preset: Option<String>,
    /// The protocol of CMD: acp, codelia or codex
    #[arg(long, value_name = "D", requires = "cmd", required_unless_present = "preset", add = ArgValueCandidates::new(dialect_names))]
    pub(crate) dialect: Option<String>,
    /// The runtime's name [default: the name of the preset or program]
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The working directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// The first prompt; without a terminal, also the only one: exits when it is done (0) or failed (1)
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// The session's title
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// A variable for the agent, with a value or with its value in this shell (better for keys); repeatable
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Pass a variable of this shell to the agent if it is set; NAME* passes all with that prefix; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
    /// One of the authentication methods that the agent offers
    #[arg(long, value_name = "ID")]
    pub(crate) auth_method: Option<String>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) cmd: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// A known agent, or a runtime that is running [default: one that is running]
    pub(crate) agent: Option<String>,
    /// The folder to work in [default: the current one]
    #[arg(long = "in", value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// Work in a new git worktree and branch of this name; `plexus worktrees` lists and removes them
    #[arg(long, value_name = "BRANCH", conflicts_with = "earlier")]
    pub(crate) worktree: Option<String>,
    /// Where the branch of --worktree begins [default: what is checked out]
    #[arg(long, value_name = "COMMIT", requires = "worktree")]
    pub(crate) base: Option<String>,
    /// Go on with the agent's newest conversation in the folder, or with the newest one that has these words
    #[arg(long = "continue", value_name = "TEXT", id = "earlier", num_args = 0..=1)]
    pub(crate) earlier: Option<Option<String>>,
    /// The model, as the agent names it
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<String>,
    /// The mode, as the agent names it
    #[arg(long, value_name = "M")]
    pub(crate) mode: Option<String>,
    /// The session's title
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Output the session as JSON; needs a running gateway
    #[arg(long)]
    pub(crate) json: bool,
    /// The prompt; `-` reads it from stdin
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// Archived sessions only
    #[arg(long)]
    pub(crate) archived: bool,
    /// Conversations stored by this runtime that can be resumed
    #[arg(long, value_name = "RUNTIME", conflicts_with = "archived", add = ArgValueCandidates::new(runtime_ids))]
    pub(crate) resumable: Option<String>,
    /// Output JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The runtime
    #[arg(add = ArgValueCandidates::new(runtime_ids))]
    pub(crate) runtime: String,
    /// The runtime's identifier of the conversation, or a unique prefix
    pub(crate) conversation: String,
    /// The folder to work in [default: the conversation's, or else the runtime's]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// The next prompt; without a terminal, also the only one: exits when it is done (0) or failed (1)
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Rename {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    pub(crate) session: String,
    /// The title
    pub(crate) title: String,
}

#[derive(Debug, Args)]
pub(crate) struct Archive {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    pub(crate) session: String,
    /// Restore it
    #[arg(long)]
    pub(crate) undo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Share {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    pub(crate) session: String,
    /// Hours until the link expires: 1 to 720
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    pub(crate) hours: u32,
    /// Output JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// The session [default: all]
    #[arg(add = ArgValueCandidates::new(session_ids))]
    pub(crate) session: Option<String>,
    /// Output JSON, one event per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Start after this cursor, or `now` [default: the oldest stored event]
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    /// Stop at the end instead of waiting for more
    #[arg(long)]
    pub(crate) no_follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Prompt {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    pub(crate) session: String,
    /// The prompt; `-` reads it from stdin
    pub(crate) text: String,
    /// Follow until the run ends: exits 0 if it completed, 1 if not
    #[arg(long)]
    pub(crate) wait: bool,
    /// Output JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// The session to open [default: the inbox if something waits, else the list of sessions]
    #[arg(add = ArgValueCandidates::new(session_ids))]
    pub(crate) session: Option<String>,
    /// Use the mouse: wheel and clicks (selecting text in the terminal then needs Shift)
    #[arg(long)]
    pub(crate) mouse: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    pub(crate) session: String,
}

#[derive(Debug, Args)]
pub(crate) struct Requests {
    /// Include closed requests
    #[arg(long)]
    pub(crate) all: bool,
    /// Output JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("answer").required(true).args(["allow", "deny", "option", "text"]))]
pub(crate) struct Answer {
    /// The request's identifier, or a unique prefix of an open one's
    #[arg(add = ArgValueCandidates::new(request_ids))]
    pub(crate) request: String,
    /// Allow the request
    #[arg(long)]
    pub(crate) allow: bool,
    /// Deny the request
    #[arg(long)]
    pub(crate) deny: bool,
    /// An answer, by id, verb ("always allow") or the agent's label; repeat it to pick several; `ID=ANSWER` for each of several questions
    #[arg(long, value_name = "ID")]
    pub(crate) option: Vec<String>,
    /// The requested text
    #[arg(long, value_name = "T")]
    pub(crate) text: Option<String>,
    /// A reason, sent to the agent
    #[arg(long, value_name = "R")]
    pub(crate) reason: Option<String>,
    /// Remember this choice
    #[arg(long)]
    pub(crate) remember: bool,
    /// Do not ask before an answer that also covers later requests
    #[arg(long)]
    pub(crate) yes: bool,
    /// Allow this text instead of the original, if the agent accepts edits
    #[arg(long, value_name = "TEXT", requires = "allow", conflicts_with_all = ["remember", "deny", "option", "text"])]
    pub(crate) edit: Option<String>,
    /// The digest of the request that was read, or a prefix: needed if the request has changed since it was first shown
    #[arg(long, value_name = "D")]
    pub(crate) digest: Option<String>,
    /// Output the receipt as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The events, one per line
    Ndjson,
    /// Markdown
    Md,
    /// One self-contained HTML file
    Html,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    pub(crate) session: String,
    /// The output format
    #[arg(long, value_enum, default_value = "ndjson")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// The words to search for
    pub(crate) text: String,
    /// The most results to print
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) limit: u16,
    /// Output JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Open {
    /// Print the address instead of opening a browser
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Phone {
    /// A host name or address that the phone uses; repeatable [default: this machine's]
    #[arg(long, value_name = "NAME|IP")]
    pub(crate) address: Vec<String>,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7443")]
    pub(crate) listen: std::net::SocketAddr,
    /// Do not use Tailscale, even if it is running
    #[arg(long)]
    pub(crate) no_tailscale: bool,
    /// Undo it: other machines no longer reach the gateway; paired devices stay paired
    #[arg(long, conflicts_with_all = ["address", "listen"])]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) pair: Pair,
}

#[derive(Debug, Args)]
pub(crate) struct Pair {
    /// Permissions to grant
    #[arg(long, value_name = "S,..", value_delimiter = ',', default_value = "watch,prompt,approve",
        value_parser = ["watch", "prompt", "approve", "admin", "type"])]
    pub(crate) scope: Vec<String>,
    /// Limit the device to these runtimes [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) runtime: Vec<String>,
    /// The highest risk of requests that it may answer
    #[arg(long, value_name = "RISK", default_value = "elevated", value_parser = ["low", "elevated", "danger"])]
    pub(crate) approve_up_to: String,
    /// Allow answering from a notification without opening the request
    #[arg(long)]
    pub(crate) lock_screen: bool,
    /// The device's name [default: the one it reports]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Confirm without asking; the number is still printed, so that it can be compared
    #[arg(long)]
    pub(crate) yes: bool,
    /// Output progress as JSON, one object per line; without --yes, a line `y` on stdin confirms
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Devices {
    /// Output JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: Option<DevicesAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DevicesAction {
    /// Rename a device
    Rename {
        /// The device's name, or a unique prefix of its identifier
        device: String,
        /// The new name
        name: String,
    },
    /// Revoke a device's access immediately
    Revoke {
        /// The device's name, or a unique prefix of its identifier
        #[arg(required_unless_present = "local_browsers")]
        device: Option<String>,
        /// Sign out all browsers on this machine instead
        #[arg(long, conflicts_with = "device")]
        local_browsers: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The recording; `-` reads stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The dialect, if the recording does not name it; overrides the transcript
    #[arg(long, value_name = "DIALECT")]
    pub(crate) dialect: Option<String>,
    /// Output JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Start each installed agent, wait for its handshake, then stop it
    #[arg(long)]
    pub(crate) start: bool,
    /// Trust the clock of this machine although it made a step: old events are removed again
    #[arg(long)]
    pub(crate) confirm_clock: bool,
    /// The configuration file [default: plexus.toml in the state folder, if it exists]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Output JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The agents that `link` knows, from the one table of them.
fn linkable_agents() -> PossibleValuesParser {
    PossibleValuesParser::new(plexus_link::LINK_AGENTS.iter().map(|agent| agent.name))
}

#[derive(Debug, Args)]
pub(crate) struct Link {
    /// The agents [default: all that are installed; with --remove, all that are linked]
    #[arg(value_name = "AGENT", value_parser = linkable_agents())]
    pub(crate) agents: Vec<String>,
    /// Have these agents, typed in your shell, start in a shared terminal (`plexus term`)
    #[arg(long, requires = "agents")]
    pub(crate) term: bool,
    /// Take out what linking wrote
    #[arg(long)]
    pub(crate) remove: bool,
    /// Do it without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Output JSON; without --yes, only shows what would be done
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Restart {
    /// The runtime
    #[arg(add = ArgValueCandidates::new(runtime_ids))]
    pub(crate) runtime: String,
}

#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// The runtime
    #[arg(add = ArgValueCandidates::new(runtime_ids))]
    pub(crate) runtime: String,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;

    const MANUAL: &str = include_str!("../../docs/cli.md");

    /// Names of the commands that `--help` shows below this one and that can be run.
    fn runnable(command: &clap::Command, name: &str, all: &mut BTreeSet<String>) {
        let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
        for command in below {
            let name = format!("{name} {}", command.get_name());
            if !command.is_subcommand_required_set() {
                all.insert(name.clone());
            }
            runnable(command, &name, all);
        }
    }

    fn options(command: &clap::Command) -> BTreeSet<String> {
        let shown = command.get_arguments().filter(|option| !option.is_hide_set());
        shown.filter_map(|option| Some(format!("--{}", option.get_long()?))).collect()
    }

    /// What stands between backticks in the first column of each row of the manual's tables.
    fn manual_rows() -> Vec<Vec<&'static str>> {
        let rows = MANUAL.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line[2..].split_once(" | "));
        rows.map(|(cell, _)| cell.split('`').skip(1).step_by(2).collect()).collect()
    }

    #[test]
    fn manual_lists_every_command_and_no_other() {
        let mut plexus = Cli::command();
        plexus.build();
        let mut listed = BTreeSet::new();
        let mut global = BTreeSet::new();
        for row in manual_rows() {
            let (mut command, mut name) = (&plexus, "plexus".to_owned());
            for words in row.iter().map(|span| span.split([' ', '[', ']', ','])) {
                for word in words {
                    if word == "plexus" {
                        (command, name) = (&plexus, word.to_owned());
                    } else if let Some(below) = command.find_subcommand(word) {
                        (command, name) = (below, format!("{name} {word}"));
                    } else if word.starts_with("--") && word.len() > 2 {
                        assert!(options(command).contains(word), "docs/cli.md: `{name}` has no option {word}");
                        global.extend((name == "plexus").then(|| word.to_owned()));
                    }
                }
                listed.extend((name != "plexus").then(|| name.clone()));
            }
        }
        let mut there = BTreeSet::new();
        runnable(&plexus, "plexus", &mut there);
        let missing: Vec<_> = there.difference(&listed).collect();
        let gone: Vec<_> = listed.difference(&there).collect();
        assert!(missing.is_empty() && gone.is_empty(), "docs/cli.md lacks {missing:?}, and has without need {gone:?}");
        assert_eq!(global, options(&plexus), "docs/cli.md: the options of every command");
    }

    #[test]
    fn command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn run_help_names_every_preset() {
        let help = Cli::command().find_subcommand_mut("run").unwrap().render_help().to_string();
        let words: Vec<&str> = help.split([' ', ',', '\n']).collect();
        for preset in plexus::runtimes::presets::presets() {
            assert!(words.contains(&preset.name), "{}: {help}", preset.name);
        }
    }

    #[test]
    fn command_that_does_not_exist_names_the_nearest_one() {
        let said = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            Cli::read(&words).unwrap_err().to_string()
        };
        for (line, meant) in
            [("plexus nwe", "'new'"), ("plexus atach x", "'attach'"), ("plexus devices revke", "'revoke'")]
        {
            assert!(said(line).contains(meant) && said(line).matches("similar").count() == 1, "{}", said(line));
        }
        assert!(!said("plexus nwe").contains("answer"));
        assert!(!said("plexus frobnicate").contains("similar"));
    }

    #[test]
    fn arguments_parse_or_are_a_usage_error() {
        let right = [
            "serve",
            "bridge acp",
            "bridge acp --session last",
            "bridge acp --runtime demo",
            "serve -c x.toml --listen 127.0.0.1:0 --open",
            "run demo",
            "run demo --prompt hi --cwd /tmp --id d",
            "run --dialect acp -- sh -c true",
            "run --dialect acp --id x -- agent --acp",
            "ls",
            "new",
            "new demo",
            "new demo fix the tests",
            "new demo - --in /tmp --model m --mode plan --title t --json",
            "ls --json",
            "ls --archived --json",
            "rename last title",
            "share last --hours 2 --json",
            "restart demo",
            "archive last",
            "archive s_1 --undo",
            "tail",
            "tail last --json --after k3f9:12",
            "tail --no-follow",
            "tail --json --raw",
            "export last --raw",
            "attach",
            "attach last --mouse",
            "prompt last hi",
            "prompt last - --wait",
            "cancel last",
            "requests",
            "requests --json",
            "answer q_1 --allow",
            "answer q_1 --deny --reason no",
            "answer q_1 --allow --edit ls",
            "answer q_1 --option a --option b",
            "answer q_1 --text hello --remember",
            "export last",
            "export last --format html",
            "search word",
            "open",
            "open --print",
            "pair",
            "pair --scope watch,approve --runtime gemini,codex --approve-up-to low --lock-screen --name phone",
            "pair --json --yes",
            "phone",
            "phone --address box.local --listen 0.0.0.0:7443 --no-tailscale --approve-up-to danger --json --yes",
            "phone --remove",
            "devices",
            "devices --json",
            "devices rename d_1 kitchen",
            "devices revoke phone",
            "stop demo",
            "tls init",
            "tls init --name box.local --name 192.168.1.5 --force",
            "tls renew",
            "link",
            "link claude gemini --yes",
            "link --remove --json",
            "doctor --json",
            "doctor --start -c x.toml",
            "doctor --confirm-clock",
            "mcp --session s_1",
            "mcp --session s_1 --home /tmp",
            "bridge codelia",
            "bridge codelia --session last",
            "bridge codelia --session last --runtime demo --approval-mode trusted",
            "agent demo",
            "completions bash",
            "completions man /tmp/x",
            "term",
            "term --json",
            "term -- vim file",
            "term --detached -- sh -c true",
            "term --detach-keys ctrl-p,ctrl-q -- sh",
            "term attach",
            "term attach t_1 --watch",
            "term attach --detach-keys none",
            "term kill t_1",
            "term-hold --id t_1 --socket /s --size 24x80 -- sh",
            "term-hold --id t_1 --socket /s --size 24x80 --cursor 1x1 -- sh",
            "hold -- sh",
            "hold --parent 1 -- sh -c true",
            "hold --socket /s --spool-max 1 --parent 1 -- sh",
        ];
        for line in right {
            let words = std::iter::once("plexus").chain(line.split(' '));
            assert!(Cli::try_parse_from(words).is_ok(), "{line}");
        }
        let wrong = [
            "",
            "frobnicate",
            "run",
            "run --dialect acp",
            "run -- sh",
            "run demo --dialect acp",
            "run demo -- sh",
            "prompt last",
            "cancel",
            "rename last",
            "archive",
            "answer q_1",
            "answer q_1 --allow --deny",
            "answer --allow",
            "answer q_1 --allow --text x",
            "answer q_1 --deny --edit x",
            "export",
            "export last --format pdf",
            "search",
            "search x --limit 0",
            "pair --scope everything",
            "pair --approve-up-to nothing",
            "phone --remove --listen 0.0.0.0:7443",
            "phone --listen 7443",
            "devices revoke",
            "devices rename d_1",
            "devices forget d_1",
            "stop",
            "bridge",
            "bridge telnet",
            "mcp",
            "mcp --session a/b",
            "term vim",
            "term --detached",
            "term --json -- sh",
            "term --detach-keys d -- sh",
            "term kill",
            "term --detached attach",
            "term-hold --id t_1 --socket /s --size 24 -- sh",
            "hold",
            "hold --socket /s -- sh",
            "agent",
            "completions",
            "completions csh",
            "completions man",
            "link netscape",
            "ls extra",
            "tls",
            "tls init box.local",
            "tls renew --name x",
        ];
        for line in wrong {
            let words = std::iter::once("plexus").chain(line.split(' ').filter(|word| !word.is_empty()));
            let code = Cli::try_parse_from(words).map(|_| 0).unwrap_or_else(|why| why.exit_code());
            assert_eq!(code, i32::from(super::super::USAGE), "{line}");
        }
    }
}
