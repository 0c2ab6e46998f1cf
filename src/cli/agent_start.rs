//! The specification of an agent to start, from a command line and this shell's environment.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plexus::runtimes::{dialects, presets};
use plexus_client::calls;
use plexus_protocol::api::runtimes::StartRuntime;
use plexus_protocol::{Connect, RuntimeId, RuntimeSpec};

use super::client::{Client, did_you_mean};
use super::failure::{CommandFailure, USAGE};
use super::output::line;
use super::programs::{this_program, which};

/// Time between two checks of a starting gateway or agent.
pub(super) const POLL_EVERY: Duration = Duration::from_millis(50);
/// Time for an agent to become ready; the gateway's timeout of the handshake is shorter.
pub(super) const AGENT_START: Duration = Duration::from_secs(150);

/// Options that set variables of an agent.
#[derive(Debug, Default, Args)]
pub(super) struct AgentEnvironmentArgs {
    /// A variable for the agent, with a value or with its value in this shell (better for keys); repeatable
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Pass a variable of this shell to the agent if it is set; NAME* passes all with that prefix; repeatable
    #[arg(long, value_name = "NAME")]
    pass_env: Vec<String>,
    /// One of the authentication methods that the agent offers
    #[arg(long, value_name = "ID")]
    auth_method: Option<String>,
}

impl AgentEnvironmentArgs {
    /// The first of these options on the command line.
    pub(super) fn given_option(&self) -> Option<&'static str> {
        let options = [
            ("--env", !self.env.is_empty()),
            ("--pass-env", !self.pass_env.is_empty()),
            ("--auth-method", self.auth_method.is_some()),
        ];
        options.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
    }
}

/// The agent of a command line: a preset, or a dialect and a command.
pub(super) struct AgentChoice<'a> {
    pub(super) preset: Option<&'a str>,
    pub(super) dialect: Option<&'a str>,
    pub(super) command: &'a [String],
    pub(super) cwd: Option<&'a Path>,
    pub(super) environment: &'a AgentEnvironmentArgs,
}

/// The variables of this shell that match the patterns: `NAME`, or `NAME*` for all with that prefix.
fn variables(patterns: &[String]) -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).filter(
        move |(name, _)| {
            patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(stem) => name.starts_with(stem),
                None => name == pattern,
            })
        },
    )
}

/// Sets the agent's environment from this shell and the command line.
fn set_environment(spec: &mut RuntimeSpec, args: &AgentEnvironmentArgs) -> Result<(), CommandFailure> {
    for name in &args.pass_env {
        let stem = name.strip_suffix('*').unwrap_or(name);
        if stem.is_empty() || stem.contains(['=', '*', '\0']) {
            return Err(CommandFailure::new(
                USAGE,
                format!("--pass-env {}: not the name of a variable", line(name, 80)),
            ));
        }
        spec.pass_env.push(name.clone());
    }
    // Keys may be set in this shell but not in the one that started the gateway.
    let own: Vec<_> = variables(&spec.pass_env).collect();
    for (name, value) in own {
        spec.env.entry(name).or_insert(value);
    }
    for option in &args.env {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option.as_str(), std::env::var(option).ok()),
        };
        let label = line(name, 80);
        match value {
            _ if name.is_empty() || name.contains('\0') => {
                return Err(CommandFailure::new(USAGE, "--env: the variable has no name; use NAME=VALUE or NAME"));
            }
            Some(value) => drop(spec.env.insert(name.to_owned(), value)),
            None => {
                let fix = format!("export it first, or use --env {label}=VALUE");
                return Err(CommandFailure::new(USAGE, format!("--env {label}: not set in this shell; {fix}")));
            }
        }
    }
    if let Some(method) = &args.auth_method {
        spec.auth_method = Some(method.clone());
    }
    Ok(())
}

/// Makes a preset that starts as in this shell: with this shell's keys, and with its `PATH` if it contains the program. The gateway checks
/// whether the program is installed, since it may find it where this shell does not.
///
/// # Errors
/// There is no preset of this name.
pub(super) fn preset_start(name: &str) -> anyhow::Result<StartRuntime> {
    let environment = AgentEnvironmentArgs::default();
    let choice = AgentChoice { preset: Some(name), dialect: None, command: &[], cwd: None, environment: &environment };
    let mut spec = declared_spec(&choice)?;
    let program = match &spec.connect {
        Connect::Command(command) => command.first().and_then(|program| which(program)),
        Connect::Endpoint(_) => None,
    };
    if let Some(path) = std::env::var("PATH").ok().filter(|_| program.is_some()) {
        spec.env.insert("PATH".into(), path);
    }
    let RuntimeSpec { env, auth_method, .. } = spec;
    Ok(StartRuntime { preset: Some(name.to_owned()), env, auth_method, ..StartRuntime::default() })
}

/// The runtime to start, with the program's name as on the command line.
fn declared_spec(choice: &AgentChoice<'_>) -> anyhow::Result<RuntimeSpec> {
    let cwd = match choice.cwd {
        Some(dir) => dir.canonicalize().map_err(|error| {
            CommandFailure::plain(format!("--cwd {}: {error}; use an existing folder", dir.display()))
        })?,
        None => std::env::current_dir().context("the current folder")?,
    };
    let mut spec = match choice.preset {
        Some(name) => presets::preset(name, &this_program()?, |var| std::env::var(var).ok()).map_err(|error| {
            let suggestion = did_you_mean(name, presets::presets().iter().map(|preset| preset.name));
            CommandFailure::new(USAGE, format!("{error}{suggestion}"))
        })?,
        None => {
            let dialect = choice.dialect.unwrap_or_default();
            let connect = Connect::Command(choice.command.to_vec());
            let program = choice.command.first().map_or("", String::as_str);
            // A known agent that is named by its command gets the keys of its preset.
            let (pass_env, auth_method) = presets::keys_of(program, |var| std::env::var(var).ok());
            RuntimeSpec {
                pass_env,
                auth_method,
                ..RuntimeSpec::new(RuntimeId::trusted("runtime"), dialect, connect, cwd.clone())
            }
        }
    };
    spec.cwd = cwd;
    set_environment(&mut spec, choice.environment)?;
    if dialects::find(&spec.dialect).is_none() {
        let known = dialects::names();
        let suggestion = did_you_mean(&spec.dialect, known.iter().copied());
        let message = format!("unknown dialect {:?}; known: {}{suggestion}", spec.dialect, known.join(", "));
        return Err(CommandFailure::new(USAGE, message).into());
    }
    Ok(spec)
}

/// The runtime to start, with the program's path as this shell finds it.
pub(super) fn runtime_spec(choice: &AgentChoice<'_>) -> anyhow::Result<RuntimeSpec> {
    let mut spec = declared_spec(choice)?;
    if let Connect::Command(command) = &mut spec.connect
        && let Some(program) = command.first_mut()
    {
        match which(program) {
            // The gateway's PATH may differ.
            Some(path) => *program = std::path::absolute(&path).unwrap_or(path).display().to_string(),
            None => {
                let preset =
                    choice.preset.and_then(|name| presets::presets().iter().find(|preset| preset.name == name));
                let missing = match preset {
                    Some(preset) => {
                        let install = preset.install.unwrap_or("it is included in plexus");
                        format!("{program} is not installed; to install it: {install}")
                    }
                    None if Path::new(program).is_dir() => format!("{program} is a folder; use the path of a program"),
                    None if program.contains('/') && Path::new(program).exists() => {
                        format!("{program} is not executable; if it is a program: chmod +x {program}")
                    }
                    None if program.contains('/') => format!("{program} does not exist; check the path"),
                    None => format!("{program} is not installed; check the name and PATH"),
                };
                return Err(CommandFailure::plain(missing));
            }
        }
    }
    Ok(spec)
}

/// Returns the result of opening a session. If opening failed, removes the runtime that was started for it, which would otherwise keep
/// running and occupy a name, unless another client has opened a session in it.
pub(super) async fn keep_if_opened<T>(
    client: &Client,
    started: Option<&RuntimeId>,
    result: anyhow::Result<T>,
) -> anyhow::Result<T> {
    if let (Err(_), Some(id)) = (&result, started)
        && client.sessions().await.is_ok_and(|all| all.iter().all(|session| session.runtime_id != *id))
    {
        // The runtime may have been removed already.
        let _ = client.run(calls::stop_runtime(id), "removing the agent").await;
    }
    result
}
