//! The heart. One task owns a session: its loop is decide (pure), commit (the log), perform (effects).

mod clients;
mod directory;
#[cfg(test)]
mod directory_tests;
mod display;
mod index;
pub mod link;
mod log;
#[cfg(test)]
mod log_tests;
mod opening;
mod policy;
mod refusal;
mod requests;
mod risk;
mod session;
mod snapshot;
mod state;
#[cfg(test)]
mod state_tests;

pub use clients::{ClientError, Clients, Done, ToClients};
pub use directory::{Accepted, Directory, Ended, KEY_MAX, OpenSession, Retention, Rules, TITLE_MAX};
pub use link::{
    Adopted, Exit, FOUND, Found, FromRuntime, Inlet, Launcher, Ledger, Left, Link, LinkEnd, NoOrders, Order, Upto,
};
pub use log::{After, Attach, Entry, Filter, Log, NewEvent, Page, Resume, Rows};
pub use refusal::Refusal;
pub(crate) use requests::judge;
pub use snapshot::{Message, Snapshot, Tool};
pub use state::zero_of;
