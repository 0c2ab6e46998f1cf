//! The gateway behind real reverse proxies with TLS, Caddy and nginx, with the files of `deploy/`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use crate::common;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, demo};
use common::secure::{self, Client, code, hello, plexus, running};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::Message;

const CADDYFILE: &str = include_str!("../../deploy/Caddyfile");
const NGINX: &str = include_str!("../../deploy/nginx.conf");

/// A proxy that runs until dropped.
struct Proxy {
    child: Child,
    log: std::path::PathBuf,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        // nginx ends its children on a graceful stop; Caddy would wait for its clients.
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let deadline = Instant::now() + Duration::from_secs(2);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- the proxy's words\n{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

/// A port that is free now.
fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A certificate for the proxy.
fn certificate(dir: &Path) {
    let made = plexus(dir, &["tls", "init", "--name", "localhost"]);
    assert!(made.status.success(), "{made:?}");
}

fn start(dir: &Path, mut command: Command) -> Proxy {
    let log = dir.join("proxy.log");
    let out = std::fs::File::create(&log).unwrap();
    let child = command.stdin(Stdio::null()).stdout(out.try_clone().unwrap()).stderr(out).env("HOME", dir).spawn();
    Proxy { child: child.expect("scripts/test installs it"), log }
}

fn caddy(dir: &Path, port: u16, gateway: &str) -> Proxy {
    let tls = dir.join("tls");
    let here = format!(
        "https://localhost:{port} {{\n\ttls {} {}\n",
        tls.join("server.crt").display(),
        tls.join("server.key").display()
    );
    let site = CADDYFILE.replace("plexus.example.org {\n", &here).replace("127.0.0.1:7420", gateway);
    assert!(site.contains(&here) && site.contains(gateway), "the file has changed: {site}");
    let options = "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n";
    let file = dir.join("Caddyfile");
    std::fs::write(&file, format!("{options}{site}")).unwrap();
    let mut command = Command::new("caddy");
    command
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(&file)
        .env("XDG_DATA_HOME", dir)
        .env("XDG_CONFIG_HOME", dir);
    start(dir, command)
}

fn nginx(dir: &Path, port: u16, gateway: &str) -> Proxy {
    let tls = dir.join("tls");
    let site = NGINX
        .replace("listen 443 ", &format!("listen 127.0.0.1:{port} "))
        .replace("plexus.example.org;", "localhost;")
        .replace("/etc/ssl/plexus/fullchain.pem", &tls.join("server.crt").display().to_string())
        .replace("/etc/ssl/plexus/key.pem", &tls.join("server.key").display().to_string())
        .replace("127.0.0.1:7420", gateway);
    std::fs::write(dir.join("site.conf"), site).unwrap();
    let temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temp: String = temp.iter().map(|kind| format!("{kind}_temp_path {}/{kind};\n", dir.display())).collect();
    let whole = format!(
        "daemon off;\nworker_processes 1;\npid {0}/nginx.pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{temp}include {0}/site.conf;\n}}\n",
        dir.display()
    );
    let file = dir.join("nginx.conf");
    std::fs::write(&file, whole).unwrap();
    let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
    let mut command = Command::new(program);
    command.arg("-p").arg(dir).arg("-e").arg("stderr").arg("-c").arg(&file);
    start(dir, command)
}

/// A gateway with a proxy in front, and clients of the proxy.
async fn behind(proxy: fn(&Path, u16, &str) -> Proxy) -> (Gateway, Proxy, Client, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    certificate(dir.path());
    let port = free();
    let config = format!("public_url = \"https://localhost:{port}\"\ntrusted_proxies = [\"127.0.0.1\"]\n{}", demo());
    let gateway = Gateway::start(&config).await;
    let mut proxy = proxy(dir.path(), port, gateway.url.trim_start_matches("http://"));
    let address: SocketAddr = ([127, 0, 0, 1], port).into();
    let client = Client::new(&dir.path().join("tls/ca.crt"), address, &gateway.token);
    let deadline = Instant::now() + PATIENCE;
    while client.connect("localhost", &["http/1.1"]).await.is_err() {
        assert!(proxy.child.try_wait().unwrap().is_none(), "the proxy ended");
        assert!(Instant::now() < deadline, "the proxy does not listen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (gateway, proxy, client, dir)
}

async fn everything_comes_through(gateway: &Gateway, client: &Client) {
    assert_eq!(running(gateway)["public_url"], client.origin());
    let bearer = format!("Bearer {}", gateway.token);
    let page = client.http1("GET", "/", &[], "").await;
    assert!(page.status == 200 && page.header("content-security-policy").is_some(), "{page:?}");
    let session = gateway.session("demo").await;

    // A stream is not buffered: events arrive while it is open.
    let mut h2 = client.http2().await;
    let path = format!("/v1/sessions/{session}/events");
    let mut stream = h2.send("GET", &path, &[("accept", "text/event-stream")], None).await.unwrap();
    secure::until(stream.body_mut(), "event: live").await;
    let run = gateway.prompt(&session, "echo before ;; ask make it ;; echo after").await;
    let seen = secure::until(stream.body_mut(), "event: request_opened").await;
    assert!(seen.contains("before") && !seen.contains("run_ended"), "{seen}");
    let request = gateway.open_request(&session).await;
    let id = request["request_id"].as_str().unwrap();
    // An answer through the proxy, as a page of the public origin sends it.
    let origin = client.origin();
    let answer = json!({ "option_id": Gateway::option(&request, "allow_once") }).to_string();
    let headers = [("authorization", bearer.as_str()), ("origin", &origin), ("sec-fetch-site", "same-origin")];
    let reply = client.http1("POST", &format!("/v1/requests/{id}/answer"), &headers, &answer).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    secure::until(stream.body_mut(), "event: run_ended").await;
    gateway.until_ended(&session, &run).await;

    let mut ws = client.ws(Some(&origin)).await.unwrap();
    ws.send(Message::text(hello().to_string())).await.unwrap();
    let answer = tokio::time::timeout(PATIENCE, ws.next()).await.expect("nothing came").unwrap().unwrap();
    assert!(answer.into_text().unwrap().contains("d_local"));

    // Other host names and origins are refused behind a proxy too.
    let port = client.address.port();
    for origin in ["https://evil.example", &format!("http://localhost:{port}"), "https://localhost", "null"] {
        let headers = [("authorization", bearer.as_str()), ("origin", origin)];
        assert_eq!(client.http1("GET", "/v1/me", &headers, "").await.status, 403, "{origin}");
        assert!(client.ws(Some(origin)).await.is_err(), "{origin}");
    }
}

/// The status of a wrong token.
async fn guess(client: &Client, forwarded: Option<&str>) -> u16 {
    let mut headers = vec![("authorization", "Bearer plx_wrong")];
    headers.extend(forwarded.map(|value| ("x-forwarded-for", value)));
    client.http1("GET", "/v1/me", &headers, "").await.status
}

async fn clients_are_told_apart(client: &Client) {
    // A client that guesses is slowed, whatever headers it sends; another one behind the same proxy is not.
    let guesser = client.from([127, 0, 0, 2]);
    let mut last = 0;
    for n in 0..40 {
        last = guess(&guesser, Some(&format!("198.51.100.{n}, 127.0.0.1"))).await;
    }
    assert_eq!(last, 429, "made-up addresses do not help");
    assert_eq!(guess(&client.from([127, 0, 0, 3]), None).await, 401, "another client is not slowed");
    assert_eq!(guess(&client.from([127, 0, 0, 3]), Some("127.0.0.2")).await, 401, "nor made to look like it");
}

#[tokio::test]
async fn proxy_caddy_in_front() {
    let (gateway, _proxy, client, _dir) = behind(caddy).await;
    everything_comes_through(&gateway, &client).await;
    clients_are_told_apart(&client).await;
}

#[tokio::test]
async fn proxy_nginx_in_front() {
    let (gateway, _proxy, client, _dir) = behind(nginx).await;
    everything_comes_through(&gateway, &client).await;
    clients_are_told_apart(&client).await;
}

/// A request to the plain listener itself, from an address of this machine.
async fn direct(gateway: &Gateway, source: [u8; 4], headers: &str) -> common::front::Reply {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((source, 0).into()).unwrap();
    let host = gateway.url.trim_start_matches("http://");
    let mut stream = socket.connect(host.parse().unwrap()).await.unwrap();
    let host = if headers.lines().any(|line| line.starts_with("host: ")) {
        String::new()
    } else {
        format!("host: {host}\r\n")
    };
    let text = format!("GET /v1/me HTTP/1.1\r\nconnection: close\r\n{host}{headers}\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut all = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut all)).await.expect("it stays open").unwrap();
    common::front::parse(&all)
}

#[tokio::test]
async fn proxy_headers_count_only_from_a_trusted_proxy() {
    let config = format!("public_url = \"https://plexus.example.org\"\ntrusted_proxies = [\"127.0.0.8\"]\n{}", demo());
    let gateway = Gateway::start(&config).await;
    let wrong = "authorization: Bearer plx_wrong\r\n";
    let mut last = 0;
    for n in 0..40 {
        let headers = format!(
            "{wrong}x-forwarded-for: 198.51.100.{n}\r\nforwarded: for=198.51.100.{n}\r\nx-real-ip: 198.51.100.{n}\r\n"
        );
        last = direct(&gateway, [127, 0, 0, 5], &headers).await.status;
    }
    assert_eq!(last, 429, "an untrusted peer is who it is");
    for n in 0..40 {
        let headers = format!("{wrong}x-forwarded-for: 203.0.113.9, 198.51.100.{n}\r\n");
        assert_eq!(direct(&gateway, [127, 0, 0, 8], &headers).await.status, 401, "each is its own: {n}");
    }
    for _ in 0..40 {
        let headers = format!("{wrong}x-forwarded-for: 203.0.113.9\r\nforwarded: for=198.51.100.77\r\n");
        last = direct(&gateway, [127, 0, 0, 8], &headers).await.status;
    }
    assert_eq!(last, 429, "a trusted one's word counts, and `Forwarded` does not");
    // Host names and schemes are not believed, even from a trusted proxy.
    let token = format!("authorization: Bearer {}\r\n", gateway.token);
    for source in [[127, 0, 0, 5], [127, 0, 0, 8]] {
        let forged = "x-forwarded-host: plexus.example.org\r\nx-forwarded-proto: https\r\nforwarded: host=plexus.example.org;proto=https\r\n";
        let reply = direct(&gateway, source, &format!("host: evil.example\r\n{forged}{token}")).await;
        assert_eq!((reply.status, reply.code().as_str()), (421, "wrong_host"));
        let reply = direct(&gateway, source, &format!("{forged}origin: https://evil.example\r\n{token}")).await;
        assert_eq!(reply.status, 403);
        let own =
            "host: plexus.example.org\r\nx-forwarded-host: evil.example\r\norigin: https://plexus.example.org\r\n";
        assert_eq!(direct(&gateway, source, &format!("{own}{token}")).await.status, 200);
        let plain = "host: plexus.example.org\r\nx-forwarded-proto: https\r\norigin: http://plexus.example.org\r\n";
        assert_eq!(direct(&gateway, source, &format!("{plain}{token}")).await.status, 403);
    }
    let (status, body) = gateway.get("/v1/sessions").await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(code(&direct(&gateway, [127, 0, 0, 6], wrong).await.body), "unauthorized");
    let _: Value = running(&gateway);
}
