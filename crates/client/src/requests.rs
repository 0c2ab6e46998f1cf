//! The open requests, from what a follower hears.

use std::collections::BTreeMap;

use plexus_protocol::{Request, RequestId};

use crate::ClientEvent;

/// The requests that are open in what a [`Follow`](crate::Follow) follows. Pure: give it everything that is heard.
#[derive(Debug, Default)]
pub struct Requests {
    open: BTreeMap<RequestId, Request>,
    live: bool,
    /// What was open by the last greeting: until live, only these are.
    greeted: BTreeMap<RequestId, Request>,
}

impl Requests {
    /// Those that are open, by their identifiers.
    pub fn open(&self) -> &BTreeMap<RequestId, Request> {
        &self.open
    }

    /// Takes in what was heard; true if the set is another now.
    pub fn apply(&mut self, heard: &ClientEvent) -> bool {
        let before = self.open.len();
        match heard {
            ClientEvent::Hello(hello) => {
                let open: Vec<Request> = serde_json::from_value(hello["requests"].clone()).unwrap_or_default();
                self.greeted = open.into_iter().map(|request| (request.request_id.clone(), request)).collect();
                self.live = false;
                let changed = self.greeted.keys().ne(self.open.keys());
                self.open.clone_from(&self.greeted);
                return changed;
            }
            ClientEvent::Live => self.live = true,
            // What a replay shows as opened and is still open was in the greeting.
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
