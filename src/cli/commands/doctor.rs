//! `plexus doctor`: checks the installation and suggests fixes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use plexus::config::LISTEN;
use plexus_client::calls;
use plexus_protocol::RuntimeInfo;
use plexus_protocol::api::operation::{self, Verdict};

use crate::cli::checks::{Check, Checks, DETAIL, Surroundings, check_modes, check_runtime, surroundings};
use crate::cli::client::Client;
use crate::cli::discover;
use crate::cli::failure::{CommandResult, FAILURE};
use crate::cli::home::{GatewayState, Home};
use crate::cli::output::{Paint, line, print, print_json};
use crate::cli::programs::this_program;

/// Check the installation and suggest fixes
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Start each installed agent, wait for its handshake, then stop it
    #[arg(long)]
    start: bool,
    /// Trust the clock of this machine despite its jump, so that old events are removed again
    #[arg(long)]
    confirm_clock: bool,
    /// The configuration file [default: plexus.toml in the state folder, if it exists]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Output JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: DoctorArgs) -> CommandResult {
    let mut checks = Checks::default();
    let home = Home::find()?;
    if args.confirm_clock {
        Client::find().await?.run(calls::confirm_clock(), "the clock").await?;
    }
    let exe = this_program()?;
    check_modes(&mut checks, home.dir());
    // The configured port, which the next gateway will use.
    let configured = discover::config(args.config.clone(), home.dir(), &exe);
    let listen = configured.ok().flatten().map_or(LISTEN, |(_, config)| config.listen);
    let runtimes = check_gateway(&mut checks, &home, listen).await?;
    let found = surroundings(&mut checks, &home, &exe, args.config, runtimes.as_deref(), args.start).await;
    let failed = checks.0.iter().any(|check| check.verdict == Verdict::Fail);
    if args.json {
        let Surroundings { agents, servers, holders, links } = found;
        let report = serde_json::json!({
            "checks": checks.0, "agents": agents, "servers": servers, "holders": holders, "links": links,
        });
        print_json(&report)?;
    } else {
        let paint = Paint::stdout();
        let mut out = String::new();
        for Check { check, verdict, found, fix } in &checks.0 {
            let mark = match verdict {
                Verdict::Ok => paint.green("ok  "),
                Verdict::Warn => paint.yellow("warn"),
                Verdict::Fail | Verdict::Unknown => paint.red("fail"),
            };
            let fix = fix.as_ref().map(|fix| format!("; {fix}")).unwrap_or_default();
            out.push_str(&format!("{mark}  {check:<18}  {}\n", line(&format!("{found}{fix}"), DETAIL)));
        }
        print(&out)?;
    }
    Ok(if failed { FAILURE } else { 0 })
}

/// Checks whether a gateway is running; returns its runtimes.
async fn check_gateway(
    checks: &mut Checks,
    home: &Home,
    listen: SocketAddr,
) -> anyhow::Result<Option<Vec<Arc<RuntimeInfo>>>> {
    match home.gateway().await? {
        GatewayState::Up(running) => {
            let version = env!("CARGO_PKG_VERSION");
            let at = format!("{} (process {}, version {})", running.url, running.pid, running.version);
            if running.version == version {
                checks.ok("gateway", at);
            } else {
                checks.warn(
                    "gateway",
                    format!("{at}; this program is {version}"),
                    "restart it to use the same version",
                );
            }
            let runtimes_and_checks = match Client::to(home.clone(), running) {
                Ok(client) => match client.runtimes().await {
                    Ok(runtimes) => Ok((runtimes, gateway_checks(&client).await)),
                    Err(reason) => Err(reason),
                },
                Err(reason) => Err(reason),
            };
            match runtimes_and_checks {
                Ok((runtimes, gateway_checks)) => {
                    checks.ok("signing in", format!("works; {} runtimes attached", runtimes.len()));
                    gateway_checks.into_iter().for_each(|operation::Check { name, state, detail, fix }| {
                        checks.add(&name, state, detail, fix);
                    });
                    runtimes.iter().for_each(|runtime| check_runtime(checks, runtime));
                    Ok(Some(runtimes))
                }
                Err(reason) => {
                    checks.fail("signing in", format!("{reason:#}"), "check that PLEXUS_HOME is the gateway's");
                    Ok(Some(Vec::new()))
                }
            }
        }
        GatewayState::Down(reason) => {
            checks.warn("gateway", format!("not running: {reason}"), "start it with `plexus serve`");
            match tokio::net::TcpListener::bind(listen).await {
                Ok(_) => checks.ok("port", format!("{listen} is free")),
                Err(reason) => {
                    let fix = "stop the program that uses it, or start with `plexus serve --listen 127.0.0.1:0`";
                    checks.fail("port", format!("cannot listen on {listen}: {reason}"), fix);
                }
            }
            Ok(None)
        }
    }
}

/// The gateway's own checks: its clock, whether it prevents sleep, and the accounts near their memory limit. An older gateway without these
/// checks is not a failure.
async fn gateway_checks(client: &Client) -> Vec<operation::Check> {
    let mut checks = Vec::new();
    for (only, prefix) in [("clock", "clock"), ("awake", "keep awake"), ("memory", "memory ")] {
        let report = client.run(calls::doctor(Some(only)), "health checks").await;
        // An older gateway responds with all checks.
        let reported = report.into_iter().flat_map(|report| report.checks);
        checks.extend(reported.filter(|check| check.name.starts_with(prefix)));
    }
    checks
}
