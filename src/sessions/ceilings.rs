//! Ceilings of what agents may spend: their values, what was spent today, and which session asks about it. The reaction of a session is
//! decided in `state/ceilings`.
//!
//! An answer is stored with the session in which it was given, in the same commit as the receipt; the book of a new gateway collects the
//! answers again. The answers of a deleted session are lost when the gateway stops: the next gateway asks once more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use plexus_protocol::api::usage::{CeilingSettings, CeilingsView, ConfiguredCeilings};
use plexus_protocol::{Ceiling, SessionId, Spending, Timestamp};
use plexus_store::{SpendGroup, SpendQuery, Store, StoreError};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::SessionError;
use plexus_auth::write_private;
use plexus_clock::WallClock;

/// Maximum number of sessions with a ceiling of their own; one more is refused.
pub const OWN_CEILINGS_MAX: usize = 1000;
/// The file in the state folder that stores the ceilings.
const FILE: &str = "ceilings.json";
const DAY_MILLIS: i64 = 86_400_000;

/// An answer to the day's ceiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct DayAnswer {
    /// The number of the day.
    pub(super) day: i64,
    pub(super) at: Timestamp,
    /// The spending at the time of the answer.
    pub(super) allowed: Spending,
    /// `true` if the answer was to stop.
    pub(super) stopped: bool,
}

/// The facts on which sessions base decisions; replaced as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct CeilingFacts {
    /// The effective ceiling of a day.
    pub(super) day_ceiling: Ceiling,
    pub(super) session_ceiling: Ceiling,
    pub(super) own: Arc<BTreeMap<SessionId, Ceiling>>,
    /// The number of the day, and the time when it ends.
    pub(super) day: i64,
    pub(super) day_ends: Timestamp,
    /// The spending so far today.
    pub(super) spent: Spending,
    /// The last answer of today.
    pub(super) answer: Option<DayAnswer>,
    /// The session that asks about today's ceiling, or is going to.
    pub(super) asking_session: Option<SessionId>,
}

impl CeilingFacts {
    /// Returns the ceiling of a session.
    pub(super) fn ceiling(&self, id: &SessionId) -> &Ceiling {
        self.own.get(id).unwrap_or(&self.session_ceiling)
    }

    /// Returns whether nothing is limited.
    pub(super) fn is_unlimited(&self) -> bool {
        self.day_ceiling.is_none() && self.session_ceiling.is_none() && self.own.is_empty()
    }

    /// Returns the spending at the time when a user last allowed today to continue.
    pub(super) fn allowed(&self) -> Spending {
        self.answer.as_ref().map(|answer| answer.allowed.clone()).unwrap_or_default()
    }

    /// Returns whether a user chose to stop today.
    pub(super) fn stopped(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.stopped)
    }

    /// Returns whether today's ceiling is reached.
    pub(super) fn day_is_reached(&self) -> bool {
        !self.day_ceiling.is_none() && self.day_ceiling.reached(&self.spent, &self.allowed()).is_some()
    }

    fn begin_day(&mut self, (day, ends): (i64, Timestamp)) {
        (self.day, self.day_ends) = (day, ends);
        (self.spent, self.answer, self.asking_session) = (Spending::default(), None, None);
    }
}

/// The gateway's ceilings: one value, shared by all sessions.
pub struct CeilingBook {
    /// Held while the facts change.
    changing: Mutex<()>,
    facts: ArcSwap<CeilingFacts>,
    settings: Mutex<(ConfiguredCeilings, CeilingSettings)>,
    /// The path of the file with the ceilings; `None` in tests.
    file: Mutex<Option<PathBuf>>,
    /// The clock that defines days: an unconfirmed step of it begins no day.
    clock: Arc<WallClock>,
    /// A counter of the changes that may release prompts, or make another session ask.
    changes: watch::Sender<u64>,
}

impl Default for CeilingBook {
    fn default() -> Self {
        Self {
            changing: Mutex::default(),
            facts: ArcSwap::default(),
            settings: Mutex::default(),
            file: Mutex::default(),
            clock: Arc::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl CeilingBook {
    /// Returns the clock that defines days.
    pub(super) const fn clock(&self) -> &Arc<WallClock> {
        &self.clock
    }

    /// Returns the current facts. Begins a new day if the last one has ended.
    pub(super) fn facts(&self, now: Timestamp) -> Arc<CeilingFacts> {
        let (facts, now) = (self.facts.load_full(), self.clock.steady(now));
        if now < facts.day_ends {
            return facts;
        }
        let next = day_at(now);
        self.change(|facts| {
            if now >= facts.day_ends {
                facts.begin_day(next);
            }
        });
        self.facts.load_full()
    }

    /// Returns a watch that is notified of every change that may matter to waiting prompts.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Changes the facts; notifies sessions if that changes what they may do.
    fn change(&self, change: impl FnOnce(&mut CeilingFacts)) {
        let _changing = self.changing.lock();
        let before = self.facts.load_full();
        let mut next = CeilingFacts::clone(&before);
        change(&mut next);
        let has_changed = before.day_is_reached() != next.day_is_reached()
            || before.day != next.day
            || before.answer != next.answer
            || before.asking_session != next.asking_session
            || (&before.day_ceiling, &before.session_ceiling, &before.own)
                != (&next.day_ceiling, &next.session_ceiling, &next.own);
        self.facts.store(Arc::new(next));
        if has_changed {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Reads what was spent today, when a gateway starts and when its clock is trusted again.
    pub(super) fn begin(&self, store: &dyn Store, now: Timestamp) -> Result<(), StoreError> {
        let now = self.clock.steady(now);
        let (_, ends) = day_at(now);
        // Sums are stored by the quarter of an hour, at which days begin, too.
        let from = day_begins(now);
        let query = SpendQuery { from, to: ends, session: None, by: SpendGroup::Session, offset_millis: 0 };
        let mut spent = Spending::default();
        store.spending(query)?.iter().for_each(|row| spent.add(&row.spending));
        self.begin_with(spent, now);
        Ok(())
    }

    /// Begins a day of which `spent` was spent already.
    pub(super) fn begin_with(&self, spent: Spending, now: Timestamp) {
        self.change(|facts| {
            facts.begin_day(day_at(now));
            facts.spent = spent;
        });
    }

    /// Adds what a session spent, once it is stored.
    pub(super) fn add<'s>(&self, spent: impl Iterator<Item = &'s Spending>, now: Timestamp) {
        let spent: Vec<&Spending> = spent.collect();
        if spent.is_empty() {
            return;
        }
        self.facts(now);
        self.change(|facts| spent.into_iter().for_each(|one| facts.spent.add(one)));
    }

    /// Records an answer about today, as it is stored with a session; the latest one counts.
    pub(super) fn answered(&self, answer: &DayAnswer) {
        let newer = |facts: &CeilingFacts| {
            answer.day == facts.day && facts.answer.as_ref().is_none_or(|earlier| earlier.at < answer.at)
        };
        if newer(&self.facts.load()) {
            self.change(|facts| {
                if newer(facts) {
                    facts.answer = Some(answer.clone());
                }
            });
        }
    }

    /// Makes the session the one that asks about today, unless another one does. Returns whether it is.
    pub(super) fn claim(&self, session: &SessionId) -> bool {
        if self.facts.load().asking_session.is_none() {
            self.change(|facts| {
                facts.asking_session.get_or_insert_with(|| session.clone());
            });
        }
        self.facts.load().asking_session.as_ref() == Some(session)
    }

    /// Records that the session does not ask about today, or no longer does.
    pub(super) fn release(&self, session: &SessionId) {
        if self.facts.load().asking_session.as_ref() == Some(session) {
            self.change(|facts| {
                if facts.asking_session.as_ref() == Some(session) {
                    facts.asking_session = None;
                }
            });
        }
    }

    /// Sets ceilings.
    pub(super) fn set(&self, configured: ConfiguredCeilings, set: CeilingSettings) {
        self.change(|facts| {
            facts.day_ceiling = set.day.clone().unwrap_or_else(|| configured.day.clone());
            facts.session_ceiling = set.session.clone().unwrap_or_else(|| configured.session.clone());
            facts.own = Arc::new(set.sessions.clone());
        });
        *self.settings.lock() = (configured, set);
    }
}

/// Returns the day's number by the clock of this machine, and the time when the day ends.
fn day_at(now: Timestamp) -> (i64, Timestamp) {
    let zoned = zoned(now);
    let day = zoned
        .as_ref()
        .map(|now| i64::from(now.date().since(jiff::civil::date(1970, 1, 1)).map_or(0, |days| days.get_days())));
    let next = zoned
        .as_ref()
        .and_then(|now| now.date().checked_add(1.day()).ok()?.to_zoned_datetime(now.time_zone().clone()).ok());
    let utc = now.as_millis().div_euclid(DAY_MILLIS);
    let ends = next.map_or((utc + 1) * DAY_MILLIS, |next| next.timestamp().as_millisecond());
    (day.unwrap_or(utc), Timestamp::from_millis(ends))
}

/// Returns the time when the day began by the clock of this machine.
fn day_begins(now: Timestamp) -> Timestamp {
    let begins = zoned(now).and_then(|now| now.start_of_day().ok());
    let utc = now.as_millis().div_euclid(DAY_MILLIS) * DAY_MILLIS;
    Timestamp::from_millis(begins.map_or(utc, |begins| begins.timestamp().as_millisecond()))
}

fn zoned(at: Timestamp) -> Option<jiff::ZonedDateTime> {
    Some(jiff::Timestamp::from_millisecond(at.as_millis()).ok()?.to_zoned_datetime(TimeZone::system()))
}

/// The reason why the file of ceilings cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path} cannot be read, and it limits what agents may spend: {reason}; fix it, or delete it for the ceilings of the configuration"
)]
pub struct CeilingFileError {
    path: PathBuf,
    reason: String,
}

impl CeilingBook {
    /// Opens the book with the ceilings of the configuration, and those that were set in an earlier gateway, which the state folder
    /// stores.
    ///
    /// # Errors
    /// [`CeilingFileError`]: the file cannot be read. A gateway without the ceilings that a user set must not start.
    pub fn open(home: &Path, configured: ConfiguredCeilings, clock: Arc<WallClock>) -> Result<Self, CeilingFileError> {
        let path = home.join(FILE);
        let set = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()).and_then(checked),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(CeilingSettings::default()),
            Err(error) => Err(error.to_string()),
        };
        let set = set.map_err(|reason| CeilingFileError { path: path.clone(), reason })?;
        let book = Self { file: Mutex::new(Some(path)), clock, ..Self::default() };
        book.set(configured, set);
        Ok(book)
    }

    /// Returns the ceilings, and what counts towards the one of today.
    pub(super) fn view(&self, now: Timestamp) -> CeilingsView {
        let (configured, set) = self.settings.lock().clone();
        let facts = self.facts(now);
        CeilingsView {
            set,
            configured,
            day: facts.day_ceiling.clone(),
            session: facts.session_ceiling.clone(),
            today: facts.spent.clone(),
            allowed: facts.allowed(),
            day_ends: facts.day_ends,
        }
    }

    /// Sets ceilings in place of the earlier ones, and writes them to the file. Blocks.
    pub(super) fn replace(&self, settings: CeilingSettings) -> Result<(), SessionError> {
        // Held while writing, so that the file and the memory agree.
        let file = self.file.lock();
        if let Some(path) = &*file {
            write_private(path, &serde_json::to_vec_pretty(&settings).unwrap_or_default())
                .map_err(|error| SessionError::Storage(format!("{}: {error}", path.display())))?;
        }
        let configured = self.settings.lock().0.clone();
        self.set(configured, settings);
        Ok(())
    }
}

/// Checks settings that a client sent.
pub(super) fn checked(settings: CeilingSettings) -> Result<CeilingSettings, String> {
    if settings.sessions.len() > OWN_CEILINGS_MAX {
        return Err(format!("at most {OWN_CEILINGS_MAX} sessions may have a ceiling of their own"));
    }
    let day = settings.day.map(Ceiling::checked).transpose()?;
    let session = settings.session.map(Ceiling::checked).transpose()?;
    let own = settings.sessions.into_iter().map(|(id, ceiling)| Ok((id, ceiling.checked()?)));
    Ok(CeilingSettings { day, session, sessions: own.collect::<Result<_, String>>()? })
}
