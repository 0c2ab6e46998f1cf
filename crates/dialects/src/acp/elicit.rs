//! Elicitations of an ACP agent: opens a request for each, and sends the answer.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, member, object};
use super::super::{AnsweredElsewhere, EventDraft, Outbox, RequestKey, RuntimeEvent};
use super::ask::{PendingRequest, RequestSlot, elicited};
use super::elicitation::{Elicitation, ElicitationForm, ask, ask_again, filled, parse_form};
use super::{Acp, Pending};
use plexus_protocol::{Decision, NativeId};

impl Acp {
    pub(super) fn elicitation(&mut self, frame: &Bytes, id: &RawValue, params: Option<&RawValue>, out: &mut Outbox) {
        let key = self.key(id.get());
        let read = params.and_then(|params| Some((params, object::<Elicitation<'_>>(params)?)));
        let Some((params, asked)) = read else {
            self.raw(frame, None, "an elicitation that could not be parsed: answered `cancel`", out);
            return out.frames.push(elicited(key.id(), "cancel"));
        };
        let native = match asked.session_id.as_deref() {
            Some(session) => Some(self.native(session)),
            None => self.requesting_session(asked.request_id),
        };
        let Some(form) = parse_form(params) else {
            let message = "the agent requests input that cannot be shown: answered `cancel`";
            let draft = EventDraft::error("elicitation_not_carried", message, Some(frame));
            out.events.push(RuntimeEvent::Event { native, draft });
            return out.frames.push(elicited(key.id(), "cancel"));
        };
        if native.is_none() && self.sessions.is_empty() {
            // Without a session nobody would see the request, and the agent would wait forever.
            let message = "the agent sent a request before any session was open: answered `cancel`";
            let draft = EventDraft::error("elicitation_not_carried", message, Some(frame));
            out.events.push(RuntimeEvent::Event { native, draft });
            return out.frames.push(elicited(key.id(), "cancel"));
        }
        match self.request_slot(frame, &key, native.as_ref(), out) {
            RequestSlot::Free => {}
            RequestSlot::Taken => return,
            RequestSlot::Full => return self.held.push(native, key.id(), frame),
        }
        let mut ask = ask(&key, &form, params, frame.clone());
        ask.tool_call_id = asked.tool_call_id;
        self.asks
            .insert(key, PendingRequest::Elicitation { native: native.clone(), form, params: jsonrpc::owned(params) });
        out.events.push(RuntimeEvent::Asked { native, ask: Box::new(ask) });
    }

    /// Returns the session of the gateway's request during which the agent asks.
    fn requesting_session(&self, id: Option<&RawValue>) -> Option<NativeId> {
        match self.pending.get(&id?.get().parse().ok()?)? {
            Pending::Prompt { native, .. } => Some(native.clone()),
            Pending::Call { native, .. } => native.clone(),
            _ => None,
        }
    }

    /// Answers an elicitation, or opens it again.
    pub(super) fn elicit(
        &mut self,
        key: &RequestKey,
        (native, form, params): (Option<NativeId>, ElicitationForm, Box<RawValue>),
        decision: &Decision,
        out: &mut Outbox,
    ) {
        let action = match (&form, decision) {
            (ElicitationForm::Form(fields), decision) => match filled(fields, decision) {
                Ok(Some(content)) => {
                    let accepted = serde_json::json!({ "action": "accept", "content": content });
                    return out.frames.push(jsonrpc::answer(key.id(), &accepted));
                }
                Ok(None) => "cancel",
                Err(reason) => {
                    let ask = ask_again(key, &form, &params, &reason, decision);
                    self.asks.insert(key.clone(), PendingRequest::Elicitation { native: native.clone(), form, params });
                    return out.events.push(RuntimeEvent::Asked { native, ask: Box::new(ask) });
                }
            },
            (ElicitationForm::Confirmation, Decision::Option { id, .. }) if id == "accept" => {
                let accepted = serde_json::json!({ "action": "accept", "content": {} });
                return out.frames.push(jsonrpc::answer(key.id(), &accepted));
            }
            (ElicitationForm::Page { .. }, Decision::Option { id, .. }) if id == "accept" => "accept",
            (_, Decision::Option { id, .. }) if id == "decline" => "decline",
            _ => "cancel",
        };
        out.frames.push(elicited(key.id(), action));
    }

    /// Handles `elicitation/complete`: the page was completed, wherever it was opened.
    pub(super) fn page_done(&mut self, frame: &Bytes, params: Option<&RawValue>, out: &mut Outbox) {
        let done = params.and_then(|params| member::<String>(params, "elicitationId"));
        let open = self.asks.iter().find_map(|(key, asked)| match asked {
            PendingRequest::Elicitation { form: ElicitationForm::Page { id: Some(id) }, .. }
                if Some(id.as_str()) == done.as_deref() =>
            {
                Some(key.clone())
            }
            _ => None,
        });
        match open.and_then(|key| Some((self.asks.remove(&key)?, key))) {
            Some((asked, key)) => {
                // Accepting grants nothing: the agent itself reports that the page is completed.
                out.frames.push(elicited(key.id(), "accept"));
                let elsewhere =
                    AnsweredElsewhere { by: "the user who opened the page".into(), option_id: Some("accept".into()) };
                out.events.push(RuntimeEvent::TakenBack {
                    native: asked.native().cloned(),
                    key,
                    elsewhere: Some(elsewhere),
                });
                self.open_held(out);
            }
            None => {
                let native = self.named(params);
                self.raw(frame, native, "a page that was opened is complete", out);
            }
        }
    }
}
