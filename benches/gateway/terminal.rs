//! The cost of linking for the user of the terminal: real Claude Code in a pseudo-terminal, against the loopback model.

use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::Size;
use super::gateway::{Gateway, program};
use super::process::Kill;
use super::table::{Row, Target, median};

/// A key that Claude Code takes without asking; it remembers the last 20 characters of those it was told to use.
const KEY: &str = "sk-ant-fake-0123456789abcdef";
/// The agents of the tests, and their model.
const AGENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents");
/// Pieces of output that wait to be looked at; then the terminal waits.
const OUTPUT: usize = 4096;
/// Time for anything to appear on the screen.
const PATIENCE: Duration = Duration::from_secs(60);
/// A screen on which nothing appeared for this long is at rest.
const QUIET: Duration = Duration::from_millis(200);
/// The terminal's lines and columns.
const SIZE: (NonZeroU16, NonZeroU16) = (NonZeroU16::new(80).unwrap(), NonZeroU16::new(100).unwrap());
/// Lines of the first turn, of which each next one has one more, and the time between two of them in ms.
const LINES: (usize, usize) = (60, 20);

/// Claude Code in a terminal.
struct Claude {
    output: Receiver<(Instant, Vec<u8>)>,
    screen: vt100::Parser,
    turns: usize,
    input: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    _terminal: Box<dyn MasterPty + Send>,
    _dirs: [tempfile::TempDir; 2],
}

impl Drop for Claude {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Claude {
    /// Starts it; `state` is the state folder that its hooks look in, if it is linked.
    fn start(model: u16, state: Option<&Path>) -> Result<Self> {
        let (home, work) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let folder = work.path().canonicalize()?;
        let known = json!({
            "hasCompletedOnboarding": true, "theme": "dark", "hasSeenAutoDefaultNudge": true,
            "customApiKeyResponses": { "approved": [&KEY[KEY.len() - 20..]], "rejected": [] },
            "projects": { (folder.to_str().context("UTF-8")?): { "hasTrustDialogAccepted": true } },
        });
        std::fs::write(home.path().join(".claude.json"), known.to_string())?;
        std::fs::create_dir(home.path().join(".claude"))?;
        let settings = json!({ "permissions": { "defaultMode": "default" } });
        std::fs::write(home.path().join(".claude/settings.json"), settings.to_string())?;
        let claude = installed()?;
        if state.is_some() {
            link(home.path(), &claude)?;
        }
        let size = PtySize { rows: SIZE.0.get(), cols: SIZE.1.get(), pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size)?;
        let mut command = CommandBuilder::new(&claude);
        command.cwd(&folder);
        command.env("TERM", "xterm-256color");
        command.env("HOME", home.path());
        command.env("PLEXUS_HOME", state.unwrap_or(home.path()));
        command.env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{model}"));
        command.env("ANTHROPIC_API_KEY", KEY);
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        command.env("DISABLE_AUTOUPDATER", "1");
        let child = pair.slave.spawn_command(command)?;
        let mut reader = pair.master.try_clone_reader()?;
        let (send, output) = sync_channel(OUTPUT);
        std::thread::spawn(move || {
            let mut buffer = [0; 64 << 10];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                if send.send((Instant::now(), buffer[..length].to_vec())).is_err() {
                    break;
                }
            }
        });
        let input = pair.master.take_writer()?;
        let mut claude = Self {
            output,
            screen: vt100::Parser::new(SIZE.0, SIZE.1, 0),
            turns: 0,
            input,
            child,
            _terminal: pair.master,
            _dirs: [home, work],
        };
        claude.until("❯")?;
        claude.rest()?;
        Ok(claude)
    }

    /// Waits for a text on the screen; returns the time when it appeared.
    fn until(&mut self, words: &str) -> Result<Instant> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Ok((at, bytes)) = self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) else {
                bail!("{words} did not appear:\n{}", self.screen.screen().contents());
            };
            self.screen.process(&bytes);
            if self.screen.screen().contents().contains(words) {
                return Ok(at);
            }
        }
    }

    /// Waits until nothing appears any more.
    fn rest(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.output.recv_timeout(QUIET) {
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => bail!("the agent ended"),
                Ok((_, bytes)) => {
                    self.screen.process(&bytes);
                    ensure!(Instant::now() < deadline, "the screen never rests");
                }
            }
        }
    }

    fn press(&mut self, keys: &[u8]) -> Result<()> {
        self.input.write_all(keys)?;
        Ok(self.input.flush()?)
    }

    /// The time from a key to what it draws, in ms.
    fn key(&mut self) -> Result<f64> {
        let begin = Instant::now();
        self.press(b"x")?;
        let (at, bytes) = self.output.recv_timeout(PATIENCE).context("the key was not drawn")?;
        self.screen.process(&bytes);
        self.rest()?;
        Ok((at - begin).as_secs_f64() * 1000.0)
    }

    /// The time from Enter to the last line of a turn, in ms.
    fn turn(&mut self) -> Result<f64> {
        // Control-U: what was typed before.
        self.press(b"\x15")?;
        self.rest()?;
        let (lines, gap) = (LINES.0 + self.turns, LINES.1);
        self.turns += 1;
        for key in format!("FAKE:lines {lines} {gap}").bytes() {
            self.press(&[key])?;
        }
        self.rest()?;
        let begin = Instant::now();
        self.press(b"\r")?;
        let at = self.until(&format!("line-{lines:04}"))?;
        self.rest()?;
        Ok((at - begin).as_secs_f64() * 1000.0)
    }
}

/// Claude Code as the tests have it, installed if it is not yet.
fn installed() -> Result<PathBuf> {
    let output = Command::new("sh").arg(AGENTS.to_owned() + "/install.sh").stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "tests/agents/install.sh failed");
    let folder = String::from_utf8(output.stdout)?;
    let cpu = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let program = format!("node_modules/@anthropic-ai/claude-agent-sdk-linux-{cpu}/claude");
    Ok(Path::new(folder.lines().last().unwrap_or_default()).join(program))
}

/// The loopback model of the tests, and its port; it ends with its stdin.
fn model() -> Result<(Kill, u16)> {
    let mut command = Command::new("node");
    command.arg(AGENTS.to_owned() + "/fake_model.mjs").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut model = Kill(command.spawn()?);
    let mut line = String::new();
    BufReader::new(model.0.stdout.take().context("its stdout")?).read_line(&mut line)?;
    let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok()).context("its port")?;
    Ok((model, port))
}

/// Links it with `plexus link`.
fn link(home: &Path, claude: &Path) -> Result<()> {
    let bin = home.join("bin");
    std::fs::create_dir(&bin)?;
    std::os::unix::fs::symlink(claude, bin.join("claude"))?;
    let path = format!("{}:{}", bin.display(), std::env::var("PATH")?);
    let mut command = Command::new(program());
    command.args(["link", "claude", "--yes"]).env_remove("CLAUDE_CONFIG_DIR").env("HOME", home).env("PATH", path);
    let output = command.env("PLEXUS_HOME", home.join("records")).output()?;
    ensure!(output.status.success(), "it cannot be linked: {output:?}");
    Ok(())
}

/// Keys and text of a terminal that is linked, while a gateway runs, while none does and while one hangs; the floor is the same agent,
/// not linked.
pub(crate) fn terminal(size: Size) -> Result<Vec<Row>> {
    let (keys, turns) = (size.scale(60, 20), size.scale(6, 6));
    let (_model, port) = model()?;
    let (gateway, hung, nowhere) = (Gateway::start()?, Gateway::start()?, tempfile::tempdir()?);
    let pid = i32::try_from(hung.process.id()).ok().and_then(Pid::from_raw).context("a pid")?;
    let mut all = [
        (Claude::start(port, None)?, Vec::new(), Vec::new()),
        (Claude::start(port, Some(&gateway.home()))?, Vec::new(), Vec::new()),
        (Claude::start(port, Some(nowhere.path()))?, Vec::new(), Vec::new()),
        (Claude::start(port, Some(&hung.home()))?, Vec::new(), Vec::new()),
    ];
    kill_process(pid, Signal::STOP)?;
    // One after the other, so that they meet the same machine.
    for _ in 0..keys {
        for (claude, keys, _) in &mut all {
            keys.push(claude.key()?);
        }
    }
    for _ in 0..turns {
        for (claude, _, turns) in &mut all {
            turns.push(claude.turn()?);
        }
    }
    kill_process(pid, Signal::CONT)?;
    let [floor, rest @ ..] = &mut all;
    let floor = (median(&mut floor.1), median(&mut floor.2));
    let mut rows = Vec::new();
    for ((_, keys, turns), how) in rest.iter_mut().zip(["", ", no gateway", ", the gateway hangs"]) {
        let row = |what: String, most: f64, floor: f64, times: &mut [f64]| Row {
            name: format!("{what}{how}"),
            unit: "ms",
            floor: Some(floor),
            plexus: median(times),
            target: Target::Times(most),
        };
        // Nothing of ours runs at a key: what differs is noise.
        rows.push(row("a key in Claude Code's own terminal, linked".into(), 1.2, floor.0, keys));
        rows.push(row(format!("a turn of {} lines there", LINES.0), 1.05, floor.1, turns));
    }
    Ok(rows)
}
