//! Spending and its ceilings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::KnownItems;
use crate::{Ceiling, RunId, RuntimeId, SessionId, Spending, Timestamp};

/// The subject of a sum: one row for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum UsageBy {
    /// A day.
    Day,
    /// An agent: a runtime.
    Runtime,
    /// A project.
    Project,
    /// A session.
    Session,
    /// A run.
    Run,
}

/// The spending of the sessions that the caller may see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageSums {
    /// The subject of each row.
    pub by: UsageBy,
    /// The first day.
    #[schema(format = Date)]
    pub from: String,
    /// The last day.
    #[schema(format = Date)]
    pub to: String,
    /// The offset of the days: minutes ahead of UTC.
    pub utc_offset: i64,
    /// Since when spending is known: nothing before it is counted.
    pub known_since: Timestamp,
    /// The sum of all rows, also of those that are left out.
    pub total: Spending,
    /// Days in their order, runs newest first, others by the most tokens.
    #[schema(value_type = Vec<UsageRow>)]
    pub rows: KnownItems<UsageRow>,
    /// `true` if rows were left out by `limit`.
    pub truncated: bool,
}

/// A sum. It has the names that belong to what it is the sum of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageRow {
    /// The sum of the row.
    pub usage: Spending,
    /// The day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = Date)]
    pub day: Option<String>,
    /// The project's root folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<RuntimeId>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The session's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The time of the last report, to a quarter of an hour.
    pub at: Timestamp,
}

/// Ceilings as they are set. What is absent is as configured; a ceiling without figures is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CeilingSettings {
    /// Of what all sessions spend in a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<Ceiling>,
    /// Of what each session spends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Ceiling>,
    /// Of single sessions, in place of `session`; at most 1000.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions: BTreeMap<SessionId, Ceiling>,
}

/// The ceilings of the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfiguredCeilings {
    /// Of what all sessions spend in a day.
    pub day: Ceiling,
    /// Of what each session spends.
    pub session: Ceiling,
}

/// The ceilings, as administrators see them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CeilingsView {
    /// The ceiling that was set by `PUT`; it counts before the configuration.
    pub set: CeilingSettings,
    /// The ceiling in the configuration file.
    pub configured: ConfiguredCeilings,
    /// The ceiling of a day that counts.
    pub day: Ceiling,
    /// The ceiling of each session that counts.
    pub session: Ceiling,
    /// The spending of today, by the clock of the gateway's machine.
    pub today: Spending,
    /// The spending when somebody last allowed today to continue: from there the ceiling counts again.
    pub allowed: Spending,
    /// The time when the day ends.
    pub day_ends: Timestamp,
}
