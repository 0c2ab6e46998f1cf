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

pub use clients::{ClientError, Clients, Errand, Owner, Served, ToClients};
pub use directory::{Accepted, Directory, Ended, KEY_MAX, LISTED, OpenSession, Retention, Rules, Snapshots, TITLE_MAX};
pub use export::{Export, Format};
pub use folders::leads_into;
pub use history::{PageLimit, Past};
pub use journal::Journal;
pub use link::{
    Adopted, Exit, FOUND, Found, FromRuntime, Inlet, Known, Launcher, Ledger, Left, Link, LinkEnd, NoOrders, Order,
    Start, Upto,
};
pub use log::{After, Attach, Entry, Filter, Log, NewEvent, Page, Resume, Rows};
pub use merge::{Item, Place};
pub use prompts::PROMPT_MAX;
pub use refusal::{Refusal, TooRisky};
pub(crate) use requests::judge;
pub use resumable::{At as ResumableAt, RESUMABLE_MAX, Resumable, ResumablePage};
pub(crate) use risk::masked;
pub use session::Rank;
pub use snapshot::{Message, Snapshot, Tool, WINDOW};
pub use state::zero_of;
pub use watching::Watch;
