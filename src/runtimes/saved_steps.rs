//! Steps: the data that a driver gives a holder in place of a whole state, with the frames that the steps wrote. A dialect is a state
//! machine without a clock, so the same steps, made from the same state at the same positions in the output, lead to the same state and
//! write the same messages. This is checked: a gateway that would have written others does not continue with the runtime. Messages are
//! the same if they have the same method and identifier: their other members may change from one version to the next, and the order of
//! members with every build.
//!
//! A step consists of four bytes that begin no whole state, a checksum of the messages, and JSON: the command, or `null` for the line
//! before it.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use plexus_dialects::RuntimeCommand;
use plexus_protocol::object;

/// The beginning of a step; a whole state begins with the length of its head, which is never so long.
const MARK: [u8; 4] = [0xff; 4];

/// A step that was made.
pub(super) struct SavedStep {
    /// The [`checksum`] of the frames that the step wrote.
    pub(super) wrote: u32,
    pub(super) entry: StepEntry,
}

/// The cause of a step.
pub(super) enum StepEntry {
    /// The line of output that ends at the step.
    Frame,
    /// A command.
    Command(RuntimeCommand),
}

/// Returns whether a blob is a step, and not a whole state.
pub(super) fn is_step(blob: &[u8]) -> bool {
    blob.starts_with(&MARK)
}

/// Returns the checksum of frames: of the methods and identifiers of their messages, and of whether they refuse. A frame that is not a
/// JSON-RPC message counts byte for byte.
pub(super) fn checksum(frames: &[Bytes]) -> u32 {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        #[serde(borrow)]
        method: Option<&'a RawValue>,
        #[serde(borrow)]
        error: Option<&'a RawValue>,
    }
    let mut hasher = crc32fast::Hasher::new();
    for frame in frames {
        match object::from_slice::<Head<'_>>(frame) {
            Ok(Head { id, method, error }) if id.is_some() || method.is_some() => {
                for part in [id, method] {
                    hasher.update(part.map_or("", RawValue::get).as_bytes());
                    hasher.update(b"\n");
                }
                hasher.update(&[u8::from(error.is_some())]);
            }
            _ => hasher.update(frame),
        }
    }
    hasher.finalize()
}

/// Returns the step made for a line.
pub(super) fn for_frame(frames: &[Bytes]) -> Bytes {
    for_command(frames, b"null")
}

/// Returns the step made for a command, given as JSON.
pub(super) fn for_command(frames: &[Bytes], command: &[u8]) -> Bytes {
    [&MARK[..], &checksum(frames).to_be_bytes(), command].concat().into()
}

/// Reads a step; `None` if it is not a step of this version.
pub(super) fn read(blob: &[u8]) -> Option<SavedStep> {
    let (wrote, entry) = blob.strip_prefix(&MARK)?.split_first_chunk::<4>()?;
    let entry = match serde_json::from_slice::<Option<RuntimeCommand>>(entry).ok()? {
        Some(command) => StepEntry::Command(command),
        None => StepEntry::Frame,
    };
    Some(SavedStep { wrote: u32::from_be_bytes(*wrote), entry })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_covers_what_messages_are_and_not_how_they_are_written() {
        let of =
            |frames: &[&str]| checksum(&frames.iter().map(|frame| Bytes::from(frame.to_string())).collect::<Vec<_>>());
        let prompt =
            of(&["{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/prompt\",\"params\":{\"a\":1,\"b\":2}}\n"]);
        // As another build orders them, and as a later version words them.
        assert_eq!(of(&[r#"{"id":7,"jsonrpc":"2.0","method":"session/prompt","params":{"b":2,"a":1}}"#]), prompt);
        assert_eq!(of(&[r#"{"id":7,"method":"session/prompt","params":{"a":1,"b":2,"_meta":{}}}"#]), prompt);
        let answer = of(&[r#"{"id":7,"result":{"outcome":{"optionId":"y","outcome":"selected"}}}"#]);
        assert_eq!(of(&[r#"{"id":7,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#]), answer);
        let others = [
            of(&[]),
            of(&[r#"{"id":8,"method":"session/prompt","params":{"a":1,"b":2}}"#]),
            of(&[r#"{"id":"7","method":"session/prompt","params":{"a":1,"b":2}}"#]),
            of(&[r#"{"id":7,"method":"session/cancel","params":{"a":1,"b":2}}"#]),
            of(&[r#"{"method":"session/prompt","params":{"a":1,"b":2}}"#]),
            of(&[r#"{"id":7,"error":{"code":1,"message":"no"}}"#]),
            of(&[r#"{"id":7,"method":"session/prompt"}"#, r#"{"method":"session/cancel"}"#]),
            of(&["no message"]),
            of(&["another"]),
            of(&["[7]"]),
            answer,
            prompt,
        ];
        for (n, one) in others.iter().enumerate() {
            assert!(!others[..n].contains(one), "{n}");
        }
    }
}
