//! The rows of the session list: the sessions of each project below its heading. Pure.

use std::collections::{BTreeSet, HashMap};

use super::view_model::SessionItem;

/// A row of the session list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionRow {
    /// The heading of a project: its folder, its name, and the numbers of its sessions and of their open requests.
    Project {
        key: String,
        name: String,
        sessions: usize,
        waiting: usize,
        folded: bool,
    },
    Session {
        id: String,
    },
}

impl SessionRow {
    /// The key that selects this row: the session's id, or the project's key.
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Project { key, .. } => key,
            Self::Session { id } => id,
        }
    }
}

/// Builds the rows from the sessions in their order: projects that wait for an answer first, the others by their latest news. A single
/// project has no heading. With `unfolded`, folded projects are shown too.
pub(crate) fn session_rows(list: &[&SessionItem], folded: &BTreeSet<String>, unfolded: bool) -> Vec<SessionRow> {
    let mut indexes: HashMap<&str, usize> = HashMap::new();
    let mut projects: Vec<(&str, Vec<&SessionItem>)> = Vec::new();
    for session in list {
        let at = *indexes.entry(&session.project_root).or_insert_with(|| {
            projects.push((&session.project_root, Vec::new()));
            projects.len() - 1
        });
        if let Some((_, sessions)) = projects.get_mut(at) {
            sessions.push(session);
        }
    }
    if projects.len() < 2 {
        return list.iter().map(|session| SessionRow::Session { id: session.id.clone() }).collect();
    }
    let waiting = |sessions: &[&SessionItem]| sessions.iter().map(|session| session.open).sum::<usize>();
    projects.sort_by_key(|(_, sessions)| {
        let newest = sessions.iter().map(|session| session.position).max().unwrap_or(i64::MIN);
        (waiting(sessions) == 0, std::cmp::Reverse(newest))
    });
    let mut rows = Vec::with_capacity(list.len() + projects.len());
    for (root, sessions) in projects {
        let key = format!("project {root}");
        let folded = !unfolded && folded.contains(&key);
        let name = sessions.first().map(|session| session.project.clone()).unwrap_or_default();
        rows.push(SessionRow::Project { key, name, sessions: sessions.len(), waiting: waiting(&sessions), folded });
        if !folded {
            rows.extend(sessions.into_iter().map(|session| SessionRow::Session { id: session.id.clone() }));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, root: &str, open: usize, position: i64) -> SessionItem {
        let (project, project_root) = (root.trim_start_matches('/').to_owned(), root.to_owned());
        SessionItem { id: id.to_owned(), project, project_root, open, position, ..SessionItem::default() }
    }

    fn drawn(rows: &[SessionRow]) -> String {
        let row = |row: &SessionRow| match row {
            SessionRow::Project { name, sessions, waiting, folded, .. } => {
                format!("{}{name} {sessions}/{waiting}", if *folded { "+" } else { "-" })
            }
            SessionRow::Session { id } => id.clone(),
        };
        rows.iter().map(row).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn session_list_groups_by_project_with_waiting_ones_first() {
        let (a, b, c, d) = (item("a", "/x", 0, 9), item("b", "/y", 2, 3), item("c", "/x", 0, 8), item("d", "/z", 0, 5));
        let mut folded = BTreeSet::new();
        let list = [&b, &a, &c, &d];
        assert_eq!(drawn(&session_rows(&list, &folded, false)), "-y 1/2 b -x 2/0 a c -z 1/0 d");
        folded.insert("project /x".to_owned());
        assert_eq!(drawn(&session_rows(&list, &folded, false)), "-y 1/2 b +x 2/0 -z 1/0 d");
        assert_eq!(drawn(&session_rows(&list, &folded, true)), "-y 1/2 b -x 2/0 a c -z 1/0 d");
        assert_eq!(drawn(&session_rows(&[&a, &c], &folded, false)), "a c", "one project needs no heading");
        assert_eq!(drawn(&session_rows(&[], &folded, false)), "");
    }
}
