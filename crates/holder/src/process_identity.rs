//! The identity of a process by pid and start time: a pid is reused, the two together are not.

use std::time::Duration;

use rustix::process::{Pid, Signal};

/// Interval at which an ending process is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A process that was seen alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pid: Pid,
    /// The start time of the process, in the system's own units.
    start: u64,
}

impl Process {
    /// Returns the living process with this pid. Blocks while it reads one small file (Linux) or runs `ps`.
    pub fn find(pid: u32) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        Some(Self { pid, start: start_time(pid)? })
    }

    /// Returns the pid.
    pub fn pid(self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Returns the start time, in the system's own units: with the pid it identifies the process, also to a later gateway.
    pub fn start(self) -> u64 {
        self.start
    }

    /// Returns whether the process is still alive. A zombie is not.
    pub fn alive(self) -> bool {
        start_time(self.pid) == Some(self.start)
    }

    /// Like [`alive`](Self::alive), but checks only the pid if that is much cheaper: for checks that are repeated often.
    pub fn seems_alive(self) -> bool {
        if cfg!(target_os = "linux") { self.alive() } else { rustix::process::test_kill_process(self.pid).is_ok() }
    }

    /// Signals the process and the rest of its group, unless that is the gateway's own group.
    fn signal(self, signal: Signal) {
        if !self.alive() {
            return;
        }
        match rustix::process::getpgid(Some(self.pid)) {
            Ok(group) if group != rustix::process::getpgrp() => {
                let _ = rustix::process::kill_process_group(group, signal);
            }
            _ => {}
        }
        let _ = rustix::process::kill_process(self.pid, signal);
    }

    /// Sends SIGTERM to the process and its group, and SIGKILL after `term`. Returns whether it has ended, at most `kill` after that.
    pub async fn end(self, term: Duration, kill: Duration) -> bool {
        self.signal(Signal::TERM);
        if self.ended_within(term).await {
            return true;
        }
        self.signal(Signal::KILL);
        self.ended_within(kill).await
    }

    async fn ended_within(self, wait: Duration) -> bool {
        let ended = async {
            while self.alive() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::time::timeout(wait, ended).await.is_ok()
    }
}

/// Returns the start time of the living process with this pid; `None` if there is none.
#[cfg(target_os = "linux")]
fn start_time(pid: Pid) -> Option<u64> {
    let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    // The name may contain blanks and brackets: fields are counted from its last bracket (proc(5)).
    let rest = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(stat.get(rest..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let threads: u64 = fields.nth(16)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    // A zombie leader with other threads still running is not dead.
    (!matches!(state, "Z" | "X") || threads > 1).then_some(start)
}

/// Like the function for Linux, but with `ps`: the hash of the printed start time represents it.
#[cfg(not(target_os = "linux"))]
fn start_time(pid: Pid) -> Option<u64> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let ps = std::process::Command::new("ps")
        .args(["-o", "stat=,lstart=", "-p", &pid.as_raw_pid().to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&ps.stdout);
    let (state, start) = text.trim().split_once(char::is_whitespace)?;
    let mut hasher = DefaultHasher::new();
    start.trim().hash(&mut hasher);
    (!state.starts_with('Z')).then(|| hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    #[tokio::test]
    async fn process_identity_lasts_until_the_process_group_ends() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "trap '' TERM; sleep 1000 & wait; sleep 1000"])
            .process_group(0)
            .spawn()
            .unwrap();
        let process = Process::find(child.id()).unwrap();
        assert_eq!((process.pid(), process.alive()), (child.id(), true));
        assert!(!Process { start: process.start + 1, ..process }.alive(), "the same number, another start");
        let reap = tokio::task::spawn_blocking(move || child.wait());
        assert!(process.end(Duration::from_millis(50), Duration::from_secs(60)).await);
        assert!(!process.alive() && Process::find(process.pid()).is_none());
        reap.await.unwrap().unwrap();
    }
}
