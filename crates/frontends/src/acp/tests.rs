use agent_client_protocol_schema::v1;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::question::{self, Reply};
use super::shape::{self, ClientSupport};
use plexus_protocol::{
    Choice, Cursor, Epoch, Event, Item, Kind, Offer, Origin, Position, Request, RequestId, RequestState, RequestType,
    Risk, RunId, RuntimeId, SessionId, Timestamp,
};

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

fn request(kind: RequestType, native: Option<Value>) -> Request {
    let offer = |id: &str, kind| Offer { id: id.into(), label: id.into(), kind, for_session: false };
    let item = |id: &str| Item { id: id.into(), label: id.to_uppercase(), detail: None };
    let pick = kind == RequestType::Pick;
    let asks = !pick && kind != RequestType::Prompt;
    Request {
        request_id: RequestId::trusted("q_1"),
        session_id: SessionId::trusted("s_1"),
        run_id: RunId::trusted("r_1"),
        runtime_id: RuntimeId::trusted("demo"),
        generation: 1,
        kind,
        state: RequestState::Open,
        title: "run it".into(),
        message: None,
        subject: plexus_protocol::About::Unreadable,
        display: "$ ls".into(),
        display_truncated: false,
        display_bytes: None,
        risk_reasons: vec![],
        revision: 0,
        changed: false,
        warnings: vec!["careful".into()],
        risk: plexus_protocol::Risk::Elevated,
        digest: "d".into(),
        options: match asks {
            true => vec![
                offer("yes", Choice::AllowOnce),
                offer("always", Choice::AllowAlways),
                offer("no", Choice::RejectOnce),
                offer("huh", Choice::Other),
            ],
            false => Vec::new(),
        },
        items: if pick { vec![item("a"), item("b")] } else { Vec::new() },
        multi: false,
        default_value: (kind == RequestType::Prompt).then(|| "main".into()),
        multiline: false,
        secret: false,
        danger: false,
        danger_level: None,
        allow_reason: false,
        allow_remember: true,
        observe_only: false,
        editable: None,
        tool_call_id: None,
        native: native.map(|native| raw(&native)),
        expires_at: None,
        opened_at: Timestamp::default(),
        receipt: None,
    }
}

fn cursor() -> Cursor {
    "e1:7".parse().unwrap()
}

/// Returns the question for the client: method and params, which the published types take.
fn asked(request: &Request, support: ClientSupport) -> (String, Value) {
    let message: Value = serde_json::from_slice(&question::question(request, &cursor(), support, None)).unwrap();
    assert_eq!(message["id"], "q_1");
    let params = message["params"].clone();
    assert_eq!(params["sessionId"], "s_1");
    let ours = &params["_meta"]["plexus"];
    assert_eq!((&ours["request_id"], &ours["cursor"], &ours["digest"]), (&json!("q_1"), &json!("e1:7"), &json!("d")));
    match message["method"].as_str().unwrap() {
        "session/request_permission" => {
            serde_json::from_value::<v1::RequestPermissionRequest>(params.clone()).unwrap();
        }
        "elicitation/create" => {
            let read = serde_json::from_value::<v1::CreateElicitationRequest>(params.clone()).unwrap();
            assert!(matches!(read.mode, v1::ElicitationMode::Form(_) | v1::ElicitationMode::Url(_)));
        }
        other => panic!("{other}"),
    }
    (message["method"].as_str().unwrap().to_owned(), params)
}

const FORMS: ClientSupport = ClientSupport {
    events: false,
    forms: true,
    pages: true,
    attach: false,
    reads: false,
    writes: false,
    terminals: false,
};

fn answer(request: &Request, result: Value) -> Option<Value> {
    match question::reply(request, &raw(&result)).unwrap() {
        Reply::Answer(answer) => Some(serde_json::to_value(answer).unwrap()),
        Reply::NoAnswer => None,
        Reply::Deferred => Some(json!("for the desk")),
    }
}

#[test]
fn editable_input_is_shown_and_the_edit_is_read() {
    let editable = plexus_protocol::Editable { label: "Command".into(), value: "ls".into() };
    let mut asked = request(RequestType::Permission, None);
    asked.editable = Some(editable);
    let message: Value =
        serde_json::from_slice(&question::question(&asked, &cursor(), ClientSupport::default(), None)).unwrap();
    assert_eq!(message["params"]["_meta"]["plexus"]["editable"]["value"], "ls");
    let result = json!({ "outcome": { "outcome": "selected", "optionId": "yes" }, "_meta": { "plexus": { "edited": "ls -l" } } });
    assert_eq!(answer(&asked, result), Some(json!({ "option_id": "yes", "edited": "ls -l" })));
}

#[test]
fn acp_agent_question_passes_unchanged_but_for_the_session() {
    let native = json!({
        "sessionId": "the agent's own", "toolCall": { "toolCallId": "c", "x": [1, 2.50], "rawInput": { "command": "ls" } },
        "options": [{ "optionId": "yes", "name": "Yes", "kind": "allow_once", "_meta": { "own": 1 } }],
        "_meta": { "agent": 1 }, "more": null,
    });
    let (method, params) = asked(&request(RequestType::Permission, Some(native.clone())), ClientSupport::default());
    assert_eq!(method, "session/request_permission");
    for member in ["toolCall", "more"] {
        assert_eq!(params[member], native[member]);
    }
    // The verb of an option is the gateway's; what else the agent sent with it is its own.
    let option = &params["options"][0];
    assert_eq!((&option["optionId"], &option["kind"]), (&json!("yes"), &json!("allow_once")));
    assert_eq!((&option["name"], &option["_meta"]["own"]), (&json!("Allow once “yes”"), &json!(1)));
    assert_eq!(params["_meta"]["agent"], 1);
    // One that says nothing of what is asked says it here: an editor shows no more than this.
    let blind = json!({ "sessionId": "s", "toolCall": { "toolCallId": "c", "rawInput": {} }, "options": [] });
    let (_, params) = asked(&request(RequestType::Permission, Some(blind)), ClientSupport::default());
    let call = &params["toolCall"];
    assert_eq!((&call["toolCallId"], &call["title"]), (&json!("c"), &json!("run it")));
    assert_eq!(call["content"][0]["content"]["text"], "$ ls");
}

#[test]
fn confirms_become_permissions_and_unknown_options_do_not_allow() {
    let request = request(RequestType::Confirm, Some(json!({ "title": "run it" })));
    let (_, params) = asked(&request, ClientSupport::default());
    let kinds: Vec<&Value> = params["options"].as_array().unwrap().iter().map(|option| &option["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "reject_once", "reject_once", "allow_always"]);
    let chosen = json!({ "outcome": { "outcome": "selected", "optionId": "always" } });
    assert_eq!(answer(&request, chosen), Some(json!({ "option_id": "always" })));
    assert_eq!(answer(&request, json!({ "outcome": { "outcome": "cancelled" } })), None, "it decides for nobody");
    for bad in [json!({}), json!(1), json!({ "outcome": { "outcome": "selected" } }), json!({ "outcome": "yes" })] {
        assert!(question::reply(&request, &raw(&bad)).is_err(), "{bad}");
    }
}

#[test]
fn agent_with_misleading_labels_never_names_a_button() {
    let labels =
        ["Reject", "Deny this, and stop asking", "Allow just this once", "", "Deny", "\u{202e}wolla", &"x".repeat(200)];
    for n in 0..labels.len() {
        let mut asked = request(RequestType::Permission, None);
        for (option, label) in asked.options.iter_mut().zip(labels.iter().cycle().skip(n)) {
            option.label = (*label).to_owned();
        }
        let named: Vec<Value> =
            asked.options.iter().map(|offer| json!({ "optionId": offer.id, "name": offer.label })).collect();
        let native = json!({ "toolCall": { "toolCallId": "c", "rawInput": {} }, "options": named });
        for native in [None, Some(raw(&native))] {
            let asked = Request { native, ..asked.clone() };
            let (_, params) = self::asked(&asked, ClientSupport::default());
            for (option, (id, verb)) in params["options"].as_array().unwrap().iter().zip([
                ("yes", "Allow once"),
                ("huh", "Answer"),
                ("no", "Deny"),
                ("always", "Always allow"),
            ]) {
                let name = option["name"].as_str().unwrap();
                let label = name.strip_prefix(verb).unwrap_or_else(|| panic!("{id}: {name}"));
                assert!(option["optionId"] == id && (label.is_empty() || label.starts_with(" “")), "{option}");
                assert!(name.chars().count() <= 100 && !name.contains('\u{202e}'), "{name}");
            }
        }
    }
}

#[test]
fn limited_device_is_offered_what_it_may_choose() {
    let offered = |request: &Request, limit: Risk| -> Vec<String> {
        let message = question::question(request, &cursor(), FORMS, Some(limit));
        let message: Value = serde_json::from_slice(&message).unwrap();
        let Some(options) = message["params"]["options"].as_array() else { return vec![message["method"].to_string()] };
        options.iter().map(|option| option["optionId"].as_str().unwrap().to_owned()).collect()
    };
    let form = json!({ "mode": "form", "message": "m", "requestedSchema": { "type": "object", "properties": {} } });
    let page = json!({ "mode": "url", "message": "m", "url": "https://x", "elicitationId": "e" });
    let native = json!({ "toolCall": { "toolCallId": "c", "rawInput": { "command": "ls" } }, "options": [] });
    for (kind, native, low, above) in [
        (RequestType::Permission, None, &["yes", "huh", "no"][..], &["no", "plexus:later"][..]),
        (RequestType::Permission, Some(native), &["yes", "huh", "no"], &["no", "plexus:later"]),
        (RequestType::Prompt, None, &["\"elicitation/create\""], &["plexus:skip", "plexus:later"]),
        (RequestType::Prompt, Some(form), &["\"elicitation/create\""], &["plexus:skip", "plexus:later"]),
        (RequestType::Pick, None, &["\"elicitation/create\""], &["plexus:skip", "plexus:later"]),
        (RequestType::Elicitation, Some(page), &["\"elicitation/create\""], &["no", "plexus:later"]),
    ] {
        let mut asked = Request { risk: Risk::Low, ..request(kind, native) };
        if kind == RequestType::Elicitation {
            asked.options = request(RequestType::Permission, None).options;
        }
        assert_eq!(offered(&asked, Risk::Low), low, "{kind:?}");
        asked.risk = Risk::Danger;
        assert_eq!(offered(&asked, Risk::Elevated), above, "{kind:?}");
        let later = json!({ "outcome": { "outcome": "selected", "optionId": "plexus:later" } });
        assert_eq!(answer(&asked, later), Some(json!("for the desk")), "{kind:?}");
    }
}

#[test]
fn prompts_and_picks_become_forms_or_permissions() {
    let prompt = request(RequestType::Prompt, None);
    assert_eq!(asked(&prompt, FORMS).0, "elicitation/create");
    let filled = json!({ "action": "accept", "content": { "answer": "dev" } });
    assert_eq!(answer(&prompt, filled), Some(json!({ "value": "dev" })));
    assert_eq!(answer(&prompt, json!({ "action": "decline" })), Some(json!({ "value": null })));
    assert_eq!(answer(&prompt, json!({ "action": "cancel" })), None);
    let (method, params) = asked(&prompt, ClientSupport::default());
    assert_eq!(method, "session/request_permission");
    let choose = |params: &Value, n: usize| json!({ "outcome": { "outcome": "selected", "optionId": params["options"][n]["optionId"] } });
    assert_eq!(answer(&prompt, choose(&params, 0)), Some(json!({ "value": "main" })));
    assert_eq!(answer(&prompt, choose(&params, 1)), Some(json!({ "value": null })));

    let pick = request(RequestType::Pick, None);
    let (_, params) = asked(&pick, FORMS);
    assert_eq!(params["requestedSchema"]["properties"]["answer"]["oneOf"][1]["const"], "b");
    let filled = json!({ "action": "accept", "content": { "answer": "b" } });
    assert_eq!(answer(&pick, filled), Some(json!({ "ids": ["b"] })));
    let (_, params) = asked(&pick, ClientSupport::default());
    assert_eq!(answer(&pick, choose(&params, 0)), Some(json!({ "ids": ["a"] })));
    assert_eq!(answer(&pick, choose(&params, 2)), Some(json!({ "ids": [] })));
    let several = Request { multi: true, ..pick };
    asked(&several, FORMS);
    let filled = json!({ "action": "accept", "content": { "answer": ["a", "b"] } });
    assert_eq!(answer(&several, filled), Some(json!({ "ids": ["a", "b"] })));
}

#[test]
fn agent_forms_and_pages_pass_to_clients_that_take_them() {
    let schema =
        json!({ "type": "object", "properties": { "n": { "type": "integer" }, "name": { "type": "string" } } });
    let native = json!({
        "sessionId": "own", "requestId": 4, "mode": "form", "message": "Which?", "requestedSchema": schema,
    });
    let form = request(RequestType::Prompt, Some(native));
    let (method, params) = asked(&form, FORMS);
    assert_eq!((method.as_str(), &params["requestedSchema"]), ("elicitation/create", &schema));
    assert!(params.get("requestId").is_none(), "it is bound to the session now");
    let content = json!({ "n": 4, "name": "x" });
    let text = answer(&form, json!({ "action": "accept", "content": content })).unwrap();
    assert_eq!(serde_json::from_str::<Value>(text["value"].as_str().unwrap()).unwrap(), content);

    let page =
        json!({ "sessionId": "own", "mode": "url", "message": "Sign in", "url": "https://x", "elicitationId": "e" });
    let page = request(RequestType::Elicitation, Some(page));
    assert_eq!(asked(&page, FORMS).0, "elicitation/create");
    assert_eq!(answer(&page, json!({ "action": "accept" })), Some(json!({ "option_id": "accept" })));
    assert_eq!(answer(&page, json!({ "action": "decline" })), Some(json!({ "option_id": "decline" })));
    assert_eq!(asked(&page, ClientSupport::default()).0, "session/request_permission");
}

fn event(kind: Kind, body: &str, native: Option<&str>) -> Event {
    let native = native.map(|native| bytes::Bytes::copy_from_slice(native.as_bytes()));
    let at = native.as_ref().and_then(|native| native.windows(body.len()).position(|part| part == body.as_bytes()));
    let body = match (&native, at) {
        (Some(native), Some(at)) => native.slice(at..at + body.len()),
        _ => bytes::Bytes::copy_from_slice(body.as_bytes()),
    };
    Event {
        position: Position(7),
        origin: std::sync::Arc::new(Origin {
            session_id: SessionId::trusted("s_1"),
            runtime_id: RuntimeId::trusted("demo"),
            dialect: "acp".into(),
        }),
        run_id: RunId::trusted("r_1"),
        seq: 3,
        at: Timestamp::default(),
        kind,
        body,
        native,
    }
}

#[test]
fn surface_is_a_tool_call_with_its_text_and_a_change_of_one_is_nothing() {
    let whole = r#"{"surface":"s","rev":1,"title":"Deploy","messages":[
        {"version":"v0.9","createSurface":{"surfaceId":"s","catalogId":"plexus:catalog/1"}},
        {"version":"v0.9","updateComponents":{"surfaceId":"s","components":[
            {"id":"root","component":"Text","text":"Ready"}]}}]}"#;
    let message: Value =
        serde_json::from_slice(&shape::surface(&event(Kind::SurfaceUpdated, whole, None)).unwrap()).unwrap();
    serde_json::from_value::<v1::SessionNotification>(message["params"].clone()).unwrap();
    let update = &message["params"]["update"];
    assert_eq!((&update["toolCallId"], &update["title"]), (&json!("plexus-surface-s"), &json!("Surface: Deploy")));
    assert_eq!(update["content"][0]["content"]["text"], "Ready");
    for other in [
        r#"{"surface":"s","rev":2,"base":1,"messages":[]}"#,
        r#"{"surface":"s","rev":2,"closed":true,"messages":[]}"#,
        "7",
    ] {
        assert!(shape::surface(&event(Kind::SurfaceUpdated, other, None)).is_none(), "{other}");
    }
}

#[test]
fn update_keeps_the_agents_bytes_and_its_meta_beside_ours() {
    let body = r#"{ "sessionUpdate":"agent_message_chunk", "content":{"type":"text","text":"a\u00e9"},"x":1.50 }"#;
    let native = format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"own","update":{body},"_meta":{{"agent":[1]}}}}}}"#
    );
    let epoch = Epoch::new("e1").unwrap();
    for (native, own) in [(Some(native.as_str()), json!([1])), (None, Value::Null)] {
        let text = String::from_utf8(shape::update(&event(Kind::AgentMessageChunk, body, native), &epoch)).unwrap();
        assert!(text.contains(&format!(r#""update":{body},"#)), "{text}");
        let message: Value = serde_json::from_str(&text).unwrap();
        serde_json::from_value::<v1::SessionNotification>(message["params"].clone()).unwrap();
        assert_eq!(message["params"]["_meta"]["agent"], own);
        let ours = &message["params"]["_meta"]["plexus"];
        assert_eq!((&ours["cursor"], &ours["seq"], &ours["run_id"]), (&json!("e1:7"), &json!(3), &json!("r_1")));
    }
}

#[test]
fn run_end_is_an_acp_stop_reason_or_the_agents_own_error() {
    let epoch = Epoch::new("e1").unwrap();
    for (body, reason) in [
        (r#"{"status":"completed","stop_reason":"end_turn"}"#, "end_turn"),
        (r#"{"status":"completed","stop_reason":"max_tokens"}"#, "max_tokens"),
        (r#"{"status":"completed","stop_reason":"max_turn_requests"}"#, "max_turn_requests"),
        (r#"{"status":"completed","stop_reason":"refusal"}"#, "refusal"),
        (r#"{"status":"completed","stop_reason":"something new"}"#, "end_turn"),
        (r#"{"status":"completed"}"#, "end_turn"),
        (r#"{"status":"cancelled","stop_reason":"end_turn"}"#, "cancelled"),
        (r#"{"status":"completed","stop_reason":"end_turn","cancelling":true}"#, "cancelled"),
    ] {
        let ended = shape::prompt_ended("1.5", &event(Kind::RunEnded, body, None), &epoch);
        let message: Value = serde_json::from_slice(&ended).unwrap();
        serde_json::from_value::<v1::PromptResponse>(message["result"].clone()).unwrap();
        assert_eq!((&message["result"]["stopReason"], &message["id"]), (&json!(reason), &json!(1.5)), "{body}");
    }
    let body = r#"{"status":"error","message":"out of luck"}"#;
    let own = r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32123,"message":"no money","data":{"x":1}}}"#;
    for (native, code) in [(Some(own), -32123), (None, -32603)] {
        let ended = shape::prompt_ended("1", &event(Kind::RunEnded, body, native), &epoch);
        let message: Value = serde_json::from_slice(&ended).unwrap();
        assert_eq!(message["error"]["code"], code);
    }
}

#[test]
fn session_settings_are_the_last_ones_reported() {
    let mut settings = shape::Settings::default();
    let modes =
        json!({ "currentModeId": "a", "availableModes": [{ "id": "a", "name": "A" }, { "id": "b", "name": "B" }] });
    let opened = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "a", "_meta": { "modes": modes } });
    settings.take("current_mode_update", opened.to_string().as_bytes());
    settings.take("current_mode_update", br#"{"sessionUpdate":"current_mode_update","currentModeId":"b"}"#);
    settings.take("config_option_update", br#"{"configOptions":[]}"#);
    settings.take("agent_message_chunk", b"nonsense");
    let members: Value = settings.members().iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    serde_json::from_value::<v1::LoadSessionResponse>(members.clone()).unwrap();
    assert_eq!(members["modes"]["currentModeId"], "b");
    assert_eq!(members["modes"]["availableModes"], modes["availableModes"]);
    assert_eq!(members["configOptions"], json!([]));
}
