//! Lists that may contain elements of a newer gateway.

use std::ops::{Deref, DerefMut};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A list without the elements that this version cannot read: a newer gateway may send them. Their number is stored, so that a client can
/// report them. The list is serialized as its items.
#[derive(Clone, Debug)]
pub struct KnownItems<T> {
    items: Vec<T>,
    unreadable: Vec<Box<RawValue>>,
}

impl<T> KnownItems<T> {
    /// Returns the number of elements that could not be read.
    pub fn unreadable(&self) -> usize {
        self.unreadable.len()
    }

    /// Returns the elements that could not be read.
    pub fn unreadable_items(&self) -> &[Box<RawValue>] {
        &self.unreadable
    }

    /// Adds an item.
    pub fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// Returns the items that could be read.
    pub fn into_vec(self) -> Vec<T> {
        self.items
    }
}

impl<T> Default for KnownItems<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: PartialEq> PartialEq for KnownItems<T> {
    fn eq(&self, other: &Self) -> bool {
        let text = |item| RawValue::get(item);
        let unreadable = self.unreadable.iter().map(Box::as_ref).map(text);
        self.items == other.items && unreadable.eq(other.unreadable.iter().map(Box::as_ref).map(text))
    }
}

impl<T: Eq> Eq for KnownItems<T> {}

impl<T> Deref for KnownItems<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for KnownItems<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

impl<T> From<Vec<T>> for KnownItems<T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, unreadable: Vec::new() }
    }
}

impl<T> FromIterator<T> for KnownItems<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Vec::from_iter(items).into()
    }
}

impl<T> Extend<T> for KnownItems<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.items.extend(items);
    }
}

impl<T> IntoIterator for KnownItems<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a KnownItems<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<T: Serialize> Serialize for KnownItems<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.items.serialize(serializer)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for KnownItems<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut list = Self::default();
        for element in Vec::<Box<RawValue>>::deserialize(from)? {
            match serde_json::from_str(element.get()) {
                Ok(item) => list.items.push(item),
                Err(_) => list.unreadable.push(element),
            }
        }
        Ok(list)
    }
}

/// Reads a value; `None` if it is absent or of a newer gateway.
pub(crate) fn known_value<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::api::sessions::RequestsPage;
    use crate::{Receipt, Request};

    fn request(id: &str, kind: &str) -> serde_json::Value {
        json!({
            "request_id": id, "session_id": "s_1", "run_id": "r_1", "runtime_id": "demo", "generation": 1, "type": kind,
            "state": "open", "title": "Run", "subject": { "type": "plan" }, "display": "ls", "warnings": [],
            "risk": "low", "risk_reasons": [], "revision": 0, "digest": "", "options": [], "allow_reason": false,
            "allow_remember": false, "opened_at": "2026-01-02T03:04:05.000Z",
        })
    }

    #[test]
    fn page_keeps_and_counts_around_an_unreadable_request() {
        let requests = [request("q_1", "confirm"), request("q_2", "hologram"), request("q_3", "pick")];
        let page: RequestsPage = serde_json::from_value(json!({ "requests": requests })).unwrap();
        let ids: Vec<_> = page.requests.iter().map(|request| request.request_id.as_str()).collect();
        assert_eq!((ids, page.requests.unreadable()), (vec!["q_1", "q_3"], 1));
        assert!(page.requests.unreadable_items()[0].get().contains("q_2"));
        let written = serde_json::to_value(&page).unwrap();
        assert_eq!(written["requests"].as_array().map(Vec::len), Some(2), "{written}");
    }

    #[test]
    fn receipt_of_a_newer_gateway_is_readable() {
        let receipt = json!({
            "request_id": "q_1", "state": "answered", "resolved_by": { "device_id": "d_1", "name": "phone" },
            "answered_by": "oracle", "at": "2026-01-02T03:04:05.000Z", "won": true,
        });
        let read: Receipt = serde_json::from_value(receipt.clone()).unwrap();
        assert_eq!((read.answered_by, read.won), (None, true));
        let mut answered = request("q_1", "confirm");
        answered["receipt"] = receipt;
        assert!(serde_json::from_value::<Request>(answered).unwrap().receipt.is_some());
    }
}
