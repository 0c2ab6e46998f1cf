//! The choice among agent processes that earlier gateways left running. Pure.

use super::runtime_link::{OrphanState, OrphanedRuntime, ProcessStart};

/// The decision on the processes of one runtime that earlier gateways left; the numbers are indices in their list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LeftoverChoice {
    /// The process to take over.
    pub(super) keep: Option<usize>,
    /// Processes to end, because no session needs them.
    pub(super) end: Vec<usize>,
    /// Processes whose sessions are ambiguous or whose holder cannot be used: users decide.
    pub(super) unattended: Vec<usize>,
}

/// Returns whether a session runs in a process; `None` if that is not known yet.
pub(super) fn belongs(orphan: &OrphanedRuntime, start: &ProcessStart) -> Option<bool> {
    match &orphan.state {
        OrphanState::All { instance, nameless, generation, .. } => {
            Some(start.belongs(instance, *nameless, *generation))
        }
        OrphanState::Late(_) => None,
        OrphanState::Unusable(_) => Some(false),
    }
}

/// Chooses among the processes of one runtime: the one that most sessions name, or else one whose holder has not responded yet, or else
/// the newest. If sessions of release 0.1.0 match several processes, none is chosen and none ended.
pub(super) fn choose(orphans: &[OrphanedRuntime], starts: &[&ProcessStart]) -> LeftoverChoice {
    let mut choice = LeftoverChoice::default();
    let matches = |start: &ProcessStart| orphans.iter().filter(|orphan| belongs(orphan, start) == Some(true)).count();
    let ambiguous: Vec<&&ProcessStart> = starts.iter().filter(|start| matches(start) > 1).collect();
    let mut candidates = Vec::new();
    for (index, orphan) in orphans.iter().enumerate() {
        let is_ambiguous = ambiguous.iter().any(|start| belongs(orphan, start) == Some(true));
        match &orphan.state {
            OrphanState::Unusable(_) => choice.unattended.push(index),
            OrphanState::All { .. } if is_ambiguous => choice.unattended.push(index),
            OrphanState::All { started_at, .. } => {
                let matching = starts.iter().filter(|start| belongs(orphan, start) == Some(true)).count();
                candidates.push((matching, false, Some(*started_at), index));
            }
            // The sessions may belong to this process.
            OrphanState::Late(_) => candidates.push((0, true, None, index)),
        }
    }
    let best = candidates.iter().max_by_key(|(matching, late, started_at, _)| (*matching, *late, *started_at));
    // A process that no session names is not taken while an unattended one may be theirs.
    let best = best.filter(|(matching, ..)| *matching > 0 || choice.unattended.is_empty()).map(|(.., index)| *index);
    choice.keep = best;
    for (matching, _, _, index) in candidates {
        match (Some(index) == best, best) {
            (true, _) => {}
            (false, None) if matching == 0 => choice.unattended.push(index),
            (false, _) => choice.end.push(index),
        }
    }
    choice
}

/// Returns the name of a process for messages.
pub(super) fn process_name(orphan: &OrphanedRuntime) -> String {
    match &orphan.state {
        OrphanState::All { pid, instance, .. } => format!("process {pid} ({instance})"),
        OrphanState::Late(_) | OrphanState::Unusable(_) => "a process".into(),
    }
}

pub(super) fn unattended_reason(orphan: &OrphanedRuntime) -> &str {
    match &orphan.state {
        OrphanState::All { .. } => "several processes match what its sessions know",
        OrphanState::Late(reason) | OrphanState::Unusable(reason) => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::{Connect, RuntimeId, RuntimeSpec, Timestamp};

    fn process(index: usize, instance: &str, generation: u64) -> OrphanedRuntime {
        let id = RuntimeId::trusted("demo");
        let spec = RuntimeSpec::new(id.clone(), "acp", Connect::Command(vec!["x".into()]), "/");
        let state = OrphanState::All {
            spec: Box::new(spec),
            generation,
            instance: instance.into(),
            nameless: instance.starts_with("p_"),
            pid: 7,
            started_at: Timestamp::from_millis(index as i64),
        };
        OrphanedRuntime { id, index, state }
    }

    fn late(index: usize) -> OrphanedRuntime {
        OrphanedRuntime { id: RuntimeId::trusted("demo"), index, state: OrphanState::Late("slow".into()) }
    }

    fn start(instance: Option<&str>, generation: u64) -> ProcessStart {
        ProcessStart { instance: instance.map(str::to_owned), generation, mark: None }
    }

    fn chosen(orphans: &[OrphanedRuntime], starts: &[ProcessStart]) -> (Option<usize>, Vec<usize>, Vec<usize>) {
        let LeftoverChoice { keep, end, unattended } = choose(orphans, &starts.iter().collect::<Vec<_>>());
        (keep, end, unattended)
    }

    #[test]
    fn orphans_keep_the_process_their_sessions_know_and_end_others() {
        let both = [process(0, "i_a", 1), process(1, "i_b", 1)];
        assert_eq!(chosen(&both, &[start(Some("i_a"), 1)]), (Some(0), vec![1], vec![]));
        assert_eq!(chosen(&both, &[start(Some("i_b"), 1)]), (Some(1), vec![0], vec![]));
        // Of two processes that sessions name, the one that most name; of none, the newest.
        let starts = [start(Some("i_a"), 1), start(Some("i_a"), 1), start(Some("i_b"), 1)];
        assert_eq!(chosen(&both, &starts), (Some(0), vec![1], vec![]));
        assert_eq!(chosen(&both, &[start(Some("i_gone"), 1)]), (Some(1), vec![0], vec![]));
        assert_eq!(chosen(&both[..1], &[]), (Some(0), vec![], vec![]));
    }

    #[test]
    fn orphans_wait_for_unanswered_holder_unless_known_one_answered() {
        let both = [process(0, "i_a", 1), late(1)];
        assert_eq!(chosen(&both, &[start(Some("i_a"), 1)]), (Some(0), vec![1], vec![]));
        assert_eq!(chosen(&both, &[start(Some("i_slow"), 1)]), (Some(1), vec![0], vec![]));
        assert_eq!(chosen(&[late(0)], &[start(Some("i_slow"), 1)]), (Some(0), vec![], vec![]));
    }

    #[test]
    fn orphans_of_release_0_1_0_match_by_generation_or_stay_unattended() {
        let (one, two) = (process(0, "p_7_1", 1), process(1, "p_8_2", 2));
        let both = [one.clone(), two];
        assert_eq!(chosen(&both, &[start(None, 1)]), (Some(0), vec![1], vec![]));
        assert_eq!(chosen(&both, &[start(None, 2)]), (Some(1), vec![0], vec![]));
        let twins = [one, process(1, "p_8_2", 1)];
        assert_eq!(chosen(&twins, &[start(None, 1)]), (None, vec![], vec![0, 1]));
        // Once it was taken over, its session names it.
        assert_eq!(chosen(&twins, &[start(Some("p_8_2"), 1)]), (Some(1), vec![0], vec![]));
        // A session of the release 0.1.0 never belongs to a process with an instance name.
        assert_eq!(chosen(&[process(0, "i_a", 1)], &[start(None, 1)]), (Some(0), vec![], vec![]));
        assert_eq!(belongs(&process(0, "i_a", 1), &start(None, 1)), Some(false));
    }

    #[test]
    fn orphans_unusable_process_is_reported_and_not_replaced() {
        let unusable = OrphanedRuntime {
            id: RuntimeId::trusted("demo"),
            index: 0,
            state: OrphanState::Unusable("version 9".into()),
        };
        assert_eq!(chosen(std::slice::from_ref(&unusable), &[start(Some("i_a"), 1)]), (None, vec![], vec![0]));
        let beside = [unusable, process(1, "i_a", 1)];
        assert_eq!(chosen(&beside, &[start(Some("i_a"), 1)]), (Some(1), vec![], vec![0]));
        assert_eq!(chosen(&beside, &[]), (None, vec![], vec![0, 1]));
    }
}
