//! The list of rows, and the program.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::clients::Wire;
use super::fan::{LOCKSTEP, Regime};
use super::gateway::serve_with;
use super::table::{Measured, Row, markdown, write};
use super::{
    abuse, agent, approval, changes, fan, floor, growth, hook, long_texts, memory, process, start, store, surfaces,
    terminal,
};

/// The sizes of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    quick: bool,
}

impl Size {
    /// `full`, or `full` divided by `part` in a smoke test.
    pub(crate) fn scale(self, full: usize, part: usize) -> usize {
        if self.quick { (full / part).max(1) } else { full }
    }

    /// Returns whether this is a smoke test.
    pub(crate) fn is_quick(self) -> bool {
        self.quick
    }
}

type Measure = Box<dyn Fn(Size) -> Result<Vec<Row>>>;

/// All rows by name.
fn all() -> Vec<(String, Measure)> {
    let mut all: Vec<(String, Measure)> = Vec::new();
    for (regime, crowds) in [
        (Regime::Pipelined, &[100, 1000][..]),
        (Regime::InFlight(32), &[100]),
        (Regime::InFlight(8), &[1000]),
        (LOCKSTEP, &[100, 1000]),
    ] {
        for wire in [Wire::WebSocket, Wire::Sse] {
            for &clients in crowds {
                let name = format!("fan-{}-{clients}-{}", wire.name(), regime.name().replace(' ', "-"));
                all.push((name, Box::new(move |size| fan::fan_out(size, wire, clients, regime))));
            }
        }
    }
    for clients in [1, 10] {
        all.push((format!("latency-{clients}"), Box::new(move |size| fan::latency(size, clients))));
    }
    all.push(("surface-watched".into(), Box::new(|size| surfaces::watched(size, 1000))));
    all.push(("approval-alone".into(), Box::new(approval::approval)));
    all.push(("approval-watched".into(), Box::new(approval::approval_watched)));
    all.push(("memory-idle".into(), Box::new(memory::idle)));
    all.push(("memory-sleeper".into(), Box::new(memory::sleeper)));
    all.push(("abuse".into(), Box::new(abuse::abuse)));
    for kind in long_texts::KINDS {
        all.push((format!("long-{}", kind.key), Box::new(move |size| long_texts::long_texts(size, kind))));
    }
    all.push(("growth-text".into(), Box::new(growth::text)));
    all.push(("growth-sessions".into(), Box::new(growth::sessions)));
    all.push(("growth-prompts".into(), Box::new(growth::prompts)));
    all.push(("growth-stored".into(), Box::new(growth::stored)));
    all.push(("growth-replay".into(), Box::new(store::replay_of_many)));
    all.push(("store".into(), Box::new(store::store)));
    all.push(("start".into(), Box::new(start::start)));
    all.push(("changes".into(), Box::new(changes::changes)));
    all.push(("hook".into(), Box::new(hook::hook)));
    all.push(("terminal".into(), Box::new(terminal::terminal)));
    all
}

/// Runs the role of a process that serves the bench; `None` for the bench itself.
fn run_role(args: &[&str]) -> Option<Result<()>> {
    let number = |text: &str| text.parse::<usize>().context("a number");
    Some(match *args {
        ["role-agent", control] => agent::run(Path::new(control), false),
        ["role-agent-prompted", control] => agent::run(Path::new(control), true),
        ["role-floor", wire, sockets, length] => {
            number(sockets).and_then(|sockets| floor::run(wire_named(wire), sockets, number(length)?))
        }
        ["role-floor-approvals", wire, length, file] => {
            number(length).and_then(|length| floor::run_approvals(wire_named(wire), length, Path::new(file)))
        }
        ["role-floor-relay"] => floor::run_relay(),
        _ => return None,
    })
}

/// The program.
pub(crate) fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = run_role(&args).unwrap_or_else(|| measure(&args));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Helper processes of the bench end with it.
        Err(_) if args.first().is_some_and(|arg| arg.starts_with("role-floor")) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn wire_named(name: &str) -> Wire {
    if name == Wire::Sse.name() { Wire::Sse } else { Wire::WebSocket }
}

fn measure(args: &[&str]) -> Result<()> {
    let size = Size { quick: args.contains(&"--quick") };
    let before = args.iter().find_map(|arg| arg.strip_prefix("--before="));
    // Cargo passes `--bench`.
    let names: Vec<&&str> = args.iter().filter(|arg| !arg.starts_with("--")).collect();
    let chosen: Vec<_> = all()
        .into_iter()
        .filter(|(name, _)| names.is_empty() || names.iter().any(|part| name.contains(**part)))
        .collect();
    anyhow::ensure!(!chosen.is_empty(), "no row is called so; there are: {}", {
        all().into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
    });
    process::raise_file_limit(4096)?;
    let machine = process::machine();
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for (name, measure) in chosen {
        eprintln!("{name}");
        let earlier = before.map(|program| {
            let _other = serve_with(program);
            measure(size)
        });
        match earlier.transpose().and_then(|earlier| Ok((earlier, measure(size)?))) {
            Ok((earlier, some)) => {
                let mut earlier = earlier.into_iter().flatten();
                let some: Vec<Measured> =
                    some.into_iter().map(|row| Measured { row, before: earlier.next() }).collect();
                eprint!("{}", markdown(&some).lines().skip(2).fold(String::new(), |all, line| all + line + "\n"));
                rows.extend(some);
            }
            Err(error) => {
                eprintln!("    FAILED: {error:#}");
                failed.push(name);
            }
        }
    }
    let table = markdown(&rows);
    println!("\n{machine}\n\n{table}");
    if args.contains(&"--write") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/performance.md");
        write(&path, &format!("\n{machine}\n\n{table}\n")).context("docs/performance.md")?;
    }
    anyhow::ensure!(failed.is_empty(), "wrong, not slow: {}", failed.join(" "));
    Ok(())
}
