//! Tests of one surface: its layout, its keys, and how each component looks in a terminal.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use plexus_surfaces::{PLEXUS_SCHEMA, Surface};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::input::Key;
use super::super::sanitize;
use super::super::theme::{Depth, Theme};
use super::part::line_width;
use super::state::PRESS_DELAY;
use super::{LayoutContext, SurfaceState, SurfaceStep, layout};

pub(crate) fn surface(rev: u64, components: &Value, data: &Value) -> Surface {
    Surface::from_wire(json!({ "surface": "s", "rev": rev, "title": "Title", "pinned": false, "messages": [
        { "version": "v0.9", "createSurface": { "surfaceId": "s", "catalogId": "plexus:catalog/1" } },
        { "version": "v0.9", "updateComponents": { "surfaceId": "s", "components": components } },
        { "version": "v0.9", "updateDataModel": { "surfaceId": "s", "path": "/", "value": data } }] }))
    .unwrap()
}

fn key(name: &str) -> Key {
    let code = match name {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "S-Tab" => KeyCode::BackTab,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "PageDown" => KeyCode::PageDown,
        "PageUp" => KeyCode::PageUp,
        "Backspace" => KeyCode::Backspace,
        other => KeyCode::Char(other.chars().next().unwrap()),
    };
    Key::from_event(KeyEvent::new(code, KeyModifiers::NONE)).unwrap()
}

/// A surface on a screen without colours.
struct Bench {
    surface: Surface,
    state: SurfaceState,
    theme: Theme,
    size: (usize, usize),
    now: i64,
}

impl Bench {
    fn new(components: &Value, data: &Value) -> Self {
        let mut state = SurfaceState::default();
        state.enter(0, false);
        let theme = Theme::new(Depth::None, false);
        let mut bench = Self { surface: surface(1, components, data), state, theme, size: (60, 20), now: 0 };
        bench.prepare();
        bench.now = PRESS_DELAY;
        bench
    }

    fn prepare(&mut self) {
        let cx = LayoutContext { theme: &self.theme, width: self.size.0, height: self.size.1, inline: false };
        self.state.prepare(&self.surface, &cx, self.now);
    }

    fn key(&mut self, name: &str) -> SurfaceStep {
        let cx = LayoutContext { theme: &self.theme, width: self.size.0, height: self.size.1, inline: false };
        let step = self.state.key(&key(name), &self.surface, &cx, self.now);
        self.prepare();
        step
    }

    fn keys(&mut self, names: &[&str]) {
        for name in names {
            assert_eq!(self.key(name), SurfaceStep::Handled, "{name}");
        }
    }

    fn write(&mut self, text: &str) {
        text.chars().for_each(|c| assert_eq!(self.key(&c.to_string()), SurfaceStep::Handled));
    }

    fn lines(&self) -> Vec<String> {
        let cx = LayoutContext { theme: &self.theme, width: self.size.0, height: self.size.1, inline: false };
        let lines = layout(self.state.visible(&self.surface), &self.state, &cx).lines;
        lines.iter().map(text).collect()
    }

    fn screen(&self) -> String {
        self.lines().join("\n")
    }
}

fn text(line: &ratatui::text::Line<'_>) -> String {
    line.spans.iter().map(|span| span.content.as_ref()).collect::<String>().trim_end().to_owned()
}

fn form() -> (Value, Value) {
    let components = json!([
        { "id": "root", "component": "Column", "children": ["name", "notes", "pass", "size", "agree", "colours", "count", "when", "go"] },
        { "id": "name", "component": "TextField", "label": "Name", "value": { "path": "/name" },
          "checks": [{ "condition": { "call": "required", "args": { "value": { "path": "/name" } } }, "message": "A name is needed" }] },
        { "id": "notes", "component": "TextField", "label": "Notes", "variant": "longText", "value": { "path": "/notes" } },
        { "id": "pass", "component": "TextField", "label": "Password", "variant": "obscured", "value": { "path": "/pass" } },
        { "id": "size", "component": "ChoicePicker", "label": "Size", "value": { "path": "/size" }, "variant": "mutuallyExclusive",
          "options": [{ "label": "Small", "value": "s" }, { "label": "Large", "value": "l" }] },
        { "id": "agree", "component": "CheckBox", "label": "Agree", "value": { "path": "/agree" } },
        { "id": "colours", "component": "ChoicePicker", "label": "Colours", "value": { "path": "/colours" }, "variant": "multipleSelection",
          "options": [{ "label": "Red", "value": "r" }, { "label": "Blue", "value": "b" }] },
        { "id": "count", "component": "Slider", "label": "Count", "min": 0, "max": 10, "value": { "path": "/count" } },
        { "id": "when", "component": "DateTimeInput", "label": "When", "enableDate": true, "value": { "path": "/when" } },
        { "id": "go", "component": "Button", "child": "go_text", "action": { "event": { "name": "submit" } },
          "checks": [{ "condition": { "path": "/agree" }, "message": "Agree first" }] },
        { "id": "go_text", "component": "Text", "text": { "call": "formatString", "args": { "value": "Order for ${/name}" } } },
    ]);
    (components, json!({ "size": ["s"], "agree": false, "colours": ["r"], "count": 3 }))
}

fn press(action: Value) -> SurfaceStep {
    SurfaceStep::Press(serde_json::from_value(action).unwrap())
}

#[test]
fn surface_form_is_filled_by_keys_and_sent() {
    let (components, data) = form();
    let mut bench = Bench::new(&components, &data);
    assert!(bench.screen().contains("! Agree first"), "{}", bench.screen());
    bench.keys(&["Tab"]);
    bench.write("Ada q]");
    assert!(bench.screen().contains("Order for Ada q]"), "what depends on an input follows it: {}", bench.screen());
    bench.keys(&["Backspace", "Backspace", "Backspace", "Enter"]);
    bench.write("one");
    bench.keys(&["Enter"]);
    bench.write("two");
    bench.keys(&["Tab"]);
    bench.write("secret");
    assert!(!bench.screen().contains("secret") && bench.screen().contains("••••••"), "{}", bench.screen());
    bench.keys(&["Esc", "Tab", "Down", " ", "Tab", "Enter", "Tab", "Down", "Enter", "Tab", "Right", "Right", "Tab"]);
    bench.write("2026-01-31");
    assert!(!bench.screen().contains("Agree first"), "{}", bench.screen());
    insta::assert_snapshot!("surface_form", bench.screen());
    bench.keys(&["Tab"]);
    bench.now += PRESS_DELAY;
    let SurfaceStep::Press(action) = bench.key("Enter") else { panic!("{}", bench.screen()) };
    assert_eq!(
        json!(action),
        json!({ "rev": 1, "component": "go", "event": "submit", "inputs": {
            "/name": "Ada", "/notes": "one\ntwo", "/pass": "secret", "/size": ["l"], "/agree": true, "/colours": ["r", "b"],
            "/count": 5, "/when": "2026-01-31" } })
    );
    assert!(bench.screen().contains("sending …"));
    assert_eq!(bench.key("Enter"), SurfaceStep::Handled, "once");
    bench.state.replied(Some("not sent: no".into()));
    assert_eq!((bench.state.problem.as_str(), bench.state.inputs.len()), ("not sent: no", 8), "nothing typed is lost");
    bench.state.replied(None);
    assert!(bench.state.inputs.is_empty());
}

#[test]
fn surface_button_whose_check_does_not_hold_sends_nothing() {
    let (components, data) = form();
    let mut bench = Bench::new(&components, &data);
    bench.keys(&["S-Tab"]);
    assert!(matches!(bench.key("Enter"), SurfaceStep::Notice(_)), "{}", bench.screen());
}

#[test]
fn surface_press_waits_when_the_button_came_to_mean_something_else() {
    let components = |label: &str| {
        json!([
            { "id": "root", "component": "Button", "child": "t", "action": { "event": { "name": "go" } } },
            { "id": "t", "component": "Text", "text": label },
        ])
    };
    let mut bench = Bench::new(&components("Look"), &json!({}));
    bench.keys(&["Tab"]);
    bench.surface = surface(2, &components("Delete"), &json!({}));
    bench.prepare();
    bench.now += PRESS_DELAY - 1;
    assert_eq!(bench.key("Enter"), SurfaceStep::Handled, "it said Look just now");
    bench.now += PRESS_DELAY;
    assert!(matches!(bench.key("Enter"), SurfaceStep::Press(_)));
}

#[test]
fn surface_inputs_that_are_gone_are_not_sent() {
    let (components, data) = form();
    let mut bench = Bench::new(&components, &data);
    bench.keys(&["Tab"]);
    bench.write("Ada");
    let components = json!([{ "id": "root", "component": "Button", "child": "root_text", "action": { "event": { "name": "go" } } },
        { "id": "root_text", "component": "Text", "text": "Go" }]);
    bench.surface = surface(2, &components, &data);
    bench.prepare();
    bench.keys(&["Tab"]);
    bench.now += PRESS_DELAY;
    assert_eq!(bench.key("Enter"), press(json!({ "rev": 2, "component": "root", "event": "go" })));
}

#[test]
fn surface_table_of_ten_thousand_rows_scrolls_sorts_and_selects() {
    let components = json!([{ "id": "root", "component": "Table", "label": "Files", "rows": { "path": "/rows" },
        "columns": [{ "key": "n", "label": "Name" }, { "key": "s", "label": "Size", "format": "number" }],
        "onSelect": { "event": { "name": "open" } } }]);
    let rows: Vec<Value> = (0..10_000).map(|n| json!({ "n": format!("file{n}"), "s": (n * 7919) % 10_007 })).collect();
    let mut bench = Bench::new(&components, &json!({ "rows": rows }));
    assert!(bench.lines().len() <= bench.size.1, "only what fits is laid out: {}", bench.lines().len());
    bench.keys(&["Tab", "End"]);
    let screen = bench.screen();
    assert!(screen.contains("▸ file9999") && screen.contains("rows 9987–10000 of 10000"), "{screen}");
    bench.now += PRESS_DELAY;
    let SurfaceStep::Press(action) = bench.key("Enter") else { panic!("{}", bench.screen()) };
    assert_eq!((action.item, &*action.event), (Some(json!(9_999)), "open"));
    bench.state.replied(None);
    // By size, the greatest first: the item is still the place in the agent's list.
    bench.keys(&["Right", "o", "o"]);
    assert!(bench.lines()[1].contains("Size ▼"), "{}", bench.screen());
    let max = (0..10_000).max_by_key(|n| (n * 7919) % 10_007).unwrap();
    assert!(bench.screen().contains(&format!("▸ file{max} ")), "{}", bench.screen());
    let SurfaceStep::Press(action) = bench.key("Enter") else { panic!("{}", bench.screen()) };
    assert_eq!(action.item, Some(json!(max)));
    bench.keys(&["o", "PageDown"]);
    assert!(bench.screen().contains("▸ file18 "), "the agent's own order: {}", bench.screen());
}

#[test]
fn surface_tabs_modals_trees_and_addresses_have_keys() {
    let components = json!([
        { "id": "root", "component": "Tabs", "tabs": [{ "title": "Files", "child": "tree" }, { "title": "More", "child": "more" }] },
        { "id": "tree", "component": "FileTree", "entries": [{ "path": "src/a.rs", "status": "added" }, { "path": "src/b/c.rs" }, { "path": "README.md" }],
          "onSelect": { "event": { "name": "open" } } },
        { "id": "more", "component": "Column", "children": ["modal", "docs"] },
        { "id": "modal", "component": "Modal", "trigger": "button", "content": "inside" },
        { "id": "button", "component": "Button", "child": "t", "action": { "event": { "name": "never" } } },
        { "id": "t", "component": "Text", "text": "Details" },
        { "id": "inside", "component": "Text", "text": "what is inside" },
        { "id": "docs", "component": "Button", "child": "d", "action": { "functionCall": { "call": "openUrl", "args": { "url": "https://a.example/x" } } } },
        { "id": "d", "component": "Text", "text": "Docs" },
    ]);
    let mut bench = Bench::new(&components, &json!({}));
    assert!(bench.screen().contains("[Files]  More") && bench.screen().contains("a.rs (added)"), "{}", bench.screen());
    bench.keys(&["Tab", "Tab", "Left"]);
    assert!(bench.screen().contains("▸ src/") && !bench.screen().contains("a.rs"), "folded: {}", bench.screen());
    bench.keys(&["Right", "Down", "Down", "Down"]);
    assert_eq!(
        bench.key("Enter"),
        press(json!({ "rev": 1, "component": "tree", "event": "open", "item": "src/a.rs" }))
    );
    bench.state.replied(None);
    bench.keys(&["S-Tab", "Right", "Tab"]);
    assert!(!bench.screen().contains("what is inside"), "{}", bench.screen());
    bench.keys(&["Enter"]);
    assert!(bench.screen().contains("│ what is inside"), "{}", bench.screen());
    bench.keys(&["Tab"]);
    assert_eq!(bench.key("Enter"), SurfaceStep::Copy("https://a.example/x".into()));
    assert_eq!(
        [bench.key("]"), bench.key("["), bench.key("Esc"), bench.key("5")],
        [SurfaceStep::Next, SurfaceStep::Previous, SurfaceStep::Close, SurfaceStep::Nothing]
    );
}

#[test]
fn surface_inputs_in_a_list_are_bound_to_their_item() {
    let components = json!([
        { "id": "root", "component": "List", "children": { "componentId": "row", "path": "/todo" } },
        { "id": "row", "component": "Row", "children": ["done", "go"] },
        { "id": "done", "component": "CheckBox", "label": { "path": "what" }, "value": { "path": "done" } },
        { "id": "go", "component": "Button", "child": "t", "action": { "event": { "name": "do" } } },
        { "id": "t", "component": "Text", "text": "Do" },
    ]);
    let data = json!({ "todo": [{ "what": "sleep", "done": false }, { "what": "eat", "done": false }] });
    let mut bench = Bench::new(&components, &data);
    bench.keys(&["Tab", "Tab", "Tab", " ", "Tab"]);
    assert!(bench.screen().contains("[x] eat"), "{}", bench.screen());
    bench.now += PRESS_DELAY;
    let want = json!({ "rev": 1, "component": "go", "event": "do", "instance": "/todo/1", "inputs": { "/todo/1/done": true } });
    assert_eq!(bench.key("Enter"), press(want));
}

#[test]
fn surface_focus_is_seen_without_colours() {
    let (components, data) = form();
    let mut bench = Bench::new(&components, &data);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..9 {
        bench.keys(&["Tab"]);
        let screen = bench.screen();
        assert_eq!(screen.lines().filter(|line| line.trim_start().starts_with('▸')).count().min(1), 1, "{screen}");
        assert!(seen.insert(screen), "each control looks different with the focus");
    }
}

// === how each component looks ===

/// One example of each component.
fn gallery() -> Vec<(&'static str, Value, Value)> {
    let text = |id: &str, text: &str| json!({ "id": id, "component": "Text", "text": text });
    vec![
        ("Text", json!([{ "id": "root", "component": "Text", "text": "Nightly build", "variant": "h1" }]), json!({})),
        (
            "Image",
            json!([{ "id": "root", "component": "Image", "url": "https://a.example/cat.png", "description": "A cat" }]),
            json!({}),
        ),
        ("Icon", json!([{ "id": "root", "component": "Icon", "name": "check" }]), json!({})),
        ("Video", json!([{ "id": "root", "component": "Video", "url": "https://a.example/a.mp4" }]), json!({})),
        (
            "AudioPlayer",
            json!([{ "id": "root", "component": "AudioPlayer", "url": "https://a.example/a.ogg", "description": "The bell" }]),
            json!({}),
        ),
        (
            "Row",
            json!([{ "id": "root", "component": "Row", "children": ["a", "b"] }, text("a", "left"), text("b", "right")]),
            json!({}),
        ),
        (
            "Column",
            json!([{ "id": "root", "component": "Column", "children": ["a", "b"] }, text("a", "above"), text("b", "below")]),
            json!({}),
        ),
        (
            "List",
            json!([{ "id": "root", "component": "List", "children": { "componentId": "a", "path": "/l" } }, { "id": "a", "component": "Text", "text": { "path": "." } }]),
            json!({ "l": ["one", "two"] }),
        ),
        ("Card", json!([{ "id": "root", "component": "Card", "child": "a" }, text("a", "in a card")]), json!({})),
        (
            "Tabs",
            json!([{ "id": "root", "component": "Tabs", "tabs": [{ "title": "Now", "child": "a" }, { "title": "Then", "child": "a" }] }, text("a", "of this tab")]),
            json!({}),
        ),
        (
            "Modal",
            json!([{ "id": "root", "component": "Modal", "trigger": "a", "content": "b" }, text("a", "Details"), text("b", "..")]),
            json!({}),
        ),
        ("Divider", json!([{ "id": "root", "component": "Divider" }]), json!({})),
        (
            "Button",
            json!([{ "id": "root", "component": "Button", "child": "a", "action": { "event": { "name": "go" } } }, text("a", "Deploy")]),
            json!({}),
        ),
        (
            "TextField",
            json!([{ "id": "root", "component": "TextField", "label": "Name", "value": { "path": "/n" } }]),
            json!({ "n": "Ada" }),
        ),
        (
            "CheckBox",
            json!([{ "id": "root", "component": "CheckBox", "label": "With tests", "value": { "path": "/n" } }]),
            json!({ "n": true }),
        ),
        (
            "ChoicePicker",
            json!([{ "id": "root", "component": "ChoicePicker", "label": "Where", "options": [{ "label": "Staging", "value": "s" }, { "label": "Production", "value": "p" }], "value": { "path": "/n" } }]),
            json!({ "n": ["s"] }),
        ),
        (
            "Slider",
            json!([{ "id": "root", "component": "Slider", "label": "Workers", "min": 0, "max": 8, "value": { "path": "/n" } }]),
            json!({ "n": 2 }),
        ),
        (
            "DateTimeInput",
            json!([{ "id": "root", "component": "DateTimeInput", "label": "When", "enableDate": true, "value": { "path": "/n" } }]),
            json!({}),
        ),
        (
            "Table",
            json!([{ "id": "root", "component": "Table", "rows": { "path": "/r" }, "sort": { "key": "s", "descending": true },
                "columns": [{ "key": "n", "label": "Crate" }, { "key": "s", "label": "Size", "format": "bytes" }, { "key": "p", "label": "Share", "format": "percent" }] }]),
            json!({ "r": [{ "n": "store", "s": 81_920, "p": 0.2 }, { "n": "dialects", "s": 327_680, "p": 0.8 }] }),
        ),
        (
            "Diff",
            json!([{ "id": "root", "component": "Diff", "path": "src/lib.rs", "old": "let a = 1;\nlet b = 2;\n", "new": "let a = 1;\nlet b = 3;\n" }]),
            json!({}),
        ),
        (
            "Code",
            json!([{ "id": "root", "component": "Code", "language": "rust", "startLine": 9, "code": "fn main() {\n    run();\n}" }]),
            json!({}),
        ),
        (
            "FileTree",
            json!([{ "id": "root", "component": "FileTree", "entries": [{ "path": "src/lib.rs", "status": "modified" }, { "path": "README.md", "note": "new words" }] }]),
            json!({}),
        ),
        (
            "Markdown",
            json!([{ "id": "root", "component": "Markdown", "text": "## Result\n\n- it **works**" }]),
            json!({}),
        ),
        (
            "Chart",
            json!([{ "id": "root", "component": "Column", "children": ["bar", "line"] },
                { "id": "bar", "component": "Chart", "kind": "bar", "title": "Tests", "labels": ["unit", "story"], "series": [{ "label": "", "values": [412, 96] }] },
                { "id": "line", "component": "Chart", "kind": "line", "unit": "ms", "series": [{ "label": "p50", "values": [1, 4, 9, 16, 25, 36, 49, 64, 81, 100] }] }]),
            json!({}),
        ),
        (
            "Progress",
            json!([{ "id": "root", "component": "Progress", "label": "Build", "value": 0.4, "state": "running" }]),
            json!({}),
        ),
        (
            "Terminal",
            json!([{ "id": "root", "component": "Terminal", "text": "\u{1b}[32mok\u{1b}[0m one\n\u{1b}[31mFAILED\u{1b}[0m two" }]),
            json!({}),
        ),
        (
            "Html",
            json!([{ "id": "root", "component": "Html", "html": "<p>", "text": "What the page shows." }]),
            json!({}),
        ),
    ]
}

/// The gallery as it stands in the documentation.
fn gallery_text() -> String {
    let theme = Theme::new(Depth::None, false);
    let mut out = String::new();
    for (name, components, data) in gallery() {
        let surface = surface(1, &components, &data);
        let cx = LayoutContext { theme: &theme, width: 56, height: 10, inline: false };
        let name = if name == "Html" { "a page of ui_html" } else { name };
        out.push_str(&format!("{name}\n"));
        for line in layout(&surface, &SurfaceState::default(), &cx).lines {
            out.push_str(format!("    {}", text(&line)).trim_end());
            out.push('\n');
        }
    }
    out
}

#[test]
fn surface_gallery_in_the_documentation_is_how_components_look() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/surfaces.md");
    let docs = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("<!-- gallery: written by a test of crates/tui -->\n```text\n", "```\n<!-- /gallery -->");
    let from = docs.find(begin).unwrap() + begin.len();
    let to = from + docs[from..].find(end).unwrap();
    let want = gallery_text();
    if std::env::var("PLEXUS_GOLDEN").is_ok_and(|value| value == "update") {
        std::fs::write(path, format!("{}{want}{}", &docs[..from], &docs[to..])).unwrap();
        return;
    }
    assert_eq!(&docs[from..to], want, "PLEXUS_GOLDEN=update cargo test -p plexus-tui surface_gallery writes it");
}

#[test]
fn surface_gallery_has_every_component_and_fits_any_width() {
    let schema: Value = serde_json::from_str(PLEXUS_SCHEMA).unwrap();
    let all = gallery();
    for name in schema["components"].as_object().unwrap().keys() {
        assert!(all.iter().any(|(known, ..)| known == name), "{name} has no example");
    }
    for depth in [Depth::None, Depth::True] {
        let theme = Theme::new(depth, true);
        for (name, components, data) in &all {
            for width in [30, 36, 76, 156] {
                let surface = surface(1, components, data);
                for inline in [false, true] {
                    let cx = LayoutContext { theme: &theme, width, height: 18, inline };
                    let lines = layout(&surface, &SurfaceState::default(), &cx).lines;
                    assert!(lines.iter().any(|line| !text(line).is_empty()), "{name} shows nothing");
                    for line in &lines {
                        assert!(line_width(line) <= width, "{name} at {width}: {:?}", text(line));
                    }
                }
            }
        }
    }
}

fn hostile() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "\\PC{0,10}",
        "(.|\\x1b|[\\x00-\\x1f]|\u{202e}|\u{200d}|\u{301}|[\u{80}-\u{9f}]){0,20}",
        prop::sample::select(vec![
            "/a",
            "a",
            "bar",
            "line",
            "scatter",
            "obscured",
            "longText",
            "h1",
            "multipleSelection",
            "a/b/c"
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "path", "value", "label", "key", "format", "values", "x", "status", "note", "title", "call", "args",
    ]);
    leaf.prop_recursive(3, 20, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..5)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn surface_of_anything_is_printable_whatever_is_pressed(
        kinds in prop::collection::vec(0usize..27, 6),
        props in prop::collection::vec((0usize..6, prop::sample::select(vec![
            "text", "variant", "url", "name", "label", "value", "options", "min", "max", "columns", "rows", "sort", "diff", "old", "new", "path",
            "code", "startLine", "entries", "kind", "series", "labels", "title", "unit", "state", "action", "tabs",
        ]), hostile()), 0..24),
        data in hostile(),
        pressed in prop::collection::vec(prop::sample::select(vec![
            "Tab", "S-Tab", "Enter", " ", "Up", "Down", "Left", "Right", "PageDown", "End", "Home", "o", "x", "Esc", "Backspace",
        ]), 0..20),
    ) {
        let all = gallery();
        let mut components: Vec<Value> = kinds
            .iter()
            .enumerate()
            .map(|(n, kind)| {
                let children: Vec<String> = (n + 1..6).map(|child| format!("c{child}")).collect();
                let first = children.first().cloned().unwrap_or_default();
                json!({ "component": all[*kind].0, "children": children, "child": first, "trigger": first, "content": first, "value": { "path": "/a" } })
            })
            .collect();
        for (n, name, value) in props {
            components[n][name] = value;
        }
        for (n, component) in components.iter_mut().enumerate() {
            component["id"] = if n == 0 { json!("root") } else { json!(format!("c{n}")) };
        }
        let mut bench = Bench::new(&json!(components), &json!({ "a": data }));
        for name in pressed {
            bench.key(name);
            bench.now += PRESS_DELAY;
        }
        for (depth, width) in [(Depth::None, 30), (Depth::True, 90)] {
            bench.theme = Theme::new(depth, false);
            bench.size.0 = width;
            for line in bench.lines() {
                for piece in unicode_segmentation::UnicodeSegmentation::graphemes(line.as_str(), true) {
                    prop_assert!(sanitize::printable(piece), "{piece:?} in {line:?}");
                }
            }
        }
    }
}
