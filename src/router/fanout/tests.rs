//! Fan-out over real sockets and a real log. One file: every test drives the same few sockets and readers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::frames::ws_message;
use plexus_protocol::{Kind, Origin, RunId, RuntimeId, SessionId, Timestamp};
use plexus_sessions::{CommitEntry, NewEvent};
use plexus_store::{MemoryStore, SessionRow, Store as _};

const STALL: Duration = Duration::from_secs(30);

pub(crate) fn fans_with(stall: Duration) -> Fans {
    let store = MemoryStore::new().unwrap();
    let row = |session: &str| SessionRow {
        session_id: SessionId::trusted(session),
        runtime_id: RuntimeId::trusted("demo"),
        dialect: "acp".into(),
        state: b"{}".to_vec(),
        as_of: Position::START,
        spare_from: None,
    };
    let sessions = ["s_1", "s_a", "s_b", "s_c"].map(row).into();
    store.commit(&plexus_store::Batch { sessions, ..Default::default() }).unwrap();
    let log = Log::open(Arc::new(store)).unwrap();
    Fans::new(log, Arc::new(|_| None), Arc::new(|_| None), stall)
}

/// Somebody with the usual limits.
pub(crate) fn account() -> plexus_ledger::Account {
    plexus_ledger::Ledger::default().connection("d_1")
}

pub(crate) fn fans() -> Fans {
    fans_with(STALL)
}

fn key(framing: Framing) -> FanKey {
    FanKey { filter: Filter::all(), projection: Projection::Canonical, framing }
}

fn origin(session: &str) -> Arc<Origin> {
    Arc::new(Origin {
        session_id: SessionId::trusted(session),
        runtime_id: RuntimeId::trusted("demo"),
        dialect: "acp".into(),
    })
}

pub(crate) async fn append(log: &Log, session: &str, bodies: impl IntoIterator<Item = String>) {
    let events = bodies
        .into_iter()
        .map(|body| NewEvent {
            run_id: RunId::trusted("r_1"),
            seq: 0,
            at: Timestamp::from_millis(0),
            kind: Kind::AgentMessageChunk,
            body: body.into(),
            native: None,
        })
        .collect();
    log.commit(CommitEntry {
        origin: origin(session),
        events,
        rows: None,
        on_stored: None,
        received: None,
        sync: false,
    })
    .await
    .unwrap();
}

pub(crate) fn body(n: usize, size: usize) -> String {
    format!(r#"{{"n":{n},"text":"{}"}}"#, "x".repeat(size))
}

pub(crate) async fn pair(sndbuf: Option<usize>) -> (Arc<TcpStream>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    if let Some(size) = sndbuf {
        socket2::SockRef::from(&listener).set_recv_buffer_size(size).unwrap();
    }
    let client = tokio::net::TcpSocket::new_v4().unwrap();
    if let Some(size) = sndbuf {
        client.set_recv_buffer_size(size as u32).unwrap();
    }
    let client = client.connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    if let Some(size) = sndbuf {
        socket2::SockRef::from(&server).set_send_buffer_size(size).unwrap();
    }
    (Arc::new(server), client)
}

/// Does the work of a frontend's task, and nothing else. Ends when the socket breaks or nothing moves for too long.
async fn drive(conn: Arc<Conn>) -> Flow {
    loop {
        let flow = conn.flush(true);
        match flow {
            Flow::Dead => return flow,
            Flow::Done => conn.needs_attention().await,
            Flow::Cold => conn.catch_up_or_wait().await,
            Flow::Blocked => {
                tokio::select! {
                    ready = conn.socket().writable() => ready.unwrap(),
                    () = tokio::time::sleep_until(conn.stalls_at()) => return flow,
                }
            }
        }
    }
}

fn join(fans: &Fans, conn: &Arc<Conn>, key: FanKey, after: Position) {
    let fan = fans.fan(key);
    let head = fans.log().head();
    conn.subscribe(
        Subscribe { name: "*".into(), fan, answers: false, after, live_at: head.max(after), live_id: false },
        b"",
    );
}

/// A JSON-RPC message of a whole frame, or an SSE event's name and data; and what is left.
pub(crate) fn parse(framing: Framing, bytes: &[u8]) -> Option<(String, serde_json::Value, usize)> {
    match framing {
        Framing::WebSocket => {
            assert!(
                bytes.is_empty() || bytes[0] == 0x81,
                "not at a frame's beginning: {:?}",
                &bytes[..bytes.len().min(20)]
            );
            let (from, len) = match *bytes.get(1)? {
                126 => (4, u16::from_be_bytes(bytes.get(2..4)?.try_into().unwrap()) as usize),
                127 => (10, u64::from_be_bytes(bytes.get(2..10)?.try_into().unwrap()) as usize),
                len => (2, usize::from(len)),
            };
            let json: serde_json::Value = serde_json::from_slice(bytes.get(from..from + len)?).unwrap();
            Some((json["method"].as_str().unwrap().into(), json["params"].clone(), from + len))
        }
        Framing::Sse => {
            let line = bytes.windows(2).position(|two| two == b"\r\n")?;
            let len = usize::from_str_radix(std::str::from_utf8(&bytes[..line]).unwrap(), 16).unwrap();
            let chunk = bytes.get(line + 2..line + 2 + len)?;
            assert_eq!(bytes.get(line + 2 + len..line + 4 + len)?, b"\r\n");
            let (name, json, taken) = parse(Framing::SseBody, chunk)?;
            assert_eq!(taken, len, "one event is one chunk");
            Some((name, json, line + 4 + len))
        }
        Framing::SseBody => {
            let len = bytes.windows(2).position(|two| two == b"\n\n")? + 2;
            let text = std::str::from_utf8(&bytes[..len]).unwrap();
            let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            let json: serde_json::Value = serde_json::from_str(field("data: ")).unwrap();
            let id = field("id: ");
            assert!(id.is_empty() || json["cursor"] == id);
            Some((field("event: ").into(), json, len))
        }
    }
}

/// The events' numbers in order, and the names of everything else with how many events came before it.
type Seen = (Vec<usize>, Vec<(usize, String)>);

/// Reads until the event `last` came.
async fn read_to(client: &mut TcpStream, framing: Framing, last: usize, pause: Option<Duration>) -> Seen {
    read_until(client, framing, pause, |events, _| events.last().is_some_and(|&n| n >= last)).await
}

/// Reads until what came is `enough`.
async fn read_until(
    client: &mut TcpStream,
    framing: Framing,
    pause: Option<Duration>,
    enough: impl Fn(&[usize], &[(usize, String)]) -> bool,
) -> Seen {
    let (mut events, mut others, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut chunk = vec![0; 16 << 10];
    loop {
        let n = tokio::time::timeout(Duration::from_secs(60), client.read(&mut chunk)).await.expect("silence").unwrap();
        assert!(n > 0, "hung up after {} events", events.len());
        bytes.extend_from_slice(&chunk[..n]);
        let mut at = 0;
        while let Some((name, json, taken)) = parse(framing, &bytes[at..]) {
            at += taken;
            match json["event"]["n"].as_u64() {
                Some(n) => events.push(n as usize),
                None => others.push((events.len(), name)),
            }
        }
        bytes.drain(..at);
        if enough(&events, &others) {
            return (events, others);
        }
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }
}

async fn joiners(framing: Framing, joiners: usize, total: usize) {
    let fans = fans();
    let log = fans.log().clone();
    let mut tasks = tokio::task::JoinSet::new();
    let live = if framing == Framing::Sse { "live" } else { "gateway.live" };
    let writer = tokio::spawn(async move {
        let mut n = 0;
        while n < total {
            let some = (1 + n * 7 % 40).min(total - n);
            append(&log, "s_1", (n..n + some).map(|n| body(n, n * 31 % 600))).await;
            n += some;
            tokio::task::yield_now().await;
        }
    });
    for joiner in 0..joiners {
        let fans = fans.clone();
        tasks.spawn(async move {
            // Spread over the whole time by the log itself, not by a clock.
            let at = Position((joiner * total / joiners) as u64);
            let mut head = fans.log().watch();
            head.wait_for(|head| *head >= at).await.unwrap();
            let (server, mut client) = pair((joiner % 3 == 0).then_some(4096)).await;
            let conn = Conn::new(&fans, server, framing, account());
            // From the start, from the middle, from now on.
            let after = Position(at.0 * (joiner as u64 % 4) / 3).min(fans.log().head());
            join(&fans, &conn, key(framing), after);
            let driver = tokio::spawn(drive(Arc::clone(&conn)));
            // To one that joins after the last event was written, `live` is said behind it.
            let (events, others) = read_until(&mut client, framing, None, |events, others| {
                events.last() == Some(&(total - 1)) && others.iter().any(|(_, name)| name == live)
            })
            .await;
            assert!(events.iter().copied().eq(after.0 as usize..total), "joiner {joiner}: a gap or a repeat");
            let lives: Vec<_> = others.iter().filter(|(_, name)| name == live).collect();
            assert_eq!(lives.len(), 1, "joiner {joiner}");
            conn.leave();
            driver.abort();
            let _ = driver.await;
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    writer.await.unwrap();
    // A pump that is just writing to one that left holds the fan until it has written.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !lock(&fans.shared.fans).is_empty() {
        assert!(Instant::now() < deadline, "a fan outlived its followers");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Clients and events: four times the deliveries with `PLEXUS_ROUNDS=full`.
fn crowd() -> (usize, usize) {
    let is_full = std::env::var("PLEXUS_ROUNDS").is_ok_and(|rounds| rounds == "full");
    if is_full { (200, 20_000) } else { (100, 10_000) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fan_joiners_at_random_instants_see_each_event_once_over_ws() {
    let (clients, events) = crowd();
    joiners(Framing::WebSocket, clients, events).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fan_joiners_at_random_instants_see_each_event_once_over_sse() {
    let (clients, events) = crowd();
    joiners(Framing::Sse, clients, events).await;
}

#[tokio::test]
async fn live_is_said_exactly_between_replay_and_what_comes_after() {
    for framing in [Framing::WebSocket, Framing::Sse] {
        let fans = fans();
        append(fans.log(), "s_1", (0..700).map(|n| body(n, 300))).await;
        let (server, mut client) = pair(None).await;
        let conn = Conn::new(&fans, server, framing, account());
        let fan = fans.fan(key(framing));
        let live_at = fans.log().head();
        // Later events are there before the replay begins: they belong behind `live` all the same.
        append(fans.log(), "s_1", (700..900).map(|n| body(n, 300))).await;
        let name = "*".into();
        conn.subscribe(Subscribe { name, fan, answers: false, after: Position(100), live_at, live_id: false }, b"");
        let driver = tokio::spawn(drive(Arc::clone(&conn)));
        let (events, others) = read_to(&mut client, framing, 899, None).await;
        assert!(events.into_iter().eq(100..900));
        assert_eq!(others.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [600], "{framing:?}");
        conn.leave();
        driver.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fan_unread_socket_costs_one_batch_and_misses_nothing() {
    let fans = fans();
    let (server, mut lazy) = pair(Some(4096)).await;
    let conn = Conn::new(&fans, server, Framing::WebSocket, account());
    join(&fans, &conn, key(Framing::WebSocket), Position::START);
    let driver = tokio::spawn(drive(Arc::clone(&conn)));
    let (server, mut quick) = pair(None).await;
    let quick_conn = Conn::new(&fans, server, Framing::WebSocket, account());
    join(&fans, &quick_conn, key(Framing::WebSocket), Position::START);
    let quick_driver = tokio::spawn(drive(Arc::clone(&quick_conn)));

    // Far more than the hot tail and the log's ring.
    let (total, size) = (8_000, 4_000);
    let log = fans.log().clone();
    let writer = tokio::spawn(async move {
        for n in (0..total).step_by(50) {
            append(&log, "s_1", (n..n + 50).map(|n| body(n, size))).await;
        }
    });
    let (events, _) = read_to(&mut quick, Framing::WebSocket, total - 1, None).await;
    assert!(events.into_iter().eq(0..total), "the quick one");
    writer.await.unwrap();

    {
        let state = lock(&conn.state);
        let held = state.rest.len() + state.out.capacity();
        assert!(held <= 2 * BATCH + size * 2, "it holds {held} bytes");
        let tail = state.subs[0].fan.core.tail();
        assert!(state.subs[0].position < tail.start, "it fell out of the tail");
        assert!(tail.bytes <= HOT_TAIL + 2 * BATCH, "the tail holds {} bytes", tail.bytes);
    }
    let (events, others) = read_to(&mut lazy, Framing::WebSocket, total - 1, None).await;
    assert!(events.into_iter().eq(0..total), "the lazy one");
    let lags = others.iter().filter(|(_, name)| name == "gateway.lag").count();
    assert_eq!(lags, 1, "it is told that it lagged, once: {others:?}");
    conn.leave();
    quick_conn.leave();
    driver.abort();
    quick_driver.abort();
}

#[tokio::test]
async fn fan_tail_is_small_while_nobody_is_behind() {
    let fans = fans();
    let (server, mut client) = pair(None).await;
    let conn = Conn::new(&fans, server, Framing::WebSocket, account());
    join(&fans, &conn, key(Framing::WebSocket), Position::START);
    let driver = tokio::spawn(drive(Arc::clone(&conn)));
    for n in 0..400 {
        append(fans.log(), "s_1", [body(n, 4000)]).await;
        read_to(&mut client, Framing::WebSocket, n, None).await;
    }
    let fan = fans.fan(key(Framing::WebSocket));
    assert!(fan.core.tail().bytes <= QUIET_TAIL + 8000, "{} bytes", fan.core.tail().bytes);
    conn.leave();
    driver.abort();
}

#[tokio::test]
async fn own_frames_never_land_inside_an_event() {
    let fans = fans();
    let (server, mut client) = pair(Some(2048)).await;
    let conn = Conn::new(&fans, server, Framing::WebSocket, account());
    join(&fans, &conn, key(Framing::WebSocket), Position::START);
    let driver = tokio::spawn(drive(Arc::clone(&conn)));
    let talker = {
        let conn = Arc::clone(&conn);
        tokio::spawn(async move {
            for n in 0..2_000 {
                conn.push(|out| ws_message(out, "own", &serde_json::json!({ "own": n, "pad": "y".repeat(n % 300) })));
                conn.wake();
                tokio::task::yield_now().await;
            }
        })
    };
    let total = 1_500;
    let log = fans.log().clone();
    let writer = tokio::spawn(async move {
        for n in (0..total).step_by(3) {
            append(&log, "s_1", (n..n + 3).map(|n| body(n, n * 13 % 3000))).await;
        }
    });
    let (events, others) = read_to(&mut client, Framing::WebSocket, total - 1, None).await;
    assert!(events.into_iter().eq(0..total));
    assert!(others.iter().any(|(_, name)| name == "own"));
    writer.await.unwrap();
    talker.await.unwrap();
    conn.leave();
    driver.abort();
}

#[tokio::test]
async fn fan_batch_is_cut_where_events_end() {
    let fans = fans();
    append(fans.log(), "s_1", (0..20).map(|n| body(n, n * 40))).await;
    let fan = fans.fan(key(Framing::WebSocket));
    let limit = ReadLimit { events: 100, bytes: 1 << 20 };
    let page = fans.log().read(&Filter::all(), Position(3), limit).await.unwrap();
    let batch = Batch::encode(&fan.core.encoder, &page.events, Position(3), page.next);
    for after in 0..=20 {
        for upto in after..=21 {
            let range = batch.cut(Position(after), Position(upto));
            let (mut bytes, mut seen) = (&batch.bytes[range], Vec::new());
            while let Some((_, json, taken)) = parse(Framing::WebSocket, bytes) {
                seen.push(json["event"]["n"].as_u64().unwrap() + 1);
                bytes = &bytes[taken..];
            }
            assert!(bytes.is_empty(), "cut within an event");
            assert!(seen.into_iter().eq(after.max(3) + 1..=upto.min(20)), "({after}, {upto}]");
        }
    }
}

#[tokio::test]
async fn several_subscriptions_share_a_socket_and_each_is_whole() {
    let fans = fans();
    let (server, mut client) = pair(Some(4096)).await;
    let conn = Conn::new(&fans, server, Framing::WebSocket, account());
    for session in ["s_a", "s_b"] {
        let filter = Filter::session(SessionId::trusted(session));
        let fan = fans.fan(FanKey { filter, ..key(Framing::WebSocket) });
        let subscribe = Subscribe {
            name: session.into(),
            fan,
            answers: session == "s_a",
            after: Position::START,
            live_at: Position::START,
            live_id: false,
        };
        conn.subscribe(subscribe, b"");
    }
    let driver = tokio::spawn(drive(Arc::clone(&conn)));
    let log = fans.log().clone();
    let writer = tokio::spawn(async move {
        for n in 0..2_000 {
            // The session that nobody follows must not show.
            append(&log, ["s_a", "s_b", "s_c"][n % 3], [body(n, 200)]).await;
        }
        for session in ["s_a", "s_b"] {
            append(&log, session, [body(5_000, 0)]).await;
        }
    });
    let (mut bytes, mut chunk, mut seen, mut ends) = (Vec::new(), vec![0; 4096], BTreeSet::new(), 0);
    while ends < 2 {
        let n = tokio::time::timeout(Duration::from_secs(30), client.read(&mut chunk)).await.unwrap().unwrap();
        bytes.extend_from_slice(&chunk[..n]);
        while let Some((_, json, taken)) = parse(Framing::WebSocket, &bytes) {
            bytes.drain(..taken);
            match json["event"]["n"].as_u64() {
                Some(5_000) => ends += 1,
                Some(n) => {
                    assert!(n % 3 != 2 && seen.insert(n), "{n}: not asked for, or twice");
                }
                None => {}
            }
        }
    }
    assert_eq!(seen.len(), 2_000 - 2_000 / 3);
    writer.await.unwrap();
    assert!(conn.unsubscribe("s_a") && !conn.unsubscribe("s_a"));
    assert_eq!(conn.following().len(), 1);
    conn.leave();
    driver.abort();
}

#[tokio::test]
async fn fan_socket_without_progress_is_given_up() {
    let fans = fans_with(Duration::from_millis(300));
    let (server, client) = pair(Some(2048)).await;
    let conn = Conn::new(&fans, server, Framing::WebSocket, account());
    join(&fans, &conn, key(Framing::WebSocket), Position::START);
    let driver = tokio::spawn(drive(Arc::clone(&conn)));
    append(fans.log(), "s_1", (0..200).map(|n| body(n, 4000))).await;
    let flow = tokio::time::timeout(Duration::from_secs(30), driver).await.unwrap().unwrap();
    assert_eq!(flow, Flow::Blocked);
    conn.leave();
    drop(client);

    let (server, mut client) = pair(Some(2048)).await;
    let conn = Conn::new(&fans, server, Framing::WebSocket, account());
    join(&fans, &conn, key(Framing::WebSocket), Position::START);
    let driver = tokio::spawn(drive(Arc::clone(&conn)));
    let mut first = [0; 1];
    let before = conn.stalls_at();
    // A byte now and then is no progress of the socket until the kernel has room again; a bufferful is.
    while conn.stalls_at() <= before {
        client.read_exact(&mut first).await.unwrap();
        let mut some = [0; 4096];
        let _ = client.read(&mut some).await.unwrap();
    }
    assert!(!driver.is_finished());
    conn.leave();
    driver.abort();
}

#[tokio::test]
async fn fan_client_that_hangs_up_is_noticed_by_the_writer() {
    let fans = fans();
    let (server, mut client) = pair(None).await;
    let conn = Conn::new(&fans, server, Framing::Sse, account());
    join(&fans, &conn, key(Framing::Sse), Position::START);
    let driver = tokio::spawn(drive(Arc::clone(&conn)));
    append(fans.log(), "s_1", [body(0, 10)]).await;
    read_to(&mut client, Framing::Sse, 0, None).await;
    client.write_all(b"x").await.unwrap();
    drop(client);
    let log = fans.log().clone();
    let mut n = 1;
    let gone = async {
        while !driver.is_finished() {
            append(&log, "s_1", [body(n, 10)]).await;
            n += 1;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap();
    assert_eq!(driver.await.unwrap(), Flow::Dead);
    conn.leave();
}

#[tokio::test]
async fn fan_without_events_sleeps_and_misses_nothing() {
    for framing in [Framing::WebSocket, Framing::Sse] {
        let fans = fans();
        append(fans.log(), "s_a", (0..10).map(|n| body(n, 10))).await;
        let of = |session: &str| FanKey { filter: Filter::session(SessionId::trusted(session)), ..key(framing) };
        let subscribe = |conn: &Arc<Conn>, after| {
            let (fan, head) = (fans.fan(of("s_a")), fans.log().head());
            let name = "s_a".into();
            conn.subscribe(Subscribe { name, fan, answers: false, after, live_at: head, live_id: false }, b"");
        };
        let (server, mut client) = pair(None).await;
        let conn = Conn::new(&fans, server, framing, account());
        subscribe(&conn, Position::START);
        let driver = tokio::spawn(drive(Arc::clone(&conn)));
        let (events, others) = read_to(&mut client, framing, 9, None).await;
        assert!(events.into_iter().eq(0..10) && others.len() <= 1, "{others:?}");
        // More of another session than the log's ring holds: nobody here is woken for it.
        let asleep = fans.fan(of("s_a")).core.tail().end;
        for n in (0..4000).step_by(100) {
            append(fans.log(), "s_b", (n..n + 100).map(|n| body(n, 4000))).await;
            assert_eq!(fans.fan(of("s_a")).core.tail().end, asleep);
        }
        let head = fans.log().head();
        assert_eq!(conn.following()[0].1.position, head, "it has all that there is for it");
        // Who joins now is told `live` at once, though nothing is said.
        let (server, mut second) = pair(None).await;
        let late = Conn::new(&fans, server, framing, account());
        subscribe(&late, Position(5));
        let late_driver = tokio::spawn(drive(Arc::clone(&late)));
        let live = async {
            loop {
                let told = {
                    let state = lock(&late.state);
                    state.subs[0].live_at.is_none() && state.out.waiting().is_empty()
                };
                if told {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(STALL, live).await.expect("live is said");
        append(fans.log(), "s_a", (10..12).map(|n| body(n, 10))).await;
        let (events, _) = read_to(&mut client, framing, 11, None).await;
        assert!(events.into_iter().eq(10..12));
        let (events, others) = read_to(&mut second, framing, 11, None).await;
        assert!(events.into_iter().eq(5..12));
        assert_eq!(
            others.iter().map(|(at, _)| *at).collect::<Vec<_>>(),
            [5],
            "live, between replay and news: {others:?}"
        );
        conn.leave();
        late.leave();
        driver.abort();
        late_driver.abort();
    }
}
