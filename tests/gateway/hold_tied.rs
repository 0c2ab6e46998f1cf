//! The holder tied to its parent, with real processes: it ends as its child does, and no process outlives it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const PLEXUS: &str = env!("CARGO_BIN_EXE_plexus");

/// Maximum waiting time; only a failing test reaches it.
const LOST: Duration = Duration::from_secs(60);

fn hold(args: &[&str]) -> Command {
    let mut command = Command::new(PLEXUS);
    command.arg("hold").arg("--").args(args).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn sh(script: &str) -> Child {
    hold(&["sh", "-c", script]).spawn().unwrap()
}

fn pid(of: u32) -> Pid {
    Pid::from_raw(i32::try_from(of).unwrap()).unwrap()
}

/// Returns whether a process is gone; a zombie counts as gone.
#[cfg(target_os = "linux")]
fn alive(pid: Pid) -> bool {
    match std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())) {
        Ok(stat) => !stat[stat.rfind(')').unwrap()..].starts_with(") Z"),
        Err(_) => false,
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LOST, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(target_os = "linux")]
/// Reads `n` lines that each hold a pid.
fn pids(from: &mut impl BufRead, n: usize) -> Vec<Pid> {
    let mut found = Vec::new();
    for _ in 0..n {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        found.push(Pid::from_raw(line.trim().parse().expect("a pid")).unwrap());
    }
    found
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
const FAMILY_SIZE: usize = 4;

#[test]
fn exit_codes_are_mirrored() {
    for code in [0, 1, 3, 126, 255] {
        let status = sh(&format!("exit {code}")).wait().unwrap();
        assert_eq!((status.code(), status.signal()), (Some(code), None));
    }
}

#[test]
fn signal_exits_are_mirrored() {
    for (name, number) in
        [("TERM", 15), ("KILL", 9), ("INT", 2), ("HUP", 1), ("SEGV", 11), ("ABRT", 6), ("USR1", 10), ("PIPE", 13)]
    {
        if name == "USR1" && !cfg!(target_os = "linux") {
            continue; // another number there
        }
        let status = sh(&format!("ulimit -c 0; kill -{name} $$; sleep 1000")).wait().unwrap();
        assert_eq!((status.code(), status.signal()), (None, Some(number)), "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn real_time_signals_are_mirrored_too() {
    let status = hold(&["bash", "-c", "kill -40 $$; sleep 1000"]).spawn().unwrap().wait().unwrap();
    assert_eq!(status.signal(), Some(40));
}

#[test]
fn program_that_cannot_start_is_explained() {
    let out = hold(&["/no/such/agent", "x"]).output().unwrap();
    assert_eq!(out.status.code(), Some(127));
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.starts_with("plexus hold: cannot start /no/such/agent: No such file"), "{said}");
    assert_eq!(hold(&["no-such-agent-in-path"]).output().unwrap().status.code(), Some(127));
    let out = hold(&["/"]).output().unwrap();
    assert_eq!(out.status.code(), Some(126));
    assert!(String::from_utf8(out.stderr).unwrap().starts_with("plexus hold: cannot start /: "));
}

#[test]
fn gateway_that_is_already_gone_starts_nothing() {
    let run = |parent: u32| {
        let mut command = Command::new(PLEXUS);
        command.args(["hold", "--parent", &parent.to_string(), "--", "echo", "started"]);
        command.output().unwrap()
    };
    let other = run(std::process::id() + 1);
    assert_eq!(other.status.code(), Some(1));
    assert!(other.stdout.is_empty());
    assert!(String::from_utf8(other.stderr).unwrap().contains("the gateway is gone"));
    let ours = run(std::process::id());
    assert_eq!((ours.status.code(), &ours.stdout[..]), (Some(0), &b"started\n"[..]));
}

#[test]
fn stdio_is_the_childs_own() {
    let mut child = sh("cat; echo done >&2; exit 4");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"through\n").unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "through\n");
    // End of file reaches the child ...
    drop(stdin);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(err, "done\n");
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

#[test]
fn child_end_of_file_is_not_held_back() {
    // ... and the child's reaches us while child and holder still live.
    let mut child = sh("exec >&- 2>&-; sleep 1000");
    let mut rest = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut rest).unwrap();
    assert!(child.try_wait().unwrap().is_none());
    kill_process(pid(child.id()), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    // The same for a child that closes its stdin: our write fails.
    let mut child = sh("exec <&-; echo closed; sleep 1000");
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // The holder may not have closed its own end yet.
    let mut stdin = child.stdin.take().unwrap();
    until("the write fails", || stdin.write_all(b"x").is_err());
    kill_process(pid(child.id()), Signal::TERM).unwrap();
    child.wait().unwrap();
}

#[test]
fn child_can_end_in_its_own_way() {
    let mut child = sh("trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.05; done");
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    kill_process(pid(child.id()), Signal::TERM).unwrap();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\nsaved\n");
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

#[test]
fn process_group_that_ignores_signals_is_killed() {
    let mut child = sh("trap '' TERM; (echo started; while :; do sleep 1000; done) & while :; do sleep 1000; done");
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    kill_process(pid(child.id()), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    // Any remaining process would keep it open.
    out.read_to_string(&mut line).unwrap();
    assert_eq!(line, "started\n");
}

#[cfg(target_os = "linux")]
#[test]
fn term_ends_the_whole_process_group() {
    let mut child = sh(FAMILY);
    let family = pids(&mut BufReader::new(child.stdout.take().unwrap()), FAMILY_SIZE);
    kill_process(pid(child.id()), Signal::TERM).unwrap();
    // The main process ignores TERM, so it was killed, which is the reported signal.
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    // The holder reaped all of them before it ended, so there is no need to wait.
    assert_eq!(family.iter().filter(|pid| alive(**pid)).count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn child_end_ends_the_whole_process_group() {
    // The main process ends when told to; the orphan that ignores TERM goes on.
    let (head, _) = FAMILY.rsplit_once("while").unwrap();
    let mut child = sh(&format!("{head}\nread x; exit 5"));
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let family = pids(&mut out, FAMILY_SIZE);
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert_eq!(family.iter().filter(|pid| alive(**pid)).count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn orphans_are_reaped_while_the_child_lives() {
    let mut child = sh("for i in 1 2 3 4 5; do (setsid sh -c 'echo $$' &); done; sleep 1000");
    let orphans = pids(&mut BufReader::new(child.stdout.take().unwrap()), 5);
    // Gone from the process table, not only dead.
    until("orphans reaped", || orphans.iter().all(|pid| rustix::process::test_kill_process(*pid).is_err()));
    kill_process(pid(child.id()), Signal::TERM).unwrap();
    child.wait().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn gateway_kill_is_outlived_by_nothing() {
    // A shell plays the gateway; it prints the holder's pid first.
    let script = r#"
        "$PLEXUS" hold --parent $$ -- sh -c "$FAMILY" <&3 &
        echo $!
        wait
    "#;
    let mut gateway = Command::new("bash")
        .args(["-c", &format!("exec 3<&0; {script}")])
        .env("PLEXUS", PLEXUS)
        .env("FAMILY", FAMILY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = gateway.stdin.take().unwrap();
    let mut out = BufReader::new(gateway.stdout.take().unwrap());
    let everybody = pids(&mut out, FAMILY_SIZE + 1);
    assert!(everybody.iter().all(|pid| alive(*pid)));
    gateway.kill().unwrap();
    // The pipe is still open here, so no process ends because of end of file. It does not matter that the dead gateway is
    // not reaped yet.
    until("the family ended", || !everybody.iter().any(|pid| alive(*pid)));
    // All processes closed stdout: unknown ones are gone too.
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    drop(stdin);
    gateway.wait().unwrap();
}

#[test]
fn terminal_signals_do_not_end_the_holder() {
    let mut child = sh("trap '' INT HUP; echo ready; read x; exit 6");
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    for signal in [Signal::INT, Signal::HUP, Signal::USR1, Signal::QUIT] {
        kill_process(pid(child.id()), signal).unwrap();
    }
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(6));
}

#[cfg(target_os = "linux")]
#[test]
fn holder_leads_a_process_group_even_if_spawned_without_one() {
    let mut command = hold(&["sh", "-c", "ps -o pgid= -p $$; ps -o pgid= -p $PPID; echo $PPID"]);
    // Group 0 would be a new group; a careless caller passes its own.
    command.process_group(rustix::process::getpgrp().as_raw_pid());
    let out = command.output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    let found: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(found.len(), 3, "{said}");
    assert!(found.iter().all(|pid| *pid == found[2]), "{said}");
}
