//! The exit of a process: its reason, the reports of it, and the decision whether the program is started again.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::ProcessTransport;
use crate::driver::{CloseReason, Driver, never};
use crate::presets;
use plexus_protocol::{Connect, RestartPolicy, RuntimeState};
use plexus_sessions::RuntimeExit;

/// Maximum number of bytes of a runtime's last output in its problem.
const OUTPUT_SHOWN: usize = 500;

/// The end of a start.
pub(super) struct ExitReport {
    pub(super) exit: RuntimeExit,
    /// `true` if there was no process at all.
    pub(super) never_started: bool,
    /// `true` if the process was ready for long enough.
    pub(super) healthy: bool,
}

/// The decision after an exit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RestartDecision {
    /// The program is started again after a pause.
    Again(Duration),
    /// The program is not started again: it would only exit again.
    GivenUp,
    /// The program is not started again.
    Rest,
}

impl ProcessTransport {
    pub(super) fn exit_report(mut self, driver: &mut Driver) -> ExitReport {
        driver.stderr.finish();
        let (code, signal) = self.status.take().unwrap_or_default();
        let reason = self.reason.take().or_else(|| driver.stop.clone().map(CloseReason::into_message));
        let reason = reason.or_else(|| {
            let output = driver.routes.last_output()?;
            Some(format!("it said: {}", plexus_protocol::text::printable(&output[..output.len().min(OUTPUT_SHOWN)])))
        });
        let early = driver.ready.is_none() && driver.stop.is_none();
        let hint = match &driver.spec.connect {
            Connect::Command(argv) if early => argv.first().and_then(|program| presets::ended_early(program)),
            _ => None,
        };
        let reason = match (reason, hint) {
            (Some(reason), Some(hint)) => Some(format!("{reason}; {hint}")),
            (reason, hint) => reason.or_else(|| hint.map(str::to_owned)),
        };
        let stderr_tail = driver.stderr.tail();
        let exit = RuntimeExit { code, signal, stderr_tail, reason, stopped: driver.stop.is_some(), left: false };
        let healthy = driver.ready.is_some_and(|at| at.elapsed() >= driver.settings.healthy);
        ExitReport { exit, never_started: false, healthy }
    }
}

/// Returns whether the program is started again after an exit that follows `early_exits` others.
pub(super) fn decide(driver: &Driver, report: &ExitReport, early_exits: u32) -> RestartDecision {
    let again = match driver.spec.restart {
        RestartPolicy::Never => false,
        RestartPolicy::OnFailure => report.exit.code != Some(0),
        RestartPolicy::Always => true,
    };
    // A program that never existed is an error to fix; one that is missing now may be in the middle of an update.
    let mistaken = report.never_started && driver.generation == 1;
    if driver.stop.is_some() || !again || mistaken || driver.restart_is_useless {
        RestartDecision::Rest
    } else if early_exits + 1 >= driver.settings.give_up {
        RestartDecision::GivenUp
    } else {
        let pause = driver.settings.pause_min.saturating_mul(1 << early_exits.min(16));
        RestartDecision::Again(pause.min(driver.settings.pause_max))
    }
}

/// Reports an exit to users and sessions.
pub(super) async fn report_exit(driver: &mut Driver, report: ExitReport, decision: RestartDecision) {
    let ExitReport { exit, never_started, .. } = report;
    let mut problem = describe(&exit);
    if let Some(reason) = &exit.reason {
        problem = if never_started { reason.clone() } else { format!("{problem}: {reason}") };
    }
    if decision == RestartDecision::GivenUp {
        let exits = driver.settings.give_up;
        problem = format!("{problem}; not restarted after {exits} early exits in a row");
    }
    driver.note(&problem);
    driver.show(|info| {
        let again = matches!(decision, RestartDecision::Again(_));
        info.state = if again { RuntimeState::Restarting } else { RuntimeState::Exited };
        info.stopped = exit.stopped;
        info.pid = None;
        info.stderr_tail.clone_from(&exit.stderr_tail);
        info.problem = Some(problem.clone());
    });
    let tail = exit.stderr_tail.trim_end();
    let reason = if tail.is_empty() { problem } else { format!("{problem}; it wrote: {tail}") };
    driver.report_end(&exit, &reason);
    deliver(driver, None).await;
}

/// Waits before the next start; returns `false` if there must be none.
pub(super) async fn pause_before_restart(driver: &mut Driver, pause: Duration) -> bool {
    deliver(driver, Some(Instant::now() + pause)).await;
    driver.stop.is_none()
}

/// Ends the driver.
pub(super) async fn close(driver: &mut Driver) {
    let problem = driver.end.info.borrow().problem.clone();
    let reason = problem.unwrap_or_else(|| CloseReason::Stopped.into_message());
    // The runtime may have been stopped in a pause between two starts.
    driver.show(|info| info.state = RuntimeState::Exited);
    driver.close_orders().await;
    driver.refuse_waiting(&reason);
    driver.out.deliver().await;
}

/// Delivers the events on their way, without a process: for a pause until `pause` or, without one, until all are delivered.
async fn deliver(driver: &mut Driver, pause: Option<Instant>) {
    let timer = sleep_until(pause.unwrap_or_else(never));
    tokio::pin!(timer);
    // Orders other than for new sessions are meant for the start that has ended.
    driver.closing = true;
    loop {
        let done = if pause.is_some() { driver.stop.is_some() } else { driver.out.is_empty() };
        if done {
            return;
        }
        tokio::select! {
            biased;
            () = driver.end.stop.notified(), if driver.stop.is_none() => driver.stop = Some(CloseReason::Stopped),
            () = driver.leave.notified(), if driver.stop.is_none() => driver.stop = Some(CloseReason::Stopped),
            order = driver.end.orders.recv(), if driver.is_used() => match order {
                Some(order) => driver.wait_until_ready(order),
                None => driver.stop = Some(CloseReason::Unused),
            },
            () = driver.out.deliver(), if !driver.out.is_empty() => {}
            () = &mut timer => return,
        }
    }
}

/// Returns a description of the end of a process.
fn describe(exit: &RuntimeExit) -> String {
    match (exit.code, &exit.signal) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("killed by {signal}"),
        (None, None) => "ended".into(),
    }
}
