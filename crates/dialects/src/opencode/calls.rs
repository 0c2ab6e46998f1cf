//! Calls of clients to OpenCode, its models, and the content of prompts.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::fault::model_name;
use super::super::jsonrpc::{self, INTERNAL, INVALID_PARAMS, METHOD_NOT_FOUND, member, object};
use super::super::{EventDraft, HttpReply, Outbox, RuntimeError, RuntimeEvent};
use super::{OpenCode, Pending, escape, in_folder, refused};
use plexus_protocol::{Kind, NativeId, Ticket};

/// OpenCode's route of a client's method: HTTP method, and the path after `/session/{id}/`. Only routes that return at
/// once: requests are sent one after the other, and an answer must not wait behind a command.
const ROUTES: [(&str, &str, &str); 9] = [
    ("session.get", "GET", ""),
    ("session.todo", "GET", "/todo"),
    ("session.diff", "GET", "/diff"),
    ("session.children", "GET", "/children"),
    ("session.messages", "GET", "/message"),
    ("session.share", "POST", "/share"),
    ("session.unshare", "DELETE", "/share"),
    ("session.revert", "POST", "/revert"),
    ("session.unrevert", "POST", "/unrevert"),
];

/// The models that OpenCode offers.
#[derive(Default)]
pub(super) struct Models {
    /// The id (`provider/model`), the name and the context size of each model.
    offered: Vec<(String, String, Option<u64>)>,
    /// The default model, if known.
    default: Option<String>,
}

#[derive(Deserialize)]
struct Providers {
    providers: Vec<Provider>,
    #[serde(default)]
    default: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Provider {
    id: String,
    #[serde(default)]
    models: BTreeMap<String, Model>,
}

#[derive(Deserialize)]
struct Model {
    id: Option<String>,
    name: Option<String>,
    limit: Option<Limit>,
}

#[derive(Deserialize)]
struct Limit {
    context: Option<f64>,
}

impl Models {
    /// Makes the models from a list: `provider/model`, name, context size.
    pub(super) fn new(offered: Vec<(String, String, Option<u64>)>) -> Self {
        Self { offered, default: None }
    }

    /// Returns whether the model is offered.
    pub(super) fn has(&self, id: &str) -> bool {
        self.offered.iter().any(|(known, ..)| known == id)
    }

    /// Returns the reply to `model.list` if the session's model is `set`.
    pub(super) fn list(&self, set: Option<&(String, String)>) -> Result<Box<RawValue>, RuntimeError> {
        if self.offered.is_empty() {
            return Err(RuntimeError::new(METHOD_NOT_FOUND, "OpenCode does not offer a choice of models"));
        }
        let ids: Vec<_> = self.offered.iter().map(|(id, ..)| id).collect();
        let details: serde_json::Map<_, _> =
            self.offered.iter().map(|(id, name, _)| (id.clone(), serde_json::json!({ "name": name }))).collect();
        let mut list = serde_json::json!({ "provider": "opencode", "models": ids, "details": details });
        if let Some(current) = self.current(set) {
            list["current"] = current.into();
        }
        Ok(jsonrpc::to_raw(&list))
    }

    /// Reads `GET /config/providers`.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // tokens: whole, not negative, far below 2^53
    pub(super) fn read(&mut self, body: &[u8]) {
        let Ok(Providers { providers, default }) = plexus_protocol::object::from_slice(body) else { return };
        self.offered.clear();
        for Provider { id: provider, models } in providers {
            for (key, model) in models {
                let id = format!("{provider}/{}", model.id.as_deref().unwrap_or(&key));
                let context = model.limit.and_then(|limit| limit.context).map(|tokens| tokens.max(0.0) as u64);
                self.offered.push((id.clone(), model.name.unwrap_or(id), context));
            }
        }
        // With several providers, the default depends on earlier use.
        let mut defaults = default.into_iter();
        self.default = match (defaults.next(), defaults.next()) {
            (Some((provider, model)), None) => Some(format!("{provider}/{model}")),
            _ => None,
        };
    }

    /// Returns the context size of a model, in tokens.
    pub(super) fn context(&self, model: Option<&str>) -> Option<u64> {
        self.offered.iter().find(|(id, ..)| Some(id.as_str()) == model)?.2
    }

    fn current(&self, set: Option<&(String, String)>) -> Option<String> {
        set.map(|(provider, model)| format!("{provider}/{model}")).or_else(|| self.default.clone())
    }

    /// Returns the models as an ACP configuration option.
    pub(super) fn draft(&self, set: Option<&(String, String)>) -> Option<EventDraft> {
        if self.offered.is_empty() {
            return None;
        }
        let choices: Vec<_> =
            self.offered.iter().map(|(id, name, _)| serde_json::json!({ "value": id, "name": name })).collect();
        let body = serde_json::json!({
            "sessionUpdate": "config_option_update",
            "configOptions": [{
                "id": "model", "name": "Model", "category": "model", "type": "select",
                "currentValue": self.current(set).unwrap_or_default(), "options": choices,
            }],
        });
        Some(EventDraft::new(Kind::ConfigOptionUpdate, &body))
    }
}

/// Returns a prompt's content as OpenCode's parts, and its first text.
pub(super) fn parts(content: &[Box<RawValue>]) -> (Vec<serde_json::Value>, Option<String>) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Block {
        #[serde(rename = "type")]
        kind: String,
        text: Option<String>,
        data: Option<String>,
        mime_type: Option<String>,
        uri: Option<String>,
        name: Option<String>,
        resource: Option<Resource>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Resource {
        text: Option<String>,
        blob: Option<String>,
        mime_type: Option<String>,
        uri: Option<String>,
    }
    let text = |text: &str| serde_json::json!({ "type": "text", "text": text });
    let file = |mime: Option<String>, name: Option<String>, url: String| {
        let mime = mime.unwrap_or_else(|| "text/plain".into());
        let mut part = serde_json::json!({ "type": "file", "mime": mime, "url": url });
        if let Some(name) = name {
            part["filename"] = name.into();
        }
        part
    };
    let data = |mime: &Option<String>, data: &str| {
        format!("data:{};base64,{data}", mime.as_deref().unwrap_or("application/octet-stream"))
    };
    let mut parts = Vec::with_capacity(content.len());
    let mut first = None;
    for raw in content {
        let Some(block) = object::<Block>(raw) else {
            parts.push(text(raw.get()));
            continue;
        };
        let part = match (block.kind.as_str(), block.text, block.data, block.uri, block.resource) {
            ("text", Some(content), ..) => text(&content),
            ("image" | "audio", _, Some(bytes), ..) => {
                let url = data(&block.mime_type, &bytes);
                file(block.mime_type, block.name, url)
            }
            ("resource_link", _, _, Some(uri), _) => file(block.mime_type, block.name, uri),
            ("resource", .., Some(Resource { text: Some(content), .. })) => text(&content),
            ("resource", .., Some(Resource { blob: Some(bytes), mime_type, uri, .. })) => {
                let url = data(&mime_type, &bytes);
                file(mime_type, uri, url)
            }
            // A block of an unknown type is sent as its JSON.
            _ => text(raw.get()),
        };
        if first.is_none() {
            first = part["text"].as_str().map(ToOwned::to_owned);
        }
        parts.push(part);
    }
    (parts, first)
}

/// Returns the reply to a client's call.
pub(super) fn result(reply: &Result<HttpReply, String>) -> Result<Box<RawValue>, RuntimeError> {
    match reply {
        Ok(HttpReply { status: 204, .. }) => Ok(jsonrpc::to_raw(&serde_json::json!({}))),
        Ok(reply @ HttpReply { status: 200, body }) => match serde_json::from_slice::<&RawValue>(body) {
            Ok(result) => Ok(jsonrpc::owned(result)),
            Err(_) => Err(RuntimeError::new(METHOD_NOT_FOUND, refused(reply))),
        },
        Ok(reply) => Err(RuntimeError::new(INTERNAL, refused(reply))),
        Err(reason) => Err(RuntimeError::new(INTERNAL, reason.clone())),
    }
}

/// Returns the path of OpenCode's list of conversations in all folders, newest first, without helper sessions.
fn listing(params: Option<&RawValue>) -> String {
    let limit = params.and_then(|params| member::<u32>(params, "limit"));
    let limit = limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
    format!("/experimental/session?roots=true{limit}")
}

impl OpenCode {
    /// Sends a client's call.
    pub(super) fn call(
        &mut self,
        ticket: Ticket,
        native: Option<NativeId>,
        method: &str,
        params: Option<&RawValue>,
        notify: bool,
        out: &mut Outbox,
    ) {
        let reply = match method {
            "model.list" => self.model_list(native.as_ref()),
            "model.set" => self.model_set(native.as_ref(), params, out),
            _ => match self.route(native.as_ref(), method, params) {
                Ok((verb, path, body)) => {
                    let id = self.pend(Pending::Call { ticket, notify });
                    return out.fetches.push(super::ask::fetch(id, verb, path, body));
                }
                Err(fault) => Err(fault),
            },
        };
        match reply {
            Err(fault) if notify => {
                let draft = EventDraft::call_refused(method, &fault);
                match native {
                    Some(native) => {
                        self.emit(&native.clone(), RuntimeEvent::Event { native: Some(native), draft }, out)
                    }
                    None => out.events.push(RuntimeEvent::Event { native: None, draft }),
                }
            }
            _ if notify => {}
            reply => out.events.push(RuntimeEvent::Replied { ticket, reply }),
        }
    }

    fn model_list(&self, native: Option<&NativeId>) -> Result<Box<RawValue>, RuntimeError> {
        let session = native.and_then(|native| self.sessions.get(native));
        self.models.list(session.and_then(|session| session.model.as_ref()))
    }

    /// Sets the model for the next prompts: OpenCode has no other way to set it.
    fn model_set(
        &mut self,
        native: Option<&NativeId>,
        params: Option<&RawValue>,
        out: &mut Outbox,
    ) -> Result<Box<RawValue>, RuntimeError> {
        let name = model_name(params)?;
        let offered = self.models.has(&name);
        let Some((provider, model)) = name.split_once('/').filter(|_| offered) else {
            return Err(RuntimeError::new(INVALID_PARAMS, format!("no such model: {name}; model.list lists them")));
        };
        let session = native.and_then(|native| Some((native, self.sessions.get_mut(native)?)));
        let Some((native, session)) = session else {
            return Err(RuntimeError::new(INVALID_PARAMS, "model.set is for a session"));
        };
        session.model = Some((provider.to_owned(), model.to_owned()));
        if let Some(draft) = self.models.draft(session.model.as_ref()) {
            self.emit(native, RuntimeEvent::Event { native: Some(native.clone()), draft }, out);
        }
        Ok(jsonrpc::to_raw(&serde_json::json!({ "provider": "opencode", "name": name })))
    }

    fn route(
        &self,
        native: Option<&NativeId>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(&'static str, String, Option<Bytes>), RuntimeError> {
        if method == "session.list" {
            return Ok(("GET", listing(params), None));
        }
        let Some((_, verb, rest)) = ROUTES.iter().find(|(name, ..)| *name == method) else {
            return Err(RuntimeError::new(
                METHOD_NOT_FOUND,
                format!("{method}: the gateway does not pass this method on to OpenCode"),
            ));
        };
        let Some(native) = native else {
            return Err(RuntimeError::new(INVALID_PARAMS, format!("{method} is for a session")));
        };
        let folder = self.sessions.get(native).and_then(|session| session.folder.as_deref());
        let path = in_folder(&format!("/session/{}{rest}", escape(native.as_str())), folder);
        let body = match (*verb, params) {
            ("POST", Some(params)) if params.get().starts_with('{') => {
                Some(Bytes::from(String::from(Box::<str>::from(jsonrpc::owned(params)))))
            }
            ("POST", _) => Some(Bytes::from_static(b"{}")),
            _ => None,
        };
        Ok((*verb, path, body))
    }
}
