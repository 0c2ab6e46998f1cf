//! `plexus phone`: a phone is let in while the gateway runs, by the gateway's own certificate or by Tailscale (a double of its program).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, exe};
use common::secure::{Client, running};
use serde_json::{Value, json};

/// `plexus phone --json --yes`, with its lines.
struct Phone {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Drop for Phone {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Phone {
    fn start(gateway: &Gateway, path: Option<&Path>, args: &[&str]) -> Self {
        let mut command = Command::new(exe());
        command.args(["phone", "--json", "--yes"]).args(args).env("PLEXUS_HOME", &gateway.home).env("NO_COLOR", "1");
        // Whatever is on this machine: no Tailscale but the double.
        let path =
            path.map_or_else(|| gateway.home.display().to_string(), |path| format!("{}:/bin:/usr/bin", path.display()));
        let mut child = command
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line; the program's end counts as one, so this always returns.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no line but {line:?}: {}", self.stderr()))
    }

    fn stderr(&mut self) -> String {
        let mut words = String::new();
        let _ = self.child.kill();
        let _ = std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut words);
        words
    }
}

const HERE: [&str; 6] = ["--address", "localhost", "--address", "127.0.0.1", "--listen", "127.0.0.1:0"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phone_is_let_in_by_one_command_while_the_gateway_runs() {
    let mut gateway = Gateway::demo().await;
    let mut command = Phone::start(&gateway, None, &HERE);
    let reachable = command.next();
    let url = reachable["public_url"].as_str().unwrap().to_owned();
    assert_eq!(reachable["ca_url"], format!("{url}/ca"));
    let listens = running(&gateway);
    assert_eq!(listens["public_url"], url.as_str());

    // The phone installs the CA, and sees nothing else before it is paired.
    let phone = Client::of(&gateway);
    assert_eq!(url, phone.origin());
    let guide = phone.http1("GET", "/ca", &[], "").await;
    assert!(
        guide.status == 200 && guide.body.contains("ca.mobileconfig") && !guide.body.contains("<script"),
        "{guide:?}"
    );
    let policy = guide.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("script-src"), "{policy}");
    assert_eq!(phone.http1("GET", "/ca.crt", &[], "").await.status, 200);
    assert_eq!(phone.http1("GET", "/v1/sessions", &[], "").await.status, 401);

    // The code is for the address that the phone reaches; unless it is asked for, nothing dangerous may be answered.
    let begun = command.next();
    let code = begun["code"].as_str().unwrap();
    assert_eq!(begun["url"], format!("{url}/#pair={}", code.replace('-', "")));
    let join = json!({ "code": code, "name": "phone" }).to_string();
    let joined = phone.http1("POST", "/v1/pair", &[("origin", &url)], &join).await;
    assert_eq!(joined.status, 202, "{joined:?}");
    assert_eq!((&command.next()["state"], &command.next()["state"]), (&json!("joined"), &json!("confirmed")));
    let ticket = json!({ "ticket": joined.json()["ticket"], "wait": 20 }).to_string();
    let device = phone.http1("POST", "/v1/pair/wait", &[("origin", &url)], &ticket).await;
    let bearer = format!("Bearer {}", device.json()["token"].as_str().unwrap());
    let me = phone.http1("GET", "/v1/me", &[("authorization", &bearer)], "").await.json();
    assert_eq!((&me["name"], &me["approve_up_to"]), (&json!("phone"), &json!("elevated")), "{me}");

    // The same command again adds nothing. The next gateway listens there, too.
    let mut again = Phone::start(&gateway, None, &HERE[..4]);
    assert_eq!(again.next()["state"], "reachable");
    drop(again);
    gateway.kill();
    gateway.again().await;
    assert_eq!(running(&gateway)["public_url"], gateway.get("/v1/listeners").await.1["public_url"]);
    assert!(gateway.get("/v1/listeners").await.1["tls"]["names"].to_string().contains("localhost"));
    let phone = Client::of(&gateway);
    assert_eq!(phone.http1("GET", "/healthz", &[], "").await.status, 200);

    // Taken away, other machines are shut out at once, and stay so.
    let out = Command::new(exe()).args(["phone", "--remove"]).env("PLEXUS_HOME", &gateway.home).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let deadline = Instant::now() + PATIENCE;
    while phone.tcp().await.is_ok() {
        assert!(Instant::now() < deadline, "it still listens");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(running(&gateway)["tls"].is_null());
    gateway.kill();
    gateway.again().await;
    assert!(gateway.get("/v1/listeners").await.1["tls"].is_null());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phone_listener_that_cannot_be_added_changes_nothing() {
    let gateway = Gateway::demo().await;
    let (status, problem) = gateway.put("/v1/listeners/tls", json!({ "listen": "127.0.0.1:0" })).await;
    assert_eq!((status, &problem["code"]), (409, &json!("no_certificate")), "{problem}");
    assert!(problem["detail"].to_string().contains("plexus tls init"), "{problem}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = Phone::start(&gateway, None, &["--address", "localhost", "--listen", &address]);
    let words = {
        let mut line = String::new();
        command.lines.read_line(&mut line).unwrap();
        assert!(line.is_empty(), "{line}");
        command.stderr()
    };
    assert!(words.contains(&address) && words.contains("stop the program that uses it"), "{words}");
    assert!(gateway.get("/v1/listeners").await.1["tls"].is_null());
    assert_eq!(gateway.delete("/v1/listeners/tls").await.0, 404);
    assert_eq!(gateway.delete("/v1/listeners/proxy").await.0, 404);
    for wrong in ["http://box.ts.net", "https://box.ts.net/path", "box", "https://u@box"] {
        let (status, problem) = gateway.put("/v1/listeners/proxy", json!({ "public_url": wrong })).await;
        assert_eq!(status, 422, "{wrong}: {problem}");
    }
    // A file that somebody broke keeps nobody from starting.
    let mut gateway = gateway;
    gateway.kill();
    std::fs::write(gateway.home.join("listeners.json"), "{").unwrap();
    gateway.again().await;
    assert!(gateway.stderr().contains("listeners.json"), "{}", gateway.stderr());
}

/// A double of Tailscale's program: it reports the addresses that it was told to serve, and serves nothing.
fn tailscale(dir: &Path, served: &str) {
    let status = json!({ "BackendState": "Running", "Self": { "DNSName": "box.tail1.ts.net." }, "CertDomains": ["box.tail1.ts.net"] });
    let script = format!(
        "#!/bin/sh\necho \"$*\" >>{dir}/asked\ncase \"$*\" in\n'status --json') echo '{status}' ;;\n'serve status --json') echo '{served}' ;;\nesac\n",
        dir = dir.display()
    );
    std::fs::write(dir.join("tailscale"), script).unwrap();
    std::fs::set_permissions(dir.join("tailscale"), std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phone_comes_by_tailscale_where_it_runs() {
    let gateway = Gateway::demo().await;
    let dir = tempfile::tempdir().unwrap();
    tailscale(dir.path(), "{}");
    let mut command = Phone::start(&gateway, Some(dir.path()), &[]);
    let reachable = command.next();
    assert_eq!(reachable["public_url"], "https://box.tail1.ts.net");
    assert!(reachable["ca_url"].is_null(), "its certificate is trusted already");
    assert!(command.next()["url"].as_str().unwrap().starts_with("https://box.tail1.ts.net/#pair="));
    let asked = std::fs::read_to_string(dir.path().join("asked")).unwrap();
    assert!(asked.contains(&format!("serve --bg {}", gateway.url)), "{asked}");
    drop(command);
    // What Tailscale forwards is accepted, at once; another name is not.
    let host = |name: &str| gateway.request("GET", "/v1/me").header("Host", name).send();
    assert_eq!(host("box.tail1.ts.net").await.unwrap().status(), 200);
    assert_eq!(host("other.tail1.ts.net").await.unwrap().status(), 421);

    // It serves something else there already: that is left alone.
    let gateway = Gateway::demo().await;
    let other =
        json!({ "Web": { "box.tail1.ts.net:443": { "Handlers": { "/": { "Proxy": "http://127.0.0.1:3000" } } } } });
    tailscale(dir.path(), &other.to_string());
    std::fs::remove_file(dir.path().join("asked")).unwrap();
    let mut command = Phone::start(&gateway, Some(dir.path()), &["--listen", "127.0.0.1:0"]);
    assert!(command.next()["sha256"].is_string());
    assert!(command.stderr().contains("http://127.0.0.1:3000"));
    let asked = std::fs::read_to_string(dir.path().join("asked")).unwrap();
    assert!(!asked.contains("--bg"), "{asked}");
}
