//! Questions, and their answers. One file: each type of question is beside its answers.
//!
//! An approval offers exactly the server's decisions, and each answer is the server's own value. A form is asked field by field, under one
//! request of the server.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::jsonrpc::{self, METHOD_NOT_FOUND, object, pretty};
use super::super::{
    AgentRequest, AnsweredElsewhere, Dialect as _, ExpectedAnswer, FolderClaim, Outbox, RequestKey, RequestSubject,
    RuntimeEvent, held,
};
use super::items::FileEdit;
use super::{Codex, OTHER, Phase, answer, text};
use plexus_protocol::{AnswerBounds, Choice, Decision, Item, NativeId, Number, Offer, RequestType};

/// Maximum number of stored unconfirmed answers; a further one may be lost with its connection.
const ANSWERS_MAX: usize = 256;
/// Maximum depth of helper threads, up to the thread that the user sees.
const HELPERS_DEEP: usize = 8;
/// The id of the choice for free text.
const SOMETHING_ELSE: &str = "plexus:something-else";

/// A question that waits for its answer, or for the confirmation of it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct PendingRequest {
    pub(super) native: NativeId,
    pub(super) turn: Option<String>,
    /// The server's request id, as JSON text.
    id: String,
    /// Distinguishes questions with the same id: a restarted server counts from 0 again.
    about: String,
    way: AnswerRoute,
    /// 0 while the question waits. Otherwise it may be closed: see [`SETTLE`](super::SETTLE).
    pub(super) stale: u8,
    /// The answer, until the server confirms that the question is closed.
    pub(super) reply: Option<String>,
}

/// The way to answer a question.
#[derive(Clone, Serialize, Deserialize)]
enum AnswerRoute {
    /// One of these options, each with its id and answer. With a form, `accept` continues with its fields.
    Choice { options: Vec<(String, Value)>, no: Value, form: Option<Form> },
    /// An answer for each field.
    Fields(Form),
}

#[derive(Clone, Serialize, Deserialize)]
struct Form {
    #[serde(rename = "sort")]
    form_kind: QuestionKind,
    title: String,
    fields: Vec<Field>,
    at: usize,
    /// `true` if the current field takes free text.
    free: bool,
    values: Vec<(String, Value)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum QuestionKind {
    Questions,
    Elicitation,
}

#[derive(Clone, Serialize, Deserialize)]
struct Field {
    name: String,
    text: String,
    kind: FieldKind,
    /// The choices; empty for free text.
    choices: Vec<Item>,
    multi: bool,
    secret: bool,
    other: bool,
    required: bool,
    default: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum FieldKind {
    Text,
    Number,
    Boolean,
}

/// The next step after an answer.
enum AnswerStep {
    Reply(Value),
    Ask,
}

impl Form {
    fn cancelled(&self) -> Value {
        match self.form_kind {
            QuestionKind::Questions => json!({ "answers": {} }),
            QuestionKind::Elicitation => elicitation_result("cancel"),
        }
    }

    fn take(&mut self, decision: &Decision) -> AnswerStep {
        let Some(field) = self.fields.get(self.at) else { return AnswerStep::Reply(self.cancelled()) };
        let chooses = !field.choices.is_empty() && !self.free;
        let value = match decision {
            Decision::Value(Some(answer_text)) if !chooses => match (field.kind, answer_text.trim()) {
                (_, "") if !field.required => None,
                (FieldKind::Text, _) => Some(json!(answer_text)),
                (_, number) => match serde_json::from_str::<Value>(number).ok().filter(Value::is_number) {
                    Some(number) => Some(number),
                    // The answer is not a number: the question is asked again.
                    None => return AnswerStep::Ask,
                },
            },
            Decision::Ids(ids) if chooses => match ids.as_slice() {
                [] if !field.required => None,
                [] => return AnswerStep::Reply(self.cancelled()),
                [id] if id == SOMETHING_ELSE && field.other => {
                    self.free = true;
                    return AnswerStep::Ask;
                }
                ids if field.multi => Some(json!(ids)),
                [id, ..] if field.kind == FieldKind::Boolean => Some(json!(id == "true")),
                [id, ..] => Some(json!(id)),
            },
            _ => return AnswerStep::Reply(self.cancelled()),
        };
        self.values.extend(value.map(|value| (field.name.clone(), value)));
        self.at += 1;
        self.free = false;
        if self.at < self.fields.len() { AnswerStep::Ask } else { AnswerStep::Reply(self.filled()) }
    }

    fn filled(&self) -> Value {
        let values = self.values.iter().cloned();
        match self.form_kind {
            QuestionKind::Questions => {
                let answer = |(name, value): (String, Value)| {
                    let answers = if value.is_array() { value } else { json!([value]) };
                    (name, json!({ "answers": answers }))
                };
                json!({ "answers": values.map(answer).collect::<serde_json::Map<_, _>>() })
            }
            QuestionKind::Elicitation => {
                let content: serde_json::Map<_, _> = values.collect();
                json!({ "action": "accept", "content": content, "_meta": null })
            }
        }
    }
}

impl PendingRequest {
    /// Returns whether the answers are secret and must not be stored.
    pub(super) fn secret(&self) -> bool {
        let (AnswerRoute::Fields(form) | AnswerRoute::Choice { form: Some(form), .. }) = &self.way else {
            return false;
        };
        form.fields.iter().any(|field| field.secret)
    }

    fn take(&mut self, decision: &Decision) -> AnswerStep {
        match &mut self.way {
            AnswerRoute::Choice { options, no, form } => {
                let Decision::Option { id, .. } = decision else { return AnswerStep::Reply(no.clone()) };
                let chosen = options.iter().find(|(option, _)| option == id).map(|(_, answer)| answer.clone());
                match form.take() {
                    Some(form) if chosen.is_some() && id == "accept" => {
                        self.way = AnswerRoute::Fields(form);
                        AnswerStep::Ask
                    }
                    _ => AnswerStep::Reply(chosen.unwrap_or_else(|| no.clone())),
                }
            }
            AnswerRoute::Fields(form) => form.take(decision),
        }
    }
}

fn elicitation_result(action: &str) -> Value {
    json!({ "action": action, "content": null, "_meta": null })
}

/// A question before it is shown to the user.
struct Question {
    kind: RequestType,
    title: String,
    message: Option<String>,
    subject: RequestSubject,
    options: Vec<(Offer, Value)>,
    /// The answer if there is no decision.
    no: Value,
    form: Option<Form>,
    /// The kind and title of its tool call, if the question is the first mention of it.
    tool: Option<(&'static str, String)>,
}

/// The members of questions.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    thread_id: Option<&'a RawValue>,
    conversation_id: Option<&'a RawValue>,
    turn_id: Option<&'a RawValue>,
    item_id: Option<&'a RawValue>,
    call_id: Option<&'a RawValue>,
    approval_id: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    reason: Option<&'a RawValue>,
    command: Option<&'a RawValue>,
    cwd: Option<&'a RawValue>,
    network_approval_context: Option<&'a RawValue>,
    additional_permissions: Option<&'a RawValue>,
    available_decisions: Option<&'a RawValue>,
    grant_root: Option<&'a RawValue>,
    permissions: Option<&'a RawValue>,
    file_changes: Option<&'a RawValue>,
    questions: Option<&'a RawValue>,
    server_name: Option<&'a RawValue>,
    mode: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    url: Option<&'a RawValue>,
    requested_schema: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

fn given(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() != "null")
}

fn offer(id: &str, label: &str, kind: Choice) -> Offer {
    let for_session = ["acceptForSession", "approved_for_session", "allow_session", "session"].contains(&id);
    Offer { id: id.into(), label: label.into(), kind, for_session }
}

/// Returns a decision as an option, with its meaning and label.
fn option(decision: &Value) -> Offer {
    if let Some(word) = decision.as_str() {
        return match word {
            "accept" | "approved" => offer(word, "Allow once", Choice::AllowOnce),
            "acceptForSession" | "approved_for_session" => offer(word, "Allow for this session", Choice::AllowAlways),
            "decline" => offer(word, "Decline", Choice::RejectOnce),
            "cancel" | "abort" => offer(word, "Decline, and stop the turn", Choice::RejectOnce),
            _ => offer(word, word, Choice::Other),
        };
    }
    let (name, body) = decision.as_object().and_then(|object| object.iter().next()).unzip();
    let (name, body) = (name.map_or("", String::as_str), body.unwrap_or(&Value::Null));
    match name {
        "acceptWithExecpolicyAmendment" => {
            let parts = body["execpolicy_amendment"].as_array().map(Vec::as_slice).unwrap_or_default();
            let start: Vec<_> = parts.iter().filter_map(Value::as_str).collect();
            let label = format!("Allow, and from now on every command that starts with `{}`", start.join(" "));
            offer(name, &label, Choice::AllowAlways)
        }
        "applyNetworkPolicyAmendment" => {
            let rule = &body["network_policy_amendment"];
            let host = rule["host"].as_str().unwrap_or("this host");
            match rule["action"].as_str() {
                Some("allow") => offer(name, &format!("Allow {host} from now on"), Choice::AllowAlways),
                Some("deny") => offer(name, &format!("Block {host} from now on"), Choice::RejectAlways),
                _ => offer(name, &decision.to_string(), Choice::Other),
            }
        }
        "denied" => offer(name, "Decline", Choice::RejectOnce),
        _ => offer(if name.is_empty() { "decision" } else { name }, &decision.to_string(), Choice::Other),
    }
}

/// Returns decisions as options, in their order, each with a unique id.
fn decisions(decisions: &[Value]) -> Vec<(Offer, Value)> {
    let mut options: Vec<(Offer, Value)> = Vec::new();
    for decision in decisions {
        let mut offer = option(decision);
        if options.iter().any(|(other, _)| other.id == offer.id) {
            offer.id = format!("{}:{}", offer.id, options.len());
        }
        options.push((offer, json!({ "decision": decision })));
    }
    options
}

fn edits_text(edits: &[FileEdit]) -> String {
    let edit =
        |(path, old, new): &FileEdit| format!("{path}\n--- before\n{}\n+++ after\n{new}", old.as_deref().unwrap_or(""));
    edits.iter().map(edit).collect::<Vec<_>>().join("\n")
}

fn edits_subject(edits: Option<&Vec<FileEdit>>, grant: bool, params: &RawValue) -> RequestSubject {
    match edits.filter(|edits| !edits.is_empty()) {
        Some(edits) if !grant => RequestSubject::Edits(edits.clone()),
        Some(edits) => RequestSubject::Unreadable {
            reason: "it also asks for permission to write in a folder",
            raw: format!("{}\n{}", pretty(params.get()), edits_text(edits)),
        },
        None => RequestSubject::Unreadable { reason: "the changes are unknown", raw: pretty(params.get()) },
    }
}

fn paths(edits: Option<&Vec<FileEdit>>) -> String {
    let mut paths: Vec<_> = edits.into_iter().flatten().map(|(path, ..)| path.as_str()).collect();
    paths.dedup();
    if paths.is_empty() { "Change files".into() } else { format!("Edit {}", paths.join(", ")) }
}

impl Params<'_> {
    fn command_approval(&self, raw: &RawValue) -> Option<Question> {
        let offered: Vec<Value> = match self.available_decisions.filter(|list| list.get() != "null") {
            Some(list) => plexus_protocol::object::from_str(list.get()).ok()?,
            // The decisions that the protocol defines for every command.
            None => ["accept", "acceptForSession", "decline", "cancel"].map(Value::from).to_vec(),
        };
        let command = text(self.command);
        let runs = matches!(text(self.kind).as_deref(), None | Some("command" | "humanCommand"));
        let plain = runs && !given(self.network_approval_context) && !given(self.additional_permissions);
        let subject = match (&command, plain) {
            (Some(line), true) => {
                RequestSubject::Command { argv: vec![line.clone()], cwd: text(self.cwd).map(FolderClaim::Field) }
            }
            _ => RequestSubject::Unreadable { reason: "it asks for more than one command", raw: pretty(raw.get()) },
        };
        let title = command.unwrap_or_else(|| "Codex asks for permission".into());
        Some(Question {
            kind: RequestType::Permission,
            message: text(self.reason),
            subject,
            options: decisions(&offered),
            no: json!({ "decision": "cancel" }),
            form: None,
            tool: Some(("execute", title.clone())),
            title,
        })
    }

    fn file_approval(&self, raw: &RawValue, edits: Option<&Vec<FileEdit>>) -> Question {
        let offered = ["accept", "acceptForSession", "decline", "cancel"].map(Value::from);
        Question {
            kind: RequestType::Permission,
            title: paths(edits),
            message: text(self.reason),
            subject: edits_subject(edits, given(self.grant_root), raw),
            options: decisions(&offered),
            no: json!({ "decision": "cancel" }),
            form: None,
            tool: Some(("edit", paths(edits))),
        }
    }

    fn permissions_approval(&self, raw: &RawValue) -> Option<Question> {
        let mut requested: serde_json::Map<String, Value> = object(self.permissions?)?;
        // A permission that was not requested is not granted.
        requested.retain(|_, value| !value.is_null());
        let granted = |scope: &str| json!({ "permissions": requested, "scope": scope });
        Some(Question {
            kind: RequestType::Permission,
            title: "Codex asks for more permissions".into(),
            message: text(self.reason),
            subject: RequestSubject::Unreadable {
                reason: "it asks for permissions, not for a single action",
                raw: pretty(raw.get()),
            },
            options: vec![
                (offer("allow", "Allow for this turn", Choice::AllowOnce), granted("turn")),
                (offer("allow_session", "Allow for this session", Choice::AllowAlways), granted("session")),
                (offer("deny", "Decline", Choice::RejectOnce), json!({ "permissions": {}, "scope": "turn" })),
            ],
            no: json!({ "permissions": {}, "scope": "turn" }),
            form: None,
            tool: None,
        })
    }

    fn old_decisions() -> Vec<(Offer, Value)> {
        let denied = json!({ "denied": { "rejection": "declined by the user" } });
        decisions(&["approved".into(), "approved_for_session".into(), denied, "abort".into()])
    }

    fn old_command_approval(&self) -> Option<Question> {
        let argv: Vec<String> = serde_json::from_str(self.command?.get()).ok()?;
        let title = argv.join(" ");
        Some(Question {
            kind: RequestType::Permission,
            message: text(self.reason),
            subject: RequestSubject::Command { argv, cwd: text(self.cwd).map(FolderClaim::Field) },
            options: Self::old_decisions(),
            no: json!({ "decision": "abort" }),
            form: None,
            tool: Some(("execute", title.clone())),
            title,
        })
    }

    fn old_file_approval(&self, raw: &RawValue) -> Option<Question> {
        let changes: std::collections::BTreeMap<String, Value> = object(self.file_changes?)?;
        let edit = |(path, change): (&String, &Value)| {
            let content = change["content"].as_str();
            match change["type"].as_str()? {
                "add" => Some((path.clone(), None, content?.to_owned())),
                "delete" => Some((path.clone(), Some(content?.to_owned()), String::new())),
                _ => None,
            }
        };
        let edits: Option<Vec<FileEdit>> = changes.iter().map(edit).collect();
        Some(Question {
            kind: RequestType::Permission,
            title: paths(edits.as_ref()),
            message: text(self.reason),
            subject: edits_subject(edits.as_ref(), given(self.grant_root), raw),
            options: Self::old_decisions(),
            no: json!({ "decision": "abort" }),
            form: None,
            tool: Some(("edit", paths(edits.as_ref()))),
        })
    }

    fn user_input(&self) -> Option<Question> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct UserQuestion {
            id: String,
            header: Option<String>,
            question: String,
            is_other: Option<bool>,
            is_secret: Option<bool>,
            options: Option<Vec<Label>>,
        }
        #[derive(Deserialize)]
        struct Label {
            label: String,
            description: Option<String>,
        }
        let questions: Vec<UserQuestion> = plexus_protocol::object::from_str(self.questions?.get()).ok()?;
        let field = |question: UserQuestion| {
            let options = question.options.unwrap_or_default();
            let choice = |Label { label, description }| Item { id: label.clone(), label, detail: description };
            let header = question.header.filter(|header| !header.is_empty()).map(|header| format!("{header}: "));
            Field {
                name: question.id,
                text: format!("{}{}", header.unwrap_or_default(), question.question),
                kind: FieldKind::Text,
                choices: options.into_iter().map(choice).collect(),
                multi: false,
                secret: question.is_secret == Some(true),
                other: question.is_other == Some(true),
                required: true,
                default: None,
            }
        };
        let fields: Vec<Field> = questions.into_iter().map(field).collect();
        if fields.is_empty() {
            return None;
        }
        Some(Question {
            kind: RequestType::Prompt,
            title: "Codex asks".into(),
            message: None,
            subject: RequestSubject::Text(String::new()),
            options: Vec::new(),
            no: json!({ "answers": {} }),
            form: Some(Form::new(QuestionKind::Questions, "Codex asks", fields)),
            tool: None,
        })
    }

    fn elicitation(&self, raw: &RawValue) -> Option<Question> {
        let message = text(self.message)?;
        let server = text(self.server_name).unwrap_or_else(|| "An MCP server".into());
        let title = format!("{server} asks");
        let (fields, content) = match text(self.mode).as_deref() {
            Some("url") if given(self.url) => (Vec::new(), Value::Null),
            Some("form" | "openai/form" | "openaiForm") | None => (fields(self.requested_schema?)?, json!({})),
            _ => return None,
        };
        let accept = |meta: Value| json!({ "action": "accept", "content": content, "_meta": meta });
        let mut options = vec![(offer("accept", "Accept", Choice::AllowOnce), accept(Value::Null))];
        // The answer to a question of Codex itself about a tool call may be remembered.
        let meta: Value = self.meta.and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
        let persist = |scope: &str| match &meta["persist"] {
            Value::Array(scopes) => scopes.iter().any(|one| one == scope),
            one => one == scope,
        };
        for (scope, label) in [("session", "Accept for this session"), ("always", "Accept from now on")] {
            if fields.is_empty() && persist(scope) {
                options.push((offer(scope, label, Choice::AllowAlways), accept(json!({ "persist": scope }))));
            }
        }
        options.push((offer("decline", "Decline", Choice::RejectOnce), elicitation_result("decline")));
        options.push((offer("cancel", "Cancel", Choice::Other), elicitation_result("cancel")));
        Some(Question {
            kind: RequestType::Elicitation,
            message: Some(message.clone()).filter(|message| !message.is_empty()),
            subject: RequestSubject::Text(format!("{message}\n{}", pretty(raw.get()))),
            options,
            no: elicitation_result("cancel"),
            form: (!fields.is_empty()).then(|| Form::new(QuestionKind::Elicitation, &title, fields)),
            tool: None,
            title,
        })
    }
}

impl Form {
    fn new(form_kind: QuestionKind, title: &str, fields: Vec<Field>) -> Self {
        Self { form_kind, title: title.into(), fields, at: 0, free: false, values: Vec::new() }
    }
}

/// Reads the fields of a form that are required or can be shown; `None` if a required one cannot be shown.
fn fields(schema: &RawValue) -> Option<Vec<Field>> {
    let schema: Value = serde_json::from_str(schema.get()).ok()?;
    let empty = serde_json::Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    if schema["required"]
        .as_array()
        .is_some_and(|all| all.iter().any(|one| properties.get(one.as_str().unwrap_or_default()).is_none()))
    {
        return None;
    }
    let mut fields = Vec::new();
    for (name, property) in properties {
        let named = |one: &Value| {
            let id = one["const"].as_str()?;
            Some(Item { id: id.into(), label: one["title"].as_str().unwrap_or(id).into(), detail: None })
        };
        let plain = |one: &Value| Some(Item { id: one.as_str()?.into(), label: one.as_str()?.into(), detail: None });
        let choices = |of: &Value| -> Option<Vec<Item>> {
            let titled = of["oneOf"].as_array().or_else(|| of["anyOf"].as_array());
            match (titled, of["enum"].as_array()) {
                (Some(all), _) => all.iter().map(named).collect(),
                (None, Some(all)) => all.iter().map(plain).collect(),
                (None, None) => Some(Vec::new()),
            }
        };
        let read = match property["type"].as_str() {
            Some("boolean") => {
                let yes_no = [("true", "Yes"), ("false", "No")];
                let items = yes_no.map(|(id, label)| Item { id: id.into(), label: label.into(), detail: None });
                Some((FieldKind::Boolean, items.to_vec(), false))
            }
            Some("number" | "integer") => Some((FieldKind::Number, Vec::new(), false)),
            Some("string") => choices(property).map(|choices| (FieldKind::Text, choices, false)),
            Some("array") => choices(&property["items"])
                .filter(|choices| !choices.is_empty())
                .map(|choices| (FieldKind::Text, choices, true)),
            _ => None,
        };
        let required = required(name);
        let Some((kind, choices, multi)) = read else {
            if required {
                return None;
            }
            continue;
        };
        let title = property["title"].as_str().unwrap_or(name);
        let more = property["description"].as_str().map(|more| format!("\n{more}")).unwrap_or_default();
        let optional = if required { "" } else { " (optional)" };
        fields.push(Field {
            name: name.clone(),
            text: format!("{title}{optional}{more}"),
            kind,
            choices,
            multi,
            secret: false,
            other: false,
            required,
            default: property["default"].as_str().map(str::to_owned),
        });
    }
    Some(fields)
}

impl Codex {
    /// Handles a request of the server.
    pub(super) fn request_received(
        &mut self,
        frame: &Bytes,
        id: &RawValue,
        method: &str,
        raw: Option<&RawValue>,
        out: &mut Outbox,
    ) {
        let read = raw.and_then(|raw| Some((raw, object::<Params<'_>>(raw)?)));
        let thread =
            read.as_ref().and_then(|(_, params)| text(params.thread_id).or_else(|| text(params.conversation_id)));
        let native = thread.map(|thread| self.visible_thread(thread.as_str().into()));
        if let Some(native) = &native
            && !self.alone
            && !self.state.threads.contains_key(native)
        {
            // The server sends it again when the thread is joined.
            return self.resync(native.clone(), out);
        }
        let (Some((raw, params)), Some(native)) = (read, native) else {
            return self.refuse_unsupported(frame, id, method, None, out);
        };
        let item = text(params.item_id).or_else(|| text(params.call_id));
        let edits = item.as_ref().and_then(|item| self.state.threads.get(&native)?.items.edits(item));
        let question = match method {
            "item/commandExecution/requestApproval" => params.command_approval(raw),
            "item/fileChange/requestApproval" => Some(params.file_approval(raw, edits)),
            "item/permissions/requestApproval" => params.permissions_approval(raw),
            "item/tool/requestUserInput" => params.user_input(),
            "mcpServer/elicitation/request" => params.elicitation(raw),
            "execCommandApproval" => params.old_command_approval(),
            "applyPatchApproval" => params.old_file_approval(raw),
            _ => None,
        };
        let Some(question) = question.filter(|question| !question.options.is_empty() || question.form.is_some()) else {
            return self.refuse_unsupported(frame, id, method, Some(native), out);
        };
        let turn = text(params.turn_id);
        let raw_text = |raw: Option<&RawValue>| raw.map(RawValue::get).unwrap_or_default().to_owned();
        let about = [params.turn_id, params.item_id, params.call_id, params.approval_id, params.message].map(raw_text);
        let about = format!("{method} {native} {}", about.join(" "));
        if self.repeat_answer(id.get(), &about, out) {
            return;
        }
        self.state.held.remove(id.get());
        // In the order in which they were asked.
        if self.state.held.waits(Some(&native)) || !self.has_capacity(Some(&native)) {
            return self.state.held.push(Some(native), id.get(), frame);
        }
        self.show(frame, id.get(), native, turn, item, about, question, raw, out);
    }

    fn has_capacity(&self, native: Option<&NativeId>) -> bool {
        let open = || self.state.asks.values().filter(|request| request.reply.is_none());
        held::has_capacity(open().filter(|request| Some(&request.native) == native).count(), open().count())
    }

    /// Shows the questions that were held back by the limit of open questions.
    fn open_held(&mut self, out: &mut Outbox) {
        let mut held = std::mem::take(&mut self.state.held);
        while let Some(frame) = held.next(|native| self.has_capacity(native)) {
            self.feed(frame, out);
        }
        self.state.held = held;
    }

    /// Returns the thread that the user sees for this one: a helper's questions belong to the thread that it works for.
    fn visible_thread(&self, thread: NativeId) -> NativeId {
        let mut seen = thread;
        for _ in 0..HELPERS_DEEP {
            match self.state.helpers.get(&seen) {
                Some(parent) if !self.state.threads.contains_key(&seen) => seen = parent.clone(),
                _ => break,
            }
        }
        seen
    }

    /// Returns whether the question was asked before; then an answer that was given is sent again. A different question
    /// with the same id means that the earlier one is closed.
    fn repeat_answer(&mut self, id: &str, about: &str, out: &mut Outbox) -> bool {
        let keys: Vec<_> = self.state.asks.iter().filter(|(_, ask)| ask.id == id).map(|(key, _)| key.clone()).collect();
        let mut same = false;
        for key in keys {
            match self.state.asks.get_mut(&key) {
                Some(ask) if ask.about == about => {
                    same = true;
                    ask.stale = 0;
                    if let Some(reply) = &ask.reply
                        && let Ok(reply) = serde_json::from_str::<&RawValue>(reply)
                    {
                        out.frames.push(answer(id, reply));
                    }
                }
                _ => self.close_question(&key, None, out),
            }
        }
        same
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one question")]
    fn show(
        &mut self,
        frame: &Bytes,
        id: &str,
        native: NativeId,
        turn: Option<String>,
        item: Option<String>,
        about: String,
        question: Question,
        raw: &RawValue,
        out: &mut Outbox,
    ) {
        let key = self.key(id);
        let first_mention = match (&item, &question.tool, self.state.threads.get_mut(&native)) {
            (Some(item), Some((kind, title)), Some(thread)) => thread.items.mention(item, title, kind, frame),
            _ => None,
        };
        let (offers, options): (Vec<_>, Vec<_>) =
            question.options.into_iter().map(|(offer, value)| (offer.clone(), (offer.id, value))).unzip();
        let way = match question.form {
            Some(form) if options.is_empty() => AnswerRoute::Fields(form),
            form => AnswerRoute::Choice { options, no: question.no, form },
        };
        let fields = matches!(way, AnswerRoute::Fields(_));
        let pending =
            PendingRequest { native: native.clone(), turn, id: id.to_owned(), about, way, stale: 0, reply: None };
        let ask = if fields {
            field_ask(&pending, key.clone(), raw, frame)
        } else {
            Some(AgentRequest {
                kind: question.kind,
                title: question.title,
                message: question.message,
                subject: question.subject,
                options: offers,
                tool_call_id: item,
                first_mention,
                ..empty_request(key.clone(), raw, frame)
            })
        };
        let Some(ask) = ask else { return };
        self.state.asks.insert(key, pending);
        out.events.push(RuntimeEvent::Asked { native: Some(native), ask: Box::new(ask) });
    }

    /// Returns a unique key for a question with this id.
    pub(super) fn key(&mut self, id: &str) -> RequestKey {
        self.state.request_count += 1;
        RequestKey::nth(id, self.state.request_count)
    }

    /// Logs a request that is not shown to the user, and denies it if no other client can answer it.
    fn refuse_unsupported(
        &mut self,
        frame: &Bytes,
        id: &RawValue,
        method: &str,
        native: Option<NativeId>,
        out: &mut Outbox,
    ) {
        let reason = match self.alone {
            true => "an unsupported request: refused",
            false => "an unsupported request: left to other clients",
        };
        self.raw(frame, native, reason, out);
        self.refuse(id.get(), method, out);
    }

    /// Denies a request, if no other client answers it.
    pub(super) fn refuse(&self, id: &str, method: &str, out: &mut Outbox) {
        if !self.alone {
            return;
        }
        let result = match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
                json!({ "decision": "cancel" })
            }
            "item/permissions/requestApproval" => json!({ "permissions": {}, "scope": "turn" }),
            "item/tool/requestUserInput" => json!({ "answers": {} }),
            "mcpServer/elicitation/request" => elicitation_result("cancel"),
            "execCommandApproval" | "applyPatchApproval" => json!({ "decision": "abort" }),
            "item/tool/call" => json!({ "contentItems": [], "success": false }),
            _ => return out.frames.push(jsonrpc::refuse(id, METHOD_NOT_FOUND, &format!("{method}: not served here"))),
        };
        out.frames.push(answer(id, &jsonrpc::to_raw(&result)));
    }

    /// Sends a decision.
    pub(super) fn answered(&mut self, key: &RequestKey, decision: &Decision, out: &mut Outbox) {
        let Some(pending) = self.state.asks.get_mut(key).filter(|pending| pending.reply.is_none()) else { return };
        match pending.take(decision) {
            AnswerStep::Reply(reply) => {
                let reply = jsonrpc::to_raw(&reply);
                pending.reply = Some(reply.get().to_owned());
                // If the server may have forgotten the request, it is answered when it is sent again.
                if self.state.phase == Phase::Ready && pending.stale == 0 {
                    out.frames.push(answer(&pending.id, &reply));
                }
                self.forget_answers(key);
                // A withdrawal is followed by the end of the turn.
                if *decision != Decision::Withdrawn {
                    self.open_held(out);
                }
            }
            AnswerStep::Ask => {
                let Some(pending) = self.state.asks.remove(key) else { return };
                let next = self.key(&pending.id);
                let Some(ask) = field_ask(&pending, next.clone(), RawValue::NULL, &Bytes::new()) else { return };
                let native = Some(pending.native.clone());
                self.state.asks.insert(next, pending);
                out.events.push(RuntimeEvent::Asked { native, ask: Box::new(ask) });
            }
        }
    }

    /// Removes unconfirmed answers above the limit.
    fn forget_answers(&mut self, but: &RequestKey) {
        let answered = self.state.asks.iter().filter(|(_, pending)| pending.reply.is_some());
        let keys: Vec<_> = answered.map(|(key, _)| key.clone()).collect();
        if keys.len() > ANSWERS_MAX
            && let Some(key) = keys.iter().find(|key| *key != but)
        {
            self.state.asks.remove(key);
        }
    }

    /// Handles the server's report that a question is closed, by the gateway's answer or another client's.
    pub(super) fn resolved(&mut self, id: &str, out: &mut Outbox) {
        let keys: Vec<_> = self.state.asks.iter().filter(|(_, ask)| ask.id == id).map(|(key, _)| key.clone()).collect();
        for key in keys {
            let native = self.state.asks.get(&key).map(|ask| &ask.native);
            let turn = native.and_then(|native| self.state.threads.get(native)?.turn.as_ref());
            let elsewhere = (!turn.is_some_and(|turn| turn.cancel)).then_some(OTHER);
            self.close_question(&key, elsewhere, out);
        }
        self.state.held.remove(id);
        self.open_held(out);
    }

    /// Closes a question, and reports it unless the gateway answered it.
    pub(super) fn close_question(&mut self, key: &RequestKey, elsewhere: Option<&str>, out: &mut Outbox) {
        let Some(pending) = self.state.asks.remove(key) else { return };
        if pending.reply.is_none() {
            let elsewhere = elsewhere.map(|by| AnsweredElsewhere { by: by.to_owned(), option_id: None });
            out.events.push(RuntimeEvent::TakenBack { native: Some(pending.native), key: key.clone(), elsewhere });
        }
    }
}

/// Returns the choices of a reviewer.
pub(super) fn review_options() -> Vec<Offer> {
    vec![offer("accept", "Allow once", Choice::AllowOnce), offer("decline", "Decline", Choice::RejectOnce)]
}

/// Makes a question without content.
pub(super) fn empty_request(key: RequestKey, params: &RawValue, frame: &Bytes) -> AgentRequest {
    AgentRequest::new(key, RequestType::Permission, String::new(), jsonrpc::owned(params), frame.clone())
}

/// Returns the current field as a question.
fn field_ask(pending: &PendingRequest, key: RequestKey, params: &RawValue, frame: &Bytes) -> Option<AgentRequest> {
    let AnswerRoute::Fields(form) = &pending.way else { return None };
    let field = form.fields.get(form.at)?;
    let chooses = !field.choices.is_empty() && !form.free;
    let mut items = if chooses { field.choices.clone() } else { Vec::new() };
    if chooses && field.other {
        let label = "Something else".to_owned();
        items.push(Item { id: SOMETHING_ELSE.into(), label, detail: Some("in your own words".into()) });
    }
    Some(AgentRequest {
        kind: if chooses { RequestType::Pick } else { RequestType::Prompt },
        title: form.title.clone(),
        message: Some(field.text.clone()),
        subject: RequestSubject::Text(field.text.clone()),
        items,
        multi: chooses && field.multi,
        default_value: field.default.clone().filter(|_| !chooses),
        secret: field.secret,
        expects: ExpectedAnswer {
            field: Some(field.name.clone()),
            optional: !field.required,
            fits: AnswerBounds {
                number: (field.kind == FieldKind::Number).then_some(Number::Number),
                ..AnswerBounds::default()
            },
        },
        ..empty_request(key, params, frame)
    })
}
