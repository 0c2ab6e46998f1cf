//! `GET /v1/usage`: the spending of agents, summed by run, session, project, runtime or day.

use std::collections::HashMap;

use http::StatusCode;
use jiff::civil::{Date, date};
use plexus_protocol::api::devices::Target;
use plexus_protocol::api::usage::{CeilingSettings, CeilingsView, UsageBy, UsageRow, UsageSums};
use plexus_protocol::{RunId, RuntimeId, SessionId, SessionInfo, Spending, Timestamp};
use plexus_store::{DAY_MILLIS, SPAN_MILLIS, SpendGroup, SpendRow};
use serde_json::{Value, json};

use plexus_auth::{Admin, Watch};
use plexus_risk::Effect;
use plexus_router::described::{Parameter, id, number, one_of};
use plexus_router::guard::{Call, Route};
use plexus_router::reply::{QueryParameters, RouteResult, bad_query, json, no_such, session_for};
use plexus_router::routes::{ADMIN, GET, JSON, NOTHING, PUT, WATCH, route};
use plexus_router::{Core, Problem};

/// Default number of days in a response, without `from`.
const DAYS: i64 = 30;
/// Maximum number of days in a response; a longer time is cut at its beginning.
const DAYS_MAX: i64 = 3660;
/// Default number of rows.
const ROWS: usize = 1000;
/// Maximum number of rows in a response; a larger limit is reduced to it.
const ROWS_MAX: usize = 5000;
/// Maximum distance of a clock from UTC, in minutes.
const OFFSET_MAX: i64 = 14 * 60;
/// Step of `utc_offset`, in minutes: no clock is between two steps, and sums are not stored by finer spans.
const OFFSET_STEP: i64 = SPAN_MILLIS / 60_000;

const USAGE_FROM: Parameter =
    Parameter::query("from", "The first day, by your clock (default: 29 days before `to`)", schema_of_day);
const USAGE_TO: Parameter = Parameter::query("to", "The last day, by your clock (default: today)", schema_of_day);
const USAGE_BY: Parameter = Parameter::query("by", "What the rows are the sums of; default day", || {
    one_of(&["day", "runtime", "project", "session", "run"])
});
const USAGE_SESSION: Parameter = Parameter::query("session_id", "Only of this session", id);
const USAGE_RUNTIME: Parameter = Parameter::query("runtime_id", "Only of this runtime", id);
const USAGE_OFFSET: Parameter = Parameter::query(
    "utc_offset",
    "How far your clock is ahead of UTC, in minutes: where a day begins (default 0)",
    || json!({ "type": "integer", "minimum": -840, "maximum": 840, "multipleOf": 15 }),
);
const USAGE_LIMIT: Parameter = Parameter::query("limit", "Maximum number of rows (default 1000, at most 5000)", number);
/// The parameters of `/v1/usage`.
const USAGE: &[&Parameter] =
    &[&USAGE_FROM, &USAGE_TO, &USAGE_BY, &USAGE_SESSION, &USAGE_RUNTIME, &USAGE_OFFSET, &USAGE_LIMIT];

fn schema_of_day() -> Value {
    json!({ "type": "string", "format": "date" })
}

/// Returns the routes of spending and its ceilings.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        route(GET, "/v1/usage", WATCH, NOTHING, "What agents spent: tokens and money, by day, runtime, project, session or run", usage)
            .response::<UsageSums>(200).with(USAGE),
        route(GET, "/v1/usage/ceilings", ADMIN, NOTHING, "The ceilings of what agents spend, and what was spent today", ceilings)
            .response::<CeilingsView>(200),
        route(PUT, "/v1/usage/ceilings", ADMIN, JSON, "Set the ceilings of what agents spend, in place of those set before; they are remembered", set_ceilings)
            .request::<CeilingSettings>().response::<CeilingsView>(200).effect(Effect::RaiseCeiling),
    ]
}

/// The groupings, by their names in the query.
const GROUPINGS: [(&str, UsageBy); 5] = [
    ("day", UsageBy::Day),
    ("runtime", UsageBy::Runtime),
    ("project", UsageBy::Project),
    ("session", UsageBy::Session),
    ("run", UsageBy::Run),
];

const fn group(by: UsageBy) -> SpendGroup {
    match by {
        UsageBy::Day => SpendGroup::Day,
        UsageBy::Run => SpendGroup::Run,
        UsageBy::Runtime | UsageBy::Project | UsageBy::Session => SpendGroup::Session,
    }
}

/// The requested days, by the reader's clock, counted from the epoch.
#[derive(Debug, PartialEq, Eq)]
struct UsageQuery {
    by: UsageBy,
    first: i64,
    last: i64,
    offset: i64,
    limit: usize,
}

impl UsageQuery {
    fn from_parameters(query: &QueryParameters, now: Timestamp) -> Result<Self, Problem> {
        let by = query.get("by").unwrap_or("day");
        let by = GROUPINGS.iter().find(|(name, _)| *name == by).map(|(_, by)| *by);
        let by = by.ok_or_else(|| bad_query("`by` must be day, runtime, project, session or run".into()))?;
        let offset = query.number("utc_offset", 0_i64)?;
        if !(-OFFSET_MAX..=OFFSET_MAX).contains(&offset) || offset % OFFSET_STEP != 0 {
            let range = format!("-{OFFSET_MAX} to {OFFSET_MAX}, a multiple of {OFFSET_STEP}");
            return Err(bad_query(format!(
                "`utc_offset` must be minutes from {range}: how far your clock is ahead of UTC"
            )));
        }
        let day = |name: &str| -> Result<Option<i64>, Problem> {
            let Some(text) = query.get(name) else { return Ok(None) };
            let day = text.parse::<Date>().ok().filter(|day| day.to_string() == text);
            let day = day.ok_or_else(|| bad_query(format!("`{name}` must be a day: YYYY-MM-DD")))?;
            Ok(Some(days_since_epoch(day)))
        };
        let today = (now.as_millis() + offset * 60_000).div_euclid(DAY_MILLIS);
        let last = day("to")?.unwrap_or(today);
        let first = day("from")?.unwrap_or(last - DAYS + 1).max(last - DAYS_MAX + 1);
        Ok(Self { by, first, last, offset, limit: query.number("limit", ROWS)?.clamp(1, ROWS_MAX) })
    }

    /// Returns the beginning of a day.
    const fn begins(&self, day: i64) -> Timestamp {
        Timestamp::from_millis(day * DAY_MILLIS - self.offset * 60_000)
    }
}

fn days_since_epoch(day: Date) -> i64 {
    day.since((jiff::Unit::Day, date(1970, 1, 1))).map_or(0, |span| span.get_days().into())
}

/// Returns a day as text; far days, which no query names, are the epoch.
fn day_text(days: i64) -> String {
    let span = jiff::Span::new().try_days(days);
    let day = span.ok().and_then(|span| date(1970, 1, 1).checked_add(span).ok());
    day.unwrap_or(date(1970, 1, 1)).to_string()
}

/// Returns the root of the project that a session works in; its folder, while the project is not known.
fn project_root(session: &SessionInfo) -> String {
    session.project.as_ref().map_or_else(|| session.cwd.clone(), |project| project.root.clone())
}

async fn usage(state: Core, call: Call) -> RouteResult {
    let (query, caller) = (QueryParameters::from_call(&call), call.caller()?);
    let usage = UsageQuery::from_parameters(&query, std::time::SystemTime::now().into())?;
    let session = match query.get("session_id") {
        Some(id) => {
            let id: SessionId = id.parse().map_err(|_| no_such("session_not_found", "session"))?;
            Some(session_for::<Watch>(&state, caller, &id)?.0.session_id.clone())
        }
        None => None,
    };
    let (from, to) = (usage.begins(usage.first), usage.begins(usage.last + 1));
    let (by, offset_millis) = (group(usage.by), usage.offset * 60_000);
    let found = state.directory.spending(from, to, session, by, offset_millis).await?;
    let runtime = match query.get("runtime_id") {
        None => None,
        Some(id) => Some(id.parse::<RuntimeId>().map_err(|_| bad_query("`runtime_id` is not an identifier".into()))?),
    };
    let seen = found.into_iter().filter(|row| {
        caller.sees(&row.origin.session_id, &row.origin.runtime_id)
            && runtime.as_ref().is_none_or(|id| row.origin.runtime_id == *id)
    });
    let about = |id: &SessionId| state.directory.session(id);
    let (total, mut rows) =
        summed(usage.by, seen, |id| about(id).map(|session| (session.title.clone(), project_root(&session))));
    let truncated = rows.len() > usage.limit;
    rows.truncate(usage.limit);
    let known_since = state.directory.log().spending_since();
    let (from, to) = (day_text(usage.first), day_text(usage.last));
    json(
        StatusCode::OK,
        &UsageSums {
            by: usage.by,
            from,
            to,
            utc_offset: usage.offset,
            known_since,
            total,
            rows: rows.into(),
            truncated,
        },
    )
}

async fn ceilings(state: Core, call: Call) -> RouteResult {
    let permit = call.caller()?.permit::<Admin>(Target::Gateway)?;
    json(StatusCode::OK, &state.directory.ceilings().view(&permit, std::time::SystemTime::now().into()))
}

async fn set_ceilings(state: Core, call: Call) -> RouteResult {
    let settings: CeilingSettings = call.json()?;
    let permit = call.caller()?.permit::<Admin>(Target::Gateway)?;
    let now = std::time::SystemTime::now().into();
    json(StatusCode::OK, &state.directory.ceilings().set(&permit, settings, now).await?)
}

/// Sums rows of sessions, and sorts them. `about` returns a session's title and project.
fn summed(
    by: UsageBy,
    found: impl Iterator<Item = SpendRow>,
    about: impl Fn(&SessionId) -> Option<(Option<String>, String)>,
) -> (Spending, Vec<UsageRow>) {
    let (mut total, mut rows) = (Spending::default(), Vec::<UsageRow>::new());
    let mut indexes: HashMap<String, usize> = HashMap::new();
    for SpendRow { origin, run_id, day, at, spending } in found {
        total.add(&spending);
        let (session_id, runtime_id) = (origin.session_id.clone(), origin.runtime_id.clone());
        let (key, row) = match by {
            UsageBy::Day => {
                let day = day_text(day.unwrap_or_default());
                (day.clone(), UsageRow { day: Some(day), ..UsageRow::default() })
            }
            UsageBy::Runtime => {
                (runtime_id.to_string(), UsageRow { runtime_id: Some(runtime_id), ..UsageRow::default() })
            }
            UsageBy::Project => {
                let project = about(&session_id).map(|(_, project)| project).unwrap_or_default();
                (project.clone(), UsageRow { project: Some(project), ..UsageRow::default() })
            }
            UsageBy::Session | UsageBy::Run => {
                let (title, project) = about(&session_id).map_or((None, None), |(title, of)| (title, Some(of)));
                let key = format!("{session_id} {}", run_id.as_ref().map_or("", RunId::as_str));
                let (runtime_id, session_id) = (Some(runtime_id), Some(session_id));
                (key, UsageRow { project, runtime_id, session_id, title, run_id, ..UsageRow::default() })
            }
        };
        let index = *indexes.entry(key).or_insert_with(|| {
            rows.push(row);
            rows.len() - 1
        });
        rows[index].usage.add(&spending);
        rows[index].at = rows[index].at.max(at);
    }
    let cost = |row: &UsageRow| row.usage.costs.iter().map(|cost| cost.amount).fold(0.0, f64::max);
    match by {
        UsageBy::Day => rows.sort_by(|a, b| a.day.cmp(&b.day)),
        UsageBy::Run => rows.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.run_id.cmp(&b.run_id))),
        UsageBy::Runtime | UsageBy::Project | UsageBy::Session => rows.sort_by(|a, b| {
            let most = b.usage.tokens().cmp(&a.usage.tokens()).then_with(|| cost(b).total_cmp(&cost(a)));
            let name = |row: &UsageRow| (row.project.clone(), row.runtime_id.clone(), row.session_id.clone());
            most.then_with(|| name(a).cmp(&name(b)))
        }),
    }
    (total, rows)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plexus_protocol::{Money, Origin};

    use super::*;

    /// 2026-11-26, 02:30 by UTC.
    const NOW: Timestamp = Timestamp::from_millis(1_795_660_200_000);

    fn wanted(query: &str) -> Result<(UsageBy, String, String, i64, usize), u16> {
        let wanted = UsageQuery::from_parameters(&QueryParameters::parse(query), NOW)
            .map_err(|problem| problem.status.as_u16())?;
        Ok((wanted.by, day_text(wanted.first), day_text(wanted.last), wanted.offset, wanted.limit))
    }

    #[test]
    fn usage_queries_name_days_by_the_readers_clock() {
        let told = |by, from: &str, to: &str, offset, limit| Ok((by, from.to_owned(), to.to_owned(), offset, limit));
        for (query, expected) in [
            ("", told(UsageBy::Day, "2026-10-28", "2026-11-26", 0, ROWS)),
            // In New York it is still the day before.
            ("utc_offset=-300&by=run", told(UsageBy::Run, "2026-10-27", "2026-11-25", -300, ROWS)),
            ("utc_offset=345", told(UsageBy::Day, "2026-10-28", "2026-11-26", 345, ROWS)),
            ("from=2026-11-01&by=project&limit=7", told(UsageBy::Project, "2026-11-01", "2026-11-26", 0, 7)),
            ("to=2026-02-28&limit=0", told(UsageBy::Day, "2026-01-30", "2026-02-28", 0, 1)),
            ("from=0001-01-01&limit=999999", told(UsageBy::Day, "2016-11-19", "2026-11-26", 0, ROWS_MAX)),
            ("from=2027-01-01", told(UsageBy::Day, "2027-01-01", "2026-11-26", 0, ROWS)),
            ("from=2026-02-30", Err(400)),
            ("from=2026-2-3", Err(400)),
            ("from=20260203", Err(400)),
            ("to=today", Err(400)),
            ("by=week", Err(400)),
            ("utc_offset=7", Err(400)),
            ("utc_offset=855", Err(400)),
            ("utc_offset=9223372036854775807", Err(400)),
            ("limit=-1", Err(400)),
        ] {
            assert_eq!(wanted(query), expected, "{query}");
        }
        let berlin =
            UsageQuery::from_parameters(&QueryParameters::parse("from=2026-11-26&utc_offset=60"), NOW).unwrap();
        assert_eq!(berlin.begins(berlin.first).to_string(), "2026-11-25T23:00:00.000Z");
    }

    #[test]
    fn usage_is_added_up_by_every_name() {
        let row = |session: &str, runtime: &str, run: &str, day, quarter, input, cost: f64| {
            let (session_id, runtime_id) = (SessionId::trusted(session), RuntimeId::trusted(runtime));
            let mut spending = Spending::new([Some(input), None, None, None, None], vec![]);
            spending.costs.extend(Money::from_report(cost, "USD").filter(|_| cost > 0.0));
            SpendRow {
                origin: Arc::new(Origin { session_id, runtime_id, dialect: "acp".into() }),
                run_id: Some(RunId::trusted(run)),
                day: Some(day),
                at: Timestamp::from_millis(quarter),
                spending,
            }
        };
        let rows = [
            row("s_1", "gemini", "r_1", 20_000, 1, 10, 0.0),
            row("s_1", "gemini", "r_2", 20_001, 2, 20, 0.0),
            row("s_2", "gemini", "r_3", 20_001, 3, 40, 0.5),
            row("s_3", "codex", "r_4", 20_000, 4, 100, 0.25),
        ];
        let about = |id: &SessionId| match id.as_str() {
            "s_1" => Some((Some("One".to_owned()), "/a".to_owned())),
            "s_2" => Some((None, "/b".to_owned())),
            _ => Some((None, "/a".to_owned())),
        };
        let shown = |by| {
            let (total, rows) = summed(by, rows.iter().cloned(), about);
            assert_eq!((total.input_tokens, total.cost_in("USD")), (Some(170), Some(0.75)));
            let names = |row: &UsageRow| {
                let names = [
                    row.day.clone(),
                    row.project.clone(),
                    row.runtime_id.as_ref().map(ToString::to_string),
                    row.session_id.as_ref().map(ToString::to_string),
                    row.title.clone(),
                    row.run_id.as_ref().map(ToString::to_string),
                ];
                let names: Vec<String> = names.into_iter().flatten().collect();
                format!("{} {}", names.join(" "), row.usage.tokens())
            };
            rows.iter().map(names).collect::<Vec<_>>()
        };
        assert_eq!(shown(UsageBy::Day), ["2024-10-04 110", "2024-10-05 60"]);
        assert_eq!(shown(UsageBy::Runtime), ["codex 100", "gemini 70"]);
        assert_eq!(shown(UsageBy::Project), ["/a 130", "/b 40"]);
        assert_eq!(
            shown(UsageBy::Run),
            ["/a codex s_3 r_4 100", "/b gemini s_2 r_3 40", "/a gemini s_1 One r_2 20", "/a gemini s_1 One r_1 10"]
        );
        let of_session = rows.iter().cloned().map(|row| SpendRow { run_id: None, day: None, ..row });
        let (_, sessions) = summed(UsageBy::Session, of_session, about);
        let sums: Vec<u64> = sessions.iter().map(|row| row.usage.tokens()).collect();
        assert_eq!(sums, [100, 40, 30]);
    }
}
