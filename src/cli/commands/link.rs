//! `plexus link`: shows the sessions of agents' own terminals in Plexus, and removes these links.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use plexus_linked::{
    FileChange, LINKED_AGENTS, LinkError, LinkPlan, LinkedAgent, Linker, Shell, UnknownVersion, link_notices,
    linked_agent, shell_link, shell_links,
};
use plexus_protocol::api::linking::LinkFile;
use serde_json::{Value, json};

use crate::cli::discover::{LINK_VERSION_TIMEOUT, version_within};
use crate::cli::failure::{CommandFailure, CommandResult, FAILURE};
use crate::cli::home::Home;
use crate::cli::linking::{changed_file, check_version, linker, not_on_path};
use crate::cli::output::{Paint, clean, line, print, print_json};
use crate::cli::programs::which;

/// Maximum length of a version, in characters.
const VERSION_MAX: usize = 60;
/// Maximum length of a typed confirmation, in bytes.
const ANSWER_MAX: u64 = 100;
/// Time after which a message reports that the version of an agent is pending.
const PROGRESS_AFTER: Duration = Duration::from_secs(3);

/// The agents that `link` knows, from the common table.
fn linkable_agents() -> PossibleValuesParser {
    PossibleValuesParser::new(plexus_linked::LINKED_AGENTS.iter().map(|agent| agent.name))
}

/// Show the sessions of agents' own terminals in Plexus, by entries in their settings; --remove undoes it
#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// The agents [default: all that are installed; with --remove, all that are linked]
    #[arg(value_name = "AGENT", value_parser = linkable_agents())]
    agents: Vec<String>,
    /// Start these agents in a shared terminal when they are typed in your shell (`plexus term`)
    #[arg(long, requires = "agents")]
    term: bool,
    /// Remove the entries that linking wrote
    #[arg(long)]
    remove: bool,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
    /// Output JSON; without --yes, only show the planned changes
    #[arg(long)]
    json: bool,
}

/// The outcome for one agent.
enum Outcome {
    /// Changes of its files, which need a confirmation.
    Planned(Box<LinkPlan>),
    /// Its files are up to date.
    Already(&'static str),
    /// No file has to be edited.
    NotNeeded(&'static str),
    /// The agent cannot be linked; the reason and the fix.
    Refused(String),
}

/// An agent with its program and its outcome.
struct Row {
    agent: &'static LinkedAgent,
    path: Option<PathBuf>,
    version: Option<String>,
    outcome: Outcome,
    notices: Vec<String>,
}

/// The version that an agent prints. A message reports a program that takes long.
async fn version_with_progress(agent: &LinkedAgent, path: &Path) -> Result<String, UnknownVersion> {
    let mut printed = std::pin::pin!(version_within(path, LINK_VERSION_TIMEOUT));
    if let Ok(printed) = tokio::time::timeout(PROGRESS_AFTER, &mut printed).await {
        return printed;
    }
    let (program, max) = (agent.program, LINK_VERSION_TIMEOUT.as_secs());
    // Stderr may be closed.
    let _ = writeln!(std::io::stderr(), "waiting for the version of {program}, at most {max} s …");
    printed.await
}

pub(crate) async fn run(args: LinkArgs) -> CommandResult {
    let home = Home::find()?;
    let linker = linker(&home)?;
    let chosen: Vec<&'static LinkedAgent> = args.agents.iter().filter_map(|name| linked_agent(name)).collect();
    let mut rows = match (args.remove, chosen.is_empty()) {
        (true, true) => {
            LINKED_AGENTS.iter().chain(shell_links(None)).filter_map(|agent| removal(&linker, agent, false)).collect()
        }
        (true, false) => removals(&linker, &chosen, args.term),
        (false, true) => additions(&linker, LINKED_AGENTS.iter().filter(|agent| which(agent.program).is_some())).await,
        (false, false) if args.term => additions(&linker, in_this_shell(&chosen)?.into_iter()).await,
        (false, false) => additions(&linker, chosen.into_iter()).await,
    };
    if rows.is_empty() {
        let names: Vec<&str> = LINKED_AGENTS.iter().map(|agent| agent.program).collect();
        let reason = match args.remove {
            true => "no agent is linked".to_owned(),
            false => format!("none of these programs is on PATH: {}; install one of them", names.join(", ")),
        };
        return Err(CommandFailure::new(FAILURE, format!("there is nothing to do: {reason}")).into());
    }
    if !args.json {
        print(&rows.iter().map(|row| format_row(row, &linker, Paint::stdout())).collect::<String>())?;
    }
    let planned: Vec<&str> =
        rows.iter().filter(|row| matches!(row.outcome, Outcome::Planned(_))).map(|row| row.agent.name).collect();
    let confirmed = args.yes || (!args.json && !planned.is_empty() && confirm(&planned, args.remove)?);
    let mut applied = Vec::new();
    if confirmed {
        for row in &mut rows {
            let Outcome::Planned(plan) = &row.outcome else { continue };
            let new_plan = (plan.agent.arguments != plan.agent.name).then(|| plan_again(&linker, plan)).transpose();
            match new_plan.and_then(|new_plan| linker.apply(new_plan.as_ref().unwrap_or(plan))) {
                Ok(()) => applied.push(row.agent.name),
                Err(reason) => row.outcome = Outcome::Refused(reason.to_string()),
            }
        }
    }
    report(&rows, &applied, &args, &linker)
}

/// Makes the same plan again. The functions of several agents are in one file, and that of another agent may have been added or removed
/// meanwhile.
fn plan_again(linker: &Linker, plan: &LinkPlan) -> Result<LinkPlan, LinkError> {
    match plan.removal {
        true => linker.plan_removal(plan.agent),
        false => linker.plan_link(plan.agent),
    }
}

/// Prints the results.
fn report(rows: &[Row], applied: &[&str], args: &LinkArgs, linker: &Linker) -> CommandResult {
    let refused: Vec<String> = rows
        .iter()
        .filter_map(|row| match &row.outcome {
            Outcome::Refused(reason) => Some(format!("{}: {reason}", row.agent.name)),
            _ => None,
        })
        .collect();
    if args.json {
        let agents: Vec<Value> = rows.iter().map(|row| as_json(row, applied, linker)).collect();
        print_json(&json!({ "agents": agents }))?;
    } else if !applied.is_empty() {
        let outcome = match args.remove {
            true => "not linked any more",
            false if args.term => "linked; shells that are started from now on run them in a shared terminal",
            false => "linked; sessions that are started from now on appear in Plexus",
        };
        print(&format!("{}: {outcome}\n", applied.join(", ")))?;
    }
    if refused.is_empty() {
        return Ok(0);
    }
    let failure = if args.remove { "not unlinked" } else { "not linked" };
    Err(CommandFailure::plain(format!("{failure}: {}", refused.join("\n  "))))
}

/// The rows for unlinking agents: for all entries, or only for those that start them in a shared terminal.
fn removals(linker: &Linker, agents: &[&'static LinkedAgent], only_term: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for agent in agents {
        if !only_term {
            rows.extend(removal(linker, agent, true));
        }
        let before = rows.len();
        rows.extend(shell_links(Some(agent.name)).filter_map(|link| removal(linker, link, false)));
        if only_term && rows.len() == before {
            rows.extend(shell_links(Some(agent.name)).next().and_then(|link| removal(linker, link, true)));
        }
    }
    rows
}

/// The links that start these agents in a shared terminal from the user's shell.
fn in_this_shell(agents: &[&'static LinkedAgent]) -> anyhow::Result<Vec<&'static LinkedAgent>> {
    let program = std::env::var("SHELL").unwrap_or_default();
    let shell = Shell::from_program(&program).ok_or_else(|| {
        let shell_name = if program.is_empty() { "SHELL is not set".to_owned() } else { format!("SHELL is {program}") };
        CommandFailure::plain(format!(
            "nothing was changed: {shell_name}, and only bash, zsh and fish are known; in another shell, make `plexus term -- AGENT` an \
             alias of the agent yourself"
        ))
    })?;
    Ok(agents.iter().filter_map(|agent| shell_link(agent.name, shell)).collect())
}

async fn additions(linker: &Linker, agents: impl Iterator<Item = &'static LinkedAgent>) -> Vec<Row> {
    let folder = std::env::current_dir().unwrap_or_default();
    let folder = &folder;
    let rows = agents.map(|agent| async move {
        let path = which(agent.program);
        let printed = match &path {
            Some(path) => version_with_progress(agent, path).await,
            None => Err(not_on_path()),
        };
        let outcome = match (agent.no_edit_reason, &path) {
            (Some(note), _) => Outcome::NotNeeded(note),
            (None, None) => {
                Outcome::Refused(format!("{} is not on PATH; install it, or add its folder", agent.program))
            }
            (None, Some(_)) => match check_version(agent, &printed).and_then(|()| linker.plan_link(agent)) {
                Ok(plan) if plan.is_empty() => Outcome::Already("linked already"),
                Ok(plan) => Outcome::Planned(Box::new(plan)),
                Err(reason) => Outcome::Refused(reason.to_string()),
            },
        };
        let notices = link_notices(linker, agent, folder);
        Row { agent, path, version: printed.ok(), outcome, notices }
    });
    futures_util::future::join_all(rows).await
}

/// The row for unlinking an agent; `None` for one that is not linked and was not named.
fn removal(linker: &Linker, agent: &'static LinkedAgent, chosen: bool) -> Option<Row> {
    let outcome = match (agent.no_edit_reason, linker.plan_removal(agent)) {
        (Some(note), _) => Outcome::NotNeeded(note),
        (None, Ok(plan)) if plan.is_empty() => Outcome::Already("not linked"),
        (None, Ok(plan)) => Outcome::Planned(Box::new(plan)),
        (None, Err(reason)) => Outcome::Refused(reason.to_string()),
    };
    let is_listed = chosen || matches!(outcome, Outcome::Planned(_) | Outcome::Refused(_));
    is_listed.then(|| Row { agent, path: None, version: None, outcome, notices: Vec::new() })
}

// === output ===

/// Formats one line of a row: a word and its subject.
fn detail_line(paint: Paint, word: &str, text: &str) -> String {
    format!("  {}  {text}\n", paint.dim(&format!("{word:<6}")))
}

fn format_row(row: &Row, linker: &Linker, paint: Paint) -> String {
    let agent = row.agent;
    let version = row.version.as_ref().map(|version| format!(", {}", line(version, VERSION_MAX))).unwrap_or_default();
    let mut out = format!("{}  {}{version}\n", paint.bold(agent.name), agent.title);
    match &row.outcome {
        Outcome::NotNeeded(note) | Outcome::Already(note) => out += &detail_line(paint, "", note),
        Outcome::Refused(reason) => out += &detail_line(paint, "cannot", &clean(reason)),
        Outcome::Planned(plan) => {
            plan.changes.iter().for_each(|change| out += &format_change(change, plan, linker, paint));
            if plan.changes.is_empty() {
                out += &detail_line(
                    paint,
                    "",
                    "its files contain no entries of linking any more; the record of them is deleted",
                );
            }
            if !plan.removal {
                out += &detail_line(paint, "seen", agent.visible_part);
                out += &detail_line(paint, "undo", &format!("plexus link {} --remove", agent.arguments));
            }
        }
    }
    row.notices.iter().for_each(|notice| out += &detail_line(paint, "but", &clean(notice)));
    out
}

fn format_change(change: &FileChange, plan: &LinkPlan, linker: &Linker, paint: Paint) -> String {
    let mut out = detail_line(paint, change.verb(), &clean(&path_text(change)));
    if plan.removal {
        out += &detail_line(paint, "", removal_note(change));
    }
    if let Some(copy) = linker.copy_path(change) {
        out += &detail_line(paint, "", &clean(&format!("it was edited: a copy is left in {}", copy.display())));
    }
    for text in change.diff().lines() {
        let text = clean(text);
        let coloured = match text.chars().next() {
            Some('+') => paint.green(&text),
            Some('-') => paint.red(&text),
            _ => text,
        };
        out += &detail_line(paint, "", &coloured);
    }
    out
}

fn path_text(change: &FileChange) -> String {
    match change.leads_to() {
        Some(real) => format!("{} (leads to {})", change.path().display(), real.display()),
        None => change.path().display().to_string(),
    }
}

fn removal_note(change: &FileChange) -> &'static str {
    match change.is_exact() {
        true => "as it was before linking, byte for byte",
        false => "it has changed since it was linked: only the entries of linking are removed",
    }
}

fn as_json(row: &Row, applied: &[&str], linker: &Linker) -> Value {
    let (result, reason) = match &row.outcome {
        Outcome::Planned(_) if applied.contains(&row.agent.name) => ("done", None),
        Outcome::Planned(_) => ("planned", None),
        Outcome::Already(note) => ("already", Some((*note).to_owned())),
        Outcome::NotNeeded(note) => ("not_needed", Some((*note).to_owned())),
        Outcome::Refused(reason) => ("refused", Some(reason.clone())),
    };
    let changes: Vec<LinkFile> = match &row.outcome {
        Outcome::Planned(plan) => plan.changes.iter().map(|change| changed_file(change, plan, linker)).collect(),
        _ => Vec::new(),
    };
    json!({
        "agent": row.agent.name, "program": row.path, "version": row.version, "result": result, "why": reason,
        "files": changes, "notices": row.notices, "seen": row.agent.visible_part,
    })
}

/// Asks for a confirmation on the terminal.
fn confirm(names: &[&str], remove: bool) -> anyhow::Result<bool> {
    let verb = if remove { "Unlink" } else { "Link" };
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(CommandFailure::plain(
            "nothing was changed: there is no terminal for the confirmation; --yes skips it",
        ));
    }
    print(&format!("{verb} {}? [y/N] ", names.join(", ")))?;
    let mut typed = String::new();
    // The end of stdin counts as no.
    std::io::stdin().lock().take(ANSWER_MAX).read_line(&mut typed)?;
    if matches!(typed.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(true);
    }
    Err(CommandFailure::plain("nothing was changed"))
}
