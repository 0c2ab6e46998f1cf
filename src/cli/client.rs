//! The commands' client: [`plexus_client`] as the local administrator of the gateway of the state folder, with readable error texts.

use std::collections::HashSet;
use std::sync::Arc;

use plexus::config::nearest;
use plexus_client::calls::{self, ApiCall};
use plexus_client::{Address, ApiError, Download, Error, Follow, FollowStart, GatewayReply, LocateGateway, Pieces};
use plexus_protocol::api::KnownItems;
use plexus_protocol::{Request, RequestState, RuntimeInfo, SessionId, SessionInfo};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::failure::{CommandFailure, FAILURE, NO_GATEWAY, NOT_PERMITTED};
use super::home::{Home, Running};
use super::output::line;

/// A signed-in client of the running gateway.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) home: Home,
    pub(crate) running: Running,
    pub(crate) gateway: plexus_client::Client,
}

/// A response: its value, and its text, which also has the members that only a newer gateway sends.
pub(crate) struct Response<R> {
    pub(crate) value: R,
    pub(crate) text: String,
}

/// A complete list of the gateway, and the list as JSON under its name, with the members that only a newer gateway sends.
pub(crate) struct Listing<T> {
    pub(crate) items: Vec<T>,
    /// The number of elements that only newer versions can read.
    pub(crate) unreadable: usize,
    pub(crate) json: Map<String, Value>,
    ids: HashSet<String>,
}

impl<T: DeserializeOwned> Listing<T> {
    pub(crate) fn new() -> Self {
        Self { items: Vec::new(), unreadable: 0, json: Map::new(), ids: HashSet::new() }
    }

    /// Adds a page: its `items`, and all its lists in `text`. An item that was updated between two pages appears twice; its first state
    /// counts.
    pub(crate) fn add(&mut self, items: KnownItems<T>, text: &str, id: impl Fn(&T) -> &str) -> anyhow::Result<()> {
        self.unreadable += items.unreadable();
        let is_listed = |element: &Value| T::deserialize(element).is_ok_and(|item| self.ids.contains(id(&item)));
        for (name, value) in serde_json::from_str::<Map<String, Value>>(text)? {
            let Value::Array(elements) = value else { continue };
            if let Value::Array(list) = self.json.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
                list.extend(elements.into_iter().filter(|element| !is_listed(element)));
            }
        }
        self.items.extend(items.into_iter().filter(|item| self.ids.insert(id(item).to_owned())));
        Ok(())
    }

    /// The elements of the JSON.
    pub(crate) fn elements(&mut self) -> impl Iterator<Item = &mut Value> {
        self.json.values_mut().filter_map(Value::as_array_mut).flatten()
    }

    /// Limits the list to its first items.
    pub(crate) fn truncate(&mut self, limit: usize) {
        self.items.truncate(limit);
        self.json.values_mut().filter_map(Value::as_array_mut).for_each(|list| list.truncate(limit));
    }
}

/// A refusal: its value, and its text.
pub(crate) struct Refused {
    pub(crate) error: ApiError,
    pub(crate) text: String,
}

impl Refused {
    fn from_reply(reply: GatewayReply) -> Self {
        Self { error: reply.refusal(), text: reply.text }
    }

    /// Makes a failure with the operation, the reason and the fix as its message.
    pub(crate) fn explain(&self, operation: &str) -> CommandFailure {
        let detail = match self.error.status {
            401 => "the gateway does not accept the token of the state folder",
            _ => &self.error.message,
        };
        let (code, fix) = match self.error.status {
            401 => (NOT_PERMITTED, "; check that PLEXUS_HOME is the gateway's"),
            403 => (NOT_PERMITTED, ""),
            503 => (FAILURE, "; try again in a moment"),
            _ => (FAILURE, ""),
        };
        let fix = match self.error.code.as_str() {
            "session_not_found" => "; `plexus ls` lists the sessions",
            "runtime_not_found" => "; `plexus ls` lists the runtimes",
            "request_not_found" => "; `plexus requests` lists the open ones",
            "runtime_gone" => "; start it again with `plexus run`",
            "storage" => "; free some space on the disk of the state folder, then try again",
            _ => fix,
        };
        CommandFailure::new(code, format!("{operation}: {detail}{fix}"))
    }
}

/// The name of this program: `plexus answer`, `plexus attach`. Arguments are left out, since they may be private.
pub(crate) fn program() -> String {
    let command = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    format!("plexus {}", line(&command, 20)).trim_end().to_owned()
}

/// Makes a failure with a readable text from an error of the client.
pub(crate) fn failure(operation: &str, error: &Error) -> CommandFailure {
    match error {
        Error::Refused(reason) => CommandFailure::new(
            NOT_PERMITTED,
            format!("{operation}: {reason}; check that PLEXUS_HOME is the gateway's"),
        ),
        Error::Unreached(reason) => {
            CommandFailure::new(NO_GATEWAY, format!("{operation}: {reason}; run `plexus doctor` for details"))
        }
        Error::Lost(reason) => CommandFailure::new(
            FAILURE,
            format!("{operation}: the gateway did not respond: {reason}; run `plexus doctor` for details"),
        ),
        Error::Address(_) | Error::Rpc { .. } | Error::Api(_) | Error::Answer(_) => {
            CommandFailure::new(FAILURE, format!("{operation}: {error}"))
        }
    }
}

/// Finds the gateway of `home` again before each connection: a restarted gateway may listen on another port, and another program may use
/// the old one.
fn locate(home: Home) -> LocateGateway {
    Arc::new(move || {
        let home = home.clone();
        Box::pin(async move {
            let running = home.running().await.map_err(|error| Error::Unreached(error.to_string()))?;
            let token = home.token().map_err(|error| Error::Refused(error.to_string()))?;
            Ok(Address { url: running.url, token, program: Some(program()) })
        })
    })
}

impl Client {
    /// Finds the running gateway and signs in.
    pub(crate) async fn find() -> anyhow::Result<Self> {
        let home = Home::find()?;
        let running = home.running().await?;
        Self::to(home, running)
    }

    pub(crate) fn to(home: Home, running: Running) -> anyhow::Result<Self> {
        // A token that cannot be read is reported with the fix before the first call.
        home.token()?;
        let gateway = plexus_client::Client::locating(locate(home.clone()));
        Ok(Self { home, running, gateway })
    }

    pub(crate) fn url(&self) -> &str {
        self.running.url.trim_end_matches('/')
    }

    /// Follows one session, or all.
    pub(crate) fn follow(&self, session: Option<&SessionId>, start: FollowStart) -> Follow {
        self.gateway.attach(session, start)
    }

    /// Makes a call; `operation` names it in errors.
    pub(crate) async fn run<R: DeserializeOwned>(&self, call: ApiCall<R>, operation: &str) -> anyhow::Result<R> {
        Ok(self.request(call, operation).await?.value)
    }

    /// Makes a call like [`run`](Self::run), and also returns the text of the response.
    pub(crate) async fn request<R: DeserializeOwned>(
        &self,
        call: ApiCall<R>,
        operation: &str,
    ) -> anyhow::Result<Response<R>> {
        Ok(self.try_request(call, operation).await?.map_err(|refused| refused.explain(operation))?)
    }

    /// Makes a call like [`request`](Self::request), for callers that handle the refusal.
    pub(crate) async fn try_request<R: DeserializeOwned>(
        &self,
        call: ApiCall<R>,
        operation: &str,
    ) -> anyhow::Result<Result<Response<R>, Refused>> {
        let reply = self.gateway.perform(&call.request).await.map_err(|error| failure(operation, &error))?;
        if !reply.is_ok() {
            return Ok(Err(Refused::from_reply(reply)));
        }
        let value = reply.read().map_err(|error| {
            let fix = "check that `plexus` and the gateway have the same version; `plexus doctor` shows both";
            let reason = match error {
                Error::Answer(reason) => reason.to_string(),
                error => error.to_string(),
            };
            CommandFailure::plain(format!(
                "{operation}: the gateway's response could not be understood ({reason}); {fix}"
            ))
        })?;
        Ok(Ok(Response { value, text: reply.text }))
    }

    /// Calls a method of the WebSocket protocol; one that the gateway does not know is forwarded to the session's runtime.
    pub(crate) async fn call(&self, method: &str, params: &Value) -> Result<(), Error> {
        self.gateway.call_alone(method, params).await.map(drop)
    }

    /// Reads a response of any length and duration as it arrives.
    pub(crate) async fn download(&self, call: &ApiCall<Pieces>, operation: &str) -> anyhow::Result<Pieces> {
        match self.gateway.download(call).await.map_err(|error| failure(operation, &error))? {
            Download::Pieces(pieces) => Ok(pieces),
            Download::Refused(reply) => Err(Refused::from_reply(reply).explain(operation).into()),
        }
    }

    /// All sessions including archived ones, the most recently updated first.
    pub(crate) async fn sessions(&self) -> anyhow::Result<Vec<Arc<SessionInfo>>> {
        Ok(self.list_sessions("all").await?.items)
    }

    /// The sessions, the most recently updated first; `archived` is `false`, `true` or `all`.
    pub(crate) async fn list_sessions(&self, archived: &str) -> anyhow::Result<Listing<Arc<SessionInfo>>> {
        let (mut all, mut cursor) = (Listing::new(), None);
        loop {
            let call = calls::sessions(Some(archived), None, cursor.as_deref());
            let Response { value, text } = self.request(call, "listing the sessions").await?;
            all.add(value.sessions, &text, |session| session.session_id.as_str())?;
            match value.next {
                Some(next) => cursor = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// The most recently updated sessions that are not archived.
    pub(crate) async fn newest_sessions(&self, limit: usize) -> anyhow::Result<Vec<Arc<SessionInfo>>> {
        Ok(self.run(calls::sessions(None, Some(limit), None), "listing the sessions").await?.sessions.into_vec())
    }

    pub(crate) async fn runtimes(&self) -> anyhow::Result<Vec<Arc<RuntimeInfo>>> {
        Ok(self.list_runtimes().await?.items)
    }

    pub(crate) async fn list_runtimes(&self) -> anyhow::Result<Listing<Arc<RuntimeInfo>>> {
        let Response { value, text } = self.request(calls::runtimes(), "listing the runtimes").await?;
        let mut all = Listing::new();
        all.add(value.runtimes, &text, |runtime| runtime.runtime_id.as_str())?;
        Ok(all)
    }

    /// The open requests; with `closed`, also the latest closed ones.
    pub(crate) async fn requests(&self, closed: bool) -> anyhow::Result<Listing<Arc<Request>>> {
        let state = (!closed).then_some(RequestState::Open);
        let (mut all, mut before) = (Listing::new(), None);
        loop {
            let call = calls::requests(state, None, before.as_deref());
            let Response { value, text } = self.request(call, "listing the requests").await?;
            all.add(value.requests, &text, |request| request.request_id.as_str())?;
            match value.next {
                Some(next) if !closed => before = Some(next),
                _ => return Ok(all),
            }
        }
    }

    /// The session that the user named: by an identifier, a unique prefix, or `last`.
    pub(crate) async fn session(&self, name: &str) -> anyhow::Result<SessionInfo> {
        let sessions = self.sessions().await?;
        if name == "last" {
            return sessions
                .into_iter()
                .next()
                .map(Arc::unwrap_or_clone)
                .ok_or_else(|| CommandFailure::plain("there are no sessions yet: start one with `plexus run demo`"));
        }
        let title = |session: &Arc<SessionInfo>| session.title.clone().unwrap_or_default();
        let suggestion = line(&similar_title(&sessions, name, |session| session.session_id.as_str(), title), 200);
        choose(sessions, name, |session| session.session_id.as_str(), "session", "`plexus ls` lists them")
            .map(Arc::unwrap_or_clone)
            .map_err(
                |error| {
                    if suggestion.is_empty() { error } else { CommandFailure::plain(format!("{error}{suggestion}")) }
                },
            )
    }
}

/// "; did you mean X?" with the known name that `got` most likely misspells; empty if none is similar.
pub(crate) fn did_you_mean<'n>(got: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(got, known).map(|suggestion| format!("; did you mean {suggestion}?")).unwrap_or_default()
}

/// A suggestion like [`did_you_mean`], with the item of the most similar title.
fn similar_title<T>(all: &[T], name: &str, id: impl Fn(&T) -> &str, title: impl Fn(&T) -> String) -> String {
    let query = name.to_lowercase();
    let titles: Vec<String> = all.iter().map(|item| title(item).to_lowercase()).collect();
    let suggestion = nearest(&query, titles.iter().map(String::as_str));
    let at =
        titles.iter().position(|title| query.len() > 2 && title.contains(&query) || Some(title.as_str()) == suggestion);
    match at.and_then(|at| all.get(at)) {
        Some(item) => format!("; did you mean {} ({})?", id(item), title(item)),
        None => String::new(),
    }
}

/// The item whose identifier is `name` or begins with it.
pub(crate) fn choose<T>(all: Vec<T>, name: &str, id: impl Fn(&T) -> &str, noun: &str, fix: &str) -> anyhow::Result<T> {
    if let Some(at) = all.iter().position(|item| id(item) == name) {
        return all.into_iter().nth(at).ok_or_else(|| CommandFailure::plain("gone"));
    }
    let suggestion = did_you_mean(name, all.iter().map(&id));
    // `s_` begins every identifier; the letters after it are enough.
    let matches_suffix = |item: &T| id(item).split_once('_').is_some_and(|(_, rest)| rest.starts_with(name));
    let mut matching: Vec<T> = all
        .into_iter()
        .filter(|item| !name.is_empty() && (id(item).starts_with(name) || matches_suffix(item)))
        .collect();
    match matching.len() {
        1 => Ok(matching.remove(0)),
        0 => Err(CommandFailure::plain(format!("there is no {noun} {}: {fix}{suggestion}", line(name, 80)))),
        _ => {
            let some: Vec<&str> = matching.iter().take(5).map(&id).collect();
            let message =
                format!("{name} is ambiguous; it is the beginning of {} {noun}s: {}", matching.len(), some.join(", "));
            Err(CommandFailure::plain(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn prefix_names_an_item_only_if_unique() {
        let all = || vec!["s_abc", "s_abd", "s_x"];
        let pick = |name: &str| choose(all(), name, |id| id, "session", "fix");
        assert_eq!(pick("s_abc").unwrap(), "s_abc");
        assert_eq!(pick("s_x").unwrap(), "s_x");
        assert_eq!(pick("x").unwrap(), "s_x");
        assert_eq!(pick("abd").unwrap(), "s_abd");
        assert_eq!(pick("nope").unwrap_err().to_string(), "there is no session nope: fix");
        assert_eq!(
            pick("ab").unwrap_err().to_string(),
            "ab is ambiguous; it is the beginning of 2 sessions: s_abc, s_abd"
        );
        assert!(pick("").is_err());
        let message = choose(vec!["gemini", "codex"], "gemni", |id| id, "runtime", "fix").unwrap_err().to_string();
        assert_eq!(message, "there is no runtime gemni: fix; did you mean gemini?");
        let titled = [("s_1", "Fix the parser"), ("s_2", "Upgrade")];
        let alike = |name: &str| similar_title(&titled, name, |item| item.0, |item| item.1.to_owned());
        assert_eq!(alike("parser"), "; did you mean s_1 (Fix the parser)?");
        assert_eq!(alike("upgarde"), "; did you mean s_2 (Upgrade)?");
        assert_eq!((alike("something else"), alike("x")), (String::new(), String::new()));
    }

    #[test]
    fn listing_joins_pages_and_keeps_members_of_newer_gateways() {
        let mut all: Listing<String> = Listing::new();
        let pages = [r#"{"list":["a","b",{"new":1}],"next":"2"}"#, r#"{"list":["b","c",{"new":2}],"next":null}"#];
        for text in pages {
            let page: HashMap<String, Value> = serde_json::from_str(text).unwrap();
            all.add(serde_json::from_value(page["list"].clone()).unwrap(), text, String::as_str).unwrap();
        }
        assert_eq!(all.unreadable, 2);
        assert_eq!(all.items, ["a", "b", "c"]);
        assert_eq!(
            Value::from(all.json.clone()),
            serde_json::json!({ "list": ["a", "b", {"new": 1}, "c", {"new": 2}] })
        );
        all.truncate(1);
        assert_eq!((all.items.len(), all.elements().count()), (1, 1));
    }

    #[test]
    fn refusals_name_the_problem_the_cause_and_the_fix() {
        let refused = |status: u16, problem: Value| {
            let mut all = serde_json::json!({ "type": "x", "title": "x", "status": status });
            if let Some(problem) = problem.as_object() {
                all.as_object_mut().unwrap().extend(problem.clone());
            }
            Refused::from_reply(GatewayReply { status, text: all.to_string(), retry_after: None })
        };
        let explain = |refused: Refused| (refused.explain("prompting").code, refused.explain("prompting").message);
        let problem = serde_json::json!({"code": "session_not_found", "detail": "there is no session s_1"});
        let message = "prompting: there is no session s_1; `plexus ls` lists the sessions";
        assert_eq!(explain(refused(404, problem)), (1, message.into()));
        let problem =
            serde_json::json!({"code": "scope_missing", "detail": "device \"x\" lacks the scope `prompt` here"});
        assert_eq!(
            explain(refused(403, problem)),
            (77, "prompting: device \"x\" lacks the scope `prompt` here".into())
        );
        assert_eq!(explain(refused(500, Value::Null)).1, "prompting: the gateway answered with status 500");
        assert_eq!(explain(refused(401, Value::Null)).0, 77);
    }
}
