//! `GET /v1/link` and `POST /v1/link/{agent}`: the function of `plexus link` for the page. The program passes it in.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use tokio::sync::Mutex;

use plexus_auth::Admin;
use plexus_protocol::api::linking::{AgentLink, AgentLinks, LinkChange};
use plexus_protocol::{RuntimeId, RuntimeInfo, Timestamp};
use plexus_risk::Effect;
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{RouteResult, gateway, json, no_such};
use plexus_router::routes::{ADMIN, GET, JSON, NOTHING, POST, route};
use plexus_router::{Core, Problem};

/// The state of linked agents.
#[derive(Clone)]
pub struct LinkingState {
    /// The kernel.
    pub core: Core,
    /// The implementation of `plexus link`.
    pub linking: Linking,
}

/// Returns the routes of linked agents.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<LinkingState>> {
    vec![
        route(GET, "/v1/link", ADMIN, NOTHING, "Agents with terminals of their own: whether they are linked, and what linking changes", list)
            .response::<AgentLinks>(200),
        route(POST, "/v1/link/{agent}", ADMIN, JSON, "Link or unlink an agent: exactly the changes that were shown", change)
            .request::<LinkChange>().response::<AgentLinks>(200).effect(Effect::ChangeSettings),
    ]
}

/// Returns the time of the last message from the terminals of this runtime.
pub fn last_terminal_message(runtimes: &[Arc<RuntimeInfo>], id: &RuntimeId) -> Option<Timestamp> {
    runtimes.iter().find(|runtime| runtime.runtime_id == *id)?.heard_at
}

/// The reason why nothing was changed.
#[derive(Debug)]
pub enum LinkRefusal {
    /// The agent does not exist.
    NoAgent,
    /// The changes differ from those that the client displayed.
    Changed,
    /// The change cannot be made. Contains the problem, the reason and the fix.
    Refused(String),
}

type List = dyn Fn(Vec<Arc<RuntimeInfo>>) -> BoxFuture<'static, Result<Vec<AgentLink>, String>> + Send + Sync;
type Change = dyn Fn(String, LinkChange) -> BoxFuture<'static, Result<(), LinkRefusal>> + Send + Sync;

/// The implementation of `plexus link`, passed in by the program, since the router may not import the code that edits settings.
#[derive(Clone, Default)]
pub struct Linking {
    does: Option<(Arc<List>, Arc<Change>)>,
    /// Held during a call: it starts agents' programs to read their versions, and edits their files.
    busy: Arc<Mutex<()>>,
}

impl Linking {
    /// `list` returns for each agent whether it is linked and which changes are possible; `change` makes them.
    pub fn new(list: Arc<List>, change: Arc<Change>) -> Self {
        Self { does: Some((list, change)), busy: Arc::default() }
    }

    async fn list(&self, core: &Core) -> Result<Vec<AgentLink>, Problem> {
        let _alone = self.busy.lock().await;
        let Some((list, _)) = &self.does else { return Ok(Vec::new()) };
        list(core.directory.runtimes()).await.map_err(refused)
    }

    async fn change(&self, agent: String, wanted: LinkChange) -> Result<(), Problem> {
        let _alone = self.busy.lock().await;
        let Some((_, change)) = &self.does else { return Err(no_agent()) };
        change(agent, wanted).await.map_err(|reason| match reason {
            LinkRefusal::NoAgent => no_agent(),
            LinkRefusal::Changed => Problem::new(
                StatusCode::CONFLICT,
                "link_changed",
                "nothing was changed: the files are no longer as they were shown; look at the change again",
            ),
            LinkRefusal::Refused(reason) => refused(reason),
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

fn refused(reason: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "link_refused", format!("nothing was changed: {reason}"))
}

/// `GET /v1/link`.
async fn list(state: LinkingState, call: Call) -> RouteResult {
    gateway::<Admin>(&call)?;
    json(StatusCode::OK, &AgentLinks { agents: state.linking.list(&state.core).await?.into() })
}

/// `POST /v1/link/{agent}`.
async fn change(state: LinkingState, call: Call) -> RouteResult {
    gateway::<Admin>(&call)?;
    let agent: String = call.id(no_agent)?;
    state.linking.change(agent, call.json()?).await?;
    json(StatusCode::OK, &AgentLinks { agents: state.linking.list(&state.core).await?.into() })
}
