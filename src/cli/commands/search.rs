//! `plexus search`: searches all sessions.

use clap::Args;
use plexus_client::calls;
use plexus_protocol::api::sessions::Hit;

use crate::cli::client::Client;
use crate::cli::failure::CommandResult;
use crate::cli::output::{Paint, line, print, print_json_text};

/// Search all sessions
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// The words to search for
    text: String,
    /// Maximum number of results
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: SearchArgs) -> CommandResult {
    let client = Client::find().await?;
    let call = calls::search(&args.text, Some(args.limit.into()));
    let response = client.request(call, "searching").await?;
    if args.json {
        print_json_text(&response.text)?;
        return Ok(0);
    }
    let paint = Paint::stdout();
    let mut out = String::new();
    for Hit { session_id, cursor, role, snippet } in &response.value.hits {
        let head = line(&format!("{session_id}  {cursor}  {role}"), 200);
        // The match is between two control characters, which become colour or nothing.
        let snippet: String = snippet
            .split('\u{2}')
            .enumerate()
            .map(|(n, part)| match part.split_once('\u{3}') {
                Some((matched, after)) if n > 0 => {
                    format!("{}{}", paint.yellow(&single_line(matched)), single_line(after))
                }
                _ => single_line(part),
            })
            .collect();
        out.push_str(&format!("{}\n  {snippet}\n", paint.dim(&head)));
    }
    if out.is_empty() {
        out.push_str("nothing found\n");
    }
    print(&out)?;
    Ok(0)
}

fn single_line(text: &str) -> String {
    line(text, usize::MAX)
}
