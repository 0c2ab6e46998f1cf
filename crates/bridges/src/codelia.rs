//! `plexus bridge codelia`: a session of the gateway for Codelia's terminal UI, which starts the bridge in place of its runtime
//! (`CODELIA_RUNTIME_CMD=plexus CODELIA_RUNTIME_ARGS='bridge codelia'`).
//!
//! The bridge speaks the UI protocol on stdin and stdout, one JSON-RPC message per line, and the native WebSocket protocol with the
//! gateway. The log is the source of truth: the bridge follows it with a cursor, across restarts of the gateway, and stores only the state
//! that avoids duplicates in the terminal UI. The agent belongs to the gateway, and outlives the bridge.

mod events;
mod panels;
mod state;
#[cfg(test)]
mod tests;

use std::io::{BufRead as _, Read as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use plexus_client::{Client, ClientEvent, Follow, FollowStart};
use plexus_protocol::text::clean;
use plexus_protocol::{RuntimeId, SessionInfo};
use state::{BridgeAction, BridgeState, BridgeTarget, CallPurpose, NoReply, Session};

/// Maximum length of a line, in bytes; a prompt with images is one line. A longer line ends the bridge.
const LINE_MAX: usize = 64 << 20;
/// Maximum number of queued lines; at this many stdin is not read.
const LINES_QUEUED: usize = 16;
/// Time that calls are retried while the gateway does not respond: it may be restarting.
const RETRY_TIME: Duration = Duration::from_secs(30);
/// The pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// Time for the terminal UI to show the error before the bridge ends.
const ERROR_DISPLAY_TIME: Duration = Duration::from_millis(500);

type Called = (CallPurpose, Result<Box<RawValue>, NoReply>);

/// The session and the runtime that the bridge serves.
pub struct CodeliaTarget {
    /// The session to join; `None` opens one.
    pub session: Option<SessionInfo>,
    /// The runtime of new sessions; `None` for the gateway's first.
    pub runtime: Option<RuntimeId>,
    /// A notice shown at the start.
    pub notice: Option<String>,
}

/// Serves a terminal UI on stdin and stdout until stdin ends.
///
/// # Errors
/// The gateway was not reached ([`plexus_client::Error`]), or a line of stdin cannot be read.
pub async fn serve(client: Client, target: CodeliaTarget) -> anyhow::Result<()> {
    let resolved = match resolve_target(&client, target).await {
        Ok(resolved) => resolved,
        Err(reason) => {
            show_error(&reason).await;
            return Err(reason);
        }
    };
    let mut bridge = Bridge { client, state: BridgeState::new(resolved), calls: JoinSet::new(), session: None };
    let mut lines = lines();
    let mut actions = Vec::new();
    loop {
        let can_take_events = bridge.state.can_take_events();
        tokio::select! {
            line = lines.recv() => match line {
                Some(Ok(line)) => bridge.state.line(&line, &mut actions),
                Some(Err(reason)) => return Err(reason.into()),
                None => return Ok(()),
            },
            event = next(&mut bridge.session), if can_take_events => bridge.on_event(event, &mut actions),
            Some(done) = bridge.calls.join_next() => {
                let (purpose, outcome) = done.context("a call to the gateway failed")?;
                bridge.state.on_outcome(purpose, outcome, &mut actions);
            }
        }
        bridge.perform(std::mem::take(&mut actions)).await?;
    }
}

/// Reports the error that prevents serving: the terminal UI shows output that looks like a runtime's error, if it has enough time, and
/// exits with its runtime.
pub async fn show_error(reason: &anyhow::Error) {
    let message = clean(&format!("Error: {reason:#}\n"));
    let _ = std::io::stderr().write_all(message.as_bytes());
    tokio::time::sleep(ERROR_DISPLAY_TIME).await;
}

/// The next event of the followed session; pending without one.
async fn next(session: &mut Option<Follow>) -> anyhow::Result<ClientEvent> {
    let event = match session {
        Some(event) => event.next().await,
        None => std::future::pending().await,
    };
    match event {
        Some(event) => event.map_err(|error| anyhow::anyhow!("following: {error}")),
        None => Err(anyhow::anyhow!("the session is no longer followed")),
    }
}

struct Bridge {
    client: Client,
    state: BridgeState,
    calls: JoinSet<Called>,
    session: Option<Follow>,
}

impl Bridge {
    fn on_event(&mut self, event: anyhow::Result<ClientEvent>, actions: &mut Vec<BridgeAction>) {
        match event {
            Ok(event) => {
                self.state.on_event(event, actions);
                // Events that have already arrived are handled together.
                while self.state.can_take_events()
                    && let Some(Ok(event)) = self.session.as_mut().and_then(Follow::ready)
                {
                    self.state.on_event(event, actions);
                }
            }
            Err(reason) => {
                self.session = None;
                self.state.lost(&format!("{reason:#}"), actions);
            }
        }
    }

    async fn perform(&mut self, actions: Vec<BridgeAction>) -> anyhow::Result<()> {
        let mut output = String::new();
        for action in actions {
            match action {
                BridgeAction::Send(line) => {
                    output.push_str(&line);
                    output.push('\n');
                }
                BridgeAction::Log(line) => {
                    // Standard output carries only the protocol.
                    let _ = std::io::stderr().write_all(clean(&format!("{line}\n")).as_bytes());
                }
                BridgeAction::Follow { session, runs, events } => {
                    let begin = FollowStart::Latest { runs, items: events };
                    self.session = Some(self.client.attach_native(Some(&session), begin));
                }
                BridgeAction::Call { purpose, method, params, retry } => {
                    let client = self.client.clone();
                    self.calls.spawn(async move { (*purpose, call_gateway(client, &method, &params, retry).await) });
                }
            }
        }
        if !output.is_empty() {
            let mut stdout = tokio::io::stdout();
            stdout.write_all(output.as_bytes()).await?;
            stdout.flush().await?;
        }
        Ok(())
    }
}

/// Calls the gateway; retries while it does not respond. With `retry`, a call that may have been received is retried too.
async fn call_gateway(client: Client, method: &str, params: &Value, retry: bool) -> Result<Box<RawValue>, NoReply> {
    let began = Instant::now();
    loop {
        let reason = match client.call_alone(method, params).await {
            Ok(result) => return Ok(result),
            Err(error) => NoReply::from(error),
        };
        match reason {
            NoReply::Refused(_) => return Err(reason),
            NoReply::Lost(_) if !retry => return Err(reason),
            NoReply::Lost(_) | NoReply::NotSent(_) if began.elapsed() > RETRY_TIME => return Err(reason),
            NoReply::Lost(_) | NoReply::NotSent(_) => tokio::time::sleep(RETRY_PAUSE).await,
        }
    }
}

/// Resolves the session, the runtime and the capabilities.
async fn resolve_target(client: &Client, target: CodeliaTarget) -> anyhow::Result<BridgeTarget> {
    let cwd = std::env::current_dir().context("the current folder")?;
    let CodeliaTarget { session, runtime, notice } = target;
    let mut random = [0; 10];
    getrandom::fill(&mut random)
        .map_err(|reason| anyhow::anyhow!("the system provides no random numbers: {reason}"))?;
    let key = data_encoding::BASE32_NOPAD.encode(&random).to_lowercase();
    let mut resolved =
        BridgeTarget { session: None, runtime: None, capabilities: None, cwd: cwd.display().to_string(), notice, key };
    let runtimes = client.runtimes().await?;
    let capabilities = |id: &RuntimeId| runtimes.iter().find(|one| one.runtime_id == *id)?.capabilities.clone();
    resolved.capabilities = runtimes.first().and_then(|runtime| runtime.capabilities.clone());
    if let Some(runtime) = runtime {
        (resolved.capabilities, resolved.runtime) = (capabilities(&runtime), Some(runtime));
    }
    if let Some(info) = session {
        resolved.capabilities = capabilities(&info.runtime_id);
        resolved.session = Some(Session { id: info.session_id, runtime: Some(info.runtime_id), dialect: info.dialect });
    }
    Ok(resolved)
}

/// Reads the lines of stdin in a thread of its own, which ends with the program.
fn lines() -> mpsc::Receiver<std::io::Result<String>> {
    let (tx, rx) = mpsc::channel(LINES_QUEUED);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let outcome = match input.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) if line.len() >= LINE_MAX && line.last() != Some(&b'\n') => {
                    Err(std::io::Error::other(format!("a line on stdin has more than {LINE_MAX} bytes")))
                }
                Ok(_) => Ok(String::from_utf8_lossy(&line).into_owned()),
                Err(reason) => Err(reason),
            };
            let ended = outcome.is_err();
            if tx.blocking_send(outcome).is_err() || ended {
                return;
            }
        }
    });
    rx
}
