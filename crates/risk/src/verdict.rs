//! A risk with its reasons.

use plexus_protocol::Risk;

/// A risk with at most `REASONS_MAX` reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RiskVerdict {
    /// The risk.
    pub risk: Risk,
    /// The reasons for the risk; empty if it is low.
    pub reasons: Vec<String>,
}

/// Maximum number of reasons of a verdict.
const REASONS_MAX: usize = 6;

impl RiskVerdict {
    /// Makes a verdict without a reason.
    pub fn low() -> Self {
        Self { risk: Risk::Low, reasons: Vec::new() }
    }

    pub(super) fn elevated(reason: impl Into<String>) -> Self {
        Self { risk: Risk::Elevated, reasons: vec![reason.into()] }
    }

    pub(super) fn danger(reason: impl Into<String>) -> Self {
        Self { risk: Risk::Danger, reasons: vec![reason.into()] }
    }

    /// Combines two verdicts: the higher risk with its reasons.
    pub(super) fn and(&mut self, other: Self) {
        if other.risk > self.risk {
            *self = other;
        } else if other.risk == self.risk {
            for reason in other.reasons {
                if self.reasons.len() < REASONS_MAX && !self.reasons.contains(&reason) {
                    self.reasons.push(reason);
                }
            }
        }
    }
}
