//! Conversations in which nobody has written yet: a terminal that was just opened has one.
//!
//! `thread/resume` refuses such a thread, since there is nothing on disk that it could read. `thread/read` shows it,
//! and it accepts turns. So its session is opened without being joined, and it is joined when it becomes active: before
//! its first text, because the model is asked only then.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::jsonrpc::{member, object};
use super::super::{EventDraft, OpenedAs, Outbox, RuntimeError, RuntimeEvent};
use super::{Codex, OpenRequest, Pending, Thread, ThreadHead, TurnHead, text};
use plexus_protocol::{NativeId, Ticket};

/// Maximum number of requests to join an active thread, a tick apart: its first message may not be on disk yet. After
/// them it is joined when it is active again.
const JOINS_MAX: u8 = 10;

/// The refusal that a session gets if its thread cannot be read either.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Refusal {
    code: i64,
    message: String,
}

impl From<RuntimeError> for Refusal {
    fn from(error: RuntimeError) -> Self {
        Self { code: error.code, message: error.full_message() }
    }
}

impl From<Refusal> for RuntimeError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code, &refusal.message)
    }
}

/// Returns whether the server works on the thread.
pub(super) fn is_active(status: Option<&RawValue>) -> bool {
    status.is_some_and(|status| status.get().contains("\"active\""))
}

/// Returns whether the server has the thread in memory.
fn is_loaded(status: Option<&RawValue>) -> bool {
    status.is_some_and(|status| !status.get().contains("\"notLoaded\""))
}

impl Codex {
    /// Returns whether a thread that cannot be resumed may be one in which nobody has written. A server of the
    /// gateway's own has no such threads.
    pub(super) fn may_be_unwritten(&self, request: &OpenRequest) -> bool {
        let Some((_, known)) = &request.resume else { return false };
        !self.alone
            && (!known || request.carried.as_ref().is_some_and(|carried| super::checkpoint::is_unwritten(carried)))
    }

    /// Reads a thread that could not be resumed.
    pub(super) fn read_unwritten(&mut self, ticket: u64, request: OpenRequest, error: RuntimeError, out: &mut Outbox) {
        let native = request.resume.as_ref().map(|(native, _)| native.clone());
        let params = serde_json::json!({ "threadId": native, "includeTurns": false });
        self.request(Pending::Unwritten { ticket, request, refusal: error.into() }, "thread/read", &params, out);
    }

    /// Handles a thread that was read: opens it without joining it, or refuses it.
    pub(super) fn unwritten_read(
        &mut self,
        ticket: u64,
        request: OpenRequest,
        refusal: Refusal,
        result: Option<&RawValue>,
        out: &mut Outbox,
    ) {
        let head = result.and_then(|result| member(result, "thread")).and_then(object::<ThreadHead<'_>>);
        let Some(head) = head.filter(|head| !head.hidden() && is_loaded(head.status)) else {
            return self.not_opened(ticket, request, refusal.into(), out);
        };
        let native = NativeId::from(head.id.as_str());
        let carried = request.carried.as_ref().and_then(|carried| self.restored(&native, carried));
        let (thread, earlier_events) = carried.unwrap_or_default();
        self.state.found.remove(&native);
        let thread =
            Thread { unwritten: true, untitled: head.title().is_none(), mcp_servers: request.mcp_servers, ..thread };
        self.state.threads.insert(native.clone(), thread);
        let drafts = head.name().map(|name| EventDraft::title(Some(name), None)).into_iter().collect();
        let opened =
            RuntimeEvent::Opened { ticket: Ticket(ticket), native: native.clone(), drafts, how: OpenedAs::Resumed };
        out.events.push(opened);
        out.events.extend(earlier_events);
        if is_active(head.status) {
            return self.rejoin(&native, out);
        }
        // A prompt of an earlier gateway process would have been written.
        self.give_up(&native, "the connection to Codex was lost before it accepted the prompt", out);
    }

    /// Handles a session that could not be opened.
    pub(super) fn not_opened(&mut self, ticket: u64, request: OpenRequest, error: RuntimeError, out: &mut Outbox) {
        if let Some((native, _)) = request.resume {
            // The thread may be too new to be joined: it is reported again when it is active.
            self.state.found.remove(&native);
        }
        out.events.push(RuntimeEvent::NotOpened { ticket: Ticket(ticket), error });
        self.clarify(out);
    }

    /// Handles a change of a thread's status: joins a thread in which nobody had written.
    pub(super) fn join_if_active(&mut self, native: &NativeId, status: Option<&RawValue>, out: &mut Outbox) {
        let joining =
            |sent: &super::Sent| matches!(&sent.pending, Pending::Rejoin { native: other } if other == native);
        let under_way = self.state.sent.values().any(joining);
        let Some(thread) = self.state.threads.get_mut(native).filter(|thread| thread.unwritten) else { return };
        if is_active(status) && !under_way && !thread.doubted {
            thread.joins = 0;
            self.rejoin(native, out);
        }
    }

    /// Handles a thread that was joined for the first time.
    pub(super) fn written(
        &mut self,
        native: &NativeId,
        head: &ThreadHead<'_>,
        model: [Option<&RawValue>; 2],
        out: &mut Outbox,
    ) {
        let Some(thread) = self.state.threads.get_mut(native).filter(|thread| thread.unwritten) else { return };
        let [model, provider] = model.map(text);
        (thread.unwritten, thread.joins) = (false, 0);
        (thread.model, thread.provider) = (model, provider);
        let title = head.title().filter(|_| thread.untitled);
        if title.is_some() {
            thread.untitled = false;
            self.event(native, EventDraft::title(title, None), out);
        }
    }

    /// Returns whether a thread that could not be joined will be joined a tick later, or when it is active again,
    /// because no event of it is lost yet.
    pub(super) fn joins_later(&mut self, native: &NativeId) -> bool {
        let Some(thread) = self.state.threads.get_mut(native).filter(|thread| thread.unwritten) else { return false };
        thread.joins += 1;
        thread.doubted = thread.joins < JOINS_MAX;
        // A prompt of the gateway must not wait forever.
        thread.doubted || thread.turn.is_none()
    }

    /// Makes a title from the messages of a turn that were missed: see [`title_of_message`](Self::title_of_message).
    pub(super) fn title_of_turn(&mut self, native: &NativeId, turn: &TurnHead<'_>, out: &mut Outbox) {
        for item in turn.items() {
            self.title_of_message(native, item, &Bytes::copy_from_slice(item.get().as_bytes()), out);
        }
    }

    /// Makes a title from another client's first message in an untitled thread.
    pub(super) fn title_of_message(&mut self, native: &NativeId, item: &RawValue, frame: &Bytes, out: &mut Outbox) {
        #[derive(Deserialize)]
        struct Message<'a> {
            r#type: String,
            #[serde(borrow)]
            content: Vec<&'a RawValue>,
        }
        let Some(thread) = self.state.threads.get_mut(native).filter(|thread| thread.untitled) else { return };
        let Some(message) = object::<Message<'_>>(item).filter(|message| message.r#type == "userMessage") else {
            return;
        };
        let text = message.content.into_iter().find_map(|part| member::<String>(part, "text"));
        if let Some(title) = text.as_deref().and_then(super::messages::first_line) {
            thread.untitled = false;
            let draft = EventDraft::title(Some(title), Some(frame));
            self.event(native, draft, out);
        }
    }
}
