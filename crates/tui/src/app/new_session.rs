//! The screen of a new session: what its form asks of the gateway, and the replies.

use super::*;
use crate::new_session::{FormOutcome, NewSessionForm};

/// A call of the form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FormCall {
    Agents,
    Recent,
    /// The folders for the question of this number.
    Folders(u64),
    /// The newest session of the agent, whose settings are offered.
    Offers(String),
    /// The conversations of a runtime.
    Past(String),
    /// The start of this number.
    Start(u64),
    /// A setting of the session that was opened.
    Setting(u64),
    /// The first prompt of it.
    Prompt(u64),
}

impl App {
    /// Opens the form, for this agent if one is named.
    pub(super) fn open_form(&mut self, agent: Option<&str>, earlier: bool, effects: &mut Vec<Effect>) {
        self.undecided = false;
        let mut form = NewSessionForm::new(&self.here, &self.form_prompt, &self.runtimes, self.attempts);
        if let Some(agent) = agent {
            form.choose(agent, earlier);
        }
        self.form = Some(form);
        effects.push(get(CallTag::Form(FormCall::Agents), "/v1/agents".into()));
        effects.push(get(CallTag::Form(FormCall::Recent), "/v1/folders".into()));
    }

    fn close_form(&mut self) {
        if let Some(form) = self.form.take() {
            self.attempts = form.attempt();
            self.form_prompt = form.prompt.lines().join("\n");
        }
        // The card was not on the screen meanwhile: it arms anew.
        if let Some(id) = self.card.as_ref().map(|card| card.id.clone()) {
            self.show_card_of(Some(&id));
        }
    }

    /// Opens the form at the start, if there is neither an agent nor a session.
    fn offer_first_session(&mut self, effects: &mut Vec<Effect>) {
        if self.link != ConnectionView::Live || !self.runtimes_read || !std::mem::take(&mut self.first) {
            return;
        }
        if self.sessions.is_empty() && !self.runtimes.iter().any(RuntimeItem::takes_sessions) {
            self.open_form(None, false, effects);
        }
    }

    /// Reads what the form needs, after any message.
    pub(super) fn update_form(&mut self, effects: &mut Vec<Effect>) {
        self.offer_first_session(effects);
        let Some(mut form) = self.form.take() else { return };
        if form.start.is_none() {
            let choice = form.choice(&self.runtimes);
            let of_agent =
                |one: &&SessionItem| choice.as_ref().is_some_and(|choice| one.runtime == choice.name) && !one.linked;
            let newest = self.sessions.values().filter(of_agent).max_by_key(|one| (one.place, &one.id));
            if let Some(session) = form.told_due(newest.map(|one| one.id.clone())) {
                let path = format!("/v1/sessions/{session}/snapshot?max_bytes=0");
                effects.push(get(CallTag::Form(FormCall::Offers(session)), path));
            }
            if let Some(runtime) = form.past_due(&self.runtimes) {
                let path = format!("/v1/runtimes/{runtime}/resumable?limit=1000");
                effects.push(get(CallTag::Form(FormCall::Past(runtime)), path));
            }
            if let Some((asked, query)) = form.folders_due(self.now) {
                effects.push(get(CallTag::Form(FormCall::Folders(asked)), format!("/v1/folders?{query}")));
            }
        }
        self.form = Some(form);
    }

    pub(super) fn form_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let Some(form) = &mut self.form else { return };
        let outcome = form.key(key, self.now, &self.runtimes);
        self.form_outcome(outcome, effects);
    }

    pub(super) fn form_click(&mut self, column: u16, row: u16, effects: &mut Vec<Effect>) {
        let Some(hit) = view::form_hit(self, column, row) else { return };
        let Some(form) = &mut self.form else { return };
        let outcome = form.click(hit, self.now, &self.runtimes);
        self.form_outcome(outcome, effects);
    }

    fn form_outcome(&mut self, outcome: FormOutcome, effects: &mut Vec<Effect>) {
        let Some(form) = &mut self.form else { return };
        match outcome {
            FormOutcome::Stay => {}
            FormOutcome::Close => self.close_form(),
            FormOutcome::Open(session) => {
                effects.push(Effect::GiveUp);
                self.close_form();
                self.open(session, effects);
            }
            FormOutcome::Cancel => {
                effects.push(Effect::GiveUp);
                form.settled();
                form.fail("Cancelled. Nothing was left behind.".to_owned(), "");
            }
            FormOutcome::Copy(command) => {
                self.say(&format!("copied: {command}"), false);
                effects.push(Effect::Copy(command));
            }
            FormOutcome::Problem => {
                if let Some(problem) = &form.problem {
                    let words = format!("{}\n\n{}", problem.words, problem.said);
                    self.overlay = Some(Overlay::TextPage { title: "not started".into(), words, scroll: 0 });
                }
            }
            FormOutcome::Start => match form.wish(&self.runtimes) {
                Err(why) => form.fail(why, ""),
                Ok((wish, words)) => {
                    let attempt = form.begin(&wish, words, self.now, &self.runtimes);
                    effects.push(Effect::Start {
                        tag: CallTag::Form(FormCall::Start(attempt)),
                        path: "/v1/sessions".into(),
                        body: wish,
                        key: format!("new-{attempt}"),
                    });
                }
            },
        }
    }

    /// Applies the reply to a call of the form.
    pub(super) fn on_form_reply(&mut self, call: FormCall, reply: (u16, &Value), why: &str, effects: &mut Vec<Effect>) {
        let (status, value) = reply;
        let good = (200..300).contains(&status);
        let Some(form) = &mut self.form else { return };
        match call {
            FormCall::Agents => form.on_agents(if good { Ok(value) } else { Err((status, why)) }),
            // Without them, the folder is typed.
            FormCall::Recent if good => form.on_recent(value),
            FormCall::Recent => {}
            FormCall::Folders(asked) => form.on_folders(asked, if good { Ok(value) } else { Err(why) }),
            FormCall::Offers(session) if good => form.on_told(&session, value),
            FormCall::Offers(_) => {}
            FormCall::Past(runtime) => form.on_past(&runtime, if good { Ok(value) } else { Err(why) }),
            FormCall::Start(attempt) | FormCall::Setting(attempt) | FormCall::Prompt(attempt)
                if form.start.as_ref().is_none_or(|start| start.attempt != attempt) => {}
            FormCall::Start(_) => match value["session_id"].as_str().filter(|_| good) {
                Some(session) => {
                    if let Some(start) = &mut form.start {
                        start.session = Some(session.to_owned());
                    }
                    form.settled();
                    if let Some(session) = SessionItem::read(value) {
                        self.apply_update(session);
                    }
                    self.next_of_start(effects);
                }
                None => {
                    // Without an answer it may have begun: the same again is the same attempt.
                    if status != 0 {
                        form.settled();
                    }
                    form.fail(format!("That did not work: {why}"), value["stderr"].as_str().unwrap_or_default());
                }
            },
            FormCall::Setting(_) if good => self.next_of_start(effects),
            FormCall::Setting(_) => self.opened_by_form(&format!("the prompt was not sent: {why}"), effects),
            FormCall::Prompt(_) if good => {
                form.prompt = input::area("");
                self.opened_by_form("", effects);
            }
            FormCall::Prompt(_) => self.opened_by_form(&format!("not sent: {why}"), effects),
        }
    }

    /// The next setting of the session that was opened, or its prompt.
    fn next_of_start(&mut self, effects: &mut Vec<Effect>) {
        let Some(form) = &mut self.form else { return };
        let words = form.prompt.lines().join("\n");
        let earlier = form.is_earlier(&self.runtimes);
        let Some(start) = &mut form.start else { return };
        let Some(session) = start.session.clone() else { return };
        let attempt = start.attempt;
        if !start.settings.is_empty() {
            let pick = start.settings.remove(0);
            let mut params = pick.params;
            params["session_id"] = session.into();
            let tag = CallTag::Form(FormCall::Setting(attempt));
            return effects.push(Effect::Ask { tag, method: pick.method, params });
        }
        if earlier || words.trim().is_empty() {
            return self.opened_by_form("", effects);
        }
        effects.push(Effect::Start {
            tag: CallTag::Form(FormCall::Prompt(attempt)),
            path: format!("/v1/sessions/{session}/prompt"),
            body: json!({ "text": words }),
            key: format!("new-{attempt}-prompt"),
        });
    }

    /// Goes to the session. A prompt that was not sent is in its composer.
    fn opened_by_form(&mut self, problem: &str, effects: &mut Vec<Effect>) {
        let Some(form) = &self.form else { return };
        let Some(session) = form.start.as_ref().and_then(|start| start.session.clone()) else { return };
        let words = form.prompt.lines().join("\n");
        self.close_form();
        self.form_prompt.clear();
        self.open(session, effects);
        if !problem.is_empty() {
            self.composer = input::area(&words);
            self.say(problem, true);
        }
    }
}
