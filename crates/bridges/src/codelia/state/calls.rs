//! What calls to the gateway were for, and what comes of their outcomes.

use super::*;

/// Why a call came to nothing.
#[derive(Debug)]
pub(in crate::codelia) enum NoReply {
    /// The gateway refused, or the runtime did: its JSON-RPC error.
    Refused(Value),
    /// Nothing was sent: it may be tried again.
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
            error @ (Error::Address(_) | Error::Refused(_) | Error::Answer(_)) => {
                Self::Refused(json!({ "code": INTERNAL, "message": error.to_string() }))
            }
        }
    }
}

/// What a call was for.
#[derive(Clone, Debug)]
pub(in crate::codelia) enum CallPurpose {
    /// The runtimes, to open a session for the terminal UI's `run.start`.
    Runtimes {
        start: PendingRunStart,
    },
    Open {
        start: PendingRunStart,
        runtime: String,
    },
    /// The sessions, to find the one that a runtime of one has; `error`: why it has no other.
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
        here: bool,
    },
    Answer {
        request: String,
    },
    Models {
        id: Value,
    },
    /// The models, to find the one that is meant.
    Mean {
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

/// A `run.start` that waits.
#[derive(Clone, Debug)]
pub(in crate::codelia) struct PendingRunStart {
    pub(super) id: Value,
    pub(super) input: Value,
    /// What is said around it: `ui_context` and `meta`.
    pub(super) around: [Value; 2],
}

impl BridgeState {
    /// A call's outcome.
    pub(in crate::codelia) fn called(
        &mut self,
        why: CallPurpose,
        outcome: Result<Value, NoReply>,
        out: &mut Vec<BridgeAction>,
    ) {
        let outcome = outcome.map_err(rpc_error);
        match (why, outcome) {
            (CallPurpose::Start { id }, outcome) => {
                self.starting = self.starting.saturating_sub(1);
                match outcome {
                    Ok(result) => {
                        if let Some(run) = result["run_id"].as_str() {
                            self.teller.own(run);
                        }
                        out.push(reply(&id, &json!({ "run_id": result["run_id"] })));
                    }
                    Err(error) => out.push(fail(&id, &error)),
                }
            }
            (CallPurpose::Runtimes { start }, Ok(result)) => self.choose_runtime(start, &result, out),
            (CallPurpose::Open { start, .. }, Ok(result)) => {
                self.opening = false;
                match result["session_id"].as_str() {
                    Some(session) => self.join(start, session.to_owned(), out),
                    None => out.push(refuse(&start.id, INTERNAL, "the gateway opened a session without a name")),
                }
            }
            (CallPurpose::Open { start, runtime }, Err(error)) if error["code"] == ONE_SESSION => {
                let (why, params) = (CallPurpose::Join { start, runtime, error }, json!({}));
                out.push(BridgeAction::Call { why: Box::new(why), method: "session.list".into(), params, again: true });
            }
            (CallPurpose::Join { start, runtime, error }, Ok(result)) => {
                self.opening = false;
                let all = result["sessions"].as_array().into_iter().flatten();
                let mut alive = all.filter(|one| one["runtime_id"] == runtime.as_str() && one["state"] != "exited");
                match alive.next().and_then(|one| one["session_id"].as_str()) {
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
                let mut said = json!({ "ok": true });
                if let Some(status) = result["status"].as_str() {
                    said["status"] = status.into();
                }
                out.push(reply(&id, &said));
            }
            // It ended before the cancel came: how, if that was told already.
            (CallPurpose::Cancel { id, run }, Err(error)) if error["code"] == RUN_NOT_FOUND => {
                match (self.teller.end_of(&run), self.teller.now()) {
                    (Some(status), _) => out.push(reply(&id, &json!({ "ok": false, "status": status }))),
                    (None, Some((now, _))) if now == run => out.push(reply(&id, &json!({ "ok": false }))),
                    (None, _) => out.push(fail(&id, &error)),
                }
            }
            (CallPurpose::List { id, limit, here }, Ok(result)) => {
                out.push(reply(&id, &self.list(&result, limit, here)))
            }
            (CallPurpose::Answer { request }, Ok(_)) => self.asks.taken(&request),
            (CallPurpose::Answer { request }, Err(error)) => self.answer_refused(&request, &error, out),
            // An agent without a choice has none to show.
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
            (CallPurpose::Mean { id, params }, outcome) => self.mean(id, &params, &outcome, out),
            (CallPurpose::Set { id }, Ok(mut result)) => {
                // It is this session's, whatever the terminal UI calls it.
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

    /// Opens the session for a first prompt in a runtime that is ready, or the first there is.
    fn choose_runtime(&mut self, start: PendingRunStart, result: &Value, out: &mut Vec<BridgeAction>) {
        let all = result["runtimes"].as_array().cloned().unwrap_or_default();
        let ready = all.iter().find(|runtime| runtime["state"] == "ready").or_else(|| all.first());
        match ready.and_then(|runtime| runtime["runtime_id"].as_str()) {
            Some(runtime) => self.open(start, runtime, out),
            None => {
                self.opening = false;
                let words = "the gateway has no agent: start one with `plexus run`, or add it to the configuration";
                out.push(refuse(&start.id, INTERNAL, words));
            }
        }
    }

    /// An answer came too late, or was not one.
    fn answer_refused(&mut self, request: &str, error: &Value, out: &mut Vec<BridgeAction>) {
        let words = error["message"].as_str().unwrap_or("the gateway refused it").to_owned();
        let data = &error["data"];
        let by = data["resolved_by"]["name"].as_str();
        let words = match (data["ok"].as_bool(), by) {
            (Some(true), Some(by)) => format!("already allowed by {by}"),
            (Some(false), Some(by)) => format!("already denied by {by}"),
            _ => words,
        };
        let over = matches!(error["code"].as_i64(), Some(-32010 | -32012 | -32016));
        let mut acts = Vec::new();
        self.asks.refused(request, &words, over, &mut acts);
        self.act(acts, out);
    }

    /// The terminal UI takes what stands before a slash for a provider: the agent's own name for the model has it, or not.
    fn mean(&mut self, id: Value, params: &Value, listed: &Result<Value, Value>, out: &mut Vec<BridgeAction>) {
        let Some(session) = &self.session else {
            return out.push(refuse(&id, INVALID_PARAMS, "no session is open"));
        };
        let name = params["name"].as_str().unwrap_or_default();
        let whole = params["provider"].as_str().map(|provider| format!("{provider}/{name}"));
        let offers = |wanted: &str| {
            let models = listed.as_ref().ok().and_then(|list| list["models"].as_array());
            models.is_some_and(|models| models.iter().any(|model| model == wanted))
        };
        let name = whole.filter(|whole| offers(whole) && !offers(name)).unwrap_or_else(|| name.to_owned());
        let params = json!({ "session_id": session.id, "name": name, "scope": "session" });
        out.push(BridgeAction::Call {
            why: Box::new(CallPurpose::Set { id }),
            method: "model.set".into(),
            params,
            again: false,
        });
    }

    pub(super) fn list(&self, result: &Value, limit: usize, here: bool) -> Value {
        let all = result["sessions"].as_array().into_iter().flatten();
        let mut listed: Vec<ListedSession> = all.filter_map(|one| ListedSession::deserialize(one).ok()).collect();
        listed.retain(|session| !here || session.cwd == self.aim.cwd);
        listed.truncate(limit);
        let row = |session: ListedSession| {
            let mut row = json!({ "session_id": session.session_id, "updated_at": session.updated_at });
            if let Some(count) = session.message_count {
                row["message_count"] = count.into();
            }
            if self.extras.terminal {
                // It has one line for a session, and this member fills it.
                let asks = if session.open_requests > 0 { " (asks)" } else { "" };
                let title = session.title.as_deref().unwrap_or("untitled");
                row["last_user_message"] = format!("{}{asks}: {title}", session.runtime_id).into();
                row["workspace_root"] = session.cwd.into();
            } else if let Some(words) = session.last_user_message {
                row["last_user_message"] = words.into();
            }
            if let Some(run) = session.run_id {
                row["run_id"] = run.into();
            }
            row
        };
        let rows: Vec<Value> = listed.into_iter().map(row).collect();
        let mut list = json!({ "sessions": rows });
        if self.extras.terminal {
            list["current_workspace_root"] = self.aim.cwd.as_str().into();
        }
        list
    }
}

/// Why a call came to nothing, as the JSON-RPC error that the terminal UI gets.
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
