//! The remote control of a Gemini UI (`GEMINI_CLI_REMOTE_PORT`) as a server, for any runtime: `POST /message` and
//! `GET /history` of its current session.

// Every kind of event is handled explicitly, so that a new one does not compile before it is.
#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::PortState;
use super::mirror::{current, typed};
use plexus_auth::{Caller, Permit, Prompt, Right, Target, Watch};
use plexus_ledger::Account;
use plexus_protocol::transcript::{ChunkTarget, Content, EntryBody, EntryKind, MessageKey, MessageTracker, Role};
use plexus_protocol::{RunId, SessionId, SessionInfo, text_block};
use plexus_router::guard::Call;
use plexus_router::history::{fits_charge, response, text, wait_for_charge};
use plexus_router::reply as api;
use plexus_router::{Core, Problem};
use plexus_sessions::{Filter, Log, LogPosition, PageItem, PageLimit, SessionError};

fn not_ready(reason: &str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", reason).retry_after(1)
}

/// Returns the addressed session, and a permit for it.
fn find_session<S: Right>(port: &PortState, call: &Call) -> Result<(Arc<SessionInfo>, Permit<S>), Problem> {
    let caller = call.caller()?;
    let session = current::<S>(&port.core, &port.runtime, caller).ok_or_else(|| {
        let message = "no session of this runtime is ready: open one, or set session = true in its configuration";
        not_ready(message)
    })?;
    let permit = caller.permit(Target::Session(&session.session_id, &session.runtime_id))?;
    Ok((session, permit))
}

/// The message to send: unknown members are ignored.
#[derive(Deserialize)]
struct Message {
    message: String,
}

/// Handles `POST /message {"message"}`, as if a user had typed it.
///
/// # Errors
/// 503 `not_ready`; 422 for an empty message; the errors of a prompt.
pub(super) async fn message(port: PortState, call: Call) -> Result<Response, Problem> {
    let Message { message } = call.json()?;
    if message.trim().is_empty() {
        return Err(Problem::invalid("the message is empty"));
    }
    let (session, permit) = find_session::<Prompt>(&port, &call)?;
    match port.core.directory.prompt(&permit, &session.session_id, vec![text_block(&message)]).await {
        Ok(accepted) => api::json(StatusCode::OK, &accepted),
        // The runtime ended in this moment.
        Err(refusal @ SessionError::RuntimeUnavailable(_)) => Err(not_ready(&refusal.to_string())),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Limit of one read of the log.
const READ: PageLimit = PageLimit { items: 256, bytes: 64 << 10, merge: true, output: usize::MAX };

/// Handles `GET /history?limit=N`: the messages of users and the agent, oldest first; the last N, or all stored ones. Thoughts, tools and
/// other content than text are left out. The response is written while the log is read, so that it costs a slice, regardless of its
/// length.
///
/// # Errors
/// 400 for a limit that is not an integer above 0; 503 `not_ready`.
pub(super) async fn history(port: PortState, call: Call) -> Result<Response, Problem> {
    let limit = limit(call.parts.uri.query())?;
    let (session, _) = find_session::<Watch>(&port, &call)?;
    let (log, account) = (port.core.directory.log().clone(), call.account.clone());
    // Read before the log: a prompt that begins between the two is found in both, and sent once.
    let mut waiting: VecDeque<_> = port.core.directory.waiting(&session.session_id).into();
    waiting.drain(..waiting.len().saturating_sub(limit));
    let until = LogPosition::after(log.head());
    let at = match limit {
        limit if limit == waiting.len() => until,
        usize::MAX => LogPosition::before(log.trimmed(&session.session_id).next()),
        limit => last_turns(&log, &session.session_id, until, limit - waiting.len(), &account).await?,
    };
    let caller = call.caller()?.clone();
    let (filter, app) = (Filter::session(session.session_id.clone()), port.core.clone());
    let writer =
        HistoryWriter { app, caller, account, filter, at, until, turns: Turns::default(), waiting, ended: false };
    let pieces = futures_util::stream::try_unfold(writer, async |mut writer| {
        Ok::<_, std::io::Error>(writer.piece().await?.map(|piece| (piece, writer)))
    });
    Ok(response(Body::from_stream(pieces)))
}

/// Returns the beginning of the last `limit` turns.
async fn last_turns(
    log: &Log,
    session: &SessionId,
    until: LogPosition,
    limit: usize,
    account: &Account,
) -> Result<LogPosition, Problem> {
    // The identity of the message after the current item.
    let mut later: Option<(Role, RunId, Option<String>, Option<String>)> = None;
    let (mut to, mut turns) = (until, 0);
    let mut charge = account.charge(2 * READ.bytes)?;
    loop {
        let page = log.page_before(session, to, READ, &mut charge).await?;
        for item in page.items.iter().rev() {
            match HistoryEntry::read(item) {
                HistoryEntry::Text { text, .. } if text.is_empty() => {}
                HistoryEntry::Text { role, id, parent, .. } => {
                    let run_id = &item.first().run_id;
                    let continues = later.as_ref().is_some_and(|(role_after, run_after, id_after, parent_after)| {
                        MessageKey::new(*role_after, run_after.as_str(), id_after.as_deref(), parent_after.as_deref())
                            .continues(&MessageKey::new(role, run_id.as_str(), id.as_deref(), parent.as_deref()))
                    });
                    if !continues {
                        if turns == limit {
                            return Ok(LogPosition::after(item.last().position));
                        }
                        turns += 1;
                    }
                    later = Some((role, run_id.clone(), id, parent));
                }
                HistoryEntry::Between => later = None,
                HistoryEntry::Omitted => {}
            }
        }
        if !page.more {
            return Ok(page.from);
        }
        to = page.from;
    }
}

/// The entry of the history for an item of the log.
enum HistoryEntry {
    /// Text of a turn; `id` is the agent's own identifier of the message, `parent` the parent tool call.
    Text { role: Role, id: Option<String>, parent: Option<String>, text: String },
    /// An entry that separates turns.
    Between,
    /// An entry that is left out.
    Omitted,
}

impl HistoryEntry {
    fn read(item: &PageItem) -> Self {
        let kind = item.first().kind;
        match EntryKind::from_kind(kind) {
            EntryKind::Message(Role::User | Role::Agent) => {
                let body = EntryBody::read(kind, serde_json::from_slice(&item.body()).unwrap_or_default());
                let EntryBody::Message { role, id, parent, content: Content::Text(text) } = body else {
                    return Self::Omitted;
                };
                Self::Text { role, id, parent, text }
            }
            EntryKind::Message(Role::Thought) | EntryKind::Tool | EntryKind::RunStarted | EntryKind::RunEnded => {
                Self::Between
            }
            // A plan is not in the history: the text before and after it is one turn.
            EntryKind::Plan
            | EntryKind::Latest(_)
            | EntryKind::RunStatus
            | EntryKind::RequestOpened
            | EntryKind::RequestUpdated
            | EntryKind::RequestResolved
            | EntryKind::Surface
            | EntryKind::Note(_) => Self::Omitted,
        }
    }
}

/// Returns the name of a role in this protocol.
const fn role_word(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent | Role::Thought => "model",
    }
}

/// Turns as a JSON array, piece by piece.
#[derive(Default)]
struct Turns {
    tracker: MessageTracker,
    /// `true` if a turn is open in the array.
    open: bool,
    is_started: bool,
}

impl Turns {
    fn take(&mut self, item: &PageItem, out: &mut String) {
        match HistoryEntry::read(item) {
            HistoryEntry::Text { role, id, parent, text } => {
                let event = item.first();
                let key = MessageKey::new(role, event.run_id.as_str(), id.as_deref(), parent.as_deref());
                if !matches!(self.tracker.chunk(&key, event.position), ChunkTarget::Current(_)) {
                    self.close(out);
                }
                if text.is_empty() {
                    return;
                }
                if !std::mem::replace(&mut self.open, true) {
                    let comma = self.comma();
                    out.push_str(&format!("{comma}{{\"role\":\"{}\",\"text\":\"", role_word(role)));
                }
                let text = Value::String(text).to_string();
                out.push_str(&text[1..text.len() - 1]);
            }
            HistoryEntry::Between => {
                self.tracker.interrupt();
                self.close(out);
            }
            HistoryEntry::Omitted => {}
        }
    }

    /// Appends a complete turn.
    fn push(&mut self, role: Role, text: &str, out: &mut String) {
        self.close(out);
        let comma = self.comma();
        out.push_str(&format!("{comma}{{\"role\":\"{}\",\"text\":{}}}", role_word(role), Value::from(text)));
    }

    fn comma(&mut self) -> &'static str {
        if std::mem::replace(&mut self.is_started, true) { "," } else { "[" }
    }

    fn close(&mut self, out: &mut String) {
        if std::mem::take(&mut self.open) {
            out.push_str("\"}");
        }
    }

    fn end(&mut self, out: &mut String) {
        self.close(out);
        out.push_str(if self.is_started { "]" } else { "[]" });
    }
}

/// The state of writing a history.
struct HistoryWriter {
    app: Core,
    caller: Caller,
    account: Account,
    filter: Filter,
    at: LogPosition,
    until: LogPosition,
    turns: Turns,
    /// Waiting prompts: the last messages.
    waiting: VecDeque<(RunId, Arc<Vec<Box<RawValue>>>)>,
    /// `true` if the log is written.
    ended: bool,
}

impl HistoryWriter {
    /// Returns the next piece; an error aborts the response, so that a client does not mistake a part for the whole.
    async fn piece(&mut self) -> Result<Option<Bytes>, std::io::Error> {
        if self.ended {
            return self.next_waiting().await;
        }
        let log = self.app.directory.log();
        let mut charged = 2 * READ.bytes;
        let (page, charge) = loop {
            let mut charge = wait_for_charge(&self.app, &self.caller, &self.account, charged).await?;
            let page = log.page_after(&self.filter, self.at, READ, &mut charge).await.map_err(std::io::Error::other)?;
            if fits_charge(&mut charge, charged, page.bytes) {
                break (page, charge);
            }
            charged = page.bytes;
        };
        let mut out = String::new();
        let items = page.items.iter().filter(|item| item.first().position < self.until.position);
        for item in items {
            // The prompt begins in a written item: it no longer waits.
            self.waiting.retain(|(run, _)| *run != item.first().run_id || item.first().kind.role() != Some(Role::User));
            self.turns.take(item, &mut out);
        }
        self.at = page.to;
        if !page.more || self.at >= self.until {
            self.turns.close(&mut out);
            self.ended = true;
            if self.waiting.is_empty() {
                self.turns.end(&mut out);
            }
        }
        drop(page);
        Ok(Some(text(out.into(), charge)))
    }

    /// Returns the next of the waiting prompts, and the end of the array after the last.
    async fn next_waiting(&mut self) -> Result<Option<Bytes>, std::io::Error> {
        let Some((_, prompt)) = self.waiting.pop_front() else { return Ok(None) };
        let bytes = prompt.iter().map(|block| block.get().len()).sum::<usize>();
        let charge = wait_for_charge(&self.app, &self.caller, &self.account, 2 * bytes).await?;
        let mut out = String::new();
        self.turns.push(Role::User, &typed(&prompt), &mut out);
        if self.waiting.is_empty() {
            self.turns.end(&mut out);
        }
        Ok(Some(text(out.into(), charge)))
    }
}

fn limit(query: Option<&str>) -> Result<usize, Problem> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    match pairs.find(|(name, _)| name == "limit") {
        None => Ok(usize::MAX),
        Some((_, text)) => text.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| {
            let message = "`limit` must be a whole number above 0: the number of latest messages";
            Problem::new(StatusCode::BAD_REQUEST, "bad_query", message)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_limit_is_a_number_of_messages() {
        for (query, expected) in [
            (None, Some(usize::MAX)),
            (Some(""), Some(usize::MAX)),
            (Some("limit=1"), Some(1)),
            (Some("x=y&limit=256"), Some(256)),
            (Some("limit="), None),
            (Some("limit=0"), None),
            (Some("limit=-1"), None),
            (Some("limit=x"), None),
            (Some("limit=1.5"), None),
            (Some("limit=99999999999999999999999"), None),
        ] {
            assert_eq!(limit(query).ok(), expected, "{query:?}");
        }
    }
}
