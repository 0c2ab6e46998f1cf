//! The data that the holder gets for the next gateway: whole states, steps between them, and the offset up to which output may be
//! dropped.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::ProcessTransport;
use crate::driver::{Driver, StepCause};
use crate::saved_steps;
use plexus_protocol::RuntimeSpec;

/// Maximum time until a holder is notified of stored output that it may drop.
const ACK_EVERY: Duration = Duration::from_millis(500);

/// Size of stored output after which the holder is notified, in bytes; or the size of a whole state, if that is larger, so that states
/// cost no more than output.
const ACK_BYTES: u64 = 256 * 1024;

/// Size of steps after which they are replaced by a whole state, in bytes; or the size of such a state, if that is larger, so that states
/// cost no more than steps.
const STEPS_BYTES: usize = 64 * 1024;

/// The data for the next gateway: the holder retains it with the output. The dialect's own state follows it. The next gateway may be of
/// another version: it ignores unknown fields, and missing ones have their defaults.
#[derive(Serialize, Deserialize)]
pub(crate) struct HandoverState {
    /// The version of the format; 0 is that of release 0.1.0.
    #[serde(default)]
    pub(crate) form: u32,
    pub(crate) spec: RuntimeSpec,
    pub(crate) generation: u64,
    #[serde(default)]
    pub(crate) ready: bool,
    #[serde(default)]
    pub(crate) agent: Option<String>,
    /// The line that is being skipped: its beginning in hex, and the number of dropped bytes.
    #[serde(default, rename = "over")]
    pub(crate) skipped: Option<(String, u64)>,
}

impl HandoverState {
    /// The version of the format that is written; a later one is not read.
    const FORM: u32 = 1;

    /// Serializes the data, with the dialect's state after it.
    fn write(&self, dialect: &[u8]) -> Bytes {
        // Plain values, which always serialize. An empty head is invalid, and reading reports that.
        let head = serde_json::to_vec(self).unwrap_or_default();
        let mut all = Vec::with_capacity(4 + head.len() + dialect.len());
        all.extend_from_slice(&u32::try_from(head.len()).unwrap_or_default().to_be_bytes());
        all.extend_from_slice(&head);
        all.extend_from_slice(dialect);
        all.into()
    }

    /// Reads the result of [`write`](Self::write).
    pub(crate) fn read(blob: &[u8]) -> Option<(Self, &[u8])> {
        let (len, rest) = blob.split_first_chunk::<4>()?;
        let (head, dialect) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
        let state: Self = serde_json::from_slice(head).ok()?;
        (state.form <= Self::FORM).then_some((state, dialect))
    }
}

/// The data that the holder has.
#[derive(Default)]
pub(super) struct SavedOutput {
    /// `true` if the data leads to the dialect's current state through lines and commands alone.
    based: bool,
    /// The size of the last whole state, and of the steps since, in bytes.
    whole: usize,
    steps: usize,
    /// Offset of the last whole state that the holder has.
    pub(super) stated: u64,
    /// The offsets of the holder's whole states, except the one from which a replay would begin.
    pub(super) states: VecDeque<u64>,
}

impl SavedOutput {
    /// Records that the holder gets a whole state of this size, at this offset of the output.
    fn whole(&mut self, len: usize, offset: u64, outlive: bool) {
        (self.based, self.whole, self.steps) = (true, len, 0);
        if outlive {
            self.stated = offset;
            self.states.push_back(offset);
        }
    }

    /// Returns whether so much output arrived since the last state that another is due.
    pub(super) fn is_due(&self, offset: u64) -> bool {
        offset - self.stated >= ACK_BYTES.max(self.whole as u64)
    }
}

impl ProcessTransport {
    /// Schedules a flush of acks.
    pub(super) fn schedule_ack(&mut self) {
        self.ack_due.get_or_insert_with(|| Instant::now() + ACK_EVERY);
    }

    /// Returns the current data for the next gateway; the holder gets it next.
    fn whole_state(&mut self, driver: &Driver) -> Bytes {
        let skipped = self.lines.skipped();
        let state = HandoverState {
            form: HandoverState::FORM,
            spec: driver.spec.clone(),
            generation: driver.generation,
            ready: self.greeted,
            agent: self.agent.clone(),
            skipped: skipped.map(|line| (data_encoding::HEXLOWER.encode(&line.head), line.dropped)),
        };
        let state = state.write(&driver.dialect.save().unwrap_or_default());
        self.saved.whole(state.len(), driver.offset, self.outlive);
        state
    }

    /// Writes the frames of the last step, with their cause for the next gateway.
    pub(super) fn write(&mut self, driver: &mut Driver, cause: &StepCause) {
        let mut frames = std::mem::take(&mut driver.step.frames);
        if driver.replaying {
            // The gateway that first made a replayed step also wrote its frames.
            self.replay.checksum = saved_steps::checksum(&frames);
            return;
        }
        if driver.closing {
            return;
        }
        let saves = self.outlive && !driver.broken;
        let step = match cause {
            _ if !saves || !self.saved.based || !self.holder.takes_steps() => None,
            StepCause::Frame => Some(saved_steps::for_frame(&frames)),
            StepCause::Command(command) if !command.is_empty() => Some(saved_steps::for_command(&frames, command)),
            // The effect of such a step is known only from a whole state.
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

    /// Writes input again that was lost with a connection, and gives the holder the current state.
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

    /// Gives the holder the state for the output so far, and lets it drop the output that all sessions have stored.
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
        // Unneeded output is dropped first, to free memory for the addition.
        self.acknowledge(driver.offset);
        if driver.offset > self.saved.stated || (self.saved.steps > 0 && self.holder.has_much_state()) {
            let state = self.whole_state(driver);
            self.holder.state(driver.offset, state);
        }
        self.acknowledge(driver.offset);
        if !self.saved.states.is_empty() {
            self.schedule_ack();
        }
    }

    /// Lets the holder drop the output that all sessions have stored, up to a whole state that it has.
    fn acknowledge(&mut self, offset: u64) {
        let stored = self.acks.stored_up_to(offset);
        let mut acknowledged = None;
        while self.saved.states.front().is_some_and(|offset| *offset <= stored) {
            acknowledged = self.saved.states.pop_front();
        }
        if let Some(offset) = acknowledged {
            self.holder.ack(offset);
        }
    }
}
