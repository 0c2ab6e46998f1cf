//! The screen of a new session: what its form asks of the gateway, and the replies.

use super::composer::files_path;
use super::*;
use crate::attachments::{pasted_path, prompt_body};
use crate::mention::OFFERS_MAX;
use crate::new_session::{FormField, FormOutcome, NewSessionForm, WakeStep};

impl App {
    /// Opens the form, for this agent if one is named.
    pub(super) fn open_form(&mut self, agent: Option<&str>, earlier: bool, effects: &mut Vec<Effect>) {
        self.no_page_chosen = false;
        let mut form = NewSessionForm::new(
            &self.shared.environment.start_dir,
            &self.new_session.prompt,
            &self.shared.runtimes,
            self.new_session.attempts,
        );
        form.images = std::mem::take(&mut self.new_session.images);
        if let Some(agent) = agent {
            form.choose(agent, earlier);
        }
        self.new_session.form = Some(form);
        effects.push(Effect::get(CallTag::Form(FormCall::Agents), "/v1/agents".into()));
        effects.push(Effect::get(CallTag::Form(FormCall::Recent), "/v1/folders".into()));
    }

    fn close_form(&mut self) {
        if let Some(form) = self.new_session.form.take() {
            self.new_session.attempts = form.attempt();
            self.new_session.prompt = form.prompt.lines().join("\n");
            self.new_session.images = form.images;
        }
        // The card was not on the screen meanwhile: it arms anew.
        self.shared.rearm_card();
    }

    /// Opens the form at the start, if there is neither an agent nor a session.
    fn offer_first_session(&mut self, effects: &mut Vec<Effect>) {
        if self.shared.link != ConnectionView::Live
            || !self.pages.runtimes.read
            || !std::mem::take(&mut self.offers_first_session)
        {
            return;
        }
        if self.shared.sessions.all.is_empty() && !self.shared.runtimes.iter().any(RuntimeItem::takes_sessions) {
            self.open_form(None, false, effects);
        }
    }

    /// Reads what the form needs, after any message.
    pub(super) fn update_form(&mut self, effects: &mut Vec<Effect>) {
        self.offer_first_session(effects);
        let Some(mut form) = self.new_session.form.take() else { return };
        if let WakeStep::Remove(runtime) = form.watch_wake(self.shared.now, &self.shared.runtimes) {
            effects.push(remove(&runtime));
        }
        if form.start.is_none() {
            let choice = form.choice(&self.shared.runtimes);
            let of_agent =
                |one: &&SessionItem| choice.as_ref().is_some_and(|choice| one.runtime == choice.name) && !one.linked;
            let newest = self.shared.sessions.all.values().filter(of_agent).max_by_key(|one| (one.place, &one.id));
            if let Some(session) = form.told_due(newest.map(|one| one.id.clone())) {
                let path = format!("/v1/sessions/{session}/snapshot?max_bytes=0");
                effects.push(Effect::get(CallTag::Form(FormCall::Offers(session)), path));
            }
            if let Some(runtime) = form.past_due(&self.shared.runtimes) {
                let path = format!("/v1/runtimes/{runtime}/resumable?limit=1000");
                effects.push(Effect::get(CallTag::Form(FormCall::Past(runtime)), path));
            }
            if let Some((asked, query)) = form.folders_due(self.shared.now) {
                effects.push(Effect::get(CallTag::Form(FormCall::Folders(asked)), format!("/v1/folders?{query}")));
            }
            if let Some((asked, query)) = form.files.due(self.shared.now) {
                match self.form_files(&form, &query) {
                    Ok(path) => effects.push(Effect::get(CallTag::Form(FormCall::Files(asked)), path)),
                    Err(why) => form.files.on_reply(asked, Err(why)),
                }
            }
        }
        self.new_session.form = Some(form);
    }

    /// The question for files of the chosen folder. Whoever may not see the machine's folders asks a session that works in it.
    fn form_files(&self, form: &NewSessionForm, query: &str) -> Result<String, &'static str> {
        let folder = form.folder_wanted();
        if folder.is_empty() {
            return Err("choose the folder first");
        }
        if form.sees_folders() {
            let mut path = form_urlencoded::Serializer::new(format!("/v1/folders/files?limit={OFFERS_MAX}&"));
            path.append_pair("under", &folder).append_pair("query", query);
            return Ok(path.finish());
        }
        let session = self.shared.sessions.all.values().find(|one| one.cwd == folder);
        session.map(|one| files_path(&one.id, query)).ok_or("no session works in this folder yet")
    }

    /// Pasted text: in the prompt, the path of an image attaches it.
    pub(super) fn form_paste(&mut self, words: &str, effects: &mut Vec<Effect>) {
        let Some(form) = &mut self.new_session.form else { return };
        match pasted_path(words).filter(|_| form.focus == FormField::Prompt && form.start.is_none()) {
            Some(path) => {
                effects.push(Effect::ReadImage { place: String::new(), path, pasted: Some(words.to_owned()) });
            }
            None => form.paste(words, self.shared.now),
        }
    }

    pub(super) fn form_key(&mut self, key: &Key, effects: &mut Vec<Effect>) {
        let Some(form) = &mut self.new_session.form else { return };
        let outcome = form.key(key, self.shared.now, &self.shared.runtimes);
        self.form_outcome(outcome, effects);
    }

    pub(super) fn form_click(&mut self, column: u16, row: u16, effects: &mut Vec<Effect>) {
        let Some(hit) = view::form_hit(self, column, row) else { return };
        let Some(form) = &mut self.new_session.form else { return };
        let outcome = form.click(hit, self.shared.now, &self.shared.runtimes);
        self.form_outcome(outcome, effects);
    }

    fn form_outcome(&mut self, outcome: FormOutcome, effects: &mut Vec<Effect>) {
        let Some(form) = &mut self.new_session.form else { return };
        match outcome {
            FormOutcome::Stay => {}
            FormOutcome::Close => self.close_form(),
            FormOutcome::Open(session) => {
                effects.push(Effect::GiveUp);
                self.close_form();
                self.open(session, effects);
            }
            FormOutcome::Image => self.ask_image(),
            FormOutcome::Wake => {
                if let Some((attempt, body)) = form.begin_wake(self.shared.now, &self.shared.runtimes) {
                    // Not given up half-way: what was started has to be known to be removed.
                    effects.push(Effect::post(CallTag::Form(FormCall::Wake(attempt)), "/v1/runtimes".into(), body));
                }
            }
            FormOutcome::Cancel => {
                match form.start.as_ref().filter(|start| start.wakes) {
                    Some(start) => effects.extend(start.runtime.as_deref().map(remove)),
                    None => effects.push(Effect::GiveUp),
                }
                form.settled();
                form.fail("Cancelled. Nothing was left behind.".to_owned(), "");
            }
            FormOutcome::Copy(command) => {
                self.shared.say(&format!("copied: {command}"), false);
                effects.push(Effect::Copy(command));
            }
            FormOutcome::Problem => {
                if let Some(problem) = &form.problem {
                    let words = format!("{}\n\n{}", problem.words, problem.said);
                    self.shared.overlay = Some(Overlay::TextPage { title: "not started".into(), words, scroll: 0 });
                }
            }
            FormOutcome::Start => match form.wish(&self.shared.runtimes) {
                Err(why) => form.fail(why, ""),
                Ok((wish, words)) => {
                    let attempt = form.begin(&wish, words, self.shared.now, &self.shared.runtimes);
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
        if let FormCall::Wake(attempt) = call {
            return self.on_wake(attempt, good.then_some(value).ok_or(why), effects);
        }
        let Some(form) = &mut self.new_session.form else { return };
        match call {
            FormCall::Wake(_) => {}
            FormCall::Agents => form.on_agents(if good { Ok(value) } else { Err((status, why)) }),
            // Without them, the folder is typed.
            FormCall::Recent if good => form.on_recent(value),
            FormCall::Recent => {}
            FormCall::Folders(asked) => form.on_folders(asked, if good { Ok(value) } else { Err(why) }),
            FormCall::Files(asked) => form.files.on_reply(asked, if good { Ok(value) } else { Err(why) }),
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
                        self.shared.sessions.apply_update(session);
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
                form.images.clear();
                self.opened_by_form("", effects);
            }
            FormCall::Prompt(_) => self.opened_by_form(&format!("not sent: {why}"), effects),
        }
    }

    /// The agent of the attempt is starting; or it cannot be started.
    fn on_wake(&mut self, attempt: u64, reply: Result<&Value, &str>, effects: &mut Vec<Effect>) {
        let form = self
            .new_session
            .form
            .as_mut()
            .filter(|form| form.start.as_ref().is_some_and(|start| start.attempt == attempt));
        let runtime = reply.map(|value| value["runtime_id"].as_str().unwrap_or_default().to_owned());
        match (form, runtime) {
            (Some(form), Ok(runtime)) => {
                if let Some(start) = &mut form.start {
                    start.runtime = Some(runtime);
                }
            }
            (Some(form), Err(why)) => form.fail(format!("That did not work: {why}"), ""),
            // It was given up meanwhile.
            (None, Ok(runtime)) => effects.push(remove(&runtime)),
            (None, Err(_)) => {}
        }
    }

    /// The next setting of the session that was opened, or its prompt.
    fn next_of_start(&mut self, effects: &mut Vec<Effect>) {
        let Some(form) = &mut self.new_session.form else { return };
        let words = form.prompt.lines().join("\n");
        let earlier = form.is_earlier(&self.shared.runtimes);
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
        if earlier || words.trim().is_empty() && form.images.is_empty() {
            return self.opened_by_form("", effects);
        }
        effects.push(Effect::Start {
            tag: CallTag::Form(FormCall::Prompt(attempt)),
            path: format!("/v1/sessions/{session}/prompt"),
            body: prompt_body(&words, &form.images),
            key: format!("new-{attempt}-prompt"),
        });
    }

    /// Goes to the session. A prompt that was not sent is in its composer.
    fn opened_by_form(&mut self, problem: &str, effects: &mut Vec<Effect>) {
        let Some(form) = &self.new_session.form else { return };
        let Some(session) = form.start.as_ref().and_then(|start| start.session.clone()) else { return };
        let words = form.prompt.lines().join("\n");
        self.close_form();
        self.new_session.prompt.clear();
        let images = std::mem::take(&mut self.new_session.images);
        if !images.is_empty() {
            self.pages.session.images.insert(session.clone(), images);
        }
        self.open(session, effects);
        if !problem.is_empty() {
            self.pages.session.composer = input::area(&words);
            self.shared.say(problem, true);
        }
    }
}

/// Removes a runtime that was started in vain.
fn remove(runtime: &str) -> Effect {
    Effect::Call {
        tag: CallTag::Notice("stopped".into()),
        method: "DELETE",
        path: format!("/v1/runtimes/{runtime}"),
        body: None,
        key: false,
    }
}
