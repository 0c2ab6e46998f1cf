//! The handling of ceilings in a session: the prompts that wait, the time of the question, and the effect of an answer. Pure.
//!
//! A reached ceiling never stops a run. It holds the next prompts of the queue, and each of them reports that. The session asks as soon
//! as there is something to decide: when its own spending reaches the ceiling, or when a prompt waits. After "stop" the prompts stay in
//! the queue, and the next prompt asks again. Work that the gateway does not start (in the agent's own terminal) is not held.

use plexus_dialects::RequestSubject;
use plexus_protocol::{About, CeilingKind, CeilingReached, Choice, Offer, RequestType};

use super::super::ceilings::{CeilingFacts, DayAnswer};
use super::*;

/// The ids of the options.
const CONTINUE: &str = "go_on";
const STOP: &str = "stop";
/// The value of `subject` in requests about ceilings.
const SUBJECT: &str = "ceiling";
/// Maximum time until a session checks again whether the day has ended: clocks are set, and machines sleep.
const DAY_CHECK_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// The state of a session with respect to ceilings; stored in its row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CeilingMemory {
    /// The spending of the session since gateways count it.
    #[serde(default, skip_serializing_if = "Spending::is_unknown")]
    spent: Spending,
    /// The spending when a user last allowed the session to continue.
    #[serde(default, skip_serializing_if = "Spending::is_unknown")]
    allowed: Spending,
    /// `true` if a user chose to stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stopped: bool,
    /// `true` if the session's own ceiling was reached, and no request about it was opened yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    crossed: bool,
    /// The day whose ceiling was reached, if no request about it was opened yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crossed_day: Option<i64>,
    /// The open requests about ceilings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    asks: BTreeMap<RequestId, CeilingAsk>,
    /// The answer about a day that a user gave in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    day: Option<DayAnswer>,
}

impl CeilingMemory {
    /// Returns whether there is nothing to store.
    pub(super) fn is_new(&self) -> bool {
        *self == Self::default()
    }
}

/// An open request about a ceiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct CeilingAsk {
    #[serde(rename = "of")]
    kind: CeilingKind,
    day: i64,
}

impl SessionStateMachine {
    /// Sets the current facts, which include everything that the session spent.
    pub(crate) fn update_ceilings(&mut self, facts: Arc<CeilingFacts>) {
        self.ceilings = facts;
        self.uncounted = Spending::default();
    }

    /// Returns the answer about a day that a user gave in this session.
    pub(crate) fn day_answer(&self) -> Option<&DayAnswer> {
        self.core.ceilings.day.as_ref()
    }

    /// Returns whether the session has an open request about today's ceiling.
    pub(crate) fn asks_about_day(&self) -> bool {
        self.core.ceilings.asks.values().any(|ask| ask.kind == CeilingKind::Day)
    }

    /// Returns whether this is an open request about a ceiling: the gateway's own, of which no runtime knows.
    pub(crate) fn is_ceiling_ask(&self, id: &RequestId) -> bool {
        self.core.ceilings.asks.contains_key(id)
    }

    /// Returns the session's view of today's spending.
    fn spent_today(&self) -> Spending {
        let mut spent = self.ceilings.spent.clone();
        spent.add(&self.uncounted);
        spent
    }

    fn reached(&self, kind: CeilingKind) -> Option<CeilingReached> {
        let facts = &self.ceilings;
        match kind {
            CeilingKind::Day if facts.day_ceiling.is_none() => None,
            CeilingKind::Day => facts.day_ceiling.reached(&self.spent_today(), &facts.allowed()),
            CeilingKind::Session => {
                let memory = &self.core.ceilings;
                facts.ceiling(&self.origin.session_id).reached(&memory.spent, &memory.allowed)
            }
        }
    }

    /// Returns the ceiling that holds prompts, if one does.
    pub(crate) fn blocking_ceiling(&self) -> Option<CeilingKind> {
        if self.ceilings.is_unlimited() {
            return None;
        }
        [CeilingKind::Session, CeilingKind::Day].into_iter().find(|kind| self.reached(*kind).is_some())
    }

    /// Returns whether a user chose to stop this session.
    #[cfg(test)]
    pub(crate) fn is_stopped(&self) -> bool {
        self.core.ceilings.stopped
    }

    /// Adds a step of spending.
    pub(super) fn count_spending(&mut self, spent: &Spending) {
        let before = [CeilingKind::Session, CeilingKind::Day].map(|kind| self.reached(kind).is_some());
        self.core.ceilings.spent.add(spent);
        self.uncounted.add(spent);
        let now = [CeilingKind::Session, CeilingKind::Day].map(|kind| self.reached(kind).is_some());
        self.core.ceilings.crossed |= now[0] && !before[0];
        if now[1] && !before[1] {
            self.core.ceilings.crossed_day = Some(self.ceilings.day);
        }
    }

    /// Returns a time for an answer about today: later than that of the previous answer, regardless of changes of the clock.
    fn answer_time(&self, env: &DecisionEnv<'_>) -> Timestamp {
        let before = self.ceilings.answer.as_ref().map(|answer| answer.at.plus_millis(1));
        before.map_or(env.now, |before| before.max(env.now))
    }

    /// Notes that a prompt arrived: after "stop" the session asks again.
    pub(super) fn prompted_under_ceilings(&mut self, env: &DecisionEnv<'_>) {
        self.core.ceilings.stopped = false;
        if self.ceilings.stopped() {
            let (day, allowed) = (self.ceilings.day, self.ceilings.allowed());
            self.core.ceilings.day = Some(DayAnswer { day, at: self.answer_time(env), allowed, stopped: false });
        }
    }

    /// Returns whether the session has a reason to ask about this ceiling.
    fn needs_ask(&self, kind: CeilingKind) -> bool {
        let memory = &self.core.ceilings;
        let (stopped, crossed) = match kind {
            CeilingKind::Session => (memory.stopped, memory.crossed),
            CeilingKind::Day => (self.ceilings.stopped(), memory.crossed_day == Some(self.ceilings.day)),
        };
        let asks = memory.asks.values().any(|ask| ask.kind == kind);
        !stopped && !asks && (crossed || !self.core.queue.is_empty()) && self.reached(kind).is_some()
    }

    /// Returns whether the session has to ask about today's ceiling, unless another session does.
    pub(crate) fn needs_day_ask(&self) -> bool {
        !self.ceilings.is_unlimited() && self.core.exited.is_none() && self.needs_ask(CeilingKind::Day)
    }

    /// Returns the requests about ceilings that no longer apply: the ceiling was raised, or the day has ended.
    fn settled_asks(&self) -> Vec<RequestId> {
        let settled = |ask: &CeilingAsk| {
            (ask.kind == CeilingKind::Day && ask.day != self.ceilings.day) || self.reached(ask.kind).is_none()
        };
        self.core.ceilings.asks.iter().filter(|(_, ask)| settled(ask)).map(|(id, _)| id.clone()).collect()
    }

    /// Returns whether [`follow_ceilings`](Self::follow_ceilings) would change anything. `asks_day`: this is the session that asks about
    /// today.
    pub(crate) fn ceilings_are_due(&self, asks_day: bool) -> bool {
        let memory = &self.core.ceilings;
        let marked = self.core.queue.iter().any(|queued| queued.ceiling.is_some());
        if self.core.exited.is_some() || (self.ceilings.is_unlimited() && memory.asks.is_empty() && !marked) {
            return false;
        }
        let blocking = self.blocking_ceiling();
        let starts = blocking.is_none() && self.core.run.is_none() && !self.core.queue.is_empty();
        starts
            || self.core.queue.iter().any(|queued| queued.ceiling != blocking)
            || self.needs_ask(CeilingKind::Session)
            || (asks_day && self.needs_ask(CeilingKind::Day))
            || !self.settled_asks().is_empty()
    }

    /// Brings the session in line with the ceilings: withdraws requests that no longer apply, asks, reports what waits, and starts what
    /// may start.
    pub(crate) fn follow_ceilings(&mut self, asks_day: bool, env: &mut DecisionEnv<'_>, plan: &mut Plan) {
        if self.core.exited.is_some() {
            return;
        }
        for id in self.settled_asks() {
            self.close(&id, RequestState::Withdrawn, env, plan);
        }
        for kind in [CeilingKind::Session, CeilingKind::Day] {
            if self.needs_ask(kind)
                && (kind == CeilingKind::Session || asks_day)
                && let Some(reached) = self.reached(kind)
            {
                self.ask_about_ceiling(kind, &reached, env, plan);
            }
        }
        let blocking = self.blocking_ceiling();
        if blocking.is_none() {
            self.core.ceilings.crossed = false;
            self.core.ceilings.crossed_day = None;
        }
        let mut queue = std::mem::take(&mut self.core.queue);
        for queued in queue.iter_mut().filter(|queued| queued.ceiling != blocking) {
            queued.ceiling = blocking;
            let run_id = queued.run_id.clone();
            let message = blocking.map(|ceiling| ceiling.wait_reason().to_owned());
            let body = RunBody { message, ..RunBody::new(&run_id, RunStatus::Queued) };
            self.log_queued(queued, EventDraft::new(Kind::RunStatus, &body), env, plan);
            plan.dirty = true;
        }
        self.core.queue = queue;
        self.start_next(env, plan);
    }

    /// Returns the time until the next check whether the day has ended.
    pub(crate) fn time_to_day_check(&self, now: Timestamp) -> Option<std::time::Duration> {
        let waits =
            self.asks_about_day() || self.core.queue.iter().any(|queued| queued.ceiling == Some(CeilingKind::Day));
        let left = self.ceilings.day_ends.as_millis().saturating_sub(now.as_millis()).max(0).unsigned_abs();
        waits.then(|| std::time::Duration::from_millis(left + 1).min(DAY_CHECK_MAX))
    }

    fn ask_about_ceiling(
        &mut self,
        kind: CeilingKind,
        reached: &CeilingReached,
        env: &mut DecisionEnv<'_>,
        plan: &mut Plan,
    ) {
        let id = RequestId::trusted((env.mint)("q_"));
        let (question, effect) = question_texts(kind, reached);
        let offer = |id: &str, label: String, kind| Offer { id: id.into(), label, kind, for_session: false };
        // The key is never sent to a runtime, and differs from the keys of every runtime.
        let key = RequestKey::unique(format!("ceiling {id}"));
        let ask = AgentRequest {
            subject: RequestSubject::Text(question.clone()),
            options: vec![
                offer(CONTINUE, effect, Choice::AllowOnce),
                offer(STOP, "Stop: queued prompts wait".into(), Choice::RejectOnce),
            ],
            ..AgentRequest::new(
                key,
                RequestType::Permission,
                question,
                serde_json::value::to_raw_value(&serde_json::json!({ SUBJECT: kind }))
                    .unwrap_or_else(|_| RawValue::NULL.to_owned()),
                Bytes::new(),
            )
        };
        // The run continues, so the request does not belong to it; and it does not expire, since the prompts would then wait forever.
        let owners = (self.origin.session_id.clone(), self.zero_run.clone(), self.origin.runtime_id.clone());
        let mut request =
            requests::open(&ask, id.clone(), owners, self.core.folders(), self.core.generation, (env.now, None));
        request.subject = About::Tool { name: SUBJECT.into() };
        request.risk = Risk::Elevated;
        request.risk_reasons = vec!["lets agents spend more".into()];
        let request = Arc::new(request);
        self.log_in(&self.zero_run.clone(), EventDraft::new(Kind::RequestOpened, &*request.brief()), env, plan);
        plan.requests.push(RequestChange { request: Arc::clone(&request), key: None, event: plan.events.len() - 1 });
        self.core.asks.insert(id.clone(), ask.key.clone());
        self.open.insert(id.clone(), OpenRequest { request, key: ask.key, deadline: None });
        match kind {
            CeilingKind::Session => self.core.ceilings.crossed = false,
            CeilingKind::Day => self.core.ceilings.crossed_day = None,
        }
        self.core.ceilings.asks.insert(id, CeilingAsk { kind, day: self.ceilings.day });
        self.touch(env, plan);
    }

    /// Records how a request about a ceiling ended. Returns whether `id` is one.
    pub(super) fn note_ceiling_ended(&mut self, id: &RequestId, receipt: &Receipt, env: &DecisionEnv<'_>) -> bool {
        let Some(ask) = self.core.ceilings.asks.remove(id) else { return false };
        let (RequestState::Answered, Some(continues)) = (receipt.state, receipt.ok) else { return true };
        let memory = &mut self.core.ceilings;
        match ask.kind {
            CeilingKind::Session => {
                memory.stopped = !continues;
                if continues {
                    memory.allowed = memory.spent.clone();
                }
            }
            CeilingKind::Day => {
                let allowed = if continues { self.spent_today() } else { self.ceilings.allowed() };
                let at = self.answer_time(env);
                self.core.ceilings.day = Some(DayAnswer { day: ask.day, at, allowed, stopped: !continues });
            }
        }
        true
    }
}

/// Returns the question, and the effect of a yes.
fn question_texts(kind: CeilingKind, reached: &CeilingReached) -> (String, String) {
    let (spent, limit, step) = match reached {
        CeilingReached::Cost { spent, limit, step } => (
            amount(spent.amount),
            format!("{} {}", amount(*limit), spent.currency),
            format!("{} {}", amount(*step), spent.currency),
        ),
        CeilingReached::Tokens { spent, limit, step } => {
            (grouped(*spent), format!("{} tokens", grouped(*limit)), format!("{} tokens", grouped(*step)))
        }
    };
    match kind {
        CeilingKind::Session => (
            format!("This session has spent {spent} of {limit}. Go on?"),
            format!("Go on: {step} more for this session"),
        ),
        CeilingKind::Day => (
            format!("All sessions have spent {spent} of {limit} today. Go on?"),
            format!("Go on: {step} more for today"),
        ),
    }
}

/// Formats an amount of money; small ones with more digits.
fn amount(amount: f64) -> String {
    if amount > 0.0 && amount < 0.995 { format!("{amount:.4}") } else { format!("{amount:.2}") }
}

/// Formats a count with separated thousands.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
