//! `plexus usage`: the usage of agents, as a table.

use clap::{Args, Subcommand, ValueEnum};
use jiff::civil::Date;
use jiff::{ToSpan as _, ZonedDateTime};
use plexus_client::calls;
use plexus_protocol::api::usage::{CeilingsView, UsageBy, UsageRow, UsageSums};
use plexus_protocol::{Ceiling, RunId, RuntimeId, SessionId, Spending, short_amount, short_count};

use crate::cli::client::Client;
use crate::cli::failure::{CommandFailure, CommandResult, USAGE};
use crate::cli::output::{Paint, TITLE, line, notice_unreadable, print, print_json_text, table};

/// Maximum number of days that `--since` goes back.
const DAYS_MAX: i64 = 3660;
/// Step of the time zone's offset from UTC that the gateway accepts, in minutes.
const OFFSET_STEP: i64 = 15;

/// Show the usage of agents: tokens and money, as far as they report it
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct UsageArgs {
    #[command(subcommand)]
    command: Option<UsageCommand>,
    /// The unit that each line sums up
    #[arg(long, value_enum, default_value = "runtime")]
    by: By,
    /// The first day: YYYY-MM-DD, `today`, or a number of days including today: 7d
    #[arg(long, value_name = "DAY", default_value = "30d", value_parser = parse_first_day)]
    since: Date,
    /// Show only this session: an identifier, a prefix of one, or `last`
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Show only this runtime
    #[arg(long, value_name = "RUNTIME")]
    runtime: Option<String>,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum UsageCommand {
    /// Show or set the ceilings: the usage after which agents have to ask
    Ceiling(CeilingArgs),
}

#[derive(Debug, Args)]
struct CeilingArgs {
    /// The ceiling to show or set
    #[arg(value_enum, value_name = "OF")]
    kind: Option<CeilingKind>,
    /// An amount and its currency, or tokens: `5 USD`, `2M tokens`, `5 USD, 2M tokens`; `none` for no ceiling, `configured` for that of the
    /// configuration file. Without an amount, the ceiling is shown
    #[arg(value_name = "AMOUNT", requires = "kind")]
    amount: Vec<String>,
    /// Limit only this session: an identifier, a prefix of one, or `last`
    #[arg(long, value_name = "SESSION", requires = "amount")]
    session: Option<String>,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CeilingKind {
    /// The usage of all sessions per day
    Day,
    /// The usage of each session
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
    /// The grouping on the wire, and the headings of the names.
    const fn columns(self) -> (UsageBy, &'static [&'static str]) {
        match self {
            Self::Day => (UsageBy::Day, &["day"]),
            Self::Runtime => (UsageBy::Runtime, &["agent"]),
            Self::Project => (UsageBy::Project, &["project"]),
            Self::Session => (UsageBy::Session, &["session", "agent", "title"]),
            Self::Run => (UsageBy::Run, &["run", "session", "agent"]),
        }
    }

    /// The names of a row, under the headings.
    fn names(self, row: &UsageRow) -> Vec<String> {
        let text = |text: Option<&str>| line(text.unwrap_or_default(), TITLE);
        let runtime = text(row.runtime_id.as_ref().map(RuntimeId::as_str));
        let session = text(row.session_id.as_ref().map(SessionId::as_str));
        match self {
            Self::Day => vec![text(row.day.as_deref())],
            Self::Runtime => vec![runtime],
            Self::Project => vec![text(row.project.as_deref())],
            Self::Session => vec![session, runtime, text(row.title.as_deref())],
            Self::Run => vec![text(row.run_id.as_ref().map(RunId::as_str)), session, runtime],
        }
    }
}

/// The headings of the counted figures.
const COUNTED_HEADS: [&str; 4] = ["read", "of it cached", "written", "cost"];

fn parse_first_day(text: &str) -> Result<Date, String> {
    let fix = "a day as YYYY-MM-DD, `today`, or a number of days such as 7d";
    let today = ZonedDateTime::now().date();
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
    let offset = i64::from(ZonedDateTime::now().offset().seconds()) / 60 / OFFSET_STEP * OFFSET_STEP;
    let session = match &args.session {
        Some(session) => Some(client.session(session).await?.session_id),
        None => None,
    };
    let runtime = args.runtime.as_deref().map(RuntimeId::trusted);
    let (by, _) = args.by.columns();
    let call = calls::usage(by, Some(&args.since.to_string()), None, offset, None);
    let call = call.in_session(session.as_ref()).in_runtime(runtime.as_ref());
    let sums = client.request(call, "reading what was spent").await?;
    if args.json {
        print_json_text(&sums.text)?;
        return Ok(0);
    }
    notice_unreadable(sums.value.rows.unreadable(), "row");
    print(&format_usage(&sums.value, args.by, Paint::stdout()))?;
    Ok(0)
}

/// Runs `plexus usage ceiling`.
async fn run_ceiling(args: CeilingArgs) -> CommandResult {
    let client = Client::find().await?;
    let mut ceilings = client.request(calls::ceilings(), "reading the ceilings").await?;
    if let Some(kind) = args.kind.filter(|_| !args.amount.is_empty()) {
        let ceiling = parse_ceiling(&args.amount.join(" ")).map_err(|error| CommandFailure::new(USAGE, error))?;
        let mut settings = ceilings.value.set;
        match (&args.session, kind) {
            (Some(_), CeilingKind::Day) => {
                let message = "--session goes with `plexus usage ceiling session`: a day's ceiling is of all sessions";
                return Err(CommandFailure::new(USAGE, message).into());
            }
            (Some(session), CeilingKind::Session) => {
                let id = client.session(session).await?.session_id;
                match ceiling {
                    Some(ceiling) => drop(settings.sessions.insert(id, ceiling)),
                    None => drop(settings.sessions.remove(&id)),
                }
            }
            (None, CeilingKind::Day) => settings.day = ceiling,
            (None, CeilingKind::Session) => settings.session = ceiling,
        }
        ceilings = client.request(calls::set_ceilings(&settings), "setting the ceiling").await?;
    }
    if args.json {
        print_json_text(&ceilings.text)?;
        return Ok(0);
    }
    print(&format_ceilings(&ceilings.value, args.kind))?;
    Ok(0)
}

/// Parses a ceiling; `None` for that of the configuration.
fn parse_ceiling(amount: &str) -> Result<Option<Ceiling>, String> {
    match amount {
        "none" => Ok(Some(Ceiling::default())),
        "configured" => Ok(None),
        amount => Ceiling::parse(amount).map(Some),
    }
}

/// Formats the ceilings as lines, with the amounts that count towards them.
fn format_ceilings(all: &CeilingsView, kind: Option<CeilingKind>) -> String {
    let format_ceiling = |ceiling: &Ceiling| {
        let costs = ceiling.costs.iter().map(|cost| format_money(cost.amount, &cost.currency));
        let parts: Vec<String> =
            costs.chain(ceiling.tokens.map(|count| format!("{} tokens", short_count(count)))).collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    };
    let mut out = String::new();
    if kind != Some(CeilingKind::Session) {
        let costs = all.today.costs.iter().map(|cost| format_money(cost.amount, &cost.currency));
        let today: Vec<String> = costs.chain([format!("{} tokens", short_count(all.today.tokens()))]).collect();
        out.push_str(&format!("a day: {} (today: {})\n", format_ceiling(&all.day), today.join(", ")));
    }
    if kind != Some(CeilingKind::Day) {
        out.push_str(&format!("each session: {}\n", format_ceiling(&all.session)));
        for (id, ceiling) in &all.set.sessions {
            out.push_str(&format!("session {}: {}\n", line(id.as_str(), 40), format_ceiling(ceiling)));
        }
    }
    out
}

/// Formats the response as a table, with its sum.
fn format_usage(sums: &UsageSums, by: By, paint: Paint) -> String {
    let known_since = sums.known_since.to_string();
    let since = known_since.get(..10).unwrap_or_default();
    if sums.rows.is_empty() {
        return format!(
            "no usage was reported from {} to {}\nPlexus sums up what agents report, since {since}; `docs/runtimes.md` lists what \
             each agent reports\n",
            line(&sums.from, TITLE),
            line(&sums.to, TITLE),
        );
    }
    let (_, heads) = by.columns();
    let cells = |row: &UsageRow| by.names(row).into_iter().chain(counted_cells(&row.usage)).collect::<Vec<_>>();
    let mut lines: Vec<Vec<String>> = sums.rows.iter().map(cells).collect();
    if lines.len() > 1 {
        let mut names = vec![String::new(); heads.len()];
        names[0] = "all".into();
        lines.push(names.into_iter().chain(counted_cells(&sums.total)).collect());
    }
    let heads: Vec<&str> = heads.iter().copied().chain(COUNTED_HEADS).collect();
    let mut out = table(paint, &heads, &lines);
    if sums.truncated {
        out.push_str("more rows are left out: choose a later --since\n");
    }
    if since > sums.from.as_str() {
        out.push_str(&paint.dim(&format!("counted since {since}\n")));
    }
    out
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

/// Formats an amount with its currency.
fn format_money(amount: f64, currency: &str) -> String {
    format!("{} {}", short_amount(amount), line(currency, 3))
}

#[cfg(test)]
mod tests {
    use plexus_protocol::api::KnownItems;
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_ceilings_are_read_and_shown_as_people_write_them() {
        assert_eq!(parse_ceiling("none").unwrap(), Some(Ceiling::default()));
        assert_eq!(parse_ceiling("configured").unwrap(), None);
        assert!(parse_ceiling("five dollars").unwrap_err().contains("5 USD"));
        let none = Ceiling::default();
        let all = json!({
            "set": { "sessions": { "s_1": {} } }, "day": { "tokens": 2_000_000 }, "session": { "costs": [{ "amount": 5.0, "currency": "USD" }] },
            "today": { "input_tokens": 1000, "output_tokens": 500, "costs": [{ "amount": 0.5, "currency": "USD" }] },
            "configured": { "day": none, "session": none }, "allowed": {}, "day_ends": "2026-11-27T00:00:00Z",
        });
        let all: CeilingsView = serde_json::from_value(all).unwrap();
        assert_eq!(
            format_ceilings(&all, None),
            "a day: 2.00M tokens (today: 0.5000 USD, 1.50k tokens)\neach session: 5.00 USD\nsession s_1: none\n"
        );
        assert_eq!(format_ceilings(&all, Some(CeilingKind::Session)).lines().count(), 2);
    }

    #[test]
    fn usage_since_is_a_day_or_a_number_of_days() {
        let today = ZonedDateTime::now().date();
        assert_eq!(parse_first_day("2026-11-01").unwrap().to_string(), "2026-11-01");
        assert!(parse_first_day("today").unwrap() >= today && parse_first_day("1d").unwrap() >= today);
        assert!(parse_first_day("7d").unwrap() >= today.checked_sub(6.days()).unwrap());
        for bad in ["", "7", "0d", "-1d", "99999d", "yesterday", "2026-13-01"] {
            assert!(parse_first_day(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn usage_table_shows_what_was_told_and_harmless_names() {
        let read = |sums| serde_json::from_value::<UsageSums>(sums).unwrap();
        let mut sums = read(json!({
            "by": "runtime", "utc_offset": 0, "from": "2026-11-20", "to": "2026-11-26", "known_since": "2026-11-01T00:00:00.000Z", "truncated": false,
            "total": { "input_tokens": 12_345, "output_tokens": 100, "costs": [{ "amount": 0.5, "currency": "USD" }, { "amount": 2.0, "currency": "EUR" }] },
            "rows": [
                { "runtime_id": "gemini", "at": "2026-11-26T00:00:00Z", "usage": { "input_tokens": 12_345, "output_tokens": 100 } },
                { "at": "2026-11-26T00:00:00Z", "usage": { "costs": [{ "amount": 0.5, "currency": "USD" }, { "amount": 2.0, "currency": "EUR" }] } },
            ],
        }));
        sums.rows[1].runtime_id = Some(RuntimeId::trusted("\u{1b}[31mevil"));
        let text = format_usage(&sums, By::Runtime, Paint::none());
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(rows[0], ["agent", "read", "of it cached", "written", "cost"]);
        assert_eq!(rows[1], ["gemini", "12.3k", "-", "100", "-"]);
        assert_eq!(rows[2][1..], ["-", "-", "-", "0.5000 USD + 2.00 EUR"]);
        assert_eq!(rows[3], ["all", "12.3k", "-", "100", "0.5000 USD + 2.00 EUR"]);
        assert!(!text.contains('\u{1b}'), "{text}");
        let none = UsageSums { rows: KnownItems::default(), ..sums };
        assert!(format_usage(&none, By::Runtime, Paint::none()).contains("since 2026-11-01"));
    }
}
