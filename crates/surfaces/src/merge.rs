//! Merges successive changes of a surface into one, so that screens do not get more than they can draw.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::change::{Change, Message};
use super::model::DataOp;
use super::pointer::Pointer;
use super::surface::Surface;

impl Change {
    /// Merges this change with the one after it.
    ///
    /// # Errors
    /// Returns both changes if they do not follow each other.
    pub fn merge(self, later: Self) -> Result<Self, Box<(Self, Self)>> {
        if self.surface != later.surface || later.rev <= self.rev {
            return Err(Box::new((self, later)));
        }
        match later.base {
            None => return Ok(later),
            Some(base) if base != self.rev || self.closed => return Err(Box::new((self, later))),
            Some(_) => {}
        }
        if later.closed {
            return Ok(Self { base: self.base, ..later });
        }
        if self.base.is_none() {
            return match merged_whole(&self, &later) {
                Some(whole) => Ok(whole),
                None => Err(Box::new((self, later))),
            };
        }
        Ok(Self {
            surface: later.surface,
            rev: later.rev,
            base: self.base,
            title: later.title.or(self.title),
            pinned: later.pinned.or(self.pinned),
            at: later.at,
            ask: later.ask.or(self.ask),
            closed: false,
            messages: merged_messages(&self.surface, self.messages, later.messages),
        })
    }
}

/// Merges a whole surface with a change into a whole surface.
fn merged_whole(whole: &Change, later: &Change) -> Option<Change> {
    let mut set = super::set::SurfaceSet::default();
    let applied = set.apply(whole) == super::set::Fold::Applied && set.apply(later) == super::set::Fold::Applied;
    set.get(&whole.surface).filter(|_| applied).map(Surface::to_change)
}

fn merged_messages(surface: &str, first: Vec<Message>, second: Vec<Message>) -> Vec<Message> {
    let mut components: Vec<Map<String, Value>> = Vec::new();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut data: Vec<(Pointer, DataOp)> = Vec::new();
    for message in first.into_iter().chain(second) {
        match message {
            Message::Components { components: more, .. } => {
                for raw in more {
                    let id = raw.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
                    match by_id.get(&id) {
                        Some(&at) => components[at] = raw,
                        None => {
                            by_id.insert(id, components.len());
                            components.push(raw);
                        }
                    }
                }
            }
            Message::Data { path, op, .. } => add(&mut data, path, op),
            // A change with a base has none of these except when it closes the surface, which is merged above.
            Message::Create(_) | Message::Delete { .. } => {}
        }
    }
    let mut messages = Vec::new();
    if !components.is_empty() {
        messages.push(Message::Components { surface: surface.to_owned(), components });
    }
    messages.extend(data.into_iter().map(|(path, op)| Message::Data { surface: surface.to_owned(), path, op }));
    messages
}

/// Adds an operation after others, and removes those that it makes superfluous.
fn add(data: &mut Vec<(Pointer, DataOp)>, path: Pointer, op: DataOp) {
    match op {
        DataOp::Set(value) => set(data, path, value),
        DataOp::Append(items) => append(data, path, items),
        DataOp::Remove if path.is_root() => {
            data.clear();
            data.push((path, DataOp::Remove));
        }
        DataOp::Remove => data.push((path, DataOp::Remove)),
    }
}

/// Sets `path` to a value. Earlier operations at or below `path` have no effect any more and are removed. The value is
/// set in place of the first of these, since it created the place, which later operations may need. Only operations
/// above `path` cannot be moved over.
fn set(data: &mut Vec<(Pointer, DataOp)>, path: Pointer, value: Value) {
    if path.is_root() {
        data.clear();
        data.push((path, DataOp::Set(value)));
        return;
    }
    let above = |other: &Pointer| other.contains(&path) && *other != path;
    let from = data.iter().rposition(|(other, _)| above(other)).map_or(0, |at| at + 1);
    let below = |(other, op): &(Pointer, DataOp)| path.contains(other) && !matches!(op, DataOp::Remove);
    let Some(first) = data[from..].iter().position(below).map(|at| at + from) else {
        data.push((path, DataOp::Set(value)));
        return;
    };
    data[first] = (path.clone(), DataOp::Set(value));
    let mut at = 0;
    data.retain(|(other, _)| {
        at += 1;
        at - 1 <= first || !path.contains(other)
    });
}

/// Extends a list that is set or extended already, if no later operation touched it.
fn append(data: &mut Vec<(Pointer, DataOp)>, path: Pointer, mut items: Vec<Value>) {
    let last = data.iter_mut().rev().find(|(other, _)| other.touches(&path));
    match last {
        Some((other, DataOp::Append(list))) if *other == path => list.append(&mut items),
        Some((other, DataOp::Set(Value::Array(list)))) if *other == path => list.append(&mut items),
        _ => data.push((path, DataOp::Append(items))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn op(data: &mut Vec<(Pointer, DataOp)>, path: &str, op: DataOp) {
        add(data, Pointer::absolute(path).unwrap(), op);
    }

    #[test]
    fn merge_keeps_the_last_value_and_joins_lists() {
        let mut data = Vec::new();
        for n in 0..100 {
            op(&mut data, "/progress", DataOp::Set(json!(n)));
            op(&mut data, "/rows", DataOp::Append(vec![json!(n)]));
        }
        assert_eq!(data.len(), 2);
        assert_eq!(data[0].1, DataOp::Set(json!(99)));
        assert!(matches!(&data[1].1, DataOp::Append(items) if items.len() == 100));
        op(&mut data, "/rows/0/x", DataOp::Set(json!(1)));
        op(&mut data, "/rows", DataOp::Set(json!([])));
        op(&mut data, "/rows", DataOp::Append(vec![json!(1)]));
        assert_eq!(data.len(), 2);
        assert_eq!(data[1].1, DataOp::Set(json!([1])));
        op(&mut data, "/", DataOp::Set(json!({})));
        assert_eq!(data.len(), 1);
    }
}
