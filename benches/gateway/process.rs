//! CPU time, memory and exit of processes, and a description of the machine.

use std::collections::HashMap;
use std::process::Child;

use anyhow::{Context as _, Result, ensure};

/// A child that does not outlive its owner.
pub(crate) struct Kill(pub(crate) Child);

impl Kill {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Kill {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory on the disk that the build is on.
pub(crate) fn scratch() -> Result<tempfile::TempDir> {
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?)
}

/// A directory in memory, where a sync costs nothing; `None` where there is no such place.
pub(crate) fn scratch_in_memory() -> Option<tempfile::TempDir> {
    tempfile::Builder::new().prefix("plexus-bench-").tempdir_in("/dev/shm").ok()
}

/// CPU time of a process so far, user and system.
pub(crate) struct Cpu {
    /// Nanoseconds, by thread.
    threads: HashMap<u32, u64>,
    /// Clock ticks of the whole process, with ended threads.
    ticks: u64,
}

/// Nanoseconds of a clock tick of `/proc` (`USER_HZ` is 100 on all Linux systems).
const TICK: u64 = 10_000_000;

impl Cpu {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let mut threads = HashMap::new();
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let task = task?;
            // A thread may end after the listing; the ticks still include it.
            let Ok(text) = std::fs::read_to_string(task.path().join("schedstat")) else { continue };
            let nanos = text.split(' ').next().context("schedstat has numbers")?.parse()?;
            threads.insert(task.file_name().to_string_lossy().parse()?, nanos);
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let (_, fields) = stat.rsplit_once(") ").context("stat names its command")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        Ok(Self { threads, ticks })
    }

    /// Nanoseconds used since: the exact sum over threads, or the process's ticks if threads have ended meanwhile.
    pub(crate) fn since(&self, earlier: &Self) -> u64 {
        let exact: u64 = self
            .threads
            .iter()
            .map(|(thread, nanos)| nanos.saturating_sub(earlier.threads.get(thread).copied().unwrap_or(0)))
            .sum();
        let coarse = (self.ticks - earlier.ticks) * TICK;
        if coarse > exact + exact / 10 + 4 * TICK { coarse } else { exact }
    }
}

/// CPU time of the children that a process waited for, in nanoseconds.
pub(crate) fn children_cpu(pid: u32) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").context("stat names its command")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    Ok((fields[13].parse::<u64>()? + fields[14].parse::<u64>()?) * TICK)
}

/// Private anonymous memory of the process, in bytes.
pub(crate) fn own_memory(pid: u32) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).context("smaps_rollup")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:")).context("Pss_Anon")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? << 10)
}

/// Resident memory of the process, in bytes.
pub(crate) fn memory(pid: u32) -> Result<u64> {
    status(pid, "VmRSS:")
}

/// Peak resident memory of the process, in bytes.
pub(crate) fn peak_memory(pid: u32) -> Result<u64> {
    status(pid, "VmHWM:")
}

fn status(pid: u32, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).context("the process's status")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? << 10)
}

/// Raises the limit of open files of this process and its children to `files`.
pub(crate) fn raise_file_limit(files: u64) -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    ensure!(most >= files, "{files} open files are needed, the hard limit is {most}: raise it (ulimit -Hn)");
    if limit.current.is_some_and(|current| current < files) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: limit.maximum })?;
    }
    Ok(())
}

/// The machine in one line, and the date.
pub(crate) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let model = model.trim_start_matches([' ', '\t', ':']);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory: u64 = read("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse().ok())
        .unwrap_or(0);
    let virtual_ = if info.contains(" hypervisor") { ", virtual" } else { "" };
    format!(
        "{model}, {cores} cores{virtual_}, {} GiB, Linux {}, {}",
        memory.div_ceil(1 << 20),
        read("/proc/sys/kernel/osrelease").trim(),
        jiff::Timestamp::now().strftime("%Y-%m-%d"),
    )
}
