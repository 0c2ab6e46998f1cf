//! `plexus new`: opens a session that works on its own; starts its agent if necessary.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use plexus::config::nearest;
use plexus::runtimes::presets;
use plexus_client::calls;
use plexus_protocol::api::sessions::NewSession;
use plexus_protocol::api::worktrees::NewWorktree;
use plexus_protocol::{RuntimeId, RuntimeInfo, RuntimeState, SessionId, SessionInfo};
use serde_json::{Map, Value, json};

use crate::cli::agent_start::{AGENT_START, POLL_EVERY, keep_if_opened, preset_start};
use crate::cli::client::{Client, Refused, Response, failure};
use crate::cli::conversations::{newest, stored_conversations};
use crate::cli::failure::{CommandFailure, CommandResult, USAGE};
use crate::cli::gateway_start::running_or_started;
use crate::cli::output::{Paint, line, print, print_json};
use crate::cli::prompts::{prompt_text, send_prompt};

/// Maximum length of a line of a failed program's output, in characters.
const STDERR_LINE: usize = 300;
/// Maximum number of lines of a failed program's output: the last ones are shown.
const STDERR_LINES: usize = 12;

/// Open a session with a prompt and let it work; starts the agent, and a gateway, if necessary
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// A known agent, or a runtime that is running [default: one that is running]
    agent: Option<String>,
    /// The folder to work in [default: the current one]
    #[arg(long = "in", value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Work in a new git worktree and branch of this name; `plexus worktrees` lists and removes them
    #[arg(long, value_name = "BRANCH", conflicts_with = "earlier")]
    worktree: Option<String>,
    /// The starting point of the branch of --worktree [default: what is checked out]
    #[arg(long, value_name = "COMMIT", requires = "worktree")]
    base: Option<String>,
    /// Continue the agent's newest conversation in the folder, or the newest one with these words
    #[arg(long = "continue", value_name = "TEXT", id = "earlier", num_args = 0..=1)]
    earlier: Option<Option<String>>,
    /// The model, as the agent names it
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// The mode, as the agent names it
    #[arg(long, value_name = "M")]
    mode: Option<String>,
    /// The session's title
    #[arg(long)]
    title: Option<String>,
    /// Output the session as JSON; needs a running gateway
    #[arg(long)]
    json: bool,
    /// The prompt; `-` reads it from stdin
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,
}

pub(crate) async fn run(args: NewArgs) -> CommandResult {
    let cwd = match &args.folder {
        Some(dir) => dir.canonicalize().map_err(|error| {
            CommandFailure::plain(format!("--in {}: {error}; use an existing folder", dir.display()))
        })?,
        None => std::env::current_dir().context("the current folder")?,
    };
    let prompt = match args.prompt.as_slice() {
        [] => None,
        [only] => Some(prompt_text(only.clone())?),
        words => Some(words.join(" ")),
    };
    let client = if args.json { Client::find().await? } else { running_or_started().await? };
    let mut request = agent(&client.runtimes().await?, args.agent.as_deref())?;
    let (mut open_session, mut started) = (None, None);
    match &args.earlier {
        None => request.cwd = Some(cwd.display().to_string()),
        Some(search) => {
            let (runtime, is_new) = runtime(&client, request, &cwd).await?;
            let found = earlier(&client, &runtime, &cwd, search.as_deref()).await;
            started = is_new.then_some(runtime);
            (request, open_session) = keep_if_opened(&client, started.as_ref(), found).await?;
        }
    }
    request.title = args.title;
    request.worktree = args.worktree.clone().map(|branch| NewWorktree { branch, base: args.base });
    let session = match open_session {
        Some(id) => client.request(calls::session(&id), "reading the session").await?,
        None => {
            let opened = open(&client, &request).await;
            keep_if_opened(&client, started.as_ref(), opened).await?
        }
    };
    let SessionInfo { session_id: id, runtime_id, title, cwd, .. } = &session.value;
    for (method, name, value) in [("model.set", "name", &args.model), ("session.set_mode", "modeId", &args.mode)] {
        let Some(value) = value else { continue };
        let params = json!({ "session_id": id, name: value });
        client.call(method, &params).await.map_err(|error| {
            let CommandFailure { code, message } = failure(&format!("choosing {}", line(value, 80)), &error);
            CommandFailure::new(code, format!("{message}; the session {id} is open: `plexus attach {id}` shows it"))
        })?;
    }
    let run = match prompt {
        Some(text) => Some(send_prompt(&client, id, &text).await?.value.run_id),
        None => None,
    };
    if args.json {
        let mut all: Map<String, Value> = serde_json::from_str(&session.text)?;
        // The value is null without a prompt.
        all.insert("run_id".into(), json!(run));
        print_json(&all)?;
    } else {
        let (paint, runtime) = (Paint::stdout(), line(runtime_id.as_str(), 80));
        print(&format!("{}\n", paint.bold(id.as_str())))?;
        if args.worktree.is_some() || args.earlier.is_some() {
            let title = line(title.as_deref().unwrap_or_default(), 80);
            let folder = line(cwd, 200);
            print(&paint.dim(&format!("in {folder}{}{title}\n", if title.is_empty() { "" } else { ": " })))?;
        }
        let hint = match run {
            None => format!("{runtime} waits for a prompt: plexus attach {id} (or `plexus prompt {id} TEXT`)\n"),
            Some(_) => format!("{runtime} works on it; follow it: plexus attach {id} (or `plexus tail {id}`)\n"),
        };
        print(&paint.dim(&hint))?;
    }
    Ok(0)
}

async fn open(client: &Client, request: &NewSession) -> anyhow::Result<Response<SessionInfo>> {
    let opened = client.try_request(calls::open_session(request), "opening a session").await?;
    Ok(opened.map_err(|refused| refusal(&refused))?)
}

/// The request that continues an earlier conversation of a runtime, or the session in which that conversation is already open.
async fn earlier(
    client: &Client,
    runtime: &RuntimeId,
    folder: &Path,
    search: Option<&str>,
) -> anyhow::Result<(NewSession, Option<SessionId>)> {
    let (all, more) = stored_conversations(client, runtime).await?;
    let folder_text = folder.to_string_lossy();
    let Some(conversation) = newest(all.items, &folder_text, search) else {
        let description =
            search.map_or_else(|| format!(" in {folder_text}"), |search| format!(" with {:?}", line(search, 80)));
        let limit_note = if more { " among the first that it lists" } else { "" };
        let fix = format!("`plexus ls --resumable {runtime}` lists them");
        return Err(CommandFailure::plain(format!("{runtime} has no conversation{description}{limit_note}: {fix}")));
    };
    let request = NewSession {
        runtime_id: Some(runtime.clone()),
        native_id: Some(conversation.native_id),
        cwd: Some(conversation.cwd.unwrap_or_else(|| folder_text.into_owned())),
        ..NewSession::default()
    };
    Ok((request, conversation.session_id))
}

/// The runtime of a request once it is ready, and whether it was started for the request.
async fn runtime(client: &Client, request: NewSession, folder: &Path) -> anyhow::Result<(RuntimeId, bool)> {
    if let Some(id) = request.runtime_id {
        return Ok((id, false));
    }
    let mut start = request.start.unwrap_or_default();
    let name = start.preset.clone().unwrap_or_default();
    let agents = client.run(calls::agents(), "listing the agents").await?.agents;
    let running = agents.into_iter().find(|agent| agent.name == name).and_then(|agent| agent.runtime_id);
    let is_new = running.is_none();
    let id = match running {
        Some(id) => id,
        None => {
            start.cwd = Some(folder.to_owned());
            client.run(calls::start_runtime(&start), &format!("starting {name}")).await?.runtime_id
        }
    };
    match ready(client, &id).await {
        Ok(()) => Ok((id, is_new)),
        Err(error) => {
            // A failed start leaves nothing behind. The runtime may have been removed already.
            if is_new {
                let _ = client.run(calls::stop_runtime(&id), "removing the runtime").await;
            }
            Err(error)
        }
    }
}

/// Waits until a runtime is ready.
async fn ready(client: &Client, id: &RuntimeId) -> anyhow::Result<()> {
    let until = Instant::now() + AGENT_START;
    loop {
        let info = client.run(calls::runtime(id), "reading the runtime").await?;
        let reason = match info.state {
            RuntimeState::Ready => return Ok(()),
            RuntimeState::Exited => info.problem.unwrap_or_else(|| "it ended".into()),
            RuntimeState::Starting | RuntimeState::Restarting | RuntimeState::Unknown if Instant::now() >= until => {
                format!("it was not ready after {} seconds", AGENT_START.as_secs())
            }
            RuntimeState::Starting | RuntimeState::Restarting | RuntimeState::Unknown => {
                tokio::time::sleep(POLL_EVERY).await;
                continue;
            }
        };
        let reason = line(&reason, STDERR_LINE);
        return Err(CommandFailure::plain(format!("{id} did not start: {reason}; `plexus doctor` checks it")));
    }
}

/// A new session of the agent that the user named: of a preset to start, or of a running runtime.
fn agent(runtimes: &[Arc<RuntimeInfo>], name: Option<&str>) -> anyhow::Result<NewSession> {
    let in_runtime = |id: &RuntimeId| NewSession { runtime_id: Some(id.clone()), ..NewSession::default() };
    let Some(name) = name else {
        return match RuntimeInfo::preferred(runtimes).filter(|preferred| preferred.state == RuntimeState::Ready) {
            Some(preferred) => Ok(in_runtime(&preferred.runtime_id)),
            None => {
                let names: Vec<&str> = presets::presets().iter().map(|preset| preset.name).collect();
                let message =
                    format!("no agent is running: name one, as in `plexus new gemini`; known: {}", names.join(", "));
                Err(CommandFailure::new(USAGE, message).into())
            }
        };
    };
    let is_meant = |runtime: &&Arc<RuntimeInfo>| runtime.runtime_id.as_str() == name;
    if let Some(runtime) = runtimes.iter().filter(is_meant).find(|runtime| runtime.state == RuntimeState::Ready) {
        return Ok(in_runtime(&runtime.runtime_id));
    }
    if presets::presets().iter().any(|preset| preset.name == name) {
        return Ok(NewSession { start: Some(preset_start(name)?), ..NewSession::default() });
    }
    let known = || {
        let ready = runtimes.iter().filter(|runtime| runtime.state == RuntimeState::Ready);
        presets::presets().iter().map(|preset| preset.name).chain(ready.map(|runtime| runtime.runtime_id.as_str()))
    };
    let suggestion =
        nearest(name, known()).map(|suggestion| format!("; did you mean {suggestion}?")).unwrap_or_default();
    let (name_shown, known) = (line(name, 80), known().collect::<Vec<_>>().join(", "));
    Err(CommandFailure::new(USAGE, format!("no agent {name_shown:?}{suggestion} Known: {known}")).into())
}

/// Formats a refusal, with the error output of an agent that did not start.
fn refusal(refused: &Refused) -> CommandFailure {
    let CommandFailure { code, mut message } = refused.explain("opening a session");
    if let Some(stderr) = &refused.error.data.stderr {
        let lines: Vec<String> = stderr.lines().map(|text| line(text, STDERR_LINE)).collect();
        message.push_str("; its output:\n  ");
        message.push_str(&lines[lines.len().saturating_sub(STDERR_LINES)..].join("\n  "));
    }
    CommandFailure { code, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::{Connect, RuntimeId, RuntimeSpec};

    fn runtime(id: &str, state: RuntimeState) -> Arc<RuntimeInfo> {
        let spec = RuntimeSpec::new(RuntimeId::trusted(id), "acp", Connect::Command(vec!["x".into()]), "/");
        let starting = RuntimeInfo::starting(&spec, "/".into(), 1, std::time::SystemTime::UNIX_EPOCH.into());
        Arc::new(RuntimeInfo { state, ..starting })
    }

    #[test]
    fn agent_is_a_running_runtime_a_preset_or_a_usage_error() {
        let ready = [runtime("mine", RuntimeState::Ready), runtime("old", RuntimeState::Exited)];
        let chosen = |runtimes, name| json!(agent(runtimes, name).unwrap());
        assert_eq!(chosen(&ready, Some("mine")), json!({ "runtime_id": "mine" }));
        assert_eq!(chosen(&ready, None), json!({ "runtime_id": "mine" }));
        assert_eq!(chosen(&[], Some("demo"))["start"]["preset"], "demo");
        let refused = |runtimes: &[Arc<RuntimeInfo>], name: Option<&str>| {
            let error = agent(runtimes, name).unwrap_err();
            assert_eq!(error.downcast_ref::<CommandFailure>().unwrap().code, USAGE);
            error.to_string()
        };
        let message = refused(&[], Some("gemni"));
        assert!(message.starts_with("no agent \"gemni\"; did you mean gemini? Known: gemini"), "{message}");
        assert!(refused(&ready, Some("old")).contains("no agent \"old\""));
        assert!(refused(&[], None).starts_with("no agent is running: name one"));
    }
}
