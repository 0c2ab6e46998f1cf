//! Hostile surfaces: none panics, hangs or grows without bounds, and a refusal has a reason and changes nothing.

use std::time::{Duration, Instant};

use plexus_protocol::api::surfaces::SurfaceAction;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{at, bytes};
use crate::limits::{DATA_MAX, TEXT_MAX};
use crate::{BASIC_CATALOG, Change, Fold, Html, Show, SurfaceSet, Update};

/// The message of a hostile agent.
enum Attack {
    /// Components below a root, and data.
    Shown(Vec<Value>, Value),
    /// An update of the surface `s`.
    Updated(Value),
    /// Messages of A2UI.
    Sent(Vec<Value>),
    /// A page.
    Page(Html),
    /// An action on the surface `s`.
    Pressed(Value),
}

/// The expected result.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Refused(&'static str),
    /// The message is accepted, and drawn without harm.
    Harmless,
}

use Attack::{Page, Pressed, Sent, Shown, Updated};
use End::{Harmless, Refused};

const COMPONENT: End = Refused("invalid_component");
const TREE: End = Refused("invalid_tree");
const DATA: End = Refused("invalid_data");
const LIMIT: End = Refused("limit");
const CATALOG: End = Refused("not_in_catalog");
const MESSAGE: End = Refused("invalid_message");
const NAME: End = Refused("invalid_name");

fn nested(levels: usize, list: bool) -> Value {
    (0..levels).fold(json!("x"), |value, _| if list { json!([value]) } else { json!({ "k": value }) })
}

fn text(value: Value) -> Value {
    json!({"id": "c", "component": "Text", "text": value})
}

fn call(name: &str, args: Value) -> Value {
    json!({"call": name, "args": args})
}

fn column(id: &str, children: Value) -> Value {
    json!({"id": id, "component": "Column", "children": children})
}

fn set(path: &str, value: Value) -> Attack {
    Updated(json!({"data": [{"path": path, "value": value}]}))
}

fn long(len: usize) -> String {
    "x".repeat(len)
}

fn trees() -> Vec<(End, Attack)> {
    let chain = |len: usize| -> Vec<Value> {
        let mut all: Vec<Value> = (0..len).map(|n| column(&format!("n{n}"), json!([format!("n{}", n + 1)]))).collect();
        all.push(json!({"id": format!("n{len}"), "component": "Text", "text": "end"}));
        all.push(column("c", json!(["n0"])));
        all
    };
    let wide: Vec<Value> = (0..28).map(|n| column(&format!("w{n}"), json!(vec![format!("w{}", n + 1); 8]))).collect();
    let wide = [wide, vec![column("c", json!(["w0"])), json!({"id": "w28", "component": "Divider"})]].concat();
    let lists: Vec<Value> =
        (0..20).map(|n| json!({"id": format!("l{n}"), "component": "List", "children": {"componentId": format!("l{}", n + 1), "path": "/l"}})).collect();
    let lists =
        [lists, vec![column("c", json!(["l0"])), json!({"id": "l20", "component": "Text", "text": "x"})]].concat();
    let many: Vec<Value> = (0..300).map(|n| json!({"id": format!("m{n}"), "component": "Divider"})).collect();
    let modal = json!({"id": "c", "component": "Modal", "trigger": "c", "content": "c"});
    let tabs = json!({"id": "c", "component": "Tabs", "tabs": [{"title": "t", "child": "c"}]});
    let mut out = vec![
        (TREE, Shown(vec![column("c", json!(["c"]))], json!({}))),
        (TREE, Shown(vec![column("c", json!(["root"]))], json!({}))),
        (TREE, Shown(vec![column("c", json!(["d"])), column("d", json!(["e"])), column("e", json!(["d"]))], json!({}))),
        (TREE, Shown(vec![column("c", json!({"componentId": "c", "path": "/l"}))], json!({"l": [1]}))),
        (TREE, Shown(vec![modal], json!({}))),
        (TREE, Shown(vec![tabs], json!({}))),
        (TREE, Shown(vec![json!({"id": "c", "component": "Card", "child": "c"})], json!({}))),
        (
            TREE,
            Shown(
                vec![json!({"id": "c", "component": "Button", "child": "root", "action": {"event": {"name": "x"}}})],
                json!({}),
            ),
        ),
        (TREE, Shown(chain(50), json!({}))),
        (TREE, Shown(chain(200), json!({}))),
        (LIMIT, Shown(chain(300), json!({}))),
        (LIMIT, Shown(many, json!({}))),
        (TREE, Shown(vec![column("c", json!(["nowhere"]))], json!({}))),
        (TREE, Shown(vec![text(json!("x")), json!({"id": "unused", "component": "Divider"})], json!({}))),
        (COMPONENT, Shown(vec![text(json!("x")), text(json!("y"))], json!({}))),
        (Harmless, Shown(wide, json!({}))),
        (Harmless, Shown(lists, json!({"l": vec![json!({}); 1_000]}))),
        (COMPONENT, Shown(vec![column("c", json!(vec!["c"; 300]))], json!({}))),
        (COMPONENT, Shown(vec![column("c", json!([5]))], json!({}))),
        (COMPONENT, Shown(vec![column("c", json!([null]))], json!({}))),
        (COMPONENT, Shown(vec![column("c", json!([[]]))], json!({}))),
        (COMPONENT, Shown(vec![column("c", json!("c"))], json!({}))),
        (COMPONENT, Shown(vec![column("c", json!({"componentId": "d"}))], json!({}))),
        (COMPONENT, Shown(vec![column("c", json!({"componentId": "d", "path": "/l", "more": 1}))], json!({}))),
        (COMPONENT, Shown(vec![column("c", json!({"componentId": "d", "path": "/__proto__"}))], json!({}))),
    ];
    for id in ["__proto__", "constructor", "prototype", "", "a\u{0}b", "\u{1b}[2J", &long(65)] {
        out.push((COMPONENT, Shown(vec![json!({"id": id, "component": "Divider"})], json!({}))));
    }
    for id in [json!(5), json!(null), json!({}), json!([])] {
        out.push((COMPONENT, Shown(vec![json!({"id": id, "component": "Divider"})], json!({}))));
    }
    out
}

fn values() -> Vec<(End, Attack)> {
    let shown = |value: Value| Shown(vec![text(value)], json!({}));
    let mut out = vec![
        (LIMIT, shown(json!(long(1 << 20)))),
        (COMPONENT, shown(nested(60, true))),
        (COMPONENT, shown(nested(60, false))),
        (CATALOG, shown(json!({"path": "/a", "call": 5, "args": {}}))),
        (COMPONENT, shown(json!({"path": 5}))),
        (COMPONENT, shown(json!({"path": "/a", "other": 1}))),
        (COMPONENT, shown(json!({"path": "/a/".repeat(2_000)}))),
        (COMPONENT, shown(json!(null))),
        (CATALOG, shown(call("eval", json!({"code": "1"})))),
        (CATALOG, shown(call("constructor", json!({})))),
        (CATALOG, shown(call("__proto__", json!({})))),
        (CATALOG, shown(json!({"call": {"call": "x"}, "args": {}}))),
        (COMPONENT, shown(call("openUrl", json!({"url": "https://a.example"})))),
        (COMPONENT, shown(call("formatString", json!({"value": "x", "extra": 1})))),
        (COMPONENT, shown(call("formatString", json!({})))),
        (COMPONENT, shown(call("formatString", json!({"value": "${"})))),
        (COMPONENT, shown(call("formatString", json!({"value": "${".repeat(5_000)})))),
        (
            COMPONENT,
            shown(call("formatString", json!({"value": format!("{}x{}", "${".repeat(2_000), "}".repeat(2_000))}))),
        ),
        (
            COMPONENT,
            shown(call(
                "formatString",
                json!({"value": format!("${{{}1{}}}", "formatNumber(value: ".repeat(2_000), ")".repeat(2_000))}),
            )),
        ),
        (CATALOG, shown(call("formatString", json!({"value": "${alert(x: 1)}"})))),
        (COMPONENT, shown(call("formatString", json!({"value": "${openUrl(url: 'https://a.example')}"})))),
        (COMPONENT, shown(call("formatString", json!({"value": "${/__proto__/x}"})))),
        (Harmless, shown(call("formatString", json!({"value": "${/}".repeat(1_000)})))),
        (
            Harmless,
            Shown(
                vec![text(call("formatString", json!({"value": {"path": "/t"}})))],
                json!({"t": "${formatString(value: ${/t})}${formatString(value: ${/t})}"}),
            ),
        ),
        (
            Harmless,
            Shown(
                vec![text(call("formatString", json!({"value": {"path": "/t"}})))],
                json!({"t": "${/t}".repeat(10_000)}),
            ),
        ),
        (
            Harmless,
            Shown(
                vec![text(call("formatString", json!({"value": {"path": "/t"}})))],
                json!({"t": "${".repeat(100_000)}),
            ),
        ),
        (
            Harmless,
            Shown(
                vec![text(call("formatString", json!({"value": "${/big}".repeat(2_000)})))],
                json!({"big": long(900_000)}),
            ),
        ),
        (Harmless, Shown(vec![text(call("formatDate", json!({"value": 1e300, "format": long(10_000)})))], json!({}))),
        (Harmless, Shown(vec![text(call("formatDate", json!({"value": "2025-01-01", "format": "'"})))], json!({}))),
        (Harmless, Shown(vec![text(call("formatNumber", json!({"value": 1e308, "decimals": 1e308})))], json!({}))),
        (Harmless, Shown(vec![text(call("formatNumber", json!({"value": -1e308, "decimals": -5})))], json!({}))),
        (
            Harmless,
            Shown(
                vec![text(call("formatCurrency", json!({"value": {"path": "/x"}, "currency": {"path": "/c"}})))],
                json!({"x": "NaN", "c": "💰💰"}),
            ),
        ),
        (Harmless, Shown(vec![text(call("formatNumber", json!({"value": {"path": "/x"}})))], json!({"x": "Infinity"}))),
        (Harmless, Shown(vec![text(json!({"path": "/nowhere/at/all"}))], json!({}))),
        (Harmless, Shown(vec![text(json!({"path": "toString"}))], json!({}))),
        (
            Harmless,
            Shown(vec![text(json!({"path": "/t"}))], json!({"t": "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{202e}"})),
        ),
        (Harmless, Shown(vec![text(json!({"path": "/t"}))], json!({"t": {"path": "/t", "call": "eval"}}))),
        (Harmless, Shown(vec![text(json!("a fake approval: [ Allow ] [ Deny ]"))], json!({}))),
    ];
    for pattern in [
        "(?=a)",
        "(a)\\1",
        "[",
        "(?<!x)y",
        "\\u{110000}",
        "(?P<n",
        "a{1,1000}{1,1000}",
        "(((((((((x{100}){100}){100})))))))",
        "\\p{Nope}",
        &"a".repeat(1_001),
    ] {
        let check = json!([{"condition": call("regex", json!({"value": "x", "pattern": pattern})), "message": "m"}]);
        out.push((
            COMPONENT,
            Shown(vec![json!({"id": "c", "component": "TextField", "label": "l", "checks": check})], json!({})),
        ));
    }
    // What makes other engines hang.
    for pattern in ["(a+)+$", "(a|aa)+$", "(a|a?)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*a){20}", "(x+x+)+y"] {
        let check =
            json!([{"condition": call("regex", json!({"value": {"path": "/v"}, "pattern": pattern})), "message": "m"}]);
        let field =
            json!({"id": "c", "component": "TextField", "label": "l", "value": {"path": "/v"}, "checks": check});
        out.push((Harmless, Shown(vec![field], json!({"v": format!("{}!", "a".repeat(500_000))}))));
    }
    let nested_not = (0..12).fold(json!(true), |value, _| call("not", json!({"value": value})));
    let many = call("and", json!({"values": vec![call("not", json!({"value": false})); 1_200]}));
    for (end, condition) in [
        (COMPONENT, call("and", json!({"values": [true]}))),
        (COMPONENT, call("and", json!({"values": [1, 2]}))),
        (COMPONENT, call("email", json!({"value": "x"})).as_object().map(|one| json!([one])).unwrap_or_default()),
        (COMPONENT, call("formatString", json!({"value": "x"}))),
        (COMPONENT, (0..30).fold(json!(true), |value, _| call("not", json!({"value": value})))),
        (Harmless, nested_not),
        (Harmless, many),
    ] {
        let check = json!([{"condition": condition, "message": "m"}]);
        out.push((
            end,
            Shown(
                vec![json!({"id": "c", "component": "CheckBox", "label": "l", "value": true, "checks": check})],
                json!({}),
            ),
        ));
    }
    out
}

fn components() -> Vec<(End, Attack)> {
    let with = |mut component: Value, data: Value| {
        component["id"] = json!("c");
        Shown(vec![component], data)
    };
    let one = |component: Value| with(component, json!({}));
    let opens = |url: Value| json!({"component": "Button", "child": "t", "action": {"functionCall": {"call": "openUrl", "args": {"url": url}}}});
    let mut out = vec![
        (CATALOG, one(json!({"component": "Html", "html": "<script>", "text": "x"}))),
        (CATALOG, one(json!({"component": "Approval", "text": "Allow?"}))),
        (CATALOG, one(json!({"component": "__proto__"}))),
        (CATALOG, one(json!({"component": "text", "text": "x"}))),
        (COMPONENT, one(json!({"component": 5}))),
        (COMPONENT, one(json!({"component": "Text", "text": "x", "style": "position:fixed"}))),
        (COMPONENT, one(json!({"component": "Text", "text": "x", "onclick": "alert(1)"}))),
        (COMPONENT, one(json!({"component": "Text", "text": "x", "__proto__": {"admin": true}}))),
        (COMPONENT, one(json!({"component": "Text", "text": "x", "weight": "heavy"}))),
        (COMPONENT, one(json!({"component": "Text", "text": "x", "accessibility": {"label": 5}}))),
        (COMPONENT, one(json!({"component": "Icon", "name": "skull"}))),
        (COMPONENT, one(json!({"component": "Icon", "name": {"svgPath": 5}}))),
        (COMPONENT, one(json!({"component": "Slider", "min": 10, "max": 1, "value": 5}))),
        (COMPONENT, one(json!({"component": "Slider", "max": "1", "value": 5}))),
        (COMPONENT, one(json!({"component": "Tabs", "tabs": []}))),
        (
            COMPONENT,
            one(
                json!({"component": "ChoicePicker", "options": vec![json!({"label": "x", "value": "x"}); 257], "value": []}),
            ),
        ),
        (COMPONENT, one(json!({"component": "Table", "columns": [], "rows": []}))),
        (
            COMPONENT,
            one(json!({"component": "Table", "columns": vec![json!({"key": "k", "label": "l"}); 65], "rows": []})),
        ),
        (COMPONENT, one(json!({"component": "Table", "columns": [{"key": "k", "label": "l"}], "rows": [1, 2]}))),
        (
            COMPONENT,
            one(
                json!({"component": "Table", "columns": [{"key": "k", "label": "l"}], "rows": vec![json!({}); 10_001]}),
            ),
        ),
        (
            LIMIT,
            one(
                json!({"component": "Table", "columns": [{"key": "k", "label": "l"}], "rows": vec![json!({"k": "0123456789"}); 5_000]}),
            ),
        ),
        (
            LIMIT,
            with(
                json!({"component": "Table", "columns": [{"key": "k", "label": "l"}], "rows": {"path": "/r"}}),
                json!({"r": vec![json!({}); 10_001]}),
            ),
        ),
        (
            Harmless,
            with(
                json!({"component": "Table", "columns": [{"key": "k", "label": long(1_000)}], "rows": {"path": "/r"}, "sort": {"key": "k"}}),
                json!({"r": vec![json!({"k": long(80)}); 9_000]}),
            ),
        ),
        (
            Harmless,
            with(
                json!({"component": "Table", "columns": [{"key": "k", "label": "l"}], "rows": {"path": "/r"}}),
                json!({"r": "no list"}),
            ),
        ),
        (
            Harmless,
            with(
                json!({"component": "Table", "columns": [{"key": "__proto__", "label": "l"}], "rows": {"path": "/r"}}),
                json!({"r": [1, null, "x", [], {"k": {"deep": [1]}}]}),
            ),
        ),
        (COMPONENT, one(json!({"component": "Chart", "kind": "line", "series": []}))),
        (COMPONENT, one(json!({"component": "Chart", "kind": "line", "series": [{"label": "x", "values": ["1"]}]}))),
        (
            COMPONENT,
            one(json!({"component": "Chart", "kind": "line", "series": vec![json!({"label": "x", "values": []}); 33]})),
        ),
        (
            Harmless,
            with(
                json!({"component": "Chart", "kind": "bar", "min": 5, "max": 5, "series": [{"label": "x", "values": {"path": "/v"}}]}),
                json!({"v": [1e308, -1e308, null, "x", {}, 0]}),
            ),
        ),
        (
            Harmless,
            with(
                json!({"component": "Chart", "kind": "scatter", "series": vec![json!({"label": "x", "values": {"path": "/v"}, "x": {"path": "/v"}}); 32]}),
                json!({"v": vec![1; 200_000]}),
            ),
        ),
        (Harmless, one(json!({"component": "Progress", "value": 1e308, "label": long(10_000)}))),
        (
            Harmless,
            with(
                json!({"component": "Progress", "value": {"path": "/v"}, "state": {"path": "/v"}}),
                json!({"v": "\u{1b}[31m"}),
            ),
        ),
        (COMPONENT, one(json!({"component": "Progress", "value": "half"}))),
        (COMPONENT, one(json!({"component": "Code", "code": "x", "startLine": -1}))),
        (COMPONENT, one(json!({"component": "Diff", "diff": "x", "old": "y", "new": "z"}))),
        (COMPONENT, one(json!({"component": "Diff", "old": "y"}))),
        (
            Harmless,
            with(
                json!({"component": "Diff", "old": {"path": "/a"}, "new": {"path": "/b"}}),
                json!({"a": "a\n".repeat(150_000), "b": "b\n".repeat(150_000)}),
            ),
        ),
        (
            Harmless,
            with(json!({"component": "Terminal", "text": {"path": "/t"}}), json!({"t": "\u{1b}[".repeat(100_000)})),
        ),
        (
            Harmless,
            with(json!({"component": "Terminal", "text": {"path": "/t"}}), json!({"t": "\u{1b}]0;".repeat(100_000)})),
        ),
        (
            Harmless,
            with(
                json!({"component": "FileTree", "entries": {"path": "/e"}}),
                json!({"e": [{"path": "/".repeat(50_000)}, {"path": "../../etc/passwd"}, {"path": 5}, 7, {"path": "a/".repeat(9_000)}]}),
            ),
        ),
        (COMPONENT, one(json!({"component": "FileTree", "entries": [{"path": "x", "status": "evil"}]}))),
        (Harmless, one(json!({"component": "Image", "url": "https://tracker.example/pixel.png?user=1"}))),
        (Harmless, one(json!({"component": "Image", "url": "data:image/svg+xml,<svg onload=alert(1)>"}))),
        (Harmless, one(json!({"component": "Video", "url": "file:///etc/passwd"}))),
        (
            Harmless,
            one(json!({"component": "TextField", "label": "Password", "variant": "obscured", "value": {"path": "/p"}})),
        ),
        (Harmless, one(json!({"component": "Markdown", "text": "<script>alert(1)</script>"}))),
        (COMPONENT, one(json!({"component": "Button", "child": "t"}))),
        (COMPONENT, one(json!({"component": "Button", "child": "t", "action": {}}))),
        (
            COMPONENT,
            one(
                json!({"component": "Button", "child": "t", "action": {"event": {"name": "x"}, "functionCall": {"call": "openUrl"}}}),
            ),
        ),
        (COMPONENT, one(json!({"component": "Button", "child": "t", "action": {"event": {"name": ""}}}))),
        (COMPONENT, one(json!({"component": "Button", "child": "t", "action": {"event": {"name": long(201)}}}))),
        (COMPONENT, one(json!({"component": "Button", "child": "t", "action": {"event": {"context": {}}}}))),
        (
            COMPONENT,
            one(
                json!({"component": "Button", "child": "t", "action": {"event": {"name": "x", "context": {"a": {"b": {"path": "/c"}}}}}}),
            ),
        ),
        (
            COMPONENT,
            one(
                json!({"component": "Button", "child": "t", "action": {"event": {"name": "x", "context": {"a": null}}}}),
            ),
        ),
        (
            COMPONENT,
            one(
                json!({"component": "Button", "child": "t", "action": {"functionCall": call("email", json!({"value": "x"}))}}),
            ),
        ),
    ];
    for url in [
        "javascript:alert(1)",
        " javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "vbscript:x",
        "//a.example",
        "/relative",
        "",
        "https://a\nb",
        "https://",
        "about:blank",
        "blob:https://a",
        "chrome://settings",
        "ht\ttp://a.example",
    ] {
        out.push((COMPONENT, one(opens(json!(url)))));
    }
    out.push((COMPONENT, one(opens(json!({"path": "/url"})))));
    out
}

fn data() -> Vec<(End, Attack)> {
    let mut out = vec![
        (DATA, set("/__proto__/polluted", json!(1))),
        (DATA, set("/a/constructor/prototype", json!(1))),
        (DATA, set("/prototype", json!(1))),
        (DATA, set("/x", serde_json::from_str(r#"{"__proto__": {"admin": true}}"#).unwrap_or_default())),
        (DATA, set("/list/999999999", json!(1))),
        (DATA, set("/list/18446744073709551616", json!(1))),
        (DATA, set("/list/-1", json!(1))),
        (DATA, set("/list/01", json!(1))),
        (DATA, set("/list/-", json!(1))),
        (DATA, set("/new/5", json!(1))),
        (DATA, set("/n/x", json!(1))),
        (DATA, set(&"/a".repeat(51), json!(1))),
        (DATA, set(&long(2_000), json!(1))),
        (DATA, set("/deep", nested(100, true))),
        (DATA, set("/deep", nested(49, false))),
        (DATA, set(&"/a".repeat(30), nested(30, true))),
        (LIMIT, set("/big", json!(long((1 << 20) + 1)))),
        (LIMIT, set("/big", json!(vec![0; 1 << 20]))),
        (LIMIT, set("/big", json!(vec![json!({}); 40_000]))),
        (
            LIMIT,
            Updated(
                json!({"data": (0..300).map(|n| json!({"path": format!("/p{n}"), "value": long(10_000)})).collect::<Vec<_>>()}),
            ),
        ),
        (DATA, Updated(json!({"data": [{"path": "/n", "append": [1]}]}))),
        (DATA, Updated(json!({"data": [{"path": "/", "append": [1]}]}))),
        (DATA, Updated(json!({"data": [{"path": "/x", "value": 1, "append": [1]}]}))),
        (DATA, Updated(json!({"data": [{"path": "/ok", "value": 1}, {"path": "/n/x", "value": 1}]}))),
        (
            DATA,
            Updated(
                json!({"data": [{"path": "/", "value": null}, {"path": "/list", "value": 1}, {"path": "/list/x", "value": 1}]}),
            ),
        ),
        (Refused("stale"), Updated(json!({"data": [{"path": "/ok", "value": 1}], "expect_rev": 99}))),
        (LIMIT, Updated(json!({"title": long(201)}))),
        (Refused("empty"), Updated(json!({}))),
        (Harmless, set("/", json!(null))),
        (Harmless, set("/", json!([]))),
        (Harmless, set("/", json!("text"))),
        (Harmless, set("/\u{0}", json!("\u{0}"))),
        (Harmless, set("/list", json!([1.7e308, -1.7e308, 5e-324, i64::MIN, u64::MAX]))),
        (
            Harmless,
            Updated(json!({"data": [{"path": "/list"}, {"path": "/nowhere"}, {"path": "/list/0"}, {"path": "/"}]})),
        ),
        (Harmless, Updated(json!({"title": "\u{1b}[31mAllow?\u{202e}"}))),
    ];
    let create =
        |name: Value| json!({"version": "v0.9", "createSurface": {"surfaceId": name, "catalogId": BASIC_CATALOG}});
    for name in ["", "a b", "../x", "__proto__", "constructor", "é", "a/b", "a\n", &long(65)] {
        out.push((NAME, Sent(vec![create(json!(name))])));
    }
    out.extend([
        (MESSAGE, Sent(vec![create(json!(5))])),
        (MESSAGE, Sent(vec![json!(null)])),
        (MESSAGE, Sent(vec![json!([])])),
        (MESSAGE, Sent(vec![json!({})])),
        (MESSAGE, Sent(vec![json!({"version": "v0.9"})])),
        (MESSAGE, Sent(vec![json!({"version": "v9", "deleteSurface": {"surfaceId": "s"}})])),
        (MESSAGE, Sent(vec![json!({"version": "v0.9", "evil": {}, "deleteSurface": {"surfaceId": "s"}})])),
        (MESSAGE, Sent(vec![json!({"version": "v0.9", long(1 << 20): 1})])),
        (MESSAGE, Sent(vec![json!({"version": "v0.9", "callFunction": {"call": "x"}})])),
        (MESSAGE, Sent(vec![json!({"version": "v0.9", "updateComponents": {"surfaceId": "s", "components": [5]}})])),
        (MESSAGE, Sent(vec![json!({"version": "v0.9", "updateDataModel": {"surfaceId": "s", "path": "/__proto__", "value": 1}})])),
        (Refused("exists"), Sent(vec![json!({"version": "v0.9", "deleteSurface": {"surfaceId": "other"}}), create(json!("s"))])),
        (Refused("unknown_catalog"), Sent(vec![json!({"version": "v0.9", "createSurface": {"surfaceId": "t", "catalogId": "evil:catalog"}})])),
        (LIMIT, Sent((0..20).map(|n| create(json!(format!("t{n}")))).collect())),
        (MESSAGE, Sent(vec![json!({"version": "v0.9", "createSurface": {"surfaceId": "t", "catalogId": BASIC_CATALOG, "theme": {"x": nested(100, true)}}})])),
        (LIMIT, Sent(vec![json!({"version": "v0.9", "createSurface": {"surfaceId": "t", "catalogId": BASIC_CATALOG, "theme": {"x": long(100_000)}}})])),
        (COMPONENT, Page(Html { surface: "p".into(), html: "<p>".into(), text: "\n ".into(), ..Html::default() })),
        (LIMIT, Page(Html { surface: "p".into(), html: long(1 << 20), text: "x".into(), ..Html::default() })),
        (COMPONENT, Page(Html { surface: "p".into(), html: "x".into(), text: "x".into(), actions: Some(vec!["a".into(); 300]), ..Html::default() })),
        (NAME, Page(Html { surface: "..//".into(), html: "x".into(), text: "x".into(), ..Html::default() })),
        (Harmless, Page(Html { surface: "p".into(), html: "<script>top.location='//evil'</script>".into(), text: "\u{1b}c".into(), ..Html::default() })),
    ]);
    for (code, request) in [
        ("unknown_component", json!({"rev": 1, "component": "__proto__", "event": "x"})),
        ("unknown_event", json!({"rev": 1, "component": "b", "event": "approve"})),
        ("unknown_event", json!({"rev": 1, "component": "root", "event": "go"})),
        ("unknown_component", json!({"rev": 1, "component": "b", "event": "go", "instance": "/".repeat(3_000)})),
        ("unknown_component", json!({"rev": 1, "component": "b", "event": "go", "instance": "/list/0"})),
        ("stale", json!({"rev": u64::MAX, "component": "b", "event": "go"})),
        ("stale", json!({"rev": 0, "component": "b", "event": "go"})),
        ("invalid_item", json!({"rev": 1, "component": "b", "event": "go", "item": {"x": 1}})),
        ("invalid_input", json!({"rev": 1, "component": "b", "event": "go", "inputs": {"/n": 1}})),
        ("invalid_input", json!({"rev": 1, "component": "b", "event": "go", "inputs": {"/__proto__": 1}})),
        ("invalid_input", json!({"rev": 1, "component": "b", "event": "go", "inputs": {"/v": nested(60, true)}})),
        ("invalid_input", json!({"rev": 1, "component": "b", "event": "go", "inputs": {"/v": "a", "/v/": "b"}})),
        ("limit", json!({"rev": 1, "component": "b", "event": "go", "inputs": {"/v": long(100_000)}})),
        (
            "limit",
            json!({"rev": 1, "component": "b", "event": "go", "inputs": (0..2_000).map(|n| (format!("/{n}"), json!(1))).collect::<Map<String, Value>>()}),
        ),
    ] {
        out.push((Refused(code), Pressed(request)));
    }
    out
}

/// Makes a set with a surface to attack.
fn victim() -> SurfaceSet {
    let components = json!([
        {"id": "root", "component": "Column", "children": ["v", "b"]},
        {"id": "v", "component": "TextField", "label": "V", "value": {"path": "/v"}},
        {"id": "b", "component": "Button", "child": "t", "action": {"event": {"name": "go"}}},
        {"id": "t", "component": "Text", "text": "Go"}
    ]);
    super::surface(components, json!({"n": 1, "list": [1, 2], "v": ""}))
}

fn attack(set: &mut SurfaceSet, attack: Attack) -> Result<Vec<Change>, (&'static str, String)> {
    let refused = |error: crate::SurfaceError| (error.code(), error.to_string());
    match attack {
        Shown(mut components, data) => {
            // What is not shown is refused for that, unless it is the attack.
            let first =
                if components.iter().any(|one| one["id"] == "c") { json!("c") } else { components[0]["id"].clone() };
            components.insert(0, column("root", json!([first])));
            if components.iter().any(|one| one["child"] == "t") {
                components.push(json!({"id": "t", "component": "Text", "text": "t"}));
            }
            let components = components.into_iter().filter_map(|one| one.as_object().cloned()).collect();
            let show = Show { surface: "h".into(), components, data: data.as_object().cloned(), ..Show::default() };
            set.show(show, at(1)).map(|change| vec![change]).map_err(refused)
        }
        Updated(mut update) => {
            update["surface"] = json!("s");
            let update: Update = serde_json::from_value(update).unwrap();
            set.update(update, at(1)).map(|change| vec![change]).map_err(refused)
        }
        Sent(messages) => set.messages(messages, at(1)).map_err(refused),
        Page(html) => set.html(html, at(1)).map(|change| vec![change]).map_err(refused),
        Pressed(request) => {
            let request: SurfaceAction = serde_json::from_value(request).unwrap();
            let action = set.act("s", &request, at(1)).map_err(|error| (error.code(), error.to_string()))?;
            Ok(action.change.into_iter().collect())
        }
    }
}

/// Asserts that the drawing of a surface is bounded and plain.
fn draws(set: &SurfaceSet) {
    for surface in set.iter() {
        let text = surface.text(80);
        assert!(text.len() <= TEXT_MAX && !text.contains("javascript:"));
        assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        let wire = serde_json::to_string(surface).unwrap();
        assert!(wire.len() < 2 * DATA_MAX);
        let resolved = surface.components().filter_map(|one| surface.resolve(one.get("id")?.as_str()?, ""));
        assert!(resolved.map(|one| one.children.len()).sum::<usize>() < 1_000_000);
    }
}

#[test]
fn surface_attacks_are_refused_or_harmless() {
    let attacks: Vec<(End, Attack)> = [trees(), values(), components(), data()].into_iter().flatten().collect();
    assert!(attacks.len() >= 200, "{} attacks", attacks.len());
    let mut wrong = Vec::new();
    for (number, (end, one)) in attacks.into_iter().enumerate() {
        let mut set = victim();
        let before = bytes(&set);
        let start = Instant::now();
        match (attack(&mut set, one), end) {
            (Err((code, message)), Refused(wanted)) if code == wanted => {
                assert!(message.len() < 4_000 && !message.chars().any(char::is_control), "{number}: {message:?}");
                assert_eq!(bytes(&set), before, "{number}: {message}");
            }
            (Ok(changes), Harmless) => {
                let mut follower = victim();
                for change in &changes {
                    assert_eq!(follower.apply(change), Fold::Applied, "{number}");
                }
                draws(&set);
                assert_eq!(bytes(&follower), bytes(&set), "{number}");
            }
            (Ok(_), Refused(code)) => wrong.push(format!("{number}: taken, and not {code}")),
            (Err((code, message)), Refused(wanted)) => {
                wrong.push(format!("{number}: {code}, and not {wanted}: {message}"))
            }
            (Err((code, message)), Harmless) => wrong.push(format!("{number}: {code}: {message}")),
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{number}: {:?}", start.elapsed());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn surface_of_many_costly_components_is_drawn_in_time() {
    // Each of 250 tables sorts the same rows, each of 250 charts copies the same values.
    for kind in ["Table", "Chart", "Terminal", "Text"] {
        let ids: Vec<String> = (0..250).map(|n| format!("c{n}")).collect();
        let mut all = vec![column("root", json!(ids))];
        all.extend(ids.iter().map(|id| match kind {
            "Table" => json!({"id": id, "component": kind, "columns": [{"key": "k", "label": "l"}], "rows": {"path": "/l"}, "sort": {"key": "k"}}),
            "Chart" => json!({"id": id, "component": kind, "kind": "line", "series": [{"label": "", "values": {"path": "/n"}}]}),
            "Terminal" => json!({"id": id, "component": kind, "text": {"path": "/t"}}),
            _ => json!({"id": id, "component": kind, "text": {"path": "/"}}),
        }));
        let rows: Vec<Value> = (0..9_000).map(|n| json!({ "k": n * 7_919 % 9_000 })).collect();
        let set = super::surface(json!(all), json!({"l": rows, "n": vec![1; 9_000], "t": "\u{1b}[m".repeat(100_000)}));
        let start = Instant::now();
        draws(&set);
        assert!(start.elapsed() < Duration::from_secs(10), "{kind}: {:?}", start.elapsed());
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "root",
        "c",
        "Text",
        "Column",
        "Table",
        "Chart",
        "Button",
        "List",
        "TextField",
        "/a",
        "/",
        "a",
        "formatString",
        "required",
        "${/a}",
        "${",
        "__proto__",
        "go",
        "line",
        "openUrl",
    ]);
    let keys = prop::sample::select(vec![
        "id",
        "component",
        "children",
        "child",
        "text",
        "path",
        "call",
        "args",
        "value",
        "componentId",
        "rows",
        "columns",
        "key",
        "label",
        "action",
        "event",
        "name",
        "context",
        "checks",
        "condition",
        "message",
        "series",
        "kind",
        "values",
        "a",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|on| json!(on)),
        any::<f64>().prop_map(|n| json!(n)),
        any::<i8>().prop_map(|n| json!(n)),
        words.prop_map(|word| json!(word)),
        any::<String>().prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|items| json!(items)),
            prop::collection::vec((keys.clone(), inner), 0..8).prop_map(|members| {
                Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn surface_of_anything_does_not_panic(parts in prop::collection::vec(anything(), 1..6), data in anything()) {
        let mut set = victim();
        let components: Vec<Map<String, Value>> = parts.iter().filter_map(|one| one.as_object().cloned()).collect();
        let _ = set.show(Show { surface: "h".into(), components: components.clone(), data: data.as_object().cloned(), ..Show::default() }, at(1));
        let _ = set.update(Update { surface: "s".into(), components: components.clone(), ..Update::default() }, at(1));
        let _ = set.messages(parts.clone(), at(1));
        let _ = set.messages(vec![json!({"version": "v0.9", "updateDataModel": {"surfaceId": "s", "value": data}})], at(1));
        if let Ok(request) = serde_json::from_value::<SurfaceAction>(parts[0].clone()) {
            let _ = set.act("s", &request, at(1));
        }
        // What is read back is not checked, and drawn all the same.
        let wire = json!({"surface": "w", "rev": 1, "pinned": false, "at": at(0), "messages": [
            {"version": "v0.9", "createSurface": {"surfaceId": "w", "catalogId": "plexus:catalog/1"}},
            {"version": "v0.9", "updateComponents": {"surfaceId": "w", "components": components}},
            {"version": "v0.9", "updateDataModel": {"surfaceId": "w", "path": "/", "value": data}}]});
        let change: Result<Change, _> = serde_json::from_value(wire);
        if let Ok(change) = change {
            set.apply(&change);
        }
        draws(&set);
    }
}
