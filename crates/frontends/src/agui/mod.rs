//! The AG-UI frontend: `POST /ag-ui/{session_id}` accepts a `RunAgentInput` and responds with a stream of AG-UI events.
//!
//! In AG-UI a client starts runs, while a session exists independently of its clients. So each POST is a cursor into the log: it may
//! prompt, answer or cancel first, then it sends the conversation at the cursor (snapshots), and then all events until the requested run
//! has ended. A request to users ends the AG-UI run with an interrupt, and the session's run continues in the next AG-UI run, regardless
//! of which client answered. No state is stored besides the log: a client's earlier messages are read from it.

mod events;
mod input;
#[cfg(test)]
mod tests;
mod translate;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use futures_util::future::BoxFuture;
use http::StatusCode;
use http::header::ACCEPT;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;
use tokio::time::Instant;

use input::{ResumeEntry, RunAgentInput};

use self::events::{AgUiEvent, ClientView, Id};
use self::input::{Message, Props};
use self::translate::{End, Outcome, Translator};
use plexus_auth::{Approve, Caller, Device, Prompt, Target, Watch};
use plexus_ledger::Charge;
use plexus_metrics::Subscriber;
use plexus_protocol::api::history::ResumeVerdict;
use plexus_protocol::api::problem::ProblemMembers;
use plexus_protocol::{
    Answer, Cursor, DeviceId, Kind, Position, Receipt, Request, RequestId, RequestState, Risk, RunId, SessionId,
    SessionInfo,
};
use plexus_router::follow::FollowLog;
use plexus_router::guard::{Call, Route};
use plexus_router::reply::session_of;
use plexus_router::routes::{POST, PROMPT_BODY, WATCH, route};
use plexus_router::sse::{self, ExtraEvents};
use plexus_router::{Core, Problem};
use plexus_sessions::{EventPage, Filter, Log, LogPosition, PageLimit, SessionError, StartAfter, judge};
use plexus_store::ReadLimit;

/// Time between the first open request and the interrupt that ends the run, so that the interrupt has all requests that an agent makes at
/// once.
const INTERRUPT_DELAY: Duration = Duration::from_millis(150);
/// Approximate maximum size of the messages in a snapshot, in bytes. The oldest are left out and not read, and the state has `trimmed`.
/// AG-UI clients abort at 10 MB.
const SNAPSHOT: usize = 2 << 20;
/// Limit of one read of events for a snapshot.
const READ: ReadLimit = ReadLimit { events: 1024, bytes: 256 << 10 };
/// Maximum number of sessions whose [`Index`] is cached; the least recently used is dropped and built again when needed.
const INDEXES: usize = 64;
/// Number of locks that serialize prompts. A session's prompts hold one between checking whether a prompt is known and sending it;
/// sessions share the locks.
const PROMPT_LOCKS_LEN: usize = 64;

/// The state of AG-UI. Cheap to clone; clones share the locks and the cache.
#[derive(Clone)]
pub struct AgUiState {
    core: Core,
    shared: Arc<AgUiShared>,
}

/// The part of the state that clones share.
struct AgUiShared {
    prompt_locks: [Mutex<()>; PROMPT_LOCKS_LEN],
    indexes: parking_lot::Mutex<IndexCache>,
}

impl Default for AgUiShared {
    fn default() -> Self {
        Self { prompt_locks: std::array::from_fn(|_| Mutex::default()), indexes: parking_lot::Mutex::default() }
    }
}

/// The cached indexes by session.
#[derive(Default)]
struct IndexCache {
    /// The number of uses of the cache.
    uses: u64,
    /// The indexes, each with the number of its last use.
    indexes: HashMap<SessionId, (u64, Arc<Mutex<Index>>)>,
}

/// Returns the routes of AG-UI.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<AgUiState>> {
    vec![
        // The scope `watch` is enough to read; a prompt or an answer in the body needs its own scope.
        route(POST, "/ag-ui/{id}", WATCH, PROMPT_BODY, "Run a session over AG-UI: prompt, answer, read events", run)
            .request::<RunAgentInput>().empty(200),
    ]
}

impl AgUiState {
    /// Creates the state, with nothing in the cache.
    pub fn new(core: Core) -> Self {
        Self { core, shared: Arc::default() }
    }
}

impl AgUiShared {
    /// Returns the lock of a session's prompts.
    fn prompt_lock(&self, session: &SessionInfo) -> &Mutex<()> {
        let mut hasher = DefaultHasher::new();
        session.session_id.hash(&mut hasher);
        let n = usize::try_from(hasher.finish() % PROMPT_LOCKS_LEN as u64).unwrap_or_default();
        self.prompt_locks.get(n).unwrap_or(&self.prompt_locks[0])
    }

    /// Returns the index of a session, which may be behind.
    fn index(&self, session: &SessionInfo) -> Arc<Mutex<Index>> {
        let mut cache = self.indexes.lock();
        cache.uses += 1;
        let now = cache.uses;
        let (used, index) = cache.indexes.entry(session.session_id.clone()).or_insert_with(|| (now, Arc::default()));
        *used = now;
        let index = Arc::clone(index);
        if cache.indexes.len() > INDEXES
            && let Some(oldest) = cache.indexes.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone())
        {
            cache.indexes.remove(&oldest);
        }
        index
    }
}

/// An index of a session's log for AG-UI, shared by its clients and updated from the end of the log with each POST.
#[derive(Default)]
struct Index {
    /// The position up to which the log is indexed.
    read_to: Position,
    /// The AG-UI ids of users' messages, with the messages under each.
    messages: HashMap<String, Vec<SentMessage>>,
    /// The position of each run's first event.
    first: HashMap<RunId, Position>,
    ends: HashMap<RunId, End>,
    /// The position of each open request.
    open: HashMap<RequestId, Position>,
}

/// A user's message in the log.
struct SentMessage {
    device: DeviceId,
    run: RunId,
    /// The digest of its text so far: a message may have several parts.
    text: Sha256,
}

impl SentMessage {
    fn has(&self, text: &str) -> bool {
        self.text.clone().finalize() == Sha256::digest(text)
    }
}

impl Index {
    fn event(&mut self, event: &plexus_protocol::Event) {
        #[derive(serde::Deserialize)]
        struct RequestRef {
            request_id: RequestId,
        }
        self.first.entry(event.run_id.clone()).or_insert(event.position);
        match event.kind {
            Kind::UserMessageChunk => {
                let Some((message, text)) = translate::marked_text(&event.body) else { return };
                let Some(device) = sender(&event.body) else { return };
                let all = self.messages.entry(message).or_default();
                match all.last_mut().filter(|last| last.device == device && last.run == event.run_id) {
                    Some(last) => last.text.update(text),
                    None => {
                        let text = Sha256::new_with_prefix(text);
                        all.push(SentMessage { device, run: event.run_id.clone(), text });
                    }
                }
            }
            Kind::RunEnded => {
                self.ends.extend(translate::read_run_end(event).map(|end| (end.run_id.clone(), end)));
            }
            Kind::RequestOpened => {
                let opened = serde_json::from_slice::<RequestRef>(&event.body);
                self.open.extend(opened.ok().map(|opened| (opened.request_id, event.position)));
            }
            Kind::RequestResolved => {
                if let Ok(resolved) = serde_json::from_slice::<RequestRef>(&event.body) {
                    self.open.remove(&resolved.request_id);
                }
            }
            _ => {}
        }
    }
}

/// The part of a client's conversation that is in the log.
struct Known {
    index: Arc<Mutex<Index>>,
    /// The run of the client's last message, if it was sent before.
    last_run: Option<RunId>,
    /// `true` if the id of the client's last message belongs to messages with other texts only.
    is_reused: bool,
}

impl Known {
    /// Reads a conversation. `last`: the user's message at the end of the client's conversation.
    async fn read(
        shared: &AgUiShared,
        log: &Log,
        session: &SessionInfo,
        device: &DeviceId,
        last: Option<&Message>,
    ) -> Result<Self, SessionError> {
        let index = shared.index(session);
        let (last_run, is_reused) = {
            let mut index = index.lock().await;
            let head = log.head();
            // If the call is dropped in the middle, the index retains the events read so far.
            each(log, session, index.read_to, head, |event| {
                index.event(event);
                index.read_to = event.position;
            })
            .await?;
            index.read_to = index.read_to.max(head);
            let sent = last.and_then(|last| Some((index.messages.get(last.id())?, last.text())));
            let (sent, text) = sent.map_or((&[][..], String::new()), |(sent, text)| (sent.as_slice(), text));
            let mut same = sent.iter().filter(|message| message.has(&text));
            let last_run = same.clone().rfind(|message| message.device == *device).map(|message| message.run.clone());
            (last_run, !sent.is_empty() && same.next().is_none())
        };
        Ok(Self { index, last_run, is_reused })
    }
}

/// Returns the device that sent a user's message, as recorded by the gateway.
fn sender(body: &[u8]) -> Option<DeviceId> {
    let body: Value = serde_json::from_slice(body).ok()?;
    body.pointer("/_meta/plexus/by/device_id")?.as_str()?.parse().ok()
}

/// Reads a session's log after `after`, up to `to`, inclusive.
async fn each(
    log: &Log,
    session: &SessionInfo,
    mut after: Position,
    to: Position,
    mut take: impl FnMut(&plexus_protocol::Event),
) -> Result<(), SessionError> {
    let filter = Filter::session(session.session_id.clone());
    while after < to {
        let page = log.read(&filter, after, READ).await.map_err(|error| SessionError::Storage(error.to_string()))?;
        page.events.iter().filter(|event| event.position <= to).for_each(|event| take(event));
        if page.next <= after {
            break;
        }
        after = page.next;
        // A long log is in memory, so reading it never yields by itself.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// The answers of a resume, and the earlier decisions.
#[derive(Default)]
struct Answers {
    /// Answers to open and to answered requests: a repeated answer under the same key wins again.
    open: Vec<(RequestId, Answer)>,
    /// Receipts of closed requests that the client cancels.
    closed: Vec<Receipt>,
    /// Open requests that the client leaves to the user's computer.
    deferred: Vec<RequestId>,
    /// The position of the first earlier answer.
    before: Option<Position>,
    /// The run of the interrupts.
    run: Option<RunId>,
}

/// Compares a resume with the open requests. Decides nothing.
async fn answers(
    state: &AgUiState,
    session: &SessionInfo,
    entries: &[ResumeEntry],
    props: &Props,
    device: &Device,
) -> Result<Answers, Problem> {
    let mut answers = Answers::default();
    let filter = Filter::session(session.session_id.clone());
    let open = state.core.directory.requests().open(&filter);
    for entry in entries {
        let id = &entry.interrupt_id;
        let unknown = || {
            let detail = format!("the session has no interrupt {id:?}: nothing was decided");
            Problem::new(StatusCode::NOT_FOUND, "interrupt_not_found", detail).with_interrupt(id)
        };
        let known: RequestId = id.parse().map_err(|_| unknown())?;
        let request = match open.iter().find(|request| request.request_id == known) {
            Some(request) => Request::clone(request),
            None => state.core.directory.requests().get(&known).await?.ok_or_else(unknown)?,
        };
        if request.session_id != session.session_id {
            return Err(unknown());
        }
        answers.run = Some(request.run_id.clone());
        if props.cancel.requested() && entry.status == input::Status::Cancelled {
            // The cancel will withdraw it.
        } else if input::is_deferred(entry) {
            match request.receipt.clone() {
                Some(receipt) => answers.closed.push(receipt),
                None => answers.deferred.push(known),
            }
        } else if request.state == RequestState::Open {
            let answer = input::answer(&request, entry)?;
            if let Err(refusal) = judge(&request, &answer, device.grant.approve_up_to) {
                let refusal = state.core.with_approvers(device, &known, refusal).await;
                return Err(Problem::from(refusal).with_interrupt(id));
            }
            answers.open.push((known, answer));
        } else if let Some(problem) = input::late(entry, &request) {
            return Err(problem);
        } else if let Some(receipt) = request.receipt.clone() {
            let position = receipt.cursor.as_ref().map(|cursor| Position(cursor.position.0.saturating_sub(1)));
            answers.before = answers.before.into_iter().chain(position).min();
            match receipt.state {
                // An answered request is answered again with the same key, which returns the same receipt.
                RequestState::Answered => {
                    answers.open.push((known, input::answer(&request, entry).unwrap_or_default()));
                }
                _ => answers.closed.push(receipt),
            }
        }
    }
    let left: Vec<String> = open
        .iter()
        .filter(|request| !request.observe_only)
        .map(|request| request.request_id.to_string())
        .filter(|id| !entries.iter().any(|entry| entry.interrupt_id == *id))
        .collect();
    if !entries.is_empty() && !left.is_empty() && !props.partial && !props.cancel.requested() {
        let detail = format!(
            "`resume` must answer every open interrupt; missing: {}. Nothing was decided. Answer all, or set \
             `forwardedProps.plexus.partial`",
            left.join(", ")
        );
        let more = ProblemMembers { missing: Some(left), ..ProblemMembers::default() };
        return Err(Problem::new(StatusCode::CONFLICT, "resume_partial", detail).with(more));
    }
    Ok(answers)
}

/// Sends the answers. A request that another client decided in the meantime is not an error; the receipt names the winner.
async fn decide(
    state: &AgUiState,
    permit: &plexus_auth::Permit<Approve>,
    answers: &mut Answers,
    key: &str,
) -> Result<Vec<Value>, Problem> {
    let mut outcomes: Vec<Value> = answers.closed.iter().map(|receipt| outcome(receipt, false)).collect();
    let deferred = answers.deferred.iter();
    outcomes.extend(deferred.map(|id| json!({ "interruptId": id, "won": false, "state": "open", "deferred": true })));
    let mut decided = false;
    for (id, answer) in &answers.open {
        match state.core.answer(permit, id, answer.clone(), Some(key.to_owned())).await {
            Ok(receipt) => {
                outcomes.push(outcome(&receipt, true));
                decided = true;
            }
            Err(SessionError::AlreadyResolved(receipt) | SessionError::Closed(receipt)) => {
                outcomes.push(outcome(&receipt, false));
            }
            // Earlier decisions are final; the client gets the error of the rest.
            Err(refusal) if decided => {
                let problem = Problem::from(refusal);
                outcomes
                    .push(json!({ "interruptId": id, "won": false, "code": problem.code, "message": problem.detail }));
            }
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Ok(outcomes)
}

/// Returns an idempotency key from the values that identify a repeated POST.
fn key(value: &impl serde::Serialize) -> String {
    // Plain values, which always serialize.
    let digest = Sha256::digest(serde_json::to_vec(value).unwrap_or_default());
    format!("ag-ui:{}", data_encoding::HEXLOWER.encode(&digest))
}

/// Returns a receipt in the form of this frontend.
fn outcome(receipt: &Receipt, won: bool) -> Value {
    let mut value = serde_json::to_value(Receipt { won, ..receipt.clone() }).unwrap_or_default();
    value["interruptId"] = json!(receipt.request_id);
    value
}

fn accepts(call: &Call) -> bool {
    let mut lines = call.parts.headers.get_all(ACCEPT).iter().peekable();
    lines.peek().is_none()
        || lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',')).any(|one| {
            let kind = one.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            matches!(kind.as_str(), "text/event-stream" | "text/*" | "*/*")
        })
}

/// Returns the client's cursor, if it sent one. The header takes precedence over the body.
fn requested_cursor(call: &Call, props: &Props) -> Result<Option<Cursor>, Problem> {
    let header = call.parts.headers.get("last-event-id").map(|last| last.to_str().unwrap_or("-"));
    let text = header.filter(|last| !last.is_empty()).or(props.cursor.as_deref()).filter(|text| !text.is_empty());
    text.map(|text| text.parse().map_err(Problem::bad_cursor)).transpose()
}

/// Handles `POST /ag-ui/{session_id}`.
async fn run(state: AgUiState, call: Call) -> Result<Response, Problem> {
    let (session, _) = session_of::<Watch>(&state.core, &call)?;
    let caller = call.caller()?.clone();
    if !accepts(&call) {
        let message = "this route responds with a stream: accept `text/event-stream`";
        return Err(Problem::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", message));
    }
    let input: RunAgentInput = call.json()?;
    let props = input.check()?;
    let requested_cursor = requested_cursor(&call, &props)?;
    // The charge for the snapshots; queued messages are charged separately.
    let _charge = call.account.charge(SNAPSHOT)?;
    let effects = act(&state, &caller, &session, &input, &props).await?;
    let (first, stream) =
        show(&state, &session, &input, &props, requested_cursor, effects, call.account.nothing()).await?;
    Ok(sse::stream(state.core, caller, &call.parts, first, Box::new(stream)))
}

/// The effects of a POST before its first event.
struct Effects {
    known: Known,
    /// The end of the log before the POST.
    before: Position,
    /// The run that the client waits for.
    target: Option<RunId>,
    /// The position from which the run continues after the client's answers, or earlier ones.
    resumes_at: Option<Position>,
    /// Users' messages in this POST: id and text.
    new_messages: Vec<(String, String)>,
    /// Open requests that the client leaves to the user's computer.
    deferred: Vec<RequestId>,
    /// The maximum risk that the client's device may allow.
    limit: Option<Risk>,
    notices: Vec<AgUiEvent>,
}

async fn act(
    state: &AgUiState,
    caller: &Caller,
    session: &SessionInfo,
    input: &RunAgentInput,
    props: &Props,
) -> Result<Effects, Problem> {
    let target = Target::Session(&session.session_id, &session.runtime_id);
    let log = state.core.directory.log();
    let device = &caller.device().device_id;
    // A retry must find what the first POST wrote.
    let _turn = if input.last().is_some() { Some(state.shared.prompt_lock(session).lock().await) } else { None };
    let before = log.head();
    let known = Known::read(&state.shared, log, session, device, input.last()).await?;
    if let Some(last) = input.last().filter(|_| known.is_reused) {
        let detail = format!(
            "the session has another message with the id {:?}: nothing was started. Give each message an id of its own",
            last.id()
        );
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "message_id_reused", detail));
    }
    let new_messages = if known.last_run.is_some() {
        Vec::new()
    } else {
        let index = known.index.lock().await;
        input.new_messages(|name| index.messages.contains_key(name))
    };
    let blocks = if new_messages.is_empty() { Vec::new() } else { input::blocks(&new_messages)? };
    let entries = input.resume.as_deref().unwrap_or_default();
    let mut answers = answers(state, session, entries, props, caller.device()).await?;
    // All permits are checked before the first change.
    let prompts =
        if blocks.is_empty() && !props.cancel.requested() { None } else { Some(caller.permit::<Prompt>(target)?) };
    let approves = if entries.is_empty() { None } else { Some(caller.permit::<Approve>(target)?) };
    let mut notices = Vec::new();
    let mut cancelled = None;
    if let (Some(permit), true) = (&prompts, props.cancel.requested()) {
        match state.core.directory.cancel(permit, &session.session_id, props.cancel.run()).await {
            Ok(run) => {
                notices.push(AgUiEvent::custom("cancel", json!({ "run_id": run })));
                cancelled = Some(run);
            }
            // No run is in progress, as the client requested.
            Err(SessionError::NoRun) => notices.push(AgUiEvent::custom("cancel", json!({ "run_id": null }))),
            Err(refusal) => return Err(refusal.into()),
        }
    }
    let resumes_at = answers.before;
    if let Some(permit) = &approves {
        // A repeated POST wins again.
        let key = key(&(device, &input.thread_id, &input.run_id));
        let outcomes = decide(state, permit, &mut answers, &key).await?;
        notices.push(AgUiEvent::custom("resume", json!({ "interrupts": outcomes })));
    }
    let mut target = known.last_run.clone().or(answers.run).or(cancelled);
    let mut new_prompt = Vec::new();
    if let (Some(permit), false) = (&prompts, blocks.is_empty()) {
        // A queued prompt is not in the log yet, but its key is.
        let names: Vec<&str> = new_messages.iter().map(|message| message.id()).collect();
        let key = Some(key(&(device, &input.thread_id, names)));
        let accepted = state.core.directory.prompt_once(permit, &session.session_id, blocks, key).await?;
        notices.push(AgUiEvent::custom("prompt", json!(accepted)));
        new_prompt = new_messages.iter().map(|message| (message.id().to_owned(), message.text())).collect();
        if accepted.queued {
            // A queued prompt is sent when its run starts.
            new_prompt.clear();
        }
        target = Some(accepted.run_id);
    }
    let ignored = input.ignored();
    if !ignored.is_empty() {
        let message = "agents of this gateway cannot receive these over AG-UI: they were ignored";
        notices.push(AgUiEvent::custom("ignored", json!({ "ignored": ignored, "message": message })));
    }
    let (deferred, limit) = (answers.deferred, caller.device().grant.approve_up_to);
    Ok(Effects { known, before, target, resumes_at, new_messages: new_prompt, deferred, limit, notices })
}

/// Makes the first events, up to the snapshots, and the stream that follows them.
async fn show(
    state: &AgUiState,
    session: &SessionInfo,
    input: &RunAgentInput,
    props: &Props,
    requested_cursor: Option<Cursor>,
    effects: Effects,
    charge: Charge,
) -> Result<(Vec<u8>, Stream), Problem> {
    let Effects { known, before, target, resumes_at, new_messages, deferred, limit, mut notices } = effects;
    let log = state.core.directory.log();
    let filter = Filter::session(session.session_id.clone());
    let read_to = log.head();
    let again = {
        let index = known.index.lock().await;
        known.last_run.as_ref().and_then(|run| index.first.get(run)).map(|first| Position(first.0.saturating_sub(1)))
    };
    let requested = requested_cursor.is_some();
    let requested_cursor = requested_cursor.or_else(|| again.or(resumes_at).map(|position| log.cursor(position)));
    let after = requested_cursor.map_or(StartAfter::Now, StartAfter::Cursor);
    let attach = log.attach(&filter, &after);
    let at = match after {
        StartAfter::Cursor(_) if attach.resume == ResumeVerdict::Ok => attach.after,
        _ => before,
    };
    if requested && attach.resume != ResumeVerdict::Ok {
        let (oldest, head) = (log.cursor(attach.oldest), log.cursor(attach.head));
        notices
            .push(AgUiEvent::custom("resume_from", json!({ "resume": attach.resume, "oldest": oldest, "head": head })));
    }
    let mut translator = Translator::new(&input.thread_id).for_device(limit, deferred);
    let mut view = ClientView::default();
    view.state.extend(beginning(session));
    let max = PageLimit { items: usize::MAX, bytes: SNAPSHOT, merge: true, output: usize::MAX };
    let (from, older) = log.position_before(&session.session_id, LogPosition::after(at), max).await?;
    if older || attach.oldest > Position::START {
        // The snapshot has the latest values of events that are not read or were removed.
        let snapshot = state.core.directory.snapshots().get(&session.session_id).await?;
        let latest = snapshot.latest.iter().filter_map(|(kind, body)| Some((named(kind)?, body)));
        for (name, body) in latest {
            let mut body: Value = serde_json::from_str(body.get()).unwrap_or_default();
            if let Some(fields) = body.as_object_mut() {
                fields.remove("sessionUpdate");
            }
            view.state.insert(name.into(), body);
        }
        view.state.insert("trimmed".into(), true.into());
    }
    let after = Position(from.position.0.saturating_sub(1));
    if older {
        // The current run and open requests are included, regardless of their age.
        for began in before_window(&known, session, from).await {
            let before = Position(began.0.saturating_sub(1));
            each(log, session, before, began, |event| translator.fold(event, &mut view)).await?;
        }
    }
    each(log, session, after, at, |event| translator.fold(event, &mut view)).await?;
    // With a cursor, the prompt comes at its own position.
    let new_messages = if requested { Vec::new() } else { new_messages };
    let mut messages = view.messages(SNAPSHOT);
    let mut ahead: Vec<Id> = Vec::new();
    for (id, text) in new_messages.into_iter().filter(|(id, _)| !view.has(id)) {
        messages.push(json!({ "id": id, "role": "user", "content": text }));
        ahead.push(id.into());
    }
    translator.listen(ahead);
    let mut out = Vec::new();
    translator.begin(&input.run_id, &mut out);
    out.push(AgUiEvent::MessagesSnapshot { messages });
    out.push(AgUiEvent::StateSnapshot { snapshot: Value::Object(view.state) });
    let mut first = Vec::new();
    let cursor = log.cursor(at);
    let last = out.len() - 1;
    for (n, item) in out.iter().enumerate() {
        item.write(&mut first, (n == last).then_some(&cursor), None);
    }
    notices.iter().for_each(|notice| notice.write(&mut first, None, None));
    let ended = {
        let index = known.index.lock().await;
        target.as_ref().and_then(|run| index.ends.get(run)).cloned()
    };
    let stream = Stream {
        log: log.clone(),
        follow: FollowLog::new(log, filter.clone(), at, Subscriber::AgUi).until(read_to),
        filter,
        translator,
        charge,
        target,
        known: ended.filter(|_| !props.follow),
        follows: props.follow,
        read_to,
        interrupt_at: None,
        closed: false,
    };
    Ok((first, stream))
}

/// Returns the positions, in order, of the beginning of the current run and of the open requests that are older than the events read.
async fn before_window(known: &Known, session: &SessionInfo, from: LogPosition) -> Vec<Position> {
    let index = known.index.lock().await;
    let run = session.run_id.as_ref().and_then(|run| index.first.get(run));
    let mut positions: Vec<Position> =
        run.into_iter().chain(index.open.values()).filter(|position| **position < from.position).copied().collect();
    positions.sort_unstable();
    positions
}

/// Returns the member of the state for a kind that counts only by its latest event.
fn named(kind: &str) -> Option<&'static str> {
    match Kind::from_name(kind)? {
        Kind::Plan => Some("plan"),
        Kind::AvailableCommandsUpdate => Some("commands"),
        Kind::CurrentModeUpdate => Some("mode"),
        Kind::ConfigOptionUpdate => Some("config_options"),
        Kind::SessionInfoUpdate => Some("session_info"),
        Kind::UsageUpdate => Some("usage"),
        Kind::RuntimeStatus => Some("runtime"),
        _ => None,
    }
}

/// Returns the initial state, with every member that may change later.
fn beginning(session: &SessionInfo) -> serde_json::Map<String, Value> {
    let about = json!({
        "session": {
            "session_id": session.session_id, "runtime_id": session.runtime_id, "dialect": session.dialect,
            "title": session.title, "cwd": session.cwd,
        },
        "run": null, "queue": [], "requests": {}, "plan": null, "mode": null, "config_options": null, "commands": null,
        "usage": null, "session_info": null, "runtime": null, "trimmed": false,
    });
    let Value::Object(about) = about else { return serde_json::Map::new() };
    about
}

/// The events after the snapshots.
struct Stream {
    log: Log,
    filter: Filter,
    follow: FollowLog,
    translator: Translator,
    /// The charge for the memory of the translator.
    charge: Charge,
    /// The run with which the stream ends; without one, it ends when no run is in progress.
    target: Option<RunId>,
    /// The end of the target, if it ended before the POST.
    known: Option<End>,
    /// `true` if the stream continues after the run.
    follows: bool,
    /// The end of the log at the last check; the stream does not end before it is read.
    read_to: Position,
    /// The time to end the run with an interrupt.
    interrupt_at: Option<Instant>,
    closed: bool,
}

impl Stream {
    fn take(&mut self, page: &EventPage, out: &mut Vec<u8>) {
        for event in &page.events {
            if self.closed {
                return;
            }
            let mut items = Vec::new();
            let waited = self.translator.is_waiting();
            let mut end = Vec::new();
            self.translator.end_between_runs(event, &mut end);
            end.iter().for_each(|item| item.write(out, None, None));
            self.translator.event(event, &mut items);
            if self.charge.resize(self.translator.memory()).is_err() {
                self.translator.forget_surfaces();
                // Reducing a charge always succeeds.
                let _ = self.charge.resize(0);
            }
            if !items.is_empty() && !self.translator.active() {
                let mut start = Vec::new();
                self.translator.ensure_run(event, &mut start);
                start.iter().for_each(|item| item.write(out, None, Some(event.at)));
            }
            let cursor = self.log.cursor(event.position);
            let last = items.len().saturating_sub(1);
            for (n, item) in items.iter().enumerate() {
                item.write(out, (n == last).then_some(&cursor), Some(event.at));
            }
            if self.translator.is_waiting() && !waited {
                // The request may be answered already, later in the log.
                self.read_to = self.read_to.max(self.log.head());
                let read = self.follow.cursor().position;
                self.follow =
                    FollowLog::new(&self.log, self.filter.clone(), read, Subscriber::AgUi).until(self.read_to);
                self.interrupt_at = None;
            }
            let ended = self.translator.ended().filter(|_| event.kind == Kind::RunEnded).cloned();
            let end = ended.filter(|end| self.follows || self.target.as_ref() == Some(&end.run_id));
            if let Some(end) = end {
                self.finish(&Outcome::Ended(end), &cursor, out);
            }
        }
    }

    fn finish(&mut self, outcome: &Outcome, cursor: &Cursor, out: &mut Vec<u8>) {
        let mut items = Vec::new();
        self.translator.finish(outcome, &mut items);
        let last = items.len().saturating_sub(1);
        for (n, item) in items.iter().enumerate() {
            item.write(out, (n == last).then_some(cursor), None);
        }
        (self.interrupt_at, self.known) = (None, None);
        self.closed = !self.follows;
    }

    /// Ends the AG-UI run if there is a reason, once the log is read up to the last check.
    fn finish_if_done(&mut self, out: &mut Vec<u8>) {
        let cursor = self.follow.cursor();
        if self.closed || !self.translator.active() || cursor.position < self.read_to {
            return;
        }
        if self.translator.is_waiting() {
            let at = *self.interrupt_at.get_or_insert_with(|| Instant::now() + INTERRUPT_DELAY);
            if Instant::now() >= at {
                self.finish(&Outcome::Interrupt, &cursor, out);
            }
            return;
        }
        self.interrupt_at = None;
        if self.translator.idle() {
            let ended = self.translator.ended().cloned().or_else(|| self.known.take());
            self.finish(&ended.map_or(Outcome::Idle, Outcome::Ended), &cursor, out);
        } else if let Some(end) = self.known.take() {
            // The client's run has ended; another run is in progress.
            self.finish(&Outcome::Ended(end), &cursor, out);
        }
    }
}

impl ExtraEvents for Stream {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            loop {
                let mut out = Vec::new();
                // The current state may be a reason to end.
                self.finish_if_done(&mut out);
                if out.is_empty() {
                    if self.closed {
                        return None;
                    }
                    let at = self.interrupt_at;
                    let wait = async {
                        match at {
                            Some(at) => tokio::time::sleep_until(at).await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        biased;
                        page = self.follow.page() => self.take(&page, &mut out),
                        () = wait => {}
                    }
                    self.finish_if_done(&mut out);
                }
                if !out.is_empty() {
                    return Some(out);
                }
            }
        })
    }
}
