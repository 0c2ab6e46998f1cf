//! Continuing with a process that an earlier gateway started, and with a holder whose connection was lost.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{DialectSource, HandoverState, ProcessTransport, StartMode, drive};
use crate::RuntimeSettings;
use crate::driver::{CloseReason, Driver, StepCause};
use crate::holder_reconnect::{self, Rejoined};
use crate::line_reader::{LineReader, SkippedLine};
use crate::saved_steps::{self, SavedStep, StepEntry};
use crate::session_routes::refusal;
use plexus_dialects::{MakeDialect, Outbox, RequestKey, RuntimeCommand, RuntimeEvent};
use plexus_holder::wire::Welcome;
use plexus_holder::{HolderClient, HolderNotFound};
use plexus_protocol::{Decision, RuntimeInfo, RuntimeState};
use plexus_sessions::{DriverEnd, ReattachedSession, RuntimeExit, RuntimeMessage, SessionSender};

/// Time until a holder that did not respond is tried again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A runtime that outlived an earlier gateway, as described by its holder and its last state.
pub(crate) struct SurvivingProcess {
    pub(crate) holder: HolderClient,
    pub(crate) welcome: Welcome,
    pub(crate) generation: u64,
    /// The sessions that belong to this process.
    pub(crate) sessions: Vec<ReattachedSession>,
}

/// A holder that did not respond in time, and the sessions that wait for its runtime.
pub(crate) struct Late {
    pub(crate) path: PathBuf,
    pub(crate) find: fn(&str) -> Option<MakeDialect>,
    /// Sessions of the holder's runtime: those that belong to its process continue, the others end.
    pub(crate) sessions: Vec<ReattachedSession>,
}

/// Waits for a holder that did not respond in time, for as long as it exists, and reports that; then drives its runtime. Until then no
/// other runtime is started in its place, and its sessions' orders wait.
pub(crate) async fn drive_late(late: Late, mut end: DriverEnd, settings: Arc<RuntimeSettings>, leave: Arc<Notify>) {
    let Late { path, find, sessions } = late;
    let mut stopped = false;
    let found = async {
        loop {
            match HolderClient::find(&path).await {
                Ok(found) => break Ok(found),
                Err(HolderNotFound::NoResponse(_)) => tokio::time::sleep(LOOK_AGAIN).await,
                Err(HolderNotFound::Ended(reason)) => break Err(format!("its holder is gone: {reason}")),
                Err(HolderNotFound::Unusable(reason)) => break Err(reason),
            }
        }
    };
    let outcome = tokio::select! {
        biased;
        () = end.stop.notified() => {
            holder_reconnect::end_silent(&path, &settings).await;
            stopped = true;
            Err(CloseReason::Stopped.into_message())
        }
        () = leave.notified() => return,
        found = found => found.and_then(|(holder, welcome)| {
            let saved = welcome.blobs.iter().rev().find_map(|(_, blob)| Some(HandoverState::read(blob)?.0));
            let restorable = saved.and_then(|saved| Some((find(&saved.spec.dialect)?, saved)));
            let (make, saved) = restorable.ok_or("the state saved by an earlier gateway cannot be read")?;
            Ok((holder, welcome, make, saved))
        }),
    };
    let exited =
        |reason: &str| RuntimeMessage::Exited(RuntimeExit { reason: Some(reason.into()), ..RuntimeExit::default() });
    match outcome {
        Ok((holder, welcome, make, saved)) => {
            let identity = (holder.instance().to_owned(), holder.is_nameless());
            let belongs =
                |session: &ReattachedSession| session.start.belongs(&identity.0, identity.1, saved.generation);
            let (mut sessions, others): (Vec<_>, Vec<_>) = sessions.into_iter().partition(belongs);
            for other in others {
                other.sender.put(exited("its agent has ended: another process has its id")).await;
            }
            sessions
                .iter_mut()
                .for_each(|session| session.processed = session.start.last_stop(&identity.0, identity.1));
            end.info.send_modify(|info| {
                let (spec, cwd) = (&saved.spec, saved.spec.cwd.to_string_lossy().into_owned());
                *info = Arc::new(RuntimeInfo::starting(spec, cwd, saved.generation, SystemTime::now().into()));
            });
            let _ = end.spec.set(saved.spec.clone());
            let found = SurvivingProcess { holder, welcome, generation: saved.generation, sessions };
            drive(saved.spec, make, end, settings, leave, StartMode::Found(Box::new(found))).await;
        }
        Err(reason) => {
            for session in sessions {
                session.sender.put(exited(&reason)).await;
            }
            end.orders.close();
            end.info.send_modify(|info| {
                let (state, problem) = (RuntimeState::Exited, Some(reason.clone()));
                *info = Arc::new(RuntimeInfo { state, problem, stopped, generation: 1, ..RuntimeInfo::clone(info) });
            });
            while let Some(order) = end.orders.recv().await {
                if let RuntimeCommand::Open { ticket, .. } = order.command {
                    let events = vec![RuntimeEvent::NotOpened { ticket, error: refusal(reason.clone()) }];
                    order.sender.put(RuntimeMessage::Events(events, None)).await;
                }
            }
        }
    }
}

/// The data of an earlier gateway, until it is replayed.
pub(super) struct HandoverReplay {
    /// States and steps that are still to be taken over, with their offsets in the output.
    states: VecDeque<(u64, Bytes)>,
    /// The [checksum](saved_steps::checksum) of the frames that the last replayed step would have written.
    pub(super) checksum: u32,
    /// Offset up to which output is replayed at least; `None` once it was, or if none is.
    pub(super) until: Option<u64>,
    /// Sessions to be notified when the replay has ended.
    sessions: Vec<SessionSender>,
}

impl Default for HandoverReplay {
    fn default() -> Self {
        Self { states: VecDeque::new(), checksum: saved_steps::checksum(&[]), until: None, sessions: Vec::new() }
    }
}

impl ProcessTransport {
    /// Continues with a process that outlived an earlier gateway.
    pub(super) fn reattach(driver: &mut Driver, source: DialectSource, found: SurvivingProcess) -> Self {
        let SurvivingProcess { holder, mut welcome, generation: _, sessions } = found;
        let mut process = Self::new(driver, source, holder, true);
        driver.note(&format!("found again, process {}", process.holder.pid()));
        driver.stderr.push(&welcome.stderr);
        process.replay.sessions = sessions.iter().map(|session| session.sender.clone()).collect();
        // Only what the sessions have stored, and answered requests, are replayed: all later output is new.
        process.replay.until = sessions.iter().map(|session| session.processed).max().or(Some(0));
        for session in sessions {
            driver.routes.reattach(session);
        }
        process.replay.states = welcome.blobs.drain(..).collect();
        driver.replaying = !process.replay.states.is_empty();
        let whole = process.replay.states.iter().filter(|(_, blob)| !saved_steps::is_step(blob));
        process.saved.states = whole.map(|(offset, _)| *offset).filter(|offset| *offset > welcome.acked).collect();
        process.lines = LineReader::at(driver.settings.line_max, welcome.acked, None);
        (driver.offset, driver.passed_on, process.saved.stated) = (welcome.acked, welcome.acked, welcome.acked);
        driver.show(|info| {
            info.pid = Some(process.holder.pid());
            info.instance = Some(process.holder.instance().to_owned());
            info.stderr_tail = driver.stderr.tail();
        });
        if let Some(since) = welcome.full_since {
            process.report_full(driver, since);
        }
        process.catch_up(driver);
        process
    }

    /// Takes over the stored states, up to the replayed output; after the last one this gateway has the complete state of the earlier
    /// one.
    pub(super) fn catch_up(&mut self, driver: &mut Driver) {
        let Some(until) = self.replay.until else { return };
        if let Err(reason) = self.replay_steps(driver) {
            self.replay.states.clear();
            driver.restart_is_useless = true;
            self.end(driver, reason.into());
        }
        driver.replaying = !self.replay.states.is_empty();
        if driver.replaying || driver.offset < until {
            return;
        }
        self.replay.until = None;
        if self.greeted {
            driver.ready = Some(Instant::now());
            let (agent, capabilities) = (self.agent.clone(), driver.dialect.capabilities());
            // A process that has ended is never ready: it exists only to report its end, and a start creates another.
            let lives = self.holder.processes().is_some();
            driver.show(|info| {
                info.agent = agent;
                info.capabilities = Some(capabilities);
                if lives {
                    info.state = RuntimeState::Ready;
                }
            });
        } else {
            self.handshake = Some(Instant::now() + driver.settings.handshake);
        }
        driver.flush(self);
        let (asks, prompts) = (driver.dialect.asks(), driver.dialect.prompts());
        let unknown: Vec<RequestKey> = asks.iter().filter(|key| !driver.routes.has_request(key)).cloned().collect();
        for key in unknown {
            // Its session no longer exists; the agent that waits for an answer gets one.
            driver.command(self, RuntimeCommand::Answer { key, decision: Decision::Withdrawn });
        }
        for sender in std::mem::take(&mut self.replay.sessions) {
            driver.out.push(sender, RuntimeMessage::Found { asks: asks.clone(), prompts: prompts.clone() });
        }
        // The dialect's requested wake time is unknown, so it is woken now.
        driver.step(self, StepCause::Other, |dialect, out| dialect.wake(out));
    }

    /// Takes over the newest whole state before the end of the replayed output, and repeats the steps after it that were made by then.
    /// Their frames were written and their events reported before.
    fn replay_steps(&mut self, driver: &mut Driver) -> Result<(), &'static str> {
        const UNREADABLE: &str = "the state saved by an earlier gateway cannot be read";
        let states = &mut self.replay.states;
        let due = states.iter().take_while(|(offset, _)| *offset <= driver.offset).count();
        let whole = states.range(..due).rposition(|(_, blob)| !saved_steps::is_step(blob));
        let made: Vec<(u64, Bytes)> = states.drain(..due).skip(whole.unwrap_or(0)).collect();
        for (_, blob) in made {
            if !saved_steps::is_step(&blob) {
                self.restore(driver, &blob).ok_or(UNREADABLE)?;
                continue;
            }
            let SavedStep { wrote, entry } = saved_steps::read(&blob).ok_or(UNREADABLE)?;
            let again = match entry {
                StepEntry::Frame => self.replay.checksum,
                StepEntry::Command(command) => {
                    let mut out = Outbox::default();
                    let dialect = &mut driver.dialect;
                    let step = AssertUnwindSafe(|| dialect.command(command, &mut out));
                    catch_unwind(step).map_err(|_| UNREADABLE)?;
                    saved_steps::checksum(&out.frames)
                }
            };
            if again != wrote {
                return Err(
                    "an earlier gateway sent it messages that this version would not send: they cannot continue together",
                );
            }
        }
        Ok(())
    }

    /// Takes over a whole state; `None` if it cannot be read.
    fn restore(&mut self, driver: &mut Driver, blob: &[u8]) -> Option<()> {
        let (state, saved) = HandoverState::read(blob)?;
        let mut dialect = self.source.dialect(&driver.spec);
        if !dialect.restore(saved) {
            return None;
        }
        driver.dialect = dialect;
        if let Some((head, dropped)) = state.skipped
            && let Ok(head) = data_encoding::HEXLOWER.decode(head.as_bytes())
        {
            let skipped = SkippedLine { head: head.into(), dropped };
            self.lines = LineReader::at(driver.settings.line_max, driver.offset, Some(skipped));
        }
        (self.agent, self.greeted) = (state.agent, state.ready);
        Some(())
    }

    /// Continues after the connection to the holder was made again, or after the attempts have ended.
    pub(super) fn rejoined(&mut self, driver: &mut Driver, rejoined: Rejoined) {
        self.rejoin = None;
        let (mut holder, welcome) = match rejoined {
            Rejoined::Found(found) => *found,
            Rejoined::Ended(reason) => return self.lost(driver, reason),
        };
        let lost = holder.continue_from(&self.holder, &welcome);
        self.holder = holder;
        // The states on their way may never have arrived.
        self.saved.states.clear();
        driver.note("connected to its holder again");
        if self.ending.is_none() {
            driver.show(|info| info.problem = None);
        }
        self.write_again(driver, lost);
        self.schedule_ack();
        if let Some(ending) = &self.ending {
            if ending.killed {
                self.holder.kill();
            } else {
                self.holder.stop(driver.settings.stop_stdin, driver.settings.stop_term);
            }
        }
    }
}
