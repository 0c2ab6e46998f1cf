//! The answers that a request accepts: the verb, order, key and guards of each, and the reason why a device may not give it. Pure.
//!
//! Every screen, command, notification and bridge gets the answers of a request from [`actions`] and their text from the table in
//! [`AnswerRole::rule`]. The verb is the gateway's. The agent's own label is [`AnswerAction::label`]: a screen displays it quoted beside
//! the verb, never in its place. [`data`] exports the tables for the page; `answers/cases.json` holds both implementations to the same
//! results.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::text;
use super::{Answer, Choice, Offer, Request, RequestType, Risk};

/// Maximum length of the agent's label beside a verb, in characters; the rest is cut.
pub const LABEL_MAX: usize = 80;

/// Time for which a request accepts no answer after it appeared, moved, changed or got the focus, in milliseconds. With less, a press
/// that was meant for the earlier content of the place may answer it; with more, the next request is not ready half a second after an
/// answer.
pub const GUARD_MS: u16 = 400;

/// The meaning of an answer, in the order in which answers are listed and reached by Tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerRole {
    /// Lets the agent do what it asks, once.
    AllowOnce,
    /// Sends typed text, picked items or a filled form.
    Send,
    /// Chooses an option whose kind is unknown; its label is the content of the answer.
    Choose,
    /// Refuses once.
    Deny,
    /// Gives no text, item or form.
    Skip,
    /// Leaves the request open for another device; sends nothing.
    Later,
    /// Lets the agent do this and what it considers similar, from now on.
    AllowAlways,
    /// Lets the agent do this and what it considers similar, until the session ends.
    AllowSession,
    /// Refuses this and what the agent considers similar, from now on.
    DenyAlways,
}

/// The effect of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sense {
    /// The agent may continue: guarded against accidental presses, and subject to the device's risk limit.
    Allow,
    /// The agent is refused: always available to a device that may answer.
    Deny,
    /// No answer is given.
    Defer,
}

/// The properties of an [`AnswerRole`] that do not depend on the request.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rule {
    /// Text of the button.
    pub verb: &'static str,
    /// Text of the outcome ("Allowed once").
    pub outcome: &'static str,
    /// Effect of the answer.
    pub sense: Sense,
    /// Key of the first answer with this role; `None` if it has no letter.
    pub key: Option<char>,
    /// `true` if the answer is the primary action of its request.
    pub primary: bool,
    /// `true` if the agent also applies the answer to later requests, so that a second press has to confirm it.
    #[serde(rename = "lasting")]
    pub persistent: bool,
}

impl AnswerRole {
    /// Every role, in order.
    pub const ALL: [Self; 9] = [
        Self::AllowOnce,
        Self::Send,
        Self::Choose,
        Self::Deny,
        Self::Skip,
        Self::Later,
        Self::AllowAlways,
        Self::AllowSession,
        Self::DenyAlways,
    ];

    /// Returns the role's verb, outcome, effect, key and guards.
    pub const fn rule(self) -> Rule {
        const fn once(
            verb: &'static str,
            outcome: &'static str,
            sense: Sense,
            key: Option<char>,
            primary: bool,
        ) -> Rule {
            Rule { verb, outcome, sense, key, primary, persistent: false }
        }
        const fn persistent(verb: &'static str, outcome: &'static str, sense: Sense, key: Option<char>) -> Rule {
            Rule { verb, outcome, sense, key, primary: false, persistent: true }
        }
        match self {
            Self::AllowOnce => once("Allow once", "Allowed once", Sense::Allow, Some('a'), true),
            Self::Send => once("Send answer", "Answered", Sense::Allow, Some('a'), true),
            Self::Choose => once("Answer", "Answered", Sense::Allow, None, false),
            Self::Deny => once("Deny", "Denied", Sense::Deny, Some('d'), false),
            Self::Skip => once("Skip", "Skipped", Sense::Deny, Some('d'), false),
            Self::Later => once("Decide at the desk", "Left open", Sense::Defer, None, false),
            Self::AllowAlways => persistent("Always allow", "Always allowed", Sense::Allow, Some('A')),
            Self::AllowSession => {
                persistent("Allow for this session", "Allowed for this session", Sense::Allow, Some('A'))
            }
            Self::DenyAlways => persistent("Always deny", "Always denied", Sense::Deny, None),
        }
    }

    /// Returns the role of an offered option.
    pub const fn for_offer(offer: &Offer) -> Self {
        match offer.kind {
            Choice::AllowOnce => Self::AllowOnce,
            Choice::AllowAlways if offer.for_session => Self::AllowSession,
            Choice::AllowAlways => Self::AllowAlways,
            Choice::RejectOnce => Self::Deny,
            Choice::RejectAlways => Self::DenyAlways,
            Choice::Other => Self::Choose,
        }
    }
}

/// The device that would answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answerer {
    /// `true` if the device has the scope `approve`.
    pub may_approve: bool,
    /// Maximum risk that the device may allow; any if `None`.
    #[serde(default)]
    pub approve_up_to: Option<Risk>,
}

impl Answerer {
    /// A device without limits.
    pub const UNLIMITED: Self = Self { may_approve: true, approve_up_to: None };
}

/// The reason why a device may not give an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unavailable {
    /// The agent accepts the answer only where it runs.
    ObserveOnly,
    /// The device may watch, but not answer.
    Scope,
    /// The request's risk is above the device's limit.
    Risk,
    /// The answer also covers later requests of any risk, and the device has a limit.
    #[serde(rename = "lasting")]
    Persistent,
}

impl Unavailable {
    /// Every reason.
    pub const ALL: [Self; 4] = [Self::ObserveOnly, Self::Scope, Self::Risk, Self::Persistent];

    /// Returns the reason and the alternative, for users.
    pub const fn text(self) -> &'static str {
        match self {
            Self::ObserveOnly => "This can only be viewed here. Answer it where the agent runs.",
            Self::Scope => "This device may watch but not answer. An administrator can allow it under Devices.",
            Self::Risk => "Too risky for this device. Deny it here, or allow it at your computer.",
            Self::Persistent => {
                "This device may allow up to a risk level only, so it cannot allow permanently. Allow it once."
            }
        }
    }
}

/// One answer that a request accepts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnswerAction {
    /// Identifier, unique within the request: `option:` and the option's id, or the role's name.
    pub id: String,
    /// Meaning of the answer.
    pub role: AnswerRole,
    /// The agent's label, safe to display on one line; empty if it is the same as the verb, or if there is none.
    pub label: String,
    /// Key that gives the answer while its request has the focus. A digit is active only on screens that display it.
    pub key: Option<char>,
    /// `true` if the request is dangerous and the answer lets the agent continue: a screen requires a long press or a typed word.
    pub hold: bool,
    /// The reason why the device may not give the answer.
    pub unavailable: Option<Unavailable>,
    /// The answer to send; [`AnswerRole::Send`] still lacks its text, items or form. `None` for [`AnswerRole::Later`].
    pub answer: Option<Answer>,
}

impl AnswerAction {
    /// Returns the text of the button, without the agent's label.
    pub const fn verb(&self) -> &'static str {
        self.role.rule().verb
    }

    /// Returns the verb and the quoted label, on one line.
    pub fn text(&self) -> String {
        if self.label.is_empty() { self.verb().into() } else { format!("{} “{}”", self.verb(), self.label) }
    }
}

/// Returns the answers that a request accepts from a device, in order. A view-only request has only its options, all unavailable.
pub fn actions(request: &Request, device: Answerer) -> Vec<AnswerAction> {
    let mut actions: Vec<AnswerAction> =
        roles(request).into_iter().map(|(role, offer, answer)| action(request, device, role, offer, answer)).collect();
    if actions.iter().any(|action| action.unavailable == Some(Unavailable::Risk)) {
        actions.push(action(request, device, AnswerRole::Later, None, None));
    }
    // A stable sort: the agent's order stays within a role.
    actions.sort_by_key(|action| action.role);
    assign_keys(&mut actions);
    actions
}

/// Returns the roles of a request with their options and answers, in the agent's order.
fn roles(request: &Request) -> Vec<(AnswerRole, Option<&Offer>, Option<Answer>)> {
    let plain = |role, answer| (role, None, Some(answer));
    if !request.form().is_empty() {
        let none = Answer { answers: Some(Default::default()), ..Answer::default() };
        return vec![plain(AnswerRole::Send, Answer::default()), plain(AnswerRole::Skip, none)];
    }
    if !request.options.is_empty() {
        let option = |offer: &Offer| Answer { option_id: Some(offer.id.clone()), ..Answer::default() };
        return request
            .options
            .iter()
            .map(|offer| (AnswerRole::for_offer(offer), Some(offer), Some(option(offer))))
            .collect();
    }
    match request.kind {
        RequestType::Pick => vec![
            plain(AnswerRole::Send, Answer::default()),
            plain(AnswerRole::Skip, Answer { ids: Some(Vec::new()), ..Answer::default() }),
        ],
        RequestType::Prompt => vec![
            plain(AnswerRole::Send, Answer::default()),
            plain(AnswerRole::Skip, Answer { value: Some(None), ..Answer::default() }),
        ],
        RequestType::Confirm | RequestType::Permission => vec![
            plain(AnswerRole::AllowOnce, Answer { ok: Some(true), ..Answer::default() }),
            plain(AnswerRole::Deny, Answer { ok: Some(false), ..Answer::default() }),
        ],
        RequestType::Elicitation => Vec::new(),
    }
}

fn action(
    request: &Request,
    device: Answerer,
    role: AnswerRole,
    offer: Option<&Offer>,
    answer: Option<Answer>,
) -> AnswerAction {
    let rule = role.rule();
    let label = offer.map(|offer| text::line(offer.label.trim(), LABEL_MAX)).unwrap_or_default();
    AnswerAction {
        id: match offer {
            Some(offer) => format!("option:{}", offer.id),
            None => json!(role).as_str().unwrap_or_default().to_owned(),
        },
        role,
        label: if lowercase_letters(&label) == lowercase_letters(rule.verb) { String::new() } else { label },
        key: None,
        hold: rule.sense == Sense::Allow && request.risk == Risk::Danger,
        unavailable: unavailable(request, device, rule),
        answer,
    }
}

/// Returns the letters of a text in lower case: labels that differ from the verb only in case and punctuation count as the same.
fn lowercase_letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn unavailable(request: &Request, device: Answerer, rule: Rule) -> Option<Unavailable> {
    if request.observe_only {
        return Some(Unavailable::ObserveOnly);
    }
    if !device.may_approve {
        return Some(Unavailable::Scope);
    }
    let limit = device.approve_up_to.filter(|_| rule.sense == Sense::Allow)?;
    if request.risk > limit {
        Some(Unavailable::Risk)
    } else if rule.persistent && limit < Risk::Danger {
        Some(Unavailable::Persistent)
    } else {
        None
    }
}

/// Gives the first answer with a letter its key, and digits to the others that do not last.
fn assign_keys(actions: &mut [AnswerAction]) {
    let mut used: Vec<char> = Vec::new();
    let mut digits = '1'..='9';
    for action in actions {
        let rule = action.role.rule();
        action.key = match rule.key {
            Some(letter) if !used.contains(&letter) => Some(letter),
            _ if rule.persistent || rule.sense == Sense::Defer => None,
            _ => digits.next(),
        };
        used.extend(action.key);
    }
}

/// The reason why a word does not name a single answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmatched {
    /// No answer has this identifier, verb or label.
    None,
    /// Several answers have this identifier, verb or label.
    Several,
}

/// Finds the answer that a user names by its identifier, the option's id, the verb or the agent's label, without regard to case. A word
/// that names one answer by its verb and another by its id or label names neither: an agent chooses its ids and labels.
///
/// # Errors
/// [`Unmatched`], if no answer or several answers have that name.
pub fn find<'a>(actions: &'a [AnswerAction], word: &str) -> Result<&'a AnswerAction, Unmatched> {
    if let Some(exact) = actions.iter().find(|action| action.id == word) {
        return Ok(exact);
    }
    let is_named = |action: &&AnswerAction| {
        let id = action.id.strip_prefix("option:").unwrap_or(&action.id);
        id == word
            || (!lowercase_letters(word).is_empty()
                && [action.verb(), &action.label].iter().any(|name| lowercase_letters(name) == lowercase_letters(word)))
    };
    let mut named = actions.iter().filter(is_named);
    match (named.next(), named.next()) {
        (Some(action), None) => Ok(action),
        (Some(_), Some(_)) => Err(Unmatched::Several),
        (None, _) => Err(Unmatched::None),
    }
}

/// The keys that act on a focused request, and their meaning: the source of every screen's help and of docs/keys.md.
pub const KEYS: [(&str, &str); 6] = [
    ("a", "allow once, or send the answer"),
    ("d", "deny, or skip"),
    ("A", "always allow; a second press confirms"),
    ("e", "edit, then allow the edited version once"),
    ("r", "add a reason, then deny"),
    ("1 … 9", "the answer or choice that shows this number"),
];

/// Returns the tables of this module as JSON, from which `scripts/web build` makes `clients/typescript/src/answers.ts`.
pub fn data() -> Value {
    let named = |name: Value| name.as_str().unwrap_or_default().to_owned();
    let roles: serde_json::Map<_, _> =
        AnswerRole::ALL.iter().map(|role| (named(json!(role)), json!(role.rule()))).collect();
    let unavailable: serde_json::Map<_, _> =
        Unavailable::ALL.iter().map(|reason| (named(json!(reason)), json!(reason.text()))).collect();
    json!({ "roles": roles, "unavailable": unavailable, "keys": KEYS, "labelMax": LABEL_MAX, "guardMs": GUARD_MS })
}

#[cfg(test)]
mod tests;
