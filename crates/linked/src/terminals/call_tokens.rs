//! Tokens of model calls that an agent tells more than once, and the more the further the call is. Pure.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use plexus_dialects::fnv::{FNV, fnv};
use plexus_protocol::{SpendReport, Spending};

/// Calls that are remembered; the oldest is forgotten first, and counts again if it is told once more.
const CALLS_MAX: usize = 8;

/// What is counted of the last calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CountedCalls(VecDeque<(u64, [Option<u64>; 5])>);

impl CountedCalls {
    /// Whether none is remembered.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A call was told: what of it is not counted yet.
    pub(crate) fn told(&mut self, call: &str, spending: &Spending) -> Option<SpendReport> {
        let (call, told) = (fnv(FNV, call), spending.counts());
        let counted = match self.0.iter_mut().find(|(known, _)| *known == call) {
            Some((_, counted)) => std::mem::replace(counted, std::array::from_fn(|nth| counted[nth].max(told[nth]))),
            None => {
                if self.0.len() >= CALLS_MAX {
                    self.0.pop_front();
                }
                self.0.push_back((call, told));
                [None; 5]
            }
        };
        let more = |nth: usize| Some(told[nth]?.saturating_sub(counted[nth].unwrap_or(0)));
        let news = Spending::of(std::array::from_fn(more), Vec::new());
        if news.is_nothing() { None } else { SpendReport::step(news) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(input: u64, output: u64) -> Spending {
        Spending::of([Some(input), Some(output), None, None, None], Vec::new())
    }

    #[test]
    fn call_tokens_count_once_however_often_a_call_is_told() {
        let mut calls = CountedCalls::default();
        let mut sum = Spending::default();
        let told = [("a", of(10, 1)), ("a", of(10, 1)), ("b", of(5, 2)), ("a", of(10, 8)), ("b", of(4, 0))];
        for (call, spending) in &told {
            sum.add(&calls.told(call, spending).unwrap_or_default().step);
        }
        assert_eq!(sum, of(15, 10));
        // What is kept with the session goes on counting.
        let kept = serde_json::to_string(&calls).unwrap();
        let mut next: CountedCalls = serde_json::from_str(&kept).unwrap();
        assert_eq!(next.told("b", &of(5, 2)), None);
        assert_eq!(next.told("b", &of(5, 3)).unwrap().step.output_tokens, Some(1));
        assert_eq!(next.told("c", &of(0, 0)), None);
    }

    #[test]
    fn call_tokens_of_few_calls_are_kept() {
        let mut calls = CountedCalls::default();
        for call in 0..1000 {
            calls.told(&call.to_string(), &of(1, 1));
        }
        assert_eq!(calls.0.len(), CALLS_MAX);
    }
}
