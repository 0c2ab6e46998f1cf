//! Questions: `session/request_permission`, and the answers to all there are.

use std::collections::HashSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, object, pretty, string};
use super::super::{Ask, AskKey, Draft, Outbox, Said, Subject, ToolMark, subject};
use super::elicit::Wanted;
use super::open::Wish;
use super::serve::Run;
use super::{ASKS_MAX, Acp, trouble};
use crate::model::{Choice, Decision, Editable, Kind, NativeId, Offer, RequestType};

/// A question that waits for its answer.
#[derive(Serialize, Deserialize)]
pub(super) enum Asked {
    /// `session/request_permission`, with the options it offers.
    Permission { native: NativeId, options: Vec<String> },
    /// `elicitation/create`.
    Elicitation { native: Option<NativeId>, wanted: Wanted, params: Box<RawValue> },
    /// The gateway's own: how to sign in, so that a conversation can be opened.
    SignIn(Wish),
    /// `fs/write_text_file`: what the file held, and what it is to hold.
    Write { native: NativeId, path: String, before: Option<String>, text: String },
    /// `terminal/create`.
    Run { native: NativeId, run: Run },
}

impl Asked {
    pub(super) fn native(&self) -> Option<&NativeId> {
        match self {
            Self::Permission { native, .. } | Self::Write { native, .. } | Self::Run { native, .. } => Some(native),
            Self::Elicitation { native, .. } => native.as_ref(),
            Self::SignIn(_) => None,
        }
    }
}

/// The answer to a permission request. What is no offered option is told as `cancelled`: the gateway never says yes by
/// mistake.
fn permitted(key: &AskKey, options: &[String], decision: &Decision) -> Bytes {
    match decision {
        Decision::Option { id, .. } if options.contains(id) => {
            let outcome = serde_json::json!({ "outcome": { "outcome": "selected", "optionId": id } });
            jsonrpc::answer(&key.0, &outcome)
        }
        // Only an agent that offered it gets this: it said that it reads the rest.
        Decision::Edited { id, text, .. } if options.contains(id) => {
            let outcome = serde_json::json!({
                "outcome": { "outcome": "selected", "optionId": id }, "_meta": { "plexus": { "edited": text } },
            });
            jsonrpc::answer(&key.0, &outcome)
        }
        _ => cancelled(&key.0),
    }
}

/// The answer `cancelled` to a permission request.
pub(super) fn cancelled(id: &str) -> Bytes {
    jsonrpc::answer(id, &serde_json::json!({ "outcome": { "outcome": "cancelled" } }))
}

/// A question with nothing set but what it cannot do without.
pub(super) fn question(key: &AskKey, kind: RequestType, title: &str, params: &RawValue, native: Bytes) -> Ask {
    Ask {
        key: key.clone(),
        kind,
        title: title.to_owned(),
        message: None,
        subject: Subject::Text(String::new()),
        options: Vec::new(),
        items: Vec::new(),
        multi: false,
        default_value: None,
        multiline: false,
        secret: false,
        danger: false,
        allow_reason: false,
        allow_remember: false,
        observe_only: false,
        editable: None,
        tool_call_id: None,
        first_mention: None,
        params: jsonrpc::owned(params),
        native,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Permission<'a> {
    session_id: String,
    #[serde(borrow)]
    tool_call: &'a RawValue,
    #[serde(borrow)]
    options: Vec<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// What an agent says of a question beyond ACP: what of it may be changed before it is allowed.
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

impl Acp {
    /// Whether another question may wait under this key; if not, says why.
    pub(super) fn room(&mut self, frame: &Bytes, key: &AskKey, native: Option<&NativeId>, out: &mut Outbox) -> Room {
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
        let mut ask = question(&key, RequestType::Permission, "The agent asks for permission", params, frame.clone());
        ask.subject = about(asked.tool_call, &tool, title.as_deref(), blocks);
        if let Some(title) = title {
            ask.title = title;
        }
        (ask.message, ask.options) = (message, options);
        ask.editable = asked.meta.and_then(object::<Meta>).map(|meta| meta.plexus.editable);
        (ask.tool_call_id, ask.first_mention) = (tool_call_id, first_mention);
        let options = ask.options.iter().map(|offer| offer.id.clone()).collect();
        self.asks.insert(key, Asked::Permission { native: native.clone(), options });
        out.said.push(Said::Asked { native: Some(native), ask: Box::new(ask) });
    }

    /// Somebody decided, or nobody did.
    pub(super) fn answer(&mut self, key: &AskKey, decision: &Decision, out: &mut Outbox) {
        match self.asks.remove(key) {
            Some(Asked::Permission { options, .. }) => out.frames.push(permitted(key, &options, decision)),
            Some(Asked::Elicitation { native, wanted, params }) => {
                self.elicit(key, (native, wanted, params), decision, out);
            }
            Some(Asked::SignIn(wish)) => self.sign_in_by(wish, decision, out),
            Some(Asked::Write { native, path, before, text }) => {
                self.write(key, native, (path, before, text), decision, out);
            }
            Some(Asked::Run { native, run }) => self.run(key, native, run, decision, out),
            None => {}
        }
    }

    /// `$/cancel_request`: the agent takes a question back.
    pub(super) fn taken_back(&mut self, frame: &Bytes, params: Option<&RawValue>, out: &mut Outbox) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow, default, deserialize_with = "jsonrpc::present")]
            request_id: Option<&'a RawValue>,
        }
        let id = params.and_then(object::<Params<'_>>).and_then(|params| params.request_id);
        let key = AskKey(id.map_or_else(String::new, |id| id.get().to_owned()));
        match self.asks.get(&key).map(|asked| asked.native().cloned()) {
            Some(native) => {
                // A request that was taken back still has an answer: the agent may go on waiting for it.
                self.answer(&key, &Decision::Withdrawn, out);
                out.said.push(Said::TakenBack { native, key, elsewhere: None });
            }
            None if self.dropped(&key, out) => {}
            None => self.raw(frame, None, "a withdrawal of a question that is not open", out),
        }
    }
}

pub(super) enum Room {
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
