//! Runtimes and the agents that can be started.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::KnownItems;
use crate::schema::JsonObject;
use crate::{RestartPolicy, RuntimeId, RuntimeInfo, Serve, Timestamp};

/// Runtimes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Runtimes)]
pub struct RuntimeList {
    /// The runtimes that the caller may see.
    #[schema(value_type = Vec<RuntimeInfo>)]
    pub runtimes: KnownItems<Arc<RuntimeInfo>>,
}

/// A runtime to start: a `preset`, or a `dialect` with a `command` or an endpoint to `connect` to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRuntime {
    /// A preset's name, in place of `dialect` and `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// The runtime's dialect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// The program and its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1)]
    pub command: Option<Vec<String>>,
    /// An endpoint: `ws://…`, `unix:…`, `http://…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1)]
    pub connect: Option<String>,
    /// The folder to run in, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, pattern = "^/")]
    pub cwd: Option<PathBuf>,
    /// Variables to set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables to pass through from the gateway's own environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// The runtime's name; made from the program's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<RuntimeId>,
    /// `never`, `on-failure` or `always`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartPolicy>,
    /// The ACP authentication method to use without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_method: Option<String>,
    /// `_meta` to send with every ACP `session/new`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<JsonObject>)]
    pub session_meta: Option<Box<RawValue>>,
    /// `true` if a program outlives the gateway; true if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlive: Option<bool>,
    /// `true` if its agents get the tools to draw surfaces; true if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<bool>,
    /// The password or token of an endpoint. It is never returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The address at which a Gemini UI accepts prompts, besides its mirror.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The client tools that the gateway offers an ACP agent: `{fs, terminal}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serve: Option<Serve>,
}

/// An agent that has a preset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KnownAgent {
    /// The name of its preset.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// The agent's dialect.
    pub dialect: String,
    /// `true` if its program was found.
    pub installed: bool,
    /// The path at which its program was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The command that installs the agent; absent for a built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// The variable of the gateway's environment with the agent's credentials. Without one the agent uses its own login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The runtime that runs the agent, if one is ready or starting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_id: Option<RuntimeId>,
    /// The program and its arguments. Not on the wire.
    #[serde(skip)]
    pub command: Vec<String>,
}

/// The agents, in the order of the presets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agents {
    /// The agents.
    #[schema(value_type = Vec<KnownAgent>)]
    pub agents: KnownItems<KnownAgent>,
}

/// The latest stderr lines of a runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Logs {
    #[doc = concat!("The lines, oldest first.")]
    #[schema(value_type = Vec<StderrLine>)]
    pub lines: KnownItems<StderrLine>,
}

/// The writer of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    /// The runtime, to its stderr.
    Runtime,
    /// The gateway: starts, ends, lost connections.
    Gateway,
    /// A value of a newer gateway; never sent.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// A line of the runtime's stderr, or of the gateway about the runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LogLine)]
pub struct StderrLine {
    /// The time when the gateway read the line.
    pub at: Timestamp,
    /// The line, safe to display.
    pub text: String,
    /// The writer of the line.
    pub by: LogSource,
}
