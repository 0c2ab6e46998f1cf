//! The context in which a page handles an input, and the steps that result from it.

use plexus_client::calls::ApiCall;
use serde::de::DeserializeOwned;

use super::TuiPage;
use super::message::{CallTag, Effect};
use super::shared::Shared;
use crate::attachments::Attachment;
use crate::input::Key;
use crate::reply::CallReply;
use crate::view_model::SessionItem;

/// A click or a step of the wheel at a place of the screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MouseInput {
    pub(crate) column: u16,
    pub(crate) row: u16,
    pub(crate) action: MouseAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MouseAction {
    Click,
    WheelUp,
    WheelDown,
}

impl MouseInput {
    /// Moves a place in a list by a step of the wheel.
    pub(crate) fn moved(&self, at: usize, count: usize) -> usize {
        match self.action {
            MouseAction::WheelDown => (at + 1).min(count.saturating_sub(1)),
            MouseAction::WheelUp => at.saturating_sub(1),
            MouseAction::Click => at,
        }
    }
}

/// Reads the response of a page's call; on a failure, the reason becomes the problem of the page.
pub(crate) fn read_response<R: DeserializeOwned>(problem: &mut Option<String>, reply: &CallReply) -> Option<R> {
    let response = reply.read();
    *problem = response.as_ref().err().cloned();
    response.ok()
}

/// A step that concerns more than one page. It is carried out after the page has handled its input.
#[derive(Debug)]
pub(crate) enum Step {
    /// Prepares this page, which is on the screen now.
    Enter(TuiPage),
    /// Reads the lists of the page again.
    Refresh,
    /// Leaves the page.
    Back,
    /// Moves from a list to the session beside it, and back.
    OtherPane,
    /// Opens a session, with the focus in its composer.
    Open(String),
    /// Opens a session at this place of its log.
    ReadAt(String, u64),
    /// Opens a session with the focus on the card of this request.
    Answer(String, Option<String>),
    /// Opens a session with this prompt and these images in its composer, and this notice.
    Compose { session: String, prompt: String, images: Vec<Attachment>, problem: String },
    /// Opens the next session of the list, or the previous one.
    Neighbor(bool),
    /// Shows the newest entries of the open session.
    Newest,
    /// Executes a command of the palette.
    Command(&'static str),
    /// Executes a command for this session.
    SessionCommand(&'static str, Box<SessionItem>),
    /// Opens the form of a new session, for this runtime.
    NewSession(Option<String>),
    /// Handles a key again, after the page has changed.
    Key(Key),
}

/// The context in which a page handles an input.
pub(crate) struct Context<'a> {
    pub(crate) shared: &'a mut Shared,
    pub(crate) effects: &'a mut Vec<Effect>,
    pub(crate) steps: Vec<Step>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(shared: &'a mut Shared, effects: &'a mut Vec<Effect>) -> Self {
        Self { shared, effects, steps: Vec::new() }
    }

    /// Calls the gateway, without an idempotency key.
    pub(crate) fn call<R>(&mut self, tag: CallTag, call: ApiCall<R>) {
        self.effects.push(Effect::call(tag, call));
    }

    /// Adds a step.
    pub(crate) fn then(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Executes a command of the palette.
    pub(crate) fn command(&mut self, name: &'static str) {
        self.then(Step::Command(name));
    }

    /// Goes to a page.
    pub(crate) fn go(&mut self, page: TuiPage) {
        if page != TuiPage::Session {
            self.shared.previous_page = page;
        }
        self.shared.page = page;
        self.shared.card.focused = false;
        self.then(Step::Enter(page));
    }
}
