//! The folder of the form: its suggestions and its completion.

use super::super::input::{self, Key};
use super::super::view_model::RuntimeItem;
use super::{FOLDER_PAUSE, FolderItem, LIST_MAX, NewSessionForm, line_of};
use plexus_client::calls::{self, ApiCall};
use plexus_protocol::api::folders::Folders;

impl NewSessionForm {
    /// The text of the folder field.
    pub(crate) fn folder_text(&self) -> String {
        line_of(&self.folder.text)
    }

    /// The chosen folder: absolute, without a slash at its end; empty for the agent's own.
    pub(crate) fn chosen_folder(&self) -> String {
        let text = self.folder_text();
        let mut folder = text.trim().to_owned();
        if let (Some(home), Some(rest)) = (&self.home, folder.strip_prefix('~'))
            && (rest.is_empty() || rest.starts_with('/'))
        {
            folder = format!("{home}{rest}");
        }
        while folder.len() > 1 && folder.ends_with('/') {
            folder.pop();
        }
        folder
    }

    /// Returns whether this client may see the machine's folders.
    pub(crate) fn can_list_folders(&self) -> bool {
        self.home.is_some()
    }

    /// The suggested folders: those that were used, or those that complete the typed text.
    pub(crate) fn offered(&self) -> Vec<&FolderItem> {
        if !self.folder.typed {
            return self.recent.iter().collect();
        }
        if self.home.is_some() {
            return self.folder.offered.iter().collect();
        }
        let typed = self.folder_text().to_lowercase();
        self.recent.iter().filter(|one| one.path.to_lowercase().contains(&typed)).collect()
    }

    /// Applies the folders for the query of this number.
    pub(crate) fn on_folders(&mut self, query_id: u64, reply: Result<Folders, String>) {
        if query_id != self.folder.query_id {
            return;
        }
        let completes = std::mem::take(&mut self.folder.completes);
        match reply {
            Err(why) => (self.folder.offered, self.folder.notice) = (Vec::new(), why),
            Ok(Folders { folders, more, .. }) => {
                self.folder.offered = folders.iter().take(LIST_MAX).map(FolderItem::new).collect();
                self.folder.notice = match (self.folder.offered.is_empty(), more) {
                    (true, _) => "no folders here".to_owned(),
                    (false, true) => "there are more: type the beginning of a name".to_owned(),
                    (false, false) => String::new(),
                };
                if completes {
                    self.complete();
                }
            }
        }
        self.folder.at = None;
    }

    /// The query for folders that is due: its call and its number.
    pub(crate) fn folders_due(&mut self, now: i64) -> Option<(u64, ApiCall<Folders>)> {
        self.folder.due.filter(|at| *at <= now)?;
        self.folder.due = None;
        self.home.as_ref()?;
        let text = self.folder_text();
        let (under, prefix) = match text.rfind('/') {
            Some(cut) => text.split_at(cut + 1),
            None if text.is_empty() || text == "~" => (text.as_str(), ""),
            // The text is not the beginning of a path.
            None => return None,
        };
        self.folder.query_id += 1;
        Some((self.folder.query_id, calls::folders(Some(under), Some(prefix))))
    }

    // === keys

    pub(super) fn folder_key(&mut self, key: &Key, now: i64, runtimes: &[RuntimeItem]) {
        let count = self.offered().len();
        match (key.name(), self.folder.at) {
            ("Down", None) if count == 0 => self.go(1, runtimes),
            ("Down", None) => self.folder.at = Some(0),
            ("Down", Some(at)) if at + 1 >= count => self.go(1, runtimes),
            ("Down", Some(at)) => self.folder.at = Some(at + 1),
            ("Up", None) => self.go(-1, runtimes),
            ("Up", Some(at)) => self.folder.at = at.checked_sub(1),
            ("Enter", Some(at)) => self.take_folder(at, now),
            ("Enter", None) => self.go(1, runtimes),
            ("M-Enter" | "C-j" | "S-Enter", _) => {}
            _ => {
                if input::edit(&mut self.folder.text, key) {
                    self.folder_changed(now + FOLDER_PAUSE);
                }
            }
        }
    }

    pub(super) fn folder_changed(&mut self, due: i64) {
        (self.folder.typed, self.folder.at, self.folder.completes) = (true, None, false);
        self.folder.notice.clear();
        self.folder.due = Some(due);
    }

    /// Accepts a suggested folder; one that completes the typed text is opened, so that its subfolders are suggested.
    pub(super) fn take_folder(&mut self, at: usize, now: i64) {
        let Some(one) = self.offered().get(at).map(|one| one.path.clone()) else { return };
        let inside = self.folder.typed && self.home.is_some();
        self.folder.text = input::area(&if inside { format!("{one}/") } else { one });
        self.folder_changed(now);
        if !inside {
            self.folder.due = None;
        }
    }

    /// Completes the folder as far as it is unambiguous; returns `false` if there is nothing to complete.
    pub(super) fn tab(&mut self, now: i64) -> bool {
        if self.home.is_none() || !self.folder.typed && self.folder.at.is_none() {
            return false;
        }
        if let Some(at) = self.folder.at {
            self.take_folder(at, now);
            return true;
        }
        if self.folder.due.is_some() {
            // The query is sent at once, and its reply completes the text.
            (self.folder.due, self.folder.completes) = (Some(now), true);
            return true;
        }
        let done = self.complete();
        if done {
            self.folder.due = Some(now);
        }
        done
    }

    /// Completes the last name of the folder by the common prefix of all folders that begin with it.
    fn complete(&mut self) -> bool {
        let text = self.folder_text();
        let (above, prefix) = text.split_at(text.rfind('/').map_or(0, |cut| cut + 1));
        let names: Vec<&str> = self.folder.offered.iter().map(|one| one.name.as_str()).collect();
        let fits = |name: &&&str| name.to_lowercase().starts_with(&prefix.to_lowercase());
        let names: Vec<&str> = names.iter().filter(fits).copied().collect();
        let Some(first) = names.first() else { return false };
        let common = names.iter().fold(*first, |common, name| {
            let same = common.char_indices().zip(name.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at);
            &common[..same.unwrap_or_else(|| common.len().min(name.len()))]
        });
        let full = match names.as_slice() {
            [only] => format!("{above}{only}/"),
            _ if common.chars().count() > prefix.chars().count() => format!("{above}{common}"),
            _ => return false,
        };
        if full == text {
            return false;
        }
        self.folder.text = input::area(&full);
        true
    }
}
