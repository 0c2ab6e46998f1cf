//! What makes a prompt the same again.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::SessionError;
use super::state::PromptContent;
use plexus_protocol::DeviceId;

/// The key that a prompt came under, as it is kept with its run. It is its device's own: another device's same words are
/// another key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredPromptKey {
    key: String,
    by: DeviceId,
    /// Of what was asked, so that a key used for something else is noticed.
    digest: String,
}

impl StoredPromptKey {
    pub(super) fn key(&self) -> &str {
        &self.key
    }
}

/// The key that a prompt comes under, with the prompt.
#[derive(Clone, Debug)]
pub(super) struct PromptKey {
    once: StoredPromptKey,
    asked: PromptContent,
}

impl PromptKey {
    /// `key`: visible ASCII characters.
    pub(super) fn new(key: String, by: DeviceId, asked: PromptContent) -> Self {
        let digest = short(asked.iter().fold(Sha256::new(), |all, block| all.chain_update(meaning(block))));
        Self { once: StoredPromptKey { key, by, digest }, asked }
    }

    /// What is kept of it.
    pub(super) fn kept(self) -> StoredPromptKey {
        self.once
    }

    /// Whether it is this key.
    ///
    /// # Errors
    /// [`SessionError::KeyReused`]: it is, for something else.
    pub(super) fn is(&self, known: Option<&StoredPromptKey>) -> Result<bool, SessionError> {
        let Some(known) = known.filter(|known| known.key == self.once.key && known.by == self.once.by) else {
            return Ok(false);
        };
        let same =
            known.digest == self.once.digest || FORMER.iter().any(|form| known.digest == former(&self.asked, *form));
        if same { Ok(true) } else { Err(SessionError::KeyReused) }
    }
}

/// A digest's beginning: against mistakes, not against enemies, as a device fools only itself.
fn short(digest: Sha256) -> String {
    data_encoding::HEXLOWER.encode(digest.finalize().get(..8).unwrap_or_default())
}

/// How the release 0.1.0 wrote the text blocks that it made, which it then digested byte for byte: that depended on how it
/// was built.
#[derive(Clone, Copy)]
enum Form {
    /// As they came: blocks of the client's own.
    Given,
    TextFirst,
    TypeFirst,
}

const FORMER: [Form; 3] = [Form::Given, Form::TextFirst, Form::TypeFirst];

/// The digest that the release 0.1.0 kept.
fn former(asked: &[Box<RawValue>], form: Form) -> String {
    /// A block that is a text and nothing else.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Text<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        text: &'a RawValue,
    }
    let mut all = Sha256::new();
    for block in asked {
        let text = serde_json::from_str::<Text<'_>>(block.get()).ok().filter(|text| text.kind == "text");
        // Written anew: it may have come with other escapes.
        let text = text.and_then(|text| serde_json::from_str::<Cow<'_, str>>(text.text.get()).ok());
        let text = text.and_then(|text| serde_json::to_string(&text).ok());
        let written = match (form, text) {
            (Form::TextFirst, Some(text)) => Cow::Owned(format!(r#"{{"text":{text},"type":"text"}}"#)),
            (Form::TypeFirst, Some(text)) => Cow::Owned(format!(r#"{{"type":"text","text":{text}}}"#)),
            _ => Cow::Borrowed(block.get()),
        };
        all.update((written.len() as u64).to_le_bytes());
        all.update(written.as_bytes());
    }
    short(all)
}

/// A digest of what JSON says, however it is written: the order of members, spaces and escapes are nothing to it. It is
/// taken while the text is read, and holds none of it.
fn meaning(json: &RawValue) -> [u8; 32] {
    let mut digest = Sha256::new();
    let mut parser = serde_json::Deserializer::from_str(json.get());
    if (Meaning { into: &mut digest }).deserialize(&mut parser).is_err() {
        // Numbers and nesting beyond what serde_json reads, and halves of characters: byte for byte.
        digest = Sha256::new_with_prefix(json.get());
    }
    digest.finalize().into()
}

struct Meaning<'a> {
    into: &'a mut Sha256,
}

impl Meaning<'_> {
    /// One value: its kind, its length and its bytes, so that no two rows of values look the same.
    fn one(self, kind: u8, bytes: &[u8]) {
        self.into.update([kind]);
        self.into.update((bytes.len() as u64).to_le_bytes());
        self.into.update(bytes);
    }
}

impl<'de> DeserializeSeed<'de> for Meaning<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Meaning<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.one(b'n', &[]);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.one(b'b', &[u8::from(value)]);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.one(b'u', &value.to_le_bytes());
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.one(b'i', &value.to_le_bytes());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.one(b'f', &value.to_le_bytes());
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.one(b's', value.as_bytes());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.into.update([b'[']);
        while seq.next_element_seed(Meaning { into: self.into })?.is_some() {}
        self.into.update([b']']);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // A sum, as it is the same in any order.
        let (mut count, mut sum) = (0_u64, 0_u128);
        loop {
            let mut member = Sha256::new();
            if map.next_key_seed(Meaning { into: &mut member })?.is_none() {
                break;
            }
            map.next_value_seed(Meaning { into: &mut member })?;
            let digest: [u8; 32] = member.finalize().into();
            let half = digest.first_chunk::<16>().copied().unwrap_or_default();
            (count, sum) = (count + 1, sum.wrapping_add(u128::from_le_bytes(half)));
        }
        self.into.update([b'{']);
        self.into.update(count.to_le_bytes());
        self.into.update(sum.to_le_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use plexus_protocol::text_block;

    fn asked(blocks: &[&str]) -> PromptContent {
        Arc::new(blocks.iter().map(|block| serde_json::from_str(block).unwrap()).collect())
    }

    fn key(key: &str, by: &str, asked: PromptContent) -> PromptKey {
        PromptKey::new(key.into(), DeviceId::trusted(by), asked)
    }

    #[test]
    fn prompt_key_ignores_how_the_json_is_written() {
        let known =
            key("k", "d", asked(&[r#"{"type":"text","text":"a\nb","_meta":{"a":[1,{"x":null,"y":2.5}],"b":-1}}"#]));
        let known = known.kept();
        let again = |block: &str| key("k", "d", asked(&[block])).is(Some(&known));
        for same in [
            r#"{"_meta":{"b":-1,"a":[1,{"y":2.5,"x":null}]},"text":"a\nb","type":"text"}"#,
            "{ \"text\" : \"\\u0061\\u000ab\", \"type\":\"te\\u0078t\",\n\"_meta\":{\"a\":[1,{\"x\":null,\"y\":2.50}],\"b\":-1}}",
        ] {
            assert!(again(same).unwrap(), "{same}");
        }
        for other in [
            r#"{"type":"text","text":"a\nb"}"#,
            r#"{"type":"text","text":"a\nc","_meta":{"a":[1,{"x":null,"y":2.5}],"b":-1}}"#,
            r#"{"type":"text","text":"a\nb","_meta":{"a":[{"x":null,"y":2.5},1],"b":-1}}"#,
            r#"{"type":"text","text":"a\nb","_meta":{"a":[1,{"y":null,"x":2.5}],"b":-1}}"#,
            r#"{"type":"text","text":"a\nb","_meta":{"a":[1,{"x":null,"y":2.5}],"b":"-1"}}"#,
            r#"{"type":"text","text":"a\nb","_meta":{"a":[1,{"x":null,"y":2.5}],"b":-1},"more":null}"#,
        ] {
            assert!(matches!(again(other), Err(SessionError::KeyReused)), "{other}");
        }
        assert!(!key("l", "d", asked(&["{}"])).is(Some(&known)).unwrap(), "another key");
        assert!(!key("k", "e", asked(&["{}"])).is(Some(&known)).unwrap(), "another device's");
        assert!(!key("k", "d", asked(&["{}"])).is(None).unwrap());
    }

    #[test]
    fn prompt_key_tells_block_boundaries_apart() {
        let rows: [&[&str]; 7] = [
            &[r#"{"type":"a"}"#],
            &[r#"{"type":"a"}"#, r#"{"type":"a"}"#],
            &[r#"{"type":"a","x":["b","c"]}"#],
            &[r#"{"type":"a","x":["bc"]}"#],
            &[r#"{"type":"a","x":[["b"],"c"]}"#],
            &[r#"{"type":"a","x":["b",["c"]]}"#],
            &[r#"{"type":"a","x":{"b":"c"}}"#],
        ];
        let digests: std::collections::BTreeSet<String> =
            rows.iter().map(|row| key("k", "d", asked(row)).kept().digest).collect();
        assert_eq!(digests.len(), rows.len());
        // What cannot be read as a value is itself, byte for byte.
        let deep = format!(r#"{{"type":"a","x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        for odd in [r#"{"type":"a","x":1e999}"#, r#"{"type":"a","x":"\ud800"}"#, &deep] {
            let known = key("k", "d", asked(&[odd])).kept();
            assert!(key("k", "d", asked(&[odd])).is(Some(&known)).unwrap(), "{odd}");
            assert!(key("k", "d", asked(&[&odd.replace('a', "b")])).is(Some(&known)).is_err(), "{odd}");
        }
    }

    proptest::proptest! {
        #[test]
        fn prompt_key_of_text_equals_key_of_text_block(text: String, other: String) {
            let sorted = format!(r#"{{"text":{},"type":"text"}}"#, json!(text));
            let known = key("k", "d", Arc::new(vec![text_block(&text)])).kept();
            proptest::prop_assert!(key("k", "d", asked(&[&sorted])).is(Some(&known)).unwrap());
            let another = key("k", "d", Arc::new(vec![text_block(&other)])).is(Some(&known));
            proptest::prop_assert_eq!(another.is_ok(), text == other);
        }
    }

    /// The prompts of `session-keyed.json`, each under the key and with the digest that the binary of the release kept.
    #[test]
    fn prompt_key_matches_those_kept_by_release_0_1_0() {
        let row = include_bytes!("../../tests/fixtures/released-0.1.0-7961eb0/session-keyed.json");
        let row: Value = serde_json::from_slice(row).unwrap();
        let ended = row["keyed"].as_array().unwrap().iter().map(|keyed| &keyed["once"]);
        let all = ended.chain([&row["run"]["once"], &row["queue"][0]["once"]]);
        let all: Vec<StoredPromptKey> = all.map(|once| serde_json::from_value(once.clone()).unwrap()).collect();
        let script = |token: &str, asks: u8| format!(r#"{{"token":"{token}","chunks":1,"asks":{asks},"ms":1}}"#);
        let escaped = |token: &str| json!(script(token, 0)).to_string();
        let image = r#"{"data":"AAAA","mimeType":"image/png","type":"image"}"#;
        let prompts = [
            ("text", Arc::new(vec![text_block(&script("plain", 0))])),
            ("content", asked(&[&format!(r#"{{"text":{},"type":"text","_meta":{{"b":1,"a":2}}}}"#, escaped("given"))])),
            ("ws", Arc::new(vec![text_block(&script("ws", 0))])),
            ("parts", asked(&[&format!(r#"{{"type":"text","text":{}}}"#, escaped("parts")), image])),
            ("running", Arc::new(vec![text_block(&script("open", 1))])),
            ("waiting", Arc::new(vec![text_block(&script("waits", 0))])),
        ];
        assert_eq!(all.len(), prompts.len());
        for (known, (name, asked)) in all.iter().zip(prompts) {
            assert_eq!(known.key(), name);
            assert!(key(name, "d_local", asked).is(Some(known)).unwrap(), "{name}");
            assert!(key(name, "d_local", Arc::new(vec![text_block("other")])).is(Some(known)).is_err(), "{name}");
        }
        // As builds of it wrote that kept members in order.
        let mut typed = all[0].clone();
        typed.digest = "0b1f6155663abdb0".into();
        assert!(key("text", "d_local", Arc::new(vec![text_block(&script("plain", 0))])).is(Some(&typed)).unwrap());
    }
}
