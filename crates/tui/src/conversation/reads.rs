//! Consecutive calls that only read: agents make dozens of them, and one line represents all, by the same rule as on the page. Pure.

use std::collections::BTreeMap;

use plexus_protocol::transcript::{ToolCall, ToolContent};

/// Minimum number of calls that one line represents.
const FOLD_AT: u64 = 3;

/// Consecutive calls that only read: the ids of their blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadGroup {
    pub(super) first: u64,
    pub(super) last: u64,
    /// `true` if the user toggled its folding.
    pub(super) toggled: bool,
}

impl ReadGroup {
    /// Returns whether one line represents the group, unless it is unfolded.
    pub(super) fn is_long(&self) -> bool {
        self.last - self.first + 1 >= FOLD_AT
    }
}

/// The groups of a list of blocks, whose ids follow one another.
#[derive(Debug, Default)]
pub(super) struct ReadGroups(BTreeMap<u64, (u64, bool)>);

/// Returns whether a call has ended and only read: it did not fail, no request asked about it, and it changed nothing.
pub(super) fn only_reads(call: &ToolCall, requested: bool) -> bool {
    let changes = || call.content().any(|content| matches!(content, ToolContent::Diff { .. }));
    matches!(call.kind(), "read" | "search") && call.status() == "completed" && !requested && !changes()
}

impl ReadGroups {
    /// The group that a block belongs to.
    pub(super) fn get(&self, id: u64) -> Option<ReadGroup> {
        let (first, (last, toggled)) = self.0.range(..=id).next_back()?;
        (*last >= id).then_some(ReadGroup { first: *first, last: *last, toggled: *toggled })
    }

    /// Adds a block: to the group that ends before it and to the one that begins after it, if the flags are set.
    pub(super) fn join(&mut self, id: u64, with_left: bool, with_right: bool) {
        let left = id.checked_sub(1).filter(|_| with_left).and_then(|before| self.get(before));
        let right = self.get(id + 1).filter(|_| with_right);
        for part in [left, right].into_iter().flatten() {
            self.0.remove(&part.first);
        }
        let first = left.map_or(id, |left| left.first);
        let last = right.map_or(id, |right| right.last);
        let toggled = left.is_some_and(|left| left.toggled) || right.is_some_and(|right| right.toggled);
        self.0.insert(first, (last, toggled));
    }

    /// Removes a block: the blocks before and after it become groups of their own.
    pub(super) fn leave(&mut self, id: u64) {
        let Some(ReadGroup { first, last, toggled }) = self.get(id) else { return };
        self.0.remove(&first);
        if first < id {
            self.0.insert(first, (id - 1, toggled));
        }
        if last > id {
            self.0.insert(id + 1, (last, toggled));
        }
    }

    /// Folds or unfolds the group of a block.
    pub(super) fn toggle(&mut self, id: u64) {
        if let Some(group) = self.get(id)
            && let Some((_, toggled)) = self.0.get_mut(&group.first)
        {
            *toggled = !*toggled;
        }
    }

    /// Resets the folding of all groups to the default.
    pub(super) fn refold(&mut self) {
        self.0.values_mut().for_each(|(_, toggled)| *toggled = false);
    }

    /// Removes the blocks before `first`, which were dropped.
    pub(super) fn drop_before(&mut self, first: u64) {
        let cut = first.checked_sub(1).and_then(|before| self.get(before));
        self.0 = self.0.split_off(&first);
        if let Some(cut) = cut.filter(|cut| cut.last >= first) {
            self.0.insert(first, (cut.last, cut.toggled));
        }
    }

    /// Returns a copy with all ids increased by `by`.
    pub(super) fn shifted(self, by: u64) -> Self {
        Self(self.0.into_iter().map(|(first, (last, toggled))| (first + by, (last + by, toggled))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(stretches: &ReadGroups) -> String {
        let one = |(first, (last, toggled)): (&u64, &(u64, bool))| {
            format!("{first}-{last}{}", if *toggled { "*" } else { "" })
        };
        stretches.0.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn read_stretches_join_leave_and_are_dropped() {
        let mut all = ReadGroups::default();
        all.join(0, true, true);
        all.join(1, true, true);
        all.join(3, true, true);
        assert_eq!(drawn(&all), "0-1 3-3");
        assert!(!all.get(1).unwrap().is_long() && all.get(2).is_none());
        all.toggle(3);
        all.join(2, true, true);
        assert_eq!(drawn(&all), "0-3*", "what somebody unfolded stays so");
        assert!(all.get(2).unwrap().is_long());
        all.join(4, false, true);
        assert_eq!(drawn(&all), "0-3* 4-4", "a call of another agent begins its own");
        all.leave(1);
        assert_eq!(drawn(&all), "0-0* 2-3* 4-4");
        all.drop_before(3);
        assert_eq!(drawn(&all), "3-3* 4-4");
        all.refold();
        assert_eq!(drawn(&all.shifted(10)), "13-13 14-14");
    }

    #[test]
    fn read_stretches_equal_those_made_anew_after_any_change() {
        proptest::proptest!(|(changes in proptest::collection::vec((0..12_u64, proptest::bool::ANY), 0..60))| {
            let (mut all, mut member) = (ReadGroups::default(), [false; 12]);
            for (id, looks) in changes {
                let at = usize::try_from(id).unwrap();
                match (looks, member[at]) {
                    (true, false) => all.join(id, true, true),
                    (false, true) => all.leave(id),
                    _ => {}
                }
                member[at] = looks;
                for at in 0..12_u64 {
                    let is = member[usize::try_from(at).unwrap()];
                    let found = all.get(at);
                    proptest::prop_assert_eq!(found.is_some(), is);
                    let whole = found.is_none_or(|found| {
                        (found.first..=found.last).all(|id| member[usize::try_from(id).unwrap()])
                            && (found.first == 0 || !member[usize::try_from(found.first - 1).unwrap()])
                            && (found.last == 11 || !member[usize::try_from(found.last + 1).unwrap()])
                    });
                    proptest::prop_assert!(whole, "{}", drawn(&all));
                }
            }
        });
    }
}
