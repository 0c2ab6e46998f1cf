//! The surfaces of one session, which its agent draws. The session's task changes them; any code may read them.
//!
//! Surfaces are stored apart from the log, so that they outlive retention: each surface as a whole, then its changes, until these are as
//! large as the whole. A change is stored in the commit of its event. Meanwhile the surfaces are locked, so that no reader sees a change
//! whose commit may fail.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

use super::system::blocking;
use super::{Log, SessionError};
use plexus_auth::{Approve, Caller, Permit, Prompt, Target};
use plexus_ledger::Charge;
use plexus_protocol::api::surfaces::{Acted, AskView, Drawn, PinnedSurface, SurfaceAction};
use plexus_protocol::{RequestId, RuntimeId, SessionId, Timestamp};
use plexus_store::{SurfaceChange, SurfaceWrite};
use plexus_surfaces::{Action, ActionError, Change, Html, Show, Surface, SurfaceError, SurfaceSet, Update};

/// Maximum number of idempotency keys that a session remembers: those of the latest changes.
const KEYS: usize = 64;
/// Maximum number of idempotency keys that are stored with one surface: more than an agent has concurrent calls.
const KEYS_STORED: usize = 16;
/// Size of the changes after which a surface is stored as a whole again, in bytes, if it is not larger itself.
const CHANGES_MAX: usize = 64 << 10;
/// Maximum number of remembered presses of one surface, each by component and list item. Beyond it they are merged into one revision:
/// every press on the surface at that revision or before is too late.
const PRESSES_MAX: usize = 1024;
/// Maximum number of calls that wait for the next tick; a further one is refused.
pub(super) const WAITING_MAX: usize = 256;
/// Maximum size of the waiting calls, in bytes; a further one is refused.
pub(super) const WAITING_BYTES_MAX: usize = 4 << 20;

/// A call of an agent's tools, or of a script.
#[derive(Clone, Debug)]
pub enum SurfaceCall {
    /// Creates a surface, or replaces it.
    Show(Show),
    /// Creates a surface of one page.
    Html(Html),
    /// Changes a part of a surface.
    Update(Update),
    /// Pins a surface, or unpins it.
    Pin {
        /// The surface.
        surface: String,
        /// `true` if the surface is pinned.
        pinned: bool,
    },
    /// Removes a surface.
    Close {
        /// The surface.
        surface: String,
    },
}

impl SurfaceCall {
    /// Returns whether the call only frees memory.
    pub(super) fn only_frees(&self) -> bool {
        matches!(self, Self::Close { .. })
    }
}

/// A question by a surface: by a displayed one, or by a new one.
#[derive(Clone, Debug)]
pub struct AskCall {
    /// The surface.
    pub surface: String,
    /// The kind of surface, if it is new or replaced.
    pub show: Option<Show>,
    /// The buttons that answer.
    pub submit: Vec<String>,
    /// The question, for the headline of the request.
    pub question: Option<String>,
}

/// The permissions of a device on a surface.
#[derive(Clone, Debug)]
pub struct SurfacePermits {
    /// The permission to press items that send the agent something.
    pub prompt: Option<Permit<Prompt>>,
    /// The permission to answer its questions.
    pub approve: Option<Permit<Approve>>,
}

impl SurfacePermits {
    /// Returns the rights of a caller in a session.
    ///
    /// # Errors
    /// [`SessionError::Denied`]: the caller has neither.
    pub fn new(caller: &Caller, session: &SessionId, runtime: &RuntimeId) -> Result<Self, SessionError> {
        let target = Target::Session(session, runtime);
        let (prompt, approve) = (caller.permit::<Prompt>(target), caller.permit::<Approve>(target).ok());
        match prompt {
            Err(denied) if approve.is_none() => Err(denied.into()),
            prompt => Ok(Self { prompt: prompt.ok(), approve }),
        }
    }
}

/// A press of something on a surface.
pub(super) struct Press {
    pub(super) surface: String,
    pub(super) request: SurfaceAction,
    pub(super) by: SurfacePermits,
    pub(super) reply: oneshot::Sender<Result<Acted, SessionError>>,
}

/// The channel for the outcome of a question.
pub(super) type AskReply = oneshot::Sender<Result<AskView, SessionError>>;

/// A request of an agent's tools to a session: to open a question, or for its outcome.
pub(super) enum AskWork {
    Open {
        call: Box<AskCall>,
        key: Option<String>,
        /// The ledger's charge for the call.
        charge: Option<Charge>,
        reply: AskReply,
    },
    /// A request for the outcome. `waits`: the reply is sent only when the question has ended.
    Fetch { id: RequestId, waits: bool, reply: AskReply },
}

impl AskWork {
    pub(super) fn refuse(self, reason: SessionError) {
        let (Self::Open { reply, .. } | Self::Fetch { reply, .. }) = self;
        let _ = reply.send(Err(reason));
    }
}

/// A call that waits for its turn.
pub(super) struct WaitingCall {
    pub(super) call: SurfaceCall,
    pub(super) key: Option<String>,
    /// Size of the call, in bytes.
    pub(super) bytes: usize,
    /// The ledger's charge for the bytes.
    pub(super) charge: Option<Charge>,
    pub(super) reply: oneshot::Sender<Result<Drawn, SessionError>>,
}

/// The result of changes: one event for each surface, and its rows.
#[derive(Default)]
pub(super) struct Drawing {
    pub(super) bodies: Vec<Bytes>,
    pub(super) rows: Vec<SurfaceChange>,
}

/// The channel for the outcome of a call, with the outcome.
pub(super) type DrawnReply = (oneshot::Sender<Result<Drawn, SessionError>>, Result<Drawn, SessionError>);

/// The surfaces of a session, shared by its task and its readers.
#[derive(Default)]
pub(super) struct SurfaceBoard {
    board: Arc<Mutex<Board>>,
}

/// The surfaces in a [`SurfaceBoard`].
#[derive(Default)]
pub(super) struct Board {
    /// `None` until they are read from the store.
    loaded: Option<Loaded>,
    /// The pinned ones, once they are known.
    pinned: Option<Arc<[PinnedSurface]>>,
}

#[derive(Default)]
struct Loaded {
    set: SurfaceSet,
    stored: BTreeMap<String, StoredBytes>,
    keys: VecDeque<(String, Drawn)>,
    presses: BTreeMap<String, Presses>,
    /// The charge for the memory of the surfaces.
    charge: Option<Charge>,
}

/// The presses on a surface. A device that presses the same item at that revision or an older one is too late: the first press wins.
#[derive(Default)]
struct Presses {
    /// The revision at which each component of a list item was last pressed.
    latest: BTreeMap<(String, Option<String>), u64>,
    /// The revision up to which every item counts as pressed.
    up_to: Option<u64>,
}

impl Presses {
    fn is_late(&self, item: &(String, Option<String>), rev: u64) -> bool {
        self.latest.get(item).copied().max(self.up_to).is_some_and(|pressed| rev <= pressed)
    }

    fn note(&mut self, item: (String, Option<String>), rev: u64) {
        self.latest.insert(item, rev);
        if self.latest.len() > PRESSES_MAX {
            self.up_to = self.latest.values().copied().max().max(self.up_to);
            self.latest.clear();
        }
    }
}

/// A press, in the form that is stored with the change that it made.
#[derive(Serialize, Deserialize)]
struct PressRow {
    component: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    rev: u64,
}

/// The stored data of one surface, in bytes.
#[derive(Clone, Copy, Default)]
struct StoredBytes {
    whole: usize,
    changes: usize,
}

/// A row of the store.
#[derive(Serialize, Deserialize)]
struct Row<'a, C> {
    /// The keys of the calls that led to the row, or to what it replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<(std::borrow::Cow<'a, str>, u64)>,
    /// The press that led to the row. A surface that is stored as a whole needs none: a press at an older revision is refused anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    press: Option<PressRow>,
    change: C,
}

impl SurfaceBoard {
    /// Locks the surfaces, for the session's task. Reads them first if necessary; `charge` then charges their bytes.
    ///
    /// # Errors
    /// [`SessionError::Storage`]; those of `charge`.
    pub(super) async fn lock(
        &self,
        log: &Log,
        id: &SessionId,
        charge: impl FnOnce(usize) -> Result<Option<Charge>, SessionError>,
    ) -> Result<OwnedMutexGuard<Board>, SessionError> {
        let mut board = Arc::clone(&self.board).lock_owned().await;
        if board.loaded.is_none() {
            let mut loaded = Loaded::read(log, id).await?;
            loaded.charge = charge(loaded.set.memory())?;
            board.loaded = Some(loaded);
        }
        Ok(board)
    }

    /// Returns all surfaces in their wire form. Surfaces that only readers use are not held in memory.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub(super) async fn list(&self, log: &Log, id: &SessionId) -> Result<Vec<Box<RawValue>>, SessionError> {
        let board = self.board.lock().await;
        match &board.loaded {
            Some(loaded) => Ok(wire(&loaded.set)),
            None => Ok(wire(&Loaded::read(log, id).await?.set)),
        }
    }

    /// Returns the pinned surfaces. They are read once, without the other surfaces.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub(super) async fn pinned(&self, log: &Log, id: &SessionId) -> Result<Arc<[PinnedSurface]>, SessionError> {
        let mut board = self.board.lock().await;
        if let Some(pinned) = &board.pinned {
            return Ok(Arc::clone(pinned));
        }
        let pinned = match &board.loaded {
            Some(loaded) => loaded.pinned(id),
            None => Loaded::read(log, id).await?.pinned(id),
        };
        board.pinned = Some(Arc::clone(&pinned));
        Ok(pinned)
    }

    /// Drops the surfaces from memory, because they were unused for a while, or the session's task ended.
    pub(super) async fn unload(&self) {
        self.board.lock().await.loaded = None;
    }

    /// Drops the surfaces from memory, because they may be ahead of the stored ones: a commit failed.
    pub(super) async fn forget(&self) {
        *self.board.lock().await = Board::default();
    }
}

fn row<'k>(keys: impl Iterator<Item = (&'k str, u64)>, press: Option<PressRow>, change: &impl Serialize) -> Vec<u8> {
    let keys = keys.map(|(key, rev)| (key.into(), rev)).collect();
    serde_json::to_vec(&Row { keys, press, change }).unwrap_or_default()
}

fn wire(set: &SurfaceSet) -> Vec<Box<RawValue>> {
    set.iter().filter_map(|surface| serde_json::value::to_raw_value(surface).ok()).collect()
}

impl Loaded {
    async fn read(log: &Log, id: &SessionId) -> Result<Self, SessionError> {
        let (log, session) = (log.clone(), id.clone());
        let rows = blocking(move || log.store().surfaces(&session)).await?;
        let mut loaded = Self::default();
        for row in rows {
            let Ok(Row { keys, press, change }) = serde_json::from_slice::<Row<'_, Change>>(&row) else {
                tracing::error!(session_id = %id, "a surface that is stored cannot be read, and is left out");
                continue;
            };
            loaded.set.apply(&change);
            let stored = loaded.stored.entry(change.surface.clone()).or_default();
            match change.base {
                None => *stored = StoredBytes { whole: row.len(), changes: 0 },
                Some(_) => stored.changes += row.len(),
            }
            if let Some(PressRow { component, instance, rev }) = press {
                loaded.presses.entry(change.surface.clone()).or_default().note((component, instance), rev);
            }
            for (key, rev) in keys {
                loaded.remember(key.into_owned(), Drawn { surface: change.surface.clone(), rev });
            }
        }
        Ok(loaded)
    }

    fn pinned(&self, id: &SessionId) -> Arc<[PinnedSurface]> {
        let head = |surface: &Surface| PinnedSurface {
            session_id: id.clone(),
            surface: surface.name().to_owned(),
            rev: surface.rev(),
            title: surface.title().map(ToOwned::to_owned),
            at: surface.at(),
            request_id: surface.ask().map(|ask| ask.request_id.clone()),
        };
        self.set.iter().filter(|surface| surface.pinned()).map(head).collect()
    }

    fn remember(&mut self, key: String, drawn: Drawn) {
        self.keys.retain(|(other, _)| *other != key);
        self.keys.push_back((key, drawn));
        if self.keys.len() > KEYS {
            self.keys.pop_front();
        }
    }

    fn run(&mut self, call: SurfaceCall, now: Timestamp) -> Result<Change, SurfaceError> {
        match call {
            SurfaceCall::Show(show) => self.set.show(show, now),
            SurfaceCall::Html(html) => self.set.html(html, now),
            SurfaceCall::Update(update) => self.set.update(update, now),
            SurfaceCall::Pin { surface, pinned } => self.set.pin(&surface, pinned, now),
            SurfaceCall::Close { surface } => self.set.close(&surface, now),
        }
    }

    /// Adds the charge of a call, until [`recharge`](Self::recharge).
    fn charge(&mut self, more: Option<Charge>) {
        match (&mut self.charge, more) {
            (Some(charge), Some(more)) => charge.join(more),
            (None, more) => self.charge = more,
            (Some(_), None) => {}
        }
    }

    /// Charges the current size of the surfaces. Values take more memory than the JSON that they were parsed from; when the ledger is
    /// full, the charge stays as it is, and the next call is refused.
    fn recharge(&mut self) {
        let bytes = self.set.memory();
        if let Some(charge) = &mut self.charge {
            let _ = charge.resize(bytes);
        }
    }

    /// Returns the row for a surface that has changed.
    fn row(&mut self, id: &SessionId, made: &MadeChange) -> SurfaceChange {
        let MadeChange { change, keys, press } = made;
        let name = &change.surface;
        let stored = self.stored.entry(name.clone()).or_default();
        let keys_now = || keys.iter().map(|(key, rev)| (key.as_str(), *rev));
        let press = press.as_ref().map(|(component, instance)| PressRow {
            component: component.clone(),
            instance: instance.clone(),
            rev: change.base.unwrap_or_default(),
        });
        let part = row(keys_now(), press, change);
        let full = stored.changes + part.len() > stored.whole.max(CHANGES_MAX);
        let write = match self.set.get(name).filter(|_| change.base.is_none() || full) {
            Some(surface) => {
                let keys = self.keys.iter().rev().filter(|(_, drawn)| drawn.surface == *name).take(KEYS_STORED);
                let whole = row(keys.map(|(key, drawn)| (key.as_str(), drawn.rev)), None, surface);
                *stored = StoredBytes { whole: whole.len(), changes: 0 };
                SurfaceWrite::Whole(whole)
            }
            // The row of a closed surface retains its revision, for another surface of the same name, and its keys.
            None if change.closed => {
                let mut last = change.clone();
                last.base = None;
                let last = row(keys_now(), None, &last);
                *stored = StoredBytes { whole: last.len(), changes: 0 };
                SurfaceWrite::Whole(last)
            }
            None => {
                stored.changes += part.len();
                SurfaceWrite::Change(part)
            }
        };
        SurfaceChange { session_id: id.clone(), surface: name.clone(), rev: change.rev, write }
    }
}

/// Formats an action for the agent.
fn as_prompt(action: &Action, title: Option<&str>) -> String {
    // A prompt is stored: hidden input is left out of it.
    let action = &action.without_secrets();
    let title = title.map(|title| format!(" ({title})")).unwrap_or_default();
    let mut text = format!(
        "On your surface {}{title}, the user used component {}: event {}.",
        action.surface, action.component, action.name
    );
    for (name, value) in [
        ("item", action.item.as_ref().map(serde_json::to_string)),
        ("context", (!action.context.is_empty()).then(|| serde_json::to_string(&action.context))),
        ("inputs", (!action.inputs.is_empty()).then(|| serde_json::to_string(&action.inputs))),
    ] {
        if let Some(Ok(value)) = value {
            text.push_str(&format!("\n{name}: {value}"));
        }
    }
    text
}

/// A change, with the calls or the press that led to it.
pub(super) struct MadeChange {
    change: Change,
    /// The keys of the calls, each with its revision.
    keys: Vec<(String, u64)>,
    /// The component that was pressed at the change's base, and its list item.
    press: Option<(String, Option<String>)>,
}

impl From<Change> for MadeChange {
    fn from(change: Change) -> Self {
        Self { change, keys: Vec::new(), press: None }
    }
}

/// Adds a change to those of one commit: merged with a change of the same surface, if that is equivalent.
fn add(changes: &mut Vec<MadeChange>, made: MadeChange) {
    let same = |earlier: &MadeChange| earlier.change.surface == made.change.surface;
    let Some(index) = changes.iter().rposition(same) else { return changes.push(made) };
    let MadeChange { change: earlier, keys: mut earlier_keys, press } = changes.remove(index);
    let MadeChange { change, keys, press: later } = made;
    match earlier.merge(change) {
        Ok(change) => {
            earlier_keys.extend(keys);
            changes.push(MadeChange { change, keys: earlier_keys, press: press.or(later) });
        }
        Err(apart) => {
            let (earlier, change) = *apart;
            changes.push(MadeChange { change: earlier, keys: earlier_keys, press });
            changes.push(MadeChange { change, keys, press: later });
        }
    }
}

/// The result of an accepted press.
pub(super) struct Pressed {
    pub(super) action: Action,
    /// The prompt for the agent.
    pub(super) text: String,
    /// The change.
    pub(super) made: MadeChange,
    /// The surface's revision after the press.
    pub(super) rev: u64,
}

impl Board {
    /// Returns the surfaces; `None` before they are loaded.
    pub(super) fn set(&mut self) -> Option<&mut SurfaceSet> {
        self.loaded.as_mut().map(|loaded| &mut loaded.set)
    }

    /// Returns the events and rows for changes that were made one after the other.
    pub(super) fn drawing(&mut self, id: &SessionId, made: Vec<MadeChange>) -> Drawing {
        let Some(loaded) = &mut self.loaded else { return Drawing::default() };
        let (mut drawing, mut changes) = (Drawing::default(), Vec::new());
        made.into_iter().for_each(|made| add(&mut changes, made));
        for made in changes {
            drawing.bodies.push(serde_json::to_vec(&made.change).unwrap_or_default().into());
            drawing.rows.push(loaded.row(id, &made));
        }
        loaded.presses.retain(|surface, _| loaded.set.get(surface).is_some());
        loaded.recharge();
        self.pinned = Some(loaded.pinned(id));
        drawing
    }

    /// Adds the charge of a call; [`drawing`](Self::drawing) corrects it to the size of the surfaces.
    pub(super) fn charge(&mut self, more: Option<Charge>) {
        if let Some(loaded) = &mut self.loaded {
            loaded.charge(more);
        }
    }

    /// Checks a press, and stores its input in the surface. If the result is not stored, the surfaces have to be
    /// [forgotten](SurfaceBoard::forget).
    ///
    /// # Errors
    /// [`SessionError::Action`].
    pub(super) fn act(&mut self, name: &str, request: &SurfaceAction, now: Timestamp) -> Result<Pressed, SessionError> {
        let Some(loaded) = &mut self.loaded else { return Err(SessionError::Stopping) };
        let item = (request.component.clone(), request.instance.clone());
        if loaded.presses.get(name).is_some_and(|presses| presses.is_late(&item, request.rev)) {
            let now = loaded.set.get(name).map_or(request.rev, Surface::rev);
            return Err(SessionError::Action(ActionError::Stale { now }));
        }
        let mut action = loaded.set.act(name, request, now).map_err(SessionError::Action)?;
        let title = loaded.set.get(name).and_then(Surface::title);
        let text = as_prompt(&action, title);
        // Every press is a revision of its own, so that the next press differs from a repetition.
        let change = match action.change.take() {
            Some(change) => change,
            None => loaded.set.touch(name, now).map_err(SessionError::Surface)?,
        };
        let rev = change.rev;
        loaded.presses.entry(name.to_owned()).or_default().note(item.clone(), rev - 1);
        Ok(Pressed { action, text, made: MadeChange { change, keys: Vec::new(), press: Some(item) }, rev })
    }

    /// Runs calls, each completely or not at all, and merges their changes. If the result is not stored, the surfaces have to be
    /// [forgotten](SurfaceBoard::forget).
    pub(super) fn draw(
        &mut self,
        id: &SessionId,
        calls: Vec<WaitingCall>,
        now: Timestamp,
    ) -> (Drawing, Vec<DrawnReply>) {
        let (mut made, mut replies) = (Vec::new(), Vec::with_capacity(calls.len()));
        let Some(loaded) = &mut self.loaded else {
            replies.extend(calls.into_iter().map(|waiting| (waiting.reply, Err(SessionError::Stopping))));
            return (Drawing::default(), replies);
        };
        for WaitingCall { call, key, charge, reply, .. } in calls {
            let drawn_before = key.as_ref().and_then(|key| loaded.keys.iter().find(|(other, _)| other == key));
            if let Some((_, drawn)) = drawn_before {
                replies.push((reply, Ok(drawn.clone())));
                continue;
            }
            let outcome = loaded.run(call, now).map_err(SessionError::Surface).map(|change| {
                loaded.charge(charge);
                let drawn = Drawn { surface: change.surface.clone(), rev: change.rev };
                let keys: Vec<_> = key.map(|key| (key, change.rev)).into_iter().collect();
                if let Some((key, _)) = keys.first() {
                    loaded.remember(key.clone(), drawn.clone());
                }
                made.push(MadeChange { change, keys, press: None });
                drawn
            });
            replies.push((reply, outcome));
        }
        (self.drawing(id, made), replies)
    }
}
