//! `GET /v1/link` and `POST /v1/link/{agent}`: what `plexus link` does, for the page. The program passes it in.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use utoipa::ToSchema;

use super::guard::{Call, Route};
use super::reply::{Outcome, gateway, json, no_such};
use super::routes::{ADMIN, GET, JSON, NOTHING, POST, route};
use super::{Core, Problem};
use plexus_auth::Admin;
use plexus_protocol::{RuntimeId, RuntimeInfo, Timestamp};
use plexus_risk::Effect;

/// The state of linked agents.
#[derive(Clone)]
pub struct LinkingState {
    /// The kernel.
    pub core: Core,
    /// The work of `plexus link`, for the page.
    pub linking: Linking,
}

/// The routes of linked agents.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<LinkingState>> {
    vec![
        route(GET, "/v1/link", ADMIN, NOTHING, "Agents with terminals of their own: whether they are linked, and what linking changes", list)
            .response::<AgentLinks>(200),
        route(POST, "/v1/link/{agent}", ADMIN, JSON, "Link or unlink an agent: exactly the changes that were shown", change)
            .request::<LinkWish>().response::<AgentLinks>(200).effect(Effect::ChangeSettings),
    ]
}

/// Whether an agent is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkStanding {
    /// It needs no linking.
    NotNeeded,
    /// It is not linked.
    NotLinked,
    /// It is linked.
    Linked,
    /// Another program or version linked it.
    OutOfDate,
    /// Only a part of what linking wrote is there.
    Damaged,
    /// Its files cannot be read, or are not understood.
    Unknown,
}

/// A file that linking or unlinking changes.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LinkFile {
    /// Where it is.
    #[schema(value_type = String)]
    pub path: PathBuf,
    /// The file that it leads to, if it is a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub leads_to: Option<PathBuf>,
    /// What is done to it: `add`, `edit` or `delete`.
    pub action: &'static str,
    /// The change as a unified diff.
    pub diff: String,
    /// Of a removal: whether the file is afterwards byte for byte as it was before linking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<bool>,
    /// Where a copy of a file that is deleted is left, since somebody edited it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub copy: Option<PathBuf>,
}

/// What can be done to an agent's files.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LinkOffer {
    /// The files that change.
    pub files: Vec<LinkFile>,
    /// Names exactly these changes: they are made by giving it back.
    pub digest: String,
}

/// An agent with a terminal of its own.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AgentLink {
    /// Its name for `plexus link`.
    pub agent: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Its program.
    pub program: &'static str,
    /// Where the program is; absent if it is not on PATH.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub path: Option<PathBuf>,
    /// What the program prints as its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether it is linked.
    pub state: LinkStanding,
    /// What is wrong, or what to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Why its version is not linked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// Other settings that keep it from being seen.
    pub notices: Vec<String>,
    /// What is seen of its sessions.
    pub seen: &'static str,
    /// When its terminals were last heard of; absent if they were not since the gateway started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
    /// What linking changes; absent if it cannot be linked, or is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkOffer>,
    /// What unlinking changes; absent if there is nothing of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlink: Option<LinkOffer>,
}

/// When the terminals of this runtime were last heard of.
pub fn terminals_heard_at(runtimes: &[Arc<RuntimeInfo>], id: &RuntimeId) -> Option<Timestamp> {
    runtimes.iter().find(|runtime| runtime.runtime_id == *id)?.heard_at
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkAction {
    /// Link the agent.
    Link,
    /// Take out what linking wrote.
    Unlink,
}

/// A change that somebody has seen and wants made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkWish {
    /// What is to be done.
    pub action: LinkAction,
    /// The digest of the changes as they were shown.
    pub digest: String,
}

/// Why nothing was changed.
#[derive(Debug)]
pub enum LinkRefusal {
    /// There is no such agent.
    NoAgent,
    /// What would change is not what was shown.
    Changed,
    /// It cannot be done; what, why and the fix.
    Refused(String),
}

type List = dyn Fn(Vec<Arc<RuntimeInfo>>) -> BoxFuture<'static, Result<Vec<AgentLink>, String>> + Send + Sync;
type Change = dyn Fn(String, LinkWish) -> BoxFuture<'static, Result<(), LinkRefusal>> + Send + Sync;

/// `plexus link`, passed in by the program, since the router may not import what edits settings.
#[derive(Clone, Default)]
pub struct Linking {
    does: Option<(Arc<List>, Arc<Change>)>,
    /// One at a time: agents' programs are started to read their versions, and their files are edited.
    busy: Arc<Mutex<()>>,
}

impl Linking {
    /// `list` says of each agent whether it is linked and what can be done, `change` does it.
    pub fn new(list: Arc<List>, change: Arc<Change>) -> Self {
        Self { does: Some((list, change)), busy: Arc::default() }
    }

    async fn list(&self, core: &Core) -> Result<Vec<AgentLink>, Problem> {
        let _alone = self.busy.lock().await;
        let Some((list, _)) = &self.does else { return Ok(Vec::new()) };
        list(core.directory.runtimes()).await.map_err(refused)
    }

    async fn change(&self, agent: String, wish: LinkWish) -> Result<(), Problem> {
        let _alone = self.busy.lock().await;
        let Some((_, change)) = &self.does else { return Err(no_agent()) };
        change(agent, wish).await.map_err(|why| match why {
            LinkRefusal::NoAgent => no_agent(),
            LinkRefusal::Changed => Problem::new(
                StatusCode::CONFLICT,
                "link_changed",
                "nothing was changed: the files are no longer as they were shown; look at the change again",
            ),
            LinkRefusal::Refused(why) => refused(why),
        })
    }
}

impl std::fmt::Debug for Linking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Linking").field("does", &self.does.is_some()).finish_non_exhaustive()
    }
}

fn no_agent() -> Problem {
    no_such("agent_not_found", "agent with a terminal of its own")
}

fn refused(why: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "link_refused", format!("nothing was changed: {why}"))
}

/// The agents with terminals of their own.
#[derive(Serialize, ToSchema)]
pub(super) struct AgentLinks {
    agents: Vec<AgentLink>,
}

/// `GET /v1/link`.
async fn list(state: LinkingState, call: Call) -> Outcome {
    gateway::<Admin>(&call)?;
    json(StatusCode::OK, &AgentLinks { agents: state.linking.list(&state.core).await? })
}

/// `POST /v1/link/{agent}`.
async fn change(state: LinkingState, call: Call) -> Outcome {
    gateway::<Admin>(&call)?;
    let agent: String = call.id(no_agent)?;
    let wish: LinkWish = call.json()?;
    state.linking.change(agent, wish).await?;
    json(StatusCode::OK, &AgentLinks { agents: state.linking.list(&state.core).await? })
}
