//! The gateway's data as the screen shows it. Read leniently: members of a newer gateway are used if present. All one-line text is
//! sanitized here.

use plexus_protocol::answers::{AnswerAction, AnswerRole, Answerer, Sense, actions};
use plexus_protocol::{Question, Request};
use serde_json::{Value, json};

use super::sanitize;

/// Longest title, name or label, in columns.
pub(crate) const FIELD: usize = 200;
/// Longest text of a request, in bytes; the gateway's bound on a runtime's line is larger.
const DISPLAY_MAX: usize = 4 << 20;

/// A sanitized one-line field.
pub(crate) fn field(value: &Value) -> String {
    value.as_str().map(|text| sanitize::line(text, FIELD)).unwrap_or_default()
}

fn raw(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Milliseconds since the epoch of the gateway's timestamp.
pub(crate) fn millis(value: &Value) -> Option<i64> {
    let at: jiff::Timestamp = value.as_str()?.parse().ok()?;
    Some(at.as_millisecond())
}

/// The harm that an approval could do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RiskView {
    Low,
    Elevated,
    Danger,
}

impl RiskView {
    fn of(risk: plexus_protocol::Risk) -> Self {
        match risk {
            plexus_protocol::Risk::Low => Self::Low,
            plexus_protocol::Risk::Elevated => Self::Elevated,
            plexus_protocol::Risk::Danger => Self::Danger,
        }
    }

    /// Its name at the beginning of a line.
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

/// A request, with its texts sanitized.
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
    /// Questions of a form; empty where the request itself is the question.
    pub(crate) questions: Vec<Question>,
    pub(crate) default: String,
    pub(crate) risk: RiskView,
    /// `true` if the gateway reported the risk.
    pub(crate) rated: bool,
    pub(crate) opened: i64,
    pub(crate) expires: Option<i64>,
    /// The part that may be edited: its name and its current text.
    pub(crate) editable: Option<(String, String)>,
    /// The request as the gateway sent it, without its long texts.
    pub(crate) request: Request,
}

impl RequestView {
    /// Reads a request, and the answers that a device may give; `None` if the value is not one. An unknown risk is no harmless one.
    pub(crate) fn read(value: &Value, device: Answerer) -> Option<Self> {
        let mut value = value.clone();
        let rated = value["risk"].is_string();
        if serde_json::from_value::<plexus_protocol::Risk>(value["risk"].clone()).is_err() {
            let warned = value["warnings"].as_array().is_some_and(|all| !all.is_empty());
            value["risk"] = json!(if rated || warned { "elevated" } else { "low" });
        }
        if value["danger"] == true {
            value["risk"] = json!("danger");
        }
        let request: Request = serde_json::from_value(value).ok()?;
        let display = if request.display.is_empty() { &request.title } else { &request.display };
        if display.len() > DISPLAY_MAX {
            return None;
        }
        let line = |text: &str| sanitize::line(text, FIELD);
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
            risk: RiskView::of(request.risk),
            rated: rated || request.danger,
            opened: request.opened_at.as_millis(),
            expires: request.expires_at.map(|at| at.as_millis()),
            editable: request.editable.as_ref().map(|editable| (line(&editable.label), editable.value.clone())),
            request: Request { native: None, display: String::new(), message: None, ..request },
        })
    }

    /// Finds the answers anew, for a device with other permissions.
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

    /// The first answer that refuses.
    pub(crate) fn denial(&self) -> Option<&AnswerAction> {
        self.actions.iter().find(|action| action.role.rule().sense == Sense::Deny)
    }
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestResult {
    pub(crate) state: String,
    pub(crate) ok: Option<bool>,
    /// The meaning of the answer.
    pub(crate) role: AnswerRole,
    pub(crate) by: String,
    pub(crate) device: String,
    pub(crate) reason: String,
    pub(crate) at: i64,
}

impl RequestResult {
    /// Reads a receipt of this request.
    pub(crate) fn read(value: &Value, ask: Option<&RequestView>) -> Self {
        let given = ["value", "ids", "answers"].iter().any(|name| !value[name].is_null());
        let option = value["option_id"].as_str();
        let chosen = ask.into_iter().flat_map(|ask| &ask.actions).find(|action| {
            let answer = action.answer.as_ref().and_then(|answer| answer.option_id.as_deref());
            answer.is_some() && answer == option
        });
        let ok = value["ok"].as_bool();
        let role = match (chosen, ok) {
            (Some(action), _) => action.role,
            (None, Some(false)) => ask.and_then(RequestView::denial).map_or(AnswerRole::Deny, |action| action.role),
            (None, Some(true)) if !given => AnswerRole::AllowOnce,
            (None, _) => AnswerRole::Send,
        };
        Self {
            role,
            state: field(&value["state"]),
            ok,
            by: field(&value["resolved_by"]["name"]),
            device: raw(&value["resolved_by"]["device_id"]),
            reason: field(&value["reason"]),
            at: millis(&value["at"]).unwrap_or_default(),
        }
    }

    /// Returns whether it was allowed, for the colour; `None` if nobody decided.
    pub(crate) fn allowed(&self) -> Option<bool> {
        if self.state == "answered" { Some(self.ok.unwrap_or(true)) } else { None }
    }

    /// `Allowed once by phone, 2 s ago`.
    pub(crate) fn text(&self, now: i64) -> String {
        let verb = match self.state.as_str() {
            "answered" => self.role.rule().outcome,
            "expired" => "Expired",
            "withdrawn" => "Withdrawn",
            "orphaned" => "The agent quit before this was answered",
            _ => "Closed",
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

/// `2 s ago`.
pub(crate) fn ago(now: i64, at: i64) -> String {
    format!("{} ago", span(now - at))
}

/// `2 s`, `5 min`, `3 h`, `2 d`.
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
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string()
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
    /// The worktree or the branch that it works in, if the gateway names one.
    pub(crate) branch: String,
    /// `true` if it works in a worktree that is not the repository's main one.
    pub(crate) in_worktree: bool,
    pub(crate) state: String,
    pub(crate) run: String,
    /// The current activity, from the gateway or derived here.
    pub(crate) doing: String,
    pub(crate) open: usize,
    /// Queued prompts: run, text, and their author with the ceiling that they wait for.
    pub(crate) queue: Vec<(String, String, String)>,
    pub(crate) archived: bool,
    /// `true` if its own terminal is open on the machine.
    pub(crate) linked: bool,
    pub(crate) updated: i64,
    /// Its place in lists: higher is newer. `updated` is by a clock that may have been set back since.
    pub(crate) place: i64,
}

/// The author of a queued prompt, and the reached ceiling that it waits for.
fn queued_by(queued: &Value) -> String {
    let by = field(&queued["by"]["name"]);
    match queued["ceiling"].as_str() {
        Some("day") => format!("{by} · the ceiling of today is reached"),
        Some(_) => format!("{by} · the ceiling of this session is reached"),
        None => by,
    }
}

impl SessionItem {
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let queue = value["queue"].as_array().into_iter().flatten();
        let (project, cwd) = (&value["project"], field(&value["cwd"]));
        let given = |name: &str| Some(field(&project[name])).filter(|text| !text.is_empty());
        let last_part = || cwd.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/").to_owned();
        Some(Self {
            project: given("name").unwrap_or_else(last_part),
            project_root: given("root").unwrap_or_else(|| cwd.clone()),
            branch: given("worktree").or_else(|| given("branch")).unwrap_or_default(),
            in_worktree: given("worktree").is_some(),
            id: value["session_id"].as_str()?.to_owned(),
            runtime: field(&value["runtime_id"]),
            dialect: field(&value["dialect"]),
            title: field(&value["title"]),
            cwd,
            state: field(&value["state"]),
            run: raw(&value["run_id"]),
            doing: field(&value["doing"]),
            open: value["open_requests"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or_default(),
            queue: queue.map(|one| (raw(&one["run_id"]), field(&one["text"]), queued_by(one))).collect(),
            archived: value["archived"] == true,
            linked: value["linked"] == true,
            updated: millis(&value["updated_at"]).unwrap_or_default(),
            place: 0,
        })
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
    pub(crate) state: String,
    pub(crate) agent: String,
    pub(crate) connect: String,
    /// `true` if the gateway is attached to it, and did not start it.
    pub(crate) endpoint: bool,
    /// `true` if it lists conversations that it can resume.
    pub(crate) lists: bool,
    pub(crate) cwd: String,
    pub(crate) pid: Option<u64>,
    pub(crate) problem: String,
    /// The action that was not asked about.
    pub(crate) unasked: String,
    /// The reviewer that answers its questions in place of people.
    pub(crate) reviewer: String,
    /// `true` if its commands run in `cwd`, whatever the folder of the session is.
    pub(crate) fixed_folder: bool,
    pub(crate) stderr: String,
    pub(crate) updated: i64,
}

impl RuntimeItem {
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let connect = &value["connect"];
        let text = connect["command"]
            .as_array()
            .map(|text| text.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "));
        let can = |name: &str| value["capabilities"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        Some(Self {
            endpoint: connect["endpoint"].is_string(),
            lists: can("list") && (can("load") || can("resume")),
            id: value["runtime_id"].as_str()?.to_owned(),
            dialect: field(&value["dialect"]),
            state: field(&value["state"]),
            agent: field(&value["agent"]),
            connect: sanitize::line(&text.unwrap_or_else(|| raw(&connect["endpoint"])), FIELD),
            cwd: field(&value["cwd"]),
            pid: value["pid"].as_u64(),
            problem: field(&value["problem"]),
            unasked: field(&value["acted_unasked"]),
            reviewer: field(&value["reviewer"]),
            fixed_folder: value["fixed_folder"] == true,
            stderr: raw(&value["stderr_tail"]),
            updated: millis(&value["updated_at"]).unwrap_or_default(),
        })
    }

    /// Returns whether new sessions begin in it, now or soon: not if it has ended, or if its sessions begin in terminals of their own.
    pub(crate) fn takes_sessions(&self) -> bool {
        self.state != "exited" && !(self.endpoint && self.connect.starts_with("link:"))
    }
}

/// A device in the list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceItem {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) scopes: String,
    pub(crate) level: String,
    pub(crate) online: bool,
    pub(crate) you: bool,
    pub(crate) seen: Option<i64>,
    pub(crate) expires: Option<i64>,
}

impl DeviceItem {
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let id = value["device_id"].as_str()?.to_owned();
        let scopes: Vec<String> = value["scopes"].as_array().into_iter().flatten().map(field).collect();
        Some(Self {
            you: value["you"] == true || (value.get("you").is_none() && id == "d_local"),
            name: field(&value["name"]),
            kind: field(&value["kind"]),
            scopes: scopes.join(" "),
            level: field(&value["approve_up_to"]),
            online: value["online"] == true,
            seen: millis(&value["last_seen_at"]).or(millis(&value["created_at"])),
            expires: millis(&value["expires_at"]),
            id,
        })
    }
}

/// A search result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SearchItem {
    pub(crate) session: String,
    pub(crate) cursor: String,
    pub(crate) role: String,
    pub(crate) text: String,
}

impl SearchItem {
    pub(crate) fn read(value: &Value) -> Option<Self> {
        Some(Self {
            session: value["session_id"].as_str()?.to_owned(),
            cursor: raw(&value["cursor"]),
            role: field(&value["role"]),
            text: field(&value["snippet"]),
        })
    }
}

/// A cursor's position in the log; 0 if it is invalid.
pub(crate) fn position(cursor: &str) -> u64 {
    let at = cursor.rsplit_once(':').map_or("", |(_, at)| at);
    // A cursor within a long text has the part behind the position.
    at.split_once('+').map_or(at, |(at, _)| at).parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(more: Value) -> RequestView {
        let mut value = json!({ "request_id": "q_1", "session_id": "s_1", "run_id": "r_1", "runtime_id": "demo", "generation": 1,
            "type": "permission", "state": "open", "title": "t", "display": "x", "warnings": [], "allow_reason": false,
            "allow_remember": false, "opened_at": "2026-01-01T00:00:00Z", "options": [
                { "id": "1", "label": "Reject", "kind": "allow_once" }, { "id": "2", "label": "Deny", "kind": "allow_always" },
                { "id": "3", "label": "Allow", "kind": "reject_once" }] });
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        RequestView::read(&value, Answerer::UNLIMITED).unwrap()
    }

    #[test]
    fn view_model_names_the_outcome_and_the_winner_of_a_request() {
        let ask = request(json!({}));
        let receipt = |state: &str, ok: Value, option: &str| {
            let receipt = json!({ "state": state, "ok": ok, "option_id": option, "at": "2026-01-01T00:00:00Z",
                "resolved_by": { "device_id": "d_1", "name": "pho\u{202e}ne" } });
            RequestResult::read(&receipt, Some(&ask))
        };
        let now = millis(&json!("2026-01-01T00:00:02Z")).unwrap();
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
        assert_eq!(ask(json!({ "warnings": ["w"] })), RiskView::Elevated);
        assert_eq!(ask(json!({ "risk": "low", "danger": true })), RiskView::Danger);
        assert_eq!(ask(json!({ "risk": "another" })), RiskView::Elevated);
        assert_eq!(ask(json!({ "risk": "danger" })), RiskView::Danger);
    }
}
