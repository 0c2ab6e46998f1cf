//! The messages of the app server, with the members that are read.

use super::*;

/// The `threadSource` of a thread in which Codex names a conversation.
const TITLE_SOURCE: &str = "thread_title";

/// The members of notifications.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params<'a> {
    #[serde(borrow)]
    pub(super) thread_id: Option<&'a RawValue>,
    pub(super) item_id: Option<&'a RawValue>,
    pub(super) delta: Option<&'a RawValue>,
    pub(super) item: Option<&'a RawValue>,
    pub(super) turn: Option<&'a RawValue>,
    pub(super) thread: Option<&'a RawValue>,
    pub(super) summary_index: Option<&'a RawValue>,
    pub(super) content_index: Option<&'a RawValue>,
    pub(super) message: Option<&'a RawValue>,
    pub(super) summary: Option<&'a RawValue>,
    pub(super) details: Option<&'a RawValue>,
    pub(super) changes: Option<&'a RawValue>,
    pub(super) plan: Option<&'a RawValue>,
    pub(super) token_usage: Option<&'a RawValue>,
    pub(super) thread_name: Option<&'a RawValue>,
    pub(super) thread_settings: Option<&'a RawValue>,
    pub(super) status: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
    pub(super) will_retry: Option<&'a RawValue>,
    pub(super) request_id: Option<&'a RawValue>,
}

/// A turn as the server sends it.
#[derive(Deserialize)]
pub(super) struct TurnHead<'a> {
    pub(super) id: String,
    #[serde(borrow)]
    pub(super) status: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
    pub(super) items: Option<&'a RawValue>,
}

impl<'a> TurnHead<'a> {
    pub(super) fn items(&self) -> Vec<&'a RawValue> {
        self.items.and_then(|items| plexus_protocol::object::from_str(items.get()).ok()).unwrap_or_default()
    }

    /// Returns the end of the turn; `None` while it runs.
    pub(super) fn end(&self, frame: Option<&Bytes>) -> Option<End> {
        let word = self.status.and_then(string)?;
        let status = match word.as_ref() {
            "inProgress" => return None,
            "completed" => RunStatus::Completed,
            "interrupted" => RunStatus::Cancelled,
            _ => RunStatus::Error,
        };
        let message = self.error.and_then(error_message);
        Some(End { status, word: word.into_owned(), message, native: frame.cloned() })
    }
}

/// A thread as the server sends it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadHead<'a> {
    pub(super) id: String,
    #[serde(borrow)]
    pub(super) cwd: Option<&'a RawValue>,
    pub(super) name: Option<&'a RawValue>,
    pub(super) preview: Option<&'a RawValue>,
    pub(super) parent_thread_id: Option<&'a RawValue>,
    pub(super) attached_to_thread_id: Option<&'a RawValue>,
    pub(super) source: Option<&'a RawValue>,
    pub(super) thread_source: Option<&'a RawValue>,
    pub(super) ephemeral: Option<&'a RawValue>,
    pub(super) status: Option<&'a RawValue>,
    pub(super) turns: Option<&'a RawValue>,
}

impl ThreadHead<'_> {
    pub(super) fn cwd(&self) -> Option<String> {
        text(self.cwd)
    }

    pub(super) fn name(&self) -> Option<String> {
        text(self.name).filter(|name| !name.is_empty())
    }

    pub(super) fn title(&self) -> Option<String> {
        self.name().or_else(|| first_line(&text(self.preview)?))
    }

    /// Returns the thread that a helper thread works for.
    pub(super) fn parent(&self) -> Option<String> {
        text(self.parent_thread_id).or_else(|| text(self.attached_to_thread_id))
    }

    /// Returns whether the thread is not a conversation of a user, and no client can join it: an ephemeral thread
    /// (Codex's terminal UI names each conversation in one whose source is `thread_title`), or a helper thread without
    /// a parent.
    pub(super) fn hidden(&self) -> bool {
        let helper = self.source.is_some_and(|source| source.get().contains("\"subAgent\""));
        let names = text(self.thread_source).is_some_and(|source| source == TITLE_SOURCE);
        helper || names || self.ephemeral.is_some_and(|ephemeral| ephemeral.get() == "true")
    }
}

/// Returns the first line of a message, as a title; `None` if it is empty.
pub(super) fn first_line(message: &str) -> Option<String> {
    let line: String = message.lines().next()?.chars().take(TITLE_MAX).collect();
    Some(line).filter(|line| !line.trim().is_empty())
}

/// Returns the text of a member, unless it is absent, null or not a string.
pub(super) fn text(raw: Option<&RawValue>) -> Option<String> {
    raw.and_then(string).map(std::borrow::Cow::into_owned)
}

/// Returns the message of a turn's error.
pub(super) fn error_message(error: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct TurnError<'a> {
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        additional_details: Option<&'a RawValue>,
        codex_error_info: Option<&'a RawValue>,
    }
    let TurnError { message, additional_details, codex_error_info } = object(error)?;
    let message_text = fault::with_details(&text(message)?, additional_details);
    // The type of the error, if its message explains nothing.
    Some(if is_uninformative(&message_text) {
        fault::with_details(&message_text, codex_error_info)
    } else {
        message_text
    })
}

/// Makes a request (with `id`) or a notification: Codex's messages have no `jsonrpc` member.
pub(super) fn frame(id: Option<u64>, method: &str, params: Option<&RawValue>) -> Bytes {
    #[derive(Serialize)]
    pub(super) struct Call<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a RawValue>,
    }
    jsonrpc::line(&Call { id, method, params })
}

/// Makes the response to the server's request `id` (its JSON text).
pub(super) fn answer(id: &str, result: &RawValue) -> Bytes {
    #[derive(Serialize)]
    pub(super) struct Answer<'a> {
        id: Option<&'a RawValue>,
        result: &'a RawValue,
    }
    jsonrpc::line(&Answer { id: serde_json::from_str(id).ok(), result })
}
