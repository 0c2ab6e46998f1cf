//! The results of the methods, and the notifications to clients.

use super::*;
use crate::wire::Envelope;

/// The result of `initialize`.
#[derive(Serialize, ToSchema)]
pub(crate) struct Initialized<'a> {
    pub(super) protocol_version: &'static str,
    pub(super) server: Server,
    #[schema(value_type = std::collections::BTreeMap<String, bool>)]
    pub(super) server_capabilities: Map<String, Value>,
    pub(super) you: You<'a>,
}

/// The server's name and version.
#[derive(Serialize, ToSchema)]
pub(crate) struct Server {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

/// The result of `session.attach`.
#[derive(Serialize, ToSchema)]
pub(crate) struct Attached<'a> {
    pub(super) attached: bool,
    /// The subscription: a session, or `*`.
    #[schema(pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub(super) session_id: &'a str,
    pub(super) resume: ResumeVerdict,
    /// Events follow after this cursor.
    pub(super) cursor: Cursor,
    pub(super) head: Cursor,
}

/// The result of `session.detach`.
#[derive(Serialize, ToSchema)]
pub(crate) struct Detached {
    /// `true` if the session was followed.
    pub(super) detached: bool,
}

/// The result of `presence.update`.
#[derive(Serialize, ToSchema)]
pub(crate) struct Looking {
    pub(super) focused: bool,
}

/// The result of `session.history`: the events, written one by one, then the end.
#[derive(Serialize, ToSchema)]
pub(crate) struct History<'a> {
    events: Vec<Envelope<'a>>,
    #[serde(flatten)]
    end: CountedEnd<'a>,
}

/// The end of the result of `session.history`.
#[derive(Serialize, ToSchema)]
pub(crate) struct CountedEnd<'a> {
    pub(super) events_sent: usize,
    #[serde(flatten)]
    pub(super) end: &'a PageEnd,
}

/// The result of `run.cancel`.
#[derive(Serialize, ToSchema)]
pub(crate) struct Cancelled {
    pub(super) ok: bool,
    pub(super) run_id: RunId,
    /// `running` for a run that ends when its runtime reports it; `cancelled` for a queued one, which has ended.
    pub(super) status: RunStatus,
}

/// The viewers of a session changed.
#[derive(Serialize, ToSchema)]
#[schema(as = PresenceNote)]
pub(crate) struct PresenceChanged<'a> {
    pub(super) session_id: &'a SessionId,
    pub(super) lookers: &'a [Viewer],
}

/// A runtime changed.
#[derive(Serialize, ToSchema)]
#[schema(as = RuntimeNote)]
pub(crate) struct RuntimeUpdated<'a> {
    pub(super) runtime: &'a RuntimeInfo,
}

/// A runtime was stopped for good.
#[derive(Serialize, ToSchema)]
#[schema(as = RuntimeGone)]
pub(crate) struct RuntimeRemoved<'a> {
    pub(super) runtime_id: &'a RuntimeId,
}

/// A session was deleted.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionGone)]
pub(crate) struct SessionDeleted<'a> {
    pub(super) session_id: &'a SessionId,
}

/// The client's response to a request was not accepted.
#[derive(Serialize, ToSchema)]
pub(crate) struct NotTaken<'a> {
    #[schema(value_type = RequestId)]
    pub(super) request_id: &'a str,
    pub(super) error: &'a RpcError,
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
