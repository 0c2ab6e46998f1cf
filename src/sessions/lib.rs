//! Sessions and their log. One task owns a session; its loop is: decide (pure), commit (to the log), perform (effects).

mod answer_key;
mod ceilings;
#[cfg(test)]
mod ceilings_tests;
mod changes;
mod client_calls;
mod commit;
mod day_ceiling;
mod directory;
#[cfg(test)]
mod directory_tests;
mod error;
mod export;
mod files;
mod filter;
mod folders;
mod history;
#[cfg(test)]
mod history_tests;
mod idempotency;
mod index;
mod journal;
mod left_out;
mod log;
mod log_shared;
#[cfg(test)]
mod log_tests;
mod log_writer;
mod orphans;
mod page_merge;
mod policy;
mod projects;
mod prompt_key;
mod prompts;
mod questions;
mod requests;
#[cfg(test)]
mod resumable_tests;
mod rules;
pub mod runtime_link;
mod session;
mod session_handle;
mod snapshot;
mod snapshot_cache;
mod state;
#[cfg(test)]
mod state_tests;
pub mod stderr_log;
mod string_slices;
mod surface_form;
mod surfaces;
mod system;
mod watching;
mod worktrees;

pub use ceilings::{CeilingBook, CeilingFileError, OWN_CEILINGS_MAX};
pub use changes::{ChangesError, ReviewComment, UndoRequest};
pub use client_calls::{ClientCall, ClientCallReply, ClientError, ClientRouter, Clients, SessionOwner};
pub use commit::{CommitEntry, CommitRows, NewEvent};
pub use directory::{
    AgentTools, DeletedSessions, Directory, DirectoryCeilings, DirectoryChanges, DirectoryFiles, DirectoryRequests,
    DirectoryResumable, DirectorySnapshots, DirectorySurfaces, FirstSettings, LISTED, ListPosition as ResumableAt,
    OpenSession, RESUMABLE_MAX, RetentionRules, Snapshots, TITLE_MAX,
};
pub use error::{Refused, SessionError, TooRisky};
pub use export::{Export, Format};
pub use files::{FILE_QUERY_MAX, FILES_MAX, FoundFiles};
pub use filter::Filter;
pub use folders::is_inside;
pub use history::{HistoryPage, PageLimit};
pub use idempotency::KEY_MAX;
pub use log::{AttachVerdict, Log, StartAfter};
pub use log_shared::EventPage;
pub use page_merge::{LogPosition, PageItem};
pub use policy::check_effect;
pub use prompts::PROMPT_MAX;
pub use requests::judge;
pub use rules::SessionRules;
pub use runtime_link::{
    Ack, AckTracker, DriverEnd, FOUND, FoundSession, Launcher, OrderRejected, OrphanState, OrphanedRuntime,
    ProcessStart, ReattachedSession, RuntimeExit, RuntimeLink, RuntimeMessage, RuntimeOrder, SessionSender,
};
pub use session_handle::ActivityRank;
pub use snapshot::{LATEST, WINDOW};
pub use state::initial_run_id;
pub use stderr_log::StderrLog;
pub use surfaces::{AskCall, SurfaceCall, SurfacePermits};
pub use watching::EventWatch;
pub use worktrees::{MadeWorktree, WorktreeError, Worktrees, losses};
