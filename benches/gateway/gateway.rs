//! Drives the real binary over a minimal HTTP client.
//!
//! Raw sockets instead of `plexus-client`: the time and memory of a client library must not be in the numbers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::agent::Control;
use super::clients::{Client, Crowd, Look, Wire};
use super::process::{Kill, scratch};

/// Timeout of one reply.
const PATIENCE: Duration = Duration::from_secs(60);

/// Another `plexus` to start in place of ours.
static OTHER: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Until it is dropped, gateways are of this program.
pub(crate) struct ServeWith(());

/// Starts gateways with this program until the result is dropped.
pub(crate) fn serve_with(program: &str) -> ServeWith {
    *OTHER.lock().unwrap() = Some(program.into());
    ServeWith(())
}

impl Drop for ServeWith {
    fn drop(&mut self) {
        *OTHER.lock().unwrap() = None;
    }
}

/// The `plexus` to measure.
pub(crate) fn program() -> PathBuf {
    OTHER.lock().unwrap().clone().unwrap_or_else(|| env!("CARGO_BIN_EXE_plexus").into())
}

/// The capabilities that a client declares.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Only watches.
    Watches,
    /// Answers requests.
    Answers,
}

/// A running gateway with a home of its own and the bench's agent as its runtime; killed when dropped.
pub(crate) struct Gateway {
    pub(crate) process: Kill,
    pub(crate) addr: SocketAddr,
    pub(crate) control: Control,
    token: String,
    /// Time from the start of the process to its first reply.
    pub(crate) started_in: Duration,
    dir: tempfile::TempDir,
}

impl Gateway {
    /// A gateway with its state on disk.
    pub(crate) fn start() -> Result<Self> {
        Self::start_in(scratch()?)
    }

    /// A gateway with its state in this directory, new or left by an earlier one.
    pub(crate) fn start_in(dir: tempfile::TempDir) -> Result<Self> {
        let socket = dir.path().join("control");
        if socket.exists() {
            std::fs::remove_file(&socket)?;
        }
        let control = Control::listen(dir.path())?;
        let home = dir.path().join("home");
        std::fs::create_dir_all(&home)?;
        let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let command = json!([std::env::current_exe()?, "role-agent", control.path]);
        let config =
            format!("listen = \"{addr}\"\n[[runtime]]\nid = \"bench\"\ndialect = \"acp\"\ncommand = {command}\n");
        std::fs::write(dir.path().join("plexus.toml"), config)?;
        let began = Instant::now();
        let child = Command::new(program())
            .args(["serve", "-c"])
            .arg(dir.path().join("plexus.toml"))
            .env("PLEXUS_HOME", &home)
            .env("NO_COLOR", "1")
            .env("CODEX_HOME", dir.path().join("codex"))
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(dir.path().join("stderr"))?)
            .spawn()?;
        let process = Kill(child);
        let mut gateway = Self { process, addr, control, token: String::new(), started_in: Duration::ZERO, dir };
        gateway.wait_healthy(began).with_context(|| gateway.stderr())?;
        gateway.token = std::fs::read_to_string(home.join("token"))?.trim().to_owned();
        Ok(gateway)
    }

    fn wait_healthy(&mut self, began: Instant) -> Result<()> {
        loop {
            if let Ok((200, _)) = exchange(self.addr, "GET", "/healthz", "", None) {
                self.started_in = began.elapsed();
                return Ok(());
            }
            ensure!(self.process.0.try_wait()?.is_none(), "the gateway exited");
            ensure!(began.elapsed() < PATIENCE, "the gateway does not answer");
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    fn stderr(&self) -> String {
        let all = std::fs::read_to_string(self.dir.path().join("stderr")).unwrap_or_default();
        format!("the gateway's stderr: {}", all.lines().rev().take(20).collect::<Vec<_>>().join("\n"))
    }

    /// Stops it with SIGTERM, and returns its directory.
    pub(crate) fn stop(mut self) -> Result<tempfile::TempDir> {
        let pid = rustix::process::Pid::from_child(&self.process.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let deadline = Instant::now() + PATIENCE;
        while self.process.0.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "the gateway did not stop");
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(self.dir)
    }

    /// Kills it (`kill -9`), and returns its directory.
    pub(crate) fn kill(self) -> tempfile::TempDir {
        let Self { process, dir, .. } = self;
        drop(process);
        dir
    }

    /// The directory of its state.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Sends a GET request.
    pub(crate) fn text(&self, path: &str) -> Result<String> {
        let (status, text) = exchange(self.addr, "GET", path, &self.token, None)?;
        ensure!(status == 200, "{path}: {status} {text}");
        Ok(text)
    }

    /// Sends a POST request.
    pub(crate) fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let (status, answer) = exchange(self.addr, method, path, &self.token, Some(&body.to_string()))?;
        ensure!((200..300).contains(&status), "{method} {path}: {status} {answer}; {}", self.stderr());
        Ok(serde_json::from_str(&answer)?)
    }

    /// A connection for calls one after the other, as programs keep one.
    pub(crate) fn connection(&self) -> Result<Connection> {
        Connection::open(self.addr)
    }

    /// A call on a connection that is kept.
    pub(crate) fn call_on(&self, connection: &mut Connection, method: &str, path: &str, body: &Value) -> Result<Value> {
        let (status, answer) = connection.exchange("keep-alive", method, path, &self.token, Some(&body.to_string()))?;
        ensure!((200..300).contains(&status), "{method} {path}: {status} {answer}; {}", self.stderr());
        Ok(serde_json::from_str(&answer)?)
    }

    /// Opens a session.
    pub(crate) fn session(&mut self) -> Result<String> {
        let session = self.call("POST", "/v1/sessions", &json!({ "runtime_id": "bench" }))?;
        if !self.control.has_agent() {
            self.control.accept()?;
        }
        Ok(session["session_id"].as_str().with_context(|| session.to_string())?.to_owned())
    }

    /// Begins a run, which the bench controls until it sends `end`.
    pub(crate) fn prompt(&mut self, session: &str) -> Result<()> {
        self.call("POST", &format!("/v1/sessions/{session}/prompt"), &json!({ "text": "go" }))?;
        self.control.hear("prompted")?;
        Ok(())
    }

    /// A client attached to the session, from now on.
    pub(crate) fn client(&self, wire: Wire, session: &str, role: Role) -> Result<Client> {
        let mut socket = TcpStream::connect(self.addr)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let (path, more, status) = match wire {
            Wire::WebSocket => (
                "/v1/ws".to_owned(),
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
                "101",
            ),
            Wire::Sse => (format!("/v1/sessions/{session}/events?after=now"), "Accept: text/event-stream", "200"),
        };
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{more}\r\n\r\n",
            self.addr, self.token
        );
        socket.write_all(head.as_bytes())?;
        let mut read = BufReader::new(&socket);
        let said = header(&mut read)?;
        ensure!(said.split(' ').nth(1) == Some(status), "no stream: {said}; {}", self.stderr());
        let ahead = read.buffer().to_vec();
        let mut client = Client::new(socket, wire, ahead);
        match wire {
            Wire::Sse => client.next(|chunk| find_text(chunk, "event: hello").then_some(()))?,
            Wire::WebSocket => {
                let answers = role == Role::Answers;
                let can = json!({ "supports_confirm": answers, "supports_prompt": answers, "supports_pick": answers });
                let hello = json!({ "protocol_version": "0", "client": { "name": "bench", "version": "1" },
                    "ui_capabilities": if answers { can } else { json!({}) } });
                client.say(
                    &json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": hello }).to_string(),
                )?;
                let attach = json!({ "session_id": session, "from": "now" });
                client.say(
                    &json!({ "jsonrpc": "2.0", "id": "a", "method": "session.attach", "params": attach }).to_string(),
                )?;
                let reply = client.next(|frame| {
                    let reply: Value = serde_json::from_slice(frame).ok()?;
                    (reply["id"] == "a" || reply.get("error").is_some()).then_some(reply)
                })?;
                ensure!(reply.get("result").is_some(), "no attach: {reply}");
            }
        }
        Ok(client)
    }

    /// This many attached clients that watch the session.
    pub(crate) fn crowd(&self, wire: Wire, session: &str, count: usize, look: Look) -> Result<Crowd> {
        let clients = (0..count).map(|_| self.client(wire, session, Role::Watches)).collect::<Result<_>>()?;
        let mut crowd = Crowd::new(clients, look)?;
        crowd.settle()?;
        Ok(crowd)
    }
}

/// Returns whether `text` is in `bytes`.
pub(crate) fn find_text(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The head of a response; reads up to its empty line.
fn header(read: &mut impl BufRead) -> Result<String> {
    let mut head = String::new();
    loop {
        let start = head.len();
        ensure!(read.read_line(&mut head)? > 0, "the server hung up after {head:?}");
        if head[start..].trim().is_empty() {
            return Ok(head);
        }
    }
}

/// One request on a connection of its own: status and body.
fn exchange(addr: SocketAddr, method: &str, path: &str, token: &str, body: Option<&str>) -> Result<(u16, String)> {
    Connection::open(addr)?.exchange("close", method, path, token, body)
}

/// A connection for one request after the other.
pub(crate) struct Connection {
    addr: SocketAddr,
    socket: BufReader<TcpStream>,
}

impl Connection {
    fn open(addr: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(addr)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { addr, socket: BufReader::new(socket) })
    }

    /// One request: status and body. `connection`: what becomes of the connection, `close` or `keep-alive`.
    fn exchange(
        &mut self,
        connection: &str,
        method: &str,
        path: &str,
        token: &str,
        body: Option<&str>,
    ) -> Result<(u16, String)> {
        let token = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        let length = body.map_or(String::new(), |body| {
            format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())
        });
        let host = self.addr;
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: {connection}\r\n{token}{length}\r\n");
        let read = &mut self.socket;
        read.get_mut().write_all([head.as_bytes(), body.unwrap_or_default().as_bytes()].concat().as_slice())?;
        let head = header(read)?;
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let mut body = Vec::new();
        if head.contains("\r\ntransfer-encoding: chunked\r\n") {
            loop {
                let mut size = String::new();
                read.read_line(&mut size)?;
                let size = u64::from_str_radix(size.trim(), 16).context("a chunk's size")?;
                read.by_ref().take(size).read_to_end(&mut body)?;
                read.read_line(&mut String::new())?;
                if size == 0 {
                    break;
                }
            }
        } else if let Some(length) = length {
            read.by_ref().take(length.trim().parse()?).read_to_end(&mut body)?;
        } else {
            read.read_to_end(&mut body)?;
        }
        Ok((status, String::from_utf8(body)?))
    }
}

/// Bytes of all files in a directory.
pub(crate) fn disk_use(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).filter(std::fs::Metadata::is_file).map(|meta| meta.len()).sum()
}
