//! Authentication and access. Only this module makes a [`Permit`], and every call that changes something takes one by type,
//! so an unchecked call does not compile.

mod agents;
mod devices;
mod enrol;
mod grants;
mod limiter;
mod local;
mod pairing;
mod proof;
mod token;

pub use agents::AGENTS_FOLDER;
pub use devices::{Auth, AuthError, CookieSite, OnlineGuard, PersistDevice};
pub use enrol::{BegunPairing, FetchedPairing, SHARE_LIFE};
pub use grants::{Admin, Approve, Caller, Denied, Device, Permit, Prompt, Right, Type, Ui, Watch};
pub use limiter::{FAILURE_WINDOW, FAILURES};
pub use local::{browser_id, redirect};
pub use pairing::{Invitation, PAIRING_LIFE, PairingFault, short_code};
pub use plexus_protocol::api::devices::{DeviceKind, Grant, Target};
pub use proof::{Proof, challenge};
pub use token::{TOKEN_FILE, csrf, read_token, same, write_private};
