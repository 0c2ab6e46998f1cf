//! Answers to several requests at once: the keys of the selection, the confirmation, and the answers that are being sent.

use std::collections::{BTreeSet, VecDeque};

use plexus_client::calls;
use plexus_protocol::{Answer, RequestId};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::{InboxPage, risk_mark};
use crate::card::{ARM_DELAY, CardMode};
use crate::input::{self, Key};
use crate::pages::context::Context;
use crate::pages::draw::Draw;
use crate::pages::message::{AfterConfirm, CallTag, Effect};
use crate::pages::shared::{Overlay, Shared};
use crate::sanitize;
use crate::triage::{InboxRow, Sense, SeveralQuestion, headline};
use crate::view_model::SessionItem;

/// Maximum number of answers that are sent at the same time: the gateway stores each before it replies.
const IN_FLIGHT_MAX: usize = 6;

/// Answers to several requests that are being sent.
#[derive(Debug, Default)]
pub(crate) struct SeveralAnswers {
    allow: bool,
    queue: VecDeque<(String, Answer)>,
    in_flight: BTreeSet<String>,
    done: usize,
    /// The number of requests that another client answered first.
    answered_elsewhere: usize,
    /// The number of requests that could not be answered, and the last reason.
    failed: (usize, String),
}

impl InboxPage {
    /// Handles a key of the selection in the inbox; returns `true` if it was one.
    pub(super) fn triage_key(&mut self, key: &Key, shared: &mut Shared) -> bool {
        let at = self.selected();
        let selected = !self.triage.selected.is_empty();
        let picks = shared.card.focused
            && shared
                .card
                .card
                .as_ref()
                .is_some_and(|card| matches!(card.mode, CardMode::Pick { .. }) || card.is_form());
        match key.name() {
            "x" => self.triage.toggle(at, &shared.requests),
            " " if !picks => self.triage.toggle(at, &shared.requests),
            "C-a" => self.triage.select_all(&shared.requests),
            "X" if selected => self.triage.selected.clear(),
            "Esc" if selected => self.triage.selected.clear(),
            "a" if selected => self.ask_several(Sense::Allow, shared),
            "d" if selected => self.ask_several(Sense::Deny { reason: String::new() }, shared),
            "r" if selected => {
                shared.overlay = Some(Overlay::Input {
                    label: "reason of all denials",
                    area: input::area(""),
                    then: Box::new(AfterConfirm::DenySeveral),
                });
            }
            "A" | "N" | "e" | "m" if selected => {
                shared.show_notice("several are selected: a allows once, d denies, X clears the selection", false);
            }
            "a" | "d" | "A" | "r" if matches!(self.triage.rows.get(at), Some(InboxRow::Group { .. })) => {
                shared.show_notice("this is a group: x selects its requests, Enter folds it", false);
            }
            _ => return false,
        }
        true
    }

    /// Opens the question whether to answer all selected requests.
    pub(crate) fn ask_several(&self, sense: Sense, shared: &mut Shared) {
        let selection = self.triage.selection(&shared.requests);
        let plan = self.triage.plan(&selection, &sense, &shared.requests);
        let question = SeveralQuestion { sense, selection, plan, shown_at: shared.now, scroll: 0 };
        shared.overlay = Some(Overlay::Several(Box::new(question)));
    }

    /// Handles a key of that question.
    pub(crate) fn several_key(&mut self, mut question: SeveralQuestion, key: &Key, cx: &mut Context<'_>) {
        let end = several_end(cx.shared, &question);
        match key.name() {
            "y" if cx.shared.now - question.shown_at >= ARM_DELAY && !question.plan.answers.is_empty() => {
                return self.answer_several(&question, cx);
            }
            "n" | "Esc" | "q" => return,
            "Down" | "j" => question.scroll = (question.scroll + 1).min(end),
            "Up" | "k" => question.scroll = question.scroll.saturating_sub(1),
            "PageDown" | " " => question.scroll = (question.scroll + 10).min(end),
            "PageUp" => question.scroll = question.scroll.saturating_sub(10),
            _ => {}
        }
        cx.shared.overlay = Some(Overlay::Several(Box::new(question)));
    }

    /// Sends the answers, except to requests that changed since the question.
    fn answer_several(&mut self, question: &SeveralQuestion, cx: &mut Context<'_>) {
        if self.several.is_some() {
            return cx.shared.show_notice("the previous answers are still being sent", true);
        }
        let plan = self.triage.plan(&question.selection, &question.sense, &cx.shared.requests);
        let confirmed: BTreeSet<&String> = question.plan.answers.iter().map(|(id, _)| id).collect();
        let queue = plan.answers.into_iter().filter(|(id, _)| confirmed.contains(id)).collect();
        self.several =
            Some(SeveralAnswers { allow: question.sense == Sense::Allow, queue, ..SeveralAnswers::default() });
        self.send_several(cx);
    }

    /// Sends the next answers, and sums up after the last one.
    fn send_several(&mut self, cx: &mut Context<'_>) {
        let Some(mut several) = self.several.take() else { return };
        while several.in_flight.len() < IN_FLIGHT_MAX
            && let Some((id, given)) = several.queue.pop_front()
        {
            if !cx.shared.is_open(&id) {
                several.answered_elsewhere += 1;
                continue;
            }
            if let Some(card) = cx.shared.card.card.as_mut().filter(|card| card.id == id) {
                card.sent = true;
            }
            several.in_flight.insert(id.clone());
            cx.effects.push(answer(id, &given));
        }
        if !several.in_flight.is_empty() {
            self.several = Some(several);
            return;
        }
        let verb = if several.allow { "allowed" } else { "denied" };
        let mut text = format!("{verb} {}", several.done);
        if several.answered_elsewhere > 0 {
            text.push_str(&format!(" · {} answered elsewhere first", several.answered_elsewhere));
        }
        let (failed, why) = &several.failed;
        if *failed > 0 {
            text.push_str(&format!(" · {failed} not answered: {why}"));
        }
        cx.shared.show_notice(&text, *failed > 0);
    }

    /// Counts the reply to one of several answers; returns `false` if it belongs to none.
    pub(crate) fn is_triaged(
        &mut self,
        id: &str,
        good: bool,
        answered_elsewhere: bool,
        why: &str,
        cx: &mut Context<'_>,
    ) -> bool {
        let Some(several) = self.several.as_mut().filter(|several| several.in_flight.contains(id)) else {
            return false;
        };
        several.in_flight.remove(id);
        match (good, answered_elsewhere) {
            (true, _) => several.done += 1,
            (false, true) => several.answered_elsewhere += 1,
            (false, false) => several.failed = (several.failed.0 + 1, why.to_owned()),
        }
        self.send_several(cx);
        true
    }
}

/// Sends an answer.
pub(crate) fn answer(id: String, answer: &Answer) -> Effect {
    let call = calls::answer(&RequestId::trusted(id.as_str()), answer);
    Effect::keyed_call(CallTag::Answer(id), call)
}

/// The maximum number of visible lines of the question about several requests.
fn several_rows(shared: &Shared, question: &SeveralQuestion) -> u16 {
    let max = shared.size.1.saturating_sub(8).clamp(2, 20);
    u16::try_from(several_lines(question)).unwrap_or(max).clamp(1, max)
}

/// The number of all lines of that question.
fn several_lines(question: &SeveralQuestion) -> usize {
    let headings = usize::from(!question.plan.excluded.is_empty());
    question.plan.answers.len() + question.plan.excluded.len() + headings
}

/// The last line to which that question can be scrolled.
pub(crate) fn several_end(shared: &Shared, question: &SeveralQuestion) -> usize {
    several_lines(question).saturating_sub(usize::from(several_rows(shared, question)))
}

impl Draw<'_> {
    /// Draws the question whether to answer several requests: the answered ones, and the excluded ones with the reasons.
    pub(crate) fn several(&mut self, question: &SeveralQuestion) {
        let shared = self.shared;
        let theme = &shared.theme;
        let (answers, excluded) = (&question.plan.answers, &question.plan.excluded);
        let allow = question.sense == Sense::Allow;
        let title = match (allow, answers.len()) {
            (_, 0) => "None of them can be answered together".to_owned(),
            (true, 1) => "Allow 1 request once?".to_owned(),
            (true, count) => format!("Allow {count} requests once?"),
            (false, 1) => "Deny 1 request?".to_owned(),
            (false, count) => format!("Deny {count} requests?"),
        };
        let rows = several_rows(shared, question);
        let inside = self.window(76, rows + 5, &title);
        let width = usize::from(inside.width);
        let describe = |id: &str, why: &str| {
            let Some((ask, outcome)) = shared.requests.get(id) else { return Line::default() };
            let (mark, style) = risk_mark(shared, ask, outcome.as_ref());
            let session = shared.sessions.all.get(&ask.session).map_or_else(|| ask.runtime.clone(), SessionItem::name);
            let tail = if why.is_empty() { format!(" · {session}") } else { format!(" · {why}") };
            let tail = sanitize::cut(&tail, width * 2 / 3);
            let space = width.saturating_sub(3 + sanitize::width(&tail));
            Line::from(vec![
                Span::styled(format!("{mark} "), style),
                Span::styled(sanitize::cut(&headline(ask), space), theme.text),
                Span::styled(tail, if why.is_empty() { theme.dim } else { theme.warn }),
            ])
        };
        let count = several_lines(question);
        for (y, n) in (inside.y..).zip(question.scroll..count.min(question.scroll + usize::from(rows))) {
            let line = match n.checked_sub(answers.len()) {
                None => describe(&answers[n].0, ""),
                Some(0) => Line::from(Span::styled(format!("{} left out:", excluded.len()), theme.dim)),
                Some(after) => describe(&excluded[after - 1].0, excluded[after - 1].1),
            };
            self.put(inside.x, y, line, inside.width);
        }
        let more = count.saturating_sub(question.scroll + usize::from(rows));
        let foot = inside.y + inside.height - 1;
        if more > 0 {
            self.put(inside.x, foot - 1, Span::styled(format!("{more} more: ↓"), theme.dim), inside.width);
        }
        let answer = match (answers.len(), allow) {
            (0, _) => return self.put(inside.x, foot, Span::styled("Esc back", theme.dim), inside.width),
            (count, true) => format!(" allow {count}   "),
            (count, false) => format!(" deny {count}   "),
        };
        let spans = vec![
            Span::styled(" y ", theme.warn.add_modifier(Modifier::REVERSED | Modifier::BOLD)),
            Span::raw(answer),
            Span::styled(" n ", theme.text.add_modifier(Modifier::REVERSED | Modifier::BOLD)),
            Span::raw(" no"),
        ];
        self.put(inside.x, foot, spans, inside.width);
    }
}
