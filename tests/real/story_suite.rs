//! Every real agent in every scenario: the real binary, the agents of `tests/agents`, a loopback model. One file: the scenarios,
//! and the table in `docs/runtimes.md` that is compared with the results.
//!
//! A scenario passes (`yes`), or the agent does not support it (`not supported: why`), or it fails, and its agent's test with it.
//! Each test compares its agent's verdicts in the table with the results; `PLEXUS_WRITE_DOCS=1` writes it instead.
//!
//! Every agent plays the scenarios in which agents differ most. The others are divided: a third of the agents plays each of them, and
//! all do with `PLEXUS_ROUNDS=full`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use crate::common;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::agents::{self, AgentSetup, FakeModel};
use common::gateway::{Gateway, alive, assert_whole, said};
use common::moments::rounds;
use common::verdicts;
use futures_util::future::join_all;
use plexus_client::FollowStart;
use serde_json::{Value, json};

// ------------------------------------------------------------------------------------ agents

/// A real agent and its specifics.
#[derive(Clone, Copy)]
struct Agent {
    /// The name in the table.
    name: &'static str,
    dialect: &'static str,
    /// The name on PyPI's side of `tests/agents`; the others are npm packages. On a machine without its Python it is not run.
    python: Option<&'static str>,
    setup: fn(&Path, &Path, u16) -> AgentSetup,
    /// `true` if it is a server that runs by itself and is attached by its address: the last argument is its port.
    serves: bool,
    /// `true` if it asks for anything at all.
    asks: bool,
    /// Programs that it takes for harmless, so that it does not ask about them, though they write.
    harmless: &'static [&'static str],
    /// `true` if it runs commands in the folder of its process, whatever the folder of the session is.
    fixed_folder: bool,
    /// `true` if it asks for two tool calls of one reply at once.
    asks_at_once: bool,
    /// `true` if it ends a turn of which the model failed as if nothing had happened.
    hides_failures: bool,
    /// `true` if it sometimes stops in the middle of a message that the model writes at full speed.
    stops_midway: bool,
    /// `true` if it repeats everything in a conversation that is already open when it is told to open it.
    opens_twice: bool,
    /// `true` if it lists the conversations of a folder alone, and the gateway asks for those of all.
    lists_a_folder: bool,
}

/// The common properties of most agents.
const ACP: Agent = Agent {
    name: "",
    dialect: "acp",
    python: None,
    setup: agents::gemini,
    serves: false,
    asks: true,
    harmless: &[],
    fixed_folder: false,
    asks_at_once: false,
    hides_failures: false,
    stops_midway: false,
    opens_twice: false,
    lists_a_folder: false,
};
const GEMINI: Agent = Agent { name: "gemini", ..ACP };
const OPENCODE: Agent = Agent { name: "opencode", setup: agents::opencode, ..ACP };
const OPENCODE_SERVE: Agent =
    Agent { name: "opencode serve", dialect: "opencode", setup: agents::opencode_serve, serves: true, ..ACP };
const CODEX: Agent =
    Agent { name: "codex-acp", setup: agents::codex_acp, asks_at_once: true, hides_failures: true, ..ACP };
const CODEX_APP: Agent =
    Agent { name: "codex app-server", dialect: "codex", setup: agents::codex_app, asks_at_once: true, ..ACP };
const CLAUDE: Agent = Agent { name: "claude-agent-acp", setup: agents::claude, ..ACP };
const QWEN: Agent = Agent { name: "qwen", setup: agents::qwen, ..ACP };
const VIBE: Agent = Agent { name: "vibe", python: Some("vibe"), setup: agents::vibe, opens_twice: true, ..ACP };
const KIMI: Agent = Agent {
    name: "kimi",
    python: Some("kimi"),
    setup: agents::kimi,
    hides_failures: true,
    lists_a_folder: true,
    ..ACP
};
const COPILOT: Agent =
    Agent { name: "copilot", setup: agents::copilot, hides_failures: true, stops_midway: true, ..ACP };
const GROK: Agent = Agent { name: "grok", setup: agents::grok, harmless: &["touch"], ..ACP };
const PI: Agent = Agent { name: "pi-acp", setup: agents::pi, asks: false, ..ACP };
const FAST_AGENT: Agent = Agent {
    name: "fast-agent",
    python: Some("fast-agent"),
    setup: agents::fast_agent,
    asks: false,
    fixed_folder: true,
    ..ACP
};
/// In the order of the table.
#[rustfmt::skip] // those of one kind a line
const AGENTS: &[Agent] = &[
    GEMINI, OPENCODE, OPENCODE_SERVE, CODEX, CODEX_APP, CLAUDE, QWEN, VIBE, KIMI, COPILOT, GROK,
    PI, FAST_AGENT,
];

// ------------------------------------------------------------------------------------ scenarios

/// The result of a scenario, as text for the table.
type Verdict = String;
type Played = Pin<Box<dyn Future<Output = Verdict> + Send>>;
type Scenario = (&'static str, Cast, fn(Arc<Stage>) -> Played);

/// The agents that play a scenario if it is not played in full.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cast {
    All,
    Third,
}
use Cast::{All, Third};

/// Every scenario, in the order in which they are played.
#[rustfmt::skip] // a scenario a line
const SCENARIOS: &[Scenario] = &[
    ("streamed text is the same for all clients", All, |stage| Box::pin(streamed_text(stage))),
    ("a message of 5,000 chunks arrives completely", Third, |stage| Box::pin(five_thousand_chunks(stage))),
    ("a client that joins late gets the same text", Third, |stage| Box::pin(late_joiner(stage))),
    ("approved: the command runs once, whichever client answers first", All, |stage| Box::pin(approved(stage))),
    ("rejected: the command does not run", All, |stage| Box::pin(rejected(stage))),
    ("rejected with a reason", Third, |stage| Box::pin(rejected_with_a_reason(stage))),
    ("a command is shown completely, with the same risk for every agent", Third, |stage| Box::pin(judged_alike(stage))),
    ("a command runs in the folder that its request names, also where the agent itself is elsewhere", All, |stage| {
        Box::pin(runs_where_it_says(stage))
    }),
    ("two permission requests in one reply", Third, |stage| Box::pin(two_approvals(stage))),
    ("cancelled with a permission request open", All, |stage| Box::pin(cancelled_while_it_asks(stage))),
    ("cancelled while the model is silent", Third, |stage| Box::pin(cancelled_in_silence(stage))),
    ("a second prompt waits for the first run", Third, |stage| Box::pin(second_prompt(stage))),
    ("two sessions at once", Third, |stage| Box::pin(two_sessions(stage))),
    ("the model refuses (400)", Third, |stage| Box::pin(model_refuses(stage))),
    ("the model is overloaded (429)", Third, |stage| Box::pin(model_overloaded(stage))),
    ("the model fails (500)", Third, |stage| Box::pin(model_fails(stage))),
    ("the model's stream breaks off", Third, |stage| Box::pin(model_breaks(stage))),
    ("junk between the agent's lines", Third, |stage| Box::pin(junk(stage))),
    ("killed during a run, restarted, continues", All, |stage| Box::pin(killed(stage))),
    // The last: it forgets the first session.
    ("a previous conversation is opened by its native id", Third, |stage| Box::pin(opened_by_its_native_id(stage))),
];

fn yes() -> Verdict {
    "yes".to_owned()
}

fn yes_but(how: &str) -> Verdict {
    format!("yes; {how}")
}

fn not_supported(why: &str) -> Verdict {
    format!("not supported: {why}")
}

/// The verdict where a scenario is about requests, and the agent makes none.
fn asks_nobody() -> Verdict {
    not_supported("it asks for nothing")
}

/// A script whose command makes a file. Not `touch`, which Grok Build runs without asking.
fn making(file: &Path) -> String {
    format!("FAKE:shell echo made > {}", file.display())
}

/// The text of `FAKE:long N`, as the model writes it.
fn long(n: usize) -> String {
    (1..=n).map(|k| format!("chunk-{k:04} ")).collect()
}

async fn streamed_text(stage: Arc<Stage>) -> Verdict {
    let gateway = &stage.gateway;
    let session = &stage.session().await;
    let mut ws = gateway.follow(session, FollowStart::Now).await;
    let mut sse = gateway.sse(&format!("/v1/sessions/{session}/events?after=now"), None).await;
    assert_eq!(sse.next().await.unwrap().event, "hello");
    let run = gateway.prompt(session, "FAKE:long 300 1").await;
    let (by_ws, by_sse, by_poll) =
        tokio::join!(ws.until_ended(&run), sse.until_ended(&run), gateway.until_ended(session, &run));
    assert_eq!(said(&by_ws, Some(&run)), long(300));
    assert_eq!(of_run(&by_ws, &run), of_run(&by_sse, &run));
    assert_eq!(of_run(&by_ws, &run), of_run(&by_poll, &run));
    assert_eq!(settled(&by_poll, &run), "completed");
    yes()
}

async fn five_thousand_chunks(stage: Arc<Stage>) -> Verdict {
    let session = &stage.session().await;
    let run = stage.gateway.prompt(session, "FAKE:long 5000 0").await;
    let events = stage.gateway.until_ended(session, &run).await;
    if stage.agent.stops_midway {
        let told = said(&events, Some(&run));
        let chunks: Vec<&str> = told.split_whitespace().collect();
        assert!(chunks.len() > 100 && chunks.is_sorted(), "{} chunks", chunks.len());
        let whole = told == long(5000);
        let how = settled(&events, &run);
        assert!(how == "completed" || !whole && how == "cancelled", "{how}");
        return not_supported("at full speed it sometimes stops in the middle and reports the turn as cancelled");
    }
    // Not `assert_eq`: a difference would print both.
    assert!(said(&events, Some(&run)) == long(5000), "{} bytes", said(&events, Some(&run)).len());
    assert_eq!(settled(&events, &run), "completed");
    yes()
}

async fn late_joiner(stage: Arc<Stage>) -> Verdict {
    let gateway = &stage.gateway;
    let session = &stage.session().await;
    let run = gateway.prompt(session, "FAKE:long 400 5").await;
    // In the middle of the message.
    let mut after = String::new();
    let mut heard = 0;
    while heard < long(50).len() {
        let (_, page) = gateway.get(&format!("/v1/sessions/{session}/events?after={after}&wait=5")).await;
        after = page["next"].as_str().unwrap().to_owned();
        let events = page["events"].as_array().unwrap();
        heard += said(events, Some(&run)).len();
    }
    let (status, snapshot) = gateway.get(&format!("/v1/sessions/{session}/snapshot")).await;
    assert_eq!(status, 200, "{snapshot}");
    let messages = snapshot["messages"].as_array().unwrap();
    let so_far: String = messages
        .iter()
        .filter(|message| message["role"] == "agent" && message["run_id"] == run.as_str())
        .map(|message| message["text"].as_str().unwrap())
        .collect();
    assert!(so_far.starts_with("chunk-0001 ") && long(400).starts_with(&so_far), "{so_far}");
    assert!(messages.last().unwrap()["partial"] == true || so_far == long(400));
    let cursor = snapshot["cursor"].as_str().unwrap().to_owned();
    let mut late = gateway.follow(session, FollowStart::After(cursor)).await;
    let rest = late.until_ended(&run).await;
    assert_eq!(so_far + &said(&rest, Some(&run)), long(400), "snapshot and what follows make the whole");
    yes()
}

async fn approved(stage: Arc<Stage>) -> Verdict {
    let gateway = &stage.gateway;
    let session = &stage.session().await;
    let log = stage.file("approved");
    let run = gateway.prompt(session, &format!("FAKE:shell echo ran >> {}", log.display())).await;
    if !stage.agent.asks {
        let events = gateway.until_ended(session, &run).await;
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "ran\n", "it ran once");
        assert_eq!(settled(&events, &run), "completed");
        assert!(!events.iter().any(|event| event["kind"] == "request_opened"), "{events:#?}");
        let (_, runtime) = gateway.get(&format!("/v1/runtimes/{}", stage.id)).await;
        assert!(runtime["acted_unasked"].is_string(), "{runtime}");
        return not_supported("it runs commands without asking, and its runtime says so");
    }
    let request = gateway.open_request(session).await;
    assert!(request["display"].as_str().unwrap().contains("echo ran >>"), "{request}");
    let option = Gateway::option(&request, "allow_once");
    let outcomes = join_all((0..3).map(|_| gateway.choose(&request, &option))).await;
    let won: Vec<_> = outcomes.iter().filter(|(status, _)| *status == 200).collect();
    assert_eq!(won.len(), 1, "{outcomes:?}");
    for (status, lost) in outcomes.iter().filter(|(status, _)| *status != 200) {
        assert_eq!((*status, &lost["cursor"]), (409, &won[0].1["cursor"]), "{lost}");
    }
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "ran\n", "it ran once");
    assert_eq!(settled(&events, &run), "completed");
    yes()
}

async fn rejected(stage: Arc<Stage>) -> Verdict {
    if !stage.agent.asks {
        return asks_nobody();
    }
    let gateway = &stage.gateway;
    let session = &stage.session().await;
    let file = stage.file("rejected");
    let run = gateway.prompt(session, &making(&file)).await;
    let request = gateway.open_request(session).await;
    let (status, receipt) = gateway.choose(&request, &Gateway::option(&request, "reject_once")).await;
    assert_eq!((status, &receipt["ok"]), (200, &json!(false)), "{receipt}");
    let events = gateway.until_ended(session, &run).await;
    assert!(!file.exists(), "a rejected command did not run");
    assert!(of_run(&events, &run).iter().any(|event| event["kind"] == "tool_call"), "there was a card to close");
    // Some agents tell the model and go on, for others a "no" ends the turn.
    let how = settled(&events, &run);
    assert!(how == "completed" || how == "cancelled", "{how}");
    let goes_on = said(&events, Some(&run)).contains("All done.");
    stage.takes_the_next_prompt(session).await;
    if goes_on { yes_but("the model continues") } else { yes_but("the turn ends") }
}

async fn rejected_with_a_reason(stage: Arc<Stage>) -> Verdict {
    if !stage.agent.asks {
        return asks_nobody();
    }
    let gateway = &stage.gateway;
    let session = &stage.session().await;
    let file = stage.file("reasoned");
    let run = gateway.prompt(session, &making(&file)).await;
    let request = gateway.open_request(session).await;
    let path = format!("/v1/requests/{}/answer", request["request_id"].as_str().unwrap());
    let option = Gateway::option(&request, "reject_once");
    let (status, body) = gateway.post(&path, json!({ "option_id": option, "reason": "use a-better-way" })).await;
    if request["allow_reason"] == true {
        assert_eq!(status, 200, "{body}");
        let events = gateway.until_ended(session, &run).await;
        assert!(!file.exists());
        assert_eq!(settled(&events, &run), "completed");
        assert!(said(&events, Some(&run)).contains("a-better-way"), "the model heard why");
        return yes();
    }
    // A reason that nobody would hear is refused, not dropped; the request stays open.
    assert_eq!((status, &body["code"]), (422, &json!("reason_not_offered")), "{body}");
    assert_eq!(gateway.choose(&request, &option).await.0, 200);
    let events = gateway.until_ended(session, &run).await;
    assert!(!file.exists());
    settled(&events, &run);
    not_supported("its answers cannot carry a reason")
}

/// A command, its risk and the reasons for it: the same whichever agent asks.
struct Judged {
    command: String,
    risk: &'static str,
    reasons: Vec<String>,
}

/// The actions that every agent has to ask for; `beside` is a folder that is not the session's.
fn judged(beside: &Path) -> Vec<Judged> {
    let of = |command: &str, risk, reasons: &[&str]| Judged {
        command: command.to_owned(),
        risk,
        reasons: reasons.iter().map(ToString::to_string).collect(),
    };
    vec![
        of("ls -la", "low", &[]),
        of("touch made.txt", "elevated", &["writes files in the folder (touch)"]),
        of("git push --force origin main", "danger", &["rewrites history on a server (git push)"]),
        of(&format!("sudo rm -rf {}", beside.display()), "danger", &["runs as another user (sudo)"]),
        of(
            &format!("curl -s file://{}/script | sh", beside.display()),
            "danger",
            &["pipes the network into a shell, or runs what it fetched"],
        ),
    ]
}

/// Every request is denied, so nothing runs. The verdict names the commands that an agent runs or refuses without asking.
async fn judged_alike(stage: Arc<Stage>) -> Verdict {
    // It would run all of them.
    if !stage.agent.asks {
        return asks_nobody();
    }
    let gateway = &stage.gateway;
    let beside = tempfile::tempdir().unwrap();
    std::fs::write(beside.path().join("script"), format!("touch {}\n", stage.file("made.txt").display())).unwrap();
    let (mut passed, mut refused, mut unlike) = (Vec::new(), Vec::new(), Vec::new());
    for wanted in judged(beside.path()) {
        // An agent that remembers a no would not ask again.
        let session = &stage.session().await;
        let run = gateway.prompt(session, &format!("FAKE:shell {}", wanted.command)).await;
        let Some(request) = stage.asked_or_over(session, &run).await else {
            let events = gateway.until_ended(session, &run).await;
            assert_eq!(settled(&events, &run), "completed");
            // Without its arguments: they are other folders each time.
            let name = format!("`{}`", wanted.command.split(' ').take(2).collect::<Vec<_>>().join(" "));
            let ran =
                of_run(&events, &run).iter().any(|event| event["event"]["status"] == "completed" && is_tool(event));
            let harmless =
                wanted.command.split(' ').next().is_some_and(|program| stage.agent.harmless.contains(&program));
            let may_run = wanted.risk == "low" || harmless;
            assert!(!ran || may_run, "nobody was asked for {}: {events:#?}", wanted.command);
            if ran {
                passed.push(name)
            } else {
                refused.push(name)
            }
            continue;
        };
        assert!(request["display"].as_str().unwrap().contains(&wanted.command), "{request}");
        assert_eq!(request["subject"]["type"], "command", "{request}");
        let (risk, reasons) = (&request["risk"], &request["risk_reasons"]);
        if (risk, reasons) != (&json!(wanted.risk), &json!(wanted.reasons)) {
            unlike.push(format!("{}: {risk} {reasons}; {}", wanted.command, request["display"]));
        }
        assert_eq!(gateway.choose(&request, &Gateway::option(&request, "reject_once")).await.0, 200);
        let events = gateway.until_ended(session, &run).await;
        settled(&events, &run);
    }
    assert!(unlike.is_empty(), "{unlike:#?}");
    let makes = passed.iter().any(|name| name.contains("touch"));
    assert!(beside.path().exists() && stage.file("made.txt").exists() == makes);
    let said = |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("it {what} {}", names.join(", ")));
    let said: Vec<String> =
        [said("does not ask about", &passed), said("refuses without asking", &refused)].into_iter().flatten().collect();
    if said.is_empty() { yes() } else { yes_but(&said.join("; ")) }
}

/// A session in a folder that is not the agent's: the file is where the request said.
async fn runs_where_it_says(stage: Arc<Stage>) -> Verdict {
    let gateway = &stage.gateway;
    let folder = tempfile::tempdir().unwrap();
    let wanted = json!({ "runtime_id": stage.id, "cwd": folder.path() });
    let (status, session) = gateway.post("/v1/sessions", wanted).await;
    assert!(status == 200 || status == 201, "{status} {session}");
    let session = session["session_id"].as_str().unwrap();
    let run = gateway.prompt(session, &making(Path::new("here.txt"))).await;
    if !stage.agent.asks {
        let events = gateway.until_ended(session, &run).await;
        assert_eq!(settled(&events, &run), "completed");
        let (there, elsewhere) = (folder.path().join("here.txt"), stage.file("here.txt"));
        assert_eq!((there.is_file(), elsewhere.is_file()), (!stage.agent.fixed_folder, stage.agent.fixed_folder));
        if stage.agent.fixed_folder {
            let (_, runtime) = gateway.get(&format!("/v1/runtimes/{}", stage.id)).await;
            assert_eq!(runtime["fixed_folder"], true, "{runtime}");
            return not_supported("it runs every command in the folder of its process, and its runtime says so");
        }
        return yes_but("it asks for nothing");
    }
    let request = gateway.open_request(session).await;
    let cwd = request["subject"]["cwd"].as_str().unwrap_or_else(|| panic!("{request}"));
    assert!(request["display"].as_str().unwrap().contains(&format!("\nin {cwd}")), "{request}");
    let made = Path::new(cwd).join("here.txt");
    assert!(!made.exists());
    assert_eq!(gateway.choose(&request, &Gateway::option(&request, "allow_once")).await.0, 200);
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(settled(&events, &run), "completed");
    assert!(made.is_file(), "it ran elsewhere: {request}");
    assert_eq!(made.canonicalize().unwrap().parent(), folder.path().canonicalize().ok().as_deref());
    if request["subject"].get("stated_cwd").is_none() {
        return yes();
    }
    assert!(!request["warnings"].as_array().unwrap().is_empty() && request["risk"] != "low", "{request}");
    yes_but("the agent's words name the folder of its process, and the request warns of that")
}

fn is_tool(event: &Value) -> bool {
    event["kind"] == "tool_call" || event["kind"] == "tool_call_update"
}

async fn two_approvals(stage: Arc<Stage>) -> Verdict {
    if !stage.agent.asks {
        return asks_nobody();
    }
    let gateway = &stage.gateway;
    let session = &stage.session().await;
    let files = [stage.file("first"), stage.file("second")];
    let script = format!("FAKE:shell2 echo made > {} | echo made > {}", files[0].display(), files[1].display());
    let run = gateway.prompt(session, &script).await;
    if stage.agent.asks_at_once {
        let mut requests = gateway.open_requests(session, 2).await;
        assert_eq!(requests.len(), 2, "{requests:?}");
        // The last one first: each answer finds its own question.
        while let Some(request) = requests.pop() {
            assert_eq!(gateway.choose(&request, &Gateway::option(&request, "allow_once")).await.0, 200);
        }
    } else {
        for _ in &files {
            let request = gateway.open_request(session).await;
            assert_eq!(gateway.choose(&request, &Gateway::option(&request, "allow_once")).await.0, 200);
        }
    }
    let events = gateway.until_ended(session, &run).await;
    assert!(files.iter().all(|file| file.exists()), "both ran");
    assert_eq!(settled(&events, &run), "completed");
    if stage.agent.asks_at_once { yes() } else { yes_but("it asks for one after the other") }
}

async fn cancelled_while_it_asks(stage: Arc<Stage>) -> Verdict {
    if !stage.agent.asks {
        return asks_nobody();
    }
    let gateway = &stage.gateway;
    let session = &stage.session().await;
    let file = stage.file("cancelled");
    let run = gateway.prompt(session, &making(&file)).await;
    let request = gateway.open_request(session).await;
    stage.cancel(session).await;
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(settled(&events, &run), "cancelled");
    assert!(!file.exists());
    let (status, late) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    assert_eq!((status, &late["state"]), (410, &json!("withdrawn")), "{late}");
    stage.takes_the_next_prompt(session).await;
    yes()
}

async fn cancelled_in_silence(stage: Arc<Stage>) -> Verdict {
    let gateway = &stage.gateway;
    let session = &stage.session().await;
    let run = gateway.prompt(session, "FAKE:stall 3").await;
    stage.until_said(session, &run, "part-3").await;
    stage.cancel(session).await;
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(settled(&events, &run), "cancelled");
    assert_eq!(said(&events, Some(&run)).trim(), "part-1 part-2 part-3", "what was said is kept");
    stage.takes_the_next_prompt(session).await;
    yes()
}

async fn second_prompt(stage: Arc<Stage>) -> Verdict {
    let gateway = &stage.gateway;
    let session = &stage.session().await;
    let one = gateway.prompt(session, "FAKE:long 60 5").await;
    let (status, two) =
        gateway.post(&format!("/v1/sessions/{session}/prompt"), json!({ "text": "FAKE:text second" })).await;
    assert_eq!((status, &two["queued"]), (202, &json!(true)), "{two}");
    let two = two["run_id"].as_str().unwrap();
    let events = gateway.until_ended(session, two).await;
    assert_eq!(said(&events, Some(&one)), long(60), "the first is not cancelled by the second");
    assert_eq!(said(&events, Some(two)).trim(), "second");
    assert_eq!((settled(&events, &one), settled(&events, two)), ("completed".into(), "completed".into()));
    yes()
}

async fn two_sessions(stage: Arc<Stage>) -> Verdict {
    let gateway = &stage.gateway;
    let (one, two) = (stage.session().await, stage.session().await);
    assert_ne!(one, two);
    let file = stage.file("one");
    // The first waits, for people or for the model, while the second works from beginning to end.
    let script = if stage.agent.asks { making(&file) } else { "FAKE:long 400 5".to_owned() };
    let first = gateway.prompt(&one, &script).await;
    let request = if stage.agent.asks { Some(gateway.open_request(&one).await) } else { None };
    let talks = gateway.prompt(&two, "FAKE:long 50 1").await;
    let events = gateway.until_ended(&two, &talks).await;
    assert_eq!(said(&events, None), long(50), "nothing of the other session is in it");
    assert_eq!(settled(&events, &talks), "completed");
    if let Some(request) = &request {
        assert_eq!(gateway.choose(request, &Gateway::option(request, "allow_once")).await.0, 200);
    }
    let events = gateway.until_ended(&one, &first).await;
    assert_eq!(settled(&events, &first), "completed");
    match request {
        Some(_) => assert!(file.exists()),
        None => assert_eq!(said(&events, None), long(400)),
    }
    yes()
}

async fn model_refuses(stage: Arc<Stage>) -> Verdict {
    model_in_trouble(stage, "FAKE:error 400").await
}

async fn model_overloaded(stage: Arc<Stage>) -> Verdict {
    model_in_trouble(stage, "FAKE:error 429").await
}

async fn model_fails(stage: Arc<Stage>) -> Verdict {
    model_in_trouble(stage, "FAKE:error 500").await
}

async fn model_breaks(stage: Arc<Stage>) -> Verdict {
    model_in_trouble(stage, "FAKE:drop 3").await
}

/// An agent that keeps trying, in silence, can be cancelled; one that gives up ends its run with an error. Either way the
/// session goes on.
async fn model_in_trouble(stage: Arc<Stage>, script: &str) -> Verdict {
    let gateway = &stage.gateway;
    let session = &stage.session().await;
    let run = gateway.prompt(session, script).await;
    let ended = |events: &[Value]| of_run(events, &run).iter().any(|event| event["kind"] == "run_ended");
    until("it tries again, or gives up", || async { stage.asked(script) > 1 || ended(&gateway.events(session).await) })
        .await;
    let tries = stage.asked(script) > 1;
    if tries {
        // It may have given up since: then there is nothing to cancel.
        let (status, body) = gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({})).await;
        assert!([200, 202, 404, 409].contains(&status), "{status} {body}");
    }
    let events = gateway.until_ended(session, &run).await;
    let status = settled(&events, &run);
    stage.takes_the_next_prompt(session).await;
    match (tries, status.as_str()) {
        (false, "error") => yes_but("the run ends with the error"),
        // Whether the cancel comes before that is a matter of milliseconds.
        (_, "completed" | "cancelled" | "error") if stage.agent.hides_failures => {
            not_supported("it retries, or ends the turn as if nothing had happened")
        }
        (true, "cancelled" | "error") => yes_but("it retries, and can be cancelled"),
        // What the agent says of a turn that it was told to cancel; that it was is told beside.
        (true, "completed") if of_run(&events, &run).iter().any(|event| event["event"]["cancelling"] == true) => {
            yes_but("it retries, and can be cancelled")
        }
        // Else that would be a failure that nobody sees.
        other => panic!("{other:?}: {events:#?}"),
    }
}

async fn junk(stage: Arc<Stage>) -> Verdict {
    if stage.agent.serves {
        return not_supported("it writes no lines; it is an HTTP server");
    }
    let gateway = &stage.gateway;
    let noisy = format!("{}-noisy", stage.id);
    let wrapper = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/junk.mjs");
    let mut setup = stage.setup.clone();
    setup.command.splice(0..0, ["node".to_owned(), wrapper.display().to_string()]);
    let tag = format!("{}-noisy", stage.tag);
    attach(gateway, &noisy, stage.agent, &setup, &tag, stage.work.path()).await;
    let session = gateway.session(&noisy).await;
    let file = stage.file("noisy");
    let run = gateway.prompt(&session, &format!("{} ;; long 40 1", making(&file))).await;
    if stage.agent.asks {
        let request = gateway.open_request(&session).await;
        assert_eq!(gateway.choose(&request, &Gateway::option(&request, "allow_once")).await.0, 200);
    }
    let events = gateway.until_ended(&session, &run).await;
    assert_eq!(said(&events, Some(&run)), long(40), "not a byte of it is junk, and none is missing");
    assert_eq!(settled(&events, &run), "completed");
    assert!(file.exists());
    // Nothing is dropped in silence: what could not be understood is kept, and says why.
    let raw: Vec<&Value> = events.iter().filter(|event| event["kind"] == "raw").collect();
    for junk in ["this is no JSON", "session/upd", "a/batch", "987654321", "no-such-call", "junk/notification"] {
        assert!(raw.iter().any(|event| event.to_string().contains(junk)), "{junk} is gone: {raw:?}");
    }
    assert!(raw.iter().all(|event| event["event"]["reason"].as_str().is_some_and(|why| !why.is_empty())), "{raw:?}");
    stop_runtime(gateway, &noisy, &tag).await;
    yes()
}

async fn killed(stage: Arc<Stage>) -> Verdict {
    let gateway = &stage.gateway;
    let session = &stage.first;
    let file = stage.file("killed");
    let script = if stage.agent.asks { making(&file) } else { "FAKE:stall 3".to_owned() };
    let run = gateway.prompt(session, &script).await;
    let request = if stage.agent.asks { Some(gateway.open_request(session).await) } else { None };
    if request.is_none() {
        stage.until_said(session, &run, "part-3").await;
    }
    let (_, runtime) = gateway.get(&format!("/v1/runtimes/{}", stage.id)).await;
    let generation = runtime["generation"].as_u64().unwrap();
    stage.kill_agent(&runtime);
    if stage.agent.serves {
        // Whoever runs it starts it again; what became of the run is known then.
        stage.serve().await;
    }
    let events = gateway.until_ended(session, &run).await;
    assert_eq!(settled(&events, &run), "error");
    if let Some(request) = request {
        let resolved = events.iter().rfind(|event| event["kind"] == "request_resolved").unwrap();
        let state = if stage.agent.serves { "withdrawn" } else { "orphaned" };
        assert_eq!(resolved["event"]["state"], state, "{resolved}");
        let (status, late) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
        assert_eq!((status, &late["state"]), (410, &json!(state)), "{late}");
        assert!(!file.exists());
    }
    until("it is started again", || async {
        let (_, runtime) = gateway.get(&format!("/v1/runtimes/{}", stage.id)).await;
        // A server is connected again; only a program is another one then.
        let again = stage.agent.serves || runtime["generation"].as_u64() > Some(generation);
        runtime["state"] == "ready" && again
    })
    .await;
    // Until it is open again a prompt is refused.
    until("the session is open again", || async {
        let (_, session) = gateway.get(&format!("/v1/sessions/{session}")).await;
        session["state"] == "idle"
    })
    .await;
    let events = gateway.events(session).await;
    let attached = events.iter().rfind(|event| event["event"]["status"] == "attached").unwrap();
    // The conversations of a server are open all the time: it is attached again, and none is resumed.
    assert!(stage.agent.serves || attached["event"]["resumed"] == true, "{attached}");
    assert_eq!(said(&events, None).matches(PAST).count(), 1, "the log says the past once");
    stage.remembers(session, "after the crash").await;
    yes()
}

/// Where the agent lists what it keeps, a conversation is among it, and is said to be open nowhere.
async fn listed(stage: &Stage, native: &Value) {
    let (status, runtime) = stage.gateway.get(&format!("/v1/runtimes/{}", stage.id)).await;
    assert_eq!(status, 200, "{runtime}");
    let can = |one: &str| runtime["capabilities"].as_array().unwrap().iter().any(|can| can == one);
    let (status, page) = stage.gateway.get(&format!("/v1/runtimes/{}/resumable", stage.id)).await;
    if can("list") && (can("load") || can("resume")) {
        let kept = page["resumable"].as_array().unwrap_or_else(|| panic!("{page}"));
        if stage.agent.lists_a_folder {
            return assert!(kept.is_empty(), "it lists them all now: {page}");
        }
        let kept = kept.iter().find(|one| one["native_id"] == *native).unwrap_or_else(|| panic!("{native}: {page}"));
        assert!(kept.get("session_id").is_none() && kept["cwd"].is_string(), "{kept}");
    } else {
        assert_eq!((status, page["code"].as_str()), (409, Some("listing_unsupported")), "{page}");
    }
}

async fn opened_by_its_native_id(stage: Arc<Stage>) -> Verdict {
    let gateway = &stage.gateway;
    let (_, first) = gateway.get(&format!("/v1/sessions/{}", stage.first)).await;
    let (status, body) = gateway.delete(&format!("/v1/sessions/{}", stage.first)).await;
    assert!(status == 200 || status == 204, "{status} {body}");
    listed(&stage, &first["native_id"]).await;
    let wanted = json!({ "runtime_id": stage.id, "native_id": first["native_id"] });
    let (status, again) = gateway.post("/v1/sessions", wanted).await;
    if again["detail"].as_str().is_some_and(|why| why.contains("cannot reopen a conversation")) {
        return not_supported("it cannot reopen a conversation");
    }
    if again["detail"].as_str().is_some_and(|why| why.contains("already loaded")) {
        return not_supported("it refuses a conversation that is still open");
    }
    assert!(status == 200 || status == 201, "{status} {again}");
    assert_eq!(again["native_id"], first["native_id"]);
    let session = again["session_id"].as_str().unwrap();
    assert_ne!(session, stage.first, "the old one is forgotten");
    if stage.agent.opens_twice {
        let words = "once more";
        let run = gateway.prompt(session, &format!("FAKE:text {words}")).await;
        let said = said(&gateway.until_ended(session, &run).await, Some(&run));
        let sorted = |text: &str| {
            let mut letters: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
            letters.sort_unstable();
            letters
        };
        assert_eq!(sorted(&said), sorted(&words.repeat(2)), "{said}");
        return not_supported("it sends everything twice in a conversation that is still open");
    }
    stage.remembers(session, "after all that").await;
    // A replay may come after the reply that ends it, but not after a whole turn.
    let events = gateway.events(session).await;
    match said(&events, None).matches(PAST).count() {
        0 => yes_but("it remembers the conversation but does not replay it"),
        told => {
            assert_eq!(told, 1, "the past is told once");
            yes()
        }
    }
}

// ------------------------------------------------------------------------------------ the stage

/// A gateway with one real agent attached.
struct Stage {
    agent: Agent,
    /// The runtime.
    id: String,
    gateway: Gateway,
    setup: AgentSetup,
    /// A session with a past: [`PAST`].
    first: String,
    work: tempfile::TempDir,
    _home: tempfile::TempDir,
    _model: FakeModel,
    /// The file of the requests to the model.
    log: PathBuf,
    /// A variable in the environment of all that the agent starts.
    tag: String,
}

/// Time that something may take that must happen; reached only by a failure. Gemini CLI's conversations are opened again
/// after a minute and more.
const LONG: Duration = Duration::from_secs(180);

/// The text of the first session, which is searched when the session is opened again.
const PAST: &str = "what was said before";

const TAG: &str = "STORY_SUITE";

/// Makes the stage; `None`, with a note on stdout, if this machine has no Python for the agent.
async fn stage(agent: Agent) -> Option<Stage> {
    // Not below /tmp's root by a name that an agent could call temporary: codex warns of that.
    let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log = home.path().join("model.ndjson");
    let (install, model) = {
        let log = log.clone();
        let started = tokio::task::spawn_blocking(move || {
            let install = match agent.python {
                Some(name) => agents::python_dir(name)?,
                None => agents::install_dir(),
            };
            Some((install, FakeModel::logging(&log)))
        });
        started.await.unwrap()?
    };
    let setup = (agent.setup)(&install, home.path(), model.port());
    let gateway = Gateway::start("").await;
    let id = agent.name.replace(' ', "-");
    let tag = format!("{id}-{}", gateway.pid());
    if agent.serves {
        serve(&setup, &tag, work.path()).await;
    }
    attach(&gateway, &id, agent, &setup, &tag, work.path()).await;
    let first = gateway.session(&id).await;
    let run = gateway.prompt(&first, &format!("FAKE:text {PAST}")).await;
    gateway.until_ended(&first, &run).await;
    Some(Stage { agent, id, gateway, setup, first, work, _home: home, _model: model, log, tag })
}

/// The address of a server that runs by itself.
fn address(setup: &AgentSetup) -> String {
    format!("http://127.0.0.1:{}", setup.command.last().unwrap())
}

/// Starts a server, independent of the gateway, and waits until it answers. It is ended by its tag.
async fn serve(setup: &AgentSetup, tag: &str, cwd: &Path) {
    let mut command = std::process::Command::new(&setup.command[0]);
    command.args(&setup.command[1..]).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.envs(setup.env.iter().map(|(name, value)| (name, value))).env(TAG, tag).current_dir(cwd);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // Else it stays a zombie, which looks alive.
    std::thread::spawn(move || child.wait());
    // While it starts it may take a connection and never answer.
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().unwrap();
    let health = format!("{}/global/health", address(setup));
    until("the server answers", || async { http.get(&health).send().await.is_ok_and(|reply| reply.status() == 200) })
        .await;
}

async fn attach(gateway: &Gateway, id: &str, agent: Agent, setup: &AgentSetup, tag: &str, cwd: &Path) {
    let mut env: BTreeMap<&str, &str> = setup.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    env.insert(TAG, tag);
    let body = if agent.serves {
        json!({ "id": id, "dialect": agent.dialect, "connect": address(setup), "cwd": cwd })
    } else {
        json!({
            "id": id, "dialect": agent.dialect, "command": setup.command, "cwd": cwd, "env": env,
            "restart": "on-failure", "auth_method": setup.auth_method, "session_meta": setup.session_meta,
        })
    };
    let (status, body) = gateway.post("/v1/runtimes", body).await;
    assert_eq!(status, 201, "{body}");
}

/// Stops a runtime. No process that it started is left; a server that is attached is not stopped by that.
async fn stop_runtime(gateway: &Gateway, id: &str, tag: &str) {
    assert!(!tagged(tag).is_empty(), "its processes are known");
    let (status, body) = gateway.delete(&format!("/v1/runtimes/{id}")).await;
    assert!(status == 200 || status == 204, "{status} {body}");
    until("every process is gone", || async { tagged(tag).into_iter().all(|pid| !alive(pid)) }).await;
}

async fn until<F: Future<Output = bool>>(what: &str, mut done: impl FnMut() -> F) {
    let deadline = Instant::now() + LONG;
    while !done().await {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Stage {
    async fn session(&self) -> String {
        self.gateway.session(&self.id).await
    }

    /// Starts the server again.
    async fn serve(&self) {
        serve(&self.setup, &self.tag, self.work.path()).await;
    }

    /// Ends the server, and what it started.
    fn end_server(&self) {
        for pid in tagged(&self.tag) {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }

    /// A file that is not there yet, for a command to make.
    fn file(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    async fn cancel(&self, session: &str) {
        let (status, body) = self.gateway.post(&format!("/v1/sessions/{session}/cancel"), json!({})).await;
        assert!(status == 200 || status == 202, "{status} {body}");
    }

    /// The session is not wedged.
    async fn takes_the_next_prompt(&self, session: &str) {
        let run = self.gateway.prompt(session, "FAKE:text still here").await;
        let before = self.asked("FAKE:text still here");
        let ended = tokio::time::timeout(Duration::from_secs(45), self.gateway.until_ended(session, &run)).await;
        let Ok(events) = ended else {
            let (asked, events) = (self.asked("FAKE:text still here"), self.gateway.events(session).await);
            let (_, runtime) = self.gateway.get(&format!("/v1/runtimes/{}", self.id)).await;
            let kinds: Vec<_> = events.iter().map(|event| (&event["run_id"], &event["kind"])).collect();
            panic!(
                "no end of the next prompt; the model was asked {before} times before, {asked} now; {kinds:?}; {runtime}"
            );
        };
        assert_eq!((settled(&events, &run).as_str(), said(&events, Some(&run)).trim()), ("completed", "still here"));
    }

    /// The session takes a prompt, and the model is asked with what was said long before.
    async fn remembers(&self, session: &str, words: &str) {
        let run = self.gateway.prompt(session, &format!("FAKE:text {words}")).await;
        let events = self.gateway.until_ended(session, &run).await;
        let text = said(&events, Some(&run));
        // Copilot says first that a tool call was interrupted.
        let answer = if text.starts_with("Warning: ") { text.rsplit('.').next().unwrap() } else { &text };
        assert_eq!((settled(&events, &run).as_str(), answer.trim()), ("completed", words), "{text}");
        let log = std::fs::read_to_string(&self.log).unwrap();
        let asked = log.lines().filter(|line| line.contains(words)).any(|line| line.contains(PAST));
        assert!(asked, "the agent itself remembers");
    }

    /// The number of requests to the model that contain `script`. Side requests, for a title, bring no tools.
    fn asked(&self, script: &str) -> usize {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let bodies = log.lines().filter(|line| line.contains(script)).filter_map(|line| {
            let request: Value = serde_json::from_str(line).ok()?;
            serde_json::from_str::<Value>(request["body"].as_str()?).ok()
        });
        bodies.filter(|body| body["tools"].as_array().is_some_and(|tools| !tools.is_empty())).count()
    }

    /// The question that a run comes to, or none if it ends without one.
    async fn asked_or_over(&self, session: &str, run: &str) -> Option<Value> {
        let deadline = Instant::now() + LONG;
        loop {
            let events = self.gateway.events(session).await;
            if events.iter().any(|event| event["kind"] == "request_opened") {
                return Some(self.gateway.open_request(session).await);
            }
            if of_run(&events, run).iter().any(|event| event["kind"] == "run_ended") {
                return None;
            }
            assert!(Instant::now() < deadline, "neither a question nor an end: {events:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn until_said(&self, session: &str, run: &str, words: &str) {
        until(words, || async { said(&self.gateway.events(session).await, Some(run)).contains(words) }).await;
    }

    /// Kills the process that speaks for the agent, and the one above it that only started it with the same arguments.
    fn kill_agent(&self, runtime: &Value) {
        let args = format!("{}\0", self.setup.command.join("\0"));
        // The gateway looks the program up.
        let args = args.strip_prefix("node").unwrap_or(&args);
        let is_agent = |pid: &u32| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.ends_with(args) && !line.contains("\0hold\0")
        };
        let mut all: Vec<u32> = tagged(&self.tag).into_iter().filter(is_agent).collect();
        // One that gave itself another name is known by the gateway alone.
        all.extend(runtime["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()));
        assert!(!all.is_empty(), "{args:?}");
        // The younger first: one that outlived the other could still say something.
        all.sort_unstable();
        all.dedup();
        for pid in all.into_iter().rev() {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Nobody else ends it where a test failed.
        if self.agent.serves {
            self.end_server();
        }
    }
}

/// The processes with this tag in their environment.
fn tagged(tag: &str) -> Vec<u32> {
    let pair = format!("{TAG}={tag}\0");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.windows(pair.len()).any(|window| window == pair.as_bytes())
    })
    .collect()
}

fn of_run<'a>(events: &'a [Value], run: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["run_id"] == run).collect()
}

/// Asserts that a run left nothing open: one end, which is its last event; every tool call ended; every request resolved. Returns its
/// status.
fn settled(events: &[Value], run: &str) -> String {
    assert_whole(events);
    let of_run = of_run(events, run);
    let ends: Vec<&&Value> = of_run.iter().filter(|event| event["kind"] == "run_ended").collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(of_run.last().unwrap()["kind"], "run_ended");
    let mut tools: BTreeMap<String, String> = BTreeMap::new();
    let mut open = Vec::new();
    for event in &of_run {
        match event["kind"].as_str().unwrap() {
            "tool_call" | "tool_call_update" => {
                let status = tools.entry(event["event"]["toolCallId"].to_string()).or_default();
                if let Some(new) = event["event"]["status"].as_str() {
                    new.clone_into(status);
                }
            }
            "request_opened" => open.push(event["event"]["request_id"].clone()),
            "request_resolved" => open.retain(|id| *id != event["event"]["request_id"]),
            _ => {}
        }
    }
    assert!(tools.values().all(|status| status == "failed" || status == "completed"), "{tools:?}");
    assert!(open.is_empty(), "{open:?}");
    ends[0]["event"]["status"].as_str().unwrap().to_owned()
}

// ------------------------------------------------------------------------------------ the play

async fn play(agent: Agent) {
    let start = Instant::now();
    let Some(stage) = stage(agent).await else { return };
    let stage = Arc::new(stage);
    println!("{}: ready after {:.1} s", agent.name, start.elapsed().as_secs_f32());
    let (_, runtime) = stage.gateway.get(&format!("/v1/runtimes/{}", stage.id)).await;
    let version = runtime["agent"].as_str().unwrap_or("nothing").to_owned();
    let only = std::env::var("STORY_SCENARIO").unwrap_or_default();
    let mut verdicts = Vec::new();
    let thirds = rounds("thirds of the agents in a divided scenario", 1, 3);
    let nth = AGENTS.iter().position(|other| other.name == agent.name).expect("the agent is in the table");
    let plays = |at: usize, cast: Cast| cast == All || (at + nth) % 3 < thirds;
    for (at, (name, cast, scenario)) in SCENARIOS.iter().enumerate() {
        if !(name.contains(&only) && plays(at, *cast)) {
            continue;
        }
        let begin = Instant::now();
        // A failure does not keep the others from being played.
        let verdict = tokio::spawn(scenario(Arc::clone(&stage))).await.unwrap_or_else(|why| format!("FAILED: {why}"));
        println!("{}: {name}: {verdict} ({:.1} s)", agent.name, begin.elapsed().as_secs_f32());
        verdicts.push((*name, verdict));
        stage.forget_all_but_the_first().await;
    }
    let mut stage = Arc::into_inner(stage).expect("every scenario is over");
    stage.leave().await;
    println!("{}: {:.1} s in all", agent.name, start.elapsed().as_secs_f32());
    let failed: Vec<_> = verdicts.iter().filter(|(_, verdict)| verdict.starts_with("FAILED")).collect();
    assert!(failed.is_empty(), "{}: {failed:#?}", agent.name);
    if only.is_empty() {
        verdicts.insert(0, (VERSION, version));
        hold_table(agent, &verdicts);
    }
}

impl Stage {
    /// Closes what a scenario opened. Else an agent that is started again would open it all again.
    async fn forget_all_but_the_first(&self) {
        let (_, body) = self.gateway.get("/v1/sessions").await;
        for session in body["sessions"].as_array().unwrap() {
            let id = session["session_id"].as_str().unwrap();
            if id != self.first {
                let (status, body) = self.gateway.delete(&format!("/v1/sessions/{id}")).await;
                assert!(status == 200 || status == 204, "{status} {body}");
            }
        }
    }

    /// Stops everything; no process of the agent is left.
    async fn leave(&mut self) {
        if self.agent.serves {
            let (status, body) = self.gateway.delete(&format!("/v1/runtimes/{}", self.id)).await;
            assert!(status == 200 || status == 204, "{status} {body}");
            assert!(tagged(&self.tag).into_iter().any(alive), "the server is its owner's to stop");
            self.end_server();
        } else {
            stop_runtime(&self.gateway, &self.id, &self.tag).await;
        }
        assert!(self.gateway.stop().await.success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gemini() {
    play(GEMINI).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode() {
    play(OPENCODE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode_serve() {
    play(OPENCODE_SERVE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex_acp() {
    play(CODEX).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex_app_server() {
    play(CODEX_APP).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_agent_acp() {
    play(CLAUDE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn qwen() {
    play(QWEN).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vibe() {
    play(VIBE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kimi() {
    play(KIMI).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copilot() {
    play(COPILOT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grok() {
    play(GROK).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pi_acp() {
    play(PI).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fast_agent() {
    play(FAST_AGENT).await;
}

// ------------------------------------------------------------------------------------ the table

/// The row with the name and version of the program, as it reports them.
const VERSION: &str = "name and version it reports";
const BEGIN: &str = "<!-- suite:begin -->\n";
const END: &str = "<!-- suite:end -->\n";
/// The command that updates the table.
const FIX: &str = "PLEXUS_WRITE_DOCS=1 PLEXUS_ROUNDS=full cargo test --test real story_suite";

/// The tests of this program run side by side, and each writes the verdicts of its agent.
static TABLE: Mutex<()> = Mutex::new(());

/// Verdicts by row and agent.
type Table = BTreeMap<(String, String), Verdict>;

fn doc() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runtimes.md")
}

fn rows_of_table() -> Vec<&'static str> {
    std::iter::once(VERSION).chain(SCENARIOS.iter().map(|(name, ..)| *name)).collect()
}

/// The text before the table, the table's text, the text after.
fn parts(text: &str) -> (&str, &str, &str) {
    let (before, rest) = text.split_once(BEGIN).expect("docs/runtimes.md has the table's begin");
    let (table, after) = rest.split_once(END).expect("docs/runtimes.md has the table's end");
    (before, table, after)
}

/// The names of the agents.
fn names() -> Vec<&'static str> {
    AGENTS.iter().map(|agent| agent.name).collect()
}

fn read(table: &str) -> Table {
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let rows = rows.filter(|(name, _)| rows_of_table().contains(name));
    rows.flat_map(|(name, cell)| {
        let verdicts = verdicts::read_cell(cell, &names()).into_iter();
        verdicts.map(move |(agent, verdict)| ((name.to_owned(), agent), verdict))
    })
    .collect()
}

fn written(table: &Table) -> String {
    let mut text = "| scenario | result |\n| --- | --- |\n".to_owned();
    for row in rows_of_table() {
        let key = |agent: &str| (row.to_owned(), agent.to_owned());
        let verdicts = names().into_iter().map(|agent| (agent, table.get(&key(agent)).map_or("?", String::as_str)));
        text += &format!("| {row} | {} |\n", verdicts::cell(&verdicts.collect::<Vec<_>>()));
    }
    text
}

/// Writes an agent's verdicts, if that is requested, and fails if the document differs.
fn hold_table(agent: Agent, verdicts: &[(&str, Verdict)]) {
    let _one = TABLE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let text = std::fs::read_to_string(doc()).unwrap();
    let (before, table, after) = parts(&text);
    let mut table = read(table);
    for (row, verdict) in verdicts {
        let known = table.insert(((*row).to_owned(), agent.name.to_owned()), verdict.clone());
        if std::env::var_os("PLEXUS_WRITE_DOCS").is_none() {
            assert_eq!(known.as_ref(), Some(verdict), "docs/runtimes.md is stale at {row:?}, {}: {FIX}", agent.name);
        }
    }
    if std::env::var_os("PLEXUS_WRITE_DOCS").is_some() {
        std::fs::write(doc(), format!("{before}{BEGIN}{}{END}{after}", written(&table))).unwrap();
    }
}

#[test]
fn suite_table_has_every_agent_and_every_scenario() {
    let text = std::fs::read_to_string(doc()).unwrap();
    let (_, table, _) = parts(&text);
    let verdicts = read(table);
    assert!(written(&verdicts) == table, "docs/runtimes.md: the table is not as it is written: {FIX}");
    assert_eq!(verdicts.len(), rows_of_table().len() * AGENTS.len(), "docs/runtimes.md: {FIX}");
    assert!(verdicts.values().all(|verdict| verdict != "?"), "docs/runtimes.md: an agent is not filled in: {FIX}");
}

/// The tests that a document names: `path::name`, between backticks.
fn named(text: &str) -> Vec<(&str, &str)> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_test = |path: &str| path.ends_with(".rs") && (path.starts_with("src/") || path.starts_with("tests/"));
    quoted.filter_map(|name| name.split_once("::")).filter(|(path, _)| is_test(path)).collect()
}

fn is_there((path, name): (&str, &str)) -> bool {
    let source = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_default();
    source.contains(&format!("fn {name}("))
}

#[test]
fn documents_name_only_existing_tests() {
    let text = std::fs::read_to_string(doc()).unwrap();
    let gone: Vec<_> = named(&text).into_iter().filter(|test| !is_there(*test)).collect();
    assert!(gone.is_empty(), "docs/runtimes.md names tests that are not there: {gone:#?}");
    let rows = text.lines().filter(|line| line.starts_with("| ") && line.contains(".rs::")).count();
    assert!(rows > 40, "the document names tests: {rows}");
    assert!(!is_there(("tests/real/story_suite.rs", "no_such_test")));
    assert_eq!(named("a `tests/x.rs::y` b `x::y` c"), [("tests/x.rs", "y")]);
}
