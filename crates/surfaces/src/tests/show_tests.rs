//! Tests of refused commands, with their messages.

use serde_json::{Value, json};

use super::{at, bytes, show, surface, update};
use crate::{Html, SurfaceSet};

fn refused(components: Value) -> String {
    let mut set = SurfaceSet::default();
    let error = show(&mut set, json!({"surface": "s", "components": components})).unwrap_err();
    assert!(set.is_empty());
    error.to_string()
}

/// Returns the error of one component below a root.
fn component(component: Value) -> String {
    let mut component = component;
    component["id"] = json!("c");
    refused(json!([{"id": "root", "component": "Column", "children": ["c"]}, component]))
}

#[test]
fn surface_errors_name_the_place_and_what_is_allowed() {
    for (one, message) in [
        (
            json!({"component": "Chart", "kind": "pie", "series": []}),
            "components/1 (Chart) kind: \"pie\" is not one of bar, line, scatter, sparkline",
        ),
        (json!({"component": "Text"}), "components/1 (Text) text: is missing: it has to be text, {\"path\"} or a call"),
        (
            json!({"component": "Text", "text": 5}),
            "components/1 (Text) text: has to be text, {\"path\"} or a call, and is a number",
        ),
        (
            json!({"component": "Button", "child": "x", "action": {"call": "openUrl", "args": {}}}),
            "components/1 (Button) action: has to be {\"event\": {\"name\", \"context\"?}} or {\"functionCall\": {\"call\": \"openUrl\", \"args\"}}",
        ),
        (
            json!({"component": "Table", "columns": [{"key": "a", "label": "A", "align": "left"}], "rows": []}),
            "components/1 (Table) columns/0/align: \"left\" is not one of start, end, center",
        ),
        (
            json!({"component": "Table", "columns": [{"key": "a", "label": "A"}], "rows": "x"}),
            "components/1 (Table) rows: has to be a list of an object or {\"path\": \"/..\"}",
        ),
        (
            json!({"component": "Row", "children": [{"component": "Text", "text": "x"}]}),
            "components/1 (Row) children/0: has to be the id of a component, and is an object: define it beside the others",
        ),
        (
            json!({"component": "Text", "text": {"call": "formatString", "args": {"value": "${nope(a: 1)}"}}}),
            "components/1 (Text) text/args/value/call: \"nope\" is no function of the catalog; there are required, regex, length, numeric, \
             email, formatString, formatNumber, formatCurrency, formatDate, pluralize, openUrl, and, or, not",
        ),
        (
            json!({"component": "Text", "text": {"call": "openUrl", "args": {"url": "https://a.b"}}}),
            "components/1 (Text) text/call: openUrl runs only as the functionCall of an action",
        ),
        (
            json!({"component": "Text", "text": {"call": "email", "args": {"value": "x"}}}),
            "components/1 (Text) text/call: email does not give text, {\"path\"} or a call",
        ),
        (
            json!({"component": "TextField", "label": "x", "validationRegexp": "(?=a)"}),
            "components/1 (TextField) validationRegexp: \"(?=a)\" is no regular expression that runs here: no lookaround, no backreferences, \
             no large repeats",
        ),
        (
            json!({"component": "Text", "text": {"path": "/__proto__/x"}}),
            "components/1 (Text) text/path: __proto__ is not allowed in a path",
        ),
        (json!({"component": "Diff"}), "components/1 (Diff) diff: give diff (a unified diff), or old and new"),
        (
            json!({"component": "Progress", "state": "broken"}),
            "components/1 (Progress) state: \"broken\" is not one of running, done, failed, waiting",
        ),
        (
            json!({"component": "Html", "html": "", "text": ""}),
            "components/1 (Html): Html is made by the tool ui_html only",
        ),
    ] {
        assert_eq!(component(one), message);
    }
    assert!(
        component(json!({"component": "Pie"}))
            .starts_with("components/1 (Pie): is not in the catalog; there are Text, Image,")
    );
    assert!(
        component(json!({"component": "Text", "text": "x", "color": "red"}))
            .starts_with("components/1 (Text) color: is no property")
    );
    let length = json!({"component": "TextField", "label": "x", "checks": [{"condition": {"call": "length", "args": {"value": "x"}}, "message": "m"}]});
    assert_eq!(component(length), "components/1 (TextField) checks/0/condition/args: length needs one of min, max");
}

#[test]
fn surface_trees_are_whole_and_without_cycles() {
    let column = |id: &str, children: Value| json!({"id": id, "component": "Column", "children": children});
    let text = |id: &str| json!({"id": id, "component": "Text", "text": "x"});
    assert!(refused(json!([text("a")])).contains("no component has the id \"root\""));
    assert!(refused(json!([column("root", json!(["b"]))])).contains("there is no component \"b\""));
    assert!(refused(json!([column("root", json!([])), text("b")])).contains("nothing has it as its child"));
    assert!(refused(json!([column("root", json!(["root"]))])).contains("leads back to it"));
    assert!(
        refused(json!([column("root", json!(["a"])), column("a", json!(["b"])), column("b", json!(["a"]))]))
            .contains("leads back")
    );
    let template = json!({"componentId": "root", "path": "/x"});
    assert!(refused(json!([column("root", template)])).contains("leads back"));
    assert!(
        refused(json!([column("root", json!(["a"])), text("a"), text("a")])).contains("is the id of another component")
    );
    let chain = |len: usize| {
        let mut all: Vec<Value> = (1..len).map(|n| column(&n.to_string(), json!([(n + 1).to_string()]))).collect();
        all.extend([column("root", json!(["1"])), text(&len.to_string())]);
        json!(all)
    };
    assert!(refused(chain(60)).contains("more than 50 levels deep"));
    surface(chain(31), json!({}));
    // A component that two have as their child is no cycle, however many ways lead to it.
    let mut all: Vec<Value> =
        (1..30).map(|n| column(&n.to_string(), json!([(n + 1).to_string(), (n + 1).to_string()]))).collect();
    all.extend([column("root", json!(["1"])), text("30")]);
    let set = surface(json!(all), json!({}));
    assert!(set.get("s").unwrap().text(80).len() <= crate::limits::TEXT_MAX);
}

#[test]
fn surface_updates_are_whole_or_not_at_all() {
    let mut set = surface(json!([{"id": "root", "component": "Text", "text": "x"}]), json!({"a": 1}));
    let before = bytes(&set);
    for (one, code) in [
        (json!({"surface": "s", "data": [{"path": "/b", "value": 1}, {"path": "/a/b", "value": 1}]}), "invalid_data"),
        (json!({"surface": "s", "data": [{"path": "/b", "value": 1}, {"path": "/a", "append": [1]}]}), "invalid_data"),
        (json!({"surface": "s", "data": [{"path": "/l/3", "value": 1}]}), "invalid_data"),
        (json!({"surface": "s", "data": [{"path": "/b", "value": 1, "append": []}]}), "invalid_data"),
        (
            json!({"surface": "s", "components": [{"id": "root", "component": "Column", "children": ["root"]}], "data": [{"path": "/b", "value": 1}]}),
            "invalid_tree",
        ),
        (json!({"surface": "s", "data": [{"path": "/b", "value": 1}], "expect_rev": 7}), "stale"),
        (json!({"surface": "s", "title": "x".repeat(201)}), "limit"),
        (json!({"surface": "s"}), "empty"),
        (json!({"surface": "t", "title": "x"}), "unknown_surface"),
        (json!({"surface": "__proto__", "title": "x"}), "invalid_name"),
    ] {
        let error = update(&mut set, one).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(bytes(&set), before);
    }
    let error = update(&mut set, json!({"surface": "s", "expect_rev": 7})).unwrap_err();
    assert!(error.to_string().starts_with("stale, now 1:"), "{error}");
    let error = update(&mut set, json!({"surface": "t", "title": "x"})).unwrap_err();
    assert_eq!(error.to_string(), "there is no surface \"t\" (there are s): call ui_show first");
    // A child that does not exist yet is drawn as nothing.
    update(&mut set, json!({"surface": "s", "expect_rev": 1, "components": [{"id": "root", "component": "Column", "children": ["later"]}]})).unwrap();
    assert_eq!(set.get("s").unwrap().text(80), "");
    update(&mut set, json!({"surface": "s", "components": [{"id": "later", "component": "Text", "text": "now"}]}))
        .unwrap();
    assert_eq!(set.get("s").unwrap().text(80), "now");
}

#[test]
fn surface_replaced_goes_on_and_stays_pinned() {
    let mut set = surface(json!([{"id": "root", "component": "Text", "text": "x"}]), json!({}));
    set.pin("s", true, at(0)).unwrap();
    let change = show(
        &mut set,
        json!({"surface": "s", "title": "T", "components": [{"id": "root", "component": "Text", "text": "y"}]}),
    )
    .unwrap();
    assert_eq!((change.rev, change.base, change.pinned), (3, None, Some(true)));
    let change = show(
        &mut set,
        json!({"surface": "s", "pin": false, "components": [{"id": "root", "component": "Text", "text": "z"}]}),
    )
    .unwrap();
    assert_eq!((change.title.as_deref(), change.pinned), (Some("T"), Some(false)));
    for n in 0..15 {
        show(
            &mut set,
            json!({"surface": format!("s{n}"), "components": [{"id": "root", "component": "Text", "text": "y"}]}),
        )
        .unwrap();
    }
    let error =
        show(&mut set, json!({"surface": "more", "components": [{"id": "root", "component": "Text", "text": "y"}]}))
            .unwrap_err();
    assert_eq!(error.to_string(), "surfaces of a session: 16 at most; close one with ui_close first");
}

#[test]
fn surface_of_a_page_needs_its_text() {
    let mut set = SurfaceSet::default();
    let page = |text: &str| Html {
        surface: "p".to_owned(),
        html: "<b>hi</b>".to_owned(),
        text: text.to_owned(),
        actions: Some(vec!["go".to_owned()]),
        ..Html::default()
    };
    assert_eq!(set.html(page(" "), at(0)).unwrap_err().code(), "invalid_component");
    set.html(page("It says hi."), at(0)).unwrap();
    assert_eq!(set.get("p").unwrap().text(80), "It says hi.");
    let huge = Html { html: "x".repeat(2 << 20), ..page("x") };
    assert_eq!(set.html(huge, at(0)).unwrap_err().code(), "limit");
}
