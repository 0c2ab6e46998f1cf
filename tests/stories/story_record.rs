//! Recording the wire of runtimes, and replaying the recordings.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::common;

use common::gateway::{Gateway, demo, exe, held_runtime, said};
use common::moments::until_so;

/// The kinds of events from an agent.
const KINDS: &[&str] = &[
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "available_commands_update",
    "current_mode_update",
    "usage_update",
];

/// The recordings in a folder, oldest first; each must be private.
pub(crate) fn recordings(dir: &Path) -> Vec<(PathBuf, String)> {
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

fn run_replay(args: &[&str]) -> Output {
    Command::new(exe()).arg("replay").args(args).output().unwrap()
}

/// The output of `plexus replay --json` for a recording.
pub(crate) fn replay(file: &Path) -> Vec<Value> {
    let output = run_replay(&[file.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks that a replay has the events of the session's log, with secrets masked by `mask`.
pub(crate) fn assert_replayed(replayed: &[Value], events: &[Value], mask: impl Fn(&str) -> String) {
    let replayed_events = replayed.iter().flat_map(|line| line["events"].as_array().cloned().unwrap_or_default());
    let opened = replayed_events.flat_map(|event| match event["type"].as_str() {
        Some("opened") => event["events"].as_array().unwrap().clone(),
        Some("event") => vec![event],
        _ => Vec::new(),
    });
    let of_agents = |kind: &Value| kind.as_str().is_some_and(|kind| KINDS.contains(&kind));
    let again: Vec<(Value, Value)> = opened
        .filter(|event| of_agents(&event["kind"]))
        .map(|event| (event["kind"].clone(), event["body"].clone()))
        .collect();
    let logged = events.iter().filter(|event| of_agents(&event["kind"]));
    let logged = logged.map(|event| serde_json::from_str(&mask(&event["event"].to_string())).unwrap());
    let logged: Vec<(Value, Value)> = events
        .iter()
        .filter(|event| of_agents(&event["kind"]))
        .map(|event| event["kind"].clone())
        .zip(logged)
        .collect();
    assert!(logged.len() > 1, "{logged:?}");
    assert_eq!(again, logged);
    assert_eq!(replayed.last().unwrap()["also_tells"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn record_of_a_session_replays_to_the_same_events() {
    let (dir, records) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let config = format!("{}env = {{ DEMO_API_KEY = \"hunter2-and-more\" }}\n", demo());
    let record = [("PLEXUS_RECORD", records.path().to_str().unwrap())];
    let mut gateway = Gateway::start_with(dir, &config, &record).await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "echo the key is hunter2-and-more ;; plan ;; think ;; stream 5 ;; ask").await;
    let request = gateway.open_request(&session).await;
    let option = request["options"][0]["id"].as_str().unwrap();
    assert_eq!(gateway.choose(&request, option).await.0, 200);
    let events = gateway.until_ended(&session, &run).await;
    assert!(said(&events, None).contains("hunter2-and-more"), "people are told what the agent says");
    let events = gateway.events(&session).await;
    gateway.stop().await;

    let recorded = recordings(records.path());
    let [(file, text)] = &recorded[..] else { panic!("{recorded:?}") };
    assert!(!text.contains("hunter2") && text.contains("the key is •••1"), "{text}");
    let replayed = replay(file);
    assert_replayed(&replayed, &events, |text| text.replace("hunter2-and-more", "•••1"));
    let differs: Vec<_> = replayed.iter().filter(|line| line.get("instead").is_some()).collect();
    assert!(differs.is_empty(), "the dialect tells the agent just what it did: {differs:?}");
    for dir in ["about", "open", "command", "in", "out"] {
        assert!(replayed.iter().any(|line| line["dir"] == dir), "nothing {dir}");
    }
    let asked = replayed.iter().flat_map(|line| line["events"].as_array().cloned().unwrap_or_default());
    assert_eq!(asked.filter(|event| event["type"] == "request").count(), 1);

    let readable = run_replay(&[file.to_str().unwrap()]);
    let readable = String::from_utf8(readable.stdout).unwrap();
    for words in ["1 about", "= ready", "= event", "= request", "= ended", "> {\"jsonrpc\""] {
        assert!(readable.contains(words), "no {words} in {readable}");
    }
}

#[tokio::test]
async fn record_goes_on_with_a_runtime_that_outlived_its_gateway() {
    let (dir, records) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let config = held_runtime("demo", &[exe(), "agent", "demo"], "");
    let record = [("PLEXUS_RECORD", records.path().to_str().unwrap())];
    let mut gateway = Gateway::start_with(dir, &config, &record).await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "echo before").await;
    gateway.until_ended(&session, &run).await;
    // Recordings are written by another thread: a gateway killed at once may have written nothing.
    let written = || recordings(records.path()).iter().any(|(_, text)| text.contains("stopReason"));
    until_so("the end of the run is recorded", async || written()).await;
    gateway.kill();
    gateway.again().await;
    let run = gateway.prompt(&session, "echo after").await;
    gateway.until_ended(&session, &run).await;
    gateway.stop().await;

    let recorded = recordings(records.path());
    let [(first, _), (second, _)] = &recorded[..] else { panic!("{recorded:?}") };
    let text = |file: &Path| replay(file).iter().map(Value::to_string).collect::<Vec<_>>().concat();
    assert!(text(first).contains("echo before"));
    let lines = replay(second);
    assert!(lines.iter().any(|line| line["dir"] == "restored"), "{lines:?}");
    assert!(lines.iter().any(|line| line["events"][0]["type"] == "ended"), "the run after it ended: {lines:?}");
}

#[test]
fn replay_reports_a_bad_transcript_by_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.ndjson");
    let path = file.to_str().unwrap();
    let told = |text: &str, args: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let output = run_replay(&[&[path][..], args].concat());
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let open = "{\"dir\":\"open\",\"line\":\"\"}\n";
    assert!(told(open, &[]).contains("its first line does not name the dialect: add --dialect D"));
    assert!(
        told(open, &["--dialect", "x"]).contains("unknown dialect \"x\": use one of acp, claude-terminal, codelia")
    );
    assert!(told(&format!("{open}junk\n"), &["--dialect", "acp"]).contains("line 2: not a line of a recording"));
    let command = "{\"dir\":\"command\",\"line\":\"{\\\"Dance\\\":1}\"}\n";
    let words = told(&format!("{open}{command}"), &["--dialect", "acp"]);
    assert!(words.contains("line 2 (command): not a command: unknown variant `Dance`"), "{words}");
}

#[test]
fn replay_reads_the_transcripts_of_real_agents() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let mut replayed = 0;
    for file in std::fs::read_dir(dir).unwrap() {
        let lines = replay(&file.unwrap().path());
        let ends = lines.iter().flat_map(|line| line["events"].as_array().cloned().unwrap_or_default());
        assert!(ends.filter(|event| event["type"] == "ended").count() > 1);
        replayed += 1;
    }
    assert!(replayed > 5, "{replayed}");
}
