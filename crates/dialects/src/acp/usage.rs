//! The spending that an agent reports: the cost so far in `usage_update`, the tokens of a turn in the response to
//! `session/prompt` (in `usage`, in `_meta.usage`, or in `_meta.quota` as Gemini CLI does), and Qwen Code's tokens of a
//! model call in an empty chunk.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::jsonrpc::{member, object};
use super::quirks;
use plexus_protocol::{Money, SpendReport, Spending, lenient_tokens};

/// The member `usage` of the response to a prompt. ACP does not specify whether `inputTokens` includes those of the
/// cache, and agents differ: only `totalTokens` shows it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TurnTokens {
    #[serde(deserialize_with = "lenient_tokens")]
    total_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient_tokens")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient_tokens")]
    output_tokens: Option<u64>,
    #[serde(alias = "reasoningTokens", deserialize_with = "lenient_tokens")]
    thought_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient_tokens")]
    cached_read_tokens: Option<u64>,
    #[serde(alias = "cacheCreationTokens", deserialize_with = "lenient_tokens")]
    cached_write_tokens: Option<u64>,
}

impl TurnTokens {
    fn spending(&self) -> Spending {
        let Self { input_tokens: input, output_tokens: output, .. } = *self;
        let cached = self.cached_read_tokens.unwrap_or(0) + self.cached_write_tokens.unwrap_or(0);
        let thought = self.thought_tokens.unwrap_or(0);
        let apart = self.total_tokens.map(|total| total.checked_sub(input.unwrap_or(0) + output.unwrap_or(0)));
        let (cache_apart, thought_apart) = match apart {
            Some(Some(0)) => (false, false),
            Some(Some(apart)) if apart == thought && apart != cached => (false, true),
            Some(Some(apart)) if apart == cached + thought && thought > 0 => (true, true),
            // Agents that report the cache's part report it separately from the rest.
            _ => (true, false),
        };
        let input = input.map(|input| if cache_apart { input + cached } else { input });
        let output = output.map(|output| if thought_apart { output + thought } else { output });
        let counts = [input, output, self.cached_read_tokens, self.cached_write_tokens, self.thought_tokens];
        Spending::of(counts, Vec::new())
    }
}

/// Returns the spending in `usage_update`: the cost of the session so far.
pub(super) fn of_update(update: &RawValue) -> Option<SpendReport> {
    #[derive(Deserialize)]
    struct Cost {
        amount: f64,
        currency: String,
    }
    let cost: Cost = member(update, "cost")?;
    SpendReport::total(Spending::money(Money::told(cost.amount, &cost.currency)))
}

/// Returns the spending in the response to a prompt.
pub(super) fn of_turn(agent: Option<&str>, result: &RawValue) -> Option<SpendReport> {
    #[derive(Deserialize)]
    struct Turn<'a> {
        usage: Option<&'a RawValue>,
        #[serde(rename = "_meta", borrow)]
        meta: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow)]
        usage: Option<&'a RawValue>,
        quota: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Quota {
        token_count: Option<QuotaTokens>,
    }
    #[derive(Deserialize)]
    struct QuotaTokens {
        #[serde(default, deserialize_with = "lenient_tokens")]
        input_tokens: Option<u64>,
        #[serde(default, deserialize_with = "lenient_tokens")]
        output_tokens: Option<u64>,
    }
    let turn: Turn<'_> = object(result)?;
    let meta = turn.meta.and_then(object::<Meta<'_>>);
    let usage = turn.usage.or_else(|| meta.as_ref()?.usage);
    if let Some(tokens) = usage.and_then(object::<TurnTokens>) {
        let spending = tokens.spending();
        return if quirks::sums_usage(agent) { SpendReport::total(spending) } else { SpendReport::step(spending) };
    }
    let QuotaTokens { input_tokens, output_tokens } = object::<Quota>(meta?.quota?)?.token_count?;
    SpendReport::step(Spending::of([input_tokens, output_tokens, None, None, None], Vec::new()))
}

/// Returns the spending in a chunk of an agent's message, for agents that report it there: the tokens of one model call.
pub(super) fn of_chunk(update: &RawValue) -> Option<SpendReport> {
    let tokens: TurnTokens = member(member(update, "_meta")?, "usage")?;
    SpendReport::step(tokens.spending())
}
