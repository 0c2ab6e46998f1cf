//! Long responses are compressed for clients that ask for it; streams, short responses and those with a token are not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::io::Read as _;

use common::front::{Front, LONG};
use plexus::routes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The head of a response, and its body without chunk framing.
async fn ask(front: &Front, method: &str, path: &str, accept: &str, body: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(front.address).await.unwrap();
    let (address, token, length) = (front.address, &front.admin, body.len());
    let content = if body.is_empty() {
        String::new()
    } else {
        format!("content-type: application/json\r\ncontent-length: {length}\r\n")
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         accept-encoding: {accept}\r\n{content}\r\n{body}"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    tokio::time::timeout(LONG, stream.read_to_end(&mut all)).await.unwrap().unwrap();
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(all[..end].to_vec()).unwrap().to_ascii_lowercase();
    let mut rest = &all[end + 4..];
    if !head.contains("transfer-encoding: chunked") {
        return (head, rest.to_vec());
    }
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return (head, body);
        }
        body.extend_from_slice(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 2 + size + 2..];
    }
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut text).unwrap();
    text
}

#[tokio::test]
async fn responses_are_compressed_when_long_and_asked_for() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let text = "the quick brown fox jumps over the lazy dog ".repeat(2000);
    let prompt = json!({ "text": text }).to_string();
    ask(&front, "POST", &format!("/v1/sessions/{session}/prompt"), "gzip", &prompt).await;
    let ended = async {
        loop {
            let (_, page) = ask(&front, "GET", "/v1/events", "identity", "").await;
            if String::from_utf8_lossy(&page).contains("run_ended") {
                break;
            }
        }
    };
    tokio::time::timeout(LONG, ended).await.expect("the run does not end");
    for path in [format!("/v1/sessions/{session}/events"), "/v1/events".into(), "/openapi.json".into()] {
        let (head, plain) = ask(&front, "GET", &path, "identity", "").await;
        assert!(!head.contains("content-encoding"), "{head}");
        let (head, packed) = ask(&front, "GET", &path, "br;q=0.1, gzip", "").await;
        assert!(head.contains("content-encoding: gzip") && head.contains("vary: accept-encoding"), "{path}: {head}");
        assert!(packed.len() * 3 < plain.len(), "{path}: {} of {}", packed.len(), plain.len());
        let (one, other): (Value, Value) =
            (serde_json::from_slice(&plain).unwrap(), serde_json::from_slice(&gunzip(&packed)).unwrap());
        assert_eq!(one["events"], other["events"], "{path}");
        let (head, _) = ask(&front, "GET", &path, "br, gzip", "").await;
        assert!(head.contains("content-encoding: br"), "{path}: {head}");
    }
    let (head, _) = ask(&front, "GET", "/v1/runtimes", "gzip", "").await;
    assert!(!head.contains("content-encoding"), "it is short: {head}");
}

#[tokio::test]
async fn responses_with_a_token_or_a_code_are_never_compressed() {
    let front = Front::new().await;
    let long = "x".repeat(3000);
    let device = json!({ "name": long, "scopes": ["watch"] }).to_string();
    let (head, body) = ask(&front, "POST", "/v1/devices", "gzip, br", &device).await;
    // Either the long name is refused, or the response is as long; both must be plain.
    assert!(!head.contains("content-encoding"), "{head}");
    assert!(serde_json::from_slice::<Value>(&body).is_ok());
    let secret: Vec<String> =
        routes().iter().filter(|route| route.secret).map(|route| format!("{} {}", route.method, route.path)).collect();
    for line in [
        "GET /v1/me",
        "POST /v1/signin",
        "POST /v1/devices",
        "POST /v1/codes",
        "POST /v1/sessions/{id}/shares",
        "POST /v1/pairings",
        "GET /v1/pairings/{id}",
        "POST /v1/pairings/{id}/confirm",
        "POST /v1/pair",
        "POST /v1/pair/look",
        "POST /v1/pair/wait",
    ] {
        assert!(secret.iter().any(|one| one == line), "{line} carries a token or a code");
    }
}

#[tokio::test]
async fn event_stream_is_not_compressed() {
    let front = Front::new().await;
    front.session("fake").await;
    let mut stream = TcpStream::connect(front.address).await.unwrap();
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\naccept-encoding: gzip, br\r\n\r\n",
        front.address, front.admin
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    while !String::from_utf8_lossy(&all).contains("event: live") {
        assert!(tokio::time::timeout(LONG, stream.read_buf(&mut all)).await.unwrap().unwrap() > 0);
    }
    assert!(!String::from_utf8_lossy(&all).to_ascii_lowercase().contains("content-encoding"));
}
