//! All abuses at once against the real binary: peak memory, memory left afterwards, and the latency of another client
//! meanwhile. docs/limits.md lists the limit that each of them hits.
//!
//! Raw sockets: they misbehave.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Size;
use super::clients::{Look, Wire};
use super::gateway::{Gateway, Role};
use super::process::{memory, own_memory, peak_memory, raise_file_limit};
use super::table::{Row, Target};

const MIB: usize = 1 << 20;
/// Time that the abusers keep their connections.
const HOLD: Duration = Duration::from_secs(20);
/// Time that the gateway then has to become idle.
const REST: Duration = Duration::from_secs(10);
/// Interval between two requests of the well-behaved client.
const PING_EVERY: Duration = Duration::from_millis(20);
/// Timeout of one write of an abuser.
const PUSH: Duration = Duration::from_secs(2);

/// The open connections of an abuser, and whether it was refused.
#[derive(Default)]
struct Held {
    sockets: Vec<TcpStream>,
}

/// A connection that sends this and reads nothing; the gateway may refuse any part.
fn push(gateway: std::net::SocketAddr, pieces: &[&[u8]]) -> Result<TcpStream> {
    let mut socket = TcpStream::connect(gateway)?;
    socket.set_write_timeout(Some(PUSH))?;
    for piece in pieces {
        if socket.write_all(piece).is_err() {
            break;
        }
    }
    Ok(socket)
}

fn head(gateway: &Gateway, token: &str, line: &str, more: &str) -> String {
    let token = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    format!("{line} HTTP/1.1\r\nHost: {}\r\n{token}{more}\r\n", gateway.addr)
}

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";

/// A client's text frame, masked with zeros; if `length` is longer than the text, the frame never ends.
fn frame(text: &str, length: usize) -> Vec<u8> {
    let mut out = vec![0x81, 0x80 | 127];
    out.extend((length as u64).to_be_bytes());
    out.extend([0; 4]);
    out.extend_from_slice(text.as_bytes());
    out
}

/// A device's token.
fn device(gateway: &Gateway, name: &str) -> Result<String> {
    let grant = json!({ "name": name, "scopes": ["watch", "prompt"] });
    let device = gateway.call("POST", "/v1/devices", &grant)?;
    Ok(device["token"].as_str().context("no token")?.to_owned())
}

/// One abuse; it lasts until it is dropped.
type Abuse = Box<dyn FnOnce() -> Result<Held> + Send>;

/// The abuses, each in the number that did harm before.
fn abuses(gateway: &Gateway, session: &str, queue: &str, size: Size) -> Result<Vec<Abuse>> {
    let tokens = [device(gateway, "one")?, device(gateway, "two")?, device(gateway, "three")?];
    let address = gateway.addr;
    let mut all: Vec<Abuse> = Vec::new();
    let mut each = |count: usize, pieces: &dyn Fn(&str) -> Vec<Vec<u8>>| {
        for token in &tokens {
            let pieces = pieces(token);
            let count = count.div_ceil(tokens.len());
            all.push(Box::new(move || {
                let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
                let sockets = (0..count).map(|_| push(address, &pieces)).collect::<Result<_>>()?;
                Ok(Held { sockets })
            }));
        }
    };
    // Snapshots, pages and exports that nobody reads.
    for (count, path) in [(12, "snapshot"), (100, "events?limit=5000"), (12, "export?format=ndjson")] {
        let line = format!("GET /v1/sessions/{session}/{path}");
        each(size.scale(count, 10), &|token| vec![head(gateway, token, &line, "").repeat(4).into_bytes()]);
    }
    // Histories that nobody reads.
    each(size.scale(24, 10), &|token| {
        let mut said = vec![head(gateway, token, "GET /v1/ws", UPGRADE).into_bytes()];
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }).to_string();
        said.push(frame(&hello, hello.len()));
        for n in 1..=64 {
            let params = json!({ "session_id": session, "limit": 5000 });
            let ask = json!({ "jsonrpc": "2.0", "id": n, "method": "session.history", "params": params }).to_string();
            said.push(frame(&ask, ask.len()));
        }
        said
    });
    // Frames and bodies that never end.
    let blank = " ".repeat(15 * MIB);
    each(size.scale(40, 10), &|token| {
        vec![head(gateway, token, "GET /v1/ws", UPGRADE).into_bytes(), frame(&blank, blank.len() + 1)]
    });
    each(size.scale(60, 10), &|token| {
        let more = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", 16 * MIB);
        vec![head(gateway, token, "POST /acp", &more).into_bytes(), blank.clone().into_bytes()]
    });
    // Prompts: one above the limit, and many with a picture each in a session that is busy.
    let post = |token: &str, session: &str, body: &Value| {
        let body = body.to_string();
        let more = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        vec![
            head(gateway, token, &format!("POST /v1/sessions/{session}/prompt"), &more).into_bytes(),
            body.into_bytes(),
        ]
    };
    each(3, &|token| post(token, session, &json!({ "text": "x".repeat(15 * MIB) })));
    let picture = json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(2 * MIB) });
    each(size.scale(60, 10), &|token| post(token, queue, &json!({ "content": [picture] })));
    // Long prompts at once.
    let text = "x".repeat(size.scale(7 * MIB, 10));
    each(size.scale(60, 10), &|token| post(token, queue, &json!({ "text": text })));
    // No abuse.
    let body = " ".repeat(MIB);
    let stranger =
        head(gateway, "", "POST /v1/pair", &format!("Content-Type: application/json\r\nContent-Length: {MIB}\r\n"));
    let waiting = "GET / HTTP/1.1\r\nx-filler: ".to_owned() + &"y".repeat(24 << 10);
    for text in [stranger + &body, waiting] {
        let count = size.scale(750, 10);
        all.push(Box::new(move || {
            let sockets = (0..count).map(|_| push(address, &[text.as_bytes()])).collect::<Result<_>>()?;
            Ok(Held { sockets })
        }));
    }
    Ok(all)
}

/// Sends small requests until `stop` is set; returns the longest latency.
fn pings(mut client: super::clients::Client, stop: &AtomicBool) -> Result<Duration> {
    let mut worst = Duration::ZERO;
    let mut n = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        let began = Instant::now();
        client.say(&json!({ "jsonrpc": "2.0", "id": n, "method": "runtime.list", "params": {} }).to_string())?;
        client.next(|frame| {
            let answer: Value = serde_json::from_slice(frame).ok()?;
            (answer["id"] == n).then_some(())
        })?;
        worst = worst.max(began.elapsed());
        std::thread::sleep(PING_EVERY);
    }
    ensure!(n > 1, "nothing was asked");
    Ok(worst)
}

/// Runs all abuses at once.
pub(crate) fn abuse(size: Size) -> Result<Vec<Row>> {
    raise_file_limit(8000)?;
    let mut gateway = Gateway::start()?;
    let pid = gateway.process.id();
    let session = gateway.session()?;
    // A long conversation to request.
    let (events, bytes) = (size.scale(20_000, 50), 4 << 10);
    let mut crowd = gateway.crowd(Wire::WebSocket, &session, 1, Look::Chunks)?;
    gateway.prompt(&session)?;
    crowd.begin();
    gateway.control.say(&format!("stream {events} {bytes}"))?;
    crowd.until(events as u64)?;
    gateway.control.say("end")?;
    drop(crowd);
    // Sessions of an agent with many models.
    let home = gateway.home().with_file_name("many-models");
    std::fs::create_dir_all(&home)?;
    for _ in 0..size.scale(60, 10) {
        gateway.call("POST", "/v1/sessions", &json!({ "runtime_id": "bench", "cwd": home }))?;
    }
    // A busy session, so that prompts are queued.
    let queue = gateway.session()?;
    gateway.prompt(&queue)?;
    let before = memory(pid)?;
    let client = gateway.client(Wire::WebSocket, &session, Role::Watches)?;
    let stop = Arc::new(AtomicBool::new(false));
    let pinger = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || pings(client, &stop)
    });
    // An agent's long lines, of which each takes several times its length until it is stored.
    gateway.control.say(&format!("stream {} {}", size.scale(6, 3), size.scale(60 * MIB, 10)))?;
    let abuses = abuses(&gateway, &session, &queue, size)?;
    let held = Arc::new(Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for abuse in abuses {
            let held = Arc::clone(&held);
            scope.spawn(move || match abuse() {
                Ok(sockets) => held.lock().unwrap().push(sockets),
                Err(error) => eprintln!("    an abuser gave up: {error:#}"),
            });
        }
    });
    std::thread::sleep(HOLD);
    stop.store(true, Ordering::Relaxed);
    let worst = pinger.join().map_err(|_| anyhow::anyhow!("the one who pings has died"))??;
    let mut refused = 0;
    for socket in held.lock().unwrap().iter_mut().flat_map(|held| &mut held.sockets) {
        socket.set_nonblocking(true)?;
        let mut start = [0; 12];
        refused += usize::from(
            matches!(socket.read(&mut start), Ok(12) if start.starts_with(b"HTTP/1.1 4") || start.starts_with(b"HTTP/1.1 5")),
        );
    }
    let sockets: usize = held.lock().unwrap().iter().map(|held| held.sockets.len()).sum();
    eprintln!("    {sockets} connections, {refused} of them refused; {} MiB before", before >> 20);
    let metrics = gateway.text("/metrics")?;
    for line in metrics.lines().filter(|line| line.starts_with("plexus_ledger") && !line.ends_with(" 0")) {
        eprintln!("    {line}");
    }
    held.lock().unwrap().clear();
    std::thread::sleep(REST);
    let (after, own) = (memory(pid)?, own_memory(pid)?);
    // Closing everything at once is part of the test.
    let peak = peak_memory(pid)?;
    let mib = |bytes: u64| bytes as f64 / 1048576.0;
    let row = |name: &str, unit, plexus, target| Row { name: name.into(), unit, floor: None, plexus, target };
    Ok(vec![
        row("peak memory under every abuse at once", "MiB", mib(peak), Target::AtMost(512.0)),
        row("memory 10 s after it", "MiB", mib(after), Target::Told),
        row("of that its own, and no file of the store", "MiB", mib(own), Target::Told),
        row("slowest answer to another client meanwhile", "ms", worst.as_secs_f64() * 1e3, Target::AtMost(250.0)),
    ])
}
