//! The purposes of calls to the gateway, and what follows from their outcomes.

use super::*;

/// Why a call failed.
#[derive(Debug)]
pub(in crate::codelia) enum NoReply {
    /// The gateway or the runtime refused: the JSON-RPC error.
    Refused(Value),
    /// Nothing was sent: a retry is safe.
    NotSent(String),
    /// It was sent, and the connection was lost before the reply.
    Lost(String),
}

impl From<Error> for NoReply {
    fn from(error: Error) -> Self {
        match error {
            Error::Unreached(why) => Self::NotSent(why),
            Error::Lost(why) => Self::Lost(why),
            Error::Rpc { code, message, data: Value::Null } => {
                Self::Refused(json!({ "code": code, "message": message }))
            }
            Error::Rpc { code, message, data } => {
                Self::Refused(json!({ "code": code, "message": message, "data": data }))
            }
            error @ (Error::Address(_) | Error::Refused(_) | Error::Api(_) | Error::Answer(_)) => {
                Self::Refused(json!({ "code": INTERNAL, "message": error.to_string() }))
            }
        }
    }
}

/// The purpose of a call.
#[derive(Clone, Debug)]
pub(in crate::codelia) enum CallPurpose {
    /// Lists the runtimes, to open a session for the terminal UI's `run.start`.
    Runtimes {
        start: PendingRunStart,
    },
    Open {
        start: PendingRunStart,
        runtime: String,
    },
    /// Lists the sessions, to find the only one of a runtime; `error`: why it cannot open another.
    Join {
        start: PendingRunStart,
        runtime: String,
        error: Value,
    },
    Start {
        id: Value,
    },
    Cancel {
        id: Value,
        run: String,
    },
    List {
        id: Value,
        limit: usize,
        this_folder: bool,
    },
    Answer {
        request: String,
    },
    Models {
        id: Value,
    },
    /// Lists the models, to find the one that is meant.
    FindModel {
        id: Value,
        params: Value,
    },
    Set {
        id: Value,
    },
    Pass {
        id: Value,
    },
}

/// A waiting `run.start`.
#[derive(Clone, Debug)]
pub(in crate::codelia) struct PendingRunStart {
    pub(super) id: Value,
    pub(super) params: Value,
}

impl BridgeState {
    /// Handles a call's outcome.
    pub(in crate::codelia) fn on_outcome(
        &mut self,
        purpose: CallPurpose,
        outcome: Result<Value, NoReply>,
        out: &mut Vec<BridgeAction>,
    ) {
        let outcome = outcome.map_err(rpc_error);
        match (purpose, outcome) {
            (CallPurpose::Start { id }, outcome) => self.on_started(&id, outcome, out),
            (CallPurpose::Runtimes { start }, Ok(result)) => self.choose_runtime(start, &result, out),
            (CallPurpose::Open { start, .. }, Ok(result)) => {
                self.opening = false;
                match result["session_id"].as_str() {
                    Some(session) => self.join(start, session.to_owned(), out),
                    None => out.push(refuse(&start.id, INTERNAL, "the gateway opened a session without a name")),
                }
            }
            (CallPurpose::Open { start, runtime }, Err(error)) if error["code"] == ONE_SESSION => {
                let (purpose, params) = (CallPurpose::Join { start, runtime, error }, json!({}));
                out.push(BridgeAction::Call {
                    purpose: Box::new(purpose),
                    method: "session.list".into(),
                    params,
                    retry: true,
                });
            }
            (CallPurpose::Join { start, runtime, error }, Ok(result)) => {
                self.opening = false;
                let all = result["sessions"].as_array().into_iter().flatten();
                let mut open_sessions =
                    all.filter(|one| one["runtime_id"] == runtime.as_str() && one["state"] != "exited");
                match open_sessions.next().and_then(|one| one["session_id"].as_str()) {
                    Some(session) => self.join(start, session.to_owned(), out),
                    None => out.push(fail(&start.id, &error)),
                }
            }
            (
                CallPurpose::Runtimes { start } | CallPurpose::Open { start, .. } | CallPurpose::Join { start, .. },
                Err(error),
            ) => {
                self.opening = false;
                out.push(fail(&start.id, &error));
            }
            (CallPurpose::Cancel { id, .. }, Ok(result)) => {
                let mut reply_body = json!({ "ok": true });
                if let Some(status) = result["status"].as_str() {
                    reply_body["status"] = status.into();
                }
                out.push(reply(&id, &reply_body));
            }
            // The run ended before the cancel arrived: reply with its final status, if known.
            (CallPurpose::Cancel { id, run }, Err(error)) if error["code"] == RUN_NOT_FOUND => {
                match (self.translator.status_at_end(&run), self.translator.current_run()) {
                    (Some(status), _) => out.push(reply(&id, &json!({ "ok": false, "status": status }))),
                    (None, Some((now, _))) if now == run => out.push(reply(&id, &json!({ "ok": false }))),
                    (None, _) => out.push(fail(&id, &error)),
                }
            }
            (CallPurpose::List { id, limit, this_folder }, Ok(result)) => {
                out.push(reply(&id, &self.list(&result, limit, this_folder)))
            }
            (CallPurpose::Answer { request }, Ok(_)) => self.panel_queue.taken(&request),
            (CallPurpose::Answer { request }, Err(error)) => self.answer_refused(&request, &error, out),
            // An agent without models has none to list.
            (CallPurpose::Models { id }, Err(error)) if error["code"] == METHOD_NOT_FOUND => {
                out.push(reply(&id, &no_models(self.session.as_ref().map(|session| session.runtime.as_str()))));
            }
            (CallPurpose::Models { id }, Ok(mut result)) => {
                if self.session.as_ref().is_some_and(|session| session.dialect != "codelia")
                    && result["source"].is_null()
                {
                    result["source"] = "session".into();
                }
                out.push(reply(&id, &result));
            }
            (CallPurpose::FindModel { id, params }, outcome) => self.find_model(id, &params, &outcome, out),
            (CallPurpose::Set { id }, Ok(mut result)) => {
                // The model is this session's, whatever scope the terminal UI names.
                result["source"] = "session".into();
                out.push(reply(&id, &result));
            }
            (CallPurpose::Pass { id }, _) if id.is_null() => {}
            (CallPurpose::Pass { id }, Ok(result)) => out.push(reply(&id, &result)),
            (
                CallPurpose::Cancel { id, .. }
                | CallPurpose::List { id, .. }
                | CallPurpose::Models { id }
                | CallPurpose::Set { id }
                | CallPurpose::Pass { id },
                Err(error),
            ) => out.push(fail(&id, &error)),
        }
    }

    /// Replies to a `run.start` whose call has ended.
    fn on_started(&mut self, id: &Value, outcome: Result<Value, Value>, out: &mut Vec<BridgeAction>) {
        self.starting = self.starting.saturating_sub(1);
        match outcome {
            Ok(result) => {
                if let Some(run) = result["run_id"].as_str() {
                    self.translator.mark_own(run);
                }
                out.push(reply(id, &json!({ "run_id": result["run_id"] })));
            }
            Err(error) => out.push(fail(id, &error)),
        }
    }

    /// Opens the session for a first prompt in a ready runtime, else in the first one.
    fn choose_runtime(&mut self, start: PendingRunStart, result: &Value, out: &mut Vec<BridgeAction>) {
        let all = result["runtimes"].as_array().cloned().unwrap_or_default();
        let ready = all.iter().find(|runtime| runtime["state"] == "ready").or_else(|| all.first());
        match ready.and_then(|runtime| runtime["runtime_id"].as_str()) {
            Some(runtime) => self.open(start, runtime, out),
            None => {
                self.opening = false;
                let message = "the gateway has no agent: start one with `plexus run`, or add it to the configuration";
                out.push(refuse(&start.id, INTERNAL, message));
            }
        }
    }

    /// An answer came too late, or was invalid.
    fn answer_refused(&mut self, request: &str, error: &Value, out: &mut Vec<BridgeAction>) {
        let message = error["message"].as_str().unwrap_or("the gateway refused it").to_owned();
        let data = &error["data"];
        let by = data["resolved_by"]["name"].as_str();
        let message = match (data["ok"].as_bool(), by) {
            (Some(true), Some(by)) => format!("already allowed by {by}"),
            (Some(false), Some(by)) => format!("already denied by {by}"),
            _ => message,
        };
        let closed = matches!(error["code"].as_i64(), Some(-32010 | -32012 | -32016));
        let mut actions = Vec::new();
        self.panel_queue.refused(request, &message, closed, &mut actions);
        self.perform_panel_actions(actions, out);
    }

    /// The terminal UI takes the text before a slash for a provider, although it may be part of the agent's own model name.
    fn find_model(&mut self, id: Value, params: &Value, listed: &Result<Value, Value>, out: &mut Vec<BridgeAction>) {
        let Some(session) = &self.session else {
            return out.push(refuse(&id, INVALID_PARAMS, "no session is open"));
        };
        let name = params["name"].as_str().unwrap_or_default();
        let full_name = params["provider"].as_str().map(|provider| format!("{provider}/{name}"));
        let is_listed = |wanted: &str| {
            let models = listed.as_ref().ok().and_then(|list| list["models"].as_array());
            models.is_some_and(|models| models.iter().any(|model| model == wanted))
        };
        let name =
            full_name.filter(|full_name| is_listed(full_name) && !is_listed(name)).unwrap_or_else(|| name.to_owned());
        let params = json!({ "session_id": session.id, "name": name, "scope": "session" });
        out.push(BridgeAction::Call {
            purpose: Box::new(CallPurpose::Set { id }),
            method: "model.set".into(),
            params,
            retry: false,
        });
    }

    pub(super) fn list(&self, result: &Value, limit: usize, this_folder: bool) -> Value {
        let all = result["sessions"].as_array().into_iter().flatten();
        let mut listed: Vec<ListedSession> = all.filter_map(|one| ListedSession::deserialize(one).ok()).collect();
        listed.retain(|session| !this_folder || session.cwd == self.target.cwd);
        listed.truncate(limit);
        let row = |session: ListedSession| {
            let mut row = json!({ "session_id": session.session_id, "updated_at": session.updated_at });
            if let Some(count) = session.message_count {
                row["message_count"] = count.into();
            }
            if self.extras.terminal {
                // The terminal UI has one line for a session, and this member fills it.
                let asks = if session.open_requests > 0 { " (asks)" } else { "" };
                let title = session.title.as_deref().unwrap_or("untitled");
                row["last_user_message"] = format!("{}{asks}: {title}", session.runtime_id).into();
                row["workspace_root"] = session.cwd.into();
            } else if let Some(message) = session.last_user_message {
                row["last_user_message"] = message.into();
            }
            if let Some(run) = session.run_id {
                row["run_id"] = run.into();
            }
            row
        };
        let rows: Vec<Value> = listed.into_iter().map(row).collect();
        let mut list = json!({ "sessions": rows });
        if self.extras.terminal {
            list["current_workspace_root"] = self.target.cwd.as_str().into();
        }
        list
    }
}

/// A failed call as the JSON-RPC error for the terminal UI.
fn rpc_error(why: NoReply) -> Value {
    match why {
        NoReply::Refused(error) => error,
        NoReply::NotSent(why) => json!({ "code": INTERNAL, "message": format!("the gateway does not respond: {why}") }),
        NoReply::Lost(why) => json!({
            "code": INTERNAL,
            "message": format!("the connection to the gateway was lost ({why}): it may or may not have received this"),
        }),
    }
}
