//! The tree of components: no cycles, and not too deep.

use std::collections::{HashMap, HashSet};

use super::component::Component;
use super::error::{SurfaceError, excerpt};
use super::limits::DEPTH_MAX;

/// Refuses children that lead back to themselves, and trees that are too deep.
pub(crate) fn check(components: &[Component], index: &HashMap<String, usize>) -> Result<(), SurfaceError> {
    let mut heights: Vec<Option<usize>> = vec![None; components.len()];
    let mut open = vec![false; components.len()];
    // The search is not recursive: a chain may be as long as there are components.
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
                    return Err(SurfaceError::Tree { at: component_path(at, component), reason: why });
                }
                continue;
            };
            open[at] = true;
            match index.get(&link.id) {
                Some(&child) if open[child] => {
                    let why = format!(
                        "its child {:?} leads back to it: a component cannot be inside itself",
                        excerpt(&link.id)
                    );
                    return Err(SurfaceError::Tree { at: component_path(at, component), reason: why });
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

/// Refuses a surface without a root, with children that do not exist, or with components that are never shown.
pub(crate) fn check_whole(components: &[Component], index: &HashMap<String, usize>) -> Result<(), SurfaceError> {
    let Some(&root) = index.get("root") else {
        let why = "no component has the id \"root\": give the outermost one that id".to_owned();
        return Err(SurfaceError::Tree { at: "components".to_owned(), reason: why });
    };
    for (at, component) in components.iter().enumerate() {
        if let Some(link) = component.links.iter().find(|link| !index.contains_key(&link.id)) {
            let why = format!("there is no component {:?}: add it, or take it out of the children", excerpt(&link.id));
            return Err(SurfaceError::Tree { at: component_path(at, component), reason: why });
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
            Err(SurfaceError::Tree { at: component_path(at, &components[at]), reason: why })
        }
        None => Ok(()),
    }
}

fn component_path(at: usize, component: &Component) -> String {
    format!("components/{at} ({}) {:?}", excerpt(&component.kind), excerpt(&component.id))
}
