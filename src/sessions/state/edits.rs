//! Changes of a session itself: by users, and of its project.

use super::*;

/// A user's changes to a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionEdit {
    pub(crate) title: Option<String>,
    pub(crate) archived: Option<bool>,
}

impl SessionStateMachine {
    /// Renames or archives the session, even if it has ended. Adds no event if nothing changes.
    pub(crate) fn edit(&mut self, edit: SessionEdit, by: &Resolver, env: &DecisionEnv<'_>, plan: &mut Plan) {
        let title = edit.title.map(|title| label(&title, NAME_MAX));
        let renamed = title.as_ref().is_some_and(|title| self.core.title.as_ref() != Some(title));
        let archives = edit.archived.is_some_and(|archived| archived != self.core.archived);
        if let Some(title) = title {
            plan.dirty |= !self.core.named;
            self.core.named = true;
            self.core.title = Some(title);
        }
        self.core.archived = edit.archived.unwrap_or(self.core.archived);
        if renamed || archives {
            // An ACP update, so that ACP clients get the title too.
            let body = serde_json::json!({
                "sessionUpdate": "session_info_update", "title": self.core.title,
                "_meta": { "plexus": { "by": by, "archived": self.core.archived } },
            });
            self.log_in(&self.zero_run.clone(), EventDraft::new(Kind::SessionInfoUpdate, &body), env, plan);
            self.touch(env, plan);
        }
    }

    /// Sets the project of a session that is being opened; clients get it with the event of the opening.
    pub(crate) fn set_project(&mut self, project: Option<Project>) {
        if project.is_some() {
            self.core.project = project;
        }
    }

    /// Sets the project after it was read again. If it changed, clients are notified; the conversation did not change.
    pub(crate) fn project_read(&mut self, project: Project, env: &DecisionEnv<'_>, plan: &mut Plan) {
        if self.core.project.as_ref() == Some(&project) {
            return;
        }
        // The title is included, so that clients that get only the latest update have all of the previous one.
        let mut body = serde_json::json!({
            "sessionUpdate": "session_info_update", "_meta": { "plexus": { "project": project } },
        });
        if let Some(title) = &self.core.title {
            body["title"] = title.as_str().into();
        }
        self.core.project = Some(project);
        plan.dirty = true;
        self.log_in(&self.zero_run.clone(), EventDraft::new(Kind::SessionInfoUpdate, &body), env, plan);
    }
}
