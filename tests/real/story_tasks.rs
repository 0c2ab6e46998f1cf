//! What people come for, each on a desk, on a phone and in a terminal: the presses are real, counted, and printed as lines that begin with
//! `task` (`scripts/tasks` makes the table in docs/tasks.md of them). The page's side is `tests/web/tasks.mjs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::agents::{self, AgentSetup, FakeModel};
use common::browser::play;
use common::gateway::{Gateway, PATIENCE, exe};
use common::terminal::Terminal;
use serde_json::{Value, json};

/// The sizes of the page in which a task is done.
const SIZES: [&str; 2] = ["desk", "phone"];
/// Longer than the terminal's screen ignores keys after something appeared.
const ARMED: Duration = Duration::from_millis(500);

async fn on_the_page(task: &str, size: &str, gateway: &Gateway, more: &[(&str, &str)]) {
    let mut env = vec![("PLEXUS_TASK", task), ("PLEXUS_SIZE", size)];
    env.extend_from_slice(more);
    play("tasks.mjs", gateway, &env).await;
}

/// A user at a terminal with `plexus attach` in it.
struct Person {
    terminal: Terminal,
    task: &'static str,
    /// Taps on another device that belong to the task.
    presses: usize,
    keys: usize,
    texts: usize,
    began: Instant,
}

impl Person {
    fn sits_down(task: &'static str, gateway: &Gateway) -> Self {
        Self::begins(task, gateway, None, &[], &[exe(), "attach"])
    }

    /// A user at a shell in this folder, which finds `plexus` and the programs in the folders of `more`.
    fn at_a_shell(task: &'static str, gateway: &Gateway, folder: &Path, more: &[&Path]) -> Self {
        Self::begins(task, gateway, Some(folder), more, &["sh"])
    }

    fn begins(task: &'static str, gateway: &Gateway, folder: Option<&Path>, more: &[&Path], command: &[&str]) -> Self {
        let home = gateway.home.display().to_string();
        let before = std::env::var_os("PATH").unwrap();
        let own = Path::new(exe()).parent().unwrap().to_owned();
        let folders = [own].into_iter().chain(more.iter().map(|one| one.to_path_buf()));
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&before))).unwrap();
        let path = path.into_string().unwrap();
        let env = [("PLEXUS_HOME", home.as_str()), ("COLORTERM", "truecolor"), ("PATH", path.as_str())];
        let terminal = Terminal::open(folder, (120, 40), &env, command);
        Self { terminal, task, presses: 0, keys: 0, texts: 0, began: Instant::now() }
    }

    async fn sees(&self, words: &str) -> String {
        self.terminal.until(words, Terminal::text, |text| text.contains(words)).await
    }

    async fn sees_all(&self, words: &[&str]) {
        self.terminal.until(&words.join(", "), Terminal::text, |text| words.iter().all(|one| text.contains(one))).await;
    }

    fn presses(&mut self, key: &str) {
        self.keys += 1;
        self.terminal.keys(&[key]);
    }

    fn types(&mut self, words: &str) {
        self.texts += 1;
        self.terminal.words(words);
    }

    fn done(self) {
        let Self { task, presses, keys, texts, began, .. } = &self;
        println!(
            "task {task} terminal: {presses} presses, {keys} keys, {texts} texts, {:.1} s",
            began.elapsed().as_secs_f64()
        );
    }
}

/// A machine on which nothing was set up in Plexus: the real agents are installed, with a home folder and a model of their own.
struct Machine {
    install: PathBuf,
    home: tempfile::TempDir,
    model: FakeModel,
}

impl Machine {
    async fn new() -> Self {
        let (install, model) =
            tokio::task::spawn_blocking(|| (agents::install_dir(), FakeModel::start())).await.unwrap();
        Self { install, home: tempfile::tempdir().unwrap(), model }
    }

    fn programs(&self) -> PathBuf {
        self.install.join("node_modules/.bin")
    }

    /// A gateway that knows nothing but what is installed.
    async fn gateway(&self, setup: &AgentSetup) -> Gateway {
        let path = format!("{}:{}", self.programs().display(), std::env::var("PATH").unwrap());
        let mut env: Vec<(&str, &str)> =
            setup.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        // Without a fixed model the CLI asks a model which model to use.
        env.extend([("PATH", path.as_str()), ("GEMINI_MODEL", "gemini-2.5-flash")]);
        Gateway::start_with(tempfile::tempdir().unwrap(), "", &env).await
    }
}

/// Ends the runtime, which would otherwise outlive the gateway.
async fn ends(gateway: &Gateway, runtime: &str) {
    let (status, gone) = gateway.delete(&format!("/v1/runtimes/{runtime}")).await;
    assert_eq!(status, 204, "{gone}");
}

async fn asked(gateway: &Gateway, at_least: usize) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, list) = gateway.get("/v1/requests?state=open").await;
        let open = list["requests"].as_array().unwrap().clone();
        if open.len() == at_least {
            return open;
        }
        assert!(Instant::now() < deadline, "{} requests are open, not {at_least}", open.len());
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_the_first_agent_is_started_from_nothing() {
    let machine = Machine::new().await;
    let setup = agents::gemini(&machine.install, machine.home.path(), machine.model.port());
    for size in SIZES {
        let gateway = machine.gateway(&setup).await;
        on_the_page("first", size, &gateway, &[]).await;
        ends(&gateway, "gemini").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_the_first_agent_is_started_in_a_terminal() {
    let machine = Machine::new().await;
    let setup = agents::gemini(&machine.install, machine.home.path(), machine.model.port());
    let gateway = machine.gateway(&setup).await;
    let mut person = Person::sits_down("first", &gateway);
    person.sees_all(&["Start your first session", "gemini", "installed"]).await;
    // The agent, the folder and the title are as offered.
    for _ in 0..3 {
        person.presses("Enter");
    }
    person.sees("Enter start").await;
    person.types("FAKE:long 3");
    person.presses("Enter");
    person.sees("chunk-0003").await;
    person.done();
    ends(&gateway, "gemini").await;
}

/// Codex has a conversation in `work`, which was held without Plexus.
async fn yesterday(machine: &Machine, work: &Path) -> Gateway {
    let setup = agents::codex_app(&machine.install, machine.home.path(), machine.model.port());
    // The preset passes on the key's usual name only.
    let config = machine.home.path().join(".codex/config.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace("FAKE_KEY", "OPENAI_API_KEY");
    std::fs::write(&config, text).unwrap();
    let mut codex = tokio::process::Command::new(agents::codex_program(&machine.install));
    codex.args(["exec", "--skip-git-repo-check", "FAKE:text said-before"]).current_dir(work);
    codex.envs(setup.env.iter().cloned()).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let said = tokio::time::timeout(PATIENCE, codex.output()).await.expect("Codex ends").unwrap();
    assert!(said.status.success(), "{said:?}");
    machine.gateway(&setup).await
}

/// Asserts that the only session, of Codex, was continued.
async fn was_continued(gateway: &Gateway) {
    let (_, list) = gateway.get("/v1/sessions").await;
    let sessions = list["sessions"].as_array().unwrap();
    assert_eq!((sessions.len(), sessions[0]["runtime_id"].as_str()), (1, Some("codex-app")), "{list}");
    ends(gateway, "codex-app").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_a_conversation_of_codex_is_continued() {
    for size in SIZES {
        let (machine, work) = (Machine::new().await, tempfile::tempdir().unwrap());
        let gateway = yesterday(&machine, work.path()).await;
        on_the_page("continue", size, &gateway, &[]).await;
        was_continued(&gateway).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_a_conversation_of_codex_is_continued_in_a_terminal() {
    let (machine, work) = (Machine::new().await, tempfile::tempdir().unwrap());
    let gateway = yesterday(&machine, work.path()).await;
    let mut person = Person::at_a_shell("continue", &gateway, work.path(), &[&machine.programs()]);
    person.types("plexus new codex-app --continue -- 'FAKE:long 3' && plexus attach");
    person.presses("Enter");
    person.sees_all(&["said-before", "chunk-0003"]).await;
    person.done();
    was_continued(&gateway).await;
}

/// Five agents, each of which asks four things at once; four of the twenty are dangerous.
async fn five_agents(folder: &Path) -> Gateway {
    let demo = json!([exe(), "agent", "demo"]);
    let gateway = Gateway::start("").await;
    for agent in ["ada", "bea", "cyd", "dan", "eve"] {
        let body = json!({ "id": agent, "dialect": "acp", "command": demo, "cwd": folder });
        let (status, made) = gateway.post("/v1/runtimes", body).await;
        assert_eq!(status, 201, "{made}");
    }
    gateway
}

async fn twenty_requests(gateway: &Gateway) {
    for (n, agent) in ["ada", "bea", "cyd", "dan", "eve"].iter().enumerate() {
        for m in 0..4 {
            let session = gateway.session(agent).await;
            let command = match (n, m) {
                (0..4, 3) => format!("rm -rf /srv/{agent}"),
                (_, 0) => format!("cat notes-{n}.md"),
                (_, 1) => format!("cargo test -p part-{n}"),
                _ => format!("touch made-{n}-{m}.txt"),
            };
            gateway.prompt(&session, &format!("ask {command}")).await;
        }
    }
    asked(gateway, 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_twenty_requests_of_five_agents_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = five_agents(folder.path()).await;
    for size in SIZES {
        twenty_requests(&gateway).await;
        on_the_page("questions", size, &gateway, &[]).await;
    }
    twenty_requests(&gateway).await;
    let mut person = Person::sits_down("questions", &gateway);
    person.sees("20 waiting").await;
    for _ in 0..20 {
        tokio::time::sleep(ARMED).await;
        let before = person.terminal.text();
        person.presses("j");
        // What is not drawn is not read. Below the last one there is none.
        let _ =
            tokio::time::timeout(4 * ARMED, person.terminal.until("a row", Terminal::text, |now| now != before)).await;
    }
    tokio::time::sleep(ARMED).await;
    person.presses("C-a");
    person.sees("20 selected").await;
    person.presses("a");
    person.sees("Allow 16 requests once?").await;
    tokio::time::sleep(ARMED).await;
    person.presses("y");
    asked(&gateway, 4).await;
    person.sees("4 waiting").await;
    person.presses("C-a");
    person.sees("4 selected").await;
    person.presses("d");
    person.sees("Deny 4 requests?").await;
    tokio::time::sleep(ARMED).await;
    person.presses("y");
    asked(&gateway, 0).await;
    person.done();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_a_stopped_session_is_understood_and_started_again() {
    let folder = tempfile::tempdir().unwrap();
    for place in ["desk", "phone", "terminal"] {
        let gateway = Gateway::demo().await;
        let busy = gateway.session("demo").await;
        gateway.until_ended(&busy, &gateway.prompt(&busy, "echo something else").await).await;
        let command = json!([exe(), "agent", "demo"]);
        let body =
            json!({ "id": "night", "dialect": "acp", "command": command, "restart": "never", "cwd": folder.path() });
        let (status, made) = gateway.post("/v1/runtimes", body).await;
        assert_eq!(status, 201, "{made}");
        let (status, session) =
            gateway.post("/v1/sessions", json!({ "runtime_id": "night", "title": "Nightly" })).await;
        assert_eq!(status, 201, "{session}");
        let session = session["session_id"].as_str().unwrap();
        gateway.until_ended(session, &gateway.prompt(session, "echo half-way").await).await;
        gateway.until_ended(session, &gateway.prompt(session, "crash").await).await;
        if place != "terminal" {
            on_the_page("stopped", place, &gateway, &[]).await;
            continue;
        }
        let mut person = Person::sits_down("stopped", &gateway);
        person.sees_all(&["Nightly", "something else"]).await;
        person.presses("Enter");
        person.sees_all(&["code 3", "again"]).await;
        person.presses("Enter");
        person.sees("write to the agent").await;
        person.types("echo it-goes-on");
        person.presses("Enter");
        person.terminal.wrote("it-goes-on", 2).await;
        person.done();
    }
}

fn git(folder: &Path, args: &[&str]) {
    let name = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
    let out = std::process::Command::new("git").args(name).args(args).current_dir(folder).output().unwrap();
    assert!(out.status.success(), "{out:?}");
}

async fn reviewed_in_the_terminal(gateway: &Gateway) {
    let mut person = Person::sits_down("review", gateway);
    person.sees_all(&["Rework", "live"]).await;
    person.presses("Enter");
    person.sees("write to the agent").await;
    person.presses("Escape");
    person.sees("i: write to the agent").await;
    person.presses("g");
    person.presses("c");
    person.sees("Changes 30 files").await;
    for (n, words) in ["Is this meant?", "Say why.", "A better name?"].iter().enumerate() {
        if n > 0 {
            person.presses("j");
        }
        person.presses("n");
        person.sees(&format!("fn part_{n}_40() {{ after }}")).await;
        person.presses("c");
        person.sees("Comment on line 41").await;
        person.types(words);
        person.presses("Enter");
        person.sees("your comment on line 41").await;
    }
    person.presses("S");
    person.sees("Send 3 comments").await;
    person.presses("Enter");
    // The agent's answer may have pushed the first comments off the screen already.
    person.sees_all(&["A better name?", "write to the agent"]).await;
    person.done();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_a_change_of_thirty_files_is_reviewed() {
    for size in ["desk", "phone", "terminal"] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        let file = |n: usize| folder.path().join(format!("src/part-{n:02}.rs"));
        let text = |n: usize, word: &str| -> String {
            (0..80)
                .map(|line| format!("fn part_{n}_{line}() {{ {} }}\n", if line == 40 { word } else { "same" }))
                .collect()
        };
        for n in 0..30 {
            std::fs::write(file(n), text(n, "before")).unwrap();
        }
        git(folder.path(), &["init", "-q"]);
        git(folder.path(), &["add", "-A"]);
        git(folder.path(), &["commit", "-qm", "first"]);
        let gateway = Gateway::demo().await;
        let body = json!({ "runtime_id": "demo", "cwd": folder.path(), "title": "Rework" });
        let (status, session) = gateway.post("/v1/sessions", body).await;
        assert_eq!(status, 201, "{session}");
        let session = session["session_id"].as_str().unwrap();
        let run = gateway.prompt(session, "sleep 1000").await;
        // The list comes once the folder was looked at for the run.
        assert_eq!(gateway.get(&format!("/v1/sessions/{session}/changes")).await.0, 200);
        for n in 0..30 {
            std::fs::write(file(n), text(n, "after")).unwrap();
        }
        gateway.until_ended(session, &run).await;
        match size {
            "terminal" => reviewed_in_the_terminal(&gateway).await,
            size => on_the_page("review", size, &gateway, &[]).await,
        }
        // One prompt, with all three.
        let prompts: Vec<Value> =
            gateway.events(session).await.into_iter().filter(|event| event["kind"] == "user_message_chunk").collect();
        assert_eq!(prompts.len(), 2, "{prompts:?}");
        let told = prompts[1]["event"]["content"]["text"].as_str().unwrap();
        for words in
            ["src/part-00.rs", "src/part-01.rs", "src/part-02.rs", "Is this meant?", "Say why.", "A better name?"]
        {
            assert!(told.contains(words), "{words} is not in {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_a_phone_is_let_in() {
    let gateway = Gateway::demo().await;
    for size in SIZES {
        on_the_page("phone", size, &gateway, &[]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_a_phone_is_let_in_from_a_terminal() {
    let gateway = Gateway::demo().await;
    let folder = tempfile::tempdir().unwrap();
    let mut person = Person::at_a_shell("phone", &gateway, folder.path(), &[]);
    person.types("plexus pair");
    person.presses("Enter");
    let shown = person.sees("valid for one device").await;
    // The QR code is this address.
    let url = shown.lines().find_map(|line| line.trim().strip_prefix("open ")).expect("the address is shown").trim();
    let more = [("PLEXUS_PAIR", url)];
    let agrees = async {
        person.sees("the same number?").await;
        person.types("y");
        person.presses("Enter");
        person.sees("is paired").await;
    };
    tokio::join!(on_the_page("join", "phone", &gateway, &more), agrees);
    person.presses += 1;
    person.done();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_the_cost_of_today_is_seen() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    gateway
        .until_ended(&session, &gateway.prompt(&session, &format!("echo {} ;; usage", "x".repeat(4_000))).await)
        .await;
    let (_, sums) = gateway.get("/v1/usage?by=runtime").await;
    let cost = sums["total"]["costs"][0]["amount"].as_f64().unwrap();
    for size in SIZES {
        on_the_page("cost", size, &gateway, &[("PLEXUS_COST", "USD")]).await;
    }
    assert!(cost > 0.0, "{sums}");
    let began = Instant::now();
    let home = gateway.home.display().to_string();
    let command = ["sh", "-c", &format!("{} usage --since today; exec cat", exe())];
    let terminal = Terminal::open(None, (120, 40), &[("PLEXUS_HOME", &home)], &command);
    terminal.until("the cost", Terminal::text, |text| text.contains("USD") && text.contains("demo")).await;
    println!("task cost terminal: 0 presses, 1 keys, 1 texts, {:.1} s", began.elapsed().as_secs_f64());
}
