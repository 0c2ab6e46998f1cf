//! The MCP servers and skills of an agent.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::KnownItems;

/// An MCP server of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = McpServer)]
pub struct AgentMcpServer {
    #[doc = concat!("The agent's name of the server.")]
    pub id: String,
    #[doc = concat!("The connection between agent and server.")]
    pub transport: McpTransport,
    #[doc = concat!("The configuration that has the server.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<McpSource>,
    #[doc = concat!("`true` unless the server is switched off.")]
    pub enabled: bool,
    #[doc = concat!("The state of the server.")]
    pub state: McpState,
    /// The number of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<u64>,
    #[doc = concat!("The last error of the server.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    #[doc = concat!("The time of the last connection, as the agent writes it.")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_connected_at: Option<String>,
}

/// The connection of an agent to an MCP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum McpTransport {
    #[doc = concat!("The agent uses the server's standard input and output.")]
    #[default]
    Stdio,
    #[doc = concat!("The agent connects over HTTP.")]
    Http,
}

/// The place where an MCP server is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum McpSource {
    #[doc = concat!("In the project.")]
    Project,
    #[doc = concat!("For all projects.")]
    Global,
}

/// The state of an MCP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum McpState {
    #[doc = concat!("The agent connects to the server.")]
    #[default]
    Connecting,
    #[doc = concat!("The server is switched off.")]
    Disabled,
    #[doc = concat!("The agent can use the server.")]
    Ready,
    #[doc = concat!("The connection failed.")]
    Error,
}

impl McpTransport {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

impl McpState {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Disabled => "disabled",
            Self::Ready => "ready",
            Self::Error => "error",
        }
    }
}

/// A skill of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Skill {
    #[doc = concat!("The agent's identifier of the skill.")]
    pub id: String,
    #[doc = concat!("The name of the skill.")]
    pub name: String,
    #[doc = concat!("The description of the skill.")]
    pub description: String,
    #[doc = concat!("The file of the skill.")]
    pub path: String,
    #[doc = concat!("The folder of the skill.")]
    pub dir: String,
    #[doc = concat!("The scope of the skill.")]
    pub scope: SkillScope,
    /// The time when the skill's file last changed, in milliseconds since the Unix epoch; 0 if unknown.
    pub mtime_ms: u64,
}

/// The scope of a skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SkillScope {
    #[doc = concat!("All projects of the user.")]
    #[default]
    User,
    #[doc = concat!("One project.")]
    Repo,
}

/// A skill that could not be read, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SkillError {
    #[doc = concat!("The file of the skill.")]
    pub path: String,
    #[doc = concat!("The reason.")]
    pub message: String,
}

/// The MCP servers of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpServers {
    #[doc = concat!("The servers, in the agent's order.")]
    #[schema(value_type = Vec<AgentMcpServer>)]
    pub servers: KnownItems<AgentMcpServer>,
    /// `true` if there are more.
    pub truncated: bool,
}

/// The skills of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Skills {
    #[doc = concat!("The skills, in the agent's order.")]
    #[schema(value_type = Vec<Skill>)]
    pub skills: KnownItems<Skill>,
    #[doc = concat!("The skills that could not be read.")]
    #[schema(value_type = Vec<SkillError>)]
    pub errors: KnownItems<SkillError>,
    /// `true` if there are more.
    pub truncated: bool,
}
