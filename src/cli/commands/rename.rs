//! `plexus rename`: renames a session.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use plexus_client::calls;
use plexus_protocol::api::sessions::EditSession;

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
    /// The new title
    title: String,
}

pub(crate) async fn run(args: RenameArgs) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let changes = EditSession { title: Some(args.title), ..EditSession::default() };
    let renamed = client.run(calls::edit_session(&session, &changes), "renaming").await?;
    print(&format!("{session} is now {}\n", line(renamed.title.as_deref().unwrap_or_default(), TITLE)))?;
    Ok(0)
}
