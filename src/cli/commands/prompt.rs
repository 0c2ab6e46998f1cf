//! `plexus prompt`: sends a prompt, and can follow its run.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use plexus_client::{ClientEvent, FollowStart};
use plexus_protocol::api::sessions::AcceptedPrompt;
use plexus_protocol::{Kind, RunBody, RunStatus};

use crate::cli::client::{Client, failure};
use crate::cli::complete::session_ids;
use crate::cli::failure::{CommandFailure, CommandResult, FAILURE};
use crate::cli::output::{Paint, notice, print, print_as_json, print_json_text};
use crate::cli::prompts::{prompt_text, send_prompt};
use crate::cli::view::View;

/// Send a prompt
#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// The session
    #[arg(add = ArgValueCandidates::new(session_ids))]
    session: String,
    /// The prompt; `-` reads it from stdin
    text: String,
    /// Follow until the run ends: exits 0 if it completed, 1 if not
    #[arg(long)]
    wait: bool,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: PromptArgs) -> CommandResult {
    let client = Client::find().await?;
    let session = client.session(&args.session).await?.session_id;
    let text = prompt_text(args.text)?;
    if !args.wait {
        let accepted = send_prompt(&client, &session, &text).await?;
        if args.json {
            print_json_text(&accepted.text)?;
        } else {
            let AcceptedPrompt { run_id, queued, .. } = accepted.value;
            print(&format!("{run_id}{}\n", if queued { " (queued)" } else { "" }))?;
        }
        return Ok(0);
    }
    // Follow first, so that no event of the run is missed.
    let mut events = client.follow(Some(&session), FollowStart::Now);
    let mut run = None;
    let mut view = View::new(Paint::stdout(), false);
    while let Some(next) = events.next().await {
        let mut out = String::new();
        let mut end = None;
        match next.map_err(|error| failure("following", &error))? {
            ClientEvent::Live if run.is_none() => run = Some(send_prompt(&client, &session, &text).await?.value.run_id),
            ClientEvent::Event(event) if run.as_ref() == Some(&event.envelope.run_id) => {
                if args.json {
                    print_as_json(event.raw.get().as_bytes())?;
                } else {
                    view.event(&event.envelope, &mut out);
                }
                if event.envelope.known_kind() == Some(Kind::RunEnded) {
                    let body: Option<RunBody> = event.envelope.body();
                    end = Some(body.is_some_and(|body| body.status == RunStatus::Completed));
                }
            }
            ClientEvent::Lost(reason) => notice(&format!("the connection was lost ({reason}); reconnecting")),
            _ => {}
        }
        print(&out)?;
        if let Some(completed) = end {
            return Ok(if completed { 0 } else { FAILURE });
        }
    }
    Err(CommandFailure::plain("the end of the run was not received"))
}
