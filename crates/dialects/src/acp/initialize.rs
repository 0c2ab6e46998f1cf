//! The handshake and the sign-in.

use agent_client_protocol_schema::v1::AuthenticateRequest;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::held::ASKS_MAX;
use super::super::jsonrpc::{self, Fields, object};
use super::super::{Outbox, RequestKey, RequestSubject, RuntimeError, RuntimeEvent};
use super::ask::{PendingRequest, question};
use super::open::PendingOpen;
use super::{AUTH_REQUIRED, Acp, Pending, Phase};
use plexus_protocol::{Capabilities, Capability, Decision, Item, RequestType};

/// The version of ACP.
const VERSION: u64 = 1;
/// Maximum number of variables listed for one way to sign in.
const VARIABLES_MAX: usize = 8;

/// A way to sign in.
#[derive(Serialize, Deserialize)]
pub(super) struct AuthMethod {
    id: String,
    name: String,
    /// The type, `env_var` or `terminal`; `None` for `authenticate` alone.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The environment variables that it reads.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    vars: Vec<Variable>,
}

/// A variable, as ACP names it.
#[derive(Serialize, Deserialize)]
struct Variable {
    name: String,
}

/// Returns the variables of a method, from `vars` or from its description (`Requires OPENAI_API_KEY`).
fn variables(vars: Option<&RawValue>, texts: &[Option<&str>]) -> Vec<Variable> {
    let listed = vars.and_then(|raw| serde_json::from_str::<Vec<Variable>>(raw.get()).ok()).unwrap_or_default();
    if !listed.is_empty() {
        return listed.into_iter().take(VARIABLES_MAX).collect();
    }
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let mut found: Vec<String> = Vec::new();
    for word in texts.iter().flatten().flat_map(|text| text.split(|c| !is_name(c))) {
        let named = word.contains('_') && word.starts_with(|c: char| c.is_ascii_uppercase()) && word.len() > 4;
        if named && !found.iter().any(|one| one == word) {
            found.push(word.to_owned());
        }
    }
    found.into_iter().take(VARIABLES_MAX).map(|name| Variable { name }).collect()
}

impl AuthMethod {
    /// Returns whether the method works by `authenticate`; otherwise the user signs in in a terminal.
    fn is_direct(&self) -> bool {
        self.kind.as_deref() != Some("terminal")
    }
}

/// The capabilities that the agent reports.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct AgentCapabilities {
    /// Support of `session/load`, which opens a conversation again and replays its past.
    pub(super) load: bool,
    /// Support of `session/resume`, which opens a conversation again without its past.
    pub(super) resume: bool,
    /// Support of `session/list`.
    pub(super) list: bool,
    /// Support of `session/fork`.
    pub(super) fork: bool,
    /// Support of `session/close`.
    pub(super) close: bool,
    /// Support of `session/delete`.
    pub(super) delete: bool,
    /// Support of `logout`.
    pub(super) logout: bool,
    /// Support of images in a prompt.
    image: bool,
    /// Support of audio in a prompt.
    audio: bool,
    /// Support of embedded files in a prompt.
    embedded_context: bool,
    /// Support of MCP servers by HTTP.
    mcp_http: bool,
    /// Support of MCP servers by server-sent events.
    mcp_sse: bool,
    /// Support of edited commands: see [`ask`](super::ask).
    edits: bool,
    /// Modes to choose from, known from a session.
    pub(super) modes: bool,
    /// Models to choose from, known from a session.
    pub(super) models: bool,
}

impl AgentCapabilities {
    fn read(capabilities: &RawValue) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Agent<'a> {
            load_session: Option<&'a RawValue>,
            session_capabilities: Option<&'a RawValue>,
            auth: Option<&'a RawValue>,
            prompt_capabilities: Option<&'a RawValue>,
            mcp_capabilities: Option<&'a RawValue>,
            #[serde(borrow, rename = "_meta")]
            meta: Option<&'a RawValue>,
        }
        // Objects in the schema (`{}`), booleans in some agents.
        let has =
            |member: Option<&RawValue>| member.is_some_and(|raw| raw.get() == "true" || raw.get().starts_with('{'));
        let Some(agent) = object::<Agent<'_>>(capabilities) else { return Self::default() };
        fn members(raw: Option<&RawValue>) -> Fields<'_> {
            raw.and_then(object).unwrap_or(Fields(Vec::new()))
        }
        let (session, auth) = (members(agent.session_capabilities), members(agent.auth));
        let (prompt, mcp) = (members(agent.prompt_capabilities), members(agent.mcp_capabilities));
        let extensions = members(members(agent.meta).get("plexus"));
        Self {
            load: has(agent.load_session),
            resume: has(session.get("resume")),
            list: has(session.get("list")),
            fork: has(session.get("fork")),
            close: has(session.get("close")),
            delete: has(session.get("delete")),
            logout: has(auth.get("logout")),
            image: has(prompt.get("image")),
            audio: has(prompt.get("audio")),
            embedded_context: has(prompt.get("embeddedContext")),
            mcp_http: has(mcp.get("http")),
            mcp_sse: has(mcp.get("sse")),
            edits: has(extensions.get("edits")),
            modes: false,
            models: false,
        }
    }

    /// Returns these capabilities under the gateway's names. Every agent that speaks ACP can be cancelled and may open
    /// requests; none accepts a reason.
    pub(super) fn capabilities(self) -> Capabilities {
        let Self { load, resume, list, fork, close, delete, logout, image, audio, embedded_context, .. } = self;
        let Self { mcp_http, mcp_sse, edits, modes, models, .. } = self;
        [
            (Capability::Load, load),
            (Capability::Resume, resume),
            (Capability::List, list),
            (Capability::Fork, fork),
            (Capability::Close, close),
            (Capability::Delete, delete),
            (Capability::Logout, logout),
            (Capability::Cancel, true),
            (Capability::Requests, true),
            (Capability::Edits, edits),
            (Capability::Modes, modes),
            (Capability::Models, models),
            (Capability::Images, image),
            (Capability::Audio, audio),
            (Capability::EmbeddedContext, embedded_context),
            (Capability::McpHttp, mcp_http),
            (Capability::McpSse, mcp_sse),
        ]
        .into_iter()
        .filter_map(|(one, there)| there.then_some(one))
        .collect()
    }
}

impl Acp {
    pub(super) fn hello(&mut self, out: &mut Outbox) {
        let params = serde_json::json!({
            "protocolVersion": VERSION,
            "clientCapabilities": {
                "fs": { "readTextFile": self.serve.fs, "writeTextFile": self.serve.fs },
                "terminal": self.serve.terminal,
                "elicitation": { "form": {}, "url": {} },
            },
            "clientInfo": { "name": "plexus", "version": env!("CARGO_PKG_VERSION") },
        });
        self.request(Pending::Initialize, "initialize", &params, out);
    }

    pub(super) fn initialized(&mut self, reply: Result<&RawValue, RuntimeError>, out: &mut Outbox) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hello<'a> {
            protocol_version: Option<&'a RawValue>,
            auth_methods: Option<&'a RawValue>,
            agent_info: Option<&'a RawValue>,
            agent_capabilities: Option<&'a RawValue>,
            #[serde(rename = "_meta", borrow)]
            meta: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Info {
            name: String,
            version: Option<String>,
        }
        #[derive(Deserialize)]
        struct Method<'a> {
            id: String,
            name: Option<String>,
            description: Option<String>,
            #[serde(rename = "type")]
            kind: Option<String>,
            #[serde(borrow)]
            vars: Option<&'a RawValue>,
        }
        let result = match reply {
            Ok(result) => result,
            Err(fault) => {
                return self
                    .fail(format!("the agent refused the handshake: {} ({})", fault.full_message(), fault.code), out);
            }
        };
        let Some(hello) = object::<Hello<'_>>(result) else {
            return self.fail("the agent's response to `initialize` is not ACP".into(), out);
        };
        let version = hello.protocol_version.map_or("none", RawValue::get);
        if version != "1" {
            return self.fail(format!("the agent speaks ACP version {version}; the gateway speaks version 1"), out);
        }
        let info = hello.agent_info.and_then(object::<Info>).map(|info| match info.version {
            Some(version) => format!("{} {version}", info.name),
            None => info.name,
        });
        self.agent = info.or_else(|| hello.meta.and_then(super::quirks::grok_info));
        self.capabilities = hello.agent_capabilities.map(AgentCapabilities::read).unwrap_or_default();
        self.capabilities.resume &= !super::quirks::loads_only(self.agent.as_deref());
        let methods = hello.auth_methods.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
        self.methods = methods
            .into_iter()
            .flatten()
            .filter_map(object::<Method<'_>>)
            .map(|m| AuthMethod {
                vars: variables(m.vars, &[m.name.as_deref(), m.description.as_deref()]),
                name: m.name.unwrap_or_else(|| m.id.clone()),
                id: m.id,
                kind: m.kind,
            })
            .collect();
        // A method that the agent does not list is not tried: an agent that is signed in already may list none. If it
        // requires a sign-in, the response to opening a session says so, and names the methods.
        let auth_method = self.auth_method.clone().filter(|auth_method| self.has_method(auth_method));
        match auth_method {
            Some(method) => self.authenticate(&method, None, out),
            None => self.ready(out),
        }
    }

    fn fail(&mut self, message: String, out: &mut Outbox) {
        self.phase = Phase::Failed;
        out.events.push(RuntimeEvent::Failed { message });
    }

    fn ready(&mut self, out: &mut Outbox) {
        self.phase = Phase::Ready;
        out.events.push(RuntimeEvent::Ready { agent: self.agent.clone() });
        self.rejoin(out);
    }

    fn authenticate(&mut self, method: &str, then: Option<PendingOpen>, out: &mut Outbox) {
        let params = AuthenticateRequest::new(method.to_owned());
        self.request(Pending::Authenticate { then }, "authenticate", &params, out);
    }

    pub(super) fn signed_in(
        &mut self,
        then: Option<PendingOpen>,
        reply: Result<&RawValue, RuntimeError>,
        out: &mut Outbox,
    ) {
        match (then, reply) {
            (then, Ok(_)) => {
                self.authenticated = true;
                match then {
                    Some(opening) => self.open_session(opening, out),
                    None => self.ready(out),
                }
            }
            (None, Err(fault)) => {
                let method = self.auth_method.clone().unwrap_or_default();
                let offered = self.offered();
                self.fail(
                    format!("the agent refused to sign in with `{method}`: {}. {offered}", fault.full_message()),
                    out,
                );
            }
            (Some(opening), Err(fault)) => {
                let message = format!("signing in failed: {}. {}", fault.full_message(), self.offered());
                out.events
                    .push(RuntimeEvent::NotOpened { ticket: opening.ticket, error: RuntimeError { message, ..fault } });
            }
        }
    }

    /// Handles an agent that opens nothing before a sign-in. The user is asked if a session is open; otherwise the
    /// error names the ways to sign in.
    pub(super) fn sign_in(&mut self, frame: &Bytes, opening: PendingOpen, fault: RuntimeError, out: &mut Outbox) {
        let mut env = self.methods.iter().filter(|method| method.kind.as_deref() == Some("env_var"));
        if let (false, Some(only), None) = (self.authenticated, env.next(), env.next()) {
            // The variable is set or not: there is nothing to ask, so it is tried.
            let method = only.id.clone();
            return self.authenticate(&method, Some(opening), out);
        }
        let direct = self.methods.iter().filter(|method| method.is_direct());
        let items: Vec<Item> =
            direct.map(|m| Item { id: m.id.clone(), label: m.name.clone(), detail: m.kind.clone() }).collect();
        // The key is not JSON, so no request of the agent has it.
        let key = RequestKey::unique(format!("sign-in {}", opening.ticket.0));
        if items.is_empty() || self.sessions.is_empty() || self.asks.len() >= ASKS_MAX {
            return self.not_signed_in(opening, fault, out);
        }
        let params = jsonrpc::to_raw(&serde_json::json!({ "authMethods": self.methods }));
        let mut ask = question(&key, RequestType::Pick, "The agent requires a sign-in", &params, frame.clone());
        ask.subject = RequestSubject::Text(format!("{}\nTo open a session in {}", fault.full_message(), opening.cwd));
        (ask.message, ask.items) = (Some(fault.full_message()), items);
        self.asks.insert(key, PendingRequest::SignIn(opening));
        out.events.push(RuntimeEvent::Asked { native: None, ask: Box::new(ask) });
    }

    /// Signs in by the method that the user picked.
    pub(super) fn sign_in_by(&mut self, opening: PendingOpen, decision: &Decision, out: &mut Outbox) {
        let picked = if let Decision::Ids(ids) = decision { ids.first() } else { None };
        match picked.filter(|id| self.has_method(id)) {
            Some(method) => self.authenticate(method, Some(opening), out),
            None => self.not_signed_in(opening, RuntimeError::new(AUTH_REQUIRED, "the sign-in was not completed"), out),
        }
    }

    fn not_signed_in(&mut self, opening: PendingOpen, fault: RuntimeError, out: &mut Outbox) {
        let message = self.sign_in_message(&fault);
        let data = fault.data.unwrap_or_else(|| jsonrpc::to_raw(&serde_json::json!({ "authMethods": self.methods })));
        let error = RuntimeError { code: fault.code, message, data: Some(data) };
        out.events.push(RuntimeEvent::NotOpened { ticket: opening.ticket, error });
    }

    /// Returns whether the agent has this method to sign in, without a terminal.
    pub(super) fn has_method(&self, id: &str) -> bool {
        self.methods.iter().any(|method| method.is_direct() && method.id == id)
    }

    /// Returns the error message for a required sign-in, with the reason and the ways to sign in.
    pub(super) fn sign_in_message(&self, fault: &RuntimeError) -> String {
        format!("the agent requires a sign-in: {}. {}", fault.full_message().trim_end_matches('.'), self.offered())
    }

    /// Lists the agent's ways to sign in, as text.
    pub(super) fn offered(&self) -> String {
        if self.methods.is_empty() {
            return "The agent offers no way to sign in here: pass it its key (`plexus run .. --pass-env NAME`, or \
                    `pass_env` in the configuration), or sign in with its own command in a terminal."
                .into();
        }
        let named = |m: &AuthMethod| match m.kind.as_deref() {
            Some("terminal") => format!("`{}` ({}, in a terminal)", m.id, m.name),
            _ => format!("`{}` ({})", m.id, m.name),
        };
        let list: Vec<String> = self.methods.iter().map(named).collect();
        let mut vars: Vec<&str> = Vec::new();
        for var in self.methods.iter().flat_map(|method| &method.vars) {
            if !vars.contains(&var.name.as_str()) {
                vars.push(&var.name);
            }
        }
        let fix = match vars.first() {
            Some(first) => {
                // There is no colon after a name, because a value after a colon would be masked.
                format!(" It reads {}; set one and pass it on with `--pass-env {first}` (`pass_env`).", vars.join(", "))
            }
            None if self.passed.is_empty() => " Or sign in once with the agent's own command, in a terminal.".into(),
            None => format!(
                " It gets {} of the environment that it is started from: set its key there and start it again, or sign in once \
                 with the agent's own command, in a terminal.",
                self.passed.join(", ")
            ),
        };
        format!("Choose with `--auth-method` (`auth_method` of the runtime) one of: {}.{fix}", list.join(", "))
    }
}
