//! Calls of clients to Codex. Only known and harmless methods are forwarded: the server never answers a method that it
//! does not know, and others run commands, write files and change permissions without a question.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, Fields, INVALID_PARAMS, METHOD_NOT_FOUND, member, object, string};
use super::super::{EventDraft, Outbox, RuntimeError, RuntimeEvent};
use super::{Codex, Pending, abilities};
use plexus_protocol::{NativeId, Ticket};

/// Methods of one thread, which is set to that of the session.
const OF_THREAD: [&str; 10] = [
    "thread/read",
    "thread/turns/list",
    "thread/items/list",
    "thread/name/set",
    "thread/goal/get",
    "thread/goal/set",
    "thread/goal/clear",
    "thread/compact/start",
    "turn/steer",
    "thread/queue/list",
];
/// Methods without a thread.
const OF_SERVER: [&str; 8] = [
    "thread/list",
    "thread/loaded/list",
    "model/list",
    "skills/list",
    "mcpServerStatus/list",
    "account/rateLimits/read",
    "permissionProfile/list",
    "collaborationMode/list",
];

/// The translation of a reply.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum ReplyHandling {
    /// The reply, unchanged.
    Plain,
    /// The reply to `model.list` of the UI protocol: the provider, and the current model.
    Models { provider: String, current: Option<String> },
    /// The reply to `model.set` of the UI protocol.
    Model { provider: String, name: String },
    /// The reply to `mcp.list` of the UI protocol.
    Servers,
    /// The reply to `skills.list` of the UI protocol.
    Skills,
}

impl ReplyHandling {
    pub(super) fn reply(self, reply: Result<&RawValue, RuntimeError>) -> Result<Box<RawValue>, RuntimeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Model {
            model: String,
            display_name: Option<String>,
        }
        let result = reply?;
        Ok(match self {
            Self::Plain => jsonrpc::owned(result),
            Self::Servers => abilities::servers(result),
            Self::Skills => abilities::skills(result),
            Self::Model { provider, name } => {
                jsonrpc::to_raw(&serde_json::json!({ "provider": provider, "name": name }))
            }
            Self::Models { provider, current } => {
                let models = member::<Vec<Model>>(result, "data").unwrap_or_default();
                let ids: Vec<_> = models.iter().map(|model| &model.model).collect();
                let name = |model: &Model| {
                    let name = model.display_name.as_ref().unwrap_or(&model.model);
                    (model.model.clone(), serde_json::json!({ "name": name }))
                };
                let details: serde_json::Map<_, _> = models.iter().map(name).collect();
                let mut list = serde_json::json!({ "provider": provider, "models": ids, "details": details });
                if let Some(current) = current {
                    list["current"] = current.into();
                }
                jsonrpc::to_raw(&list)
            }
        })
    }
}

impl Codex {
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
        match self.made(native.as_ref(), method, params) {
            Ok(_) if notify => {
                let message = format!("{method} was not sent: Codex does not accept notifications");
                out.events
                    .push(RuntimeEvent::Event { native, draft: EventDraft::error("call_refused", &message, None) });
            }
            Ok((method, params, kind)) => {
                self.request(Pending::Call { ticket: ticket.0, kind }, &method, &params, out);
            }
            Err(fault) => out.refuse_call(ticket, native, method, notify, fault),
        }
    }

    fn made(
        &self,
        native: Option<&NativeId>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(String, Box<RawValue>, ReplyHandling), RuntimeError> {
        let thread = native.and_then(|native| self.state.threads.get(native));
        let provider = thread.and_then(|thread| thread.provider.clone()).unwrap_or_else(|| "codex".into());
        match method {
            "model.list" => {
                let current = thread.and_then(|thread| thread.model.clone());
                let params = jsonrpc::to_raw(&serde_json::json!({}));
                return Ok(("model/list".into(), params, ReplyHandling::Models { provider, current }));
            }
            "model.set" => {
                let name = params.and_then(|params| member::<String>(params, "name"));
                let (Some(native), Some(name)) = (native, name) else {
                    return Err(RuntimeError::new(INVALID_PARAMS, "model.set needs {\"name\": the model}"));
                };
                let params = jsonrpc::to_raw(&serde_json::json!({ "threadId": native, "model": name }));
                return Ok(("thread/settings/update".into(), params, ReplyHandling::Model { provider, name }));
            }
            "mcp.list" => {
                return Ok((abilities::SERVERS.into(), abilities::thread_servers(native), ReplyHandling::Servers));
            }
            "skills.list" => {
                return Ok((abilities::SKILLS.into(), abilities::in_folder(params), ReplyHandling::Skills));
            }
            _ => {}
        }
        // The UI protocol has a dot where Codex has a slash.
        let method = if method.contains('/') { method.to_owned() } else { method.replace('.', "/") };
        let is_thread_method = OF_THREAD.contains(&method.as_str());
        if !is_thread_method && !OF_SERVER.contains(&method.as_str()) {
            return Err(RuntimeError::new(
                METHOD_NOT_FOUND,
                format!("{method}: the gateway does not pass this method on to Codex"),
            ));
        }
        let mut extra = serde_json::Map::new();
        if is_thread_method {
            let Some(native) = native else {
                return Err(RuntimeError::new(INVALID_PARAMS, format!("{method} wants a session")));
            };
            extra.insert("threadId".into(), native.as_str().into());
        }
        if method == "turn/steer" {
            let Some(turn) = thread.and_then(|thread| thread.turn.as_ref()?.id.clone()) else {
                return Err(RuntimeError::new(INVALID_PARAMS, "no turn is active"));
            };
            extra.insert("expectedTurnId".into(), turn.into());
        }
        let params = with(params, extra)?;
        Ok((method, params, ReplyHandling::Plain))
    }
}

/// Adds these members to the params. A different value for one of them is refused: the client's permission is for this session.
fn with(
    params: Option<&RawValue>,
    extra: serde_json::Map<String, serde_json::Value>,
) -> Result<Box<RawValue>, RuntimeError> {
    let params = params.filter(|params| params.get() != "null").map_or("{}", RawValue::get);
    let fields = serde_json::from_str::<&RawValue>(params).ok().and_then(object::<Fields<'_>>);
    let Some(fields) = fields else { return Err(RuntimeError::new(INVALID_PARAMS, "params must be an object")) };
    let mut more = String::new();
    for (name, value) in &extra {
        let mut named = fields.0.iter().filter(|(key, _)| key == name).map(|(_, value)| string(value));
        match (named.next(), named.next()) {
            (None, _) => {
                let name = serde_json::Value::from(name.as_str());
                more.push_str(&format!("{name}:{value},"));
            }
            (Some(Some(given)), None) if Some(given.as_ref()) == value.as_str() => {}
            _ => return Err(RuntimeError::new(INVALID_PARAMS, format!("params name another {name}"))),
        }
    }
    let rest = params.trim_start().strip_prefix('{').unwrap_or("}").trim_start();
    if rest.starts_with('}') && more.ends_with(',') {
        more.pop();
    }
    RawValue::from_string(format!("{{{more}{rest}")).map_err(|e| RuntimeError::new(INVALID_PARAMS, e.to_string()))
}
