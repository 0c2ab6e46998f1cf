//! The link socket, over which helpers that agents start in their own terminals (`plexus hook`) communicate with the gateway.
//!
//! The socket is in the state folder, for the user alone (0600), and each peer's user is checked. Helpers have no token and decide
//! nothing: their messages become events and questions of a session, and a waiting helper carries out a user's decision. The socket must
//! not delay a terminal: helpers do not wait for the gateway, except those that wait for users. A helper inside the agent's own process
//! stays connected (a tunnel): it reports events, and makes requests there for the gateway.
//!
//! To its driver an agent's helpers are an endpoint (`link:claude`): frames, and requests for transcripts and processes, as
//! [`plexus_dialects::link`] describes.

use std::collections::HashMap;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use super::endpoint_event::EndpointEvent;
use super::meter::{ReplyCharge, ReplyOrder};
use super::sse::SseItem;
use plexus_dialects::link::{
    HelperExit, HelperHello, HelperMessage, HelperRole, LinkFrame, LinkReply, LinkRequest, TERMINAL_DIALECTS,
    TerminalDialect, TranscriptPart, TunnelLine, TunnelReply, TunnelRequest,
};
use plexus_dialects::{HttpReply, HttpRequest};
use plexus_holder::process_identity::Process;
use plexus_protocol::TerminalId;

/// The name of the socket in the state folder.
pub const LINK_SOCKET: &str = "link.sock";

/// Maximum number of connected helpers; a further one is disconnected, and the terminal's own dialog remains.
const HELPERS_MAX: usize = 1024;
/// Maximum number of messages of an agent's helpers that wait for its driver; of further ones only those are retained whose helper waits.
/// A tunnel is not read until the queue has a place.
const QUEUE: usize = 1024;
/// Maximum length of a message, in bytes: the input of a tool, and some more. A helper with a longer one is disconnected.
pub const MESSAGE_MAX: usize = 32 << 20;
/// Maximum size of messages that wait for their driver, in bytes; the next helper waits.
const WAITING_MAX: usize = 64 << 20;
/// Maximum number of requests that wait until a tunnel reads them; with one more the tunnel is disconnected, and reconnects.
const ASKED_MAX: usize = 256;
/// Maximum time for a helper to send its message, or to read the response.
const HELPER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time that the next helper waits for that, so that helpers are handled in order.
const IN_ORDER: Duration = Duration::from_millis(20);
/// Time between two checks that terminals are alive.
const WATCH: Duration = Duration::from_millis(500);
/// Maximum size of the part of a transcript that is read at a time, in bytes.
const PART_MAX: u64 = 64 << 20;

/// Starts the runtime of an agent at its first message.
pub type LaunchLinked = Box<dyn Fn(&'static TerminalDialect) + Send + Sync>;

/// Types in a shared terminal, as [`terminal_path`](plexus_dialects::link::terminal_path) describes. The argument and the result are the
/// bodies of the request and of the reply. Blocks, for some seconds at most.
pub type TypeInTerminal = Box<dyn Fn(&TerminalId, &[u8]) -> Result<Vec<u8>, String> + Send + Sync>;

/// All helpers of all agents. Clones share them.
#[derive(Clone, Default)]
pub struct LinkHub(Arc<Hub>);

impl std::fmt::Debug for LinkHub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinkHub").finish_non_exhaustive()
    }
}

struct Hub {
    agents: HashMap<&'static str, AgentQueue>,
    /// The helpers that wait for an exit, by connection. A tunnel without an entry is disconnected.
    waiting: Mutex<HashMap<u64, oneshot::Sender<HelperExit>>>,
    /// The tunnels, by connection.
    tunnels: Mutex<HashMap<u64, Arc<Tunnel>>>,
    /// The processes of terminals.
    processes: Mutex<HashMap<u32, (Process, &'static str)>>,
    connections: AtomicU64,
    helpers: Arc<Semaphore>,
    capacity: Arc<Semaphore>,
    /// The function that types in shared terminals, if there are any.
    terminals: Option<TypeInTerminal>,
}

/// The messages of an agent's helpers, for its driver.
struct AgentQueue {
    send: mpsc::Sender<Message>,
    take: Arc<tokio::sync::Mutex<mpsc::Receiver<Message>>>,
    launched: std::sync::atomic::AtomicBool,
}

/// A message for a driver, with the permit for its size.
struct Message {
    content: Content,
    _size_permit: Option<OwnedSemaphorePermit>,
}

enum Content {
    Frame(Bytes),
    /// The reply to a request by a tunnel. It is ordered among the tunnel's events: after those that preceded it, and before the others.
    Reply(AwaitedReply, Result<HttpReply, String>),
}

type AwaitedReply = oneshot::Sender<(Result<HttpReply, String>, ReplyOrder)>;

/// A helper that stays connected.
struct Tunnel {
    /// The queue of requests to the helper.
    calls: mpsc::Sender<Bytes>,
    replies: Mutex<HashMap<u64, AwaitedReply>>,
    requests: AtomicU64,
}

/// A request by a tunnel. When dropped, its reply is no longer awaited.
struct TunnelCall<'a>(&'a Tunnel, u64);

impl Drop for TunnelCall<'_> {
    fn drop(&mut self) {
        self.0.replies.lock().remove(&self.1);
    }
}

impl Default for Hub {
    fn default() -> Self {
        let queue = |agent: &TerminalDialect| {
            let (send, take) = mpsc::channel(QUEUE);
            let take = Arc::new(tokio::sync::Mutex::new(take));
            (agent.name, AgentQueue { send, take, launched: false.into() })
        };
        Self {
            agents: TERMINAL_DIALECTS.iter().map(queue).collect(),
            waiting: Mutex::default(),
            tunnels: Mutex::default(),
            processes: Mutex::default(),
            connections: AtomicU64::new(1),
            helpers: Arc::new(Semaphore::new(HELPERS_MAX)),
            capacity: Arc::new(Semaphore::new(WAITING_MAX)),
            terminals: None,
        }
    }
}

/// Makes the link socket in the state folder. The folder's lock is held: an existing socket belongs to a gateway that has ended.
///
/// # Errors
/// The socket cannot be made, or its path is in use by something else.
pub fn bind(home: &Path) -> io::Result<UnixListener> {
    let path = home.join(LINK_SOCKET);
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(&path)?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is another file in its place")),
        Err(_) => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

impl LinkHub {
    /// Makes a hub that types in shared terminals.
    pub fn new(terminals: TypeInTerminal) -> Self {
        Self(Arc::new(Hub { terminals: Some(terminals), ..Hub::default() }))
    }

    /// Serves helpers for as long as it is polled. `launch` is called once for each agent with a helper.
    pub async fn serve(self, listener: UnixListener, launch: LaunchLinked) {
        let launch: Arc<LaunchLinked> = Arc::new(launch);
        let watching = self.clone().watch();
        let reading = async {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    // The file descriptors are probably exhausted: others may be closed.
                    tokio::time::sleep(IN_ORDER).await;
                    continue;
                };
                let own = stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw());
                let Some(permit) = Arc::clone(&self.0.helpers).try_acquire_owned().ok().filter(|_| own) else {
                    continue;
                };
                let (hub, launch) = (self.clone(), Arc::clone(&launch));
                let mut helper = Box::pin(async move { hub.handle_helper(stream, launch.as_ref(), permit).await });
                if timeout(IN_ORDER, &mut helper).await.is_err() {
                    tokio::spawn(helper);
                }
            }
        };
        tokio::join!(watching, reading);
    }

    /// Reads the message of a helper. One that stays connected is served, or waits, in a task of its own.
    async fn handle_helper(self, mut stream: UnixStream, launch: &LaunchLinked, permit: OwnedSemaphorePermit) {
        let (mut lines, started) = (LineReader::new(&self.0.capacity), tokio::time::Instant::now());
        let Ok(Some((hello, _))) = timeout(HELPER_TIMEOUT, lines.next(&mut stream)).await else { return };
        let Ok(hello) = serde_json::from_slice::<HelperHello>(&hello) else { return };
        let Some(agent) = TERMINAL_DIALECTS.iter().find(|agent| agent.name == hello.agent) else { return };
        let Some(queue) = self.0.agents.get(agent.name) else { return };
        if !queue.launched.swap(true, Ordering::Relaxed) {
            launch(agent);
        }
        if hello.role == HelperRole::Tunnel {
            let hub = self.clone();
            tokio::spawn(async move {
                hub.tunnel(stream, lines, &hello, agent).await;
                drop(permit);
            });
            return;
        }
        let event = timeout(HELPER_TIMEOUT.saturating_sub(started.elapsed()), lines.next(&mut stream)).await;
        let Ok(Some((event, size_permit))) = event else { return };
        let Ok(event) = serde_json::from_slice::<&RawValue>(&event) else { return };
        let started = self.watch_process(hello.pid, agent.name);
        let (waits, connection) = (hello.role != HelperRole::Event, self.0.connections.fetch_add(1, Ordering::Relaxed));
        let message = Some(HelperMessage { hello, event });
        let frame = LinkFrame { connection, started, message, ended: None };
        let Ok(frame) = serde_json::to_vec(&frame) else { return };
        let message = Message { content: Content::Frame(frame.into()), _size_permit: Some(size_permit) };
        if !waits {
            let _ = queue.send.try_send(message);
            return;
        }
        let (exit, decided) = oneshot::channel();
        self.0.waiting.lock().insert(connection, exit);
        let sent = queue.send.try_send(message).is_ok();
        let hub = self.clone();
        tokio::spawn(async move {
            // If no driver accepts the message, the terminal continues alone.
            let decided = if sent { Some(decided) } else { None };
            if hub.wait(stream, connection, decided).await.is_none() {
                let closed = LinkFrame { connection, started, message: None, ended: None };
                hub.send_frame(agent.name, &closed).await;
            }
            drop(permit);
        });
    }

    /// Waits for the decision how a helper ends, and sends it; `None` if the helper disconnects before.
    async fn wait(
        &self,
        mut stream: UnixStream,
        connection: u64,
        decided: Option<oneshot::Receiver<HelperExit>>,
    ) -> Option<()> {
        let (mut read, mut write) = stream.split();
        let disconnected = async {
            let mut more = [0; 64];
            while read.read(&mut more).await.is_ok_and(|read| read > 0) {}
        };
        let exit = match decided {
            Some(decided) => tokio::select! {
                exit = decided => exit.ok(),
                () = disconnected => None,
            },
            None => Some(HelperExit::default()),
        };
        self.0.waiting.lock().remove(&connection);
        let mut line = serde_json::to_vec(&exit?).unwrap_or_default();
        line.push(b'\n');
        let _ = timeout(HELPER_TIMEOUT, write.write_all(&line)).await;
        Some(())
    }

    /// Sends a driver a message that does not come from a helper.
    async fn send_frame(&self, agent: &str, frame: &LinkFrame<'_>) {
        let Some(queue) = self.0.agents.get(agent) else { return };
        let frame = serde_json::to_vec(frame).unwrap_or_default();
        let _ = queue.send.send(Message { content: Content::Frame(frame.into()), _size_permit: None }).await;
    }

    // === tunnels ===

    /// Serves a helper that stays connected, from its first message to its end.
    async fn tunnel(
        &self,
        mut stream: UnixStream,
        mut lines: LineReader,
        hello: &HelperHello,
        agent: &'static TerminalDialect,
    ) {
        let connection = self.0.connections.fetch_add(1, Ordering::Relaxed);
        let started = self.watch_process(hello.pid, agent.name);
        let (calls, mut requests) = mpsc::channel::<Bytes>(ASKED_MAX);
        let tunnel = Arc::new(Tunnel { calls, replies: Mutex::default(), requests: AtomicU64::new(1) });
        self.0.tunnels.lock().insert(connection, Arc::clone(&tunnel));
        let (exit, decided) = oneshot::channel();
        self.0.waiting.lock().insert(connection, exit);
        let (mut read, mut write) = stream.split();
        let reading = async {
            while let Some((line, size_permit)) = lines.next(&mut read).await {
                if self
                    .handle_tunnel_line(&tunnel, (&line, size_permit), hello, connection, started, agent)
                    .await
                    .is_none()
                {
                    break;
                }
            }
        };
        let writing = async {
            while let Some(line) = requests.recv().await {
                if !matches!(timeout(HELPER_TIMEOUT, write.write_all(&line)).await, Ok(Ok(()))) {
                    break;
                }
            }
        };
        // Concurrently: a tunnel's messages are read while it does not read, and requests are sent while no driver accepts its messages.
        tokio::select! {
            _ = decided => {}
            () = reading => {}
            () = writing => {}
        }
        self.0.waiting.lock().remove(&connection);
        self.0.tunnels.lock().remove(&connection);
        // The waiting callers learn that there is no reply.
        tunnel.replies.lock().clear();
        self.send_frame(agent.name, &LinkFrame { connection, started, message: None, ended: None }).await;
    }

    /// Handles a line of a tunnel; `None` if the line is invalid. Waits until the queue has a place.
    async fn handle_tunnel_line(
        &self,
        tunnel: &Tunnel,
        (line, size_permit): (&[u8], OwnedSemaphorePermit),
        hello: &HelperHello,
        connection: u64,
        started: u64,
        agent: &TerminalDialect,
    ) -> Option<()> {
        let TunnelLine { event, reply } = serde_json::from_slice(line).ok()?;
        let content = match (event, reply) {
            (Some(event), _) => {
                let message = Some(HelperMessage { hello: hello.clone(), event });
                let frame = serde_json::to_vec(&LinkFrame { connection, started, message, ended: None }).ok()?;
                Content::Frame(frame.into())
            }
            (None, Some(TunnelReply { id, status, body, error })) => {
                let Some(awaited) = tunnel.replies.lock().remove(&id) else { return Some(()) };
                let body = body.map_or_else(Bytes::new, |body| Bytes::copy_from_slice(body.get().as_bytes()));
                let reply = match error {
                    Some(reason) => Err(reason),
                    None => Ok(HttpReply { status, body }),
                };
                Content::Reply(awaited, reply)
            }
            (None, None) => return Some(()),
        };
        let queue = self.0.agents.get(agent.name)?;
        queue.send.send(Message { content, _size_permit: Some(size_permit) }).await.ok()
    }

    /// Makes a request by a tunnel.
    async fn ask_tunnel(
        &self,
        connection: u64,
        path: &str,
        fetch: &HttpRequest,
    ) -> Result<(HttpReply, ReplyOrder), String> {
        let not_connected = || "the terminal is not connected".to_owned();
        let tunnel = self.0.tunnels.lock().get(&connection).cloned().ok_or_else(not_connected)?;
        let id = tunnel.requests.fetch_add(1, Ordering::Relaxed);
        let body = fetch.body.as_deref().and_then(|body| serde_json::from_slice::<&RawValue>(body).ok());
        let request = TunnelRequest { id, method: fetch.method, path, body };
        let mut line = serde_json::to_vec(&HashMap::from([("request", request)])).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let (reply, replied) = oneshot::channel();
        tunnel.replies.lock().insert(id, reply);
        let _call = TunnelCall(&tunnel, id);
        if tunnel.calls.try_send(line.into()).is_err() {
            self.0.waiting.lock().remove(&connection);
            return Err("the terminal does not read what it is asked".into());
        }
        let (reply, order) = replied.await.map_err(|_| not_connected())?;
        Ok((reply?, order))
    }

    // === processes ===

    /// Watches the process of a terminal; returns its start time, or 0 if it has ended already.
    fn watch_process(&self, pid: u32, agent: &'static str) -> u64 {
        let mut processes = self.0.processes.lock();
        if let Some((process, _)) = processes.get(&pid).filter(|(process, _)| process.seems_alive()) {
            return process.start();
        }
        let Some(process) = Process::find(pid) else { return 0 };
        processes.insert(pid, (process, agent));
        process.start()
    }

    /// Notifies drivers of terminals that have ended.
    async fn watch(self) {
        loop {
            tokio::time::sleep(WATCH).await;
            let mut ended = Vec::new();
            self.0.processes.lock().retain(|pid, (process, agent)| {
                let alive = process.seems_alive();
                if !alive {
                    ended.push((*pid, *agent));
                }
                alive
            });
            for (pid, agent) in ended {
                self.send_frame(agent, &LinkFrame { connection: 0, started: 0, message: None, ended: Some(pid) }).await;
            }
        }
    }

    // === the endpoint ===

    /// Receives the messages of an agent's helpers from now on. Waits until its last driver has ended. Cancellation safe.
    pub(super) async fn connect(&self, agent: &'static TerminalDialect) -> LinkConnection {
        let Some(queue) = self.0.agents.get(agent.name) else { return std::future::pending().await };
        queue.launched.store(true, Ordering::Relaxed);
        LinkConnection { hub: self.clone(), queue: Arc::clone(&queue.take).lock_owned().await, reply: None }
    }

    /// Types keys in a shared terminal.
    async fn type_keys(&self, terminal: TerminalId, fetch: &HttpRequest) -> Result<Vec<u8>, String> {
        let (hub, body) = (self.clone(), fetch.body.clone().unwrap_or_default());
        let typed = tokio::task::spawn_blocking(move || {
            let types = hub.0.terminals.as_ref().ok_or("this gateway has no shared terminals")?;
            types(&terminal, &body)
        });
        typed.await.map_err(|error| error.to_string())?
    }

    /// Responds to a request of a dialect; waits no longer than `within` for a tunnel's reply.
    ///
    /// # Errors
    /// A text for users: the request is invalid, the transcript cannot be read, or the tunnel has no reply.
    pub(super) async fn fetch(
        &self,
        agent: &'static TerminalDialect,
        fetch: &HttpRequest,
        within: Duration,
        mut charge: ReplyCharge,
    ) -> Result<(HttpReply, ReplyCharge), String> {
        let reply = |status, body: Bytes| HttpReply { status, body };
        let reply = match LinkRequest::read(&fetch.path).ok_or("not a request to a link endpoint")? {
            LinkRequest::Tunnel(connection, path) => {
                let replied = timeout(within, self.ask_tunnel(connection, &path, fetch)).await;
                let (reply, order) = replied.map_err(|_| format!("the terminal did not reply within {within:?}"))??;
                charge.grow(reply.body.len()).await;
                charge.hold_order(order);
                reply
            }
            LinkRequest::Terminal(terminal) => {
                let outcome = self.type_keys(terminal, fetch).await?;
                charge.grow(outcome.len()).await;
                reply(200, outcome.into())
            }
            LinkRequest::Process(pid, started) => {
                let alive = Process::find(pid).is_some_and(|process| process.start() == started);
                if alive {
                    self.watch_process(pid, agent.name);
                }
                reply(if alive { 200 } else { 404 }, Bytes::new())
            }
            LinkRequest::Transcript(part) => {
                let read = tokio::task::spawn_blocking(move || read_transcript(&part)).await;
                let (status, body) = read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
                charge.grow(body.len()).await;
                reply(status, body.into())
            }
        };
        Ok((reply, charge))
    }
}

/// Reads the lines of a helper. The held part of an incomplete line counts towards the limit, too.
struct LineReader {
    buffer: BytesMut,
    /// Length of the part of the buffer without a line feed.
    scanned: usize,
    capacity: Arc<Semaphore>,
    /// The permit for the size of the buffer.
    taken: Option<OwnedSemaphorePermit>,
}

impl LineReader {
    fn new(capacity: &Arc<Semaphore>) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, capacity: Arc::clone(capacity), taken: None }
    }

    /// Returns the next line, with the permit for its size; `None` if the helper disconnects before its end, pauses within it for
    /// [`HELPER_TIMEOUT`], or sends more than [`MESSAGE_MAX`]. Cancellation safe.
    async fn next(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Option<(Bytes, OwnedSemaphorePermit)> {
        loop {
            timeout(HELPER_TIMEOUT, self.acquire_permit()).await.ok()??;
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
                let mut line = self.buffer.split_to(self.scanned + end + 1);
                let size_permit = self.taken.as_mut()?.split(line.len())?;
                line.truncate(self.scanned + end);
                self.scanned = 0;
                return Some((line.freeze(), size_permit));
            }
            self.scanned = self.buffer.len();
            if self.buffer.len() > MESSAGE_MAX {
                return None;
            }
            let whole = self.buffer.is_empty();
            let read = stream.read_buf(&mut self.buffer);
            let read = if whole { read.await } else { timeout(HELPER_TIMEOUT, read).await.ok()? };
            if read.ok()? == 0 {
                return None;
            }
        }
    }

    /// Waits for a permit for the read bytes. Cancellation safe.
    async fn acquire_permit(&mut self) -> Option<()> {
        let taken = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = u32::try_from(self.buffer.len().saturating_sub(taken)).ok()?;
        if more > 0 {
            let more = Arc::clone(&self.capacity).acquire_many_owned(more).await.ok()?;
            match &mut self.taken {
                Some(taken) => taken.merge(more),
                None => self.taken = Some(more),
            }
        }
        Some(())
    }
}

/// Reads a part of a transcript: returns status and body, as [`transcript_path`](plexus_dialects::link::transcript_path) describes.
/// Blocks.
fn read_transcript(part: &TranscriptPart) -> io::Result<(u16, Vec<u8>)> {
    let refused = |reason| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    if !part.path.is_absolute() || part.path.extension().is_none_or(|extension| extension != "jsonl") {
        return refused("a transcript is a .jsonl file with an absolute path");
    }
    let flags = rustix::fs::OFlags::NONBLOCK.union(rustix::fs::OFlags::NOCTTY);
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let mut file = match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(&part.path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((404, Vec::new())),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
        return refused("a transcript is a file of the gateway's own user");
    }
    if part.offset > found.len() {
        return Ok((416, found.len().to_string().into_bytes()));
    }
    file.seek(SeekFrom::Start(part.offset))?;
    let mut body = Vec::new();
    file.take(part.length.min(PART_MAX)).read_to_end(&mut body)?;
    Ok((200, body))
}

/// The helpers of an agent, as the connection to an endpoint.
pub(super) struct LinkConnection {
    hub: LinkHub,
    queue: OwnedMutexGuard<mpsc::Receiver<Message>>,
    /// Completes when the last reply is handled, or no longer awaited.
    reply: Option<oneshot::Receiver<()>>,
}

impl LinkConnection {
    /// Waits for messages of helpers: at least one, at most about `count` and `bytes` of them. Cancellation safe.
    pub(super) async fn next(&mut self, count: usize, bytes: usize) -> Vec<EndpointEvent> {
        let (mut events, mut taken) = (Vec::new(), 0);
        while events.len() < count && taken < bytes {
            if let Some(reply) = &mut self.reply {
                let _ = reply.await;
                self.reply = None;
            }
            let message = match self.queue.try_recv() {
                Ok(message) => message,
                Err(_) if !events.is_empty() => break,
                Err(_) => match self.queue.recv().await {
                    Some(message) => message,
                    None => return std::future::pending().await,
                },
            };
            match message.content {
                Content::Frame(frame) => {
                    taken += frame.len();
                    events.push(EndpointEvent::Frame(SseItem::Data(frame)));
                }
                Content::Reply(awaited, reply) => {
                    let (place, taken) = oneshot::channel();
                    self.reply = Some(taken);
                    let _ = awaited.send((reply, ReplyOrder(place)));
                    if !events.is_empty() {
                        break;
                    }
                }
            }
        }
        events
    }

    /// Ends a helper.
    pub(super) fn send(&self, frame: &[u8]) {
        let Ok(LinkReply { connection, exit }) = serde_json::from_slice(frame) else { return };
        if let Some(waits) = self.hub.0.waiting.lock().remove(&connection) {
            let _ = waits.send(exit);
        }
    }
}
