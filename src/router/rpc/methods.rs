//! The table of methods of the native WebSocket: the params, result and handler of each. Calls are dispatched by it, and
//! `asyncapi.json` is made from it.

use std::sync::LazyLock;

use super::examples::{REQUEST, RUN, SESSION, envelope, receipt, runtime, session, you};
use super::*;
use crate::schemas::Shape;
use crate::surfaces::{ask_call, surface_call, update_call, wait_for_ask};
use plexus_auth::Ui as DrawScope;
use plexus_protocol::Receipt;
use plexus_protocol::api::rpc::{SurfaceAsk, SurfaceChanges, SurfaceClose, SurfacePress, SurfaceShow, SurfaceWait};
use plexus_protocol::api::runtimes::RuntimeList;
use plexus_protocol::api::sessions::{AcceptedPrompt, SessionsPage};
use plexus_protocol::api::surfaces::{Acted, AskView, Drawn, Surfaces};
use plexus_protocol::schema::JsonObject;
use plexus_sessions::{SurfaceCall, SurfacePermits};

type Run = Box<dyn Fn(&mut Rpc, Option<&RawValue>) -> Result<PendingResult, RpcError> + Send + Sync>;

/// A method that clients call.
pub(crate) struct Method {
    /// The method's name.
    pub(crate) name: &'static str,
    /// The description for readers of the documentation.
    pub(crate) about: &'static str,
    /// The params; for a method forwarded to the runtime, besides those of the runtime.
    pub(crate) request: Shape,
    /// The result.
    pub(crate) response: Shape,
    /// Example params.
    pub(crate) params: Value,
    /// An example result.
    pub(crate) result: Value,
    /// The handler; `None` for a method forwarded to the session's runtime.
    run: Option<Run>,
}

impl Method {
    /// Returns whether the method is forwarded to the session's runtime.
    pub(crate) fn is_passed(&self) -> bool {
        self.run.is_none()
    }
}

/// The params of a method without parameters; given ones are ignored.
#[derive(ToSchema)]
pub(crate) struct Nothing {}

/// Makes a row of the table: a method with params `P` and result `A`.
fn method<P: DeserializeOwned + ToSchema + 'static, A: Serialize + ToSchema>(
    name: &'static str,
    run: fn(&mut Rpc, P) -> Result<PendingResult, RpcError>,
    about: &'static str,
    params: Value,
    result: Value,
) -> Method {
    let run: Run = Box::new(move |rpc, params| run(rpc, parse(params)?));
    Method { name, about, request: Shape::of::<P>(), response: Shape::of::<A>(), params, result, run: Some(run) }
}

/// Makes a row of the table: like [`method`], with the length of the params for the handler, in bytes.
fn sized<P: DeserializeOwned + ToSchema + 'static, A: Serialize + ToSchema>(
    name: &'static str,
    run: fn(&mut Rpc, P, usize) -> Result<PendingResult, RpcError>,
    about: &'static str,
    params: Value,
    result: Value,
) -> Method {
    let run: Run = Box::new(move |rpc, params| run(rpc, parse(params)?, params.map_or(0, |text| text.get().len())));
    Method { name, about, request: Shape::of::<P>(), response: Shape::of::<A>(), params, result, run: Some(run) }
}

/// Makes a row of the table: a method without params and with result `A`.
fn bare<A: Serialize + ToSchema>(
    name: &'static str,
    run: fn(&mut Rpc) -> PendingResult,
    about: &'static str,
    result: Value,
) -> Method {
    let run: Run = Box::new(move |rpc, _| Ok(run(rpc)));
    let (request, response) = (Shape::of::<Nothing>(), Shape::of::<A>());
    Method { name, about, request, response, params: json!({}), result, run: Some(run) }
}

/// Makes a row of the table: a method forwarded to the session's runtime.
fn passed(name: &'static str, about: &'static str, params: Value, result: Value) -> Method {
    let (request, response) = (Shape::of::<SessionParams>(), Shape::of::<JsonObject>());
    Method { name, about, request, response, params, result, run: None }
}

/// Returns all methods.
pub(crate) fn methods() -> &'static [Method] {
    static METHODS: LazyLock<Vec<Method>> = LazyLock::new(make);
    &METHODS
}

#[rustfmt::skip] // a method, a few lines
fn make() -> Vec<Method> {
    let session_only = || json!({ "session_id": SESSION });
    vec![
        method::<Initialize, Initialized>("initialize", Rpc::initialize, "Introduces the client; must come first",
            json!({ "protocol_version": "0", "client": { "name": "example", "version": "1" }, "ui_capabilities": { "supports_confirm": true } }),
            json!({ "protocol_version": "0", "server": { "name": "plexus", "version": "0.1.0" }, "server_capabilities": { "supports_run_cancel": true }, "you": you() })),
        bare::<RuntimeList>("runtime.list", Rpc::list_runtimes, "Runtimes", json!({ "runtimes": [runtime()] })),
        method::<ListSessions, SessionsPage>("session.list", Rpc::list, "Sessions", json!({ "limit": 10 }), json!({ "sessions": [session()] })),
        method::<SessionNew, SessionInfo>("session.new", Rpc::open, "Opens a session", json!({ "runtime_id": "demo", "cwd": "/home/me/project" }), session()),
        method::<SessionRename, SessionInfo>("session.rename", Rpc::rename, "Sets the title of a session; the \
            agent's own title no longer changes it",
            json!({ "session_id": SESSION, "title": "The parser" }), session()),
        method::<SessionArchive, SessionInfo>("session.archive", Rpc::archive, "Archives a session, or restores it with `archived` false",
            json!({ "session_id": SESSION, "archived": true }), session()),
        method::<AttachParams, Attached>("session.attach", Rpc::attach, "Follows a session, or all with `*`: \
            sends `gateway.hello`, a snapshot if necessary, the events after the cursor, `gateway.live`, then new \
            events",
            json!({ "session_id": SESSION, "after": "k3f9:1042" }),
            json!({ "attached": true, "session_id": SESSION, "resume": "ok", "cursor": "k3f9:1042", "head": "k3f9:1050" })),
        method::<AttachParams, Detached>("session.detach", Rpc::detach, "Ends it", session_only(), json!({ "detached": true })),
        method::<HistoryParams, History>("session.history", Rpc::history, "Events, one page at a time",
            json!({ "session_id": SESSION, "limit": 100 }),
            json!({ "events": [envelope()], "events_sent": 1, "next": "k3f9:1042", "head": "k3f9:1050", "resume": "ok" })),
        method::<StartRun, AcceptedPrompt>("run.start", Rpc::start, "Sends a prompt; queued while another run is active",
            json!({ "session_id": SESSION, "text": "hello" }), json!({ "run_id": RUN, "queued": false, "ahead": 0 })),
        method::<CancelParams, Cancelled>("run.cancel", Rpc::cancel, "Cancels a run; its open requests are withdrawn first",
            json!({ "session_id": SESSION }), json!({ "ok": true, "run_id": RUN, "status": "running" })),
        method::<RestartParams, AcceptedPrompt>("run.restart", Rpc::restart, "Sends the prompt of a run again: of \
            the current run, which is cancelled first, of the named run, or of the last one",
            json!({ "session_id": SESSION }), json!({ "run_id": RUN, "queued": true, "ahead": 1 })),
        method::<AnswerParams, Receipt>("ui.request.answer", Rpc::answer_request, "Answers a request; the first answer wins, a later one is error -32010 with the winner's receipt in `data`",
            json!({ "request_id": REQUEST, "option_id": "allow_once", "idempotency_key": "k1" }), receipt()),
        method::<SessionParams, Surfaces>("ui.surface.list", Rpc::list_surfaces, "The surfaces that a session's agent draws",
            session_only(), json!({ "surfaces": [] })),
        sized::<SurfaceShow, Drawn>("ui.surface.show", Rpc::show_surface, "Shows a surface, or replaces the one of its name",
            json!({ "session_id": SESSION, "show": { "surface": "hello", "components": [{ "id": "root", "component": "Text", "text": "Hello" }] } }),
            json!({ "surface": "hello", "rev": 1 })),
        sized::<SurfaceChanges, Drawn>("ui.surface.update", Rpc::update_surface, "Changes a part of a surface, or pins it",
            json!({ "session_id": SESSION, "surface": "hello", "update": { "pinned": true } }), json!({ "surface": "hello", "rev": 2 })),
        sized::<SurfaceClose, Drawn>("ui.surface.close", Rpc::close_surface, "Takes a surface down",
            json!({ "session_id": SESSION, "surface": "hello" }), json!({ "surface": "hello", "rev": 3 })),
        sized::<SurfaceAsk, AskView>("ui.surface.ask", Rpc::ask_by_surface, "Asks by a surface: a request that users answer on it, or \
            like any other",
            json!({ "session_id": SESSION, "ask": { "surface": "deploy", "submit": ["go"], "question": "Deploy now?" } }),
            json!({ "ask_id": REQUEST, "state": "open" })),
        method::<SurfaceWait, AskView>("ui.surface.wait", Rpc::wait_for_answer, "What became of a question by a surface",
            json!({ "session_id": SESSION, "ask_id": REQUEST, "wait_s": 45 }),
            json!({ "ask_id": REQUEST, "state": "answered", "answer": { "component": "go", "context": {}, "inputs": {} }, "by": "Phone" })),
        method::<SurfacePress, Acted>("ui.surface.action", Rpc::act, "Presses something on a surface: the agent gets it as a \
            prompt; the first press of what a screen shows wins",
            json!({ "session_id": SESSION, "surface": "deploy", "rev": 3, "component": "go", "event": "submit", "inputs": { "/name": "Ada" } }),
            json!({ "accepted": true, "rev": 4, "run_id": RUN })),
        method::<Focus, PresenceResult>("presence.update", Rpc::focus, "Reports which session your screen displays and whether a user \
            is looking at it, until the connection ends. Only a focused screen suppresses notifications",
            json!({ "session_id": SESSION, "focused": true }), json!({ "focused": true })),
        passed("model.list", "Calls the method of the session's runtime", session_only(), json!({ "models": [] })),
        passed("model.set", "Calls the method of the session's runtime", json!({ "session_id": SESSION, "name": "small" }), json!({})),
        passed("mcp.list", "Calls the method of the session's runtime", session_only(), json!({ "servers": [] })),
        passed("skills.list", "Calls the method of the session's runtime", session_only(), json!({ "skills": [] })),
        passed("ui.context.update", "Notifies the session's runtime", session_only(), json!({})),
    ]
}

impl Rpc {
    /// Calls a method.
    pub(super) fn dispatch(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        notify: bool,
    ) -> Result<PendingResult, RpcError> {
        match methods().iter().find(|known| known.name == method) {
            Some(Method { run: Some(run), .. }) => run(self, params),
            _ => self.pass_on(method, params, notify),
        }
    }

    fn initialize(&mut self, params: Initialize) -> Result<PendingResult, RpcError> {
        if let Some(other) = params.ui_protocol {
            let detail = format!("UI protocol {other:?} is not supported; {PROTOCOL:?} is");
            return Err(RpcError::params(detail));
        }
        self.client = Some(params.ui_capabilities.supports_confirm);
        self.runtimes = self.runtimes();
        Ok(now(result(&Initialized {
            protocol_version: PROTOCOL.into(),
            server: Server { name: "plexus".into(), version: self.state.version.into() },
            server_capabilities: self.server_capabilities(),
            you: greeting::you(&self.caller),
        })))
    }

    fn list_runtimes(&mut self) -> PendingResult {
        now(result(&RuntimeList { runtimes: self.runtimes().into() }))
    }

    fn list(&mut self, ListSessions { limit, cursor }: ListSessions) -> Result<PendingResult, RpcError> {
        let max = limit.unwrap_or(wire::SESSIONS_MAX);
        let (state, caller) = (self.state.clone(), self.caller.clone());
        Ok(Box::pin(async move {
            state.directory.renew_projects(None).await;
            result(&listing(&state, &caller, None, max, cursor.as_deref())?)
        }))
    }

    fn open(&mut self, params: SessionNew) -> Result<PendingResult, RpcError> {
        let SessionNew { runtime_id, cwd, title, native_id } = params;
        let permit = self.caller.permit::<Prompt>(Target::Runtime(&runtime_id))?;
        let directory = self.state.directory.clone();
        Ok(Box::pin(async move {
            let open = OpenSession { runtime_id, cwd, title, native_id, program: None, mcp_servers: Vec::new() };
            result(&*directory.open_session(&permit, open).await?)
        }))
    }

    fn rename(&mut self, SessionRename { session_id, title }: SessionRename) -> Result<PendingResult, RpcError> {
        self.edit(session_id, Some(title), None)
    }

    fn archive(&mut self, SessionArchive { session_id, archived }: SessionArchive) -> Result<PendingResult, RpcError> {
        self.edit(session_id, None, Some(archived.unwrap_or(true)))
    }

    fn detach(&mut self, params: AttachParams) -> Result<PendingResult, RpcError> {
        Ok(now(result(&Detached { detached: self.link.unsubscribe(&params.session_id) })))
    }

    fn focus(&mut self, Focus { session_id, focused }: Focus) -> Result<PendingResult, RpcError> {
        if let Some(id) = &session_id {
            self.session(id)?;
        }
        self.presence.update(session_id, focused);
        Ok(now(result(&PresenceResult { focused })))
    }

    fn act(&mut self, params: SurfacePress) -> Result<PendingResult, RpcError> {
        let SurfacePress { session_id, surface, action } = params;
        let id = self.named(session_id)?;
        let session = self.session(&id)?;
        let by = SurfacePermits::new(&self.caller, &id, &session.runtime_id)?;
        let directory = self.state.directory.clone();
        Ok(Box::pin(async move { result(&directory.surfaces().act(by, &id, surface, action).await?) }))
    }

    fn list_surfaces(&mut self, SessionParams { session_id }: SessionParams) -> Result<PendingResult, RpcError> {
        let id = self.named(session_id)?;
        self.session(&id)?;
        let directory = self.state.directory.clone();
        Ok(Box::pin(async move { result(&Surfaces { surfaces: directory.surfaces().list(&id).await? }) }))
    }

    /// Draws in a session. `bytes`: the length of the call.
    fn draw(
        &self,
        id: Option<SessionId>,
        call: SurfaceCall,
        bytes: usize,
        key: Option<String>,
    ) -> Result<PendingResult, RpcError> {
        let (id, permit) = self.permitted::<DrawScope>(id)?;
        let directory = self.state.directory.clone();
        Ok(Box::pin(async move { result(&directory.surfaces().draw(&permit, &id, call, bytes, key).await?) }))
    }

    fn show_surface(&mut self, params: SurfaceShow, bytes: usize) -> Result<PendingResult, RpcError> {
        let SurfaceShow { session_id, idempotency_key, show } = params;
        self.draw(session_id, surface_call(show).map_err(RpcError::params)?, bytes, idempotency_key)
    }

    fn update_surface(&mut self, params: SurfaceChanges, bytes: usize) -> Result<PendingResult, RpcError> {
        let SurfaceChanges { session_id, idempotency_key, surface, update } = params;
        self.draw(session_id, update_call(update, surface).map_err(RpcError::params)?, bytes, idempotency_key)
    }

    fn close_surface(&mut self, params: SurfaceClose, bytes: usize) -> Result<PendingResult, RpcError> {
        let SurfaceClose { session_id, surface } = params;
        self.draw(session_id, SurfaceCall::Close { surface }, bytes, None)
    }

    fn ask_by_surface(&mut self, params: SurfaceAsk, bytes: usize) -> Result<PendingResult, RpcError> {
        let SurfaceAsk { session_id, idempotency_key, ask } = params;
        let (id, permit) = self.permitted::<DrawScope>(session_id)?;
        let (directory, call) = (self.state.directory.clone(), ask_call(ask).map_err(RpcError::params)?);
        Ok(Box::pin(
            async move { result(&directory.surfaces().ask(&permit, &id, call, bytes, idempotency_key).await?) },
        ))
    }

    fn wait_for_answer(&mut self, params: SurfaceWait) -> Result<PendingResult, RpcError> {
        let SurfaceWait { session_id, ask_id, wait_s } = params;
        let (id, permit) = self.permitted::<DrawScope>(session_id)?;
        let state = self.state.clone();
        Ok(Box::pin(
            async move { result(&wait_for_ask(&state, &permit, &id, &ask_id, wait_s.unwrap_or_default()).await?) },
        ))
    }

    fn restart(&mut self, params: RestartParams) -> Result<PendingResult, RpcError> {
        let RestartParams { session_id, run_id, idempotency_key } = params;
        let (id, permit) = self.permitted::<Prompt>(session_id)?;
        let directory = self.state.directory.clone();
        Ok(Box::pin(async move { result(&directory.restart(&permit, &id, run_id, idempotency_key).await?) }))
    }

    fn answer_request(&mut self, params: AnswerParams) -> Result<PendingResult, RpcError> {
        let AnswerParams { request_id, idempotency_key, answer } = params;
        let answer = self.answer(request_id, answer.into(), idempotency_key);
        Ok(Box::pin(async move { result(&answer.await?) }))
    }
}
