//! The rule: which target is notified of what, and when. One file: the rule, and the tables of cases that test it.
//!
//! Pure: events, viewers and the time go in, and what to send comes out. Of sessions and requests it keeps only what waits to be sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::text::NotificationText;
use crate::auth::{Grant, Target};
use plexus_protocol::{DeviceId, Scope, SessionId};

/// Milliseconds since the gateway started, by a clock that is never set; by the system clock where a name says `wall`.
pub(super) type Millis = i64;

const MINUTE: Millis = 60_000;
/// News that waits at once; past it more is ignored, so that a flood of requests costs bounded memory. The inbox has them all the same.
const ITEMS: usize = 1024;
/// Running runs whose silence is watched; of further ones no silence is told.
const RUNS: usize = 4096;
/// Minutes without an event after which a device is told of it, unless it chose another number.
const NO_PROGRESS_MINUTES: u16 = 10;
/// Longest silence that a device can choose: a day.
pub(super) const NO_PROGRESS_MOST: u16 = 24 * 60;
/// Single notifications that one target gets at once; more become one summary.
const AT_ONCE: usize = 3;
/// Notifications that one target gets in a minute; more wait and become one summary.
const PER_MINUTE: usize = 8;

/// The kind of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewsKind {
    /// A request is open.
    Request,
    /// A run completed.
    Ended,
    /// A run failed.
    Failed,
    /// A run goes on, but nothing has happened for a while.
    Stalled,
}

impl NewsKind {
    /// Whether it is news until it is over, and not only once.
    fn lasts(self) -> bool {
        matches!(self, Self::Request | Self::Stalled)
    }
}

/// The kinds of news that a target wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TargetWants {
    /// Requests that open.
    pub requests: bool,
    /// Runs that complete.
    pub ends: bool,
    /// Runs that fail.
    pub failures: bool,
    /// Runs in which nothing has happened for this many minutes; 0: never.
    #[serde(default = "no_progress_minutes")]
    #[schema(maximum = 1440)]
    pub no_progress_minutes: u16,
}

fn no_progress_minutes() -> u16 {
    NO_PROGRESS_MINUTES
}

impl Default for TargetWants {
    fn default() -> Self {
        Self { requests: true, ends: true, failures: true, no_progress_minutes: NO_PROGRESS_MINUTES }
    }
}

impl TargetWants {
    /// Nothing.
    pub const NONE: Self = Self { requests: false, ends: false, failures: false, no_progress_minutes: 0 };

    /// The same, with silences of runs of the usual length.
    #[must_use]
    pub fn with_no_progress(self) -> Self {
        Self { no_progress_minutes: NO_PROGRESS_MINUTES, ..self }
    }

    /// The silence of a run after which it is news, if it is to be.
    fn silence(self) -> Option<Millis> {
        (self.no_progress_minutes > 0).then(|| Millis::from(self.no_progress_minutes) * MINUTE)
    }

    fn covers(self, what: NewsKind) -> bool {
        match what {
            NewsKind::Request => self.requests,
            NewsKind::Ended => self.ends,
            NewsKind::Failed => self.failures,
            NewsKind::Stalled => self.no_progress_minutes > 0,
        }
    }
}

/// Hours in which a device is not to be disturbed, on the clock of its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quiet {
    /// Minutes after midnight.
    pub(super) from: u16,
    /// Minutes after midnight; before `from` it is the next day's.
    pub(super) to: u16,
    /// The time zone of its owner, so that the hours hold in summer and in winter.
    pub(super) zone: TimeZone,
}

impl Quiet {
    /// The end of the quiet hours that contain `wall`, if it is in quiet hours; both in milliseconds since the epoch.
    fn ends(&self, wall: Millis) -> Option<Millis> {
        let now = jiff::Timestamp::from_millisecond(wall).ok()?.to_zoned(self.zone.clone()).datetime();
        let minute = |at: jiff::civil::Time| i64::from(at.hour()) * 60 + i64::from(at.minute());
        let (local, from, to) = (minute(now.time()), i64::from(self.from), i64::from(self.to));
        let within = if from <= to { (from..to).contains(&local) } else { local >= from || local < to };
        if !within {
            return None;
        }
        let day = if local < to { now.date() } else { now.date().tomorrow().ok()? };
        let end = day.at(i8::try_from(self.to / 60).ok()?, i8::try_from(self.to % 60).ok()?, 0, 0);
        let end = self.zone.to_ambiguous_timestamp(end);
        // Of a time that exists twice the first counts, unless it is past; one that is skipped counts as if it existed.
        let first = end.compatible().ok()?.as_millisecond();
        Some(if first > wall { first } else { end.later().ok()?.as_millisecond().max(wall + 1) })
    }
}

/// A target of notifications: a device, or a channel of the owner.
#[derive(Clone, Debug)]
pub(super) struct TargetState {
    /// The device and its grant; `None` is a channel of the owner, which may see everything.
    pub(super) device: Option<(DeviceId, Grant)>,
    pub(super) wants: TargetWants,
    pub(super) quiet: Option<Quiet>,
}

/// A focused screen.
#[derive(Clone, Debug)]
pub(super) struct ViewerPresence {
    pub(super) device: DeviceId,
    pub(super) grant: Grant,
}

/// How far one piece of news has got with one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryStage {
    /// Not viewed by anybody since this time.
    Waiting(Millis),
    /// Due, but held by quiet hours or by the rate limit.
    Held,
    /// In the delivery queue of the target, or delivered.
    Sent,
    /// Part of a summary.
    Summed,
}

struct PendingNews {
    text: Arc<NotificationText>,
    to: BTreeMap<String, DeliveryStage>,
    /// For a run that goes on.
    silence: Option<Silence>,
}

/// How long nothing has happened in a run.
struct Silence {
    since: Millis,
    /// Its open requests: then the agent waits for people, and they are told of that.
    asked: BTreeSet<String>,
    /// Whether any target was told, or is to be once it may be disturbed.
    told: bool,
}

/// What to send.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RuleAction {
    /// One piece of news.
    Notify { target: String, text: Arc<NotificationText> },
    /// A summary of several.
    Summarize { target: String, texts: Vec<Arc<NotificationText>> },
    /// News that a target was notified of is over.
    Withdraw { target: String, text: Arc<NotificationText> },
    /// The same, and the target knows it: its device answered.
    Known { target: String, tag: String },
    /// All that was in the last summary is over.
    WithdrawSummary { target: String },
}

/// What the rule knows.
pub(super) struct RuleState {
    after: Millis,
    /// How far the system clock is ahead of ours; only quiet hours use it.
    ahead: Millis,
    items: BTreeMap<String, PendingNews>,
    targets: BTreeMap<String, TargetState>,
    viewers: Vec<ViewerPresence>,
    /// When each target was notified, within the last minute.
    told: BTreeMap<String, VecDeque<Millis>>,
    /// The open requests in the last summary of each target.
    sums: BTreeMap<String, BTreeSet<String>>,
    /// The tag of each session's running run.
    runs: BTreeMap<SessionId, String>,
    /// The shortest silence that any target wants to hear of.
    shortest: Option<Millis>,
}

impl RuleState {
    /// `after`: how long nobody must have viewed a session before a target is notified.
    pub(super) fn new(after: Millis) -> Self {
        Self {
            after,
            ahead: 0,
            items: BTreeMap::new(),
            targets: BTreeMap::new(),
            viewers: Vec::new(),
            told: BTreeMap::new(),
            sums: BTreeMap::new(),
            runs: BTreeMap::new(),
            shortest: None,
        }
    }

    /// Sets the system clock's time at `now`.
    pub(super) fn clock(&mut self, wall: Millis, now: Millis) {
        self.ahead = wall - now;
    }

    /// When the quiet hours of a target end, if it is in quiet hours.
    fn quiet_until(&self, target: &TargetState, now: Millis) -> Option<Millis> {
        Some(target.quiet.as_ref()?.ends(now + self.ahead)? - self.ahead)
    }

    /// Adds news.
    pub(super) fn open(&mut self, text: NotificationText, now: Millis) {
        self.open_again(text, &BTreeSet::new(), &BTreeSet::new(), now);
    }

    /// Adds news that an earlier gateway may have sent: by itself to the targets `told`, in a summary to those `summed`.
    pub(super) fn open_again(
        &mut self,
        text: NotificationText,
        told: &BTreeSet<String>,
        summed: &BTreeSet<String>,
        now: Millis,
    ) {
        if self.items.contains_key(&text.tag) || self.items.len() - self.runs.len() >= ITEMS {
            return;
        }
        let stage = |name: &String| match (told.contains(name), summed.contains(name)) {
            (true, _) => DeliveryStage::Sent,
            (_, true) => DeliveryStage::Summed,
            _ => DeliveryStage::Waiting(now),
        };
        for name in summed.iter().filter(|name| self.targets.contains_key(*name)) {
            self.sums.entry(name.clone()).or_default().insert(text.tag.clone());
        }
        let to = self.targets.keys().map(|name| (name.clone(), stage(name))).collect();
        self.items.insert(text.tag.clone(), PendingNews { text: Arc::new(text), to, silence: None });
    }

    /// A run goes on: its silence begins. `text` is the news that it has become long.
    pub(super) fn run_goes_on(&mut self, text: NotificationText, now: Millis) {
        if self.items.contains_key(&text.tag) || self.runs.len() >= RUNS {
            return;
        }
        // A session has one running run: the end of the former one may have been missed.
        if let Some(former) = self.runs.insert(text.session_id.clone(), text.tag.clone()) {
            self.items.remove(&former);
        }
        let to = self.targets.keys().map(|name| (name.clone(), DeliveryStage::Waiting(now))).collect();
        let silence = Some(Silence { since: now, asked: BTreeSet::new(), told: false });
        self.items.insert(text.tag.clone(), PendingNews { text: Arc::new(text), to, silence });
    }

    /// A session's run is over.
    pub(super) fn run_over(&mut self, session: &SessionId) -> Vec<RuleAction> {
        self.runs.remove(session).map_or_else(Vec::new, |tag| self.close(&tag, None))
    }

    /// Something happened in a session: a silence is over.
    pub(super) fn progress(&mut self, session: &SessionId, now: Millis) -> Vec<RuleAction> {
        let Some(item) = self.runs.get(session).and_then(|tag| self.items.get_mut(tag)) else { return Vec::new() };
        let Some(silence) = &mut item.silence else { return Vec::new() };
        silence.since = now;
        if !std::mem::take(&mut silence.told) {
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

    /// A session has a further open request, or one less: while it has one, its silence is no news.
    pub(super) fn asks(&mut self, session: &SessionId, request: &str, open: bool) {
        let item = self.runs.get(session).and_then(|tag| self.items.get_mut(tag));
        let Some(silence) = item.and_then(|item| item.silence.as_mut()) else { return };
        if open {
            silence.asked.insert(request.to_owned());
        } else {
            silence.asked.remove(request);
        }
    }

    /// Removes news that is over; `by` is the device that answered a request.
    pub(super) fn close(&mut self, tag: &str, by: Option<&DeviceId>) -> Vec<RuleAction> {
        let Some(item) = self.items.remove(tag) else { return Vec::new() };
        if item.silence.is_some() {
            self.runs.remove(&item.text.session_id);
        }
        let mut actions = Vec::new();
        for (target, stage) in item.to {
            let of = self.targets.get(&target).and_then(|target| target.device.as_ref());
            match stage {
                DeliveryStage::Sent if of.is_none_or(|(device, _)| Some(device) != by) => {
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

    /// All news that waits or was sent.
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
            } else if item.text.what == NewsKind::Request {
                for name in targets.keys().filter(|name| !self.targets.contains_key(*name)) {
                    item.to.entry(name.clone()).or_insert(DeliveryStage::Waiting(now));
                }
            }
        }
        self.told.retain(|name, _| targets.contains_key(name));
        self.sums.retain(|name, _| targets.contains_key(name));
        self.shortest = targets.values().filter_map(|target| target.wants.silence()).min();
        self.targets = targets;
    }

    /// Sets the focused screens. The wait of what was viewed until now starts again.
    pub(super) fn viewers(&mut self, viewers: Vec<ViewerPresence>, now: Millis) {
        self.seen(now);
        self.viewers = viewers;
        self.seen(now);
    }

    /// Restarts the wait of what is being viewed, and drops ends of runs that are.
    fn seen(&mut self, now: Millis) {
        let (targets, viewers, shortest) = (&self.targets, &self.viewers, self.shortest);
        for item in self.items.values_mut().filter(|item| item.may_be_due(shortest, now)) {
            let text = &item.text;
            item.to.retain(|name, stage| {
                let looked =
                    targets.get(name).is_some_and(|target| viewers.iter().any(|viewer| counts(viewer, target, text)));
                match stage {
                    DeliveryStage::Waiting(_) | DeliveryStage::Held if looked && !text.what.lasts() => {
                        return false;
                    }
                    DeliveryStage::Waiting(_) | DeliveryStage::Held if looked => *stage = DeliveryStage::Waiting(now),
                    _ => {}
                }
                true
            });
        }
        self.items.retain(|_, item| item.text.what.lasts() || !item.to.is_empty());
    }

    /// What is due now.
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
                if wanted(target, &item.text) {
                    due.push(tag.clone());
                } else {
                    item.to.remove(name);
                }
            }
            if due.is_empty() {
                continue;
            }
            let told = self.told.entry(name.clone()).or_default();
            while told.front().is_some_and(|at| *at + MINUTE <= now) {
                told.pop_front();
            }
            let wait = quiet.contains(name) || told.len() >= PER_MINUTE;
            let sum = due.len() > 1 && (held || due.len() > AT_ONCE || told.len() + due.len() > PER_MINUTE);
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
                        silence.told = true;
                        Arc::new(item.text.of_minutes((now - silence.since) / MINUTE))
                    }
                });
                // The end of a run is never withdrawn, so nothing of it is kept.
                match stage {
                    DeliveryStage::Held => drop(item.to.insert(name.clone(), stage)),
                    _ if !item.text.what.lasts() => drop(item.to.remove(name)),
                    _ => drop(item.to.insert(name.clone(), stage)),
                }
            }
            match stage {
                DeliveryStage::Summed => {
                    told.push_back(now);
                    let asked = texts.iter().filter(|text| text.what == NewsKind::Request);
                    self.sums.entry(name.clone()).or_default().extend(asked.map(|text| text.tag.clone()));
                    actions.push(RuleAction::Summarize { target: name.clone(), texts });
                }
                DeliveryStage::Sent => {
                    told.extend(texts.iter().map(|_| now));
                    actions.extend(texts.into_iter().map(|text| RuleAction::Notify { target: name.clone(), text }));
                }
                DeliveryStage::Held | DeliveryStage::Waiting(_) => {}
            }
        }
        self.items.retain(|_, item| item.text.what.lasts() || !item.to.is_empty());
        actions
    }

    /// When something is due next, if nothing else changes.
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
                        let pace = self.told.get(name).and_then(|told| told.front()).map(|at| *at + MINUTE);
                        quiet.or(pace).unwrap_or(now)
                    }
                    DeliveryStage::Sent | DeliveryStage::Summed => continue,
                };
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        next
    }

    /// A notification was not delivered, so there is nothing to withdraw.
    pub(super) fn lost(&mut self, target: &str, tag: &str) {
        let Some(item) = self.items.get_mut(tag) else { return };
        if item.silence.is_none() {
            item.to.remove(target);
        } else if let Some(stage) = item.to.get_mut(target) {
            // Once for each silence, whether or not it arrived.
            *stage = DeliveryStage::Summed;
        }
    }
}

impl PendingNews {
    /// When the first target could be told, for the silence of a run without an open request.
    fn first(&self, shortest: Option<Millis>) -> Option<Millis> {
        let silence = self.silence.as_ref().filter(|silence| silence.asked.is_empty())?;
        Some(silence.since + shortest?)
    }

    /// Whether anything of it may be due: of runs this is a quick no, since there are many and each event is a reason to look.
    fn may_be_due(&self, shortest: Option<Millis>, now: Millis) -> bool {
        self.silence.is_none() || self.first(shortest).is_some_and(|at| at <= now)
    }

    /// When a target is to be told that waits until `unseen` because of its viewers; `None` if it is not.
    fn due(&self, target: &TargetState, unseen: Millis) -> Option<Millis> {
        match &self.silence {
            None => Some(unseen),
            Some(silence) => Some(unseen.max(silence.since + target.wants.silence()?)),
        }
    }
}

/// Whether this viewer spares the target the news. A device that may only watch (a wall display, a guest) does not spare others a
/// request that it cannot answer.
fn counts(viewer: &ViewerPresence, target: &TargetState, text: &NotificationText) -> bool {
    let session = Target::Session(&text.session_id, &text.runtime_id);
    let may = |scope| viewer.grant.covers(scope, session);
    let own = target.device.as_ref().is_some_and(|(device, _)| *device == viewer.device);
    let answers = match text.what {
        NewsKind::Request => text.may_answer(&viewer.grant),
        NewsKind::Ended | NewsKind::Failed | NewsKind::Stalled => may(Scope::Approve) || may(Scope::Prompt),
    };
    may(Scope::Watch) && (own || answers)
}

/// Whether a target wants such news, and may see it.
fn wanted(target: &TargetState, text: &NotificationText) -> bool {
    let sees = |(_, grant): &(DeviceId, Grant)| {
        grant.covers(Scope::Watch, Target::Session(&text.session_id, &text.runtime_id))
    };
    target.wants.covers(text.what) && target.device.as_ref().is_none_or(sees)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::{Risk, RuntimeId};

    const AFTER: Millis = 20_000;
    /// 2026-01-31T12:00:00Z.
    const NOON: Millis = 1_769_860_800_000;

    fn ahead(minutes: i32) -> TimeZone {
        TimeZone::fixed(jiff::tz::Offset::from_seconds(minutes * 60).unwrap())
    }

    fn grant(scopes: &[Scope], sessions: Option<&str>) -> Grant {
        let sessions = sessions.map(|id| vec![SessionId::trusted(id)]);
        Grant { sessions, ..Grant::of(scopes) }
    }

    fn text(what: NewsKind, id: &str) -> NotificationText {
        let kind = if what == NewsKind::Request { "request" } else { "run" };
        NotificationText::plain(what, format!("{kind}:{id}"))
    }

    fn device(id: &str, grant: Grant) -> TargetState {
        TargetState { device: Some((DeviceId::trusted(id), grant)), wants: TargetWants::default(), quiet: None }
    }

    struct Fixture {
        rule: RuleState,
        targets: BTreeMap<String, TargetState>,
    }

    impl Fixture {
        /// A phone that may do everything.
        fn new() -> Self {
            Self::with(device("d_phone", Grant::all()))
        }

        fn with(phone: TargetState) -> Self {
            let mut fixture = Self { rule: RuleState::new(AFTER), targets: BTreeMap::from([("phone".into(), phone)]) };
            fixture.rule.targets(fixture.targets.clone(), NOON);
            fixture
        }

        fn open(&mut self, what: NewsKind, id: &str, at: Millis) {
            self.rule.open(text(what, id), NOON + at);
        }

        fn viewer(&mut self, viewers: &[(&str, Grant)], at: Millis) {
            let viewers = viewers
                .iter()
                .map(|(id, grant)| ViewerPresence { device: DeviceId::trusted(*id), grant: grant.clone() });
            self.rule.viewers(viewers.collect(), NOON + at);
        }

        /// What is to be sent then, in short.
        fn tick(&mut self, at: Millis) -> Vec<String> {
            short(&self.rule.tick(NOON + at))
        }

        fn close(&mut self, id: &str, by: &str) -> Vec<String> {
            short(&self.rule.close(&format!("request:{id}"), Some(&DeviceId::trusted(by))))
        }

        /// When something is due next, from noon.
        fn next(&self, at: Millis) -> Option<Millis> {
            self.rule.next(NOON + at).map(|next| next - NOON)
        }
    }

    fn short(actions: &[RuleAction]) -> Vec<String> {
        let tags =
            |texts: &[Arc<NotificationText>]| texts.iter().map(|text| text.tag.clone()).collect::<Vec<_>>().join(" ");
        let line = |action: &RuleAction| match action {
            RuleAction::Notify { target, text } => format!("{target} {}", text.tag),
            RuleAction::Summarize { target, texts } => format!("{target} sum {}", tags(texts)),
            RuleAction::Withdraw { target, text } => format!("{target} not {}", text.tag),
            RuleAction::WithdrawSummary { target } => format!("{target} not sum"),
            RuleAction::Known { target, tag } => format!("{target} knows {tag}"),
        };
        actions.iter().map(line).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn push_rule_viewers_decide_whether_a_phone_is_notified() {
        let all = Grant::all;
        let watch = || grant(&[Scope::Watch], None);
        let approve = || grant(&[Scope::Watch, Scope::Approve], None);
        let prompt = || grant(&[Scope::Watch, Scope::Prompt], None);
        let low = || Grant { approve_up_to: Some(Risk::Low), ..Grant::all() };
        let other = || Grant { sessions: Some(vec![SessionId::trusted("s_2")]), ..Grant::all() };
        use NewsKind::{Ended, Failed, Request};
        type Looks<'a> = &'a [(&'a str, Grant)];
        // The news, the viewers all the while, and whether the phone is notified.
        let table: &[(NewsKind, Looks<'_>, bool)] = &[
            (Request, &[], true),
            (Request, &[("d_desk", all())], false),
            (Request, &[("d_desk", approve())], false),
            // A viewer that cannot answer spares nobody the request.
            (Request, &[("d_wall", watch())], true),
            (Request, &[("d_desk", prompt())], true),
            (Request, &[("d_phone2", low())], true),
            // The own screen of the phone does, whatever its grant.
            (Request, &[("d_phone", watch())], false),
            // A device that may not see the session does not view it.
            (Request, &[("d_desk", other())], true),
            (Request, &[("d_wall", watch()), ("d_desk", all())], false),
            (Ended, &[], true),
            (Ended, &[("d_desk", prompt())], false),
            (Ended, &[("d_desk", approve())], false),
            (Ended, &[("d_guest", watch())], true),
            (Ended, &[("d_phone", watch())], false),
            (Failed, &[], true),
            (Failed, &[("d_desk", all())], false),
            (Failed, &[("d_desk", other())], true),
        ];
        for (what, viewers, told) in table {
            let mut fixture = Fixture::new();
            fixture.viewer(viewers, 0);
            fixture.open(*what, "1", 1000);
            assert_eq!(fixture.tick(AFTER + 999), NONE, "not before its time: {what:?} {viewers:?}");
            assert_eq!(!fixture.tick(AFTER + 1000).is_empty(), *told, "{what:?} {viewers:?}");
            assert_eq!(fixture.tick(10 * AFTER), NONE, "once: {what:?} {viewers:?}");
        }
    }

    #[test]
    fn push_rule_a_viewer_restarts_the_wait_and_drops_ends_of_runs() {
        let mut fixture = Fixture::new();
        fixture.open(NewsKind::Request, "1", 0);
        fixture.open(NewsKind::Ended, "1", 0);
        assert_eq!(fixture.next(0), Some(AFTER));
        fixture.viewer(&[("d_desk", Grant::all())], 19_000);
        assert_eq!(fixture.next(19_000), None, "viewed, so nobody is notified");
        assert_eq!(fixture.tick(60_000), NONE);
        fixture.viewer(&[], 61_000);
        assert_eq!(fixture.next(61_000), Some(61_000 + AFTER));
        assert_eq!(fixture.tick(61_000 + AFTER - 1), NONE);
        assert_eq!(fixture.tick(61_000 + AFTER), ["phone request:1"]);
    }

    #[test]
    fn push_rule_withdraws_once_and_only_what_was_sent() {
        let mut fixture = Fixture::new();
        fixture.open(NewsKind::Request, "1", 0);
        assert_eq!(fixture.close("1", "d_desk"), NONE, "never told, nothing to take back");
        assert_eq!(fixture.tick(AFTER), NONE);
        fixture.open(NewsKind::Request, "2", 0);
        fixture.open(NewsKind::Request, "3", 0);
        fixture.open(NewsKind::Request, "4", 0);
        assert_eq!(fixture.tick(AFTER).len(), 3);
        assert_eq!(fixture.close("2", "d_desk"), ["phone not request:2"]);
        assert_eq!(fixture.close("2", "d_desk"), NONE);
        assert_eq!(fixture.close("3", "d_phone"), ["phone knows request:3"]);
        fixture.rule.lost("phone", "request:4");
        assert_eq!(fixture.close("4", "d_desk"), NONE, "it never came");
    }

    #[test]
    fn push_rule_after_a_restart_repeats_nothing_and_can_withdraw() {
        let mut fixture = Fixture::new();
        let already = BTreeSet::from(["phone".to_owned()]);
        let none = BTreeSet::new();
        fixture.rule.open_again(text(NewsKind::Request, "1"), &already, &none, NOON);
        fixture.rule.open_again(text(NewsKind::Request, "2"), &none, &none, NOON);
        fixture.rule.open_again(text(NewsKind::Request, "3"), &none, &already, NOON);
        // The log has it once more.
        fixture.open(NewsKind::Request, "1", 5);
        assert_eq!(fixture.tick(AFTER), ["phone request:2"]);
        assert_eq!(fixture.close("1", "d_desk"), ["phone not request:1"]);
        assert_eq!(fixture.close("3", "d_desk"), ["phone not sum"]);
    }

    #[test]
    fn push_rule_sends_what_a_target_wants_and_may_see() {
        let only = |wants| TargetState { wants, ..device("d_phone", Grant::all()) };
        let nothing = TargetWants::NONE;
        for (what, wants) in [
            (NewsKind::Request, TargetWants { requests: true, ..nothing }),
            (NewsKind::Ended, TargetWants { ends: true, ..nothing }),
            (NewsKind::Failed, TargetWants { failures: true, ..nothing }),
        ] {
            let mut fixture = Fixture::with(only(wants));
            for what in [NewsKind::Request, NewsKind::Ended, NewsKind::Failed] {
                fixture.open(what, &format!("{what:?}"), 0);
            }
            let told = fixture.tick(AFTER);
            assert!(matches!(&told[..], [one] if one.ends_with(&format!("{what:?}"))), "{told:?}");
        }
        let sees = |grant, told| {
            let mut fixture = Fixture::with(device("d_phone", grant));
            fixture.open(NewsKind::Request, "1", 0);
            assert_eq!(!fixture.tick(AFTER).is_empty(), told);
        };
        sees(grant(&[Scope::Watch], Some("s_1")), true);
        sees(grant(&[Scope::Watch], Some("s_2")), false);
        sees(grant(&[Scope::Approve], None), false);
        let elsewhere = Grant { runtimes: Some(vec![RuntimeId::trusted("other")]), ..Grant::all() };
        sees(elsewhere, false);
        // A channel of the owner sees everything; screens of devices spare it the news.
        let channel = TargetState { device: None, wants: TargetWants::default(), quiet: None };
        let mut fixture = Fixture::with(channel);
        fixture.open(NewsKind::Request, "1", 0);
        assert_eq!(fixture.tick(AFTER), ["phone request:1"]);
    }

    #[test]
    fn push_rule_quiet_hours_end_with_one_summary() {
        // At noon UTC it is 22:30 there, and 30 minutes are gone of the quiet that lasts until 7:00.
        let quiet = Some(Quiet { from: 22 * 60, to: 7 * 60, zone: ahead(630) });
        let mut fixture = Fixture::with(TargetState { quiet: quiet.clone(), ..device("d_phone", Grant::all()) });
        fixture.open(NewsKind::Request, "1", 0);
        fixture.open(NewsKind::Request, "2", 0);
        fixture.open(NewsKind::Request, "3", 0);
        fixture.open(NewsKind::Failed, "4", 0);
        assert_eq!(fixture.tick(AFTER), NONE);
        let end = 8 * 60 * MINUTE + 30 * MINUTE;
        assert_eq!(fixture.next(AFTER), Some(end));
        assert_eq!(fixture.close("3", "d_desk"), NONE, "not notified of the request, so not of its end");
        assert_eq!(fixture.tick(end - 1), NONE);
        assert_eq!(fixture.tick(end), ["phone sum request:1 request:2 run:4"]);
        assert_eq!(fixture.tick(end + AFTER), NONE);
        assert_eq!(fixture.close("1", "d_desk"), NONE);
        assert_eq!(fixture.close("2", "d_desk"), ["phone not sum"]);

        // A single piece of news is sent by itself.
        let mut fixture = Fixture::with(TargetState { quiet: quiet.clone(), ..device("d_phone", Grant::all()) });
        fixture.open(NewsKind::Request, "1", 0);
        assert_eq!(fixture.tick(AFTER), NONE);
        assert_eq!(fixture.tick(end), ["phone request:1"]);
    }

    #[test]
    fn push_quiet_hours_end_at_their_time() {
        let at = |hour: i64, minute: i64| NOON - 12 * 60 * MINUTE + (hour * 60 + minute) * MINUTE;
        let night = Quiet { from: 22 * 60, to: 7 * 60, zone: ahead(0) };
        let day = Quiet { from: 9 * 60, to: 17 * 60, zone: ahead(-60) };
        for (quiet, now, end) in [
            (&night, at(22, 0), Some(at(31, 0))),
            (&night, at(23, 59), Some(at(31, 0))),
            (&night, at(0, 0), Some(at(7, 0))),
            (&night, at(6, 59), Some(at(7, 0))),
            (&night, at(7, 0), None),
            (&night, at(21, 59), None),
            (&day, at(9, 59), None),
            (&day, at(10, 0) + 59_999, Some(at(18, 0))),
            (&day, at(17, 59), Some(at(18, 0))),
            (&day, at(18, 0), None),
        ] {
            assert_eq!(quiet.ends(now), end, "{quiet:?} at {}", (now - at(0, 0)) / MINUTE);
        }
    }

    #[test]
    fn push_quiet_hours_follow_their_time_zone_in_summer_and_winter() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        let night = Quiet { from: 22 * 60, to: 7 * 60, zone: zone.clone() };
        for (now, end) in [
            ("2026-01-15T05:59:00Z", Some("2026-01-15T06:00:00Z")),
            ("2026-01-15T06:00:00Z", None),
            ("2026-07-15T04:59:00Z", Some("2026-07-15T05:00:00Z")),
            ("2026-07-15T05:00:00Z", None),
            // The nights in which the clock is set: an hour shorter, an hour longer.
            ("2026-03-28T21:30:00Z", Some("2026-03-29T05:00:00Z")),
            ("2026-10-24T20:30:00Z", Some("2026-10-25T06:00:00Z")),
        ] {
            assert_eq!(night.ends(at(now)), end.map(at), "{now}");
        }
        // An end in the hour that comes twice, and in the one that is left out.
        let short = Quiet { from: 60, to: 150, zone };
        assert_eq!(short.ends(at("2026-10-25T00:20:00Z")), Some(at("2026-10-25T00:30:00Z")));
        assert_eq!(short.ends(at("2026-10-25T01:20:00Z")), Some(at("2026-10-25T01:30:00Z")));
        assert_eq!(short.ends(at("2026-03-29T00:50:00Z")), Some(at("2026-03-29T01:30:00Z")));
    }

    #[test]
    fn push_rule_waits_ignore_a_changed_clock_and_quiet_hours_follow_it() {
        let mut fixture = Fixture::new();
        fixture.open(NewsKind::Request, "1", 0);
        fixture.rule.clock(NOON - 60 * MINUTE, NOON);
        assert_eq!(fixture.next(0), Some(AFTER));
        assert_eq!(fixture.tick(AFTER), ["phone request:1"]);
        let quiet = Some(Quiet { from: 11 * 60, to: 13 * 60, zone: ahead(0) });
        let mut fixture = Fixture::with(TargetState { quiet, ..device("d_phone", Grant::all()) });
        fixture.open(NewsKind::Request, "1", 0);
        fixture.tick(AFTER);
        assert_eq!(fixture.next(AFTER), Some(60 * MINUTE));
        fixture.rule.clock(NOON - 60 * MINUTE, NOON);
        assert_eq!(fixture.next(AFTER), Some(120 * MINUTE), "on the wall it is eleven, and quiet until one");
        assert_eq!(fixture.tick(60 * MINUTE), NONE);
        assert_eq!(fixture.tick(120 * MINUTE), ["phone request:1"]);
    }

    #[test]
    fn push_rule_sums_up_a_flood_and_limits_the_rate() {
        let mut fixture = Fixture::new();
        for n in 0..100 {
            fixture.open(NewsKind::Request, &format!("{n:03}"), 0);
        }
        let told = fixture.tick(AFTER);
        assert!(matches!(&told[..], [one] if one.starts_with("phone sum request:000 ")), "{told:?}");
        // One by one, eight a minute; then they wait for the minute to pass and come together.
        for n in 0..20 {
            fixture.open(NewsKind::Request, &format!("b{n:02}"), AFTER + n);
        }
        let told: Vec<String> = (0..20).flat_map(|n| fixture.tick(2 * AFTER + n)).collect();
        assert_eq!(told.len(), 7, "{told:?}");
        assert_eq!(fixture.next(2 * AFTER + 20), Some(AFTER + MINUTE));
        let told = fixture.tick(AFTER + MINUTE);
        assert!(matches!(&told[..], [one] if one.starts_with("phone sum request:b07 ")), "{told:?}");
    }

    #[test]
    fn push_rule_notifies_a_new_target_of_open_requests() {
        let mut fixture = Fixture::new();
        fixture.open(NewsKind::Request, "1", 0);
        fixture.open(NewsKind::Ended, "2", 0);
        let mut targets = fixture.targets.clone();
        targets.insert("tablet".into(), device("d_tablet", Grant::all()));
        fixture.rule.targets(targets.clone(), NOON + 10_000);
        assert_eq!(fixture.tick(AFTER), ["phone request:1", "phone run:2"]);
        assert_eq!(fixture.tick(AFTER + 10_000), ["tablet request:1"]);
        targets.remove("phone");
        fixture.rule.targets(targets, NOON + AFTER + 10_000);
        assert_eq!(fixture.close("1", "d_desk"), ["tablet not request:1"]);
        assert!(fixture.rule.items.is_empty());
    }

    #[test]
    fn push_rule_items_are_bounded() {
        let mut fixture = Fixture::new();
        for n in 0..ITEMS + 10 {
            fixture.open(NewsKind::Request, &n.to_string(), 0);
        }
        assert_eq!(fixture.rule.items.len(), ITEMS);
    }

    fn run(fixture: &mut Fixture, at: Millis) {
        fixture.rule.run_goes_on(text(NewsKind::Stalled, "1"), NOON + at);
    }

    fn session() -> SessionId {
        SessionId::trusted("s_1")
    }

    #[test]
    fn push_rule_tells_of_a_silent_run_once_for_each_silence() {
        let mut fixture = Fixture::new();
        run(&mut fixture, 0);
        assert_eq!(fixture.next(0), Some(10 * MINUTE));
        assert!(fixture.rule.progress(&session(), NOON + 2 * MINUTE).is_empty());
        assert_eq!(fixture.tick(12 * MINUTE - 1), NONE);
        assert_eq!(fixture.next(11 * MINUTE), Some(12 * MINUTE));
        assert_eq!(fixture.tick(12 * MINUTE), ["phone run:1"]);
        assert_eq!((fixture.tick(60 * MINUTE), fixture.next(60 * MINUTE)), (Vec::new(), None), "once");
        assert_eq!(short(&fixture.rule.progress(&session(), NOON + 61 * MINUTE)), ["phone not run:1"]);
        assert_eq!(fixture.tick(71 * MINUTE), ["phone run:1"], "the next silence");
        fixture.rule.lost("phone", "run:1");
        assert_eq!(fixture.tick(90 * MINUTE), NONE, "once, though it did not arrive");
        assert_eq!(short(&fixture.rule.run_over(&session())), NONE);
        assert!(fixture.rule.items.is_empty() && fixture.rule.runs.is_empty());
        assert_eq!(fixture.tick(200 * MINUTE), NONE);
    }

    #[test]
    fn push_rule_silence_waits_for_requests_viewers_and_quiet_hours() {
        let mut fixture = Fixture::new();
        run(&mut fixture, 0);
        fixture.rule.asks(&session(), "q_1", true);
        assert_eq!((fixture.next(0), fixture.tick(30 * MINUTE)), (None, Vec::new()), "it waits for people");
        fixture.rule.progress(&session(), NOON + 30 * MINUTE);
        fixture.rule.asks(&session(), "q_1", false);
        fixture.viewer(&[("d_desk", Grant::all())], 31 * MINUTE);
        assert_eq!(fixture.tick(45 * MINUTE), NONE, "somebody looks");
        fixture.viewer(&[], 50 * MINUTE);
        assert_eq!(fixture.next(50 * MINUTE), Some(50 * MINUTE + AFTER));
        assert_eq!(fixture.tick(50 * MINUTE + AFTER), ["phone run:1"]);
        let quiet = Some(Quiet { from: 11 * 60, to: 13 * 60, zone: ahead(0) });
        let mut fixture = Fixture::with(TargetState { quiet, ..device("d_phone", Grant::all()) });
        run(&mut fixture, 0);
        assert_eq!((fixture.tick(10 * MINUTE), fixture.next(10 * MINUTE)), (Vec::new(), Some(60 * MINUTE)));
        assert_eq!(fixture.tick(60 * MINUTE), ["phone run:1"]);
        fixture.rule.progress(&session(), NOON + 60 * MINUTE);
        let before = fixture.next(60 * MINUTE);
        assert_eq!(before, Some(70 * MINUTE));
    }

    #[test]
    fn push_rule_silence_is_as_long_as_each_target_chose() {
        let with = |no_progress_minutes| TargetState {
            wants: TargetWants { no_progress_minutes, ..TargetWants::default() },
            ..device("d_phone", Grant::all())
        };
        let mut fixture = Fixture::with(with(30));
        fixture.targets.insert("tablet".into(), with(3));
        fixture.targets.insert("watch".into(), with(0));
        fixture.rule.targets(fixture.targets.clone(), NOON);
        run(&mut fixture, 0);
        assert_eq!(fixture.next(0), Some(3 * MINUTE));
        assert_eq!(fixture.tick(3 * MINUTE), ["tablet run:1"]);
        assert_eq!(fixture.next(3 * MINUTE), Some(30 * MINUTE));
        assert_eq!(fixture.tick(30 * MINUTE), ["phone run:1"]);
        // A device that changes its mind is told.
        fixture.targets.insert("watch".into(), with(5));
        fixture.rule.targets(fixture.targets.clone(), NOON + 31 * MINUTE);
        assert_eq!(fixture.tick(31 * MINUTE), ["watch run:1"]);
    }

    #[test]
    fn push_rule_running_runs_are_bounded_and_leave_room_for_requests() {
        let mut fixture = Fixture::new();
        for n in 0..RUNS + 10 {
            let mut text = text(NewsKind::Stalled, &n.to_string());
            text.session_id = SessionId::trusted(format!("s_{n}"));
            fixture.rule.run_goes_on(text, NOON);
        }
        assert_eq!(fixture.rule.items.len(), RUNS);
        fixture.open(NewsKind::Request, "1", 0);
        assert_eq!(fixture.tick(AFTER), ["phone request:1"]);
    }
}
