//! Questions: `session/request_permission`, `elicitation/create`, and their answers.

use std::collections::HashSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, object, pretty, string};
use super::super::{Ask, AskKey, Draft, Outbox, Said, Subject, ToolMark, subject};
use super::{ASKS_MAX, Acp, trouble};
use crate::model::{Choice, Decision, Kind, NativeId, Offer, RequestType};

/// A question that waits for its answer.
#[derive(Serialize, Deserialize)]
pub(super) enum Asked {
    /// `session/request_permission`, with the options it offers.
    Permission { native: NativeId, options: Vec<String> },
    /// `elicitation/create`; `content` where accepting sends an (empty) form.
    Elicitation { native: Option<NativeId>, content: bool },
}

impl Asked {
    pub(super) fn native(&self) -> Option<&NativeId> {
        match self {
            Self::Permission { native, .. } => Some(native),
            Self::Elicitation { native, .. } => native.as_ref(),
        }
    }

    /// The answer's frame. What is no offered option is told as `cancelled`: the gateway never says yes by mistake.
    pub(super) fn answer(&self, key: &AskKey, decision: &Decision) -> Bytes {
        match (self, decision) {
            (Self::Permission { options, .. }, Decision::Option { id, .. }) if options.contains(id) => {
                let outcome = serde_json::json!({ "outcome": { "outcome": "selected", "optionId": id } });
                jsonrpc::answer(&key.0, &outcome)
            }
            (Self::Elicitation { content: true, .. }, Decision::Option { id, .. }) if id == "accept" => {
                jsonrpc::answer(&key.0, &serde_json::json!({ "action": "accept", "content": {} }))
            }
            (Self::Elicitation { .. }, Decision::Option { id, .. }) if id == "accept" || id == "decline" => {
                elicited(&key.0, id)
            }
            _ => self.withdrawn(key),
        }
    }

    /// The answer when nobody decided.
    pub(super) fn withdrawn(&self, key: &AskKey) -> Bytes {
        match self {
            Self::Permission { .. } => cancelled(&key.0),
            Self::Elicitation { .. } => elicited(&key.0, "cancel"),
        }
    }
}

/// The answer `cancelled` to a permission request.
pub(super) fn cancelled(id: &str) -> Bytes {
    jsonrpc::answer(id, &serde_json::json!({ "outcome": { "outcome": "cancelled" } }))
}

/// An answer to an elicitation.
pub(super) fn elicited(id: &str, action: &str) -> Bytes {
    jsonrpc::answer(id, &serde_json::json!({ "action": action }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Permission<'a> {
    session_id: String,
    #[serde(borrow)]
    tool_call: &'a RawValue,
    #[serde(borrow)]
    options: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionOption<'a> {
    option_id: String,
    name: Option<String>,
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolCall<'a> {
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    raw_input: Option<&'a RawValue>,
}

/// A content block of a tool call.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Diff {
        path: String,
        #[serde(rename = "oldText")]
        old_text: Option<String>,
        #[serde(rename = "newText")]
        new_text: String,
    },
    Content {
        content: Inner,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Inner {
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elicitation<'a> {
    mode: Option<String>,
    message: Option<String>,
    url: Option<String>,
    session_id: Option<String>,
    tool_call_id: Option<String>,
    #[serde(borrow)]
    requested_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Schema<'a> {
    #[serde(borrow)]
    required: Option<&'a RawValue>,
}

impl Acp {
    /// Whether another question may wait under this key; if not, says why.
    fn room(&mut self, frame: &Bytes, key: &AskKey, native: Option<&NativeId>, out: &mut Outbox) -> Room {
        if self.asks.contains_key(key) {
            self.raw(frame, native.cloned(), "a question under the identifier of one that is still open", out);
            return Room::Taken;
        }
        if self.asks.len() >= ASKS_MAX {
            let message = format!("{ASKS_MAX} questions wait already: this one was answered `cancelled`");
            let draft = trouble("too_many_requests", &message, Some(frame.clone()));
            out.said.push(Said::Event { native: native.cloned(), draft });
            return Room::Full;
        }
        Room::Free
    }

    pub(super) fn permission(&mut self, frame: &Bytes, id: &RawValue, params: Option<&RawValue>, out: &mut Outbox) {
        let key = AskKey(id.get().to_owned());
        let read = params.and_then(|params| Some((params, object::<Permission<'_>>(params)?)));
        let parts = read.and_then(|(params, asked)| {
            let tool: ToolCall<'_> = object(asked.tool_call)?;
            Some((params, offers(&asked.options)?, tool, asked))
        });
        let Some((params, options, tool, asked)) = parts else {
            let native = self.named(params);
            self.raw(frame, native, "a permission request that cannot be understood: answered `cancelled`", out);
            return out.frames.push(cancelled(&key.0));
        };
        let native = self.native(&asked.session_id);
        match self.room(frame, &key, Some(&native), out) {
            Room::Free => {}
            Room::Taken => return,
            Room::Full => return out.frames.push(cancelled(&key.0)),
        }
        let tool_call_id = tool.tool_call_id.and_then(string).map(|id| id.into_owned());
        let title = tool.title.and_then(string).map(|title| title.into_owned());
        let blocks: Option<Vec<Block>> = match tool.content {
            Some(content) => serde_json::from_str(content.get()).ok(),
            None => Some(Vec::new()),
        };
        let first_mention = tool_call_id
            .as_ref()
            .filter(|id| self.see(&native, id))
            .map(|id| first_mention(frame, asked.tool_call, id, title.as_deref()));
        let texts = blocks.iter().flatten().filter_map(|block| match block {
            Block::Content { content } => content.text.as_deref(),
            _ => None,
        });
        let message = Some(texts.collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty());
        let ask = Ask {
            key: key.clone(),
            kind: RequestType::Permission,
            subject: about(asked.tool_call, &tool, title.as_deref(), blocks),
            title: title.unwrap_or_else(|| "The agent asks for permission".into()),
            message,
            items: Vec::new(),
            multi: false,
            default_value: None,
            multiline: false,
            secret: false,
            danger: false,
            allow_reason: false,
            allow_remember: false,
            observe_only: false,
            tool_call_id,
            first_mention,
            params: jsonrpc::owned(params),
            native: frame.clone(),
            options,
        };
        let options = ask.options.iter().map(|offer| offer.id.clone()).collect();
        self.asks.insert(key, Asked::Permission { native: native.clone(), options });
        out.said.push(Said::Asked { native: Some(native), ask: Box::new(ask) });
    }

    pub(super) fn elicitation(&mut self, frame: &Bytes, id: &RawValue, params: Option<&RawValue>, out: &mut Outbox) {
        let key = AskKey(id.get().to_owned());
        let read = params.and_then(|params| Some((params, object::<Elicitation<'_>>(params)?)));
        let Some((params, asked)) = read else {
            self.raw(frame, None, "an elicitation that cannot be understood: answered `cancel`", out);
            return out.frames.push(elicited(&key.0, "cancel"));
        };
        let native = asked.session_id.as_deref().map(|session| self.native(session));
        let message = asked.message.unwrap_or_default();
        let (content, text) = match (asked.mode.as_deref(), asked.requested_schema, &asked.url) {
            (Some("url"), _, Some(url)) => (false, format!("{message}\n{url}")),
            (Some("form") | None, Some(schema), _) if asks_nothing(schema) => {
                (true, format!("{message}\n{}", pretty(schema.get())))
            }
            _ => {
                let what = "the agent asks for a form to be filled in; that cannot be carried: answered `cancel`";
                let draft = trouble("elicitation_not_carried", what, Some(frame.clone()));
                out.said.push(Said::Event { native, draft });
                return out.frames.push(elicited(&key.0, "cancel"));
            }
        };
        match self.room(frame, &key, native.as_ref(), out) {
            Room::Free => {}
            Room::Taken => return,
            Room::Full => return out.frames.push(elicited(&key.0, "cancel")),
        }
        let offer = |id: &str, label: &str, kind| Offer { id: id.into(), label: label.into(), kind };
        let ask = Ask {
            key: key.clone(),
            kind: RequestType::Elicitation,
            title: "The agent asks".into(),
            message: Some(message).filter(|text| !text.is_empty()),
            subject: Subject::Text(text),
            options: vec![
                offer("accept", "Accept", Choice::AllowOnce),
                offer("decline", "Decline", Choice::RejectOnce),
                offer("cancel", "Cancel", Choice::Other),
            ],
            items: Vec::new(),
            multi: false,
            default_value: None,
            multiline: false,
            secret: false,
            danger: false,
            allow_reason: false,
            allow_remember: false,
            observe_only: false,
            tool_call_id: asked.tool_call_id,
            first_mention: None,
            params: jsonrpc::owned(params),
            native: frame.clone(),
        };
        self.asks.insert(key, Asked::Elicitation { native: native.clone(), content });
        out.said.push(Said::Asked { native, ask: Box::new(ask) });
    }
}

enum Room {
    Free,
    Taken,
    Full,
}

/// The options as the agent wrote them; none if there is none to choose, or if one identifier names two.
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
        offers.push(Offer { id: option.option_id, label, kind });
    }
    (!offers.is_empty()).then_some(offers)
}

/// Exactly what the tool call will do: the command of an `execute`, the changes of a diff; where it says both, or
/// neither, or something that cannot be read, everything it says.
fn about(whole: &RawValue, tool: &ToolCall<'_>, title: Option<&str>, blocks: Option<Vec<Block>>) -> Subject {
    let everything = || Subject::Text(pretty(whole.get()));
    let Some(blocks) = blocks else { return everything() };
    let edits: Vec<_> = blocks
        .into_iter()
        .filter_map(|block| match block {
            Block::Diff { path, old_text, new_text } => Some((path, old_text, new_text)),
            _ => None,
        })
        .collect();
    let execute = tool.kind.and_then(string).as_deref() == Some("execute");
    match (execute, tool.raw_input) {
        (false, _) if !edits.is_empty() => Subject::Edits(edits),
        (true, _) if !edits.is_empty() => everything(),
        // Gemini CLI sends no input: the title is the command.
        (true, None) => match title {
            Some(title) => Subject::Command { argv: vec![title.to_owned()], cwd: None },
            None => everything(),
        },
        (true, Some(input)) => subject::command(input).unwrap_or_else(everything),
        (false, Some(input)) => Subject::Text(pretty(input.get())),
        (false, None) => everything(),
    }
}

/// The tool call of a question as the event that the agent never sent.
fn first_mention(frame: &Bytes, tool_call: &RawValue, id: &str, title: Option<&str>) -> Draft {
    // ACP wants a title in a `tool_call`; an update may lack it.
    let title = if title.is_none() { r#""title":"tool","# } else { "" };
    let whole = jsonrpc::owned(tool_call);
    let rest = whole.get().strip_prefix('{').unwrap_or("}");
    let body = format!(r#"{{"sessionUpdate":"tool_call",{title}{}"#, rest.trim_start());
    // A tool call that names an update itself would make the body say two things.
    let twins = serde_json::from_str::<super::Head<'_>>(&body).is_err();
    let body = if twins {
        format!(r#"{{"sessionUpdate":"tool_call","toolCallId":{},"title":"tool"}}"#, quoted(id))
    } else {
        body
    };
    Draft {
        kind: Kind::ToolCall,
        body: body.into(),
        native: Some(frame.clone()),
        tool: Some(ToolMark { id: id.to_owned(), over: false }),
        title: None,
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// Whether a form can be accepted as it is, empty.
fn asks_nothing(schema: &RawValue) -> bool {
    object::<Schema<'_>>(schema).is_some_and(|schema| schema.required.is_none_or(|required| required.get() == "[]"))
}
