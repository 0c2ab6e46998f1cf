//! The handlers of ACP's methods.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::client_session::{ClientSessionState, Entry, HistoryPolicy, Role};
use super::question::{self, Reply};
use super::session_registry::SessionMember;
use super::shape::{self, ClientSupport, Failure, Members, Settings, raw};
use super::shared::{Shared, check_capacity, check_member};
use super::{AcpState, Sent};
use plexus_auth::{Admin, Approve, Caller, Permit, Prompt, Target};
use plexus_protocol::api::history::ResumeVerdict;
use plexus_protocol::object::{self, Objects};
use plexus_protocol::{
    Answer, Kind, Position, Request, RequestId, RunId, RuntimeId, RuntimeInfo, Scope, SessionId, SessionInfo, Timestamp,
};
use plexus_risk::Effect;
use plexus_router::Problem;
use plexus_sessions::{Filter, OpenSession, SessionError, StartAfter, check_effect};
use plexus_store::ReadLimit;

/// Maximum number of sessions in one response of `session/list`.
const LISTED: usize = 50;
/// Limit of one read while a log is searched.
const SCAN: ReadLimit = ReadLimit { events: 4096, bytes: 1 << 20 };

/// The context of a call; cheap to clone.
#[derive(Clone)]
pub(super) struct Ctx {
    pub(super) state: AcpState,
    pub(super) caller: Caller,
    /// The runtime that the connection's path names.
    pub(super) runtime: Option<RuntimeId>,
    pub(super) shared: Arc<Shared>,
}

/// The result of a request, or `None` if the response is sent on the session's stream.
pub(super) type PendingResult = BoxFuture<'static, Result<Option<Box<RawValue>>, Failure>>;

impl Ctx {
    pub(super) fn call(
        self,
        method: &str,
        id: Box<RawValue>,
        params: Option<&RawValue>,
    ) -> Result<PendingResult, Failure> {
        Ok(match method {
            "session/list" => now(self.list(&parse(params)?)?),
            "session/new" => self.new_session(id, parse(params)?)?,
            "session/load" => self.attach(id, JoinMethod::Load, parse(params)?)?,
            "session/resume" => self.attach(id, JoinMethod::Resume, parse(params)?)?,
            "session/attach" => self.attach(id, JoinMethod::Attach, parse(params)?)?,
            "session/prompt" => self.prompt(id, parse(params)?)?,
            "session/cancel" => self.cancel(params)?,
            "session/set_config_option" => self.set_option(params)?,
            "session/set_model" => self.set_model(params)?,
            "session/delete" => {
                let message = "to delete a session, use DELETE /v1/sessions/{id}; to leave it, use `session/close`";
                return Err(Failure::new(-32601, "method_not_found", message));
            }
            "session/fork" => {
                let message = "the gateway opens sessions itself: `session/new`";
                return Err(Failure::new(-32601, "method_not_found", message));
            }
            "authenticate" => {
                let message = "no sign-in is needed: the connection is authenticated by its token";
                return Err(Failure::params(message));
            }
            "logout" => {
                let message =
                    "the connection is authenticated by its token: revoke the device, or close the connection";
                return Err(Failure::new(-32601, "method_not_found", message));
            }
            other => self.pass(other, params, false)?,
        })
    }

    /// Returns a session that the caller may see, in the runtime of the path if there is one.
    fn session(&self, id: &SessionId) -> Result<Arc<SessionInfo>, Failure> {
        let session = self.state.core.directory.session(id).filter(|session| self.sees(session));
        session.ok_or_else(|| SessionError::NoSession(id.clone()).into())
    }

    fn sees(&self, session: &SessionInfo) -> bool {
        self.caller.sees(&session.session_id, &session.runtime_id)
            && self.runtime.as_ref().is_none_or(|only| *only == session.runtime_id)
    }

    pub(super) fn runtimes(&self) -> Vec<Arc<RuntimeInfo>> {
        let grant = &self.caller.device().grant;
        let mut all = self.state.core.directory.runtimes();
        all.retain(|runtime| {
            grant.covers(Scope::Watch, Target::Runtime(&runtime.runtime_id))
                && self.runtime.as_ref().is_none_or(|only| *only == runtime.runtime_id)
        });
        all
    }

    /// Returns the caller, named after its program: an editor behind a bridge has the editor's name.
    fn acts(&self) -> Caller {
        self.caller.with_program(&self.shared.program())
    }

    /// Returns a permit for a session in which this client may act.
    fn acting(&self, id: &SessionId) -> Result<Permit<Prompt>, Failure> {
        let session = self.session(id)?;
        let role = self.shared.with(|tables| tables.sessions.get(id).map(ClientSessionState::role));
        if role == Some(Role::Observer) {
            return Err(observer());
        }
        Ok(self.acts().permit::<Prompt>(Target::Session(id, &session.runtime_id))?)
    }

    fn list(&self, params: &ListSessions) -> Result<Value, Failure> {
        if params.cwd.as_ref().is_some_and(|cwd| !cwd.starts_with('/')) {
            return Err(Failure::params("`cwd` must be an absolute path"));
        }
        let after = params.cursor.as_deref().map(|cursor| {
            let (at, id) = cursor.split_once('.').ok_or(())?;
            Ok::<_, ()>((at.parse::<i64>().map_err(|_| ())?, id.to_owned()))
        });
        let after = after.transpose().map_err(|()| Failure::params("`cursor` does not come from this gateway"))?;
        let mut all = self.state.core.directory.sessions();
        all.retain(|session| self.sees(session) && params.cwd.as_ref().is_none_or(|cwd| *cwd == session.cwd));
        // By creation time, which never changes, so that later pages repeat and miss nothing.
        all.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| a.session_id.cmp(&b.session_id)));
        if let Some((at, id)) = after {
            all.retain(|session| {
                let born = session.created_at.as_millis();
                born < at || (born == at && session.session_id.as_str() > id.as_str())
            });
        }
        let more = all.len() > LISTED;
        all.truncate(LISTED);
        let last = all.last().map(|session| format!("{}.{}", session.created_at.as_millis(), session.session_id));
        let mut result = json!({ "sessions": all.iter().map(|session| listed(session)).collect::<Vec<_>>() });
        if let (true, Some(last)) = (more, last) {
            result["nextCursor"] = last.into();
        }
        Ok(result)
    }

    /// Returns the runtime for a new session: the named one, or the usual one.
    fn choose(&self, named: Option<RuntimeId>) -> Result<RuntimeId, Failure> {
        let all = self.runtimes();
        if let Some(named) = named {
            let exists = all.iter().any(|runtime| runtime.runtime_id == named);
            return exists.then(|| named.clone()).ok_or_else(|| SessionError::NoRuntime(named).into());
        }
        let preferred = RuntimeInfo::preferred(&all).map(|runtime| runtime.runtime_id.clone());
        preferred.ok_or_else(|| {
            Failure::new(-32002, "runtime_not_found", "no runtime is attached: start one with `plexus run PRESET`")
        })
    }

    fn new_session(self, id: Box<RawValue>, params: NewSession) -> Result<PendingResult, Failure> {
        if !params.cwd.starts_with('/') {
            return Err(Failure::params("`cwd` must be an absolute path"));
        }
        let plexus = params.meta.and_then(|meta| meta.plexus).unwrap_or_default();
        if let Some(session_id) = plexus.session_id {
            let attach = Attach { session_id, role: None, history_policy: None, client_info: None, meta: None };
            return self.attach(id, JoinMethod::Join, attach);
        }
        let runtime_id = self.choose(plexus.runtime_id.or_else(|| self.runtime.clone()))?;
        let permit = self.caller.permit::<Prompt>(Target::Runtime(&runtime_id))?;
        self.shared.with(|tables| check_capacity(tables))?;
        let servers = params.mcp_servers.unwrap_or_default();
        let named = servers.len();
        // The agent starts the named programs: that requires the same right as starting a runtime.
        let may_name = self.caller.permit::<Admin>(Target::Runtime(&runtime_id)).is_ok()
            && check_effect(self.caller.device(), Effect::RunProgram).is_ok();
        let mcp_servers = if may_name { servers } else { Vec::new() };
        Ok(Box::pin(async move {
            let open = OpenSession {
                runtime_id,
                cwd: Some(params.cwd),
                title: plexus.title,
                native_id: None,
                program: Some(self.shared.program()),
                mcp_servers,
            };
            let session = self.state.core.directory.open_session(&permit, open).await?;
            let id = session.session_id.clone();
            let settings = self.settings(&id).await?;
            let cursor = self.state.core.directory.log().cursor(Position::START);
            let mut meta = json!({ "runtime_id": session.runtime_id, "dialect": session.dialect, "cursor": cursor });
            if named > 0 && !may_name {
                meta["mcp_servers"] =
                    "not passed on: only an administrator's client without a risk limit may name programs to start"
                        .into();
            }
            let entry = Entry {
                role: Role::Controller,
                sends_requests: true,
                after: Position::START,
                live_at: Position::START,
                due_response: None,
                resumed: false,
                receives_ends: self.support().attach,
            };
            self.shared.enter(&id, entry)?;
            self.join(&id, true, Role::Controller, None);
            Ok(Some(with_settings(&json!({ "sessionId": id, "_meta": { "plexus": meta } }), &settings)))
        }))
    }

    fn support(&self) -> ClientSupport {
        self.shared.support()
    }

    /// Handles `session/load`, `session/resume` and `session/attach`: determines the start position, and the first messages.
    fn attach(self, id: Box<RawValue>, method: JoinMethod, params: Attach) -> Result<PendingResult, Failure> {
        let session = self.session(&params.session_id)?;
        let plexus = params.meta.and_then(|meta| meta.plexus).unwrap_or_default();
        let policy = params.history_policy.unwrap_or_default();
        let role = params.role.unwrap_or_default();
        let after = match (plexus.after.as_deref(), method, policy) {
            (Some(after), ..) => {
                StartAfter::Cursor(after.parse().map_err(|error| Failure::from(Problem::bad_cursor(error)))?)
            }
            (None, JoinMethod::Load | JoinMethod::Join, _) | (None, JoinMethod::Attach, HistoryPolicy::Full) => {
                StartAfter::Oldest
            }
            (None, ..) => StartAfter::Now,
        };
        self.shared.with(|tables| check_member(tables, &session.session_id))?;
        Ok(Box::pin(async move {
            let log = self.state.core.directory.log();
            let name = session.session_id.clone();
            let filter = Filter::session(name.clone());
            // The settings are those at `live_at`; later changes are sent as they happen.
            let attach = log.attach(&filter, &after);
            if attach.resume != ResumeVerdict::Ok {
                let message = "the cursor cannot be resumed from: load the session, or attach without one";
                let mut failure = Failure::new(-32602, "bad_cursor", message);
                failure.data = json!({
                    "code": "bad_cursor", "resume": attach.resume,
                    "oldest": log.cursor(attach.oldest), "head": log.cursor(attach.head),
                });
                return Err(failure);
            }
            let settings = self.settings(&name).await?;
            let mut meta = json!({
                "runtime_id": session.runtime_id, "dialect": session.dialect, "state": session.state,
                // Everything up to this cursor was sent before this response.
                "cursor": log.cursor(if method == JoinMethod::Join { attach.after } else { attach.head }),
            });
            if attach.oldest > attach.after && after == StartAfter::Oldest {
                meta["trimmed"] = log.cursor(attach.oldest).to_string().into();
            }
            let mut result = json!({ "_meta": { "plexus": meta } });
            if method == JoinMethod::Attach {
                let others = self.join(&name, false, role, params.client_info);
                let clients: Vec<Value> = others.iter().map(member).collect();
                result["sessionId"] = json!(name);
                result["clientId"] = json!(&*self.shared.client_id);
                result["role"] = json!(role);
                result["connectedClients"] = clients.into();
                result["historyPolicy"] = json!(policy);
                result["replayed"] = (attach.after < attach.head).into();
            } else {
                self.join(&name, false, role, None);
            }
            if method == JoinMethod::Join {
                result["sessionId"] = json!(name);
            }
            let result = with_settings(&result, &settings);
            // A client that expects to open a session must get its id before any of its updates.
            let joins = method == JoinMethod::Join;
            let entry = Entry {
                role,
                sends_requests: method != JoinMethod::Attach || policy != HistoryPolicy::None,
                after: attach.after,
                live_at: attach.head,
                due_response: (!joins).then(|| (id, result.clone())),
                resumed: matches!(after, StartAfter::Cursor(_)),
                receives_ends: method == JoinMethod::Attach || self.support().attach,
            };
            self.shared.enter(&name, entry)?;
            Ok(joins.then_some(result))
        }))
    }

    /// Removes the client from a session. The session continues, since the agent must not end with an editor's window.
    pub(super) fn detach(&self, id: &str, params: Option<&RawValue>) -> Vec<Sent> {
        let session =
            parse(params).and_then(|SessionIdParams { session_id }| Ok(self.session(&session_id)?.session_id.clone()));
        match session {
            Ok(session) => {
                let was_member = self.shared.with(|tables| tables.sessions.contains_key(&session));
                let mut all = self.leave(&session);
                self.shared.notify_streams();
                let meta = json!({ "plexus": { "detached": was_member } });
                let result = raw(&json!({ "sessionId": session, "status": "detached", "_meta": meta }));
                all.push(shape::response(id, Ok(&result)));
                all.into_iter().map(|json| Sent::to(Some(session.clone()), json)).collect()
            }
            Err(failure) => vec![Sent::to(None, shape::response(id, Err(&failure)))],
        }
    }

    /// Adds the client to a session. Returns all clients in it, including this one.
    fn join(&self, session: &SessionId, opened: bool, role: Role, info: Option<Implementation>) -> Vec<SessionMember> {
        let (name, version) = match info {
            Some(info) => (info.name, info.version),
            None => self.shared.with(|tables| {
                let client = tables.client.as_ref();
                client.map(|client| (client.name.clone(), client.version.clone())).unwrap_or_default()
            }),
        };
        let shared = Arc::downgrade(&self.shared);
        let client_id = Arc::clone(&self.shared.client_id);
        let device = self.caller.device().device_id.clone();
        let program = self.shared.program();
        self.state
            .sessions
            .enter(session, SessionMember { client_id, name, version, role, device, program, opened, shared })
    }

    /// Removes the client from a session. Returns the responses to its prompts there, whose ends it will not see.
    pub(super) fn leave(&self, session: &SessionId) -> Vec<Vec<u8>> {
        let left = self.shared.with(|tables| tables.sessions.remove(session));
        let (removed, remaining) = self.state.sessions.leave(session, &self.shared.client_id);
        if let Some(removed) = removed {
            let update = json!({
                "sessionUpdate": "client_disconnected", "clientId": &*removed.client_id, "client": member(&removed),
                "timestamp": Timestamp::from(SystemTime::now()),
            });
            let json = shape::own_update(session, &update);
            for other in remaining.iter().filter_map(|other| other.shared.upgrade()) {
                let queued = other.with(|tables| {
                    let state = tables.sessions.get_mut(session).filter(|state| state.receives_ends());
                    state.is_some_and(|state| state.queue(json.clone()))
                });
                if queued {
                    other.notify_streams();
                }
            }
        }
        let failure = detached();
        let waiting = left.iter().flat_map(ClientSessionState::waiting);
        waiting.map(|id| shape::response(id.get(), Err(&failure))).collect()
    }

    fn prompt(self, id: Box<RawValue>, params: NewPrompt) -> Result<PendingResult, Failure> {
        let session = params.session_id;
        if params.prompt.is_empty() {
            return Err(Failure::params("`prompt` is empty"));
        }
        if params.prompt.iter().any(|block| !block.get().starts_with('{')) {
            return Err(Failure::params("`prompt` must be a list of content blocks"));
        }
        let permit = self.acting(&session)?;
        let key = params.meta.and_then(|meta| meta.plexus).unwrap_or_default().key;
        // A client that prompts gets the session's updates even if it has not opened the session.
        if !self.shared.with(|tables| tables.sessions.contains_key(&session)) {
            let head = self.state.core.directory.log().head();
            let receives_ends = self.support().attach;
            let entry = Entry {
                role: Role::Controller,
                sends_requests: true,
                after: head,
                live_at: head,
                due_response: None,
                resumed: false,
                receives_ends,
            };
            self.shared.enter(&session, entry)?;
            self.join(&session, false, Role::Controller, None);
        }
        let pending = PendingPrompt::begin(&self.shared, &session, &id)?;
        Ok(Box::pin(async move {
            let directory = &self.state.core.directory;
            let run_id = directory.prompt_once(&permit, &session, params.prompt, key).await?.run_id;
            if !pending.record_run(&run_id) {
                return Err(detached());
            }
            self.response_if_ended(&session, &run_id).await
        }))
    }

    /// Returns the response to a prompt whose run ended before it was known to belong to this prompt; `None` if the response follows on
    /// the stream.
    async fn response_if_ended(&self, session: &SessionId, run_id: &RunId) -> Result<Option<Box<RawValue>>, Failure> {
        let filter = Filter::session(session.clone());
        // The runs are never older than the log.
        if self.state.core.directory.runs(&filter).iter().any(|run| run.run_id == *run_id) {
            return Ok(None);
        }
        let log = self.state.core.directory.log();
        let mut ended = None;
        let head = log.head();
        let mut after = Position::START;
        while after < head && ended.is_none() {
            let page = log.read(&filter, after, SCAN).await.map_err(Problem::from)?;
            ended = page.events.into_iter().find(|event| event.kind == Kind::RunEnded && event.run_id == *run_id);
            after = page.next.max(after.next());
        }
        let Some(ended) = ended else { return Ok(None) };
        let behind = self.shared.with(|tables| {
            let state = tables.sessions.get_mut(session)?;
            state.ended_before(run_id, ended.position)
        });
        match behind {
            Some(_) => shape::run_result(&ended, log.epoch()).map(Some),
            None => Ok(None),
        }
    }

    /// Cancels the runs that this client waits for; if there are none, the current run.
    pub(super) fn cancel(self, params: Option<&RawValue>) -> Result<PendingResult, Failure> {
        let SessionIdParams { session_id } = parse(params)?;
        let permit = self.acting(&session_id)?;
        Ok(Box::pin(async move {
            self.shared.wait_for_pending_prompts().await;
            let own = self
                .shared
                .with(|tables| tables.sessions.get(&session_id).map(ClientSessionState::runs).unwrap_or_default());
            let directory = &self.state.core.directory;
            if own.is_empty() {
                directory.cancel(&permit, &session_id, None).await?;
            }
            // Queued runs first, so that none of them begins in the meantime.
            for run in own.into_iter().rev() {
                match directory.cancel(&permit, &session_id, Some(run)).await {
                    // The run ended on its own.
                    Ok(_) | Err(SessionError::NoRun) => {}
                    Err(refusal) => return Err(refusal.into()),
                }
            }
            Ok(Some(raw(&json!({}))))
        }))
    }

    /// Handles `$/cancel_request`: cancels a prompt; other calls finish before they could be cancelled.
    pub(super) fn cancel_request(self, params: Option<&RawValue>) -> Result<PendingResult, Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CancelParams {
            request_id: Box<RawValue>,
        }
        let CancelParams { request_id } = parse(params)?;
        Ok(Box::pin(async move {
            self.shared.wait_for_pending_prompts().await;
            let found = self.shared.with(|tables| {
                let mut sessions = tables.sessions.iter();
                sessions.find_map(|(session, state)| Some((session.clone(), state.waiting_run(request_id.get())?)))
            });
            if let Some((session, run)) = found {
                let permit = self.acting(&session)?;
                self.state.core.directory.cancel(&permit, &session, Some(run)).await?;
            }
            Ok(Some(raw(&json!({}))))
        }))
    }

    /// Forwards a method of the agent, in the session of its params.
    pub(super) fn pass(self, method: &str, params: Option<&RawValue>, notify: bool) -> Result<PendingResult, Failure> {
        let unknown = || Failure::new(-32601, "method_not_found", format!("there is no method {method}"));
        let own = method.strip_prefix("session/");
        let foreign = own.is_none() && !method.starts_with('_');
        if foreign || method.starts_with("_plexus/") || matches!(own, Some("update" | "request_permission")) {
            return Err(unknown());
        }
        let session = params.and_then(session_param).ok_or_else(|| match own {
            Some(_) => Failure::params("`sessionId` is missing"),
            None => unknown(),
        })?;
        let permit = self.acting(&session)?;
        let members: Members<'_> = parse_raw(params)?;
        let params = members.with(&[], &["sessionId"]);
        let method = own.map_or_else(|| method.to_owned(), |own| format!("session.{own}"));
        Ok(Box::pin(async move {
            let result = self.state.core.directory.call(&permit, &session, method, Some(params), notify).await?;
            Ok(Some(result))
        }))
    }

    /// Sets the model by the agent's own method or by the gateway's.
    fn set_model(self, params: Option<&RawValue>) -> Result<PendingResult, Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            session_id: SessionId,
            model_id: String,
        }
        let Params { session_id, model_id } = parse(params)?;
        let permit = self.acting(&session_id)?;
        let own = self.clone().pass("session/set_model", params, false)?;
        Ok(Box::pin(async move {
            match own.await {
                Err(failure) if failure.code == -32601 => {}
                outcome => return outcome,
            }
            let params = raw(&json!({ "name": model_id }));
            self.state.core.directory.call(&permit, &session_id, "model.set".into(), Some(params), false).await?;
            Ok(Some(raw(&json!({}))))
        }))
    }

    /// Sets a configuration option. `model` may be the gateway's own option for the choice of models.
    fn set_option(self, params: Option<&RawValue>) -> Result<PendingResult, Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            session_id: SessionId,
            config_id: String,
            value: Value,
        }
        let Params { session_id, config_id, value } = parse(params)?;
        let permit = self.acting(&session_id)?;
        let own = self.clone().pass("session/set_config_option", params, false)?;
        Ok(Box::pin(async move {
            match own.await {
                Err(failure) if failure.code == -32601 && config_id == "model" => {
                    let params = raw(&json!({ "name": value }));
                    self.state
                        .core
                        .directory
                        .call(&permit, &session_id, "model.set".into(), Some(params), false)
                        .await?;
                }
                Ok(Some(result))
                    if parse_raw::<Members<'_>>(Some(&result)).is_ok_and(|m| m.get("configOptions").is_some()) =>
                {
                    return Ok(Some(result));
                }
                Ok(_) => {}
                Err(failure) => return Err(failure),
            }
            let settings = self.settings(&session_id).await?;
            let none = raw(&json!([]));
            let options = settings.options().unwrap_or(&none);
            Ok(Some(Members(Vec::new()).with(&[("configOptions", options)], &[])))
        }))
    }

    /// Returns the session's settings, read from its log.
    async fn settings(&self, session: &SessionId) -> Result<Settings, Failure> {
        let snapshot = self.state.core.directory.snapshots().within(session, 0).await?;
        let mut settings = Settings::default();
        snapshot.latest.iter().for_each(|(kind, body)| settings.take(kind, body.get().as_bytes()));
        Ok(settings)
    }

    /// Answers a request of an agent.
    pub(super) async fn answer(&self, id: &RequestId, revision: u64, result: &RawValue) -> Result<(), Failure> {
        let directory = &self.state.core.directory;
        let missing = || Failure::from(SessionError::NoRequest(id.clone()));
        let (session, runtime) = directory.requests().target(id).await?.ok_or_else(missing)?;
        if !self.caller.sees(&session, &runtime) {
            return Err(missing());
        }
        let role = self.shared.with(|tables| tables.sessions.get(&session).map(ClientSessionState::role));
        if role == Some(Role::Observer) {
            return Err(observer());
        }
        let permit = self.acts().permit::<Approve>(Target::Session(&session, &runtime))?;
        let open = directory.requests().open(&Filter::session(session.clone()));
        let request = match open.iter().find(|request| request.request_id == *id) {
            Some(request) => Arc::clone(request),
            None => Arc::new(directory.requests().get(id).await?.ok_or_else(missing)?),
        };
        let answer = match question::reply(&request, result).map_err(Failure::params)? {
            Reply::Answer(answer) => *answer,
            Reply::NoAnswer => return Ok(()),
            Reply::Deferred => {
                self.defer(&session, &request);
                return Ok(());
            }
        };
        // The answer is bound to the revision that the client displayed.
        let digest = |tables: &mut super::shared::Tables| tables.sessions.get(&session)?.digest_of(id, revision);
        let answer = Answer { revision: Some(revision), digest: self.shared.with(digest), ..answer };
        // Before the request's end is sent, so that it is not withdrawn from the client that answered.
        self.mark(&session, id, true);
        let outcome = self.state.core.answer(&permit, id, answer, None).await;
        if outcome.is_err() {
            self.mark(&session, id, false);
        }
        outcome?;
        Ok(())
    }

    /// Leaves a request to the user's computer: it stays open, and is a tool call for this client from now on.
    fn defer(&self, session: &SessionId, request: &Request) {
        let queued = self.shared.with(|tables| {
            let state = tables.sessions.get_mut(session)?;
            state.defer(&request.request_id).then(|| state.queue(question::deferred_card(request)))
        });
        if queued.is_some() {
            self.shared.notify_streams();
        }
    }

    fn mark(&self, session: &SessionId, id: &RequestId, answered: bool) {
        self.shared.with(|tables| {
            if let Some(state) = tables.sessions.get_mut(session) {
                state.answered(id, answered);
            }
        });
    }

    /// Returns the notification that an answer was not accepted, with the reason, for clients that accept events, since a response has no
    /// response.
    pub(super) async fn not_taken(&self, id: &RequestId, failure: &Failure) -> Vec<Sent> {
        if !self.support().events {
            return Vec::new();
        }
        let session = self.state.core.directory.requests().target(id).await.ok().flatten().map(|(session, _)| session);
        let params = json!({ "request_id": id, "error": failure });
        vec![Sent::to(session, shape::notification("_plexus/answer_refused", &params))]
    }
}

/// A prompt that is being passed to the session, recorded in the client's state until it is accepted or refused.
struct PendingPrompt {
    shared: Arc<Shared>,
    session: SessionId,
    id: Box<RawValue>,
    open: bool,
}

impl PendingPrompt {
    fn begin(shared: &Arc<Shared>, session: &SessionId, id: &RawValue) -> Result<Self, Failure> {
        shared.with(|tables| {
            if tables.sessions.values().any(|state| state.waits_for(id.get())) {
                let message = format!("a prompt with the id {id} has not ended yet");
                return Err(Failure::new(-32600, "id_in_use", message));
            }
            let state = tables.sessions.get_mut(session).ok_or_else(|| SessionError::NoSession(session.clone()))?;
            match state.begin_prompt(id) {
                true => Ok(()),
                false => {
                    Err(Failure::new(-32001, "queue_full", "this client has too many prompts waiting in this session"))
                }
            }
        })?;
        Ok(Self { shared: Arc::clone(shared), session: session.clone(), id: id.to_owned(), open: true })
    }

    /// Records the run; returns `false` if the client has left the session in the meantime.
    fn record_run(mut self, run_id: &RunId) -> bool {
        self.end(Some(run_id.clone()))
    }

    fn end(&mut self, run_id: Option<RunId>) -> bool {
        self.open = false;
        let is_member = self.shared.with(|tables| {
            let state = tables.sessions.get_mut(&self.session);
            state.map(|state| state.record_run(&self.id, run_id)).is_some()
        });
        self.shared.notify_streams();
        is_member
    }
}

impl Drop for PendingPrompt {
    fn drop(&mut self) {
        if self.open {
            self.end(None);
        }
    }
}

/// The way in which a client joins an existing session.
#[derive(Clone, Copy, PartialEq)]
enum JoinMethod {
    Load,
    Resume,
    Attach,
    /// The client joins with `session/new`.
    Join,
}

fn detached() -> Failure {
    let message = "this client left the session; the run continues, and its end will be in the session's history";
    Failure::new(-32800, "detached", message)
}

fn observer() -> Failure {
    Failure::new(-32011, "observer", "an observer can only watch: attach as a controller")
}

fn member(member: &SessionMember) -> Value {
    json!({ "clientId": &*member.client_id, "name": member.name, "version": member.version, "role": member.role })
}

fn listed(session: &SessionInfo) -> Value {
    let mut listed = json!({
        "sessionId": session.session_id, "cwd": session.cwd, "updatedAt": session.updated_at,
        "_meta": { "plexus": {
            "runtime_id": session.runtime_id, "dialect": session.dialect, "state": session.state,
            "open_requests": session.open_requests, "native_id": session.native_id,
        } },
    });
    if let Some(title) = &session.title {
        listed["title"] = title.as_str().into();
    }
    listed
}

fn with_settings(result: &Value, settings: &Settings) -> Box<RawValue> {
    let result = raw(result);
    let settings = settings.members();
    let members: Vec<(&str, &RawValue)> = settings.iter().map(|(name, value)| (*name, &**value)).collect();
    match parse_raw::<Members<'_>>(Some(&result)) {
        Ok(all) => all.with(&members, &[]),
        Err(_) => result.clone(),
    }
}

fn now(value: Value) -> PendingResult {
    Box::pin(std::future::ready(Ok(Some(raw(&value)))))
}

/// Returns the session of params.
pub(super) fn session_param(params: &RawValue) -> Option<SessionId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct SessionParams {
        session_id: SessionId,
    }
    object::from_str::<SessionParams>(params.get()).ok().map(|params| params.session_id)
}

fn parse_raw<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, Failure> {
    object::from_str(params.map_or("{}", RawValue::get)).map_err(|error| Failure::params(error.to_string()))
}

pub(super) fn parse<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, Failure> {
    let text = params.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        return Err(Failure::params("`params` must be an object"));
    }
    let mut parser = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(Objects(&mut parser)).map_err(|error| {
        let at = error.path().to_string();
        let cause = error.into_inner();
        Failure::params(if at == "." { cause.to_string() } else { format!("`{at}`: {cause}") })
    })
}

/// The gateway's part of a `_meta`.
#[derive(Deserialize)]
pub(super) struct Meta<T> {
    pub(super) plexus: Option<T>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Implementation {
    pub(super) name: String,
    pub(super) version: String,
}

#[derive(Deserialize)]
struct SessionIdParams {
    #[serde(rename = "sessionId")]
    session_id: SessionId,
}

#[derive(Deserialize)]
struct ListSessions {
    cwd: Option<String>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewSession {
    cwd: String,
    mcp_servers: Option<Vec<Box<RawValue>>>,
    #[serde(rename = "_meta")]
    meta: Option<Meta<Opens>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Opens {
    runtime_id: Option<RuntimeId>,
    /// An existing session to join; its history follows after the response.
    session_id: Option<SessionId>,
    title: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attach {
    session_id: SessionId,
    role: Option<Role>,
    history_policy: Option<HistoryPolicy>,
    client_info: Option<Implementation>,
    #[serde(rename = "_meta")]
    meta: Option<Meta<Resumes>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resumes {
    after: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewPrompt {
    session_id: SessionId,
    prompt: Vec<Box<RawValue>>,
    #[serde(rename = "_meta")]
    meta: Option<Meta<Prompts>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Prompts {
    /// The prompt's key: a repeated prompt belongs to the same run.
    key: Option<String>,
}
