//! Descriptions of a dialect's outputs, for people and programs that read a recording.

use serde_json::{Value, json};

use crate::{AgentRequest, AnsweredElsewhere, EventDraft, RunEnd, RuntimeError, RuntimeEvent};
use plexus_protocol::NativeId;

/// Returns a runtime event as JSON: its `type`, and its content.
pub fn describe(event: &RuntimeEvent) -> Value {
    match event {
        RuntimeEvent::Ready { agent } => json!({ "type": "ready", "agent": agent }),
        RuntimeEvent::Failed { message } => json!({ "type": "failed", "message": message }),
        RuntimeEvent::Opened { ticket, native, drafts, how } => {
            let events: Vec<Value> = drafts.iter().map(draft).collect();
            let how = format!("{how:?}").to_lowercase();
            json!({ "type": "opened", "ticket": ticket, "native": native.as_str(), "how": how, "events": events })
        }
        RuntimeEvent::NotOpened { ticket, error } => {
            json!({ "type": "not_opened", "ticket": ticket, "error": fault(error) })
        }
        RuntimeEvent::Event { native, draft: it } => {
            let mut value = json!({ "type": "event", "native": name(native.as_ref()) });
            if let (Value::Object(value), Value::Object(more)) = (&mut value, draft(it)) {
                value.extend(more);
            }
            value
        }
        RuntimeEvent::Asked { native, ask } => request("request", native.as_ref(), ask),
        RuntimeEvent::AskChanged { native, ask } => request("request_changed", native.as_ref(), ask),
        RuntimeEvent::Reviewed { native, ask, review } => {
            let mut value = request("reviewed", Some(native), ask);
            value["review"] = json!({ "by": review.by, "allowed": review.allowed, "reason": review.reason });
            value
        }
        RuntimeEvent::TakenBack { native, key, elsewhere } => {
            let native = name(native.as_ref());
            json!({ "type": "taken_back", "native": native, "key": key, "elsewhere": elsewhere.as_ref().map(other) })
        }
        RuntimeEvent::AnswerLost { native, key, elsewhere } => {
            let native = name(native.as_ref());
            json!({ "type": "answer_lost", "native": native, "key": key, "elsewhere": other(elsewhere) })
        }
        RuntimeEvent::Began { native, by } => json!({ "type": "began", "native": native.as_str(), "by": by }),
        RuntimeEvent::Done { native, end: it } => json!({ "type": "done", "native": native.as_str(), "end": end(it) }),
        RuntimeEvent::Found { native, cwd, title } => {
            json!({ "type": "found", "native": native.as_str(), "cwd": cwd, "title": title })
        }
        RuntimeEvent::Ended { native, ticket, end: it } => {
            json!({ "type": "ended", "native": native.as_str(), "ticket": ticket, "end": end(it) })
        }
        RuntimeEvent::Closed { native, reason } => {
            json!({ "type": "closed", "native": native.as_str(), "why": reason })
        }
        RuntimeEvent::Checkpoint { native, state } => {
            json!({ "type": "checkpoint", "native": native.as_str(), "state": state })
        }
        RuntimeEvent::Spent { native, report } => {
            json!({ "type": "spent", "native": native.as_str(), "step": report.step, "total": report.total })
        }
        RuntimeEvent::Replied { ticket, reply } => {
            let reply = match reply {
                Ok(result) => json!({ "result": serde_json::from_str::<Value>(result.get()).unwrap_or_default() }),
                Err(error) => json!({ "error": fault(error) }),
            };
            json!({ "type": "replied", "ticket": ticket, "reply": reply })
        }
    }
}

fn name(native: Option<&NativeId>) -> Option<&str> {
    native.map(NativeId::as_str)
}

fn draft(draft: &EventDraft) -> Value {
    let body: Value = serde_json::from_slice(&draft.body).unwrap_or_default();
    json!({ "kind": draft.kind.as_str(), "body": body })
}

fn end(end: &RunEnd) -> Value {
    let status = format!("{:?}", end.status).to_lowercase();
    json!({ "status": status, "stop_reason": end.stop_reason, "message": end.message })
}

fn fault(error: &RuntimeError) -> Value {
    json!({ "code": error.code, "message": error.message })
}

fn other(elsewhere: &AnsweredElsewhere) -> Value {
    json!({ "by": elsewhere.by, "option_id": elsewhere.option_id })
}

fn request(kind: &str, native: Option<&NativeId>, ask: &AgentRequest) -> Value {
    let options: Vec<Value> = ask.options.iter().map(|one| json!({ "id": one.id, "label": one.label })).collect();
    json!({
        "type": kind,
        "native": name(native),
        "key": ask.key,
        "title": ask.title,
        "message": ask.message,
        "subject": format!("{:?}", ask.subject),
        "options": options,
        "tool_call_id": ask.tool_call_id,
    })
}
