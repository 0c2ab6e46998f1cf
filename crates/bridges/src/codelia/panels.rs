//! Shows questions as the terminal UI's panels: one at a time, in log order. Pure.
//!
//! Codelia's terminal UI has one panel of each type. A second question of a type silently replaces the first, and only a key closes a
//! panel. So the next question waits until the previous one is answered, and a panel whose question was answered elsewhere is replaced by a
//! note in a panel of the same type that names who answered: any key closes it without effect. Until then no question takes its place,
//! since a key meant to close the note must not allow anything.

use std::collections::VecDeque;

use plexus_protocol::answers::{self, AnswerAction, AnswerRole, Answerer, Unavailable};
use plexus_protocol::transcript::{Decided, Outcome};
use plexus_protocol::{Answer, Choice, Offer, Request, RequestId, RequestType, Risk, ui_protocol};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// Maximum number of pending answers; the end of an older one is shown as another client's decision.
const ANSWERED_MAX: usize = 64;
/// The heading in the panel above the remembered options, which are shown in full.
const REMEMBER: &str = "Remember (don't ask again):";

/// The panels that the terminal UI has.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Panels {
    #[serde(default)]
    supports_confirm: bool,
    #[serde(default)]
    supports_prompt: bool,
    #[serde(default)]
    supports_pick: bool,
    /// `true` if this is Codelia's terminal UI, where a second question replaces the first.
    #[serde(default, rename = "supports_permission_preflight_events")]
    replaces: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Panel {
    Confirm,
    Prompt,
    /// A choice of one of the items.
    Pick,
    /// A choice of one of the options, where yes and no are not enough.
    Options,
    /// A choice between denying and leaving the request to the user's computer: this device may not allow it.
    TooRisky,
}

impl Panel {
    fn method(self) -> &'static str {
        match self {
            Self::Confirm | Self::TooRisky => "ui.confirm.request",
            Self::Prompt => "ui.prompt.request",
            Self::Pick | Self::Options => "ui.pick.request",
        }
    }
}

/// The reply of the terminal UI to a panel.
#[derive(Debug)]
pub(super) enum PanelReply {
    /// A cancel, which denies every type of question.
    Cancelled,
    Given(PanelResult),
    /// The result has another form.
    Unreadable,
}

/// The members of a panel's result that some panel has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PanelResult {
    ok: Option<bool>,
    #[serde(deserialize_with = "given")]
    value: Option<Option<String>>,
    ids: Option<Vec<String>>,
    remember: Option<bool>,
    reason: Option<String>,
}

impl PanelReply {
    pub(super) fn read(result: &str) -> Self {
        match serde_json::from_str(result) {
            Ok(None) => Self::Cancelled,
            Ok(Some(result)) => Self::Given(result),
            Err(_) => Self::Unreadable,
        }
    }
}

/// Tells `null` from an absent member.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// The panel on the screen of the terminal UI.
#[derive(Debug)]
enum CurrentPanel {
    Question(Box<Request>, Panel),
    /// A note on a closed question, under an id of the bridge.
    Note(String),
}

/// An action that results from a call.
#[derive(Debug)]
pub(super) enum PanelAction {
    /// Asks the terminal UI: id, method, params.
    Ask(String, &'static str, Value),
    /// Answers the request at the gateway.
    Answer(RequestId, Box<Answer>),
    /// Shows a notice.
    Notice(String),
    /// Shows this text in full, before a panel that is too small for it.
    Show(String),
}

/// The questions of one terminal UI.
#[derive(Default)]
pub(super) struct PanelQueue {
    panels: Panels,
    /// The highest risk that this device may allow.
    limit: Option<Risk>,
    waiting: VecDeque<Box<Request>>,
    current: Option<CurrentPanel>,
    answered: VecDeque<Box<Request>>,
    notes: u64,
    /// `true` if the runtime of the session speaks this protocol.
    own_dialect: bool,
}

impl PanelQueue {
    pub(super) fn set_panels(&mut self, panels: Panels) {
        self.panels = panels;
    }

    pub(super) fn set_limit(&mut self, limit: Option<Risk>) {
        self.limit = limit;
    }

    pub(super) fn set_own_dialect(&mut self, own: bool) {
        self.own_dialect = own;
    }

    /// Drops the questions of a session that is no longer followed; the displayed one can still be answered.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
    }

    /// Adds a question. With `live`, the history has been replayed, so that the question may be shown.
    pub(super) fn opened(&mut self, request: Box<Request>, live: bool, actions: &mut Vec<PanelAction>) {
        let id = request.request_id.as_str();
        if let Some(queued) = self.waiting.iter_mut().find(|queued| queued.request_id.as_str() == id) {
            if queued.revision < request.revision {
                *queued = request;
            }
            return;
        }
        if let Some(CurrentPanel::Question(open, panel)) = &self.current
            && open.request_id.as_str() == id
        {
            if open.revision < request.revision && !self.panels.replaces {
                actions.push(PanelAction::Notice(format!("the request has changed: {}", open.title)));
                self.current = None;
                self.waiting.push_front(request);
                if live {
                    self.next(actions);
                }
            } else if open.revision < request.revision {
                // A key meant for the earlier question must not allow the changed one.
                let (text, panel) = (format!("{}: read it again", open.title), *panel);
                self.waiting.push_front(request);
                self.show_note("The request has changed", &text, panel, actions);
            }
            return;
        }
        if self.answered.iter().any(|queued| queued.request_id.as_str() == id && queued.revision >= request.revision) {
            return;
        }
        self.waiting.push_back(request);
        if live {
            self.next(actions);
        }
    }

    /// Shows the next question, if none is shown.
    pub(super) fn next(&mut self, actions: &mut Vec<PanelAction>) {
        while self.current.is_none() {
            let Some(request) = self.waiting.pop_front() else { return };
            let panel = panel_for(&request, self.limit);
            let has_panel = match panel {
                Panel::Confirm | Panel::TooRisky => self.panels.supports_confirm,
                Panel::Prompt => self.panels.supports_prompt,
                Panel::Pick | Panel::Options => self.panels.supports_pick,
            };
            // A question without a panel (such as a form) is still mentioned.
            let none = match panel {
                Panel::Options => request.options.is_empty(),
                Panel::TooRisky => !can_decline(&request),
                Panel::Confirm | Panel::Prompt | Panel::Pick => false,
            };
            if request.observe_only || none || !has_panel {
                actions
                    .push(PanelAction::Notice(format!("request, to be answered in another client: {}", request.title)));
                continue;
            }
            if request.display_truncated {
                actions.push(PanelAction::Notice(
                    "too long to be shown completely here: allow it in a client that shows all of it".into(),
                ));
            }
            for reason in &request.risk_reasons {
                actions.push(PanelAction::Notice(format!("{}: {reason}", request.risk.as_str())));
            }
            if request.danger || !request.warnings.is_empty() {
                for warning in &request.warnings {
                    actions.push(PanelAction::Notice(format!("warning: {warning}")));
                }
            }
            if matches!(panel, Panel::Pick | Panel::Options) && !request.display.trim().is_empty() {
                actions.push(PanelAction::Show(format!("{}\n{}", request.title, request.display)));
            }
            let own = if self.own_dialect && panel != Panel::TooRisky { ui_protocol::question(&request) } else { None };
            let own = own.and_then(|own| serde_json::to_value(own).ok());
            let params = own.unwrap_or_else(|| params(&request, panel, self.limit));
            actions.push(PanelAction::Ask(panel_id(&request), panel.method(), params));
            self.current = Some(CurrentPanel::Question(request, panel));
        }
    }

    /// Closes a question.
    pub(super) fn resolved(&mut self, resolved: &Outcome, live: bool, actions: &mut Vec<PanelAction>) {
        let id = resolved.request_id.as_str();
        if let Some(at) = self.waiting.iter().position(|request| request.request_id.as_str() == id) {
            let request = self.waiting.remove(at);
            if let Some(request) = request.filter(|_| live) {
                actions.push(PanelAction::Notice(format!("{}: {}", resolved.summary(), request.title)));
            }
            return;
        }
        let Some(CurrentPanel::Question(request, panel)) = &self.current else { return };
        if request.request_id.as_str() != id {
            return;
        }
        let (text, panel) = (format!("{}: {}", resolved.summary(), request.title), *panel);
        actions.push(PanelAction::Notice(text.clone()));
        if !self.panels.replaces {
            // The protocol cannot withdraw a question: a late answer to it has no effect.
            self.current = None;
            return if live {
                self.next(actions)
            };
        }
        let heading = match resolved.decided {
            Decided::Allowed | Decided::Denied | Decided::Answered => "Answered elsewhere",
            Decided::Expired | Decided::Withdrawn | Decided::Orphaned | Decided::Closed => "No longer open",
        };
        self.show_note(heading, &text, panel, actions);
    }

    /// Replaces the displayed panel by a note: any key closes it without effect.
    fn show_note(&mut self, heading: &str, text: &str, panel: Panel, actions: &mut Vec<PanelAction>) {
        self.notes += 1;
        let id = format!("plexus_word_{}", self.notes);
        let params = match panel {
            Panel::Confirm | Panel::TooRisky => json!({
                "title": format!("{heading}: {text}"), "message": "", "confirm_label": "Go on", "cancel_label": "Go on",
                "danger_level": "normal", "allow_remember": false, "allow_reason": false,
            }),
            Panel::Prompt => json!({ "title": heading, "message": text, "multiline": false, "secret": false }),
            Panel::Pick | Panel::Options => json!({
                "title": format!("{heading}: {text}"), "items": [{ "id": "on", "label": "Go on" }], "multi": false,
            }),
        };
        actions.push(PanelAction::Ask(id.clone(), panel.method(), params));
        self.current = Some(CurrentPanel::Note(id));
    }

    /// Closes all questions that are not in `open`, with an unknown outcome.
    pub(super) fn close_others(&mut self, open: &[String], live: bool, actions: &mut Vec<PanelAction>) {
        let open_panel = match &self.current {
            Some(CurrentPanel::Question(request, _)) => Some(request),
            _ => None,
        };
        let queued = self.waiting.iter().chain(open_panel).map(|request| request.request_id.as_str().to_owned());
        let closed: Vec<String> = queued.filter(|id| !open.contains(id)).collect();
        for id in closed {
            self.resolved(&Outcome::unknown(id), live, actions);
        }
    }

    /// Handles the terminal UI's answer to a question.
    pub(super) fn on_answer(&mut self, id: &str, reply: PanelReply, actions: &mut Vec<PanelAction>) {
        match self.current.take() {
            Some(CurrentPanel::Question(request, panel)) if panel_id(&request) == id => {
                match answer(&request, panel, self.limit, reply) {
                    Ok(answer) => {
                        actions.push(match answer {
                            Some(answer) => PanelAction::Answer(request.request_id.clone(), Box::new(answer)),
                            None => PanelAction::Notice(format!(
                                "left open, to be decided at your computer: {}",
                                request.title
                            )),
                        });
                        if self.answered.len() >= ANSWERED_MAX {
                            self.answered.pop_front();
                        }
                        self.answered.push_back(request);
                    }
                    Err(reason) => {
                        actions.push(PanelAction::Notice(reason));
                        self.waiting.push_front(request);
                    }
                }
            }
            Some(CurrentPanel::Note(note)) if note == id => {}
            // An answer to a replaced panel has no effect.
            other => {
                self.current = other;
                return;
            }
        }
        self.next(actions);
    }

    /// Drops a question that the terminal UI could not show: it is left to other clients, and the next one may be shown.
    pub(super) fn show_failed(&mut self, id: &str, reason: &str, actions: &mut Vec<PanelAction>) {
        match self.current.take() {
            Some(CurrentPanel::Question(request, _)) if panel_id(&request) == id => {
                actions.push(PanelAction::Notice(format!(
                    "request, to be answered in another client ({reason}): {}",
                    request.title
                )));
            }
            Some(CurrentPanel::Note(note)) if note == id => {}
            other => {
                self.current = other;
                return;
            }
        }
        self.next(actions);
    }

    /// Removes an answer that the gateway accepted.
    pub(super) fn taken(&mut self, id: &str) {
        self.answered.retain(|request| request.request_id.as_str() != id);
    }

    /// Reports an answer that the gateway refused; with `closed`, the question is closed.
    pub(super) fn refused(&mut self, id: &str, reason: &str, closed: bool, actions: &mut Vec<PanelAction>) {
        let Some(at) = self.answered.iter().position(|request| request.request_id.as_str() == id) else { return };
        let Some(request) = self.answered.remove(at) else { return };
        actions.push(PanelAction::Notice(format!("your answer was not accepted: {reason}")));
        if !closed {
            self.waiting.push_front(request);
            self.next(actions);
        }
    }

    /// The id of the displayed question or note.
    #[cfg(test)]
    pub(super) fn current_id(&self) -> Option<&str> {
        match &self.current {
            Some(CurrentPanel::Question(request, _)) => Some(request.request_id.as_str()),
            Some(CurrentPanel::Note(id)) => Some(id),
            None => None,
        }
    }
}

/// The id of a question in the terminal UI: an answer to an earlier form of a changed question matches no other.
fn panel_id(request: &Request) -> String {
    ui_protocol::request_name(request.request_id.as_str(), request.revision)
}

fn first(request: &Request, kind: Choice) -> Option<&Offer> {
    request.options.iter().find(|offer| offer.kind == kind)
}

/// The option for "no".
fn rejection(request: &Request) -> Option<&Offer> {
    first(request, Choice::RejectOnce).or_else(|| first(request, Choice::RejectAlways))
}

/// The option that an answer chooses.
fn option_id(action: &AnswerAction) -> Option<&str> {
    action.answer.as_ref()?.option_id.as_deref()
}

/// The gateway's verb for an option, with the agent's label quoted beside it.
fn action_text(request: &Request, option: &str) -> String {
    let actions = answers::actions(request, Answerer::UNLIMITED);
    actions.iter().find(|action| option_id(action) == Some(option)).map(AnswerAction::text).unwrap_or_default()
}

/// Returns whether the request is riskier than this device may allow.
fn is_too_risky(request: &Request, limit: Option<Risk>) -> bool {
    limit.is_some_and(|limit| request.risk > limit)
}

/// Returns whether a request can be declined.
fn can_decline(request: &Request) -> bool {
    matches!(request.kind, RequestType::Prompt | RequestType::Pick) || rejection(request).is_some()
}

/// The option for "always", if there is exactly one (the panel could not distinguish several) and this device may choose it.
fn allow_always(request: &Request, limit: Option<Risk>) -> Option<&Offer> {
    single_option(request, Choice::AllowAlways).filter(|_| limit.is_none_or(|limit| limit == Risk::Danger))
}

fn single_option(request: &Request, kind: Choice) -> Option<&Offer> {
    let mut all = request.options.iter().filter(|offer| offer.kind == kind);
    all.next().filter(|_| all.next().is_none() && request.allow_remember)
}

fn panel_for(request: &Request, limit: Option<Risk>) -> Panel {
    match request.kind {
        _ if is_too_risky(request, limit) => Panel::TooRisky,
        RequestType::Prompt => Panel::Prompt,
        RequestType::Pick => Panel::Pick,
        RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => {
            if first(request, Choice::AllowOnce).is_some() && rejection(request).is_some() {
                Panel::Confirm
            } else {
                Panel::Options
            }
        }
    }
}

fn params(request: &Request, panel: Panel, limit: Option<Risk>) -> Value {
    let mut params = match panel {
        Panel::TooRisky => json!({
            "title": request.title,
            "message": format!("{}\n\n{}", request.display, Unavailable::Risk.text()),
            "confirm_label": AnswerRole::Later.rule().verb, "cancel_label": AnswerRole::Deny.rule().verb, "danger_level": "danger",
            "allow_remember": false, "allow_reason": request.allow_reason,
        }),
        Panel::Confirm => {
            // The question is the gateway's rendering, not the agent's text.
            let mut message = if request.display.trim().is_empty() {
                request.message.clone().unwrap_or_default()
            } else {
                request.display.clone()
            };
            let allow_always = allow_always(request, limit);
            if let Some(allow_always) = allow_always {
                message.push_str(&format!("\n\n{REMEMBER}\n- {}", action_text(request, &allow_always.id)));
            }
            let mut heading = allow_always.is_some();
            for warning in &request.warnings {
                if !std::mem::replace(&mut heading, true) {
                    message.push_str("\n\n");
                } else {
                    message.push('\n');
                }
                message.push_str(&format!("Warning: {warning}"));
            }
            let label = |offer: Option<&Offer>, role: AnswerRole| {
                offer.map_or_else(|| role.rule().verb.to_owned(), |offer| action_text(request, &offer.id))
            };
            json!({
                "title": request.title, "message": message,
                // The label also applies to "always".
                "confirm_label": if allow_always.is_some() { "Allow".to_owned() } else { label(first(request, Choice::AllowOnce), AnswerRole::AllowOnce) },
                "cancel_label": label(rejection(request), AnswerRole::Deny),
                "danger_level": if request.danger || !request.warnings.is_empty() { "danger" } else { "normal" },
                "allow_remember": allow_always.is_some(), "allow_reason": request.allow_reason,
            })
        }
        Panel::Prompt => {
            let texts = [request.message.as_deref(), Some(request.display.as_str())];
            let message = texts.into_iter().flatten().find(|text| !text.trim().is_empty()).unwrap_or_default();
            json!({
                "title": request.title, "message": message, "default_value": request.default_value,
                "multiline": request.multiline, "secret": request.secret,
            })
        }
        Panel::Pick => json!({ "title": request.title, "items": request.items, "multi": request.multi }),
        Panel::Options => {
            let device = Answerer { may_approve: true, approve_up_to: limit };
            let actions = answers::actions(request, device);
            let available = actions.iter().filter(|action| action.unavailable.is_none());
            let item = |action: &AnswerAction| Some(json!({ "id": option_id(action)?, "label": action.text() }));
            let items: Vec<Value> = available.filter_map(item).collect();
            json!({ "title": request.title, "items": items, "multi": false })
        }
    };
    params["run_id"] = request.run_id.as_str().into();
    params
}

/// The answer to a request; `None` if the request is left to the user's computer.
///
/// # Errors
/// The reason why the result is not an answer.
fn answer(request: &Request, panel: Panel, limit: Option<Risk>, reply: PanelReply) -> Result<Option<Answer>, String> {
    let mut answer = Answer::default();
    if !request.digest.is_empty() {
        answer.digest = Some(request.digest.clone());
    }
    let decline = || match rejection(request) {
        Some(offer) => Ok(Some(offer.id.clone())),
        None => Err("this request cannot be denied: choose an option, or cancel the run".to_owned()),
    };
    let (form, fits): (_, fn(&PanelResult) -> bool) = match panel {
        Panel::Confirm | Panel::TooRisky => ("{\"ok\": true or false}", |result| result.ok.is_some()),
        Panel::Prompt => ("{\"value\": text or null}", |result| result.value.is_some()),
        Panel::Pick | Panel::Options => ("{\"ids\": [..]}", |result| result.ids.is_some()),
    };
    let result = match reply {
        PanelReply::Cancelled => PanelResult::default(),
        PanelReply::Given(result) if fits(&result) => result,
        PanelReply::Given(_) | PanelReply::Unreadable => {
            return Err(format!("your answer was not accepted: the result must be {form}"));
        }
    };
    let confirmed = result.ok == Some(true);
    match panel {
        Panel::TooRisky if confirmed => return Ok(None),
        Panel::TooRisky => {
            match request.kind {
                RequestType::Prompt => answer.value = Some(None),
                RequestType::Pick => answer.ids = Some(Vec::new()),
                RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => {
                    answer.option_id = decline()?;
                }
            }
            answer.reason = result.reason.filter(|_| request.allow_reason);
        }
        Panel::Confirm => {
            let remember = result.remember == Some(true);
            if confirmed {
                // "Remember" has an effect only where it was offered.
                let offer =
                    allow_always(request, limit).filter(|_| remember).or_else(|| first(request, Choice::AllowOnce));
                let offer = offer.ok_or_else(|| "this request cannot be allowed with a plain yes".to_owned())?;
                answer.option_id = Some(offer.id.clone());
            } else if let Some(never) = single_option(request, Choice::RejectAlways).filter(|_| remember) {
                answer.option_id = Some(never.id.clone());
            } else {
                answer.option_id = decline()?;
            }
            answer.reason = result.reason.filter(|_| request.allow_reason && !confirmed);
        }
        Panel::Prompt => answer.value = Some(result.value.flatten()),
        Panel::Pick => answer.ids = Some(result.ids.unwrap_or_default()),
        Panel::Options => {
            answer.option_id = match result.ids.and_then(|ids| ids.into_iter().next()) {
                Some(id) => Some(id),
                None => decline()?,
            };
        }
    }
    Ok(Some(answer))
}

#[cfg(test)]
mod tests;
