//! The gateway's own tools for a session.
//!
//! OpenCode has one list of MCP servers for all sessions of a folder. So each session's server has a name of its own,
//! the session is denied the tools of all others (they are not even listed to its model), and the gateway checks each
//! call: sessions that it did not open see the tools too. A server continues to run while the gateway restarts, and
//! ends soon after its session.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{EventDraft, HttpReply, McpServer, Outbox, RuntimeEvent};
use super::{OpenCode, Pending, Stage, done, escape, in_folder, reply_body};
use plexus_protocol::{NativeId, OWN_SERVER_PREFIX};

/// Returns the server with the gateway's own tools. OpenCode gets no other one, because it would use it for all sessions.
pub(super) fn own(servers: Vec<McpServer>) -> Option<McpServer> {
    servers.into_iter().find(|server| server.own_name().is_some())
}

/// Returns OpenCode's permissions for a session: its own tools without a question, and none of other sessions. The last
/// matching rule applies.
fn rules(server: &str) -> [Value; 2] {
    [(format!("{OWN_SERVER_PREFIX}*"), "deny"), (format!("{server}_*"), "allow")]
        .map(|(tools, action)| json!({ "permission": tools, "pattern": "*", "action": action }))
}

/// Returns the body that opens a session.
pub(super) fn new_session(server: Option<&McpServer>) -> Value {
    match server.and_then(McpServer::own_name) {
        Some(name) => json!({ "permission": rules(name) }),
        None => json!({}),
    }
}

/// A server's state, as OpenCode lists it.
#[derive(Deserialize)]
struct Listed {
    status: String,
    error: Option<String>,
}

fn listed(reply: &Result<HttpReply, String>) -> Option<HashMap<String, Listed>> {
    plexus_protocol::object::from_slice(reply_body(reply)?).ok()
}

impl OpenCode {
    fn server_name(&self, native: &NativeId) -> Option<&str> {
        self.sessions.get(native)?.server.as_ref()?.own_name()
    }

    /// Sets the rules of a resumed session, unless it has them.
    pub(super) fn permit(&mut self, native: &NativeId, has: Option<&Value>, out: &mut Outbox) {
        let Some(rules) = self.server_name(native).map(rules) else { return };
        if has.and_then(Value::as_array).is_some_and(|has| has.ends_with(&rules)) {
            return;
        }
        let folder = self.sessions.get(native).and_then(|session| session.folder.as_deref());
        let path = in_folder(&format!("/session/{}", escape(native.as_str())), folder);
        self.change("PATCH", Pending::Permit(native.clone()), path, &json!({ "permission": rules }), out);
    }

    pub(super) fn permitted(&mut self, native: &NativeId, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        if let Err(reason) = done(reply) {
            self.no_tools(native, &reason, out);
        }
    }

    /// Reads the servers of OpenCode: that of a session may have outlived an earlier gateway process, with a call in progress.
    pub(super) fn read_servers(&mut self, native: &NativeId, out: &mut Outbox) {
        if self.server_name(native).is_some() {
            let folder = self.sessions.get(native).and_then(|session| session.folder.as_deref());
            let path = in_folder("/mcp", folder);
            self.get(Pending::Servers(native.clone()), path, out);
        }
    }

    /// Reads the servers again after a connection: OpenCode may be another process than before, without the servers of
    /// open sessions. A call may be in progress only where a session works.
    pub(super) fn servers_again(&mut self, out: &mut Outbox) {
        let open = self.sessions.iter().filter(|(_, session)| session.stage == Stage::Open);
        let open: Vec<_> =
            open.map(|(native, session)| (native.clone(), session.busy || session.prompt.is_some())).collect();
        for (native, is_working) in open {
            match is_working {
                true => self.read_servers(&native, out),
                false => self.add_server(&native, out),
            }
        }
    }

    pub(super) fn servers_read(&mut self, native: &NativeId, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        let Some(name) = self.server_name(native) else { return };
        let is_there = |servers: HashMap<String, Listed>| servers.get(name).is_some_and(|it| it.status == "connected");
        if !listed(reply).is_some_and(is_there) {
            self.add_server(native, out);
        }
    }

    /// Starts a session's server.
    pub(super) fn add_server(&mut self, native: &NativeId, out: &mut Outbox) {
        let Some(session) = self.sessions.get(native) else { return };
        let Some(body) = session.server.as_ref().and_then(McpServer::opencode) else { return };
        let path = in_folder("/mcp", session.folder.as_deref());
        self.post(Pending::AddServer(native.clone()), path, &body, out);
    }

    pub(super) fn server_added(&mut self, native: &NativeId, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        let Some(name) = self.server_name(native) else { return };
        let reason = match (done(reply), listed(reply).and_then(|mut servers| servers.remove(name))) {
            (Err(reason), _) => reason,
            (Ok(()), Some(Listed { status, error })) if status != "connected" => error.unwrap_or(status),
            (Ok(()), _) => return,
        };
        self.no_tools(native, &reason, out);
    }

    fn no_tools(&mut self, native: &NativeId, reason: &str, out: &mut Outbox) {
        let draft =
            EventDraft::error("no_tools", &format!("this session's agent cannot draw surfaces: {reason}"), None);
        self.emit(native, RuntimeEvent::Event { native: Some(native.clone()), draft }, out);
    }
}
