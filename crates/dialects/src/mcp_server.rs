//! MCP servers for the agent of a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Time that OpenCode waits for a call of a tool, in milliseconds: longer than any call takes.
const OPENCODE_TIMEOUT_MS: u32 = 120_000;

/// An MCP server for the agent of one session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpServer {
    /// The gateway's own server: a program that the agent starts and uses on stdio. Its tools need no approval by the
    /// agent, since the gateway itself asks the user where approval is required.
    Own {
        /// The name, which differs from that of any server in the agent's own configuration.
        name: String,
        /// The program, absolute.
        command: String,
        /// The arguments; none is secret.
        args: Vec<String>,
        /// The variables; none is secret.
        env: BTreeMap<String, String>,
    },
    /// A server that a client named, in ACP's form.
    Given(Box<RawValue>),
}

impl McpServer {
    /// Returns the server in ACP's form (`McpServer` of the schema): `{name, command, args, env: [{name, value}]}`.
    pub(crate) fn acp(&self) -> Value {
        match self {
            Self::Own { name, command, args, env } => {
                let env: Vec<Value> = env.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
                json!({ "name": name, "command": command, "args": args, "env": env })
            }
            Self::Given(server) => serde_json::from_str(server.get()).unwrap_or_default(),
        }
    }

    /// Returns the server as the body of OpenCode's `POST /mcp`; `None` for a server that only ACP can name. OpenCode
    /// has one list of servers for all its sessions, so the gateway checks each call.
    pub(crate) fn opencode(&self) -> Option<Value> {
        let Self::Own { name, command, args, env } = self else { return None };
        let shared = ["--shared", name];
        let command: Vec<&str> = std::iter::once(command).chain(args).map(String::as_str).chain(shared).collect();
        let config = json!({
            "type": "local", "command": command, "environment": env, "enabled": true, "timeout": OPENCODE_TIMEOUT_MS,
        });
        Some(json!({ "name": name, "config": config }))
    }

    /// Returns the name; `None` for a server that a client named.
    pub(crate) fn own_name(&self) -> Option<&str> {
        match self {
            Self::Own { name, .. } => Some(name),
            Self::Given(_) => None,
        }
    }

    /// Returns the server as an entry of `mcp_servers` in Codex's configuration, with its name; `None` for a server
    /// that only ACP can name.
    pub(crate) fn codex(&self) -> Option<(&str, Value)> {
        let Self::Own { name, command, args, env } = self else { return None };
        let entry = json!({ "command": command, "args": args, "env": env, "default_tools_approval_mode": "approve" });
        Some((name, entry))
    }
}
