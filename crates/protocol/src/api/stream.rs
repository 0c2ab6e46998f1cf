//! Messages of a stream: the first after an attach, and the notifications that follow.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::KnownItems;
use super::history::ResumeVerdict;
use super::problem::RpcFailure;
use super::snapshot::Snapshot;
use crate::known_items::known_value;
use crate::request::serialize_brief;
use crate::{
    Cursor, DeviceId, Request, RequestId, Risk, RunId, RunInfo, RunStatus, RuntimeId, RuntimeInfo, Scope, SessionId,
    SessionInfo,
};

/// The first message to a subscriber.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Hello)]
pub struct StreamHello {
    /// The subscription: a session, or `*`; absent in a stream over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required, nullable = false, pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub session_id: Option<String>,
    #[doc = concat!("The verdict on the cursor of the call: whether reading can resume there.")]
    pub resume: ResumeVerdict,
    #[doc = concat!("The epoch of the log.")]
    pub epoch: String,
    #[doc = concat!("The oldest position that can be read from.")]
    pub oldest: Cursor,
    #[doc = concat!("The end of the log.")]
    pub head: Cursor,
    /// The most recently updated sessions, at most 500.
    #[schema(value_type = Vec<SessionInfo>)]
    pub sessions: KnownItems<Arc<SessionInfo>>,
    /// The number of further sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions_omitted: Option<usize>,
    #[doc = concat!("The runs that have not ended.")]
    #[schema(value_type = Vec<RunInfo>)]
    pub runs: KnownItems<RunInfo>,
    /// The open requests; long texts in them are cut.
    #[serde(serialize_with = "serialize_brief")]
    #[schema(value_type = Vec<Request>)]
    pub requests: KnownItems<Arc<Request>>,
    #[doc = concat!("The device of the client.")]
    pub you: You,
}

/// The client's device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct You {
    #[doc = concat!("The device.")]
    pub device_id: DeviceId,
    #[doc = concat!("The name of the device.")]
    pub name: String,
    #[doc = concat!("The scopes of the device.")]
    #[schema(value_type = Vec<Scope>)]
    pub scopes: KnownItems<Scope>,
    #[doc = concat!("The highest risk of a request that the device may answer; any if absent.")]
    #[serde(default, deserialize_with = "known_value", skip_serializing_if = "Option::is_none")]
    pub approve_up_to: Option<Risk>,
}

/// Snapshots in place of events that cannot be replayed; events follow after `cursor`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Snapshots)]
pub struct StreamSnapshots {
    /// The subscription: a session, or `*`; absent in a stream over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required, nullable = false, pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub session_id: Option<String>,
    #[doc = concat!("The position that the snapshots cover.")]
    pub cursor: Cursor,
    #[doc = concat!("The snapshots, one per session.")]
    #[schema(value_type = Vec<Snapshot>)]
    pub snapshots: KnownItems<Snapshot>,
    /// The number of sessions without a snapshot here, because there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<usize>,
}

/// The end of the replay: all later events are new.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Live {
    /// The followed name: a session, or `*`.
    #[schema(pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub session_id: String,
    #[doc = concat!("The position up to which all events were sent.")]
    pub head: Cursor,
}

/// A notification that the client fell behind and caught up: no event was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lag {
    /// The followed name: a session, or `*`.
    #[schema(pattern = r"^(\*|[A-Za-z0-9_.:-]{1,128})$")]
    pub session_id: String,
    #[doc = concat!("The end of the log.")]
    pub head: Cursor,
    /// The number of log positions by which the client was behind.
    pub behind: u64,
}

/// A notification of a changed session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SessionNote)]
pub struct SessionUpdated {
    #[doc = concat!("The current state of the session.")]
    pub session: Arc<SessionInfo>,
}

/// The state of a run, in the UI protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RunStatusNote)]
pub struct RunStatusParams {
    #[doc = concat!("The session of the run.")]
    pub session_id: SessionId,
    #[doc = concat!("The run.")]
    pub run_id: RunId,
    #[doc = concat!("The status: a [`RunStatus`](crate::RunStatus), or the word of a runtime of the UI protocol.")]
    #[schema(value_type = RunStatus)]
    pub status: String,
    #[doc = concat!("The reason of a failure.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The part of the model's context that is left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RunContext)]
pub struct RunContextParams {
    #[doc = concat!("The session of the run.")]
    pub session_id: SessionId,
    #[doc = concat!("The run.")]
    pub run_id: RunId,
    #[doc = concat!("The free part of the context window in percent, 0 to 100.")]
    pub context_left_percent: f64,
}

/// A notification of the changed viewers of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresenceNote)]
pub struct PresenceChanged {
    #[doc = concat!("The session.")]
    pub session_id: SessionId,
    #[doc = concat!("The devices that view the session now, by identifier.")]
    pub lookers: Vec<Viewer>,
}

/// A notification of a changed runtime.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = RuntimeNote)]
pub struct RuntimeUpdated {
    #[doc = concat!("The current state of the runtime.")]
    pub runtime: Arc<RuntimeInfo>,
}

/// A notification of a runtime that was stopped for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RuntimeGone)]
pub struct RuntimeRemoved {
    #[doc = concat!("The runtime.")]
    pub runtime_id: RuntimeId,
}

/// A notification of a deleted session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SessionGone)]
pub struct SessionDeleted {
    #[doc = concat!("The session.")]
    pub session_id: SessionId,
}

/// A notification that the client's response to a request was not accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NotTaken {
    #[doc = concat!("The request.")]
    #[schema(value_type = RequestId)]
    pub request_id: String,
    #[doc = concat!("The error that a call would get.")]
    pub error: RpcFailure,
}

/// A device that views a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Viewer {
    /// The device.
    pub device_id: DeviceId,
    /// The device's name.
    pub name: String,
}
