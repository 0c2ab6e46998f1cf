//! The first messages after an attach.

use super::*;

/// The first message to a subscriber.
#[derive(Serialize, ToSchema)]
pub(crate) struct Hello<'a> {
    /// The subscription: a session, or `*`; absent in a stream over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required, nullable = false, pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub(super) session_id: Option<&'a str>,
    pub(super) resume: ResumeVerdict,
    pub(super) epoch: &'a str,
    pub(super) oldest: Cursor,
    pub(super) head: Cursor,
    /// The most recently updated sessions, at most 500.
    pub(super) sessions: Vec<Arc<SessionInfo>>,
    /// The number of further sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sessions_omitted: Option<usize>,
    pub(super) runs: Vec<RunInfo>,
    /// The open requests; long texts in them are cut.
    #[serde(serialize_with = "briefly")]
    pub(super) requests: Vec<Arc<Request>>,
    pub(super) you: You<'a>,
}

/// Requests with long texts cut, for `hello`.
fn briefly<S: serde::Serializer>(requests: &[Arc<Request>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(requests.iter().map(|request| request.brief()))
}

/// The client's device.
#[derive(Serialize, ToSchema)]
pub(crate) struct You<'a> {
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
    /// `attach` must be made before, so that this state is never older than its head.
    pub(crate) fn new(
        state: &'a Core,
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
            requests: state.directory.requests().open(filter),
            you: You::of(caller),
        }
    }
}

/// Snapshots in place of events that cannot be replayed; events follow after `cursor`.
#[derive(Serialize, ToSchema)]
pub(crate) struct Snapshots<'a> {
    /// The subscription: a session, or `*`; absent in a stream over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required, nullable = false, pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub(super) session_id: Option<&'a str>,
    pub(super) cursor: Cursor,
    pub(super) snapshots: Vec<Snapshot>,
    /// The number of sessions without a snapshot here, because there are too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) omitted: Option<usize>,
}

impl<'a> Snapshots<'a> {
    /// The snapshots of these sessions, or of all.
    pub(crate) fn new(session_id: Option<&'a str>, cursor: Cursor, many: plexus_sessions::Snapshots) -> Self {
        let omitted = Some(many.omitted).filter(|omitted| *omitted > 0);
        Self { session_id, cursor, snapshots: many.snapshots, omitted }
    }
}
