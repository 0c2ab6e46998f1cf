//! `plexus ls`: lists sessions, runtimes and the conversations that can be resumed.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use plexus_protocol::api::sessions::ResumableConversation;
use plexus_protocol::{Project, SessionInfo, SessionState};

use crate::cli::client::Client;
use crate::cli::complete::runtime_ids;
use crate::cli::conversations::{LISTED_MAX, parse_runtime, stored_conversations};
use crate::cli::failure::CommandResult;
use crate::cli::output::{Paint, TITLE, age, line, notice_unreadable, print, print_json, table, wire_name};

/// Maximum length of a project in a list, in characters.
const PROJECT_MAX: usize = 40;

/// List sessions and runtimes
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// List archived sessions only
    #[arg(long)]
    archived: bool,
    /// List the conversations that this runtime has stored and can resume
    #[arg(long, value_name = "RUNTIME", conflicts_with = "archived", add = ArgValueCandidates::new(runtime_ids))]
    resumable: Option<String>,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: LsArgs) -> CommandResult {
    if let Some(runtime) = &args.resumable {
        return list_resumable(runtime, args.json).await;
    }
    let client = Client::find().await?;
    let mut sessions = client.list_sessions(if args.archived { "true" } else { "false" }).await?;
    let mut runtimes = client.list_runtimes().await?;
    if args.json {
        sessions.json.append(&mut runtimes.json);
        print_json(&sessions.json)?;
        return Ok(0);
    }
    notice_unreadable(sessions.unreadable, "session");
    notice_unreadable(runtimes.unreadable, "runtime");
    let (sessions, runtimes) = (sessions.items, runtimes.items);
    let paint = Paint::stdout();
    let mut out = String::new();
    if sessions.is_empty() {
        let message =
            if args.archived { "no archived sessions" } else { "no sessions yet: `plexus run demo` starts one" };
        out.push_str(message);
        out.push('\n');
    } else {
        let rows: Vec<Vec<String>> = sessions
            .iter()
            .map(|session| {
                vec![
                    session.session_id.to_string(),
                    session.runtime_id.to_string(),
                    state(session).into(),
                    age(session.updated_at),
                    session.open_requests.to_string(),
                    line(&project_label(session), PROJECT_MAX),
                    line(session.title.as_deref().unwrap_or(&session.cwd), TITLE),
                ]
            })
            .collect();
        out.push_str(&table(paint, &["SESSION", "RUNTIME", "STATE", "AGE", "REQUESTS", "PROJECT", "TITLE"], &rows));
    }
    if !runtimes.is_empty() {
        let rows: Vec<Vec<String>> = runtimes
            .iter()
            .map(|runtime| {
                let state = wire_name(runtime.state);
                let detail = runtime.problem.as_deref().or(runtime.agent.as_deref()).unwrap_or_default();
                vec![
                    runtime.runtime_id.to_string(),
                    line(&runtime.dialect, TITLE),
                    state,
                    runtime.pid.map_or_else(|| "-".into(), |pid| pid.to_string()),
                    line(detail, TITLE),
                ]
            })
            .collect();
        out.push('\n');
        out.push_str(&table(paint, &["RUNTIME", "DIALECT", "STATE", "PID", "AGENT"], &rows));
    }
    print(&out)?;
    Ok(0)
}

fn state(session: &SessionInfo) -> &'static str {
    match session.state {
        SessionState::Idle => "idle",
        SessionState::Running => "running",
        SessionState::Waiting => "waiting",
        SessionState::Exited => "exited",
        SessionState::Unknown => "unknown",
    }
}

/// The project of a session: `plexus@main`, `plexus/login@login-form` in the worktree `login`, or the last part of its folder.
fn project_label(session: &SessionInfo) -> String {
    let Some(Project { name, branch, worktree, .. }) = &session.project else {
        let folder = session.cwd.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        return folder.to_owned();
    };
    let worktree = worktree.as_ref().map(|worktree| format!("/{worktree}")).unwrap_or_default();
    let branch = branch.as_ref().map(|branch| format!("@{branch}")).unwrap_or_default();
    format!("{name}{worktree}{branch}")
}

/// Lists the conversations that a runtime can resume.
async fn list_resumable(runtime: &str, json: bool) -> CommandResult {
    let client = Client::find().await?;
    let runtime = parse_runtime(runtime)?;
    let (conversations, more) = stored_conversations(&client, &runtime).await?;
    if json {
        print_json(&conversations.json)?;
        return Ok(0);
    }
    notice_unreadable(conversations.unreadable, "conversation");
    let conversations = conversations.items;
    if conversations.is_empty() {
        print(&format!("{runtime} has no conversations that can be resumed\n"))?;
        return Ok(0);
    }
    let paint = Paint::stdout();
    let row = |conversation: &ResumableConversation| {
        vec![
            line(&conversation.native_id.0, 200),
            conversation.updated_at.map_or_else(|| "-".into(), age),
            conversation.session_id.as_ref().map_or_else(|| "-".into(), ToString::to_string),
            line(conversation.cwd.as_deref().unwrap_or("-"), TITLE),
            line(conversation.title.as_deref().unwrap_or("-"), TITLE),
        ]
    };
    let rows: Vec<Vec<String>> = conversations.iter().map(row).collect();
    print(&table(paint, &["CONVERSATION", "AGE", "SESSION", "FOLDER", "TITLE"], &rows))?;
    let more = if more { format!("only the first {LISTED_MAX} are shown\n") } else { String::new() };
    print(&paint.dim(&format!("{more}`plexus resume {runtime} CONVERSATION` resumes one\n")))?;
    Ok(0)
}
