//! The text of a JSON string, a slice at a time: it may be as long as a line, and readers of its beginning need no copy of the whole.
//! Pure.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// An iterator over the text of a JSON string, in slices.
pub(super) struct StringSlices<'a> {
    rest: &'a str,
    max: usize,
}

impl<'a> StringSlices<'a> {
    /// Makes slices of `max` bytes of JSON, or a few bytes more: no character and no escape is cut. `None` if `json` is not a string.
    pub(super) fn new(json: &'a RawValue, max: usize) -> Option<Self> {
        let rest = json.get().strip_prefix('"')?.strip_suffix('"')?;
        Some(Self { rest, max: max.max(1) })
    }

    /// Returns the end of the next slice.
    fn end(&self) -> usize {
        let bytes = self.rest.as_bytes();
        // A high surrogate with another escape after it.
        let pair = |at: usize| {
            matches!(bytes.get(at + 2..at + 4), Some([b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B']))
                && bytes.get(at + 6..at + 8) == Some(b"\\u")
        };
        let mut end = 0;
        while end < self.max
            && let Some(&byte) = bytes.get(end)
        {
            end += match (byte, bytes.get(end + 1)) {
                // The two escapes of a surrogate pair are one character.
                (b'\\', Some(b'u')) if pair(end) => 12,
                (b'\\', Some(b'u')) => 6,
                (b'\\', _) => 2,
                (..0x80, _) => 1,
                (..0xe0, _) => 2,
                (..0xf0, _) => 3,
                _ => 4,
            };
        }
        self.rest.floor_char_boundary(end)
    }
}

impl<'a> Iterator for StringSlices<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Self::Item> {
        let (slice, rest) = self.rest.split_at(self.end());
        self.rest = rest;
        if slice.is_empty() {
            return None;
        }
        if !slice.contains('\\') {
            return Some(Cow::Borrowed(slice));
        }
        // A lone surrogate is not a character: a slice that contains one yields nothing.
        Some(Cow::Owned(serde_json::from_str(&format!("\"{slice}\"")).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn joined(json: &str, max: usize) -> Option<String> {
        let raw = RawValue::from_string(json.into()).unwrap();
        let slices = StringSlices::new(&raw, max)?;
        Some(slices.inspect(|slice| assert!(slice.len() <= max + 12)).collect())
    }

    proptest! {
        #[test]
        fn string_slices_join_to_the_string(text in any::<String>(), max in 1..40usize, ascii in any::<bool>()) {
            let mut json = serde_json::to_string(&text).unwrap();
            if ascii {
                // As writers do that escape all that is not ASCII.
                let units = text.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
                json = format!("\"{}\"", units.collect::<String>());
            }
            prop_assert_eq!(joined(&json, max), Some(text));
        }
    }

    #[test]
    fn string_slices_reject_other_json_and_drop_half_surrogates() {
        assert_eq!(joined("17", 9), None);
        assert_eq!(joined("{\"a\":\"b\"}", 9), None);
        assert_eq!(joined("\"\"", 9).as_deref(), Some(""));
        assert_eq!(joined(r#""one \ud800 two""#, 4).as_deref(), Some("one  two"));
    }
}
