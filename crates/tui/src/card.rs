//! The card of a request: the question in the gateway's own rendering, and the keys that answer it. One file: what may be answered depends
//! on what was on the screen. Pure.
//!
//! No key answers before the card was shown for [`ARM_DELAY`], and nothing is allowed before its last line was on the screen. A dangerous
//! request needs the typed word `approval`. An agent's text stands behind a bar and never in a line of the UI's own.

use std::collections::BTreeSet;
use std::ops::Range;

use plexus_protocol::{ABOUT_MAX, Question};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui_textarea::TextArea;
use serde_json::{Value, json};

use super::form::{Form, FormStep};
use super::input::{self, Key};
use super::markdown::wrap;
use super::sanitize;
use super::theme::Theme;
use super::view_model::{RequestResult, RequestView, RiskView, ago, span};

/// How long a card is shown before a key answers it, in milliseconds: a key meant for something else has no effect.
pub(crate) const ARM_DELAY: i64 = 400;
/// How long an answered card stays in its place, in milliseconds.
pub(crate) const LINGER_TIME: i64 = 6_000;
/// Lines of a card beside its content and options: origin, hint, frame, an empty line.
const FRAME: usize = 5;
/// The same for a form, whose options are in its content.
const FORM_FRAME: usize = 4;
/// A request of at most this many lines is shown before the reasons for its risk.
const SHORT_LINES: usize = 8;
/// Longest label of an option, in columns.
const LABEL_MAX: usize = 50;
/// With less room for the content than this, a card has fewer lines of its own.
const ROWS_MIN: usize = 4;
/// Most lines of content that are laid out; a longer request cannot be allowed here.
const LINES_MAX: usize = 40_000;
/// Below this many columns, hints are short.
const HINT_WIDTH: usize = 56;
/// Shown while only a part of a request is here.
const PARTIAL: &str = "only the beginning is loaded: you can only deny it";
/// Shown when a request changed on the screen.
const CHANGED: &str = "this request changed while it was open: read it again, then press c";
const CHANGED_TYPING: &str = "this request changed while it was open: read it again, then press Ctrl-R";

/// The state of answering.
#[derive(Clone, Debug)]
pub(crate) enum CardMode {
    /// Reading, and choosing an option by its key.
    Choose,
    /// Typing the reason of a denial.
    Reason(TextArea<'static>),
    /// Typing `approval` to send this answer; Esc returns to the mode before.
    Yes { typed: String, body: Value, back: Box<CardMode> },
    /// Editing the action before it is allowed.
    Edit(TextArea<'static>),
    /// Typing the text that was asked for.
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
    /// When it was first shown.
    pub(crate) shown: i64,
    pub(crate) scroll: usize,
    /// Whether the current place of the form has to be scrolled into view.
    follow: bool,
    /// Where the current place of the form is, if it is not on the screen.
    off_screen: Option<OffScreen>,
    /// Whether its last line was on the screen.
    pub(crate) read: bool,
    /// Whether the request changed on the screen and the user has not confirmed to have read it again.
    pub(crate) changed: bool,
    /// Whether the whole request is being fetched.
    pub(crate) fetching: bool,
    pub(crate) mode: CardMode,
    pub(crate) remember: bool,
    /// Whether the answer is being sent.
    pub(crate) sent: bool,
    pub(crate) problem: String,
    /// When an answer was first seen here.
    pub(crate) closed_at: Option<i64>,
}

/// Where an off-screen place is.
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
    Taken,
    /// Send this answer.
    Answer(Value),
    /// Remove the card.
    Close,
}

/// A card laid out.
pub(crate) struct CardLayout {
    pub(crate) content: Vec<Line<'static>>,
    /// Content lines on the screen.
    pub(crate) rows: usize,
    pub(crate) height: usize,
    /// Whether the lines that say what is also elsewhere on the screen are left out, for lack of room.
    pub(crate) compact: bool,
    /// The lines of the current question of a form, and of the current place in it.
    focus: Option<(Range<usize>, Range<usize>)>,
}

impl Card {
    pub(crate) fn new(ask: &RequestView, now: i64) -> Self {
        let mode = match ask.kind.as_str() {
            _ if !ask.questions.is_empty() => CardMode::Form(Form::new(&ask.questions)),
            "prompt" if !ask.observe => {
                let mut area = input::area(&ask.default);
                if ask.secret {
                    area.set_mask_char('•');
                }
                CardMode::Text(area)
            }
            "pick" if !ask.observe => CardMode::Pick { at: 0, picked: BTreeSet::new() },
            _ => CardMode::Choose,
        };
        Self {
            id: ask.id.clone(),
            shown: now,
            scroll: 0,
            follow: false,
            off_screen: None,
            read: false,
            changed: false,
            fetching: false,
            mode,
            remember: false,
            sent: false,
            problem: String::new(),
            closed_at: None,
        }
    }

    /// Whether text is being typed into it.
    pub(crate) fn is_typing(&self, ask: &RequestView) -> bool {
        match &self.mode {
            CardMode::Choose | CardMode::Pick { .. } => false,
            CardMode::Form(form) => form.is_typing(&ask.questions),
            CardMode::Reason(_) | CardMode::Yes { .. } | CardMode::Edit(_) | CardMode::Text(_) => true,
        }
    }

    /// Whether it is a form, which takes all the room there is.
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
            CardMode::Yes { back, .. } if matches!(**back, CardMode::Form(_)) => Some(back),
            mode @ CardMode::Form(_) => Some(mode),
            _ => None,
        }
    }

    /// Lays the card out in at most `most` lines.
    pub(crate) fn shape(&self, ask: &RequestView, width: u16, most: usize, theme: &Theme) -> CardLayout {
        let inner = usize::from(width).saturating_sub(4);
        let mut content = content(ask, inner, theme);
        let form = match &self.mode {
            CardMode::Form(form) => Some(form),
            CardMode::Yes { back, .. } => match &**back {
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
            focus = Some((form_layout.question, form_layout.place));
        }
        let below = match &self.mode {
            CardMode::Reason(area) | CardMode::Edit(area) | CardMode::Text(area) => {
                input::rows(area, usize::from(width).saturating_sub(7)).clamp(1, 6) + 1
            }
            CardMode::Pick { .. } => ask.items.len().clamp(1, 8),
            _ => 0,
        };
        let (mut frame, spare) = match form {
            Some(_) => (FORM_FRAME, 1),
            None => (FRAME + flow(&choices_of(self, ask, inner), inner).len().max(1), 2),
        };
        let compact = most.saturating_sub(frame + below) < content.len().min(ROWS_MIN);
        if compact {
            frame -= spare;
        }
        let rows = content.len().min(most.saturating_sub(frame + below).max(1));
        CardLayout { rows, height: (rows + frame + below).min(most), compact, content, focus }
    }

    /// Records that the card was drawn with this layout.
    pub(crate) fn mark_shown(&mut self, shape: &CardLayout) {
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

    /// Why it cannot be allowed yet.
    pub(crate) fn block_reason(&self, now: i64) -> Option<&'static str> {
        if self.sent {
            Some("sending …")
        } else if now - self.shown < ARM_DELAY {
            Some("…")
        } else if self.fetching {
            Some(PARTIAL)
        } else if self.changed {
            // While text is typed, letters go into the text.
            Some(match self.mode {
                CardMode::Choose | CardMode::Pick { .. } => CHANGED,
                _ => CHANGED_TYPING,
            })
        } else if !self.read {
            Some("read to the end to allow: PgDn")
        } else {
            None
        }
    }

    fn answer(&self, ask: &RequestView, mut body: Value) -> Value {
        if !ask.digest.is_empty() {
            body["digest"] = ask.digest.as_str().into();
        }
        if self.remember {
            body["remember"] = true.into();
        }
        body
    }

    /// Allows it if possible; a dangerous request needs a second confirmation.
    fn allow(&mut self, ask: &RequestView, body: Value, now: i64) -> CardOutcome {
        if self.block_reason(now).is_some() {
            return CardOutcome::Taken;
        }
        let body = self.answer(ask, body);
        if ask.risk == RiskView::Danger {
            let back = Box::new(std::mem::replace(&mut self.mode, CardMode::Choose));
            self.mode = CardMode::Yes { typed: String::new(), body, back };
            return CardOutcome::Taken;
        }
        CardOutcome::Answer(body)
    }

    /// Denies it, once the card is armed.
    fn deny(&self, ask: &RequestView, body: Value, now: i64) -> CardOutcome {
        if self.sent || now - self.shown < ARM_DELAY {
            CardOutcome::Taken
        } else {
            CardOutcome::Answer(self.answer(ask, body))
        }
    }

    /// The answer that denies this request.
    pub(crate) fn denial(ask: &RequestView) -> Value {
        match ask.kind.as_str() {
            "prompt" if !ask.questions.is_empty() => json!({ "answers": {} }),
            "prompt" => json!({ "value": null }),
            "pick" => json!({ "ids": [] }),
            _ => match ask.option("reject_once").or_else(|| ask.option("reject_always")) {
                Some(option) => json!({ "option_id": option.id }),
                None => json!({ "ok": false }),
            },
        }
    }

    fn approval(ask: &RequestView) -> Value {
        match ask.option("allow_once") {
            Some(option) => json!({ "option_id": option.id }),
            None => json!({ "ok": true }),
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
                // A key that was meant for the question does nothing else.
                "y" | "n" | "a" | "d" | "A" | "D" | "N" | "r" | "e" | "m" => CardOutcome::Taken,
                _ => CardOutcome::Nothing,
            };
        }
        match key.name() {
            // The user has read the changed request.
            "c" | "C-r" if self.changed && (key.name() == "C-r" || !self.is_typing(ask)) => {
                if self.read && !self.sent && now - self.shown >= ARM_DELAY {
                    self.changed = false;
                }
            }
            "PageDown" => self.scroll += page.max(2) - 1,
            "PageUp" => self.scroll = self.scroll.saturating_sub(page.max(2) - 1),
            _ => return self.mode_key(key, ask, now),
        }
        CardOutcome::Taken
    }

    fn mode_key(&mut self, key: &Key, ask: &RequestView, now: i64) -> CardOutcome {
        // A mode that is not put back ends here.
        match std::mem::replace(&mut self.mode, CardMode::Choose) {
            CardMode::Choose => self.choose(key, ask, now),
            CardMode::Reason(mut area) => match key.name() {
                "Esc" => CardOutcome::Taken,
                "Enter" => {
                    let mut body = Self::denial(ask);
                    let why = area.lines().join("\n");
                    if !why.trim().is_empty() {
                        body["reason"] = why.trim().into();
                    }
                    self.deny(ask, body, now)
                }
                _ => {
                    input::edit(&mut area, key);
                    self.mode = CardMode::Reason(area);
                    CardOutcome::Taken
                }
            },
            CardMode::Yes { mut typed, body, back } => {
                match key.name() {
                    "Esc" => {
                        self.mode = *back;
                        return CardOutcome::Taken;
                    }
                    "Enter" if typed == "yes" => {
                        self.mode = *back;
                        return CardOutcome::Answer(body);
                    }
                    "Enter" => typed.clear(),
                    "Backspace" => drop(typed.pop()),
                    name if name.chars().count() == 1 && typed.len() < 8 => typed.push_str(name),
                    _ => {}
                }
                self.mode = CardMode::Yes { typed, body, back };
                CardOutcome::Taken
            }
            CardMode::Edit(mut area) => match key.name() {
                "Esc" => CardOutcome::Taken,
                "Enter" => {
                    let mut body = Self::approval(ask);
                    body["edited"] = area.lines().join("\n").into();
                    self.mode = CardMode::Edit(area);
                    self.allow(ask, body, now)
                }
                _ => {
                    input::edit(&mut area, key);
                    self.mode = CardMode::Edit(area);
                    CardOutcome::Taken
                }
            },
            CardMode::Text(mut area) => {
                let did = match key.name() {
                    "Esc" | "Tab" | "S-Tab" => CardOutcome::Nothing,
                    // In a form these keys go to another question.
                    "Up" | "Down" if area.lines().len() == 1 => CardOutcome::Nothing,
                    "C-n" => self.deny(ask, Self::denial(ask), now),
                    "Enter" => {
                        let body = json!({ "value": area.lines().join("\n") });
                        self.mode = CardMode::Text(area);
                        return self.allow(ask, body, now);
                    }
                    _ => {
                        input::edit(&mut area, key);
                        CardOutcome::Taken
                    }
                };
                self.mode = CardMode::Text(area);
                did
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
        let did = match key.name() {
            "Down" | "j" if at < last => {
                at += 1;
                CardOutcome::Taken
            }
            "Up" | "k" if at > 0 => {
                at -= 1;
                CardOutcome::Taken
            }
            " " if ask.multi => {
                if !picked.remove(&at) {
                    picked.insert(at);
                }
                CardOutcome::Taken
            }
            "Enter" | "a" => {
                let chosen = if ask.multi { picked.clone() } else { BTreeSet::from([at]) };
                let ids: Vec<&str> =
                    chosen.iter().filter_map(|n| ask.items.get(*n)).map(|item| item.id.as_str()).collect();
                self.mode = CardMode::Pick { at, picked };
                return if ids.is_empty() { CardOutcome::Taken } else { self.allow(ask, json!({ "ids": ids }), now) };
            }
            "n" | "d" => self.deny(ask, Self::denial(ask), now),
            digit => match digit.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).filter(|n| *n <= last) {
                Some(item) => {
                    at = item;
                    if ask.multi && !picked.remove(&item) {
                        picked.insert(item);
                    }
                    CardOutcome::Taken
                }
                None => CardOutcome::Nothing,
            },
        };
        self.mode = CardMode::Pick { at, picked };
        did
    }

    /// Handles a key in a form.
    fn form_key(&mut self, mut form: Form, key: &Key, ask: &RequestView, now: i64) -> CardOutcome {
        // An off-screen place is scrolled into view before anything is chosen there.
        match (key.name(), self.off_screen) {
            ("Down", Some(OffScreen::Below)) => {
                self.scroll += 1;
                self.mode = CardMode::Form(form);
                return CardOutcome::Taken;
            }
            ("Up", Some(OffScreen::Above)) => {
                self.scroll = self.scroll.saturating_sub(1);
                self.mode = CardMode::Form(form);
                return CardOutcome::Taken;
            }
            _ => {}
        }
        let step = form.key(key, &ask.questions, self.off_screen.is_some());
        self.mode = CardMode::Form(form);
        match step {
            FormStep::Nothing if key.name() == "Up" && self.scroll > 0 => {
                self.scroll -= 1;
                CardOutcome::Taken
            }
            FormStep::Nothing => CardOutcome::Nothing,
            FormStep::Taken => {
                self.follow = true;
                self.problem.clear();
                CardOutcome::Taken
            }
            FormStep::Decline => self.deny(ask, Self::denial(ask), now),
            FormStep::Wrong(why) => {
                self.follow = true;
                self.problem = why;
                CardOutcome::Taken
            }
            FormStep::Send(answers) => self.allow(ask, json!({ "answers": answers }), now),
        }
    }

    fn choose(&mut self, key: &Key, ask: &RequestView, now: i64) -> CardOutcome {
        if ask.observe {
            return CardOutcome::Nothing;
        }
        // The same keys as on the page.
        let name = match key.name() {
            "a" => "y",
            "d" => "n",
            "D" => "r",
            other => other,
        };
        if let Some((option, _)) = keys(ask).iter().find(|(_, with)| with == name) {
            let option = &ask.options[*option];
            let body = json!({ "option_id": option.id });
            return if option.kind.starts_with("reject") {
                self.deny(ask, body, now)
            } else {
                self.allow(ask, body, now)
            };
        }
        match name {
            "y" if ask.options.is_empty() => self.allow(ask, json!({ "ok": true }), now),
            "n" if ask.options.is_empty() => self.deny(ask, json!({ "ok": false }), now),
            "r" if ask.reason => {
                self.mode = CardMode::Reason(input::area(""));
                CardOutcome::Taken
            }
            "e" => match &ask.editable {
                Some((_, value)) => {
                    self.mode = CardMode::Edit(input::area(value));
                    CardOutcome::Taken
                }
                None => CardOutcome::Nothing,
            },
            "m" if ask.remember && ask.option("allow_always").is_none() => {
                self.remember = !self.remember;
                CardOutcome::Taken
            }
            // Keys of other requests do nothing here.
            "y" | "n" | "A" => CardOutcome::Taken,
            _ => CardOutcome::Nothing,
        }
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

/// The key of each option.
pub(crate) fn keys(ask: &RequestView) -> Vec<(usize, String)> {
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    let mut number = 0;
    ask.options
        .iter()
        .enumerate()
        .map(|(n, option)| {
            let letter = match option.kind.as_str() {
                "allow_once" => "y",
                "allow_always" => "A",
                "reject_once" => "n",
                "reject_always" => "N",
                _ => "",
            };
            if !letter.is_empty() && taken.insert(letter) {
                return (n, letter.to_owned());
            }
            number += 1;
            (n, number.to_string())
        })
        .filter(|(_, key)| key.len() == 1)
        .collect()
}

/// The choices: key, label, and whether it allows.
fn choices_of(card: &Card, ask: &RequestView, width: usize) -> Vec<(String, String, bool)> {
    if ask.observe || matches!(ask.kind.as_str(), "prompt" | "pick") {
        return Vec::new();
    }
    let option = |(n, key): (usize, String)| {
        let offered = &ask.options[n];
        (
            key,
            sanitize::cut(&offered.label, LABEL_MAX.min(width.saturating_sub(5))),
            !offered.kind.starts_with("reject"),
        )
    };
    let mut all: Vec<(String, String, bool)> = keys(ask).into_iter().map(option).collect();
    let mut more = |key: &str, label: &str, approval: bool| all.push((key.to_owned(), label.to_owned(), approval));
    if ask.options.is_empty() {
        more("y", "Yes", true);
        more("n", "No", false);
    }
    if ask.editable.is_some() {
        more("e", "Edit", true);
    }
    if ask.reason {
        more("r", "Deny with a reason", false);
    }
    if ask.remember && ask.option("allow_always").is_none() {
        more("m", if card.remember { "Remember: yes" } else { "Remember: no" }, false);
    }
    all
}

/// Lays choices out in lines: the indexes in each line.
fn flow(all: &[(String, String, bool)], width: usize) -> Vec<Vec<usize>> {
    let mut lines: Vec<Vec<usize>> = Vec::new();
    let mut left = 0;
    for (n, (key, label, _)) in all.iter().enumerate() {
        let wide = sanitize::width(key) + sanitize::width(label) + 5;
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
pub(crate) struct OptionPlace {
    pub(crate) line: usize,
    pub(crate) columns: Range<usize>,
    pub(crate) key: String,
}

/// Where the buttons of a card are that can be pressed: none while text is typed.
pub(crate) fn option_places(card: &Card, ask: &RequestView, width: usize) -> (usize, Vec<OptionPlace>) {
    let all = choices_of(card, ask, width);
    let lines = flow(&all, width);
    let mut places = Vec::new();
    if matches!(card.mode, CardMode::Choose) {
        for (line, options) in lines.iter().enumerate() {
            let mut from = 0;
            for (key, label, _) in options.iter().map(|n| &all[*n]) {
                let to = from + sanitize::width(key) + sanitize::width(label) + 4;
                places.push(OptionPlace { line, columns: from..to, key: key.clone() });
                from = to;
            }
        }
    }
    (lines.len(), places)
}

/// Whether the gateway may have truncated a text of the questions: then only `display` has all of it.
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
    if !ask.reasons.is_empty() {
        let style = if ask.risk == RiskView::Danger { theme.bad } else { theme.warn };
        let spans = [Span::styled(format!("{}: {}", ask.risk.word(), ask.reasons.join("; ")), style)];
        lines.extend(wrap(&spans, &Span::raw(""), &Span::raw("  "), width));
    }
    lines
}

/// The content of the request, behind a bar.
fn content(ask: &RequestView, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    // What is asked comes first, unless its end is far below.
    let short = ask.questions.is_empty() && ask.display.lines().nth(SHORT_LINES).is_none();
    if !short {
        lines.extend(why_risky(ask, width, theme));
    }
    if ask.subject == "unreadable" {
        let text = "Plexus cannot tell what this would do; it is shown as the agent sent it";
        lines.extend(wrap(&[Span::styled(text, theme.bad)], &Span::styled("⚠ ", theme.bad), &Span::raw("  "), width));
    }
    // A command that looks like a diff is not one.
    let edit = matches!(ask.subject.as_str(), "edit" | "");
    let bar = Span::styled("│ ", if ask.risk == RiskView::Danger { theme.bad } else { theme.accent });
    if !ask.questions.is_empty() && !is_truncated(&ask.questions) {
        // For a form, the questions are the content.
        let message = sanitize::text(&ask.message);
        let asked = |question: &Question| question.text.trim() == message.trim();
        if !message.trim().is_empty() && !ask.questions.iter().any(asked) {
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
            Some(b' ' | b'@' | b'\\') if ask.subject == "edit" => theme.text,
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

/// Makes those lines.
pub(crate) fn card_text(
    card: &Card,
    ask: &RequestView,
    outcome: Option<&RequestResult>,
    from: &str,
    (theme, width, now): (&Theme, usize, i64),
) -> CardText {
    let style = match ask.risk {
        RiskView::Danger => theme.bad,
        RiskView::Elevated => theme.warn,
        RiskView::Low => theme.ok,
    };
    let mut head = match outcome {
        Some(outcome) => {
            let (mark, style) = match outcome.allowed() {
                Some(true) => ("✔", theme.ok),
                Some(false) => ("✘", theme.warn),
                None => ("–", theme.dim),
            };
            vec![Span::styled(format!(" {mark} {} ", outcome.words(now)), style.add_modifier(Modifier::BOLD))]
        }
        None => vec![
            Span::styled(format!(" {} asks ", ask.runtime), theme.accent),
            Span::styled(if ask.rated { format!("· {} ", ask.risk.word()) } else { String::new() }, style),
            Span::styled(format!("· {} ", ago(now, ask.opened)), theme.dim),
        ],
    };
    if let (Some(at), None) = (ask.expires, outcome) {
        head.push(Span::styled(format!("· expires in {} ", span(at - now)), theme.warn));
    }
    let armed = card.block_reason(now).is_none();
    let all = choices_of(card, ask, width);
    let options = flow(&all, width).into_iter().map(|line| {
        let mut spans = Vec::new();
        for (key, label, approval) in line.into_iter().map(|n| &all[n]) {
            let on = outcome.is_none()
                && matches!(card.mode, CardMode::Choose)
                && (armed || !approval && !card.sent && now - card.shown >= ARM_DELAY);
            let style = match (on, approval) {
                (false, _) => theme.dim,
                (true, true) => theme.ok,
                (true, false) => theme.warn,
            };
            let key_style =
                style.add_modifier(if on { Modifier::BOLD | Modifier::REVERSED } else { Modifier::empty() });
            spans.push(Span::styled(format!(" {key} "), key_style));
            spans.push(Span::styled(format!(" {label} "), if on { theme.text } else { theme.dim }));
        }
        Line::from(spans)
    });
    let options = options.collect();
    let hint = hint(card, ask, outcome, (theme, width, now));
    CardText { head, from: from.to_owned(), options, hint }
}

/// The last line of a card: what the keys do now, or why not yet.
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
    // What has to be read stays whole on a narrow terminal.
    let either = |long: &'static str, short: &'static str| if width < HINT_WIDTH { short } else { long };
    let blocked = card.block_reason(now).map(|why| match why {
        CHANGED => either(CHANGED, "it changed: read it again, then c"),
        CHANGED_TYPING => either(CHANGED_TYPING, "it changed: read it, then Ctrl-R"),
        PARTIAL => either(PARTIAL, "only its beginning is loaded"),
        why => why,
    });
    let say = |hint: &mut Vec<Span<'static>>, text: &str| hint.push(Span::styled(text.to_owned(), theme.dim));
    match (&card.mode, outcome) {
        (_, Some(_)) => say(&mut hint, "Esc closes this"),
        (CardMode::Choose, None) if ask.observe => {
            let words = "it can only be viewed here: answer it where the agent runs";
            say(&mut hint, either(words, "answer it where the agent runs"));
        }
        (CardMode::Choose, None) => match blocked {
            Some(why) => hint.push(Span::styled(why.to_owned(), theme.warn)),
            None if ask.risk == RiskView::Danger => {
                let words = "allowing it requires a second confirmation";
                say(&mut hint, either(words, "allowing it asks a second time"));
            }
            None => {
                if ask.option("allow_always").is_some() {
                    let words = "A: the agent will not ask about similar things";
                    say(&mut hint, either(words, "A: no more questions of this kind"));
                }
            }
        },
        (CardMode::Reason(_), None) => {
            say(&mut hint, either("reason for the agent · Enter denies · Esc back", "Enter denies · Esc back"));
        }
        (CardMode::Yes { typed, .. }, None) => {
            let words = "this is dangerous. Type yes and Enter to allow it: ";
            hint.push(Span::styled(either(words, "dangerous: type yes, Enter: "), theme.bad));
            hint.push(Span::styled(format!("{typed}▏"), theme.text));
            say(&mut hint, " · Esc back");
        }
        (CardMode::Edit(_), None) => {
            let what = ask.editable.as_ref().map_or("it", |(label, _)| label.as_str());
            say(&mut hint, &format!("Enter allows your version of the {what} · Esc back"));
        }
        (CardMode::Text(_), None) => match blocked {
            Some(why) => hint.push(Span::styled(why.to_owned(), theme.warn)),
            None => say(&mut hint, "Enter sends · Ctrl-N declines"),
        },
        (CardMode::Pick { .. }, None) => match blocked {
            Some(why) => hint.push(Span::styled(why.to_owned(), theme.warn)),
            None if ask.multi => say(&mut hint, "Space picks · Enter sends · n declines"),
            None => say(&mut hint, "Enter picks · n declines"),
        },
        (CardMode::Form(form), None) => match blocked {
            // An unfinished answer has the hint of its mode.
            Some(why) if card.read || card.changed || card.sent => {
                hint.push(Span::styled(why.to_owned(), theme.warn));
            }
            _ => say(&mut hint, form.hint(&ask.questions)),
        },
    }
    hint
}
