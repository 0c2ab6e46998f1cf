//! `plexus cancel`: cancels the running prompt of a session.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use plexus_client::calls;
use plexus_protocol::api::sessions::CancelRun;

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
    let run = client.run(calls::cancel(&session, &CancelRun::default()), "cancelling").await?;
    print(&format!("cancelling {}\n", line(run.run_id.as_str(), TITLE)))?;
    Ok(0)
}
