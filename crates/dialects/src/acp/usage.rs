//! What an agent tells of its spending: the cost so far in `usage_update`, the tokens of a turn in the response to `session/prompt` (in
//! `usage`, or as Gemini CLI tells them in `_meta.quota`), and Qwen Code's tokens of a model call in an empty chunk.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::jsonrpc::object;
use super::quirks;
use plexus_protocol::{Money, SpendReport, Spending, lenient_tokens};

/// `usage` of the response to a prompt. ACP does not say whether `inputTokens` includes those of the cache, and agents differ: only
/// `totalTokens` shows it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TurnTokens {
    #[serde(deserialize_with = "lenient_tokens")]
    total_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient_tokens")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient_tokens")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient_tokens")]
    thought_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient_tokens")]
    cached_read_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient_tokens")]
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
            // The agents that tell the cache's part tell it beside the rest.
            _ => (true, false),
        };
        let input = input.map(|input| if cache_apart { input + cached } else { input });
        let output = output.map(|output| if thought_apart { output + thought } else { output });
        let counts = [input, output, self.cached_read_tokens, self.cached_write_tokens, self.thought_tokens];
        Spending::of(counts, Vec::new())
    }
}

/// What `usage_update` tells beside the context window: the cost of the session so far.
pub(super) fn of_update(update: &RawValue) -> Option<SpendReport> {
    #[derive(Deserialize)]
    struct Update<'a> {
        #[serde(borrow)]
        cost: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Cost {
        amount: f64,
        currency: String,
    }
    let cost: Cost = object(object::<Update<'_>>(update)?.cost?)?;
    SpendReport::total(Spending::money(Money::told(cost.amount, &cost.currency)))
}

/// What the response to a prompt tells.
pub(super) fn of_turn(agent: Option<&str>, result: &RawValue) -> Option<SpendReport> {
    #[derive(Deserialize)]
    struct Turn<'a> {
        #[serde(borrow)]
        usage: Option<&'a RawValue>,
        #[serde(rename = "_meta", borrow)]
        meta: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Meta {
        quota: Option<Quota>,
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
    if let Some(tokens) = turn.usage.and_then(object::<TurnTokens>) {
        let spending = tokens.spending();
        return if quirks::sums_usage(agent) { SpendReport::total(spending) } else { SpendReport::step(spending) };
    }
    let QuotaTokens { input_tokens, output_tokens } = object::<Meta>(turn.meta?)?.quota?.token_count?;
    SpendReport::step(Spending::of([input_tokens, output_tokens, None, None, None], Vec::new()))
}

/// What a chunk of an agent's message tells, for agents that tell it there: the tokens of one model call.
pub(super) fn of_chunk(update: &RawValue) -> Option<SpendReport> {
    #[derive(Deserialize)]
    struct Chunk<'a> {
        #[serde(rename = "_meta", borrow)]
        meta: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow)]
        usage: Option<&'a RawValue>,
    }
    let meta = object::<Chunk<'_>>(update)?.meta?;
    let tokens: TurnTokens = object(object::<Meta<'_>>(meta)?.usage?)?;
    SpendReport::step(tokens.spending())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        to_raw_value(value).unwrap()
    }

    fn step(counts: [Option<u64>; 5]) -> Option<SpendReport> {
        SpendReport::step(Spending::of(counts, Vec::new()))
    }

    #[test]
    fn acp_usage_of_a_turn_is_read_from_each_agents_form() {
        // Of the recordings: Gemini CLI, OpenCode; of the sources of claude-agent-acp and codex-acp: the cache's part stands apart.
        let table = [
            (
                "gemini-cli",
                json!({ "stopReason": "end_turn", "_meta": { "quota": { "token_count": { "input_tokens": 200, "output_tokens": 20 } } } }),
                step([Some(200), Some(20), None, None, None]),
            ),
            (
                "OpenCode",
                json!({ "usage": { "inputTokens": 100, "outputTokens": 10, "totalTokens": 110 }, "_meta": {} }),
                step([Some(100), Some(10), None, None, None]),
            ),
            (
                "@agentclientprotocol/claude-agent-acp",
                json!({ "usage": { "inputTokens": 5, "outputTokens": 40, "cachedReadTokens": 900, "cachedWriteTokens": 55,
                    "totalTokens": 1000 }, "_meta": { "quota": { "token_count": { "input_tokens": 1 } } } }),
                step([Some(960), Some(40), Some(900), Some(55), None]),
            ),
            (
                "codex-acp",
                json!({ "usage": { "inputTokens": 60, "cachedReadTokens": 40, "cachedWriteTokens": 0, "outputTokens": 30,
                    "thoughtTokens": 20, "totalTokens": 130 } }),
                step([Some(100), Some(30), Some(40), Some(0), Some(20)]),
            ),
            (
                "another, which includes all",
                json!({ "usage": { "inputTokens": 100, "cachedReadTokens": 40, "outputTokens": 30, "thoughtTokens": 20,
                    "totalTokens": 130 } }),
                step([Some(100), Some(30), Some(40), None, Some(20)]),
            ),
            (
                "another, whose reasoning stands apart",
                json!({ "usage": { "inputTokens": 100, "outputTokens": 10, "thoughtTokens": 20, "totalTokens": 130 } }),
                step([Some(100), Some(30), None, None, Some(20)]),
            ),
            (
                "another, where both do",
                json!({ "usage": { "inputTokens": 60, "cachedReadTokens": 40, "outputTokens": 10, "thoughtTokens": 20,
                    "totalTokens": 130 } }),
                step([Some(100), Some(30), Some(40), None, Some(20)]),
            ),
            ("kimi", json!({ "stopReason": "end_turn" }), None),
            ("nonsense", json!({ "usage": { "inputTokens": -1, "outputTokens": 1e300, "totalTokens": "x" } }), None),
            ("nonsense", json!({ "usage": "lots", "_meta": [1] }), None),
            ("nonsense", json!({ "_meta": { "quota": { "token_count": { "input_tokens": {} } } } }), None),
        ];
        for (agent, result, told) in table {
            assert_eq!(of_turn(Some(agent), &raw(&result)), told, "{agent}: {result}");
        }
    }

    #[test]
    fn acp_usage_of_vibe_is_the_sum_of_its_session() {
        let result = json!({ "usage": { "totalTokens": 220, "inputTokens": 200, "outputTokens": 20 } });
        let sum = Spending::of([Some(200), Some(20), None, None, None], Vec::new());
        assert_eq!(of_turn(Some("@mistralai/mistral-vibe"), &raw(&result)), SpendReport::total(sum));
    }

    #[test]
    fn acp_usage_update_tells_the_cost_so_far() {
        let usd = |amount| SpendReport::total(Spending::money(Money::told(amount, "USD")));
        for (update, told) in [
            (json!({ "used": 1, "size": 2, "cost": { "amount": 0.25, "currency": "USD" } }), usd(0.25)),
            (json!({ "used": 1, "size": 2, "cost": { "amount": 0, "currency": "USD" } }), usd(0.0)),
            (json!({ "used": 1, "size": 2 }), None),
            (json!({ "cost": null }), None),
            (json!({ "cost": { "amount": -1, "currency": "USD" } }), None),
            (json!({ "cost": { "amount": 1e300, "currency": "USD" } }), None),
            (json!({ "cost": { "amount": 1, "currency": "gold" } }), None),
            (json!({ "cost": { "amount": "1", "currency": "USD" } }), None),
            (json!({ "cost": [1, "USD"] }), None),
        ] {
            assert_eq!(of_update(&raw(&update)), told, "{update}");
        }
    }

    #[test]
    fn acp_usage_of_a_model_call_is_read_from_a_chunk() {
        let chunk = json!({ "content": { "type": "text", "text": "" }, "_meta": { "usage": { "inputTokens": 100,
            "outputTokens": 10, "totalTokens": 110, "thoughtTokens": 4, "cachedReadTokens": 30 }, "durationMs": 12 } });
        assert_eq!(of_chunk(&raw(&chunk)), step([Some(100), Some(10), Some(30), None, Some(4)]));
        assert_eq!(of_chunk(&raw(&json!({ "content": { "type": "text", "text": "words" } }))), None);
    }
}
