//! `plexus mcp`: an MCP server on stdio, which an agent starts for one session. Its tools draw on the screens of the session's viewers. The
//! gateway does the work; the server handles calls that need no gateway by itself, so that an agent keeps the tools while the gateway
//! restarts, and delays other calls until the gateway is back.

use std::borrow::Cow;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use plexus_protocol::api::surfaces::{AskView, Drawn, SurfaceUpdate};
use plexus_protocol::text::line;
use plexus_protocol::{CallDigest, RequestState, SessionId};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    ErrorData, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError, serve_server};
use rmcp::{Peer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use gateway::Gateway;
use queues::Queues;
use stdio::Stdio;
use tools::{INSTRUCTIONS, TOOLS, WAIT_MAX};

mod arguments;
mod gateway;
mod http;
mod queues;
mod stdio;
#[cfg(test)]
mod tests;
mod tools;

pub use gateway::{CallError, Carrier, FindGateway, GatewayCall};
pub use http::respond;

/// The supported versions of MCP: those that begin with `initialize`.
pub const PROTOCOL_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Maximum number of concurrent tool calls; a further one is refused.
const CALLS_MAX: usize = 64;
/// Total time that a call waits for its turn, for the gateway and for a person. Agents cancel a call after a minute.
const CALL_TIME: Duration = Duration::from_secs(WAIT_MAX);
/// Time between two reports to an agent that a call is still waiting, if the agent requested progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// Time that a call is retried with a refused token, or for a session that is not open: a starting gateway may write a new token, and opens
/// the sessions of agents that it connects to.
const TOKEN_GRACE: Duration = Duration::from_secs(10);
/// Time between two checks of a shared server whether its session has ended.
const SESSION_CHECK: Duration = Duration::from_secs(60);
/// Maximum number of consecutive checks that find no token.
const SESSION_MISSED: u32 = 3;
/// Part of the waiting time that is reserved for the gateway's reply that there is no answer yet.
const WAIT_RESERVE: Duration = Duration::from_millis(500);
/// Minimum time between two polls for an answer.
const WAIT_PAUSE: Duration = Duration::from_millis(500);

/// The options of `plexus mcp`.
pub struct McpOptions {
    /// The session that the agent works in.
    pub session: SessionId,
    /// The state folder, which contains the session's token, in `ui/SESSION`.
    pub home: PathBuf,
    /// Finds the gateway of the state folder.
    pub find: FindGateway,
    /// The name of this server in the agent, if other sessions of the agent have it too: the gateway then checks that the agent of this
    /// session makes each call, and this program ends soon after the session.
    pub shared: Option<String>,
}

/// Serves an agent on stdin and stdout until it closes stdin. Calls for a surface keep their order only on a runtime with one thread.
///
/// # Errors
/// The agent does not speak MCP.
pub async fn serve(options: McpOptions) -> anyhow::Result<()> {
    serve_on(options, tokio::io::stdin(), tokio::io::stdout(), CallTimes::default()).await
}

/// The times of calls; tests use shorter ones.
#[derive(Clone, Copy, Debug)]
struct CallTimes {
    call: Duration,
    progress: Duration,
    /// The time that a call is retried with a refused token.
    token_grace: Duration,
    /// The time between two checks of a shared server whether its session has ended.
    session_check: Duration,
}

impl Default for CallTimes {
    fn default() -> Self {
        Self { call: CALL_TIME, progress: PROGRESS, token_grace: TOKEN_GRACE, session_check: SESSION_CHECK }
    }
}

async fn serve_on(
    options: McpOptions,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    times: CallTimes,
) -> anyhow::Result<()> {
    // The identifier becomes a part of paths.
    anyhow::ensure!(!matches!(options.session.as_str(), "." | ".."), "{} is not a session", options.session);
    let (transport, agent_gone) = Stdio::new(input, output);
    let shared = options.shared.clone();
    let ended = session_ended(&options, times.session_check);
    let gateway = Gateway::new(options, agent_gone, times.token_grace);
    let server = Server { shared, ..Server::new(gateway, times) };
    match serve_server(server, transport).await {
        Ok(running) => {
            tokio::select! {
                outcome = running.waiting() => drop(outcome?),
                () = ended => {}
            }
            Ok(())
        }
        // The agent disconnected before it sent a message.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(reason) => Err(anyhow::anyhow!("no MCP session: {}", line(&reason.to_string(), 200))),
    }
}

/// Resolves some time after the session of a shared server has ended, since its agent has no reason to end the program. The gateway removes
/// the token's file; while it restarts, the file may be missing for a moment.
fn session_ended(options: &McpOptions, pause: Duration) -> impl Future<Output = ()> + Send + use<> {
    let file = options.shared.is_some().then(|| gateway::token_file(&options.home, &options.session));
    async move {
        let Some(file) = file else { return std::future::pending().await };
        let mut missed = 0;
        while missed < SESSION_MISSED {
            tokio::time::sleep(pause).await;
            missed = if file.exists() { 0 } else { missed + 1 };
        }
    }
}

/// The server of one agent.
struct Server<C> {
    gateway: C,
    /// See [`McpOptions::shared`].
    shared: Option<String>,
    queues: Queues,
    calls: Semaphore,
    times: CallTimes,
}

impl<C: Carrier> Server<C> {
    fn new(gateway: C, times: CallTimes) -> Self {
        Self { gateway, shared: None, queues: Queues::default(), calls: Semaphore::new(CALLS_MAX), times }
    }
}

impl<C: Carrier> ServerHandler for Server<C> {
    fn get_info(&self) -> ServerConfig {
        let info = Implementation::new("plexus", env!("CARGO_PKG_VERSION"));
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(info).with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter();
        known.filter(|version| PROTOCOL_VERSIONS.contains(&version.as_str())).cloned().collect()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(tools::ToolText::describe).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = arguments::tool(&request.name) else {
            return Err(ErrorData::invalid_params(format!("Unknown tool: {}", line(&request.name, 100)), None));
        };
        let Ok(_slot) = self.calls.try_acquire() else {
            return Ok(result(Err(format!("{CALLS_MAX} calls are waiting already: wait for one of them"))));
        };
        let deadline = Instant::now() + self.times.call;
        let digest = self.shared.as_ref().map(|server| {
            let name = format!("{server}_{}", tool.name);
            CallDigest::new(&name, request.arguments.as_ref().unwrap_or(&JsonObject::new()))
        });
        let call = async {
            let arguments = arguments::check(tool, request.arguments)?;
            self.run(tool.name, arguments, digest, deadline).await
        };
        tokio::select! {
            outcome = call => Ok(result(outcome)),
            never = self.report_progress(&context) => match never {},
            // A cancelled call gets no reply.
            () = context.ct.cancelled() => Ok(result(Err("cancelled".into()))),
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A request of a known method arrives here if its parameters have another form.
        if request.method == "tools/call" {
            return Err(ErrorData::invalid_params("tools/call needs `name`, and `arguments` that are an object", None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Method not found", None))
    }
}

/// Returns the result of a tool: one line for the model.
fn result(outcome: Result<String, String>) -> CallToolResponse {
    let result = match outcome {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
    };
    result.into()
}

impl<C: Carrier> Server<C> {
    /// Reports regularly that a call is still waiting, if the agent requested progress; never ends.
    async fn report_progress(&self, context: &RequestContext<RoleServer>) -> std::convert::Infallible {
        let Some(token) = context.meta.get_progress_token() else { return std::future::pending().await };
        let begin = Instant::now();
        loop {
            tokio::time::sleep(self.times.progress).await;
            let progress = ProgressNotificationParam::new(token.clone(), begin.elapsed().as_secs_f64());
            let peer: &Peer<RoleServer> = &context.peer;
            // A failure means that the agent has exited, which the service detects.
            let _ = peer.notify_progress(progress.with_message("waiting")).await;
        }
    }

    /// Runs a tool; returns the line for the model, or an error for it. `digest`: that of the call, if the gateway has to check it.
    async fn run(
        &self,
        tool: &str,
        arguments: JsonObject,
        digest: Option<CallDigest>,
        deadline: Instant,
    ) -> Result<String, String> {
        let wait = Duration::from_secs(arguments.get("wait_s").and_then(Value::as_u64).unwrap_or(WAIT_MAX));
        if tool == "ui_wait" {
            return self.wait(text(&arguments, "ask_id"), wait, deadline).await;
        }
        let surface = arguments.get("surface").and_then(Value::as_str).map(str::to_owned);
        let turn = match &surface {
            Some(surface) => Some(self.turn(surface, deadline).await?),
            None => None,
        };
        let pins = pinned(&arguments);
        let key = new_key()?;
        let (method, mut path, body) = request(tool, arguments)?;
        if let Some(digest) = digest {
            path = format!("{path}?call={digest}");
        }
        let call = GatewayCall { method, path: &path, body: body.as_ref(), key: Some(&key), deadline };
        let reply = match self.gateway.call(call).await {
            Ok(reply) => reply,
            Err(CallError::Refused { stale: Some(rev), .. }) => return Ok(format!("stale, now {rev}")),
            Err(reason) => return Err(explain(reason, tool)),
        };
        drop(turn);
        if tool == "ui_ask" {
            let AskView { ask_id, .. } = read(reply)?;
            return self.wait(ask_id.as_str(), wait, deadline).await;
        }
        let Drawn { rev, .. } = read(reply)?;
        Ok(match tool {
            "ui_show" | "ui_html" => format!("shown rev {rev}"),
            "ui_pin" if pins => format!("pinned rev {rev}"),
            "ui_pin" => format!("unpinned rev {rev}"),
            "ui_close" => format!("closed rev {rev}"),
            _ => format!("rev {rev}"),
        })
    }

    /// Waits until the earlier calls for the surface have completed.
    async fn turn(&self, surface: &str, deadline: Instant) -> Result<tokio::sync::OwnedMutexGuard<()>, String> {
        let turn = tokio::time::timeout_at(deadline, self.queues.enter(surface)).await;
        turn.map_err(|_| format!("earlier calls for {surface} still wait for the gateway: this one was not sent"))
    }

    /// Waits for the answer to a question.
    async fn wait(&self, id: &str, wait: Duration, deadline: Instant) -> Result<String, String> {
        let until = (Instant::now() + wait).min(deadline - WAIT_RESERVE);
        let waiting = || format!("waiting {id}: call ui_wait");
        loop {
            let polled = Instant::now();
            let seconds = until.saturating_duration_since(polled).as_secs();
            let path = format!("/asks/{id}?wait={seconds}");
            let call = GatewayCall { method: "GET", path: &path, body: None, key: None, deadline };
            let reply = match self.gateway.call(call).await {
                Ok(reply) => reply,
                // The question is in the gateway's store.
                Err(CallError::TimedOut { .. }) => {
                    return Ok(format!("{} (the gateway is not running now)", waiting()));
                }
                Err(reason) => return Err(explain(reason, "ui_wait")),
            };
            let ask: AskView = read(reply)?;
            let answer = match ask.state {
                RequestState::Open => None,
                RequestState::Answered => Some(answered(&ask)),
                RequestState::Withdrawn | RequestState::Orphaned => {
                    Some("withdrawn: the question was taken back, nobody will answer it".into())
                }
                RequestState::Expired => {
                    Some("expired: nobody answered in time; decide by yourself, or ask again".into())
                }
            };
            if let Some(answer) = answer {
                return Ok(answer);
            }
            // A gateway that is stopping replies early.
            let next = Instant::now().max(polled + WAIT_PAUSE);
            if next + Duration::from_secs(1) > until {
                return Ok(waiting());
            }
            tokio::time::sleep_until(next).await;
        }
    }
}

/// Formats an answer as `answered {..} by Phone`, or `declined by Phone`.
fn answered(ask: &AskView) -> String {
    let by = ask.by.as_ref().map(|by| format!(" by {}", line(by, 100))).unwrap_or_default();
    match &ask.answer {
        None => format!("declined{by}"),
        Some(answer) => format!("answered {answer}{by}"),
    }
}

/// Returns the request of a tool to the gateway: method, path and body.
///
/// # Errors
/// The arguments cannot be combined.
fn request(tool: &str, mut arguments: JsonObject) -> Result<(&'static str, String, Option<Value>), String> {
    if tool == "ui_ask" {
        if arguments.contains_key("surface") == arguments.contains_key("components") {
            return Err(
                "ui_ask: give either `components` (the form) or `surface` (the name of a form shown before)".into()
            );
        }
        if arguments.get("submit").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            return Err("ui_ask: `submit` must name at least one Button of the form".into());
        }
        arguments.remove("wait_s");
        return Ok(("POST", "/asks".into(), Some(Value::Object(arguments))));
    }
    if matches!(tool, "ui_show" | "ui_html") {
        return Ok(("POST", "/surfaces".into(), Some(Value::Object(arguments))));
    }
    let path = format!("/surfaces/{}", text(&arguments, "surface"));
    arguments.remove("surface");
    match tool {
        "ui_close" => Ok(("DELETE", path, None)),
        "ui_pin" => {
            let update = SurfaceUpdate { pinned: Some(pinned(&arguments)), ..SurfaceUpdate::default() };
            Ok(("PATCH", path, Some(json!(update))))
        }
        _ if !["components", "data", "title"].iter().any(|name| arguments.contains_key(*name)) => {
            Err("ui_update: give `data`, `components` or `title`".into())
        }
        _ => Ok(("PATCH", path, Some(Value::Object(arguments)))),
    }
}

/// The `pinned` of `ui_pin`.
fn pinned(arguments: &JsonObject) -> bool {
    arguments.get("pinned").and_then(Value::as_bool).unwrap_or(true)
}

/// A member that has been checked.
fn text<'a>(arguments: &'a JsonObject, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Makes an idempotency key for the call: the gateway executes only one of the calls with the same key.
fn new_key() -> Result<String, String> {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random).map_err(|reason| format!("the system provides no random numbers: {reason}"))?;
    Ok(data_encoding::HEXLOWER.encode(&random))
}

/// Reads a reply of the gateway.
fn read<T: DeserializeOwned>(reply: Value) -> Result<T, String> {
    let unreadable = |_| "the gateway's reply could not be understood: it is of another version".to_owned();
    serde_json::from_value(reply).map_err(unreadable)
}

/// Formats an error for the model.
fn explain(error: CallError, tool: &str) -> String {
    match error {
        CallError::Refused { detail, .. } => detail,
        CallError::TimedOut { reason, was_sent: false } => {
            format!(
                "{tool} was not carried out, and need not be repeated now: {reason}. Go on with your task, and try later."
            )
        }
        CallError::TimedOut { reason, was_sent: true } => format!(
            "{tool} had no reply, and may or may not have been carried out: {reason}. Go on with your task; later, ui_show shows the \
             surface anew."
        ),
        CallError::AgentClosed => "stdin was closed".into(),
    }
}
