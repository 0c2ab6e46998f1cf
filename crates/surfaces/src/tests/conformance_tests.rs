//! A2UI's own examples, schemas and behaviours. CONFORMANCE.md lists the differences, with reasons.

use serde_json::{Map, Value, json};

use super::at;
use crate::catalog::{BASIC, COMMON, FUNCTIONS, PLEXUS, Prop, ReturnType, Type};
use crate::eval::{Budget, Scope};
use crate::model::{DataOp, Model};
use crate::pointer::Pointer;
use crate::{BASIC_CATALOG, PLEXUS_SCHEMA, SurfaceSet};

/// The example surfaces of a folder.
macro_rules! examples {
    ($($file:literal),* $(,)?) => {
        [$(($file, include_str!(concat!("../../vendor/a2ui/", $file, ".json")))),*]
    };
}

#[rustfmt::skip] // a table
const BASIC_EXAMPLES: [(&str, &str); 43] = examples![
    "basic/00_complex-layout", "basic/00_formatted-text", "basic/00_incremental", "basic/00_interactive-button", "basic/00_row-layout",
    "basic/00_simple-login-form", "basic/00_simple-text", "basic/01_flight-status", "basic/02_email-compose", "basic/03_calendar-day",
    "basic/04_weather-current", "basic/05_product-card", "basic/06_music-player", "basic/07_task-card", "basic/08_user-profile",
    "basic/09_login-form", "basic/10_notification-permission", "basic/11_purchase-complete", "basic/12_chat-message",
    "basic/13_coffee-order", "basic/14_sports-player", "basic/15_account-balance", "basic/16_workout-summary", "basic/17_event-detail",
    "basic/18_track-list", "basic/19_software-purchase", "basic/20_restaurant-card", "basic/21_shipping-status", "basic/22_credit-card",
    "basic/23_step-counter", "basic/24_recipe-card", "basic/25_contact-card", "basic/26_podcast-episode", "basic/27_stats-card",
    "basic/28_countdown-timer", "basic/29_movie-card", "basic/30_live-invitation-builder", "basic/31_incremental-dashboard",
    "basic/32_advanced-form-validator", "basic/33_financial-data-grid", "basic/34_child-list-template", "basic/35_markdown-text",
    "basic/36_modal",
];
const MINIMAL_EXAMPLES: [(&str, &str); 7] = examples![
    "minimal/1_simple_text",
    "minimal/2_row_layout",
    "minimal/3_interactive_button",
    "minimal/4_login_form",
    "minimal/5_complex_layout",
    "minimal/6_capitalized_text",
    "minimal/7_incremental",
];

fn messages_of(text: &str) -> Vec<Value> {
    let example: Value = serde_json::from_str(text).unwrap();
    example["messages"].as_array().unwrap().clone()
}

/// Loads an example in one call and message by message, and returns its text.
fn load(file: &str, messages: Vec<Value>) -> String {
    let mut set = SurfaceSet::default();
    set.messages(messages.clone(), at(0)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut follower = SurfaceSet::default();
    let mut steps = SurfaceSet::default();
    for message in messages {
        for change in steps.messages(vec![message], at(0)).unwrap() {
            follower.apply(&change);
        }
    }
    let surface = set.iter().next().unwrap();
    let text = surface.text(80);
    assert!(!text.is_empty(), "{file}");
    assert_eq!(text, steps.iter().next().unwrap().text(80), "{file}");
    assert_eq!(serde_json::to_string(&follower).unwrap(), serde_json::to_string(&steps).unwrap(), "{file}");
    // Every component that is shown resolves.
    let mut todo = vec![("root".to_owned(), String::new())];
    while let Some((id, instance)) = todo.pop() {
        let resolved = surface.resolve(&id, &instance).unwrap_or_else(|| panic!("{file}: {id} at {instance:?}"));
        todo.extend(resolved.children.into_iter().map(|slot| (slot.id, slot.instance)));
    }
    text
}

#[test]
fn surface_examples_of_the_basic_catalog_load() {
    for (file, text) in BASIC_EXAMPLES {
        load(file, messages_of(text));
    }
    let text = |name: &str| load(name, messages_of(BASIC_EXAMPLES.iter().find(|(file, _)| *file == name).unwrap().1));
    assert_eq!(
        text("basic/34_child-list-template"),
        "### Dynamic Item List\n• Apple   - Qty:  10\n• Banana   - Qty:  5\n• Cherry   - Qty:  20"
    );
    assert!(text("basic/33_financial-data-grid").contains("$43,500.25"), "{}", text("basic/33_financial-data-grid"));
    assert!(text("basic/32_advanced-form-validator").contains("Hello! Today is Monday, December 15."));
    assert!(text("basic/30_live-invitation-builder").contains("Tuesday, July 15, 2025 at 7:00 PM"));
    assert!(
        text("basic/00_incremental")
            .ends_with("Spice Route\nExotic Flavors from the East\n101 Silk Road St\n[ Book now ]")
    );
}

#[test]
fn surface_examples_of_the_minimal_catalog_load_but_one() {
    for (file, text) in MINIMAL_EXAMPLES {
        // The minimal catalogue is a part of the basic one, but for its function `capitalize`.
        let text = text.replace("catalogs/minimal/", "catalogs/basic/");
        if file == "minimal/6_capitalized_text" {
            let error = SurfaceSet::default().messages(messages_of(&text), at(0)).unwrap_err();
            assert!(error.to_string().contains("\"capitalize\" is no function of the catalog"), "{error}");
            continue;
        }
        load(file, messages_of(&text));
    }
}

/// Returns the properties of a component in a schema, and the required ones.
fn described(schema: &Value) -> (Map<String, Value>, Vec<String>) {
    let parts = schema["allOf"].as_array().unwrap();
    let mut props = Map::new();
    let mut needed = Vec::new();
    for part in parts {
        props.extend(part["properties"].as_object().cloned().unwrap_or_default());
        needed.extend(part["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()));
        if part["$ref"].as_str().is_some_and(|name| name.ends_with("Checkable")) {
            props.insert("checks".to_owned(), json!({"checks": true}));
        }
    }
    (props, needed)
}

/// Checks that a schema agrees with a type of the table.
fn agrees(ty: Type, schema: &Value, at: &str) {
    let refers = |name: &str| {
        let direct = schema["$ref"].as_str().is_some_and(|path| path.ends_with(&format!("/{name}")));
        direct || schema["allOf"][0]["$ref"].as_str().is_some_and(|path| path.ends_with(&format!("/{name}")))
    };
    let types = |name: &str| schema["type"] == name;
    let ok = match ty {
        Type::Text => types("string") && schema.get("enum").is_none(),
        Type::Pattern | Type::Url => types("string"),
        Type::Number => types("number"),
        Type::NumberOrGap => schema["type"] == json!(["number", "null"]),
        Type::Count => types("integer") && schema["minimum"] == 0,
        Type::Flag => types("boolean"),
        Type::OneOf(names) => {
            let mut named: Vec<&str> =
                schema["enum"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
            let mut names = names.to_vec();
            named.sort_unstable();
            names.sort_unstable();
            named == names
        }
        Type::DynText => refers("DynamicString"),
        Type::DynNumber => refers("DynamicNumber"),
        Type::DynFlag => refers("DynamicBoolean"),
        Type::DynTexts => refers("DynamicStringList"),
        Type::DynAny => refers("DynamicValue"),
        Type::Any => schema.as_object().unwrap().keys().all(|key| key == "description"),
        Type::Record => types("object") && schema.get("properties").is_none(),
        Type::Bound => refers("DataBinding"),
        Type::Child => refers("ComponentId"),
        Type::Children => refers("ChildList"),
        Type::Action => refers("Action"),
        Type::List(of, min, max) => {
            agrees(*of, &schema["items"], &format!("{at}/items"));
            // Limits of ours are not in A2UI's own schema.
            let limit = schema.get("maxItems").is_none_or(|limit| limit == max);
            types("array") && schema["minItems"].as_u64().unwrap_or(0) == min as u64 && limit
        }
        Type::Object(props) => {
            let needed =
                schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned());
            members_agree(&[props], schema["properties"].as_object().unwrap(), &needed.collect::<Vec<_>>(), at);
            true
        }
        Type::Either(types) => {
            let schemas = schema["oneOf"].as_array().unwrap();
            let mut types = types.to_vec();
            types.sort_by_key(|ty| matches!(ty, Type::Bound));
            let mut schemas = schemas.clone();
            schemas.sort_by_key(|schema| schema.get("$ref").is_some());
            assert_eq!(types.len(), schemas.len(), "{at}");
            types.iter().zip(&schemas).for_each(|(ty, schema)| agrees(*ty, schema, at));
            true
        }
    };
    assert!(ok, "{at}: {ty:?} and {schema}");
}

fn members_agree(props: &[&[Prop]], schemas: &Map<String, Value>, needed: &[String], at: &str) {
    for prop in props.iter().flat_map(|props| props.iter()) {
        let at = format!("{at}/{}", prop.name);
        let schema = schemas.get(prop.name).unwrap_or_else(|| panic!("{at}: only the table has it"));
        assert_eq!(needed.iter().any(|name| name == prop.name), prop.needed, "{at}: needed");
        if prop.name != "checks" {
            agrees(prop.ty, schema, &at);
        }
    }
    for name in schemas.keys() {
        assert!(
            props.iter().any(|props| props.iter().any(|prop| prop.name == name)),
            "{at}/{name}: only the schema has it"
        );
    }
}

#[test]
fn surface_catalog_agrees_with_both_schemas() {
    let basic: Value = serde_json::from_str(include_str!("../../vendor/a2ui/catalog.json")).unwrap();
    let common: Value = serde_json::from_str(include_str!("../../vendor/a2ui/common_types.json")).unwrap();
    let plexus: Value = serde_json::from_str(PLEXUS_SCHEMA).unwrap();
    assert_eq!(basic["catalogId"], BASIC_CATALOG);
    assert_eq!(plexus["catalogId"], crate::PLEXUS_CATALOG);
    for (specs, schemas) in [(BASIC, &basic["components"]), (PLEXUS, &plexus["components"])] {
        for spec in specs {
            let (mut props, needed) = described(&schemas[spec.name]);
            assert_eq!(props.remove("component"), Some(json!({"const": spec.name})));
            let needed: Vec<String> = needed.into_iter().filter(|name| name != "component").collect();
            members_agree(&[spec.props], &props, &needed, spec.name);
        }
    }
    assert_eq!(basic["components"].as_object().unwrap().len(), BASIC.len());
    let own = plexus["components"].as_object().unwrap();
    assert_eq!(own.len(), BASIC.len() + PLEXUS.len());
    for spec in BASIC {
        assert_eq!(own[spec.name], json!({"$ref": format!("{BASIC_CATALOG}#/components/{}", spec.name)}));
    }
    // What every component may have.
    let mut props = common["$defs"]["ComponentCommon"]["properties"].as_object().unwrap().clone();
    props.extend(basic["$defs"]["CatalogComponentCommon"]["properties"].as_object().unwrap().clone());
    let names: Vec<&str> = COMMON.iter().map(|prop| prop.name).filter(|name| *name != "component").collect();
    assert!(props.len() == names.len() && names.iter().all(|name| props.contains_key(*name)));
    let functions = basic["functions"].as_object().unwrap();
    assert_eq!(functions.len(), FUNCTIONS.len());
    for function in FUNCTIONS {
        let schema = &functions[function.name];
        let returns = match function.returns {
            ReturnType::Text => "string",
            ReturnType::Flag => "boolean",
            ReturnType::Nothing => "void",
        };
        assert_eq!(schema["properties"]["returnType"]["const"], returns);
        let args = &schema["properties"]["args"];
        let needed: Vec<String> =
            args["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
        members_agree(&[function.args], args["properties"].as_object().unwrap(), &needed, function.name);
        assert_eq!(args.get("anyOf").is_some(), !function.any_of.is_empty());
    }
}

/// Evaluates a call, with a data model.
fn call(name: &str, args: Value, data: &Value) -> Value {
    let base = Pointer::default();
    let value = json!({"call": name, "args": args});
    Scope { data, base: &base }.value(&value, &mut Budget::default()).into_owned()
}

#[test]
fn surface_functions_do_what_the_reference_does() {
    let data = json!({"a": 10, "user": {"name": "Alice", "age": 30}, "tags": ["x", "y"], "matrix": [[1, 2]], "vals": [1, null, 3], "none": null});
    #[rustfmt::skip] // a table
    let cases = [
        ("and", json!({"values": [true, true]}), json!(true)),
        ("and", json!({"values": [true, {"path": "/none"}]}), json!(false)),
        ("or", json!({"values": [false, true]}), json!(true)),
        ("or", json!({"values": [false, 0]}), json!(false)),
        ("not", json!({"value": false}), json!(true)),
        ("not", json!({"value": {"path": "/a"}}), json!(false)),
        ("required", json!({"value": "a"}), json!(true)),
        ("required", json!({"value": ""}), json!(false)),
        ("required", json!({"value": null}), json!(false)),
        ("required", json!({"value": {"path": "/nowhere"}}), json!(false)),
        ("required", json!({"value": []}), json!(false)),
        ("required", json!({"value": false}), json!(true)),
        ("length", json!({"value": "abc", "min": 2}), json!(true)),
        ("length", json!({"value": "abc", "max": 2}), json!(false)),
        ("length", json!({"value": {"path": "/tags"}, "min": 3}), json!(false)),
        ("numeric", json!({"value": 10, "min": 5, "max": 15}), json!(true)),
        ("numeric", json!({"value": 3, "min": 5}), json!(false)),
        ("numeric", json!({"value": "7", "min": 5}), json!(true)),
        ("numeric", json!({"value": "seven", "min": 5}), json!(false)),
        ("email", json!({"value": "test@example.com"}), json!(true)),
        ("email", json!({"value": "test.name@example.com"}), json!(true)),
        ("email", json!({"value": "test+label@example-domain.com"}), json!(true)),
        ("email", json!({"value": "invalid"}), json!(false)),
        ("email", json!({"value": "test@test"}), json!(false)),
        ("email", json!({"value": "test@test.c"}), json!(false)),
        ("email", json!({"value": "test@.com"}), json!(false)),
        ("email", json!({"value": "a@b@c.de"}), json!(false)),
        ("regex", json!({"value": "abc", "pattern": "^[a-z]+$"}), json!(true)),
        ("regex", json!({"value": "123", "pattern": "^[a-z]+$"}), json!(false)),
        ("regex", json!({"value": "abc", "pattern": "["}), json!(null)),
        ("formatString", json!({"value": "hello world"}), json!("hello world")),
        ("formatString", json!({"value": "Value: ${a}"}), json!("Value: 10")),
        ("formatString", json!({"value": "User: ${user}"}), json!("User: {\"age\":30,\"name\":\"Alice\"}")),
        ("formatString", json!({"value": "Tags: ${tags}"}), json!("Tags: [\"x\",\"y\"]")),
        ("formatString", json!({"value": "M = ${matrix}"}), json!("M = [[1,2]]")),
        ("formatString", json!({"value": "V = ${vals}"}), json!("V = [1,null,3]")),
        ("formatString", json!({"value": "val=${none}end"}), json!("val=end")),
        ("formatString", json!({"value": "${formatNumber(value: ${/a}, decimals: 2)} \\${x}"}), json!("10.00 ${x}")),
        ("formatNumber", json!({"value": 1234.56, "decimals": 1}), json!("1,234.6")),
        ("formatNumber", json!({"value": "x"}), json!("")),
        ("formatCurrency", json!({"value": 1234.56, "currency": "USD"}), json!("$1,234.56")),
        ("formatDate", json!({"value": "2025-01-01T12:00:00Z", "format": "yyyy-MM-dd"}), json!("2025-01-01")),
        ("formatDate", json!({"value": "2025-01-01T12:00:00Z", "format": "ISO"}), json!("2025-01-01T12:00:00.000Z")),
        ("formatDate", json!({"value": "invalid-date", "format": "yyyy"}), json!("")),
        ("pluralize", json!({"value": 1, "one": "apple", "other": "apples"}), json!("apple")),
        ("pluralize", json!({"value": 2, "one": "apple", "other": "apples"}), json!("apples")),
        ("pluralize", json!({"value": 0, "other": "apples"}), json!("apples")),
        ("pluralize", json!({"value": 1, "other": "apples"}), json!("apples")),
        ("openUrl", json!({"url": "https://a.example"}), json!(null)),
        ("upper", json!({"text": "x"}), json!(null)),
    ];
    for (name, args, value) in cases {
        assert_eq!(call(name, args.clone(), &data), value, "{name} {args}");
    }
    for url in ["https://example.com", "http://example.com/path", "HTTPS://sub.domain.co.uk:8080/p?q=1"] {
        assert!(crate::is_http(url), "{url}");
    }
    for url in [
        "javascript:alert(document.domain)",
        "  javascript:alert(1)",
        "javascript://%0Aalert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:msgbox(\"hello\")",
        "file:///etc/passwd",
        "about:blank",
        "/relative-path",
        "https://",
        "https://a.example/\u{202e}\n",
        "//a.example",
    ] {
        assert!(!crate::is_http(url), "{url}");
    }
}

#[test]
fn surface_data_model_does_what_the_reference_does() {
    let mut model = Model::default();
    let mut set = |path: &str, value: Option<Value>| {
        let op = value.map_or(DataOp::Remove, DataOp::Set);
        let path = Pointer::absolute(path).map_err(|why| why.to_owned())?;
        model.apply(&path, &op).map(|_| model.root().clone()).map_err(|error| error.to_string())
    };
    let mut is = |path: &str, value: Value, root: Value| assert_eq!(set(path, Some(value)).unwrap(), root, "{path}");
    is(
        "/",
        json!({"user": {"name": "Alice"}, "items": ["a", "b"]}),
        json!({"user": {"name": "Alice"}, "items": ["a", "b"]}),
    );
    is("/user/name", json!("Bob"), json!({"user": {"name": "Bob"}, "items": ["a", "b"]}));
    is("/items/1", json!("B"), json!({"user": {"name": "Bob"}, "items": ["a", "B"]}));
    is("/items/2", json!("c"), json!({"user": {"name": "Bob"}, "items": ["a", "B", "c"]}));
    is("/", json!({}), json!({}));
    is("/a/b/0/c", json!(123), json!({"a": {"b": [{"c": 123}]}}));
    is("/nestedList/0/0", json!("inner"), json!({"a": {"b": [{"c": 123}]}, "nestedList": [["inner"]]}));
    is("/", json!({"nullable": null}), json!({"nullable": null}));
    is("/nullable/deep", json!(1), json!({"nullable": {"deep": 1}}));
    is("/toString", json!("own"), json!({"nullable": {"deep": 1}, "toString": "own"}));
    is("/", json!({"user": {}}), json!({"user": {}}));
    is("/user/a~0b~1c", json!("v"), json!({"user": {"a~b/c": "v"}}));
    is("/user/a~01b", json!("v"), json!({"user": {"a~b/c": "v", "a~1b": "v"}}));
    is("/foo/", json!("bar"), json!({"user": {"a~b/c": "v", "a~1b": "v"}, "foo": "bar"}));
    is("/", json!({"items": [1, 2, 3], "name": "x"}), json!({"items": [1, 2, 3], "name": "x"}));
    for (path, why) in [
        ("/name/first", "is no object or list"),
        ("/items/foo", "foo is no index"),
        ("/items/foo/bar", "foo is no index"),
        ("/items/0/foo", "is no object or list"),
        ("/items/01", "01 is no index"),
        ("/items/-1", "-1 is no index"),
        ("/__proto__/polluted", "not allowed"),
        ("/constructor/prototype/polluted", "not allowed"),
        ("/user/prototype/polluted", "not allowed"),
    ] {
        let error = set(path, Some(json!(1))).unwrap_err();
        assert!(error.contains(why), "{path}: {error}");
    }
    // Without a value the key is removed; an item of a list leaves its place empty.
    assert_eq!(set("/name", None).unwrap(), json!({"items": [1, 2, 3]}));
    assert_eq!(set("/items/1", None).unwrap(), json!({"items": [1, null, 3]}));
    assert_eq!(set("/nowhere/at/all", None).unwrap(), json!({"items": [1, null, 3]}));
    assert_eq!(set("/", None).unwrap(), json!({}));
    for root in [json!(false), json!(0), json!("")] {
        assert_eq!(set("/", Some(root.clone())).unwrap(), root);
        assert!(set("/a", Some(json!(2))).is_err());
    }
    set("/", Some(json!(null))).unwrap();
    assert_eq!(set("/a", Some(json!(2))).unwrap(), json!({"a": 2}));
}

fn create(name: &str) -> Value {
    json!({"version": "v0.9", "createSurface": {"surfaceId": name, "catalogId": BASIC_CATALOG}})
}

fn components(name: &str, components: Value) -> Value {
    json!({"version": "v0.9", "updateComponents": {"surfaceId": name, "components": components}})
}

#[test]
fn surface_messages_do_what_the_reference_does() {
    let mut set = SurfaceSet::default();
    let mut send = |messages: Value| {
        set.messages(messages.as_array().unwrap().clone(), at(0))
            .map_err(|error| error.to_string())
            .map(|_| set.clone())
    };
    let text = |id: &str, text: &str| json!({"id": id, "component": "Text", "text": text});
    assert_eq!(send(json!([create("s1"), create("s2")])).unwrap().iter().len(), 2);
    for (messages, why) in [
        (json!([create("s1")]), "exists already"),
        (
            json!([{"version": "v0.9", "createSurface": {"surfaceId": "s3", "catalogId": "unknown-catalog"}}]),
            "\"unknown-catalog\" is not known",
        ),
        (json!([components("unknown", json!([text("a", "x")]))]), "there is no surface \"unknown\""),
        (
            json!([{"version": "v0.9", "updateDataModel": {"surfaceId": "unknown", "path": "/", "value": {}}}]),
            "there is no surface",
        ),
        (json!([components("s1", json!([{"component": "Text", "text": "x"}]))]), "components/0 (Text) id: is missing"),
        (json!([components("s1", json!([{"id": "c", "label": "No type"}]))]), "\"c\" has no type"),
        (
            json!([components(
                "s1",
                json!([text("ok", "x"), {"id": "b", "component": "Button", "child": "ok", "action": {"call": "openUrl"}}])
            )]),
            "components/1 (Button) action",
        ),
        (
            json!([{"version": "v0.9", "updateComponents": {"surfaceId": "s1", "components": []}, "updateDataModel": {"surfaceId": "s1"}}]),
            "a message has one of",
        ),
        (json!([{"version": "v0.9"}]), "is needed"),
        (json!([{"version": "v2", "deleteSurface": {"surfaceId": "s1"}}]), "v0.9 and v0.9.1 are known"),
        (json!([components("s1", json!([text("kept", "x")])), create("s1")]), "exists already"),
        (
            json!([{"version": "v0.9", "deleteSurface": {"surfaceId": "s1"}}, create("s3"), create("s2")]),
            "exists already",
        ),
    ] {
        let error = send(messages).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    // Nothing of what was refused stayed.
    let set = send(json!([])).unwrap();
    assert_eq!(
        (set.iter().len(), set.get("s1").unwrap().components().count(), set.get("s1").unwrap().rev()),
        (2, 0, 1)
    );
    send(json!([components("s1", json!([text("root", "Initial")]))])).unwrap();
    // A component that there is may leave out its type, and is replaced whole.
    let set = send(json!([components("s1", json!([{"id": "root", "text": "Updated", "variant": "h1"}]))])).unwrap();
    assert_eq!(set.get("s1").unwrap().text(80), "# Updated");
    let set = send(json!([components("s1", json!([{"id": "root", "component": "Divider"}]))])).unwrap();
    assert_eq!(set.get("s1").unwrap().components().next().unwrap().len(), 2);
    let set = send(json!([{"version": "v0.9", "deleteSurface": {"surfaceId": "s1"}}, {"version": "v0.9", "deleteSurface": {"surfaceId": "gone"}}])).unwrap();
    assert!(set.get("s1").is_none());
    let message = json!({"version": "v0.9.1", "createSurface": {"surfaceId": "s1", "catalogId": BASIC_CATALOG, "theme": {"primaryColor": "#00BFFF"}, "sendDataModel": true}});
    let set = send(json!([message])).unwrap();
    let wire = serde_json::to_value(set.get("s1").unwrap()).unwrap();
    assert_eq!(wire["messages"][0]["createSurface"]["theme"]["primaryColor"], "#00BFFF");
    assert_eq!((&wire["messages"][0]["createSurface"]["sendDataModel"], &wire["rev"]), (&json!(true), &json!(6)));
}
