//! The content that is inserted into a file of an agent: entries among its settings, or a file of Plexus.

use crate::settings::document::{Document, SettingsError};
use crate::settings::hooks::HookSettings;
use crate::settings::shell::ShellFunction;
use crate::settings::switch::SwitchSettings;
use crate::settings::target_state::TargetState;

/// The beginning of every file of Plexus, by which it is recognized in any version.
pub(crate) const MARKER: &str = "// Written by `plexus link";

/// A file that Plexus writes as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileSettings {
    /// The text, which begins with [`MARKER`].
    pub(crate) content: &'static str,
}

/// The content that is inserted into a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TargetKind {
    /// Hook entries.
    Hooks(HookSettings),
    /// A switch.
    Switch(SwitchSettings),
    /// The whole file.
    File(FileSettings),
    /// A shell's function.
    Function(ShellFunction),
}

/// The reason why a file is not edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetError {
    /// The text cannot be parsed.
    Settings(SettingsError),
    /// The file is not Plexus's.
    ForeignFile,
}

impl From<SettingsError> for TargetError {
    fn from(reason: SettingsError) -> Self {
        Self::Settings(reason)
    }
}

impl TargetKind {
    /// Returns the state of a file with this text, or of a missing file.
    pub(crate) fn state(&self, text: Option<&str>, program: &str) -> Result<TargetState, TargetError> {
        let Some(text) = text else { return Ok(TargetState::Absent) };
        Ok(match self {
            Self::Hooks(hooks) => {
                let found = hooks.inspect(text)?;
                match found.programs.as_slice() {
                    [] => TargetState::Absent,
                    [one] if one == program && found.differs.is_empty() => TargetState::Current,
                    [one] if one == program => TargetState::Incomplete(found.differs.join(", ")),
                    others => TargetState::Outdated(format!("its entries start {}", others.join(" and "))),
                }
            }
            Self::Switch(switch) if switch.is_on(text)? => TargetState::Current,
            Self::Switch(_) => TargetState::Absent,
            Self::File(file) if text == file.content => TargetState::Current,
            Self::File(_) if text.starts_with(MARKER) => {
                TargetState::Outdated("it is of another version, or was edited".into())
            }
            Self::File(_) => return Err(TargetError::ForeignFile),
            Self::Function(function) => function.state(text, program),
        })
    }

    /// Returns the text with the content of Plexus, and the names of the members that were made for it. The text must
    /// not have any before.
    pub(crate) fn add(&self, text: Option<&str>, program: &str) -> Result<(String, Vec<String>), TargetError> {
        match (self, text) {
            (Self::Hooks(hooks), text) => Ok(hooks.add(text.unwrap_or_default(), program)?),
            (Self::Switch(switch), text) => Ok(switch.add(text.unwrap_or_default())?),
            (Self::File(file), None) => Ok((file.content.to_owned(), Vec::new())),
            (Self::File(_), Some(_)) => Err(TargetError::ForeignFile),
            (Self::Function(function), text) => Ok(function.add(text.unwrap_or_default(), program)),
        }
    }

    /// Returns the text without the content of Plexus; `None` if no file should be left. `made` has the names of the
    /// members that linking made, and `was_there` whether the file existed before, if that is known.
    pub(crate) fn take_out(
        &self,
        text: &str,
        made: Option<&[String]>,
        was_there: Option<bool>,
    ) -> Result<Option<String>, TargetError> {
        let (rest, syntax) = match self {
            Self::Hooks(hooks) => (hooks.take_out(text, made)?, hooks.syntax),
            Self::Switch(switch) => (switch.take_out(text, made)?, switch.syntax),
            Self::Function(function) => {
                let rest = function.take_out(text, made);
                return Ok((!rest.is_empty() || was_there != Some(false)).then_some(rest));
            }
            Self::File(_) if text.starts_with(MARKER) => return Ok(None),
            Self::File(_) => return Err(TargetError::ForeignFile),
        };
        if was_there == Some(false) && rest != text {
            let document = Document::parse(&rest, syntax)?;
            let empty = document.value().as_object().is_some_and(serde_json::Map::is_empty);
            if empty && !document.has_comments() {
                return Ok(None);
            }
        }
        Ok(Some(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::agents::LINKED_AGENTS;

    #[test]
    fn files_of_ours_begin_with_the_marker() {
        let mut count = 0;
        for target in LINKED_AGENTS.iter().flat_map(|agent| agent.targets) {
            if let TargetKind::File(file) = &target.kind {
                assert!(
                    file.content.starts_with(MARKER),
                    "{:?}: its first line must begin with {MARKER:?}",
                    target.location
                );
                count += 1;
            }
        }
        assert_eq!(count, 2);
    }

    #[test]
    fn file_of_ours_is_told_from_others() {
        let file = TargetKind::File(FileSettings { content: "// Written by `plexus link x`\n1" });
        assert_eq!(file.state(None, "p"), Ok(TargetState::Absent));
        assert_eq!(file.state(Some("// Written by `plexus link x`\n1"), "p"), Ok(TargetState::Current));
        assert!(matches!(file.state(Some("// Written by `plexus link x`\n0"), "p"), Ok(TargetState::Outdated(_))));
        assert_eq!(file.state(Some("export {}"), "p"), Err(TargetError::ForeignFile));
        assert_eq!(file.add(None, "p").unwrap().0, "// Written by `plexus link x`\n1");
        assert_eq!(file.add(Some("export {}"), "p"), Err(TargetError::ForeignFile));
        assert_eq!(file.take_out("// Written by `plexus link x`\n0", None, None), Ok(None));
        assert_eq!(file.take_out("export {}", None, None), Err(TargetError::ForeignFile));
    }
}
