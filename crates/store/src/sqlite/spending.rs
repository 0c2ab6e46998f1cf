//! The sums of spending: rows by time span, session, run and currency. The tokens are in the row without a currency.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};

use super::{Failure, RunId, SqliteStore, Timestamp, count};
use crate::{DAY_MILLIS, SPAN_MILLIS, SpendChange, SpendGroup, SpendQuery, SpendRow, StoreError};
use plexus_protocol::{MONEY_MAX, Money, Spending, TOKENS_MAX};

/// The statement that adds to the sum in a row; an absent figure leaves it unchanged. Sums are limited to [`TOKENS_MAX`] and
/// [`MONEY_MAX`], so that no sum of rows overflows.
const ADD: &str = "
INSERT INTO spending (span, session_no, run_id, currency, input, output, cached_read, cached_write, reasoning, cost)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT DO UPDATE SET
    input = ifnull(min(ifnull(input, 0) + excluded.input, ?11), input),
    output = ifnull(min(ifnull(output, 0) + excluded.output, ?11), output),
    cached_read = ifnull(min(ifnull(cached_read, 0) + excluded.cached_read, ?11), cached_read),
    cached_write = ifnull(min(ifnull(cached_write, 0) + excluded.cached_write, ?11), cached_write),
    reasoning = ifnull(min(ifnull(reasoning, 0) + excluded.reasoning, ?11), reasoning),
    cost = ifnull(min(ifnull(cost, 0) + excluded.cost, ?12), cost)";

pub(super) fn add(connection: &Connection, session_no: i64, change: &SpendChange) -> Result<(), Failure> {
    let span = change.at.as_millis().div_euclid(SPAN_MILLIS);
    let max = signed(TOKENS_MAX);
    let mut add = connection.prepare_cached(ADD)?;
    let run_id = change.run_id.as_str();
    let counts = change.spending.counts();
    if counts.iter().any(Option::is_some) {
        let [input, output, read, write, reasoning] =
            counts.map(|count| count.map(|count| signed(count.min(TOKENS_MAX))));
        let none = None::<f64>;
        add.execute(params![
            span, session_no, run_id, "", input, output, read, write, reasoning, none, max, MONEY_MAX
        ])?;
    }
    for Money { amount, currency } in &change.spending.costs {
        let none = None::<i64>;
        add.execute(params![span, session_no, run_id, currency, none, none, none, none, none, amount, max, MONEY_MAX])?;
    }
    Ok(())
}

/// Removes some rows of a session; returns how many.
pub(super) fn remove(connection: &Connection, session_no: i64, max: usize) -> rusqlite::Result<usize> {
    connection
        .prepare_cached(
            "DELETE FROM spending WHERE (span, session_no, run_id, currency) IN (
                 SELECT span, session_no, run_id, currency FROM spending WHERE session_no = ?1 LIMIT ?2)",
        )?
        .execute(params![session_no, count(max)])
}

pub(super) fn since(connection: &Connection) -> rusqlite::Result<Timestamp> {
    connection.query_row("SELECT spending_since FROM meta", [], |row| Ok(Timestamp::from_millis(row.get(0)?)))
}

/// One row of the result, of one currency.
struct SpendingRow {
    session_no: i64,
    run_id: Option<RunId>,
    day: Option<i64>,
    span: i64,
    spending: Spending,
}

impl SpendingRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let count_in = |column| -> rusqlite::Result<Option<u64>> {
            Ok(row.get::<_, Option<i64>>(column)?.and_then(|count| u64::try_from(count).ok()))
        };
        let counts = [count_in(4)?, count_in(5)?, count_in(6)?, count_in(7)?, count_in(8)?];
        let cost = row.get::<_, Option<f64>>(9)?.unwrap_or(0.0);
        let currency = row.get_ref(10)?.as_str()?;
        let mut spending = Spending::default();
        // Sums of rows are limited like all sums.
        spending.add(&Spending::new(counts, Money::from_report(cost.min(MONEY_MAX), currency).into_iter().collect()));
        Ok(Self {
            session_no: row.get(0)?,
            run_id: row.get_ref(1)?.as_str_or_null()?.map(RunId::trusted),
            day: row.get(2)?,
            span: row.get(3)?,
            spending,
        })
    }
}

impl SqliteStore {
    pub(super) fn spending_rows(&self, query: SpendQuery<'_>) -> Result<Vec<SpendRow>, StoreError> {
        let session_no = match query.session {
            Some(session) => match self.known(session) {
                Some(known) => Some(known.no),
                None => return Ok(Vec::new()),
            },
            None => None,
        };
        let (run, day) = match query.by {
            SpendGroup::Session => ("NULL", "NULL"),
            SpendGroup::Run => ("run_id", "NULL"),
            SpendGroup::Day => ("NULL", "(span * ?4 + ?5) / ?6"),
        };
        let session_filter = if session_no.is_some() { "session_no = ?3" } else { "?3 IS NULL" };
        let sql = format!(
            "SELECT session_no, {run}, {day}, max(span), sum(input), sum(output), sum(cached_read), sum(cached_write),
                 sum(reasoning), sum(cost), currency
             FROM spending WHERE span >= ?1 AND span < ?2 AND {session_filter} AND ?4 + ?5 + ?6 IS NOT NULL
             GROUP BY 1, 2, 3, currency"
        );
        let found: Vec<SpendingRow> = self.reading(|connection| {
            let (from, to) =
                (query.from.as_millis().div_euclid(SPAN_MILLIS), query.to.as_millis().div_euclid(SPAN_MILLIS));
            let params = params![from, to, session_no, SPAN_MILLIS, query.offset_millis, DAY_MILLIS];
            connection.prepare_cached(&sql)?.query_map(params, SpendingRow::read)?.collect()
        })?;
        let index = self.index();
        let mut rows: Vec<SpendRow> = Vec::new();
        let mut indexes: HashMap<(i64, Option<RunId>, Option<i64>), usize> = HashMap::new();
        for SpendingRow { session_no, run_id, day, span, spending } in found {
            // A session that is being deleted has no spending.
            let Some(known) = index.session(session_no) else { continue };
            let at = Timestamp::from_millis(span.saturating_mul(SPAN_MILLIS));
            let row = *indexes.entry((session_no, run_id.clone(), day)).or_insert_with(|| {
                let origin = std::sync::Arc::clone(&known.origin);
                rows.push(SpendRow { origin, run_id, day, at, spending: Spending::default() });
                rows.len() - 1
            });
            rows[row].at = rows[row].at.max(at);
            rows[row].spending.add(&spending);
        }
        Ok(rows)
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
