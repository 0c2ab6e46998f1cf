//! Several questions in one card: the chosen options and typed text, the current place, and the answer. Pure.
//!
//! An agent's lines stand behind a bar or a mark, as in every card. Answers are checked by [`Question::misfit`], as in the gateway.

use std::collections::BTreeSet;
use std::ops::Range;

use plexus_protocol::{Answers, Misfit, Number, Question};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui_textarea::TextArea;

use super::input::{self, Key};
use super::markdown::wrap;
use super::sanitize;
use super::theme::Theme;

/// Maximum length of a displayed pattern, in columns.
const PATTERN_SHOWN: usize = 60;
/// The number of options that have a digit as key.
const KEYS: usize = 9;

/// The answer to one question so far.
#[derive(Clone, Debug)]
struct FieldAnswer {
    chosen: BTreeSet<usize>,
    text: TextArea<'static>,
    /// `true` if the text counts as an answer; beside options it is one of the choices.
    text_counts: bool,
}

impl FieldAnswer {
    fn text_counts(&self) -> Vec<String> {
        let text = self.text.lines().join("\n").trim().to_owned();
        if self.text_counts && !text.is_empty() { vec![text] } else { Vec::new() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormItem {
    /// An option of a question.
    Option(usize, usize),
    /// The field for free text.
    FreeText(usize),
    /// The button that sends the answers.
    Send,
}

impl FormItem {
    fn question(self) -> Option<usize> {
        match self {
            Self::Option(question, _) | Self::FreeText(question) => Some(question),
            Self::Send => None,
        }
    }
}

/// The effect of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum FormStep {
    /// The key does not belong to the form.
    Nothing,
    Handled,
    /// Sends these answers.
    Send(Answers),
    /// Declines to answer.
    Decline,
    /// An answer is missing or invalid; the form has moved to its question.
    Refused(String),
}

/// The answers of a card's form, and the current place.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    answers: Vec<FieldAnswer>,
    at: usize,
    /// `true` if a denial was pressed once although there are answers.
    leaving: bool,
}

/// A form laid out: its lines, and the current place in them.
pub(crate) struct FormLayout {
    pub(crate) lines: Vec<Line<'static>>,
    /// The lines of the current question.
    pub(crate) question: Range<usize>,
    /// The lines of the current place.
    pub(crate) item: Range<usize>,
}

fn items(questions: &[Question]) -> Vec<FormItem> {
    let mut all = Vec::new();
    for (n, question) in questions.iter().enumerate() {
        all.extend((0..question.options.len()).map(|option| FormItem::Option(n, option)));
        if question.free_text || question.options.is_empty() {
            all.push(FormItem::FreeText(n));
        }
    }
    all.push(FormItem::Send);
    all
}

impl Form {
    pub(crate) fn new(questions: &[Question]) -> Self {
        let answer = |question: &Question| FieldAnswer {
            chosen: BTreeSet::new(),
            text: input::area(""),
            text_counts: question.options.is_empty(),
        };
        Self { answers: questions.iter().map(answer).collect(), at: 0, leaving: false }
    }

    fn item(&self, questions: &[Question]) -> FormItem {
        items(questions).get(self.at).copied().unwrap_or(FormItem::Send)
    }

    /// Returns whether text is being typed.
    pub(crate) fn is_typing(&self, questions: &[Question]) -> bool {
        matches!(self.item(questions), FormItem::FreeText(_))
    }

    /// Pastes text; returns `true` if the current place accepts it.
    pub(crate) fn paste(&mut self, questions: &[Question], text: &str) -> bool {
        let FormItem::FreeText(n) = self.item(questions) else { return false };
        self.answers[n].text.insert_str(text);
        self.on_text_changed(questions, n);
        true
    }

    /// Applies a change of the text of a question: it is the answer unless it is empty.
    fn on_text_changed(&mut self, questions: &[Question], n: usize) {
        let answer = &mut self.answers[n];
        let empty = answer.text.lines().iter().all(|line| line.trim().is_empty());
        answer.text_counts = !empty || questions[n].options.is_empty();
        if !empty && !questions[n].multiple {
            answer.chosen.clear();
        }
    }

    fn choose(&mut self, questions: &[Question], n: usize, option: usize) {
        let (question, answer) = (&questions[n], &mut self.answers[n]);
        if question.multiple {
            if !answer.chosen.remove(&option) {
                answer.chosen.insert(option);
            }
        } else {
            answer.chosen = BTreeSet::from([option]);
            answer.text_counts = false;
        }
    }

    /// Moves to the first place of the next or the previous question; the button follows the last one.
    fn go(&mut self, questions: &[Question], on: bool) {
        let all = items(questions);
        let current = self.item(questions).question();
        self.at = if on {
            let next = current.map(|n| n + 1).filter(|n| *n < questions.len());
            all.iter().position(|item| item.question() == next).unwrap_or(all.len() - 1)
        } else {
            let before = current.map_or(questions.len().saturating_sub(1), |n| n.saturating_sub(1));
            all.iter().position(|item| item.question() == Some(before)).unwrap_or(0)
        };
    }

    /// Handles a key. With `hidden`, the current place is not on the screen, so that a choice there would be blind.
    pub(crate) fn key(&mut self, key: &Key, questions: &[Question], hidden: bool) -> FormStep {
        let all = items(questions);
        let last = all.len() - 1;
        let item = self.item(questions);
        let leaving = std::mem::take(&mut self.leaving);
        match key.name() {
            "Tab" => self.go(questions, true),
            "S-Tab" => self.go(questions, false),
            "C-n" => return FormStep::Decline,
            "C-s" => return self.send(questions),
            name => match item {
                FormItem::FreeText(n) => {
                    let (row, rows) = (self.answers[n].text.cursor().0, self.answers[n].text.lines().len());
                    match name {
                        "Up" if row == 0 => return self.up(),
                        "Down" if row + 1 == rows => self.at = (self.at + 1).min(last),
                        "Enter" => self.go(questions, true),
                        "Esc" => return FormStep::Nothing,
                        _ if !input::edit(&mut self.answers[n].text, key) => return FormStep::Nothing,
                        _ => self.on_text_changed(questions, n),
                    }
                }
                _ => match (name, item) {
                    ("Up" | "k", _) => return self.up(),
                    ("Down" | "j", _) if self.at == last => return FormStep::Nothing,
                    ("Down" | "j", _) => self.at += 1,
                    ("d", _) if leaving || self.is_blank() => return FormStep::Decline,
                    ("d", _) => {
                        // These letters were meant for a text field.
                        self.leaving = true;
                        return FormStep::Refused("press again to answer none of the questions".into());
                    }
                    ("Enter" | "a", FormItem::Send) => return self.send(questions),
                    (" " | "Enter", _) if hidden => {}
                    (digit, _) if hidden && digit.len() == 1 => {}
                    (" ", FormItem::Option(n, option)) => self.choose(questions, n, option),
                    ("Enter", FormItem::Option(n, option)) => {
                        if !questions[n].multiple {
                            self.choose(questions, n, option);
                        }
                        self.go(questions, true);
                    }
                    (digit, FormItem::Option(n, _)) if digit.len() == 1 => {
                        let option = digit.parse::<usize>().ok().and_then(|digit| digit.checked_sub(1));
                        let Some(option) = option else { return FormStep::Nothing };
                        if option < questions[n].options.len() {
                            self.choose(questions, n, option);
                            self.at = all.iter().position(|one| *one == FormItem::Option(n, option)).unwrap_or(self.at);
                            if !questions[n].multiple {
                                self.go(questions, true);
                            }
                        }
                    }
                    _ => return FormStep::Nothing,
                },
            },
        }
        FormStep::Handled
    }

    /// Returns whether there is no answer yet.
    fn is_blank(&self) -> bool {
        self.answers.iter().all(|answer| answer.chosen.is_empty() && answer.text_counts().is_empty())
    }

    /// Moves up; at the first place, the key does not belong to the form.
    fn up(&mut self) -> FormStep {
        if self.at == 0 {
            return FormStep::Nothing;
        }
        self.at -= 1;
        FormStep::Handled
    }

    fn misfit_text(&self, questions: &[Question], n: usize) -> Option<String> {
        let question = &questions[n];
        let misfit = question.misfit(self.answers[n].chosen.len(), &self.answers[n].text_counts())?;
        let suffix = if question.multiple { " answers" } else { "" };
        let sort = match (question.fits.number, question.multiple) {
            (None, false) => " characters",
            _ => suffix,
        };
        Some(match misfit {
            Misfit::Missing if question.options.is_empty() => "type an answer".into(),
            Misfit::Missing => "choose an answer".into(),
            Misfit::Several => "only one answer is possible".into(),
            Misfit::NotA(Number::Integer) => "enter a whole number".into(),
            Misfit::NotA(Number::Number) => "enter a number".into(),
            Misfit::Pattern => format!(
                "a text that matches {}",
                sanitize::line(question.fits.pattern.as_deref().unwrap_or_default(), PATTERN_SHOWN)
            ),
            Misfit::Form => format!(
                "a text of the form {}",
                sanitize::line(question.fits.format.as_deref().unwrap_or_default(), PATTERN_SHOWN)
            ),
            Misfit::Bounds { least: Some(least), most: Some(most) } => format!("{least} to {most}{sort}"),
            Misfit::Bounds { least: Some(least), .. } => format!("at least {least}{sort}"),
            Misfit::Bounds { most, .. } => format!("at most {}{sort}", most.unwrap_or_default()),
        })
    }

    /// Returns the answers, or an error after moving to its question.
    fn send(&mut self, questions: &[Question]) -> FormStep {
        let mut answers = Answers::new();
        for (n, question) in questions.iter().enumerate() {
            if let Some(why) = self.misfit_text(questions, n) {
                let all = items(questions);
                self.at = all.iter().position(|item| item.question() == Some(n)).unwrap_or(0);
                return FormStep::Refused(if questions.len() > 1 { format!("question {}: {why}", n + 1) } else { why });
            }
            let answer = &self.answers[n];
            let chosen =
                answer.chosen.iter().filter_map(|at| question.options.get(*at)).map(|option| option.id.clone());
            let text: Vec<String> = chosen.chain(answer.text_counts()).collect();
            if !text.is_empty() {
                answers.insert(question.id.clone(), text);
            }
        }
        if answers.is_empty() {
            // All questions are optional and unanswered: the gateway treats this as no answer.
            return FormStep::Refused("nothing is chosen; press d to skip".into());
        }
        FormStep::Send(answers)
    }

    /// A short description of the keys at the current place.
    pub(crate) fn hint(&self, questions: &[Question]) -> &'static str {
        match self.item(questions) {
            FormItem::Option(n, _) if questions[n].multiple => "Space picks · Enter on · d skips",
            FormItem::Option(..) => "Enter or 1-9 chooses · d skips",
            FormItem::FreeText(_) => "Enter goes on · Ctrl-N skips",
            FormItem::Send => "a sends · d skips",
        }
    }

    /// Lays the form out behind `before` lines.
    pub(crate) fn layout(&self, questions: &[Question], width: usize, before: usize, theme: &Theme) -> FormLayout {
        let mut lines: Vec<Line<'static>> = Vec::new();
        let (mut question_lines, mut item_lines) = (before..before, before..before);
        let current = self.item(questions);
        let bar = Span::styled("│ ", theme.accent);
        let margin = |columns: usize| Span::raw(" ".repeat(columns));
        for (n, question) in questions.iter().enumerate() {
            let from = lines.len();
            if n > 0 {
                lines.push(Line::default());
            }
            let mut hints = Vec::new();
            if questions.len() > 1 {
                hints.push(format!("question {} of {}", n + 1, questions.len()));
            }
            match (question.options.is_empty(), question.multiple) {
                (true, _) => {}
                (false, true) => hints.push("choose any".into()),
                (false, false) => hints.push("choose one".into()),
            }
            if question.optional {
                hints.push("optional".into());
            }
            if let Some(fits) = bounds(question) {
                hints.push(fits);
            }
            if !hints.is_empty() {
                lines.extend(wrap(&[Span::styled(hints.join(" · "), theme.dim)], &margin(0), &margin(0), width));
            }
            let flat = |text: &str| sanitize::text(text).replace('\n', " ");
            let mut spans = vec![Span::styled(flat(&question.text), theme.text.add_modifier(Modifier::BOLD))];
            if let Some(header) = question.header.as_deref().filter(|header| !header.is_empty()) {
                spans.insert(0, Span::styled(format!("{}: ", flat(header)), theme.dim));
            }
            lines.extend(wrap(&spans, &bar, &bar, width));
            let answer = &self.answers[n];
            let mark = |on: bool| match (question.multiple, on) {
                (true, true) => "[x] ",
                (true, false) => "[ ] ",
                (false, true) => "(•) ",
                (false, false) => "( ) ",
            };
            let mut add_item = |at: FormItem, mut rows: Vec<Line<'static>>, lines: &mut Vec<Line<'static>>| {
                if at == current {
                    item_lines = before + lines.len()..before + lines.len() + rows.len();
                    for row in &mut rows {
                        let pad = width.saturating_sub(row.width());
                        row.spans.push(Span::raw(" ".repeat(pad)));
                        for span in &mut row.spans {
                            span.style = span.style.patch(theme.selected);
                        }
                    }
                }
                lines.extend(rows);
            };
            for (at, option) in question.options.iter().enumerate() {
                let number = if at < KEYS { format!("{} ", at + 1) } else { "  ".into() };
                let first = Span::styled(format!("{number}{}", mark(answer.chosen.contains(&at))), theme.accent);
                let label = Span::styled(sanitize::text(&option.label).replace('\n', " "), theme.text);
                let mut rows = wrap(&[label], &first, &margin(6), width);
                if let Some(more) = option.description.as_deref().filter(|more| !more.is_empty()) {
                    let more = Span::styled(sanitize::text(more).replace('\n', " "), theme.dim);
                    rows.extend(wrap(&[more], &margin(6), &margin(6), width));
                }
                add_item(FormItem::Option(n, at), rows, &mut lines);
            }
            if question.free_text || question.options.is_empty() {
                let first = match question.options.is_empty() {
                    true => Span::styled("› ", theme.accent),
                    false => Span::styled(format!("  {}other: ", mark(answer.text_counts)), theme.accent),
                };
                add_item(
                    FormItem::FreeText(n),
                    field(&answer.text, current == FormItem::FreeText(n), &first, width, theme),
                    &mut lines,
                );
            }
            if current.question() == Some(n) {
                question_lines = before + from..before + lines.len();
            }
        }
        lines.push(Line::default());
        let on = current == FormItem::Send;
        let style = if on { theme.ok.add_modifier(Modifier::BOLD | Modifier::REVERSED) } else { theme.dim };
        if on {
            item_lines = before + lines.len()..before + lines.len() + 1;
            question_lines = item_lines.clone();
        }
        let text = if questions.len() > 1 { " Send the answers " } else { " Send the answer " };
        lines.push(Line::from(Span::styled(text, style)));
        FormLayout { lines, question: question_lines, item: item_lines }
    }
}

/// The lines of a text field, with the cursor while the user types into it.
fn field(text: &TextArea<'static>, on: bool, first: &Span<'static>, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let ratatui_textarea::DataCursor(row, column) = text.cursor();
    let next = Span::raw(" ".repeat(sanitize::width(&first.content)));
    let mut rows = Vec::new();
    for (n, line) in text.lines().iter().enumerate() {
        let at = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        let mut spans = vec![Span::styled(sanitize::text(line), theme.text)];
        if on && n == row {
            spans = vec![
                Span::styled(sanitize::text(&line[..at]), theme.text),
                Span::styled("▏", theme.accent),
                Span::styled(sanitize::text(&line[at..]), theme.text),
            ];
        }
        rows.extend(wrap(&spans, if n == 0 { first } else { &next }, &next, width));
    }
    rows
}

/// A description of the bounds, if there are any.
fn bounds(question: &Question) -> Option<String> {
    let fits = &question.fits;
    let sort = match (question.multiple, fits.number) {
        (true, _) => " of them",
        (false, Some(_)) => "",
        (false, None) => " characters",
    };
    let number = match fits.number {
        Some(Number::Integer) => Some("a whole number"),
        Some(Number::Number) => Some("a number"),
        None => None,
    };
    let range = match (fits.least, fits.most) {
        (None, None) => None,
        (Some(least), None) => Some(format!("at least {least}{sort}")),
        (None, Some(most)) => Some(format!("at most {most}{sort}")),
        (Some(least), Some(most)) => Some(format!("{least} to {most}{sort}")),
    };
    match (number, range) {
        (Some(number), Some(range)) => Some(format!("{number}, {range}")),
        (Some(number), None) => Some(number.into()),
        (None, range) => range,
    }
}
