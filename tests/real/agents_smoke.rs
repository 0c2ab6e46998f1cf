//! The loopback model streams an answer in each vendor's protocol, and each agent's configuration is where the agent reads it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use common::agents::{self, FakeModel};
use serde_json::{Value, json};

const THREE_CHUNKS: &str = "chunk-0001 chunk-0002 chunk-0003 ";

/// A POST; returns the status and the decoded body.
fn post(port: u16, path: &str, body: &Value) -> (u16, String) {
    let body = body.to_string();
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(
        socket,
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, rest) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let head = head.to_ascii_lowercase();
    if !head.contains("transfer-encoding: chunked") {
        return (status, rest.to_owned());
    }
    let (mut whole, mut rest) = (String::new(), rest);
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").unwrap();
    }
    (status, whole)
}

/// The JSON values of a server-sent stream, and its lines that are not JSON (such as `[DONE]`).
fn frames(stream: &str) -> (Vec<Value>, Vec<&str>) {
    let mut values = Vec::new();
    let mut others = Vec::new();
    for data in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
        match serde_json::from_str(data) {
            Ok(value) => values.push(value),
            Err(_) => others.push(data),
        }
    }
    (values, others)
}

fn joined(frames: &[Value], pointer: &str) -> (String, usize) {
    let pieces: Vec<&str> =
        frames.iter().filter_map(|frame| frame.pointer(pointer)?.as_str()).filter(|piece| !piece.is_empty()).collect();
    (pieces.concat(), pieces.len())
}

#[test]
fn dialects_stream_the_script() {
    let model = FakeModel::start();
    let message = json!([{ "role": "user", "content": "FAKE:long 3 1" }]);

    let gemini = json!({ "contents": [{ "role": "user", "parts": [{ "text": "FAKE:long 3 1" }] }] });
    let path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
    let (status, body) = post(model.port(), path, &gemini);
    let (got, _) = frames(&body);
    assert_eq!(status, 200);
    assert_eq!(joined(&got, "/candidates/0/content/parts/0/text"), (THREE_CHUNKS.to_owned(), 3));
    assert_eq!(got.last().unwrap().pointer("/candidates/0/finishReason"), Some(&json!("STOP")));

    let (status, body) = post(model.port(), "/v1/responses", &json!({ "stream": true, "input": message }));
    let (got, _) = frames(&body);
    let deltas: Vec<Value> =
        got.iter().filter(|frame| frame["type"] == "response.output_text.delta").cloned().collect();
    assert_eq!(status, 200);
    assert_eq!(joined(&deltas, "/delta"), (THREE_CHUNKS.to_owned(), 3));
    assert_eq!(got.last().unwrap()["type"], "response.completed");

    let (status, body) = post(model.port(), "/v1/chat/completions", &json!({ "stream": true, "messages": message }));
    let (got, others) = frames(&body);
    assert_eq!(status, 200);
    assert_eq!(joined(&got, "/choices/0/delta/content"), (THREE_CHUNKS.to_owned(), 3));
    assert_eq!(others, ["[DONE]"]);

    let (status, body) = post(model.port(), "/v1/messages", &json!({ "stream": true, "messages": message }));
    let (got, _) = frames(&body);
    assert_eq!(status, 200);
    assert_eq!(joined(&got, "/delta/text"), (THREE_CHUNKS.to_owned(), 3));
    assert_eq!(got.last().unwrap()["type"], "message_stop");
}

#[test]
fn script_moves_on_with_each_round_of_tool_results() {
    let model = FakeModel::start();
    let tool = json!([{ "type": "function", "function": { "name": "bash", "parameters": {} } }]);
    let call = |result: &[&str]| {
        let mut messages = vec![
            json!({ "role": "user", "content": "FAKE:text an older script" }),
            json!({ "role": "assistant", "content": "an older script" }),
            json!({ "role": "user", "content": "FAKE:shell2 touch a | touch b ;; error 429" }),
        ];
        for text in result {
            messages.push(json!({ "role": "tool", "content": text }));
        }
        let body = json!({ "stream": true, "tools": tool, "messages": messages });
        post(model.port(), "/v1/chat/completions", &body)
    };

    let (status, body) = call(&[]);
    let (got, _) = frames(&body);
    let (arguments, calls) = joined(&got, "/choices/0/delta/tool_calls/0/function/arguments");
    assert_eq!((status, calls), (200, 2));
    assert!(arguments.contains("touch a") && arguments.contains("touch b"), "{arguments}");

    // Two results of one reply are one round.
    assert_eq!(call(&["done", "done"]).0, 429);
}

#[test]
fn unknown_model_is_an_error() {
    let model = FakeModel::start();
    assert_eq!(post(model.port(), "/v1/nothing", &json!({})).0, 404);
}

#[test]
fn agents_are_installed_and_pointed_at_the_model() {
    let install = agents::install_dir();
    let home = tempfile::tempdir().unwrap();
    let port = 18_999;
    let config = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();

    let gemini = agents::gemini(&install, home.path(), port);
    assert_eq!(gemini.auth_method.as_deref(), Some("gemini-api-key"));
    assert!(gemini.env.contains(&("GOOGLE_GEMINI_BASE_URL".to_owned(), "http://127.0.0.1:18999".to_owned())));
    serde_json::from_str::<Value>(&config(".gemini/settings.json")).unwrap();

    let opencode = agents::opencode(&install, home.path(), port);
    assert_eq!(opencode.auth_method, None);
    let written: Value = serde_json::from_str(&config("opencode.json")).unwrap();
    assert_eq!(written.pointer("/provider/fake/options/baseURL"), Some(&json!("http://127.0.0.1:18999/v1")));

    let codex = agents::codex_acp(&install, home.path(), port);
    assert_eq!(codex.auth_method.as_deref(), Some("api-key"));
    assert!(config(".codex/config.toml").contains("base_url = \"http://127.0.0.1:18999/v1\""));
    let app = agents::codex_app(&install, home.path(), port);
    assert!(app.env.iter().all(|set| codex.env.contains(set)) && app.command.last().unwrap() == "app-server");
    let copilot = agents::copilot(&install, home.path(), port);
    assert!(copilot.env.contains(&("COPILOT_PROVIDER_BASE_URL".to_owned(), "http://127.0.0.1:18999/v1".to_owned())));
    let grok = agents::grok(&install, home.path(), port);
    assert!(grok.env.contains(&("GROK_XAI_API_BASE_URL".to_owned(), "http://127.0.0.1:18999/v1".to_owned())));
    agents::pi(&install, home.path(), port);
    let written: Value = serde_json::from_str(&config(".pi/agent/models.json")).unwrap();
    assert_eq!(written.pointer("/providers/fake/baseUrl"), Some(&json!("http://127.0.0.1:18999/v1")));

    let claude = agents::claude(&install, home.path(), port);
    assert!(claude.env.contains(&("ANTHROPIC_BASE_URL".to_owned(), "http://127.0.0.1:18999".to_owned())));

    let qwen = agents::qwen(&install, home.path(), port);
    assert_eq!(qwen.auth_method.as_deref(), Some("openai"));
    assert!(qwen.env.contains(&("OPENAI_BASE_URL".to_owned(), "http://127.0.0.1:18999/v1".to_owned())));
    let written: Value = serde_json::from_str(&config(".qwen/settings.json")).unwrap();
    assert_eq!(written.pointer("/tools/approvalMode"), Some(&json!("default")), "it asks");
}
