//! The spending that an agent reports: the cost so far in `usage_update`, the tokens of a turn in the response to
//! `session/prompt` (in `usage`, in `_meta.usage`, or in `_meta.quota` as Gemini CLI does), and Qwen Code's tokens of a
//! model call in an empty chunk.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::jsonrpc::{member, object, token_counts};
use super::quirks;
use plexus_protocol::{Money, SpendReport, Spending};

/// Returns the spending in the member `usage` of the response to a prompt. ACP does not specify whether `inputTokens`
/// includes those of the cache, and agents differ: only `totalTokens` shows it.
fn spending(usage: &RawValue) -> Option<Spending> {
    let [total, input, output] = token_counts(usage, ["totalTokens", "inputTokens", "outputTokens"])?;
    let [thought, reasoning] = token_counts(usage, ["thoughtTokens", "reasoningTokens"])?;
    let names = ["cachedReadTokens", "cachedWriteTokens", "cacheCreationTokens"];
    let [read, written, created] = token_counts(usage, names)?;
    let (thoughts, written) = (thought.or(reasoning), written.or(created));
    let (cached, thought) = (read.unwrap_or(0) + written.unwrap_or(0), thoughts.unwrap_or(0));
    let apart = total.map(|total| total.checked_sub(input.unwrap_or(0) + output.unwrap_or(0)));
    let (cache_apart, thought_apart) = match apart {
        Some(Some(0)) => (false, false),
        Some(Some(apart)) if apart == thought && apart != cached => (false, true),
        Some(Some(apart)) if apart == cached + thought && thought > 0 => (true, true),
        // Agents that report the cache's part report it separately from the rest.
        _ => (true, false),
    };
    let input = input.map(|input| if cache_apart { input + cached } else { input });
    let output = output.map(|output| if thought_apart { output + thought } else { output });
    Some(Spending::new([input, output, read, written, thoughts], Vec::new()))
}

/// Returns the spending in `usage_update`: the cost of the session so far.
pub(super) fn update_report(update: &RawValue) -> Option<SpendReport> {
    #[derive(Deserialize)]
    struct Cost {
        amount: f64,
        currency: String,
    }
    let cost: Cost = member(update, "cost")?;
    SpendReport::total(Spending::money(Money::from_report(cost.amount, &cost.currency)))
}

/// Returns the spending in the response to a prompt.
pub(super) fn turn_report(agent: Option<&str>, result: &RawValue) -> Option<SpendReport> {
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
    let turn: Turn<'_> = object(result)?;
    let meta = turn.meta.and_then(object::<Meta<'_>>);
    let usage = turn.usage.or_else(|| meta.as_ref()?.usage);
    if let Some(spending) = usage.and_then(spending) {
        return if quirks::sums_usage(agent) { SpendReport::total(spending) } else { SpendReport::step(spending) };
    }
    let [input, output] = token_counts(member(meta?.quota?, "token_count")?, ["input_tokens", "output_tokens"])?;
    SpendReport::step(Spending::new([input, output, None, None, None], Vec::new()))
}

/// Returns the spending in a chunk of an agent's message, for agents that report it there: the tokens of one model call.
pub(super) fn chunk_report(update: &RawValue) -> Option<SpendReport> {
    SpendReport::step(spending(member(member(update, "_meta")?, "usage")?)?)
}
