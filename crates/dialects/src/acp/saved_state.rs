//! The state as bytes, for the next gateway. A model list is written once, not once per session.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::models::SessionModels;
use super::{Acp, McpServer, Session};
use plexus_protocol::NativeId;

/// The format in which the state is written.
const FORM: u32 = 2;

/// The oldest readable format, that of release 0.1.0: each session has its own list of models.
const OLDEST: u32 = 1;

/// A list of models: identifiers and names.
type List = Arc<[(String, String)]>;

#[derive(Serialize)]
struct Saved<'a> {
    acp: u32,
    state: &'a Acp,
    sessions: BTreeMap<&'a NativeId, SavedSession<'a>>,
    lists: Vec<&'a [(String, String)]>,
}

#[derive(Serialize)]
struct SavedSession<'a> {
    cwd: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    mcp_servers: &'a [McpServer],
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    option: Option<&'a str>,
    /// The index of its list.
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<usize>,
}

#[derive(Deserialize)]
struct Found {
    acp: u32,
    state: Acp,
    #[serde(default)]
    sessions: HashMap<NativeId, FoundSession>,
    #[serde(default)]
    lists: Vec<List>,
}

#[derive(Deserialize)]
struct FoundSession {
    cwd: String,
    #[serde(default)]
    mcp_servers: Vec<McpServer>,
    current: Option<String>,
    option: Option<String>,
    list: Option<usize>,
}

/// The sessions of format 1.
#[derive(Deserialize)]
struct FoundOld {
    state: OldState,
}

#[derive(Deserialize)]
struct OldState {
    sessions: HashMap<NativeId, OldSession>,
}

#[derive(Deserialize)]
struct OldSession {
    cwd: String,
    models: OldModels,
}

#[derive(Deserialize)]
struct OldModels {
    offered: List,
    current: Option<String>,
    option: Option<String>,
}

pub(super) fn save(acp: &Acp) -> Option<Vec<u8>> {
    let (mut lists, mut indexes) = (Vec::new(), HashMap::new());
    let mut sessions = BTreeMap::new();
    for (native, session) in &acp.sessions {
        let models = &session.models;
        let list = (!models.offered.is_empty()).then(|| {
            *indexes.entry(models.offered.as_ptr()).or_insert_with(|| {
                lists.push(&models.offered[..]);
                lists.len() - 1
            })
        });
        let saved = SavedSession {
            cwd: &session.cwd,
            mcp_servers: &session.mcp_servers,
            current: models.current.as_deref(),
            option: models.option.as_deref(),
            list,
        };
        sessions.insert(native, saved);
    }
    serde_json::to_vec(&Saved { acp: FORM, state: acp, sessions, lists }).ok()
}

pub(super) fn restore(saved: &[u8]) -> Option<Acp> {
    let Found { acp, mut state, sessions, lists } = serde_json::from_slice(saved).ok()?;
    if !(OLDEST..=FORM).contains(&acp) {
        return None;
    }
    for (native, FoundSession { cwd, mcp_servers, current, option, list }) in sessions {
        let offered = list.and_then(|list| lists.get(list)).cloned().unwrap_or_default();
        state.hold(native, cwd, mcp_servers, SessionModels { offered, current, option, modes: false });
    }
    if acp == 1 {
        let old: FoundOld = serde_json::from_slice(saved).ok()?;
        for (native, OldSession { cwd, models: OldModels { offered, current, option } }) in old.state.sessions {
            state.hold(native, cwd, Vec::new(), SessionModels { offered, current, option, modes: false });
        }
    }
    Some(state)
}

impl Acp {
    /// Adds an open session.
    pub(super) fn hold(
        &mut self,
        native: NativeId,
        cwd: String,
        mcp_servers: Vec<McpServer>,
        mut models: SessionModels,
    ) {
        self.lists.share(&mut models);
        self.sessions.insert(native, Session { cwd, mcp_servers, models });
    }
}
