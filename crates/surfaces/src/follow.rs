//! Surfaces that a reader of the log follows, within a limit of memory.

use super::change::Change;
use super::set::{Fold, SurfaceSet};
use super::surface::Surface;

/// The effect of a change on followed surfaces.
#[derive(Debug)]
pub enum Followed {
    /// The surface is as the change left it.
    Changed,
    /// The change was known already.
    Known,
    /// The surface was closed; with its last state, if that was known.
    Closed(Option<Box<Surface>>),
    /// The state of the surface is unknown: the state before the change was not seen, or is too large to be stored.
    Missing,
}

/// The surfaces of a session, followed by their changes. A surface that is too large is not stored: its state is then
/// unknown until it is shown again.
#[derive(Clone, Debug)]
pub struct SurfaceFollower {
    set: SurfaceSet,
    max: usize,
}

impl SurfaceFollower {
    /// Makes a follower that stores surfaces of about `max` bytes.
    pub fn new(max: usize) -> Self {
        Self { set: SurfaceSet::default(), max }
    }

    /// Applies the next change.
    pub fn apply(&mut self, change: &Change) -> Followed {
        let name = change.surface.as_str();
        if change.closed {
            return Followed::Closed(self.set.forget(name).map(Box::new));
        }
        match self.set.apply(change) {
            Fold::Known => Followed::Known,
            // The state before the missing change must not be taken for the current one.
            Fold::Gap => {
                self.set.forget(name);
                Followed::Missing
            }
            Fold::Applied => {
                self.evict(name);
                if self.set.get(name).is_some() { Followed::Changed } else { Followed::Missing }
            }
        }
    }

    /// Returns the approximate size of the surfaces in memory, in bytes.
    pub fn memory(&self) -> usize {
        self.set.memory()
    }

    /// Removes all surfaces, because there is no memory for them.
    pub fn clear(&mut self) {
        self.set = SurfaceSet::default();
    }

    /// Returns a surface whose state is known.
    pub fn get(&self, name: &str) -> Option<&Surface> {
        self.set.get(name)
    }

    /// Removes surfaces until the others fit: those that changed longest ago, and the one that changed now if it alone is too large.
    fn evict(&mut self, changed: &str) {
        while self.memory() > self.max {
            let others = self.set.iter().filter(|surface| surface.name() != changed);
            let oldest = others.min_by_key(|surface| surface.at()).map(|surface| surface.name().to_owned());
            self.set.forget(oldest.as_deref().unwrap_or(changed));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{show, surface, update};
    use super::*;

    fn whole(name: &str, bytes: usize) -> Change {
        let mut set = SurfaceSet::default();
        let components = json!([{"id": "root", "component": "Text", "text": "x".repeat(bytes)}]);
        show(&mut set, json!({"surface": name, "components": components})).unwrap()
    }

    #[test]
    fn follower_has_the_state_after_each_change() {
        let mut set = surface(json!([{"id": "root", "component": "Text", "text": {"path": "/n"}}]), json!({"n": 1}));
        let mut follower = SurfaceFollower::new(1 << 20);
        let first = set.get("s").unwrap().to_change();
        assert!(matches!(follower.apply(&first), Followed::Changed));
        let second = update(&mut set, json!({"surface": "s", "data": [{"path": "/n", "value": 2}]})).unwrap();
        assert!(matches!(follower.apply(&second), Followed::Changed));
        assert!(matches!(follower.apply(&second), Followed::Known));
        assert_eq!(follower.get("s").unwrap().text(80), "2");
        let closed = set.close("s", second.at).unwrap();
        let Followed::Closed(Some(last)) = follower.apply(&closed) else { panic!("it was known") };
        assert_eq!(last.text(80), "2");
        assert!(follower.get("s").is_none());
    }

    #[test]
    fn follower_shows_no_state_after_a_missing_change() {
        let mut set = surface(json!([{"id": "root", "component": "Text", "text": {"path": "/n"}}]), json!({"n": 1}));
        let mut follower = SurfaceFollower::new(1 << 20);
        follower.apply(&set.get("s").unwrap().to_change());
        let mut change =
            |n: i32| update(&mut set, json!({"surface": "s", "data": [{"path": "/n", "value": n}]})).unwrap();
        change(2);
        assert!(matches!(follower.apply(&change(3)), Followed::Missing));
        assert!(follower.get("s").is_none());
        assert!(matches!(follower.apply(&change(4)), Followed::Missing));
    }

    #[test]
    fn follower_keeps_bounded_memory() {
        let mut follower = SurfaceFollower::new(10_000);
        for n in 0..100 {
            assert!(matches!(follower.apply(&whole(&format!("s{n}"), 3_000)), Followed::Changed));
            assert!((1..=10_000).contains(&follower.memory()));
        }
        assert!(follower.get("s99").is_some());
        // Small values take more than their JSON.
        let mut set =
            surface(json!([{"id": "root", "component": "Text", "text": "x"}]), json!({ "l": vec![0; 2_000] }));
        assert!(set.get("s").unwrap().bytes() < 10_000);
        assert!(matches!(follower.apply(&set.get("s").unwrap().to_change()), Followed::Missing));
        set.close("s", set.get("s").unwrap().at()).unwrap();
        follower.clear();
        assert_eq!((follower.memory(), follower.get("s99").is_some()), (0, false));
        assert!(matches!(follower.apply(&whole("large", 20_000)), Followed::Missing));
    }
}
