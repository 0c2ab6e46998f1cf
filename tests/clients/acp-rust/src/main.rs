//! A player (the language is at the top of `tests/common/cast.rs`): the official Rust SDK over Streamable HTTP. Like the
//! TypeScript one, its transport ends with the first stream that breaks; the client comes back with its cursor.
//!
//! A connection that is lost without its doing is told as `dropped`, too.
//!
//! Each attachment is a thread with a runtime of its own: to drop that is to be cut, without a goodbye.

use std::collections::VecDeque;
use std::io::{BufRead as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, InitializeRequest, LoadSessionRequest, PermissionOption,
    PermissionOptionKind, PromptRequest, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    ResumeSessionRequest, SelectedPermissionOutcome, SessionNotification, SessionUpdate, TextContent,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error, UntypedMessage};
use agent_client_protocol_http::HttpClient;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Wish {
    Prompt { text: String },
    Answer { allow: bool },
    Cancel,
    Drop,
    Resume,
    Quit,
}

struct Question {
    id: String,
    options: Vec<PermissionOption>,
    responder: Responder<RequestPermissionResponse>,
}

/// The state that the client keeps when its connection is cut.
#[derive(Default)]
struct Kept {
    cursor: Option<String>,
    asked: Vec<String>,
    open: VecDeque<Question>,
}

type Shared = Arc<Mutex<Kept>>;

fn saw(what: &Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{what}");
    let _ = out.flush();
}

fn keep(kept: &Shared) -> std::sync::MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn var(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is missing"))
}

/// The current address of the gateway, which may have restarted elsewhere.
fn gateway() -> String {
    let json = std::fs::read(format!("{}/gateway.json", var("PLEXUS_HOME"))).expect("a gateway runs");
    let json: Value = serde_json::from_slice(&json).expect("gateway.json is JSON");
    json["url"].as_str().expect("it has a url").trim_end_matches('/').to_owned()
}

fn plexus(value: Value) -> Map<String, Value> {
    Map::from_iter([("plexus".to_owned(), value)])
}

fn updated(kept: &Shared, notification: &SessionNotification) {
    let cursor = notification.meta.as_ref().and_then(|meta| meta["plexus"]["cursor"].as_str());
    keep(kept).cursor = Some(cursor.expect("an update has a cursor").to_owned());
    let text = |content: &ContentBlock| match content {
        ContentBlock::Text(text) => Value::from(text.text.clone()),
        _ => Value::Null,
    };
    match &notification.update {
        SessionUpdate::AgentMessageChunk(chunk) => saw(&json!({ "text": text(&chunk.content) })),
        SessionUpdate::UserMessageChunk(chunk) => saw(&json!({ "user": text(&chunk.content) })),
        _ => {}
    }
}

fn happened(kept: &Shared, envelope: &Value) {
    let event = &envelope["event"];
    let mut kept = keep(kept);
    kept.cursor = envelope["cursor"].as_str().map(ToOwned::to_owned);
    match envelope["kind"].as_str() {
        Some("run_ended") => {
            let why = if event["stop_reason"].is_null() { &event["status"] } else { &event["stop_reason"] };
            saw(&json!({ "ended": why }));
        }
        Some("request_resolved") => {
            let id = event["request_id"].as_str().unwrap_or_default();
            kept.open.retain(|question| question.id != id);
            let allow = if event["state"] == "answered" { event["ok"].clone() } else { Value::Null };
            saw(&json!({ "resolved": id, "by": event["resolved_by"]["name"], "allow": allow }));
        }
        _ => {}
    }
}

fn asked(kept: &Shared, request: RequestPermissionRequest, responder: Responder<RequestPermissionResponse>) {
    let meta = request.meta.as_ref().map(|meta| &meta["plexus"]).unwrap_or(&Value::Null);
    let id = meta["request_id"].as_str().expect("a question has an identifier").to_owned();
    let mut kept = keep(kept);
    if !kept.asked.contains(&id) {
        saw(&json!({ "asked": meta["title"], "id": id }));
        kept.asked.push(id.clone());
    }
    kept.open.push_back(Question { id, options: request.options, responder });
}

fn answer(kept: &Shared, allow: bool) -> Result<(), Error> {
    let question = keep(kept).open.pop_front().ok_or_else(|| Error::internal_error().data("nothing was asked"))?;
    let fits = |option: &&PermissionOption| match option.kind {
        PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways => allow,
        _ => !allow,
    };
    let option = question.options.iter().find(fits).expect("there is such an option").option_id.clone();
    let outcome = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option));
    question.responder.respond(RequestPermissionResponse::new(outcome))
}

async fn attach(kept: Shared, mut wishes: mpsc::Receiver<Wish>) -> Result<(), Error> {
    let mut bearer =
        reqwest::header::HeaderValue::from_str(&format!("Bearer {}", var("PLEXUS_TOKEN"))).expect("a token");
    bearer.set_sensitive(true);
    let headers = reqwest::header::HeaderMap::from_iter([(reqwest::header::AUTHORIZATION, bearer)]);
    let transport = HttpClient::builder(gateway())
        .configure_http(|http| http.no_proxy().default_headers(headers))
        .build()
        .map_err(|error| Error::internal_error().data(error.to_string()))?;
    let (updates, events, questions) = (Arc::clone(&kept), Arc::clone(&kept), Arc::clone(&kept));
    Client
        .v1()
        .name("player")
        .on_receive_notification(
            async move |notification: SessionNotification, _cx| {
                updated(&updates, &notification);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_notification(
            async move |notification: UntypedMessage, _cx| {
                if notification.method() == "_plexus/event" {
                    happened(&events, notification.params());
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _cx| {
                asked(&questions, request, responder);
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(transport, async move |cx: ConnectionTo<Agent>| {
            let session = var("PLEXUS_SESSION");
            let abilities = ClientCapabilities::new().meta(plexus(json!({ "events": true })));
            let hello = InitializeRequest::new(ProtocolVersion::V1).client_capabilities(abilities);
            cx.send_request(hello).block_task().await?;
            let cursor = keep(&kept).cursor.clone();
            match cursor {
                None => drop(cx.send_request(LoadSessionRequest::new(session.clone(), "/")).block_task().await?),
                Some(cursor) => {
                    let after = plexus(json!({ "after": cursor }));
                    let resume = ResumeSessionRequest::new(session.clone(), "/").meta(after);
                    drop(cx.send_request(resume).block_task().await?);
                }
            }
            saw(&json!({ "ready": true }));
            while let Some(wish) = wishes.recv().await {
                match wish {
                    Wish::Prompt { text } => {
                        let prompt = vec![ContentBlock::Text(TextContent::new(text))];
                        let sent = cx.send_request(PromptRequest::new(session.clone(), prompt));
                        sent.on_receiving_result(async |result| {
                            if let Err(error) = result {
                                saw(&json!({ "error": error.to_string() }));
                            }
                            Ok(())
                        })?;
                    }
                    Wish::Answer { allow } => answer(&kept, allow)?,
                    Wish::Cancel => cx.send_notification(CancelNotification::new(session.clone()))?,
                    Wish::Drop | Wish::Resume | Wish::Quit => break,
                }
            }
            Ok(())
        })
        .await
}

/// The transport has ended. What it says of a stream or a request that broke is what it says when the gateway is gone.
fn lost(kept: &Shared, error: &Error) {
    let words = format!("{error}: {:?}", error.data);
    keep(kept).open.clear();
    if words.contains("SSE stream ended") || words.contains("POST") {
        saw(&json!({ "dropped": true }));
    } else {
        saw(&json!({ "error": words }));
    }
}

struct Line {
    wishes: mpsc::Sender<Wish>,
    cut: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

fn enter(kept: &Shared) -> Line {
    let (wishes, theirs) = mpsc::channel(16);
    let (cut, is_cut) = oneshot::channel();
    let kept = Arc::clone(kept);
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            tokio::select! {
                ended = attach(Arc::clone(&kept), theirs) => {
                    if let Err(error) = ended {
                        lost(&kept, &error);
                    }
                }
                _ = is_cut => {}
            }
        });
    });
    Line { wishes, cut, thread }
}

fn main() {
    let kept = Shared::default();
    let mut line = Some(enter(&kept));
    for wish in std::io::stdin().lock().lines() {
        let Ok(wish) = wish else { break };
        let wish: Wish = serde_json::from_str(&wish).expect("the story's language");
        match wish {
            Wish::Drop => {
                let Some(Line { cut, thread, .. }) = line.take() else { continue };
                let _ = cut.send(());
                let _ = thread.join();
                keep(&kept).open.clear();
                saw(&json!({ "dropped": true }));
            }
            Wish::Resume => line = Some(enter(&kept)),
            Wish::Quit => break,
            wish => {
                let Some(line) = &line else { continue };
                if line.wishes.blocking_send(wish).is_err() {
                    saw(&json!({ "error": "the connection has ended" }));
                }
            }
        }
    }
    if let Some(Line { wishes, thread, cut }) = line {
        // Its goodbye goes out before.
        drop(wishes);
        let _ = thread.join();
        drop(cut);
    }
}
