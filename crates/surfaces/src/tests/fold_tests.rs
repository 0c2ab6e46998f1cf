//! Followers of the changes have the same bytes as their author.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{at, bytes, data, show, update};
use crate::size::Size;
use crate::{Ask, Change, Fold, Html, Show, SurfaceSet, Update};

#[derive(Clone, Debug)]
enum Command {
    Show(Show),
    Update(Update),
    Pin(String, bool),
    Ask(String, bool),
    Close(String),
    Page(Html),
    Messages(Vec<Value>),
}

fn run(set: &mut SurfaceSet, command: Command, n: i64) -> Vec<Change> {
    let one = |change: Result<Change, _>| change.into_iter().collect();
    match command {
        Command::Show(show) => one(set.show(show, at(n))),
        Command::Update(update) => one(set.update(update, at(n))),
        Command::Pin(name, on) => one(set.pin(&name, on, at(n))),
        Command::Ask(name, true) => {
            let ask = Ask { request_id: format!("q_{n}"), submit: vec!["ok".to_owned()] };
            one(set.set_ask(&name, ask, at(n)))
        }
        Command::Ask(name, false) => one(set.clear_ask(&name, at(n))),
        Command::Close(name) => one(set.close(&name, at(n))),
        Command::Page(html) => one(set.html(html, at(n))),
        Command::Messages(messages) => set.messages(messages, at(n)).unwrap_or_default(),
    }
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["one", "two", "three"]).prop_map(str::to_owned)
}

fn path() -> impl Strategy<Value = String> {
    let paths = vec![
        "/",
        "/a",
        "/b",
        "/a/b",
        "/a/c",
        "/a/b/c",
        "/rows",
        "/rows/0",
        "/rows/1",
        "/rows/2",
        "/rows/0/x",
        "/rows/1/x/0",
        "/a/0",
        "/c/0/d",
    ];
    prop::sample::select(paths).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!({})),
        Just(json!([])),
        any::<i64>().prop_map(|n| json!(n)),
        any::<f64>().prop_map(|n| json!(n)),
        "[a-z\"\\\\\u{1}é]{0,6}".prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            prop::collection::btree_map("[abcx0]", inner, 0..4).prop_map(|members| json!(members)),
        ]
    })
}

fn op() -> impl Strategy<Value = plexus_protocol::api::surfaces::DataChange> {
    (path(), 0..4u8, value(), prop::collection::vec(value(), 0..3)).prop_map(|(path, kind, value, items)| match kind {
        0 => data(&path, None, None),
        1 => data(&path, None, Some(items)),
        _ => data(&path, Some(value), None),
    })
}

fn components() -> impl Strategy<Value = Vec<serde_json::Map<String, Value>>> {
    let one =
        (prop::sample::select(vec!["root", "t", "u", "v"]), any::<u8>(), any::<bool>()).prop_map(|(id, n, list)| {
            let children = if list { json!(["u", "missing"]) } else { json!([]) };
            match (id, list) {
                ("root", _) => json!({"id": id, "component": "Column", "children": ["t", "u"]}),
                ("t", true) => json!({"id": id, "component": "Row", "children": children}),
                _ => json!({"id": id, "component": "Text", "text": n.to_string()}),
            }
        });
    prop::collection::vec(one, 0..4).prop_map(|all| {
        let mut seen = std::collections::HashSet::new();
        let own = |one: Value| one.as_object().cloned().unwrap();
        all.into_iter().filter(|one| seen.insert(one["id"].to_string())).map(own).collect()
    })
}

fn command() -> impl Strategy<Value = Command> {
    let message = (name(), 0..5u8, components(), op()).prop_map(|(name, kind, components, op)| match kind {
        0 => json!({"version": "v0.9", "createSurface": {"surfaceId": name, "catalogId": crate::BASIC_CATALOG}}),
        1 => json!({"version": "v0.9", "deleteSurface": {"surfaceId": name}}),
        2 => json!({"version": "v0.9.1", "updateComponents": {"surfaceId": name, "components": components}}),
        _ => {
            let mut data = json!({"surfaceId": name, "path": op.path});
            if let Some(value) = op.value {
                data["value"] = value;
            }
            if let Some(append) = op.append {
                data["append"] = json!(append);
            }
            json!({"version": "v0.9", "updateDataModel": data})
        }
    });
    prop_oneof![
        2 => (name(), components(), prop::option::of("[a-z]{0,4}"), prop::option::of(any::<bool>())).prop_map(|(surface, mut components, title, pin)| {
            components.retain(|one| one["component"] == "Text" && one["id"] != "root");
            let ids: Vec<Value> = components.iter().map(|one| one["id"].clone()).collect();
            components.push(json!({"id": "root", "component": "Column", "children": ids}).as_object().cloned().unwrap());
            let data = json!({"rows": [1, {"x": [0.1]}], "a": {}}).as_object().cloned();
            Command::Show(Show { surface, title, components, data, pin, catalog: None })
        }),
        8 => (name(), components(), prop::collection::vec(op(), 0..4), prop::option::of("[a-z]{0,4}"), prop::option::of(0..6u64)).prop_map(
            |(surface, components, data, title, expect_rev)| Command::Update(Update { surface, components, data, title, expect_rev })
        ),
        1 => (name(), any::<bool>()).prop_map(|(name, on)| Command::Pin(name, on)),
        1 => (name(), any::<bool>()).prop_map(|(name, on)| Command::Ask(name, on)),
        1 => name().prop_map(Command::Close),
        1 => name().prop_map(|surface| Command::Page(Html { surface, html: "<p>".to_owned(), text: "p".to_owned(), ..Html::default() })),
        2 => prop::collection::vec(message, 1..5).prop_map(Command::Messages),
    ]
}

/// Returns a change as it arrives after it was sent.
fn sent(change: &Change) -> Change {
    serde_json::from_str(&serde_json::to_string(change).unwrap()).unwrap()
}

/// Returns the state of a late joiner.
fn joined(set: &SurfaceSet) -> SurfaceSet {
    SurfaceSet::from_wire(serde_json::from_str(&bytes(set)).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn surface_fold_gives_the_same_bytes(commands in prop::collection::vec(command(), 1..25), join in 0..25usize) {
        let mut set = SurfaceSet::default();
        let mut follower = SurfaceSet::default();
        for (n, command) in commands.into_iter().enumerate() {
            if n == join {
                follower = joined(&set);
            }
            let before = bytes(&set);
            let changes = run(&mut set, command, n as i64);
            if changes.is_empty() {
                // Refused, and nothing of it stayed.
                prop_assert_eq!(&before, &bytes(&set));
            }
            for change in &changes {
                prop_assert_eq!(follower.apply(&sent(change)), Fold::Applied, "{:?}", change);
                prop_assert_eq!(follower.apply(change), Fold::Known);
            }
            prop_assert_eq!(bytes(&follower), bytes(&set));
            prop_assert_eq!(bytes(&joined(&set)), bytes(&set));
            for surface in set.iter() {
                prop_assert_eq!(surface.model.size(), Size::measure(surface.data()));
            }
        }
    }

    #[test]
    fn surface_merged_changes_give_the_same_bytes(commands in prop::collection::vec(command(), 1..25), cuts in prop::collection::vec(any::<bool>(), 64)) {
        let mut set = SurfaceSet::default();
        let changes: Vec<Change> =
            commands.into_iter().enumerate().flat_map(|(n, command)| run(&mut set, command, n as i64)).collect();
        let mut follower = SurfaceSet::default();
        let mut waiting: std::collections::BTreeMap<String, Change> = Default::default();
        for (at, change) in changes.iter().enumerate() {
            let name = change.surface.clone();
            match waiting.remove(&name) {
                Some(first) => match first.merge(change.clone()) {
                    Ok(merged) => drop(waiting.insert(name, merged)),
                    Err(two) => {
                        prop_assert!(false, "each change follows the one before it: {:?}", two);
                    }
                },
                None => drop(waiting.insert(name, change.clone())),
            }
            if cuts[at % cuts.len()] {
                for change in std::mem::take(&mut waiting).values() {
                    prop_assert_ne!(follower.apply(&sent(change)), Fold::Gap, "{:?}", change);
                }
            }
        }
        for change in waiting.values() {
            prop_assert_ne!(follower.apply(&sent(change)), Fold::Gap, "{:?}", change);
        }
        prop_assert_eq!(bytes(&follower), bytes(&set));
    }
}

fn text(set: &mut SurfaceSet, name: &str) -> Change {
    show(set, json!({"surface": name, "components": [{"id": "root", "component": "Text", "text": {"path": "/n"}}]}))
        .unwrap()
}

#[test]
fn surface_wire_form_is_that_of_the_contract() {
    let mut set = SurfaceSet::default();
    let shown = text(&mut set, "build");
    assert!(shown.base.is_none());
    let change =
        update(&mut set, json!({"surface": "build", "data": [{"path": "/n", "value": 1}], "title": "Build"})).unwrap();
    assert_eq!(
        serde_json::to_string(&change).unwrap(),
        r#"{"surface":"build","rev":2,"base":1,"title":"Build","at":"2025-11-21T09:30:00.000Z","messages":[{"version":"v0.9","updateDataModel":{"surfaceId":"build","path":"/n","value":1}}]}"#
    );
    assert_eq!(
        serde_json::to_string(set.get("build").unwrap()).unwrap(),
        concat!(
            r#"{"surface":"build","rev":2,"title":"Build","pinned":false,"at":"2025-11-21T09:30:00.000Z","messages":["#,
            r#"{"version":"v0.9","createSurface":{"surfaceId":"build","catalogId":"plexus:catalog/1"}},"#,
            r#"{"version":"v0.9","updateComponents":{"surfaceId":"build","components":[{"component":"Text","id":"root","text":{"path":"/n"}}]}},"#,
            r#"{"version":"v0.9","updateDataModel":{"surfaceId":"build","path":"/","value":{"n":1}}}]}"#
        )
    );
    assert_eq!(
        serde_json::to_value(set.get("build").unwrap()).unwrap(),
        serde_json::to_value(set.get("build").unwrap().to_change()).unwrap()
    );
    let closed = set.close("build", at(5)).unwrap();
    assert_eq!(
        serde_json::to_string(&closed).unwrap(),
        r#"{"surface":"build","rev":3,"base":2,"at":"2025-11-21T09:30:00.005Z","closed":true,"messages":[{"version":"v0.9","deleteSurface":{"surfaceId":"build"}}]}"#
    );
    // A surface of the same name goes on from there.
    assert_eq!(text(&mut set, "build").rev, 4);
}

#[test]
fn surface_fold_notices_a_gap() {
    let mut set = SurfaceSet::default();
    let mut follower = SurfaceSet::default();
    follower.apply(&text(&mut set, "s"));
    let lost = set.pin("s", true, at(1)).unwrap();
    let next = set.pin("s", false, at(2)).unwrap();
    assert_eq!(follower.apply(&next), Fold::Gap);
    assert_eq!(follower.get("s").unwrap().rev(), 1);
    assert_eq!((follower.apply(&lost), follower.apply(&next)), (Fold::Applied, Fold::Applied));
    assert_eq!(bytes(&follower), bytes(&set));
    // A broken change changes nothing.
    let mut broken = set.pin("s", true, at(3)).unwrap();
    let before = bytes(&follower);
    let mut wire = serde_json::to_value(&broken).unwrap();
    wire["messages"] =
        json!([{"version": "v0.9", "updateDataModel": {"surfaceId": "other", "path": "/x", "value": 1}}]);
    broken = serde_json::from_value(wire).unwrap();
    assert_eq!(follower.apply(&broken), Fold::Gap);
    assert_eq!(bytes(&follower), before);
}

#[test]
fn surface_change_of_a_large_table_costs_what_it_brings() {
    let mut set = SurfaceSet::default();
    text(&mut set, "s");
    let row = |n: usize| json!({"file": format!("src/{n}.rs"), "note": "x".repeat(300), "n": n});
    for part in 0..5 {
        let rows: Vec<Value> = (0..2_300).map(|n| row(part * 2_300 + n)).collect();
        update(&mut set, json!({"surface": "s", "data": [{"path": "/rows", "append": rows}]})).unwrap();
    }
    let small = std::time::Instant::now();
    for n in 0..50 {
        let rows: Vec<Value> = (0..100).map(|at| json!(at + n)).collect();
        let change = update(&mut set, json!({"surface": "s", "data": [{"path": "/more", "append": rows}]})).unwrap();
        assert!(serde_json::to_string(&change).unwrap().len() < 1_000);
    }
    let small = small.elapsed() / 50;
    let whole = std::time::Instant::now();
    assert!(bytes(&set).len() > 3 << 20);
    let whole = whole.elapsed();
    assert!(small * 4 < whole, "an append takes {small:?}, and all of it {whole:?}");
    // More than there may be: refused, and the rest stays as it was.
    let before = bytes(&set);
    let rows: Vec<Value> = (0..2_800).map(row).collect();
    let error = update(
        &mut set,
        json!({"surface": "s", "data": [{"path": "/n", "value": 7}, {"path": "/rows", "append": rows}]}),
    )
    .unwrap_err();
    assert_eq!(error.code(), "limit");
    assert_eq!(bytes(&set), before);
}
