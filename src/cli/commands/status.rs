//! `plexus status`: the running gateway, its agents and its work, on one screen.

use std::sync::Arc;

use clap::Args;
use plexus_client::calls;
use plexus_protocol::{RuntimeInfo, RuntimeState, SessionState, Timestamp};
use serde::Serialize;
use serde_json::json;

use crate::cli::client::Client;
use crate::cli::failure::{CommandResult, NO_GATEWAY};
use crate::cli::home::{GatewayState, Home, Running};
use crate::cli::output::{Paint, TITLE, age, line, print, print_json, wire_name};
use crate::cli::service::{ServiceState, installed_service};

/// Maximum length of an address, or of a reason, in characters.
const REASON_MAX: usize = 200;

/// Show the gateway, its agents and its work; exit code 69 if none is running
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Output JSON
    #[arg(long)]
    json: bool,
}

/// The state of a running gateway.
#[derive(Debug, Serialize)]
struct GatewayStatus {
    gateway: Running,
    /// The service that the gateway is; `None` if it was started by hand.
    service: Option<ServiceState>,
    addresses: Vec<String>,
    runtimes: Vec<Arc<RuntimeInfo>>,
    /// The number of sessions that can be prompted.
    open_sessions: usize,
    running_runs: usize,
    open_requests: usize,
}

pub(crate) async fn run(args: StatusArgs) -> CommandResult {
    let home = Home::find()?;
    let running = match home.gateway().await? {
        GatewayState::Up(running) => running,
        GatewayState::Down(reason) => return print_absence(&reason, args.json).await,
    };
    let status = read_status(home, running).await?;
    match args.json {
        true => print_json(&status)?,
        false => print(&format_status(&status, Paint::stdout()))?,
    }
    Ok(0)
}

/// Prints that no gateway is running, and how to start it.
async fn print_absence(reason: &str, json: bool) -> CommandResult {
    let service = installed_service().await;
    let fix = match &service {
        Some((manager, state)) => format!("the service is {}: `{}` starts it", state.state, manager.restart()),
        None => "`plexus serve` starts one".into(),
    };
    match json {
        true => print_json(&json!({ "gateway": null, "reason": reason, "service": service.map(|(_, state)| state) }))?,
        false => print(&format!("gateway   not running: {}; {fix}\n", line(reason, REASON_MAX)))?,
    }
    Ok(NO_GATEWAY)
}

async fn read_status(home: Home, running: Running) -> anyhow::Result<GatewayStatus> {
    let client = Client::to(home, running.clone())?;
    let access = client.run(calls::listeners(), "reading the gateway's addresses").await?;
    let mut addresses = vec![running.url.clone()];
    let others = access.tls.into_iter().flat_map(|tls| tls.origins).chain(access.proxy).chain(access.public_url);
    for address in others {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    let requests = client.requests(false).await?;
    let sessions = client.list_sessions("false").await?.items;
    let count = |states: &[SessionState]| sessions.iter().filter(|session| states.contains(&session.state)).count();
    Ok(GatewayStatus {
        service: installed_service().await.map(|(_, state)| state).filter(|service| service.runs(running.pid)),
        addresses,
        runtimes: client.runtimes().await?,
        open_sessions: count(&[SessionState::Idle, SessionState::Running, SessionState::Waiting]),
        running_runs: count(&[SessionState::Running, SessionState::Waiting]),
        open_requests: requests.items.len() + requests.unreadable,
        gateway: running,
    })
}

fn format_status(status: &GatewayStatus, paint: Paint) -> String {
    let GatewayStatus { gateway, service, addresses, runtimes, .. } = status;
    let since = serde_json::from_value::<Timestamp>(json!(gateway.started_at));
    let since = since.map(|at| format!(" for {}", age(at))).unwrap_or_default();
    let kind = if service.is_some() { "as a service" } else { "by hand" };
    let version = line(&gateway.version, 40);
    let mut rows = vec![("gateway", format!("running{since}, {kind} (process {}, version {version})", gateway.pid))];
    rows.extend(
        addresses.iter().enumerate().map(|(at, url)| (if at == 0 { "address" } else { "" }, line(url, REASON_MAX))),
    );
    let runtime = |runtime: &Arc<RuntimeInfo>| {
        let state = match runtime.state {
            RuntimeState::Ready => paint.green("ready"),
            RuntimeState::Exited if runtime.problem.is_some() => paint.red("failed"),
            state => paint.yellow(&wire_name(state)),
        };
        let problem = runtime.problem.as_ref().filter(|_| runtime.state != RuntimeState::Ready);
        let problem = problem.map(|problem| format!(": {}", line(problem, TITLE))).unwrap_or_default();
        format!("{} {state}{problem}", runtime.runtime_id)
    };
    let agents = runtimes.iter().map(runtime).enumerate();
    rows.extend(agents.map(|(at, text)| (if at == 0 { "agents" } else { "" }, text)));
    if runtimes.is_empty() {
        rows.push(("agents", "none: `plexus run` starts one".into()));
    }
    let (runs, requests) = (plural(status.running_runs, "run"), plural(status.open_requests, "request"));
    rows.push(("sessions", format!("{} open, {runs} in progress, {requests} open", status.open_sessions)));
    rows.iter().map(|(name, text)| format!("{name:<9} {text}\n")).collect()
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_fits_on_one_screen() {
        let running = r#"{"url":"http://127.0.0.1:1","pid":7,"version":"1.2.3"}"#;
        let status = GatewayStatus {
            gateway: serde_json::from_str(running).unwrap(),
            service: Some(ServiceState::default()),
            addresses: vec!["http://127.0.0.1:1".into(), "https://box:2".into()],
            runtimes: Vec::new(),
            open_sessions: 2,
            running_runs: 1,
            open_requests: 0,
        };
        let expected = "gateway   running, as a service (process 7, version 1.2.3)\naddress   http://127.0.0.1:1\n          \
                        https://box:2\nagents    none: `plexus run` starts one\nsessions  2 open, 1 run in progress, 0 requests open\n";
        assert_eq!(format_status(&status, Paint::none()), expected);
    }
}
