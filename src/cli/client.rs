//! The commands' client: [`plexus_client`] as the local administrator of the gateway of the state folder, with errors as text
//! for people.

use std::sync::Arc;

use plexus::config::nearest;
use plexus_client::{Address, Download, Error, Follow, FollowStart, GatewayReply, LocateGateway, Pieces};
use plexus_protocol::{Request, RuntimeInfo, SessionId, SessionInfo};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

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

/// An unsuccessful response: the status and, if the gateway sent one, the problem.
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) problem: Value,
}

impl Refused {
    fn from_reply(reply: &GatewayReply) -> Self {
        Self { status: reply.status, problem: reply.json() }
    }

    pub(crate) fn code(&self) -> &str {
        self.problem["code"].as_str().unwrap_or_default()
    }

    /// A failure with the operation, the reason and the fix as its message.
    pub(crate) fn explain(&self, operation: &str) -> CommandFailure {
        let detail = match self.problem["detail"].as_str() {
            _ if self.status == 401 => "the gateway does not accept the token of the state folder".into(),
            Some(detail) => detail.to_owned(),
            None => format!("the gateway answered with status {}", self.status),
        };
        let (code, fix) = match self.status {
            401 => (NOT_PERMITTED, "; check that PLEXUS_HOME is the gateway's"),
            403 => (NOT_PERMITTED, ""),
            503 => (FAILURE, "; try again in a moment"),
            _ => (FAILURE, ""),
        };
        let fix = match self.code() {
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

/// A failed call, as text for people.
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

/// Finds the gateway of `home` again before each connection: a restarted gateway may listen on another port, and another
/// program on the old one.
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

    /// Follows a session, or all.
    pub(crate) fn follow(&self, session: Option<&SessionId>, start: FollowStart) -> Follow {
        self.gateway.attach(session, start)
    }

    /// Sends a request and reads the response's text.
    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
        operation: &str,
    ) -> anyhow::Result<Result<String, Refused>> {
        let reply = self.gateway.http(method, path, body, key).await.map_err(|error| failure(operation, &error))?;
        Ok(if reply.is_ok() { Ok(reply.text) } else { Err(Refused::from_reply(&reply)) })
    }

    /// `what` names the operation, for the error.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, operation: &str) -> anyhow::Result<T> {
        let text =
            self.send("GET", path, None, None, operation).await?.map_err(|refused| refused.explain(operation))?;
        read(&text, operation)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value, operation: &str) -> anyhow::Result<Value> {
        let text = self.try_post(path, body, None, operation).await?.map_err(|refused| refused.explain(operation))?;
        if text.is_empty() { Ok(Value::Null) } else { read(&text, operation) }
    }

    /// A method of the WebSocket protocol; one that the gateway does not know goes to the session's runtime.
    pub(crate) async fn call(&self, method: &str, params: &Value) -> Result<(), plexus_client::Error> {
        self.gateway.call_alone(method, params).await.map(drop)
    }

    /// A POST without a body.
    pub(crate) async fn post_without_body(&self, path: &str, operation: &str) -> anyhow::Result<()> {
        self.send("POST", path, None, None, operation).await?.map_err(|refused| refused.explain(operation))?;
        Ok(())
    }

    /// As [`post`](Self::post), for callers that handle the refusal.
    pub(crate) async fn try_post(
        &self,
        path: &str,
        body: &Value,
        key: Option<&str>,
        operation: &str,
    ) -> anyhow::Result<Result<String, Refused>> {
        self.send("POST", path, Some(body), key, operation).await
    }

    /// As [`get`](Self::get), for a response of any length and duration, read as it arrives.
    pub(crate) async fn download(&self, path: &str, operation: &str) -> anyhow::Result<Pieces> {
        match self.gateway.download(path).await.map_err(|error| failure(operation, &error))? {
            Download::Pieces(pieces) => Ok(pieces),
            Download::Refused(reply) => Err(Refused::from_reply(&reply).explain(operation).into()),
        }
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value, operation: &str) -> anyhow::Result<Value> {
        let text = self
            .send("PATCH", path, Some(body), None, operation)
            .await?
            .map_err(|refused| refused.explain(operation))?;
        read(&text, operation)
    }

    pub(crate) async fn put(&self, path: &str, body: &Value, operation: &str) -> anyhow::Result<Value> {
        let text =
            self.send("PUT", path, Some(body), None, operation).await?.map_err(|refused| refused.explain(operation))?;
        read(&text, operation)
    }

    pub(crate) async fn delete(&self, path: &str, operation: &str) -> anyhow::Result<()> {
        self.send("DELETE", path, None, None, operation).await?.map_err(|refused| refused.explain(operation))?;
        Ok(())
    }

    /// A DELETE whose response says something.
    pub(crate) async fn delete_with_response(&self, path: &str, operation: &str) -> anyhow::Result<Value> {
        let text =
            self.send("DELETE", path, None, None, operation).await?.map_err(|refused| refused.explain(operation))?;
        read(&text, operation)
    }

    /// All sessions with archived ones, the most recently updated first.
    pub(crate) async fn sessions(&self) -> anyhow::Result<Vec<SessionInfo>> {
        #[derive(Deserialize)]
        struct List {
            sessions: Vec<SessionInfo>,
            next: Option<String>,
        }
        let mut all: Vec<SessionInfo> = Vec::new();
        let (mut cursor, mut known) = (String::new(), std::collections::HashSet::new());
        loop {
            let path = format!("/v1/sessions?archived=all&cursor={cursor}");
            let List { sessions, next } = self.get(&path, "listing the sessions").await?;
            // A session updated between two pages comes twice.
            all.extend(sessions.into_iter().filter(|session| known.insert(session.session_id.clone())));
            match next {
                Some(next) => cursor = next,
                None => return Ok(all),
            }
        }
    }

    /// The most recently updated sessions that are not archived.
    pub(crate) async fn newest_sessions(&self, most: usize) -> anyhow::Result<Vec<SessionInfo>> {
        #[derive(Deserialize)]
        struct List {
            sessions: Vec<SessionInfo>,
        }
        Ok(self.get::<List>(&format!("/v1/sessions?limit={most}"), "listing the sessions").await?.sessions)
    }

    pub(crate) async fn runtimes(&self) -> anyhow::Result<Vec<RuntimeInfo>> {
        #[derive(Deserialize)]
        struct List {
            runtimes: Vec<RuntimeInfo>,
        }
        Ok(self.get::<List>("/v1/runtimes", "listing the runtimes").await?.runtimes)
    }

    pub(crate) async fn requests(&self, all: bool) -> anyhow::Result<Vec<Request>> {
        #[derive(Deserialize)]
        struct List {
            requests: Vec<Request>,
            #[serde(default)]
            next: Option<String>,
        }
        let operation = "listing the requests";
        if all {
            return Ok(self.get::<List>("/v1/requests", operation).await?.requests);
        }
        let mut open = Vec::new();
        let mut path = "/v1/requests?state=open".to_owned();
        loop {
            let page = self.get::<List>(&path, operation).await?;
            open.extend(page.requests);
            match page.next {
                Some(next) => path = format!("/v1/requests?state=open&before={next}"),
                None => return Ok(open),
            }
        }
    }

    /// The session that a person named: by an identifier, a unique prefix, or `last`.
    pub(crate) async fn session(&self, name: &str) -> anyhow::Result<SessionInfo> {
        let sessions = self.sessions().await?;
        if name == "last" {
            return sessions
                .into_iter()
                .next()
                .ok_or_else(|| CommandFailure::plain("there are no sessions yet: start one with `plexus run demo`"));
        }
        let title = |session: &SessionInfo| session.title.clone().unwrap_or_default();
        let suggestion = line(&similar_title(&sessions, name, |session| session.session_id.as_str(), title), 200);
        choose(sessions, name, |session| session.session_id.as_str(), "session", "`plexus ls` lists them").map_err(
            |error| if suggestion.is_empty() { error } else { CommandFailure::plain(format!("{error}{suggestion}")) },
        )
    }
}

/// "; did you mean X?": the known name that `got` most likely misspells; empty if none is near.
pub(crate) fn did_you_mean<'n>(got: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(got, known).map(|suggestion| format!("; did you mean {suggestion}?")).unwrap_or_default()
}

/// The same for an item that was meant by its title.
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

/// The item whose identifier is `meant` or begins with it.
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

fn read<T: DeserializeOwned>(text: &str, operation: &str) -> anyhow::Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let fix = "check that `plexus` and the gateway have the same version; `plexus doctor` shows both";
        CommandFailure::plain(format!("{operation}: the gateway's response could not be understood ({error}); {fix}"))
    })
}

#[cfg(test)]
mod tests {
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
    fn refusals_name_the_problem_the_cause_and_the_fix() {
        let refused = |status: u16, problem: Value| Refused { status, problem };
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
