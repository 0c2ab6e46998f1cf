//! Prompts for agents that accept only text.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::jsonrpc::object;

/// Returns the text of a prompt from ACP content blocks; a file becomes `@path`, as users type it in terminals. `taker`
/// is the agent that accepts only text.
///
/// # Errors
/// Returns a message with the reason why a block cannot be sent.
pub fn prompt_text(content: &[Box<RawValue>], taker: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Content {
        Text {
            text: String,
        },
        ResourceLink {
            uri: String,
        },
        #[serde(other)]
        Other,
    }
    let mut texts = Vec::with_capacity(content.len());
    for block in content {
        match object::<Content>(block) {
            Some(Content::Text { text }) => texts.push(text),
            Some(Content::ResourceLink { uri }) => {
                texts.push(format!("@{}", uri.strip_prefix("file://").unwrap_or(&uri)));
            }
            _ => return Err(format!("{taker} accepts only text and links to files")),
        }
    }
    let text = texts.join("\n");
    if text.trim().is_empty() { Err("the prompt is empty".into()) } else { Ok(text) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn prompt_text_has_text_and_links_alone() {
        let blocks = |json: &[&str]| -> Vec<Box<RawValue>> {
            json.iter().map(|json| RawValue::from_string((*json).into()).unwrap()).collect()
        };
        let text = r#"{"type":"text","text":"look at"}"#;
        let link = r#"{"type":"resource_link","uri":"file:///a/b.rs","name":"b"}"#;
        assert_eq!(prompt_text(&blocks(&[text, link]), "it").unwrap(), "look at\n@/a/b.rs");
        for bad in [&[][..], &[r#"{"type":"text","text":" "}"#], &[text, r#"{"type":"image","data":""}"#], &["[]"]] {
            assert!(prompt_text(&blocks(bad), "it").is_err());
        }
    }
}
