//! Who may do what. Only this module makes a [`Permit`], and what changes anything asks for one by type, so an
//! unchecked call does not compile.

mod grants;

pub use grants::{Admin, Approve, Caller, Denied, Device, Grant, Permit, Prompt, Right, Target, Watch};
