//! Trust in the wall clock.
//!
//! A wall clock can be wrong by years: after a suspended machine resumes, with a wrong time server, or when a user sets it. Irreversible
//! actions (removing old events) and counts by the day (ceilings) therefore need a second source of time: the clock that counts since the
//! machine was started, or, across a start of the machine, the last recorded time. [`ClockRecord::read`] compares them and is pure;
//! [`WallClock`] reads the clocks and stores the record.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use plexus_protocol::Timestamp;
use serde::{Deserialize, Serialize};

use plexus_auth::write_private;

/// Maximum difference between two sources of time that is not a step, in milliseconds.
pub const STEP_MS: i64 = 3_600_000;
/// Maximum time between the last record and a start of the machine that is accepted, in milliseconds: a machine may be off for a week.
pub const OFF_MAX_MS: i64 = 7 * 86_400_000;
/// Time for which the wall clock has to agree with the other clock after a step before it is trusted again, in milliseconds of a running
/// gateway.
pub const PROBATION_MS: u64 = 86_400_000;
/// The file in the state folder with the record. It may be absent.
const FILE: &str = "clock.json";

/// All clocks at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockReading {
    /// The wall clock.
    pub wall: Timestamp,
    /// Time since `boot`, in milliseconds, including time for which the machine was suspended.
    pub running_ms: u64,
    /// The start of the machine that `running_ms` counts from; readings of different starts cannot be compared by it.
    pub boot: Cow<'static, str>,
}

/// A step of the wall clock that is not confirmed yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockDoubt {
    /// The wall clock when the step was noticed.
    pub noticed_at: Timestamp,
    /// The step, in milliseconds; negative if the clock was set back.
    pub step_ms: i64,
    /// Time for which the clocks agreed since, in milliseconds.
    pub agreed_ms: u64,
}

/// The earlier readings that a new one is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockRecord {
    /// The reading that later ones of the same start of the machine have to agree with.
    reference: ClockReading,
    last: ClockReading,
    /// Sum of the unconfirmed steps, in milliseconds.
    offset_ms: i64,
    doubt: Option<ClockDoubt>,
}

impl ClockRecord {
    /// Makes a record that begins with this reading.
    pub const fn new(first: ClockReading, last: ClockReading) -> Self {
        Self { reference: first, last, offset_ms: 0, doubt: None }
    }

    /// Compares a reading with the earlier ones; returns whether the wall clock made a step.
    pub fn read(&mut self, now: ClockReading) -> bool {
        let same_boot = now.boot == self.last.boot && now.running_ms >= self.last.running_ms;
        let step_ms = if same_boot {
            let ran = i64::try_from(now.running_ms.saturating_sub(self.reference.running_ms)).unwrap_or(i64::MAX);
            let ahead = now.wall.as_millis() - self.reference.wall.plus_millis(ran).as_millis();
            (ahead.abs() > STEP_MS).then_some(ahead)
        } else {
            let gap = now.wall.as_millis() - self.last.wall.as_millis();
            (!(-STEP_MS..=OFF_MAX_MS).contains(&gap)).then_some(gap)
        };
        if let Some(step_ms) = step_ms {
            self.offset_ms = self.offset_ms.saturating_add(step_ms);
            self.doubt = Some(ClockDoubt { noticed_at: now.wall, step_ms, agreed_ms: 0 });
        } else if let Some(doubt) = self.doubt.as_mut().filter(|_| same_boot) {
            doubt.agreed_ms += now.running_ms - self.last.running_ms;
            if doubt.agreed_ms >= PROBATION_MS {
                self.confirm();
            }
        }
        if step_ms.is_some() || !same_boot {
            self.reference = now.clone();
        }
        self.last = now;
        step_ms.is_some()
    }

    /// Trusts the wall clock as it is.
    pub fn confirm(&mut self) {
        (self.offset_ms, self.doubt) = (0, None);
    }
}

/// The wall clock of the gateway's machine, and whether it is trusted. One value, shared.
#[derive(Debug)]
pub struct WallClock {
    record: Mutex<ClockRecord>,
    /// The file of the record; `None` in tests.
    file: Option<PathBuf>,
}

impl Default for WallClock {
    fn default() -> Self {
        let now = reading();
        Self { record: Mutex::new(ClockRecord::new(now.clone(), now)), file: None }
    }
}

impl WallClock {
    /// Reads the record of an earlier gateway from its state folder; without one, `newest` is the time of its last event.
    pub fn open(home: &Path, newest: Option<Timestamp>) -> Self {
        let (path, now) = (home.join(FILE), reading());
        let stored = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let record = stored.unwrap_or_else(|| {
            let last = newest.map(|wall| ClockReading { wall, running_ms: 0, boot: Cow::Borrowed("") });
            ClockRecord::new(now.clone(), last.unwrap_or_else(|| now.clone()))
        });
        let clock = Self { record: Mutex::new(record), file: Some(path) };
        clock.check();
        clock
    }

    /// Reads the clocks and stores the record. Called every minute.
    pub fn check(&self) {
        self.observe();
        if let Some(path) = &self.file {
            let record = self.record.lock().clone();
            // On a full disk, the record of an earlier minute is used.
            if let Err(error) = write_private(path, &serde_json::to_vec(&record).unwrap_or_default()) {
                tracing::debug!(%error, "the time could not be written down");
            }
        }
    }

    fn observe(&self) -> i64 {
        let mut record = self.record.lock();
        if record.read(reading())
            && let Some(ClockDoubt { step_ms, .. }) = &record.doubt
        {
            tracing::warn!(
                hours = step_ms / STEP_MS,
                "the clock of this machine made a step: no events are removed for their age, and the day of ceilings continues, until the \
                 clock has been consistent for a day, or `plexus doctor --confirm-clock`"
            );
        }
        record.offset_ms
    }

    /// Returns a reading of the wall clock without unconfirmed steps: the time by which days are counted.
    pub fn steady(&self, wall: Timestamp) -> Timestamp {
        wall.plus_millis(-self.observe())
    }

    /// Returns the last step, while the wall clock is not trusted.
    pub fn doubt(&self) -> Option<ClockDoubt> {
        self.observe();
        self.record.lock().doubt.clone()
    }

    /// Trusts the wall clock as it is, because a user confirmed it.
    pub fn confirm(&self) {
        self.observe();
        self.record.lock().confirm();
        self.check();
    }
}

/// Returns the current readings of the clocks.
fn reading() -> ClockReading {
    let (running_ms, boot) = since_boot();
    ClockReading { wall: std::time::SystemTime::now().into(), running_ms, boot }
}

/// Returns the time since the machine started, including the time for which it was suspended, and the name of that start.
fn since_boot() -> (u64, Cow<'static, str>) {
    static BOOT: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        // Elsewhere, and in some containers, a start of the machine has no name: then the start of this process counts.
        let began = Timestamp::from(std::time::SystemTime::now()).as_millis();
        if id.trim().is_empty() { format!("process {} of {began}", std::process::id()) } else { id.trim().to_owned() }
    });
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    // On macOS this clock continues while the machine sleeps; that of `Instant` does not.
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    let millis = time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000);
    (u64::try_from(millis).unwrap_or_default(), Cow::Borrowed(BOOT.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;

    fn at(boot: &'static str, running: i64, wall: i64) -> ClockReading {
        ClockReading { wall: Timestamp::from_millis(wall), running_ms: running.unsigned_abs(), boot: boot.into() }
    }

    fn record(wall: i64) -> ClockRecord {
        ClockRecord::new(at("a", 0, wall), at("a", 0, wall))
    }

    fn steady(record: &ClockRecord) -> i64 {
        record.last.wall.as_millis() - record.offset_ms
    }

    #[test]
    fn clock_that_goes_on_is_trusted_across_starts() {
        let mut clock = record(1_000 * DAY);
        for (boot, running, wall) in [
            ("a", HOUR, 1_000 * DAY + HOUR),
            // The gateway was down for two months, the machine was not.
            ("a", 60 * DAY, 1_060 * DAY + HOUR / 2),
            // The machine was off for five days, then for no time.
            ("b", 5, 1_065 * DAY),
            ("c", 5, 1_065 * DAY - HOUR / 2),
        ] {
            assert!(!clock.read(at(boot, running, wall)), "{boot} {running}");
            assert!(clock.doubt.is_none() && steady(&clock) == wall);
        }
    }

    #[test]
    fn step_is_noticed_and_days_go_on_without_it() {
        let begin = 1_000 * DAY;
        for step in [200 * DAY, -3 * HOUR, 4_000 * DAY, -900 * DAY, HOUR + 1] {
            let mut clock = record(begin);
            assert!(clock.read(at("a", HOUR, begin + HOUR + step)), "{step}");
            assert_eq!((clock.doubt.as_ref().unwrap().step_ms, steady(&clock)), (step, begin + HOUR));
            assert!(!clock.read(at("a", 2 * HOUR, begin + 2 * HOUR + step)));
            assert_eq!(steady(&clock), begin + 2 * HOUR);
            // The clock is right again: its time is the same, and it is not trusted at once.
            assert!(clock.read(at("a", 3 * HOUR, begin + 3 * HOUR)));
            assert_eq!(steady(&clock), begin + 3 * HOUR);
            assert!(!clock.read(at("a", 3 * HOUR + DAY - 1, begin + 3 * HOUR + DAY - 1)) && clock.doubt.is_some());
            assert!(!clock.read(at("a", 3 * HOUR + DAY, begin + 3 * HOUR + DAY)));
            assert!(clock.doubt.is_none());
        }
    }

    #[test]
    fn steps_that_are_small_add_up() {
        let mut clock = record(1_000 * DAY);
        let stepped = (1..=4).map(|n| clock.read(at("a", n, 1_000 * DAY + n * (HOUR / 3) + n)));
        assert_eq!(stepped.collect::<Vec<_>>(), [false, false, false, true]);
        assert_eq!(steady(&clock), 1_000 * DAY + 4);
    }

    #[test]
    fn start_of_the_machine_is_believed_for_a_week_and_never_backwards() {
        for (gap, stepped) in [(OFF_MAX_MS, false), (OFF_MAX_MS + 1, true), (-STEP_MS, false), (-STEP_MS - 1, true)] {
            let mut clock = record(1_000 * DAY);
            assert_eq!(clock.read(at("b", 5, 1_000 * DAY + gap)), stepped, "{gap}");
            if stepped {
                assert_eq!(steady(&clock), 1_000 * DAY);
            }
        }
        // Without a record, the newest event is the last that is known.
        let mut clock = ClockRecord::new(at("b", 5, 1_300 * DAY), at("", 0, 1_000 * DAY));
        assert!(clock.read(at("b", 5, 1_300 * DAY)));
    }

    #[test]
    fn confirmed_clock_is_trusted() {
        let mut clock = record(1_000 * DAY);
        clock.read(at("a", 5, 1_200 * DAY));
        clock.confirm();
        assert!(clock.doubt.is_none() && steady(&clock) == 1_200 * DAY);
        assert!(!clock.read(at("a", 10, 1_200 * DAY + 5)));
    }

    #[test]
    fn probation_goes_on_after_a_start_and_a_suspended_machine_makes_no_step() {
        let mut clock = record(1_000 * DAY);
        clock.read(at("a", 5, 1_200 * DAY));
        clock.read(at("a", 5 + 23 * HOUR, 1_200 * DAY + 23 * HOUR));
        assert!(!clock.read(at("b", 1, 1_202 * DAY)) && clock.doubt.is_some());
        assert!(!clock.read(at("b", 1 + HOUR, 1_202 * DAY + HOUR)) && clock.doubt.is_none());
        // It slept for a night, which both clocks count.
        assert!(!clock.read(at("b", 1 + 10 * HOUR, 1_202 * DAY + 10 * HOUR)));
    }
}
