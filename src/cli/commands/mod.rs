//! The commands of the `plexus` program, in the order of `plexus --help`. Each command is a module with its arguments and its `run`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, Parser, Subcommand};
use plexus::config::nearest;

use super::executor::block_on;
use super::failure::exit_code;
use super::output;

mod agent;
mod answer;
mod archive;
mod attach;
mod bridge;
mod cancel;
mod changes;
mod completions;
mod devices;
mod doctor;
mod export;
mod hold;
mod hook;
mod link;
mod logs;
mod ls;
mod mcp;
mod new;
mod open;
mod pair;
mod phone;
mod prompt;
mod rename;
mod repair;
mod replay;
mod requests;
mod restart;
mod resume;
mod run;
mod schema;
mod search;
mod serve;
mod service;
mod share;
mod status;
mod stop;
mod tail;
mod term;
mod term_hold;
mod tls;
mod usage;
mod version;
mod worktrees;
mod wrap;

/// The text at the end of `plexus --help`.
const AFTER_HELP: &str = "SESSION is an identifier, a unique prefix of one, or `last`.\n\
Exit codes: 0 ok, 1 failure, 2 usage, 64 bad configuration, 69 no gateway running, 77 not permitted.\n\
State is in $PLEXUS_HOME (default: the platform's data folder, plexus/).";

/// One gateway between the coding agents on your machine and the screens you watch them from.
#[derive(Debug, Parser)]
#[command(name = "plexus", version, about, after_help = AFTER_HELP, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// For pipes and files: write JSON and exports byte for byte, without escaping hidden characters
    #[arg(long, global = true)]
    raw: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    #[command(subcommand)]
    Service(service::ServiceCommand),
    Status(status::StatusArgs),
    Logs(logs::LogsArgs),
    Run(run::RunArgs),
    New(new::NewArgs),
    Worktrees(worktrees::WorktreesArgs),
    Ls(ls::LsArgs),
    Resume(resume::ResumeArgs),
    Tail(tail::TailArgs),
    Attach(attach::AttachArgs),
    Prompt(prompt::PromptArgs),
    Cancel(cancel::CancelArgs),
    Rename(rename::RenameArgs),
    Archive(archive::ArchiveArgs),
    Share(share::ShareArgs),
    Requests(requests::RequestsArgs),
    Answer(answer::AnswerArgs),
    Export(export::ExportArgs),
    Search(search::SearchArgs),
    Changes(changes::ChangesArgs),
    Usage(usage::UsageArgs),
    Open(open::OpenArgs),
    Phone(phone::PhoneArgs),
    Pair(pair::PairArgs),
    Devices(devices::DevicesArgs),
    Bridge(bridge::BridgeArgs),
    Mcp(mcp::McpArgs),
    Term(term::TermArgs),
    #[command(hide = true)]
    TermHold(term_hold::TermHoldArgs),
    Wrap(wrap::WrapArgs),
    Restart(restart::RestartArgs),
    Stop(stop::StopArgs),
    #[command(subcommand)]
    Tls(tls::TlsCommand),
    Link(link::LinkArgs),
    Doctor(doctor::DoctorArgs),
    Version(version::VersionArgs),
    Repair(repair::RepairArgs),
    Replay(replay::ReplayArgs),
    Completions(completions::CompletionsArgs),
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    #[command(hide = true)]
    Schema(schema::SchemaArgs),
    #[command(hide = true)]
    Hold(hold::HoldArgs),
}

/// Runs the program with these arguments; the first is its name.
pub(super) fn main(args: &[OsString]) -> ExitCode {
    if let [_, command, args @ ..] = args
        && command == "hook"
    {
        return hook::run(args);
    }
    // All arguments after the agent's name are the agent's.
    if let [_, command, args @ ..] = args
        && command == "wrap"
        && args.first().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"-"))
    {
        return wrap::wrap(args);
    }
    completions::answer_shell(Cli::command);
    let Cli { command, raw } = Cli::read(args).unwrap_or_else(|error| error.exit());
    output::set_raw(raw);
    command.run()
}

impl Cli {
    /// Parses a command line. An unknown command is compared with the others by its letters: clap's own similarity suggests `answer` for
    /// `nwe`.
    fn read(args: &[OsString]) -> Result<Self, clap::Error> {
        Self::try_parse_from(args).map_err(|mut error| {
            let unknown = error.get(ContextKind::InvalidSubcommand).map(ToString::to_string).unwrap_or_default();
            let root = Self::command();
            let before = args.iter().take_while(|arg| **arg != *unknown);
            let parent = before.fold(&root, |command, arg| command.find_subcommand(arg).unwrap_or(command));
            let known = parent.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
            if let Some(similar) = nearest(&unknown, known) {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![similar.to_owned()]));
            }
            error
        })
    }
}

impl Command {
    fn run(self) -> ExitCode {
        let result = match self {
            Self::Serve(args) => serve::run(args),
            Self::Service(command) => block_on(service::run(command)),
            Self::Status(args) => block_on(status::run(args)),
            Self::Logs(args) => block_on(logs::run(args)),
            Self::Run(args) => block_on(run::run(args)),
            Self::New(args) => block_on(new::run(args)),
            Self::Worktrees(args) => block_on(worktrees::run(args)),
            Self::Ls(args) => block_on(ls::run(args)),
            Self::Resume(args) => block_on(resume::run(args)),
            Self::Tail(args) => block_on(tail::run(args)),
            Self::Attach(args) => block_on(attach::run(args)),
            Self::Prompt(args) => block_on(prompt::run(args)),
            Self::Cancel(args) => block_on(cancel::run(args)),
            Self::Rename(args) => block_on(rename::run(args)),
            Self::Archive(args) => block_on(archive::run(args)),
            Self::Share(args) => block_on(share::run(args)),
            Self::Requests(args) => block_on(requests::run(args)),
            Self::Answer(args) => block_on(answer::run(args)),
            Self::Export(args) => block_on(export::run(args)),
            Self::Search(args) => block_on(search::run(args)),
            Self::Changes(args) => block_on(changes::run(args)),
            Self::Usage(args) => block_on(usage::run(args)),
            Self::Open(args) => block_on(open::run(args)),
            Self::Phone(args) => block_on(phone::run(args)),
            Self::Pair(args) => block_on(pair::run(args)),
            Self::Devices(args) => block_on(devices::run(args)),
            Self::Bridge(args) => block_on(bridge::run(args)),
            Self::Mcp(args) => mcp::run(args),
            Self::Term(args) => term::run(args),
            Self::TermHold(args) => return term_hold::run(args),
            Self::Wrap(args) => return wrap::run(&args),
            Self::Restart(args) => block_on(restart::run(args)),
            Self::Stop(args) => block_on(stop::run(args)),
            Self::Tls(command) => tls::run(&command),
            Self::Link(args) => block_on(link::run(args)),
            Self::Doctor(args) => block_on(doctor::run(args)),
            Self::Version(args) => block_on(version::run(args)),
            Self::Repair(_) => repair::run(),
            Self::Replay(args) => replay::run(&args),
            Self::Completions(args) => completions::run(&args, Cli::command()),
            Self::Agent(command) => agent::run(&command),
            Self::Schema(args) => schema::run(&args),
            Self::Hold(args) => return hold::run(args),
        };
        ExitCode::from(exit_code(result))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const MANUAL: &str = include_str!("../../../docs/cli.md");

    /// Collects the names of the subcommands that `--help` shows and that can be run.
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
        let visible = command.get_arguments().filter(|option| !option.is_hide_set());
        visible.filter_map(|option| Some(format!("--{}", option.get_long()?))).collect()
    }

    /// The text between backticks in the first column of each row of the manual's tables.
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
            for args in row.iter().map(|span| span.split([' ', '[', ']', ','])) {
                for word in args {
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
        let mut available = BTreeSet::new();
        runnable(&plexus, "plexus", &mut available);
        let missing: Vec<_> = available.difference(&listed).collect();
        let unknown: Vec<_> = listed.difference(&available).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "docs/cli.md lacks {missing:?}, and has without need {unknown:?}"
        );
        assert_eq!(global, options(&plexus), "docs/cli.md: the options of every command");
    }

    #[test]
    fn command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn run_help_names_every_preset() {
        let help = Cli::command().find_subcommand_mut("run").unwrap().render_help().to_string();
        let args: Vec<&str> = help.split([' ', ',', '\n']).collect();
        for preset in plexus::runtimes::presets::presets() {
            assert!(args.contains(&preset.name), "{}: {help}", preset.name);
        }
    }

    #[test]
    fn command_that_does_not_exist_names_the_nearest_one() {
        let message = |line: &str| {
            let args: Vec<OsString> = line.split(' ').map(Into::into).collect();
            Cli::read(&args).unwrap_err().to_string()
        };
        for (line, suggestion) in
            [("plexus nwe", "'new'"), ("plexus atach x", "'attach'"), ("plexus devices revke", "'revoke'")]
        {
            assert!(
                message(line).contains(suggestion) && message(line).matches("similar").count() == 1,
                "{}",
                message(line)
            );
        }
        assert!(!message("plexus nwe").contains("answer"));
        assert!(!message("plexus frobnicate").contains("similar"));
    }

    #[test]
    fn arguments_parse_or_are_a_usage_error() {
        let right = [
            "serve",
            "bridge acp",
            "bridge acp --session last",
            "bridge acp --runtime demo",
            "serve -c x.toml --listen 127.0.0.1:0 --open",
            "service install --force --dry-run",
            "service uninstall",
            "service status --json",
            "service logs -f -n 5",
            "status --json",
            "logs --follow --lines 5",
            "version --json",
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
            let args = std::iter::once("plexus").chain(line.split(' '));
            assert!(Cli::try_parse_from(args).is_ok(), "{line}");
        }
        let wrong = [
            "",
            "frobnicate",
            "service",
            "service uninstall --force",
            "logs -n x",
            "status extra",
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
            let args = std::iter::once("plexus").chain(line.split(' ').filter(|word| !word.is_empty()));
            let code = Cli::try_parse_from(args).map(|_| 0).unwrap_or_else(|error| error.exit_code());
            assert_eq!(code, i32::from(crate::cli::failure::USAGE), "{line}");
        }
    }
}
