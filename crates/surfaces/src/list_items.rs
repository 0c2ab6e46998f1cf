//! The list items of the templates around components of a surface.

use std::collections::HashSet;

use serde_json::Value;

use super::component::Component;
use super::limits::{DEPTH_MAX, ITEMS_MAX, WAYS_MAX};
use super::pointer::{Pointer, index};
use super::surface::Surface;

impl Surface {
    /// Returns the events that the shown components declare, each with the component that may send it.
    pub fn events(&self) -> Vec<(&str, &str)> {
        let mut ids: Vec<&str> =
            visible_components(self).into_iter().map(|(component, _)| component.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut events = Vec::new();
        for component in ids.into_iter().filter_map(|id| self.component(id)) {
            let id = component.id.as_str();
            let action = component.raw.get("action").or(component.raw.get("onSelect"));
            let name = action.and_then(|action| action.pointer("/event/name")).and_then(Value::as_str);
            events.extend(name.map(|name| (id, name)));
            if component.kind == "Html" {
                let names = component.raw.get("actions").and_then(Value::as_array).into_iter().flatten();
                events.extend(names.filter_map(Value::as_str).map(|name| (id, name)));
            }
        }
        events
    }
}

/// The list item at which the relative paths of a component begin. Inside of templates an index is left open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListItem {
    /// The segments; `None` is any index of the list before it.
    pub(crate) base: Vec<Option<String>>,
}

impl ListItem {
    fn join(&self, path: &str) -> Option<Vec<Option<String>>> {
        let segments = Pointer::absolute(path).ok()?;
        let mut joined = if path.starts_with('/') { Vec::new() } else { self.base.clone() };
        if path != "." {
            joined.extend(segments.segments().iter().cloned().map(Some));
        }
        Some(joined)
    }

    /// Returns the places of `path`, for a component at this list item.
    pub(crate) fn bound(&self, path: &str) -> Option<BoundPath> {
        // An absolute path does not depend on the item: relative paths in it begin nowhere.
        let base = if path.starts_with('/') { 0 } else { self.base.len() };
        Some(BoundPath { segments: self.join(path)?, base })
    }
}

/// A path of a component: it is one place for each item of the templates around it.
#[derive(Clone, Debug)]
pub(crate) struct BoundPath {
    segments: Vec<Option<String>>,
    /// The number of segments of the list item.
    base: usize,
}

impl BoundPath {
    /// Returns the list item in which this path is the place `target`.
    pub(crate) fn matches(&self, target: &Pointer, surface: &Surface) -> Option<Pointer> {
        let segments = target.segments();
        let same = |(pattern, segment): (&Option<String>, &String)| match pattern {
            Some(name) => name == segment,
            None => index(segment).is_some(),
        };
        if self.segments.len() != segments.len() || !self.segments.iter().zip(segments).all(same) {
            return None;
        }
        let items_exist = (0..segments.len()).filter(|at| self.segments[*at].is_none()).all(|at| {
            let drawn = surface.data_at(&target.prefix(at)).and_then(|list| list.as_array()).map_or(0, Vec::len);
            index(&segments[at]).is_some_and(|item| item < drawn.min(ITEMS_MAX))
        });
        items_exist.then(|| target.prefix(self.base))
    }
}

/// Returns each shown component, with its list items.
pub(crate) fn visible_components(surface: &Surface) -> Vec<(&Component, ListItem)> {
    let mut out: Vec<(&Component, ListItem)> = Vec::new();
    let mut seen: HashSet<(&str, ListItem)> = HashSet::new();
    let mut todo = vec![("root", ListItem { base: Vec::new() })];
    while let Some((id, item)) = todo.pop() {
        let Some(component) = surface.component(id) else { continue };
        if seen.len() >= WAYS_MAX || !seen.insert((id, item.clone())) {
            continue;
        }
        for link in &component.links {
            let below = match &link.template {
                None => Some(item.clone()),
                Some(path) => item.join(path).map(|mut base| {
                    base.push(None);
                    ListItem { base }
                }),
            };
            if let Some(below) = below.filter(|below| below.base.len() <= DEPTH_MAX) {
                todo.push((&link.id, below));
            }
        }
        out.push((component, item));
    }
    out
}

/// Returns whether a component is shown at a list item.
pub(crate) fn is_visible(surface: &Surface, id: &str, instance: &Pointer) -> bool {
    let mut seen: HashSet<(&str, Pointer)> = HashSet::new();
    let mut todo = vec![("root", Pointer::default())];
    while let Some((at, base)) = todo.pop() {
        let Some(component) = surface.component(at) else { continue };
        if at == id && base == *instance {
            return true;
        }
        if seen.len() >= WAYS_MAX || !seen.insert((at, base.clone())) {
            continue;
        }
        for link in &component.links {
            let Some(path) = &link.template else {
                todo.push((&link.id, base.clone()));
                continue;
            };
            let Ok(list) = Pointer::parse(path, &base) else { continue };
            let len = list.segments().len();
            let Some(item) = instance.segments().get(len).and_then(|segment| index(segment)) else { continue };
            let drawn = surface.data_at(&list).and_then(|list| list.as_array()).map_or(0, Vec::len).min(ITEMS_MAX);
            if list.contains(instance) && item < drawn {
                todo.push((&link.id, list.item(item)));
            }
        }
    }
    false
}
