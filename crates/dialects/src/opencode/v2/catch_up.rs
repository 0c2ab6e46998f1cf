//! Reads a session's log after the last reported sequence number.

use super::super::super::RunEnd;
use super::*;

/// The message at the end of a run whose prompt never reached OpenCode.
const NOT_ACCEPTED: &str = "the connection was lost before OpenCode accepted the prompt";

/// The reported part of a session: its checkpoint.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Progress {
    /// The last event of the session's log; `None` if unknown.
    pub(super) seq: Option<u64>,
    /// Unfinished texts.
    pub(super) parts: BTreeMap<String, Part>,
    /// Running tool calls.
    pub(super) tools: BTreeMap<String, Tool>,
    /// Items of the inbox that were not begun.
    pub(super) inbox: BTreeMap<String, Waiting>,
    pub(super) prompt: Option<Prompt>,
    /// `true` if [`RuntimeEvent::Began`] was sent without its [`RuntimeEvent::Done`].
    pub(super) began: bool,
    /// `true` if the gateway cancelled the run.
    pub(super) cancelled: bool,
    /// `true` if a question of the run was withdrawn, which OpenCode treats as a rejection that may end its turn.
    pub(super) withdrawn: bool,
    /// The reason why the last step failed.
    pub(super) error: Option<String>,
    /// The reason why the last step ended.
    pub(super) finish: Option<String>,
    /// The model of the session: provider and model.
    pub(super) model: Option<(String, String)>,
}

impl OpenCode2 {
    /// Reads the unreported part of a session's log, then its questions.
    pub(super) fn read(&mut self, native: &NativeId, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        if !matches!(session.stage, Stage::Open | Stage::Opening { .. }) {
            return;
        }
        (session.reading, session.overflowed) = (true, false);
        for question in self.asks.values_mut().filter(|question| question.native.as_ref() == Some(native)) {
            question.fresh = false;
        }
        self.read_log(native, false, out);
    }

    fn read_log(&mut self, native: &NativeId, older: bool, out: &mut Outbox) {
        let Some(session) = self.sessions.get(native) else { return };
        let after = session.progress.seq.map(|seq| format!("?after={seq}")).unwrap_or_default();
        let path = match older {
            false => format!("/api/experimental/session/{}/log{after}", escape(native.as_str())),
            true => path(native, &format!("/log{after}")),
        };
        self.get(Pending::Log { native: native.clone(), older }, path, out);
    }

    /// Handles a session's log that was read: reports the unreported part, then the queued events.
    pub(super) fn log(&mut self, native: &NativeId, older: bool, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        // The web page answers a missing route, or a 404 that names no session.
        let body = match reply {
            Ok(HttpReply { status: 200, body }) if body.trim_ascii_start().first() != Some(&b'<') => Ok(body.clone()),
            Ok(HttpReply { status: 200 | 404 | 405, .. }) if !older => return self.read_log(native, true, out),
            Ok(_) => Err(done(reply).err().unwrap_or_default()),
            Err(reason) => Err(reason.clone()),
        };
        let Some(session) = self.sessions.get_mut(native) else { return };
        let opening = match session.stage {
            Stage::Opening { ticket, known, continues } => {
                session.stage = Stage::Open;
                Some((ticket, known, continues))
            }
            _ => None,
        };
        if let Some((ticket, known, continues)) = opening {
            let mut drafts: Vec<EventDraft> = self.models.draft(session.progress.model.as_ref()).into_iter().collect();
            drafts.extend(session.title.clone().map(|title| EventDraft::title(Some(title), None)));
            out.events.push(RuntimeEvent::Opened { ticket, native: native.clone(), drafts, how: OpenedAs::Resumed });
            session.is_replaying = known && !continues;
            session.past = !continues;
            if continues && session.progress.began {
                out.events.push(RuntimeEvent::Began { native: native.clone(), by: ANOTHER.into() });
            }
        }
        match body {
            Ok(body) => {
                self.end_lost_prompt(native, &body, out);
                self.replay(native, &body, out);
            }
            Err(reason) => {
                let message = format!("the events of this session from that time could not be read: {reason}");
                out.events.push(RuntimeEvent::Event {
                    native: Some(native.clone()),
                    draft: EventDraft::error("gap", &message, None),
                });
                if let Some(session) = self.sessions.get_mut(native) {
                    session.progress.seq = None;
                }
            }
        }
        let Some(session) = self.sessions.get_mut(native) else { return };
        if std::mem::take(&mut session.is_replaying) {
            let message = "messages of this conversation from the time when no gateway was connected to OpenCode are \
                not shown: how much was reported before is unknown";
            if session.progress.seq.is_some() {
                out.events.push(RuntimeEvent::Event {
                    native: Some(native.clone()),
                    draft: EventDraft::error("gap", message, None),
                });
            }
            if session.busy {
                session.progress.began = true;
                out.events.push(RuntimeEvent::Began { native: native.clone(), by: ANOTHER.into() });
            }
        }
        session.reading = false;
        session.past = false;
        session.queued = 0;
        let overflowed = std::mem::take(&mut session.overflowed);
        for frame in std::mem::take(&mut session.queue) {
            if let Some(event) = parse(&frame) {
                self.streamed(&frame, &event, out);
            }
        }
        if overflowed {
            return self.read(native, out);
        }
        if self.sessions.get(native).is_some_and(|session| session.reading) {
            return;
        }
        self.check_progress(native, out);
        self.get(Pending::Permissions(native.clone()), path(native, "/permission"), out);
        self.get(Pending::Forms(native.clone()), path(native, "/form"), out);
    }

    /// Ends the run of a prompt that never reached OpenCode. This happens before the log is replayed: the work in the log is another
    /// client's, and becomes a run of its own.
    fn end_lost_prompt(&mut self, native: &NativeId, log: &Bytes, out: &mut Outbox) {
        if self.waits_for_prompt(native) {
            return;
        }
        let Some(session) = self.sessions.get_mut(native) else { return };
        let unsent = |prompt: &&Prompt| !prompt.taken && !prompt.seen;
        let Some(prompt) = session.progress.prompt.as_ref().filter(unsent) else { return };
        // The events that overflowed the queue are in the log that is read next.
        if session.busy || session.overflowed || prompt.is_in(log_frames(log).chain(session.queue.iter().cloned())) {
            return;
        }
        let progress = &mut session.progress;
        (progress.cancelled, progress.withdrawn, progress.error, progress.finish) = (false, false, None, None);
        if let Some(Prompt { ticket, .. }) = progress.prompt.take() {
            out.events.push(RuntimeEvent::Ended { native: native.clone(), ticket, end: RunEnd::failed(NOT_ACCEPTED) });
        }
    }

    /// Returns whether the reply to a prompt of a session is still to come.
    fn waits_for_prompt(&self, native: &NativeId) -> bool {
        self.pending.values().any(|p| matches!(p, Pending::Prompt { native: n, .. } if n == native))
    }

    /// Applies the events of a log, given as the body of an event stream.
    fn replay(&mut self, native: &NativeId, body: &Bytes, out: &mut Outbox) {
        let until = self.queued_from(native);
        for frame in log_frames(body) {
            match parse(&frame) {
                Some(event) if event.kind.starts_with("log.") => {
                    let seq = event.seq.filter(|_| until.is_none());
                    if let (Some(session), Some(seq)) = (self.sessions.get_mut(native), seq) {
                        session.progress.seq = session.progress.seq.max(Some(seq));
                    }
                }
                // The stream has the event, with the deltas around it.
                Some(Frame { durable: Some(durable), .. }) if until.is_some_and(|until| durable.seq >= until) => {}
                Some(event) => self.logged(native, &frame, &event, false, out),
                None => {
                    let draft = EventDraft::raw(frame, "not an event of OpenCode's");
                    out.events.push(RuntimeEvent::Event { native: Some(native.clone()), draft });
                }
            }
        }
    }

    /// Checks a session that was read: whether its pending prompt or run is still to come.
    fn check_progress(&mut self, native: &NativeId, out: &mut Outbox) {
        let waits = self.waits_for_prompt(native);
        let active = self.active.contains(native);
        let Some(session) = self.sessions.get_mut(native) else { return };
        let progress = &session.progress;
        let lost = progress.prompt.as_ref().is_some_and(|prompt| !prompt.taken && !prompt.seen) && !waits;
        let outstanding = progress.prompt.as_ref().is_some_and(|prompt| prompt.taken || prompt.seen) || progress.began;
        if lost && !session.busy {
            return self.end(native, None, events::End::Failed(Some(NOT_ACCEPTED.into())), out);
        }
        if !outstanding {
            return;
        }
        if progress.cancelled && session.busy {
            self.interrupt(native, out);
        } else if !active && session.unsure == 0 {
            session.unsure = UNSURE;
        }
        if self.sessions.get(native).is_some_and(|session| session.unsure > 0) {
            out.wake_after = Some(STEP_TIME);
        }
    }

    /// Ends a run that did not continue after a reconnect.
    pub(super) fn given_up(&mut self, native: &NativeId, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        let is_started = session.progress.prompt.as_ref().is_none_or(|prompt| prompt.seen);
        let reason = match is_started {
            true => "OpenCode stopped in the middle of it",
            false => "OpenCode was stopped before it started the prompt",
        };
        let waiting = session.progress.prompt.as_ref().filter(|prompt| !prompt.seen).map(|prompt| prompt.id.clone());
        session.busy = false;
        self.end(native, None, events::End::Failed(Some(reason.into())), out);
        if let Some(id) = waiting {
            // The prompt must not run later, when the user does not expect it.
            self.withdraw(native, &id, out);
        }
    }

    /// Adds a checkpoint of each session with events since `from`, and of `more`.
    pub(super) fn checkpoints(&mut self, from: usize, more: Option<NativeId>, out: &mut Outbox) {
        self.open_held(out);
        for native in out.sessions_since(from, more) {
            let progress = |session: &&Session| session.stage == Stage::Open;
            if let Some(session) = self.sessions.get(&native).filter(progress) {
                let state = session.progress.checkpoint();
                out.events.push(RuntimeEvent::Checkpoint { native, state });
            }
        }
    }
}

/// Returns the events of a log, given as the body of an event stream.
fn log_frames(body: &Bytes) -> impl Iterator<Item = Bytes> {
    let lines = body.split(|byte| *byte == b'\n');
    lines.filter_map(|line| Some(body.slice_ref(line.trim_ascii_end().strip_prefix(b"data:")?.trim_ascii())))
}

impl Progress {
    pub(super) fn checkpoint(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        if text.len() <= CHECKPOINT_MAX {
            return text;
        }
        let inbox = self.inbox.keys().map(|id| (id.clone(), Waiting::unknown())).collect();
        serde_json::to_string(&Self { inbox, ..self.clone() }).unwrap_or_default()
    }
}
