//! `plexus tail`: prints events.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use plexus_client::{ClientEvent, FollowStart, calls};
use plexus_protocol::SessionId;
use plexus_protocol::api::history::{PageEnd, ResumeVerdict};

use crate::cli::client::{Client, failure};
use crate::cli::complete::session_ids;
use crate::cli::failure::{CommandFailure, CommandResult};
use crate::cli::output::{Paint, notice, print, print_as_json};
use crate::cli::view::View;

/// Maximum number of items in one page of history; merged events are one item.
const PAGE_ITEMS: usize = 1000;

/// Follow the events of one session or of all
#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    /// The session [default: all]
    #[arg(add = ArgValueCandidates::new(session_ids))]
    session: Option<String>,
    /// Output JSON, one event per line
    #[arg(long)]
    json: bool,
    /// Start after this cursor, or `now` [default: the oldest stored event]
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Stop at the end instead of waiting for more
    #[arg(long)]
    no_follow: bool,
}

pub(crate) async fn run(args: TailArgs) -> CommandResult {
    let client = Client::find().await?;
    let session = match &args.session {
        Some(name) => Some(client.session(name).await?.session_id),
        None => None,
    };
    let start = match args.after.as_deref() {
        None | Some("" | "start") => FollowStart::Start,
        Some("now") => FollowStart::Now,
        Some(cursor) => {
            cursor
                .parse::<plexus_protocol::Cursor>()
                .map_err(|error| CommandFailure::plain(format!("--after: {error}")))?;
            FollowStart::After(cursor.into())
        }
    };
    let mut view = View::new(Paint::stdout(), session.is_none());
    let start = if args.json { start } else { print_history(&client, session.as_ref(), start, &mut view).await? };
    let mut events = client.follow(session.as_ref(), start);
    while let Some(next) = events.next().await {
        let mut out = String::new();
        match next.map_err(|error| failure("following", &error))? {
            ClientEvent::Event(event) if args.json => print_as_json(event.raw.get().as_bytes())?,
            ClientEvent::Event(event) => view.event(&event.envelope, &mut out),
            ClientEvent::Hello(hello) => match hello.resume {
                ResumeVerdict::Ok => {}
                ResumeVerdict::Gap => {
                    notice("some events after that cursor are no longer stored; the events after the gap follow")
                }
                other => notice(&format!(
                    "that cursor does not belong to this log ({}); starting from a snapshot",
                    other.as_str()
                )),
            },
            ClientEvent::Snapshot(snapshots) if !args.json => view.snapshot(&snapshots, &mut out),
            ClientEvent::Live if args.no_follow => {
                view.end_line(&mut out);
                print(&out)?;
                return Ok(0);
            }
            ClientEvent::Lost(reason) => notice(&format!("the connection was lost ({reason}); reconnecting")),
            ClientEvent::Snapshot(_)
            | ClientEvent::Older
            | ClientEvent::Live
            | ClientEvent::Session(_)
            | ClientEvent::SessionDeleted(_)
            | ClientEvent::Runtime(_)
            | ClientEvent::RuntimeRemoved(_)
            | ClientEvent::Presence(_) => {}
        }
        if !out.is_empty() {
            print(&out)?;
        }
    }
    Ok(0)
}

/// Prints the history page by page, merged, and returns the cursor to follow from. If the log cannot resume there, the follow reports the
/// reason.
async fn print_history(
    client: &Client,
    session: Option<&SessionId>,
    start: FollowStart,
    view: &mut View,
) -> anyhow::Result<FollowStart> {
    let mut after = match &start {
        FollowStart::Start => String::new(),
        FollowStart::After(cursor) => cursor.clone(),
        FollowStart::Now | FollowStart::Latest { .. } => return Ok(start),
    };
    loop {
        let call = calls::merged_events(session, &after, PAGE_ITEMS);
        let page = client.run(call, "reading the earlier events").await?;
        let PageEnd { next, resume, .. } = page.end;
        if resume != ResumeVerdict::Ok {
            return Ok(if after.is_empty() { start } else { FollowStart::After(after) });
        }
        let mut out = String::new();
        let is_last = page.events.is_empty() && page.events.unreadable() == 0;
        page.events.iter().for_each(|envelope| view.event(envelope, &mut out));
        print(&out)?;
        if is_last {
            return Ok(FollowStart::After(next));
        }
        after = next;
    }
}
