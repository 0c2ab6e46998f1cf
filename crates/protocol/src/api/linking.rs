//! Agents with terminals of their own, and the changes that linking makes in their settings.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::KnownItems;
use crate::Timestamp;

/// The state of an agent's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LinkStanding)]
pub enum LinkStatus {
    /// The agent needs no linking.
    NotNeeded,
    /// The agent is not linked.
    NotLinked,
    /// The agent is linked.
    Linked,
    /// Another program or version linked it.
    OutOfDate,
    /// Only a part of the entries that linking wrote is present.
    Damaged,
    /// The files cannot be read or parsed.
    #[serde(other)]
    Unknown,
}

/// A file that linking or unlinking changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkFile {
    /// The path of the file.
    #[schema(value_type = String)]
    pub path: PathBuf,
    /// The target of the file, if it is a symbolic link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub leads_to: Option<PathBuf>,
    /// The change of the file: `add`, `edit` or `delete`.
    pub action: String,
    /// The change as a unified diff.
    pub diff: String,
    /// For a removal: `true` if the file is afterwards byte for byte as it was before linking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<bool>,
    /// The path of the copy of a deleted file, which is retained because a user edited the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub copy: Option<PathBuf>,
}

/// A possible change of an agent's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkOffer {
    /// The files that change.
    pub files: Vec<LinkFile>,
    /// The identity of exactly these changes; a client sends it back to make them.
    pub digest: String,
}

/// An agent with a terminal of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentLink {
    /// The name for `plexus link`.
    pub agent: String,
    /// The displayed name.
    pub title: String,
    /// The program.
    pub program: String,
    /// The path of the program; absent if it is not on PATH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub path: Option<PathBuf>,
    /// The version that the program prints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The state of the link.
    pub state: LinkStatus,
    /// The problem, or the alternative to linking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The reason why the agent's version is not linked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// Other settings that prevent the gateway from seeing the agent's sessions.
    pub notices: Vec<String>,
    /// The part of the agent's sessions that the gateway sees.
    pub seen: String,
    /// The time of the last message from the agent's terminals; absent if there was none since the gateway started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
    /// The changes that linking makes; absent if the agent cannot be linked, or is linked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkOffer>,
    /// The changes that unlinking makes; absent if the files have no entries of the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlink: Option<LinkOffer>,
}

/// The action on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkAction {
    /// Link the agent.
    Link,
    /// Unlink the agent.
    Unlink,
}

/// A change that a user has seen and confirms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LinkWish)]
pub struct LinkChange {
    /// The action to carry out.
    pub action: LinkAction,
    /// The digest of the displayed changes.
    pub digest: String,
}

/// The agents with terminals of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentLinks {
    #[doc = concat!("The agents, by name.")]
    #[schema(value_type = Vec<AgentLink>)]
    pub agents: KnownItems<AgentLink>,
}
