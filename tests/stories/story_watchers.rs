//! Thousands of read-only watchers behind nginx with `deploy/nginx-watch.conf`: the gateway answers each page once for all of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, demo};
use common::moments::rounds;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use serde_json::{Value, json};

const SITE: &str = include_str!("../../deploy/nginx-watch.conf");

/// A gateway with nginx in front, without TLS.
struct Site {
    gateway: Gateway,
    nginx: Child,
    origin: String,
    http: reqwest::Client,
    _dir: tempfile::TempDir,
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.nginx.id().to_string()).status();
        let _ = self.nginx.wait();
    }
}

fn nginx(dir: &Path, port: u16, gateway: &str) -> Child {
    let site: String = SITE.lines().filter(|line| !line.contains("ssl_")).map(|line| format!("{line}\n")).collect();
    let site = site
        .replace("listen 443 ssl http2;", &format!("listen 127.0.0.1:{port};"))
        .replace("/var/cache/nginx/plexus", &dir.join("cache").display().to_string())
        .replace("127.0.0.1:7420", gateway);
    assert!(!site.contains("ssl") && site.contains(gateway), "the file has changed: {site}");
    std::fs::write(dir.join("site.conf"), site).unwrap();
    let temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temp: String = temp.iter().map(|kind| format!("{kind}_temp_path {}/{kind};\n", dir.display())).collect();
    let whole = format!(
        "daemon off;\nworker_processes 1;\npid {0}/nginx.pid;\nerror_log stderr;\nevents {{ worker_connections 8192; }}\n\
         http {{\naccess_log off;\n{temp}include {0}/site.conf;\n}}\n",
        dir.display()
    );
    std::fs::write(dir.join("nginx.conf"), whole).unwrap();
    let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
    let mut command = Command::new(program);
    command.arg("-p").arg(dir).args(["-e", "stderr", "-c"]).arg(dir.join("nginx.conf"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("scripts/test installs it")
}

impl Site {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!("public_hosts = [\"127.0.0.1:{port}\"]\ntrusted_proxies = [\"127.0.0.1\"]\n{}", demo());
        let gateway = Gateway::start(&config).await;
        let nginx = nginx(dir.path(), port, gateway.url.trim_start_matches("http://"));
        let deadline = Instant::now() + PATIENCE;
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            assert!(Instant::now() < deadline, "nginx does not listen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { gateway, nginx, origin: format!("http://127.0.0.1:{port}"), http, _dir: dir }
    }

    /// Adds a device that may only watch this session, and returns its identifier and token.
    async fn watcher(&self, session: &str) -> (String, String) {
        let body = json!({ "name": "watcher", "scopes": ["watch"], "sessions": [session] });
        let (status, device) = self.gateway.post("/v1/devices", body).await;
        assert!(status == 200 || status == 201, "{status} {device}");
        (device["device_id"].as_str().unwrap().to_owned(), device["token"].as_str().unwrap().to_owned())
    }

    async fn get(&self, path: &str, token: &str) -> reqwest::Response {
        let request = self.http.get(format!("{}{path}", self.origin)).timeout(PATIENCE);
        request.header(AUTHORIZATION, format!("Bearer {token}")).send().await.unwrap()
    }

    /// Returns the number of requests that the gateway answered so far, without those for metrics.
    async fn requests(&self) -> u64 {
        let text = self.gateway.request("GET", "/metrics").send().await.unwrap().text().await.unwrap();
        let counts =
            text.lines().filter(|line| line.starts_with("plexus_http_requests_total{") && !line.contains("/metrics"));
        counts.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    }
}

/// Reads the events of a session as docs/remote.md describes it, until a run ends; returns their cursors.
async fn watch(site: &Site, session: &str, token: &str) -> Vec<String> {
    let (mut after, mut turn, mut at_end, mut cursors) = (String::new(), 0, false, Vec::new());
    loop {
        let tail = if at_end { format!("&wait=25&gather=200&turn={turn}") } else { String::new() };
        let path = format!("/v1/sessions/{session}/events?limit=100&max_bytes=262144&after={after}{tail}");
        let reply = site.get(&path, token).await;
        assert_eq!(reply.status(), StatusCode::OK, "{}", reply.text().await.unwrap());
        at_end |= reply.headers().get(ETAG).is_none();
        let page: Value = reply.json().await.unwrap();
        assert_eq!(page["resume"], "ok", "{page}");
        let events = page["events"].as_array().unwrap();
        turn = if events.is_empty() { turn + 1 } else { 0 };
        page["next"].as_str().unwrap().clone_into(&mut after);
        for event in events {
            cursors.push(event["cursor"].as_str().unwrap().to_owned());
            if event["kind"] == "run_ended" {
                return cursors;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_behind_nginx_cost_the_gateway_a_few_requests_a_second() {
    let count = rounds("watchers of a session", 300, 2000);
    let site = Arc::new(Site::start().await);
    let session = site.gateway.session("demo").await;
    let (_, token) = site.watcher(&session).await;
    let (started, before) = (Instant::now(), site.requests().await);
    let watching: Vec<_> = (0..count)
        .map(|_| {
            let (site, session, token) = (Arc::clone(&site), session.clone(), token.clone());
            tokio::spawn(async move { watch(&site, &session, &token).await })
        })
        .collect();
    // Most of them wait at the end of the log when the agent begins, and it writes faster than pages are requested.
    tokio::time::sleep(Duration::from_secs(2)).await;
    site.gateway.prompt(&session, "stream 150 30").await;
    let mut all = Vec::new();
    for watcher in watching {
        all.push(tokio::time::timeout(2 * PATIENCE, watcher).await.expect("a watcher waits forever").unwrap());
    }
    let (seconds, requests) = (started.elapsed().as_secs_f64(), site.requests().await - before);
    let log: Value = site.gateway.get(&format!("/v1/sessions/{session}/events?limit=5000")).await.1;
    let log: Vec<&str> =
        log["events"].as_array().unwrap().iter().map(|event| event["cursor"].as_str().unwrap()).collect();
    for cursors in &all {
        assert_eq!(*cursors, log[..cursors.len()], "each event once, in order");
        assert!(cursors.len() > 150);
    }
    println!("{count} watchers: {requests} requests in {seconds:.1} s, {:.1} a second", requests as f64 / seconds);
    assert!((requests as f64) < 20.0 * seconds.max(1.0), "{requests} requests in {seconds} s");
}

#[tokio::test]
async fn watchers_behind_nginx_need_a_token_for_what_others_have_read() {
    let site = Site::start().await;
    let (session, other) = (site.gateway.session("demo").await, site.gateway.session("demo").await);
    let run = site.gateway.prompt(&session, "stream 30 0").await;
    site.gateway.until_ended(&session, &run).await;
    let (device, token) = site.watcher(&session).await;
    let (_, stranger) = site.watcher(&other).await;
    let page = format!("/v1/sessions/{session}/events?limit=10");
    let tail = format!("{page}&wait=5");
    for path in [&page, &tail] {
        let before = site.requests().await;
        assert_eq!(site.get(path, &token).await.status(), StatusCode::OK, "{path}");
        assert_eq!(site.get(path, &token).await.status(), StatusCode::OK, "{path}");
        // The page once, and perhaps the check of the token.
        assert!(site.requests().await - before <= 2, "{path}");
        for (wrong, status) in [("plx_wrong", 401), (stranger.as_str(), 403)] {
            assert_eq!(site.get(path, wrong).await.status(), status, "{path} {wrong}");
        }
    }
    assert_eq!(site.get("/v1/sessions/s_none/events", &token).await.status(), 403);
    assert_eq!(site.get("/plexus-tail?wait=1", &token).await.status(), 404);
    // An id becomes part of a request to the gateway: nothing but an id does.
    for id in ["x%0d%0aX-Forwarded-For:%201", "x%20y", "x%3Fa"] {
        assert_eq!(site.get(&format!("/v1/sessions/{id}/events?wait=1"), &token).await.status(), 404, "{id}");
    }
    assert_eq!(site.gateway.delete(&format!("/v1/devices/{device}")).await.0, 204);
    let deadline = Instant::now() + PATIENCE;
    while site.get(&page, &token).await.status() == StatusCode::OK {
        assert!(Instant::now() < deadline, "a removed device still reads");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn complete_pages_may_be_stored_and_growing_ones_may_not() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "stream 30 0").await;
    gateway.until_ended(&session, &run).await;
    let page = async |query: &str, etag: &str| {
        let request = gateway.request("GET", &format!("/v1/sessions/{session}/events?{query}"));
        request.header(IF_NONE_MATCH, etag).send().await.unwrap()
    };
    let complete = page("limit=10", "\"x\"").await;
    assert_eq!(complete.headers()[CACHE_CONTROL], "private, max-age=31536000, immutable");
    let etag = complete.headers()[ETAG].to_str().unwrap().to_owned();
    let next = complete.json::<Value>().await.unwrap()["next"].as_str().unwrap().to_owned();
    assert_eq!(etag, format!("W/\"{next}\""));
    let same = page("limit=10", &etag).await;
    assert_eq!((same.status(), same.headers()[ETAG].to_str().unwrap()), (StatusCode::NOT_MODIFIED, etag.as_str()));
    assert!(same.bytes().await.unwrap().is_empty());
    for growing in ["limit=5000", "before=now&limit=10", &format!("after={next}&limit=5000&merge=true")] {
        let reply = page(growing, &etag).await;
        assert_eq!((reply.status(), &reply.headers()[CACHE_CONTROL]), (StatusCode::OK, &"no-store".parse().unwrap()));
        assert!(reply.headers().get(ETAG).is_none(), "{growing}");
    }
    // All sessions: another one may be deleted.
    let all = gateway.request("GET", "/v1/events?limit=3").send().await.unwrap();
    assert!(all.headers().get(ETAG).is_none());
}
