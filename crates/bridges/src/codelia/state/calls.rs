//! The purposes of calls to the gateway, and the actions that result from their outcomes.

use std::sync::Arc;

use plexus_protocol::api::problem::ProblemMembers;
use plexus_protocol::api::rpc::Cancelled;
use plexus_protocol::api::runtimes::RuntimeList;
use plexus_protocol::api::sessions::{RunReference, SessionsPage};
use plexus_protocol::ui_protocol::ModelList;
use plexus_protocol::{RuntimeState, SessionState, Timestamp};

use super::*;

/// A JSON-RPC error of the gateway or the runtime, which the terminal UI receives unchanged.
#[derive(Clone, Debug, Serialize)]
pub(in crate::codelia) struct RpcError {
    pub(in crate::codelia) code: i64,
    pub(in crate::codelia) message: String,
    /// Further members, depending on `code`: from the gateway, or from the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::codelia) data: Option<Value>,
}

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// The reason why a call failed.
#[derive(Debug)]
pub(in crate::codelia) enum NoReply {
    /// The gateway or the runtime refused the call.
    Refused(RpcError),
    /// Nothing was sent: a retry is safe.
    NotSent(String),
    /// The call was sent, and the connection was lost before the reply.
    Lost(String),
}

impl From<Error> for NoReply {
    fn from(error: Error) -> Self {
        match error {
            Error::Unreached(reason) => Self::NotSent(reason),
            Error::Lost(reason) => Self::Lost(reason),
            Error::Rpc { code, message, data } => {
                Self::Refused(RpcError { code, message, data: Some(data).filter(|data| !data.is_null()) })
            }
            error @ (Error::Address(_) | Error::Refused(_) | Error::Api(_) | Error::Answer(_)) => {
                Self::Refused(RpcError::new(INTERNAL, error.to_string()))
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
        runtime: RuntimeId,
    },
    /// Lists the sessions, to find the only one of a runtime; `error` is the reason why it cannot open another.
    Join {
        start: PendingRunStart,
        runtime: RuntimeId,
        error: RpcError,
    },
    Start {
        id: Value,
    },
    Cancel {
        id: Value,
        run: RunId,
    },
    List {
        id: Value,
        limit: usize,
        this_folder: bool,
    },
    Answer {
        request: RequestId,
    },
    Models {
        id: Value,
    },
    /// Lists the models, to find the chosen one.
    FindModel {
        id: Value,
        choice: ModelChoice,
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
    pub(super) start: Box<StartRun>,
}

impl BridgeState {
    /// Handles a call's outcome.
    pub(in crate::codelia) fn on_outcome(
        &mut self,
        purpose: CallPurpose,
        outcome: Result<Box<RawValue>, NoReply>,
        out: &mut Vec<BridgeAction>,
    ) {
        let outcome = outcome.map_err(rpc_error);
        match (purpose, outcome) {
            (CallPurpose::Start { id }, outcome) => self.on_started(&id, outcome, out),
            (CallPurpose::Runtimes { start }, Ok(result)) => self.choose_runtime(start, read(&result), out),
            (CallPurpose::Open { start, .. }, Ok(result)) => {
                self.opening = false;
                match read::<SessionInfo>(&result) {
                    Ok(session) => self.join(start, session.session_id, out),
                    Err(error) => out.push(fail(&start.id, &error)),
                }
            }
            (CallPurpose::Open { start, runtime }, Err(error)) if error.code == ONE_SESSION => {
                let purpose = CallPurpose::Join { start, runtime, error };
                out.push(call(purpose, "session.list", &ListSessions::default(), true));
            }
            (CallPurpose::Join { start, runtime, error }, Ok(result)) => {
                self.opening = false;
                let is_open = |session: &&Arc<SessionInfo>| {
                    session.runtime_id == runtime && session.state != SessionState::Exited
                };
                let listed = read::<SessionsPage>(&result);
                match listed.as_ref().ok().and_then(|page| page.sessions.iter().find(is_open)) {
                    Some(session) => self.join(start, session.session_id.clone(), out),
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
                let status = read::<Cancelled>(&result).ok().map(|cancelled| cancelled.status.as_str());
                out.push(reply(&id, &CancelResult { ok: true, status }));
            }
            // The run ended before the cancellation arrived: the reply is its final status, if known.
            (CallPurpose::Cancel { id, run }, Err(error)) if error.code == RUN_NOT_FOUND => {
                match (self.translator.status_at_end(run.as_str()), self.translator.current_run()) {
                    (Some(status), _) => out.push(reply(&id, &CancelResult { ok: false, status: Some(status) })),
                    (None, Some((now, _))) if now == run.as_str() => {
                        out.push(reply(&id, &CancelResult { ok: false, status: None }));
                    }
                    (None, _) => out.push(fail(&id, &error)),
                }
            }
            (CallPurpose::List { id, limit, this_folder }, Ok(result)) => match read::<SessionsPage>(&result) {
                Ok(page) => out.push(reply(&id, &self.list(&page, limit, this_folder))),
                Err(error) => out.push(fail(&id, &error)),
            },
            (CallPurpose::Answer { request }, Ok(_)) => self.panel_queue.taken(request.as_str()),
            (CallPurpose::Answer { request }, Err(error)) => self.answer_refused(request.as_str(), &error, out),
            // An agent without models cannot list any.
            (CallPurpose::Models { id }, Err(error)) if error.code == METHOD_NOT_FOUND => {
                out.push(reply(&id, &no_models(self.session.as_ref().and_then(|session| session.runtime.as_ref()))));
            }
            (CallPurpose::Models { id }, Ok(result)) => {
                let own = self.session.as_ref().is_some_and(|session| session.dialect == OWN_DIALECT);
                let mut result: Members = parse(Some(&result));
                if !own && result.get("source").is_none_or(|source| source.get() == "null") {
                    ui_protocol::set(&mut result, "source", &"session");
                }
                out.push(reply(&id, &result));
            }
            (CallPurpose::FindModel { id, choice }, outcome) => self.find_model(id, &choice, outcome, out),
            (CallPurpose::Set { id }, Ok(result)) => {
                // The model applies to this session, whatever scope the terminal UI names.
                let mut result: Members = parse(Some(&result));
                ui_protocol::set(&mut result, "source", &"session");
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

    /// Replies to a `run.start` whose call has completed.
    fn on_started(&mut self, id: &Value, outcome: Result<Box<RawValue>, RpcError>, out: &mut Vec<BridgeAction>) {
        self.starting = self.starting.saturating_sub(1);
        match outcome.and_then(|result| read::<RunReference>(&result)) {
            Ok(run) => {
                self.translator.mark_own(run.run_id.as_str());
                out.push(reply(id, &run));
            }
            Err(error) => out.push(fail(id, &error)),
        }
    }

    /// Opens the session for a first prompt in a ready runtime, else in the first one.
    fn choose_runtime(
        &mut self,
        start: PendingRunStart,
        list: Result<RuntimeList, RpcError>,
        out: &mut Vec<BridgeAction>,
    ) {
        let all = match list {
            Ok(list) => list.runtimes,
            Err(error) => {
                self.opening = false;
                return out.push(fail(&start.id, &error));
            }
        };
        match all.iter().find(|runtime| runtime.state == RuntimeState::Ready).or_else(|| all.first()) {
            Some(runtime) => self.open(start, runtime.runtime_id.clone(), out),
            None => {
                self.opening = false;
                let message = "the gateway has no agent: start one with `plexus run`, or add it to the configuration";
                out.push(refuse(&start.id, INTERNAL, message));
            }
        }
    }

    /// Reports an answer that was too late or invalid.
    fn answer_refused(&mut self, request: &str, error: &RpcError, out: &mut Vec<BridgeAction>) {
        let members = error.data.as_ref().and_then(|data| ProblemMembers::deserialize(data).ok());
        let receipt = members.and_then(|members| members.receipt);
        let message = match receipt.as_ref().and_then(|receipt| Some((receipt.ok?, &receipt.resolved_by.name))) {
            Some((true, by)) => format!("already allowed by {by}"),
            Some((false, by)) => format!("already denied by {by}"),
            None => error.message.clone(),
        };
        let closed = matches!(error.code, -32010 | -32012 | -32016);
        let mut actions = Vec::new();
        self.panel_queue.refused(request, &message, closed, &mut actions);
        self.perform_panel_actions(actions, out);
    }

    /// Finds the model that the terminal UI means: it interprets the text before a slash as a provider, although it may be part of the
    /// agent's own model name.
    fn find_model(
        &mut self,
        id: Value,
        choice: &ModelChoice,
        listed: Result<Box<RawValue>, RpcError>,
        out: &mut Vec<BridgeAction>,
    ) {
        let Some(session) = &self.session else {
            return out.push(refuse(&id, INVALID_PARAMS, "no session is open"));
        };
        let listed = listed.and_then(|result| read::<ModelList>(&result)).unwrap_or_default();
        let is_listed = |name: &str| listed.models.iter().any(|model| model == name);
        let name = choice.name.clone().unwrap_or_default();
        let full_name = choice.provider.as_ref().map(|provider| format!("{provider}/{name}"));
        let name = full_name.filter(|full_name| is_listed(full_name) && !is_listed(&name)).unwrap_or(name);
        let params = SetModel { session_id: &session.id, name: &name, scope: "session" };
        out.push(call(CallPurpose::Set { id }, "model.set", &params, false));
    }

    fn list(&self, page: &SessionsPage, limit: usize, this_folder: bool) -> SessionRows<'_> {
        let listed = page.sessions.iter().filter(|session| !this_folder || session.cwd == self.target.cwd);
        let row = |session: &Arc<SessionInfo>| {
            let terminal = self.extras.terminal;
            // The terminal UI has one line for a session, which shows this member.
            let asks = if session.open_requests > 0 { " (asks)" } else { "" };
            let title = session.title.as_deref().unwrap_or("untitled");
            let line = || format!("{}{asks}: {title}", session.runtime_id);
            SessionRow {
                session_id: session.session_id.clone(),
                updated_at: session.updated_at,
                message_count: session.message_count,
                last_user_message: if terminal { Some(line()) } else { session.last_user_message.clone() },
                workspace_root: terminal.then(|| session.cwd.clone()),
                run_id: session.run_id.clone(),
            }
        };
        let sessions = listed.take(limit).map(row).collect();
        let current_workspace_root = self.extras.terminal.then_some(self.target.cwd.as_str());
        SessionRows { sessions, current_workspace_root }
    }
}

/// The result of `run.cancel` in the UI protocol.
#[derive(Serialize)]
struct CancelResult {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

/// The parameters of `model.set`.
#[derive(Serialize)]
struct SetModel<'a> {
    session_id: &'a SessionId,
    name: &'a str,
    scope: &'static str,
}

/// The result of `session.list` in the UI protocol.
#[derive(Serialize)]
struct SessionRows<'a> {
    sessions: Vec<SessionRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_workspace_root: Option<&'a str>,
}

/// A session in the list of the UI protocol.
#[derive(Serialize)]
struct SessionRow {
    session_id: SessionId,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_user_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_root: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
}

/// Reads a result of the gateway.
fn read<T: DeserializeOwned>(result: &RawValue) -> Result<T, RpcError> {
    serde_json::from_str(result.get()).map_err(|error| RpcError::new(INTERNAL, Error::Answer(error).to_string()))
}

/// Converts a failed call into the JSON-RPC error for the terminal UI.
fn rpc_error(failure: NoReply) -> RpcError {
    match failure {
        NoReply::Refused(error) => error,
        NoReply::NotSent(reason) => RpcError::new(INTERNAL, format!("the gateway does not respond: {reason}")),
        NoReply::Lost(reason) => {
            let message =
                format!("the connection to the gateway was lost ({reason}): it may or may not have received this");
            RpcError::new(INTERNAL, message)
        }
    }
}
