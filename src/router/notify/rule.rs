//! Who is told of what, and when. One file: the rule, and the tables of cases that hold it.
//!
//! Pure: it hears what the log says, who looks, and what time it is, and says what to send; it keeps no state of its own of
//! sessions or requests beyond what waits to be told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::text::NotificationText;
use crate::auth::{Grant, Target};
use plexus_protocol::{DeviceId, Scope};

/// Milliseconds: of waiting since the gateway began, which no change of the clock shortens or prolongs, except where it says `wall`.
pub(super) type Millis = i64;

const MINUTE: Millis = 60_000;
/// What waits to be told at once; past it nothing more is taken in, so that a flood of questions costs bounded memory. They
/// are in every inbox all the same.
const ITEMS: usize = 1024;
/// Notifications of their own that one place gets at once; more become one that sums them up.
const AT_ONCE: usize = 3;
/// Notifications that one place gets in a minute; what comes beyond waits, and becomes one that sums it up.
const PER_MINUTE: usize = 8;

/// What sort of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewsKind {
    /// A request is open.
    Request,
    /// A run completed.
    Ended,
    /// A run failed.
    Failed,
}

/// The kinds of news that a place wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TargetWants {
    /// Requests that open.
    pub requests: bool,
    /// Runs that complete.
    pub ends: bool,
    /// Runs that fail.
    pub failures: bool,
}

impl Default for TargetWants {
    fn default() -> Self {
        Self { requests: true, ends: true, failures: true }
    }
}

impl TargetWants {
    fn covers(self, what: NewsKind) -> bool {
        match what {
            NewsKind::Request => self.requests,
            NewsKind::Ended => self.ends,
            NewsKind::Failed => self.failures,
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
    /// Where its owner is: what the clock shows there, in summer and in winter.
    pub(super) zone: TimeZone,
}

impl Quiet {
    /// When the quiet that reigns at this time of day, in milliseconds since the epoch, ends.
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
        // An hour that comes twice ends at its first end, unless that is over; one that is left out ends where it would be.
        let first = end.compatible().ok()?.as_millisecond();
        Some(if first > wall { first } else { end.later().ok()?.as_millisecond().max(wall + 1) })
    }
}

/// Somebody who is told.
#[derive(Clone, Debug)]
pub(super) struct TargetState {
    /// Its device and what that may see; `None` is a channel of the owner's, which may see everything.
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

/// How far a place has been told of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryStage {
    /// Nobody has been looking since then.
    Waiting(Millis),
    /// It is due, but not now: the hours are quiet, or there was much already.
    Held,
    /// It was handed to the place's lane.
    Sent,
    /// It was summed up with others.
    Summed,
}

struct PendingNews {
    story: Arc<NotificationText>,
    to: BTreeMap<String, DeliveryStage>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RuleAction {
    /// Tell a place.
    Tell { place: String, story: Arc<NotificationText> },
    /// Tell a place of several things at once.
    Sum { place: String, stories: Vec<Arc<NotificationText>> },
    /// Tell a place that it is over, if it was told.
    Withdraw { place: String, story: Arc<NotificationText> },
    /// A place was told and knows by itself that it is over.
    Known { place: String, tag: String },
    /// Tell a place that everything is over that was summed up.
    WithdrawSum { place: String },
}

/// The rule's desk.
pub(super) struct RuleState {
    after: Millis,
    /// How far the clock on the wall is ahead of ours. Only quiet hours ask for it.
    ahead: Millis,
    items: BTreeMap<String, PendingNews>,
    places: BTreeMap<String, TargetState>,
    looks: Vec<ViewerPresence>,
    /// When each place was told, within the last minute.
    told: BTreeMap<String, VecDeque<Millis>>,
    /// The open requests that each place's last summary was about.
    sums: BTreeMap<String, BTreeSet<String>>,
}

impl RuleState {
    /// Nobody is told before nobody has been looking for so long.
    pub(super) fn new(after: Millis) -> Self {
        Self {
            after,
            ahead: 0,
            items: BTreeMap::new(),
            places: BTreeMap::new(),
            looks: Vec::new(),
            told: BTreeMap::new(),
            sums: BTreeMap::new(),
        }
    }

    /// What time it is on the wall when it is `now` here.
    pub(super) fn clock(&mut self, wall: Millis, now: Millis) {
        self.ahead = wall - now;
    }

    /// When a place's quiet ends, if it is quiet there.
    fn quiet_until(&self, place: &TargetState, now: Millis) -> Option<Millis> {
        Some(place.quiet.as_ref()?.ends(now + self.ahead)? - self.ahead)
    }

    /// There is news.
    pub(super) fn open(&mut self, story: NotificationText, now: Millis) {
        self.open_again(story, &BTreeSet::new(), &BTreeSet::new(), now);
    }

    /// There is news that an earlier gateway may have told: to the places `told` by itself, to those `summed` with others.
    pub(super) fn open_again(
        &mut self,
        story: NotificationText,
        told: &BTreeSet<String>,
        summed: &BTreeSet<String>,
        now: Millis,
    ) {
        if self.items.contains_key(&story.tag) || self.items.len() >= ITEMS {
            return;
        }
        let stage = |name: &String| match (told.contains(name), summed.contains(name)) {
            (true, _) => DeliveryStage::Sent,
            (_, true) => DeliveryStage::Summed,
            _ => DeliveryStage::Waiting(now),
        };
        for name in summed.iter().filter(|name| self.places.contains_key(*name)) {
            self.sums.entry(name.clone()).or_default().insert(story.tag.clone());
        }
        let to = self.places.keys().map(|name| (name.clone(), stage(name))).collect();
        self.items.insert(story.tag.clone(), PendingNews { story: Arc::new(story), to });
    }

    /// What was asked is asked no more. The device that answered knows already.
    pub(super) fn close(&mut self, tag: &str, by: Option<&DeviceId>) -> Vec<RuleAction> {
        let Some(item) = self.items.remove(tag) else { return Vec::new() };
        let mut acts = Vec::new();
        for (place, stage) in item.to {
            let of = self.places.get(&place).and_then(|place| place.device.as_ref());
            match stage {
                DeliveryStage::Sent if of.is_none_or(|(device, _)| Some(device) != by) => {
                    acts.push(RuleAction::Withdraw { place, story: Arc::clone(&item.story) });
                }
                DeliveryStage::Summed => {
                    if let Some(sum) = self.sums.get_mut(&place)
                        && sum.remove(tag)
                        && sum.is_empty()
                    {
                        self.sums.remove(&place);
                        acts.push(RuleAction::WithdrawSum { place });
                    }
                }
                DeliveryStage::Sent => acts.push(RuleAction::Known { place, tag: tag.to_owned() }),
                DeliveryStage::Waiting(_) | DeliveryStage::Held => {}
            }
        }
        acts
    }

    /// The tags and stories of all that waits or was told.
    pub(super) fn stories(&self) -> impl Iterator<Item = &Arc<NotificationText>> {
        self.items.values().map(|item| &item.story)
    }

    /// These are the places now. To one that is new, what is open is news.
    pub(super) fn places(&mut self, places: BTreeMap<String, TargetState>, now: Millis) {
        for item in self.items.values_mut() {
            item.to.retain(|name, _| places.contains_key(name));
            if item.story.what == NewsKind::Request {
                for name in places.keys().filter(|name| !self.places.contains_key(*name)) {
                    item.to.entry(name.clone()).or_insert(DeliveryStage::Waiting(now));
                }
            }
        }
        self.told.retain(|name, _| places.contains_key(name));
        self.sums.retain(|name, _| places.contains_key(name));
        self.places = places;
    }

    /// These are the focused screens now. What was looked at until now begins to wait anew.
    pub(super) fn looks(&mut self, looks: Vec<ViewerPresence>, now: Millis) {
        self.seen(now);
        self.looks = looks;
        self.seen(now);
    }

    /// Whatever somebody looks at has not waited; the end of a run that was seen is no news any more.
    fn seen(&mut self, now: Millis) {
        let (places, looks) = (&self.places, &self.looks);
        for item in self.items.values_mut() {
            let story = &item.story;
            item.to.retain(|name, stage| {
                let looked = places.get(name).is_some_and(|place| looks.iter().any(|look| counts(look, place, story)));
                match stage {
                    DeliveryStage::Waiting(_) | DeliveryStage::Held if looked && story.what != NewsKind::Request => {
                        return false;
                    }
                    DeliveryStage::Waiting(_) | DeliveryStage::Held if looked => *stage = DeliveryStage::Waiting(now),
                    _ => {}
                }
                true
            });
        }
        self.items.retain(|_, item| item.story.what == NewsKind::Request || !item.to.is_empty());
    }

    /// What is due.
    pub(super) fn tick(&mut self, now: Millis) -> Vec<RuleAction> {
        self.seen(now);
        let mut acts = Vec::new();
        let quiet = self.places.iter().filter(|(_, place)| self.quiet_until(place, now).is_some());
        let quiet: BTreeSet<String> = quiet.map(|(name, _)| name.clone()).collect();
        for (name, place) in &self.places {
            let mut due = Vec::new();
            let mut held = false;
            for (tag, item) in &mut self.items {
                match item.to.get(name) {
                    Some(DeliveryStage::Waiting(since)) if *since + self.after <= now => {}
                    Some(DeliveryStage::Held) => held = true,
                    _ => continue,
                }
                if wanted(place, &item.story) {
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
            let mut stories = Vec::new();
            for tag in &due {
                let Some(item) = self.items.get_mut(tag) else { continue };
                stories.push(Arc::clone(&item.story));
                // The end of a run is told once, and nothing of it is kept.
                match stage {
                    DeliveryStage::Held => drop(item.to.insert(name.clone(), stage)),
                    _ if item.story.what != NewsKind::Request => drop(item.to.remove(name)),
                    _ => drop(item.to.insert(name.clone(), stage)),
                }
            }
            match stage {
                DeliveryStage::Summed => {
                    told.push_back(now);
                    let asked = stories.iter().filter(|story| story.what == NewsKind::Request);
                    self.sums.entry(name.clone()).or_default().extend(asked.map(|story| story.tag.clone()));
                    acts.push(RuleAction::Sum { place: name.clone(), stories });
                }
                DeliveryStage::Sent => {
                    told.extend(stories.iter().map(|_| now));
                    acts.extend(stories.into_iter().map(|story| RuleAction::Tell { place: name.clone(), story }));
                }
                DeliveryStage::Held | DeliveryStage::Waiting(_) => {}
            }
        }
        self.items.retain(|_, item| item.story.what == NewsKind::Request || !item.to.is_empty());
        acts
    }

    /// When something is due next, unless something else happens.
    pub(super) fn next(&self, now: Millis) -> Option<Millis> {
        let mut next: Option<Millis> = None;
        for item in self.items.values() {
            for (name, stage) in &item.to {
                let Some(place) = self.places.get(name) else { continue };
                let at = match stage {
                    DeliveryStage::Waiting(_) if self.looks.iter().any(|look| counts(look, place, &item.story)) => {
                        continue;
                    }
                    DeliveryStage::Waiting(since) => *since + self.after,
                    DeliveryStage::Held => {
                        let quiet = self.quiet_until(place, now);
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

    /// A place could not be told: it has nothing to be taken back from it.
    pub(super) fn lost(&mut self, place: &str, tag: &str) {
        if let Some(item) = self.items.get_mut(tag) {
            item.to.remove(place);
        }
    }
}

/// Whether somebody who looks there spares this place the news. A device that may only watch (a wall display, a guest) does
/// not spare others a question that it cannot answer.
fn counts(look: &ViewerPresence, place: &TargetState, story: &NotificationText) -> bool {
    let target = Target::Session(&story.session_id, &story.runtime_id);
    let may = |scope| look.grant.covers(scope, target);
    let own = place.device.as_ref().is_some_and(|(device, _)| *device == look.device);
    let acts = match story.what {
        NewsKind::Request => story.may_answer(&look.grant),
        NewsKind::Ended | NewsKind::Failed => may(Scope::Approve) || may(Scope::Prompt),
    };
    may(Scope::Watch) && (own || acts)
}

/// Whether a place wants such news, and may see it.
fn wanted(place: &TargetState, story: &NotificationText) -> bool {
    let sees = |(_, grant): &(DeviceId, Grant)| {
        grant.covers(Scope::Watch, Target::Session(&story.session_id, &story.runtime_id))
    };
    place.wants.covers(story.what) && place.device.as_ref().is_none_or(sees)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::{Risk, RuntimeId, SessionId};

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

    fn story(what: NewsKind, id: &str) -> NotificationText {
        let kind = if what == NewsKind::Request { "request" } else { "run" };
        NotificationText::plain(what, format!("{kind}:{id}"))
    }

    fn device(id: &str, grant: Grant) -> TargetState {
        TargetState { device: Some((DeviceId::trusted(id), grant)), wants: TargetWants::default(), quiet: None }
    }

    struct Fixture {
        desk: RuleState,
        places: BTreeMap<String, TargetState>,
    }

    impl Fixture {
        /// A phone that may do everything.
        fn new() -> Self {
            Self::with(device("d_phone", Grant::all()))
        }

        fn with(phone: TargetState) -> Self {
            let mut fixture = Self { desk: RuleState::new(AFTER), places: BTreeMap::from([("phone".into(), phone)]) };
            fixture.desk.places(fixture.places.clone(), NOON);
            fixture
        }

        fn open(&mut self, what: NewsKind, id: &str, at: Millis) {
            self.desk.open(story(what, id), NOON + at);
        }

        fn look(&mut self, looks: &[(&str, Grant)], at: Millis) {
            let looks =
                looks.iter().map(|(id, grant)| ViewerPresence { device: DeviceId::trusted(*id), grant: grant.clone() });
            self.desk.looks(looks.collect(), NOON + at);
        }

        /// What is done then, in short.
        fn tick(&mut self, at: Millis) -> Vec<String> {
            short(&self.desk.tick(NOON + at))
        }

        fn close(&mut self, id: &str, by: &str) -> Vec<String> {
            short(&self.desk.close(&format!("request:{id}"), Some(&DeviceId::trusted(by))))
        }

        /// When something is due next, from noon.
        fn next(&self, at: Millis) -> Option<Millis> {
            self.desk.next(NOON + at).map(|next| next - NOON)
        }
    }

    fn short(acts: &[RuleAction]) -> Vec<String> {
        let tags = |stories: &[Arc<NotificationText>]| {
            stories.iter().map(|story| story.tag.clone()).collect::<Vec<_>>().join(" ")
        };
        let line = |act: &RuleAction| match act {
            RuleAction::Tell { place, story } => format!("{place} {}", story.tag),
            RuleAction::Sum { place, stories } => format!("{place} sum {}", tags(stories)),
            RuleAction::Withdraw { place, story } => format!("{place} not {}", story.tag),
            RuleAction::WithdrawSum { place } => format!("{place} not sum"),
            RuleAction::Known { place, tag } => format!("{place} knows {tag}"),
        };
        acts.iter().map(line).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn who_is_looking_decides_whether_the_phone_is_told() {
        let all = Grant::all;
        let watch = || grant(&[Scope::Watch], None);
        let approve = || grant(&[Scope::Watch, Scope::Approve], None);
        let prompt = || grant(&[Scope::Watch, Scope::Prompt], None);
        let low = || Grant { approve_up_to: Some(Risk::Low), ..Grant::all() };
        let other = || Grant { sessions: Some(vec![SessionId::trusted("s_2")]), ..Grant::all() };
        use NewsKind::{Ended, Failed, Request};
        type Looks<'a> = &'a [(&'a str, Grant)];
        // What happens, who looks all the while, and whether the phone is told.
        let table: &[(NewsKind, Looks<'_>, bool)] = &[
            (Request, &[], true),
            (Request, &[("d_desk", all())], false),
            (Request, &[("d_desk", approve())], false),
            // Who cannot answer spares nobody the question.
            (Request, &[("d_wall", watch())], true),
            (Request, &[("d_desk", prompt())], true),
            (Request, &[("d_phone2", low())], true),
            // Its own screen does, whatever it may.
            (Request, &[("d_phone", watch())], false),
            // Who cannot see it does not look at it.
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
        for (what, looks, told) in table {
            let mut fixture = Fixture::new();
            fixture.look(looks, 0);
            fixture.open(*what, "1", 1000);
            assert_eq!(fixture.tick(AFTER + 999), NONE, "not before its time: {what:?} {looks:?}");
            assert_eq!(!fixture.tick(AFTER + 1000).is_empty(), *told, "{what:?} {looks:?}");
            assert_eq!(fixture.tick(10 * AFTER), NONE, "once: {what:?} {looks:?}");
        }
    }

    #[test]
    fn a_look_within_the_time_begins_it_anew_and_the_end_of_a_run_that_was_seen_is_no_news() {
        let mut fixture = Fixture::new();
        fixture.open(NewsKind::Request, "1", 0);
        fixture.open(NewsKind::Ended, "1", 0);
        assert_eq!(fixture.next(0), Some(AFTER));
        fixture.look(&[("d_desk", Grant::all())], 19_000);
        assert_eq!(fixture.next(19_000), None, "who looks is not told");
        assert_eq!(fixture.tick(60_000), NONE);
        fixture.look(&[], 61_000);
        assert_eq!(fixture.next(61_000), Some(61_000 + AFTER));
        assert_eq!(fixture.tick(61_000 + AFTER - 1), NONE);
        assert_eq!(fixture.tick(61_000 + AFTER), ["phone request:1"]);
    }

    #[test]
    fn what_was_told_is_taken_back_once_and_what_was_not_is_not() {
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
        fixture.desk.lost("phone", "request:4");
        assert_eq!(fixture.close("4", "d_desk"), NONE, "it never came");
    }

    #[test]
    fn what_was_told_before_a_restart_is_not_told_again_and_can_be_taken_back() {
        let mut fixture = Fixture::new();
        let already = BTreeSet::from(["phone".to_owned()]);
        let none = BTreeSet::new();
        fixture.desk.open_again(story(NewsKind::Request, "1"), &already, &none, NOON);
        fixture.desk.open_again(story(NewsKind::Request, "2"), &none, &none, NOON);
        fixture.desk.open_again(story(NewsKind::Request, "3"), &none, &already, NOON);
        // The log tells of it once more.
        fixture.open(NewsKind::Request, "1", 5);
        assert_eq!(fixture.tick(AFTER), ["phone request:2"]);
        assert_eq!(fixture.close("1", "d_desk"), ["phone not request:1"]);
        assert_eq!(fixture.close("3", "d_desk"), ["phone not sum"]);
    }

    #[test]
    fn a_place_gets_what_it_wants_and_may_see() {
        let only = |wants| TargetState { wants, ..device("d_phone", Grant::all()) };
        let nothing = TargetWants { requests: false, ends: false, failures: false };
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
        // A channel of the owner's sees everything; others' screens spare it the news.
        let channel = TargetState { device: None, wants: TargetWants::default(), quiet: None };
        let mut fixture = Fixture::with(channel);
        fixture.open(NewsKind::Request, "1", 0);
        assert_eq!(fixture.tick(AFTER), ["phone request:1"]);
    }

    #[test]
    fn quiet_hours_are_the_owners_and_end_with_one_notification() {
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
        assert_eq!(fixture.close("3", "d_desk"), NONE, "who was not told hears of no end");
        assert_eq!(fixture.tick(end - 1), NONE);
        assert_eq!(fixture.tick(end), ["phone sum request:1 request:2 run:4"]);
        assert_eq!(fixture.tick(end + AFTER), NONE);
        assert_eq!(fixture.close("1", "d_desk"), NONE);
        assert_eq!(fixture.close("2", "d_desk"), ["phone not sum"]);

        // If but one thing is left, it is told as it is.
        let mut fixture = Fixture::with(TargetState { quiet: quiet.clone(), ..device("d_phone", Grant::all()) });
        fixture.open(NewsKind::Request, "1", 0);
        assert_eq!(fixture.tick(AFTER), NONE);
        assert_eq!(fixture.tick(end), ["phone request:1"]);
    }

    #[test]
    fn the_clock_of_quiet_hours() {
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
    fn quiet_hours_are_the_same_on_the_clock_of_their_place_in_summer_and_in_winter() {
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
    fn a_clock_that_is_set_shortens_and_prolongs_no_wait_and_quiet_follows_the_wall() {
        let mut fixture = Fixture::new();
        fixture.open(NewsKind::Request, "1", 0);
        fixture.desk.clock(NOON - 60 * MINUTE, NOON);
        assert_eq!(fixture.next(0), Some(AFTER));
        assert_eq!(fixture.tick(AFTER), ["phone request:1"]);
        let quiet = Some(Quiet { from: 11 * 60, to: 13 * 60, zone: ahead(0) });
        let mut fixture = Fixture::with(TargetState { quiet, ..device("d_phone", Grant::all()) });
        fixture.open(NewsKind::Request, "1", 0);
        fixture.tick(AFTER);
        assert_eq!(fixture.next(AFTER), Some(60 * MINUTE));
        fixture.desk.clock(NOON - 60 * MINUTE, NOON);
        assert_eq!(fixture.next(AFTER), Some(120 * MINUTE), "on the wall it is eleven, and quiet until one");
        assert_eq!(fixture.tick(60 * MINUTE), NONE);
        assert_eq!(fixture.tick(120 * MINUTE), ["phone request:1"]);
    }

    #[test]
    fn a_flood_becomes_one_notification_and_then_a_pace() {
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
    fn a_new_place_hears_of_what_is_open_and_one_that_is_gone_of_nothing() {
        let mut fixture = Fixture::new();
        fixture.open(NewsKind::Request, "1", 0);
        fixture.open(NewsKind::Ended, "2", 0);
        let mut places = fixture.places.clone();
        places.insert("tablet".into(), device("d_tablet", Grant::all()));
        fixture.desk.places(places.clone(), NOON + 10_000);
        assert_eq!(fixture.tick(AFTER), ["phone request:1", "phone run:2"]);
        assert_eq!(fixture.tick(AFTER + 10_000), ["tablet request:1"]);
        places.remove("phone");
        fixture.desk.places(places, NOON + AFTER + 10_000);
        assert_eq!(fixture.close("1", "d_desk"), ["tablet not request:1"]);
        assert!(fixture.desk.items.is_empty());
    }

    #[test]
    fn more_than_there_is_room_for_is_not_taken_in() {
        let mut fixture = Fixture::new();
        for n in 0..ITEMS + 10 {
            fixture.open(NewsKind::Request, &n.to_string(), 0);
        }
        assert_eq!(fixture.desk.items.len(), ITEMS);
    }
}
