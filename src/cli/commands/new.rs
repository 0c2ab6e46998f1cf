//! `plexus new`: opens a session and leaves it to work; starts its agent if need be.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use plexus::config::nearest;
use plexus::runtimes::presets;
use plexus_protocol::{RuntimeId, RuntimeInfo, RuntimeState, SessionId};
use serde_json::{Value, json};

use crate::cli::agent_start::{AGENT_START, POLL_EVERY, keep_if_opened, preset_start};
use crate::cli::client::{Client, Refused, failure};
use crate::cli::conversations::{newest, stored_conversations};
use crate::cli::failure::{CommandFailure, CommandResult, USAGE};
use crate::cli::gateway_start::running_or_started;
use crate::cli::output::{Paint, line, print, print_json};
use crate::cli::prompts::prompt_text;

/// Longest line of a failed program's output that is shown, in characters.
const STDERR_LINE: usize = 300;
/// Most lines of a failed program's output that are shown: the last ones.
const STDERR_LINES: usize = 12;

/// Open a session with a prompt and leave it to work; starts the agent, and a gateway, if need be
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
    /// Where the branch of --worktree begins [default: what is checked out]
    #[arg(long, value_name = "COMMIT", requires = "worktree")]
    base: Option<String>,
    /// Go on with the agent's newest conversation in the folder, or with the newest one that has these words
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
        None => request["cwd"] = json!(cwd),
        Some(search) => {
            let (runtime, is_new) = runtime(&client, request, &cwd).await?;
            let found = earlier(&client, &runtime, &cwd, search.as_deref()).await;
            started = is_new.then_some(runtime);
            (request, open_session) = keep_if_opened(&client, started.as_ref(), found).await?;
        }
    }
    if let Some(title) = &args.title {
        request["title"] = title.as_str().into();
    }
    if let Some(branch) = &args.worktree {
        request["worktree"] = json!({ "branch": branch });
        if let Some(base) = &args.base {
            request["worktree"]["base"] = base.as_str().into();
        }
    }
    let session: Value = match open_session {
        Some(id) => client.get(&format!("/v1/sessions/{id}"), "reading the session").await?,
        None => {
            let opened = open(&client, &request).await;
            keep_if_opened(&client, started.as_ref(), opened).await?
        }
    };
    let id = session["session_id"].as_str().unwrap_or_default().to_owned();
    for (method, name, value) in [("model.set", "name", &args.model), ("session.set_mode", "modeId", &args.mode)] {
        let Some(value) = value else { continue };
        let params = json!({ "session_id": id, name: value });
        client.call(method, &params).await.map_err(|error| {
            let CommandFailure { code, message } = failure(&format!("choosing {}", line(value, 80)), &error);
            CommandFailure::new(code, format!("{message}; the session {id} is open: `plexus attach {id}` shows it"))
        })?;
    }
    // Null without a prompt.
    let mut run = Value::Null;
    if let Some(text) = prompt {
        let accepted = client.post(&format!("/v1/sessions/{id}/prompt"), &json!({ "text": text }), "prompting").await?;
        run = accepted["run_id"].clone();
    }
    if args.json {
        let mut all = session;
        all["run_id"] = run;
        print_json(&all)?;
    } else {
        let (paint, runtime) = (Paint::stdout(), line(session["runtime_id"].as_str().unwrap_or_default(), 80));
        print(&format!("{}\n", paint.bold(&id)))?;
        if args.worktree.is_some() || args.earlier.is_some() {
            let title = line(session["title"].as_str().unwrap_or_default(), 80);
            let folder = line(session["cwd"].as_str().unwrap_or_default(), 200);
            print(&paint.dim(&format!("in {folder}{}{title}\n", if title.is_empty() { "" } else { ": " })))?;
        }
        let hint = if run.is_null() {
            format!("{runtime} waits for a prompt: plexus attach {id} (or `plexus prompt {id} TEXT`)\n")
        } else {
            format!("{runtime} works on it; follow it: plexus attach {id} (or `plexus tail {id}`)\n")
        };
        print(&paint.dim(&hint))?;
    }
    Ok(0)
}

async fn open(client: &Client, request: &Value) -> anyhow::Result<Value> {
    let opened = client.try_post("/v1/sessions", request, None, "opening a session").await?;
    Ok(serde_json::from_str(&opened.map_err(|refused| refusal(&refused))?)?)
}

/// The body that continues an earlier conversation of a runtime, and the session in which the conversation is open already.
async fn earlier(
    client: &Client,
    runtime: &RuntimeId,
    folder: &Path,
    search: Option<&str>,
) -> anyhow::Result<(Value, Option<SessionId>)> {
    let (all, more) = stored_conversations(client, runtime).await?;
    let folder_shown = folder.to_string_lossy();
    let Some(conversation) = newest(all, &folder_shown, search) else {
        let description =
            search.map_or_else(|| format!(" in {folder_shown}"), |search| format!(" with {:?}", line(search, 80)));
        let limit_note = if more { " among the first that it lists" } else { "" };
        let fix = format!("`plexus ls --resumable {runtime}` lists them");
        return Err(CommandFailure::plain(format!("{runtime} has no conversation{description}{limit_note}: {fix}")));
    };
    let cwd = conversation.cwd.as_deref().unwrap_or(&folder_shown);
    Ok((json!({ "runtime_id": runtime, "native_id": conversation.native_id, "cwd": cwd }), conversation.session_id))
}

/// The runtime of a request once it is ready, and whether it was started for the request.
async fn runtime(client: &Client, request: Value, folder: &Path) -> anyhow::Result<(RuntimeId, bool)> {
    if let Some(id) = request["runtime_id"].as_str() {
        return Ok((id.parse()?, false));
    }
    let mut start = request["start"].clone();
    let name = start["preset"].as_str().unwrap_or_default().to_owned();
    let agents: Value = client.get("/v1/agents", "listing the agents").await?;
    let known = agents["agents"].as_array().and_then(|all| all.iter().find(|agent| agent["name"] == name.as_str()));
    let runs = known.and_then(|agent| agent["runtime_id"].as_str());
    let id: RuntimeId = match runs {
        Some(id) => id.parse()?,
        None => {
            start["cwd"] = json!(folder);
            let what = format!("starting {name}");
            let started: RuntimeInfo = serde_json::from_value(client.post("/v1/runtimes", &start, &what).await?)?;
            started.runtime_id
        }
    };
    match ready(client, &id).await {
        Ok(()) => Ok((id, runs.is_none())),
        Err(error) => {
            // A start that fails leaves nothing. It may be gone already.
            if runs.is_none() {
                let _ = client.delete(&format!("/v1/runtimes/{id}"), "removing the runtime").await;
            }
            Err(error)
        }
    }
}

/// Waits until a runtime is ready.
async fn ready(client: &Client, id: &RuntimeId) -> anyhow::Result<()> {
    let until = Instant::now() + AGENT_START;
    loop {
        let info: RuntimeInfo = client.get(&format!("/v1/runtimes/{id}"), "reading the runtime").await?;
        let reason = match info.state {
            RuntimeState::Ready => return Ok(()),
            RuntimeState::Exited => info.problem.unwrap_or_else(|| "it ended".into()),
            RuntimeState::Starting | RuntimeState::Restarting if Instant::now() >= until => {
                format!("it was not ready after {} seconds", AGENT_START.as_secs())
            }
            RuntimeState::Starting | RuntimeState::Restarting => {
                tokio::time::sleep(POLL_EVERY).await;
                continue;
            }
        };
        let reason = line(&reason, STDERR_LINE);
        return Err(CommandFailure::plain(format!("{id} did not start: {reason}; `plexus doctor` checks it")));
    }
}

/// The part of a request that names the agent: a preset to start, or a runtime that runs.
fn agent(runtimes: &[RuntimeInfo], name: Option<&str>) -> anyhow::Result<Value> {
    let Some(name) = name else {
        let all: Vec<Arc<RuntimeInfo>> = runtimes.iter().cloned().map(Arc::new).collect();
        return match RuntimeInfo::usual(&all).filter(|usual| usual.state == RuntimeState::Ready) {
            Some(usual) => Ok(json!({ "runtime_id": usual.runtime_id })),
            None => {
                let names: Vec<&str> = presets::presets().iter().map(|preset| preset.name).collect();
                let message =
                    format!("no agent is running: name one, as in `plexus new gemini`; known: {}", names.join(", "));
                Err(CommandFailure::new(USAGE, message).into())
            }
        };
    };
    if runtimes.iter().any(|runtime| runtime.runtime_id.as_str() == name && runtime.state == RuntimeState::Ready) {
        return Ok(json!({ "runtime_id": name }));
    }
    if presets::presets().iter().any(|preset| preset.name == name) {
        return Ok(json!({ "start": preset_start(name)? }));
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

/// A refusal with the error output of an agent that did not start.
fn refusal(refused: &Refused) -> CommandFailure {
    let CommandFailure { code, mut message } = refused.explain("opening a session");
    if let Some(stderr) = refused.problem["stderr"].as_str() {
        let lines: Vec<String> = stderr.lines().map(|text| line(text, STDERR_LINE)).collect();
        message.push_str("; it said:\n  ");
        message.push_str(&lines[lines.len().saturating_sub(STDERR_LINES)..].join("\n  "));
    }
    CommandFailure { code, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::{Connect, RuntimeId, RuntimeSpec};

    fn runtime(id: &str, state: RuntimeState) -> RuntimeInfo {
        let spec = RuntimeSpec::new(RuntimeId::trusted(id), "acp", Connect::Command(vec!["x".into()]), "/");
        let starting = RuntimeInfo::starting(&spec, "/".into(), 1, std::time::SystemTime::UNIX_EPOCH.into());
        RuntimeInfo { state, ..starting }
    }

    #[test]
    fn agent_is_a_running_runtime_a_preset_or_a_usage_error() {
        let ready = [runtime("mine", RuntimeState::Ready), runtime("old", RuntimeState::Exited)];
        assert_eq!(agent(&ready, Some("mine")).unwrap(), json!({ "runtime_id": "mine" }));
        assert_eq!(agent(&ready, None).unwrap(), json!({ "runtime_id": "mine" }));
        assert_eq!(agent(&[], Some("demo")).unwrap()["start"]["preset"], "demo");
        let refused = |runtimes: &[RuntimeInfo], name: Option<&str>| {
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
