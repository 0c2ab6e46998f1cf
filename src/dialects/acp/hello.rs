//! The handshake, and signing in.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::jsonrpc::object;
use super::super::{Fault, Outbox, Said};
use super::open::Wish;
use super::{Acp, Pending, Phase};

/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;
/// ACP: the agent wants `authenticate` first.
pub(super) const AUTH_REQUIRED: i64 = -32000;

/// A way to sign in.
#[derive(Serialize, Deserialize)]
pub(super) struct AuthMethod {
    id: String,
    name: String,
    /// `env_var`, `terminal`; none for the plain sort.
    sort: Option<String>,
}

/// What the agent says that it can do.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Can {
    /// `session/load`: opens a conversation again and replays its past.
    pub(super) load: bool,
    /// `session/resume`: opens a conversation again, without its past.
    pub(super) resume: bool,
}

impl Can {
    fn read(capabilities: &RawValue) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Agent<'a> {
            #[serde(borrow)]
            load_session: Option<&'a RawValue>,
            #[serde(borrow)]
            session_capabilities: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Session<'a> {
            #[serde(borrow)]
            resume: Option<&'a RawValue>,
        }
        // Objects in the schema (`{}`), booleans in some agents.
        let has =
            |member: Option<&RawValue>| member.is_some_and(|raw| raw.get() == "true" || raw.get().starts_with('{'));
        let Some(agent) = object::<Agent<'_>>(capabilities) else { return Self::default() };
        let session = agent.session_capabilities.and_then(object::<Session<'_>>);
        Self { load: has(agent.load_session), resume: session.is_some_and(|session| has(session.resume)) }
    }
}

impl Acp {
    pub(super) fn hello(&mut self, out: &mut Outbox) {
        let params = serde_json::json!({
            "protocolVersion": VERSION,
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
            "clientInfo": { "name": "plexus", "version": env!("CARGO_PKG_VERSION") },
        });
        self.request(Pending::Initialize, "initialize", &params, out);
    }

    pub(super) fn initialized(&mut self, reply: Result<&RawValue, Fault>, out: &mut Outbox) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hello<'a> {
            #[serde(borrow)]
            protocol_version: Option<&'a RawValue>,
            #[serde(borrow)]
            auth_methods: Option<&'a RawValue>,
            #[serde(borrow)]
            agent_info: Option<&'a RawValue>,
            #[serde(borrow)]
            agent_capabilities: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Info {
            name: String,
            version: Option<String>,
        }
        #[derive(Deserialize)]
        struct Method {
            id: String,
            name: Option<String>,
            #[serde(rename = "type")]
            sort: Option<String>,
        }
        let result = match reply {
            Ok(result) => result,
            Err(fault) => {
                return self.fail(format!("the agent refused the handshake: {} ({})", fault.message, fault.code), out);
            }
        };
        let Some(hello) = object::<Hello<'_>>(result) else {
            return self.fail("the agent's reply to `initialize` is no ACP".into(), out);
        };
        let version = hello.protocol_version.map_or("none", RawValue::get);
        if version != "1" {
            return self.fail(format!("the agent speaks ACP version {version}; the gateway speaks version 1"), out);
        }
        self.agent = hello.agent_info.and_then(object::<Info>).map(|info| match info.version {
            Some(version) => format!("{} {version}", info.name),
            None => info.name,
        });
        self.can = hello.agent_capabilities.map(Can::read).unwrap_or_default();
        let methods = hello.auth_methods.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
        self.methods = methods
            .into_iter()
            .flatten()
            .filter_map(object::<Method>)
            .map(|m| AuthMethod { name: m.name.unwrap_or_else(|| m.id.clone()), id: m.id, sort: m.sort })
            .collect();
        // A method that the agent does not list is not tried: an agent that is signed in already may list none. If it
        // does want a sign-in, opening a session says so, and names the methods.
        let wanted = self
            .auth_method
            .clone()
            .filter(|wanted| self.methods.iter().any(|m| m.id == *wanted && m.sort.as_deref() != Some("terminal")));
        match wanted {
            Some(method) => self.authenticate(&method, None, out),
            None => self.ready(out),
        }
    }

    fn fail(&mut self, message: String, out: &mut Outbox) {
        self.phase = Phase::Failed;
        out.said.push(Said::Failed { message });
    }

    fn ready(&mut self, out: &mut Outbox) {
        self.phase = Phase::Ready;
        out.said.push(Said::Ready { agent: self.agent.clone() });
    }

    fn authenticate(&mut self, method: &str, then: Option<Wish>, out: &mut Outbox) {
        let params = serde_json::json!({ "methodId": method });
        self.request(Pending::Authenticate { then }, "authenticate", &params, out);
    }

    pub(super) fn signed_in(&mut self, then: Option<Wish>, reply: Result<&RawValue, Fault>, out: &mut Outbox) {
        match (then, reply) {
            (then, Ok(_)) => {
                self.authenticated = true;
                match then {
                    Some(wish) => self.open_session(wish, out),
                    None => self.ready(out),
                }
            }
            (None, Err(fault)) => {
                let method = self.auth_method.clone().unwrap_or_default();
                let offered = self.offered();
                self.fail(format!("the agent refused to sign in by `{method}`: {}. {offered}", fault.message), out);
            }
            (Some(wish), Err(fault)) => {
                let message = format!("signing in failed: {}. {}", fault.message, self.offered());
                out.said.push(Said::NotOpened { ticket: wish.ticket, error: Fault { message, ..fault } });
            }
        }
    }

    /// The agent opens nothing before somebody signs in.
    pub(super) fn sign_in(&mut self, wish: Wish, fault: Fault, out: &mut Outbox) {
        let mut env = self.methods.iter().filter(|method| method.sort.as_deref() == Some("env_var"));
        if let (false, Some(only), None) = (self.authenticated, env.next(), env.next()) {
            // The variable is set or it is not: nothing to ask a person, so try it.
            let method = only.id.clone();
            return self.authenticate(&method, Some(wish), out);
        }
        let message = format!("the agent wants a sign-in: {}. {}", fault.message, self.offered());
        out.said.push(Said::NotOpened { ticket: wish.ticket, error: Fault { message, ..fault } });
    }

    /// The ways to sign in that the agent offers, for a person to read.
    pub(super) fn offered(&self) -> String {
        if self.methods.is_empty() {
            return "The agent offers no way to sign in: start it once in a terminal and sign in there.".into();
        }
        let named = |m: &AuthMethod| match m.sort.as_deref() {
            Some("terminal") => format!("`{}` ({}, in a terminal)", m.id, m.name),
            _ => format!("`{}` ({})", m.id, m.name),
        };
        let list: Vec<String> = self.methods.iter().map(named).collect();
        format!("Set `auth_method` of the runtime to one of: {}.", list.join(", "))
    }
}
