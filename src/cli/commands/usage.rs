//! `plexus usage`: what agents spent, as a table.

use clap::{Args, Subcommand, ValueEnum};
use jiff::civil::Date;
use jiff::{ToSpan as _, Zoned};
use plexus_protocol::{Ceiling, Spending, short_amount, short_count};
use serde_json::{Value, json};

use crate::cli::client::Client;
use crate::cli::failure::{CommandFailure, CommandResult, USAGE};
use crate::cli::output::{Paint, TITLE, line, print, print_json, table};

/// Most days that `--since` goes back.
const DAYS_MAX: i64 = 3660;
/// The minutes that the gateway's days can be apart from UTC's by: a multiple of this.
const OFFSET_STEP: i64 = 15;

/// Show what agents spent: tokens and money, as far as they tell
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct UsageArgs {
    #[command(subcommand)]
    command: Option<UsageCommand>,
    /// What each line is the sum of
    #[arg(long, value_enum, default_value = "runtime")]
    by: By,
    /// The first day: YYYY-MM-DD, `today`, or a number of days with today: 7d
    #[arg(long, value_name = "DAY", default_value = "30d", value_parser = parse_first_day)]
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

#[derive(Debug, Subcommand)]
enum UsageCommand {
    /// Show or set the ceilings: what agents may spend before they ask
    Ceiling(CeilingArgs),
}

#[derive(Debug, Args)]
struct CeilingArgs {
    /// What it limits
    #[arg(value_enum)]
    of: Option<LimitOf>,
    /// An amount and its currency, or tokens: `5 USD`, `2M tokens`, `5 USD, 2M tokens`; `none` for no ceiling, `configured` for what the
    /// configuration file says. Without it the ceiling is shown
    #[arg(value_name = "AMOUNT", requires = "of")]
    amount: Vec<String>,
    /// Only of this session: an identifier, a prefix of one, or `last`
    #[arg(long, value_name = "SESSION", requires = "amount")]
    session: Option<String>,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LimitOf {
    /// What all sessions spend in a day
    Day,
    /// What each session spends
    Session,
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

/// The headings of the counted figures.
const COUNTED_HEADS: [&str; 4] = ["read", "of it cached", "written", "cost"];

fn parse_first_day(text: &str) -> Result<Date, String> {
    let fix = "a day as YYYY-MM-DD, `today`, or a number of days such as 7d";
    let today = Zoned::now().date();
    let days = match text {
        "today" => Some(1),
        _ => text.strip_suffix('d').and_then(|days| days.parse::<i64>().ok()),
    };
    match days {
        Some(days) if (1..=DAYS_MAX).contains(&days) => {
            today.checked_sub((days - 1).days()).map_err(|error| error.to_string())
        }
        Some(_) => Err(format!("days are 1 to {DAYS_MAX}: {fix}")),
        None => text.parse().map_err(|_| format!("expected {fix}")),
    }
}

pub(crate) async fn run(args: UsageArgs) -> CommandResult {
    if let Some(UsageCommand::Ceiling(args)) = args.command {
        return run_ceiling(args).await;
    }
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
    print(&format_usage(&sums, heads, names, Paint::stdout())?)?;
    Ok(0)
}

const CEILINGS: &str = "/v1/usage/ceilings";

/// Runs `plexus usage ceiling`.
async fn run_ceiling(args: CeilingArgs) -> CommandResult {
    let client = Client::find().await?;
    let mut ceilings: Value = client.get(CEILINGS, "reading the ceilings").await?;
    if let Some(of) = args.of.filter(|_| !args.amount.is_empty()) {
        let ceiling = parse_ceiling(&args.amount.join(" ")).map_err(|error| CommandFailure::new(USAGE, error))?;
        let mut set = ceilings["set"].clone();
        match (&args.session, of) {
            (Some(_), LimitOf::Day) => {
                let message = "--session goes with `plexus usage ceiling session`: a day's ceiling is of all sessions";
                return Err(CommandFailure::new(USAGE, message).into());
            }
            (Some(session), LimitOf::Session) => {
                let id = client.session(session).await?.session_id;
                set_member(&mut set["sessions"], id.as_str(), ceiling);
            }
            (None, LimitOf::Day) => set_member(&mut set, "day", ceiling),
            (None, LimitOf::Session) => set_member(&mut set, "session", ceiling),
        }
        if set["sessions"].is_null() {
            set["sessions"] = json!({});
        }
        ceilings = client.put(CEILINGS, &set, "setting the ceiling").await?;
    }
    if args.json {
        print_json(&ceilings)?;
        return Ok(0);
    }
    print(&format_ceilings(&ceilings, args.of)?)?;
    Ok(0)
}

/// Sets a member, or takes it out.
fn set_member(all: &mut Value, name: &str, value: Option<Ceiling>) {
    match value {
        Some(ceiling) => all[name] = json!(ceiling),
        None => drop(all.as_object_mut().and_then(|all| all.remove(name))),
    }
}

/// Parses a ceiling; `None`: as configured.
fn parse_ceiling(amount: &str) -> Result<Option<Ceiling>, String> {
    match amount {
        "none" => Ok(Some(Ceiling::default())),
        "configured" => Ok(None),
        amount => Ceiling::parse(amount).map(Some),
    }
}

/// The ceilings as lines, with the amounts that count towards them.
fn format_ceilings(all: &Value, of: Option<LimitOf>) -> anyhow::Result<String> {
    let read = |value: &Value| -> anyhow::Result<String> {
        let ceiling: Ceiling = serde_json::from_value(value.clone())
            .map_err(|error| CommandFailure::new(USAGE, format!("the gateway's answer could not be read: {error}")))?;
        let costs = ceiling.costs.iter().map(|cost| format_money(cost.amount, &cost.currency));
        let parts: Vec<String> =
            costs.chain(ceiling.tokens.map(|count| format!("{} tokens", short_count(count)))).collect();
        Ok(if parts.is_empty() { "none".into() } else { parts.join(", ") })
    };
    let mut out = String::new();
    if of != Some(LimitOf::Session) {
        let spent: Spending = serde_json::from_value(all["today"].clone())
            .map_err(|error| CommandFailure::new(USAGE, format!("the gateway's answer could not be read: {error}")))?;
        let costs = spent.costs.iter().map(|cost| format_money(cost.amount, &cost.currency));
        let spent: Vec<String> = costs.chain([format!("{} tokens", short_count(spent.tokens()))]).collect();
        out.push_str(&format!("a day: {} (today: {})\n", read(&all["day"])?, spent.join(", ")));
    }
    if of != Some(LimitOf::Day) {
        out.push_str(&format!("each session: {}\n", read(&all["session"])?));
        for (id, ceiling) in all["set"]["sessions"].as_object().into_iter().flatten() {
            out.push_str(&format!("session {}: {}\n", line(id, 40), read(ceiling)?));
        }
    }
    Ok(out)
}

/// The response as a table, with its sum.
fn format_usage(sums: &Value, heads: &[&str], names: &[&str], paint: Paint) -> anyhow::Result<String> {
    let spending = |value: &Value| -> anyhow::Result<Spending> {
        serde_json::from_value(value.clone()).map_err(|error| {
            CommandFailure::new(USAGE, format!("the gateway's answer could not be read: {error}")).into()
        })
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
        lines.push(cells.chain(counted_cells(&spending(&row["usage"])?)).collect::<Vec<_>>());
    }
    if rows.len() > 1 {
        let mut names = vec![String::new(); names.len()];
        names[0] = "all".into();
        lines.push(names.into_iter().chain(counted_cells(&spending(&sums["total"])?)).collect());
    }
    let heads: Vec<&str> = heads.iter().copied().chain(COUNTED_HEADS).collect();
    let mut out = table(paint, &heads, &lines);
    if sums["truncated"] == true {
        out.push_str("more rows are left out: choose a later --since\n");
    }
    if sums["known_since"].as_str().and_then(|at| at.get(..10)) > sums["from"].as_str() {
        out.push_str(&paint.dim(&format!("counted since {since}\n")));
    }
    Ok(out)
}

/// The cells of the counted figures; a figure that no agent reported is a dash.
fn counted_cells(spending: &Spending) -> [String; 4] {
    let format_count = |count: Option<u64>| count.map_or_else(|| "-".into(), short_count);
    let costs: Vec<String> = spending.costs.iter().map(|cost| format_money(cost.amount, &cost.currency)).collect();
    let cost = if costs.is_empty() { "-".into() } else { costs.join(" + ") };
    [
        format_count(spending.input_tokens),
        format_count(spending.cached_read_tokens),
        format_count(spending.output_tokens),
        cost,
    ]
}

/// An amount with its currency.
fn format_money(amount: f64, currency: &str) -> String {
    format!("{} {}", short_amount(amount), line(currency, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_ceilings_are_read_and_shown_as_people_write_them() {
        assert_eq!(parse_ceiling("none").unwrap(), Some(Ceiling::default()));
        assert_eq!(parse_ceiling("configured").unwrap(), None);
        assert!(parse_ceiling("five dollars").unwrap_err().contains("5 USD"));
        let mut set = json!({ "day": { "tokens": 5 } });
        set_member(&mut set, "session", parse_ceiling("5 USD").unwrap());
        set_member(&mut set, "day", None);
        assert_eq!(set, json!({ "session": { "costs": [{ "amount": 5.0, "currency": "USD" }] } }));
        let all = json!({
            "set": { "sessions": { "s_1": {} } }, "day": { "tokens": 2_000_000 }, "session": { "costs": [{ "amount": 5.0, "currency": "USD" }] },
            "today": { "input_tokens": 1000, "output_tokens": 500, "costs": [{ "amount": 0.5, "currency": "USD" }] },
        });
        assert_eq!(
            format_ceilings(&all, None).unwrap(),
            "a day: 2.00M tokens (today: 0.5000 USD, 1.50k tokens)\neach session: 5.00 USD\nsession s_1: none\n"
        );
        assert_eq!(format_ceilings(&all, Some(LimitOf::Session)).unwrap().lines().count(), 2);
    }

    #[test]
    fn usage_since_is_a_day_or_a_number_of_days() {
        let today = Zoned::now().date();
        assert_eq!(parse_first_day("2026-11-01").unwrap().to_string(), "2026-11-01");
        assert!(parse_first_day("today").unwrap() >= today && parse_first_day("1d").unwrap() >= today);
        assert!(parse_first_day("7d").unwrap() >= today.checked_sub(6.days()).unwrap());
        for bad in ["", "7", "0d", "-1d", "99999d", "yesterday", "2026-13-01"] {
            assert!(parse_first_day(bad).is_err(), "{bad}");
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
        let text = format_usage(&sums, heads, names, Paint::none()).unwrap();
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
        assert!(format_usage(&none, heads, names, Paint::none()).unwrap().contains("since 2026-11-01"));
    }
}
