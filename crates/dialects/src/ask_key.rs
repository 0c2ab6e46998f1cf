//! The key of a question that a runtime asks.

use serde::{Deserialize, Serialize};

/// Separator of name and occurrence in a written key. JSON text never ends like that.
const MARK: &str = " #";

/// The key of a runtime's question: the runtime's own name for it, and its occurrence among the questions of that name.
///
/// Runtimes may reuse a name once its question is answered, and many do: a JSON-RPC id is only unique among pending requests. So a dialect
/// numbers the questions it reads ([`nth`](Self::nth)), saves the count with its state, and accepts an answer only under the exact key: a
/// decision on one question never reaches another.
///
/// Written as one string, `NAME #OCCURRENCE`. A key without an occurrence is a name that its runtime never reuses
/// ([`unique`](Self::unique)), or was written by a gateway that had no occurrences.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct RequestKey {
    id: String,
    occurrence: u64,
}

impl RequestKey {
    /// Makes the key of a name that the runtime never reuses.
    pub fn unique(id: impl Into<String>) -> Self {
        Self { id: id.into(), occurrence: 0 }
    }

    /// Makes the key of a name in its `occurrence`th question on the connection (from 1).
    pub fn nth(id: impl Into<String>, occurrence: u64) -> Self {
        Self { id: id.into(), occurrence }
    }

    /// Returns the runtime's own name: its JSON-RPC id, opaque (integer, string, null, 1.5), as JSON text.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether this key, as a session has it, stands for the question with the key `known`. A key without an
    /// occurrence stands for the current question of its name.
    pub fn means(&self, known: &Self) -> bool {
        self.id == known.id && (self.occurrence == known.occurrence || self.occurrence == 0)
    }

    /// Returns whether the key has no occurrence.
    pub fn is_bare(&self) -> bool {
        self.occurrence == 0
    }
}

impl From<RequestKey> for String {
    fn from(RequestKey { id, occurrence }: RequestKey) -> Self {
        if occurrence == 0 { id } else { format!("{id}{MARK}{occurrence}") }
    }
}

impl From<String> for RequestKey {
    fn from(text: String) -> Self {
        let split = text.rsplit_once(MARK).and_then(|(id, number)| Some((id.len(), number.parse().ok()?)));
        match split {
            Some((end, occurrence)) => {
                let mut id = text;
                id.truncate(end);
                Self { id, occurrence }
            }
            None => Self::unique(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ask_key_round_trips_as_one_string() {
        for id in ["5", r#""a #7""#, "null", "1.5", "sign-in 9", "per_1", r#""""#] {
            for key in [RequestKey::unique(id), RequestKey::nth(id, 1), RequestKey::nth(id, u64::MAX)] {
                let text = serde_json::to_string(&key).unwrap();
                assert_eq!(serde_json::from_str::<RequestKey>(&text).unwrap(), key, "{text}");
            }
        }
    }

    #[test]
    fn ask_key_reads_the_keys_of_older_gateways() {
        let old: RequestKey = serde_json::from_str(r#""5""#).unwrap();
        assert!(old.is_bare());
        assert!(old.means(&RequestKey::nth("5", 3)) && !old.means(&RequestKey::nth("6", 3)));
        assert!(RequestKey::nth("5", 3).means(&RequestKey::nth("5", 3)));
        assert!(
            !RequestKey::nth("5", 2).means(&RequestKey::nth("5", 3))
                && !RequestKey::nth("5", 2).means(&RequestKey::unique("5"))
        );
    }
}
