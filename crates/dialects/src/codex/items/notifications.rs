//! Notifications of the app server: turns, items, and the server itself.

use super::*;

/// Stores a message about the server itself under its name.
pub(super) fn hook(name: &str, params: Option<&RawValue>) -> EventDraft {
    #[derive(Serialize)]
    struct Hook<'a> {
        r#type: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<Box<RawValue>>,
    }
    EventDraft::new(Kind::Hook, &Hook { r#type: name, params: params.map(jsonrpc::owned) })
}

pub(super) fn plan(steps: &RawValue) -> EventDraft {
    #[derive(Deserialize)]
    struct Step {
        step: String,
        status: String,
    }
    let steps: Vec<Step> = plexus_protocol::object::from_str(steps.get()).unwrap_or_default();
    let entry = |Step { step, status }: &Step| {
        let status = match status.as_str() {
            "inProgress" | "in_progress" => "in_progress",
            "completed" => "completed",
            _ => "pending",
        };
        serde_json::json!({ "content": step, "priority": "medium", "status": status })
    };
    let entries: Vec<_> = steps.iter().map(entry).collect();
    EventDraft::new(Kind::Plan, &serde_json::json!({ "sessionUpdate": "plan", "entries": entries }))
}

/// The `tokenUsage` of a thread: of the last model call, and of the whole thread.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenUsage {
    last: Tokens,
    total: Tokens,
    model_context_window: Option<u64>,
}

/// Numbers of tokens. Codex includes the cache's part in the input, and the reasoning in the output.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    total_tokens: u64,
    #[serde(default, deserialize_with = "lenient_tokens")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient_tokens")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient_tokens")]
    cached_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient_tokens")]
    cache_write_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient_tokens")]
    reasoning_output_tokens: Option<u64>,
}

impl Tokens {
    fn spending(&self) -> Spending {
        let cached = [self.cached_input_tokens, self.cache_write_input_tokens];
        let counts = [self.input_tokens, self.output_tokens, cached[0], cached[1], self.reasoning_output_tokens];
        Spending::new(counts, Vec::new())
    }
}

pub(super) fn usage(raw: &RawValue) -> Option<EventDraft> {
    let TokenUsage { last, total, model_context_window } = object(raw)?;
    let body = serde_json::json!({
        "sessionUpdate": "usage_update", "used": last.total_tokens, "size": model_context_window.unwrap_or_default(),
        "_meta": { "totalTokens": total.total_tokens },
    });
    Some(EventDraft::new(Kind::UsageUpdate, &body))
}

/// Returns the spending of a thread in this message.
fn spent(raw: &RawValue) -> Option<SpendReport> {
    let TokenUsage { last, total, .. } = object(raw)?;
    SpendReport::total(total.spending()).map(|report| SpendReport { step: last.spending(), ..report })
}

impl Codex {
    /// Handles a notification.
    pub(in crate::codex) fn notified(&mut self, frame: &Bytes, method: &str, raw: Option<&RawValue>, out: &mut Outbox) {
        let Some(params) = raw.and_then(object::<Params<'_>>) else {
            let draft = match SERVER_NOTIFICATIONS.contains(&method) {
                true => EventDraft { native: Some(frame.clone()), ..hook(method, raw) },
                false => EventDraft::raw(frame.clone(), "unknown notification"),
            };
            return out.events.push(RuntimeEvent::Event { native: None, draft });
        };
        let native = text(params.thread_id).map(|id| NativeId::from(id.as_str()));
        if method == "thread/started" {
            return match params.thread.and_then(object::<ThreadHead<'_>>) {
                Some(head) => self.thread_started(&head, out),
                None => self.raw(frame, native, "a thread without an identifier", out),
            };
        }
        if let Some(id) = native.as_ref().filter(|id| self.state.helpers.contains_key(id))
            && method != "serverRequest/resolved"
            && !self.state.threads.contains_key(id)
        {
            // The work of a helper is reported in the thread that it works for.
            return;
        }
        if let (Some(native), Some(item)) = (&native, params.item) {
            self.title_of_message(native, item, frame, out);
        }
        if let ("item/autoApprovalReview/completed", Some(native), Some(raw)) = (method, &native, raw)
            && self.state.threads.contains_key(native)
            && let Some(reviewed) = self.review(frame, native, raw)
        {
            return out.events.push(reviewed);
        }
        let drafts = match self.turn_notification(frame, method, &params, native.as_ref(), out) {
            Some(drafts) => drafts,
            None => match self.server_notification(method, raw, &params, native.as_ref(), out) {
                Some(drafts) => drafts,
                None => vec![EventDraft::raw(frame.clone(), "unknown notification")],
            },
        };
        for draft in drafts {
            let draft = EventDraft { native: Some(frame.clone()), ..draft };
            out.events.push(RuntimeEvent::Event { native: native.clone(), draft });
        }
        if let ("thread/tokenUsage/updated", Some(native)) = (method, native)
            && (self.alone || self.state.threads.contains_key(&native))
            && let Some(report) = params.token_usage.and_then(spent)
        {
            out.events.push(RuntimeEvent::Spent { native, report });
        }
    }

    /// Handles notifications of a turn; `None` for others.
    pub(super) fn turn_notification(
        &mut self,
        frame: &Bytes,
        method: &str,
        params: &Params<'_>,
        native: Option<&NativeId>,
        out: &mut Outbox,
    ) -> Option<Vec<EventDraft>> {
        let unreadable = || Some(vec![EventDraft::raw(frame.clone(), "an incomplete notification")]);
        if !matches!(method, "item/started" | "item/completed" | "turn/started" | "turn/completed")
            && !method.ends_with("Delta")
            && !method.ends_with("/delta")
            && !matches!(method, "item/mcpToolCall/progress" | "item/fileChange/patchUpdated")
            && method != "item/reasoning/summaryPartAdded"
        {
            return None;
        }
        if method == "item/reasoning/summaryPartAdded" {
            // The turn is reported with its first item.
            return Some(Vec::new());
        }
        let Some(native) = native else { return unreadable() };
        if !self.state.threads.contains_key(native) {
            if self.alone {
                return unreadable();
            }
            // The thread belongs to another client and was not joined.
            self.resync(native.clone(), out);
            return Some(Vec::new());
        }
        match method {
            "turn/started" | "turn/completed" => {
                let Some(head) = params.turn.and_then(object::<TurnHead<'_>>) else { return unreadable() };
                if method == "turn/started" {
                    self.turn_started(native, head.id, out);
                } else {
                    self.turn_completed(frame, native, &head, out);
                }
                return Some(Vec::new());
            }
            _ => {}
        }
        let thread = self.state.threads.get_mut(native)?;
        if let Some(item) = params.item {
            let own_mark = thread.turn.as_ref().and_then(|turn| turn.ticket).map(super::super::mark);
            let mut echoed = thread.turn.as_ref().is_none_or(|turn| turn.echoed);
            let read = thread.items.read(item, method == "item/completed", own_mark.as_deref(), &mut echoed, frame);
            if let Some(turn) = &mut thread.turn {
                turn.echoed = echoed;
            }
            return Some(read.unwrap_or_else(|reason| vec![EventDraft::raw(frame.clone(), reason)]));
        }
        let Some(id) = text(params.item_id) else { return unreadable() };
        let items = &mut thread.items;
        if let Some(changed) = params.changes {
            let (content, locations) = changes(changed);
            let (content, locations) = (Some(content), Some(locations));
            let drafts = items.tool_update(ToolUpdate { content, locations, ..ToolUpdate::new(&id) });
            items.item(&id).edits = edits(changed);
            return Some(drafts);
        }
        if method == "item/mcpToolCall/progress" {
            let content = text(params.message).map(|message| vec![text_block(&message)]);
            return Some(items.tool_update(ToolUpdate { content, ..ToolUpdate::new(id) }));
        }
        let Some(delta) = params.delta.and_then(string) else { return unreadable() };
        let index = |raw: Option<&RawValue>| raw.and_then(|raw| raw.get().parse::<u64>().ok()).unwrap_or_default();
        Some(match method {
            "item/agentMessage/delta" => items.delta(&id, "", TextRole::Message, &delta),
            "item/plan/delta" => {
                // The plan may not be final: it is reported only if no end comes.
                let item = items.item(&id);
                if !item.done {
                    let reported =
                        item.texts.entry(String::new()).or_insert_with(|| ReportedText::new(TextRole::Message));
                    if !reported.loose {
                        reported.held.get_or_insert_default();
                    }
                }
                items.delta(&id, "", TextRole::Message, &delta)
            }
            "item/reasoning/summaryTextDelta" => {
                items.delta(&id, &part_name("s", index(params.summary_index)), TextRole::Thought, &delta)
            }
            "item/reasoning/textDelta" => {
                items.delta(&id, &part_name("t", index(params.content_index)), TextRole::Thought, &delta)
            }
            "item/commandExecution/outputDelta" | "item/fileChange/outputDelta" => {
                // Other ACP agents stream output in this form; the end has all of it.
                let meta = serde_json::json!({ "terminal_output": { "terminal_id": id, "data": delta } });
                items.tool_update(ToolUpdate { meta: Some(meta), ..ToolUpdate::new(id) })
            }
            _ => return None,
        })
    }

    /// Handles notifications of a thread or the server; `None` if unknown.
    pub(super) fn server_notification(
        &mut self,
        method: &str,
        raw: Option<&RawValue>,
        params: &Params<'_>,
        native: Option<&NativeId>,
        out: &mut Outbox,
    ) -> Option<Vec<EventDraft>> {
        if let Some(native) = native
            && !self.alone
            && method != "serverRequest/resolved"
            && !self.state.threads.contains_key(native)
        {
            // The notification is sent to every client, and this thread is not open. A closed thread would have to be
            // loaded again to be opened.
            let closed = params.status.is_some_and(|status| status.get().contains("\"notLoaded\""));
            match method {
                "thread/status/changed" if !closed => self.resync(native.clone(), out),
                "thread/closed" => _ = self.state.found.remove(native),
                _ => {}
            }
            return Some(Vec::new());
        }
        let warning = |code: &str| {
            let message = text(params.message).or_else(|| text(params.summary)).unwrap_or_else(|| code.to_owned());
            let details = text(params.details).map(|details| format!("\n{details}")).unwrap_or_default();
            vec![EventDraft::error(code, &format!("{message}{details}"), None)]
        };
        if let (Some(native), "thread/status/changed") = (native, method) {
            self.join_if_active(native, params.status, out);
        }
        Some(match method {
            "serverRequest/resolved" => {
                let id = params.request_id.map(|id| id.get().to_owned()).unwrap_or_default();
                self.resolved(&id, out);
                Vec::new()
            }
            "turn/plan/updated" => vec![plan(params.plan?)],
            "thread/tokenUsage/updated" => vec![usage(params.token_usage?)?],
            "thread/name/updated" => {
                if let Some(thread) = native.and_then(|native| self.state.threads.get_mut(native)) {
                    thread.untitled = false;
                }
                vec![EventDraft::title(text(params.thread_name), None)]
            }
            "thread/status/changed" => {
                // The rest is reported by runs and requests.
                let broken = params.status.is_some_and(|status| status.get().contains("\"systemError\""));
                let thread = native.and_then(|native| self.state.threads.get(native));
                let broken = broken && thread.is_none_or(|thread| thread.turn.is_none());
                let message = "Codex reported an internal error in this conversation";
                broken.then(|| EventDraft::error("system_error", message, None)).into_iter().collect()
            }
            "warning" => warning("warning"),
            "guardianWarning" => warning("guardian_warning"),
            "configWarning" => warning("config_warning"),
            "deprecationNotice" => warning("deprecation"),
            "error" => self.turn_error(params, native)?,
            "thread/settings/updated" => {
                let model = params.thread_settings.and_then(|settings| member(settings, "model"));
                if let Some(thread) = native.and_then(|native| self.state.threads.get_mut(native)) {
                    thread.model = model.or(thread.model.take());
                }
                vec![hook(method, raw)]
            }
            _ if SERVER_NOTIFICATIONS.contains(&method) || method.starts_with("thread/realtime/") => {
                vec![hook(method, raw)]
            }
            _ => return None,
        })
    }

    /// Handles a failure of the model. If it is not retried, the turn ends with this message.
    pub(super) fn turn_error(&mut self, params: &Params<'_>, native: Option<&NativeId>) -> Option<Vec<EventDraft>> {
        let message = error_message(params.error?)?;
        let retry = params.will_retry.is_some_and(|retry| retry.get() == "true");
        let turn = native.and_then(|native| self.state.threads.get_mut(native)).and_then(|thread| thread.turn.as_mut());
        match turn {
            Some(turn) if !retry => {
                turn.fault = Some(message);
                Some(Vec::new())
            }
            _ => {
                let body = plexus_protocol::ErrorBody::new("model_error", &message).with("will_retry", retry);
                Some(vec![EventDraft::new(Kind::Error, &body)])
            }
        }
    }
}
