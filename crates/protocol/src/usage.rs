//! Spending of agents: tokens, and money where they report it.
//!
//! Each count has one meaning, regardless of its name in the agent's own protocol: `input` is everything that the model read, including
//! tokens from its cache; `output` is everything that it wrote, including its reasoning. A count that the agent does not report is
//! absent, never 0.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Maximum number of tokens that one report, run or sum may count; a larger count is invalid and left out, a larger sum stays here.
pub const TOKENS_MAX: u64 = 1 << 40;
/// Maximum amount of money, in any currency; a larger one is left out, a larger sum stays here.
pub const MONEY_MAX: f64 = 1e9;
/// Maximum number of currencies in one sum; amounts in further ones are left out.
pub const CURRENCIES_MAX: usize = 8;
/// Number of fractions of a currency's unit that are stored: amounts are rounded to a billionth.
const FRACTIONS: f64 = 1e9;

/// An amount of money in the currency that the agent reported. Amounts of different currencies are never added or converted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Money {
    /// The amount.
    #[schema(minimum = 0)]
    pub amount: f64,
    /// The currency by ISO 4217: three capital letters.
    #[schema(pattern = "^[A-Z]{3}$")]
    pub currency: String,
}

impl Money {
    /// Makes an amount that an agent reported; `None` unless it is a finite number from 0 to [`MONEY_MAX`] and the currency has three
    /// letters.
    pub fn from_report(amount: f64, currency: &str) -> Option<Self> {
        let currency = currency.trim();
        let known = currency.len() == 3 && currency.bytes().all(|letter| letter.is_ascii_alphabetic());
        let bounded = amount.is_finite() && (0.0..=MONEY_MAX).contains(&amount);
        (known && bounded).then(|| Self { amount: rounded(amount), currency: currency.to_ascii_uppercase() })
    }
}

/// Returns a count of tokens that an agent reported; `None` unless it is a number from 0 to [`TOKENS_MAX`].
pub fn reported_tokens(count: f64) -> Option<u64> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // in bounds
    (count.is_finite() && (0.0..=TOKENS_MAX as f64).contains(&count)).then_some(count as u64)
}

/// Formats a count in three digits or more: 950, 12.3k, 4.56M.
pub fn short_count(count: u64) -> String {
    #[allow(clippy::cast_precision_loss)] // three digits of it are shown
    let scaled = |unit: f64, name: &str| {
        let value = count as f64 / unit;
        let digits = if value >= 99.95 {
            0
        } else if value >= 9.995 {
            1
        } else {
            2
        };
        format!("{value:.digits$}{name}")
    };
    match count {
        0..1_000 => count.to_string(),
        1_000..999_500 => scaled(1e3, "k"),
        999_500..999_500_000 => scaled(1e6, "M"),
        _ => scaled(1e9, "G"),
    }
}

/// Formats an amount of money in digits; a small one has more of them.
pub fn short_amount(amount: f64) -> String {
    let digits = if amount > 0.0 && amount < 0.995 { 4 } else { 2 };
    format!("{amount:.digits$}")
}

/// Reads a count of tokens, as `deserialize_with`. An invalid count is read as absent, so that the rest of the message can be read.
///
/// # Errors
/// The input is not JSON.
pub fn lenient_tokens<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(input)?.as_f64().and_then(reported_tokens))
}

/// Tokens and money spent: by a step, a run, a session, or since some time. A figure that was not reported is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Spending {
    /// Tokens that the model read, including those from its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens that the model wrote, including its reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The part of `input_tokens` that came from the model's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_read_tokens: Option<u64>,
    /// The part of `input_tokens` that was stored in the model's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_write_tokens: Option<u64>,
    /// The part of `output_tokens` that was reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The cost, as the agent reported it: an amount for each currency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Money>,
}

impl Spending {
    /// Returns the counts, in a fixed order.
    pub const fn counts(&self) -> [Option<u64>; 5] {
        let Self { input_tokens, output_tokens, cached_read_tokens, cached_write_tokens, reasoning_tokens, .. } = self;
        [*input_tokens, *output_tokens, *cached_read_tokens, *cached_write_tokens, *reasoning_tokens]
    }

    /// Makes spending of these counts, in the order of [`counts`](Self::counts), and these costs.
    pub const fn new([input, output, read, write, reasoning]: [Option<u64>; 5], costs: Vec<Money>) -> Self {
        Self {
            input_tokens: input,
            output_tokens: output,
            cached_read_tokens: read,
            cached_write_tokens: write,
            reasoning_tokens: reasoning,
            costs,
        }
    }

    /// Makes spending of money alone.
    pub fn money(cost: Option<Money>) -> Self {
        Self { costs: cost.into_iter().collect(), ..Self::default() }
    }

    /// Returns the number of tokens read and written.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.unwrap_or(0).saturating_add(self.output_tokens.unwrap_or(0))
    }

    /// Returns whether nothing was spent: every figure is absent or 0.
    pub fn is_nothing(&self) -> bool {
        self.counts().iter().flatten().all(|count| *count == 0) && self.costs.iter().all(|cost| cost.amount <= 0.0)
    }

    /// Returns the amount in a currency, if one was reported.
    pub fn cost_in(&self, currency: &str) -> Option<f64> {
        self.costs.iter().find(|cost| cost.currency == currency).map(|cost| cost.amount)
    }

    /// Returns whether nothing is known: every figure is absent.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Adds further spending. Sums are limited to [`TOKENS_MAX`] and [`MONEY_MAX`].
    pub fn add(&mut self, more: &Self) {
        let sum = |known: Option<u64>, more: Option<u64>| match (known, more) {
            (known, None) => known,
            (known, Some(more)) => Some(known.unwrap_or(0).saturating_add(more).min(TOKENS_MAX)),
        };
        let (current, added) = (self.counts(), more.counts());
        let counts = std::array::from_fn(|nth| sum(current[nth], added[nth]));
        let mut costs = std::mem::take(&mut self.costs);
        for cost in &more.costs {
            match costs.iter().position(|known| known.currency == cost.currency) {
                Some(at) => costs[at].amount = rounded((costs[at].amount + cost.amount).min(MONEY_MAX)),
                None if costs.len() < CURRENCIES_MAX => costs.push(cost.clone()),
                None => {}
            }
        }
        costs.sort_by(|a, b| a.currency.cmp(&b.currency));
        *self = Self::new(counts, costs);
    }
}

/// A report of spending, in one message of a runtime.
///
/// A figure is reported as the spending of a step (a model call or a turn, reported once), or as the sum since the conversation began.
/// The receiver that stores the last sum converts a sum to the spending since then; a step beside it is used only if there is no sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpendReport {
    /// The spending of the step.
    pub step: Spending,
    /// The spending of the conversation, with the step.
    pub total: Spending,
}

impl SpendReport {
    /// Makes a report of a step, unless it has no figures.
    pub fn step(step: Spending) -> Option<Self> {
        (!step.is_unknown()).then(|| Self { step, total: Spending::default() })
    }

    /// Makes a report of sums, unless it has no figures.
    pub fn total(total: Spending) -> Option<Self> {
        (!total.is_unknown()).then(|| Self { step: Spending::default(), total })
    }
}

fn rounded(amount: f64) -> f64 {
    (amount * FRACTIONS).round() / FRACTIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(amount: f64) -> Vec<Money> {
        vec![Money { amount, currency: "USD".into() }]
    }

    #[test]
    fn usage_figures_are_short() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.00k"),
            (9_996, "10.0k"),
            (12_345, "12.3k"),
            (99_960, "100k"),
            (999_499, "999k"),
            (999_500, "1.00M"),
            (4_560_000, "4.56M"),
            (1 << 40, "1100G"),
        ] {
            assert_eq!(short_count(count), text);
        }
        assert_eq!([short_amount(0.0), short_amount(0.0123), short_amount(12.5)], ["0.00", "0.0123", "12.50"]);
    }

    #[test]
    fn spending_takes_only_figures_that_can_be_true() {
        for (reported, count) in [(0.0, Some(0)), (12.9, Some(12)), (-1.0, None), (1e300, None), (f64::NAN, None)] {
            assert_eq!(reported_tokens(reported), count, "{reported}");
        }
        assert_eq!(reported_tokens(f64::INFINITY), None);
        for (amount, currency, known) in [
            (0.25, "USD", Some("USD")),
            (0.25, " eur ", Some("EUR")),
            (-0.1, "USD", None),
            (f64::NAN, "USD", None),
            (1e300, "USD", None),
            (1.0, "credits", None),
            (1.0, "<b>", None),
            (1.0, "", None),
            (1.0, "€€", None),
        ] {
            assert_eq!(
                Money::from_report(amount, currency).map(|m| m.currency).as_deref(),
                known,
                "{amount} {currency}"
            );
        }
    }

    #[test]
    fn spending_adds_what_was_told_and_keeps_currencies_apart() {
        let mut sum = Spending::new([Some(1), None, None, Some(3), None], usd(0.1));
        sum.add(&Spending::new([Some(2), Some(5), None, None, None], usd(0.2)));
        sum.add(&Spending::money(Money::from_report(4.0, "EUR")));
        assert_eq!(sum.counts(), [Some(3), Some(5), None, Some(3), None]);
        assert_eq!(
            serde_json::to_value(&sum.costs).unwrap(),
            serde_json::json!([
                { "amount": 4.0, "currency": "EUR" }, { "amount": 0.3, "currency": "USD" }
            ])
        );
        assert_eq!(sum.tokens(), 8);
        let json = serde_json::to_value(&sum).unwrap();
        assert!(json.get("cached_read_tokens").is_none(), "what was not told is absent: {json}");
        assert_eq!(serde_json::from_value::<Spending>(json).unwrap(), sum);
    }

    #[test]
    fn spending_sums_stay_in_bounds() {
        let mut sum = Spending::default();
        for nth in 0..40_u8 {
            let currency = format!("A{}{}", char::from(b'A' + nth / 26), char::from(b'A' + nth % 26));
            let mut more = Spending::new([Some(TOKENS_MAX); 5], usd(MONEY_MAX));
            more.costs.extend(Money::from_report(1.0, &currency));
            sum.add(&more);
        }
        assert_eq!(sum.counts(), [Some(TOKENS_MAX); 5]);
        assert_eq!((sum.costs.len(), sum.cost_in("USD")), (CURRENCIES_MAX, Some(MONEY_MAX)));
    }

    #[test]
    fn spending_of_zeros_is_nothing() {
        assert!(Spending::default().is_nothing());
        assert!(Spending::new([Some(0), Some(0), None, None, None], usd(0.0)).is_nothing());
        assert!(!Spending::new([None, Some(1), None, None, None], vec![]).is_nothing());
        assert!(!Spending::money(Money::from_report(0.000_001, "USD")).is_nothing());
        assert_eq!(SpendReport::step(Spending::default()), None);
        assert_eq!(SpendReport::total(Spending::default()), None);
    }

    #[test]
    fn spending_counts_of_a_message_are_read_leniently() {
        #[derive(Deserialize)]
        struct Tokens {
            #[serde(default, deserialize_with = "lenient_tokens")]
            input: Option<u64>,
            output: u64,
        }
        for (text, input) in [
            (r#"{"input":7,"output":1}"#, Some(7)),
            (r#"{"input":-7,"output":1}"#, None),
            (r#"{"input":1e300,"output":1}"#, None),
            (r#"{"input":"7","output":1}"#, None),
            (r#"{"input":{"a":[7]},"output":1}"#, None),
            (r#"{"input":null,"output":1}"#, None),
            (r#"{"output":1}"#, None),
        ] {
            let tokens: Tokens = crate::object::from_str(text).unwrap();
            assert_eq!((tokens.input, tokens.output), (input, 1), "{text}");
        }
    }
}
