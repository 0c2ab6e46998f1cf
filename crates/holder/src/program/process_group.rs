//! Everybody below a holder: found, told to end, reaped.

#[cfg(not(target_os = "linux"))]
use std::process::Command;

use rustix::process::{Pid, Signal, WaitOptions};

/// How CMD ended.
#[derive(Clone, Copy)]
pub(super) enum CommandFate {
    Code(i32),
    Signal(i32),
}

/// CMD and all of its descendants.
pub(super) struct ProcessGroup {
    /// CMD's pid, meaningful until `fate` is known.
    pub(super) main: u32,
    pub(super) fate: Option<CommandFate>,
}

impl ProcessGroup {
    /// Reaps everything that has ended; false if no child is left.
    pub(super) fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.fate.is_none() && pid.as_raw_pid().unsigned_abs() == self.main {
                        self.fate = match (status.exit_status(), status.terminating_signal()) {
                            (Some(code), _) => Some(CommandFate::Code(code)),
                            (None, Some(signal)) => Some(CommandFate::Signal(signal)),
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

    /// True when nobody of the family is left.
    pub(super) fn alone(&mut self) -> bool {
        let children = self.reap();
        if cfg!(target_os = "linux") {
            // A subreaper without children has no descendants: every chain of them ends at one.
            !children
        } else {
            !children && descendants().is_some_and(|members| members.is_empty())
        }
    }

    /// Sends `signal` to everybody below us. False if the system would not say who that is.
    pub(super) fn strike(&self, signal: Signal) -> bool {
        let Some(members) = descendants() else { return false };
        members.iter().for_each(|member| member.strike(signal));
        true
    }

    /// Asks everybody below us to end. False as with [`Self::strike`].
    pub(super) fn ask(&self) -> bool {
        let Some(members) = descendants() else { return false };
        for member in &members {
            member.strike(Signal::TERM);
            // A stopped process could not act on it.
            member.strike(Signal::CONT);
        }
        true
    }
}

/// One living process below us.
struct Member {
    pid: Pid,
    /// Start time in clock ticks; with the pid it names one process for good.
    #[cfg(target_os = "linux")]
    start: u64,
}

/// Everybody below us and everybody in our group but ourselves, zombies left out.
/// `None` if the system would not say.
#[cfg(target_os = "linux")]
fn descendants() -> Option<Vec<Member>> {
    let rows = std::fs::read_dir("/proc").ok()?.filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        ProcStat::of(pid).map(|stat| (pid, stat))
    });
    let rows: Vec<_> = rows.collect();
    // Without ourselves in it, this is not a process table to trust.
    let me = rustix::process::getpid().as_raw_pid();
    rows.iter().find(|(pid, _)| *pid == me)?;
    let links: Vec<ProcessRow> =
        rows.iter().map(|(pid, s)| ProcessRow { pid: *pid, parent: s.parent, group: s.group }).collect();
    let below = below(me, &links);
    let members = rows.into_iter().filter(|(pid, stat)| below.contains(pid) && stat.alive);
    Some(members.filter_map(|(pid, stat)| Some(Member { pid: Pid::from_raw(pid)?, start: stat.start })).collect())
}

/// The same from `ps`, which is everywhere.
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
            let link = ProcessRow { pid: number()?, parent: number()?, group: number()? };
            let zombie = fields.next().is_some_and(|state| state.starts_with('Z'));
            Some((link, !zombie))
        })
        .collect();
    let me = rustix::process::getpid().as_raw_pid();
    rows.iter().find(|(link, _)| link.pid == me)?;
    let links: Vec<ProcessRow> = rows.iter().map(|(link, _)| *link).collect();
    let below = below(me, &links);
    let members = rows.iter().filter(|(link, alive)| *alive && link.pid != ps && below.contains(&link.pid));
    Some(members.filter_map(|(link, _)| Some(Member { pid: Pid::from_raw(link.pid)? })).collect())
}

/// One row of the process table.
#[derive(Clone, Copy)]
struct ProcessRow {
    pid: i32,
    parent: i32,
    group: i32,
}

/// The pids that descend from `me` or are in the group that `me` leads, without `me`.
fn below(me: i32, links: &[ProcessRow]) -> std::collections::HashSet<i32> {
    let mut found = std::collections::HashSet::new();
    // Pids do not rise with depth (they wrap), so go round until nothing is new.
    loop {
        let before = found.len();
        for link in links.iter().filter(|link| link.pid != me) {
            if link.group == me || link.parent == me || found.contains(&link.parent) {
                found.insert(link.pid);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

impl Member {
    /// Sends `signal` to this very process, never to a stranger that got its number since.
    #[cfg(target_os = "linux")]
    fn strike(&self, signal: Signal) {
        let fd = rustix::process::pidfd_open(self.pid, rustix::process::PidfdFlags::empty());
        // The descriptor first, the check second: what it names can then no longer change.
        if ProcStat::of(self.pid.as_raw_pid()).is_none_or(|stat| stat.start != self.start) {
            return;
        }
        // Errors mean that it is gone, or not ours to signal (a set-uid program): the next look tells.
        let _ = match fd {
            Ok(fd) => rustix::process::pidfd_send_signal(fd, signal),
            Err(_) => rustix::process::kill_process(self.pid, signal),
        };
    }

    /// Sends `signal`. The table it came from is milliseconds old, and pids are not reused that fast.
    #[cfg(not(target_os = "linux"))]
    fn strike(&self, signal: Signal) {
        let _ = rustix::process::kill_process(self.pid, signal);
    }
}

/// What matters of `/proc/PID/stat` (proc(5)).
#[cfg(target_os = "linux")]
struct ProcStat {
    alive: bool,
    parent: i32,
    group: i32,
    start: u64,
}

#[cfg(target_os = "linux")]
impl ProcStat {
    fn of(pid: i32) -> Option<Self> {
        Self::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(line: &[u8]) -> Option<Self> {
        // The name may hold anything, blanks and brackets too: count from its last bracket.
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

    fn link(pid: i32, parent: i32, group: i32) -> ProcessRow {
        ProcessRow { pid, parent, group }
    }

    #[test]
    fn process_group_finds_descendants_in_any_order() {
        let links = [
            link(1, 0, 1),
            link(50, 1, 50),  // me
            link(7, 60, 7),   // grandchild with a wrapped, smaller pid, in its own group
            link(60, 50, 50), // child
            link(8, 7, 7),    // great-grandchild
            link(70, 1, 50),  // in the group, reparented
            link(80, 1, 80),  // stranger
            link(81, 80, 80), // stranger's child
        ];
        let mut found: Vec<i32> = below(50, &links).into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, [7, 8, 60, 70]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_group_stat_reads_hostile_names_and_zombies() {
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
