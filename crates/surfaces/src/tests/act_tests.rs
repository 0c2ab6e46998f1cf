//! Tests of allowed and refused actions.

use plexus_protocol::api::surfaces::SurfaceAction;
use serde_json::{Value, json};

use super::{at, bytes, surface, update};
use crate::{Action, ActionError, Html, SurfaceSet};

fn form() -> SurfaceSet {
    surface(
        json!([
            {"id": "root", "component": "Column", "children": ["name", "age", "agree", "color", "day", "ok", "cancel", "site", "items"]},
            {"id": "name", "component": "TextField", "label": "Name", "value": {"path": "/name"},
             "checks": [{"condition": {"call": "required", "args": {"value": {"path": "/name"}}}, "message": "Name is needed"}]},
            {"id": "age", "component": "Slider", "min": 1, "max": 10, "value": {"path": "/age"}},
            {"id": "agree", "component": "CheckBox", "label": "Agree", "value": {"path": "/agree"}},
            {"id": "color", "component": "ChoicePicker", "value": {"path": "/color"},
             "options": [{"label": "Red", "value": "r"}, {"label": "Blue", "value": "b"}]},
            {"id": "day", "component": "DateTimeInput", "enableDate": true, "min": "2025-01-01", "value": {"path": "/day"}},
            {"id": "ok", "component": "Button", "child": "t", "action": {"event": {"name": "submit", "context": {"who": {"path": "/name"}, "n": 1}}},
             "checks": [{"condition": {"path": "/agree"}, "message": "Agree first"}]},
            {"id": "cancel", "component": "Button", "child": "t", "action": {"event": {"name": "cancel"}}},
            {"id": "site", "component": "Button", "child": "t", "action": {"functionCall": {"call": "openUrl", "args": {"url": "https://a.example"}}}},
            {"id": "items", "component": "List", "children": {"componentId": "item", "path": "/items"}},
            {"id": "item", "component": "Row", "children": ["count", "buy"]},
            {"id": "count", "component": "TextField", "label": "Count", "variant": "number", "value": {"path": "count"},
             "checks": [{"condition": {"call": "numeric", "args": {"value": {"path": "count"}, "max": 9}}, "message": "Too many"}]},
            {"id": "buy", "component": "Button", "child": "t", "action": {"event": {"name": "buy", "context": {"what": {"path": "name"}, "count": {"path": "count"}}}}},
            {"id": "t", "component": "Text", "text": "Go"}
        ]),
        json!({"name": "", "agree": false, "items": [{"name": "tea", "count": "1"}, {"name": "bread", "count": "2"}], "secret": "x"}),
    )
}

fn act(set: &mut SurfaceSet, request: Value) -> Result<Action, ActionError> {
    set.act("s", &serde_json::from_value::<SurfaceAction>(request).unwrap(), at(1))
}

/// Returns the code of a refusal, which has no effect.
fn refused(set: &mut SurfaceSet, request: Value) -> String {
    let before = bytes(set);
    let error = act(set, request.clone()).map(|action| format!("{action:?}")).expect_err(&request.to_string());
    assert_eq!(bytes(set), before, "{request}");
    format!("{}: {error}", error.code())
}

#[test]
fn surface_action_gives_the_context_and_puts_inputs() {
    let mut set = form();
    let request = json!({"rev": 1, "component": "ok", "event": "submit", "inputs": {"/name": "Ada", "/agree": true, "/age": 3.5, "/color": ["b"], "/day": "2025-06-01"}});
    let action = act(&mut set, request.clone()).unwrap();
    assert_eq!(
        serde_json::to_value(&action).unwrap(),
        json!({"name": "submit", "surface": "s", "component": "ok", "context": {"who": "Ada", "n": 1},
               "inputs": {"/name": "Ada", "/agree": true, "/age": 3.5, "/color": ["b"], "/day": "2025-06-01"}})
    );
    let change = action.change.unwrap();
    assert_eq!((change.rev, change.base), (2, Some(1)));
    assert_eq!(set.get("s").unwrap().data()["name"], "Ada");
    let mut follower = form();
    follower.apply(&change);
    assert_eq!(bytes(&follower), bytes(&set));
    // Pressed again with what is there already: nothing changes.
    assert!(act(&mut set, request).unwrap().change.is_none());
    // A press that reads no input does not need them to be right.
    assert_eq!(act(&mut form(), json!({"rev": 1, "component": "cancel", "event": "cancel"})).unwrap().name, "cancel");
}

#[test]
fn surface_action_in_a_template_is_of_its_item() {
    let mut set = form();
    let request = json!({"rev": 1, "component": "buy", "event": "buy", "instance": "/items/1", "inputs": {"/items/1/count": "5"}});
    let action = act(&mut set, request).unwrap();
    assert_eq!(Value::Object(action.context), json!({"what": "bread", "count": "5"}));
    assert_eq!(action.instance.as_deref(), Some("/items/1"));
    for instance in [
        json!(null),
        json!(""),
        json!("/items/2"),
        json!("/items/01"),
        json!("/items"),
        json!("/secret"),
        json!("/items/1/name"),
        json!("/__proto__"),
    ] {
        let request = json!({"rev": 2, "component": "buy", "event": "buy", "instance": instance});
        assert!(refused(&mut set, request).starts_with("unknown_component"), "{instance}");
    }
    let request = json!({"rev": 2, "component": "ok", "event": "submit", "instance": "/items/1"});
    assert!(refused(&mut set, request).starts_with("unknown_component"));
    let request = json!({"rev": 2, "component": "buy", "event": "buy", "instance": "/items/1", "inputs": {"/items/1/count": "50"}});
    assert_eq!(refused(&mut set, request), "check_failed: Too many");
}

#[test]
fn surface_action_spoofed_has_no_effect() {
    let mut set = form();
    let submit = |inputs: Value| json!({"rev": 1, "component": "ok", "event": "submit", "inputs": inputs});
    for (request, why) in [
        (json!({"rev": 1, "component": "nope", "event": "submit"}), "unknown_component"),
        (json!({"rev": 1, "component": "ok", "event": "cancel"}), "unknown_event"),
        (json!({"rev": 1, "component": "name", "event": "submit"}), "unknown_event"),
        (json!({"rev": 1, "component": "site", "event": "openUrl"}), "unknown_event"),
        (json!({"rev": 9, "component": "ok", "event": "submit"}), "stale"),
        (json!({"rev": 1, "component": "ok", "event": "submit", "item": 3}), "invalid_item"),
        (submit(json!({})), "check_failed: Agree first"),
        (submit(json!({"/agree": true})), "check_failed: Name is needed"),
        (submit(json!({"/agree": true, "/name": ""})), "check_failed: Name is needed"),
        (submit(json!({"/secret": "y"})), "invalid_input: input /secret: no input"),
        (submit(json!({"/": {"name": "x"}})), "invalid_input"),
        (submit(json!({"name": "x"})), "invalid_input: input name: has to be an absolute"),
        (submit(json!({"/name/x": "x"})), "invalid_input"),
        (submit(json!({"/__proto__/x": "x"})), "invalid_input"),
        (submit(json!({"/items/0/name": "x"})), "invalid_input"),
        (submit(json!({"/items/7/count": "1"})), "invalid_input"),
        (submit(json!({"/items/-/count": "1"})), "invalid_input"),
        (submit(json!({"/name": 5})), "invalid_input: input /name: has to be text"),
        (submit(json!({"/name": {"path": "/secret"}})), "invalid_input"),
        (submit(json!({"/agree": "true"})), "invalid_input"),
        (submit(json!({"/age": 11})), "invalid_input: input /age: has to be from 1 to 10"),
        (submit(json!({"/age": "5"})), "invalid_input"),
        (submit(json!({"/color": ["x"]})), "invalid_input: input /color: is not one of the choices"),
        (submit(json!({"/color": ["r", "b"]})), "invalid_input: input /color: has to be one choice"),
        (submit(json!({"/color": ["r", "r"]})), "invalid_input"),
        (submit(json!({"/color": "r"})), "invalid_input"),
        (submit(json!({"/day": "2024-12-31"})), "invalid_input: input /day: is outside"),
        (submit(json!({"/day": "someday"})), "invalid_input"),
        (submit(json!({"/items/0/count": "many"})), "invalid_input"),
        (submit(json!({"/name": "x".repeat(70_000)})), "limit"),
    ] {
        let error = refused(&mut set, request.clone());
        assert!(error.starts_with(why), "{request}: {error}");
    }
    let request = serde_json::from_value(submit(json!({}))).unwrap();
    assert_eq!(set.act("t", &request, at(0)).unwrap_err().code(), "unknown_surface");
}

#[test]
fn surface_action_of_an_older_revision_holds_if_nothing_moved() {
    let mut set = form();
    update(&mut set, json!({"surface": "s", "data": [{"path": "/other", "value": 1}]})).unwrap();
    update(&mut set, json!({"surface": "s", "components": [{"id": "t", "component": "Text", "text": "New"}]})).unwrap();
    let request = json!({"rev": 1, "component": "ok", "event": "submit", "inputs": {"/name": "Ada", "/agree": true}});
    act(&mut set, request.clone()).unwrap();
    // The same component again is no change of it.
    let same = json!({"id": "agree", "component": "CheckBox", "label": "Agree", "value": {"path": "/agree"}});
    update(&mut set, json!({"surface": "s", "components": [same]})).unwrap();
    act(&mut set, request.clone()).unwrap();
    // An input that was changed, then the button itself.
    let other =
        json!({"id": "agree", "component": "CheckBox", "label": "Sell everything", "value": {"path": "/agree"}});
    let rev = update(&mut set, json!({"surface": "s", "components": [other]})).unwrap().rev;
    assert!(refused(&mut set, request.clone()).starts_with("stale"));
    let request = json!({"rev": rev, "component": "ok", "event": "submit", "inputs": {"/agree": true}});
    act(&mut set, request.clone()).unwrap();
    let other = json!({"id": "ok", "component": "Button", "child": "t", "action": {"event": {"name": "submit", "context": {"all": {"path": "/secret"}}}}});
    update(&mut set, json!({"surface": "s", "components": [other]})).unwrap();
    assert!(refused(&mut set, request).starts_with("stale"));
}

#[test]
fn surface_action_selects_a_row_or_a_file() {
    let mut set = surface(
        json!([
            {"id": "root", "component": "Column", "children": ["t", "f", "hidden"]},
            {"id": "t", "component": "Table", "columns": [{"key": "n", "label": "N"}], "rows": {"path": "/rows"},
             "onSelect": {"event": {"name": "row", "context": {"n": {"path": "n"}, "all": {"path": "/total"}}}}},
            {"id": "f", "component": "FileTree", "entries": [{"path": "a/b.rs"}, {"path": "c.rs"}], "onSelect": {"event": {"name": "file"}}},
            {"id": "hidden", "component": "Text", "text": ""}
        ]),
        json!({"rows": [{"n": "x"}, {"n": "y"}], "total": 2}),
    );
    let action = act(&mut set, json!({"rev": 1, "component": "t", "event": "row", "item": 1})).unwrap();
    assert_eq!(Value::Object(action.context), json!({"n": "y", "all": 2}));
    assert_eq!(action.item, Some(json!(1)));
    let action = act(&mut set, json!({"rev": 1, "component": "f", "event": "file", "item": "c.rs"})).unwrap();
    assert_eq!(action.item, Some(json!("c.rs")));
    for (component, event, item) in [
        ("t", "row", json!(2)),
        ("t", "row", json!(-1)),
        ("t", "row", json!(0.5)),
        ("t", "row", json!("1")),
        ("t", "row", json!(null)),
        ("f", "file", json!("../etc/passwd")),
        ("f", "file", json!(0)),
    ] {
        let request = json!({"rev": 1, "component": component, "event": event, "item": item});
        assert!(refused(&mut set, request).starts_with("invalid_item"), "{component} {item}");
    }
}

#[test]
fn surface_action_of_a_page_is_one_that_it_declared() {
    let mut set = SurfaceSet::default();
    let page = Html {
        surface: "s".into(),
        html: "<p>".into(),
        text: "p".into(),
        actions: Some(vec!["go".into()]),
        ..Html::default()
    };
    set.html(page, at(0)).unwrap();
    assert_eq!(act(&mut set, json!({"rev": 1, "component": "root", "event": "go"})).unwrap().name, "go");
    assert!(refused(&mut set, json!({"rev": 1, "component": "root", "event": "approve"})).starts_with("unknown_event"));
    // A component that nothing shows cannot be pressed.
    let mut set = form();
    let hidden = json!({"id": "ghost", "component": "Button", "child": "t", "action": {"event": {"name": "boo"}}});
    update(&mut set, json!({"surface": "s", "components": [hidden]})).unwrap();
    assert!(
        refused(&mut set, json!({"rev": 2, "component": "ghost", "event": "boo"})).starts_with("unknown_component")
    );
}

#[test]
fn surface_action_leaves_what_was_typed_blind_out_of_the_data() {
    let mut set = surface(
        json!([
            {"id": "root", "component": "Column", "children": ["user", "pass", "ok"]},
            {"id": "user", "component": "TextField", "label": "User", "value": {"path": "/user"}},
            {"id": "pass", "component": "TextField", "label": "Token", "variant": "obscured", "value": {"path": "/pass"},
             "checks": [{"condition": {"call": "length", "args": {"value": {"path": "/pass"}, "min": 4}}, "message": "Too short"}]},
            {"id": "ok", "component": "Button", "child": "t", "action": {"event": {"name": "ok", "context": {
                "all": {"call": "formatString", "args": {"value": "${/user}:${/pass}"}}}}}},
            {"id": "t", "component": "Text", "text": "Go"}
        ]),
        json!({}),
    );
    // The context reads the input in a template: its check has to hold though it was not touched.
    let request = |inputs: Value| json!({"rev": 1, "component": "ok", "event": "ok", "inputs": inputs});
    assert_eq!(refused(&mut set, request(json!({"/user": "ada"}))), "check_failed: Too short");
    let action = act(&mut set, request(json!({"/user": "ada", "/pass": "hunter2"}))).unwrap();
    assert_eq!(action.context["all"], "ada:hunter2");
    let kept = action.without_secrets();
    assert_eq!((&kept.context["all"], &kept.inputs["/pass"]), (&json!("ada:(not kept)"), &json!("(not kept)")));
    assert!(!serde_json::to_string(&kept).unwrap().contains("hunter2"));
    assert_eq!(action.secret, ["/pass"]);
    assert!(!bytes(&set).contains("hunter2"));
    assert!(!serde_json::to_string(&action.change.unwrap()).unwrap().contains("hunter2"));
    assert_eq!(set.get("s").unwrap().data(), &json!({"user": "ada"}));
    assert_eq!(set.get("s").unwrap().events(), [("ok", "ok")]);
}
