//! The tree of components: no cycles, not too deep, and where in it a component stands.

use std::collections::{HashMap, HashSet};

use super::error::{SurfaceError, shown};
use super::limits::{DEPTH_MAX, ITEMS_MAX, WAYS_MAX};
use super::pointer::{Pointer, index};
use super::surface::{Component, Surface};

/// Refuses children that lead back to themselves, and trees that are too deep.
pub(crate) fn check(components: &[Component], index: &HashMap<String, usize>) -> Result<(), SurfaceError> {
    let mut heights: Vec<Option<usize>> = vec![None; components.len()];
    let mut open = vec![false; components.len()];
    // Without recursion: a chain may be as long as there are components.
    for start in 0..components.len() {
        let mut path = vec![(start, 0usize, 1usize)];
        while let Some((at, next, height)) = path.pop() {
            if next == 0 && heights[at].is_some() {
                continue;
            }
            let component = &components[at];
            let Some(link) = component.links.get(next) else {
                open[at] = false;
                heights[at] = Some(height);
                if height > DEPTH_MAX {
                    let why = format!("its children are more than {DEPTH_MAX} levels deep: make the tree flatter");
                    return Err(SurfaceError::Tree { at: place(at, component), why });
                }
                continue;
            };
            open[at] = true;
            match index.get(&link.id) {
                Some(&child) if open[child] => {
                    let why = format!(
                        "its child {:?} leads back to it: a component cannot be inside itself",
                        shown(&link.id)
                    );
                    return Err(SurfaceError::Tree { at: place(at, component), why });
                }
                Some(&child) => match heights[child] {
                    Some(below) => path.push((at, next + 1, height.max(below + 1))),
                    None => {
                        path.push((at, next, height));
                        path.push((child, 0, 1));
                    }
                },
                None => path.push((at, next + 1, height.max(2))),
            }
        }
    }
    Ok(())
}

/// Refuses a surface that has no root, names children that it lacks, or has components that nothing shows.
pub(crate) fn check_whole(components: &[Component], index: &HashMap<String, usize>) -> Result<(), SurfaceError> {
    let Some(&root) = index.get("root") else {
        let why = "no component has the id \"root\": give the outermost one that id".to_owned();
        return Err(SurfaceError::Tree { at: "components".to_owned(), why });
    };
    for (at, component) in components.iter().enumerate() {
        if let Some(link) = component.links.iter().find(|link| !index.contains_key(&link.id)) {
            let why = format!("there is no component {:?}: add it, or take it out of the children", shown(&link.id));
            return Err(SurfaceError::Tree { at: place(at, component), why });
        }
    }
    let mut seen = HashSet::from([root]);
    let mut todo = vec![root];
    while let Some(at) = todo.pop() {
        for child in components[at].links.iter().filter_map(|link| index.get(&link.id)) {
            if seen.insert(*child) {
                todo.push(*child);
            }
        }
    }
    match (0..components.len()).find(|at| !seen.contains(at)) {
        Some(at) => {
            let why = "nothing has it as its child: add its id to the children of a component".to_owned();
            Err(SurfaceError::Tree { at: place(at, &components[at]), why })
        }
        None => Ok(()),
    }
}

fn place(at: usize, component: &Component) -> String {
    format!("components/{at} ({}) {:?}", shown(&component.kind), shown(&component.id))
}

/// Where a component stands: the list item that its relative paths begin at. Inside of templates an index is left open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stand {
    /// Segments; none is any index of the list before it.
    pub(crate) base: Vec<Option<String>>,
}

impl Stand {
    fn join(&self, path: &str) -> Option<Vec<Option<String>>> {
        let segments = Pointer::absolute(path).ok()?;
        let mut joined = if path.starts_with('/') { Vec::new() } else { self.base.clone() };
        if path != "." {
            joined.extend(segments.segments().iter().cloned().map(Some));
        }
        Some(joined)
    }

    /// The places that `path` leads to, from a component that stands here.
    pub(crate) fn bound(&self, path: &str) -> Option<BoundPath> {
        // An absolute path says nothing of the item: relative paths beside it then begin nowhere.
        let base = if path.starts_with('/') { 0 } else { self.base.len() };
        Some(BoundPath { segments: self.join(path)?, base })
    }
}

/// A path from where a component stands: it is one place for each item of the templates around it.
#[derive(Clone, Debug)]
pub(crate) struct BoundPath {
    segments: Vec<Option<String>>,
    /// How many of the segments are the list item.
    base: usize,
}

impl BoundPath {
    /// The list item in which this path is the place `target`.
    pub(crate) fn matches(&self, target: &Pointer, surface: &Surface) -> Option<Pointer> {
        let segments = target.segments();
        let same = |(pattern, segment): (&Option<String>, &String)| match pattern {
            Some(name) => name == segment,
            None => index(segment).is_some(),
        };
        if self.segments.len() != segments.len() || !self.segments.iter().zip(segments).all(same) {
            return None;
        }
        let items_are_there = (0..segments.len()).filter(|at| self.segments[*at].is_none()).all(|at| {
            let drawn = surface.data_at(&target.prefix(at)).and_then(|list| list.as_array()).map_or(0, Vec::len);
            index(&segments[at]).is_some_and(|item| item < drawn.min(ITEMS_MAX))
        });
        items_are_there.then(|| target.prefix(self.base))
    }
}

/// Each component that is shown, with the places where it stands.
pub(crate) fn stands(surface: &Surface) -> Vec<(&Component, Stand)> {
    let mut out: Vec<(&Component, Stand)> = Vec::new();
    let mut seen: HashSet<(&str, Stand)> = HashSet::new();
    let mut todo = vec![("root", Stand { base: Vec::new() })];
    while let Some((id, stand)) = todo.pop() {
        let Some(component) = surface.component(id) else { continue };
        if seen.len() >= WAYS_MAX || !seen.insert((id, stand.clone())) {
            continue;
        }
        for link in &component.links {
            let below = match &link.template {
                None => Some(stand.clone()),
                Some(path) => stand.join(path).map(|mut base| {
                    base.push(None);
                    Stand { base }
                }),
            };
            if let Some(below) = below.filter(|below| below.base.len() <= DEPTH_MAX) {
                todo.push((&link.id, below));
            }
        }
        out.push((component, stand));
    }
    out
}

/// Whether a component is shown at a list item.
pub(crate) fn is_shown(surface: &Surface, id: &str, instance: &Pointer) -> bool {
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
