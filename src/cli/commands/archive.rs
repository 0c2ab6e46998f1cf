//! `plexus archive`: archives a session, or restores it.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use plexus_client::calls;
use plexus_protocol::api::sessions::EditSession;

use crate::cli::client::Client;
use crate::cli::complete::session_ids;
use crate::cli::failure::CommandResult;
use crate::cli::output::print;

/// Archive a session, or restore it
#[derive(Debug, Args)]
pub(crate) struct ArchiveArgs {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    session: String,
    /// Restore it
    #[arg(long)]
    undo: bool,
}

pub(crate) async fn run(args: ArchiveArgs) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let operation = if args.undo { "restoring the session" } else { "archiving" };
    let changes = EditSession { archived: Some(!args.undo), ..EditSession::default() };
    client.run(calls::edit_session(&session, &changes), operation).await?;
    print(&format!("{session} is {}\n", if args.undo { "restored" } else { "archived" }))?;
    Ok(0)
}
