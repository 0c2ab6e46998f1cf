//! Handles the stream's events, and the runs that they belong to. One file: an event, and its consequences.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::super::jsonrpc::{member, object};
use super::super::{EventDraft, HttpReply, Outbox, RequestKey, RunEnd, RuntimeEvent};
use super::Phase;
use super::ask::{self, AnswerRoute};
use super::calls;
use super::events::{self, Info, PartIn};
use super::{
    OpenCode, Pending, Prompt, Properties, Revert, SESSIONS_MAX, STEP_TIME, ServerKind, Session, SessionInfo, Stage,
    Status, UNBEGUN_MAX, done, escape, in_folder,
};
use plexus_protocol::{ErrorBody, Kind, NativeId, RunStatus, Ticket};

impl OpenCode {
    pub(super) fn prompt(&mut self, ticket: Ticket, native: NativeId, content: &[Box<RawValue>], out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(&native).filter(|session| session.stage == Stage::Open) else {
            let end = RunEnd::failed("OpenCode has no such session open");
            return out.events.push(RuntimeEvent::Ended { native, ticket, end });
        };
        let (parts, text) = calls::parts(content);
        let mut body = serde_json::json!({ "parts": parts });
        if let Some((provider, model)) = &session.model {
            body["model"] = serde_json::json!({ "providerID": provider, "modelID": model });
        }
        let (text, after) = (text.as_deref().map(events::hash), session.progress.last().map(ToOwned::to_owned));
        session.prompt = Some(Prompt { ticket, text, seen: false, taken: false, after });
        session.unbegun = UNBEGUN_MAX;
        (session.cancelled, session.withdrawn, session.aborted) = (false, false, false);
        (session.error, session.spread) = (None, None);
        let path = format!("/session/{}/prompt_async", escape(native.as_str()));
        let path = in_folder(&path, session.folder.as_deref());
        self.post(Pending::Prompt { native, ticket }, path, &body, out);
    }

    pub(super) fn prompted(
        &mut self,
        native: &NativeId,
        ticket: Ticket,
        reply: &Result<HttpReply, String>,
        out: &mut Outbox,
    ) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        let Some(prompt) = session.prompt.as_mut().filter(|prompt| prompt.ticket == ticket) else { return };
        match done(reply) {
            Ok(()) => prompt.taken = true,
            // The prompt may have arrived: the messages show it.
            Err(_) if reply.is_err() => self.sync_again(out),
            Err(reason) => {
                session.error = Some(format!("OpenCode did not accept the prompt: {reason}"));
                self.end(native, None, out);
            }
        }
    }

    pub(super) fn abort(&mut self, native: &NativeId, out: &mut Outbox) {
        if !self.connected {
            return;
        }
        let folder = self.sessions.get(native).and_then(|session| session.folder.clone());
        let path = in_folder(&format!("/session/{}/abort", escape(native.as_str())), folder.as_deref());
        self.post(Pending::Abort(native.clone()), path, &serde_json::json!({}), out);
    }

    /// Handles a session that became busy.
    pub(super) fn busy(&mut self, native: &NativeId, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        let fresh = !std::mem::replace(&mut session.busy, true);
        (session.ending, session.unbegun, session.doubts) = (false, 0, 0);
        if !session.live() {
            session.worked = true;
            return;
        }
        if session.prompt.is_none() && !session.began {
            session.began = true;
            (session.withdrawn, session.aborted, session.error, session.spread) = (false, false, None, None);
            if fresh {
                session.cancelled = false;
            }
            out.events.push(RuntimeEvent::Began { native: native.clone(), by: self.server_kind.others().into() });
        }
        self.flush_prompt(native, out);
        if fresh && self.sessions.get(native).is_some_and(|session| session.cancelled) {
            // The prompt was cancelled before it had begun, which OpenCode ignored.
            self.abort(native, out);
        }
    }

    pub(super) fn flush_prompt(&mut self, native: &NativeId, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        for draft in std::mem::take(&mut session.held_prompt) {
            self.emit(native, RuntimeEvent::Event { native: Some(native.clone()), draft }, out);
        }
    }

    /// Handles a session that became idle.
    pub(super) fn idle(&mut self, native: &NativeId, frame: &Bytes, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        let worked = std::mem::take(&mut session.busy);
        if !session.live() {
            return;
        }
        // The gateway's prompt is not part of the finished work: it is still to come.
        if session.prompt.as_ref().is_some_and(|prompt| !prompt.seen) || (session.prompt.is_none() && !session.began) {
            return;
        }
        // After an abort OpenCode reports idle at once, cleans up, and reports it once more; by then another prompt could run.
        let is_cleaning_up = session.aborted && session.progress.has_unfinished_part();
        // OpenCode reports idle twice, and the next prompt may be reported between the two: it has not begun with it.
        let is_repeated = !worked && !session.ending && session.prompt.is_some();
        // Aborted work may be reported as busy once more while it ends: that does not answer the prompt.
        let stopped = session.cancelled || session.aborted || session.error.is_some();
        let last = session.progress.last();
        let unanswered = !stopped && session.prompt.as_ref().is_some_and(|prompt| prompt.after.as_deref() == last);
        if is_cleaning_up || is_repeated || unanswered {
            session.ending = true;
            if unanswered && session.unbegun == 0 {
                session.unbegun = UNBEGUN_MAX;
            }
            out.wake_after = Some(STEP_TIME);
            return;
        }
        self.end(native, Some(frame), out);
    }

    /// Handles a timeout: the awaited event does not come.
    pub(super) fn on_timeout(&mut self, native: &NativeId, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native).filter(|session| session.live()) else { return };
        let is_unreported = session.prompt.as_ref().is_some_and(|prompt| prompt.taken && !prompt.seen);
        // OpenCode accepted the prompt, got a cancel, and never began: nothing more follows.
        let never_began = session.cancelled && is_unreported && !session.busy;
        session.aborted |= never_began;
        if session.ending && session.unbegun > 0 && session.error.is_none() && !session.cancelled && !session.aborted {
            // The second idle was the end of earlier work: OpenCode reported the prompt and never began with it.
            session.unbegun -= 1;
            out.wake_after = Some(STEP_TIME);
            return;
        }
        if session.ending || never_began {
            return self.end(native, None, out);
        }
        if !session.busy {
            self.flush_prompt(native, out);
        }
    }

    /// Ends the run.
    pub(super) fn end(&mut self, native: &NativeId, frame: Option<&Bytes>, out: &mut Outbox) {
        let open: Vec<RequestKey> =
            self.asks.iter().filter(|(_, question)| question.native == *native).map(|(key, _)| key.clone()).collect();
        // OpenCode continues to list them.
        self.take_back(open, out);
        let Some(session) = self.sessions.get_mut(native) else { return };
        (session.ending, session.doubts) = (false, 0);
        // OpenCode's own stop reason decides: a cancel may have come too late. A question that was withdrawn for the cancel counts as the
        // cancel.
        let stopped = std::mem::take(&mut session.cancelled) & std::mem::take(&mut session.withdrawn);
        let aborted = std::mem::take(&mut session.aborted) || stopped;
        let error = session.error.take();
        let (status, stop_reason) = match &error {
            Some(_) => (RunStatus::Error, None),
            None if aborted => (RunStatus::Cancelled, Some("cancelled".to_owned())),
            None => (RunStatus::Completed, Some(events::stop_reason(session.progress.finish()).to_owned())),
        };
        let end = RunEnd { status, stop_reason, message: error, native: frame.cloned() };
        let began = std::mem::take(&mut session.began);
        let prompt = session.prompt.take();
        if let Some(prompt) = prompt {
            self.emit(native, RuntimeEvent::Ended { native: native.clone(), ticket: prompt.ticket, end }, out);
        } else if began {
            self.emit(native, RuntimeEvent::Done { native: native.clone(), end }, out);
        }
    }

    pub(super) fn on_event(
        &mut self,
        frame: &Bytes,
        folder: Option<String>,
        kind: &str,
        properties: Option<&RawValue>,
        out: &mut Outbox,
    ) {
        if kind != "server.connected" && !std::mem::replace(&mut self.listens, true) {
            self.sync_again(out);
        }
        // A repeat in OpenCode's stored form.
        if kind == "sync" || kind == "server.heartbeat" || kind == "server.connected" {
            return;
        }
        let Some(properties) = properties else {
            return self.raw(frame, None, "an event without properties", out);
        };
        let named = object::<Properties<'_>>(properties);
        let Some((session, read)) = named.and_then(|read| Some((session_of(&read)?, read))) else {
            if member::<String>(properties, "sessionID").is_some() {
                return self.raw(frame, None, "an event that could not be parsed", out);
            }
            // Events about the server itself, such as plugins, files and terminals, concern no conversation.
            return;
        };
        let native = NativeId::from(session.as_str());
        // A plugin's events do not name the folder: the plugin gets only those of its own folder.
        let folder = folder.or_else(|| (self.server_kind == ServerKind::Terminal).then(|| self.folder.clone()));
        if !self.follows(&native, folder, kind, &read, out) {
            return;
        }
        match kind {
            "session.status" => self.status(&native, frame, &read, out),
            // On servers that send a status this is a late repeat: by then the session may work on the next prompt.
            "session.idle" if self.reports_status => {}
            "session.idle" => {
                self.note_status(&native);
                self.idle(&native, frame, out);
            }
            "session.error" => self.error(&native, frame, &read, out),
            "session.created" | "session.updated" => self.session(&native, frame, &read, out),
            "session.deleted" => self.deleted(&native, frame, out),
            "message.removed" => self.removed(&native, frame, &read, out),
            "message.part.removed" if self.makes_revert_final(&native, read.message.as_deref()) => {}
            "message.updated" => self.message(&native, frame, &read, out),
            "message.part.updated" => self.part(&native, frame, &read, out),
            "message.part.delta" => self.delta(&native, frame, &read, out),
            "permission.asked" | "permission.updated" | "permission.v2.asked" => {
                let routes: &[AnswerRoute] = match kind {
                    "permission.updated" => &[AnswerRoute::Session, AnswerRoute::Reply],
                    "permission.v2.asked" => &[AnswerRoute::Api, AnswerRoute::Reply],
                    _ => &[AnswerRoute::Reply, AnswerRoute::Session, AnswerRoute::Api],
                };
                match ask::permission(frame, properties, routes) {
                    Some(read) => self.ask(read, out),
                    None => self.raw(frame, Some(native), "a permission request that could not be parsed", out),
                }
            }
            "question.asked" | "question.v2.asked" => match ask::questions(frame, properties) {
                Some(read) => self.ask(read, out),
                None => self.raw(frame, Some(native), "a question that could not be parsed", out),
            },
            "permission.replied"
            | "permission.v2.replied"
            | "question.replied"
            | "question.v2.replied"
            | "question.rejected"
            | "question.v2.rejected" => match &read.request {
                Some(id) => self.replied(id, read.reply.clone(), out),
                None => self.raw(frame, Some(native), "an answer to an unknown request", out),
            },
            "todo.updated" => match read.todos.and_then(|todos| events::plan(frame, todos)) {
                Some(draft) => self.emit(&native, RuntimeEvent::Event { native: Some(native.clone()), draft }, out),
                None => self.raw(frame, Some(native), "a plan that could not be parsed", out),
            },
            // Each change is in the tool call that made it.
            "session.diff" if read.diff.is_none_or(|diff| diff.get() == "[]") => {}
            _ => self.raw(frame, Some(native), "an event that only OpenCode shows", out),
        }
    }

    /// Returns whether an event is of a followed session; a session that begins to work becomes one. In a terminal a
    /// session becomes one once it is created, since that comes with its first prompt and OpenCode takes a second or
    /// more until it works; subagents' sessions only once they work.
    pub(super) fn follows(
        &mut self,
        native: &NativeId,
        folder: Option<String>,
        kind: &str,
        read: &Properties<'_>,
        out: &mut Outbox,
    ) -> bool {
        if let Some(session) = self.sessions.get_mut(native) {
            if session.folder.is_none() {
                session.folder = folder;
            }
            return true;
        }
        let works = match kind {
            "session.status" => read.status.and_then(object::<Status>).is_some_and(|status| status.kind != "idle"),
            "message.part.delta" => true,
            kind => kind.ends_with(".asked") || kind == "permission.updated",
        };
        let created = self.server_kind == ServerKind::Terminal
            && kind == "session.created"
            && read.info.and_then(object::<SessionInfo>).is_some_and(|info| info.parent.is_none());
        if !(works || created) || self.phase == Phase::Failed {
            if matches!(kind, "session.status" | "session.idle") {
                self.note_status(native);
            }
            return false;
        }
        if self.sessions.len() >= SESSIONS_MAX {
            self.sessions.retain(|_, session| matches!(session.stage, Stage::Open | Stage::Opening { .. }));
            let sessions = &self.sessions;
            self.asks.retain(|_, question| sessions.contains_key(&question.native));
        }
        let mut session = Session::new(Stage::Seen, folder);
        (session.busy, session.worked, session.created) = (works, works, created);
        self.sessions.insert(native.clone(), session);
        self.note_status(native);
        if self.phase == Phase::Ready && self.resync_state.is_none() {
            self.found(native, out);
        }
        true
    }

    /// Records that the stream is newer than a pending read.
    pub(super) fn note_status(&mut self, native: &NativeId) {
        if let Some(session) = self.sessions.get_mut(native) {
            session.status_is_newer = true;
        }
        if let Some(resync_state) = &mut self.resync_state {
            resync_state.reported_status.insert(native.clone());
        }
    }

    pub(super) fn status(&mut self, native: &NativeId, frame: &Bytes, read: &Properties<'_>, out: &mut Outbox) {
        let Some(status) = read.status.and_then(object::<Status>) else {
            return self.raw(frame, Some(native.clone()), "a status that could not be parsed", out);
        };
        self.note_status(native);
        self.reports_status = true;
        match status.kind.as_str() {
            "idle" => self.idle(native, frame, out),
            "retry" => {
                self.busy(native, out);
                let message = status.message.unwrap_or_else(|| "the model did not answer".into());
                let message = format!("OpenCode is retrying: {message}");
                let body = ErrorBody::new("retry", &message).with("attempt", status.attempt).with("next", status.next);
                let draft = EventDraft { native: Some(frame.clone()), ..EventDraft::new(Kind::Error, &body) };
                self.emit(native, RuntimeEvent::Event { native: Some(native.clone()), draft }, out);
            }
            _ => self.busy(native, out),
        }
    }

    pub(super) fn error(&mut self, native: &NativeId, frame: &Bytes, read: &Properties<'_>, out: &mut Outbox) {
        let (name, message) = read.error.map(events::error_text).unwrap_or_default();
        let Some(session) = self.sessions.get_mut(native) else { return };
        if name == "MessageAbortedError" {
            session.aborted = true;
            return;
        }
        let message = if message.is_empty() { "OpenCode reports an error".to_owned() } else { message };
        if session.prompt.is_some() || session.began || session.busy {
            session.error = Some(message);
        } else {
            let draft = EventDraft::error("session_error", &message, Some(frame));
            self.emit(native, RuntimeEvent::Event { native: Some(native.clone()), draft }, out);
        }
    }

    pub(super) fn session(&mut self, native: &NativeId, frame: &Bytes, read: &Properties<'_>, out: &mut Outbox) {
        let Some(info) = read.info.and_then(object::<SessionInfo>) else {
            return self.raw(frame, Some(native.clone()), "a session that could not be parsed", out);
        };
        let Some(session) = self.sessions.get_mut(native) else { return };
        let mut reverted = None;
        if info.directory.is_some() {
            session.folder = info.directory;
            if let Some(resync_state) = &mut self.resync_state {
                resync_state.revised.insert(native.clone());
            }
            if session.live() {
                let undone = !std::mem::take(&mut session.committed);
                reverted = session.reverts_to(info.revert, undone, Some(frame));
            } else {
                (session.reread, session.reverts) = (true, info.revert);
            }
        }
        if info.title.is_some() && info.title != session.title {
            session.title.clone_from(&info.title);
            let draft = info.title.clone().map(|title| EventDraft::title(Some(title), Some(frame)));
            if let Some(draft) = draft {
                self.emit(native, RuntimeEvent::Event { native: Some(native.clone()), draft }, out);
            }
        }
        self.emit_all(native, reverted.into_iter().collect(), out);
    }

    /// Returns whether a removed message belongs to the revert, which then cannot be undone any more.
    fn makes_revert_final(&mut self, native: &NativeId, message: Option<&str>) -> bool {
        let Some(session) = self.sessions.get_mut(native) else { return false };
        let makes_revert_final =
            session.reverted.as_ref().is_some_and(|revert| message >= Some(revert.message.as_str()));
        session.committed |= makes_revert_final;
        makes_revert_final
    }

    /// Removes a message from the conversation.
    fn removed(&mut self, native: &NativeId, frame: &Bytes, read: &Properties<'_>, out: &mut Outbox) {
        let Some(message) = &read.message else {
            return self.raw(frame, Some(native.clone()), "nothing was removed", out);
        };
        let makes_revert_final = self.makes_revert_final(native, Some(message));
        let Some(session) = self.sessions.get_mut(native) else { return };
        if session.stage == Stage::Open && session.reading {
            // The message may be among those being read.
            return self.sync_again(out);
        }
        if session.progress.remove(message) && !makes_revert_final {
            let message = "one of the messages shown above was removed in OpenCode";
            self.emit_all(native, vec![EventDraft::error("taken_back", message, Some(frame))], out);
        }
    }

    pub(super) fn deleted(&mut self, native: &NativeId, frame: &Bytes, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        session.error = Some("the session was deleted in OpenCode".into());
        if session.prompt.is_some() || session.began {
            self.end(native, Some(frame), out);
        }
        let draft = EventDraft::error("session_deleted", "this session was deleted in OpenCode", Some(frame));
        self.emit(native, RuntimeEvent::Event { native: Some(native.clone()), draft }, out);
        if self.sessions.get(native).is_some_and(|session| !matches!(session.stage, Stage::Opening { .. })) {
            self.sessions.remove(native);
        }
    }

    pub(super) fn message(&mut self, native: &NativeId, frame: &Bytes, read: &Properties<'_>, out: &mut Outbox) {
        let Some(info) = read.info.and_then(object::<Info<'_>>) else {
            return self.raw(frame, Some(native.clone()), "a message that could not be parsed", out);
        };
        let Some(session) = self.sessions.get_mut(native) else { return };
        session.progress.message(&info);
        let works = session.busy || session.ending;
        session.failed(&info, works);
    }

    pub(super) fn part(&mut self, native: &NativeId, frame: &Bytes, read: &Properties<'_>, out: &mut Outbox) {
        let Some(part) = read.part.and_then(object::<PartIn<'_>>) else {
            return self.raw(frame, Some(native.clone()), "a part of a message that could not be parsed", out);
        };
        let Some(session) = self.sessions.get_mut(native) else { return };
        let mut drafts = Vec::new();
        if session.progress.is_user(&part.message) {
            let prompt = &mut session.prompt;
            let draft = session.progress.user_part(frame, &part, |text| is_own_prompt(prompt, text));
            if session.live() && !session.began && session.prompt.is_none() {
                // Work may follow; the message is reported once that is known.
                if draft.is_some() {
                    session.held_prompt.extend(draft);
                    out.wake_after = Some(STEP_TIME);
                }
                return;
            }
            drafts.extend(draft);
        } else {
            let context = self.models.context(session.progress.model());
            session.progress.part(frame, &part, context, &mut drafts);
        }
        let spent = session.progress.take_spent();
        self.emit_all(native, drafts, out);
        if let Some(report) = spent {
            self.emit(native, RuntimeEvent::Spent { native: native.clone(), report }, out);
        }
    }

    pub(super) fn delta(&mut self, native: &NativeId, frame: &Bytes, read: &Properties<'_>, out: &mut Outbox) {
        let (Some(message), Some(part), Some(delta)) = (&read.message, &read.part_id, &read.delta) else {
            return self.raw(frame, Some(native.clone()), "a piece of nothing", out);
        };
        if read.field.as_deref().is_some_and(|field| field != "text") {
            // A tool's input while it is written is not reported: it follows in full.
            return;
        }
        let Some(session) = self.sessions.get_mut(native) else { return };
        let mut drafts = Vec::new();
        session.progress.delta(frame, message, part, delta, &mut drafts);
        self.emit_all(native, drafts, out);
    }

    pub(super) fn emit_all(&mut self, native: &NativeId, drafts: Vec<EventDraft>, out: &mut Outbox) {
        if drafts.is_empty() {
            return;
        }
        if self.sessions.get(native).is_some_and(|session| !session.held_prompt.is_empty()) {
            self.flush_prompt(native, out);
        }
        for draft in drafts {
            self.emit(native, RuntimeEvent::Event { native: Some(native.clone()), draft }, out);
        }
    }
}

impl Session {
    /// Reports a revert, or that it was undone.
    pub(super) fn reverts_to(
        &mut self,
        now: Option<Revert>,
        undone: bool,
        frame: Option<&Bytes>,
    ) -> Option<EventDraft> {
        if now == self.reverted {
            return None;
        }
        self.reverted = now;
        let Some(revert) = &self.reverted else {
            let message = "the messages reverted in OpenCode are part of the conversation again";
            return undone.then(|| EventDraft::error("given_back", message, frame));
        };
        let count = self.progress.since(&revert.message);
        let message = format!(
            "the conversation was reverted in OpenCode: the last {count} of the messages shown above are no longer \
             part of it, unless this is undone before the next prompt"
        );
        (count > 0).then(|| EventDraft::error("taken_back", &message, frame))
    }

    /// Records why a message failed; `works` is `true` if it is of the current run.
    pub(super) fn failed(&mut self, info: &Info<'_>, works: bool) {
        let Some((name, message)) = info.error.map(events::error_text) else { return };
        match name.as_str() {
            "MessageAbortedError" => self.aborted |= works,
            _ if self.prompt.is_some() || self.began => self.error = Some(message),
            _ => {}
        }
    }
}

/// Returns whether a user's message is the prompt that was sent and not reported yet.
pub(super) fn is_own_prompt(prompt: &mut Option<Prompt>, text: Option<&str>) -> bool {
    let Some(prompt) = prompt.as_mut().filter(|prompt| !prompt.seen) else { return false };
    prompt.seen = prompt.text.is_none() || prompt.text == text.map(events::hash);
    prompt.seen
}

/// Returns the session that an event names, directly or in its content.
pub(super) fn session_of(read: &Properties<'_>) -> Option<String> {
    if read.session.is_some() {
        return read.session.clone();
    }
    let mut content = [read.part, read.info].into_iter().flatten();
    content.find_map(|raw| member(raw, "sessionID")).or_else(|| member(read.info?, "id"))
}
