//! Drawing: calls of an agent's tools that change surfaces, presses on surfaces, and questions by surfaces. Each call waits for its
//! commit, and never for a screen. A session commits changes of surfaces at most ten times a second: calls that arrive faster are merged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedMutexGuard;

use super::{Task, WaitingCall};
use crate::answer_key::AnswerKey;
use crate::state::AskAnswer;
use crate::surfaces::{
    AskCall, AskReply, AskWork, Board, Drawing, Press, Pressed, SurfacePermits, WAITING_BYTES_MAX, WAITING_MAX,
};
use crate::system::now;
use crate::{SessionError, requests, surface_form};
use plexus_auth::{Denied, Device};
use plexus_ledger::{Account, Charge};
use plexus_protocol::api::surfaces::{Acted, AskView, SurfaceAction};
use plexus_protocol::{Answer, Decision, Receipt, RequestId, Resolver, Risk, Scope};
use plexus_surfaces::{Action, Ask, SurfaceError, SurfaceSet};

/// Minimum time between two commits of a session's surfaces.
const TICK: Duration = Duration::from_millis(100);

/// Time after which unchanged surfaces are dropped from memory; then they are read from the store again.
const IDLE: Duration = Duration::from_secs(60);

/// The calls that wait for the next tick.
#[derive(Default)]
pub(super) struct DrawingQueue {
    waiting: Vec<WaitingCall>,
    bytes: usize,
    /// The end of the tick of the last commit.
    quiet_until: Option<Instant>,
    /// The time when the surfaces were last used, if they may be in memory.
    used_at: Option<Instant>,
}

impl DrawingQueue {
    /// Returns the time of the next work: the waiting calls are due, or the surfaces have been idle for [`IDLE`].
    pub(super) fn due(&self) -> Option<Instant> {
        match self.waiting.is_empty() {
            false => Some(self.quiet_until.unwrap_or_else(Instant::now)),
            true => self.used_at.map(|used| used + IDLE),
        }
    }

    /// Takes all waiting calls.
    pub(super) fn take(&mut self) -> Vec<WaitingCall> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}

/// Waits until the given time; never returns if there is none.
pub(super) async fn until(due: Option<Instant>) {
    match due {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

impl Task {
    /// Locks the surfaces for an action of a user, or to remove one: it is not refused because agents have drawn too much.
    fn board(&mut self) -> impl Future<Output = Result<OwnedMutexGuard<Board>, SessionError>> + Send + use<> {
        self.locked(|account, bytes| account.charge(bytes).map_err(SessionError::OverLimit))
    }

    /// Locks the surfaces for an agent that draws more.
    fn board_for_more(&mut self) -> impl Future<Output = Result<OwnedMutexGuard<Board>, SessionError>> + Send + use<> {
        self.locked(|account, bytes| account.charge_long_lived(bytes).map_err(SessionError::SurfacesFull))
    }

    /// Locks the surfaces. The future borrows nothing of the task, whose other waits are for one thread only.
    fn locked(
        &mut self,
        charge: fn(&Account, usize) -> Result<Charge, SessionError>,
    ) -> impl Future<Output = Result<OwnedMutexGuard<Board>, SessionError>> + Send + use<> {
        let surfaces = Arc::clone(&self.persister.handle.surfaces);
        let (log, id) = (self.persister.log.clone(), self.state.origin.session_id.clone());
        let account = self.persister.account();
        self.drawing.used_at = Some(Instant::now());
        async move {
            let charge = |bytes| account.as_ref().map(|account| charge(account, bytes)).transpose();
            surfaces.lock(&log, &id, charge).await
        }
    }

    /// Drops the surfaces from memory, which may be ahead of the stored ones.
    fn unload(&self, board: OwnedMutexGuard<Board>) -> impl Future<Output = ()> + Send + use<> {
        drop(board);
        let surfaces = Arc::clone(&self.persister.handle.surfaces);
        async move { surfaces.forget().await }
    }

    /// Draws at once, or at the end of the tick if a call already drew in it.
    pub(super) async fn draw(&mut self, call: WaitingCall) {
        let queue = &mut self.drawing;
        if queue.waiting.len() >= WAITING_MAX || queue.bytes + call.bytes > WAITING_BYTES_MAX {
            let refusal = SessionError::DrawsTooFast(queue.waiting.len());
            return drop(call.reply.send(Err(refusal)));
        }
        queue.bytes += call.bytes;
        queue.waiting.push(call);
        if queue.quiet_until.is_none_or(|until| until <= Instant::now()) {
            self.draw_waiting().await;
        }
    }

    /// Performs the work that is [due](DrawingQueue::due).
    pub(super) async fn drawing_due(&mut self) {
        if self.drawing.waiting.is_empty() {
            self.drawing.used_at = None;
            return self.persister.handle.surfaces.unload().await;
        }
        self.draw_waiting().await;
    }

    /// Draws all waiting calls, in one commit.
    pub(super) async fn draw_waiting(&mut self) {
        let calls = self.drawing.take();
        if calls.is_empty() {
            return;
        }
        self.drawing.quiet_until = Some(Instant::now() + TICK);
        let only_frees = calls.iter().all(|waiting| waiting.call.only_frees());
        let locked = if only_frees { self.board().await } else { self.board_for_more().await };
        let mut board = match locked {
            Ok(board) => board,
            Err(error) => return calls.into_iter().for_each(|call| drop(call.reply.send(Err(error.clone())))),
        };
        let (drawing, replies) = board.draw(&self.state.origin.session_id, calls, now());
        let Drawing { bodies, rows } = drawing;
        if !bodies.is_empty() {
            let drawn = self.try_decide(|state, env, plan| {
                state.log_drawing(bodies, rows, env, plan);
                Ok(())
            });
            if let Err(error) = drawn.await {
                self.unload(board).await;
                return replies.into_iter().for_each(|(reply, _)| drop(reply.send(Err(error.clone()))));
            }
        }
        drop(board);
        replies.into_iter().for_each(|(reply, outcome)| drop(reply.send(outcome)));
    }

    /// Handles a press: it answers a question of the surface, or becomes a prompt for the agent, which is queued behind its current work.
    pub(super) async fn act(&mut self, press: Press) {
        let Press { surface, request, by, reply } = press;
        // Earlier calls take effect first.
        self.draw_waiting().await;
        let _ = reply.send(self.press(&surface, &request, &by).await);
    }

    async fn press(&mut self, name: &str, request: &SurfaceAction, by: &SurfacePermits) -> Result<Acted, SessionError> {
        let mut board = self.board().await?;
        let ask = board.set().and_then(|set| set.get(name)?.ask().cloned());
        let ask = ask.filter(|ask| ask.submit.contains(&request.component) && self.is_open(ask));
        // Checked before anything changes: a device that may only prompt may not answer.
        let may = match (&ask, &by.approve, &by.prompt) {
            (Some(_), Some(permit), _) => Ok(permit.device()),
            (None, _, Some(permit)) => Ok(permit.device()),
            (Some(_), None, Some(permit)) => Err((Scope::Approve, permit.device())),
            (None, Some(permit), None) => Err((Scope::Prompt, permit.device())),
            (_, None, None) => return Err(SessionError::Stopping),
        };
        let device = may.map_err(|(scope, device)| Denied { scope, device: device.name.clone() })?;
        let Some(Ask { request_id, .. }) = ask else {
            let pressed = board.act(name, request, now())?;
            let resolver = device.resolver();
            return self.prompt_with_press(board, pressed, resolver).await;
        };
        let id = RequestId::trusted(request_id);
        let answer = Answer { answers: Some(surface_form::answers(request)), ..Answer::default() };
        let decision = self.judged(&id, &answer, device)?;
        let pressed = board.act(name, request, now())?;
        let (rev, by) = (pressed.rev + 1, device.resolver());
        self.settle(board, &id, (name, Some(pressed)), &decision, by, None).await?;
        Ok(Acted { accepted: true, rev, run_id: None, request_id: Some(id) })
    }

    /// Returns whether a surface's question is open: it may have ended with its run, or expired.
    fn is_open(&self, ask: &Ask) -> bool {
        self.state.is_open(&RequestId::trusted(ask.request_id.clone()))
    }

    /// Returns the decision of an answer, as for every request.
    fn judged(&self, id: &RequestId, answer: &Answer, device: &Device) -> Result<Decision, SessionError> {
        let request = self.state.find_open_request(id).ok_or_else(|| self.persister.receipts.late(id, None))?;
        requests::judge(request, answer, device.grant.approve_up_to)
    }

    async fn prompt_with_press(
        &mut self,
        mut board: OwnedMutexGuard<Board>,
        pressed: Pressed,
        by: Resolver,
    ) -> Result<Acted, SessionError> {
        let Pressed { text, rev, made, .. } = pressed;
        let Drawing { bodies, rows } = board.drawing(&self.state.origin.session_id, vec![made]);
        let content = Arc::new(vec![plexus_protocol::text_block(&text)]);
        let acted = self.try_decide(|state, env, plan| {
            state.log_drawing(bodies, rows, env, plan);
            let accepted = state.prompt(content, by, None, env, plan)?;
            Ok(Acted { accepted: true, rev, run_id: Some(accepted.run_id), request_id: None })
        });
        let acted = acted.await;
        match &acted {
            Ok(_) => drop(board),
            Err(_) => self.unload(board).await,
        }
        acted
    }

    /// Closes a question by a surface: by a press on it, or by an answer that declines.
    async fn settle(
        &mut self,
        mut board: OwnedMutexGuard<Board>,
        id: &RequestId,
        (name, pressed): (&str, Option<Pressed>),
        decision: &Decision,
        by: Resolver,
        key: Option<&AnswerKey>,
    ) -> Result<Receipt, SessionError> {
        let json = |action: &Action| serde_json::to_value(action).unwrap_or_default();
        let (answer, mut changes) = match pressed {
            Some(Pressed { action, made, .. }) => {
                let stored = json(&action.without_secrets());
                (AskAnswer { whole: (!action.secret.is_empty()).then(|| json(&action)), stored }, vec![made])
            }
            None => (AskAnswer::default(), Vec::new()),
        };
        let is_awaited = self.waiting_replies.iter().any(|(asker, reply)| asker == id && !reply.is_closed());
        changes.extend(board.set().and_then(|set| set.clear_ask(name, now()).ok()).map(Into::into));
        let Drawing { bodies, rows } = board.drawing(&self.state.origin.session_id, changes);
        let closed = self.try_decide(|state, env, plan| {
            state.log_drawing(bodies, rows, env, plan);
            state.answer_by_surface(id, (decision, answer, is_awaited), by, key, env, plan)
        });
        let closed = closed.await;
        match &closed {
            Ok(_) => drop(board),
            Err(_) => self.unload(board).await,
        }
        closed
    }

    /// Decides on an answer to an open request.
    pub(super) async fn decide_answer(
        &mut self,
        id: &RequestId,
        answer: &Answer,
        by: (Resolver, Option<Risk>),
        key: Option<&AnswerKey>,
    ) -> Result<Receipt, SessionError> {
        match self.state.surface_of_ask(id).map(str::to_owned) {
            Some(surface) => self.answer_surface((id, &surface), answer, by, key).await,
            None => self.try_decide(|state, env, plan| state.answer(id, answer, by, key, env, plan)).await,
        }
    }

    /// Handles an answer, given to the request, to a question by a surface, from a client that may not draw the surface.
    pub(super) async fn answer_surface(
        &mut self,
        (id, name): (&RequestId, &str),
        answer: &Answer,
        (by, up_to): (Resolver, Option<Risk>),
        key: Option<&AnswerKey>,
    ) -> Result<Receipt, SessionError> {
        let mut board = self.board().await?;
        let late = || self.persister.receipts.late(id, key);
        let decision = requests::judge(self.state.find_open_request(id).ok_or_else(late)?, answer, up_to)?;
        let request = match &decision {
            Decision::Answers(answers) if !answers.is_empty() => {
                let surface = board.set().and_then(|set| set.get(name));
                let surface = surface.ok_or_else(|| SessionError::Invalid("the surface is gone".into()))?;
                let submit = surface.ask().map(|ask| ask.submit.clone()).unwrap_or_default();
                Some(surface_form::press(surface, &surface.form(), &submit, answers)?)
            }
            _ => None,
        };
        let pressed = match request {
            Some(request) => Some(board.act(name, &request, now()).map_err(|error| match error {
                SessionError::Action(error) => {
                    SessionError::BadAnswer { code: "answer_unfit", message: error.to_string(), field: None }
                }
                other => other,
            })?),
            None => None,
        };
        self.settle(board, id, (name, pressed), &decision, by, key).await
    }

    /// Handles a request of an agent's tools to the session.
    pub(super) async fn ask(&mut self, work: AskWork) {
        match work {
            AskWork::Open { call, key, charge, reply } => {
                self.draw_waiting().await;
                let existing = key.as_ref().and_then(|key| self.state.ask_of_key(key));
                let opened = match existing {
                    Some(existing) => Ok(existing),
                    None => self.open_ask(*call, key, charge).await,
                };
                let _ = reply.send(opened);
            }
            AskWork::Fetch { id, waits: true, reply } if self.state.is_open(&id) => {
                self.waiting_replies.retain(|(_, reply)| !reply.is_closed());
                self.waiting_replies.push((id, reply));
            }
            AskWork::Fetch { id, reply, .. } => self.fetch(&id, reply).await,
        }
    }

    /// Sends the outcome of a question to its agent.
    async fn fetch(&mut self, id: &RequestId, reply: AskReply) {
        let fetched = match self.state.is_undelivered(id) {
            true => self.try_decide(|state, _, plan| Ok(state.fetch_ask(id, plan))).await,
            false => Ok(self.state.ask_view(id)),
        };
        let _ = reply.send(fetched.and_then(|view| view.ok_or_else(|| SessionError::NoRequest(id.clone()))));
    }

    /// Sends outcomes to agents that wait for them, and clears the mark of questions that ended without an answer from their surfaces.
    /// Called after every change of the session.
    pub(super) async fn follow_asks(&mut self) {
        if !self.waiting_replies.is_empty() {
            let state = &self.state;
            let ended: Vec<_> = self.waiting_replies.extract_if(.., |(id, _)| !state.is_open(id)).collect();
            for (id, reply) in ended {
                self.fetch(&id, reply).await;
            }
        }
        for (id, surface) in self.state.marked_asks_that_ended() {
            // If it cannot be stored, it is tried again after the next change.
            let _ = self.clear_mark(&id, &surface).await;
        }
    }

    async fn clear_mark(&mut self, id: &RequestId, name: &str) -> Result<(), SessionError> {
        let mut board = self.board().await?;
        let is_marked = |set: &&mut SurfaceSet| {
            let ask = set.get(name).and_then(|surface| surface.ask());
            ask.is_some_and(|ask| ask.request_id == id.as_str())
        };
        let cleared = board.set().filter(is_marked).and_then(|set| set.clear_ask(name, now()).ok());
        let made = cleared.map(Into::into).into_iter().collect();
        let Drawing { bodies, rows } = board.drawing(&self.state.origin.session_id, made);
        let stored = self.try_decide(|state, env, plan| {
            state.unmark_ask(id, plan);
            state.log_drawing(bodies, rows, env, plan);
            Ok(())
        });
        let stored = stored.await;
        match &stored {
            Ok(()) => drop(board),
            Err(_) => self.unload(board).await,
        }
        stored
    }

    async fn open_ask(
        &mut self,
        call: AskCall,
        key: Option<String>,
        charge: Option<Charge>,
    ) -> Result<AskView, SessionError> {
        let AskCall { surface: name, show, submit, question } = call;
        let mut board = self.board_for_more().await?;
        board.charge(charge);
        let set = board.set().ok_or(SessionError::Stopping)?;
        let mut changes = Vec::new();
        if let Some(show) = show {
            changes.push(set.show(show, now()).map_err(SessionError::Surface)?.into());
        }
        let unknown = || SurfaceError::Unknown {
            surface: name.clone(),
            known: set.iter().map(|surface| surface.name().to_owned()).collect(),
        };
        let opened = set.get(&name).ok_or_else(unknown).and_then(|surface| {
            if surface.ask().is_some_and(|ask| self.is_open(ask)) {
                let why = "a question is open on it: wait for it with ui_wait, or show another surface".to_owned();
                return Err(SurfaceError::Component { at: format!("surface {name}"), reason: why });
            }
            let form = surface.form();
            let buttons = surface_form::buttons(&form, &submit)?;
            Ok(surface_form::request(surface, &form, &buttons, question.as_deref()))
        });
        let request = match opened {
            Ok(request) => request,
            Err(error) => {
                if !changes.is_empty() {
                    self.unload(board).await;
                }
                return Err(SessionError::Surface(error));
            }
        };
        let session = self.state.origin.session_id.clone();
        let outcome = self.try_decide(|state, env, plan| {
            let id = state.ask_by_surface(request, name.clone(), key, env, plan);
            let ask = Ask { request_id: id.to_string(), submit };
            let set = board.set().ok_or(SessionError::Stopping)?;
            changes.push(set.set_ask(&name, ask, env.now).map_err(SessionError::Surface)?.into());
            let Drawing { bodies, rows } = board.drawing(&session, std::mem::take(&mut changes));
            state.log_drawing(bodies, rows, env, plan);
            state.fetch_ask(&id, plan).ok_or(SessionError::Stopping)
        });
        let outcome = outcome.await;
        match &outcome {
            Ok(_) => drop(board),
            Err(_) => self.unload(board).await,
        }
        outcome
    }
}
