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
    /// The time since which spending is recorded: nothing before it is counted.
    pub known_since: Timestamp,
    /// The sum of all rows, including those that are left out.
    pub total: Spending,
    /// The rows: days in their order, runs newest first, others by the number of tokens.
    #[schema(value_type = Vec<UsageRow>)]
    pub rows: KnownItems<UsageRow>,
    /// `true` if rows were left out by `limit`.
    pub truncated: bool,
}

/// A sum, with the names of its subject.
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

/// Changed ceilings. An absent one is as configured; one without figures is no ceiling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CeilingSettings {
    /// The ceiling of what all sessions spend in a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<Ceiling>,
    /// The ceiling of what each session spends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Ceiling>,
    /// The ceilings of single sessions, in place of `session`; at most 1000.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions: BTreeMap<SessionId, Ceiling>,
}

/// The ceilings of the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfiguredCeilings {
    /// The ceiling of what all sessions spend in a day.
    pub day: Ceiling,
    /// The ceiling of what each session spends.
    pub session: Ceiling,
}

/// The ceilings in the form that administrators see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CeilingsView {
    /// The ceilings set by `PUT`; they take precedence over the configuration.
    pub set: CeilingSettings,
    /// The ceilings in the configuration file.
    pub configured: ConfiguredCeilings,
    /// The effective ceiling of a day.
    pub day: Ceiling,
    /// The effective ceiling of each session.
    pub session: Ceiling,
    /// The spending of today, by the clock of the gateway's machine.
    pub today: Spending,
    /// The spending when a user last allowed today to continue: the ceiling counts from there again.
    pub allowed: Spending,
    /// The time when the day ends.
    pub day_ends: Timestamp,
}
