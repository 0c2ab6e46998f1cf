//! Permission requests (`session/request_permission`), and the answers to every kind of request.

use std::collections::HashSet;

use agent_client_protocol_schema::v1::{
    RequestPermissionOutcome, RequestPermissionResponse, SelectedPermissionOutcome,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, RpcMessage, object, string};
use super::super::{AgentRequest, Dialect as _, EventDraft, Outbox, RequestKey, RuntimeEvent, ToolCallRef, held};
use super::elicitation::ElicitationForm;
use super::open::{PendingOpen, quoted};
use super::tool_calls::{SAVED_MAX, ToolCallState};
use super::{Acp, reading};
use plexus_protocol::{Choice, Decision, Editable, Kind, NativeId, Offer, RequestType};

/// An open request.
#[derive(Serialize, Deserialize)]
pub(super) enum PendingRequest {
    /// A permission request (`session/request_permission`), with its options.
    Permission {
        native: NativeId,
        options: Vec<String>,
        /// The details of the question, read again when more is known about its tool call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<PermissionDetails>,
    },
    /// An elicitation (`elicitation/create`).
    Elicitation {
        native: Option<NativeId>,
        #[serde(rename = "wanted")]
        form: ElicitationForm,
        params: Box<RawValue>,
    },
    /// A question of the gateway itself: how to sign in, so that a conversation can be opened.
    SignIn(PendingOpen),
    /// A file to write (`fs/write_text_file`), with its text before and after.
    Write { native: NativeId, path: String, before: Option<String>, text: String },
    /// A command to run (`terminal/create`).
    Run { native: NativeId, run: CommandRun },
}

/// A command that the agent asks to run.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct CommandRun {
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: Option<String>,
    pub(super) keep: Option<u64>,
}

/// The details of a permission request, read again with later updates of its tool call.
#[derive(Serialize, Deserialize)]
pub(super) struct PermissionDetails {
    tool: Option<String>,
    #[serde(rename = "said")]
    details: ToolCallState,
    #[serde(serialize_with = "brief")]
    params: Box<RawValue>,
}

/// Saves the params of a request: all of them, or only the members that are read again if they are long.
fn brief<S: Serializer>(params: &RawValue, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize, Deserialize)]
    struct Brief<'a> {
        #[serde(borrow, skip_serializing_if = "Option::is_none")]
        options: Option<&'a RawValue>,
        #[serde(borrow, rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<&'a RawValue>,
    }
    if params.get().len() <= SAVED_MAX {
        return params.serialize(serializer);
    }
    let Brief { options, meta } = object(params).unwrap_or(Brief { options: None, meta: None });
    // The options were checked to be short; a long `_meta` has nothing that is used here.
    Brief { options, meta: meta.filter(|meta| meta.get().len() <= SAVED_MAX) }.serialize(serializer)
}

impl PendingRequest {
    pub(super) fn native(&self) -> Option<&NativeId> {
        match self {
            Self::Permission { native, .. } | Self::Write { native, .. } | Self::Run { native, .. } => Some(native),
            Self::Elicitation { native, .. } => native.as_ref(),
            Self::SignIn(_) => None,
        }
    }
}

/// Returns the response to a permission request. Any decision that is not an offered option becomes `cancelled`: the
/// gateway never allows by mistake.
fn permitted(key: &RequestKey, options: &[String], decision: &Decision) -> Bytes {
    let selected = |id: &String| {
        let option = SelectedPermissionOutcome::new(id.clone());
        RequestPermissionResponse::new(RequestPermissionOutcome::Selected(option))
    };
    match decision {
        Decision::Option { id, .. } if options.contains(id) => jsonrpc::answer(key.id(), &selected(id)),
        // Only an agent that offered edits gets the text: by that it declared to read `_meta`.
        Decision::Edited { id, text, .. } if options.contains(id) => {
            let meta = [("plexus".to_owned(), serde_json::json!({ "edited": text }))];
            jsonrpc::answer(key.id(), &selected(id).meta(serde_json::Map::from_iter(meta)))
        }
        _ => cancelled(key.id()),
    }
}

/// Returns the response to an elicitation.
pub(super) fn elicited(id: &str, action: &str) -> Bytes {
    jsonrpc::answer(id, &serde_json::json!({ "action": action }))
}

/// Returns the response `cancelled` to a permission request.
pub(super) fn cancelled(id: &str) -> Bytes {
    jsonrpc::answer(id, &RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled))
}

/// Makes a request with only the required members set.
pub(super) fn question(
    key: &RequestKey,
    kind: RequestType,
    title: &str,
    params: &RawValue,
    native: Bytes,
) -> AgentRequest {
    AgentRequest::new(key.clone(), kind, title.to_owned(), jsonrpc::owned(params), native)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Permission<'a> {
    session_id: String,
    #[serde(borrow)]
    tool_call: &'a RawValue,
    options: Vec<&'a RawValue>,
}

/// The params of an open permission request.
#[derive(Deserialize)]
struct Asking<'a> {
    options: Vec<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// An extension of permission requests: the text that may be edited before it is allowed.
#[derive(Deserialize)]
struct Meta {
    plexus: Offered,
}

#[derive(Deserialize)]
struct Offered {
    editable: Editable,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionOption<'a> {
    option_id: String,
    name: Option<String>,
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
}

impl Acp {
    /// Returns whether another request may be opened under this key now, and logs a duplicate of an open one.
    pub(super) fn request_slot(
        &mut self,
        frame: &Bytes,
        key: &RequestKey,
        native: Option<&NativeId>,
        out: &mut Outbox,
    ) -> RequestSlot {
        if self.asks.keys().any(|open| open.id() == key.id()) || self.held.has(key.id()) {
            self.raw(frame, native.cloned(), "a request with the identifier of one that is still open", out);
            return RequestSlot::Taken;
        }
        // In the order in which they were asked.
        if self.held.waits(native) || !self.has_capacity(native) {
            return RequestSlot::Full;
        }
        RequestSlot::Free
    }

    fn has_capacity(&self, native: Option<&NativeId>) -> bool {
        let own = self.asks.values().filter(|request| request.native() == native).count();
        held::has_capacity(own, self.asks.len())
    }

    /// Opens requests that were held back by the limit of open requests.
    pub(super) fn open_held(&mut self, out: &mut Outbox) {
        let mut held = std::mem::take(&mut self.held);
        while let Some(frame) = held.next(|native| self.has_capacity(native)) {
            self.feed(frame, out);
        }
        self.held = held;
    }

    /// Withdraws the held requests of a session whose run has ended.
    pub(super) fn withdraw_held(&mut self, native: &NativeId, out: &mut Outbox) {
        for frame in self.held.drop_session(native) {
            out.frames.extend(withdrawal(&frame));
        }
    }

    pub(super) fn permission(&mut self, frame: &Bytes, id: &RawValue, params: Option<&RawValue>, out: &mut Outbox) {
        let key = self.key(id.get());
        let read = params.and_then(|params| Some((params, object::<Permission<'_>>(params)?)));
        let parts = read.and_then(|(params, request)| {
            let details = ToolCallState::read(frame, request.tool_call)?;
            // They are saved whole with the request.
            let options: usize = request.options.iter().map(|option| option.get().len()).sum();
            if options > SAVED_MAX {
                return None;
            }
            Some((params, offers(&request.options)?, details, request))
        });
        let Some((params, options, details, request)) = parts else {
            let native = self.named(params);
            self.raw(frame, native, "a permission request that could not be parsed: answered `cancelled`", out);
            return out.frames.push(cancelled(key.id()));
        };
        let native = self.native(&request.session_id);
        match self.request_slot(frame, &key, Some(&native), out) {
            RequestSlot::Free => {}
            RequestSlot::Taken => return,
            RequestSlot::Full => return self.held.push(Some(native), key.id(), frame),
        }
        let tool = reading::tool_call_id_in(request.tool_call).or_else(|| self.implied_tool_call(&native));
        if let Some((decision, recorded)) = self.own_tool_allowed(&native, (&details, tool.as_deref()), &options) {
            let offered: Vec<String> = options.iter().map(|offer| offer.id.clone()).collect();
            out.frames.push(permitted(&key, &offered, &decision));
            let mention = tool.as_ref().filter(|id| self.see(&native, id));
            let mention = mention.map(|id| first_mention(frame, request.tool_call, id, details.title.is_some()));
            let native = Some(native);
            let events = mention.into_iter().chain(recorded);
            return out.events.extend(events.map(|draft| RuntimeEvent::Event { native: native.clone(), draft }));
        }
        let first_mention = tool
            .as_ref()
            .filter(|id| self.see(&native, id))
            .map(|id| first_mention(frame, request.tool_call, id, details.title.is_some()));
        let offered = options.iter().map(|offer| offer.id.clone()).collect();
        let question = PermissionDetails { tool, details, params: jsonrpc::owned(params) };
        let mut ask = self.build_request(&key, &native, &question, frame);
        (ask.first_mention, ask.options) = (first_mention, options);
        self.asks
            .insert(key, PendingRequest::Permission { native: native.clone(), options: offered, wait: Some(question) });
        out.events.push(RuntimeEvent::Asked { native: Some(native), ask: Box::new(ask) });
    }

    /// Returns the tool call of a permission request that names none: a plan that waits, or the only one in progress.
    fn implied_tool_call(&self, native: &NativeId) -> Option<String> {
        let plan = self.known.latest(native).find(|(_, call)| reading::is_plan(call, self.agent.as_deref()));
        let mut all = self.known.latest(native);
        let only = all.next().filter(|_| all.next().is_none());
        plan.or(only).map(|(id, _)| id.to_owned())
    }

    /// Combines the request with everything known about its tool call, except its options.
    fn build_request(
        &self,
        key: &RequestKey,
        native: &NativeId,
        wait: &PermissionDetails,
        frame: &Bytes,
    ) -> AgentRequest {
        let announced = wait.tool.as_ref().and_then(|id| self.known.get(native, id));
        let call = announced.map_or_else(|| wait.details.clone(), |announced| announced.with(&wait.details));
        let title = call.title.as_ref().and_then(|title| Some(string(title.raw()?)?.into_owned()));
        let title = title.unwrap_or_else(|| "The agent asks for permission".into());
        let mut ask = question(key, RequestType::Permission, &title, &wait.params, frame.clone());
        ask.subject = reading::about(announced, &call, self.agent.as_deref());
        ask.message = reading::message(&call);
        ask.editable = object::<Asking<'_>>(&wait.params)
            .and_then(|request| object::<Meta>(request.meta?))
            .map(|meta| meta.plexus.editable);
        ask.tool_call_id.clone_from(&wait.tool);
        ask
    }

    /// Reports the open requests about a tool call again, after more became known about it.
    pub(super) fn report_again(&self, frame: &Bytes, native: &NativeId, tool: &str, out: &mut Outbox) {
        let mut open: Vec<(&RequestKey, &PendingRequest)> = self.asks.iter().collect();
        // In an order that does not depend on the map.
        open.sort_unstable_by_key(|(key, _)| *key);
        for (key, request) in open {
            let PendingRequest::Permission { native: session, wait: Some(wait), .. } = request else { continue };
            if session != native || wait.tool.as_deref() != Some(tool) {
                continue;
            }
            let options = object::<Asking<'_>>(&wait.params).and_then(|request| offers(&request.options));
            let ask =
                AgentRequest { options: options.unwrap_or_default(), ..self.build_request(key, native, wait, frame) };
            out.events.push(RuntimeEvent::AskChanged { native: Some(native.clone()), ask: Box::new(ask) });
        }
    }

    /// Answers a request with a decision of the user, or with the lack of one.
    pub(super) fn answer(&mut self, key: &RequestKey, decision: &Decision, out: &mut Outbox) {
        match self.asks.remove(key) {
            Some(PendingRequest::Permission { options, .. }) => out.frames.push(permitted(key, &options, decision)),
            Some(PendingRequest::Elicitation { native, form, params }) => {
                self.elicit(key, (native, form, params), decision, out);
            }
            Some(PendingRequest::SignIn(opening)) => self.sign_in_by(opening, decision, out),
            Some(PendingRequest::Write { native, path, before, text }) => {
                self.write(key, native, (path, before, text), decision, out);
            }
            Some(PendingRequest::Run { native, run }) => self.run(key, native, run, decision, out),
            None => {}
        }
    }

    /// Handles `$/cancel_request`, by which the agent withdraws a request.
    pub(super) fn taken_back(&mut self, frame: &Bytes, params: Option<&RawValue>, out: &mut Outbox) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow, default, deserialize_with = "jsonrpc::present")]
            request_id: Option<&'a RawValue>,
        }
        let id = params.and_then(object::<Params<'_>>).and_then(|params| params.request_id);
        let id = id.map_or("", RawValue::get);
        let open = self.asks.iter().find(|(key, _)| key.id() == id);
        match open.map(|(key, request)| (key.clone(), request.native().cloned())) {
            Some((key, native)) => {
                // A withdrawn request is answered as well, because the agent may still wait for a response.
                self.answer(&key, &Decision::Withdrawn, out);
                out.events.push(RuntimeEvent::TakenBack { native, key, elsewhere: None });
                self.open_held(out);
            }
            None if self.held.has(id) => out.frames.extend(self.held.remove(id).as_deref().and_then(withdrawal)),
            None if self.dropped(id, out) => {}
            None => self.raw(frame, None, "a withdrawal of a request that is not open", out),
        }
    }
}

/// Returns the response to a request of this method that is not shown to the user; `None` for other methods.
pub(super) fn withdrawn(id: &str, method: &str) -> Option<Bytes> {
    match method {
        "session/request_permission" => Some(cancelled(id)),
        "elicitation/create" => Some(elicited(id, "cancel")),
        _ => None,
    }
}

/// Returns the response to a message whose request is not shown to the user.
fn withdrawal(frame: &[u8]) -> Option<Bytes> {
    match jsonrpc::read(std::str::from_utf8(frame).ok()?).ok()? {
        RpcMessage::Request { id, method, .. } => withdrawn(id.get(), method.as_ref()),
        RpcMessage::Notification { .. } | RpcMessage::Response { .. } => None,
    }
}

pub(super) enum RequestSlot {
    Free,
    Taken,
    Full,
}

/// Reads the options as the agent wrote them; `None` if there are none, or if two have the same id.
fn offers(options: &[&RawValue]) -> Option<Vec<Offer>> {
    let mut ids = HashSet::new();
    let mut offers = Vec::with_capacity(options.len());
    for option in options {
        let option: PermissionOption<'_> = object(option)?;
        if !ids.insert(option.option_id.clone()) {
            return None;
        }
        let kind = option.kind.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or(Choice::Other);
        let label = option.name.unwrap_or_else(|| option.option_id.clone());
        offers.push(Offer { id: option.option_id, label, kind, for_session: false });
    }
    (!offers.is_empty()).then_some(offers)
}

/// Makes the `tool_call` event for a tool call that the agent mentions first in a permission request.
fn first_mention(frame: &Bytes, tool_call: &RawValue, id: &str, titled: bool) -> EventDraft {
    // ACP requires a title in a `tool_call`; an update may lack it.
    let title = if titled { "" } else { r#""title":"tool","# };
    let whole = jsonrpc::owned(tool_call);
    let rest = whole.get().strip_prefix('{').unwrap_or("}");
    let body = format!(r#"{{"sessionUpdate":"tool_call",{title}{}"#, rest.trim_start());
    // A tool call with a `sessionUpdate` of its own would give the body two members of that name.
    let has_duplicates = serde_json::from_str::<super::Head<'_>>(&body).is_err();
    let body = if has_duplicates {
        format!(r#"{{"sessionUpdate":"tool_call","toolCallId":{},"title":"tool"}}"#, quoted(id))
    } else {
        body
    };
    EventDraft {
        kind: Kind::ToolCall,
        body: body.into(),
        native: Some(frame.clone()),
        tool: Some(ToolCallRef::new(id, false)),
        title: None,
    }
}
