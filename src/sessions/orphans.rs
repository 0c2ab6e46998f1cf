//! Which of the processes that earlier gateways left a gateway goes on with. Pure.

use super::runtime_link::{OrphanState, OrphanedRuntime, ProcessStart};

/// What becomes of several processes that earlier gateways left under one name; places in their list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LeftoverChoice {
    /// The one to go on with.
    pub(super) keep: Option<usize>,
    /// Those that are ended, because no session needs them.
    pub(super) end: Vec<usize>,
    /// Those of which nobody can say whose they are, or that cannot be spoken with: people decide.
    pub(super) unattended: Vec<usize>,
}

/// Whether a session belongs to a process; `None` where that is not known yet.
pub(super) fn belongs(left: &OrphanedRuntime, start: &ProcessStart) -> Option<bool> {
    match &left.known {
        OrphanState::All { instance, nameless, generation, .. } => {
            Some(start.belongs(instance, *nameless, *generation))
        }
        OrphanState::Late(_) => None,
        OrphanState::Unusable(_) => Some(false),
    }
}

/// Chooses among processes of one name: the one that most of its sessions know, or else one whose holder has not answered
/// yet, or else the newest. Where sessions of the release 0.1.0 fit several, none is chosen and none ended.
pub(super) fn choose(left: &[OrphanedRuntime], starts: &[&ProcessStart]) -> LeftoverChoice {
    let mut choice = LeftoverChoice::default();
    let fit = |start: &ProcessStart| left.iter().filter(|left| belongs(left, start) == Some(true)).count();
    let unclear: Vec<&&ProcessStart> = starts.iter().filter(|start| fit(start) > 1).collect();
    let mut candidates = Vec::new();
    for (place, one) in left.iter().enumerate() {
        let is_unclear = unclear.iter().any(|start| belongs(one, start) == Some(true));
        match &one.known {
            OrphanState::Unusable(_) => choice.unattended.push(place),
            OrphanState::All { .. } if is_unclear => choice.unattended.push(place),
            OrphanState::All { started_at, .. } => {
                let known_by = starts.iter().filter(|start| belongs(one, start) == Some(true)).count();
                candidates.push((known_by, false, Some(*started_at), place));
            }
            // It may be the one that they know.
            OrphanState::Late(_) => candidates.push((0, true, None, place)),
        }
    }
    let best = candidates.iter().max_by_key(|(known_by, late, started_at, _)| (*known_by, *late, *started_at));
    // Beside one that may be the right one, none is taken that nobody knows.
    let best = best.filter(|(known_by, ..)| *known_by > 0 || choice.unattended.is_empty()).map(|(.., place)| *place);
    choice.keep = best;
    for (known_by, _, _, place) in candidates {
        match (Some(place) == best, best) {
            (true, _) => {}
            (false, None) if known_by == 0 => choice.unattended.push(place),
            (false, _) => choice.end.push(place),
        }
    }
    choice
}

pub(super) fn process_of(left: &OrphanedRuntime) -> String {
    match &left.known {
        OrphanState::All { pid, instance, .. } => format!("process {pid} ({instance})"),
        OrphanState::Late(_) | OrphanState::Unusable(_) => "a process".into(),
    }
}

pub(super) fn why_unattended(left: &OrphanedRuntime) -> &str {
    match &left.known {
        OrphanState::All { .. } => "several processes match what its sessions know",
        OrphanState::Late(why) | OrphanState::Unusable(why) => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_protocol::{Connect, RuntimeId, RuntimeSpec, Timestamp};

    fn process(place: usize, instance: &str, generation: u64) -> OrphanedRuntime {
        let id = RuntimeId::trusted("demo");
        let spec = RuntimeSpec::new(id.clone(), "acp", Connect::Command(vec!["x".into()]), "/");
        let known = OrphanState::All {
            spec: Box::new(spec),
            generation,
            instance: instance.into(),
            nameless: instance.starts_with("p_"),
            pid: 7,
            started_at: Timestamp::from_millis(place as i64),
        };
        OrphanedRuntime { id, place, known }
    }

    fn late(place: usize) -> OrphanedRuntime {
        OrphanedRuntime { id: RuntimeId::trusted("demo"), place, known: OrphanState::Late("slow".into()) }
    }

    fn knows(instance: Option<&str>, generation: u64) -> ProcessStart {
        ProcessStart { instance: instance.map(str::to_owned), generation, mark: None }
    }

    fn chosen(left: &[OrphanedRuntime], starts: &[ProcessStart]) -> (Option<usize>, Vec<usize>, Vec<usize>) {
        let LeftoverChoice { keep, end, unattended } = choose(left, &starts.iter().collect::<Vec<_>>());
        (keep, end, unattended)
    }

    #[test]
    fn the_process_that_its_sessions_know_is_kept_and_the_others_end() {
        let both = [process(0, "i_a", 1), process(1, "i_b", 1)];
        assert_eq!(chosen(&both, &[knows(Some("i_a"), 1)]), (Some(0), vec![1], vec![]));
        assert_eq!(chosen(&both, &[knows(Some("i_b"), 1)]), (Some(1), vec![0], vec![]));
        // Of two that sessions know the one that most do; of none the newest.
        let starts = [knows(Some("i_a"), 1), knows(Some("i_a"), 1), knows(Some("i_b"), 1)];
        assert_eq!(chosen(&both, &starts), (Some(0), vec![1], vec![]));
        assert_eq!(chosen(&both, &[knows(Some("i_gone"), 1)]), (Some(1), vec![0], vec![]));
        assert_eq!(chosen(&both[..1], &[]), (Some(0), vec![], vec![]));
    }

    #[test]
    fn one_that_has_not_answered_is_waited_for_unless_the_right_one_has() {
        let both = [process(0, "i_a", 1), late(1)];
        assert_eq!(chosen(&both, &[knows(Some("i_a"), 1)]), (Some(0), vec![1], vec![]));
        assert_eq!(chosen(&both, &[knows(Some("i_slow"), 1)]), (Some(1), vec![0], vec![]));
        assert_eq!(chosen(&[late(0)], &[knows(Some("i_slow"), 1)]), (Some(0), vec![], vec![]));
    }

    #[test]
    fn what_the_release_0_1_0_left_is_known_by_its_generation_and_left_alone_where_that_is_unclear() {
        let (one, two) = (process(0, "p_7_1", 1), process(1, "p_8_2", 2));
        let both = [one.clone(), two];
        assert_eq!(chosen(&both, &[knows(None, 1)]), (Some(0), vec![1], vec![]));
        assert_eq!(chosen(&both, &[knows(None, 2)]), (Some(1), vec![0], vec![]));
        let twins = [one, process(1, "p_8_2", 1)];
        assert_eq!(chosen(&twins, &[knows(None, 1)]), (None, vec![], vec![0, 1]));
        // Once it was taken over, its session knows it.
        assert_eq!(chosen(&twins, &[knows(Some("p_8_2"), 1)]), (Some(1), vec![0], vec![]));
        // A session of the release never goes to a process that has a name.
        assert_eq!(chosen(&[process(0, "i_a", 1)], &[knows(None, 1)]), (Some(0), vec![], vec![]));
        assert_eq!(belongs(&process(0, "i_a", 1), &knows(None, 1)), Some(false));
    }

    #[test]
    fn one_that_cannot_be_spoken_with_is_said_to_run_and_none_is_taken_in_its_place() {
        let unusable = OrphanedRuntime {
            id: RuntimeId::trusted("demo"),
            place: 0,
            known: OrphanState::Unusable("version 9".into()),
        };
        assert_eq!(chosen(std::slice::from_ref(&unusable), &[knows(Some("i_a"), 1)]), (None, vec![], vec![0]));
        let beside = [unusable, process(1, "i_a", 1)];
        assert_eq!(chosen(&beside, &[knows(Some("i_a"), 1)]), (Some(1), vec![], vec![0]));
        assert_eq!(chosen(&beside, &[]), (None, vec![], vec![0, 1]));
    }
}
