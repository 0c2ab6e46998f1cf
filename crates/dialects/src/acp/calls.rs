//! Calls of clients to the agent: `session/*` and extension methods of ACP pass, `model.list`, `model.set`, `auth.login` and
//! `auth.logout` are translated, the rest is refused.

use agent_client_protocol_schema::v1::{AuthenticateRequest, LogoutRequest, SetSessionConfigOptionRequest};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::fault::model_name;
use super::super::jsonrpc::{self, Fields, INVALID_PARAMS, METHOD_NOT_FOUND, member, object, string};
use super::super::{EventDraft, Outbox, RuntimeError, RuntimeEvent};
use super::models::{SessionModels, mode_draft, options_draft, options_in};
use super::{Acp, Pending};
use plexus_protocol::{NativeId, Ticket};

/// Session methods that only the gateway calls: it owns sessions, their one run at a time, and their history.
const OWNED: [&str; 6] =
    ["session/new", "session/load", "session/resume", "session/prompt", "session/cancel", "session/update"];
/// Session methods that name no session.
const SESSIONLESS: [&str; 1] = ["session/list"];

/// A change of a session's setting by a call, reported to all clients once the agent accepts it.
#[derive(Serialize, Deserialize)]
pub(super) enum SettingChange {
    /// The mode with this identifier.
    Mode(String),
    /// The model with this identifier; `reply` is in the form of the UI protocol.
    Model(String),
    /// A configuration option; the response has all of them.
    Option,
    /// The end of the session: the agent closes or deletes it.
    End,
    /// A sign-in (`true`) or sign-out.
    SignedIn(bool),
}

impl Acp {
    /// Sends the call of a client to the agent.
    pub(super) fn call(
        &mut self,
        ticket: Ticket,
        native: Option<NativeId>,
        method: &str,
        params: Option<&RawValue>,
        notify: bool,
        out: &mut Outbox,
    ) {
        let made = match method {
            "model.list" => self.model_list(native.as_ref()).map(CallStep::Reply),
            "model.set" => self.model_set(native.as_ref(), params),
            "auth.login" => self.login(params),
            "auth.logout" if self.capabilities.logout => Ok(CallStep::Send {
                method: "logout".into(),
                params: jsonrpc::to_raw(&LogoutRequest::new()),
                sets: Some(SettingChange::SignedIn(false)),
            }),
            _ => self.pass(native.as_ref(), method, params),
        };
        match made {
            Ok(CallStep::Send { method, params, .. }) if notify => out.frames.push(jsonrpc::notify(&method, &params)),
            Ok(CallStep::Send { method, params, sets }) => {
                self.request(Pending::Call { ticket, native, sets }, &method, &params, out);
            }
            Ok(CallStep::Reply(_)) if notify => {}
            Ok(CallStep::Reply(reply)) => out.events.push(RuntimeEvent::Replied { ticket, reply: Ok(reply) }),
            Err(fault) => out.refuse_call(ticket, native, method, notify, fault),
        }
    }

    /// Signs in by one of the agent's methods.
    fn login(&self, params: Option<&RawValue>) -> Result<CallStep, RuntimeError> {
        match params.and_then(|params| member::<String>(params, "method_id")) {
            Some(method_id) if self.has_method(&method_id) => Ok(CallStep::Send {
                method: "authenticate".into(),
                params: jsonrpc::to_raw(&AuthenticateRequest::new(method_id)),
                sets: Some(SettingChange::SignedIn(true)),
            }),
            _ => {
                let reason = format!("auth.login needs {{\"method_id\": a sign-in method}}. {}", self.offered());
                Err(RuntimeError::new(INVALID_PARAMS, reason))
            }
        }
    }

    /// Returns whether the agent offers an optional method.
    fn offers(&self, method: &str) -> bool {
        match method {
            "session/list" => self.capabilities.list,
            "session/fork" => self.capabilities.fork,
            "session/close" => self.capabilities.close,
            "session/delete" => self.capabilities.delete,
            _ => true,
        }
    }

    fn model_list(&self, native: Option<&NativeId>) -> Result<Box<RawValue>, RuntimeError> {
        let models = native.and_then(|native| self.sessions.get(native)).map(|session| &session.models);
        let models = models.filter(|models| !models.offered.is_empty());
        let Some(models) = models else {
            return Err(RuntimeError::new(METHOD_NOT_FOUND, "this agent does not offer a choice of models"));
        };
        let ids: Vec<_> = models.offered.iter().map(|(id, _)| id).collect();
        let details: serde_json::Map<_, _> =
            models.offered.iter().map(|(id, name)| (id.clone(), serde_json::json!({ "name": name }))).collect();
        let mut list = serde_json::json!({ "provider": self.provider(), "models": ids, "details": details });
        if let Some(current) = &models.current {
            list["current"] = current.as_str().into();
        }
        Ok(jsonrpc::to_raw(&list))
    }

    fn model_set(&self, native: Option<&NativeId>, params: Option<&RawValue>) -> Result<CallStep, RuntimeError> {
        let name = model_name(params)?;
        let known = native.and_then(|native| Some((native, &self.sessions.get(native)?.models)));
        let Some((native, models)) = known.filter(|(_, models)| !models.offered.is_empty()) else {
            return Err(RuntimeError::new(METHOD_NOT_FOUND, "this agent does not offer a choice of models"));
        };
        if !models.offered.iter().any(|(id, _)| *id == name) {
            return Err(RuntimeError::new(INVALID_PARAMS, format!("no such model: {name}; model.list lists them")));
        }
        let (method, params) = match &models.option {
            Some(option) => (
                "session/set_config_option",
                jsonrpc::to_raw(&SetSessionConfigOptionRequest::new(native.to_string(), option.clone(), name.as_str())),
            ),
            // The method is no longer part of ACP, but agents still have it.
            None => {
                ("session/set_model", jsonrpc::to_raw(&serde_json::json!({ "sessionId": native, "modelId": name })))
            }
        };
        Ok(CallStep::Send { method: method.into(), params, sets: Some(SettingChange::Model(name)) })
    }

    fn provider(&self) -> &str {
        self.agent.as_deref().and_then(|agent| agent.split(' ').next()).unwrap_or("acp")
    }

    /// Handles the agent's response to a client's call.
    pub(super) fn called(
        &mut self,
        frame: &Bytes,
        ticket: Ticket,
        native: Option<NativeId>,
        sets: Option<SettingChange>,
        reply: Result<&RawValue, RuntimeError>,
        out: &mut Outbox,
    ) {
        let result = match reply {
            Ok(result) => result,
            Err(fault) => return out.events.push(RuntimeEvent::Replied { ticket, reply: Err(fault) }),
        };
        let mut answer = jsonrpc::owned(result);
        let options = options_in(result);
        if let Some(native) = native {
            let models = self.sessions.get_mut(&native).map(|session| &mut session.models);
            let mut none = SessionModels::default();
            let models = models.unwrap_or(&mut none);
            if options.is_some() {
                models.options_changed(result);
                self.lists.share(models);
            }
            // Not every agent reports the effect of a call, and other clients did not see the call.
            let draft = match (&sets, options) {
                (Some(SettingChange::Option | SettingChange::Model(_)), Some(options)) => {
                    Some(options_draft(options, frame))
                }
                (Some(SettingChange::Model(name)), None) => {
                    models.current = Some(name.clone());
                    models.option.is_none().then(|| models.draft(frame))
                }
                (Some(SettingChange::Mode(mode)), _) => Some(mode_draft(mode.clone(), frame)),
                (Some(SettingChange::End), _) => {
                    let reason = "a client closed this session in the agent: its next prompt will fail";
                    Some(EventDraft::error("session_ended", reason, Some(frame)))
                }
                (Some(SettingChange::Option | SettingChange::SignedIn(_)) | None, _) => None,
            };
            out.events.extend(draft.map(|draft| RuntimeEvent::Event { native: Some(native), draft }));
        }
        if let Some(SettingChange::SignedIn(yes)) = sets {
            self.authenticated = yes;
        }
        if let Some(SettingChange::Model(name)) = sets {
            answer = jsonrpc::to_raw(&serde_json::json!({ "provider": self.provider(), "name": name }));
        }
        out.events.push(RuntimeEvent::Replied { ticket, reply: Ok(answer) });
    }

    /// Forwards a method of the agent as the client wrote it, in the session that the client may use.
    fn pass(
        &self,
        native: Option<&NativeId>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<CallStep, RuntimeError> {
        let method = match method.strip_prefix("session.") {
            Some(rest) => format!("session/{rest}"),
            None => method.to_owned(),
        };
        if OWNED.contains(&method.as_str()) {
            return Err(RuntimeError::new(METHOD_NOT_FOUND, format!("{method} can only be called by the gateway")));
        }
        if !method.starts_with("session/") && !method.starts_with('_') {
            return Err(RuntimeError::new(METHOD_NOT_FOUND, format!("{method}: an ACP agent has no such method")));
        }
        if !self.offers(&method) {
            return Err(RuntimeError::new(METHOD_NOT_FOUND, format!("this agent does not offer {method}")));
        }
        let session = native.filter(|_| !SESSIONLESS.contains(&method.as_str()));
        let mut params = in_session(session, params)?;
        if method == "session/fork" {
            params = self.as_opened(session, &params)?;
        }
        let member = |name: &str| {
            let fields: Fields<'_> = object(&params)?;
            Some(string(fields.get(name)?)?.into_owned())
        };
        let sets = match method.as_str() {
            "session/set_mode" => member("modeId").map(SettingChange::Mode),
            "session/set_config_option" => Some(SettingChange::Option),
            "session/close" | "session/delete" => Some(SettingChange::End),
            _ => None,
        };
        Ok(CallStep::Send { method, params, sets })
    }

    /// Adds the params with which every conversation is opened, where the client did not set them.
    fn as_opened(&self, native: Option<&NativeId>, params: &RawValue) -> Result<Box<RawValue>, RuntimeError> {
        let cwd = native.and_then(|native| self.sessions.get(native)).map(|session| jsonrpc::to_raw(&session.cwd));
        let servers = jsonrpc::to_raw(&[(); 0]);
        let mut params = params.to_owned();
        for (name, value) in [("cwd", cwd), ("mcpServers", Some(servers)), ("_meta", self.session_meta.clone())] {
            let absent =
                object::<Fields<'_>>(&params).is_some_and(|fields| !fields.0.iter().any(|(key, _)| key == name));
            if let (true, Some(value)) = (absent, value) {
                params = with(name, &value, params.get())?;
            }
        }
        Ok(params)
    }
}

/// The next step of a call.
enum CallStep {
    Send { method: String, params: Box<RawValue>, sets: Option<SettingChange> },
    Reply(Box<RawValue>),
}

/// Returns the params with the id of the session. The id of another session is refused: the client's permission is for this one.
fn in_session(native: Option<&NativeId>, params: Option<&RawValue>) -> Result<Box<RawValue>, RuntimeError> {
    let params = params.filter(|params| params.get() != "null").map_or("{}", RawValue::get);
    let parsed = serde_json::from_str::<&RawValue>(params).ok().and_then(object::<Fields<'_>>);
    let Some(fields) = parsed else { return Err(RuntimeError::new(INVALID_PARAMS, "params must be an object")) };
    let Some(native) = native else {
        return RawValue::from_string(params.to_owned()).map_err(|e| RuntimeError::new(INVALID_PARAMS, e.to_string()));
    };
    let mut named = fields.0.iter().filter(|(key, _)| key == "sessionId").map(|(_, value)| string(value));
    match (named.next(), named.next()) {
        (None, _) => {}
        (Some(Some(session)), None) if session == native.as_str() => {
            return RawValue::from_string(params.to_owned())
                .map_err(|e| RuntimeError::new(INVALID_PARAMS, e.to_string()));
        }
        _ => return Err(RuntimeError::new(INVALID_PARAMS, "params name another session")),
    }
    with("sessionId", &jsonrpc::to_raw(native), params)
}

/// Returns the JSON object with one more member at its beginning.
fn with(name: &str, value: &RawValue, params: &str) -> Result<Box<RawValue>, RuntimeError> {
    let rest = params.trim_start().strip_prefix('{').unwrap_or("}").trim_start();
    let comma = if rest.starts_with('}') { "" } else { "," };
    RawValue::from_string(format!(r#"{{"{name}":{}{comma}{rest}"#, value.get()))
        .map_err(|e| RuntimeError::new(INVALID_PARAMS, e.to_string()))
}
