//! The heart. One task owns a session: its loop is decide (pure), commit (the log), perform (effects).

pub mod link;

pub use link::{Exit, FromRuntime, Inlet, Launcher, Link, LinkEnd, NoOrders, Order};
