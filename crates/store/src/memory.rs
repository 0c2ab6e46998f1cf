//! The store in memory: for tests, and for a gateway that must not write to disk. Its content ends with the process.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::block::{Budget, group};
use super::search_words::{self, MARK_END, MARK_START};
use super::{
    Batch, BlockInfo, DAY_MILLIS, DeviceChange, EventsAcross, ReadLimit, RequestPage, RequestQuery, RequestRow,
    RuntimeMark, SPAN_MILLIS, SearchHit, SessionEntry, SessionRow, SpendChange, SpendGroup, SpendQuery, SpendRow,
    Store, StoreError, SurfaceWrite, TextRow, Trim, Usage,
};
use plexus_protocol::{Epoch, Event, Origin, Position, RequestId, RunId, SessionId, Spending, Timestamp};

/// A store in memory. It fulfils the contract of the store on disk except durability; its search folds case by letter only (no
/// diacritics).
pub struct MemoryStore {
    epoch: Epoch,
    made_at: Timestamp,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    head: Position,
    sessions: Vec<Session>,
    session_indexes: HashMap<SessionId, usize>,
    /// All events of all sessions, in log order.
    events: BTreeMap<Position, Arc<Event>>,
    prompts: BTreeMap<(SessionId, RunId), Vec<u8>>,
    surfaces: BTreeMap<(SessionId, String), BTreeMap<u64, Vec<u8>>>,
    /// The spending by the number of the time span, session and run.
    spending: BTreeMap<(i64, SessionId, RunId), Spending>,
    /// The requests by number, in order of creation.
    requests: BTreeMap<u64, RequestRow>,
    request_numbers: HashMap<RequestId, u64>,
    texts: Vec<TextRow>,
    devices: Vec<(String, Vec<u8>)>,
    pushes: BTreeMap<String, Vec<u8>>,
}

struct Session {
    row: SessionRow,
    /// The blocks by the position of the first event.
    blocks: BTreeMap<Position, Block>,
    trimmed: Position,
    base: Option<Vec<u8>>,
    mark: Option<RuntimeMark>,
}

struct Block {
    events: Vec<Arc<Event>>,
    last: Position,
    at: Timestamp,
    bytes: usize,
}

impl MemoryStore {
    /// Makes an empty store with a random epoch.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the system has no random bytes.
    pub fn new() -> Result<Self, StoreError> {
        let epoch = Epoch::new(&search_words::random_epoch()?).map_err(|e| StoreError::Io(e.to_string()))?;
        Ok(Self { epoch, made_at: std::time::SystemTime::now().into(), contents: Mutex::default() })
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock()
    }
}

impl Session {
    fn entry(&self) -> SessionEntry {
        SessionEntry {
            row: self.row.clone(),
            last: self.blocks.last_key_value().map_or(self.trimmed, |(_, block)| block.last),
            trimmed: self.trimmed,
            base: self.base.clone(),
            mark: self.mark,
        }
    }
}

impl Contents {
    fn spend(&mut self, spent: &[SpendChange]) {
        for change in spent {
            let span = change.at.as_millis().div_euclid(SPAN_MILLIS);
            let key = (span, change.session_id.clone(), change.run_id.clone());
            self.spending.entry(key).or_default().add(&change.spending);
        }
    }

    fn session(&self, session: &SessionId) -> Option<&Session> {
        self.sessions.get(*self.session_indexes.get(session)?)
    }

    fn session_mut(&mut self, session: &SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(*self.session_indexes.get(session)?)
    }
}

impl Store for MemoryStore {
    fn epoch(&self) -> Epoch {
        self.epoch.clone()
    }

    fn head(&self) -> Position {
        self.contents().head
    }

    fn commit_is_quick(&self) -> bool {
        true
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut contents = self.contents();
        let groups = group(&batch.events, contents.head)?;
        // All checks that can refuse the batch are made before anything changes.
        let has_row = |id: &SessionId| {
            contents.session_indexes.contains_key(id) || batch.sessions.iter().any(|row| row.session_id == *id)
        };
        let named = groups.iter().map(|g| g.session_id).chain(batch.texts.iter().map(|t| &t.session_id));
        let named = named.chain(batch.marks.iter().map(|(session, _)| session));
        let named = named.chain(batch.prompts.iter().map(|prompt| &prompt.session_id));
        let named = named.chain(batch.surfaces.iter().map(|change| &change.session_id));
        let named = named.chain(batch.spent.iter().map(|change| &change.session_id));
        if let Some(id) = named.into_iter().find(|id| !has_row(id)) {
            return Err(StoreError::NoSession(id.clone()));
        }
        for row in &batch.sessions {
            if let Some(session) = contents.session_mut(&row.session_id) {
                session.row = row.clone();
                continue;
            }
            let index = contents.sessions.len();
            contents.session_indexes.insert(row.session_id.clone(), index);
            contents.sessions.push(Session {
                row: row.clone(),
                blocks: BTreeMap::new(),
                trimmed: Position::START,
                base: None,
                mark: None,
            });
        }
        for (id, mark) in &batch.marks {
            if let Some(session) = contents.session_mut(id) {
                session.mark = Some(*mark);
            }
        }
        for group in &groups {
            let Some(session) = contents.session_mut(group.session_id) else { continue };
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
        contents.head = batch.events.last().map_or(contents.head, |event| event.position);
        contents.events.extend(batch.events.iter().map(|event| (event.position, Arc::clone(event))));
        for row in &batch.requests {
            let next = contents.requests.last_key_value().map_or(1, |(number, _)| number + 1);
            let number = *contents.request_numbers.entry(row.request_id.clone()).or_insert(next);
            contents.requests.insert(number, row.clone());
        }
        for prompt in &batch.prompts {
            let key = (prompt.session_id.clone(), prompt.run_id.clone());
            match &prompt.content {
                Some(content) => contents.prompts.insert(key, content.clone()),
                None => contents.prompts.remove(&key),
            };
        }
        for change in &batch.surfaces {
            let key = (change.session_id.clone(), change.surface.clone());
            match &change.write {
                SurfaceWrite::Whole(body) => {
                    contents.surfaces.insert(key, BTreeMap::from([(change.rev, body.clone())]));
                }
                SurfaceWrite::Change(body) => {
                    contents.surfaces.entry(key).or_default().insert(change.rev, body.clone());
                }
                SurfaceWrite::Closed => {
                    contents.surfaces.remove(&key);
                }
            }
        }
        contents.spend(&batch.spent);
        let texts =
            batch.texts.iter().map(|row| TextRow { text: search_words::without_marks(&row.text), ..row.clone() });
        contents.texts.extend(texts);
        for change in &batch.devices {
            match change {
                DeviceChange::Put { device_id, body } => {
                    match contents.devices.iter_mut().find(|(id, _)| id == device_id) {
                        Some((_, old)) => old.clone_from(body),
                        None => contents.devices.push((device_id.clone(), body.clone())),
                    }
                }
                DeviceChange::Delete { device_id } => contents.devices.retain(|(id, _)| id != device_id),
            }
        }
        for change in &batch.pushes {
            match &change.body {
                Some(body) => contents.pushes.insert(change.name.clone(), body.clone()),
                None => contents.pushes.remove(&change.name),
            };
        }
        Ok(())
    }

    fn read(&self, session: &SessionId, after: Position, limit: ReadLimit) -> Result<Vec<Event>, StoreError> {
        let contents = self.contents();
        let Some(session) = contents.session(session) else { return Ok(Vec::new()) };
        let start = session.blocks.range(..=after).next_back().map_or(Position::START, |(&first, _)| first);
        let mut budget = Budget::new(limit);
        let events = session.blocks.range(start..).flat_map(|(_, block)| &block.events);
        let later = events.filter(|event| event.position > after);
        Ok(later.take_while(|event| budget.take(event)).map(|event| Event::clone(event)).collect())
    }

    fn read_before(&self, session: &SessionId, before: Position, limit: ReadLimit) -> Result<Vec<Event>, StoreError> {
        let contents = self.contents();
        let Some(session) = contents.session(session) else { return Ok(Vec::new()) };
        let mut budget = Budget::new(limit);
        let blocks = session.blocks.range(..before).rev();
        let events = blocks.flat_map(|(_, block)| block.events.iter().rev()).filter(|event| event.position < before);
        let newest = events.take_while(|event| !budget.spent() && budget.take(event));
        let mut events: Vec<Event> = newest.map(|event| Event::clone(event)).collect();
        events.reverse();
        Ok(events)
    }

    fn read_across(
        &self,
        matches: &dyn Fn(&Origin) -> bool,
        after: Position,
        limit: ReadLimit,
    ) -> Result<EventsAcross, StoreError> {
        let contents = self.contents();
        let mut across = EventsAcross { next: contents.head.max(after), ..EventsAcross::default() };
        let mut budget = Budget::new(limit);
        let later = contents.events.range(after.next()..).map(|(_, event)| event);
        for event in later.filter(|event| matches(&event.origin)) {
            if !budget.take(event) {
                across.next = across.events.last().map_or(after, |event: &Event| event.position);
                break;
            }
            across.events.push(Event::clone(event));
        }
        Ok(across)
    }

    fn sessions(&self) -> Result<Vec<SessionEntry>, StoreError> {
        Ok(self.contents().sessions.iter().map(Session::entry).collect())
    }

    fn session(&self, session: &SessionId) -> Result<Option<SessionEntry>, StoreError> {
        Ok(self.contents().session(session).map(Session::entry))
    }

    fn holds(&self, session: &SessionId) -> bool {
        self.contents().session_indexes.contains_key(session)
    }

    fn prompts(&self, session: &SessionId) -> Result<Vec<(RunId, Vec<u8>)>, StoreError> {
        let contents = self.contents();
        let rows = contents.prompts.iter().filter(|((other, _), _)| other == session);
        Ok(rows.map(|((_, run), content)| (run.clone(), content.clone())).collect())
    }

    fn surfaces(&self, session: &SessionId) -> Result<Vec<Vec<u8>>, StoreError> {
        let contents = self.contents();
        let rows = contents.surfaces.iter().filter(|((other, _), _)| other == session);
        Ok(rows.flat_map(|(_, rows)| rows.values().cloned()).collect())
    }

    fn sessions_with_surfaces(&self) -> Result<Vec<SessionId>, StoreError> {
        let mut sessions: Vec<_> = self.contents().surfaces.keys().map(|(session, _)| session.clone()).collect();
        sessions.dedup();
        Ok(sessions)
    }

    fn mark_for_deletion(&self, session: &SessionId) -> Result<bool, StoreError> {
        let mut contents = self.contents();
        if !contents.session_indexes.contains_key(session) {
            return Ok(false);
        }
        contents.sessions.retain(|contents| contents.row.session_id != *session);
        contents.session_indexes =
            contents.sessions.iter().enumerate().map(|(at, s)| (s.row.session_id.clone(), at)).collect();
        contents.events.retain(|_, event| event.origin.session_id != *session);
        contents.requests.retain(|_, row| row.session_id != *session);
        let Contents { requests, request_numbers, .. } = &mut *contents;
        request_numbers.retain(|_, number| requests.contains_key(number));
        contents.texts.retain(|row| row.session_id != *session);
        contents.prompts.retain(|(other, _), _| other != session);
        contents.surfaces.retain(|(other, _), _| other != session);
        contents.spending.retain(|(_, other, _), _| other != session);
        Ok(true)
    }

    fn is_being_deleted(&self, _: &SessionId) -> bool {
        false
    }

    fn sweep(&self) -> Result<bool, StoreError> {
        // Removed data is freed at once.
        Ok(false)
    }

    fn request(&self, request: &RequestId) -> Result<Option<RequestRow>, StoreError> {
        let contents = self.contents();
        Ok(contents.request_numbers.get(request).and_then(|number| contents.requests.get(number)).cloned())
    }

    fn requests(&self, query: RequestQuery<'_>) -> Result<RequestPage, StoreError> {
        let contents = self.contents();
        let rows = contents.requests.range(..query.before.unwrap_or(u64::MAX)).rev();
        let rows = rows.filter(|(_, row)| query.state.is_none_or(|state| row.state == state));
        let mut rows = rows.filter(|(_, row)| query.session.is_none_or(|id| row.session_id == *id));
        let some: Vec<_> = rows.by_ref().take(query.limit).map(|(number, row)| (*number, row.clone())).collect();
        let next = rows.next().and_then(|_| some.last()).map(|(number, _)| *number);
        Ok(RequestPage { rows: some, next })
    }

    fn retire(&self, before: Option<Timestamp>, max: usize) -> Result<bool, StoreError> {
        let mut contents = self.contents();
        let Contents { requests, request_numbers, .. } = &mut *contents;
        let mut closed: Vec<(Timestamp, u64)> =
            requests.iter().filter_map(|(number, row)| Some((row.closed_at?, *number))).collect();
        closed.sort_unstable();
        let excess = closed.len().saturating_sub(max);
        for (n, (at, number)) in closed.into_iter().enumerate() {
            if (n < excess || before.is_some_and(|before| at < before))
                && let Some(row) = requests.remove(&number)
            {
                request_numbers.remove(&row.request_id);
            }
        }
        Ok(false)
    }

    fn search(&self, text: &str, limit: usize) -> Result<Vec<SearchHit>, StoreError> {
        let phrases: Vec<Vec<String>> = search_words::parts(text)
            .map(|part| spans(part).map(|(at, end)| part[at..end].to_lowercase()).collect())
            .collect();
        if phrases.is_empty() {
            return Ok(Vec::new());
        }
        let contents = self.contents();
        let mut hits: Vec<(usize, SearchHit)> = Vec::new();
        for row in &contents.texts {
            let Some(found) = find(&row.text, &phrases) else { continue };
            let mut snippet = row.text.clone();
            for &(at, end) in found.iter().rev() {
                snippet.insert_str(end, MARK_END);
                snippet.insert_str(at, MARK_START);
            }
            let hit = SearchHit {
                session_id: row.session_id.clone(),
                position: row.position,
                role: row.role.into(),
                snippet,
            };
            hits.push((found.len(), hit));
        }
        hits.sort_by_key(|(found, _)| std::cmp::Reverse(*found));
        Ok(hits.into_iter().take(limit).map(|(_, hit)| hit).collect())
    }

    fn devices(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(self.contents().devices.iter().map(|(_, body)| body.clone()).collect())
    }

    fn pushes(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        Ok(self.contents().pushes.iter().map(|(name, body)| (name.clone(), body.clone())).collect())
    }

    fn spending(&self, query: SpendQuery<'_>) -> Result<Vec<SpendRow>, StoreError> {
        let contents = self.contents();
        let (from, to) = (query.from.as_millis().div_euclid(SPAN_MILLIS), query.to.as_millis().div_euclid(SPAN_MILLIS));
        let mut rows: Vec<SpendRow> = Vec::new();
        for ((span, session, run), spending) in &contents.spending {
            if !(from..to).contains(span) || query.session.is_some_and(|requested| requested != session) {
                continue;
            }
            let Some(row) = contents.session(session).map(|session| &session.row) else { continue };
            let at = Timestamp::from_millis(span * SPAN_MILLIS);
            let run_id = (query.by == SpendGroup::Run).then(|| run.clone());
            let day =
                (query.by == SpendGroup::Day).then(|| (at.as_millis() + query.offset_millis).div_euclid(DAY_MILLIS));
            let same = |known: &&mut SpendRow| {
                known.origin.session_id == *session && known.run_id == run_id && known.day == day
            };
            if let Some(known) = rows.iter_mut().find(same) {
                known.at = known.at.max(at);
                known.spending.add(spending);
                continue;
            }
            let (session_id, runtime_id) = (row.session_id.clone(), row.runtime_id.clone());
            let origin = Arc::new(Origin { session_id, runtime_id, dialect: row.dialect.as_str().into() });
            rows.push(SpendRow { origin, run_id, day, at, spending: spending.clone() });
        }
        Ok(rows)
    }

    fn spending_since(&self) -> Timestamp {
        self.made_at
    }

    fn trim(&self, trims: &[Trim]) -> Result<Vec<(SessionId, Position)>, StoreError> {
        let mut contents = self.contents();
        let mut lost = Vec::new();
        for trim in trims {
            let mut removed = Vec::new();
            let Some(session) = contents.session_mut(&trim.session_id) else { continue };
            let last_removable = session.row.spare_from.map_or(u64::MAX, |from| from.0.saturating_sub(1));
            let through = trim.through.min(Position(last_removable));
            let mut last = None;
            while let Some(entry) = session.blocks.first_entry()
                && entry.get().last <= through
            {
                let block = entry.remove();
                last = Some(block.last);
                removed.extend(block.events.iter().map(|event| event.position));
            }
            let Some(last) = last else { continue };
            session.trimmed = last;
            session.base = trim.base.clone().or(session.base.take());
            removed.iter().for_each(|position| drop(contents.events.remove(position)));
            contents.texts.retain(|row| row.session_id != trim.session_id || row.position > last);
            lost.push((trim.session_id.clone(), last));
        }
        Ok(lost)
    }

    fn oldest(&self, after: Position, limit: usize) -> Result<Vec<BlockInfo>, StoreError> {
        let contents = self.contents();
        let session_blocks = |session: &Session| {
            let session_id = session.row.session_id.clone();
            let blocks = session.blocks.range(after.next()..).take(limit);
            let info = move |(first, block): (&Position, &Block)| BlockInfo {
                session_id: session_id.clone(),
                first: *first,
                last: block.last,
                at: block.at,
                bytes: block.bytes,
            };
            blocks.map(info).collect::<Vec<_>>()
        };
        let mut blocks: Vec<BlockInfo> = contents.sessions.iter().flat_map(session_blocks).collect();
        blocks.sort_by_key(|block| block.first);
        blocks.truncate(limit);
        Ok(blocks)
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        let contents = self.contents();
        let blocks = contents.sessions.iter().flat_map(|session| session.blocks.values());
        Ok(Usage { event_bytes: blocks.map(|block| block.bytes as u64).sum(), ..Usage::default() })
    }
}

/// Returns the byte ranges of the words of a text.
fn spans(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let at = rest + text[rest..].find(search_words::is_word)?;
        let end = text[at..].find(|c| !search_words::is_word(c)).map_or(text.len(), |length| at + length);
        rest = end;
        Some((at, end))
    })
}

/// Returns the words of a text that match the phrases; `None` if a phrase is missing. The last word of the last phrase is a prefix.
fn find(text: &str, phrases: &[Vec<String>]) -> Option<Vec<(usize, usize)>> {
    let spans: Vec<(usize, usize)> = spans(text).collect();
    let folded: Vec<String> = spans.iter().map(|&(at, end)| text[at..end].to_lowercase()).collect();
    let mut marked = vec![false; spans.len()];
    for (nth, phrase) in phrases.iter().enumerate() {
        let prefix = nth + 1 == phrases.len();
        let mut found = false;
        for (at, window) in folded.windows(phrase.len()).enumerate() {
            let matches = window.iter().zip(phrase).enumerate().all(|(k, (word, expected))| {
                word == expected || (prefix && k + 1 == phrase.len() && word.starts_with(expected.as_str()))
            });
            if matches {
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
