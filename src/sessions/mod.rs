//! The heart. One task owns a session: its loop is decide (pure), commit (the log), perform (effects).

mod directory;
#[cfg(test)]
mod directory_tests;
mod display;
mod index;
pub mod link;
mod log;
#[cfg(test)]
mod log_tests;
mod refusal;
mod requests;
mod session;
mod snapshot;
mod state;
#[cfg(test)]
mod state_tests;

pub use directory::{Accepted, Directory, OpenSession, Retention, Rules};
pub use link::{Exit, FromRuntime, Inlet, Launcher, Link, LinkEnd, NoOrders, Order};
pub use log::{After, Attach, Entry, Filter, Log, NewEvent, Page, Resume, Rows};
pub use refusal::Refusal;
pub use snapshot::{Message, Snapshot, Tool};
