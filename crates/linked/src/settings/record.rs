//! A record of the changes that linked an agent, so that they can be undone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::settings::error::LinkError;
use crate::settings::files::RecordFolder;

/// The version of the format; a record of another one is reported as damaged.
const FORM: u32 = 1;

/// The changes for one agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct LinkRecord {
    form: u32,
    /// The version of Plexus that wrote it.
    pub(crate) version: String,
    /// The program that was written into the settings.
    pub(crate) program: String,
    /// The files, in the order in which they were changed.
    pub(crate) files: Vec<FileRecord>,
}

/// The changes of one file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct FileRecord {
    /// The path that the agent uses.
    pub(crate) path: PathBuf,
    /// The checksum of the file before; `None` if there was no file.
    pub(crate) before: Option<String>,
    /// The checksum of the file after the change.
    pub(crate) after: String,
    /// The members that were made for the entries of Plexus.
    pub(crate) made: Vec<String>,
    /// The folders that were made for the file, outermost first.
    pub(crate) folders: Vec<PathBuf>,
}

/// Returns the checksum of a file's text.
pub(crate) fn checksum(text: &str) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

impl LinkRecord {
    pub(crate) fn new(program: &str, files: Vec<FileRecord>) -> Self {
        Self { form: FORM, version: env!("CARGO_PKG_VERSION").into(), program: program.to_owned(), files }
    }

    fn name(agent: &str) -> String {
        format!("{agent}.json")
    }

    fn backup_name(agent: &str, at: usize) -> String {
        format!("{agent}.{at}.before")
    }

    /// Reads the record of an agent; returns `None` if it is not linked.
    pub(crate) fn load(folder: &RecordFolder, agent: &str) -> Result<Option<Self>, LinkError> {
        let Some(text) = folder.read(&Self::name(agent))? else { return Ok(None) };
        let damaged = |reason: String| LinkError::Record { path: folder.0.join(Self::name(agent)), reason };
        let record: Self = serde_json::from_str(&text).map_err(|reason| damaged(reason.to_string()))?;
        if record.form != FORM {
            return Err(damaged(format!("it has the form {}, of another version of Plexus", record.form)));
        }
        Ok(Some(record))
    }

    /// Returns the record of a file, and its index among the files.
    pub(crate) fn file(&self, path: &std::path::Path) -> Option<(usize, &FileRecord)> {
        self.files.iter().enumerate().find(|(_, file)| file.path == path)
    }

    /// Returns the text of a file before it was linked, if the backup is complete.
    pub(crate) fn backup(&self, folder: &RecordFolder, agent: &str, at: usize) -> Option<String> {
        let expected = self.files.get(at)?.before.as_ref()?;
        let text = folder.read(&Self::backup_name(agent, at)).ok().flatten()?;
        (checksum(&text) == *expected).then_some(text)
    }

    /// Writes the record with the earlier texts of its files: the backups first, so that a record always has its backups.
    pub(crate) fn store(&self, folder: &RecordFolder, agent: &str, before: &[Option<String>]) -> Result<(), LinkError> {
        for (at, text) in before.iter().enumerate() {
            match text {
                Some(text) => folder.write(&Self::backup_name(agent, at), text)?,
                None => folder.remove(&Self::backup_name(agent, at))?,
            }
        }
        let text = serde_json::to_string_pretty(self).map_err(|reason| LinkError::Record {
            path: folder.0.join(Self::name(agent)),
            reason: reason.to_string(),
        })?;
        folder.write(&Self::name(agent), &format!("{text}\n"))
    }

    /// Removes the record of an agent before its backups, so that a record always has its backups.
    pub(crate) fn forget(folder: &RecordFolder, agent: &str, files: usize) -> Result<(), LinkError> {
        folder.remove(&Self::name(agent))?;
        (0..files).try_for_each(|at| folder.remove(&Self::backup_name(agent, at)))
    }
}
