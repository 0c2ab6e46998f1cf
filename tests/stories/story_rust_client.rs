//! The Rust client against a real gateway: calls, the first answer, resuming by cursor, and the example.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::gateway::{Gateway, PATIENCE, exe, said};
use plexus_client::liveness::LivenessTimeouts;
use plexus_client::{Address, Client, ClientEvent, Error, Follow, FollowStart, Requests};
use plexus_protocol::transcript::{Content, EntryBody, Role};
use plexus_protocol::{Answer, RequestId, RequestState, SessionId};
use tokio::io::{AsyncBufReadExt as _, BufReader};

async fn next(follow: &mut Follow) -> ClientEvent {
    let heard = tokio::time::timeout(PATIENCE, follow.next()).await.expect("nothing came");
    heard.expect("it ended").expect("no error")
}

fn yes() -> Answer {
    Answer { ok: Some(true), ..Answer::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_client_prompts_answers_and_learns_who_won() {
    let gateway = Gateway::demo().await;
    let (one, two) = (Client::new(&gateway.url, &gateway.token), Client::new(&gateway.url, &gateway.token));
    let runtime = one.runtimes().await.unwrap().remove(0).runtime_id;
    let session = one.new_session(&runtime, None).await.unwrap().session_id;
    assert!(two.sessions().await.unwrap().iter().any(|known| known.session_id == session));
    let mut follow = two.attach(Some(&session), FollowStart::Start);
    let mut requests = Requests::default();
    let accepted = one.prompt(&session, "ask ;; echo done").await.unwrap();
    while requests.open().is_empty() {
        requests.apply(&next(&mut follow).await);
    }
    let id = requests.open().keys().next().unwrap().clone();
    let won = one.answer(&id, &yes(), "k1").await.unwrap();
    assert!(won.won && won.ok == Some(true));
    assert_eq!(one.answer(&id, &yes(), "k1").await.unwrap(), won, "the same key, the same receipt");
    let lost = two.answer(&id, &Answer { ok: Some(false), ..Answer::default() }, "k2").await.unwrap();
    assert_eq!((lost.won, lost.ok, lost.state), (false, Some(true), RequestState::Answered));
    let mut text = String::new();
    loop {
        let heard = next(&mut follow).await;
        requests.apply(&heard);
        if let ClientEvent::Event(event) = heard {
            match event.envelope.entry() {
                Some(EntryBody::Message { role: Role::Agent, content: Content::Text(chunk), .. }) => {
                    text.push_str(&chunk)
                }
                Some(EntryBody::RunEnded(_)) => break,
                _ => {}
            }
        }
    }
    assert!(requests.open().is_empty());
    assert_eq!(text, said(&gateway.events(session.as_str()).await, Some(accepted.run_id.as_str())));
    // Errors have the gateway's codes, and the connection stays open.
    let nowhere: SessionId = "s_nothing".parse().unwrap();
    match one.prompt(&nowhere, "x").await {
        Err(Error::Rpc { code: -32004, data, .. }) => assert_eq!(data["code"], "session_not_found"),
        other => panic!("{other:?}"),
    }
    let none: RequestId = "q_nothing".parse().unwrap();
    assert!(matches!(one.answer(&none, &yes(), "k3").await, Err(Error::Rpc { code: -32016, .. })));
    let hanging = one.prompt(&session, "hang").await.unwrap().run_id;
    assert_eq!(one.cancel(&session, None).await.unwrap(), hanging);
    let wrong = Client::new(&gateway.url, "plx_wrong");
    assert!(matches!(wrong.sessions().await, Err(Error::Refused(_))));
    assert!(matches!(wrong.attach(None, FollowStart::Now).next().await, Some(Err(Error::Refused(_)))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_client_resumes_after_a_killed_gateway_without_a_gap() {
    let mut gateway = Gateway::demo().await;
    let session: SessionId = gateway.session("demo").await.parse().unwrap();
    let place = Arc::new(Mutex::new(Address { url: gateway.url.clone(), token: gateway.token.clone(), program: None }));
    let known = Arc::clone(&place);
    let client = Client::locating(Arc::new(move || {
        let address = known.lock().unwrap().clone();
        Box::pin(async move { Ok(address) })
    }));
    let mut follow = client.attach(Some(&session), FollowStart::Start);
    let mut cursors = Vec::new();
    client.prompt(&session, "stream 50 ;; hang").await.unwrap();
    while cursors.len() < 30 {
        if let ClientEvent::Event(event) = next(&mut follow).await {
            cursors.push(event.envelope.cursor.to_string());
        }
    }
    gateway.kill();
    gateway.again().await;
    *place.lock().unwrap() = Address { url: gateway.url.clone(), token: gateway.token.clone(), program: None };
    let mut lost = false;
    loop {
        match next(&mut follow).await {
            ClientEvent::Event(event) => cursors.push(event.envelope.cursor.to_string()),
            ClientEvent::Lost(_) => lost = true,
            ClientEvent::Live if lost => break,
            _ => {}
        }
    }
    let log: Vec<String> =
        gateway.events(session.as_str()).await.iter().map(|event| event["cursor"].as_str().unwrap().into()).collect();
    assert_eq!(cursors, log[..cursors.len()], "no gap and no repeat");
    assert_eq!(client.sessions().await.unwrap().len(), 1, "calls come back too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_client_example_shows_what_happens() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "ask ;; echo seen").await;
    let request = gateway.open_request(&session).await;
    gateway.choose(&request, "allow_once").await;
    gateway.until_ended(&session, &run).await;
    let mut build = common::cargo();
    build.args(["build", "--quiet", "--locked", "--example", "watch"]);
    let built = build.status().unwrap();
    assert!(built.success());
    let mut example = tokio::process::Command::new(Path::new(exe()).with_file_name("examples").join("watch"))
        .args([&gateway.url, &gateway.token])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(example.stdout.take().unwrap()).lines();
    let mut out = Vec::new();
    while out.last().is_none_or(|line: &String| !line.contains("run_ended")) {
        out.push(tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("a line").unwrap().unwrap());
    }
    assert!(out.contains(&format!("{session} agent_message_chunk seen")), "{out:?}");
    assert!(out.iter().any(|line| line.starts_with(&format!("{session} request_resolved"))), "{out:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_client_loses_and_finds_a_stopped_gateway() {
    let gateway = Gateway::demo().await;
    let session: SessionId = gateway.session("demo").await.parse().unwrap();
    let timeouts = LivenessTimeouts { quiet: Duration::from_millis(100), answer: Duration::from_secs(2) };
    let client = Client::new(&gateway.url, &gateway.token).with_timeouts(timeouts);
    let mut follow = client.attach(Some(&session), FollowStart::Now);
    while !matches!(next(&mut follow).await, ClientEvent::Live) {}
    // The gateway is stopped (SIGSTOP) and alive.
    assert!(tokio::time::timeout(5 * timeouts.quiet, follow.next()).await.is_err());
    client.sessions().await.unwrap();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &gateway.pid().to_string()]).status().unwrap().success());
    };
    signal("-STOP");
    // A thread that is not stopped yet may answer the first call.
    let unanswered = async {
        loop {
            match client.call::<serde_json::Value>("session.list", serde_json::json!({})).await {
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    };
    let unanswered = tokio::time::timeout(PATIENCE, unanswered).await;
    let lost = next(&mut follow).await;
    signal("-CONT");
    assert!(matches!(lost, ClientEvent::Lost(_)), "{lost:?}");
    let unanswered = unanswered.expect("a call is not waited for without end");
    assert!(matches!(unanswered, Error::Lost(_)), "{unanswered:?}");
    while !matches!(next(&mut follow).await, ClientEvent::Live) {}
    let run = client.prompt(&session, "echo again").await.unwrap().run_id;
    loop {
        if let ClientEvent::Event(event) = next(&mut follow).await
            && event.envelope.kind == "run_ended"
        {
            assert_eq!(event.envelope.run_id, run);
            break;
        }
    }
}
