//! The ceilings of the usage of agents, as they are shown and edited below the sums. Pure.

use plexus_protocol::api::usage::{CeilingSettings, CeilingsView};
use plexus_protocol::{Ceiling, CeilingKind, Spending, short_amount, short_count};
use ratatui::text::{Line, Span};

use super::markdown::wrap;
use super::sanitize;
use super::theme::Theme;

/// A ceiling as text that can be typed again; `none` if there is none.
fn amount_text(ceiling: &Ceiling) -> String {
    let costs = ceiling.costs.iter().map(|cost| format!("{} {}", cost.amount, sanitize::line(&cost.currency, 3)));
    let tokens = ceiling.tokens.map(|count| format!("{count} tokens"));
    let parts: Vec<String> = costs.chain(tokens).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

/// The usage as a short text.
fn spending_text(spending: &Spending) -> String {
    let costs = spending.costs.iter();
    let costs = costs.map(|cost| format!("{} {}", short_amount(cost.amount), sanitize::line(&cost.currency, 3)));
    costs.chain([format!("{} tokens", short_count(spending.tokens()))]).collect::<Vec<_>>().join(", ")
}

/// A ceiling as text to edit.
pub(crate) fn text(ceilings: &CeilingsView, ceiling: CeilingKind) -> String {
    amount_text(match ceiling {
        CeilingKind::Day => &ceilings.day,
        CeilingKind::Session => &ceilings.session,
    })
}

/// The settings after a ceiling was typed: empty or `none` for no ceiling, `configured` for that of the configuration.
pub(crate) fn settings(ceilings: &CeilingsView, ceiling: CeilingKind, typed: &str) -> Result<CeilingSettings, String> {
    let typed = match typed.trim() {
        "configured" => None,
        "" | "none" => Some(Ceiling::default()),
        typed => Some(Ceiling::parse(typed)?),
    };
    let set = ceilings.set.clone();
    Ok(match ceiling {
        CeilingKind::Day => CeilingSettings { day: typed, ..set },
        CeilingKind::Session => CeilingSettings { session: typed, ..set },
    })
}

/// The lines of the screen.
pub(crate) fn lines(ceilings: &CeilingsView, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let CeilingsView { set, configured, .. } = ceilings;
    let source = |set: &Option<Ceiling>, configured: &Ceiling| match set {
        None if amount_text(configured) != "none" => " (configured)",
        _ => "",
    };
    let today = format!(" · today {}", spending_text(&ceilings.today));
    let rows = [
        ("d", "Ceiling of a day      ", CeilingKind::Day, source(&set.day, &configured.day), today.as_str()),
        ("s", "Ceiling of a session  ", CeilingKind::Session, source(&set.session, &configured.session), ""),
    ];
    for (key, name, ceiling, source, more) in rows {
        let spans = [
            Span::styled(name, theme.dim),
            Span::styled(format!("{}{source}", text(ceilings, ceiling)), theme.text),
            Span::styled(more.to_owned(), theme.dim),
        ];
        let (first, next) = (Span::styled(format!("{key}  "), theme.accent), Span::raw("   "));
        out.extend(wrap(&spans, &first, &next, width));
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ceilings_are_set_as_they_are_typed_and_the_others_stay() {
        let view: CeilingsView = serde_json::from_value(
            json!({ "set": { "session": { "tokens": 5 }, "sessions": { "s_1": { "tokens": 7 } } },
            "configured": { "day": { "costs": [{ "amount": 2.5, "currency": "USD" }] }, "session": {} },
            "day": { "costs": [{ "amount": 2.5, "currency": "USD" }] }, "session": { "tokens": 5 }, "today": {}, "allowed": {}, "day_ends": "2026-01-02T00:00:00Z" })).unwrap();
        assert_eq!(
            (text(&view, CeilingKind::Day), text(&view, CeilingKind::Session)),
            ("2.5 USD".into(), "5 tokens".into())
        );
        let sessions = json!({ "s_1": { "tokens": 7 } });
        for (ceiling, typed, set) in [
            (
                CeilingKind::Day,
                "5 usd, 2M tokens",
                json!({ "day": { "tokens": 2_000_000, "costs": [{ "amount": 5.0, "currency": "USD" }] }, "session": { "tokens": 5 }, "sessions": sessions }),
            ),
            (CeilingKind::Day, "", json!({ "day": {}, "session": { "tokens": 5 }, "sessions": sessions })),
            (CeilingKind::Session, "configured", json!({ "sessions": sessions })),
        ] {
            assert_eq!(settings(&view, ceiling, typed).map(|settings| json!(settings)), Ok(set), "{typed:?}");
        }
        assert!(settings(&view, CeilingKind::Day, "much").unwrap_err().contains("5 USD, 2M tokens"));
        let text: String = lines(&view, &Theme::new(crate::theme::Depth::True, false), 80)
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
