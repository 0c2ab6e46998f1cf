//! The rule: which target gets which notification, and when. One file: the rule, and the tables of cases that test it.
//!
//! Pure: events, viewers and the time are inputs, and the notifications to send are the output. It stores only the sessions and requests
//! whose news waits to be sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::text::{NotificationKind, NotificationText};
use plexus_auth::{Grant, Target};
use plexus_protocol::{DeviceId, Scope, SessionId};

/// Milliseconds since the gateway started, by a clock that is never set; by the system clock if a name contains `wall`.
pub(super) type Millis = i64;

const MINUTE: Millis = 60_000;
/// Maximum number of waiting news items; beyond it more are ignored, so that a flood of requests has bounded memory. The inbox has them
/// all the same.
const ITEMS: usize = 1024;
/// Maximum number of running runs whose silence is watched; there are no notifications about the silence of further ones.
const RUNS: usize = 4096;
/// Default number of minutes without an event after which a device gets a notification.
const NO_PROGRESS_MINUTES: u16 = 10;
/// Maximum silence that a device can choose, in minutes: a day.
pub(super) const MAX_NO_PROGRESS: u16 = 24 * 60;
/// Maximum number of single notifications that one target gets at once; more become one summary.
const AT_ONCE: usize = 3;
/// Maximum number of notifications that one target gets in a minute; more wait and become one summary.
const PER_MINUTE: usize = 8;

/// The kinds of news that a target has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = TargetWants)]
pub struct NotificationFilter {
    /// `true` for requests that open.
    pub requests: bool,
    /// `true` for runs that complete.
    pub ends: bool,
    /// `true` for runs that fail.
    pub failures: bool,
    /// Minutes without an event in a run after which it is news; 0 for never.
    #[serde(default = "no_progress_minutes")]
    #[schema(maximum = 1440)]
    pub no_progress_minutes: u16,
}

fn no_progress_minutes() -> u16 {
    NO_PROGRESS_MINUTES
}

impl Default for NotificationFilter {
    fn default() -> Self {
        Self { requests: true, ends: true, failures: true, no_progress_minutes: NO_PROGRESS_MINUTES }
    }
}

impl NotificationFilter {
    /// No news.
    pub const NONE: Self = Self { requests: false, ends: false, failures: false, no_progress_minutes: 0 };

    /// Returns these kinds, with silences of runs of the default length.
    #[must_use]
    pub fn with_no_progress(self) -> Self {
        Self { no_progress_minutes: NO_PROGRESS_MINUTES, ..self }
    }

    /// Returns the silence of a run after which it is news, if such news is chosen.
    fn silence(self) -> Option<Millis> {
        (self.no_progress_minutes > 0).then(|| Millis::from(self.no_progress_minutes) * MINUTE)
    }

    fn covers(self, kind: NotificationKind) -> bool {
        match kind {
            NotificationKind::Request => self.requests,
            NotificationKind::Ended => self.ends,
            NotificationKind::Failed => self.failures,
            NotificationKind::Stalled => self.no_progress_minutes > 0,
        }
    }
}

/// Hours in which a device gets no notifications, on the clock of its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quiet {
    /// The beginning, in minutes after midnight.
    pub(super) from: u16,
    /// The end, in minutes after midnight; before `from` it is on the next day.
    pub(super) to: u16,
    /// The time zone of its owner, so that the hours apply in summer and in winter.
    pub(super) zone: TimeZone,
}

impl Quiet {
    /// Returns the end of the quiet hours that contain `wall`, if there are any; both in milliseconds since the epoch.
    fn ends(&self, wall: Millis) -> Option<Millis> {
        let now = jiff::Timestamp::from_millisecond(wall).ok()?.to_zoned_datetime(self.zone.clone()).datetime();
        let minute = |at: jiff::civil::Time| i64::from(at.hour()) * 60 + i64::from(at.minute());
        let (local, from, to) = (minute(now.time()), i64::from(self.from), i64::from(self.to));
        let within = if from <= to { (from..to).contains(&local) } else { local >= from || local < to };
        if !within {
            return None;
        }
        let day = if local < to { now.date() } else { now.date().tomorrow().ok()? };
        let end = day.at(i8::try_from(self.to / 60).ok()?, i8::try_from(self.to % 60).ok()?, 0, 0);
        let end = self.zone.to_ambiguous_timestamp(end);
        // Of a time that exists twice the first counts, unless it is past; a skipped one counts as if it existed.
        let first = end.compatible().ok()?.as_millisecond();
        Some(if first > wall { first } else { end.later().ok()?.as_millisecond().max(wall + 1) })
    }
}

/// A target of notifications: a device, or a channel of the owner.
#[derive(Clone, Debug)]
pub(super) struct TargetState {
    /// The device and its grant; `None` is a channel of the owner, which may see everything.
    pub(super) device: Option<(DeviceId, Grant)>,
    pub(super) filter: NotificationFilter,
    pub(super) quiet: Option<Quiet>,
}

/// A focused screen.
#[derive(Clone, Debug)]
pub(super) struct ViewerPresence {
    pub(super) device: DeviceId,
    pub(super) grant: Grant,
}

/// The state of one news item for one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryStage {
    /// The session has no viewer since this time.
    Waiting(Millis),
    /// The news is due, but delayed by quiet hours or by the rate limit.
    Held,
    /// The news is in the delivery queue of the target, or delivered.
    Sent,
    /// The news is part of a summary.
    Summed,
}

struct PendingNotification {
    text: Arc<NotificationText>,
    to: BTreeMap<String, DeliveryStage>,
    /// The silence, for a run in progress.
    silence: Option<Silence>,
}

/// The time without events in a run.
struct Silence {
    since: Millis,
    /// The open requests: while there are any, the agent waits for users, who are notified of the requests.
    open_requests: BTreeSet<String>,
    /// `true` if any target was notified, or will be after its quiet hours.
    notified: bool,
}

/// The notification to send.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RuleAction {
    /// A notification of one news item.
    Notify { target: String, text: Arc<NotificationText> },
    /// A summary of several news items.
    Summarize { target: String, texts: Vec<Arc<NotificationText>> },
    /// The withdrawal of a notification, because its news has ended.
    Withdraw { target: String, text: Arc<NotificationText> },
    /// The news has ended, and the target knows it: its device answered.
    Known { target: String, tag: String },
    /// The withdrawal of the last summary, because all its news has ended.
    WithdrawSummary { target: String },
}

/// The state of the rule.
pub(super) struct RuleState {
    after: Millis,
    /// The offset of the system clock from the rule's clock; only quiet hours use it.
    ahead: Millis,
    items: BTreeMap<String, PendingNotification>,
    targets: BTreeMap<String, TargetState>,
    viewers: Vec<ViewerPresence>,
    /// The times when each target was notified, within the last minute.
    notified_at: BTreeMap<String, VecDeque<Millis>>,
    /// The open requests in the last summary of each target.
    sums: BTreeMap<String, BTreeSet<String>>,
    /// The tag of each session's running run.
    runs: BTreeMap<SessionId, String>,
    /// The shortest silence for which any target has chosen a notification.
    shortest: Option<Millis>,
}

impl RuleState {
    /// Makes the state. `after`: time without viewers of a session before a target is notified.
    pub(super) fn new(after: Millis) -> Self {
        Self {
            after,
            ahead: 0,
            items: BTreeMap::new(),
            targets: BTreeMap::new(),
            viewers: Vec::new(),
            notified_at: BTreeMap::new(),
            sums: BTreeMap::new(),
            runs: BTreeMap::new(),
            shortest: None,
        }
    }

    /// Sets the system clock's time at `now`.
    pub(super) fn clock(&mut self, wall: Millis, now: Millis) {
        self.ahead = wall - now;
    }

    /// Returns the end of the quiet hours of a target, if it is in quiet hours.
    fn quiet_until(&self, target: &TargetState, now: Millis) -> Option<Millis> {
        Some(target.quiet.as_ref()?.ends(now + self.ahead)? - self.ahead)
    }

    /// Adds news.
    pub(super) fn open(&mut self, text: NotificationText, now: Millis) {
        self.open_again(text, &BTreeSet::new(), &BTreeSet::new(), now);
    }

    /// Adds news that an earlier gateway may have sent: by itself to the targets `sent`, in a summary to those `summed`.
    pub(super) fn open_again(
        &mut self,
        text: NotificationText,
        sent: &BTreeSet<String>,
        summed: &BTreeSet<String>,
        now: Millis,
    ) {
        if self.items.contains_key(&text.tag) || self.items.len() - self.runs.len() >= ITEMS {
            return;
        }
        let stage = |name: &String| match (sent.contains(name), summed.contains(name)) {
            (true, _) => DeliveryStage::Sent,
            (_, true) => DeliveryStage::Summed,
            _ => DeliveryStage::Waiting(now),
        };
        for name in summed.iter().filter(|name| self.targets.contains_key(*name)) {
            self.sums.entry(name.clone()).or_default().insert(text.tag.clone());
        }
        let to = self.targets.keys().map(|name| (name.clone(), stage(name))).collect();
        self.items.insert(text.tag.clone(), PendingNotification { text: Arc::new(text), to, silence: None });
    }

    /// Begins the silence of a run in progress. `text` is the news that the silence has become long.
    pub(super) fn begin_silence(&mut self, text: NotificationText, now: Millis) {
        if self.items.contains_key(&text.tag) || self.runs.len() >= RUNS {
            return;
        }
        // A session has one running run: the end of the previous one may have been missed.
        if let Some(former) = self.runs.insert(text.session_id.clone(), text.tag.clone()) {
            self.items.remove(&former);
        }
        let to = self.targets.keys().map(|name| (name.clone(), DeliveryStage::Waiting(now))).collect();
        let silence = Some(Silence { since: now, open_requests: BTreeSet::new(), notified: false });
        self.items.insert(text.tag.clone(), PendingNotification { text: Arc::new(text), to, silence });
    }

    /// Records that a session's run has ended.
    pub(super) fn run_ended(&mut self, session: &SessionId) -> Vec<RuleAction> {
        self.runs.remove(session).map_or_else(Vec::new, |tag| self.close(&tag, None))
    }

    /// Records an event in a session, which ends a silence.
    pub(super) fn progress(&mut self, session: &SessionId, now: Millis) -> Vec<RuleAction> {
        let Some(item) = self.runs.get(session).and_then(|tag| self.items.get_mut(tag)) else { return Vec::new() };
        let Some(silence) = &mut item.silence else { return Vec::new() };
        silence.since = now;
        if !std::mem::take(&mut silence.notified) {
            return Vec::new();
        }
        let mut actions = Vec::new();
        for (target, stage) in &mut item.to {
            if *stage == DeliveryStage::Sent {
                actions.push(RuleAction::Withdraw { target: target.clone(), text: Arc::clone(&item.text) });
            }
            *stage = DeliveryStage::Waiting(now);
        }
        actions
    }

    /// Records that a session's request opened or closed: while a request is open, the silence is not news.
    pub(super) fn set_request_open(&mut self, session: &SessionId, request: &str, open: bool) {
        let item = self.runs.get(session).and_then(|tag| self.items.get_mut(tag));
        let Some(silence) = item.and_then(|item| item.silence.as_mut()) else { return };
        if open {
            silence.open_requests.insert(request.to_owned());
        } else {
            silence.open_requests.remove(request);
        }
    }

    /// Removes ended news; `by` is the device that answered a request.
    pub(super) fn close(&mut self, tag: &str, by: Option<&DeviceId>) -> Vec<RuleAction> {
        let Some(item) = self.items.remove(tag) else { return Vec::new() };
        if item.silence.is_some() {
            self.runs.remove(&item.text.session_id);
        }
        let mut actions = Vec::new();
        for (target, stage) in item.to {
            let device = self.targets.get(&target).and_then(|target| target.device.as_ref());
            match stage {
                DeliveryStage::Sent if device.is_none_or(|(device, _)| Some(device) != by) => {
                    actions.push(RuleAction::Withdraw { target, text: Arc::clone(&item.text) });
                }
                DeliveryStage::Summed => {
                    if let Some(sum) = self.sums.get_mut(&target)
                        && sum.remove(tag)
                        && sum.is_empty()
                    {
                        self.sums.remove(&target);
                        actions.push(RuleAction::WithdrawSummary { target });
                    }
                }
                DeliveryStage::Sent => actions.push(RuleAction::Known { target, tag: tag.to_owned() }),
                DeliveryStage::Waiting(_) | DeliveryStage::Held => {}
            }
        }
        actions
    }

    /// Returns all news that waits or was sent.
    pub(super) fn texts(&self) -> impl Iterator<Item = &Arc<NotificationText>> {
        self.items.values().map(|item| &item.text)
    }

    /// Sets the targets. A new one is notified of open requests.
    pub(super) fn targets(&mut self, targets: BTreeMap<String, TargetState>, now: Millis) {
        for item in self.items.values_mut() {
            item.to.retain(|name, _| targets.contains_key(name));
            if item.silence.is_some() {
                for name in targets.keys() {
                    item.to.entry(name.clone()).or_insert(DeliveryStage::Waiting(now));
                }
            } else if item.text.kind == NotificationKind::Request {
                for name in targets.keys().filter(|name| !self.targets.contains_key(*name)) {
                    item.to.entry(name.clone()).or_insert(DeliveryStage::Waiting(now));
                }
            }
        }
        self.notified_at.retain(|name, _| targets.contains_key(name));
        self.sums.retain(|name, _| targets.contains_key(name));
        self.shortest = targets.values().filter_map(|target| target.filter.silence()).min();
        self.targets = targets;
    }

    /// Sets the focused screens. The wait for sessions that were viewed until now starts again.
    pub(super) fn viewers(&mut self, viewers: Vec<ViewerPresence>, now: Millis) {
        self.seen(now);
        self.viewers = viewers;
        self.seen(now);
    }

    /// Restarts the wait for sessions that are being viewed, and drops ends of runs in them.
    fn seen(&mut self, now: Millis) {
        let (targets, viewers, shortest) = (&self.targets, &self.viewers, self.shortest);
        for item in self.items.values_mut().filter(|item| item.may_be_due(shortest, now)) {
            let text = &item.text;
            item.to.retain(|name, stage| {
                let viewed =
                    targets.get(name).is_some_and(|target| viewers.iter().any(|viewer| counts(viewer, target, text)));
                match stage {
                    DeliveryStage::Waiting(_) | DeliveryStage::Held if viewed && !text.kind.lasts() => {
                        return false;
                    }
                    DeliveryStage::Waiting(_) | DeliveryStage::Held if viewed => *stage = DeliveryStage::Waiting(now),
                    _ => {}
                }
                true
            });
        }
        self.items.retain(|_, item| item.text.kind.lasts() || !item.to.is_empty());
    }

    /// Returns the notifications that are due now.
    pub(super) fn tick(&mut self, now: Millis) -> Vec<RuleAction> {
        self.seen(now);
        let mut actions = Vec::new();
        let quiet = self.targets.iter().filter(|(_, target)| self.quiet_until(target, now).is_some());
        let quiet: BTreeSet<String> = quiet.map(|(name, _)| name.clone()).collect();
        for (name, target) in &self.targets {
            let mut due = Vec::new();
            let mut held = false;
            for (tag, item) in self.items.iter_mut().filter(|(_, item)| item.may_be_due(self.shortest, now)) {
                match item.to.get(name) {
                    Some(DeliveryStage::Waiting(since))
                        if item.due(target, *since + self.after).is_some_and(|at| at <= now) => {}
                    Some(DeliveryStage::Held) => held = true,
                    _ => continue,
                }
                if should_notify(target, &item.text) {
                    due.push(tag.clone());
                } else {
                    item.to.remove(name);
                }
            }
            if due.is_empty() {
                continue;
            }
            let recent = self.notified_at.entry(name.clone()).or_default();
            while recent.front().is_some_and(|at| *at + MINUTE <= now) {
                recent.pop_front();
            }
            let wait = quiet.contains(name) || recent.len() >= PER_MINUTE;
            let sum = due.len() > 1 && (held || due.len() > AT_ONCE || recent.len() + due.len() > PER_MINUTE);
            let stage = match (wait, sum) {
                (true, _) => DeliveryStage::Held,
                (false, true) => DeliveryStage::Summed,
                (false, false) => DeliveryStage::Sent,
            };
            let mut texts = Vec::new();
            for tag in &due {
                let Some(item) = self.items.get_mut(tag) else { continue };
                texts.push(match &mut item.silence {
                    None => Arc::clone(&item.text),
                    Some(silence) => {
                        silence.notified = true;
                        Arc::new(item.text.with_minutes((now - silence.since) / MINUTE))
                    }
                });
                // The end of a run is never withdrawn, so it is not stored.
                match stage {
                    DeliveryStage::Held => drop(item.to.insert(name.clone(), stage)),
                    _ if !item.text.kind.lasts() => drop(item.to.remove(name)),
                    _ => drop(item.to.insert(name.clone(), stage)),
                }
            }
            match stage {
                DeliveryStage::Summed => {
                    recent.push_back(now);
                    let requests = texts.iter().filter(|text| text.kind == NotificationKind::Request);
                    self.sums.entry(name.clone()).or_default().extend(requests.map(|text| text.tag.clone()));
                    actions.push(RuleAction::Summarize { target: name.clone(), texts });
                }
                DeliveryStage::Sent => {
                    recent.extend(texts.iter().map(|_| now));
                    actions.extend(texts.into_iter().map(|text| RuleAction::Notify { target: name.clone(), text }));
                }
                DeliveryStage::Held | DeliveryStage::Waiting(_) => {}
            }
        }
        self.items.retain(|_, item| item.text.kind.lasts() || !item.to.is_empty());
        actions
    }

    /// Returns the time when the next notification is due, if nothing else changes.
    pub(super) fn next(&self, now: Millis) -> Option<Millis> {
        let mut next: Option<Millis> = None;
        for item in self.items.values() {
            if !item.may_be_due(self.shortest, now) {
                if let Some(at) = item.first(self.shortest) {
                    next = Some(next.map_or(at, |next| next.min(at)));
                }
                continue;
            }
            for (name, stage) in &item.to {
                let Some(target) = self.targets.get(name) else { continue };
                let at = match stage {
                    DeliveryStage::Waiting(_)
                        if self.viewers.iter().any(|viewer| counts(viewer, target, &item.text)) =>
                    {
                        continue;
                    }
                    DeliveryStage::Waiting(since) => match item.due(target, *since + self.after) {
                        Some(at) => at,
                        None => continue,
                    },
                    DeliveryStage::Held => {
                        let quiet = self.quiet_until(target, now);
                        let pace = self
                            .notified_at
                            .get(name)
                            .and_then(|notified_at| notified_at.front())
                            .map(|at| *at + MINUTE);
                        quiet.or(pace).unwrap_or(now)
                    }
                    DeliveryStage::Sent | DeliveryStage::Summed => continue,
                };
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        next
    }

    /// Records that a notification was not delivered, so that it needs no withdrawal.
    pub(super) fn lost(&mut self, target: &str, tag: &str) {
        let Some(item) = self.items.get_mut(tag) else { return };
        if item.silence.is_none() {
            item.to.remove(target);
        } else if let Some(stage) = item.to.get_mut(target) {
            // Once for each silence, whether or not it was delivered.
            *stage = DeliveryStage::Summed;
        }
    }
}

impl PendingNotification {
    /// Returns the time when the first target could be notified, for the silence of a run without an open request.
    fn first(&self, shortest: Option<Millis>) -> Option<Millis> {
        let silence = self.silence.as_ref().filter(|silence| silence.open_requests.is_empty())?;
        Some(silence.since + shortest?)
    }

    /// Returns whether a notification may be due: a quick check for runs, since there are many and each event causes a check.
    fn may_be_due(&self, shortest: Option<Millis>, now: Millis) -> bool {
        self.silence.is_none() || self.first(shortest).is_some_and(|at| at <= now)
    }

    /// Returns the time to notify a target that waits until `unseen` because of its viewers; `None` if it is not notified.
    fn due(&self, target: &TargetState, unseen: Millis) -> Option<Millis> {
        match &self.silence {
            None => Some(unseen),
            Some(silence) => Some(unseen.max(silence.since + target.filter.silence()?)),
        }
    }
}

/// Returns whether this viewer makes a notification of the target unnecessary. A device that may only watch (a wall display, a guest)
/// does not do so for a request that it cannot answer.
fn counts(viewer: &ViewerPresence, target: &TargetState, text: &NotificationText) -> bool {
    let session = Target::Session(&text.session_id, &text.runtime_id);
    let may = |scope| viewer.grant.covers(scope, session);
    let own = target.device.as_ref().is_some_and(|(device, _)| *device == viewer.device);
    let answers = match text.kind {
        NotificationKind::Request => text.may_allow(&viewer.grant),
        NotificationKind::Ended | NotificationKind::Failed | NotificationKind::Stalled => {
            may(Scope::Approve) || may(Scope::Prompt)
        }
    };
    may(Scope::Watch) && (own || answers)
}

/// Returns whether a target has chosen such news, and may see it.
fn should_notify(target: &TargetState, text: &NotificationText) -> bool {
    let sees = |(_, grant): &(DeviceId, Grant)| {
        grant.covers(Scope::Watch, Target::Session(&text.session_id, &text.runtime_id))
    };
    target.filter.covers(text.kind) && target.device.as_ref().is_none_or(sees)
}

#[cfg(test)]
mod tests;
