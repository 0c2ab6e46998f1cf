//! The ceilings of what agents spend, as they are shown and set below the sums. Pure.

use plexus_protocol::{Ceiling, CeilingOf, Spending, short_amount, short_count};
use ratatui::text::{Line, Span};
use serde_json::{Value, json};

use super::markdown::wrap;
use super::sanitize;
use super::theme::Theme;

/// The ceilings, as the gateway tells them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CeilingsView {
    all: Value,
}

fn member(ceiling: CeilingOf) -> &'static str {
    match ceiling {
        CeilingOf::Day => "day",
        CeilingOf::Session => "session",
    }
}

/// The ceiling in words, as it can be typed again; `none` if there is none.
fn amount_text(ceiling: &Value) -> String {
    let ceiling: Ceiling = serde_json::from_value(ceiling.clone()).unwrap_or_default();
    let costs = ceiling.costs.iter().map(|cost| format!("{} {}", cost.amount, sanitize::line(&cost.currency, 3)));
    let tokens = ceiling.tokens.map(|count| format!("{count} tokens"));
    let parts: Vec<String> = costs.chain(tokens).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

/// The usage as a short text.
fn spent(value: &Value) -> String {
    let spent: Spending = serde_json::from_value(value.clone()).unwrap_or_default();
    let costs = spent.costs.iter();
    let costs = costs.map(|cost| format!("{} {}", short_amount(cost.amount), sanitize::line(&cost.currency, 3)));
    costs.chain([format!("{} tokens", short_count(spent.tokens()))]).collect::<Vec<_>>().join(", ")
}

impl CeilingsView {
    pub(crate) fn read(value: &Value) -> Self {
        Self { all: value.clone() }
    }

    /// A ceiling as it is edited.
    pub(crate) fn text(&self, ceiling: CeilingOf) -> String {
        amount_text(&self.all[member(ceiling)])
    }

    /// The body that sets a ceiling to the typed text: nothing or `none` for no ceiling, `configured` for that of the configuration.
    pub(crate) fn set(&self, ceiling: CeilingOf, typed: &str) -> Result<Value, String> {
        let mut set = self.all["set"].clone();
        if !set.is_object() {
            set = json!({});
        }
        match typed.trim() {
            "configured" => drop(set.as_object_mut().and_then(|all| all.remove(member(ceiling)))),
            "" | "none" => set[member(ceiling)] = json!(Ceiling::default()),
            typed => set[member(ceiling)] = json!(Ceiling::parse(typed)?),
        }
        if !set["sessions"].is_object() {
            set["sessions"] = json!({});
        }
        Ok(set)
    }

    /// The lines of the screen.
    pub(crate) fn lines(&self, theme: &Theme, width: usize) -> Vec<Line<'static>> {
        let mut out = Vec::new();
        let from = |ceiling| match (
            self.all["set"].get(member(ceiling)),
            amount_text(&self.all["configured"][member(ceiling)]).as_str(),
        ) {
            (Some(_), _) | (None, "none") => "",
            (None, _) => " (configured)",
        };
        let today = format!(" · today {}", spent(&self.all["today"]));
        let rows = [
            ("d", "Ceiling of a day      ", CeilingOf::Day, today.as_str()),
            ("s", "Ceiling of a session  ", CeilingOf::Session, ""),
        ];
        for (key, name, ceiling, more) in rows {
            let spans = [
                Span::styled(name, theme.dim),
                Span::styled(format!("{}{}", self.text(ceiling), from(ceiling)), theme.text),
                Span::styled(more.to_owned(), theme.dim),
            ];
            let (first, next) = (Span::styled(format!("{key}  "), theme.accent), Span::raw("   "));
            out.extend(wrap(&spans, &first, &next, width));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_are_set_as_they_are_typed_and_the_others_stay() {
        let view =
            CeilingsView::read(&json!({ "set": { "session": { "tokens": 5 }, "sessions": { "s_1": { "tokens": 7 } } },
            "configured": { "day": { "costs": [{ "amount": 2.5, "currency": "USD" }] }, "session": {} },
            "day": { "costs": [{ "amount": 2.5, "currency": "USD" }] }, "session": { "tokens": 5 }, "today": {} }));
        assert_eq!((view.text(CeilingOf::Day), view.text(CeilingOf::Session)), ("2.5 USD".into(), "5 tokens".into()));
        let sessions = json!({ "s_1": { "tokens": 7 } });
        for (ceiling, typed, set) in [
            (
                CeilingOf::Day,
                "5 usd, 2M tokens",
                json!({ "day": { "tokens": 2_000_000, "costs": [{ "amount": 5.0, "currency": "USD" }] }, "session": { "tokens": 5 }, "sessions": sessions }),
            ),
            (CeilingOf::Day, "", json!({ "day": {}, "session": { "tokens": 5 }, "sessions": sessions })),
            (CeilingOf::Session, "configured", json!({ "sessions": sessions })),
        ] {
            assert_eq!(view.set(ceiling, typed), Ok(set), "{typed:?}");
        }
        assert!(view.set(CeilingOf::Day, "much").unwrap_err().contains("5 USD, 2M tokens"));
        let text: String = view
            .lines(&Theme::new(crate::theme::Depth::True, false), 80)
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(
            text.contains("2.5 USD (configured) · today 0 tokens")
                && text.contains("s  Ceiling of a session  5 tokens"),
            "{text}"
        );
    }
}
