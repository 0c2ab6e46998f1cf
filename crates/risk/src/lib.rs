//! The risk of requests and their form that is safe to show: shell text, effects, displays, diffs and masks. Pure: no
//! file is read, and the same input has the same result.

mod classify;
mod diff;
mod display;
mod effect;
mod escape;
mod folder;
mod judge;
#[cfg(test)]
mod judge_tests;
mod paths;
mod prose;
mod secrets;
mod shell;
mod tables;
mod verdict;

pub use classify::classify;
pub use diff::around_changes;
pub use display::{Display, about, render};
pub use effect::Effect;
pub use escape::label;
pub use folder::{ActionFolder, FolderConflict, SessionFolders};
pub use judge::command_of;
pub use secrets::{masked, masked_by};
pub use shell::ShellText;
pub use verdict::RiskVerdict;
