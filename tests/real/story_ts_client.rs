//! The TypeScript client: it typechecks and builds as its package says, and against a real gateway it keeps what its
//! README promises, also over a line that is cut again and again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::agents;
use common::cast::Player;
use common::gateway::{Gateway, demo, said};
use common::moments::rounds;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/typescript")
}

async fn clients() -> PathBuf {
    tokio::task::spawn_blocking(agents::clients_dir).await.unwrap()
}

fn script(clients: &Path, name: &str) -> Command {
    let mut command = Command::new(agents::node(clients));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name));
    command.env("PLEXUS_CLIENTS", clients).stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

/// Builds the package into a folder of its own, with the compiler that it pins.
fn build(clients: &Path, out: &Path) {
    let manifest: Value = serde_json::from_slice(&std::fs::read(package().join("package.json")).unwrap()).unwrap();
    let compiler = std::fs::read(clients.join("node_modules/typescript/package.json")).unwrap();
    let compiler: Value = serde_json::from_slice(&compiler).unwrap();
    assert_eq!(manifest["devDependencies"]["typescript"], compiler["version"], "one compiler is pinned");
    assert!(manifest.get("dependencies").is_none(), "the client needs nothing at run time");
    let built = Command::new(agents::node(clients))
        .arg(clients.join("node_modules/typescript/bin/tsc"))
        .arg("-p")
        .arg(package())
        .arg("--outDir")
        .arg(out)
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}{}",
        String::from_utf8_lossy(&built.stdout),
        String::from_utf8_lossy(&built.stderr)
    );
}

#[tokio::test]
async fn ts_client_typechecks_builds_and_its_example_runs() {
    let clients = clients().await;
    let dir = tempfile::tempdir().unwrap();
    let package_dir = dir.path().join("node_modules/plexus-client");
    build(&clients, &package_dir.join("dist"));
    for file in ["index.js", "index.d.ts", "types.d.ts"] {
        assert!(package_dir.join("dist").join(file).is_file(), "{file} is built");
    }
    // Who installed the package, and wrote down the README's example.
    std::fs::copy(package().join("package.json"), package_dir.join("package.json")).unwrap();
    let readme = std::fs::read_to_string(package().join("README.md")).unwrap();
    let example = readme.split("```ts\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    assert!(example.lines().count() <= 10, "ten lines");
    std::fs::write(dir.path().join("example.mts"), example).unwrap();
    let checked = Command::new(agents::node(&clients))
        .arg(clients.join("node_modules/typescript/bin/tsc"))
        .args(["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--types", "node", "--typeRoots"])
        .arg(clients.join("node_modules/@types"))
        .arg("example.mts")
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(checked.status.success(), "the example typechecks: {}", String::from_utf8_lossy(&checked.stdout));
    let gateway = Gateway::demo().await;
    let ran = Command::new(agents::node(&clients))
        .arg("example.mts")
        .current_dir(dir.path())
        .env("PLEXUS_TOKEN", &gateway.token)
        .env("PLEXUS_URL", &gateway.url)
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{out}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(out.contains("allowed (allow_once)") && out.contains("chunk-0003"), "{out}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ts_client_keeps_its_promises() {
    let clients = clients().await;
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let mut facts = script(&clients, "native_ts_facts.mjs");
    facts.env("PLEXUS_URL", &gateway.url).env("PLEXUS_TOKEN", &gateway.token).env("PLEXUS_SESSION", &session);
    let ran = tokio::task::spawn_blocking(move || facts.output().unwrap()).await.unwrap();
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{out}");
    let held: Vec<&str> = out.lines().collect();
    let promised = [
        "lists",
        "first answer wins",
        "iterates",
        "history is the log",
        "late answers",
        "snapshots",
        "away",
        "revoked",
        "closed",
    ];
    assert_eq!(held, promised);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ts_client_player_sees_everything_once_across_gaps() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    clients().await;
    let mut player = Player::enter("native-ts", &gateway, &session).await;
    player.prompt("ask ;; stream 5").await;
    let asked = player.until("asked").await;
    player.answer(true).await;
    let resolved = player.until("resolved").await;
    assert_eq!((&resolved["resolved"], &resolved["allow"]), (&asked["id"], &Value::Bool(true)));
    assert_eq!(player.until("ended").await["ended"], "end_turn");
    player.cut().await;
    let run = gateway.prompt(&session, "stream 20 ;; ask").await;
    let request = gateway.open_request(&session).await;
    player.resume().await;
    player.answer(false).await;
    assert_eq!(player.until("resolved").await["resolved"], request["request_id"]);
    player.until("ended").await;
    assert_eq!(player.text(), said(&gateway.until_ended(&session, &run).await, None));
    // One who comes late has the same.
    let late = Player::enter("native-ts", &gateway, &session).await;
    assert_eq!(late.text(), player.text());
    assert_eq!(late.saw.iter().filter(|(_, saw)| saw.get("ended").is_some()).count(), 2);
    late.quit().await;
    player.quit().await;
}

/// A way to the gateway that is cut after a random number of bytes, so many times.
async fn cutter(listener: TcpListener, to: String, total: usize, cuts: Arc<AtomicUsize>) {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let cut = (cuts.load(Ordering::SeqCst) < total).then_some(1 + random % 40_000);
        let (to, cuts) = (to.clone(), Arc::clone(&cuts));
        tokio::spawn(async move {
            let mut far = TcpStream::connect(&to).await.unwrap();
            let (mut left, mut buffer) = (cut, vec![0; 16 << 10]);
            let (mut from_near, mut to_near) = near.split();
            let (mut from_far, mut to_far) = far.split();
            let up = tokio::io::copy(&mut from_near, &mut to_far);
            let down = async {
                loop {
                    let n = from_far.read(&mut buffer).await.unwrap_or(0);
                    let some = left.map_or(n, |left| n.min(usize::try_from(left).unwrap()));
                    if n == 0 || to_near.write_all(&buffer[..some]).await.is_err() {
                        return;
                    }
                    if let Some(left) = &mut left {
                        *left -= some as u64;
                        if *left == 0 {
                            cuts.fetch_add(1, Ordering::SeqCst);
                            return;
                        }
                    }
                }
            };
            tokio::select! {
                _ = up => {}
                () = down => {}
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ts_client_cut_at_random_bytes_has_no_gap_and_no_repeat() {
    let total = rounds("cuts", 25, 100);
    let clients = clients().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let gateway = Gateway::start(&format!("public_hosts = [\"127.0.0.1:{port}\"]\n{}", demo())).await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "flood 12000 40").await;
    let cuts = Arc::new(AtomicUsize::new(0));
    let to = gateway.url.trim_start_matches("http://").to_owned();
    let cutting = tokio::spawn(cutter(listener, to, total, Arc::clone(&cuts)));
    let mut command = tokio::process::Command::new(agents::node(&clients));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/native-ts.mjs"));
    command.env("PLEXUS_VIA", format!("http://127.0.0.1:{port}"));
    let mut player = Player::begin("native-ts", command, &gateway, &session).await;
    if !player.saw.iter().any(|(_, saw)| saw.get("ended").is_some()) {
        // All the cuts fell after it went live.
        player.until("ended").await;
    }
    let whole = said(&gateway.until_ended(&session, &run).await, Some(&run));
    assert!(player.text() == whole, "{} bytes of {}", player.text().len(), whole.len());
    assert_eq!(cuts.load(Ordering::SeqCst), total, "there was enough to cut");
    println!("{total} cuts, {} bytes of text, all there", whole.len());
    player.quit().await;
    cutting.abort();
}
