//! The holder with real processes: gateways come and go, no output of a runtime is lost, and no process outlives it. One file: all
//! tests use the same client, which plays the gateway.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use plexus_holder::client::{find_holders, stop};
use plexus_holder::wire::{self, Decoder, FromHolder, OLDEST, ToHolder, VERSION, Welcome};
use rustix::process::{Pid, Signal, kill_process};

const PLEXUS: &str = env!("CARGO_BIN_EXE_plexus");

/// Maximum waiting time; only a failing test reaches it.
const LOST: Duration = Duration::from_secs(60);

/// The size of the spool: more than the output of most tests.
const SPOOL: usize = 4 * 1024 * 1024;

/// A folder like a gateway's.
fn folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap()
}

/// A holder in a folder of its own.
struct Fixture {
    dir: tempfile::TempDir,
    socket: PathBuf,
    holder: Child,
}

fn hold(socket: &Path, spool_max: usize, cmd: &[&str]) -> Command {
    let mut command = Command::new(PLEXUS);
    command.args(["hold", "--spool-max", &spool_max.to_string(), "--socket"]).arg(socket).arg("--").args(cmd);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ready(holder: &mut Child) {
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line != "ready\n" {
        let mut why = String::new();
        holder.stderr.take().unwrap().read_to_string(&mut why).unwrap();
        panic!("not ready: {line:?} {why}");
    }
}

impl Fixture {
    fn new(spool_max: usize, cmd: &[&str]) -> Self {
        let dir = folder();
        let socket = dir.path().join("demo.abcdefgh.sock");
        let mut holder = hold(&socket, spool_max, cmd).spawn().unwrap();
        ready(&mut holder);
        Self { dir, socket, holder }
    }

    fn sh(script: &str) -> Self {
        Self::new(SPOOL, &["sh", "-c", script])
    }

    fn join(&self) -> (Client, Welcome) {
        Client::new(&self.socket)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.holder.id()).unwrap()).unwrap()
    }

    /// Waits for the holder's end, after which only the intended files may be left.
    fn gone(&mut self) -> Vec<String> {
        assert_eq!(self.holder.wait().unwrap().code(), Some(0));
        let names = std::fs::read_dir(self.dir.path()).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn end(&self) -> PathBuf {
        self.socket.with_extension("end")
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if self.holder.try_wait().unwrap().is_none() {
            let _ = kill_process(self.pid(), Signal::TERM);
            if let Ok(stream) = UnixStream::connect(&self.socket) {
                drop(stream);
            }
            let _ = std::fs::remove_file(&self.socket);
        }
    }
}

/// Plays the gateway.
struct Client {
    stream: UnixStream,
    decoder: Decoder,
}

impl Client {
    fn new(socket: &Path) -> (Self, Welcome) {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(LOST)).unwrap();
        let mut client = Self { stream, decoder: Decoder::default() };
        client.say(&ToHolder::Hello { version: OLDEST, newest: VERSION });
        match client.next() {
            Some(FromHolder::Welcome(welcome)) => (client, welcome),
            other => panic!("no welcome but {other:?}"),
        }
    }

    fn say(&mut self, message: &ToHolder) {
        self.stream.write_all(&message.to_bytes()).unwrap();
    }

    fn stdin(&mut self, text: &str) {
        self.say(&ToHolder::Stdin { offset: 0, state: Bytes::new(), bytes: Bytes::copy_from_slice(text.as_bytes()) });
    }

    /// The next message; `None` at the end.
    fn next(&mut self) -> Option<FromHolder> {
        let mut buf = vec![0; 64 * 1024];
        loop {
            if let Some(frame) = self.decoder.frame().unwrap() {
                return Some(FromHolder::parse(frame).unwrap());
            }
            match self.stream.read(&mut buf) {
                Ok(0) => return None,
                Ok(read) => self.decoder.buffer().extend_from_slice(&buf[..read]),
                // The holder hung up before it read everything.
                Err(why) if why.kind() == std::io::ErrorKind::ConnectionReset => return None,
                // Interrupted by a signal; with a timeout the kernel does not restart the call.
                Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                Err(why) => panic!("{why}"),
            }
        }
    }

    /// Reads up to and with a message that satisfies `enough`.
    fn until(&mut self, mut enough: impl FnMut(&FromHolder) -> bool) -> Vec<FromHolder> {
        let mut all = Vec::new();
        loop {
            let message = self.next().unwrap_or_else(|| panic!("hung up on after {all:?}"));
            let last = enough(&message);
            all.push(message);
            if last {
                return all;
            }
        }
    }

    /// Reads `len` bytes of output from `offset` on, without a gap.
    fn output(&mut self, offset: u64, len: usize) -> String {
        let (mut next, mut all) = (offset, Vec::new());
        while all.len() < len {
            if let FromHolder::Out { offset, bytes } = self.next().unwrap() {
                assert_eq!(offset, next);
                next += bytes.len() as u64;
                all.extend_from_slice(&bytes);
            }
        }
        String::from_utf8(all).unwrap()
    }

    /// Reads to the end: output from `offset` on, stderr, exit code and signal.
    fn rest(&mut self, offset: u64) -> End {
        end(self.until(|message| matches!(message, FromHolder::Exited { .. })), offset)
    }
}

#[derive(Debug, PartialEq)]
struct End {
    out: String,
    err: String,
    code: Option<i32>,
    signal: Option<i32>,
}

fn end(messages: Vec<FromHolder>, offset: u64) -> End {
    let (mut next, mut out, mut err) = (offset, Vec::new(), Vec::new());
    for message in messages {
        match message {
            FromHolder::Out { offset, bytes } => {
                assert_eq!(offset, next);
                next += bytes.len() as u64;
                out.extend_from_slice(&bytes);
            }
            FromHolder::Err { bytes } => err.extend_from_slice(&bytes),
            FromHolder::Exited { code, signal } => {
                let text = |bytes| String::from_utf8(bytes).unwrap();
                return End { out: text(out), err: text(err), code, signal };
            }
            FromHolder::Bye { reason: why } => panic!("{why}"),
            _ => {}
        }
    }
    panic!("no end");
}

/// The file that a holder left.
fn left(path: &Path) -> (Welcome, Vec<FromHolder>) {
    assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, 0o600);
    let mut decoder = Decoder::from_bytes(std::fs::read(path).unwrap().into());
    let mut all = Vec::new();
    while let Some(frame) = decoder.frame().unwrap() {
        all.push(FromHolder::parse(frame).unwrap());
    }
    match all.remove(0) {
        FromHolder::Welcome(welcome) => (welcome, all),
        other => panic!("{other:?}"),
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LOST, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns whether a process is gone; a zombie counts as gone.
#[cfg(target_os = "linux")]
fn alive(pid: Pid) -> bool {
    match std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())) {
        Ok(stat) => !stat[stat.rfind(')').unwrap()..].starts_with(") Z"),
        Err(_) => false,
    }
}

/// A script of processes that are hard to end; each writes its pid when it is ready. In any order: the main process, which ignores
/// TERM and end of file; one in a session of its own; an orphan of a double fork that ignores TERM; a stopped one.
#[cfg(target_os = "linux")]
const FAMILY: &str = r#"
    setsid sh -c 'echo $$; exec sleep 1000' &
    setsid sh -c '(sh -c "trap \"\" TERM; echo \$\$; while :; do sleep 1000; done" &) ; exit 0'
    sh -c 'echo $$; kill -STOP $$; sleep 1000' &
    trap '' TERM HUP INT
    echo $$
    while :; do sleep 1000; done
"#;

#[cfg(target_os = "linux")]
fn family(client: &mut Client) -> Vec<Pid> {
    let mut said = String::new();
    while said.lines().count() < 4 || !said.ends_with('\n') {
        if let FromHolder::Out { bytes, .. } = client.next().unwrap() {
            said.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }
    said.lines().map(|line| Pid::from_raw(line.parse().unwrap()).unwrap()).collect()
}

// === starting ===

#[test]
fn program_that_cannot_start_is_explained_and_leaves_nothing() {
    let dir = folder();
    let socket = dir.path().join("x.sock");
    for (cmd, code, why) in [
        ("/no/such/agent", 127, "plexus hold: cannot start /no/such/agent: No such file"),
        ("no-such-agent-in-path", 127, "plexus hold: cannot start no-such-agent-in-path: No such file"),
        ("/", 126, "plexus hold: cannot start /: Permission denied"),
    ] {
        let out = hold(&socket, 1, &[cmd]).output().unwrap();
        assert_eq!((out.status.code(), &out.stdout[..]), (Some(code), &b""[..]));
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(said.starts_with(why), "{said}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
    let long = dir.path().join("x".repeat(200));
    let out = hold(&long, 1, &["echo"]).output().unwrap();
    assert_eq!(out.status.code(), Some(126));
    assert!(!out.stderr.is_empty());
}

#[test]
fn gateway_that_is_already_gone_starts_nothing() {
    let dir = folder();
    let socket = dir.path().join("x.sock");
    let out = Command::new(PLEXUS)
        .args(["hold", "--spool-max", "1", "--parent", &(std::process::id() + 1).to_string(), "--socket"])
        .arg(&socket)
        .args(["--", "touch", "started"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8(out.stderr).unwrap().contains("the gateway is gone"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn holder_has_its_own_process_session_and_ignores_terminal_signals() {
    let mut rig = Fixture::sh("ps -o sid=,pgid= -p $$; trap '' INT HUP; echo ready; read x; exit 6");
    let (mut client, welcome) = rig.join();
    let mut said = client.output(0, 1);
    while !said.ends_with("ready\n") {
        said.push_str(&client.output(said.len() as u64, 1));
    }
    let own = rig.holder.id().to_string();
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), [&own, &own, "ready"]);
    assert!(alive(Pid::from_raw(i32::try_from(welcome.pid).unwrap()).unwrap()));
    for signal in [Signal::INT, Signal::HUP, Signal::USR1, Signal::QUIT] {
        kill_process(rig.pid(), signal).unwrap();
    }
    client.stdin("go\n");
    assert_eq!(client.rest(said.len() as u64).code, Some(6));
    client.say(&ToHolder::Bye);
    assert!(rig.gone().is_empty());
}

// === input, output, ends ===

#[test]
fn exit_statuses_are_reported_as_they_were() {
    for code in [0, 1, 126, 255] {
        let rig = Fixture::sh(&format!("exit {code}"));
        let (mut client, _) = rig.join();
        let end = client.rest(0);
        assert_eq!((end.code, end.signal), (Some(code), None));
    }
    for (name, number) in [("TERM", 15), ("KILL", 9), ("HUP", 1), ("SEGV", 11), ("PIPE", 13)] {
        let rig = Fixture::sh(&format!("ulimit -c 0; kill -{name} $$; sleep 1000"));
        let (mut client, _) = rig.join();
        let end = client.rest(0);
        assert_eq!((end.code, end.signal), (None, Some(number)), "{name}");
    }
}

#[test]
fn holder_carries_a_conversation_and_ends_with_the_runtime() {
    let mut rig = Fixture::sh("cat; echo done >&2; exit 4");
    let (mut client, welcome) = rig.join();
    assert_eq!((welcome.version, welcome.acked, welcome.end, welcome.stdin_closed), (VERSION, 0, 0, false));
    client.stdin("through\n");
    assert_eq!(client.output(0, 8), "through\n");
    client.stdin("again\n");
    client.say(&ToHolder::CloseStdin);
    let rest = client.rest(8);
    assert_eq!(rest, End { out: "again\n".into(), err: "done\n".into(), code: Some(4), signal: None });
    client.say(&ToHolder::Bye);
    assert!(client.next().is_none());
    assert!(rig.gone().is_empty());
}

#[test]
fn holder_reports_how_much_input_was_taken() {
    let rig = Fixture::sh("cat");
    let (mut client, _) = rig.join();
    client.stdin("12345\n");
    let taken = |message: &FromHolder| matches!(message, FromHolder::Taken { total: 6 });
    client.until(taken);
    drop(client);
    let (_, welcome) = rig.join();
    assert_eq!((welcome.put, welcome.taken), (6, 6));
}

#[test]
fn holder_reports_a_closed_stdin() {
    let rig = Fixture::sh("exec <&-; echo closed; sleep 1000");
    let (mut client, _) = rig.join();
    client.output(0, 7);
    client.stdin("x");
    client.until(|message| *message == FromHolder::StdinBroken);
    drop(client);
    assert!(rig.join().1.stdin_closed);
}

#[test]
fn runtime_that_reads_no_input_blocks_nothing() {
    // The runtime reads nothing until it has written everything, which needs acknowledgements meanwhile.
    let rig = Fixture::new(64 * 1024, &["sh", "-c", "head -c 3000000 /dev/zero; exec wc -c"]);
    let (mut client, _) = rig.join();
    let some = Bytes::from(vec![b'x'; 1024 * 1024]);
    for _ in 0..wire::STDIN_MAX / some.len() {
        client.say(&ToHolder::Stdin { offset: 0, state: Bytes::new(), bytes: some.clone() });
    }
    let mut next = 0;
    while next < 3_000_000 {
        if let FromHolder::Out { offset, bytes } = client.next().unwrap() {
            assert_eq!(offset, next);
            next += bytes.len() as u64;
            client.say(&ToHolder::Ack { offset: next });
        }
    }
    client.say(&ToHolder::CloseStdin);
    assert_eq!(client.rest(next).out.trim(), wire::STDIN_MAX.to_string());
}

#[test]
fn holder_hangs_up_on_invalid_frames_and_keeps_the_runtime() {
    let rig = Fixture::sh("echo 123; cat");
    let state = |offset| ToHolder::State { offset, state: Bytes::from_static(b"s") }.to_bytes();
    let mut wrong = state(0).to_vec();
    *wrong.last_mut().unwrap() ^= 1;
    let big = Bytes::from(vec![0; wire::STATE_MAX]);
    let stdin = |bytes: &Bytes| ToHolder::Stdin { offset: 0, state: Bytes::new(), bytes: bytes.clone() }.to_bytes();
    let table: Vec<(Vec<u8>, &str)> = vec![
        (wrong, "a message with a wrong checksum"),
        (vec![0xff; 9], "a message of 4294967295 bytes"),
        (vec![0, 0, 0, 0, 99, 0, 0, 0, 0], "a message of unknown kind 99"),
        (ToHolder::Ack { offset: 5 }.to_bytes().to_vec(), "output was acknowledged that never came"),
        (state(5).to_vec(), "state knows of output that never came"),
        (ToHolder::Hello { version: OLDEST, newest: VERSION }.to_bytes().to_vec(), "it was greeted twice"),
        ([ToHolder::State { offset: 0, state: big }.to_bytes(), state(0)].concat(), "more state was sent"),
    ];
    for (bytes, why) in table {
        let (mut client, _) = rig.join();
        client.output(0, 4);
        // The holder may hang up before it has read all.
        let _ = client.stream.write_all(&bytes);
        let last = client.until(|message| matches!(message, FromHolder::Bye { .. })).pop();
        let Some(FromHolder::Bye { reason: said }) = last else { panic!() };
        assert!(said.contains(why), "{said}");
    }
    let (mut client, welcome) = rig.join();
    assert!(String::from_utf8_lossy(&welcome.stderr).contains("hung up on a gateway: it was greeted twice"));
    client.stdin("still\n");
    assert_eq!(client.output(0, 10), "123\nstill\n");
    drop(client);
    // Too much input for a runtime that reads none.
    let rig = Fixture::sh("sleep 1000");
    let (mut client, _) = rig.join();
    let half = Bytes::from(vec![0; wire::STDIN_MAX / 2 + 64 * 1024]);
    let _ = client.stream.write_all(&[stdin(&half), stdin(&half), stdin(&half)].concat());
    let last = client.until(|message| matches!(message, FromHolder::Bye { .. })).pop();
    assert_eq!(last, Some(FromHolder::Bye { reason: "more input waits for its runtime than it keeps".into() }));
}

#[test]
fn holder_names_its_version_to_another_one() {
    let rig = Fixture::sh("cat");
    let mut stream = UnixStream::connect(&rig.socket).unwrap();
    stream.write_all(&ToHolder::Hello { version: VERSION + 1, newest: VERSION + 2 }.to_bytes()).unwrap();
    let mut client = Client { stream, decoder: Decoder::default() };
    let Some(FromHolder::Bye { reason: why }) = client.next() else { panic!() };
    assert!(why.contains("speaks versions 1 to 2"), "{why}");
    assert!(client.next().is_none());
}

// === gateways come and go ===

#[test]
fn output_not_acknowledged_comes_again() {
    let rig = Fixture::sh("echo one; echo two; echo three; cat");
    let (mut client, _) = rig.join();
    assert_eq!(client.output(0, 14), "one\ntwo\nthree\n");
    client.say(&ToHolder::Ack { offset: 6 });
    drop(client);
    // The next gateway may connect before the holder has read the last messages of the previous one.
    let (mut client, welcome) = rig.join();
    assert_eq!((welcome.acked, welcome.end), (6, 14));
    assert_eq!(client.output(6, 8), "o\nthree\n");
    client.say(&ToHolder::Ack { offset: 14 });
    client.stdin("four\n");
    assert_eq!(client.output(14, 5), "four\n");
    drop(client);
    let (mut client, welcome) = rig.join();
    assert_eq!(welcome.acked, 14);
    assert_eq!(client.output(14, 5), "four\n");
}

#[test]
fn handover_state_is_kept_with_the_output_it_covers() {
    let rig = Fixture::sh("echo 0123456789; exec cat >/dev/null");
    let (mut client, welcome) = rig.join();
    assert!(welcome.blobs.is_empty());
    client.output(0, 11);
    for (offset, state) in [(0, "a"), (4, "b"), (4, "c"), (8, "d")] {
        client.say(&ToHolder::Stdin { offset, state: state.into(), bytes: "x".into() });
    }
    client.say(&ToHolder::State { offset: 11, state: "e".into() });
    client.say(&ToHolder::Ack { offset: 5 });
    drop(client);
    let (_, welcome) = rig.join();
    let blobs: Vec<(u64, Bytes)> = vec![(4, "c".into()), (8, "d".into()), (11, "e".into())];
    assert_eq!((welcome.acked, welcome.blobs, welcome.put), (5, blobs, 4));
}

#[test]
fn holder_ignores_half_a_message() {
    let rig = Fixture::sh("cat");
    let whole = ToHolder::Stdin { offset: 0, state: "state".into(), bytes: "never\n".into() }.to_bytes();
    for cut in [1, 5, 9, 12, 21, whole.len() - 1] {
        let (mut client, _) = rig.join();
        client.stream.write_all(&whole[..cut]).unwrap();
        drop(client);
        let (_, welcome) = rig.join();
        assert_eq!((welcome.put, welcome.blobs.len()), (0, 0), "{cut}");
    }
    let (mut client, _) = rig.join();
    client.stream.write_all(&whole).unwrap();
    drop(client);
    let (mut client, welcome) = rig.join();
    assert_eq!((welcome.put, welcome.blobs), (6, vec![(0, "state".into())]));
    assert_eq!(client.output(0, 6), "never\n");
}

/// Gateways are killed again and again at any point: each line reaches the runtime once, in order, and each byte of its output
/// reaches a gateway, in order.
#[test]
fn gateway_killed_at_any_instant_loses_and_repeats_nothing() {
    const LINES: u64 = 3000;
    let line = |number: u64| format!("line {number} {}\n", "x".repeat(number as usize % 97));
    let rig = Fixture::new(SPOOL, &["cat"]);
    // The output received so far.
    let mut store: Vec<u8> = Vec::new();
    let mut seed = getrandom::u64().unwrap();
    println!("seed {seed}");
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let mut lives = 0;
    loop {
        lives += 1;
        let (mut client, welcome) = rig.join();
        // The state is the number of the next line; the newest is right, since it came with the line before.
        let mut number = welcome.blobs.last().map_or(0, |(_, state)| u64::from_be_bytes(state[..].try_into().unwrap()));
        assert!(welcome.acked <= store.len() as u64);
        let mut next = welcome.acked;
        if number == LINES && store.len() as u64 == (0..LINES).map(|n| line(n).len() as u64).sum::<u64>() {
            break;
        }
        // How many bytes it sends before it dies, and how many it reads.
        let mut says = Vec::new();
        for _ in 0..random(400) {
            if number < LINES {
                number += 1;
                let state = Bytes::copy_from_slice(&number.to_be_bytes());
                let offset = welcome.acked;
                ToHolder::Stdin { offset, state, bytes: line(number - 1).into() }.encode(&mut says);
            }
        }
        let acks = random(2) == 0;
        if !acks {
            says.truncate(random(says.len() as u64 + 1) as usize);
        }
        client.stream.write_all(&says).unwrap();
        client.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut buf = vec![0; 1 + random(20_000) as usize];
        'life: for _ in 0..random(20) {
            // Output received with the greeting counts too.
            while let Some(frame) = client.decoder.frame().unwrap() {
                let FromHolder::Out { offset, bytes } = FromHolder::parse(frame).unwrap() else { continue };
                assert_eq!(offset, next);
                next += bytes.len() as u64;
                // Repeated output must be the same.
                for (place, byte) in (offset as usize..).zip(&bytes) {
                    match store.get(place) {
                        Some(known) => assert_eq!(known, byte, "at {place}"),
                        None => store.push(*byte),
                    }
                }
                if acks && random(3) == 0 {
                    let offset = next - random(next.min(1000) + 1);
                    // Sometimes it dies in the middle.
                    let ack = ToHolder::Ack { offset }.to_bytes();
                    let cut = if random(5) == 0 { random(ack.len() as u64) as usize } else { ack.len() };
                    client.stream.write_all(&ack[..cut]).unwrap();
                    if cut < ack.len() {
                        break 'life;
                    }
                }
            }
            let Ok(read @ 1..) = client.stream.read(&mut buf) else { break };
            client.decoder.buffer().extend_from_slice(&buf[..read]);
        }
    }
    assert!(lives > 5, "{lives}");
    let all: String = (0..LINES).map(line).collect();
    assert!(store == all.as_bytes());
}

#[test]
fn newer_gateway_takes_the_holder_and_a_probe_does_not() {
    let rig = Fixture::sh("cat");
    let (mut old, _) = rig.join();
    // One connects and sends nothing, one only probes.
    let knock = UnixStream::connect(&rig.socket).unwrap();
    let found = find_holders(rig.dir.path());
    assert_eq!((found.len(), found[0].left, found[0].runtime.as_str()), (1, false, "demo"));
    old.stdin("old\n");
    assert_eq!(old.output(0, 4), "old\n");
    old.stdin("last words\n");
    let (mut new, welcome) = rig.join();
    assert_eq!(welcome.put, 15, "what the old one had said is done");
    let last = old.until(|message| matches!(message, FromHolder::Bye { .. })).pop();
    assert_eq!(last, Some(FromHolder::Bye { reason: "another gateway has taken over".into() }));
    assert!(old.next().is_none());
    drop(knock);
    assert_eq!(new.output(0, 15), "old\nlast words\n");
}

#[test]
fn spool_that_is_full_makes_the_runtime_wait_and_is_reported() {
    const MAX: usize = 200_000;
    const ALL: u64 = 1_000_000;
    let rig = Fixture::new(MAX, &["sh", "-c", "head -c 1000000 /dev/zero; echo written >&2"]);
    let (mut client, welcome) = rig.join();
    let told = match welcome.full_since {
        None => client.until(|message| matches!(message, FromHolder::Full { .. })),
        Some(_) => Vec::new(),
    };
    let outs = |all: &[FromHolder]| -> usize {
        let lens = all.iter().map(|message| match message {
            FromHolder::Out { bytes, .. } => bytes.len(),
            FromHolder::Err { .. } => panic!("it could write all"),
            _ => 0,
        });
        lens.sum()
    };
    // No more arrives until there is room.
    assert!(outs(&told) <= MAX);
    drop(client);
    let (mut client, welcome) = rig.join();
    assert!(welcome.full_since.is_some() && welcome.end <= MAX as u64 && welcome.end > MAX as u64 / 2);
    let mut got = client.output(0, usize::try_from(welcome.end).unwrap()).len() as u64;
    client.say(&ToHolder::Ack { offset: got });
    let told = client.until(|message| *message == FromHolder::HasSpace);
    got += outs(&told) as u64;
    loop {
        match client.next().unwrap() {
            FromHolder::Out { offset, bytes } => {
                assert_eq!(offset, got);
                got += bytes.len() as u64;
                client.say(&ToHolder::Ack { offset: got });
            }
            FromHolder::Exited { code, .. } => {
                assert_eq!((got, code), (ALL, Some(0)));
                break;
            }
            _ => {}
        }
    }
}

#[test]
fn stderr_tail_is_given_to_each_new_gateway() {
    let rig = Fixture::sh("head -c 100000 /dev/zero | tr '\\0' e >&2; echo last >&2; cat");
    let (mut client, welcome) = rig.join();
    if !welcome.stderr.ends_with(b"last\n") {
        client.until(|message| matches!(message, FromHolder::Err { bytes } if bytes.ends_with(b"last\n")));
    }
    drop(client);
    let (_, welcome) = rig.join();
    assert_eq!(welcome.stderr.len(), wire::STDERR_KEPT);
    assert!(welcome.stderr.ends_with(b"eelast\n"));
}

// === what is left ===

#[test]
fn runtime_that_ends_without_a_gateway_leaves_its_output() {
    let mut rig = Fixture::sh("echo one; echo trouble >&2; read x; echo two; exit 3");
    let (mut client, _) = rig.join();
    assert_eq!(client.output(0, 4), "one\n");
    client.say(&ToHolder::Ack { offset: 2 });
    client.say(&ToHolder::Stdin { offset: 2, state: "state".into(), bytes: "go\n".into() });
    drop(client);
    assert_eq!(rig.gone(), ["demo.abcdefgh.end"]);
    let (welcome, rest) = left(&rig.end());
    assert_eq!((welcome.acked, welcome.end, welcome.blobs), (2, 8, vec![(2, "state".into())]));
    assert_eq!(&welcome.stderr[..], b"trouble\n");
    assert_eq!(end(rest, 2), End { out: "e\ntwo\n".into(), err: String::new(), code: Some(3), signal: None });
    let found = find_holders(rig.dir.path());
    assert_eq!((found.len(), found[0].left, &found[0].path), (1, true, &rig.end()));
}

#[test]
fn gateway_that_dies_before_goodbye_leaves_the_end_to_the_next() {
    let mut rig = Fixture::sh("echo one");
    let (mut client, _) = rig.join();
    assert_eq!(client.rest(0).out, "one\n");
    drop(client);
    assert_eq!(rig.gone(), ["demo.abcdefgh.end"]);
    let (_, rest) = left(&rig.end());
    assert_eq!(end(rest, 0).out, "one\n");
}

#[test]
fn exit_status_that_cannot_be_sent_is_kept_for_the_next_gateway() {
    let mut rig = Fixture::sh("echo one; read x; exit 3");
    let part = rig.socket.with_extension("part");
    std::fs::create_dir(&part).unwrap();
    let (mut client, _) = rig.join();
    client.stdin("go\n");
    drop(client);
    // No file is left, and the holder reports the cause.
    until("it could not", || rig.join().1.stderr.starts_with(b"plexus hold: cannot leave the end behind: "));
    let (mut client, _) = rig.join();
    let end = client.rest(0);
    assert_eq!((end.out.as_str(), end.code), ("one\n", Some(3)));
    client.say(&ToHolder::Bye);
    assert_eq!(rig.gone(), ["demo.abcdefgh.part"]);
}

#[test]
fn runtime_that_ends_on_a_full_spool_leaves_all_its_output() {
    // The pipe has more at the end than the spool has room for.
    let mut rig = Fixture::new(1000, &["sh", "-c", "head -c 30000 /dev/zero"]);
    let (client, _) = rig.join();
    drop(client);
    assert_eq!(rig.gone(), ["demo.abcdefgh.end"]);
    assert_eq!(end(left(&rig.end()).1, 0).out.len(), 30_000);
}

#[test]
fn pipe_kept_open_by_another_process_is_not_waited_for() {
    // An unrelated process holds stdout: this test, through /proc.
    let mut rig = Fixture::sh("echo ready; read x; echo last");
    let (mut client, welcome) = rig.join();
    client.output(0, 6);
    let Ok(stranger) = std::fs::OpenOptions::new().write(true).open(format!("/proc/{}/fd/1", welcome.pid)) else {
        return; // no such thing here
    };
    client.stdin("go\n");
    let rest = client.rest(6);
    assert_eq!((rest.out.as_str(), rest.code), ("last\n", Some(0)));
    client.say(&ToHolder::Bye);
    assert!(rig.gone().is_empty());
    drop(stranger);
}

#[test]
fn holder_that_cannot_be_found_ends_its_runtime() {
    let mut rig = Fixture::sh("echo ready; sleep 1000");
    drop(rig.join());
    std::fs::remove_file(&rig.socket).unwrap();
    assert_eq!(rig.gone(), ["demo.abcdefgh.end"]);
    assert_eq!(end(left(&rig.end()).1, 0).signal, Some(15));
}

#[test]
fn sockets_of_dead_holders_are_removed_and_others_stay() {
    let rig = Fixture::sh("cat");
    let (mut client, _) = rig.join();
    let dead = rig.dir.path().join("other.aaaaaaaa.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    std::fs::write(rig.dir.path().join("note.txt"), "").unwrap();
    let found = find_holders(rig.dir.path());
    assert_eq!(found.iter().map(|found| &found.path).collect::<Vec<_>>(), [&rig.socket]);
    assert!(!dead.exists() && rig.dir.path().join("note.txt").exists());
    client.stdin("x\n");
    assert_eq!(client.output(0, 2), "x\n");
    assert!(find_holders(&rig.dir.path().join("no-such-folder")).is_empty());
}

// === the end of a family ===

#[test]
fn stop_goes_from_gentle_to_hard() {
    let (short, long) = (Duration::from_millis(50), LOST);
    let table = [
        // The end of stdin is enough.
        ("echo ready; cat; echo eof", (long, long), "eof\n", (Some(0), None)),
        // The end of stdin is not enough, TERM is.
        (
            "trap 'echo term; exit 7' TERM; echo ready; cat; while :; do sleep 0.02; done",
            (short, long),
            "term\n",
            (Some(7), None),
        ),
        // Only KILL is enough.
        ("trap '' TERM; echo ready; cat; while :; do sleep 1; done", (short, short), "", (None, Some(9))),
    ];
    for (script, (stdin, term), out, end) in table {
        let mut rig = Fixture::sh(script);
        let (mut client, _) = rig.join();
        client.output(0, 6);
        client.say(&ToHolder::Stop { stdin, term });
        let rest = client.rest(6);
        assert_eq!((rest.out.as_str(), (rest.code, rest.signal)), (out, end), "{script}");
        client.say(&ToHolder::Bye);
        assert!(rig.gone().is_empty());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn holder_end_ends_the_whole_process_group() {
    let short = Duration::from_millis(50);
    for how in ["term", "stop", "kill"] {
        let mut rig = Fixture::sh(FAMILY);
        let (mut client, _) = rig.join();
        let family = family(&mut client);
        match how {
            "term" => kill_process(rig.pid(), Signal::TERM).unwrap(),
            "stop" => client.say(&ToHolder::Stop { stdin: short, term: short }),
            _ => client.say(&ToHolder::Kill),
        }
        client.until(|message| *message == FromHolder::Exited { code: None, signal: Some(9) });
        // All are reaped before the end is reported, so there is no need to wait.
        assert_eq!(family.iter().filter(|pid| alive(**pid)).count(), 0, "{how}");
        client.say(&ToHolder::Bye);
        assert!(rig.gone().is_empty());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn child_end_ends_the_whole_process_group() {
    // The main process ends when told to; the orphan that ignores TERM goes on.
    let (head, _) = FAMILY.rsplit_once("while").unwrap();
    let rig = Fixture::sh(&format!("{head}\nread x; exit 5"));
    let (mut client, _) = rig.join();
    let family = family(&mut client);
    client.stdin("go\n");
    client.until(|message| *message == FromHolder::Exited { code: Some(5), signal: None });
    assert_eq!(family.iter().filter(|pid| alive(**pid)).count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn orphans_are_reaped_while_the_child_lives() {
    let rig = Fixture::sh("for i in 1 2 3 4; do (setsid sh -c 'echo $$' &); done; cat");
    let (mut client, _) = rig.join();
    let orphans = family(&mut client);
    // Gone from the process table, not only dead.
    until("orphans reaped", || orphans.iter().all(|pid| rustix::process::test_kill_process(*pid).is_err()));
}

/// A shell plays the gateway: it starts a holder and is killed.
#[cfg(target_os = "linux")]
fn killed_gateway(dir: &Path, tied: bool) -> (PathBuf, Vec<Pid>) {
    let socket = dir.join("demo.abcdefgh.sock");
    let parent = if tied { "--parent $$" } else { "" };
    let script =
        format!("\"$PLEXUS\" hold {parent} --socket \"$AT\" --spool-max 100000 -- sh -c \"$FAMILY\" & echo $!; wait");
    let mut gateway = Command::new("bash")
        .args(["-c", &script])
        .env("PLEXUS", PLEXUS)
        .env("AT", &socket)
        .env("FAMILY", FAMILY)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(gateway.stdout.take().unwrap());
    // The shell prints its pid and the holder that it is ready, in any order.
    let mut said = [String::new(), String::new()];
    for line in &mut said {
        out.read_line(line).unwrap();
    }
    said.sort();
    let [holder, ready] = said;
    assert_eq!(ready, "ready\n");
    let (mut client, _) = Client::new(&socket);
    let mut all = family(&mut client);
    drop(client);
    assert!(all.iter().all(|pid| alive(*pid)));
    all.push(Pid::from_raw(holder.trim().parse().unwrap()).unwrap());
    gateway.kill().unwrap();
    // No process keeps the dead gateway's stdout open.
    assert_eq!(out.read_line(&mut String::new()).unwrap(), 0);
    gateway.wait().unwrap();
    (socket, all)
}

#[cfg(target_os = "linux")]
#[test]
fn runtime_outlives_a_killed_gateway_unless_tied_to_it() {
    let dir = folder();
    let (_, everybody) = killed_gateway(dir.path(), true);
    until("the family ended", || !everybody.iter().any(|pid| alive(*pid)));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);

    let (socket, everybody) = killed_gateway(dir.path(), false);
    let (mut client, welcome) = Client::new(&socket);
    assert_eq!(family(&mut client)[..], everybody[..4]);
    assert_eq!(welcome.acked, 0);
    assert!(everybody.iter().all(|pid| alive(*pid)));
    drop(client);
    // A person stops it without a gateway.
    stop(&socket, Duration::from_millis(50), Duration::from_millis(50)).unwrap();
    until("the holder ended", || !everybody.iter().any(|pid| alive(*pid)));
    let (_, rest) = left(&socket.with_extension("end"));
    assert_eq!(end(rest, 0).signal, Some(9));
    assert!(stop(&socket, LOST, LOST).is_err());
}
