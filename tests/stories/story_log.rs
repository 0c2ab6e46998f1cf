//! The gateway's own log: each line has the spans of its subject.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::gateway::{Gateway, demo};
use common::moments::until_so;

/// The lines of the log that contain `words`.
fn lines(gateway: &Gateway, words: &str) -> Vec<String> {
    gateway.stderr().lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
}

async fn logging(directives: &str) -> Gateway {
    Gateway::start_with(tempfile::tempdir().unwrap(), &demo(), &[("PLEXUS_LOG", directives)]).await
}

#[tokio::test]
async fn log_line_names_its_runtime_session_run_request_and_connection() {
    let gateway = logging("plexus=debug").await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "ask").await;
    let request = gateway.open_request(&session).await;
    let id = request["request_id"].as_str().unwrap();
    let option = request["options"][0]["id"].as_str().unwrap();
    assert_eq!(gateway.choose(&request, option).await.0, 200);
    gateway.until_ended(&session, &run).await;
    until_so("the end of the run is in the log", async || !lines(&gateway, "a run ended").is_empty()).await;

    let began = lines(&gateway, "started, process");
    assert!(began.iter().all(|line| line.contains("runtime{runtime_id=demo}: ")) && !began.is_empty(), "{began:?}");
    let of_session = format!("session{{runtime_id=demo session_id={session}}}:");
    for (words, span) in [
        ("a run began", format!("run{{run_id={run}}}: ")),
        ("a run ended", format!("run{{run_id={run}}}: ")),
        ("a request changed state=Open", format!("request{{request_id={id}}}: ")),
        ("a request changed state=Answered", format!("request{{request_id={id}}}: ")),
    ] {
        let found = lines(&gateway, words);
        assert_eq!(found.len(), 1, "{words}: {found:?}");
        assert!(found[0].contains(&format!("{of_session}{span}")), "{}", found[0]);
    }
    let answered = lines(&gateway, "route=\"/v1/requests/{id}/answer\"");
    assert_eq!(answered.len(), 1, "{answered:?}");
    assert!(answered[0].contains("connection{connection=") && answered[0].contains("http{method=\"POST\""));
    assert!(!gateway.stderr().contains(&format!("/v1/requests/{id}")), "a route is told of, never a path");
}

#[tokio::test]
async fn log_of_one_session_is_selected_by_its_span() {
    let gateway = logging("info,[session{runtime_id=de.*}]=debug").await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "echo hello").await;
    gateway.until_ended(&session, &run).await;
    until_so("the end of the run is in the log", async || !lines(&gateway, "a run ended").is_empty()).await;
    assert!(lines(&gateway, "started, process").is_empty(), "the runtime's own lines were not asked for");
    assert!(lines(&gateway, "http{").iter().all(|line| !line.contains("DEBUG")), "nor those of calls");
}
