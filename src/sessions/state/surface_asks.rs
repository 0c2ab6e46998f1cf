//! Questions that an agent asks by a surface. Each is a request like any other; but its answer is for the agent's tools, not for its
//! dialect, and it stays open when its run ends.

use serde_json::Value;

use super::*;
use plexus_protocol::api::surfaces::AskView;

/// Maximum number of questions by surfaces that a session remembers, with their outcomes. Beyond it ended ones are dropped: first those
/// whose agent has the outcome, then the others, each from the oldest. Open ones are not dropped; [`OPEN_MAX`] limits them.
const SURFACE_ASKS: usize = 64;

/// A question by a surface, as the session remembers it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SurfaceAsk {
    pub(crate) surface: String,
    /// The idempotency key of the call that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// `true` if its surface still names it as the open question.
    #[serde(default)]
    marked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<AskOutcome>,
}

/// The end of a question by a surface.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AskOutcome {
    state: RequestState,
    /// The answer for the agent; `None` if nobody answered.
    answer: Option<AskAnswer>,
    by: Resolver,
    /// The time when the question ended.
    at: Timestamp,
    /// `true` if the agent has the outcome.
    #[serde(rename = "told", default)]
    delivered: bool,
}

/// The answer to a question by a surface.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AskAnswer {
    /// The stored form of the answer: without text typed into inputs that hide it. Null if the user declined.
    #[serde(rename = "kept")]
    pub(crate) stored: Value,
    /// The complete answer, if it differs; never stored, so that a restart of the gateway loses it.
    #[serde(skip)]
    pub(crate) whole: Option<Value>,
}

impl AskAnswer {
    fn value(&self) -> &Value {
        self.whole.as_ref().unwrap_or(&self.stored)
    }
}

impl SessionStateMachine {
    /// Returns the surface of a question by a surface, open or closed; `None` if `id` is no such question.
    pub(crate) fn surface_of_ask(&self, id: &RequestId) -> Option<&str> {
        self.core.surface_asks.get(id).map(|ask| ask.surface.as_str())
    }

    /// Returns the question that was asked under this idempotency key.
    pub(crate) fn ask_of_key(&self, key: &str) -> Option<AskView> {
        let ask = self.core.surface_asks.iter().find(|(_, ask)| ask.key.as_deref() == Some(key));
        ask.and_then(|(id, _)| self.ask_view(id))
    }

    /// Returns whether a question by a surface has ended, and its agent was not notified.
    pub(crate) fn is_undelivered(&self, id: &RequestId) -> bool {
        self.core.surface_asks.get(id).and_then(|ask| ask.outcome.as_ref()).is_some_and(|outcome| !outcome.delivered)
    }

    /// Returns the questions that ended without an answer while their surfaces still name them.
    pub(crate) fn marked_asks_that_ended(&self) -> Vec<(RequestId, String)> {
        let ended = self.core.surface_asks.iter().filter(|(_, ask)| ask.marked && ask.outcome.is_some());
        ended.map(|(id, ask)| (id.clone(), ask.surface.clone())).collect()
    }

    /// Records that a question's surface no longer names it.
    pub(crate) fn unmark_ask(&mut self, id: &RequestId, plan: &mut Plan) {
        if let Some(ask) = self.core.surface_asks.get_mut(id) {
            ask.marked = false;
            plan.dirty = true;
        }
    }

    /// Removes hidden input from the answers, because the agent that asked has ended.
    pub(crate) fn forget_secrets(&mut self) {
        let outcomes = self.core.surface_asks.values_mut().filter_map(|ask| ask.outcome.as_mut());
        outcomes.filter_map(|outcome| outcome.answer.as_mut()).for_each(|answer| answer.whole = None);
    }

    /// Returns an open request.
    pub(crate) fn find_open_request(&self, id: &RequestId) -> Option<&Arc<Request>> {
        self.open.get(id).map(|open| &open.request)
    }

    /// Returns the outcome of a question by a surface so far.
    pub(crate) fn ask_view(&self, id: &RequestId) -> Option<AskView> {
        let outcome = self.core.surface_asks.get(id)?.outcome.as_ref();
        Some(AskView {
            ask_id: id.clone(),
            state: outcome.map_or(RequestState::Open, |outcome| outcome.state),
            answer: outcome.and_then(|outcome| Some(outcome.answer.as_ref()?.value().clone())),
            by: outcome.filter(|outcome| outcome.answer.is_some()).map(|outcome| outcome.by.name.clone()),
        })
    }

    /// Opens a question by a surface.
    pub(crate) fn ask_by_surface(
        &mut self,
        ask: AgentRequest,
        surface: String,
        key: Option<String>,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) -> RequestId {
        while self.core.surface_asks.len() >= SURFACE_ASKS {
            let ended = self.core.surface_asks.iter().filter_map(|(id, ask)| Some((id, ask.outcome.as_ref()?)));
            let Some((oldest, _)) = ended.min_by_key(|(_, end)| (!end.delivered, end.at)) else { break };
            let oldest = oldest.clone();
            self.core.surface_asks.remove(&oldest);
        }
        self.open_as(ask, Some(SurfaceAsk { surface, key, marked: true, outcome: None }), env, plan)
    }

    /// Returns the outcome of a question by a surface. If the question is closed, the outcome counts as delivered to its agent.
    pub(crate) fn fetch_ask(&mut self, id: &RequestId, plan: &mut Plan) -> Option<AskView> {
        let view = self.ask_view(id);
        if let Some(outcome) = self.core.surface_asks.get_mut(id).and_then(|ask| ask.outcome.as_mut())
            && !std::mem::replace(&mut outcome.delivered, true)
        {
            plan.dirty = true;
        }
        view
    }

    /// Closes a question by a surface with the outcome for the agent. `is_awaited`: a caller waits for the outcome, so that no prompt has
    /// to report it.
    pub(crate) fn answer_by_surface(
        &mut self,
        id: &RequestId,
        (decision, answer, is_awaited): (&Decision, AskAnswer, bool),
        by: Resolver,
        key: Option<&AnswerKey>,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) -> Result<Receipt, SessionError> {
        let Some(open) = self.open.get(id) else { return Err(SessionError::NoRequest(id.clone())) };
        let key = key.map(|key| key.row(open.request.secret));
        let receipt = self.resolve(id, decision, by, key, true, env, plan);
        if let Some(ask) = self.core.surface_asks.get_mut(id) {
            // The answer and the change of the surface are one commit.
            ask.marked = false;
            if let Some(outcome) = ask.outcome.as_mut() {
                outcome.answer = Some(answer);
                outcome.delivered = is_awaited;
            }
        }
        self.send_answers(env, plan);
        receipt.ok_or_else(|| SessionError::NoRequest(id.clone()))
    }

    /// Records how a question by a surface ended. Returns whether `id` is one.
    pub(super) fn note_ask_ended(&mut self, id: &RequestId, receipt: &Receipt) -> bool {
        let Some(ask) = self.core.surface_asks.get_mut(id) else { return false };
        let (state, by) = (receipt.state, receipt.resolved_by.clone());
        ask.outcome = Some(AskOutcome { state, answer: None, by, at: receipt.at, delivered: false });
        true
    }

    /// Sends the agent, by the next prompt, the answers that arrived when none of its runs could fetch them.
    pub(super) fn send_answers(&mut self, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        if self.core.run.is_some() || self.core.exited.is_some() {
            return;
        }
        let undelivered =
            |ask: &SurfaceAsk| ask.outcome.as_ref().is_some_and(|end| !end.delivered && end.answer.is_some());
        let waiting: Vec<RequestId> =
            self.core.surface_asks.iter().filter(|(_, ask)| undelivered(ask)).map(|(id, _)| id.clone()).collect();
        for id in waiting {
            let Some(ask) = self.core.surface_asks.get_mut(&id) else { continue };
            let (surface, Some(end)) = (ask.surface.clone(), ask.outcome.as_mut()) else { continue };
            let by = end.by.clone();
            let text = match end.answer.as_ref().filter(|answer| !answer.stored.is_null()) {
                Some(AskAnswer { stored, .. }) => {
                    format!("Answer to your question {id} on your surface {surface}, by {}: {stored}", by.name)
                }
                None => format!("Your question {id} on your surface {surface} was declined by {}.", by.name),
            };
            let content = Arc::new(vec![plexus_protocol::text_block(&text)]);
            // With a full queue it is retained for `ui_wait`, or for the end of the next run.
            if self.prompt(content, by, None, env, plan).is_ok()
                && let Some(end) = self.core.surface_asks.get_mut(&id).and_then(|ask| ask.outcome.as_mut())
            {
                end.delivered = true;
            }
        }
    }
}
