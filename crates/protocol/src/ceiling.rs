//! Ceilings of what agents spend. A reached ceiling stops no run; the next prompts wait until a user allows them to continue.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{CURRENCIES_MAX, Money, Spending, TOKENS_MAX};

/// Tolerance of comparisons of amounts, as a part of a currency's unit: sums of fractions are not exact.
const TOLERANCE: f64 = 1e-9;

/// The subject of a ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = CeilingOf)]
pub enum CeilingKind {
    /// The spending of all sessions in a day, by the clock of the gateway's machine.
    Day,
    /// The spending of one session.
    Session,
}

impl CeilingKind {
    /// Returns the cause of the wait of a prompt, in words.
    pub const fn wait_reason(self) -> &'static str {
        match self {
            Self::Day => "waits: the ceiling of today is reached",
            Self::Session => "waits: the ceiling of this session is reached",
        }
    }
}

/// A limit of spending. Each figure is a limit of its own: the first that is reached counts. Without figures there is no ceiling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// The maximum number of tokens read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_099_511_627_776_u64)]
    pub tokens: Option<u64>,
    /// The maximum amounts of money, at most one of each currency. Only reports of agents in the same currency count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 8)]
    pub costs: Vec<Money>,
}

/// A figure of a ceiling that is reached, with the spending and the limit.
#[derive(Clone, Debug, PartialEq)]
pub enum CeilingReached {
    /// Tokens.
    Tokens {
        /// The tokens spent.
        spent: u64,
        /// The limit, including what was allowed beyond it since.
        limit: u64,
        /// The ceiling itself.
        step: u64,
    },
    /// Money.
    Cost {
        /// The money spent.
        spent: Money,
        /// The limit, including what was allowed beyond it since.
        limit: f64,
        /// The ceiling itself.
        step: f64,
    },
}

impl Ceiling {
    /// Returns whether the ceiling limits nothing.
    pub fn is_none(&self) -> bool {
        self.tokens.is_none() && self.costs.is_empty()
    }

    /// Returns the first figure that is reached. `allowed`: the spending when a user last allowed to continue; from there the same may be
    /// spent again.
    pub fn reached(&self, spent: &Spending, allowed: &Spending) -> Option<CeilingReached> {
        for Money { amount: step, currency } in &self.costs {
            let Some(amount) = spent.cost_in(currency) else { continue };
            let limit = allowed.cost_in(currency).unwrap_or(0.0) + step;
            if amount + TOLERANCE >= limit {
                let spent = Money { amount, currency: currency.clone() };
                return Some(CeilingReached::Cost { spent, limit, step: *step });
            }
        }
        let step = self.tokens?;
        let limit = allowed.tokens().saturating_add(step);
        (spent.tokens() >= limit).then(|| CeilingReached::Tokens { spent: spent.tokens(), limit, step })
    }

    /// Checks figures that a client sent, and writes currencies in capitals.
    ///
    /// # Errors
    /// The problem, and the valid values.
    pub fn checked(self) -> Result<Self, String> {
        let mut checked = Self { tokens: self.tokens, costs: Vec::new() };
        if checked.tokens.is_some_and(|tokens| tokens == 0 || tokens > TOKENS_MAX) {
            return Err(format!("tokens of a ceiling must be from 1 to {TOKENS_MAX}; leave them out for no limit"));
        }
        for Money { amount, currency } in self.costs {
            checked.put(Money::from_report(amount, &currency).filter(|money| money.amount > 0.0).ok_or_else(
                || "an amount of a ceiling must be above 0, with a currency of three letters: 5 USD".to_owned(),
            )?)?;
        }
        Ok(checked)
    }

    /// Reads figures in the form that users write: `5 USD`, `2000000 tokens`, `2M tokens`; several are separated by commas.
    ///
    /// # Errors
    /// The problem, and the valid values.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut read = Self::default();
        for part in text.split(',').map(str::trim) {
            let wrong =
                || format!("{part:?} is no ceiling: write an amount and a currency, or tokens: 5 USD, 2M tokens");
            let (figure, unit) = part.split_once(char::is_whitespace).ok_or_else(wrong)?;
            let unit = unit.trim();
            if unit.eq_ignore_ascii_case("tokens") {
                if read.tokens.is_some() {
                    return Err("tokens are given twice".into());
                }
                read.tokens = Some(parse_tokens(figure).ok_or_else(wrong)?);
                continue;
            }
            let amount: f64 = figure.parse().map_err(|_| wrong())?;
            read.put(Money::from_report(amount, unit).filter(|money| money.amount > 0.0).ok_or_else(wrong)?)?;
        }
        Ok(read)
    }

    fn put(&mut self, money: Money) -> Result<(), String> {
        if self.costs.iter().any(|known| known.currency == money.currency) {
            return Err(format!("{} is given twice: one amount of each currency", money.currency));
        }
        if self.costs.len() >= CURRENCIES_MAX {
            return Err(format!("a ceiling may have at most {CURRENCIES_MAX} currencies"));
        }
        self.costs.push(money);
        Ok(())
    }
}

/// Parses a count of tokens with `k` or `M` for thousands and millions.
fn parse_tokens(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1000),
        b'M' => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    let digits = digits.replace([',', '_'], "");
    let count = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    (1..=TOKENS_MAX).contains(&count).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(tokens: u64, usd: f64) -> Spending {
        Spending::new([Some(tokens), None, None, None, None], Money::from_report(usd, "USD").into_iter().collect())
    }

    #[test]
    fn ceiling_is_reached_by_its_first_figure() {
        let ceiling = |text: &str| Ceiling::parse(text).unwrap();
        let nothing = Spending::default();
        for (limit, sum, allowed, reached) in [
            ("5 USD", spent(0, 4.99), nothing.clone(), false),
            ("5 USD", spent(0, 5.0), nothing.clone(), true),
            ("5 EUR", spent(0, 500.0), nothing.clone(), false),
            ("5 USD", spent(0, 9.0), spent(0, 5.0), false),
            ("5 USD", spent(0, 10.0), spent(0, 5.0), true),
            ("100 tokens", spent(99, 500.0), nothing.clone(), false),
            ("100 tokens", spent(100, 0.0), nothing.clone(), true),
            ("100 tokens, 5 USD", spent(1, 5.0), nothing.clone(), true),
            ("100 tokens, 5 USD", spent(100, 0.1), nothing.clone(), true),
            ("100 tokens, 5 USD", spent(150, 0.1), spent(100, 0.0), false),
        ] {
            assert_eq!(ceiling(limit).reached(&sum, &allowed).is_some(), reached, "{limit} {sum:?} {allowed:?}");
        }
        assert_eq!(Ceiling::default().reached(&spent(u64::MAX, 1e9), &nothing), None);
        let mut tenths = Spending::default();
        (0..10).for_each(|_| tenths.add(&spent(0, 0.1)));
        assert!(ceiling("1 USD").reached(&tenths, &nothing).is_some(), "ten tenths are one");
    }

    #[test]
    fn ceiling_says_its_bounds_in_its_schema() {
        let schema = serde_json::to_value(<Ceiling as utoipa::PartialSchema>::schema()).unwrap();
        assert_eq!(schema["properties"]["tokens"]["maximum"], TOKENS_MAX);
        assert_eq!(schema["properties"]["costs"]["maxItems"], CURRENCIES_MAX);
    }

    #[test]
    fn ceiling_is_read_as_people_write_it() {
        let read = |text: &str| Ceiling::parse(text).map(|ceiling| serde_json::to_value(ceiling).unwrap());
        let usd = serde_json::json!({ "costs": [{ "amount": 5.0, "currency": "USD" }] });
        assert_eq!(read("5 USD").unwrap(), usd);
        assert_eq!(read(" 5.00  usd ").unwrap(), usd);
        for text in ["2000000 tokens", "2M tokens", "2000k tokens", "2_000_000 Tokens"] {
            assert_eq!(read(text).unwrap(), serde_json::json!({ "tokens": 2_000_000 }), "{text}");
        }
        assert_eq!(read("5 USD, 4 EUR, 1k tokens").unwrap()["costs"].as_array().unwrap().len(), 2);
        for bad in [
            "",
            "5",
            "USD",
            "0 USD",
            "-5 USD",
            "5 dollars",
            "NaN USD",
            "0 tokens",
            "5 USD,",
            "1 USD, 2 usd",
            "1k tokens, 2k tokens",
            "1.5 tokens",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let many = (0..9_u8).map(|n| format!("1 AA{}", char::from(b'A' + n))).collect::<Vec<_>>().join(",");
        assert!(read(&many).unwrap_err().contains('8'));
        let sent = |json: serde_json::Value| serde_json::from_value::<Ceiling>(json).unwrap().checked();
        assert!(sent(serde_json::json!({})).unwrap().is_none());
        assert!(sent(serde_json::json!({ "tokens": 0 })).is_err());
        assert!(sent(serde_json::json!({ "costs": [{ "amount": -1.0, "currency": "USD" }] })).is_err());
    }
}
