//! `plexus cancel`.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use serde_json::json;

use crate::cli::client::Client;
use crate::cli::complete::session_ids;
use crate::cli::failure::CommandResult;
use crate::cli::output::{TITLE, line, print};

/// Cancel the running prompt of a session
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    session: String,
}

pub(crate) async fn run(args: CancelArgs) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let response = client.post(&format!("/v1/sessions/{session}/cancel"), &json!({}), "cancelling").await?;
    print(&format!("cancelling {}\n", line(response["run_id"].as_str().unwrap_or(session.as_str()), TITLE)))?;
    Ok(0)
}
