//! `plexus link`: shows the sessions of agents' own terminals in Plexus, and undoes it.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plexus::router::linking::{
    AgentLink, LinkAction, LinkFile, LinkOffer, LinkRefusal, LinkStanding, LinkWish, Linking, terminals_heard_at,
};
use plexus_dialects::link::LINKED_AGENTS;
use plexus_link::{
    FileChange, LINK_AGENTS, LinkAgent, LinkError, LinkPlan, LinkState, Linker, Shell, UnknownVersion, link_agent,
    link_notices, shell_link, shell_links,
};
use plexus_protocol::{CODEX_TERMINAL, RuntimeId, RuntimeInfo};
use serde_json::{Value, json};

use super::args;
use super::commands::{print, print_json};
use super::discover::{Agent, LINK_VERSION, VERSION as VERSION_TIME, version_within};
use super::home::Home;
use super::run::which;
use super::serve::this_program;
use super::term::{Paint, clean, line};
use super::{CommandFailure, CommandResult, FAILURE};

/// Longest version shown, in characters.
const VERSION: usize = 60;
/// Longest answer that is read, in bytes.
const ANSWER_MAX: u64 = 100;
/// Time after which a person is told that an agent is waited for.
const PROGRESS_AFTER: Duration = Duration::from_secs(3);

/// What becomes of one agent.
enum Outcome {
    /// It is changed, after a yes.
    Planned(Box<LinkPlan>),
    /// It is as it should be.
    Already(&'static str),
    /// Nothing is edited for it.
    NotNeeded(&'static str),
    /// Nothing can be done; what, why and the fix.
    Refused(String),
}

/// An agent with its program and its outcome.
struct Row {
    agent: &'static LinkAgent,
    path: Option<PathBuf>,
    version: Option<String>,
    outcome: Outcome,
    notices: Vec<String>,
}

/// Whose settings are edited: the home folder is that of the person's environment, as for the agents.
fn linker(home: &Home) -> anyhow::Result<Linker> {
    let own = etcetera::home_dir().map_err(|why| {
        CommandFailure::plain(format!("no home folder ({why}): set HOME to a folder that belongs to you"))
    })?;
    let program = lasting_path(this_program()?);
    Ok(Linker::new(&own, home.dir(), &program, |name| std::env::var(name).ok())?)
}

/// The path by which this program is found after an upgrade too: a package's own folder is often named after its version, and
/// PATH has a link to it.
fn lasting_path(exe: PathBuf) -> PathBuf {
    let (Ok(real), Some(name)) = (exe.canonicalize(), exe.file_name()) else { return exe };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(name));
    let mut same = found.filter(|one| one.is_absolute() && one.canonicalize().is_ok_and(|one| one == real));
    same.next().unwrap_or(exe)
}

/// Whether each agent is linked. `known` are agents whose versions were read already, `runtimes` those of the gateway that runs.
pub(super) async fn all_linked(
    home: &Home,
    known: &[Agent],
    runtimes: &[Arc<RuntimeInfo>],
) -> Result<Vec<AgentLink>, String> {
    let linker = linker(home).map_err(|why| format!("{why:#}"))?;
    let rows = LINK_AGENTS.iter().map(|agent| agent_link(&linker, agent, known, runtimes));
    Ok(futures_util::future::join_all(rows).await)
}

async fn agent_link(
    linker: &Linker,
    agent: &'static LinkAgent,
    known: &[Agent],
    runtimes: &[Arc<RuntimeInfo>],
) -> AgentLink {
    let path = which(agent.program);
    let known = known.iter().find(|one| one.program == agent.program && one.version.is_some());
    let printed = match (&path, known.and_then(|one| one.version.clone())) {
        (None, _) => Err(not_on_path()),
        (Some(_), Some(version)) => Ok(version),
        (Some(path), None) => version_within(path, VERSION_TIME).await,
    };
    let (state, detail) = match linker.state(agent) {
        Ok(LinkState::NotNeeded(words)) => (LinkStanding::NotNeeded, Some(words.to_owned())),
        Ok(LinkState::NotLinked) => (LinkStanding::NotLinked, None),
        Ok(LinkState::Linked) => (LinkStanding::Linked, None),
        Ok(LinkState::OutOfDate(why)) => (LinkStanding::OutOfDate, Some(why)),
        Ok(LinkState::Damaged(why)) => (LinkStanding::Damaged, Some(why)),
        Err(why) => (LinkStanding::Unknown, Some(why.to_string())),
    };
    let gate = path.as_ref().and(gate(agent, &printed).err()).map(|why| why.to_string());
    let is_seen = !matches!(state, LinkStanding::NotLinked | LinkStanding::NotNeeded);
    let folder = std::env::current_dir().unwrap_or_default();
    let notices = if is_seen { link_notices(linker, agent, &folder) } else { Vec::new() };
    let dialect = LINKED_AGENTS.iter().find(|linked| linked.name == agent.name).map(|linked| linked.dialect);
    let runtime = dialect.or((agent.name == "codex").then_some(CODEX_TERMINAL)).map(RuntimeId::trusted);
    let may_link = path.is_some() && gate.is_none() && state != LinkStanding::NotNeeded;
    let offered =
        |plan: Result<LinkPlan, LinkError>| plan.ok().filter(|plan| !plan.is_empty()).map(|plan| offer(&plan, linker));
    AgentLink {
        agent: agent.name,
        title: agent.title,
        program: agent.program,
        path,
        version: printed.ok(),
        state,
        detail,
        gate,
        notices,
        seen: agent.seen,
        heard_at: runtime.and_then(|id| terminals_heard_at(runtimes, &id)),
        link: may_link.then(|| linker.plan_link(agent)).and_then(offered),
        unlink: (state != LinkStanding::NotNeeded).then(|| linker.plan_removal(agent)).and_then(offered),
    }
}

/// What a plan changes.
fn offer(plan: &LinkPlan, linker: &Linker) -> LinkOffer {
    LinkOffer {
        files: plan.changes.iter().map(|change| changed_file(change, plan, linker)).collect(),
        digest: plan.digest(),
    }
}

fn changed_file(change: &FileChange, plan: &LinkPlan, linker: &Linker) -> LinkFile {
    LinkFile {
        path: change.path().to_owned(),
        leads_to: change.leads_to().map(ToOwned::to_owned),
        action: change.what(),
        diff: change.diff(),
        exact: plan.removal.then(|| change.is_exact()),
        copy: linker.copy_of(change),
    }
}

/// What is behind `GET /v1/link` and `POST /v1/link/{agent}`.
pub(super) fn for_gateway(home: Home) -> Linking {
    let list = home.clone();
    Linking::new(
        Arc::new(move |runtimes| {
            let home = list.clone();
            Box::pin(async move { all_linked(&home, &[], &runtimes).await })
        }),
        Arc::new(move |agent, wish| {
            let home = home.clone();
            Box::pin(async move { change(&home, &agent, &wish).await })
        }),
    )
}

/// Does what was shown, unless it would be something else now.
async fn change(home: &Home, agent: &str, wish: &LinkWish) -> Result<(), LinkRefusal> {
    let refused = |why: &dyn std::fmt::Display| LinkRefusal::Refused(why.to_string());
    let agent = link_agent(agent).ok_or(LinkRefusal::NoAgent)?;
    let linker = linker(home).map_err(|why| refused(&format!("{why:#}")))?;
    let plan = match wish.action {
        LinkAction::Link => {
            if let Some(words) = agent.without {
                return Err(refused(&words));
            }
            let path = which(agent.program).ok_or_else(|| refused(&format!("{} is not on PATH", agent.program)))?;
            gate(agent, &version_within(&path, LINK_VERSION).await).map_err(|why| refused(&why))?;
            linker.plan_link(agent)
        }
        LinkAction::Unlink => linker.plan_removal(agent),
    };
    let plan = plan.map_err(|why| refused(&why))?;
    if plan.is_empty() || plan.digest() != wish.digest {
        return Err(LinkRefusal::Changed);
    }
    linker.apply(&plan).map_err(|why| refused(&why))
}

fn gate(agent: &LinkAgent, printed: &Result<String, UnknownVersion>) -> Result<(), LinkError> {
    let Some(gate) = &agent.gate else { return Ok(()) };
    Ok(gate.admits(agent.program, printed.as_ref().map(String::as_str)).map(drop)?)
}

fn not_on_path() -> UnknownVersion {
    UnknownVersion::Untold("it is not on PATH".into())
}

/// The version that an agent prints. A person is told of a program that takes long.
async fn version_with_progress(agent: &LinkAgent, path: &Path) -> Result<String, UnknownVersion> {
    let mut printed = std::pin::pin!(version_within(path, LINK_VERSION));
    if let Ok(printed) = tokio::time::timeout(PROGRESS_AFTER, &mut printed).await {
        return printed;
    }
    let (program, most) = (agent.program, LINK_VERSION.as_secs());
    // Nobody may read it.
    let _ = writeln!(std::io::stderr(), "waiting for the version of {program}, at most {most} s …");
    printed.await
}

/// `plexus link`.
pub(crate) async fn link(args: args::Link) -> CommandResult {
    let home = Home::find()?;
    let linker = linker(&home)?;
    let named: Vec<&'static LinkAgent> = args.agents.iter().filter_map(|name| link_agent(name)).collect();
    let mut rows = match (args.remove, named.is_empty()) {
        (true, true) => {
            LINK_AGENTS.iter().chain(shell_links(None)).filter_map(|agent| removal(&linker, agent, false)).collect()
        }
        (true, false) => removals(&linker, &named, args.term),
        (false, true) => additions(&linker, LINK_AGENTS.iter().filter(|agent| which(agent.program).is_some())).await,
        (false, false) if args.term => additions(&linker, in_this_shell(&named)?.into_iter()).await,
        (false, false) => additions(&linker, named.into_iter()).await,
    };
    if rows.is_empty() {
        let names: Vec<&str> = LINK_AGENTS.iter().map(|agent| agent.program).collect();
        let why = match args.remove {
            true => "no agent is linked".to_owned(),
            false => format!("none of these programs is on PATH: {}; install one of them", names.join(", ")),
        };
        return Err(CommandFailure::new(FAILURE, format!("there is nothing to do: {why}")).into());
    }
    if !args.json {
        print(&rows.iter().map(|row| shown(row, &linker, Paint::stdout())).collect::<String>())?;
    }
    let planned: Vec<&str> =
        rows.iter().filter(|row| matches!(row.outcome, Outcome::Planned(_))).map(|row| row.agent.name).collect();
    let agreed = args.yes || (!args.json && !planned.is_empty() && agreed(&planned, args.remove)?);
    let mut done = Vec::new();
    if agreed {
        for row in &mut rows {
            let Outcome::Planned(plan) = &row.outcome else { continue };
            let again = (plan.agent.words != plan.agent.name).then(|| planned_again(&linker, plan)).transpose();
            match again.and_then(|again| linker.apply(again.as_ref().unwrap_or(plan))) {
                Ok(()) => done.push(row.agent.name),
                Err(why) => row.outcome = Outcome::Refused(why.to_string()),
            }
        }
    }
    report(&rows, &done, &args, &linker)
}

/// The same plan once more. The functions of several agents are in one file, and another one was put there or taken out a moment ago.
fn planned_again(linker: &Linker, plan: &LinkPlan) -> Result<LinkPlan, LinkError> {
    match plan.removal {
        true => linker.plan_removal(plan.agent),
        false => linker.plan_link(plan.agent),
    }
}

/// Says what became of it.
fn report(rows: &[Row], done: &[&str], args: &args::Link, linker: &Linker) -> CommandResult {
    let refused: Vec<String> = rows
        .iter()
        .filter_map(|row| match &row.outcome {
            Outcome::Refused(why) => Some(format!("{}: {why}", row.agent.name)),
            _ => None,
        })
        .collect();
    if args.json {
        let agents: Vec<Value> = rows.iter().map(|row| as_json(row, done, linker)).collect();
        print_json(&json!({ "agents": agents }))?;
    } else if !done.is_empty() {
        let what = match args.remove {
            true => "not linked any more",
            false if args.term => "linked; shells that are started from now on run them in a shared terminal",
            false => "linked; sessions that are started from now on appear in Plexus",
        };
        print(&format!("{}: {what}\n", done.join(", ")))?;
    }
    if refused.is_empty() {
        return Ok(0);
    }
    let what = if args.remove { "not unlinked" } else { "not linked" };
    Err(CommandFailure::plain(format!("{what}: {}", refused.join("\n  "))))
}

/// What unlinking these agents does: all of it, or only that they start in a shared terminal.
fn removals(linker: &Linker, agents: &[&'static LinkAgent], only_term: bool) -> Vec<Row> {
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

/// What makes these agents start in a shared terminal from the person's shell.
fn in_this_shell(agents: &[&'static LinkAgent]) -> anyhow::Result<Vec<&'static LinkAgent>> {
    let program = std::env::var("SHELL").unwrap_or_default();
    let shell = Shell::of(&program).ok_or_else(|| {
        let named = if program.is_empty() { "SHELL is not set".to_owned() } else { format!("SHELL is {program}") };
        CommandFailure::plain(format!(
            "nothing was changed: {named}, and only bash, zsh and fish are known; in another shell, make `plexus term -- AGENT` an \
             alias of the agent yourself"
        ))
    })?;
    Ok(agents.iter().filter_map(|agent| shell_link(agent.name, shell)).collect())
}

async fn additions(linker: &Linker, agents: impl Iterator<Item = &'static LinkAgent>) -> Vec<Row> {
    let folder = std::env::current_dir().unwrap_or_default();
    let folder = &folder;
    let rows = agents.map(|agent| async move {
        let path = which(agent.program);
        let printed = match &path {
            Some(path) => version_with_progress(agent, path).await,
            None => Err(not_on_path()),
        };
        let outcome = match (agent.without, &path) {
            (Some(words), _) => Outcome::NotNeeded(words),
            (None, None) => {
                Outcome::Refused(format!("{} is not on PATH; install it, or add its folder", agent.program))
            }
            (None, Some(_)) => match gate(agent, &printed).and_then(|()| linker.plan_link(agent)) {
                Ok(plan) if plan.is_empty() => Outcome::Already("linked already"),
                Ok(plan) => Outcome::Planned(Box::new(plan)),
                Err(why) => Outcome::Refused(why.to_string()),
            },
        };
        let notices = link_notices(linker, agent, folder);
        Row { agent, path, version: printed.ok(), outcome, notices }
    });
    futures_util::future::join_all(rows).await
}

/// What unlinking an agent does; nothing for one that is not linked and was not named.
fn removal(linker: &Linker, agent: &'static LinkAgent, named: bool) -> Option<Row> {
    let outcome = match (agent.without, linker.plan_removal(agent)) {
        (Some(words), _) => Outcome::NotNeeded(words),
        (None, Ok(plan)) if plan.is_empty() => Outcome::Already("not linked"),
        (None, Ok(plan)) => Outcome::Planned(Box::new(plan)),
        (None, Err(why)) => Outcome::Refused(why.to_string()),
    };
    let of_interest = named || matches!(outcome, Outcome::Planned(_) | Outcome::Refused(_));
    of_interest.then(|| Row { agent, path: None, version: None, outcome, notices: Vec::new() })
}

// === showing ===

/// One line of a row: a word, and what it is about.
fn entry(paint: Paint, word: &str, text: &str) -> String {
    format!("  {}  {text}\n", paint.dim(&format!("{word:<6}")))
}

fn shown(row: &Row, linker: &Linker, paint: Paint) -> String {
    let agent = row.agent;
    let version = row.version.as_ref().map(|version| format!(", {}", line(version, VERSION))).unwrap_or_default();
    let mut out = format!("{}  {}{version}\n", paint.bold(agent.name), agent.title);
    match &row.outcome {
        Outcome::NotNeeded(words) | Outcome::Already(words) => out += &entry(paint, "", words),
        Outcome::Refused(why) => out += &entry(paint, "cannot", &clean(why)),
        Outcome::Planned(plan) => {
            plan.changes.iter().for_each(|change| out += &shown_change(change, plan, linker, paint));
            if plan.changes.is_empty() {
                out +=
                    &entry(paint, "", "its files are without what linking wrote already; the record of it is deleted");
            }
            if !plan.removal {
                out += &entry(paint, "seen", agent.seen);
                out += &entry(paint, "undo", &format!("plexus link {} --remove", agent.words));
            }
        }
    }
    row.notices.iter().for_each(|notice| out += &entry(paint, "but", &clean(notice)));
    out
}

fn shown_change(change: &FileChange, plan: &LinkPlan, linker: &Linker, paint: Paint) -> String {
    let mut out = entry(paint, change.what(), &clean(&place(change)));
    if plan.removal {
        out += &entry(paint, "", removal_words(change));
    }
    if let Some(copy) = linker.copy_of(change) {
        out += &entry(paint, "", &clean(&format!("it was edited: a copy is left in {}", copy.display())));
    }
    for one in change.diff().lines() {
        let one = clean(one);
        let coloured = match one.chars().next() {
            Some('+') => paint.green(&one),
            Some('-') => paint.red(&one),
            _ => one,
        };
        out += &entry(paint, "", &coloured);
    }
    out
}

fn place(change: &FileChange) -> String {
    match change.leads_to() {
        Some(real) => format!("{} (leads to {})", change.path().display(), real.display()),
        None => change.path().display().to_string(),
    }
}

fn removal_words(change: &FileChange) -> &'static str {
    match change.is_exact() {
        true => "as it was before linking, byte for byte",
        false => "it has changed since it was linked: only what linking wrote is taken out",
    }
}

fn as_json(row: &Row, done: &[&str], linker: &Linker) -> Value {
    let (result, why) = match &row.outcome {
        Outcome::Planned(_) if done.contains(&row.agent.name) => ("done", None),
        Outcome::Planned(_) => ("planned", None),
        Outcome::Already(words) => ("already", Some((*words).to_owned())),
        Outcome::NotNeeded(words) => ("not_needed", Some((*words).to_owned())),
        Outcome::Refused(why) => ("refused", Some(why.clone())),
    };
    let changes: Vec<LinkFile> = match &row.outcome {
        Outcome::Planned(plan) => plan.changes.iter().map(|change| changed_file(change, plan, linker)).collect(),
        _ => Vec::new(),
    };
    json!({
        "agent": row.agent.name, "program": row.path, "version": row.version, "result": result, "why": why,
        "files": changes, "notices": row.notices, "seen": row.agent.seen,
    })
}

/// Asks on the terminal.
fn agreed(names: &[&str], remove: bool) -> anyhow::Result<bool> {
    let what = if remove { "Unlink" } else { "Link" };
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(CommandFailure::plain(
            "nothing was changed: there is no terminal to ask on; --yes does it without asking",
        ));
    }
    print(&format!("{what} {}? [y/N] ", names.join(", ")))?;
    let mut typed = String::new();
    // The end of stdin is a no.
    std::io::stdin().lock().take(ANSWER_MAX).read_line(&mut typed)?;
    if matches!(typed.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(true);
    }
    Err(CommandFailure::plain("nothing was changed"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn agents_that_are_linked_are_heard() {
        for agent in LINK_AGENTS.iter().filter(|agent| agent.without.is_none()) {
            assert!(LINKED_AGENTS.iter().any(|linked| linked.name == agent.name), "{}", agent.name);
        }
    }

    #[test]
    fn program_is_named_by_its_link_on_path() {
        let exe = std::env::current_exe().unwrap();
        // This test is on no PATH.
        assert_eq!(lasting_path(exe.clone()), exe);
        assert_eq!(lasting_path(PathBuf::from("/not/there/plexus")), Path::new("/not/there/plexus"));
    }
}
