//! A runtime of the UI protocol through the real gateway: a scripted one (tests/agents/codelia_runtime.mjs) with all the quirks
//! of the real one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::{Path, PathBuf};
use std::time::Instant;

use common::gateway::{Gateway, PATIENCE, alive, assert_whole, family, said};
use serde_json::{Value, json};

struct Stage {
    gateway: Gateway,
    session: String,
    work: tempfile::TempDir,
}

impl Stage {
    /// A gateway with the runtime attached, and its one session.
    async fn new() -> Self {
        Self::with("").await
    }

    /// Starts like [`Stage::new`], with more variables for the runtime.
    async fn with(env: &str) -> Self {
        let mut stage = Self::bare(env).await;
        stage.session = stage.gateway.session("codelia").await;
        stage
    }

    /// Starts like [`Stage::with`], without a session.
    async fn bare(env: &str) -> Self {
        let work = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/codelia_runtime.mjs");
        let config = format!(
            "[[runtime]]\nid = \"codelia\"\ndialect = \"codelia\"\ncommand = [\"node\", {}]\ncwd = {}\noutlive = false\n\
             env = {{ CODELIA_LOG = {}{env} }}\n",
            json!(program),
            json!(work.path()),
            json!(work.path().join("log")),
        );
        Self { gateway: Gateway::start(&config).await, session: String::new(), work }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    async fn prompt(&self, text: &str) -> String {
        self.gateway.prompt(&self.session, text).await
    }

    async fn until_ended(&self, run: &str) -> Vec<Value> {
        self.gateway.until_ended(&self.session, run).await
    }

    async fn answer(&self, request: &Value, answer: Value) -> Value {
        let id = request["request_id"].as_str().unwrap();
        let (status, receipt) = self.gateway.post(&format!("/v1/requests/{id}/answer"), answer).await;
        assert_eq!(status, 200, "{receipt}");
        receipt
    }

    /// The runtime's own log.
    fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file("log")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The messages that the runtime got with this method, in order.
    fn got(&self, method: &str) -> Vec<Value> {
        let got = self.log().into_iter().map(|entry| entry["got"].clone());
        got.filter(|message| message["method"] == method).collect()
    }

    fn ran(&self) -> Vec<Value> {
        self.log().into_iter().filter_map(|entry| entry.get("ran").cloned()).collect()
    }
}

/// The end of the run.
fn ended<'e>(events: &'e [Value], run: &str) -> &'e Value {
    let end = events.iter().find(|event| event["kind"] == "run_ended" && event["run_id"] == run);
    &end.unwrap()["event"]
}

fn status<'e>(events: &'e [Value], run: &str) -> &'e str {
    ended(events, run)["status"].as_str().unwrap()
}

#[tokio::test]
async fn codelia_confirm_is_allowed_denied_with_reason_and_remembered() {
    let stage = Stage::new().await;
    for (n, (answer, runs, words)) in [
        (json!({ "ok": true }), true, "over"),
        (json!({ "option_id": "deny" }), false, "over"),
        (json!({ "ok": false, "reason": "not today" }), false, "because not todaythen on"),
        (json!({ "ok": true, "remember": true }), true, "then on"),
    ]
    .into_iter()
    .enumerate()
    {
        let file = stage.file(&format!("file{n}"));
        let command = format!("touch {}", file.display());
        let run = stage.prompt(&format!("run {command} ;; say then on")).await;
        let request = stage.gateway.open_request(&stage.session).await;
        assert_eq!(request["type"], "confirm");
        let display = request["display"].as_str().unwrap();
        assert!(display.contains(&command), "what will run is shown, not what the runtime says of it: {display}");
        assert!(request["tool_call_id"].is_string(), "{request}");
        let receipt = stage.answer(&request, answer.clone()).await;
        assert_eq!((&receipt["won"], &receipt["ok"]), (&json!(true), &json!(runs)));
        let events = stage.until_ended(&run).await;
        assert_eq!((status(&events, &run), file.exists()), ("completed", runs), "{answer}");
        let text = said(&events, Some(&run));
        assert!(text.contains(words), "{answer}: {text}");
        assert_eq!(
            text.contains("then on"),
            runs || answer["reason"].is_string(),
            "a no without a reason ends the turn"
        );
    }
    let rules: Vec<_> = stage.log().into_iter().filter(|entry| entry.get("rule").is_some()).collect();
    assert_eq!(rules.len(), 1, "remembered once, when asked to");
    assert_eq!(stage.got("initialize").len(), 1, "said once: the last one would win");
    assert_whole(&stage.gateway.events(&stage.session).await);
}

#[tokio::test]
async fn codelia_cancel_with_an_open_confirm_does_not_run_the_command() {
    let stage = Stage::new().await;
    let file = stage.file("cancelled");
    let run = stage.prompt(&format!("run touch {}", file.display())).await;
    let request = stage.gateway.open_request(&stage.session).await;
    let next = stage.prompt("say still here").await;
    let (code, body) = stage.gateway.post(&format!("/v1/sessions/{}/cancel", stage.session), json!({})).await;
    assert!(code == 200 || code == 202, "{code} {body}");
    let events = stage.until_ended(&run).await;
    // The runtime decides the end: the denial ends the turn, unless the cancel arrives first. `cancelling` is reported
    // either way.
    assert!(["completed", "cancelled"].contains(&status(&events, &run)), "{events:?}");
    assert_eq!(ended(&events, &run)["cancelling"], true);
    let (code, late) = stage.gateway.choose(&request, "allow").await;
    assert_eq!((code, &late["state"]), (410, &json!("withdrawn")), "{late}");
    // Queued behind it, so it is sent while the runtime may still be busy.
    let events = stage.until_ended(&next).await;
    assert_eq!(said(&events, Some(&next)), "still hereover");
    assert!(!file.exists() && stage.ran().is_empty());
    let cancels = stage.got("run.cancel");
    assert_eq!(cancels.len(), 1);
    assert!(cancels[0]["params"]["run_id"].is_string(), "without params it would have crashed");
    let order: Vec<Value> = stage.log().into_iter().map(|entry| entry["got"].clone()).collect();
    let denied = order.iter().position(|message| message["result"]["ok"] == false).unwrap();
    let cancelled = order.iter().position(|message| message["method"] == "run.cancel").unwrap();
    assert!(denied < cancelled, "no first, then the cancel: else it hangs");
}

#[tokio::test]
async fn codelia_prompts_wait_their_turn_through_busy_moments() {
    let stage = Stage::new().await;
    let mut runs = vec![stage.prompt("hang").await];
    for n in 0..3 {
        runs.push(stage.prompt(&format!("say number {n}")).await);
    }
    // The first is known to be on once it is refused to nobody: its name is needed for the cancel.
    stage.gateway.post(&format!("/v1/sessions/{}/cancel", stage.session), json!({})).await;
    let events = stage.until_ended(runs.last().unwrap()).await;
    for (n, run) in runs[1..].iter().enumerate() {
        assert_eq!(said(&events, Some(run)), format!("number {n}over"));
    }
    let ends: Vec<_> = events.iter().filter(|event| event["kind"] == "run_ended").collect();
    assert_eq!(ends.iter().map(|event| event["run_id"].as_str().unwrap()).collect::<Vec<_>>(), runs, "one by one");
    assert!(stage.got("run.start").len() > runs.len(), "some were refused as busy, and sent again");
    assert!(ends[1..].iter().all(|event| event["event"]["status"] == "completed"));
}

#[tokio::test]
async fn codelia_pick_without_a_run_delays_the_start_until_answered() {
    let stage = Stage::new().await;
    let run = stage.prompt("pick ;; say picked ;; prompt").await;
    let request = stage.gateway.open_request(&stage.session).await;
    assert_eq!((&request["type"], &request["items"][1]["id"]), (&json!("pick"), &json!("ask")));
    let (code, body) = stage
        .gateway
        .post(&format!("/v1/requests/{}/answer", request["request_id"].as_str().unwrap()), json!({ "ids": ["none"] }))
        .await;
    assert!(code >= 400, "not offered: {body}");
    stage.answer(&request, json!({ "ids": ["ask"] })).await;
    let request = stage.gateway.open_request(&stage.session).await;
    assert_eq!(request["type"], "prompt");
    stage.answer(&request, json!({ "value": "blue" })).await;
    let events = stage.until_ended(&run).await;
    assert_eq!(said(&events, Some(&run)), "pickedvalue \"blue\"over");
    assert!(stage.log().contains(&json!({ "picked": ["ask"] })));
    // Cancelled before it has a name.
    let run = stage.prompt("pick ;; say never").await;
    stage.gateway.open_request(&stage.session).await;
    stage.gateway.post(&format!("/v1/sessions/{}/cancel", stage.session), json!({})).await;
    let events = stage.until_ended(&run).await;
    assert_eq!(status(&events, &run), "cancelled");
    assert!(stage.log().contains(&json!({ "picked": [] })));
}

#[tokio::test]
async fn codelia_unknown_tool_gap_and_repeat_are_reported() {
    let stage = Stage::new().await;
    let run = stage.prompt("tool tui_open ;; hole ;; twice").await;
    let events = stage.until_ended(&run).await;
    let text = said(&events, Some(&run));
    assert!(text.contains(r#""ok":false"#) && text.contains("tui_open is not available"), "{text}");
    assert_eq!(text.matches("once").count(), 1, "a repeat is told once: {text}");
    let gaps = events.iter().filter(|event| event["event"]["code"] == "runtime_gap").count();
    assert_eq!(gaps, 1, "a hole is an event");
    assert!(events.iter().any(|event| event["event"]["type"] == "client.tool.call"), "and the call is shown");
}

#[tokio::test]
async fn codelia_methods_that_act_without_asking_need_an_administrator() {
    let stage = Stage::new().await;
    let device = json!({ "name": "phone", "scopes": ["watch", "prompt", "approve"] });
    let (code, device) = stage.gateway.post("/v1/devices", device).await;
    assert!(code < 300, "{device}");
    let mut phone = stage.gateway.ws_as(device["token"].as_str().unwrap()).await;
    let file = stage.file("shell");
    let call =
        |command: &Path| json!({ "session_id": stage.session, "command": format!("touch {}", command.display()) });
    for (method, params) in [
        ("shell.exec", call(&file)),
        ("tool.call", call(&file)),
        ("nobody.knows", call(&file)),
        ("model.set", json!({ "session_id": stage.session, "name": "two", "scope": "config" })),
    ] {
        let error = phone.call(method, params).await.unwrap_err();
        assert_eq!(error["data"]["code"], "scope_missing", "{method}: {error}");
        assert!(stage.got(method).is_empty(), "{method}");
    }
    let of = json!({ "session_id": stage.session, "name": "two" });
    assert_eq!(phone.call("model.list", of.clone()).await.unwrap()["current"], "one");
    assert_eq!(phone.call("model.set", of).await.unwrap()["source"], "session", "never the configuration by default");
    let mut admin = stage.gateway.ws().await;
    admin.call("shell.exec", call(&file)).await.unwrap();
    assert!(file.exists());
    // Methods that would crash the runtime are never forwarded: the gateway handles them.
    admin.call("run.cancel", json!({ "session_id": stage.session })).await.unwrap_err();
    admin.call("initialize", json!({})).await.unwrap();
    admin.call("session.history", json!({ "session_id": stage.session })).await.unwrap();
    assert!(stage.got("run.cancel").is_empty() && stage.got("session.history").is_empty());
    assert_eq!(stage.got("initialize").len(), 1);
    let run = stage.prompt("say alive").await;
    assert_eq!(said(&stage.until_ended(&run).await, Some(&run)), "aliveover");
}

#[tokio::test]
async fn codelia_serves_one_session_a_process() {
    let stage = Stage::new().await;
    let (code, body) = stage.gateway.post("/v1/sessions", json!({ "runtime_id": "codelia" })).await;
    assert!(code >= 400, "{code} {body}");
    assert_eq!((code, &body["code"]), (409, &json!("one_session")), "{body}");
    assert!(body.to_string().contains("one session"), "with the reason, and what to do: {body}");
}

#[tokio::test]
async fn codelia_stored_conversation_is_opened_with_its_history() {
    let mut stage = Stage::bare("").await;
    let open = |native: &str| json!({ "runtime_id": "codelia", "native_id": native });
    let (code, body) = stage.gateway.post("/v1/sessions", open("nowhere")).await;
    assert!(code >= 400, "{code} {body}");
    let (code, body) = stage.gateway.post("/v1/sessions", open("past")).await;
    assert!(code < 300, "{code} {body}");
    assert_eq!(body["native_id"], "past");
    stage.session = body["session_id"].as_str().unwrap().to_owned();
    let run = stage.prompt("say more").await;
    let events = stage.until_ended(&run).await;
    let of = |kind: &str| -> Vec<&str> {
        let of_kind = events.iter().filter(|event| event["kind"] == kind);
        of_kind.map(|event| event["event"]["content"]["text"].as_str().unwrap()).collect()
    };
    assert_eq!(of("user_message_chunk"), ["past hidden_user_message", "say more"], "the past first");
    assert_eq!(of("agent_message_chunk"), ["past text", "more", "over"]);
    assert_eq!(stage.got("run.start")[0]["params"]["session_id"], "past");
    assert_eq!(stage.got("session.history").len(), 1);
    assert_whole(&stage.gateway.events(&stage.session).await);
}

#[tokio::test]
async fn codelia_servers_and_skills_are_reported_where_supported() {
    let stage = Stage::with(", CODELIA_TELLS = \"1\"").await;
    let path = format!("/v1/sessions/{}", stage.session);
    let (status, mcp) = stage.gateway.get(&format!("{path}/mcp")).await;
    assert_eq!(status, 200, "{mcp}");
    let states: Vec<&str> =
        mcp["servers"].as_array().unwrap().iter().map(|server| server["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["ready", "error", "disabled", "connecting"]);
    assert_eq!(stage.got("mcp.list")[0]["params"], json!({ "scope": "loaded" }));
    let (_, skills) = stage.gateway.get(&format!("{path}/skills")).await;
    assert_eq!((&skills["skills"][0]["name"], &skills["truncated"]), (&json!("release-notes"), &json!(false)));
    assert_eq!(skills["errors"][0]["message"], "no front matter");
    assert_eq!(stage.got("skills.list")[0]["params"]["cwd"], json!(stage.work.path()));
    stage.gateway.get(&format!("{path}/mcp?scope=configured")).await;
    assert_eq!(stage.got("mcp.list")[1]["params"]["scope"], "configured");
    assert_eq!(stage.gateway.get(&format!("{path}/mcp?scope=all")).await.0, 400);

    let silent = Stage::new().await;
    for what in ["mcp", "skills"] {
        let (status, problem) = silent.gateway.get(&format!("/v1/sessions/{}/{what}", silent.session)).await;
        assert_eq!((status, problem["code"].as_str()), (409, Some("listing_unsupported")), "{problem}");
    }
    assert!(silent.got("mcp.list").is_empty() && silent.got("skills.list").is_empty(), "it is not asked");
}

#[tokio::test]
async fn codelia_conversations_are_listed_and_opened() {
    let stage = Stage::bare("").await;
    let (code, page) = stage.gateway.get("/v1/runtimes/codelia/resumable?limit=5").await;
    assert_eq!(code, 200, "{page}");
    assert_eq!(page["resumable"][0]["native_id"], "past");
    assert_eq!(page["resumable"][0]["updated_at"], "2026-01-01T00:00:00.000Z");
    assert_eq!(stage.got("session.list")[0]["params"]["limit"], 6, "one more than is shown");
    let open = json!({ "runtime_id": "codelia", "native_id": "past" });
    let (_, session) = stage.gateway.post("/v1/sessions", open).await;
    let (_, page) = stage.gateway.get("/v1/runtimes/codelia/resumable").await;
    assert_eq!(page["resumable"][0]["session_id"], session["session_id"]);
}

async fn gone(pids: &[u32]) {
    let deadline = Instant::now() + PATIENCE;
    while pids.iter().any(|pid| alive(*pid)) {
        assert!(Instant::now() < deadline, "somebody is left of {pids:?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn codelia_stop_leaves_nothing_of_one_that_ignores_sigterm() {
    let mut stage = Stage::with(", CODELIA_STUBBORN = \"1\"").await;
    let run = stage.prompt("run true").await;
    stage.gateway.open_request(&stage.session).await;
    let log = stage.log();
    let own = |name: &str| u32::try_from(log[0][name].as_u64().unwrap()).unwrap();
    let pids = [own("pid"), own("child")];
    assert!(pids.iter().all(|pid| alive(*pid)));
    let (code, _) = stage.gateway.delete("/v1/runtimes/codelia").await;
    assert!(code < 300);
    gone(&pids).await;
    let events = stage.until_ended(&run).await;
    assert!(events.iter().any(|event| event["kind"] == "request_resolved" && event["event"]["state"] == "orphaned"));
    assert!(stage.gateway.stop().await.success());
    // Another, which the gateway takes along when it stops.
    let mut stage = Stage::with(", CODELIA_STUBBORN = \"1\"").await;
    let pids = family(stage.gateway.pid());
    assert!(pids.len() >= 3, "a holder, the runtime and its child: {pids:?}");
    assert!(stage.gateway.stop().await.success());
    gone(&pids).await;
}
