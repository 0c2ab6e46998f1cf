//! The daemon that Codex's own terminals share, found and attached by a running gateway. The daemon is the test's: it says what Codex 0.169
//! says about one conversation. `tests/real/story_native_codex.rs` has the real one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::gateway::Gateway;
use common::moments::until_so;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_tungstenite::tungstenite::Message;

/// The runtime that the gateway attaches by itself.
const RUNTIME: &str = "codex-terminal";
/// Longer than the gateway takes to find a daemon: what did not happen by then does not happen.
const LONG_ENOUGH: Duration = Duration::from_millis(2500);

/// The counted actions of the gateway.
#[derive(Default)]
struct Counts {
    /// Connections that have made a handshake.
    attached: AtomicUsize,
    /// Conversations that were joined, which loads them.
    resumed: AtomicUsize,
}

/// A daemon with one conversation; it ends when it is dropped, and leaves its socket as one that was killed does.
struct Daemon {
    task: JoinHandle<()>,
    counts: Arc<Counts>,
    folder: PathBuf,
    socket: PathBuf,
    link: PathBuf,
}

impl Daemon {
    /// Starts one in this `$CODEX_HOME`, with the folders and modes of Codex.
    fn start(codex_home: &Path) -> Self {
        Self::start_as(codex_home, 0o700, true)
    }

    /// Starts like [`start`](Self::start), with another mode of the socket's folder, or with the conversation on disk only.
    fn start_as(codex_home: &Path, mode: u32, loaded: bool) -> Self {
        let (control, folder) = (codex_home.join("app-server-control"), codex_home.join("run"));
        for dir in [&control, &folder] {
            std::fs::create_dir_all(dir).unwrap();
            std::fs::set_permissions(dir, Permissions::from_mode(0o700)).unwrap();
        }
        std::fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        let (socket, link) = (folder.join("a899"), control.join("app-server-control.sock"));
        let _ = std::fs::remove_file(&socket);
        let _ = std::fs::remove_file(&link);
        let listener = UnixListener::bind(&socket).unwrap();
        symlink(&socket, &link).unwrap();
        let counts = Arc::new(Counts::default());
        let task = tokio::spawn(serve(listener, Arc::clone(&counts), loaded));
        Self { task, counts, folder, socket, link }
    }

    fn attached(&self) -> usize {
        self.counts.attached.load(Ordering::Relaxed)
    }

    fn resumed(&self) -> usize {
        self.counts.resumed.load(Ordering::Relaxed)
    }

    /// Stops the daemon, and asserts that it leaves nothing behind.
    fn stop(self) {
        std::fs::remove_file(&self.socket).unwrap();
        std::fs::remove_file(&self.link).unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: UnixListener, counts: Arc<Counts>, loaded: bool) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(talk(stream, Arc::clone(&counts), loaded));
    }
}

async fn talk(stream: UnixStream, counts: Arc<Counts>, loaded: bool) {
    // What only looks whether anybody listens makes no handshake.
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
    while let Some(Ok(message)) = socket.next().await {
        let Ok(text) = message.into_text() else { continue };
        let Ok(message) = serde_json::from_str::<Value>(&text) else { continue };
        let Some(result) = answer(&message, loaded) else { continue };
        match message["method"].as_str() {
            Some("initialize") => _ = counts.attached.fetch_add(1, Ordering::Relaxed),
            Some("thread/resume") => _ = counts.resumed.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }
        let reply = json!({ "id": message["id"], "result": result }).to_string();
        if socket.send(Message::text(reply)).await.is_err() {
            return;
        }
    }
}

fn answer(message: &Value, loaded: bool) -> Option<Value> {
    let said = |id: &str, sort: &str, more: Value| {
        let mut item = json!({ "id": id, "type": sort });
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item
    };
    let items = [
        said("m1", "userMessage", json!({ "content": [{ "type": "text", "text": "what is it?" }] })),
        said("m2", "agentMessage", json!({ "text": "it is a test" })),
    ];
    let turn = json!({ "id": "u1", "status": "completed", "items": items, "error": null });
    let thread = json!({
        "id": "01a213d9-487c-7320-9a2c-c65c0d805ece", "cwd": "/tmp", "preview": "what is it?", "name": null, "ephemeral": false,
        "parentThreadId": null, "source": "vscode", "threadSource": "user", "status": { "type": "idle" }, "turns": [],
    });
    Some(match message["method"].as_str()? {
        "initialize" => {
            json!({ "userAgent": "codex-tui/0.169.0 (Debian 12.0.0; x86_64) tmux-256color (plexus; 0.1.0)" })
        }
        "thread/loaded/list" if loaded => json!({ "data": [thread["id"]], "nextCursor": null }),
        "thread/loaded/list" => json!({ "data": [], "nextCursor": null }),
        "thread/read" => json!({ "thread": thread }),
        "thread/resume" => {
            let page = json!({ "data": [turn], "nextCursor": null });
            json!({ "thread": thread, "model": "gpt-5.5", "modelProvider": "fake", "initialTurnsPage": page })
        }
        _ => return None,
    })
}

/// `$CODEX_HOME` of a test's gateway.
fn codex_home(gateway: &Gateway) -> PathBuf {
    gateway.home.parent().unwrap().join("codex")
}

async fn runtimes(gateway: &Gateway) -> Vec<String> {
    let (_, body) = gateway.get("/v1/runtimes").await;
    let all = body["runtimes"].as_array().unwrap().iter();
    all.map(|one| format!("{} {}", one["runtime_id"].as_str().unwrap(), one["state"].as_str().unwrap())).collect()
}

async fn until_runtimes(gateway: &Gateway, expected: &[&str]) {
    until_so(&format!("the runtimes are {expected:?}"), async || runtimes(gateway).await == expected).await;
}

/// The sessions: identifier and state.
async fn sessions(gateway: &Gateway) -> Vec<(String, String)> {
    let (_, body) = gateway.get("/v1/sessions").await;
    let text = |session: &Value, key: &str| session[key].as_str().unwrap().to_owned();
    body["sessions"].as_array().unwrap().iter().map(|one| (text(one, "session_id"), text(one, "state"))).collect()
}

/// The result of `plexus doctor` for Codex's terminals: state, detail and fix.
async fn doctor(gateway: &Gateway) -> (String, String) {
    let (_, body) = gateway.get("/v1/doctor").await;
    let check = body["checks"].as_array().unwrap().iter().find(|check| check["name"] == "terminals codex");
    let check = check.unwrap_or_else(|| panic!("{body:#}"));
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    (text("state"), format!("{}; {}", text("detail"), text("fix")))
}

#[tokio::test]
async fn codex_daemon_is_attached_while_it_runs_and_its_session_continues() {
    let mut gateway = Gateway::start("").await;
    let (state, words) = doctor(&gateway).await;
    assert!(state == "ok" && words.contains("no daemon at") && words.contains("--no-daemon"), "{state} {words}");
    let daemon = Daemon::start(&codex_home(&gateway));
    until_runtimes(&gateway, &["codex-terminal ready"]).await;
    until_so("its session is listed", async || !sessions(&gateway).await.is_empty()).await;
    let (id, state) = sessions(&gateway).await.remove(0);
    assert_eq!(state, "idle");
    let (state, words) = doctor(&gateway).await;
    assert!(
        state == "ok" && words.contains("codex 0.169.0 at") && words.contains("attached as codex-terminal"),
        "{words}"
    );
    let said = |events: &[Value]| events.iter().filter(|event| event["kind"] == "agent_message_chunk").count();
    until_so("its message is shown", async || said(&gateway.events(&id).await) > 0).await;
    let events = gateway.events(&id).await;

    // Stopped properly, and then killed: its socket stays, and nobody listens.
    let mut daemon = daemon;
    for killed in [false, true] {
        if killed {
            drop(daemon);
        } else {
            daemon.stop();
        }
        until_runtimes(&gateway, &[]).await;
        assert_eq!(sessions(&gateway).await, [(id.clone(), "exited".to_owned())]);
        let (state, words) = doctor(&gateway).await;
        let expected = if killed { "none listens" } else { "no daemon at" };
        assert!(state == "ok" && words.contains(expected), "{state} {words}");
        assert!(gateway.events(&id).await.len() > events.len(), "it can be read");
        daemon = Daemon::start(&codex_home(&gateway));
        until_so("it is back", async || sessions(&gateway).await == [(id.clone(), "idle".to_owned())]).await;
    }

    // For another gateway, too, the same session goes on.
    gateway.kill();
    gateway.again().await;
    until_so("it is back", async || sessions(&gateway).await == [(id.clone(), "idle".to_owned())]).await;
    assert_eq!(said(&gateway.events(&id).await), said(&events), "nothing is repeated");
    assert_eq!(daemon.attached(), 2, "one connection for each gateway");

    // A daemon in which it is not open is not made to load it.
    daemon.stop();
    until_runtimes(&gateway, &[]).await;
    let daemon = Daemon::start_as(&codex_home(&gateway), 0o700, false);
    until_runtimes(&gateway, &["codex-terminal ready"]).await;
    tokio::time::sleep(LONG_ENOUGH).await;
    assert_eq!((daemon.resumed(), sessions(&gateway).await), (0, vec![(id.clone(), "exited".to_owned())]));
    assert!(gateway.stop().await.success());
    let log = gateway.stderr();
    assert!(!log.contains("ERROR"), "{log}");
    assert_eq!(log.matches("a server that terminals share was found").count(), 5, "one line each: {log}");
    assert_eq!(log.matches("the server is gone: its sessions go on").count(), 3, "one line each: {log}");
}

#[tokio::test]
async fn codex_daemon_is_not_attached_while_others_could_replace_it() {
    let gateway = Gateway::start("").await;
    let daemon = Daemon::start_as(&codex_home(&gateway), 0o777, true);
    let (state, words) = doctor(&gateway).await;
    assert!(state == "warn" && words.contains("other users can write"), "{state} {words}");
    let fix = format!("chmod go-w '{}'", daemon.folder.canonicalize().unwrap().display());
    assert!(words.contains(&fix), "{words}");
    tokio::time::sleep(LONG_ENOUGH).await;
    assert_eq!(daemon.attached(), 0, "it is left alone");
    assert_eq!(gateway.stderr().matches("other users can write").count(), 1, "and that is logged once");
    std::fs::set_permissions(&daemon.folder, Permissions::from_mode(0o700)).unwrap();
    until_runtimes(&gateway, &["codex-terminal ready"]).await;
}

#[tokio::test]
async fn codex_daemon_is_left_alone_if_configured_or_turned_off_or_stopped() {
    // Turned off.
    let gateway = Gateway::start("[native]\ncodex = false\n").await;
    let daemon = Daemon::start(&codex_home(&gateway));
    tokio::time::sleep(LONG_ENOUGH).await;
    assert_eq!((daemon.attached(), runtimes(&gateway).await), (0, Vec::new()));
    assert!(doctor(&gateway).await.1.contains("turned off"));
    drop((daemon, gateway));

    // Attached by the configuration, by the well-known path.
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("codex/app-server-control/app-server-control.sock");
    let daemon = Daemon::start(&dir.path().join("codex"));
    let connect = json!(format!("unix:{}", link.display()));
    let config = format!("[[runtime]]\nid = \"mine\"\ndialect = \"codex\"\nconnect = {connect}\n");
    let gateway = Gateway::start_in(dir, &config).await;
    until_runtimes(&gateway, &["mine ready"]).await;
    tokio::time::sleep(LONG_ENOUGH).await;
    assert_eq!((daemon.attached(), runtimes(&gateway).await), (1, vec!["mine ready".to_owned()]));
    assert!(doctor(&gateway).await.1.contains("attached as mine"));
    // Without that one it is attached by itself.
    let (status, body) = gateway.delete("/v1/runtimes/mine").await;
    assert!(status < 300, "{status} {body}");
    until_runtimes(&gateway, &["codex-terminal ready"]).await;

    // Stopped by a person: it stays so.
    let (status, body) = gateway.delete(&format!("/v1/runtimes/{RUNTIME}")).await;
    assert!(status < 300, "{status} {body}");
    let before = daemon.attached();
    tokio::time::sleep(LONG_ENOUGH).await;
    assert_eq!((daemon.attached(), runtimes(&gateway).await), (before, Vec::new()));
    let (state, words) = doctor(&gateway).await;
    assert!(state == "warn" && words.contains("start the gateway again"), "{words}");
}
