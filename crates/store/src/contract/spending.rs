//! The contract of every store for spending.

use super::*;
use plexus_protocol::{MONEY_MAX, Money, TOKENS_MAX};

/// Returns the start of the given quarter of an hour, counted from a midnight.
fn quarter(nth: i64) -> Timestamp {
    Timestamp::from_millis(20_000 * DAY_MILLIS + nth * SPAN_MILLIS)
}

fn spent(of: u64, run: &str, at: Timestamp, spending: Spending) -> SpendChange {
    SpendChange { session_id: session(of), run_id: RunId::trusted(run), at, spending }
}

fn usd(amount: f64) -> Vec<Money> {
    Money::from_report(amount, "USD").into_iter().collect()
}

/// Returns the sums from one quarter of an hour up to another, each as text, sorted.
fn sums(
    store: &dyn Store,
    by: SpendGroup,
    span: std::ops::Range<i64>,
    session_number: Option<u64>,
    ahead: i64,
) -> Vec<String> {
    let session = session_number.map(session);
    let query = SpendQuery {
        from: quarter(span.start),
        to: quarter(span.end),
        session: session.as_ref(),
        by,
        offset_millis: ahead * SPAN_MILLIS,
    };
    let format_count = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    let row = |row: &SpendRow| {
        let run = row.run_id.as_ref().map_or("", RunId::as_str);
        let day = row.day.map_or(String::new(), |day| format!("day {}", day - 20_000));
        let at = (row.at.as_millis() - quarter(0).as_millis()) / SPAN_MILLIS;
        let costs: Vec<String> =
            row.spending.costs.iter().map(|cost| format!("{} {}", cost.amount, cost.currency)).collect();
        let counts = row.spending.counts().map(format_count).join(" ");
        format!("{} {run}{day} @{at} {counts} {}", row.origin.session_id, costs.join(" ")).trim_end().to_owned()
    };
    let mut rows: Vec<String> = store.spending(query).unwrap().iter().map(row).collect();
    rows.sort();
    rows
}

pub(super) fn store_sums_spending(store: &dyn Store) {
    assert!(store.spending_since().as_millis() > 1_700_000_000_000);
    assert!(sums(store, SpendGroup::Session, -9..999, None, 0).is_empty());
    commit(store, vec![]);
    let put = |spent| store.commit(&Batch { spent, ..Batch::default() });
    let tokens = |input, output| Spending::new([Some(input), Some(output), None, None, None], vec![]);
    put(vec![
        spent(1, "r_1", quarter(2), tokens(100, 10)),
        spent(1, "r_1", quarter(2).plus_millis(7), Spending::new([Some(1), None, Some(5), None, None], usd(0.25))),
        spent(1, "r_1", quarter(3), tokens(1000, 100)),
        spent(2, "r_9", quarter(4), Spending::money(Money::from_report(2.0, "EUR"))),
    ])
    .unwrap();
    put(vec![
        spent(1, "r_2", quarter(96), tokens(7, 7)),
        spent(1, "r_2", quarter(96), Spending::money(Money::from_report(0.5, "USD"))),
        spent(2, "r_9", quarter(4), Spending::new([None; 5], usd(1.0))),
    ])
    .unwrap();
    let all = |by| sums(store, by, 0..200, None, 0);
    assert_eq!(all(SpendGroup::Session), ["s_1  @96 1108 117 5 - - 0.75 USD", "s_2  @4 - - - - - 2 EUR 1 USD"]);
    assert_eq!(
        all(SpendGroup::Run),
        ["s_1 r_1 @3 1101 110 5 - - 0.25 USD", "s_1 r_2 @96 7 7 - - - 0.5 USD", "s_2 r_9 @4 - - - - - 2 EUR 1 USD"]
    );
    assert_eq!(
        all(SpendGroup::Day),
        [
            "s_1 day 0 @3 1101 110 5 - - 0.25 USD",
            "s_1 day 1 @96 7 7 - - - 0.5 USD",
            "s_2 day 0 @4 - - - - - 2 EUR 1 USD"
        ]
    );
    // With a clock that is behind by three quarters of an hour, the first half hour belongs to the previous day.
    assert_eq!(
        sums(store, SpendGroup::Day, 0..200, Some(1), -3),
        ["s_1 day -1 @2 101 10 5 - - 0.25 USD", "s_1 day 0 @96 1007 107 - - - 0.5 USD"]
    );
    assert_eq!(sums(store, SpendGroup::Session, 3..96, Some(1), 0), ["s_1  @3 1000 100 - - -"]);
    assert_eq!(sums(store, SpendGroup::Session, 0..200, Some(77), 0), [""; 0]);
    // A refused batch leaves the sums unchanged; trimmed events do, too.
    assert!(matches!(
        put(vec![spent(1, "r_1", quarter(3), tokens(1, 1)), spent(99, "r", quarter(3), tokens(1, 1))]),
        Err(StoreError::NoSession(_))
    ));
    commit(store, vec![event(1, 1), event(1, 2)]);
    store.trim(&[Trim { session_id: session(1), through: Position(2), base: None }]).unwrap();
    sweep(store);
    assert_eq!(all(SpendGroup::Session).len(), 2);
    assert!(store.mark_for_deletion(&session(1)).unwrap());
    assert_eq!(all(SpendGroup::Session), ["s_2  @4 - - - - - 2 EUR 1 USD"]);
    sweep(store);
    commit(store, vec![]);
    assert_eq!(sums(store, SpendGroup::Session, 0..200, Some(1), 0), [""; 0], "its name made again has spent nothing");
}

pub(super) fn store_sums_of_spending_are_bounded(store: &dyn Store) {
    commit(store, vec![]);
    let max = Spending::new([Some(TOKENS_MAX); 5], usd(MONEY_MAX));
    for nth in 0..20 {
        let batch = vec![
            spent(1, "r_1", quarter(nth % 4), max.clone()),
            spent(nth.cast_unsigned() % 9, "r_2", quarter(5), max.clone()),
        ];
        store.commit(&Batch { spent: batch, ..Batch::default() }).unwrap();
    }
    for by in [SpendGroup::Session, SpendGroup::Run, SpendGroup::Day] {
        let query = SpendQuery { from: quarter(0), to: quarter(9), session: None, by, offset_millis: 0 };
        assert!(store.spending(query).unwrap().iter().all(|row| row.spending == max));
    }
}
