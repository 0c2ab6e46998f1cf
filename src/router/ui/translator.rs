//! Translates events of the log into the UI protocol. The events of a session, from the start of a run on, are translated in the same way
//! and with the same numbers for every client.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::UiSupport;
use crate::frames::{ws_message, ws_text};
use crate::wire;
use plexus_protocol::answers::{self, AnswerAction, Answerer};
use plexus_protocol::ui_protocol::{self, EventNumbers, Members, RuntimeNotification};
use plexus_protocol::{Choice, Event, Kind, Offer, Request, RequestId, RequestType, Risk, RunId, RunStatus};
use plexus_sessions::initial_run_id;

/// The dialect of runtimes of this protocol.
pub(super) const OWN_DIALECT: &str = "codelia";
/// Maximum number of runs whose state is remembered.
const KNOWN: usize = 64;
/// Maximum number of tool calls whose names are remembered.
const TOOLS: usize = 256;
/// Maximum number of bytes of an answer that `final` repeats; of a longer one, the first.
const FINAL: usize = 1 << 20;

/// A run that the client knows.
struct KnownRun {
    id: RunId,
    /// `true` if the client's own prompt began the run.
    own: bool,
    ended: Option<RunStatus>,
}

/// The state that the events of a session leave behind, the same for every client.
#[derive(Default)]
pub(super) struct Progress {
    numbers: EventNumbers,
    /// The run to which `text` and `complete` belong.
    run: Option<RunId>,
    /// The agent's text since the last tool call.
    text: String,
    /// `true` if `final` was sent.
    complete: bool,
    /// The names of tool calls.
    tools: BTreeMap<String, String>,
}

/// Translates the events of a session for a client.
#[derive(Default)]
pub(super) struct UiTranslator {
    support: UiSupport,
    runs: VecDeque<KnownRun>,
    progress: Progress,
    /// The requests that were sent, by revision.
    sent_requests: BTreeSet<(RequestId, u64)>,
    /// The requests that were sent as a choice among options.
    options: BTreeSet<String>,
}

/// A message for the client.
pub(super) struct UiFrame {
    pub(super) bytes: Vec<u8>,
    /// The run of an agent event; `None` for all other messages.
    pub(super) event_run: Option<RunId>,
}

impl UiTranslator {
    pub(super) fn new(support: UiSupport) -> Self {
        Self { support, ..Self::default() }
    }

    pub(super) fn support(&self) -> UiSupport {
        self.support
    }

    fn run(&mut self, id: &RunId) -> &mut KnownRun {
        let index = self.runs.iter().position(|known| known.id == *id).unwrap_or_else(|| {
            if self.runs.len() >= KNOWN {
                self.runs.pop_front();
            }
            self.runs.push_back(KnownRun { id: id.clone(), own: false, ended: None });
            self.runs.len() - 1
        });
        &mut self.runs[index]
    }

    /// Marks a run as the client's own: its prompt is not echoed.
    pub(super) fn own(&mut self, run: &RunId) {
        self.run(run).own = true;
    }

    /// Returns the end of a run that the client knows, if it ended.
    pub(super) fn ended(&self, run: &RunId) -> Option<RunStatus> {
        self.runs.iter().find(|known| known.id == *run).and_then(|known| known.ended)
    }

    /// Returns whether the request was sent as a choice among its options.
    pub(super) fn as_options(&self, request: &str) -> bool {
        self.options.contains(request)
    }

    /// Continues from another translator's progress: the next event is the one after the last that it translated.
    pub(super) fn resume(&mut self, progress: Progress) {
        self.progress = progress;
    }

    pub(super) fn into_progress(self) -> Progress {
        self.progress
    }

    /// Appends an AgentEvent: `params` with its run and number.
    fn agent_event(&mut self, event: &Event, by_user: bool, mut params: Members, out: &mut Vec<UiFrame>) {
        let run = &event.run_id;
        // A history may begin among the events between the runs, so that these have the numbers of the log.
        let seq = match *run == initial_run_id(&event.origin) {
            true => i64::try_from(event.seq).unwrap_or(i64::MAX),
            false => self.progress.numbers.next(run.as_str(), by_user),
        };
        ui_protocol::set(&mut params, "run_id", run);
        ui_protocol::set(&mut params, "seq", &seq);
        let mut bytes = Vec::new();
        ws_message(&mut bytes, "agent.event", &params);
        out.push(UiFrame { bytes, event_run: Some(run.clone()) });
    }

    /// Appends an AgentEvent made from an event of another protocol.
    fn push_event(&mut self, event: &Event, mut sent: Value, out: &mut Vec<UiFrame>) {
        sent["timestamp"] = event.at.as_millis().into();
        let mut params = Members::new();
        ui_protocol::set(&mut params, "event", &sent);
        self.agent_event(event, sent["type"] == "hidden_user_message", params, out);
    }

    /// Collects the agent's text, which `final` repeats.
    fn add_text(&mut self, run: &RunId, text: &str) {
        self.begin(run);
        if self.progress.text.len() + text.len() <= FINAL {
            self.progress.text.push_str(text);
        }
    }

    /// Resets the text when another run begins.
    fn begin(&mut self, run: &RunId) {
        if self.progress.run.as_ref() != Some(run) {
            self.progress.run = Some(run.clone());
            self.progress.text.clear();
            self.progress.complete = false;
        }
    }

    /// Translates an event of the log; `past`: as history, without status messages.
    pub(super) fn event(&mut self, event: &Event, past: bool, out: &mut Vec<UiFrame>) {
        let own_dialect = &*event.origin.dialect == OWN_DIALECT;
        let native = event.native.as_deref().filter(|_| own_dialect).and_then(RuntimeNotification::read);
        // An error about a message comes before that message.
        let native = native.filter(|_| event.kind != Kind::Error);
        let Some(native) = self.verbatim(event, native, past, out) else { return };
        let body: Value = serde_json::from_slice(&event.body).unwrap_or_default();
        match event.kind {
            Kind::AgentMessageChunk => {
                let content = text_of(&body["content"]);
                self.add_text(&event.run_id, &content);
                self.push_event(event, json!({ "type": "text", "content": content }), out);
            }
            Kind::AgentThoughtChunk => {
                self.push_event(event, json!({ "type": "reasoning", "content": text_of(&body["content"]) }), out);
            }
            Kind::UserMessageChunk => {
                let own = self.run(&event.run_id).own && !past;
                let before = out.len();
                let message = json!({ "type": "hidden_user_message", "content": text_of(&body["content"]) });
                self.push_event(event, message, out);
                if own {
                    out.truncate(before);
                }
            }
            Kind::ToolCall | Kind::ToolCallUpdate => self.tool(event, &body, out),
            Kind::RunStarted => status(event, RunStatus::Running, None, past, out),
            Kind::RunStatus => match body["status"].as_str() {
                Some("awaiting_ui") => status(event, RunStatus::AwaitingUi, None, past, out),
                Some("running") => status(event, RunStatus::Running, None, past, out),
                _ => {}
            },
            Kind::RunEnded => self.run_ended(event, &body, native.map(|native| native.params), past, out),
            Kind::UsageUpdate if !past => {
                if let Some(left) = left(&body) {
                    let mut params = native.map(|native| native.params).unwrap_or_default();
                    ui_protocol::set(&mut params, "run_id", &event.run_id);
                    ui_protocol::set(&mut params, "context_left_percent", &left);
                    out.push(UiFrame::notify("run.context", &params));
                }
            }
            Kind::RequestOpened | Kind::RequestUpdated if !past => {
                if let Ok(request) = serde_json::from_slice::<Request>(&event.body) {
                    self.ask(&request, own_dialect, out);
                }
            }
            _ => {}
        }
    }

    fn run_ended(&mut self, event: &Event, body: &Value, own: Option<Members>, past: bool, out: &mut Vec<UiFrame>) {
        let ended = serde_json::from_value(body["status"].clone()).ok();
        let ended = ended.filter(|status| *status != RunStatus::Unknown).unwrap_or(RunStatus::Error);
        self.run(&event.run_id).ended = Some(ended);
        self.begin(&event.run_id);
        let complete = std::mem::replace(&mut self.progress.complete, true);
        let text = std::mem::take(&mut self.progress.text);
        if ended == RunStatus::Completed && !complete {
            self.push_event(event, json!({ "type": "final", "content": text }), out);
        }
        let mut own = own.unwrap_or_default();
        if let Some(message) = body["message"].as_str() {
            ui_protocol::set(&mut own, "message", &message);
        }
        status(event, ended, Some(own), past, out);
    }

    /// Passes on the message of a runtime of this protocol, unchanged except for the run and the number. Returns the message if it has to
    /// be translated like any other event; `None` if nothing more is to do.
    fn verbatim(
        &mut self,
        event: &Event,
        native: Option<RuntimeNotification>,
        past: bool,
        out: &mut Vec<UiFrame>,
    ) -> Option<Option<RuntimeNotification>> {
        #[derive(serde::Deserialize)]
        struct AgentEvent {
            #[serde(rename = "type")]
            type_name: String,
            content: Option<Value>,
        }
        let Some(native) = native else { return Some(None) };
        if native.is_status_with_more() && event.kind == Kind::Hook {
            let known = native.text("status").and_then(|word| serde_json::from_value(word.into()).ok());
            if let Some(now @ (RunStatus::Running | RunStatus::AwaitingUi)) = known {
                status(event, now, Some(native.params), past, out);
            }
            return None;
        }
        let body = native.params.get("event").filter(|_| native.method == "agent.event");
        let Some(body) = body else { return Some(Some(native)) };
        let agent_event: Option<AgentEvent> = serde_json::from_str(body.get()).ok();
        let type_name = agent_event.as_ref().map_or("", |agent_event| agent_event.type_name.as_str());
        self.begin(&event.run_id);
        match (
            type_name,
            agent_event.as_ref().and_then(|agent_event| agent_event.content.as_ref()).and_then(Value::as_str),
        ) {
            ("final", _) => self.progress.complete = true,
            ("text", Some(content)) => self.add_text(&event.run_id, content),
            ("tool_call", _) => self.progress.text.clear(),
            _ => {}
        }
        let by_user = type_name == "hidden_user_message";
        self.agent_event(event, by_user, native.params, out);
        None
    }

    fn tool(&mut self, event: &Event, body: &Value, out: &mut Vec<UiFrame>) {
        let Some(id) = body["toolCallId"].as_str() else { return };
        self.progress.text.clear();
        if !self.progress.tools.contains_key(id) {
            if self.progress.tools.len() >= TOOLS {
                self.progress.tools.pop_first();
            }
            let name = body["title"].as_str().or(body["kind"].as_str()).unwrap_or("tool").to_owned();
            self.progress.tools.insert(id.to_owned(), name.clone());
            let args = if body["rawInput"].is_null() { json!({}) } else { body["rawInput"].clone() };
            self.push_event(event, json!({ "type": "tool_call", "tool": name, "args": args, "tool_call_id": id }), out);
        }
        let status = body["status"].as_str();
        if matches!(status, Some("completed" | "failed"))
            && let Some(name) = self.progress.tools.remove(id)
        {
            let parts = body["content"].as_array().into_iter().flatten();
            let texts: Vec<String> =
                parts.filter(|part| part["type"] == "content").map(|part| text_of(&part["content"])).collect();
            let result = match (texts.is_empty(), &body["rawOutput"]) {
                (true, Value::String(text)) => text.clone(),
                (true, Value::Null) => String::new(),
                (true, raw) => raw.to_string(),
                (false, _) => texts.join("\n"),
            };
            let result_event = json!({
                "type": "tool_result", "tool": name, "result": result, "is_error": status == Some("failed"),
                "tool_call_id": id,
            });
            self.push_event(event, result_event, out);
        }
    }

    /// Appends a request once. `own_dialect`: its runtime uses this protocol.
    pub(super) fn ask(&mut self, request: &Request, own_dialect: bool, out: &mut Vec<UiFrame>) {
        if !self.sent_requests.insert((request.request_id.clone(), request.revision)) {
            return;
        }
        let Some((method, frame)) = question(request, own_dialect, self.support) else { return };
        if method == PICK && request.kind != RequestType::Pick {
            self.options.insert(request.request_id.as_str().to_owned());
        }
        out.push(UiFrame { bytes: frame, event_run: None });
    }
}

impl UiFrame {
    fn notify(method: &str, params: &Members) -> Self {
        let mut bytes = Vec::new();
        ws_message(&mut bytes, method, params);
        Self { bytes, event_run: None }
    }

    /// Makes the message that a client's answer was not accepted, as the status of the run that waits for it.
    pub(super) fn not_taken(run: &RunId, reason: &str) -> Self {
        let mut params = Members::new();
        ui_protocol::set(&mut params, "run_id", run);
        ui_protocol::set(&mut params, "status", &RunStatus::AwaitingUi);
        ui_protocol::set(&mut params, "message", &format!("your answer was not accepted: {reason}"));
        Self::notify("run.status", &params)
    }
}

/// Appends a run's status, with the members that the runtime sent.
fn status(event: &Event, status: RunStatus, own: Option<Members>, past: bool, out: &mut Vec<UiFrame>) {
    if past {
        return;
    }
    let mut params = own.unwrap_or_default();
    ui_protocol::set(&mut params, "run_id", &event.run_id);
    ui_protocol::set(&mut params, "status", &status);
    out.push(UiFrame::notify("run.status", &params));
}

const CONFIRM: &str = "ui.confirm.request";
const PROMPT: &str = "ui.prompt.request";
const PICK: &str = "ui.pick.request";

/// Returns a request in the protocol's form: its method, and the frame. `None` if the client does not display such a request.
pub(super) fn question(request: &Request, own_dialect: bool, support: UiSupport) -> Option<(&'static str, Vec<u8>)> {
    let offer = |kind| request.options.iter().find(|offer: &&Offer| offer.kind == kind);
    let no = offer(Choice::RejectOnce).or_else(|| offer(Choice::RejectAlways));
    let texts = [request.display.as_str(), request.message.as_deref().unwrap_or_default()];
    let message = texts.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default();
    // The verb is the gateway's; the runtime's label is quoted beside it.
    let actions = answers::actions(request, Answerer::UNLIMITED);
    let label = |offer: &Offer| {
        let id = format!("option:{}", offer.id);
        actions.iter().find(|action| action.id == id).map(AnswerAction::text).unwrap_or_default()
    };
    let items = |options: &[Offer]| -> Vec<Value> {
        options.iter().map(|offer| json!({ "id": offer.id, "label": label(offer) })).collect()
    };
    let danger = request.danger || request.risk == Risk::Danger;
    let (method, shown, mut params) = match (request.kind, offer(Choice::AllowOnce), no) {
        (RequestType::Prompt, ..) => (
            PROMPT,
            support.supports_prompt,
            json!({ "message": message, "multiline": request.multiline, "secret": request.secret }),
        ),
        (RequestType::Pick, ..) => {
            (PICK, support.supports_pick, json!({ "items": request.items, "multi": request.multi }))
        }
        (_, Some(yes), Some(no)) => (
            CONFIRM,
            support.supports_confirm,
            json!({
                "message": message, "confirm_label": label(yes), "cancel_label": label(no),
                "danger_level": if danger { "danger" } else { "normal" },
                "allow_remember": request.allow_remember, "allow_reason": request.allow_reason,
            }),
        ),
        _ => (PICK, support.supports_pick, json!({ "items": items(&request.options), "multi": false })),
    };
    let without_options = method == PICK && request.kind != RequestType::Pick && request.options.is_empty();
    if !shown || request.observe_only || without_options {
        return None;
    }
    params["run_id"] = request.run_id.as_str().into();
    params["title"] = request.title.as_str().into();
    if let Some(text) = &request.default_value {
        params["default_value"] = text.as_str().into();
    }
    let id = wire::request_name(request.request_id.as_str(), request.revision);
    let own = if own_dialect { ui_protocol::question(request) } else { None };
    let params = match own {
        Some(own) => serde_json::value::to_raw_value(&own).ok()?,
        None => serde_json::value::to_raw_value(&params).ok()?,
    };
    Some((method, frame(&id, method, &params)))
}

fn frame(id: &str, method: &str, params: &RawValue) -> Vec<u8> {
    #[derive(serde::Serialize)]
    struct Call<'a> {
        jsonrpc: &'static str,
        id: &'a str,
        method: &'a str,
        params: &'a RawValue,
    }
    let mut bytes = Vec::new();
    // Plain text, which always serializes.
    let json = serde_json::to_vec(&Call { jsonrpc: "2.0", id, method, params }).unwrap_or_default();
    ws_text(&mut bytes, &json);
    bytes
}

fn text_of(content: &Value) -> String {
    match (content["text"].as_str(), content["uri"].as_str(), content["type"].as_str()) {
        (Some(text), ..) => text.to_owned(),
        (None, Some(uri), _) => uri.to_owned(),
        (None, None, type_name) => format!("[{}]", type_name.unwrap_or("content")),
    }
}

/// Returns the remaining part of the context, in whole percent.
fn left(body: &Value) -> Option<u64> {
    if let Some(percent) = body["contextLeftPercent"].as_f64() {
        return Some(percent.clamp(0.0, 100.0) as u64);
    }
    let (used, size) = (body["used"].as_u64()?, body["size"].as_u64().filter(|size| *size > 0)?);
    Some(100 - used.min(size).saturating_mul(100) / size)
}
