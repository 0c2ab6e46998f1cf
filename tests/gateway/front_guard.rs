//! The guard against unauthorized requests, over real sockets. One file: every test is a table of attacks. Each test fails when
//! its defence is removed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::time::Duration;

use common::front::{Front, Reply, parse};
use plexus::router::{GateLimits, ListenLimits, Policy};
use plexus::routes;
use plexus_protocol::Scope;
use serde_json::{Value, json};

const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"];

/// The public routes. A new one has to be added here.
const PUBLIC: [&str; 10] = [
    "GET /asyncapi.json",
    "GET /ca",
    "GET /ca.crt",
    "GET /ca.mobileconfig",
    "GET /healthz",
    "GET /openapi.json",
    "GET /readyz",
    "POST /v1/pair",
    "POST /v1/pair/look",
    "POST /v1/pair/wait",
];

/// The policy of a method and a path: GET answers HEAD as well.
fn policy(method: &str, path: &str) -> Option<Policy> {
    let method = if method == "HEAD" { "GET" } else { method };
    let route = routes().into_iter().find(|route| route.method.as_str() == method && route.path == path);
    route.map(|route| route.policy)
}

#[tokio::test]
async fn routes_are_closed_by_default() {
    let front = Front::new().await;
    let mut watcher = front.token(json!({ "scopes": ["watch"] })).await;
    let approver = front.token(json!({ "scopes": ["approve"] })).await;
    let paths: std::collections::BTreeSet<_> = routes().iter().map(|route| route.path.clone()).collect();
    assert!(paths.len() > 20);
    for path in &paths {
        let real = path.replace("{id}", "x");
        for method in METHODS {
            if path == "/v1/me" {
                // Deleting it signs the caller out.
                watcher = front.token(json!({ "scopes": ["watch"] })).await;
            }
            let policy = policy(method, path);
            for (token, scope) in [
                (None, None),
                (Some("plx_wrong"), None),
                (Some(&*watcher), Some(Scope::Watch)),
                (Some(&*approver), Some(Scope::Approve)),
            ] {
                let bearer = token.map(|token| format!("Bearer {token}"));
                let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
                let reply = front.send(method, &real, &headers, "").await;
                let what = format!("{method} {path} with {scope:?}: {reply:?}");
                match (policy, scope) {
                    (Some(Policy::WatchOrSameUser), _) => panic!("not behind the main door: {what}"),
                    (Some(Policy::Public), _) => assert!(![401, 403, 404, 405].contains(&reply.status), "{what}"),
                    // 429 is a refusal too, for an address that failed too often.
                    (_, None) => assert!(reply.status == 401 || (token.is_some() && reply.status == 429), "{what}"),
                    (Some(Policy::Needs(needed)), Some(scope)) if needed != scope => {
                        assert_eq!(reply.status, 403, "{what}")
                    }
                    (Some(Policy::Needs(_)), Some(_)) => assert!(![401, 403, 405].contains(&reply.status), "{what}"),
                    (None, Some(_)) => {
                        assert_eq!(reply.status, 405, "{what}");
                        assert!(reply.header("allow").is_some(), "{what}");
                    }
                }
                if reply.status == 401 {
                    assert!(reply.header("allow").is_none(), "no methods are named to strangers: {what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn routes_that_are_open_are_those_meant_to_be() {
    let front = Front::new().await;
    let mut open: Vec<String> = Vec::new();
    for route in routes().iter().filter(|route| route.policy == Policy::Public) {
        if route.summary != "A file of the page" {
            open.push(format!("{} {}", route.method, route.path));
        }
    }
    open.sort();
    assert_eq!(open, PUBLIC);
    for path in [
        "/nothing",
        "/v1",
        "/v1/",
        "/v1/sessions/",
        "//v1/sessions",
        "/v1//sessions",
        "/V1/sessions",
        "/v1/sessions/x/y",
    ] {
        let reply = front.send("GET", path, &[], "").await;
        assert_eq!(reply.status, 401, "{path}");
        let reply = front.admin("GET", path, Value::Null).await;
        assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{path}");
    }
}

#[tokio::test]
async fn path_spellings_open_nothing() {
    let front = Front::new().await;
    for path in [
        "/../v1/sessions",
        "/healthz/../v1/sessions",
        "/healthz/..%2fv1/sessions",
        "/%2e%2e/v1/sessions",
        "/v1/%73essions",
        "/v1/sessions;x",
        "/v1/sessions%00",
        "/v1/sessions?",
        "/v1/sessions/.",
        "/./v1/sessions",
        "/healthz%2f..%2fv1%2fsessions",
        "/v1/sessions#/healthz",
        "/etc/passwd",
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc/passwd",
        "/%2fetc/passwd",
        "/Cargo.toml",
        "/../Cargo.toml",
        "/?raw??",
    ] {
        let reply = front.send("GET", path, &[], "").await;
        let page = path.starts_with("/?");
        assert!(reply.status == if page { 200 } else { 401 } || reply.status == 400, "{path}: {reply:?}");
        assert!(
            !reply.body.contains("sessions\":") && !reply.body.contains("root:") && !reply.body.contains("[package]")
        );
    }
}

#[tokio::test]
async fn host_of_another_name_is_refused_even_with_a_token() {
    let front = Front::new().await;
    let port = front.address.port();
    let bearer = format!("Bearer {}", front.admin);
    for route in routes() {
        let path = route.path.replace("{id}", "x");
        let host = format!("evil.example:{port}");
        let reply = front.send(route.method.as_str(), &path, &[("host", &host), ("authorization", &bearer)], "").await;
        assert_eq!((reply.status, reply.code().as_str()), (421, "wrong_host"), "{path}");
    }
    for host in [format!("0.0.0.0:{port}"), "127.0.0.1".into(), format!("127.0.0.1.evil:{port}"), String::new()] {
        let reply = front.send("GET", "/v1/me", &[("host", &host), ("authorization", &bearer)], "").await;
        assert!([400, 421].contains(&reply.status), "{host}: {reply:?}");
    }
    for head in [
        format!("GET /v1/me HTTP/1.1\r\nauthorization: {bearer}\r\nconnection: close\r\n\r\n"),
        format!("GET /v1/me HTTP/1.0\r\nauthorization: {bearer}\r\n\r\n"),
        format!(
            "GET /v1/me HTTP/1.1\r\nhost: {0}\r\nhost: {0}\r\nauthorization: {bearer}\r\nconnection: close\r\n\r\n",
            front.address
        ),
        format!(
            "GET http://evil.example/v1/me HTTP/1.1\r\nhost: {}\r\nauthorization: {bearer}\r\nconnection: close\r\n\r\n",
            front.address
        ),
    ] {
        let status = parse(&front.raw(head.as_bytes()).await).status;
        assert!([400, 421].contains(&status), "{head}");
    }
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")] {
        let reply = front.send("GET", "/v1/me", &[("host", &host), ("authorization", &bearer)], "").await;
        assert_eq!(reply.status, 200, "{host}");
    }
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_even_with_a_token() {
    let front = Front::new().await;
    let bearer = format!("Bearer {}", front.admin);
    let upgrade =
        [("upgrade", "websocket"), ("sec-websocket-version", "13"), ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")];
    let (port, own) = (front.address.port(), format!("http://{}", front.address));
    for origin in [
        "https://evil.example".into(),
        "null".into(),
        format!("http://127.0.0.1:{}", port ^ 1),
        format!("https://127.0.0.1:{port}"),
        "vscode-webview://x".into(),
    ] {
        for path in ["/v1/me", "/v1/ws", "/healthz", "/"] {
            let mut headers = vec![("origin", origin.as_str()), ("authorization", &bearer)];
            headers.extend(upgrade);
            let reply = front.send("GET", path, &headers, "").await;
            assert_eq!((reply.status, reply.code().as_str()), (403, "foreign_origin"), "{origin} {path}");
        }
    }
    let reply = front.send("GET", "/v1/me", &[("origin", &own), ("authorization", &bearer)], "").await;
    assert_eq!(reply.status, 200);
    for site in ["cross-site", "same-site"] {
        let reply = front.send("GET", "/v1/me", &[("sec-fetch-site", site), ("authorization", &bearer)], "").await;
        assert_eq!(reply.status, 403, "{site}");
    }
    let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    assert_eq!(front.send("GET", "/", &link, "").await.status, 200, "a link opens the page");
}

#[tokio::test]
async fn responses_carry_security_headers_and_no_cors() {
    let front = Front::new().await;
    let bearer = format!("Bearer {}", front.admin);
    let preflight = [("origin", "https://evil.example"), ("access-control-request-method", "POST")];
    let own = format!("http://{}", front.address);
    for reply in [
        front.send("GET", "/", &[], "").await,
        front.send("GET", "/healthz", &[], "").await,
        front.send("GET", "/v1/me", &[], "").await,
        front.send("GET", "/v1/me", &[("authorization", &bearer), ("origin", &own)], "").await,
        front.send("GET", "/nothing", &[("authorization", &bearer)], "").await,
        front.send("PUT", "/v1/me", &[("authorization", &bearer)], "").await,
        front.send("GET", "/v1/me", &[("host", "evil.example")], "").await,
        front.send("OPTIONS", "/v1/sessions", &preflight, "").await,
    ] {
        let csp = reply.header("content-security-policy").unwrap_or_default();
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(csp.contains(rule), "{rule}: {reply:?}");
        }
        assert!(!csp.contains("unsafe"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"));
        assert_eq!(reply.header("cross-origin-opener-policy"), Some("same-origin"));
        assert!(reply.header("cache-control").is_some());
        assert!(!reply.head.contains("access-control-"), "{reply:?}");
    }
    assert_eq!(front.admin("GET", "/v1/me", Value::Null).await.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn token_counts_only_where_it_belongs() {
    let front = Front::new().await;
    let token = front.admin.clone();
    let bearer = format!("Bearer {token}");
    for query in ["token", "access_token", "key", "authorization", "bearer"] {
        let reply = front.send("GET", &format!("/v1/me?{query}={token}"), &[], "").await;
        assert_eq!(reply.status, 401, "{query}");
    }
    let cut = &token[..token.len() - 1];
    for (name, value) in [
        ("cookie", format!("token={token}")),
        ("x-api-key", token.clone()),
        ("x-forwarded-for", "127.0.0.1".into()),
        ("proxy-authorization", bearer.clone()),
        ("sec-websocket-protocol", format!("plexus.v1, plexus.bearer.{token}")),
        ("authorization", token.clone()),
        ("authorization", String::new()),
        ("authorization", "Bearer".into()),
        ("authorization", "Bearer ".into()),
        ("authorization", format!("Basic {token}")),
        ("authorization", format!("Bearer  {token}")),
        ("authorization", format!("Bearer {token}x")),
        ("authorization", format!("Bearer {cut}")),
        ("authorization", format!("Bearer {}", token.to_ascii_uppercase())),
        ("authorization", format!("Bearer {token}, Bearer {token}")),
    ] {
        let reply = front.send("GET", "/v1/me", &[(name, &value)], "").await;
        assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{name}: {value}");
        assert!(reply.header("www-authenticate").is_some());
        assert!(!reply.body.contains(&token));
    }
    let twice = [("authorization", bearer.as_str()), ("authorization", bearer.as_str())];
    assert_eq!(front.send("GET", "/v1/me", &twice, "").await.status, 401);
    let protocol = format!("plexus.v1, plexus.bearer.{token}");
    let status = async |headers: &[(&str, &str)]| front.send("GET", "/v1/ws", headers, "").await.status;
    let upgrade = ("upgrade", "websocket");
    assert_ne!(status(&[upgrade, ("sec-websocket-protocol", &protocol)]).await, 401, "a browser's only way");
    assert_eq!(status(&[("sec-websocket-protocol", &protocol)]).await, 401, "no handshake");
    let both = [upgrade, ("sec-websocket-protocol", &protocol), ("authorization", &bearer)];
    assert_eq!(status(&both).await, 401, "two proofs");
    let two = format!("{protocol}, plexus.bearer.{token}");
    assert_eq!(status(&[upgrade, ("sec-websocket-protocol", &two)]).await, 401, "two proofs");
    let lines = [upgrade, ("sec-websocket-protocol", &protocol), ("sec-websocket-protocol", &protocol)];
    assert_eq!(status(&lines).await, 401, "two proofs");
}

#[tokio::test]
async fn token_guessing_is_slowed_and_never_locks_out_a_good_token() {
    let front = Front::new().await;
    let mut seen = Vec::new();
    for n in 0..u64::from(plexus::auth::FAILURES) + 5 {
        let reply = front.call(&format!("plx_{n}"), "GET", "/v1/me", Value::Null).await;
        if reply.status == 429 {
            assert!(reply.header("retry-after").is_some() && reply.code() == "too_many_failures");
        }
        seen.push(reply.status);
    }
    assert_eq!((seen.first(), seen.last()), (Some(&401), Some(&429)));
    assert_eq!(front.admin("GET", "/v1/me", Value::Null).await.status, 200);
    let reply =
        front.send("POST", "/v1/pair", &[("content-type", "application/json")], r#"{"code":"x","name":"y"}"#).await;
    assert_eq!(reply.status, 429, "codes count with the tokens");
    let code = front.admin("POST", "/v1/codes", json!({ "scopes": ["watch"] })).await.json()["code"].clone();
    let body = json!({ "code": code, "name": "phone" }).to_string();
    let reply = front.send("POST", "/v1/pair", &[("content-type", "application/json")], &body).await;
    assert_eq!(reply.status, 200, "a good code works all the same");
}

/// A POST. Its handler would answer 422 or 404; the guard must refuse before that.
async fn post(front: &Front, headers: &[(&str, &str)], body: &str) -> Reply {
    let bearer = format!("Bearer {}", front.admin);
    let mut all = vec![("authorization", bearer.as_str())];
    all.extend(headers);
    front.send("POST", "/v1/sessions", &all, body).await
}

#[tokio::test]
async fn body_must_be_json_that_fits() {
    let front = Front::new().await;
    let json = ("content-type", "application/json");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain; application/json",
    ] {
        let reply = post(&front, &[("content-type", kind)], "{}").await;
        assert_eq!((reply.status, reply.code().as_str()), (415, "not_json"), "{kind}");
    }
    assert_eq!(post(&front, &[], "{}").await.status, 415);
    assert_eq!(post(&front, &[json, json], "{}").await.status, 415);
    assert_eq!(post(&front, &[json, ("content-encoding", "gzip")], "{}").await.status, 415);
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    for (body, status, code) in [
        (deep(65).as_str(), 400, "too_deep"),
        (deep(100_000).as_str(), 400, "too_deep"),
        ("{", 400, "bad_json"),
        ("nope", 400, "bad_json"),
        ("{}x", 400, "bad_json"),
        ("\u{feff}{}", 400, "bad_json"),
        (r#"{"runtime_id":"x"}{}"#, 400, "bad_json"),
        (r#"{"runtime_id":"\ud800"}"#, 400, "bad_json"),
        ("[]", 422, "bad_body"),
        ("{}", 422, "invalid"),
        (r#"{"runtime_id":7}"#, 422, "bad_body"),
        (r#"{"runtime_id":"x","runtime_id":"y"}"#, 422, "bad_body"),
        (r#"{"runtime_id":"x","admin":true}"#, 422, "bad_body"),
        (r#"{"runtime_id":"../x"}"#, 422, "bad_body"),
        (r#"{"runtime_id":"x"}"#, 404, "runtime_not_found"),
    ] {
        let reply = post(&front, &[json], body).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{body:.60}: {reply:?}");
    }
    let reply = post(&front, &[json], r#"{"runtime_id":7}"#).await;
    assert!(reply.json()["detail"].as_str().unwrap().contains("`runtime_id`"), "the place is named: {reply:?}");
    let reply = front.admin("GET", "/v1/me", json!({ "unasked": true })).await;
    assert_eq!(reply.status, 400, "a body where none is wanted");
}

#[tokio::test]
async fn body_too_long_is_refused_before_it_is_read() {
    let front = Front::new().await;
    let head = |path: &str, length: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n{length}\r\n\r\n",
            front.address, front.admin
        )
    };
    const MIB: usize = 1 << 20;
    // No byte of the body is sent.
    for (path, length) in
        [("/v1/sessions", MIB + 1), ("/v1/sessions/x/prompt", 16 * MIB + 1), ("/v1/sessions", usize::MAX >> 2)]
    {
        let reply = parse(&front.raw(head(path, &format!("content-length: {length}")).as_bytes()).await);
        assert_eq!((reply.status, reply.code().as_str()), (413, "too_large"), "{path} {length}");
    }
    let chunk = format!("{:x}\r\n{}\r\n", MIB, "x".repeat(MIB));
    let endless = head("/v1/sessions", "transfer-encoding: chunked") + &chunk.repeat(3);
    let reply = front.raw(endless.as_bytes()).await;
    assert!(reply.is_empty() || parse(&reply).status == 413, "counted while it comes: {reply}");
    let fitting = json!({ "text": "x".repeat(7 * MIB) });
    let session = front.session("fake").await;
    assert_eq!(front.admin("POST", &format!("/v1/sessions/{session}/prompt"), fitting).await.status, 202);
}

#[tokio::test]
async fn body_that_is_slow_is_cut() {
    let front = Front::with(ListenLimits::default(), GateLimits { body: Duration::from_millis(200) }).await;
    for part in ["", "{"] {
        let text = format!(
            "POST /v1/sessions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{part}",
            front.address, front.admin
        );
        let reply = parse(&front.raw(text.as_bytes()).await);
        assert_eq!((reply.status, reply.code().as_str()), (408, "too_slow"));
    }
}

#[tokio::test]
async fn transfer_coding_unknown_is_refused_as_such() {
    let front = Front::new().await;
    for (coding, status) in [
        ("gzip, chunked", "501"),
        ("identity, chunked", "501"),
        ("chunked, chunked", "400"),
        ("CHUNKED", "422"),
        ("chunked", "422"),
    ] {
        let head = format!("POST /v1/pair HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n", front.address);
        let reply = front
            .raw(
                format!("{head}connection: close\r\ntransfer-encoding: {coding}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n")
                    .as_bytes(),
            )
            .await;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{coding}: {reply}");
    }
}

#[tokio::test]
async fn request_smuggling_finds_no_second_request() {
    let front = Front::with(
        ListenLimits { idle: Duration::from_millis(300), ..ListenLimits::default() },
        GateLimits::default(),
    )
    .await;
    let inner = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", front.address);
    let length = inner.len();
    for framing in [
        format!("content-length: 0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("transfer-encoding: chunked\r\ncontent-length: {length}\r\n\r\n0\r\n\r\n{inner}"),
        format!("content-length: 4\r\ncontent-length: 5\r\n\r\n{inner}"),
        format!("content-length: +4\r\n\r\nabcd{inner}"),
        format!("content-length: 4,4\r\n\r\nabcd{inner}"),
        format!("content-length: 0x4\r\n\r\nabcd{inner}"),
        format!("content-length: -1\r\n\r\n{inner}"),
        format!("content-length : 0\r\n\r\n{inner}"),
        format!("transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n{inner}"),
        format!("transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("transfer-encoding: identity\r\n\r\n0\r\n\r\n{inner}"),
        format!("transfer-encoding : chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("transfer-encoding: chunked\r\n\r\nzz\r\n\r\n{inner}"),
        format!("transfer-encoding: chunked\r\n\r\n-1\r\n\r\n{inner}"),
        format!("transfer-encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n{inner}"),
        format!("transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n\r\n{inner}"),
        format!("x: y\r\n folded\r\ncontent-length: 0\r\n\r\n{inner}"),
        format!("x y: z\r\ncontent-length: 0\r\n\r\n{inner}"),
        format!("x\0: z\r\ncontent-length: 0\r\n\r\n{inner}"),
        format!("x: \0\r\ncontent-length: 0\r\n\r\n{inner}"),
        format!("content-length: {length}\r\n\r\n{inner}"),
    ] {
        let text = format!("POST /v1/pair HTTP/1.1\r\nhost: {}\r\n{framing}", front.address);
        let reply = front.raw(text.as_bytes()).await;
        assert!(!reply.contains("HTTP/1.1 2"), "{framing:?}: {reply}");
        let refused = reply.starts_with("HTTP/1.1 4") || reply.starts_with("HTTP/1.1 501");
        assert!(reply.is_empty() || refused, "{framing:?}: {reply}");
    }
    for line in [
        "GET /healthz HTTP/1.1 x",
        "GET /healthz",
        "GET  /healthz HTTP/1.1",
        "GET /health z HTTP/1.1",
        "G@T /healthz\u{1}HTTP/1.1",
        "GET /healthz HTTP/2.0",
        "GET healthz HTTP/1.1",
    ] {
        let reply = front.raw(format!("{line}\r\nhost: {}\r\n\r\n", front.address).as_bytes()).await;
        assert!(!reply.starts_with("HTTP/1.1 2"), "{line:?}: {reply}");
    }
}

#[tokio::test]
async fn device_limited_to_a_part_sees_and_does_no_more() {
    let front = Front::new().await;
    let (mine, other) = (front.session("mine").await, front.session("other").await);
    front.admin("POST", &format!("/v1/sessions/{other}/prompt"), json!({ "text": "zebra" })).await;
    let found = async {
        while front.admin("GET", "/v1/search?q=zebra", Value::Null).await.json()["hits"] == json!([]) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(common::front::LONG, found).await.expect("who sees all finds it");
    for (grant, what) in [
        (json!({ "scopes": ["watch", "prompt", "approve", "admin"], "runtimes": ["mine"] }), "runtime"),
        (json!({ "scopes": ["watch", "prompt", "approve", "admin"], "sessions": [mine] }), "session"),
    ] {
        let token = front.token(grant).await;
        let call = async |method: &str, path: &str, body: Value| front.call(&token, method, path, body).await;
        let sessions = call("GET", "/v1/sessions", Value::Null).await.json();
        assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "{what}");
        let runtimes = call("GET", "/v1/runtimes", Value::Null).await.json();
        assert_eq!(runtimes["runtimes"].as_array().unwrap().len(), 1, "{what}");
        for (method, path, body) in [
            ("GET", format!("/v1/sessions/{other}"), Value::Null),
            ("GET", format!("/v1/sessions/{other}/events"), Value::Null),
            ("GET", format!("/v1/sessions/{other}/snapshot"), Value::Null),
            ("GET", format!("/v1/sessions/{other}/mcp"), Value::Null),
            ("GET", format!("/v1/sessions/{other}/skills"), Value::Null),
            ("GET", format!("/v1/sessions/{other}/files?query=a"), Value::Null),
            ("GET", format!("/v1/events?session={other}"), Value::Null),
            ("GET", format!("/v1/requests?session={other}"), Value::Null),
            ("POST", format!("/v1/sessions/{other}/prompt"), json!({ "text": "hi" })),
            ("POST", format!("/v1/sessions/{other}/cancel"), Value::Null),
            ("DELETE", format!("/v1/sessions/{other}"), Value::Null),
            ("DELETE", "/v1/runtimes/other".into(), Value::Null),
            ("GET", "/v1/runtimes/other/resumable".into(), Value::Null),
            ("POST", "/v1/sessions".into(), json!({ "runtime_id": "other" })),
        ] {
            let reply = call(method, &path, body).await;
            assert_eq!(reply.status, 404, "{what}: {method} {path}: it does not exist for them");
        }
        // Stored conversations are more than the sessions, so they need the whole runtime.
        let (status, code) = if what == "runtime" { (409, "listing_unsupported") } else { (404, "runtime_not_found") };
        let reply = call("GET", "/v1/runtimes/mine/resumable", Value::Null).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{what}");
        for (method, path, body) in [
            ("GET", "/metrics", Value::Null),
            ("GET", "/v1/devices", Value::Null),
            ("POST", "/v1/devices", json!({ "name": "x", "scopes": ["admin"] })),
            ("POST", "/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] })),
            ("POST", "/v1/runtimes", json!({ "preset": "fake" })),
        ] {
            assert_eq!(call(method, path, body).await.status, 403, "{what}: {method} {path} is the whole gateway's");
        }
        // A request of the other session is as unknown as the session.
        front.admin("POST", &format!("/v1/sessions/{other}/prompt"), json!({ "text": "ask" })).await;
        let request = front.open_request(&other).await["request_id"].as_str().unwrap().to_owned();
        assert_eq!(call("GET", &format!("/v1/requests/{request}"), Value::Null).await.status, 404);
        let answer = call("POST", &format!("/v1/requests/{request}/answer"), json!({ "option_id": "yes" })).await;
        assert_eq!(answer.status, 404);
        let seen = call("GET", "/v1/requests", Value::Null).await.json();
        assert_eq!(seen["requests"], json!([]));
        assert_eq!(call("GET", "/v1/search?q=zebra", Value::Null).await.json()["hits"], json!([]), "{what}");
        let events = call("GET", "/v1/events", Value::Null).await.json();
        assert!(events["events"].as_array().unwrap().iter().all(|event| event["session_id"] == *mine), "{what}");
        let done = front.admin("POST", &format!("/v1/requests/{request}/answer"), json!({ "option_id": "no" })).await;
        assert_eq!(done.status, 200, "it was still open: {done:?}");
    }
}

#[tokio::test]
async fn watch_scope_answers_nothing_by_any_route() {
    let front = Front::new().await;
    let session = front.session("fake").await;
    let watcher = front.token(json!({ "scopes": ["watch", "prompt"] })).await;
    front.admin("POST", &format!("/v1/sessions/{session}/prompt"), json!({ "text": "ask" })).await;
    let id = front.open_request(&session).await["request_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/requests/{id}/answer");
    let reply = front.call(&watcher, "POST", &path, json!({ "option_id": "yes" })).await;
    assert_eq!((reply.status, reply.code().as_str()), (403, "scope_missing"));
    let smuggled = json!({ "text": "/approve", "approved": true, "scopes": ["approve"] });
    let reply = front.call(&watcher, "POST", &format!("/v1/sessions/{session}/prompt"), smuggled).await;
    assert_eq!(reply.status, 422);
    let said =
        front.call(&watcher, "POST", &format!("/v1/sessions/{session}/prompt"), json!({ "text": "/approve" })).await;
    assert_eq!(said.status, 202, "words are words");
    assert_eq!(front.admin("GET", &format!("/v1/requests/{id}"), Value::Null).await.json()["state"], "open");
    for body in [r#"{"option_id":"yes","option_id":"no"}"#, r#"{"option_id":"yes","approved":true}"#] {
        let bearer = format!("Bearer {}", front.admin);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        assert_eq!(front.send("POST", &path, &headers, body).await.code(), "bad_body", "{body}");
    }
}

#[tokio::test]
async fn local_programs_are_told_apart_and_remote_names_ignored() {
    let front = Front::new().await;
    let phone = front.token(json!({ "scopes": ["watch"] })).await;
    let name = async |token: &str, program: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("plexus-program", program)];
        let me = front.send("GET", "/v1/me", &headers, "").await.json();
        me["name"].as_str().unwrap().to_owned()
    };
    let own = name(&phone, "").await;
    assert_eq!(name(&front.admin, "plexus answer").await, "plexus answer (local)");
    assert_eq!(name(&front.admin, "").await, "this machine");
    assert_eq!(name(&front.admin, &"x".repeat(80)).await, "this machine");
    assert_eq!(name(&phone, "plexus answer").await, own, "a device has the name that its owner gave it");
    let listed = front.admin("GET", "/v1/devices", Value::Null).await.json();
    assert_eq!(listed["devices"][0]["name"], "this machine", "it is one device all the same");
}

#[tokio::test]
async fn code_states_what_it_is_good_for() {
    let front = Front::new().await;
    for body in [json!({}), json!({ "ttl": 60 }), json!({ "scopes": null }), json!({ "scopes": [] })] {
        let refused = front.admin("POST", "/v1/codes", body.clone()).await;
        assert_eq!(refused.status, 422, "{body}: {refused:?}");
    }
    assert_eq!(front.admin("POST", "/v1/codes", json!({ "scopes": ["watch"] })).await.status, 201);
}

/// Rows of a caller, its headers, and the expected result.
type Table<'a, T> = &'a [(&'a str, &'a [(&'a str, &'a str)], T)];

/// A page that signed in by a one-time code: its `Cookie` header and its CSRF value.
async fn page(front: &Front, origin: &str) -> (String, String) {
    let code = front
        .admin("POST", "/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] }))
        .await
        .json()["code"]
        .clone();
    let body = json!({ "code": code, "name": "page", "cookie": true }).to_string();
    let headers = [("content-type", "application/json"), ("origin", origin)];
    let reply = front.send("POST", "/v1/pair", &headers, &body).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.json()["token"].is_null(), "the page never sees it: {reply:?}");
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    (cookie, reply.json()["csrf"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn cookie_counts_for_its_own_page_only() {
    let front = Front::new().await;
    let port = front.address.port();
    let own = format!("http://127.0.0.1:{port}");
    let (cookie, csrf) = page(&front, &own).await;
    let (name, token) = cookie.split_once('=').unwrap();
    assert_eq!(name, format!("plexus-{port}"));
    let (cookie, own, csrf) = (cookie.as_str(), own.as_str(), csrf.as_str());
    let localhost = format!("http://localhost:{port}");
    let bearer = format!("Bearer {}", front.admin);
    let as_bearer = format!("Bearer {token}");
    let of_bearer = format!("{name}={}", front.admin);
    let (twice, other_port) = (format!("{cookie}; {cookie}"), format!("plexus-{}={token}", port ^ 1));
    let (other_name, wrong) = (format!("__Host-plexus={token}"), format!("{name}=plx_wrong"));
    let (mine, theirs) = (("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site"));
    let watcher = format!("Bearer {}", front.token(json!({ "scopes": ["watch"] })).await);

    // Reading.
    let tables: Table<'_, u16> = &[
        ("its page", &[("cookie", cookie), ("origin", own)], 200),
        ("its page, as browsers read", &[("cookie", cookie), mine], 200),
        ("among others", &[("cookie", &format!("a=b; {cookie}; plexus-1=c")), mine], 200),
        ("neither Origin nor Sec-Fetch-Site", &[("cookie", cookie)], 401),
        ("typed", &[("cookie", cookie), ("sec-fetch-site", "none")], 401),
        ("our other name's page", &[("cookie", cookie), ("origin", &localhost)], 401),
        ("our other name's page, as browsers read", &[("cookie", cookie), mine, ("host", &localhost[7..])], 401),
        ("another site", &[("cookie", cookie), ("origin", "https://evil.example")], 403),
        ("another site, as browsers read", &[("cookie", cookie), theirs], 403),
        ("another port of this machine", &[("cookie", cookie), ("sec-fetch-site", "same-site")], 403),
        ("two Origins", &[("cookie", cookie), ("origin", own), ("origin", own)], 403),
        ("two cookies", &[("cookie", &twice), ("origin", own)], 401),
        ("two cookies, on two lines", &[("cookie", cookie), ("cookie", cookie), mine], 401),
        ("another gateway's cookie", &[("cookie", &other_port), ("origin", own)], 401),
        ("a cookie for TLS", &[("cookie", &other_name), ("origin", own)], 401),
        ("a cookie for TLS, as browsers read", &[("cookie", &other_name), mine], 401),
        ("nobody's", &[("cookie", &wrong), ("origin", own)], 401),
        ("a bearer's token as a cookie", &[("cookie", &of_bearer), ("origin", own)], 401),
        ("a cookie's token as a bearer", &[("authorization", &as_bearer), ("origin", own)], 401),
        ("beside a good bearer", &[("cookie", cookie), ("origin", own), ("authorization", &watcher)], 200),
        ("beside a wrong bearer", &[("cookie", cookie), ("origin", own), ("authorization", "Bearer x")], 401),
        ("a wrong one beside a good bearer", &[("cookie", &wrong), ("authorization", &bearer)], 200),
    ];
    for (what, headers, status) in tables {
        let reply = front.send("GET", "/v1/me", headers, "").await;
        assert_eq!(reply.status, *status, "{what}: {reply:?}");
        assert!(!reply.body.contains(token), "{what}");
        if reply.status == 200 && headers.iter().any(|(name, _)| *name == "authorization") {
            assert!(reply.json()["csrf"].is_null() && reply.json()["name"] != "page", "the bearer counts: {what}");
        } else if reply.status == 200 {
            assert_eq!((&reply.json()["csrf"], &reply.json()["name"]), (&json!(csrf), &json!("page")), "{what}");
        }
        let head = front.send("HEAD", "/v1/me", headers, "").await;
        assert_eq!(head.status, *status, "HEAD {what}");
    }

    // Changing.
    let json = ("content-type", "application/json");
    let tables: Table<'_, (u16, &str)> = &[
        ("its page", &[("origin", own), ("plexus-csrf", csrf)], (404, "runtime_not_found")),
        ("without the header", &[("origin", own)], (403, "csrf_missing")),
        ("with an empty one", &[("origin", own), ("plexus-csrf", "")], (403, "csrf_missing")),
        ("with a part of it", &[("origin", own), ("plexus-csrf", &csrf[1..])], (403, "csrf_missing")),
        ("with the token", &[("origin", own), ("plexus-csrf", token)], (403, "csrf_missing")),
        ("twice", &[("origin", own), ("plexus-csrf", csrf), ("plexus-csrf", csrf)], (403, "csrf_missing")),
        ("without an Origin", &[mine, ("plexus-csrf", csrf)], (401, "unauthorized")),
        ("our other name's page", &[("origin", &localhost), ("plexus-csrf", csrf)], (401, "unauthorized")),
        ("another site", &[("origin", "https://evil.example"), ("plexus-csrf", csrf)], (403, "foreign_origin")),
        ("beside a bearer", &[("origin", own), ("authorization", &bearer)], (404, "runtime_not_found")),
        (
            "beside one that may not",
            &[("origin", own), ("plexus-csrf", csrf), ("authorization", &watcher)],
            (403, "scope_missing"),
        ),
    ];
    for (what, headers, expected) in tables {
        let mut all = vec![("cookie", cookie), json];
        all.extend(*headers);
        let reply = front.send("POST", "/v1/sessions", &all, r#"{"runtime_id":"x"}"#).await;
        assert_eq!((reply.status, reply.code().as_str()), *expected, "{what}");
    }
    for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"] {
        let reply = front.send(method, "/v1/devices/x", &[("cookie", cookie), ("origin", own)], "").await;
        assert_eq!(reply.code(), "csrf_missing", "{method}");
    }

    // A WebSocket: a browser always sends its origin.
    let upgrade = [
        ("upgrade", "websocket"),
        ("connection", "upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "bm90IGEgbm9uY2UhISEhIQ=="),
    ];
    let offered = format!("plexus.v1, plexus.bearer.{}", front.admin);
    let tables: Table<'_, u16> = &[
        ("its page", &[("origin", own)], 101),
        ("without an Origin", &[], 401),
        ("without an Origin, however it is called", &[mine], 401),
        ("our other name's page", &[("origin", &localhost)], 401),
        ("another site", &[("origin", "https://evil.example")], 403),
        ("no site at all", &[("origin", "null")], 403),
        ("beside a bearer", &[("origin", own), ("sec-websocket-protocol", &offered)], 101),
        ("beside a wrong one", &[("origin", own), ("sec-websocket-protocol", "plexus.v1, plexus.bearer.x")], 401),
    ];
    for path in ["/v1/ws", "/acp"] {
        for (what, headers, status) in tables {
            let mut text = format!("GET {path} HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\n", front.address);
            for (name, value) in upgrade.iter().chain(*headers) {
                text += &format!("{name}: {value}\r\n");
            }
            let mut stream = tokio::net::TcpStream::connect(front.address).await.unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut stream, format!("{text}\r\n").as_bytes()).await.unwrap();
            let mut head = [0; 12];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut head).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&head), format!("HTTP/1.1 {status}"), "{path} {what}");
        }
    }
}

#[tokio::test]
async fn cookie_is_set_for_pages_only() {
    let front = Front::new().await;
    let own = format!("http://{}", front.address);
    let json = ("content-type", "application/json");
    let code = front
        .admin("POST", "/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin"] }))
        .await
        .json()["code"]
        .clone();
    let body = json!({ "code": code, "name": "page", "cookie": true }).to_string();
    let reply = front.send("POST", "/v1/pair", &[json], &body).await;
    assert_eq!((reply.status, reply.code().as_str()), (422, "invalid"), "no page asks");
    let reply = front.send("POST", "/v1/pair", &[json, ("origin", "https://evil.example")], &body).await;
    assert_eq!(reply.code(), "foreign_origin");
    let reply = front.send("POST", "/v1/pair", &[json, ("origin", &own)], &body).await;
    assert_eq!(reply.status, 200, "the code was not used up: {reply:?}");
    let set = reply.header("set-cookie").unwrap();
    for word in ["path=/;", "httponly", "samesite=strict", "max-age=31536000"] {
        assert!(set.contains(word), "{set}");
    }
    let listed = front.admin("GET", "/v1/devices", Value::Null).await;
    assert!(!listed.body.contains("plx_") && !listed.body.contains("sha256"), "{listed:?}");
}

#[tokio::test]
async fn browser_is_one_device_however_often_it_is_opened() {
    let front = Front::new().await;
    let own = format!("http://{}", front.address);
    let (cookie, csrf) = page(&front, &own).await;
    let devices = async || front.admin("GET", "/v1/devices", Value::Null).await.json()["devices"].clone();
    let before = devices().await[1]["device_id"].clone();
    let again = async |grant: Value, cookie: &str| {
        let code = front.admin("POST", "/v1/codes", grant).await.json()["code"].clone();
        let body = json!({ "code": code, "name": "page", "cookie": true }).to_string();
        let headers = [("content-type", "application/json"), ("origin", own.as_str()), ("cookie", cookie)];
        let reply = front.send("POST", "/v1/pair", &headers, &body).await;
        let used = front.send("POST", "/v1/pair", &headers[..2], &body).await;
        assert_eq!(used.status, 401, "the code is used up");
        reply
    };
    let same = again(json!({ "scopes": ["watch", "prompt", "approve", "admin"] }), &cookie).await;
    assert_eq!((same.status, &same.json()["device_id"], &same.json()["csrf"]), (200, &before, &json!(csrf)));
    assert!(same.header("set-cookie").is_none(), "it keeps its cookie");
    assert_eq!(devices().await.as_array().unwrap().len(), 2);
    // Another grant makes another device, which replaces it.
    let less = again(json!({ "scopes": ["watch"] }), &cookie).await;
    assert_eq!((less.status, &less.json()["scopes"]), (200, &json!(["watch"])));
    let new = less.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    assert_ne!(new, cookie);
    let me = async |cookie: &str| front.send("GET", "/v1/me", &[("origin", &own), ("cookie", cookie)], "").await.status;
    assert_eq!((me(&cookie).await, me(&new).await), (401, 200));
    assert_eq!(devices().await.as_array().unwrap().len(), 2);
    // An unknown cookie does not block the sign-in.
    assert_eq!(again(json!({ "scopes": ["watch", "prompt", "approve", "admin"] }), &cookie).await.status, 200);
    assert_eq!(devices().await.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn pasted_token_becomes_a_cookie_that_ends_with_it() {
    let front = Front::new().await;
    let own = format!("http://{}", front.address);
    let token = front.token(json!({ "scopes": ["watch"], "runtimes": ["x"] })).await;
    let bearer = format!("Bearer {token}");
    let json = ("content-type", "application/json");
    let sign_in = async |headers: &[(&str, &str)], body: &str| {
        let mut all = vec![json];
        all.extend(headers);
        front.send("POST", "/v1/signin", &all, body).await
    };
    let all = [("authorization", bearer.as_str()), ("origin", own.as_str())];
    assert_eq!(sign_in(&all[..1], r#"{"cookie":true}"#).await.code(), "invalid", "no page asks");
    assert_eq!(sign_in(&all, r#"{"cookie":false}"#).await.code(), "invalid");
    assert_eq!(sign_in(&all[1..], r#"{"cookie":true}"#).await.status, 401);
    let reply = sign_in(&all, r#"{"cookie":true,"name":"browser"}"#).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let given = reply.json();
    assert_eq!((&given["scopes"], &given["runtimes"]), (&json!(["watch"]), &json!(["x"])), "no more than the token's");
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let csrf = given["csrf"].as_str().unwrap();
    let page = [("cookie", cookie.as_str()), ("origin", &own), ("plexus-csrf", csrf)];
    let me = front.send("GET", "/v1/me", &page, "").await.json();
    assert_eq!((&me["name"], &me["csrf"], &me["kind"]), (&json!("browser"), &given["csrf"], &json!("device")));
    assert_ne!(me["device_id"], front.call(&token, "GET", "/v1/me", Value::Null).await.json()["device_id"]);
    assert_eq!(sign_in(&page, r#"{"cookie":true}"#).await.code(), "invalid", "it is signed in");

    // Signing out ends only this device and clears the cookie.
    let out = front.send("DELETE", "/v1/me", &page[..2], "").await;
    assert_eq!(out.code(), "csrf_missing");
    let out = front.send("DELETE", "/v1/me", &page, "").await;
    assert_eq!(out.status, 204);
    assert!(out.header("set-cookie").unwrap().contains("max-age=0"), "{out:?}");
    assert_eq!(front.send("GET", "/v1/me", &page, "").await.status, 401);
    assert_eq!(front.call(&token, "GET", "/v1/me", Value::Null).await.status, 200);
    assert_eq!(front.admin("DELETE", "/v1/me", Value::Null).await.code(), "local_device");

    // Revoking the token's device also removes the browsers that it signed in.
    let reply = sign_in(&all, r#"{"cookie":true}"#).await;
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let page = [("cookie", cookie.as_str()), ("origin", own.as_str())];
    assert_eq!(front.send("GET", "/v1/me", &page, "").await.status, 200);
    let id = front.call(&token, "GET", "/v1/me", Value::Null).await.json()["device_id"].as_str().unwrap().to_owned();
    assert_eq!(front.admin("DELETE", &format!("/v1/devices/{id}"), Value::Null).await.status, 204);
    assert_eq!(front.send("GET", "/v1/me", &page, "").await.status, 401);
    assert_eq!(front.admin("GET", "/v1/devices", Value::Null).await.json()["devices"].as_array().unwrap().len(), 1);
}
