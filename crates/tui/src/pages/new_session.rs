//! The screen of a new session: the calls of its form to the gateway, and the replies.

mod drawing;

use plexus_client::calls::{self, ApiCall};
use plexus_protocol::api::folders::Files;
use plexus_protocol::{RuntimeId, RuntimeInfo, SessionId, SessionInfo};

use super::context::{Context, MouseAction, MouseInput, Step};
use super::draw::Draw;
use super::message::{CallTag, Effect, FormCall};
use super::shared::{Overlay, Shared};
use super::{Hint, Page};
use crate::attachments::{Attachment, attach, new_prompt, pasted_path};
use crate::input::{self, Key};
use crate::mention::OFFERS_MAX;
use crate::new_session::{FormField, FormOutcome, NewSessionForm, WakeStep};
use crate::reply::CallReply;
use crate::view_model::SessionItem;
use drawing::{form_hints, form_hit};

/// Maximum number of conversations of an agent that are listed.
const RESUMABLE_MAX: usize = 1000;

/// The form of a new session.
#[derive(Debug, Default)]
pub(crate) struct NewSessionPage {
    /// The form, while it is open.
    pub(crate) form: Option<NewSessionForm>,
    /// The prompt and the images of a closed form.
    prompt: String,
    images: Vec<Attachment>,
    /// The number of starts so far.
    attempts: u64,
}

impl NewSessionPage {
    /// Opens the form, for `agent` if one is named.
    pub(crate) fn open(&mut self, agent: Option<&str>, earlier: bool, cx: &mut Context<'_>) {
        let mut form =
            NewSessionForm::new(&cx.shared.environment.start_dir, &self.prompt, &cx.shared.runtimes, self.attempts);
        form.images = std::mem::take(&mut self.images);
        if let Some(agent) = agent {
            form.choose(agent, earlier);
        }
        self.form = Some(form);
        cx.call(CallTag::Form(FormCall::Agents), calls::agents());
        cx.call(CallTag::Form(FormCall::Recent), calls::folders(None, None));
    }

    fn close(&mut self, shared: &mut Shared) {
        if let Some(form) = self.form.take() {
            self.attempts = form.attempt();
            self.prompt = form.prompt.lines().join("\n");
            self.images = form.images;
        }
        // The card was not on the screen meanwhile: its guard begins anew.
        shared.rearm_card();
    }

    /// Reads the data that the form needs, after any message.
    pub(crate) fn update(&mut self, cx: &mut Context<'_>) {
        let Some(mut form) = self.form.take() else { return };
        if let WakeStep::Remove(runtime) = form.watch_wake(cx.shared.now, &cx.shared.runtimes) {
            cx.effects.push(remove(&runtime));
        }
        if form.start.is_none() {
            let choice = form.choice(&cx.shared.runtimes);
            let runs_chosen_agent =
                |one: &&SessionItem| choice.as_ref().is_some_and(|choice| one.runtime == choice.name) && !one.linked;
            let newest =
                cx.shared.sessions.all.values().filter(runs_chosen_agent).max_by_key(|one| (one.position, &one.id));
            if let Some(session) = form.offers_due(newest.map(|one| one.id.clone())) {
                let call = calls::snapshot(&SessionId::trusted(session.as_str()), Some(0));
                cx.call(CallTag::Form(FormCall::Offers(session)), call);
            }
            if let Some(runtime) = form.conversations_due(&cx.shared.runtimes) {
                let call = calls::resumable(&RuntimeId::trusted(runtime.as_str()), Some(RESUMABLE_MAX), None);
                cx.call(CallTag::Form(FormCall::Past(runtime)), call);
            }
            if let Some((query_id, call)) = form.folders_due(cx.shared.now) {
                cx.call(CallTag::Form(FormCall::Folders(query_id)), call);
            }
            if let Some((query_id, query)) = form.files.due(cx.shared.now) {
                match Self::form_files(&form, &query, cx.shared) {
                    Ok(call) => cx.call(CallTag::Form(FormCall::Files(query_id)), call),
                    Err(why) => form.files.on_reply(query_id, Err(why.to_owned())),
                }
            }
        }
        self.form = Some(form);
    }

    /// The call for files of the chosen folder. A client that may not see the machine's folders uses a session that works in it.
    fn form_files(form: &NewSessionForm, query: &str, shared: &Shared) -> Result<ApiCall<Files>, &'static str> {
        let folder = form.chosen_folder();
        if folder.is_empty() {
            return Err("choose the folder first");
        }
        if form.can_list_folders() {
            return Ok(calls::folder_files(&folder, query, OFFERS_MAX));
        }
        let session = shared.sessions.all.values().find(|one| one.cwd == folder);
        let files = |id: &str| calls::session_files(&SessionId::trusted(id), query, OFFERS_MAX);
        session.map(|one| files(&one.id)).ok_or("no session works in this folder yet")
    }

    fn carry_out(&mut self, outcome: FormOutcome, cx: &mut Context<'_>) {
        let Some(form) = &mut self.form else { return };
        match outcome {
            FormOutcome::Nothing => {}
            FormOutcome::Close => self.close(cx.shared),
            FormOutcome::Open(session) => {
                cx.effects.push(Effect::CancelStart);
                self.close(cx.shared);
                cx.then(Step::Open(session));
            }
            FormOutcome::Image => cx.shared.ask_image(String::new()),
            FormOutcome::Wake => {
                if let Some((attempt, start)) = form.begin_wake(cx.shared.now, &cx.shared.runtimes) {
                    // The call cannot be cancelled: the started runtime has to be known to be removed.
                    cx.call(CallTag::Form(FormCall::Wake(attempt)), calls::start_runtime(&start));
                }
            }
            FormOutcome::Cancel => {
                match form.start.as_ref().filter(|start| start.wakes) {
                    Some(start) => cx.effects.extend(start.runtime.as_deref().map(remove)),
                    None => cx.effects.push(Effect::CancelStart),
                }
                form.settled();
                form.fail("Cancelled. Nothing was left behind.".to_owned(), "");
            }
            FormOutcome::Copy(command) => {
                cx.shared.show_notice(&format!("copied: {command}"), false);
                cx.effects.push(Effect::Copy(command));
            }
            FormOutcome::Problem => {
                if let Some(problem) = &form.problem {
                    let text = format!("{}\n\n{}", problem.text, problem.output);
                    cx.shared.overlay = Some(Overlay::TextPage { title: "not started".into(), text, scroll: 0 });
                }
            }
            FormOutcome::Start => match form.new_session(&cx.shared.runtimes) {
                Err(why) => form.fail(why, ""),
                Ok((session, text)) => {
                    let request = calls::open_session(&session).request;
                    let attempt = form.begin(&request, text, cx.shared.now, &cx.shared.runtimes);
                    cx.effects.push(Effect::Start {
                        tag: CallTag::Form(FormCall::Start(attempt)),
                        request,
                        key: format!("new-{attempt}"),
                    });
                }
            },
        }
    }

    /// Applies the reply to a call of the form.
    pub(crate) fn on_reply(&mut self, call: FormCall, reply: &CallReply, cx: &mut Context<'_>) {
        if let FormCall::Wake(attempt) = call {
            return self.on_wake(attempt, reply.read(), cx);
        }
        let Some(form) = &mut self.form else { return };
        match call {
            FormCall::Wake(_) => {}
            FormCall::Agents => form.on_agents(reply),
            // If they cannot be read, the user types the folder.
            FormCall::Recent => reply.read().into_iter().for_each(|folders| form.on_recent(folders)),
            FormCall::Folders(query_id) => form.on_folders(query_id, reply.read()),
            FormCall::Files(query_id) => form.files.on_reply(query_id, reply.read()),
            FormCall::Offers(session) => {
                reply.read().into_iter().for_each(|snapshot| form.on_offers(&session, &snapshot));
            }
            FormCall::Past(runtime) => form.on_conversations(&runtime, reply.read()),
            FormCall::Start(attempt) | FormCall::Setting(attempt) | FormCall::Prompt(attempt)
                if form.start.as_ref().is_none_or(|start| start.attempt != attempt) => {}
            FormCall::Start(_) => match reply.read::<SessionInfo>() {
                Ok(session) => {
                    let session = SessionItem::new(&session);
                    if let Some(start) = &mut form.start {
                        start.session = Some(session.id.clone());
                    }
                    form.settled();
                    cx.shared.sessions.apply_update(session);
                    self.next_of_start(cx);
                }
                Err(why) => {
                    // Without a reply it may have begun: repeating the request is the same attempt.
                    if reply.status().is_some() {
                        form.settled();
                    }
                    let output = reply.refusal().and_then(|refusal| refusal.data.stderr);
                    form.fail(format!("That did not work: {why}"), output.as_deref().unwrap_or_default());
                }
            },
            FormCall::Setting(_) => {}
            FormCall::Prompt(_) => match reply.problem() {
                None => {
                    form.prompt = input::area("");
                    form.images.clear();
                    self.opened("", cx);
                }
                Some(why) => self.opened(&format!("not sent: {why}"), cx),
            },
        }
    }

    /// Applies the outcome of a change of a setting of the opened session.
    pub(crate) fn on_set(&mut self, attempt: u64, outcome: Result<(), String>, cx: &mut Context<'_>) {
        let start = self.form.as_ref().and_then(|form| form.start.as_ref());
        if start.is_none_or(|start| start.attempt != attempt) {
            return;
        }
        match outcome {
            Ok(()) => self.next_of_start(cx),
            Err(why) => self.opened(&format!("the prompt was not sent: {why}"), cx),
        }
    }

    /// Applies the reply to the start of an agent for its conversations.
    fn on_wake(&mut self, attempt: u64, reply: Result<RuntimeInfo, String>, cx: &mut Context<'_>) {
        let form = self.form.as_mut().filter(|form| form.start.as_ref().is_some_and(|start| start.attempt == attempt));
        let runtime = reply.map(|runtime| runtime.runtime_id.to_string());
        match (form, runtime) {
            (Some(form), Ok(runtime)) => {
                if let Some(start) = &mut form.start {
                    start.runtime = Some(runtime);
                }
            }
            (Some(form), Err(why)) => form.fail(format!("That did not work: {why}"), ""),
            // The attempt was cancelled meanwhile.
            (None, Ok(runtime)) => cx.effects.push(remove(&runtime)),
            (None, Err(_)) => {}
        }
    }

    /// Makes the next setting of the opened session, or sends its prompt.
    fn next_of_start(&mut self, cx: &mut Context<'_>) {
        let Some(form) = &mut self.form else { return };
        let text = form.prompt.lines().join("\n");
        let earlier = form.is_earlier(&cx.shared.runtimes);
        let Some(start) = &mut form.start else { return };
        let Some(session) = start.session.clone() else { return };
        let attempt = start.attempt;
        if !start.settings.is_empty() {
            let pick = start.settings.remove(0);
            let tag = CallTag::Form(FormCall::Setting(attempt));
            return cx.effects.push(Effect::Set { tag, session, call: pick.call });
        }
        if earlier || text.trim().is_empty() && form.images.is_empty() {
            return self.opened("", cx);
        }
        cx.effects.push(Effect::Start {
            tag: CallTag::Form(FormCall::Prompt(attempt)),
            request: calls::prompt(&SessionId::trusted(session), &new_prompt(&text, &form.images)).request,
            key: format!("new-{attempt}-prompt"),
        });
    }

    /// Opens the session. A prompt that was not sent is put into its composer.
    fn opened(&mut self, problem: &str, cx: &mut Context<'_>) {
        let Some(form) = &self.form else { return };
        let Some(session) = form.start.as_ref().and_then(|start| start.session.clone()) else { return };
        let prompt = form.prompt.lines().join("\n");
        self.close(cx.shared);
        self.prompt.clear();
        let images = std::mem::take(&mut self.images);
        cx.then(Step::Compose { session, prompt, images, problem: problem.to_owned() });
    }

    /// Attaches an image that was read to the prompt. A pasted text that names no image is inserted as text.
    pub(crate) fn on_image(&mut self, pasted: Option<String>, image: Result<Attachment, String>, shared: &mut Shared) {
        let images = self.form.as_mut().map_or(&mut self.images, |form| &mut form.images);
        match attach(images, image) {
            Ok(text) => shared.show_notice(&text, false),
            Err(why) => {
                if let (Some(text), Some(form)) = (pasted, &mut self.form) {
                    form.paste(&text, shared.now);
                }
                shared.show_notice(&why, true);
            }
        }
    }
}

impl Page for NewSessionPage {
    fn key(&mut self, key: &Key, cx: &mut Context<'_>) {
        let Some(form) = &mut self.form else { return };
        let outcome = form.key(key, cx.shared.now, &cx.shared.runtimes);
        self.carry_out(outcome, cx);
    }

    fn paste(&mut self, text: &str, cx: &mut Context<'_>) {
        let Some(form) = &mut self.form else { return };
        match pasted_path(text).filter(|_| form.focus == FormField::Prompt && form.start.is_none()) {
            Some(path) => {
                cx.effects.push(Effect::ReadImage { target: String::new(), path, pasted: Some(text.to_owned()) });
            }
            None => form.paste(text, cx.shared.now),
        }
    }

    fn mouse(&mut self, mouse: MouseInput, cx: &mut Context<'_>) {
        let Some(form) = self.form.as_mut().filter(|_| mouse.action == MouseAction::Click) else { return };
        let Some(hit) = form_hit(cx.shared, form, mouse.column, mouse.row) else { return };
        let outcome = form.click(hit, cx.shared.now, &cx.shared.runtimes);
        self.carry_out(outcome, cx);
    }

    fn takes_text(&self, _shared: &Shared) -> bool {
        self.form.is_some()
    }

    fn hints(&self, shared: &Shared) -> Vec<Hint> {
        self.form.as_ref().map(|form| form_hints(shared, form)).unwrap_or_default()
    }

    fn draw(&self, draw: &mut Draw<'_>) {
        self.form.iter().for_each(|form| draw.form(form));
    }
}

/// Removes a runtime that is not needed.
fn remove(runtime: &str) -> Effect {
    Effect::call(CallTag::Notice("stopped".into()), calls::stop_runtime(&RuntimeId::trusted(runtime)))
}
