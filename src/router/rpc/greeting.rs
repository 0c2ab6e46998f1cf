//! What a client is told when it attaches.

use super::*;

/// The first thing that a subscriber hears.
#[derive(Serialize, ToSchema)]
pub(in crate::router) struct Hello<'a> {
    /// As it was attached: a session, or `*`; absent of a stream over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required, nullable = false, pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub(super) session_id: Option<&'a str>,
    pub(super) resume: ResumeVerdict,
    pub(super) epoch: &'a str,
    pub(super) oldest: Cursor,
    pub(super) head: Cursor,
    /// Those with the latest news, 500 at most.
    pub(super) sessions: Vec<Arc<SessionInfo>>,
    /// How many sessions are not among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sessions_omitted: Option<usize>,
    pub(super) runs: Vec<RunInfo>,
    /// The requests that are open; what is long of them is cut.
    #[serde(serialize_with = "briefly")]
    pub(super) requests: Vec<Arc<Request>>,
    pub(super) you: You<'a>,
}

/// Requests as `hello` has them: what is long is cut.
fn briefly<S: serde::Serializer>(requests: &[Arc<Request>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(requests.iter().map(|request| request.brief()))
}

/// Who the client is.
#[derive(Serialize, ToSchema)]
pub(in crate::router) struct You<'a> {
    #[schema(value_type = DeviceId)]
    pub(super) device_id: &'a str,
    pub(super) name: &'a str,
    pub(super) scopes: &'a [Scope],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approve_up_to: Option<Risk>,
}

impl<'a> You<'a> {
    pub(super) fn of(caller: &'a Caller) -> Self {
        let device = caller.device();
        let Grant { scopes, approve_up_to, .. } = &device.grant;
        Self { device_id: device.device_id.as_str(), name: &device.name, scopes, approve_up_to: *approve_up_to }
    }
}

impl<'a> Hello<'a> {
    /// `attach` must have been made before: what stands here is never older than its head.
    pub(in crate::router) fn new(
        state: &'a AppState,
        caller: &'a Caller,
        filter: &Filter,
        attach: &AttachVerdict,
        name: Option<&'a str>,
    ) -> Self {
        let log = state.directory.log();
        let (sessions, omitted) = state.directory.newest(HELLO_SESSIONS, |origin| {
            caller.sees(&origin.session_id, &origin.runtime_id)
                && filter.sessions.as_ref().is_none_or(|some| some.contains(&origin.session_id))
        });
        Self {
            session_id: name,
            resume: attach.resume,
            epoch: log.epoch().as_str(),
            oldest: log.cursor(attach.oldest),
            head: log.cursor(attach.head),
            sessions,
            sessions_omitted: Some(omitted).filter(|omitted| *omitted > 0),
            runs: state.directory.runs(filter),
            requests: state.directory.open_requests(filter),
            you: You::of(caller),
        }
    }
}

/// What stands for the events that cannot be replayed any more; events go on after `cursor`.
#[derive(Serialize, ToSchema)]
pub(in crate::router) struct Snapshots<'a> {
    /// As it was attached: a session, or `*`; absent of a stream over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required, nullable = false, pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub(super) session_id: Option<&'a str>,
    pub(super) cursor: Cursor,
    pub(super) snapshots: Vec<Snapshot>,
    /// Sessions without a snapshot here, because they are too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) omitted: Option<usize>,
}

impl<'a> Snapshots<'a> {
    /// Those of the sessions named, or of all.
    pub(in crate::router) fn new(
        session_id: Option<&'a str>,
        cursor: Cursor,
        many: crate::sessions::Snapshots,
    ) -> Self {
        let omitted = Some(many.omitted).filter(|omitted| *omitted > 0);
        Self { session_id, cursor, snapshots: many.snapshots, omitted }
    }
}
