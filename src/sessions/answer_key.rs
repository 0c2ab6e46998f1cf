//! Idempotency keys of answers.

use sha2::{Digest, Sha256};

use super::SessionError;
use plexus_protocol::{Answer, DeviceId, Receipt};

/// The idempotency key of an answer. It belongs to one device and stands for one answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnswerKey {
    key: String,
    by: DeviceId,
    answer: String,
    /// Digest of the answer without typed text. Of secret requests only this digest is stored: a digest of the text could be guessed.
    untyped: String,
}

/// Prefix of a stored digest that leaves out typed text.
const UNTYPED: char = '-';

impl AnswerKey {
    /// Makes the key of an answer. `key`: visible ASCII characters.
    pub(super) fn new(key: String, by: DeviceId, answer: &Answer) -> Self {
        let untyped = Answer { value: answer.value.as_ref().map(|_| None), answers: None, ..answer.clone() };
        Self { key, by, answer: digest(answer), untyped: digest(&untyped) }
    }

    /// Returns the form of the key that is stored with the request.
    pub(super) fn row(&self, secret: bool) -> String {
        let Self { key, by, answer, untyped } = self;
        if secret { format!("{key} {by} {UNTYPED}{untyped}") } else { format!("{key} {by} {answer}") }
    }

    /// Returns whether the winning answer, stored as `row`, is this one.
    ///
    /// # Errors
    /// [`SessionError::KeyReused`]: the winning answer is another one of the same device, under the same key.
    pub(super) fn won(&self, row: &str, receipt: &Receipt) -> Result<bool, SessionError> {
        let mut parts = row.split(' ');
        let (key, by, answer) = (parts.next(), parts.next(), parts.next());
        // Older gateways stored the key alone; the device is in the receipt.
        let by = by.unwrap_or(receipt.resolved_by.device_id.as_str());
        if key != Some(&self.key) || by != self.by.as_str() {
            return Ok(false);
        }
        let same = answer.is_none_or(|stored| match stored.strip_prefix(UNTYPED) {
            Some(untyped) => untyped == self.untyped,
            None => stored == self.answer,
        });
        if same { Ok(true) } else { Err(SessionError::KeyReused) }
    }
}

fn digest(answer: &Answer) -> String {
    // Plain values, which always serialize. Eight bytes guard against mistakes, not attacks: a device harms only itself.
    let digest = Sha256::digest(serde_json::to_vec(answer).unwrap_or_default());
    data_encoding::HEXLOWER.encode(digest.get(..8).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::{RequestId, RequestState, Resolver, Timestamp};

    fn device(id: &str) -> DeviceId {
        DeviceId::trusted(id)
    }

    fn receipt(by: &str) -> Receipt {
        let by = Resolver { device_id: device(by), name: by.into() };
        Receipt::new(RequestId::trusted("q_1"), RequestState::Answered, by, Timestamp::from_millis(0))
    }

    #[test]
    fn answer_key_belongs_to_one_device_and_one_answer() {
        let answer = |option: &str| Answer { option_id: Some(option.into()), ..Answer::default() };
        let key = |key: &str, by: &str, option: &str| AnswerKey::new(key.into(), device(by), &answer(option));
        let row = key("k", "desk", "yes").row(false);
        let won = |key: AnswerKey| key.won(&row, &receipt("desk"));
        assert!(won(key("k", "desk", "yes")).unwrap());
        assert!(!won(key("k", "phone", "yes")).unwrap(), "another device's");
        assert!(!won(key("k", "phone", "no")).unwrap());
        assert!(!won(key("l", "desk", "yes")).unwrap(), "another key");
        assert!(matches!(won(key("k", "desk", "no")), Err(SessionError::KeyReused)));
        // As older gateways stored it.
        assert!(key("k", "desk", "yes").won("k", &receipt("desk")).unwrap());
        assert!(!key("k", "phone", "yes").won("k", &receipt("desk")).unwrap());
    }

    #[test]
    fn answer_key_keeps_nothing_of_a_secret() {
        let typed = |text: &str| Answer { value: Some(Some(text.into())), ..Answer::default() };
        let key = |text: &str| AnswerKey::new("k".into(), device("desk"), &typed(text));
        assert_eq!(key("1234").row(true), key("5678").row(true));
        assert_ne!(key("1234").row(false), key("5678").row(false));
        assert!(key("5678").won(&key("1234").row(true), &receipt("desk")).unwrap());
        assert!(key("5678").won(&key("1234").row(false), &receipt("desk")).is_err());
    }
}
