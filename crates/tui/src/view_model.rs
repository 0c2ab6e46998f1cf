//! The gateway's data as the screen shows it. All one-line text is sanitized here.

use plexus_protocol::answers::{AnswerAction, AnswerRole, Answerer, Sense, actions};
use plexus_protocol::api::devices::{DeviceKind, DeviceView};
use plexus_protocol::api::sessions::Hit;
use plexus_protocol::{
    Answer, Capability, CeilingKind, Connect, Cursor, DeviceId, LINK_SCHEME, Question, QueuedPrompt, Receipt, Request,
    RequestState, Risk, RunId, RuntimeInfo, RuntimeState, SessionInfo, SessionState,
};
use serde_json::Value;

use super::sanitize;

/// Maximum length of a title, name or label, in columns.
pub(crate) const FIELD: usize = 200;
/// Maximum length of a request's text, in bytes; the gateway's limit of a runtime's line is larger.
const DISPLAY_MAX: usize = 4 << 20;

/// A sanitized one-line field of an agent's JSON.
pub(crate) fn field(value: &Value) -> String {
    value.as_str().map(line).unwrap_or_default()
}

/// A sanitized one-line field.
pub(crate) fn line(text: &str) -> String {
    sanitize::line(text, FIELD)
}

/// A sanitized one-line field; empty if it is absent.
pub(crate) fn optional_line(text: Option<&str>) -> String {
    text.map(line).unwrap_or_default()
}

/// The harm that an approval could do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RiskView {
    Low,
    Elevated,
    Danger,
}

impl RiskView {
    fn new(risk: Risk) -> Self {
        match risk {
            Risk::Low => Self::Low,
            Risk::Elevated => Self::Elevated,
            Risk::Danger => Self::Danger,
        }
    }

    /// The name at the beginning of a line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Low => "Low risk",
            Self::Elevated => "Elevated",
            Self::Danger => "Danger",
        }
    }
}

/// An item to pick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemView {
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) detail: String,
}

/// A request with sanitized texts.
#[derive(Clone, Debug)]
pub(crate) struct RequestView {
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) runtime: String,
    pub(crate) title: String,
    pub(crate) message: String,
    /// The gateway's own rendering, in full.
    pub(crate) display: String,
    pub(crate) warnings: Vec<String>,
    /// The reasons for the risk.
    pub(crate) reasons: Vec<String>,
    /// The answers that this device may give, in order.
    pub(crate) actions: Vec<AnswerAction>,
    pub(crate) items: Vec<ItemView>,
    /// The questions of a form; empty if the request itself is the question.
    pub(crate) questions: Vec<Question>,
    pub(crate) default: String,
    pub(crate) risk: RiskView,
    pub(crate) opened: i64,
    pub(crate) expires: Option<i64>,
    /// The editable part: its name and its current text.
    pub(crate) editable: Option<(String, String)>,
    /// The request as the gateway sent it, without its long texts.
    pub(crate) request: Request,
}

impl RequestView {
    /// Makes a view of a request with the answers that a device may give; `None` if its text is longer than any that a gateway sends.
    pub(crate) fn new(request: Request, device: Answerer) -> Option<Self> {
        let display = if request.display.is_empty() { &request.title } else { &request.display };
        if display.len() > DISPLAY_MAX {
            return None;
        }
        let lines = |all: &[String]| all.iter().map(|text| line(text)).collect::<Vec<_>>();
        let item = |item: &plexus_protocol::Item| ItemView {
            id: item.id.clone(),
            label: line(&item.label),
            detail: line(item.detail.as_deref().unwrap_or_default()),
        };
        Some(Self {
            id: request.request_id.to_string(),
            session: request.session_id.to_string(),
            runtime: line(request.runtime_id.as_str()),
            title: line(&request.title),
            message: request.message.clone().unwrap_or_default(),
            display: sanitize::text(display),
            warnings: lines(&request.warnings),
            reasons: lines(&request.risk_reasons),
            actions: actions(&request, device),
            items: request.items.iter().map(item).collect(),
            questions: if request.observe_only { Vec::new() } else { request.form().to_vec() },
            default: request.default_value.clone().unwrap_or_default(),
            risk: if request.danger { RiskView::Danger } else { RiskView::new(request.risk) },
            opened: request.opened_at.as_millis(),
            expires: request.expires_at.map(|at| at.as_millis()),
            editable: request.editable.as_ref().map(|editable| (line(&editable.label), editable.value.clone())),
            request: Request { native: None, display: String::new(), message: None, ..request },
        })
    }

    /// Determines the answers again, for a device with other permissions.
    pub(crate) fn set_device(&mut self, device: Answerer) {
        self.actions = actions(&self.request, device);
    }

    /// The first answer with this role.
    pub(crate) fn action(&self, role: AnswerRole) -> Option<&AnswerAction> {
        self.actions.iter().find(|action| action.role == role)
    }

    /// Returns whether a key gives one of the answers.
    pub(crate) fn has_key(&self, key: char) -> bool {
        self.actions.iter().any(|action| action.key == Some(key))
    }

    /// Binds an answer to this version of the request.
    pub(crate) fn with_digest(&self, answer: Answer) -> Answer {
        match self.request.digest.is_empty() {
            true => answer,
            false => Answer { digest: Some(self.request.digest.clone()), ..answer },
        }
    }

    /// The first answer that denies.
    pub(crate) fn denial(&self) -> Option<&AnswerAction> {
        self.actions.iter().find(|action| action.role.rule().sense == Sense::Deny)
    }
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestResult {
    /// The state of the request; `None` if it was closed while the connection was lost.
    state: Option<RequestState>,
    ok: Option<bool>,
    /// The meaning of the answer.
    role: AnswerRole,
    pub(crate) by: String,
    pub(crate) device: String,
    reason: String,
    pub(crate) at: i64,
}

impl RequestResult {
    /// Makes the outcome of a request from its receipt.
    pub(crate) fn new(receipt: &Receipt, ask: Option<&RequestView>) -> Self {
        let given = receipt.value.is_some() || receipt.ids.is_some() || receipt.answers.is_some();
        let option = receipt.option_id.as_deref();
        let chosen = ask.into_iter().flat_map(|ask| &ask.actions).find(|action| {
            let answer = action.answer.as_ref().and_then(|answer| answer.option_id.as_deref());
            answer.is_some() && answer == option
        });
        let role = match (chosen, receipt.ok) {
            (Some(action), _) => action.role,
            (None, Some(false)) => ask.and_then(RequestView::denial).map_or(AnswerRole::Deny, |action| action.role),
            (None, Some(true)) if !given => AnswerRole::AllowOnce,
            (None, _) => AnswerRole::Send,
        };
        Self {
            role,
            state: Some(receipt.state),
            ok: receipt.ok,
            by: line(&receipt.resolved_by.name),
            device: receipt.resolved_by.device_id.to_string(),
            reason: optional_line(receipt.reason.as_deref()),
            at: receipt.at.as_millis(),
        }
    }

    /// Returns the outcome of a request from the body of `request_resolved`; `receipt` is `None` if a newer gateway closed the request
    /// with a state that only newer versions know. `at`: the time of the event, in milliseconds.
    pub(crate) fn resolved(receipt: Option<Receipt>, ask: &RequestView, at: i64) -> Self {
        receipt.map_or_else(|| Self::closed(at), |receipt| Self::new(&receipt, Some(ask)))
    }

    /// The outcome of a request that was closed while the connection was lost.
    pub(crate) fn closed(at: i64) -> Self {
        Self {
            state: None,
            ok: None,
            role: AnswerRole::Send,
            by: String::new(),
            device: String::new(),
            reason: String::new(),
            at,
        }
    }

    /// Returns whether the request was allowed, for the colour; `None` if it was closed without an answer.
    pub(crate) fn allowed(&self) -> Option<bool> {
        if self.state == Some(RequestState::Answered) { Some(self.ok.unwrap_or(true)) } else { None }
    }

    /// Formats the outcome as `Allowed once by phone, 2 s ago`.
    pub(crate) fn text(&self, now: i64) -> String {
        let verb = match self.state {
            Some(RequestState::Answered) => self.role.rule().outcome,
            Some(RequestState::Expired) => "Expired",
            Some(RequestState::Withdrawn) => "Withdrawn",
            Some(RequestState::Orphaned) => "The agent quit before this was answered",
            Some(RequestState::Open) | None => "Closed",
        };
        let why = if self.reason.is_empty() { String::new() } else { format!(": “{}”", self.reason) };
        let by = match self.by.as_str() {
            "" => String::new(),
            _ if self.device == "gateway" => String::new(),
            by => format!(" by {by}"),
        };
        format!("{verb}{by}, {}{why}", ago(now, self.at))
    }
}

/// Formats the time since `at` as `2 s ago`.
pub(crate) fn ago(now: i64, at: i64) -> String {
    format!("{} ago", span(now - at))
}

/// Formats a duration as `2 s`, `5 min`, `3 h` or `2 d`.
pub(crate) fn span(millis: i64) -> String {
    let seconds = millis.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// The hour and minute of an instant, in local time.
pub(crate) fn clock(at: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string()
}

/// A queued prompt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueuedItem {
    pub(crate) run: RunId,
    pub(crate) text: String,
    /// The author, with the ceiling that blocks the prompt.
    pub(crate) author: String,
}

impl QueuedItem {
    fn new(queued: &QueuedPrompt) -> Self {
        let author = line(&queued.by.name);
        let author = match queued.ceiling {
            Some(CeilingKind::Day) => format!("{author} · the ceiling of today is reached"),
            Some(CeilingKind::Session) => format!("{author} · the ceiling of this session is reached"),
            None => author,
        };
        Self { run: queued.run_id.clone(), text: line(&queued.text), author }
    }
}

/// A session in the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SessionItem {
    pub(crate) id: String,
    pub(crate) runtime: String,
    pub(crate) dialect: String,
    pub(crate) title: String,
    pub(crate) cwd: String,
    /// The name of its project: the gateway's, or the last part of its folder.
    pub(crate) project: String,
    /// The folder of its project, which tells projects apart.
    pub(crate) project_root: String,
    /// The worktree or the branch of the session, if the gateway reports one.
    pub(crate) branch: String,
    /// `true` if the session works in a worktree that is not the repository's main one.
    pub(crate) in_worktree: bool,
    pub(crate) state: SessionState,
    pub(crate) run: Option<RunId>,
    /// The current activity, from the gateway or derived here.
    pub(crate) activity: String,
    pub(crate) open: usize,
    pub(crate) queue: Vec<QueuedItem>,
    pub(crate) archived: bool,
    /// `true` if the session's own terminal is open on the machine.
    pub(crate) linked: bool,
    pub(crate) updated: i64,
    /// The position in lists: higher is newer. `updated` comes from a clock that may have been set back since.
    pub(crate) position: i64,
}

impl SessionItem {
    pub(crate) fn new(session: &SessionInfo) -> Self {
        let (project, cwd) = (session.project.as_ref(), line(&session.cwd));
        let present = |text: &str| Some(line(text)).filter(|text| !text.is_empty());
        let last_part = || cwd.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/").to_owned();
        let worktree = project.and_then(|project| present(project.worktree.as_deref()?));
        Self {
            project: project.and_then(|project| present(&project.name)).unwrap_or_else(last_part),
            project_root: project.and_then(|project| present(&project.root)).unwrap_or_else(|| cwd.clone()),
            in_worktree: worktree.is_some(),
            branch: worktree.or_else(|| present(project?.branch.as_deref()?)).unwrap_or_default(),
            id: session.session_id.to_string(),
            runtime: line(session.runtime_id.as_str()),
            dialect: line(&session.dialect),
            title: optional_line(session.title.as_deref()),
            cwd,
            state: session.state,
            run: session.run_id.clone(),
            activity: optional_line(session.doing.as_deref()),
            open: session.open_requests,
            queue: session.queue.iter().map(QueuedItem::new).collect(),
            archived: session.archived,
            linked: session.linked,
            updated: session.updated_at.as_millis(),
            position: 0,
        }
    }

    /// The name to show.
    pub(crate) fn name(&self) -> String {
        if !self.title.is_empty() {
            return self.title.clone();
        }
        let folder = self.cwd.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/");
        format!("{} in {folder}", self.runtime)
    }
}

/// A runtime in the list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RuntimeItem {
    pub(crate) id: String,
    pub(crate) dialect: String,
    pub(crate) state: RuntimeState,
    pub(crate) agent: String,
    pub(crate) connect: String,
    /// `true` if the gateway attached to the runtime, and did not start it.
    pub(crate) endpoint: bool,
    /// `true` if the runtime lists conversations that it can resume.
    pub(crate) lists: bool,
    pub(crate) cwd: String,
    pub(crate) pid: Option<u32>,
    pub(crate) problem: String,
    /// The action that ran without a request.
    pub(crate) acted_unasked: String,
    /// The reviewer that answers its requests in place of people.
    pub(crate) reviewer: String,
    /// `true` if its commands run in `cwd`, whatever the folder of the session is.
    pub(crate) fixed_folder: bool,
    pub(crate) stderr: String,
    pub(crate) updated: i64,
}

impl RuntimeItem {
    pub(crate) fn new(runtime: &RuntimeInfo) -> Self {
        let can = |one| runtime.capabilities.as_ref().is_some_and(|all| all.has(one));
        let (connect, endpoint) = match &runtime.connect {
            Connect::Command(command) => (line(&command.join(" ")), false),
            Connect::Endpoint(address) => (line(address), true),
        };
        Self {
            endpoint,
            lists: can(Capability::List) && (can(Capability::Load) || can(Capability::Resume)),
            id: runtime.runtime_id.to_string(),
            dialect: line(&runtime.dialect),
            state: runtime.state,
            agent: optional_line(runtime.agent.as_deref()),
            connect,
            cwd: line(&runtime.cwd),
            pid: runtime.pid,
            problem: optional_line(runtime.problem.as_deref()),
            acted_unasked: optional_line(runtime.acted_unasked.as_deref()),
            reviewer: optional_line(runtime.reviewer.as_deref()),
            fixed_folder: runtime.fixed_folder,
            stderr: runtime.stderr_tail.clone(),
            updated: runtime.updated_at.as_millis(),
        }
    }

    /// Returns whether new sessions can begin in it, now or soon: not if it has ended, or if its sessions begin in terminals of their own.
    pub(crate) fn takes_sessions(&self) -> bool {
        self.state != RuntimeState::Exited && !(self.endpoint && self.connect.starts_with(LINK_SCHEME))
    }
}

/// A device in the list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceItem {
    pub(crate) id: DeviceId,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) scopes: String,
    pub(crate) level: Option<Risk>,
    pub(crate) online: bool,
    pub(crate) you: bool,
    /// `true` if the device is the administrator of the gateway's machine, which cannot be revoked.
    pub(crate) local: bool,
    pub(crate) seen: i64,
    pub(crate) expires: Option<i64>,
}

impl DeviceItem {
    pub(crate) fn new(device: &DeviceView) -> Self {
        let scopes: Vec<&str> = device.grant.scopes.iter().map(|scope| scope.as_str()).collect();
        Self {
            id: device.device_id.clone(),
            name: line(&device.name),
            kind: kind_name(device.kind),
            scopes: scopes.join(" "),
            level: device.grant.approve_up_to,
            online: device.online,
            you: device.you,
            local: device.local,
            seen: device.last_seen_at.unwrap_or(device.created_at).as_millis(),
            expires: device.expires_at.map(|at| at.as_millis()),
        }
    }
}

fn kind_name(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Device => "device",
        DeviceKind::Share => "share",
        DeviceKind::Local => "local",
        DeviceKind::Agent => "agent",
    }
}

/// A search result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SearchItem {
    pub(crate) session: String,
    pub(crate) cursor: Cursor,
    pub(crate) role: String,
    pub(crate) text: String,
}

impl SearchItem {
    pub(crate) fn new(hit: &Hit) -> Self {
        Self {
            session: hit.session_id.to_string(),
            cursor: hit.cursor.clone(),
            role: line(&hit.role),
            text: line(&hit.snippet),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(more: Value) -> RequestView {
        let mut value = json!({ "request_id": "q_1", "session_id": "s_1", "run_id": "r_1", "runtime_id": "demo", "generation": 1,
            "type": "permission", "state": "open", "title": "t", "display": "x", "warnings": [], "risk": "low", "allow_reason": false,
            "allow_remember": false, "opened_at": "2026-01-01T00:00:00Z", "options": [
                { "id": "1", "label": "Reject", "kind": "allow_once" }, { "id": "2", "label": "Deny", "kind": "allow_always" },
                { "id": "3", "label": "Allow", "kind": "reject_once" }] });
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        RequestView::new(serde_json::from_value(value).unwrap(), Answerer::UNLIMITED).unwrap()
    }

    #[test]
    fn view_model_names_the_outcome_and_the_winner_of_a_request() {
        let ask = request(json!({}));
        let receipt = |state: &str, ok: Value, option: &str| {
            let receipt = json!({ "request_id": "q_1", "state": state, "ok": ok, "option_id": option, "at": "2026-01-01T00:00:00Z",
                "resolved_by": { "device_id": "d_1", "name": "pho\u{202e}ne" } });
            RequestResult::new(&serde_json::from_value(receipt).unwrap(), Some(&ask))
        };
        let now = receipt("expired", Value::Null, "").at + 2_000;
        assert_eq!(receipt("answered", json!(true), "1").text(now), "Allowed once by pho\\u{202e}ne, 2 s ago");
        assert_eq!(
            receipt("answered", json!(true), "2").text(now + 60_000),
            "Always allowed by pho\\u{202e}ne, 1 min ago"
        );
        assert_eq!(receipt("answered", json!(false), "3").text(now), "Denied by pho\\u{202e}ne, 2 s ago");
        assert_eq!(receipt("answered", json!(false), "").text(now), "Denied by pho\\u{202e}ne, 2 s ago");
        assert_eq!(receipt("expired", Value::Null, "").allowed(), None);
    }

    #[test]
    fn view_model_does_not_treat_an_unknown_risk_as_harmless() {
        let ask = |more: Value| request(more).risk;
        assert_eq!(ask(json!({})), RiskView::Low);
        assert_eq!(ask(json!({ "danger": true })), RiskView::Danger);
        assert_eq!(ask(json!({ "risk": "another" })), RiskView::Danger);
        assert_eq!(ask(json!({ "risk": "danger" })), RiskView::Danger);
    }
}
