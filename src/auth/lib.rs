//! Authentication and access. Only this module makes a [`Permit`], and every call that changes something takes one by type,
//! so an unchecked call does not compile.

mod device_name;
mod devices;
mod error;
mod grants;
mod limiter;
mod pairing;
mod proof;
mod token;

pub use devices::{
    AGENTS_FOLDER, Auth, BegunPairing, CookieSite, FetchedPairing, OnlineGuard, PersistDevice, SHARE_LIFE, browser_id,
    redirect,
};
pub use error::{AuthError, PairingFault};
pub use grants::{Admin, Approve, Caller, Denied, Device, Permit, Prompt, Right, Type, Ui, Watch};
pub use limiter::{FAILURE_WINDOW, FAILURES};
pub use pairing::{Invitation, PAIRING_LIFE, short_code};
pub use plexus_protocol::api::devices::{DeviceKind, Grant, Target};
pub use proof::{Proof, challenge};
pub use token::{TOKEN_FILE, csrf, read_token, same, write_private};
