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
    fn of(reply: &GatewayReply) -> Self {
        Self { status: reply.status, problem: reply.json() }
    }

    pub(crate) fn code(&self) -> &str {
        self.problem["code"].as_str().unwrap_or_default()
    }

    /// "what: why, fix".
    pub(crate) fn explain(&self, what: &str) -> CommandFailure {
        let why = match self.problem["detail"].as_str() {
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
        CommandFailure::new(code, format!("{what}: {why}{fix}"))
    }
}

/// The name of this program: `plexus answer`, `plexus attach`. Arguments are left out, since they may be private.
pub(crate) fn program() -> String {
    let command = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    format!("plexus {}", line(&command, 20)).trim_end().to_owned()
}

/// A failed call, as text for people.
pub(crate) fn failure(what: &str, error: &Error) -> CommandFailure {
    match error {
        Error::Refused(why) => {
            CommandFailure::new(NOT_PERMITTED, format!("{what}: {why}; check that PLEXUS_HOME is the gateway's"))
        }
        Error::Unreached(why) => {
            CommandFailure::new(NO_GATEWAY, format!("{what}: {why}; run `plexus doctor` for details"))
        }
        Error::Lost(why) => CommandFailure::new(
            FAILURE,
            format!("{what}: the gateway did not respond: {why}; run `plexus doctor` for details"),
        ),
        Error::Address(_) | Error::Rpc { .. } | Error::Answer(_) => {
            CommandFailure::new(FAILURE, format!("{what}: {error}"))
        }
    }
}

/// Finds the gateway of `home` again before each connection: a restarted gateway may listen on another port, and another
/// program on the old one.
fn locate(home: Home) -> LocateGateway {
    Arc::new(move || {
        let home = home.clone();
        Box::pin(async move {
            let running = home.running().await.map_err(|why| Error::Unreached(why.to_string()))?;
            let token = home.token().map_err(|why| Error::Refused(why.to_string()))?;
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
    pub(crate) fn follow(&self, session: Option<&SessionId>, begin: FollowStart) -> Follow {
        self.gateway.attach(session, begin)
    }

    /// Sends a request and reads the response's text.
    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
        what: &str,
    ) -> anyhow::Result<Result<String, Refused>> {
        let reply = self.gateway.http(method, path, body, key).await.map_err(|error| failure(what, &error))?;
        Ok(if reply.is_ok() { Ok(reply.text) } else { Err(Refused::of(&reply)) })
    }

    /// `what` names the operation, for the error.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, what: &str) -> anyhow::Result<T> {
        let text = self.send("GET", path, None, None, what).await?.map_err(|refused| refused.explain(what))?;
        read(&text, what)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value, what: &str) -> anyhow::Result<Value> {
        let text = self.try_post(path, body, None, what).await?.map_err(|refused| refused.explain(what))?;
        if text.is_empty() { Ok(Value::Null) } else { read(&text, what) }
    }

    /// A method of the WebSocket protocol; one that the gateway does not know goes to the session's runtime.
    pub(crate) async fn call(&self, method: &str, params: &Value) -> Result<(), plexus_client::Error> {
        self.gateway.call_alone(method, params).await.map(drop)
    }

    /// A POST without a body.
    pub(crate) async fn post_nothing(&self, path: &str, what: &str) -> anyhow::Result<()> {
        self.send("POST", path, None, None, what).await?.map_err(|refused| refused.explain(what))?;
        Ok(())
    }

    /// As [`post`](Self::post), for callers that handle the refusal.
    pub(crate) async fn try_post(
        &self,
        path: &str,
        body: &Value,
        key: Option<&str>,
        what: &str,
    ) -> anyhow::Result<Result<String, Refused>> {
        self.send("POST", path, Some(body), key, what).await
    }

    /// As [`get`](Self::get), for a response of any length and duration, read as it arrives.
    pub(crate) async fn download(&self, path: &str, what: &str) -> anyhow::Result<Pieces> {
        match self.gateway.download(path).await.map_err(|error| failure(what, &error))? {
            Download::Pieces(pieces) => Ok(pieces),
            Download::Refused(reply) => Err(Refused::of(&reply).explain(what).into()),
        }
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value, what: &str) -> anyhow::Result<Value> {
        let text = self.send("PATCH", path, Some(body), None, what).await?.map_err(|refused| refused.explain(what))?;
        read(&text, what)
    }

    pub(crate) async fn put(&self, path: &str, body: &Value, what: &str) -> anyhow::Result<Value> {
        let text = self.send("PUT", path, Some(body), None, what).await?.map_err(|refused| refused.explain(what))?;
        read(&text, what)
    }

    pub(crate) async fn delete(&self, path: &str, what: &str) -> anyhow::Result<()> {
        self.send("DELETE", path, None, None, what).await?.map_err(|refused| refused.explain(what))?;
        Ok(())
    }

    /// A DELETE whose response says something.
    pub(crate) async fn delete_told(&self, path: &str, what: &str) -> anyhow::Result<Value> {
        let text = self.send("DELETE", path, None, None, what).await?.map_err(|refused| refused.explain(what))?;
        read(&text, what)
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
        let doing = "listing the requests";
        if all {
            return Ok(self.get::<List>("/v1/requests", doing).await?.requests);
        }
        let mut open = Vec::new();
        let mut path = "/v1/requests?state=open".to_owned();
        loop {
            let page = self.get::<List>(&path, doing).await?;
            open.extend(page.requests);
            match page.next {
                Some(next) => path = format!("/v1/requests?state=open&before={next}"),
                None => return Ok(open),
            }
        }
    }

    /// The session that a person named: by an identifier, a unique prefix, or `last`.
    pub(crate) async fn session(&self, meant: &str) -> anyhow::Result<SessionInfo> {
        let sessions = self.sessions().await?;
        if meant == "last" {
            return sessions
                .into_iter()
                .next()
                .ok_or_else(|| CommandFailure::plain("there are no sessions yet: start one with `plexus run demo`"));
        }
        let title = |session: &SessionInfo| session.title.clone().unwrap_or_default();
        let near = line(&named_alike(&sessions, meant, |session| session.session_id.as_str(), title), 200);
        choose(sessions, meant, |session| session.session_id.as_str(), "session", "`plexus ls` lists them")
            .map_err(|why| if near.is_empty() { why } else { CommandFailure::plain(format!("{why}{near}")) })
    }
}

/// "; did you mean X?": the known name that `got` most likely misspells; empty if none is near.
pub(crate) fn did_you_mean<'n>(got: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(got, known).map(|near| format!("; did you mean {near}?")).unwrap_or_default()
}

/// The same for an item that was meant by its title.
fn named_alike<T>(all: &[T], meant: &str, id: impl Fn(&T) -> &str, title: impl Fn(&T) -> String) -> String {
    let wanted = meant.to_lowercase();
    let titles: Vec<String> = all.iter().map(|one| title(one).to_lowercase()).collect();
    let near = nearest(&wanted, titles.iter().map(String::as_str));
    let at =
        titles.iter().position(|title| wanted.len() > 2 && title.contains(&wanted) || Some(title.as_str()) == near);
    match at.and_then(|at| all.get(at)) {
        Some(one) => format!("; did you mean {} ({})?", id(one), title(one)),
        None => String::new(),
    }
}

/// The item whose identifier is `meant` or begins with it.
pub(crate) fn choose<T>(all: Vec<T>, meant: &str, id: impl Fn(&T) -> &str, noun: &str, fix: &str) -> anyhow::Result<T> {
    if let Some(at) = all.iter().position(|one| id(one) == meant) {
        return all.into_iter().nth(at).ok_or_else(|| CommandFailure::plain("gone"));
    }
    let near = did_you_mean(meant, all.iter().map(&id));
    // `s_` begins every identifier; the letters after it are enough.
    let bare = |one: &T| id(one).split_once('_').is_some_and(|(_, rest)| rest.starts_with(meant));
    let mut found: Vec<T> =
        all.into_iter().filter(|one| !meant.is_empty() && (id(one).starts_with(meant) || bare(one))).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(CommandFailure::plain(format!("there is no {noun} {}: {fix}{near}", line(meant, 80)))),
        _ => {
            let some: Vec<&str> = found.iter().take(5).map(&id).collect();
            let message =
                format!("{meant} is ambiguous; it is the beginning of {} {noun}s: {}", found.len(), some.join(", "));
            Err(CommandFailure::plain(message))
        }
    }
}

fn read<T: DeserializeOwned>(text: &str, what: &str) -> anyhow::Result<T> {
    serde_json::from_str(text).map_err(|why| {
        let fix = "check that `plexus` and the gateway have the same version; `plexus doctor` shows both";
        CommandFailure::plain(format!("{what}: the gateway's response could not be understood ({why}); {fix}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_names_an_item_only_if_unique() {
        let all = || vec!["s_abc", "s_abd", "s_x"];
        let pick = |meant: &str| choose(all(), meant, |id| id, "session", "fix");
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
        let words = choose(vec!["gemini", "codex"], "gemni", |id| id, "runtime", "fix").unwrap_err().to_string();
        assert_eq!(words, "there is no runtime gemni: fix; did you mean gemini?");
        let titled = [("s_1", "Fix the parser"), ("s_2", "Upgrade")];
        let alike = |meant: &str| named_alike(&titled, meant, |one| one.0, |one| one.1.to_owned());
        assert_eq!(alike("parser"), "; did you mean s_1 (Fix the parser)?");
        assert_eq!(alike("upgarde"), "; did you mean s_2 (Upgrade)?");
        assert_eq!((alike("something else"), alike("x")), (String::new(), String::new()));
    }

    #[test]
    fn refusals_name_the_problem_the_cause_and_the_fix() {
        let refused = |status: u16, problem: Value| Refused { status, problem };
        let said = |refused: Refused| (refused.explain("prompting").code, refused.explain("prompting").message);
        let problem = serde_json::json!({"code": "session_not_found", "detail": "there is no session s_1"});
        let words = "prompting: there is no session s_1; `plexus ls` lists the sessions";
        assert_eq!(said(refused(404, problem)), (1, words.into()));
        let problem =
            serde_json::json!({"code": "scope_missing", "detail": "device \"x\" lacks the scope `prompt` here"});
        assert_eq!(said(refused(403, problem)), (77, "prompting: device \"x\" lacks the scope `prompt` here".into()));
        assert_eq!(said(refused(500, Value::Null)).1, "prompting: the gateway answered with status 500");
        assert_eq!(said(refused(401, Value::Null)).0, 77);
    }
}
