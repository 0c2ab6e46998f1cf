//! Elicitations: the questions for forms, and the responses for answers.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json as j};

use super::super::rig::{Rig, choose, spec};
use super::super::{AgentRequest, RequestSubject, RuntimeEvent};
use plexus_protocol::{Choice, Decision, Kind, RequestType};

fn session() -> Rig {
    let mut rig = Rig::new(&spec("acp"));
    rig.feed(r#"{"id":0,"result":{"protocolVersion":1}}"#);
    rig.open(1);
    rig.feed(r#"{"id":1,"result":{"sessionId":"s"}}"#);
    rig.take_events();
    rig.sent();
    rig
}

fn create(params: Value) -> String {
    j!({ "jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": params }).to_string()
}

fn form(properties: Value, required: Value) -> String {
    let schema = j!({ "type": "object", "properties": properties, "required": required });
    create(j!({ "sessionId": "s", "mode": "form", "message": "Well?", "requestedSchema": schema }))
}

/// Returns the question for a form of one field, and the response for an answer; `None` if it is asked again.
fn one(property: &Value, decision: Decision) -> (Box<AgentRequest>, Option<Value>) {
    let mut rig = session();
    rig.feed(form(j!({ "f": property }), j!(["f"])));
    let ask = rig.ask();
    rig.answer("5", decision);
    match rig.sent().pop() {
        Some(sent) => (ask, Some(sent["result"].clone())),
        None => (rig.ask(), None),
    }
}

fn text(text: &str) -> Decision {
    Decision::Value(Some(text.into()))
}

fn ids(ids: &[&str]) -> Decision {
    Decision::Ids(ids.iter().map(|id| (*id).to_owned()).collect())
}

#[test]
fn acp_elicitation_of_one_field_is_a_pick_or_a_prompt() {
    let accept = |value: Value| Some(j!({ "action": "accept", "content": { "f": value } }));
    let cancel = || Some(j!({ "action": "cancel" }));
    let colours =
        j!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }] });
    let many = j!({ "type": "array", "items": { "type": "string", "enum": ["a", "b", "c"] }, "maxItems": 2 });
    let (pick, prompt) = (RequestType::Pick, RequestType::Prompt);
    for (property, kind, decision, sent) in [
        (j!({ "type": "string" }), prompt, text("x \"y\""), accept(j!("x \"y\""))),
        (j!({ "type": "string" }), prompt, Decision::Value(None), cancel()),
        (j!({ "type": "string" }), prompt, Decision::Expired, cancel()),
        (j!({ "type": "string", "minLength": 2, "maxLength": 3 }), prompt, text("héé"), accept(j!("héé"))),
        (j!({ "type": "string", "minLength": 2 }), prompt, text("x"), None),
        (j!({ "type": "number", "minimum": 0.5 }), prompt, text(" 1.5 "), accept(j!(1.5))),
        (j!({ "type": "number" }), prompt, text("many"), None),
        (j!({ "type": "integer", "maximum": 9 }), prompt, text("9"), accept(j!(9))),
        (j!({ "type": "integer", "maximum": 9 }), prompt, text("10"), None),
        (j!({ "type": "integer" }), prompt, text("1.5"), None),
        (j!({ "type": "boolean" }), pick, ids(&["true"]), accept(j!(true))),
        (j!({ "type": "boolean" }), pick, ids(&["false"]), accept(j!(false))),
        (j!({ "type": "boolean" }), pick, ids(&[]), cancel()),
        (colours.clone(), pick, ids(&["g"]), accept(j!("g"))),
        (j!({ "type": "string", "enum": ["a", "b"] }), pick, ids(&["b"]), accept(j!("b"))),
        (many.clone(), pick, ids(&["c", "a"]), accept(j!(["c", "a"]))),
        (many.clone(), pick, ids(&["a", "b", "c"]), None),
        (many.clone(), pick, Decision::Withdrawn, cancel()),
        (
            j!({ "type": "array", "items": { "anyOf": [{ "const": "x", "title": "X" }] } }),
            pick,
            ids(&["x"]),
            accept(j!(["x"])),
        ),
    ] {
        let (ask, got) = one(&property, decision.clone());
        assert_eq!((ask.kind, &got), (kind, &sent), "{property} {decision:?}");
    }
    let (ask, _) = one(&colours, ids(&[]));
    assert_eq!((ask.items[1].id.as_str(), ask.items[1].label.as_str(), ask.multi), ("g", "Green", false));
    assert!(one(&many, ids(&[])).0.multi);
    let named = j!({ "type": "string", "title": "Name", "description": "of the branch", "default": "main" });
    let (ask, _) = one(&named, Decision::Value(None));
    assert_eq!((ask.title.as_str(), ask.default_value.as_deref()), ("Name", Some("main")));
    assert_eq!(ask.subject, RequestSubject::Text("Well?\nName: of the branch".into()));
}

#[test]
fn acp_elicitation_answer_that_does_not_fit_is_asked_again_and_never_sent() {
    let mut rig = session();
    rig.feed(form(j!({ "n": { "type": "integer", "minimum": 1 } }), j!(["n"])));
    rig.ask();
    for wrong in ["x", "0", ""] {
        rig.answer("5", text(wrong));
        let ask = rig.ask();
        assert!(ask.title.contains("a whole number from 1") && rig.sent().is_empty(), "{}", ask.title);
        assert_eq!((ask.key.id(), ask.default_value.as_deref()), ("5", Some(wrong)));
    }
    rig.answer("5", text("3"));
    assert_eq!(rig.sent()[0]["result"]["content"], j!({ "n": 3 }));
    assert!(rig.dialect.asks().is_empty());
}

#[test]
fn acp_elicitation_sends_the_bounds_of_a_field_with_the_question() {
    for (property, required, good, bad) in [
        (j!({ "type": "string", "minLength": 2, "maxLength": 3 }), j!(["n"]), "ab", "abcd"),
        (j!({ "type": "string", "pattern": "^v[0-9]+$" }), j!(["n"]), "v1", "1"),
        (j!({ "type": "string", "format": "email" }), j!([]), "a@b", "a"),
        (j!({ "type": "string", "format": "date" }), j!([]), "2026-01-31", "2026-01-32"),
        (j!({ "type": "number", "maximum": 1.5 }), j!([]), "1.5", "1.6"),
        (j!({ "type": "integer", "minimum": 1 }), j!([]), "1", "1.0"),
    ] {
        let mut rig = session();
        rig.feed(form(j!({ "n": property }), required.clone()));
        let expects = rig.ask().expects;
        assert_eq!((expects.field.as_deref(), expects.optional), (Some("n"), required == j!([])), "{property}");
        assert!(expects.fits.check(good).is_ok() && expects.fits.check(bad).is_err(), "{property}");
        // The dialect itself holds to it.
        rig.answer("5", text(bad));
        assert!(rig.sent().is_empty() && !rig.dialect.asks().is_empty(), "{property}");
        rig.answer("5", text(good));
        assert_eq!(rig.sent()[0]["result"]["action"], "accept", "{property}");
    }
    let mut rig = session();
    rig.feed(form(j!({ "n": { "type": "integer", "minimum": 1 } }), j!([])));
    rig.ask();
    rig.answer("5", text(" "));
    assert_eq!(rig.sent()[0]["result"]["content"], j!({}), "left out");
    let several = j!({ "type": "array", "minItems": 2, "items": { "enum": ["a", "b", "c"] } });
    let mut rig = session();
    rig.feed(form(j!({ "n": several }), j!(["n"])));
    let fits = rig.ask().expects.fits;
    assert!(fits.count(1.0).is_err() && fits.count(2.0).is_ok());
}

#[test]
fn acp_elicitation_of_several_fields_is_filled_in_as_json() {
    let properties = j!({
        "name": { "type": "string", "description": "who" },
        "age": { "type": "integer", "default": 7 },
        "odd": { "type": "_hologram" },
    });
    let mut rig = session();
    rig.feed(form(properties, j!(["name"])));
    let ask = rig.ask();
    assert_eq!((ask.kind, ask.multiline), (RequestType::Prompt, true));
    let start: Value = serde_json::from_str(ask.default_value.as_deref().unwrap()).unwrap();
    assert_eq!(start, j!({ "name": null, "age": 7 }), "what cannot be shown is left out");
    let RequestSubject::Questions { text: shown, questions } = &ask.subject else { panic!() };
    let wants: Vec<_> = questions.iter().map(|q| (q.id.as_str(), q.text.as_str(), q.free_text, q.optional)).collect();
    assert_eq!(wants, [("name", "who", true, false), ("age", "age", true, true)]);
    assert!(shown.contains("\"name\" (text) name: who") && shown.contains("\"age\" (a whole number, or left out)"));
    for (wrong, reason) in [
        ("", "no JSON object"),
        ("[]", "no JSON object"),
        (r#"{"age":1}"#, "name is missing"),
        (r#"{"name":null}"#, "name is missing"),
        (r#"{"name":7}"#, "name must be text"),
        (r#"{"name":"n","age":"old"}"#, "age must be"),
        (r#"{"name":"n","more":1}"#, "no field \"more\""),
    ] {
        rig.answer("5", text(wrong));
        assert!(rig.ask().title.contains(reason), "{wrong}");
    }
    rig.answer("5", text("{\"name\": \"n\",\n\"age\": null}"));
    assert_eq!(
        rig.sent(),
        [j!({ "jsonrpc": "2.0", "id": 5, "result": { "action": "accept", "content": { "name": "n" } } })]
    );
}

#[test]
fn acp_elicitation_without_fields_or_of_a_page_is_a_yes_or_a_no() {
    let page =
        j!({ "sessionId": "s", "mode": "url", "message": "Sign in", "url": "https://x/y", "elicitationId": "e" });
    let empty = form(j!({}), j!(null));
    for (frame, accepted, shown) in [
        (create(page), j!({ "action": "accept" }), "Sign in\nhttps://x/y"),
        (empty, j!({ "action": "accept", "content": {} }), "Well?"),
    ] {
        for (decision, sent) in [
            (choose("accept", Choice::AllowOnce), &accepted),
            (choose("decline", Choice::RejectOnce), &j!({ "action": "decline" })),
            (choose("cancel", Choice::Other), &j!({ "action": "cancel" })),
            (choose("junk", Choice::AllowOnce), &j!({ "action": "cancel" })),
            (text("accept"), &j!({ "action": "cancel" })),
            (Decision::Expired, &j!({ "action": "cancel" })),
        ] {
            let mut rig = session();
            rig.feed(frame.clone());
            let ask = rig.ask();
            assert!(matches!(&ask.subject, RequestSubject::Text(text) if text.starts_with(shown)), "{:?}", ask.subject);
            assert_eq!(ask.kind, RequestType::Elicitation);
            rig.answer("5", decision.clone());
            assert_eq!(rig.sent()[0]["result"], *sent, "{decision:?}");
        }
    }
}

#[test]
fn acp_elicitation_that_cannot_be_shown_is_cancelled_and_logged() {
    for frame in [
        form(j!({ "f": { "type": "_hologram" } }), j!(["f"])),
        form(j!({}), j!(["absent"])),
        form(j!({ "f": { "type": "string", "enum": ["a", "a"] } }), j!(["f"])),
        form(j!({ "f": { "type": "array" } }), j!(["f"])),
        form(j!(7), j!([])),
        create(j!({ "sessionId": "s", "mode": "telepathy", "message": "m" })),
        create(j!({ "sessionId": "s", "mode": "url", "message": "m" })),
    ] {
        let mut rig = session();
        rig.feed(frame.clone());
        assert_eq!(rig.event().kind, Kind::Error, "{frame}");
        assert_eq!(rig.sent()[0]["result"], j!({ "action": "cancel" }));
    }
    let mut rig = session();
    rig.feed(create(j!(7)));
    assert_eq!((rig.event().kind, &rig.sent()[0]["result"]), (Kind::Raw, &j!({ "action": "cancel" })));
}

#[test]
fn acp_elicitation_page_completed_elsewhere_closes_the_request() {
    let page = j!({ "sessionId": "s", "mode": "url", "message": "m", "url": "https://x", "elicitationId": "e" });
    let complete = |id: &str| j!({ "method": "elicitation/complete", "params": { "elicitationId": id } }).to_string();
    let mut rig = session();
    rig.feed(create(page.clone()));
    rig.ask();
    rig.feed(complete("other"));
    assert_eq!(rig.event().kind, Kind::Raw);
    rig.feed(complete("e"));
    assert!(matches!(rig.one(), RuntimeEvent::TakenBack { key, elsewhere: Some(_), .. } if key.id() == "5"));
    assert_eq!(rig.sent()[0]["result"], j!({ "action": "accept" }));
    rig.feed(complete("e"));
    assert_eq!(rig.event().kind, Kind::Raw, "kept, once answered");
    // Taken back by the agent.
    rig.feed(create(page));
    rig.ask();
    rig.feed(r#"{"method":"$/cancel_request","params":{"requestId":5}}"#);
    assert!(matches!(rig.one(), RuntimeEvent::TakenBack { elsewhere: None, .. }));
    assert_eq!(rig.sent()[0]["result"], j!({ "action": "cancel" }));
}

#[test]
fn acp_elicitation_without_a_session_goes_to_the_session_of_its_request() {
    let page = |id: u64| create(j!({ "requestId": id, "mode": "url", "message": "m", "url": "https://x" }));
    let mut rig = session();
    rig.prompt(7, "s", "hi");
    rig.sent();
    rig.feed(page(2));
    let events = rig.one();
    assert!(
        matches!(&events, RuntimeEvent::Asked { native: Some(native), .. } if native.as_str() == "s"),
        "{events:?}"
    );
    // While signing in, before any session: nobody would see it.
    let mut rig = Rig::new(&spec("acp"));
    rig.feed(page(0));
    assert_eq!(rig.event().kind, Kind::Error);
    assert_eq!(rig.sent()[1]["result"], j!({ "action": "cancel" }));
}

/// The form of AskUserQuestion in claude-agent-acp: a choice, and beside it a field for free text.
#[test]
fn acp_elicitation_choice_with_free_text_is_one_question() {
    let option = |label: &str| j!({ "const": label, "title": label, "description": format!("{label}!") });
    let fields = j!({
        "question_0": { "type": "string", "title": "Colour", "oneOf": [option("Red"), option("Blue")] },
        "question_0_custom": { "type": "string", "title": "Other" },
    });
    let answers = |words: &[&str]| {
        let words = words.iter().map(ToString::to_string).collect();
        Decision::Answers([("question_0".to_owned(), words)].into())
    };
    for (events, content) in [
        (answers(&["Blue"]), j!({ "question_0": "Blue" })),
        (answers(&["teal"]), j!({ "question_0_custom": "teal" })),
        (text(r#"{"question_0":"Red"}"#), j!({ "question_0": "Red" })),
    ] {
        let mut rig = session();
        rig.feed(form(fields.clone(), j!([])));
        let ask = rig.ask();
        let RequestSubject::Questions { questions, .. } = &ask.subject else { panic!("{:?}", ask.subject) };
        let [question] = questions.as_slice() else { panic!("{questions:?}") };
        assert_eq!((question.id.as_str(), question.free_text, question.optional), ("question_0", true, false));
        let labels: Vec<_> = question.options.iter().map(|option| option.label.as_str()).collect();
        assert_eq!(labels, ["Red", "Blue"]);
        rig.answer("5", events);
        assert_eq!(rig.sent()[0]["result"], j!({ "action": "accept", "content": content }));
    }
    let mut rig = session();
    rig.feed(form(fields, j!([])));
    rig.ask();
    rig.answer("5", Decision::Answers([].into()));
    assert_eq!(rig.sent()[0]["result"], j!({ "action": "cancel" }));
}
