//! Notifications: which device gets which, and when.
//!
//! The participants: a push service with its own crypto (tests/push-service), webhooks, and phones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::ops::Deref;
use std::process::Command;
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, Ws, demo};
use common::push_service::PushService;
use serde_json::{Value, json};

/// Time without a viewer after which these gateways notify.
const AFTER: Duration = Duration::from_secs(1);
/// Time in which nothing must arrive; on a slow machine a failing story might pass.
const NOTHING: Duration = Duration::from_secs(3);

/// The push service for a gateway.
struct Service {
    push: PushService,
}

impl Deref for Service {
    type Target = PushService;

    fn deref(&self) -> &PushService {
        &self.push
    }
}

impl Service {
    fn start() -> Self {
        Self { push: PushService::start() }
    }

    /// The gateway's configuration of the service.
    fn config(&self, more: &str) -> String {
        format!(
            "[push]\nafter = \"{}s\"\ngive_up_after = \"3s\"\ncontact = \"mailto:me@example.org\"\nservices = [\"{}\"]\n{more}\n{}",
            AFTER.as_secs(),
            self.url,
            demo()
        )
    }

    /// Fails if anything reaches it.
    async fn silent(&self) {
        assert_eq!(self.within(NOTHING).await, None);
    }
}

/// A device that is subscribed.
struct Phone {
    id: String,
    token: String,
    subscription: String,
    endpoint: String,
}

impl Phone {
    async fn new(gateway: &Gateway, service: &Service, grant: Value) -> Self {
        let mut grant = grant;
        grant["name"] = json!("phone");
        let (status, device) = gateway.post("/v1/devices", grant).await;
        assert_eq!(status, 201, "{device}");
        let token = device["token"].as_str().unwrap().to_owned();
        let subscription = service.subscription().await;
        let id = device["device_id"].as_str().unwrap().to_owned();
        let phone = Self {
            id,
            token,
            subscription: subscription["id"].as_str().unwrap().into(),
            endpoint: subscription["endpoint"].as_str().unwrap().into(),
        };
        let (status, view) = phone.call(gateway, "PUT", "/v1/push", subscribe(&subscription)).await;
        assert_eq!(status, 200, "{view}");
        assert_eq!(view["subscribed"], true);
        phone
    }

    async fn call(&self, gateway: &Gateway, method: &str, path: &str, body: Value) -> (u16, Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = gateway.http.request(method, format!("{}{path}", gateway.url)).bearer_auth(&self.token);
        if !body.is_null() {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }
}

fn subscribe(subscription: &Value) -> Value {
    json!({ "endpoint": subscription["endpoint"], "keys": subscription["keys"], "expirationTime": null })
}

fn everything() -> Value {
    json!({ "scopes": ["watch", "prompt", "approve"] })
}

/// The offset from UTC, in minutes, of a time zone where it is noon.
fn noon() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    12 * 60 - i64::try_from(now.as_secs() / 60 % (24 * 60)).unwrap()
}

async fn look(ws: &mut Ws, session: Option<&str>, focused: bool) {
    ws.call("presence.update", json!({ "session_id": session, "focused": focused })).await.unwrap();
}

/// The gateway's counter of notifications.
async fn counted(gateway: &Gateway, way: &str, outcome: &str) -> u64 {
    let text = gateway.request("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    let name = format!("plexus_notifications_total{{outcome=\"{outcome}\",way=\"{way}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or(0)
}

async fn until_counted(gateway: &Gateway, way: &str, outcome: &str, count: u64) {
    let deadline = Instant::now() + PATIENCE;
    while counted(gateway, way, outcome).await < count {
        assert!(Instant::now() < deadline, "not {count} {outcome} by {way}; stderr: {}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn push_test_service_follows_the_rfc_example() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/push-service/push-service.mjs");
    let out = Command::new("node").args([script, "--self-test"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "ok\n", "{}", String::from_utf8_lossy(&out.stderr));
}

#[tokio::test]
async fn push_announces_a_request_nobody_looks_at_and_withdraws_it() {
    let service = Service::start();
    let gateway = Gateway::start(&service.config("")).await;
    let phone = Phone::new(&gateway, &service, everything()).await;
    // An open socket alone does not suppress notifications.
    let mut ws = gateway.ws().await;
    ws.call("session.attach", json!({ "session_id": "*", "from": "now" })).await.unwrap();
    let session = gateway.session("demo").await;
    gateway.prompt(&session, "ask").await;
    let request = gateway.open_request(&session).await;
    let id = request["request_id"].as_str().unwrap();

    let push = service.next().await;
    assert_eq!(push["problem"], Value::Null, "{push}");
    let payload = &push["payload"];
    assert_eq!((&payload["kind"], &payload["tag"]), (&json!("request"), &json!(format!("request:{id}"))));
    assert_eq!((&payload["request_id"], &payload["session_id"]), (&request["request_id"], &json!(session)));
    assert_eq!(payload["digest"], request["digest"]);
    assert!(payload["body"].as_str().unwrap().contains(request["display"].as_str().unwrap().lines().next().unwrap()));
    assert_eq!(payload["actions"], json!(["allow_once", "deny"]));
    assert_eq!((&push["urgency"], &push["ttl"]), (&json!("high"), &json!("86400")));
    let (_, view) = phone.call(&gateway, "GET", "/v1/push", Value::Null).await;
    assert_eq!(push["vapid"]["k"], view["public_key"]);
    assert_eq!((&push["vapid"]["sub"], &push["vapid"]["aud"]), (&json!("mailto:me@example.org"), &json!(service.url)));

    until_counted(&gateway, "push", "sent", 1).await;
    assert_eq!(gateway.choose(&request, &Gateway::option(&request, "allow_once")).await.0, 200);
    let taken_back = service.next().await;
    assert_eq!(taken_back["problem"], Value::Null, "{taken_back}");
    assert_eq!(taken_back["payload"]["kind"], "withdrawn");
    assert_eq!(taken_back["payload"]["tag"], payload["tag"]);
    assert_eq!(taken_back["topic"], push["topic"], "undelivered, the one replaces the other");
    assert_eq!(taken_back["payload"]["by"], "this machine");
    assert!(taken_back["payload"]["title"].as_str().unwrap().starts_with("Allowed by"), "{taken_back}");

    // The run then ends without a viewer.
    let ended = service.next().await;
    assert_eq!((&ended["payload"]["kind"], &ended["payload"]["actions"]), (&json!("ended"), &Value::Null));
    assert!(ended["payload"]["tag"].as_str().unwrap().starts_with("run:"), "{ended}");
    service.silent().await;
}

#[tokio::test]
async fn push_skips_viewers_and_reaches_those_who_left() {
    let service = Service::start();
    let gateway = Gateway::start(&service.config("")).await;
    let _phone = Phone::new(&gateway, &service, everything()).await;
    let session = gateway.session("demo").await;
    let mut desk = gateway.ws().await;
    look(&mut desk, Some(&session), true).await;
    gateway.prompt(&session, "ask").await;
    let request = gateway.open_request(&session).await;
    service.silent().await;
    // The page is hidden; the socket is still open.
    look(&mut desk, Some(&session), false).await;
    assert_eq!(service.next().await["payload"]["request_id"], request["request_id"]);
    until_counted(&gateway, "push", "sent", 1).await;

    // A second request, answered while the first screen has the focus again: no notification and no withdrawal.
    look(&mut desk, None, true).await;
    assert_eq!(gateway.choose(&request, &Gateway::option(&request, "reject_once")).await.0, 200);
    assert_eq!(service.next().await["payload"]["kind"], "withdrawn");
    gateway.prompt(&session, "ask").await;
    let second = gateway.open_request(&session).await;
    assert_eq!(gateway.choose(&second, &Gateway::option(&second, "allow_once")).await.0, 200);
    service.silent().await;

    // The viewer ends with its socket.
    gateway.prompt(&session, "ask").await;
    gateway.open_request(&session).await;
    drop(desk);
    assert_eq!(service.next().await["payload"]["kind"], "request");
}

#[tokio::test]
async fn push_tells_a_device_what_it_may_see_and_wants_until_revoked() {
    let service = Service::start();
    let gateway = Gateway::start(&service.config("")).await;
    let (session, other) = (gateway.session("demo").await, gateway.session("demo").await);
    let watcher = Phone::new(&gateway, &service, json!({ "scopes": ["watch"] })).await;
    let narrow = Phone::new(&gateway, &service, json!({ "scopes": ["watch", "approve"], "sessions": [other] })).await;
    let revoked = Phone::new(&gateway, &service, everything()).await;
    let picky = Phone::new(&gateway, &service, everything()).await;
    let away = Phone::new(&gateway, &service, everything()).await;
    let wants = json!({ "requests": false, "ends": false });
    let (status, view) = picky.call(&gateway, "PATCH", "/v1/push/settings", wants).await;
    let chosen =
        json!({ "requests": false, "ends": false, "failures": true, "no_progress_minutes": 10, "quiet": null });
    assert_eq!((status, &view["settings"]), (200, &chosen));
    assert_eq!(away.call(&gateway, "DELETE", "/v1/push", Value::Null).await.0, 204);
    assert_eq!(gateway.delete(&format!("/v1/devices/{}", revoked.id)).await.0, 204);

    gateway.prompt(&session, "ask").await;
    let push = service.next().await;
    assert_eq!(push["id"], watcher.subscription);
    assert_eq!(push["payload"]["actions"], Value::Null, "who may not approve has nothing to press");
    service.silent().await;
    // The agent dies: devices that may see its run and want failures are notified.
    gateway.prompt(&other, "crash").await;
    let mut failed = std::collections::BTreeSet::new();
    while !(failed.contains(&picky.subscription) && failed.contains(&narrow.subscription)) {
        let push = service.next().await;
        let id = push["id"].as_str().unwrap().to_owned();
        assert!(id != revoked.subscription && id != away.subscription, "{push}");
        if push["payload"]["kind"] == "failed" {
            failed.insert(id);
        } else {
            assert_eq!(id, watcher.subscription, "{push}");
            assert_eq!(push["payload"]["kind"], "withdrawn", "what the dead agent asked: {push}");
        }
    }
}

#[tokio::test]
async fn push_carries_no_secret() {
    let service = Service::start();
    let gateway = Gateway::start(&service.config("")).await;
    let _phone = Phone::new(&gateway, &service, everything()).await;
    let session = gateway.session("demo").await;
    let command = "OPENAI_API_KEY=hunter2 curl -H 'Authorization: Bearer hunter2' https://me:hunter2@example.org/ghp_hunter2hunter2; mysql -phunter2; sshpass -p hunter2 ssh x; echo hunter2 | sudo -S id";
    gateway.prompt(&session, &format!("ask {command}")).await;
    let request = gateway.open_request(&session).await;
    assert!(request["display"].as_str().unwrap().contains("hunter2"), "who decides sees all of it: {request}");
    let push = service.next().await;
    assert!(!push.to_string().contains("hunter2"), "{push}");
    let body = push["payload"]["body"].as_str().unwrap();
    assert!(body.starts_with("OPENAI_API_KEY=••• curl -H "), "{body}");
}

#[tokio::test]
async fn push_is_silent_in_quiet_hours() {
    let service = Service::start();
    let gateway = Gateway::start(&service.config("")).await;
    let phone = Phone::new(&gateway, &service, everything()).await;
    // Hours that last all day but the minute before midnight in a place where it is noon: whenever this runs, it is quiet.
    let quiet = json!({ "quiet": { "from": "00:00", "to": "23:59", "offset_minutes": noon() } });
    assert_eq!(phone.call(&gateway, "PATCH", "/v1/push/settings", quiet.clone()).await.0, 200);
    let session = gateway.session("demo").await;
    gateway.prompt(&session, "ask2").await;
    gateway.open_requests(&session, 2).await;
    service.silent().await;
    // A test notification is sent even in quiet hours.
    let (status, tried) = phone.call(&gateway, "POST", "/v1/push/test", Value::Null).await;
    assert_eq!((status, tried), (200, json!({ "status": 201 })));
    assert_eq!(service.next().await["payload"]["kind"], "test");
    // After quiet hours, one notification sums up.
    let (status, view) = phone.call(&gateway, "PATCH", "/v1/push/settings", json!({ "quiet": null })).await;
    assert_eq!((status, &view["settings"]["quiet"]), (200, &Value::Null));
    let sum = service.next().await;
    assert_eq!((&sum["payload"]["tag"], &sum["payload"]["title"]), (&json!("summary"), &json!("2 questions wait")));
    service.silent().await;
    for hours in [
        json!({ "from": "7", "to": "8", "offset_minutes": 0 }),
        json!({ "from": "07:00", "to": "07:00", "offset_minutes": 0 }),
        json!({ "from": "22:00", "to": "07:00", "offset_minutes": 0, "zone": "Nowhere/Atall" }),
    ] {
        let (status, problem) = phone.call(&gateway, "PATCH", "/v1/push/settings", json!({ "quiet": hours })).await;
        assert_eq!((status, &problem["code"]), (422, &json!("invalid")));
    }
}

#[tokio::test]
async fn push_subscription_belongs_to_the_device_that_put_it_last() {
    let service = Service::start();
    let gateway = Gateway::start(&service.config("")).await;
    // A browser paired twice has one subscription.
    let first = Phone::new(&gateway, &service, everything()).await;
    let second = Phone::new(&gateway, &service, everything()).await;
    let subscription = service.subscription().await;
    for phone in [&first, &second] {
        assert_eq!(phone.call(&gateway, "PUT", "/v1/push", subscribe(&subscription)).await.0, 200);
    }
    let view = first.call(&gateway, "GET", "/v1/push", Value::Null).await.1;
    assert_eq!((&view["subscribed"], &view["lapsed"]), (&json!(false), &json!(false)));
    let session = gateway.session("demo").await;
    gateway.prompt(&session, "ask").await;
    assert_eq!(service.next().await["id"], subscription["id"]);
    service.silent().await;
    // The quiet hours of the owning device apply.
    let quiet = json!({ "quiet": { "from": "00:00", "to": "23:59", "offset_minutes": noon() } });
    assert_eq!(second.call(&gateway, "PATCH", "/v1/push/settings", quiet).await.0, 200);
    let session = gateway.session("demo").await;
    gateway.prompt(&session, "ask").await;
    gateway.open_request(&session).await;
    service.silent().await;
}

#[tokio::test]
async fn push_subscriptions_lapse_with_a_lost_key_and_are_renewed() {
    let service = Service::start();
    let mut gateway = Gateway::start(&service.config("")).await;
    let phone = Phone::new(&gateway, &service, everything()).await;
    let refused = Phone::new(&gateway, &service, everything()).await;
    let off = Phone::new(&gateway, &service, everything()).await;
    assert_eq!(off.call(&gateway, "DELETE", "/v1/push", Value::Null).await.0, 204);
    let state = async |gateway: &Gateway, phone: &Phone| {
        let view = phone.call(gateway, "GET", "/v1/push", Value::Null).await.1;
        (view["subscribed"] == true, view["lapsed"] == true)
    };
    // A lost key does not come back.
    service.plan(&format!("/push/{}", refused.subscription), json!({ "status": 403 })).await;
    let (status, problem) = refused.call(&gateway, "POST", "/v1/push/test", Value::Null).await;
    assert_eq!((status, &problem["code"]), (502, &json!("push_failed")));
    assert_eq!(service.next().await["status"], 403);
    assert_eq!(state(&gateway, &refused).await, (false, true));
    gateway.stop().await;
    std::fs::remove_file(gateway.home.join("push.key")).unwrap();
    gateway.again().await;
    let deadline = Instant::now() + PATIENCE;
    while state(&gateway, &phone).await != (false, true) {
        assert!(Instant::now() < deadline, "still subscribed to a key that is gone");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(state(&gateway, &off).await, (false, false), "who wanted none is not asked to want one");
    let subscription = service.subscription().await;
    assert_eq!(phone.call(&gateway, "PUT", "/v1/push", subscribe(&subscription)).await.0, 200);
    assert_eq!(state(&gateway, &phone).await, (true, false));
}

#[tokio::test]
async fn push_retries_a_service_that_is_down_and_believes_gone() {
    let service = Service::start();
    let gateway = Gateway::start(&service.config("")).await;
    let slow = Phone::new(&gateway, &service, everything()).await;
    let down = Phone::new(&gateway, &service, everything()).await;
    let gone = Phone::new(&gateway, &service, everything()).await;
    let well = Phone::new(&gateway, &service, everything()).await;
    let path = |phone: &Phone| format!("/push/{}", phone.subscription);
    service.plan(&path(&slow), json!({ "status": 503, "times": 1 })).await;
    service.plan(&path(&down), json!({ "status": 500 })).await;
    service.plan(&path(&gone), json!({ "status": 410 })).await;
    service.plan(&path(&well), json!({ "status": 201 })).await;
    let session = gateway.session("demo").await;
    gateway.prompt(&session, "ask").await;
    let mut seen = std::collections::BTreeMap::<String, Vec<u64>>::new();
    let mut take = |push: Value| {
        assert_eq!(push["problem"], Value::Null, "{push}");
        seen.entry(push["id"].as_str().unwrap().into()).or_default().push(push["status"].as_u64().unwrap());
    };
    // Taken at once, taken the second time, gone, and never taken.
    until_counted(&gateway, "push", "given_up", 1).await;
    while let Some(push) = service.within(Duration::from_secs(1)).await {
        take(push);
    }
    assert_eq!(seen[&well.subscription], [201]);
    assert_eq!(seen[&slow.subscription], [503, 201]);
    assert_eq!(seen[&gone.subscription], [410]);
    let tries = &seen[&down.subscription];
    assert!((2..=3).contains(&tries.len()) && tries.iter().all(|status| *status == 500), "{tries:?}");
    until_counted(&gateway, "push", "gone", 1).await;
    let subscribed = gone.call(&gateway, "GET", "/v1/push", Value::Null).await.1["subscribed"].clone();
    assert_eq!(subscribed, false);
    let (status, problem) = gone.call(&gateway, "POST", "/v1/push/test", Value::Null).await;
    assert_eq!((status, &problem["code"]), (409, &json!("not_subscribed")));
    let (status, problem) = down.call(&gateway, "POST", "/v1/push/test", Value::Null).await;
    assert_eq!((status, &problem["code"]), (502, &json!("push_failed")));
    assert_eq!(service.next().await["status"], 500);
    // A redirect is not followed.
    service.plan(&path(&well), json!({ "status": 307 })).await;
    let (status, problem) = well.call(&gateway, "POST", "/v1/push/test", Value::Null).await;
    assert_eq!((status, &problem["code"]), (502, &json!("push_failed")));
    assert_eq!(service.next().await["status"], 307);
    service.silent().await;
    assert!(!gateway.stderr().contains(&well.endpoint), "an endpoint is a secret of its device's");
}

#[tokio::test]
async fn push_neither_repeats_nor_forgets_across_a_restart() {
    let service = Service::start();
    let held = common::gateway::held_runtime("demo", &[common::gateway::exe(), "agent", "demo"], "");
    let config = service.config("").replace(&demo(), &held);
    let mut gateway = Gateway::start(&config).await;
    let phone = Phone::new(&gateway, &service, everything()).await;
    let (first, second) = (gateway.session("demo").await, gateway.session("demo").await);
    gateway.prompt(&first, "ask").await;
    let told = gateway.open_request(&first).await;
    assert_eq!(service.next().await["payload"]["request_id"], told["request_id"]);
    until_counted(&gateway, "push", "sent", 1).await;
    // A viewer suppresses the second notification; then the gateway dies.
    let mut desk = gateway.ws().await;
    look(&mut desk, Some(&second), true).await;
    gateway.prompt(&second, "ask").await;
    let untold = gateway.open_request(&second).await;
    gateway.kill();
    gateway.again().await;
    let push = service.next().await;
    assert_eq!(push["payload"]["request_id"], untold["request_id"], "{push}");
    service.silent().await;
    let view = phone.call(&gateway, "GET", "/v1/push", Value::Null).await.1;
    assert_eq!((&view["subscribed"], &view["public_key"]), (&json!(true), &push["vapid"]["k"]));
    // This gateway withdraws the notification of the previous one.
    assert_eq!(gateway.choose(&told, &Gateway::option(&told, "allow_once")).await.0, 200);
    let taken_back = service.next().await;
    assert_eq!(taken_back["payload"]["tag"], json!(format!("request:{}", told["request_id"].as_str().unwrap())));
    assert_eq!(taken_back["payload"]["kind"], "withdrawn");
}

#[tokio::test]
async fn webhook_is_signed_and_ntfy_gets_its_headers() {
    let service = Service::start();
    let channels = format!(
        "[[push.webhook]]\nurl = \"{0}/hook/plexus\"\nsecret = \"s3cret\"\nevents = [\"requests\"]\n\
         [[push.ntfy]]\nurl = \"{0}/hook/topic\"\ntoken = \"tk_abc\"\nevents = [\"requests\"]\n",
        service.url
    );
    let gateway = Gateway::start(&service.config(&channels)).await;
    let session = gateway.session("demo").await;
    gateway.prompt(&session, "ask").await;
    let request = gateway.open_request(&session).await;
    let mut both = [service.next().await, service.next().await];
    both.sort_by_key(|line| line["path"].as_str().unwrap().to_owned());
    let [hook, ntfy] = &both;
    let headers = &hook["headers"];
    let body: Value = serde_json::from_str(hook["body"].as_str().unwrap()).unwrap();
    assert_eq!((&body["kind"], &body["request_id"]), (&json!("request"), &request["request_id"]));
    assert_eq!((&headers["plexus-event"], &headers["content-type"]), (&json!("request"), &json!("application/json")));
    let at = headers["plexus-timestamp"].as_str().unwrap();
    let said = format!("{at}.{}", hook["body"].as_str().unwrap());
    assert_eq!(headers["plexus-signature"], json!(format!("v1={}", hmac("s3cret", &said))));
    assert!(at.parse::<u64>().unwrap() > 1_700_000_000);

    let headers = &ntfy["headers"];
    assert_eq!((&headers["authorization"], &headers["priority"]), (&json!("Bearer tk_abc"), &json!("4")));
    assert_eq!((&headers["title"], &headers["tags"]), (&json!("demo asks for permission"), &json!("request")));
    assert!(ntfy["body"].as_str().unwrap().contains("touch"), "{ntfy}");
    let sequence = headers["x-sequence-id"].clone();
    assert_eq!(gateway.choose(&request, &Gateway::option(&request, "reject_once")).await.0, 200);
    let mut both = [service.next().await, service.next().await];
    both.sort_by_key(|line| line["path"].as_str().unwrap().to_owned());
    let [hook, ntfy] = &both;
    assert_eq!(serde_json::from_str::<Value>(hook["body"].as_str().unwrap()).unwrap()["kind"], "withdrawn");
    assert_eq!((&ntfy["headers"]["x-sequence-id"], &ntfy["headers"]["priority"]), (&sequence, &json!("1")));
    assert_eq!(ntfy["headers"]["title"], "Denied by this machine");
    assert!(!gateway.stderr().contains("s3cret") && !gateway.stderr().contains("tk_abc"));
}

#[tokio::test]
async fn telegram_gets_plain_text_and_no_token_is_shown() {
    let service = Service::start();
    let channel = format!(
        "[[push.telegram]]\ntoken = \"12:s3cret\"\nchat_id = \"7\"\nurl = \"{}/hook\"\nevents = [\"requests\"]\n",
        service.url
    );
    let gateway = Gateway::start(&service.config(&channel)).await;
    let session = gateway.session("demo").await;
    gateway.prompt(&session, "ask").await;
    let request = gateway.open_request(&session).await;
    let asked = service.next().await;
    assert_eq!(asked["path"], "/hook/bot12:s3cret/sendMessage");
    let body: Value = serde_json::from_str(asked["body"].as_str().unwrap()).unwrap();
    assert_eq!((&body["chat_id"], &body["disable_notification"]), (&json!("7"), &json!(false)));
    let text = body["text"].as_str().unwrap();
    assert!(text.starts_with("demo asks for permission\n") && text.contains("touch"), "{text}");
    assert_eq!(gateway.choose(&request, &Gateway::option(&request, "reject_once")).await.0, 200);
    let over: Value = serde_json::from_str(service.next().await["body"].as_str().unwrap()).unwrap();
    assert_eq!(over["disable_notification"], true);
    assert!(over["text"].as_str().unwrap().starts_with("Denied by this machine"), "{over}");
    assert!(!gateway.stderr().contains("s3cret"));
}

/// By a program that is not ours.
fn hmac(secret: &str, text: &str) -> String {
    let script = "process.stdout.write(require('crypto').createHmac('sha256', process.argv[1]).update(process.argv[2]).digest('hex'))";
    String::from_utf8(Command::new("node").args(["-e", script, secret, text]).output().unwrap().stdout).unwrap()
}

#[tokio::test]
async fn push_subscription_that_is_invalid_is_refused_without_connecting() {
    let service = Service::start();
    let gateway = Gateway::start(&service.config("")).await;
    let fine = service.subscription().await;
    let port = service.url.rsplit(':').next().unwrap();
    for endpoint in [
        format!("http://localhost:{port}/push/1"),
        format!("http://[::1]:{port}/push/1"),
        format!("http://127.0.0.1:{}/push/1", port.parse::<u16>().unwrap() ^ 1),
        format!("http://user@127.0.0.1:{port}/push/1"),
        gateway.url.clone(),
        "https://169.254.169.254/latest/meta-data".to_owned(),
        "https://fcm.googleapis.com.evil.example/x".into(),
        "file:///etc/passwd".into(),
        format!("https://fcm.googleapis.com/{}", "x".repeat(2000)),
    ] {
        let body = json!({ "endpoint": endpoint, "keys": fine["keys"] });
        let (status, problem) = put(&gateway, body).await;
        assert_eq!((status, &problem["code"]), (422, &json!("push_endpoint")), "{endpoint}");
    }
    let point = fine["keys"]["p256dh"].as_str().unwrap();
    let off_the_curve = format!("B{}", "A".repeat(point.len() - 1));
    for keys in [
        json!({ "p256dh": "", "auth": fine["keys"]["auth"] }),
        json!({ "p256dh": off_the_curve, "auth": fine["keys"]["auth"] }),
        json!({ "p256dh": point, "auth": "AAAA" }),
        json!({ "p256dh": "%%%", "auth": fine["keys"]["auth"] }),
    ] {
        let (status, problem) = put(&gateway, json!({ "endpoint": fine["endpoint"], "keys": keys })).await;
        assert_eq!((status, &problem["code"]), (422, &json!("push_keys")), "{keys}");
    }
    let (status, problem) = put(&gateway, json!({ "endpoint": fine["endpoint"] })).await;
    assert_eq!((status, &problem["code"]), (422, &json!("bad_body")));
    assert_eq!(gateway.get("/v1/push").await.1["subscribed"], false);
    assert_eq!(service.within(Duration::ZERO).await, None);
}

async fn put(gateway: &Gateway, body: Value) -> (u16, Value) {
    let response = gateway.request("PUT", "/v1/push").json(&body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}
