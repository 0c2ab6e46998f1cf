//! Tests of what the panels offer: the gateway's verbs, within the device's risk limit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use plexus_protocol::{Request, Risk};
use serde_json::{Value, json};

use super::{PanelAction, PanelQueue, PanelReply};

const OPTIONS: &[(&str, &str)] =
    &[("y", "allow_once"), ("a", "allow_always"), ("n", "reject_once"), ("v", "reject_always")];

fn request(kind: &str, risk: Risk, options: &[(&str, &str)]) -> Box<Request> {
    let options: Vec<Value> =
        options.iter().map(|(id, kind)| json!({ "id": id, "label": format!("Do {id}"), "kind": kind })).collect();
    let request = json!({
        "request_id": "q", "session_id": "s_1", "run_id": "r_1", "runtime_id": "a", "generation": 1, "type": kind,
        "state": "open", "title": "title", "display": "rm -rf /", "warnings": [], "digest": "d", "risk": risk,
        "options": options, "allow_reason": true, "allow_remember": true, "opened_at": "2026-01-01T00:00:00Z",
    });
    Box::new(serde_json::from_value(request).unwrap())
}

/// The queue of a terminal UI with all panels.
fn queue(limit: Option<Risk>) -> PanelQueue {
    let mut queue = PanelQueue::default();
    let panels = json!({ "supports_confirm": true, "supports_prompt": true, "supports_pick": true });
    queue.set_panels(serde_json::from_value(panels).unwrap());
    queue.set_limit(limit);
    queue
}

/// The method and params of the panel that a request is shown in.
fn shown(queue: &mut PanelQueue, request: &Request) -> Option<(&'static str, Value)> {
    let mut actions = Vec::new();
    queue.opened(Box::new(request.clone()), true, &mut actions);
    actions.into_iter().find_map(|action| match action {
        PanelAction::Ask(_, method, params) => Some((method, params)),
        PanelAction::Answer(..) | PanelAction::Notice(_) | PanelAction::Show(_) => None,
    })
}

/// The answer to the gateway that follows from a result of the panel.
fn answered(queue: &mut PanelQueue, result: Value) -> Option<Value> {
    let mut actions = Vec::new();
    queue.on_answer("q", PanelReply::read(&result.to_string()), &mut actions);
    actions.into_iter().find_map(|action| match action {
        PanelAction::Answer(request, answer) => {
            let mut answer = json!(answer);
            answer["request_id"] = json!(request);
            Some(answer)
        }
        PanelAction::Ask(..) | PanelAction::Notice(_) | PanelAction::Show(_) => None,
    })
}

#[test]
fn limited_device_denies_in_every_kind_of_question_and_allows_in_none() {
    for (kind, options, denied) in [
        ("permission", OPTIONS, ("option_id", json!("n"))),
        ("confirm", &OPTIONS[..3], ("option_id", json!("n"))),
        ("elicitation", &OPTIONS[3..], ("option_id", json!("v"))),
        ("prompt", &[], ("value", Value::Null)),
        ("pick", &[], ("ids", json!([]))),
    ] {
        let asked = request(kind, Risk::Danger, options);
        let mut limited = queue(Some(Risk::Elevated));
        let (method, params) = shown(&mut limited, &asked).unwrap();
        assert_eq!(method, "ui.confirm.request", "{kind}");
        assert_eq!((&params["confirm_label"], &params["cancel_label"]), (&json!("Decide at the desk"), &json!("Deny")));
        assert_eq!(params["allow_remember"], false, "{kind}");
        assert!(params["message"].as_str().unwrap().starts_with("rm -rf /\n\nToo risky for this device."), "{params}");
        let answer = answered(&mut limited, json!({ "ok": false, "remember": true })).unwrap();
        assert_eq!((&answer["request_id"], &answer[denied.0]), (&json!("q"), &denied.1), "{kind}");
    }
    // What can neither be allowed nor denied here is answered in another client.
    assert!(shown(&mut queue(Some(Risk::Low)), &request("permission", Risk::Danger, &OPTIONS[..2])).is_none());
}

#[test]
fn question_left_to_the_desk_answers_nothing_and_is_not_shown_again() {
    let mut limited = queue(Some(Risk::Low));
    let asked = request("permission", Risk::Elevated, OPTIONS);
    assert!(shown(&mut limited, &asked).is_some());
    assert_eq!(answered(&mut limited, json!({ "ok": true, "remember": true })), None);
    assert!(shown(&mut limited, &asked).is_none(), "after a reconnect, say");
    // A changed question is another one.
    assert!(shown(&mut limited, &Request { revision: 1, ..*asked }).is_some());
}

#[test]
fn limit_below_danger_leaves_out_what_allows_for_always() {
    let asked = request("permission", Risk::Low, OPTIONS);
    for (limit, always) in [(None, true), (Some(Risk::Danger), true), (Some(Risk::Elevated), false)] {
        let mut queue = queue(limit);
        let (_, params) = shown(&mut queue, &asked).unwrap();
        assert_eq!(params["allow_remember"], always, "{limit:?}");
        let answer = answered(&mut queue, json!({ "ok": true, "remember": true })).unwrap();
        assert_eq!(answer["option_id"], if always { "a" } else { "y" }, "{limit:?}");
        let only = request("permission", Risk::Low, &[OPTIONS[1], OPTIONS[2]]);
        let (method, params) = shown(&mut self::queue(limit), &only).unwrap();
        assert_eq!(
            (method, params["items"].as_array().unwrap().len()),
            ("ui.pick.request", if always { 2 } else { 1 })
        );
    }
}

#[test]
fn agent_with_misleading_labels_never_names_a_button() {
    let labels =
        ["Reject", "Deny this, and stop asking", "Allow just this once", "", "Deny", "\u{202e}wolla", &"x".repeat(200)];
    for n in 0..labels.len() {
        let mut asked = request("permission", Risk::Low, OPTIONS);
        for (option, label) in asked.options.iter_mut().zip(labels.iter().cycle().skip(n)) {
            option.label = (*label).to_owned();
        }
        let (_, params) = shown(&mut queue(Some(Risk::Elevated)), &asked).unwrap();
        let [yes, no] = ["confirm_label", "cancel_label"].map(|name| params[name].as_str().unwrap().to_owned());
        assert!(yes.starts_with("Allow once") && no.starts_with("Deny"), "{params}");
        for (button, verb) in [(&yes, "Allow once"), (&no, "Deny")] {
            let label = &button[verb.len()..];
            assert!(label.is_empty() || label.starts_with(" “") && label.ends_with('”'), "{button}");
            assert!(button.chars().count() <= 100 && !button.contains('\u{202e}'), "{button}");
        }
        let (_, params) = shown(&mut queue(None), &asked).unwrap();
        assert!(params["message"].as_str().unwrap().contains("\n- Always allow"), "{params}");
        asked.options.retain(|option| option.id != "y");
        let (_, params) = shown(&mut queue(None), &asked).unwrap();
        for (item, verb) in params["items"].as_array().unwrap().iter().zip(["Deny", "Always allow", "Always deny"]) {
            assert!(item["label"].as_str().unwrap().starts_with(verb), "{params}");
        }
    }
}
