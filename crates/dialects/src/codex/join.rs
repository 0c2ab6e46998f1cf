//! Joins conversations: opens new ones, resumes old ones, and joins again after a lost connection.
//!
//! `thread/resume` returns the newest turns with all their items, except the text of a message in progress; the events
//! after it follow without a gap. So its result is the history, or the missed part of it.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::jsonrpc::{INTERNAL, member, object};
use super::super::{EventDraft, McpServer, OpenedAs, Outbox, RunEnd, RuntimeError, RuntimeEvent};
use super::{
    Codex, DOUBTS_MAX, End, OTHER, OpenRequest, Pending, SETTLE, Thread, ThreadHead, Turn, TurnHead, UNSURE, items,
    mark,
};
use plexus_protocol::{NativeId, RunStatus, Ticket};

/// Number of turns requested when a thread is joined. Of a longer conversation that is not in the log, the older ones
/// are not reported, which an event says; of one that is, only turns since the lost connection are needed.
const TURNS_MAX: u32 = 100;

/// The result of `thread/start` and `thread/resume`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadJoined<'a> {
    #[serde(borrow)]
    thread: &'a RawValue,
    model: Option<&'a RawValue>,
    model_provider: Option<&'a RawValue>,
    initial_turns_page: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    next_cursor: Option<&'a RawValue>,
}

/// Returns the turns of a thread, oldest first, and whether there are older ones.
fn turns<'a>(joined: &ThreadJoined<'a>, head: &ThreadHead<'a>) -> (Vec<TurnHead<'a>>, bool) {
    let (raw, more) = match joined.initial_turns_page.and_then(object::<Page<'_>>) {
        Some(Page { mut data, next_cursor }) => {
            data.reverse();
            (data, next_cursor.is_some_and(|cursor| cursor.get() != "null"))
        }
        // An older server returns all of them.
        None => (
            head.turns.and_then(|turns| plexus_protocol::object::from_str(turns.get()).ok()).unwrap_or_default(),
            false,
        ),
    };
    (raw.into_iter().filter_map(object).collect(), more)
}

/// Returns whether the turn contains the prompt with this mark.
fn contains_prompt(turn: &TurnHead<'_>, mark: &str) -> bool {
    turn.items().iter().any(|item| member::<String>(item, "clientId").as_deref() == Some(mark))
}

/// Returns whether a listed item is complete; items of a finished turn are.
fn is_complete(item: &RawValue, ended: bool) -> bool {
    ended || member::<String>(item, "status").as_deref() != Some("inProgress")
}

/// Returns the events of a turn's items, each with its own bytes.
fn report_turn(thread: &mut Thread, turn: &TurnHead<'_>, ended: bool, own_mark: Option<&str>) -> Vec<EventDraft> {
    let mut drafts = Vec::new();
    let mut echoed = false;
    for item in turn.items() {
        let bytes = Bytes::copy_from_slice(item.get().as_bytes());
        match thread.items.read(item, is_complete(item, ended), own_mark, &mut echoed, &bytes) {
            Ok(more) => drafts.extend(more),
            Err(reason) => drafts.push(EventDraft::raw(bytes, reason)),
        }
    }
    drafts
}

/// Returns late events of tool calls in a finished turn.
fn late_tool_events(thread: &mut Thread, turn: &TurnHead<'_>) -> Vec<EventDraft> {
    let mut drafts = Vec::new();
    for item in turn.items() {
        let id = member::<String>(item, "id");
        if id.is_some_and(|id| thread.items.is_in_progress(&id)) && is_complete(item, false) {
            let bytes = Bytes::copy_from_slice(item.get().as_bytes());
            drafts.extend(thread.items.read(item, true, None, &mut true, &bytes).unwrap_or_default());
        }
    }
    drafts
}

/// Returns the last reported turns that the server no longer has, except the current one.
fn removed_turns(thread: &Thread, turns: &[TurnHead<'_>]) -> Vec<u64> {
    let existing: Vec<u64> = turns.iter().map(|turn| items::hash(&turn.id)).collect();
    let now = thread.turn.as_ref().and_then(|turn| turn.id.as_deref()).map(items::hash);
    let last = thread.reported_turns.iter().rev().skip_while(|turn| Some(**turn) == now);
    last.copied().take_while(|turn| !existing.contains(turn)).collect()
}

/// Returns the configuration that names MCP servers for one thread; `None` without any.
pub(super) fn config(servers: &[McpServer]) -> Option<serde_json::Value> {
    let servers = servers.iter().filter_map(McpServer::codex).map(|(name, entry)| (name.to_owned(), entry));
    let servers: serde_json::Map<_, _> = servers.collect();
    (!servers.is_empty()).then(|| serde_json::json!({ "mcp_servers": servers }))
}

impl Codex {
    /// Requests a thread that was joined before.
    pub(super) fn rejoin(&mut self, native: &NativeId, out: &mut Outbox) {
        let servers = self.state.threads.get(native).map(|thread| thread.mcp_servers.clone()).unwrap_or_default();
        self.resume(Pending::Rejoin { native: native.clone() }, native, &servers, out);
    }

    /// Requests a thread and its newest turns.
    pub(super) fn resume(&mut self, pending: Pending, native: &NativeId, servers: &[McpServer], out: &mut Outbox) {
        let page = serde_json::json!({ "limit": TURNS_MAX, "sortDirection": "desc", "itemsView": "full" });
        let mut params = serde_json::json!({ "threadId": native, "excludeTurns": true, "initialTurnsPage": page });
        if let Some(config) = config(servers) {
            params["config"] = config;
        }
        self.request(pending, "thread/resume", &params, out);
    }

    /// Handles a session that was opened.
    pub(super) fn opened(
        &mut self,
        frame: &Bytes,
        ticket: u64,
        request: OpenRequest,
        result: &RawValue,
        out: &mut Outbox,
    ) {
        let ticket = Ticket(ticket);
        let read = object::<ThreadJoined<'_>>(result)
            .and_then(|joined| Some((object::<ThreadHead<'_>>(joined.thread)?, joined)));
        let Some((head, joined)) = read else {
            let error = RuntimeError::new(INTERNAL, "Codex opened a conversation without an identifier");
            return out.events.push(RuntimeEvent::NotOpened { ticket, error });
        };
        let native = NativeId::from(head.id.as_str());
        let (turns, more) = turns(&joined, &head);
        let known = request.resume.as_ref().is_some_and(|(_, known)| *known);
        let carried = request.carried.as_ref().and_then(|carried| self.restored(&native, carried));
        let continues = carried.is_some();
        let (thread, earlier_events) = carried.unwrap_or_default();
        let mut thread = Thread {
            model: super::text(joined.model).or(thread.model),
            provider: super::text(joined.model_provider).or(thread.provider),
            mcp_servers: request.mcp_servers,
            unwritten: false,
            untitled: thread.untitled || (!known && head.title().is_none()),
            ..thread
        };
        let mut drafts = Vec::new();
        if let Some(name) = head.name() {
            drafts.push(EventDraft::title(Some(name), Some(frame)));
        }
        if !continues && known && !turns.is_empty() {
            let message = "messages of this conversation from the time when no gateway was connected to Codex are \
                not shown: how much was reported before is unknown";
            drafts.push(EventDraft::error("gap", message, None));
        } else if !continues && more {
            let message = format!("older turns of this conversation are not shown: only the last {TURNS_MAX} are");
            drafts.push(EventDraft::error("gap", &message, None));
        }
        let mut running = None;
        for turn in turns.iter().filter(|_| !continues) {
            thread.mark_reported(&turn.id);
            let Some(end) = turn.end(None) else {
                running = Some(turn);
                continue;
            };
            if known {
                continue;
            }
            drafts.extend(report_turn(&mut thread, turn, true, None));
            thread.items.next_turn();
            if let (RunStatus::Error, Some(message)) = (end.status, end.message) {
                drafts.push(EventDraft::error("turn_failed", &message, None));
            }
        }
        let how = if request.resume.is_some() { OpenedAs::Resumed } else { OpenedAs::New };
        self.state.found.remove(&native);
        self.state.helpers.remove(&native);
        // If the conversation is already open, its current turn ends here.
        self.give_up(&native, "the conversation was opened again", out);
        let mut present = Vec::new();
        if let Some(turn) = running {
            // If the log knows the turn, it has its finished items.
            let all = report_turn(&mut thread, turn, false, None);
            present =
                all.into_iter().filter(|draft| !known || draft.tool.as_ref().is_some_and(|tool| !tool.ended)).collect();
            thread.turn = Some(Turn { id: Some(turn.id.clone()), began: true, ..Turn::default() });
        }
        self.state.threads.insert(native.clone(), thread);
        out.events.push(RuntimeEvent::Opened { ticket, native: native.clone(), drafts, how });
        turns.iter().for_each(|turn| self.title_of_turn(&native, turn, out));
        if running.is_some() {
            out.events.push(RuntimeEvent::Began { native: native.clone(), by: OTHER.into() });
        }
        for draft in present {
            self.event(&native, draft, out);
        }
        if continues {
            out.events.extend(earlier_events);
            self.catch_up(&native, &head, &turns, more, out);
        }
    }

    /// Handles a thread that was joined again: reports missed events.
    pub(super) fn rejoined(&mut self, frame: &Bytes, native: &NativeId, result: &RawValue, out: &mut Outbox) {
        let read = object::<ThreadJoined<'_>>(result)
            .and_then(|joined| Some((object::<ThreadHead<'_>>(joined.thread)?, joined)));
        let Some((head, joined)) = read else {
            let fault = RuntimeError::new(INTERNAL, "Codex's response could not be parsed");
            return self.not_rejoined(frame, native, &fault, out);
        };
        let (turns, more) = turns(&joined, &head);
        self.written(native, &head, [joined.model, joined.model_provider], out);
        self.catch_up(native, &head, &turns, more, out);
    }

    /// Reports the unreported part of the turns, once.
    fn catch_up(
        &mut self,
        native: &NativeId,
        head: &ThreadHead<'_>,
        turns: &[TurnHead<'_>],
        more: bool,
        out: &mut Outbox,
    ) {
        let Some(thread) = self.state.threads.get_mut(native) else { return };
        let known = turns.iter().any(|turn| thread.contains(&turn.id));
        if more && !known && !thread.reported_turns.is_empty() {
            let message = "more happened while the gateway was not connected than Codex reports: some of it is missing";
            self.event(native, EventDraft::error("gap", message, None), out);
        } else if let removed_turns @ [_, ..] = removed_turns(thread, turns).as_slice() {
            thread.reported_turns.retain(|turn| !removed_turns.contains(turn));
            let removed_turns = removed_turns.len();
            let message = format!(
                "the conversation was rolled back while the gateway was not connected: Codex no longer knows the \
                 last {removed_turns} of the turns shown above"
            );
            self.event(native, EventDraft::error("taken_back", &message, None), out);
        }
        for turn in turns {
            self.apply_missed_turn(native, turn, out);
        }
        // Codex never accepted the prompt, or no longer has the turn.
        let now = self.state.threads.get(native).and_then(|thread| thread.turn.as_ref());
        match now.map(|now| now.id.as_deref()) {
            Some(None) => self.give_up(native, "the connection to Codex was lost before it accepted the prompt", out),
            Some(Some(id)) if turns.iter().all(|turn| turn.id != id) => {
                self.give_up(native, "Codex does not know this turn, so how it ended is unknown", out);
            }
            _ => {}
        }
        self.reconcile_requests(native, head, out);
        let turn = self.state.threads.get(native).and_then(|thread| thread.turn.as_ref());
        if turn.is_some_and(|turn| turn.cancel) {
            self.interrupt(native, out);
        }
    }

    /// Reports a turn that may have been missed.
    fn apply_missed_turn(&mut self, native: &NativeId, turn: &TurnHead<'_>, out: &mut Outbox) {
        let Some(thread) = self.state.threads.get_mut(native) else { return };
        let mut end = turn.end(None);
        let now = thread.turn.as_mut();
        let same = now.as_ref().is_some_and(|now| now.id.as_deref() == Some(&turn.id));
        let own_turn =
            now.filter(|now| now.starting && now.ticket.is_some_and(|ticket| contains_prompt(turn, &mark(ticket))));
        if let Some(own_turn) = own_turn {
            own_turn.early = None;
            if !same {
                own_turn.id = Some(turn.id.clone());
                thread.items.next_turn();
            }
        } else if !same {
            if thread.contains(&turn.id) {
                // The turn had ended and was reported before; some of its tool calls may have ended since.
                for draft in late_tool_events(thread, turn) {
                    self.event(native, draft, out);
                }
                return;
            }
            if thread.turn.as_ref().is_some_and(|now| now.id.is_some()) {
                self.give_up(native, "Codex does not report how this ended", out);
            }
            self.missed_foreign_turn(native, turn, out);
            return;
        }
        if let Some(now) = &mut thread.turn {
            // The answer to `turn/start` will never come.
            now.starting = false;
        }
        let cut = end.as_ref().is_some_and(|end| end.status == RunStatus::Cancelled);
        let requested = thread.turn.as_ref().is_some_and(|now| now.cancel);
        if cut && !requested && thread.doubts < DOUBTS_MAX {
            thread.doubts += 1;
            thread.doubted = true;
            end = None;
        }
        thread.mark_reported(&turn.id);
        let own_mark = thread.turn.as_ref().and_then(|turn| turn.ticket).map(mark);
        let drafts = match std::mem::take(&mut thread.partial) {
            true => {
                let _ = report_turn(thread, turn, end.is_some(), own_mark.as_deref());
                let message = "more happened in this turn than could be kept: what Codex did while the gateway was \
                    not connected is missing";
                vec![EventDraft::error("gap", message, None)]
            }
            false => report_turn(thread, turn, end.is_some(), own_mark.as_deref()),
        };
        for draft in drafts {
            self.event(native, draft, out);
        }
        if let Some(end) = end {
            self.finish(native, end, out);
        }
    }

    /// Reports a missed turn of another client.
    fn missed_foreign_turn(&mut self, native: &NativeId, turn: &TurnHead<'_>, out: &mut Outbox) {
        let Some(thread) = self.state.threads.get_mut(native) else { return };
        // A prompt in progress waits for its own turn.
        let waiting = thread.turn.take();
        thread.items.next_turn();
        self.foreign_turn_began(native, turn.id.clone(), out);
        self.title_of_turn(native, turn, out);
        let Some(thread) = self.state.threads.get_mut(native) else { return };
        let end = turn.end(None);
        for draft in report_turn(thread, turn, end.is_some(), None) {
            self.event(native, draft, out);
        }
        match end {
            Some(end) => {
                self.finish(native, end, out);
                if let Some(thread) = self.state.threads.get_mut(native) {
                    thread.turn = waiting;
                }
            }
            None => {
                if let Some(ticket) = waiting.and_then(|turn| turn.ticket) {
                    let message = "the connection to Codex was lost before it accepted the prompt".to_owned();
                    let end = RunEnd::failed(message);
                    out.events.push(RuntimeEvent::Ended { native: native.clone(), ticket: Ticket(ticket), end });
                }
            }
        }
    }

    pub(super) fn give_up(&mut self, native: &NativeId, reason: &str, out: &mut Outbox) {
        if let Some(now) = self.state.threads.get_mut(native).and_then(|thread| thread.turn.as_mut()) {
            now.starting = false;
        }
        let end = End { status: RunStatus::Error, word: "lost".into(), message: Some(reason.into()), native: None };
        self.finish(native, end, out);
    }

    /// Handles a thread that could not be joined again.
    pub(super) fn not_rejoined(&mut self, frame: &Bytes, native: &NativeId, fault: &RuntimeError, out: &mut Outbox) {
        let message = format!("Codex could not reopen this conversation: {}", fault.full_message());
        self.event(native, EventDraft::error("not_resumed", &message, Some(frame)), out);
        self.give_up(native, &message, out);
        let keys: Vec<_> =
            self.state.asks.iter().filter(|(_, ask)| ask.native == *native).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.close_question(&key, None, out);
        }
    }

    /// Checks the questions of a thread that was joined again: the server sends open ones again.
    fn reconcile_requests(&mut self, native: &NativeId, head: &ThreadHead<'_>, out: &mut Outbox) {
        let is_waiting = head.status.is_some_and(|status| status.get().contains("waitingOn"));
        let unsure = self.state.asks.iter_mut().filter(|(_, ask)| ask.native == *native && ask.stale == UNSURE);
        let mut closed = Vec::new();
        for (key, ask) in unsure {
            if is_waiting {
                ask.stale = SETTLE;
            } else {
                closed.push(key.clone());
            }
        }
        for key in closed {
            self.close_question(&key, Some(OTHER), out);
        }
    }
}
