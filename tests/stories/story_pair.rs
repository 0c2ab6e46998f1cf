//! A phone joins the running gateway by a short code, with the real binary and the real `plexus pair`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use common::gateway::{Gateway, PATIENCE, exe};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};

/// A page in a browser: it sends its origin, keeps its cookies, and sends its CSRF value.
struct Page<'a> {
    gateway: &'a Gateway,
    cookie: Option<String>,
    csrf: Option<String>,
}

impl<'a> Page<'a> {
    fn new(gateway: &'a Gateway) -> Self {
        Self { gateway, cookie: None, csrf: None }
    }

    async fn send(&mut self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.gateway.http.request(method.clone(), format!("{}{path}", self.gateway.url));
        if method == "GET" {
            // As browsers do when a page only reads from its own origin.
            request = request.header("Sec-Fetch-Site", "same-origin");
        } else {
            request = request.header("Origin", &self.gateway.url);
        }
        if let Some(cookie) = &self.cookie {
            request = request.header("Cookie", cookie);
        }
        if let Some(csrf) = self.csrf.as_ref().filter(|_| method != "GET") {
            request = request.header("Plexus-CSRF", csrf);
        }
        if !body.is_null() {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        if let Some(set) = response.headers().get("set-cookie") {
            self.cookie = Some(set.to_str().unwrap().split(';').next().unwrap().to_owned());
        }
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if let Some(csrf) = body["csrf"].as_str() {
            self.csrf = Some(csrf.to_owned());
        }
        (status, body)
    }

    async fn socket(
        &self,
    ) -> Result<tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>, WsError>
    {
        let mut request =
            format!("{}/v1/ws", self.gateway.url.replace("http://", "ws://")).into_client_request().unwrap();
        request.headers_mut().insert("Origin", self.gateway.url.parse().unwrap());
        if let Some(cookie) = &self.cookie {
            request.headers_mut().insert("Cookie", cookie.parse().unwrap());
        }
        Ok(tokio_tungstenite::connect_async(request).await?.0)
    }

    async fn events(&self) -> reqwest::Response {
        let request = self.gateway.http.get(format!("{}/v1/events?after=now", self.gateway.url));
        let request = request.header("Accept", "text/event-stream").header("Sec-Fetch-Site", "same-origin");
        request.header("Cookie", self.cookie.clone().unwrap()).send().await.unwrap()
    }
}

/// `plexus pair --json`, with its lines.
struct Computer {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Computer {
    fn pair(gateway: &Gateway, more: &[&str]) -> Self {
        let mut child = Command::new(exe())
            .args(["pair", "--json"])
            .args(more)
            .env("PLEXUS_HOME", &gateway.home)
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
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
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no line but {line:?}: {}", self.words()))
    }

    fn words(&mut self) -> String {
        let mut words = String::new();
        let _ = self.child.kill();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut stderr, &mut words);
        }
        words
    }

    fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn end(mut self) -> (i32, String) {
        drop(self.child.stdin.take());
        let out = self.child.wait_with_output().unwrap();
        (out.status.code().unwrap(), String::from_utf8_lossy(&out.stderr).into_owned())
    }
}

fn cli(gateway: &Gateway, args: &[&str]) -> (i32, String) {
    let out = Command::new(exe()).args(args).env("PLEXUS_HOME", &gateway.home).env("NO_COLOR", "1").output().unwrap();
    (
        out.status.code().unwrap(),
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phone_joins_by_code_acts_by_cookie_and_is_out_when_revoked() {
    let mut gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut computer = Computer::pair(&gateway, &["--scope", "watch,approve", "--approve-up-to", "elevated"]);
    let begun = computer.next();
    let code = begun["code"].as_str().unwrap();
    assert_eq!(begun["url"], format!("{}/#pair={}", gateway.url, code.replace('-', "")), "in the fragment");

    let mut phone = Page::new(&gateway);
    let (status, look) = phone.send("POST", "/v1/pair/look", json!({ "code": code })).await;
    assert_eq!((status, &look["scopes"]), (200, &json!(["watch", "approve"])));
    assert!(look["gateway"]["name"].as_str().is_some_and(|name| !name.is_empty()), "{look}");
    let join = json!({ "code": code.to_lowercase(), "name": "Alma's phone", "cookie": true });
    let (status, joined) = phone.send("POST", "/v1/pair", join.clone()).await;
    assert_eq!(status, 202, "{joined}");
    assert!(phone.cookie.is_none() && joined["token"].is_null(), "nobody has said yes");
    let wait = json!({ "ticket": joined["ticket"], "wait": 0 });
    assert_eq!(phone.send("POST", "/v1/pair/wait", wait).await.0, 202);

    // Both show the same number, and the person confirms.
    let seen = computer.next();
    assert_eq!(
        (&seen["state"], &seen["name"], &seen["number"]),
        (&json!("joined"), &json!("Alma's phone"), &joined["number"])
    );
    let number = joined["number"].as_u64().unwrap();
    assert!((10..=99).contains(&number));
    let (pairing, other) = (begun["pairing_id"].as_str().unwrap(), 10 + (number + 1) % 90);
    let confirm = format!("/v1/pairings/{pairing}/confirm");
    let (status, wrong) = gateway.post(&confirm, json!({ "number": other })).await;
    assert_eq!((status, &wrong["code"]), (409, &json!("wrong_number")));
    computer.say("y");
    let done = computer.next();
    assert_eq!(done["state"], "confirmed");
    assert_eq!(computer.end().0, 0);

    let wait = json!({ "ticket": joined["ticket"], "wait": 30 });
    let (status, device) = phone.send("POST", "/v1/pair/wait", wait).await;
    assert_eq!((status, &device["device_id"]), (200, &done["device_id"]));
    assert!(device["token"].is_null() && phone.cookie.is_some() && phone.csrf.is_some());
    assert_eq!(phone.send("POST", "/v1/pair", join).await.0, 401, "the code is used up");

    // The phone answers up to its level: `make deploy` is elevated, `rm` is above it.
    gateway.prompt(&session, "ask make deploy").await;
    let request = gateway.open_request(&session).await;
    assert_eq!(request["risk"], "elevated");
    let path = format!("/v1/requests/{}/answer", request["request_id"].as_str().unwrap());
    let (status, receipt) = phone.send("POST", &path, json!({ "ok": true, "digest": request["digest"] })).await;
    assert_eq!((status, &receipt["resolved_by"]["name"]), (200, &json!("Alma's phone")));
    gateway.prompt(&session, "ask rm -rf build").await;
    let request = gateway.open_request(&session).await;
    assert_eq!(request["risk"], "danger");
    let path = format!("/v1/requests/{}/answer", request["request_id"].as_str().unwrap());
    let (status, refused) = phone.send("POST", &path, json!({ "ok": true })).await;
    assert_eq!((status, &refused["code"], &refused["risk"]), (403, &json!("risk_too_high"), &json!("danger")));
    assert_eq!(gateway.post(&path, json!({ "ok": false })).await.0, 200, "it was open still");

    // The device survives a restart of the gateway during another pairing.
    let mut second = Computer::pair(&gateway, &[]);
    let code = second.next()["code"].as_str().unwrap().to_owned();
    let (cookie, csrf) = (phone.cookie.take(), phone.csrf.take());
    gateway.kill();
    // On the same port, since another would be another origin.
    let config = gateway.home.join("../plexus.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("127.0.0.1:0", gateway.url.split("//").nth(1).unwrap())).unwrap();
    gateway.again().await;
    let (status, words) = second.end();
    assert!(status != 0 && !words.is_empty(), "the computer is told");
    let mut phone = Page { gateway: &gateway, cookie, csrf };
    assert_eq!(phone.send("POST", "/v1/pair/look", json!({ "code": code })).await.0, 401, "codes die with the gateway");
    let (status, me) = phone.send("GET", "/v1/me", Value::Null).await;
    assert_eq!((status, &me["device_id"], &me["csrf"]), (200, &device["device_id"], &device["csrf"]));
    let devices = gateway.get("/v1/devices").await.1;
    let kept = devices["devices"].as_array().unwrap().iter().find(|one| one["name"] == "Alma's phone").unwrap().clone();
    assert_eq!((&kept["approve_up_to"], &kept["device_id"]), (&json!("elevated"), &device["device_id"]));
    let (_, listed) = cli(&gateway, &["devices"]);
    assert!(listed.contains("Alma's phone") && listed.contains("watch,approve up to elevated"), "{listed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoked_browser_loses_its_streams_and_its_cookie() {
    let gateway = Gateway::demo().await;
    let mut computer = Computer::pair(&gateway, &["--yes", "--name", "kitchen"]);
    let begun = computer.next();
    let mut page = Page::new(&gateway);
    let join = json!({ "code": begun["code"], "name": "says something else", "cookie": true });
    let (_, joined) = page.send("POST", "/v1/pair", join).await;
    let seen = computer.next();
    assert_eq!((&seen["name"], &seen["number"]), (&json!("kitchen"), &joined["number"]), "--yes shows it, too");
    assert_eq!(computer.next()["state"], "confirmed");
    assert_eq!(computer.end().0, 0);
    page.send("POST", "/v1/pair/wait", json!({ "ticket": joined["ticket"], "wait": 30 })).await;
    let (status, me) = page.send("GET", "/v1/me", Value::Null).await;
    assert_eq!((status, &me["name"], &me["kind"]), (200, &json!("kitchen"), &json!("device")));

    let mut socket = page.socket().await.unwrap();
    let mut stream = page.events().await;
    assert_eq!(stream.status(), 200);
    let devices = gateway.get("/v1/devices").await.1;
    let listed = devices["devices"].as_array().unwrap();
    let kitchen = listed.iter().find(|one| one["name"] == "kitchen").unwrap();
    assert_eq!((&kitchen["online"], &kitchen["you"]), (&json!(true), &json!(false)));
    assert!(kitchen["last_seen_at"].is_string());
    assert!(listed.iter().any(|one| one["kind"] == "local" && one["you"] == true));

    assert_eq!(cli(&gateway, &["devices", "rename", "kitchen", "hall"]).0, 0);
    let (code, words) = cli(&gateway, &["devices", "revoke", "hall"]);
    assert_eq!(code, 0, "{words}");
    let closed = tokio::time::timeout(PATIENCE, async {
        loop {
            match futures_util::StreamExt::next(&mut socket).await {
                Some(Ok(Message::Close(Some(close)))) => break u16::from(close.code),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    });
    assert_eq!(closed.await.expect("the socket stays open"), 4001);
    let ended = tokio::time::timeout(PATIENCE, async { while let Ok(Some(_)) = stream.chunk().await {} });
    ended.await.expect("the stream stays open");
    assert_eq!(page.send("GET", "/v1/me", Value::Null).await.0, 401);
    assert!(matches!(page.socket().await, Err(WsError::Http(response)) if response.status() == 401));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pairing_code_shown_to_two_phones_serves_one() {
    let gateway = Gateway::demo().await;
    for _ in 0..8 {
        let (status, begun) = gateway.post("/v1/pairings", json!({ "scopes": ["watch"] })).await;
        assert_eq!(status, 201);
        let mut phones: Vec<_> = (0..4).map(|_| Page::new(&gateway)).collect();
        let joins = phones.iter_mut().enumerate().map(|(n, phone)| {
            phone.send("POST", "/v1/pair", json!({ "code": begun["code"], "name": format!("phone {n}") }))
        });
        let all = futures_util::future::join_all(joins).await;
        let won: Vec<_> = all.iter().filter(|(status, _)| *status == 202).collect();
        assert_eq!(won.len(), 1, "{all:?}");
        // A refusal is final.
        let path = format!("/v1/pairings/{}", begun["pairing_id"].as_str().unwrap());
        assert_eq!(gateway.get(&path).await.1["number"], won[0].1["number"]);
        assert_eq!(gateway.delete(&path).await.0, 204);
        let wait = json!({ "ticket": won[0].1["ticket"], "wait": 30 });
        let (status, refused) = phones[0].send("POST", "/v1/pair/wait", wait).await;
        assert_eq!((status, &refused["code"]), (410, &json!("pairing_refused")));
        let (status, late) = gateway.post(&format!("{path}/confirm"), json!({ "number": won[0].1["number"] })).await;
        assert_eq!((status, &late["code"]), (410, &json!("pairing_refused")));
        if all.iter().any(|(status, _)| *status == 429) {
            // The losers have used up what may be wrong from here.
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pairing_forty_wrong_codes_hit_nothing() {
    let gateway = Gateway::demo().await;
    let (_, begun) = gateway.post("/v1/pairings", json!({ "scopes": ["watch"] })).await;
    let code = begun["code"].as_str().unwrap();
    let mut guesser = Page::new(&gateway);
    let letters: Vec<char> = "23456789ABCDEFGHJKMNPQRSTVWXYZ".chars().filter(|c| !code.starts_with(*c)).collect();
    let mut seen = Vec::new();
    for n in 0..40 {
        let guess = format!("{}{}", letters[n % letters.len()], &code[1..]);
        let path = if n % 2 == 0 { "/v1/pair/look" } else { "/v1/pair" };
        let body = if n % 2 == 0 { json!({ "code": guess }) } else { json!({ "code": guess, "name": "guesser" }) };
        let (status, answer) = guesser.send("POST", path, body).await;
        assert!(status == 401 || status == 429, "{answer}");
        seen.push(status);
    }
    assert_eq!((seen[0], seen[9], seen[39]), (401, 401, 429));
    let (status, _) = guesser.send("POST", "/v1/pair/look", json!({ "code": code })).await;
    assert_eq!(status, 429, "whoever guessed that much is not told when it is right");
    let path = format!("/v1/pairings/{}", begun["pairing_id"].as_str().unwrap());
    assert_eq!(gateway.get(&path).await.1["state"], "waiting");
    assert_eq!(gateway.get("/v1/devices").await.1["devices"].as_array().unwrap().len(), 1);
    assert_eq!(gateway.get("/v1/me").await.0, 200, "tokens are another matter");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pairing_is_refused_by_anything_but_a_yes() {
    let gateway = Gateway::demo().await;
    for no in [Some("n"), Some(""), Some("99999"), None] {
        let mut computer = Computer::pair(&gateway, &[]);
        let begun = computer.next();
        let mut phone = Page::new(&gateway);
        let (_, joined) = phone.send("POST", "/v1/pair", json!({ "code": begun["code"], "name": "phone" })).await;
        assert_eq!(computer.next()["state"], "joined");
        if let Some(no) = no {
            computer.say(no);
        }
        let (code, words) = computer.end();
        assert_eq!(code, 1, "{no:?}: {words}");
        let (status, over) =
            phone.send("POST", "/v1/pair/wait", json!({ "ticket": joined["ticket"], "wait": 30 })).await;
        assert_eq!((status, &over["code"]), (410, &json!("pairing_refused")), "{no:?}");
    }
    assert_eq!(gateway.get("/v1/devices").await.1["devices"].as_array().unwrap().len(), 1);
}
