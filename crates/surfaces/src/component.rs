//! A component of a surface.

use serde_json::{Map, Value};

use super::check::Link;
use super::size::Size;

/// A component as the agent gave it.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) raw: Map<String, Value>,
    pub(crate) links: Vec<Link>,
    pub(crate) bytes: usize,
    /// The surface's revision when it last changed.
    pub(crate) changed: u64,
}

impl Component {
    pub(crate) fn new(raw: Map<String, Value>, links: Vec<Link>, rev: u64) -> Self {
        let text = |key: &str| raw.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, kind, bytes) = (text("id"), text("component"), Size::measure_object(&raw).bytes);
        Self { id, kind, raw, links, bytes, changed: rev }
    }
}
