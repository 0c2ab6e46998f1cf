//! `plexus new`: opens a session and leaves it to work; starts its agent if need be.

use std::sync::Arc;

use anyhow::Context as _;
use plexus::config::nearest;
use plexus::runtimes::presets;
use plexus_protocol::{RuntimeInfo, RuntimeState};
use serde_json::{Value, json};

use super::args;
use super::client::{Client, Refused, failure};
use super::commands::{print, print_json, text_of};
use super::run::{gateway, preset_start};
use super::term::{Paint, line};
use super::{CommandFailure, CommandResult, USAGE};

/// Longest text of a program that is shown with a failure, in characters of a line.
const SAID_LINE: usize = 300;
/// Most lines of it, the last ones.
const SAID_LINES: usize = 12;

pub(crate) async fn new(args: args::New) -> CommandResult {
    let cwd = match &args.folder {
        Some(dir) => dir
            .canonicalize()
            .map_err(|why| CommandFailure::plain(format!("--in {}: {why}; use an existing folder", dir.display())))?,
        None => std::env::current_dir().context("the current folder")?,
    };
    let prompt = match args.prompt.as_slice() {
        [] => None,
        [only] => Some(text_of(only.clone())?),
        words => Some(words.join(" ")),
    };
    let client = if args.json { Client::find().await? } else { gateway().await? };
    let mut wanted = agent(&client.runtimes().await?, args.agent.as_deref())?;
    wanted["cwd"] = json!(cwd);
    if let Some(title) = &args.title {
        wanted["title"] = title.as_str().into();
    }
    let opened = client.try_post("/v1/sessions", &wanted, None, "opening a session").await?;
    let session: Value = serde_json::from_str(&opened.map_err(|refused| explained(&refused))?)?;
    let id = session["session_id"].as_str().unwrap_or_default().to_owned();
    for (method, name, value) in [("model.set", "name", &args.model), ("session.set_mode", "modeId", &args.mode)] {
        let Some(value) = value else { continue };
        let params = json!({ "session_id": id, name: value });
        client.call(method, &params).await.map_err(|error| {
            let CommandFailure { code, message } = failure(&format!("choosing {}", line(value, 80)), &error);
            CommandFailure::new(code, format!("{message}; the session {id} is open: `plexus attach {id}` shows it"))
        })?;
    }
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
        let hint = format!("{runtime} works on it; follow it: plexus attach {id} (or `plexus tail {id}`)\n");
        print(&paint.dim(&hint))?;
    }
    Ok(0)
}

/// What is wanted of the gateway for the agent that a person named: a preset to start, or a runtime that runs.
fn agent(runtimes: &[RuntimeInfo], name: Option<&str>) -> anyhow::Result<Value> {
    let Some(name) = name else {
        let all: Vec<Arc<RuntimeInfo>> = runtimes.iter().cloned().map(Arc::new).collect();
        return match RuntimeInfo::usual(&all).filter(|usual| usual.state == RuntimeState::Ready) {
            Some(usual) => Ok(json!({ "runtime_id": usual.runtime_id })),
            None => {
                let names: Vec<&str> = presets::presets().iter().map(|preset| preset.name).collect();
                let words =
                    format!("no agent is running: name one, as in `plexus new gemini`; known: {}", names.join(", "));
                Err(CommandFailure::new(USAGE, words).into())
            }
        };
    };
    if runtimes.iter().any(|one| one.runtime_id.as_str() == name && one.state == RuntimeState::Ready) {
        return Ok(json!({ "runtime_id": name }));
    }
    if presets::presets().iter().any(|preset| preset.name == name) {
        return Ok(json!({ "start": preset_start(name)? }));
    }
    let known = || {
        let ready = runtimes.iter().filter(|one| one.state == RuntimeState::Ready);
        presets::presets().iter().map(|preset| preset.name).chain(ready.map(|one| one.runtime_id.as_str()))
    };
    let near = nearest(name, known()).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    let (shown, known) = (line(name, 80), known().collect::<Vec<_>>().join(", "));
    Err(CommandFailure::new(USAGE, format!("no agent {shown:?}{near} Known: {known}")).into())
}

/// A refusal, with what the agent said where it did not start.
fn explained(refused: &Refused) -> CommandFailure {
    let CommandFailure { code, mut message } = refused.explain("opening a session");
    if let Some(said) = refused.problem["stderr"].as_str() {
        let lines: Vec<String> = said.lines().map(|words| line(words, SAID_LINE)).collect();
        message.push_str("; it said:\n  ");
        message.push_str(&lines[lines.len().saturating_sub(SAID_LINES)..].join("\n  "));
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
        let words = refused(&[], Some("gemni"));
        assert!(words.starts_with("no agent \"gemni\"; did you mean gemini? Known: gemini"), "{words}");
        assert!(refused(&ready, Some("old")).contains("no agent \"old\""));
        assert!(refused(&[], None).starts_with("no agent is running: name one"));
    }
}
