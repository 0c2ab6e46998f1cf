//! The state of a session in a terminal that does not depend on the agent. Pure.

use serde::Serialize;

use crate::terminals::output::SessionOutput;
use plexus_dialects::{RequestKey, RunEnd};
use plexus_protocol::{NativeId, RunStatus, Ticket};

/// Number of ticks without news after which a terminal is read less often.
const QUIET_TICKS: u32 = 40;
/// Number of ticks between two reads of such a terminal.
const RARE_TICKS: u32 = 8;

/// The state of a session that every terminal has.
#[derive(Default)]
pub(crate) struct SessionState {
    pub(crate) native: Option<NativeId>,
    /// The process of the terminal, and the time at which it started.
    pub(crate) process: (u32, u64),
    pub(crate) cwd: String,
    /// `true` once the gateway has opened the session.
    pub(crate) opened: bool,
    pub(crate) titled: bool,
    pub(crate) turn: Option<Turn>,
    /// The error by which the turn failed.
    pub(crate) failure: Option<String>,
    /// The gateway's prompt whose turn has not begun.
    pub(crate) prompt: Option<WaitingPrompt>,
    /// Ticks without news.
    pub(crate) quiet: u32,
    /// The reason why the session ends, once it is completely reported.
    pub(crate) ending: Option<String>,
    /// `true` once the session has ended and is completely reported.
    pub(crate) finished: bool,
    /// The last checkpoint.
    saved: String,
}

/// The turn in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A turn that the gateway did not prompt.
    Terminal,
    /// A turn that the gateway prompted.
    Gateway(Ticket),
}

/// A prompt of the gateway whose turn has not begun.
pub(crate) struct WaitingPrompt {
    pub(crate) ticket: Ticket,
    pub(crate) text: String,
    pub(crate) state: PromptState,
    pub(crate) ticks: u32,
    /// `true` if an earlier gateway process had the prompt, so that the terminal may have it already.
    pub(crate) restored: bool,
}

/// The progress of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptState {
    /// The prompt waits until the terminal accepts it.
    Waiting,
    /// The prompt is being sent to the terminal.
    Sending,
    /// The terminal has it.
    Sent,
    /// The terminal may have it: an earlier gateway or connection sent it.
    Unknown,
}

/// Maximum number of ticks that a prompt may stay in each state.
pub(crate) struct PromptLimits {
    pub(crate) waiting: u32,
    pub(crate) sent: u32,
    /// Maximum number of ticks of an unknown prompt, which then counts as not sent.
    pub(crate) unknown: u32,
}

/// The pending work of a session when an earlier gateway process ended.
pub(crate) struct PendingWork<'a> {
    pub(crate) questions: &'a [RequestKey],
    pub(crate) prompt: Option<(Ticket, String)>,
}

/// A session that the gateway opens.
pub(crate) struct OpenedSession<'a> {
    /// `true` if the log has its past.
    pub(crate) known: bool,
    /// The last checkpoint that the log has.
    pub(crate) checkpoint: Option<&'a str>,
    pub(crate) pending: Option<PendingWork<'a>>,
}

impl SessionState {
    /// Returns the gateway's prompts that have not ended.
    pub(crate) fn prompts(&self) -> impl Iterator<Item = Ticket> {
        let running = self.turn.and_then(|turn| if let Turn::Gateway(ticket) = turn { Some(ticket) } else { None });
        running.into_iter().chain(self.prompt.as_ref().map(|prompt| prompt.ticket))
    }

    /// Returns whether the session has ended and is completely reported.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished || (self.ending.is_some() && !self.opened)
    }

    /// Returns whether the terminal is read at this tick.
    pub(crate) fn is_read_due(&self) -> bool {
        self.quiet < QUIET_TICKS || self.quiet.is_multiple_of(RARE_TICKS)
    }

    /// Stores the agent's checkpoint, unless it is that of the last step.
    pub(crate) fn save<R>(&mut self, checkpoint: &impl Serialize, out: &mut SessionOutput<'_, R>) {
        let state = serde_json::to_string(checkpoint).unwrap_or_default();
        if state != self.saved {
            self.saved.clone_from(&state);
            out.checkpoint(state);
        }
    }

    /// Removes the stored checkpoint, because another session begins in the terminal.
    pub(crate) fn forget_checkpoint(&mut self) {
        self.saved.clear();
    }

    // === turns ===

    /// Begins a turn that the gateway did not prompt. A turn of the past is not reported.
    pub(crate) fn begin_turn<R>(&mut self, by: &str, past: bool, out: &mut SessionOutput<'_, R>) {
        self.turn = Some(Turn::Terminal);
        if !past {
            out.began(by);
        }
    }

    /// Reports the end of a turn. A turn of the past is not reported, unless the gateway prompted it.
    pub(crate) fn report_end<R>(turn: Turn, end: RunEnd, past: bool, out: &mut SessionOutput<'_, R>) {
        match turn {
            Turn::Gateway(ticket) => out.ended(ticket, end),
            Turn::Terminal if past => {}
            Turn::Terminal => out.done(end),
        }
    }

    // === prompts ===

    /// Stores a prompt of the gateway.
    pub(crate) fn set_prompt(&mut self, ticket: Ticket, text: String) {
        self.prompt = Some(WaitingPrompt { ticket, text, state: PromptState::Waiting, ticks: 0, restored: false });
    }

    /// Takes over a prompt of an earlier gateway process. A turn in progress is that of the prompt.
    pub(crate) fn restore_prompt(&mut self, prompt: Option<(Ticket, String)>, state: PromptState) {
        match prompt {
            Some((ticket, _)) if self.turn.is_some() => self.turn = Some(Turn::Gateway(ticket)),
            Some((ticket, text)) => {
                self.prompt = Some(WaitingPrompt { ticket, text, state, ticks: 0, restored: true });
            }
            None => {}
        }
    }

    /// Counts a tick of the prompt that waits. Returns its state, if it has been in that state for too long.
    pub(crate) fn tick_prompt(&mut self, limits: &PromptLimits) -> Option<PromptState> {
        let prompt = self.prompt.as_mut()?;
        prompt.ticks += 1;
        let limit = match prompt.state {
            PromptState::Waiting => limits.waiting,
            PromptState::Sent => limits.sent,
            PromptState::Unknown => limits.unknown,
            PromptState::Sending => u32::MAX,
        };
        if prompt.ticks < limit {
            return None;
        }
        if prompt.state == PromptState::Unknown {
            (prompt.state, prompt.ticks) = (PromptState::Waiting, 0);
            return None;
        }
        Some(prompt.state)
    }

    /// Ends the prompt that waits, if there is one.
    pub(crate) fn end_prompt<R>(&mut self, status: RunStatus, reason: Option<&str>, out: &mut SessionOutput<'_, R>) {
        if let Some(prompt) = self.prompt.take() {
            out.ended(prompt.ticket, RunEnd::new(status, reason.map(str::to_owned)));
        }
    }
}
