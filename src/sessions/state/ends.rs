//! The ends of requests and runs.

use super::*;

impl SessionStateMachine {
    /// Ends a request by a decision. `notify`: whether the runtime gets the decision too.
    #[allow(clippy::too_many_arguments)] // the whole of what a decision is
    pub(super) fn resolve(
        &mut self,
        id: &RequestId,
        decision: &Decision,
        by: Resolver,
        key: Option<String>,
        notify: bool,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) -> Option<Receipt> {
        let open = self.remove_open(id)?;
        self.set_allowed_always(matches!(decision, Decision::Option { kind: Choice::AllowAlways, .. }));
        let receipt = requests::receipt(&open.request, decision, by, env.now);
        let own = self.is_own_request(id);
        self.record_resolution(&open.request, receipt.clone(), key, env, plan);
        if own {
            // The agent gets it through its tools, if it asked.
            plan.sync = true;
        } else if notify {
            // A decision is on disk before the runtime gets it.
            plan.sync = true;
            plan.orders.push(RuntimeCommand::Answer { key: open.key.clone(), decision: decision.clone() });
            if !open.request.secret {
                self.core.decided.push_back((open.key.clone(), decision.clone()));
            }
            if self.core.decided.len() > ANSWERED {
                self.core.decided.pop_front();
            }
            self.answered.push_back((open.key, Arc::clone(&open.request)));
            if self.answered.len() > ANSWERED {
                self.answered.pop_front();
            }
        }
        self.continue_run(&open.request.run_id, env, plan);
        Some(receipt)
    }

    fn remove_open(&mut self, id: &RequestId) -> Option<OpenRequest> {
        self.core.asks.remove(id);
        self.open.remove(id)
    }

    /// Reports that the run continues if the last open request of the run closed.
    fn continue_run(&mut self, run_id: &RunId, env: &DecisionEnv<'_>, plan: &mut Plan) {
        let waits = self.open.values().any(|other| other.request.run_id == *run_id);
        let active = self.core.run.as_ref().is_some_and(|run| run.run_id == *run_id && !run.cancelling);
        if active && !waits {
            let body = RunBody::new(run_id, RunStatus::Running);
            self.log(EventDraft::new(Kind::RunStatus, &body), env, plan);
        }
    }

    /// Withdraws a request that a user answered outside the gateway; the event names who decided.
    pub(super) fn answered_elsewhere(
        &mut self,
        id: &RequestId,
        elsewhere: AnsweredElsewhere,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) {
        let Some(open) = self.remove_open(id) else { return };
        let receipt = requests::receipt_elsewhere(&open.request, elsewhere, env.now);
        self.record_resolution(&open.request, receipt, None, env, plan);
        self.continue_run(&open.request.run_id, env, plan);
    }

    /// Corrects the receipt of an answer by another event: the runtime reports that the answer came too late.
    pub(super) fn answer_lost(
        &mut self,
        key: &RequestKey,
        elsewhere: AnsweredElsewhere,
        env: &DecisionEnv<'_>,
        plan: &mut Plan,
    ) {
        let Some(index) = self.answered.iter().rposition(|(answered, _)| answered.means(key)) else { return };
        let Some((_, request)) = self.answered.remove(index) else { return };
        let receipt = requests::receipt_elsewhere(&request, elsewhere, env.now);
        self.record_resolution(&request, receipt, None, env, plan);
    }

    /// Ends a request that can no longer be answered; the runtime is not notified.
    pub(super) fn close(&mut self, id: &RequestId, state: RequestState, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        let Some(open) = self.remove_open(id) else { return };
        let receipt =
            Receipt { state, ..requests::receipt(&open.request, &Decision::Withdrawn, Resolver::gateway(), env.now) };
        self.record_resolution(&open.request, receipt, None, env, plan);
    }

    pub(super) fn record_resolution(
        &mut self,
        request: &Arc<Request>,
        receipt: Receipt,
        key: Option<String>,
        env: &DecisionEnv<'_>,
        plan: &mut Plan,
    ) {
        if !self.note_ask_ended(&receipt.request_id, &receipt) {
            self.note_ceiling_ended(&receipt.request_id, &receipt, env);
        }
        let request =
            Arc::new(Request { state: receipt.state, receipt: Some(receipt.clone()), ..Request::clone(request) });
        // Every client reads this event: it names who decided, not whether that was the reader.
        let body = Resolution {
            session_id: self.origin.session_id.as_str(),
            request_id: &receipt.request_id,
            state: receipt.state,
            option_id: receipt.option_id.as_deref(),
            ok: receipt.ok,
            value: receipt.value.as_deref(),
            ids: receipt.ids.as_deref(),
            answers: receipt.answers.as_ref(),
            reason: receipt.reason.as_deref(),
            edited: receipt.edited.as_deref(),
            edited_display: receipt.edited_display.as_deref(),
            edited_warnings: &receipt.edited_warnings,
            resolved_by: &receipt.resolved_by,
            answered_by: receipt.answered_by,
            at: receipt.at,
        };
        self.log_in(&request.run_id, EventDraft::new(Kind::RequestResolved, &body), env, plan);
        plan.requests.push(RequestChange { request, key, event: plan.events.len() - 1 });
        self.touch(env, plan);
    }

    pub(super) fn end_run(&mut self, end: &RunEnd, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        let Some(run) = &self.core.run else { return };
        let (run_id, cancelling) = (run.run_id.clone(), run.cancelling);
        // The gateway's own requests outlive their run.
        let is_withdrawn =
            |id: &RequestId, open: &OpenRequest| open.request.run_id == run_id && !self.is_own_request(id);
        let open: Vec<RequestId> =
            self.open.iter().filter(|(id, open)| is_withdrawn(id, open)).map(|(id, _)| id.clone()).collect();
        for id in open {
            // The run ended while its request was open. The runtime is notified all the same: some agents would otherwise keep waiting.
            self.resolve(&id, &Decision::Withdrawn, Resolver::gateway(), None, true, env, plan);
        }
        let reason = match end.status {
            RunStatus::Cancelled => "cancelled",
            RunStatus::Error => "the run failed",
            _ => "the run ended",
        };
        let dangling: Vec<String> = self.core.run.iter().flat_map(|run| run.tools.keys().cloned()).collect();
        for id in dangling {
            let acted = if end.status == RunStatus::Completed { self.note_done(&id) } else { None };
            self.close_tool(&id, reason, env, plan);
            self.report_unasked(acted, env, plan);
        }
        // The runtime's own status counts: it may have completed in spite of a cancel.
        let status = end.status;
        let spent = self.core.run.as_mut().map(|run| std::mem::take(&mut run.spent));
        let spent = spent.filter(|spent| !spent.is_nothing());
        let body = RunBody {
            stop_reason: end.stop_reason.clone(),
            message: end.message.clone(),
            cancelling,
            usage: spent,
            ..RunBody::new(&run_id, status)
        };
        let draft = EventDraft { native: end.native.clone(), ..EventDraft::new(Kind::RunEnded, &body) };
        self.log(draft, env, plan);
        let key = self.core.run.take().and_then(|run| run.key);
        self.remember_key(key, &run_id, || run_outcome(status, end.stop_reason.as_deref(), end.message.as_deref()));
        self.core.decided.clear();
        plan.ended.push(run_id);
        self.touch(env, plan);
        self.send_answers(env, plan);
    }
}
