//! `plexus ls --resumable` and `plexus resume`: conversations stored by a runtime.

use std::collections::HashSet;

use plexus_protocol::{RuntimeId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::client::{Client, choose};
use super::commands::{TITLE, age, print, print_json, table};
use super::term::{Paint, line};
use super::{CommandFailure, CommandResult, USAGE, args, run};

/// Most conversations listed; a runtime may have any number.
const LISTED: usize = 2000;

/// A conversation that a runtime could resume.
#[derive(Deserialize, Serialize)]
struct StoredConversation {
    native_id: String,
    title: Option<String>,
    cwd: Option<String>,
    updated_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
}

/// The conversations that a runtime could resume, in its own order, and whether there are more.
async fn stored_conversations(client: &Client, runtime: &RuntimeId) -> anyhow::Result<(Vec<StoredConversation>, bool)> {
    #[derive(Deserialize)]
    struct Page {
        resumable: Vec<StoredConversation>,
        next: Option<String>,
    }
    let (mut all, mut known, mut cursor) = (Vec::new(), HashSet::new(), String::new());
    // A page may have few conversations or none, so pages are counted too.
    for _ in 0..LISTED {
        let path = format!("/v1/runtimes/{runtime}/resumable?limit=1000&cursor={cursor}");
        let Page { resumable, next } = client.get(&path, "listing the conversations").await?;
        // A conversation that changed in the meantime comes twice.
        all.extend(resumable.into_iter().filter(|one: &StoredConversation| known.insert(one.native_id.clone())));
        match next {
            _ if all.len() > LISTED => break,
            Some(next) => cursor = next,
            None => return Ok((all, false)),
        }
    }
    all.truncate(LISTED);
    Ok((all, true))
}

fn named(runtime: &str) -> anyhow::Result<RuntimeId> {
    Ok(runtime.parse().map_err(|why| CommandFailure::new(USAGE, format!("runtime {}: {why}", line(runtime, 80))))?)
}

/// `plexus ls --resumable RUNTIME`.
pub(super) async fn list(runtime: &str, json: bool) -> CommandResult {
    let client = Client::find().await?;
    let runtime = named(runtime)?;
    let (all, more) = stored_conversations(&client, &runtime).await?;
    if json {
        print_json(&json!({ "resumable": all }))?;
        return Ok(0);
    }
    if all.is_empty() {
        print(&format!("{runtime} has no conversations that can be resumed\n"))?;
        return Ok(0);
    }
    let paint = Paint::stdout();
    let row = |one: &StoredConversation| {
        vec![
            line(&one.native_id, 200),
            one.updated_at.map_or_else(|| "-".into(), age),
            one.session_id.as_ref().map_or_else(|| "-".into(), ToString::to_string),
            line(one.cwd.as_deref().unwrap_or("-"), TITLE),
            line(one.title.as_deref().unwrap_or("-"), TITLE),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    print(&table(paint, &["CONVERSATION", "AGE", "SESSION", "FOLDER", "TITLE"], &rows))?;
    let more = if more { format!("only the first {LISTED} are shown\n") } else { String::new() };
    print(&paint.dim(&format!("{more}`plexus resume {runtime} CONVERSATION` resumes one\n")))?;
    Ok(0)
}

/// `plexus resume RUNTIME CONVERSATION`.
pub(super) async fn resume(args: args::Resume) -> CommandResult {
    let client = Client::find().await?;
    let runtime = named(&args.runtime)?;
    let cwd =
        match &args.cwd {
            Some(dir) => Some(dir.canonicalize().map_err(|why| {
                CommandFailure::plain(format!("--cwd {}: {why}; use an existing folder", dir.display()))
            })?),
            None => None,
        };
    let (all, more) = stored_conversations(&client, &runtime).await?;
    let fix = format!("`plexus ls --resumable {runtime}` lists them");
    let chosen = choose(all, &args.conversation, |one| &one.native_id, "conversation", &fix);
    let mut wanted = match chosen {
        Ok(stored_conversations) => {
            json!({ "runtime_id": runtime, "native_id": stored_conversations.native_id, "cwd": stored_conversations.cwd })
        }
        // The conversation may be one of those not listed.
        Err(_) if more => json!({ "runtime_id": runtime, "native_id": args.conversation }),
        Err(none) => return Err(none),
    };
    if let Some(cwd) = cwd {
        wanted["cwd"] = json!(cwd);
    }
    run::open(client, &wanted, args.prompt).await
}
