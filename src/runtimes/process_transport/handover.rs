//! The data that the holder gets for the next gateway: whole states, steps between them, and up to where output may be forgotten.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::ProcessTransport;
use crate::driver::{Driver, StepCause};
use crate::saved_steps;
use plexus_protocol::RuntimeSpec;

/// Time that output waits at most, once it is stored, before its holder is told to forget it …
const ACK_EVERY: Duration = Duration::from_millis(500);

/// … and how much of it, in bytes; or as much as a whole state takes, if that is more: so states cost no more than output.
const ACK_BYTES: u64 = 256 * 1024;

/// Most bytes of steps until a whole state is given to the holder in their place; or as much as such a
/// state, if that is more: so states cost no more than steps.
const STEPS_BYTES: usize = 64 * 1024;

/// The data for the next gateway: the holder keeps it with the output it knows of. The dialect's own state follows it. The
/// next gateway may be of another version: what it does not know it ignores, what is missing has its default.
#[derive(Serialize, Deserialize)]
pub(crate) struct HandoverState {
    /// The form of what is written; 0 is that of the release 0.1.0.
    #[serde(default)]
    pub(crate) form: u32,
    pub(crate) spec: RuntimeSpec,
    pub(crate) generation: u64,
    #[serde(default)]
    pub(crate) ready: bool,
    #[serde(default)]
    pub(crate) agent: Option<String>,
    /// The line that is being skipped: its beginning in hex, and how much of it was dropped.
    #[serde(default)]
    pub(crate) over: Option<(String, u64)>,
}

impl HandoverState {
    /// The form that is written; a later one is not read.
    const FORM: u32 = 1;

    /// Writes it, and the dialect's state after it.
    fn write(&self, dialect: &[u8]) -> Bytes {
        // Plain values of our own: they always can be written. An empty one is no state, and says so when it is read.
        let head = serde_json::to_vec(self).unwrap_or_default();
        let mut all = Vec::with_capacity(4 + head.len() + dialect.len());
        all.extend_from_slice(&u32::try_from(head.len()).unwrap_or_default().to_be_bytes());
        all.extend_from_slice(&head);
        all.extend_from_slice(dialect);
        all.into()
    }

    /// Reads what [`write`](Self::write) wrote.
    pub(crate) fn read(blob: &[u8]) -> Option<(Self, &[u8])> {
        let (len, rest) = blob.split_first_chunk::<4>()?;
        let (head, dialect) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
        let kept: Self = serde_json::from_slice(head).ok()?;
        (kept.form <= Self::FORM).then_some((kept, dialect))
    }
}

/// The data that the holder has.
#[derive(Default)]
pub(super) struct SavedOutput {
    /// Set if the data leads to the dialect's state of now, as far as lines and commands alone do.
    based: bool,
    /// The size of the last whole state, and of the steps since, in bytes.
    whole: usize,
    steps: usize,
    /// Up to where in the output the holder has a whole state.
    pub(super) stated: u64,
    /// The offsets of its whole states, but the one it goes back to.
    pub(super) states: VecDeque<u64>,
}

impl SavedOutput {
    /// The holder is given a whole state of this size, at this place in the output.
    fn whole(&mut self, len: usize, offset: u64, outlive: bool) {
        (self.based, self.whole, self.steps) = (true, len, 0);
        if outlive {
            self.stated = offset;
            self.states.push_back(offset);
        }
    }

    /// Returns whether so much output came since the last state that another is due.
    pub(super) fn is_due(&self, offset: u64) -> bool {
        offset - self.stated >= ACK_BYTES.max(self.whole as u64)
    }
}

impl ProcessTransport {
    /// Has acks flushed soon.
    pub(super) fn schedule_ack(&mut self) {
        self.ack_due.get_or_insert_with(|| Instant::now() + ACK_EVERY);
    }

    /// Returns the present data for the next gateway; the holder gets it next.
    fn whole_state(&mut self, driver: &Driver) -> Bytes {
        let over = self.lines.over();
        let state = HandoverState {
            form: HandoverState::FORM,
            spec: driver.spec.clone(),
            generation: driver.generation,
            ready: self.greeted,
            agent: self.agent.clone(),
            over: over.map(|over| (data_encoding::HEXLOWER.encode(&over.head), over.dropped)),
        };
        let state = state.write(&driver.dialect.save().unwrap_or_default());
        self.saved.whole(state.len(), driver.offset, self.outlive);
        state
    }

    /// Writes the frames of the last step, with what leads to them for the next gateway.
    pub(super) fn write(&mut self, driver: &mut Driver, cause: &StepCause) {
        let mut frames = std::mem::take(&mut driver.step.frames);
        if driver.replaying {
            // The frames of a replayed step were written by the gateway that made it first.
            self.replay.checksum = saved_steps::checksum(&frames);
            return;
        }
        if driver.closing {
            return;
        }
        let saves = self.outlive && !driver.broken;
        let step = match cause {
            _ if !saves || !self.saved.based || !self.holder.takes_steps() => None,
            StepCause::Frame => Some(saved_steps::of_frame(&frames)),
            StepCause::Command(command) if !command.is_empty() => Some(saved_steps::of_command(&frames, command)),
            // What such a step does is known by a whole state alone.
            StepCause::Command(_) | StepCause::Other => {
                self.saved.based = false;
                None
            }
        };
        if frames.is_empty() && (matches!(cause, StepCause::Frame) || step.is_none()) {
            return;
        }
        let step = step.filter(|step| self.saved.steps + step.len() <= self.saved.whole.max(STEPS_BYTES));
        let state = if saves && step.is_none() { self.whole_state(driver) } else { Bytes::new() };
        let frame = if frames.len() == 1 { frames.swap_remove(0) } else { frames.concat().into() };
        let wrote = match step {
            Some(step) => {
                self.saved.steps += step.len();
                self.holder.step(driver.offset, step, frame)
            }
            None => self.holder.put(driver.offset, state, frame),
        };
        if self.outlive {
            self.schedule_ack();
        }
        self.wrote(driver, wrote);
    }

    /// Writes input again that was lost with a connection, and gives the holder the state of now.
    pub(super) fn write_again(&mut self, driver: &mut Driver, lost: Bytes) {
        let saves = self.outlive && !driver.broken && !driver.replaying;
        if !saves && lost.is_empty() {
            return;
        }
        let state = if saves { self.whole_state(driver) } else { Bytes::new() };
        if lost.is_empty() {
            return self.holder.state(driver.offset, state);
        }
        let wrote = self.holder.put(driver.offset, state, lost);
        self.wrote(driver, wrote);
    }

    /// Gives the holder the state that goes with the output so far, and lets it forget what all sessions have stored.
    pub(super) fn flush_acks(&mut self, driver: &Driver) {
        self.ack_due = None;
        if driver.replaying || driver.broken || self.rejoin.is_some() {
            return;
        }
        if !self.outlive {
            self.holder.ack(driver.offset);
            self.saved.stated = driver.offset;
            return;
        }
        // What is needed no more first: it makes room for what is added.
        self.acknowledge(driver.offset);
        if driver.offset > self.saved.stated || (self.saved.steps > 0 && self.holder.heavy()) {
            let state = self.whole_state(driver);
            self.holder.state(driver.offset, state);
        }
        self.acknowledge(driver.offset);
        if !self.saved.states.is_empty() {
            self.schedule_ack();
        }
    }

    /// Lets the holder forget what all sessions have stored, up to a whole state that it has.
    fn acknowledge(&mut self, offset: u64) {
        let stored = self.acks.kept_up_to(offset);
        let mut safe = None;
        while self.saved.states.front().is_some_and(|offset| *offset <= stored) {
            safe = self.saved.states.pop_front();
        }
        if let Some(offset) = safe {
            self.holder.ack(offset);
        }
    }
}
