//! Surfaces over HTTP and the WebSocket: drawn, changed, pressed, refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::front::{Front, LONG, Reply};
use plexus::ledger::LedgerLimits;
use plexus_surfaces::{Change, SurfaceSet};
use serde_json::{Value, json};

/// A form with one input and one button.
fn form() -> Value {
    json!({
        "surface": "deploy", "title": "Deploy", "data": { "name": "" },
        "components": [
            { "id": "root", "component": "Column", "children": ["name", "go"] },
            { "id": "name", "component": "TextField", "label": "Name", "value": { "path": "/name" } },
            { "id": "go", "component": "Button", "child": "label",
              "action": { "event": { "name": "submit", "context": { "who": { "path": "/name" } } } } },
            { "id": "label", "component": "Text", "text": "Go" },
        ],
    })
}

async fn surfaces(front: &Front, session: &str) -> Value {
    let reply = front.admin("GET", &format!("/v1/sessions/{session}/surfaces"), Value::Null).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()["surfaces"].clone()
}

/// The changes of surfaces in the log.
async fn changes(front: &Front, session: &str) -> Vec<Value> {
    let page = front.admin("GET", &format!("/v1/sessions/{session}/events?limit=5000"), Value::Null).await.json();
    let events = page["events"].as_array().unwrap();
    events.iter().filter(|event| event["kind"] == "surface_updated").map(|event| event["event"].clone()).collect()
}

fn folded(changes: &[Value]) -> Value {
    let mut set = SurfaceSet::default();
    for change in changes {
        set.apply(&serde_json::from_value::<Change>(change.clone()).unwrap());
    }
    serde_json::to_value(&set).unwrap()
}

async fn keyed(front: &Front, key: &str, method: &str, path: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {}", front.admin);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", key)];
    front.send(method, path, &headers, &body.to_string()).await
}

#[tokio::test]
async fn surface_events_lead_to_the_state_that_the_calls_made() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/surfaces");
    let shown = front.admin("POST", &path, form()).await;
    assert_eq!((shown.status, shown.json()), (200, json!({ "surface": "deploy", "rev": 1 })));
    let at = format!("{path}/deploy");
    let changed =
        json!({ "data": [{ "path": "/log", "append": ["one", "two"] }], "title": "Deploying", "expect_rev": 1 });
    assert_eq!(front.admin("PATCH", &at, changed.clone()).await.json()["rev"], 2);
    let stale = front.admin("PATCH", &at, changed).await;
    assert_eq!((stale.status, stale.code(), stale.json()["rev"].clone()), (409, "stale_surface".into(), json!(2)));
    assert_eq!(front.admin("PATCH", &at, json!({ "pinned": true })).await.json()["rev"], 3);
    let now = surfaces(&front, &session).await;
    assert_eq!((&now[0]["rev"], &now[0]["title"], &now[0]["pinned"]), (&json!(3), &json!("Deploying"), &json!(true)));
    assert_eq!(folded(&changes(&front, &session).await), now);
    let snapshot = front.admin("GET", &format!("/v1/sessions/{session}/snapshot"), Value::Null).await.json();
    assert_eq!(snapshot["surfaces"], now);
    assert_eq!(front.admin("DELETE", &at, Value::Null).await.json()["rev"], 4);
    assert_eq!(surfaces(&front, &session).await, json!([]));
    assert_eq!(folded(&changes(&front, &session).await), json!([]));
    // One of the same name is not taken for the old one.
    assert_eq!(front.admin("POST", &path, form()).await.json()["rev"], 5);
    assert_eq!(folded(&changes(&front, &session).await), surfaces(&front, &session).await);
}

#[tokio::test]
async fn surface_calls_that_are_wrong_change_nothing_and_say_what_to_do() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/surfaces");
    let mut bad = form();
    bad["components"][1]["component"] = json!("TextFeild");
    for (method, to, body, status, code, says) in [
        ("POST", path.clone(), bad, 422, "bad_surface", "TextField"),
        ("POST", path.clone(), json!({ "surface": "a b", "components": [] }), 422, "bad_surface", "name of a surface"),
        ("POST", path.clone(), json!({ "surface": "a" }), 422, "invalid", "components"),
        ("POST", path.clone(), json!({ "surface": "a", "html": "<p>" }), 422, "invalid", "text"),
        ("PATCH", format!("{path}/none"), json!({ "title": "x" }), 404, "surface_not_found", "ui_show"),
        ("PATCH", format!("{path}/none"), json!({ "title": "x", "pinned": true }), 422, "invalid", "by itself"),
        ("DELETE", format!("{path}/none"), Value::Null, 404, "surface_not_found", "none"),
    ] {
        let reply = front.admin(method, &to, body).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{method} {to}: {reply:?}");
        assert!(reply.json()["detail"].as_str().unwrap().contains(says), "{reply:?}");
    }
    assert_eq!(surfaces(&front, &session).await, json!([]));
    assert_eq!(changes(&front, &session).await, Vec::<Value>::new());
}

#[tokio::test]
async fn surface_call_repeated_under_its_key_draws_once() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/surfaces");
    for _ in 0..3 {
        assert_eq!(keyed(&front, "k1", "POST", &path, &form()).await.json()["rev"], 1);
    }
    let append = json!({ "data": [{ "path": "/log", "append": ["once"] }] });
    for _ in 0..3 {
        assert_eq!(keyed(&front, "k2", "PATCH", &format!("{path}/deploy"), &append).await.json()["rev"], 2);
    }
    assert_eq!(changes(&front, &session).await.len(), 2);
}

#[tokio::test]
async fn surface_updates_that_come_fast_are_merged_and_none_is_lost() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/surfaces");
    front.admin("POST", &path, form()).await;
    let at = format!("{path}/deploy");
    let calls = (0..100).map(|n| {
        let append = json!({ "data": [{ "path": "/log", "append": [n] }] });
        front.admin("PATCH", &at, append)
    });
    let replies = tokio::time::timeout(LONG, futures_util::future::join_all(calls)).await.unwrap();
    assert!(replies.iter().all(|reply| reply.status == 200));
    let now = surfaces(&front, &session).await;
    assert_eq!(now[0]["rev"], 101);
    let data = &now[0]["messages"].as_array().unwrap().last().unwrap()["updateDataModel"]["value"];
    let mut log: Vec<u64> = data["log"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    log.sort_unstable();
    assert_eq!(log, (0..100).collect::<Vec<u64>>());
    let events = changes(&front, &session).await;
    assert!(events.len() < 50, "{} events for 101 calls", events.len());
    assert_eq!(folded(&events), now);
}

/// An agent whose surfaces reach the limit gets the error at once, and it does not make the actions of people fail.
#[tokio::test]
async fn surfaces_that_take_too_much_are_refused_until_one_is_closed() {
    let limits = LedgerLimits { session: 128 << 10, ..LedgerLimits::default() };
    let front = Front::holding(limits).await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/surfaces");
    let mut large = form();
    large["data"]["log"] = json!("x".repeat(50 << 10));
    assert_eq!(front.admin("POST", &path, large).await.status, 200);
    let mut other = form();
    (other["surface"], other["data"]["log"]) = (json!("other"), json!("x".repeat(20 << 10)));
    let refused = front.admin("POST", &path, other.clone()).await;
    assert_eq!(
        (refused.status, refused.code().as_str(), refused.json()["account"].clone()),
        (429, "over_limit", json!("session"))
    );
    assert_eq!(refused.header("retry-after"), None, "waiting does not help");
    assert!(refused.json()["detail"].as_str().unwrap().contains("close a surface"), "{refused:?}");
    let press = json!({ "rev": 1, "component": "go", "event": "submit", "inputs": { "/name": "Ada" } });
    let pressed = front.admin("POST", &format!("{path}/deploy/action"), press).await;
    assert_eq!((pressed.status, pressed.json()["accepted"].clone()), (200, json!(true)), "{pressed:?}");
    assert_eq!(front.admin("DELETE", &format!("{path}/deploy"), Value::Null).await.status, 200);
    assert_eq!(front.admin("POST", &path, other).await.status, 200);
}

#[tokio::test]
async fn surface_press_becomes_a_prompt_once_and_what_is_not_declared_does_not() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/surfaces");
    front.admin("POST", &path, form()).await;
    let act = format!("{path}/deploy/action");
    for (body, code) in [
        (json!({ "rev": 1, "component": "go", "event": "destroy" }), "bad_action"),
        (json!({ "rev": 1, "component": "label", "event": "submit" }), "bad_action"),
        (json!({ "rev": 1, "component": "gone", "event": "submit" }), "bad_action"),
        (json!({ "rev": 9, "component": "go", "event": "submit" }), "stale_surface"),
        (json!({ "rev": 1, "component": "go", "event": "submit", "inputs": { "/other": "x" } }), "input_unfit"),
        (json!({ "rev": 1, "component": "go", "event": "submit", "inputs": { "/name": 7 } }), "input_unfit"),
    ] {
        let reply = front.admin("POST", &act, body.clone()).await;
        assert_eq!(reply.code(), code, "{body}: {reply:?}");
    }
    let press = json!({ "rev": 1, "component": "go", "event": "submit", "inputs": { "/name": "Ada" } });
    let both = tokio::join!(front.admin("POST", &act, press.clone()), front.admin("POST", &act, press));
    let mut statuses = [both.0.status, both.1.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "the first press wins: {both:?}");
    let page = front.admin("GET", &format!("/v1/sessions/{session}/events?limit=5000"), Value::Null).await.json();
    let said = page["events"].to_string();
    assert!(said.contains("On your surface deploy (Deploy), the user used component go: event submit."), "{said}");
    assert!(said.contains(r#"context: {\"who\":\"Ada\"}"#), "the gateway resolves what is bound: {said}");
    let now = surfaces(&front, &session).await;
    assert_eq!(now[0]["rev"], 2);
    assert_eq!(folded(&changes(&front, &session).await), now);
}

#[tokio::test]
async fn surface_is_drawn_by_who_may_prompt_and_read_by_who_may_watch() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/surfaces");
    let watcher = front.token(json!({ "scopes": ["watch"] })).await;
    let prompter = front.token(json!({ "scopes": ["prompt"] })).await;
    assert_eq!(front.call(&watcher, "POST", &path, form()).await.code(), "scope_missing");
    assert_eq!(front.call(&prompter, "POST", &path, form()).await.status, 200);
    assert_eq!(front.call(&watcher, "GET", &path, Value::Null).await.json()["surfaces"][0]["surface"], "deploy");
    assert_eq!(front.call(&prompter, "GET", &path, Value::Null).await.code(), "scope_missing");
    let press = json!({ "rev": 1, "component": "go", "event": "submit" });
    assert_eq!(front.call(&watcher, "POST", &format!("{path}/deploy/action"), press).await.code(), "scope_missing");
    let refused = front.admin("POST", "/v1/devices", json!({ "scopes": ["ui"], "name": "x" })).await;
    assert!(refused.status == 422 || refused.status == 400, "no device is given the agents' scope: {refused:?}");
}

#[tokio::test]
async fn surfaces_that_are_pinned_are_listed_across_sessions() {
    let front = Front::new().await;
    let (one, other) = (front.session("fake").await, front.session("fake").await);
    let pinned = async |token: &str| front.call(token, "GET", "/v1/surfaces", Value::Null).await.json();
    assert_eq!(pinned(&front.admin).await, json!({ "surfaces": [] }));
    for session in [&one, &other] {
        let path = format!("/v1/sessions/{session}/surfaces");
        let mut loose = form();
        loose["surface"] = json!("loose");
        assert_eq!(front.admin("POST", &path, loose).await.status, 200);
        assert_eq!(front.admin("POST", &path, form()).await.status, 200);
        assert_eq!(front.admin("PATCH", &format!("{path}/deploy"), json!({ "pinned": true })).await.json()["rev"], 2);
    }
    let ask = json!({ "surface": "deploy", "submit": ["go"], "question": "Deploy?" });
    let asked = front.admin("POST", &format!("/v1/sessions/{other}/asks"), ask).await.json();
    let listed = pinned(&front.admin).await;
    let of = |session: &str| {
        let all = listed["surfaces"].as_array().unwrap();
        all.iter().find(|surface| surface["session_id"] == session).unwrap().clone()
    };
    assert_eq!(listed["surfaces"].as_array().unwrap().len(), 2, "what is not pinned is not listed: {listed}");
    let mut first = of(&one);
    assert!(first.as_object_mut().unwrap().remove("at").unwrap().is_string());
    assert_eq!(first, json!({ "session_id": one, "surface": "deploy", "rev": 2, "title": "Deploy" }));
    assert_eq!((&of(&other)["rev"], &of(&other)["request_id"]), (&json!(3), &asked["ask_id"]));
    // Who may see one session sees its surfaces only.
    let narrow = front.token(json!({ "scopes": ["watch"], "sessions": [one] })).await;
    assert_eq!(pinned(&narrow).await["surfaces"].as_array().unwrap().len(), 1);
    assert_eq!(pinned(&narrow).await["surfaces"][0]["session_id"], json!(one));
    assert_eq!(front.admin("DELETE", &format!("/v1/sessions/{one}/surfaces/deploy"), Value::Null).await.status, 200);
    let unpinned = json!({ "pinned": false });
    assert_eq!(front.admin("PATCH", &format!("/v1/sessions/{other}/surfaces/deploy"), unpinned).await.status, 200);
    assert_eq!(pinned(&front.admin).await, json!({ "surfaces": [] }));
}

/// A form with two buttons that answer.
fn question() -> Value {
    json!({
        "surface": "deploy", "title": "Deploy", "data": { "name": "x", "force": false },
        "components": [
            { "id": "root", "component": "Column", "children": ["name", "force", "go", "stop"] },
            { "id": "name", "component": "TextField", "label": "Name", "value": { "path": "/name" } },
            { "id": "force", "component": "CheckBox", "label": "Force", "value": { "path": "/force" } },
            { "id": "go", "component": "Button", "child": "go-text",
              "action": { "event": { "name": "submit", "context": { "who": { "path": "/name" } } } } },
            { "id": "go-text", "component": "Text", "text": "Go" },
            { "id": "stop", "component": "Button", "child": "stop-text", "action": { "event": { "name": "stop" } } },
            { "id": "stop-text", "component": "Text", "text": "Stop" },
        ],
        "submit": ["go", "stop"], "question": "Deploy now?",
    })
}

async fn asked(front: &Front, session: &str) -> String {
    let reply = front.admin("POST", &format!("/v1/sessions/{session}/asks"), question()).await;
    assert_eq!((reply.status, &reply.json()["state"]), (200, &json!("open")), "{reply:?}");
    reply.json()["ask_id"].as_str().unwrap().to_owned()
}

async fn outcome(front: &Front, session: &str, ask: &str) -> Value {
    let reply = front.admin("GET", &format!("/v1/sessions/{session}/asks/{ask}?wait=20"), Value::Null).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[tokio::test]
async fn surface_question_is_a_request_that_a_press_answers_once() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let ask = asked(&front, &session).await;
    let request = front.open_request(&session).await;
    assert_eq!(
        (&request["request_id"], &request["title"], &request["type"]),
        (&json!(ask), &json!("Deploy now?"), &json!("prompt"))
    );
    assert!(request["display"].as_str().unwrap().contains("[ Go ]"), "it says what is asked: {request}");
    let ids: Vec<&str> =
        request["subject"]["questions"].as_array().unwrap().iter().map(|q| q["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["/name", "/force", "submit"]);
    let now = surfaces(&front, &session).await;
    assert_eq!(now[0]["ask"], json!({ "request_id": ask, "submit": ["go", "stop"] }));
    let act = format!("/v1/sessions/{session}/surfaces/deploy/action");
    let press = json!({ "rev": now[0]["rev"], "component": "go", "event": "submit", "inputs": { "/name": "Ada" } });
    // Who may prompt may not answer.
    let prompter = front.token(json!({ "scopes": ["watch", "prompt"] })).await;
    assert_eq!(front.call(&prompter, "POST", &act, press.clone()).await.code(), "scope_missing");
    let phone = front.token(json!({ "scopes": ["watch", "approve"] })).await;
    let waiting = outcome(&front, &session, &ask);
    let pressed = async {
        let first = front.call(&phone, "POST", &act, press.clone()).await;
        assert_eq!((first.status, &first.json()["request_id"]), (200, &json!(ask)), "{first:?}");
        assert_eq!(front.admin("POST", &act, press.clone()).await.status, 409, "the first answer wins");
    };
    let (end, ()) = tokio::join!(waiting, pressed);
    assert_eq!((&end["state"], &end["by"]), (&json!("answered"), &json!("test")));
    assert_eq!(end["answer"]["component"], "go");
    assert_eq!(end["answer"]["context"], json!({ "who": "Ada" }));
    let receipt = front.admin("GET", &format!("/v1/requests/{ask}"), Value::Null).await.json();
    assert_eq!((&receipt["state"], &receipt["receipt"]["resolved_by"]["name"]), (&json!("answered"), &json!("test")));
    let now = surfaces(&front, &session).await;
    assert_eq!(now[0]["ask"], Value::Null);
    assert_eq!(folded(&changes(&front, &session).await), now);
}

#[tokio::test]
async fn surface_question_with_one_button_is_answered_by_pressing_it() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let mut one = question();
    one["submit"] = json!(["go"]);
    for inputs in [json!({}), json!({ "/name": "Ada", "/force": true })] {
        let asked = front.admin("POST", &format!("/v1/sessions/{session}/asks"), one.clone()).await;
        assert_eq!(asked.status, 200, "{asked:?}");
        let ask = asked.json()["ask_id"].as_str().unwrap().to_owned();
        let rev = surfaces(&front, &session).await[0]["rev"].clone();
        let press = json!({ "rev": rev, "component": "go", "event": "submit", "inputs": inputs });
        let pressed =
            front.admin("POST", &format!("/v1/sessions/{session}/surfaces/deploy/action"), press.clone()).await;
        assert_eq!((pressed.status, &pressed.json()["request_id"]), (200, &json!(ask)), "{press}: {pressed:?}");
        let end = outcome(&front, &session, &ask).await;
        assert_eq!((&end["state"], &end["answer"]["component"]), (&json!("answered"), &json!("go")), "{end}");
    }
}

#[tokio::test]
async fn surface_question_is_answered_like_any_request() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    for (answers, component, inputs) in [
        (json!({ "submit": ["stop"] }), json!("stop"), json!({})),
        (
            json!({ "/name": ["Grace"], "/force": ["true"], "submit": ["go"] }),
            json!("go"),
            json!({ "/name": "Grace", "/force": true }),
        ),
        (json!({}), Value::Null, Value::Null),
    ] {
        let ask = asked(&front, &session).await;
        let reply = front.admin("POST", &format!("/v1/requests/{ask}/answer"), json!({ "answers": answers })).await;
        assert_eq!(reply.status, 200, "{answers}: {reply:?}");
        let end = outcome(&front, &session, &ask).await;
        assert_eq!(end["state"], "answered");
        assert_eq!((&end["answer"]["component"], &end["answer"]["inputs"]), (&component, &inputs), "{end}");
        let again = front.admin("POST", &format!("/v1/requests/{ask}/answer"), json!({ "answers": answers })).await;
        assert_eq!(again.code(), "already_resolved");
    }
}

#[tokio::test]
async fn surface_answer_that_no_run_fetched_is_the_next_prompt() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let ask = asked(&front, &session).await;
    let answers = json!({ "answers": { "submit": ["stop"] } });
    assert_eq!(front.admin("POST", &format!("/v1/requests/{ask}/answer"), answers).await.status, 200);
    let (events, _) =
        (front.admin("GET", &format!("/v1/sessions/{session}/events?limit=5000"), Value::Null).await.json(), ());
    let said = events["events"].to_string();
    assert!(said.contains(&format!("Answer to your question {ask} on your surface deploy")), "{said}");
}

#[tokio::test]
async fn surface_question_that_was_declined_says_so() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let ask = asked(&front, &session).await;
    assert_eq!(front.admin("POST", &format!("/v1/requests/{ask}/answer"), json!({ "answers": {} })).await.status, 200);
    let said = front.admin("GET", &format!("/v1/sessions/{session}/events?limit=5000"), Value::Null).await.body;
    assert!(said.contains(&format!("Your question {ask} on your surface deploy was declined by")), "{said}");
    assert_eq!(surfaces(&front, &session).await[0]["ask"], Value::Null);
}

#[tokio::test]
async fn surface_question_that_somebody_waits_for_is_no_prompt() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let ask = asked(&front, &session).await;
    let answer = async {
        // The reader has to wait before the answer comes.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let answers = json!({ "answers": { "submit": ["stop"] } });
        front.admin("POST", &format!("/v1/requests/{ask}/answer"), answers).await
    };
    let (end, reply) = tokio::join!(outcome(&front, &session, &ask), answer);
    assert_eq!((reply.status, &end["answer"]["component"]), (200, &json!("stop")));
    let said = front.admin("GET", &format!("/v1/sessions/{session}/events?limit=5000"), Value::Null).await.body;
    assert!(!said.contains("Answer to your question"), "{said}");
    // It is there for who lost the response.
    assert_eq!(outcome(&front, &session, &ask).await, end);
}

#[tokio::test]
async fn surface_question_that_ends_unanswered_leaves_its_surface() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let ask = asked(&front, &session).await;
    assert_eq!(surfaces(&front, &session).await[0]["ask"]["request_id"], json!(ask));
    let waiting = outcome(&front, &session, &ask);
    let closed = front.admin("DELETE", "/v1/runtimes/fake", Value::Null);
    let (_, closed) = tokio::join!(waiting, closed);
    assert!(closed.status < 300, "{closed:?}");
    let now = surfaces(&front, &session).await;
    assert_eq!(now[0]["ask"], Value::Null);
    assert_eq!(folded(&changes(&front, &session).await), now);
}

/// Bytes that the sessions' accounts hold.
fn held(front: &Front) -> usize {
    front.core.ledger.sums().into_iter().find(|sum| sum.class == plexus::ledger::Class::Session).unwrap().used
}

#[tokio::test]
async fn surfaces_are_charged_with_what_they_take_until_they_are_closed() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/v1/sessions/{session}/surfaces");
    let shown = |bytes: usize| {
        json!({ "surface": "big", "data": { "text": "x".repeat(bytes) },
                "components": [{ "id": "root", "component": "Text", "text": { "path": "/text" } }] })
    };
    let before = held(&front);
    for bytes in [500_000, 1_000_000, 2_000, 700_000] {
        assert_eq!(front.admin("POST", &path, shown(bytes)).await.status, 200);
        let now = held(&front) - before;
        assert!((bytes..bytes + 5_000).contains(&now), "{bytes}: {now}");
    }
    let mut ask = shown(900_000);
    ask["submit"] = json!(["root"]);
    ask["components"] = json!([
        { "id": "root", "component": "Button", "child": "label", "action": { "event": { "name": "ok" } } },
        { "id": "label", "component": "Text", "text": { "path": "/text" } },
    ]);
    let asked = front.admin("POST", &format!("/v1/sessions/{session}/asks"), ask).await;
    assert_eq!(asked.status, 200, "{asked:?}");
    assert!((900_000..1_900_000).contains(&(held(&front) - before)), "{}", held(&front) - before);
    assert_eq!(front.admin("DELETE", &format!("{path}/big"), Value::Null).await.status, 200);
    assert!(held(&front) - before < 5_000, "{}", held(&front) - before);
    // A session that ended holds nothing; its surfaces are read from the store.
    assert_eq!(front.admin("POST", &path, shown(700_000)).await.status, 200);
    let closed = front.admin("DELETE", "/v1/runtimes/fake", Value::Null).await;
    assert!(closed.status < 300, "{closed:?}");
    let deadline = tokio::time::Instant::now() + LONG;
    while held(&front) > before {
        assert!(tokio::time::Instant::now() < deadline, "{} bytes are still held", held(&front));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(surfaces(&front, &session).await[0]["surface"], "big");
}

#[tokio::test]
async fn surface_snapshots_of_several_sessions_leave_large_ones_out() {
    let front = Front::new().await;
    let (large, small) = (front.session("fake").await, front.session("fake").await);
    for (session, bytes) in [(&large, 900_000), (&small, 1_000)] {
        for n in 0..3 {
            let shown = json!({ "surface": format!("s{n}"), "data": { "text": "x".repeat(bytes) },
                                "components": [{ "id": "root", "component": "Text", "text": { "path": "/text" } }] });
            let reply = front.admin("POST", &format!("/v1/sessions/{session}/surfaces"), shown).await;
            assert_eq!(reply.status, 200, "{reply:?}");
        }
    }
    let all = front.core.directory.snapshots().latest(&plexus::sessions::Filter::all()).await.unwrap();
    for snapshot in all.snapshots {
        let is_large = snapshot.session.session_id.as_str() == large;
        assert_eq!((snapshot.surfaces_omitted, snapshot.surfaces.len()), if is_large { (true, 0) } else { (false, 3) });
    }
    // Of one alone they are whole.
    assert_eq!(surfaces(&front, &large).await.as_array().unwrap().len(), 3);
    let one = front.admin("GET", &format!("/v1/sessions/{large}/snapshot"), Value::Null).await.json();
    assert_eq!((one["surfaces"].as_array().unwrap().len(), &one["surfaces_omitted"]), (3, &Value::Null));
}

#[tokio::test]
async fn mcp_over_http_has_the_tools_of_plexus_mcp() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let path = format!("/mcp/{session}");
    let ask = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let begun = front.admin("POST", &path, ask("initialize", hello)).await;
    assert_eq!((begun.status, &begun.json()["result"]["protocolVersion"]), (200, &json!("2025-06-18")), "{begun:?}");
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(front.admin("POST", &path, note).await.status, 202);
    let listed = front.admin("POST", &path, ask("tools/list", json!({}))).await.json();
    assert_eq!((&listed["id"], listed["result"]["tools"].as_array().unwrap().len()), (&json!(7), 7));

    let tool = |name: &str, arguments: Value| ask("tools/call", json!({ "name": name, "arguments": arguments }));
    let text = |reply: Reply| reply.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text(front.admin("POST", &path, tool("ui_show", form())).await), "shown rev 1");
    let update = json!({ "surface": "deploy", "title": "Now", "expect_rev": 9 });
    assert_eq!(text(front.admin("POST", &path, tool("ui_update", update)).await), "stale, now 1");
    let update = json!({ "surface": "deploy", "title": "Now", "expect_rev": 1 });
    assert_eq!(text(front.admin("POST", &path, tool("ui_update", update)).await), "rev 2");
    let wrong = front.admin("POST", &path, tool("ui_pin", json!({ "surface": "none" }))).await.json();
    assert_eq!(wrong["result"]["isError"], true);
    assert!(wrong["result"]["content"][0]["text"].as_str().unwrap().contains("ui_show"), "{wrong}");
    assert_eq!(surfaces(&front, &session).await[0]["title"], "Now");

    // An answer that comes while the call waits.
    let waits = tool("ui_ask", json!({ "surface": "deploy", "submit": ["go"], "question": "Go?", "wait_s": 20 }));
    let answered = async {
        let request = front.open_request(&session).await;
        let id = request["request_id"].as_str().unwrap();
        let answers = json!({ "answers": { "/name": ["Ada"] } });
        front.admin("POST", &format!("/v1/requests/{id}/answer"), answers).await
    };
    let (asked, answered) = tokio::join!(front.admin("POST", &path, waits), answered);
    assert_eq!(answered.status, 200);
    let said = text(asked);
    assert!(said.starts_with("answered ") && said.contains("Ada"), "{said}");

    for (body, code) in [
        (ask("no/such", json!({})), -32601),
        (ask("server/discover", json!({})), -32601),
        (ask("tools/call", json!({ "name": "rm" })), -32602),
        (json!({ "id": 7, "method": "x" }), -32600),
        (json!({ "no": "message" }), -32700),
    ] {
        let reply = front.admin("POST", &path, body.clone()).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (200, &json!(code)), "{body}: {reply:?}");
    }
    assert_eq!(front.admin("GET", &path, Value::Null).await.status, 405);
    let bearer = format!("Bearer {}", front.admin);
    let old = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "1999-01-01"),
    ];
    assert_eq!(front.send("POST", &path, &old, &ask("ping", json!({})).to_string()).await.status, 400);
    let watcher = front.token(json!({ "scopes": ["watch"] })).await;
    assert_eq!(front.call(&watcher, "POST", &path, ask("ping", json!({}))).await.code(), "scope_missing");
    assert_eq!(front.admin("POST", "/mcp/s_none", ask("ping", json!({}))).await.code(), "session_not_found");
}
