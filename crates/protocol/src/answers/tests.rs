use serde_json::{Value, json};

use super::*;

/// A request with the members of a case.
fn request(members: &Value) -> Request {
    let mut wire = json!({
        "request_id": "q_1", "session_id": "s_1", "run_id": "r_1", "runtime_id": "demo", "generation": 1, "type": "permission",
        "state": "open", "title": "", "display": "", "warnings": [], "digest": "d", "options": [], "risk": "elevated",
        "allow_reason": false, "allow_remember": false, "opened_at": "2026-01-01T00:00:00Z",
    });
    for (name, value) in members.as_object().unwrap() {
        wire[name] = value.clone();
    }
    serde_json::from_value(wire).unwrap()
}

fn device(case: &Value) -> Answerer {
    serde_json::from_value(case["device"].clone()).unwrap()
}

#[test]
fn answers_are_those_of_the_cases() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases.json")).unwrap();
    for case in &cases {
        let found = json!(actions(&request(&case["request"]), device(case)));
        assert_eq!(found, case["actions"], "{}: {found:#}", case["name"]);
    }
}

#[test]
fn verb_and_key_follow_the_kind_whatever_the_label() {
    let hostile =
        ["", "Deny", "Reject", "Allow once", "\u{202e}yneD", &"x".repeat(200), "a\nb", "Deny this, and stop asking"];
    let kinds = [
        ("allow_once", "Allow once", Some('a'), false),
        ("allow_always", "Always allow", Some('A'), true),
        ("reject_once", "Deny", Some('d'), false),
        ("reject_always", "Always deny", None, true),
    ];
    for label in hostile {
        for (kind, verb, key, lasting) in kinds {
            let one = request(&json!({ "options": [{ "id": "x", "label": label, "kind": kind }] }));
            let [action] = &actions(&one, Answerer::UNLIMITED)[..] else { panic!("one answer") };
            assert_eq!((action.verb(), action.key, action.role.rule().persistent), (verb, key, lasting), "{label:?}");
            assert!(action.text().starts_with(verb), "{label:?}");
            assert!(
                action.label.chars().count() <= LABEL_MAX + 1 && !action.label.contains(['\n', '\u{202e}']),
                "{label:?}"
            );
        }
    }
}

#[test]
fn deny_is_available_at_any_risk_and_digits_never_last() {
    let kinds = [
        "allow_once",
        "allow_once",
        "allow_always",
        "allow_always",
        "reject_once",
        "reject_once",
        "reject_always",
        "other",
    ];
    let options: Vec<Value> =
        kinds.iter().enumerate().map(|(n, kind)| json!({ "id": n.to_string(), "label": "", "kind": kind })).collect();
    for risk in Risk::ALL {
        let all = request(&json!({ "options": options, "risk": risk }));
        for limit in Risk::ALL {
            let limited = Answerer { may_approve: true, approve_up_to: Some(limit) };
            for action in actions(&all, limited) {
                let rule = action.role.rule();
                match rule.sense {
                    Sense::Deny | Sense::Defer => assert_eq!(action.unavailable, None, "{risk:?} {limit:?}"),
                    Sense::Allow => assert_eq!(
                        action.unavailable.is_none(),
                        risk <= limit && (!rule.persistent || limit == Risk::Danger),
                        "{risk:?} {limit:?} {rule:?}"
                    ),
                }
                assert!(!(rule.persistent && action.key.is_some_and(|key| key.is_ascii_digit())));
                assert_eq!(action.hold, rule.sense == Sense::Allow && risk == Risk::Danger);
            }
        }
    }
}

#[test]
fn name_of_an_answer_is_its_id_verb_or_label() {
    let options = json!([
        { "id": "proceed", "label": "Yes, go", "kind": "allow_once" },
        { "id": "Deny", "label": "Deny", "kind": "allow_always" },
        { "id": "no", "label": "No", "kind": "reject_once" },
    ]);
    let all = actions(&request(&json!({ "options": options })), Answerer::UNLIMITED);
    for (word, id) in [
        ("proceed", "option:proceed"),
        ("allow once", "option:proceed"),
        ("yes, go", "option:proceed"),
        ("no", "option:no"),
        ("option:Deny", "option:Deny"),
        ("always allow", "option:Deny"),
    ] {
        assert_eq!(find(&all, word).map(|action| action.id.as_str()), Ok(id), "{word}");
    }
    assert_eq!(find(&all, "Deny"), Err(Unmatched::Several), "the verb of one, the id and label of another");
    assert_eq!(find(&all, "maybe"), Err(Unmatched::None));
    assert_eq!(find(&all, ""), Err(Unmatched::None));
    assert_eq!(find(&all, " …"), Err(Unmatched::None));
}

#[test]
fn table_has_each_role_once_in_order() {
    assert!(AnswerRole::ALL.is_sorted() && Unavailable::ALL.iter().all(|reason| !reason.text().is_empty()));
    let allow_once = AnswerRole::ALL.iter().position(|role| *role == AnswerRole::AllowOnce);
    assert!(allow_once < AnswerRole::ALL.iter().position(|role| *role == AnswerRole::AllowAlways));
    let data = data();
    assert_eq!(data["roles"].as_object().unwrap().len(), AnswerRole::ALL.len());
    assert_eq!(data["unavailable"].as_object().unwrap().len(), Unavailable::ALL.len());
}
