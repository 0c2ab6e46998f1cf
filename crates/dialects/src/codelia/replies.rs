//! Handles the runtime's replies to the gateway's requests.

use super::super::Phase;
use super::*;

impl Codelia {
    pub(super) fn reply(
        &mut self,
        frame: &Bytes,
        pending: Pending,
        reply: Result<&RawValue, RuntimeError>,
        out: &mut Outbox,
    ) {
        match (pending, reply) {
            (Pending::Initialize, Ok(result)) => self.initialized(result, out),
            (Pending::Initialize, Err(fault)) => {
                self.fail(format!("the runtime refused the handshake: {} ({})", fault.full_message(), fault.code), out);
            }
            (Pending::Start, Ok(result)) => self.started(frame, result, out),
            (Pending::Start, Err(fault)) => self.not_started(frame, fault, out),
            (Pending::Late, Ok(result)) => self.late_start(frame, result, out),
            (Pending::Late, Err(_)) => {}
            (Pending::Cancel { run_id }, Ok(result)) => self.cancelled(frame, &run_id, result, out),
            (Pending::Cancel { run_id }, Err(fault)) => {
                let is_current = self.run.as_ref().is_some_and(|run| run.id.as_ref() == Some(&run_id));
                if fault.code == RUN_NOT_FOUND {
                    // The run has ended in the runtime. If its end was not reported yet, it will not be.
                    if is_current {
                        self.finish(end(RunStatus::Cancelled, Some(fault.full_message()), Some(frame.clone())), out);
                    }
                } else {
                    self.cancel_refused(is_current);
                    let message = format!("the runtime refused to cancel run {run_id}: {}", fault.full_message());
                    self.event(EventDraft::error("cancel_refused", &message, Some(frame)), out);
                }
            }
            (Pending::Call { ticket: Some(ticket) }, reply) => {
                out.events.push(RuntimeEvent::Replied { ticket, reply: reply.map(jsonrpc::owned) });
            }
            (Pending::Call { ticket: None }, _) => {
                self.raw(frame, "the response to a call that was made through an earlier gateway", out);
            }
            (Pending::Find { ticket, native, known, cwd }, reply) => {
                let is_offered = resume::listed(reply, native.as_str());
                self.found(ticket, native, known, cwd, is_offered, out);
            }
            (Pending::History { ticket, native, cwd }, reply) => {
                self.history_read(frame, ticket, native, cwd, reply, out)
            }
        }
    }

    /// Handles the acceptance of a cancel. The end comes as `run.status`, unless this reply says that none will come.
    pub(super) fn cancelled(&mut self, frame: &Bytes, run_id: &str, result: &RawValue, out: &mut Outbox) {
        #[derive(Deserialize)]
        struct Cancelled {
            ok: Option<bool>,
            status: Option<String>,
        }
        let is_current = self.run.as_ref().is_some_and(|run| run.id.as_deref() == Some(run_id));
        let Some(Cancelled { ok, status }) = object(result).filter(|_| is_current) else { return };
        match (status.as_deref().map(end_status), ok) {
            (Some(Some(ended)), _) => self.finish(end(ended, None, Some(frame.clone())), out),
            // The run had completed before: the protocol knows no other reason.
            (None, Some(false)) => self.finish(end(RunStatus::Completed, None, Some(frame.clone())), out),
            (Some(None), Some(false)) => {
                self.cancel_refused(is_current);
                let message = format!("the runtime did not cancel run {run_id}");
                self.event(EventDraft::error("cancel_refused", &message, Some(frame)), out);
            }
            _ => self.note_activity(),
        }
    }

    /// Handles the refusal of a cancel: silence does not end the run.
    pub(super) fn cancel_refused(&mut self, is_current: bool) {
        if let Some(run) = self.run.as_mut().filter(|_| is_current) {
            run.stopping = false;
        }
    }

    /// Handles the start of a run that was considered cancelled.
    pub(super) fn late_start(&mut self, frame: &Bytes, result: &RawValue, out: &mut Outbox) {
        match object::<Started>(result) {
            Some(Started { run_id }) => self.send_cancel(run_id, out),
            None => self.raw(frame, "the start of a run without an identifier", out),
        }
    }

    pub(super) fn fail(&mut self, message: String, out: &mut Outbox) {
        self.phase = Phase::Failed;
        out.events.push(RuntimeEvent::Failed { message });
    }

    pub(super) fn initialized(&mut self, result: &RawValue, out: &mut Outbox) {
        #[derive(Deserialize)]
        struct Hello {
            protocol_version: String,
            server: Option<Server>,
            server_capabilities: Option<BTreeMap<String, serde_json::Value>>,
        }
        #[derive(Deserialize)]
        struct Server {
            name: String,
            version: String,
        }
        match object::<Hello>(result) {
            Some(hello) if hello.protocol_version == VERSION => {
                self.phase = Phase::Ready;
                self.capabilities = hello.server_capabilities.map(|reported| {
                    let known = Capability::ALL.iter().copied();
                    let is_offered = |one: &Capability| reported.get(one.ui_name()?).map(|value| *value == true);
                    known.filter(|one| is_offered(one) == Some(true)).collect()
                });
                let agent = hello.server.map(|server| format!("{} {}", server.name, server.version));
                out.events.push(RuntimeEvent::Ready { agent });
            }
            Some(Hello { protocol_version: version, .. }) => {
                self.fail(format!("the runtime speaks UI protocol {version}; the gateway speaks {VERSION}"), out);
            }
            None => self.fail("the runtime's response to `initialize` does not follow the UI protocol".into(), out),
        }
    }

    pub(super) fn started(&mut self, frame: &Bytes, result: &RawValue, out: &mut Outbox) {
        let Some(Started { run_id }) = object(result) else {
            let message = Some("the runtime started a run without an identifier".to_owned());
            return self.finish(end(RunStatus::Error, message, Some(frame.clone())), out);
        };
        let Some(run) = &mut self.run else { return };
        run.id = Some(run_id.clone());
        let cancel = run.cancel;
        if let Some(session) = &mut self.session {
            // The session is the current conversation of the process from now on.
            session.load = None;
        }
        match self.early.take() {
            Some(Early { run_id: early, status, message, frame }) if early == run_id => {
                self.finish(end(status, message, Some(frame.into())), out);
            }
            _ if cancel => self.send_cancel(run_id, out),
            _ => {}
        }
    }

    pub(super) fn not_started(&mut self, frame: &Bytes, fault: RuntimeError, out: &mut Outbox) {
        let Some(run) = &mut self.run else { return };
        if run.cancel || fault.code == USER_CANCELLED {
            return self.finish(end(RunStatus::Cancelled, None, Some(frame.clone())), out);
        }
        if fault.code == BUSY && run.tries < BUSY_TRIES {
            run.tries += 1;
            run.is_deferred = true;
            return;
        }
        if matches!(fault.code, SESSION_NOT_FOUND | SESSION_LOAD_FAILED) && self.start_anew(frame, &fault, out) {
            return;
        }
        let message = Some(fault.full_message());
        self.finish(end(RunStatus::Error, message, Some(frame.clone())), out);
    }
}
