//! Runtimes with real processes and a made-up dialect, one word and its arguments a line. One file: all tests use the same
//! fixture.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use plexus::ledger::{Class, Ledger, LedgerLimits};
use plexus::runtimes::{RuntimeSettings, Runtimes};
use plexus::sessions::{Launcher as _, RuntimeExit, RuntimeLink, RuntimeMessage, RuntimeOrder, SessionSender};
use plexus_dialects::{
    AgentRequest, Dialect, EventDraft, MakeDialect, OpenedAs, Outbox, RequestKey, RunEnd, RuntimeCommand, RuntimeError,
    RuntimeEvent, SessionLimit,
};
use plexus_protocol::{
    Capabilities, Connect, Kind, NativeId, RequestType, RestartPolicy, RunStatus, RuntimeId, RuntimeInfo, RuntimeSpec,
    RuntimeState, Ticket,
};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};

/// Maximum waiting time; only a failing test reaches it.
const SOON: Duration = Duration::from_secs(30);

fn spec(program: &str, args: &[&str]) -> RuntimeSpec {
    let command = std::iter::once(&program).chain(args).map(|&word| word.to_owned()).collect();
    RuntimeSpec::new(RuntimeId::trusted("t"), "words", Connect::Command(command), "/")
}

fn sh(script: &str) -> RuntimeSpec {
    spec("sh", &["-c", script])
}

fn python(script: &str) -> RuntimeSpec {
    spec("python3", &["-uc", script])
}

struct Words(SessionLimit);

impl Dialect for Words {
    fn open(&mut self, out: &mut Outbox) {
        out.frames.push("hello\n".into());
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn feed(&mut self, frame: Bytes, out: &mut Outbox) {
        let text = String::from_utf8_lossy(&frame).into_owned();
        let words: Vec<&str> = text.splitn(3, ' ').collect();
        let event = |native: Option<&str>| RuntimeEvent::Event {
            native: native.map(NativeId::from),
            draft: EventDraft { native: Some(frame.clone()), ..EventDraft::new(Kind::AgentMessageChunk, &"") },
        };
        out.events.push(match words[..] {
            ["ready"] => RuntimeEvent::Ready { agent: Some("words 1".into()) },
            ["failed"] => RuntimeEvent::Failed { message: "sign in first".into() },
            ["panic"] => panic!("words"),
            ["wake", ms] => {
                out.wake_after = ms.parse().ok().map(Duration::from_millis);
                return;
            }
            ["opened", ticket, native] => RuntimeEvent::Opened {
                ticket: Ticket(ticket.parse().unwrap()),
                native: native.into(),
                drafts: Vec::new(),
                how: OpenedAs::New,
            },
            ["ended", ticket] => RuntimeEvent::Ended {
                native: "?".into(),
                ticket: Ticket(ticket.parse().unwrap()),
                end: RunEnd { status: RunStatus::Completed, stop_reason: None, message: None, native: None },
            },
            ["ask", native, key] => RuntimeEvent::Asked { native: Some(native.into()), ask: Box::new(ask(key)) },
            ["for", native, _] => event(Some(native)),
            _ => event(None),
        });
    }

    fn command(&mut self, command: RuntimeCommand, out: &mut Outbox) {
        let frame = match command {
            RuntimeCommand::Open { ticket, .. } => format!("open {}\n", ticket.0),
            RuntimeCommand::Prompt { ticket, .. } => format!("prompt {}\n", ticket.0),
            RuntimeCommand::Cancel { ticket, .. } => format!("cancel {}\n", ticket.map_or(0, |ticket| ticket.0)),
            RuntimeCommand::Answer { key, decision } => format!("answer {} {decision:?}\n", key.id()),
            RuntimeCommand::Call { ticket, method, .. } => format!("call {} {method}\n", ticket.0),
        };
        out.frames.push(frame.into());
    }

    fn wake(&mut self, out: &mut Outbox) {
        out.frames.push("woken\n".into());
    }

    fn sessions(&self) -> SessionLimit {
        self.0
    }
}

fn ask(key: &str) -> AgentRequest {
    AgentRequest::new(
        RequestKey::unique(key),
        RequestType::Confirm,
        String::new(),
        serde_json::value::RawValue::from_string("{}".into()).unwrap(),
        Bytes::new(),
    )
}

struct Fixture {
    runtimes: Runtimes,
    _dir: TempDir,
}

/// Runtimes with short timeouts.
fn fixture(change: impl FnOnce(&mut RuntimeSettings)) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = RuntimeSettings::new(env!("CARGO_BIN_EXE_plexus").into(), dir.path().join("holders"));
    settings.stop_stdin = Duration::from_millis(300);
    settings.stop_term = Duration::from_millis(300);
    settings.linger = Duration::from_millis(300);
    settings.pause_min = Duration::from_millis(10);
    settings.pause_max = Duration::from_millis(40);
    change(&mut settings);
    let make = |name: &str| -> Option<MakeDialect> {
        match name {
            "words" => Some(|_| Box::new(Words(SessionLimit::Many))),
            "word" => Some(|_| Box::new(Words(SessionLimit::One))),
            _ => None,
        }
    };
    Fixture { runtimes: Runtimes::with_dialects(settings, make), _dir: dir }
}

struct Session {
    sender: SessionSender,
    heard: mpsc::Receiver<RuntimeMessage>,
}

impl Session {
    fn open(link: &RuntimeLink, ticket: u64) -> Self {
        let (sender, heard) = SessionSender::new();
        let this = Self { sender, heard };
        this.order(
            link,
            RuntimeCommand::Open { ticket: Ticket(ticket), cwd: "/".into(), resume: None, mcp_servers: Vec::new() },
            0,
        );
        this
    }

    fn order(&self, link: &RuntimeLink, command: RuntimeCommand, generation: u64) {
        link.order(RuntimeOrder { command, sender: self.sender.clone(), generation, answered_at: None }).unwrap();
    }

    fn call(&self, link: &RuntimeLink, method: &str) {
        let command = RuntimeCommand::Call {
            ticket: Ticket(99),
            native: None,
            method: method.into(),
            params: None,
            notify: true,
        };
        self.order(link, command, link.info().generation);
    }

    async fn batch(&mut self) -> RuntimeMessage {
        tokio::time::timeout(SOON, self.heard.recv()).await.unwrap().unwrap()
    }

    /// All lines up to the end of the runtime, and the end.
    async fn all(&mut self) -> (Vec<String>, RuntimeExit) {
        let mut all = Vec::new();
        loop {
            match self.batch().await {
                RuntimeMessage::Events(said, _) => all.extend(said.iter().map(word)),
                RuntimeMessage::Exited(exit) => return (all, exit),
                RuntimeMessage::Found { .. } => {}
            }
        }
    }

    /// The first line that `is` accepts, as it reads it.
    async fn until_some<T>(&mut self, is: impl Fn(&str) -> Option<T>) -> T {
        loop {
            match self.batch().await {
                RuntimeMessage::Events(said, _) => {
                    if let Some(found) = said.iter().map(word).find_map(|line| is(&line)) {
                        return found;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// All lines up to a line.
    async fn until(&mut self, line: &str) -> Vec<String> {
        let mut all = Vec::new();
        while !all.iter().any(|heard| heard == line) {
            match self.batch().await {
                RuntimeMessage::Events(said, _) => all.extend(said.iter().map(word)),
                other => panic!("{other:?} after {all:?}"),
            }
        }
        all
    }
}

fn word(said: &RuntimeEvent) -> String {
    match said {
        RuntimeEvent::Opened { native, .. } => format!("<opened {native}>"),
        RuntimeEvent::NotOpened { error: RuntimeError { message, .. }, .. } => format!("<not opened: {message}>"),
        RuntimeEvent::Ended { ticket, .. } => format!("<ended {}>", ticket.0),
        RuntimeEvent::Asked { ask, .. } => format!("<asked {}>", ask.key.id()),
        RuntimeEvent::Event { draft, .. } if draft.kind == Kind::Raw => {
            let body: serde_json::Value = serde_json::from_slice(&draft.body).unwrap();
            format!("<raw {}>", body["reason"].as_str().unwrap())
        }
        RuntimeEvent::Event { draft, .. } if draft.kind == Kind::Error => {
            let body: serde_json::Value = serde_json::from_slice(&draft.body).unwrap();
            format!("<error {}>", body["code"].as_str().unwrap())
        }
        RuntimeEvent::Event { draft, .. } => String::from_utf8_lossy(draft.native.as_ref().unwrap()).into_owned(),
        other => format!("{other:?}"),
    }
}

async fn state(link: &RuntimeLink, want: RuntimeState) -> Arc<RuntimeInfo> {
    known(link, |info| info.state == want).await
}

async fn known(link: &RuntimeLink, want: impl Fn(&RuntimeInfo) -> bool) -> Arc<RuntimeInfo> {
    let mut info: watch::Receiver<Arc<RuntimeInfo>> = link.watch();
    let found = tokio::time::timeout(SOON, info.wait_for(|info| want(info))).await;
    Arc::clone(&found.unwrap_or_else(|_| panic!("still {:?}", link.info())).unwrap())
}

async fn ended(link: &RuntimeLink) {
    let mut info = link.watch();
    tokio::time::timeout(SOON, async { while info.changed().await.is_ok() {} }).await.unwrap();
}

/// Returns whether a process is alive; a zombie is not.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

async fn dies(pid: u32) {
    let gone = async {
        while lives(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, gone).await.unwrap();
}

const HELLO: &str = "read hello; echo ready; read open; echo opened 1 A; ";

fn hello(rest: &str) -> String {
    format!("{HELLO}{rest}")
}

#[tokio::test]
async fn runtime_is_greeted_opened_prompted_and_read_in_order() {
    let fixture = fixture(|_| {});
    let script = hello("read prompt; echo \"$prompt\"; printf 'x\\ny\\nended 7\\n'; echo oops >&2; exit 3");
    let link = fixture.runtimes.launch(sh(&script)).unwrap();
    let mut session = Session::open(&link, 1);
    session.until("<opened A>").await;
    let info = state(&link, RuntimeState::Ready).await;
    assert_eq!(info.agent.as_deref(), Some("words 1"));
    assert!(info.pid.is_some());
    let prompt = RuntimeCommand::Prompt { ticket: Ticket(7), native: "A".into(), content: Vec::new() };
    session.order(&link, prompt, info.generation);
    let (heard, exit) = session.all().await;
    assert_eq!(heard, ["prompt 7", "x", "y", "<ended 7>"]);
    let expected = RuntimeExit { code: Some(3), stderr_tail: "oops\n".into(), ..RuntimeExit::default() };
    assert_eq!(exit, expected);
    ended(&link).await;
    let info = link.info();
    assert_eq!((info.state, info.pid), (RuntimeState::Exited, None));
    assert_eq!(info.problem.as_deref(), Some("exited with code 3"));
    assert_eq!(info.stderr_tail, "oops\n");
}

#[tokio::test]
async fn signal_that_killed_the_runtime_is_named() {
    let fixture = fixture(|_| {});
    let link = fixture.runtimes.launch(sh(&hello("kill -SEGV $$"))).unwrap();
    let (_, exit) = Session::open(&link, 1).all().await;
    assert_eq!((exit.code, exit.signal.as_deref(), exit.stopped), (None, Some("SIGSEGV"), false));
}

#[tokio::test]
async fn lines_of_one_read_come_as_one_batch_and_a_split_line_comes_whole() {
    let fixture = fixture(|_| {});
    let script = "import sys,time\n\
        r=sys.stdin.readline; w=sys.stdout.write\n\
        r(); w('ready\\n'); r(); w('opened 1 A\\n')\n\
        r(); w('a\\nb\\nc\\nd \\xe9'); sys.stdout.flush(); r(); w(' e\\nf\\n')";
    let link = fixture.runtimes.launch(python(script)).unwrap();
    let mut session = Session::open(&link, 1);
    session.until("<opened A>").await;
    session.call(&link, "go");
    let RuntimeMessage::Events(first, _) = session.batch().await else { panic!() };
    assert_eq!(first.iter().map(word).collect::<Vec<_>>(), ["a", "b", "c"]);
    session.call(&link, "on");
    assert_eq!(session.until("f").await, ["d \u{e9} e", "f"]);
}

#[tokio::test]
async fn huge_line_is_cut_and_the_stream_goes_on() {
    let fixture = fixture(|settings| settings.line_max = 4 * 1024 * 1024);
    let script = hello("head -c 104857600 /dev/zero | tr '\\0' x; echo; echo after");
    let link = fixture.runtimes.launch(sh(&script)).unwrap();
    let mut session = Session::open(&link, 1);
    let mut kept = None;
    let exit = loop {
        match session.batch().await {
            RuntimeMessage::Events(said, _) => {
                for said in &said {
                    if let RuntimeEvent::Event { draft, .. } = said
                        && draft.kind == Kind::Raw
                    {
                        kept = draft.native.as_ref().map(Bytes::len);
                        let dropped = 100 * 1024 * 1024 - 1024 * 1024;
                        assert_eq!(
                            word(said),
                            format!("<raw line over the limit of 4194304 bytes; {dropped} bytes dropped>")
                        );
                    } else if kept.is_some() {
                        assert_eq!(word(said), "after");
                    }
                }
            }
            RuntimeMessage::Exited(exit) => break exit,
            RuntimeMessage::Found { .. } => {}
        }
    };
    assert_eq!((kept, exit.code), (Some(1024 * 1024), Some(0)));
}

#[tokio::test]
async fn long_lines_of_many_agents_wait_for_room_without_a_deadlock() {
    const LONG: usize = 3_000_000;
    let ledger = Ledger::new(LedgerLimits { agents: 2 << 20, runtime: 2 << 20, ..LedgerLimits::default() });
    let fixture = fixture(|settings| settings.ledger = ledger.clone());
    let script = hello(&format!("head -c {LONG} /dev/zero | tr '\\0' x; echo; echo after"));
    let links = ["one", "two", "three"].map(|id| {
        let spec = RuntimeSpec { id: RuntimeId::trusted(id), ..sh(&script) };
        fixture.runtimes.launch(spec).unwrap()
    });
    let sessions: Vec<Session> = links.iter().map(|link| Session::open(link, 1)).collect();
    for mut session in sessions {
        let (heard, exit) = session.all().await;
        let lengths: Vec<usize> = heard.iter().map(String::len).collect();
        assert_eq!((lengths, exit.code), (vec!["<opened A>".len(), LONG, "after".len()], Some(0)));
    }
    let agents = || ledger.sums()[Class::Agents as usize].used;
    let given_back = async {
        while agents() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, given_back).await.expect("what they said is still charged");
    assert!(ledger.sums()[Class::Agents as usize].refusals + ledger.sums()[Class::Runtime as usize].refusals > 0);
}

#[tokio::test]
async fn agent_that_stops_in_a_long_line_takes_nothing_from_others() {
    const LONG: usize = 3_000_000;
    let limits = LedgerLimits {
        gateway: 2 << 20,
        clients: 1 << 20,
        agents: 2 << 20,
        runtime: 2 << 20,
        ..LedgerLimits::default()
    };
    let ledger = Ledger::new(limits);
    let fixture = fixture(|settings| settings.ledger = ledger.clone());
    let launch = |id, script: String| {
        let spec = RuntimeSpec { id: RuntimeId::trusted(id), ..sh(&hello(&script)) };
        fixture.runtimes.launch(spec).unwrap()
    };
    let stops = launch("stops", format!("head -c {LONG} /dev/zero | tr '\\0' x; cat > /dev/null"));
    let _stopped = Session::open(&stops, 1);
    let stopped = async {
        while ledger.sums()[Class::Exempt as usize].used < LONG {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, stopped).await.expect("the line is not read");
    let (heard, exit) = Session::open(&launch("talks", "echo said".to_owned()), 1).all().await;
    assert_eq!((heard.last().map(String::as_str), exit.code), (Some("said"), Some(0)));
    ledger.connection("phone").charge(900 << 10).expect("clients have their room");
}

#[tokio::test]
async fn death_in_the_middle_of_a_line_is_reported() {
    let fixture = fixture(|_| {});
    let link = fixture.runtimes.launch(sh(&hello("printf 'whole\\nhal'; kill -9 $$"))).unwrap();
    let (heard, exit) = Session::open(&link, 1).all().await;
    assert_eq!(heard, ["<opened A>", "whole", "<raw the runtime's output ended in the middle of a line>"]);
    assert_eq!(exit.signal.as_deref(), Some("SIGKILL"));
}

#[tokio::test]
async fn runtime_sees_its_environment_and_pipes_and_nothing_else() {
    let fixture = fixture(|settings| {
        let own = [("PATH", std::env::var("PATH").unwrap()), ("LD_PRELOAD", String::new()), ("KEY", "k".into())];
        let own = own.into_iter().chain([("PLEXUS_TOKEN", "t".into()), ("LC_ALL", "C".into())]);
        settings.env = Arc::new(own.map(|(name, value)| (name.into(), value.into())).collect());
    });
    let script = "import os,sys\n\
        sys.stdin.readline(); print('ready'); sys.stdin.readline(); print('opened 1 A')\n\
        # A shell, or a wrapper around python, adds some of its own.\n\
        print(*sorted(k for k in os.environ if k not in ('PWD','OLDPWD','SHLVL','_') and 'PYENV' not in k))\n\
        print(os.getcwd(), os.environ['SET'], os.getsid(0) != os.getppid() or os.getpgrp() == os.getppid())\n\
        for fd in os.listdir('/proc/self/fd'):\n  \
          try: print('fd', os.readlink('/proc/self/fd/' + fd))\n  \
          except OSError: pass";
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("open-in-the-gateway");
    let _open = std::fs::File::create(&secret).unwrap();
    let mut spec = python(script);
    spec.cwd = dir.path().canonicalize().unwrap();
    spec.pass_env = vec!["KEY".into()];
    spec.env = BTreeMap::from([("SET".into(), "1".into())]);
    let link = fixture.runtimes.launch(spec).unwrap();
    let (heard, _) = Session::open(&link, 1).all().await;
    assert_eq!(heard[1], "KEY LC_ALL PATH SET");
    assert_eq!(heard[2], format!("{} 1 True", dir.path().canonicalize().unwrap().display()));
    assert!(heard[3..].len() >= 3, "{heard:?}");
    assert!(!heard.iter().any(|line| line.contains("open-in-the-gateway")), "{heard:?}");
}

#[tokio::test]
async fn runtime_that_ends_with_its_stdin_is_not_signalled() {
    let fixture = fixture(|settings| settings.stop_stdin = SOON);
    let link = fixture.runtimes.launch(sh(&hello("cat >/dev/null; echo bye; exit 4"))).unwrap();
    let mut session = Session::open(&link, 1);
    session.until("<opened A>").await;
    link.stop();
    let (heard, exit) = session.all().await;
    assert_eq!(heard, ["bye"]);
    assert_eq!((exit.code, exit.stopped, exit.reason.as_deref()), (Some(4), true, Some("it was stopped")));
}

#[tokio::test]
async fn runtime_that_ignores_stdin_end_gets_term_and_then_kill() {
    for (trap, signal) in [("", "SIGTERM"), ("trap '' TERM; ", "SIGKILL")] {
        let fixture = fixture(|_| {});
        let link =
            fixture.runtimes.launch(sh(&hello(&format!("{trap}echo set; while :; do sleep 0.05; done")))).unwrap();
        let mut session = Session::open(&link, 1);
        session.until("set").await;
        let pid = link.info().pid.unwrap();
        link.stop();
        let (_, exit) = session.all().await;
        assert_eq!((exit.signal.as_deref(), exit.stopped), (Some(signal), true));
        assert!(!lives(pid));
    }
}

#[tokio::test]
async fn kill_takes_the_process_group() {
    let fixture = fixture(|_| {});
    let script = hello("trap '' TERM; sleep 1000 & echo $!; while :; do sleep 0.05; done");
    let link = fixture.runtimes.launch(sh(&script)).unwrap();
    let mut session = Session::open(&link, 1);
    let child = session.until_some(|line| line.parse().ok()).await;
    assert!(lives(child));
    link.stop();
    session.all().await;
    dies(child).await;
}

#[tokio::test]
async fn stop_reaches_a_runtime_whose_session_reads_nothing() {
    let fixture = fixture(|_| {});
    let link = fixture.runtimes.launch(sh(&hello("trap '' TERM; while :; do echo flood; done"))).unwrap();
    let session = Session::open(&link, 1);
    let info = state(&link, RuntimeState::Ready).await;
    link.stop();
    state(&link, RuntimeState::Exited).await;
    assert!(!lives(info.pid.unwrap()));
    drop(session);
    ended(&link).await;
}

#[tokio::test]
async fn session_that_does_not_read_slows_the_runtime_and_loses_nothing() {
    // The holder has little room besides the longest line, which is short.
    let fixture = fixture(|settings| (settings.line_max, settings.spool_more) = (64 * 1024, 1024 * 1024));
    // It says when nobody took what it wrote for a while, and goes on once somebody does.
    let script = "import os,sys,select\n\
        sys.stdin.readline(); print('ready'); sys.stdin.readline(); print('opened 1 A')\n\
        said=False; pad=b'x'*1000\n\
        for n in range(20000):\n  \
          if not said and not select.select([],[1],[],2)[1]:\n    \
            said=True; print('held at', n, '.', file=open('held','w'))\n  \
          line=b'%d %s\\n' % (n,pad)\n  \
          while line: line=line[os.write(1,line):]\n\
        if not said: print('never held . .', file=open('held','w'))";
    let dir = tempfile::tempdir().unwrap();
    let link = fixture.runtimes.launch(RuntimeSpec { cwd: dir.path().into(), ..python(script) }).unwrap();
    let mut session = Session::open(&link, 1);
    let tail = async {
        loop {
            match std::fs::read_to_string(dir.path().join("held")) {
                Ok(said) if said.ends_with('\n') => break said,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let tail = tokio::time::timeout(SOON, tail).await.unwrap();
    let held: u64 = tail.split(' ').nth(2).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{tail}"));
    // The buffers: a mailbox of 64 reads of 64 KiB, those of the driver and the holder, the sockets and pipes between.
    assert!(held < 66 * 64 + 1024 + 1088 + 1024, "it wrote {held} lines of 1 KB to a session that read nothing");
    let (heard, _) = session.all().await;
    let numbers: Vec<usize> = heard.iter().filter_map(|line| line.split(' ').next()?.parse().ok()).collect();
    assert_eq!(numbers, (0..20000).collect::<Vec<_>>());
    assert!(heard.iter().any(|line| line == "<error held_back>"), "people are told why it stood still");
}

fn noted(method: &str) -> RuntimeCommand {
    RuntimeCommand::Call { ticket: Ticket(9), native: None, method: method.into(), params: None, notify: true }
}

async fn give(link: &RuntimeLink, sender: &SessionSender, command: RuntimeCommand) {
    let order = RuntimeOrder { command, sender: sender.clone(), generation: link.info().generation, answered_at: None };
    link.reserve().await.unwrap().send(order);
}

#[tokio::test]
async fn runtime_that_never_reads_stdin_is_stopped_with_the_reason() {
    let fixture = fixture(|settings| {
        settings.write_max = 100_000;
        settings.stuck = Duration::from_millis(300);
    });
    let link = fixture.runtimes.launch(sh(&hello("exec sleep 1000"))).unwrap();
    let mut session = Session::open(&link, 1);
    session.until("<opened A>").await;
    let (sender, to) = (session.sender.clone(), link.clone());
    let flood = tokio::spawn(async move {
        let method = "x".repeat(1000);
        for _ in 0..1000 {
            give(&to, &sender, noted(&method)).await;
        }
    });
    let (_, exit) = session.all().await;
    let why = "it is stuck: it has not read its stdin for 300ms";
    assert_eq!((exit.reason.as_deref(), exit.stopped), (Some(why), false));
    flood.abort();
}

#[tokio::test]
async fn commands_wait_in_order_for_a_slow_reader() {
    let fixture = fixture(|settings| settings.write_max = 5_000);
    // The session reads nothing at first, and then slowly.
    let script = "import sys,time\nr=sys.stdin.readline\nr(); print('ready'); r(); print('opened 1 A', flush=True)\n\
        time.sleep(1)\nn=0\nfor line in sys.stdin:\n print('for A '+line.split()[2], flush=True)\n n+=1\n n%100 or time.sleep(.01)";
    let link = fixture.runtimes.launch(python(script)).unwrap();
    let mut session = Session::open(&link, 1);
    session.until("<opened A>").await;
    let (sender, to) = (session.sender.clone(), link.clone());
    let flood = tokio::spawn(async move {
        for n in 0..3000 {
            give(&to, &sender, noted(&n.to_string())).await;
        }
    });
    let heard = session.until("for A 2999").await;
    let numbers: Vec<usize> = heard.iter().filter_map(|line| line.strip_prefix("for A ")?.parse().ok()).collect();
    assert_eq!(numbers, (0..3000).collect::<Vec<_>>());
    flood.await.unwrap();
    assert_eq!(link.info().state, RuntimeState::Ready);
}

/// The socket of the only holder.
fn socket_in(fixture: &Fixture) -> std::path::PathBuf {
    let found = plexus_holder::client::find_holders(&fixture._dir.path().join("holders"));
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].path.clone()
}

#[tokio::test]
async fn holder_that_hangs_up_is_reconnected_without_loss_or_repeat() {
    use std::io::{Read, Write};
    let fixture = fixture(|_| ());
    let echo = "for line in sys.stdin:\n print('for A '+line.split()[2], flush=True)";
    let script =
        format!("import sys\nr=sys.stdin.readline\nr(); print('ready'); r(); print('opened 1 A', flush=True)\n{echo}");
    let link = fixture.runtimes.launch(python(&script)).unwrap();
    let mut session = Session::open(&link, 1);
    session.until("<opened A>").await;
    let (pid, instance) = (link.info().pid, link.info().instance.clone());
    assert!(instance.as_deref().is_some_and(|instance| instance.starts_with("i_")));
    let (sender, to) = (session.sender.clone(), link.clone());
    let flood = tokio::spawn(async move {
        for n in 0..2000 {
            give(&to, &sender, noted(&n.to_string())).await;
            if n % 50 == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    let socket = socket_in(&fixture);
    for _ in 0..10 {
        // Another gateway takes over and disconnects: the holder hangs up on the driver.
        let socket = socket.clone();
        let thief = tokio::task::spawn_blocking(move || {
            let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
            let hello = plexus_holder::wire::ToHolder::Hello { version: 1, newest: 2 };
            stream.write_all(&hello.to_bytes()).unwrap();
            let _ = stream.read(&mut [0; 64]).unwrap();
        });
        thief.await.unwrap();
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    let heard = session.until("for A 1999").await;
    let numbers: Vec<usize> = heard.iter().filter_map(|line| line.strip_prefix("for A ")?.parse().ok()).collect();
    assert_eq!(numbers, (0..2000).collect::<Vec<_>>());
    flood.await.unwrap();
    let info = known(&link, |info| info.problem.is_none()).await;
    assert_eq!((info.state, info.pid, &info.instance), (RuntimeState::Ready, pid, &instance));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn stop_ends_the_runtime_of_a_holder_that_hangs() {
    let fixture = fixture(|settings| settings.stop_kill = Duration::from_millis(300));
    let link = fixture.runtimes.launch(sh(&hello("exec sleep 1000"))).unwrap();
    let mut session = Session::open(&link, 1);
    session.until("<opened A>").await;
    let pid = link.info().pid.unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let holder: i32 = stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let holder = rustix::process::Pid::from_raw(holder).unwrap();
    rustix::process::kill_process(holder, rustix::process::Signal::STOP).unwrap();
    link.stop();
    let (_, exit) = session.all().await;
    assert!(exit.stopped);
    dies(pid).await;
    ended(&link).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn runtime_whose_holder_was_killed_is_ended() {
    let fixture = fixture(|_| ());
    // The runtime ignores SIGTERM and the end of its pipes.
    let link = fixture.runtimes.launch(sh(&hello("trap '' TERM; while :; do sleep 1; done"))).unwrap();
    let mut session = Session::open(&link, 1);
    session.until("<opened A>").await;
    let pid = link.info().pid.unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let holder: i32 = stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let holder = rustix::process::Pid::from_raw(holder).unwrap();
    rustix::process::kill_process(holder, rustix::process::Signal::KILL).unwrap();
    let (_, exit) = session.all().await;
    assert!(exit.reason.as_deref().is_some_and(|why| why.starts_with("its holder is gone")), "{exit:?}");
    dies(pid).await;
}

#[tokio::test]
async fn runtime_that_closes_a_pipe_and_lives_on_is_stopped() {
    for (script, why) in [("exec >&-", "it closed its stdout"), ("exec <&-", "it closed its stdin")] {
        let fixture = fixture(|_| {});
        let link = fixture.runtimes.launch(sh(&hello(&format!("{script}; echo shut >&2; exec sleep 1000")))).unwrap();
        let mut session = Session::open(&link, 1);
        session.until("<opened A>").await;
        known(&link, |info| info.stderr_tail.contains("shut") || info.problem.is_some()).await;
        session.call(&link, "anybody there");
        let (_, exit) = session.all().await;
        assert_eq!(exit.reason.as_deref(), Some(why));
    }
}

#[tokio::test]
async fn grandchild_with_the_pipe_ends_with_its_runtime() {
    let fixture = fixture(|_| {});
    // In a process group of its own: it is found only by its parent.
    let script = hello("setsid sh -c 'echo $$; exec sleep 1000' & read never; sleep 0.2; echo last; exit 5");
    let link = fixture.runtimes.launch(sh(&script)).unwrap();
    let mut session = Session::open(&link, 1);
    session.until("<opened A>").await;
    session.call(&link, "end");
    let (heard, exit) = session.all().await;
    let pid: u32 = heard[0].parse().unwrap();
    assert_eq!((heard[1].as_str(), exit.code), ("last", Some(5)));
    dies(pid).await;
    ended(&link).await;
}

#[tokio::test]
async fn restart_backs_off_and_is_then_given_up() {
    let fixture = fixture(|_| {});
    let dir = tempfile::tempdir().unwrap();
    let mut spec = sh("echo start >>starts; echo dead >&2; exit 1");
    spec.cwd = dir.path().into();
    spec.restart = RestartPolicy::OnFailure;
    let link = fixture.runtimes.launch(spec).unwrap();
    ended(&link).await;
    let info = link.info();
    assert_eq!(std::fs::read_to_string(dir.path().join("starts")).unwrap().lines().count(), 5);
    assert_eq!((info.state, info.generation), (RuntimeState::Exited, 5));
    let problem = info.problem.as_deref().unwrap();
    assert_eq!(problem, "exited with code 1; not restarted after 5 early exits in a row");
}

#[tokio::test]
async fn restart_count_ignores_healthy_lives_and_exit_code_0() {
    let fixture = fixture(|settings| (settings.healthy, settings.give_up) = (Duration::ZERO, 2));
    let dir = tempfile::tempdir().unwrap();
    let mut spec = sh("read hello; echo ready; echo x >>starts; [ $(wc -l <starts) -lt 6 ]");
    spec.cwd = dir.path().into();
    spec.restart = RestartPolicy::Always;
    let link = fixture.runtimes.launch(spec.clone()).unwrap();
    known(&link, |info| info.generation > 6).await;
    link.stop();
    ended(&link).await;
    spec.restart = RestartPolicy::OnFailure;
    let link = fixture.runtimes.launch(RuntimeSpec { connect: sh("exit 0").connect, ..spec }).unwrap();
    ended(&link).await;
    assert_eq!(link.info().generation, 1);
}

#[tokio::test]
async fn restart_is_a_new_generation_that_old_commands_do_not_reach() {
    let fixture = fixture(|settings| settings.give_up = 100);
    let dir = tempfile::tempdir().unwrap();
    // The first start dies when told to; the second repeats all input.
    let script = "read hello; echo ready; read open; echo opened ${open#open } A; [ -e second ] && exec cat; \
        touch second; read go; exit 9";
    let mut spec = sh(script);
    spec.cwd = dir.path().into();
    spec.restart = RestartPolicy::Always;
    let link = fixture.runtimes.launch(spec).unwrap();
    let mut old = Session::open(&link, 1);
    old.until("<opened A>").await;
    old.call(&link, "go");
    let (_, exit) = old.all().await;
    assert_eq!((exit.code, exit.stopped), (Some(9), false));
    // Opened between two starts: it waits for the next one.
    let mut new = Session::open(&link, 2);
    new.until("<opened A>").await;
    assert_eq!(link.info().generation, 2);
    let stale = RuntimeCommand::Cancel { ticket: Some(Ticket(5)), native: "A".into(), reason: None };
    old.order(&link, stale, 1);
    new.call(&link, "end");
    assert_eq!(new.until("call 99 end").await, ["call 99 end"]);
    assert!(old.heard.try_recv().is_err());
    fixture.runtimes.shutdown().await;
    assert!(new.all().await.1.stopped);
}

#[tokio::test]
async fn missing_program_or_folder_is_reported_and_not_retried() {
    let fixture = fixture(|_| {});
    let mut missing = spec("no-such-program", &[]);
    missing.restart = RestartPolicy::Always;
    let mut nowhere = sh("true");
    nowhere.cwd = "/no/such".into();
    for (spec, why) in [
        (missing, "cannot start: `no-such-program` is not on PATH"),
        (nowhere, "cannot start: the folder /no/such does not exist"),
    ] {
        let link = fixture.runtimes.launch(spec).unwrap();
        let mut session = Session::open(&link, 1);
        assert_eq!(session.until(&format!("<not opened: {why}>")).await.len(), 1);
        ended(&link).await;
        assert_eq!((link.info().problem.as_deref(), link.info().generation), (Some(why), 1));
    }
}

#[tokio::test]
async fn opening_that_fails_reports_the_reason_to_its_waiters() {
    let fixture = fixture(|settings| settings.handshake = Duration::from_millis(300));
    let cases = [
        ("echo 'unknown option' >&2; exit 2", "exited with code 2; it wrote: unknown option"),
        ("echo 'usage: agent'; exit 2", "exited with code 2: it said: usage: agent"),
        ("read hello; echo failed; cat >/dev/null; exit 0", "exited with code 0: sign in first"),
        ("cat >/dev/null; exit 0", "exited with code 0: it did not finish its handshake within 300ms"),
        ("read hello; echo ready; read open; exit 1", "exited with code 1"),
    ];
    for (script, why) in cases {
        let link = fixture.runtimes.launch(sh(script)).unwrap();
        let mut session = Session::open(&link, 1);
        session.until(&format!("<not opened: {why}>")).await;
    }
}

#[tokio::test]
async fn program_known_to_be_a_stub_is_named_with_the_fix() {
    use std::os::unix::fs::PermissionsExt as _;
    let (fixture, dir) = (fixture(|_| {}), tempfile::tempdir().unwrap());
    let stub = dir.path().join("kimi");
    std::fs::write(&stub, "#!/bin/sh\necho 'kimi-cli is archived' >&2; exit 1\n").unwrap();
    std::fs::set_permissions(&stub, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = sh("");
    spec.connect = Connect::Command(vec![stub.display().to_string(), "acp".into()]);
    let link = fixture.runtimes.launch(spec).unwrap();
    ended(&link).await;
    let problem = link.info().problem.clone().unwrap();
    assert!(
        problem.contains("kimi-cli 1.52 and later have no ACP") && problem.contains("kimi-cli==1.51.0"),
        "{problem}"
    );
}

#[tokio::test]
async fn handshake_that_fails_is_not_retried() {
    let fixture = fixture(|_| {});
    let mut spec = sh("read hello; echo failed; cat");
    spec.restart = RestartPolicy::Always;
    let link = fixture.runtimes.launch(spec).unwrap();
    ended(&link).await;
    assert_eq!((link.info().generation, link.info().state), (1, RuntimeState::Exited));
}

#[tokio::test]
async fn dialect_of_one_session_refuses_a_second() {
    let fixture = fixture(|_| {});
    let mut spec = sh(&hello("cat"));
    spec.dialect = "word".into();
    let link = fixture.runtimes.launch(spec).unwrap();
    let (mut first, mut second) = (Session::open(&link, 1), Session::open(&link, 2));
    first.until("<opened A>").await;
    let why = "this runtime supports only one session, which is open: use it, or start another runtime";
    second.until(&format!("<not opened: {why}>")).await;
}

#[tokio::test]
async fn question_to_a_closed_session_is_withdrawn() {
    let fixture = fixture(|_| {});
    let script =
        "read hello; echo ready; read a; echo opened 1 A; read b; echo opened 2 B; read go; echo ask A k; exec cat";
    let link = fixture.runtimes.launch(sh(script)).unwrap();
    let mut closed = Session::open(&link, 1);
    closed.until("<opened A>").await;
    let mut session = Session::open(&link, 2);
    session.until("<opened B>").await;
    drop(closed);
    session.call(&link, "go");
    assert_eq!(session.until("answer k Withdrawn").await, ["answer k Withdrawn"]);
}

#[tokio::test]
async fn dialect_is_woken_and_its_failure_ends_only_the_runtime() {
    let fixture = fixture(|_| {});
    let link =
        fixture.runtimes.launch(sh(&hello("echo wake 20; read woken; echo $woken; echo panic; echo after; cat")));
    let link = link.unwrap();
    let (heard, exit) = Session::open(&link, 1).all().await;
    assert_eq!(heard, ["<opened A>", "woken", "<raw the gateway failed on an earlier message>"]);
    assert_eq!(
        exit.reason.as_deref(),
        Some("the gateway's words dialect failed on its output: this is a bug in Plexus")
    );
    ended(&link).await;
}

#[tokio::test]
async fn runtime_without_any_handle_is_stopped() {
    let fixture = fixture(|_| {});
    let link = fixture.runtimes.launch(sh(&hello("exec cat"))).unwrap();
    let mut session = Session::open(&link, 1);
    session.until("<opened A>").await;
    let pid = link.info().pid.unwrap();
    drop(link);
    let (_, exit) = session.all().await;
    assert_eq!((exit.stopped, exit.reason.as_deref()), (true, Some("no longer in use")));
    dies(pid).await;
}

#[tokio::test]
async fn shutdown_ends_all_runtimes_and_starts_none() {
    let fixture = fixture(|_| {});
    let start = |_| fixture.runtimes.launch(sh(&hello("trap '' TERM; while :; do sleep 0.05; done"))).unwrap();
    let links: Vec<RuntimeLink> = (0..4).map(start).collect();
    let mut pids = Vec::new();
    for link in &links {
        pids.extend(state(link, RuntimeState::Ready).await.pid);
    }
    fixture.runtimes.shutdown().await;
    assert!(pids.len() == 4 && !pids.iter().any(|pid| lives(*pid)));
    assert!(links.iter().all(|link| link.info().state == RuntimeState::Exited));
    assert_eq!(fixture.runtimes.launch(sh("true")).unwrap_err(), "the gateway is stopping");
}

#[tokio::test]
async fn spec_that_is_invalid_is_refused_with_the_fix() {
    let fixture = fixture(|_| {});
    let refused = |spec| fixture.runtimes.launch(spec).unwrap_err();
    let endpoint = RuntimeSpec { connect: Connect::Endpoint("ws://127.0.0.1:1/".into()), ..sh("true") };
    assert!(refused(endpoint).contains("needs the pipes of a program"));
    assert!(
        refused(RuntimeSpec { dialect: "klingon".into(), ..sh("true") })
            .contains("use one of acp, claude-terminal, codelia")
    );
    assert!(refused(RuntimeSpec { connect: Connect::Command(Vec::new()), ..sh("true") }).contains("is empty"));
    let pass = RuntimeSpec { pass_env: vec!["PLEXUS_TOKEN".into()], ..sh("true") };
    assert!(refused(pass).contains("PLEXUS_TOKEN belongs to the gateway"));
    assert!(refused(spec("sh", &["a\0b"])).contains("NUL"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn stop_ends_scattered_processes_that_ignore_it() {
    let fixture = fixture(|_| {});
    let dir = tempfile::tempdir().unwrap();
    let stubborn = "trap '' TERM; setsid sh -c 'echo $$ >>pids; while :; do sleep 0.1; done' & \
        echo $$ >>pids; while :; do sleep 0.1; done";
    let link = fixture.runtimes.launch(RuntimeSpec { cwd: dir.path().into(), ..sh(stubborn) }).unwrap();
    let pids = || std::fs::read_to_string(dir.path().join("pids")).unwrap_or_default();
    let both = async {
        // The runtime may write before its holder has reported the process.
        while pids().lines().count() < 2 || link.info().pid.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, both).await.unwrap();
    let pid = |pid: &str| lives(pid.parse().unwrap());
    assert!(pids().lines().all(pid) && lives(link.info().pid.unwrap()));
    fixture.runtimes.shutdown().await;
    assert_eq!(link.info().state, RuntimeState::Exited);
    assert_eq!(link.info().problem.as_deref(), Some("killed by SIGKILL: it was stopped"));
    // If the holder were killed too early, the process that left the group would live on.
    assert!(!pids().lines().any(pid));
}
