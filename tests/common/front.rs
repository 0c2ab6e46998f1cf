//! The router on a port of its own, over a store in memory and a small fake runtime.
//!
//! Raw sockets: the tests over it look at the bytes of an answer, and send what no client would.
#![allow(unreachable_pub, reason = "each story uses a part of it")]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plexus::access::listeners::{CertificateFiles, ConfiguredAccess, Listeners};
use plexus::agents::linking::{Linking, LinkingState};
use plexus::agents::new_session::{NewSessionsState, OpenedSessions};
use plexus::agents::start::{AgentsState, Presets};
use plexus::agents::worktrees::WorktreesState;
use plexus::auth::{Auth, PersistDevice, read_token};
use plexus::frontends::acp::{AcpSessionRegistry, AcpState, Connections};
use plexus::frontends::agui::AgUiState;
use plexus::ledger::Ledger;
use plexus::notify::{Notifier, NotifySettings, NotifyState};
use plexus::operation::awake::KeepAwake;
use plexus::operation::doctor::{Doctor, DoctorState};
use plexus::operation::health::HealthState;
use plexus::router::describe::Descriptions;
use plexus::router::fanout::{Fans, STALL};
use plexus::router::{Core, GateLimits, Hosts, ListenLimits, PublicAddresses, public_address, serve};
use plexus::sessions::{
    CommitEntry, CommitRows, Directory, DriverEnd, Launcher, Log, RuntimeExit, RuntimeLink, RuntimeMessage,
    SessionRules, SessionSender,
};
use plexus::views::terminals::TerminalsState;
use plexus::{Features, app};
use plexus_dialects::{
    AgentRequest, EventDraft, ExpectedAnswer, OpenedAs, RequestKey, RequestSubject, RunEnd, RuntimeCommand,
    RuntimeError, RuntimeEvent,
};
use plexus_protocol::{
    AnswerBounds, Capabilities, Capability, Choice, Kind, NativeId, Number, Offer, Origin, RequestType, RunStatus,
    RuntimeInfo, RuntimeSpec, RuntimeState, SessionId, Timestamp,
};
use plexus_store::{MemoryStore, Store};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Listeners on loopback only, without a certificate.
fn no_listeners(home: &std::path::Path, hosts: &Arc<Hosts>, addresses: &Arc<PublicAddresses>) -> Listeners {
    let none = ConfiguredAccess::default();
    let files = CertificateFiles { cert: home.join("no.crt"), key: home.join("no.key"), ca: None };
    let (hosts, addresses) = (Arc::clone(hosts), Arc::clone(addresses));
    Listeners::open(home, none, &files.clone(), files, hosts, addresses, Box::new(|_, _| {})).unwrap()
}

/// Maximum waiting time; only a failing test reaches it.
pub const LONG: Duration = Duration::from_secs(20);

/// A runtime whose prompts are commands: `ask` asks, optionally for a command, `hang` never ends, any other text is repeated in
/// two pieces. The call `tool.ask {"command"}` changes the command of open requests. `unreadable` asks for a command that cannot
/// be parsed, `field` for a form of one field, `long N` and `edit N` for a command and an edit of N bytes. `context N ..` reports
/// the context left, `calls` lists the calls received since.
struct Fake;

impl Launcher for Fake {
    fn launch(&self, spec: RuntimeSpec) -> Result<RuntimeLink, String> {
        let info = RuntimeInfo::starting(&spec, spec.cwd.display().to_string(), 1, Timestamp::default());
        // The runtime `lister` has MCP servers and skills too.
        let lists = Capabilities::default().with(Capability::McpList, info.runtime_id.as_str() == "lister");
        let capabilities = Some(lists.with(Capability::Cancel, true).with(Capability::Requests, true));
        let info = RuntimeInfo { state: RuntimeState::Ready, agent: Some("fake 1".into()), capabilities, ..info };
        let (link, end) = RuntimeLink::new(info);
        tokio::spawn(obey(end));
        Ok(link)
    }
}

async fn obey(mut end: DriverEnd) {
    let mut inlets: HashMap<NativeId, SessionSender> = HashMap::new();
    let mut asked = HashMap::new();
    let mut hung = HashMap::new();
    let mut called: Vec<Value> = Vec::new();
    let ended = |native, ticket, status| RuntimeEvent::Ended {
        native,
        ticket,
        end: RunEnd { status, stop_reason: Some("end_turn".into()), message: None, native: None },
    };
    loop {
        let order = tokio::select! {
            order = end.orders.recv() => order,
            () = end.stop.notified() => None,
        };
        let Some(order) = order else { break };
        let said = match order.command {
            RuntimeCommand::Open { ticket, .. } => {
                let native = NativeId::from(&*format!("n{}", inlets.len()));
                inlets.insert(native.clone(), order.sender.clone());
                vec![RuntimeEvent::Opened { ticket, native, drafts: Vec::new(), how: OpenedAs::New }]
            }
            RuntimeCommand::Prompt { ticket, native, content } => {
                let block: Value = serde_json::from_str(content[0].get()).unwrap();
                let text = block["text"].as_str().unwrap_or("?").to_owned();
                match text.as_str() {
                    ask if ask == "ask" || ask.starts_with("ask ") => {
                        let key = RequestKey::unique(asked.len().to_string());
                        asked.insert(key.clone(), (native.clone(), ticket));
                        let line = ask.strip_prefix("ask ").unwrap_or("ls");
                        let ask = if line == "field" { field(key) } else { question(key, line) };
                        vec![RuntimeEvent::Asked { native: Some(native), ask: Box::new(ask) }]
                    }
                    "hang" => {
                        hung.insert(ticket, native);
                        Vec::new()
                    }
                    context if context.starts_with("context ") => {
                        let left = context.split(' ').skip(1).map(|left| {
                            let left: Value = serde_json::from_str(left).unwrap();
                            let body = json!({ "sessionUpdate": "usage_update", "contextLeftPercent": left });
                            RuntimeEvent::Event {
                                native: Some(native.clone()),
                                draft: EventDraft::new(Kind::UsageUpdate, &body),
                            }
                        });
                        left.chain([ended(native.clone(), ticket, RunStatus::Completed)]).collect()
                    }
                    "calls" => {
                        let text = Value::from(std::mem::take(&mut called)).to_string();
                        let content = json!({ "type": "text", "text": text });
                        let body = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
                        let draft = EventDraft::new(Kind::AgentMessageChunk, &body);
                        let said = RuntimeEvent::Event { native: Some(native.clone()), draft };
                        vec![said, ended(native.clone(), ticket, RunStatus::Completed)]
                    }
                    _ => {
                        let (first, second) = text.split_at(text.len() / 2);
                        let piece = |text: &str| RuntimeEvent::Event {
                            native: Some(native.clone()),
                            draft: EventDraft::new(
                                Kind::AgentMessageChunk,
                                &json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } }),
                            ),
                        };
                        vec![piece(first), piece(second), ended(native.clone(), ticket, RunStatus::Completed)]
                    }
                }
            }
            RuntimeCommand::Cancel { ticket, native, .. } => {
                let Some(ticket) = ticket else { continue };
                hung.remove(&ticket);
                vec![ended(native, ticket, RunStatus::Cancelled)]
            }
            RuntimeCommand::Answer { key, .. } => match asked.remove(&key) {
                Some((native, ticket)) => vec![ended(native, ticket, RunStatus::Completed)],
                None => Vec::new(),
            },
            RuntimeCommand::Call { ticket, method, params: Some(params), .. } if method == "tool.ask" => {
                let params: Value = serde_json::from_str(params.get()).unwrap();
                let line = params["command"].as_str().unwrap();
                let change = |(key, (native, _)): (&RequestKey, &(NativeId, _))| RuntimeEvent::AskChanged {
                    native: Some(native.clone()),
                    ask: Box::new(question(key.clone(), line)),
                };
                let mut said: Vec<RuntimeEvent> = asked.iter().map(change).collect();
                said.push(RuntimeEvent::Replied { ticket, reply: Ok(params_of(&json!({}))) });
                said
            }
            // As a runtime whose user closed what the call had opened.
            RuntimeCommand::Call { ticket, method, .. } if method == "tool.left" => {
                let fault = RuntimeError { code: -32003, message: "user cancelled".into(), data: None };
                vec![RuntimeEvent::Replied { ticket, reply: Err(fault) }]
            }
            RuntimeCommand::Call { method, params, .. } => {
                let params = params.map(|params| serde_json::from_str::<Value>(params.get()).unwrap());
                called.push(json!({ "method": method, "params": params }));
                Vec::new()
            }
        };
        order.sender.put(RuntimeMessage::Events(said, None)).await;
    }
    for sender in inlets.values() {
        sender.put(RuntimeMessage::Exited(RuntimeExit { stopped: true, ..RuntimeExit::default() })).await;
    }
    end.info.send_modify(|info| *info = Arc::new(RuntimeInfo { state: RuntimeState::Exited, ..(**info).clone() }));
}

fn params_of(value: &Value) -> Box<serde_json::value::RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

/// A form with one field: a number from 1 to 9.
fn field(key: RequestKey) -> AgentRequest {
    let fits =
        AnswerBounds { number: Some(Number::Integer), least: Some(1.0), most: Some(9.0), ..AnswerBounds::default() };
    AgentRequest {
        kind: RequestType::Prompt,
        title: "How many?".into(),
        subject: RequestSubject::Text("How many?".into()),
        options: Vec::new(),
        expects: ExpectedAnswer { field: Some("count".into()), optional: false, fits },
        ..question(key, "")
    }
}

fn question(key: RequestKey, line: &str) -> AgentRequest {
    let offer = |id: &str, kind| Offer { id: id.into(), label: id.into(), kind, for_session: false };
    AgentRequest {
        subject: match line {
            // The dangerous part is at the end.
            long if long.starts_with("long ") => {
                let words = "echo a\n".repeat(long[5..].parse::<usize>().unwrap() / 7);
                RequestSubject::Command { argv: vec![format!("{words}sudo rm -rf /srv")], cwd: None }
            }
            edit if edit.starts_with("edit ") => {
                let lines = |one: &str| one.repeat(edit[5..].parse::<usize>().unwrap() / 2 / 8);
                let old = format!("{}end", lines("line 00\n"));
                RequestSubject::Edits(vec![("/w/a.txt".into(), Some(old), format!("{}END", lines("line 01\n")))])
            }
            "unreadable" => {
                RequestSubject::Unreadable { reason: "the agent did not send the tool's input", raw: "{}".into() }
            }
            line => RequestSubject::Command { argv: vec![line.into()], cwd: None },
        },
        options: vec![offer("yes", Choice::AllowOnce), offer("no", Choice::RejectOnce)],
        ..AgentRequest::new(
            key,
            RequestType::Permission,
            "run it",
            serde_json::value::to_raw_value(&json!({})).unwrap(),
            Default::default(),
        )
    }
}

/// Device rows are committed by the log's writer, as in the program.
fn persist(log: Log) -> PersistDevice {
    Arc::new(move |change| {
        let log = log.clone();
        Box::pin(async move {
            let origin = Arc::new(Origin {
                session_id: SessionId::trusted("s_devices"),
                runtime_id: "devices".parse().unwrap(),
                dialect: "none".into(),
            });
            let rows = move |_| CommitRows { devices: vec![change], ..CommitRows::default() };
            let entry = CommitEntry {
                origin,
                events: Vec::new(),
                rows: Some(Box::new(rows)),
                on_stored: None,
                received: None,
                sync: true,
            };
            log.commit(entry).await.map(|_| ()).map_err(|error| error.to_string())
        })
    })
}

/// A router that runs until dropped.
pub struct Front {
    pub address: SocketAddr,
    pub core: Core,
    pub acp: AcpState,
    /// The local administrator's token.
    pub admin: String,
    pub stop: watch::Sender<bool>,
    pub served: tokio::task::JoinHandle<()>,
    _home: tempfile::TempDir,
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        let whole = match self.header("transfer-encoding") {
            Some("chunked") => self.unchunked(),
            _ => self.body.clone(),
        };
        serde_json::from_str(&whole).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The content of a chunked body.
    fn unchunked(&self) -> String {
        let (mut rest, mut text) = (self.body.as_str(), String::new());
        while let Some((length, more)) = rest.split_once("\r\n") {
            let length = usize::from_str_radix(length, 16).unwrap();
            text += &more[..length];
            rest = &more[length + 2..];
        }
        text
    }

    /// The problem's code.
    pub fn code(&self) -> String {
        assert!(self.head.contains("content-type: application/problem+json"), "{self:?}");
        self.json()["code"].as_str().unwrap().to_owned()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// The state of all features of a router in `home`.
fn features(
    core: &Core,
    home: &std::path::Path,
    listeners: Listeners,
    notifier: Notifier,
    connections: Connections,
) -> Features {
    let presets: Presets = Arc::new(|name, changes| match name {
        "fake" => Ok(spec(changes.id.as_ref().map_or("fake", |id| id.as_str()))),
        _ => Err(format!("there is no preset {name}: use fake")),
    });
    let folders = Arc::new(plexus_workspace::FolderStores::new(home));
    let worktrees = plexus::sessions::Worktrees::new(home, folders);
    let core = || core.clone();
    Features {
        core: core(),
        agents: AgentsState { core: core(), presets: Arc::clone(&presets), find: Arc::new(Vec::new) },
        new_sessions: NewSessionsState {
            core: core(),
            presets,
            opened: OpenedSessions::default(),
            worktrees: worktrees.clone(),
        },
        worktrees: WorktreesState { core: core(), worktrees },
        terminals: TerminalsState { core: core(), folder: home.join("terminals") },
        listeners,
        doctor: DoctorState { core: core(), doctor: Doctor::default(), awake: KeepAwake::new(false) },
        linking: LinkingState { core: core(), linking: Linking::default() },
        health: HealthState { core: core(), proof: plexus::auth::Proof::new().unwrap() },
        descriptions: Descriptions::new("0.0.0", plexus::openapi),
        notify: NotifyState { core: core(), notifier },
        acp: AcpState { core: core(), sessions: AcpSessionRegistry::default(), connections },
        agui: AgUiState::new(core()),
    }
}

impl Front {
    pub async fn new() -> Self {
        Self::with(ListenLimits { drain: Duration::from_millis(500), ..ListenLimits::default() }, GateLimits::default())
            .await
    }

    pub async fn with(limits: ListenLimits, gate: GateLimits) -> Self {
        Self::patient(limits, gate, STALL).await
    }

    /// Starts like [`with`](Self::with); a subscriber's socket that accepts nothing for `stall` is closed.
    pub async fn patient(limits: ListenLimits, gate: GateLimits, stall: Duration) -> Self {
        Self::lasting(limits, gate, stall, Connections::default()).await
    }

    /// A router with these memory limits.
    pub async fn holding(accounts: plexus::ledger::LedgerLimits) -> Self {
        let ledger = Ledger::new(accounts);
        let limits =
            ListenLimits { drain: Duration::from_millis(500), stall: STALL, ..ListenLimits::with_ledger(&ledger) };
        Self::all(limits, GateLimits::default(), STALL, Connections::default(), ledger).await
    }

    /// Starts like [`patient`](Self::patient), with these connections of ACP.
    pub async fn lasting(limits: ListenLimits, gate: GateLimits, stall: Duration, connections: Connections) -> Self {
        Self::all(limits, gate, stall, connections, Ledger::default()).await
    }

    async fn all(
        limits: ListenLimits,
        gate: GateLimits,
        stall: Duration,
        connections: Connections,
        ledger: Ledger,
    ) -> Self {
        let home = tempfile::tempdir().unwrap();
        for name in [public_address::CA_CERT, public_address::CA_PROFILE] {
            std::fs::write(home.path().join(name), "public").unwrap();
        }
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new().unwrap());
        let log = Log::open(store).unwrap();
        let auth = Auth::open(home.path(), &[], persist(log.clone())).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hosts = Arc::new(Hosts::new(&[address], &[]));
        let public_addresses = Arc::new(PublicAddresses::new(Some(home.path().into())));
        let listeners = no_listeners(home.path(), &hosts, &public_addresses);
        let notifier =
            Notifier::open(home.path(), &log, NotifySettings::default(), Arc::clone(&public_addresses)).unwrap();
        let directory = Directory::open(log, Arc::new(Fake), SessionRules::default()).await.unwrap();
        let (stop, stopped) = watch::channel(false);
        let fans = Fans::for_directory(&directory, stall);
        let core = Core {
            directory,
            fans,
            auth,
            ledger,
            presence: plexus::router::presence::Presence::default(),
            hosts,
            public_addresses,
            url: format!("http://{address}").into(),
            started_at: Timestamp::default(),
            version: "0.0.0",
            stop: stopped.clone(),
            limits: gate,
            long_work: plexus::router::LongWork::default(),
        };
        let features = features(&core, home.path(), listeners, notifier, connections);
        let acp = features.acp.clone();
        core.directory.set_ledger(&core.ledger);
        let served = tokio::spawn(serve(vec![listener], app(features), limits, stopped));
        let admin = read_token(home.path()).unwrap();
        Self { address, core, acp, admin, stop, served, _home: home }
    }

    /// Sends bytes on a new connection; returns everything until the router closes it. Errors in sending are ignored.
    pub async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let _ = stream.write_all(bytes).await;
        let mut all = Vec::new();
        let read = tokio::time::timeout(LONG, stream.read_to_end(&mut all)).await;
        assert!(read.is_ok(), "the connection stays open: {}", String::from_utf8_lossy(&all));
        String::from_utf8_lossy(&all).into_owned()
    }

    /// A request with `Connection: close`.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text += &format!("host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            text += &format!("content-length: {}\r\n", body.len());
        }
        let reply = self.raw(format!("{text}\r\n{body}").as_bytes()).await;
        parse(&reply)
    }

    /// A JSON request with a token.
    pub async fn call(&self, token: &str, method: &str, path: &str, body: Value) -> Reply {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![("authorization", bearer.as_str())];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        if !body.is_empty() {
            headers.push(("content-type", "application/json"));
        }
        self.send(method, path, &headers, &body).await
    }

    /// Calls like [`call`](Self::call), as the administrator.
    pub async fn admin(&self, method: &str, path: &str, body: Value) -> Reply {
        self.call(&self.admin, method, path, body).await
    }

    /// A token with these scopes.
    pub async fn token(&self, grant: Value) -> String {
        let mut grant = grant;
        grant["name"] = json!("test");
        let reply = self.admin("POST", "/v1/devices", grant).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["token"].as_str().unwrap().to_owned()
    }

    /// A runtime and a session in it.
    pub async fn session(&self, runtime: &str) -> String {
        let reply = self.admin("POST", "/v1/runtimes", json!({ "preset": "fake", "id": runtime })).await;
        assert!(reply.status == 201 || reply.code() == "runtime_exists", "{reply:?}");
        let reply = self.admin("POST", "/v1/sessions", json!({ "runtime_id": runtime })).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["session_id"].as_str().unwrap().to_owned()
    }

    /// Waits until a session has an open request.
    pub async fn open_request(&self, session: &str) -> Value {
        let path = format!("/v1/requests?state=open&session={session}");
        let wait = async {
            loop {
                if let Some(request) = self.admin("GET", &path, Value::Null).await.json()["requests"].get(0) {
                    return request.clone();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, wait).await.expect("no request was opened")
    }
}

fn spec(id: &str) -> RuntimeSpec {
    RuntimeSpec::new(id.parse().unwrap(), "acp", plexus_protocol::Connect::Command(vec!["fake".into()]), "/")
}

/// Parses a response.
pub fn parse(text: &str) -> Reply {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Reply { status, head: head.to_ascii_lowercase(), body: body.into() }
}
