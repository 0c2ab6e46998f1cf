//! The choices of the form's fields: agents, folders, settings, conversations. Pure.

use plexus_protocol::api::folders::{FolderEntry, RecentFolder};
use plexus_protocol::api::runtimes::KnownAgent;
use ratatui_textarea::TextArea;

use super::super::agent_lists::PastConversation;
use super::super::input;
use super::super::settings::SettingPick;
use super::super::view_model::{line, optional_line};

/// Maximum number of folders, commands and agents that are read from a reply.
pub(super) const LIST_MAX: usize = 500;

/// The kind of an agent in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentChoiceKind {
    /// A runtime, and whether it is ready.
    Runtime(bool),
    /// A preset whose program is installed and can be started.
    Installed,
    /// A preset whose program is not installed.
    Missing,
    /// A program that the user names.
    Program,
}

/// An agent of the list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentChoice {
    /// The name of the runtime or of the preset.
    pub(crate) name: String,
    pub(crate) kind: AgentChoiceKind,
    pub(crate) about: String,
    /// `true` if the agent works in a folder of its own.
    pub(super) endpoint: bool,
    /// `true` if the agent lists conversations that it can resume.
    pub(super) lists: bool,
}

impl AgentChoice {
    pub(super) fn is_usable(&self) -> bool {
        !matches!(self.kind, AgentChoiceKind::Runtime(false) | AgentChoiceKind::Missing)
    }

    /// Returns whether earlier conversations can be listed. An agent that is not running has to be started before its abilities are known.
    pub(crate) fn offers_earlier(&self) -> bool {
        self.lists || self.kind == AgentChoiceKind::Installed
    }

    /// Makes the choice of a custom program.
    pub(super) fn program() -> Self {
        Self {
            name: "another program".to_owned(),
            kind: AgentChoiceKind::Program,
            about: "by its command line".to_owned(),
            endpoint: false,
            lists: false,
        }
    }
}

/// A preset, as the gateway reports it.
#[derive(Clone, Debug)]
pub(super) struct PresetItem {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) installed: bool,
    pub(super) install: String,
    pub(super) key: String,
    pub(super) runtime: String,
}

impl PresetItem {
    pub(super) fn new(agent: &KnownAgent) -> Self {
        Self {
            name: agent.name.clone(),
            about: line(&agent.about),
            installed: agent.installed,
            install: optional_line(agent.install.as_deref()),
            key: optional_line(agent.key.as_deref()),
            runtime: agent.runtime_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        }
    }
}

/// A suggested folder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FolderItem {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) git: bool,
}

impl FolderItem {
    pub(super) fn new(folder: &FolderEntry) -> Self {
        Self { name: folder.name.clone(), path: folder.path.clone(), git: folder.git }
    }

    pub(super) fn recent(folder: &RecentFolder) -> Self {
        Self { name: folder.name.clone(), path: folder.path.clone(), git: folder.git }
    }
}

/// A setting to choose: one of the choices, or the agent's own.
#[derive(Clone, Debug)]
pub(crate) struct SettingField {
    pub(crate) choices: Vec<SettingPick>,
    /// The index of the chosen one; `None` for the agent's own.
    pub(crate) at: Option<usize>,
    pub(crate) filter: TextArea<'static>,
}

impl SettingField {
    pub(super) fn new(choices: Vec<SettingPick>) -> Self {
        Self { choices, at: None, filter: input::area("") }
    }

    /// Returns the entries that match the typed text.
    pub(crate) fn visible(&self) -> Vec<Option<usize>> {
        let text = terms(&self.filter);
        let default = text.is_empty().then_some(None);
        let fits = |pick: &SettingPick| {
            let name = pick.name.to_lowercase();
            text.iter().all(|word| name.contains(word.as_str()))
        };
        let all = self.choices.iter().enumerate().filter(|(_, pick)| fits(pick)).map(|(n, _)| Some(n));
        default.into_iter().chain(all).collect()
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.at.and_then(|at| self.choices.get(at)).map(|pick| pick.name.as_str())
    }
}

/// The conversations of an agent that can be resumed.
#[derive(Clone, Debug)]
pub(crate) struct EarlierList {
    /// The runtime that lists them.
    pub(super) runtime: String,
    pub(super) all: Vec<PastConversation>,
    /// A notice in place of the list.
    pub(crate) text: String,
    pub(crate) filter: TextArea<'static>,
    pub(crate) at: usize,
}

impl EarlierList {
    pub(super) fn new() -> Self {
        Self { runtime: String::new(), all: Vec::new(), text: String::new(), filter: input::area(""), at: 0 }
    }

    /// Returns the conversations that match the filter.
    pub(crate) fn visible(&self) -> Vec<&PastConversation> {
        let text = terms(&self.filter);
        let fits = |past: &&PastConversation| {
            let all = format!("{} {}", past.name, past.details).to_lowercase();
            text.iter().all(|word| all.contains(word.as_str()))
        };
        self.all.iter().filter(fits).collect()
    }
}

/// The words of a filter, in lower case.
pub(super) fn terms(area: &TextArea<'_>) -> Vec<String> {
    area.lines().iter().flat_map(|line| line.split_whitespace()).map(str::to_lowercase).collect()
}
