//! The cost of knowing what changed in a session's folder: the time that a prompt takes longer, and the CPU time of a list and of a run, with
//! the git processes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Size;
use super::gateway::Gateway;
use super::process::{Cpu, children_cpu};
use super::table::{Row, Target, median};

/// Prompts of which the median is taken.
const PROMPTS: usize = 9;
/// Lists of which the mean is taken.
const LISTS: usize = 10;
/// Sessions of the large repository.
const SESSIONS: usize = 8;

fn git(folder: &Path, args: &[&str]) -> Result<()> {
    let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
    let done = Command::new("git").args(identity).args(args).current_dir(folder).output().context("git")?;
    ensure!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// A repository with one commit of `committed` files, and `loose` files that are not committed.
fn repository(gateway: &Gateway, name: &str, committed: usize, loose: usize) -> Result<PathBuf> {
    let folder = gateway.home().with_file_name(name);
    std::fs::create_dir_all(&folder)?;
    git(&folder, &["init", "-q"])?;
    let write = |prefix: &str, count: usize| -> Result<()> {
        for n in 0..count {
            let below = folder.join(format!("{prefix}{}", n / 100));
            if n % 100 == 0 {
                std::fs::create_dir_all(&below)?;
            }
            std::fs::write(below.join(format!("{n}.txt")), format!("file {n}\n").repeat(20))?;
        }
        Ok(())
    };
    write("committed", committed)?;
    git(&folder, &["add", "."])?;
    git(&folder, &["commit", "-q", "--allow-empty", "-m", "all"])?;
    write("loose", loose)?;
    Ok(folder)
}

fn session_in(gateway: &mut Gateway, folder: &Path) -> Result<String> {
    let body = json!({ "runtime_id": "bench", "cwd": folder });
    let session = gateway.call("POST", "/v1/sessions", &body)?;
    if !gateway.control.has_agent() {
        gateway.control.accept()?;
    }
    Ok(session["session_id"].as_str().context("a session")?.to_owned())
}

fn list(gateway: &Gateway, session: &str) -> Result<Value> {
    Ok(serde_json::from_str(&gateway.text(&format!("/v1/sessions/{session}/changes"))?)?)
}

/// One run without work; returns the milliseconds until the agent had its prompt.
fn run(gateway: &mut Gateway, session: &str) -> Result<f64> {
    let begin = Instant::now();
    gateway.prompt(session)?;
    let took = begin.elapsed().as_secs_f64() * 1000.0;
    gateway.control.say("end")?;
    // The list comes once the end of the run is noted.
    list(gateway, session)?;
    Ok(took)
}

fn prompts(gateway: &mut Gateway, session: &str) -> Result<f64> {
    let mut times = (0..PROMPTS).map(|_| run(gateway, session)).collect::<Result<Vec<_>>>()?;
    Ok(median(&mut times))
}

/// CPU milliseconds of the gateway and its ended children.
fn cpu_of(gateway: &Gateway, work: impl FnOnce(&Gateway) -> Result<()>) -> Result<f64> {
    let pid = gateway.process.id();
    let (own, children) = (Cpu::of(pid)?, children_cpu(pid)?);
    work(gateway)?;
    let nanos = Cpu::of(pid)?.since(&own) + (children_cpu(pid)? - children);
    Ok(nanos as f64 / 1e6)
}

/// A prompt and a list with 1,500 uncommitted files, at run 1 and at run 300; eight sessions at once in a repository of 60,000 files.
pub(crate) fn changes(size: Size) -> Result<Vec<Row>> {
    let (loose, runs, committed) = (size.scale(1500, 50), size.scale(300, 50), size.scale(60_000, 100));
    let mut gateway = Gateway::start()?;
    let empty = repository(&gateway, "empty", 0, 0)?;
    let folder = repository(&gateway, "loose", 100, loose)?;
    let (of_empty, session) = (session_in(&mut gateway, &empty)?, session_in(&mut gateway, &folder)?);
    let floor = prompts(&mut gateway, &of_empty)?;
    let first = prompts(&mut gateway, &session)?;
    for _ in 0..runs {
        run(&mut gateway, &session)?;
    }
    let last = prompts(&mut gateway, &session)?;
    let lists = |gateway: &Gateway, session: &str| {
        let cpu = cpu_of(gateway, |gateway| {
            for n in 0..LISTS {
                // Another state each time, so that none is remembered.
                std::fs::write(folder.join("new.txt"), format!("{n}\n"))?;
                std::thread::sleep(std::time::Duration::from_millis(800));
                let found = list(gateway, session)?;
                ensure!(found["files"].as_array().is_some_and(|files| files.len() == 1), "{found}");
            }
            Ok(())
        })?;
        Ok::<_, anyhow::Error>(cpu / LISTS as f64)
    };
    let listed = lists(&gateway, &session)?;

    let large = repository(&gateway, "large", committed, 0)?;
    let sessions = (0..SESSIONS).map(|_| session_in(&mut gateway, &large)).collect::<Result<Vec<_>>>()?;
    let at_once = |gateway: &mut Gateway| -> Result<()> {
        let asked: Vec<_> = std::thread::scope(|scope| {
            let gateway = &*gateway;
            let ask =
                |session| gateway.call("POST", &format!("/v1/sessions/{session}/prompt"), &json!({ "text": "go" }));
            let asking: Vec<_> = sessions.iter().map(|session| scope.spawn(move || ask(session))).collect();
            asking.into_iter().map(|one| one.join().expect("a thread")).collect()
        });
        asked.into_iter().collect::<Result<Vec<_>>>()?;
        for _ in &sessions {
            gateway.control.hear("prompted")?;
            gateway.control.say("end")?;
        }
        sessions.iter().try_for_each(|session| list(gateway, session).map(drop))
    };
    at_once(&mut gateway)?;
    let pid = gateway.process.id();
    let (own, children) = (Cpu::of(pid)?, children_cpu(pid)?);
    at_once(&mut gateway)?;
    let each = (Cpu::of(pid)?.since(&own) + (children_cpu(pid)? - children)) as f64 / 1e9 / SESSIONS as f64;
    let mut late = 0;
    for session in &sessions {
        let found = list(&gateway, session)?;
        let runs = found["runs"].as_array().context("runs")?;
        ensure!(runs.len() == 2, "{found}");
        late += runs.iter().filter(|run| run["late"] == true).count();
    }

    let row = |name: String, unit, floor, plexus, most| Row { name, unit, floor, plexus, target: Target::AtMost(most) };
    let prompted = |n| format!("a prompt, {loose} uncommitted files, run {n}");
    Ok(vec![
        row(prompted(1), "ms", Some(floor), first, floor + 20.0),
        row(prompted(runs), "ms", Some(floor), last, floor + 20.0),
        row(format!("a list of changes after {runs} runs, CPU"), "ms", None, listed, 100.0),
        row(format!("a run, {committed} files, {SESSIONS} sessions at once, CPU"), "s", None, each, 0.3),
        row(format!("late runs of {}", 2 * SESSIONS), "", None, late as f64, 0.0),
    ])
}
