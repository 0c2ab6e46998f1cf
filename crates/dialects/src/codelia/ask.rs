//! Questions: `ui.confirm.request`, `ui.prompt.request`, `ui.pick.request`, and their answers.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, METHOD_NOT_FOUND, member, object, pretty};
use super::super::{AgentRequest, EventDraft, Outbox, RequestKey, RequestSubject, RuntimeEvent, subject};
use super::{ASKS_MAX, Codelia};
use plexus_protocol::{Choice, Decision, Item, Offer, RequestType};

/// The reason sent with an expired confirm.
const EXPIRED: &str = "expired, not a user decision";

/// Minimum length of a text of a tool's input by which a longer question is assigned to its call, in bytes.
const INPUT_MIN: usize = 4;

/// Maximum length of a tool name that is sent back to the runtime, in bytes.
const NAME_MAX: usize = 200;

/// A pending question.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) enum PendingRequest {
    Confirm,
    Prompt,
    Pick,
}

#[derive(Serialize)]
struct ConfirmResult<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    remember: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl PendingRequest {
    /// Returns the frame of the answer. A decision that does not fit the question becomes a denial.
    pub(super) fn answer(self, id: &str, decision: &Decision) -> Bytes {
        match (self, decision) {
            (Self::Confirm, Decision::Option { id: chosen, kind, reason }) => {
                let ok = kind.allows() && matches!(chosen.as_str(), "allow" | "allow_always");
                let remember = ok && chosen == "allow_always" || kind.rejects() && chosen == "deny_always";
                // A denial without a reason stops the turn, one with a reason continues it: an empty reason counts as none.
                let reason = reason.as_deref().filter(|reason| !reason.is_empty());
                jsonrpc::answer(id, &ConfirmResult { ok, remember, reason })
            }
            (Self::Confirm, Decision::Expired) => {
                jsonrpc::answer(id, &ConfirmResult { ok: false, remember: false, reason: Some(EXPIRED) })
            }
            (Self::Confirm, _) => jsonrpc::answer(id, &ConfirmResult { ok: false, remember: false, reason: None }),
            (Self::Prompt, decision) => {
                let value = if let Decision::Value(value) = decision { value.as_deref() } else { None };
                jsonrpc::answer(id, &serde_json::json!({ "value": value }))
            }
            (Self::Pick, decision) => {
                let ids = if let Decision::Ids(ids) = decision { ids.as_slice() } else { &[] };
                jsonrpc::answer(id, &serde_json::json!({ "ids": ids }))
            }
        }
    }
}

/// Returns the denial of a question that is not shown to the user.
pub(super) fn no(id: &str, method: &str) -> Bytes {
    match method {
        "ui.confirm.request" => {
            let reason = Some("the gateway could not show this question: not a user decision");
            jsonrpc::answer(id, &ConfirmResult { ok: false, remember: false, reason })
        }
        "ui.prompt.request" => PendingRequest::Prompt.answer(id, &Decision::Withdrawn),
        "ui.pick.request" => PendingRequest::Pick.answer(id, &Decision::Withdrawn),
        "client.tool.call" => no_tool(id, None),
        _ => jsonrpc::refuse(id, METHOD_NOT_FOUND, &format!("{method}: not served here")),
    }
}

/// Returns the answer to a call of a client's tool, which no client declares. A JSON-RPC error would leave the run hanging.
pub(super) fn no_tool(id: &str, params: Option<&RawValue>) -> Bytes {
    let mut name = params.and_then(|params| member(params, "name")).unwrap_or_else(|| "a tool".to_owned());
    name.truncate(name.floor_char_boundary(NAME_MAX));
    let error = format!("{name} is not available: no client of this gateway offers tools");
    jsonrpc::answer(id, &serde_json::json!({ "ok": false, "error": error }))
}

#[derive(Deserialize)]
struct Question {
    run_id: Option<String>,
    title: Option<String>,
    message: Option<String>,
    confirm_label: Option<String>,
    cancel_label: Option<String>,
    danger_level: Option<String>,
    allow_remember: Option<bool>,
    allow_reason: Option<bool>,
    default_value: Option<String>,
    multiline: Option<bool>,
    secret: Option<bool>,
    items: Option<Vec<Item>>,
    multi: Option<bool>,
}

impl Codelia {
    pub(super) fn request_received(
        &mut self,
        frame: &Bytes,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        out: &mut Outbox,
    ) {
        let (request, kind) = match method {
            "ui.confirm.request" => (PendingRequest::Confirm, RequestType::Confirm),
            "ui.prompt.request" => (PendingRequest::Prompt, RequestType::Prompt),
            "ui.pick.request" => (PendingRequest::Pick, RequestType::Pick),
            "client.tool.call" => {
                self.hook(frame, "client.tool.call", params, out);
                return out.frames.push(no_tool(id.get(), params));
            }
            _ => {
                self.raw(frame, "an unsupported request: refused", out);
                return out.frames.push(no(id.get(), method));
            }
        };
        let read = params.and_then(|params| Some((params, object::<Question>(params)?)));
        let Some((params, question)) = read else {
            self.raw(frame, "a request that could not be parsed: denied", out);
            return out.frames.push(no(id.get(), method));
        };
        self.request_count += 1;
        let key = RequestKey::nth(id.get(), self.request_count);
        if self.asks.keys().any(|open| open.id() == key.id()) {
            return self.raw(frame, "a request with the identifier of one that is still open", out);
        }
        if self.asks.len() >= ASKS_MAX {
            let message = format!("{ASKS_MAX} requests are open already: this one was denied");
            self.event(EventDraft::error("too_many_requests", &message, Some(frame)), out);
            return out.frames.push(no(id.get(), method));
        }
        let confirm = matches!(request, PendingRequest::Confirm);
        let ready = if confirm { self.context.ready.take() } else { None };
        // A question of another run is not about the tool call of this run.
        let ready = ready.filter(|ready| match (&ready.run_id, &question.run_id) {
            (Some(ready), Some(named_run)) => ready == named_run,
            _ => true,
        });
        let ready = ready.map(|ready| (ready.tool, ready.id));
        let tool_call_id = ready.or_else(|| if confirm { self.open_call(&question) } else { None });
        self.context.just_called = false;
        let allow_remember = confirm && question.allow_remember == Some(true);
        let first_mention =
            tool_call_id.as_ref().and_then(|(tool, id)| self.context.first_mention(frame, tool.as_deref(), id));
        let text = question.message.clone().unwrap_or_default();
        let subject = match tool_call_id.as_ref().and_then(|(_, id)| self.context.arguments(id)) {
            Some((tool, arguments)) => match subject::tool(tool, arguments) {
                RequestSubject::Tool { .. } if super::events::runs_commands(tool) => {
                    let reason = "its input has no command that can be identified with certainty";
                    RequestSubject::Unreadable {
                        reason,
                        raw: format!("{text}\n{tool} {}", pretty(arguments.get())).trim().into(),
                    }
                }
                subject => subject,
            },
            None if confirm => {
                RequestSubject::Confirm { title: question.title.clone().unwrap_or_default(), message: text }
            }
            None => RequestSubject::Text(text),
        };
        let ask = AgentRequest {
            message: question.message.clone(),
            subject,
            options: if confirm { offers(&question, allow_remember) } else { Vec::new() },
            items: question.items.unwrap_or_default(),
            multi: question.multi == Some(true),
            default_value: question.default_value,
            multiline: question.multiline == Some(true),
            secret: question.secret == Some(true),
            danger_level: question.danger_level,
            allow_reason: confirm && question.allow_reason == Some(true),
            allow_remember,
            tool_call_id: tool_call_id.map(|(_, id)| id),
            first_mention,
            ..AgentRequest::new(
                key.clone(),
                kind,
                question.title.clone().unwrap_or_else(|| "The agent asks".into()),
                jsonrpc::owned(params),
                frame.clone(),
            )
        };
        self.asks.insert(key, request);
        out.events.push(RuntimeEvent::Asked { native: self.native(), ask: Box::new(ask) });
    }
}

impl Codelia {
    /// Returns the open tool call that a confirm without `permission.ready` is about: the one whose input its text
    /// repeats, or the one that the runtime announced directly before it.
    fn open_call(&self, question: &Question) -> Option<(Option<String>, String)> {
        let is_same_run = |run: &Option<String>| match (run, &question.run_id) {
            (Some(run), Some(named_run)) => run == named_run,
            _ => true,
        };
        let texts = [question.message.as_deref(), question.title.as_deref()];
        let named = |input: &str| {
            let repeats = |text: &&str| text.trim() == input || input.len() >= INPUT_MIN && text.contains(input);
            texts.iter().flatten().any(repeats)
        };
        let open = || self.context.open_calls().filter(|call| is_same_run(&call.run_id));
        let mut about =
            open().filter(|call| self.context.arguments(&call.id).is_some_and(|(_, input)| names(input, named)));
        let call = about.next().or_else(|| self.context.just_called().filter(|call| is_same_run(&call.run_id)))?;
        Some((Some(call.tool.clone()), call.id.clone()))
    }
}

/// Returns whether `named` accepts one of the texts of a tool's input.
fn names(input: &RawValue, named: impl Fn(&str) -> bool) -> bool {
    let Ok(serde_json::Value::Object(members)) = serde_json::from_str(input.get()) else { return false };
    let mut texts = members.values().filter_map(serde_json::Value::as_str).map(str::trim);
    texts.any(named)
}

fn offers(question: &Question, allow_remember: bool) -> Vec<Offer> {
    let offer = |id: &str, label: String, kind| Offer { id: id.into(), label, kind, for_session: false };
    let confirm = question.confirm_label.clone().unwrap_or_else(|| "OK".into());
    let cancel = question.cancel_label.clone().unwrap_or_else(|| "Cancel".into());
    let mut offers = vec![offer("allow", confirm.clone(), Choice::AllowOnce)];
    if allow_remember {
        offers.push(offer("allow_always", format!("{confirm}, and remember it for this project"), Choice::AllowAlways));
    }
    offers.push(offer("deny", cancel.clone(), Choice::RejectOnce));
    if allow_remember {
        offers.push(offer("deny_always", format!("{cancel}, and remember it for this project"), Choice::RejectAlways));
    }
    offers
}
