//! The rows of the inbox: the order of the requests, the groups of those that belong together, the selection, and the effect of one answer
//! to all of them. Pure.
//!
//! Rows keep their order while the inbox is on the screen: new requests are added below, and an answered one stays in its place for a
//! moment.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use plexus_protocol::answers::AnswerRole;
use plexus_protocol::{About, Answer};

use super::card::{Card, LINGER_TIME};
use super::sanitize;
use super::view_model::{RequestResult, RequestView, RiskView};

/// All known requests by their ids, each with its outcome.
pub(crate) type Requests = BTreeMap<String, (RequestView, Option<RequestResult>)>;

/// Maximum length of a text that is compared with others, in bytes: a request with a longer one is in no group.
const GROUP_TEXT_MAX: usize = 16 << 10;
/// Minimum number of requests with the same text in a group.
const GROUP_TEXT_MIN: usize = 2;
/// Minimum number of requests of one session in a group.
const GROUP_SESSION_MIN: usize = 3;
/// Maximum number of digests of seen requests; beyond it the oldest is dropped, and its request has to be read again.
const SEEN_MAX: usize = 5_000;
/// Maximum length of a request's first line in a row, in columns.
const HEADLINE_MAX: usize = 400;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InboxRow {
    /// The heading of a group: what its requests have in common, and their ids.
    Group { key: String, session: bool, ids: Vec<String>, folded: bool },
    /// A request, and whether it is one of a group.
    Request { id: String, grouped: bool },
}

impl InboxRow {
    /// The key that selects this row: the request's id, or the group's key.
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Group { key, .. } => key,
            Self::Request { id, .. } => id,
        }
    }

    /// The number of lines on the screen.
    pub(crate) fn height(&self) -> u16 {
        match self {
            Self::Group { .. } => 1,
            Self::Request { .. } => 2,
        }
    }

    /// The requests of the row.
    pub(crate) fn ids(&self) -> &[String] {
        match self {
            Self::Group { ids, .. } => ids,
            Self::Request { id, .. } => std::slice::from_ref(id),
        }
    }
}

/// The state of the inbox.
#[derive(Debug, Default)]
pub(crate) struct Triage {
    order: Vec<String>,
    pub(crate) rows: Vec<InboxRow>,
    /// The folded groups, by their keys.
    folded: BTreeSet<String>,
    /// The selected requests.
    pub(crate) selected: BTreeSet<String>,
    /// The time when each answered request of the list was first seen answered.
    closed: HashMap<String, i64>,
    seen: HashSet<String>,
    seen_order: VecDeque<String>,
    /// `true` if the rows have to be built again.
    stale: bool,
}

impl Triage {
    /// Marks the rows as out of date, since requests or the folding changed.
    pub(crate) fn touch(&mut self) {
        self.stale = true;
    }

    /// Returns whether the rows are out of date.
    pub(crate) fn is_stale(&self, now: i64) -> bool {
        self.stale || self.closed.values().any(|at| now - at >= LINGER_TIME)
    }

    /// Removes an answered request from the list at once.
    pub(crate) fn dismiss(&mut self, id: &str) {
        self.closed.insert(id.to_owned(), i64::MIN / 2);
        self.stale = true;
    }

    /// Builds the rows. With `in_use`, the inbox is on the screen, so that no known row moves.
    pub(crate) fn rebuild(&mut self, requests: &Requests, in_use: bool, now: i64) {
        self.stale = false;
        let known: HashSet<&str> = self.order.iter().map(String::as_str).collect();
        let mut closed = HashMap::new();
        for id in self.order.iter().filter(|_| in_use) {
            if requests.get(id).is_some_and(|(_, outcome)| outcome.is_some()) {
                closed.insert(id.clone(), self.closed.get(id).copied().unwrap_or(now));
            }
        }
        let is_retained = |id: &str| match requests.get(id) {
            Some((_, None)) => true,
            Some(_) => closed.get(id).is_some_and(|at| now - at < LINGER_TIME),
            None => false,
        };
        let mut added: Vec<&RequestView> = requests
            .values()
            .filter(|(ask, outcome)| outcome.is_none() && !(in_use && known.contains(ask.id.as_str())))
            .map(|(ask, _)| ask)
            .collect();
        added.sort_by(|a, b| (b.risk, b.opened, &b.id).cmp(&(a.risk, a.opened, &a.id)));
        let mut order: Vec<String> = self.order.iter().filter(|id| in_use && is_retained(id)).cloned().collect();
        order.extend(added.into_iter().map(|ask| ask.id.clone()));
        self.rows = clustered(&order, requests, &self.folded);
        // The rows are in the order of the groups, to which further requests are added.
        self.order = order;
        closed.retain(|id, at| now - *at < LINGER_TIME && requests.contains_key(id));
        self.closed = closed;
        self.selected.retain(|id| requests.get(id).is_some_and(|(_, outcome)| outcome.is_none()));
    }

    /// The row with this key; `hint` is its probable index.
    pub(crate) fn at(&self, key: &str, hint: Option<usize>) -> Option<usize> {
        if hint.and_then(|at| self.rows.get(at)).is_some_and(|row| row.key() == key) {
            return hint;
        }
        self.rows.iter().position(|row| row.key() == key)
    }

    /// The first row with a request.
    pub(crate) fn first(&self) -> usize {
        self.rows.iter().position(|row| matches!(row, InboxRow::Request { .. })).unwrap_or(0)
    }

    /// Selects the requests of a row, or clears their selection if all of them are selected. Answered ones cannot be selected.
    pub(crate) fn toggle(&mut self, row: usize, requests: &Requests) {
        let Some(row) = self.rows.get(row) else { return };
        let open = |id: &&String| requests.get(*id).is_some_and(|(_, outcome)| outcome.is_none());
        let ids: Vec<String> = row.ids().iter().filter(open).cloned().collect();
        let all = ids.iter().all(|id| self.selected.contains(id));
        for id in ids {
            if all {
                self.selected.remove(&id);
            } else {
                self.selected.insert(id);
            }
        }
    }

    /// Selects all open requests.
    pub(crate) fn select_all(&mut self, requests: &Requests) {
        let open = requests.values().filter(|(_, outcome)| outcome.is_none());
        self.selected = open.map(|(ask, _)| ask.id.clone()).collect();
    }

    /// Folds or unfolds the group with this key.
    pub(crate) fn fold(&mut self, key: &str, fold: bool) {
        self.stale = true;
        if fold {
            self.folded.insert(key.to_owned());
        } else {
            self.folded.remove(key);
        }
    }

    /// The heading of the group that this row belongs to.
    pub(crate) fn heading(&self, row: usize) -> Option<usize> {
        match self.rows.get(row)? {
            InboxRow::Group { .. } => Some(row),
            InboxRow::Request { grouped: false, .. } => None,
            InboxRow::Request { .. } => {
                (0..row).rev().find(|at| matches!(self.rows.get(*at), Some(InboxRow::Group { .. })))
            }
        }
    }

    /// Records that the end of this version of a request was on the screen.
    pub(crate) fn mark_seen(&mut self, ask: &RequestView) {
        if ask.request.digest.is_empty()
            || ask.request.display_truncated
            || !self.seen.insert(ask.request.digest.clone())
        {
            return;
        }
        self.seen_order.push_back(ask.request.digest.clone());
        if self.seen_order.len() > SEEN_MAX
            && let Some(oldest) = self.seen_order.pop_front()
        {
            self.seen.remove(&oldest);
        }
    }

    /// Returns whether this version of a request was completely visible.
    pub(crate) fn was_seen(&self, ask: &RequestView) -> bool {
        !ask.request.digest.is_empty() && !ask.request.display_truncated && self.seen.contains(&ask.request.digest)
    }

    /// The selected requests in their current versions.
    pub(crate) fn selection(&self, requests: &Requests) -> Vec<SelectedRequest> {
        let ids = self.order.iter().filter(|id| self.selected.contains(*id));
        ids.filter_map(|id| requests.get(id)).map(|(ask, _)| SelectedRequest::new(ask)).collect()
    }

    /// The plan of one answer to all requests of `selection`. A request that has changed or was answered is left out.
    pub(crate) fn plan(&self, selection: &[SelectedRequest], sense: &Sense, requests: &Requests) -> TriagePlan {
        let mut plan = TriagePlan::default();
        for one in selection {
            match self.judge(one, sense, requests) {
                Ok(answer) => plan.answers.push((one.id.clone(), answer)),
                Err(why) => plan.excluded.push((one.id.clone(), why)),
            }
        }
        plan
    }

    fn judge(&self, selection: &SelectedRequest, sense: &Sense, requests: &Requests) -> Result<Answer, &'static str> {
        let Some((ask, None)) = requests.get(&selection.id) else { return Err("answered already") };
        if SelectedRequest::new(ask) != *selection {
            return Err("it changed: read it again");
        }
        if ask.request.observe_only {
            return Err("it can only be answered where the agent runs");
        }
        let answer = match sense {
            Sense::Deny { reason } => {
                let mut answer = Card::denial(ask);
                if ask.request.allow_reason && !reason.is_empty() {
                    answer.reason = Some(reason.clone());
                }
                answer
            }
            Sense::Allow => {
                if ask.risk == RiskView::Danger {
                    return Err("dangerous: allow it by itself");
                }
                if ask.action(AnswerRole::Send).is_some() {
                    return Err("a question: answer it by itself");
                }
                let Some(action) = ask.action(AnswerRole::AllowOnce) else { return Err("it cannot be allowed once") };
                if let Some(why) = action.unavailable {
                    return Err(why.text());
                }
                if !self.was_seen(ask) {
                    return Err("not read to its end yet");
                }
                let Some(answer) = &action.answer else { return Err("it cannot be allowed once") };
                answer.clone()
            }
        };
        Ok(ask.with_digest(answer))
    }
}

/// A version of a request that the user selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SelectedRequest {
    pub(crate) id: String,
    digest: String,
    revision: u64,
}

impl SelectedRequest {
    fn new(ask: &RequestView) -> Self {
        Self { id: ask.id.clone(), digest: ask.request.digest.clone(), revision: ask.request.revision }
    }
}

/// The answer to several requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sense {
    Allow,
    /// Denies the requests, with this reason unless it is empty.
    Deny {
        reason: String,
    },
}

/// The plan of one answer to several requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TriagePlan {
    /// The requests that are answered, each with its answer.
    pub(crate) answers: Vec<(String, Answer)>,
    /// The requests that are left out, each with the reason.
    pub(crate) excluded: Vec<(String, &'static str)>,
}

/// The question whether to answer several requests.
#[derive(Clone, Debug)]
pub(crate) struct SeveralQuestion {
    pub(crate) sense: Sense,
    pub(crate) selection: Vec<SelectedRequest>,
    pub(crate) plan: TriagePlan,
    /// The time when it was first shown.
    pub(crate) shown_at: i64,
    pub(crate) scroll: usize,
}

/// The question of a request in one line, without the line that names the folder.
pub(crate) fn headline(ask: &RequestView) -> String {
    let first = ask.display.split('\n').find(|line| !line.trim().is_empty()).unwrap_or(&ask.title);
    let question = ask.questions.first().map(|question| question.text.as_str()).filter(|text| !text.is_empty());
    sanitize::line(question.unwrap_or(first), HEADLINE_MAX)
}

/// The common key of requests with the same question; `None` if the question is incomplete or too long.
fn same_text(ask: &RequestView) -> Option<(std::mem::Discriminant<About>, &str)> {
    if ask.request.display_truncated || ask.display.len() > GROUP_TEXT_MAX {
        return None;
    }
    let mut text = ask.display.trim_end();
    if matches!(ask.request.subject, About::Command { .. })
        && let Some((command, last)) = text.rsplit_once('\n')
        && last.starts_with("in ")
    {
        text = command;
    }
    Some((std::mem::discriminant(&ask.request.subject), text))
}

/// Groups requests that belong together, each group at the place of its first request.
fn clustered(order: &[String], requests: &Requests, folded: &BTreeSet<String>) -> Vec<InboxRow> {
    let views: Vec<&RequestView> = order.iter().filter_map(|id| requests.get(id)).map(|(ask, _)| ask).collect();
    let mut by_text: HashMap<(std::mem::Discriminant<About>, &str), Vec<usize>> = HashMap::new();
    for (n, ask) in views.iter().enumerate() {
        if let Some(text) = same_text(ask) {
            by_text.entry(text).or_default().push(n);
        }
    }
    by_text.retain(|_, all| all.len() >= GROUP_TEXT_MIN);
    let grouped: HashSet<usize> = by_text.values().flatten().copied().collect();
    let mut by_session: HashMap<&str, Vec<usize>> = HashMap::new();
    for (n, ask) in views.iter().enumerate().filter(|(n, _)| !grouped.contains(n)) {
        by_session.entry(&ask.session).or_default().push(n);
    }
    by_session.retain(|_, all| all.len() >= GROUP_SESSION_MIN);
    let mut rows = Vec::new();
    for (n, ask) in views.iter().enumerate() {
        let text = same_text(ask).and_then(|text| Some((text, by_text.get(&text)?)));
        let (key, session, all) = match (text, by_session.get(ask.session.as_str())) {
            (Some(((subject, text), all)), _) => (format!("group {subject:?} {text}"), false, all),
            (None, Some(all)) => (format!("group session {}", ask.session), true, all),
            (None, None) => {
                rows.push(InboxRow::Request { id: ask.id.clone(), grouped: false });
                continue;
            }
        };
        if all.first() != Some(&n) {
            continue;
        }
        let ids: Vec<String> = all.iter().map(|at| views[*at].id.clone()).collect();
        let folded = folded.contains(&key);
        rows.push(InboxRow::Group { key, session, ids: ids.clone(), folded });
        if !folded {
            rows.extend(ids.into_iter().map(|id| InboxRow::Request { id, grouped: true }));
        }
    }
    rows
}
