//! The open requests, derived from the events of a follower.

use std::collections::BTreeMap;
use std::sync::Arc;

use plexus_protocol::{Kind, Request, RequestHead, RequestId};
use serde_json::value::RawValue;

use crate::ClientEvent;

/// The open requests of the sessions of a [`Follow`](crate::Follow). Pure: pass it every event.
#[derive(Debug, Default)]
pub struct Requests {
    open: BTreeMap<RequestId, Arc<Request>>,
    live: bool,
    /// The open requests in the last `hello`; until [`ClientEvent::Live`], the set is limited to them.
    in_hello: BTreeMap<RequestId, Arc<Request>>,
    /// The open requests that this version cannot read, by id if that is readable.
    unreadable: Vec<Option<RequestId>>,
}

impl Requests {
    /// Returns the open requests, by id.
    pub fn open(&self) -> &BTreeMap<RequestId, Arc<Request>> {
        &self.open
    }

    /// Returns the number of open requests that this version cannot read, since they need a newer one.
    pub fn unreadable(&self) -> usize {
        self.unreadable.len()
    }

    /// Applies an event; returns `true` if the set or the number of unreadable requests changed.
    pub fn apply(&mut self, event: &ClientEvent) -> bool {
        let before = (self.open.len(), self.unreadable.len());
        match event {
            ClientEvent::Hello(hello) => {
                let requests = &hello.requests;
                let id = |item: &RawValue| serde_json::from_str::<RequestHead>(item.get()).ok()?.request_id;
                self.unreadable = requests.unreadable_items().iter().map(|item| id(item)).collect();
                self.in_hello =
                    requests.iter().map(|request| (request.request_id.clone(), Arc::clone(request))).collect();
                self.live = false;
                let changed = self.in_hello.keys().ne(self.open.keys()) || self.unreadable.len() != before.1;
                self.open.clone_from(&self.in_hello);
                return changed;
            }
            ClientEvent::Live => self.live = true,
            ClientEvent::Event(event) => match event.envelope.known_kind() {
                // A replayed request that is still open was in `hello`.
                Some(Kind::RequestOpened) if self.live => match event.envelope.body::<Arc<Request>>() {
                    Some(request) => return self.open.insert(request.request_id.clone(), request).is_none(),
                    None => {
                        let id = event.envelope.body::<RequestHead>().and_then(|head| head.request_id);
                        if id.is_none() || !self.unreadable.contains(&id) {
                            self.unreadable.push(id);
                        }
                    }
                },
                Some(Kind::RequestResolved) => {
                    if let Some(RequestHead { request_id: Some(request_id), .. }) = event.envelope.body() {
                        self.open.remove(&request_id);
                        self.unreadable.retain(|unreadable| unreadable.as_ref() != Some(&request_id));
                    }
                }
                _ => {}
            },
            _ => {}
        }
        (self.open.len(), self.unreadable.len()) != before
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ReceivedEvent;

    fn request(id: &str, kind: &str) -> Value {
        json!({
            "request_id": id, "session_id": "s_1", "run_id": "r_1", "runtime_id": "demo", "generation": 1, "type": kind,
            "state": "open", "title": "Run", "display": "ls", "warnings": [], "options": [], "allow_reason": false,
            "allow_remember": false, "opened_at": "2026-01-02T03:04:05.000Z",
        })
    }

    fn event(kind: &str, body: Value) -> ClientEvent {
        let envelope = json!({
            "schema": 1, "session_id": "s_1", "run_id": "r_1", "seq": 1, "cursor": "e:1",
            "at": "2026-01-02T03:04:05.000Z", "kind": kind, "event": body,
            "meta": { "runtime_id": "demo", "dialect": "acp" },
        });
        let raw = serde_json::value::to_raw_value(&envelope).unwrap();
        ClientEvent::Event(Box::new(ReceivedEvent::read(raw).expect("it is an envelope")))
    }

    #[test]
    fn unreadable_requests_are_counted_until_they_are_resolved() {
        let mut requests = Requests::default();
        let ids = |requests: &Requests| requests.open().keys().map(ToString::to_string).collect::<Vec<_>>();
        let hello = json!({
            "resume": "ok", "epoch": "e", "oldest": "e:0", "head": "e:0", "sessions": [], "runs": [],
            "requests": [request("q_1", "confirm"), request("q_2", "hologram")],
            "you": { "device_id": "d_1", "name": "phone", "scopes": ["watch", "hologram"], "approve_up_to": "hologram" },
        });
        let hello = serde_json::from_value(hello).expect("a newer gateway can be read");
        assert!(requests.apply(&ClientEvent::Hello(hello)));
        assert_eq!((ids(&requests), requests.unreadable()), (vec!["q_1".to_owned()], 1));
        requests.apply(&ClientEvent::Live);
        assert!(requests.apply(&event("request_opened", request("q_3", "hologram"))));
        assert!(!requests.apply(&event("request_opened", request("q_3", "hologram"))), "counted once");
        assert_eq!((requests.open().len(), requests.unreadable()), (1, 2));
        assert!(requests.apply(&event("request_resolved", json!({ "request_id": "q_2" }))));
        assert!(requests.apply(&event("request_resolved", json!({ "request_id": "q_1" }))));
        assert_eq!((requests.open().len(), requests.unreadable()), (0, 1));
    }
}
