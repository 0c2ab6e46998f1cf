//! The folders of a session, and the process that it runs in.

use super::*;
use plexus_risk::SessionFolders;

impl SessionCore {
    pub(super) fn folders(&self) -> SessionFolders<'_> {
        SessionFolders {
            session: &self.cwd,
            resolved: self.resolved_cwd.as_deref(),
            process: self.process_cwd.as_deref(),
        }
    }
}

impl SessionStateMachine {
    /// Sets the path of the session's folder without symbolic links.
    pub(crate) fn set_resolved_cwd(&mut self, resolved: Option<String>) {
        self.core.resolved_cwd = resolved.filter(|resolved| *resolved != self.core.cwd);
    }

    /// Sets the runtime process that the session runs in, and the folder of its commands where that is the process's own.
    pub(crate) fn set_process(&mut self, instance: Option<String>, command_folder: Option<String>) {
        self.set_instance(instance);
        self.core.process_cwd = command_folder;
    }

    /// Sets the name of the process that continues with the session.
    pub(crate) fn set_instance(&mut self, instance: Option<String>) {
        self.process_changed |= self.core.instance != instance;
        self.core.instance = instance;
    }
}
