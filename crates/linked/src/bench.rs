//! The shared part of the agents' tests: the link endpoint's side of a dialect, and its events in a few words.
#![allow(clippy::unwrap_used)]

use serde_json::Value;

use plexus_dialects::link::{LinkRequest, TranscriptPart};
use plexus_dialects::rig::Rig;
use plexus_dialects::{CarriedState, HttpRequest, RequestKey, ResumeTarget, RuntimeCommand, RuntimeEvent};
use plexus_protocol::{Kind, Ticket};

/// Makes a connection of a dialect of this crate.
pub(crate) fn rig(dialect: &str) -> Rig {
    Rig::with(crate::find(dialect).unwrap()(&plexus_dialects::rig::spec(dialect)))
}

/// Opens a session.
pub(crate) fn open(rig: &mut Rig, resume: ResumeTarget) {
    let (ticket, cwd, resume) = (Ticket(1), "/w".into(), Some(resume));
    rig.tell(RuntimeCommand::Open { ticket, cwd, resume, mcp_servers: Vec::new() });
}

/// Makes the session that an earlier gateway process left, with its open questions and the prompt in progress.
pub(crate) fn left_by(rig: &Rig, native: &str, questions: &[&str], prompt: Option<(u64, &str)>) -> ResumeTarget {
    let block = |text: &str| serde_json::json!({ "type": "text", "text": text }).to_string();
    let carried = CarriedState {
        checkpoint: rig.checkpoint.clone().unwrap(),
        prompt: prompt.map(|(ticket, _)| Ticket(ticket)),
        content: prompt.iter().map(|(_, text)| block(text)).collect(),
        asks: questions.iter().map(|id| RequestKey::unique(*id)).collect(),
    };
    ResumeTarget { native: native.into(), known: true, carried: Some(Box::new(carried)) }
}

/// Takes the next request of the dialect.
pub(crate) fn next_request(rig: &mut Rig) -> Option<(HttpRequest, LinkRequest)> {
    let fetch = rig.fetches.pop_front()?;
    let request = LinkRequest::read(&fetch.path).unwrap();
    Some((fetch, request))
}

/// Replies with a part of a file, as the link endpoint does.
pub(crate) fn reply_with_part(rig: &mut Rig, fetch: &HttpRequest, part: &TranscriptPart, file: &str) {
    match file.get(part.offset.try_into().unwrap_or(usize::MAX)..) {
        Some(rest) => {
            let max = rest.len().min(part.length.try_into().unwrap());
            rig.reply(fetch, Some((200, &rest[..max])));
        }
        None => rig.reply(fetch, Some((416, &file.len().to_string()))),
    }
}

/// Returns the events since the last call, in a few words each.
pub(crate) fn summaries(rig: &mut Rig) -> Vec<String> {
    rig.take_events().into_iter().filter_map(summary).collect()
}

fn summary(event: RuntimeEvent) -> Option<String> {
    Some(match event {
        RuntimeEvent::Event { draft, .. } => {
            let body: Value = serde_json::from_slice(&draft.body).unwrap();
            match draft.kind {
                Kind::ToolCall => format!("call {} {} {}", body["toolCallId"], body["title"], body["kind"]),
                Kind::ToolCallUpdate => format!("{} {}", body["status"], body["toolCallId"]),
                Kind::SessionInfoUpdate => format!("title {}", body["title"]),
                Kind::Error => format!("error {}", body["code"]),
                Kind::Raw => format!("raw {}", body["reason"]),
                kind => format!("{} {}", kind.as_str(), body["content"]["text"]),
            }
        }
        RuntimeEvent::Began { by, .. } => format!("began by {by}"),
        RuntimeEvent::Done { end, .. } => format!("done {}", end.status.as_str()),
        RuntimeEvent::Ended { ticket, end, .. } => {
            let message = end.message.map(|message| format!(" {message}")).unwrap_or_default();
            format!("ended {} {}{message}", ticket.0, end.status.as_str())
        }
        RuntimeEvent::Asked { ask, .. } => format!("asked {} about {:?}", ask.key.id(), ask.tool_call_id),
        RuntimeEvent::AskChanged { ask, .. } => format!("changed {} {}", ask.key.id(), ask.observe_only),
        RuntimeEvent::TakenBack { key, elsewhere, .. } => {
            format!("taken back {} {:?}", key.id(), elsewhere.map(|it| (it.by, it.option_id)))
        }
        RuntimeEvent::AnswerLost { key, elsewhere, .. } => {
            format!("lost {} {:?}", key.id(), (elsewhere.by, elsewhere.option_id))
        }
        RuntimeEvent::Closed { reason, .. } => format!("closed {reason}"),
        RuntimeEvent::Opened { .. } => "opened".into(),
        RuntimeEvent::Ready { .. } | RuntimeEvent::Found { .. } | RuntimeEvent::Spent { .. } => return None,
        other => format!("{other:?}"),
    })
}

/// Returns the question that was asked last.
pub(crate) fn last_question(rig: &Rig) -> &plexus_dialects::AgentRequest {
    let mut questions = rig.events.iter().rev().filter_map(|event| match event {
        RuntimeEvent::Asked { ask, .. } => Some(&**ask),
        _ => None,
    });
    questions.next().unwrap()
}
