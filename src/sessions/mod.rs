//! The heart. One task owns a session: its loop is decide (pure), commit (the log), perform (effects).

mod answer_key;
mod away;
mod clients;
mod diff;
mod directory;
#[cfg(test)]
mod directory_tests;
mod display;
mod export;
mod folders;
mod folds;
mod history;
#[cfg(test)]
mod history_tests;
mod index;
pub mod journal;
mod leftover;
pub mod link;
mod log;
#[cfg(test)]
mod log_tests;
mod merge;
mod opening;
mod policy;
mod prompt_key;
mod prompts;
mod questions;
mod recovery;
mod refusal;
mod requests;
mod resumable;
#[cfg(test)]
mod resumable_tests;
mod risk;
mod session;
mod slices;
mod snapshot;
mod state;
#[cfg(test)]
mod state_tests;
mod watching;
mod writing;

pub use clients::{ClientCall, ClientCallReply, ClientError, ClientRouter, Clients, SessionOwner};
pub use directory::{
    AcceptedPrompt, Directory, KEY_MAX, LISTED, OpenSession, RetentionRules, RunOutcome, SessionRules, Snapshots,
    TITLE_MAX,
};
pub use export::{Export, Format};
pub use folders::leads_into;
pub use history::{HistoryPage, PageLimit};
pub use journal::StderrLog;
pub use link::{
    Ack, AckTracker, DriverEnd, FOUND, FoundSession, Launcher, OrderRejected, OrphanState, OrphanedRuntime,
    ProcessStart, ReattachedSession, RuntimeExit, RuntimeLink, RuntimeMessage, RuntimeOrder, SessionSender,
};
pub use log::{AttachVerdict, CommitEntry, CommitRows, EventPage, Filter, Log, NewEvent, ResumeVerdict, StartAfter};
pub use merge::{LogPlace, PageItem};
pub use prompts::PROMPT_MAX;
pub use refusal::{SessionError, TooRisky};
pub(crate) use requests::judge;
pub use resumable::{ListPosition as ResumableAt, RESUMABLE_MAX, ResumableConversation, ResumablePage};
pub(crate) use risk::masked;
pub use session::NewsRank;
pub use snapshot::{Snapshot, SnapshotMessage, SnapshotTool, WINDOW};
pub use state::zero_of;
pub use watching::EventWatch;
