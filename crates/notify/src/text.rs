//! The text of a notification. Pure.
//!
//! The title is the gateway's own text. The agent's text is in the body, safe to display, shortened to fit, and without anything that
//! looks like a secret: a notification appears on lock screens and in logs of webhooks.

use std::sync::Arc;

use serde_json::{Value, json};

use plexus_auth::{Grant, Target};
use plexus_protocol::answers::Unavailable;
use plexus_protocol::text::hides;
use plexus_protocol::{
    Choice, Request, RequestId, RequestState, RequestType, Risk, RuntimeId, Scope, SessionId, Timestamp,
};
use plexus_risk::masked;

/// The kind of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotificationKind {
    /// A request is open.
    Request,
    /// A run completed.
    Ended,
    /// A run failed.
    Failed,
    /// A run continues, but had no event for a while.
    Stalled,
}

impl NotificationKind {
    /// Returns whether the news lasts until it ends, as opposed to a single event.
    pub(super) fn lasts(self) -> bool {
        matches!(self, Self::Request | Self::Stalled)
    }
}

/// Maximum size of a payload, in bytes of JSON; the body is cut to fit. Encrypted and padded it stays below the limit of services.
pub(super) const PAYLOAD_MAX: usize = 2048;
/// Maximum length of a quoted name or title, in characters.
const NAME_CHARS: usize = 60;
/// Number of bytes of a request that a withdrawal and a line of a summary repeat.
const BRIEF: usize = 120;
/// Number of lines of a summary; the others are counted.
const SUM_LINES: usize = 6;
/// Maximum size of the lines below the request, in bytes: reasons, warnings, where it can be answered, the title of the session. They are
/// retained, and the request is cut.
const ASIDE: usize = 600;
/// The tag of summaries: a new one replaces the last.
pub(super) const SUM_TAG: &str = "summary";

/// One news item, with all data for its notifications.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NotificationText {
    pub(super) tag: String,
    pub(super) kind: NotificationKind,
    pub(super) session_id: SessionId,
    pub(super) runtime_id: RuntimeId,
    title: String,
    /// The body, with masked secrets, not yet cut.
    body: String,
    /// Lines below the body, with masked secrets.
    notes: Vec<String>,
    request: Option<RequestInfo>,
}

/// The data of a request that a client displays and answers.
#[derive(Clone, Debug, PartialEq)]
struct RequestInfo {
    request_id: RequestId,
    digest: String,
    risk: Risk,
    /// `true` if the request can be answered by a yes or a no.
    yes_or_no: bool,
    expires_at: Option<Timestamp>,
}

/// The urgency for a push service (RFC 8030, 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    Low,
    Normal,
    High,
}

impl Urgency {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

/// A notification for any target.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NotificationMessage {
    pub(super) tag: String,
    pub(super) payload: Value,
    pub(super) urgency: Urgency,
    /// Time for which a push service stores the message for a phone that is offline, in seconds.
    pub(super) ttl: i64,
}

const HOUR: i64 = 3600;
/// The time to live of a request, in seconds, unless it expires sooner.
const TTL_REQUEST: i64 = 24 * HOUR;
/// The time to live of the end of a run, in seconds.
const TTL_END: i64 = 4 * HOUR;
/// The time to live of a test, in seconds.
const TTL_TEST: i64 = 60;

impl NotificationText {
    /// Makes the news that a request is open.
    pub(super) fn for_request(request: &Request, session_title: Option<&str>) -> Self {
        let action = match request.kind {
            RequestType::Confirm | RequestType::Permission => "asks for permission",
            RequestType::Prompt | RequestType::Elicitation => "asks for an answer",
            RequestType::Pick => "asks to choose",
        };
        let danger = if request.risk == Risk::Danger { ": dangerous" } else { "" };
        let mut notes = Vec::new();
        if request.risk > Risk::Low && !request.risk_reasons.is_empty() {
            notes.push(format!("Why: {}", masked(&request.risk_reasons.join("; "))));
        }
        notes.extend(request.warnings.iter().map(|warning| format!("⚠ {warning}")));
        notes.extend(quoted(session_title));
        let kinds = |matches: fn(Choice) -> bool| request.options.iter().any(|option| matches(option.kind));
        let yes_or_no = match request.kind {
            RequestType::Confirm => true,
            RequestType::Permission => kinds(|kind| kind == Choice::AllowOnce) && kinds(Choice::rejects),
            RequestType::Prompt | RequestType::Pick | RequestType::Elicitation => false,
        };
        Self {
            tag: format!("request:{}", request.request_id),
            kind: NotificationKind::Request,
            session_id: request.session_id.clone(),
            runtime_id: request.runtime_id.clone(),
            title: format!("{} {action}{danger}", request.runtime_id),
            body: masked(&request.display),
            notes,
            request: Some(RequestInfo {
                request_id: request.request_id.clone(),
                digest: request.digest.clone(),
                risk: request.risk,
                yes_or_no: yes_or_no && !request.observe_only,
                expires_at: request.expires_at,
            }),
        }
    }

    /// Makes the news that a run ended.
    pub(super) fn for_run_end(
        run: &str,
        failed: bool,
        session_id: SessionId,
        runtime_id: RuntimeId,
        message: Option<&str>,
        session_title: Option<&str>,
    ) -> Self {
        Self {
            tag: format!("run:{run}"),
            kind: if failed { NotificationKind::Failed } else { NotificationKind::Ended },
            title: format!("{runtime_id} {}", if failed { "failed" } else { "is done" }),
            session_id,
            runtime_id,
            body: message.map(masked).unwrap_or_default(),
            notes: quoted(session_title).into_iter().collect(),
            request: None,
        }
    }

    /// Makes the news that a run had no event for a while; [`with_minutes`](Self::with_minutes) adds the time.
    pub(super) fn for_silence(
        run: &str,
        session_id: SessionId,
        runtime_id: RuntimeId,
        session_title: Option<&str>,
    ) -> Self {
        Self {
            tag: format!("silence:{run}"),
            kind: NotificationKind::Stalled,
            title: format!("{runtime_id} makes no progress"),
            session_id,
            runtime_id,
            body: "The run continues, but had no event since. It may be stuck.".into(),
            notes: quoted(session_title).into_iter().collect(),
            request: None,
        }
    }

    /// Returns the news with the length of the silence.
    pub(super) fn with_minutes(&self, minutes: i64) -> Self {
        Self { title: format!("{}: no progress for {minutes} min", self.runtime_id), ..self.clone() }
    }

    /// Makes news with a tag and no text, for tests of the rule.
    #[cfg(test)]
    pub(super) fn plain(kind: NotificationKind, tag: String) -> Self {
        Self {
            tag,
            kind,
            session_id: SessionId::trusted("s_1"),
            runtime_id: RuntimeId::trusted("demo"),
            title: String::new(),
            body: String::new(),
            notes: Vec::new(),
            request: None,
        }
    }

    /// Returns the notification for a target; `grant` is that of its device, absent for the channels of the owner.
    pub(super) fn message(&self, grant: Option<&Grant>, now: Timestamp) -> NotificationMessage {
        let kind = match self.kind {
            NotificationKind::Request => "request",
            NotificationKind::Ended => "ended",
            NotificationKind::Failed => "failed",
            NotificationKind::Stalled => "no_progress",
        };
        let mut payload = json!({
            "kind": kind, "tag": self.tag, "title": self.title, "session_id": self.session_id,
        });
        let (mut urgency, mut ttl) = match self.kind {
            NotificationKind::Failed | NotificationKind::Stalled => (Urgency::Normal, TTL_END),
            NotificationKind::Request | NotificationKind::Ended => (Urgency::Low, TTL_END),
        };
        let mut notes = self.notes.clone();
        if let Some(request) = &self.request {
            let answers = grant.is_none_or(|grant| self.may_answer(grant));
            let allows = grant.is_none_or(|grant| self.may_allow(grant));
            if answers && !allows {
                // Below the reasons, above the title.
                let reasons = notes.first().is_some_and(|line| line.starts_with("Why: "));
                notes.insert(usize::from(reasons), Unavailable::Risk.text().into());
            }
            payload["request_id"] = json!(request.request_id);
            payload["digest"] = json!(request.digest);
            payload["risk"] = json!(request.risk);
            if request.yes_or_no && answers {
                payload["actions"] = if allows { json!(["allow_once", "deny"]) } else { json!(["deny"]) };
            }
            // The agent waits; a read-only request can wait until the phone wakes.
            urgency = if request.risk == Risk::Low { Urgency::Normal } else { Urgency::High };
            let left = request.expires_at.map_or(TTL_REQUEST, |at| (at.as_millis() - now.as_millis()) / 1000);
            ttl = left.clamp(0, TTL_REQUEST);
        }
        NotificationMessage { tag: self.tag.clone(), payload: with_body(payload, &self.body, &notes), urgency, ttl }
    }

    /// Returns the withdrawal; `end` has the outcome and the name of the user.
    pub(super) fn withdrawn(&self, end: &RunEndText) -> NotificationMessage {
        let mut payload = json!({
            "kind": "withdrawn", "tag": self.tag, "title": end.title(), "session_id": self.session_id,
        });
        if let Some(request) = &self.request {
            payload["request_id"] = json!(request.request_id);
        }
        if let Some(by) = &end.by {
            payload["by"] = json!(name(by));
        }
        let body = format!("{}: {}", self.runtime_id, self.brief());
        NotificationMessage {
            tag: self.tag.clone(),
            payload: with_body(payload, &body, &[]),
            urgency: Urgency::Normal,
            ttl: TTL_REQUEST,
        }
    }

    /// Returns whether a device with this grant may answer the request, if only by denying.
    fn may_answer(&self, grant: &Grant) -> bool {
        grant.covers(Scope::Approve, Target::Session(&self.session_id, &self.runtime_id))
    }

    /// Returns whether a device with this grant may allow the request.
    pub(super) fn may_allow(&self, grant: &Grant) -> bool {
        let risk = self.request.as_ref().map_or(Risk::Danger, |request| request.risk);
        self.may_answer(grant) && grant.approve_up_to.is_none_or(|max| risk <= max)
    }

    /// Returns the first line of the body, shortened.
    fn brief(&self) -> &str {
        cut(self.body.lines().next().unwrap_or_default(), BRIEF)
    }
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunEndText {
    pub(super) state: RequestState,
    pub(super) ok: Option<bool>,
    /// The name of the user who answered, if any.
    pub(super) by: Option<String>,
}

impl RunEndText {
    fn title(&self) -> String {
        let by = self.by.as_deref().map(|by| format!(" by {}", name(by))).unwrap_or_default();
        match (self.state, self.ok) {
            (RequestState::Answered, Some(true)) => format!("Allowed{by}"),
            (RequestState::Answered, Some(false)) => format!("Denied{by}"),
            (RequestState::Answered, None) => format!("Answered{by}"),
            (RequestState::Expired, _) => "Expired: nobody answered in time".into(),
            (RequestState::Orphaned, _) => "No longer open: the agent is gone".into(),
            (RequestState::Open | RequestState::Withdrawn, _) => "No longer open".into(),
        }
    }
}

/// Returns one notification of several news items.
pub(super) fn summary(texts: &[Arc<NotificationText>]) -> Option<NotificationMessage> {
    let count = |kind| texts.iter().filter(|text| text.kind == kind).count();
    let (requests, failed, ended) =
        (count(NotificationKind::Request), count(NotificationKind::Failed), count(NotificationKind::Ended));
    let stalled = count(NotificationKind::Stalled);
    let counted = |count: usize, one: &str, more: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {more}")),
    };
    let parts = [
        counted(requests, "question waits", "questions wait"),
        counted(failed, "run failed", "runs failed"),
        counted(ended, "run has ended", "runs have ended"),
        counted(stalled, "run makes no progress", "runs make no progress"),
    ];
    let title = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let line = |text: &Arc<NotificationText>| match text.brief() {
        "" => text.title.clone(),
        brief => format!("{}: {brief}", text.runtime_id),
    };
    let mut lines: Vec<String> = texts.iter().take(SUM_LINES).map(line).collect();
    if texts.len() > SUM_LINES {
        lines.push(format!("and {} more", texts.len() - SUM_LINES));
    }
    let (kind, urgency, ttl) = match (requests, failed) {
        (1.., _) => ("request", Urgency::High, TTL_REQUEST),
        (_, 1..) => ("failed", Urgency::Normal, TTL_END),
        _ if stalled > 0 && ended == 0 => ("no_progress", Urgency::Normal, TTL_END),
        _ => ("ended", Urgency::Low, TTL_END),
    };
    let first = texts.iter().find(|text| text.kind == NotificationKind::Request).or(texts.first())?;
    let payload = json!({ "kind": kind, "tag": SUM_TAG, "title": title, "session_id": first.session_id });
    Some(NotificationMessage { tag: SUM_TAG.into(), payload: with_body(payload, &lines.join("\n"), &[]), urgency, ttl })
}

/// Returns the withdrawal of the last summary.
pub(super) fn sum_withdrawn() -> NotificationMessage {
    let payload = json!({ "kind": "withdrawn", "tag": SUM_TAG, "title": "No open requests any more", "body": "" });
    NotificationMessage { tag: SUM_TAG.into(), payload, urgency: Urgency::Normal, ttl: TTL_REQUEST }
}

/// Returns a test notification.
pub(super) fn test(device: &str) -> NotificationMessage {
    let payload = json!({
        "kind": "test", "tag": "test", "title": "Notifications work", "body": format!("This is {}.", name(device)),
    });
    NotificationMessage { tag: "test".into(), payload, urgency: Urgency::High, ttl: TTL_TEST }
}

/// Returns the payload with `notes` and as much of the body as fits above them.
fn with_body(mut payload: Value, body: &str, notes: &[String]) -> Value {
    let whole = notes.join("\n");
    let shortened = cut(&whole, ASIDE);
    let more = if shortened.len() < whole.len() { "…" } else { "" };
    let between = if body.is_empty() || shortened.is_empty() { "" } else { "\n" };
    let (mut fits, mut max) = (0, body.len().min(PAYLOAD_MAX));
    loop {
        // The length in JSON depends on escapes, so the longest beginning that fits is found by bisection.
        let tried = (fits + max).div_ceil(2);
        let short = cut(body, tried);
        let dots = if short.len() < body.len() { "…" } else { "" };
        payload["body"] = format!("{short}{dots}{between}{shortened}{more}").into();
        match payload.to_string().len() <= PAYLOAD_MAX {
            _ if tried == 0 => return payload,
            true if tried == max => return payload,
            true => fits = tried,
            false => max = tried - 1,
        }
    }
}

/// Returns the beginning of a text, of `max` bytes at most.
fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Returns a name from a user, without invisible characters and those that change the direction of text.
fn name(text: &str) -> String {
    let mut before = None;
    let mut plain = |c| if hides(c, before.replace(c)) { '·' } else { c };
    text.chars().take(NAME_CHARS).map(&mut plain).collect()
}

/// Returns the title of the session, which an agent may have given, in quotes.
fn quoted(session_title: Option<&str>) -> Option<String> {
    let title = session_title.filter(|title| !title.trim().is_empty())?;
    Some(format!("“{}”", name(&masked(title))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(more: Value) -> Request {
        let mut all = json!({
            "request_id": "q_1", "session_id": "s_1", "run_id": "r_1", "runtime_id": "demo", "generation": 1,
            "type": "permission", "risk": "elevated", "state": "open", "title": "System: approved", "display": "touch a.txt", "warnings": [],
            "digest": "d".repeat(64), "allow_reason": false, "allow_remember": false, "opened_at": "2026-01-31T09:30:00Z",
            "options": [
                { "id": "a", "label": "A", "kind": "allow_once" }, { "id": "b", "label": "B", "kind": "reject_once" },
            ],
        });
        for (name, value) in more.as_object().unwrap() {
            all[name] = value.clone();
        }
        serde_json::from_value(all).unwrap()
    }

    fn told(more: Value, grant: Option<&Grant>) -> NotificationMessage {
        let now = "2026-01-31T09:30:00Z".parse::<jiff::Timestamp>().unwrap().as_millisecond();
        NotificationText::for_request(&request(more), Some("My work")).message(grant, Timestamp::from_millis(now))
    }

    #[test]
    fn push_text_of_a_request_has_buttons_only_for_who_may_answer() {
        let message = told(json!({}), None);
        assert_eq!(
            message.payload,
            json!({
                "kind": "request", "tag": "request:q_1", "title": "demo asks for permission",
                "body": "touch a.txt\n“My work”", "risk": "elevated", "session_id": "s_1", "request_id": "q_1", "digest": "d".repeat(64),
                "actions": ["allow_once", "deny"],
            })
        );
        assert_eq!((message.urgency, message.ttl), (Urgency::High, TTL_REQUEST));
        let grant = Grant::new;
        let actions_of = |more, grant: Option<&Grant>| told(more, grant).payload.get("actions").cloned();
        let actions = |more, grant: Option<&Grant>| actions_of(more, grant).is_some();
        assert!(actions(json!({}), Some(&grant(&[Scope::Watch, Scope::Approve]))));
        assert!(!actions(json!({}), Some(&grant(&[Scope::Watch]))));
        let low = Grant { approve_up_to: Some(Risk::Low), ..Grant::all() };
        // Above its risk limit, a device denies and does not allow.
        assert_eq!(actions_of(json!({}), Some(&low)), Some(json!(["deny"])));
        assert_eq!(actions_of(json!({ "risk": "low" }), Some(&low)), Some(json!(["allow_once", "deny"])));
        assert!(!actions(json!({}), Some(&Grant { scopes: vec![Scope::Watch], ..low })));
        assert!(!actions(json!({ "observe_only": true }), None));
        assert!(!actions(json!({ "type": "prompt", "options": [] }), None));
        assert!(!actions(json!({ "options": [{ "id": "a", "label": "A", "kind": "allow_always" }] }), None));
        assert!(actions(json!({ "type": "confirm", "options": [] }), None));

        let danger = told(json!({ "risk": "danger", "expires_at": "2026-01-31T09:31:00Z" }), None);
        assert_eq!((danger.payload["risk"].as_str(), danger.ttl), (Some("danger"), 60));
        assert_eq!(danger.payload["title"], "demo asks for permission: dangerous");
    }

    #[test]
    fn push_text_is_bounded_and_shows_no_typed_secret() {
        for display in ["x y ".repeat(50_000), "\"\\\n\u{1}".repeat(5000), "漢字 ".repeat(3000)] {
            let message = told(json!({ "display": display, "default_value": "hunter2", "secret": true }), None);
            let text = message.payload.to_string();
            assert!(text.len() <= PAYLOAD_MAX && text.len() > PAYLOAD_MAX / 2, "{}", text.len());
            assert!(message.payload["body"].as_str().unwrap().ends_with("…\n“My work”"));
            assert!(!text.contains("hunter2"));
        }
        let warned = told(json!({ "warnings": ["has 1 invisible character(s)"], "display": "TOKEN=abc x" }), None);
        assert_eq!(warned.payload["body"], "TOKEN=••• x\n⚠ has 1 invisible character(s)\n“My work”");
    }

    #[test]
    fn push_text_of_a_risk_has_its_reasons_and_where_to_answer() {
        let risky = |more: Value| {
            let mut all =
                json!({ "risk": "danger", "risk_reasons": ["deletes outside the folder", "sends TOKEN=hunter2"] });
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            all
        };
        let body =
            |more: Value, grant: Option<&Grant>| told(risky(more), grant).payload["body"].as_str().unwrap().to_owned();
        let reason = "Why: deletes outside the folder; sends TOKEN=•••";
        assert_eq!(body(json!({}), None), format!("touch a.txt\n{reason}\n“My work”"));
        assert_eq!(body(json!({ "risk": "low" }), None), "touch a.txt\n“My work”");
        let limited = Grant { approve_up_to: Some(Risk::Elevated), ..Grant::all() };
        let place = Unavailable::Risk.text();
        assert_eq!(body(json!({}), Some(&limited)), format!("touch a.txt\n{reason}\n{place}\n“My work”"));
        assert!(!body(json!({ "risk": "elevated" }), Some(&limited)).contains("this device"));
        let watches = Grant { scopes: vec![Scope::Watch], ..limited.clone() };
        assert!(!body(json!({}), Some(&watches)).contains("this device"), "it may answer nothing anyway");
        // A long request never pushes the reasons out; many reasons still fit.
        let long = body(json!({ "display": "x y ".repeat(50_000) }), Some(&limited));
        assert!(long.contains(&format!("…\n{reason}\n{place}\n")), "{long}");
        let many = told(risky(json!({ "risk_reasons": vec!["\"deletes\" 漢字"; 500] })), Some(&limited)).payload;
        assert!(
            many.to_string().len() <= PAYLOAD_MAX && many["body"].as_str().unwrap().starts_with("touch a.txt\nWhy: ")
        );
    }

    #[test]
    fn push_text_of_a_withdrawal_says_how_and_by_whom() {
        let text = NotificationText::for_request(&request(json!({ "display": "touch a.txt\nin /src" })), None);
        let end =
            |state, ok, by: Option<&str>| text.withdrawn(&RunEndText { state, ok, by: by.map(Into::into) }).payload;
        let allowed = end(RequestState::Answered, Some(true), Some("my\u{202e} phone"));
        assert_eq!(
            allowed,
            json!({
                "kind": "withdrawn", "tag": "request:q_1", "title": "Allowed by my· phone", "by": "my· phone",
                "body": "demo: touch a.txt", "session_id": "s_1", "request_id": "q_1",
            })
        );
        assert_eq!(end(RequestState::Answered, Some(false), Some("x"))["title"], "Denied by x");
        assert_eq!(end(RequestState::Expired, None, None)["title"], "Expired: nobody answered in time");
        assert!(end(RequestState::Expired, None, None).get("by").is_none());
    }

    #[test]
    fn push_text_of_a_summary_counts_and_names() {
        let question = |n: usize| {
            Arc::new(NotificationText::for_request(
                &request(json!({ "display": format!("touch {n}"), "request_id": format!("q_{n}") })),
                None,
            ))
        };
        let (session, runtime) = (SessionId::trusted("s_1"), RuntimeId::trusted("demo"));
        let ended = Arc::new(NotificationText::for_run_end("r_1", true, session, runtime, None, None));
        let texts: Vec<_> = (0..7).map(question).chain([ended]).collect();
        let message = summary(&texts).unwrap();
        assert_eq!(message.payload["title"], "7 questions wait, 1 run failed");
        assert_eq!(message.payload["kind"], "request");
        assert_eq!(message.tag, SUM_TAG);
        let body = message.payload["body"].as_str().unwrap();
        assert!(body.starts_with("demo: touch 0\n") && body.ends_with("\nand 2 more"), "{body}");
        assert!(message.payload.get("actions").is_none() && message.payload.get("request_id").is_none());
    }
}
