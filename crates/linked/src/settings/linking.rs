//! Links and unlinks agents: reads the files, makes a plan, and applies it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::settings::agents::{LinkedAgent, Target, TargetFolder};
use crate::settings::error::LinkError;
use crate::settings::files::{self, Content, FileLocation, RecordFolder};
use crate::settings::record::{FileRecord, LinkRecord, checksum};
use crate::settings::target::{TargetError, TargetKind};
use crate::settings::target_state::TargetState;

/// The variables that name the folders of agents' settings.
pub const LINK_VARIABLES: &[&str] =
    &["CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "COPILOT_HOME", "ZDOTDIR"];

/// The folder of records in the state folder.
const RECORDS: &str = "link";
/// Number of lines of a diff around a change.
const AROUND: usize = 3;

/// The settings of a user, and the program that is written into them.
#[derive(Clone, Debug)]
pub struct Linker {
    home: PathBuf,
    program: String,
    variables: BTreeMap<String, String>,
    records: RecordFolder,
}

/// The state of an agent's link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// The agent needs no linking; the text is the alternative.
    NotNeeded(&'static str),
    /// The agent is not linked.
    NotLinked,
    /// The agent is linked to this program.
    Linked,
    /// The agent is linked to another program or by another version; the text is the difference.
    OutOfDate(String),
    /// Only a part of the linked entries is left; the text describes the missing or wrong part.
    Damaged(String),
}

/// The change of a file.
#[derive(Debug)]
pub struct FileChange {
    location: FileLocation,
    before: Option<Content>,
    after: Option<String>,
    /// The text that an undo restores: the one before any entry of Plexus.
    original: Option<String>,
    made: Vec<String>,
    folders: Vec<PathBuf>,
    /// `true` if a removal restores exactly the text before linking.
    exact: bool,
    /// The path of the copy of a user's additions to a file of Plexus.
    copy: Option<String>,
}

/// The changes that link an agent, or unlink it.
#[derive(Debug)]
pub struct LinkPlan {
    /// The agent.
    pub agent: &'static LinkedAgent,
    /// `true` if the plan removes the linked entries.
    pub removal: bool,
    /// The changes of files. Empty if nothing has to change.
    pub changes: Vec<FileChange>,
    /// The record that is stored afterwards.
    record: Option<StoredRecord>,
    /// The existing record.
    previous: Option<StoredRecord>,
    /// `true` if there is a record, even a damaged one.
    recorded: bool,
}

/// A record with the earlier texts of its files.
type StoredRecord = (LinkRecord, Vec<Option<String>>);

/// The state of a target before a plan.
struct InspectedTarget {
    location: FileLocation,
    content: Option<Content>,
    state: TargetState,
}

impl InspectedTarget {
    fn text(&self) -> Option<&str> {
        self.content.as_ref().map(|content| content.text.as_str())
    }
}

impl Linker {
    /// Makes a linker for the settings below `home`, with records below `state`. `program` is the path of this program
    /// as it is written into commands, and `variable` looks up those of [`LINK_VARIABLES`].
    ///
    /// # Errors
    /// Returns [`LinkError::Program`] if the path cannot be written into a command.
    pub fn new(
        home: &Path,
        state: &Path,
        program: &Path,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, LinkError> {
        let refused = |reason| LinkError::Program { path: program.to_owned(), reason };
        let name = program.to_str().ok_or_else(|| refused("it is not UTF-8"))?;
        if !program.is_absolute() {
            return Err(refused("it is not absolute"));
        }
        // Shells and agents each expand some of these characters; the same text must have the same meaning everywhere.
        if name.chars().any(|one| one.is_control() || matches!(one, '$' | '`' | '\\' | '"' | '\'' | '%')) {
            return Err(refused("a shell or an agent would change characters in it"));
        }
        let command = format!("{} hook x", shell_words::quote(name));
        if crate::settings::hooks::own_command(&command, "x").is_none() {
            return Err(refused("its name does not begin with `plexus`, so its entries would not be known again"));
        }
        let variables = LINK_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?))).collect();
        let records = RecordFolder(state.join(RECORDS));
        Ok(Self { home: home.to_owned(), program: name.to_owned(), variables, records })
    }

    /// Returns the home folder.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the folder in which an agent stores a file.
    pub(crate) fn folder(&self, target: &Target) -> Result<TargetFolder, LinkError> {
        target.location.folder(&self.home, |name| self.variables.get(name).cloned())
    }

    fn inspect(&self, target: &Target) -> Result<InspectedTarget, LinkError> {
        let folder = self.folder(target)?;
        let path = folder.folder.join(target.location.file);
        let mut roots = vec![self.home.as_path()];
        roots.extend(folder.named.as_deref());
        let location = files::locate(&path, &roots)?;
        let content = files::read(&location)?;
        let text = content.as_ref().map(|content| content.text.as_str());
        let state = target.kind.state(text, &self.program).map_err(|reason| refusal(&location, reason))?;
        Ok(InspectedTarget { location, content, state })
    }

    /// Returns the files of an agent, as it names them.
    ///
    /// # Errors
    /// Returns [`LinkError::NotAbsolute`].
    pub fn paths(&self, agent: &LinkedAgent) -> Result<Vec<PathBuf>, LinkError> {
        agent.targets.iter().map(|target| Ok(self.folder(target)?.folder.join(target.location.file))).collect()
    }

    /// Returns the state of an agent's link.
    ///
    /// # Errors
    /// Returns an error if its files cannot be read or parsed.
    pub fn state(&self, agent: &LinkedAgent) -> Result<LinkState, LinkError> {
        if let Some(no_edit_reason) = agent.no_edit_reason {
            return Ok(LinkState::NotNeeded(no_edit_reason));
        }
        let record = LinkRecord::load(&self.records, agent.name)?;
        let inspected: Vec<InspectedTarget> =
            agent.targets.iter().map(|target| self.inspect(target)).collect::<Result<_, _>>()?;
        let is_linked = |one: &&InspectedTarget| one.state != TargetState::Absent;
        // A switch that is on may be the user's own setting.
        let own_targets =
            agent.targets.iter().zip(&inspected).filter(|(target, _)| !matches!(target.kind, TargetKind::Switch(_)));
        if own_targets.map(|(_, one)| one).filter(is_linked).count() == 0 {
            let first = inspected.first().map(|one| one.location.path.display().to_string()).unwrap_or_default();
            return Ok(match &record {
                Some(_) => LinkState::Damaged(format!("the linked entries are no longer in {first}")),
                None => LinkState::NotLinked,
            });
        }
        let mut outdated = Vec::new();
        let mut damaged = Vec::new();
        for one in &inspected {
            let path = one.location.path.display();
            match &one.state {
                TargetState::Current => {}
                TargetState::Absent => damaged.push(format!("{path} lacks the linked entries")),
                TargetState::Outdated(reason) => outdated.push(format!("{path}: {reason}")),
                TargetState::Incomplete(reason) => damaged.push(format!("{path}: {reason}")),
            }
        }
        if !outdated.is_empty() {
            return Ok(LinkState::OutOfDate(outdated.join("; ")));
        }
        if let Some(older) = record.filter(|record| !damaged.is_empty() && record.version != env!("CARGO_PKG_VERSION"))
        {
            return Ok(LinkState::OutOfDate(format!("Plexus {} linked it: {}", older.version, damaged.join("; "))));
        }
        if !files::runs(Path::new(&self.program)) {
            damaged.push(format!("{} is not there any more", self.program));
        }
        Ok(if damaged.is_empty() { LinkState::Linked } else { LinkState::Damaged(damaged.join("; ")) })
    }

    /// Returns the changes that link an agent.
    ///
    /// # Errors
    /// Returns a [`LinkError`] if nothing can be changed.
    pub fn plan_link(&self, agent: &'static LinkedAgent) -> Result<LinkPlan, LinkError> {
        let record = LinkRecord::load(&self.records, agent.name)?;
        let mut changes = Vec::new();
        let mut retained = Vec::new();
        for target in agent.targets {
            let inspected = self.inspect(target)?;
            let known = record.as_ref().and_then(|record| record.file(&inspected.location.path));
            if inspected.state == TargetState::Current {
                // The record has the effect of linking at that time, which may differ from the present one.
                if let (Some((at, file)), Some(record)) = (known, &record) {
                    retained.push((file.clone(), record.backup(&self.records, agent.name, at)));
                }
                continue;
            }
            files::writable(&inspected.location)?;
            changes.push(self.addition(agent, target, inspected, record.as_ref())?);
        }
        let recorded = record.is_some();
        let files = changes.iter().filter_map(|change| Some((change.recorded()?, change.original.clone())));
        let (files, backups): (Vec<FileRecord>, Vec<Option<String>>) = retained.into_iter().chain(files).unzip();
        let previous = record.map(|record| self.with_backups(agent, record));
        let record = Some((LinkRecord::new(&self.program, files), backups));
        Ok(LinkPlan { agent, removal: false, changes, record, previous, recorded })
    }

    fn with_backups(&self, agent: &LinkedAgent, record: LinkRecord) -> StoredRecord {
        let backups = (0..record.files.len()).map(|at| record.backup(&self.records, agent.name, at)).collect();
        (record, backups)
    }

    fn addition(
        &self,
        agent: &LinkedAgent,
        target: &Target,
        inspected: InspectedTarget,
        record: Option<&LinkRecord>,
    ) -> Result<FileChange, LinkError> {
        let known =
            record.and_then(|record| record.file(&inspected.location.path).map(|(at, file)| (record, at, file)));
        let mut folders = files::missing_folders(&inspected.location);
        // Entries of Plexus are removed first: an entry of another version does not stay beside the new one.
        let original = match (inspected.text(), known) {
            (Some(text), Some((record, at, file))) if checksum(text) == file.after => {
                record.backup(&self.records, agent.name, at).map_or_else(
                    || target.kind.take_out(text, Some(&file.made), Some(file.before.is_some())),
                    |text| Ok(Some(text)),
                )
            }
            (Some(text), _) if inspected.state == TargetState::Absent => Ok(Some(text.to_owned())),
            (Some(text), known) => {
                let made = known.map(|(_, _, file)| file.made.as_slice());
                target.kind.take_out(text, made, known.map(|(_, _, file)| file.before.is_some()))
            }
            (None, _) => Ok(None),
        };
        let original = original.map_err(|reason| refusal(&inspected.location, reason))?;
        let (after, made) = target
            .kind
            .add(original.as_deref(), &self.program)
            .map_err(|reason| refusal(&inspected.location, reason))?;
        if let Some((_, _, file)) = known {
            folders.splice(0..0, file.folders.iter().filter(|folder| folder.exists()).cloned());
        }
        let (location, before) = (inspected.location, inspected.content);
        Ok(FileChange { location, before, after: Some(after), original, made, folders, exact: true, copy: None })
    }

    /// Returns the changes that unlink an agent.
    ///
    /// # Errors
    /// Returns a [`LinkError`] if nothing can be changed.
    pub fn plan_removal(&self, agent: &'static LinkedAgent) -> Result<LinkPlan, LinkError> {
        // Entries are recognized without their record, so a damaged one is no obstacle.
        let loaded = LinkRecord::load(&self.records, agent.name);
        let recorded = !matches!(loaded, Ok(None));
        let record = loaded.ok().flatten();
        let mut changes = Vec::new();
        for (at, target) in agent.targets.iter().enumerate() {
            let inspected = match self.inspect(target) {
                // A file of the user at the path of Plexus's own file is left alone.
                Err(LinkError::ForeignFile { .. }) => continue,
                inspected => inspected?,
            };
            let Some(text) = inspected.text().map(str::to_owned) else { continue };
            let known = record
                .as_ref()
                .and_then(|record| record.file(&inspected.location.path).map(|(at, file)| (record, at, file)));
            let change = self.subtraction(agent, at, target, inspected, &text, known)?;
            if let Some(change) = change {
                files::writable(&change.location)?;
                changes.push(change);
            }
        }
        let previous = record.map(|record| self.with_backups(agent, record));
        Ok(LinkPlan { agent, removal: true, changes, record: None, previous, recorded })
    }

    fn subtraction(
        &self,
        agent: &LinkedAgent,
        number: usize,
        target: &Target,
        inspected: InspectedTarget,
        text: &str,
        known: Option<(&LinkRecord, usize, &FileRecord)>,
    ) -> Result<Option<FileChange>, LinkError> {
        let untouched = known.filter(|(_, _, file)| checksum(text) == file.after);
        let exact = match untouched {
            Some((_, _, FileRecord { before: None, .. })) => Some(None),
            Some((record, at, _)) => record.backup(&self.records, agent.name, at).map(Some),
            None => None,
        };
        let is_exact = exact.is_some();
        let after = match exact {
            Some(after) => after,
            None => {
                let made = known.map(|(_, _, file)| file.made.as_slice());
                let was_there = known.map(|(_, _, file)| file.before.is_some());
                target.kind.take_out(text, made, was_there).map_err(|reason| refusal(&inspected.location, reason))?
            }
        };
        if after.as_deref() == Some(text) {
            return Ok(None);
        }
        let edited = matches!(target.kind, TargetKind::File(_)) && inspected.state != TargetState::Current && !is_exact;
        let copy = edited.then(|| format!("{}.{number}.edited", agent.name));
        let mut folders = known.map(|(_, _, file)| file.folders.clone()).unwrap_or_default();
        // Only folders above the file are removed, whatever the record has.
        folders.retain(|folder| inspected.location.real.starts_with(folder));
        let (location, before) = (inspected.location, inspected.content);
        Ok(Some(FileChange {
            location,
            before,
            after,
            original: None,
            made: Vec::new(),
            folders,
            exact: is_exact,
            copy,
        }))
    }

    /// Applies a plan: all of it, or nothing.
    ///
    /// # Errors
    /// Returns a [`LinkError`]; then the files are as they were before.
    pub fn apply(&self, plan: &LinkPlan) -> Result<(), LinkError> {
        let _lock = self.records.lock()?;
        let name = plan.agent.name;
        if let Some((record, backups)) = plan.record.as_ref().filter(|_| !plan.changes.is_empty()) {
            // The record is written before the files, so that an undo is possible at any moment.
            record.store(&self.records, name, backups)?;
        }
        for (at, change) in plan.changes.iter().enumerate() {
            if let Err(reason) = self.apply_change(change) {
                for done in plan.changes[..at].iter().rev() {
                    // The first error is the one to report.
                    let _ = done.revert();
                }
                if !plan.removal {
                    match &plan.previous {
                        Some((record, backups)) => record.store(&self.records, name, backups)?,
                        None => LinkRecord::forget(&self.records, name, plan.agent.targets.len())?,
                    }
                }
                return Err(reason);
            }
        }
        if plan.removal {
            plan.changes
                .iter()
                .filter(|change| change.after.is_none())
                .for_each(|change| files::remove_folders(&change.folders));
            LinkRecord::forget(&self.records, name, plan.agent.targets.len())?;
        }
        Ok(())
    }

    fn apply_change(&self, change: &FileChange) -> Result<(), LinkError> {
        if let (Some(copy), Some(before)) = (&change.copy, &change.before) {
            self.records.write(copy, &before.text)?;
        }
        if change.after.is_some() {
            files::make_folders(&files::missing_folders(&change.location))?;
        }
        files::change(&change.location, change.before.as_ref(), change.after.as_deref())
    }

    /// Returns the path of the copy of a file that is deleted, if the user edited it.
    pub fn copy_path(&self, change: &FileChange) -> Option<PathBuf> {
        change.copy.as_ref().map(|name| self.records.0.join(name))
    }
}

impl LinkPlan {
    /// Returns a digest of these changes, which is the same as long as the files do not change.
    pub fn digest(&self) -> String {
        let mut all = format!("{}\n{}\n", self.agent.name, self.removal);
        for change in &self.changes {
            let sum = |text: Option<&str>| text.map_or_else(|| "none".to_owned(), checksum);
            let (before, after) = (change.before.as_ref().map(|before| before.text.as_str()), change.after.as_deref());
            all += &format!("{}\n{}\n", change.location.real.display(), change.location.path.display());
            all += &format!("{}\n{}\n", sum(before), sum(after));
        }
        checksum(&all)
    }

    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && !(self.removal && self.recorded)
    }
}

impl FileChange {
    /// Returns the file, as the agent names it.
    pub fn path(&self) -> &Path {
        &self.location.path
    }

    /// Returns the real path of the file, if a symbolic link leads there.
    pub fn leads_to(&self) -> Option<&Path> {
        (self.location.real != self.location.path).then_some(self.location.real.as_path())
    }

    /// Returns the change of the file, in a word.
    pub fn verb(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "add",
            (_, None) => "delete",
            _ => "edit",
        }
    }

    /// Returns whether a removal restores exactly the text before linking.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Returns the change as a unified diff.
    pub fn diff(&self) -> String {
        let before = self.before.as_ref().map_or("", |before| before.text.as_str());
        let after = self.after.as_deref().unwrap_or_default();
        similar::TextDiff::from_lines(before, after).unified_diff().context_radius(AROUND).to_string()
    }

    fn recorded(&self) -> Option<FileRecord> {
        Some(FileRecord {
            path: self.location.path.clone(),
            before: self.original.as_deref().map(checksum),
            after: checksum(self.after.as_deref()?),
            made: self.made.clone(),
            folders: self.folders.clone(),
        })
    }

    fn revert(&self) -> Result<(), LinkError> {
        let now = files::read(&self.location)?;
        if now.as_ref().map(|now| now.text.as_str()) != self.after.as_deref() {
            return Err(LinkError::Changed { path: self.location.path.clone() });
        }
        files::change(&self.location, now.as_ref(), self.before.as_ref().map(|before| before.text.as_str()))?;
        if self.before.is_none() {
            files::remove_folders(&self.folders);
        }
        Ok(())
    }
}

fn refusal(location: &FileLocation, reason: TargetError) -> LinkError {
    match reason {
        TargetError::Settings(reason) => LinkError::Settings { path: location.path.clone(), reason },
        TargetError::ForeignFile => LinkError::ForeignFile { path: location.path.clone() },
    }
}
