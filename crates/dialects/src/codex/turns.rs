//! Turns: their start, by a prompt or by another client, and their end.

use super::*;

impl Codex {
    pub(super) fn prompt(&mut self, ticket: Ticket, native: NativeId, content: &[Box<RawValue>], out: &mut Outbox) {
        let Ticket(number) = ticket;
        let problem = match self.state.threads.get(&native) {
            None => Some("Codex has no such conversation open".to_owned()),
            Some(Thread { turn: Some(Turn { ticket: Some(_), .. }), .. }) => Some("a turn is active".to_owned()),
            Some(_) => None,
        };
        let input = match problem.map_or_else(|| items::input(content), Err) {
            Ok(input) => input,
            Err(problem) => {
                return out.events.push(RuntimeEvent::Ended { native, ticket, end: RunEnd::failed(problem) });
            }
        };
        if let Some(thread) = self.state.threads.get_mut(&native) {
            // The session is named after the prompt.
            thread.untitled = false;
            // A prompt into another client's turn steers it, and ends with it.
            let turn = thread.turn.get_or_insert_with(Turn::default);
            turn.ticket = Some(number);
            turn.starting = true;
            turn.echoed = false;
        }
        let params = serde_json::json!({ "threadId": native, "clientUserMessageId": mark(number), "input": input });
        self.request(Pending::Turn { native, ticket: number }, "turn/start", &params, out);
    }

    pub(super) fn cancel(&mut self, ticket: Option<Ticket>, native: &NativeId, out: &mut Outbox) {
        let turn = self.state.threads.get_mut(native).and_then(|thread| thread.turn.as_mut());
        let Some(turn) = turn.filter(|turn| ticket.is_none_or(|Ticket(ticket)| turn.ticket == Some(ticket))) else {
            return;
        };
        turn.cancel = true;
        // While `turn/start` is unanswered the turn has no id; the interrupt is sent after the answer.
        if !turn.starting && self.state.phase == Phase::Ready {
            self.interrupt(native, out);
        }
    }

    pub(super) fn interrupt(&mut self, native: &NativeId, out: &mut Outbox) {
        let turn = self.state.threads.get(native).and_then(|thread| thread.turn.as_ref()?.id.clone());
        let Some(turn) = turn else { return };
        let params = serde_json::json!({ "threadId": native, "turnId": turn });
        self.request(Pending::Interrupt { native: native.clone(), turn }, "turn/interrupt", &params, out);
    }

    /// Handles the answer to `turn/start`: the turn has an id.
    pub(super) fn turn_taken(
        &mut self,
        frame: &Bytes,
        native: &NativeId,
        ticket: u64,
        result: &RawValue,
        out: &mut Outbox,
    ) {
        let id = member(result, "turn").and_then(object::<TurnHead<'_>>).map(|turn| turn.id);
        let Some(thread) = self.state.threads.get_mut(native) else { return };
        let Some(turn) = thread.turn.as_mut().filter(|turn| turn.ticket == Some(ticket)) else { return };
        turn.starting = false;
        let Some(id) = id else {
            let fault = RuntimeError::new(INTERNAL, "Codex started a turn without an identifier");
            return self.turn_refused(frame, native.clone(), ticket, fault, out);
        };
        let early = turn.early.take().filter(|(early, _)| *early == id);
        let cancel = turn.cancel;
        turn.id = Some(id.clone());
        thread.mark_reported(&id);
        self.named = Some(native.clone());
        match early {
            Some((_, end)) => self.finish(native, end, out),
            None if cancel => self.interrupt(native, out),
            None => {}
        }
    }

    pub(super) fn turn_refused(
        &mut self,
        frame: &Bytes,
        native: NativeId,
        ticket: u64,
        fault: RuntimeError,
        out: &mut Outbox,
    ) {
        let Some(thread) = self.state.threads.get_mut(&native) else { return };
        let Some(turn) = thread.turn.as_mut().filter(|turn| turn.ticket == Some(ticket)) else { return };
        // The other running turn is another client's.
        turn.ticket = None;
        turn.starting = false;
        let left = turn.id.is_some() && turn.early.is_none();
        let report_start = left && !turn.began;
        turn.began |= report_start;
        if !left {
            thread.turn = None;
        }
        out.events.push(RuntimeEvent::Ended {
            native: native.clone(),
            ticket: Ticket(ticket),
            end: RunEnd { native: Some(frame.clone()), ..RunEnd::failed(fault.full_message()) },
        });
        if report_start {
            out.events.push(RuntimeEvent::Began { native, by: OTHER.into() });
        }
    }

    /// Handles the start of a turn.
    pub(super) fn turn_started(&mut self, native: &NativeId, id: String, out: &mut Outbox) {
        let Some(thread) = self.state.threads.get_mut(native) else { return };
        thread.items.next_turn();
        thread.mark_reported(&id);
        self.named = Some(native.clone());
        match &mut thread.turn {
            Some(turn) if turn.id.as_deref() == Some(&id) => {}
            // The turn is probably the gateway's; the answer to `turn/start` decides.
            Some(turn) if turn.starting && turn.id.is_none() => turn.id = Some(id),
            Some(_) => {
                let message = "Codex began other work without ending this".to_owned();
                let end = End { status: RunStatus::Error, word: "lost".into(), message: Some(message), native: None };
                self.finish(native, end, out);
                self.foreign_turn_began(native, id, out);
            }
            None => self.foreign_turn_began(native, id, out),
        }
    }

    /// Handles a running turn of another client.
    pub(super) fn foreign_turn_began(&mut self, native: &NativeId, id: String, out: &mut Outbox) {
        let Some(thread) = self.state.threads.get_mut(native) else { return };
        thread.mark_reported(&id);
        thread.turn = Some(Turn { id: Some(id), began: true, ..Turn::default() });
        out.events.push(RuntimeEvent::Began { native: native.clone(), by: OTHER.into() });
    }

    /// Handles the end of a turn.
    pub(super) fn turn_completed(&mut self, frame: &Bytes, native: &NativeId, head: &TurnHead<'_>, out: &mut Outbox) {
        let Some(thread) = self.state.threads.get_mut(native) else { return };
        let Some(turn) = thread.turn.as_ref().filter(|turn| turn.id.as_deref() == Some(&head.id)) else {
            // The turn had ended before the thread was joined, or was reported already.
            return;
        };
        let own_mark = turn.ticket.map(mark);
        let Some(mut end) = head.end(Some(frame)) else { return };
        if end.status == RunStatus::Error && end.message.is_none() {
            end.message.clone_from(&turn.fault);
        }
        // The summary has the last message, which may be new after a late join.
        let mut drafts = Vec::new();
        for item in head.items() {
            drafts.extend(thread.items.read(item, true, own_mark.as_deref(), &mut true, frame).unwrap_or_default());
        }
        for draft in drafts {
            self.event(native, draft, out);
        }
        self.state.held.drop_session(native);
        self.finish(native, end, out);
    }

    /// Ends the current turn.
    pub(super) fn finish(&mut self, native: &NativeId, end: End, out: &mut Outbox) {
        let Some(thread) = self.state.threads.get_mut(native) else { return };
        let Some(turn) = thread.turn.take() else { return };
        (thread.doubts, thread.doubted) = (0, false);
        let drafts = thread.items.turn_over();
        for draft in drafts {
            self.event(native, draft, out);
        }
        // The open questions of the turn are closed with it.
        let id = turn.id.clone();
        let asks = self.state.asks.iter().filter(|(_, request)| request.native == *native && request.turn == id);
        let asks: Vec<_> = asks.map(|(key, _)| key.clone()).collect();
        for key in asks {
            self.close_question(&key, None, out);
        }
        let run_end = RunEnd::from(end.clone());
        if turn.began {
            out.events.push(RuntimeEvent::Done { native: native.clone(), end: run_end.clone() });
        }
        let Some(ticket) = turn.ticket else { return };
        if turn.starting {
            // The answer to `turn/start` shows whether this turn was the gateway's.
            let early = turn.id.map(|id| (id, end));
            let rest = Turn { ticket: Some(ticket), starting: true, cancel: turn.cancel, early, ..Turn::default() };
            if let Some(thread) = self.state.threads.get_mut(native) {
                thread.turn = Some(rest);
            }
            return;
        }
        out.events.push(RuntimeEvent::Ended { native: native.clone(), ticket: Ticket(ticket), end: run_end });
    }
}
