//! Detects an agent that acts without asking. Reported once, and only if no user of the gateway has allowed it.

use std::borrow::Cow;

use super::*;
use plexus_risk::{ShellText, classify};

/// Maximum number of tool calls in progress that are watched; further ones are not.
const WATCHED_MAX: usize = 64;
/// Maximum length of a command or title in the report, in bytes.
const DESCRIPTION_MAX: usize = 120;

/// Behavior of the agent, in a session's row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AgentBehavior {
    /// `true` if the agent has asked, or a user has changed its mode.
    #[serde(default)]
    asks: bool,
    /// The action that the agent took without asking.
    #[serde(default)]
    acted: Option<String>,
}

impl AgentBehavior {
    pub(super) fn is_new(&self) -> bool {
        *self == Self::default()
    }
}

/// A tool call in progress, as far as it was reported.
#[derive(Clone, Debug, Default)]
pub(super) struct WatchedCall {
    kind: Option<String>,
    title: Option<String>,
    command: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallUpdate<'a> {
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow)]
    raw_input: Option<&'a RawValue>,
}

/// Returns the command in a tool's input: a line, or a program with its arguments.
fn read_command(input: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Command {
        Line(String),
        Words(Vec<String>),
    }
    #[derive(Deserialize)]
    struct Input {
        #[serde(alias = "cmd")]
        command: Command,
    }
    Some(match serde_json::from_str::<Input>(input.get()).ok()?.command {
        Command::Line(line) => line,
        Command::Words(words) => words.join(" "),
    })
}

impl WatchedCall {
    fn read(&mut self, update: CallUpdate<'_>) {
        let CallUpdate { kind, title, raw_input, .. } = update;
        self.kind = kind.map(Cow::into_owned).or(self.kind.take());
        self.title = title.map(Cow::into_owned).or(self.title.take());
        self.command = raw_input.and_then(read_command).or(self.command.take());
    }

    /// Returns a description of the call's effect, if it does more than read.
    fn effect(self, folder: &str) -> Option<String> {
        let description = match self.kind.as_deref()? {
            "execute" => {
                let line = self.command.or(self.title)?;
                let risk = classify(&ShellText { line: &line, cwd: folder, folder }).risk;
                Some(line).filter(|_| risk > Risk::Low)?
            }
            "edit" | "delete" | "move" => self.title?,
            _ => return None,
        };
        Some(label(&description, DESCRIPTION_MAX))
    }
}

impl SessionStateMachine {
    /// Returns the action that the agent took without asking, if one was reported.
    pub(crate) fn acted_unasked(&self) -> Option<&str> {
        self.core.behavior.acted.as_deref()
    }

    /// Returns whether a user permanently allowed the agent something in this session.
    pub(crate) fn allowed_always(&self) -> bool {
        self.allowed_always
    }

    /// Records whether a user permanently allowed the agent of this session something, here or in another session.
    pub(crate) fn set_allowed_always(&mut self, always: bool) {
        self.allowed_always |= always;
    }

    /// Records that the agent asks, or that its mode was changed: its actions from now on are as agreed.
    pub(super) fn note_agreed(&mut self) {
        self.core.behavior.asks = true;
        self.watched.clear();
    }

    /// Returns whether an action of the agent would be reported.
    fn reports_actions(&self) -> bool {
        let AgentBehavior { asks, acted } = &self.core.behavior;
        let own = self.core.run.as_ref().is_some_and(|run| run.ticket.is_some());
        // At a terminal, users answer where the gateway may not see it.
        !asks && acted.is_none() && !self.allowed_always && own && !in_terminal(&self.origin.dialect)
    }

    /// Watches an event of a tool call; returns the call's effect without asking, once.
    pub(super) fn watch_tool_call(&mut self, draft: &EventDraft) -> Option<String> {
        if !self.reports_actions() {
            return None;
        }
        let ToolCallRef { id, .. } = draft.tool.as_ref()?;
        let update: CallUpdate<'_> = serde_json::from_slice(&draft.body).ok()?;
        let status = update.status.as_deref().map(str::to_owned);
        if !self.watched.contains_key(id) && self.watched.len() >= WATCHED_MAX {
            return None;
        }
        self.watched.entry(id.clone()).or_default().read(update);
        match status.as_deref() {
            Some("completed") => self.note_done(id),
            Some("failed") => {
                self.watched.remove(id);
                None
            }
            _ => None,
        }
    }

    /// Records a watched call as done; returns a description of its effect if that is to be reported. A call that the agent left open in
    /// a run that it completed counts as done: fast-agent reports only the beginning of a command.
    pub(super) fn note_done(&mut self, id: &str) -> Option<String> {
        let done = self.watched.remove(id)?.effect(&self.core.cwd).filter(|_| self.reports_actions())?;
        self.core.behavior.acted = Some(done.clone());
        Some(done)
    }

    /// Records that the agent has another mode, if the event reports it. The mode at the start of a session is not reported by these
    /// events.
    pub(super) fn note_mode(&mut self, draft: &EventDraft) {
        if draft.kind == Kind::CurrentModeUpdate {
            self.note_agreed();
        }
    }

    /// Records that the agent acts without asking, if it does.
    pub(super) fn report_unasked(&mut self, done: Option<String>, env: &DecisionEnv<'_>, plan: &mut Plan) {
        let Some(done) = done else { return };
        let message = format!(
            "it did this without asking: {done}. Its own settings decide what it may do; nothing here can stop it beforehand"
        );
        let body =
            RuntimeStatusBody { message: Some(message), ..RuntimeStatusBody::new(&self.origin.runtime_id, "unasked") };
        self.log(EventDraft::new(Kind::RuntimeStatus, &body), env, plan);
        plan.dirty = true;
    }
}
