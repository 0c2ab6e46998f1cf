//! The folder in which a command runs, as the gateway knows it and as the agent claims it.

use plexus_protocol::{FolderClaim, RequestSubject};

use crate::paths::inside;

/// The folders of a session, as the gateway knows them.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionFolders<'a> {
    /// The folder in which the session was opened; empty if it is unknown.
    pub session: &'a str,
    /// The folder of the session without symbolic links, if that path differs.
    pub resolved: Option<&'a str>,
    /// The folder of the agent's process, if the agent runs its commands there whatever the session's folder is.
    pub process: Option<&'a str>,
}

/// The folder in which the action of a request takes place.
#[derive(Debug, PartialEq, Eq)]
pub struct ActionFolder {
    /// The folder; empty if it is unknown.
    pub cwd: String,
    /// The session's folder, if `cwd` is in it; otherwise empty, because then no path of the action counts as inside the folder.
    pub root: String,
    /// The contradiction, if there is one.
    pub conflict: Option<FolderConflict>,
}

/// A difference between the session's folder and the known or claimed folder of a command.
#[derive(Debug, PartialEq, Eq)]
pub enum FolderConflict {
    /// The agent ignores the session's folder.
    Process,
    /// The command's own field names a folder outside of the session's.
    Outside,
    /// The agent's text names this other folder.
    Stated(String),
}

impl FolderConflict {
    /// Returns the reason for an elevated risk.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Process => "runs in the agent's own folder, not in the session's",
            Self::Outside => "runs outside the session's folder",
            Self::Stated(_) => "the agent names another folder than the session's",
        }
    }

    /// Returns the warning for the user who answers.
    pub const fn warning(&self) -> &'static str {
        match self {
            Self::Process => {
                "this agent runs commands in the folder of its process, not in the session's: check the folder"
            }
            Self::Outside => "runs outside the session's folder: check the folder",
            Self::Stated(_) => {
                "the agent names another folder than the one in which the session works: check which one you mean"
            }
        }
    }
}

/// Returns the folder of a request's action. A claim that equals the known folder adds nothing. A command runs in the
/// folder of its own field, and never in one that a text names.
pub(super) fn action_folder(subject: &RequestSubject, folders: SessionFolders<'_>) -> ActionFolder {
    let own = folders.process.unwrap_or(folders.session);
    let same = |path: &str| {
        let equals = |other: &str| !other.is_empty() && parts(path).eq(parts(other)) && path.starts_with('/');
        equals(own) || folders.process.is_none() && folders.resolved.is_some_and(equals)
    };
    let process = folders.process.is_some_and(|process| !parts(process).eq(parts(folders.session)));
    let root = if process { "" } else { folders.session };
    let at_home = |conflict| ActionFolder { cwd: own.to_owned(), root: root.to_owned(), conflict };
    let process = process.then_some(FolderConflict::Process);
    let RequestSubject::Command { cwd: Some(claim), .. } = subject else { return at_home(process) };
    let named = claim.path();
    let whole = if named.starts_with('/') || own.is_empty() { named.to_owned() } else { format!("{own}/{named}") };
    if same(&whole) {
        return at_home(process);
    }
    match claim {
        FolderClaim::Text(_) => at_home(Some(FolderConflict::Stated(named.to_owned()))),
        FolderClaim::Field(_) => {
            // The target of `..` after a symbolic link differs from its text.
            let plain = !whole.split('/').any(|part| part == "..");
            let roots = [Some(folders.session), folders.resolved].into_iter().flatten();
            let root =
                roots.into_iter().find(|root| plain && inside(&whole, root, root)).unwrap_or_default().to_owned();
            // If the session's folder is unknown, there is nothing to compare.
            let conflict = (root.is_empty() && !own.is_empty()).then_some(FolderConflict::Outside);
            ActionFolder { cwd: whole, root, conflict }
        }
    }
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDERS: SessionFolders<'_> = SessionFolders { session: "/w", resolved: Some("/real/w"), process: None };

    fn at(cwd: Option<FolderClaim>, folders: SessionFolders<'_>) -> ActionFolder {
        action_folder(&RequestSubject::Command { argv: vec!["ls".into()], cwd }, folders)
    }

    fn field(path: &str) -> Option<FolderClaim> {
        Some(FolderClaim::Field(path.into()))
    }

    fn words(path: &str) -> Option<FolderClaim> {
        Some(FolderClaim::Text(path.into()))
    }

    #[test]
    fn folder_is_the_sessions_folder_where_the_agent_says_the_same_or_nothing() {
        let own = ActionFolder { cwd: "/w".into(), root: "/w".into(), conflict: None };
        let same = ["/w", "/w/", "//w/.", ".", "./", "/real/w"];
        let claims = same.iter().flat_map(|path| [field(path), words(path)]);
        for claim in claims.chain([None]) {
            assert_eq!(at(claim.clone(), FOLDERS), own, "{claim:?}");
        }
        assert_eq!(action_folder(&RequestSubject::Plan(String::new()), FOLDERS), own);
    }

    #[test]
    fn folder_is_never_taken_from_words() {
        for other in ["/elsewhere", "/w/sub", "sub", "/w/..", ".."] {
            let conflict = Some(FolderConflict::Stated(other.into()));
            assert_eq!(
                at(words(other), FOLDERS),
                ActionFolder { cwd: "/w".into(), root: "/w".into(), conflict },
                "{other}"
            );
        }
    }

    #[test]
    fn folder_of_a_command_with_a_folder_of_its_own_is_that_folder() {
        for (claim, cwd, root) in [
            ("/w/sub", "/w/sub", "/w"),
            ("sub", "/w/sub", "/w"),
            ("/real/w/sub", "/real/w/sub", "/real/w"),
            ("/elsewhere", "/elsewhere", ""),
            ("/w2", "/w2", ""),
            ("..", "/w/..", ""),
            ("link/..", "/w/link/..", ""),
        ] {
            let conflict = root.is_empty().then_some(FolderConflict::Outside);
            assert_eq!(
                at(field(claim), FOLDERS),
                ActionFolder { cwd: cwd.into(), root: root.into(), conflict },
                "{claim}"
            );
        }
    }

    #[test]
    fn folder_of_an_agent_that_ignores_the_session_is_its_process() {
        let folders = SessionFolders { process: Some("/p"), ..FOLDERS };
        let there = ActionFolder { cwd: "/p".into(), root: String::new(), conflict: Some(FolderConflict::Process) };
        for claim in [None, field("/p"), words("/p/")] {
            assert_eq!(at(claim, folders), there);
        }
        assert_eq!(at(field("sub"), folders).cwd, "/p/sub");
        assert_eq!(at(words("/w"), folders).conflict, Some(FolderConflict::Stated("/w".into())));
        let same = SessionFolders { process: Some("/w/"), ..FOLDERS };
        assert_eq!(at(None, same).conflict, None, "it was started in the session's folder");
    }

    #[test]
    fn folder_without_a_known_folder_has_nothing_to_compare() {
        let unknown = SessionFolders::default();
        assert_eq!(at(field("/x"), unknown), ActionFolder { cwd: "/x".into(), root: String::new(), conflict: None });
        assert_eq!(at(words("/x"), unknown).cwd, "");
    }
}
