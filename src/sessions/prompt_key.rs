//! Idempotency keys of prompts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::SessionError;
use super::prompts::PromptContent;
use plexus_protocol::DeviceId;

/// The stored form of a prompt's idempotency key. Keys belong to devices: the same key of another device is another key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredPromptKey {
    key: String,
    by: DeviceId,
    /// Digest of the prompt's content, to detect a key that is reused for another prompt.
    digest: String,
}

impl StoredPromptKey {
    pub(super) fn key(&self) -> &str {
        &self.key
    }
}

/// The idempotency key of a prompt, with the prompt's content.
#[derive(Clone, Debug)]
pub(super) struct PromptKey {
    stored: StoredPromptKey,
    content: PromptContent,
}

impl PromptKey {
    /// Makes the key of a prompt. `key`: visible ASCII characters.
    pub(super) fn new(key: String, by: DeviceId, content: PromptContent) -> Self {
        let digest = short(content.iter().fold(Sha256::new(), |all, block| all.chain_update(json_digest(block))));
        Self { stored: StoredPromptKey { key, by, digest }, content }
    }

    /// Returns the part that is stored.
    pub(super) fn stored(self) -> StoredPromptKey {
        self.stored
    }

    /// Returns whether this is the stored key.
    ///
    /// # Errors
    /// [`SessionError::KeyReused`]: the key is the same, the prompt is not.
    pub(super) fn matches(&self, stored_key: Option<&StoredPromptKey>) -> Result<bool, SessionError> {
        let Some(stored_key) =
            stored_key.filter(|stored_key| stored_key.key == self.stored.key && stored_key.by == self.stored.by)
        else {
            return Ok(false);
        };
        let same = stored_key.digest == self.stored.digest
            || LEGACY_FORMS.iter().any(|form| stored_key.digest == legacy_digest(&self.content, *form));
        if same { Ok(true) } else { Err(SessionError::KeyReused) }
    }
}

/// Returns the first 8 bytes of a digest: they guard against mistakes, not attacks, as a device harms only itself.
fn short(digest: Sha256) -> String {
    data_encoding::HEXLOWER.encode(digest.finalize().get(..8).unwrap_or_default())
}

/// The member order of text blocks in release 0.1.0, which digested blocks byte for byte. It depended on the build.
#[derive(Clone, Copy)]
enum LegacyForm {
    /// Blocks as the client sent them.
    AsSent,
    TextFirst,
    TypeFirst,
}

const LEGACY_FORMS: [LegacyForm; 3] = [LegacyForm::AsSent, LegacyForm::TextFirst, LegacyForm::TypeFirst];

/// Returns the digest that release 0.1.0 stored.
fn legacy_digest(content: &[Box<RawValue>], form: LegacyForm) -> String {
    /// A block with a text and nothing else.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Text<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        text: &'a RawValue,
    }
    let mut all = Sha256::new();
    for block in content {
        let text = serde_json::from_str::<Text<'_>>(block.get()).ok().filter(|text| text.kind == "text");
        // Serialized again, because the client may have used other escapes.
        let text = text.and_then(|text| serde_json::from_str::<Cow<'_, str>>(text.text.get()).ok());
        let text = text.and_then(|text| serde_json::to_string(&text).ok());
        let written = match (form, text) {
            (LegacyForm::TextFirst, Some(text)) => Cow::Owned(format!(r#"{{"text":{text},"type":"text"}}"#)),
            (LegacyForm::TypeFirst, Some(text)) => Cow::Owned(format!(r#"{{"type":"text","text":{text}}}"#)),
            _ => Cow::Borrowed(block.get()),
        };
        all.update((written.len() as u64).to_le_bytes());
        all.update(written.as_bytes());
    }
    short(all)
}

/// Returns a digest of a JSON value that does not depend on the order of members, spaces or escapes. It is computed while the text is
/// parsed; the value is not held in memory.
fn json_digest(json: &RawValue) -> [u8; 32] {
    let mut digest = Sha256::new();
    let mut parser = serde_json::Deserializer::from_str(json.get());
    if (JsonDigester { into: &mut digest }).deserialize(&mut parser).is_err() {
        // The text is digested byte for byte where serde_json fails: huge numbers, deep nesting, lone surrogates.
        digest = Sha256::new_with_prefix(json.get());
    }
    digest.finalize().into()
}

struct JsonDigester<'a> {
    into: &'a mut Sha256,
}

impl JsonDigester<'_> {
    /// Adds one value: kind, length and bytes, so that different sequences of values differ.
    fn value(self, kind: u8, bytes: &[u8]) {
        self.into.update([kind]);
        self.into.update((bytes.len() as u64).to_le_bytes());
        self.into.update(bytes);
    }
}

impl<'de> DeserializeSeed<'de> for JsonDigester<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonDigester<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.value(b'n', &[]);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.value(b'b', &[u8::from(value)]);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.value(b'u', &value.to_le_bytes());
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.value(b'i', &value.to_le_bytes());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.value(b'f', &value.to_le_bytes());
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.value(b's', value.as_bytes());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.into.update([b'[']);
        while seq.next_element_seed(JsonDigester { into: self.into })?.is_some() {}
        self.into.update([b']']);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // A sum does not depend on the order.
        let (mut count, mut sum) = (0_u64, 0_u128);
        loop {
            let mut member = Sha256::new();
            if map.next_key_seed(JsonDigester { into: &mut member })?.is_none() {
                break;
            }
            map.next_value_seed(JsonDigester { into: &mut member })?;
            let digest: [u8; 32] = member.finalize().into();
            let prefix = digest.first_chunk::<16>().copied().unwrap_or_default();
            (count, sum) = (count + 1, sum.wrapping_add(u128::from_le_bytes(prefix)));
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

    fn blocks(blocks: &[&str]) -> PromptContent {
        Arc::new(blocks.iter().map(|block| serde_json::from_str(block).unwrap()).collect())
    }

    fn key(key: &str, by: &str, content: PromptContent) -> PromptKey {
        PromptKey::new(key.into(), DeviceId::trusted(by), content)
    }

    #[test]
    fn prompt_key_ignores_how_the_json_is_written() {
        let stored_key =
            key("k", "d", blocks(&[r#"{"type":"text","text":"a\nb","_meta":{"a":[1,{"x":null,"y":2.5}],"b":-1}}"#]));
        let stored_key = stored_key.stored();
        let again = |block: &str| key("k", "d", blocks(&[block])).matches(Some(&stored_key));
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
        assert!(!key("l", "d", blocks(&["{}"])).matches(Some(&stored_key)).unwrap(), "another key");
        assert!(!key("k", "e", blocks(&["{}"])).matches(Some(&stored_key)).unwrap(), "another device's");
        assert!(!key("k", "d", blocks(&["{}"])).matches(None).unwrap());
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
            rows.iter().map(|row| key("k", "d", blocks(row)).stored().digest).collect();
        assert_eq!(digests.len(), rows.len());
        // Values that serde_json cannot read are compared byte for byte.
        let deep = format!(r#"{{"type":"a","x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        for odd in [r#"{"type":"a","x":1e999}"#, r#"{"type":"a","x":"\ud800"}"#, &deep] {
            let stored_key = key("k", "d", blocks(&[odd])).stored();
            assert!(key("k", "d", blocks(&[odd])).matches(Some(&stored_key)).unwrap(), "{odd}");
            assert!(key("k", "d", blocks(&[&odd.replace('a', "b")])).matches(Some(&stored_key)).is_err(), "{odd}");
        }
    }

    proptest::proptest! {
        #[test]
        fn prompt_key_of_text_equals_key_of_text_block(text: String, other: String) {
            let sorted = format!(r#"{{"text":{},"type":"text"}}"#, json!(text));
            let stored_key = key("k", "d", Arc::new(vec![text_block(&text)])).stored();
            proptest::prop_assert!(key("k", "d", blocks(&[&sorted])).matches(Some(&stored_key)).unwrap());
            let another = key("k", "d", Arc::new(vec![text_block(&other)])).matches(Some(&stored_key));
            proptest::prop_assert_eq!(another.is_ok(), text == other);
        }
    }

    /// The prompts of `session-keyed.json`, with the keys and digests that the released binary stored.
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
            (
                "content",
                blocks(&[&format!(r#"{{"text":{},"type":"text","_meta":{{"b":1,"a":2}}}}"#, escaped("given"))]),
            ),
            ("ws", Arc::new(vec![text_block(&script("ws", 0))])),
            ("parts", blocks(&[&format!(r#"{{"type":"text","text":{}}}"#, escaped("parts")), image])),
            ("running", Arc::new(vec![text_block(&script("open", 1))])),
            ("waiting", Arc::new(vec![text_block(&script("waits", 0))])),
        ];
        assert_eq!(all.len(), prompts.len());
        for (stored_key, (name, content)) in all.iter().zip(prompts) {
            assert_eq!(stored_key.key(), name);
            assert!(key(name, "d_local", content).matches(Some(stored_key)).unwrap(), "{name}");
            assert!(
                key(name, "d_local", Arc::new(vec![text_block("other")])).matches(Some(stored_key)).is_err(),
                "{name}"
            );
        }
        // The digest of a build that kept the order of members.
        let mut typed = all[0].clone();
        typed.digest = "0b1f6155663abdb0".into();
        assert!(key("text", "d_local", Arc::new(vec![text_block(&script("plain", 0))])).matches(Some(&typed)).unwrap());
    }
}
