//! Tests of the rules of notifications.

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
    Grant { sessions, ..Grant::new(scopes) }
}

fn text(kind: NotificationKind, id: &str) -> NotificationText {
    let prefix = if kind == NotificationKind::Request { "request" } else { "run" };
    NotificationText::plain(kind, format!("{prefix}:{id}"))
}

fn device(id: &str, grant: Grant) -> TargetState {
    TargetState { device: Some((DeviceId::trusted(id), grant)), filter: NotificationFilter::default(), quiet: None }
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

    fn open(&mut self, kind: NotificationKind, id: &str, at: Millis) {
        self.rule.open(text(kind, id), NOON + at);
    }

    fn viewer(&mut self, viewers: &[(&str, Grant)], at: Millis) {
        let viewers =
            viewers.iter().map(|(id, grant)| ViewerPresence { device: DeviceId::trusted(*id), grant: grant.clone() });
        self.rule.viewers(viewers.collect(), NOON + at);
    }

    /// Returns the notifications that are due then, in short.
    fn tick(&mut self, at: Millis) -> Vec<String> {
        short(&self.rule.tick(NOON + at))
    }

    fn close(&mut self, id: &str, by: &str) -> Vec<String> {
        short(&self.rule.close(&format!("request:{id}"), Some(&DeviceId::trusted(by))))
    }

    /// Returns the time when something is due next, from noon.
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
    use NotificationKind::{Ended, Failed, Request};
    type Looks<'a> = &'a [(&'a str, Grant)];
    // The news, the viewers all the while, and whether the phone is notified.
    let table: &[(NotificationKind, Looks<'_>, bool)] = &[
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
    for (kind, viewers, told) in table {
        let mut fixture = Fixture::new();
        fixture.viewer(viewers, 0);
        fixture.open(*kind, "1", 1000);
        assert_eq!(fixture.tick(AFTER + 999), NONE, "not before its time: {kind:?} {viewers:?}");
        assert_eq!(!fixture.tick(AFTER + 1000).is_empty(), *told, "{kind:?} {viewers:?}");
        assert_eq!(fixture.tick(10 * AFTER), NONE, "once: {kind:?} {viewers:?}");
    }
}

#[test]
fn push_rule_a_viewer_restarts_the_wait_and_drops_ends_of_runs() {
    let mut fixture = Fixture::new();
    fixture.open(NotificationKind::Request, "1", 0);
    fixture.open(NotificationKind::Ended, "1", 0);
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
    fixture.open(NotificationKind::Request, "1", 0);
    assert_eq!(fixture.close("1", "d_desk"), NONE, "never told, nothing to take back");
    assert_eq!(fixture.tick(AFTER), NONE);
    fixture.open(NotificationKind::Request, "2", 0);
    fixture.open(NotificationKind::Request, "3", 0);
    fixture.open(NotificationKind::Request, "4", 0);
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
    fixture.rule.open_again(text(NotificationKind::Request, "1"), &already, &none, NOON);
    fixture.rule.open_again(text(NotificationKind::Request, "2"), &none, &none, NOON);
    fixture.rule.open_again(text(NotificationKind::Request, "3"), &none, &already, NOON);
    // The log has it once more.
    fixture.open(NotificationKind::Request, "1", 5);
    assert_eq!(fixture.tick(AFTER), ["phone request:2"]);
    assert_eq!(fixture.close("1", "d_desk"), ["phone not request:1"]);
    assert_eq!(fixture.close("3", "d_desk"), ["phone not sum"]);
}

#[test]
fn push_rule_sends_what_a_target_wants_and_may_see() {
    let only = |filter| TargetState { filter, ..device("d_phone", Grant::all()) };
    let nothing = NotificationFilter::NONE;
    for (kind, filter) in [
        (NotificationKind::Request, NotificationFilter { requests: true, ..nothing }),
        (NotificationKind::Ended, NotificationFilter { ends: true, ..nothing }),
        (NotificationKind::Failed, NotificationFilter { failures: true, ..nothing }),
    ] {
        let mut fixture = Fixture::with(only(filter));
        for kind in [NotificationKind::Request, NotificationKind::Ended, NotificationKind::Failed] {
            fixture.open(kind, &format!("{kind:?}"), 0);
        }
        let told = fixture.tick(AFTER);
        assert!(matches!(&told[..], [one] if one.ends_with(&format!("{kind:?}"))), "{told:?}");
    }
    let sees = |grant, told| {
        let mut fixture = Fixture::with(device("d_phone", grant));
        fixture.open(NotificationKind::Request, "1", 0);
        assert_eq!(!fixture.tick(AFTER).is_empty(), told);
    };
    sees(grant(&[Scope::Watch], Some("s_1")), true);
    sees(grant(&[Scope::Watch], Some("s_2")), false);
    sees(grant(&[Scope::Approve], None), false);
    let elsewhere = Grant { runtimes: Some(vec![RuntimeId::trusted("other")]), ..Grant::all() };
    sees(elsewhere, false);
    // A channel of the owner sees everything; screens of devices spare it the news.
    let channel = TargetState { device: None, filter: NotificationFilter::default(), quiet: None };
    let mut fixture = Fixture::with(channel);
    fixture.open(NotificationKind::Request, "1", 0);
    assert_eq!(fixture.tick(AFTER), ["phone request:1"]);
}

#[test]
fn push_rule_quiet_hours_end_with_one_summary() {
    // At noon UTC it is 22:30 there, and 30 minutes are gone of the quiet that lasts until 7:00.
    let quiet = Some(Quiet { from: 22 * 60, to: 7 * 60, zone: ahead(630) });
    let mut fixture = Fixture::with(TargetState { quiet: quiet.clone(), ..device("d_phone", Grant::all()) });
    fixture.open(NotificationKind::Request, "1", 0);
    fixture.open(NotificationKind::Request, "2", 0);
    fixture.open(NotificationKind::Request, "3", 0);
    fixture.open(NotificationKind::Failed, "4", 0);
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
    fixture.open(NotificationKind::Request, "1", 0);
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
    fixture.open(NotificationKind::Request, "1", 0);
    fixture.rule.clock(NOON - 60 * MINUTE, NOON);
    assert_eq!(fixture.next(0), Some(AFTER));
    assert_eq!(fixture.tick(AFTER), ["phone request:1"]);
    let quiet = Some(Quiet { from: 11 * 60, to: 13 * 60, zone: ahead(0) });
    let mut fixture = Fixture::with(TargetState { quiet, ..device("d_phone", Grant::all()) });
    fixture.open(NotificationKind::Request, "1", 0);
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
        fixture.open(NotificationKind::Request, &format!("{n:03}"), 0);
    }
    let told = fixture.tick(AFTER);
    assert!(matches!(&told[..], [one] if one.starts_with("phone sum request:000 ")), "{told:?}");
    // One by one, eight a minute; then they wait for the minute to pass and come together.
    for n in 0..20 {
        fixture.open(NotificationKind::Request, &format!("b{n:02}"), AFTER + n);
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
    fixture.open(NotificationKind::Request, "1", 0);
    fixture.open(NotificationKind::Ended, "2", 0);
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
        fixture.open(NotificationKind::Request, &n.to_string(), 0);
    }
    assert_eq!(fixture.rule.items.len(), ITEMS);
}

fn run(fixture: &mut Fixture, at: Millis) {
    fixture.rule.begin_silence(text(NotificationKind::Stalled, "1"), NOON + at);
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
    assert_eq!(short(&fixture.rule.run_ended(&session())), NONE);
    assert!(fixture.rule.items.is_empty() && fixture.rule.runs.is_empty());
    assert_eq!(fixture.tick(200 * MINUTE), NONE);
}

#[test]
fn push_rule_silence_waits_for_requests_viewers_and_quiet_hours() {
    let mut fixture = Fixture::new();
    run(&mut fixture, 0);
    fixture.rule.set_request_open(&session(), "q_1", true);
    assert_eq!((fixture.next(0), fixture.tick(30 * MINUTE)), (None, Vec::new()), "it waits for people");
    fixture.rule.progress(&session(), NOON + 30 * MINUTE);
    fixture.rule.set_request_open(&session(), "q_1", false);
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
        filter: NotificationFilter { no_progress_minutes, ..NotificationFilter::default() },
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
        let mut text = text(NotificationKind::Stalled, &n.to_string());
        text.session_id = SessionId::trusted(format!("s_{n}"));
        fixture.rule.begin_silence(text, NOON);
    }
    assert_eq!(fixture.rule.items.len(), RUNS);
    fixture.open(NotificationKind::Request, "1", 0);
    assert_eq!(fixture.tick(AFTER), ["phone request:1"]);
}
