//! The methods of the UI protocol, for a client that speaks only that protocol.

use plexus_protocol::ui_protocol::{RunCancel, SessionHistory, unknown_start_members};

use super::*;

impl Rpc {
    pub(super) fn ui_begins(&mut self, params: Option<&RawValue>) -> Result<PendingResult, RpcError> {
        if self.client.is_some() && self.ui.is_none() {
            return Err(RpcError::new(-32600, "invalid_request", "this connection already uses the native protocol"));
        }
        let initialize: UiInitialize = parse(params)?;
        self.client = Some(false);
        let account = self.link.account().clone();
        self.ui = Some(Box::new(Ui::new(self.state.clone(), self.caller.clone(), account, initialize.ui_capabilities)));
        Ok(now(result(&json!({
            "protocol_version": PROTOCOL,
            "server": { "name": "plexus", "version": self.state.version },
            "server_capabilities": self.ui_capabilities(initialize.session_id.as_ref()),
        }))))
    }

    /// Returns the capabilities of the runtime of the named session; without one, those of all runtimes that the client may use.
    fn ui_capabilities(&self, session: Option<&SessionId>) -> Map<String, Value> {
        let session = session.and_then(|id| self.session(id).ok());
        let mut all = self.runtimes();
        all.retain(|runtime| session.as_ref().is_none_or(|session| session.runtime_id == runtime.runtime_id));
        server_capabilities(all.iter().map(|runtime| runtime.capabilities.as_ref()), &UI_CAPABILITIES)
    }

    /// Handles a request or notification of the UI protocol.
    pub(super) fn ui_call(&mut self, id: Option<String>, method: &str, params: Option<&RawValue>) -> Option<Reply> {
        let Some(id) = id else {
            // The only notification that a client may send.
            let passed = self.pass_on(method, params, true).ok().filter(|_| method == "ui.context.update")?;
            return Some(Box::pin(async move {
                let _ = passed.await;
                Vec::new()
            }));
        };
        match self.ui_request(&id, method, params) {
            Ok(later) => later.map(|later| -> Reply { Box::pin(async move { response(&id, &later.await) }) }),
            Err(failure) => Some(now(response(&id, &Err(failure)))),
        }
    }

    /// Returns the reply to a request; `None` if it is sent in order with the events.
    fn ui_request(
        &mut self,
        id: &str,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Option<PendingResult>, RpcError> {
        let Some(ui) = &mut self.ui else { return Err(RpcError::no_method(method)) };
        match method {
            "run.start" => {
                let mut start: StartRun = parse(params)?;
                let session = start.session_id.take();
                start.extra_members = params.and_then(|params| unknown_start_members(params.get()));
                ui.start(id.to_owned(), session, Self::content(start)?)?;
                return Ok(None);
            }
            "session.history" => {
                let SessionHistory { session_id, max_runs, max_events } = parse(params)?;
                ui.history(id.to_owned(), session_id, max_runs, max_events)?;
                return Ok(None);
            }
            _ => {}
        }
        Ok(Some(match method {
            "session.list" => {
                let ListSessions { limit, .. } = parse(params)?;
                now(ui.list(limit))
            }
            "run.cancel" => {
                let RunCancel { run_id, reason } = parse(params)?;
                self.ui_cancel(run_id, reason)?
            }
            "model.list" if ui.session().is_none() => now(result(&json!({ "provider": "plexus", "models": [] }))),
            own if own.starts_with("session.") || own.starts_with("runtime.") || own.starts_with("presence.") => {
                return Err(RpcError::no_method(own));
            }
            "run.restart" | "ui.request.answer" => return Err(RpcError::no_method(method)),
            other => self.pass_on(other, params, false)?,
        }))
    }

    /// Cancels a run; may be repeated.
    fn ui_cancel(&self, run: RunId, reason: Option<String>) -> Result<PendingResult, RpcError> {
        let known =
            self.state.directory.runs(&filter(&self.caller, None)).into_iter().find(|known| known.run_id == run);
        let Some(known) = known else {
            let ended = self.ui.as_ref().and_then(|ui| ui.ended(&run));
            let status = ended.ok_or_else(|| RpcError::from(SessionError::NoRun))?;
            return Ok(now(result(&json!({ "ok": false, "status": status }))));
        };
        let status = if known.status == RunStatus::Queued { RunStatus::Cancelled } else { RunStatus::Running };
        let (id, permit) = self.permitted::<Prompt>(Some(known.session_id))?;
        let directory = self.state.directory.clone();
        Ok(Box::pin(async move {
            match directory.cancel_because(&permit, &id, Some(run), reason).await {
                Ok(_) => result(&json!({ "ok": true, "status": status })),
                // The run ended in the meantime.
                Err(SessionError::NoRun) => result(&json!({ "ok": false })),
                Err(refusal) => Err(refusal.into()),
            }
        }))
    }

    /// Handles an answer. The protocol has no message for its outcome: an invalid answer is reported as the status of its run, and the
    /// request is sent again.
    pub(super) fn ui_answered(&self, id: &str, answer: &RawValue) -> Reply {
        #[derive(Deserialize)]
        struct Chosen {
            ids: Vec<String>,
        }
        let request_id: String = serde_json::from_str(id).unwrap_or_default();
        let chosen = match object::from_str(answer.get()) {
            Ok(Chosen { ids }) if self.ui.as_ref().is_some_and(|ui| ui.as_options(&request_id)) => match ids.first() {
                Some(option) => to_raw_value(&json!({ "option_id": option })).ok(),
                None => to_raw_value(&json!({ "ok": false })).ok(),
            },
            _ => None,
        };
        let outcome = self.take_answer(id, chosen.as_deref().unwrap_or(answer));
        let (state, caller) = (self.state.clone(), self.caller.clone());
        let support = self.ui.as_ref().map(|ui| ui.support()).unwrap_or_default();
        Box::pin(async move {
            let Some((request, failure)) = outcome.await else { return Vec::new() };
            not_accepted(&state, &caller, wire::parse_request_name(&request).0, &failure, support)
        })
    }

    pub(super) fn pass_on(
        &self,
        method: &str,
        params: Option<&RawValue>,
        notify: bool,
    ) -> Result<PendingResult, RpcError> {
        if method.split('.').any(str::is_empty) || !method.contains('.') || method.starts_with("gateway.") {
            return Err(RpcError::no_method(method));
        }
        let call: SessionParams = parse(params)?;
        let (id, permit) = self.permitted::<Prompt>(call.session_id).map_err(|failure| match method {
            // Without a session there is no runtime that could have such a method.
            "model.list" | "model.set" | "mcp.list" | "skills.list" | "ui.context.update" => failure,
            _ if failure.code == -32602 => RpcError::no_method(method),
            _ => failure,
        })?;
        let (directory, method) = (self.state.directory.clone(), method.to_owned());
        let params = params.map(context::without_gateway_ids);
        Ok(Box::pin(async move { Ok(directory.call(&permit, &id, method, params, notify).await?) }))
    }

    /// Handles a JSON-RPC error in place of an answer. "The user cancelled" denies a request of any kind; any other error is not an
    /// answer, and the request stays open for this client and the others.
    pub(super) fn cancelled(&self, id: &str, error: &RawValue) -> Reply {
        #[derive(Deserialize)]
        struct Fault {
            code: i64,
        }
        if matches!(object::from_str(error.get()), Ok(Fault { code: USER_CANCELLED })) {
            return match to_raw_value(&json!({ "ok": false })) {
                Ok(no) if self.ui.is_some() => self.ui_answered(id, &no),
                Ok(no) => self.answered(id, &no),
                Err(_) => now(Vec::new()),
            };
        }
        metrics().stray_answers.inc();
        tracing::debug!(id, error = error.get(), "a client answered with an error");
        let name = serde_json::from_str::<String>(id).ok().filter(|_| self.ui.is_none());
        let Some(request) = name.filter(|name| name.starts_with("q_")) else { return now(Vec::new()) };
        let detail = format!("an error other than {USER_CANCELLED} is not an answer: the request stays open");
        now(not_taken(wire::parse_request_name(&request).0, &RpcError::new(-32602, "answer_type", detail)))
    }
}

/// Reports an answer that was not accepted, and sends the request again if another answer could be accepted.
fn not_accepted(state: &Core, caller: &Caller, request: &str, failure: &RpcError, support: UiSupport) -> Vec<u8> {
    let open = state.directory.requests().open(&filter(caller, None));
    let Some(request) = open.iter().find(|open| open.request_id.as_str() == request) else { return Vec::new() };
    let mut out = crate::ui::not_accepted(&request.run_id, &failure.message);
    if failure.code == -32602 {
        let session = state.directory.session(&request.session_id);
        out.extend(crate::ui::ask(request, session.as_deref(), support));
    }
    out
}
