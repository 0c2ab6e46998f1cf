//! Surfaces drawn by real agents, unchanged: each starts `plexus mcp` by what the gateway tells it, shows a form, updates it, asks by
//! it and gets the answer, without a question to people before any call; the gateway is killed in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::path::Path;
use std::process::Stdio;

use common::agents::{self, AgentSetup, FakeModel};
use common::gateway::{Gateway, PATIENCE};
use common::moments::until_so;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The name of the session's MCP server, as the gateway makes it.
pub(crate) fn server(session: &str) -> String {
    let hash = Sha256::digest(format!("plexus surfaces {session}"));
    format!("plexus_{}", &data_encoding::BASE32_NOPAD.encode(&hash).to_ascii_lowercase()[..8])
}

pub(crate) fn config(dialect: &str, setup: &AgentSetup, cwd: &Path) -> String {
    let env: Vec<String> = setup.env.iter().map(|(name, value)| format!("{name} = {}", json!(value))).collect();
    let auth = setup.auth_method.iter().map(|method| format!("auth_method = \"{method}\"\n"));
    let meta = setup.session_meta.iter().map(|_| {
        "session_meta = { claudeCode = { options = { allowDangerouslySkipPermissions = false } } }\n".to_owned()
    });
    let more: String = auth.chain(meta).collect();
    format!(
        "[[runtime]]\nid = \"agent\"\ndialect = \"{dialect}\"\ncommand = {}\ncwd = {}\nenv = {{ {} }}\n{more}",
        json!(setup.command),
        json!(cwd),
        env.join(", "),
    )
}

fn form() -> Value {
    json!({
        "surface": "deploy", "title": "Deploy", "data": { "name": "" },
        "components": [
            { "id": "root", "component": "Column", "children": ["chart", "name", "go"] },
            { "id": "chart", "component": "Chart", "kind": "bar", "series": [{ "label": "ms", "values": { "path": "/times" } }] },
            { "id": "name", "component": "TextField", "label": "Name", "value": { "path": "/name" } },
            { "id": "go", "component": "Button", "child": "label",
              "action": { "event": { "name": "submit", "context": { "who": { "path": "/name" } } } } },
            { "id": "label", "component": "Text", "text": "Go" },
        ],
    })
}

async fn draws(Drawer { dialect, setup, tool, .. }: Drawer) {
    let (dir, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let model = FakeModel::start();
    let setup = setup(&agents::install_dir(), work.path(), model.port());
    let mut gateway = Gateway::start_in(dir, &config(dialect, &setup, work.path())).await;
    plays(&mut gateway, tool).await;
}

/// Plays [`STEPS`] with the runtime `agent`.
async fn plays(gateway: &mut Gateway, tool: fn(&str, &str) -> String) {
    let session = gateway.session("agent").await;
    let named = |name: &str| tool(&server(&session), name);
    let update = json!({ "surface": "deploy", "data": [{ "path": "/times", "append": [3, 5, 8] }] });
    let pin = json!({ "surface": "deploy" });
    let script = format!(
        "FAKE:tool {} {} ;; tool {} {update} ;; tool {} {pin} ;; text drawn",
        named("ui_show"),
        form(),
        named("ui_update"),
        named("ui_pin"),
    );
    let run = gateway.prompt(&session, &script).await;
    let events = gateway.until_ended(&session, &run).await;
    let path = format!("/v1/sessions/{session}/surfaces");
    let shown = gateway.get(&path).await.1["surfaces"][0].clone();
    assert_eq!((&shown["rev"], &shown["pinned"]), (&json!(3), &json!(true)), "{shown}\n{}", json!(events));
    let data = &shown["messages"].as_array().unwrap().last().unwrap()["updateDataModel"]["value"];
    assert_eq!(data["times"], json!([3, 5, 8]));
    let asked = events.iter().filter(|event| event["kind"] == "request_opened").count();
    assert_eq!(asked, 0, "nobody is asked before a drawing: {}", json!(events));

    // A question, with the gateway killed while it is open.
    let ask = json!({ "surface": "deploy", "submit": ["go"], "question": "Deploy?", "wait_s": 40 });
    let run = gateway.prompt(&session, &format!("FAKE:tool {} {ask} ;; text asked", named("ui_ask"))).await;
    let request = gateway.open_request(&session).await;
    assert_eq!(request["title"], "Deploy?");
    gateway.kill();
    gateway.again().await;
    let answers = json!({ "answers": { "/name": ["Ada"] } });
    let id = request["request_id"].as_str().unwrap();
    let (status, receipt) = gateway.post(&format!("/v1/requests/{id}/answer"), answers).await;
    assert_eq!((status, &receipt["won"]), (200, &json!(true)), "{receipt}");
    let events = gateway.until_ended(&session, &run).await;
    let said = json!(events).to_string();
    assert!(said.contains("answered") && said.contains("Ada"), "the agent has the answer: {said}");
    gateway.delete(&format!("/v1/sessions/{session}")).await;
    until_so("the session is gone", async || gateway.get(&path).await.0 == 404).await;
}

/// An agent that draws: how it is called, and how its model names a tool of a server.
struct Drawer {
    name: &'static str,
    dialect: &'static str,
    setup: fn(&Path, &Path, u16) -> AgentSetup,
    tool: fn(&str, &str) -> String,
}

const GEMINI: Drawer = Drawer {
    name: "Gemini CLI",
    dialect: "acp",
    setup: agents::gemini,
    tool: |server, tool| format!("mcp_{server}_{tool}"),
};
const OPENCODE: Drawer = Drawer {
    name: "OpenCode (`opencode acp`)",
    dialect: "acp",
    setup: agents::opencode,
    tool: |server, tool| format!("{server}_{tool}"),
};
const CLAUDE: Drawer =
    Drawer { name: "claude-agent-acp", dialect: "acp", setup: agents::claude, tool: two_underscores };
const CODEX_ACP: Drawer = Drawer { name: "codex-acp", dialect: "acp", setup: agents::codex_acp, tool: two_underscores };
const CODEX: Drawer =
    Drawer { name: "Codex app-server", dialect: "codex", setup: agents::codex_app, tool: two_underscores };
const OPENCODE_SERVE: Drawer = Drawer {
    name: "OpenCode (`opencode serve`)",
    dialect: "opencode",
    setup: agents::opencode_serve,
    tool: |server, tool| format!("{server}_{tool}"),
};
const QWEN: Drawer = Drawer { name: "Qwen Code", dialect: "acp", setup: agents::qwen, tool: two_underscores };

fn two_underscores(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

#[tokio::test]
async fn surfaces_are_drawn_by_gemini() {
    draws(GEMINI).await;
}

#[tokio::test]
async fn surfaces_are_drawn_by_opencode() {
    draws(OPENCODE).await;
}

async fn is_ready(gateway: &Gateway) -> bool {
    gateway.get("/v1/runtimes").await.1["runtimes"][0]["state"] == "ready"
}

/// OpenCode's server has one list of tools for all its sessions. A session of Plexus has its own tools alone; another client's
/// session sees them, and cannot draw with them.
#[tokio::test]
async fn surfaces_are_drawn_by_opencode_serve() {
    let (dir, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let model = FakeModel::start();
    let setup = (OPENCODE_SERVE.setup)(&agents::install_dir(), work.path(), model.port());
    let (program, arguments) = setup.command.split_first().unwrap();
    let url = format!("http://127.0.0.1:{}", arguments.last().unwrap());
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).envs(setup.env.clone()).current_dir(work.path()).kill_on_drop(true);
    let mut start = || command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut opencode = start();
    let config = format!(
        "[[runtime]]\nid = \"agent\"\ndialect = \"{}\"\nconnect = \"{url}\"\ncwd = {}\n",
        OPENCODE_SERVE.dialect,
        json!(work.path()),
    );
    let mut gateway = Gateway::start_in(dir, &config).await;
    until_so("the server is attached", async || is_ready(&gateway).await).await;
    plays(&mut gateway, OPENCODE_SERVE.tool).await;

    let (one, other) = (gateway.session("agent").await, gateway.session("agent").await);
    let show = |session: &str| {
        format!("FAKE:tool {} {} ;; text over", (OPENCODE_SERVE.tool)(&server(session), "ui_show"), form())
    };
    let run = gateway.prompt(&one, &show(&other)).await;
    let events = json!(gateway.until_ended(&one, &run).await).to_string();
    assert!(events.contains("unavailable tool"), "its model is not told of the other's tools: {events}");
    // A session that another client of the server opens.
    let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
    let post = async |path: &str, body: Value| -> Value {
        let request =
            http.post(format!("{url}{path}")).query(&[("directory", work.path().to_str().unwrap())]).json(&body);
        request.send().await.unwrap().json().await.unwrap()
    };
    let theirs = post("/session", json!({})).await["id"].as_str().unwrap().to_owned();
    let text = json!({ "parts": [{ "type": "text", "text": show(&one) }] });
    post(&format!("/session/{theirs}/message"), text).await;
    let request = http.get(format!("{url}/session/{theirs}/message"));
    let said =
        request.query(&[("directory", work.path().to_str().unwrap())]).send().await.unwrap().text().await.unwrap();
    assert!(said.contains("makes no such call"), "{said}");
    for session in [&one, &other] {
        assert_eq!(gateway.get(&format!("/v1/sessions/{session}/surfaces")).await.1["surfaces"], json!([]));
    }
    let run = gateway.prompt(&one, &show(&one)).await;
    gateway.until_ended(&one, &run).await;
    assert_eq!(gateway.get(&format!("/v1/sessions/{one}/surfaces")).await.1["surfaces"][0]["rev"], 1);

    // A restarted server has no tools of its own any more, and is given them again.
    opencode.kill().await.unwrap();
    until_so("the server is gone", async || !is_ready(&gateway).await).await;
    let _opencode = start();
    until_so("the server is back", async || is_ready(&gateway).await).await;
    let run = gateway.prompt(&one, &show(&one)).await;
    let events = json!(gateway.until_ended(&one, &run).await);
    let shown = gateway.get(&format!("/v1/sessions/{one}/surfaces")).await.1["surfaces"][0].clone();
    assert_eq!(shown["rev"], 2, "{events}");
}

#[tokio::test]
async fn surfaces_are_drawn_by_claude() {
    draws(CLAUDE).await;
}

#[tokio::test]
async fn surfaces_are_drawn_by_codex_acp() {
    draws(CODEX_ACP).await;
}

#[tokio::test]
async fn surfaces_are_drawn_by_codex_app_server() {
    draws(CODEX).await;
}

#[tokio::test]
async fn surfaces_are_drawn_by_qwen() {
    draws(QWEN).await;
}

/// The steps of [`draws`].
const STEPS: [&str; 6] = ["shows", "updates", "pins", "asks", "gateway killed", "gets the answer"];

/// `docs/surfaces.md` lists the agents that the stories above play with, and what each of them does there.
#[test]
fn surfaces_table_in_the_docs_is_of_these_agents() {
    let mut table = format!("| agent | {} |\n|{}\n", STEPS.join(" | "), " --- |".repeat(STEPS.len() + 1));
    for drawer in [GEMINI, OPENCODE, OPENCODE_SERVE, CLAUDE, CODEX_ACP, CODEX, QWEN] {
        table += &format!("| {} |{}\n", drawer.name, " yes |".repeat(STEPS.len()));
    }
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/surfaces.md")).unwrap();
    let (_, rest) = docs.split_once("<!-- surfaces:agents -->\n").unwrap();
    let (shown, _) = rest.split_once("<!-- surfaces:end -->").unwrap();
    assert_eq!(shown.trim(), table.trim(), "put this into docs/surfaces.md:\n{table}");
}
