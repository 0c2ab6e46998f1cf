//! Pages of events, and the positions at which reading resumes.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::KnownItems;
use super::snapshot::Snapshot;
use crate::schema::Json;
use crate::transcript::EntryBody;
use crate::{Cursor, Kind, Position, RunId, RuntimeId, SessionId, Timestamp};

/// The verdict on a cursor: whether reading can resume there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Resume)]
pub enum ResumeVerdict {
    /// Everything after the cursor follows.
    Ok,
    /// Retention has removed some of the events after the cursor: a snapshot comes first.
    Gap,
    /// The cursor is of another epoch of the log: a snapshot comes first.
    Reset,
    /// The cursor is past the log's end: a snapshot comes first.
    Ahead,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

impl ResumeVerdict {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Gap => "gap",
            Self::Reset => "reset",
            Self::Ahead => "ahead",
            Self::Unknown => "unknown",
        }
    }
}

/// An event.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Envelope)]
pub struct EventEnvelope {
    #[doc = concat!("The session of the event.")]
    pub session_id: SessionId,
    #[doc = concat!("The run of the event.")]
    pub run_id: RunId,
    /// The event's number within the run, from 0 without a gap.
    pub seq: u64,
    /// With `merge`: the number of the last merged event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq_last: Option<u64>,
    #[doc = concat!("The position of the event, to resume after it.")]
    pub cursor: Cursor,
    /// With `merge`: the cursor of the first merged event; `cursor` is that of the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor_first: Option<Cursor>,
    /// With `merge`: the number of merged events, for kinds that can be merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<usize>,
    #[doc = concat!("The time at which the gateway received it.")]
    pub at: Timestamp,
    /// With `merge`: the time of the last merged event, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_last: Option<Timestamp>,
    #[doc = concat!("The kind of event; a newer gateway has further ones.")]
    #[schema(value_type = Kind)]
    pub kind: String,
    /// The canonical body; its shape depends on the kind.
    #[schema(value_type = Object)]
    pub event: Box<RawValue>,
    #[doc = concat!("The missing parts of a merged item.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    #[doc = concat!("The origin of the event.")]
    pub meta: EnvelopeMeta,
    /// The runtime's own message, with the projection `native`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Json>)]
    pub native: Option<Box<RawValue>>,
}

impl EventEnvelope {
    /// Returns the kind; `None` for one that only a newer gateway has.
    pub fn known_kind(&self) -> Option<Kind> {
        Kind::from_name(&self.kind)
    }

    /// Returns the position in the log; of a merged event that of the last one.
    pub fn position(&self) -> Position {
        self.cursor.position
    }

    /// Reads the body; `None` if it is no `T`, which the body of a newer gateway may not be.
    pub fn body<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.event.get()).ok()
    }

    /// Returns the event as an entry of a transcript; `None` for a kind that only a newer gateway has.
    pub fn entry(&self) -> Option<EntryBody> {
        // A body that is no JSON value is malformed for every kind.
        Some(EntryBody::read(self.known_kind()?, self.body().unwrap_or_default()))
    }
}

/// The missing parts of an item that has, with `merge`, only some parts of a long text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cut {
    /// The number of missing parts before this one.
    pub before: u32,
    /// The number of missing parts after this one.
    pub after: u32,
}

/// The origin of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Meta)]
pub struct EnvelopeMeta {
    #[doc = concat!("The runtime of the session.")]
    pub runtime_id: RuntimeId,
    #[doc = concat!("The dialect of that runtime.")]
    pub dialect: String,
}

/// A page of events. With a `resume` other than `ok`, a snapshot replaces the lost events; continue from `next`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Page {
    #[doc = concat!("The events in log order.")]
    #[schema(value_type = Vec<EventEnvelope>)]
    pub events: KnownItems<EventEnvelope>,
    #[doc = concat!("The members after the events.")]
    #[serde(flatten)]
    pub end: PageEnd,
}

/// Reads a value that has agents' JSON and may have been buffered by `flatten`.
fn buffered<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    let value = Option::<Value>::deserialize(from)?;
    value.map(|value| serde_json::from_value(value).map_err(D::Error::custom)).transpose()
}

/// The members after the events of a page.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PageEnd {
    /// The `before` of the page before this one; absent at the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = r"^[A-Za-z0-9]{1,32}:[0-9]{1,19}(\+[0-9]{1,9})?$")]
    pub previous: Option<String>,
    /// The `after` of the next page.
    #[schema(pattern = r"^[A-Za-z0-9]{1,32}:[0-9]{1,19}(\+[0-9]{1,9})?$")]
    pub next: String,
    #[doc = concat!("The end of the log.")]
    pub head: Cursor,
    #[doc = concat!("The verdict on the cursor of the call: whether reading can resume there.")]
    pub resume: ResumeVerdict,
    #[doc = concat!("The snapshot of the session, in place of lost events.")]
    #[serde(default, deserialize_with = "buffered", skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
    #[doc = concat!("The snapshots of all sessions, in place of lost events.")]
    #[serde(default, deserialize_with = "buffered", skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<Vec<Snapshot>>,
    /// The number of sessions without a snapshot here, because there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<usize>,
}
