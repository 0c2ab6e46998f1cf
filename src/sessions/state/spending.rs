//! The spending of a session's runs: the only place where the runtime's figures are converted to differences.
//!
//! A step counts in the run in which it is reported; outside of a run it may be a replay of the past, and is left out. Of a sum, the
//! increase since the last one counts, whenever it is reported: the same sum reported twice adds nothing. For a conversation that began
//! here, sums start at 0; for another one the first sum only defines where counting begins.

use super::*;
use plexus_protocol::{CURRENCIES_MAX, Money, SpendReport};
use plexus_store::SpendChange;

/// The last sums that a session's runtime reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SpendMeter {
    #[serde(default, skip_serializing_if = "Spending::is_unknown")]
    last: Spending,
    /// `true` if the conversation began here, so that its sums started at 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    from_zero: bool,
    /// `true` if the runtime was started again: its sums may start from 0, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    again: bool,
}

impl SpendMeter {
    /// Returns whether there is nothing to store.
    pub(super) fn is_new(&self) -> bool {
        *self == Self::default()
    }

    /// Begins a new conversation.
    pub(super) fn begin(&mut self) {
        *self = Self { from_zero: true, ..Self::default() };
    }

    /// Continues the conversation in another start of its runtime.
    pub(super) fn continue_from_sum(&mut self) {
        self.again = true;
    }

    /// Returns the spending that a report adds. `running`: whether a run is in progress.
    pub(super) fn spent(&mut self, report: &SpendReport, running: bool) -> Spending {
        let (last, total, step) = (self.last.counts(), report.total.counts(), report.step.counts());
        let mut totals = last;
        let mut counts = [None; 5];
        for nth in 0..counts.len() {
            let step = step[nth].filter(|_| running);
            let Some(total) = total[nth] else {
                counts[nth] = step;
                continue;
            };
            totals[nth] = Some(total);
            counts[nth] = match last[nth] {
                Some(last) if total >= last => Some(total - last),
                Some(_) if self.again => Some(total),
                Some(_) => None,
                None if self.from_zero => Some(total),
                None => step,
            };
        }
        let mut costs = self.last.costs.clone();
        let mut spent = Vec::new();
        for Money { amount: total, currency } in &report.total.costs {
            let step = report.step.cost_in(currency).filter(|_| running);
            let amount = match self.last.cost_in(currency) {
                Some(last) if *total >= last => Some(*total - last),
                Some(_) if self.again => Some(*total),
                Some(_) => None,
                None if self.from_zero => Some(*total),
                None => step,
            };
            spent.extend(amount.and_then(|amount| Money::from_report(amount, currency)));
            match costs.iter().position(|cost| cost.currency == *currency) {
                Some(at) => costs[at].amount = *total,
                None if costs.len() < CURRENCIES_MAX => {
                    costs.push(Money { amount: *total, currency: currency.clone() })
                }
                // If the sum could not be stored, the next one would be counted whole.
                None => spent.retain(|cost| cost.currency != *currency),
            }
        }
        let steps = report.step.costs.iter().filter(|step| running && report.total.cost_in(&step.currency).is_none());
        spent.extend(steps.cloned());
        if report.total != Spending::default() {
            self.again = false;
        }
        self.last = Spending::new(totals, costs);
        Spending::new(counts, spent)
    }
}

impl SessionStateMachine {
    /// Applies the runtime's report of its spending.
    pub(super) fn spent(&mut self, report: &SpendReport, env: &DecisionEnv<'_>, plan: &mut Plan) {
        let before = self.core.meter.clone();
        let spending = self.core.meter.spent(report, self.core.run.is_some());
        plan.dirty |= before != self.core.meter;
        if spending.is_nothing() {
            return;
        }
        self.count_spending(&spending);
        plan.dirty = true;
        let run_id = match &mut self.core.run {
            Some(run) => {
                run.spent.add(&spending);
                run.run_id.clone()
            }
            None => self.zero_run.clone(),
        };
        plan.spent.push(SpendChange { session_id: self.origin.session_id.clone(), run_id, at: env.now, spending });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(input: u64, output: u64) -> Spending {
        Spending::new([Some(input), Some(output), None, None, None], vec![])
    }

    fn usd(amount: f64) -> Spending {
        Spending::money(Money::from_report(amount, "USD"))
    }

    fn step(step: Spending) -> SpendReport {
        SpendReport { step, total: Spending::default() }
    }

    fn total(total: Spending) -> SpendReport {
        SpendReport { step: Spending::default(), total }
    }

    /// Returns the spending that each report adds, as input, output and dollars.
    fn added(meter: &mut SpendMeter, reports: &[(SpendReport, bool)]) -> Vec<(u64, u64, f64)> {
        let one = |(report, running): &(SpendReport, bool)| {
            let spent = meter.spent(report, *running);
            let stored = serde_json::to_string(&*meter).unwrap();
            assert_eq!(
                serde_json::from_str::<SpendMeter>(&stored).unwrap(),
                *meter,
                "a restart changes nothing: {stored}"
            );
            (spent.input_tokens.unwrap_or(0), spent.output_tokens.unwrap_or(0), spent.cost_in("USD").unwrap_or(0.0))
        };
        reports.iter().map(one).collect()
    }

    fn begun() -> SpendMeter {
        let mut meter = SpendMeter::default();
        meter.begin();
        meter
    }

    #[test]
    fn spend_meter_counts_steps_in_runs_only() {
        let reports = [(step(tokens(100, 10)), true), (step(tokens(100, 10)), true), (step(tokens(7, 7)), false)];
        assert_eq!(added(&mut begun(), &reports), [(100, 10, 0.0), (100, 10, 0.0), (0, 0, 0.0)]);
    }

    #[test]
    fn spend_meter_counts_a_sum_once_however_often_it_is_told() {
        let both = |n: u64, cost: f64| {
            let mut all = tokens(100 * n, 10 * n);
            all.costs = usd(cost).costs;
            total(all)
        };
        let reports = [
            (both(1, 0.5), true),
            (both(1, 0.5), true),
            (both(3, 0.75), true),
            (both(3, 0.75), false),
            (both(4, 1.0), false),
        ];
        assert_eq!(
            added(&mut begun(), &reports),
            [(100, 10, 0.5), (0, 0, 0.0), (200, 20, 0.25), (0, 0, 0.0), (100, 10, 0.25)]
        );
    }

    #[test]
    fn spend_meter_does_not_count_what_was_spent_before_it() {
        // A resumed conversation: its first sum is of the past. Beside it, the step is what is new.
        let resumed = [(total(tokens(5000, 500)), true), (total(tokens(5100, 510)), true)];
        assert_eq!(added(&mut SpendMeter::default(), &resumed), [(0, 0, 0.0), (100, 10, 0.0)]);
        let with_step = SpendReport { step: tokens(40, 4), total: tokens(5000, 500) };
        assert_eq!(added(&mut SpendMeter::default(), &[(with_step.clone(), true)]), [(40, 4, 0.0)]);
        assert_eq!(added(&mut SpendMeter::default(), &[(with_step.clone(), false)]), [(0, 0, 0.0)]);
        assert_eq!(added(&mut begun(), &[(with_step, true)]), [(5000, 500, 0.0)], "of its own, all is new");
    }

    #[test]
    fn spend_meter_survives_a_restart_of_the_runtime() {
        let mut meter = begun();
        added(&mut meter, &[(total(tokens(300, 30)), true)]);
        // Codex goes on with its sums.
        meter.continue_from_sum();
        assert_eq!(
            added(&mut meter, &[(total(tokens(300, 30)), false), (total(tokens(400, 40)), true)]),
            [(0, 0, 0.0), (100, 10, 0.0)]
        );
        // Others begin again.
        meter.continue_from_sum();
        assert_eq!(
            added(&mut meter, &[(total(tokens(50, 5)), true), (total(tokens(60, 6)), true)]),
            [(50, 5, 0.0), (10, 1, 0.0)]
        );
    }

    #[test]
    fn spend_meter_takes_no_harm_from_sums_that_fall() {
        let reports: Vec<_> = [100, 0, 100, 99, 101].map(|n| (total(tokens(n, 0)), true)).into();
        let sums: Vec<u64> = added(&mut begun(), &reports).iter().map(|(input, ..)| *input).collect();
        assert_eq!(sums, [100, 0, 100, 0, 2]);
        let mut meter = begun();
        for nth in 0..30_u8 {
            let currency = format!("A{}{}", char::from(b'A' + nth / 26), char::from(b'A' + nth % 26));
            for _ in 0..2 {
                let mut both = usd(0.5);
                both.costs.extend(Money::from_report(1.0, &currency));
                meter.spent(&total(both), true);
            }
        }
        assert_eq!(meter.last.costs.len(), CURRENCIES_MAX);
    }

    #[test]
    fn spend_meter_takes_the_cost_and_the_tokens_apart() {
        // OpenCode by ACP: the cost as a sum, the tokens of the turn as a step.
        let reports = [
            (total(usd(0.25)), true),
            (step(tokens(100, 10)), true),
            (total(usd(0.5)), true),
            (step(tokens(100, 10)), true),
        ];
        assert_eq!(added(&mut begun(), &reports), [(0, 0, 0.25), (100, 10, 0.0), (0, 0, 0.25), (100, 10, 0.0)]);
        let mut both = tokens(1, 1);
        both.costs = usd(0.125).costs;
        assert_eq!(added(&mut SpendMeter::default(), &[(step(both), true)]), [(1, 1, 0.125)]);
    }
}
