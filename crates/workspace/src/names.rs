//! Names: of objects, of sessions, and of paths as text.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use crate::error::{Result, WorkspaceError};

/// Maximum length of the identifier of a session, a run or a patch, in bytes; a longer one is refused.
const ID_MAX: usize = 120;

/// The SHA-1 name of a tree or blob in a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectName([u8; 20]);

impl ObjectName {
    /// Parses 40 hexadecimal digits in lower case.
    pub fn parse(text: &[u8]) -> Option<Self> {
        data_encoding::HEXLOWER.decode(text).ok()?.try_into().ok().map(Self)
    }

    /// Computes the name of a blob from its bytes.
    pub fn from_blob(bytes: &[u8]) -> Self {
        let mut digest = Sha1::new();
        digest.update(format!("blob {}\0", bytes.len()));
        digest.update(bytes);
        Self(digest.finalize().into())
    }

    pub(crate) const fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl From<ObjectName> for String {
    fn from(name: ObjectName) -> Self {
        name.to_string()
    }
}

impl TryFrom<String> for ObjectName {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        Self::parse(text.as_bytes()).ok_or("an object has a name of 40 hexadecimal digits")
    }
}

/// Computes a short digest of bytes, as 32 hexadecimal digits.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha1::digest(bytes)[..16])
}

/// Checks that an identifier can be part of a file name and of a reference.
pub(crate) fn checked_id(id: &str) -> Result<&str> {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if id.is_empty() || id.len() > ID_MAX || id.starts_with('-') || !id.bytes().all(sound) {
        return Err(WorkspaceError::BadId(id.chars().take(ID_MAX).collect()));
    }
    Ok(id)
}

/// Returns a path as text: unchanged if it is UTF-8, otherwise quoted as git does.
pub fn display_path(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) if !text.starts_with('"') => text.to_owned(),
        _ => quoted(b"", path),
    }
}

/// Parses a path that [`display_path`] returned.
pub fn read_path(text: &str) -> Vec<u8> {
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return text.as_bytes().to_vec();
    };
    let (mut out, mut rest) = (Vec::new(), inner.as_bytes());
    while let [first, more @ ..] = rest {
        rest = more;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        match rest {
            [b'n', more @ ..] => (rest, _) = (more, out.push(b'\n')),
            [b't', more @ ..] => (rest, _) = (more, out.push(b'\t')),
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', more @ ..] => {
                out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = more;
            }
            [other, more @ ..] => (rest, _) = (more, out.push(*other)),
            [] => {}
        }
    }
    out
}

/// Returns a path for the header of a patch.
pub(crate) fn header_path(prefix: &[u8], path: &[u8]) -> String {
    let plain = path.iter().all(|byte| !matches!(byte, 0..=31 | b'"' | b'\\' | 127..=255));
    if plain { String::from_utf8_lossy(&[prefix, path].concat()).into_owned() } else { quoted(prefix, path) }
}

fn quoted(prefix: &[u8], path: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in prefix.iter().chain(path) {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            0..=31 | 127..=255 => drop(write!(out, "\\{byte:03o}")),
            _ => out.push(char::from(*byte)),
        }
    }
    out.push('"');
    out
}
