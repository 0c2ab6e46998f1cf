//! Views beside the log: changes of files, spending, exports and shared terminals.

pub mod changes;
pub mod export;
pub mod terminals;
pub mod usage;
