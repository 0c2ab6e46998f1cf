//! Checks of a prompt's content, the same for all frontends.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Log, SessionError};
use plexus_protocol::{Kind, Resolver, RunId, SessionId, object};
use plexus_store::{ReadLimit, StoreError};

/// Default maximum size of a prompt, in bytes of its content.
pub const PROMPT_MAX: usize = 8 << 20;

/// The ACP content blocks of a prompt. Shared because they can be large; stored once, in a row of their own.
pub(super) type PromptContent = Arc<Vec<Box<RawValue>>>;

/// Maximum number of content blocks of one prompt; more are refused.
const BLOCKS: usize = 256;

/// The member that every ACP content block has.
#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    _kind: String,
}

/// Checks the content blocks of a prompt, whose total size may be `limit` bytes.
///
/// # Errors
/// [`SessionError::PromptTooLarge`]; [`SessionError::Invalid`] for too many blocks, and for values that are no block.
pub(super) fn check(content: &[Box<RawValue>], limit: usize) -> Result<(), SessionError> {
    let bytes = content.iter().map(|block| block.get().len()).sum();
    if bytes > limit {
        return Err(SessionError::PromptTooLarge { bytes, limit });
    }
    if content.len() > BLOCKS {
        return Err(SessionError::Invalid(format!("a prompt may have at most {BLOCKS} content blocks")));
    }
    for (n, block) in content.iter().enumerate() {
        if let Err(error) = object::from_str::<Block>(block.get()) {
            return Err(SessionError::Invalid(format!("`content[{n}]` is not an ACP content block: {error}")));
        }
    }
    Ok(())
}

/// Maximum size of a block that is searched for text, in bytes; longer ones are pasted files and images.
const TEXT_BLOCK: usize = 64 << 10;

/// Returns the text of the first block that has one.
pub(super) fn first_text(content: &[Box<RawValue>]) -> String {
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    let short = content.iter().filter(|block| block.get().len() <= TEXT_BLOCK);
    short
        .filter_map(|block| object::from_str::<Text>(block.get()).ok())
        .map(|block| block.text)
        .next()
        .unwrap_or_default()
}

/// The ACP content blocks of a prompt.
type PromptBlocks = Vec<Box<RawValue>>;

/// Limit of one read of the log.
const SLICE: ReadLimit = ReadLimit { events: 1024, bytes: 256 << 10 };

/// Finds the named run, or the last one, with its prompt if the gateway sent it and it is still stored. Reads the log back to the
/// beginning of that run, one slice in memory at a time.
///
/// # Errors
/// The errors of the store.
pub(super) fn find(
    log: &Log,
    session: &SessionId,
    requested: Option<&RunId>,
) -> Result<Option<(RunId, Option<PromptBlocks>)>, StoreError> {
    #[derive(Deserialize)]
    struct UserChunk {
        content: Box<RawValue>,
        // Only the gateway's own events name the sender; an agent's echo does not.
        #[serde(rename = "_meta")]
        _meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "plexus")]
        _plexus: By,
    }
    #[derive(Deserialize)]
    struct By {
        #[serde(rename = "by")]
        _by: Resolver,
    }
    // The blocks of `current`, the last one first.
    let (mut current, mut blocks): (Option<RunId>, PromptBlocks) = (None, Vec::new());
    let mut before = log.head().next();
    loop {
        let events = log.read_before_blocking(session, before, SLICE)?;
        let Some(first) = events.first() else { break };
        before = first.position;
        for event in events.iter().rev().filter(|event| requested.is_none_or(|requested| *requested == event.run_id)) {
            match event.kind {
                Kind::RunStarted => {
                    if current.as_ref() != Some(&event.run_id) {
                        blocks.clear();
                    }
                    blocks.reverse();
                    return Ok(Some((event.run_id.clone(), Some(blocks).filter(|blocks| !blocks.is_empty()))));
                }
                Kind::UserMessageChunk => {
                    let Ok(chunk) = object::from_slice::<UserChunk>(&event.body) else { continue };
                    if current.as_ref() != Some(&event.run_id) {
                        blocks.clear();
                        current = Some(event.run_id.clone());
                    }
                    blocks.push(chunk.content);
                }
                _ if requested.is_some() => current = Some(event.run_id.clone()),
                _ => {}
            }
        }
    }
    // The run never began, or its beginning is no longer stored.
    Ok(current.filter(|_| requested.is_some()).map(|run_id| (run_id, None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(blocks: &[&str], limit: usize) -> String {
        let content: Vec<Box<RawValue>> = blocks.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        check(&content, limit).map_or_else(|refusal| refusal.to_string(), |()| "valid".into())
    }

    #[test]
    fn prompt_check_wants_typed_objects_within_the_size_limit() {
        let text = r#"{"type":"text","text":"hello"}"#;
        assert_eq!(checked(&[text, r#"{"type":"mine","x":[1]}"#], 1000), "valid");
        assert_eq!(checked(&[text; BLOCKS], 100_000), "valid");
        assert!(checked(&[text; BLOCKS + 1], 100_000).contains("at most 256"));
        assert!(checked(&[text, text], 2 * text.len()).contains("valid"));
        assert!(checked(&[text, text], 2 * text.len() - 1).contains("may have at most 59 bytes"));
        for bad in [r#"["text"]"#, r#"["text","hello"]"#, r#""hello""#, "{}", r#"{"type":1}"#, "null", "7"] {
            assert!(checked(&[text, bad], 1000).contains("`content[1]` is not an ACP content block"), "{bad}");
        }
    }
}
