//! Starting a gateway for a command that needs one.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::client::Client;
use super::failure::CommandFailure;
use super::home::{GatewayState, Home};
use super::output::print;
use super::programs::this_program;

/// Time for a newly started gateway to respond.
const GATEWAY_START: Duration = Duration::from_secs(20);
/// Number of lines of a failed gateway's log in the error.
const LOG_LINES: usize = 10;
/// Time between two checks of a starting gateway.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// Returns a client of the running gateway, or of a newly started one.
pub(super) async fn running_or_started() -> anyhow::Result<Client> {
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
        file.map_err(|error| CommandFailure::plain(format!("cannot write {}: {error}", log.display())))?
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
        let exited = child.try_wait()?;
        if exited.is_some() || start.elapsed() > GATEWAY_START {
            let text = std::fs::read(&log).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n  ");
            if exited.is_none() {
                let _ = child.kill();
                let _ = child.wait();
            }
            let state = if exited.is_some() { "exited immediately" } else { "did not answer" };
            return Err(CommandFailure::plain(format!(
                "the gateway that was started {state}; its log {} ends:\n  {tail}",
                log.display()
            )));
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
}
