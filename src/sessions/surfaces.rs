//! The surfaces of one session: what its agent draws. The session's task changes them; anybody reads them.
//!
//! They are stored apart from the log, so that they outlive retention: each surface as a whole, then its changes, until those
//! weigh as much as the whole. A change is stored in the commit of its event. While that is under way the surfaces are locked,
//! so nobody reads what may still fail.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use utoipa::ToSchema;

use super::AskView;
use super::directory::blocking;
use super::{Log, SessionError};
use crate::auth::{Approve, Caller, Permit, Prompt, Target};
use crate::ledger::Charge;
use plexus_protocol::{RequestId, RunId, RuntimeId, SessionId, Timestamp};
use plexus_store::{SurfaceChange, SurfaceWrite};
use plexus_surfaces::{
    Action, ActionError, ActionRequest, Change, Html, Show, Surface, SurfaceError, SurfaceSet, Update,
};

/// Idempotency keys that a session remembers; those of the latest changes.
const KEYS: usize = 64;
/// Idempotency keys that are stored with one surface: more calls than an agent has under way.
const KEYS_STORED: usize = 16;
/// Bytes of changes after which a surface is stored as a whole again, if it is not larger itself.
const CHANGES_MAX: usize = 64 << 10;
/// Calls that wait for the next tick; a further one is refused.
pub(super) const WAITING_MAX: usize = 256;
/// Bytes of the calls that wait; a further one is refused.
pub(super) const WAITING_BYTES_MAX: usize = 4 << 20;

/// A call of an agent's tools, or of a script.
#[derive(Clone, Debug)]
pub enum SurfaceCall {
    /// Creates a surface, or puts another in its place.
    Show(Show),
    /// Creates a surface of one page.
    Html(Html),
    /// Changes a part of a surface.
    Update(Update),
    /// Pins a surface, or lets it go.
    Pin {
        /// The surface.
        surface: String,
        /// Whether it stays in view.
        pinned: bool,
    },
    /// Takes a surface down.
    Close {
        /// The surface.
        surface: String,
    },
}

/// What a call did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Drawn {
    /// The surface.
    pub surface: String,
    /// Its revision now.
    pub rev: u64,
}

/// What pressing something on a surface led to.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Acted {
    /// Always true; a refusal is an error.
    pub accepted: bool,
    /// The surface's revision now.
    pub rev: u64,
    /// The run that tells the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The request that was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
}

/// A question by a surface: of one that is shown, or of a new one.
#[derive(Clone, Debug)]
pub struct AskCall {
    /// The surface.
    pub surface: String,
    /// What it is to be, if it is new or replaced.
    pub show: Option<Show>,
    /// The buttons that answer.
    pub submit: Vec<String>,
    /// The question, for the headline of the request.
    pub question: Option<String>,
}

/// What a device may do on a surface.
#[derive(Clone, Debug)]
pub struct Presser {
    /// Press what tells the agent something.
    pub prompt: Option<Permit<Prompt>>,
    /// Answer its questions.
    pub approve: Option<Permit<Approve>>,
}

impl Presser {
    /// The rights of a caller in a session.
    ///
    /// # Errors
    /// [`SessionError::Denied`]: it has neither.
    pub fn of(caller: &Caller, session: &SessionId, runtime: &RuntimeId) -> Result<Self, SessionError> {
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
    pub(super) request: ActionRequest,
    pub(super) by: Presser,
    pub(super) reply: oneshot::Sender<Result<Acted, SessionError>>,
}

/// What an agent's tools ask of a session: to open a question, or what became of one.
pub(super) enum AskWork {
    Open { call: Box<AskCall>, key: Option<String>, reply: oneshot::Sender<Result<AskView, SessionError>> },
    Fetch { id: RequestId, reply: oneshot::Sender<Result<AskView, SessionError>> },
}

impl AskWork {
    pub(super) fn refuse(self, why: SessionError) {
        let (Self::Open { reply, .. } | Self::Fetch { reply, .. }) = self;
        let _ = reply.send(Err(why));
    }
}

/// A call that waits for its turn.
pub(super) struct WaitingCall {
    pub(super) call: SurfaceCall,
    pub(super) key: Option<String>,
    /// Bytes of the call.
    pub(super) bytes: usize,
    /// The ledger's charge for them.
    pub(super) charge: Option<Charge>,
    pub(super) reply: oneshot::Sender<Result<Drawn, SessionError>>,
}

/// What calls lead to: one event a surface, and its rows.
#[derive(Default)]
pub(super) struct Drawing {
    pub(super) bodies: Vec<Bytes>,
    pub(super) rows: Vec<SurfaceChange>,
    /// The outcome of each call.
    pub(super) outcomes: Vec<Result<Drawn, SessionError>>,
}

/// The surfaces of a session, shared by its task and its readers.
#[derive(Default)]
pub(super) struct SurfaceBoard {
    board: Arc<Mutex<Board>>,
}

/// See [`SurfaceBoard`].
#[derive(Default)]
pub(super) struct Board {
    /// `None` until they are read from the store.
    loaded: Option<Loaded>,
}

#[derive(Default)]
struct Loaded {
    set: SurfaceSet,
    stored: BTreeMap<String, StoredBytes>,
    keys: VecDeque<(String, Drawn)>,
    /// The revision at which something was last pressed, by surface, component and list item. Who presses at that revision or an
    /// older one is too late: the first press wins.
    pressed: BTreeMap<(String, String, Option<String>), u64>,
    charge: Option<Charge>,
}

/// What is stored of one surface, in bytes.
#[derive(Clone, Copy, Default)]
struct StoredBytes {
    whole: usize,
    changes: usize,
}

/// A row of the store.
#[derive(Serialize, Deserialize)]
struct Row<'a, C> {
    /// The keys of the calls that led to it, or to what it replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<(std::borrow::Cow<'a, str>, u64)>,
    change: C,
}

impl SurfaceBoard {
    /// Locks the surfaces, for the session's task. Reads them first if necessary.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub(super) async fn lock(&self, log: &Log, id: &SessionId) -> Result<OwnedMutexGuard<Board>, SessionError> {
        let mut board = Arc::clone(&self.board).lock_owned().await;
        if board.loaded.is_none() {
            board.loaded = Some(Loaded::read(log, id).await?);
        }
        Ok(board)
    }

    /// All surfaces in their wire form. `live`: whether the session has a task; only then they stay in memory.
    ///
    /// # Errors
    /// [`SessionError::Storage`].
    pub(super) async fn list(&self, log: &Log, id: &SessionId, live: bool) -> Result<Vec<Box<RawValue>>, SessionError> {
        if live {
            let board = self.lock(log, id).await?;
            return Ok(board.loaded.as_ref().map(|loaded| wire(&loaded.set)).unwrap_or_default());
        }
        let board = self.board.lock().await;
        match &board.loaded {
            Some(loaded) => Ok(wire(&loaded.set)),
            None => Ok(wire(&Loaded::read(log, id).await?.set)),
        }
    }

    /// Lets go of what is in memory: the session's task ended, or a commit failed.
    pub(super) async fn unload(&self) {
        self.board.lock().await.loaded = None;
    }
}

fn row<'k>(keys: impl Iterator<Item = (&'k str, u64)>, change: &impl Serialize) -> Vec<u8> {
    let keys = keys.map(|(key, rev)| (key.into(), rev)).collect();
    serde_json::to_vec(&Row { keys, change }).unwrap_or_default()
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
            let Ok(Row { keys, change }) = serde_json::from_slice::<Row<'_, Change>>(&row) else {
                tracing::error!(session_id = %id, "a surface that is stored cannot be read, and is left out");
                continue;
            };
            loaded.set.apply(&change);
            let stored = loaded.stored.entry(change.surface.clone()).or_default();
            match change.base {
                None => *stored = StoredBytes { whole: row.len(), changes: 0 },
                Some(_) => stored.changes += row.len(),
            }
            for (key, rev) in keys {
                loaded.remember(key.into_owned(), Drawn { surface: change.surface.clone(), rev });
            }
        }
        Ok(loaded)
    }

    fn remember(&mut self, key: String, drawn: Drawn) {
        self.keys.retain(|(known, _)| *known != key);
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

    /// Takes over what a call was charged with. The surfaces hold at most what the calls brought.
    fn charge(&mut self, more: Option<Charge>) {
        match (&mut self.charge, more) {
            (Some(charge), Some(more)) => charge.join(more),
            (None, more) => self.charge = more,
            (Some(_), None) => {}
        }
    }

    /// The row for a surface that has changed.
    fn row(&mut self, id: &SessionId, change: &Change, keys: &[(String, u64)]) -> SurfaceChange {
        let name = &change.surface;
        let stored = self.stored.entry(name.clone()).or_default();
        let part = row(keys.iter().map(|(key, rev)| (key.as_str(), *rev)), change);
        let full = stored.changes + part.len() > stored.whole.max(CHANGES_MAX);
        let write = match self.set.get(name).filter(|_| change.base.is_none() || full) {
            Some(surface) => {
                let of = self.keys.iter().rev().filter(|(_, drawn)| drawn.surface == *name).take(KEYS_STORED);
                let whole = row(of.map(|(key, drawn)| (key.as_str(), drawn.rev)), surface);
                *stored = StoredBytes { whole: whole.len(), changes: 0 };
                SurfaceWrite::Whole(whole)
            }
            // The row of a closed surface keeps its revision, for another of its name, and its keys.
            None if change.closed => {
                let mut last = change.clone();
                last.base = None;
                let last = row(keys.iter().map(|(key, rev)| (key.as_str(), *rev)), &last);
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

/// An action without what was typed into inputs that show nothing.
pub(super) fn without_secrets(action: &Action) -> Action {
    let mut action = action.clone();
    let secrets: Vec<Value> = action.secret.iter().filter_map(|path| action.inputs.get(path).cloned()).collect();
    for value in action.inputs.values_mut().chain(action.context.values_mut()) {
        if secrets.contains(value) {
            *value = Value::String("(not kept)".into());
        }
    }
    action
}

/// An action as the agent reads it.
fn as_prompt(action: &Action, title: Option<&str>) -> String {
    // A prompt is kept: what was typed blind is not in it.
    let action = &without_secrets(action);
    let title = title.map(|title| format!(" ({title})")).unwrap_or_default();
    let mut text = format!(
        "On your surface {}{title}, the person used component {}: event {}.",
        action.surface, action.component, action.name
    );
    for (what, value) in [
        ("item", action.item.as_ref().map(serde_json::to_string)),
        ("context", (!action.context.is_empty()).then(|| serde_json::to_string(&action.context))),
        ("inputs", (!action.inputs.is_empty()).then(|| serde_json::to_string(&action.inputs))),
    ] {
        if let Some(Ok(value)) = value {
            text.push_str(&format!("\n{what}: {value}"));
        }
    }
    text
}

/// A change with the keys of the calls that led to it, each with its revision.
type KeyedChange = (Change, Vec<(String, u64)>);

/// Adds a change to those of the tick: merged with one of the same surface, where that says the same.
fn add(changes: &mut Vec<KeyedChange>, change: Change, keys: Vec<(String, u64)>) {
    let Some(place) = changes.iter().rposition(|(earlier, _)| earlier.surface == change.surface) else {
        return changes.push((change, keys));
    };
    let (earlier, mut known) = changes.remove(place);
    match earlier.merge(change) {
        Ok(merged) => {
            known.extend(keys);
            changes.push((merged, known));
        }
        Err(apart) => {
            let (earlier, change) = *apart;
            changes.push((earlier, known));
            changes.push((change, keys));
        }
    }
}

/// A press that holds.
pub(super) struct Pressed {
    pub(super) action: Action,
    /// The prompt for the agent.
    pub(super) text: String,
    /// What it changed.
    pub(super) change: Change,
}

impl Board {
    /// The surfaces; none before they are loaded.
    pub(super) fn set(&mut self) -> Option<&mut SurfaceSet> {
        self.loaded.as_mut().map(|loaded| &mut loaded.set)
    }

    /// The events and rows for changes that were made one after the other.
    pub(super) fn drawing(&mut self, id: &SessionId, made: Vec<Change>) -> Drawing {
        let Some(loaded) = &mut self.loaded else { return Drawing::default() };
        let (mut drawing, mut changes) = (Drawing::default(), Vec::new());
        made.into_iter().for_each(|change| add(&mut changes, change, Vec::new()));
        for (change, keys) in changes {
            drawing.bodies.push(serde_json::to_vec(&change).unwrap_or_default().into());
            drawing.rows.push(loaded.row(id, &change, &keys));
        }
        drawing
    }

    /// Checks a press, and puts what was typed into the surface. If the result is not stored, the surfaces have to be
    /// [read again](SurfaceBoard::unload).
    ///
    /// # Errors
    /// [`SessionError::Action`].
    pub(super) fn act(&mut self, name: &str, request: &ActionRequest, now: Timestamp) -> Result<Pressed, SessionError> {
        let Some(loaded) = &mut self.loaded else { return Err(SessionError::Stopping) };
        let what = (name.to_owned(), request.component.clone(), request.instance.clone());
        if loaded.pressed.get(&what).is_some_and(|pressed| request.rev <= *pressed) {
            let now = loaded.set.get(name).map_or(request.rev, Surface::rev);
            return Err(SessionError::Action(ActionError::Stale { now }));
        }
        let mut action = loaded.set.act(name, request, now).map_err(SessionError::Action)?;
        let surface = loaded.set.get(name);
        let (title, pinned) =
            surface.map(|surface| (surface.title().map(str::to_owned), surface.pinned())).unwrap_or_default();
        let text = as_prompt(&action, title.as_deref());
        // Every press is a revision of its own, so that the next one is told from a repetition.
        let change = match action.change.take() {
            Some(change) => change,
            None => loaded.set.pin(name, pinned, now).map_err(SessionError::Surface)?,
        };
        loaded.pressed.insert(what, change.rev - 1);
        loaded.pressed.retain(|(surface, ..), _| loaded.set.get(surface).is_some());
        Ok(Pressed { action, text, change })
    }

    /// Runs calls, each all or nothing, and merges what they change. If the result is not stored, the surfaces have to be
    /// [read again](SurfaceBoard::unload).
    pub(super) fn draw(&mut self, id: &SessionId, calls: &mut [WaitingCall], now: Timestamp) -> Drawing {
        let Some(loaded) = &mut self.loaded else { return Drawing::default() };
        let (mut drawing, mut changes) = (Drawing::default(), Vec::<KeyedChange>::new());
        for waiting in calls {
            let known = waiting.key.as_ref().and_then(|key| loaded.keys.iter().find(|(known, _)| known == key));
            if let Some((_, drawn)) = known {
                drawing.outcomes.push(Ok(drawn.clone()));
                continue;
            }
            let outcome = loaded.run(waiting.call.clone(), now).map_err(SessionError::Surface);
            drawing.outcomes.push(outcome.map(|change| {
                loaded.charge(waiting.charge.take());
                let drawn = Drawn { surface: change.surface.clone(), rev: change.rev };
                let keys = waiting.key.clone().map(|key| (key, change.rev)).into_iter().collect::<Vec<_>>();
                if let Some((key, _)) = keys.first() {
                    loaded.remember(key.clone(), drawn.clone());
                }
                add(&mut changes, change, keys);
                drawn
            }));
        }
        for (change, keys) in changes {
            drawing.bodies.push(serde_json::to_vec(&change).unwrap_or_default().into());
            drawing.rows.push(loaded.row(id, &change, &keys));
        }
        drawing
    }
}
