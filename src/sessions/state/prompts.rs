//! Prompts and runs: accepted, queued, started, cancelled.

use super::*;

/// Returns the beginning of the text of a message event: `max` bytes and a few more.
pub(super) fn text_of_body(body: &[u8], max: usize) -> String {
    #[derive(Deserialize)]
    pub(super) struct Body<'a> {
        #[serde(borrow)]
        content: Block<'a>,
    }
    let text = serde_json::from_slice::<Body<'_>>(body).ok().and_then(|body| body.content.text);
    let mut out = String::new();
    for slice in text.and_then(|text| StringSlices::new(text, max)).into_iter().flatten() {
        out.push_str(&slice);
        // One character more than the maximum, so that the caller's cut adds an ellipsis.
        if out.len() >= max + 4 {
            break;
        }
    }
    out
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<&'a RawValue>,
}

/// Returns the beginning of the text of ACP content blocks, for lists and titles: `max` bytes and a few more.
fn text_of_blocks(content: &[Box<RawValue>], max: usize) -> String {
    let mut out = String::new();
    for block in content {
        let text = serde_json::from_str::<Block<'_>>(block.get()).ok().and_then(|block| block.text);
        let Some(slices) = text.and_then(|text| StringSlices::new(text, max)) else { continue };
        if !out.is_empty() {
            out.push(' ');
        }
        for slice in slices {
            out.push_str(&slice);
            // One character more than the maximum, so that the caller's cut adds an ellipsis.
            if out.len() >= max + 4 {
                return out;
            }
        }
    }
    out
}

impl SessionStateMachine {
    /// Returns the content of the queued prompts, the next one first.
    pub(crate) fn waiting(&self) -> Vec<(RunId, PromptContent)> {
        let content = |queued: &QueuedRun| Some((queued.run_id.clone(), queued.content.clone()?));
        self.core.queue.iter().filter_map(content).collect()
    }

    /// Returns the runs whose prompts were stored when the session was restored.
    pub(crate) fn stored_prompts(&self) -> BTreeSet<RunId> {
        self.stored_prompts.clone()
    }

    /// Fills in the stored content of prompts. Content that cannot be read counts as missing.
    pub(crate) fn load_prompts(&mut self, stored: &[(RunId, Vec<u8>)]) {
        self.stored_prompts = stored.iter().map(|(run_id, _)| run_id.clone()).collect();
        let content = |run_id: &RunId| {
            let (_, content) = stored.iter().find(|(stored, _)| stored == run_id)?;
            serde_json::from_slice(content).ok().map(Arc::new)
        };
        if let Some(run) = &mut self.core.run {
            run.content = run.content.take().or_else(|| content(&run.run_id));
        }
        for queued in &mut self.core.queue {
            queued.content = queued.content.take().or_else(|| content(&queued.run_id));
        }
    }

    /// Records a run that another client of the runtime started. Prompts wait until it ends.
    pub(super) fn begin_foreign_run(&mut self, by: String, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        if self.core.run.is_some() {
            // A runtime has one run per session: this run is known already.
            return;
        }
        let run_id = RunId::trusted((env.mint)("r_"));
        let by = Resolver::elsewhere(label(&by, TITLE_MAX));
        let body = RunBody { by: Some(by.clone()), ..RunBody::new(&run_id, RunStatus::Running) };
        let draft = EventDraft::new(Kind::RunStarted, &body);
        self.core.prompted_at = Some(env.now);
        self.core.run = Some(ActiveRun {
            run_id,
            seq: 0,
            started_at: env.now,
            ticket: None,
            content: None,
            by,
            key: None,
            cancelling: false,
            tools: Large::default(),
            activity: RunActivity::default(),
            spent: Spending::default(),
            own_calls: Vec::new(),
        });
        self.core.archived = false;
        self.log(draft, env, plan);
        self.touch(env, plan);
    }

    /// Starts a run with a prompt, or queues it. A prompt with a known idempotency key starts nothing.
    pub(crate) fn prompt(
        &mut self,
        content: PromptContent,
        by: Resolver,
        key: Option<PromptKey>,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) -> Result<AcceptedPrompt, SessionError> {
        if let Some(accepted) = self.prompt_of_key(key.as_ref())? {
            return Ok(accepted);
        }
        self.accept_prompt(content, by, key, false, env, plan)
    }

    /// Sends the prompt of a run again. A current run is cancelled first, and the prompt comes right after it, before the queued ones.
    pub(crate) fn again(
        &mut self,
        run_id: &RunId,
        content: PromptContent,
        by: Resolver,
        key: Option<PromptKey>,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) -> Result<AcceptedPrompt, SessionError> {
        if let Some(accepted) = self.prompt_of_key(key.as_ref())? {
            return Ok(accepted);
        }
        let cancelling = self.core.run.as_ref().filter(|run| run.run_id == *run_id).map(|run| run.cancelling);
        if cancelling == Some(false) {
            self.cancel(Some(run_id), (&by, None), env, plan)?;
        }
        self.accept_prompt(content, by, key, cancelling.is_some(), env, plan)
    }

    fn accept_prompt(
        &mut self,
        content: PromptContent,
        by: Resolver,
        key: Option<PromptKey>,
        next: bool,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) -> Result<AcceptedPrompt, SessionError> {
        if let Some(reason) = &self.core.exited {
            return Err(SessionError::RuntimeUnavailable(reason.clone()));
        }
        if self.core.queue.len() >= env.rules.queue {
            return Err(SessionError::QueueFull(self.core.queue.len()));
        }
        // A prompt unarchives a session.
        self.core.archived = false;
        let run_id = RunId::trusted((env.mint)("r_"));
        let text = label(&text_of_blocks(&content, TEXT_SHOWN), TEXT_SHOWN);
        if self.core.title.is_none() && !text.is_empty() {
            self.core.title = Some(label(&text, TITLE_MAX));
        }
        let (content, key) = (Some(content), key.map(PromptKey::stored));
        self.prompted_under_ceilings(env);
        let ceiling = self.blocking_ceiling();
        let mut queued = QueuedRun { run_id: run_id.clone(), seq: 0, content, text, by, key, ceiling };
        let ahead = if next { 1 } else { self.core.queue.len() + usize::from(self.core.run.is_some()) };
        let waits = ahead > 0 || ceiling.is_some();
        if waits {
            let key = queued.key.as_ref().map(|key| key.key().to_owned());
            let message = ceiling.map(|ceiling| ceiling.wait_reason().to_owned());
            let body =
                RunBody { by: Some(queued.by.clone()), key, message, ..RunBody::new(&run_id, RunStatus::Queued) };
            let draft = EventDraft::new(Kind::RunStatus, &body);
            self.log_queued(&mut queued, draft, env, plan);
            if next {
                self.core.queue.push_front(queued);
            } else {
                self.core.queue.push_back(queued);
            }
        } else {
            self.start(queued, env, plan);
        }
        self.touch(env, plan);
        Ok(AcceptedPrompt { queued: waits, ..accepted_prompt(run_id, ahead) })
    }

    pub(super) fn log_queued(
        &mut self,
        queued: &mut QueuedRun,
        draft: EventDraft,
        env: &DecisionEnv<'_>,
        plan: &mut Plan,
    ) {
        plan.events.push(NewEvent {
            run_id: queued.run_id.clone(),
            seq: queued.seq,
            at: env.now,
            kind: draft.kind,
            body: draft.body,
            native: None,
        });
        queued.seq += 1;
        self.core.updated_at = env.now;
    }

    fn start(&mut self, queued: QueuedRun, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        let Some(native) = self.core.native_id.clone() else { return };
        let ticket = (env.ticket)();
        self.core.prompted_at = Some(env.now);
        self.core.run = Some(ActiveRun {
            run_id: queued.run_id.clone(),
            seq: queued.seq,
            started_at: env.now,
            ticket: Some(ticket),
            content: queued.content.clone(),
            by: queued.by.clone(),
            key: queued.key.clone(),
            cancelling: false,
            tools: Large::default(),
            activity: RunActivity::default(),
            spent: Spending::default(),
            own_calls: Vec::new(),
        });
        let key = queued.key.as_ref().map(StoredPromptKey::key);
        let by = Some(queued.by.clone());
        let body = RunBody { by, key: key.map(str::to_owned), ..RunBody::new(&queued.run_id, RunStatus::Running) };
        self.log(EventDraft::new(Kind::RunStarted, &body), env, plan);
        let content = queued.content.as_deref().map(Vec::as_slice).unwrap_or_default();
        for block in content {
            #[derive(Serialize)]
            struct Body<'a> {
                #[serde(rename = "sessionUpdate")]
                update: &'static str,
                content: &'a RawValue,
                #[serde(rename = "_meta")]
                meta: Meta<'a>,
            }
            #[derive(Serialize)]
            struct Meta<'a> {
                plexus: By<'a>,
            }
            #[derive(Serialize)]
            struct By<'a> {
                by: &'a Resolver,
                /// The idempotency key, by which the client recognizes its own prompt.
                #[serde(skip_serializing_if = "Option::is_none")]
                key: Option<&'a str>,
            }
            let body = Body {
                update: "user_message_chunk",
                content: block,
                meta: Meta { plexus: By { by: &queued.by, key } },
            };
            self.log(one_line(EventDraft::new(Kind::UserMessageChunk, &body)), env, plan);
        }
        plan.orders.push(RuntimeCommand::Prompt { ticket, native, content: content.to_vec() });
        self.touch(env, plan);
    }

    pub(super) fn start_next(&mut self, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        if self.core.exited.is_none()
            && self.core.run.is_none()
            && self.blocking_ceiling().is_none()
            && let Some(next) = self.core.queue.pop_front()
        {
            self.start(next, env, plan);
        }
    }

    /// Cancels the current run, or a queued one. Open requests are withdrawn first: some agents hang on an unanswered
    /// request, and one would run the command. Observe-only requests stay open until they end at their origin.
    pub(crate) fn cancel(
        &mut self,
        run_id: Option<&RunId>,
        (by, reason): (&Resolver, Option<&str>),
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) -> Result<RunId, SessionError> {
        if let Some(reason) = &self.core.exited {
            return Err(SessionError::RuntimeUnavailable(reason.clone()));
        }
        if let Some(requested) = run_id
            && let Some(index) = self.core.queue.iter().position(|queued| queued.run_id == *requested)
        {
            if let Some(queued) = self.core.queue.remove(index) {
                let message = format!("cancelled by {} before it began", by.name);
                self.end_queued(queued, RunStatus::Cancelled, Some(&message), env, plan);
            }
            return Ok(requested.clone());
        }
        let active = self.core.run.as_mut().filter(|run| run_id.is_none_or(|requested| run.run_id == *requested));
        let (Some(run), Some(native)) = (active, self.core.native_id.clone()) else { return Err(SessionError::NoRun) };
        run.cancelling = true;
        let (run_id, ticket) = (run.run_id.clone(), run.ticket);
        let reason = reason.map(|reason| label(reason, REASON_MAX));
        let (by_device, message) = (Some(by.clone()), reason.clone());
        let body = RunBody { by: by_device, cancelling: true, message, ..RunBody::new(&run_id, RunStatus::Running) };
        self.log(EventDraft::new(Kind::RunStatus, &body), env, plan);
        // Requests about ceilings do not come from the run.
        let answerable = self.open.iter().filter(|(id, open)| !open.request.observe_only && !self.is_ceiling_ask(id));
        for id in answerable.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.resolve(&id, &Decision::Withdrawn, by.clone(), None, true, env, plan);
        }
        plan.orders.push(RuntimeCommand::Cancel { ticket, native, reason });
        self.touch(env, plan);
        Ok(run_id)
    }

    pub(super) fn end_queued(
        &mut self,
        mut queued: QueuedRun,
        status: RunStatus,
        message: Option<&str>,
        env: &DecisionEnv<'_>,
        plan: &mut Plan,
    ) {
        let run_id = queued.run_id.clone();
        let body = RunBody { message: message.map(str::to_owned), ..RunBody::new(&run_id, status) };
        self.log_queued(&mut queued, EventDraft::new(Kind::RunEnded, &body), env, plan);
        self.remember_key(queued.key, &run_id, || run_outcome(status, None, message));
        self.touch(env, plan);
    }
}
