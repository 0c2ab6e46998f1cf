//! Tokens of model calls that an agent reports several times, with higher numbers as the call proceeds. Pure.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use plexus_dialects::fnv::{FNV, fnv};
use plexus_protocol::{SpendReport, Spending};

/// Maximum number of stored calls; above it the oldest is removed, and counts again if it is reported again.
const CALLS_MAX: usize = 8;

/// The counted tokens of the last calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CountedCalls(VecDeque<(u64, [Option<u64>; 5])>);

impl CountedCalls {
    /// Returns whether no call is stored.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts a report of a call, and returns the part that was not counted yet.
    pub(crate) fn count(&mut self, call: &str, spending: &Spending) -> Option<SpendReport> {
        let (call, reported) = (fnv(FNV, call), spending.counts());
        let counted = match self.0.iter_mut().find(|(known, _)| *known == call) {
            Some((_, counted)) => {
                std::mem::replace(counted, std::array::from_fn(|nth| counted[nth].max(reported[nth])))
            }
            None => {
                if self.0.len() >= CALLS_MAX {
                    self.0.pop_front();
                }
                self.0.push_back((call, reported));
                [None; 5]
            }
        };
        let more = |nth: usize| Some(reported[nth]?.saturating_sub(counted[nth].unwrap_or(0)));
        let step = Spending::new(std::array::from_fn(more), Vec::new());
        if step.is_nothing() { None } else { SpendReport::step(step) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn spending(input: u64, output: u64) -> Spending {
        Spending::new([Some(input), Some(output), None, None, None], Vec::new())
    }

    #[test]
    fn call_tokens_count_once_however_often_a_call_is_told() {
        let mut calls = CountedCalls::default();
        let mut sum = Spending::default();
        let reported = [
            ("a", spending(10, 1)),
            ("a", spending(10, 1)),
            ("b", spending(5, 2)),
            ("a", spending(10, 8)),
            ("b", spending(4, 0)),
        ];
        for (call, spending) in &reported {
            sum.add(&calls.count(call, spending).unwrap_or_default().step);
        }
        assert_eq!(sum, spending(15, 10));
        // What is stored with the session goes on counting.
        let stored = serde_json::to_string(&calls).unwrap();
        let mut next: CountedCalls = serde_json::from_str(&stored).unwrap();
        assert_eq!(next.count("b", &spending(5, 2)), None);
        assert_eq!(next.count("b", &spending(5, 3)).unwrap().step.output_tokens, Some(1));
        assert_eq!(next.count("c", &spending(0, 0)), None);
    }

    #[test]
    fn call_tokens_of_few_calls_are_kept() {
        let mut calls = CountedCalls::default();
        for call in 0..1000 {
            calls.count(&call.to_string(), &spending(1, 1));
        }
        assert_eq!(calls.0.len(), CALLS_MAX);
    }
}
