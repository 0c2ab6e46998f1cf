//! The calls over HTTP: a function for each route that the command line and the terminal UI use, with its request and the type of its
//! response. [`Client::run`](crate::Client::run) makes a call; a caller that only describes calls takes [`ApiCall::request`] and reads the
//! reply with [`GatewayReply::read`](crate::GatewayReply::read).

use std::fmt::Display;
use std::marker::PhantomData;

use plexus_protocol::api::agent_tools::{McpServers, Skills};
use plexus_protocol::api::changes::{
    ChangeDiff, ChangesReview, ChangesView, RedoChange, StoredPatch, UndoChange, UndoneChange, UndoneChanges,
};
use plexus_protocol::api::devices::{
    DeviceChanges, Devices, Identity, Me, NewCode, NewDevice, NewShare, NewToken, OneTimeCode, RevokedDevices, Share,
};
use plexus_protocol::api::folders::{Files, Folders};
use plexus_protocol::api::history::Page;
use plexus_protocol::api::linking::{AgentLinks, LinkChange};
use plexus_protocol::api::listeners::{NewProxy, NewTlsListener, PublicAccess};
use plexus_protocol::api::operation::{Check, Checks};
use plexus_protocol::api::pairing::{ConfirmPairing, NewPairing, PairingBegun, PairingState, PairingView};
use plexus_protocol::api::runtimes::{Agents, Logs, RuntimeList, StartRuntime};
use plexus_protocol::api::sessions::{
    AcceptedPrompt, CancelRun, EditSession, Hits, NewPrompt, NewSession, RequestsPage, RestartRun, ResumablePage,
    RunReference, SessionsPage,
};
use plexus_protocol::api::snapshot::Snapshot;
use plexus_protocol::api::surfaces::{Acted, SurfaceAction, Surfaces};
use plexus_protocol::api::usage::{CeilingSettings, CeilingsView, UsageBy, UsageSums};
use plexus_protocol::api::worktrees::{ListedWorktrees, RemoveWorktree};
use plexus_protocol::{
    Answer, DeviceId, Receipt, Request, RequestId, RequestState, RunId, RuntimeId, RuntimeInfo, SessionId, SessionInfo,
};
use serde::Serialize;

use crate::Pieces;

/// A request over HTTP, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiRequest {
    /// The method in upper case.
    pub method: &'static str,
    /// The path with its query, beginning with `/`.
    pub path: String,
    /// The body as JSON text.
    pub body: Option<String>,
    /// The `Idempotency-Key`: 1 to 128 visible ASCII characters. A repeated request with the same key takes effect once.
    pub key: Option<String>,
}

/// A call and the type of its response. `()` is a response without a body.
#[derive(Debug)]
#[must_use = "a call does nothing until `Client::run` makes it"]
pub struct ApiCall<R> {
    /// The request of the call.
    pub request: ApiRequest,
    response: PhantomData<fn() -> R>,
}

impl ApiCall<UsageSums> {
    /// Limits the sums to one session.
    pub fn in_session(self, session: Option<&SessionId>) -> Self {
        self.query("session_id", session)
    }

    /// Limits the sums to one runtime.
    pub fn in_runtime(self, runtime: Option<&RuntimeId>) -> Self {
        self.query("runtime_id", runtime)
    }
}

impl<R> ApiCall<R> {
    fn new(method: &'static str, path: String) -> Self {
        Self { request: ApiRequest { method, path, body: None, key: None }, response: PhantomData }
    }

    /// Sets the idempotency key: 1 to 128 visible ASCII characters. The call may then be resent after a lost connection.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.request.key = Some(key.into());
        self
    }

    fn body(mut self, body: &impl Serialize) -> Self {
        // Bodies are structs of text, numbers and JSON, which are always serialized.
        self.request.body = serde_json::to_string(body).ok();
        self
    }

    /// Adds a parameter to the query if it is present.
    fn query(mut self, name: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            let path = &mut self.request.path;
            path.push(if path.contains('?') { '&' } else { '?' });
            let mut pairs = form_urlencoded::Serializer::new(String::new());
            path.push_str(&pairs.append_pair(name, &value.to_string()).finish());
        }
        self
    }
}

/// The name of a unit variant in a query.
fn word(value: impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// Defines a function per route: `name(arguments; body) -> response = METHOD "path" { "parameter" = value };`.
macro_rules! routes {
    ($(
        $(#[$doc:meta])*
        $name:ident($($argument:ident: $type:ty),* $(; $body:ty)?) -> $response:ty
            = $method:ident $path:literal $({ $($parameter:literal = $value:expr),* })?;
    )*) => { $(
        routes!(@one [$(#[$doc])*] $name ($($argument: $type),*) ($($body)?) $response, $method, $path, [$($($parameter = $value),*)?]);
    )* };
    (@one [$($doc:tt)*] $name:ident ($($argument:ident: $type:ty),*) () $response:ty, $method:ident, $path:literal,
        [$($parameter:literal = $value:expr),*]) => {
        $($doc)*
        pub fn $name($($argument: $type),*) -> ApiCall<$response> {
            ApiCall::new(stringify!($method), format!($path))$(.query($parameter, $value))*
        }
    };
    (@one [$($doc:tt)*] $name:ident ($($argument:ident: $type:ty),*) ($body:ty) $response:ty, $method:ident, $path:literal,
        [$($parameter:literal = $value:expr),*]) => {
        $($doc)*
        pub fn $name($($argument: $type,)* body: &$body) -> ApiCall<$response> {
            ApiCall::new(stringify!($method), format!($path))$(.query($parameter, $value))*.body(body)
        }
    };
}

routes! {
    /// Returns the calling device and the gateway.
    me() -> Me = GET "/v1/me";
    /// Removes the calling device.
    sign_out() -> () = DELETE "/v1/me";

    /// Lists the runtimes.
    runtimes() -> RuntimeList = GET "/v1/runtimes";
    /// Starts a runtime.
    start_runtime(; StartRuntime) -> RuntimeInfo = POST "/v1/runtimes";
    /// Returns one runtime.
    runtime(runtime: &RuntimeId) -> RuntimeInfo = GET "/v1/runtimes/{runtime}";
    /// Stops a runtime for good.
    stop_runtime(runtime: &RuntimeId) -> () = DELETE "/v1/runtimes/{runtime}";
    /// Restarts a runtime.
    restart_runtime(runtime: &RuntimeId) -> RuntimeInfo = POST "/v1/runtimes/{runtime}/restart";
    /// Returns the recent stderr output of a runtime, at most 1000 lines.
    runtime_logs(runtime: &RuntimeId) -> Logs = GET "/v1/runtimes/{runtime}/logs";
    /// Returns a page of the conversations that a runtime stores; `limit` is at most 1000, `cursor` is the `next` of the previous page.
    resumable(runtime: &RuntimeId, limit: Option<usize>, cursor: Option<&str>) -> ResumablePage
        = GET "/v1/runtimes/{runtime}/resumable" { "limit" = limit, "cursor" = cursor };
    /// Lists the agents that the gateway can start.
    agents() -> Agents = GET "/v1/agents";

    /// Lists folders that sessions used, and those in `under` whose names begin with `prefix`.
    folders(under: Option<&str>, prefix: Option<&str>) -> Folders
        = GET "/v1/folders" { "under" = under, "prefix" = prefix };
    /// Lists files of a folder whose paths match `query`, best first.
    folder_files(under: &str, query: &str, limit: usize) -> Files
        = GET "/v1/folders/files" { "under" = Some(under), "query" = Some(query), "limit" = Some(limit) };
    /// Lists files of a session's folder whose paths match `query`, best first.
    session_files(session: &SessionId, query: &str, limit: usize) -> Files
        = GET "/v1/sessions/{session}/files" { "limit" = Some(limit), "query" = Some(query) };

    /// Lists the git worktrees that were made for sessions.
    worktrees() -> ListedWorktrees = GET "/v1/worktrees";
    /// Removes a worktree that no session works in.
    remove_worktree(; RemoveWorktree) -> () = POST "/v1/worktrees/remove";

    /// Runs the health checks: all, or only `memory` or `clock`.
    doctor(only: Option<&str>) -> Checks = GET "/v1/doctor" { "only" = only };
    /// Trusts the clock of the gateway's machine despite its jump.
    confirm_clock() -> Check = POST "/v1/clock/confirm";

    /// Lists the agents with terminals of their own, and the changes that linking would make.
    agent_links() -> AgentLinks = GET "/v1/link";
    /// Links or unlinks an agent, with exactly the changes that were shown.
    change_link(agent: &str; LinkChange) -> AgentLinks = POST "/v1/link/{agent}";

    /// Returns a page of sessions, most recently updated first. `archived` is `false` (the default), `true` or `all`.
    sessions(archived: Option<&str>, limit: Option<usize>, cursor: Option<&str>) -> SessionsPage
        = GET "/v1/sessions" { "archived" = archived, "limit" = limit, "cursor" = cursor };
    /// Opens a session.
    open_session(; NewSession) -> SessionInfo = POST "/v1/sessions";
    /// Returns one session.
    session(session: &SessionId) -> SessionInfo = GET "/v1/sessions/{session}";
    /// The state of a session for a client that joins; `max_bytes` limits its messages and tool calls.
    snapshot(session: &SessionId, max_bytes: Option<usize>) -> Snapshot
        = GET "/v1/sessions/{session}/snapshot" { "max_bytes" = max_bytes };
    /// Renames or archives a session.
    edit_session(session: &SessionId; EditSession) -> SessionInfo = PATCH "/v1/sessions/{session}";
    /// Ends a session and deletes all its data.
    delete_session(session: &SessionId) -> () = DELETE "/v1/sessions/{session}";
    /// Starts a run, or queues it.
    prompt(session: &SessionId; NewPrompt) -> AcceptedPrompt = POST "/v1/sessions/{session}/prompt";
    /// Cancels the current run, or the named one.
    cancel(session: &SessionId; CancelRun) -> RunReference = POST "/v1/sessions/{session}/cancel";
    /// Sends a run's prompt again; a current run is cancelled first.
    restart_run(session: &SessionId; RestartRun) -> AcceptedPrompt = POST "/v1/sessions/{session}/restart";
    /// Creates a read-only link to a session.
    share(session: &SessionId; NewShare) -> Share = POST "/v1/sessions/{session}/shares";

    /// Exports all events of a session; `format` is `ndjson`, `md` or `html`.
    export(session: &SessionId, format: &str) -> Pieces
        = GET "/v1/sessions/{session}/export" { "format" = Some(format) };
    /// Lists the MCP servers of a session's agent.
    mcp_servers(session: &SessionId) -> McpServers = GET "/v1/sessions/{session}/mcp";
    /// Lists the skills of a session's agent.
    skills(session: &SessionId) -> Skills = GET "/v1/sessions/{session}/skills";
    /// Lists the surfaces that a session's agent draws.
    surfaces(session: &SessionId) -> Surfaces = GET "/v1/sessions/{session}/surfaces";
    /// Presses a control of a surface: an answer to the surface's question, or a prompt for the agent.
    press_surface(session: &SessionId, surface: &str; SurfaceAction) -> Acted
        = POST "/v1/sessions/{session}/surfaces/{surface}/action";

    /// Lists the files that a session, or one run of it, changed.
    changes(session: &SessionId, run: Option<&RunId>) -> ChangesView
        = GET "/v1/sessions/{session}/changes" { "run" = run };
    /// Returns the changes of one file, or all changes of a session or of one run, as one patch.
    changes_patch(session: &SessionId, path: Option<&str>, run: Option<&RunId>) -> Pieces
        = GET "/v1/sessions/{session}/changes/patch" { "path" = path, "run" = run };
    /// Returns the diff of a changed file.
    change_diff(session: &SessionId, path: &str, run: Option<&RunId>) -> ChangeDiff
        = GET "/v1/sessions/{session}/changes/file" { "path" = Some(path), "run" = run };
    /// Undoes a change of a file, or a hunk of it.
    undo_change(session: &SessionId; UndoChange) -> UndoneChange = POST "/v1/sessions/{session}/changes/undo";
    /// Lists the undone changes that can be restored, at most 200.
    undone_changes(session: &SessionId) -> UndoneChanges = GET "/v1/sessions/{session}/changes/undone";
    /// Restores an undone change.
    redo_change(session: &SessionId; RedoChange) -> StoredPatch = POST "/v1/sessions/{session}/changes/redo";
    /// Sends comments on changed lines as one prompt.
    review_changes(session: &SessionId; ChangesReview) -> AcceptedPrompt
        = POST "/v1/sessions/{session}/changes/review";

    /// Returns a page of requests, newest first, at most 1000; `before` is the `next` of the previous page.
    requests(state: Option<RequestState>, session: Option<&SessionId>, before: Option<&str>) -> RequestsPage
        = GET "/v1/requests" { "state" = state.and_then(word), "session" = session, "before" = before };
    /// Returns one complete request.
    request(request: &RequestId) -> Request = GET "/v1/requests/{request}";
    /// Answers a request; the first answer wins.
    answer(request: &RequestId; Answer) -> Receipt = POST "/v1/requests/{request}/answer";
    /// Searches for messages with all of the words: 1 to 512 characters, at most 100 passages.
    search(words: &str, limit: Option<usize>) -> Hits = GET "/v1/search" { "q" = Some(words), "limit" = limit };

    /// Sums up the usage of agents from the day `from` to the day `to` (`YYYY-MM-DD`), in a time zone `utc_offset` minutes ahead of UTC.
    usage(by: UsageBy, from: Option<&str>, to: Option<&str>, utc_offset: i64, limit: Option<usize>) -> UsageSums
        = GET "/v1/usage" { "by" = word(by), "from" = from, "to" = to, "utc_offset" = Some(utc_offset), "limit" = limit };
    /// Returns the ceilings of the usage, and the usage of today.
    ceilings() -> CeilingsView = GET "/v1/usage/ceilings";
    /// Sets the ceilings, in place of those set before.
    set_ceilings(; CeilingSettings) -> CeilingsView = PUT "/v1/usage/ceilings";

    /// Lists the enrolled devices.
    devices() -> Devices = GET "/v1/devices";
    /// Enrols a device.
    enrol_device(; NewDevice) -> NewToken = POST "/v1/devices";
    /// Renames a device, or permits it to answer from notifications.
    change_device(device: &DeviceId; DeviceChanges) -> Identity = PATCH "/v1/devices/{device}";
    /// Revokes a device immediately.
    revoke_device(device: &DeviceId) -> () = DELETE "/v1/devices/{device}";
    /// Signs out all browsers of this user on the gateway's machine.
    revoke_local_browsers() -> RevokedDevices = DELETE "/v1/local-browsers";
    /// Creates a one-time code that enrols a device.
    create_code(; NewCode) -> OneTimeCode = POST "/v1/codes";
    /// Starts a pairing: a short code for one device.
    begin_pairing(; NewPairing) -> PairingBegun = POST "/v1/pairings";
    /// Returns the state of a pairing. Waits up to `wait` seconds, at most 60, for a state other than `known`.
    pairing(pairing: &str, wait: Option<u64>, known: Option<PairingState>) -> PairingView
        = GET "/v1/pairings/{pairing}" { "wait" = wait, "known" = known.and_then(word) };
    /// Confirms that the device shows this number.
    confirm_pairing(pairing: &str; ConfirmPairing) -> PairingView = POST "/v1/pairings/{pairing}/confirm";
    /// Refuses a pairing.
    refuse_pairing(pairing: &str) -> () = DELETE "/v1/pairings/{pairing}";

    /// Returns the addresses at which other machines can reach the gateway.
    listeners() -> PublicAccess = GET "/v1/listeners";
    /// Adds a TLS listener with the certificate of `plexus tls init`.
    add_tls_listener(; NewTlsListener) -> PublicAccess = PUT "/v1/listeners/tls";
    /// Removes the TLS listener that was added.
    remove_tls_listener() -> () = DELETE "/v1/listeners/tls";
    /// Accepts connections that a proxy on the gateway's machine forwards under an origin.
    add_proxy(; NewProxy) -> PublicAccess = PUT "/v1/listeners/proxy";
    /// Removes the proxy that was added.
    remove_proxy() -> () = DELETE "/v1/listeners/proxy";
}

/// Returns a page of the events of a session, or of all, after a cursor (empty: from the oldest). The chunks of a message are one event, as
/// are the updates of a tool call.
pub fn merged_events(session: Option<&SessionId>, after: &str, limit: usize) -> ApiCall<Page> {
    let path = session.map_or_else(|| "/v1/events".to_owned(), |session| format!("/v1/sessions/{session}/events"));
    let call = ApiCall::new("GET", path).query("merge", Some(true)).query("limit", Some(limit));
    call.query("after", Some(after))
}

/// Returns a page of the events of a session before a cursor, or before `now`, merged as in [`merged_events`]. The page has at most `limit`
/// events and about `max_bytes` bytes; the members of a tool call are shortened to about `max_output` bytes each.
pub fn merged_events_before(
    session: &SessionId,
    before: &str,
    (limit, max_bytes, max_output): (usize, usize, usize),
) -> ApiCall<Page> {
    let call = ApiCall::new("GET", format!("/v1/sessions/{session}/events"));
    let call = call.query("merge", Some(true)).query("limit", Some(limit)).query("max_bytes", Some(max_bytes));
    call.query("max_output", Some(max_output)).query("before", Some(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_method_path_query_and_body_of_their_route() {
        let session = SessionId::trusted("s_1");
        let request = prompt(&session, &NewPrompt { text: Some("hello".into()), content: None }).key("k1").request;
        assert_eq!((request.method, request.path.as_str()), ("POST", "/v1/sessions/s_1/prompt"));
        assert_eq!((request.body.as_deref(), request.key.as_deref()), (Some(r#"{"text":"hello"}"#), Some("k1")));
        let path = |request: ApiRequest| request.path;
        assert_eq!(path(sessions(Some("all"), None, Some("1.2")).request), "/v1/sessions?archived=all&cursor=1.2");
        assert_eq!(path(search("a b&c", Some(5)).request), "/v1/search?q=a+b%26c&limit=5");
        assert_eq!(path(requests(Some(RequestState::Open), None, None).request), "/v1/requests?state=open");
        assert_eq!(path(usage(UsageBy::Day, None, None, -60, None).request), "/v1/usage?by=day&utc_offset=-60");
        let sums = usage(UsageBy::Day, None, None, 0, None).in_session(Some(&session)).in_runtime(None);
        assert_eq!(path(sums.request), "/v1/usage?by=day&utc_offset=0&session_id=s_1");
        assert_eq!(path(merged_events(None, "", 9).request), "/v1/events?merge=true&limit=9&after=");
        assert_eq!(
            path(merged_events_before(&session, "e:7+1", (9, 100, 10)).request),
            "/v1/sessions/s_1/events?merge=true&limit=9&max_bytes=100&max_output=10&before=e%3A7%2B1"
        );
        assert_eq!(
            path(pairing("p1", Some(20), Some(PairingState::Joined)).request),
            "/v1/pairings/p1?wait=20&known=joined"
        );
    }
}
