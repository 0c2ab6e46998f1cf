//! `plexus term` in real terminals (tmux): a program looks as it does without it, in every window, whoever comes and goes.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::gateway::{Gateway, PATIENCE, Ws, alive, exe};
use common::moments::until_so;
use common::terminal::Terminal;
use plexus_protocol::TerminalId;
use plexus_terminal::attachment::{self, TerminalReader};
use plexus_terminal::folder;
use plexus_terminal::model::{Model, TerminalSize};
use plexus_terminal::wire::{FromHost, TerminalExit, ToHost};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

/// The shell's output when `plexus term` has ended; the exit code follows.
const ENDED: &str = "ended-with-";

/// A state folder whose terminals end with it.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn terminals(&self) -> PathBuf {
        self.dir.path().join(folder::TERMINALS)
    }

    fn plexus(&self, args: &[&str]) -> Output {
        Command::new(exe()).args(args).env("PLEXUS_HOME", self.dir.path()).output().unwrap()
    }

    /// A window with `plexus term ARGS` in a shell, whose later output shows whether the terminal was restored.
    fn window(&self, size: (u16, u16), args: &str) -> Terminal {
        let line = format!("printf 'before\\n'; {} term {args}; printf '{ENDED}%s\\n' $?; exec cat", exe());
        let home = self.dir.path().display().to_string();
        Terminal::open(None, size, &[("PLEXUS_HOME", &home), ("PS1", "$ ")], &["sh", "-c", &line])
    }

    /// The only terminal.
    async fn only(&self) -> TerminalId {
        until_so("one terminal", async || folder::list(&self.terminals()).len() == 1).await;
        folder::list(&self.terminals()).remove(0).terminal_id
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        end_terminals(&self.terminals());
    }
}

fn end_terminals(dir: &Path) {
    for one in folder::list(dir) {
        let _ = plexus_terminal::attach::kill(dir, &one.terminal_id);
    }
}

/// The screen with its colours, cell by cell, and where the cursor stands.
fn cells(terminal: &Terminal) -> String {
    let modes =
        "#{cursor_x},#{cursor_y} #{cursor_flag} #{alternate_on} #{keypad_cursor_flag} #{keypad_flag} #{mouse_any_flag}";
    format!("{}\n{}", terminal.capture(&["-e", "-N"]), terminal.format(modes))
}

/// The same for who joined later. Blanks that were written at the end of a line are not told from those that were not, and what stood in
/// the window before is not the program's.
fn seen(terminal: &Terminal) -> String {
    let text = terminal.capture(&["-e"]).replace("before", "");
    format!(
        "{text}\n{}",
        terminal.format("#{cursor_x},#{cursor_y} #{cursor_flag} #{alternate_on} #{keypad_cursor_flag}")
    )
}

/// Waits until two windows look the same.
async fn same(what: &str, one: &Terminal, other: &Terminal) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (left, right) = (cells(one), cells(other));
        if left == right {
            return left;
        }
        assert!(Instant::now() < deadline, "{what}: the windows differ:\n{left}\n=====\n{right}");
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
}

/// Waits until the window's command has ended; returns its exit code.
async fn ended(window: &Terminal) -> String {
    let text = window.until(ENDED, Terminal::all, |text| text.contains(ENDED)).await;
    let state = window.format("#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_cursor_flag}");
    assert_eq!(state, "0 1 0 0", "the terminal is as it was");
    text.split(ENDED).nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
}

async fn shows(window: &Terminal, words: &str) -> String {
    window.until(words, Terminal::text, |text| text.contains(words)).await
}

fn text_file(dir: &Path, lines: usize) -> String {
    let path = dir.join("file.txt");
    let text: String =
        (1..=lines).map(|line| format!("line {line} — ünïcode 漢字 {}\n", "word ".repeat(line % 30))).collect();
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn term_shows_programs_as_a_terminal_without_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let file = text_file(dir.path(), 200);
    let vi = format!("vi -u NONE -N -i NONE -n {file}");
    let less = format!("less {file}");
    let colours = r#"bash --norc -c 'for i in 1 2 3 4 5 6 7; do printf "\033[3${i}mcolour $i\033[0m \033[4${i};1mground\033[0m\n"; done; sleep 1000'"#;
    let programs: [(&str, &str, &[&[&str]]); 3] = [
        ("vi", &vi, &[&["5", "C-f"], &["G"], &["o", "typed here", "Escape"], &[":", "split", "Enter"], &["10", "C-b"]]),
        ("less", &less, &[&["Space"], &["G"], &["g", "/", "line 42", "Enter"], &["j", "j", "k"]]),
        ("bash", colours, &[]),
    ];
    for (name, program, steps) in programs {
        let home = Home::new();
        // The same line, with and without.
        let direct = Terminal::open(
            None,
            (70, 20),
            &[("PS1", "$ ")],
            &["sh", "-c", &format!("printf 'before\\n'; {program}; printf '{ENDED}%s\\n' $?; exec cat")],
        );
        let shared = home.window((70, 20), &format!("-- {program}"));
        let first = shared.until(name, cells, |text| text.lines().count() > 5 && !text.contains("before\n\n")).await;
        assert!(!first.is_empty());
        same(&format!("{name}: at first"), &direct, &shared).await;
        for (step, keys) in steps.iter().enumerate() {
            direct.keys(keys);
            shared.keys(keys);
            same(&format!("{name}: step {step}"), &direct, &shared).await;
        }
        // Whoever joins now sees the same.
        let late = home.window((70, 20), "attach");
        let deadline = Instant::now() + PATIENCE;
        while seen(&late) != seen(&direct) {
            assert!(Instant::now() < deadline, "{name}: a late joiner:\n{}\n=====\n{}", seen(&late), seen(&direct));
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
    }
}

#[tokio::test]
async fn term_windows_of_three_sizes_follow_the_owner() {
    let home = Home::new();
    let owner = home.window((60, 15), "-- bash --norc");
    shows(&owner, "$").await;
    owner.words("for i in 1 2 3 4 5 6 7 8 9; do echo line-$i-abcdefghijklmnopqrstuvwxyz; done\n");
    shows(&owner, "line-9-").await;
    home.only().await;
    let watch = |size| home.window(size, "attach --watch");
    let (same_size, small, large) = (watch((60, 15)), watch((20, 6)), watch((100, 30)));
    let text = shows(&same_size, "line-9-").await;
    // What stood in the owner's window before is nobody else's.
    let shared = owner.text().replace("before", "");
    assert_eq!(text.trim_end(), shared.trim_end());
    let cut = shows(&small, "line-9-abcdefghijklm").await;
    assert!(!cut.contains("line-1-"), "the part around the cursor:\n{cut}");
    let text = shows(&large, "line-9-").await;
    assert_eq!(text.trim_end(), shared.trim_end(), "as much as there is");
    // Nothing that is typed in a window that only looks is typed at all.
    small.words("typed-by-nobody\n");
    owner.words("stty size\n");
    for window in [&owner, &same_size, &large, &small] {
        shows(window, "15 60").await;
    }
    assert!(!owner.all().contains("typed-by-nobody"));
    // Another terminal takes it up: its size counts, and the first one shows a part of it.
    let second = home.window((90, 25), "attach");
    shows(&second, "15 60").await;
    second.words("stty size\n");
    for window in [&second, &large, &owner] {
        shows(window, "25 90").await;
    }
    owner.words("echo typed-$((40+2))-by-the-first\n");
    for window in [&second, &owner, &large] {
        shows(window, "typed-42-by-the-first").await;
    }
    // It leaves: the first one is the owner again.
    second.keys(&["C-\\"]);
    second.keys(&["d"]);
    assert_eq!(ended(&second).await, "0");
    owner.words("stty size; echo again\n");
    shows(&owner, "again\n").await;
    assert!(owner.text().contains("15 60"), "{}", owner.text());
    small.words("q");
    assert_eq!(ended(&small).await, "0");
    owner.words("exit 3\n");
    for window in [&owner, &same_size, &large] {
        assert_eq!(ended(window).await, "3");
    }
    until_so("the holder's end", async || folder::list(&home.terminals()).is_empty()).await;
}

#[tokio::test]
async fn term_outlives_its_window_and_is_taken_up_elsewhere() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let file = text_file(dir.path(), 50);
    let first = home.window((70, 20), &format!("-- vi -u NONE -N -i NONE -n {file}"));
    shows(&first, "line 1 ").await;
    first.keys(&["o", "not lost", "Escape"]);
    shows(&first, "not lost").await;
    first.until("the end of typing", Terminal::text, |text| !text.contains("-- INSERT --")).await;
    let before = seen(&first);
    let id = home.only().await;
    drop(first);
    // Its window is gone, and nobody looks.
    until_so("nobody", async || folder::info(&home.terminals(), &id).unwrap().attached == 0).await;
    let listed = String::from_utf8(home.plexus(&["term"]).stdout).unwrap();
    assert!(listed.contains(id.as_str()) && listed.contains("running") && listed.contains("vi -u NONE"), "{listed}");
    let second = home.window((70, 20), "attach");
    shows(&second, "not lost").await;
    second.until("the same screen", seen, |now| now == before).await;
    second.keys(&[":", "q!", "Enter"]);
    assert_eq!(ended(&second).await, "0");
    assert!(second.all().contains("before"), "what was there before was kept:\n{}", second.all());
}

#[tokio::test]
async fn term_passes_the_exit_status_on_and_restores_the_terminal() {
    let home = Home::new();
    for (program, code) in [
        ("sh -c 'exit 0'", "0"),
        ("sh -c 'echo words; exit 7'", "7"),
        ("sh -c 'kill -9 $$'", "137"),
        (r#"sh -c 'printf "\033[?1049h\033[?25l\033[?1002h\033[?1h"; kill -9 $$'"#, "137"),
        ("/nowhere/nothing", "127"),
        ("no-such-program-at-all", "127"),
        ("/etc/passwd", "126"),
    ] {
        let window = home.window((70, 10), &format!("-- {program}"));
        assert_eq!(ended(&window).await, code, "{program}");
        assert!(window.text().contains("before"), "nothing was cleared:\n{}", window.text());
        if program.contains("words") {
            assert!(window.text().contains("before\nwords\nended"), "as if nothing were there:\n{}", window.text());
        }
    }
    // A signal ends the window's program, and not the terminal's.
    let window = home.window((70, 10), "-- sh -c 'echo up; exec sleep 1000'");
    shows(&window, "up").await;
    let id = home.only().await;
    let pid = folder::info(&home.terminals(), &id).unwrap().pid;
    let shell: u32 = window.format("#{pane_pid}").parse().unwrap();
    let attached = common::gateway::family(shell)
        .into_iter()
        .find(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path.ends_with("plexus")));
    Command::new("kill").arg(attached.unwrap().to_string()).status().unwrap();
    assert_eq!(ended(&window).await, "143");
    assert!(alive(pid), "the program goes on");
    // A terminal does not show itself.
    let inside = Command::new(exe())
        .args(["term", "attach"])
        .env("PLEXUS_HOME", home.dir.path())
        .env("PLEXUS_TERMINAL", id.as_str())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&inside.stderr).contains("would show itself"), "{inside:?}");
    // `kill` ends it, and says how.
    let out = home.plexus(&["term", "kill", &id.as_str()[..5]]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), format!("{id} ended by SIGHUP\n"));
    until_so("the program's end", async || !alive(pid)).await;
}

#[tokio::test]
async fn term_end_without_anybody_is_kept_and_told() {
    let home = Home::new();
    let out = home.plexus(&["term", "--detached", "--", "sh", "-c", "echo last words; exit 5"]);
    let id = String::from_utf8(out.stdout).unwrap().trim().to_owned();
    assert!(id.starts_with("t_"), "{id}");
    until_so("its end", async || {
        let listed = home.plexus(&["term"]);
        String::from_utf8_lossy(&listed.stdout).contains("exited 5")
    })
    .await;
    let listed: Value = serde_json::from_slice(&home.plexus(&["term", "--json"]).stdout).unwrap();
    assert_eq!(listed["terminals"][0]["exited"], json!({ "code": 5 }));
    let window = home.window((70, 10), "attach");
    assert_eq!(ended(&window).await, "5");
    assert!(window.all().contains("last words"), "{}", window.all());
    until_so("the holder's end", async || folder::list(&home.terminals()).is_empty()).await;
    let out = home.plexus(&["term", "attach"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("there is no terminal"), "{out:?}");
    let out = home.plexus(&["term", "--", "true"]);
    assert_eq!(out.status.code(), Some(2), "not without a terminal: {out:?}");
}

#[tokio::test]
async fn term_is_closed_to_others_and_lists_are_safe_to_print() {
    let home = Home::new();
    let out = home.plexus(&[
        "term",
        "--detached",
        "--",
        "sh",
        "-c",
        "printf '\\033]0;a\\033[31mb\\342\\200\\256c\\007'; exec sleep 1000",
    ]);
    assert!(out.status.success(), "{out:?}");
    let id = home.only().await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.terminals()), 0o700);
    assert_eq!(mode(&folder::socket(&home.terminals(), &id)), 0o600);
    let mut listed = String::new();
    until_so("the title", async || {
        listed = String::from_utf8(home.plexus(&["term"]).stdout).unwrap();
        listed.contains('a') && folder::info(&home.terminals(), &id).is_ok_and(|info| !info.title.is_empty())
    })
    .await;
    assert!(!listed.contains('\u{1b}') && !listed.contains('\u{202e}'), "{listed:?}");
    // A folder that others may enter is refused.
    std::fs::set_permissions(home.terminals(), PermissionsExt::from_mode(0o755)).unwrap();
    let out = home.plexus(&["term", "--detached", "--", "true"]);
    assert_eq!(out.status.code(), Some(126));
    assert!(String::from_utf8_lossy(&out.stderr).contains("owner only"), "{out:?}");
}

#[tokio::test]
async fn term_paste_of_ten_megabytes_loses_nothing() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let text: String = (0..160_000).map(|line| format!("{line:08} {}\n", "pasted words ".repeat(4))).collect();
    std::fs::write(&from, &text).unwrap();
    assert!(text.len() > 9_500_000);
    let window = home.window((80, 20), &format!("-- sh -c 'stty -echo; echo up; cat >{}'", to.display()));
    shows(&window, "up").await;
    let paste = |args: &[&str]| assert!(window.tmux().args(args).status().unwrap().success());
    paste(&["load-buffer", from.to_str().unwrap()]);
    paste(&["paste-buffer", "-r", "-t", "it"]);
    until_so("all of it", async || std::fs::metadata(&to).is_ok_and(|meta| meta.len() >= text.len() as u64)).await;
    window.keys(&["C-d"]);
    assert_eq!(ended(&window).await, "0");
    assert!(std::fs::read_to_string(&to).unwrap() == text, "not a byte was lost or added");
}

/// Reads messages until one fits.
async fn read(what: &str, reader: &mut TerminalReader, mut fits: impl FnMut(&FromHost) -> bool) -> FromHost {
    let news = async {
        loop {
            let message = reader.next(|_| Ok(())).await;
            if fits(&message) {
                return message;
            }
            assert!(!matches!(message, FromHost::Bye(_)), "{what}: {message:?}");
        }
    };
    tokio::time::timeout(PATIENCE, news).await.unwrap_or_else(|_| panic!("{what} did not come"))
}

#[tokio::test]
async fn term_viewer_that_stops_reading_slows_nobody_and_gets_a_snapshot() {
    let home = Home::new();
    let script = "read go; i=0; while [ $i -lt 400000 ]; do i=$((i+1)); echo flood-$i-abcdefghijklmnopqrstuvwxyz; done; echo the-very-end; read end";
    let out = home.plexus(&["term", "--detached", "--", "bash", "-c", script]);
    assert!(out.status.success(), "{out:?}");
    let (dir, id) = (home.terminals(), home.only().await);
    let (_, mut stuck, _kept) = attachment::attach(&dir, &id, false).await.unwrap();
    let (_, mut reads, writes) = attachment::attach(&dir, &id, true).await.unwrap();
    read("a snapshot", &mut stuck, |message| matches!(message, FromHost::Snapshot(_))).await;
    writes.input(Bytes::from_static(b"\n")).await.unwrap();
    // The other one sees the end, though this one reads nothing.
    let mut model = Model::new(TerminalSize::DEFAULT, 0);
    read("the end of the flood", &mut reads, |message| {
        match message {
            FromHost::Snapshot(bytes) => {
                model = Model::new(TerminalSize::DEFAULT, 0);
                model.feed(bytes);
            }
            FromHost::Output(bytes) => drop(model.feed(bytes)),
            _ => {}
        }
        model.screen().contents().contains("the-very-end")
    })
    .await;
    let holder = Command::new("sh")
        .args(["-c", &format!("pgrep -f 'term-hold --id {id}' | head -1 | xargs -I@ cat /proc/@/status")])
        .output()
        .unwrap();
    let status = String::from_utf8_lossy(&holder.stdout).into_owned();
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().trim().to_owned();
    let kilobytes: u64 = rss.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kilobytes < 64 << 10, "the holder has {rss}");
    // Once it reads again, a snapshot tells what is there now.
    let mut last = Model::new(TerminalSize::DEFAULT, 0);
    let mut dropped = false;
    read("what is there now", &mut stuck, |message| {
        match message {
            FromHost::Snapshot(bytes) => {
                dropped = true;
                last = Model::new(TerminalSize::DEFAULT, 0);
                last.feed(bytes);
            }
            FromHost::Output(bytes) => drop(last.feed(bytes)),
            _ => {}
        }
        last.screen().contents().contains("the-very-end")
    })
    .await;
    assert!(dropped, "it fell behind");
    assert_eq!(last.screen().contents(), model.screen().contents());
    writes.input(Bytes::from_static(b"\n")).await.unwrap();
    for reader in [&mut stuck, &mut reads] {
        let end = read("the exit", reader, |message| matches!(message, FromHost::Exited(_))).await;
        assert_eq!(end, FromHost::Exited(TerminalExit { code: Some(0), signal: None }));
    }
}

#[tokio::test]
async fn term_sizes_that_flood_end_with_the_last_one() {
    let home = Home::new();
    assert!(home.plexus(&["term", "--detached", "--", "bash", "--norc"]).status.success());
    let (dir, id) = (home.terminals(), home.only().await);
    let (_, mut reader, writer) = attachment::attach(&dir, &id, true).await.unwrap();
    for round in 0..2000u16 {
        writer.send(&ToHost::Own(TerminalSize { rows: 10 + round % 50, cols: 20 + round % 100 })).await.unwrap();
    }
    writer.send(&ToHost::Own(TerminalSize { rows: 33, cols: 111 })).await.unwrap();
    until_so("the last size", async || folder::info(&dir, &id).unwrap().size == TerminalSize { rows: 33, cols: 111 })
        .await;
    writer.input(Bytes::from_static(b"stty size\n")).await.unwrap();
    let mut text = Vec::new();
    read("the size", &mut reader, |message| {
        if let FromHost::Output(bytes) = message {
            text.extend_from_slice(bytes);
        }
        String::from_utf8_lossy(&text).contains("33 111")
    })
    .await;
}

#[tokio::test]
async fn term_questions_of_a_program_are_answered_once() {
    let home = Home::new();
    // Asks where the cursor stands, and counts the answers that come within a second.
    let script = r#"stty -icanon -echo min 0 time 10; printf '\033[6n\033[c'; answer=$(cat | tr -d '\033'); echo "got:$answer:"; exec sleep 1000"#;
    let path = home.dir.path().join("ask");
    std::fs::write(&path, script).unwrap();
    let count =
        |text: &str, mark: char| text.split("got:").nth(1).unwrap().split(':').next().unwrap().matches(mark).count();
    // By the owner's terminal, and by no viewer.
    let owner = home.window((70, 12), &format!("-- sh -c 'read go; . {}'", path.display()));
    let id = home.only().await;
    let watch = home.window((70, 12), "attach --watch");
    let (_, mut page, kept) = attachment::attach(&home.terminals(), &id, true).await.unwrap();
    until_so("three", async || folder::info(&home.terminals(), &id).unwrap().attached == 3).await;
    owner.keys(&["Enter"]);
    let text =
        owner.until("answers", Terminal::text, |text| text.contains("got:") && text.trim_end().ends_with(':')).await;
    assert_eq!((count(&text, 'R'), count(&text, 'c')), (1, 1), "{text}");
    shows(&watch, "got:").await;
    let mut seen = Vec::new();
    read("the answers", &mut page, |message| {
        if let FromHost::Output(bytes) | FromHost::Snapshot(bytes) = message {
            seen.extend_from_slice(bytes);
        }
        String::from_utf8_lossy(&seen).contains("got:")
    })
    .await;
    assert!(!seen.windows(4).any(|four| four == b"\x1b[6n"), "viewers are not asked");
    drop((owner, watch, page, kept));
    assert!(home.plexus(&["term", "kill", id.as_str()]).status.success());
    // By the holder, where nobody is.
    let out = home.plexus(&["term", "--detached", "--", "sh", path.to_str().unwrap()]);
    assert!(out.status.success(), "{out:?}");
    let window = home.window((70, 12), "attach --watch");
    let text =
        window.until("answers", Terminal::text, |text| text.contains("got:") && text.trim_end().ends_with(':')).await;
    assert_eq!((count(&text, 'R'), count(&text, 'c')), (1, 1), "{text}");
}

/// Reads the terminal as a page does: its screen after each message, until it contains `words`.
async fn page_shows(ws: &mut Ws, model: &mut Option<Model>, words: &str) -> Value {
    let mut last = Value::Null;
    while model.as_ref().is_none_or(|model| !model.screen().contents().contains(words)) {
        match ws.frame().await.expect("a message").unwrap() {
            Message::Text(text) => {
                last = serde_json::from_str(&text).unwrap();
                if last["type"] == "snapshot" {
                    let of = |name: &str| u16::try_from(last["size"][name].as_u64().unwrap()).unwrap();
                    *model = Some(Model::new(TerminalSize { rows: of("rows"), cols: of("cols") }, 0));
                }
            }
            Message::Binary(bytes) => drop(model.as_mut().expect("a snapshot first").feed(&bytes)),
            other => panic!("{other:?}"),
        }
    }
    last
}

async fn next_json(ws: &mut Ws) -> Value {
    loop {
        if let Message::Text(text) = ws.frame().await.expect("a message").unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

#[tokio::test]
async fn term_is_shown_by_the_gateway_and_outlives_it() {
    let mut gateway = Gateway::start("").await;
    let dir = gateway.home.join(folder::TERMINALS);
    assert_eq!(gateway.get("/v1/terminals").await, (200, json!({ "terminals": [] })));
    let started = Command::new(exe())
        .args(["term", "--detached", "--", "bash", "--norc"])
        .env("PLEXUS_HOME", &gateway.home)
        .env("PS1", "$ ")
        .output()
        .unwrap();
    let id = String::from_utf8(started.stdout).unwrap().trim().to_owned();
    let (_, listed) = gateway.get("/v1/terminals").await;
    assert_eq!(listed["terminals"][0]["terminal_id"], id.as_str());
    assert_eq!(listed["terminals"][0]["command"], json!(["bash", "--norc"]));
    let path = format!("/v1/terminals/{id}/ws");
    let mut ws = gateway.ws_plain(&path).await;
    let mut model = None;
    assert_eq!(page_shows(&mut ws, &mut model, "$ ").await["may_type"], true);
    ws.send(&json!({ "type": "input", "data": "echo from-$((40+2))-the-page\n" })).await;
    page_shows(&mut ws, &mut model, "from-42-the-page").await;
    // Killed, it takes nothing with it; the next one finds the terminal as it is.
    gateway.kill();
    until_so("nobody", async || folder::list(&dir)[0].attached == 0).await;
    gateway.again().await;
    let mut ws = gateway.ws_plain(&path).await;
    let mut model = None;
    page_shows(&mut ws, &mut model, "from-42-the-page").await;
    // A size makes it the owner. What is typed does not wait for it.
    ws.send(&json!({ "type": "size", "rows": 30, "cols": 100 })).await;
    let sized = loop {
        let message = next_json(&mut ws).await;
        if message["size"]["rows"] == 30 {
            break message;
        }
    };
    assert_eq!((&sized["size"]["cols"], &sized["owner"]), (&json!(100), &json!(true)));
    ws.send(&json!({ "type": "input", "data": "stty size\n" })).await;
    let mut model = Some(Model::new(TerminalSize { rows: 30, cols: 100 }, 0));
    page_shows(&mut ws, &mut model, "30 100").await;
    for bad in [
        r#"{"type":"input"}"#,
        "[]",
        "nothing",
        r#"{"type":"size","rows":0,"cols":1}"#,
        r#"{"type":"input","data":"x","more":1}"#,
    ] {
        ws.send_frame(Message::text(bad)).await.unwrap();
        assert_eq!(next_json(&mut ws).await["code"], "bad_message", "{bad}");
    }
    let long = json!({ "type": "input", "data": "x".repeat(70_000) });
    ws.send(&long).await;
    assert_eq!(next_json(&mut ws).await["code"], "too_large");
    ws.send(&json!({ "type": "input", "data": "exit 4\n" })).await;
    let end = loop {
        let message = next_json(&mut ws).await;
        if message["type"] != "snapshot" {
            break message;
        }
    };
    assert_eq!((&end["type"], &end["code"]), (&json!("exited"), &json!(4)));
    assert!(ws.text().await.is_none(), "and the connection ends");
    let (status, problem) = gateway.get(&path).await;
    assert_eq!((status, &problem["code"]), (404, &json!("terminal_not_found")));
    end_terminals(&dir);
}

#[tokio::test]
async fn term_devices_type_only_with_the_scope_and_see_none_if_limited() {
    let gateway = Gateway::demo().await;
    let dir = gateway.home.join(folder::TERMINALS);
    let started = Command::new(exe())
        .args(["term", "--detached", "--", "cat"])
        .env("PLEXUS_HOME", &gateway.home)
        .output()
        .unwrap();
    let id = String::from_utf8(started.stdout).unwrap().trim().to_owned();
    let path = format!("/v1/terminals/{id}/ws");
    let token = async |grant: Value| {
        let (status, made) = gateway.post("/v1/devices", grant).await;
        assert_eq!(status, 201, "{made}");
        made["token"].as_str().unwrap().to_owned()
    };
    // What phones get, and even an administrator.
    for scopes in
        [json!(["watch"]), json!(["watch", "prompt", "approve"]), json!(["watch", "prompt", "approve", "admin"])]
    {
        let token = token(json!({ "name": "phone", "scopes": scopes })).await;
        let mut ws = gateway.ws_at(&path, &token).await;
        let snapshot = next_json(&mut ws).await;
        assert_eq!((&snapshot["type"], &snapshot["may_type"]), (&json!("snapshot"), &json!(false)));
        for message in
            [json!({ "type": "input", "data": "forbidden\n" }), json!({ "type": "size", "rows": 40, "cols": 90 })]
        {
            ws.send(&message).await;
            let refused = next_json(&mut ws).await;
            assert_eq!((&refused["type"], &refused["code"]), (&json!("refused"), &json!("scope_missing")), "{scopes}");
        }
    }
    let mut ws = gateway.ws_at(&path, &token(json!({ "name": "desk", "scopes": ["watch", "type"] })).await).await;
    let mut model = None;
    ws.send(&json!({ "type": "input", "data": "allowed\n" })).await;
    page_shows(&mut ws, &mut model, "allowed").await;
    let screen = model.unwrap().screen().contents();
    assert!(!screen.contains("forbidden"), "{screen}");
    assert_eq!(folder::list(&dir)[0].size, TerminalSize::DEFAULT);
    // A device that may see a part of the gateway sees no terminals.
    let limited = token(json!({ "name": "part", "scopes": ["watch"], "runtimes": ["demo"] })).await;
    let as_limited = async |path: &str| {
        let url = format!("{}{path}", gateway.url);
        gateway.http.get(url).bearer_auth(&limited).send().await.unwrap()
    };
    assert_eq!(as_limited("/v1/terminals").await.json::<Value>().await.unwrap(), json!({ "terminals": [] }));
    assert_eq!(as_limited(&path).await.status(), 404);
    let (status, refused) =
        gateway.post("/v1/devices", json!({ "name": "x", "scopes": ["watch", "type"], "runtimes": ["demo"] })).await;
    assert_eq!(status, 422, "{refused}");
    let approver = token(json!({ "name": "x", "scopes": ["type", "approve"] })).await;
    let refused =
        gateway.http.get(format!("{}/v1/terminals", gateway.url)).bearer_auth(&approver).send().await.unwrap();
    assert_eq!(refused.status(), 403, "typing without watching is nothing");
    end_terminals(&dir);
}
