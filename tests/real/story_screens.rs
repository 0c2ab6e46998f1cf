//! The whole product: a real Gemini CLI is started in a terminal and watched in a browser and in `plexus attach`; it asks to run a
//! command; a phone paired by its code gets a push and allows it; all screens show who did, and the run completes. Once normally,
//! and once with the gateway killed while the request is open.
//!
//! `PLEXUS_SHOTS` names a folder for screenshots.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::PathBuf;
use std::time::Instant;

use common::agents::{self, FakeModel};
use common::browser::Browser;
use common::gateway::{Gateway, PATIENCE, exe};
use common::push_service::PushService;
use common::terminal::Terminal;
use serde_json::{Value, json};

const DESK: (u32, u32) = (1440, 900);
const PHONE: (u32, u32) = (390, 844);

/// The focus of a page comes from the window manager; here the story sets it: `look(true)`.
const LOOKING: &str = "
    let looking = true;
    Document.prototype.hasFocus = () => looking;
    window.look = (yes) => { looking = yes; window.dispatchEvent(new Event(yes ? 'focus' : 'blur')); };";

/// A subscription at the story's push service, since the browser's own service is not reachable.
fn subscription(given: &Value) -> String {
    format!(
        "{LOOKING}
        const given = {given};
        const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0)).buffer;
        let subscribed = null;
        PushManager.prototype.getSubscription = async () => subscribed;
        PushManager.prototype.subscribe = async ({{ applicationServerKey }}) => (subscribed = {{
            endpoint: given.endpoint,
            options: {{ applicationServerKey: applicationServerKey.buffer ?? applicationServerKey }},
            getKey: (name) => bytes(given.keys[name]),
            toJSON: () => ({{ endpoint: given.endpoint, keys: given.keys }}),
            unsubscribe: async () => {{ subscribed = null; return true; }},
        }});"
    )
}

/// Screenshots of the story in order, if wanted.
struct Album {
    folder: Option<PathBuf>,
    page: u32,
}

impl Album {
    fn next(&mut self, name: &str, end: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        self.page += 1;
        Some(folder.join(format!("{:02}-{name}.{end}", self.page)))
    }

    async fn page(&mut self, browser: &mut Browser, page: &str, name: &str) {
        if let Some(file) = self.next(name, "png") {
            browser.shoot(page, &file).await;
        }
    }

    async fn terminal(&mut self, browser: &mut Browser, terminal: &Terminal, name: &str) {
        if let Some(file) = self.next(name, "png") {
            let capture = terminal.dir.path().join("capture");
            std::fs::write(&capture, terminal.capture(&["-e"])).unwrap();
            browser.act("", "draw", json!({ "pairs": [[capture, file]] })).await;
        }
    }
}

async fn story(killed: bool) {
    let model = FakeModel::start();
    let push = PushService::start();
    let install = tokio::task::spawn_blocking(agents::install_dir).await.unwrap();
    let work = tempfile::tempdir().unwrap();
    let folder = work.path().join("project");
    std::fs::create_dir(&folder).unwrap();
    let mut browser = Browser::start().await;
    let mut album = Album {
        folder: std::env::var_os("PLEXUS_SHOTS")
            .map(|shots| PathBuf::from(shots).join(if killed { "story-restart" } else { "story" })),
        page: 0,
    };

    // A gateway runs on this machine; its web page is open on the desk.
    let config =
        format!("[push]\nafter = \"1s\"\ncontact = \"mailto:me@example.org\"\nservices = [\"{}\"]\n", push.url);
    let mut gateway = Gateway::start(&config).await;
    keep_port(&gateway);
    let (status, made) = gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] })).await;
    assert!(status == 200 || status == 201, "{made}");
    let link = format!("{}/#code={}", gateway.url, made["code"].as_str().unwrap());
    browser.open("desk", &link, DESK, json!({ "script": LOOKING })).await;
    browser.live("desk").await;

    // The phone is paired: a code, a name, a number that both show.
    browser.act("desk", "goto", json!({ "url": format!("{}/#/devices", gateway.url) })).await;
    browser.click("desk", "#add").await;
    browser.click("desk", "#make").await;
    let code = browser.text("desk", "#code").await;
    album.page(&mut browser, "desk", "desk-pairing").await;
    let given = push.subscription().await;
    let more =
        json!({ "touch": true, "scheme": "dark", "permissions": ["notifications"], "script": subscription(&given) });
    let link = format!("{}/#pair={}", gateway.url, code.trim());
    browser.open("phone", &link, PHONE, more).await;
    browser.fill("phone", "#name", "phone").await;
    album.page(&mut browser, "phone", "phone-joins").await;
    browser.click("phone", "#join").await;
    let number = browser.text("phone", "#number").await;
    assert_eq!(browser.text("desk", "plexus-pairing .number").await.trim(), number.trim(), "both show one number");
    album.page(&mut browser, "phone", "phone-number").await;
    album.page(&mut browser, "desk", "desk-number").await;
    browser.click("desk", "#confirm").await;
    browser.live("phone").await;
    let cookie = browser.act("phone", "run", json!({ "script": "document.cookie + localStorage.length" })).await;
    assert!(!cookie.as_str().unwrap().contains("plx_"), "no script can read what proves the phone: {cookie}");

    // The phone subscribes to notifications.
    browser.act("phone", "goto", json!({ "url": format!("{}/#/settings", gateway.url) })).await;
    browser.click("phone", "plexus-notifications [data-do=on]").await;
    browser.wait("phone", "plexus-notifications [data-do=off]").await;
    browser.act("phone", "run", json!({ "script": "look(false)" })).await;

    // Gemini is started in one terminal and watched in another.
    let setup = agents::gemini(&install, work.path(), model.port());
    let mut env = setup.env.clone();
    let path = std::env::var("PATH").unwrap();
    env.push(("PATH".into(), format!("{}:{path}", install.join("node_modules/.bin").display())));
    env.push(("PLEXUS_HOME".into(), gateway.home.display().to_string()));
    env.push(("COLORTERM".into(), "truecolor".into()));
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let run = Terminal::open(Some(&folder), (100, 30), &env, &[exe(), "run", "gemini"]);
    run.wrote("open it in a browser", 1).await;
    let (_, sessions) = gateway.get("/v1/sessions").await;
    let session = sessions["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    let attach = Terminal::open(Some(&folder), (100, 30), &env, &[exe(), "attach", &session]);
    attach.wrote("gemini", 1).await;
    browser.act("desk", "goto", json!({ "url": format!("{}/#/s/{session}", gateway.url) })).await;
    browser.wait("desk", "plexus-session").await;

    // A request for a command, while neither the desk nor the other terminal has the focus.
    browser.act("desk", "run", json!({ "script": "look(false)" })).await;
    attach.blur();
    run.words("FAKE:shell touch hello.txt");
    run.wrote("FAKE:shell touch hello.txt", 1).await;
    run.keys(&["Enter"]);
    browser.wait("desk", "plexus-card[data-status=open], plexus-card").await;
    run.wrote("touch hello.txt", 1).await;
    attach.wrote("touch hello.txt", 1).await;
    let payload = push.payload("request").await;
    let (_, open) = gateway.get("/v1/requests?state=open").await;
    let request = open["requests"][0]["request_id"].as_str().unwrap().to_owned();
    assert_eq!((&payload["request_id"], &payload["session_id"]), (&json!(request), &json!(session)), "{payload}");
    assert!(payload["body"].as_str().unwrap().contains("touch hello.txt"), "{payload}");
    browser.act("phone", "push", json!({ "data": payload.to_string() })).await;
    let mut shown = Value::Null;
    for _ in 0..200 {
        shown = browser.act("phone", "notifications", json!({})).await;
        if shown.as_array().is_some_and(|all| !all.is_empty()) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(shown[0]["tag"], format!("request:{request}"), "{shown}");
    album.page(&mut browser, "desk", "desk-asked").await;
    album.terminal(&mut browser, &run, "terminal-asked").await;
    album.terminal(&mut browser, &attach, "attach-asked").await;

    if killed {
        // The agent keeps running in its holder, and every screen reconnects by itself.
        gateway.kill();
        attach.wrote("offline", 1).await;
        album.terminal(&mut browser, &attach, "attach-without-gateway").await;
        album.page(&mut browser, "desk", "desk-without-gateway").await;
        gateway.again().await;
        browser.live("desk").await;
    }

    // The notification opens the card; a tap allows it.
    browser.act("phone", "run", json!({ "script": "look(true)" })).await;
    browser.act("phone", "goto", json!({ "url": format!("{}/#/r/{request}", gateway.url) })).await;
    browser.wait("phone", "plexus-card button:has-text(\"Allow once\")").await;
    album.page(&mut browser, "phone", "phone-card").await;
    for _ in 0..20 {
        // A card that has just appeared takes no answer.
        let _ = browser.attempt("phone", "tap", json!({ "on": "plexus-card button:has-text(\"Allow once\")" })).await;
        let (_, now) = gateway.get(&format!("/v1/requests/{request}")).await;
        if now["state"] == "answered" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }

    // All screens show who answered, and the run completes.
    let (_, answered) = gateway.get(&format!("/v1/requests/{request}")).await;
    assert_eq!(
        (&answered["state"], &answered["receipt"]["resolved_by"]["name"]),
        (&json!("answered"), &json!("phone"))
    );
    browser.wait("phone", "plexus-card:has-text(\"Allowed\")").await;
    browser.act("desk", "until", json!({ "script": by_phone() })).await;
    run.wrote("allowed by phone", 1).await;
    attach.wrote("llowed once by phone", 1).await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, now) = gateway.get(&format!("/v1/sessions/{session}")).await;
        if now["state"] == "idle" {
            break;
        }
        assert!(Instant::now() < deadline, "the run does not end: {now}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(folder.join("hello.txt").is_file(), "the command ran");
    run.wrote("done", 1).await;
    album.page(&mut browser, "phone", "phone-allowed").await;
    album.page(&mut browser, "desk", "desk-allowed").await;
    album.terminal(&mut browser, &run, "terminal-allowed").await;
    album.terminal(&mut browser, &attach, "attach-allowed").await;
    let events = gateway.events(&session).await;
    common::gateway::assert_whole(&events);
    let ended = events.iter().filter(|event| event["kind"] == "run_ended").count();
    assert_eq!(ended, 1, "one run, once");
    if !killed {
        // Requests cut off while the gateway was away are expected errors on the console.
        browser.content("desk").await;
        browser.content("phone").await;
    }
}

/// Keeps the address for the next gateway in this home, so that a page can reconnect.
fn keep_port(gateway: &Gateway) {
    let file = gateway.home.parent().unwrap().join("plexus.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let address = gateway.url.strip_prefix("http://").unwrap();
    std::fs::write(file, config.replacen("127.0.0.1:0", address, 1)).unwrap();
}

/// A script that is true once the page shows who allowed it.
fn by_phone() -> String {
    "(() => { const all = (root) => [...root.querySelectorAll('*')].flatMap((el) => [el, ...(el.shadowRoot ? all(el.shadowRoot) : [])]); \
      return all(document).some((el) => el.children.length === 0 && /phone/.test(el.textContent ?? '') && /llowed/.test((el.parentElement ?? el).textContent ?? '')); })()"
        .to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phone_allows_what_gemini_asks_in_a_terminal() {
    story(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phone_allows_it_though_the_gateway_was_killed_in_between() {
    story(true).await;
}
