//! `plexus resume`: resumes a conversation that a runtime has stored.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use plexus_client::calls;
use plexus_protocol::api::sessions::NewSession;

use crate::cli::client::{Client, choose};
use crate::cli::complete::runtime_ids;
use crate::cli::conversations::{parse_runtime, stored_conversations};
use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::follow_session::follow_opened;

/// Resume a conversation that a runtime has stored, and follow it here; `plexus ls --resumable RUNTIME` lists them
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The runtime
    #[arg(add = ArgValueCandidates::new(runtime_ids))]
    runtime: String,
    /// The runtime's identifier of the conversation, or a unique prefix
    conversation: String,
    /// The folder to work in [default: the conversation's, or else the runtime's]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The next prompt; without a terminal, also the only one: exits when it is done (0) or failed (1)
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
}

pub(super) async fn run(args: ResumeArgs) -> CommandResult {
    let client = Client::find().await?;
    let runtime = parse_runtime(&args.runtime)?;
    let cwd = match &args.cwd {
        Some(dir) => Some(dir.canonicalize().map_err(|error| {
            CommandFailure::plain(format!("--cwd {}: {error}; use an existing folder", dir.display()))
        })?),
        None => None,
    };
    let (conversations, more) = stored_conversations(&client, &runtime).await?;
    let fix = format!("`plexus ls --resumable {runtime}` lists them");
    let conversation =
        choose(conversations.items, &args.conversation, |conversation| &conversation.native_id.0, "conversation", &fix);
    let (native_id, stored_cwd) = match conversation {
        Ok(stored) => (stored.native_id, stored.cwd),
        // The conversation may be one that was not listed.
        Err(_) if more => (args.conversation.as_str().into(), None),
        Err(error) => return Err(error),
    };
    let request = NewSession {
        runtime_id: Some(runtime),
        native_id: Some(native_id),
        cwd: cwd.map(|cwd| cwd.display().to_string()).or(stored_cwd),
        ..NewSession::default()
    };
    let session = client.run(calls::open_session(&request), "opening a session").await?;
    follow_opened(client, session, args.prompt).await
}
