//! The tools of the gateway's own MCP server, which an agent may call without asking the user. Agents that have an
//! allow list get it when a session is opened; for the others the gateway answers the question here, if the agent
//! itself names the server.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::jsonrpc::to_raw;
use super::super::{EventDraft, McpServer};
use super::Acp;
use super::quirks::{self, AllowedTools, ServerField};
use super::tool_calls::ToolCallState;
use plexus_protocol::{Choice, Decision, Kind, NativeId, Offer};

/// The rule by which a question was answered, for the log.
const RULE: &str = "the gateway's own tools need no approval";

impl Acp {
    fn own_servers(&self, native: &NativeId) -> impl Iterator<Item = &str> {
        let servers = self.sessions.get(native).map(|session| &session.mcp_servers);
        servers.into_iter().flatten().filter_map(|server| match server {
            McpServer::Own { name, .. } => Some(name.as_str()),
            McpServer::Given(_) => None,
        })
    }

    /// Returns the response to a permission request about a tool of the session's own server, with the event that
    /// records it; `None` for every other request.
    pub(super) fn own_tool_allowed(
        &self,
        native: &NativeId,
        (update, tool): (&ToolCallState, Option<&str>),
        options: &[Offer],
    ) -> Option<(Decision, Option<EventDraft>)> {
        let field = quirks::server_field(self.agent.as_deref())?;
        let is_own = match field {
            ServerField::MetaServerId => {
                let announced = tool.and_then(|id| self.known.get(native, id)).and_then(|call| call.server.as_deref());
                let server = update.server.as_deref().or(announced)?;
                self.own_servers(native).any(|own| own == server)
            }
            ServerField::CallIdPrefix { option } => {
                let id = tool.filter(|_| options.iter().any(|offer| offer.id == option))?;
                let tool_name =
                    |own: &str| id.strip_prefix("mcp_").and_then(|id| id.strip_prefix(own)?.strip_prefix('_'));
                self.own_servers(native).any(|own| tool_name(own).is_some())
            }
        };
        let offer = options.iter().find(|offer| offer.kind == Choice::AllowOnce).filter(|_| is_own)?;
        let decision = Decision::Option { id: offer.id.clone(), kind: offer.kind, reason: None };
        let recorded = tool.map(|id| {
            let body = json!({
                "sessionUpdate": "tool_call_update", "toolCallId": id,
                "_meta": { "plexus": { "allowed": RULE, "option_id": offer.id } },
            });
            EventDraft::new(Kind::ToolCallUpdate, &body)
        });
        Some((decision, recorded))
    }

    /// Returns the `_meta` for opening a session, with the tools of the gateway's own servers among the allowed ones.
    pub(super) fn meta_allowing(&self, servers: &[McpServer]) -> Option<Box<RawValue>> {
        let given = self.session_meta.clone();
        let Some(AllowedTools { path, prefix }) = quirks::allowed_tools(self.agent.as_deref()) else { return given };
        let tools = servers.iter().filter_map(|server| match server {
            // A server's name alone allows all its tools.
            McpServer::Own { name, .. } => Some(format!("{prefix}{name}")),
            McpServer::Given(_) => None,
        });
        let tools: Vec<Value> = tools.map(Value::String).collect();
        if tools.is_empty() {
            return given;
        }
        let mut meta: Value = given.as_ref().and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
        let mut at = &mut meta;
        for member in path {
            if !at.is_object() {
                *at = json!({});
            }
            at = &mut at[*member];
        }
        match at {
            Value::Array(allowed) => allowed.extend(tools),
            absent => *absent = Value::Array(tools),
        }
        Some(to_raw(&meta))
    }
}
