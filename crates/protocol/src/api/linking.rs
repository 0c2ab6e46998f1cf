//! Agents with terminals of their own, and what linking changes in their settings.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::KnownItems;
use crate::Timestamp;

/// Whether an agent is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkStanding {
    /// It needs no linking.
    NotNeeded,
    /// It is not linked.
    NotLinked,
    /// It is linked.
    Linked,
    /// Another program or version linked it.
    OutOfDate,
    /// Only a part of what linking wrote is there.
    Damaged,
    /// Its files cannot be read, or are not understood.
    #[serde(other)]
    Unknown,
}

/// A file that linking or unlinking changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkFile {
    /// Where it is.
    #[schema(value_type = String)]
    pub path: PathBuf,
    /// The file that it leads to, if it is a symbolic link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub leads_to: Option<PathBuf>,
    /// What is done to it: `add`, `edit` or `delete`.
    pub action: String,
    /// The change as a unified diff.
    pub diff: String,
    /// Of a removal: whether the file is afterwards byte for byte as it was before linking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<bool>,
    /// Where a copy of a file that is deleted is left, since somebody edited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub copy: Option<PathBuf>,
}

/// What can be done to an agent's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkOffer {
    /// The files that change.
    pub files: Vec<LinkFile>,
    /// Names exactly these changes: they are made by giving it back.
    pub digest: String,
}

/// An agent with a terminal of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentLink {
    /// Its name for `plexus link`.
    pub agent: String,
    /// Its name for people.
    pub title: String,
    /// Its program.
    pub program: String,
    /// Where the program is; absent if it is not on PATH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub path: Option<PathBuf>,
    /// What the program prints as its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether it is linked.
    pub state: LinkStanding,
    /// What is wrong, or what to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Why its version is not linked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// Other settings that keep it from being seen.
    pub notices: Vec<String>,
    /// What is seen of its sessions.
    pub seen: String,
    /// When its terminals were last heard of; absent if they were not since the gateway started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
    /// What linking changes; absent if it cannot be linked, or is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkOffer>,
    /// What unlinking changes; absent if there is nothing of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlink: Option<LinkOffer>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkAction {
    /// Link the agent.
    Link,
    /// Take out what linking wrote.
    Unlink,
}

/// A change that somebody has seen and wants made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LinkWish)]
pub struct LinkChange {
    /// What is to be done.
    pub action: LinkAction,
    /// The digest of the changes as they were shown.
    pub digest: String,
}

/// The agents with terminals of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentLinks {
    #[doc = concat!("The agents, by name.")]
    #[schema(value_type = Vec<AgentLink>)]
    pub agents: KnownItems<AgentLink>,
}
