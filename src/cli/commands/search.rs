//! `plexus search`: searches all sessions.

use clap::Args;
use serde_json::Value;

use crate::cli::client::Client;
use crate::cli::failure::CommandResult;
use crate::cli::output::{Paint, line, print, print_json};

/// Search all sessions
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// The words to search for
    text: String,
    /// The most results to print
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: SearchArgs) -> CommandResult {
    let client = Client::find().await?;
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("q", &args.text)
        .append_pair("limit", &args.limit.to_string())
        .finish();
    let response: Value = client.get(&format!("/v1/search?{query}"), "searching").await?;
    if args.json {
        print_json(&response)?;
        return Ok(0);
    }
    let paint = Paint::stdout();
    let mut out = String::new();
    for hit in response["hits"].as_array().into_iter().flatten() {
        let field = |name: &str| hit[name].as_str().unwrap_or_default();
        let head = line(&format!("{}  {}  {}", field("session_id"), field("cursor"), field("role")), 200);
        // The match is between two control characters, which become colour or nothing.
        let snippet: String = field("snippet")
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
