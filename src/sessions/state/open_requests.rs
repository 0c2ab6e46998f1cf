//! Requests of the runtime: opened, changed, answered, withdrawn.

use super::*;

impl SessionStateMachine {
    /// Updates the stored request keys from those that are open in the runtime. Bare keys (without an occurrence) get theirs; of several
    /// decisions under one bare key only the last can have been lost. Decisions on requests that are no longer open in the runtime have
    /// arrived, and are dropped.
    pub(super) fn sync_request_keys(&mut self, asks: &[RequestKey]) {
        for open in self.open.values_mut().filter(|open| open.key.is_bare()) {
            if let Some(ask) = asks.iter().find(|ask| open.key.means(ask)) {
                open.key.clone_from(ask);
            }
        }
        self.core.asks = self.open.iter().map(|(id, open)| (id.clone(), open.key.clone())).collect();
        let mut undelivered: VecDeque<(RequestKey, Decision)> = VecDeque::new();
        for (key, decision) in std::mem::take(&mut self.core.decided).into_iter().rev() {
            let Some(ask) = asks.iter().find(|ask| key.means(ask)) else { continue };
            let covered = undelivered.iter().any(|(key, _)| key == ask) || self.open.values().any(|o| o.key == *ask);
            if !covered {
                undelivered.push_front((ask.clone(), decision));
            }
        }
        self.core.decided = undelivered;
    }

    /// Returns whether an open request is the gateway's own, of which no runtime knows: a question by a surface, or about a ceiling.
    pub(super) fn is_own_request(&self, id: &RequestId) -> bool {
        self.core.surface_asks.contains_key(id) || self.is_ceiling_ask(id)
    }

    /// Returns the keys of the session's requests, open or answered, and the ticket of its running prompt.
    pub(crate) fn pending(&self) -> (Vec<RequestKey>, Option<Ticket>) {
        let runtime_asks = self.open.iter().filter(|(id, _)| !self.is_own_request(id));
        let open = runtime_asks.map(|(_, open)| &open.key);
        let asks = open.chain(self.core.decided.iter().map(|(key, _)| key)).cloned().collect();
        (asks, self.core.run.as_ref().and_then(|run| run.ticket))
    }

    pub(crate) fn open_requests(&self) -> Vec<Arc<Request>> {
        self.open.values().map(|open| Arc::clone(&open.request)).collect()
    }

    /// Returns the request that expires next, and its deadline.
    pub(crate) fn deadline(&self) -> Option<(Instant, RequestId)> {
        let deadlines = self.open.iter().filter_map(|(id, open)| Some((open.deadline?, id.clone())));
        deadlines.min_by_key(|(at, _)| *at)
    }

    pub(super) fn open_request(&mut self, ask: AgentRequest, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        self.open_as(ask, None, env, plan);
    }

    /// Records a question that the runtime put to a reviewer of its own, with the decision: users are not asked.
    pub(super) fn record_review(
        &mut self,
        ask: AgentRequest,
        review: AgentReview,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) {
        let request = self.announce(ask, None, None, env, plan);
        let receipt = requests::receipt_of_review(&request, review, env.now);
        self.record_resolution(&request, receipt, None, env, plan);
    }

    /// Makes a request from a question and logs it.
    fn announce(
        &mut self,
        mut ask: AgentRequest,
        surface: Option<SurfaceAsk>,
        expires_at: Option<Timestamp>,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) -> Arc<Request> {
        self.note_agreed();
        if let Some(first) = ask.first_mention.take() {
            self.record_event(first, env, plan);
        }
        let run_id = self.core.run.as_ref().map_or_else(|| self.zero_run.clone(), |run| run.run_id.clone());
        let id = RequestId::trusted((env.mint)("q_"));
        let owners = (self.origin.session_id.clone(), run_id, self.origin.runtime_id.clone());
        let folders = self.core.folders();
        let times = (env.now, expires_at);
        let request = Arc::new(requests::open(&ask, id.clone(), owners, folders, self.core.generation, times));
        let draft = EventDraft::new(Kind::RequestOpened, &*request.brief());
        // A surface's question is the gateway's own event.
        let draft = EventDraft { native: surface.is_none().then(|| ask.native.clone()), ..draft };
        if let Some(surface) = surface {
            self.core.surface_asks.insert(id, surface);
        }
        self.log(draft, env, plan);
        plan.requests.push(RequestChange { request: Arc::clone(&request), key: None, event: plan.events.len() - 1 });
        request
    }

    /// Opens a request; `surface` is set if it is a question by a surface.
    pub(super) fn open_as(
        &mut self,
        ask: AgentRequest,
        surface: Option<SurfaceAsk>,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) -> RequestId {
        // An observe-only request ends only where it is answered: if it expired here, that answer would be lost.
        let answerable = !ask.observe_only;
        let expire_ms = env.rules.expire_ms.filter(|_| answerable);
        let expires_at = expire_ms.map(|ms| env.now.plus_millis(i64::try_from(ms).unwrap_or(i64::MAX)));
        let deadline = expire_ms.and_then(|ms| env.mono.checked_add(std::time::Duration::from_millis(ms)));
        let key = ask.key.clone();
        let request = self.announce(ask, surface, expires_at, env, plan);
        let (id, run_id) = (request.request_id.clone(), request.run_id.clone());
        let first = !self.open.values().any(|open| open.request.run_id == run_id);
        let full = self.open.len() >= OPEN_MAX;
        self.core.asks.insert(id.clone(), key.clone());
        self.open.insert(id.clone(), OpenRequest { request, key, deadline });
        let cancelling = self.core.run.as_ref().is_some_and(|run| run.cancelling);
        if full {
            let message = format!("{OPEN_MAX} requests are open already: this one was withdrawn unanswered");
            let body = ErrorBody::new("too_many_requests", &message).with("request_id", id.as_str());
            self.log(EventDraft::new(Kind::Error, &body), env, plan);
        }
        if full || (cancelling && answerable) {
            // A run that is being cancelled opens no requests; some agents would never end without an answer.
            self.resolve(&id, &Decision::Withdrawn, Resolver::gateway(), None, true, env, plan);
        } else if first && run_id != self.zero_run {
            let body = RunBody::new(&run_id, RunStatus::AwaitingUi);
            self.log(EventDraft::new(Kind::RunStatus, &body), env, plan);
        }
        self.touch(env, plan);
        id
    }

    /// Revises an open request that the runtime changed: the new revision has to be read again before it can be allowed.
    pub(super) fn revise_request(&mut self, ask: &AgentRequest, env: &DecisionEnv<'_>, plan: &mut Plan) {
        let Some(open) = self.open.values_mut().find(|open| open.key.means(&ask.key)) else { return };
        let Some(changed) = requests::revise(&open.request, ask, self.core.folders()) else { return };
        let request = Arc::new(changed);
        open.request = Arc::clone(&request);
        let draft = EventDraft::new(Kind::RequestUpdated, &*request.brief());
        self.log_in(&request.run_id, draft, env, plan);
        plan.requests.push(RequestChange { request, key: None, event: plan.events.len() - 1 });
        self.touch(env, plan);
    }

    /// Ends the session with its runs and requests, because the runtime has ended.
    pub(crate) fn runtime_exited(&mut self, exit: &RuntimeExit, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        if self.core.exited.is_some() {
            return;
        }
        let reason = exit.reason.clone().unwrap_or_else(|| match (&exit.code, &exit.signal) {
            (Some(code), _) => format!("the agent exited with code {code}"),
            (_, Some(signal)) => format!("the agent was killed by {signal}"),
            _ => "the agent is gone".into(),
        });
        if !exit.left || self.core.checkpoint.is_none() {
            let status = if exit.stopped { RunStatus::Cancelled } else { RunStatus::Error };
            self.withdraw_all(status, &reason, env, plan);
        }
        let body = RuntimeStatusBody {
            message: Some(reason.clone()),
            exit: Some(exit.clone()),
            ..RuntimeStatusBody::new(&self.origin.runtime_id, "exited")
        };
        self.log(EventDraft::new(Kind::RuntimeStatus, &body), env, plan);
        self.core.exited = Some(reason);
        self.core.left = exit.left && self.core.checkpoint.is_some();
        plan.dirty = true;
    }

    /// Ends the current run, all open requests and all queued prompts.
    pub(super) fn withdraw_all(&mut self, status: RunStatus, reason: &str, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        for id in self.open.keys().cloned().collect::<Vec<_>>() {
            self.close(&id, RequestState::Orphaned, env, plan);
        }
        self.end_run(&RunEnd { status, stop_reason: None, message: Some(reason.to_owned()), native: None }, env, plan);
        while let Some(queued) = self.core.queue.pop_front() {
            self.end_queued(queued, RunStatus::Error, Some(reason), env, plan);
        }
        self.core.decided.clear();
        plan.dirty = true;
    }

    /// Ends the pending work of a session that waited for its endpoint: the endpoint is no longer attached, or refuses.
    pub(crate) fn abandon(&mut self, reason: &str, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        if self.core.exited.is_some() && self.has_pending_work() {
            self.withdraw_all(RunStatus::Error, reason, env, plan);
        }
    }

    /// Returns whether the session continues in its endpoint without the gateway, and has to be opened there again.
    pub(crate) fn continues_in_endpoint(&self) -> bool {
        self.core.exited.is_some() && self.core.left && !self.core.archived
    }

    /// Returns whether a run, an open request or a queued prompt is pending.
    pub(crate) fn has_pending_work(&self) -> bool {
        self.unfinished() || !self.core.queue.is_empty()
    }

    /// Records that the runtime no longer accepts commands.
    pub(crate) fn stuck(&mut self, env: &DecisionEnv<'_>, plan: &mut Plan) {
        let body = RuntimeStatusBody {
            message: Some("the agent does not read its input and is being stopped".to_owned()),
            ..RuntimeStatusBody::new(&self.origin.runtime_id, "stuck")
        };
        self.log(EventDraft::new(Kind::RuntimeStatus, &body), env, plan);
        plan.dirty = true;
    }

    /// Applies an answer: the first one that fits the request wins.
    pub(crate) fn answer(
        &mut self,
        id: &RequestId,
        answer: &Answer,
        (by, up_to): (Resolver, Option<Risk>),
        key: Option<&AnswerKey>,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) -> Result<Receipt, SessionError> {
        let Some(open) = self.open.get(id) else { return Err(SessionError::NoRequest(id.clone())) };
        let decision = requests::judge(&open.request, answer, up_to)?;
        let secret = open.request.secret;
        if let (Decision::Option { kind, .. }, Some(tool)) = (&decision, open.request.tool_call_id.clone())
            && let (true, Some(run)) = (kind.rejects(), &mut self.core.run)
            && run.tools.contains_key(&tool)
            && let Some(rejected) = run.tools.change().get_mut(&tool)
        {
            *rejected = true;
        }
        let key = key.map(|key| key.row(secret));
        self.resolve(id, &decision, by, key, true, env, plan).ok_or_else(|| SessionError::NoRequest(id.clone()))
    }

    /// Returns whether a request is open.
    pub(crate) fn is_open(&self, id: &RequestId) -> bool {
        self.open.contains_key(id)
    }

    /// Ends a request whose deadline passed.
    pub(crate) fn expire(&mut self, id: &RequestId, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        self.resolve(id, &Decision::Expired, Resolver::gateway(), None, true, env, plan);
    }
}

/// The receipts of the requests that closed last, for late answers. Held outside the state, because only stored decisions are added: one
/// that could not be stored is rolled back with the state.
#[derive(Default)]
pub(crate) struct ClosedRequests {
    pub(super) closed: VecDeque<(Receipt, Option<String>)>,
}

impl ClosedRequests {
    /// Adds the receipt of a closed request; `key` is that of the answer that won.
    pub(crate) fn push(&mut self, receipt: Receipt, key: Option<String>) {
        self.closed.push_back((receipt, key));
        if self.closed.len() > RECEIPTS {
            self.closed.pop_front();
        }
    }

    /// Returns the receipt of a recently closed request.
    pub(crate) fn get(&self, id: &RequestId) -> Option<&Receipt> {
        self.find(id).map(|(receipt, _)| receipt)
    }

    /// Returns the error for an answer to a closed request.
    pub(crate) fn late(&self, id: &RequestId, key: Option<&AnswerKey>) -> SessionError {
        match self.find(id) {
            Some((receipt, won_with)) => late(receipt.clone(), won_with.as_deref(), key),
            None => SessionError::NoRequest(id.clone()),
        }
    }

    pub(super) fn find(&self, id: &RequestId) -> Option<&(Receipt, Option<String>)> {
        self.closed.iter().rev().find(|(receipt, _)| receipt.request_id == *id)
    }
}

/// Returns the error for an answer to a request that `receipt` closed.
pub(crate) fn late(receipt: Receipt, won_with: Option<&str>, key: Option<&AnswerKey>) -> SessionError {
    match receipt.state {
        RequestState::Answered => {
            let won = won_with.zip(key).map_or(Ok(false), |(row, key)| key.won(row, &receipt));
            won.map_or_else(|reused| reused, |won| SessionError::AlreadyResolved(Box::new(Receipt { won, ..receipt })))
        }
        _ => SessionError::Closed(Box::new(receipt)),
    }
}
