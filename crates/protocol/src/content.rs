//! ACP content blocks of our own.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// A content block that is this text: the one way in which plain words become a prompt. Its bytes are the same in every
/// build; those of `json!` are not, as the order of members there is a feature of serde_json, which any crate may turn on.
#[must_use]
pub fn text_block(text: &str) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Block<'a> {
        #[serde(rename = "type")]
        kind: &'a str,
        text: &'a str,
    }
    to_raw_value(&Block { kind: "text", text }).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_text_block_keeps_every_byte() {
        assert_eq!(text_block("a\n\"b\"").get(), r#"{"type":"text","text":"a\n\"b\""}"#);
    }
}
