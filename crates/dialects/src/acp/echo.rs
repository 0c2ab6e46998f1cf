//! Echoes of prompts: some agents send the prompt back as `user_message_chunk`. The session has already shown the
//! prompt, so an echo is dropped; a different text is a message of its own.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::jsonrpc::{self, Fields, object, string};
use super::Acp;
use super::open::quoted;
use plexus_protocol::{NativeId, Ticket};

/// Number of bytes of a prompt that are compared; of the rest only the length is. They are part of the saved state.
const COMPARED: usize = 1024;
/// Maximum number of blocks without text that are stored.
const BLOCKS: usize = 16;

/// The part of a prompt that was not echoed yet.
#[derive(Serialize, Deserialize)]
pub(super) struct Echo {
    /// The ticket of the prompt.
    ticket: Ticket,
    /// The text without white space: agents trim it, and split it anywhere.
    text: String,
    /// The number of characters after `text`.
    #[serde(rename = "beyond")]
    excess: usize,
    /// The types of the other blocks.
    blocks: Vec<String>,
    /// `true` after anything that is not an echo; then nothing that follows is one.
    differs: bool,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
}

/// Returns the type of a block, and its text if it is a text block.
fn read(block: &RawValue) -> Option<(Cow<'_, str>, Option<Cow<'_, str>>)> {
    let Block { kind, text } = object(block)?;
    let kind = string(kind?)?;
    let text = if kind == "text" { Some(string(text?)?) } else { None };
    Some((kind, text))
}

impl Echo {
    fn new(ticket: Ticket, content: &[Box<RawValue>]) -> Self {
        let mut echo = Self { ticket, text: String::new(), excess: 0, blocks: Vec::new(), differs: false };
        for (kind, text) in content.iter().filter_map(|block| read(block)) {
            match text {
                Some(text) => text.chars().filter(|c| !c.is_whitespace()).for_each(|c| {
                    if echo.excess == 0 && echo.text.len() < COMPARED {
                        echo.text.push(c);
                    } else {
                        echo.excess += 1;
                    }
                }),
                None if echo.blocks.len() < BLOCKS => echo.blocks.push(kind.into_owned()),
                None => {}
            }
        }
        echo
    }

    /// Returns whether a block continues the echo.
    fn consume(&mut self, block: &RawValue) -> bool {
        match read(block) {
            Some((_, Some(text))) => {
                let (mut at, mut excess) = (0, self.excess);
                for c in text.chars().filter(|c| !c.is_whitespace()) {
                    match self.text[at..].chars().next() {
                        Some(next) if next == c => at += c.len_utf8(),
                        None if excess > 0 => excess -= 1,
                        _ => return false,
                    }
                }
                self.text.drain(..at);
                self.excess = excess;
                true
            }
            Some((kind, None)) => {
                let found = self.blocks.iter().position(|known| *known == kind);
                found.map(|at| self.blocks.remove(at)).is_some()
            }
            None => false,
        }
    }
}

impl Acp {
    /// Expects an echo of a prompt that is sent to the agent.
    pub(super) fn expect_echo(&mut self, ticket: Ticket, native: &NativeId, content: &[Box<RawValue>]) {
        self.echoes.insert(native.clone(), Echo::new(ticket, content));
    }

    /// Returns the event body for a chunk of a user message; `None` if it is an echo of the prompt.
    pub(super) fn chunk_body(&mut self, frame: &Bytes, native: &NativeId, update: &RawValue) -> Option<Bytes> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Chunk<'a> {
            #[serde(borrow)]
            content: Option<&'a RawValue>,
            message_id: Option<&'a RawValue>,
        }
        let whole = jsonrpc::slice(frame, update);
        let (Some(echo), Some(chunk)) = (self.echoes.get_mut(native), object::<Chunk<'_>>(update)) else {
            return Some(whole);
        };
        if !echo.differs && chunk.content.is_some_and(|content| echo.consume(content)) {
            return None;
        }
        echo.differs = true;
        if chunk.message_id.and_then(string).is_some() {
            return Some(whole);
        }
        // An id separates the message from the prompt before it.
        let Some(Fields(fields)) = object(update) else { return Some(whole) };
        let members = fields.iter().filter(|(key, _)| key != "messageId");
        let members: Vec<String> = members.map(|(key, value)| format!("{}:{}", quoted(key), value.get())).collect();
        let body = format!(r#"{{{},"messageId":"user-{}"}}"#, members.join(","), echo.ticket.0);
        let body = RawValue::from_string(body).unwrap_or_else(|_| update.to_owned());
        Some(String::from(Box::<str>::from(jsonrpc::owned(&body))).into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::super::rig::{Rig, spec};
    use super::super::super::{RuntimeEvent, find};

    fn chunk(content: &Value, more: &Value) -> String {
        let mut update = json!({ "sessionUpdate": "user_message_chunk", "content": content });
        update.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "method": "session/update", "params": { "sessionId": "s", "update": update } }).to_string()
    }

    fn says(rig: &mut Rig, text: &str) -> Vec<Value> {
        rig.feed(chunk(&json!({ "type": "text", "text": text }), &json!({})));
        let told = |event: RuntimeEvent| match event {
            RuntimeEvent::Event { draft, .. } => serde_json::from_slice(&draft.body).unwrap(),
            other => panic!("{other:?}"),
        };
        rig.take_events().into_iter().map(told).collect()
    }

    /// Makes a session with a prompt in progress as request 2.
    fn asked(text: &str) -> Rig {
        let mut rig = Rig::new(&spec("acp"));
        rig.feed(r#"{"id":0,"result":{"protocolVersion":1}}"#);
        rig.open(1);
        rig.feed(r#"{"id":1,"result":{"sessionId":"s"}}"#);
        rig.prompt(7, "s", text);
        rig.take_events();
        rig.sent();
        rig
    }

    #[test]
    fn acp_echo_of_a_prompt_is_not_shown_twice() {
        // Whole, trimmed, in pieces that end anywhere, and again with each prompt.
        for pieces in
            [&["  Why does\nit fail?\n"][..], &["Why does\nit fail?"], &["Wh", "y does", "\n", "it fail", "?"]]
        {
            let mut rig = asked("  Why does\nit fail?\n");
            for piece in pieces {
                assert!(says(&mut rig, piece).is_empty(), "{piece:?} of {pieces:?}");
            }
            rig.feed(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
            rig.take_events();
            rig.prompt(8, "s", "and now");
            rig.take_events();
            assert!(says(&mut rig, "and now").is_empty());
        }
        // The prompt is longer than the compared part.
        let long = "ü x".repeat(5000);
        let mut rig = asked(&long);
        for piece in long.chars().collect::<Vec<_>>().chunks(777) {
            assert!(says(&mut rig, &piece.iter().collect::<String>()).is_empty());
        }
        assert_eq!(says(&mut rig, "more").len(), 1);
    }

    #[test]
    fn acp_echo_that_differs_is_a_message_of_its_own() {
        let mut rig = asked("see @a.txt");
        let told = [says(&mut rig, "see "), says(&mut rig, "<file>"), says(&mut rig, "see @a.txt")].concat();
        let texts: Vec<_> = told.iter().map(|body| body["content"]["text"].as_str().unwrap()).collect();
        assert_eq!(texts, ["<file>", "see @a.txt"]);
        assert!(told.iter().all(|body| body["messageId"] == "user-7"), "{told:?}");
        // Names of its own stay, numbers are unchanged, and a picture that was in no prompt is reported.
        let mut rig = asked("x");
        rig.feed(chunk(
            &json!({ "type": "image", "data": "AA==", "mimeType": "image/png" }),
            &json!({ "messageId": "m" }),
        ));
        let body: Value = serde_json::from_slice(&rig.event().body).unwrap();
        assert_eq!((&body["messageId"], &body["content"]["data"]), (&json!("m"), &json!("AA==")));
        // With no prompt in progress the message is another user's, and unchanged.
        rig.feed(r#"{"id":2,"result":{"stopReason":"end_turn"}}"#);
        rig.take_events();
        let told = says(&mut rig, "x");
        assert!(told.len() == 1 && told[0].get("messageId").is_none(), "{told:?}");
    }

    #[test]
    fn acp_echo_is_recognized_by_the_next_gateway() {
        let mut rig = asked("one two three");
        assert!(says(&mut rig, "one").is_empty());
        let saved = rig.dialect.save().unwrap();
        let mut again = find("acp").unwrap()(&spec("acp"));
        assert!(again.restore(&saved));
        rig.dialect = again;
        assert!(says(&mut rig, " two three").is_empty());
        assert_eq!(says(&mut rig, "one").len(), 1);
    }
}
