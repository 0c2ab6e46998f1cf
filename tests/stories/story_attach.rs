//! `plexus attach` in a real terminal (tmux): its screen, its keys, and how it restores the terminal.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::gateway::{Gateway, PATIENCE, demo, exe, held_runtime, said};
use common::terminal::Terminal;
use serde_json::json;

/// The shell's output when the program has ended; the exit code follows.
const ENDED: &str = "ended-with-";

/// A shell in a terminal, with `plexus attach` in it.
struct Screen {
    terminal: Terminal,
}

impl Deref for Screen {
    type Target = Terminal;

    fn deref(&self) -> &Terminal {
        &self.terminal
    }
}

impl Screen {
    fn open(gateway: &Gateway, size: (u16, u16), args: &str) -> Self {
        Self::with(&gateway.home, size, args, &[("COLORTERM", "truecolor")])
    }

    fn with(home: &Path, size: (u16, u16), args: &str, env: &[(&str, &str)]) -> Self {
        // Inside a shell, whose later output shows whether the terminal was restored.
        let env: String = env.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        let after = format!("echo {ENDED}$?; stty -a | tr ';' '\\n' > stty; exec cat");
        let line = format!("echo before; {env}{} attach {args}; {after}", exe());
        let home = home.display().to_string();
        Self { terminal: Terminal::open(None, size, &[("PLEXUS_HOME", &home)], &["sh", "-c", &line]) }
    }

    async fn until(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        self.terminal.until(what, Terminal::text, is).await
    }

    async fn shows(&self, words: &str) -> String {
        self.until(words, |text| text.contains(words)).await
    }

    async fn hides(&self, words: &str) {
        self.until(&format!("the end of {words:?}"), |text| !text.contains(words)).await;
    }

    /// Waits until the program has ended, and fails unless the terminal is restored; returns the exit code.
    async fn ended(&self) -> String {
        let text = self.shows(ENDED).await;
        assert!(text.contains("before"), "what was there before is there again:\n{text}");
        let state = self.format("#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{mouse_standard_flag}");
        assert_eq!(state, "0 1 0 0", "screen, cursor, mouse");
        let deadline = Instant::now() + PATIENCE;
        let stty = loop {
            match std::fs::read_to_string(self.dir.path().join("stty")) {
                Ok(text) if text.contains("echoke") => break text,
                _ => assert!(Instant::now() < deadline, "stty said nothing"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        for word in [" icanon", " isig", " echo ", " opost"] {
            assert!(format!(" {} ", stty.replace('\n', " ")).contains(word), "{word} is off: {stty}");
        }
        let code = text.split(ENDED).nth(1).unwrap();
        code.split_whitespace().next().unwrap().to_owned()
    }

    /// The process under the shell.
    async fn pid(&self) -> String {
        let shell = self.format("#{pane_pid}");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let all = common::gateway::family(shell.parse().unwrap());
            let found = all.iter().find(|pid| {
                std::fs::read(format!("/proc/{pid}/cmdline"))
                    .is_ok_and(|line| String::from_utf8_lossy(&line).contains("attach"))
                    && std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path.ends_with("plexus"))
            });
            if let Some(pid) = found {
                return pid.to_string();
            }
            assert!(Instant::now() < deadline, "no process");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A screenshot with colours, if screenshots are wanted.
    fn shot(&self, name: &str) {
        let Some(dir) = std::env::var_os("PLEXUS_SHOTS").map(PathBuf::from) else { return };
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("attach-{name}.ansi")), self.capture(&["-e"])).unwrap();
    }
}

/// The screen without what differs between runs: times, ages, folders.
fn normalized(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let words: Vec<String> =
            line.split(' ')
                .map(|word| {
                    if word.starts_with("/tmp") || word.starts_with("/var") { "FOLDER".into() } else { word.to_owned() }
                })
                .collect();
        words.join(" ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn attach_prompts_watches_and_answers_by_key_at_80x24() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let screen = Screen::open(&gateway, (80, 24), "");
    screen.shows("● live").await;
    let list = screen.shows("SESSION").await;
    assert!(list.contains("demo in") && list.contains("idle"), "{list}");
    screen.shot("sessions-80x24");
    screen.keys(&["Enter"]);
    screen.shows("write to the agent").await;
    screen.words("think ;; plan ;; diff ;; stream 30 2 ;; ask make deploy");
    screen.keys(&["Enter"]);
    screen.shows("Allow once").await;
    let asked = screen.shows("chunk-0030").await;
    assert!(asked.contains("demo asks") && asked.contains("make deploy"), "{asked}");
    screen.shot("asked-80x24");
    // The composer keeps the keys; a line above it says how to answer.
    screen.shows("demo asks: Esc, then a").await;
    screen.words("a");
    screen.shows("› a").await;
    screen.shows("Esc answers it").await;
    screen.keys(&["C-c", "Escape"]);
    // A key counts only after the card had the focus for a moment.
    screen.shows("will not ask about similar").await;
    screen.keys(&["a"]);
    let done = screen.shows("allowed (allow_once): make deploy").await;
    screen.shows("Allowed once by plexus attach (local)").await;
    assert!(done.contains("chunk-0030"), "{done}");
    screen.shows("── done").await;
    screen.shot("allowed-80x24");
    screen.shows("Enter send").await;
    screen.hides("Esc closes this").await;
    screen.keys(&["Escape"]);
    screen.shows("Esc write").await;
    screen.keys(&["g"]);
    let top = screen.until("the beginning", |text| text.contains("thought: Let me think")).await;
    for words in ["▌ think ;; plan ;; diff", "Plan 3/3", "✔ Check it", "G: to now"] {
        assert!(top.contains(words), "no {words:?}:\n{top}");
    }
    screen.shot("beginning-80x24");
    screen.keys(&["?"]);
    insta::assert_snapshot!("help_80x24", normalized(&screen.shows("first, last line").await));
    screen.keys(&["Escape"]);
    screen.hides("Ctrl-C Ctrl-C").await;
    screen.keys(&["q"]);
    screen.shows("SESSION").await;
    screen.keys(&["q"]);
    assert_eq!(screen.ended().await, "0");
    let events = gateway.events(&session).await;
    assert!(said(&events, None).contains("allowed (allow_once): make deploy"));
}

#[tokio::test]
async fn attach_shows_other_answers_in_place_and_to_a_late_joiner() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "stream 40 1 ;; ask make deploy ;; stream 2000 2").await;
    let request = gateway.open_request(&session).await;
    let (status, phone) = gateway.post("/v1/devices", json!({ "name": "phone", "scopes": ["watch", "approve"] })).await;
    assert_eq!(status, 201, "{phone}");
    let screen = Screen::open(&gateway, (160, 50), "last");
    // The request may appear before the history was read.
    screen
        .until("what was said, and the question", |text| text.contains("demo asks") && text.contains("chunk-0040"))
        .await;
    screen.shot("asked-160x50");
    let id = request["request_id"].as_str().unwrap();
    let url = format!("{}/v1/requests/{id}/answer", gateway.url);
    let answer = gateway
        .http
        .post(url)
        .bearer_auth(phone["token"].as_str().unwrap())
        .json(&json!({ "option_id": "allow_once" }));
    assert_eq!(answer.send().await.unwrap().status(), 200);
    screen.shows("Allowed once by phone").await;
    screen.shot("answered-elsewhere-160x50");
    // During streaming, earlier text scrolls up and stays.
    screen.shows("chunk-0200").await;
    screen.resize(80, 24);
    screen
        .until("the small screen", |text| text.lines().next().is_some_and(|line| line.trim_end().ends_with("● live")))
        .await;
    screen.resize(120, 30);
    screen.until("the larger one", |text| text.lines().count() >= 29 && text.contains("● live")).await;
    screen.resize(30, 8);
    screen.shows("plexus needs 40x12").await;
    screen.resize(100, 30);
    gateway.until_ended(&session, &run).await;
    screen.shows("── done").await;
    // The composer has the keys again after the answer.
    screen.until("the end of the card", |text| !text.contains("Esc closes this") && text.contains("Enter send")).await;
    screen.keys(&["Escape"]);
    screen.shows("Esc write").await;
    screen.keys(&["g"]);
    screen.shows("▌ stream 40 1").await;
}

#[tokio::test]
async fn attach_opens_the_inbox_and_answers_several_requests_at_once() {
    let gateway = Gateway::demo().await;
    let mut sessions = Vec::new();
    for n in 0..3 {
        let session = gateway.session("demo").await;
        gateway.prompt(&session, &format!("ask make part{n}")).await;
        gateway.open_request(&session).await;
        sessions.push(session);
    }
    for (size, name) in [((40, 12), "40x12"), ((80, 24), "80x24"), ((200, 50), "200x50")] {
        let screen = Screen::open(&gateway, size, "");
        let shown = |text: &str| ["3 waiting", "make part2", "Allow once"].iter().all(|words| text.contains(words));
        screen.until("the inbox with an open card", shown).await;
        screen.shot(&format!("inbox-{name}"));
        screen.keys(&["q"]);
        assert_eq!(screen.ended().await, "0");
    }
    let screen = Screen::open(&gateway, (80, 24), "");
    screen.shows("3 waiting").await;
    screen.keys(&["k"]);
    // The first two, each read for a moment.
    for (command, selected) in [("make part2", "1 selected"), ("make part1", "2 selected")] {
        let card = format!("│ │ {command}");
        let armed = |text: &str| text.contains(&card) && text.contains("will not ask about similar");
        screen.until("an armed card", armed).await;
        screen.keys(&["x"]);
        screen.shows(selected).await;
        screen.keys(&["j"]);
    }
    screen.keys(&["a"]);
    let asked = |text: &str| {
        ["Allow 2 requests once?", "make part2", "make part1", "allow 2"].iter().all(|words| text.contains(words))
    };
    screen.until("the question which requests are meant", asked).await;
    screen.shot("several-80x24");
    // Not within the first moment.
    tokio::time::sleep(Duration::from_millis(500)).await;
    screen.keys(&["y"]);
    screen.shows("allowed 2").await;
    screen.shows("1 waiting").await;
    // The agent goes on once it has its answer.
    for session in &sessions[1..] {
        let deadline = Instant::now() + PATIENCE;
        while !said(&gateway.events(session).await, None).contains("allowed (allow_once)") {
            assert!(Instant::now() < deadline, "{session}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    // What is left is denied, with a reason for all.
    screen.until("one left", |text| !text.contains("make part1")).await;
    screen.keys(&["x"]);
    screen.shows("1 selected").await;
    screen.keys(&["r"]);
    screen.shows("reason of all denials").await;
    screen.words("not today");
    screen.keys(&["Enter"]);
    screen.shows("Deny 1 request?").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    screen.keys(&["y"]);
    screen.shows("denied 1").await;
    screen.shows("Nothing waits for you").await;
}

#[tokio::test]
async fn attach_shows_a_list_and_a_session_side_by_side() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    gateway.until_ended(&session, &gateway.prompt(&session, "plan ;; echo first words").await).await;
    let screen = Screen::open(&gateway, (200, 50), "");
    // The selected session is shown beside the list, with its plan at the right.
    let beside = |text: &str| text.contains("▌1 session") && text.matches("Plan 3/3").count() == 2;
    screen.until("the session and its plan, beside the list", beside).await;
    screen.shot("sessions-200x50");
    screen.keys(&["Tab"]);
    screen.shows("write to the agent").await;
    screen.words("ask make deploy");
    screen.keys(&["Enter"]);
    screen.shows("demo asks: Esc, then a").await;
    screen.keys(&["Escape"]);
    screen.until("an armed card", |text| text.contains("Allow once") && text.contains("will not ask")).await;
    screen.shot("asked-200x50");
    screen.keys(&["a"]);
    screen.shows("allowed (allow_once): make deploy").await;
    screen.keys(&["Tab"]);
    screen.shows("▌1 session").await;
    screen.keys(&["q"]);
    assert_eq!(screen.ended().await, "0");
}

#[tokio::test]
async fn attach_shows_a_lost_gateway_and_resumes() {
    let mut gateway = Gateway::start(&held_runtime("demo", &[exe(), "agent", "demo"], "")).await;
    let session = gateway.session("demo").await;
    gateway.until_ended(&session, &gateway.prompt(&session, "echo one").await).await;
    let screen = Screen::open(&gateway, (100, 30), &session);
    screen.shows("── done").await;
    gateway.prompt(&session, "echo two ;; ask make deploy ;; echo three").await;
    screen.shows("demo asks").await;
    gateway.kill();
    let text = screen.shows("○ offline").await;
    assert!(text.contains("This data is from"), "{text}");
    screen.shot("offline-100x30");
    gateway.again().await;
    screen.shows("● live").await;
    screen.shows("demo asks: Esc, then a").await;
    screen.keys(&["Escape"]);
    screen.until("an armed card", |text| text.contains("will not ask about similar")).await;
    screen.keys(&["a"]);
    screen.shows("allowed (allow_once): make deploy").await;
    let text = screen.shows("three").await;
    assert_eq!(text.matches("▌ echo two").count(), 1, "nothing twice:\n{text}");
    common::gateway::end_runtimes(&gateway.home);
}

#[tokio::test]
async fn attach_palette_chooses_agent_settings_and_makes_a_link() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let screen = Screen::open(&gateway, (120, 30), &session);
    screen.shows("· Ask").await;
    screen.keys(&["C-k"]);
    screen.words("mode au");
    screen.shows("the agent's mode: Auto").await;
    screen.keys(&["Enter"]);
    screen.shows("· Auto").await;
    screen.keys(&["C-k"]);
    screen.words("share");
    screen.shows("create a read-only link").await;
    screen.keys(&["Enter"]);
    let text = screen.shows("can watch this session, but not act in it").await;
    assert!(text.contains(&format!("{}/#share=", gateway.url)), "{text}");
    screen.shot("share-120x30");
    screen.keys(&["Escape"]);
    screen.hides("but not act in it").await;
    screen.keys(&["C-k"]);
    screen.words("start");
    screen.keys(&["Enter"]);
    screen.shows("preset: gemini").await;
    screen.words("nothing-of-the-kind");
    screen.keys(&["Enter"]);
    screen.shows("attached: not done").await;
    // The agent is restarted, and the session is still there.
    screen.keys(&["C-k"]);
    screen.words("runtimes");
    screen.shows("attached agents").await;
    screen.keys(&["Enter"]);
    screen.shows("WHAT IT IS").await;
    screen.keys(&["R"]);
    screen.shows("Restart demo?").await;
    screen.keys(&["y"]);
    screen.shows("demo restarts").await;
}

#[tokio::test]
async fn attach_pairs_a_device_and_shows_usage_and_settings() {
    let gateway = Gateway::demo().await;
    let screen = Screen::open(&gateway, (80, 24), "");
    screen.shows("live").await;
    screen.keys(&["5"]);
    screen.shows("DEVICE").await;
    screen.keys(&["p"]);
    screen.shows("elevated risk").await;
    screen.shot("pair-80x24");
    screen.keys(&["Enter"]);
    let whole = |text: &str| text.contains("Valid for") && text.contains("the code.") && !text.contains("Asking");
    let text = screen.until("the whole code", whole).await;
    screen.shot("pair-code-80x24");
    assert!(
        text.contains('▀') && text.contains("Only this machine"),
        "a code, and a hint that only this machine sees it:\n{text}"
    );
    let code = text.split("Code ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap().to_owned();
    let (status, joined) = gateway.post("/v1/pair", json!({ "code": code, "name": "Alma's phone" })).await;
    assert_eq!(status, 202, "{joined}");
    let asked = |text: &str| text.contains("wants to join") && text.contains("no: refuse");
    let text = screen.until("the number", asked).await;
    screen.shot("pair-number-80x24");
    assert!(text.contains("Alma's phone") && text.contains(&joined["number"].to_string()), "{text}");
    // Keys have no effect at first: those that were on their way are no answer.
    tokio::time::sleep(Duration::from_millis(600)).await;
    screen.keys(&["y"]);
    screen.shows("is paired").await;
    screen.keys(&["Escape"]);
    screen.hides("is paired").await;
    screen.shows("Alma's phone").await;
    let (_, devices) = gateway.get("/v1/devices").await;
    let phone = devices["devices"].as_array().unwrap().iter().find(|one| one["name"] == "Alma's phone").unwrap();
    assert_eq!(
        (&phone["approve_up_to"], &phone["scopes"]),
        (&json!("elevated"), &json!(["watch", "prompt", "approve"]))
    );
    screen.keys(&["U"]);
    screen.shows("No usage was reported for these days").await;
    screen.shows("Ceiling of a day      none").await;
    screen.shot("usage-none-80x24");
    screen.keys(&["d"]);
    screen.shows("a day: 5 USD").await;
    screen.words("2 USD, 1M tokens");
    screen.keys(&["Enter"]);
    screen.shows("Ceiling of a day      2 USD, 1000000 tokens").await;
    let (_, ceilings) = gateway.get("/v1/usage/ceilings").await;
    assert_eq!(ceilings["set"]["day"]["tokens"], 1_000_000, "{ceilings}");
    screen.keys(&["Escape"]);
    screen.hides("No usage was reported").await;
    screen.keys(&[","]);
    let text = screen.shows("Only this machine reaches the gateway").await;
    screen.shot("settings-80x24");
    assert!(text.contains(env!("CARGO_PKG_VERSION")) && text.contains(&gateway.url), "{text}");
}

#[tokio::test]
async fn attach_starts_the_first_session_from_nothing() {
    let gateway = Gateway::start("").await;
    let folder = tempfile::tempdir().unwrap();
    // Low, where the line of the agent has only the chosen one.
    let screen = Screen::open(&gateway, (80, 16), "");
    screen.shows("▌Agent").await;
    screen.shows("installed ·").await;
    let chosen = |text: &str| text.lines().find(|line| line.contains("▌Agent")).map(str::to_owned).unwrap_or_default();
    for _ in 0..40 {
        let before = chosen(&screen.text());
        if before.contains("demo") {
            break;
        }
        screen.keys(&["Down"]);
        screen.until("the next agent", |text| chosen(text) != before).await;
    }
    screen.shot("new-80x16");
    screen.keys(&["Enter"]);
    screen.shows("▌Folder").await;
    // A folder that is not there: it says so, and what was typed stays.
    screen.keys(&["C-a", "C-k"]);
    screen.words(&format!("{}/none", folder.path().display()));
    screen.keys(&["Enter"]);
    screen.shows("▌Title").await;
    screen.keys(&["Enter"]);
    screen.words("echo hello from there");
    screen.shows("hello from there").await;
    screen.keys(&["Enter"]);
    let failed = screen.shows("That did not work").await;
    assert!(failed.contains("hello from there"), "{failed}");
    screen.shot("new-failed-80x16");
    assert_eq!(gateway.get("/v1/runtimes").await.1["runtimes"], json!([]), "nothing is left");
    screen.keys(&["BTab", "BTab"]);
    screen.shows("▌Folder").await;
    screen.keys(&["BSpace", "BSpace", "BSpace", "BSpace", "BSpace"]);
    screen.keys(&["BTab", "Tab", "Enter"]);
    screen.shows("▌Title").await;
    screen.keys(&["Enter", "Enter"]);
    screen.shows("── done").await;
    let (_, all) = gateway.get("/v1/sessions").await;
    assert_eq!(all["sessions"][0]["cwd"], json!(folder.path()), "{all}");
    let session = all["sessions"][0]["session_id"].as_str().unwrap();
    assert!(said(&gateway.events(session).await, None).contains("hello from there"));
    screen.shot("new-opened-80x16");
}

#[tokio::test]
async fn attach_restores_the_terminal_however_it_ends() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    gateway.prompt(&session, "stream 5000 2").await;
    for (signal, code) in [("TERM", "143"), ("INT", "130"), ("HUP", "129")] {
        let screen = Screen::open(&gateway, (80, 24), "last --mouse");
        screen.shows("chunk-").await;
        let pid = screen.pid().await;
        assert!(Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success());
        assert_eq!(screen.ended().await, code, "{signal}");
    }
    let screen = Screen::open(&gateway, (80, 24), "last");
    screen.shows("chunk-").await;
    screen.keys(&["C-c", "C-c"]);
    assert_eq!(screen.ended().await, "0");
}

#[tokio::test]
async fn attach_suspends_and_resumes() {
    let gateway = Gateway::demo().await;
    gateway.session("demo").await;
    let screen = Screen::open(&gateway, (80, 24), "last");
    screen.shows("write to the agent").await;
    let pid = screen.pid().await;
    screen.keys(&["C-z"]);
    let deadline = Instant::now() + PATIENCE;
    let state = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    };
    while state(&pid) != 'T' {
        assert!(Instant::now() < deadline, "it does not stop");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(screen.format("#{alternate_on} #{cursor_flag}"), "0 1", "the shell has the terminal");
    assert!(Command::new("kill").args(["-CONT", &pid]).status().unwrap().success());
    screen.shows("write to the agent").await;
    assert_eq!(screen.format("#{alternate_on}"), "1");
    screen.words("echo back");
    screen.keys(&["Enter"]);
    screen.shows("── done").await;
}

#[tokio::test]
async fn attach_works_with_sixteen_colours_and_none() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    gateway.until_ended(&session, &gateway.prompt(&session, "think ;; plan ;; diff ;; echo done").await).await;
    for (name, env) in
        [("16", [("TERM", "screen"), ("COLORTERM", "")]), ("none", [("TERM", "tmux-256color"), ("NO_COLOR", "1")])]
    {
        let screen = Screen::with(&gateway.home, (80, 24), "last", &env);
        screen.shows("── done").await;
        let ansi = screen.capture(&["-e"]);
        screen.shot(&format!("colours-{name}"));
        let styles = ansi.split("\u{1b}[").skip(1).filter_map(|piece| piece.split_once('m')).map(|(style, _)| style);
        let mut coloured = 0;
        for number in styles.flat_map(|style| style.split(';')).filter_map(|number| number.parse::<u8>().ok()) {
            assert!(!matches!(number, 38 | 48), "{name}: a colour that is not there: {ansi}");
            coloured += usize::from(matches!(number, 30..=37 | 40..=47 | 90..=107));
        }
        assert_eq!(coloured > 0, name == "16", "{name}: {ansi}");
    }
}

#[tokio::test]
async fn attach_neutralises_hostile_agent_text() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let before = {
        let screen = Screen::open(&gateway, (100, 30), "");
        screen.shows("SESSION").await;
        screen.format("#{pane_title} #{cursor_flag} #{alternate_on} #{mouse_any_flag} #{keypad_cursor_flag} #{insert_flag} #{wrap_flag} #{origin_flag}")
    };
    let screen = Screen::open(&gateway, (100, 30), "last");
    screen.shows("write to the agent").await;
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}]52;c;b3duZWQ=\u{7}\u{1b}[?25h\u{1b}[?1049l\u{1b}c\u{1b}[2J\u{1b}[?1000h\u{1b}[4h\u{1b}[?7l\u{1b}[?6h\u{9b}31m\u{90}x\u{9c}\u{202e}gnp.exe";
    let run = gateway.prompt(&session, &format!("echo {hostile} the end ;; ask {hostile}")).await;
    let text = screen.shows("demo asks").await;
    assert!(
        text.contains("\\u{1b}]0;owned") && text.contains("\\u{202e}gnp.exe"),
        "it is shown as what it is:\n{text}"
    );
    screen.shot("hostile-100x30");
    assert_eq!(
        screen.format("#{pane_title} #{cursor_flag} #{alternate_on} #{mouse_any_flag} #{keypad_cursor_flag} #{insert_flag} #{wrap_flag} #{origin_flag}"),
        before
    );
    let buffers = screen.tmux().args(["list-buffers"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&buffers.stdout).contains("owned"), "the clipboard");
    gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({ "run_id": run })).await;
}

#[tokio::test]
async fn attach_without_gateway_session_or_terminal_says_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let screen = Screen::with(home.path(), (80, 24), "", &[]);
    assert_eq!(screen.ended().await, "69");
    assert!(screen.text().replace('\n', "").contains("start one with `plexus serve`"), "{}", screen.text());

    let gateway = Gateway::start(&demo()).await;
    let screen = Screen::open(&gateway, (80, 24), "last");
    assert_eq!(screen.ended().await, "1");
    assert!(screen.text().contains("there are no sessions yet"), "{}", screen.text());
    let screen = Screen::open(&gateway, (80, 24), "");
    screen.shows("No sessions yet").await;
    screen.keys(&["N"]);
    screen.shows("▌What is to be done?").await;
    screen.keys(&["Enter"]);
    screen.shows("write to the agent").await;

    let out =
        Command::new(exe()).arg("attach").env("PLEXUS_HOME", &gateway.home).stdin(Stdio::null()).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("use `plexus tail` for pipes"));
}

/// A form that an agent draws: its text tries to leave the frame.
fn deploy_form() -> serde_json::Value {
    json!({
        "surface": "deploy", "title": "Deploy", "pin": true,
        "data": { "who": "", "force": false, "done": 0.25, "rows": [{ "n": "linux" }, { "n": "macos" }] },
        "components": [
            { "id": "root", "component": "Column", "children": ["evil", "build", "rows", "who", "force", "go", "stop"] },
            { "id": "evil", "component": "Text", "text": "up \u{1b}[2J\u{1b}]0;owned\u{7} to you" },
            { "id": "build", "component": "Progress", "label": "Build", "value": { "path": "/done" } },
            { "id": "rows", "component": "Table", "columns": [{ "key": "n", "label": "Target" }], "rows": { "path": "/rows" } },
            { "id": "who", "component": "TextField", "label": "Name", "value": { "path": "/who" } },
            { "id": "force", "component": "CheckBox", "label": "Force", "value": { "path": "/force" } },
            { "id": "go", "component": "Button", "child": "go-text",
              "action": { "event": { "name": "submit", "context": { "who": { "path": "/who" }, "force": { "path": "/force" } } } } },
            { "id": "go-text", "component": "Text", "text": "Go" },
            { "id": "stop", "component": "Button", "child": "stop-text", "action": { "event": { "name": "stop" } } },
            { "id": "stop-text", "component": "Text", "text": "Stop" },
        ],
    })
}

#[tokio::test]
async fn attach_fills_a_surface_by_keys_and_answers_its_question() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let screen = Screen::open(&gateway, (80, 24), &session);
    screen.shows("write to the agent").await;
    let path = format!("/v1/sessions/{session}/surfaces");
    let (status, reply) = gateway.post(&path, deploy_form()).await;
    assert_eq!(status, 200, "{reply}");
    let inline = screen.shows("demo draws Deploy").await;
    assert!(inline.contains("▣ pinned Deploy") && inline.contains("25%") && inline.contains("linux"), "{inline}");
    assert!(inline.contains("up \\u{1b}[2J"), "a control sequence is text:\n{inline}");
    screen.shot("surface-inline-80x24");
    let update =
        json!({ "data": [{ "path": "/done", "value": 0.5 }, { "path": "/rows", "append": [{ "n": "windows" }] }] });
    let reply = gateway.request("PATCH", &format!("{path}/deploy")).json(&update).send().await.unwrap();
    assert_eq!(reply.status(), 200);
    screen.until("the change", |text| text.contains("50%") && text.contains("windows")).await;

    // The form, by keys: the table, the field, the box, the button.
    screen.keys(&["Escape"]);
    screen.shows("Esc write").await;
    screen.keys(&["s"]);
    screen.shows("Tab next").await;
    screen.keys(&["Tab", "Tab"]);
    screen.words("Ada");
    screen.shows("[Ada").await;
    screen.keys(&["Tab", "Space", "Tab"]);
    screen.until("the filled form", |text| text.contains("[x] Force") && text.contains("▸[ Go ]")).await;
    // A button does not react right after it appeared.
    tokio::time::sleep(Duration::from_millis(500)).await;
    screen.shot("surface-open-80x24");
    screen.keys(&["Enter"]);
    screen.shows("sent").await;
    let deadline = Instant::now() + PATIENCE;
    let prompt = loop {
        let events = serde_json::to_string(&gateway.events(&session).await).unwrap();
        if events.contains("used component go: event submit") {
            break events;
        }
        assert!(Instant::now() < deadline, "no prompt: {events}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(prompt.contains(r#"context: {\"who\":\"Ada\",\"force\":true}"#), "{prompt}");

    // Its question is answered there, and no card covers it.
    let ask = json!({ "surface": "deploy", "submit": ["go", "stop"], "question": "Deploy now?" });
    let (status, ask) = gateway.post(&format!("/v1/sessions/{session}/asks"), ask).await;
    assert_eq!(status, 200, "{ask}");
    let asked = screen.shows("it asks you").await;
    assert!(asked.contains("answers") && !asked.contains("demo asks"), "{asked}");
    tokio::time::sleep(Duration::from_millis(500)).await;
    screen.keys(&["Enter"]);
    screen.hides("it asks you").await;
    let id = ask["ask_id"].as_str().unwrap();
    let (_, outcome) = gateway.get(&format!("/v1/sessions/{session}/asks/{id}?wait=20")).await;
    assert_eq!(
        (&outcome["state"], &outcome["answer"]["context"]["who"]),
        (&json!("answered"), &json!("Ada")),
        "{outcome}\n{}",
        screen.text()
    );

    // A request is drawn over the surface, on a small terminal as well.
    screen.resize(44, 20);
    screen.until("the small screen", |text| text.contains("demo draws") && text.lines().count() <= 20).await;
    screen.shot("surface-open-44x20");
    gateway.prompt(&session, "ask make deploy").await;
    let over = screen.until("the request", |text| text.contains("make deploy") && text.contains("Allow once")).await;
    assert!(over.contains("demo draws"), "{over}");
    // The first press only chooses it.
    screen.keys(&["a"]);
    screen.shows("A: no more questions").await;
    screen.keys(&["a"]);
    screen.shows("Allowed once by").await;
    // The outcome leaves by itself. An Escape at that moment would close either it or the surface, and the next one begin to write.
    screen.hides("Allowed once by").await;
    screen.keys(&["Escape"]);
    screen.shows("allowed (allow_once)").await;
    screen.resize(80, 24);
    screen.shows("▣ pinned Deploy").await;
    screen.keys(&["q"]);
    screen.shows("SESSION").await;
    screen.keys(&["q"]);
    assert_eq!(screen.ended().await, "0");
}

#[tokio::test]
async fn attach_answers_nothing_while_sentences_are_typed() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    // In the composer: the request comes while the field is empty, and while something stands in it.
    let screen = Screen::open(&gateway, (120, 30), &session);
    screen.shows("write to the agent").await;
    gateway.prompt(&session, "ask make one").await;
    let first = gateway.open_request(&session).await;
    screen.shows("demo asks: Esc, then a").await;
    for sentence in ["any idea why?", "add a test", "yes please do", "always allow it", "deny nothing, quit"] {
        screen.words(sentence);
        screen.shows(&format!("› {sentence}")).await;
        screen.keys(&["C-c"]);
        screen.hides(&format!("› {sentence}")).await;
    }
    // On the card that has the focus, and in the inbox.
    screen.keys(&["Escape"]);
    screen.shows("will not ask about similar").await;
    screen.words("add a test");
    screen.shows("› add a test").await;
    screen.keys(&["C-c"]);
    let inbox = Screen::open(&gateway, (80, 24), "");
    inbox.shows("1 waiting").await;
    inbox.keys(&["k"]);
    inbox.shows("will not ask about similar").await;
    inbox.words("add a test, deny nothing");
    inbox.shows("letters typed in a row are not commands here").await;
    let still = gateway.open_request(&session).await;
    assert_eq!(still["request_id"], first["request_id"]);
    // A key by itself answers.
    tokio::time::sleep(Duration::from_millis(1_600)).await;
    inbox.keys(&["a"]);
    inbox.shows("Allowed once by").await;
}
