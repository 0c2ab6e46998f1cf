//! Folders of the machine, and files of a folder.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::KnownItems;
use crate::Timestamp;

/// Files of a session's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Files {
    /// The files whose paths match, best first.
    #[schema(value_type = Vec<FileMatch>)]
    pub files: KnownItems<FileMatch>,
    /// `true` if the folder has more files than were visited.
    pub truncated: bool,
}

/// A file of a session's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileMatch {
    /// The path below the session's folder. It may contain any characters: escape control characters for display.
    pub path: String,
}

/// A folder of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FolderEntry {
    /// The name, which may contain any characters.
    pub name: String,
    /// The path.
    pub path: String,
    /// `true` if the folder has a git repository.
    pub git: bool,
    /// `true` if the folder is a symbolic link to a folder.
    pub link: bool,
}

/// A recently used folder of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecentFolder {
    /// The path.
    pub path: String,
    /// The last part of the folder's path.
    pub name: String,
    /// `true` if the folder has a git repository.
    pub git: bool,
    /// The time when a session in the folder last changed.
    pub used_at: Timestamp,
}

/// Folders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Folders {
    /// The folder whose folders are listed; absent for a device that may not see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
    /// The parent of the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The folders in the folder, by name, at most 500. A name that is not UTF-8 is left out.
    #[schema(value_type = Vec<FolderEntry>)]
    pub folders: KnownItems<FolderEntry>,
    /// `true` if there are more.
    pub more: bool,
    /// The recently used folders of sessions that the caller may see, newest first, at most 20.
    #[schema(value_type = Vec<RecentFolder>)]
    pub recent: KnownItems<RecentFolder>,
}
