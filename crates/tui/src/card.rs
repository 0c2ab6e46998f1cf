//! The card of a request: the question in the gateway's own rendering, and the keys that answer it. One file: which answers are possible
//! depends on the lines that were on the screen. Pure.
//!
//! The verbs, keys and guards of the answers are those of [`plexus_protocol::answers`]. No key answers before the card was shown, or had
//! the focus, for [`ARM_DELAY`], and nothing is allowed before its last line was on the screen. A dangerous request needs a typed `yes`. An
//! agent's text stands behind a bar or in quotation marks, and never as a line or a button of the UI's own.

mod choices;

pub(crate) use choices::option_positions;
use choices::{choices_of, flow, has_menu};

use std::collections::BTreeSet;
use std::ops::Range;

use plexus_protocol::answers::{AnswerRole, Sense};
use plexus_protocol::{ABOUT_MAX, About, Answer, Question, RequestType};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui_textarea::TextArea;

use super::form::{Form, FormStep};
use super::input::{self, Key};
use super::markdown::wrap;
use super::sanitize;
use super::theme::Theme;
use super::view_model::{RequestResult, RequestView, RiskView, span};

/// Time that a card is shown before a key answers it, in milliseconds: a key that was meant for another item has no effect.
pub(crate) const ARM_DELAY: i64 = plexus_protocol::answers::GUARD_MS as i64;
/// Time that an answered card stays in its place, in milliseconds.
pub(crate) const LINGER_TIME: i64 = 6_000;
/// Lines of a card besides its content and options: origin, hint, frame, an empty line.
const FRAME: usize = 5;
/// Lines of a form's card around its content; the options are in the content.
const FORM_FRAME: usize = 4;
/// Maximum number of lines of a request that is shown before the reasons for its risk.
const SHORT_LINES: usize = 8;
/// Maximum number of lines of the menu.
pub(crate) const MENU_ROWS: usize = 8;
/// Height of the content, in lines, below which a card has fewer lines of its own.
const ROWS_MIN: usize = 4;
/// Maximum number of content lines that are laid out; a longer request cannot be allowed here.
const LINES_MAX: usize = 40_000;
/// Width below which hints are short, in columns.
const HINT_WIDTH: usize = 56;
/// Text while only a part of a request is loaded.
const PARTIAL: &str = "only the beginning is loaded: you can only deny it";
/// Text after a request changed on the screen.
const CHANGED: &str = "this request changed while it was open: read it again, then press c";
const CHANGED_TYPING: &str = "this request changed while it was open: read it again, then press Ctrl-R";

/// The state of answering.
#[derive(Clone, Debug)]
pub(crate) enum CardMode {
    /// Reading the request; a key chooses an option.
    Choose,
    /// All answers in a list, one of them chosen.
    Menu { at: usize },
    /// Waiting for the second press of an answer that also covers later requests; `since` is the time of the first press.
    ConfirmRule { action: usize, since: i64 },
    /// Typing the reason of a denial.
    Reason(TextArea<'static>),
    /// Typing `yes` to send this answer; Esc returns to the mode `back`.
    TypeYes { typed: String, answer: Answer, back: Box<CardMode> },
    /// Editing the action before it is allowed.
    Edit(TextArea<'static>),
    /// Typing the requested text.
    Text(TextArea<'static>),
    /// Picking items.
    Pick { at: usize, picked: BTreeSet<usize> },
    /// Filling in a form.
    Form(Form),
}

/// The state of a card.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    pub(crate) id: String,
    /// The time when the card was first shown.
    pub(crate) shown_at: i64,
    pub(crate) scroll: usize,
    /// `true` if the current place of the form has to be scrolled into view.
    follow: bool,
    /// The side on which the current place of the form is, if it is not on the screen.
    off_screen: Option<OffScreen>,
    /// `true` if the last line was on the screen.
    pub(crate) read: bool,
    /// `true` if the request changed on the screen and the user has not confirmed to have read it again.
    pub(crate) changed: bool,
    /// `true` if the whole request is being fetched.
    pub(crate) fetching: bool,
    pub(crate) mode: CardMode,
    /// `true` if the answer is being sent.
    pub(crate) sent: bool,
    pub(crate) problem: String,
    /// The time when an answer was first received here.
    pub(crate) closed_at: Option<i64>,
}

/// The side of an off-screen place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OffScreen {
    Above,
    Below,
}

/// The effect of a key on a card.
#[derive(Debug, PartialEq)]
pub(crate) enum CardOutcome {
    /// The card did not handle the key.
    Nothing,
    /// The card handled the key.
    Handled,
    /// Sends this answer.
    Answer(Answer),
    /// Removes the card.
    Close,
}

/// A card laid out.
pub(crate) struct CardLayout {
    pub(crate) content: Vec<Line<'static>>,
    /// Content lines on the screen.
    pub(crate) rows: usize,
    pub(crate) height: usize,
    /// `true` if lines that repeat other parts of the screen are left out, for lack of space.
    pub(crate) compact: bool,
    /// The lines of the current question of a form, and of the current place in it.
    focus: Option<(Range<usize>, Range<usize>)>,
}

impl Card {
    pub(crate) fn new(ask: &RequestView, now: i64) -> Self {
        let mode = match ask.request.kind {
            _ if !ask.questions.is_empty() => CardMode::Form(Form::new(&ask.questions)),
            _ if ask.request.observe_only || ask.action(AnswerRole::Send).is_none() => CardMode::Choose,
            RequestType::Prompt => {
                let mut area = input::area(&ask.default);
                if ask.request.secret {
                    area.set_mask_char('•');
                }
                CardMode::Text(area)
            }
            RequestType::Pick => CardMode::Pick { at: 0, picked: BTreeSet::new() },
            RequestType::Confirm | RequestType::Permission | RequestType::Elicitation => CardMode::Choose,
        };
        Self {
            id: ask.id.clone(),
            shown_at: now,
            scroll: 0,
            follow: false,
            off_screen: None,
            read: false,
            changed: false,
            fetching: false,
            mode,
            sent: false,
            problem: String::new(),
            closed_at: None,
        }
    }

    /// Returns whether text is being typed into the card.
    pub(crate) fn is_typing(&self, ask: &RequestView) -> bool {
        match &self.mode {
            CardMode::Choose | CardMode::Menu { .. } | CardMode::ConfirmRule { .. } | CardMode::Pick { .. } => false,
            CardMode::Form(form) => form.is_typing(&ask.questions),
            CardMode::Reason(_) | CardMode::TypeYes { .. } | CardMode::Edit(_) | CardMode::Text(_) => true,
        }
    }

    /// Returns whether a key means this request, also before the card has the focus.
    pub(crate) fn means(&self, name: &str, ask: &RequestView) -> bool {
        match name {
            _ if ask.request.observe_only => false,
            "a" | "d" => true,
            "A" => ask.has_key('A'),
            "e" => ask.editable.is_some(),
            "r" => ask.request.allow_reason,
            "m" => has_menu(ask),
            digit => digit.chars().next().is_some_and(|key| digit.len() == 1 && ask.has_key(key)),
        }
    }

    /// Restarts the guard, since the card has just got the focus.
    pub(crate) fn focus(&mut self, now: i64) {
        self.shown_at = now;
    }

    /// Returns whether the card is a form, which takes all the available space.
    pub(crate) fn is_form(&self) -> bool {
        self.draft().is_some()
    }

    /// Restores an unfinished answer.
    pub(crate) fn resume(&mut self, mode: CardMode) {
        self.mode = mode;
        self.follow = true;
    }

    /// The unfinished answer, if it should survive leaving the card.
    pub(crate) fn draft(&self) -> Option<&CardMode> {
        match &self.mode {
            CardMode::TypeYes { back, .. } if matches!(**back, CardMode::Form(_)) => Some(back),
            mode @ CardMode::Form(_) => Some(mode),
            _ => None,
        }
    }

    /// Lays the card out in at most `max` lines.
    pub(crate) fn shape(&self, ask: &RequestView, width: u16, max: usize, theme: &Theme) -> CardLayout {
        let inner = usize::from(width).saturating_sub(4);
        let mut content = content(ask, inner, theme);
        let form = match &self.mode {
            CardMode::Form(form) => Some(form),
            CardMode::TypeYes { back, .. } => match &**back {
                CardMode::Form(form) => Some(form),
                _ => None,
            },
            _ => None,
        };
        let mut focus = None;
        if let Some(form) = form {
            if !content.is_empty() {
                content.push(Line::default());
            }
            let form_layout = form.layout(&ask.questions, inner, content.len(), theme);
            content.extend(form_layout.lines);
            focus = Some((form_layout.question, form_layout.item));
        }
        let below = match &self.mode {
            CardMode::Reason(area) | CardMode::Edit(area) | CardMode::Text(area) => {
                input::rows(area, usize::from(width).saturating_sub(7)).clamp(1, 6) + 1
            }
            CardMode::Pick { .. } => ask.items.len().clamp(1, MENU_ROWS),
            CardMode::Menu { .. } => ask.actions.len().clamp(1, MENU_ROWS),
            CardMode::Choose | CardMode::ConfirmRule { .. } | CardMode::TypeYes { .. } | CardMode::Form(_) => 0,
        };
        let (mut frame, spare) = match form {
            Some(_) => (FORM_FRAME, 1),
            None => (FRAME + flow(&choices_of(ask, inner), inner).len().max(1), 2),
        };
        let compact = max.saturating_sub(frame + below) < content.len().min(ROWS_MIN);
        if compact {
            frame -= spare;
        }
        let rows = content.len().min(max.saturating_sub(frame + below).max(1));
        CardLayout { rows, height: (rows + frame + below).min(max), compact, content, focus }
    }

    /// Records that the card was drawn with this layout.
    pub(crate) fn update_scroll(&mut self, shape: &CardLayout) {
        if let Some((question, place)) = &shape.focus {
            if std::mem::take(&mut self.follow) {
                // The whole question if it fits, else only the place.
                let show = if question.len() <= shape.rows { question } else { place };
                self.scroll = self.scroll.min(show.start).max(show.end.saturating_sub(shape.rows));
            }
            self.off_screen = if place.start >= self.scroll + shape.rows {
                Some(OffScreen::Below)
            } else {
                (place.end <= self.scroll).then_some(OffScreen::Above)
            };
        }
        self.scroll = self.scroll.min(shape.content.len().saturating_sub(shape.rows));
        if self.scroll + shape.rows >= shape.content.len() && shape.content.len() < LINES_MAX && !self.fetching {
            self.read = true;
        }
    }

    /// The reason why the request cannot be allowed yet.
    pub(crate) fn block_reason(&self, now: i64) -> Option<&'static str> {
        if self.sent {
            Some("sending …")
        } else if now - self.shown_at < ARM_DELAY {
            Some("…")
        } else if self.fetching {
            Some(PARTIAL)
        } else if self.changed {
            // While text is typed, letters go into the text.
            Some(match self.mode {
                CardMode::Choose | CardMode::Menu { .. } | CardMode::ConfirmRule { .. } | CardMode::Pick { .. } => {
                    CHANGED
                }
                CardMode::Reason(_)
                | CardMode::TypeYes { .. }
                | CardMode::Edit(_)
                | CardMode::Text(_)
                | CardMode::Form(_) => CHANGED_TYPING,
            })
        } else if !self.read {
            Some("read to the end to allow: PgDn")
        } else {
            None
        }
    }

    /// Allows the request if possible; a dangerous one needs a second confirmation.
    fn allow(&mut self, ask: &RequestView, answer: Answer, now: i64) -> CardOutcome {
        let refused = ask.actions.iter().find_map(|action| {
            let allows = matches!(action.role, AnswerRole::AllowOnce | AnswerRole::Send);
            action.unavailable.filter(|_| allows)
        });
        if let Some(why) = refused {
            self.problem = why.text().into();
            return CardOutcome::Handled;
        }
        self.send(ask, answer, now)
    }

    /// Sends an answer that lets the agent continue, subject to the guards.
    fn send(&mut self, ask: &RequestView, answer: Answer, now: i64) -> CardOutcome {
        if self.block_reason(now).is_some() {
            return CardOutcome::Handled;
        }
        let answer = ask.with_digest(answer);
        if ask.risk == RiskView::Danger {
            let back = Box::new(std::mem::replace(&mut self.mode, CardMode::Choose));
            self.mode = CardMode::TypeYes { typed: String::new(), answer, back };
            return CardOutcome::Handled;
        }
        CardOutcome::Answer(answer)
    }

    /// Denies the request, once the card is armed.
    fn deny(&self, ask: &RequestView, answer: Answer, now: i64) -> CardOutcome {
        if self.sent || now - self.shown_at < ARM_DELAY {
            CardOutcome::Handled
        } else {
            CardOutcome::Answer(ask.with_digest(answer))
        }
    }

    /// The answer that denies a request.
    pub(crate) fn denial(ask: &RequestView) -> Answer {
        let answer = ask.denial().and_then(|action| action.answer.clone());
        answer.unwrap_or_else(|| Answer { ok: Some(false), ..Answer::default() })
    }

    /// Gives one of the offered answers; one that covers later requests waits for a second press.
    fn press(&mut self, at: usize, ask: &RequestView, confirmed: bool, now: i64) -> CardOutcome {
        let Some(action) = ask.actions.get(at) else { return CardOutcome::Handled };
        if let Some(why) = action.unavailable {
            self.problem = why.text().into();
            return CardOutcome::Handled;
        }
        let rule = action.role.rule();
        let Some(answer) = &action.answer else {
            self.problem = "left open: answer it on another device".into();
            return CardOutcome::Handled;
        };
        let blocked = match rule.sense {
            Sense::Allow => self.block_reason(now).is_some(),
            Sense::Deny | Sense::Defer => self.sent || now - self.shown_at < ARM_DELAY,
        };
        if blocked {
            return CardOutcome::Handled;
        }
        if rule.persistent && !confirmed {
            self.mode = CardMode::ConfirmRule { action: at, since: now };
            return CardOutcome::Handled;
        }
        match rule.sense {
            Sense::Allow => self.send(ask, answer.clone(), now),
            Sense::Deny | Sense::Defer => self.deny(ask, answer.clone(), now),
        }
    }

    /// Handles a key.
    pub(crate) fn key(
        &mut self,
        key: &Key,
        ask: &RequestView,
        outcome: Option<&RequestResult>,
        now: i64,
        page: usize,
    ) -> CardOutcome {
        if outcome.is_some() {
            return match key.name() {
                "Esc" | "Enter" => CardOutcome::Close,
                // A key that was meant for the question has no other effect.
                "a" | "d" | "A" | "r" | "e" | "m" => CardOutcome::Handled,
                _ => CardOutcome::Nothing,
            };
        }
        match key.name() {
            // The user has read the changed request.
            "c" | "C-r" if self.changed && (key.name() == "C-r" || !self.is_typing(ask)) => {
                if self.read && !self.sent && now - self.shown_at >= ARM_DELAY {
                    self.changed = false;
                }
            }
            "PageDown" => self.scroll += page.max(2) - 1,
            "PageUp" => self.scroll = self.scroll.saturating_sub(page.max(2) - 1),
            _ => return self.mode_key(key, ask, now),
        }
        CardOutcome::Handled
    }

    fn mode_key(&mut self, key: &Key, ask: &RequestView, now: i64) -> CardOutcome {
        // A mode that no branch restores ends here.
        match std::mem::replace(&mut self.mode, CardMode::Choose) {
            CardMode::Choose => self.choose(key, ask, now),
            CardMode::Menu { at } => self.menu_key(at, key, ask, now),
            CardMode::ConfirmRule { action, since } => match key.name() {
                "Esc" => CardOutcome::Handled,
                // From the menu, Enter confirms what Enter chose.
                "A" | "Enter" if now - since >= ARM_DELAY => self.press(action, ask, true, now),
                _ => {
                    self.mode = CardMode::ConfirmRule { action, since };
                    CardOutcome::Handled
                }
            },
            CardMode::Reason(mut area) => match key.name() {
                "Esc" => CardOutcome::Handled,
                "Enter" => {
                    let mut answer = Self::denial(ask);
                    let why = area.lines().join("\n");
                    if !why.trim().is_empty() {
                        answer.reason = Some(why.trim().to_owned());
                    }
                    self.deny(ask, answer, now)
                }
                _ => {
                    input::edit(&mut area, key);
                    self.mode = CardMode::Reason(area);
                    CardOutcome::Handled
                }
            },
            CardMode::TypeYes { mut typed, answer, back } => {
                match key.name() {
                    "Esc" => {
                        self.mode = *back;
                        return CardOutcome::Handled;
                    }
                    "Enter" if typed == "yes" => {
                        self.mode = *back;
                        return CardOutcome::Answer(answer);
                    }
                    "Enter" => typed.clear(),
                    "Backspace" => drop(typed.pop()),
                    name if name.chars().count() == 1 && typed.len() < 8 => typed.push_str(name),
                    _ => {}
                }
                self.mode = CardMode::TypeYes { typed, answer, back };
                CardOutcome::Handled
            }
            CardMode::Edit(mut area) => match key.name() {
                "Esc" => CardOutcome::Handled,
                "Enter" => {
                    let answer = ask.action(AnswerRole::AllowOnce).and_then(|action| action.answer.clone());
                    let answer = answer.unwrap_or_else(|| Answer { ok: Some(true), ..Answer::default() });
                    let answer = Answer { edited: Some(area.lines().join("\n")), ..answer };
                    self.mode = CardMode::Edit(area);
                    self.allow(ask, answer, now)
                }
                _ => {
                    input::edit(&mut area, key);
                    self.mode = CardMode::Edit(area);
                    CardOutcome::Handled
                }
            },
            CardMode::Text(mut area) => {
                let outcome = match key.name() {
                    "Esc" | "Tab" | "S-Tab" => CardOutcome::Nothing,
                    // In a form these keys go to another question.
                    "Up" | "Down" if area.lines().len() == 1 => CardOutcome::Nothing,
                    "C-n" => self.deny(ask, Self::denial(ask), now),
                    "Enter" => {
                        let answer = Answer { value: Some(Some(area.lines().join("\n"))), ..Answer::default() };
                        self.mode = CardMode::Text(area);
                        return self.allow(ask, answer, now);
                    }
                    _ => {
                        input::edit(&mut area, key);
                        CardOutcome::Handled
                    }
                };
                self.mode = CardMode::Text(area);
                outcome
            }
            CardMode::Pick { at, picked } => self.pick_key(at, picked, key, ask, now),
            CardMode::Form(form) => self.form_key(form, key, ask, now),
        }
    }

    /// Handles a key in a list of items.
    fn pick_key(
        &mut self,
        mut at: usize,
        mut picked: BTreeSet<usize>,
        key: &Key,
        ask: &RequestView,
        now: i64,
    ) -> CardOutcome {
        let last = ask.items.len().saturating_sub(1);
        let outcome = match key.name() {
            "Down" | "j" if at < last => {
                at += 1;
                CardOutcome::Handled
            }
            "Up" | "k" if at > 0 => {
                at -= 1;
                CardOutcome::Handled
            }
            " " if ask.request.multi => {
                if !picked.remove(&at) {
                    picked.insert(at);
                }
                CardOutcome::Handled
            }
            "Enter" | "a" => {
                let chosen = if ask.request.multi { picked.clone() } else { BTreeSet::from([at]) };
                let ids: Vec<String> =
                    chosen.iter().filter_map(|n| ask.items.get(*n)).map(|item| item.id.clone()).collect();
                self.mode = CardMode::Pick { at, picked };
                return match ids.is_empty() {
                    true => CardOutcome::Handled,
                    false => self.allow(ask, Answer { ids: Some(ids), ..Answer::default() }, now),
                };
            }
            "d" => self.deny(ask, Self::denial(ask), now),
            digit => match digit.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).filter(|n| *n <= last) {
                Some(item) => {
                    at = item;
                    if ask.request.multi && !picked.remove(&item) {
                        picked.insert(item);
                    }
                    CardOutcome::Handled
                }
                None => CardOutcome::Nothing,
            },
        };
        self.mode = CardMode::Pick { at, picked };
        outcome
    }

    /// Handles a key in a form.
    fn form_key(&mut self, mut form: Form, key: &Key, ask: &RequestView, now: i64) -> CardOutcome {
        // An off-screen place is scrolled into view before anything is chosen there.
        match (key.name(), self.off_screen) {
            ("Down", Some(OffScreen::Below)) => {
                self.scroll += 1;
                self.mode = CardMode::Form(form);
                return CardOutcome::Handled;
            }
            ("Up", Some(OffScreen::Above)) => {
                self.scroll = self.scroll.saturating_sub(1);
                self.mode = CardMode::Form(form);
                return CardOutcome::Handled;
            }
            _ => {}
        }
        let step = form.key(key, &ask.questions, self.off_screen.is_some());
        self.mode = CardMode::Form(form);
        match step {
            FormStep::Nothing if key.name() == "Up" && self.scroll > 0 => {
                self.scroll -= 1;
                CardOutcome::Handled
            }
            FormStep::Nothing => CardOutcome::Nothing,
            FormStep::Handled => {
                self.follow = true;
                self.problem.clear();
                CardOutcome::Handled
            }
            FormStep::Decline => self.deny(ask, Self::denial(ask), now),
            FormStep::Refused(why) => {
                self.follow = true;
                self.problem = why;
                CardOutcome::Handled
            }
            FormStep::Send(answers) => self.allow(ask, Answer { answers: Some(answers), ..Answer::default() }, now),
        }
    }

    fn choose(&mut self, key: &Key, ask: &RequestView, now: i64) -> CardOutcome {
        if ask.request.observe_only {
            return CardOutcome::Nothing;
        }
        let mut chars = key.name().chars();
        if let (Some(letter), None) = (chars.next(), chars.next())
            && let Some(at) = ask.actions.iter().position(|action| action.key == Some(letter))
        {
            self.problem.clear();
            return self.press(at, ask, false, now);
        }
        match key.name() {
            "r" if ask.request.allow_reason => {
                self.mode = CardMode::Reason(input::area(""));
                CardOutcome::Handled
            }
            "e" => match &ask.editable {
                Some((_, value)) => {
                    self.mode = CardMode::Edit(input::area(value));
                    CardOutcome::Handled
                }
                None => CardOutcome::Nothing,
            },
            "m" if has_menu(ask) => {
                self.mode = CardMode::Menu { at: 0 };
                CardOutcome::Handled
            }
            // Keys of other requests do nothing here.
            "a" | "d" | "A" => CardOutcome::Handled,
            _ => CardOutcome::Nothing,
        }
    }

    /// Handles a key in the list of all answers.
    fn menu_key(&mut self, at: usize, key: &Key, ask: &RequestView, now: i64) -> CardOutcome {
        let last = ask.actions.len().saturating_sub(1);
        let at = match key.name() {
            "Esc" | "m" => return CardOutcome::Handled,
            "Enter" => return self.press(at, ask, false, now),
            "Down" | "j" => (at + 1).min(last),
            "Up" | "k" => at.saturating_sub(1),
            _ => at,
        };
        self.mode = CardMode::Menu { at };
        CardOutcome::Handled
    }

    /// Pastes text.
    pub(crate) fn paste(&mut self, ask: &RequestView, text: &str) -> bool {
        match &mut self.mode {
            CardMode::Form(form) => {
                self.follow = true;
                form.paste(&ask.questions, text)
            }
            CardMode::Reason(area) | CardMode::Edit(area) | CardMode::Text(area) => {
                area.insert_str(text);
                true
            }
            _ => false,
        }
    }
}

/// Returns whether the gateway may have truncated a text of the questions: then only `display` is complete.
fn is_truncated(questions: &[Question]) -> bool {
    questions.iter().any(|question| {
        let options = question.options.iter().flat_map(|one| [Some(&one.label), one.description.as_ref()]);
        let texts = [Some(&question.text), question.header.as_ref()].into_iter().chain(options).flatten();
        texts.into_iter().any(|text| text.len() >= ABOUT_MAX)
    })
}

/// The warnings, and the reasons for the risk.
fn why_risky(ask: &RequestView, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for warning in &ask.warnings {
        let spans = [Span::styled(warning.clone(), theme.warn)];
        lines.extend(wrap(&spans, &Span::styled("⚠ ", theme.warn), &Span::raw("  "), width));
    }
    if ask.risk > RiskView::Low || !ask.reasons.is_empty() {
        let style = if ask.risk == RiskView::Danger { theme.bad } else { theme.warn };
        let spans = [
            Span::styled(format!("{}  ", ask.risk.name()), style.add_modifier(Modifier::BOLD)),
            Span::styled(ask.reasons.join("; "), style),
        ];
        lines.extend(wrap(&spans, &Span::raw(""), &Span::raw("  "), width));
    }
    lines
}

/// The content of the request, behind a bar.
fn content(ask: &RequestView, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    // The question comes first, unless its end is far below.
    let short = ask.questions.is_empty() && ask.display.lines().nth(SHORT_LINES).is_none();
    if !short {
        lines.extend(why_risky(ask, width, theme));
    }
    if ask.request.subject == About::Unreadable {
        let text = "Plexus cannot tell what this would do; it is shown as the agent sent it";
        lines.extend(wrap(&[Span::styled(text, theme.bad)], &Span::styled("⚠ ", theme.bad), &Span::raw("  "), width));
    }
    // A command that looks like a diff is not one.
    let edit = matches!(ask.request.subject, About::Edit { .. });
    let bar = Span::styled("│ ", if ask.risk == RiskView::Danger { theme.bad } else { theme.accent });
    if !ask.questions.is_empty() && !is_truncated(&ask.questions) {
        // For a form, the questions are the content.
        let message = sanitize::text(&ask.message);
        let repeats = |question: &Question| question.text.trim() == message.trim();
        if !message.trim().is_empty() && !ask.questions.iter().any(repeats) {
            for line in message.trim_end().split('\n') {
                let style = theme.text.add_modifier(Modifier::BOLD);
                lines.extend(wrap(&[Span::styled(line.to_owned(), style)], &bar, &bar, width));
            }
        }
        return lines;
    }
    for line in ask.display.trim_end_matches('\n').split('\n') {
        let style = match line.as_bytes().first() {
            Some(b'+') if edit => theme.added.0,
            Some(b'-') if edit => theme.removed.0,
            Some(b' ' | b'@' | b'\\') if edit => theme.text,
            _ => theme.text.add_modifier(Modifier::BOLD),
        };
        lines.extend(wrap(&[Span::styled(line.to_owned(), style)], &bar, &bar, width));
        if lines.len() >= LINES_MAX {
            lines.push(Line::from(Span::styled("too long to be shown here: answer it in another client", theme.bad)));
            return lines;
        }
    }
    if short {
        lines.extend(why_risky(ask, width, theme));
    }
    let message = sanitize::text(&ask.message);
    if !message.trim().is_empty() && !ask.display.contains(message.trim()) {
        lines.push(Line::from(Span::styled("the agent says:", theme.dim)));
        let bar = Span::styled("┆ ", theme.dim);
        for line in message.trim_end().split('\n') {
            lines.extend(wrap(&[Span::styled(line.to_owned(), theme.dim)], &bar, &bar, width));
        }
    }
    lines
}

/// The UI's own lines of a card: heading, origin, options, hint.
pub(crate) struct CardText {
    pub(crate) head: Vec<Span<'static>>,
    pub(crate) from: String,
    pub(crate) options: Vec<Line<'static>>,
    pub(crate) hint: Vec<Span<'static>>,
}

/// A description of the agent's request, for the heading.
fn request_verb(ask: &RequestView) -> &'static str {
    match &ask.request.subject {
        _ if ask.action(AnswerRole::Send).is_some() => "asks",
        About::Command { .. } => "wants to run",
        About::Edit { .. } => "wants to edit",
        About::Fetch { .. } => "wants to fetch",
        About::Tool { .. } => "wants to use a tool",
        About::Plan => "asks to follow its plan",
        About::Question { .. } | About::Unreadable => "asks",
    }
}

/// Builds the UI's own lines of a card.
pub(crate) fn card_text(
    card: &Card,
    ask: &RequestView,
    outcome: Option<&RequestResult>,
    from: &str,
    (theme, width, now): (&Theme, usize, i64),
) -> CardText {
    let mut head = match outcome {
        Some(outcome) => {
            let (mark, style) = match outcome.allowed() {
                Some(true) => ("✔", theme.ok),
                Some(false) => ("✘", theme.warn),
                None => ("–", theme.dim),
            };
            vec![Span::styled(format!(" {mark} {} ", outcome.text(now)), style.add_modifier(Modifier::BOLD))]
        }
        None => vec![
            Span::styled(format!(" {} {} ", ask.runtime, request_verb(ask)), theme.accent),
            Span::styled(format!("· {} ", span(now - ask.opened)), theme.dim),
        ],
    };
    if let (Some(at), None) = (ask.expires, outcome) {
        head.push(Span::styled(format!("· expires in {} ", span(at - now)), theme.warn));
    }
    let armed = card.block_reason(now).is_none();
    let all = choices_of(ask, width);
    let options = flow(&all, width).into_iter().map(|line| {
        let mut spans = Vec::new();
        for choice in line.into_iter().map(|n| &all[n]) {
            let on = outcome.is_none()
                && choice.available
                && matches!(card.mode, CardMode::Choose)
                && (armed || !choice.allows && !card.sent && now - card.shown_at >= ARM_DELAY);
            let style = match (on, choice.allows) {
                (false, _) => theme.dim,
                (true, true) => theme.ok,
                (true, false) => theme.warn,
            };
            let key_style =
                style.add_modifier(if on { Modifier::BOLD | Modifier::REVERSED } else { Modifier::empty() });
            spans.push(Span::styled(format!(" {} ", choice.key), key_style));
            spans.push(Span::styled(format!(" {} ", choice.verb), if on { theme.text } else { theme.dim }));
            spans.push(Span::styled(choice.label.clone(), theme.dim));
        }
        Line::from(spans)
    });
    let options = options.collect();
    let hint = hint(card, ask, outcome, (theme, width, now));
    CardText { head, from: from.to_owned(), options, hint }
}

/// The last line of a card: the effect of the keys, or the reason why they have none yet.
fn hint(
    card: &Card,
    ask: &RequestView,
    outcome: Option<&RequestResult>,
    (theme, width, now): (&Theme, usize, i64),
) -> Vec<Span<'static>> {
    if !card.problem.is_empty() {
        return vec![Span::styled(card.problem.clone(), theme.bad)];
    }
    let mut hint = vec![];
    // Text that has to be read is not cut on a narrow terminal.
    let either = |long: &'static str, short: &'static str| if width < HINT_WIDTH { short } else { long };
    let blocked = card.block_reason(now).map(|why| match why {
        CHANGED => either(CHANGED, "it changed: read it again, then c"),
        CHANGED_TYPING => either(CHANGED_TYPING, "it changed: read it, then Ctrl-R"),
        PARTIAL => either(PARTIAL, "only its beginning is loaded"),
        why => why,
    });
    let add = |hint: &mut Vec<Span<'static>>, text: &str| hint.push(Span::styled(text.to_owned(), theme.dim));
    let refused = ask.actions.iter().find_map(|action| action.unavailable);
    match (&card.mode, outcome) {
        (_, Some(_)) => add(&mut hint, "Esc closes this"),
        (CardMode::Choose, None) if ask.request.observe_only => {
            let notice = "it can only be viewed here: answer it where the agent runs";
            add(&mut hint, either(notice, "answer it where the agent runs"));
        }
        (CardMode::Choose, None) => match blocked {
            Some(why) => hint.push(Span::styled(why.to_owned(), theme.warn)),
            None => match (refused, ask.risk) {
                (Some(why), _) => add(&mut hint, why.text()),
                (None, RiskView::Danger) => {
                    let notice = "allowing it requires a second confirmation";
                    add(&mut hint, either(notice, "allowing it asks a second time"));
                }
                (None, RiskView::Low | RiskView::Elevated) if ask.has_key('A') => {
                    let notice = "A: the agent will not ask about similar things";
                    add(&mut hint, either(notice, "A: no more questions of this kind"));
                }
                (None, RiskView::Low | RiskView::Elevated) => {}
            },
        },
        (CardMode::Menu { .. }, None) => {
            add(&mut hint, either("↑↓ choose · Enter gives this answer · Esc back", "Enter gives it · Esc back"))
        }
        (CardMode::ConfirmRule { action, .. }, None) => {
            let effect = match ask.actions.get(*action).map(|action| action.role.rule().sense) {
                Some(Sense::Allow) => either(
                    "the agent will not ask about similar things: A again allows always",
                    "for similar things too: A again",
                ),
                Some(Sense::Deny | Sense::Defer) | None => either(
                    "this also refuses similar things later: A again denies always",
                    "denies later ones too: A again",
                ),
            };
            hint.push(Span::styled(effect, theme.warn));
            add(&mut hint, " · Esc back");
        }
        (CardMode::Reason(_), None) => {
            add(&mut hint, either("reason for the agent · Enter denies · Esc back", "Enter denies · Esc back"));
        }
        (CardMode::TypeYes { typed, .. }, None) => {
            let notice = "this is dangerous. Type yes and Enter to allow it: ";
            hint.push(Span::styled(either(notice, "dangerous: type yes, Enter: "), theme.bad));
            hint.push(Span::styled(format!("{typed}▏"), theme.text));
            add(&mut hint, " · Esc back");
        }
        (CardMode::Edit(_), None) => {
            let label = ask.editable.as_ref().map_or("it", |(label, _)| label.as_str());
            add(&mut hint, &format!("Enter allows your version of the {label} · Esc back"));
        }
        (CardMode::Text(_), None) => match blocked {
            Some(why) => hint.push(Span::styled(why.to_owned(), theme.warn)),
            None => add(&mut hint, "Enter sends · Ctrl-N skips"),
        },
        (CardMode::Pick { .. }, None) => match blocked {
            Some(why) => hint.push(Span::styled(why.to_owned(), theme.warn)),
            None if ask.request.multi => add(&mut hint, "Space picks · a sends · d skips"),
            None => add(&mut hint, "a sends what is chosen · d skips"),
        },
        (CardMode::Form(form), None) => match blocked {
            // An unfinished answer has the hint of its mode.
            Some(why) if card.read || card.changed || card.sent => {
                hint.push(Span::styled(why.to_owned(), theme.warn));
            }
            _ => add(&mut hint, form.hint(&ask.questions)),
        },
    }
    hint
}
