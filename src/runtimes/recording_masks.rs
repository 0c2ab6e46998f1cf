//! Masks for the secrets in a recording.
//!
//! Each secret gets a name of its own (`•••1`, `•••2`), the same everywhere: references within a conversation remain recognizable.
//! Identifiers of sessions, messages and calls stay; many look like keys.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use plexus_dialects::recording::{Direction, RecordingEntry};
use plexus_protocol::RuntimeSpec;
use plexus_risk::masked_by;

/// Minimum length of a value that is masked everywhere, in bytes: a shorter one would be found in ordinary words.
const KNOWN_MIN: usize = 6;
/// Maximum number of remembered identifiers; later ones that look like keys are masked.
const IDS_MAX: usize = 1 << 16;
/// The beginning of the name of a secret.
const MASK: &str = "•••";

/// The known secrets of one recording.
#[derive(Default)]
pub(super) struct RecordingMasks {
    /// Secrets whose value is known.
    secrets: Vec<String>,
    /// Values that are secret if they are a whole string: text that users typed, of any length.
    typed: HashSet<String>,
    /// Values that are identifiers.
    ids: HashSet<String>,
    /// The names of the secrets that were found.
    names: HashMap<String, usize>,
}

impl RecordingMasks {
    /// Makes the masks for a runtime, whose environment has these variables besides its own.
    pub(super) fn new<'a>(spec: &'a RuntimeSpec, passed: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut masks = Self::default();
        let own = spec.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (_, value) in own.chain(passed).filter(|(name, _)| is_secret_name(name)) {
            masks.learn(value);
        }
        spec.secret.iter().for_each(|secret| masks.learn(secret));
        masks
    }

    /// Adds a secret, which is masked from now on.
    pub(super) fn learn(&mut self, secret: &str) {
        if secret.len() >= KNOWN_MIN && !self.secrets.iter().any(|other| other == secret) {
            self.secrets.push(secret.to_owned());
            // The longest first: one may be a part of another.
            self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        }
    }

    /// Adds a text that a user typed, which is masked from now on.
    pub(super) fn learn_typed(&mut self, typed: &str) {
        self.learn(typed);
        self.typed.insert(typed.to_owned());
    }

    /// Returns the entry without secrets.
    pub(super) fn mask(&mut self, mut entry: RecordingEntry) -> RecordingEntry {
        entry.line = match entry.dir {
            Direction::Reply | Direction::In if !is_json(&entry.line) => {
                // `STATUS BODY`, or `METHOD PATH BODY`.
                let cut = entry.line.find(" {").or_else(|| entry.line.find(" [")).unwrap_or(entry.line.len());
                let (head, body) = entry.line.split_at(cut);
                self.text(head) + &self.json(body)
            }
            _ => self.json(&entry.line),
        };
        entry
    }

    /// Masks JSON string by string, so that everything else stays unchanged.
    fn json(&mut self, json: &str) -> String {
        if !is_json(json) {
            return self.text(json);
        }
        let mut masked = String::with_capacity(json.len());
        let mut rest = json;
        let mut key = String::new();
        while let Some(begin) = rest.find('"') {
            let Some(end) = string_end(&rest[begin..]) else { break };
            let (literal, after) = rest[begin..].split_at(end);
            masked.push_str(&rest[..begin]);
            rest = after;
            let Ok(text) = serde_json::from_str::<String>(literal) else {
                masked.push_str(literal);
                continue;
            };
            if after.trim_start().starts_with(':') {
                masked.push_str(literal);
                key = text;
                continue;
            }
            let replaced = self.value(&key, &text);
            if replaced == text {
                masked.push_str(literal)
            } else {
                masked.push_str(&Value::String(replaced).to_string())
            }
        }
        // Text that is not complete JSON is masked as text.
        masked.push_str(&self.text(rest));
        masked
    }

    /// Masks a string that is the value of this key.
    fn value(&mut self, key: &str, text: &str) -> String {
        if is_id(key) {
            if self.ids.len() < IDS_MAX && !self.ids.contains(text) {
                self.ids.insert(text.to_owned());
            }
            return self.known_out(text);
        }
        if !text.is_empty() && (is_secret_name(key) || self.typed.contains(text)) {
            return self.name(text);
        }
        // A text may contain JSON again, such as the result of a tool or an argument.
        if is_json(text) && text.contains('"') { self.json(text) } else { self.text(text) }
    }

    fn text(&mut self, text: &str) -> String {
        let text = self.known_out(text);
        masked_by(&text, &mut |secret| {
            let bare = secret.trim_matches(['"', '\'', '\\']);
            if bare.is_empty() || self.ids.contains(bare) {
                return secret.to_owned();
            }
            secret.replace(bare, &self.name(bare))
        })
    }

    fn known_out(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for at in 0..self.secrets.len() {
            if text.contains(&self.secrets[at]) {
                let secret = self.secrets[at].clone();
                text = text.replace(&secret, &self.name(&secret));
            }
        }
        text
    }

    /// Returns the name that replaces a secret.
    fn name(&mut self, secret: &str) -> String {
        if secret.contains(MASK) {
            return secret.to_owned();
        }
        let next = self.names.len() + 1;
        format!("{MASK}{}", self.names.entry(secret.to_owned()).or_insert(next))
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Returns the end of a string literal, from its first quote; `None` if it has none.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    let end = text.bytes().enumerate().skip(1).find(|(_, byte)| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map(|(at, _)| at + 1)
}

/// Returns whether values of this name are identifiers.
fn is_id(key: &str) -> bool {
    matches!(key, "id" | "native" | "key") || key.ends_with("Id") || key.ends_with("ID") || key.ends_with("_id")
}

/// Returns whether values of this name are secrets.
fn is_secret_name(name: &str) -> bool {
    const SECRET_NAMES: &[&str] = &[
        "apikey",
        "accesskey",
        "privatekey",
        "secret",
        "token",
        "password",
        "passwd",
        "passphrase",
        "credential",
        "cookie",
        "authorization",
    ];
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    SECRET_NAMES.iter().any(|word| name.contains(word)) || name.ends_with("key") && name != "key"
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::{Connect, RuntimeId};

    fn spec() -> RuntimeSpec {
        let connect = Connect::Command(vec!["agent".into()]);
        let mut spec = RuntimeSpec::new(RuntimeId::trusted("a"), "acp", connect, "/w");
        spec.env.insert("MY_API_KEY".into(), "hunter2hunter2".into());
        spec.env.insert("EDITOR".into(), "/usr/bin/vi".into());
        spec.secret = Some("s3cret-of-the-endpoint".into());
        spec
    }

    #[test]
    fn masks_name_secrets_and_leave_everything_else_as_it_is() {
        let mut masks = RecordingMasks::new(&spec(), [("PASSED_TOKEN", "passed-on-value")].into_iter());
        masks.learn_typed("typed by somebody");
        masks.learn_typed("1234");
        let id = "ses_e03b615e7ffe7wqHCMagEUSafu";
        for (line, masked) in [
            (r#"{"a":"it is hunter2hunter2, yes"}"#, r#"{"a":"it is •••1, yes"}"#),
            (r#"{ "n": 1.50, "apiKey" : "fake-key" }"#, r#"{ "n": 1.50, "apiKey" : "•••2" }"#),
            (r#"{"tokens":12,"text":"passed-on-value"}"#, r#"{"tokens":12,"text":"•••3"}"#),
            (r#"{"headers":{"Authorization":"Bearer abcdefgh"}}"#, r#"{"headers":{"Authorization":"•••4"}}"#),
            (
                r#"{"text":"curl -H \"Authorization: Bearer abc.def-ghi\""}"#,
                r#"{"text":"curl -H \"Authorization: •••5\""}"#,
            ),
            (r#"{"x":"s3cret-of-the-endpoint \"typed by somebody\""}"#, r#"{"x":"•••6 \"•••7\""}"#),
            (r#"{"arguments":"{\"password\":\"short\"}"}"#, r#"{"arguments":"{\"password\":\"•••8\"}"}"#),
            (&format!(r#"{{"sessionId":"{id}"}}"#), &format!(r#"{{"sessionId":"{id}"}}"#)),
            (&format!(r#"{{"text":"{id} it is"}}"#), &format!(r#"{{"text":"{id} it is"}}"#)),
            (
                r#"{"Answer":{"key":"5 #1","decision":"Withdrawn"}}"#,
                r#"{"Answer":{"key":"5 #1","decision":"Withdrawn"}}"#,
            ),
            ("no JSON: words and MY_API_KEY=other", "no JSON: words and MY_API_KEY=•••9"),
            (r#"{"editor":"/usr/bin/vi"}"#, r#"{"editor":"/usr/bin/vi"}"#),
            (r#"{"Value":"1234","text":"12345"}"#, r#"{"Value":"•••10","text":"12345"}"#),
        ] {
            assert_eq!(masks.mask(RecordingEntry::new(Direction::Out, line)).line, masked);
        }
        let entry = r#"POST /session/x/message?token=abc123 {"password":"short"}"#;
        let entry = masks.mask(RecordingEntry::about(Direction::In, 1, entry));
        assert_eq!(entry.line, r#"POST /session/x/message?token=•••11 {"password":"•••8"}"#);
    }

    #[test]
    fn masks_treat_an_unterminated_string_as_text() {
        let mut masks = RecordingMasks::new(&spec(), std::iter::empty());
        let line = r#"{"a":"b","token":"hunter2hunter2 and"#;
        assert_eq!(masks.mask(RecordingEntry::new(Direction::Out, line)).line, r#"{"a":"b","token":"•••1 and"#);
    }
}
