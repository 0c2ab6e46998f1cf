//! What agents draw, in a real browser: every component and what a person does with it (`tests/web/surfaces.test.mjs`), Home and
//! pinned surfaces (`home.test.mjs`), and a pinned surface that outlives the gateway.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use crate::story_surfaces::{config, server};
use common::agents::{self, FakeModel};
use common::browser::{Browser, play};
use common::gateway::{Gateway, exe, held_runtime};
use common::moments::until_so;
use serde_json::{Value, json};

const PHONE: (u32, u32) = (390, 844);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_surfaces_of_every_kind_in_a_browser() {
    let modules = tokio::task::spawn_blocking(agents::page_dir).await.unwrap();
    let modules = [("PLEXUS_WEB_MODULES", modules.to_str().unwrap())];
    play("surfaces.test.mjs", &Gateway::demo().await, &modules).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_home_and_pinned_surfaces_in_a_browser() {
    play("home.test.mjs", &Gateway::demo().await, &[]).await;
}

/// A dashboard that asks.
fn dashboard() -> Value {
    json!({
        "surface": "move", "title": "Move to the new store", "pin": true, "data": { "done": 0.25, "log": ["began"], "note": "" },
        "components": [
            { "id": "root", "component": "Column", "children": ["bar", "log", "note", "go"] },
            { "id": "bar", "component": "Progress", "label": "Tables", "value": { "path": "/done" } },
            { "id": "log", "component": "List", "children": { "componentId": "line", "path": "/log" } },
            { "id": "line", "component": "Text", "text": { "path": "" } },
            { "id": "note", "component": "TextField", "label": "Note", "value": { "path": "/note" } },
            { "id": "go", "component": "Button", "child": "go-text", "action": { "event": { "name": "submit" } } },
            { "id": "go-text", "component": "Text", "text": "Go on" },
        ],
    })
}

/// Keeps the address for the next gateway in this home, so that a page can reconnect.
fn keep_port(gateway: &Gateway) {
    let file = gateway.home.parent().unwrap().join("plexus.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let address = gateway.url.strip_prefix("http://").unwrap();
    std::fs::write(file, config.replacen("127.0.0.1:0", address, 1)).unwrap();
}

/// The text of a surface.
async fn shown(browser: &mut Browser) -> String {
    browser.text("phone", "plexus-surface .drawn").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_pinned_surface_is_the_same_after_the_gateway_was_killed() {
    let mut gateway = Gateway::start(&held_runtime("demo", &[exe(), "agent", "demo"], "")).await;
    keep_port(&gateway);
    let session = gateway.session("demo").await;
    let surfaces = format!("/v1/sessions/{session}/surfaces");
    let (_, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve"] })).await;
    let mut browser = Browser::start().await;
    let link = format!("{}/#code={}", gateway.url, made["code"].as_str().unwrap());
    browser.open("phone", &link, PHONE, json!({ "touch": true, "scheme": "dark" })).await;
    browser.live("phone").await;
    browser.act("phone", "goto", json!({ "url": format!("{}/#/home", gateway.url) })).await;
    assert_eq!(gateway.post(&surfaces, dashboard()).await.0, 200);
    browser.wait("phone", "plexus-home plexus-surface >> text=began").await;
    let more = json!({ "data": [{ "path": "/done", "value": 0.5 }, { "path": "/log", "append": ["half"] }] });
    assert_eq!(gateway.patch(&format!("{surfaces}/move"), more).await.0, 200);
    browser.wait("phone", "plexus-home plexus-surface >> text=half").await;
    let ask = json!({ "surface": "move", "submit": ["go"], "question": "Go on?" });
    let (status, asked) = gateway.post(&format!("/v1/sessions/{session}/asks"), ask).await;
    assert_eq!(status, 200, "{asked}");
    let waits = "plexus-home plexus-surface >> text=Waits for your answer";
    browser.wait("phone", waits).await;
    let before = shown(&mut browser).await;

    // Killed while it is looked at: it stays, and says that it may be out of date.
    gateway.kill();
    browser.wait("phone", "plexus-home plexus-surface >> text=Out of date").await;
    assert_eq!(shown(&mut browser).await, before);
    gateway.again().await;
    browser.live("phone").await;
    let current = json!({ "on": "plexus-home plexus-surface >> text=Out of date", "state": "detached" });
    browser.act("phone", "wait", current).await;
    assert_eq!(shown(&mut browser).await, before);

    // Reloaded: the same, still asking, and answered by touch.
    browser.act("phone", "reload", json!({})).await;
    browser.live("phone").await;
    browser.wait("phone", waits).await;
    assert_eq!(shown(&mut browser).await, before);
    browser.fill("phone", "plexus-home plexus-surface input", "slowly").await;
    browser.act("phone", "tap", json!({ "on": "plexus-home plexus-surface button:has-text('Go on')" })).await;
    browser.wait("phone", "plexus-home plexus-surface >> text=Answered.").await;
    let outcome = format!("/v1/sessions/{session}/asks/{}", asked["ask_id"].as_str().unwrap());
    until_so("the answer is there", async || gateway.get(&outcome).await.1["state"] == "answered").await;
    let (_, answered) = gateway.get(&outcome).await;
    assert!(answered["answer"].to_string().contains("slowly"), "{answered}");

    // The session has it in a place of its own, with what came since.
    let more = json!({ "data": [{ "path": "/log", "append": ["moved"] }] });
    until_so("the agent is attached again", async || {
        gateway.patch(&format!("{surfaces}/move"), more.clone()).await.0 == 200
    })
    .await;
    browser.wait("phone", "plexus-home plexus-surface >> text=moved").await;
    browser.act("phone", "goto", json!({ "url": format!("{}/#/s/{session}", gateway.url) })).await;
    browser.act("phone", "tap", json!({ "on": "plexus-session [role=tab]:has-text('Move to the new store')" })).await;
    browser.wait("phone", "plexus-session .pinned plexus-surface >> text=moved").await;
    browser.content("phone").await;
}

/// The example of the README: a real agent keeps a dashboard of a long task, which a phone has on Home.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_dashboard_of_gemini_is_pinned_on_a_phone() {
    let (dir, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let model = FakeModel::start();
    let setup = agents::gemini(&agents::install_dir(), work.path(), model.port());
    let gateway = Gateway::start_in(dir, &config("acp", &setup, work.path())).await;
    let session = gateway.session("agent").await;
    let (_, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve"] })).await;
    let mut browser = Browser::start().await;
    let link = format!("{}/#code={}", gateway.url, made["code"].as_str().unwrap());
    browser.open("phone", &link, PHONE, json!({ "touch": true, "scheme": "light" })).await;
    browser.live("phone").await;
    browser.act("phone", "goto", json!({ "url": format!("{}/#/home", gateway.url) })).await;

    let named = json!({ "title": "Upgrade the crates" });
    assert_eq!(gateway.patch(&format!("/v1/sessions/{session}"), named).await.0, 200);
    let crates = ["serde 1.0 -> 2.0", "tokio 1.49 -> 2.0", "hyper 1.8 -> 2.0", "clap 4.6 -> 5.0"];
    let row = |at: usize, state: &str| json!({ "crate": crates[at], "state": state });
    let shown = json!({
        "surface": "upgrade", "title": "Upgrading the crates", "pin": true,
        "data": { "done": 0, "rows": (0..4).map(|at| row(at, "waits")).collect::<Vec<_>>(), "seconds": [41] },
        "components": [
            { "id": "root", "component": "Column", "children": ["bar", "rows", "chart", "stop"] },
            { "id": "bar", "component": "Progress", "label": "Crates", "value": { "path": "/done" } },
            { "id": "rows", "component": "Table", "rows": { "path": "/rows" }, "columns": [
                { "key": "crate", "label": "Crate" }, { "key": "state", "label": "State" }] },
            { "id": "chart", "component": "Chart", "kind": "line", "title": "Test suite", "unit": "s",
              "series": [{ "label": "seconds", "values": { "path": "/seconds" } }] },
            { "id": "stop", "component": "Button", "child": "stop-text", "action": { "event": { "name": "stop" } } },
            { "id": "stop-text", "component": "Text", "text": "Stop after this one" },
        ],
    });
    let update = json!({ "surface": "upgrade", "data": [
        { "path": "/done", "value": 0.5 }, { "path": "/rows/0", "value": row(0, "upgraded") },
        { "path": "/rows/1", "value": row(1, "upgraded") }, { "path": "/rows/2", "value": row(2, "testing") },
        { "path": "/seconds", "append": [39, 44, 36, 33] }] });
    let tool = |name: &str| format!("mcp_{}_{name}", server(&session));
    let script =
        format!("FAKE:tool {} {shown} ;; tool {} {update} ;; text half done", tool("ui_show"), tool("ui_update"));
    let run = gateway.prompt(&session, &script).await;
    gateway.until_ended(&session, &run).await;
    browser.wait("phone", "plexus-home plexus-surface >> text=testing").await;
    browser.wait("phone", "plexus-home plexus-surface >> text=Stop after this one").await;
    browser.content("phone").await;
    if let Ok(shots) = std::env::var("PLEXUS_SHOTS") {
        browser.shoot("phone", &std::path::Path::new(&shots).join("dashboard.png")).await;
    }
}
