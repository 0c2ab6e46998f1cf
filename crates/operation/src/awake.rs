//! Keeps the machine from sleeping while an agent works or waits for a user.
//!
//! A program of the operating system holds a lease: it prevents sleep for two minutes, and is started again before it ends. So nothing
//! has to be undone if the gateway is killed.

use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use plexus_protocol::Timestamp;
use plexus_protocol::api::operation::{Check, Verdict};
use plexus_router::Core;
use plexus_router::stop::stopping;
use plexus_sessions::Filter;

/// Time for which one start of the program prevents sleep.
const LEASE: Duration = Duration::from_secs(120);
/// Age of a lease at which the next one starts.
const RENEW: Duration = Duration::from_secs(90);
/// Minimum time between two checks of the sessions. None happens while nothing is logged, except to renew a lease.
const DEBOUNCE: Duration = Duration::from_secs(5);
/// Time until the next attempt, after the program could not be used.
const RETRY: Duration = Duration::from_secs(600);
/// Age up to which an open request prevents sleep, in milliseconds: an abandoned one must not empty the battery. 12 hours.
const REQUEST_AGE_MAX: i64 = 12 * 60 * 60 * 1000;
/// Maximum size of the program's error message, in bytes.
const MESSAGE_MAX: u64 = 300;

/// The programs that can prevent sleep, best first: each with its arguments. One that exits early is replaced by the next.
const PROGRAMS: &[&[&str]] = if cfg!(target_os = "macos") {
    &[&["caffeinate", "-i", "-t", "120"]]
} else {
    // A service without a login session may be permitted to prevent the sleep of an idle machine only.
    &[
        &[
            "systemd-inhibit",
            "--what=sleep:idle",
            "--who=Plexus",
            "--why=a coding agent works or waits",
            "sleep",
            "120",
        ],
        &["systemd-inhibit", "--what=idle", "--who=Plexus", "--why=a coding agent works or waits", "sleep", "120"],
    ]
};

/// The state of the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// The configuration switches it off.
    Off,
    /// No agent works or waits.
    Idle,
    /// Sleep is prevented.
    Held,
    /// The program is not installed, as in a container.
    Absent(&'static str),
    /// The programs were refused, with the last one's reason.
    Refused(String),
}

impl State {
    /// Makes the state after a program could not be started.
    fn from_error(program: &'static str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Absent(program),
            _ => Self::Refused(format!("{program}: {error}")),
        }
    }
}

/// The handle to the lease. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KeepAwake(Arc<Mutex<State>>);

impl KeepAwake {
    /// Makes the handle; [`run`](Self::run) does the work, unless `enabled` is `false`.
    pub fn new(enabled: bool) -> Self {
        Self(Arc::new(Mutex::new(if enabled { State::Idle } else { State::Off })))
    }

    fn state(&self) -> State {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Holds a lease whenever an agent works or waits, until the gateway stops. Cancellation safe: a lease ends when the future is dropped.
    pub async fn run(self, core: Core) {
        if self.state() == State::Off {
            return;
        }
        let (mut stop, mut head) = (core.stop.clone(), core.directory.log().watch());
        let mut lease: Option<Lease> = None;
        let (mut program, mut retry_at) = (0, None);
        loop {
            // What is logged from here on is seen by the next check.
            head.borrow_and_update();
            let (now, busy) = (Instant::now(), is_busy(&core));
            match next_step(busy, lease.as_ref().map(|lease| lease.since.elapsed()), retry_at, now) {
                Step::Nothing => {}
                Step::Release => {
                    lease = None;
                    self.set(State::Idle);
                }
                // The next lease begins before the last one is dropped.
                Step::Hold => match Lease::start(PROGRAMS[program]) {
                    Ok(next) => {
                        (lease, retry_at) = (Some(next), None);
                        self.set(State::Held);
                    }
                    Err(error) => {
                        (lease, retry_at) = (None, Some(now + RETRY));
                        self.set(State::from_error(PROGRAMS[program][0], &error));
                    }
                },
            }
            let check_at = lease.as_ref().map(|lease| lease.since + RENEW).or(retry_at.filter(|_| busy));
            tokio::select! {
                // Events come in bursts, and a run that just began is no reason to hurry.
                Ok(()) = head.changed() => {
                    if tokio::time::timeout(DEBOUNCE, stopping(&mut core.stop.clone())).await.is_ok() {
                        return;
                    }
                }
                Some(message) = failure(lease.as_mut()) => {
                    lease = None;
                    (program, retry_at) = after_failure(program, Instant::now());
                    if retry_at.is_some() {
                        tracing::info!(%message, "sleep of this machine cannot be prevented");
                        self.set(State::Refused(message));
                    }
                }
                () = at(check_at) => {}
                () = stopping(&mut stop) => return,
            }
        }
    }

    /// Returns the check of the lease.
    pub fn check(&self) -> Check {
        let (state, detail, fix) = match self.state() {
            State::Off => (Verdict::Ok, "off: this machine may sleep while agents work".to_owned(), None),
            State::Idle => (Verdict::Ok, "this machine may sleep: no agent works or waits".to_owned(), None),
            State::Held => (Verdict::Ok, "this machine does not sleep: an agent works or waits".to_owned(), None),
            State::Absent(program) => {
                (Verdict::Ok, format!("this machine may sleep while agents work: {program} is not installed"), None)
            }
            State::Refused(reason) => (
                Verdict::Warn,
                format!("this machine may sleep while agents work: {reason}"),
                Some("set `keep_awake = false` if this machine never sleeps".to_owned()),
            ),
        };
        Check { name: "keep awake".into(), state, detail, fix }
    }
}

/// Returns whether an agent works, or has waited for a user for less than [`REQUEST_AGE_MAX`].
fn is_busy(core: &Core) -> bool {
    let (filter, now) = (Filter::all(), Timestamp::from(std::time::SystemTime::now()).as_millis());
    // Runs that wait for a user count by the age of their requests.
    let recent = |opened_at: Timestamp| now.saturating_sub(opened_at.as_millis()) < REQUEST_AGE_MAX;
    core.directory.runs(&filter).iter().any(|run| run.status == plexus_protocol::RunStatus::Running)
        || core.directory.requests().open(&filter).iter().any(|request| recent(request.opened_at))
}

/// The next step of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Hold,
    Release,
}

/// Decides the next step from whether an agent is busy, the age of the current lease, and the time before which no program is started.
fn next_step(busy: bool, age: Option<Duration>, retry_at: Option<Instant>, now: Instant) -> Step {
    match (busy, age) {
        (true, Some(age)) if age < RENEW => Step::Nothing,
        (true, _) if retry_at.is_some_and(|at| now < at) => Step::Nothing,
        (true, _) => Step::Hold,
        (false, Some(_)) => Step::Release,
        (false, None) => Step::Nothing,
    }
}

/// Returns the program to use after one failed, and the time before which it is not started: after the last, all are tried again later.
fn after_failure(program: usize, now: Instant) -> (usize, Option<Instant>) {
    match program + 1 {
        next if next < PROGRAMS.len() => (next, None),
        _ => (0, Some(now + RETRY)),
    }
}

/// A running program that prevents sleep. It is ended when this is dropped.
struct Lease {
    child: Child,
    since: Instant,
}

impl Lease {
    fn start(program: &[&str]) -> io::Result<Self> {
        let (name, arguments) = program.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // A group of its own, so that the program's own child is ended as well.
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        Ok(Self { child, since: Instant::now() })
    }

    /// Waits until the program ends, and returns the reason if that is before its time. Cancellation safe.
    async fn failure(&mut self) -> Option<String> {
        let status = self.child.wait().await.ok()?;
        if self.since.elapsed() >= LEASE {
            return None;
        }
        let mut message = String::new();
        if let Some(stderr) = self.child.stderr.take() {
            let mut stderr = stderr.take(MESSAGE_MAX);
            let _ = tokio::time::timeout(Duration::from_secs(1), stderr.read_to_string(&mut message)).await;
        }
        let message = plexus_protocol::text::printable(message.trim().as_bytes());
        Some(if message.is_empty() { format!("the program ended: {status}") } else { message })
    }
}

/// Waits for the failure of a lease; forever without one.
async fn failure(lease: Option<&mut Lease>) -> Option<String> {
    match lease {
        Some(lease) => lease.failure().await,
        None => std::future::pending().await,
    }
}

/// Waits until a time; forever without one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let group = self.child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        // A program that has ended has no group to signal.
        let _ = group.map(|group| kill_process_group(group, Signal::TERM));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn lease_is_held_renewed_and_released() {
        let now = Instant::now();
        let (young, old) = (Some(RENEW - Duration::from_secs(1)), Some(RENEW));
        let (later, passed) = (Some(now + RETRY), Some(now));
        let cases = [
            ((true, None, None), Step::Hold),
            ((true, young, None), Step::Nothing),
            ((true, old, None), Step::Hold),
            ((false, young, None), Step::Release),
            ((false, None, None), Step::Nothing),
            ((true, None, later), Step::Nothing),
            ((true, None, passed), Step::Hold),
            ((false, None, later), Step::Nothing),
        ];
        for ((busy, age, retry_at), expected) in cases {
            assert_eq!(next_step(busy, age, retry_at, now), expected, "{busy} {age:?} {retry_at:?}");
        }
    }

    #[test]
    fn failed_programs_are_tried_in_turn_and_later_again() {
        let now = Instant::now();
        let (mut program, mut tried) = (0, vec![0]);
        while let (next, None) = after_failure(program, now) {
            program = next;
            tried.push(next);
        }
        assert_eq!(tried, (0..PROGRAMS.len()).collect::<Vec<_>>());
        assert_eq!(after_failure(program, now), (0, Some(now + RETRY)));
    }

    #[tokio::test]
    async fn failure_of_a_program_is_reported_in_its_words() {
        let mut lease = Lease::start(&["sh", "-c", "echo no bus >&2; exit 1"]).unwrap();
        assert_eq!(lease.failure().await.unwrap(), "no bus");
    }
}
