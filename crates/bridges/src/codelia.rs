//! `plexus bridge codelia`: a session of the gateway for Codelia's terminal UI, which starts this as if it were its runtime
//! (`CODELIA_RUNTIME_CMD=plexus CODELIA_RUNTIME_ARGS='bridge codelia'`).
//!
//! The UI protocol on stdin and stdout, a JSON-RPC message a line; the native WebSocket towards the gateway. It keeps what
//! the terminal UI must not see twice, and nothing else: the truth is the log, which it follows with its cursor for as long
//! as the terminal UI is there, over restarts of the gateway too. The agent is the gateway's, and stays.

mod events;
mod panels;
mod state;
#[cfg(test)]
mod tests;

use std::io::{BufRead as _, Read as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use plexus_client::{Client, ClientEvent, Follow, FollowStart};
use plexus_protocol::text::clean;
use plexus_protocol::{RuntimeId, SessionId, SessionInfo};
use state::{BridgeAction, BridgeState, BridgeTarget, CallPurpose, NoReply};

/// The longest line taken, in bytes; a prompt with images is one. A longer one ends the bridge.
const LINE_MAX: usize = 64 << 20;
/// Lines that wait; then stdin is not read.
const LINES: usize = 16;
/// How long a gateway that does not answer is asked again: it may be starting anew.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often.
const AGAIN: Duration = Duration::from_millis(250);
/// How long the terminal UI may take to show why there is nothing to serve.
const LAST_WORDS: Duration = Duration::from_millis(500);

type Called = (CallPurpose, Result<Value, NoReply>);

/// What a terminal UI is given.
pub struct CodeliaTarget {
    /// The session that it joins; none: it opens one …
    pub session: Option<SessionInfo>,
    /// … in this runtime, or the gateway's first.
    pub runtime: Option<RuntimeId>,
    /// What the terminal UI's user is told at the beginning.
    pub notice: Option<String>,
}

/// Serves a terminal UI on stdin and stdout until stdin ends.
///
/// # Errors
/// The gateway was not reached ([`plexus_client::Error`]), or a line of stdin cannot be read.
pub async fn serve(client: Client, target: CodeliaTarget) -> anyhow::Result<()> {
    let aim = match aim(&client, target).await {
        Ok(aim) => aim,
        Err(why) => {
            show_error(&why).await;
            return Err(why);
        }
    };
    let mut bridge = Bridging { client, desk: BridgeState::new(aim), calls: JoinSet::new(), session: None };
    let mut lines = lines();
    let mut orders = Vec::new();
    loop {
        let listens = bridge.desk.listens();
        tokio::select! {
            line = lines.recv() => match line {
                Some(Ok(line)) => bridge.desk.line(&line, &mut orders),
                Some(Err(why)) => return Err(why.into()),
                None => return Ok(()),
            },
            heard = next(&mut bridge.session), if listens => bridge.on_event(heard, &mut orders),
            Some(done) = bridge.calls.join_next() => {
                let (why, outcome) = done.context("a call to the gateway failed")?;
                bridge.desk.called(why, outcome, &mut orders);
            }
        }
        bridge.obey(std::mem::take(&mut orders)).await?;
    }
}

/// Shows why there is nothing to serve: the terminal UI shows what looks like a runtime's error, if it has the time to, and
/// leaves with its runtime.
pub async fn show_error(why: &anyhow::Error) {
    let words = clean(&format!("Error: {why:#}\n"));
    let _ = std::io::stderr().write_all(words.as_bytes());
    tokio::time::sleep(LAST_WORDS).await;
}

/// What the session that is followed has to say; for ever nothing, if there is none.
async fn next(session: &mut Option<Follow>) -> anyhow::Result<ClientEvent> {
    let heard = match session {
        Some(heard) => heard.next().await,
        None => std::future::pending().await,
    };
    match heard {
        Some(heard) => heard.map_err(|error| anyhow::anyhow!("following: {error}")),
        None => Err(anyhow::anyhow!("the session is no longer followed")),
    }
}

struct Bridging {
    client: Client,
    desk: BridgeState,
    calls: JoinSet<Called>,
    session: Option<Follow>,
}

impl Bridging {
    fn on_event(&mut self, heard: anyhow::Result<ClientEvent>, orders: &mut Vec<BridgeAction>) {
        match heard {
            Ok(heard) => {
                self.desk.on_event(heard, orders);
                // What is there already is told in one go.
                while self.desk.listens()
                    && let Some(Ok(heard)) = self.session.as_mut().and_then(Follow::ready)
                {
                    self.desk.on_event(heard, orders);
                }
            }
            Err(why) => {
                self.session = None;
                self.desk.lost(&format!("{why:#}"), orders);
            }
        }
    }

    async fn obey(&mut self, orders: Vec<BridgeAction>) -> anyhow::Result<()> {
        let mut said = String::new();
        for order in orders {
            match order {
                BridgeAction::Say(line) => {
                    said.push_str(&line);
                    said.push('\n');
                }
                BridgeAction::Log(line) => {
                    // Standard output is the protocol's alone.
                    let _ = std::io::stderr().write_all(clean(&format!("{line}\n")).as_bytes());
                }
                BridgeAction::Follow { session, runs, events } => {
                    let begin = FollowStart::Latest { runs, items: events };
                    let session: SessionId = session.parse().context("the session's identifier")?;
                    self.session = Some(self.client.attach_native(Some(&session), begin));
                }
                BridgeAction::Call { why, method, params, again } => {
                    let client = self.client.clone();
                    self.calls.spawn(async move { (*why, reach(client, &method, &params, again).await) });
                }
            }
        }
        if !said.is_empty() {
            let mut stdout = tokio::io::stdout();
            stdout.write_all(said.as_bytes()).await?;
            stdout.flush().await?;
        }
        Ok(())
    }
}

/// Calls the gateway, and again while it does not answer. `again`: what may have been heard may be said twice.
async fn reach(client: Client, method: &str, params: &Value, again: bool) -> Result<Value, NoReply> {
    let began = Instant::now();
    loop {
        let why = match client.call_alone(method, params).await {
            Ok(result) => return Ok(serde_json::from_str(result.get()).unwrap_or_default()),
            Err(error) => NoReply::from(error),
        };
        match why {
            NoReply::Refused(_) => return Err(why),
            NoReply::Lost(_) if !again => return Err(why),
            NoReply::Lost(_) | NoReply::NotSent(_) if began.elapsed() > PATIENCE => return Err(why),
            NoReply::Lost(_) | NoReply::NotSent(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// What was asked for, looked up.
async fn aim(client: &Client, target: CodeliaTarget) -> anyhow::Result<BridgeTarget> {
    let cwd = std::env::current_dir().context("the current folder")?;
    let CodeliaTarget { session, runtime, notice } = target;
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|why| anyhow::anyhow!("the system provides no random numbers: {why}"))?;
    let key = data_encoding::BASE32_NOPAD.encode(&random).to_lowercase();
    let mut aim =
        BridgeTarget { session: None, runtime: None, capabilities: None, cwd: cwd.display().to_string(), notice, key };
    let runtimes = client.runtimes().await?;
    let of = |id: &RuntimeId| runtimes.iter().find(|one| one.runtime_id == *id)?.capabilities.clone();
    aim.capabilities = runtimes.first().and_then(|runtime| runtime.capabilities.clone());
    if let Some(runtime) = runtime {
        (aim.capabilities, aim.runtime) = (of(&runtime), Some(runtime.to_string()));
    }
    if let Some(info) = session {
        aim.capabilities = of(&info.runtime_id);
        aim.session = Some((info.session_id.to_string(), info.runtime_id.to_string(), info.dialect));
    }
    Ok(aim)
}

/// The lines of stdin. A thread of its own reads them: it ends with the program.
fn lines() -> mpsc::Receiver<std::io::Result<String>> {
    let (tx, rx) = mpsc::channel(LINES);
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
                Err(why) => Err(why),
            };
            let over = outcome.is_err();
            if tx.blocking_send(outcome).is_err() || over {
                return;
            }
        }
    });
    rx
}
