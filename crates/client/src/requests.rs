//! The open requests, from the events of a follower.

use std::collections::BTreeMap;

use plexus_protocol::{Request, RequestId};

use crate::ClientEvent;

/// The open requests among the sessions of a [`Follow`](crate::Follow). Pure: pass it every event.
#[derive(Debug, Default)]
pub struct Requests {
    open: BTreeMap<RequestId, Request>,
    live: bool,
    /// The open requests in the last `hello`: until live, the set is limited to them.
    in_hello: BTreeMap<RequestId, Request>,
}

impl Requests {
    /// The open requests, by id.
    pub fn open(&self) -> &BTreeMap<RequestId, Request> {
        &self.open
    }

    /// Applies an event; true if the set changed.
    pub fn apply(&mut self, heard: &ClientEvent) -> bool {
        let before = self.open.len();
        match heard {
            ClientEvent::Hello(hello) => {
                let open: Vec<Request> = serde_json::from_value(hello["requests"].clone()).unwrap_or_default();
                self.in_hello = open.into_iter().map(|request| (request.request_id.clone(), request)).collect();
                self.live = false;
                let changed = self.in_hello.keys().ne(self.open.keys());
                self.open.clone_from(&self.in_hello);
                return changed;
            }
            ClientEvent::Live => self.live = true,
            // A replayed request that is still open was in `hello`.
            ClientEvent::Event(event) if event.kind == "request_opened" && self.live => {
                if let Ok(request) = serde_json::from_value::<Request>(event.event.clone()) {
                    return self.open.insert(request.request_id.clone(), request).is_none();
                }
            }
            ClientEvent::Event(event) if event.kind == "request_resolved" => {
                if let Some(id) = event.event["request_id"].as_str().and_then(|id| id.parse::<RequestId>().ok()) {
                    self.open.remove(&id);
                }
            }
            _ => {}
        }
        self.open.len() != before
    }
}
