//! Who may do what. Only this module makes a [`Permit`], and what changes anything asks for one by type, so an
//! unchecked call does not compile.

mod devices;
mod grants;
mod limiter;
mod token;

pub use devices::{Auth, AuthError, Code, DeviceView, Persist, Site};
pub use grants::{Admin, Approve, Caller, Denied, Device, DeviceKind, Grant, Permit, Prompt, Right, Target, Watch};
pub use limiter::{FAILURE_WINDOW, FAILURES};
pub use token::{TOKEN_FILE, csrf, read_token, same};
