//! ACP content blocks made by the gateway.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Returns the content block of a plain text. Its bytes are the same in every build; the bytes of `json!` are not, because the order of
/// members is a serde_json feature that any crate may turn on.
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
