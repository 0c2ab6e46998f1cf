//! `plexus rename`.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use serde_json::json;

use crate::cli::client::Client;
use crate::cli::complete::session_ids;
use crate::cli::failure::CommandResult;
use crate::cli::output::{TITLE, line, print};

/// Rename a session
#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    session: String,
    /// The title
    title: String,
}

pub(crate) async fn run(args: RenameArgs) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let session_info =
        client.patch(&format!("/v1/sessions/{session}"), &json!({ "title": args.title }), "renaming").await?;
    print(&format!("{session} is now {}\n", line(session_info["title"].as_str().unwrap_or_default(), TITLE)))?;
    Ok(0)
}
