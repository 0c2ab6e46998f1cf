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
pub use devices::{Auth, AuthError, CookieSite, DeviceView, OneTimeCode, OnlineGuard, PersistDevice};
pub use enrol::{BegunPairing, FetchedPairing, SHARE_LIFE};
pub use grants::{
    Admin, Approve, Caller, Denied, Device, DeviceKind, Grant, Permit, Prompt, Right, Target, Type, Ui, Watch,
};
pub use limiter::{FAILURE_WINDOW, FAILURES};
pub use local::{browser_id, redirect};
pub use pairing::{Invitation, PAIRING_LIFE, PairingFault, PairingState, PairingView, PhoneTicket, short_code};
pub use proof::{Proof, challenge};
pub use token::{TOKEN_FILE, csrf, read_token, same, write_private};
