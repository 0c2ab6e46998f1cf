//! Questions as the terminal UI's panels: one at a time, in the order of the log. Pure.
//!
//! The terminal UI has one panel of each sort. A second question of a sort takes the place of the first without a word, and
//! nothing closes a panel but a key. So the next question waits until the one before it is answered, and a panel whose
//! question somebody else answered is replaced by one of the same sort that says who: whatever key it gets means nothing.
//! While that stands, no question takes its place: a key meant to close it must not allow anything.

use std::collections::VecDeque;

use plexus_protocol::transcript::{Decided, Outcome};
use plexus_protocol::{Choice, Offer, Request, RequestType};
use serde::Deserialize;
use serde_json::{Value, json};

/// Answers on their way that are remembered; an older one's end is told as if somebody else had decided.
const ANSWERED_MAX: usize = 64;
/// The header under which its panel shows what is remembered, always whole.
const REMEMBER: &str = "Remember (don't ask again):";

/// Which panels the terminal UI has.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Panels {
    #[serde(default)]
    supports_confirm: bool,
    #[serde(default)]
    supports_prompt: bool,
    #[serde(default)]
    supports_pick: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Panel {
    Confirm,
    Prompt,
    /// One of the items.
    Pick,
    /// One of the options, where yes and no are not enough.
    Options,
}

impl Panel {
    fn method(self) -> &'static str {
        match self {
            Self::Confirm => "ui.confirm.request",
            Self::Prompt => "ui.prompt.request",
            Self::Pick | Self::Options => "ui.pick.request",
        }
    }
}

/// What stands on the screen.
#[derive(Debug)]
enum ShownPanel {
    Question(Box<Request>, Panel),
    /// A word on a question that is over, under an identifier of ours.
    Word(String),
}

/// What is to be done.
#[derive(Debug)]
pub(super) enum PanelAction {
    /// Ask the terminal UI: identifier, method, params.
    Ask(String, &'static str, Value),
    /// Answer the gateway: the request, and the params of `ui.request.answer`.
    Answer(String, Value),
    /// Tell in a line.
    Notice(String),
    /// Show this text whole, before the panel that cannot.
    Show(String),
}

/// The questions of one terminal UI.
#[derive(Default)]
pub(super) struct PanelQueue {
    panels: Panels,
    waiting: VecDeque<Box<Request>>,
    shown: Option<ShownPanel>,
    answered: VecDeque<Box<Request>>,
    words: u64,
}

impl PanelQueue {
    pub(super) fn has(&mut self, panels: Panels) {
        self.panels = panels;
    }

    /// Questions of a session that is no longer followed are none of ours; one on the screen can still be answered.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
    }

    /// A question opened. `live`: the past is told, it may be shown.
    pub(super) fn opened(&mut self, request: Box<Request>, live: bool, acts: &mut Vec<PanelAction>) {
        let id = request.request_id.as_str();
        if let Some(known) = self.waiting.iter_mut().find(|known| known.request_id.as_str() == id) {
            if known.revision < request.revision {
                *known = request;
            }
            return;
        }
        if let Some(ShownPanel::Question(shown, panel)) = &self.shown
            && shown.request_id.as_str() == id
        {
            if shown.revision < request.revision {
                // A key that was meant for what stood there must not allow what stands there now.
                let (words, panel) = (format!("{}: read it again", shown.title), *panel);
                self.waiting.push_front(request);
                self.word("The request has changed", &words, panel, acts);
            }
            return;
        }
        if self.answered.iter().any(|known| known.request_id.as_str() == id && known.revision >= request.revision) {
            return;
        }
        self.waiting.push_back(request);
        if live {
            self.next(acts);
        }
    }

    /// Shows the next question, if none is shown.
    pub(super) fn next(&mut self, acts: &mut Vec<PanelAction>) {
        while self.shown.is_none() {
            let Some(request) = self.waiting.pop_front() else { return };
            let panel = panel_of(&request);
            let has = match panel {
                Panel::Confirm => self.panels.supports_confirm,
                Panel::Prompt => self.panels.supports_prompt,
                Panel::Pick | Panel::Options => self.panels.supports_pick,
            };
            // What it has no panel for (a form, say) is still seen.
            let none = panel == Panel::Options && request.options.is_empty();
            if request.observe_only || none || !has {
                acts.push(PanelAction::Notice(format!("request, to be answered in another client: {}", request.title)));
                continue;
            }
            if request.display_truncated {
                acts.push(PanelAction::Notice(
                    "too long to be shown completely here: allow it in a client that shows all of it".into(),
                ));
            }
            for reason in &request.risk_reasons {
                acts.push(PanelAction::Notice(format!("{}: {reason}", request.risk.as_str())));
            }
            if request.danger || !request.warnings.is_empty() {
                for warning in &request.warnings {
                    acts.push(PanelAction::Notice(format!("warning: {warning}")));
                }
            }
            if matches!(panel, Panel::Pick | Panel::Options) && !request.display.trim().is_empty() {
                acts.push(PanelAction::Show(format!("{}\n{}", request.title, request.display)));
            }
            acts.push(PanelAction::Ask(
                request.request_id.as_str().to_owned(),
                panel.method(),
                params(&request, panel),
            ));
            self.shown = Some(ShownPanel::Question(request, panel));
        }
    }

    /// A question found its end, by whoever.
    pub(super) fn resolved(&mut self, resolved: &Outcome, live: bool, acts: &mut Vec<PanelAction>) {
        let id = resolved.request_id.as_str();
        if let Some(at) = self.waiting.iter().position(|request| request.request_id.as_str() == id) {
            let request = self.waiting.remove(at);
            if let Some(request) = request.filter(|_| live) {
                acts.push(PanelAction::Notice(format!("{}: {}", resolved.words(), request.title)));
            }
            return;
        }
        let Some(ShownPanel::Question(request, panel)) = &self.shown else { return };
        if request.request_id.as_str() != id {
            return;
        }
        let (words, panel) = (format!("{}: {}", resolved.words(), request.title), *panel);
        acts.push(PanelAction::Notice(words.clone()));
        let what = match resolved.decided {
            Decided::Allowed | Decided::Denied | Decided::Answered => "Answered elsewhere",
            Decided::Expired | Decided::Withdrawn | Decided::Orphaned | Decided::Closed => "No longer open",
        };
        self.word(what, &words, panel, acts);
    }

    /// Puts a word in the place of the panel that is shown: whatever key it gets means nothing.
    fn word(&mut self, what: &str, words: &str, panel: Panel, acts: &mut Vec<PanelAction>) {
        self.words += 1;
        let id = format!("plexus_word_{}", self.words);
        let params = match panel {
            Panel::Confirm => json!({
                "title": format!("{what}: {words}"), "message": "", "confirm_label": "Go on", "cancel_label": "Go on",
                "danger_level": "normal", "allow_remember": false, "allow_reason": false,
            }),
            Panel::Prompt => json!({ "title": what, "message": words, "multiline": false, "secret": false }),
            Panel::Pick | Panel::Options => json!({
                "title": format!("{what}: {words}"), "items": [{ "id": "on", "label": "Go on" }], "multi": false,
            }),
        };
        acts.push(PanelAction::Ask(id.clone(), panel.method(), params));
        self.shown = Some(ShownPanel::Word(id));
    }

    /// These are open and no others: what became of the rest is not known here.
    pub(super) fn only(&mut self, open: &[String], live: bool, acts: &mut Vec<PanelAction>) {
        let shown = match &self.shown {
            Some(ShownPanel::Question(request, _)) => Some(request),
            _ => None,
        };
        let known = self.waiting.iter().chain(shown).map(|request| request.request_id.as_str().to_owned());
        let over: Vec<String> = known.filter(|id| !open.contains(id)).collect();
        for id in over {
            self.resolved(&Outcome::unknown(id), live, acts);
        }
    }

    /// What the terminal UI said to a question.
    pub(super) fn on_answer(&mut self, id: &str, result: &Value, acts: &mut Vec<PanelAction>) {
        match self.shown.take() {
            Some(ShownPanel::Question(request, panel)) if request.request_id.as_str() == id => {
                match answer(&request, panel, result) {
                    Ok(params) => {
                        acts.push(PanelAction::Answer(id.to_owned(), params));
                        if self.answered.len() >= ANSWERED_MAX {
                            self.answered.pop_front();
                        }
                        self.answered.push_back(request);
                    }
                    Err(why) => {
                        acts.push(PanelAction::Notice(why));
                        self.waiting.push_front(request);
                    }
                }
            }
            Some(ShownPanel::Word(word)) if word == id => {}
            // An answer to a panel that is gone decides nothing.
            other => {
                self.shown = other;
                return;
            }
        }
        self.next(acts);
    }

    /// The terminal UI did not show a question, or could not: it is none of its own any more, and holds up no other.
    pub(super) fn not_shown(&mut self, id: &str, why: &str, acts: &mut Vec<PanelAction>) {
        match self.shown.take() {
            Some(ShownPanel::Question(request, _)) if request.request_id.as_str() == id => {
                acts.push(PanelAction::Notice(format!(
                    "request, to be answered in another client ({why}): {}",
                    request.title
                )));
            }
            Some(ShownPanel::Word(word)) if word == id => {}
            other => {
                self.shown = other;
                return;
            }
        }
        self.next(acts);
    }

    /// The gateway took the answer.
    pub(super) fn taken(&mut self, id: &str) {
        self.answered.retain(|request| request.request_id.as_str() != id);
    }

    /// The gateway did not take the answer; `over`: because the question is.
    pub(super) fn refused(&mut self, id: &str, why: &str, over: bool, acts: &mut Vec<PanelAction>) {
        let Some(at) = self.answered.iter().position(|request| request.request_id.as_str() == id) else { return };
        let Some(request) = self.answered.remove(at) else { return };
        acts.push(PanelAction::Notice(format!("your answer was not accepted: {why}")));
        if !over {
            self.waiting.push_front(request);
            self.next(acts);
        }
    }

    /// Whether anything waits for a person here.
    #[cfg(test)]
    pub(super) fn shows(&self) -> Option<&str> {
        match &self.shown {
            Some(ShownPanel::Question(request, _)) => Some(request.request_id.as_str()),
            Some(ShownPanel::Word(id)) => Some(id),
            None => None,
        }
    }
}

fn first(request: &Request, kind: Choice) -> Option<&Offer> {
    request.options.iter().find(|offer| offer.kind == kind)
}

/// The option that `no` means.
fn no(request: &Request) -> Option<&Offer> {
    first(request, Choice::RejectOnce).or_else(|| first(request, Choice::RejectAlways))
}

/// The one option that means "always"; several would be told apart by nothing.
fn always(request: &Request) -> Option<&Offer> {
    for_good(request, Choice::AllowAlways)
}

fn for_good(request: &Request, kind: Choice) -> Option<&Offer> {
    let mut all = request.options.iter().filter(|offer| offer.kind == kind);
    all.next().filter(|_| all.next().is_none() && request.allow_remember)
}

fn panel_of(request: &Request) -> Panel {
    match request.kind {
        RequestType::Prompt => Panel::Prompt,
        RequestType::Pick => Panel::Pick,
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => {
            if first(request, Choice::AllowOnce).is_some() && no(request).is_some() {
                Panel::Confirm
            } else {
                Panel::Options
            }
        }
    }
}

fn params(request: &Request, panel: Panel) -> Value {
    let mut params = match panel {
        Panel::Confirm => {
            // What is asked is what the gateway made of it, not what the agent calls it.
            let mut message = if request.display.trim().is_empty() {
                request.message.clone().unwrap_or_default()
            } else {
                request.display.clone()
            };
            let always = always(request);
            if let Some(always) = always {
                message.push_str(&format!("\n\n{REMEMBER}\n- {}", always.label));
            }
            let mut heading = always.is_some();
            for warning in &request.warnings {
                if !std::mem::replace(&mut heading, true) {
                    message.push_str("\n\n");
                } else {
                    message.push('\n');
                }
                message.push_str(&format!("Warning: {warning}"));
            }
            let label = |offer: Option<&Offer>, other: &str| {
                offer.map_or_else(|| other.to_owned(), |offer| offer.label.clone())
            };
            json!({
                "title": request.title, "message": message,
                // It is used for "always", too.
                "confirm_label": if always.is_some() { "Allow".to_owned() } else { label(first(request, Choice::AllowOnce), "Yes") }, "cancel_label": label(no(request), "No"),
                "danger_level": if request.danger || !request.warnings.is_empty() { "danger" } else { "normal" },
                "allow_remember": always.is_some(), "allow_reason": request.allow_reason,
            })
        }
        Panel::Prompt => {
            let words = [request.message.as_deref(), Some(request.display.as_str())];
            let message = words.into_iter().flatten().find(|text| !text.trim().is_empty()).unwrap_or_default();
            json!({
                "title": request.title, "message": message, "default_value": request.default_value,
                "multiline": request.multiline, "secret": request.secret,
            })
        }
        Panel::Pick => json!({ "title": request.title, "items": request.items, "multi": request.multi }),
        Panel::Options => {
            let item = |offer: &Offer| json!({ "id": offer.id, "label": offer.label });
            let items: Vec<Value> = request.options.iter().map(item).collect();
            json!({ "title": request.title, "items": items, "multi": false })
        }
    };
    params["run_id"] = request.run_id.as_str().into();
    params
}

/// The params of `ui.request.answer`.
///
/// # Errors
/// In words: it is no answer.
fn answer(request: &Request, panel: Panel, result: &Value) -> Result<Value, String> {
    let mut params = json!({ "request_id": request.request_id });
    if !request.digest.is_empty() {
        params["digest"] = request.digest.as_str().into();
    }
    let decline = |params: &mut Value| match no(request) {
        Some(offer) => {
            params["option_id"] = offer.id.as_str().into();
            Ok(())
        }
        None => Err("this request cannot be denied: choose an option, or cancel the run".to_owned()),
    };
    match panel {
        Panel::Confirm => {
            let (yes, remember) = (result["ok"] == true, result["remember"] == true);
            if yes {
                // What was not offered to be remembered is not.
                let offer = always(request).filter(|_| remember).or_else(|| first(request, Choice::AllowOnce));
                let offer = offer.ok_or_else(|| "this request cannot be allowed with a plain yes".to_owned())?;
                params["option_id"] = offer.id.as_str().into();
            } else if let Some(never) = for_good(request, Choice::RejectAlways).filter(|_| remember) {
                params["option_id"] = never.id.as_str().into();
            } else {
                decline(&mut params)?;
            }
            if let Some(reason) = result["reason"].as_str().filter(|_| request.allow_reason && !yes) {
                params["reason"] = reason.into();
            }
        }
        Panel::Prompt => params["value"] = result["value"].as_str().into(),
        Panel::Pick => params["ids"] = result["ids"].as_array().cloned().unwrap_or_default().into(),
        Panel::Options => match result["ids"].get(0).and_then(Value::as_str) {
            Some(id) => params["option_id"] = id.into(),
            None => decline(&mut params)?,
        },
    }
    Ok(params)
}
