//! What a runtime could resume: the conversations that it keeps itself, as it lists them.
//!
//! A runtime is asked one question at a time, however many want to know, and none while it owes an answer: who asks the same
//! meanwhile gets what comes of it, who asks another thing comes after. So one that never answers is asked once, and holds
//! one answer's worth of memory. Whoever waits for longer than [`SILENCE`] is told.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use super::session::{refused, ticket};
use super::{Directory, RuntimeLink, RuntimeMessage, RuntimeOrder, SessionError, SessionSender};
use crate::auth::{Permit, Watch};
use plexus_dialects::listing::{self, ConversationList, ListedConversation};
use plexus_dialects::{RuntimeCommand, RuntimeError, RuntimeEvent};
use plexus_protocol::{Capability, NativeId, RuntimeId, RuntimeState, SessionId, Timestamp};

/// Conversations of one page at most.
pub const RESUMABLE_MAX: usize = 1000;
/// How long a runtime may take for an answer; then whoever waits for it is told.
const SILENCE: Duration = Duration::from_secs(30);
/// How long an answer is waited for before another question is asked: one that is lost is not waited for for ever.
const LOST: Duration = Duration::from_secs(300);
/// Longest place of a runtime's own in its list, in bytes: it travels in an address.
const CURSOR_MAX: usize = 2048;
/// Conversations before the page that are skipped at most.
const SKIP_MAX: usize = listing::ANSWER_MAX;

/// A conversation that a runtime could resume. What the runtime does not say is null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Resumable)]
pub struct ResumableConversation {
    /// The runtime's own name for it: `native_id` of a session to open.
    pub native_id: NativeId,
    /// Its title, or how it began, where the runtime says so.
    #[schema(required)]
    pub title: Option<String>,
    /// The folder it works in, where the runtime says so.
    #[schema(required)]
    pub cwd: Option<String>,
    /// When it last changed, where the runtime says so.
    #[schema(required)]
    pub updated_at: Option<Timestamp>,
    /// The session that it is open as here already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// A page of the conversations that a runtime could resume, in its own order. One that changes meanwhile may come twice.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ResumablePage {
    /// The conversations.
    pub resumable: Vec<ResumableConversation>,
    /// Where the next page begins, to be given as `cursor`; absent if this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = r"^[0-9]{1,5}(\.[A-Za-z0-9_-]{2,2800})?$")]
    pub next: Option<String>,
}

/// A place in a runtime's list: how many to skip of the answer that begins at a place of the runtime's own. As text
/// `skip`, or `skip.` and that place in base64.
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

/// What is asked of a runtime: from where on, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListQuery {
    cursor: Option<String>,
    most: usize,
}

type Outcome = Result<Arc<ConversationList>, SessionError>;

/// A question that a runtime has not answered yet, and what comes of it.
#[derive(Clone)]
pub(super) struct PendingList {
    wanted: ListQuery,
    outcome: watch::Receiver<Option<Outcome>>,
}

/// The questions under way: one a runtime.
pub(super) type Listings = Mutex<HashMap<RuntimeId, PendingList>>;

impl Directory {
    /// A page of the conversations that a runtime could resume, `limit` at most, from `at` on. A runtime that is starting is
    /// waited for.
    ///
    /// # Errors
    /// [`SessionError::NoRuntime`], [`SessionError::RuntimeGone`], [`SessionError::ListingUnsupported`], [`SessionError::RuntimeSilent`],
    /// [`SessionError::RuntimeRefused`].
    pub async fn resumable(
        &self,
        _permit: &Permit<Watch>,
        id: &RuntimeId,
        at: &ListPosition,
        limit: usize,
    ) -> Result<ResumablePage, SessionError> {
        self.resumable_within(SILENCE, id, at, limit).await
    }

    /// As [`resumable`](Self::resumable), for who waits for so long.
    pub(super) async fn resumable_within(
        &self,
        patience: Duration,
        id: &RuntimeId,
        at: &ListPosition,
        limit: usize,
    ) -> Result<ResumablePage, SessionError> {
        let limit = limit.clamp(1, RESUMABLE_MAX);
        let link = self.shared.runtimes.get(id).map(|link| link.clone());
        let link = link.ok_or_else(|| SessionError::NoRuntime(id.clone()))?;
        let deadline = Instant::now() + patience;
        let silent = || SessionError::RuntimeSilent(patience.as_secs());
        timeout_at(deadline, ready(&link)).await.map_err(|_| silent())??;
        can_list(id, &link)?;
        // One more than the page holds, so that it shows whether there is a next one.
        let wanted = ListQuery { cursor: at.cursor.clone(), most: at.skip + limit + 1 };
        let listing = loop {
            let PendingList { wanted: asked, mut outcome } = self.ask(id, &link, &wanted);
            let came = timeout_at(deadline, outcome.wait_for(Option::is_some)).await.map_err(|_| silent())?;
            let came = came.map_err(|_| SessionError::Stopping)?.clone();
            if let Some(came) = came.filter(|_| asked == wanted) {
                break came?;
            }
        };
        let rest = listing.kept.get(at.skip..).unwrap_or_default();
        let page = rest.iter().take(limit);
        let next = if rest.len() > limit {
            Some(ListPosition { skip: at.skip + limit, cursor: at.cursor.clone() }).filter(|next| next.skip <= SKIP_MAX)
        } else {
            // One that goes on where it is goes in a circle.
            let on = listing.next.clone().filter(|next| Some(next) != at.cursor.as_ref());
            on.map(|next| ListPosition { skip: 0, cursor: Some(next) })
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

    /// The conversations of a runtime that are sessions here, by the runtime's names for them.
    fn open_here(&self, id: &RuntimeId) -> HashMap<String, SessionId> {
        let of = self.shared.sessions.iter().filter(|handle| handle.origin.runtime_id == *id);
        let named = of.filter_map(|handle| {
            let native = handle.view.load().info.native_id.as_ref()?.as_str().to_owned();
            Some((native, handle.origin.session_id.clone()))
        });
        named.collect()
    }

    /// The question that is under way, or this one, asked now.
    fn ask(&self, id: &RuntimeId, link: &RuntimeLink, wanted: &ListQuery) -> PendingList {
        let mut listings = self.shared.listings.lock();
        if let Some(asked) = listings.get(id).filter(|asked| asked.outcome.has_changed().is_ok()) {
            return asked.clone();
        }
        let (tell, outcome) = watch::channel(None);
        let asked = PendingList { wanted: wanted.clone(), outcome };
        listings.insert(id.clone(), asked.clone());
        let (this, id, link, wanted) = (self.clone(), id.clone(), link.clone(), wanted.clone());
        // Not cut short by clients that leave: what was asked is answered some time.
        tokio::spawn(async move {
            let outcome = tokio::time::timeout(LOST, answer(&link, &wanted)).await;
            let outcome = outcome.unwrap_or(Err(SessionError::RuntimeSilent(LOST.as_secs())));
            this.shared.listings.lock().remove(&id);
            tell.send_replace(Some(outcome));
        });
        asked
    }
}

/// Waits until a runtime is ready.
async fn ready(link: &RuntimeLink) -> Result<(), SessionError> {
    let mut info = link.watch();
    loop {
        let now = info.borrow_and_update().clone();
        let gone = || SessionError::RuntimeGone(now.problem.clone().unwrap_or_else(|| "it has exited".into()));
        match now.state {
            RuntimeState::Ready => return Ok(()),
            RuntimeState::Exited => return Err(gone()),
            RuntimeState::Starting | RuntimeState::Restarting => info.changed().await.map_err(|_| gone())?,
        }
    }
}

/// Whether a runtime lists conversations that can be opened again.
fn can_list(id: &RuntimeId, link: &RuntimeLink) -> Result<(), SessionError> {
    let info = link.info();
    let has = |one| info.capabilities.as_ref().is_some_and(|capabilities| capabilities.has(one));
    let lists = has(Capability::List) && listing::question(&info.dialect, None, 1).is_some();
    let why = if !lists {
        "this agent does not list them; open one whose id you know with `native_id`"
    } else if !has(Capability::Load) && !has(Capability::Resume) {
        "this agent lists its conversations but cannot reopen them: open a new session"
    } else {
        return Ok(());
    };
    Err(SessionError::ListingUnsupported { runtime: id.clone(), what: "conversations to resume", why })
}

/// Asks a runtime, and waits for as long as it may still answer.
async fn answer(link: &RuntimeLink, wanted: &ListQuery) -> Outcome {
    let info = link.info();
    let gone = || SessionError::RuntimeGone("it ended before it answered".into());
    let internal = |why: &str| refused(RuntimeError { code: -32603, message: why.into(), data: None });
    let question = listing::question(&info.dialect, wanted.cursor.as_deref(), wanted.most);
    let (method, params) = question.ok_or_else(|| internal("it does not support listing"))?;
    let params = to_raw_value(&params).map_err(|why| internal(&why.to_string()))?;
    let (inlet, mut said) = SessionSender::new();
    let command = RuntimeCommand::Call {
        ticket: ticket(),
        native: None,
        method: method.into(),
        params: Some(params),
        notify: false,
    };
    let order = RuntimeOrder { command, inlet, generation: info.generation, pressed: None };
    let mut stands = link.watch();
    let ended = async move {
        // Another start of it knows nothing of what the one before was asked.
        let still = |now: &Arc<plexus_protocol::RuntimeInfo>| {
            now.generation == info.generation && now.state == RuntimeState::Ready
        };
        while still(&stands.borrow_and_update().clone()) && stands.changed().await.is_ok() {}
    };
    let reply = async {
        link.room().await?.send(order);
        loop {
            let RuntimeMessage::Said(batch, _) = said.recv().await? else { return None };
            for one in batch {
                if let RuntimeEvent::Replied { reply, .. } = one {
                    return Some(reply);
                }
            }
        }
    };
    let reply = tokio::select! {
        reply = reply => reply.ok_or_else(gone)?,
        () = ended => return Err(gone()),
    };
    let listing = listing::read(&link.info().dialect, &reply.map_err(refused)?);
    let listing = listing.ok_or_else(|| internal("its list of conversations cannot be read"))?;
    if listing.next.as_ref().is_some_and(|next| next.len() > CURSOR_MAX) {
        return Err(internal("its list has a continuation cursor that is too long"));
    }
    Ok(Arc::new(listing))
}
