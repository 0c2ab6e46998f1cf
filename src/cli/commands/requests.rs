//! `plexus requests`: lists requests and how to answer them.

use clap::Args;
use plexus_protocol::transcript::Outcome;
use plexus_protocol::{Request, RequestState};
use serde::Deserialize as _;

use crate::cli::card::{answer_commands, card};
use crate::cli::client::Client;
use crate::cli::failure::CommandResult;
use crate::cli::output::{Paint, age, notice_unreadable, print, print_json};
use crate::cli::requests::whole_request;
use crate::cli::view::outcome_text;

/// List pending requests
#[derive(Debug, Args)]
pub(crate) struct RequestsArgs {
    /// Include closed requests
    #[arg(long)]
    all: bool,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: RequestsArgs) -> CommandResult {
    let client = Client::find().await?;
    let mut requests = client.requests(args.all).await?;
    if args.json {
        for element in requests.elements() {
            if let Ok(request) = Request::deserialize(&*element)
                && request.display_truncated
            {
                *element = serde_json::from_str(&whole_request(&client, &request).await?.text)?;
            }
        }
        print_json(&requests.json)?;
        return Ok(0);
    }
    notice_unreadable(requests.unreadable, "request");
    let mut requests = requests.items;
    for request in requests.iter_mut().filter(|request| request.display_truncated) {
        *request = whole_request(&client, request).await?.value.into();
    }
    if requests.is_empty() {
        print("no pending requests\n")?;
        return Ok(0);
    }
    let paint = Paint::stdout();
    let mut out = String::new();
    for request in &requests {
        let since = age(request.opened_at);
        out.push_str(&paint.bold(&format!("{}  {}  {since}", request.request_id, request.session_id)));
        out.push('\n');
        out.push_str(&card(request, paint));
        if request.state == RequestState::Open && !request.observe_only {
            out.push_str(&answer_commands(request));
        }
        if let Some(receipt) = &request.receipt {
            out.push_str(&format!("  {}\n", outcome_text(Outcome::from_receipt(receipt))));
        }
    }
    print(&out)?;
    Ok(0)
}
