//! Real agents, and a program that draws all the time, in a shared terminal (`plexus term`): three windows, a late one, a gateway that is
//! killed, and a first window that is closed. tmux says what stands on each screen, cell by cell.
#![cfg(target_os = "linux")] // the pinned Claude Code
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;
use crate::story_claude_terminal::{Claude, until};
use crate::story_gemini_terminal::Gemini;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::agents::FakeModel;
use common::gateway::{Gateway, PATIENCE, exe};
use common::terminal::Terminal;

const SIZE: (u16, u16) = (100, 40);

/// A window that attaches to the only shared terminal.
fn window(gateway: &Gateway, size: (u16, u16), more: &[&str]) -> Terminal {
    let home = gateway.home.display().to_string();
    Terminal::open(None, size, &[("PLEXUS_HOME", &home)], &[&[exe(), "term", "attach"], more].concat())
}

/// Every cell of a screen with its colours, and the cursor; its modes are the business of whoever types. Blanks that were written are not
/// told from those that were not, nor a cursor beyond the last column from one on it: what an erased line does to that differs by terminal.
fn cells(terminal: &Terminal) -> String {
    let (lines, columns) = (SIZE.1.try_into().unwrap(), SIZE.0.try_into().unwrap());
    let mut screen = vt100::Parser::new(lines, columns, 0);
    screen.process(terminal.capture(&["-e"]).trim_end_matches('\n').replace('\n', "\r\n").as_bytes());
    let column: u16 = terminal.format("#{cursor_x}").trim().parse().unwrap();
    let mut all = format!("{},{}", column.min(SIZE.0 - 1), terminal.format("#{cursor_y} #{cursor_flag}"));
    for row in 0..SIZE.1 {
        all += &format!("\n{row:02} ");
        for cell in (0..SIZE.0).filter_map(|column| screen.screen().cell(row, column)) {
            let blank = cell.contents().trim().is_empty();
            let foreground = if blank && !cell.inverse() { vt100::Color::Default } else { cell.fgcolor() };
            let look = (foreground, cell.bgcolor(), cell.bold() && !blank, cell.dim() && !blank, cell.inverse());
            let plain = look == (vt100::Color::Default, vt100::Color::Default, false, false, false);
            all += if blank { " " } else { cell.contents() };
            if !plain {
                all += &format!("{look:?}");
            }
        }
    }
    all
}

/// Waits until two screens are the same in every cell.
async fn same(what: &str, one: &Terminal, other: &Terminal) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (left, right) = (cells(one), cells(other));
        if left == right {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: the screens differ:\n{left}\n=====\n{right}");
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
}

async fn listed(gateway: &Gateway, command: &str) {
    until("the terminal in the gateway's list", async || {
        let (_, body) = gateway.get("/v1/terminals").await;
        let terminals = body["terminals"].as_array()?.clone();
        terminals.iter().any(|one| one["command"].to_string().contains(command)).then_some(())
    })
    .await;
}

/// Whoever joins sees what the first window shows, also while the gateway is gone, and after the first window is.
async fn looks_the_same(gateway: &mut Gateway, first: &Terminal, command: &str) {
    listed(gateway, command).await;
    let late = window(gateway, SIZE, &["--watch"]);
    same(&format!("{command}: a late joiner"), first, &late).await;
    // A smaller and a larger window: they show it, and change nothing for the others.
    let small = window(gateway, (50, 12), &["--watch"]);
    let large = window(gateway, (140, 60), &["--watch"]);
    small.until("a part of the screen", Terminal::text, |text| !text.trim().is_empty()).await;
    let shown = |text: &str| first.text().lines().all(|line| text.contains(line.trim_end()));
    large.until("the whole screen", Terminal::text, shown).await;
    same(&format!("{command}: beside other sizes"), first, &late).await;
    gateway.kill();
    let again = window(gateway, SIZE, &["--watch"]);
    same(&format!("{command}: without a gateway"), first, &again).await;
    gateway.again().await;
    listed(gateway, command).await;
    // The window is closed, and the program goes on in another one.
    assert!(first.tmux().arg("kill-server").status().unwrap().success());
    let elsewhere = window(gateway, SIZE, &[]);
    same(&format!("{command}: taken up elsewhere"), &elsewhere, &late).await;
}

/// Ends the programs of a test with it, whatever becomes of it.
struct Ends(PathBuf);

impl Drop for Ends {
    fn drop(&mut self) {
        for socket in std::fs::read_dir(self.0.join("terminals")).into_iter().flatten() {
            let socket = socket.unwrap().path();
            let mut kill = Command::new(exe());
            kill.args(["term", "kill"]).arg(socket.file_stem().unwrap()).env("PLEXUS_HOME", &self.0);
            let _ = kill.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}

#[tokio::test]
async fn term_shows_claude_code_alike_in_every_window() {
    let model = FakeModel::start();
    let mut gateway = Gateway::start("").await;
    let _ends = Ends(gateway.home.clone());
    let claude = Claude::start_by(&model, &gateway.home, &[exe(), "term", "--"]).await;
    claude.prompt("FAKE:text said in a shared terminal").await;
    claude.terminal.wrote("said in a shared terminal", 2).await;
    claude.prompt("FAKE:shell touch one ;; text done").await;
    claude.terminal.until("its dialog", Terminal::text, |text| text.contains("Do you want to proceed?")).await;
    looks_the_same(&mut gateway, &claude.terminal, "claude").await;
}

#[tokio::test]
async fn term_shows_gemini_cli_alike_in_every_window() {
    let model = FakeModel::start();
    let mut gateway = Gateway::start("").await;
    let _ends = Ends(gateway.home.clone());
    let gemini = Gemini::start(&model, &gateway.home, true).await;
    gemini.prompt("FAKE:text said in a shared terminal").await;
    gemini.terminal.wrote("said in a shared terminal", 2).await;
    looks_the_same(&mut gateway, &gemini.terminal, "gemini").await;
}

#[tokio::test]
async fn term_shows_htop_alike_in_every_window() {
    let mut gateway = Gateway::start("").await;
    let _ends = Ends(gateway.home.clone());
    let home = gateway.home.display().to_string();
    let have = |name: &str| Command::new("which").arg(name).stdout(Stdio::null()).status().unwrap().success();
    // Every machine has the one.
    let program = if have("htop") { ["htop", "-d", "100"] } else { ["top", "-d", "10"] };
    let words = [&[exe(), "term", "--"], &program[..]].concat();
    let first = Terminal::open(None, SIZE, &[("PLEXUS_HOME", &home)], &words);
    first.until("its table", Terminal::text, |text| text.contains("PID")).await;
    looks_the_same(&mut gateway, &first, program[0]).await;
}
