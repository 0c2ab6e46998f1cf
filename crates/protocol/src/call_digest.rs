//! Digests of tool calls, which distinguish the calls if an agent's server shares its list of tools among sessions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// Size of a digest, in bytes.
const BYTES: usize = 16;

/// Prefix of the name of the MCP server that the gateway gives to a session's agent. Many agents name its tools `SERVER_TOOL`.
pub const OWN_SERVER_PREFIX: &str = "plexus_";

/// A digest of a tool call: of the tool's whole name and of the arguments, regardless of the order of their members. Its text form is 32
/// hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CallDigest([u8; BYTES]);

impl CallDigest {
    /// Returns the digest of a call.
    pub fn new(tool: &str, arguments: &Map<String, Value>) -> Self {
        let mut hash = Sha256::new();
        hash.update(tool.len().to_be_bytes());
        hash.update(tool);
        members(arguments, &mut hash);
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(&hash.finalize()[..BYTES]);
        Self(bytes)
    }
}

/// Hashes a value. Each value begins with its kind, and each text with its length: no two values hash the same bytes.
fn value(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Null => hash.update([b'0']),
        Value::Bool(truth) => hash.update([b'1', u8::from(*truth)]),
        Value::Number(number) => text(b'2', &number.to_string(), hash),
        Value::String(string) => text(b'3', string, hash),
        Value::Array(items) => {
            hash.update([b'4']);
            hash.update(items.len().to_be_bytes());
            items.iter().for_each(|item| self::value(item, hash));
        }
        Value::Object(object) => members(object, hash),
    }
}

fn members(object: &Map<String, Value>, hash: &mut Sha256) {
    hash.update([b'5']);
    hash.update(object.len().to_be_bytes());
    let mut members: Vec<_> = object.iter().collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    for (name, member) in members {
        text(b'6', name, hash);
        value(member, hash);
    }
}

fn text(kind: u8, text: &str, hash: &mut Sha256) {
    hash.update([kind]);
    hash.update(text.len().to_be_bytes());
    hash.update(text);
}

impl fmt::Display for CallDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CallDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallDigest({self})")
    }
}

impl From<CallDigest> for String {
    fn from(digest: CallDigest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for CallDigest {
    type Error = BadDigest;

    fn try_from(text: String) -> Result<Self, BadDigest> {
        text.parse()
    }
}

/// The error for text that is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest of a call is 32 hexadecimal digits")]
pub struct BadDigest;

impl FromStr for CallDigest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Self, BadDigest> {
        let digits = text.as_bytes();
        if digits.len() != 2 * BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(BadDigest);
        }
        let mut bytes = [0; BYTES];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| BadDigest)?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn digest(tool: &str, arguments: &str) -> CallDigest {
        CallDigest::new(tool, &serde_json::from_str(arguments).unwrap())
    }

    #[test]
    fn digest_ignores_the_order_of_members() {
        let one = digest("plexus_a_ui_show", r#"{"surface":"x","data":{"b":[1,null],"a":"ü"}}"#);
        assert_eq!(one, digest("plexus_a_ui_show", r#"{ "data": {"a": "\u00fc", "b": [1, null]}, "surface": "x" }"#));
        for (tool, arguments) in [
            ("plexus_b_ui_show", r#"{"surface":"x","data":{"b":[1,null],"a":"ü"}}"#),
            ("plexus_a_ui_show", r#"{"surface":"x","data":{"b":[null,1],"a":"ü"}}"#),
            ("plexus_a_ui_show", r#"{"surface":"x","data":{"b":["1",null],"a":"ü"}}"#),
            ("plexus_a_ui_show", r#"{"surface":"x","data":{"b":[1,null]},"a":"ü"}"#),
            ("plexus_a_ui_show", r#"{"surface":"x"}"#),
            ("plexus_a_ui_show", "{}"),
        ] {
            assert_ne!(one, digest(tool, arguments), "{tool} {arguments}");
        }
        assert_ne!(digest("t", r#"{"a":{"b":1}}"#), digest("t", r#"{"a":{},"b":1}"#));
    }

    #[test]
    fn digest_is_parsed_from_its_text() {
        let one = digest("t", "{}");
        assert_eq!(one.to_string().parse(), Ok(one));
        for bad in ["", "0", "zz", &"0".repeat(31), &"g".repeat(32), &"é".repeat(16)] {
            assert_eq!(bad.parse::<CallDigest>(), Err(BadDigest), "{bad}");
        }
    }
}
