//! `plexus version`: the versions of this program and of the running gateway.

use clap::Args;
use plexus_holder::wire;
use serde_json::json;

use crate::cli::failure::CommandResult;
use crate::cli::home::{GatewayState, Home, Running};
use crate::cli::output::{Paint, line, print, print_json};
use crate::cli::service::{installed_service, restart_advice};

/// Maximum length of a gateway's version, in characters.
const VERSION_MAX: usize = 40;

/// Show the versions of this program and of the running gateway
#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    /// Output JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: VersionArgs) -> CommandResult {
    let version = env!("CARGO_PKG_VERSION");
    // A build is given the commit in this variable.
    let commit = option_env!("PLEXUS_COMMIT").filter(|commit| !commit.is_empty());
    let (protocol, oldest, newest) = (plexus::router::PROTOCOL, wire::OLDEST, wire::VERSION);
    let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    let running = match Home::find()?.gateway().await? {
        GatewayState::Up(running) => Some(running),
        GatewayState::Down(_) => None,
    };
    let mut difference = None;
    if let Some(Running { version: other, pid, .. }) = running.as_ref().filter(|running| running.version != version) {
        let service = installed_service().await.filter(|(_, service)| service.runs(*pid));
        let advice = restart_advice(service.map(|(manager, _)| manager), *pid);
        let other = line(other, VERSION_MAX);
        difference = Some(format!("the running gateway has version {other}, this program {version}: {advice}"));
    }
    if args.json {
        print_json(&json!({
            "version": version, "commit": commit, "protocol": protocol, "holder_protocol": [oldest, newest],
            "platform": platform, "gateway": running, "difference": difference,
        }))?;
        return Ok(0);
    }
    let commit = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    let gateway = running.map_or_else(
        || "not running".into(),
        |running| format!("{} (process {})", line(&running.version, VERSION_MAX), running.pid),
    );
    let difference = difference.map(|text| format!("{}\n", Paint::stdout().yellow(&text))).unwrap_or_default();
    print(&format!(
        "plexus    {version}{commit}\nprotocol  {protocol} (holders: {oldest} to {newest})\nplatform  {platform}\n\
         gateway   {gateway}\n{difference}"
    ))?;
    Ok(0)
}
