//! Agents that tell a prompt back as `user_message_chunk`s while they work on it: the log has it already, as the gateway's own
//! event. What repeats it from its beginning is left out, each piece once; other words of the user's are told as they are.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::jsonrpc::{object, string};
use crate::model::NativeId;

/// Longest prompt that is looked for, in bytes; the state is kept by the holder.
const ECHO_MAX: usize = 16 * 1024;

/// What an agent may still tell back, by session.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Echoes(HashMap<NativeId, String>);

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

impl Echoes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A prompt is sent.
    pub(super) fn prompted(&mut self, native: &NativeId, content: &[Box<RawValue>]) {
        let words: String = content.iter().filter_map(|block| text(block)).collect();
        if words.trim().is_empty() || words.len() > ECHO_MAX {
            self.0.remove(native);
        } else {
            self.0.insert(native.clone(), words);
        }
    }

    /// The work on a prompt is over.
    pub(super) fn over(&mut self, native: &NativeId) {
        self.0.remove(native);
    }

    /// Whether a chunk of the user's words repeats the prompt where the last one left off.
    pub(super) fn repeats(&mut self, native: &NativeId, update: &RawValue) -> bool {
        #[derive(Deserialize)]
        struct Chunk<'a> {
            #[serde(borrow)]
            content: Option<&'a RawValue>,
        }
        if self.0.is_empty() {
            return false;
        }
        let said = object::<Chunk<'_>>(update).and_then(|chunk| text(chunk.content?));
        let (Some(left), Some(said)) = (self.0.get(native), said) else { return false };
        // Some put a line feed between blocks, or after the last.
        let rest = left.strip_prefix(said.as_str()).or_else(|| left.trim_start().strip_prefix(said.trim()));
        let rest = rest.filter(|_| !said.is_empty()).map(str::to_owned);
        match rest {
            Some(rest) if rest.trim().is_empty() => self.0.remove(native),
            Some(rest) => return self.0.insert(native.clone(), rest).is_some(),
            None => {
                // Words of another's: they are told, and so is what follows.
                self.0.remove(native);
                return false;
            }
        }
        .is_some()
    }
}

fn text(block: &RawValue) -> Option<String> {
    object::<Block<'_>>(block)?.text.and_then(string).map(std::borrow::Cow::into_owned)
}
