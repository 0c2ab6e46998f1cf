//! The HTTP client of the commands: loopback, with the local token.

use std::time::Duration;

use plexus_protocol::{Request, RuntimeInfo, SessionInfo};
use reqwest::header::HeaderName;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::home::{Home, Running};
use super::term::line;
use super::{CommandFailure, FAILURE, NO_GATEWAY, NOT_PERMITTED};

/// How long an answer may take. Starting an agent is the slowest thing asked for; seconds, a minute when loaded.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long an answer may take that comes in pieces.
const LONGEST: Duration = Duration::from_secs(6 * 3600);
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);

/// A signed-in client of the running gateway.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) home: Home,
    pub(crate) running: Running,
    http: reqwest::Client,
    token: String,
}

/// An answer that is no success: the status and, where the gateway sent one, the problem.
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) problem: Value,
}

impl Refused {
    pub(crate) fn code(&self) -> &str {
        self.problem["code"].as_str().unwrap_or_default()
    }

    /// "what: why, fix".
    pub(crate) fn explain(&self, what: &str) -> CommandFailure {
        let why = match self.problem["detail"].as_str() {
            _ if self.status == StatusCode::UNAUTHORIZED => {
                "the gateway does not know the token of the state folder".into()
            }
            Some(detail) => detail.to_owned(),
            None => format!("the gateway answered {}", self.status),
        };
        let (code, fix) = match self.status {
            StatusCode::UNAUTHORIZED => (NOT_PERMITTED, "; is PLEXUS_HOME that of the gateway?"),
            StatusCode::FORBIDDEN => (NOT_PERMITTED, ""),
            StatusCode::SERVICE_UNAVAILABLE => (FAILURE, "; try again in a moment"),
            _ => (FAILURE, ""),
        };
        let fix = match self.code() {
            "session_not_found" => "; `plexus ls` shows the sessions",
            "runtime_not_found" => "; `plexus ls` shows the runtimes",
            "request_not_found" => "; `plexus requests` shows the open ones",
            "runtime_gone" => "; start it again with `plexus run`",
            "storage" => "; make room on the disk of the state folder, then try again",
            _ => fix,
        };
        CommandFailure::new(code, format!("{what}: {why}{fix}"))
    }
}

/// Which of our programs this is: `plexus answer`, `plexus attach`. What comes after the command is nobody's business.
pub(crate) fn program() -> String {
    let command = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    format!("plexus {}", line(&command, 20)).trim_end().to_owned()
}

impl Client {
    /// Finds the running gateway and signs in.
    pub(crate) async fn find() -> anyhow::Result<Self> {
        let home = Home::find()?;
        let running = home.running().await?;
        Self::to(home, running)
    }

    pub(crate) fn to(home: Home, running: Running) -> anyhow::Result<Self> {
        let named = program().parse().map(|name| (HeaderName::from_static("plexus-program"), name));
        let http = reqwest::Client::builder()
            .default_headers(named.into_iter().collect())
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(PATIENCE)
            .build()?;
        let token = home.token()?;
        Ok(Self { home, running, http, token })
    }

    pub(crate) fn url(&self) -> &str {
        self.running.url.trim_end_matches('/')
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Sends a request and reads the answer's text.
    ///
    /// # Errors
    /// The gateway cannot be reached, or its answer not read.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> anyhow::Result<Result<String, Refused>> {
        let mut request = self.http.request(method, format!("{}{path}", self.url())).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let gone = |why: reqwest::Error| self.gone(&why);
        let answer = request.send().await.map_err(gone)?;
        let status = answer.status();
        let text = answer.text().await.map_err(gone)?;
        if status.is_success() {
            return Ok(Ok(text));
        }
        Ok(Err(Refused { status, problem: serde_json::from_str(&text).unwrap_or(Value::Null) }))
    }

    /// `what` says in words what was to be done, for the error.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, what: &str) -> anyhow::Result<T> {
        let text = self.send(Method::GET, path, None, None).await?.map_err(|refused| refused.explain(what))?;
        read(&text, what)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value, what: &str) -> anyhow::Result<Value> {
        let text = self.try_post(path, body, None).await?.map_err(|refused| refused.explain(what))?;
        if text.is_empty() { Ok(Value::Null) } else { read(&text, what) }
    }

    /// A POST that says everything by its path.
    pub(crate) async fn post_nothing(&self, path: &str, what: &str) -> anyhow::Result<()> {
        self.send(Method::POST, path, None, None).await?.map_err(|refused| refused.explain(what))?;
        Ok(())
    }

    /// As [`post`](Self::post), for callers that want to look at the refusal.
    pub(crate) async fn try_post(
        &self,
        path: &str,
        body: &Value,
        key: Option<&str>,
    ) -> anyhow::Result<Result<String, Refused>> {
        self.send(Method::POST, path, Some(body), key).await
    }

    /// As [`get`](Self::get), for an answer of any length and duration, read as it comes.
    pub(crate) async fn stream(&self, path: &str, what: &str) -> anyhow::Result<reqwest::Response> {
        let request = self.http.get(format!("{}{path}", self.url())).bearer_auth(&self.token).timeout(LONGEST);
        let answer = request.send().await.map_err(|why| self.gone(&why))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let text = answer.text().await.unwrap_or_default();
        let problem = serde_json::from_str(&text).unwrap_or(Value::Null);
        Err(Refused { status, problem }.explain(what).into())
    }

    fn gone(&self, why: &reqwest::Error) -> CommandFailure {
        let cause = if why.is_timeout() { "it took too long" } else { "the connection failed" };
        let message = format!("the gateway at {} did not answer: {cause}; `plexus doctor` says more", self.url());
        CommandFailure::new(if why.is_connect() { NO_GATEWAY } else { FAILURE }, message)
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value, what: &str) -> anyhow::Result<Value> {
        let text = self.send(Method::PATCH, path, Some(body), None).await?.map_err(|refused| refused.explain(what))?;
        read(&text, what)
    }

    pub(crate) async fn delete(&self, path: &str, what: &str) -> anyhow::Result<()> {
        self.send(Method::DELETE, path, None, None).await?.map_err(|refused| refused.explain(what))?;
        Ok(())
    }

    /// Every session, archived ones too; the one with the latest news first, as the gateway orders them.
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
            // What had news meanwhile comes twice.
            all.extend(sessions.into_iter().filter(|session| known.insert(session.session_id.clone())));
            match next {
                Some(next) => cursor = next,
                None => return Ok(all),
            }
        }
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

    /// The session that a person means: an identifier, the unique beginning of one, or `last`.
    pub(crate) async fn session(&self, meant: &str) -> anyhow::Result<SessionInfo> {
        let sessions = self.sessions().await?;
        if meant == "last" {
            return sessions
                .into_iter()
                .next()
                .ok_or_else(|| CommandFailure::plain("there is no session yet: start one with `plexus run demo`"));
        }
        choose(sessions, meant, |session| session.session_id.as_str(), "session", "`plexus ls` shows them")
    }
}

/// The one whose identifier is `meant` or begins so.
pub(crate) fn choose<T>(all: Vec<T>, meant: &str, id: impl Fn(&T) -> &str, noun: &str, fix: &str) -> anyhow::Result<T> {
    if let Some(at) = all.iter().position(|one| id(one) == meant) {
        return all.into_iter().nth(at).ok_or_else(|| CommandFailure::plain("gone"));
    }
    // `s_` alone is the beginning of every one; the letters after it are enough.
    let bare = |one: &T| id(one).split_once('_').is_some_and(|(_, rest)| rest.starts_with(meant));
    let mut found: Vec<T> =
        all.into_iter().filter(|one| !meant.is_empty() && (id(one).starts_with(meant) || bare(one))).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(CommandFailure::plain(format!("there is no {noun} {meant}: {fix}"))),
        _ => {
            let some: Vec<&str> = found.iter().take(5).map(&id).collect();
            let message =
                format!("{meant} is the beginning of {} {noun}s: {}; write more of it", found.len(), some.join(", "));
            Err(CommandFailure::plain(message))
        }
    }
}

fn read<T: DeserializeOwned>(text: &str, what: &str) -> anyhow::Result<T> {
    serde_json::from_str(text).map_err(|why| {
        let fix = "is `plexus` of the same version as the gateway? `plexus doctor` says more";
        CommandFailure::plain(format!("{what}: the gateway's answer makes no sense ({why}); {fix}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unique_beginning_names_one() {
        let all = || vec!["s_abc", "s_abd", "s_x"];
        let pick = |meant: &str| choose(all(), meant, |id| id, "session", "fix");
        assert_eq!(pick("s_abc").unwrap(), "s_abc");
        assert_eq!(pick("s_x").unwrap(), "s_x");
        assert_eq!(pick("x").unwrap(), "s_x");
        assert_eq!(pick("abd").unwrap(), "s_abd");
        assert_eq!(pick("nope").unwrap_err().to_string(), "there is no session nope: fix");
        assert_eq!(
            pick("ab").unwrap_err().to_string(),
            "ab is the beginning of 2 sessions: s_abc, s_abd; write more of it"
        );
        assert!(pick("").is_err());
    }

    #[test]
    fn refusals_say_what_why_and_the_fix() {
        let refused = |status: u16, problem: Value| Refused { status: StatusCode::from_u16(status).unwrap(), problem };
        let said = |refused: Refused| (refused.explain("prompting").code, refused.explain("prompting").message);
        let problem = serde_json::json!({"code": "session_not_found", "detail": "there is no session s_1"});
        let words = "prompting: there is no session s_1; `plexus ls` shows the sessions";
        assert_eq!(said(refused(404, problem)), (1, words.into()));
        let problem =
            serde_json::json!({"code": "scope_missing", "detail": "device \"x\" lacks the scope `prompt` here"});
        assert_eq!(said(refused(403, problem)), (77, "prompting: device \"x\" lacks the scope `prompt` here".into()));
        assert_eq!(said(refused(500, Value::Null)).1, "prompting: the gateway answered 500 Internal Server Error");
        assert_eq!(said(refused(401, Value::Null)).0, 77);
    }
}
