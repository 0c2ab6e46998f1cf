//! `plexus usage`: what agents spent, as a table.

use clap::{Args, ValueEnum};
use jiff::civil::Date;
use jiff::{ToSpan as _, Zoned};
use plexus_protocol::{Spending, short_amount, short_count};
use serde_json::Value;

use super::client::Client;
use super::commands::{TITLE, print, print_json, table};
use super::term::{Paint, line};
use super::{CommandFailure, CommandResult, USAGE};

/// Most days that `--since` goes back.
const DAYS_MAX: i64 = 3660;
/// The minutes that the gateway's days can be apart from UTC's by: a multiple of this.
const OFFSET_STEP: i64 = 15;

#[derive(Debug, Args)]
pub(crate) struct Usage {
    /// What each line is the sum of
    #[arg(long, value_enum, default_value = "runtime")]
    by: By,
    /// The first day: YYYY-MM-DD, `today`, or a number of days with today: 7d
    #[arg(long, value_name = "DAY", default_value = "30d", value_parser = first_day)]
    since: Date,
    /// Only of this session: an identifier, a prefix of one, or `last`
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only of this runtime
    #[arg(long, value_name = "RUNTIME")]
    runtime: Option<String>,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// A day
    Day,
    /// An agent
    Runtime,
    /// A project
    Project,
    /// A session
    Session,
    /// A run
    Run,
}

impl By {
    /// The name on the wire, the headings, and the members of a row under them.
    const fn columns(self) -> (&'static str, &'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Day => ("day", &["day"], &["day"]),
            Self::Runtime => ("runtime", &["agent"], &["runtime_id"]),
            Self::Project => ("project", &["project"], &["project"]),
            Self::Session => ("session", &["session", "agent", "title"], &["session_id", "runtime_id", "title"]),
            Self::Run => ("run", &["run", "session", "agent"], &["run_id", "session_id", "runtime_id"]),
        }
    }
}

/// The headings of what is counted.
const COUNTED: [&str; 4] = ["read", "of it cached", "written", "cost"];

fn first_day(text: &str) -> Result<Date, String> {
    let fix = "a day as YYYY-MM-DD, `today`, or a number of days such as 7d";
    let today = Zoned::now().date();
    let days = match text {
        "today" => Some(1),
        _ => text.strip_suffix('d').and_then(|days| days.parse::<i64>().ok()),
    };
    match days {
        Some(days) if (1..=DAYS_MAX).contains(&days) => {
            today.checked_sub((days - 1).days()).map_err(|why| why.to_string())
        }
        Some(_) => Err(format!("days are 1 to {DAYS_MAX}: {fix}")),
        None => text.parse().map_err(|_| format!("expected {fix}")),
    }
}

pub(crate) async fn usage(args: Usage) -> CommandResult {
    let client = Client::find().await?;
    let (by, heads, names) = args.by.columns();
    let offset = i64::from(Zoned::now().offset().seconds()) / 60 / OFFSET_STEP * OFFSET_STEP;
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("by", by).append_pair("from", &args.since.to_string());
    query.append_pair("utc_offset", &offset.to_string());
    if let Some(session) = &args.session {
        query.append_pair("session_id", client.session(session).await?.session_id.as_str());
    }
    if let Some(runtime) = &args.runtime {
        query.append_pair("runtime_id", runtime);
    }
    let sums: Value = client.get(&format!("/v1/usage?{}", query.finish()), "reading what was spent").await?;
    if args.json {
        print_json(&sums)?;
        return Ok(0);
    }
    print(&shown(&sums, heads, names, Paint::stdout())?)?;
    Ok(0)
}

/// The answer as a table, with its sum.
fn shown(sums: &Value, heads: &[&str], names: &[&str], paint: Paint) -> anyhow::Result<String> {
    let spending = |value: &Value| -> anyhow::Result<Spending> {
        serde_json::from_value(value.clone())
            .map_err(|why| CommandFailure::new(USAGE, format!("the gateway's answer could not be read: {why}")).into())
    };
    let field = |value: &Value, name: &str| line(value[name].as_str().unwrap_or_default(), TITLE);
    let rows = sums["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    let since = sums["known_since"].as_str().and_then(|at| at.get(..10)).unwrap_or_default();
    if rows.is_empty() {
        return Ok(format!(
            "nothing was told of what was spent from {} to {}\nPlexus counts what agents tell, since {since}; `docs/runtimes.md` says which agents \
             tell what\n",
            field(sums, "from"),
            field(sums, "to"),
        ));
    }
    let mut lines = Vec::with_capacity(rows.len() + 1);
    for row in rows {
        let cells = names.iter().map(|name| field(row, name));
        lines.push(cells.chain(counted(&spending(&row["usage"])?)).collect::<Vec<_>>());
    }
    if rows.len() > 1 {
        let mut names = vec![String::new(); names.len()];
        names[0] = "all".into();
        lines.push(names.into_iter().chain(counted(&spending(&sums["total"])?)).collect());
    }
    let heads: Vec<&str> = heads.iter().copied().chain(COUNTED).collect();
    let mut out = table(paint, &heads, &lines);
    if sums["truncated"] == true {
        out.push_str("more rows are left out: choose a later --since\n");
    }
    if sums["known_since"].as_str().and_then(|at| at.get(..10)) > sums["from"].as_str() {
        out.push_str(&paint.dim(&format!("counted since {since}\n")));
    }
    Ok(out)
}

/// The cells of what is counted; a figure that no agent told is a dash.
fn counted(spending: &Spending) -> [String; 4] {
    let told = |count: Option<u64>| count.map_or_else(|| "-".into(), short_count);
    let costs: Vec<String> = spending.costs.iter().map(|cost| money(cost.amount, &cost.currency)).collect();
    let cost = if costs.is_empty() { "-".into() } else { costs.join(" + ") };
    [told(spending.input_tokens), told(spending.cached_read_tokens), told(spending.output_tokens), cost]
}

/// An amount with its currency.
fn money(amount: f64, currency: &str) -> String {
    format!("{} {}", short_amount(amount), line(currency, 3))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_since_is_a_day_or_a_number_of_days() {
        let today = Zoned::now().date();
        assert_eq!(first_day("2026-11-01").unwrap().to_string(), "2026-11-01");
        assert!(first_day("today").unwrap() >= today && first_day("1d").unwrap() >= today);
        assert!(first_day("7d").unwrap() >= today.checked_sub(6.days()).unwrap());
        for bad in ["", "7", "0d", "-1d", "99999d", "yesterday", "2026-13-01"] {
            assert!(first_day(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn usage_table_shows_what_was_told_and_harmless_names() {
        let sums = json!({
            "from": "2026-11-20", "to": "2026-11-26", "known_since": "2026-11-01T00:00:00.000Z", "truncated": false,
            "total": { "input_tokens": 12_345, "output_tokens": 100, "costs": [{ "amount": 0.5, "currency": "USD" }, { "amount": 2.0, "currency": "EUR" }] },
            "rows": [
                { "runtime_id": "gemini", "usage": { "input_tokens": 12_345, "output_tokens": 100 } },
                { "runtime_id": "\u{1b}[31mevil", "usage": { "costs": [{ "amount": 0.5, "currency": "USD" }, { "amount": 2.0, "currency": "EUR" }] } },
            ],
        });
        let (_, heads, names) = By::Runtime.columns();
        let text = shown(&sums, heads, names, Paint::none()).unwrap();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(rows[0], ["agent", "read", "of it cached", "written", "cost"]);
        assert_eq!(rows[1], ["gemini", "12.3k", "-", "100", "-"]);
        assert_eq!(rows[2][1..], ["-", "-", "-", "0.5000 USD + 2.00 EUR"]);
        assert_eq!(rows[3], ["all", "12.3k", "-", "100", "0.5000 USD + 2.00 EUR"]);
        assert!(!text.contains('\u{1b}'), "{text}");
        let none = json!({ "from": "2026-11-20", "to": "2026-11-26", "known_since": "2026-11-01T00:00:00.000Z", "rows": [], "total": {} });
        assert!(shown(&none, heads, names, Paint::none()).unwrap().contains("since 2026-11-01"));
    }
}
