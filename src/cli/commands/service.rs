//! `plexus service`: the gateway as a service of its user, under systemd or launchd. [`service`](crate::cli::service) decides the steps,
//! which run here.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;

use super::logs::LogsArgs;
use crate::cli::failure::{CommandFailure, CommandResult, NO_GATEWAY};
use crate::cli::home::{GatewayState, Home, Running};
use crate::cli::log_source::LogSource;
use crate::cli::output::{line, notice, print, print_json};
use crate::cli::programs::{CommandLine, run_within};
use crate::cli::service::{self, Facts, LINGER_FILE, MESSAGE_MAX, Manager, Step, service_state};

/// Time for a command of the service manager; longer than the gateway has to stop.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// Time for the gateway of a started service to respond.
const GATEWAY_START: Duration = Duration::from_secs(20);
/// Time between two checks of a starting or stopping service.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// Run the gateway as a service of your user (systemd, launchd)
#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Install the service and start it, also without a login
    Install(InstallArgs),
    /// Stop the gateway and remove the service; agents continue
    Uninstall,
    /// Show whether the service is installed and active; exit code 69 if it is not active
    Status(ServiceStatusArgs),
    /// Print the log of the service
    Logs(LogsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Replace an installed service with other text
    #[arg(long)]
    force: bool,
    /// Print the service's file and the commands, without running them
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServiceStatusArgs {
    /// Output JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(command: ServiceCommand) -> CommandResult {
    let home = Home::find()?;
    match command {
        ServiceCommand::Install(args) => install(&home, &args).await,
        ServiceCommand::Uninstall => uninstall(&home).await,
        ServiceCommand::Status(args) => status(&home, args.json).await,
        ServiceCommand::Logs(args) => {
            let manager = service::manager()?;
            let state = service_state(manager).await.map_err(|reason| unknown_state(&reason))?;
            if state.file.is_none() {
                return Err(CommandFailure::plain(NOT_INSTALLED));
            }
            LogSource::for_service(manager)?.print(args.lines, args.follow).await
        }
    }
}

fn unknown_state(reason: &str) -> anyhow::Error {
    CommandFailure::plain(format!("the state of the service is unknown: {reason}"))
}

/// The message for a service without a file.
const NOT_INSTALLED: &str = "the service is not installed: `plexus service install` installs it";

async fn install(home: &Home, args: &InstallArgs) -> CommandResult {
    let facts = service::facts(home).await?;
    let steps = service::install(&facts, args.force).map_err(CommandFailure::plain)?;
    if args.dry_run {
        let commands: String = steps.iter().map(|step| format!("{step}\n")).collect();
        print(&format!("{}:\n{}\n{commands}", facts.file.display(), facts.text))?;
        return Ok(0);
    }
    if steps.is_empty() {
        print("the service is already installed and running; `plexus service status` shows it\n")?;
        return Ok(0);
    }
    home.create()?;
    run_steps(&steps, &facts, home).await?;
    let Running { url, pid, .. } = wait_for_gateway(home, facts.manager).await?;
    print(&format!(
        "the gateway runs as a service at {url} (process {pid})\n`plexus open` opens its page, `plexus service logs` \
         prints its log\n"
    ))?;
    Ok(0)
}

/// Waits until the gateway of the started service responds.
async fn wait_for_gateway(home: &Home, manager: Manager) -> anyhow::Result<Running> {
    let start = Instant::now();
    loop {
        let state = service_state(manager).await.map_err(|reason| unknown_state(&reason))?;
        if let GatewayState::Up(running) = home.gateway().await?
            && state.runs(running.pid)
        {
            return Ok(running);
        }
        if start.elapsed() > GATEWAY_START {
            return Err(CommandFailure::plain(format!(
                "the service is {}, but its gateway did not respond within {} s: `plexus service logs` shows the reason",
                state.state,
                GATEWAY_START.as_secs()
            )));
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}

async fn uninstall(home: &Home) -> CommandResult {
    let facts = service::facts(home).await?;
    let steps = service::uninstall(&facts).map_err(CommandFailure::plain)?;
    if steps.is_empty() {
        print("the service is not installed\n")?;
        return Ok(0);
    }
    run_steps(&steps, &facts, home).await?;
    let holders = plexus_holder::client::find_holders(&home.dir().join(plexus::HOLDERS));
    let running: BTreeSet<&str> =
        holders.iter().filter(|holder| !holder.left).map(|holder| holder.runtime.as_str()).collect();
    let mut out = "the service is stopped and removed\n".to_owned();
    if !running.is_empty() {
        let names = line(&running.into_iter().collect::<Vec<_>>().join(", "), MESSAGE_MAX);
        let ends_at_logout = facts.linger_set || facts.linger == Some(false);
        let end = if ends_at_logout { " until your last logout" } else { "" };
        out.push_str(&format!(
            "agents continue{end}: {names}; `plexus stop NAME` stops one, `plexus serve` takes them over\n"
        ));
    }
    let (dir, kib) = (home.dir().display(), folder_size(home.dir()).div_ceil(1024));
    let remove = CommandLine::new("rm", &["-r", &dir.to_string()]);
    out.push_str(&format!("sessions and settings stay in {dir} ({kib} KiB); `{remove}` removes them\n"));
    print(&out)?;
    Ok(0)
}

/// The size of all files of a folder, in bytes. What cannot be read is left out.
fn folder_size(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => folder_size(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

async fn run_steps(steps: &[Step], facts: &Facts, home: &Home) -> anyhow::Result<()> {
    let marker = home.dir().join(LINGER_FILE);
    for step in steps {
        match step {
            Step::Write(path) => {
                let folder = path.parent().context("the service's file has no folder")?;
                let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, &facts.text));
                written.with_context(|| format!("cannot write {}", path.display()))?;
            }
            Step::Remove(path) => {
                std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
            }
            Step::Run(command) => run_command(command).await?,
            Step::Stop(command) => {
                run_command(command).await?;
                wait_for_end(facts.manager).await?;
            }
            // The file is written first: after a crash between the two, the removal disables what was off before.
            Step::EnableLinger(command) => {
                std::fs::write(&marker, "").with_context(|| format!("cannot write {}", marker.display()))?;
                if let Err(error) = run_command(command).await {
                    let _ = std::fs::remove_file(&marker);
                    notice(&format!(
                        "{error}; the service ends when you log out, until an administrator runs `{command} {}`",
                        rustix::process::getuid().as_raw()
                    ));
                    continue;
                }
            }
            Step::DisableLinger(command) => {
                run_command(command).await?;
                std::fs::remove_file(&marker).with_context(|| format!("cannot remove {}", marker.display()))?;
            }
        }
        print(&format!("  {step}\n"))?;
    }
    Ok(())
}

async fn run_command(command: &CommandLine) -> anyhow::Result<()> {
    let output = run_within(command, STEP_TIMEOUT).await?;
    if output.success {
        return Ok(());
    }
    Err(CommandFailure::plain(format!("`{command}` failed: {}", line(&output.stderr, MESSAGE_MAX))))
}

/// Waits until the service has ended: launchd does not wait itself, and refuses to load a service that is ending.
async fn wait_for_end(manager: Manager) -> anyhow::Result<()> {
    let start = Instant::now();
    while service_state(manager).await.is_ok_and(|state| state.pid.is_some()) {
        if start.elapsed() > STEP_TIMEOUT {
            return Err(CommandFailure::plain(format!("the service did not stop within {} s", STEP_TIMEOUT.as_secs())));
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
    Ok(())
}

async fn status(home: &Home, json: bool) -> CommandResult {
    let facts = service::facts(home).await?;
    let state = facts.state.map_err(|reason| unknown_state(&reason))?;
    let code = if state.active { 0 } else { NO_GATEWAY };
    if json {
        let mut report = json!(state);
        report["manager"] = json!(facts.manager);
        report["linger"] = json!(facts.linger);
        report["linger_set"] = json!(facts.linger_set);
        print_json(&report)?;
        return Ok(code);
    }
    let Some(file) = &state.file else {
        print(&format!("{NOT_INSTALLED}\n"))?;
        return Ok(code);
    };
    let since = state.since.map(|since| format!(" since {since}")).unwrap_or_default();
    let process = state.pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    let mut out = format!("installed  {}\n", file.display());
    out.push_str(&format!("enabled    {}\n", if state.enabled { "yes" } else { "no" }));
    out.push_str(&format!("state      {}{since}{process}\n", line(&state.state, MESSAGE_MAX)));
    let linger = match (facts.linger, facts.linger_set) {
        (Some(true), true) => Some("on, enabled by `plexus service install`"),
        (Some(true), false) => Some("on"),
        (Some(false), _) => Some("off: the service ends when you log out"),
        (None, _) => None,
    };
    out.extend(linger.map(|linger| format!("linger     {linger}\n")));
    print(&out)?;
    Ok(code)
}
