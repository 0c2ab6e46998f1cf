//! A push service on loopback with its own crypto (`tests/push-service`), which decrypts the notifications.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::gateway::PATIENCE;

/// Maximum number of lines of its output that wait to be read.
const LINES: usize = 1024;

/// The running service; ends when dropped.
pub struct PushService {
    child: Child,
    /// The address, for the gateway's configuration.
    pub url: String,
    lines: Receiver<Value>,
}

impl PushService {
    /// Starts the service.
    pub fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/push-service/push-service.mjs");
        let mut child = Command::new("node")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`node` starts; Node.js 20 or newer is needed on PATH");
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = out.next().unwrap().unwrap().strip_prefix("listening ").unwrap().to_owned();
        let (say, lines) = sync_channel(LINES);
        std::thread::spawn(move || {
            for line in out.map_while(Result::ok) {
                if say.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, url, lines }
    }

    async fn ask(&self, method: reqwest::Method, path: &str, body: Value) -> Value {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        client.request(method, format!("{}{path}", self.url)).json(&body).send().await.unwrap().json().await.unwrap()
    }

    /// A new subscription in a browser's form.
    pub async fn subscription(&self) -> Value {
        self.ask(reqwest::Method::POST, "/subscriptions", json!({})).await
    }

    /// Sets the responses to the next pushes to this path.
    pub async fn plan(&self, path: &str, answer: Value) {
        self.ask(reqwest::Method::PUT, &format!("{path}/answer"), answer).await;
    }

    /// The next request to the service.
    pub async fn next(&self) -> Value {
        self.within(PATIENCE).await.expect("nothing reached the push service")
    }

    /// The payload of the next push of this kind, decrypted.
    pub async fn payload(&self, kind: &str) -> Value {
        loop {
            let mut line = self.next().await;
            assert_eq!(line.get("problem"), None, "{line}");
            if line["payload"]["kind"] == kind {
                return line["payload"].take();
            }
        }
    }

    /// The next request within this time, if any.
    pub async fn within(&self, time: Duration) -> Option<Value> {
        let deadline = Instant::now() + time;
        loop {
            match self.lines.try_recv() {
                Ok(line) => return Some(line),
                Err(_) if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(10)).await,
                Err(_) => return None,
            }
        }
    }
}

impl Drop for PushService {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
