//! The process tree below a holder: finding, signalling and reaping it.

#[cfg(not(target_os = "linux"))]
use std::process::Command;

use rustix::process::{Pid, Signal, WaitOptions};

/// The end of CMD.
#[derive(Clone, Copy)]
pub(super) enum CommandOutcome {
    Code(i32),
    Signal(i32),
}

/// CMD and all of its descendants.
pub(super) struct ProcessTree {
    /// CMD's pid, valid until `outcome` is known.
    pub(super) main: u32,
    pub(super) outcome: Option<CommandOutcome>,
}

impl ProcessTree {
    /// Reaps all ended processes; returns `false` if no child is left.
    pub(super) fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.outcome.is_none() && pid.as_raw_pid().unsigned_abs() == self.main {
                        self.outcome = match (status.exit_status(), status.terminating_signal()) {
                            (Some(code), _) => Some(CommandOutcome::Code(code)),
                            (None, Some(signal)) => Some(CommandOutcome::Signal(signal)),
                            (None, None) => None,
                        };
                    }
                }
                Ok(None) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Returns whether no process of the tree is left.
    pub(super) fn is_empty(&mut self) -> bool {
        let children = self.reap();
        if cfg!(target_os = "linux") {
            // On Linux a subreaper without children has no descendants.
            !children
        } else {
            !children && descendants().is_some_and(|members| members.is_empty())
        }
    }

    /// Sends `signal` to all descendants. Returns `false` if the system does not list them.
    pub(super) fn signal_all(&self, signal: Signal) -> bool {
        let Some(members) = descendants() else { return false };
        members.iter().for_each(|member| member.signal(signal));
        true
    }

    /// Sends SIGTERM to all descendants. Returns `false` if the system does not list them.
    pub(super) fn terminate(&self) -> bool {
        let Some(members) = descendants() else { return false };
        for member in &members {
            member.signal(Signal::TERM);
            // A stopped process could not act on SIGTERM.
            member.signal(Signal::CONT);
        }
        true
    }
}

/// One living descendant.
struct Member {
    pid: Pid,
    /// Start time in clock ticks; with the pid it identifies the process.
    #[cfg(target_os = "linux")]
    start: u64,
}

/// Returns all descendants and all other members of the holder's group, without zombies. `None` if the system does not list them.
#[cfg(target_os = "linux")]
fn descendants() -> Option<Vec<Member>> {
    let rows = std::fs::read_dir("/proc").ok()?.filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        ProcStat::read(pid).map(|stat| (pid, stat))
    });
    let rows: Vec<_> = rows.collect();
    // A process table without this process cannot be trusted.
    let me = rustix::process::getpid().as_raw_pid();
    rows.iter().find(|(pid, _)| *pid == me)?;
    let links: Vec<ProcessRow> =
        rows.iter().map(|(pid, s)| ProcessRow { pid: *pid, parent: s.parent, group: s.group }).collect();
    let members_of_tree = descendants_of(me, &links);
    let members = rows.into_iter().filter(|(pid, stat)| members_of_tree.contains(pid) && stat.alive);
    Some(members.filter_map(|(pid, stat)| Some(Member { pid: Pid::from_raw(pid)?, start: stat.start })).collect())
}

/// Returns the descendants from the output of `ps`, which every system has.
#[cfg(not(target_os = "linux"))]
fn descendants() -> Option<Vec<Member>> {
    let child = Command::new("/bin/ps")
        .args(["-axo", "pid=,ppid=,pgid=,stat="])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .ok()?;
    let ps = i32::try_from(child.id()).ok()?;
    let table = child.wait_with_output().ok()?.stdout;
    let table = String::from_utf8_lossy(&table);
    let rows: Vec<(ProcessRow, bool)> = table
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let mut number = || fields.next()?.parse::<i32>().ok();
            let row = ProcessRow { pid: number()?, parent: number()?, group: number()? };
            let zombie = fields.next().is_some_and(|state| state.starts_with('Z'));
            Some((row, !zombie))
        })
        .collect();
    let me = rustix::process::getpid().as_raw_pid();
    rows.iter().find(|(row, _)| row.pid == me)?;
    let links: Vec<ProcessRow> = rows.iter().map(|(row, _)| *row).collect();
    let members_of_tree = descendants_of(me, &links);
    let members = rows.iter().filter(|(row, alive)| *alive && row.pid != ps && members_of_tree.contains(&row.pid));
    Some(members.filter_map(|(row, _)| Some(Member { pid: Pid::from_raw(row.pid)? })).collect())
}

/// One row of the process table.
#[derive(Clone, Copy)]
struct ProcessRow {
    pid: i32,
    parent: i32,
    group: i32,
}

/// Returns the pids that descend from `me` or are in the group that `me` leads, without `me`.
fn descendants_of(me: i32, links: &[ProcessRow]) -> std::collections::HashSet<i32> {
    let mut found = std::collections::HashSet::new();
    // Pids do not increase with depth (they wrap), so repeat until there are no new ones.
    loop {
        let before = found.len();
        for row in links.iter().filter(|row| row.pid != me) {
            if row.group == me || row.parent == me || found.contains(&row.parent) {
                found.insert(row.pid);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

impl Member {
    /// Sends `signal` to this process, never to another one that reuses its pid.
    #[cfg(target_os = "linux")]
    fn signal(&self, signal: Signal) {
        let fd = rustix::process::pidfd_open(self.pid, rustix::process::PidfdFlags::empty());
        // Open the descriptor first, then check: afterwards it cannot name another process.
        if ProcStat::read(self.pid.as_raw_pid()).is_none_or(|stat| stat.start != self.start) {
            return;
        }
        // An error means that the process has ended, or that it may not be signalled (set-uid); the next check detects it.
        let _ = match fd {
            Ok(fd) => rustix::process::pidfd_send_signal(fd, signal),
            Err(_) => rustix::process::kill_process(self.pid, signal),
        };
    }

    /// Sends `signal`. The table is milliseconds old, and pids are not reused that fast.
    #[cfg(not(target_os = "linux"))]
    fn signal(&self, signal: Signal) {
        let _ = rustix::process::kill_process(self.pid, signal);
    }
}

/// The needed fields of `/proc/PID/stat` (proc(5)).
#[cfg(target_os = "linux")]
struct ProcStat {
    alive: bool,
    parent: i32,
    group: i32,
    start: u64,
}

#[cfg(target_os = "linux")]
impl ProcStat {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(line: &[u8]) -> Option<Self> {
        // The name may contain blanks and brackets: fields are counted from its last bracket.
        let rest = line.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(line.get(rest..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let threads: u64 = fields.get(17)?.parse().ok()?;
        Some(Self {
            // A zombie leader with other threads still running is not dead.
            alive: !matches!(*fields.first()?, "Z" | "X") || threads > 1,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: i32, parent: i32, group: i32) -> ProcessRow {
        ProcessRow { pid, parent, group }
    }

    #[test]
    fn process_tree_finds_descendants_in_any_order() {
        let links = [
            row(1, 0, 1),
            row(50, 1, 50),  // me
            row(7, 60, 7),   // grandchild with a wrapped, smaller pid, in its own group
            row(60, 50, 50), // child
            row(8, 7, 7),    // great-grandchild
            row(70, 1, 50),  // in the group, reparented
            row(80, 1, 80),  // stranger
            row(81, 80, 80), // stranger's child
        ];
        let mut found: Vec<i32> = descendants_of(50, &links).into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, [7, 8, 60, 70]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_tree_stat_reads_hostile_names_and_zombies() {
        let tail = "7 9 9 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 12345 0";
        let stat = ProcStat::parse(format!("42 (a) Z (b) S {tail}").as_bytes());
        let stat = stat.map(|s| (s.alive, s.parent, s.group, s.start));
        assert_eq!(stat, Some((true, 7, 9, 12345)));
        let dead = ProcStat::parse(format!("42 (\u{1f}\n) Z {tail}").as_bytes());
        assert_eq!(dead.map(|s| s.alive), Some(false));
        let threads = tail.replace("20 0 1 0", "20 0 3 0");
        let leader = ProcStat::parse(format!("42 (x) Z {threads}").as_bytes());
        assert_eq!(leader.map(|s| s.alive), Some(true));
        assert!(ProcStat::parse(b"42 (x) S 1 2").is_none());
        assert!(ProcStat::parse(b"").is_none());
    }
}
