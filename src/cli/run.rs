//! `plexus run`: attaches an agent, opens a session and follows it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use plexus::runtimes::presets;
use plexus_protocol::{Connect, RuntimeId, RuntimeInfo, RuntimeSpec, RuntimeState, SessionId};
use serde_json::{Value, json};

use super::args;
use super::client::{Client, did_you_mean};
use super::commands::print;
use super::home::{GatewayState, Home};
use super::serve::this_program;
use super::term::{Paint, clean, line};
use super::{CommandFailure, CommandResult, USAGE, follow_session};

/// Time for a newly started gateway to answer.
const GATEWAY_START: Duration = Duration::from_secs(20);
/// Time between two checks of a starting gateway or agent.
pub(super) const POLL_EVERY: Duration = Duration::from_millis(50);
/// Time for an agent to be ready; the gateway's timeout of the handshake is shorter.
pub(super) const AGENT_START: Duration = Duration::from_secs(150);
/// Lines of a failed gateway's log that are shown.
const LOG_LINES: usize = 10;

/// The program's path, found as a shell would.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let runs = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| runs(path));
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| runs(path))
}

/// Variables of this shell that match the pattern: `NAME`, or `NAME*` for all with that prefix.
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
fn set_environment(spec: &mut RuntimeSpec, args: &args::Run) -> Result<(), CommandFailure> {
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
    // Keys may be in this shell and not in the one that started the gateway.
    let own: Vec<_> = variables(&spec.pass_env).collect();
    for (name, value) in own {
        spec.env.entry(name).or_insert(value);
    }
    for given in &args.env {
        let (name, value) = match given.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (given.as_str(), std::env::var(given).ok()),
        };
        let name_shown = line(name, 80);
        match value {
            _ if name.is_empty() || name.contains('\0') => {
                return Err(CommandFailure::new(USAGE, "--env: the variable has no name; use NAME=VALUE or NAME"));
            }
            Some(value) => drop(spec.env.insert(name.to_owned(), value)),
            None => {
                let fix = format!("export it first, or use --env {name_shown}=VALUE");
                return Err(CommandFailure::new(USAGE, format!("--env {name_shown}: not set in this shell; {fix}")));
            }
        }
    }
    if let Some(method) = &args.auth_method {
        spec.auth_method = Some(method.clone());
    }
    Ok(())
}

/// What starts a preset as this shell would: with this shell's keys, and its `PATH` if the program is there. Whether it is installed is
/// for the gateway to say, which starts it and may find it where this shell does not.
///
/// # Errors
/// There is no such preset.
pub(super) fn preset_start(name: &str) -> anyhow::Result<Value> {
    let args = args::Run { preset: Some(name.to_owned()), ..args::Run::default() };
    let mut spec = named_spec(&args)?;
    let program = match &spec.connect {
        Connect::Command(command) => command.first().and_then(|program| which(program)),
        Connect::Endpoint(_) => None,
    };
    if let Some(path) = std::env::var("PATH").ok().filter(|_| program.is_some()) {
        spec.env.insert("PATH".into(), path);
    }
    let mut wanted = json!({ "preset": name, "env": spec.env });
    if let Some(method) = spec.auth_method {
        wanted["auth_method"] = method.into();
    }
    Ok(wanted)
}

/// An option that changes the agent's environment, if one was given.
fn own_environment(args: &args::Run) -> Option<&'static str> {
    let given = [
        ("--env", !args.env.is_empty()),
        ("--pass-env", !args.pass_env.is_empty()),
        ("--auth-method", args.auth_method.is_some()),
    ];
    given.into_iter().find_map(|(option, given)| given.then_some(option))
}

/// What is to be run, its program as it was named.
fn named_spec(args: &args::Run) -> anyhow::Result<RuntimeSpec> {
    let cwd = match &args.cwd {
        Some(dir) => dir
            .canonicalize()
            .map_err(|why| CommandFailure::plain(format!("--cwd {}: {why}; use an existing folder", dir.display())))?,
        None => std::env::current_dir().context("the current folder")?,
    };
    let mut spec = match &args.preset {
        Some(name) => presets::preset(name, &this_program()?, |var| std::env::var(var).ok()).map_err(|why| {
            let near = did_you_mean(name, presets::presets().iter().map(|preset| preset.name));
            CommandFailure::new(USAGE, format!("{why}{near}"))
        })?,
        None => {
            let dialect = args.dialect.as_deref().unwrap_or_default();
            let connect = Connect::Command(args.cmd.clone());
            let program = args.cmd.first().map_or("", String::as_str);
            // A known agent given by its command gets the keys of its preset.
            let (pass_env, auth_method) = presets::keys_of(program, |var| std::env::var(var).ok());
            RuntimeSpec {
                pass_env,
                auth_method,
                ..RuntimeSpec::new(RuntimeId::trusted("runtime"), dialect, connect, cwd.clone())
            }
        }
    };
    spec.cwd = cwd;
    set_environment(&mut spec, args)?;
    if plexus_dialects::find(&spec.dialect).is_none() {
        let known: Vec<&str> = plexus_dialects::TABLE.iter().map(|(name, _)| *name).collect();
        let near = did_you_mean(&spec.dialect, known.iter().copied());
        let message = format!("unknown dialect {:?}; known: {}{near}", spec.dialect, known.join(", "));
        return Err(CommandFailure::new(USAGE, message).into());
    }
    Ok(spec)
}

/// What is to be run, its program where this shell finds it.
fn spec_of(args: &args::Run) -> anyhow::Result<RuntimeSpec> {
    let mut spec = named_spec(args)?;
    if let Connect::Command(command) = &mut spec.connect
        && let Some(program) = command.first_mut()
    {
        match which(program) {
            // The gateway's PATH may differ.
            Some(path) => *program = std::path::absolute(&path).unwrap_or(path).display().to_string(),
            None => {
                let preset =
                    args.preset.as_ref().and_then(|name| presets::presets().iter().find(|one| one.name == name));
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

pub(crate) async fn run(args: args::Run) -> CommandResult {
    let spec = spec_of(&args)?;
    let id: Option<RuntimeId> = match &args.id {
        Some(id) => Some(id.parse().map_err(|why| CommandFailure::new(USAGE, format!("--id {id}: {why}")))?),
        None => None,
    };
    let client = gateway().await?;
    let attached = attach(&client, &spec, id, args.preset.as_deref(), own_environment(&args)).await?;
    let mut wanted = json!({ "runtime_id": attached.runtime.runtime_id, "cwd": spec.cwd });
    if let Some(title) = &args.title {
        wanted["title"] = title.as_str().into();
    }
    let opened = open(&client, &wanted).await;
    let started = attached.is_new.then_some(&attached.runtime.runtime_id);
    let session = kept_if_opened(&client, started, opened).await?;
    follow(client, &session, args.prompt).await
}

/// Opens a session.
pub(super) async fn open(client: &Client, wanted: &Value) -> anyhow::Result<Value> {
    client.post("/v1/sessions", wanted, "opening a session").await
}

/// The outcome of a command that needs a session. If it failed, the runtime that was started for it is removed, so that it neither runs on nor
/// takes a name, unless somebody else has opened a session in it.
pub(super) async fn kept_if_opened<T>(
    client: &Client,
    started: Option<&RuntimeId>,
    outcome: anyhow::Result<T>,
) -> anyhow::Result<T> {
    if let (Err(_), Some(id)) = (&outcome, started)
        && client.sessions().await.is_ok_and(|all| all.iter().all(|session| session.runtime_id != *id))
    {
        // It may be gone already.
        let _ = client.delete(&format!("/v1/runtimes/{id}"), "removing the agent").await;
    }
    outcome
}

/// Follows a session that was opened.
pub(super) async fn follow(client: Client, session: &Value, prompt: Option<String>) -> CommandResult {
    let Some(id) = session["session_id"].as_str().and_then(|id| id.parse::<SessionId>().ok()) else {
        return Err(CommandFailure::plain("opening a session: the gateway returned none"));
    };
    let (paint, cwd) = (Paint::stdout(), session["cwd"].as_str().unwrap_or_default());
    print(&format!("session {} in {}\n", paint.bold(id.as_str()), clean(cwd)))?;
    print(&paint.dim(&format!("open it in a browser: {} (`plexus open` signs in)\n", client.url())))?;
    follow_session::follow_session(client, id, prompt).await
}

/// The running gateway, or a newly started one.
pub(super) async fn gateway() -> anyhow::Result<Client> {
    let home = Home::find()?;
    if let GatewayState::Up(running) = home.gateway().await? {
        return Client::to(home, running);
    }
    home.create()?;
    let log = home.dir().join("gateway.log");
    let file = {
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut options = std::fs::OpenOptions::new();
        // The gateway appends to the same file.
        options.create(true).append(true).mode(0o600);
        let file = options.open(&log).and_then(|file| file.set_len(0).map(|()| file));
        file.map_err(|why| CommandFailure::plain(format!("cannot write {}: {why}", log.display())))?
    };
    let mut child = std::process::Command::new(this_program()?)
        .args(["serve", "--detach", "--log-file"])
        .arg(&log)
        .env("PLEXUS_HOME", home.dir())
        .current_dir(home.dir())
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .context("starting a gateway")?;
    let start = Instant::now();
    loop {
        if let GatewayState::Up(running) = home.gateway().await? {
            print(&format!("no gateway was running: started one (log: {})\n", log.display()))?;
            return Client::to(home, running);
        }
        let ended = child.try_wait()?;
        if ended.is_some() || start.elapsed() > GATEWAY_START {
            let text = std::fs::read(&log).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n  ");
            if ended.is_none() {
                let _ = child.kill();
                let _ = child.wait();
            }
            let what = if ended.is_some() { "exited immediately" } else { "did not answer" };
            return Err(CommandFailure::plain(format!(
                "the gateway that was started {what}; its log {} ends:\n  {tail}",
                log.display()
            )));
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

/// A runtime for a session.
struct AttachedRuntime {
    runtime: RuntimeInfo,
    /// Whether it was started now, and its name was not listed before.
    is_new: bool,
}

/// Starts the runtime, or uses the one that is attached already.
async fn attach(
    client: &Client,
    spec: &RuntimeSpec,
    id: Option<RuntimeId>,
    preset: Option<&str>,
    own: Option<&str>,
) -> anyhow::Result<AttachedRuntime> {
    let name = id.as_ref().map(ToString::to_string).or_else(|| preset.map(str::to_owned));
    // One process of these dialects serves any number of sessions, so a second is not needed; one of Codelia serves one.
    if matches!(spec.dialect.as_str(), "acp" | "codex")
        && let Some(name) = &name
        && let Some(there) = client.runtimes().await?.into_iter().find(|one| {
            one.runtime_id.as_str() == name && one.state == RuntimeState::Ready && one.connect == spec.connect
        })
    {
        if let Some(option) = own {
            let why = format!("{option}: {name} is already running, and an agent gets its environment when it starts");
            let fix = format!("use --id OTHER to start another one, or stop it first: plexus stop {name}");
            return Err(CommandFailure::new(USAGE, format!("{why}; {fix}")).into());
        }
        print(&format!("{name} is already running\n"))?;
        return Ok(AttachedRuntime { runtime: there, is_new: false });
    }
    let mut wanted = start_body(spec)?;
    let taken = client.runtimes().await?;
    match &id {
        Some(id) => wanted["id"] = json!(id),
        // If the preset's name is taken, the next one: gemini, gemini-2 ... An ended runtime with the same spec is started
        // again.
        None => {
            if let Some(preset) = preset {
                let other = |one: &RuntimeInfo| {
                    let cwd = spec.cwd.display().to_string();
                    one.state != RuntimeState::Exited
                        || one.unattended()
                        || one.connect != spec.connect
                        || one.cwd != cwd
                };
                let free = std::iter::once(preset.to_owned()).chain((2..).map(|n| format!("{preset}-{n}")));
                let mut free =
                    free.filter(|name| !taken.iter().any(|one| one.runtime_id.as_str() == name && other(one)));
                wanted["id"] = json!(free.next());
            }
        }
    }
    let shown = wanted["id"].as_str().map(str::to_owned).or_else(|| match &spec.connect {
        Connect::Command(command) => command.first().cloned(),
        Connect::Endpoint(endpoint) => Some(endpoint.clone()),
    });
    let shown = line(&shown.unwrap_or_default(), 200);
    print(&format!("starting {shown} … "))?;
    let start = Instant::now();
    let began: anyhow::Result<Value> = client.post("/v1/runtimes", &wanted, "starting the agent").await;
    let began = match began {
        Ok(began) => began,
        Err(error) => {
            print("failed\n")?;
            return Err(error);
        }
    };
    let runtime_id = began["runtime_id"].as_str().unwrap_or_default().to_owned();
    let is_new = !taken.iter().any(|one| one.runtime_id.as_str() == runtime_id);
    let problem = match started(client, &runtime_id, start).await? {
        Ok(runtime) => return Ok(AttachedRuntime { runtime, is_new }),
        Err(problem) => problem,
    };
    print("failed\n")?;
    // A runtime that was never ready is removed from the list.
    if problem.ended && is_new {
        let _ = client.delete(&format!("/v1/runtimes/{runtime_id}"), "removing the agent").await;
    }
    Err(CommandFailure::plain(format!("{shown} did not start: {}", problem.why)))
}

/// The body of the call that starts this runtime, without its name.
fn start_body(spec: &RuntimeSpec) -> anyhow::Result<Value> {
    let mut wanted = json!({
        "dialect": spec.dialect, "cwd": spec.cwd, "env": spec.env, "pass_env": spec.pass_env,
    });
    match &spec.connect {
        Connect::Command(command) => wanted["command"] = json!(command),
        Connect::Endpoint(endpoint) => wanted["connect"] = json!(endpoint),
    }
    if let Some(method) = &spec.auth_method {
        wanted["auth_method"] = json!(method);
    }
    if let Some(meta) = &spec.session_meta {
        wanted["session_meta"] = serde_json::from_str(meta.get())?;
    }
    Ok(wanted)
}

/// Why a runtime did not start.
struct StartProblem {
    why: String,
    /// The runtime has ended and is still in the list.
    ended: bool,
}

/// Waits until a runtime is ready or has ended.
async fn started(
    client: &Client,
    runtime_id: &str,
    start: Instant,
) -> anyhow::Result<Result<RuntimeInfo, StartProblem>> {
    loop {
        let there = client.runtimes().await?.into_iter().find(|one| one.runtime_id.as_str() == runtime_id);
        let ended = there.as_ref().is_some_and(|one| one.state == RuntimeState::Exited);
        let why = match there {
            Some(runtime) if runtime.state == RuntimeState::Ready => {
                let agent =
                    runtime.agent.as_deref().map(|agent| format!(" ({})", line(agent, 100))).unwrap_or_default();
                print(&format!("ready in {:.1} s{agent}\n", start.elapsed().as_secs_f64()))?;
                return Ok(Ok(runtime));
            }
            Some(runtime) if runtime.state == RuntimeState::Exited => {
                let why = runtime.problem.clone().unwrap_or_else(|| "it ended".into());
                let tail = runtime.stderr_tail.trim_end();
                if tail.is_empty() { why } else { format!("{why}; it said:\n{tail}") }
            }
            None => "it is gone".into(),
            Some(_) if start.elapsed() > AGENT_START => {
                "it is not ready after a long time; `plexus stop` stops it".into()
            }
            Some(_) => {
                tokio::time::sleep(POLL_EVERY).await;
                continue;
            }
        };
        return Ok(Err(StartProblem { why, ended }));
    }
}
