//! What the methods answer, and what the gateway notifies clients of.

use super::*;
use crate::router::wire::Envelope;

/// The answer to `initialize`.
#[derive(Serialize, ToSchema)]
pub(in crate::router) struct Initialized<'a> {
    pub(super) protocol_version: &'static str,
    pub(super) server: Server,
    #[schema(value_type = std::collections::BTreeMap<String, bool>)]
    pub(super) server_capabilities: Map<String, Value>,
    pub(super) you: You<'a>,
}

/// The program that answers.
#[derive(Serialize, ToSchema)]
pub(in crate::router) struct Server {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

/// The answer to `session.attach`.
#[derive(Serialize, ToSchema)]
pub(in crate::router) struct Attached<'a> {
    pub(super) attached: bool,
    /// What is followed: a session, or `*`.
    #[schema(pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub(super) session_id: &'a str,
    pub(super) resume: ResumeVerdict,
    /// Events go on after this.
    pub(super) cursor: Cursor,
    pub(super) head: Cursor,
}

/// The answer to `session.detach`.
#[derive(Serialize, ToSchema)]
pub(in crate::router) struct Detached {
    /// Whether it was followed.
    pub(super) detached: bool,
}

/// The answer to `presence.update`.
#[derive(Serialize, ToSchema)]
pub(in crate::router) struct Looking {
    pub(super) focused: bool,
}

/// The answer to `session.history`: its events are written one by one, then its end.
#[derive(Serialize, ToSchema)]
pub(in crate::router) struct History<'a> {
    events: Vec<Envelope<'a>>,
    #[serde(flatten)]
    end: CountedEnd<'a>,
}

/// The end of the answer to `session.history`.
#[derive(Serialize, ToSchema)]
pub(in crate::router) struct CountedEnd<'a> {
    pub(super) events_sent: usize,
    #[serde(flatten)]
    pub(super) end: &'a PageEnd,
}

/// The answer to `run.cancel`.
#[derive(Serialize, ToSchema)]
pub(in crate::router) struct Cancelled {
    pub(super) ok: bool,
    pub(super) run_id: RunId,
    /// `running`, of a run that ends when its runtime says so; `cancelled`, of one that waited, and is over.
    pub(super) status: RunStatus,
}

/// Who looks at a session now.
#[derive(Serialize, ToSchema)]
#[schema(as = PresenceNote)]
pub(in crate::router) struct PresenceChanged<'a> {
    pub(super) session_id: &'a SessionId,
    pub(super) lookers: &'a [Viewer],
}

/// A runtime stands differently.
#[derive(Serialize, ToSchema)]
#[schema(as = RuntimeNote)]
pub(in crate::router) struct RuntimeUpdated<'a> {
    pub(super) runtime: &'a RuntimeInfo,
}

/// A runtime was stopped for good.
#[derive(Serialize, ToSchema)]
#[schema(as = RuntimeGone)]
pub(in crate::router) struct RuntimeRemoved<'a> {
    pub(super) runtime_id: &'a RuntimeId,
}

/// A session was forgotten.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionGone)]
pub(in crate::router) struct SessionDeleted<'a> {
    pub(super) session_id: &'a SessionId,
}

/// The client's response to a question was not taken.
#[derive(Serialize, ToSchema)]
pub(in crate::router) struct NotTaken<'a> {
    #[schema(value_type = RequestId)]
    pub(super) request_id: &'a str,
    pub(super) error: &'a Failure,
}

impl Notification for PresenceChanged<'_> {
    const METHOD: &'static str = "presence.changed";
}

impl Notification for RuntimeUpdated<'_> {
    const METHOD: &'static str = "runtime.updated";
}

impl Notification for RuntimeRemoved<'_> {
    const METHOD: &'static str = "runtime.removed";
}

impl Notification for SessionDeleted<'_> {
    const METHOD: &'static str = "session.deleted";
}

impl Notification for NotTaken<'_> {
    const METHOD: &'static str = "gateway.error";
}

impl Notification for Hello<'_> {
    const METHOD: &'static str = "gateway.hello";
}

impl Notification for Snapshots<'_> {
    const METHOD: &'static str = "gateway.snapshot";
}
