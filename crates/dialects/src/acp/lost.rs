//! Lost connections to endpoints: pending calls end with an error, and open sessions are opened again on the next connection.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::super::jsonrpc::INTERNAL;
use super::super::{EventDraft, Outbox, ResumeTarget, RunEnd, RuntimeError, RuntimeEvent};
use super::ask::PendingRequest;
use super::models::SessionModels;
use super::open::{OpenMethod, PastReplay, PendingOpen};
use super::{Acp, Pending, Phase};
use plexus_protocol::{NativeId, Ticket};

impl Acp {
    /// Handles the loss of the connection.
    pub(super) fn disconnected(&mut self, reason: &str, out: &mut Outbox) {
        let fault = || RuntimeError::new(INTERNAL, format!("the connection to the agent was lost: {reason}"));
        let not_opened = |ticket| RuntimeEvent::NotOpened { ticket, error: fault() };
        let ended = |native, ticket: Ticket| RuntimeEvent::Ended {
            native,
            ticket,
            end: RunEnd::failed(fault().full_message()),
        };
        self.phase = Phase::Hello;
        self.echoes.clear();
        self.withdrawn.clear();
        let mut pending: Vec<_> = std::mem::take(&mut self.pending).into_iter().collect();
        pending.sort_unstable_by_key(|(id, _)| *id);
        out.events.extend(pending.into_iter().filter_map(|(_, pending)| match pending {
            Pending::Authenticate { then: Some(opening) }
            | Pending::Open { opening, .. }
            | Pending::Mode { opening, .. } => Some(not_opened(opening.ticket)),
            Pending::Prompt { ticket, native } => Some(ended(native, ticket)),
            Pending::Call { ticket, .. } => Some(RuntimeEvent::Replied { ticket, reply: Err(fault()) }),
            Pending::Initialize | Pending::Authenticate { then: None } | Pending::Rejoin { .. } => None,
        }));
        let held = |(native, past): (NativeId, PastReplay)| past.held().map(|ticket| ended(native, ticket));
        out.events.extend(std::mem::take(&mut self.past).into_iter().filter_map(held));
        out.events.extend(self.stop_waiting().map(|opening| not_opened(opening.ticket)));
        // The agent opens its requests again if it still needs them.
        for (key, request) in std::mem::take(&mut self.asks) {
            let native = request.native().cloned();
            if let PendingRequest::SignIn(opening) = &request {
                out.events.push(not_opened(opening.ticket));
            }
            out.events.push(RuntimeEvent::TakenBack { native, key, elsewhere: None });
        }
        self.held.clear();
        self.jobs.clear();
        self.terminals.clear();
        self.seen.clear();
        self.known.clear();
        self.authenticated = false;
    }

    /// Opens the sessions of the previous connection again.
    pub(super) fn rejoin(&mut self, out: &mut Outbox) {
        let mut natives: Vec<NativeId> = self.sessions.keys().cloned().collect();
        natives.sort_unstable();
        for native in natives {
            let by = match (self.capabilities.resume, self.capabilities.load) {
                (true, _) => OpenMethod::Resume,
                (_, true) => OpenMethod::Load,
                (_, false) => {
                    let fault = RuntimeError::new(INTERNAL, "this agent cannot reopen a conversation");
                    self.not_rejoined(native, &fault, out);
                    continue;
                }
            };
            let session = self.sessions.get(&native);
            let (cwd, servers) =
                session.map(|session| (session.cwd.clone(), session.mcp_servers.clone())).unwrap_or_default();
            let resume = Some(ResumeTarget::new(native.clone(), true));
            self.send_open(Pending::Rejoin { native }, by, (&cwd, resume.as_ref(), &servers), out);
        }
    }

    /// Handles the response to opening a session again.
    pub(super) fn rejoined(
        &mut self,
        frame: &Bytes,
        native: NativeId,
        reply: Result<&RawValue, RuntimeError>,
        out: &mut Outbox,
    ) {
        match reply {
            Ok(result) => {
                let (models, drafts) = SessionModels::from_new_session(frame, result);
                if let Some(session) = self.sessions.get_mut(&native) {
                    session.models = models;
                    self.lists.share(&mut session.models);
                }
                self.await_quiet(&native, out);
                let native = Some(native);
                out.events
                    .extend(drafts.into_iter().map(|draft| RuntimeEvent::Event { native: native.clone(), draft }));
            }
            Err(fault) => self.not_rejoined(native, &fault, out),
        }
    }

    fn not_rejoined(&mut self, native: NativeId, fault: &RuntimeError, out: &mut Outbox) {
        self.past.remove(&native);
        self.sessions.remove(&native);
        let reason = format!(
            "after the connection was lost, the agent did not reopen this conversation: {}",
            fault.full_message()
        );
        let draft = EventDraft::error("session_lost", &reason, None);
        out.events.push(RuntimeEvent::Event { native: Some(native), draft });
    }

    fn stop_waiting(&mut self) -> impl Iterator<Item = PendingOpen> + use<> {
        std::mem::take(&mut self.waiting).into_iter().map(super::open::DeferredLoad::into_opening)
    }
}
