//! The methods of the notifications to clients.

use super::*;
use plexus_protocol::api::stream::{StreamHello, StreamSnapshots};

impl Notification for PresenceChanged {
    const METHOD: &'static str = "presence.changed";
}

impl Notification for RuntimeUpdated {
    const METHOD: &'static str = "runtime.updated";
}

impl Notification for RuntimeRemoved {
    const METHOD: &'static str = "runtime.removed";
}

impl Notification for SessionDeleted {
    const METHOD: &'static str = "session.deleted";
}

impl Notification for NotTaken {
    const METHOD: &'static str = "gateway.error";
}

impl Notification for StreamHello {
    const METHOD: &'static str = "gateway.hello";
}

impl Notification for StreamSnapshots {
    const METHOD: &'static str = "gateway.snapshot";
}
