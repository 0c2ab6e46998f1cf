//! Identifiers, positions and cursors.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

/// Maximum length of an identifier that a client may send, in bytes; a longer one is refused as malformed.
const ID_MAX: usize = 128;

/// The error for text that is not an identifier: empty, too long, or with a character outside `A-Z a-z 0-9 _ - . :`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an identifier: use 1 to 128 of A-Z a-z 0-9 _ - . :")]
pub struct BadId;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
        #[schema(value_type = String, pattern = "^[A-Za-z0-9_.:-]{1,128}$")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the identifier's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Makes an identifier from text of the gateway itself, unchecked.
            pub fn trusted(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                let is_valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':');
                if text.is_empty() || text.len() > ID_MAX || !text.bytes().all(is_valid) {
                    return Err(BadId);
                }
                Ok(Self(text.into()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

text_id!(
    /// An attached agent program or endpoint, named by its user (`gemini`) or after its preset (`gemini-2`).
    RuntimeId
);
text_id!(
    /// One conversation in a runtime: `s_` and 26 characters, minted by the gateway.
    SessionId
);
text_id!(
    /// The work that follows one prompt: `r_` and 26 characters, minted by the gateway.
    RunId
);
text_id!(
    /// A question from a runtime to users: `q_` and 26 characters, unguessable (130 bits).
    RequestId
);
text_id!(
    /// An enrolled client installation: `d_` and 26 characters.
    DeviceId
);
text_id!(
    /// A shared terminal: `t_` and 8 characters, minted where it is started.
    TerminalId
);

/// A session's identifier inside its runtime: opaque text that the gateway never interprets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[schema(value_type = String)]
pub struct NativeId(pub Arc<str>);

impl NativeId {
    /// Returns the runtime's own text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for NativeId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for NativeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A number that links a command to a runtime with the runtime's later events about it. Unique within one gateway process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ticket(pub u64);

/// An event's position in the gateway's log: strictly increasing from 1, never reused. 0 is before the first event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct Position(pub u64);

impl Position {
    /// The position before the first event.
    pub const START: Self = Self(0);

    /// Returns the position after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of an unbroken sequence of the log. A random word stored with the log; it changes only when the log was lost or cut, so that
/// a cursor into an earlier log is recognized.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Epoch(Arc<str>);

impl Epoch {
    /// Maximum length of an epoch, in bytes.
    pub const MAX: usize = 32;

    /// Makes an epoch from its text.
    ///
    /// # Errors
    /// [`BadCursor`] unless 1 to 32 ASCII letters and digits.
    pub fn new(text: &str) -> Result<Self, BadCursor> {
        if text.is_empty() || text.len() > Self::MAX || !text.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(BadCursor);
        }
        Ok(Self(text.into()))
    }

    /// Returns the epoch's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A client's position in the log, as text `<epoch>:<position>`: the client has read everything up to and including `position`. The same
/// cursor works on every transport and with every filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The epoch of the log to which the position belongs.
    pub epoch: Epoch,
    /// The position of the last event that the client has read.
    pub position: Position,
}

/// The error for text that is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor: expected `<epoch>:<position>`, as the gateway sent it")]
pub struct BadCursor;

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let (epoch, position) = text.split_once(':').ok_or(BadCursor)?;
        if position.is_empty() || position.len() > 20 || !position.bytes().all(|b| b.is_ascii_digit()) {
            return Err(BadCursor);
        }
        Ok(Self { epoch: Epoch::new(epoch)?, position: Position(position.parse().map_err(|_| BadCursor)?) })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.position)
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_round_trips_and_refuses_junk() {
        let cursor: Cursor = "k3f9:1042".parse().unwrap();
        assert_eq!((cursor.epoch.as_str(), cursor.position), ("k3f9", Position(1042)));
        assert_eq!(cursor.to_string(), "k3f9:1042");
        for junk in
            ["", ":", "k3f9", "k3f9:", ":1", "k3f9:-1", "k3f9:+1", "k3f9:1x", "k 9:1", "k3f9:99999999999999999999"]
        {
            assert_eq!(junk.parse::<Cursor>(), Err(BadCursor), "{junk:?}");
        }
    }

    #[test]
    fn id_alphabet_is_narrow() {
        assert!("s_01ABC".parse::<SessionId>().is_ok());
        for junk in ["", "a b", "a/b", "a\n", "é", &"x".repeat(129)] {
            assert_eq!(junk.parse::<SessionId>(), Err(BadId), "{junk:?}");
        }
    }
}
