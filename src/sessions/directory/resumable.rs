//! The conversations that a runtime stores itself and could resume.
//!
//! Each runtime has at most one list query pending. Callers with the same query share its result; callers with another query wait for
//! their turn. Thus a runtime that never responds gets one query, and holds the memory of one response. A caller waits for [`SILENCE`] at
//! most.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use serde_json::value::to_raw_value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::registry::Registry;
use crate::system::ticket;
use crate::{RuntimeLink, RuntimeMessage, RuntimeOrder, SessionError, SessionSender};
use plexus_auth::{Permit, Watch};
use plexus_dialects::listing::{self, ConversationList, ListedConversation};
use plexus_dialects::{RuntimeCommand, RuntimeError, RuntimeEvent};
use plexus_protocol::api::sessions::{ResumableConversation, ResumablePage};
use plexus_protocol::{Capability, RuntimeId, RuntimeState, SessionId};

/// Maximum number of conversations on one page.
pub const RESUMABLE_MAX: usize = 1000;
/// Maximum time that a caller waits for a runtime's response.
const SILENCE: Duration = Duration::from_secs(30);
/// Maximum time that a query may stay pending before another one may be sent.
const LOST: Duration = Duration::from_secs(300);
/// Maximum length of a runtime's list cursor, in bytes: it is a part of URLs.
const CURSOR_MAX: usize = 2048;
/// Maximum number of conversations skipped before a page.
const SKIP_MAX: usize = listing::ANSWER_MAX;

/// A position in a runtime's list: the runtime's own cursor, and the number of conversations to skip after it. As text: `skip`, or
/// `skip.` and the cursor in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPosition {
    skip: usize,
    cursor: Option<String>,
}

impl std::str::FromStr for ListPosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (skip, cursor) = text.split_once('.').map_or((text, None), |(skip, cursor)| (skip, Some(cursor)));
        let skip = skip.parse().ok().filter(|skip| *skip <= SKIP_MAX).ok_or(())?;
        let decode = |text: &str| String::from_utf8(BASE64URL_NOPAD.decode(text.as_bytes()).ok()?).ok();
        let fits = |cursor: &String| !cursor.is_empty() && cursor.len() <= CURSOR_MAX;
        let cursor = cursor.map(|text| decode(text).filter(fits).ok_or(())).transpose()?;
        Ok(Self { skip, cursor })
    }
}

impl std::fmt::Display for ListPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.cursor {
            None => write!(f, "{}", self.skip),
            Some(cursor) => write!(f, "{}.{}", self.skip, BASE64URL_NOPAD.encode(cursor.as_bytes())),
        }
    }
}

/// A list query: the runtime's cursor, and the number of conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListQuery {
    cursor: Option<String>,
    max: usize,
}

type Outcome = Result<Arc<ConversationList>, SessionError>;

/// A list query that a runtime has not answered yet.
#[derive(Clone)]
struct PendingList {
    query: ListQuery,
    outcome: watch::Receiver<Option<Outcome>>,
}

/// The pending queries, at most one per runtime.
type Listings = Mutex<HashMap<RuntimeId, PendingList>>;

/// The conversations that runtimes store themselves.
pub struct DirectoryResumable {
    registry: Arc<Registry>,
    listings: Arc<Listings>,
}

impl DirectoryResumable {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self { registry, listings: Arc::default() }
    }

    /// Returns a page of at most `limit` conversations that a runtime could resume, from `at` on. Waits for a runtime that is starting.
    ///
    /// # Errors
    /// [`SessionError::NoRuntime`], [`SessionError::RuntimeUnavailable`], [`SessionError::ListingUnsupported`], [`SessionError::RuntimeSilent`],
    /// [`SessionError::RuntimeRefused`].
    pub async fn page(
        &self,
        _permit: &Permit<Watch>,
        id: &RuntimeId,
        at: &ListPosition,
        limit: usize,
    ) -> Result<ResumablePage, SessionError> {
        self.page_within(SILENCE, id, at, limit).await
    }

    /// Like [`page`](Self::page), with the maximum time to wait.
    pub(crate) async fn page_within(
        &self,
        timeout: Duration,
        id: &RuntimeId,
        at: &ListPosition,
        limit: usize,
    ) -> Result<ResumablePage, SessionError> {
        let limit = limit.clamp(1, RESUMABLE_MAX);
        let link = self.registry.runtimes.get(id).map(|link| link.clone());
        let link = link.ok_or_else(|| SessionError::NoRuntime(id.clone()))?;
        let deadline = Instant::now() + timeout;
        let silent_error = || SessionError::RuntimeSilent(timeout.as_secs());
        timeout_at(deadline, ready(&link)).await.map_err(|_| silent_error())??;
        can_list(id, &link)?;
        // One more than the page holds, to find out whether there is a next page.
        let query = ListQuery { cursor: at.cursor.clone(), max: at.skip + limit + 1 };
        let listing = loop {
            let PendingList { query: pending, mut outcome } = self.list_query(id, &link, &query);
            let result = timeout_at(deadline, outcome.wait_for(Option::is_some)).await.map_err(|_| silent_error())?;
            let result = result.map_err(|_| SessionError::Stopping)?.clone();
            if let Some(result) = result.filter(|_| pending == query) {
                break result?;
            }
        };
        let rest = listing.conversations.get(at.skip..).unwrap_or_default();
        let page = rest.iter().take(limit);
        let next = if rest.len() > limit {
            Some(ListPosition { skip: at.skip + limit, cursor: at.cursor.clone() }).filter(|next| next.skip <= SKIP_MAX)
        } else {
            // The same cursor again would be an endless loop.
            let next = listing.next.clone().filter(|next| Some(next) != at.cursor.as_ref());
            next.map(|next| ListPosition { skip: 0, cursor: Some(next) })
        };
        let open = self.open_here(id);
        let one = |kept: &ListedConversation| ResumableConversation {
            native_id: kept.native.as_str().into(),
            title: kept.title.clone(),
            cwd: kept.cwd.clone(),
            updated_at: kept.updated_at,
            session_id: open.get(kept.native.as_str()).cloned(),
        };
        Ok(ResumablePage { resumable: page.map(one).collect(), next: next.map(|next| next.to_string()) })
    }

    /// Returns the sessions of a runtime by native id.
    fn open_here(&self, id: &RuntimeId) -> HashMap<String, SessionId> {
        let handles = self.registry.sessions.iter().filter(|handle| handle.origin.runtime_id == *id);
        let by_native = handles.filter_map(|handle| {
            let native = handle.view.load().info.native_id.as_ref()?.as_str().to_owned();
            Some((native, handle.origin.session_id.clone()))
        });
        by_native.collect()
    }

    /// Returns the pending query of the runtime, or else sends this one and returns it.
    fn list_query(&self, id: &RuntimeId, link: &RuntimeLink, query: &ListQuery) -> PendingList {
        let mut listings = self.listings.lock();
        if let Some(pending) = listings.get(id).filter(|pending| pending.outcome.has_changed().is_ok()) {
            return pending.clone();
        }
        let (tx, outcome) = watch::channel(None);
        let pending = PendingList { query: query.clone(), outcome };
        listings.insert(id.clone(), pending.clone());
        let (listings, id, link, query) = (Arc::clone(&self.listings), id.clone(), link.clone(), query.clone());
        // Spawned, so that it continues when callers stop waiting: the runtime responds eventually.
        tokio::spawn(async move {
            let outcome = tokio::time::timeout(LOST, send_query(&link, &query)).await;
            let outcome = outcome.unwrap_or(Err(SessionError::RuntimeSilent(LOST.as_secs())));
            listings.lock().remove(&id);
            tx.send_replace(Some(outcome));
        });
        pending
    }
}

/// Waits until the runtime is ready.
async fn ready(link: &RuntimeLink) -> Result<(), SessionError> {
    let mut info = link.watch();
    loop {
        let now = info.borrow_and_update().clone();
        let ended_error =
            || SessionError::RuntimeUnavailable(now.problem.clone().unwrap_or_else(|| "it has exited".into()));
        match now.state {
            RuntimeState::Ready => return Ok(()),
            RuntimeState::Exited => return Err(ended_error()),
            RuntimeState::Starting | RuntimeState::Restarting | RuntimeState::Unknown => {
                info.changed().await.map_err(|_| ended_error())?
            }
        }
    }
}

/// Checks that the runtime lists conversations and can open them again.
fn can_list(id: &RuntimeId, link: &RuntimeLink) -> Result<(), SessionError> {
    let info = link.info();
    let has = |one| info.capabilities.as_ref().is_some_and(|capabilities| capabilities.has(one));
    let lists = has(Capability::List) && listing::question(&info.dialect, None, 1).is_some();
    let reason = if !lists {
        "this agent does not list them; open one whose id you know with `native_id`"
    } else if !has(Capability::Load) && !has(Capability::Resume) {
        "this agent lists its conversations but cannot reopen them: open a new session"
    } else {
        return Ok(());
    };
    Err(SessionError::ListingUnsupported { runtime: id.clone(), list: "conversations to resume", reason })
}

/// Sends a query to the runtime, and waits until it responds or ends.
async fn send_query(link: &RuntimeLink, query: &ListQuery) -> Outcome {
    let info = link.info();
    let ended_error = || SessionError::RuntimeUnavailable("it ended before it answered".into());
    let internal =
        |reason: &str| SessionError::from_runtime(RuntimeError { code: -32603, message: reason.into(), data: None });
    let question = listing::question(&info.dialect, query.cursor.as_deref(), query.max);
    let (method, params) = question.ok_or_else(|| internal("it does not support listing"))?;
    let params = to_raw_value(&params).map_err(|reason| internal(&reason.to_string()))?;
    let (sender, mut messages) = SessionSender::new();
    let command = RuntimeCommand::Call {
        ticket: ticket(),
        native: None,
        method: method.into(),
        params: Some(params),
        notify: false,
    };
    let order = RuntimeOrder { command, sender, generation: info.generation, answered_at: None };
    let mut state = link.watch();
    let ended = async move {
        // A new start of the runtime does not know the query.
        let alive = |now: &Arc<plexus_protocol::RuntimeInfo>| {
            now.generation == info.generation && now.state == RuntimeState::Ready
        };
        while alive(&state.borrow_and_update().clone()) && state.changed().await.is_ok() {}
    };
    let reply = async {
        link.reserve().await?.send(order);
        loop {
            let RuntimeMessage::Events(batch, _) = messages.recv().await? else { return None };
            for event in batch {
                if let RuntimeEvent::Replied { reply, .. } = event {
                    return Some(reply);
                }
            }
        }
    };
    let reply = tokio::select! {
        reply = reply => reply.ok_or_else(ended_error)?,
        () = ended => return Err(ended_error()),
    };
    let listing = listing::read(&link.info().dialect, &reply.map_err(SessionError::from_runtime)?);
    let listing = listing.ok_or_else(|| internal("its list of conversations cannot be read"))?;
    if listing.next.as_ref().is_some_and(|next| next.len() > CURSOR_MAX) {
        return Err(internal("its list has a continuation cursor that is too long"));
    }
    Ok(Arc::new(listing))
}
