//! The command line. One file: what `plexus --help` says, in its order.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

/// What `--help` ends with.
const AFTER: &str = "SESSION is an identifier, the unique beginning of one, or `last`.\n\
Exit codes: 0 ok, 1 failure, 2 usage, 64 bad configuration, 69 no gateway running, 77 not permitted.\n\
State is in $PLEXUS_HOME (default: the platform's data folder, plexus/).";

/// One gateway between every coding agent that runs on your machines and every screen you own.
#[derive(Debug, Parser)]
#[command(name = "plexus", version, about, after_help = AFTER, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Into a pipe or a file: JSON and exports byte for byte, with whatever agents put into them
    #[arg(long, global = true)]
    pub(crate) raw: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The gateway, in the foreground
    Serve(Serve),
    /// Attach an agent, open a session in it and follow it here; starts a gateway if none runs
    Run(Run),
    /// Sessions and runtimes
    Ls(Ls),
    /// Take up a conversation that a runtime keeps, and follow it here; `plexus ls --resumable RUNTIME` shows them
    Resume(Resume),
    /// Follow events
    Tail(Tail),
    /// All sessions on one screen, full size: watch, prompt, answer
    Attach(Attach),
    /// Send a prompt
    Prompt(Prompt),
    /// Cancel what a session is doing
    Cancel(Cancel),
    /// Give a session a title
    Rename(Rename),
    /// Put a session away, or take it back
    Archive(Archive),
    /// Make a link that shows one session, and nothing else, to whoever has it
    Share(Share),
    /// The requests that wait for an answer
    Requests(Requests),
    /// Answer a request; the first answer wins
    Answer(Answer),
    /// A session as a file, on stdout
    Export(Export),
    /// Find text in all sessions
    Search(Search),
    /// The page in the browser, signed in by a one-time code
    Open(Open),
    /// Let a phone or another browser in: shows a code, and asks whether both show the same number
    Pair(Pair),
    /// The devices that may come in
    Devices(Devices),
    /// Serve a session on stdio: an editor or a terminal UI starts this as if it were the agent
    Bridge(super::bridge::Bridge),
    /// Stop a runtime and start it again; its sessions go on
    Restart(Restart),
    /// Stop a runtime
    Stop(Stop),
    /// A certificate of your own, so that a phone can reach the gateway
    #[command(subcommand)]
    Tls(Tls),
    /// What works, what does not, and the fix
    Doctor(Doctor),
    /// Built-in agents
    #[command(subcommand)]
    Agent(Agent),
    /// Keep a runtime and its whole family inside the gateway's lifetime
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

#[derive(Debug, Subcommand)]
pub(crate) enum Tls {
    /// Make a private CA, which can sign for this machine's names alone, and a certificate
    Init(TlsInit),
    /// Make a new certificate with the CA that is there
    Renew,
}

#[derive(Debug, Args)]
pub(crate) struct TlsInit {
    /// A name or an address that phones use; several times for several [default: this machine's]
    #[arg(long, value_name = "NAME|IP")]
    pub(crate) name: Vec<String>,
    /// Make a new CA though there is one
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// A scripted ACP agent on stdio, for trying things out and for tests
    Demo,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The configuration [default: plexus.toml in the state folder, if there]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen, instead of what the configuration says [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Log to this file instead of stderr; at 8 MiB it is put away, and the last three are kept
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// Leave the terminal's session, so that closing it does not end the gateway
    #[arg(long, hide = true)]
    pub(crate) detach: bool,
}

/// What `run` may be told to start, from the one table of them.
fn known_agents() -> String {
    let names: Vec<&str> = plexus::runtimes::presets::presets().iter().map(|preset| preset.name).collect();
    format!("A known agent: {}", names.join(", "))
}

#[derive(Debug, Args)]
#[command(override_usage = "plexus run PRESET [OPTIONS]\n       plexus run --dialect D [OPTIONS] -- CMD [ARGS]...")]
pub(crate) struct Run {
    #[arg(help = known_agents(), required_unless_present = "cmd", conflicts_with_all = ["cmd", "dialect"])]
    pub(crate) preset: Option<String>,
    /// The protocol that CMD speaks: acp or codelia
    #[arg(long, value_name = "D", requires = "cmd", required_unless_present = "preset")]
    pub(crate) dialect: Option<String>,
    /// The runtime's name [default: the preset's, or the program's]
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The folder to work in [default: this one]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// The first prompt; without a terminal, also the only one: exits when it is done (0) or failed (1)
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// The session's title
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// A variable for the agent: with a value, or with the one that it has in this shell (best for keys); repeatable
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// A variable of this shell that the agent gets if it is set; NAME* is a family; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
    /// How the agent is signed in, of the ways that it offers
    #[arg(long, value_name = "ID")]
    pub(crate) auth_method: Option<String>,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) cmd: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// The sessions that were put away instead of the others
    #[arg(long)]
    pub(crate) archived: bool,
    /// The conversations that this runtime keeps itself and could resume, instead
    #[arg(long, value_name = "RUNTIME", conflicts_with = "archived")]
    pub(crate) resumable: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// Which runtime
    pub(crate) runtime: String,
    /// The runtime's own identifier of the conversation, or the unique beginning of one
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
    /// Which session
    pub(crate) session: String,
    /// The title
    pub(crate) title: String,
}

#[derive(Debug, Args)]
pub(crate) struct Archive {
    /// Which session
    pub(crate) session: String,
    /// Take it back
    #[arg(long)]
    pub(crate) undo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Share {
    /// Which session
    pub(crate) session: String,
    /// How long it is good, in hours: 1 to 720
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    pub(crate) hours: u32,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// Which session [default: all]
    pub(crate) session: Option<String>,
    /// One event a line, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Start after this cursor, or `now` [default: the oldest event kept]
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    /// Stop at the end instead of waiting for more
    #[arg(long)]
    pub(crate) no_follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Prompt {
    /// Which session
    pub(crate) session: String,
    /// The prompt; `-` reads it from stdin
    pub(crate) text: String,
    /// Follow until the run ends: exits 0 if it completed, 1 if not
    #[arg(long)]
    pub(crate) wait: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// Which session to open [default: the list]
    pub(crate) session: Option<String>,
    /// Take the mouse: wheel and clicks (the terminal's own selection then needs Shift)
    #[arg(long)]
    pub(crate) mouse: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Which session
    pub(crate) session: String,
}

#[derive(Debug, Args)]
pub(crate) struct Requests {
    /// Closed ones too
    #[arg(long)]
    pub(crate) all: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("answer").required(true).args(["allow", "deny", "option", "text"]))]
pub(crate) struct Answer {
    /// Which request: its identifier, or the unique beginning of an open one's
    pub(crate) request: String,
    /// Allow it
    #[arg(long)]
    pub(crate) allow: bool,
    /// Deny it
    #[arg(long)]
    pub(crate) deny: bool,
    /// One of the options, by id or label; for a pick, as many as it takes; for several questions `ID=ANSWER` each
    #[arg(long, value_name = "ID")]
    pub(crate) option: Vec<String>,
    /// The text that was asked for
    #[arg(long, value_name = "T")]
    pub(crate) text: Option<String>,
    /// Why, for the agent to read
    #[arg(long, value_name = "R")]
    pub(crate) reason: Option<String>,
    /// Remember the choice
    #[arg(long)]
    pub(crate) remember: bool,
    /// Allow this instead of what was asked, where the agent takes a change
    #[arg(long, value_name = "TEXT", requires = "allow", conflicts_with_all = ["remember", "deny", "option", "text"])]
    pub(crate) edit: Option<String>,
    /// The digest of what was read, or its beginning: needed where the question changed since it was asked
    #[arg(long, value_name = "D")]
    pub(crate) digest: Option<String>,
    /// The receipt as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The events, one a line
    Ndjson,
    /// Markdown
    Md,
    /// One HTML file that needs nothing else
    Html,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Which session
    pub(crate) session: String,
    /// In which form
    #[arg(long, value_enum, default_value = "ndjson")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// What to find
    pub(crate) text: String,
    /// How many passages at most
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) limit: u16,
    /// As JSON
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
pub(crate) struct Pair {
    /// What it may do
    #[arg(long, value_name = "S,..", value_delimiter = ',', default_value = "watch,prompt,approve",
        value_parser = ["watch", "prompt", "approve", "admin"])]
    pub(crate) scope: Vec<String>,
    /// Only with these runtimes [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) runtime: Vec<String>,
    /// The highest risk of a request that it may answer [default: any]
    #[arg(long, value_name = "RISK", value_parser = ["low", "elevated", "danger"])]
    pub(crate) approve_up_to: Option<String>,
    /// Let it answer from a notification, without opening the request
    #[arg(long)]
    pub(crate) lock_screen: bool,
    /// What to call it [default: as it says itself]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Confirm without asking here; the number is printed all the same, for whoever compares it
    #[arg(long)]
    pub(crate) yes: bool,
    /// What happens as JSON, a line each; without --yes a line `y` on stdin confirms
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Devices {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) action: Option<DevicesAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DevicesAction {
    /// Give one another name
    Rename {
        /// Which: its name, or the unique beginning of its identifier
        device: String,
        /// What to call it
        name: String,
    },
    /// Take a device's access away, at once
    Revoke {
        /// Which: its name, or the unique beginning of its identifier
        device: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Start every agent that is there, up to its handshake, and end it again: does it work?
    #[arg(long)]
    pub(crate) start: bool,
    /// The configuration [default: plexus.toml in the state folder, if there]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Restart {
    /// Which runtime
    pub(crate) runtime: String,
}

#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// Which runtime
    pub(crate) runtime: String,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_run_names_every_preset() {
        let help = Cli::command().find_subcommand_mut("run").unwrap().render_help().to_string();
        let words: Vec<&str> = help.split([' ', ',', '\n']).collect();
        for preset in plexus::runtimes::presets::presets() {
            assert!(words.contains(&preset.name), "{}: {help}", preset.name);
        }
    }

    #[test]
    fn what_is_right_parses_and_what_is_wrong_is_a_usage_error() {
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
            "devices",
            "devices --json",
            "devices rename d_1 kitchen",
            "devices revoke phone",
            "stop demo",
            "tls init",
            "tls init --name box.local --name 192.168.1.5 --force",
            "tls renew",
            "doctor --json",
            "doctor --start -c x.toml",
            "bridge codelia",
            "bridge codelia --session last",
            "bridge codelia --session last --runtime demo --approval-mode trusted",
            "agent demo",
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
            "devices revoke",
            "devices rename d_1",
            "devices forget d_1",
            "stop",
            "bridge",
            "bridge telnet",
            "hold",
            "hold --socket /s -- sh",
            "agent",
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
