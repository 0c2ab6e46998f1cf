//! The errors of authentication and enrolment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plexus_protocol::DeviceId;

/// The reason why a call of `Auth` failed.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The state folder or the token file is not safe to use. Contains the cause and the fix.
    #[error("{}: {}", .0.display(), .1)]
    Unsafe(PathBuf, String),
    /// The state folder or a file in it cannot be read or written.
    #[error("{}: {}", .0.display(), .1)]
    File(PathBuf, String),
    /// No gateway has ever started in this state folder.
    #[error("{} does not exist: start the gateway with `plexus serve` first", .0.display())]
    NoToken(PathBuf),
    /// The system's random number generator failed.
    #[error("the system provides no random numbers: {0}")]
    Random(String),
    /// A device's row cannot be read.
    #[error("the record of a device is damaged: {0}")]
    BadRow(String),
    /// The change could not be stored.
    #[error("the change to the devices cannot be stored: {0}")]
    Storage(String),
    /// The code is unknown, used or expired. Clients do not learn which.
    #[error("the code is wrong, used or expired: ask for a new one")]
    BadCode,
    /// The device does not exist.
    #[error("there is no device {0}")]
    NoDevice(DeviceId),
    /// The local administrator cannot be changed.
    #[error("this machine's own administrator cannot be {0}")]
    Local(&'static str),
    /// A link to a session has no such rights.
    #[error("a link to a session cannot do this: {0}")]
    Share(&'static str),
    /// The pairing cannot continue.
    #[error("{0}")]
    Pairing(PairingFault),
    /// Too many wrong codes were tried, so none is checked now.
    #[error("too many wrong codes: wait {} s, then start again", .0.as_secs().saturating_add(1))]
    TooMany(Duration),
    /// The call is invalid. Contains the cause and the fix.
    #[error("{0}")]
    Invalid(String),
}

impl AuthError {
    pub(super) fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::File(path.into(), error.to_string())
    }
}

/// The reason why a pairing cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairingFault {
    /// The pairing does not exist, or it ended long ago or before a restart.
    #[error("there is no such pairing: start a new one")]
    Unknown,
    /// No phone has joined yet.
    #[error("no device has joined yet: there is nothing to confirm")]
    NotJoined,
    /// The number differs from that of the phone.
    #[error("the device shows a different number: refuse it unless both numbers are equal")]
    WrongNumber,
    /// The pairing is confirmed already.
    #[error("this pairing is already confirmed: to undo it, revoke the device")]
    Confirmed,
    /// The computer refused.
    #[error("the pairing was refused on the computer")]
    Refused,
    /// The pairing expired.
    #[error("this pairing has expired: start a new one")]
    Expired,
}
