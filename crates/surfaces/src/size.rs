//! The size of a JSON value as a sum, so that the size of a part can be added or subtracted without reading the rest.

use serde_json::{Map, Value};

use super::error::SurfaceError;
use super::limits::{DEPTH_MAX, STRING_MAX};

/// The number of values that an object counts as: its map takes more memory than its members.
const OBJECT: usize = 8;
/// The number of bytes that a fraction counts as.
const FRACTION: usize = 18;

/// The size of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// The approximate size as JSON, in bytes.
    pub(crate) bytes: usize,
    /// The number of values.
    pub(crate) values: usize,
}

impl Size {
    pub(crate) fn measure(value: &Value) -> Self {
        match value {
            Value::Null | Value::Bool(_) => Self { bytes: 5, values: 1 },
            Value::Number(number) => {
                let digits = number.as_i64().map(|n| n.unsigned_abs()).or(number.as_u64());
                let bytes = digits.map_or(FRACTION, |n| n.checked_ilog10().unwrap_or(0) as usize + 2);
                Self { bytes, values: 1 }
            }
            Value::String(text) => Self { bytes: quoted(text), values: 1 },
            Value::Array(items) => items.iter().fold(Self { bytes: 2, values: 1 }, |sum, item| sum.with_item(item)),
            Value::Object(members) => Self::measure_object(members),
        }
    }

    pub(crate) fn measure_object(members: &Map<String, Value>) -> Self {
        members.iter().fold(Self { bytes: 2, values: OBJECT }, |sum, (key, value)| {
            sum.plus(Self::measure_key(key)).plus(Self::measure(value))
        })
    }

    /// Returns the size of an empty array.
    pub(crate) const fn empty_array() -> Self {
        Self { bytes: 2, values: 1 }
    }

    /// Returns the size of a key beside its value.
    pub(crate) fn measure_key(key: &str) -> Self {
        Self { bytes: quoted(key) + 2, values: 0 }
    }

    /// Returns the size with one more item of an array.
    pub(crate) fn with_item(self, item: &Value) -> Self {
        let size = Self::measure(item);
        Self { bytes: self.bytes + size.bytes + 1, values: self.values + size.values }
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, values: self.values + other.values }
    }

    pub(crate) const fn minus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(other.bytes), values: self.values.saturating_sub(other.values) }
    }
}

/// Returns the length of a string in JSON, in bytes.
fn quoted(text: &str) -> usize {
    let escapes = text.bytes().map(|b| match b {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        0..0x20 => 5,
        _ => 0,
    });
    text.len() + 2 + escapes.sum::<usize>()
}

/// Checks the depth, the strings and the keys of a value at a place that is `above` levels deep.
pub(crate) fn check_value(value: &Value, above: usize) -> Result<(), String> {
    if above > DEPTH_MAX {
        return Err(format!("the JSON is more than {DEPTH_MAX} levels deep: make it flatter"));
    }
    match value {
        Value::String(text) => string_fits(text),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(item, above + 1)),
        Value::Object(members) => members.iter().try_for_each(|(key, value)| {
            if key == "__proto__" {
                return Err("__proto__ is not allowed as a key".to_owned());
            }
            string_fits(key)?;
            check_value(value, above + 1)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

pub(crate) fn string_fits(text: &str) -> Result<(), String> {
    if text.len() <= STRING_MAX {
        return Ok(());
    }
    Err(format!("a string has {} bytes, and {STRING_MAX} are the most", text.len()))
}

/// Checks data at a path like [`check_value`].
pub(crate) fn check_data(value: &Value, path: &super::pointer::Pointer) -> Result<(), SurfaceError> {
    check_value(value, path.segments().len() + 1).map_err(|why| SurfaceError::data(path, why))
}
