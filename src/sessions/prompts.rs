//! What a prompt may be, whichever surface it comes by.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Log, SessionError};
use plexus_protocol::{Kind, Resolver, RunId, SessionId, object};
use plexus_store::{ReadLimit, StoreError};

/// The longest prompt, in bytes of its content, where nothing else is said.
pub const PROMPT_MAX: usize = 8 << 20;

/// Content blocks of one prompt; more are refused.
const BLOCKS: usize = 256;

/// What every content block of ACP has.
#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    _kind: String,
}

/// Checks a prompt's content blocks; all of them together may have `limit` bytes.
///
/// # Errors
/// [`SessionError::PromptTooLarge`]; [`SessionError::Invalid`] for too many blocks, and for what is none.
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

/// What a run was asked: ACP content blocks.
type PromptBlocks = Vec<Box<RawValue>>;

/// What is read of the log in one go.
const SLICE: ReadLimit = ReadLimit { events: 1024, bytes: 256 << 10 };

/// The run named, or the last one, and what it was asked, where the gateway asked it and it is still kept. Reads back to
/// where that run began, and holds no more of the log than a slice.
///
/// # Errors
/// Those of the store.
pub(super) fn prompt_of(
    log: &Log,
    session: &SessionId,
    wanted: Option<&RunId>,
) -> Result<Option<(RunId, Option<PromptBlocks>)>, StoreError> {
    #[derive(Deserialize)]
    struct Said {
        content: Box<RawValue>,
        // Only the gateway says who asked.
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
    // The last block first, of the run that is being read.
    let (mut of, mut blocks): (Option<RunId>, PromptBlocks) = (None, Vec::new());
    let mut before = log.head().next();
    loop {
        let events = log.read_before_blocking(session, before, SLICE)?;
        let Some(first) = events.first() else { break };
        before = first.position;
        for event in events.iter().rev().filter(|event| wanted.is_none_or(|wanted| *wanted == event.run_id)) {
            match event.kind {
                Kind::RunStarted => {
                    if of.as_ref() != Some(&event.run_id) {
                        blocks.clear();
                    }
                    blocks.reverse();
                    return Ok(Some((event.run_id.clone(), Some(blocks).filter(|blocks| !blocks.is_empty()))));
                }
                Kind::UserMessageChunk => {
                    let Ok(said) = object::from_slice::<Said>(&event.body) else { continue };
                    if of.as_ref() != Some(&event.run_id) {
                        blocks.clear();
                        of = Some(event.run_id.clone());
                    }
                    blocks.push(said.content);
                }
                _ if wanted.is_some() => of = Some(event.run_id.clone()),
                _ => {}
            }
        }
    }
    // It never began, or its beginning is no longer kept.
    Ok(of.filter(|_| wanted.is_some()).map(|run_id| (run_id, None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(blocks: &[&str], limit: usize) -> String {
        let content: Vec<Box<RawValue>> = blocks.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        check(&content, limit).map_or_else(|refusal| refusal.to_string(), |()| "fine".into())
    }

    #[test]
    fn a_prompt_is_some_objects_with_a_type_up_to_a_length() {
        let text = r#"{"type":"text","text":"hello"}"#;
        assert_eq!(checked(&[text, r#"{"type":"mine","x":[1]}"#], 1000), "fine");
        assert_eq!(checked(&[text; BLOCKS], 100_000), "fine");
        assert!(checked(&[text; BLOCKS + 1], 100_000).contains("at most 256"));
        assert!(checked(&[text, text], 2 * text.len()).contains("fine"));
        assert!(checked(&[text, text], 2 * text.len() - 1).contains("may have at most 59 bytes"));
        for bad in [r#"["text"]"#, r#"["text","hello"]"#, r#""hello""#, "{}", r#"{"type":1}"#, "null", "7"] {
            assert!(checked(&[text, bad], 1000).contains("`content[1]` is not an ACP content block"), "{bad}");
        }
    }
}
