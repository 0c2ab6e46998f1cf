//! The end of a process: what it was, who is told, and whether it is started again.

use super::*;

/// What a step of the dialect was made for.
pub(super) enum ExitCause {
    /// A line of the runtime's output.
    Heard,
    /// A command, as JSON; empty where it need not be written down.
    Command(Vec<u8>),
    /// Anything else: a wake, a chore that is done, the greeting.
    Other,
}

/// How a start ended.
pub(super) struct ExitReport {
    pub(super) exit: RuntimeExit,
    pub(super) routes: SessionRoutes,
    /// It was never started at all.
    pub(super) unborn: bool,
    /// Starting it again would not help: it said so itself.
    pub(super) hopeless: bool,
    /// It was ready for long enough.
    pub(super) healthy: bool,
}

/// What follows a death.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RestartDecision {
    /// Another start, after a pause.
    Again(Duration),
    /// Nothing: it would only die again.
    GivenUp,
    /// Nothing.
    Rest,
}

impl Driver {
    pub(super) fn death(&self, mut life: ProcessState) -> ExitReport {
        life.stderr.finish();
        let (code, signal) = life.status.take().unwrap_or_default();
        let reason = life.reason.take().or_else(|| self.stop.map(str::to_owned));
        let reason = reason.or_else(|| {
            let words = life.routes.last_words()?;
            Some(format!("it said: {}", plexus_protocol::text::printable(&words[..words.len().min(WORDS_SHOWN)])))
        });
        let early = life.ready.is_none() && self.stop.is_none();
        let known = match &self.spec.connect {
            Connect::Command(argv) if early => argv.first().and_then(|program| presets::ended_early(program)),
            _ => None,
        };
        let reason = match (reason, known) {
            (Some(reason), Some(known)) => Some(format!("{reason}; {known}")),
            (reason, known) => reason.or_else(|| known.map(str::to_owned)),
        };
        let exit = RuntimeExit {
            code,
            signal,
            stderr_tail: life.stderr.tail(),
            reason,
            stopped: self.stop.is_some(),
            left: false,
        };
        let healthy = life.ready.is_some_and(|at| at.elapsed() >= self.settings.healthy);
        ExitReport { exit, routes: life.routes, unborn: false, hopeless: life.hopeless, healthy }
    }

    pub(super) fn after(&self, death: &ExitReport, early_deaths: u32) -> RestartDecision {
        let again = match self.spec.restart {
            RestartPolicy::Never => false,
            RestartPolicy::OnFailure => death.exit.code != Some(0),
            RestartPolicy::Always => true,
        };
        // A program that was never there is a mistake to mend; one that is missing now may be in the middle of an update.
        let mistaken = death.unborn && self.end.info.borrow().generation == 1;
        if self.stop.is_some() || !again || mistaken || death.hopeless {
            RestartDecision::Rest
        } else if early_deaths + 1 >= self.settings.give_up {
            RestartDecision::GivenUp
        } else {
            let pause = self.settings.pause_min.saturating_mul(1 << early_deaths.min(16));
            RestartDecision::Again(pause.min(self.settings.pause_max))
        }
    }

    /// Tells everybody of a death.
    pub(super) async fn report_exit(&mut self, mut death: ExitReport, after: RestartDecision) {
        let exit = &mut death.exit;
        let mut problem = how(exit);
        if let Some(reason) = &exit.reason {
            problem = if death.unborn { reason.clone() } else { format!("{problem}: {reason}") };
        }
        if after == RestartDecision::GivenUp {
            let deaths = self.settings.give_up;
            problem = format!("{problem}; not restarted after {deaths} early exits in a row");
        }
        self.note(&problem);
        self.show(|info| {
            let again = matches!(after, RestartDecision::Again(_));
            info.state = if again { RuntimeState::Restarting } else { RuntimeState::Exited };
            info.stopped = exit.stopped;
            info.pid = None;
            info.stderr_tail.clone_from(&exit.stderr_tail);
            info.problem = Some(problem.clone());
        });
        let (waiting, sessions) = death.routes.end();
        let tail = exit.stderr_tail.trim_end();
        let why = if tail.is_empty() { problem } else { format!("{problem}; it wrote: {tail}") };
        for (inlet, ticket) in waiting {
            self.out.push(
                inlet,
                RuntimeMessage::Said(vec![RuntimeEvent::NotOpened { ticket, error: refusal(why.clone()) }], None),
            );
        }
        for inlet in sessions {
            self.out.push(inlet, RuntimeMessage::Gone(death.exit.clone()));
        }
        self.refuse_opens(&why);
        self.flush(None).await;
    }

    /// Rests before the next start; false if there is to be none.
    pub(super) async fn pause_before_restart(&mut self, pause: Duration) -> bool {
        self.flush(Some(Instant::now() + pause)).await;
        self.stop.is_none()
    }
}

/// How a process ended, in words.
fn how(exit: &RuntimeExit) -> String {
    match (exit.code, &exit.signal) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("killed by {signal}"),
        (None, None) => "ended".into(),
    }
}
