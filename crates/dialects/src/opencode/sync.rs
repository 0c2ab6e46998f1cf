//! Reads the state: everything after each connection, and each session that is opened. One file: each step depends on the one before.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use serde_json::value::RawValue;

use super::super::jsonrpc::{INTERNAL, object, slice};
use super::super::{
    AnsweredElsewhere, EventDraft, HttpReply, McpServer, OpenedAs, Outbox, RequestKey, ResumeTarget, RunEnd,
    RuntimeError, RuntimeEvent,
};
use super::ask::{self, AnswerRoute};
use super::events::{self, Info, PartIn, Progress};
use super::stream::is_own_prompt;
use super::{
    DOUBTS_MAX, FOLDERS_MAX, LIST_MAX, LIST_PAGE, MESSAGES_READ, MessageIn, OpenCode, Page, Pending, Phase,
    REREAD_DELAY, Resync, ServerKind, Session, SessionInfo, Stage, Status, done, escape, health_version, in_folder,
    password_failure, reply_body,
};
use plexus_protocol::{NativeId, Ticket};

impl Resync {
    /// Adds a page of the list, most recently used sessions first, and returns the next page to request, if any.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // milliseconds: whole, not negative, below 2^53
    fn list(&mut self, page: Page, list: Vec<SessionInfo>) -> Option<Page> {
        let (count, before) = (list.len(), self.titles.len());
        let oldest = list.last().map(|info| info.updated().max(0.0) as u64);
        let mut folders: HashSet<String> = self.recent.iter().cloned().collect();
        for info in list {
            if self.titles.len() >= LIST_MAX {
                return None;
            }
            if let Some(folder) = info.directory.clone().filter(|folder| folders.insert(folder.clone())) {
                self.recent.push(folder);
            }
            let native = NativeId::from(info.id.as_str());
            if let Some(revert) = info.revert {
                self.reverted.insert(native.clone(), revert);
            }
            self.titles.insert(native, (info.directory, info.title));
        }
        match page {
            Page::Recent { before: at, limit } if count >= limit => match self.titles.len() > before {
                // Sessions of the same millisecond may be on either side of the page's end.
                true => Some(Page::Recent { before: Some(oldest? + 1), limit }),
                // A page of one millisecond, or a server without pages: request a longer one.
                false => Some(Page::Recent { before: at, limit: limit * 2 }),
            },
            _ => None,
        }
    }
}

impl OpenCode {
    /// Reads everything: health, status, questions; then the messages of the open sessions.
    pub(super) fn sync(&mut self, out: &mut Outbox) {
        if self.resync_state.is_some() {
            return;
        }
        for question in self.asks.values_mut() {
            question.fresh = false;
        }
        self.resync_state = Some(Resync { waiting: 3, ..Resync::default() });
        self.get(Pending::Health, "/global/health".into(), out);
        let providers = in_folder("/config/providers", Some(&self.folder.clone()));
        self.get(Pending::Providers, providers, out);
        let first = match self.server_kind {
            ServerKind::Endpoint => Page::Recent { before: None, limit: LIST_PAGE },
            ServerKind::Terminal => Page::Old,
        };
        self.list_page(first, out);
    }

    /// Searches these sessions at the next read, even if they are idle.
    pub(super) fn find(&mut self, sessions: Vec<NativeId>) {
        self.named = sessions;
    }

    /// Schedules another read, because events may have been missed.
    pub(super) fn sync_again(&mut self, out: &mut Outbox) {
        self.again = true;
        out.wake_after = Some(REREAD_DELAY);
    }

    pub(super) fn health(&mut self, reply: Result<HttpReply, String>, out: &mut Outbox) {
        match &reply {
            Ok(HttpReply { status: 401 | 403, .. }) => {
                self.phase = Phase::Failed;
                self.resync_state = None;
                return out.events.push(password_failure(self.secret));
            }
            Err(_) => self.resync_state.iter_mut().for_each(|resync_state| resync_state.failed = true),
            Ok(_) => {}
        }
        let version = health_version(&reply);
        self.agent = Some(version.map_or_else(|| "OpenCode".into(), |version| format!("OpenCode {version}")));
        self.on_sync_reply(out);
    }

    fn list_page(&mut self, page: Page, out: &mut Outbox) {
        let path = match page {
            Page::Recent { before: None, limit } => format!("/experimental/session?limit={limit}"),
            Page::Recent { before: Some(before), limit } => {
                format!("/experimental/session?limit={limit}&cursor={before}")
            }
            // Older servers list the sessions of one project only.
            Page::Old if self.server_kind == ServerKind::Endpoint => "/session".into(),
            Page::Old => in_folder("/session", Some(&self.folder)),
        };
        self.get(Pending::List(page), path, out);
    }

    pub(super) fn list(&mut self, page: Page, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        let list =
            reply_body(reply).and_then(|body| plexus_protocol::object::from_slice::<Vec<SessionInfo>>(body).ok());
        let Some(mut list) = list else {
            if matches!(page, Page::Recent { before: None, .. }) {
                return self.list_page(Page::Old, out);
            }
            self.resync_state.iter_mut().for_each(|resync_state| resync_state.failed = true);
            return self.on_sync_reply(out);
        };
        list.sort_by(|a, b| b.updated().total_cmp(&a.updated()));
        let next = self.resync_state.as_mut().and_then(|resync_state| resync_state.list(page, list));
        match next {
            Some(page) => self.list_page(page, out),
            None => self.listed(out),
        }
    }

    /// Searches each folder, once all sessions are listed.
    fn listed(&mut self, out: &mut Outbox) {
        let Some(resync_state) = &mut self.resync_state else { return };
        // `None` is the folder in which OpenCode was started.
        let mut folders: Vec<Option<String>> = vec![None, Some(self.folder.clone())];
        if self.server_kind == ServerKind::Terminal {
            folders.remove(0);
            resync_state.recent.clear();
        }
        let mut seen: HashSet<String> = HashSet::from([self.folder.clone()]);
        let open = self.sessions.values().filter_map(|session| session.folder.clone());
        folders.extend(open.filter(|folder| seen.insert(folder.clone())).map(Some));
        let recent: Vec<String> =
            std::mem::take(&mut resync_state.recent).into_iter().filter(|folder| seen.insert(folder.clone())).collect();
        let mut more = Vec::new();
        if resync_state.titles.len() >= LIST_MAX {
            more.push(format!("more than {LIST_MAX} sessions"));
        }
        if recent.len() > FOLDERS_MAX {
            more.push(format!("sessions in more than {FOLDERS_MAX} folders"));
        }
        folders.extend(recent.into_iter().take(FOLDERS_MAX).map(Some));
        resync_state.waiting += 3 * folders.len();
        for folder in folders {
            self.read_folder(&folder, None, out);
        }
        if !more.is_empty() && !self.is_reported_ready {
            let message = format!("OpenCode has {}: the oldest will appear at their next activity", more.join(" and "));
            out.events.push(RuntimeEvent::Event { native: None, draft: EventDraft::error("not_all", &message, None) });
        }
        self.on_sync_reply(out);
    }

    /// Reads status and questions of a folder, in this order: a busy session's questions come after its status.
    pub(super) fn read_folder(&mut self, folder: &Option<String>, only: Option<&NativeId>, out: &mut Outbox) {
        let (at, only) = (|path: &str| in_folder(path, folder.as_deref()), only.cloned());
        let pending = |folder: &Option<String>| (folder.clone(), only.clone());
        let (folder_, only_) = pending(folder);
        self.get(Pending::Status { folder: folder_, only: only_ }, at("/session/status"), out);
        let (folder_, only_) = pending(folder);
        self.get(Pending::Permissions { folder: folder_, only: only_ }, at("/permission"), out);
        let (folder_, only_) = pending(folder);
        self.get(Pending::Questions { folder: folder_, only: only_ }, at("/question"), out);
    }

    pub(super) fn status_read(
        &mut self,
        folder: Option<String>,
        only: Option<NativeId>,
        reply: &Result<HttpReply, String>,
        out: &mut Outbox,
    ) {
        let list = reply_body(reply)
            .and_then(|body| plexus_protocol::object::from_slice::<HashMap<String, Status>>(body).ok());
        let busy = list.map(|list| {
            list.into_iter().filter(|(_, status)| status.kind != "idle").map(|(id, _)| NativeId::from(id.as_str()))
        });
        match (only, busy) {
            (Some(native), Some(mut busy)) => {
                let busy = busy.any(|busy| busy == native);
                if let Some(session) = self.sessions.get_mut(&native) {
                    if !session.status_is_newer {
                        session.busy = busy;
                    }
                    session.worked |= busy;
                }
            }
            (Some(_), None) => {}
            (None, busy) => {
                if let Some(resync_state) = &mut self.resync_state {
                    match busy {
                        Some(busy) => {
                            resync_state.busy.extend(busy.map(|native| (native, folder.clone())));
                            resync_state.folders.insert(folder);
                        }
                        None => resync_state.failed |= reply.is_err(),
                    }
                }
                self.on_sync_reply(out);
            }
        }
    }

    pub(super) fn asks_read(
        &mut self,
        folder: Option<String>,
        only: Option<NativeId>,
        reply: &Result<HttpReply, String>,
        questions: bool,
        out: &mut Outbox,
    ) {
        let list =
            reply_body(reply).and_then(|body| Some((body, serde_json::from_slice::<Vec<&RawValue>>(body).ok()?)));
        let mut asks = Vec::new();
        for (body, raw) in list.iter().flat_map(|(body, list)| list.iter().map(move |raw| (*body, *raw))) {
            let native = slice(body, raw);
            let read = match questions {
                true => ask::questions(&native, raw),
                false => ask::permission(&native, raw, &[AnswerRoute::Reply, AnswerRoute::Session, AnswerRoute::Api]),
            };
            if let Some(read) = read.filter(|read| only.as_ref().is_none_or(|only| *only == read.native)) {
                asks.push(read);
            }
        }
        match only {
            Some(native) => {
                if let Some(session) = self.sessions.get_mut(&native) {
                    session.asks.extend(asks);
                }
            }
            None => {
                if let Some(resync_state) = &mut self.resync_state {
                    if list.is_none() {
                        // A failed read closes nothing.
                        resync_state.folders.remove(&folder);
                    }
                    resync_state
                        .listed
                        .extend(asks.iter().flat_map(|read| read.asks.iter().map(|(ask, _)| ask.key.clone())));
                    resync_state.asks.extend(asks);
                }
                self.on_sync_reply(out);
            }
        }
    }

    /// Counts a reply of the read.
    pub(super) fn on_sync_reply(&mut self, out: &mut Outbox) {
        let Some(resync_state) = &mut self.resync_state else { return };
        resync_state.waiting = resync_state.waiting.saturating_sub(1);
        if resync_state.waiting > 0 {
            return;
        }
        let Some(resync_state) = self.resync_state.take() else { return };
        if resync_state.failed {
            return self.sync_again(out);
        }
        if self.phase == Phase::Hello {
            self.phase = Phase::Ready;
        }
        if !std::mem::replace(&mut self.is_reported_ready, true) {
            out.events.push(RuntimeEvent::Ready { agent: self.agent.clone() });
        }
        // Of one folder with two names the named one is used.
        for (native, folder) in &resync_state.busy {
            // A session that has ended meanwhile is not found any more.
            if !self.sessions.contains_key(native) && !resync_state.reported_status.contains(native) {
                let spent_report = resync_state.titles.get(native).and_then(|(folder, _)| folder.clone());
                self.sessions
                    .insert(native.clone(), Session::new(Stage::Seen, spent_report.or_else(|| folder.clone())));
            }
        }
        let named = std::mem::take(&mut self.named);
        for native in &named {
            // A session that is not listed was deleted.
            if let Some((folder, _)) = resync_state.titles.get(native) {
                let folder = folder.clone();
                self.sessions.entry(native.clone()).or_insert_with(|| Session::new(Stage::Seen, folder));
            }
        }
        let unlisted: Vec<RequestKey> = self
            .asks
            .iter()
            .filter(|(key, question)| {
                let folder = self.sessions.get(&question.native).and_then(|session| session.folder.clone());
                let read = resync_state.folders.contains(&folder) || folder.is_none();
                read && !question.fresh && !resync_state.listed.contains(*key)
            })
            .map(|(key, _)| key.clone())
            .collect();
        for (native, session) in &mut self.sessions {
            let read = resync_state.folders.contains(&session.folder) || session.folder.is_none();
            if read && !resync_state.reported_status.contains(native) {
                session.busy = resync_state.busy.contains_key(native);
            }
            session.worked |= session.busy;
            if let Some((folder, title)) = resync_state.titles.get(native) {
                session.folder = session.folder.take().or_else(|| folder.clone());
                session.title = session.title.take().or_else(|| title.clone());
                if session.stage == Stage::Open && !session.reread && !resync_state.revised.contains(native) {
                    session.reread = true;
                    session.reverts = resync_state.reverted.get(native).cloned();
                }
            }
        }
        for key in unlisted {
            self.close_unlisted(key, out);
        }
        for read in resync_state.asks {
            // A session that is not open is read when it is opened.
            if let Some(session) = self.sessions.get_mut(&read.native).filter(|session| session.stage == Stage::Open) {
                session.asks.push(read);
            }
        }
        let natives: Vec<NativeId> = self.sessions.keys().cloned().collect();
        for native in natives {
            let Some(session) = self.sessions.get_mut(&native) else { continue };
            match session.stage {
                // The session worked meanwhile, and may have ended already.
                Stage::Seen if session.worked || session.created || named.contains(&native) => self.found(&native, out),
                Stage::Seen => {
                    self.sessions.remove(&native);
                    self.asks.retain(|_, question| question.native != native);
                }
                Stage::Open => {
                    session.reading = true;
                    self.read_messages(&native, out);
                }
                Stage::Found | Stage::Opening { .. } => {}
            }
        }
        if self.again {
            // The read became due while this one was in progress.
            self.sync_again(out);
        }
    }

    /// Closes a question that OpenCode no longer lists: it was answered while the gateway was not connected, or its work has ended.
    pub(super) fn close_unlisted(&mut self, key: RequestKey, out: &mut Outbox) {
        if self.asks.get(&key).is_some_and(|question| question.lost.is_some()) {
            // The stream may still report who was first.
            return;
        }
        let Some(question) = self.asks.remove(&key) else { return };
        self.closed.insert(key.clone());
        if question.answer.is_some() {
            // Presumably the answer arrived before the connection was lost.
            return;
        }
        let busy = self.sessions.get(&question.native).is_some_and(|session| session.busy);
        let elsewhere = busy.then(|| AnsweredElsewhere { by: self.server_kind.others().into(), option_id: None });
        let event = RuntimeEvent::TakenBack { native: Some(question.native.clone()), key, elsewhere };
        self.emit(&question.native, event, out);
    }

    /// Reports a session to the gateway.
    pub(super) fn found(&mut self, native: &NativeId, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        session.stage = Stage::Found;
        session.asks.clear();
        let (cwd, title) = (session.folder.clone(), session.title.clone());
        out.events.push(RuntimeEvent::Found { native: native.clone(), cwd, title });
    }

    pub(super) fn created(
        &mut self,
        ticket: Ticket,
        cwd: String,
        server: Option<McpServer>,
        reply: &Result<HttpReply, String>,
        out: &mut Outbox,
    ) {
        let info = reply_body(reply).and_then(|body| plexus_protocol::object::from_slice::<SessionInfo>(body).ok());
        let Some(info) = info else {
            let reason = done(reply).err().unwrap_or_else(|| "its response could not be parsed".into());
            let error = RuntimeError::new(INTERNAL, format!("OpenCode opened no session: {reason}"));
            return out.events.push(RuntimeEvent::NotOpened { ticket, error });
        };
        let native = NativeId::from(info.id.as_str());
        let mut session = Session::new(Stage::Open, info.directory.or(Some(cwd)));
        session.title = info.title;
        session.server = server;
        self.sessions.insert(native.clone(), session);
        // The server is added before the first prompt, because requests about a session are sent in order.
        self.add_server(&native, out);
        let drafts = self.models.draft(None).into_iter().collect();
        out.events.push(RuntimeEvent::Opened { ticket, native, drafts, how: OpenedAs::New });
    }

    pub(super) fn resume(
        &mut self,
        ticket: Ticket,
        cwd: &str,
        resume: ResumeTarget,
        server: Option<McpServer>,
        out: &mut Outbox,
    ) {
        let ResumeTarget { native, known, carried } = resume;
        match self.sessions.get(&native).map(|session| session.stage) {
            Some(Stage::Opening { .. }) => {
                let error = RuntimeError::new(INTERNAL, "this session is being opened already");
                return out.events.push(RuntimeEvent::NotOpened { ticket, error });
            }
            // The session that had it open was deleted: it is read again, for another one.
            Some(Stage::Open) => {
                self.sessions.remove(&native);
                self.asks.retain(|_, question| question.native != native);
            }
            Some(Stage::Seen | Stage::Found) | None => {}
        }
        let cwd = (!cwd.is_empty()).then(|| cwd.to_owned());
        let session = self.sessions.entry(native.clone()).or_insert_with(|| Session::new(Stage::Seen, cwd));
        session.asks.clear();
        // The stream has all events since the creation, so a read, which may take OpenCode a second, is not needed.
        let untouched = !session.worked && session.progress.newest().is_none() && !known && carried.is_none();
        if std::mem::take(&mut session.created) && untouched {
            (session.stage, session.server, session.queued) = (Stage::Open, server, 0);
            let queue = std::mem::take(&mut session.queue);
            let drafts = self.models.draft(None).into_iter().collect();
            out.events.push(RuntimeEvent::Opened { ticket, native, drafts, how: OpenedAs::Resumed });
            return out.events.extend(queue);
        }
        let continues = carried.is_some_and(|carried| self.restored(&native, &carried));
        if let Some(session) = self.sessions.get_mut(&native) {
            session.stage = Stage::Opening { ticket, known, continues };
            session.server = server;
            session.status_is_newer = false;
        }
        let path = format!("/session/{}", escape(native.as_str()));
        self.get(Pending::Resume(native), path, out);
    }

    pub(super) fn resumed(&mut self, native: &NativeId, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        let Stage::Opening { ticket, .. } = session.stage else { return };
        let Some(info) =
            reply_body(reply).and_then(|body| plexus_protocol::object::from_slice::<SessionInfo>(body).ok())
        else {
            self.sessions.remove(native);
            self.asks.retain(|_, question| question.native != *native);
            let reason = done(reply).err().unwrap_or_else(|| "its response could not be parsed".into());
            let error = RuntimeError::new(INTERNAL, format!("OpenCode has no such session: {reason}"));
            return out.events.push(RuntimeEvent::NotOpened { ticket, error });
        };
        session.folder = info.directory.or_else(|| session.folder.take());
        session.title = info.title.or_else(|| session.title.take());
        if !std::mem::replace(&mut session.reread, true) {
            session.reverts = info.revert;
        }
        let folder = session.folder.clone();
        self.permit(native, info.permission.as_ref(), out);
        self.read_servers(native, out);
        self.read_folder(&folder, Some(native), out);
        self.read_messages(native, out);
    }

    pub(super) fn read_messages(&mut self, native: &NativeId, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        session.newest = session.progress.newest().map(ToOwned::to_owned);
        let folder = session.folder.clone();
        let path = in_folder(&format!("/session/{}/message", escape(native.as_str())), folder.as_deref());
        let and = if path.contains('?') { '&' } else { '?' };
        self.get(Pending::Messages(native.clone()), format!("{path}{and}limit={MESSAGES_READ}"), out);
    }

    /// Handles the messages of a session that were read: reports the unreported part, then the queued events.
    pub(super) fn messages(&mut self, native: &NativeId, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        let list =
            reply_body(reply).and_then(|body| Some((body, serde_json::from_slice::<Vec<&RawValue>>(body).ok()?)));
        let (mut past, mut rest) = (Vec::new(), Vec::new());
        let before =
            session.began.then(|| RuntimeEvent::Began { native: native.clone(), by: self.server_kind.others().into() });
        let opening = match session.stage {
            Stage::Opening { ticket, known, continues } => Some((ticket, known, continues)),
            _ => None,
        };
        let continues = opening.is_some_and(|(_, _, continues)| continues);
        match list {
            Some((body, list)) => {
                let known = opening.is_some_and(|(_, known, continues)| known && !continues);
                if known && !list.is_empty() {
                    let message = "messages of this conversation from the time when no gateway was connected to \
                        OpenCode are not shown: how much was reported before is unknown";
                    past.push(RuntimeEvent::Event {
                        native: Some(native.clone()),
                        draft: EventDraft::error("gap", message, None),
                    });
                }
                if opening.is_some_and(|(_, known, _)| !known) && list.len() >= MESSAGES_READ {
                    let message = format!("only the last {MESSAGES_READ} messages of this session are shown");
                    past.push(RuntimeEvent::Event {
                        native: Some(native.clone()),
                        draft: EventDraft::error("gap", &message, None),
                    });
                }
                rest = self.past(native, body, &list, known, opening.is_some() && !continues, &mut past);
            }
            None => {
                let reason = done(reply).err().unwrap_or_else(|| "its response could not be parsed".into());
                let message = format!("the messages of this session could not be read: {reason}");
                past.push(RuntimeEvent::Event {
                    native: Some(native.clone()),
                    draft: EventDraft::error("gap", &message, None),
                });
                if opening.is_none() && reply.is_err() {
                    self.sync_again(out);
                }
            }
        }
        let Some(session) = self.sessions.get_mut(native) else { return };
        if let Some((ticket, ..)) = opening {
            session.stage = Stage::Open;
            let mut drafts: Vec<EventDraft> = self.models.draft(session.model.as_ref()).into_iter().collect();
            drafts.extend(session.title.clone().map(|title| EventDraft::title(Some(title), None)));
            out.events.push(RuntimeEvent::Opened { ticket, native: native.clone(), drafts, how: OpenedAs::Resumed });
            if continues {
                out.events.extend(before);
            }
        }
        session.reading = false;
        out.events.append(&mut past);
        session.queued = 0;
        out.events.append(&mut session.queue);
        out.events.append(&mut rest);
        self.check_progress(native, out);
    }

    /// Reports the unreported part of a session's messages. Returns the ends of parts that the stream is in the middle
    /// of, which come after the stream's own reports.
    pub(super) fn past(
        &mut self,
        native: &NativeId,
        body: &Bytes,
        list: &[&RawValue],
        known: bool,
        opening: bool,
        past: &mut Vec<RuntimeEvent>,
    ) -> Vec<RuntimeEvent> {
        let mut rest = Vec::new();
        let Some(session) = self.sessions.get_mut(native) else { return rest };
        let read: Vec<MessageRead<'_>> = list
            .iter()
            .filter_map(|raw| object::<MessageIn<'_>>(raw))
            .filter_map(|message| Some((object::<Info<'_>>(message.info)?, message.parts)))
            .collect();
        let event = |draft| RuntimeEvent::Event { native: Some(native.clone()), draft };
        let spent = |report| RuntimeEvent::Spent { native: native.clone(), report };
        // Spending before the gateway knew the conversation does not count. All before the first reported message was reported.
        let first = || read.iter().position(|(info, _)| session.progress.contains(&info.id));
        let skip = if session.progress.is_new() { 0 } else { first().unwrap_or_default() };
        if !opening && !read.is_empty() {
            past.extend(session.missed(&read).map(event));
        }
        if std::mem::take(&mut session.partial) {
            let text = "how much of the current messages was reported before is unknown: the rest of them is left out";
            past.push(event(EventDraft::error("gap", text, None)));
        }
        // A prompt that is not among them never arrived: later work does not belong to it.
        let is_pending = self.pending.values().any(|p| matches!(p, Pending::Prompt { native: n, .. } if n == native));
        if let Some(ticket) = session.lost_prompt(&read, skip).filter(|_| !is_pending) {
            let end = RunEnd::failed("the connection was lost before OpenCode accepted the prompt");
            past.push(RuntimeEvent::Ended { native: native.clone(), ticket, end });
            (session.prompt, session.cancelled) = (None, false);
        }
        // The start of the work to report: the current work, and after a gap everything unknown.
        let is_unknown = |info: &Info<'_>| info.role == "user" && !session.progress.contains(&info.id);
        let first_unknown = read.iter().enumerate().position(|(at, (info, _))| at >= skip && is_unknown(info));
        let last = read.iter().rposition(|(info, _)| info.role == "user");
        let begins = match opening {
            true => last.filter(|_| session.worked),
            false => first_unknown,
        };
        for (at, (info, parts)) in read.iter().enumerate() {
            let seen = at < skip || session.progress.contains(&info.id);
            let old = known || at < skip || session.progress.was_reported_before(&info.id);
            let complete = old || session.progress.is_complete(&info.id);
            session.progress.message(info);
            let mut drafts = Vec::new();
            for raw in parts {
                let Some(part) = object::<PartIn<'_>>(raw) else { continue };
                let bytes = slice(body, raw);
                if old {
                    session.progress.skip(&part);
                    continue;
                }
                if info.role == "user" {
                    let prompt = &mut session.prompt;
                    drafts.extend(session.progress.user_part(&bytes, &part, |text| is_own_prompt(prompt, text)));
                    continue;
                }
                // The stream has the part from its beginning. It may be far behind this reply, by which the run may end: then the rest
                // is taken from here, and later events of the stream about the part are ignored.
                if session.progress.follows(&part.id) {
                    if Progress::complete(&part) {
                        let context = self.models.context(session.progress.model());
                        let mut end = Vec::new();
                        session.progress.part(&bytes, &part, context, &mut end);
                        rest.extend(end.into_iter().map(event).chain(session.progress.take_spent().map(spent)));
                    }
                    continue;
                }
                let context = self.models.context(session.progress.model());
                session.progress.part(&bytes, &part, context, &mut drafts);
                session.progress.hold(&part.id);
            }
            let is_own_prompt = info.role == "user" && session.prompt.as_ref().is_some_and(|prompt| prompt.seen);
            let begin = begins == Some(at) || (!opening && !seen && info.role == "user" && !drafts.is_empty());
            if begin && !session.began && session.prompt.is_none() && !is_own_prompt {
                session.began = true;
                past.push(RuntimeEvent::Began { native: native.clone(), by: self.server_kind.others().into() });
            }
            let spent_report = session
                .progress
                .take_spent()
                .filter(|_| !matches!(session.stage, Stage::Opening { continues: false, .. }));
            past.extend(drafts.into_iter().map(event).chain(spent_report.map(spent)));
            let is_working = !complete && (session.prompt.is_some() || session.began);
            if is_working {
                session.failed(info, is_working);
            }
        }
        if session.worked && !session.began && session.prompt.is_none() {
            session.began = true;
            past.push(RuntimeEvent::Began { native: native.clone(), by: self.server_kind.others().into() });
        }
        session.worked = false;
        past.extend(session.after_reread(&read).map(event));
        rest
    }

    /// Checks a session that is open and was read: its pending requests, and whether its work has ended.
    pub(super) fn check_progress(&mut self, native: &NativeId, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        let mut has_unreported = false;
        for read in std::mem::take(&mut session.asks) {
            let Some(session) = self.sessions.get(native) else { return };
            if read.message.as_ref().is_some_and(|id| session.progress.is_complete(id)) {
                let keys: Vec<RequestKey> = read.asks.into_iter().map(|(ask, _)| ask.key).collect();
                keys.iter().for_each(|key| self.closed.insert(key.clone()));
                self.take_back(keys, out);
                continue;
            }
            if !session.busy {
                has_unreported = true;
                continue;
            }
            // An answer that may be lost is sent again.
            let again: Vec<RequestKey> = read.asks.iter().map(|(ask, _)| ask.key.clone()).collect();
            self.ask(read, out);
            for key in again {
                if self.asks.get(&key).is_some_and(|question| question.answer.is_some())
                    && !self.is_answer_pending(&key)
                {
                    self.send_answer(&key, 0, out);
                }
            }
        }
        let Some(session) = self.sessions.get_mut(native) else { return };
        let missing = |missing: bool| missing && !session.aborted && session.error.is_none();
        let (middle, unbegun) =
            (missing(session.progress.has_unfinished_part()), missing(session.progress.awaits_reply()));
        let is_working = session.began || session.prompt.as_ref().is_some_and(|prompt| prompt.seen);
        let doubtful = !session.busy && (has_unreported || (is_working && (middle || unbegun)));
        session.doubts = if doubtful { session.doubts.saturating_add(1) } else { 0 };
        if doubtful && session.doubts < DOUBTS_MAX {
            // The work may have begun after the status was read.
            return self.sync_again(out);
        }
        // Questions of an earlier gateway that OpenCode no longer waits for.
        let busy = session.busy;
        for (key, decided) in session.carried.drain() {
            if decided {
                // Presumably the answer of the earlier gateway process arrived.
                self.closed.insert(key);
                continue;
            }
            let elsewhere = busy.then(|| AnsweredElsewhere { by: self.server_kind.others().into(), option_id: None });
            self.closed.insert(key.clone());
            self.emit(native, RuntimeEvent::TakenBack { native: Some(native.clone()), key, elsewhere }, out);
        }
        let Some(session) = self.sessions.get_mut(native) else { return };
        if session.busy {
            if session.cancelled {
                self.abort(native, out);
            }
            return;
        }
        if let Some(prompt) = &session.prompt
            && !prompt.seen
        {
            let is_pending =
                self.pending.values().any(|p| matches!(p, Pending::Prompt { native: n, .. } if n == native));
            if !is_pending && !prompt.taken {
                session.error = Some("the connection was lost before OpenCode accepted the prompt".into());
                self.end(native, None, out);
            }
            return;
        }
        if session.prompt.is_some() || session.began {
            if middle {
                session.error = Some("OpenCode stopped in the middle of it".into());
            } else if unbegun && session.prompt.is_some() {
                session.error = Some("OpenCode accepted the prompt but did not reply".into());
            }
            self.end(native, None, out);
        }
    }

    pub(super) fn is_answer_pending(&self, key: &RequestKey) -> bool {
        self.pending.values().any(|pending| matches!(pending, Pending::Answer { key: sent, .. } if sent == key))
    }
}

/// A message that was read, and its parts.
type MessageRead<'a> = (Info<'a>, Vec<&'a RawValue>);

impl Session {
    /// Returns the prompt whose arrival is not known, if it is not among the messages that were read; those before `skip` are older.
    fn lost_prompt(&self, read: &[MessageRead<'_>], skip: usize) -> Option<Ticket> {
        let prompt = self.prompt.as_ref().filter(|prompt| !prompt.seen && !prompt.taken)?;
        let may_be = |info: &Info<'_>| info.role == "user" && !self.progress.was_reported_before(&info.id);
        let is_prompt = |raw: &&RawValue| {
            let part = object::<PartIn<'_>>(raw);
            part.is_some_and(|part| prompt.text.is_none() || part.user_text().map(events::hash) == prompt.text)
        };
        let mut candidates = read.iter().skip(skip).filter(|(info, _)| may_be(info));
        (!candidates.any(|(_, parts)| parts.iter().any(is_prompt))).then_some(prompt.ticket)
    }

    /// Reports messages that were missed or removed while there was no connection: more messages than are read, or
    /// fewer than were reported.
    fn missed(&mut self, read: &[MessageRead<'_>]) -> Option<EventDraft> {
        let newest = self.newest.as_deref();
        let removed = self.progress.missing_count(read.iter().map(|(info, _)| info.id.as_str()), newest);
        // These are known to the user.
        let known = self.reverted.as_ref().map_or(0, |revert| self.progress.since(&revert.message));
        if removed > 0 {
            self.progress.forget(removed, newest);
        }
        let overlaps = read.iter().any(|(info, _)| self.progress.contains(&info.id));
        if !overlaps && read.len() >= MESSAGES_READ {
            let message =
                "there are more messages from the time without a connection than can be read: some are missing";
            return Some(EventDraft::error("gap", message, None));
        }
        (removed > known).then(|| {
            let message = format!(
                "the conversation was reverted while the gateway was not connected: OpenCode no longer has the last \
                 {removed} of the messages shown above"
            );
            EventDraft::error("taken_back", &message, None)
        })
    }

    /// Returns the outcome of a revert, once the session was read again.
    fn after_reread(&mut self, read: &[MessageRead<'_>]) -> Option<EventDraft> {
        if !std::mem::take(&mut self.reread) {
            return None;
        }
        // The revert was undone, or made final by a prompt: then the message, or its part, no longer exists.
        let undone = self.reverted.as_ref().is_some_and(|revert| {
            let part = |raw: &&RawValue| object::<PartIn<'_>>(raw).is_some_and(|part| Some(part.id) == revert.part);
            let mut matching = read.iter().filter(|(info, _)| info.id == revert.message);
            matching.any(|(_, parts)| revert.part.is_none() || parts.iter().any(part))
        });
        let now = self.reverts.take();
        self.reverts_to(now, undone, None)
    }
}
