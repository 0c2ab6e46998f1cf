//! The agents whose own terminals can be linked: which of them are, and the changes that linking would make.

use std::sync::Arc;

use plexus::agents::linking::{LinkRefusal, Linking, last_terminal_message};
use plexus_dialects::link::TERMINAL_DIALECTS;
use plexus_linked::{
    FileChange, LINKED_AGENTS, LinkError, LinkPlan, LinkState, LinkedAgent, Linker, UnknownVersion, link_notices,
    linked_agent,
};
use plexus_protocol::api::linking::{AgentLink, LinkAction, LinkChange, LinkFile, LinkOffer, LinkStatus};
use plexus_protocol::{CODEX_TERMINAL, RuntimeId, RuntimeInfo};

use super::discover::{Agent, LINK_VERSION_TIMEOUT, VERSION_TIMEOUT, version_within};
use super::home::{Home, user_home};
use super::programs::{stable_path, this_program, which};

/// Makes the editor of agents' settings. The home folder is that of the user's environment, as for the agents.
pub(super) fn linker(home: &Home) -> anyhow::Result<Linker> {
    let user_home = user_home()?;
    let program = stable_path(this_program()?);
    Ok(Linker::new(&user_home, home.dir(), &program, |name| std::env::var(name).ok())?)
}

/// The link of each agent. `known` are agents whose versions have been read, `runtimes` those of the running gateway.
pub(super) async fn all_linked(
    home: &Home,
    known: &[Agent],
    runtimes: &[Arc<RuntimeInfo>],
) -> Result<Vec<AgentLink>, String> {
    let linker = linker(home).map_err(|reason| format!("{reason:#}"))?;
    let rows = LINKED_AGENTS.iter().map(|agent| agent_link(&linker, agent, known, runtimes));
    Ok(futures_util::future::join_all(rows).await)
}

async fn agent_link(
    linker: &Linker,
    agent: &'static LinkedAgent,
    known: &[Agent],
    runtimes: &[Arc<RuntimeInfo>],
) -> AgentLink {
    let path = which(agent.program);
    let known = known.iter().find(|agent_info| agent_info.program == agent.program && agent_info.version.is_some());
    let printed = match (&path, known.and_then(|agent_info| agent_info.version.clone())) {
        (None, _) => Err(not_on_path()),
        (Some(_), Some(version)) => Ok(version),
        (Some(path), None) => version_within(path, VERSION_TIMEOUT).await,
    };
    let (state, detail) = match linker.state(agent) {
        Ok(LinkState::NotNeeded(note)) => (LinkStatus::NotNeeded, Some(note.to_owned())),
        Ok(LinkState::NotLinked) => (LinkStatus::NotLinked, None),
        Ok(LinkState::Linked) => (LinkStatus::Linked, None),
        Ok(LinkState::OutOfDate(reason)) => (LinkStatus::OutOfDate, Some(reason)),
        Ok(LinkState::Damaged(reason)) => (LinkStatus::Damaged, Some(reason)),
        Err(reason) => (LinkStatus::Unknown, Some(reason.to_string())),
    };
    let gate = path.as_ref().and(check_version(agent, &printed).err()).map(|reason| reason.to_string());
    let is_seen = !matches!(state, LinkStatus::NotLinked | LinkStatus::NotNeeded);
    let folder = std::env::current_dir().unwrap_or_default();
    let notices = if is_seen { link_notices(linker, agent, &folder) } else { Vec::new() };
    let dialect = TERMINAL_DIALECTS.iter().find(|linked| linked.name == agent.name).map(|linked| linked.dialect);
    let runtime = dialect.or((agent.name == "codex").then_some(CODEX_TERMINAL)).map(RuntimeId::trusted);
    let may_link = path.is_some() && gate.is_none() && state != LinkStatus::NotNeeded;
    let offered =
        |plan: Result<LinkPlan, LinkError>| plan.ok().filter(|plan| !plan.is_empty()).map(|plan| offer(&plan, linker));
    AgentLink {
        agent: agent.name.to_owned(),
        title: agent.title.to_owned(),
        program: agent.program.to_owned(),
        path,
        version: printed.ok(),
        state,
        detail,
        gate,
        notices,
        seen: agent.visible_part.to_owned(),
        heard_at: runtime.and_then(|id| last_terminal_message(runtimes, &id)),
        link: may_link.then(|| linker.plan_link(agent)).and_then(offered),
        unlink: (state != LinkStatus::NotNeeded).then(|| linker.plan_removal(agent)).and_then(offered),
    }
}

/// The changes of a plan, as shown to the user.
fn offer(plan: &LinkPlan, linker: &Linker) -> LinkOffer {
    LinkOffer {
        files: plan.changes.iter().map(|change| changed_file(change, plan, linker)).collect(),
        digest: plan.digest(),
    }
}

pub(super) fn changed_file(change: &FileChange, plan: &LinkPlan, linker: &Linker) -> LinkFile {
    LinkFile {
        path: change.path().to_owned(),
        leads_to: change.leads_to().map(ToOwned::to_owned),
        action: change.verb().to_owned(),
        diff: change.diff(),
        exact: plan.removal.then(|| change.is_exact()),
        copy: linker.copy_path(change),
    }
}

/// The implementation of `GET /v1/link` and `POST /v1/link/{agent}`.
pub(super) fn for_gateway(home: Home) -> Linking {
    let list = home.clone();
    Linking::new(
        Arc::new(move |runtimes| {
            let home = list.clone();
            Box::pin(async move { all_linked(&home, &[], &runtimes).await })
        }),
        Arc::new(move |agent, request| {
            let home = home.clone();
            Box::pin(async move { change(&home, &agent, &request).await })
        }),
    )
}

/// Applies the plan that the user saw, unless it has changed.
async fn change(home: &Home, agent: &str, request: &LinkChange) -> Result<(), LinkRefusal> {
    let refused = |reason: &dyn std::fmt::Display| LinkRefusal::Refused(reason.to_string());
    let agent = linked_agent(agent).ok_or(LinkRefusal::NoAgent)?;
    let linker = linker(home).map_err(|reason| refused(&format!("{reason:#}")))?;
    let plan = match request.action {
        LinkAction::Link => {
            if let Some(note) = agent.no_edit_reason {
                return Err(refused(&note));
            }
            let path = which(agent.program).ok_or_else(|| refused(&format!("{} is not on PATH", agent.program)))?;
            check_version(agent, &version_within(&path, LINK_VERSION_TIMEOUT).await)
                .map_err(|reason| refused(&reason))?;
            linker.plan_link(agent)
        }
        LinkAction::Unlink => linker.plan_removal(agent),
    };
    let plan = plan.map_err(|reason| refused(&reason))?;
    if plan.is_empty() || plan.digest() != request.digest {
        return Err(LinkRefusal::Changed);
    }
    linker.apply(&plan).map_err(|reason| refused(&reason))
}

pub(super) fn check_version(agent: &LinkedAgent, printed: &Result<String, UnknownVersion>) -> Result<(), LinkError> {
    let Some(gate) = &agent.gate else { return Ok(()) };
    Ok(gate.admits(agent.program, printed.as_ref().map(String::as_str)).map(drop)?)
}

pub(super) fn not_on_path() -> UnknownVersion {
    UnknownVersion::Unreported("it is not on PATH".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_agents_have_a_terminal_dialect() {
        for agent in LINKED_AGENTS.iter().filter(|agent| agent.no_edit_reason.is_none()) {
            assert!(TERMINAL_DIALECTS.iter().any(|linked| linked.name == agent.name), "{}", agent.name);
        }
    }
}
