//! A short description of a run's current activity, for lists of sessions.

use super::*;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunActivity {
    /// The running tools with their titles, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<(String, String)>,
    /// The agent's own last activity.
    #[serde(default)]
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Phase {
    #[default]
    Working,
    Thinking,
    Writing,
}

impl RunActivity {
    pub(super) fn description(&self) -> &str {
        match (self.tools.last(), self.phase) {
            (Some((_, title)), _) => title,
            (None, Phase::Working) => "working",
            (None, Phase::Thinking) => "thinking",
            (None, Phase::Writing) => "writing",
        }
    }

    /// Applies one event; returns whether the activity changed.
    pub(super) fn update(&mut self, draft: &EventDraft) -> bool {
        #[derive(Deserialize)]
        struct Titled<'a> {
            #[serde(borrow, default)]
            title: Option<std::borrow::Cow<'a, str>>,
        }
        let before = (self.tools.last().cloned(), self.phase);
        match (&draft.tool, draft.kind) {
            (Some(ToolCallRef { id, ended: true, .. }), _) => {
                self.tools.retain(|(other, _)| other != id);
                self.phase = Phase::Working;
            }
            (Some(ToolCallRef { id, .. }), _) => {
                let title = serde_json::from_slice::<Titled<'_>>(&draft.body).ok().and_then(|body| body.title);
                let title = title.filter(|title| !title.trim().is_empty());
                let title = title.map(|title| label(&title, TITLE_MAX));
                match (self.tools.iter().position(|(other, _)| other == id), title) {
                    (Some(index), Some(title)) => self.tools[index].1 = title,
                    (None, title) if self.tools.len() < ACTIVITY_MAX => {
                        self.tools.push((id.clone(), title.unwrap_or_else(|| "working".into())));
                    }
                    _ => {}
                }
            }
            (None, Kind::AgentThoughtChunk) => self.phase = Phase::Thinking,
            (None, Kind::AgentMessageChunk) => self.phase = Phase::Writing,
            _ => {}
        }
        before != (self.tools.last().cloned(), self.phase)
    }
}
