//! Updates of the projects of sessions.

use std::time::Duration;

use super::*;
use crate::projects::Projects;
use plexus_protocol::{Project, SessionState};

/// Maximum time that a list waits for projects to be read; after it the list has the last known ones, and clients are notified of changes
/// later.
const LIST_WAIT: Duration = Duration::from_millis(500);

impl Directory {
    /// Updates the projects of all sessions, or of one, unless they were just read. Waits a short time for the result; a later result is
    /// published as a change of the session.
    pub async fn renew_projects(&self, one: Option<&SessionId>) {
        let projects = &self.shared.registry.projects;
        let mut stale: BTreeMap<String, Vec<SessionHandle>> = BTreeMap::new();
        match one {
            Some(id) => {
                let handle = self.shared.registry.sessions.get(id).map(|handle| handle.clone());
                handle.into_iter().for_each(|handle| add_stale(projects, &handle, &mut stale));
            }
            None => {
                if !projects.list_is_due() {
                    return;
                }
                self.shared.registry.sessions.iter().for_each(|handle| add_stale(projects, &handle, &mut stale));
            }
        }
        if stale.is_empty() {
            return;
        }
        let projects = projects.clone();
        // Spawned, so that it continues after the wait, and if the client disconnects.
        let work = tokio::spawn(async move {
            let Some(read) = projects.read(stale.keys().cloned().collect()).await else { return };
            let mut replies = Vec::new();
            for (project, handles) in read.into_iter().zip(stale.into_values()) {
                for handle in handles {
                    replies.extend(send_project(&handle, &project).await);
                }
            }
            for reply in replies {
                // The session ended meanwhile, and keeps its project.
                let _ = reply.await;
            }
        });
        let _ = tokio::time::timeout(LIST_WAIT, work).await;
    }
}

/// Adds a session whose folder has to be read. A session that has ended keeps its project.
fn add_stale(projects: &Projects, handle: &SessionHandle, stale: &mut BTreeMap<String, Vec<SessionHandle>>) {
    let view = handle.view.load();
    let cwd = &view.info.cwd;
    let stale_now = match view.info.state {
        SessionState::Exited => view.info.project.is_none() && projects.cached(cwd).is_none(),
        _ => !projects.is_fresh(cwd),
    };
    if stale_now {
        stale.entry(view.info.cwd.clone()).or_default().push(handle.clone());
    }
}

/// Sends a session's task its project, if that changed; returns the receiver of its reply.
async fn send_project(handle: &SessionHandle, project: &Project) -> Option<oneshot::Receiver<()>> {
    if handle.view.load().info.project.as_ref() == Some(project) {
        return None;
    }
    let (reply, received) = oneshot::channel();
    let command = SessionCommand::Project { project: project.clone(), reply };
    handle.commands.as_ref()?.send(command).await.ok()?;
    Some(received)
}
