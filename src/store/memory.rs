//! The store in memory: for tests, and for a gateway that shall leave nothing behind. It ends with its process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::block::{Budget, group};
use super::words::{self, MARK_END, MARK_START};
use super::{
    Batch, DeviceChange, Hit, Mark, ReadLimit, RequestRow, SessionEntry, SessionRow, Store, StoreError, TextRow, Trim,
    Usage,
};
use crate::model::{Epoch, Event, Position, RequestId, RequestState, SessionId, Timestamp};

/// A store in memory. It keeps the same promises as the one on disk but survival, and search folds case by letter only
/// (no diacritics).
pub struct MemoryStore {
    epoch: Epoch,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    head: Position,
    sessions: Vec<Session>,
    places: HashMap<SessionId, usize>,
    requests: Vec<RequestRow>,
    texts: Vec<TextRow>,
    devices: Vec<(String, Vec<u8>)>,
    pushes: BTreeMap<String, Vec<u8>>,
}

struct Session {
    row: SessionRow,
    /// By the position of the first event.
    blocks: BTreeMap<Position, Block>,
    trimmed: Position,
    base: Option<Vec<u8>>,
    mark: Option<Mark>,
}

struct Block {
    events: Vec<Arc<Event>>,
    last: Position,
    at: Timestamp,
    bytes: usize,
}

impl MemoryStore {
    /// An empty store with a random epoch.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the system has no random bytes.
    pub fn new() -> Result<Self, StoreError> {
        let epoch = Epoch::new(&words::random_epoch()?).map_err(|e| StoreError::Io(e.to_string()))?;
        Ok(Self { epoch, kept: Mutex::default() })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn session(&self, session: &SessionId) -> Option<&Session> {
        self.sessions.get(*self.places.get(session)?)
    }

    fn session_mut(&mut self, session: &SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(*self.places.get(session)?)
    }
}

impl Store for MemoryStore {
    fn epoch(&self) -> Epoch {
        self.epoch.clone()
    }

    fn head(&self) -> Position {
        self.kept().head
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut kept = self.kept();
        let groups = group(&batch.events, kept.head)?;
        // All that can be refused is refused before anything changes.
        let has_row =
            |id: &SessionId| kept.places.contains_key(id) || batch.sessions.iter().any(|row| row.session_id == *id);
        let named = groups.iter().map(|g| g.session_id).chain(batch.texts.iter().map(|t| &t.session_id));
        let named = named.chain(batch.marks.iter().map(|(session, _)| session));
        if let Some(id) = named.into_iter().find(|id| !has_row(id)) {
            return Err(StoreError::Io(format!("{id} has no row")));
        }
        for row in &batch.sessions {
            if let Some(session) = kept.session_mut(&row.session_id) {
                session.row = row.clone();
                continue;
            }
            let place = kept.sessions.len();
            kept.places.insert(row.session_id.clone(), place);
            kept.sessions.push(Session {
                row: row.clone(),
                blocks: BTreeMap::new(),
                trimmed: Position::START,
                base: None,
                mark: None,
            });
        }
        for (id, mark) in &batch.marks {
            if let Some(session) = kept.session_mut(id) {
                session.mark = Some(*mark);
            }
        }
        for group in &groups {
            let Some(session) = kept.session_mut(group.session_id) else { continue };
            session.blocks.insert(
                group.first(),
                Block {
                    events: group.events.iter().map(|&event| Arc::clone(event)).collect(),
                    last: group.last(),
                    at: group.at(),
                    bytes: group.events.iter().map(|event| event.weight()).sum(),
                },
            );
        }
        kept.head = batch.events.last().map_or(kept.head, |event| event.position);
        for row in &batch.requests {
            match kept.requests.iter_mut().find(|old| old.request_id == row.request_id) {
                Some(old) => *old = row.clone(),
                None => kept.requests.push(row.clone()),
            }
        }
        let texts = batch.texts.iter().map(|row| TextRow { text: words::without_marks(&row.text), ..row.clone() });
        kept.texts.extend(texts);
        for change in &batch.devices {
            match change {
                DeviceChange::Put { device_id, body } => {
                    match kept.devices.iter_mut().find(|(id, _)| id == device_id) {
                        Some((_, old)) => old.clone_from(body),
                        None => kept.devices.push((device_id.clone(), body.clone())),
                    }
                }
                DeviceChange::Delete { device_id } => kept.devices.retain(|(id, _)| id != device_id),
            }
        }
        for change in &batch.pushes {
            match &change.body {
                Some(body) => kept.pushes.insert(change.name.clone(), body.clone()),
                None => kept.pushes.remove(&change.name),
            };
        }
        Ok(())
    }

    fn read(&self, session: &SessionId, after: Position, limit: ReadLimit) -> Result<Vec<Event>, StoreError> {
        let kept = self.kept();
        let Some(session) = kept.session(session) else { return Ok(Vec::new()) };
        let start = session.blocks.range(..=after).next_back().map_or(Position::START, |(&first, _)| first);
        let mut budget = Budget::new(limit);
        let events = session.blocks.range(start..).flat_map(|(_, block)| &block.events);
        let wanted = events.filter(|event| event.position > after);
        Ok(wanted.take_while(|event| budget.take(event)).map(|event| Event::clone(event)).collect())
    }

    fn sessions(&self) -> Result<Vec<SessionEntry>, StoreError> {
        let kept = self.kept();
        let entries = kept.sessions.iter().map(|session| SessionEntry {
            row: session.row.clone(),
            last: session.blocks.last_key_value().map_or(session.trimmed, |(_, block)| block.last),
            trimmed: session.trimmed,
            base: session.base.clone(),
            mark: session.mark,
        });
        Ok(entries.collect())
    }

    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        let mut kept = self.kept();
        kept.sessions.retain(|kept| kept.row.session_id != *session);
        kept.places = kept.sessions.iter().enumerate().map(|(at, s)| (s.row.session_id.clone(), at)).collect();
        kept.requests.retain(|row| row.session_id != *session);
        kept.texts.retain(|row| row.session_id != *session);
        Ok(())
    }

    fn request(&self, request: &RequestId) -> Result<Option<RequestRow>, StoreError> {
        Ok(self.kept().requests.iter().find(|row| row.request_id == *request).cloned())
    }

    fn requests(
        &self,
        state: Option<RequestState>,
        session: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<RequestRow>, StoreError> {
        let kept = self.kept();
        let rows = kept.requests.iter().rev();
        let rows = rows.filter(|row| state.is_none_or(|state| row.state == state));
        Ok(rows.filter(|row| session.is_none_or(|id| row.session_id == *id)).take(limit).cloned().collect())
    }

    fn search(&self, text: &str, limit: usize) -> Result<Vec<Hit>, StoreError> {
        let phrases: Vec<Vec<String>> = words::parts(text)
            .map(|part| spans(part).map(|(at, end)| part[at..end].to_lowercase()).collect())
            .collect();
        if phrases.is_empty() {
            return Ok(Vec::new());
        }
        let kept = self.kept();
        let mut hits: Vec<(usize, Hit)> = Vec::new();
        for row in &kept.texts {
            let Some(found) = find(&row.text, &phrases) else { continue };
            let mut snippet = row.text.clone();
            for &(at, end) in found.iter().rev() {
                snippet.insert_str(end, MARK_END);
                snippet.insert_str(at, MARK_START);
            }
            let hit =
                Hit { session_id: row.session_id.clone(), position: row.position, role: row.role.into(), snippet };
            hits.push((found.len(), hit));
        }
        hits.sort_by_key(|(found, _)| std::cmp::Reverse(*found));
        Ok(hits.into_iter().take(limit).map(|(_, hit)| hit).collect())
    }

    fn devices(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(self.kept().devices.iter().map(|(_, body)| body.clone()).collect())
    }

    fn pushes(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        Ok(self.kept().pushes.iter().map(|(name, body)| (name.clone(), body.clone())).collect())
    }

    fn trim(&self, trims: &[Trim]) -> Result<Vec<(SessionId, Position)>, StoreError> {
        let mut kept = self.kept();
        let mut lost = Vec::new();
        for trim in trims {
            let Some(session) = kept.session_mut(&trim.session_id) else { continue };
            let spared = session.row.spare_from.map_or(u64::MAX, |from| from.0.saturating_sub(1));
            let through = trim.through.min(Position(spared));
            let mut last = None;
            while let Some(entry) = session.blocks.first_entry()
                && entry.get().last <= through
            {
                last = Some(entry.remove().last);
            }
            let Some(last) = last else { continue };
            session.trimmed = last;
            session.base = trim.base.clone().or(session.base.take());
            kept.texts.retain(|row| row.session_id != trim.session_id || row.position > last);
            lost.push((trim.session_id.clone(), last));
        }
        Ok(lost)
    }

    fn blocks(&self, session: &SessionId, limit: usize) -> Result<Vec<(Position, Timestamp, usize)>, StoreError> {
        let kept = self.kept();
        let blocks = kept.session(session).into_iter().flat_map(|session| session.blocks.values());
        Ok(blocks.take(limit).map(|block| (block.last, block.at, block.bytes)).collect())
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        let kept = self.kept();
        let blocks = kept.sessions.iter().flat_map(|session| session.blocks.values());
        Ok(Usage { event_bytes: blocks.map(|block| block.bytes as u64).sum(), disk_bytes: 0 })
    }
}

/// Where the words of a text begin and end.
fn spans(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let at = rest + text[rest..].find(words::is_word)?;
        let end = text[at..].find(|c| !words::is_word(c)).map_or(text.len(), |length| at + length);
        rest = end;
        Some((at, end))
    })
}

/// Where every phrase stands in the text, in order and without overlap; `None` if one is not there. The last word of
/// the last phrase may be the beginning of a word.
fn find(text: &str, phrases: &[Vec<String>]) -> Option<Vec<(usize, usize)>> {
    let spans: Vec<(usize, usize)> = spans(text).collect();
    let folded: Vec<String> = spans.iter().map(|&(at, end)| text[at..end].to_lowercase()).collect();
    let mut marked = vec![false; spans.len()];
    for (nth, phrase) in phrases.iter().enumerate() {
        let prefix = nth + 1 == phrases.len();
        let mut found = false;
        for (at, window) in folded.windows(phrase.len()).enumerate() {
            let fits = window.iter().zip(phrase).enumerate().all(|(k, (word, wanted))| {
                word == wanted || (prefix && k + 1 == phrase.len() && word.starts_with(wanted.as_str()))
            });
            if fits {
                found = true;
                marked[at..at + phrase.len()].fill(true);
            }
        }
        if !found {
            return None;
        }
    }
    Some(spans.into_iter().zip(marked).filter_map(|(span, marked)| marked.then_some(span)).collect())
}
