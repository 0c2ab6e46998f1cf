//! The log and its store in this process: events written and read per second.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use plexus::sessions::{CommitEntry, CommitRows, Filter, Log, NewEvent};
use plexus_protocol::{Kind, Origin, Position, RunId, RuntimeId, SessionId, Timestamp};
use plexus_store::{Durability, ReadLimit, SessionRow, SqliteStore, Store};

use super::Size;
use super::agent::now;
use super::process::scratch;
use super::table::{Row, Target, median};

/// Bytes of an event: the agent's line, which contains the body.
const EVENT: usize = 1024;
/// Bytes of the line around the body.
const AROUND: usize = 100;
/// Concurrent sessions, each with one pending commit, as in the gateway.
const SESSIONS: usize = 16;
/// Events of one commit: those of one read of the agent's pipe.
const ENTRY: usize = 16;
/// Limit of one read.
const PAGE: ReadLimit = ReadLimit { events: 1024, bytes: 1 << 20 };
/// Rounds, interleaved with the floor's.
const ROUNDS: usize = 3;

fn origin(session: usize) -> Arc<Origin> {
    Arc::new(Origin {
        session_id: SessionId::trusted(format!("s_bench{session}")),
        runtime_id: RuntimeId::trusted("bench"),
        dialect: "acp".into(),
    })
}

fn row(origin: &Origin) -> SessionRow {
    SessionRow {
        session_id: origin.session_id.clone(),
        runtime_id: origin.runtime_id.clone(),
        dialect: "acp".into(),
        state: b"{}".to_vec(),
        as_of: Position::START,
        spare_from: None,
    }
}

fn line() -> Bytes {
    let head = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"bench-1","update":"#;
    let head = format!("{head:AROUND$}");
    let around = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""}}"#;
    let text = "x".repeat(EVENT - AROUND - around.len() - 2);
    Bytes::from(format!("{head}{}}}}}", around.replace("\"\"", &format!("\"{text}\""))))
}

fn entry(origin: &Arc<Origin>, first: u64, count: usize, native: &Bytes) -> CommitEntry {
    let run_id = RunId::trusted("r_bench");
    let event = |seq| NewEvent {
        run_id: run_id.clone(),
        seq,
        at: Timestamp::from_millis(i64::try_from(now() / 1_000_000).unwrap_or(0)),
        kind: Kind::AgentMessageChunk,
        body: native.slice(AROUND..native.len() - 2),
        native: Some(native.clone()),
    };
    let rows = (first == 0).then(|| {
        let row = row(origin);
        Box::new(move |_| CommitRows { sessions: vec![row], ..CommitRows::default() })
            as Box<dyn FnOnce(Position) -> CommitRows + Send>
    });
    CommitEntry {
        origin: Arc::clone(origin),
        events: (first..first + count as u64).map(event).collect(),
        rows,
        received: None,
        on_stored: None,
        sync: false,
    }
}

async fn append(log: &Log, sessions: usize, each: usize, entry_events: usize) -> Result<()> {
    let native = line();
    ensure!(native.len() == EVENT, "a line of {} bytes", native.len());
    let mut tasks = tokio::task::JoinSet::new();
    for session in 0..sessions {
        let (log, native) = (log.clone(), native.clone());
        tasks.spawn(async move {
            let origin = origin(session);
            let mut first = 0;
            while first < each {
                let count = entry_events.min(each - first);
                // Each line is an allocation of its own, as in the gateway.
                let native = Bytes::copy_from_slice(&native);
                log.commit(entry(&origin, first as u64, count, &native)).await?;
                first += count;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

/// Reads all pages of one filter; returns the number of events.
fn replay(log: &Log, filter: &Filter) -> Result<usize> {
    let (mut after, mut count) = (Position::START, 0);
    while after < log.head() {
        let page = log.read_blocking(filter, after, PAGE)?;
        for event in &page.events {
            ensure!(event.body.len() == EVENT - AROUND - 2, "a body of {} bytes", event.body.len());
        }
        count += page.events.len();
        ensure!(page.next > after, "no progress at {after}");
        after = page.next;
    }
    Ok(count)
}

/// Appends events and reads them.
pub(crate) fn store(size: Size) -> Result<Vec<Row>> {
    let each = size.scale(480_000, 20) / SESSIONS;
    let total = each * SESSIONS;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut all: [Vec<f64>; 6] = Default::default();
    for _ in 0..ROUNDS {
        let dir = scratch()?;
        let open = || -> Result<Log> {
            let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&dir.path().join("home"), Durability::Process)?);
            Ok(Log::open(store)?)
        };
        let rate = |began: Instant, count: usize| count as f64 / began.elapsed().as_secs_f64();

        let bytes = line().repeat(SESSIONS * ENTRY);
        let path = dir.path().join("bare");
        let mut file = File::create(&path)?;
        let began = Instant::now();
        for _ in 0..total / (SESSIONS * ENTRY) {
            file.write_all(&bytes)?;
        }
        all[0].push(rate(began, total));

        let log = open()?;
        let began = Instant::now();
        runtime.block_on(append(&log, SESSIONS, each, ENTRY))?;
        all[1].push(rate(began, total));
        ensure!(log.head() == Position(total as u64), "{} of {total} were kept", log.head());
        drop(log);

        let mut buffer = vec![0; PAGE.bytes];
        let (mut file, mut read) = (File::open(&path)?, 0);
        let began = Instant::now();
        while let some @ 1.. = file.read(&mut buffer)? {
            read += some;
        }
        all[2].push(rate(began, read / EVENT));
        std::fs::remove_file(&path)?;

        // A reopened store: the log's memory is empty.
        let log = reopened(&open)?;
        let (began, mut count) = (Instant::now(), 0);
        for session in 0..SESSIONS {
            count += replay(&log, &Filter::session(origin(session).session_id.clone()))?;
        }
        all[3].push(rate(began, count));
        ensure!(count == total, "{count} of {total} came back");

        let began = Instant::now();
        let count = replay(&log, &Filter::all())?;
        all[4].push(rate(began, count));
        ensure!(count == total, "{count} of {total} came back, all sessions in one");
        drop(log);

        let dir = scratch()?;
        let log =
            Log::open(Arc::new(SqliteStore::open(&dir.path().join("home"), Durability::Process)?) as Arc<dyn Store>)?;
        let few = (total / 10).max(1);
        let began = Instant::now();
        runtime.block_on(append(&log, 1, few, 1))?;
        all[5].push(rate(began, few));
    }
    eprintln!("    rounds: {all:.0?}");
    let [bare_append, append, bare_read, replay, replay_all, alone] = all.map(|mut rounds| median(&mut rounds));
    let row = |name: &str, floor, plexus, target| Row { name: name.into(), unit: "/s", floor, plexus, target };
    Ok(vec![
        row("1 KiB events kept, 16 sessions at once", Some(bare_append), append, Target::AtLeast(60_000.0)),
        row("1 KiB events kept, one session, one at a time", Some(bare_append), alone, Target::Told),
        row("1 KiB events read again, a session at a time", Some(bare_read), replay, Target::AtLeast(1_000_000.0)),
        row("1 KiB events read again, 16 sessions in one stream", Some(bare_read), replay_all, Target::Told),
    ])
}

/// The cold replay of many sessions, compared with one session of as many events.
pub(crate) fn replay_of_many(size: Size) -> Result<Vec<Row>> {
    let (many, each) = (size.scale(1000, 10), 100);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut all: [Vec<f64>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (n, (sessions, each)) in [(1, many * each), (many, each)].into_iter().enumerate() {
            let dir = scratch()?;
            let open = || -> Result<Log> {
                let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&dir.path().join("home"), Durability::Process)?);
                Ok(Log::open(store)?)
            };
            let log = open()?;
            runtime.block_on(append(&log, sessions, each, ENTRY))?;
            drop(log);
            let log = reopened(&open)?;
            let began = Instant::now();
            let count = replay(&log, &Filter::all())?;
            all[n].push(began.elapsed().as_secs_f64() * 1e3);
            ensure!(count == sessions * each, "{count} of {} came back", sessions * each);
        }
    }
    eprintln!("    rounds: {all:.1?}");
    let [one, many_took] = all.map(|mut rounds| median(&mut rounds));
    let name = format!("cold replay of {many} sessions of {each} events, beside one of {}", many * each);
    Ok(vec![Row { name, unit: "ms", floor: Some(one), plexus: many_took, target: Target::Times(2.0) }])
}

/// Opens the store; the writer of the earlier log may still be closing it.
fn reopened(open: &impl Fn() -> Result<Log>) -> Result<Log> {
    let deadline = Instant::now() + std::time::Duration::from_secs(30);
    loop {
        match open() {
            Err(error) if Instant::now() > deadline => return Err(error).context("opening the store again"),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(20)),
            open => return open,
        }
    }
}
