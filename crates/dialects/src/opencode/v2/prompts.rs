//! Sends and cancels prompts.

use super::super::super::RunEnd;
use super::*;

impl OpenCode2 {
    pub(super) fn prompt(&mut self, ticket: Ticket, native: NativeId, content: &[Box<RawValue>], out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(&native).filter(|session| session.stage == Stage::Open) else {
            let end = RunEnd::failed("OpenCode has no such session open");
            return out.events.push(RuntimeEvent::Ended { native, ticket, end });
        };
        let (text, files) = input(content);
        // Events follow every prompt, so a number is not used again with the same ticket.
        let name = format!("{}/{}/{:?}", native.as_str(), ticket.0, session.progress.seq);
        let id = format!("msg_{:016x}{:016x}", hash(&name), hash(&text));
        let mut body = serde_json::json!({ "id": id, "text": text });
        if !files.is_empty() {
            body["files"] = files.into();
        }
        session.progress.prompt = Some(Prompt { ticket, id, text: hash(&text), taken: false, seen: false });
        (session.progress.cancelled, session.progress.withdrawn) = (false, false);
        (session.progress.error, session.progress.finish) = (None, None);
        (session.spread, session.unsure) = (None, 0);
        let path = path(&native, "/prompt");
        self.send(Pending::Prompt { native, ticket }, "POST", path, Some(&body), out);
    }

    pub(super) fn prompted(
        &mut self,
        native: &NativeId,
        ticket: Ticket,
        reply: &Result<HttpReply, String>,
        out: &mut Outbox,
    ) {
        let Some(session) = self.sessions.get_mut(native) else { return };
        let Some(prompt) = session.progress.prompt.as_mut().filter(|prompt| prompt.ticket == ticket) else { return };
        match done(reply) {
            Ok(()) => {
                prompt.taken = true;
                if session.progress.cancelled && !session.busy {
                    // The prompt was cancelled before OpenCode had it.
                    self.interrupt(native, out);
                }
            }
            // The prompt may have arrived: the log shows it.
            Err(_) if reply.is_err() => {
                if self.connected {
                    self.read(native, out);
                }
            }
            Err(reason) => {
                let reason = format!("OpenCode did not accept the prompt: {reason}");
                self.end(native, None, events::End::Failed(Some(reason)), out);
            }
        }
    }

    pub(super) fn interrupt(&mut self, native: &NativeId, out: &mut Outbox) {
        if self.connected {
            let body = serde_json::json!({});
            let pending = Pending::Interrupt(native.clone());
            self.send(pending, "POST", path(native, "/interrupt"), Some(&body), out);
        }
    }

    pub(super) fn interrupted(&mut self, native: &NativeId, reply: &Result<HttpReply, String>, out: &mut Outbox) {
        if let Err(reason) = done(reply) {
            let draft = EventDraft::error("not_stopped", &format!("OpenCode did not stop: {reason}"), None);
            return out.events.push(RuntimeEvent::Event { native: Some(native.clone()), draft });
        }
        let Some(session) = self.sessions.get(native) else { return };
        let waiting = session.progress.prompt.as_ref().filter(|prompt| prompt.taken && !prompt.seen);
        // The prompt did not run: it is still in the inbox.
        if let Some(id) = waiting.filter(|_| !session.busy).map(|prompt| prompt.id.clone()) {
            self.withdraw(native, &id, out);
        }
    }

    pub(super) fn withdraw(&mut self, native: &NativeId, id: &str, out: &mut Outbox) {
        let pending = Pending::Withdraw { native: native.clone(), id: id.to_owned() };
        self.send(pending, "DELETE", path(native, &format!("/inbox/{}", escape(id))), None, out);
    }
}
