//! The plain form of surfaces, and components as they are resolved.

use plexus_protocol::text::hides;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{surface, update};
use crate::Surface;
use crate::limits::{ITEMS_MAX, TEXT_MAX};

fn text(components: Value, data: Value) -> String {
    surface(components, data).get("s").unwrap().text(60)
}

/// Returns the text of one component.
fn one(mut component: Value, data: Value) -> String {
    component["id"] = json!("root");
    text(json!([component]), data)
}

#[test]
fn surface_text_of_a_form() {
    let components = json!([
        {"id": "root", "component": "Column", "children": ["h", "row", "line", "name", "pass", "agree", "color", "size", "when", "ok", "docs"]},
        {"id": "h", "component": "Text", "text": "Order", "variant": "h1"},
        {"id": "row", "component": "Row", "children": ["icon", "who"]},
        {"id": "icon", "component": "Icon", "name": "check"},
        {"id": "who", "component": "Text", "text": {"call": "formatString", "args": {"value": "for ${/name}, ${formatCurrency(value: ${/price}, currency: 'EUR')}"}}},
        {"id": "line", "component": "Divider"},
        {"id": "name", "component": "TextField", "label": "Name", "value": {"path": "/name"}},
        {"id": "pass", "component": "TextField", "label": "Password", "variant": "obscured", "value": {"path": "/pass"}},
        {"id": "agree", "component": "CheckBox", "label": "Agree", "value": {"path": "/agree"}},
        {"id": "color", "component": "ChoicePicker", "label": "Color", "value": {"path": "/color"}, "options": [{"label": "Red", "value": "r"}, {"label": {"path": "/blue"}, "value": "b"}]},
        {"id": "size", "component": "Slider", "label": "Size", "max": 9, "value": {"path": "/size"}},
        {"id": "when", "component": "DateTimeInput", "label": "When", "value": {"path": "/when"}},
        {"id": "ok", "component": "Button", "child": "label", "action": {"event": {"name": "ok"}},
         "checks": [{"condition": {"path": "/agree"}, "message": "Agree first"}]},
        {"id": "label", "component": "Text", "text": "Send"},
        {"id": "docs", "component": "Button", "child": "docs_label", "action": {"functionCall": {"call": "openUrl", "args": {"url": "https://a.example/x"}}}},
        {"id": "docs_label", "component": "Text", "text": "Docs"}
    ]);
    let data = json!({"name": "Ada", "price": 1234.5, "pass": "hunter2", "agree": false, "color": ["b"], "blue": "Blue", "size": 3});
    assert_eq!(
        text(components, data),
        "# Order\n✓  for Ada, €1,234.50\n────────────────────────────────────────\nName: Ada\nPassword: ••••••\n[ ] Agree\nColor:\n  ( ) Red\n  \
         (•) Blue\nSize: 3 (0 to 9)\nWhen: ______\n[ Send ]\n  ! Agree first\n[ Docs ] https://a.example/x"
    );
}

#[test]
fn surface_text_of_the_components_for_coding() {
    for (component, data, expected) in [
        (
            json!({"component": "Table", "label": "Tests", "columns": [{"key": "n", "label": "Name"}], "rows": {"path": "/rows"}}),
            json!({"rows": [{"n": "a"}]}),
            "Tests\nName\n────\na",
        ),
        (
            json!({"component": "Chart", "kind": "sparkline", "title": "Load", "series": [{"label": "cpu", "values": {"path": "/v"}}]}),
            json!({"v": [1, 2, 3]}),
            "Load\ncpu  ▁▅█  3 (1 to 3)",
        ),
        (
            json!({"component": "Progress", "value": {"path": "/p"}, "label": "Build", "state": "done"}),
            json!({"p": 1}),
            "Build [████████████████████] 100% (done)",
        ),
        (
            json!({"component": "Code", "code": "fn a() {\n\tb();\n}", "language": "rust"}),
            json!({}),
            "fn a() {\n\tb();\n}",
        ),
        (
            json!({"component": "Diff", "path": "x.rs", "diff": "@@ -1 +1 @@\n-a\n+b"}),
            json!({}),
            "x.rs\n@@ -1 +1 @@\n-a\n+b",
        ),
        (
            json!({"component": "Code", "code": {"path": "/code"}, "startLine": 9}),
            json!({"code": "a\nb\n"}),
            " 9 │ a\n10 │ b",
        ),
        (json!({"component": "Diff", "old": "a\n", "new": {"path": "/new"}}), json!({"new": "b\n"}), "-a\n+b"),
        (
            json!({"component": "FileTree", "entries": [{"path": "a/b.rs", "status": "added"}]}),
            json!({}),
            "a/\n  b.rs (added)",
        ),
        (json!({"component": "Terminal", "text": "\u{1b}[31mred\u{1b}[0m\r\n50%\r99%"}), json!({}), "red\n99%"),
        (json!({"component": "Markdown", "text": "**hi**\n\n- x"}), json!({}), "**hi**\n\n- x"),
        (
            json!({"component": "Image", "url": "https://a.example/x.png", "description": "A cat"}),
            json!({}),
            "[picture: A cat https://a.example/x.png]",
        ),
        (json!({"component": "Image", "url": "data:image/png;base64,AAAA"}), json!({}), "[picture]"),
        (json!({"component": "Video", "url": "javascript:alert(1)"}), json!({}), "[video]"),
    ] {
        assert_eq!(one(component, data), expected);
    }
}

#[test]
fn surface_text_is_bounded_and_without_control_characters() {
    let evil = "a\u{1b}]0;x\u{7}\u{202e}b\r\u{0}";
    let out = one(json!({"component": "Text", "text": {"path": "/t"}}), json!({ "t": evil }));
    assert!(!out.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{out:?}");
    assert!(!out.contains('\u{202e}'));
    for component in ["Text", "Markdown", "Terminal"] {
        let out = one(json!({"component": component, "text": {"path": "/t"}}), json!({"t": "word ".repeat(200_000)}));
        assert!(!out.is_empty() && out.len() <= TEXT_MAX, "{component}: {}", out.len());
    }
    let list = json!([
        {"id": "root", "component": "List", "children": {"componentId": "x", "path": "/items"}},
        {"id": "x", "component": "Text", "text": {"path": "n"}}
    ]);
    let items: Vec<Value> = (0..5_000).map(|n| json!({ "n": n })).collect();
    let out = text(list, json!({ "items": items }));
    assert!(out.ends_with("999\n… 4,000 more"), "{}", &out[out.len() - 30..]);
}

#[test]
fn surface_component_is_resolved_with_its_children() {
    let mut set = surface(
        json!([
            {"id": "root", "component": "Column", "children": ["list", "tabs"]},
            {"id": "list", "component": "List", "children": {"componentId": "row", "path": "/rows"}},
            {"id": "row", "component": "List", "children": {"componentId": "cell", "path": "cells"}},
            {"id": "cell", "component": "Text", "text": {"path": "t"}},
            {"id": "tabs", "component": "Tabs", "tabs": [{"title": {"path": "/title"}, "child": "cell"}]}
        ]),
        json!({"rows": [{"cells": [{"t": "a"}, {"t": "b"}]}, {"cells": [{"t": "c"}]}], "title": "T"}),
    );
    let surface = set.get("s").unwrap();
    let list = surface.resolve("list", "").unwrap();
    let rows: Vec<&str> = list.children.iter().map(|slot| slot.instance.as_str()).collect();
    assert_eq!(rows, ["/rows/0", "/rows/1"]);
    let row = surface.resolve("row", "/rows/0").unwrap();
    assert_eq!((row.children.len(), row.children[1].instance.as_str()), (2, "/rows/0/cells/1"));
    assert_eq!(*surface.resolve("cell", "/rows/0/cells/1").unwrap().props["text"], json!("b"));
    assert_eq!(surface.resolve("tabs", "").unwrap().props["tabs"][0]["title"], json!("T"));
    assert_eq!(surface.text(80), "• • a\n  • b\n• • c\n── T ──");
    assert!(surface.resolve("nope", "").is_none() && surface.resolve("cell", "/__proto__").is_none());
    let many: Vec<Value> = (0..1_500).map(|_| json!({})).collect();
    update(&mut set, json!({"surface": "s", "data": [{"path": "/rows", "value": many}]})).unwrap();
    let list = set.get("s").unwrap().resolve("list", "").unwrap();
    assert_eq!((list.children.len(), list.more), (ITEMS_MAX, 500));
}

#[test]
fn surface_resolution_has_a_limit_of_calls() {
    // Each of these calls nests others: what is past the limit is empty, and the rest is there.
    let values: Vec<Value> = (0..1_200).map(|_| json!({"call": "not", "args": {"value": false}})).collect();
    let check = json!([{"condition": {"call": "and", "args": {"values": values}}, "message": "no"}]);
    let set = surface(
        json!([{"id": "root", "component": "CheckBox", "label": "x", "value": true, "checks": check}]),
        json!({}),
    );
    let resolved = set.get("s").unwrap().resolve("root", "").unwrap();
    assert_eq!(resolved.failed_check.as_deref(), Some("no"));
    // A template that names itself ends.
    let set = surface(
        json!([{"id": "root", "component": "Text", "text": {"call": "formatString", "args": {"value": {"path": "/t"}}}}]),
        json!({"t": "x${formatString(value: ${/t})}${formatString(value: ${/t})}"}),
    );
    assert!(set.get("s").unwrap().text(80).len() < TEXT_MAX);
}

/// Generates text that could harm a terminal or a reader, including long text.
fn hostile_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "\\PC{0,12}",
        4 => "(.|\\x1b|[\\x00-\\x1f]|[\u{7f}-\u{9f}]|\u{202e}|\u{200d}|\u{301}|\u{2800}){0,24}",
        1 => Just("\u{1b}[31m漢字\t".repeat(4_000)),
        1 => prop::sample::select(vec!["/a", "a", "/list", "added", "bar", "scatter", "obscured", "h1", "https://a.example/"]).prop_map(str::to_owned),
    ]
}

fn hostile_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        hostile_text().prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "path",
        "call",
        "args",
        "value",
        "label",
        "key",
        "format",
        "values",
        "x",
        "status",
        "note",
        "title",
        "child",
        "a",
        "componentId",
    ]);
    leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// Generates any component, with values of any type in its properties.
fn hostile_component(number: usize) -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        "Text",
        "Image",
        "Icon",
        "Video",
        "AudioPlayer",
        "Row",
        "Column",
        "List",
        "Card",
        "Tabs",
        "Modal",
        "Divider",
        "Button",
        "TextField",
        "CheckBox",
        "ChoicePicker",
        "Slider",
        "DateTimeInput",
        "Table",
        "Diff",
        "Code",
        "FileTree",
        "Markdown",
        "Chart",
        "Progress",
        "Terminal",
        "Html",
        "Later",
    ]);
    let prop = prop::sample::select(vec![
        "text",
        "variant",
        "url",
        "description",
        "name",
        "label",
        "value",
        "options",
        "min",
        "max",
        "columns",
        "rows",
        "sort",
        "diff",
        "old",
        "new",
        "path",
        "code",
        "startLine",
        "entries",
        "kind",
        "series",
        "labels",
        "title",
        "unit",
        "state",
        "checks",
        "action",
        "html",
    ]);
    let children = prop::collection::vec(0..8usize, 0..4);
    (kind, prop::collection::vec((prop, hostile_json()), 0..8), children).prop_map(move |(kind, props, children)| {
        let children: Vec<String> = children.into_iter().map(|child| format!("c{child}")).collect();
        let first = children.first().cloned().unwrap_or_default();
        let mut component = json!({
            "component": kind, "children": children, "child": first, "trigger": first, "content": first,
            "tabs": [{ "title": "t", "child": first }],
        });
        if number.is_multiple_of(3) {
            component["children"] = json!({ "componentId": first, "path": "/list" });
        }
        for (prop, value) in props {
            component[prop] = value;
        }
        component["id"] = json!(if number == 0 { "root".to_owned() } else { format!("c{number}") });
        component
    })
}

fn hostile_surface() -> impl Strategy<Value = Value> {
    let components: Vec<_> = (0..8).map(hostile_component).collect();
    (components, prop::collection::vec(hostile_json(), 0..30), hostile_json()).prop_map(|(components, list, value)| {
        let data = json!({ "list": list, "a": value });
        json!({ "surface": "s", "rev": 1, "pinned": false, "messages": [
            { "version": "v0.9", "createSurface": { "surfaceId": "s", "catalogId": "plexus:catalog/1" } },
            { "version": "v0.9", "updateComponents": { "surfaceId": "s", "components": components } },
            { "version": "v0.9", "updateDataModel": { "surfaceId": "s", "path": "/", "value": data } },
        ] })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn surface_text_of_anything_is_bounded_and_plain(wire in hostile_surface(), columns in 0..600usize) {
        let surface = Surface::from_wire(wire).unwrap();
        let out = surface.text(columns);
        prop_assert!(out.len() <= TEXT_MAX, "{} bytes", out.len());
        let mut before = None;
        for c in out.chars() {
            prop_assert!(matches!(c, '\n' | '\t') || !hides(c, before), "U+{:04X} in {out:?}", u32::from(c));
            before = Some(c);
        }
    }
}
