//! Pairing a device, what was spent, and the settings.

use jiff::tz::TimeZone;

use super::*;
use crate::pages::shared::Overlay;
use crate::pairing::PairCall;
use crate::usage::{UsagePart, UsageSheet};

/// The calls since the last time: method, path, body, and the tag for the reply.
fn calls(stage: &mut Stage) -> Vec<(&'static str, String, Option<Value>, CallTag)> {
    let effects = std::mem::take(&mut stage.effects).into_iter();
    effects
        .filter_map(|effect| match effect {
            Effect::Call { tag, request, .. } => {
                let body = request.body.as_ref().map(|_| body_of(&request));
                Some((request.method, request.path, body, tag))
            }
            _ => None,
        })
        .collect()
}

/// The pairings among the calls.
fn pairings(stage: &mut Stage) -> Vec<(&'static str, String, Option<Value>, CallTag)> {
    calls(stage).into_iter().filter(|(_, path, ..)| path.starts_with("/v1/pairings")).collect()
}

fn begun(url: &str) -> Value {
    json!({ "pairing_id": "p_1", "code": "ABCD-2345", "url": url, "qr": "<svg/>", "expires_at": at(NOON + 120_000) })
}

/// A stage on the page of devices with a code on the screen, and the tag of the poll.
fn code(width: u16, height: u16, url: &str) -> (Stage, CallTag) {
    let mut stage = Stage::new(width, height, &[], &[]);
    stage.keys(&["5", "p", "Enter"]);
    let asked = pairings(&mut stage);
    let [("POST", path, Some(body), tag)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(path, "/v1/pairings");
    assert_eq!(*body, json!({ "scopes": ["watch", "prompt", "approve"], "approve_up_to": "elevated" }));
    stage.msg(done(tag.clone(), 201, begun(url)));
    let polls = pairings(&mut stage);
    let [("GET", path, None, poll)] = polls.as_slice() else { panic!("{polls:?}") };
    assert_eq!(path, "/v1/pairings/p_1?wait=15&known=waiting");
    (stage, poll.clone())
}

const URL: &str = "https://plexus.tailnet-name.ts.net/#pair=ABCD2345";

#[test]
fn pairing_shows_a_code_and_confirms_the_number() {
    let (mut stage, poll) = code(80, 24, URL);
    let screen = stage.screen();
    assert!(screen.contains("ABCD-2345") && screen.contains("Valid for 120 s") && screen.contains('▀'), "{screen}");
    let state = |state: &str| json!({ "pairing_id": "p_1", "state": state, "name": "phone\u{202e}", "number": 42, "expires_at": at(NOON) });
    stage.msg(done(poll.clone(), 200, state("waiting")));
    assert_eq!(pairings(&mut stage).len(), 1, "it is asked again");
    stage.msg(done(poll.clone(), 200, state("joined")));
    let screen = stage.screen();
    assert!(screen.contains("42") && screen.contains("wants to join") && !screen.contains('\u{202e}'), "{screen}");
    assert!(pairings(&mut stage)[0].1.ends_with("known=joined"));
    stage.keys(&["y"]);
    assert_eq!(pairings(&mut stage).len(), 0, "a key that was on its way is no answer");
    stage.advance(ARM_DELAY);
    stage.keys(&["y"]);
    let confirmed = pairings(&mut stage);
    assert_eq!(
        (confirmed[0].1.as_str(), &confirmed[0].2),
        ("/v1/pairings/p_1/confirm", &Some(json!({ "number": 42 })))
    );
    stage.keys(&["y"]);
    assert_eq!(pairings(&mut stage).len(), 0, "once");
    stage.msg(done(confirmed[0].3.clone(), 200, state("confirmed")));
    assert!(stage.screen().contains("is paired"), "{}", stage.screen());
    stage.keys(&["Enter"]);
    assert!(stage.app.shared.overlay.is_none() && pairings(&mut stage).is_empty(), "nothing is taken back");
}

#[test]
fn pairing_takes_back_a_code_that_was_not_used() {
    for key in ["Esc", "C-c"] {
        let (mut stage, _) = code(80, 24, URL);
        stage.keys(&[key]);
        let left = pairings(&mut stage);
        assert_eq!((left[0].0, left[0].1.as_str()), ("DELETE", "/v1/pairings/p_1"), "{key}");
    }
    // Refused: another number.
    let (mut stage, poll) = code(80, 24, URL);
    stage.msg(done(
        poll,
        200,
        json!({ "pairing_id": "p_1", "state": "joined", "name": "x", "number": 7, "expires_at": at(NOON) }),
    ));
    stage.effects.clear();
    stage.advance(ARM_DELAY);
    stage.keys(&["n"]);
    assert_eq!(pairings(&mut stage)[0].0, "DELETE");
    // Closed before the code came.
    let mut stage = Stage::new(80, 24, &[], &[]);
    stage.keys(&["5", "p", "Enter"]);
    let tag = pairings(&mut stage)[0].3.clone();
    stage.keys(&["Esc"]);
    stage.msg(done(tag, 201, begun(URL)));
    assert_eq!(pairings(&mut stage)[0].0, "DELETE");
}

#[test]
fn pairing_grants_what_was_chosen_and_survives_failures() {
    let mut stage = Stage::new(80, 24, &[], &[]);
    stage.keys(&["5", "p", " ", "Down", " ", "Down", "Down", " ", "Down", "Down", "Right", "Enter"]);
    let asked = pairings(&mut stage);
    assert_eq!(asked[0].2, Some(json!({ "scopes": ["watch", "approve", "admin"], "approve_up_to": "danger" })));
    stage.msg(done(asked[0].3.clone(), 403, json!({ "detail": "not for you" })));
    assert!(stage.screen().contains("not for you") && stage.screen().contains("What it may do"), "{}", stage.screen());
    let (mut stage, poll) = code(80, 24, URL);
    stage.msg(lost(poll.clone(), "lost"));
    assert!(pairings(&mut stage).is_empty());
    stage.advance(2_000);
    assert_eq!(pairings(&mut stage).len(), 1, "a poll that failed is repeated after a pause");
    stage.msg(done(poll, 410, json!({})));
    assert!(stage.screen().contains("expired"), "{}", stage.screen());
    stage.keys(&["Enter"]);
    assert!(matches!(stage.app.shared.overlay, Some(Overlay::Pairing(_))), "it begins again");
}

#[test]
fn pairing_is_drawn_at_every_size() {
    for (width, height, pictured) in [(40, 12, false), (40, 30, true), (80, 24, true), (120, 40, true), (200, 50, true)]
    {
        for url in [URL, "http://127.0.0.1:7777/#pair=ABCD2345"] {
            let (stage, _) = code(width, height, url);
            let screen = stage.screen();
            assert!(screen.contains("ABCD-2345") && screen.contains("Valid for"), "{screen}");
            assert!(screen.contains('▀') || !pictured || url != URL, "{screen}");
            assert_eq!(screen.contains("For a phone"), url.contains("127."), "{screen}");
        }
    }
}

#[test]
fn devices_sign_out_the_browsers_of_this_machine() {
    let mut stage = Stage::new(80, 24, &[], &[]);
    stage.keys(&["5", "B"]);
    stage.effects.clear();
    stage.keys(&["y"]);
    assert_eq!(
        calls(&mut stage).first().map(|(method, path, ..)| (*method, path.clone())),
        Some(("DELETE", "/v1/local-browsers".into()))
    );
}

fn spent(input: u64, output: u64, cost: f64) -> Value {
    json!({ "input_tokens": input, "cached_read_tokens": input / 2, "output_tokens": output, "costs": [{ "amount": cost, "currency": "USD" }] })
}

fn answer(by: &str, rows: Value) -> Value {
    json!({ "by": by, "utc_offset": 0, "from": "2025-12-26", "to": "2026-01-01", "known_since": "2025-12-28T00:00:00.000Z", "truncated": false,
        "total": spent(1_234_000, 56_700, 1.25), "rows": rows })
}

fn ceilings(session: Value) -> Value {
    json!({ "set": {}, "configured": { "day": {}, "session": {} }, "day": {}, "session": session, "today": {}, "allowed": {},
        "day_ends": at(NOON) })
}

/// A stage with what was spent on the screen.
fn usage(width: u16, height: u16) -> Stage {
    let mut stage = Stage::new(width, height, &[], &[]);
    stage.effects.clear();
    stage.keys(&["U"]);
    assert!(stage.screen().contains("Reading"), "{}", stage.screen());
    for (_, path, _, tag) in calls(&mut stage) {
        if path.ends_with("/ceilings") {
            stage.msg(done(tag, 200, ceilings(json!({}))));
            continue;
        }
        let rows = match path.contains("by=day") {
            true => {
                json!([{ "day": "2025-12-31", "usage": spent(234_000, 6_700, 0.25), "at": at(NOON) },
                    { "day": "2026-01-01", "usage": spent(1_000_000, 50_000, 1.0), "at": at(NOON) }])
            }
            false => {
                json!([{ "project": "claude\u{202e}", "usage": spent(1_200_000, 50_000, 1.25), "at": at(NOON) },
                    { "project": "codex", "usage": { "input_tokens": 34_000 }, "at": at(NOON) }])
            }
        };
        let by = if path.contains("by=day") { "day" } else { "project" };
        stage.msg(done(tag, 200, answer(by, rows)));
    }
    stage
}

#[test]
fn usage_shows_sums_days_and_rows_at_every_size() {
    for (width, height) in [(40, 20), (80, 24), (120, 40), (200, 50)] {
        let mut stage = usage(width, height);
        let screen = stage.screen();
        assert!(screen.contains("1.23M") && screen.contains("1.25 USD") && screen.contains("12-31"), "{screen}");
        assert!(!screen.contains('\u{202e}') && screen.contains('█'), "{screen}");
        stage.keys(&["G"]);
        let screen = stage.screen();
        assert!(screen.contains("codex") && screen.contains("Counted since 2025-12-28"), "{screen}");
    }
    insta::assert_snapshot!("usage_80x24", usage(80, 24).screen());
    // Bars of cost.
    let mut stage = usage(80, 24);
    stage.keys(&["m"]);
    assert!(stage.screen().contains("cost (USD)"), "{}", stage.screen());
}

#[test]
fn usage_asks_again_for_other_days_and_rows() {
    let mut stage = usage(80, 24);
    stage.keys(&["Left"]);
    let asked: Vec<String> = calls(&mut stage).into_iter().map(|(_, path, ..)| path).collect();
    assert_eq!(asked.len(), 3, "{asked:?}");
    stage.keys(&["Tab"]);
    let late = calls(&mut stage);
    assert!(late[1].1.contains("by=project"), "{late:?}");
    stage.keys(&["Tab"]);
    let now = calls(&mut stage);
    assert!(now[1].1.contains("by=session"), "{now:?}");
    // A late reply to an earlier question changes nothing; a failure is shown.
    stage.msg(done(late[1].3.clone(), 200, answer("project", json!([]))));
    stage.msg(done(now[0].3.clone(), 500, json!({ "detail": "disk" })));
    assert!(stage.screen().contains("could not be read: disk"), "{}", stage.screen());
    stage.keys(&["r"]);
    let again = calls(&mut stage);
    let row =
        json!({ "session_id": "s_1", "title": "one\u{202e}", "project": "/w\u{1b}[2J", "usage": {}, "at": at(NOON) });
    for (_, _, _, tag) in &again {
        stage.msg(done(tag.clone(), 200, answer("session", json!([row]))));
    }
    assert_allowed_bytes(&stage.bytes(), b"");
    for (_, _, _, tag) in again {
        stage.msg(done(tag, 200, answer("session", json!([]))));
    }
    assert!(stage.screen().contains("No usage was reported for these days"), "{}", stage.screen());
    stage.keys(&["Esc"]);
    assert!(stage.app.shared.overlay.is_none());
}

#[test]
fn usage_days_begin_where_the_clock_of_the_terminal_says() {
    let sheet = UsageSheet::new(1);
    let path = |zone: &str| sheet.request(UsagePart::Days, NOON + 43_000_000, &TimeZone::get(zone).unwrap()).path;
    assert_eq!(path("UTC"), "/v1/usage?by=day&from=2025-12-26&to=2026-01-01&utc_offset=0&limit=100");
    assert_eq!(path("Asia/Kathmandu"), "/v1/usage?by=day&from=2025-12-27&to=2026-01-02&utc_offset=345&limit=100");
}

#[test]
fn settings_ask_for_the_addresses_only_as_an_administrator() {
    for (scope, asks) in [("admin", true), ("watch", false)] {
        let mut stage = Stage::new(80, 24, &[], &[]);
        stage.effects.clear();
        stage.keys(&[","]);
        let tag = calls(&mut stage)[0].3.clone();
        stage.msg(done(tag, 200, me("tester", json!({ "scopes": [scope] }))));
        let next = calls(&mut stage);
        assert_eq!(!next.is_empty(), asks);
        for (_, path, _, tag) in next {
            assert_eq!(path, "/v1/listeners");
            stage.msg(done(tag, 200, json!({})));
        }
        assert!(stage.screen().contains("9.9") && stage.screen().contains("tester"), "{}", stage.screen());
    }
}

#[test]
fn pairing_reply_without_its_sheet_is_ignored() {
    let mut stage = Stage::new(80, 24, &[], &[]);
    stage.msg(done(CallTag::Pairing(7, PairCall::Poll), 200, json!({ "state": "joined", "number": 1 })));
    assert!(stage.app.shared.overlay.is_none());
}

#[test]
fn usage_shows_ceilings_to_administrators_and_sets_them() {
    let mut stage = Stage::new(80, 24, &[], &[]);
    stage.keys(&["U"]);
    let asked = calls(&mut stage);
    let [.., (_, path, None, tag)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(path, "/v1/usage/ceilings");
    for (_, path, _, tag) in &asked[asked.len() - 3..asked.len() - 1] {
        let by = if path.contains("by=day") { "day" } else { "runtime" };
        stage.msg(done(tag.clone(), 200, answer(by, json!([]))));
    }
    let other = stage.screen();
    assert!(!other.contains("Ceiling"), "not known yet: {other}");
    stage.msg(done(tag.clone(), 200, ceilings(json!({ "tokens": 5000 }))));
    let screen = stage.screen();
    assert!(
        screen.contains("Ceiling of a day      none") && screen.contains("Ceiling of a session  5000 tokens"),
        "{screen}"
    );
    stage.keys(&["d"]);
    stage.type_text("much");
    stage.keys(&["Enter"]);
    assert!(calls(&mut stage).is_empty() && stage.screen().contains("is no ceiling"), "{}", stage.screen());
    for _ in 0..4 {
        stage.msg(Msg::Key(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE)));
    }
    stage.type_text("5 usd");
    stage.keys(&["Enter"]);
    let set = calls(&mut stage);
    let money = json!({ "costs": [{ "amount": 5.0, "currency": "USD" }] });
    assert_eq!((set[0].0, set[0].2.as_ref().unwrap()), ("PUT", &json!({ "day": money })));
    stage.msg(done(set[0].3.clone(), 200, json!({})));
    assert!(
        matches!(stage.app.shared.overlay, Some(Overlay::Usage(_))) && stage.screen().contains("the ceiling is set")
    );
}

#[test]
fn archive_offers_to_remove_a_worktree_that_no_session_needs() {
    let mut one = session("s_1", "One", "idle", 0);
    one["cwd"] = "/w/repo.worktrees/fix/it/deep".into();
    one["project"] = json!({ "name": "repo", "root": "/w/repo", "worktree": "it" });
    let listed = |sessions: &[&str], changed: u64| {
        let unsaved = json!({ "changed": changed, "files": [], "ahead": 0, "commits": [], "digest": "d1" });
        json!({ "worktrees": [worktree("/w/repo.worktrees/fi", "fi", json!({ "sessions": ["s_9"] })),
            worktree("/w/repo.worktrees/fix/it", "fix/it", json!({ "sessions": sessions, "unsaved": unsaved }))] })
    };
    let archived = |stage: &mut Stage| {
        stage.keys(&["e"]);
        let patch = calls(stage).pop().unwrap();
        stage.msg(done(patch.3, 200, json!({})));
        calls(stage).pop()
    };
    for (sessions, changed, asks) in
        [(&[][..], 0, "The branch fix/it is kept"), (&[], 3, "are lost: 3 files"), (&["s_2"], 0, "")]
    {
        let mut stage = Stage::new(80, 24, &[one.clone()], &[]);
        let list = archived(&mut stage).unwrap();
        assert_eq!(list.1, "/v1/worktrees");
        stage.msg(done(list.3, 200, listed(sessions, changed)));
        if asks.is_empty() {
            assert!(stage.app.shared.overlay.is_none(), "{}", stage.screen());
            continue;
        }
        assert!(stage.screen().contains(asks), "{}", stage.screen());
        stage.keys(&["y"]);
        let body = calls(&mut stage).pop().unwrap().2.unwrap();
        assert_eq!(body["path"], "/w/repo.worktrees/fix/it");
        assert_eq!(body.get("lost").is_some(), changed > 0, "{body}");
    }
    let mut stage = Stage::new(80, 24, &[session("s_1", "One", "idle", 0)], &[]);
    assert!(archived(&mut stage).is_none(), "a folder of its own");
}
