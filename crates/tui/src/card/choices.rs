//! The buttons of a card: the answers that have keys, and the other inputs of the request. Pure.

use std::ops::Range;

use plexus_protocol::answers::{AnswerAction, AnswerRole, Sense};

use super::{Card, CardMode, HINT_WIDTH};
use crate::sanitize;
use crate::view_model::RequestView;

/// Maximum length of an agent's label beside a verb, in columns; the menu has the complete label.
const LABEL_MAX: usize = 24;
/// Maximum length of an agent's label that is the content of the answer, in columns.
const CONTENT_MAX: usize = 50;
/// Returns whether some answers have no key, or have labels that do not fit beside their verbs.
pub(super) fn has_menu(ask: &RequestView) -> bool {
    !ask.request.observe_only && ask.actions.iter().any(|action| action.key.is_none() || !action.label.is_empty())
}

/// A button of a card.
pub(super) struct CardChoice {
    pub(super) key: String,
    pub(super) verb: String,
    /// The agent's label, quoted; empty if it repeats the verb.
    pub(super) label: String,
    pub(super) allows: bool,
    pub(super) available: bool,
}

impl CardChoice {
    fn new(key: &str, verb: &str, allows: bool) -> Self {
        Self { key: key.into(), verb: verb.into(), label: String::new(), allows, available: true }
    }

    fn from_action(action: &AnswerAction, width: usize) -> Option<Self> {
        let rule = action.role.rule();
        let max = match action.role {
            AnswerRole::Choose => CONTENT_MAX.min(width.saturating_sub(14)),
            _ if width < HINT_WIDTH => 0,
            _ => LABEL_MAX,
        };
        let label = sanitize::cut(&action.label, max);
        Some(Self {
            key: action.key?.to_string(),
            verb: if rule.persistent { format!("{}…", rule.verb) } else { rule.verb.to_owned() },
            label: if label.is_empty() { label } else { format!("“{label}” ") },
            allows: rule.sense == Sense::Allow,
            available: action.unavailable.is_none(),
        })
    }

    fn width(&self) -> usize {
        sanitize::width(&self.key) + sanitize::width(&self.verb) + sanitize::width(&self.label) + 5
    }
}

/// The buttons: the answers that have keys, and the other inputs of the request.
pub(super) fn choices_of(ask: &RequestView, width: usize) -> Vec<CardChoice> {
    if ask.request.observe_only || ask.action(AnswerRole::Send).is_some() {
        return Vec::new();
    }
    let mut all: Vec<CardChoice> =
        ask.actions.iter().filter_map(|action| CardChoice::from_action(action, width)).collect();
    if ask.editable.is_some() {
        all.push(CardChoice::new("e", "Edit", true));
    }
    if ask.request.allow_reason {
        all.push(CardChoice::new("r", "Deny with a reason", false));
    }
    if has_menu(ask) {
        all.push(CardChoice::new("m", "More", false));
    }
    all
}

/// Lays choices out in lines: the indexes in each line.
pub(super) fn flow(all: &[CardChoice], width: usize) -> Vec<Vec<usize>> {
    let mut lines: Vec<Vec<usize>> = Vec::new();
    let mut left = 0;
    for (n, choice) in all.iter().enumerate() {
        let wide = choice.width();
        match lines.last_mut() {
            Some(line) if left >= wide => line.push(n),
            _ => {
                lines.push(vec![n]);
                left = width;
            }
        }
        left = left.saturating_sub(wide);
    }
    lines
}

/// The place of a button of a card in the lines of its options.
pub(crate) struct OptionPosition {
    pub(crate) line: usize,
    pub(crate) columns: Range<usize>,
    pub(crate) key: String,
}

/// The places of the buttons of a card that can be pressed: none while text is being typed.
pub(crate) fn option_positions(card: &Card, ask: &RequestView, width: usize) -> (usize, Vec<OptionPosition>) {
    let all = choices_of(ask, width);
    let lines = flow(&all, width);
    let mut positions = Vec::new();
    if matches!(card.mode, CardMode::Choose) {
        for (line, options) in lines.iter().enumerate() {
            let mut from = 0;
            for choice in options.iter().map(|n| &all[*n]) {
                let to = from + choice.width() - 1;
                positions.push(OptionPosition { line, columns: from..to, key: choice.key.clone() });
                from = to;
            }
        }
    }
    (lines.len(), positions)
}
