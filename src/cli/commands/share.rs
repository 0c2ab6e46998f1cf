//! `plexus share`: creates a read-only link to a session.

use std::io::Write as _;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use plexus_client::calls;
use plexus_protocol::api::devices::{NewShare, Share};

use crate::cli::client::Client;
use crate::cli::complete::session_ids;
use crate::cli::failure::CommandResult;
use crate::cli::output::{TITLE, line, print, print_json_text};

/// Maximum length of a link, in characters.
const URL_MAX: usize = 500;

/// Create a read-only link to one session
#[derive(Debug, Args)]
pub(crate) struct ShareArgs {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    session: String,
    /// Hours until the link expires: 1 to 720
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    hours: u32,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: ShareArgs) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let share = NewShare { hours: Some(args.hours.into()) };
    let link = client.request(calls::share(&session, &share), "making a link").await?;
    if args.json {
        print_json_text(&link.text)?;
        return Ok(0);
    }
    let Share { url, device_id, .. } = &link.value;
    print(&format!("{}\n", line(url, URL_MAX)))?;
    // On stderr, so that `plexus share last | wl-copy` copies only the link.
    let _ = writeln!(
        std::io::stderr(),
        "anyone with this link can watch the session for {} h, but not act in it; revoke it with `plexus devices \
         revoke {}`",
        args.hours,
        line(device_id.as_str(), TITLE)
    );
    Ok(0)
}
